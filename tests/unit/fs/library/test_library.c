/* The library as a program sees it: only epochfs.h, and the symbols that are exported. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/library/epochfs.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define SAMPLES 100
#define SIDE    5
#define PLAN    "batch=16,seed=7"
#define BATCHES 7

static struct epochfs_error error = {.size = sizeof(error)};

/* An IDX file of bytes: sample i begins with i. */
static void write_idx(const char *folder, const char *name, unsigned axes)
{
    size_t item = axes == 3 ? SIDE * SIDE : 1, head = 4 + 4 * axes;
    uint8_t *bytes = calloc(1, head + SAMPLES * item);

    bytes[2] = 8;
    bytes[3] = (uint8_t)axes;
    bytes[7] = SAMPLES;
    if (axes == 3)
        bytes[11] = bytes[15] = SIDE;
    for (size_t i = 0; i < SAMPLES * item; i++)
        bytes[head + i] = (uint8_t)(i / item + i % item);
    temp_write(folder, name, bytes, head + SAMPLES * item);
    free(bytes);
}

static int setup(void **state)
{
    char cache[PATH_MAX];

    temp_setup(state);
    temp_folder(*state, "source");
    write_idx(*state, "source/train-images-idx3-ubyte", 3);
    write_idx(*state, "source/train-labels-idx1-ubyte", 1);
    temp_path(*state, "cache", cache);
    setenv("EPOCHFS_CACHE", cache, 1);
    return 0;
}

static struct epochfs *open_it(void **state, const char *options)
{
    char source[PATH_MAX];
    struct epochfs *fs;

    temp_path(*state, "source", source);
    fs = epochfs_open(source, options, &error);
    if (!fs)
        fail_msg("%s", error.message);
    return fs;
}

static struct epochfs_batches *open_batches(struct epochfs *fs, const char *fields)
{
    const struct epochfs_plan plan = {
        .size = sizeof(plan), .dataset = "train", .plan = PLAN, .fields = fields};
    struct epochfs_batches *batches = epochfs_batches_open(fs, &plan, &error);

    if (!batches)
        fail_msg("%s", error.message);
    return batches;
}

static void assert_error(int code, const char *words)
{
    if (error.code != code || !strstr(error.message, words))
        fail_msg("expected error %d with '%s', got %d: %s", code, words, error.code, error.message);
    error.code = 0;
    error.message[0] = '\0';
}

static struct epochfs_array array_of(const struct epochfs_batch *batch, const char *name)
{
    struct epochfs_array array = {.size = sizeof(array)};

    for (size_t i = 0; epochfs_batch_array(batch, i, &array) == 0; i++)
        if (!strcmp(array.name, name))
            return array;
    fail_msg("no array %s", name);
    return array;
}

/* Is the batch the one that its file of the mount has? */
static void assert_batch(struct epochfs *fs, const struct epochfs_batch *batch, unsigned k)
{
    struct epochfs_array image = array_of(batch, "image");
    char path[100], *bytes = malloc(image.bytes + 1000);
    int64_t n;

    snprintf(path, sizeof(path), "train/batches/" PLAN "/epoch=0/npy/%06u.image.npy", k);
    n = epochfs_read(fs, path, 0, bytes, image.bytes + 1000, &error);
    assert_true(n > (int64_t)image.bytes);
    assert_memory_equal(bytes + n - image.bytes, image.data, image.bytes);
    assert_int_equal((uintptr_t)image.data % 64, 0);
    assert_int_equal(image.shape[0], k + 1 < BATCHES ? 16 : SAMPLES % 16);
    assert_int_equal(image.ndim, 3);
    assert_string_equal(image.descr, "|u1");
    free(bytes);
}

UNIT_TEST_WITH(test_batches__any_order__those_of_the_mount, setup, temp_teardown)
{
    static const unsigned order[] = {0, 1, 2, 3, 4, 5, 6, 0, 2, 4, 6, 5, 1, 1, 3, 3, 5, 0, 6};
    struct epochfs *fs = open_it(state, "readahead=1K");

    for (unsigned round = 0; round < 3; round++) {
        struct epochfs_batches *batches = open_batches(fs, round ? "image" : NULL);

        assert_int_equal(epochfs_batches_count(batches), BATCHES);
        for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
            struct epochfs_batch *batch = epochfs_batches_take(batches, order[i], &error);

            assert_non_null(batch);
            assert_int_equal(epochfs_batch_count(batch), round ? 1 : 4); /* label, index, key */
            assert_batch(fs, batch, order[i]);
            epochfs_batch_give(batch);
        }
        assert_null(epochfs_batches_take(batches, BATCHES, &error));
        assert_error(ERANGE, "batch 7: expected one below 7");
        epochfs_batches_close(batches);
    }
    assert_int_equal(epochfs_close(fs, &error), 0);
}

