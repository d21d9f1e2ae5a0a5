/* Records: samples that differ in size, such as lines, objects or members of an archive. What each
 * of them holds are its *contents*: numbers, arrays, bytes, text.
 *
 * A format says of a content how large it is in a record, and gives its bytes. From that come all
 * the fields that files need: arrays stacked, one after another with offsets, padded with lengths;
 * text as lines and as elements of one width; bytes under an extension; and the sums that find them
 * in a file. Nothing here depends on a format. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORDS_H
#define EPOCHFS_FORMAT_RECORDS_RECORDS_H

#include "format/core/dataset.h"
#include "format/core/extents.h"

#define RECORD_AXES       8 /* of an array, at most */
#define RECORD_WHERE      1024
#define RECORD_MAKES      64 /* make_at_once, at most */
#define RECORD_MANY_BYTES 4096

struct record_content;
struct record_slabs;

struct record_ops {
    /* The sizes of the axes of a content in a record: [ndim], all set. Bytes and text have one
     * axis, their length. 0, or -errno with the reason in d: the record cannot be read. It never
     * reads a source. */
    int (*dims)(const struct dataset *ds, const struct record_content *c, uint64_t record,
                uint64_t ret_dim[static RECORD_AXES], struct diag *d);
    /* Write bytes [off, off + len) of the content, which lie inside its size; len > 0. 0 or -errno
     * with the reason in d. */
    int (*read)(struct read_context *rc, const struct dataset *ds, const struct record_content *c,
                uint64_t record, uint64_t off, size_t len, uint8_t *dst, struct diag *d);
    /* With reads_many: write the contents of the records at places [place, place + n) of a
     * selection, or of the first *ret_n of them, one after another. 0; or -errno, -EAGAIN by the
     * rule of missing_go_on() included. */
    int (*read_many)(struct read_context *rc, const struct dataset *ds,
                     const struct record_content *c, const struct selection *sel, uint64_t place,
                     unsigned n, unsigned *ret_n, uint8_t *dst, struct diag *d);
    /* The bytes of a source that read() needs; false: none. It never reads a source. NULL:
     * never any, or the dataset has its own extents(), locate(). */
    bool (*extent)(const struct dataset *ds, const struct record_content *c, uint64_t record,
                   struct extent *ret);
    /* Has a source the bytes of the content as they are, at *ret, and needs their read no look at
     * the record? NULL: never. */
    bool (*as_is)(const struct dataset *ds, const struct record_content *c, uint64_t record,
                  struct extent *ret);
    /* Name the record in messages: "<file>: row <n>". */
    void (*where)(const struct dataset *ds, const struct record_content *c, uint64_t record,
                  char ret[static RECORD_WHERE]);
    /* Look for faults of the content besides those that dims() has. 0, or -errno as read() has it.
     * NULL: reading all of it finds them. */
    int (*check)(struct read_context *rc, const struct dataset *ds, const struct record_content *c,
                 uint64_t record, struct diag *d);
    /* Has the record that content? NULL: each has. */
    bool (*has)(const struct dataset *ds, const struct record_content *c, uint64_t record);

    /* Contents that are costly to make, and are remembered for a while (see make_at_once): is it
     * made, so that read() is cheap? */
    bool (*is_made)(const struct dataset *ds, const struct record_content *c, uint64_t record);
    /* Make the contents of n records at once, or of fewer that are large, in the threads of a pool.
     * The first n_needed are to be read now; what is missing of the others is not noted. 0, or
     * -EAGAIN: bytes of the first n_needed are missing, and noted. Other errors are read()'s. */
    int (*make)(struct read_context *rc, const struct dataset *ds, const struct record_content *c,
                const uint64_t *record, unsigned n, unsigned n_needed);
};

/* Owned by the format. It is the impl of each field that shows it. */
struct record_content {
    const struct record_ops *ops;
    unsigned column, what; /* the format's */
    unsigned make_at_once; /* records whose contents are made together, at most; 0: none is made */
    bool is_parsed;        /* there may be faults in it: records_check() looks at it */
    bool is_number;        /* a number, or none, in each record: an axis that a record has not */
    bool pads_axes; /* where another axis than the first differs in a batch as well, arrays are
                       one all the same: see record_axes.h; otherwise -EDOM: it has no such file */
    const struct record_slabs *slabs; /* of FORM_ITEM: it is read with others; NULL: one by one */
    size_t slab_at;                   /* where it is in a record's bytes there */
    bool reads_many; /* of FORM_ITEM: read_many() reads it; it has RECORD_MANY_BYTES at most */

    /* Set before records_finish(): */
    enum dtype dtype;
    unsigned ndim;
    uint64_t dim[RECORD_AXES]; /* the same in all records, or DIM_VARIES */
};

/* ---- fields ----
 * All of these add to ds->field, which must have room. The name is that of the field, to which
 * arrays of differing length add "_len" and "_offsets". */

/* A number, or an array of one shape: batches stack it. 1 field. in: IN_... */
struct field *records_add_item(struct dataset *ds, const struct record_content *c, const char *name,
                               unsigned in);

/* An array whose first axis, at least, differs. 4 fields, with pads_axes 5. tar: IN_TAR, or 0: tar
 * has it not. */
void records_add_arrays(struct dataset *ds, const struct record_content *c, const char *name,
                        unsigned tar);

/* Bytes: a file for each sample, under that extension. 1 field. */
struct field *records_add_bytes(struct dataset *ds, const struct record_content *c,
                                const char *name, const char *folder, const char *ext, unsigned in);

/* The same bytes as members of npz: uint8 data with offsets. 2 fields. */
void records_add_byte_arrays(struct dataset *ds, const struct record_content *c, const char *name);

/* Text, as elements of npz; and as lines, in tar and the folder of that extension. 1 field each. */
void records_add_strings(struct dataset *ds, const struct record_content *c, const char *name);
struct field *records_add_lines(struct dataset *ds, const struct record_content *c,
                                const char *name, const char *ext);

/* index and key, and the keys as lines. 3 fields. */
void records_add_keys(struct dataset *ds);
#define RECORD_KEY_FIELDS 3

/* Complete the fields, and the number of samples: types and axes of contents are set, and ds->keys,
 * NULL for keys that are numbers. 0 or -ENOMEM. */
int records_finish(struct dataset *ds, uint64_t samples);

/* The content that a field of any dataset shows; NULL: it is none of records. */
const struct record_content *records_content_of(const struct field *f);

/* ---- what a dataset of records does: for struct dataset_ops ---- */

unsigned records_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                         struct extent *ret);
void records_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                    struct text *t);

/* Reads each content that is parsed, of each record; each fault is reported once for a record. */
int records_check(const struct dataset *ds, void (*report)(void *ctx, const char *text), void *ctx,
                  struct diag *d);

#endif
