/* The pass over a table that has no index yet. One thread. */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_PASS_H
#define EPOCHFS_FORMAT_KALDI_TABLE_PASS_H

#include "format/kaldi/table/table.h"

struct kaldi_pass;

int kaldi_pass_new(struct kaldi_table *table, struct kaldi_pass **ret); /* 0 or -ENOMEM */
void kaldi_pass_free(struct kaldi_pass *pass);                          /* takes NULL */

/* A piece further. 1: through, and table->files, totals and notes are filled in, rows in
 * table->builder; 0: not yet; -errno with the reason in d. */
int kaldi_pass_step(struct kaldi_pass *pass, struct diag *d);

/* Of rows in the index: their numbers. Of a wave the second of COLUMN_FIRST is where its samples
 * begin in it. */
enum {
    COLUMN_FILE,
    COLUMN_START,
    COLUMN_WHAT, /* store and flags */
    COLUMN_LEN,  /* less what the dims say */
    COLUMN_DIM,  /* 3 of them */
    COLUMN_FIRST = COLUMN_DIM + KALDI_DIMS,
    COLUMN_N = COLUMN_FIRST + 2,
    KALDI_COLUMNS = COLUMN_N + 2,
};
enum {
    WHAT_STORE = 0xff,
    WHAT_WHOLE = 0x100,
    WHAT_PLAIN = 0x200,
    WHAT_CUT = 0x400,
    WHAT_OPEN = 0x800
};

/* Bytes that the values of an object take, about: what its length is measured against. */
uint64_t kaldi_len_estimate(enum kaldi_store store, const uint64_t dim[static KALDI_DIMS]);

/* A row that cannot be read, and why. */
#define KALDI_FAULTS 1000 /* that are remembered */
struct kaldi_fault {
    uint64_t row;
    char *text;
};

/* The faults of rows, in their order; as long as the pass. Returns how many. */
size_t kaldi_pass_faults(const struct kaldi_pass *pass, const struct kaldi_fault **ret);

#endif
