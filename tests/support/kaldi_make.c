#include "support/kaldi_make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "support/memory_blob.h"
#include "support/random.h"

void kaldi_put(struct text *t, const void *bytes, size_t n)
{
    if (n)
        text_add_bytes(t, bytes, n);
}

void kaldi_put_text(struct text *t, const char *s)
{
    kaldi_put(t, s, strlen(s));
}

void kaldi_put_raw(struct text *t, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        kaldi_put(t, &(uint8_t){(uint8_t)(v >> 8 * i)}, 1);
}

void kaldi_put_value(struct text *t, double v, bool wide)
{
    float f = (float)v;
    uint32_t bits4;
    uint64_t bits8;

    memcpy(&bits4, &f, 4);
    memcpy(&bits8, &v, 8);
    kaldi_put_raw(t, wide ? bits8 : bits4, wide ? 8 : 4);
}

void kaldi_put_int(struct text *t, int64_t v)
{
    kaldi_put_raw(t, 4, 1);
    kaldi_put_raw(t, (uint64_t)v, 4);
}

void kaldi_put_real(struct text *t, double v, bool wide)
{
    kaldi_put_raw(t, wide ? 8 : 4, 1);
    kaldi_put_value(t, v, wide);
}

void kaldi_put_start(struct text *t, const char *token)
{
    kaldi_put(t, "\0B", 2);
    kaldi_put_text(t, token);
}

void kaldi_made_release(struct kaldi_made *m)
{
    text_release(&m->bytes);
    for (unsigned i = 0; i < KALDI_ARRAYS_MAX; i++)
        text_release(&m->array[i]);
}

/* A random number for the object, and for array i. */
static void make_real(struct kaldi_made *m, unsigned i, bool wide, bool sized, uint64_t *random)
{
    double v = (double)(int64_t)random_next(random) / 1e15;

    if (sized)
        kaldi_put_raw(&m->bytes, wide ? 8 : 4, 1);
    kaldi_put_value(&m->bytes, v, wide);
    kaldi_put_value(&m->array[i], wide ? v : (double)(float)v, true);
}

static void make_reals(struct kaldi_made *m, unsigned i, uint64_t n, bool wide, uint64_t *random)
{
    for (uint64_t k = 0; k < n; k++)
        make_real(m, i, wide, false, random);
}

static void make_int(struct kaldi_made *m, unsigned i, uint64_t *random)
{
    uint64_t v = random_next(random);

    kaldi_put_int(&m->bytes, (int64_t)v);
    kaldi_put_raw(&m->array[i], v, 4);
}

static void make_count(struct kaldi_made *m, unsigned i, uint64_t n)
{
    kaldi_put_int(&m->bytes, (int64_t)n);
    kaldi_put_raw(&m->array[i], n, 4);
}

/* Entries of a sparse vector. */
static void make_sparse_vector(struct kaldi_made *m, uint64_t elements, uint64_t *random)
{
    uint64_t entries = elements ? random_below(random, elements + 1) : 0;
    AUTO_FREE double *dense = calloc(elements + 1, sizeof(*dense));

    kaldi_put_text(&m->bytes, "SV ");
    kaldi_put_int(&m->bytes, (int64_t)elements);
    kaldi_put_int(&m->bytes, (int64_t)entries);
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t index = random_below(random, elements); /* in any order, possibly twice */
        bool wide = random_below(random, 2);
        double v = (double)random_below(random, 1000) / 7;

        kaldi_put_int(&m->bytes, (int64_t)index);
        kaldi_put_real(&m->bytes, v, wide);
        m->object.dim[2] |= wide;
        dense[index] = wide ? v : (double)(float)v;
    }
    for (uint64_t i = 0; i < elements; i++)
        kaldi_put_value(&m->array[0], dense[i], true);
}

