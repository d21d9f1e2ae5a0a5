/* A prepared index, over a source that behaves as a test says. */
#include <errno.h>
#include <stdio.h>

#include "format/index/prepared.h"
#include "support/libsvm_make.h"
#include "support/unit.h"

#define ROWS 300
#define PASS 100 /* rows of a step */

/* A source of ROWS rows; row i has the numbers i * i and i. */
struct source {
    struct prepared prepared;
    struct diag d;
    uint64_t at;
    const char *version;
    /* The n-th call of step() (from 1), take() or identity() returns this: */
    unsigned step_at;
    int step_error, take_error, identity_error;
    int about_error;
    unsigned begun, steps, taken, finished;
};

static int source_identity(void *impl, struct text *ret)
{
    struct source *s = impl;

    text_add(ret, "squares %s", s->version);
    return s->identity_error;
}

static int source_take(void *impl, const struct index *index)
{
    struct source *s = impl;

    assert_int_equal(index->about_len, 5);
    assert_memory_equal(index->about, "about", 5);
    s->taken++;
    return s->take_error;
}

static int source_begin(void *impl)
{
    struct source *s = impl;

    s->begun++;
    return 0;
}

static int source_step(void *impl, struct diag *d)
{
    struct source *s = impl;

    if (++s->steps == s->step_at)
        return s->step_error == -EIO ? -EIO : diag_set(d, s->step_error, "row %u", (unsigned)s->at);
    for (unsigned i = 0; i < PASS && s->at < ROWS; i++, s->at++)
        assert_int_equal(
            index_add(s->prepared.builder, NULL, 0, (uint64_t[]){s->at * s->at, s->at}), 0);
    atomic_store(&s->prepared.seen, s->at);
    s->prepared.end[0] = UINT64_MAX;
    return s->at == ROWS;
}

static int source_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct source *s = impl;

    assert_int_equal(index->rows, ROWS);
    s->finished++;
    text_add(ret, "about");
    return s->about_error ? diag_set(d, s->about_error, "no use of it") : 0;
}

static const struct prepared_ops source_ops = {
    .identity = source_identity,
    .load = source_take,
    .begin = source_begin,
    .step = source_step,
    .about = source_about,
};

static void source_init(struct source *s, const struct memory_keep *keep)
{
    *s = (struct source){
        .version = "1",
        .prepared = {.ops = &source_ops,
                     .impl = s,
                     .keep = &keep->keep,
                     .type = "squares",
                     .name = "the file",
                     .source = "/the/file",
                     .size = ROWS + 1,
                     .shape = {.columns = 2, .rising = 1}},
    };
}

static void source_release(struct source *s)
{
    prepared_release(&s->prepared);
}
#define AUTO_SOURCE AUTO(source_release)
#define AUTO_KEEP   AUTO(memory_keep_release)

static int step(struct source *s)
{
    s->d.set = false;
    return prepared_step(&s->prepared, &s->d);
}

static void check_ready(struct source *s)
{
    assert_int_equal(step(s), 1);
    assert_int_equal(s->prepared.index.rows, ROWS);
    assert_int_equal(atomic_load(&s->prepared.seen), ROWS + 1);
    for (uint64_t row = 0; row < ROWS; row++) {
        assert_int_equal(index_number(&s->prepared.index, row, 0), row * row);
        assert_int_equal(index_number(&s->prepared.index, row, 1), row);
    }
    assert_int_equal(index_number(&s->prepared.index, ROWS, 0), UINT64_MAX);
}

/* Make it and keep it. */
static void make(struct memory_keep *keep)
{
    AUTO_SOURCE struct source s;

    source_init(&s, keep);
    assert_int_equal(step(&s), 0);
    assert_int_equal(atomic_load(&s.prepared.seen), PASS);
    assert_int_equal(step(&s), 0);
    assert_int_equal(s.finished, 0);
    check_ready(&s);
    assert_true(s.begun == 1 && s.steps == 3 && s.finished == 1 && !s.taken && !s.prepared.unkept);
    assert_null(s.prepared.builder); /* the kept bytes are used instead */
    assert_true(keep->saves == 1 && keep->loads == 0 && keep->removes == 0);
    check_ready(&s);
    assert_int_equal(s.steps, 3);
}

UNIT_TEST(test_prepared__made_once__loaded_later)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;

    memory_keep_init(&keep, false);
    make(&keep);
    source_init(&s, &keep);
    check_ready(&s);
    assert_true(s.taken == 1 && !s.begun && !s.steps && !s.finished);
    assert_true(keep.loads == 1 && keep.saves == 1 && keep.removes == 0);
}

