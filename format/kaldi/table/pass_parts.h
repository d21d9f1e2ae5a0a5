/* What the files of the pass share: pass.c of this folder (its steps) calls archive.c and script.c
 * (the next row), which call pass_rows.c (what is known of a row). */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_PASS_PARTS_H
#define EPOCHFS_FORMAT_KALDI_TABLE_PASS_PARTS_H

#include "format/kaldi/table/pass.h"
#include "format/kaldi/table/scp.h"

#define LINES_AHEAD 32 /* lines of an scp file that the pass reads ahead */

/* A line of an scp file, read ahead. */
struct kaldi_line {
    char *text; /* owned; NULL: none */
    size_t len;
    uint64_t number;
    struct scp_line parsed;
    const char *wrong;
    struct opener_run *run;
};

/* A hash table of the files' paths. */
struct path_table {
    uint32_t *number; /* [capacity] of the file, + 1; 0: free */
    size_t capacity, used;
};

/* A command that has failed: it does not run again for another line. */
struct failed_command {
    uint64_t hash;
    char *command, *reason; /* owned */
};

struct kaldi_pass {
    struct kaldi_table *table;
    struct kaldi_in in; /* of the table's own file */
    uint64_t at;
    unsigned nuls;         /* that may precede the next key */
    uint64_t lines, blank; /* of an scp file, so far; the first without text, 0: none */
    bool ended;

    struct kaldi_in object; /* of the file that the last line named */
    size_t object_file;     /* its number; 0: none */
    struct path_table paths;
    struct kaldi_line ahead[LINES_AHEAD]; /* a ring: n_ahead lines, from first_ahead on */
    unsigned first_ahead, n_ahead;
    struct failed_command *failed; /* [n_failed] owned */
    size_t n_failed;

    uint8_t last[KEY_MAX]; /* key */
    size_t last_len;
    uint64_t rows, good;
    unsigned reported_order, reported_bad;
    struct kaldi_fault *fault; /* [n_faults] owned */
    size_t n_faults;
};

/* Add rows to the table, and notes about it. 0 or -ENOMEM. reason: why the object of a bad row
 * cannot be read; kaldi=p leaves that row out. range: the rows and columns that count, if flags
 * have WHAT_CUT. */
int kaldi_add_bad_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, const char *reason);
int kaldi_add_good_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, size_t file,
                       const struct kaldi_object *object, unsigned flags, const uint64_t *range);
void kaldi_note(struct kaldi_table *table, unsigned *reported, const char *text);

/* Take the next row of an archive, or of an scp file (-EAGAIN: a command still runs). 0 or -errno;
 * after an error of a read the next call reads the row again. */
int kaldi_archive_row(struct kaldi_pass *pass, struct diag *d);
int kaldi_script_row(struct kaldi_pass *pass, struct diag *d);

void kaldi_line_release(struct kaldi_pass *pass, struct kaldi_line *line);

#endif
