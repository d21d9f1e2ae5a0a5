/* A dataset of Kaldi tables: one table, or those of a data directory joined by utterance.
 *
 * Each table is a column; a cell is the row of a column that belongs to a sample. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_SET_H
#define EPOCHFS_FORMAT_KALDI_SET_SET_H

#include "base/memo.h"
#include "format/kaldi/set/join.h"
#include "format/kaldi/table/table.h"
#include "format/records/records.h"
#include "format/records/shards.h"

struct kaldi_column {
    struct kaldi_table *table;
    bool is_alone;   /* the only column: file names need not name it */
    int join;        /* which number of a joined row gives its row; -1: its row is the sample */
    bool is_cut;     /* wave: the numbers after that one give the part that counts */
    bool is_mono;    /* wave: each cell has one channel */
    enum dtype real; /* of real numbers: DTYPE_F4, or DTYPE_F8 if any is stored as double */
    bool varies;     /* cells differ in the size of their second axis */
    uint64_t tail;   /* else that size */
};

/* The files that a dataset is made from. Starts as {0}. */
struct kaldi_parts {
    struct shards tables;   /* first; struct kaldi_table */
    struct blob **material; /* [n_material] archives of the folder that scp files name; owned */
    size_t n_material;
    bool has_segments; /* the last table is segments, which is no column */
};

void kaldi_parts_release(struct kaldi_parts *parts);
#define AUTO_KALDI_PARTS AUTO(kaldi_parts_release)

struct record_audio;

struct kaldi_set {
    struct kaldi_parts parts; /* first */
    struct memo *memo;
    const struct kaldi_table *segments; /* NULL: there is none */
    unsigned n_columns;
    struct kaldi_column *column;    /* [n_columns] owned */
    struct kaldi_join *join;        /* owned; NULL: one table */
    struct record_content *content; /* owned; the dataset's fields point into it */
    struct record_audio *audio;     /* owned; NULL: there are no recordings */
    bool is_known;                  /* all but the lengths of audio */
};

static inline const struct kaldi_set *kaldi_set_of(const struct dataset *ds)
{
    return ds->impl;
}

/* Make a dataset of that format, of one table or more; it takes ownership of what parts holds.
 * is_alone: files of a field need not name it. 0, -ENOMEM, -E2BIG: too many tables. */
int kaldi_set_new(const struct format *format, const struct format_setup *setup,
                  struct kaldi_parts *parts, bool is_alone, struct dataset **ret);

/* ---- cells (format/kaldi/set/cell.c) ---- */

struct kaldi_cell {
    const struct kaldi_table *table;
    uint64_t number;      /* of the row in its table */
    struct kaldi_row row; /* the part of it that counts, cut by segments */
    unsigned channel;     /* wave: the channel that counts, from 1; 0: all */
    uint64_t cut[3];      /* wave: as of kaldi_segment_cut(); of one that Kaldi does not read the */
                          /* start of struct kaldi_segment */
    bool is_mono;
};

/* Read bytes of a source, and fail unless they belong to the version that was opened. 0 or -errno
 * with the reason in d. */
int kaldi_read(struct read_context *rc, const struct blob *blob, uint64_t off, size_t len,
               uint8_t *dst, struct diag *d);

/* Find the cell of a sample in a column. 0, or -EBADMSG with the reason in d: the cell cannot be
 * read; ret is set, as far as its row is known. */
int kaldi_cell(const struct kaldi_set *set, unsigned column, uint64_t sample,
               struct kaldi_cell *ret, struct diag *d);

/* The same, but 0 and *ret_file if the row is all of a file, which raw shows. */
int kaldi_cell_or_file(const struct kaldi_set *set, unsigned column, uint64_t sample,
                       struct kaldi_cell *ret, bool *ret_file, struct diag *d);

/* The sizes of the axes of array number i. Returns the number of axes, 0 to 2. */
unsigned kaldi_cell_form(const struct kaldi_cell *cell, unsigned i, uint64_t ret_dim[static 2]);

/* Ways to show a cell as bytes. */
enum kaldi_bytes {
    KALDI_AS_STORED, /* the object as in its file; a cut one as Kaldi would write it */
    KALDI_AS_ENTRY,  /* what follows the key in an archive; of a wave, a .wav file */
    KALDI_AS_LINE,   /* the tokens and a newline */
    KALDI_AS_TEXT,   /* as KALDI_AS_ENTRY, but written as text, or in binary, if it is stored */
    KALDI_AS_BINARY, /* otherwise */
    N_KALDI_BYTES,
};

