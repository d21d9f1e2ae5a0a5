/* Listings of S3 in ranges, against a bucket that is made up: every key once, whatever the keys are
 * and however large the server makes its pages; with kept pages one request for each, and only what
 * has changed is used; servers that do not sort, or ignore where a page is to begin. */
#include "cache/source/s3_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/http/url.h"
#include "support/fake_http.h"
#include "support/random.h"
#include "support/unit.h"

#define KEYS_MOST 6000

/* ---- the bucket ---- */

static struct {
    char key[KEYS_MOST][48]; /* sorted */
    unsigned version[KEYS_MOST];
    size_t n, page;
    bool ignores_start, unsorted, endless;
    size_t pages, folders; /* requests for pages, and for pages of folders */
    size_t longest;        /* pages in a row, each of which names the next one */
} bucket;

static int compare_keys(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void bucket_sort(void)
{
    size_t n = 0;

    qsort(bucket.key, bucket.n, sizeof(bucket.key[0]), compare_keys);
    for (size_t i = 0; i < bucket.n; i++)
        if (!n || strcmp(bucket.key[n - 1], bucket.key[i]) != 0)
            memmove(bucket.key[n++], bucket.key[i], sizeof(bucket.key[0]));
    bucket.n = n;
}

/* The value of a parameter; false: it is not there. */
static bool parameter(const char *url, const char *name, char *ret, size_t capacity)
{
    const char *at = strchr(url, '?');
    size_t len = strlen(name);
    char value[256];

    for (; at; at = strchr(at + 1, '&')) {
        if (strncmp(at + 1, name, len) != 0 || at[1 + len] != '=')
            continue;
        snprintf(value, sizeof(value), "%.*s", (int)strcspn(at + len + 2, "&"), at + len + 2);
        assert_true(strlen(value) < capacity);
        assert_true(url_decode(value, strlen(value), ret));
        return true;
    }
    return false;
}

/* Add folders or objects from key `from` on; row: pages before it in a row. */
static void add_entries(struct text *t, const char *prefix, bool by_folder, size_t from, size_t row)
{
    size_t len = strlen(prefix), n = 0;
    char last[64] = "", token[64] = "";
    AUTO_TEXT struct text body = {0};

    for (size_t i = from; i < bucket.n; i++) {
        size_t at = bucket.unsorted ? bucket.n - 1 - i : i;
        const char *key = bucket.key[at], *slash = strchr(key + len, '/');

        if (strncmp(key, prefix, len) != 0)
            continue;
        if (by_folder && slash && !strncmp(last, key, (size_t)(slash - key) + 1))
            continue;
        if (n == bucket.page) {
            snprintf(token, sizeof(token), "%zu+%zu", i, row + 1);
            break;
        }
        n++;
        if (by_folder && slash) {
            snprintf(last, sizeof(last), "%.*s", (int)(slash - key) + 1, key);
            text_add(&body, "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>", last);
            continue;
        }
        text_add(&body,
                 "<Contents><Key>%s</Key><Size>%zu</Size><ETag>&quot;%032x&quot;</ETag></Contents>",
                 key, strlen(key), bucket.version[at]);
    }
    if (bucket.endless && !*token)
        snprintf(token, sizeof(token), "%zu-%zu", bucket.n, bucket.pages);
    text_add(t, "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>%s</IsTruncated>",
             *token ? "true" : "false");
    if (*token)
        text_add(t, "<NextContinuationToken>%s</NextContinuationToken>", token);
    text_add_bytes(t, body.data ? body.data : "", body.len);
    text_add(t, "</ListBucketResult>");
}

static int serve(const char *url, struct text *ret)
{
    char prefix[64] = "", after[64] = "", token[64], delimiter[8];
    bool by_folder = parameter(url, "delimiter", delimiter, sizeof(delimiter));
    size_t from = 0, row = 0;
    char *end;

    parameter(url, "prefix", prefix, sizeof(prefix));
    bucket.pages += !by_folder;
    bucket.folders += by_folder;
    if (parameter(url, "continuation-token", token, sizeof(token))) {
        from = strtoull(token, &end, 10);
        row = *end == '+' ? strtoull(end + 1, NULL, 10) : 0;
        bucket.longest = by_folder || row < bucket.longest ? bucket.longest : row;
    } else if (parameter(url, "start-after", after, sizeof(after)) && !bucket.ignores_start)
        while (from < bucket.n && strcmp(bucket.key[from], after) <= 0)
            from++;
    add_entries(ret, prefix, by_folder, from, row);
    return 0;
}

/* ---- walks ---- */

static unsigned used[KEYS_MOST]; /* how often each key was used */
static size_t n_used;
static bool in_order; /* those of a walk from page to page */

static void forget_used(void)
{
    memset(used, 0, sizeof(used));
    n_used = 0;
    in_order = false;
}

static int use(struct s3_walk *walk, const struct s3_object *object, size_t n, struct diag *d)
{
    (void)d;
    if (walk->one_range && !in_order) { /* all come again */
        forget_used();
        in_order = true;
    }
    for (size_t i = 0; i < n; i++) {
        const char(*found)[48] =
            bsearch(object[i].key, bucket.key, bucket.n, sizeof(bucket.key[0]), compare_keys);

        assert_non_null(found);
        used[found - (const char(*)[48])bucket.key]++;
        n_used++;
    }
    return 0;
}

static int failed(struct s3_walk *walk, int r, const struct text *answer, const struct diag *why,
                  struct diag *d)
{
    (void)walk;
    (void)answer;
    return diag_set(d, r, "%s", diag_text(why, r));
}

static void walk_end(struct s3_walk *walk)
{
    known_release(walk->known);
    free(walk->known);
    s3_walk_release(walk);
}

static int walk_bucket(const char *prefix, const struct known *kept, struct s3_walk *ret,
                       struct diag *d)
{
    struct http *http;
    int r;

    assert_int_equal(http_new(&(struct http_options){.jobs = 1}, &http, NULL), 0);
    *ret = (struct s3_walk){.http = http,
                            .listing = "http://s3/b",
                            .prefix = prefix,
                            .shown = "s3://b/",
                            .use = use,
                            .failed = failed,
                            .known = calloc(1, sizeof(struct known)),
                            .kept = kept};
    assert_non_null(ret->known);
    fake_http_set(NULL, 0);
    fake_http_serve = serve;
    forget_used();
    bucket.pages = bucket.folders = bucket.longest = 0;
    r = s3_walk(ret, d);
    transport_free(http_transport(http));
    return r;
}

/* Every key below the prefix was used once, and no other. */
static void check_all_once(const char *prefix)
{
    for (size_t i = 0; i < bucket.n; i++)
        assert_int_equal(used[i], !strncmp(bucket.key[i], prefix, strlen(prefix)));
}

/* Folders of uneven sizes, some deep, files between them, and no folder at all for some seeds. */
static void make_keys(uint64_t seed, size_t n)
{
    uint64_t rng = seed;

    memset(&bucket, 0, sizeof(bucket));
    for (size_t i = 0; i < n; i++) {
        unsigned long long a = random_next(&rng) % 100, b = random_next(&rng) % 7,
                           c = random_next(&rng);

        if (seed % 4 == 0)
            snprintf(bucket.key[i], sizeof(bucket.key[i]), "d/%llu", c);
        else if (a < 10)
            snprintf(bucket.key[i], sizeof(bucket.key[i]), "d/%llu.jpg", c % 1000);
        else if (a < 15)
            snprintf(bucket.key[i], sizeof(bucket.key[i]), "e/%llu.jpg", c % 1000);
        else
            snprintf(bucket.key[i], sizeof(bucket.key[i]), "d/%s/c%02llu/%llu.jpg",
                     b < 5 ? "train" : "val", a, c % 100000);
    }
    bucket.n = n;
    bucket_sort();
    for (size_t i = 0; i < bucket.n; i++)
        bucket.version[i] = (unsigned)i;
}

UNIT_TEST(test_walk__any_keys_and_pages__each_key_once)
{
    static const size_t sizes[] = {0, 1, 9, 10, 11, 100, 3000};

    for (uint64_t seed = 4; seed < 8; seed++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            AUTO(walk_end) struct s3_walk walk;

            make_keys(seed, sizes[i]);
            bucket.page = i % 2 ? 10 : 7;
            assert_int_equal(walk_bucket("d/", NULL, &walk, NULL), 0);
            check_all_once("d/");
            assert_int_equal(walk.any, n_used > 0);
            walk_end(&walk);
            assert_int_equal(walk_bucket("", NULL, &walk, NULL), 0);
            check_all_once("");
        }
}

/* Ranges cost at most a page each, and folders are asked for side by side. */
UNIT_TEST(test_walk__folders__side_by_side)
{
    AUTO(walk_end) struct s3_walk walk;

    make_keys(5, 6000);
    bucket.page = 20;
    assert_int_equal(walk_bucket("d/", NULL, &walk, NULL), 0);
    check_all_once("d/");
    assert_true(walk.known->n_pages > n_used / 20);
    assert_true(bucket.pages <= 3 * n_used / 20 / 2); /* long ranges are split at guesses */
    assert_true(bucket.folders <= 32);
    assert_true(fake_http.aheads >=
                bucket.pages * 9 / 10); /* the last range has its pages in turn */
}

/* Keys of one folder: numbers, hashes, names with numbers; ranges that are long are split. */
UNIT_TEST(test_walk__one_flat_folder__side_by_side)
{
    static const char *const forms[] = {"d/%07llu.jpg", "d/image_%010llu.png", "d/%llx",
                                        "d/é%05llu"};

    for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
        AUTO(walk_end) struct s3_walk walk;

        memset(&bucket, 0, sizeof(bucket));
        bucket.n = KEYS_MOST;
        bucket.page = 5;
        for (unsigned long long i = 0; i < KEYS_MOST; i++)
            snprintf(bucket.key[i], sizeof(bucket.key[0]), forms[f],
                     f == 2 ? (i + 1) * UINT64_C(0x9e3779b97f4a7c15) : i);
        bucket_sort();
        assert_int_equal(walk_bucket("d/", NULL, &walk, NULL), 0);
        check_all_once("d/");
        assert_true(bucket.pages <= 2 * bucket.n / bucket.page);
        assert_true(bucket.longest <= bucket.n / bucket.page / 8);
    }
}

