/* Listings of S3 in ranges of keys. */
#include "cache/source/s3_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/search.h"
#include "cache/source/remote.h"

#define PAGES_AHEAD 32   /* ranges that are listed side by side */
#define EMPTY_MOST  1000 /* pages without keys in a row */
#define PAGES_FEW   4    /* kept ones, which are asked for at once */
#define LONG_RANGE  16   /* pages of a range that has more: others may help */

#define FOLDERS_ENOUGH 32 /* after which no deeper ones are looked at */
#define FOLDERS_DEEP   4
#define FOLDER_PAGES   256 /* of one folder */

#define POINTS_MOST 64 /* ranges; each costs a page at most */

/* ---- pages ---- */

int s3_walk_url(const struct s3_walk *walk, const struct s3_question *q, char **ret)
{
    AUTO_TEXT struct text url = {0};
    char most[16], joint = '?';

    snprintf(most, sizeof(most), "%u", q->most);
    const char *const parameters[][2] = {
        /* in the order that signing needs */
        {"continuation-token", q->token},
        {"delimiter", q->delimiter},
        {"encoding-type", "url"},
        {"list-type", "2"},
        {"max-keys", q->most ? most : NULL},
        {"prefix", q->prefix},
        {"start-after", q->token ? NULL : q->after},
    };

    text_add(&url, "%s", walk->listing);
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
        if (!parameters[i][1])
            continue;
        text_add(&url, "%c%s=", joint, parameters[i][0]);
        http_encode(&url, parameters[i][1], false);
        joint = '&';
    }
    return text_finish(&url, ret, NULL);
}

/* Ask for a page. NULL: no memory. */
static struct http_ahead *s3_walk_ask(const struct s3_walk *walk,
                                      const struct s3_question *question)
{
    char *url = NULL;

    s3_walk_url(walk, question, &url);
    return http_ahead_start(walk->http, url, REMOTE_TEXT_MOST, 0);
}

/* Get the page that was asked for. */
static int s3_walk_take(struct s3_walk *walk, struct http_ahead *asked, struct text *ret,
                        struct diag *d)
{
    struct diag why = DIAG_INIT;
    int r = http_ahead_take(asked, ret, NULL, &why);

    return r < 0 && r != -ENOMEM ? walk->failed(walk, r, ret, &why, d) : r;
}

static int s3_walk_parse(const struct s3_walk *walk, const struct text *text, struct s3_page *ret,
                         struct diag *d)
{
    return s3_page_parse(text->data ? text->data : "", text->len, walk->shown, ret, d);
}

int s3_walk_get(struct s3_walk *walk, const struct s3_question *question, struct s3_page *ret,
                struct diag *d)
{
    AUTO_TEXT struct text text = {0};
    int r = s3_walk_take(walk, s3_walk_ask(walk, question), &text, d);

    return r < 0 ? r : s3_walk_parse(walk, &text, ret, d);
}

/* ---- ranges ---- */

/* A range of keys: behind after, up to upto. Or a folder, whose folders are listed without what is
 * in them. */
struct range {
    char *folder; /* NULL: it is a range of keys */
    unsigned depth;

    char *after; /* "": from the first key */
    char *upto;  /* NULL: to the last one */
    size_t kept; /* the kept page that it was; SIZE_MAX: none */
    char *token; /* of its next page; NULL: it begins behind `after` */
    unsigned empty;
    unsigned pages;
    struct texts split;       /* where others may go on, guessed from its last page */
    struct http_ahead *asked; /* its next page */
};

struct ranges {
    struct texts *points; /* gets the folders, if these are folders */
    struct range *range;
    size_t n, next;   /* next: to begin */
    size_t pages;     /* so far */
    size_t splits_at; /* pages after which a range may be split */
};

static void range_release(struct range *range)
{
    http_ahead_drop(&range->asked);
    free(range->folder);
    free(range->after);
    free(range->upto);
    free(range->token);
    texts_release(&range->split);
    *range = (struct range){0};
}

static void ranges_release(struct ranges *ranges)
{
    for (size_t i = 0; i < ranges->n; i++)
        range_release(&ranges->range[i]);
    free(ranges->range);
}

