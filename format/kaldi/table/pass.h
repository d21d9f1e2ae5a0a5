/* The pass over a table that has no index yet. One thread. */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_PASS_H
#define EPOCHFS_FORMAT_KALDI_TABLE_PASS_H

#include "format/kaldi/table/table.h"

struct kaldi_pass;

int kaldi_pass_new(struct kaldi_table *table, struct kaldi_pass **ret); /* 0 or -ENOMEM */
void kaldi_pass_free(struct kaldi_pass *pass);                          /* takes NULL */

/* Go a piece further. 1: finished; the rows are in the builder, and table->file, totals and
 * notes are filled in. 0: not yet; -errno with the reason in d. */
int kaldi_pass_step(struct kaldi_pass *pass, struct diag *d);

/* The numbers of a row in the index. For a wave the second of COLUMN_FIRST is where its samples
 * begin in the object. */
enum {
    COLUMN_FILE,
    COLUMN_START,
    COLUMN_WHAT, /* store and flags */
    COLUMN_LEN,  /* minus kaldi_len_estimate() */
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

/* An estimate of the bytes of an object's values; the index stores its length as the difference
 * from that. */
uint64_t kaldi_len_estimate(enum kaldi_store store, const uint64_t dim[static KALDI_DIMS]);

/* A row that cannot be read, and the reason. */
#define KALDI_FAULTS 1000 /* that the pass remembers */
struct kaldi_fault {
    uint64_t row;
    char *text;
};

/* The faults of rows, in the rows' order; valid as long as the pass. Returns their number. */
size_t kaldi_pass_faults(const struct kaldi_pass *pass, const struct kaldi_fault **ret);

#endif
