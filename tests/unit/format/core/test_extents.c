/* Extents of a sample against the bytes that reads of its files touch: they must be the same. */
#include "format/core/extents.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/recordio/file.h"
#include "support/kaldi_make.h"
#include "support/unit.h"
#include "support/worlds.h"

#define RANGES_MOST 4096
#define STEREO      2  /* bytes of the other channel between two read pieces */
#define PARTS       64 /* of a record in parts: what is before the content */
#define KEY         16 /* bytes of a key, read together with an archive's object */
#ifdef SLOW_BUILD
#define SAMPLES 10 /* of a dataset, at least, if it has as many */
#else
#define SAMPLES 60
#endif
#ifdef __SANITIZE_THREAD__
#define LEAST_WITH    100
#define LEAST_WITHOUT 0
#else
#define LEAST_WITH    1000
#define LEAST_WITHOUT 100
#endif

/* Ranges of blobs. */
struct ranges {
    size_t n;
    struct extent range[RANGES_MOST];
};

static void ranges_add(struct ranges *r, const struct extent *extent, size_t n)
{
    assert_true(r->n + n <= RANGES_MOST);
    for (size_t i = 0; i < n; i++)
        r->range[r->n++] = extent[i];
}

/* The number of bytes from byte at on, at most to end, that are in one of the ranges (*ret_in), or
 * in none. */
static uint64_t stretch(const struct ranges *of, const struct blob *blob, uint64_t at, uint64_t end,
                        bool *ret_in)
{
    uint64_t next = end;

    for (size_t i = 0; i < of->n; i++) {
        const struct extent *e = &of->range[i];

        if (e->blob != blob || e->off + e->len <= at)
            continue;
        if (e->off <= at) {
            *ret_in = true;
            return min_u64(end, e->off + e->len) - at;
        }
        next = min_u64(next, e->off);
    }
    *ret_in = false;
    return next - at;
}

/* The most neighbouring bytes of a that are not in b. */
static uint64_t most_beyond(const struct ranges *a, const struct ranges *b)
{
    uint64_t most = 0;

    for (size_t i = 0; i < a->n; i++) {
        const struct extent *e = &a->range[i];
        uint64_t end = e->off + e->len, n;

        for (uint64_t at = e->off; at < end; at += n) {
            bool in;

            n = stretch(b, e->blob, at, end, &in);
            most = in ? most : max_u64(most, n);
        }
    }
    return most;
}

static unsigned fields_with_bytes, fields_without;

/* Compare the bytes read for a file, or for all, with the extents. */
static void check_same(const struct dataset *ds, uint64_t sample, const struct field *only,
                       const struct ranges *was_read)
{
    struct ranges reported = {.n = EXTENTS_MOST};

    reported.n = dataset_extents(ds, sample, only, reported.range);
    for (size_t i = 0; i < reported.n; i++) {
        const struct extent *e = &reported.range[i];

        assert_true(e->len && e->off <= e->blob->size && e->len <= e->blob->size - e->off);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(e, &reported.range[k], sizeof(*e));
    }
    if (most_beyond(&reported, was_read) > (ds->format == &format_kaldi      ? STEREO
                                            : ds->format == &format_recordio ? PARTS
                                                                             : 0) ||
        most_beyond(was_read, &reported) > (!only || !strcmp(only->ext, "ark") ? KEY : 0))
        fail_msg("%s, sample %llu, %s: %llu bytes told that are not read, %llu read and not told",
                 ds->format->name, (unsigned long long)sample, only ? only->name : "all",
                 (unsigned long long)most_beyond(&reported, was_read),
                 (unsigned long long)most_beyond(was_read, &reported));
    fields_with_bytes += reported.n > 0;
    fields_without += !reported.n;
}

/* The ranges that read_file() records; NULL: none. Several threads may read. */
static struct ranges *recorded;
static struct lock recorded_lock;

