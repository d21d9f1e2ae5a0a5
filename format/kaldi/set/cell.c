#include "format/kaldi/set/set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"

#define DECODE_MOST (UINT64_C(1) << 30) /* bytes of an object, and of its values, held at once */
#define CHUNK       16384
#define SMALL       16384 /* bytes of values that are decoded again rather than kept in the memo */
#define SMALL_TEXT  64    /* the same of values that are written: that takes longer */

#define HEADER_MATRIX 15 /* 00 'B' "FM " 4 rows 4 columns */
#define HEADER_VECTOR 10

int kaldi_cell(const struct kaldi_set *set, unsigned column, uint64_t sample,
               struct kaldi_cell *ret, struct diag *d)
{
    const struct kaldi_column *c = &set->column[column];
    struct kaldi_row *row = &ret->row;
    uint64_t number[INDEX_COLUMNS];

    *ret = (struct kaldi_cell){.table = c->table, .number = sample, .is_mono = c->is_mono};
    if (c->join >= 0) {
        index_row(&set->join->prepared.index, sample, number);
        ret->number = number[c->join];
        memcpy(ret->cut, &number[c->join + 1], c->is_cut ? sizeof(ret->cut) : 0);
    }
    if (ret->number >= c->table->base.prepared.index.rows)
        return diag_set(d, -EBADMSG,
                        "%s: row %llu: the index is damaged; it is made again if the "
                        "files in the cache folder are removed",
                        blob_name(c->table->base.blob), (unsigned long long)ret->number + 1);
    kaldi_table_row(c->table, ret->number, row);
    if (row->object.store == KALDI_BAD)
        return kaldi_table_fault(c->table, ret->number, d);
    if (!c->is_cut)
        return 0;
    if (ret->cut[0] > row->n[0] || ret->cut[1] > row->n[0] - ret->cut[0] || ret->cut[2] > row->n[1])
        return diag_set(d, -EBADMSG,
                        "%s: row %llu: expected a part of %llu audio samples, got %llu from %llu "
                        "on",
                        blob_name(c->table->base.blob), (unsigned long long)ret->number + 1,
                        (unsigned long long)row->n[0], (unsigned long long)ret->cut[1],
                        (unsigned long long)ret->cut[0]);
    row->is_cut = true;
    row->first[0] = ret->cut[0];
    row->n[0] = ret->cut[1];
    ret->channel = (unsigned)ret->cut[2];
    return 0;
}

