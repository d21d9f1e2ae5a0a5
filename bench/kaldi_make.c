/* epochfs-bench-kaldi: makes a binary Kaldi archive, the same for the same arguments.
 *
 *   epochfs-bench-kaldi FILE fm|cm COUNT LOW HIGH COLUMNS [PREFIX]
 *
 * Writes COUNT matrices of LOW to HIGH rows, of float32 between -1 and 1 (fm) or compressed by the
 * speech-feature method (cm). The keys resemble those of a corpus, such as 103-1240-0000, 32 per
 * speaker; with PREFIX they are PREFIX and the number in 6 digits. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 100000, MAX_COLUMNS = 10000, MAX_PREFIX = 100, SPEAKER_KEYS = 32 };
enum { HEAD_SIZE = 32, PERCENTILES = 4, PERCENTILE_BYTES = 2 * PERCENTILES };

static void die(const char *what, int error)
{
    fprintf(stderr, "epochfs-bench-kaldi: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint64_t number(const char *text, uint64_t low, uint64_t high)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < low || value > high) {
        fprintf(stderr, "epochfs-bench-kaldi: %s is no number from %" PRIu64 " to %" PRIu64 "\n",
                text, low, high);
        exit(1);
    }
    return value;
}

/* xorshift64* */
static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1du;
}

static uint8_t *put_le(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (; bytes; bytes--, value >>= 8)
        *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_float(uint8_t *at, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return put_le(at, bits, sizeof(bits));
}

/* A draw gives two values; the last one of an odd number takes its own draw. */
static uint8_t *put_floats(uint8_t *at, uint64_t n, uint64_t *state)
{
    for (; n; n -= n > 1 ? 2 : 1) {
        uint64_t bits = draw(state);

        at = put_float(at, (float)((int32_t)(bits >> 32) >> 8) / (1 << 23));
        if (n > 1)
            at = put_float(at, (float)((int32_t)(uint32_t)bits >> 8) / (1 << 23));
    }
    return at;
}

/* For each column its percentiles, ascending, then its values. */
static uint8_t *put_columns(uint8_t *at, uint32_t rows, uint32_t columns, uint64_t *state)
{
    uint64_t n = (uint64_t)rows * columns;

    for (uint32_t i = 0; i < columns; i++) {
        uint64_t bits = draw(state);

        for (unsigned k = 0; k < PERCENTILES; k++, bits >>= 16)
            at = put_le(at, k * 0x4000 + (bits & 0x3fff), 2);
    }
    for (; n >= 8; n -= 8)
        at = put_le(at, draw(state), 8);
    return put_le(at, draw(state), (unsigned)n);
}

/* 00 B, the token, the numbers of rows and columns, the values */
static uint8_t *put_matrix(uint8_t *at, bool compressed, uint32_t rows, uint32_t columns,
                           uint64_t *state)
{
    if (compressed) {
        memcpy(at, "\0BCM ", 5);
        at = put_float(at + 5, -20); /* the least value, the range */
        at = put_float(at, 40);
        at = put_le(at, rows, 4);
        at = put_le(at, columns, 4);
        return put_columns(at, rows, columns, state);
    }
    memcpy(at, "\0BFM \4", 6);
    at = put_le(at + 6, rows, 4);
    at = put_le(at, 4, 1);
    at = put_le(at, columns, 4);
    return put_floats(at, (uint64_t)rows * columns, state);
}

static void put_key(FILE *out, const char *prefix, uint64_t i)
{
    uint64_t speaker = i / SPEAKER_KEYS;

    if (prefix)
        fprintf(out, "%s%06" PRIu64 " ", prefix, i);
    else
        fprintf(out, "%03" PRIu64 "-%" PRIu64 "-%04" PRIu64 " ", 103 + speaker,
                1240 + speaker * 7919 % 5000, i % SPEAKER_KEYS);
}

int main(int argc, char **argv)
{
    uint64_t state = 7, count;
    uint32_t low, high, columns;
    const char *prefix = argc == 8 ? argv[7] : NULL;
    bool compressed;
    uint8_t *matrix;
    FILE *out;

    if (argc < 7 || argc > 8 || (strcmp(argv[2], "fm") != 0 && strcmp(argv[2], "cm") != 0)) {
        fputs("usage: epochfs-bench-kaldi FILE fm|cm COUNT LOW HIGH COLUMNS [PREFIX]\n", stderr);
        return 2;
    }
    compressed = !strcmp(argv[2], "cm");
    count = number(argv[3], 0, UINT64_MAX);
    high = (uint32_t)number(argv[5], 1, MAX_ROWS);
    low = (uint32_t)number(argv[4], 1, high);
    columns = (uint32_t)number(argv[6], 1, MAX_COLUMNS);
    if (prefix && strlen(prefix) > MAX_PREFIX)
        die(prefix, ENAMETOOLONG);
    matrix = malloc(HEAD_SIZE + ((size_t)high * sizeof(float) + PERCENTILE_BYTES) * columns);
    if (!matrix)
        die("memory", ENOMEM);
    out = fopen(argv[1], "we");
    if (!out)
        die(argv[1], errno);
    for (uint64_t i = 0; i < count && !ferror(out); i++) {
        uint32_t rows = low + (uint32_t)((draw(&state) >> 32) * (high - low + 1) >> 32);
        uint8_t *end = put_matrix(matrix, compressed, rows, columns, &state);

        put_key(out, prefix, i);
        fwrite(matrix, 1, (size_t)(end - matrix), out);
    }
    free(matrix);
    if (ferror(out) || fclose(out) != 0)
        die(argv[1], errno);
    return 0;
}
