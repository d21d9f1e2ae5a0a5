/* What the files of a table share. table.c (its states, its rows) calls table_type.c (the type of
 * its objects) and pass.c (the pass over a table without an index), which calls archive.c and
 * script.c (the next row), and those pass_rows.c (what is known of a row). */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_TABLE_PARTS_H
#define EPOCHFS_FORMAT_KALDI_TABLE_TABLE_PARTS_H

#include "format/core/numbered.h"
#include "format/kaldi/table/scp.h"
#include "format/kaldi/table/table.h"

/* ---- rows in the index ---- */

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

/* ---- the pass; one thread ---- */

#define LINES_AHEAD 32 /* lines of an scp file that the pass reads ahead */

/* A line of an scp file, read ahead. */
struct kaldi_line {
    char *text; /* owned; NULL: none */
    uint64_t number;
    struct scp_line parsed;
    const char *wrong;
    struct opener_run *run;
};

struct kaldi_pass {
    struct kaldi_table *table;
    size_t part;         /* which of the table's own files is read */
    struct kaldi_in in;  /* on it */
    uint64_t at, before; /* before: bytes of the files before it */
    unsigned nuls;       /* that may precede the next key */
    uint64_t lines;      /* of an scp file, so far */
    uint64_t empty_line; /* number of the first line without text; 0: none so far */
    bool ended;

    struct kaldi_in object; /* of the file that the last line named */
    struct numbered paths;  /* of the files that lines name, in the order of table->file */
    struct kaldi_line ahead[LINES_AHEAD]; /* a ring: n_ahead lines, from first_ahead on */
    unsigned first_ahead, n_ahead;

    uint8_t last[KEY_MAX]; /* key */
    size_t last_len;
    uint64_t rows, good;
    unsigned reported_order, reported_bad;
};

int kaldi_pass_new(struct kaldi_table *table, struct kaldi_pass **ret); /* 0 or -ENOMEM */
void kaldi_pass_free(struct kaldi_pass *pass);                          /* takes NULL */

/* Go a piece further. 1: finished; the rows are in the builder, and table->file, totals and
 * notes are filled in. 0: not yet; -errno with the reason in d. */
int kaldi_pass_step(struct kaldi_pass *pass, struct diag *d);

/* Add rows to the table, and notes about it. 0 or -ENOMEM. reason: why the object of a bad row
 * cannot be read; kaldi=p leaves that row out. file of a bad row: 0, or that all of which should be
 * the object, for raw. range: the rows and columns that count, if flags
 * have WHAT_CUT. */
int kaldi_add_bad_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, size_t file,
                      const char *reason);
int kaldi_add_good_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, size_t file,
                       const struct kaldi_object *object, unsigned flags, const uint64_t *range);
void kaldi_note(struct kaldi_table *table, unsigned *reported, const char *text);

/* Take the next row of an archive, or of an scp file (-EAGAIN: a command still runs). 0 or -errno;
 * after an error of a read the next call reads the row again. */
int kaldi_archive_row(struct kaldi_pass *pass, struct diag *d);
int kaldi_single_row(struct kaldi_pass *pass, struct diag *d);
int kaldi_script_row(struct kaldi_pass *pass, struct diag *d);

void kaldi_line_release(struct kaldi_pass *pass, struct kaldi_line *line);

/* ---- table_type.c ---- */

/* Find out the type, unless it is known, and check that the table leads to an object of that type.
 * 0; -EBADMSG or another -errno with the reason in d. */
int kaldi_find_type(struct kaldi_table *table, struct diag *d);

/* Kaldi reads an scp file no further than a line without key or value: the lines after it would be
 * lost without a word, so that is an error, but with kaldi=p the line is omitted. Blank lines at
 * the end lose none. number: of the line; *empty_line: that of the first blank line, 0: there was
 * none. 0; 1: it is to be skipped; or -EBADMSG with the reason in d. */
int kaldi_check_line(const struct kaldi_table *table, const struct blob *blob, uint64_t number,
                     const struct scp_line *line, const char *wrong, uint64_t *empty_line,
                     struct diag *d);

#endif
