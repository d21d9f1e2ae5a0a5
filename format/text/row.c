#include "format/text/row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_context.h"
#include "format/core/decimal.h"

#define PIECE     (1u << 18) /* bytes searched for line ends at once */
#define RUN_BYTES (1u << 20) /* of neighbouring rows read at once, */
#define RUN_GAP   512        /* and bytes between them */

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

/* The rows from the first on that are neighbours in their blob. *ret_len: bytes from the first to
 * the last. */
static unsigned count_neighbours(const struct extent *row, unsigned n, size_t *ret_len)
{
    uint64_t end = row->off + row->len;
    unsigned i = 1;

    for (; i < n; i++) {
        if (row[i].blob != row->blob || row[i].off < end || row[i].off - end > RUN_GAP ||
            row[i].off + row[i].len - row->off > RUN_BYTES)
            break;
        end = row[i].off + row[i].len;
    }
    *ret_len = (size_t)(end - row->off);
    return i;
}

int text_rows_parse(struct read_context *rc, const struct extent *row, unsigned n,
                    text_row_fn *parse, void *ctx, struct diag *d)
{
    AUTO_FREE uint8_t *text = NULL;
    size_t capacity = 0, len;
    int r, all = 0;

    for (unsigned i = 0, run; i < n; i += run) {
        run = count_neighbours(&row[i], n - i, &len);
        if (len + DECIMAL_PAD > capacity) {
            free(text);
            capacity = len + DECIMAL_PAD;
            text = malloc(capacity);
        }
        r = text ? blob_read(rc, row[i].blob, text, len, row[i].off, d) : -ENOMEM;
        if (r == 0)
            memset(text + len, 0, DECIMAL_PAD);
        for (unsigned k = i; k < i + run && r == 0 && all == 0; k++) {
            uint8_t *line = text + (row[k].off - row[i].off), behind = line[row[k].len];

            line[row[k].len] = 0;
            r = parse(ctx, k, line, d);
            line[row[k].len] = behind;
        }
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}

int text_line_number(const struct blob *blob, uint64_t at, bool has_cr, uint64_t *ret,
                     struct diag *d)
{
    AUTO_FREE uint8_t *piece = malloc(PIECE);
    uint8_t before = 0;
    int r = piece ? 0 : -ENOMEM;

    *ret = 1;
    for (uint64_t from = 0; from < at && r == 0; from += PIECE) {
        size_t n = (size_t)min_u64(PIECE, at - from);

        r = blob_read(READ_WAITS, blob, piece, n, from, d);
        for (size_t i = 0; i < n && r == 0; before = piece[i++])
            *ret += has_cr ? piece[i] == '\r' || (piece[i] == '\n' && before != '\r')
                           : piece[i] == '\n';
    }
    return r;
}
