#include "format/libsvm/side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"
#include "base/search.h"
#include "format/libsvm/line.h"

#define PIECE 65536

const char *const libsvm_side_suffixes[] = {".weight",      ".group", ".query",
                                            ".base_margin", ".init",  NULL};
static const enum libsvm_side_type suffix_types[] = {LIBSVM_SIDE_WEIGHT, LIBSVM_SIDE_GROUP,
                                                     LIBSVM_SIDE_GROUP, LIBSVM_SIDE_MARGIN,
                                                     LIBSVM_SIDE_MARGIN};

bool libsvm_side_find(const char *name, const char *base, enum libsvm_side_type *ret)
{
    size_t len = strlen(base);

    if (strncmp(name, base, len) != 0)
        return false;
    for (size_t i = 0; libsvm_side_suffixes[i]; i++) {
        if (!strcmp(name + len, libsvm_side_suffixes[i])) {
            *ret = suffix_types[i];
            return true;
        }
    }
    return false;
}

void libsvm_sides_release(struct libsvm_side sides[static N_LIBSVM_SIDES])
{
    for (unsigned i = 0; i < N_LIBSVM_SIDES; i++) {
        blob_free(sides[i].blob);
        free(sides[i].value);
        free(sides[i].end);
        sides[i] = (struct libsvm_side){0};
    }
}

static bool libsvm_side_is_space(uint8_t c)
{
    return text_is_blank(c) || c == '\n' || c == '\r';
}

/* Add a number, which begins at that byte of the file. */
static int side_add(struct libsvm_side *side, bool groups, const uint8_t *text, size_t len,
                    uint64_t at)
{
    uint64_t end = groups && side->n ? side->end[side->n - 1] : 0, rows = 0;
    float v;
    int r = groups ? array_capacity(&side->end, side->n, sizeof(*side->end))
                   : array_capacity(&side->value, side->n, sizeof(*side->value));

    if (r < 0)
        return r;
    if (groups ? digits_parse((const char *)text, len, UINT64_MAX - end, &rows) != len
               : decimal_parse(text, text + len, &v) != text + len)
        return diag_set(&side->reason, -EBADMSG, "%s: byte %llu: expected %s, got '%.*s'",
                        blob_name(side->blob), (unsigned long long)at,
                        groups ? "a number of rows" : "a number", (int)min_u64(len, 40),
                        (const char *)text);
    if (groups) {
        side->end[side->n++] = end + rows;
        return 0;
    }
    libsvm_rounded_number(&side->rounded, text, len, at);
    side->value[side->n++] = v;
    return 0;
}

static int side_read(struct libsvm_side *side, bool groups)
{
    AUTO_FREE uint8_t *text = malloc(PIECE + LIBSVM_PAD + 1);
    int r = text ? 0 : -ENOMEM;

    side->n = 0;
    for (uint64_t at = 0, used; at < side->blob->size && r == 0; at += used) {
        size_t len = (size_t)min_u64(PIECE, side->blob->size - at);

        r = blob_read(READ_WAITS, side->blob, text, len, at, &side->reason);
        if (r < 0)
            return r;
        memset(text + len, '\n', LIBSVM_PAD + 1);
        used = at + len == side->blob->size ? len + 1 : len;
        while (used && !libsvm_side_is_space(text[used - 1])) /* its last number goes on */
            used--;
        if (!used)
            return diag_set(&side->reason, -EBADMSG,
                            "%s: byte %llu: expected a number, got a word of %zu bytes",
                            blob_name(side->blob), (unsigned long long)at, len);
        for (size_t i = 0, n; i < used && r == 0; i += n + 1) {
            for (n = 0; !libsvm_side_is_space(text[i + n]);)
                n++;
            if (n)
                r = side_add(side, groups, text + i, n, at + i);
        }
    }
    return r == 0 ? blob_check(side->blob) : r;
}

/* Check that the count of numbers fits the rows. */
static int side_fit(struct libsvm_side *side, enum libsvm_side_type type,
                    const struct libsvm_side *by_file, uint64_t runs, uint64_t rows)
{
    const char *name = blob_name(side->blob);
    uint64_t groups = by_file->blob ? (by_file->failed ? 0 : by_file->n) : runs;

    side->per_row = 1;
    switch (type) {
    case LIBSVM_SIDE_GROUP:
        if ((side->n ? side->end[side->n - 1] : 0) == rows)
            return 0;
        return diag_set(&side->reason, -EBADMSG,
                        "%s: expected groups of %llu rows in all, got groups of %llu", name,
                        (unsigned long long)rows,
                        (unsigned long long)(side->n ? side->end[side->n - 1] : 0));
    case LIBSVM_SIDE_WEIGHT:
        side->per_group = groups && side->n != rows;
        if (side->n == (side->per_group ? groups : rows))
            return 0;
        return diag_set(
            &side->reason, -EBADMSG, "%s: expected %llu numbers, one for each row%s, got %llu",
            name, (unsigned long long)rows, groups ? " or group" : "", (unsigned long long)side->n);
    default:
        side->per_row = rows ? side->n / rows : 1;
        if (side->n && side->n == side->per_row * rows)
            return 0;
        return diag_set(&side->reason, -EBADMSG,
                        "%s: expected a multiple of %llu numbers, as many for each row, got %llu",
                        name, (unsigned long long)rows, (unsigned long long)side->n);
    }
}

int libsvm_sides_load(struct libsvm_side sides[static N_LIBSVM_SIDES], uint64_t rows,
                      uint64_t skipped, uint64_t runs, struct diag *d)
{
    /* Groups first: weights may belong to groups. */
    static const enum libsvm_side_type types[] = {LIBSVM_SIDE_GROUP, LIBSVM_SIDE_WEIGHT,
                                                  LIBSVM_SIDE_MARGIN};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct libsvm_side *side = &sides[types[i]];
        int r;

        if (!side->blob)
            continue;
        r = skipped ? diag_set(&side->reason, -EBADMSG,
                               "%s: expected a number for each row, but %llu bad rows are omitted",
                               blob_name(side->blob), (unsigned long long)skipped)
                    : side_read(side, types[i] == LIBSVM_SIDE_GROUP);
        if (r == 0)
            r = side_fit(side, types[i], &sides[LIBSVM_SIDE_GROUP], runs, rows);
        if (blob_says_nothing(r)) {
            diag_set(d, r, "%s", diag_text(&side->reason, r));
            side->reason.set = false;
            return r;
        }
        if (r < 0)
            diag_set(&side->reason, r, "%s: %s", blob_name(side->blob), strerror(-r));
        side->failed = r;
    }
    return 0;
}

uint64_t libsvm_side_group(const struct libsvm_side *groups, uint64_t row)
{
    return SEARCH(groups->n, i, groups->end[i] <= row);
}