void kaldi_make_compressed(struct kaldi_made *m, uint64_t rows, uint64_t columns, uint64_t *random)
{
    enum kaldi_store store = m->object.store;
    AUTO_FREE unsigned *v = calloc(rows * columns + 1, sizeof(*v));
    uint64_t limit = store == KALDI_CM2 ? 65536 : 256;

    kaldi_put_start(&m->bytes, store == KALDI_CM ? "CM " : store == KALDI_CM2 ? "CM2 " : "CM3 ");
    kaldi_put_value(&m->bytes, 0, false);
    kaldi_put_value(&m->bytes, store == KALDI_CM3 ? 255 : 65535, false);
    kaldi_put_raw(&m->bytes, rows, 4);
    kaldi_put_raw(&m->bytes, columns, 4);
    for (uint64_t c = 0; c < columns && store == KALDI_CM; c++)
        for (unsigned k = 0; k < 4; k++)
            kaldi_put_raw(&m->bytes, (unsigned[]){0, 64, 192, 255}[k] + c, 2);
    for (uint64_t i = 0; i < rows * columns; i++) {
        v[i] = (unsigned)random_below(random, limit);
        kaldi_put_raw(&m->bytes, v[i], store == KALDI_CM2 ? 2 : 1);
    }
    for (uint64_t i = 0; i < rows * columns; i++)
        kaldi_put_value(
            &m->array[0],
            store == KALDI_CM ? (double)(v[i % columns * rows + i / columns] + i % columns) : v[i],
            true);
}

void kaldi_put_npy_header(struct text *t, unsigned version, const char *text, size_t total)
{
    size_t before = version == 1 ? 10 : 12;
    AUTO_FREE char *padded = malloc(total);

    kaldi_put_start(t, "\x93NUMPY");
    kaldi_put_raw(t, version, 2);
    kaldi_put_raw(t, total - before, version == 1 ? 2 : 4);
    memset(padded, ' ', total - before);
    memcpy(padded, text, strlen(text));
    padded[total - before - 1] = '\n';
    kaldi_put(t, padded, total - before);
}

static void make_npy(struct kaldi_made *m, uint64_t rows, uint64_t columns, uint64_t *random)
{
    bool wide = m->object.store == KALDI_NPY8, vector = m->object.type == KALDI_VECTOR;
    char text[100], shape[40];

    snprintf(shape, sizeof(shape), vector ? "(%d,)" : "(%d, %d)", (int)rows, (int)columns);
    snprintf(text, sizeof(text), "{'descr': '<f%c', 'fortran_order': False, 'shape': %s, }",
             wide ? '8' : '4', shape);
    kaldi_put_npy_header(&m->bytes, 1 + (unsigned)random_below(random, 3), text, 128);
    make_reals(m, 0, vector ? rows : rows * columns, wide, random);
}

static void make_matrix(struct kaldi_made *m, uint64_t *random)
{
    uint64_t rows = random_below(random, 7);
    uint64_t columns = rows ? 1 + random_below(random, 40) : 0;

    m->object.dim[0] = rows;
    m->object.dim[1] = columns;
    switch (m->object.store) {
    case KALDI_SM:
        kaldi_put_start(&m->bytes, "SM ");
        kaldi_put_int(&m->bytes, (int64_t)rows);
        for (uint64_t i = 0; i < rows; i++)
            make_sparse_vector(m, columns, random);
        break;
    case KALDI_FM:
    case KALDI_DM:
        kaldi_put_start(&m->bytes, m->object.store == KALDI_DM ? "DM " : "FM ");
        kaldi_put_int(&m->bytes, (int64_t)rows);
        kaldi_put_int(&m->bytes, (int64_t)columns);
        make_reals(m, 0, rows * columns, m->object.store == KALDI_DM, random);
        break;
    case KALDI_NPY:
    case KALDI_NPY8:
        make_npy(m, rows, columns, random);
        break;
    default:
        kaldi_make_compressed(m, rows, columns, random);
    }
}

