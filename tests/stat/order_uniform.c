/* slow: a hundred million calls */
/* Is the order of docs/spec/order.md uniform? Chi-square tests over many keys, with fixed seeds, so
 * that every run prints the same figures.
 *
 *   order_uniform [SCALE]    SCALE times as many keys, default 1
 *
 * One line per test: name, chi2, degrees of freedom, z. z is chi2 brought to a standard normal by
 * Wilson and Hilferty; a test fails, and the program exits with 1, when |z| reaches 4.5. Too small
 * a chi2 fails too: that would be an order more even than chance.
 *
 * Each test runs on three walks through the keys, because a weak key schedule would show on
 * neighbouring keys first: seeds 0, 1, 2, ... of one epoch; epochs 0, 1, 2, ... of one seed; seeds
 * that differ only in high bits.
 *
 * The chi-square of a table that is not multinomial. Let X be the N x N matrix of a uniform random
 * permutation, less its mean 1/N. The symmetric group acts on rows and columns, and the space of
 * X (rows and columns sum to 0) is irreducible under it, so the covariance of X is a multiple of
 * the identity there: E|X|^2 / (N-1)^2 = 1 / (N-1). Over T orders the counts O, with mean E = T/N,
 * therefore give
 *
 *   (N-1)/N * sum (O-E)^2 / E  ~  chi-square with (N-1)^2 degrees of freedom,
 *
 * even for small E: its mean is exact and its variance is short by a factor 1 - 1/T only. If
 * columns are joined to groups of k_g (blocks that fall into group g), the normalised groups are
 * orthonormal vectors in the same space: the same formula with E = T k_g / N, and (N-1)(groups-1)
 * degrees. */

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/order_each.h"

#define LIMIT 4.5
#define MAX_N 1000
#define GROUP 8 /* blocks in a group */

/* The t-th key of a walk is (seed + t * seed_step, epoch + t * epoch_step). */
struct walk {
    const char *name;
    uint64_t seed, seed_step;
    uint64_t epoch, epoch_step;
};

static const struct walk walks[] = {
    {"seeds", 0, 1, 3, 0},
    {"epochs", 7, 0, 0, 1},
    {"high-bits", 1, UINT64_C(1) << 40, UINT64_C(1) << 63, 0},
};

static uint64_t scale = 1;
static int failures;

static void walk_order(const struct walk *w, uint64_t t, uint64_t n, uint64_t window,
                       struct order *ret)
{
    order_init(ret, w->seed + t * w->seed_step, w->epoch + t * w->epoch_step, n, window);
}

static void verdict(const char *walk, const char *test, double chi2, double df)
{
    double v = 2 / (9 * df);
    double z = (cbrt(chi2 / df) - (1 - v)) / sqrt(v);
    bool bad = !(fabs(z) < LIMIT);
    char name[80];

    failures += bad;
    snprintf(name, sizeof(name), "%s/%s", walk, test);
    printf("%-36s %12.1f %8.0f %6.2f%s\n", name, chi2, df, z, bad ? "  FAIL" : "");
}

static void verdict_exact(const char *test, uint64_t cases, uint64_t wrong)
{
    failures += wrong != 0;
    printf("%-36s %" PRIu64 " cases, %" PRIu64 " wrong%s\n", test, cases, wrong,
           wrong ? "  FAIL" : "");
}

static uint64_t *counts_new(size_t n)
{
    uint64_t *counts = calloc(n, sizeof(*counts));

    if (!counts) {
        fprintf(stderr, "order_uniform: out of memory\n");
        exit(2);
    }
    return counts;
}

/* sum (O-E)^2 / E with the same E everywhere */
static double chi_square(const uint64_t *counts, size_t n, double expected)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double d = (double)counts[i] - expected;
        sum += d * d;
    }
    return sum / expected;
}

/* n x n counts of total permutations, see above */
static void verdict_matrix(const char *walk, const char *test, const uint64_t *counts, size_t n,
                           uint64_t total)
{
    double dn = (double)n;

    verdict(walk, test, chi_square(counts, n * n, (double)total / dn) * (dn - 1) / dn,
            (dn - 1) * (dn - 1));
}

/* cells of a multinomial: one count per trial */
static void verdict_cells(const char *walk, const char *test, const uint64_t *counts, size_t n,
                          uint64_t total)
{
    verdict(walk, test, chi_square(counts, n, (double)total / (double)n), (double)n - 1);
}

static uint64_t rank_among(const uint64_t *values, size_t n, uint64_t value)
{
    uint64_t rank = 0;

    for (size_t i = 0; i < n; i++)
        rank += values[i] < value;
    return rank;
}

