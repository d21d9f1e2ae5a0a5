#include "format/core/dataset.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/number.h"
#include "format/core/encoder.h"
#include "format/core/plan_fields.h"
#include "format/index/index.h"

#define FIELDS_INSERTED 2 /* at most, by dataset_insert_field() */

void dataset_free_folders(struct dataset *ds)
{
    for (unsigned i = 0; i < ds->n_folders; i++)
        for (unsigned scope = 0; scope < N_SCOPES; scope++)
            free(ds->folder[i].files[scope]);
    free(ds->folder);
    ds->folder = NULL;
    ds->n_folders = 0;
}

int dataset_new(const struct format *format, const struct dataset_ops *ops, void *impl,
                size_t fields, size_t blobs, struct dataset **ret)
{
    struct dataset *ds = calloc(1, sizeof(*ds));

    if (!ds || (ops && !impl)) {
        free(ds);
        free(impl);
        return -ENOMEM;
    }
    ds->format = format;
    ds->ops = ops;
    ds->impl = impl;
    atomic_store(&ds->state, ops && ops->prepare ? DATASET_PREPARING : DATASET_READY);
    ds->label = "label";
    ds->field = calloc(fields + FIELDS_INSERTED, sizeof(*ds->field));
    ds->blob = calloc(blobs, sizeof(struct blob *));
    if (!ds->field || !ds->blob) {
        dataset_free(ds);
        return -ENOMEM;
    }
    *ret = ds;
    return 0;
}

void dataset_free(struct dataset *ds)
{
    if (!ds)
        return;
    if (ds->ops && ds->ops->free)
        ds->ops->free(ds);
    else
        free(ds->impl);
    for (unsigned i = 0; i < ds->n_fields; i++)
        free(ds->field[i].dim);
    free(ds->field);
    for (unsigned i = 0; i < ds->n_blobs; i++)
        blob_free(ds->blob[i]);
    free(ds->blob);
    free(ds->wanted_label);
    free(ds->class_names);
    dataset_free_folders(ds);
    plan_fields_free(ds->plan_fields);
    notes_release(&ds->notes);
    missing_parts_release(&ds->missing);
    free(ds);
}

/* r: of its last step. */
static void settle(struct dataset *ds, int r)
{
    if (r < 0)
        ds->failed = diag_set(&ds->reason, r, "cannot be prepared: %s", strerror(-r));
    atomic_store_explicit(&ds->state, r < 0 ? DATASET_FAILED : DATASET_READY, memory_order_release);
}

bool dataset_give_up(struct dataset *ds)
{
    bool ends = retry_give_up(&ds->retry);

    if (ends) {
        ds->reason = ds->trouble;
        settle(ds, -EREMOTEIO);
    }
    return ends;
}

int dataset_prepare(struct dataset *ds)
{
    int r;

    if (dataset_state(ds) != DATASET_PREPARING)
        return 1;
    r = ds->ops->prepare(ds, &ds->reason);
    if (r == 1 && ds->finish)
        r = ds->finish(ds, ds->finish_ctx) < 0 ? -ENOMEM : 1;
    retry_step(&ds->retry, r, monotonic_ns());
    if (ds->retry.state == RETRY_GOES_ON)
        return 0;
    if (ds->retry.state == RETRY_PAUSES) {
        ds->trouble = DIAG_INIT;
        diag_set(&ds->trouble, r, "%s", diag_text(&ds->reason, r));
        ds->reason.set = false;
        return 0;
    }
    settle(ds, r);
    return 1;
}

void dataset_set_samples(struct dataset *ds, uint64_t samples)
{
    ds->samples = samples;
    ds->key_digits = decimal_digits(samples ? samples - 1 : 0);
    ds->key_digits = ds->key_digits < 6 ? 6 : ds->key_digits;
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].ops == &field_key)
            ds->field[i].width = ds->field[i].item_bytes = ds->key_digits;
}