static int add_bytes(void *ctx, const struct epochfs_array *array)
{
    *(uint64_t *)ctx += array->bytes;
    assert_null(array->data);
    return 0;
}

UNIT_TEST_WITH(test_batches_read__the_callers_memory, setup, temp_teardown)
{
    struct epochfs *fs = open_it(state, NULL);
    struct epochfs_batches *batches = open_batches(fs, "label,image");
    struct epochfs_batch *batch = epochfs_batches_take(batches, 3, &error);
    uint8_t image[16 * SIDE * SIDE], label[16];
    void *memory[] = {image, label};
    size_t size[] = {sizeof(image), sizeof(label)};
    uint64_t bytes = 0;

    assert_int_equal(epochfs_batches_arrays(batches, 3, add_bytes, &bytes, &error), 0);
    assert_int_equal(bytes, sizeof(image) + sizeof(label));
    assert_int_equal(epochfs_batches_read(batches, 3, memory, size, 2, &error), 0);
    assert_memory_equal(image, array_of(batch, "image").data, sizeof(image));
    assert_memory_equal(label, array_of(batch, "label").data, sizeof(label));
    size[1]--;
    assert_int_equal(epochfs_batches_read(batches, 3, memory, size, 2, &error), -1);
    assert_error(ERANGE, "label: expected 16 bytes of memory, got 15");
    memory[1] = NULL; /* not that one */
    assert_int_equal(epochfs_batches_read(batches, 3, memory, size, 2, &error), 0);
    assert_int_equal(epochfs_batches_read(batches, 3, memory, size, 1, &error), -1);
    assert_error(ERANGE, "expected memory for 2 arrays, got 1");
    epochfs_batch_give(batch);
    epochfs_batches_close(batches);
    epochfs_close(fs, &error);
}

UNIT_TEST_WITH(test_open__bad_options__a_sentence, setup, temp_teardown)
{
    static const struct {
        const char *options, *words;
    } bad[] = {
        {"allow_other", "option allow_other: means nothing without a mount"},
        {"fsname=x", "option fsname: means nothing without a mount"},
        {"open=pass", "option passthrough=: means nothing without a mount"},
        {"image_sise=3x3", "unknown option 'image_sise=3x3'; is it 'image_size'?"},
        {"image_size=x", "image_size"},
    };
    char source[PATH_MAX];

    temp_path(*state, "source", source);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(epochfs_open(source, bad[i].options, &error));
        assert_error(EINVAL, bad[i].words);
    }
    assert_null(epochfs_open("/no/such", "", &error));
    assert_error(ENOENT, "/no/such");
    assert_null(epochfs_open(NULL, "", &error));
    assert_error(EINVAL, "expected a source");
    assert_null(epochfs_open("/no/such", "", NULL)); /* without the reason */
}

