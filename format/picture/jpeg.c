/* JPEG by libjpeg-turbo. It makes a picture smaller by 2, 4 or 8 while it decodes, at less than the
 * cost of the whole, and with the same bytes on every machine: its fast ways are exact.
 *
 * An error leaves the library by longjmp() to jpeg_read(), which has no variables of its own that
 * change. A file that ends before its end marker is an error; what the library only warns of, bad
 * data from which it goes on, is none. PIL does likewise. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it before */

#include <jpeglib.h>

#include <string.h>

#include "base/checked.h"
#include "format/picture/exif.h"
#include "format/picture/parts.h"

#ifndef LIBJPEG_TURBO_VERSION
#error "expected libjpeg-turbo, got another libjpeg"
#endif

#define REDUCED_MOST 8
#define SCANS_MAX    100 /* a hostile file has thousands, each of the whole picture */
#define STRING_(x)   #x
#define STRING(x)    STRING_(x)

struct jpeg {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    struct picture_job *job;
    int error;     /* -errno, before the jump */
    uint8_t *line; /* owned */
    /* In line. Not aligned: into rows that are, libjpeg-turbo writes past the processor's caches,
     * and the scaler would wait for memory. */
    uint8_t *row;
};

static struct jpeg *jpeg_of(j_common_ptr lib)
{
    return lib->client_data;
}

/* ---- what the library calls ---- */

static __attribute__((noreturn)) void jpeg_leave(struct jpeg *jpeg, int error)
{
    jpeg->error = error;
    longjmp(jpeg->jump, 1);
}

static void jpeg_on_error(j_common_ptr lib)
{
    struct jpeg *jpeg = jpeg_of(lib);
    char message[JMSG_LENGTH_MAX];

    lib->err->format_message(lib, message);
    jpeg_leave(jpeg,
               diag_set(jpeg->job->d, -EBADMSG, "%s: JPEG: %s", jpeg->job->file->name, message));
}

static void on_message(j_common_ptr lib, int level)
{
    (void)lib;
    (void)level;
}

static void on_output(j_common_ptr lib)
{
    (void)lib;
}

static void on_progress(j_common_ptr lib)
{
    struct jpeg *jpeg = jpeg_of(lib);

    if (jpeg->lib.input_scan_number > SCANS_MAX)
        jpeg_leave(jpeg,
                   diag_set(jpeg->job->d, -EBADMSG, "%s: JPEG: expected at most %d scans, got more",
                            jpeg->job->file->name, SCANS_MAX));
}

static void source_init(j_decompress_ptr lib)
{
    (void)lib;
}

static __attribute__((noreturn)) void cut_short(j_decompress_ptr lib)
{
    struct jpeg *jpeg = lib->client_data;

    jpeg_leave(jpeg,
               diag_set(jpeg->job->d, -EBADMSG,
                        "%s: JPEG: expected an end marker, got the end of the file at byte %zu; it "
                        "is cut short",
                        jpeg->job->file->name, jpeg->job->file->len));
}

static boolean source_fill(j_decompress_ptr lib)
{
    cut_short(lib);
}

static void source_skip(j_decompress_ptr lib, long n)
{
    if (n <= 0)
        return;
    if ((size_t)n > lib->src->bytes_in_buffer)
        cut_short(lib);
    lib->src->next_input_byte += n;
    lib->src->bytes_in_buffer -= (size_t)n;
}

/* ---- colours ---- */

/* a * b / 255, rounded. */
static unsigned share(unsigned a, unsigned b)
{
    unsigned v = a * b + 128;

    return (v + (v >> 8)) >> 8;
}

/* Files store how much light remains, not how much ink there is. */
static void cmyk_to_rgb(uint8_t *row, size_t n)
{
    for (uint8_t *p = row; n--; p += PIXEL_BYTES)
        for (unsigned c = 0; c < 3; c++)
            p[c] = (uint8_t)(p[3] - share(255u - p[c], p[3]));
}

/* ---- decoding ---- */

