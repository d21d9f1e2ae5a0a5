/* sound_head_read() and sound_sample(): each kind of WAVE and SPHERE, and heads that are wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "format/core/sound_head.h"
#include "support/unit.h"

static uint8_t file[256];
static size_t len;

static void add(const void *bytes, size_t n)
{
    memcpy(file + len, bytes, n);
    len += n;
}

static void add_le(uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        file[len++] = i < 8 ? (uint8_t)(v >> 8 * i) : 0;
}

/* A file of two samples, each of bits from the lowest byte on. extensible: kind is in its longer
 * form. */
static void make_wave(unsigned kind, unsigned channels, unsigned bits, bool extensible, uint64_t a,
                      uint64_t b)
{
    len = 0;
    add("RIFF\xff\xff\xff\xffWAVELIST\3\0\0\0abc\0fmt ", 8 + 4 + 8 + 4 + 4);
    add_le(extensible ? 40 : 16, 4);
    add_le(extensible ? 0xfffe : kind, 2);
    add_le(channels, 2);
    add_le(16000, 4);
    add_le(16000 * channels * bits / 8, 4);
    add_le(channels * bits / 8, 2);
    add_le(bits, 2);
    if (extensible) {
        add_le(22, 2);
        add_le(bits, 2);
        add_le(0, 4);
        add_le(kind, 2);
        add("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
    }
    add("data\0\0\0\0", 8);
    add_le(a, bits / 8);
    add_le(b, bits / 8);
}

static void check(double a, double b)
{
    struct sound_head h;

    assert_true(sound_head_read(file, len, &h));
    assert_int_equal(h.rate, 16000);
    assert_int_equal(h.data, len - 2 * h.width);
    assert_true(fabs(sound_sample(&h, file + h.data) - a) < 1e-6);
    assert_true(fabs(sound_sample(&h, file + h.data + h.width) - b) < 1e-6);
}

static void test_wave__each_width(void **state)
{
    (void)state;
    make_wave(1, 1, 8, false, 128, 0);
    check(0, -1);
    make_wave(1, 2, 16, false, 0x4000, 0x8000);
    check(0.5, -1);
    make_wave(1, 1, 24, true, 0xc00000, 0x200000);
    check(-0.5, 0.25);
    make_wave(1, 1, 32, false, 0x40000000, 0xffffffff);
    check(0.5, 0);
    make_wave(3, 1, 32, true, 0x3e800000, 0xbf800000);
    check(0.25, -1);
    make_wave(3, 1, 64, false, UINT64_C(0x3fd0000000000000), 0);
    check(0.25, 0);
}

static void test_wave__big_endian(void **state)
{
    static const uint8_t rifx[] =
        "RIFX\0\0\0\0WAVEfmt \0\0\0\x10\0\1\0\1\0\0\x3e\x80\0\0\x7d\0\0\2\0\x10"
        "data\0\0\0\4\x40\0\xc0\0";

    (void)state;
    len = 0;
    add(rifx, sizeof(rifx) - 1);
    check(0.5, -0.5);
    memcpy(file, "RF64",
           4); /* then its numbers are little-endian, and a chunk of 2^28 bytes follows */
    assert_false(sound_head_read(file, len, &(struct sound_head){0}));
}

/* coding: of its samples */
static void make_sphere(const char *coding)
{
    memset(file, ' ', 192);
    len = (size_t)snprintf((char *)file, 192,
                           "NIST_1A\n    192\nsample_rate -i 16000\nchannel_count -i 1\n"
                           "sample_n_bytes -i 2\nsample_byte_format -s2 10\n%send_head\n",
                           coding);
    file[len] = ' ';
    len = 192;
    add("\x40\0\xc0\0", 4);
}

/* Samples end where the head says, or, if a pipe was written to, with the file. */
static void test_wave__what_is_behind_the_samples(void **state)
{
    static const struct {
        uint32_t all, data;
        size_t size;
    } lengths[] = {{100, 4, 4},         {100, 3, 3},           {100, 0, 0},
                   {100, 400, 16},      {100, UINT32_MAX, 16}, {0, 0, 16},
                   {UINT32_MAX, 0, 16}, {UINT32_MAX, 4, 4},    {0, UINT32_MAX, 16}};
    struct sound_head h;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        make_wave(1, 1, 16, false, 0x4000, 0xc000);
        store_le32(file + 4, lengths[i].all);
        store_le32(file + len - 8, lengths[i].data);
        add("LIST\4\0\0\0abcd", 12);
        assert_true(sound_head_read(file, len, &h));
        assert_int_equal(h.size, lengths[i].size);
    }
}

static void test_sphere(void **state)
{
    struct sound_head h;

    (void)state;
    make_sphere("sample_coding -s3 pcm\n");
    check(0.5, -0.5);
    make_sphere("");
    check(0.5, -0.5);
    for (size_t n = 0; n < 192; n++)
        assert_false(sound_head_read(file, n, &h));
    make_sphere("sample_coding -s26 pcm,embedded-shorten-v2.00\n");
    assert_false(sound_head_read(file, len, &h));
    make_sphere("");
    memcpy(file + 8, "    190", 7); /* odd, but where it says */
    assert_true(sound_head_read(file, len, &h));
    assert_int_equal(h.data, 190);
    memcpy(file + 8, "     -1", 7);
    assert_false(sound_head_read(file, len, &h));
}

static void test_wrong_heads__false(void **state)
{
    struct sound_head h;

    (void)state;
    for (unsigned bits = 0; bits < 80; bits++) {
        make_wave(1, 1, bits, false, 0, 0);
        assert_int_equal(sound_head_read(file, len, &h),
                         bits == 8 || bits == 16 || bits == 24 || bits == 32);
        make_wave(3, 1, bits, false, 0, 0);
        assert_int_equal(sound_head_read(file, len, &h), bits == 32 || bits == 64);
    }
    make_wave(1, 0, 16, false, 0, 0);
    assert_false(sound_head_read(file, len, &h));
    make_wave(7, 1, 16, false, 0, 0); /* mu-law */
    assert_false(sound_head_read(file, len, &h));
    make_wave(1, 1, 16, false, 0, 0);
    for (size_t n = 0; n < len - 4; n++) /* cut before its samples */
        assert_false(sound_head_read(file, n, &h));
    assert_true(sound_head_read(file, len - 4, &h));
    assert_int_equal(h.data, len - 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wave__each_width),
        cmocka_unit_test(test_wave__big_endian),
        cmocka_unit_test(test_wave__what_is_behind_the_samples),
        cmocka_unit_test(test_sphere),
        cmocka_unit_test(test_wrong_heads__false),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
