#include "format/text/masks.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

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

static void masks_of(const uint8_t *text, char mark, struct text_masks *ret, uint64_t *sign)
{
    *ret = (struct text_masks){0};
    *sign = 0;
    for (unsigned i = 0; i < 64; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text + i));
        uint64_t control = range16(bytes, '\t', '\r' - '\t'); /* white space except CR and LF */
        uint64_t end = control ? equal16(bytes, '\n') | equal16(bytes, '\r') : 0;

        ret->end |= end << i;
        ret->space |= (equal16(bytes, ' ') | (control & ~end)) << i;
        ret->mark |= equal16(bytes, mark) << i;
        ret->digit |= range16(bytes, '0', 9) << i;
        *sign |= (equal16(bytes, '-') | equal16(bytes, '+')) << i;
        ret->point |= equal16(bytes, '.') << i;
        ret->zero |= equal16(bytes, '0') << i;
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
                               uint64_t *sign)
{
    *ret = (struct text_masks){0};
    *sign = 0;
    for (unsigned i = 0; i < 64; i += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(text + i));
        uint64_t control = range32(bytes, '\t', '\r' - '\t');
        uint64_t end = control ? equal32(bytes, '\n') | equal32(bytes, '\r') : 0;

        ret->end |= end << i;
        ret->space |= (equal32(bytes, ' ') | (control & ~end)) << i;
        ret->mark |= equal32(bytes, mark) << i;
        ret->digit |= range32(bytes, '0', 9) << i;
        *sign |= (equal32(bytes, '-') | equal32(bytes, '+')) << i;
        ret->point |= equal32(bytes, '.') << i;
        ret->zero |= equal32(bytes, '0') << i;
    }
    ret->space &= ~ret->mark;
}

#else

static void masks_of(const uint8_t *text, char mark, struct text_masks *ret, uint64_t *sign)
{
    *ret = (struct text_masks){0};
    *sign = 0;
    for (unsigned i = 0; i < 64; i++) {
        uint8_t c = text[i];

        ret->end |= (uint64_t)(c == '\n' || c == '\r') << i;
        ret->space |= (uint64_t)(c == ' ' || c == '\t' || c == '\v' || c == '\f') << i;
        ret->mark |= (uint64_t)(c == (uint8_t)mark) << i;
        ret->digit |= (uint64_t)(c >= '0' && c <= '9') << i;
        *sign |= (uint64_t)(c == '-' || c == '+') << i;
        ret->point |= (uint64_t)(c == '.') << i;
        ret->zero |= (uint64_t)(c == '0') << i;
    }
    ret->space &= ~ret->mark;
}

#endif

/* What the word before says about this word's first byte: 0 or 1 each. */
struct before {
    uint64_t separator, sign, mark, point;
    uint64_t fraction; /* digits after a point continue */
};

static inline void find_odd(struct text_masks *m, uint64_t sign, bool needs_number,
                            struct before *before)
{
    uint64_t separator = m->space | m->end | m->mark;
    uint64_t number = ~separator, start = number & (separator << 1 | before->separator);
    uint64_t behind_sign = (sign & start) << 1 | before->sign;
    uint64_t behind_mark = needs_number ? m->mark << 1 | before->mark : 0;
    uint64_t behind_point = m->point << 1 | before->point;
    /* Digits after a point: adding a 1 at the first m->digit carries to the byte after the last. */
    uint64_t fraction = (behind_point | before->fraction) & m->digit, behind_fraction;
    uint64_t carry = __builtin_add_overflow(fraction, m->digit, &behind_fraction);

    behind_fraction = (behind_fraction & ~m->digit) | (before->fraction & ~m->digit);
    m->odd = (number & ~(m->digit | sign | m->point)) | (sign & ~start) | (m->point & start) |
             (behind_sign & ~m->digit) | (behind_mark & ~number) |
             (m->point & (behind_point | behind_fraction));
    *before = (struct before){
        .separator = separator >> 63,
        .sign = (sign & start) >> 63,
        .mark = m->mark >> 63,
        .point = m->point >> 63,
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
        uint64_t sign;

        masks_of_avx2(text + word * 64, mark, &ret[word], &sign);
        find_odd(&ret[word], sign, needs_number, &before);
    }
}
#endif