/* A format that cannot compare rows with the file does not use an index by content. */
UNIT_TEST(test_prepared__by_content__not_used_without_checks)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;

    memory_keep_init(&keep, false);
    make(&keep);
    keep.by_content = true;
    source_init(&s, &keep);
    while (step(&s) == 0)
        continue;
    check_ready(&s);
    assert_true(s.begun == 1 && !s.taken && s.finished == 1);
    assert_false(prepared_doubts(&s.prepared, 0));
}

/* Rows are doubted until each is proven; one that is wrong removes the index. */
UNIT_TEST(test_prepared__by_content__rows_are_doubted)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;
    struct diag d = DIAG_INIT;

    memory_keep_init(&keep, false);
    make(&keep);
    keep.by_content = true;
    source_init(&s, &keep);
    s.prepared.checks_rows = true;
    check_ready(&s);
    assert_true(s.taken == 1 && !s.begun && !keep.removes);
    for (uint64_t row = 0; row < ROWS; row++)
        assert_true(prepared_doubts(&s.prepared, row));
    prepared_prove(&s.prepared, 7);
    prepared_prove(&s.prepared, ROWS - 1);
    assert_false(prepared_doubts(&s.prepared, 7));
    assert_false(prepared_doubts(&s.prepared, ROWS - 1));
    assert_true(prepared_doubts(&s.prepared, 6) && prepared_doubts(&s.prepared, 8));
    assert_int_equal(prepared_disprove(&s.prepared, 8, "no such row", &d), -ESTALE);
    assert_diag_has(&d, "the file: record 8");
    assert_diag_has(&d, "no such row");
    assert_int_equal(keep.removes, 1);
}

UNIT_TEST(test_prepared__other_version__made_anew)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;

    memory_keep_init(&keep, false);
    make(&keep);
    source_init(&s, &keep);
    s.version = "2";
    while (step(&s) == 0)
        ;
    check_ready(&s);
    assert_true(s.begun == 1 && !s.taken && keep.removes == 0 && keep.saves == 2);
}

/* What is wrong with a kept index. */
enum wrong { DAMAGED, OF_OTHER_SHAPE, NOT_TAKEN, N_WRONG };

UNIT_TEST(test_prepared__wrong_index__removed_and_made_anew)
{
    for (enum wrong wrong = 0; wrong < N_WRONG; wrong++) {
        AUTO_KEEP struct memory_keep keep;
        AUTO_SOURCE struct source s, other;

        memory_keep_init(&keep, false);
        make(&keep);
        source_init(&s, &keep);
        source_init(&other, &keep);
        if (wrong == DAMAGED)
            keep.bytes[keep.size / 2] ^= 1;
        if (wrong == OF_OTHER_SHAPE)
            s.prepared.shape.rising = 0;
        s.take_error = wrong == NOT_TAKEN ? -ESTALE : 0;
        while (step(&s) == 0)
            ;
        assert_true(s.begun == 1 && s.finished == 1 && s.taken == (wrong == NOT_TAKEN));
        assert_true(keep.removes == 1 && keep.saves == 2);
        if (wrong == OF_OTHER_SHAPE)
            continue;
        check_ready(&s);
        check_ready(&other);
        assert_true(other.taken == 1 && !other.begun);
    }
}

UNIT_TEST(test_prepared__not_known_now__next_step_goes_on)
{
    static const int errors[] = {-EREMOTEIO, -EINTR};

    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        AUTO_KEEP struct memory_keep keep;
        AUTO_SOURCE struct source s, loads;

        memory_keep_init(&keep, false);
        source_init(&s, &keep);
        s.identity_error = errors[i];
        assert_int_equal(step(&s), errors[i]);
        s.identity_error = 0;
        s.step_at = 2;
        s.step_error = errors[i];
        assert_int_equal(step(&s), 0);
        assert_int_equal(step(&s), errors[i]);
        assert_string_equal(s.d.text, "row 100");
        assert_int_equal(step(&s), 0);
        check_ready(&s);
        assert_true(s.begun == 1 && s.steps == 4 && keep.saves == 1);
        source_init(&loads, &keep);
        loads.take_error = errors[i];
        assert_int_equal(step(&loads), errors[i]);
        loads.take_error = 0;
        check_ready(&loads);
        assert_true(!loads.begun && keep.removes == 0 && keep.loads == 2);
    }
}

