/* A Kaldi table: rows, each a key and an object, in an archive or named by an scp file.
 *
 * One thread prepares it step by step; once ready it is constant, and any thread may read it. */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_TABLE_H
#define EPOCHFS_FORMAT_KALDI_TABLE_TABLE_H

#include "base/text.h"
#include "format/kaldi/object/object.h"
#include "format/records/record_file.h"

enum kaldi_layout {
    KALDI_ARCHIVE,
    KALDI_SCRIPT,
    KALDI_SINGLE, /* one object without a key, which is the name of the file */
};

/* A file that holds objects. */
struct kaldi_file {
    char *path; /* as in the scp file, a command with its '|'; owned. NULL: the table's own */
    struct blob *blob; /* owned, except the table's own; NULL: of a command that failed, */
    char *reason;      /* for that reason; owned */
    bool is_output;    /* of a command */
};

static inline bool kaldi_is_command(const char *path, size_t len)
{
    return len && path[len - 1] == '|';
}

/* A row of a table. */
struct kaldi_row {
    const struct blob *blob;    /* holds the object; NULL: unknown, in a bad row */
    struct kaldi_object object; /* as stored; store KALDI_BAD: it cannot be read */
    bool is_whole;              /* the object is all of its file */
    bool is_plain;              /* the key and one space precede it */
    bool is_open;               /* text without the end of its line */
    bool is_output;             /* its file is the output of a command */
    bool is_cut;                /* only this part of it counts: */
    uint64_t first[2], n[2];    /* rows or elements, columns */
};

/* Totals over all rows. */
struct kaldi_totals {
    bool any_double; /* some real number is stored in 8 bytes */
    bool varies[2];  /* rows differ in dim[1], in dim[2] */
    uint64_t dim[2]; /* dim[1] and dim[2] of the first good row */
    uint64_t bad;    /* rows that cannot be read */
    uint64_t left_out;
    bool ends_early; /* bytes after its last row cannot be read, and have no key */
    uint64_t hash;   /* of the identities of the files that an scp file names */
};

struct kaldi_table_setup {
    const char *name;   /* of the field */
    const char *folder; /* within the source, relative to it */
    enum kaldi_layout layout;
    enum kaldi_type type; /* KALDI_UNKNOWN: take it from the options, or find it out */
    const struct format_setup *format;
};

struct kaldi_table {
    struct record_file base;
    char *name;
    char *folder;
    enum kaldi_layout layout;
    enum kaldi_type type;
    struct kaldi_table **part; /* [n_parts] a table of several files: those of these tables, of */
    size_t n_parts;            /* which it is a user; owned */
    const struct opener *opener;
    enum kaldi_type asked; /* for objects that do not state their type, */
    bool asked_of_all;     /* as for those of all tables; then: */
    enum kaldi_type looks; /* what these would be without, if it is another */
    bool permissive;       /* omit rows that cannot be read */
    bool has_mark;         /* a byte order mark, which Kaldi takes for a part of the first key */
    bool sorted;           /* the user says that the keys are */

    /* Once it is ready: */
    struct kaldi_totals totals;
    struct kaldi_file *file; /* [n_files]; the table's own first */
    size_t n_files;
    struct text notes;   /* problems, one per line */
    struct text reasons; /* why rows cannot be read (format/index/reasons.h) */

    /* Private: */
    struct kaldi_pass *pass;
    unsigned renamed;     /* rows */
    struct text set_note; /* why it is in no set; the dataset shows it */
};

/* Takes ownership of blob, also on error. Finds out the type from the first objects. 0; -EBADMSG or
 * another -errno with the reason in d: the table cannot be read at all. */
int kaldi_table_new(struct blob *blob, const struct kaldi_table_setup *setup,
                    struct kaldi_table **ret, struct diag *d);

/* The table of all rows of n tables of one type and layout, archives or scp files, in their order.
 * 0 or -ENOMEM. */
int kaldi_table_join(struct kaldi_table *const *part, size_t n, const char *name,
                     const struct format_setup *format, struct kaldi_table **ret);

static inline size_t kaldi_own_files(const struct kaldi_table *table)
{
    return table->n_parts ? table->n_parts : 1;
}

void kaldi_table_row(const struct kaldi_table *table, uint64_t row, struct kaldi_row *ret);

/* Fill d with the reason why a bad row cannot be read; returns -EBADMSG. */
int kaldi_table_fault(const struct kaldi_table *table, uint64_t row, struct diag *d);

/* Add a text that identifies the rows: if they may differ, so does the text. Names data derived
 * from them. The table must be ready. */
void kaldi_table_identity(const struct kaldi_table *table, struct text *t);

/* ---- finding out the type (format/kaldi/table/sniff.c) ---- */

/* The type of the object at byte at, which is all of its file, or if at > 0 of its archive: the one
 * that it states itself; otherwise asked, if that is known; or the only type as which the objects
 * can be read, for text the most specific one. 0, or -EBADMSG with the reason in d. */
int kaldi_sniff(const struct blob *blob, uint64_t at, enum kaldi_type asked, enum kaldi_type *ret,
                struct diag *d);

/* Is what follows a key a lattice or another FST, as text or in binary? */
bool kaldi_is_fst(const uint8_t *object, size_t len);

/* The next key of an archive from *at on: *ret_len bytes in ret_key. Moves *at to the start of the
 * object. *ret_plain: a space separates key and object. 1, 0: no more keys, -EBADMSG with the
 * reason in d, or -errno. nuls: skip exactly that many NUL bytes first, if they are there (an empty
 * compressed matrix leaves 4 after it: compressed-matrix.cc, Write). */
int kaldi_next_key(struct kaldi_in *in, uint64_t *at, unsigned nuls,
                   uint8_t ret_key[static KEY_MAX], size_t *ret_len, bool *ret_plain,
                   struct diag *d);

#endif