static void record(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct extent *last;
    LOCK_SCOPE(&recorded_lock);

    (void)ctx;
    if (!recorded)
        return;
    last = recorded->n ? &recorded->range[recorded->n - 1] : NULL;
    if (last && last->blob == blob && last->off + last->len == off)
        last->len += len;
    else
        ranges_add(recorded, &(struct extent){blob, off, len}, 1);
}

static void record_in(struct ranges *ranges)
{
    LOCK_SCOPE(&recorded_lock);

    recorded = ranges;
}

/* Read a file and record the reads of its sources. false: the file cannot be made. */
static bool read_file(const struct dataset *ds, const struct file_kind *kind,
                      const struct selection *sel, struct ranges *ret)
{
    struct bytes got = {0};
    struct read_context rc;
    int r;

    ret->n = 0;
    read_context_init(&rc, false);
    record_in(ret);
    r = render(&rc, ds, kind, sel, NULL, &got);
    record_in(NULL);
    read_context_release(&rc);
    free(got.at);
    return r == 0;
}

/* All files of one sample, and of a batch of just that sample. */
static void check_sample(struct world *w, const struct dataset *ds, uint64_t sample,
                         struct ranges *all, struct ranges *one)
{
    struct list_selection list;
    struct one_sample single;

    all->n = 0;
    for (unsigned i = 0; i < ds->n_folders; i++) {
        for (unsigned scope = 0; scope < N_SCOPES; scope++) {
            for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++) {
                const struct file_kind *kind = &ds->folder[i].files[scope][k];

                /* Each selection with a new id, so that the memo has nothing for it. */
                mixed_init(&list, &sample, 1);
                list.sel.file = "/mnt/x";
                sample_init(&single, sample);
                world_forget(w);
                if (!read_file(ds, kind, scope == SCOPE_SAMPLES ? &single.sel : &list.sel, one))
                    continue;
                ranges_add(all, one->range, one->n);
                if (kind->field)
                    check_same(ds, sample, kind->field, one);
            }
        }
    }
    check_same(ds, sample, NULL, all);
    for (unsigned i = 0; i < ds->n_fields; i++) { /* also those that no file shows alone */
        struct extent extent[EXTENTS_MOST];

        assert_in_range(dataset_extents(ds, sample, &ds->field[i], extent), 0, EXTENTS_MOST);
    }
}

static void check_source(const struct world_source *s)
{
    AUTO_WORLD struct world w = {.forgets = true};
    AUTO_FREE struct ranges *all = malloc(sizeof(*all)), *one = malloc(sizeof(*one));

    world_open(&w, s, true);
    assert_int_equal(w.result, 0);
    w.absent.note = record;
    for (size_t i = 0; i < w.found.n; i++) {
        const struct dataset *ds = w.found.item[i].ds;
        uint64_t reads;

        assert_non_null(ds);
        assert_int_equal(dataset_state(ds), DATASET_READY);
        for (uint64_t sample = 0; sample < ds->samples; sample += 1 + ds->samples / SAMPLES)
            check_sample(&w, ds, sample, all, one);
        reads = w.absent.reads;
        for (uint64_t sample = 0; sample < ds->samples; sample++)
            dataset_extents(ds, sample, NULL, all->range);
        assert_int_equal(w.absent.reads, reads);
    }
}

/* Parts of float and of double, and two tables that name the same objects. */
static void source_parts(struct world_source *s)
{
    struct text *ark = source_add(s, "m.ark"), *feats = source_add(s, "feats.scp");
    struct text *again = source_add(s, "vad.scp");

    s->format = &format_kaldi;
    for (unsigned i = 0; i < 8; i++) {
        text_add(ark, "u%u ", i);
        text_add(feats, "u%u m.ark:%zu%s\n", i, ark->len, i % 4 < 2 ? "[1:2]" : "");
        text_add(again, "u%u m.ark:%zu\n", i, ark->len);
        kaldi_put_start(ark, i % 2 ? "FM " : "DM ");
        kaldi_put_int(ark, 5);
        kaldi_put_int(ark, 3);
        for (unsigned k = 0; k < 5 * 3; k++)
            kaldi_put_value(ark, k, !(i % 2));
    }
}