/* No memory says nothing about the kept index: the next mount loads it. */
UNIT_TEST(test_prepared__no_memory__what_is_kept_stays)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s, loads, later;

    memory_keep_init(&keep, false);
    source_init(&s, &keep);
    while (step(&s) == 0)
        ;
    source_init(&loads, &keep);
    loads.take_error = -ENOMEM;
    assert_int_equal(step(&loads), -ENOMEM);
    assert_true(!loads.begun && !keep.removes);
    source_init(&later, &keep);
    assert_int_equal(step(&later), 1);
    check_ready(&later);
    assert_true(!later.begun);
}

UNIT_TEST(test_prepared__fails_later__its_own_reason)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;

    memory_keep_init(&keep, false);
    source_init(&s, &keep);
    s.step_at = 1;
    s.step_error = -EREMOTEIO;
    assert_int_equal(step(&s), -EREMOTEIO);
    assert_string_equal(s.d.text, "row 0");
    s.step_at = 3;
    s.step_error = -EBADMSG;
    assert_int_equal(step(&s), 0);
    assert_int_equal(step(&s), -EBADMSG);
    assert_string_equal(s.d.text, "row 100");
}

UNIT_TEST(test_prepared__failed__the_same_from_then_on)
{
    static const struct {
        int error;
        bool at_end;
        const char *text;
    } cases[] = {
        {-EBADMSG, false, "row 100"},
        {-EIO, false, "the file: cannot be indexed: Input/output error"},
        {-ESTALE, false,
         "the file: cannot be indexed: the file was changed meanwhile; mount again"},
        {-EBADMSG, true, "no use of it"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_KEEP struct memory_keep keep;
        AUTO_SOURCE struct source s;
        int r;

        memory_keep_init(&keep, false);
        source_init(&s, &keep);
        s.step_at = cases[i].at_end ? 0 : 2;
        s.step_error = cases[i].error;
        s.about_error = cases[i].at_end ? cases[i].error : 0;
        while ((r = step(&s)) == 0)
            ;
        for (unsigned again = 0; again < 3; again++, r = step(&s)) {
            assert_int_equal(r, cases[i].error);
            assert_string_equal(s.d.text, cases[i].text);
        }
        assert_true(s.steps == (cases[i].at_end ? 3 : 2) && s.begun == 1 && keep.saves == 0);
    }
}

UNIT_TEST(test_prepared__store_refuses__stays_in_memory)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;

    memory_keep_init(&keep, true);
    source_init(&s, &keep);
    while (step(&s) == 0)
        ;
    check_ready(&s);
    assert_string_equal(s.prepared.unkept,
                        "the file: the index cannot be kept, so the next mount makes it again: no "
                        "keep");
}

UNIT_TEST(test_prepared__may_differ__not_kept)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;

    memory_keep_init(&keep, false);
    source_init(&s, &keep);
    s.prepared.may_differ = true;
    while (step(&s) == 0)
        ;
    check_ready(&s);
    assert_true(keep.saves == 0 && !s.prepared.unkept);
}

/* One that is cheap is made again each time, and takes no more memory than a kept one. */
UNIT_TEST(test_prepared__is_cheap__neither_kept_nor_loaded)
{
    AUTO_KEEP struct memory_keep keep;
    AUTO_SOURCE struct source s;

    memory_keep_init(&keep, false);
    make(&keep);
    source_init(&s, &keep);
    s.prepared.is_cheap = true;
    while (step(&s) == 0)
        ;
    check_ready(&s);
    assert_true(s.begun == 1 && s.finished == 1 && !s.taken);
    assert_true(keep.saves == 1 && keep.loads == 0); /* that of make() */
    assert_null(s.prepared.builder);
    assert_true(s.prepared.kept.size > 0);
}

/* What it depends on is a part of its name. */
UNIT_TEST(test_prepared__depends_on_something_else__made_again)
{
    static const struct {
        const char *depends;
        unsigned taken;
    } rows[] = {{" skip=0", 0}, {" skip=0", 1}, {" skip=1", 0}, {" skip=1", 1}};
    AUTO_KEEP struct memory_keep keep;

    memory_keep_init(&keep, false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_SOURCE struct source s;

        source_init(&s, &keep);
        s.prepared.depends = strdup(rows[i].depends);
        while (step(&s) == 0)
            ;
        check_ready(&s);
        assert_int_equal(s.taken, rows[i].taken);
        assert_non_null(strstr(s.prepared.identity, rows[i].depends));
    }
}
