/* Files that are read in pieces, with what is kept of them between the pieces. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "fs/tree/view.h"
#include "support/tree_make.h"
#include "support/unit.h"
#include "support/worlds.h"

#define PIECE   700 /* bytes of a read */
#define THREADS 4

/* A mount's tree over a world. */
struct mount {
    struct world world;
    struct catalog_item *item;
    struct catalog catalog;
    struct tree *tree;
    struct open_files *files;
};

static void mount_open(struct mount *m, const struct world_source *s, bool absent)
{
    world_open(&m->world, s, absent);
    assert_int_equal(m->world.result, 0);
    m->item = calloc(m->world.found.n, sizeof(*m->item));
    for (size_t i = 0; i < m->world.found.n; i++)
        m->item[i] = (struct catalog_item){.folder = (char *)"",
                                           .name = m->world.found.item[i].name,
                                           .ds = m->world.found.item[i].ds};
    m->catalog =
        (struct catalog){.n = m->world.found.n, .item = m->item, .n_datasets = m->world.found.n};
    m->tree = tree_make(&m->catalog, NULL);
    assert_int_equal(open_files_new("/mnt", &m->files), 0);
}

static void mount_release(struct mount *m)
{
    open_files_free(m->files);
    tree_free(m->tree);
    free(m->item);
    world_release(&m->world);
}
#define AUTO_MOUNT AUTO(mount_release)

static void forget(struct mount *m)
{
    open_files_free(m->files);
    assert_int_equal(open_files_new("/mnt", &m->files), 0);
}

/* The folder of the batches of an epoch of an item, whose children are the <enc>/ folders. */
static struct node epoch_of(struct mount *m, const struct catalog_item *item, const char *plan)
{
    return tree_node_at(m->tree, "%s/batches/%s/epoch=3", item->name, plan);
}

/* File number index of the folder number enc. False: there is none. */
static bool file_of(struct mount *m, const struct node *epoch, uint64_t enc, uint64_t index,
                    struct node *ret)
{
    char name[TREE_NAME_SIZE];
    struct node folder;

    return tree_list(m->tree, epoch, enc, &folder, name) == 0 &&
           tree_list(m->tree, &folder, index, ret, name) == 0;
}

static int read_piece(struct read_context *rc, struct mount *m, const struct node *node,
                      uint64_t off, uint8_t *dst, size_t *ret_len)
{
    return view_read(rc, m->files, node, off, PIECE, dst, ret_len, NULL);
}

/* Read a file piece by piece; forgets: with nothing kept between two of them. A long file is made
 * again for each piece: from its tenth piece on only one in eight comes first. */
static int read_file(struct read_context *rc, struct mount *m, const struct node *node,
                     bool forgets, struct text *ret)
{
    uint8_t piece[PIECE];
    size_t n = PIECE;

    for (uint64_t off = 0; n == PIECE; off += n) {
        int r = read_piece(rc, m, node, off, piece, &n);

        if (r < 0)
            return r;
        text_add_bytes(ret, (const char *)piece, n);
        if (forgets && (off < 10 * PIECE || off / PIECE % 8 == 0))
            forget(m);
    }
    return 0;
}

/* The same with a context as requests have it, which keeps what is made; ahead: all of it is made
 * before. */
static int read_made(struct mount *m, const struct node *node, bool ahead, struct text *ret)
{
    struct read_context rc;
    int r = 0;

    read_context_init(&rc, false);
    if (ahead)
        r = open_files_make(&rc, m->files, node);
    read_context_release(&rc);
    if (r < 0 && r != -EALREADY)
        return r;
    read_context_init(&rc, false);
    r = read_file(&rc, m, node, false, ret);
    read_context_release(&rc);
    return r;
}

static void check_file(struct mount *m, const struct node *node)
{
    AUTO_TEXT struct text fresh = {0};
    AUTO_TEXT struct text kept = {0};
    uint64_t size = 0;
    int r = read_file(READ_WAITS, m, node, true, &fresh);

    for (int ahead = 0; ahead < 2; ahead++) {
        AUTO_TEXT struct text made = {0};

        assert_int_equal(read_made(m, node, ahead, &made), r);
        assert_int_equal(made.len, fresh.len);
        if (made.len)
            assert_memory_equal(made.data, fresh.data, made.len);
        forget(m);
    }
    assert_int_equal(read_file(READ_WAITS, m, node, false, &kept), r);
    assert_int_equal(kept.len, fresh.len);
    if (kept.len)
        assert_memory_equal(kept.data, fresh.data, kept.len);
    if (r == 0) {
        assert_int_equal(view_size(READ_WAITS, m->files, node, &size, NULL), 0);
        assert_int_equal(size, kept.len);
    }
}