static void make_vector(struct kaldi_made *m, uint64_t *random)
{
    uint64_t n = random_below(random, 20);
    bool wide = m->object.store == KALDI_DV;

    m->object.dim[0] = n;
    if (m->object.store == KALDI_NPY || m->object.store == KALDI_NPY8) {
        make_npy(m, n, 0, random);
    } else if (m->object.store == KALDI_SV) {
        kaldi_put_start(&m->bytes, "");
        make_sparse_vector(m, n, random);
    } else {
        kaldi_put_start(&m->bytes, wide ? "DV " : "FV ");
        kaldi_put_int(&m->bytes, (int64_t)n);
        make_reals(m, 0, n, wide, random);
    }
}

static void make_packed(struct kaldi_made *m, uint64_t *random)
{
    uint64_t n = random_below(random, 6);
    bool wide = m->object.store == KALDI_DP;

    kaldi_put_start(&m->bytes, wide ? "DP " : "FP ");
    kaldi_put_int(&m->bytes, (int64_t)n);
    m->object.dim[0] = n * (n + 1) / 2;
    make_reals(m, 0, m->object.dim[0], wide, random);
}

/* A list in a list of lists. */
static void make_inner(struct kaldi_made *m, bool *wide, uint64_t *random)
{
    uint64_t n = random_below(random, 4);

    make_count(m, 0, n);
    m->object.dim[1] += n;
    for (uint64_t i = 0; i < n; i++) {
        bool large = m->object.store == KALDI_BINARY8 && random_below(random, 2);
        uint64_t elements = random_below(random, 5);

        make_int(m, 1, random);
        if (m->object.type == KALDI_INT_LISTS)
            continue;
        *wide |= large;
        if (m->object.type == KALDI_POSTERIOR) {
            make_real(m, 2, large, true, random);
            continue;
        }
        kaldi_put_text(&m->bytes, large ? "DV " : "FV ");
        make_count(m, 2, elements);
        make_reals(m, 3, elements, large, random);
        m->object.dim[2] += elements;
    }
}

static void make_nested(struct kaldi_made *m, uint64_t *random)
{
    uint64_t n = random_below(random, 8);
    bool wide = false;

    m->object.dim[0] = n;
    kaldi_put_int(&m->bytes, (int64_t)n);
    for (uint64_t i = 0; i < n; i++)
        make_inner(m, &wide, random);
    m->object.store = wide ? KALDI_BINARY8 : KALDI_BINARY;
}

static void make_list(struct kaldi_made *m, uint64_t *random)
{
    uint64_t n = random_below(random, 30);
    bool wide = false;

    m->object.dim[0] = n;
    kaldi_put_int(&m->bytes, (int64_t)n);
    for (uint64_t i = 0; i < n * (m->object.type == KALDI_INTS ? 1 : 2); i++) {
        bool large = m->object.store == KALDI_BINARY8 && random_below(random, 2);

        if (m->object.type != KALDI_FLOAT_PAIRS) {
            make_int(m, 0, random);
            continue;
        }
        make_real(m, 0, large, true, random);
        wide |= large;
    }
    m->object.store = wide ? KALDI_BINARY8 : KALDI_BINARY;
}

static void make_unnamed(struct kaldi_made *m, uint64_t *random)
{
    uint8_t v = (uint8_t)random_below(random, 2);

    kaldi_put_start(&m->bytes, "");
    switch (m->object.type) {
    case KALDI_INT:
        make_int(m, 0, random);
        break;
    case KALDI_FLOAT:
    case KALDI_DOUBLE:
        make_real(m, 0, m->object.store == KALDI_BINARY8, true, random);
        break;
    case KALDI_BOOL:
        kaldi_put_text(&m->bytes, v ? "T" : "F");
        kaldi_put(&m->array[0], &v, 1);
        break;
    case KALDI_INTS:
    case KALDI_INT_PAIRS:
    case KALDI_FLOAT_PAIRS:
        make_list(m, random);
        break;
    default:
        make_nested(m, random);
    }
}

