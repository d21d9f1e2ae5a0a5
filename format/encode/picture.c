/* png and pgm: samples that are pictures (uint8, two axes, or a third of 1 or 3 colours), and
 * contact sheets of many; pgm has grey ones only.
 *
 * A sheet is a grid of ceil(sqrt(n)) columns in the order of the selection, with black in empty
 * cells; without samples it is one black pixel. PNG keeps the pixels in stored (uncompressed)
 * deflate blocks, so its size follows from its shape and any part of it can be made without the
 * rest. The Adler-32 and CRC-32 at the end take one pass over the pixels; the host remembers them.
 *
 * Sources: PNG specification (third edition) 5 and 11.2; RFC 1950, RFC 1951 3.2.4; Netpbm pgm(5).
 */
#include "format/core/encoder.h"
#include "format/encode/cls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"

#define STORED_MAX   65535u /* bytes of a stored deflate block */
#define STORED_EXTRA 5u
#define WIDE         65536u    /* bytes: rows at least this long are read one by one */
#define PNG_MAX      INT32_MAX /* of a width, a height or a chunk */
#define PNG_HEAD     43u       /* signature, IHDR, start of IDAT, zlib header */
#define PNG_IDAT     37u       /* offset of "IDAT", where its CRC begins */
#define RGB          3u        /* bytes of a pixel in colours */
#define PNG_TAIL     20u       /* Adler-32, CRC-32, IEND */

enum { SLOT_ADLER, SLOT_CRC };

/* Geometry of a sheet, in bytes. */
struct sheet {
    uint64_t columns, rows; /* of cells */
    uint64_t cell_w, cell_h;
    unsigned colours; /* bytes of a pixel */
    uint64_t lead;    /* bytes before each row of pixels: PNG's filter type */
    uint64_t stride;  /* lead + columns * cell_w */
    uint64_t bytes;   /* stride * rows * cell_h */
};

static uint64_t square_root_up(uint64_t n)
{
    uint64_t r = 0;

    while (r * r < n)
        r++;
    return r;
}

static int sheet_init(struct sheet *ret, const struct field *f, uint64_t count, uint64_t lead)
{
    unsigned colours = f->ndim == 3 ? (unsigned)f->dim[2] : 1;
    uint64_t cell_w = (count ? f->dim[1] : 1) * colours, cell_h = count ? f->dim[0] : 1;
    uint64_t columns, rows, width, height;

    if (count > (uint64_t)PNG_MAX)
        return -EFBIG;
    columns = max_u64(square_root_up(count), 1);
    rows = max_u64(ceil_div(count, columns), 1);
    if (!checked_mul(columns, cell_w, &width) || !checked_mul(rows, cell_h, &height) ||
        width > (uint64_t)PNG_MAX || height > (uint64_t)PNG_MAX)
        return -EFBIG;
    *ret = (struct sheet){
        .columns = columns,
        .rows = rows,
        .cell_w = cell_w,
        .cell_h = cell_h,
        .colours = colours,
        .lead = lead,
        .stride = lead + width,
        .bytes = (lead + width) * height, /* both below 2^31 */
    };
    return 0;
}

/* Copy rows of one cell from its own bytes to their places in dst, which holds bytes [off, off +
 * len) of the sheet. */
static void encode_picture_scatter(const struct sheet *s, const uint8_t *cell, uint64_t first_row,
                                   uint64_t n, uint64_t x, uint64_t off, size_t len, uint8_t *dst)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t start = (first_row + i) * s->stride + s->lead + x, end = start + s->cell_w;
        uint64_t from = max_u64(start, off), to = min_u64(end, off + len);

        if (from < to)
            memcpy(dst + (from - off), cell + i * s->cell_w + (from - start), to - from);
    }
}

/* Make the sheet's rows first .. last, which belong to one row of cells. */
static int band_read(struct read_context *rc, struct layout *l, const struct field *f,
                     const struct sheet *s, uint64_t first, uint64_t last, uint64_t off, size_t len,
                     uint8_t *dst, struct diag *d)
{
    uint64_t band = first / s->cell_h, y = first % s->cell_h, n = last - first + 1;
    AUTO_FREE uint8_t *cell = malloc(n * s->cell_w);
    int all = 0;

    if (!cell)
        return -ENOMEM;
    for (uint64_t column = 0; column < s->columns; column++) {
        uint64_t place = band * s->columns + column;
        int r;

        if (place >= l->selection->count)
            break;
        r = f->ops->read(rc, l->dataset, f, l->selection, place * f->item_bytes + y * s->cell_w,
                         n * s->cell_w, cell, d);
        if (!missing_go_on(rc, r, &all))
            break;
        if (r == 0)
            encode_picture_scatter(s, cell, first, n, column * s->cell_w, off, len, dst);
    }
    return all;
}