static void check_source(void (*make)(struct world_source *s))
{
    AUTO(source_release) struct world_source s = {0};
    AUTO_MOUNT struct mount m = {0};
    unsigned files = 0;

    make(&s);
    if (!is_for_build(&s))
        return;
    mount_open(&m, &s, false);
    for (size_t i = 0; i < m.catalog.n; i++) {
        struct node epoch, node;

        if (!m.item[i].ds)
            continue;
        epoch = epoch_of(&m, &m.item[i], "batch=40,seed=7");
        for (uint64_t enc = 0; file_of(&m, &epoch, enc, 0, &node); enc++)
            for (uint64_t k = 0; k < 20 && file_of(&m, &epoch, enc, k, &node); k++, files++)
                check_file(&m, &node);
    }
    assert_true(files > 10);
}

static void make_idx(struct world_source *s)
{
    source_idx(s, false);
}

static void make_libsvm(struct world_source *s)
{
    source_libsvm(s, true);
}

UNIT_TEST(test_open_files__read_in_pieces__the_same_bytes)
{
    check_source(make_idx);
    check_source(make_libsvm);
    check_source(source_directory);
    check_source(source_records);
}

/* ---- how often a layout is made ---- */

static _Atomic unsigned forms;
static sem_t gate;
static _Atomic bool is_gated;
static const struct field_ops *real_ops;
static struct field_ops counted_ops;

static int count_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    forms++;
    if (is_gated)
        sem_wait(&gate);
    return real_ops->form(ds, f, sel, ret);
}

/* Count how often the form of the first field of records is asked for. */
static void count_forms(const struct dataset *ds)
{
    for (unsigned i = 0; i < ds->n_fields; i++) {
        struct field *f = (struct field *)(uintptr_t)&ds->field[i];

        if (!f->ops->form || !field_is_in(f, IN_NPZ_BATCHES))
            continue;
        real_ops = f->ops;
        counted_ops = *real_ops;
        counted_ops.form = count_form;
        f->ops = &counted_ops;
        return;
    }
    fail();
}

/* The records, and the folder of its npz files. */
struct records {
    struct world_source source;
    struct mount mount;
    struct node npz;
};

static void records_open(struct records *r, const char *plan, bool absent)
{
    struct node epoch;

    source_records(&r->source);
    mount_open(&r->mount, &r->source, absent);
    count_forms(r->mount.item[0].ds);
    epoch = epoch_of(&r->mount, &r->mount.item[0], plan);
    assert_int_equal(tree_lookup(r->mount.tree, &epoch, "npz", TREE_OWNER, &r->npz, NULL, NULL), 0);
    forms = 0;
}

static void records_release(struct records *r)
{
    mount_release(&r->mount);
    source_release(&r->source);
}
#define AUTO_RECORDS AUTO(records_release)

static struct node npz_at(struct records *r, uint64_t index)
{
    char name[TREE_NAME_SIZE];
    struct node node;

    assert_int_equal(tree_list(r->mount.tree, &r->npz, index, &node, name), 0);
    return node;
}

/* How often a read of a file's first bytes asks for the form. */
static unsigned forms_of_read(struct records *r, uint64_t index)
{
    const struct node node = npz_at(r, index);
    unsigned before = forms;
    uint8_t piece[PIECE];
    size_t n;

    assert_int_equal(read_piece(READ_WAITS, &r->mount, &node, 0, piece, &n), 0);
    assert_int_equal(n, PIECE);
    return forms - before;
}

UNIT_TEST(test_open_files__read_again__no_new_layout)
{
    AUTO_RECORDS struct records r = {0};
    struct node node;
    uint64_t size = 0;

    records_open(&r, "batch=40,seed=7", false);
    node = npz_at(&r, 0);
    assert_true(forms_of_read(&r, 0) > 0);
    assert_int_equal(forms_of_read(&r, 0), 0);
    assert_true(forms_of_read(&r, 1) > 0);
    assert_int_equal(forms_of_read(&r, 0), 0);
    forms = 0;
    assert_int_equal(view_size(READ_WAITS, r.mount.files, &node, &size, NULL), 0);
    assert_int_equal(forms, 0);
}

