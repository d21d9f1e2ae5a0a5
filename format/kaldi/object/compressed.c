/* Compressed matrices of Kaldi tables: CM, CM2, CM3 (matrix/compressed-matrix.cc).
 *
 *     header   min float, range float, rows int32, columns int32
 *     CM       for each column four uint16, its quartiles; then bytes, column by column
 *     CM2      uint16, row by row
 *     CM3      bytes, row by row
 *
 * The values equal Kaldi's to the last bit: each operation below has Kaldi's precision and order,
 * and the compiler must not fuse two (-ffp-contract=off).
 *
 * CM is transposed: the decoder makes a block of columns row by row, so that each step writes
 * adjacent bytes. A table of the 256 values of each column would be faster only for thousands of
 * rows. */
#include "format/kaldi/object/walk.h"

#include "base/checked.h"

#define HEADER 16 /* bytes */
#define COLUMN 8  /* bytes of a column's quartiles */
#define BLOCK  16 /* columns at a time: 64 bytes of float */

int kaldi_compressed_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    const uint8_t *header;
    uint64_t rows, columns;
    int r = kaldi_walk_bytes(w, HEADER, "the header of a compressed matrix", &header);

    if (r < 0)
        return r;
    rows = load_le32(header + 8);
    columns = load_le32(header + 12);
    if (!columns)
        return 0; /* empty, whatever the rest of the header says */
    if (!rows || rows > INT32_MAX || columns > INT32_MAX)
        return kaldi_bad(w->in, w->at - 8, w->diag,
                         "expected rows and columns of a compressed matrix, got %d and %d",
                         (int)rows, (int)columns);
    o->dim[0] = rows;
    o->dim[1] = columns;
    if (o->store == KALDI_CM)
        r = kaldi_walk_skip(w, columns, COLUMN, "the columns of a compressed matrix");
    if (r == 0)
        r = kaldi_walk_skip(w, rows * columns, o->store == KALDI_CM2 ? 2 : 1,
                            "a compressed matrix");
    return r;
}

/* ---- CM ---- */

/* A part of a column's byte values, which lie between two of its quartiles. */
struct part {
    double base, scale;
    float slope, first;
};

struct column {
    struct part part[3]; /* of bytes to 64, to 192, to 255 */
};

static void column_init(struct column *c, const uint8_t *header, const uint8_t *quartiles)
{
    float min = f4_of_bits(load_le32(header)),
          step = f4_of_bits(load_le32(header + 4)) * 1.52590218966964e-05f;
    float q[4];

    for (unsigned i = 0; i < 4; i++)
        q[i] = min + step * (float)load_le16(quartiles + 2 * i);
    c->part[0] = (struct part){(double)q[0], 1 / 64.0, q[1] - q[0], 0};
    c->part[1] = (struct part){(double)q[1], 1 / 128.0, q[2] - q[1], 64};
    c->part[2] = (struct part){(double)q[2], 1 / 63.0, q[3] - q[2], 192};
}

/* No branch: the part is not predictable. */
static inline float column_value(const struct column *c, unsigned v)
{
    const struct part *p = &c->part[(v > 64) + (v > 192)];

    return (float)(p->base + (double)(p->slope * ((float)(int)v - p->first)) * p->scale);
}

/* Columns that are decoded together. */
struct block {
    struct column column[BLOCK];
    size_t n;
    const uint8_t *data;  /* of the first column, rows bytes each */
    uint64_t rows, width; /* width: columns of the matrix */
};

static void make_block(const struct block *b, bool wide, uint8_t *dst)
{
    for (uint64_t row = 0; row < b->rows; row++) {
        uint8_t *out = dst + row * b->width * (wide ? 8 : 4);

        for (size_t k = 0; k < b->n; k++) {
            float value = column_value(&b->column[k], b->data[k * b->rows + row]);

            kaldi_store_real(out, k, wide, (double)value);
        }
    }
}

static void decode_columns(const struct kaldi_object *o, const uint8_t *header, bool wide,
                           uint8_t *dst)
{
    const uint8_t *quartiles = header + HEADER, *data = quartiles + COLUMN * o->dim[1];
    struct block b = {.rows = o->dim[0], .width = o->dim[1]};

    for (uint64_t first = 0; first < b.width; first += BLOCK) {
        b.n = (size_t)min_u64(BLOCK, b.width - first);
        b.data = data + first * b.rows;
        for (size_t k = 0; k < b.n; k++)
            column_init(&b.column[k], header, quartiles + COLUMN * (first + k));
        make_block(&b, wide, dst + first * (wide ? 8 : 4));
    }
}

/* ---- CM2, CM3 ---- */

static void decode_rows(const struct kaldi_object *o, const uint8_t *header, bool wide,
                        uint8_t *dst)
{
    bool two = o->store == KALDI_CM2;
    float min = f4_of_bits(load_le32(header)), range = f4_of_bits(load_le32(header + 4));
    float step = (float)((double)range * (two ? 1 / 65535.0 : 1 / 255.0));
    const uint8_t *p = header + HEADER;
    uint64_t n = o->dim[0] * o->dim[1];

    for (uint64_t i = 0; i < n; i++) {
        float value = min + (float)(int)(two ? load_le16(p + 2 * i) : p[i]) * step;

        kaldi_store_real(dst, i, wide, (double)value);
    }
}

void kaldi_compressed_decode(const struct kaldi_object *o, const uint8_t *bytes, enum dtype dtype,
                             uint8_t *dst)
{
    const uint8_t *header = bytes + (o->store == KALDI_CM ? 5 : 6); /* 00 'B', the token */
    bool wide = dtype == DTYPE_F8;

    if (o->store == KALDI_CM)
        decode_columns(o, header, wide, dst);
    else
        decode_rows(o, header, wide, dst);
}
