/* Files that are a sequence of items, one for each sample of a selection: the walks that make any
 * range of such a file. For fields of records, and for formats with files of their own. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_ITEMS_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_ITEMS_H

#include "format/core/prefix_sums.h"
#include "format/core/sample_window.h"
#include "format/records/records.h"

/* The state of one call. */
struct record_items {
    struct read_context *rc;
    const struct dataset *ds;
    const struct field *field;
    const struct record_content *content; /* of the field; NULL: the keys, or a format's field */
    const struct selection *sel;
    struct diag *reason;  /* while sums are made */
    uint64_t extra;       /* what else the sums depend on */
    bool costly;          /* the sums: number() reads and computes */
    uint8_t pad;          /* what follows a padded item */
    sums_known_fn *known; /* the sums that the source knows; NULL: it does not */
    /* Read bytes from byte skip of the item at a place on, up to len of them, that a source holds
     * as they are, and those of items behind it that are neighbours there. *ret_n: how many, even
     * if they are missing; 0: none. Only record_items_read() asks. NULL: items one by one. */
    int (*run)(struct record_items *items, uint64_t place, uint64_t skip, size_t len, uint8_t *dst,
               size_t *ret_n, struct diag *d);
    bool ends; /* see record_items_read_runs() */

    /* For arrays: the axes behind the first, which are the same in the whole selection. */
    bool has_tail;
    uint64_t axis[RECORD_AXES]; /* [ndim], the first unused */
    uint64_t tail;              /* their product: elements per row of each array */
    bool differs;               /* they are not (record_axes.h): */
    uint64_t most[RECORD_AXES]; /* the largest of each axis */

    struct sample_window window; /* for record_items_sample() */
    uint64_t made, missing;      /* contents up to this place were made at once; are missing */
};

/* rc: NULL to learn a form, which reads nothing. The impl of the field is taken for its content:
 * for another field, the caller sets that to NULL. */
void record_items_init(struct record_items *items, struct read_context *rc,
                       const struct dataset *ds, const struct field *f,
                       const struct selection *sel);

/* The bytes of content c with those axes. */
uint64_t record_bytes(const struct record_content *c, const uint64_t *dim);

/* The axes of a content in the record of a sample. */
int record_dims(const struct record_items *items, uint64_t sample,
                uint64_t ret_dim[static RECORD_AXES], struct diag *d);

/* Have record_items_read() read contents together that their source has as they are, because one
 * read for each small content takes longer than its bytes. ends: an item is its content and pad. */
void record_items_read_runs(struct record_items *items, bool ends);

/* The sample at a place; quick for places in ascending order. */
uint64_t record_items_sample(struct record_items *items, uint64_t place);

/* Open the sums over what number() gives; its ctx is items, and each number() has sums of its own.
 * The caller closes *ret. */
int record_items_sums(struct record_items *items, sums_fn *number, struct sums *ret);

/* Write bytes [off, off + len) of one sample's item in the file. before: the sums before it; NULL
 * for items of one size. */
typedef int record_item_fn(struct record_items *items, uint64_t sample,
                           const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                           struct diag *d);

/* The content of a sample, and pad after it. */
record_item_fn record_padded_item;

/* Write bytes [off, off + len) of a file whose items differ in size; unit: bytes of each element
 * that number() counts. 0 or -errno with the reason in d. */
int record_items_read(struct record_items *items, sums_fn *number, uint64_t unit,
                      record_item_fn *item, uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* The same for items of one size, each bytes. */
int record_items_read_even(struct record_items *items, uint64_t each, record_item_fn *item,
                           uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* The same for a content that read_many() reads. */
int record_items_read_many(struct record_items *items, uint64_t each, uint64_t off, size_t len,
                           uint8_t *dst, struct diag *d);

/* The form of a file of bytes whose size number() gives. */
int record_items_form(struct record_items *items, sums_fn *number, struct form *ret);

#endif
