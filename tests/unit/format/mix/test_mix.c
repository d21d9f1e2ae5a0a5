/* A mix of made-up datasets: preparing, what differs, numbers, keys and names. */
#include "format/mix/mix.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "format/core/format.h"
#include "format/encode/encode.h"

static const struct format format_made = {.name = "made", .title = "made-up datasets"};

/* What a made-up dataset does. */
struct fake {
    unsigned steps;     /* of prepare() that are left */
    int fails, is_away; /* then -errno; before that, -EREMOTEIO each time */
    uint64_t samples;
    unsigned key_letters; /* of each key; 0: keys are numbers */
    enum dtype dtype;
    uint64_t columns; /* of the field x; 0: it is a number */
    uint64_t depth;   /* of its second axis; 0: it has none */
};

static int fake_prepare(struct dataset *ds, struct diag *d)
{
    struct fake *fake = ds->impl;

    if (fake->is_away)
        return diag_set(d, -EREMOTEIO, "the server is away");
    if (fake->steps) {
        fake->steps--;
        return 0;
    }
    if (fake->fails)
        return diag_set(d, fake->fails, "byte 7 is wrong");
    dataset_set_samples(ds, fake->samples);
    return 1;
}

/* x is 100 times the number of columns, and the sample. */
static int fake_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                     const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    const struct fake *fake = ds->impl;

    (void)rc;
    (void)d;
    for (size_t i = 0; i < len; i++) {
        uint64_t sample;
        uint8_t bytes[4];

        selection_samples(sel, (off + i) / f->item_bytes, 1, &sample);
        store_le32(bytes, (uint32_t)(100 * fake->columns + sample));
        dst[i] = bytes[(off + i) % 4];
    }
    return 0;
}

static size_t fake_key(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE])
{
    const struct fake *fake = ds->impl;

    memset(ret, 'a' + (int)sample, fake->key_letters);
    return fake->key_letters;
}

static size_t fake_name(const struct dataset *ds, uint64_t sample, bool dots,
                        char ret[static KEY_NAME_SIZE])
{
    const struct fake *fake = ds->impl;

    (void)dots;
    memset(ret, 'a' + (int)sample, fake->key_letters);
    ret[fake->key_letters] = '\0';
    return fake->key_letters;
}

static bool fake_find(const struct dataset *ds, const char *name, size_t len, uint64_t *ret)
{
    const struct fake *fake = ds->impl;

    *ret = (uint64_t)(name[0] - 'a');
    return len == fake->key_letters && *ret < fake->samples;
}

static const struct dataset_ops ops_numbers = {.prepare = fake_prepare};
static const struct dataset_ops ops_keys = {
    .prepare = fake_prepare, .key = fake_key, .name = fake_name, .find = fake_find};
static const struct field_ops x_ops = {.read = fake_read};

static struct dataset *make(const struct fake *fake)
{
    struct fake *impl = malloc(sizeof(*impl));
    struct dataset *ds = NULL;
    struct field *f;

    assert_non_null(impl);
    *impl = *fake;
    assert_int_equal(
        dataset_new(&format_made, fake->key_letters ? &ops_keys : &ops_numbers, impl, 3, 1, &ds),
        0);
    f = &ds->field[ds->n_fields++];
    *f = (struct field){.name = "x", .ops = &x_ops, .in = IN_ARRAYS | IN_TAR, .dtype = fake->dtype};
    f->width = f->item_bytes = dtype_info(fake->dtype)->bytes;
    if (fake->columns) {
        f->dim = calloc(2, sizeof(*f->dim));
        f->dim[f->ndim++] = fake->columns;
        f->item_bytes *= fake->columns;
        if (fake->depth)
            f->dim[f->ndim++] = fake->depth;
    }
    dataset_add_numbering(ds);
    assert_int_equal(dataset_add_folders(ds), 0);
    return ds;
}

struct mixed {
    struct dataset *source[3];
    const char *shown[3];
    struct dataset *ds;
    int is_ready; /* what ready() returns */
    unsigned asked;
};

static int ready(void *ctx, struct dataset *ds, struct diag *d)
{
    struct mixed *m = ctx;

    m->asked++;
    assert_ptr_equal(ds, m->ds);
    return m->is_ready < 0 ? diag_set(d, m->is_ready, "not so") : 0;
}

static void mix(const struct fake *fake, unsigned n, struct mixed *ret)
{
    static const char *const names[] = {"a", "b", "c"};

    *ret = (struct mixed){.ds = NULL};
    for (unsigned i = 0; i < n; i++) {
        ret->source[i] = make(&fake[i]);
        ret->shown[i] = names[i];
    }
    assert_int_equal(mix_dataset_new(&(struct mix_setup){.name = "m",
                                                         .ds = ret->source,
                                                         .shown = ret->shown,
                                                         .n = n,
                                                         .ready = ready,
                                                         .ctx = ret},
                                     &ret->ds),
                     0);
}

