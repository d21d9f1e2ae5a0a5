#include "format/kaldi/set/set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"

#define DECODE_MOST (UINT64_C(1) << 30) /* bytes of an object, and of its values, held at once */
#define CHUNK       16384
#define SMALL       16384 /* bytes of values too few to be kept in the memo */

#define HEADER_MATRIX 15 /* 00 'B' "FM " 4 rows 4 columns */
#define HEADER_VECTOR 10

uint64_t kaldi_cell_number(const struct kaldi_set *set, unsigned column, uint64_t sample)
{
    int join = set->column[column].join;

    return join < 0 ? sample : index_number(kaldi_join_index(set->join), sample, (unsigned)join);
}

bool kaldi_cell_is_bad(const struct kaldi_set *set, unsigned column, uint64_t sample)
{
    const struct kaldi_table *table = set->column[column].table;
    uint64_t number = kaldi_cell_number(set, column, sample);
    struct kaldi_row row;

    if (number >= table->base.prepared.index.rows)
        return false;
    kaldi_table_row(table, number, &row);
    return row.object.store == KALDI_BAD;
}

int kaldi_cell(const struct kaldi_set *set, unsigned column, uint64_t sample,
               struct kaldi_cell *ret, struct diag *d)
{
    const struct kaldi_column *c = &set->column[column];
    uint64_t number[INDEX_COLUMNS];
    struct kaldi_cell cell = {.table = c->table, .number = sample, .is_mono = c->is_mono};

    if (c->join >= 0) {
        index_row(kaldi_join_index(set->join), sample, number);
        cell.number = number[c->join];
    }
    if (cell.number >= c->table->base.prepared.index.rows)
        return diag_set(d, -EBADMSG,
                        "%s: row %llu: the index is damaged; it is made again if the "
                        "files in the cache folder are removed",
                        blob_name(c->table->base.blob), (unsigned long long)cell.number + 1);
    kaldi_table_row(c->table, cell.number, &cell.row);
    if (cell.row.object.store == KALDI_BAD)
        return kaldi_table_fault(c->table, cell.number, d);
    cell.data = cell.row.first[1];
    if (c->join >= 0 && c->is_cut) {
        uint64_t first = number[c->join + 1], n = number[c->join + 2];

        cell.row.is_cut = true;
        cell.channel = (unsigned)number[c->join + 3];
        if (first > cell.row.n[0] || n > cell.row.n[0] - first || cell.channel > cell.row.n[1])
            return diag_set(d, -EBADMSG,
                            "%s: row %llu: expected a part of %llu audio samples, got %llu "
                            "from %llu on",
                            blob_name(c->table->base.blob), (unsigned long long)cell.number + 1,
                            (unsigned long long)cell.row.n[0], (unsigned long long)n,
                            (unsigned long long)first);
        cell.row.first[0] = first;
        cell.row.n[0] = n;
    }
    *ret = cell;
    return 0;
}

static bool is_wave(const struct kaldi_cell *cell)
{
    return cell->table->type == KALDI_WAVE;
}

static unsigned channels_of(const struct kaldi_cell *cell)
{
    return cell->channel ? 1 : (unsigned)cell->row.object.dim[1];
}

unsigned kaldi_cell_form(const struct kaldi_cell *cell, unsigned i, uint64_t ret_dim[static 2])
{
    const struct kaldi_array *array = &kaldi_types[cell->table->type].array[i];

    ret_dim[0] = ret_dim[1] = 1;
    if (is_wave(cell)) {
        ret_dim[0] = cell->row.n[0];
        ret_dim[1] = channels_of(cell);
        return cell->is_mono ? 1 : 2;
    }
    for (unsigned k = 0; k < array->ndim; k++) {
        if (array->dim[k] == KALDI_DIM_TWO)
            ret_dim[k] = 2;
        else
            ret_dim[k] = array->dim[k] < 2 ? cell->row.n[array->dim[k]]
                                           : cell->row.object.dim[array->dim[k]];
    }
    return array->ndim;
}

/* ---- bytes of the source ---- */

int kaldi_read(struct read_context *rc, const struct blob *blob, uint64_t off, size_t len,
               uint8_t *dst, struct diag *d)
{
    int r = blob_read(rc, blob, dst, len, off, d);

    return r < 0 ? r : blob_verify(blob, d);
}

/* ---- audio ---- */

/* Read samples [first, first + n) of the channel that counts, or, if all count, values [first,
 * first + n) of the interleaved channels. */