static void jpeg_set_up(struct jpeg *jpeg)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;

    jpeg->source = (struct jpeg_source_mgr){
        .next_input_byte = jpeg->job->file->bytes,
        .bytes_in_buffer = jpeg->job->file->len,
        .init_source = source_init,
        .fill_input_buffer = source_fill,
        .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = source_init,
    };
    jpeg->progress.progress_monitor = on_progress;
    lib->src = &jpeg->source;
    lib->progress = &jpeg->progress;
    lib->mem->max_memory_to_use = 2 * (long)PICTURE_MEMORY_MAX; /* held_bytes(), and rows */
}

/* Bytes of the coefficients, which files of several scans make the library hold. */
static uint64_t held_bytes(struct jpeg_decompress_struct *lib)
{
    uint64_t blocks = 0;

    if (!jpeg_has_multiple_scans(lib))
        return 0;
    for (int i = 0; i < lib->num_components; i++) {
        const jpeg_component_info *c = &lib->comp_info[i];

        blocks += (uint64_t)c->width_in_blocks * c->height_in_blocks;
    }
    return blocks * DCTSIZE2 * sizeof(JCOEF);
}

static int jpeg_begin(struct jpeg *jpeg)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;
    const struct picture_file *file = jpeg->job->file;
    unsigned reduced = 1;
    int r = picture_begin(jpeg->job, lib->image_width, lib->image_height,
                          exif_of_jpeg(file->bytes, file->len), REDUCED_MOST, &reduced);

    if (r < 0)
        return r;
    if (held_bytes(lib) > PICTURE_MEMORY_MAX)
        return picture_too_large(jpeg->job, held_bytes(lib));
    lib->scale_num = 1;
    lib->scale_denom = reduced;
    lib->out_color_space = lib->jpeg_color_space == JCS_CMYK || lib->jpeg_color_space == JCS_YCCK
                               ? JCS_CMYK
                               : JCS_EXT_RGBX;
    jpeg_calc_output_dimensions(lib);
    jpeg->line = calloc((size_t)lib->output_width + 2, PIXEL_BYTES);
    if (!jpeg->line)
        return -ENOMEM;
    jpeg->row = jpeg->line + PIXEL_BYTES;
    return 0;
}

static void jpeg_read_rows(struct jpeg *jpeg, uint8_t *row, uint32_t end)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;

    while (lib->output_scanline < end) {
        jpeg_read_scanlines(lib, &row, 1);
        if (lib->out_color_space == JCS_CMYK)
            cmyk_to_rgb(row, lib->output_width);
        scaler_row(&jpeg->job->scaler, jpeg->row);
    }
}

#if JPEG_LIB_VERSION >= 70
#define BLOCK_WIDTH(lib)  (lib)->min_DCT_h_scaled_size
#define BLOCK_HEIGHT(lib) (lib)->min_DCT_v_scaled_size
#define ENLARGED(c)       (c)->DCT_h_scaled_size
#else
#define BLOCK_WIDTH(lib)  (lib)->min_DCT_scaled_size
#define BLOCK_HEIGHT(lib) (lib)->min_DCT_scaled_size
#define ENLARGED(c)       (c)->DCT_scaled_size
#endif

/* Can columns be cut off? Not where the transform enlarges colours by a part of what they need, as
 * in halved 4:1:0: then the library's upsampler takes another width, and stops in the middle of a
 * row. */
static bool jpeg_can_crop(const struct jpeg_decompress_struct *lib)
{
    for (int i = 0; i < lib->num_components; i++) {
        const jpeg_component_info *c = &lib->comp_info[i];
        int size = ENLARGED(c);

        if (size != BLOCK_WIDTH(lib) &&
            (c->h_samp_factor * size != lib->max_h_samp_factor * BLOCK_WIDTH(lib) ||
             c->v_samp_factor * size != lib->max_v_samp_factor * BLOCK_WIDTH(lib)))
            return false;
    }
    return true;
}

/* Decode the columns that are needed. The outermost ones of what the library decodes are not those
 * of the whole picture, since their neighbours are missing: so a unit more on each side. */
static uint8_t *jpeg_crop(struct jpeg *jpeg, const struct scaler_box *box)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;
    JDIMENSION unit = (JDIMENSION)(lib->max_h_samp_factor * BLOCK_WIDTH(lib));
    JDIMENSION x = box->x - (JDIMENSION)min_u64(box->x, unit);
    JDIMENSION width = (JDIMENSION)min_u64((uint64_t)box->x_end + unit, lib->output_width) - x;

    if (!jpeg_can_crop(lib))
        return jpeg->row;
    jpeg_crop_scanline(lib, &x, &width);
    return jpeg->row + (size_t)x * PIXEL_BYTES;
}

