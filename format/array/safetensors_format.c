/* safetensors files: the length of a JSON header, the header, and the tensors, without holes. Each
 * tensor is an array. The header is hostile: what it says is checked as the reference reader
 * (safetensors/src/tensor.rs) does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "format/array/archives.h"

extern const struct format format_safetensors;

#define HEAD_AT     8                     /* the header's offset, behind its length */
#define HEAD_MAX    UINT64_C(100000000)   /* bytes of it, as in the reference reader */
#define MEMORY_MAX  (UINT64_C(512) << 20) /* that its values may take */
#define WEIGHTS_MIN 65                    /* tensors: as many of different lengths are a model */
#define WHAT_SIZE   600
#define METADATA    "__metadata__"

/* The types. What numpy has not is shown as unsigned numbers of as many bits, or as bytes. */
static const struct type {
    const char *name;
    unsigned bits;
    enum dtype dtype;
    bool other; /* numpy has no such type */
} array_safetensors_types[] = {
    {"BOOL", 8, DTYPE_BOOL, false},     {"U8", 8, DTYPE_U1, false},
    {"I8", 8, DTYPE_I1, false},         {"U16", 16, DTYPE_U2, false},
    {"I16", 16, DTYPE_I2, false},       {"U32", 32, DTYPE_U4, false},
    {"I32", 32, DTYPE_I4, false},       {"U64", 64, DTYPE_U8, false},
    {"I64", 64, DTYPE_I8, false},       {"F16", 16, DTYPE_F2, false},
    {"F32", 32, DTYPE_F4, false},       {"F64", 64, DTYPE_F8, false},
    {"C64", 64, DTYPE_C8, false},       {"BF16", 16, DTYPE_U2, true},
    {"F8_E4M3", 8, DTYPE_U1, true},     {"F8_E5M2", 8, DTYPE_U1, true},
    {"F8_E8M0", 8, DTYPE_U1, true},     {"F8_E4M3FNUZ", 8, DTYPE_U1, true},
    {"F8_E5M2FNUZ", 8, DTYPE_U1, true}, {"F6_E2M3", 6, DTYPE_U1, true},
    {"F6_E3M2", 6, DTYPE_U1, true},     {"F4", 4, DTYPE_U1, true},
};

static const struct type *find_type(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(array_safetensors_types); i++)
        if (!strcmp(array_safetensors_types[i].name, name))
            return &array_safetensors_types[i];
    return NULL;
}

/* ---- one tensor ---- */

/* Where its bytes are, from the end of the header on. */
struct span {
    uint64_t begin, end;
    size_t tensor;
};