static int read_samples(struct read_context *rc, const struct kaldi_cell *cell, uint64_t first,
                        size_t n, uint8_t *dst, struct diag *d)
{
    const struct kaldi_object *o = &cell->row.object;
    unsigned all = (unsigned)o->dim[1], stride = cell->channel ? all : 1;
    uint64_t data = o->start + cell->data;
    uint64_t skip = cell->channel ? cell->channel - 1 : 0;
    uint8_t stored[CHUNK];
    int result = 0;

    first += cell->row.is_cut ? cell->row.first[0] * channels_of(cell) : 0;
    if (stride == 1 && o->store == KALDI_RIFF)
        return kaldi_read(rc, cell->row.blob, data + first * 2, n * 2, dst, d);
    while (n) {
        size_t step = (size_t)min_u64(n, max_u64(CHUNK / 2 / stride, 1));
        size_t bytes = ((step - 1) * stride + 1) * 2;
        int r =
            kaldi_read(rc, cell->row.blob, data + (first * stride + skip) * 2, bytes, stored, d);

        if (!missing_go_on(rc, r, &result))
            break;
        for (size_t i = 0; i < step && r == 0; i++) {
            const uint8_t *at = stored + i * stride * 2;

            dst[2 * i] = o->store == KALDI_RIFX ? at[1] : at[0];
            dst[2 * i + 1] = o->store == KALDI_RIFX ? at[0] : at[1];
        }
        dst += 2 * step;
        first += step;
        n -= step;
    }
    return result;
}

/* Write bytes [off, off + len) of the samples as little-endian int16. */
static int read_audio(struct read_context *rc, const struct kaldi_cell *cell, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t edge[2] = {0};
    int all = 0;

    if (len && off % 2) {
        if (!missing_go_on(rc, read_samples(rc, cell, off / 2, 1, edge, d), &all))
            return all;
        *dst++ = edge[1];
        off++;
        len--;
    }
    if (len / 2 && !missing_go_on(rc, read_samples(rc, cell, off / 2, len / 2, dst, d), &all))
        return all;
    if (len % 2 && missing_go_on(rc, read_samples(rc, cell, (off + len) / 2, 1, edge, d), &all))
        dst[len - 1] = edge[0];
    return all;
}

static uint64_t audio_bytes(const struct kaldi_cell *cell)
{
    return cell->row.n[0] * channels_of(cell) * 2;
}

static int read_wav(struct read_context *rc, const struct kaldi_cell *cell, uint64_t off,
                    size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t header[KALDI_WAVE_HEADER];

    if (off < sizeof(header)) {
        size_t n = (size_t)min_u64(len, sizeof(header) - off);

        kaldi_wave_header(channels_of(cell), (uint32_t)cell->row.object.dim[2], cell->row.n[0],
                          header);
        memcpy(dst, header + off, n);
        dst += n;
        off += n;
        len -= n;
    }
    return len ? read_audio(rc, cell, off - sizeof(header), len, dst, d) : 0;
}

/* ---- arrays ---- */

/* Decode all of an array of a row; the memo keeps it, since other reads need it too. */
struct decoding {
    struct read_context *rc;
    const struct kaldi_cell *cell;
    unsigned array;
    enum dtype dtype;
    struct diag *d;
};

static int kaldi_cell_decode(void *ctx, void **ret, size_t *ret_size)
{
    const struct decoding *w = ctx;
    const struct kaldi_object *o = &w->cell->row.object;
    const struct blob *blob = w->cell->row.blob;
    AUTO_FREE uint8_t *bytes = NULL, *values = NULL;
    uint64_t size;
    int r;

    if (!kaldi_array_bytes(o, w->array, w->dtype, &size) || size > DECODE_MOST ||
        o->len > DECODE_MOST)
        return diag_set(w->d, -EFBIG,
                        "%s: byte %llu: expected an object of at most %llu MiB to decode, got a "
                        "larger one",
                        blob_name(blob), (unsigned long long)o->start,
                        (unsigned long long)DECODE_MOST >> 20);
    bytes = malloc(o->len + 1);
    values = malloc(size + 1);
    if (!bytes || !values)
        return -ENOMEM;
    r = kaldi_read(w->rc, blob, o->start, (size_t)o->len, bytes, w->d);
    if (r == 0)
        r = kaldi_decode(o, bytes, w->array, w->dtype, values, blob_name(blob), w->d);
    if (r < 0)
        return r;
    *ret_size = (size_t)size + 1;
    *ret = TAKE_PTR(values);
    return 0;
}

/* Copy the rows and columns that count from the whole array. */
static void copy_cut(const struct kaldi_cell *cell, unsigned width, const uint8_t *all,
                     uint64_t off, size_t len, uint8_t *dst)
{
    const struct kaldi_row *row = &cell->row;
    bool matrix = cell->table->type == KALDI_MATRIX;
    uint64_t columns = matrix ? row->object.dim[1] : 1, cut = matrix ? row->n[1] : 1;
    uint64_t line = cut * width;

    if (columns == cut) {
        memcpy(dst, all + row->first[0] * columns * width + off, len);
        return;
    }
    while (len) {
        uint64_t at = (row->first[0] + off / line) * columns + row->first[1];
        size_t n = (size_t)min_u64(len, line - off % line);

        memcpy(dst, all + at * width + off % line, n);
        dst += n;
        off += n;
        len -= n;
    }
}