UNIT_TEST_WITH(test_calls__bad__errors, setup, temp_teardown)
{
    struct epochfs_plan plan = {.size = sizeof(plan), .dataset = "train", .plan = PLAN};
    struct epochfs *fs = open_it(state, "");
    char bytes[10];

    assert_int_equal(epochfs_read(fs, "train/no", 0, bytes, 10, &error), -1);
    assert_error(ENOENT, "train/no: No such file");
    assert_int_equal(epochfs_read(fs, "train", 0, bytes, 10, &error), -1);
    assert_error(EISDIR, "train");
    assert_int_equal(epochfs_read(fs, "train/dataset.json/x", 0, bytes, 10, &error), -1);
    assert_error(ENOTDIR, "train");
    assert_int_equal(epochfs_read(fs, "train/dataset.json", UINT64_MAX, bytes, 10, &error), 0);
    assert_int_equal(epochfs_read(fs, NULL, 0, bytes, 10, &error), -1);
    assert_error(EINVAL, "path");
    assert_int_equal(
        epochfs_read(fs, "train/batches/" PLAN "/epoch=0/npz/000009.npz", 0, bytes, 10, &error),
        -1);
    assert_error(ENOENT, "000009.npz");
    plan.plan = "batch=0,seed=7";
    assert_null(epochfs_batches_open(fs, &plan, &error));
    assert_error(ENOENT, "expected a number of samples from 1 to 2^48, all, or HOW:N");
    plan.plan = PLAN;
    plan.fields = "image,colour";
    assert_null(epochfs_batches_open(fs, &plan, &error));
    assert_error(ENOENT, "field colour: expected one of image, label");
    plan.fields = NULL;
    plan.encoding = "zip";
    assert_null(epochfs_batches_open(fs, &plan, &error));
    assert_error(EINVAL, "encoding zip: expected npz, npy, csc or csc_value");
    assert_null(epochfs_batches_open(fs, NULL, &error));
    assert_error(EINVAL, "expected a dataset and a plan");
    assert_int_equal(epochfs_attribute(fs, "train/samples/npy/000003.label.npy",
                                       "user.epochfs.index", bytes, 10, &error),
                     1);
    assert_int_equal(bytes[0], '3');
    assert_int_equal(epochfs_attribute(fs, "train", "user.epochfs.index", bytes, 10, &error), -1);
    assert_error(ENODATA, "train");
    assert_int_equal(epochfs_attribute(fs, "train/samples/npy/000003.label.npy",
                                       "user.epochfs.index", NULL, 0, &error),
                     -1);
    assert_error(ERANGE, "user.epochfs.index of train/samples/npy/000003.label.npy: it has 1 byte");
    assert_int_equal(epochfs_close(fs, &error), 0);
    assert_int_equal(epochfs_close(NULL, &error), -1);
    assert_error(EINVAL, "NULL");
}

/* Keeps the first line, and ends. */
static int keep_line(void *ctx, const char *line)
{
    snprintf(ctx, 200, "%s", line);
    return 1;
}

static int count_line(void *ctx, const char *line)
{
    (void)line;
    ++*(unsigned *)ctx;
    return 0;
}

UNIT_TEST_WITH(test_notes__a_file_that_is_not_used__once, setup, temp_teardown)
{
    struct epochfs *fs;
    char line[200] = "";
    unsigned n = 0;

    temp_write(*state, "source/what.xyz", "of no format", 12);
    fs = open_it(state, "");
    assert_int_equal(epochfs_notes(fs, keep_line, line, &error), 0);
    assert_non_null(strstr(line, "not used: what.xyz"));
    assert_int_equal(epochfs_notes(fs, count_line, &n, &error), 0);
    assert_int_equal(n, 1);
    assert_int_equal(epochfs_notes(fs, NULL, &n, &error), -1);
    assert_error(EINVAL, "function");
    assert_int_equal(epochfs_close(fs, &error), 0);
}

/* Structs of an older program are shorter. */
UNIT_TEST_WITH(test_structs__short__not_exceeded, setup, temp_teardown)
{
    struct epochfs *fs = open_it(state, "");
    struct epochfs_stat st = {.size = offsetof(struct epochfs_stat, inode), .inode = 77};
    struct epochfs_error brief = {.size = offsetof(struct epochfs_error, message) + 8};

    assert_int_equal(epochfs_stat(fs, "train/dataset.json", &st, &error), 0);
    assert_true(st.bytes > 100 && st.inode == 77);
    memset(brief.message, 'x', sizeof(brief.message));
    assert_int_equal(epochfs_stat(fs, "nothing/at/all", &st, &brief), -1);
    assert_string_equal(brief.message, "nothing");
    assert_int_equal(brief.message[8], 'x');
    epochfs_close(fs, NULL);
}

/* What the first release had; later ones may only add at the end. */
UNIT_TEST(test_structs__sizes__as_released)
{
    assert_int_equal(sizeof(struct epochfs_error), 1040);
    assert_int_equal(offsetof(struct epochfs_error, message), 12);
    assert_int_equal(sizeof(struct epochfs_stat), 40);
    assert_int_equal(offsetof(struct epochfs_stat, mode), 32);
    assert_int_equal(sizeof(struct epochfs_plan), 48);
    assert_int_equal(offsetof(struct epochfs_plan, encoding), 40);
    assert_int_equal(sizeof(struct epochfs_array), 56);
    assert_int_equal(offsetof(struct epochfs_array, data), 48);
}

static unsigned count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static uint64_t resident_pages(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_int_equal(fscanf(file, "%llu %llu", &size, &resident), 2);
    fclose(file);
    return resident;
}