/* All n! permutations are equally likely. */
static void test_permutations(const struct walk *w, size_t n)
{
    uint64_t counts[120] = {0}, total = 80000 * scale, s[5];
    size_t cells = 1;
    struct order o;
    char name[32];

    for (size_t i = 2; i <= n; i++)
        cells *= i;
    for (uint64_t t = 0; t < total; t++) {
        size_t cell = 0;
        walk_order(w, t, n, 0, &o);
        order_samples(&o, 0, n, 1, s);
        for (size_t i = 0; i < n; i++)
            cell = cell * (n - i) + rank_among(s + i, n - i, s[i]);
        counts[cell]++;
    }
    snprintf(name, sizeof(name), "permutations-%zu", n);
    verdict_cells(w->name, name, counts, cells, total);
}

/* Sample after sample around the circle (the first follows the last), n (n-1) ordered pairs. The
 * symmetric and the antisymmetric part of the pair matrix have different variances, which follow
 * from their lengths as in the head of this file:
 *   (O_ab + O_ba) / 2 - mean:  |.|^2 = n (n-3) / (2 (n-1))  in n (n-3) / 2      dimensions
 *   (O_ab - O_ba) / 2:         |.|^2 = n / 2                in (n-1)(n-2) / 2   dimensions */
static void verdict_circle(const struct walk *w, const uint64_t *pairs, size_t n, uint64_t total)
{
    double dn = (double)n, dt = (double)total, mean = dt / (dn - 1), even = 0, odd = 0;
    char name[32];

    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            double ab = (double)pairs[a * n + b], ba = (double)pairs[b * n + a];
            if (a == b)
                continue;
            even += ((ab + ba) / 2 - mean) * ((ab + ba) / 2 - mean);
            odd += (ab - ba) / 2 * ((ab - ba) / 2);
        }
    }
    snprintf(name, sizeof(name), "neighbours-%zu", n);
    verdict(w->name, name, even / dt * (dn - 1), dn * (dn - 3) / 2);
    snprintf(name, sizeof(name), "before-after-%zu", n);
    verdict(w->name, name, odd / dt * (dn - 1) * (dn - 2) / dn, (dn - 1) * (dn - 2) / 2);
}

/* Position x sample; the same between each key and the next, for independence; and neighbours. */
static void test_matrix(const struct walk *w, size_t n, uint64_t total, uint64_t window)
{
    uint64_t *counts = counts_new(n * n), *next = counts_new(n * n), *pairs = counts_new(n * n);
    uint64_t now[MAX_N], before[MAX_N] = {0};
    struct order o;
    char name[48];

    total *= scale;
    for (uint64_t t = 0; t < total; t++) {
        walk_order(w, t, n, window, &o);
        order_samples(&o, 0, n, 1, now);
        for (size_t p = 0; p < n; p++) {
            counts[p * n + now[p]]++;
            next[before[p] * n + now[p]] += t > 0;
            pairs[now[p] * n + now[p + 1 < n ? p + 1 : 0]]++;
        }
        memcpy(before, now, sizeof(before));
    }
    if (window)
        snprintf(name, sizeof(name), "position-sample-%zu-window-%" PRIu64, n, window);
    else
        snprintf(name, sizeof(name), "position-sample-%zu", n);
    verdict_matrix(w->name, name, counts, n, total);
    if (!window) {
        snprintf(name, sizeof(name), "next-key-%zu", n);
        verdict_matrix(w->name, name, next, n, total - 1);
        verdict_circle(w, pairs, n, total);
    }
    free(counts);
    free(next);
    free(pairs);
}

/* The samples at p and p+1, all ordered pairs, at one place. */
static void test_pair_at(const struct walk *w, size_t n, uint64_t p, uint64_t total)
{
    size_t cells = n * (n - 1);
    uint64_t *counts = counts_new(cells), s[2];
    struct order o;
    char name[32];

    total *= scale;
    for (uint64_t t = 0; t < total; t++) {
        walk_order(w, t, n, 0, &o);
        order_samples(&o, p, 2, 1, s);
        counts[s[0] * (n - 1) + s[1] - (s[1] > s[0])]++;
    }
    snprintf(name, sizeof(name), "pair-%zu-at-%" PRIu64, n, p);
    verdict_cells(w->name, name, counts, cells, total);
    free(counts);
}

/* Even and odd permutations are equally likely, also from one key to the next. */
static void test_parity(const struct walk *w, size_t n)
{
    uint64_t counts[4] = {0}, total = 50000 * scale, s[MAX_N];
    unsigned before = 0;
    struct order o;
    char name[32];

    for (uint64_t t = 0; t < 2 * total; t++) {
        unsigned odd = 0;
        walk_order(w, t, n, 0, &o);
        order_samples(&o, 0, n, 1, s);
        for (size_t i = 0; i < n; i++)
            odd ^= (unsigned)rank_among(s + i, n - i, s[i]) & 1;
        if (t % 2)
            counts[2 * before + odd]++;
        before = odd;
    }
    snprintf(name, sizeof(name), "parity-%zu", n);
    verdict_cells(w->name, name, counts, 4, total);
}

