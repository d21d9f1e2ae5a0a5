#include "support/kaldi_model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/kaldi/object/object.h"

/* ---- cells ---- */

void kaldi_model_init(struct kaldi_model *m, uint64_t samples)
{
    *m = (struct kaldi_model){.samples = samples};
    m->key = calloc(samples + 1, sizeof(*m->key));
}

static void cell_release(struct kaldi_model_cell *cell)
{
    text_release(&cell->stored);
    text_release(&cell->entry);
    text_release(&cell->line);
    text_release(&cell->wav);
    for (unsigned i = 0; i < KALDI_ARRAYS_MAX; i++)
        text_release(&cell->value[i]);
}

void kaldi_model_release(struct kaldi_model *m)
{
    for (unsigned c = 0; c < m->n_columns; c++) {
        for (uint64_t i = 0; i < m->samples; i++)
            cell_release(&m->column[c].cell[i]);
        free(m->column[c].cell);
    }
    for (uint64_t i = 0; i < m->samples; i++)
        free(m->key[i]);
    free(m->key);
}

struct kaldi_model_column *kaldi_model_add(struct kaldi_model *m, const char *name, bool unnamed,
                                           enum kaldi_type type)
{
    struct kaldi_model_column *c = &m->column[m->n_columns++];

    assert(m->n_columns <= KALDI_MODEL_COLUMNS);
    *c = (struct kaldi_model_column){
        .name = name, .unnamed = unnamed, .type = type, .real = DTYPE_F4};
    c->cell = calloc(m->samples + 1, sizeof(*c->cell));
    return c;
}

void kaldi_model_take(struct kaldi_model_cell *cell, const struct kaldi_made *made, enum dtype real)
{
    const struct kaldi_type_info *info = &kaldi_types[made->object.type];

    kaldi_put(&cell->stored, made->bytes.data, made->bytes.len);
    kaldi_put(&cell->entry, made->bytes.data, made->bytes.len);
    for (unsigned a = 0; a < info->n_arrays; a++) {
        const struct text *from = &made->array[a];

        for (unsigned k = 0; k < info->array[a].ndim; k++)
            cell->shape[a][k] = info->array[a].dim[k] == KALDI_DIM_TWO
                                    ? 2
                                    : made->object.dim[info->array[a].dim[k]];
        if (!info->array[a].real) {
            kaldi_put(&cell->value[a], from->data, from->len);
            continue;
        }
        for (size_t at = 0; at < from->len; at += 8) {
            double v;

            memcpy(&v, from->data + at, 8);
            kaldi_put_value(&cell->value[a], v, real == DTYPE_F8);
        }
    }
}

void kaldi_model_wave(struct kaldi_model_cell *cell, unsigned channels, uint32_t rate,
                      const int16_t *samples, size_t frames)
{
    uint8_t header[KALDI_WAVE_HEADER];

    kaldi_wave_header(channels, rate, frames, header);
    kaldi_put(&cell->wav, header, sizeof(header));
    kaldi_put(&cell->wav, samples, frames * channels * 2);
    kaldi_put(&cell->entry, cell->wav.data, cell->wav.len);
    kaldi_put(&cell->value[0], samples, frames * channels * 2);
    cell->shape[0][0] = frames;
    cell->shape[0][1] = channels;
    cell->rate = rate;
}

/* ---- arrays ---- */

/* An array of a column, and the cells of a selection. */
struct array {
    const struct kaldi_model_column *column;
    unsigned i;
    const char *suffix;
    const char *descr;
    unsigned width, ndim;
    uint64_t n;
    const struct kaldi_model_cell **cell; /* [n] */
    uint64_t longest, sum, tail;
    bool fails;
};

static unsigned arrays_of(const struct kaldi_model_column *c)
{
    return c->type == KALDI_WAVE ? 1 : kaldi_types[c->type].n_arrays;
}