/* The size of a record file takes reading its samples: the first read finds what that has made. */
UNIT_TEST(test_open_files__size_that_reads__kept_for_the_read)
{
    AUTO_RECORDS struct records r = {0};
    struct node epoch, node;
    unsigned of_size;
    uint64_t size = 0;

    records_open(&r, "batch=40,seed=7", false);
    epoch = epoch_of(&r.mount, &r.mount.item[0], "batch=40,seed=7");
    assert_int_equal(tree_lookup(r.mount.tree, &epoch, "tfrecord", TREE_OWNER, &r.npz, NULL, NULL),
                     0);
    node = npz_at(&r, 0);
    assert_int_equal(view_size(READ_WAITS, r.mount.files, &node, &size, NULL), 0);
    of_size = forms;
    assert_true(size > PIECE && of_size >= 40);
    assert_true(forms_of_read(&r, 0) < of_size);
}

UNIT_TEST(test_open_files__read_whole__not_kept)
{
    AUTO_RECORDS struct records r = {0};
    uint8_t *bytes = malloc(1 << 20);
    struct node node;
    uint64_t size = 0;
    size_t n;

    records_open(&r, "batch=40,seed=7", false);
    node = npz_at(&r, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(view_read(READ_WAITS, r.mount.files, &node, 0, 1 << 20, bytes, &n, NULL),
                         0);
        assert_int_equal(view_size(READ_WAITS, r.mount.files, &node, &size, NULL), 0);
        assert_int_equal(n, size);
        assert_true(forms > 0);
        forms = 0;
    }
    free(bytes);
    assert_true(forms_of_read(&r, 0) > 0);
    assert_int_equal(forms_of_read(&r, 0), 0);
}

/* The files that were read last are kept, and a size alone displaces none. */
UNIT_TEST(test_open_files__many_files__the_last_are_kept)
{
    AUTO_RECORDS struct records r = {0};
    uint64_t size;

    records_open(&r, "batch=1,seed=7", false);
    for (uint64_t i = 0; i < 100; i++)
        assert_true(forms_of_read(&r, i) > 0);
    for (uint64_t i = 100; i < 140; i++) {
        const struct node node = npz_at(&r, i);

        assert_int_equal(view_size(READ_WAITS, r.mount.files, &node, &size, NULL), 0);
    }
    for (uint64_t i = 99; i >= 100 - KEPT_FILES; i--)
        assert_int_equal(forms_of_read(&r, i), 0);
    assert_true(forms_of_read(&r, 99 - KEPT_FILES) > 0);
    assert_int_equal(forms_of_read(&r, 100 - KEPT_FILES), 0);
    assert_true(forms_of_read(&r, 99) > 0); /* the least recently read had to go */
}

/* A dataset of many copies of the field whose forms are counted. */
#define WIDE 6000

static void widen(struct dataset *ds)
{
    const struct field *from = ds->field;
    struct field *wide = calloc(WIDE, sizeof(*wide));

    assert_non_null(wide);
    while (from->ops != &counted_ops)
        from++;
    for (unsigned i = 0; i < WIDE; i++)
        wide[i] = *from;
    ds->field = wide;
    ds->n_fields = WIDE;
}

/* Take a file and give it back, as if a piece of it was read. Was it kept? ret_bytes: of its parts
 * and headers. */
static bool take_and_give(struct records *r, uint64_t index, size_t *ret_bytes)
{
    const struct node node = npz_at(r, index);
    unsigned before = forms;
    struct open_file *f;

    assert_int_equal(open_files_take(READ_WAITS, r->mount.files, &node, &f, NULL), 0);
    *ret_bytes = f->layout.n_parts * sizeof(struct part);
    for (unsigned i = 0; i < f->layout.n_parts; i++)
        if (f->layout.part[i].bytes)
            *ret_bytes += f->layout.part[i].size;
    open_files_give(f, 0);
    return forms == before;
}

/* Layouts of many parts: fewer files are kept, the last ones. */
UNIT_TEST(test_open_files__many_fields__memory_is_bounded)
{
    AUTO_RECORDS struct records r = {0};
    struct dataset *ds;
    struct field *field;
    unsigned n_fields;
    size_t kept = 0, bytes;
    uint64_t i;

    records_open(&r, "batch=1,seed=7", false);
    ds = r.mount.item[0].ds;
    field = ds->field;
    n_fields = ds->n_fields;
    widen(ds);
    for (i = 0; i < KEPT_FILES; i++)
        assert_false(take_and_give(&r, i, &bytes));
    assert_true(bytes * KEPT_FILES > KEPT_BYTES);
    while (i-- && take_and_give(&r, i, &bytes))
        kept += bytes;
    assert_true(kept > 0);
    assert_true(kept <= KEPT_BYTES);
    free(ds->field);
    ds->field = field;
    ds->n_fields = n_fields;
}

