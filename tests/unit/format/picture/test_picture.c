/* Files of pictures, good and bad. What PIL makes of the same files is in compare_pil.py. */
#include "format/picture/exif.h"
#include "format/picture/picture.h"
#include "support/picture_make.h"
#include "support/random.h"
#include "support/unit.h"

#include <errno.h>
#include <png.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/scope.h"

#define NAME   "x.jpg"
#define WIDTH  24
#define HEIGHT 16
#define HEAD   "Exif\0"

static int decode(const void *bytes, size_t len, uint32_t height, uint32_t width, uint8_t *ret,
                  struct diag *d)
{
    /* Memory of that very size, so that the address sanitizer sees reads past its end. */
    AUTO_FREE uint8_t *copy = malloc(len ? len : 1);
    struct picture_file file = {NAME, copy, len};

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    return picture_decode(&file, height, width, ret, d);
}

static void check_bad(const void *bytes, size_t len, int error, const char *piece)
{
    struct diag d = DIAG_INIT;
    uint8_t ret[8 * 8 * 3];

    assert_int_equal(decode(bytes, len, 8, 8, ret, &d), error);
    assert_diag_has(&d, NAME ": ");
    assert_diag_has(&d, piece);
}

/* Pixels that differ smoothly, so that JPEG keeps them. */
static void draw(uint8_t *pixels, uint32_t width, uint32_t height, unsigned channels)
{
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (unsigned c = 0; c < channels; c++)
                *pixels++ = (uint8_t)(c == 0 ? 8 * x : c == 1 ? 10 * y : 4 * x + 5 * y);
}

static struct made_picture a_jpeg(unsigned channels, bool progressive)
{
    uint8_t pixels[WIDTH * HEIGHT * 4];

    draw(pixels, WIDTH, HEIGHT, channels);
    return make_jpeg(&(struct made_jpeg){.width = WIDTH,
                                         .height = HEIGHT,
                                         .channels = channels,
                                         .is_progressive = progressive,
                                         .exif = NULL,
                                         .exif_len = 0},
                     pixels);
}

static void assert_bytes_near(const uint8_t *found, const uint8_t *want, size_t n, int most)
{
    for (size_t i = 0; i < n; i++)
        if (abs(found[i] - want[i]) > most)
            fail_msg("byte %zu: expected %d, got %d", i, want[i], found[i]);
}

/* ---- parts ---- */

#define PART_HEIGHT 144 /* multiples of what is decoded at a time, and of reductions */
#define PART_WIDTH  208
#define PARTS       300

struct part {
    struct picture_cut cut;
    uint8_t *pixels;
    bool is_turned; /* by 180 degrees: mirrored, the last row first */
};

static int choose_part(void *ctx, uint32_t height, uint32_t width, struct picture_cut *ret_cut,
                       struct pixel_rows *ret_rows)
{
    const struct part *part = ctx;
    ptrdiff_t row = (ptrdiff_t)part->cut.made_width * 3;

    assert_int_equal(height, PART_HEIGHT);
    assert_int_equal(width, PART_WIDTH);
    *ret_cut = part->cut;
    *ret_rows = (struct pixel_rows){part->pixels, row, false};
    if (part->is_turned)
        *ret_rows =
            (struct pixel_rows){part->pixels + (part->cut.made_height - 1) * row, -row, true};
    return 0;
}

static void decode_part(const struct made_picture *made, struct part *part)
{
    const struct picture_file file = {NAME, made->bytes, made->len};

    assert_int_equal(picture_decode_part(&file, &(struct picture_chooser){choose_part, part}, NULL),
                     0);
}

