/* Bytes as a line of an scp file. What is taken points into the line, keeps what the contract says
 * of it, and a range leaves rows and columns that the object has. */
#include <string.h>

#include "base/scope.h"
#include "format/kaldi/table/scp.h"
#include "fuzz.h"

/* A copy of that size, so that ASan sees a read behind it. */
static char *copy_of(const uint8_t *data, size_t len)
{
    char *copy = malloc(len ? len : 1);

    FUZZ_CHECK(copy);
    if (len)
        memcpy(copy, data, len);
    return copy;
}

static void check_message(const char *wrong)
{
    FUZZ_CHECK(!strncmp(wrong, "expected ", 5) && strstr(wrong, ", got "));
}

static void check_range(const struct scp_range *range)
{
    static const uint64_t sizes[] = {0, 1, 2, 3, 100, UINT64_C(1) << 31, UINT64_MAX - 1};

    FUZZ_CHECK(range->row[0] <= range->row[1] && range->column[0] <= range->column[1]);
    FUZZ_CHECK(range->is_given || !range->has_columns);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        uint64_t first, n;
        const char *wrong = scp_range_rows(range, sizes[i], &first, &n);

        if (wrong)
            check_message(wrong);
        else
            FUZZ_CHECK(first <= sizes[i] && n <= sizes[i] - first && (n || !sizes[i]));
        wrong = scp_range_columns(range, sizes[i], &first, &n);
        if (wrong)
            check_message(wrong);
        else
            FUZZ_CHECK(first <= sizes[i] && n <= sizes[i] - first && (n || !sizes[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *line = copy_of(data, len);
    struct scp_line found;
    const char *wrong = scp_line_parse(line, len, &found);

    if (wrong) {
        check_message(wrong);
        return 0;
    }
    FUZZ_CHECK(found.key >= line && found.key_len && found.key + found.key_len < found.path);
    fuzz_saw(found.key, found.key_len);
    fuzz_saw(found.path, found.path_len);
    fuzz_saw(&found.place, sizeof(found.place));
    fuzz_saw(&found.offset, sizeof(found.offset));
    FUZZ_CHECK(found.path_len && found.path + found.path_len <= line + len);
    FUZZ_CHECK(!memchr(found.path, '\0', found.path_len));
    FUZZ_CHECK(found.place == SCP_OFFSET || !found.offset);
    FUZZ_CHECK(found.place != SCP_COMMAND || found.path[found.path_len] == '|');
    FUZZ_CHECK(found.place != SCP_OFFSET || found.path[found.path_len] == ':');
    check_range(&found.range);
    return 0;
}
