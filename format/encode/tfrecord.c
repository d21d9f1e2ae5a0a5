/* tfrecord: a record for each sample, whose data is a tf.train.Example
 * (tensorflow/core/lib/io/record_writer.h; tensorflow/core/example/example.proto, feature.proto).
 *
 * A field is one feature, in the order of the bytes of names, as protobuf's deterministic writers
 * have it: integers, floats that are rounded to float32, or one byte string. The length of an
 * integer depends on its value. So the size of a file takes reading the integers of its samples,
 * and a layout keeps where each record begins. All else is read when it is needed. */
#include "format/core/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "base/read_context.h"
#include "base/search.h"
#include "format/core/sample_window.h"

#define RECORD_HEAD 12                    /* u64 length, its checksum */
#define MADE_MAX    (UINT64_C(256) << 20) /* bytes of memory */
#define NAME_SPACE  (FIELD_NAME_SIZE + 8) /* with _shape */
#define HEAD_SPACE  (NAME_SPACE + 64)     /* what is before the values of a feature */
#define LOOK_EVERY  64                    /* samples between two looks whether to stop */
#define FLOATS      1024                  /* that are converted at once */

/* The numbers are those of the fields of Feature. */
enum feature_list { AS_BYTES = 1, AS_FLOATS, AS_INTEGERS };

/* Which features a record may have, sorted by name. */
struct named {
    char name[NAME_SPACE];
    unsigned field;
    bool is_shape; /* the shape of that field's array */
};

struct plan_of_records {
    struct named *named; /* [n] */
    size_t n;
    uint64_t *first; /* [count] where each record begins */
};

/* A feature of one sample. */
struct feature {
    const struct named *named;
    const struct field *f;
    enum feature_list list;
    uint64_t payload; /* bytes of the values */
    uint8_t *made;    /* [payload] owned; NULL: the field has them */
    enum dtype dtype;
};

struct features {
    struct feature *feature; /* [n] */
    size_t n;
};

static void features_release(struct features *x)
{
    for (size_t i = 0; i < x->n; i++)
        free(x->feature[i].made);
    free(x->feature);
}
#define AUTO_FEATURES AUTO(features_release)

/* ---- which features ---- */

/* A record has the fields of npz. Where npz has the bytes of a file as an array, which npy has not,
 * a record has the file. */
static enum { NO_FEATURE, BYTES_AS_ARRAY, FILE_BYTES, VALUES } rank_of(const struct field *f)
{
    if (f->numbering)
        return VALUES;
    if (f->form == FORM_BYTES)
        return field_is_in(f, IN_TAR) ? FILE_BYTES : NO_FEATURE;
    if (!field_is_in(f, IN_NPZ_SAMPLES | IN_TAR))
        return NO_FEATURE;
    return f->form == FORM_RAGGED && !field_is_in(f, IN_NPY_SAMPLES) ? BYTES_AS_ARRAY : VALUES;
}

static bool has_shape_feature(const struct field *f)
{
    for (unsigned i = 1; i < f->ndim && f->dim && rank_of(f) == VALUES; i++)
        if (f->dim[i] == DIM_VARIES)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : x->is_shape - y->is_shape;
}

/* Drop features whose name a better one has. */
static void keep_best(const struct dataset *ds, struct plan_of_records *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++) {
        struct named *last = n ? &plan->named[n - 1] : NULL;

        if (!last || strcmp(last->name, plan->named[i].name))
            plan->named[n++] = plan->named[i];
        else if (!plan->named[i].is_shape &&
                 rank_of(&ds->field[plan->named[i].field]) > rank_of(&ds->field[last->field]))
            *last = plan->named[i];
    }
    plan->n = n;
}