/* Add a range of the keys behind after, up to upto (NULL: all); or a folder. 0 or -ENOMEM. */
static int add_range(struct ranges *ranges, const char *folder, const char *after, const char *upto)
{
    struct range *range;

    if (array_capacity(&ranges->range, ranges->n, sizeof(*range)) < 0)
        return -ENOMEM;
    range = &ranges->range[ranges->n++];
    *range = (struct range){.kept = SIZE_MAX};
    return text_copy(folder, &range->folder) < 0 || text_copy(after, &range->after) < 0 ||
                   text_copy(upto, &range->upto) < 0
               ? -ENOMEM
               : 0;
}

/* ---- where ranges may begin ----
 *
 * At folders that were found, or at guesses.
 *
 * In a folder with very many objects, what varies among the keys of a page, "001000.jpg" to
 * "001999.jpg", varies in front of it as well: "002", "003", ..., "01", "02", ..., "1", "2", ... A
 * guess without a key behind it costs a request. */

/* Sort the points, which are keys; keep some, behind the key `after`, each once, with about as many
 * from each to the next one. */
static void s3_points_thin(struct texts *points, const char *after)
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

/* Guess keys that others may come behind, from a page of sorted keys below prefix that is not the
 * last one: sorted, behind the page, and before upto (NULL: any). There may be none. 0 or -ENOMEM.
 */
