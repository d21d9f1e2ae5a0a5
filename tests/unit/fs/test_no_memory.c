/* The n-th allocation fails, for n = 1, 2, 3 ... until the run is clean. Every run ends with
 * -ENOMEM or as if nothing had happened, and everything is freed. Sanitizers see each of the runs
 * that are short, and some of the thousands that are long. */
#include <errno.h>
#include <stdio.h>

#include "format/encode/encode.h"
#include "format/kaldi/object/object.h"
#include "fs/plan/plan.h"
#include "fs/tree/pages.h"
#include "fs/tree/tree.h"
#include "support/failing_alloc.h"
#include "support/idx_make.h"
#include "support/libsvm_make.h"
#include "support/memory_opener.h"
#include "support/render.h"
#include "support/unit.h"

#ifdef SLOW_BUILD
#define STEP_OF_LONG 7 /* no multiple of 3: run_kaldi() does one of three things by the number */
#else
#define STEP_OF_LONG 1
#endif

/* One run. 0 or -ENOMEM. */
typedef int run_fn(void);

static void check_run(run_fn *run, unsigned step)
{
    for (unsigned long n = 1;; n += step) {
        bool has_failed;
        long live;
        int r;

        failing_alloc_begin(n);
        r = run();
        live = failing_alloc_live();
        has_failed = failing_alloc_end();
        if (live)
            fail_msg("allocation %lu failed: %ld left over", n, live);
        if (r != 0 && r != -ENOMEM)
            fail_msg("allocation %lu failed: result %d", n, r);
        if (!has_failed) {
            assert_int_equal(r, 0);
            assert_true(n > 10);
            return;
        }
    }
}

static int open_pair(struct found *ret)
{
    struct blob *blob[] = {idx_blob("x-images-idx3-ubyte", 8, 3, (uint32_t[]){3, 2, 2}, NULL),
                           idx_blob("x-labels-idx1-ubyte", 8, 1, (uint32_t[]){3}, NULL),
                           memory_blob_new("bad", "\0\0\x08\0", 4, 4, NULL),
                           idx_blob("y-images-idx3-ubyte", 8, 3, (uint32_t[]){3, 2, 2}, NULL),
                           idx_blob("y-labels-idx1-ubyte", 8, 1, (uint32_t[]){4}, NULL)};

    return idx_open(blob, ARRAY_LEN(blob), &(struct format_options){.transpose = true}, ret);
}

static int run_open(void)
{
    struct found found;
    int r = open_pair(&found);

    if (r == 0)
        assert_int_equal(found.n, 5);
    found_release(&found);
    return r;
}

UNIT_TEST(test_idx_folder__no_memory__nothing_leaks)
{
    check_run(run_open, 1);
}

static struct found opened;

static int run_encoders(void)
{
    const uint64_t sample[] = {2, 0, 0, 1};
    const struct dataset *ds = opened.item[found_find(&opened, "x")].ds;
    struct list_selection list;

    list_selection_init(&list, sample, ARRAY_LEN(sample));
    for (unsigned i = 0; i < ds->n_folders; i++) {
        for (unsigned k = 0; k < ds->folder[i].n_kinds[SCOPE_BATCHES]; k++) {
            struct bytes bytes;
            int r = render(READ_WAITS, ds, &ds->folder[i].files[SCOPE_BATCHES][k], &list.sel, NULL,
                           &bytes);

            if (r < 0)
                return r;
            free(bytes.at);
        }
    }
    return 0;
}

UNIT_TEST(test_encoders__no_memory__nothing_leaks)
{
    failing_alloc_begin(0);
    assert_int_equal(open_pair(&opened), 0);
    check_run(run_encoders, 1);
    found_release(&opened);
}

