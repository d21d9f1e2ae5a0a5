#include "format/index/reasons.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASONS_MOST (1u << 18) /* bytes */

void reasons_add(struct text *reasons, uint64_t row, const char *why)
{
    if (reasons->len >= REASONS_MOST)
        return;
    text_add(reasons, "%llu ", (unsigned long long)row);
    for (; *why; why++)
        text_add_bytes(reasons, *why == '\n' ? " " : why, 1);
    text_add(reasons, "\n");
}

bool reasons_find(const struct text *reasons, uint64_t row, struct diag *d)
{
    char number[24];
    int n = snprintf(number, sizeof(number), "%llu ", (unsigned long long)row);
    const char *last = reasons->len ? memrchr(reasons->data, '\n', reasons->len - 1) : NULL;

    /* Rows rise, and most rows that cannot be read may be behind those with a reason. */
    if (!reasons->len || row > strtoull(last ? last + 1 : reasons->data, NULL, 10))
        return false;
    for (const char *line = reasons->data; line && *line; line += *line == '\n') {
        size_t len = strcspn(line, "\n");

        if (!strncmp(line, number, (size_t)n)) {
            diag_set(d, -EBADMSG, "%.*s", (int)len - n, line + n);
            return true;
        }
        line += len;
    }
    return false;
}
