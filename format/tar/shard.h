/* A shard: an archive, its samples as the rows of an index, and the fields that they have. */
#ifndef EPOCHFS_FORMAT_TAR_SHARD_H
#define EPOCHFS_FORMAT_TAR_SHARD_H

#include "format/records/member_values.h"
#include "format/records/record_set.h"

#define TAR_FIELDS_MAX 300 /* of a shard: others are omitted, and a note says so */

/* Columns of the index that every shard has; fields have more, see TAR_FIELD_... */
enum {
    TAR_AT,    /* the first header of the sample */
    TAR_FAULT, /* why the sample cannot be read: enum tar_fault */
    TAR_FIXED,
};

enum tar_fault { TAR_NO_FAULT, TAR_TWICE, TAR_IS_SPARSE, TAR_CUT, N_TAR_FAULTS };

/* For a field's numbers in the table of the shard, the one of its own: its first column of the
 * index, which has (place - TAR_AT) / 512, 0: the sample has it not; the next one has its size. */
#define TAR_FIELD_PLACE MEMBER_OWN

struct tar_pass;

struct tar_shard {
    struct record_file base;
    struct blob *hints; /* DALI's index, until the pass has read it; NULL: none is needed; owned */
    struct column_table table; /* its fields */
    /* Lines: what cannot be read of it, and what else a user has to know. */
    char *damage, *note;
    uint64_t faults;       /* samples that cannot be read */
    struct tar_pass *pass; /* while the index is made */

    /* What it shows, once it is prepared: */
    struct record_column *column; /* [n_columns] */
    struct member_column *shows;  /* [n_columns] */
};

extern const struct record_file_ops tar_shard_ops;

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

extern const struct format format_tar;

#endif
