/* What a check finds in a file besides rows that cannot be read: labels that are no class,
 * JSON that is none, text that is not UTF-8. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/read_context.h"
#include "base/text.h"
#include "format/parquet/file.h"

#define JSON_MEMORY (UINT64_C(256) << 20) /* for a value, at most */

static bool parquet_is_text(const struct parquet_column *c)
{
    return c->shown == SHOWN_BYTES && c->as.shown == RECORD_TEXT && c->convert == CONVERT_COPY;
}

/* *ret: what is wrong with a value of a column; NULL: nothing that is looked for. 0 or -ENOMEM. */
static int parquet_check_value(const struct parquet_column *c, const uint8_t *bytes, size_t len,
                               const char **ret)
{
    json_t *json = NULL;
    int r = 0;

    *ret = NULL;
    if (c->classes && load_le64(bytes) >= json_array_size(c->classes))
        *ret = "values that are no number of a class";
    if (!c->classes && !text_is_utf8(bytes, len))
        *ret = "values that are not UTF-8";
    else if (c->as.ext)
        r = json_read_nul((const char *)bytes, len, "", min_u64(json_budget(len), JSON_MEMORY),
                          &json, NULL);
    json_free(&json);
    if (r == -EBADMSG)
        *ret = "values that are not JSON, or have numbers beyond 64 bits";
    else if (r == -EFBIG)
        *ret = "values that are too large to check";
    return r == -ENOMEM ? r : 0;
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
        const char *odd = NULL;

        if (!values_mark(&rows, i))
            r = parquet_check_value(c, bytes, len, &odd);
        if (odd && c->odd_rows && strcmp(odd, c->odd) != 0)
            c->odd = "values that are not JSON or not UTF-8";
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
        bool is_looked_at = c->classes || parquet_is_text(c);

        c->odd_rows = 0;
        for (uint64_t row = 0; is_looked_at && row < file->footer.rows && r == 0;) {
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
