#include "format/mix/mix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "format/core/encoder.h"
#include "format/core/format.h"
#include "format/mix/parts.h"

#define PREFIX_MAX 8 /* bytes of the number of a source and what separates it */

uint64_t mix_dataset_first(const struct dataset *ds, unsigned source)
{
    return mix_set_of(ds)->first[source];
}

const char *mix_dataset_left_out(const struct dataset *ds)
{
    const char *names = mix_set_of(ds)->left_out.data;

    return names ? names : "";
}

/* ---- preparing ---- */

/* 1: the source is ready. */
static int prepare_source(const struct mix_set *set, unsigned i, struct diag *d)
{
    struct dataset *ds = set->setup.ds[i];

    if (!dataset_prepare(ds))
        return ds->retry.state == RETRY_PAUSES ? diag_set(d, -EREMOTEIO, "%s", ds->trouble.text)
                                               : 0;
    if (dataset_state(ds) == DATASET_FAILED)
        return diag_set(d, ds->failed, "mix %s: %s cannot be used: %s", set->setup.name,
                        set->setup.shown[i], ds->reason.text);
    if (!ds->samples)
        return diag_set(d, -EINVAL, "mix %s: expected sources that have samples, got none in %s",
                        set->setup.name, set->setup.shown[i]);
    return 1;
}

static int mix_count_samples(struct mix_set *set, struct diag *d)
{
    for (unsigned i = 0; i < set->setup.n; i++)
        if (!checked_add(set->first[i], set->setup.ds[i]->samples, &set->first[i + 1]) ||
            set->first[i + 1] > INT64_MAX)
            return diag_set(d, -EINVAL, "mix %s: its sources have too many samples",
                            set->setup.name);
    return 0;
}

static int mix_prepare(struct dataset *ds, struct diag *d)
{
    struct mix_set *set = mix_set_of(ds);
    int r = 1;

    for (unsigned i = 0; i < set->setup.n && r == 1; i++)
        r = prepare_source(set, i, d);
    if (r != 1)
        return r;
    for (unsigned i = 0; i < set->setup.n; i++)
        ds->denied |= set->setup.ds[i]->denied;
    r = mix_count_samples(set, d);
    if (r == 0 && !set->has_fields) { /* ready() may have asked to be called again */
        r = mix_fields_make(ds, d);
        set->has_fields = r == 0;
        mix_offer_pictures(ds);
    }
    if (r == 0)
        r = set->setup.ready(set->setup.ctx, ds, d);
    return r < 0 ? r : 1;
}

/* ---- samples ---- */

static uint64_t mix_number_of(const struct dataset *ds, uint64_t sample)
{
    return mix_origin_of(ds, NULL, sample).sample;
}

static size_t mix_key(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE])
{
    const struct mix_origin o = mix_origin_of(ds, NULL, sample);
    char prefix[PREFIX_MAX];
    uint8_t key[KEY_SIZE];
    size_t n = (size_t)snprintf(prefix, sizeof(prefix), "%u-", o.source);
    size_t len = dataset_key(o.ds, o.sample, key);

    memcpy(ret, prefix, n);
    memcpy(ret + n, key, len);
    return n + len;
}

/* The name in the source, with the number of the source in front; where that is too long, the
 * sample's number: "%~" is in no name that is not cut. */
static size_t mix_name(const struct dataset *ds, uint64_t sample, bool dots,
                       char ret[static KEY_NAME_SIZE])
{
    const struct mix_origin o = mix_origin_of(ds, NULL, sample);
    char name[KEY_NAME_SIZE];
    size_t len = dataset_name(o.ds, o.sample, dots, name);

    if (decimal_digits(o.source) + 1 + len <= KEY_NAME_MAX)
        return (size_t)snprintf(ret, KEY_NAME_SIZE, "%u-%s", o.source, name);
    return (size_t)snprintf(ret, KEY_NAME_SIZE, "%u-%%~%llu", o.source,
                            (unsigned long long)o.sample);
}

static bool mix_find(const struct dataset *ds, const char *name, size_t len, uint64_t *ret)
{
    const struct mix_set *set = mix_set_of(ds);
    char again[KEY_NAME_SIZE];
    uint64_t i, sample;
    size_t n = number_parse(name, len, set->setup.n - 1, &i);

    if (!n || n >= len || name[n++] != '-')
        return false;
    if (!(len - n > 2 && !memcmp(name + n, "%~", 2) &&
          number_parse(name + n + 2, len - n - 2, UINT64_MAX, &sample) == len - n - 2) &&
        !dataset_find(set->setup.ds[i], name + n, len - n, &sample))
        return false;
    if (sample >= set->setup.ds[i]->samples)
        return false;
    sample += set->first[i];
    if (mix_name(ds, sample, false, again) != len || memcmp(again, name, len) != 0)
        return false;
    *ret = sample;
    return true;
}

static bool mix_has(const struct dataset *ds, uint64_t sample, const struct field *field)
{
    const struct mix_origin o = mix_origin_of(ds, field->impl, sample);

    return !o.field || dataset_has(o.ds, o.sample, o.field);
}

static void mix_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                       struct text *t)
{
    const struct mix_origin o = mix_origin_of(ds, only ? only->impl : NULL, sample);

    dataset_locate(o.ds, o.sample, o.field, t);
}

