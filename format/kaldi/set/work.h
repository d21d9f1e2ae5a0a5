/* What reading a field of Kaldi tables needs: its cells, sums over them, and walks over a file that
 * consists of them. Only arrays.c, entries.c, fields.c and work.c of this folder include this. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_WORK_H
#define EPOCHFS_FORMAT_KALDI_SET_WORK_H

#include "format/core/prefix_sums.h"
#include "format/core/sample_window.h"
#include "format/kaldi/set/set.h"

struct kaldi_text_ops;

/* The state of one call. */
struct kaldi_work {
    const struct kaldi_set *set;
    const struct kaldi_field *base_field; /* NULL: the keys */
    const struct dataset *ds;
    const struct selection *sel;
    uint64_t tail;       /* elements per row of each array; 0: not known yet */
    size_t file_len;     /* bytes of the name of an archive, in front of the offset */
    char suffix[80];     /* of that name */
    struct diag *reason; /* while sums are made */
    const struct kaldi_text_ops *text;
    struct sample_window window; /* for kaldi_work_sample() */
};

void kaldi_work_init(struct kaldi_work *w, const struct dataset *ds, const struct field *f,
                     const struct selection *sel);

/* The cell of a sample. 0 or -errno with the reason in d. */
int kaldi_work_cell(const struct kaldi_work *w, uint64_t sample, struct kaldi_cell *ret,
                    struct diag *d);

/* The sample at a place; quick for places in ascending order. */
uint64_t kaldi_work_sample(struct kaldi_work *w, uint64_t place);

/* The number of axes of an array of a column. */
unsigned kaldi_axes(const struct kaldi_column *c, unsigned array);

/* Open the sums over the cells that number() gives; each number() has its own. The caller closes
 * *ret. */
int kaldi_work_sums(struct kaldi_work *w, sums_fn *number, struct sums *ret);

/* Write bytes [off, off + len) of one sample's item in the file. */
typedef int kaldi_item_fn(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                          const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                          struct diag *d);

/* Write bytes [off, off + len) of a file that is a sequence of items of differing sizes; unit:
 * bytes of each element that number() counts. 0 or -errno with the reason in d. */
int kaldi_read_summed(struct read_context *rc, struct kaldi_work *w, sums_fn *number, uint64_t unit,
                      kaldi_item_fn *item, uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* The same for items of one size, each bytes. */
int kaldi_read_even(struct read_context *rc, struct kaldi_work *w, uint64_t each,
                    kaldi_item_fn *item, uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* ---- ops ---- */

/* Arrays (format/kaldi/set/arrays.c). */
extern const struct field_ops kaldi_ragged_ops, kaldi_padded_ops, kaldi_lengths_ops,
    kaldi_offsets_ops, kaldi_value_ops, kaldi_rate_ops;

/* Archives (format/kaldi/set/entries.c). */
extern const struct field_ops kaldi_archive_ops, kaldi_script_ops;

/* Bytes of one sample, in one of the ways of enum kaldi_bytes. */
struct kaldi_bytes_ops {
    struct field_ops ops;
    enum kaldi_bytes way;
};
extern const struct kaldi_bytes_ops kaldi_object_ops, kaldi_audio_ops;

/* Texts of samples. number(): the bytes that a sample's line takes; item(): those bytes, filled
 * with pad after the text. */
struct kaldi_text_ops {
    struct field_ops ops;
    sums_fn *number;
    int (*item)(struct read_context *rc, struct kaldi_work *w, uint64_t sample, uint8_t pad,
                uint64_t off, size_t len, uint8_t *dst, struct diag *d);
};
extern const struct kaldi_text_ops kaldi_line_ops, kaldi_string_ops, kaldi_key_lines_ops,
    kaldi_key_ops;

#endif