void dataset_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                    struct text *t)
{
    if (only && only->base_field)
        only = only->base_field;
    if (ds->ops && ds->ops->locate) {
        ds->ops->locate(ds, sample, only, t);
        return;
    }
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];
        const struct blob *blob;
        uint64_t off;

        if ((only && only != f) || !f->blob || f->derived)
            continue;
        blob = field_place(f, sample, &off);
        text_add(t, "%s%s:%llu+%llu", t->len ? "," : "", blob_name(blob), (unsigned long long)off,
                 (unsigned long long)f->stored_bytes);
    }
}

bool dataset_has(const struct dataset *ds, uint64_t sample, const struct field *field)
{
    return !ds->ops || !ds->ops->has || ds->ops->has(ds, sample, field);
}

int dataset_make_fields(struct dataset *ds, size_t n)
{
    struct field *field = calloc(n + FIELDS_INSERTED, sizeof(*field));

    assert(!ds->n_fields);
    if (!field)
        return -ENOMEM;
    free(ds->field);
    ds->field = field;
    return 0;
}

void dataset_fit_fields(struct dataset *ds)
{
    struct field *fit = realloc(ds->field, ((size_t)ds->n_fields + FIELDS_INSERTED) * sizeof(*fit));

    ds->field = fit ? fit : ds->field;
}

struct field *dataset_insert_field(struct dataset *ds)
{
    unsigned at = ds->n_fields;

    while (at && ds->field[at - 1].numbering)
        at--;
    memmove(&ds->field[at + 1], &ds->field[at], (ds->n_fields - at) * sizeof(*ds->field));
    ds->n_fields++;
    ds->field[at] = (struct field){.name = ""};
    return &ds->field[at];
}

const struct field *dataset_field(const struct dataset *ds, const char *name)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (!strcmp(ds->field[i].name, name))
            return &ds->field[i];
    return NULL;
}

size_t dataset_key(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE])
{
    size_t len = max_u64(ds->key_digits, decimal_digits(sample));

    if (ds->ops && ds->ops->key)
        return ds->ops->key(ds, sample, ret);
    if (ds->keys)
        return index_key(ds->keys, sample, ret);
    for (size_t i = len; i-- > 0; sample /= 10)
        ret[i] = (uint8_t)('0' + sample % 10);
    return len;
}

size_t dataset_name(const struct dataset *ds, uint64_t sample, bool dots,
                    char ret[static KEY_NAME_SIZE])
{
    uint8_t key[KEY_SIZE];
    size_t len;

    if (ds->ops && ds->ops->name)
        return ds->ops->name(ds, sample, dots, ret);
    len = dataset_key(ds, sample, key);
    return key_name(key, len, dots, ret);
}

/* A cut name, and the dataset in which to find its sample. */
struct cut_name {
    const struct dataset *ds;
    const char *name;
    size_t len;
};

static bool has_name(void *ctx, uint64_t sample)
{
    const struct cut_name *sought = ctx;
    char name[KEY_NAME_SIZE];

    return dataset_name(sought->ds, sample, false, name) == sought->len &&
           !memcmp(name, sought->name, sought->len);
}

/* The sample whose key has that name. A name that is cut has the key's hash. */
static bool find_key(const struct dataset *ds, const char *name, size_t len, uint64_t *ret)
{
    struct cut_name sought = {ds, name, len};
    uint8_t key[KEY_NAME_SIZE];
    char again[KEY_NAME_SIZE];
    size_t key_len;
    uint64_t hash;

    if (len > KEY_NAME_MAX)
        return false;
    if (key_name_is_cut(name, len, &hash))
        return index_find_hash(ds->keys, hash, has_name, &sought, ret);
    return key_of_name(name, len, key, &key_len) && key_name(key, key_len, false, again) == len &&
           index_find(ds->keys, key, key_len, ret);
}

bool dataset_find(const struct dataset *ds, const char *name, size_t len, uint64_t *ret)
{
    if (ds->ops && ds->ops->find)
        return ds->ops->find(ds, name, len, ret);
    if (ds->keys)
        return find_key(ds, name, len, ret);
    return padded_number_parse(name, len, ds->key_digits, ret) && *ret < ds->samples;
}
