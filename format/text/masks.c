#include "format/text/masks.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* The class of each byte. */
struct kinds {
    uint64_t digit, sign, point;
};

#if defined(__SSE2__)

static uint64_t equal16(__m128i bytes, char c)
{
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)));
}

/* Bytes from first to first + n. */
static uint64_t range16(__m128i bytes, char first, char n)
{
    __m128i above = _mm_subs_epu8(_mm_sub_epi8(bytes, _mm_set1_epi8(first)), _mm_set1_epi8(n));

    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(above, _mm_setzero_si128()));
}

static void masks_of(const uint8_t *text, char mark, struct text_masks *ret, struct kinds *kinds)
{
    *ret = (struct text_masks){0};
    *kinds = (struct kinds){0};
    for (unsigned i = 0; i < 64; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text + i));
        uint64_t control = range16(bytes, '\t', '\r' - '\t'); /* white space except CR and LF */
        uint64_t end = control ? equal16(bytes, '\n') | equal16(bytes, '\r') : 0;

        ret->end |= end << i;
        ret->space |= (equal16(bytes, ' ') | (control & ~end)) << i;
        ret->mark |= equal16(bytes, mark) << i;
        kinds->digit |= range16(bytes, '0', 9) << i;
        kinds->sign |= (equal16(bytes, '-') | equal16(bytes, '+')) << i;
        kinds->point |= equal16(bytes, '.') << i;
    }
    ret->space &= ~ret->mark;
}

/* The same, 32 bytes at a time; twice as fast as a whole. */
#define AVX2 __attribute__((target("avx2")))

AVX2 static uint64_t equal32(__m256i bytes, char c)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(c)));
}

AVX2 static uint64_t range32(__m256i bytes, char first, char n)
{
    __m256i above =
        _mm256_subs_epu8(_mm256_sub_epi8(bytes, _mm256_set1_epi8(first)), _mm256_set1_epi8(n));

    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(above, _mm256_setzero_si256()));
}

AVX2 static void masks_of_avx2(const uint8_t *text, char mark, struct text_masks *ret,
                               struct kinds *kinds)
{
    *ret = (struct text_masks){0};
    *kinds = (struct kinds){0};
    for (unsigned i = 0; i < 64; i += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(text + i));
        uint64_t control = range32(bytes, '\t', '\r' - '\t');
        uint64_t end = control ? equal32(bytes, '\n') | equal32(bytes, '\r') : 0;

        ret->end |= end << i;
        ret->space |= (equal32(bytes, ' ') | (control & ~end)) << i;
        ret->mark |= equal32(bytes, mark) << i;
        kinds->digit |= range32(bytes, '0', 9) << i;
        kinds->sign |= (equal32(bytes, '-') | equal32(bytes, '+')) << i;
        kinds->point |= equal32(bytes, '.') << i;
    }
    ret->space &= ~ret->mark;
}

#else

static void masks_of(const uint8_t *text, char mark, struct text_masks *ret, struct kinds *kinds)
{
    *ret = (struct text_masks){0};
    *kinds = (struct kinds){0};
    for (unsigned i = 0; i < 64; i++) {
        uint8_t c = text[i];

        ret->end |= (uint64_t)(c == '\n' || c == '\r') << i;
        ret->space |= (uint64_t)(c == ' ' || c == '\t' || c == '\v' || c == '\f') << i;
        ret->mark |= (uint64_t)(c == (uint8_t)mark) << i;
        kinds->digit |= (uint64_t)(c >= '0' && c <= '9') << i;
        kinds->sign |= (uint64_t)(c == '-' || c == '+') << i;
        kinds->point |= (uint64_t)(c == '.') << i;
    }
    ret->space &= ~ret->mark;
}

#endif

/* What the word before says about this word's first byte: 0 or 1 each. */
struct before {
    uint64_t separator, sign, mark, point;
    uint64_t fraction; /* digits after a point continue */
};

static inline void find_odd(struct text_masks *m, const struct kinds *k, bool needs_number,
                            struct before *before)
{
    uint64_t separator = m->space | m->end | m->mark;
    uint64_t number = ~separator, start = number & (separator << 1 | before->separator);
    uint64_t behind_sign = (k->sign & start) << 1 | before->sign;
    uint64_t behind_mark = needs_number ? m->mark << 1 | before->mark : 0;
    uint64_t behind_point = k->point << 1 | before->point;
    /* Digits after a point: adding a 1 at the first digit carries to the byte after the last. */
    uint64_t fraction = (behind_point | before->fraction) & k->digit, behind_fraction;
    uint64_t carry = __builtin_add_overflow(fraction, k->digit, &behind_fraction);

