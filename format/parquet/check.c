/* What a check finds in a file besides rows that cannot be read: labels that are no class. */
#include <errno.h>

#include "base/bytes.h"
#include "base/read_context.h"
#include "format/parquet/file.h"

/* What is wrong with a value of a column; NULL: nothing that is looked for. */
static const char *parquet_check_value(const struct parquet_column *c, const uint8_t *bytes)
{
    return c->classes && load_le64(bytes) >= json_array_size(c->classes)
               ? "values that are no number of a class"
               : NULL;
}

/* Look at the rows of a unit. */
static int parquet_check_unit(struct parquet_column *c, const struct parquet_span *unit,
                              struct diag *d)
{
    AUTO_VALUES struct values rows = {0};
    int r = parquet_read_rows(READ_WAITS, unit, &rows, d);

    for (size_t i = 0; i < rows.n && r == 0; i++) {
        size_t len;
        const uint8_t *bytes = values_at(&rows, i, &len);
        const char *odd = values_mark(&rows, i) ? NULL : parquet_check_value(c, bytes);

        if (odd && !c->odd_rows++) {
            c->odd = odd;
            c->odd_row = unit->row + i;
        }
    }
    d->set = d->set && r < 0; /* a read of the rows reports their faults */
    return r;
}

int parquet_check(void *p, struct diag *d)
{
    struct parquet_file *file = p;
    int r = 0;

    for (unsigned i = 0; i < file->n_columns; i++) {
        struct parquet_column *c = &file->column[i];

        c->odd_rows = 0;
        for (uint64_t row = 0; c->classes && row < file->footer.rows && r == 0;) {
            struct parquet_span unit;

            parquet_unit_find(&(struct record_cell){file, row, i}, &unit);
            r = parquet_check_unit(c, &unit, d);
            row = unit.row + unit.rows;
        }
    }
    return r;
}

void parquet_checked(const void *p, struct text *t)
{
    const struct parquet_file *file = p;

    for (unsigned i = 0; i < file->n_columns; i++)
        if (file->column[i].odd_rows)
            text_add(t, "%s: column '%s': %s: %llu, the first in row %llu\n",
                     blob_name(file->base.blob), file->column[i].name, file->column[i].odd,
                     (unsigned long long)file->column[i].odd_rows,
                     (unsigned long long)file->column[i].odd_row);
}
