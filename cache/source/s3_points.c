/* Where ranges of a listing may begin: at folders, which s3_walk.c finds, or at guesses.
 *
 * In a folder with very many objects, what varies among the keys of a page, "001000.jpg" to
 * "001999.jpg", varies in front of it as well: "002", "003", ..., "01", "02", ..., "1", "2", ... A
 * guess without a key behind it costs a request. */
#include "cache/source/s3_points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define POINTS_MOST 64 /* ranges; each costs a page at most */

void s3_points_thin(struct texts *points, const char *after)
{
    size_t before, n, kept = 0;

    texts_sort(points, 0);
    before = SEARCH(points->n, i, strcmp(points->text[i], after) <= 0);
    n = points->n - before;
    for (size_t i = 0; i < points->n; i++) {
        size_t k = i - before;

        if (i >= before && (n <= POINTS_MOST || k * POINTS_MOST / n != (k + 1) * POINTS_MOST / n))
            points->text[kept++] = points->text[i];
        else
            free(points->text[i]);
    }
    points->n = kept;
}

/* The characters that vary from byte `from` of the keys on; they are ASCII. */
static void find_varying(const struct s3_page *page, size_t from, bool varies[static 128])
{
    bool seen[128] = {false};

    for (size_t at = from, longer = 1; longer; at++) {
        unsigned char first = 0;
        bool differs = false;

        longer = 0;
        for (size_t i = 0; i < page->n; i++) {
            unsigned char c = strnlen(page->object[i].key, at + 1) > at
                                  ? (unsigned char)page->object[i].key[at]
                                  : 0;

            longer += c != 0;
            first = first ? first : c;
            differs = differs || (c && c != first);
            if (c > ' ' && c < 127)
                seen[c] = true;
        }
        for (size_t c = 0; c < 128; c++) {
            varies[c] = varies[c] || (differs && seen[c]);
            seen[c] = false;
        }
    }
}

int s3_points_guess(const char *prefix, const struct s3_page *page, const char *upto,
                    struct texts *ret)
{
    const char *first = page->n ? page->object[0].key : "", *last;
    size_t same = 0, start = strlen(prefix);
    bool varies[128] = {false};
    int r = 0;

    if (page->n < 2)
        return 0;
    last = page->object[page->n - 1].key;
    while (last[same] && first[same] == last[same])
        same++;
    find_varying(page, same, varies);
    for (size_t i = same; i-- > start && r == 0;) {
        for (int c = (unsigned char)last[i] + 1; c < 127 && r == 0 && ret->n < POINTS_MOST; c++) {
            AUTO_FREE char *point = varies[c] ? strndup(last, i + 1) : NULL;

            if (!varies[c])
                continue;
            if (!point)
                return -ENOMEM;
            point[i] = (char)c;
            if (!upto || strcmp(point, upto) < 0)
                r = texts_add(ret, point);
        }
    }
    return r;
}