/* The number of columns that the arrays of some cells share, apart from empty ones. */
static uint64_t common_tail(const struct array *a, const struct kaldi_model_cell *const *cell,
                            uint64_t n, bool *ret_differ)
{
    uint64_t tail = 0;

    *ret_differ = false;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *shape = cell[i]->shape[a->i];

        if (!shape[0])
            continue;
        *ret_differ = *ret_differ || (tail && tail != shape[1]);
        tail = tail ? tail : shape[1];
    }
    return tail;
}

static void measure(struct array *a, uint64_t samples)
{
    const struct kaldi_model_cell **all = calloc(samples + 1, sizeof(*all));
    bool differ;

    for (uint64_t i = 0; i < a->n; i++) {
        a->longest = max_u64(a->longest, a->cell[i]->shape[a->i][0]);
        a->sum += a->cell[i]->shape[a->i][0];
    }
    for (uint64_t i = 0; i < samples; i++)
        all[i] = &a->column->cell[i];
    a->tail = 1;
    if (a->ndim == 2) {
        a->tail = common_tail(a, all, samples, &differ);
        if (differ)
            a->tail = common_tail(a, a->cell, a->n, &a->fails);
        if (a->column->type == KALDI_INT_PAIRS || a->column->type == KALDI_FLOAT_PAIRS)
            a->tail = 2;
    }
    free(all);
}

static void describe(struct array *a)
{
    const struct kaldi_array *known = &kaldi_types[a->column->type].array[a->i];
    enum dtype dtype = known->real ? a->column->real : known->dtype;

    a->suffix = "";
    a->descr = "<i2";
    a->width = 2;
    a->ndim = a->column->mono ? 1 : 2;
    if (a->column->type == KALDI_WAVE)
        return;
    a->suffix = known->suffix;
    a->ndim = known->ndim;
    a->width = dtype == DTYPE_F8 ? 8 : dtype == DTYPE_U1 ? 1 : 4;
    a->descr = dtype == DTYPE_F8 ? "<f8" : dtype == DTYPE_F4 ? "<f4" : "<i4";
    if (a->column->type == KALDI_BOOL)
        a->descr = "|b1";
}

/* ---- .npy ---- */