static uint64_t bucket(uint64_t sample, uint64_t n)
{
    return sample * 64 / n; /* n is at most 2^48 */
}

/* Large n: where two positions at a distance go, in 64 x 64 cells, over many keys. */
static void test_large_keys(const struct walk *w, const char *label, uint64_t n, uint64_t p,
                            uint64_t distance)
{
    uint64_t *counts = counts_new(64 * 64), total = 60000 * scale, s[2];
    struct order o;
    char name[48];

    for (uint64_t t = 0; t < total; t++) {
        walk_order(w, t, n, 0, &o);
        order_samples(&o, p, 2, distance, s);
        counts[bucket(s[0], n) * 64 + bucket(s[1], n)]++;
    }
    snprintf(name, sizeof(name), "large-%s", label);
    verdict_cells(w->name, name, counts, 64 * 64, total);
    free(counts);
}

/* Large n: within one order, neighbours as a rank sees them (stride), in 64 x 64 cells; and
 * neighbouring samples' positions. So few of the n are drawn that drawing without replacement does
 * not show. */
static void test_large_order(const struct walk *w, const char *label, uint64_t n, uint64_t stride)
{
    uint64_t *counts = counts_new(64 * 64), *back = counts_new(64 * 64);
    uint64_t total = 60000 * scale, s[2];
    struct order o;
    char name[48];

    walk_order(w, 1, n, 0, &o);
    for (uint64_t t = 0; t < total; t++) {
        order_samples(&o, 2 * stride * t, 2, stride, s);
        counts[bucket(s[0], n) * 64 + bucket(s[1], n)]++;
        s[0] = order_position(&o, 2 * t);
        s[1] = order_position(&o, 2 * t + 1);
        back[bucket(s[0], n) * 64 + bucket(s[1], n)]++;
    }
    snprintf(name, sizeof(name), "one-order-%s-stride-%" PRIu64, label, stride);
    verdict_cells(w->name, name, counts, 64 * 64, total);
    snprintf(name, sizeof(name), "one-order-%s-inverse", label);
    if (stride == 1) /* else the same again */
        verdict_cells(w->name, name, back, 64 * 64, total);
    free(counts);
    free(back);
}

/* Windows: block x group, the last block and the last group being short. Groups before the one with
 * the short block are whole, so its group is plain from its position; it shifts the later ones. */
static void test_window_blocks(const struct walk *w, size_t blocks, uint64_t window,
                               uint64_t missing)
{
    size_t groups = (blocks + GROUP - 1) / GROUP;
    uint64_t *counts = counts_new(blocks * groups), total = 6000 * scale;
    uint64_t n = blocks * window - missing, whole = GROUP * window;
    double chi2 = 0, nb = (double)blocks;
    struct order o;
    char name[64];

    for (uint64_t t = 0; t < total; t++) {
        uint64_t of_short;
        walk_order(w, t, n, window, &o);
        of_short = order_position(&o, n - 1) / whole;
        for (size_t b = 0; b < blocks; b++) {
            uint64_t p = order_position(&o, b * window);
            counts[b * groups + (p / whole > of_short ? (p + missing) / whole : p / whole) +
                   (p / whole == of_short && p >= (of_short + 1) * whole - missing)]++;
        }
    }
    for (size_t i = 0; i < blocks * groups; i++) {
        size_t g = i % groups, size = g + 1 < groups ? GROUP : blocks - g * GROUP;
        double expected = (double)total * (double)size / nb;
        double d = (double)counts[i] - expected;
        chi2 += d * d / expected;
    }
    snprintf(name, sizeof(name), "block-group-%zu-window-%" PRIu64, blocks, window);
    verdict(w->name, name, chi2 * (nb - 1) / nb, (nb - 1) * ((double)groups - 1));
    free(counts);
}

/* Windows: the order inside a group. Whichever blocks are in it, the rank of its samples among
 * themselves is a uniform permutation, again in every group: position x rank, over all groups; and
 * the first ranks of two neighbouring groups against each other. */
static void test_window_inside(const struct walk *w, size_t groups, uint64_t window)
{
    size_t size = GROUP * window;
    uint64_t *counts = counts_new(size * size), *firsts = counts_new(size * size);
    uint64_t total = 4000 * scale, s[MAX_N];
    struct order o;
    char name[64];

    for (uint64_t t = 0; t < total; t++) {
        uint64_t before = 0;
        walk_order(w, t, groups * size, window, &o);
        for (size_t g = 0; g < groups; g++) {
            order_samples(&o, g * size, size, 1, s);
            for (size_t p = 0; p < size; p++)
                counts[p * size + rank_among(s, size, s[p])]++;
            if (g % 2)
                firsts[before * size + rank_among(s, size, s[0])]++;
            before = rank_among(s, size, s[0]);
        }
    }
    snprintf(name, sizeof(name), "inside-group-window-%" PRIu64, window);
    verdict_matrix(w->name, name, counts, size, total * groups);
    snprintf(name, sizeof(name), "two-groups-window-%" PRIu64, window);
    verdict_cells(w->name, name, firsts, size * size, total * (groups / 2));
    free(counts);
    free(firsts);
}

