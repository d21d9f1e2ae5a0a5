/* The instruction of SSE4.2 takes 8 bytes a cycle but has its result three cycles later. So three
 * parts of the bytes are summed side by side, and joined by a multiplication of polynomials: the
 * checksum of A B is that of A, times x to the number of bits of B, plus that of B. */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/bytes.h"

#define POLYNOMIAL 0x82f63b78u /* bit 31 is x^0, in all numbers here */
#define ONE        0x80000000u /* x^0 */
#define WORDS      128         /* of 8 bytes: the most that a part has */
#define WORDS_MIN  4           /* fewer are not worth the joining */

static struct {
    uint32_t byte[8][256];         /* [i][b]: of byte b and i zeros */
    uint32_t power[2 * WORDS + 1]; /* [i] x^(64 i - 33) */
    bool has_instruction;
} tables;

static uint32_t times_x(uint32_t v)
{
    return v >> 1 ^ (v & 1 ? POLYNOMIAL : 0);
}

static void make_tables(void)
{
    uint32_t power = ONE;

    for (unsigned b = 0; b < 256; b++) {
        uint32_t v = b;

        for (unsigned bit = 0; bit < 8; bit++)
            v = times_x(v);
        tables.byte[0][b] = v;
    }
    for (unsigned i = 1; i < 8; i++)
        for (unsigned b = 0; b < 256; b++) {
            uint32_t v = tables.byte[i - 1][b];

            tables.byte[i][b] = v >> 8 ^ tables.byte[0][v & 0xff];
        }
    for (unsigned n = 1; n <= 64 * 2 * WORDS - 33; n++) {
        power = times_x(power);
        if ((n + 33) % 64 == 0)
            tables.power[(n + 33) / 64] = power;
    }
#ifdef __x86_64__
    tables.has_instruction = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
#endif
}

static void tables_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_tables);
}

static uint32_t sum_by_tables(uint32_t v, const uint8_t *p, size_t len)
{
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t a = v ^ load_le32(p), b = load_le32(p + 4);

        v = tables.byte[7][a & 0xff] ^ tables.byte[6][a >> 8 & 0xff] ^
            tables.byte[5][a >> 16 & 0xff] ^ tables.byte[4][a >> 24] ^ tables.byte[3][b & 0xff] ^
            tables.byte[2][b >> 8 & 0xff] ^ tables.byte[1][b >> 16 & 0xff] ^
            tables.byte[0][b >> 24];
    }
    for (; len; len--, p++)
        v = v >> 8 ^ tables.byte[0][(v ^ *p) & 0xff];
    return v;
}

#ifdef __x86_64__
#include <immintrin.h>

/* The two products of sums and powers, as one number before it is reduced. */
__attribute__((target("sse4.2,pclmul"))) static uint64_t product(uint64_t sum, uint32_t power)
{
    __m128i p = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum),
                                     _mm_cvtsi64_si128((long long)power), 0);

    return (uint64_t)_mm_cvtsi128_si64(p);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t sum(uint32_t crc, const uint8_t *p,
                                                             size_t len)
{
    uint64_t v = crc;

    while (len >= 24 * WORDS_MIN) {
        size_t words = len / 24 < WORDS ? len / 24 : WORDS, part = 8 * words;
        uint64_t b = 0, c = 0;

        for (const uint8_t *end = p + part; p < end; p += 8) {
            v = _mm_crc32_u64(v, load_le64(p));
            b = _mm_crc32_u64(b, load_le64(p + part));
            c = _mm_crc32_u64(c, load_le64(p + 2 * part));
        }
        v = product(v, tables.power[2 * words]) ^ product(b, tables.power[words]);
        v = _mm_crc32_u64(0, v) ^ c;
        p += 2 * part;
        len -= 3 * part;
    }
    for (; len >= 8; len -= 8, p += 8)
        v = _mm_crc32_u64(v, load_le64(p));
    for (; len; len--, p++)
        v = _mm_crc32_u8((uint32_t)v, *p);
    return (uint32_t)v;
}
#else
#define sum sum_by_tables
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    tables_init();
    return tables.has_instruction ? ~sum(~crc, bytes, len) : ~sum_by_tables(~crc, bytes, len);
}

uint32_t crc32c_tables(uint32_t crc, const void *bytes, size_t len)
{
    tables_init();
    return ~sum_by_tables(~crc, bytes, len);
}