static void open_and_close(void **state)
{
    struct epochfs *fs = open_it(state, ""), *other = open_it(state, "image_size=3x3");
    struct epochfs_batches *batches = open_batches(fs, NULL);

    epochfs_batch_give(epochfs_batches_take(batches, 0, &error));
    epochfs_batch_give(epochfs_batches_take(batches, 1, &error));
    epochfs_batches_close(batches);
    assert_int_equal(epochfs_close(fs, &error), 0);
    assert_int_equal(epochfs_close(other, &error), 0);
}

UNIT_TEST_WITH(test_open_close__often__nothing_grows, setup, temp_teardown)
{
    const char *often = getenv("LIBRARY_OPENS");
    unsigned n = often ? (unsigned)strtoul(often, NULL, 10) : 300, descriptors;
    uint64_t pages;

    for (unsigned i = 0; i < 100; i++) /* the shells of closed handles are kept, a few of them */
        open_and_close(state);
    descriptors = count_descriptors();
    pages = resident_pages();
    for (unsigned i = 0; i < n; i++)
        open_and_close(state);
    assert_int_equal(count_descriptors(), descriptors);
    assert_true(resident_pages() < pages + 1024);
}

/* ---- threads ---- */

struct reader {
    pthread_t id;
    struct epochfs *fs;
    _Atomic unsigned *reads;
};

/* Read until the source is closed. */
static void *reader_main(void *arg)
{
    struct reader *reader = arg;
    struct epochfs_error why = {.size = sizeof(why)};
    struct epochfs_plan plan = {.size = sizeof(plan), .dataset = "train", .plan = PLAN};
    struct epochfs_batches *batches = epochfs_batches_open(reader->fs, &plan, &why);
    struct epochfs_batch *batch;
    char bytes[200];

    for (unsigned i = 0; batches; i++) {
        if (epochfs_read(reader->fs, "train/samples/raw/000001.image.raw", 0, bytes, sizeof(bytes),
                         &why) < 0 &&
            why.code != ENOENT)
            break;
        batch = epochfs_batches_take(batches, i % BATCHES, &why);
        if (!batch)
            break;
        atomic_fetch_add(reader->reads, 1);
        epochfs_batch_give(batch);
    }
    epochfs_batches_close(batches);
    return (void *)(intptr_t)why.code;
}

#define READERS 64

UNIT_TEST_WITH(test_close__readers_under_way__they_end, setup, temp_teardown)
{
    for (unsigned round = 0; round < 4; round++) {
        struct epochfs *fs = open_it(state, "");
        struct reader reader[READERS];
        _Atomic unsigned reads = 0;
        void *code;

        for (unsigned i = 0; i < READERS; i++) {
            reader[i] = (struct reader){.fs = fs, .reads = &reads};
            assert_int_equal(pthread_create(&reader[i].id, NULL, reader_main, &reader[i]), 0);
        }
        while (atomic_load(&reads) < READERS * 3)
            sched_yield();
        assert_int_equal(epochfs_close(fs, &error), 0);
        for (unsigned i = 0; i < READERS; i++) {
            pthread_join(reader[i].id, &code);
            assert_int_equal((intptr_t)code, ESHUTDOWN);
        }
    }
}

/* Batches outlive what they come from. */
static int64_t first_sample[BATCHES];

struct taker {
    pthread_t id;
    struct epochfs_batches *batches;
    unsigned first;
};

/* Take all batches, again and again: each is the one that was asked for. */
static void *taker_main(void *arg)
{
    struct taker *taker = arg;
    struct epochfs_error why = {.size = sizeof(why)};
    intptr_t wrong = 0;

    for (unsigned i = taker->first; i < 200 * BATCHES; i++) {
        struct epochfs_batch *batch = epochfs_batches_take(taker->batches, i % BATCHES, &why);
        const struct epochfs_array index =
            batch ? array_of(batch, "index") : (struct epochfs_array){0};

        wrong += !batch || *(const int64_t *)index.data != first_sample[i % BATCHES];
        epochfs_batch_give(batch);
    }
    return (void *)wrong;
}

