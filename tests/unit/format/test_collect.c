/* Files with absent bytes. One pass of the reading code collects all missing ranges, so one fetch
 * suffices for a file; the memo keeps nothing made from unread bytes; and a remote that fails, or
 * bytes that are lost again, only cost time. Every file of datasets of each format is compared with
 * the same file of local sources. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "format/kaldi/object/object.h"
#include "support/absent_blob.h"
#include "support/kaldi_make.h"
#include "support/memory_opener.h"
#include "support/random.h"
#include "support/unit.h"
#include "support/worlds.h"

#define BATCH      128
#define TRIPS_MOST 1000

#ifdef SLOW_BUILD
#define LESS 6 /* the share of cases that run */
#else
#define LESS 1
#endif
#ifdef ONLY_THREADS
#define LEAST_FILES 30
#define LONG_ROWS   false /* are decoded one by one */
#else
#define LEAST_FILES (800 / LESS)
#define LONG_ROWS   true
#endif

extern const struct encoder encoder_npz;

/* ---- reading ---- */

/* A memory for CRCs of the first slots. */
#define SLOTS 64
struct reports {
    struct layout_host host; /* first */
    uint64_t known;
    struct layout_sum sum[SLOTS];
};

static void recall(const struct layout_host *host, const struct layout_range *range, unsigned n,
                   struct layout_sum *ret)
{
    const struct reports *notes = (const struct reports *)host;

    for (unsigned i = 0; i < n; i++)
        if (range[i].slot < SLOTS && notes->known >> range[i].slot & 1)
            ret[i] = notes->sum[range[i].slot];
}

static void remember(const struct layout_host *host, const struct layout_range *range, unsigned n,
                     const struct layout_sum *sum)
{
    struct reports *notes = (struct reports *)(uintptr_t)host;

    for (unsigned i = 0; i < n; i++) {
        if (range[i].slot >= SLOTS)
            continue;
        notes->known |= UINT64_C(1) << range[i].slot;
        notes->sum[range[i].slot] = sum[i];
    }
}

static const struct layout_host notes_host = {.recall = recall, .remember = remember};

/* A file that is read from two worlds. */
struct file {
    const struct dataset *here, *there;
    const struct file_kind *kind, *kind_there;
    const struct selection *sel;
    const char *dataset;
    struct absent *absent;
    struct reports notes;
    struct bytes want;
    int result; /* of reading it here */
};

static void count_done(struct waiter *waiter)
{
    (void)waiter;
}

/* What happens between two rounds; NULL: nothing. */
typedef void between_fn(struct file *file, uint64_t *rng);

/* Read until no bytes are missing. Returns the result of the last read, and the number of
 * fetches. */
static int read_there(struct file *file, between_fn *between, struct bytes *ret,
                      unsigned *ret_trips)
{
    struct waiter waiter = {.done = count_done};
    uint64_t rng = RANDOM_SEED;
    struct read_context rc;
    int r;

    read_context_init(&rc, true);
    for (*ret_trips = 0;; ++*ret_trips) {
        r = render(&rc, file->there, file->kind_there, file->sel, &file->notes.host, ret);
        if (r != -EAGAIN)
            break;
        if (!rc.n || *ret_trips == TRIPS_MOST)
            fail_msg("%s, %s%s: nothing is wanted, or no end", file->dataset, file->kind->folder,
                     file->kind->suffix);
        missing_fetch(&rc, &waiter);
        assert_int_equal(waiter.error, 0);
        if (between)
            between(file, &rng);
    }
    read_context_release(&rc);
    return r;
}

static void check_same(const struct file *file, int r, struct bytes *got)
{
    if (r != file->result)
        fail_msg("%s, %s%s: %d, expected %d", file->dataset, file->kind->folder, file->kind->suffix,
                 r, file->result);
    if (r < 0)
        return;
    if (got->len != file->want.len || memcmp(got->at, file->want.at, got->len) != 0)
        fail_msg("%s, %s%s: other bytes", file->dataset, file->kind->folder, file->kind->suffix);
    free(got->at);
}

/* ---- all files ---- */

typedef void check_fn(struct file *file);

