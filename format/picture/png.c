/* PNG by libpng: 16 bits to the upper 8, palettes and few bits to colours, alpha dropped, which is
 * what convert('RGB') of PIL does. (But PIL cuts grey of 16 bits at 255; here it is scaled as
 * colours are.) Chunks that say nothing about pixels are passed over unread.
 *
 * An error leaves the library by longjmp() to png_read(), which has no variables of its own that
 * change. Interlaced pictures are held as a whole, others row by row. */
#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "base/checked.h"
#include "format/picture/exif.h"
#include "format/picture/parts.h"

#define MAGIC_BYTES 8

struct png {
    struct picture_job *job;
    png_structp lib;
    png_infop info;
    size_t at; /* bytes of the file that were taken */
    int error; /* -errno, before the jump */
    uint32_t width, height;
    bool is_interlaced;
    bool is_numbers; /* rows have one byte for a pixel, the number of its colour */
    uint8_t *rows;   /* one, or all */
};

/* ---- what the library calls ---- */

static __attribute__((noreturn)) void png_on_error(png_structp lib, const char *message)
{
    struct png *png = png_get_error_ptr(lib);

    if (!png->error)
        png->error = diag_set(png->job->d, -EBADMSG, "%s: PNG: %s", png->job->file->name, message);
    png_longjmp(lib, 1);
}

static void on_warning(png_structp lib, const char *message)
{
    (void)lib;
    (void)message;
}

static void take_bytes(png_structp lib, png_bytep dst, size_t n)
{
    struct png *png = png_get_io_ptr(lib);
    const struct picture_file *file = png->job->file;

    if (n > file->len - png->at) {
        png->error = diag_set(png->job->d, -EBADMSG,
                              "%s: PNG: byte %zu: expected %zu bytes, got %zu; it is cut short",
                              file->name, png->at, n, file->len - png->at);
        png_error(lib, "cut short");
    }
    memcpy(dst, file->bytes + png->at, n);
    png->at += n;
}

/* ---- decoding ---- */

static void png_set_up(struct png *png)
{
    png_set_read_fn(png->lib, png, take_bytes);
    png_set_user_limits(png->lib, PICTURE_SOURCE_SIDE_MAX, PICTURE_SOURCE_SIDE_MAX);
    png_set_keep_unknown_chunks(png->lib, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
}

/* Four bytes a pixel, of whatever the file has; of numbers one. */
static void set_transforms(struct png *png)
{
    if (png->is_numbers) { /* other transformations would make colours of them */
        png_set_packing(png->lib);
    } else {
        png_set_strip_16(png->lib);
        png_set_palette_to_rgb(png->lib);
        png_set_expand_gray_1_2_4_to_8(png->lib);
        png_set_gray_to_rgb(png->lib);
        png_set_filler(png->lib, 0xff, PNG_FILLER_AFTER);
    }
    if (png->is_interlaced)
        png_set_interlace_handling(png->lib);
    png_read_update_info(png->lib, png->info);
}

static int png_begin(struct png *png)
{
    const struct picture_file *file = png->job->file;
    uint64_t rows;
    unsigned reduced;
    int r;

    png->width = png_get_image_width(png->lib, png->info);
    png->height = png_get_image_height(png->lib, png->info);
    png->is_interlaced = png_get_interlace_type(png->lib, png->info) != PNG_INTERLACE_NONE;
    png->is_numbers =
        png->job->as_numbers && png_get_color_type(png->lib, png->info) == PNG_COLOR_TYPE_PALETTE;
    if (png->job->as_numbers && png_get_bit_depth(png->lib, png->info) > 8)
        return diag_set(png->job->d, -EBADMSG,
                        "%s: PNG: expected numbers of at most 8 bits, got 16; store them as uint8",
                        file->name);
    r = picture_begin(png->job, png->width, png->height, exif_of_png(file->bytes, file->len), 1,
                      &reduced);
    if (r < 0)
        return r;
    rows = png->is_interlaced ? png->height : 1;
    if (rows * png->width * PIXEL_BYTES > PICTURE_MEMORY_MAX)
        return picture_too_large(png->job, rows * png->width * PIXEL_BYTES);
    png->rows = calloc(rows * png->width + 1, PIXEL_BYTES);
    return png->rows ? 0 : -ENOMEM;
}

/* A whole row was read. */
static void png_give_row(struct png *png, uint8_t *row)
{
    for (uint32_t x = png->width; png->is_numbers && x-- > 0;)
        memset(row + (size_t)x * PIXEL_BYTES, row[x], PIXEL_BYTES);
    scaler_row(&png->job->scaler, row);
}

static void png_decode_rows(struct png *png)
{
    const size_t row_bytes = (size_t)png->width * PIXEL_BYTES;

    if (!png->is_interlaced) {
        for (uint32_t y = 0; y < png->height; y++) {
            png_read_row(png->lib, png->rows, NULL);
            png_give_row(png, png->rows);
        }
        return;
    }
    for (unsigned pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (uint32_t y = 0; y < png->height; y++)
            png_read_row(png->lib, png->rows + y * row_bytes, NULL);
    for (uint32_t y = 0; y < png->height; y++)
        png_give_row(png, png->rows + y * row_bytes);
}

static int png_read(struct png *png)
{
    int r;

    if (setjmp(png_jmpbuf(png->lib)))
        return png->error;
    png->info = png_create_info_struct(png->lib);
    if (!png->info)
        return -ENOMEM;
    png_set_up(png);
    png_read_info(png->lib, png->info);
    r = png_begin(png);
    if (r == 0) {
        set_transforms(png);
        png_decode_rows(png);
    }
    return r;
}

static int png_decode(struct picture_job *job)
{
    struct png png = {.job = job};
    int r;

    png.lib = png_create_read_struct(PNG_LIBPNG_VER_STRING, &png, png_on_error, on_warning);
    if (!png.lib)
        return -ENOMEM;
    r = png_read(&png);
    png_destroy_read_struct(&png.lib, &png.info, NULL);
    free(png.rows);
    return r;
}

static bool png_is_ours(const uint8_t *head, size_t len)
{
    return len >= MAGIC_BYTES && !png_sig_cmp(head, 0, MAGIC_BYTES);
}

static void png_add_version(struct text *t)
{
    text_add(t, "libpng %s", png_get_libpng_ver(NULL));
}

const struct picture_decoder picture_png = {"PNG", png_is_ours, png_decode, png_add_version};
