/* Lines of scp files: a key, and where its object is (util/kaldi-table-inl.h, util/kaldi-io.cc,
 * util/kaldi-holder.cc). */
#ifndef EPOCHFS_FORMAT_KALDI_TABLE_SCP_H
#define EPOCHFS_FORMAT_KALDI_TABLE_SCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scp_place {
    SCP_FILE,    /* all of a file */
    SCP_OFFSET,  /* of a file, from offset on */
    SCP_COMMAND, /* the output of a shell command; path without the '|' */
};

/* The rows and columns that a line selects, both ends included; 0 .. UINT64_MAX: all. */
struct scp_range {
    bool is_given;
    bool has_columns;
    uint64_t row[2], column[2];
};

/* A parsed line; the pointers point into the line. */
struct scp_line {
    const char *text; /* the line without white space around it */
    size_t text_len;
    const char *key;
    size_t key_len;
    enum scp_place place;
    const char *path;
    size_t path_len;
    uint64_t offset;
    struct scp_range range;
    bool has_value; /* something follows the key, good or not */
};

/* Parse a line, without its end. NULL, or what is wrong with it: "expected ..., got ..."; then only
 * text and has_value are set, and the key if the line has one. */
const char *scp_line_parse(const char *line, size_t len, struct scp_line *ret);

/* What is wrong with a key of more than 1024 bytes. */
extern const char scp_long_key[];

/* The rows that a range selects from an object of that many rows: first and number. Like Kaldi,
 * allows a last row up to 2 past the end. NULL, or what is wrong. */
const char *scp_range_rows(const struct scp_range *range, uint64_t rows, uint64_t *ret_first,
                           uint64_t *ret_n);
const char *scp_range_columns(const struct scp_range *range, uint64_t columns, uint64_t *ret_first,
                              uint64_t *ret_n);

#endif