static void put_npy(struct text *t, const char *descr, unsigned ndim, const uint64_t *dim,
                    const struct text *items)
{
    AUTO_TEXT struct text header = {0};
    size_t first;

    text_add(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    first = header.len;
    for (unsigned i = 0; i < ndim; i++)
        text_add(&header, "%s%llu", i ? ", " : "", (unsigned long long)dim[i]);
    first = ndim ? strcspn(header.data + first, ",") : 21;
    text_add(&header, "%s), }%*s", ndim == 1 ? "," : "", (int)(21 - first), "");
    do
        text_add(&header, " ");
    while ((header.len + 11) % 64);
    text_add(&header, "\n");
    kaldi_put(t, "\x93NUMPY\1\0", 8);
    kaldi_put_raw(t, header.len, 2);
    kaldi_put(t, header.data, header.len);
    kaldi_put(t, items->data, items->len);
}

static void put_padded(struct text *t, const struct array *a)
{
    AUTO_TEXT struct text items = {0};

    for (uint64_t i = 0; i < a->n; i++) {
        const struct text *v = &a->cell[i]->value[a->i];

        kaldi_put(&items, v->data, v->len);
        for (size_t k = v->len; k < a->longest * a->tail * a->width; k++)
            kaldi_put(&items, "", 1);
    }
    put_npy(t, a->descr, a->ndim + 1, (uint64_t[]){a->n, a->longest, a->tail}, &items);
}

static void put_ragged(struct text *t, const struct array *a)
{
    AUTO_TEXT struct text items = {0};

    for (uint64_t i = 0; i < a->n; i++)
        kaldi_put(&items, a->cell[i]->value[a->i].data, a->cell[i]->value[a->i].len);
    put_npy(t, a->descr, a->ndim, (uint64_t[]){a->sum, a->tail}, &items);
}

/* The array of one sample, or scalars of many. */
static void put_own(struct text *t, const struct array *a, bool single)
{
    AUTO_TEXT struct text items = {0};

    for (uint64_t i = 0; i < a->n; i++)
        kaldi_put(&items, a->cell[i]->value[a->i].data, a->cell[i]->value[a->i].len);
    if (single)
        put_npy(t, a->descr, a->ndim, a->cell[0]->shape[a->i], &items);
    else
        put_npy(t, a->descr, 1, &a->n, &items);
}

static void put_counts(struct text *t, const struct array *a, bool offsets)
{
    AUTO_TEXT struct text items = {0};
    uint64_t sum = 0;

    for (uint64_t i = 0; i < a->n; i++) {
        kaldi_put_raw(&items, offsets ? sum : a->cell[i]->shape[a->i][0], 8);
        sum += a->cell[i]->shape[a->i][0];
    }
    if (offsets)
        kaldi_put_raw(&items, sum, 8);
    put_npy(t, "<i8", 1, (uint64_t[]){a->n + offsets}, &items);
}

/* Texts as elements of one width. */
static void put_strings(struct text *t, const char *const *string, const size_t *len, uint64_t n,
                        bool single)
{
    AUTO_TEXT struct text items = {0};
    uint64_t width = 1;
    char descr[32];

    for (uint64_t i = 0; i < n; i++)
        width = max_u64(width, len[i]);
    for (uint64_t i = 0; i < n; i++) {
        kaldi_put(&items, string[i], len[i]);
        for (uint64_t k = len[i]; k < width; k++)
            kaldi_put(&items, "", 1);
    }
    snprintf(descr, sizeof(descr), "|S%llu", (unsigned long long)width);
    put_npy(t, descr, !single, &n, &items);
}

/* ---- files ---- */

/* The input of a selection's files. */
struct making {
    const struct kaldi_model *m;
    const struct selection *sel;
    uint64_t *sample; /* [n] */
    uint64_t n;
    struct kaldi_model_files *files;
    struct text npz;
    bool npz_fails;
};

static struct kaldi_model_file *new_file(struct making *k, const char *encoder, const char *name,
                                         const char *ext)
{
    struct kaldi_model_file *file = &k->files->file[k->files->n++];

    assert(k->files->n <= KALDI_MODEL_FILES);
    *file = (struct kaldi_model_file){.encoder = encoder};
    snprintf(file->suffix, sizeof(file->suffix), "%s%s.%s", *name ? "." : "", name, ext);
    return file;
}

static void put_member(struct text *t, const char *name, const struct text *content)
{
    text_add(t, "%s\n", name);
    kaldi_put_raw(t, content->len, 8);
    kaldi_put(t, content->data, content->len);
}

static void put_npz(struct making *k, const char *name, const struct text *npy)
{
    char member[96];

    snprintf(member, sizeof(member), "%s.npy", name);
    put_member(&k->npz, member, npy);
}

/* Make all files of an array, except those of tar. */
static void make_array(struct making *k, const struct kaldi_model_column *column, unsigned i)
{
    struct array a = {.column = column, .i = i, .n = k->n};
    AUTO_TEXT struct text npz = {0}, offsets = {0};
    struct kaldi_model_file *file, *len;
    char name[64], other[80];

    a.cell = calloc(k->n + 1, sizeof(*a.cell));
    for (uint64_t n = 0; n < k->n; n++)
        a.cell[n] = &column->cell[k->sample[n]];
    describe(&a);
    snprintf(name, sizeof(name), "%s%s", column->name, a.suffix);
    file = new_file(k, "npy", name, "npy");
    if (k->sel->single || !a.ndim) {
        put_own(&file->bytes, &a, k->sel->single);
        put_npz(k, name, &file->bytes);
    } else {
        measure(&a, k->m->samples);
        put_padded(&file->bytes, &a);
        snprintf(other, sizeof(other), "%s_len", name);
        len = new_file(k, "npy", other, "npy");
        put_counts(&len->bytes, &a, false);
        file->fails = len->fails = a.fails;
        k->npz_fails = k->npz_fails || a.fails;
        put_ragged(&npz, &a);
        put_npz(k, name, &npz);
        put_counts(&offsets, &a, true);
        snprintf(other, sizeof(other), "%s_offsets", name);
        put_npz(k, other, &offsets);
    }
    free(a.cell);
}

static void make_rate(struct making *k, const struct kaldi_model_column *column)
{
    AUTO_TEXT struct text items = {0};
    char name[64];
    struct kaldi_model_file *file;

    snprintf(name, sizeof(name), "%s_rate", column->name);
    for (uint64_t n = 0; n < k->n; n++)
        kaldi_put_raw(&items, column->cell[k->sample[n]].rate, 4);
    file = new_file(k, "npy", name, "npy");
    put_npy(&file->bytes, "<i4", !k->sel->single, &k->n, &items);
    put_npz(k, name, &file->bytes);
    if (k->sel->single) {
        const struct text *wav = &column->cell[k->sample[0]].wav;

        file = new_file(k, "wav", "", "wav");
        kaldi_put(&file->bytes, wav->data, wav->len);
    }
}

static void make_words(struct making *k, const struct kaldi_model_column *column)
{
    const char **string = calloc(k->n + 1, sizeof(*string));
    size_t *len = calloc(k->n + 1, sizeof(*len));
    AUTO_TEXT struct text npy = {0};
    struct kaldi_model_file *file = new_file(k, "txt", column->unnamed ? "" : column->name, "txt");

    for (uint64_t n = 0; n < k->n; n++) {
        string[n] = column->cell[k->sample[n]].line.data;
        len[n] = column->cell[k->sample[n]].line.len;
        kaldi_put(&file->bytes, string[n], len[n]);
        kaldi_put(&file->bytes, "\n", 1);
    }
    put_strings(&npy, string, len, k->n, k->sel->single);
    put_npz(k, column->name, &npy);
    free(string);
    free(len);
}

/* ---- objects as text, and text objects in binary ---- */

static int model_int(const struct kaldi_model_cell *cell, unsigned array, uint64_t i)
{
    return (int)load_le32((const uint8_t *)cell->value[array].data + 4 * i);
}

static void put_reals_text(struct text *t, const struct kaldi_model_column *c,
                           const struct kaldi_model_cell *cell, unsigned array, uint64_t from,
                           uint64_t n)
{
    for (uint64_t i = from; i < from + n; i++) {
        float narrow;
        double v;

        memcpy(&narrow, cell->value[array].data + 4 * i, 4);
        if (c->real == DTYPE_F8)
            memcpy(&v, cell->value[array].data + 8 * i, 8);
        text_add(t, "%.7g ", c->real == DTYPE_F8 ? v : (double)narrow);
    }
}

static void put_ints_text(struct text *t, const struct kaldi_model_cell *cell, unsigned array,
                          uint64_t from, uint64_t n)
{
    for (uint64_t i = from; i < from + n; i++)
        text_add(t, "%d ", model_int(cell, array, i));
}

static void put_frames_text(struct text *t, const struct kaldi_model_column *c,
                            const struct kaldi_model_cell *cell)
{
    bool is_gauss = c->type == KALDI_GAUSS_POST;
    uint64_t at = 0, values = 0;

    if (is_gauss)
        text_add(t, "%d ", (int)cell->shape[0][0]);
    for (uint64_t frame = 0; frame < cell->shape[0][0]; frame++) {
        int n = model_int(cell, 0, frame);

        if (is_gauss)
            text_add(t, "%d ", n);
        else
            text_add(t, "[ ");
        for (; n; n--, at++) {
            uint64_t size = is_gauss ? (uint64_t)model_int(cell, 2, at) : 1;

            put_ints_text(t, cell, 1, at, 1);
            text_add(t, is_gauss ? " [ " : "");
            put_reals_text(t, c, cell, is_gauss ? 3 : 2, values, size);
            text_add(t, is_gauss ? "]\n" : "");
            values += size;
        }
        text_add(t, is_gauss ? "" : "] ");
    }
    text_add(t, "\n");
}

static void put_object_text(struct text *t, const struct kaldi_model_column *c,
                            const struct kaldi_model_cell *cell)
{
    const uint64_t *shape = cell->shape[0];
    uint64_t done = 0;

    switch (c->type) {
    case KALDI_MATRIX:
        text_add(t, shape[0] ? " [" : " [ ");
        for (uint64_t row = 0; row < shape[0]; row++) {
            text_add(t, "\n  ");
            put_reals_text(t, c, cell, 0, row * shape[1], shape[1]);
        }
        text_add(t, "]\n");
        break;
    case KALDI_VECTOR:
        text_add(t, " [ ");
        put_reals_text(t, c, cell, 0, 0, shape[0]);
        text_add(t, "]\n");
        break;
    case KALDI_PACKED:
        text_add(t, shape[0] ? "[\n" : "[ ");
        for (uint64_t row = 1; done < shape[0]; done += row++) {
            text_add(t, row > 1 ? "\n" : "");
            put_reals_text(t, c, cell, 0, done, row);
        }
        text_add(t, "]\n");
        break;
    case KALDI_BOOL:
        text_add(t, *cell->value[0].data ? "T \n" : "F \n");
        break;
    case KALDI_INT:
    case KALDI_INTS:
        put_ints_text(t, cell, 0, 0, c->type == KALDI_INT ? 1 : shape[0]);
        text_add(t, "\n");
        break;
    case KALDI_FLOAT:
    case KALDI_DOUBLE:
        put_reals_text(t, c, cell, 0, 0, 1);
        text_add(t, "\n");
        break;
    case KALDI_INT_PAIRS:
    case KALDI_FLOAT_PAIRS:
        for (uint64_t i = 0; i < shape[0]; i++) {
            text_add(t, i ? "; " : "");
            if (c->type == KALDI_INT_PAIRS)
                put_ints_text(t, cell, 0, 2 * i, 2);
            else
                put_reals_text(t, c, cell, 0, 2 * i, 2);
        }
        text_add(t, "\n");
        break;
    case KALDI_INT_LISTS:
        for (uint64_t i = 0; i < shape[0]; done += (uint64_t)model_int(cell, 0, i++)) {
            put_ints_text(t, cell, 1, done, (uint64_t)model_int(cell, 0, i));
            text_add(t, "; ");
        }
        text_add(t, "\n");
        break;
    default:
        put_frames_text(t, c, cell);
    }
}

/* Only of matrices and integers. */
static void put_object_binary(struct text *t, const struct kaldi_model_column *c,
                              const struct kaldi_model_cell *cell)
{
    kaldi_put_start(t, c->type == KALDI_MATRIX ? "FM " : "");
    if (c->type == KALDI_INT) {
        kaldi_put_int(t, model_int(cell, 0, 0));
        return;
    }
    kaldi_put_int(t, (int64_t)cell->shape[0][0]);
    kaldi_put_int(t, (int64_t)cell->shape[0][1]);
    kaldi_put(t, cell->value[0].data, cell->value[0].len);
}

/* Files of archives that are all text, or all binary. */
static void make_written(struct making *k, const struct kaldi_model_column *column, bool as_text)
{
    bool is_words = column->type == KALDI_TOKEN || column->type == KALDI_TOKENS;
    struct kaldi_model_file *ark;

    if (column->type == KALDI_WAVE || (is_words && !as_text))
        return;
    ark = new_file(k, as_text ? "ark,t" : "ark,b", column->unnamed ? "" : column->name, "ark");
    for (uint64_t n = 0; n < k->n; n++) {
        const struct kaldi_model_cell *cell = &column->cell[k->sample[n]];
        bool is_text = is_words || cell->stored.data[0] != '\0';

        text_add(&ark->bytes, "%s ", k->m->key[k->sample[n]]);
        if (is_text == as_text)
            kaldi_put(&ark->bytes, cell->entry.data, cell->entry.len);
        else if (as_text)
            put_object_text(&ark->bytes, column, cell);
        else
            put_object_binary(&ark->bytes, column, cell);
    }
}

static void make_objects(struct making *k, const struct kaldi_model_column *column)
{
    const char *name = column->unnamed ? "" : column->name;
    struct kaldi_model_file *ark = new_file(k, "ark", name, "ark"),
                            *scp = new_file(k, "ark", name, "scp"), *raw;

    for (uint64_t n = 0; n < k->n; n++) {
        const char *key = k->m->key[k->sample[n]];
        const struct kaldi_model_cell *cell = &column->cell[k->sample[n]];

        text_add(&ark->bytes, "%s ", key);
        text_add(&scp->bytes, "%s %s%s:%zu\n", key, k->sel->file ? k->sel->file : "", ark->suffix,
                 ark->bytes.len);
        kaldi_put(&ark->bytes, cell->entry.data, cell->entry.len);
    }
    if (!k->sel->single)
        return;
    raw = new_file(k, "raw", column->name, "raw");
    kaldi_put(&raw->bytes, column->cell[k->sample[0]].stored.data,
              column->cell[k->sample[0]].stored.len);
}

static void make_numbering(struct making *k)
{
    const char **string = calloc(k->n + 1, sizeof(*string));
    size_t *len = calloc(k->n + 1, sizeof(*len));
    AUTO_TEXT struct text items = {0}, keys = {0};
    struct kaldi_model_file *file = new_file(k, "npy", "index", "npy");

    for (uint64_t n = 0; n < k->n; n++)
        kaldi_put_raw(&items, k->sample[n], 8);
    put_npy(&file->bytes, "<i8", 1, &k->n, &items);
    put_npz(k, "index", &file->bytes);
    file = new_file(k, "npy", "key", "txt");
    for (uint64_t n = 0; n < k->n; n++) {
        string[n] = k->m->key[k->sample[n]];
        len[n] = strlen(string[n]);
        text_add(&file->bytes, "%s\n", string[n]);
    }
    put_strings(&keys, string, len, k->n, false);
    put_npz(k, "key", &keys);
    free(string);
    free(len);
}

/* The members of a sample: of all arrays but audio, then audio, and text. */
static void put_tar_column(struct text *t, const struct kaldi_model_column *column, const char *key,
                           uint64_t sample)
{
    const struct kaldi_model_cell *cell = &column->cell[sample], *cells[] = {cell};
    char name[KEY_NAME_SIZE + 104];

    for (unsigned i = 0; i < arrays_of(column) && column->type != KALDI_WAVE; i++) {
        struct array a = {.column = column, .i = i, .n = 1, .cell = cells};
        AUTO_TEXT struct text npy = {0};

        describe(&a);
        put_own(&npy, &a, true);
        snprintf(name, sizeof(name), "%s.%s%s.npy", key, column->name, a.suffix);
        put_member(t, name, &npy);
    }
    if (column->type == KALDI_WAVE) {
        snprintf(name, sizeof(name), "%s.wav", key);
        put_member(t, name, &cell->wav);
    } else if (column->type == KALDI_TOKEN || column->type == KALDI_TOKENS) {
        AUTO_TEXT struct text line = {0};

        kaldi_put(&line, cell->line.data, cell->line.len);
        kaldi_put(&line, "\n", 1);
        snprintf(name, sizeof(name), "%s%s%s.txt", key, column->unnamed ? "" : ".",
                 column->unnamed ? "" : column->name);
        put_member(t, name, &line);
    }
}

static void make_tar(struct making *k)
{
    struct kaldi_model_file *tar = new_file(k, "tar", "", "tar");

    for (uint64_t n = 0; n < k->n; n++) {
        char key[KEY_NAME_SIZE + 24];
        size_t len = key_name(k->m->key[k->sample[n]], strlen(k->m->key[k->sample[n]]), true, key);

        if (n && k->sample[n] == k->sample[n - 1]) /* a sample that follows itself */
            snprintf(key + len, sizeof(key) - len, "~%llu", (unsigned long long)n);
        for (unsigned c = 0; c < k->m->n_columns; c++)
            put_tar_column(&tar->bytes, &k->m->column[c], key, k->sample[n]);
    }
}

void kaldi_model_render(const struct kaldi_model *m, const struct selection *sel,
                        struct kaldi_model_files *ret)
{
    struct making k = {.m = m, .sel = sel, .n = sel->count, .files = ret};
    struct kaldi_model_file *npz;

    ret->n = 0;
    k.sample = calloc(k.n + 1, sizeof(*k.sample));
    if (k.n)
        selection_samples(sel, 0, (size_t)k.n, k.sample);
    for (unsigned c = 0; c < m->n_columns; c++) {
        for (unsigned i = 0; i < arrays_of(&m->column[c]); i++)
            make_array(&k, &m->column[c], i);
        if (m->column[c].type == KALDI_WAVE)
            make_rate(&k, &m->column[c]);
        if (m->column[c].type == KALDI_TOKEN || m->column[c].type == KALDI_TOKENS)
            make_words(&k, &m->column[c]);
        make_objects(&k, &m->column[c]);
        make_written(&k, &m->column[c], true);
        make_written(&k, &m->column[c], false);
    }
    if (!sel->single)
        make_numbering(&k);
    make_tar(&k);
    npz = new_file(&k, "npz", "", "npz");
    npz->bytes = k.npz;
    npz->fails = k.npz_fails;
    free(k.sample);
}

void kaldi_model_files_release(struct kaldi_model_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        text_release(&files->file[i].bytes);
    files->n = 0;
}

/* ---- containers ---- */

static bool unpack_npz(const struct bytes *file, struct text *ret)
{
    const uint8_t *at = file->at, *end = file->at + file->len;

    while (end - at >= 30 && load_le32(at) == 0x04034b50) {
        size_t len = load_le32(at + 18), name = load_le16(at + 26), extra = load_le16(at + 28);

        if ((size_t)(end - at) < 30 + name + extra + len)
            return false;
        kaldi_put(ret, at + 30, name);
        kaldi_put(ret, "\n", 1);
        kaldi_put_raw(ret, len, 8);
        at += 30 + name + extra;
        kaldi_put(ret, at, len);
        at += len;
    }
    return end - at >= 22 && (load_le32(at) == 0x02014b50 || load_le32(at) == 0x06054b50);
}

static bool unpack_tar(const struct bytes *file, struct text *ret)
{
    const uint8_t *at = file->at, *end = file->at + file->len;
    static const uint8_t zeros[1024];
    char longer[300] = "";

    while (end - at > 1024) {
        size_t len = strtoul((const char *)at + 124, NULL, 8), capacity = ceil_div(len, 512) * 512;
        bool is_pax = at[156] == 'x';

        if (memcmp(at + 257, "ustar", 5) != 0 || (size_t)(end - at) < 512 + capacity)
            return false;
        if (is_pax) /* "120 path=...\n" */
            snprintf(longer, sizeof(longer), "%.*s", (int)len - 1, (const char *)at + 512);
        else
            text_add(ret, "%.*s\n", *longer ? (int)sizeof(longer) : 100,
                     *longer ? strchr(longer, '=') + 1 : (const char *)at);
        if (!is_pax) {
            kaldi_put_raw(ret, len, 8);
            kaldi_put(ret, at + 512, len);
            *longer = '\0';
        }
        at += 512 + capacity;
    }
    return end - at == 1024 && !memcmp(at, zeros, 1024);
}

bool kaldi_model_unpack(const char *encoder, const struct bytes *file, struct text *ret)
{
    if (!strcmp(encoder, "npz"))
        return unpack_npz(file, ret);
    if (!strcmp(encoder, "tar"))
        return unpack_tar(file, ret);
    kaldi_put(ret, file->at, file->len);
    return true;
}