/* Numbers for the cases below; deliberately another kind of generator (xorshift) than the order's.
 */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* position(sample(p)) == p and sample(position(x)) == x, any n up to 2^48, full and windows */
static void test_inverse(bool windows)
{
    uint64_t state = 88172645463325252, wrong = 0, cases = 100000 * scale;
    struct order o;

    for (uint64_t i = 0; i < cases; i++) {
        uint64_t n = 1 + (draw(&state) >> (16 + draw(&state) % 48));
        uint64_t window = windows ? 1 + draw(&state) % n : 0;
        uint64_t x = draw(&state) % n, there, back;
        if (windows && i % 2)
            window = 1 + (window >> draw(&state) % 48);
        order_init(&o, draw(&state), draw(&state), n, window);
        there = order_sample(&o, x);
        back = order_position(&o, x);
        wrong += there >= n || order_position(&o, there) != x;
        wrong += back >= n || order_sample(&o, back) != x;
    }
    verdict_exact(windows ? "inverse-window" : "inverse-full", cases, wrong);
}

/* Every sample once, by order_samples() in strides and by order_sample(), n = 1 .. 400. */
static void test_complete(void)
{
    uint64_t wrong = 0, cases = 0, s[MAX_N];
    struct order o;

    for (uint64_t n = 1; n <= 400; n++) {
        for (uint64_t window = 0; window <= n + 1; window += 1 + window / 2) {
            bool seen[MAX_N] = {false};
            uint64_t stride = 1 + n % 5;
            order_init(&o, n, window, n, window);
            for (uint64_t k = 0; k < stride && k < n; k++) {
                size_t count = (size_t)((n - k + stride - 1) / stride);
                order_samples(&o, k, count, stride, s);
                for (size_t i = 0; i < count; i++) {
                    wrong += s[i] >= n || seen[s[i]] || s[i] != order_sample(&o, k + i * stride);
                    if (s[i] < n)
                        seen[s[i]] = true;
                }
            }
            cases++;
        }
    }
    verdict_exact("every-sample-once", cases, wrong);
}

static void test_walk(const struct walk *w)
{
    for (size_t n = 2; n <= 5; n++)
        test_permutations(w, n);
    test_matrix(w, 10, 50000, 0);
    test_matrix(w, 100, 10000, 0);
    test_matrix(w, 1000, 2000, 0);
    test_pair_at(w, 10, 0, 50000);
    test_pair_at(w, 10, 5, 50000);
    test_pair_at(w, 100, 0, 60000);
    test_pair_at(w, 100, 50, 60000);
    test_parity(w, 16);
    test_large_keys(w, "60000", 60000, 0, 1);
    test_large_keys(w, "10^9", 1000000000, 499999999, 1);
    test_large_keys(w, "2^48", UINT64_C(1) << 48, 0, 1);
    test_large_keys(w, "2^48-halves", UINT64_C(1) << 48, 1, UINT64_C(1) << 47);
    test_large_order(w, "10^9", 1000000000, 1);
    test_large_order(w, "2^48", UINT64_C(1) << 48, 1);
    test_large_order(w, "2^48", UINT64_C(1) << 48, 4096);
    test_matrix(w, 24, 5000, 1);
    test_matrix(w, 60, 5000, 3); /* 20 blocks, the last group has 4 */
    test_matrix(w, 40, 5000, 40);
    test_window_blocks(w, 40, 4, 0);
    test_window_blocks(w, 27, 5, 3);
    test_window_inside(w, 4, 1);
    test_window_inside(w, 4, 3);
}

int main(int argc, char **argv)
{
    char *end = NULL;

    if (argc > 1)
        scale = strtoull(argv[1], &end, 10);
    if (argc > 2 || scale < 1 || scale > 10000 || (end && *end)) {
        fprintf(stderr, "usage: order_uniform [SCALE]\n");
        return 2;
    }
    test_complete();
    test_inverse(false);
    test_inverse(true);
    if (failures) {
        fprintf(stderr, "order_uniform: not a permutation, no statistics\n");
        return 1;
    }
    printf("%-36s %12s %8s %6s\n", "test", "chi2", "df", "z");
    for (size_t i = 0; i < sizeof(walks) / sizeof(*walks); i++)
        test_walk(&walks[i]);
    printf("%d failed\n", failures);
    return failures != 0;
}