static void check_files(const struct world *here, struct world *there, size_t item,
                        const struct selection *sel, check_fn *check)
{
    const struct dataset *ds = here->found.item[item].ds;
    enum scope scope = sel->single ? SCOPE_SAMPLES : SCOPE_BATCHES;

    for (unsigned i = 0; i < ds->n_folders; i++) {
        for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++) {
            static uint64_t id = 1000000;
            struct list_selection own = *(const struct list_selection *)sel;
            struct file file = {.here = ds,
                                .there = there->found.item[item].ds,
                                .kind = &ds->folder[i].files[scope][k],
                                .sel = &own.sel,
                                .dataset = here->found.item[item].name,
                                .absent = &there->absent,
                                .notes.host = notes_host};

            own.sel.id[1] = ++id; /* so that no file uses the memo's entries of another */
            file.kind_there =
                find_file_kind(file.there, scope, file.kind->folder, file.kind->suffix);
            file.result = render(READ_WAITS, ds, file.kind, file.sel, NULL, &file.want);
            check(&file);
            if (file.result == 0)
                free(file.want.at);
        }
    }
}

static void check_source(const struct world_source *s, uint64_t batch, bool large, check_fn *check)
{
    AUTO_WORLD struct world here = {.troubles = 0}, there = {.troubles = 0};

    worlds_open(s, &here, &there);
    for (size_t i = 0; i < here.found.n; i++) {
        uint64_t n = here.found.item[i].ds->samples, rng = RANDOM_SEED;
        AUTO_FREE uint64_t *sample = malloc((n + 1) * sizeof(*sample));
        struct list_selection list;

        for (uint64_t k = 0; k < n; k++)
            sample[k] = k;
        for (uint64_t k = n; k > 1; k--) {
            uint64_t other = random_below(&rng, k), kept = sample[k - 1];

            sample[k - 1] = sample[other];
            sample[other] = kept;
        }
        mixed_init(&list, sample, min_u64(n, batch));
        list.sel.file = "/mnt/x";
        check_files(&here, &there, i, &list.sel, check);
        if (!large)
            continue;
        in_order_init(&list.sel, 0, n);
        check_files(&here, &there, i, &list.sel, check);
#ifdef ONLY_THREADS
        continue; /* they share the same blocks of rows, at other places */
#endif
        mixed_init(&list, sample, n);
        check_files(&here, &there, i, &list.sel, check);
        in_order_init(&list.sel, n / 3, n / 2);
        check_files(&here, &there, i, &list.sel, check);
        sample_init((struct one_sample *)&list, sample[0]);
        check_files(&here, &there, i, &list.sel, check);
    }
}

/* Check every format; of the kinds of Kaldi objects, one in every `every`. */
static void check_all(check_fn *check, bool large, unsigned every)
{
    for (unsigned i = 0; i < 10 + N_KALDI_KINDS; i += i < 10 ? 1 : every * LESS) {
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
            source_records(&s);
        else if (i == 7)
            source_learned(&s);
        else if (i < 10)
            source_recordio(&s, i == 8);
        else
            source_kind(&s, &kaldi_kinds[i - 10]);
        if (is_for_build(&s) && (LONG_ROWS || i != 4))
            check_source(&s, BATCH, large && (i < 10 || i % 8 == 4), check);
    }
}

/* ---- tests ---- */

static unsigned files, fetched; /* files read, and those of them that took a fetch */

static void check_one_trip(struct file *file)
{
    struct bytes got = {0};
    unsigned trips;
    uint64_t rng = 1;
    int r;

    absent_drop(file->absent, 256, &rng);
    r = read_there(file, NULL, &got, &trips);
    if (trips > 1)
        fail_msg("%s, %s%s, %llu samples: %u fetches, expected 1", file->dataset,
                 file->kind->folder, file->kind->suffix, (unsigned long long)file->sel->count,
                 trips);
    files++;
    fetched += trips;
    check_same(file, r, &got);
}

UNIT_TEST(test_collect__every_file__one_fetch)
{
    check_all(check_one_trip, true, 1);
    /* Otherwise the test covers little. */
    assert_true(files > LEAST_FILES && fetched > files / 2);
}

/* Half of the time lose everything again, otherwise sometimes a part. */
static void lose(struct file *file, uint64_t *rng)
{
    uint64_t what = random_below(rng, 8);

    if (what < 6)
        absent_drop(file->absent, what < 3 ? 256 : 64, rng);
}

