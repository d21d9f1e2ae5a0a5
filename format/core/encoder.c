#include "format/core/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "format/core/plan_fields.h"

struct offers {
    const char *folder;
    const struct encoder *encoder;
    unsigned n;
    struct file_kind files[KINDS_MAX];
};

static int offer_named(struct offers *offers, const struct field *field, const char *name,
                       const char *ext)
{
    struct file_kind *file = &offers->files[offers->n];
    int len;

    if (offers->n == KINDS_MAX)
        return -E2BIG;
    *file = (struct file_kind){.folder = offers->folder, .encoder = offers->encoder};
    file->field = field;
    len = snprintf(file->suffix, sizeof(file->suffix), "%s%s.%s", *name ? "." : "", name, ext);
    if (len < 0 || (size_t)len >= sizeof(file->suffix))
        return -E2BIG;
    offers->n++;
    return 0;
}

static bool is_offered(const struct encoder *encoder, enum scope scope, const struct field *f)
{
    return f && field_is_in(f, encoder->in[scope]) && (!encoder->fits || encoder->fits(f));
}

static int offer_encoded(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    const struct encoder *encoder = offers->encoder;
    const char *ext = encoder->ext ? encoder->ext : encoder->name;
    bool makes = scope == SCOPE_PICTURES;
    unsigned i = 0, n = plan_fields_count(ds, makes, NULL);
    int r = 0;

    while (i < n && !is_offered(encoder, scope, plan_fields_at(ds, makes, NULL, i)))
        i++;
    if (i == n)
        return 0;
    if (encoder->has_all)
        return offer_named(offers, NULL, "", ext);
    for (i = 0; i < n && r == 0; i++) {
        const struct field *f = plan_fields_at(ds, makes, NULL, i);

        if (is_offered(encoder, scope, f))
            r = offer_named(offers, f, f->name, ext);
        else if (f && encoder->has_labels && field_is_in(f, IN_CLS))
            r = offer_named(offers, f, f->name, "cls");
    }
    return r;
}

/* ---- files that are a field's bytes ---- */

static int bytes_layout(struct layout *l, const struct file_kind *file)
{
    return layout_add_field(l, file->field);
}

static const struct encoder encoder_bytes = {.shows = SHOWS_CONTAINER, .layout = bytes_layout};

bool file_kind_is_stored(const struct file_kind *file)
{
    return file->encoder == &encoder_bytes || file->encoder->shows == SHOWS_STORED;
}

static int offer_bytes(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    unsigned in = scope == SCOPE_SAMPLES ? IN_FILE_SAMPLES : IN_FILE_BATCHES;
    int r = 0;

    offers->encoder = &encoder_bytes;
    for (unsigned i = 0; i < ds->n_fields && r == 0; i++) {
        const struct field *f = &ds->field[i];

        if (field_is_in(f, in) && !strcmp(f->folder, offers->folder))
            r = offer_named(offers, f, f->unnamed ? "" : f->name, f->ext);
    }
    return r;
}

bool file_kind_is_mixed(const struct dataset *ds, const struct file_kind *file)
{
    if (file->field)
        return file->field->mixed;
    if (!file->encoder->all_arrays)
        return false;
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].mixed && field_is_in(&ds->field[i], IN_NPZ_BATCHES))
            return true;
    return false;
}

static int encoder_compare_suffixes(const void *a, const void *b)
{
    return strcmp(((const struct file_kind *)a)->suffix, ((const struct file_kind *)b)->suffix);
}