/* The plan comes twice, under another name and its own, so that it is also found opened. */
static int run_tree(void)
{
    static const char *const path[] = {
        "x",           "batches", "seed=1,batch=2,rank=0of2", "batch=2,rank=0of2,seed=1",
        "epoch=70000", "npy",     "000000.image.npy"};
    struct catalog_item item[] = {
        {.folder = (char *)"", .name = (char *)"bad", .error = (char *)"is broken"},
        {.folder = (char *)"", .name = (char *)"x", .ds = opened.item[found_find(&opened, "x")].ds},
        {.folder = (char *)"sub/folder",
         .name = (char *)"x",
         .ds = opened.item[found_find(&opened, "x")].ds}};
    const struct catalog catalog = {.n = 3, .item = item, .n_datasets = 2};
    const struct plan plan[] = {{.batch = 2, .parts = 1, .ranks = 1},
                                {.batch = 1, .parts = 1, .ranks = 1, .seeded = true}};
    const struct tree_options options = {.plan = plan, .n_plans = 2, .epochs = 2};
    struct tree *tree = NULL;
    struct node node, parent;
    int r =
        tree_new(&catalog, &options, page_readme(&catalog, "/source", "/mnt"), page_item, &tree);

    if (r == 0)
        r = tree_node(tree, TREE_ROOT, &node);
    for (size_t i = 0; i < ARRAY_LEN(path) && r == 0; i++) {
        parent = node;
        r = tree_lookup(tree, &parent, path[i], TREE_OWNER, &node, NULL, NULL);
        if (r == 0 && node.type == NODE_PLAN_LINK)
            node = parent;
    }
    tree_free(tree);
    return r;
}

UNIT_TEST(test_tree__no_memory__nothing_leaks)
{
    failing_alloc_begin(0);
    assert_int_equal(open_pair(&opened), 0);
    check_run(run_tree, 1);
    found_release(&opened);
}