/* They share what was made ahead, and what one of them waits for another may take, or drop. */
UNIT_TEST_WITH(test_batches__threads_at_the_same_places__each_its_own, setup, temp_teardown)
{
    struct epochfs *fs = open_it(state, "readahead=64K");
    struct epochfs_batches *batches = open_batches(fs, "index");
    struct taker taker[6];

    for (unsigned k = 0; k < BATCHES; k++) {
        struct epochfs_batch *batch = epochfs_batches_take(batches, k, &error);

        first_sample[k] = *(const int64_t *)array_of(batch, "index").data;
        epochfs_batch_give(batch);
    }
    for (unsigned i = 0; i < 6; i++) {
        taker[i] = (struct taker){.batches = batches, .first = i / 3};
        assert_int_equal(pthread_create(&taker[i].id, NULL, taker_main, &taker[i]), 0);
    }
    for (unsigned i = 0; i < 6; i++) {
        void *wrong;

        pthread_join(taker[i].id, &wrong);
        assert_int_equal((intptr_t)wrong, 0);
    }
    epochfs_batches_close(batches);
    assert_int_equal(epochfs_close(fs, &error), 0);
}

UNIT_TEST_WITH(test_batch__given_after_close, setup, temp_teardown)
{
    struct epochfs *fs = open_it(state, "");
    struct epochfs_batches *batches = open_batches(fs, "label");
    struct epochfs_batch *one = epochfs_batches_take(batches, 0, &error),
                         *other = epochfs_batches_take(batches, 1, &error);

    assert_int_equal(epochfs_close(fs, &error), 0);
    assert_int_equal(array_of(one, "label").bytes, 16);
    epochfs_batch_give(one);
    epochfs_batches_close(batches);
    memset(array_of(other, "label").data, 1, 16);
    epochfs_batch_give(other);
    epochfs_batch_give(NULL);
    epochfs_batches_close(NULL);
}

/* Calls with a source that is closed, and the batches of it. -1 of each: an error. */
static int late_close(struct epochfs *fs, struct epochfs_batches *batches)
{
    (void)batches;
    return epochfs_close(fs, &error);
}

static int late_read(struct epochfs *fs, struct epochfs_batches *batches)
{
    char bytes[10];

    (void)batches;
    return (int)epochfs_read(fs, "train/dataset.json", 0, bytes, sizeof(bytes), &error);
}

static int late_notes(struct epochfs *fs, struct epochfs_batches *batches)
{
    unsigned n;

    (void)batches;
    return epochfs_notes(fs, count_line, &n, &error);
}

static int late_take(struct epochfs *fs, struct epochfs_batches *batches)
{
    (void)fs;
    return epochfs_batches_take(batches, 2, &error) ? 0 : -1;
}

static int (*const late[])(struct epochfs *fs, struct epochfs_batches *batches) = {
    late_close, late_read, late_notes, late_take};
#define LATE (sizeof(late) / sizeof(late[0]))

struct late_call {
    struct epochfs *fs;
    struct epochfs_batches *batches;
};

/* Another thread is late, which is no mistake of its own. */
static void *late_main(void *arg)
{
    const struct late_call *call = arg;

    for (size_t i = 0; i < LATE; i++) {
        assert_int_equal(late[i](call->fs, call->batches), -1);
        assert_error(ESHUTDOWN, "the source is closed");
    }
    return NULL;
}

/* An assertion in a build that has them, an error in another one. */
static void check_late_call(void **state, size_t i)
{
    const struct rlimit no_core = {0};
    struct epochfs *fs = open_it(state, "");
    struct epochfs_batches *batches = open_batches(fs, "label");
    int r = epochfs_close(fs, &error);

    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGABRT, SIG_DFL); /* cmocka's would print the failure of a test */
    r = r == 0 && late[i](fs, batches) == -1 && error.code == ESHUTDOWN &&
                !strcmp(error.message, "the source is closed")
            ? 0
            : 1;
    epochfs_batches_close(batches);
    _exit(r);
}

UNIT_TEST_WITH(test_close__then_used__assertion_or_error, setup, temp_teardown)
{
    int status;

    for (size_t i = 0; i < LATE; i++) {
        pid_t child = fork();

        if (!child)
            check_late_call(state, i);
        assert_int_equal(waitpid(child, &status, 0), child);
#ifdef NDEBUG
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
    }
}

UNIT_TEST_WITH(test_close__used_by_a_late_thread__error, setup, temp_teardown)
{
    struct epochfs *fs = open_it(state, "");
    struct late_call call = {fs, open_batches(fs, "label")};
    pthread_t id;

    assert_int_equal(epochfs_close(fs, &error), 0);
    assert_int_equal(pthread_create(&id, NULL, late_main, &call), 0);
    pthread_join(id, NULL);
    epochfs_batches_close(call.batches);
}

/* ---- processes ---- */

