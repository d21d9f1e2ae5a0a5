/* Arrays that are costly to make from the bytes of a record's file: decoded pictures and audio.
 * What makes them says how (struct record_maker); that they are remembered, kept between
 * mounts, and made in several threads, and what becomes of those that cannot be made, does not
 * depend on that. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_MADE_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_MADE_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/pool.h"
#include "format/core/format.h"
#include "format/records/record_set.h"

#define RECORD_MADE_SOURCES 8 /* contents that the files of a dataset's arrays are in, at most */

struct record_made;

/* The file of a record. */
struct record_made_file {
    const char *where;    /* in messages */
    const uint8_t *bytes; /* NULL: make() reads them, for */
    size_t len;
    struct read_context *rc;
};

struct record_maker {
    const char *one, *many; /* "picture", "pictures" */
    uint64_t most_bytes;    /* of a file */
    /* The axes of the array of a record that has a file: see dims() of struct record_ops. */
    int (*dims)(const struct record_made *m, const struct dataset *ds, uint64_t record,
                uint64_t ret_dim[static RECORD_AXES], struct diag *d);
    /* Does make() read the file itself, as it needs few of its bytes? NULL: of none. */
    bool (*reads)(const struct record_made *m, uint64_t record);
    /* Make the array. 0; -EBADMSG, -EFBIG, -EOPNOTSUPP: the file is bad, for good, with the reason
     * in d; or another -errno. *ret_what: see struct made. */
    int (*make)(const struct record_made *m, uint64_t record, const struct record_made_file *file,
                uint8_t *ret, unsigned *ret_what, struct diag *d);
    /* Add which arrays these are: what they depend on besides the records. */
    void (*name)(const struct record_made *m, struct text *t);
    /* Arrays are kept as units of one size: the first of a record; its last one ends before that of
     * the next, and has zeros at its end. NULL: a record is a unit. */
    uint64_t (*unit)(const struct record_made *m, uint64_t record);
};

struct record_made_array {
    struct record_content content; /* first: fields have its address */
    struct record_made *made;
};

/* The first member of what makes them. Set by it: up to n. */
struct record_made {
    const struct record_maker *maker;
    struct memo *memo;
    struct pool *pool;
    struct made_counts *counts; /* may be NULL */
    struct made_store *store;   /* NULL: none are kept */
    uint64_t unit_bytes;        /* of the store */
    /* Add a text that differs wherever a record of the dataset may differ. 0 or -errno. */
    int (*identity)(const struct dataset *ds, struct text *t);
    const struct record_content *source[RECORD_MADE_SOURCES]; /* [n] the first that it has counts */
    unsigned n;

    struct record_content like;      /* type and axes of the arrays */
    bool fills;                      /* batches have filled, not strict */
    struct record_made_array strict; /* fails where the file is bad */
    struct record_made_array filled; /* is zeros there */
    struct record_made_array ok;     /* false there */
    struct lock lock;
    _Atomic bool keeps;               /* false: nothing is kept, or it cannot be opened */
    _Atomic(struct made_file *) kept; /* opened at first use */
};

/* What the memo keeps. */
struct made {
    bool is_bad;
    unsigned what;   /* the maker's, of an array that is not bad */
    uint8_t bytes[]; /* the array; or why it is bad, as text */
};

static inline struct record_made *record_made_of(const struct record_content *c)
{
    return ((const struct record_made_array *)c)->made;
}

/* Which of n columns have such files: those of bytes with an extension that is_ext() knows; where
 * there is none, the first whose extension ends in one, such as "left.jpg". Returns their number.
 */
unsigned record_made_find(const struct record_column *column, unsigned n,
                          bool (*is_ext)(const char *ext),
                          unsigned ret[static RECORD_MADE_SOURCES]);

void record_made_init(struct record_made *m, const struct format_setup *setup);
void record_made_release(struct record_made *m);

/* A content that shows the arrays: dtype and axes. bytes: of an array, about. */
void record_made_content(struct record_made *m, struct record_made_array *array,
                         const struct record_content *like, uint64_t bytes);

/* Add the fields of the arrays, strict and, where the user wants that, filled. */
void record_made_add(struct dataset *ds, struct record_made *m, const struct record_content *like,
                     uint64_t bytes, const char *name);

/* The content that has a record's file, or NULL. */
const struct record_content *record_made_source(const struct record_made *m,
                                                const struct dataset *ds, uint64_t record);

/* Name the record in messages, by that content of it. */
void record_made_name(const struct dataset *ds, const struct record_content *source,
                      uint64_t record, char ret[static RECORD_WHERE]);

/* Read a record's file: *ret is the caller's. ret: NULL: only its length is wanted. source: NULL:
 * it has none, and *ret_len is 0. */
int record_made_read_file(struct read_context *rc, const struct dataset *ds,
                          const struct record_maker *maker, const struct record_content *source,
                          uint64_t record, uint8_t **ret, size_t *ret_len, struct diag *d);

/* The caller lets go of *ret, a struct made. */
int record_made_get(struct read_context *rc, const struct dataset *ds,
                    const struct record_content *c, uint64_t record, struct memo_thing **ret,
                    struct diag *d);

/* For arrays whose size only the array says: keep one, and read a unit of it. false: it is not
 * kept, or not of the file as it is now. */
void record_made_keep(struct record_made *m, const struct dataset *ds, uint64_t record,
                      const uint8_t *bytes, size_t size);
bool record_made_read_unit(struct read_context *rc, const struct dataset *ds, struct record_made *m,
                           uint64_t record, uint64_t k, uint8_t *ret);

/* For tables of struct record_ops of other contents of m. */
bool record_made_has(const struct dataset *ds, const struct record_content *c, uint64_t record);
bool record_made_extent(const struct dataset *ds, const struct record_content *c, uint64_t record,
                        struct extent *ret);
void record_made_where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                       char ret[static RECORD_WHERE]);
bool record_made_is_made(const struct dataset *ds, const struct record_content *c, uint64_t record);
int record_made_make(struct read_context *rc, const struct dataset *ds,
                     const struct record_content *c, const uint64_t *record, unsigned n,
                     unsigned n_needed);

void record_made_count(_Atomic uint64_t *counter);

#endif