/* The whole picture, reduced, and then a part of it without scaling; against that part alone. */
static void check_part(const struct made_picture *made, unsigned reduced, uint64_t *random)
{
    static uint8_t whole[PART_HEIGHT * PART_WIDTH * 3], want[sizeof(whole)], found[sizeof(whole)];
    const uint32_t all_height = PART_HEIGHT / reduced, all_width = PART_WIDTH / reduced;
    struct part all = {{.height = PART_HEIGHT,
                        .width = PART_WIDTH,
                        .scaled_height = all_height,
                        .scaled_width = all_width,
                        .made_height = all_height,
                        .made_width = all_width},
                       whole,
                       false};
    uint32_t height = 1 + (uint32_t)random_below(random, all_height);
    uint32_t width = 1 + (uint32_t)random_below(random, all_width);
    uint32_t top = (uint32_t)random_below(random, all_height - height + 1);
    uint32_t left = (uint32_t)random_below(random, all_width - width + 1);
    struct part part = {{.top = (uint64_t)top * reduced,
                         .left = (uint64_t)left * reduced,
                         .height = (uint64_t)height * reduced,
                         .width = (uint64_t)width * reduced,
                         .scaled_height = height,
                         .scaled_width = width,
                         .made_height = height,
                         .made_width = width},
                        found,
                        random_below(random, 2)};
    size_t last = (size_t)height * width - 1;

    decode_part(made, &all);
    decode_part(made, &part);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            size_t at = (size_t)y * width + x;

            memcpy(want + (part.is_turned ? last - at : at) * 3,
                   whole + ((size_t)(top + y) * all_width + left + x) * 3, 3);
        }
    if (memcmp(want, found, (size_t)height * width * 3) != 0)
        fail_msg("%u x %u from %u, %u, 1/%u", height, width, top, left, reduced);
}

UNIT_TEST(test_picture__part_of_a_jpeg__that_of_the_whole)
{
    static const struct made_jpeg kinds[] = {
        {PART_WIDTH, PART_HEIGHT, 3, false, NULL, 0, 1, 1},
        {PART_WIDTH, PART_HEIGHT, 3, false, NULL, 0, 2, 1},
        {PART_WIDTH, PART_HEIGHT, 3, false, NULL, 0, 2, 2},
        {PART_WIDTH, PART_HEIGHT, 3, false, NULL, 0, 1, 2},
        {PART_WIDTH, PART_HEIGHT, 3, true, NULL, 0, 2, 2},
        {PART_WIDTH, PART_HEIGHT, 3, false, NULL, 0, 4, 1},
        {PART_WIDTH, PART_HEIGHT, 1, false, NULL, 0, 1, 1},
        {PART_WIDTH, PART_HEIGHT, 4, false, NULL, 0, 1, 1},
    };
    static uint8_t pixels[PART_HEIGHT * PART_WIDTH * 4];
    uint64_t random = RANDOM_SEED;

    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(random_below(&random, 40) + (i % 5 ? pixels[i - 1] : 0u));
    for (unsigned i = 0; i < PARTS; i++) {
        struct made_picture made =
            make_jpeg(&kinds[i % (sizeof(kinds) / sizeof(kinds[0]))], pixels);

        check_part(&made, 1u << random_below(&random, 4), &random);
        free(made.bytes);
    }
}

/* Whether the end is missing is told also where no pixel of the end is wanted. */
UNIT_TEST(test_picture__top_of_a_jpeg_cut_short__ebadmsg)
{
    static uint8_t pixels[PART_HEIGHT * PART_WIDTH * 3], found[16 * 16 * 3];
    struct part part = {{.height = 16,
                         .width = 16,
                         .scaled_height = 16,
                         .scaled_width = 16,
                         .made_height = 16,
                         .made_width = 16},
                        found,
                        false};

    for (unsigned progressive = 0; progressive < 2; progressive++) {
        const struct made_jpeg kind = {PART_WIDTH, PART_HEIGHT, 3, progressive, NULL, 0, 2, 2};
        struct made_picture made = make_jpeg(&kind, pixels);

        for (size_t missing = 0; missing < 40; missing++) {
            const struct picture_file file = {NAME, made.bytes, made.len - missing};

            assert_int_equal(
                picture_decode_part(&file, &(struct picture_chooser){choose_part, &part}, NULL),
                missing ? -EBADMSG : 0);
        }
        memcpy(made.bytes + made.len - 2, "\xff\xfe", 2); /* a comment, and no end */
        assert_int_equal(picture_decode_part(&(struct picture_file){NAME, made.bytes, made.len},
                                             &(struct picture_chooser){choose_part, &part}, NULL),
                         -EBADMSG);
        free(made.bytes);
    }
}

