/* A program of a release, with its header: tests/compat/check runs it with the library of today.
 * abi SOURCE Prints the size of a file and the sum of a batch's bytes, by each function of that
 * release. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "epochfs.h"

static int count(void *ctx, const char *text)
{
    (void)text;
    ++*(int *)ctx;
    return 0;
}

static int keep(void *ctx, const struct epochfs_array *array)
{
    if (strcmp(array->name, "data") == 0)
        *(uint64_t *)ctx = array->bytes;
    return 0;
}

static unsigned long sum(const unsigned char *at, uint64_t n)
{
    unsigned long total = 0;

    while (n--)
        total += *at++;
    return total;
}

int main(int argc, char **argv)
{
    struct epochfs_error error = {.size = sizeof(error)};
    struct epochfs_stat st = {.size = sizeof(st)};
    struct epochfs_array array = {.size = sizeof(array)};
    struct epochfs_plan plan = {.size = sizeof(plan),
                                .dataset = "x",
                                .plan = "batch=4,seed=7",
                                .epoch = 1,
                                .fields = "data"};
    struct epochfs *fs = argc == 2 && epochfs_version() ? epochfs_open(argv[1], "", &error) : NULL;
    struct epochfs_batches *batches = fs ? epochfs_batches_open(fs, &plan, &error) : NULL;
    struct epochfs_batch *batch = batches ? epochfs_batches_take(batches, 1, &error) : NULL;
    int names = 0, notes = 0;
    uint64_t bytes = 0;
    unsigned char *memory;
    char text[64];

    if (!batch || epochfs_batch_array(batch, 0, &array) < 0 ||
        epochfs_batch_array(batch, 1, &array) == 0 ||
        epochfs_stat(fs, "x/samples/raw/000003.data.raw", &st, &error) < 0 ||
        epochfs_list(fs, "x", count, &names, &error) < 0 ||
        epochfs_notes(fs, count, &notes, &error) < 0 ||
        epochfs_batches_arrays(batches, 1, keep, &bytes, &error) < 0 || !(memory = malloc(bytes)) ||
        epochfs_batches_read(batches, 1, &(void *){memory}, &(size_t){bytes}, 1, &error) < 0) {
        fprintf(stderr, "abi: %s\n", error.message);
        return 1;
    }
    printf("%llu bytes, batch %zu of %llu: %lu, %lu\n", (unsigned long long)st.bytes,
           epochfs_batch_count(batch), (unsigned long long)epochfs_batches_count(batches),
           sum(array.data, array.bytes), sum(memory, bytes));
    if (epochfs_attribute(fs, "x/samples/raw/000003.data.raw", "user.none", text, sizeof(text),
                          &error) != -1 ||
        error.code != ENODATA ||
        epochfs_read(fs, "x/missing", 0, text, sizeof(text), &error) != -1 || error.code != ENOENT)
        return 1;
    free(memory);
    epochfs_batch_give(batch);
    epochfs_batches_close(batches);
    return epochfs_close(fs, &error) < 0;
}
