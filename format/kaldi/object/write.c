/* Objects as Kaldi's programs write them (matrix/kaldi-matrix.cc, util/kaldi-holder-inl.h,
 * hmm/posterior.cc): in text each number has a space after it, and real ones have 7 digits. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/core/decimal.h"
#include "format/kaldi/object/walk.h"

#define NUMBER 16 /* bytes of a number at most, and what is around it in a list */

struct writer {
    const struct kaldi_written *o;
    uint8_t *at;
    uint64_t used[KALDI_ARRAYS_MAX]; /* elements so far */
};

static void write_bytes(struct writer *w, const char *bytes)
{
    size_t n = strlen(bytes);

    memcpy(w->at, bytes, n);
    w->at += n;
}

static void write_int(struct writer *w, int32_t v)
{
    size_t n = 4;

    if (w->o->as_text) {
        n = decimal_text_int(v, w->at);
        w->at[n] = ' ';
    } else {
        *w->at = 4;
        store_le32(w->at + 1, (uint32_t)v);
    }
    w->at += n + 1;
}

static int32_t next_int(struct writer *w, unsigned array)
{
    return (int32_t)load_le32(w->o->array[array] + 4 * w->used[array]++);
}

/* The next n real numbers of an array. */
static void write_reals(struct writer *w, unsigned array, uint64_t n)
{
    const struct kaldi_written *o = w->o;
    unsigned width = o->wide ? 8 : 4;
    uint8_t *at = w->at; /* the compiler cannot keep w->at in a register */

    if (!n)
        return;
    if (!o->as_text) {
        memcpy(at, o->array[array] + width * w->used[array], n * width);
        at += n * width;
    }
    for (uint64_t i = 0; i < n && o->as_text; i++) {
        at += decimal_text(kaldi_load_real(o->array[array] + width * (w->used[array] + i), width),
                           at);
        *at++ = ' ';
    }
    w->at = at;
    w->used[array] += n;
}

static void write_real(struct writer *w, unsigned array)
{
    if (!w->o->as_text)
        write_bytes(w, w->o->wide ? "\10" : "\4");
    write_reals(w, array, 1);
}

/* A matrix, a vector or a packed matrix: its rows, of columns or, the row number and one. */
static void write_rows(struct writer *w, unsigned array, char letter, uint64_t rows,
                       uint64_t columns)
{
    const char token[] = {w->o->wide ? 'D' : 'F', letter, ' ', '\0'};

    if (!w->o->as_text) {
        write_bytes(w, token);
        write_int(w, (int32_t)(letter == 'V' ? columns : rows));
        if (letter == 'M')
            write_int(w, (int32_t)columns);
    } else {
        write_bytes(w, letter == 'P' ? rows ? "[\n" : "[ " : letter == 'V' || !rows ? " [ " : " [");
    }
    for (uint64_t row = 0; row < rows; row++) {
        if (w->o->as_text && (letter == 'M' || row))
            write_bytes(w, letter == 'M' ? "\n  " : "\n");
        write_reals(w, array, letter == 'P' ? row + 1 : columns);
    }
    if (w->o->as_text)
        write_bytes(w, "]\n");
}

static void write_list_record(struct writer *w, const struct kaldi_list_layout *layout)
{
    for (unsigned k = 0; layout->record[k]; k++)
        if (layout->record[k] == 'r') {
            write_real(w, layout->array[k]);
        } else {
            int32_t v = next_int(w, layout->array[k]);

            if (layout->record[k] == 'i')
                write_int(w, v);
            else /* the length of a vector */
                write_rows(w, layout->array[k] + 1, 'V', 1, (uint64_t)v);
        }
}

static void write_lists(struct writer *w, const struct kaldi_list_layout *layout)
{
    bool as_text = w->o->as_text, counts = !as_text || layout->has_counts;

    if (counts)
        write_int(w, (int32_t)w->o->dim[0]);
    for (uint64_t i = 0; i < w->o->dim[0]; i++) {
        uint64_t n = layout->nested ? (uint64_t)next_int(w, 0) : 1;

        if (as_text)
            write_bytes(w, i ? layout->between : "");
        if (counts && layout->nested)
            write_int(w, (int32_t)n);
        else if (layout->nested)
            write_bytes(w, layout->before);
        for (; n; n--)
            write_list_record(w, layout);
        if (as_text)
            write_bytes(w, layout->after);
    }
}

static void write_object(struct writer *w)
{
    const struct kaldi_written *o = w->o;

    if (!o->as_text) {
        memcpy(w->at, "\0B", 2);
        w->at += 2;
    }
    if (o->type == KALDI_MATRIX)
        write_rows(w, 0, 'M', o->dim[0], o->dim[1]);
    else if (o->type == KALDI_VECTOR)
        write_rows(w, 0, 'V', 1, o->dim[0]);
    else if (o->type == KALDI_PACKED)
        write_rows(w, 0, 'P', kaldi_triangle_rows(o->dim[0]), 0);
    else if (o->type == KALDI_BOOL)
        write_bytes(w, *o->array[0] ? "T" : "F");
    else if (o->type == KALDI_INT)
        write_int(w, next_int(w, 0));
    else if (o->type == KALDI_FLOAT || o->type == KALDI_DOUBLE)
        write_real(w, 0);
    else
        write_lists(w, &kaldi_lists[o->type]);
    if (o->as_text && o->type == KALDI_BOOL)
        write_bytes(w, " ");
    if (o->as_text && o->type > KALDI_PACKED)
        write_bytes(w, "\n");
}

/* Bytes that the object takes, at most. */
static bool most_bytes(const struct kaldi_written *o, uint64_t *ret)
{
    struct kaldi_object shape = {.type = o->type};
    uint64_t most = 64, bytes;

    memcpy(shape.dim, o->dim, sizeof(shape.dim));
    for (unsigned i = 0; i < kaldi_types[o->type].n_arrays; i++)
        if (!kaldi_array_bytes(&shape, i, DTYPE_F4, &bytes) ||
            !checked_mul(bytes, NUMBER / 4, &bytes) || !checked_add(most, bytes, &most))
            return false;
    return checked_mul(o->dim[0], NUMBER, &bytes) && checked_add(most, bytes, ret) &&
           *ret <= PTRDIFF_MAX;
}

int kaldi_write(const struct kaldi_written *written, size_t head, uint8_t **ret, size_t *ret_len)
{
    uint64_t most = 0;
    uint8_t *bytes = most_bytes(written, &most) ? malloc(head + (size_t)most) : NULL, *fit;
    struct writer w = {.o = written, .at = bytes + head};

    if (!bytes)
        return -ENOMEM;
    write_object(&w);
    *ret_len = (size_t)(w.at - bytes) - head;
    fit = realloc(bytes, head + *ret_len);
    *ret = fit ? fit : bytes;
    return 0;
}