static bool array_safetensors_is_number(const json_t *value, uint64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static int read_span(const json_t *tensor, uint64_t size, const char *what, struct span *ret,
                     struct diag *d)
{
    const json_t *offsets = json_object_get(tensor, "data_offsets");

    if (json_array_size(offsets) != 2 ||
        !array_safetensors_is_number(json_array_get(offsets, 0), &ret->begin) ||
        !array_safetensors_is_number(json_array_get(offsets, 1), &ret->end))
        return diag_set(d, -EBADMSG, "%s: expected data_offsets of two numbers, got others", what);
    if (ret->begin > ret->end || ret->end > size)
        return diag_set(
            d, -EBADMSG,
            "%s: data_offsets: expected a begin and an end up to %llu, got %llu and %llu", what,
            (unsigned long long)size, (unsigned long long)ret->begin, (unsigned long long)ret->end);
    return 0;
}

/* The shape, and the bits that the elements take. Those of more axes than an array has here are
 * 0 axes. */
static int array_safetensors_read_shape(const json_t *tensor, const struct type *type,
                                        const char *what, struct npy_head *ret, uint64_t *ret_bits,
                                        struct diag *d)
{
    const json_t *shape = json_object_get(tensor, "shape");
    size_t n = json_array_size(shape);
    uint64_t bits = type->bits, dim;

    if (!json_is_array(shape))
        return diag_set(d, -EBADMSG, "%s: expected a shape, got none", what);
    for (size_t i = 0; i < n; i++) {
        if (!array_safetensors_is_number(json_array_get(shape, i), &dim))
            return diag_set(d, -EBADMSG, "%s: shape: expected numbers, got something else", what);
        if (!checked_mul(bits, dim, &bits))
            return diag_set(d, -EBADMSG, "%s: shape: expected less than 2^64 bits, got more", what);
        if (i < NPY_AXES)
            ret->dim[i] = dim;
    }
    ret->ndim = (unsigned)min_u64(n, NPY_AXES + 1);
    *ret_bits = bits;
    return 0;
}

/* Elements of less than a byte: the bytes of a row are its last axis. false: rows begin inside of
 * bytes. */
static bool array_safetensors_count_bytes(struct npy_head *head, unsigned bits)
{
    uint64_t *last = &head->dim[head->ndim - 1], row = bits;

    for (unsigned i = 1; i < head->ndim; i++)
        row *= head->dim[i];
    if (row % 8) /* so is a row of one element */
        return false;
    if (*last * bits % 8 == 0) {
        *last = *last * bits / 8;
    } else {
        head->ndim = 2;
        head->dim[1] = row / 8;
    }
    return true;
}

/* Set a's type, shape and place. 0; -ENODATA with the reason why it has no samples; or -EBADMSG. */
static int read_tensor(struct array *a, const json_t *tensor, const struct span *span,
                       const char *what, struct diag *d)
{
    const char *name = json_string_value(json_object_get(tensor, "dtype"));
    const struct type *type = name ? find_type(name) : NULL;
    uint64_t bits = 0;
    int r;

    if (!type)
        return diag_set(d, -EBADMSG, "%s: dtype: expected a type such as F32, got '%.40s'", what,
                        name ? name : "none");
    r = array_safetensors_read_shape(tensor, type, what, &a->head, &bits, d);
    if (r < 0)
        return r;
    if (bits % 8 || bits / 8 != span->end - span->begin)
        return diag_set(d, -EBADMSG,
                        "%s: data_offsets: expected %llu bytes, as dtype and shape say, got %llu",
                        what, (unsigned long long)ceil_div(bits, 8),
                        (unsigned long long)(span->end - span->begin));
    a->samples = a->head.ndim ? a->head.dim[0] : 0;
    a->is_beside = !a->head.ndim;
    if (a->head.ndim > NPY_AXES)
        return diag_set(d, -ENODATA, "%s: expected at most %d axes, got more", what, NPY_AXES);
    a->head.dtype = type->dtype;
    a->head.array_bytes = bits / 8;
    a->type_name = type->other ? type->name : NULL;
    if (a->head.ndim && type->bits < 8 && !array_safetensors_count_bytes(&a->head, type->bits))
        return diag_set(d, -ENODATA, "%s: expected rows of whole bytes, got elements of %u bits",
                        what, type->bits);
    return array_set_shape(a, what, d);
}

/* ---- a file ---- */

struct tensors {
    struct arrays *arrays;
    struct held_blob *held;
    json_t *head;
    uint64_t data_at, size; /* of the tensors' bytes */
    struct span *span;      /* [n] */
    size_t n;
};

static void tensors_release(struct tensors *t)
{
    json_free(&t->head);
    free(t->span);
}

static int read_head(struct tensors *t, struct diag *d)
{
    const struct blob *blob = t->held->blob;
    AUTO_FREE char *text = NULL;
    char what[WHAT_SIZE];
    uint8_t start[HEAD_AT];
    uint64_t len, most;
    int r;

    if (blob->size < HEAD_AT)
        return blob_bad(blob, d, "expected at least %d bytes, got %llu", HEAD_AT,
                        (unsigned long long)blob->size);
    r = blob_read(READ_WAITS, blob, start, sizeof(start), 0, d);
    if (r < 0)
        return r;
    len = load_le64(start);
    most = min_u64(HEAD_MAX, blob->size - HEAD_AT);
    if (len > most)
        return blob_bad(blob, d, "length of the header at byte 0: expected at most %llu, got %llu",
                        (unsigned long long)most, (unsigned long long)len);
    text = malloc(len + 1);
    if (!text)
        return -ENOMEM;
    r = blob_read(READ_WAITS, blob, text, (size_t)len, HEAD_AT, d);
    if (r < 0)
        return r;
    snprintf(what, sizeof(what), "%s: header", blob_name(blob));
    r = json_read_unique(text, (size_t)len, what,
                         (size_t)min_u64(json_budget((size_t)len), MEMORY_MAX), &t->head, d);
    if (r < 0)
        return r;
    if (!json_is_object(t->head))
        return diag_set(d, -EBADMSG, "%s: expected an object of tensors, got none", what);
    t->data_at = HEAD_AT + len;
    t->size = blob->size - t->data_at;
    return 0;
}

static int add_tensor(struct tensors *t, const char *key, const json_t *tensor, struct diag *d)
{
    size_t len = strlen(key);
    struct diag reason = DIAG_INIT;
    char what[WHAT_SIZE];
    struct array *a = arrays_add(t->arrays, key, min_u64(len, ARRAY_NAME_MAX));
    struct span *span;
    int r;

    if (!a || array_capacity(&t->span, t->n, sizeof(*span)) < 0)
        return -ENOMEM;
    snprintf(what, sizeof(what), "%s: tensor %s", blob_name(t->held->blob), a->name);
    span = &t->span[t->n];
    span->tensor = t->n++;
    if (!json_is_object(tensor))
        return diag_set(d, -EBADMSG, "%s: expected an object, got something else", what);
    r = read_span(tensor, t->size, what, span, d);
    if (r == 0)
        r = read_tensor(a, tensor, span, what, &reason);
    if (r < 0 && r != -ENODATA)
        return diag_set(d, r, "%s", diag_text(&reason, r));
    a->here.held = held_blob_take(t->held);
    a->here.offset = t->data_at + span->begin;
    if (r == -ENODATA)
        return array_leave_out_by(a, &reason, what);
    if (len > ARRAY_NAME_MAX) {
        a->samples = 0; /* no set lacks it */
        return array_leave_out(a, "its name is longer than 48 bytes");
    }
    return a->repeats ? diag_set(d, -EBADMSG, "%s: two tensors have this name", what) : 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct span *one = a, *two = b;

    if (one->begin != two->begin)
        return one->begin < two->begin ? -1 : 1;
    return (one->end > two->end) - (one->end < two->end);
}

/* Tensors follow each other, and nothing else is between or behind them. */
static int check_spans(struct tensors *t, struct diag *d)
{
    const char *name = blob_name(t->held->blob);
    uint64_t at = 0;

    if (t->n)
        qsort(t->span, t->n, sizeof(*t->span), by_begin);
    for (size_t i = 0; i < t->n; i++) {
        const struct span *s = &t->span[i];

        if (s->begin != at)
            return diag_set(
                d, -EBADMSG,
                "%s: tensor %s: data_offsets: expected %llu, where the one before it ends, "
                "got %llu",
                name, t->arrays->array[s->tensor].name, (unsigned long long)at,
                (unsigned long long)s->begin);
        at = s->end;
    }
    return at == t->size ? 0
                         : diag_set(d, -EBADMSG,
                                    "%s: expected tensors up to the end, byte %llu, got none from "
                                    "byte %llu on",
                                    name, (unsigned long long)(t->data_at + t->size),
                                    (unsigned long long)(t->data_at + at));
}

/* Many tensors that have no number of samples in common are the weights of a model. */
static bool are_weights(const struct arrays *arrays)
{
    const struct array *first = NULL;
    size_t n = 0;
    bool differ = false;

    for (size_t i = 0; i < arrays->n; i++) {
        const struct array *a = &arrays->array[i];
        const char *stem;
        size_t len;

        if (a->left_out || array_split(a->name, &stem, &len))
            continue;
        first = first ? first : a;
        differ = differ || a->samples != first->samples;
        n++;
    }
    return differ && n >= WEIGHTS_MIN;
}

static int array_safetensors_read(struct held_blob *held, const struct format_setup *setup,
                                  uint64_t *left, struct arrays *ret, struct diag *d)
{
    AUTO(tensors_release) struct tensors t = {.arrays = ret, .held = held};
    const char *key;
    json_t *tensor;
    int r = read_head(&t, d);

    (void)left;

    if (r < 0)
        return r;
    json_object_foreach(t.head, key, tensor)
    {
        if (strcmp(key, METADATA) != 0)
            r = add_tensor(&t, key, tensor, d);
        if (r < 0)
            return r;
    }
    r = check_spans(&t, d);
    if (r == 0 && !setup->options.pair_off && are_weights(ret))
        return blob_bad(held->blob, d,
                        "expected tensors of samples, got %zu tensors whose first axes differ, as "
                        "the weights of a model have; with -o pair=off each is a dataset",
                        ret->n);
    return r;
}

static int safetensors_open_folder(struct source_file *files, size_t n,
                                   const struct format_setup *setup, struct finds *finds)
{
    static const struct archive_format safetensors = {
        &format_safetensors, ".safetensors", "a tensor", "tensors", array_safetensors_read};

    return archives_open_folder(&safetensors, files, n, setup, finds);
}

/* A length that the file can have, and an object with a word that such headers have; or the name.
 */
static enum claim safetensors_probe(const struct probed_file *file)
{
    const uint8_t *h = file->head;
    uint64_t len = file->len > HEAD_AT ? load_le64(h) : 0;

    if (file->len <= HEAD_AT || h[HEAD_AT] != '{')
        return CLAIM_NONE;
    if (text_ends_with(file->name, ".safetensors"))
        return CLAIM_STRONG;
    if (len > HEAD_MAX || len > file->size - HEAD_AT)
        return CLAIM_NONE;
    return memmem(h, file->len, "\"data_offsets\"", 14) || memmem(h, file->len, METADATA, 12)
               ? CLAIM_STRONG
               : CLAIM_NONE;
}

const struct format format_safetensors = {
    .name = "safetensors",
    .probe = safetensors_probe,
    .open_folder = safetensors_open_folder,
    .title = "safetensors",
    .add_example = array_set_example,
};
