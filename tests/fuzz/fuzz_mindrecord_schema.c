/* Bytes as the JSON of a header of MindRecord. What is taken has pages inside 2^63 bytes, whose
 * rows follow each other, and fields of blobs before all others. */
#include <errno.h>
#include <string.h>

#include "format/mindrecord/file.h"
#include "fuzz.h"
#include "saw.h"

static void check_pages(const struct mindrecord_header *header)
{
    uint64_t row = 0;

    for (size_t i = 0; i < header->n_pages; i++) {
        const struct mindrecord_page *page = &header->page[i];

        FUZZ_CHECK(page->start == row && page->end >= row);
        fuzz_saw(&page->at, sizeof(page->at));
        fuzz_saw(&page->used, sizeof(page->used));
        fuzz_saw(&page->raw_at, sizeof(page->raw_at));
        fuzz_saw(&page->raw_end, sizeof(page->raw_end));
        fuzz_saw(&page->end, sizeof(page->end));
        FUZZ_CHECK(page->end - row <= page->used / MINDRECORD_LENGTH);
        FUZZ_CHECK(page->at <= INT64_MAX && page->used <= INT64_MAX - page->at);
        FUZZ_CHECK(page->raw_at <= page->raw_end && page->raw_end <= INT64_MAX);
        row = page->end;
    }
    FUZZ_CHECK(row == header->rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct mindrecord_header header = {0};
    struct diag d = DIAG_INIT;
    int r = mindrecord_header_parse((const char *)data, len, "x", 100000, &header, &d);

    FUZZ_CHECK(r == 0 || (r == -EBADMSG && d.set && !header.field && !header.page));
    fuzz_saw(&r, sizeof(r));
    saw_numbers(d.text);
    if (r < 0)
        return 0;
    FUZZ_CHECK(header.n_fields && header.n_fields <= MINDRECORD_FIELDS && header.set);
    FUZZ_CHECK(header.shard < header.n_shards && header.n_shards <= MINDRECORD_SHARDS);
    for (unsigned i = 0; i < header.n_fields; i++) {
        FUZZ_CHECK((i < header.n_blobs) == (header.field[i].type < TYPE_TEXT));
        FUZZ_CHECK(*header.field[i].name && header.field[i].ndim <= RECORD_AXES);
        fuzz_saw(header.field[i].name, strlen(header.field[i].name));
        fuzz_saw(&header.field[i].type, sizeof(header.field[i].type));
        fuzz_saw(header.field[i].dim, header.field[i].ndim * sizeof(header.field[i].dim[0]));
    }
    check_pages(&header);
    mindrecord_header_release(&header);
    return 0;
}
