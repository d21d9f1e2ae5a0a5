#include "format/core/siblings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "format/core/numbered.h"

#define DIGITS_MAX 18
#define TOTAL_MAX  1000000 /* files of a set; larger numbers behind "of" are part of a name */
#define NUMBERS    4       /* of a name that are looked at, from its end */

/* ---- numbers in names ---- */

static bool siblings_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool siblings_is_joint(char c)
{
    return c == '-' || c == '_' || c == '.';
}

/* The number of the digits at p; false: there are none, or too many. */
static bool siblings_read_number(const char *p, size_t *ret_digits, uint64_t *ret)
{
    size_t n = 0;

    for (*ret = 0; siblings_is_digit(p[n]) && n < DIGITS_MAX; n++)
        *ret = *ret * 10 + (uint64_t)(p[n] - '0');
    *ret_digits = n;
    return n && !siblings_is_digit(p[n]);
}

/* Find number `which` of a name, counted from its end. */
static bool find_number(const char *name, unsigned which, struct sibling *ret)
{
    size_t end = strlen(name), at;

    for (;; end = at) {
        while (end && !siblings_is_digit(name[end - 1]))
            end--;
        if (!end)
            return false;
        for (at = end; at && siblings_is_digit(name[at - 1]);)
            at--;
        if (!which--)
            break;
    }
    ret->at = at;
    ret->total = 0;
    return siblings_read_number(name + at, &ret->digits, &ret->number) &&
           !(at >= 4 && !strncasecmp(name + at - 4, "fold", 4)) &&
           !(at >= 5 && siblings_is_joint(name[at - 1]) && !strncasecmp(name + at - 5, "fold", 4));
}

/* Find <n>-of-<N>, the last one of the name. */
static bool find_of(const char *name, struct sibling *ret)
{
    static const char mark[] = "of";
    struct sibling found = {.file = ret->file};
    bool any = false;

    for (const char *p = strstr(name, mark); p; p = strstr(p + 1, mark)) {
        const char *end = p, *total = p + strlen(mark);
        size_t digits;

        end -= end > name && siblings_is_joint(end[-1]);
        total += siblings_is_joint(*total);
        for (p = end; p > name && siblings_is_digit(p[-1]);)
            p--;
        found.at = (size_t)(p - name);
        if (p < end && siblings_read_number(p, &found.digits, &found.number) &&
            p + found.digits == end && siblings_read_number(total, &digits, &found.total) &&
            found.total && found.total <= TOTAL_MAX && found.number <= found.total) {
            *ret = found;
            any = true;
        }
        p = end + siblings_is_joint(*end);
    }
    return any;
}

/* Find <n>-<end>, the last one of the name. */
static bool find_range(const char *name, struct sibling *ret)
{
    struct sibling found = {.file = ret->file};
    bool any = false;

    for (const char *p = name; *p; p++) {
        size_t digits, more;

        if (!siblings_is_digit(*p) || (p > name && siblings_is_digit(p[-1])) ||
            !siblings_read_number(p, &digits, &found.number) ||
            (p[digits] != '-' && p[digits] != '_') ||
            !siblings_read_number(p + digits + 1, &more, &found.end) || found.number >= found.end)
            continue;
        found.at = (size_t)(p - name);
        found.digits = digits + 1 + more;
        *ret = found;
        any = true;
    }
    return any;
}

/* ---- sets ---- */

/* By what the names have next to their numbers, then by number. */
static int compare_rest(const struct sibling *a, const struct sibling *b, const char *const *name)
{
    const char *x = name[a->file], *y = name[b->file];
    int order = text_compare(x, a->at, y, b->at);

    return order ? order : strcmp(x + a->at + a->digits, y + b->at + b->digits);
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct sibling *x = a, *y = b;
    const char *const *name = ctx;
    int order = compare_rest(x, y, name);

    if (!order && x->number != y->number)
        order = x->number < y->number ? -1 : 1;
    return order ? order : strcmp(name[x->file], name[y->file]);
}

static int siblings_add_set(struct siblings *s, const struct sibling *member, size_t n,
                            size_t *n_members)
{
    if (array_capacity(&s->set, s->n, sizeof(*s->set)) < 0)
        return -ENOMEM;
    s->set[s->n++] = (struct sibling_set){*n_members, n, member->total};
    for (size_t i = 0; i < n; i++) {
        s->member[(*n_members)++] = member[i];
        s->set_of[member[i].file] = s->n;
    }
    return 0;
}

/* The step from the end of a range to the start of the next one: 0, or 1 if ends are included. -1:
 * the n ranges overlap, or none follows another. */
