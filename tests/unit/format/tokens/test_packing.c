/* Packing, against best fit written as the rule says it; and kept packings of other documents. */
#include "format/tokens/packing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/text.h"
#include "support/memory_blob.h"
#include "support/one_store.h"
#include "support/random.h"
#include "support/unit.h"

#define DOCUMENTS_MOST 200

/* A stream of documents of these lengths, as datatrove says where they end. */
struct fixture {
    struct token_stream s;
    uint64_t ends[DOCUMENTS_MOST + 1];
    size_t n;
};

static void fixture_init(struct fixture *f, const uint64_t *length, size_t n)
{
    uint64_t tokens = 0;

    *f = (struct fixture){.n = n};
    for (size_t i = 0; i < n; i++) {
        tokens += length[i];
        store_le64((uint8_t *)&f->ends[i], tokens);
    }
    f->s = (struct token_stream){.layout = TOKENS_DATATROVE, .dtype = DTYPE_U1, .width = 1};
    f->s.base.blob = memory_blob_new("x.ds", (const uint8_t *)f->ends, 0, 0, NULL);
    f->s.index = memory_blob_new("x.ds.index", (const uint8_t *)f->ends, 8 * n, 8 * n, NULL);
    assert_true(f->s.base.blob && f->s.index);
    f->s.tokens = tokens;
    f->s.documents = (struct documents){.table = DOCUMENTS_ENDS, .n = n};
}

static void fixture_release(struct fixture *f)
{
    packing_free(f->s.packing);
    blob_free(f->s.base.blob);
    blob_free(f->s.index);
}

static const struct packing *prepare(struct fixture *f, uint64_t tokens, uint64_t together,
                                     const struct index_store *keep)
{
    const struct format_setup setup = {.keep = keep, .options = {.seq = tokens, .pack = together}};
    struct diag d = DIAG_INIT;
    int r;

    assert_int_equal(packing_new(&f->s, &setup, &f->s.packing), 0);
    do
        r = prepared_step(&f->s.packing->prepared, &d);
    while (r == 0);
    assert_int_equal(r, 1);
    return f->s.packing;
}

static int find(const struct fixture *f, uint64_t sample, struct window *ret)
{
    static const struct windows w;

    *ret = (struct window){.w = &w, .s = &f->s};
    ret->piece = &ret->one;
    return packing_find(READ_WAITS, f->s.packing, sample, ret, NULL);
}

/* All samples as "document:first+tokens", + between pieces and ; between samples. */
static void show_found(const struct fixture *f, struct text *t)
{
    for (uint64_t k = 0; k < f->s.packing->samples; k++) {
        AUTO_WINDOW struct window x;

        assert_int_equal(find(f, k, &x), 0);
        for (size_t i = 0; i < x.n; i++) {
            size_t d = 0;

            while (x.piece[i].start >= f->ends[d])
                d++;
            text_add(t, "%s%zu:%llu+%llu",
                     i   ? "+"
                     : k ? "; "
                         : "",
                     d, (unsigned long long)(x.piece[i].start - (d ? f->ends[d - 1] : 0)),
                     (unsigned long long)x.piece[i].tokens);
        }
    }
}

/* The same by the rule: pieces by falling length; of the bins that take one, the fullest, and of
 * equally full ones the first. */
static void show_expected(const uint64_t *length, size_t n, uint64_t tokens, size_t together,
                          struct text *t)
{
    const char *between = "";

    for (size_t from = 0; from < n; from += together) {
        size_t to = from + together < n ? from + together : n, bins = 0, first[DOCUMENTS_MOST];
        uint64_t space[DOCUMENTS_MOST], left[DOCUMENTS_MOST];
        struct text bin[DOCUMENTS_MOST] = {{0}};

        for (size_t d = from; d < to; d++) {
            uint64_t full = length[d] ? (length[d] - 1) / tokens : 0;

            left[d] = length[d] ? (length[d] - 1) % tokens : 0;
            first[d] = full * tokens;
            for (uint64_t j = 0; j < full; j++, between = "; ")
                text_add(t, "%s%zu:%llu+%llu", between, d, (unsigned long long)(j * tokens),
                         (unsigned long long)tokens + 1);
        }
        for (uint64_t r = tokens - 1; r; r--)
            for (size_t d = from; d < to; d++) {
                size_t best = bins;

                if (left[d] != r)
                    continue;
                for (size_t b = 0; b < bins; b++)
                    if (space[b] > r && (best == bins || space[b] < space[best]))
                        best = b;
                if (best == bins)
                    space[bins++] = tokens + 1;
                space[best] -= r + 1;
                text_add(&bin[best], "%s%zu:%zu+%llu", bin[best].len ? "+" : "", d, first[d],
                         (unsigned long long)r + 1);
            }
        for (size_t b = 0; b < bins; b++, between = "; ") {
            text_add(t, "%s%s", between, bin[b].data);
            text_release(&bin[b]);
        }
    }
}

