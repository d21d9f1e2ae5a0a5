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

/* ---- arrays ---- */

/* Decode all of an array of a row; the memo keeps it, since other reads need it too. */
struct decoding {
    struct read_context *rc;
    const struct kaldi_view *view;
    struct diag *d;
};

static int kaldi_cell_decode(void *ctx, void **ret, size_t *ret_size)
{
    const struct decoding *w = ctx;
    const struct kaldi_view *view = w->view;
    const struct kaldi_object *o = &view->cell->row.object;
    const struct blob *blob = view->cell->row.blob;
    AUTO_FREE uint8_t *bytes = NULL, *values = NULL;
    uint64_t size;
    int r;

    if (!kaldi_array_bytes(o, view->array, view->dtype, &size) || size > DECODE_MOST ||
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
        r = kaldi_decode(o, bytes, view->array, view->dtype, values, blob_name(blob), w->d);
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

/* Write bytes [off, off + len) of the values that count. */
static int view_values(struct read_context *rc, const struct kaldi_set *set,
                       const struct kaldi_view *view, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    const struct kaldi_cell *cell = view->cell;
    const struct memo_key key = {{(uintptr_t)cell->table, cell->number, view->array, view->dtype,
                                  (uintptr_t)kaldi_cell_decode}};
    struct decoding work = {rc, view, d};
    AUTO_MEMO struct memo_thing *thing = NULL;
    AUTO_FREE void *small = NULL;
    const uint8_t *all;
    uint64_t size;
    size_t small_size;
    int r;

    if (kaldi_array_bytes(&cell->row.object, view->array, view->dtype, &size) && size <= SMALL)
        r = kaldi_cell_decode(&work, &small, &small_size);
    else
        r = memo_get(set->memo, &key, &(struct memo_maker){.make = kaldi_cell_decode, .ctx = &work},
                     &thing);
    if (r < 0)
        return r;
    all = small ? small : memo_bytes(thing);
    if (cell->row.is_cut)
        copy_cut(cell, dtype_info(view->dtype)->bytes, all, off, len, dst);
    else
        memcpy(dst, all + off, len);
    return 0;
}

/* ---- views ---- */

void kaldi_view_array(const struct kaldi_cell *cell, unsigned i, enum dtype dtype,
                      struct kaldi_view *ret)
{
    unsigned width = dtype_info(dtype)->bytes;
    uint64_t dim[2], at;

    *ret = (struct kaldi_view){.cell = cell, .body = VIEW_DECODED, .array = i, .dtype = dtype};
    if (is_wave(cell)) {
        ret->body = VIEW_SAMPLES;
        ret->len = cell->row.n[0] * channels_of(cell) * 2;
        return;
    }
    kaldi_cell_form(cell, i, dim);
    ret->len = dim[0] * dim[1] * width;
    if (stands_plain(cell, i, dtype, width, &at)) {
        ret->body = VIEW_STORED;
        ret->off = cell->row.object.start + at;
    }
}

/* A part of a matrix or vector, in the type in which Kaldi writes it. */
static void view_cut(const struct kaldi_cell *cell, struct kaldi_view *ret)
{
    enum kaldi_store store = cell->row.object.store;
    bool wide = store == KALDI_DM || store == KALDI_DV || store == KALDI_NPY8;
    bool matrix = cell->table->type == KALDI_MATRIX;
    const char start[] = {0, 'B', wide ? 'D' : 'F', matrix ? 'M' : 'V', ' ', 4};

    kaldi_view_array(cell, 0, wide ? DTYPE_F8 : DTYPE_F4, ret);
    memcpy(ret->head, start, sizeof(start));
    store_le32(ret->head + 6, (uint32_t)cell->row.n[0]);
    ret->head_len = HEADER_VECTOR;
    if (!matrix)
        return;
    ret->head[10] = 4;
    store_le32(ret->head + 11, (uint32_t)cell->row.n[1]);
    ret->head_len = HEADER_MATRIX;
}

/* The tokens, where the dims of the row say they are. */
static void view_line(const struct kaldi_cell *cell, struct kaldi_view *ret)
{
    const struct kaldi_object *o = &cell->row.object;

    ret->off = o->start + o->dim[1];
    ret->len = o->dim[1] <= o->len && o->dim[0] <= o->len - o->dim[1] ? o->dim[0] : 0;
    ret->is_ended = true;
}

void kaldi_view_bytes(const struct kaldi_cell *cell, enum kaldi_bytes way, struct kaldi_view *ret)
{
    const struct kaldi_object *o = &cell->row.object;

    *ret = (struct kaldi_view){.cell = cell, .off = o->start, .len = o->len};
    if (way == KALDI_AS_LINE) {
        view_line(cell, ret);
    } else if (is_wave(cell) && (way != KALDI_AS_STORED || cell->row.is_cut)) {
        kaldi_view_array(cell, 0, DTYPE_I2, ret);
        kaldi_wave_header(channels_of(cell), (uint32_t)o->dim[2], cell->row.n[0], ret->head);
        ret->head_len = KALDI_WAVE_HEADER;
    } else if (is_wave(cell)) {
        ret->len = cell->row.is_whole ? cell->row.blob->size : o->len;
    } else if (cell->row.is_cut) {
        view_cut(cell, ret);
    } else {
        ret->is_ended = way == KALDI_AS_ENTRY && o->store == KALDI_TEXT && cell->row.is_open;
    }
}

int kaldi_view_read(struct read_context *rc, const struct kaldi_set *set,
                    const struct kaldi_view *view, uint64_t off, size_t len, uint8_t *dst,
                    struct diag *d)
{
    size_t n = off < view->head_len ? (size_t)min_u64(len, view->head_len - off) : 0;
    int r = 0;

    if (n)
        memcpy(dst, view->head + off, n);
    dst += n;
    len -= n;
    off = off + n - view->head_len;
    n = off < view->len ? (size_t)min_u64(len, view->len - off) : 0;
    if (n && view->body == VIEW_STORED)
        r = kaldi_read(rc, view->cell->row.blob, view->off + off, n, dst, d);
    else if (n && view->body == VIEW_SAMPLES)
        r = read_audio(rc, view->cell, off, n, dst, d);
    else if (n)
        r = view_values(rc, set, view, off, n, dst, d);
    if (n < len)
        dst[n] = '\n';
    return r;
}

struct extent kaldi_view_span(const struct kaldi_view *view)
{
    const struct kaldi_cell *cell = view->cell;
    const struct kaldi_object *o = &cell->row.object;
    struct extent span = {.blob = cell->row.blob, .off = view->off, .len = view->len};

    if (view->body == VIEW_DECODED) {
        span.off = o->start;
        span.len = view->len ? o->len : 0;
    } else if (view->body == VIEW_SAMPLES) {
        uint64_t all = o->dim[1], n = view->len / 2, stride = cell->channel ? all : 1;
        uint64_t first = cell->row.is_cut ? cell->row.first[0] * all : 0;

        first += cell->channel ? cell->channel - 1 : 0;
        span.off = o->start + cell->data + first * 2;
        span.len = n ? ((n - 1) * stride + 1) * 2 : 0;
    }
    return span;
}