/* Is the rest of the file data of this scan, and then the end marker? A false answer says nothing.
 */
static bool jpeg_ends(const struct jpeg *jpeg)
{
    const uint8_t *at = jpeg->source.next_input_byte;
    const uint8_t *end = at + jpeg->source.bytes_in_buffer;

    if (jpeg->lib.unread_marker)
        return jpeg->lib.unread_marker == JPEG_EOI;
    while ((at = memchr(at, 0xff, (size_t)(end - at))) && ++at < end)
        if (*at != 0 && *at != 0xff && (*at < JPEG_RST0 || *at > JPEG_RST0 + 7))
            return *at == JPEG_EOI;
    return false;
}

/* Whether a file is good must not depend on the size that is wanted: so the end marker is looked
 * for. Where something else comes before it, the last row is decoded. */
static void jpeg_find_end(struct jpeg *jpeg, uint8_t *row)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;

    if (!jpeg_has_multiple_scans(lib) && lib->output_scanline < lib->output_height &&
        jpeg_ends(jpeg))
        return;
    if (lib->output_scanline + 1 < lib->output_height)
        jpeg_skip_scanlines(lib, lib->output_height - 1 - lib->output_scanline);
    jpeg_read_rows(jpeg, row, lib->output_height);
    jpeg_finish_decompress(lib);
}

/* The rows and columns that are needed, from a unit above them on: those of the whole picture. */
static void jpeg_read_part(struct jpeg *jpeg)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;
    const struct scaler_box box = scaler_needs(&jpeg->job->scaler);
    uint32_t unit = (uint32_t)(lib->max_v_samp_factor * BLOCK_HEIGHT(lib));
    uint32_t begin = box.y > unit ? (box.y - unit) / (2 * unit) * (2 * unit) : 0;
    uint64_t end = min_u64(ceil_div(box.y_end, unit) * unit, lib->output_height);
    uint8_t *row = jpeg_crop(jpeg, &box);

    if (begin) {
        jpeg_skip_scanlines(lib, begin);
        scaler_skip(&jpeg->job->scaler, begin);
    }
    jpeg_read_rows(jpeg, row, (uint32_t)end);
    jpeg_find_end(jpeg, row);
}

static void jpeg_read_pixels(struct jpeg *jpeg)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;

    jpeg_start_decompress(lib);
    if (lib->out_color_space != JCS_CMYK) {
        jpeg_read_part(jpeg);
        return;
    }
    jpeg_read_rows(jpeg, jpeg->row, lib->output_height);
    jpeg_finish_decompress(lib);
}

static int jpeg_read(struct jpeg *jpeg)
{
    int r;

    if (setjmp(jpeg->jump))
        return jpeg->error;
    jpeg_create_decompress(&jpeg->lib);
    jpeg_set_up(jpeg);
    jpeg_read_header(&jpeg->lib, TRUE);
    r = jpeg_begin(jpeg);
    if (r == 0)
        jpeg_read_pixels(jpeg);
    return r;
}

static int jpeg_decode(struct picture_job *job)
{
    struct jpeg jpeg = {.job = job};
    int r;

    jpeg.lib.err = jpeg_std_error(&jpeg.errors);
    jpeg.lib.client_data = &jpeg;
    jpeg.errors.error_exit = jpeg_on_error;
    jpeg.errors.emit_message = on_message;
    jpeg.errors.output_message = on_output;
    r = jpeg_read(&jpeg);
    jpeg_destroy_decompress(&jpeg.lib);
    free(jpeg.line);
    return r;
}

static bool jpeg_is_ours(const uint8_t *head, size_t len)
{
    return len >= 3 && !memcmp(head, "\xff\xd8\xff", 3);
}

/* The library does not say its version when it runs, so this is the one that was built against. */
static void jpeg_add_version(struct text *t)
{
    text_add(t, "libjpeg-turbo %s", STRING(LIBJPEG_TURBO_VERSION));
}

const struct picture_decoder picture_jpeg = {"JPEG", jpeg_is_ours, jpeg_decode, jpeg_add_version};