/* encoder: NULL for a folder of bytes alone. */
static int folder_fill(struct folder *folder, const struct dataset *ds,
                       const struct encoder *encoder, enum scope scope, struct offers *offers)
{
    int r = 0;

    offers->folder = folder->name;
    offers->encoder = encoder;
    offers->n = 0;
    if (encoder && (scope != SCOPE_PICTURES || ds->plan_fields))
        r = offer_encoded(ds, scope, offers);
    if (r == 0 && scope != SCOPE_PICTURES)
        r = offer_bytes(ds, scope, offers);
    free(folder->files[scope]);
    folder->files[scope] = NULL;
    folder->n_kinds[scope] = 0;
    if (r < 0 || !offers->n)
        return r;
    qsort(offers->files, offers->n, sizeof(offers->files[0]), encoder_compare_suffixes);
    folder->files[scope] = calloc(offers->n, sizeof(offers->files[0]));
    if (!folder->files[scope])
        return -ENOMEM;
    memcpy(folder->files[scope], offers->files, offers->n * sizeof(offers->files[0]));
    folder->n_kinds[scope] = offers->n;
    return 0;
}

static int fill_folder(struct folder *folder, const struct dataset *ds,
                       const struct encoder *encoder, struct offers *offers)
{
    int r = 0;

    for (unsigned scope = 0; scope < N_SCOPES && r == 0; scope++)
        r = folder_fill(folder, ds, encoder, (enum scope)scope, offers);
    return r;
}

/* Add the folder if anything is in it. ds->folder has room for FOLDERS_MAX. */
static int encoder_add_folder(struct dataset *ds, const char *name, const struct encoder *encoder,
                              struct offers *offers)
{
    struct folder *folder = &ds->folder[ds->n_folders];
    int r;

    if (ds->n_folders == FOLDERS_MAX)
        return -E2BIG;
    ds->n_folders++;
    folder->name = name;
    r = fill_folder(folder, ds, encoder, offers);
    if (!folder_is_used(folder))
        ds->n_folders--;
    return r;
}

bool dataset_has_folder(const struct dataset *ds, const char *name)
{
    for (unsigned i = 0; i < ds->n_folders; i++)
        if (!strcmp(ds->folder[i].name, name))
            return true;
    return false;
}

int dataset_fill_again(struct dataset *ds, const struct encoder *const *encoders, unsigned n)
{
    AUTO_FREE struct offers *offers = calloc(1, sizeof(*offers));
    int r = offers ? 0 : -ENOMEM;

    for (unsigned i = 0; i < ds->n_folders && r == 0; i++) {
        const struct encoder *encoder = NULL;

        for (unsigned k = 0; k < n && !encoder; k++)
            if (!strcmp(encoders[k]->name, ds->folder[i].name))
                encoder = encoders[k];
        r = fill_folder(&ds->folder[i], ds, encoder, offers);
    }
    return r;
}

int dataset_fill_folders(struct dataset *ds, const struct encoder *const *encoders, unsigned n)
{
    AUTO_FREE struct offers *offers = calloc(1, sizeof(*offers));
    struct folder *fit;
    int r = 0;

    if (ds->late_folders)
        return dataset_fill_again(ds, encoders, n);
    ds->folder = calloc(FOLDERS_MAX, sizeof(*ds->folder));
    if (!offers || !ds->folder)
        return -ENOMEM;
    for (unsigned i = 0; i < n && r == 0; i++)
        r = encoder_add_folder(ds, encoders[i]->name, encoders[i], offers);
    for (unsigned i = 0; i < ds->n_fields && r == 0; i++) {
        const struct field *f = &ds->field[i];

        if (field_is_in(f, IN_FILES) && !dataset_has_folder(ds, f->folder))
            r = encoder_add_folder(ds, f->folder, NULL, offers);
    }
    fit = ds->n_folders ? realloc(ds->folder, ds->n_folders * sizeof(*fit)) : NULL;
    if (fit) /* a source may have very many datasets */
        ds->folder = fit;
    return r;
}

int dataset_name_folders(struct dataset *ds, const char *const *names, unsigned n)
{
    ds->folder = calloc(n, sizeof(*ds->folder));
    if (!ds->folder)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        ds->folder[i].name = names[i];
    ds->n_folders = n;
    ds->late_folders = true;
    return 0;
}