UNIT_TEST(test_picture__no_picture__ebadmsg)
{
    check_bad("", 0, -EBADMSG, "expected a JPEG, PNG or WebP picture, got no bytes");
    check_bad("GIF89a", 6, -EBADMSG, "got GIF");
    check_bad("\xff\xd8", 2, -EBADMSG, "got bytes ff d8");
    assert_false(picture_is((const uint8_t *)"RIFF....WAVE", 12));
    assert_true(picture_is((const uint8_t *)"RIFF....WEBP", 12));
}

UNIT_TEST(test_picture__jpeg_of_that_size__near_what_was_stored)
{
    uint8_t want[WIDTH * HEIGHT * 3], ret[WIDTH * HEIGHT * 3];

    draw(want, WIDTH, HEIGHT, 3);
    for (unsigned progressive = 0; progressive < 2; progressive++) {
        struct made_picture made = a_jpeg(3, progressive);
        AUTO_FREE uint8_t *bytes = made.bytes;

        assert_int_equal(decode(bytes, made.len, HEIGHT, WIDTH, ret, NULL), 0);
        assert_bytes_near(ret, want, sizeof(want), 3);
    }
}

UNIT_TEST(test_picture__grey_jpeg__three_equal_channels)
{
    struct made_picture made = a_jpeg(1, false);
    AUTO_FREE uint8_t *bytes = made.bytes;
    uint8_t ret[WIDTH * HEIGHT * 3], want[WIDTH * HEIGHT];

    draw(want, WIDTH, HEIGHT, 1);
    assert_int_equal(decode(bytes, made.len, HEIGHT, WIDTH, ret, NULL), 0);
    for (size_t i = 0; i < sizeof(want); i++) {
        assert_true(abs(ret[3 * i] - want[i]) <= 1);
        assert_int_equal(ret[3 * i], ret[3 * i + 1]);
        assert_int_equal(ret[3 * i], ret[3 * i + 2]);
    }
}

UNIT_TEST(test_picture__cmyk_jpeg__light_that_remains)
{
    uint8_t pixels[8 * 8 * 4], ret[8 * 8 * 3];
    struct made_picture made;

    for (size_t i = 0; i < 8 * 8; i++)
        memcpy(pixels + 4 * i, (uint8_t[]){255, 128, 0, 128}, 4);
    made = make_jpeg(&(struct made_jpeg){.width = 8,
                                         .height = 8,
                                         .channels = 4,
                                         .is_progressive = false,
                                         .exif = NULL,
                                         .exif_len = 0},
                     pixels);
    assert_int_equal(decode(made.bytes, made.len, 8, 8, ret, NULL), 0);
    free(made.bytes);
    assert_bytes_near(ret, (uint8_t[]){128, 64, 0}, 3, 2);
}

/* Every end before the real one; also of those whose pixels are all there. */
UNIT_TEST(test_picture__jpeg_cut_short__ebadmsg)
{
    for (unsigned progressive = 0; progressive < 2; progressive++) {
        struct made_picture made = a_jpeg(3, progressive);
        AUTO_FREE uint8_t *bytes = made.bytes;

        for (size_t len = 3; len < made.len; len++)
            check_bad(bytes, len, -EBADMSG, "JPEG: ");
        check_bad(bytes, made.len - 2, -EBADMSG, "it is cut short");
    }
}

UNIT_TEST(test_picture__jpeg_cut_short_with_end_marker__decoded)
{
    struct made_picture made = a_jpeg(3, false);
    AUTO_FREE uint8_t *bytes = made.bytes;
    uint8_t ret[8 * 8 * 3];

    memcpy(bytes + made.len - 40, "\xff\xd9", 2);
    assert_int_equal(decode(bytes, made.len - 38, 8, 8, ret, NULL), 0);
}