const struct kaldi_object kaldi_kinds[N_KALDI_KINDS] = {
    {.type = KALDI_MATRIX, .store = KALDI_FM},
    {.type = KALDI_MATRIX, .store = KALDI_DM},
    {.type = KALDI_MATRIX, .store = KALDI_CM},
    {.type = KALDI_MATRIX, .store = KALDI_CM2},
    {.type = KALDI_MATRIX, .store = KALDI_CM3},
    {.type = KALDI_MATRIX, .store = KALDI_SM},
    {.type = KALDI_MATRIX, .store = KALDI_NPY},
    {.type = KALDI_MATRIX, .store = KALDI_NPY8},
    {.type = KALDI_VECTOR, .store = KALDI_FV},
    {.type = KALDI_VECTOR, .store = KALDI_DV},
    {.type = KALDI_VECTOR, .store = KALDI_SV},
    {.type = KALDI_VECTOR, .store = KALDI_NPY},
    {.type = KALDI_VECTOR, .store = KALDI_NPY8},
    {.type = KALDI_PACKED, .store = KALDI_FP},
    {.type = KALDI_PACKED, .store = KALDI_DP},
    {.type = KALDI_INT, .store = KALDI_BINARY},
    {.type = KALDI_FLOAT, .store = KALDI_BINARY},
    {.type = KALDI_FLOAT, .store = KALDI_BINARY8},
    {.type = KALDI_DOUBLE, .store = KALDI_BINARY},
    {.type = KALDI_DOUBLE, .store = KALDI_BINARY8},
    {.type = KALDI_BOOL, .store = KALDI_BINARY},
    {.type = KALDI_INTS, .store = KALDI_BINARY},
    {.type = KALDI_INT_LISTS, .store = KALDI_BINARY},
    {.type = KALDI_INT_PAIRS, .store = KALDI_BINARY},
    {.type = KALDI_FLOAT_PAIRS, .store = KALDI_BINARY},
    {.type = KALDI_FLOAT_PAIRS, .store = KALDI_BINARY8},
    {.type = KALDI_POSTERIOR, .store = KALDI_BINARY},
    {.type = KALDI_POSTERIOR, .store = KALDI_BINARY8},
    {.type = KALDI_GAUSS_POST, .store = KALDI_BINARY},
    {.type = KALDI_GAUSS_POST, .store = KALDI_BINARY8},
};

void kaldi_make(struct kaldi_made *m, const struct kaldi_object *kind, uint64_t *random)
{
    *m = (struct kaldi_made){.object = *kind};
    switch (kind->type) {
    case KALDI_MATRIX:
        make_matrix(m, random);
        break;
    case KALDI_VECTOR:
        make_vector(m, random);
        break;
    case KALDI_PACKED:
        make_packed(m, random);
        break;
    default:
        make_unnamed(m, random);
    }
    m->object.len = m->bytes.len;
}

int kaldi_measure_bytes(const struct text *bytes, uint64_t size, uint64_t at, enum kaldi_type want,
                        size_t window, struct kaldi_object *ret, struct diag *d)
{
    size_t len = (size_t)min_u64(size, bytes->len);
    AUTO_BLOB struct blob *blob = memory_blob_new("a.ark", bytes->data, len, size, NULL);
    AUTO_KALDI_IN struct kaldi_in in = {0};

    if (!blob)
        return -ENOMEM;
    kaldi_in_init(&in, blob);
    if (window && at < len) {
        in.window.have = in.window.capacity = (size_t)min_u64(window, len - at);
        in.window.start = at;
        in.window.least = 1;
        in.window.bytes = malloc(in.window.capacity);
        if (!in.window.bytes)
            return -ENOMEM;
        memcpy(in.window.bytes, bytes->data + at, in.window.capacity);
    }
    return kaldi_measure(&in, at, want, ret, d);
}