/* Does the source hold the rows that count exactly as files show them? */
static bool stands_plain(const struct kaldi_cell *cell, unsigned i, enum dtype dtype,
                         unsigned width, uint64_t *ret_at)
{
    const struct kaldi_row *row = &cell->row;

    if (!kaldi_plain(&row->object, i, dtype, ret_at))
        return false;
    if (!row->is_cut)
        return true;
    if (cell->table->type == KALDI_MATRIX && row->n[1] != row->object.dim[1])
        return false;
    *ret_at += row->first[0] * (cell->table->type == KALDI_MATRIX ? row->object.dim[1] : 1) * width;
    return true;
}

int kaldi_cell_array(struct read_context *rc, const struct kaldi_set *set,
                     const struct kaldi_cell *cell, unsigned i, enum dtype dtype, uint64_t off,
                     size_t len, uint8_t *dst, struct diag *d)
{
    const struct memo_key key = {
        {(uintptr_t)cell->table, cell->number, i, dtype, (uintptr_t)kaldi_cell_decode}};
    struct decoding work = {rc, cell, i, dtype, d};
    AUTO_MEMO struct memo_thing *thing = NULL;
    AUTO_FREE void *small = NULL;
    const uint8_t *all;
    uint64_t at, size;
    unsigned width;
    size_t own;
    int r;

    if (!len)
        return 0;
    if (is_wave(cell))
        return read_audio(rc, cell, off, len, dst, d);
    width = dtype_info(dtype)->bytes;
    if (stands_plain(cell, i, dtype, width, &at))
        return kaldi_read(rc, cell->row.blob, cell->row.object.start + at + off, len, dst, d);
    if (kaldi_array_bytes(&cell->row.object, i, dtype, &size) && size <= SMALL)
        r = kaldi_cell_decode(&work, &small, &own);
    else
        r = memo_get(set->memo, &key, &(struct memo_maker){.make = kaldi_cell_decode, .ctx = &work},
                     &thing);
    if (r < 0)
        return r;
    all = small ? small : memo_bytes(thing);
    if (cell->row.is_cut)
        copy_cut(cell, width, all, off, len, dst);
    else
        memcpy(dst, all + off, len);
    return 0;
}

/* ---- objects as bytes ---- */

/* The type in which Kaldi writes a part of a matrix or vector. */
static enum dtype cut_dtype(const struct kaldi_cell *cell)
{
    switch (cell->row.object.store) {
    case KALDI_DM:
    case KALDI_DV:
    case KALDI_NPY8:
        return DTYPE_F8;
    default:
        return DTYPE_F4;
    }
}

static size_t cut_header(const struct kaldi_cell *cell, uint8_t ret[static HEADER_MATRIX])
{
    bool matrix = cell->table->type == KALDI_MATRIX;
    const char letters[] = {0,   'B', cut_dtype(cell) == DTYPE_F8 ? 'D' : 'F', matrix ? 'M' : 'V',
                            ' ', 4};

    memcpy(ret, letters, sizeof(letters));
    store_le32(ret + 6, (uint32_t)cell->row.n[0]);
    if (!matrix)
        return HEADER_VECTOR;
    ret[10] = 4;
    store_le32(ret + 11, (uint32_t)cell->row.n[1]);
    return HEADER_MATRIX;
}

static int read_cut(struct read_context *rc, const struct kaldi_set *set,
                    const struct kaldi_cell *cell, uint64_t off, size_t len, uint8_t *dst,
                    struct diag *d)
{
    uint8_t header[HEADER_MATRIX];
    size_t capacity = cut_header(cell, header);

    if (off < capacity) {
        size_t n = (size_t)min_u64(len, capacity - off);

        memcpy(dst, header + off, n);
        dst += n;
        off += n;
        len -= n;
    }
    return kaldi_cell_array(rc, set, cell, 0, cut_dtype(cell), off - capacity, len, dst, d);
}

static uint64_t cut_bytes(const struct kaldi_cell *cell)
{
    bool matrix = cell->table->type == KALDI_MATRIX;

    return (matrix ? HEADER_MATRIX : HEADER_VECTOR) +
           cell->row.n[0] * (matrix ? cell->row.n[1] : 1) * dtype_info(cut_dtype(cell))->bytes;
}

/* The bytes of the tokens in the object, from its dims. */
static uint64_t token_len(const struct kaldi_cell *cell)
{
    const struct kaldi_object *o = &cell->row.object;

    return o->dim[1] <= o->len && o->dim[0] <= o->len - o->dim[1] ? o->dim[0] : 0;
}