void text_masks_make_anywhere(const uint8_t *text, size_t words, char mark, bool needs_number,
                              struct text_masks *ret)
{
    struct before before = {.separator = 1};

    for (size_t word = 0; word < words; word++) {
        uint64_t sign;

        masks_of(text + word * 64, mark, &ret[word], &sign);
        find_odd(&ret[word], sign, needs_number, &before);
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

/* Runs of bits in one word after another. Each member: where runs of so many bits end in the word
 * before. */
struct runs {
    uint64_t one, two, four, eight, sixteen;
};

static inline uint64_t runs_of_8(uint64_t one, struct runs *before)
{
    uint64_t two = one & (one << 1 | before->one >> 63);
    uint64_t four = two & (two << 2 | before->two >> 62);
    uint64_t eight = four & (four << 4 | before->four >> 60);

    before->one = one;
    before->two = two;
    before->four = four;
    return eight;
}

/* more: 1 to 7. */
static inline uint64_t runs_of_8_and(uint64_t one, unsigned more, struct runs *before)
{
    uint64_t eight = runs_of_8(one, before);
    uint64_t all = eight & (eight << more | before->eight >> (64 - more));

    before->eight = eight;
    return all;
}

static inline uint64_t runs_of_32(uint64_t one, struct runs *before)
{
    uint64_t eight = runs_of_8(one, before);
    uint64_t sixteen = eight & (eight << 8 | before->eight >> 56);
    uint64_t all = sixteen & (sixteen << 16 | before->sixteen >> 48);

    before->eight = eight;
    before->sixteen = sixteen;
    return all;
}

/* What the word before says: 0 or 1 each. */
struct long_before {
    struct runs whole, digits, number, any;
    uint64_t in_fraction, in_number, in_zeros;
};

/* Digits that are not behind a point. Adding a 1 at the first digit behind it clears all of them,
 * see find_odd(). */
static inline uint64_t whole_digits(uint64_t digit, uint64_t point, struct long_before *before)
{
    uint64_t whole;

    before->in_fraction =
        __builtin_add_overflow((point << 1 | before->in_fraction) & digit, digit, &whole);
    before->in_fraction |= point >> 63;
    return digit & whole;
}

/* The zeros that numbers begin with, and the point among them; likewise. */
static inline uint64_t leading_zeros(uint64_t number, uint64_t zero_or_point,
                                     struct long_before *before)
{
    uint64_t start = number & ~(number << 1 | before->in_number), others;

    before->in_number = number >> 63;
    before->in_zeros =
        __builtin_add_overflow((start | before->in_zeros) & zero_or_point, zero_or_point, &others);
    return zero_or_point & ~others;
}

/* Has it runs of as many digits and points as a long number? Quick: most text has not. */
static bool has_long_runs(const struct text_masks *masks, size_t from, size_t to)
{
    struct runs digits = {0}, number = {0};
    uint64_t found = 0;

    for (size_t word = from / 64; word * 64 < to; word++) {
        const struct text_masks *m = &masks[word];

        found |= runs_of_8_and(m->digit | m->point, 2, &number) | runs_of_8(m->digit, &digits);
    }
    return found;
}

bool text_masks_long(const struct text_masks *masks, size_t from, size_t to, bool fractions)
{
    struct long_before before = {.in_fraction = 0};

    if (!has_long_runs(masks, from, to))
        return false;
    for (size_t word = from / 64; word * 64 < to; word++) {
        const struct text_masks *m = &masks[word];
        uint64_t inside = word * 64 < from ? ~UINT64_C(0) << from % 64 : ~UINT64_C(0), zeros;
        uint64_t digit = m->digit & inside, point = m->point & inside;

        if (runs_of_8(whole_digits(digit, point, &before), &before.whole) ||
            runs_of_32(digit | point, &before.any))
            return true;
        if (!fractions)
            continue;
        zeros = leading_zeros(digit | point, (m->zero | m->point) & inside, &before);
        if (runs_of_8_and(digit & ~zeros, 2, &before.digits) ||
            runs_of_8_and((digit | point) & ~zeros, 3, &before.number))
            return true;
    }
    return false;
}