UNIT_TEST(test_packing__examples__as_the_page_has_them)
{
    static const struct {
        uint64_t length[8];
        size_t n;
        uint64_t tokens, together;
        const char *samples;
    } rows[] = {
        {{5, 9, 1, 0, 17, 3}, 6, 8, 6, "1:0+9; 4:0+9; 4:8+9; 0:0+5+5:0+3"},
        {{5, 4, 3, 3, 2, 2, 2}, 7, 8, 7, "0:0+5+1:0+4; 2:0+3+3:0+3+4:0+2; 5:0+2+6:0+2"},
        {{5, 4, 3, 3, 2, 2, 2}, 7, 8, 3, "0:0+5+1:0+4; 2:0+3; 3:0+3+4:0+2+5:0+2; 6:0+2"},
        {{9, 10, 18, 8}, 4, 8, 4, "0:0+9; 1:0+9; 2:0+9; 2:8+9; 3:0+8; 1:8+2+2:16+2"},
        {{1, 0, 1}, 3, 8, 3, ""},
        {{2, 2, 2, 2, 2, 2, 2}, 7, 4, 7, "0:0+2+1:0+2; 2:0+2+3:0+2; 4:0+2+5:0+2; 6:0+2"},
        {{6, 6, 3, 3, 3}, 5, 8, 5, "0:0+6+2:0+3; 1:0+6+3:0+3; 4:0+3"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT struct text found = {0}, expected = {0};
        struct fixture f;

        fixture_init(&f, rows[i].length, rows[i].n);
        prepare(&f, rows[i].tokens, rows[i].together, &no_store);
        show_found(&f, &found);
        show_expected(rows[i].length, rows[i].n, rows[i].tokens, rows[i].together, &expected);
        assert_string_equal(found.data ? found.data : "", rows[i].samples);
        assert_string_equal(expected.data ? expected.data : "", rows[i].samples);
        fixture_release(&f);
    }
}

#ifdef SLOW_BUILD
#define ROUNDS 1000
#else
#define ROUNDS 10000
#endif

UNIT_TEST(test_packing__random_documents__as_the_rule)
{
    uint64_t seed = RANDOM_SEED;

    for (unsigned round = 0; round < ROUNDS; round++) {
        AUTO_TEXT struct text found = {0}, expected = {0};
        uint64_t tokens = 1 + random_below(&seed, 40), length[DOCUMENTS_MOST];
        uint64_t most = 1 + random_below(&seed, 3 * tokens);
        size_t n = random_below(&seed, round % 50 ? 25 : DOCUMENTS_MOST);
        size_t together = 1 + random_below(&seed, n + 3);
        struct fixture f;

        for (size_t i = 0; i < n; i++)
            length[i] = random_below(&seed, most);
        fixture_init(&f, length, n);
        prepare(&f, tokens, together, &no_store);
        show_found(&f, &found);
        show_expected(length, n, tokens, together, &expected);
        assert_string_equal(found.data ? found.data : "", expected.data ? expected.data : "");
        fixture_release(&f);
    }
}

/* ---- kept packings ---- */

static unsigned removed;

static void count_removed(const struct index_store *keep, const char *type, const char *identity)
{
    (void)keep;
    (void)type;
    (void)identity;
    removed++;
}

static struct iovec forged;

static int load_forged(const struct index_store *keep, const char *type, const char *identity,
                       struct kept_index *ret)
{
    (void)keep;
    (void)type;
    (void)identity;
    *ret = (struct kept_index){.bytes = malloc(forged.iov_len), .size = forged.iov_len};
    assert_non_null(ret->bytes);
    memcpy(ret->bytes, forged.iov_base, forged.iov_len);
    return 0;
}

static int save_nowhere(const struct index_store *keep, const char *type, const char *identity,
                        const char *source, const struct iovec *pieces, unsigned n,
                        struct kept_index *ret, struct diag *d)
{
    (void)keep;
    (void)type;
    (void)identity;
    (void)source;
    (void)pieces;
    (void)n;
    (void)ret;
    return diag_set(d, -EROFS, "not kept here");
}

static const struct index_store_ops forged_ops = {
    .load = load_forged, .save = save_nowhere, .remove = count_removed};
static const struct index_store forged_store = {.ops = &forged_ops};

/* The bytes of an index of n rows of sample, full, document. */
static void forge(uint64_t rows[][3], size_t n, const uint64_t end[3], const uint64_t *about,
                  size_t n_about)
{
    const struct index_shape shape = {.columns = 3, .rising = 3};
    struct iovec pieces[INDEX_PIECES];
    AUTO_INDEX_BUILDER struct index_builder *b = NULL;
    AUTO_TEXT struct text t = {0};
    struct index index;

    assert_int_equal(index_builder_new(&shape, &b), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(index_add(b, NULL, 0, rows[i]), 0);
    assert_int_equal(index_finish(b, end, NULL, NULL, &index), 0);
    assert_int_equal(index_bytes(b, about, 8 * n_about, &index, pieces), 0);
    for (size_t i = 0; i < INDEX_PIECES; i++)
        text_add_bytes(&t, pieces[i].iov_base, pieces[i].iov_len);
    free(forged.iov_base);
    assert_int_equal(text_finish(&t, (char **)&forged.iov_base, &forged.iov_len), 0);
}

/* Documents of 5, 9, 3 and 2 tokens, T = 8: "1:0+9; 0:0+5+2:0+3; 3:0+2". */
UNIT_TEST(test_packing__forged__right_or_refused)
{
    static const uint64_t length[] = {5, 9, 3, 2};
    static struct {
        const char *what;
        uint64_t rows[3][3], end[3], about[4];
        unsigned removed; /* when it is loaded */
        const char *found;
    } rows[] = {
        {"right", {{1, 1, 0}, {1, 1, 2}, {2, 1, 3}}, {3, 1}, {0, 15, 0, 1}, 0, "0 0 0"},
        {"a document beyond the last",
         {{1, 1, 0}, {1, 1, 9}, {2, 1, 3}},
         {3, 1},
         {0, 15, 0, 1},
         0,
         "0 - 0"},
        {"a document without a piece",
         {{1, 1, 0}, {1, 1, 1}, {2, 1, 3}},
         {3, 1},
         {0, 15, 0, 1},
         0,
         "0 - 0"},
        {"more than T + 1 tokens",
         {{1, 1, 0}, {1, 1, 0}, {2, 1, 3}},
         {3, 1},
         {0, 15, 0, 1},
         0,
         "0 - 0"},
        {"full windows after samples",
         {{1, 7, 0}, {1, 7, 2}, {2, 7, 3}},
         {9, 7},
         {0, 15, 0, 7},
         0,
         "0 0 0 - - - - - -"},
        {"more full windows than documents have",
         {{2, 2, 0}, {2, 2, 2}, {3, 2, 3}},
         {4, 2},
         {0, 15, 0, 2},
         0,
         "0 - 0 0"},
        {"more bins than pieces",
         {{1, 1, 0}, {1, 1, 2}, {2, 1, 3}},
         {9, 1},
         {0, 15, 0, 1},
         1,
         "0 0 0"},
        {"another sum of full windows",
         {{1, 1, 0}, {1, 1, 2}, {2, 1, 3}},
         {3, 1},
         {0, 15, 0, 2},
         1,
         "0 0 0"},
        {"full windows that begin late",
         {{1, 1, 0}, {1, 1, 2}, {2, 1, 3}},
         {3, 1},
         {0, 15, 1, 1},
         1,
         "0 0 0"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT struct text found = {0};
        struct fixture f;

        removed = 0;
        fixture_init(&f, length, ARRAY_LEN(length));
        forge(rows[i].rows, 3, rows[i].end, rows[i].about, 4);
        prepare(&f, 8, 4, &forged_store);
        assert_int_equal(removed, rows[i].removed);
        for (uint64_t k = 0; k < f.s.packing->samples; k++) {
            AUTO_WINDOW struct window x;
            int r = find(&f, k, &x);

            assert_true(r == 0 || r == -ESTALE);
            text_add(&found, "%s%s", k ? " " : "", r ? "-" : "0");
            for (size_t p = 0; p < x.n && r == 0; p++)
                assert_true(x.piece[p].start + x.piece[p].tokens <= f.s.tokens);
        }
        if (strcmp(found.data, rows[i].found))
            fail_msg("%s: found %s, expected %s", rows[i].what, found.data, rows[i].found);
        fixture_release(&f);
    }
    free(forged.iov_base);
    forged = (struct iovec){0};
}
