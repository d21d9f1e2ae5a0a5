/* A mix is made when all names are known, and is ready when its sources are: then its fields, the
 * table of its positions and the length of its epochs follow. */
#include "fs/tree/mixes.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "base/values.h"
#include "format/mix/mix.h"
#include "fs/tree/folder_scan.h"
#include "fs/tree/mix_lengths.h"
#include "fs/tree/tree.h"

#define MIX_FOLDER "" /* where mixes are shown: SOURCE itself */

/* ---- when the sources are ready ---- */

static int mixes_set_list(const struct mixture *m, const struct dataset *ds, unsigned i,
                          struct diag *d)
{
    struct mix_list *list = &m->order->list[i];
    const struct catalog catalog = {.tools = m->tools}; /* only= needs no more */
    struct plan_labels labels;
    struct diag reason = DIAG_INIT;
    int r;

    list->first = mix_dataset_first(ds, i);
    list->samples = m->ds[i]->samples;
    while ((r = tree_schedule(&catalog, m->ds[i], &m->spec->source[i].plan, &list->schedule,
                              &labels, &reason)) == -EAGAIN &&
           (r = list_labels_go_on(&m->tools->labels, &reason)) == 0)
        ; /* the thread that prepares datasets makes labels as well */
    if (r < 0)
        return diag_set(d, r, "mix %s: %s: %s", m->spec->name, m->shown[i], diag_text(&reason, r));
    if (!list->schedule.positions)
        return diag_set(d, -EINVAL, "mix %s: expected sources that have samples, got none in %s",
                        m->spec->name, m->shown[i]);
    return 0;
}

static int mixes_set_length(const struct mixture *m, struct diag *d)
{
    uint64_t passes[MIX_SOURCES_MAX];
    unsigned source = 0;
    int r;

    for (unsigned i = 0; i < m->order->n; i++)
        passes[i] = m->order->list[i].schedule.positions;
    r = mix_length(m->mix, passes, m->spec->end, m->spec->length, &m->order->length, &source);
    if (r == -EDOM)
        return diag_set(
            d, -EINVAL,
            "mix %s: expected an epoch that ends, got that %s rests for ever before all "
            "its samples were shown",
            m->spec->name, m->shown[source]);
    if (r < 0)
        return diag_set(d, -EINVAL, "mix %s: expected an epoch of at most 2^48 samples, got more",
                        m->spec->name);
    return 0;
}

static int mixture_ready(void *ctx, struct dataset *ds, struct diag *d)
{
    struct mixture *m = ctx;
    unsigned n = m->spec->n_sources;
    int r;

    mix_free(TAKE_PTR(m->mix));
    free(TAKE_PTR(m->order));
    m->order = calloc(1, sizeof(*m->order) + n * sizeof(m->order->list[0]));
    r = m->order ? mix_new(m->spec->weights, m->spec->n_stretches, n, &m->mix) : -ENOMEM;
    if (r < 0)
        return r;
    m->left_out = mix_dataset_left_out(ds);
    m->order->mix = m->mix;
    m->order->n = n;
    for (unsigned i = 0; i < n && r == 0; i++)
        r = mixes_set_list(m, ds, i, d);
    if (r == 0)
        r = mixes_set_length(m, d);
    if (r == 0)
        mix_order_set(m->order, &m->dataset_order);
    return r;
}

void mixture_free(struct mixture *mixture)
{
    if (!mixture)
        return;
    mix_free(mixture->mix);
    mix_lengths_free(mixture->lengths);
    lock_release(&mixture->lock);
    free(mixture->order);
    free(mixture->ds);
    free(mixture->shown);
    free(mixture->item);
    free(mixture);
}

/* ---- pages ---- */

static void describe_weights(const struct mix_spec *spec, const char *indent, struct text *t)
{
    text_add(t, "%s  \"weights\": [\n", indent);
    for (unsigned s = 0; s < spec->n_stretches; s++) {
        text_add(t, "%s    {\"position\": %llu, \"weights\": [", indent,
                 (unsigned long long)spec->weights[s].start);
        for (unsigned i = 0; i < spec->n_sources; i++)
            json_add_number(t, NULL, NULL, spec->weights[s].weight[i]);
        text_add(t, "]}%s\n", s + 1 < spec->n_stretches ? "," : "");
    }
    text_add(t, "%s  ],\n", indent);
}

