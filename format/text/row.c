#include "format/text/row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool ends(uint8_t c, bool has_cr)
{
    return c == '\n' || (has_cr && c == '\r');
}

/* Is there the end of a line at p, CRLF included? */
static bool ends_at(const uint8_t *p, const uint8_t *end, bool has_cr)
{
    return p == end || ends(*p, has_cr) || (*p == '\r' && p + 1 < end && p[1] == '\n');
}

int text_row_verify(struct read_context *rc, const struct blob *blob, uint64_t first, uint64_t at,
                    uint64_t len, bool has_cr, struct diag *d)
{
    uint64_t before = at > first, from = at - before;
    uint64_t n = min_u64(before + len + 2, blob->size - from);
    AUTO_FREE uint8_t *bytes = malloc(n + 1);
    const uint8_t *row;
    bool is_one;
    int r = bytes ? blob_read(rc, blob, bytes, n, from, d) : -ENOMEM;

    if (r < 0)
        return r;
    row = bytes + before;
    is_one = (!before || ends(*bytes, has_cr)) && ends_at(row + len, bytes + n, has_cr) &&
             !memchr(row, '\n', len) && !(has_cr && memchr(row, '\r', len));
    return is_one ? 0
                  : diag_set(d, -EBADMSG, "byte %llu: expected a line of %llu bytes, got another",
                             (unsigned long long)at, (unsigned long long)len);
}