static int s3_points_guess(const char *prefix, const struct s3_page *page, const char *upto,
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

/* ---- requests ---- */

/* Ask for the next page of a range; what was asked for before has been taken. */
static void range_ask(const struct s3_walk *walk, struct range *range)
{
    const struct s3_question question = {.prefix = range->folder ? range->folder : walk->prefix,
                                         .token = range->token,
                                         .delimiter = range->folder ? "/" : NULL,
                                         .after =
                                             range->after && *range->after ? range->after : NULL};

    range->asked = s3_walk_ask(walk, &question);
}

/* ---- their pages ---- */

/* Are the keys sorted, and behind `after`? */
static bool is_sorted(const struct s3_page *page, const char *after)
{
    for (size_t i = 0; i < page->n; i++) {
        if (strcmp(after, page->object[i].key) >= 0)
            return false;
        after = page->object[i].key;
    }
    return true;
}

/* Use the objects of a page, up to the end of the range. *ret_n: how many. */
static int use(struct s3_walk *walk, const struct s3_page *page, const char *upto, size_t *ret_n,
               struct diag *d)
{
    size_t len = strlen(walk->prefix), n = 0;

    for (; n < page->n && (!upto || strcmp(page->object[n].key, upto) <= 0); n++)
        if (strncmp(page->object[n].key, walk->prefix, len) != 0)
            return diag_set(d, -EBADMSG,
                            "%s: expected keys that begin with this, got another in the listing",
                            walk->shown);
    walk->any = walk->any || n;
    *ret_n = n;
    return n ? walk->use(walk, page->object, n, d) : 0;
}

/* The range goes on behind this page. */
static int go_on(struct s3_walk *walk, struct range *range, struct s3_page *page, struct diag *d)
{
    range->empty = page->n ? 0 : range->empty + 1;
    if ((range->token && !strcmp(range->token, page->token)) || range->empty > EMPTY_MOST)
        return diag_set(d, -EBADMSG, "%s: the listing does not end", walk->shown);
    walk->sorted = walk->sorted && page->n; /* else two pages would have one text */
    free(range->token);
    range->token = TAKE_PTR(page->token);
    if (++range->pages % LONG_RANGE == 0 && !walk->one_range) {
        texts_release(&range->split);
        if (s3_points_guess(walk->prefix, page, range->upto, &range->split) < 0)
            return -ENOMEM;
    }
    if (page->n) {
        free(range->after);
        range->after = TAKE_PTR(page->object[page->n - 1].key);
    }
    return 1;
}

/* Use a page of a range. 1: the range goes on; 0: it is done; -EAGAIN: the server does not sort; or
 * -errno with the reason in d. */
static int s3_walk_use_page(struct s3_walk *walk, struct range *range, const struct text *text,
                            struct diag *d)
{
    AUTO_S3_PAGE struct s3_page page = {0};
    uint64_t hash = s3_page_hash(text->data ? text->data : "", text->len);
    size_t n = 0;
    int r = known_add_page(walk->known, range->after, hash);

    if (r == 0 && range->kept < SIZE_MAX && hash == walk->kept->page[range->kept].hash) {
        walk->same[range->kept] = 1;
        walk->n_same++;
        walk->any = true;
        return 0;
    }
    range->kept = SIZE_MAX;
    if (r == 0)
        r = s3_walk_parse(walk, text, &page, d);
    if (r < 0)
        return r;
    if (!is_sorted(&page, range->after)) {
        walk->sorted = false;
        if (!walk->one_range)
            return -EAGAIN;
    }
    r = use(walk, &page, range->upto, &n, d);
    if (r < 0 || !page.token || n < page.n)
        return r;
    if (range->upto && page.n && strcmp(page.object[page.n - 1].key, range->upto) >= 0)
        return 0;
    return go_on(walk, range, &page, d);
}

/* Use a page of a folder, if r is 0. Where there are few folders, as train/ and val/, those below
 * them are looked at. An error ends the search there: the listing meets it again, or does not. 1:
 * there are more pages; 0; or -ENOMEM. */
static int use_folders(struct s3_walk *walk, struct ranges *ranges, size_t at, int r,
                       const struct text *text)
{
    AUTO_S3_PAGE struct s3_page page = {0};
    struct range *range = &ranges->range[at];
    const size_t len = strlen(range->folder);
    const unsigned depth = range->depth + 1;

    if (r == 0)
        r = s3_walk_parse(walk, text, &page, NULL);
    for (size_t i = 0; r == 0 && i < page.prefix.n; i++) {
        const char *prefix = page.prefix.text[i];

        if (strncmp(prefix, ranges->range[at].folder, len) != 0 || !prefix[len])
            continue;
        r = texts_add(ranges->points, prefix);
        if (r < 0 || ranges->points->n >= FOLDERS_ENOUGH || depth >= FOLDERS_DEEP)
            continue;
        r = add_range(ranges, prefix, NULL, NULL);
        ranges->range[ranges->n - 1].depth = depth;
    }
    if (r == -ENOMEM)
        return r;
    range = &ranges->range[at];
    free(range->token);
    range->token = TAKE_PTR(page.token);
    return r == 0 && range->token && page.prefix.n && ++range->pages < FOLDER_PAGES;
}

/* Take the page that was asked for, and ask for the one behind it. */
static int step(struct s3_walk *walk, struct ranges *ranges, size_t at, struct diag *d)
{
    AUTO_TEXT struct text text = {0};
    bool is_folder = ranges->range[at].folder;
    int r = s3_walk_take(walk, TAKE_PTR(ranges->range[at].asked), &text, is_folder ? NULL : d);

    if (is_folder)
        r = use_folders(walk, ranges, at, r, &text);
    else if (r == 0)
        r = s3_walk_use_page(walk, &ranges->range[at], &text, d);
    if (r == 1)
        range_ask(walk, &ranges->range[at]);
    return r;
}

/* Split a range that goes on: others have the keys behind points that were guessed, and that it has
 * not passed meanwhile. The requests for empty ones are at most as many as the pages. */
static int s3_walk_split(struct ranges *ranges, size_t at)
{
    AUTO_TEXTS struct texts points = ranges->range[at].split;
    AUTO_FREE char *upto = ranges->range[at].upto;
    size_t first = 0;
    int r = 0;

    ranges->range[at].split = (struct texts){0};
    while (first < points.n && strcmp(points.text[first], ranges->range[at].after) <= 0)
        first++;
    ranges->splits_at = ranges->pages + points.n - first;
    ranges->range[at].upto = first < points.n ? strdup(points.text[first]) : TAKE_PTR(upto);
    if (first < points.n && !ranges->range[at].upto)
        return -ENOMEM;
    for (size_t i = first; i < points.n && r == 0; i++)
        r = add_range(ranges, NULL, points.text[i], i + 1 < points.n ? points.text[i + 1] : upto);
    return r;
}

/* If few ranges are under way, and one of them is long, split it. */
static int split_long(struct ranges *ranges, const size_t *active, size_t n)
{
    if (ranges->next < ranges->n || n > PAGES_AHEAD / 2 || ranges->pages < ranges->splits_at)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (ranges->range[active[i]].split.n)
            return s3_walk_split(ranges, active[i]);
    return 0;
}

/* List all ranges, PAGES_AHEAD at once: each in turn. */
static int list_ranges(struct s3_walk *walk, struct ranges *ranges, struct diag *d)
{
    size_t active[PAGES_AHEAD], n = 0;
    int r;

    for (size_t i = 0;; i++) {
        while (n < PAGES_AHEAD && ranges->next < ranges->n) {
            active[n] = ranges->next++;
            if (!ranges->range[active[n]].depth || ranges->points->n < FOLDERS_ENOUGH)
                range_ask(walk, &ranges->range[active[n++]]);
        }
        if (!n)
            return 0;
        i %= n;
        r = step(walk, ranges, active[i], d);
        ranges->pages++;
        if (r == 0) { /* done: the last one takes its turn */
            range_release(&ranges->range[active[i]]);
            active[i--] = active[--n];
        }
        if (r >= 0)
            r = split_long(ranges, active, n);
        if (r < 0)
            return r;
    }
}

/* ---- which ranges ---- */

/* One for each page that is kept. */
static int kept_ranges(struct s3_walk *walk, struct ranges *ret)
{
    const struct known *kept = walk->kept;
    int r = 0;

    for (size_t i = 0; i < kept->n_pages && r == 0; i++) {
        r = add_range(ret, NULL, known_page_text(kept, i),
                      i + 1 < kept->n_pages ? known_page_text(kept, i + 1) : NULL);
        if (r == 0)
            ret->range[i].kept = i;
    }
    return r;
}

/* Find folders where ranges may begin, behind the key `after`. There may be none. 0 or -ENOMEM:
 * other errors are met again. */
static int find_folders(struct s3_walk *walk, const char *after, struct texts *ret)
{
    AUTO(ranges_release) struct ranges folders = {.points = ret};
    int r = add_range(&folders, walk->prefix, NULL, NULL);

    if (r == 0)
        r = list_ranges(walk, &folders, NULL);
    s3_points_thin(ret, after);
    return r;
}

/* The listing is long: has the caller the list from elsewhere? 0 or -errno. */
static int ask_elsewhere(struct s3_walk *walk)
{
    int r = walk->is_long && !walk->one_range ? walk->is_long(walk) : 0;

    walk->ended = r == 1;
    walk->any = walk->any || walk->ended;
    return r < 0 ? r : 0;
}

/* The first page is read; if it is not the last one, ranges begin behind it, and at folders. */
static int first_page(struct s3_walk *walk, struct ranges *ret, struct diag *d)
{
    AUTO(ranges_release) struct ranges first = {0};
    AUTO_TEXT struct text text = {0};
    struct range *range;
    int r = add_range(&first, NULL, "", NULL);

    if (r < 0)
        return r;
    range = &first.range[0];
    r = s3_walk_take(walk, s3_walk_ask(walk, &(struct s3_question){.prefix = walk->prefix}), &text,
                     d);
    if (r == 0)
        r = s3_walk_use_page(walk, range, &text, d);
    if (r == 1 && (r = ask_elsewhere(walk)) == 0)
        r = walk->ended ? 0 : 1;
    if (r != 1)
        return r;
    if (!walk->one_range && walk->sorted) {
        AUTO_TEXTS struct texts points = {0};

        r = find_folders(walk, range->after, &points);
        for (size_t i = 0; i <= points.n && r == 0; i++)
            r = add_range(ret, NULL, i ? points.text[i - 1] : range->after,
                          i < points.n ? points.text[i] : NULL);
        return r;
    }
    r = add_range(ret, NULL, range->after, NULL);
    if (r == 0)
        ret->range[0].token = TAKE_PTR(range->token);
    return r;
}

static int walk_once(struct s3_walk *walk, struct diag *d)
{
    AUTO(ranges_release) struct ranges ranges = {0};
    int r;

    walk->any = false;
    walk->sorted = true;
    walk->n_same = 0;
    r = walk->kept ? kept_ranges(walk, &ranges) : first_page(walk, &ranges, d);
    if (r == 0 && walk->kept && ranges.n > PAGES_FEW)
        r = ask_elsewhere(walk);
    return r < 0 || walk->ended ? r : list_ranges(walk, &ranges, d);
}

int s3_walk(struct s3_walk *walk, struct diag *d)
{
    int r;

    if (walk->kept && !walk->kept->n_pages)
        walk->kept = NULL;
    walk->same = walk->kept ? calloc(walk->kept->n_pages, 1) : NULL;
    if (walk->kept && !walk->same)
        return -ENOMEM;
    r = walk_once(walk, d);
    if (r != -EAGAIN)
        return r;
    known_release(walk->known); /* all comes again */
    walk->kept = NULL;
    walk->one_range = true;
    r = walk_once(walk, d);
    walk->sorted = false; /* kept pages would not help */
    return r;
}

size_t s3_walk_page_of(const struct known *list, const char *key)
{
    return SEARCH_LAST(list->n_pages, i, strcmp(known_page_text(list, i), key) < 0);
}

void s3_walk_release(struct s3_walk *walk)
{
    free(walk->same);
}
