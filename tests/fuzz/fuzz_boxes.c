/* Bytes as a file of boxes, the first byte says of which format: rows are complete, numbers finite,
 * and the number of each class has a name, if there are names. A file gives the same row twice. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/real.h"
#include "format/annotations/boxes.h"
#include "fuzz.h"

static void check_numbers(const struct value_column *c, const struct box_classes *classes,
                          bool has_names)
{
    for (size_t at = 0; c->dtype == DTYPE_F4 && at < c->len; at += 4)
        FUZZ_CHECK(isfinite(f4_of_bits(load_le32(c->bytes + at))));
    for (size_t at = 0; !strcmp(c->name, "box_label") && at < c->len; at += 8) {
        uint64_t label = load_le64(c->bytes + at);

        FUZZ_CHECK(has_names ? label < classes->n : label <= INT64_MAX);
    }
}

static void check_columns(const struct value_columns *columns, const struct box_classes *classes,
                          bool has_names)
{
    for (unsigned i = 0; i < columns->n; i++) {
        const struct value_column *c = &columns->column[i];
        const uint8_t *row[3];
        uint64_t n[3];

        FUZZ_CHECK(c->rows == 3 && c->end[2] == columns->column[0].end[2]);
        for (uint64_t k = 0; k < 3; k++)
            n[k] = value_items(c, k, &row[k]);
        FUZZ_CHECK(n[0] == n[2] && !n[1]);
        fuzz_saw(c->name, strlen(c->name));
        fuzz_saw(row[0], n[0] * value_item_bytes(c));
        FUZZ_CHECK(!n[0] || !memcmp(row[0], row[2], n[0] * value_item_bytes(c)));
        check_numbers(c, classes, has_names);
    }
    for (size_t i = 0; i < classes->n; i++)
        fuzz_saw(classes->item[i].name, strlen(classes->item[i].name));
    for (size_t i = 0; i < classes->n; i++)
        FUZZ_CHECK(classes->item[i].number == i &&
                   (!i || strcmp(classes->item[i - 1].name, classes->item[i].name) < 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct box_format *format = box_formats[len ? data[0] % 3 : 0];
    AUTO_FREE uint8_t *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    AUTO_BOX_READER struct box_reader *reader = NULL;
    AUTO_VALUE_COLUMNS struct value_columns columns = {0};
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    AUTO_TEXT struct text note = {0};
    struct diag d = DIAG_INIT;
    int r = box_reader_new(format, &reader);

    if (!len-- || r < 0)
        return 0;
    memcpy(bytes, data + 1, len);
    box_format_says(format, bytes, len, true);
    box_format_says(format, bytes, len, false);
    for (int i = 0; i < 3 && r == 0; i++)
        r = box_reader_add(reader, i == 1 ? NULL : bytes, len, "file", &d);
    FUZZ_CHECK(r == 0 || r == -ENOMEM || (r == -EBADMSG && d.set));
    fuzz_saw(&r, sizeof(r));
    if (r == 0)
        r = box_reader_finish(reader, &columns, &classes, &note);
    if (r == 0)
        check_columns(&columns, &classes, format->names_classes);
    return 0;
}
