/* A Kaldi table: rows of a key and an object, in an archive or named by an scp file.
 *
 *     new      -> ready     the index was kept by an earlier mount
 *     new      -> indexing  else
 *     indexing -> ready     the pass is through; the index is kept, or stays in memory
 *     any      -> failed    for good
 *
 * It is prepared step by step, by one thread; once it is ready it is constant, and any thread may
 * read it. */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_TABLE_H
#define EPOCHFS_FORMAT_KALDI_TABLE_TABLE_H

#include <stdatomic.h>

#include "base/text.h"
#include "format/core/format.h"
#include "format/core/key_index.h"
#include "format/kaldi/object/object.h"

enum kaldi_table_kind { KALDI_ARCHIVE, KALDI_SCRIPT };

/* A file that objects stand in. */
struct kaldi_file {
    char *path; /* as the scp file has it, a command with its '|'; owned. NULL: the table's own */
    struct blob *blob; /* owned, but the table's own */
    bool is_output;    /* of a command */
};

static inline bool kaldi_is_command(const char *path, size_t len)
{
    return len && path[len - 1] == '|';
}

/* A row. */
struct kaldi_row {
    const struct blob *blob;    /* where the object is; NULL: unknown, of a bad row */
    struct kaldi_object object; /* as it is stored; store KALDI_BAD: it cannot be read */
    bool is_whole;              /* it is all of its file */
    bool is_plain;              /* in front of it stand the key and one space */
    bool is_open;               /* text without a line's end */
    bool is_output;             /* a command has put out its file */
    bool is_cut;                /* only a part of it counts: */
    uint64_t first[2], n[2];    /* rows or elements, columns */
};

/* What all rows have in common. */
struct kaldi_totals {
    bool any_double; /* stored real numbers of 8 bytes */
    bool varies[2];  /* rows differ in dim[1], in dim[2] */
    uint64_t dim[2]; /* dim[1] and dim[2] of the first good one */
    uint64_t bad;    /* rows that cannot be read */
    uint64_t left_out;
    bool ends_early; /* what comes behind its last row cannot be read, and has no key */
    uint64_t hash;   /* of the identities of the files that an scp file names */
};

struct kaldi_table_setup {
    const char *name;   /* of the field */
    const char *folder; /* of the source, relative to it */
    enum kaldi_table_kind kind;
    enum kaldi_type type; /* KALDI_UNKNOWN: as the options say, or to be found out */
    const struct format_setup *format;
};

struct kaldi_table {
    char *name;
    char *folder;
    struct blob *blob; /* owned */
    enum kaldi_table_kind kind;
    enum kaldi_type type;
    const struct index_store *keep;
    const struct opener *opener;
    enum kaldi_type asked; /* for objects that do not say their type */
    bool permissive;       /* leave out what cannot be read */
    bool may_differ;       /* a file was not there, a command failed: the next mount looks again */
    bool sorted;           /* keys are said to be */

    /* Once it is ready: */
    struct key_index index;
    struct kaldi_totals totals;
    struct kaldi_file *file; /* [n_files]; [0] is the table's own */
    size_t n_files;
    struct text notes; /* what is not as it should be: lines */

    /* Its own, while it is prepared and after: */
    struct kaldi_pass *pass;
    struct key_index_builder *builder; /* owned; stays where the index could not be kept */
    struct kept_index kept;
    bool is_ready;
    int failed;
    struct diag reason;
    _Atomic uint64_t seen; /* bytes; any thread may look */
};

/* Takes blob over, also on error. Finds out the type from the first objects. 0; -EBADMSG and others
 * with the reason in d: it cannot be read at all. */
int kaldi_table_new(struct blob *blob, const struct kaldi_table_setup *setup,
                    struct kaldi_table **ret, struct diag *d);
void kaldi_table_free(struct kaldi_table *table); /* takes NULL */

/* 1: ready, 0: not yet, or -errno with the reason in d, each time from then on; but after
 * -EREMOTEIO or -EINTR, which say nothing of the files, the next call goes on. */
int kaldi_table_prepare(struct kaldi_table *table, struct diag *d);

void kaldi_table_row(const struct kaldi_table *table, uint64_t row, struct kaldi_row *ret);

/* Fill d with the reason why a bad row cannot be read; returns -EBADMSG. */
int kaldi_table_fault(const struct kaldi_table *table, uint64_t row, struct diag *d);

/* A text that differs where the rows may: for what is derived from them. The caller frees it. */
int kaldi_table_identity(const struct kaldi_table *table, char **ret);

/* ---- finding out the type (format/kaldi/table/sniff.c) ---- */

/* The type that the first object of an archive says itself; else asked, if that is known; else the
 * one type under which the objects can be read, of text the most specific one. 0, or -EBADMSG with
 * the reason in d. */
int kaldi_sniff_archive(const struct blob *blob, enum kaldi_type asked, enum kaldi_type *ret,
                        struct diag *d);

/* The same of the object at byte at of a file: of an archive if at > 0. */
int kaldi_sniff_object(const struct blob *blob, uint64_t at, enum kaldi_type asked,
                       enum kaldi_type *ret, struct diag *d);

/* The next key of an archive from *at on; behind it *at is where its object begins. 1, 0: there is
 * no more, -EBADMSG with the reason in d, or -errno. *ret_plain: a space stands between. The key is
 * in ret_key: *ret_len bytes. nuls: that many NUL bytes in front are skipped, if they are there
 * (an empty compressed matrix leaves 4 behind it: compressed-matrix.cc, Write). */
int kaldi_next_key(struct kaldi_in *in, uint64_t *at, unsigned nuls,
                   uint8_t ret_key[static KEY_MAX], size_t *ret_len, bool *ret_plain,
                   struct diag *d);

#endif