UNIT_TEST_WITH(test_fork__child__may_not, setup, temp_teardown)
{
    struct epochfs *fs = open_it(state, "");
    struct epochfs_batches *batches = open_batches(fs, NULL);
    struct epochfs_batch *batch = epochfs_batches_take(batches, 0, &error);
    char bytes[100];
    int status;
    pid_t child = fork();

    if (!child) {
        bool refused = epochfs_read(fs, "train/dataset.json", 0, bytes, 100, &error) == -1 &&
                       error.code == ECHILD && epochfs_close(fs, &error) == -1 &&
                       error.code == ECHILD && !epochfs_batches_take(batches, 1, &error);

        epochfs_batch_give(batch); /* no more than leaves them as they are */
        epochfs_batches_close(batches);
        fs = open_it(state, "");
        refused = refused && epochfs_read(fs, "train/dataset.json", 0, bytes, 100, &error) == 100;
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_batch(fs, batch, 0);
    epochfs_batch_give(batch);
    epochfs_batches_close(batches);
    assert_int_equal(epochfs_close(fs, &error), 0);
}

UNIT_TEST_WITH(test_fork__reads_under_way__errors_at_once, setup, temp_teardown)
{
    struct epochfs *fs = open_it(state, "");
    struct reader reader[4];
    _Atomic unsigned reads = 0;
    int status;

    for (unsigned i = 0; i < 4; i++) {
        reader[i] = (struct reader){.fs = fs, .reads = &reads};
        assert_int_equal(pthread_create(&reader[i].id, NULL, reader_main, &reader[i]), 0);
    }
    for (unsigned i = 1; i <= 20; i++) {
        struct epochfs_plan plan = {.size = sizeof(plan), .dataset = "train", .plan = PLAN};
        char bytes[10];
        pid_t child;

        while (atomic_load(&reads) < i * 4)
            sched_yield();
        child = fork();
        if (!child) /* locks may be held here by threads that the child does not have */
            _exit(epochfs_read(fs, "README.txt", 0, bytes, 10, &error) < 0 &&
                          error.code == ECHILD && !epochfs_batches_open(fs, &plan, &error) &&
                          error.code == ECHILD && epochfs_close(fs, &error) < 0 &&
                          error.code == ECHILD
                      ? 0
                      : 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_int_equal(epochfs_close(fs, &error), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(reader[i].id, NULL);
}

static _Atomic unsigned alarms;

static void count_alarm(int number)
{
    (void)number;
    atomic_fetch_add(&alarms, 1);
}

/* Interrupt a thread, until it has had all of its signals. */
static void *alarm_main(void *arg)
{
    unsigned sent = 0;

    while (sent < 300)
        if (atomic_load(&alarms) == sent && pthread_kill(*(pthread_t *)arg, SIGALRM) == 0)
            sent++;
        else
            sched_yield();
    return NULL;
}

static void read_all(void **state)
{
    struct epochfs *fs = open_it(state, "readahead=4K");
    struct epochfs_batches *batches = open_batches(fs, NULL);

    for (unsigned k = 0; k < BATCHES; k++) {
        struct epochfs_batch *batch = epochfs_batches_take(batches, k, &error);

        assert_non_null(batch);
        assert_batch(fs, batch, k);
        epochfs_batch_give(batch);
    }
    epochfs_batches_close(batches);
    assert_int_equal(epochfs_close(fs, &error), 0);
}

/* The handler of the program has no SA_RESTART, so its signals interrupt calls of the system. */
UNIT_TEST_WITH(test_signals__while_it_reads__nothing_fails, setup, temp_teardown)
{
    struct sigaction action = {.sa_handler = count_alarm}, before;
    pthread_t self = pthread_self(), other;

    sigaction(SIGALRM, &action, &before);
    assert_int_equal(pthread_create(&other, NULL, alarm_main, &self), 0);
    while (atomic_load(&alarms) < 300)
        read_all(state);
    pthread_join(other, NULL);
    sigaction(SIGALRM, &before, NULL);
}

UNIT_TEST_WITH(test_signals__stay_as_they_were, setup, temp_teardown)
{
    static const int signals[] = {SIGBUS, SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGCHLD, SIGUSR1};
    struct sigaction before[7], after;

    for (unsigned i = 0; i < 7; i++)
        sigaction(signals[i], NULL, &before[i]);
    open_and_close(state);
    for (unsigned i = 0; i < 7; i++) {
        sigaction(signals[i], NULL, &after);
        assert_ptr_equal(after.sa_handler, before[i].sa_handler);
    }
}