static void tfrecord_name_features(const struct dataset *ds, struct plan_of_records *plan)
{
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];

        for (unsigned shape = 0; shape <= has_shape_feature(f) && rank_of(f) != NO_FEATURE;
             shape++) {
            struct named *named = &plan->named[plan->n++];

            *named = (struct named){.field = i, .is_shape = shape};
            snprintf(named->name, sizeof(named->name), "%s%s", f->name, shape ? "_shape" : "");
        }
    }
    qsort(plan->named, plan->n, sizeof(*plan->named), by_name);
    keep_best(ds, plan);
}

/* ---- values ---- */

static size_t varint_size(uint64_t v)
{
    return v ? (bit_width(v) + 6) / 7 : 1;
}

static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
    for (; v > 127; v >>= 7)
        *at++ = (uint8_t)(v | 0x80);
    *at++ = (uint8_t)v;
    return at;
}

/* Integers as they are in a record. */
static int make_integers(struct feature *x, const int64_t *value, uint64_t n)
{
    uint8_t *at;

    for (uint64_t i = 0; i < n; i++)
        x->payload += varint_size((uint64_t)value[i]);
    x->made = malloc(x->payload + 1);
    if (!x->made)
        return -ENOMEM;
    at = x->made;
    for (uint64_t i = 0; i < n; i++)
        at = put_varint(at, (uint64_t)value[i]);
    return 0;
}

static int tfrecord_refuse(const struct feature *x, uint64_t sample, const char *expected,
                           struct diag *d)
{
    return diag_set(d, -EOPNOTSUPP, "tfrecord: field %s of sample %llu: expected %s. Use npz",
                    x->named->name, (unsigned long long)sample, expected);
}

static int read_integers(struct read_context *rc, const struct dataset *ds, uint64_t sample,
                         const struct selection *sel, uint64_t bytes, struct feature *x,
                         struct diag *d)
{
    uint64_t width = dtype_info(x->dtype)->bytes, n = bytes / width;
    AUTO_FREE uint8_t *stored = NULL;
    AUTO_FREE int64_t *value = NULL;
    int r;

    if (bytes > MADE_MAX / 16)
        return tfrecord_refuse(x, sample, "at most 16 MiB of integers", d);
    stored = malloc(bytes + 1);
    value = calloc(n + 1, sizeof(*value));
    if (!stored || !value)
        return -ENOMEM;
    r = x->f->ops->read(rc, ds, x->f, sel, 0, bytes, stored, d);
    for (uint64_t i = 0; i < n && r == 0; i++) {
        value[i] = dtype_integer(x->dtype, false, stored + i * width);
        if (x->dtype == DTYPE_U8 && value[i] < 0)
            return tfrecord_refuse(x, sample, "integers below 2^63", d);
    }
    return r < 0 ? r : make_integers(x, value, n);
}

/* A text of no bytes has an element of one NUL, as numpy has it. */
static int read_short_text(struct read_context *rc, const struct dataset *ds,
                           const struct selection *sel, struct feature *x, struct diag *d)
{
    int r;

    x->made = calloc(1, 1);
    if (!x->made)
        return -ENOMEM;
    r = x->f->ops->read(rc, ds, x->f, sel, 0, 1, x->made, d);
    x->payload = r == 0 && x->made[0];
    return r;
}

static int make_key(const struct dataset *ds, uint64_t sample, struct feature *x)
{
    x->list = AS_BYTES;
    x->made = malloc(KEY_SIZE);
    if (x->made)
        x->payload = dataset_key(ds, sample, x->made);
    return x->made ? 0 : -ENOMEM;
}

static int tfrecord_find_array(struct read_context *rc, const struct dataset *ds, uint64_t sample,
                               const struct selection *sel, struct feature *x, struct diag *d)
{
    struct form form;
    uint64_t bytes;
    int r = field_form(ds, x->f, sel, &form, &bytes);

    if (r < 0)
        return r;
    x->dtype = form.dtype;
    x->list = AS_INTEGERS;
    if (x->named->is_shape)
        return make_integers(x, (const int64_t *)form.dim, form.ndim);
    switch (dtype_info(form.dtype)->letter) {
    case 'S':
        x->list = AS_BYTES;
        x->payload = bytes;
        return bytes == 1 ? read_short_text(rc, ds, sel, x, d) : 0;
    case 'f':
        x->list = AS_FLOATS;
        x->payload = bytes / form.width * 4;
        return 0;
    case 'c':
        return tfrecord_refuse(x, sample, "real numbers, got complex ones", d);
    default:
        break;
    }
    if (x->f->form != FORM_BYTES && (form.dtype != DTYPE_U1 || form.ndim < 2))
        return read_integers(rc, ds, sample, sel, bytes, x, d);
    x->list = AS_BYTES;
    x->payload = bytes;
    return 0;
}

