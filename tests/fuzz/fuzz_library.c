/* Bytes as a path of the library, and as a plan. A file has as many bytes as its size says, the
 * same in one piece and in two; a folder can be listed; a batch has the bytes of its shapes. What
 * is refused is refused with a reason. The options are those of fuzz_options. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "fs/library/epochfs.h"
#include "fuzz.h"
#include "support/temp_folder.h"

#define SAMPLES    40
#define OPENED     2000 /* inputs of a source: opened plans are never closed */
#define BYTES_MOST (1u << 20)

static struct epochfs_error error = {.size = sizeof(error)};

static void fuzz_library_make(const char *folder)
{
    uint8_t images[16 + SAMPLES * 4] = {0, 0, 8, 3, 0, 0, 0, SAMPLES, 0, 0, 0, 2, 0, 0, 0, 2};
    uint8_t labels[8 + SAMPLES] = {0, 0, 8, 1, 0, 0, 0, SAMPLES};

    for (size_t i = 0; i < SAMPLES * 4; i++)
        images[16 + i] = (uint8_t)(i * 37);
    for (size_t i = 0; i < SAMPLES; i++)
        labels[8 + i] = (uint8_t)(i % 3);
    temp_write(folder, "train-images-idx3-ubyte", images, sizeof(images));
    temp_write(folder, "train-labels-idx1-ubyte", labels, sizeof(labels));
}

static void *cache;

static void fuzz_library_remove_cache(void)
{
    temp_teardown(&cache);
}

/* Not the folder of the user who runs this. */
static void fuzz_library_make_cache(void)
{
    FUZZ_CHECK(temp_setup(&cache) == 0 && atexit(fuzz_library_remove_cache) == 0);
    FUZZ_CHECK(setenv("EPOCHFS_CACHE", cache, 1) == 0);
}

static struct epochfs *fuzz_library_source(void)
{
    static struct epochfs *fs;
    static unsigned n;
    void *folder = NULL;

    if (fs && ++n % OPENED)
        return fs;
    if (!cache)
        fuzz_library_make_cache();
    FUZZ_CHECK(!fs || epochfs_close(fs, &error) == 0);
    FUZZ_CHECK(temp_setup(&folder) == 0);
    fuzz_library_make(folder);
    fs = epochfs_open(folder, "readahead=0", &error);
    FUZZ_CHECK(fs);
    FUZZ_CHECK(temp_teardown(&folder) == 0); /* it is open */
    return fs;
}

static void fuzz_library_refused(void)
{
    FUZZ_CHECK(error.code > 0 && *error.message && strlen(error.message) < sizeof(error.message));
}

static int fuzz_library_count(void *ctx, const char *name)
{
    FUZZ_CHECK(*name && !strchr(name, '/'));
    return ++*(unsigned *)ctx == 1000;
}

static void fuzz_library_file(struct epochfs *fs, const char *path, const struct epochfs_stat *st)
{
    AUTO_FREE uint8_t *whole = malloc(BYTES_MOST), *parts = malloc(BYTES_MOST);
    uint64_t half = st->bytes / 2;

    if (st->bytes >= BYTES_MOST)
        return;
    if (epochfs_read(fs, path, 0, whole, BYTES_MOST, &error) < 0) {
        fuzz_library_refused(); /* its source has gone */
        return;
    }
    if (strncmp(path + strspn(path, "/."), "epochfs", 7) == 0)
        return; /* it changes with each call */
    FUZZ_CHECK(epochfs_read(fs, path, 0, whole, BYTES_MOST, &error) == (int64_t)st->bytes);
    FUZZ_CHECK(epochfs_read(fs, path, half, parts + half, BYTES_MOST - half, &error) ==
               (int64_t)(st->bytes - half));
    FUZZ_CHECK(epochfs_read(fs, path, 0, parts, half, &error) == (int64_t)half);
    FUZZ_CHECK(!memcmp(whole, parts, st->bytes));
}

static void fuzz_library_path(struct epochfs *fs, const char *path)
{
    struct epochfs_stat st = {.size = sizeof(st)};
    unsigned n = 0;

    if (epochfs_stat(fs, path, &st, &error) < 0)
        fuzz_library_refused();
    else if (S_ISDIR(st.mode))
        FUZZ_CHECK(epochfs_list(fs, path, fuzz_library_count, &n, &error) == 0);
    else
        fuzz_library_file(fs, path, &st);
}

static void fuzz_library_batch(const struct epochfs_batch *batch)
{
    struct epochfs_array array = {.size = sizeof(array)};

    for (size_t i = 0; epochfs_batch_array(batch, i, &array) == 0; i++) {
        uint64_t bytes = strtoull(array.descr + 2, NULL, 10);

        for (uint32_t k = 0; k < array.ndim; k++)
            bytes *= array.shape[k];
        FUZZ_CHECK(bytes == array.bytes && (!bytes || array.data));
    }
}

static void fuzz_library_plan(struct epochfs *fs, const char *plan)
{
    const struct epochfs_plan how = {.size = sizeof(how), .dataset = "train", .plan = plan};
    struct epochfs_batches *batches = epochfs_batches_open(fs, &how, &error);
    uint64_t count = epochfs_batches_count(batches);
    struct epochfs_batch *batch;

    if (!batches) {
        fuzz_library_refused();
        return;
    }
    FUZZ_CHECK(count);
    batch = epochfs_batches_take(batches, count - 1, &error);
    if (batch)
        fuzz_library_batch(batch);
    else
        fuzz_library_refused();
    FUZZ_CHECK(!epochfs_batches_take(batches, count, &error) && error.code == ERANGE);
    epochfs_batch_give(batch);
    epochfs_batches_close(batches);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = strndup((const char *)data, len);
    struct epochfs *fs = fuzz_library_source();

    FUZZ_CHECK(text);
    fuzz_library_path(fs, text);
    if (len < 200)
        fuzz_library_plan(fs, text);
    return 0;
}