UNIT_TEST(test_walk__one_page__one_request)
{
    AUTO(walk_end) struct s3_walk walk;

    make_keys(5, 500);
    bucket.page = 1000;
    assert_int_equal(walk_bucket("d/", NULL, &walk, NULL), 0);
    assert_int_equal(bucket.pages + bucket.folders, 1);
}

UNIT_TEST(test_walk__kept_and_unchanged__each_page_once_and_nothing_used)
{
    AUTO(walk_end) struct s3_walk first, second;

    make_keys(5, 5000);
    bucket.page = 20;
    assert_int_equal(walk_bucket("d/", NULL, &first, NULL), 0);
    assert_true(first.sorted);
    known_sort_pages(first.known);
    assert_int_equal(walk_bucket("d/", first.known, &second, NULL), 0);
    assert_int_equal(second.n_same, first.known->n_pages);
    assert_int_equal(bucket.pages, first.known->n_pages);
    assert_int_equal(bucket.folders, 0);
    assert_int_equal(n_used, 0);
    assert_int_equal(fake_http.aheads, bucket.pages); /* none waits for another one */
    assert_true(second.any);
}

/* What is used, and what is below pages that are the same, is all there is. */
UNIT_TEST(test_walk__kept_and_changed__what_has_changed_is_used)
{
    for (uint64_t seed = 1; seed < 40; seed++) {
        AUTO(walk_end) struct s3_walk first, second, third;
        static char old[KEYS_MOST][48];
        uint64_t rng = seed;
        size_t n_old, removed = 0;

        make_keys(seed, 2000);
        bucket.page = 1 + seed % 30;
        assert_int_equal(walk_bucket("d/", NULL, &first, NULL), 0);
        known_sort_pages(first.known);
        memcpy(old, bucket.key, sizeof(old));
        n_old = bucket.n;
        for (size_t i = 0; i < seed; i++) {
            size_t at = random_next(&rng) % n_old;

            if (i % 3 == 0)
                bucket.version[at]++;
            else if (i % 3 == 1)
                snprintf(bucket.key[bucket.n++], sizeof(bucket.key[0]), "d/%llu/new",
                         (unsigned long long)random_next(&rng) % 1000);
            else if (bucket.key[at][0])
                bucket.key[at][0] = '\0', removed++;
        }
        if (seed > 1) { /* versions move with the keys, which changes more of them */
            bucket_sort();
            if (removed) {
                bucket.n--;
                memmove(bucket.key, bucket.key[1], bucket.n * sizeof(bucket.key[0]));
            }
        }
        assert_int_equal(walk_bucket("d/", first.known, &second, NULL), 0);
        assert_true(second.n_same < first.known->n_pages);
        for (size_t i = 0; i < n_old; i++) {
            const char(*found)[48] =
                bsearch(old[i], bucket.key, bucket.n, sizeof(bucket.key[0]), compare_keys);

            if (strncmp(old[i], "d/", 2) != 0 || !second.same[s3_walk_page_of(first.known, old[i])])
                continue;
            assert_non_null(found);
            assert_int_equal(used[found - (const char(*)[48])bucket.key], 0);
            used[found - (const char(*)[48])bucket.key]++;
        }
        check_all_once("d/");
        known_sort_pages(second.known);
        assert_int_equal(walk_bucket("d/", second.known, &third, NULL), 0);
        assert_int_equal(third.n_same, second.known->n_pages);
    }
}

UNIT_TEST(test_walk__server_ignores_start__page_after_page)
{
    AUTO(walk_end) struct s3_walk walk;

    make_keys(5, 3000);
    bucket.page = 20;
    bucket.ignores_start = true;
    assert_int_equal(walk_bucket("d/", NULL, &walk, NULL), 0);
    check_all_once("d/");
    assert_false(walk.sorted);
}

UNIT_TEST(test_walk__server_does_not_sort__page_after_page)
{
    AUTO(walk_end) struct s3_walk walk;

    make_keys(5, 3000);
    bucket.page = 20;
    bucket.unsorted = true;
    assert_int_equal(walk_bucket("d/", NULL, &walk, NULL), 0);
    check_all_once("d/");
    assert_false(walk.sorted);
}

UNIT_TEST(test_walk__listing_does_not_end__ebadmsg)
{
    AUTO(walk_end) struct s3_walk walk;
    struct diag d = DIAG_INIT;

    make_keys(5, 100);
    bucket.page = 1000;
    bucket.endless = true;
    assert_int_equal(walk_bucket("d/", NULL, &walk, &d), -EBADMSG);
    assert_diag_has(&d, "does not end");
}