int kaldi_cell_or_file(const struct kaldi_set *set, unsigned column, uint64_t sample,
                       struct kaldi_cell *ret, bool *ret_file, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    int r = kaldi_cell(set, column, sample, ret, &reason);

    *ret_file = r < 0 && ret->row.blob && ret->row.is_whole;
    return r < 0 && !*ret_file ? diag_set(d, r, "%s", diag_text(&reason, r)) : 0;
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

/* Write bytes [off, off + len) of the samples that count as little-endian int16: of one channel, or
 * of all, interleaved. */
static int read_audio(struct read_context *rc, const struct kaldi_cell *cell, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    const struct kaldi_object *o = &cell->row.object;
    size_t stride = 2 * (cell->channel ? (size_t)o->dim[1] : 1); /* bytes */
    uint64_t data =
        kaldi_view_span(&(struct kaldi_view){.cell = cell, .body = VIEW_SAMPLES, .len = 2}).off;
    uint8_t stored[CHUNK];
    int all = 0;

    if (stride == 2 && o->store == KALDI_RIFF)
        return kaldi_read(rc, cell->row.blob, data + off, len, dst, d);
    while (len) {
        size_t skip = off % 2;
        size_t n = (size_t)min_u64(ceil_div(skip + len, 2), max_u64(CHUNK / stride, 1));
        size_t made = (size_t)min_u64(len, 2 * n - skip);
        int r = kaldi_read(rc, cell->row.blob, data + off / 2 * stride, (n - 1) * stride + 2,
                           stored, d);

        if (!missing_go_on(rc, r, &all))
            break;
        for (size_t i = skip; i < skip + made && r == 0; i++)
            *dst++ = stored[i / 2 * stride + (o->store == KALDI_RIFX ? 1 - i % 2 : i % 2)];
        dst += r == 0 ? 0 : made;
        off += made;
        len -= made;
    }
    return all;
}

/* ---- arrays ---- */

/* What is made of the whole object of a row. The memo keeps it, since other reads need it too, but
 * not if it has at most `small` bytes of values. */
struct making {
    struct read_context *rc;
    const struct kaldi_set *set;
    const struct kaldi_cell *cell;
    unsigned array; /* that is decoded, */
    enum dtype dtype;
    bool as_text; /* or how the object is written */
    struct diag *d;
};

static int too_large(const struct making *w)
{
    return diag_set(w->d, -EFBIG,
                    "%s: byte %llu: expected an object of at most %llu MiB to decode, got a "
                    "larger one",
                    blob_name(w->cell->row.blob), (unsigned long long)w->cell->row.object.start,
                    (unsigned long long)DECODE_MOST >> 20);
}

static int kaldi_cell_decode(void *ctx, void **ret, size_t *ret_size)
{
    const struct making *w = ctx;
    const struct kaldi_object *o = &w->cell->row.object;
    AUTO_FREE uint8_t *bytes = NULL, *values = NULL;
    uint64_t size;
    int r;

    if (o->len > DECODE_MOST || !kaldi_array_bytes(o, w->array, w->dtype, &size) ||
        size > DECODE_MOST)
        return too_large(w);
    bytes = malloc(o->len + 1);
    values = malloc(size + 1);
    if (!bytes || !values)
        return -ENOMEM;
    r = kaldi_read(w->rc, w->cell->row.blob, o->start, (size_t)o->len, bytes, w->d);
    if (r == 0)
        r = kaldi_decode(o, bytes, w->array, w->dtype, values, blob_name(w->cell->row.blob), w->d);
    if (r < 0)
        return r;
    *ret_size = (size_t)size;
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
    uint64_t line = cut * width, first = row->is_cut ? row->first[0] : 0;

    if (!row->is_cut || columns == cut) {
        memcpy(dst, all + first * columns * width + off, len);
        return;
    }
    while (len) {
        uint64_t at = (first + off / line) * columns + row->first[1];
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

/* Get what make() makes of n arrays, or make it, if it is small: then *ret_small is the caller's.
 * What the memo has is good only while the source is the version that it was made of. */
static int get_made(struct making *w, unsigned n, uint64_t small,
                    int (*make)(void *ctx, void **ret, size_t *ret_size),
                    struct memo_thing **ret_thing, void **ret_small)
{
    const struct kaldi_cell *cell = w->cell;
    const struct memo_key key = {{(uintptr_t)cell->table, cell->number, w->array,
                                  w->dtype + 256u * w->as_text, (uintptr_t)make}};
    uint64_t size = 0, bytes;
    int r;

    for (unsigned i = 0; i < n && size <= small; i++)
        size =
            kaldi_array_bytes(&cell->row.object, w->array + i, w->dtype, &bytes) && bytes <= small
                ? size + bytes
                : small + 1;
    if (size <= small)
        return make(w, ret_small, &(size_t){0});
    r = blob_verify(cell->row.blob, w->d);
    return r < 0 ? r
                 : memo_get(w->set->memo, &key, &(struct memo_maker){.make = make, .ctx = w},
                            ret_thing);
}

/* Write bytes [off, off + len) of the values that count. */
static int view_values(struct read_context *rc, const struct kaldi_set *set,
                       const struct kaldi_view *view, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    struct making work = {rc, set, view->cell, view->array, view->dtype, false, d};
    AUTO_MEMO struct memo_thing *thing = NULL;
    AUTO_FREE void *small = NULL;
    int r;

    r = get_made(&work, 1, SMALL, kaldi_cell_decode, &thing, &small);
    if (r < 0)
        return r;
    copy_cut(view->cell, dtype_info(view->dtype)->bytes, small ? small : memo_bytes(thing), off,
             len, dst);
    return 0;
}

/* ---- objects written as text, or in binary ---- */

static void free_arrays(uint8_t *(*array)[KALDI_ARRAYS_MAX])
{
    for (unsigned i = 0; i < KALDI_ARRAYS_MAX; i++)
        free((*array)[i]);
}

static int kaldi_cell_write(void *ctx, void **ret, size_t *ret_size)
{
    const struct making *w = ctx;
    const struct kaldi_row *row = &w->cell->row;
    const struct kaldi_type_info *info = &kaldi_types[row->object.type];
    AUTO(free_arrays) uint8_t *array[KALDI_ARRAYS_MAX] = {NULL};
    struct kaldi_written written = {
        .type = row->object.type, .as_text = w->as_text, .wide = w->dtype == DTYPE_F8};
    uint8_t *text = NULL;
    size_t len;
    int r = 0;

    memcpy(written.dim, row->object.dim, sizeof(written.dim));
    if (row->is_cut)
        memcpy(written.dim, row->n, sizeof(row->n));
    for (unsigned i = 0; i < info->n_arrays && r == 0; i++) {
        struct kaldi_view part;

        kaldi_view_array(w->cell, i, info->array[i].real ? w->dtype : info->array[i].dtype, &part);
        if (part.len > DECODE_MOST)
            return too_large(w);
        if (part.body == VIEW_DECODED && part.len && !row->is_cut) { /* not for the memo */
            struct making one = {w->rc, w->set, w->cell, i, part.dtype, false, w->d};
            void *values = NULL;

            r = kaldi_cell_decode(&one, &values, &(size_t){0});
            array[i] = values;
        } else {
            array[i] = malloc(part.len + 1);
            r = array[i]
                    ? kaldi_view_read(w->rc, w->set, &part, 0, (size_t)part.len, array[i], w->d)
                    : -ENOMEM;
        }
        written.array[i] = array[i];
    }
    if (r == 0)
        r = kaldi_write(&written, sizeof(struct kaldi_made), &text, &len);
    if (r < 0)
        return r;
    ((struct kaldi_made *)(void *)text)->len = len;
    *ret = text;
    *ret_size = sizeof(struct kaldi_made) + len;
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
        ret->is_ended = way != KALDI_AS_STORED && o->store == KALDI_TEXT && cell->row.is_open;
    }
}

void kaldi_view_release(struct kaldi_view *view)
{
    memo_let_go(view->thing);
    free(view->small);
    *view = (struct kaldi_view){0};
}

int kaldi_view_any(struct read_context *rc, const struct kaldi_set *set,
                   const struct kaldi_cell *cell, enum kaldi_bytes way, struct kaldi_view *ret,
                   struct diag *d)
{
    struct making work = {.rc = rc,
                          .set = set,
                          .cell = cell,
                          .dtype = kaldi_is_wide(&cell->row.object) ? DTYPE_F8 : DTYPE_F4,
                          .as_text = way == KALDI_AS_TEXT,
                          .d = d};
    void *small = NULL;
    int r;

    if (!kaldi_is_written(cell, way)) {
        kaldi_view_bytes(cell, way, ret);
        return 0;
    }
    *ret = (struct kaldi_view){.cell = cell, .body = VIEW_WRITTEN};
    r = get_made(&work, kaldi_types[cell->row.object.type].n_arrays, SMALL_TEXT, kaldi_cell_write,
                 &ret->thing, &small);
    if (r < 0)
        return r;
    ret->small = small;
    ret->written = small ? small : memo_bytes(ret->thing);
    ret->len = ret->written->len;
    return 0;
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
    else if (n && view->body == VIEW_DECODED)
        r = view_values(rc, set, view, off, n, dst, d);
    else if (n)
        memcpy(dst, view->written->bytes + off, n);
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
        span.off = o->start + o->data + first * 2;
        span.len = n ? ((n - 1) * stride + 1) * 2 : 0;
    }
    return span;
}

struct extent kaldi_written_span(const struct kaldi_cell *cell)
{
    const struct kaldi_type_info *info = &kaldi_types[cell->row.object.type];
    enum dtype real = kaldi_is_wide(&cell->row.object) ? DTYPE_F8 : DTYPE_F4;
    struct extent all = {.blob = cell->row.blob};

    for (unsigned i = 0; i < info->n_arrays; i++) {
        struct kaldi_view part;
        struct extent span;
        uint64_t end;

        kaldi_view_array(cell, i, info->array[i].real ? real : info->array[i].dtype, &part);
        span = kaldi_view_span(&part);
        if (!all.len)
            all = span;
        if (!span.len)
            continue;
        end = max_u64(all.off + all.len, span.off + span.len);
        all.off = min_u64(all.off, span.off);
        all.len = end - all.off;
    }
    return all;
}