/* The place of SOF0's height, width. */
static uint8_t *jpeg_size(const struct made_picture *made)
{
    for (size_t i = 0; i + 9 < made->len; i++)
        if (made->bytes[i] == 0xff && (made->bytes[i + 1] == 0xc0 || made->bytes[i + 1] == 0xc2))
            return made->bytes + i + 5;
    fail();
    return NULL;
}

UNIT_TEST(test_picture__too_many_pixels__efbig)
{
    struct made_picture made = a_jpeg(3, false), progressive = a_jpeg(3, true);

    memcpy(jpeg_size(&made), "\xfd\xe8\xfd\xe8", 4);
    check_bad(made.bytes, made.len, -EFBIG, "got 65000 x 65000");
    memcpy(jpeg_size(&progressive), "\x30\0\x30\0", 4); /* 12288 x 12288 x 3 x 2 bytes */
    check_bad(progressive.bytes, progressive.len, -EFBIG, "bytes of memory");
    free(made.bytes);
    free(progressive.bytes);
}

static struct made_picture a_png(int type, int depth, bool interlaced, const uint8_t *rows)
{
    return make_png(&(struct made_png){WIDTH, HEIGHT, type, depth, interlaced, NULL, 0}, rows);
}

static void check_png(int type, int depth, const uint8_t *rows, const uint8_t *want)
{
    uint8_t ret[WIDTH * HEIGHT * 3];

    for (unsigned interlaced = 0; interlaced < 2; interlaced++) {
        struct made_picture made = a_png(type, depth, interlaced, rows);
        AUTO_FREE uint8_t *bytes = made.bytes;

        assert_int_equal(decode(bytes, made.len, HEIGHT, WIDTH, ret, NULL), 0);
        assert_memory_equal(ret, want, sizeof(ret));
    }
}

UNIT_TEST(test_picture__png_of_each_kind__exact)
{
    uint8_t rgb[WIDTH * HEIGHT * 3], rows[WIDTH * HEIGHT * 8], want[WIDTH * HEIGHT * 3];

    draw(rgb, WIDTH, HEIGHT, 3);
    check_png(PNG_COLOR_TYPE_RGB, 8, rgb, rgb);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) { /* alpha is dropped */
        memcpy(rows + 4 * i, rgb + 3 * i, 3);
        rows[4 * i + 3] = (uint8_t)(i % 3);
    }
    check_png(PNG_COLOR_TYPE_RGB_ALPHA, 8, rows, rgb);
    for (size_t i = 0; i < sizeof(rgb); i++) { /* the upper 8 of 16 bits */
        rows[2 * i] = rgb[i];
        rows[2 * i + 1] = 0xff;
    }
    check_png(PNG_COLOR_TYPE_RGB, 16, rows, rgb);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++)
        memset(want + 3 * i, rgb[3 * i], 3);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++)
        rows[i] = rgb[3 * i];
    check_png(PNG_COLOR_TYPE_GRAY, 8, rows, want);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++)
        memcpy(rows + 2 * i, (uint8_t[]){rgb[3 * i], 0x80}, 2);
    check_png(PNG_COLOR_TYPE_GRAY, 16, rows, want);
    check_png(PNG_COLOR_TYPE_GRAY_ALPHA, 8, rows, want);
}

UNIT_TEST(test_picture__png_of_few_bits__whole_range)
{
    uint8_t rows[WIDTH * HEIGHT], want[WIDTH * HEIGHT * 3];

    for (int depth = 1; depth <= 4; depth *= 2) {
        size_t row_bytes = WIDTH * (size_t)depth / 8;
        unsigned most = (1u << depth) - 1;

        for (size_t i = 0; i < sizeof(rows); i++)
            rows[i] = (uint8_t)(i * 0x35);
        for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
            size_t bit = i % WIDTH * (size_t)depth;
            unsigned v = ((unsigned)rows[i / WIDTH * row_bytes + bit / 8] >>
                          (8 - (unsigned)depth - bit % 8)) &
                         most;

            memset(want + 3 * i, (int)(v * 255 / most), 3);
        }
        check_png(PNG_COLOR_TYPE_GRAY, depth, rows, want);
    }
}