UNIT_TEST(test_open_files__source_changed__each_read_is_stale)
{
    AUTO_RECORDS struct records r = {0};
    struct node node;
    uint8_t piece[PIECE];
    size_t n;

    records_open(&r, "batch=40,seed=7", false);
    node = npz_at(&r, 0);
    assert_true(forms_of_read(&r, 0) > 0);
    r.mount.world.faults.stale = true;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(read_piece(READ_WAITS, &r.mount, &node, 0, piece, &n), -ESTALE);
    r.mount.world.faults.stale = false;
    assert_int_equal(read_piece(READ_WAITS, &r.mount, &node, 0, piece, &n), 0);
}

static int read_first(struct records *r, const struct node *node)
{
    uint8_t piece[PIECE];
    struct read_context rc;
    size_t n;
    int result;

    read_context_init(&rc, false);
    result = read_piece(&rc, &r->mount, node, 0, piece, &n);
    read_context_release(&rc);
    return result;
}

/* Bytes that were made of a version that is no more are not given. */
UNIT_TEST(test_open_files__made_and_source_changed__each_read_is_stale)
{
    AUTO_RECORDS struct records r = {0};
    struct read_context rc;
    struct node node;

    records_open(&r, "batch=40,seed=7", false);
    node = npz_at(&r, 0);
    read_context_init(&rc, false);
    assert_int_equal(open_files_make(&rc, r.mount.files, &node), 0);
    read_context_release(&rc);
    forms = 0;
    r.mount.world.faults.stale = true;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(read_first(&r, &node), -ESTALE);
    r.mount.world.faults.stale = false;
    assert_int_equal(read_first(&r, &node), 0);
    assert_int_equal(forms, 0);
}

static void lend(struct records *r, const struct node *node, uint64_t off, size_t len,
                 struct view_loan *ret)
{
    AUTO(read_context_release) struct read_context rc;

    read_context_init(&rc, false);
    assert_int_equal(view_lend(&rc, r->mount.files, node, off, len, NULL, ret, NULL), 0);
}

/* Bytes that are made are lent, to several requests at a time, and stay until all gave them back.
 */
UNIT_TEST(test_open_files__made__lent_without_a_copy)
{
    AUTO_RECORDS struct records r = {0};
    struct view_loan first, second, rest;
    struct read_context rc;
    struct node node;
    uint64_t size;

    records_open(&r, "batch=1,seed=7", false);
    node = npz_at(&r, 0);
    read_context_init(&rc, false);
    assert_int_equal(open_files_make(&rc, r.mount.files, &node), 0);
    read_context_release(&rc);
    lend(&r, &node, 0, PIECE, &first);
    for (uint64_t i = 1; i < KEPT_FILES + 20; i++)
        forms_of_read(&r, i);
    forms = 0;
    lend(&r, &node, PIECE, PIECE, &second);
    assert_int_equal(forms, 0);
    assert_ptr_equal(second.file, first.file);
    assert_ptr_equal(second.bytes, first.bytes + PIECE);
    lend(&r, &node, 2 * PIECE, 1 << 20, &rest);
    view_give_back(&first);
    view_give_back(&rest);
    assert_true(open_files_size(r.mount.files, &node, &size));
    assert_int_equal(rest.len, size - 2 * PIECE);
    view_give_back(&second); /* all of it was read */
    assert_false(open_files_size(r.mount.files, &node, &size));
}

struct maker {
    struct records *records;
    int result;
};

static void *make_file(void *arg)
{
    struct maker *maker = arg;
    const struct node node = npz_at(maker->records, 0);
    struct read_context rc;

    read_context_init(&rc, false);
    maker->result = open_files_make(&rc, maker->records->mount.files, &node);
    read_context_release(&rc);
    return NULL;
}

/* Called while a reader waits: the maker may go on; or the reader gives up. */
static bool open_gate(void *ctx)
{
    bool *gives_up = ctx;

    if (!*gives_up && atomic_exchange(&is_gated, false))
        sem_post(&gate);
    return *gives_up;
}

