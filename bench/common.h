/* What the readers of bench/ share: messages, numbers, the clock, checksums, names. */
#ifndef EPOCHFS_BENCH_COMMON_H
#define EPOCHFS_BENCH_COMMON_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_SIZE = 512 };

static inline void die(const char *what, int error)
{
    fprintf(stderr, "epochfs-bench: %s: %s\n", what, strerror(error));
    exit(1);
}

static inline uint64_t number(const char *text)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') {
        fprintf(stderr, "epochfs-bench: %s is not a number\n", text);
        exit(1);
    }
    return value;
}

static inline void *allocate(uint64_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);

    if (!memory)
        die("memory", ENOMEM);
    return memory;
}

/* splitmix64 */
static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Four lanes, so that the sum costs little compared with the read that it checks. */
static inline uint64_t checksum(const uint8_t *data, size_t len, uint64_t place)
{
    uint64_t lane[4] = {place, 1, 2, 3}, word[4], sum = len;
    size_t i = 0;

    for (; i + sizeof(word) <= len; i += sizeof(word)) {
        memcpy(word, data + i, sizeof(word));
        for (int k = 0; k < 4; k++)
            lane[k] = (lane[k] ^ word[k]) * 0x9e3779b97f4a7c15u + (lane[k] >> 32);
    }
    for (; i < len; i++)
        lane[0] = mix(lane[0] ^ data[i]);
    for (int k = 0; k < 4; k++)
        sum = mix(sum ^ lane[k]);
    return sum;
}

static inline size_t put_number(char *name, size_t at, uint64_t value, size_t width)
{
    char digits[20];
    size_t n = 0;

    for (; value || !n; value /= 10)
        digits[n++] = (char)('0' + value % 10);
    for (; width > n; width--)
        name[at++] = '0';
    while (n)
        name[at++] = digits[--n];
    return at;
}

#endif