static int range_step(const struct sibling *member, size_t n)
{
    bool follows[2] = {false, false};

    for (size_t i = 1; i < n; i++) {
        uint64_t end = member[i - 1].end, start = member[i].number;

        if (start < end)
            return -1;
        if (start - end <= 1)
            follows[start - end] = true;
    }
    return follows[0] == follows[1] ? -1 : follows[1];
}

/* Make sets of those of the n candidates that differ by the number found last. */
static int make_sets(struct siblings *s, struct sibling *candidate, size_t n, size_t *n_members)
{
    int r = 0;

    if (n)
        qsort_r(candidate, n, sizeof(*candidate), compare, (void *)(uintptr_t)s->name);
    for (size_t i = 0, end; i < n && r == 0; i = end) {
        for (end = i + 1; end < n && !compare_rest(&candidate[i], &candidate[end], s->name);)
            end++;
        if (candidate[i].end && range_step(&candidate[i], end - i) < 0)
            continue;
        if (end - i > 1 || candidate[i].total)
            r = siblings_add_set(s, &candidate[i], end - i, n_members);
    }
    return r;
}

static int compare_sets(const void *a, const void *b, void *ctx)
{
    const struct siblings *s = ctx;
    const struct sibling_set *x = a, *y = b;

    return strcmp(s->name[s->member[x->first].file], s->name[s->member[y->first].file]);
}

/* Find what names may differ by: <n>-of-<N>, then a number from the end of the name, then a range.
 */
static bool siblings_find_place(const char *name, unsigned which, struct sibling *ret)
{
    ret->end = 0;
    if (!which)
        return find_of(name, ret);
    return which <= NUMBERS ? find_number(name, which - 1, ret) : find_range(name, ret);
}

int siblings_find(const char *const *name, size_t n, struct siblings *ret)
{
    AUTO_SIBLINGS struct siblings s = {0};
    AUTO_FREE struct sibling *candidate = calloc(n + 1, sizeof(*candidate));
    size_t n_members = 0;
    int r = 0;

    s.member = calloc(n + 1, sizeof(*s.member));
    s.set_of = calloc(n + 1, sizeof(*s.set_of));
    s.name = calloc(n + 1, sizeof(*s.name));
    if (!candidate || !s.member || !s.set_of || !s.name)
        return -ENOMEM;
    memcpy(s.name, name, n * sizeof(*name));
    for (unsigned which = 0; which <= NUMBERS + 1 && r == 0; which++) {
        size_t n_found = 0;

        for (size_t i = 0; i < n; i++) {
            candidate[n_found].file = i;
            if (!s.set_of[i] && siblings_find_place(name[i], which, &candidate[n_found]))
                n_found++;
        }
        r = make_sets(&s, candidate, n_found, &n_members);
    }
    if (r < 0)
        return r;
    if (s.n)
        qsort_r(s.set, s.n, sizeof(*s.set), compare_sets, &s);
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < s.set[i].n; k++)
            s.set_of[s.member[s.set[i].first + k].file] = i + 1;
    *ret = s;
    s = (struct siblings){0};
    return 0;
}

void siblings_release(struct siblings *siblings)
{
    free(siblings->name);
    free(siblings->member);
    free(siblings->set);
    free(siblings->set_of);
    *siblings = (struct siblings){0};
}

bool are_siblings(const char *a, const char *b)
{
    AUTO_SIBLINGS struct siblings s = {0};

    return siblings_find((const char *const[]){a, b}, 2, &s) == 0 && s.set_of[0] &&
           s.set_of[0] == s.set_of[1];
}

/* ---- what is said of a set ---- */

/* Where the name goes on behind "-of-<N>". */
static const char *after_total(const char *p)
{
    p += siblings_is_joint(*p);
    p += strlen("of");
    p += siblings_is_joint(*p);
    return p + strspn(p, "0123456789");
}

bool sibling_set_name(const struct siblings *siblings, size_t set, char *ret, size_t size)
{
    const struct sibling *first = &siblings->member[siblings->set[set].first];
    const char *name = siblings->name[first->file], *tail = name + first->at + first->digits;
    size_t len = first->at;
    int n;

    while (len && siblings_is_joint(name[len - 1]))
        len--;
    if (first->total)
        tail = after_total(tail);
    n = snprintf(ret, size, "%.*s%s", (int)len, name, len ? tail : tail + siblings_is_joint(*tail));
    return n > 0 && (size_t)n < size;
}