static void check_losses(struct file *file)
{
    struct bytes got = {0};
    unsigned trips;
    uint64_t rng = 1;
    int r;

    absent_drop(file->absent, 256, &rng);
    r = read_there(file, lose, &got, &trips);
    check_same(file, r, &got);
}

UNIT_TEST(test_collect__bytes_lost_again__right_in_the_end)
{
    check_all(check_losses, false, 5);
}

static void check_failures(struct file *file)
{
    uint64_t rng = 1, clean;
    struct bytes got = {0};
    unsigned trips;
    int r;

    file->absent->reads = 0;
    absent_drop(file->absent, 256, &rng);
    r = read_there(file, NULL, &got, &trips);
    check_same(file, r, &got);
    clean = file->absent->reads;
    for (uint64_t at = 1; at <= clean; at += LESS + at / 2) {
        struct list_selection sel = *(const struct list_selection *)file->sel;
        struct file again = *file;

        sel.sel.id[2] = at + 1; /* with an empty memo */
        again.sel = &sel.sel;
        again.notes.known = 0;
        absent_drop(file->absent, 256, &rng);
        file->absent->reads = 0;
        file->absent->fail_read = at;
        file->absent->fail_times = 1;
        r = read_there(&again, NULL, &got, &trips);
        file->absent->fail_read = 0;
        if (r == -EREMOTEIO) /* otherwise the error of a helper that read ahead */
            r = read_there(&again, NULL, &got, &trips);
        check_same(&again, r, &got);
    }
}

UNIT_TEST(test_collect__remote_fails__then_right)
{
    check_all(check_failures, false, 5);
}

/* Blocks of rows are decoded ahead: the reader does not try again each block that lacks bytes. */
UNIT_TEST(test_collect__rows_ahead__looked_at_once)
{
    AUTO(source_release) struct world_source s = {.n = 0};
    AUTO_WORLD struct world there = {.troubles = 0};
    uint64_t sample[1500], rng = RANDOM_SEED;
    struct list_selection list;
    const struct dataset *ds;
    struct read_context rc;
    struct bytes got;

    source_libsvm(&s, true);
    world_open(&there, &s, true);
    ds = there.found.item[0].ds;
    assert_int_equal(ds->samples, ARRAY_LEN(sample));
    for (size_t i = 0; i < ARRAY_LEN(sample); i++)
        sample[i] = random_below(&rng, ARRAY_LEN(sample));
    mixed_init(&list, sample, ARRAY_LEN(sample));
    absent_drop(&there.absent, 256, &rng);
    there.absent.reads = 0;
    read_context_init(&rc, true);
    assert_int_equal(render(&rc, ds, find_file_kind(ds, SCOPE_BATCHES, "npy", ".label.npy"),
                            &list.sel, NULL, &got),
                     -EAGAIN);
    read_context_release(&rc);
    assert_true(there.absent.reads <= 2 * ARRAY_LEN(sample));
}

/* The header of a large archive needs a pass over all of it, more than fits: each fetch drops all
 * bytes but the last fetched ones. */
UNIT_TEST(test_collect__more_than_there_is_room_for__checksum_ends)
{
    const uint32_t dim[] = {200000, 1000};
    struct absent absent = {.reads = 0};
    struct blob *blob =
        idx_blob_zeros("x-images", 0x08, 2, dim, &(struct blob_faults){.absent = &absent});
    struct reports notes = {.host = notes_host};
    AUTO_LAYOUT struct layout l = {0};
    struct waiter waiter = {.done = count_done};
    uint8_t here[30], there[30];
    uint64_t rng = 1;
    struct list_selection list;
    AUTO(found_release) struct found found;
    AUTO(read_context_release) struct read_context rc;
    unsigned trips = 0;
    int r;

    assert_int_equal(idx_open(&blob, 1, &(struct format_options){0}, &found), 0);
    in_order_init(&list.sel, 0, 200000);
    read_context_init(&rc, true);
    layout_init(&l, found.item[0].ds, &list.sel, &notes.host);
    assert_int_equal(encoder_npz.layout(&l, &(struct file_kind){.encoder = &encoder_npz}), 0);
    absent_drop(&absent, 256, &rng);
    for (;; trips++) {
        r = layout_read(&rc, &l, 0, sizeof(there), there, NULL);
        if (r != -EAGAIN)
            break;
        assert_true(trips < 10);
        assert_true(rc.bytes <= MISSING_BYTES + MISSING_GAP);
        absent_drop(&absent, 256, &rng);
        missing_fetch(&rc, &waiter);
    }
    assert_int_equal(r, 0);
    assert_int_equal(trips, ceil_div(UINT64_C(200000) * 1000, MISSING_BYTES));
    l.host = NULL;
    assert_int_equal(layout_read(READ_WAITS, &l, 0, sizeof(here), here, NULL), 0);
    assert_memory_equal(here, there, sizeof(here));
}

