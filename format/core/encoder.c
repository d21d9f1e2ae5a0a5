#include "format/core/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct offers {
    const struct encoder *encoder;
    unsigned n;
    struct file_kind kind[KINDS_MAX];
};

static int offer_named(struct offers *offers, const struct field *field, const char *name,
                       const char *ext)
{
    struct file_kind *kind;

    if (offers->n == KINDS_MAX)
        return -E2BIG;
    kind = &offers->kind[offers->n++];
    kind->encoder = offers->encoder;
    kind->field = field;
    snprintf(kind->suffix, sizeof(kind->suffix), "%s%s.%s", *name ? "." : "", name, ext);
    return 0;
}

int offer(struct offers *offers, const struct field *field, const char *ext)
{
    return offer_named(offers, field, field ? field->name : "", ext);
}

int offer_alone(struct offers *offers, const struct field *field, const char *ext)
{
    return offer_named(offers, field, field->unnamed ? "" : field->name, ext);
}

bool file_kind_is_mixed(const struct dataset *ds, const struct file_kind *kind)
{
    if (kind->field)
        return kind->field->mixed;
    if (!kind->encoder->all_arrays)
        return false;
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].mixed && field_is_in(&ds->field[i], IN_NPZ_BATCHES))
            return true;
    return false;
}

static int compare_kinds(const void *a, const void *b)
{
    return strcmp(((const struct file_kind *)a)->suffix, ((const struct file_kind *)b)->suffix);
}

static int folder_fill(struct folder *folder, const struct dataset *ds, enum scope scope,
                       struct offers *offers)
{
    int r;

    offers->encoder = folder->encoder;
    offers->n = 0;
    r = folder->encoder->offer(ds, scope, offers);
    if (r < 0 || !offers->n)
        return r;
    qsort(offers->kind, offers->n, sizeof(offers->kind[0]), compare_kinds);
    folder->kind[scope] = calloc(offers->n, sizeof(offers->kind[0]));
    if (!folder->kind[scope])
        return -ENOMEM;
    memcpy(folder->kind[scope], offers->kind, offers->n * sizeof(offers->kind[0]));
    folder->n_kinds[scope] = offers->n;
    return 0;
}

int dataset_fill_folders(struct dataset *ds, const struct encoder *const *encoders, unsigned n)
{
    AUTO_FREE struct offers *offers = calloc(1, sizeof(*offers));

    ds->folder = calloc(n, sizeof(*ds->folder));
    if (!offers || !ds->folder)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        struct folder *folder = &ds->folder[ds->n_folders++];

        folder->encoder = encoders[i];
        for (unsigned scope = 0; scope < N_SCOPES; scope++) {
            int r = folder_fill(folder, ds, (enum scope)scope, offers);

            if (r < 0)
                return r;
        }
        if (!folder->n_kinds[SCOPE_SAMPLES] && !folder->n_kinds[SCOPE_BATCHES])
            ds->n_folders--;
    }
    return 0;
}