/* Make the requested part of one row of a wide sheet, cell by cell, without a buffer. */
static int row_read(struct read_context *rc, struct layout *l, const struct field *f,
                    const struct sheet *s, uint64_t row, uint64_t off, size_t len, uint8_t *dst,
                    struct diag *d)
{
    uint64_t band = row / s->cell_h, y = row % s->cell_h;
    uint64_t pixels = row * s->stride + s->lead;
    int all = 0;

    for (uint64_t column = off > pixels ? (off - pixels) / s->cell_w : 0; column < s->columns;
         column++) {
        uint64_t place = band * s->columns + column, start = pixels + column * s->cell_w;
        uint64_t from = max_u64(start, off), to = min_u64(start + s->cell_w, off + len);
        int r;

        if (place >= l->selection->count || from >= to)
            break;
        r = f->ops->read(rc, l->dataset, f, l->selection,
                         place * f->item_bytes + y * s->cell_w + (from - start), to - from,
                         dst + (from - off), d);
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}

/* Bytes [off, off + len) of the sheet's rows. */
static int sheet_read(struct read_context *rc, struct layout *l, const struct field *f,
                      const struct sheet *s, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint64_t row = off / s->stride, last = (off + len - 1) / s->stride;
    bool wide = s->stride > WIDE;
    int all = 0;

    memset(dst, 0, len);
    while (row <= last) {
        uint64_t end = wide ? row : min_u64(last, (row / s->cell_h + 1) * s->cell_h - 1);
        int r = wide ? row_read(rc, l, f, s, row, off, len, dst, d)
                     : band_read(rc, l, f, s, row, end, off, len, dst, d);

        if (!missing_go_on(rc, r, &all))
            break;
        row = end + 1;
    }
    return all;
}

/* The sheet of a part. Parts store none: it follows from the selection. */
static int part_sheet(struct layout *l, const struct part *p, struct sheet *ret)
{
    return sheet_init(ret, p->field, l->selection->count, p->number[0]);
}

static int pixels_read(struct read_context *rc, struct layout *l, const struct part *p,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct sheet s;
    int r = part_sheet(l, p, &s);

    return r < 0 ? r : sheet_read(rc, l, p->field, &s, off, len, dst, d);
}

static void stored_header(const struct sheet *s, uint64_t block, uint8_t ret[static STORED_EXTRA])
{
    uint64_t start = block * STORED_MAX, bytes = min_u64(STORED_MAX, s->bytes - start);

    ret[0] = start + bytes == s->bytes;
    store_le16(ret + 1, (uint16_t)bytes);
    store_le16(ret + 3, (uint16_t)~bytes);
}

static int blocks_read(struct read_context *rc, struct layout *l, const struct part *p,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct sheet s;
    int r = part_sheet(l, p, &s), all = 0;

    while (missing_go_on(rc, r, &all) && len) {
        uint64_t block = off / (STORED_EXTRA + STORED_MAX);
        uint64_t within = off % (STORED_EXTRA + STORED_MAX);
        size_t n;

        if (within < STORED_EXTRA) {
            uint8_t header[STORED_EXTRA];

            stored_header(&s, block, header);
            r = 0;
            n = (size_t)min_u64(len, STORED_EXTRA - within);
            memcpy(dst, header + within, n);
        } else {
            n = (size_t)min_u64(len, STORED_EXTRA + STORED_MAX - within);
            r = sheet_read(rc, l, p->field, &s, block * STORED_MAX + within - STORED_EXTRA, n, dst,
                           d);
        }
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

/* Adler-32 of the sheet, fed with its stored blocks; at: offset in these. */
static uint32_t update_adler(uint32_t sum, uint64_t at, const uint8_t *bytes, size_t n)
{
    while (n) {
        uint64_t within = at % (STORED_EXTRA + STORED_MAX);
        bool header = within < STORED_EXTRA;
        size_t piece =
            (size_t)min_u64(n, (header ? STORED_EXTRA : STORED_EXTRA + STORED_MAX) - within);

        if (!header)
            sum = (uint32_t)adler32_z(sum, bytes, piece);
        at += piece;
        bytes += piece;
        n -= piece;
    }
    return sum;
}

/* number[1]: bytes of the blocks before. */
static int tail_read(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                     size_t len, uint8_t *dst, struct diag *d)
{
    static const uint8_t iend[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    uint64_t blocks = p->number[1];
    uint8_t tail[PNG_TAIL];
    uint32_t adler = 0, crc = 0;
    int all = 0;

    if (!missing_go_on(
            rc, layout_checksum(rc, l, PNG_HEAD, blocks, SLOT_ADLER, 1, update_adler, &adler, d),
            &all) ||
        !missing_go_on(rc,
                       layout_checksum(rc, l, PNG_IDAT, PNG_HEAD - PNG_IDAT + blocks, SLOT_CRC, 0,
                                       layout_update_crc32, &crc, d),
                       &all) ||
        all < 0)
        return all;
    store_be32(tail, adler);
    store_be32(tail + 4, (uint32_t)crc32_z(crc, tail, 4));
    memcpy(tail + 8, iend, sizeof(iend));
    memcpy(dst, tail + off, len);
    return 0;
}

static uint8_t *png_head(const struct sheet *s, uint64_t blocks)
{
    static const uint8_t start[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                    0,    0,   0,   13,  'I',  'H',  'D',  'R'};
    uint8_t *h = calloc(1, PNG_HEAD);

    if (!h)
        return NULL;
    memcpy(h, start, sizeof(start));
    store_be32(h + 16, (uint32_t)(s->columns * s->cell_w / s->colours));
    store_be32(h + 20, (uint32_t)(s->rows * s->cell_h));
    h[24] = 8; /* bits of a colour; grey, deflate, adaptive filters, not interlaced are all 0 */
    h[25] = s->colours == RGB ? 2 : 0;
    store_be32(h + 29, (uint32_t)crc32_z(0, h + 12, 17));
    store_be32(h + 33, (uint32_t)(2 + blocks + 4));
    memcpy(h + 37, "IDAT", 4);
    h[41] = 0x78; /* deflate, 32 KiB window, */
    h[42] = 0x01; /* fastest, check bits */
    return h;
}

static int png_layout(struct layout *l, const struct file_kind *file)
{
    struct sheet s;
    uint64_t blocks;
    int r;

    if (!field_is_in(file->field, IN_PICTURES | IN_PREVIEW))
        return cls_add(l, file->field);
    r = sheet_init(&s, file->field, l->selection->count, 1);
    if (r < 0)
        return r;
    blocks = s.bytes + ceil_div(s.bytes, STORED_MAX) * STORED_EXTRA;
    if (blocks > (uint64_t)PNG_MAX - 6)
        return -EFBIG;
    r = layout_add_bytes(l, png_head(&s, blocks), PNG_HEAD);
    if (r == 0)
        r = layout_add(
            l, &(struct part){
                   .size = blocks, .read = blocks_read, .field = file->field, .number = {1}});
    if (r == 0)
        r = layout_add(l, &(struct part){.size = PNG_TAIL,
                                         .read = tail_read,
                                         .field = file->field,
                                         .number = {1, blocks}});
    return r;
}

/* A picture without colours. */
static bool is_grey(const struct field *f)
{
    return field_is_in(f, IN_PICTURES) && (f->ndim == 2 || f->dim[2] == 1);
}

static int pgm_layout(struct layout *l, const struct file_kind *file)
{
    char header[64];
    struct sheet s;
    int r;

    if (!is_grey(file->field))
        return cls_add(l, file->field);
    r = sheet_init(&s, file->field, l->selection->count, 0);
    if (r < 0)
        return r;
    snprintf(header, sizeof(header), "P5\n%llu %llu\n255\n",
             (unsigned long long)(s.columns * s.cell_w), (unsigned long long)(s.rows * s.cell_h));
    r = layout_add_bytes(l, (uint8_t *)strdup(header), strlen(header));
    if (r == 0)
        r = layout_add(l,
                       &(struct part){.size = s.bytes, .read = pixels_read, .field = file->field});
    return r;
}

const struct encoder encoder_png = {.name = "png",
                                    .shows = SHOWS_CONTAINER,
                                    .in = {IN_PICTURES, IN_PICTURES},
                                    .has_labels = true,
                                    .layout = png_layout};
const struct encoder encoder_pgm = {.name = "pgm",
                                    .shows = SHOWS_CONTAINER,
                                    .in = {IN_PICTURES, IN_PICTURES},
                                    .fits = is_grey,
                                    .has_labels = true,
                                    .layout = pgm_layout};