size_t sibling_set_other(const struct siblings *siblings, size_t set)
{
    char this_name[512], other[512];

    if (!siblings->set[set].total || !sibling_set_name(siblings, set, this_name, sizeof(this_name)))
        return set;
    for (size_t i = 0; i < siblings->n; i++)
        if (i != set && siblings->set[i].total &&
            siblings->set[i].total != siblings->set[set].total &&
            sibling_set_name(siblings, i, other, sizeof(other)) && !strcmp(this_name, other))
            return i;
    return set;
}

/* Add the name that a member of the same set would have. */
static void siblings_add_name(const struct siblings *siblings, const struct sibling *like,
                              uint64_t number, struct text *t)
{
    const char *name = siblings->name[like->file], *tail = name + like->at + like->digits;
    int width = name[like->at] == '0' || like->total ? (int)like->digits : 1;

    text_add_bytes(t, name, like->at);
    text_add(t, "%0*llu%s", width, (unsigned long long)number, tail);
}

int sibling_set_lacks(const struct siblings *siblings, size_t set, uint64_t number,
                      const char *reason, struct missing_parts *ret)
{
    AUTO_TEXT struct text t = {0};

    siblings_add_name(siblings, &siblings->member[siblings->set[set].first], number, &t);
    return t.failed ? -ENOMEM : missing_parts_add(ret, t.data, reason);
}

/* What is asked about a name that a set lacks. */
struct search {
    const struct siblings *siblings;
    bool (*exists)(const void *ctx, const char *name);
    const void *ctx;
    struct missing_parts *ret;
};

/* Add the name that the set's member of that number would have. may_be_last: if numbers begin at 1,
 * the last one is missing instead. */
static int siblings_add_missing(const struct search *search, const struct sibling *like,
                                uint64_t number, bool may_be_last)
{
    AUTO_TEXT struct text t = {0};

    siblings_add_name(search->siblings, like, number, &t);
    if (t.failed)
        return -ENOMEM;
    if (search->exists && search->exists(search->ctx, t.data))
        return 0;
    if (search->exists && text_ends_with(t.data, ".tar")) { /* x-1.tgz is x-1.tar, packed */
        memcpy(t.data + t.len - 2, "gz", 2);
        if (search->exists(search->ctx, t.data))
            return 0;
        memcpy(t.data + t.len - 2, "ar", 2);
    }
    return missing_parts_add(search->ret, t.data,
                             may_be_last ? "no such file, or the last one, if numbers begin at 1"
                                         : "no such file");
}

/* Add the ranges that no file has between others. */
static int add_missing_ranges(const struct search *search, const struct sibling *member, size_t n)
{
    uint64_t step = (uint64_t)range_step(member, n);
    int r = 0;

    for (size_t i = 1; i < n && r == 0; i++) {
        const char *name = search->siblings->name[member[i].file], *number = name + member[i].at;
        int width = *number == '0' ? (int)strspn(number, "0123456789") : 1;
        AUTO_TEXT struct text t = {0};

        if (member[i].number == member[i - 1].end + step)
            continue;
        text_add_bytes(&t, name, member[i].at);
        text_add(&t, "%0*llu%c%0*llu%s", width, (unsigned long long)(member[i - 1].end + step),
                 number[strspn(number, "0123456789")], width,
                 (unsigned long long)(member[i].number - step), number + member[i].digits);
        r = t.failed ? -ENOMEM : missing_parts_add(search->ret, t.data, "no file has this range");
    }
    return r;
}

int sibling_set_missing(const struct siblings *siblings, size_t set,
                        bool (*exists)(const void *ctx, const char *name), const void *ctx,
                        struct missing_parts *ret)
{
    const struct search search = {siblings, exists, ctx, ret};
    const struct sibling_set *this_set = &siblings->set[set];
    const struct sibling *member = &siblings->member[this_set->first],
                         *last = &member[this_set->n - 1];
    uint64_t least = member->number, next, end;
    bool in_doubt = false;
    int r = 0;

    if (member->end)
        return add_missing_ranges(&search, member, this_set->n);
    if (this_set->total) { /* numbers begin with 0 or with 1 */
        next = least && last->number == this_set->total;
        end = this_set->total + next;
        in_doubt = least && !next;
    } else {
        next = least;
        end = last->number + 1;
        if (least > 1 || end - least > 2 * (uint64_t)this_set->n)
            return 0;
    }
    for (size_t i = 0; i <= this_set->n && r == 0; i++) {
        uint64_t to = i < this_set->n ? member[i].number : end;

        for (; next < to && next < end && r == 0; next++)
            r = siblings_add_missing(&search, i < this_set->n ? &member[i] : last, next,
                                     in_doubt && !next);
        next = max_u64(next, to + 1);
    }
    return r;
}
