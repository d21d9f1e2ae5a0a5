/* epochfs-bench-libsvm: makes libsvm text, the same for the same arguments.
 *
 *   epochfs-bench-libsvm FILE ROWS LOW HIGH DIGITS
 *
 * Writes ROWS rows of a label, 0 or 1, and LOW to HIGH features, at steps of 1 to 40, with values
 * between -1 and 1 that have DIGITS decimals. Prints one line:
 *
 *   rows columns features
 *
 * where columns is the largest index + 1, and features is the number over all rows. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEP = 40, MAX_FEATURES = 10000, MAX_DIGITS = 9, FEATURE_SIZE = 32 };

static void die(const char *what, int error)
{
    fprintf(stderr, "epochfs-bench-libsvm: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint64_t number(const char *text, uint64_t low, uint64_t high)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < low || value > high) {
        fprintf(stderr, "epochfs-bench-libsvm: %s is no number from %" PRIu64 " to %" PRIu64 "\n",
                text, low, high);
        exit(1);
    }
    return value;
}

/* xorshift64*: the multiplied high half, scaled to 0 .. n-1 */
static uint32_t draw(uint64_t *state, uint32_t n)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (uint32_t)(((x * 0x2545f4914f6cdd1du >> 32) * n) >> 32);
}

/* At least width digits; printf would take most of the time. */
static char *put_number(char *at, uint64_t value, unsigned width)
{
    char digits[20];
    unsigned n = 0;

    for (; value || n < width; value /= 10)
        digits[n++] = (char)('0' + value % 10);
    while (n)
        *at++ = digits[--n];
    return at;
}

/* " index:value" */
static char *put_feature(char *at, uint32_t index, uint64_t *state, uint32_t scale, unsigned digits)
{
    uint32_t value = draw(state, 2 * scale + 1);

    *at++ = ' ';
    at = put_number(at, index, 1);
    *at++ = ':';
    if (value < scale)
        *at++ = '-';
    value = value < scale ? scale - value : value - scale;
    at = put_number(at, value / scale, 1);
    if (digits) {
        *at++ = '.';
        at = put_number(at, value % scale, digits);
    }
    return at;
}

int main(int argc, char **argv)
{
    uint64_t state = 7, rows, features = 0;
    uint32_t low, high, columns = 0, scale = 1;
    unsigned digits;
    char *line;
    FILE *out;

    if (argc != 6) {
        fputs("usage: epochfs-bench-libsvm FILE ROWS LOW HIGH DIGITS\n", stderr);
        return 2;
    }
    rows = number(argv[2], 0, UINT64_MAX);
    high = (uint32_t)number(argv[4], 0, MAX_FEATURES);
    low = (uint32_t)number(argv[3], 0, high);
    digits = (unsigned)number(argv[5], 0, MAX_DIGITS);
    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    line = malloc((size_t)high * FEATURE_SIZE + 2);
    if (!line)
        die("memory", ENOMEM);
    out = fopen(argv[1], "we");
    if (!out)
        die(argv[1], errno);
    for (uint64_t row = 0; row < rows; row++) {
        uint32_t n = low + draw(&state, high - low + 1), index = 0;
        char *at = line;

        *at++ = (char)('0' + draw(&state, 2));
        for (uint32_t i = 0; i < n; i++) {
            index += 1 + draw(&state, MAX_STEP);
            at = put_feature(at, index, &state, scale, digits);
        }
        *at++ = '\n';
        fwrite(line, 1, (size_t)(at - line), out);
        features += n;
        if (n && index >= columns)
            columns = index + 1;
    }
    free(line);
    if (ferror(out) || fclose(out) != 0)
        die(argv[1], errno);
    printf("%" PRIu64 " %" PRIu32 " %" PRIu64 "\n", rows, columns, features);
    return 0;
}