UNIT_TEST(test_picture__png_palette__its_colours)
{
    uint8_t rows[WIDTH * HEIGHT], want[WIDTH * HEIGHT * 3];

    for (size_t i = 0; i < sizeof(rows); i++) { /* make_png()'s */
        rows[i] = (uint8_t)(i * 3);
        memcpy(want + 3 * i, (uint8_t[]){rows[i], (uint8_t)(255 - rows[i]), (uint8_t)(rows[i] * 7)},
               3);
    }
    check_png(PNG_COLOR_TYPE_PALETTE, 8, rows, want);
}

UNIT_TEST(test_picture__png_cut_short_or_damaged__ebadmsg)
{
    uint8_t rgb[WIDTH * HEIGHT * 3], ret[8 * 8 * 3];
    struct made_picture made;

    draw(rgb, WIDTH, HEIGHT, 3);
    made = a_png(PNG_COLOR_TYPE_RGB, 8, false, rgb);
    for (size_t len = 8; len < made.len - 12; len++) /* IEND has 12 bytes */
        check_bad(made.bytes, len, -EBADMSG, "PNG: ");
    check_bad(made.bytes, 20, -EBADMSG, "it is cut short");
    assert_int_equal(decode(made.bytes, made.len - 12, 8, 8, ret, NULL), 0);
    made.bytes[made.len - 13] ^= 1;
    check_bad(made.bytes, made.len, -EBADMSG, "IDAT: CRC error");
    made.bytes[17] ^= 1;
    check_bad(made.bytes, made.len, -EBADMSG, "IHDR: CRC error");
    free(made.bytes);
}

UNIT_TEST(test_picture__png_too_large__efbig)
{
    struct made_png how = {1u << 20, 257, PNG_COLOR_TYPE_GRAY, 1, false, NULL, 0};
    AUTO_FREE uint8_t *rows = calloc(257, 1u << 17);
    struct made_picture made;

    assert_non_null(rows);
    made = make_png(&how, rows);
    check_bad(made.bytes, made.len, -EFBIG, "got 1048576 x 257");
    free(made.bytes);
    how.height = 65;
    how.is_interlaced = true;
    made = make_png(&how, rows);
    check_bad(made.bytes, made.len, -EFBIG, "bytes of memory");
    free(made.bytes);
}

/* Turned by hand, as EXIF's table says, for each pixel that is shown. */
static size_t stored_place(unsigned orientation, uint32_t y, uint32_t x)
{
    static const int from[9][6] = {
        /* stored y, x: what multiplies y, x, and is added, in units of the last pixel */
        [1] = {1, 0, 0, 0, 1, 0},   [2] = {1, 0, 0, 0, -1, 1}, [3] = {-1, 0, 1, 0, -1, 1},
        [4] = {-1, 0, 1, 0, 1, 0},  [5] = {0, 1, 0, 1, 0, 0},  [6] = {0, -1, 1, 1, 0, 0},
        [7] = {0, -1, 1, -1, 0, 1}, [8] = {0, 1, 0, -1, 0, 1},
    };
    const int *f = from[orientation];
    int sy = f[0] * (int)y + f[1] * (int)x + f[2] * (HEIGHT - 1);
    int sx = f[3] * (int)y + f[4] * (int)x + f[5] * (WIDTH - 1);

    return (size_t)(sy * WIDTH + sx) * 3;
}