static void mixes_describe(const void *ctx, const char *indent, struct text *t)
{
    const struct mixture *m = ctx;
    const struct mix_spec *spec = m->spec;

    text_add(t, "%s\"mix\": {\n%s", indent, indent);
    json_add_text(t, "  ", "text", spec->text);
    text_add(t, "%s  \"sources\": [\n", indent);
    for (unsigned i = 0; i < spec->n_sources; i++) {
        const struct mix_list *list = &m->order->list[i];
        const char *words = spec->source[i].shown + strlen(spec->source[i].name);

        text_add(t, "%s    {", indent);
        json_add_text(t, NULL, "dataset", spec->source[i].name);
        json_add_text(t, NULL, "words", words + (*words == ':'));
        json_add_number(t, NULL, "samples", list->schedule.positions);
        json_add_number(t, NULL, "first_sample", list->first);
        text_add(t, "}%s\n", i + 1 < spec->n_sources ? "," : "");
    }
    text_add(t, "%s  ],\n", indent);
    describe_weights(spec, indent, t);
    text_add(t, "%s  \"epoch_samples\": %llu,\n%s  \"fields_left_out\": ", indent,
             (unsigned long long)m->order->length, indent);
    text_add_json(t, m->left_out);
    text_add(t, "\n%s},\n", indent);
}

static void about(const void *ctx, struct text *t)
{
    const struct mixture *m = ctx;
    const struct mix_spec *spec = m->spec;

    text_add(t, "    mix      %s; %llu samples per epoch\n", spec->text,
             (unsigned long long)m->order->length);
    for (unsigned i = 0; i < spec->n_sources; i++)
        text_add(t, "    source   %u: %s, %llu samples\n", i, m->shown[i],
                 (unsigned long long)m->order->list[i].schedule.positions);
    if (*m->left_out)
        text_add(t, "    omitted  %s: not in all sources\n", m->left_out);
}

/* ---- making ---- */

static bool mixes_is_called(const struct catalog_item *item, const char *path)
{
    size_t len = strlen(item->folder);

    if (!len)
        return !strcmp(item->name, path);
    return !strncmp(item->folder, path, len) && path[len] == '/' &&
           !strcmp(item->name, path + len + 1);
}

static const struct mix_spec *mix_called(const struct options *options, const char *name)
{
    for (size_t i = 0; i < options->n_mixes; i++)
        if (!strcmp(options->mix[i].name, name))
            return &options->mix[i];
    return NULL;
}

static int unknown_source(const struct catalog *catalog, const struct mix_spec *spec,
                          const char *name, struct diag *d)
{
    char path[TREE_NAME_SIZE * 4];
    AUTO_TEXT struct text names = {0};
    size_t n = 0;

    for (size_t i = 0; i < catalog->n && n < 8; i++) {
        if (!catalog->item[i].ds || catalog->item[i].is_hidden || catalog->item[i].ds->unlisted)
            continue;
        item_path(&catalog->item[i], path, sizeof(path));
        text_add(&names, "%s%s", n++ ? ", " : "", path);
    }
    if (names.data)
        text_plain(names.data, "");
    return diag_set(
        d, -EINVAL,
        "option mix=%s=%.60s: expected names of datasets of SOURCE, such as %s; got '%s'",
        spec->name, spec->text, names.data ? names.data : "", name);
}

/* The item of a source. NULL with the reason in d: -EINVAL. */
static const struct catalog_item *find_source(const struct catalog *catalog,
                                              const struct options *options,
                                              const struct mix_spec *spec, unsigned number,
                                              struct diag *d)
{
    const char *name = spec->source[number].name;

    if (!strcmp(name, spec->name))
        diag_set(d, -EINVAL, "option mix=%s=%.60s: expected other datasets, got the mix itself",
                 spec->name, spec->text);
    else if (mix_called(options, name))
        diag_set(
            d, -EINVAL,
            "option mix=%s=%.60s: expected datasets of SOURCE, got '%s', which is a mix; write its "
            "sources here, with their weights multiplied",
            spec->name, spec->text, name);
    for (size_t i = 0; i < catalog->n && !d->set; i++)
        if (mixes_is_called(&catalog->item[i], name))
            return &catalog->item[i];
    if (!d->set)
        unknown_source(catalog, spec, name, d);
    return NULL;
}

static int mixture_new(const struct mix_spec *spec, struct mixture **ret)
{
    struct mixture *m = calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    m->spec = spec;
    m->left_out = "";
    lock_init(&m->lock);
    m->ds = calloc(spec->n_sources, sizeof(struct dataset *));
    m->shown = calloc(spec->n_sources, sizeof(*m->shown));
    m->item = calloc(spec->n_sources, sizeof(*m->item));
    if (!m->ds || !m->shown || !m->item) {
        mixture_free(m);
        return -ENOMEM;
    }
    *ret = m;
    return 0;
}

static int mixes_add_error(struct catalog *catalog, const struct mix_spec *spec, const char *reason)
{
    return folder_scan_add(catalog, NULL, MIX_FOLDER, spec->name, NULL, reason);
}

