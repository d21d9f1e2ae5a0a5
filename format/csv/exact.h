/* Numbers of a table that are rounded: float32 holds whole numbers up to 2^24, float64 up to 2^53.
 * A pass looks at each line, and says in a note which columns have some. */
#ifndef EPOCHFS_FORMAT_CSV_EXACT_H
#define EPOCHFS_FORMAT_CSV_EXACT_H

#include "format/core/rounded.h"
#include "format/csv/file.h"

#define CSV_EXACT_LEN ROUNDED_LEN

/* Columns with rounded numbers of a kind, and the first such number. */
struct csv_rounded {
    size_t columns, column;
    uint64_t line;
    char text[41];
};

struct csv_exact {
    uint8_t *seen;   /* [columns] a bit for each kind that is not looked for any longer; owned */
    uint16_t *exact; /* [columns] fractions of many digits that were exact; owned */
    size_t open;     /* columns where numbers of many digits are looked for */
    struct csv_rounded whole, digits; /* whole numbers; numbers of more digits than are kept */
};

/* 0 or -ENOMEM. */
int csv_exact_init(struct csv_exact *exact, const struct csv_file *file);
void csv_exact_release(struct csv_exact *exact);

/* Look at the cells of a line that can be read. CSV_EXACT_LEN readable bytes follow it. */
void csv_exact_see(struct csv_exact *exact, const struct csv_file *file, uint64_t line,
                   const uint8_t *text, size_t len);

/* Add a line for people for each kind that was seen. */
void csv_exact_note(const struct csv_exact *exact, const struct csv_file *file, struct text *t);

#endif
