/* Decimal text of integers, one line per item. All lines have the same length, so that the size of
 * a file does not depend on its content.
 *
 * Newlines fill up the line of a single sample: `$(cat FILE)`, int() and strtol() all drop them.
 * The lines of a batch are right-aligned columns. */
#include "format/core/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/sample_window.h"
#include "format/encode/cls.h"

#define CLS_SIZE 24

static unsigned cls_width(const struct field *f)
{
    switch (f->stored_dtype) {
    case DTYPE_U1:
        return 3; /* 255 */
    case DTYPE_I1:
        return 4; /* -128 */
    case DTYPE_U2:
        return 5; /* 65535 */
    case DTYPE_I2:
        return 6; /* -32768 */
    case DTYPE_U4:
        return 10; /* 4294967295 */
    case DTYPE_I8:
        return 20; /* -9223372036854775808 */
    default:
        return 11; /* -2147483648 */
    }
}

static void cls_line(unsigned width, int64_t value, bool single, char ret[static CLS_SIZE])
{
    int n = snprintf(ret, CLS_SIZE, "%*lld", single ? 0 : (int)width, (long long)value);

    memset(ret + n, '\n', CLS_SIZE - (size_t)n);
}

static int cls_read(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                    size_t len, uint8_t *dst, struct diag *d)
{
    unsigned width = cls_width(p->field), line = width + 1;
    struct sample_window window = {.sel = l->selection};
    int all = 0;

    while (len) {
        size_t skip = (size_t)(off % line), n = (size_t)min_u64(len, line - skip);
        char text[CLS_SIZE];
        int64_t value = 0;
        int r;

        r = field_integer(rc, l->dataset, p->field, sample_window_at(&window, off / line), &value,
                          d);
        if (!missing_go_on(rc, r, &all))
            break;
        cls_line(width, value, l->selection->single, text);
        memcpy(dst, text + skip, n);
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

int cls_add(struct layout *l, const struct field *f)
{
    struct part part = {.read = cls_read, .field = f};

    if (!checked_mul(l->selection->count, cls_width(f) + 1, &part.size))
        return -EFBIG;
    return layout_add(l, &part);
}
