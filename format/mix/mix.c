#include "format/mix/mix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/search.h"
#include "format/core/encoder.h"
#include "format/core/format.h"
#include "format/mix/parts.h"

#define PREFIX_MAX 8 /* bytes of the number of a source and what separates it */

unsigned mix_dataset_find(const struct dataset *ds, uint64_t sample, uint64_t *ret_own)
{
    const struct mix_set *set = mix_set_of(ds);
    unsigned i = (unsigned)search_last_up_to(set->first, sizeof(*set->first), set->setup.n, sample);

    *ret_own = sample - set->first[i];
    return i;
}

uint64_t mix_dataset_first(const struct dataset *ds, unsigned source)
{
    return mix_set_of(ds)->first[source];
}

const char *mix_dataset_left_out(const struct dataset *ds)
{
    const char *names = mix_set_of(ds)->left_out.data;

    return names ? names : "";
}

static const struct dataset *origin(const struct dataset *ds, uint64_t sample, uint64_t *ret_own)
{
    return mix_set_of(ds)->setup.ds[mix_dataset_find(ds, sample, ret_own)];
}

/* The field of the sample's source that the field of the mix shows; NULL: none does. */
static const struct field *field_of(const struct dataset *ds, uint64_t sample,
                                    const struct field *f)
{
    uint64_t own;

    return f->impl ? mix_column_of(ds, f->impl)->field[mix_dataset_find(ds, sample, &own)] : NULL;
}

/* ---- preparing ---- */

/* 1: the source is ready. */
static int prepare_source(const struct mix_set *set, unsigned i, struct diag *d)
{
    struct dataset *ds = set->setup.ds[i];

    if (!dataset_prepare(ds))
        return ds->trouble.set ? diag_set(d, -EREMOTEIO, "%s", ds->trouble.text) : 0;
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
    }
    if (r == 0)
        r = set->setup.ready(set->setup.ctx, ds, d);
    return r < 0 ? r : 1;
}

/* ---- samples ---- */

static uint64_t mix_number_of(const struct dataset *ds, uint64_t sample)
{
    uint64_t own;

    mix_dataset_find(ds, sample, &own);
    return own;
}

static size_t mix_key(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE])
{
    char prefix[PREFIX_MAX];
    uint8_t key[KEY_SIZE];
    uint64_t own;
    unsigned i = mix_dataset_find(ds, sample, &own);
    size_t n = (size_t)snprintf(prefix, sizeof(prefix), "%u-", i);
    size_t len = dataset_key(mix_set_of(ds)->setup.ds[i], own, key);

    memcpy(ret, prefix, n);
    memcpy(ret + n, key, len);
    return n + len;
}

/* The name in the source, with the number of the source in front; where that is too long, the
 * sample's number: "%~" is in no name that is not cut. */
static size_t mix_name(const struct dataset *ds, uint64_t sample, bool dots,
                       char ret[static KEY_NAME_SIZE])
{
    char name[KEY_NAME_SIZE];
    uint64_t own;
    unsigned i = mix_dataset_find(ds, sample, &own);
    size_t len = dataset_name(mix_set_of(ds)->setup.ds[i], own, dots, name);

    if (decimal_digits(i) + 1 + len <= KEY_NAME_MAX)
        return (size_t)snprintf(ret, KEY_NAME_SIZE, "%u-%s", i, name);
    return (size_t)snprintf(ret, KEY_NAME_SIZE, "%u-%%~%llu", i, (unsigned long long)own);
}

static bool mix_find(const struct dataset *ds, const char *name, size_t len, uint64_t *ret)
{
    const struct mix_set *set = mix_set_of(ds);
    char again[KEY_NAME_SIZE];
    uint64_t i, own, sample;
    size_t n = number_parse(name, len, set->setup.n - 1, &i);

    if (!n || n >= len || name[n++] != '-')
        return false;
    if (len - n > 2 && !memcmp(name + n, "%~", 2) &&
        number_parse(name + n + 2, len - n - 2, UINT64_MAX, &own) == len - n - 2)
        sample = own;
    else if (!dataset_find(set->setup.ds[i], name + n, len - n, &sample))
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
    uint64_t own;
    const struct dataset *of = origin(ds, sample, &own);
    const struct field *f = field_of(ds, sample, field);

    return !f || dataset_has(of, own, f);
}

static void mix_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                       struct text *t)
{
    uint64_t own;
    const struct dataset *of = origin(ds, sample, &own);

    dataset_locate(of, own, only ? field_of(ds, sample, only) : NULL, t);
}

static bool counts(const struct field *f)
{
    return f->form == FORM_LENGTHS || f->form == FORM_OFFSETS;
}

/* Of all fields, those that the mix shows. */
static unsigned mix_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                            struct extent *ret)
{
    const struct mix_set *set = mix_set_of(ds);
    struct extent extent[EXTENTS_MOST];
    uint64_t own;
    const struct dataset *of = origin(ds, sample, &own);
    const struct field *f = only && !counts(only) ? field_of(ds, sample, only) : NULL;
    unsigned i = mix_dataset_find(ds, sample, &own), n = 0;

    if (only)
        return f ? dataset_extents(of, own, f, ret) : 0;
    for (unsigned c = 0; c < set->n_columns; c++) {
        unsigned some = dataset_extents(of, own, set->column[c].field[i], extent);

        for (unsigned k = 0; k < some && n < EXTENTS_MOST; k++)
            ret[n++] = extent[k];
    }
    return n;
}

static bool mix_copy(const struct dataset *ds, uint64_t sample, const struct field *field,
                     struct extent *ret)
{
    uint64_t own;
    const struct dataset *of = origin(ds, sample, &own);
    const struct field *f = field_of(ds, sample, field);

    return f && dataset_copy(of, own, f, ret);
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
        const struct dataset *of = setup->ds[i];

        text_add(t, " source %s %llu", setup->shown[i], (unsigned long long)of->samples);
        r = of->ops && of->ops->identity ? of->ops->identity(of, t) : 0;
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
        bool in_all = true;

        for (unsigned k = 1; k < setup->n; k++) {
            bool found = false;

            for (unsigned m = 0; m < setup->ds[k]->n_folders; m++)
                found = found || !strcmp(setup->ds[k]->folder[m].name, name);
            in_all = in_all && found;
        }
        if (in_all)
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