static void mixed_release(struct mixed *m)
{
    dataset_free(m->ds);
    for (unsigned i = 0; i < ARRAY_LEN(m->source); i++)
        dataset_free(m->source[i]);
}

UNIT_TEST(test_mix_prepare__sources_in_steps__ready_with_the_last)
{
    struct mixed m;

    mix((const struct fake[]){{.steps = 3, .samples = 5, .dtype = DTYPE_I4},
                              {.steps = 2, .samples = 4, .dtype = DTYPE_I4}},
        2, &m);
    m.source[1]->denied = IN_RAW;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(dataset_prepare(m.ds), 0);
    assert_int_equal(m.asked, 0);
    assert_int_equal(dataset_prepare(m.ds), 1);
    assert_int_equal(dataset_state(m.ds), DATASET_READY);
    assert_int_equal(m.asked, 1);
    assert_int_equal(m.ds->samples, 9);
    assert_int_equal(m.ds->denied, IN_RAW);
    assert_int_equal(mix_dataset_first(m.ds, 1), 5);
    mixed_release(&m);
}

UNIT_TEST(test_mix_prepare__remote_away__waits_and_says_so)
{
    struct mixed m;

    mix((const struct fake[]){{.samples = 5, .dtype = DTYPE_I4},
                              {.is_away = 1, .samples = 4, .dtype = DTYPE_I4}},
        2, &m);
    assert_int_equal(dataset_prepare(m.ds), 0);
    assert_string_equal(m.ds->trouble.text, "the server is away");
    ((struct fake *)m.source[1]->impl)->is_away = 0;
    assert_int_equal(dataset_prepare(m.ds), 1);
    assert_int_equal(dataset_state(m.ds), DATASET_READY);
    mixed_release(&m);
}

