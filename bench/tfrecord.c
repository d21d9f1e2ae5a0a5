/* epochfs-bench-tfrecord: makes TFRecord files, the same for the same arguments, and reads them.
 *
 *   epochfs-bench-tfrecord make FOLDER SHARDS RECORDS LOW HIGH
 *
 * Writes SHARDS files s-00000-of-SHARDS of RECORDS tf.train.Examples each, with an int64 `label`
 * and a byte string `image` of LOW to HIGH bytes that begins like a JPEG.
 *
 *   epochfs-bench-tfrecord read [-c] FILE...
 *
 * Reads the records of the files one after another, as a loader does: the head of a record, then
 * its data, into one buffer. -c: checks both checksums, as TensorFlow does. Prints microseconds,
 * records and bytes of data. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "format/tfrecord/frame.h"

enum { RECORD_MAX = 1 << 26, BUFFER_BYTES = 1 << 18 };

static void die(const char *what, int error)
{
    fprintf(stderr, "epochfs-bench-tfrecord: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1du;
}

/* ---- make ---- */

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v > 127; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static size_t varint_bytes(uint64_t v)
{
    uint8_t bytes[10];

    return (size_t)(put_varint(bytes, v) - bytes);
}

/* The start of a map entry whose value has a list of that field with len bytes in one value. */
static uint8_t *put_entry(uint8_t *p, const char *name, uint8_t field, uint64_t len)
{
    uint64_t list = 1 + varint_bytes(len) + len, feature = 1 + varint_bytes(list) + list;
    uint64_t entry = 2 + strlen(name) + 1 + varint_bytes(feature) + feature;

    *p++ = 0x0a;
    p = put_varint(p, entry);
    *p++ = 0x0a;
    p = put_varint(p, strlen(name));
    p = (uint8_t *)memcpy(p, name, strlen(name)) + strlen(name);
    *p++ = 0x12;
    p = put_varint(p, feature);
    *p++ = (uint8_t)(field << 3 | 2);
    p = put_varint(p, list);
    *p++ = 0x0a;
    return put_varint(p, len);
}

/* Returns the bytes of an Example, whose last ones are those of the image. */
static size_t make_example(uint8_t *message, uint64_t *state, uint64_t len)
{
    uint8_t features[128], *p = features, *at = message;
    uint64_t head;

    p = put_entry(p, "label", 3, 1);
    *p++ = (uint8_t)(draw(state) % 100);
    p = put_entry(p, "image", 1, len);
    head = (uint64_t)(p - features);
    *at++ = 0x0a;
    at = put_varint(at, head + len);
    at = (uint8_t *)memcpy(at, features, head) + head;
    for (uint64_t i = 0; i < len; i += 8)
        store_le64(at + i, draw(state));
    if (len >= 3)
        memcpy(at, "\xff\xd8\xff", 3);
    return (size_t)(at - message + (ptrdiff_t)len);
}

static void make_shard(const char *name, uint64_t *state, uint64_t records, uint64_t low,
                       uint64_t high)
{
    uint8_t *message = malloc(high + 256), bytes[FRAME_HEAD];
    FILE *out = fopen(name, "we");

    if (!message || !out)
        die(name, errno);
    for (uint64_t i = 0; i < records; i++) {
        size_t len = make_example(message, state, low + draw(state) % (high - low + 1));

        store_le64(bytes, len);
        store_le32(bytes + 8, crc32c_masked(crc32c(0, bytes, 8)));
        fwrite(bytes, 1, FRAME_HEAD, out);
        fwrite(message, 1, len, out);
        store_le32(bytes, crc32c_masked(crc32c(0, message, len)));
        fwrite(bytes, 1, 4, out);
    }
    free(message);
    if (fclose(out))
        die(name, errno);
}

/* ---- read ---- */

static uint64_t nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void read_file(const char *name, bool checks, uint8_t *data, uint64_t *records,
                      uint64_t *bytes)
{
    uint8_t head[FRAME_HEAD];
    FILE *in = fopen(name, "re");

    if (!in)
        die(name, errno);
    setvbuf(in, NULL, _IOFBF, BUFFER_BYTES);
    while (fread(head, 1, FRAME_HEAD, in) == FRAME_HEAD) {
        uint64_t len = load_le64(head);

        if ((checks && !frame_head(head, &len)) || len > RECORD_MAX ||
            fread(data, 1, len + 4, in) != len + 4 || (checks && !frame_data(data, len)))
            die(name, EBADMSG);
        ++*records;
        *bytes += len;
    }
    fclose(in);
}

int main(int argc, char **argv)
{
    bool checks = argc > 2 && !strcmp(argv[2], "-c");

    if (argc == 7 && !strcmp(argv[1], "make")) {
        uint64_t state = 1, shards = strtoull(argv[3], NULL, 10),
                 records = strtoull(argv[4], NULL, 10);

        if (chdir(argv[2]) < 0)
            die(argv[2], errno);
        for (uint64_t i = 0; i < shards; i++) {
            char name[64];

            snprintf(name, sizeof(name), "s-%05" PRIu64 "-of-%05" PRIu64, i, shards);
            make_shard(name, &state, records, strtoull(argv[5], NULL, 10),
                       strtoull(argv[6], NULL, 10));
        }
        return 0;
    }
    if (argc > 2 + checks && !strcmp(argv[1], "read")) {
        uint8_t *data = malloc(RECORD_MAX + 4);
        uint64_t start, records = 0, bytes = 0;

        if (!data)
            die("memory", ENOMEM);
        memset(data, 1, 1 << 20); /* no page faults while the clock runs */
        start = nanoseconds();
        for (int i = 2 + checks; i < argc; i++)
            read_file(argv[i], checks, data, &records, &bytes);
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (nanoseconds() - start) / 1000, records,
               bytes);
        free(data);
        return 0;
    }
    fputs("usage: epochfs-bench-tfrecord make FOLDER SHARDS RECORDS LOW HIGH | read [-c] FILE...\n",
          stderr);
    return 2;
}