UNIT_TEST(test_picture__each_orientation__turned)
{
    uint8_t rgb[WIDTH * HEIGHT * 3], ret[WIDTH * HEIGHT * 3], exif[MADE_EXIF_BYTES];

    draw(rgb, WIDTH, HEIGHT, 3);
    for (unsigned o = 1; o <= 8; o++) {
        struct made_png how = {WIDTH, HEIGHT, PNG_COLOR_TYPE_RGB, 8, false, exif, sizeof(exif)};
        uint32_t width = o < 5 ? WIDTH : HEIGHT, height = o < 5 ? HEIGHT : WIDTH;
        struct made_picture made;

        make_exif(true, o, exif);
        made = make_png(&how, rgb);
        assert_int_equal(decode(made.bytes, made.len, height, width, ret, NULL), 0);
        free(made.bytes);
        for (uint32_t y = 0; y < height; y++)
            for (uint32_t x = 0; x < width; x++)
                assert_memory_equal(ret + ((size_t)y * width + x) * 3, rgb + stored_place(o, y, x),
                                    3);
    }
}

/* A cut that cannot be in the middle: the same pixels as if the picture had been turned first. */
UNIT_TEST(test_picture__orientation_and_cut__as_if_turned_first)
{
    uint8_t rgb[WIDTH * HEIGHT * 3], turned[WIDTH * HEIGHT * 3], exif[MADE_EXIF_BYTES];
    uint8_t want[5 * 10 * 3], found[5 * 10 * 3];

    draw(rgb, WIDTH, HEIGHT, 3);
    for (unsigned o = 1; o <= 8; o++) {
        uint32_t width = o < 5 ? WIDTH : HEIGHT, height = o < 5 ? HEIGHT : WIDTH;
        struct made_png how = {WIDTH, HEIGHT, PNG_COLOR_TYPE_RGB, 8, false, exif, sizeof(exif)};
        struct made_png plain = {width, height, PNG_COLOR_TYPE_RGB, 8, false, NULL, 0};
        struct made_picture made;

        make_exif(false, o, exif);
        made = make_png(&how, rgb);
        assert_int_equal(decode(made.bytes, made.len, 5, 10, found, NULL), 0);
        free(made.bytes);
        for (uint32_t y = 0; y < height; y++)
            for (uint32_t x = 0; x < width; x++)
                memcpy(turned + ((size_t)y * width + x) * 3, rgb + stored_place(o, y, x), 3);
        made = make_png(&plain, turned);
        assert_int_equal(decode(made.bytes, made.len, 5, 10, want, NULL), 0);
        free(made.bytes);
        assert_bytes_near(found, want, sizeof(want), 1); /* axes are rounded in another order */
    }
}

UNIT_TEST(test_picture__jpeg_with_exif__turned)
{
    uint8_t exif[6 + MADE_EXIF_BYTES] = HEAD, rgb[WIDTH * HEIGHT * 3], ret[WIDTH * HEIGHT * 3];
    struct made_picture made;

    draw(rgb, WIDTH, HEIGHT, 3);
    make_exif(false, 6, exif + 6);
    made = make_jpeg(&(struct made_jpeg){.width = WIDTH,
                                         .height = HEIGHT,
                                         .channels = 3,
                                         .is_progressive = false,
                                         .exif = exif,
                                         .exif_len = sizeof(exif)},
                     rgb);
    assert_int_equal(decode(made.bytes, made.len, WIDTH, HEIGHT, ret, NULL), 0);
    free(made.bytes);
    for (uint32_t y = 0; y < WIDTH; y++)
        for (uint32_t x = 0; x < HEIGHT; x++)
            assert_bytes_near(ret + ((size_t)y * HEIGHT + x) * 3, rgb + stored_place(6, y, x), 3,
                              3);
}

