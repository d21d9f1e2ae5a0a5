/* A shard: an archive, its samples as the rows of an index, and the fields that they have. */
#ifndef EPOCHFS_FORMAT_TAR_SHARD_H
#define EPOCHFS_FORMAT_TAR_SHARD_H

#include "format/core/format.h"
#include "format/index/prepared.h"
#include "format/records/column_table.h"
#include "format/records/record_set.h"

#define TAR_FIELDS_MAX 300 /* of a shard: others are left out, and a note says so */

/* Columns of the index that every shard has; fields have more, see TAR_FIELD_... */
enum {
    TAR_AT,    /* the first header of the sample */
    TAR_FAULT, /* why the sample cannot be read: enum tar_fault */
    TAR_FIXED,
};

enum tar_fault { TAR_NO_FAULT, TAR_TWICE, TAR_IS_SPARSE, TAR_CUT, N_TAR_FAULTS };

/* What is kept of a field in the table of the shard: its numbers. */
enum {
    TAR_FIELD_PLACE, /* its first column of the index: (place - TAR_AT) / 512, 0: the sample has it
                        not; the next one: its size */
    TAR_FIELD_VALUE, /* another column, 0: none yet. Of integers: the value; of arrays: the bytes of
                        the header with TAR_ARRAY_..., and in the next ones each axis */
    TAR_FIELD_SHOWN, /* enum tar_shown */
    TAR_FIELD_ROWS,  /* samples without a fault that have it */
    TAR_FIELD_TYPE,  /* of arrays: enum dtype, */
    TAR_FIELD_AXES,  /* how many, */
    TAR_FIELD_DIM,   /* and [RECORD_AXES] their sizes, DIM_VARIES where they differ */
};

enum tar_shown { TAR_SHOWN_BYTES, TAR_SHOWN_TEXT, TAR_SHOWN_INTEGER, TAR_SHOWN_ARRAY, N_TAR_SHOWN };

/* Beside the bytes of a header of .npy, which are shifted by TAR_ARRAY_SHIFT. */
enum { TAR_ARRAY_BIG_ENDIAN = 1, TAR_ARRAY_FORTRAN = 2, TAR_ARRAY_SHIFT = 2 };

struct tar_pass;

struct tar_shard {
    struct blob *blob;
    unsigned users;
    struct prepared prepared;  /* the index */
    struct column_table table; /* its fields */
    /* Lines: what cannot be read of it, and what else a user has to know. */
    char *damage, *note;
    uint64_t faults;       /* samples that cannot be read */
    struct tar_pass *pass; /* while the index is made */

    /* What it shows, once it is prepared: */
    struct record_column *column; /* [n_columns] */
    struct tar_column {
        unsigned field;       /* number in the table */
        enum tar_shown shown; /* its form in this column */
        char name[RECORD_NAME_MAX + 1], ext[RECORD_NAME_MAX + 1];
    } * shows; /* [n_columns] */
    unsigned n_columns;
};

/* Takes blob over, also on error. 0, or -errno with the reason in d. */
int tar_shard_open(struct blob *blob, const struct format_setup *setup, struct tar_shard **ret,
                   struct diag *d);
void tar_shard_drop(struct tar_shard *shard); /* one user less */

/* As prepare() of struct shard_ops. */
int tar_shard_prepare(struct tar_shard *shard, struct diag *d);

static inline uint64_t tar_field_number(const struct tar_shard *shard, unsigned field, unsigned i)
{
    return shard->table.column[field].number[i];
}

/* ---- the pass: pass.c ---- */

int tar_pass_new(struct tar_shard *shard, struct tar_pass **ret); /* 0 or -ENOMEM */
void tar_pass_free(struct tar_pass *pass);                        /* takes NULL */

/* As step() of struct prepared_ops: add samples for some milliseconds. */
int tar_pass_step(struct tar_pass *pass, struct diag *d);

/* At its end: add what cannot be read, and what else a user has to know, as lines. */
void tar_pass_damage(const struct tar_pass *pass, struct text *t);
void tar_pass_notes(const struct tar_pass *pass, const struct index *index, struct text *t);

/* Can the archive be a shard of samples, as far as its first FORMAT_HEAD bytes say? 0; -EBADMSG:
 * no, with the reason in d; or another -errno. */
int tar_judge_start(const struct blob *blob, struct diag *d);

/* ---- fields: fields.c ---- */

/* How a field of that extension is shown, if its contents allow it. */
enum tar_shown tar_shown_of(const char *ext, size_t len);

#define TAR_INTEGER_MAX 32 /* bytes of a member that is an integer */

/* A decimal integer, with white space around it. */
bool tar_integer_parse(const uint8_t *bytes, size_t len, int64_t *ret);

/* Make the columns of a prepared shard. 0 or -ENOMEM. */
int tar_columns_make(struct tar_shard *shard);

/* The functions of struct record_format; file is a struct tar_shard. */
bool tar_has(const void *file, uint64_t row, unsigned column);
int tar_dims(const void *file, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
             struct diag *d);
bool tar_extent(const void *file, uint64_t row, unsigned column, struct extent *ret);
int tar_read(struct read_context *rc, const void *file, uint64_t row, unsigned column, uint64_t off,
             size_t len, uint8_t *dst, struct diag *d);

#endif
