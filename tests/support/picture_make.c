#include "support/picture_make.h"

#include <stdio.h> /* jpeglib.h needs it before */

#include <jpeglib.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

struct made_picture make_jpeg(const struct made_jpeg *how, const uint8_t *pixels)
{
    struct jpeg_compress_struct lib;
    struct jpeg_error_mgr errors;
    struct made_picture made = {NULL, 0};
    unsigned long len = 0;

    lib.err = jpeg_std_error(&errors);
    jpeg_create_compress(&lib);
    jpeg_mem_dest(&lib, &made.bytes, &len);
    lib.image_width = how->width;
    lib.image_height = how->height;
    lib.input_components = (int)how->channels;
    lib.in_color_space = how->channels == 1   ? JCS_GRAYSCALE
                         : how->channels == 3 ? JCS_RGB
                                              : JCS_CMYK;
    jpeg_set_defaults(&lib);
    jpeg_set_quality(&lib, 100, TRUE);
    for (int i = 0; i < lib.num_components; i++)
        lib.comp_info[i].h_samp_factor = lib.comp_info[i].v_samp_factor = 1;
    lib.comp_info[0].h_samp_factor = how->along_x ? how->along_x : 1;
    lib.comp_info[0].v_samp_factor = how->along_y ? how->along_y : 1;
    if (how->is_progressive)
        jpeg_simple_progression(&lib);
    jpeg_start_compress(&lib, TRUE);
    if (how->exif_len)
        jpeg_write_marker(&lib, JPEG_APP0 + 1, how->exif, (unsigned)how->exif_len);
    for (uint32_t y = 0; y < how->height; y++) {
        uint8_t *row = (uint8_t *)(uintptr_t)(pixels + (size_t)y * how->width * how->channels);

        jpeg_write_scanlines(&lib, &row, 1);
    }
    jpeg_finish_compress(&lib);
    jpeg_destroy_compress(&lib);
    made.len = len;
    return made;
}

static void add_bytes(png_structp lib, png_bytep bytes, size_t n)
{
    struct made_picture *made = png_get_io_ptr(lib);

    made->bytes = realloc(made->bytes, made->len + n);
    if (!made->bytes)
        abort();
    memcpy(made->bytes + made->len, bytes, n);
    made->len += n;
}

static void set_palette(png_structp lib, png_infop info, int depth)
{
    png_color colour[256];
    int n = 1 << depth;

    for (int i = 0; i < n; i++)
        colour[i] = (png_color){(uint8_t)i, (uint8_t)(255 - i), (uint8_t)(i * 7)};
    png_set_PLTE(lib, info, colour, n);
}

struct made_picture make_png(const struct made_png *how, const uint8_t *rows)
{
    struct made_picture made = {NULL, 0};
    png_structp lib = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(lib);
    size_t row_bytes;
    int passes;

    png_set_user_limits(lib, UINT32_MAX >> 1, UINT32_MAX >> 1);
    png_set_write_fn(lib, &made, add_bytes, NULL);
    png_set_IHDR(lib, info, how->width, how->height, how->depth, how->colour_type,
                 how->is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (how->colour_type == PNG_COLOR_TYPE_PALETTE)
        set_palette(lib, info, how->depth);
    if (how->exif_len)
        png_set_eXIf_1(lib, info, (png_uint_32)how->exif_len, (png_bytep)(uintptr_t)how->exif);
    png_write_info(lib, info);
    passes = png_set_interlace_handling(lib);
    row_bytes = png_get_rowbytes(lib, info);
    while (passes--)
        for (uint32_t y = 0; y < how->height; y++)
            png_write_row(lib, rows + y * row_bytes);
    png_write_end(lib, info);
    png_destroy_write_struct(&lib, &info);
    return made;
}

void make_exif(bool big_endian, unsigned orientation, uint8_t ret[static MADE_EXIF_BYTES])
{
    /* The head; one entry: tag, SHORT, one value; no directory more. */
    static const uint8_t big[MADE_EXIF_BYTES] =
        "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0";
    static const uint8_t little[MADE_EXIF_BYTES] =
        "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0";

    memcpy(ret, big_endian ? big : little, MADE_EXIF_BYTES);
    ret[big_endian ? 19 : 18] = (uint8_t)orientation;
}