static int tfrecord_find_feature(struct read_context *rc, const struct dataset *ds, uint64_t sample,
                                 const struct selection *sel, struct feature *x, struct diag *d)
{
    if (x->f->numbering && !strcmp(x->f->name, "key"))
        return make_key(ds, sample, x);
    return tfrecord_find_array(rc, ds, sample, sel, x, d);
}

/* Find the features of a sample, and read its integers. */
static int find_features(struct read_context *rc, const struct dataset *ds,
                         const struct plan_of_records *plan, uint64_t sample, struct features *ret,
                         struct diag *d)
{
    struct one_sample one;
    int all = 0;

    one_sample_init(&one, sample);
    one.sel.rc = rc;
    one.sel.reason = d;
    ret->feature = calloc(plan->n + 1, sizeof(*ret->feature));
    if (!ret->feature)
        return -ENOMEM;
    for (size_t i = 0; i < plan->n; i++) {
        struct feature *x = &ret->feature[ret->n];
        int r;

        *x = (struct feature){.named = &plan->named[i], .f = &ds->field[plan->named[i].field]};
        if (!dataset_has(ds, sample, x->f))
            continue;
        ret->n++;
        r = tfrecord_find_feature(rc, ds, sample, &one.sel, x, d);
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}

/* ---- the bytes of a record ---- */

/* The sizes of the messages around the values of a feature, from inside. */
struct feature_sizes {
    uint64_t list, feature, entry, all;
};

static struct feature_sizes sizes_of(const struct feature *x)
{
    struct feature_sizes size = {0};
    uint64_t name = strlen(x->named->name);

    if (x->list == AS_BYTES || x->payload)
        size.list = 1 + varint_size(x->payload) + x->payload;
    size.feature = 1 + varint_size(size.list) + size.list;
    size.entry = 1 + varint_size(name) + name + 1 + varint_size(size.feature) + size.feature;
    size.all = 1 + varint_size(size.entry) + size.entry;
    return size;
}

/* All that is before the values. Returns its bytes. */
static size_t put_feature(const struct feature *x, uint8_t ret[static HEAD_SPACE])
{
    struct feature_sizes size = sizes_of(x);
    size_t name = strlen(x->named->name);
    uint8_t *at = ret;

    *at++ = 1 << 3 | 2; /* of Features: an entry of its map */
    at = put_varint(at, size.entry);
    *at++ = 1 << 3 | 2; /* the name */
    at = put_varint(at, name);
    memcpy(at, x->named->name, name);
    at += name;
    *at++ = 2 << 3 | 2; /* the Feature */
    at = put_varint(at, size.feature);
    *at++ = (uint8_t)(x->list << 3 | 2);
    at = put_varint(at, size.list);
    if (size.list) {
        *at++ = 1 << 3 | 2; /* its values */
        at = put_varint(at, x->payload);
    }
    return (size_t)(at - ret);
}

static uint64_t features_size(const struct features *x)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < x->n; i++)
        sum += sizes_of(&x->feature[i]).all;
    return sum;
}

/* Bytes of an Example of features of that size. */
static uint64_t example_size(uint64_t features)
{
    return 1 + varint_size(features) + features;
}

