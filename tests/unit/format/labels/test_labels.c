/* Indexes of labels, made of values in memory and compared with what a loop over them says; kept in
 * a cache folder, damaged there, and made again. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "cache/disk/index_files.h"
#include "cache/disk/quota.h"
#include "format/labels/labels.h"
#include "support/random.h"
#include "support/temp_folder.h"
#include "support/unit.h"

/* Values, and what their reads do. */
struct values {
    struct label_input input;
    const int64_t *whole; /* or: */
    const double *real;
    unsigned reads;
    unsigned fail_read; /* the read that fails, from 1; 0: none */
    int error;
};

struct world {
    struct cache_folder folder;
    struct index_files keep;
    struct labels_memory memory;
    struct values values;
    struct labels labels;
    struct diag d;
};

static int read_values(const struct label_input *input, struct read_context *rc, uint64_t first,
                       size_t count, void *ret, struct diag *d)
{
    struct values *v = (struct values *)(uintptr_t)input;

    (void)rc;
    assert_true(count <= LABEL_READ && first + count <= input->n);
    if (++v->reads == v->fail_read)
        return diag_set(d, v->error, "the remote is gone");
    memcpy(ret, v->whole ? (const void *)(v->whole + first) : (const void *)(v->real + first),
           8 * count);
    return 0;
}

static void name_value(const struct label_input *input, uint64_t sample, char *ret, size_t size)
{
    (void)input;
    snprintf(ret, size, "sample %llu", (unsigned long long)sample);
}

static void world_begin(struct world *w, const char *folder, enum label_purpose kind,
                        const char *identity)
{
    w->folder = (struct cache_folder){.path = (char *)(uintptr_t)folder};
    index_files_init(&w->keep, &w->folder);
    w->memory.limit = 1 << 20;
    atomic_store(&w->memory.used, 0);
    w->d = DIAG_INIT;
    w->values.input.are_floats = !w->values.whole;
    w->values.input.digits = 53;
    w->values.input.read = read_values;
    w->values.input.where = name_value;
    w->values.input.name = "field x";
    w->labels = (struct labels){.type = kind,
                                .input = &w->values.input,
                                .keep = &w->keep.keep,
                                .identity = identity,
                                .source = "/d/x",
                                .memory = &w->memory};
}

static void whole_values(struct world *w, const int64_t *v, uint64_t n)
{
    w->values = (struct values){.input.n = n, .whole = v};
}

static void real_values(struct world *w, const double *v, uint64_t n)
{
    w->values = (struct values){.input.n = n, .real = v};
}

/* Step until something is known. */
static int run(struct world *w)
{
    int r;

    w->d.set = false;
    do {
        r = labels_step(&w->labels, NULL, &w->d);
    } while (r == 0);
    return r;
}

/* By definition. */
static void check_classes(const struct label_arrays *a, const int64_t *v, uint64_t n)
{
    uint64_t at = 0;

    assert_int_equal(a->n, n);
    assert_int_equal(a->begin[a->classes], n);
    for (uint64_t c = 0; c < a->classes; c++) {
        assert_true(!c || a->label[c - 1] < a->label[c]);
        assert_int_equal(a->begin[c], at);
        assert_true(a->begin[c + 1] > at);
        for (; at < a->begin[c + 1]; at++) {
            assert_true(a->member[at] < n);
            assert_int_equal(v[a->member[at]], a->label[c]);
            assert_true(at == a->begin[c] || a->member[at - 1] < a->member[at]);
            assert_int_equal(a->where[a->member[at]], at);
        }
    }
}

static void check_weights(const struct label_arrays *a, const double *v, uint64_t n)
{
    double most = 0;
    uint64_t sum = 0;
    int shift;

    for (uint64_t i = 0; i < n; i++)
        most = fmax(most, v[i]);
    frexp(most, &shift);
    shift = 62 - (int)bit_width(n > 1 ? n - 1 : 0) - shift;
    for (uint64_t i = 0; i < n; i++) {
        assert_true(a->sum[i] == sum);
        sum += v[i] > 0 ? (uint64_t)fmax(1, nearbyint(v[i] * exp2(shift))) : 0;
    }
    assert_true(a->sum[n] == sum);
}

static int64_t *random_values(uint64_t n, uint64_t classes, int64_t least)
{
    int64_t *v = malloc(8 * (n ? n : 1));
    uint64_t random = n + classes;

    assert_non_null(v);
    for (uint64_t i = 0; i < n; i++)
        v[i] = least + (int64_t)(random_next(&random) % classes);
    return v;
}