UNIT_TEST(test_extents__every_format__what_is_read)
{
    for (unsigned i = 0; i < 11 + N_KALDI_KINDS; i++) {
        AUTO(source_release) struct world_source s = {.n = 0};

        if (i < 2)
            source_idx(&s, i);
        else if (i < 4)
            source_libsvm(&s, i % 2);
        else if (i == 4)
            source_long_rows(&s);
        else if (i == 5)
            source_directory(&s);
        else if (i == 6)
            source_parts(&s);
        else if (i == 7)
            source_records(&s);
        else if (i == 8)
            source_learned(&s);
        else if (i < 11)
            source_recordio(&s, i == 9);
        else
            source_kind(&s, &kaldi_kinds[i - 11]);
        if (is_for_build(&s))
            check_source(&s);
    }
    /* otherwise the test covers little */
    assert_true(fields_with_bytes > LEAST_WITH && fields_without > LEAST_WITHOUT);
}

/* The output of a command is no source; a kept index knows that too. */
UNIT_TEST(test_extents__output_of_command__none)
{
    static const char ark[] = "a  1 2\nb  3 4\n", scp[] = "a x.ark:2\nb cat b |\n";
    const struct memory_file files[] = {{.path = "x.ark", .bytes = ark, .len = sizeof(ark) - 1},
                                        {.path = "x.scp", .bytes = scp, .len = sizeof(scp) - 1}};
    const struct memory_command command = {.text = "cat b", .bytes = " 3 4\n", .len = 5};
    const struct format_options options = {.kaldi_type = KALDI_INTS};
    struct memory_opener opener = {
        .file = files, .n_files = 2, .command = &command, .n_commands = 1};
    AUTO(memory_keep_release) struct memory_keep keep;

    memory_opener_init(&opener);
    opener.opener.runs_commands = true;
    memory_keep_init(&keep, false);
    for (unsigned round = 0; round < 2; round++) {
        struct extent extent[EXTENTS_MOST];
        AUTO(kaldi_release) struct kaldi_folder folder;
        const struct dataset *ds;

        assert_int_equal(kaldi_open(&files[1], 1, &options, &keep.keep, &opener, &folder), 0);
        ds = kaldi_dataset(&folder, folder.found.item[0].name);
        assert_non_null(ds);
        assert_int_equal(keep.loads, round);
        assert_int_equal(ds->samples, 2);
        assert_int_equal(dataset_extents(ds, 0, NULL, extent), 1);
        assert_string_equal(blob_name(extent[0].blob), "x.ark");
        assert_int_equal(extent[0].off, 2);
        assert_int_equal(extent[0].len, 5);
        assert_int_equal(dataset_extents(ds, 1, NULL, extent), 0);
    }
}

static unsigned tell_doubles(const struct dataset *ds, uint64_t sample, const struct field *only,
                             struct extent *ret)
{
    static const uint64_t off[] = {7, 9, 7, 7, 9};

    (void)ds;
    (void)only;
    for (unsigned i = 0; i < ARRAY_LEN(off); i++)
        ret[i] = (struct extent){NULL, off[i], i == 3 ? 2 : sample};
    return ARRAY_LEN(off);
}

/* For example, two tables name the same object. */
UNIT_TEST(test_extents__same_bytes__reported_once)
{
    const struct dataset_ops ops = {.extents = tell_doubles};
    const struct dataset ds = {.ops = &ops};
    struct extent extent[EXTENTS_MOST];

    assert_int_equal(dataset_extents(&ds, 1, NULL, extent), 3);
    assert_int_equal(extent[0].off, 7);
    assert_int_equal(extent[1].off, 9);
    assert_int_equal(extent[2].off, 7);
    assert_int_equal(extent[2].len, 2);
}

int unit_setup(void **state)
{
    (void)state;
    lock_init(&recorded_lock);
    return 0;
}
