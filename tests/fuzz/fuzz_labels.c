/* Bytes as a hostile index of labels: the checksum is made right, and the body
 * is put where it belongs. Whatever passes, classes and weights of any run of it answer within
 * their bounds, and both ways agree as far as the check goes; and a file that is changed after the
 * check leads nowhere else. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/scope.h"
#include "format/labels/label_file.h"
#include "fs/tree/run_labels.h"
#include "fuzz.h"

#define SUMMED offsetof(struct label_head, order)
#define RUNS   4

static void check_classes(const struct label_arrays *a, uint64_t first, uint64_t length)
{
    struct run_classes r = {0};
    uint64_t held, sum = 0, c, i;

    if (run_classes_init(&r, a, first, length, &held) < 0)
        return;
    for (c = 0; c < r.classes.n; c++) {
        uint64_t count = r.classes.ops->count(&r.classes, c);

        FUZZ_CHECK(count >= r.classes.least && count <= r.classes.most && count);
        sum += count;
        for (i = 0; i < count; i++)
            FUZZ_CHECK(r.classes.ops->place(&r.classes, c, i) < length);
    }
    FUZZ_CHECK(r.classes.n || !length || sum <= length);
    for (uint64_t place = 0; place < length && r.classes.n; place++) {
        r.classes.ops->find(&r.classes, place, &c, &i);
        FUZZ_CHECK(c < r.classes.n && i < r.classes.ops->count(&r.classes, c));
    }
    run_classes_release(&r);
}

static void check_weights(const struct label_arrays *a, uint64_t first, uint64_t length)
{
    struct run_weights r = {0};
    uint64_t held;

    if (run_weights_init(&r, a, first, length, &held) < 0)
        return;
    FUZZ_CHECK(r.weights.ops->before(&r.weights, length) == r.weights.total);
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t value = r.weights.total / 64 * i;
        uint64_t place = r.weights.ops->place(&r.weights, value);

        FUZZ_CHECK(place < length);
        FUZZ_CHECK(r.weights.ops->before(&r.weights, place) <= value);
        FUZZ_CHECK(r.weights.ops->before(&r.weights, place + 1) > value);
    }
    run_weights_release(&r);
}

/* The head, as much of it as there is, and the rest behind the zeros that follow it. */
static uint8_t *make_file(const uint8_t *data, size_t len, size_t *ret_size)
{
    size_t head = min_u64(len, sizeof(struct label_head));
    uint8_t *bytes = calloc(1, LABEL_FILE_BODY + len - head + 1);
    uint32_t crc;

    memcpy(bytes, data, head);
    memcpy(bytes + LABEL_FILE_BODY, data + head, len - head);
    *ret_size = LABEL_FILE_BODY + len - head;
    crc = crc32c(0, bytes + SUMMED, *ret_size - SUMMED);
    memcpy(bytes + offsetof(struct label_head, crc), &crc, 4);
    return realloc(bytes, *ret_size); /* of that size, for ASan */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t size;
    AUTO_FREE uint8_t *bytes = make_file(data, len, &size);
    AUTO_FREE void *tables = NULL;
    struct label_arrays a;
    struct label_head head;
    enum label_purpose kind;

    memcpy(&head, bytes, sizeof(head));
    kind = head.type == LABEL_WEIGHTS ? LABEL_WEIGHTS : LABEL_CLASSES;
    if (label_file_check(bytes, size, kind, head.n, &a, &tables) < 0)
        return 0;
    for (uint64_t i = 0; i < RUNS; i++) {
        uint64_t first = a.n * i / RUNS, length = (a.n - first) / (i + 1);

        if (kind == LABEL_CLASSES)
            check_classes(&a, first, length);
        else if (length)
            check_weights(&a, first, length);
    }
    return 0;
}