/* As many as are read in one step, one more, and more than are placed in one. */
UNIT_TEST_WITH(test_classes__any_values__sorted_lists, temp_setup, temp_teardown)
{
    const uint64_t n[] = {0, 1, 2, 1000, LABEL_READ, LABEL_READ + 1, 3 << 19};
    const uint64_t classes[] = {1, 2, 10, 3000, 70000};
    struct world w;

    for (size_t i = 0; i < ARRAY_LEN(n); i++) {
        for (size_t k = 0; k < ARRAY_LEN(classes); k++) {
            AUTO_FREE int64_t *v = random_values(n[i], classes[k], k % 2 ? -5 : INT64_MIN);
            char identity[64];

            snprintf(identity, sizeof(identity), "%zu %zu", i, k);
            whole_values(&w, v, n[i]);
            world_begin(&w, *state, LABEL_CLASSES, identity);
            assert_int_equal(run(&w), 1);
            check_classes(&w.labels.arrays, v, n[i]);
            assert_int_equal(w.memory.used, 0);
            labels_release(&w.labels);
        }
    }
}

UNIT_TEST_WITH(test_classes__whole_floats__the_same, temp_setup, temp_teardown)
{
    const double v[] = {1, -1, 1, 0, -0.0, 4e15};
    const int64_t whole[] = {1, -1, 1, 0, 0, 4000000000000000};
    struct world w;

    real_values(&w, v, ARRAY_LEN(v));
    world_begin(&w, *state, LABEL_CLASSES, "a");
    assert_int_equal(run(&w), 1);
    check_classes(&w.labels.arrays, whole, ARRAY_LEN(v));
    labels_release(&w.labels);
}

UNIT_TEST_WITH(test_weights__any_values__sums, temp_setup, temp_teardown)
{
    const double few[] = {0, 1, 0.5, 0, 1e-300, 3};
    const uint64_t n = LABEL_READ + 7;
    AUTO_FREE double *many = malloc(8 * n);
    uint64_t random = 1;
    struct world w;

    for (uint64_t i = 0; i < n; i++)
        many[i] = (double)(random_next(&random) % 1000) / 7e30;
    real_values(&w, few, ARRAY_LEN(few));
    world_begin(&w, *state, LABEL_WEIGHTS, "few");
    assert_int_equal(run(&w), 1);
    check_weights(&w.labels.arrays, few, ARRAY_LEN(few));
    labels_release(&w.labels);
    real_values(&w, many, n);
    world_begin(&w, *state, LABEL_WEIGHTS, "many");
    assert_int_equal(run(&w), 1);
    check_weights(&w.labels.arrays, many, n);
    labels_release(&w.labels);
}

UNIT_TEST_WITH(test_weights__integers__the_same, temp_setup, temp_teardown)
{
    const int64_t v[] = {3, 0, 4, 1};
    const double same[] = {3, 0, 4, 1};
    struct world w;

    whole_values(&w, v, ARRAY_LEN(v));
    world_begin(&w, *state, LABEL_WEIGHTS, "a");
    assert_int_equal(run(&w), 1);
    check_weights(&w.labels.arrays, same, ARRAY_LEN(v));
    labels_release(&w.labels);
}

/* What is below 0 is 0; kept, and found again. */
UNIT_TEST_WITH(test_lengths__integers__as_they_are, temp_setup, temp_teardown)
{
    const int64_t v[] = {3, 0, UINT32_MAX, -1};
    const uint32_t want[] = {3, 0, UINT32_MAX, 0};
    struct world w;

    for (unsigned mount = 0; mount < 2; mount++) {
        whole_values(&w, v, ARRAY_LEN(v));
        world_begin(&w, *state, LABEL_LENGTHS, "lengths");
        assert_int_equal(run(&w), 1);
        assert_int_equal(w.values.reads, !mount);
        assert_memory_equal(w.labels.arrays.length, want, sizeof(want));
        labels_release(&w.labels);
    }
}

UNIT_TEST_WITH(test_lengths__no_store__in_memory_of_their_size, temp_setup, temp_teardown)
{
    const int64_t v[] = {3, 0, 7, 1};
    struct world w;

    whole_values(&w, v, ARRAY_LEN(v));
    world_begin(&w, "/dev/null/no folder", LABEL_LENGTHS, "lengths");
    w.memory.limit = label_file_size(LABEL_LENGTHS, ARRAY_LEN(v), 0);
    assert_int_equal(run(&w), 1);
    assert_int_equal(w.memory.used, w.memory.limit);
    labels_release(&w.labels);
}

