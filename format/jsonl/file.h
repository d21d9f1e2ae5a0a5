/* A file of JSON lines, and the index of its samples: the lines that are not empty. */
#ifndef EPOCHFS_FORMAT_JSONL_FILE_H
#define EPOCHFS_FORMAT_JSONL_FILE_H

#include "format/records/record_file.h"
#include "format/text/lines.h"

#define JSONL_BOM 3 /* bytes of the mark that a file may begin with */

/* Numbers of a row: where the line begins, and its bytes without the line end. */
enum { LINE_AT, LINE_BYTES, LINE_NUMBERS };

struct jsonl_file {
    struct record_file base;
    uint64_t covered;  /* bytes of the file that are in samples, or LF behind one */
    bool ends_with_cr; /* the last line has no LF, but CR: it counts as one there */

    /* While the index is made: */
    uint64_t at;              /* of the next byte to look at */
    uint64_t line;            /* where the line begins that has it */
    bool has_text;            /* it has a byte that is no space */
    uint8_t last;             /* the byte before */
    uint8_t *piece;           /* read at once */
    struct text_masks *masks; /* of it */
};

static inline bool jsonl_is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

extern const struct record_file_ops jsonl_file_ops;

extern const struct format format_jsonl;

/* Is each line an object of JSON? 0; or -EBADMSG with the first that is none in d, or another
 * -errno. */
int jsonl_check(void *file, struct diag *d);

#endif