/* A JPEG that is made smaller while it is decoded has the same places. */
UNIT_TEST(test_picture__large_jpeg__same_places)
{
    enum { W = 520, H = 392 };
    AUTO_FREE uint8_t *rgb = malloc((size_t)W * H * 3);
    uint8_t found[12 * 16 * 3], want[12 * 16 * 3];
    struct made_picture jpeg, png;

    assert_non_null(rgb);
    for (size_t i = 0; i < (size_t)W * H; i++) {
        rgb[3 * i] = (uint8_t)(i % W / 3);
        rgb[3 * i + 1] = (uint8_t)(i / W / 2);
        rgb[3 * i + 2] = 77;
    }
    jpeg = make_jpeg(&(struct made_jpeg){.width = W,
                                         .height = H,
                                         .channels = 3,
                                         .is_progressive = false,
                                         .exif = NULL,
                                         .exif_len = 0},
                     rgb);
    png = make_png(&(struct made_png){W, H, PNG_COLOR_TYPE_RGB, 8, false, NULL, 0}, rgb);
    assert_int_equal(decode(jpeg.bytes, jpeg.len, 12, 16, found, NULL), 0);
    assert_int_equal(decode(png.bytes, png.len, 12, 16, want, NULL), 0);
    free(jpeg.bytes);
    free(png.bytes);
    assert_bytes_near(found, want, sizeof(want), 3);
}

UNIT_TEST(test_picture__jpeg_of_many_scans__ebadmsg)
{
    struct made_picture made = a_jpeg(3, true);
    AUTO_FREE uint8_t *bytes = made.bytes, *many = NULL;
    size_t at = made.len - 2, start;

    while (memcmp(bytes + at, "\xff\xda", 2)) /* the last scan */
        at--;
    start = at;
    many = malloc(made.len + 200 * (made.len - 2 - start));
    assert_non_null(many);
    memcpy(many, bytes, start);
    for (unsigned i = 0; i < 200; i++, at += made.len - 2 - start)
        memcpy(many + at, bytes + start, made.len - 2 - start);
    memcpy(many + at, "\xff\xd9", 2);
    check_bad(many, at + 2, -EBADMSG, "expected at most 100 scans");
}

UNIT_TEST(test_picture__webp__by_what_the_build_has)
{
    /* One pixel, lossless. */
    static const uint8_t webp[] = "RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11"
                                  "\x11\x88\x88\xfe\x07\0";
    uint8_t ret[3];
    struct diag d = DIAG_INIT;
    int r = decode(webp, sizeof(webp) - 1, 1, 1, ret, &d);

#ifdef HAVE_WEBP
    assert_int_equal(r, 0);
    for (size_t len = 12; len < sizeof(webp) - 2; len++)
        check_bad(webp, len, -EBADMSG, "WebP: ");
    check_bad(webp, 30, -EBADMSG, "it is cut short");
#else
    assert_int_equal(r, -EOPNOTSUPP);
    assert_diag_has(&d, "libwebp");
#endif
}

UNIT_TEST(test_picture__versions__named)
{
    AUTO_TEXT struct text t = {0};

    picture_add_versions(&t);
    assert_non_null(strstr(t.data, "libjpeg-turbo "));
    assert_non_null(strstr(t.data, ", libpng 1."));
    assert_non_null(strstr(t.data, ", scaling 1"));
}

struct decoding {
    struct picture_file file;
    uint8_t ret[16 * 16 * 3];
};

static void *decode_some(void *arg)
{
    struct decoding *decoding = arg;
    int r = 0;

    for (unsigned i = 0; i < 50 && r == 0; i++)
        r = picture_decode(&decoding->file, 16, 16, decoding->ret, NULL);
    return (void *)(intptr_t)r;
}

UNIT_TEST(test_picture__four_threads__the_same_bytes)
{
    struct made_picture made = a_jpeg(3, true);
    struct decoding decoding[4];
    pthread_t thread[4];

    for (unsigned i = 0; i < 4; i++) {
        decoding[i].file = (struct picture_file){NAME, made.bytes, made.len};
        assert_int_equal(pthread_create(&thread[i], NULL, decode_some, &decoding[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        void *r;

        assert_int_equal(pthread_join(thread[i], &r), 0);
        assert_null(r);
        assert_memory_equal(decoding[i].ret, decoding[0].ret, sizeof(decoding[0].ret));
    }
    free(made.bytes);
}