/* Two files, side files, a bad row, rows that are not sorted, and more than one block. */
static int open_libsvm(const struct index_store *keep, struct libsvm_made *ret)
{
    char text[300 * 16];
    size_t len = 0;
    struct blob *blob[4];

    for (unsigned i = 0; i < 300; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%u %u:1 0:2\n", i % 2, i % 7);
    blob[0] = memory_blob_new("a", text, len, len, NULL);
    blob[1] = memory_blob_new("a.group", "100 200", 7, 7, NULL);
    blob[2] = memory_blob_new("b", "1 1:2\nx", 7, 7, NULL);
    blob[3] = memory_blob_new("b.group", "2", 1, 1, NULL);
    return libsvm_open(blob, ARRAY_LEN(blob), &(struct format_options){0}, keep, NULL, ret);
}

static int render_libsvm(const struct libsvm_made *made, const struct selection *sel,
                         struct bytes *ret)
{
    const struct dataset *ds = libsvm_dataset(made, "all");

    return render(READ_WAITS, ds, find_file_kind(ds, SCOPE_BATCHES, "npz", ".npz"), sel, NULL, ret);
}

/* The result of a run without a failure. */
static struct bytes libsvm_whole;

static int run_libsvm(void)
{
    static const uint64_t sample[] = {299, 0, 300, 7, 7};
    struct memory_keep keep;
    struct libsvm_made made;
    struct list_selection list;
    struct selection some;
    struct bytes bytes = {0};
    int r;

    memory_keep_init(&keep, failing_alloc_at() % 2);
    r = open_libsvm(&keep.keep, &made);
    if (r == 0 && !libsvm_dataset(&made, "all"))
        r = -ENOMEM;
    for (size_t i = 0; i < made.found.n && r == 0; i++)
        if (made.found.item[i].ds && dataset_state(made.found.item[i].ds) != DATASET_READY)
            r = -ENOMEM;
    mixed_init(&list, sample, ARRAY_LEN(sample));
    if (r == 0)
        r = render_libsvm(&made, &list.sel, &bytes);
    free(bytes.at);
    in_order_init(&some, 0, 301);
    if (r == 0)
        r = render_libsvm(&made, &some, &bytes);
    if (r == 0 && libsvm_whole.at) {
        assert_int_equal(bytes.len, libsvm_whole.len);
        assert_memory_equal(bytes.at, libsvm_whole.at, bytes.len);
    }
    if (r == 0 && !libsvm_whole.at)
        libsvm_whole = bytes;
    else if (r == 0)
        free(bytes.at);
    in_order_init(&some, 0, 302); /* with the bad row */
    if (r == 0) {
        r = render_libsvm(&made, &some, &bytes);
        assert_true(r == -EBADMSG || r == -ENOMEM);
        r = r == -EBADMSG ? 0 : r;
    }
    libsvm_release(&made);
    memory_keep_release(&keep);
    return r;
}

UNIT_TEST(test_libsvm__no_memory__nothing_leaks)
{
    failing_alloc_begin(0);
    assert_int_equal(run_libsvm(), 0);
    check_run(run_libsvm, 1);
    free(libsvm_whole.at);
    libsvm_whole.at = NULL;
}

/* Tables: text that is decoded, a binary archive that an scp file names with ranges, a missing
 * object, and a command. */
#define FILE_OF(path, text)                                                                        \
    {                                                                                              \
        path, text, sizeof(text) - 1, NULL                                                         \
    }
#define MATRIX "k0 \0BDM \4\2\0\0\0\4\2\0\0\0abcdefghijklmnopqrstuvwxyz012345"
static const struct memory_file kaldi_tables[] = {
    FILE_OF("a.ark", "k1  [ 1 2\n 3 4 ]\nk0  [ 5 6 ]\nk1  [ 7 8 ]\n"),
    FILE_OF("b.scp", "k0 c.ark:3\nk1 c.ark:3[0:0]\nk3 make |\nk4 c.ark:3[0:1,1:1]\nk2 none.ark:7\n"
                     "k5 c.ark:4\n"),
    FILE_OF("c.ark", MATRIX),
};
static const struct memory_command kaldi_command = {"make", &MATRIX[3], sizeof(MATRIX) - 4, 1};

static uint8_t kaldi_wave[KALDI_WAVE_HEADER + 400]; /* 200 samples, 100 a second */
static const struct memory_file kaldi_directory[] = {
    FILE_OF("feats.scp", "u1 m.ark:3\nu2 m.ark:3[1:1]\n"),
    FILE_OF("m.ark", MATRIX),
    FILE_OF("text", "u1 one\nu2 two words\nu3 more\n"),
    FILE_OF("utt2spk", "u2 s\nu1 s\n"),
    FILE_OF("spk2gender", "s f\n"),
    FILE_OF("segments", "u1 r 0 0.5\nu2 r 0.5 -1\n"),
    FILE_OF("wav.scp", "r r.wav\n"),
    {"r.wav", kaldi_wave, sizeof(kaldi_wave), NULL},
};

static void hash_up(uint64_t *hash, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
}

/* All files of a batch of a dataset, into hash. */
static int render_all(const struct dataset *ds, uint64_t *hash)
{
    static const uint64_t sample[] = {1, 0, 0};
    struct list_selection list;

    hash_up(hash, &ds->samples, sizeof(ds->samples));
    for (unsigned i = 0; i < ds->n_folders; i++) {
        for (unsigned k = 0; k < ds->folder[i].n_kinds[SCOPE_BATCHES]; k++) {
            struct bytes bytes;
            int r;

            mixed_init(&list, sample, ARRAY_LEN(sample));
            r = render(READ_WAITS, ds, &ds->folder[i].files[SCOPE_BATCHES][k], &list.sel, NULL,
                       &bytes);
            if (r < 0)
                return r;
            hash_up(hash, bytes.at, bytes.len);
            free(bytes.at);
        }
    }
    return 0;
}

/* Open, prepare and read the n datasets of a folder. */
static int read_folder(const struct memory_file *file, size_t n_files,
                       const struct index_store *keep, size_t n, uint64_t *hash)
{
    struct memory_opener opener = {.opener.runs_commands = true,
                                   .file = file,
                                   .n_files = n_files,
                                   .command = &kaldi_command,
                                   .n_commands = 1,
                                   .most = 1};
    struct kaldi_folder folder;
    int r;

    memory_opener_init(&opener);
    r = kaldi_open(file, n_files, &(struct format_options){0}, keep, &opener, &folder);
    if (r == 0 && folder.found.n != n)
        fail_msg("allocation %lu failed: %zu datasets, expected %zu; the last one: %s %s",
                 failing_alloc_at(), folder.found.n, n, folder.found.item[folder.found.n - 1].name,
                 folder.found.item[folder.found.n - 1].reason);
    for (size_t i = 0; i < folder.found.n && r == 0; i++) {
        const struct dataset *ds = folder.found.item[i].ds;

        if (!ds)
            fail_msg("%s", folder.found.item[i].reason);
        r = dataset_state(ds) == DATASET_READY ? render_all(ds, hash) : ds->failed;
    }
    kaldi_release(&folder);
    assert_int_equal(opener.running, 0);
    return r;
}

static uint64_t kaldi_hash; /* of a run without a failure; 0: unknown */

/* Each folder twice, so that kept indexes are used too. Whatever is read is right, and once memory
 * is back everything can be read. */
static int run_kaldi(void)
{
    struct memory_keep keep;
    uint64_t hash = UINT64_C(14695981039346656037);
    int r = 0;

    memory_keep_init(&keep, failing_alloc_at() % 3 == 1);
    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = read_folder(kaldi_tables, ARRAY_LEN(kaldi_tables), &keep.keep, 2, &hash);
    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = read_folder(kaldi_directory, ARRAY_LEN(kaldi_directory), &keep.keep, 1, &hash);
    if (r == 0 && kaldi_hash)
        assert_int_equal(hash, kaldi_hash);
    if (r == 0)
        kaldi_hash = hash;
    memory_keep_release(&keep);
    return r;
}

UNIT_TEST(test_kaldi__no_memory__nothing_leaks)
{
    kaldi_wave_header(1, 100, 200, kaldi_wave);
    failing_alloc_begin(0);
    kaldi_hash = 0;
    assert_int_equal(run_kaldi(), 0);
    check_run(run_kaldi, STEP_OF_LONG);
}

/* Pictures as wide as a header of 16 bytes can state: the memory used depends on the bytes read,
 * not on the header. */
static void check_wide(uint32_t samples, uint32_t rows, uint32_t columns)
{
    struct blob *blob = idx_blob_zeros("x", 8, 3, (uint32_t[]){samples, rows, columns}, NULL);
    static const char *const names[] = {"png", "pgm"};
    const uint64_t sample[] = {0};
    struct list_selection list;
    AUTO(found_release) struct found found;

    assert_int_equal(idx_open(&blob, 1, &(struct format_options){0}, &found), 0);
    list_selection_init(&list, sample, samples);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char suffix[16];
        const struct file_kind *kind;
        AUTO_LAYOUT struct layout l = {0};
        uint8_t buf[100];
        uint64_t n;

        snprintf(suffix, sizeof(suffix), ".image.%s", names[i]);
        kind = find_file_kind(found.item[0].ds, SCOPE_BATCHES, names[i], suffix);
        assert_non_null(kind);
        layout_init(&l, found.item[0].ds, &list.sel, NULL);
        assert_int_equal(kind->encoder->layout(&l, kind), 0);
        failing_alloc_begin(0);
        n = l.size - l.size / 2;
        n = n < sizeof(buf) ? n : sizeof(buf);
        assert_int_equal(layout_read(READ_WAITS, &l, l.size / 2, (size_t)n, buf, NULL), 0);
        if (failing_alloc_largest() > 1 << 20)
            fail_msg("%s: %zu bytes of memory to read 100", names[i], failing_alloc_largest());
    }
}

UNIT_TEST(test_pictures__very_wide__memory_by_what_is_read)
{
    check_wide(0, 1, 1 << 30);
    check_wide(1, 1, 1 << 30);
    check_wide(1, 4, 1 << 28);
}