UNIT_TEST(test_mix_prepare__cannot_be_one__said_why)
{
    static const struct {
        struct fake fake[2];
        int is_ready;
        const char *reason;
    } rows[] = {
        {{{.samples = 5}, {.steps = 1, .fails = -EBADMSG}},
         0,
         "mix m: b cannot be used: byte 7 is wrong"},
        {{{.samples = 5}, {.samples = 0}}, 0, "got none in b"},
        {{{.samples = INT64_MAX}, {.samples = INT64_MAX}}, 0, "its sources have too many samples"},
        {{{.samples = 5, .dtype = DTYPE_I4}, {.samples = 5, .dtype = DTYPE_F4}},
         0,
         "'x' as int32 () in a, and as float32 () in b"},
        {{{.samples = 5}, {.samples = 5}}, -EINVAL, "not so"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mixed m;

        mix(rows[i].fake, 2, &m);
        m.is_ready = rows[i].is_ready;
        while (!dataset_prepare(m.ds))
            continue;
        assert_int_equal(dataset_state(m.ds), DATASET_FAILED);
        assert_true(m.ds->failed == -EINVAL || m.ds->failed == -EBADMSG);
        if (!strstr(m.ds->reason.text, rows[i].reason))
            fail_msg("rows[%zu]: %s", i, m.ds->reason.text);
        mixed_release(&m);
    }
}

/* What is asked again after a fault of the remote finds the fields that there are. */
UNIT_TEST(test_mix_prepare__user_waits__fields_made_once)
{
    struct mixed m;

    mix((const struct fake[]){{.samples = 5, .dtype = DTYPE_I4}}, 1, &m);
    m.is_ready = -EREMOTEIO;
    for (unsigned i = 0; i < 8; i++)
        assert_false(dataset_prepare(m.ds));
    m.is_ready = 0;
    while (!dataset_prepare(m.ds))
        continue;
    assert_int_equal(dataset_state(m.ds), DATASET_READY);
    assert_true(m.asked > 1);
    mixed_release(&m);
}

/* The bytes of a field for all samples. */
static void expect_bytes(const struct dataset *ds, const char *name, const uint32_t *want, size_t n)
{
    const struct field *f = dataset_field(ds, name);
    const struct selection sel = {.count = ds->samples, .in_order = true, .id = {9, 9, 9}};
    struct diag d = DIAG_INIT;
    uint8_t got[256];

    assert_non_null(f);
    assert_int_equal(f->ops->read(READ_WAITS, ds, f, &sel, 0, 4 * n, got, &d), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(load_le32(got + 4 * i), want[i]);
    for (size_t i = 1; i < 4 * n; i += 3) { /* any part */
        uint8_t part[11];
        size_t len = min_u64(sizeof(part), 4 * n - i);

        assert_int_equal(f->ops->read(READ_WAITS, ds, f, &sel, i, len, part, &d), 0);
        assert_memory_equal(part, got + i, len);
    }
}

UNIT_TEST(test_mix_read__numbers__of_their_sources)
{
    static const uint32_t x[] = {0, 1, 2, 0, 1}, source[] = {0, 0, 0, 0, 0, 0, 1, 0, 1, 0},
                          index[] = {0, 0, 1, 0, 2, 0, 0, 0, 1, 0};
    struct mixed m;

    mix((const struct fake[]){{.samples = 3, .dtype = DTYPE_I4}, {.samples = 2, .dtype = DTYPE_I4}},
        2, &m);
    assert_int_equal(dataset_prepare(m.ds), 1);
    expect_bytes(m.ds, "x", x, ARRAY_LEN(x));
    expect_bytes(m.ds, "source", source, ARRAY_LEN(source));
    assert_int_equal(dataset_field(m.ds, "source")->in, IN_NPY_BATCHES | IN_NPZ_BATCHES | IN_PAGES);
    expect_bytes(m.ds, "index", index, ARRAY_LEN(index));
    mixed_release(&m);
}

/* Arrays of 2 and of 3: ragged. */
UNIT_TEST(test_mix_read__first_axis_differs__ragged)
{
    static const uint32_t x[] = {200, 200, 300, 300, 300};
    struct selection sel = {.count = 2, .in_order = true, .id = {9, 9, 9}};
    struct form form;
    struct mixed m;
    uint64_t bytes;

    mix((const struct fake[]){{.samples = 1, .columns = 2, .dtype = DTYPE_I4},
                              {.samples = 1, .columns = 3, .dtype = DTYPE_I4}},
        2, &m);
    assert_int_equal(dataset_prepare(m.ds), 1);
    expect_bytes(m.ds, "x", x, ARRAY_LEN(x));
    assert_int_equal(field_form(m.ds, dataset_field(m.ds, "x_len"), &sel, &form, &bytes), 0);
    assert_int_equal(bytes, 16);
    assert_non_null(dataset_field(m.ds, "x_offsets"));
    mixed_release(&m);
}

UNIT_TEST(test_mix_prepare__second_axis_varies_in_a_source__varies)
{
    struct fake fake[] = {{.samples = 1, .columns = 2, .depth = 3, .dtype = DTYPE_I4},
                          {.samples = 1, .columns = 2, .depth = DIM_VARIES, .dtype = DTYPE_I4},
                          {.samples = 1, .columns = 2, .depth = 3, .dtype = DTYPE_I4}};

    for (unsigned i = 0; i < 2; i++) {
        struct mixed m;

        mix(&fake[i], 2, &m);
        assert_int_equal(dataset_prepare(m.ds), 1);
        assert_true(dataset_field(m.ds, "x")->dim[1] == DIM_VARIES);
        assert_true(dataset_field(m.ds, "x")->mixed);
        mixed_release(&m);
    }
}

static void expect_name(const struct dataset *ds, uint64_t sample, const char *want)
{
    char name[KEY_NAME_SIZE];
    uint64_t found = 99;

    assert_int_equal(dataset_name(ds, sample, false, name), strlen(want));
    assert_string_equal(name, want);
    assert_true(dataset_find(ds, name, strlen(name), &found));
    assert_int_equal(found, sample);
}

UNIT_TEST(test_mix_name__keys_and_numbers__found_again)
{
    static const char *const none[] = {"",       "0",      "0-",        "1-000002", "2-aaa",
                                       "0-aaaa", "00-aaa", "-aaa",      "1-00000",  "1-%~0",
                                       "0-%~0",  "0-aab",  "1-000000x", "3-aaa"};
    uint8_t key[KEY_SIZE];
    uint64_t found;
    struct mixed m;

    mix((const struct fake[]){{.samples = 3, .key_letters = 3, .dtype = DTYPE_I4},
                              {.samples = 2, .dtype = DTYPE_I4},
                              {.samples = 2, .key_letters = KEY_NAME_MAX - 1, .dtype = DTYPE_I4}},
        3, &m);
    assert_int_equal(dataset_prepare(m.ds), 1);
    expect_name(m.ds, 0, "0-aaa");
    expect_name(m.ds, 2, "0-ccc");
    expect_name(m.ds, 4, "1-000001");
    expect_name(m.ds, 6, "2-%~1"); /* too long with the number of the source */
    assert_int_equal(dataset_key(m.ds, 2, key), 5);
    assert_memory_equal(key, "0-ccc", 5);
    assert_int_equal(dataset_key(m.ds, 6, key), KEY_NAME_MAX + 1);
    assert_int_equal(dataset_number(m.ds, 6), 1);
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (dataset_find(m.ds, none[i], strlen(none[i]), &found))
            fail_msg("%s: %llu", none[i], (unsigned long long)found);
    mixed_release(&m);
}