/* float32 of other floats; number[0]: their type. */
static int floats_read(struct read_context *rc, struct layout *l, const struct part *p,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    enum dtype dtype = (enum dtype)p->number[0];
    uint64_t width = dtype_info(dtype)->bytes, end = off + len;
    uint8_t stored[8 * FLOATS], bytes[4];
    int all = 0;

    for (uint64_t at = off / 4; at * 4 < end; at += FLOATS) {
        size_t n = (size_t)min_u64(FLOATS, ceil_div(end, 4) - at);
        int r = p->field->ops->read(rc, l->dataset, p->field, l->selection, at * width, n * width,
                                    stored, d);

        if (!missing_go_on(rc, r, &all))
            break;
        for (size_t i = 0; i < n && r == 0; i++) {
            float value = (float)dtype_real(dtype, stored + i * width);
            uint32_t bits;

            memcpy(&bits, &value, sizeof(bits));
            store_le32(bytes, bits);
            for (uint64_t k = 0; k < 4; k++)
                if ((at + i) * 4 + k >= off && (at + i) * 4 + k < end)
                    dst[(at + i) * 4 + k - off] = bytes[k];
        }
    }
    return all;
}

static uint32_t update_crc32c(uint32_t sum, uint64_t at, const uint8_t *bytes, size_t n)
{
    (void)at;
    return crc32c(sum, bytes, n);
}

/* The checksum of the data; number[0]: its bytes, number[1]: the slot. */
static int checksum_read(struct read_context *rc, struct layout *l, const struct part *p,
                         uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t bytes[4];
    uint32_t sum = 0;
    int r = layout_checksum(rc, l, RECORD_HEAD, p->number[0], (unsigned)p->number[1], 0,
                            update_crc32c, &sum, d);

    store_le32(bytes, crc32c_masked(sum));
    memcpy(dst, bytes + off, len);
    return r;
}

static int add_literal(struct layout *l, const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len + 1);

    if (copy)
        memcpy(copy, bytes, len);
    return layout_add_bytes(l, copy, len);
}

static int tfrecord_add_values(struct layout *l, struct feature *x)
{
    if (!x->payload)
        return 0;
    if (x->made)
        return layout_add_bytes(l, TAKE_PTR(x->made), (size_t)x->payload);
    if (x->list == AS_FLOATS && x->dtype != DTYPE_F4)
        return layout_add(l, &(struct part){.size = x->payload,
                                            .read = floats_read,
                                            .field = x->f,
                                            .number = {(uint64_t)x->dtype}});
    return layout_add_field(l, x->f);
}

/* Add a record; what is made of the features is taken. */
static int tfrecord_add_record(struct layout *l, struct features *x, unsigned slot)
{
    uint64_t features = features_size(x), data = example_size(features);
    uint8_t head[HEAD_SPACE], *at;
    int r;

    store_le64(head, data);
    store_le32(head + 8, crc32c_masked(crc32c(0, head, 8)));
    at = head + RECORD_HEAD;
    *at++ = 1 << 3 | 2; /* of Example: its Features */
    r = add_literal(l, head, (size_t)(put_varint(at, features) - head));
    for (size_t i = 0; i < x->n && r == 0; i++) {
        r = add_literal(l, head, put_feature(&x->feature[i], head));
        if (r == 0)
            r = tfrecord_add_values(l, &x->feature[i]);
    }
    return r < 0 ? r
                 : layout_add(
                       l, &(struct part){.size = 4, .read = checksum_read, .number = {data, slot}});
}

/* ---- the file ---- */

static struct plan_of_records plan_in(const struct part *p)
{
    uint64_t count = p->number[0];

    return (struct plan_of_records){(struct named *)(void *)(p->bytes + 8 * count),
                                    (size_t)p->number[1], (uint64_t *)(void *)p->bytes};
}