/* For all fields, those that the mix shows. */
static unsigned mix_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                            struct extent *ret)
{
    const struct mix_set *set = mix_set_of(ds);
    const struct mix_origin o = mix_origin_of(ds, only ? only->impl : NULL, sample);
    struct extent extent[EXTENTS_MOST];
    unsigned n = 0;

    if (only && (!o.field || only->form == FORM_LENGTHS || only->form == FORM_OFFSETS))
        return 0;
    if (only)
        return dataset_extents(o.ds, o.sample, o.field, ret);
    for (unsigned c = 0; c < set->n_columns; c++) {
        unsigned some = dataset_extents(o.ds, o.sample, set->column[c].field[o.source], extent);

        for (unsigned k = 0; k < some && n < EXTENTS_MOST; k++)
            ret[n++] = extent[k];
    }
    return n;
}

static bool mix_copy(const struct dataset *ds, uint64_t sample, const struct field *field,
                     struct extent *ret)
{
    const struct mix_origin o = mix_origin_of(ds, field->impl, sample);

    return o.field && dataset_copy(o.ds, o.sample, o.field, ret);
}

/* ---- the dataset ---- */

static int mix_check(const struct dataset *ds, void (*report)(void *ctx, const char *text),
                     void *ctx, struct diag *d)
{
    (void)ds; /* its sources are checked as datasets of their own */
    (void)report;
    (void)ctx;
    (void)d;
    return 0;
}

static void mix_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct mix_set *set = mix_set_of(ds);

    set->setup.describe(set->setup.ctx, indent, t);
}

static void mix_about(const struct dataset *ds, struct text *t)
{
    const struct mix_set *set = mix_set_of(ds);

    set->setup.about(set->setup.ctx, t);
}

static int mix_identity(const struct dataset *ds, struct text *t)
{
    const struct mix_setup *setup = &mix_set_of(ds)->setup;
    int r = 0;

    for (unsigned i = 0; i < setup->n && r == 0; i++) {
        const struct dataset *source = setup->ds[i];

        text_add(t, " source %s %llu", setup->shown[i], (unsigned long long)source->samples);
        r = source->ops && source->ops->identity ? source->ops->identity(source, t) : 0;
    }
    return r;
}

static void mix_set_free(struct dataset *ds)
{
    struct mix_set *set = ds->impl;

    ds->n_blobs = 0; /* the sources own them */
    mix_columns_free(set);
    free(set->first);
    text_release(&set->left_out);
    free(set);
}

#define MIX_OPS                                                                                    \
    .prepare = mix_prepare, .check = mix_check, .describe = mix_describe, .about = mix_about,      \
    .locate = mix_locate, .extents = mix_extents, .copy = mix_copy, .free = mix_set_free,          \
    .has = mix_has, .number = mix_number_of, .key = mix_key, .name = mix_name, .find = mix_find,   \
    .identity = mix_identity, .walks = true

static const struct dataset_ops mix_ops = {MIX_OPS};
static const struct dataset_ops mix_ops_checking = {MIX_OPS, .checks_reads = true};

static const struct format format_mix = {
    .name = "mix",
    .title = "several datasets",
    .example = "  batch = np.load(root + '/batches/batch=128,seed=7/epoch=0/npz/000000.npz')\n"
               "  batch['source']                           # which source each sample is from\n"};

static bool all_check_reads(const struct mix_setup *setup)
{
    for (unsigned i = 0; i < setup->n; i++)
        if (!setup->ds[i]->ops || !setup->ds[i]->ops->checks_reads)
            return false;
    return true;
}

bool mix_dataset_is(const struct dataset *ds)
{
    return ds->format == &format_mix;
}

/* The folders that all sources have. */
static int mix_name_folders(struct dataset *ds, const struct mix_setup *setup)
{
    const char *names[FOLDERS_MAX];
    unsigned n = 0;

    for (unsigned i = 0; i < setup->ds[0]->n_folders; i++) {
        const char *name = setup->ds[0]->folder[i].name;
        unsigned k = 1;

        while (k < setup->n && dataset_has_folder(setup->ds[k], name))
            k++;
        if (k == setup->n)
            names[n++] = name;
    }
    return dataset_name_folders(ds, names, n);
}

static size_t count_blobs(const struct mix_setup *setup)
{
    size_t n = 0;

    for (unsigned i = 0; i < setup->n; i++)
        n += setup->ds[i]->n_blobs;
    return n;
}

static bool came_before(const struct mix_setup *setup, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (setup->ds[k] == setup->ds[i])
            return true;
    return false;
}

int mix_dataset_new(const struct mix_setup *setup, struct dataset **ret)
{
    struct mix_set *set = calloc(1, sizeof(*set));
    AUTO_DATASET struct dataset *ds = NULL;
    int r = dataset_new(&format_mix, all_check_reads(setup) ? &mix_ops_checking : &mix_ops, set, 1,
                        count_blobs(setup), &ds);

    if (r < 0)
        return r;
    set->setup = *setup;
    set->first = calloc(setup->n + 1u, sizeof(*set->first));
    if (!set->first)
        return -ENOMEM;
    for (unsigned i = 0; i < setup->n; i++)
        for (unsigned k = 0; k < setup->ds[i]->n_blobs && !came_before(setup, i); k++)
            ds->blob[ds->n_blobs++] = setup->ds[i]->blob[k];
    ds->shares_blobs = true;
    ds->memo = setup->memo;
    r = mix_name_folders(ds, setup);
    if (r == 0)
        *ret = TAKE_PTR(ds);
    return r;
}