/* Add the dataset, or why there is none. Takes over m. */
static int add_mixture(struct catalog *catalog, struct mixture *m)
{
    AUTO_DATASET struct dataset *ds = NULL;
    const struct mix_setup setup = {
        .name = m->spec->name,
        .ds = m->ds,
        .shown = m->shown,
        .n = m->spec->n_sources,
        .memo = catalog->tools->setup.memo,
        .ready = mixture_ready,
        .describe = mixes_describe,
        .about = about,
        .ctx = m,
    };
    bool is_ready = true;
    int r = mix_dataset_new(&setup, &ds);

    m->tools = catalog->tools;
    for (unsigned i = 0; i < setup.n; i++)
        is_ready = is_ready && dataset_state(m->ds[i]) == DATASET_READY;
    if (r == 0 && is_ready)
        dataset_prepare(ds);
    if (r == 0 && dataset_state(ds) == DATASET_FAILED)
        r = mixes_add_error(catalog, m->spec, ds->reason.text);
    else if (r == 0)
        r = folder_scan_add(catalog, NULL, MIX_FOLDER, m->spec->name, TAKE_PTR(ds), NULL);
    if (r == 0 && catalog->item[catalog->n - 1].ds) {
        catalog->item[catalog->n - 1].mixture = m;
        return 0;
    }
    dataset_free(TAKE_PTR(ds));
    mixture_free(m);
    return r;
}

static int add_mix(struct catalog *catalog, const struct options *options,
                   const struct mix_spec *spec, struct diag *d)
{
    struct mixture *m = NULL;
    int r = mixture_new(spec, &m);

    for (unsigned i = 0; i < spec->n_sources && r == 0; i++) {
        const struct catalog_item *item = find_source(catalog, options, spec, i, d);

        m->shown[i] = spec->source[i].shown;
        if (!item) {
            r = -EINVAL;
        } else if (!item->ds) {
            struct diag reason = DIAG_INIT;

            diag_set(&reason, 0, "mix %s: %s cannot be used: %s", spec->name, m->shown[i],
                     item->error);
            r = mixes_add_error(catalog, spec, reason.text);
            mixture_free(m);
            return r;
        } else {
            m->ds[i] = item->ds;
        }
    }
    if (r < 0) {
        mixture_free(m);
        return r;
    }
    return add_mixture(catalog, m);
}

int mixes_add(struct catalog *catalog, const struct options *options, struct diag *d)
{
    int r = 0;

    for (size_t i = 0; i < options->n_mixes && r == 0; i++)
        r = add_mix(catalog, options, &options->mix[i], d);
    return r;
}

void mixes_number_items(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->n; i++) {
        struct mixture *m = catalog->item[i].mixture;

        for (unsigned k = 0; m && k < m->spec->n_sources; k++)
            for (size_t at = 0; at < catalog->n; at++)
                if (catalog->item[at].ds == m->ds[k]) {
                    catalog->item[at].is_part = true;
                    m->item[k] = at;
                }
    }
}

void mixture_epoch(const struct mixture *mixture, uint64_t positions, double part,
                   uint64_t *ret_places, double *ret_bytes, double *ret_shown)
{
    double shown = 0;

    *ret_places = 0;
    *ret_bytes = 0;
    for (unsigned i = 0; i < mixture->order->n; i++) {
        uint64_t places = mixture->order->list[i].schedule.positions;
        const struct dataset *ds = mixture->ds[i];
        double times = (double)mix_count(mixture->mix, i, positions) / (double)places, each = 0;

        for (unsigned k = 0; k < ds->n_blobs; k++)
            each += (double)ds->blob[k]->size / (double)ds->samples;
        *ret_places += places;
        *ret_bytes += (double)places * each;
        /* A place that comes once at most is in the part or not; of one that comes several times,
         * each time may be. */
        shown += (times <= 1 ? times * part : 1 - pow(1 - part, times)) * (double)places * each;
    }
    *ret_shown = *ret_bytes > 0 ? shown / *ret_bytes * (double)*ret_places : 0;
}

int mixture_check_plan(const struct mixture *mixture, const struct plan *plan, struct diag *d)
{
    const char *word = plan_word_not_in_mix(plan);
    AUTO_TEXT struct text words = {0};

    if (!word)
        return 0;
    plan_source_words(&words, " and ");
    return diag_set(d, -EINVAL,
                    "%s= is not for plans of a mix, which has an order of its own; %s can be said "
                    "of a source, as in mix=%s=%s:take=0:80%%*1",
                    word, words.data ? words.data : "others", mixture->spec->name,
                    mixture->spec->source[0].name);
}