UNIT_TEST_WITH(test_values__no_index_of_them__named, temp_setup, temp_teardown)
{
    const struct {
        enum label_purpose kind;
        double v[3];
        const char *want;
    } bad[] = {
        {LABEL_CLASSES,
         {1, 0.5, 0},
         "sample 1: expected a whole number, the number of a class, got 0.5"},
        {LABEL_CLASSES, {1, 0, NAN}, "sample 2: expected a whole number"},
        {LABEL_CLASSES, {1, INFINITY, 0}, "sample 1: expected a whole number"},
        {LABEL_CLASSES, {0x1p60, 0, 0}, "sample 0: expected a class below 2^53"},
        {LABEL_CLASSES, {1, 0x1p53, 0}, "sample 1: expected a class below 2^53"},
        {LABEL_CLASSES, {1, -0x1p53, 0}, "sample 1: expected a class below 2^53"},
        {LABEL_WEIGHTS, {1, -2, 0}, "sample 1: expected a weight of 0 or more, got -2"},
        {LABEL_WEIGHTS, {1, NAN, 0}, "sample 1: expected a weight of 0 or more, got nan"},
        {LABEL_WEIGHTS, {1, 1, INFINITY}, "sample 2: expected a weight of 0 or more, got inf"},
        {LABEL_LENGTHS, {1, 0x1p32, 0}, "sample 1: expected a length below 2^32, got 4294967296"},
        {LABEL_LENGTHS, {1, 1.5, 0}, "sample 1: expected a whole number"},
        {LABEL_WEIGHTS, {0, 0, -0.0}, "expected a weight above 0, got 0 in all 3 samples"},
    };
    struct world w;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        real_values(&w, bad[i].v, 3);
        world_begin(&w, *state, bad[i].kind, "bad");
        assert_int_equal(run(&w), -EBADMSG);
        assert_diag_has(&w.d, bad[i].want);
        assert_int_equal(run(&w), -EBADMSG); /* for good */
        assert_diag_has(&w.d, bad[i].want);
        assert_int_equal(w.values.reads, 1);
        labels_release(&w.labels);
    }
}

UNIT_TEST_WITH(test_classes__too_many__refused, temp_setup, temp_teardown)
{
    uint64_t n = LABEL_CLASSES_MAX + 1;
    AUTO_FREE int64_t *v = malloc(8 * n);
    struct world w;

    for (uint64_t i = 0; i < n; i++)
        v[i] = (int64_t)(i * 3);
    whole_values(&w, v, n);
    world_begin(&w, *state, LABEL_CLASSES, "a");
    assert_int_equal(run(&w), -E2BIG);
    assert_diag_has(&w.d, "expected at most 1048576 classes");
    labels_release(&w.labels);
    whole_values(&w, v, n - 1);
    world_begin(&w, *state, LABEL_CLASSES, "a");
    assert_int_equal(run(&w), 1);
    labels_release(&w.labels);
}

/* ---- kept ---- */

static const int64_t some[] = {5, 5, 3, 9, 3};

static void some_classes(struct world *w, const char *folder)
{
    whole_values(w, some, ARRAY_LEN(some));
    world_begin(w, folder, LABEL_CLASSES, "some");
}