UNIT_TEST(test_open_files__read_while_it_is_made__waits)
{
    AUTO_RECORDS struct records r = {0};
    struct maker maker = {.records = &r};
    bool gives_up = true;
    struct read_context rc;
    uint8_t piece[PIECE];
    struct node node;
    pthread_t thread;
    size_t n;

    records_open(&r, "batch=40,seed=7", false);
    node = npz_at(&r, 0);
    sem_init(&gate, 0, 0);
    is_gated = true;
    assert_int_equal(pthread_create(&thread, NULL, make_file, &maker), 0);
    while (!forms) /* until it is being made */
        sched_yield();
    read_context_init(&rc, false);
    rc.cancelled = open_gate;
    rc.ctx = &gives_up;
    assert_int_equal(read_piece(&rc, &r.mount, &node, 0, piece, &n), -EINTR);
    assert_int_equal(open_files_make(&rc, r.mount.files, &node), -EALREADY);
    gives_up = false;
    assert_int_equal(read_piece(&rc, &r.mount, &node, 0, piece, &n), 0);
    read_context_release(&rc);
    pthread_join(thread, NULL);
    assert_int_equal(maker.result, 0);
    forms = 0;
    assert_int_equal(read_first(&r, &node), 0);
    assert_int_equal(forms, 0);
    sem_destroy(&gate);
}

static void count_done(struct waiter *waiter)
{
    (void)waiter;
}

/* A read that lacks bytes keeps the layout, and nothing of the request. */
UNIT_TEST(test_open_files__bytes_are_missing__read_again)
{
    struct waiter waiter = {.done = count_done};
    AUTO_RECORDS struct records r = {0};
    AUTO_TEXT struct text whole = {0};
    uint8_t piece[PIECE];
    struct read_context rc;
    struct node node;
    size_t n;

    records_open(&r, "batch=40,seed=7", true);
    node = npz_at(&r, 0);
    assert_int_equal(read_file(READ_WAITS, &r.mount, &node, false, &whole), 0);
    for (uint64_t off = 0; off + PIECE <= whole.len; off += 5 * PIECE) {
        uint64_t random = 0;
        int result;

        absent_drop(&r.mount.world.absent, 256, &random);
        forget(&r.mount);
        read_context_init(&rc, true);
        while ((result = read_piece(&rc, &r.mount, &node, off, piece, &n)) == -EAGAIN) {
            missing_fetch(&rc, &waiter);
            read_context_release(&rc); /* the next read has another one */
            read_context_init(&rc, true);
        }
        read_context_release(&rc);
        assert_int_equal(result, 0);
        assert_int_equal(n, PIECE);
        assert_memory_equal(piece, whole.data + off, PIECE);
    }
}

/* What is kept has nothing of the request before. */
UNIT_TEST(test_open_files__taken__belongs_to_the_request)
{
    AUTO_RECORDS struct records r = {0};
    struct node node;

    records_open(&r, "batch=40,seed=7", false);
    node = npz_at(&r, 0);
    for (unsigned i = 0; i < 3; i++) {
        AUTO(read_context_release) struct read_context rc;
        struct diag d = DIAG_INIT;
        struct open_file *f;

        read_context_init(&rc, false);
        assert_int_equal(open_files_take(&rc, r.mount.files, &node, &f, &d), 0);
        assert_ptr_equal(f->samples.sel.rc, &rc);
        assert_ptr_equal(f->samples.sel.reason, &d);
        open_files_give(f, 0);
        assert_null(f->samples.sel.rc);
        assert_null(f->samples.sel.reason);
    }
}

/* ---- threads ---- */

struct thread {
    pthread_t id;
    struct records *records;
    const struct text *whole; /* of file number 0 */
};

static void *read_often(void *arg)
{
    struct thread *thread = arg;
    const struct node node = npz_at(thread->records, 0);

    for (uint64_t off = 0; off + PIECE <= thread->whole->len; off += PIECE) {
        uint8_t piece[PIECE];
        size_t n;

        assert_int_equal(read_piece(READ_WAITS, &thread->records->mount, &node, off, piece, &n), 0);
        assert_memory_equal(piece, thread->whole->data + off, n);
        forms_of_read(thread->records, 1 + off / PIECE % 100);
    }
    return NULL;
}

UNIT_TEST(test_open_files__threads__the_same_bytes)
{
    struct thread thread[THREADS];
    AUTO_RECORDS struct records r = {0};
    AUTO_TEXT struct text whole = {0};
    struct node node;

    records_open(&r, "batch=2,seed=7", false);
    node = npz_at(&r, 0);
    assert_int_equal(read_file(READ_WAITS, &r.mount, &node, false, &whole), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        thread[i] = (struct thread){.records = &r, .whole = &whole};
        assert_int_equal(pthread_create(&thread[i].id, NULL, read_often, &thread[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i].id, NULL);
}