/* Write bytes [off, off + len) of the record of a sample, which has `size` bytes. */
static int record_read(struct read_context *rc, struct layout *l,
                       const struct plan_of_records *plan, uint64_t place, uint64_t sample,
                       uint64_t size, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_FEATURES struct features features = {0};
    AUTO_LAYOUT struct layout one = {0};
    struct one_sample sel;
    int r = find_features(rc, l->dataset, plan, sample, &features, d);

    if (r < 0)
        return r;
    one_sample_init(&sel, sample);
    sel.sel.rc = rc;
    sel.sel.reason = d;
    layout_init(&one, l->dataset, &sel.sel, l->host);
    r = tfrecord_add_record(&one, &features, (unsigned)place);
    if (r == 0 && one.size != size)
        return diag_set(d, -ESTALE,
                        "tfrecord: sample %llu: expected the integers that it had, got others: the "
                        "source was changed",
                        (unsigned long long)sample);
    return r < 0 ? r : layout_read(rc, &one, off, len, dst, d);
}

static int records_read(struct read_context *rc, struct layout *l, const struct part *p,
                        uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct plan_of_records plan = plan_in(p);
    struct sample_window window = {.sel = l->selection};
    uint64_t count = p->number[0];
    uint64_t place = search_last_up_to(plan.first, sizeof(*plan.first), (size_t)count, off);
    int all = 0;

    for (; len; place++) {
        uint64_t end = place + 1 < count ? plan.first[place + 1] : p->size;
        size_t n = (size_t)min_u64(len, end - off);
        int r = record_read(rc, l, &plan, place, sample_window_at(&window, place),
                            end - plan.first[place], off - plan.first[place], n, dst, d);

        if (!missing_go_on(rc, r, &all))
            break;
        off += n;
        dst += n;
        len -= n;
    }
    return all;
}

/* Find where each record begins. */
static int find_records(const struct layout *l, struct plan_of_records *plan, uint64_t *ret_size)
{
    const struct selection *sel = l->selection;
    struct sample_window window = {.sel = sel};
    uint64_t size = 0;
    int all = 0;

    for (uint64_t place = 0; place < sel->count; place++) {
        AUTO_FEATURES struct features features = {0};
        int r = place % LOOK_EVERY == 0 && read_cancelled(sel->rc) ? -EINTR : 0;

        if (r == 0)
            r = find_features(sel->rc, l->dataset, plan, sample_window_at(&window, place),
                              &features, sel->reason);
        if (!missing_go_on(sel->rc, r, &all))
            break;
        plan->first[place] = size;
        if (r == 0 &&
            !checked_add(size, example_size(features_size(&features)) + RECORD_HEAD + 4, &size))
            return -EFBIG;
    }
    *ret_size = size;
    return all;
}

static int tfrecord_layout(struct layout *l, const struct file_kind *file)
{
    const struct dataset *ds = l->dataset;
    uint64_t count = l->selection->count;
    size_t bytes = 2 * ds->n_fields * sizeof(struct named);
    struct part part = {.read = records_read, .number = {count}};
    AUTO_FREE uint8_t *memory = NULL;
    struct plan_of_records plan;
    int r;

    (void)file;
    if (count > MADE_MAX / 8)
        return diag_set(l->selection->reason, -EFBIG,
                        "tfrecord: expected at most %llu samples in a batch, got %llu: take a "
                        "smaller batch, or npz",
                        (unsigned long long)(MADE_MAX / 8), (unsigned long long)count);
    bytes += (size_t)count * 8;
    memory = calloc(1, bytes + 1);
    if (!memory)
        return -ENOMEM;
    part.bytes = memory;
    plan = plan_in(&part);
    tfrecord_name_features(ds, &plan);
    part.number[1] = plan.n;
    r = find_records(l, &plan, &part.size);
    if (r == 0)
        r = layout_add(l, &part);
    if (r < 0)
        return r;
    memory = NULL; /* the part's */
    l->held += bytes;
    return 0;
}

const struct encoder encoder_tfrecord = {
    .name = "tfrecord",
    .shows = SHOWS_CONTAINER,
    .in = {IN_NPZ_SAMPLES | IN_TAR, IN_NPZ_BATCHES | IN_TAR},
    .has_all = true,
    .layout = tfrecord_layout,
    .reads = true,
};