static void kept_file(const char *folder, char ret[static PATH_MAX])
{
    char pattern[PATH_MAX];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/labels/*", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(ret, PATH_MAX, "%s", found.gl_pathv[0]);
    globfree(&found);
}

UNIT_TEST_WITH(test_labels__kept__not_read_again, temp_setup, temp_teardown)
{
    struct world w;

    some_classes(&w, *state);
    assert_int_equal(run(&w), 1);
    labels_release(&w.labels);
    some_classes(&w, *state);
    assert_int_equal(run(&w), 1);
    assert_int_equal(w.values.reads, 0);
    check_classes(&w.labels.arrays, some, ARRAY_LEN(some));
    labels_release(&w.labels);
}

/* Each byte of a kept file in turn, also where the checksum is made right. */
UNIT_TEST_WITH(test_labels__damaged__made_again, temp_setup, temp_teardown)
{
    char path[PATH_MAX];
    struct world w;
    struct stat st;

    some_classes(&w, *state);
    assert_int_equal(run(&w), 1);
    labels_release(&w.labels);
    kept_file(*state, path);
    assert_int_equal(stat(path, &st), 0);
    for (off_t at = 0; at < st.st_size - 64; at += at >= 40 && at < LABEL_FILE_BODY - 8 ? 509 : 1) {
        AUTO_CLOSE int fd = -1;
        uint8_t byte;

        kept_file(*state, path);
        fd = open(path, O_RDWR);
        if (at >= st.st_size - 64 - 4) /* the source, which is for people */
            break;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        some_classes(&w, *state);
        assert_int_equal(run(&w), 1);
        assert_int_equal(w.values.reads, 1);
        check_classes(&w.labels.arrays, some, ARRAY_LEN(some));
        labels_release(&w.labels);
    }
}

UNIT_TEST_WITH(test_labels__cut_while_used__lost, temp_setup, temp_teardown)
{
    char path[PATH_MAX];
    struct world w;

    some_classes(&w, *state);
    assert_int_equal(run(&w), 1);
    assert_false(labels_are_lost(&w.labels));
    kept_file(*state, path);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(((const volatile uint32_t *)w.labels.arrays.member)[1], 0);
    assert_true(labels_are_lost(&w.labels));
    assert_int_equal(w.labels.arrays.begin[3], 5); /* its own copy */
    labels_release(&w.labels);
}

UNIT_TEST_WITH(test_labels__another_makes_it__waits, temp_setup, temp_teardown)
{
    struct world w, other;

    some_classes(&w, *state);
    some_classes(&other, *state);
    assert_int_equal(labels_step(&other.labels, NULL, &other.d), 0); /* has begun */
    assert_int_equal(run(&w), -EAGAIN);
    assert_int_equal(run(&other), 1);
    assert_int_equal(run(&w), 1);
    assert_int_equal(w.values.reads, 0);
    check_classes(&w.labels.arrays, some, ARRAY_LEN(some));
    labels_release(&w.labels);
    labels_release(&other.labels);
}

/* A remote that is gone says nothing of the values, and does not keep others from making it. */
UNIT_TEST_WITH(test_labels__read_fails__next_goes_on, temp_setup, temp_teardown)
{
    struct world w, other;

    some_classes(&w, *state);
    w.values.fail_read = 1;
    w.values.error = -EREMOTEIO;
    assert_int_equal(run(&w), -EREMOTEIO);
    assert_diag_has(&w.d, "the remote is gone");
    some_classes(&other, *state);
    assert_int_equal(run(&other), 1);
    labels_release(&other.labels);
    assert_int_equal(run(&w), 1);
    check_classes(&w.labels.arrays, some, ARRAY_LEN(some));
    labels_release(&w.labels);
}

UNIT_TEST_WITH(test_labels__no_store__in_memory_up_to_its_limit, temp_setup, temp_teardown)
{
    struct world w, second;
    uint64_t bytes = label_file_size(LABEL_CLASSES, ARRAY_LEN(some), 0);

    some_classes(&w, "/dev/null/no folder");
    assert_int_equal(run(&w), 1);
    check_classes(&w.labels.arrays, some, ARRAY_LEN(some));
    assert_int_equal(w.memory.used, bytes);
    second = w;
    second.labels = (struct labels){.type = LABEL_CLASSES,
                                    .input = &second.values.input,
                                    .keep = &second.keep.keep,
                                    .identity = "second",
                                    .source = "",
                                    .memory = &w.memory};
    second.keep.folder = &second.folder;
    w.memory.limit = 2 * bytes - 1;
    assert_int_equal(run(&second), -EFBIG);
    assert_diag_has(&second.d, "cache_dir=DIR gives it a disk");
    assert_int_equal(w.memory.used, bytes);
    labels_release(&second.labels);
    labels_release(&w.labels);
    assert_int_equal(w.memory.used, 0);
}

UNIT_TEST_WITH(test_labels__no_quota__in_memory, temp_setup, temp_teardown)
{
    struct world w;
    struct quota *quota = NULL;
    char path[PATH_MAX];
    glob_t found;

    some_classes(&w, *state);
    assert_int_equal(quota_open(&w.folder, 8192, 0, NULL, &quota, NULL), 0);
    w.folder.quota = quota;
    assert_int_equal(run(&w), 1);
    check_classes(&w.labels.arrays, some, ARRAY_LEN(some));
    assert_true(w.memory.used > 0);
    snprintf(path, sizeof(path), "%s/labels/*", (const char *)*state);
    assert_int_equal(glob(path, 0, NULL, &found), GLOB_NOMATCH); /* and no part of it */
    labels_release(&w.labels);
    quota_close(quota);
}