    behind_fraction = (behind_fraction & ~k->digit) | (before->fraction & ~k->digit);
    m->odd = (number & ~(k->digit | k->sign | k->point)) | (k->sign & ~start) | (k->point & start) |
             (behind_sign & ~k->digit) | (behind_mark & ~number) |
             (k->point & (behind_point | behind_fraction));
    *before = (struct before){
        .separator = separator >> 63,
        .sign = (k->sign & start) >> 63,
        .mark = m->mark >> 63,
        .point = k->point >> 63,
        .fraction = carry,
    };
}

static void find_anywhere(const uint8_t *text, size_t words, char end, struct text_masks *ret)
{
    for (size_t word = 0; word < words; word++, text += 64) {
        ret[word] = (struct text_masks){0};
#if defined(__SSE2__)
        for (unsigned i = 0; i < 64; i += 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text + i));

            ret[word].end |= equal16(bytes, end) << i;
        }
#else
        for (unsigned i = 0; i < 64; i++)
            ret[word].end |= (uint64_t)(text[i] == (uint8_t)end) << i;
#endif
    }
}

#if defined(__SSE2__)
AVX2 static void find_avx2(const uint8_t *text, size_t words, char end, struct text_masks *ret)
{
    for (size_t word = 0; word < words; word++, text += 64)
        ret[word] = (struct text_masks){
            .end = equal32(_mm256_loadu_si256((const __m256i *)(const void *)text), end) |
                   equal32(_mm256_loadu_si256((const __m256i *)(const void *)(text + 32)), end)
                       << 32};
}
#endif

void text_masks_find(const uint8_t *text, size_t words, char end, struct text_masks *ret)
{
#if defined(__SSE2__)
    if (__builtin_cpu_supports("avx2")) {
        find_avx2(text, words, end, ret);
        return;
    }
#endif
    find_anywhere(text, words, end, ret);
}

#if defined(__SSE2__)
AVX2 static void make_avx2(const uint8_t *text, size_t words, char mark, bool needs_number,
                           struct text_masks *ret)
{
    struct before before = {.separator = 1};

    for (size_t word = 0; word < words; word++) {
        struct kinds kinds;

        masks_of_avx2(text + word * 64, mark, &ret[word], &kinds);
        find_odd(&ret[word], &kinds, needs_number, &before);
    }
}
#endif

void text_masks_make_anywhere(const uint8_t *text, size_t words, char mark, bool needs_number,
                              struct text_masks *ret)
{
    struct before before = {.separator = 1};

    for (size_t word = 0; word < words; word++) {
        struct kinds kinds;

        masks_of(text + word * 64, mark, &ret[word], &kinds);
        find_odd(&ret[word], &kinds, needs_number, &before);
    }
}

void text_masks_make(const uint8_t *text, size_t words, char mark, bool needs_number,
                     struct text_masks *ret)
{
#if defined(__SSE2__)
    if (__builtin_cpu_supports("avx2")) {
        make_avx2(text, words, mark, needs_number, ret);
        return;
    }
#endif
    text_masks_make_anywhere(text, words, mark, needs_number, ret);
}

bool text_masks_odd(const struct text_masks *masks, size_t from, size_t to)
{
    for (size_t word = from / 64; word * 64 <= to; word++) {
        uint64_t odd = masks[word].odd;

        if (word * 64 < from)
            odd &= ~UINT64_C(0) << from % 64;
        if (to - word * 64 < 63)
            odd &= (UINT64_C(2) << (to - word * 64)) - 1;
        if (odd)
            return true;
    }
    return false;
}

bool text_masks_long(const struct text_masks *masks, size_t from, size_t to)
{
    uint64_t one = 0, two = 0, four = 0; /* of the word before: a run of so many ends there */

    for (size_t word = from / 64; word * 64 < to; word++) {
        const struct text_masks *m = &masks[word];
        uint64_t n = ~(m->mark | m->space | m->end), pair, quad;

        if (word * 64 < from)
            n &= ~UINT64_C(0) << from % 64;
        pair = n & (n << 1 | one >> 63);
        quad = pair & (pair << 2 | two >> 62);
        if (quad & (quad << 4 | four >> 60))
            return true;
        one = n;
        two = pair;
        four = quad;
    }
    return false;
}
