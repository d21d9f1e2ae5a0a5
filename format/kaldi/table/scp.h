/* Lines of scp files: a key and where its object is (util/kaldi-table-inl.h, util/kaldi-io.cc,
 * util/kaldi-holder.cc). */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_SCP_H
#define EPOCHFS_FORMAT_KALDI_TABLE_SCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scp_kind {
    SCP_FILE,    /* all of a file */
    SCP_OFFSET,  /* of a file, from offset on */
    SCP_COMMAND, /* what a shell command puts out; path without the '|' */
};

/* Rows and columns that a line asks for, both ends included; 0 .. UINT64_MAX: all. */
struct scp_range {
    bool is_given;
    bool has_columns;
    uint64_t row[2], column[2];
};

/* Pieces of the line, which they point into. */
struct scp_line {
    const char *key;
    size_t key_len;
    enum scp_kind kind;
    const char *path;
    size_t path_len;
    uint64_t offset;
    struct scp_range range;
    bool ends_table; /* of a bad line: Kaldi reads no further */
};

/* Take a line, without its end, apart. NULL, or what is wrong with it: "want ..., found ..."; then
 * only the key is there, if the line has one, and ends_table. */
const char *scp_line_parse(const char *line, size_t len, struct scp_line *ret);

/* The rows of an object of so many that a range leaves: first and number. Kaldi lets the last row
 * be up to 2 behind the end. NULL, or what is wrong. */
const char *scp_range_rows(const struct scp_range *range, uint64_t rows, uint64_t *ret_first,
                           uint64_t *ret_n);
const char *scp_range_columns(const struct scp_range *range, uint64_t columns, uint64_t *ret_first,
                              uint64_t *ret_n);

#endif
