/* Where ranges of a listing may begin: at folders, which a listing with a delimiter shows without
 * what is in them. Where there are few, as train/ and val/, those below them are looked at.
 *
 * In a folder with very many objects, at guesses: what varies among the keys of a page,
 * "001000.jpg" to "001999.jpg", varies in front of it as well: "002", "003", ..., "01", "02", ...,
 * "1", "2", ... A guess without a key behind it costs a request. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "cache/source/remote.h"
#include "cache/source/s3_walk_parts.h"

#define POINTS_ENOUGH 32 /* folders, after which no deeper ones are looked at */
#define POINTS_MOST   64 /* ranges; each costs a page at most */
#define DEPTH_MOST    4
#define PAGES_MOST    256 /* of one folder */

/* A folder whose folders are being listed. */
struct looking {
    char *prefix;
    char *token;
    struct s3_asking asking;
    unsigned pages;
    bool done;
};

struct level {
    struct looking *folder;
    size_t n;
};

static void level_release(struct level *level)
{
    for (size_t i = 0; i < level->n; i++) {
        s3_asking_release(&level->folder[i].asking);
        free(level->folder[i].prefix);
        free(level->folder[i].token);
    }
    free(level->folder);
    *level = (struct level){0};
}

static int level_add(struct level *level, const char *prefix)
{
    if (array_capacity(&level->folder, level->n, sizeof(*level->folder)) < 0)
        return -ENOMEM;
    level->folder[level->n] = (struct looking){.prefix = strdup(prefix)};
    return level->folder[level->n++].prefix ? 0 : -ENOMEM;
}

static int points_add(struct s3_points *points, const char *key)
{
    if (array_capacity(&points->key, points->n, sizeof(*points->key)) < 0)
        return -ENOMEM;
    points->key[points->n] = strdup(key);
    return points->key[points->n++] ? 0 : -ENOMEM;
}

void s3_points_release(struct s3_points *points)
{
    for (size_t i = 0; i < points->n; i++)
        free(points->key[i]);
    free(points->key);
    *points = (struct s3_points){0};
}

static int s3_points_ask(const struct s3_walk *walk, struct looking *folder)
{
    const struct s3_question question = {
        .prefix = folder->prefix, .token = folder->token, .delimiter = "/"};

    return s3_walk_ask(walk, &question, &folder->asking);
}

/* Take a page of a folder. An error ends the search there: the listing meets it again, or does not.
 */
static int s3_points_take(struct s3_walk *walk, struct looking *folder, struct s3_points *points,
                          struct level *below)
{
    AUTO_TEXT struct text text = {0};
    AUTO_S3_PAGE struct s3_page page = {0};
    int r = s3_walk_take(walk, &folder->asking, &text, NULL);

    if (r == 0)
        r = s3_walk_parse(walk, &text, &page, NULL);
    folder->done = r < 0 || !page.token || !page.n_prefixes || ++folder->pages == PAGES_MOST;
    if (r == -ENOMEM)
        return r;
    for (size_t i = 0; r == 0 && i < page.n_prefixes; i++) {
        if (strncmp(page.prefix[i], folder->prefix, strlen(folder->prefix)) != 0 ||
            !page.prefix[i][strlen(folder->prefix)])
            continue;
        r = points_add(points, page.prefix[i]);
        if (r == 0 && points->n < POINTS_ENOUGH)
            r = level_add(below, page.prefix[i]);
        if (r < 0)
            return r;
    }
    free(folder->token);
    folder->token = TAKE_PTR(page.token);
    return 0;
}

/* List the folders below those of a level, all side by side. */
static int s3_points_look(struct s3_walk *walk, struct level *level, struct s3_points *points,
                          struct level *below)
{
    bool any = true;
    int r = 0;

    while (any) {
        any = false;
        for (size_t i = 0; i < level->n && r == 0; i++)
            r = level->folder[i].done ? 0 : s3_points_ask(walk, &level->folder[i]);
        for (size_t i = 0; i < level->n && r == 0; i++) {
            if (level->folder[i].done)
                continue;
            any = true;
            r = s3_points_take(walk, &level->folder[i], points, below);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

/* Sort the points; keep some, behind `after`, each once. */
static void thin(struct s3_points *points, const char *after)
{
    size_t n = 0, kept = 0;

    if (points->n)
        qsort(points->key, points->n, sizeof(*points->key), texts_compare);
    for (size_t i = 0; i < points->n; i++) {
        if (strcmp(points->key[i], n ? points->key[n - 1] : after) > 0)
            points->key[n++] = points->key[i];
        else
            free(points->key[i]);
    }
    points->n = n;
    for (size_t i = 0; i < n; i++) {
        if (n <= POINTS_MOST || i * POINTS_MOST / n != (i + 1) * POINTS_MOST / n)
            points->key[kept++] = points->key[i];
        else
            free(points->key[i]);
    }
    points->n = kept;
}

int s3_points_find(struct s3_walk *walk, const char *after, struct s3_points *ret)
{
    AUTO(level_release) struct level level = {0};
    int r = level_add(&level, walk->prefix);

    for (unsigned depth = 0; r == 0 && level.n && depth < DEPTH_MOST && ret->n < POINTS_ENOUGH;
         depth++) {
        AUTO(level_release) struct level below = {0};

        r = s3_points_look(walk, &level, ret, &below);
        level_release(&level);
        level = below;
        below = (struct level){0};
    }
    thin(ret, after);
    return r;
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

int s3_points_guess(const struct s3_walk *walk, const struct s3_page *page, const char *upto,
                    struct s3_points *ret)
{
    const char *first = page->n ? page->object[0].key : "", *last;
    size_t same = 0, start = strlen(walk->prefix);
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
                r = points_add(ret, point);
        }
    }
    return r;
}
