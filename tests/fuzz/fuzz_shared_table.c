/* Bytes as the table of contents of `.epochfs/`: what is taken has names that lead nowhere else,
 * sums that are sums, no index larger than may be, and is found again by its name. */
#include <errno.h>
#include <string.h>

#include "base/diag.h"
#include "cache/source/shared_table.h"
#include "fuzz.h"

/* joined: the file that indexes are in, or no name. */
static void check_lines(const struct shared_line *line, size_t n, bool is_index,
                        const struct shared_line *joined)
{
    bool has_end = is_index && joined->name;
    uint64_t end = joined->size;

    for (size_t i = 0; i < n; i++) {
        FUZZ_CHECK(strlen(line[i].sum) == DIGEST_TEXT_SIZE - 1);
        FUZZ_CHECK(strspn(line[i].sum, "0123456789abcdef") == DIGEST_TEXT_SIZE - 1);
        FUZZ_CHECK(*line[i].name);
        fuzz_saw(line[i].name, strlen(line[i].name));
        fuzz_saw(line[i].version, strlen(line[i].version));
        fuzz_saw(&line[i].size, sizeof(line[i].size));
        FUZZ_CHECK(!has_end || (line[i].at <= end && line[i].size <= end - line[i].at));
        FUZZ_CHECK(strspn(line[i].version, "\t\n\r ") == 0);
        FUZZ_CHECK(!is_index ||
                   (line[i].size <= SHARED_INDEX_MOST && !strpbrk(line[i].name, "/.")));
        FUZZ_CHECK(!i || strcmp(line[i - 1].name, line[i].name) < 0);
        FUZZ_CHECK(shared_line_find(line, n, line[i].name) == &line[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO(shared_table_release) struct shared_table table = {0};
    struct diag d = DIAG_INIT;
    char *text = malloc(len + 1);
    int r;

    if (len)
        memcpy(text, data, len);
    text[len] = '\0';
    r = shared_table_read(text, len, &table, &d);
    FUZZ_CHECK(r == 0 || r == -ENOMEM || (r == -EBADMSG && d.set));
    fuzz_saw(&r, sizeof(r));
    if (r < 0)
        return 0;
    check_lines(table.file, table.n_files, false, &table.joined);
    check_lines(table.index, table.n_indexes, true, &table.joined);
    if (table.listing.name)
        check_lines(&table.listing, 1, true, &(struct shared_line){0});
    if (table.joined.name)
        check_lines(&table.joined, 1, true, &table.joined);
    return 0;
}