static bool needs_end(const struct kaldi_cell *cell)
{
    return cell->row.object.store == KALDI_TEXT && cell->row.is_open;
}

bool kaldi_cell_is_stored(const struct kaldi_cell *cell)
{
    return !is_wave(cell) && !cell->row.is_cut && !needs_end(cell);
}

uint64_t kaldi_cell_size(const struct kaldi_cell *cell, enum kaldi_bytes way)
{
    switch (way) {
    case KALDI_AS_LINE:
        return token_len(cell) + 1;
    case KALDI_AS_WAV:
        return KALDI_WAVE_HEADER + audio_bytes(cell);
    case KALDI_AS_ENTRY:
        if (is_wave(cell))
            return KALDI_WAVE_HEADER + audio_bytes(cell);
        break;
    default:
        if (is_wave(cell) && cell->row.is_cut)
            return KALDI_WAVE_HEADER + audio_bytes(cell);
        if (is_wave(cell) && cell->row.is_whole)
            return cell->row.blob->size;
        break;
    }
    if (cell->row.is_cut)
        return cut_bytes(cell);
    return cell->row.object.len + (way == KALDI_AS_ENTRY && needs_end(cell));
}

/* Read size bytes from the file at byte at, and a newline after them. */
static int read_ended(struct read_context *rc, const struct kaldi_cell *cell, uint64_t at,
                      uint64_t size, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    size_t n = off < size ? (size_t)min_u64(len, size - off) : 0;
    int r = n ? kaldi_read(rc, cell->row.blob, at + off, n, dst, d) : 0;

    if (n < len)
        dst[n] = '\n';
    return r;
}

int kaldi_cell_bytes(struct read_context *rc, const struct kaldi_set *set,
                     const struct kaldi_cell *cell, enum kaldi_bytes way, uint64_t off, size_t len,
                     uint8_t *dst, struct diag *d)
{
    const struct kaldi_object *o = &cell->row.object;

    if (!len)
        return 0;
    if (way == KALDI_AS_LINE)
        return read_ended(rc, cell, o->start + o->dim[1], token_len(cell), off, len, dst, d);
    if (is_wave(cell) && (way != KALDI_AS_STORED || cell->row.is_cut))
        return read_wav(rc, cell, off, len, dst, d);
    if (cell->row.is_cut)
        return read_cut(rc, set, cell, off, len, dst, d);
    return read_ended(rc, cell, o->start, is_wave(cell) ? UINT64_MAX : o->len, off, len, dst, d);
}

/* ---- what of the source is read ---- */

static void audio_span(const struct kaldi_cell *cell, uint64_t *ret_off, uint64_t *ret_len)
{
    const struct kaldi_object *o = &cell->row.object;
    uint64_t all = o->dim[1], n = audio_bytes(cell) / 2, stride = cell->channel ? all : 1;
    uint64_t first = cell->row.is_cut ? cell->row.first[0] * all : 0;

    first += cell->channel ? cell->channel - 1 : 0;
    *ret_off = o->start + cell->data + first * 2;
    *ret_len = n ? ((n - 1) * stride + 1) * 2 : 0;
}

void kaldi_cell_array_span(const struct kaldi_cell *cell, unsigned i, enum dtype dtype,
                           uint64_t *ret_off, uint64_t *ret_len)
{
    const struct kaldi_object *o = &cell->row.object;
    uint64_t at, dim[2];
    unsigned width;

    if (is_wave(cell)) {
        audio_span(cell, ret_off, ret_len);
        return;
    }
    kaldi_cell_form(cell, i, dim);
    width = dtype_info(dtype)->bytes;
    *ret_off = o->start;
    *ret_len = dim[0] && dim[1] ? o->len : 0;
    if (*ret_len && stands_plain(cell, i, dtype, width, &at)) {
        *ret_off += at;
        *ret_len = dim[0] * dim[1] * width;
    }
}

void kaldi_cell_bytes_span(const struct kaldi_cell *cell, enum kaldi_bytes way, uint64_t *ret_off,
                           uint64_t *ret_len)
{
    const struct kaldi_object *o = &cell->row.object;

    if (is_wave(cell) && (way != KALDI_AS_STORED || cell->row.is_cut)) {
        audio_span(cell, ret_off, ret_len);
    } else if (cell->row.is_cut) {
        kaldi_cell_array_span(cell, 0, cut_dtype(cell), ret_off, ret_len);
    } else if (way == KALDI_AS_LINE) {
        *ret_off = o->start + o->dim[1];
        *ret_len = token_len(cell);
    } else {
        *ret_off = o->start;
        *ret_len = is_wave(cell) ? kaldi_cell_size(cell, way) : o->len;
    }
}
