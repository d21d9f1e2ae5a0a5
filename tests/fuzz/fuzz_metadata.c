/* Bytes as a row of a table of metadata, the first byte says of which kind: whatever it is, cells
 * are texts as long as they say, and numbers are written as they are. */
#include <errno.h>
#include <string.h>

#include "base/diag.h"
#include "format/rows/row.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    enum table_format format = len && data[0] & 1 ? TABLE_CSV : TABLE_JSONL;
    AUTO_FREE char *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    AUTO_ROW struct row row = {0};
    struct diag d = DIAG_INIT;
    size_t sum = 0;
    int r;

    if (!len--)
        return 0;
    if (len)
        memcpy(bytes, data + 1, len);
    r = row_parse(&row, format, bytes, len, "row", &d);
    FUZZ_CHECK(r == 0 || r == -ENOMEM || (r == -EBADMSG && d.set));
    FUZZ_CHECK(r < 0 || format == TABLE_JSONL || row.n);
    fuzz_saw(&r, sizeof(r));
    for (size_t i = 0; i < row.n && r == 0; i++) {
        const struct row_cell *cell = &row.cell[i];

        FUZZ_CHECK((format == TABLE_JSONL) == (cell->name != NULL));
        fuzz_saw(cell->text, cell->type != CELL_NONE ? cell->len : 0);
        for (size_t k = 0; cell->type != CELL_NONE && k < cell->len; k++)
            sum += (unsigned char)cell->text[k];
        FUZZ_CHECK(cell->type == CELL_NONE || format == TABLE_JSONL || cell->len <= len);
    }
    FUZZ_CHECK(sum < SIZE_MAX);
    return 0;
}
