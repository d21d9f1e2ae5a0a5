/* Bytes as a table that names pictures, the first byte says of which sort: whatever it is, each
 * column has a row for each of the table, or for each picture, and a refusal has a reason. */
#include <errno.h>
#include <string.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/json.h"
#include "format/annotations/celeba.h"
#include "format/annotations/table.h"
#include "fuzz.h"
#include "support/memory_blob.h"
#include "support/picture_list.h"

#define PICTURES   "a.jpg b/1.jpg b/2.jpg c/1.jpg 000001.jpg "
#define N_PICTURES 5

static void check_columns(const struct value_columns *columns, uint64_t rows)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < columns->n; i++) {
        const struct value_column *c = &columns->column[i];

        FUZZ_CHECK(c->rows == rows && *c->name);
        fuzz_saw(c->name, strlen(c->name));
        for (unsigned k = 0; k < i; k++)
            FUZZ_CHECK(strcmp(columns->column[k].name, c->name) != 0);
        for (uint64_t row = 0; row < rows; row++) {
            const uint8_t *items;
            uint64_t n = value_items(c, row, &items) * value_item_bytes(c);

            fuzz_saw(items, n);
            while (n)
                sum += items[--n];
        }
    }
    FUZZ_CHECK(sum < UINT64_MAX);
}

static void try_table(const struct blob *blob, const char *file, const struct picture_names *names,
                      const json_t *said)
{
    AUTO_PICTURE_TABLE struct picture_table *t = NULL;
    AUTO_TEXT struct text reason = {0};
    struct diag d = DIAG_INIT;
    size_t matched = 0;
    int r = picture_table_read(blob, file, names, said, &t, &reason, &d);

    FUZZ_CHECK(r == 0 || (r == -EDOM && reason.len) || (r == -EBADMSG && d.set));
    fuzz_saw(&r, sizeof(r));
    if (r < 0)
        return;
    check_columns(&t->columns, t->rows);
    for (size_t i = 0; i < t->rows; i++) {
        uint32_t picture = t->picture[i];

        FUZZ_CHECK(picture < N_PICTURES || picture == PICTURE_NONE);
        matched += picture != PICTURE_NONE;
    }
    FUZZ_CHECK(matched + t->unmatched == t->rows);
    FUZZ_CHECK(matched && (said || 2 * matched >= t->rows));
    FUZZ_CHECK(t->matched >= t->repeated);
}

static void try_celeba(const struct blob *blob, const char *file, enum celeba_list which,
                       const struct picture_names *names)
{
    AUTO_VALUE_COLUMNS struct value_columns columns = {0};
    AUTO_TEXT struct text attr_names = {0};
    struct diag d = DIAG_INIT;
    size_t unmatched;
    int r =
        celeba_read(blob, file, which, names, N_PICTURES, &columns, &unmatched, &attr_names, &d);

    FUZZ_CHECK((r == 0 && columns.n == 1) || ((r == -EBADMSG || r == -EDOM) && d.set));
    check_columns(&columns, N_PICTURES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const files[] = {"a.csv", "a.txt", "a.tsv"};
    static json_t *said; /* as a recipe says it */
    struct picture_list list = PICTURE_LIST(PICTURES);
    struct blob *blob;

    if (!len)
        return 0;
    if (!said)
        said = json_pack("{s:i,s:s,s:[i,s]}", "key", 0, "label", "label", "columns", 0, "label");
    FUZZ_CHECK(said);
    blob = memory_blob_new("table", data + 1, len - 1, len - 1, NULL);
    FUZZ_CHECK(blob);
    if (data[0] & 4)
        try_celeba(blob, files[data[0] & 1], (enum celeba_list)(data[0] / 8 % 6), &list.names);
    else
        try_table(blob, files[data[0] % 4 % 3], &list.names, data[0] & 8 ? said : NULL);
    blob_free(blob);
    return 0;
}