/* The first file of a folder of batches, of all samples: each time that of another folder. */
static void check_equal(const struct dataset *a, const struct dataset *b, uint64_t time)
{
    struct list_selection list;

    in_order_init(&list.sel, 0, a->samples);
    list.sel.file = "/mnt/x";
    for (unsigned i = 0; i < a->n_folders; i++) {
        const struct file_kind *kind = a->folder[(time + i) % a->n_folders].files[SCOPE_BATCHES];
        const struct file_kind *other;
        struct bytes x = {0}, y = {0};
        int r;

        if (!kind)
            continue;
        other = find_file_kind(b, SCOPE_BATCHES, kind->folder, kind->suffix);
        assert_non_null(other);
        r = render(READ_WAITS, a, kind, &list.sel, NULL, &x);
        assert_int_equal(render(READ_WAITS, b, other, &list.sel, NULL, &y), r);
        assert_int_equal(x.len, y.len);
        if (x.len)
            assert_memory_equal(x.at, y.at, x.len);
        free(x.at);
        free(y.at);
        return;
    }
}

/* Open and prepare while reads at and at + 1 fail. false: there were fewer reads. */
static bool check_trouble(const struct world_source *s, const struct world *here, uint64_t at,
                          uint64_t time, unsigned *troubles)
{
    AUTO_WORLD struct world there = {.absent = {.fail_read = at, .fail_times = 2}};

    world_open(&there, s, true);
    if (there.absent.reads < at)
        return false;
    there.absent.fail_read = 0;
    *troubles += there.troubles;
    for (size_t i = 0; i < there.found.n; i++) {
        const struct dataset *ds = there.found.item[i].ds;
        int k = found_find(&here->found, there.found.item[i].name);

        if (!ds || there.result < 0) /* opening failed */
            continue;
        if (dataset_state(ds) != DATASET_READY)
            fail_msg("%s, read %llu: %s", there.found.item[i].name, (unsigned long long)at,
                     ds->reason.text);
        if (there.found.n != here->found.n || k < 0 || !here->found.item[k].ds ||
            here->found.item[k].ds->n_fields != ds->n_fields)
            continue; /* another file of the folder could not be opened */
        assert_int_equal(here->found.item[k].ds->notes.n, ds->notes.n);
        if (ds->notes.n)
            assert_string_equal(here->found.item[k].ds->notes.text.data, ds->notes.text.data);
        check_equal(ds, here->found.item[k].ds, time);
    }
    return true;
}

/* Whichever read of opening and preparing fails, the result is an error of opening, or a dataset
 * that is ready later and right. */
static void check_preparing(struct world_source *s)
{
    AUTO_WORLD struct world here = {.troubles = 0};
    unsigned troubles = 0;
    uint64_t time = 0;

    world_open(&here, s, false);
    /* The first reads belong to opening and the start of preparing. */
    for (uint64_t at = 1; check_trouble(s, &here, at, time, &troubles); at += at < 8 ? 2 : 2 * LESS)
        time++;
    if (s->format != &format_idx)
        assert_true(troubles > 0);
}

UNIT_TEST(test_collect__remote_fails_while_preparing__ready_later)
{
    for (unsigned i = 0; i < 8; i++) {
        AUTO(source_release) struct world_source s = {.n = 0};

        if (i < 1)
            source_idx(&s, false);
        else if (i < 3)
            source_libsvm(&s, i == 1);
        else if (i < 4)
            source_directory(&s);
        else if (i < 5)
            source_n_records(&s, 40);
        else if (i < 6)
            source_learned(&s);
        else if (i < 7)
            source_recordio(&s, true);
        else
            source_kind(&s, &kaldi_kinds[0]);
        if (is_for_build(&s))
            check_preparing(&s);
    }
}