/* What a file shows of a cell: a header, a body, and perhaps a newline. */
struct kaldi_view {
    const struct kaldi_cell *cell;
    uint8_t head[KALDI_WAVE_HEADER];
    size_t head_len;
    enum { VIEW_STORED, VIEW_SAMPLES, VIEW_DECODED, VIEW_WRITTEN } body;
    uint64_t off;     /* VIEW_STORED: byte of cell->row.blob */
    unsigned array;   /* VIEW_DECODED: values of this array, cut */
    enum dtype dtype; /* and of real numbers */
    uint64_t len;     /* bytes of the body */
    bool is_ended;    /* a newline follows */
    /* VIEW_WRITTEN: the bytes, which are in */
    const struct kaldi_made {
        size_t len;
        uint8_t bytes[];
    } * written;
    struct memo_thing *thing; /* or, if they are few, in */
    void *small;              /* owned */
};

/* Array number i, real numbers as dtype; or the cell as bytes. The cell must outlive the view. */
void kaldi_view_array(const struct kaldi_cell *cell, unsigned i, enum dtype dtype,
                      struct kaldi_view *ret);
void kaldi_view_bytes(const struct kaldi_cell *cell, enum kaldi_bytes way, struct kaldi_view *ret);

/* Is the object of a cell to be written, as it is not stored that way? */
static inline bool kaldi_is_written(const struct kaldi_cell *cell, enum kaldi_bytes way)
{
    bool is_text = cell->row.object.store == KALDI_TEXT;

    return way == KALDI_AS_BINARY ? is_text
                                  : way == KALDI_AS_TEXT && (!is_text || cell->row.is_cut);
}

/* As kaldi_view_bytes(), but of any way: it may read the object. The caller releases *ret. 0 or
 * -errno with the reason in d. */
int kaldi_view_any(struct read_context *rc, const struct kaldi_set *set,
                   const struct kaldi_cell *cell, enum kaldi_bytes way, struct kaldi_view *ret,
                   struct diag *d);
void kaldi_view_release(struct kaldi_view *view); /* of one that starts as {0} */

static inline uint64_t kaldi_view_size(const struct kaldi_view *view)
{
    return view->head_len + view->len + view->is_ended;
}

/* Write bytes [off, off + len) of a view. 0 or -errno with the reason in d. */
int kaldi_view_read(struct read_context *rc, const struct kaldi_set *set,
                    const struct kaldi_view *view, uint64_t off, size_t len, uint8_t *dst,
                    struct diag *d);

/* The bytes of cell->row.blob that kaldi_view_read() reads for all of a view; 0 of them where it
 * needs none. */
struct extent kaldi_view_span(const struct kaldi_view *view);
/* The same for an object that is written in another form: from the first to the last of them. */
struct extent kaldi_written_span(const struct kaldi_cell *cell);

/* ---- fields (format/kaldi/set/fields.c) ---- */

/* The fields of a table, at most. */
#define KALDI_FIELDS_MOST (4 * KALDI_ARRAYS_MAX + 8)

/* Fill in ds->field; the types of the tables must be known. 0 or -ENOMEM. */
int kaldi_fields_init(struct dataset *ds, const struct format_setup *setup);

/* The contents of a cell: the arrays of its type, then: */
enum {
    SAMPLE_RATE = KALDI_ARRAYS_MAX,
    AS_PLACE, /* of an archive: a line of its scp file */
    AS_BYTES, /* and the ways of enum kaldi_bytes from here on */
    N_CONTENTS = AS_BYTES + N_KALDI_BYTES,
};
extern const struct record_ops kaldi_content_ops;

/* The entry of a place is as stored. */
static inline enum kaldi_bytes kaldi_content_way(const struct record_content *c)
{
    return c->what == AS_PLACE ? KALDI_AS_ENTRY : (enum kaldi_bytes)(c->what - AS_BYTES);
}

/* Complete the fields once the rows are known. 0 or -ENOMEM. */
int kaldi_fields_finish(struct dataset *ds);

/* Archives and their scp files (format/kaldi/set/entries.c). */
extern const struct field_ops kaldi_entries_ops;

/* Add which rows the tables of a set have, in which files. */
void kaldi_set_identify(const struct kaldi_set *set, struct text *t);

/* The same: identity() of struct dataset_ops. */
int kaldi_set_identity(const struct dataset *ds, struct text *t);

/* ---- audio.c: the arrays of recordings. 0 or -ENOMEM ---- */

int kaldi_audio_init(struct dataset *ds, const struct format_setup *setup);

#endif
