#include "format/augment/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/checked.h"
#include "base/scope.h"
#include "format/augment/made.h"
#include "format/encode/encode.h"
#include "format/picture/mask.h"

#define IMAGE      "image"
#define IMAGE_NORM "image_norm"
#define MASK       "mask"

bool augment_is_picture(const struct field *f, unsigned *ret_channels, bool *ret_planar)
{
    uint64_t pixels;

    if (f->form != FORM_ITEM || f->dtype != DTYPE_U1 || f->ndim < 2 || f->ndim > 3 || f->mixed)
        return false;
    *ret_planar = f->ndim == 3 && f->dim[2] != NORMALIZE_CHANNELS && f->dim[2] != 1 &&
                  f->dim[0] == NORMALIZE_CHANNELS;
    *ret_channels = f->ndim == 2 || f->dim[2] == 1 ? 1 : NORMALIZE_CHANNELS;
    if (f->ndim == 3 && !*ret_planar && f->dim[2] != *ret_channels)
        return false;
    for (unsigned i = 0; i < f->ndim; i++)
        if (!f->dim[i] || f->dim[i] > PICTURE_SOURCE_SIDE_MAX)
            return false;
    return checked_mul(f->dim[*ret_planar], f->dim[*ret_planar + 1], &pixels) &&
           pixels <= UINT64_C(1) << 28;
}

/* ---- image_norm ---- */

/* The field of the dataset whose items are pictures of one size; NULL: none. */
static const struct field *fields_image(const struct dataset *ds)
{
    const char *name = ds->pictures ? ds->pictures->name : IMAGE;
    const struct field *f = dataset_field(ds, name);
    unsigned channels;
    bool planar;

    return f && field_is_in(f, IN_NPY_SAMPLES | IN_NPY_BATCHES) &&
                   augment_is_picture(f, &channels, &planar)
               ? f
               : NULL;
}

/* The field image_norm of a stored field. */
static int fields_insert_norm(struct dataset *ds, const struct field *image,
                              const struct augment_tools *tools)
{
    const struct normalize *n = &tools->options->normalize;
    struct stored_norm *norm = &((struct augment_impl *)ds->plan_fields->impl)->norm;
    uint64_t *dim = calloc(3, sizeof(*dim));
    unsigned channels = 0;
    struct field *f;

    if (!dim)
        return -ENOMEM;
    norm->normalize = n;
    augment_is_picture(image, &channels, &norm->is_planar);
    dim[0] = n->channels;
    dim[1] = image->dim[norm->is_planar];
    dim[2] = image->dim[norm->is_planar + 1];
    f = dataset_insert_field(ds);
    *f = (struct field){.name = IMAGE_NORM,
                        .ops = &stored_norm_ops,
                        .in = image->in & (IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_PAGES),
                        .derived = true,
                        .base_field = image,
                        .dtype = n->is_half ? DTYPE_F2 : DTYPE_F4,
                        .ndim = 3,
                        .dim = dim,
                        .width = normalize_width(n),
                        .item_bytes = normalize_width(n) * dim[0] * dim[1] * dim[2]};
    return 0;
}

/* Why image_norm is not offered; NULL: it is. */
static const char *fields_norm_lacks(const struct dataset *ds, unsigned channels,
                                     const struct normalize *n)
{
    if (dataset_field(ds, IMAGE_NORM))
        return "a field of the source has that name";
    if (ds->ops && ds->ops->number)
        return "the dataset is made of others";
    if (channels && n->channels != channels)
        return channels == 1 ? "pictures have one channel: expected normalize=MEAN/STD"
                             : "pictures have three channels: expected six numbers";
    return NULL;
}

/* ---- fields of plans ---- */

static void plan_fields_add(struct plan_fields *fields, const char *name, const struct shown *shown)
{
    struct field *f = &fields->field[fields->n++];
    struct form form;

    shown->form(fields->impl, &(struct picture_plan){0}, &form);
    *f = (struct field){.ops = &shown->ops,
                        .in = IN_NPY_BATCHES | IN_NPZ_BATCHES,
                        .base_field = fields->base,
                        .dtype = form.dtype,
                        .width = form.width,
                        .impl = fields->impl};
    snprintf(f->name, sizeof(f->name), "%s", name);
}

/* Is there a field that a turned picture would no longer fit? */
static bool fields_follow(const struct dataset *ds)
{
    return dataset_field(ds, "boxes") || dataset_field(ds, "keypoints") ||
           (ds->pictures && ds->pictures->has_pairs);
}

static const char *fields_refuse(const struct dataset *ds)
{
    if (ds->pictures && ds->pictures->has_holes)
        return "some samples have no picture";
    return NULL;
}

/* Find how many channels the masks have: as many as the first one. */
static void fields_find_masks(struct dataset *ds, struct augment_impl *impl)
{
    AUTO_FREE uint8_t *bytes = NULL;
    struct diag d = DIAG_INIT;
    size_t len;

    if (!impl->files || !impl->files->has_masks || !ds->samples || dataset_field(ds, MASK))
        return;
    if (impl->files->read(READ_WAITS, ds, 0, true, &bytes, &len, &d) == 0)
        impl->mask_channels = mask_channels(bytes, len);
    if (!impl->mask_channels)
        notes_add(&ds->notes, "plans have no mask: the first one is not read: %s",
                  d.set ? d.text : "it is no JPEG, PNG or WebP");
}

/* Do what impl says: image and, of files, what says where it is from, and the mask. */
static void fields_fill_plan(struct plan_fields *fields, const struct normalize *n)
{
    struct augment_impl *impl = fields->impl;
    char name[FIELD_NAME_SIZE + 8];

    plan_fields_add(fields, fields->replaced, &made_image);
    snprintf(name, sizeof(name), "%s_box", fields->replaced);
    plan_fields_add(fields, name, &made_box);
    if (impl->files && impl->files->zeros_bad) {
        snprintf(name, sizeof(name), "%s_ok", fields->replaced);
        plan_fields_add(fields, name, &made_ok);
    }
    if (impl->mask_channels)
        plan_fields_add(fields, MASK, &made_mask);
    if (n->channels == impl->channels) {
        impl->normalize = n;
        plan_fields_add(fields, IMAGE_NORM, &made_norm);
        fields->field[fields->n - 1].in = IN_NPY_BATCHES;
    }
}

static int fields_add_plan(struct dataset *ds, const struct field *image,
                           const struct augment_tools *tools)
{
    struct plan_fields *fields = calloc(1, sizeof(*fields));
    struct augment_impl *impl = calloc(1, sizeof(*impl));

    if (!fields || !impl) {
        free(fields);
        free(impl);
        return -ENOMEM;
    }
    *impl = (struct augment_impl){.files = ds->pictures,
                                  .channels = NORMALIZE_CHANNELS,
                                  .options = tools->options,
                                  .memo = tools->memo,
                                  .pool = tools->pool};
    fields->impl = impl;
    fields->refused = fields_refuse(ds);
    fields->replaced = ds->pictures ? ds->pictures->name : IMAGE;
    if (!impl->files) {
        impl->array = fields->base = image;
        augment_is_picture(image, &impl->channels, &impl->is_planar);
    }
    fields_find_masks(ds, impl);
    if (!fields->refused)
        fields_fill_plan(fields, &tools->options->normalize);
    ds->plan_fields = fields;
    return 0;
}

/* A folder with too many files has no room for those of plans. */
static int fields_fill_folders(struct dataset *ds)
{
    int r = dataset_fill_again(ds, encoders, n_encoders);

    if (r != -E2BIG || !ds->plan_fields->n)
        return r;
    ds->plan_fields->n = 0;
    ds->plan_fields->refused = "the dataset has as many files as it can have";
    return dataset_fill_again(ds, encoders, n_encoders);
}

int augment_fields_add(struct dataset *ds, const struct augment_tools *tools)
{
    const struct field *image = ds->samples ? fields_image(ds) : NULL;
    const struct normalize *n;
    unsigned channels = NORMALIZE_CHANNELS; /* of files */
    bool planar;
    const char *lacks;
    int r;

    if (!tools->memo || !tools->options || (!image && !ds->pictures))
        return 0;
    n = &tools->options->normalize;
    if (image)
        augment_is_picture(image, &channels, &planar);
    lacks = n->channels ? fields_norm_lacks(ds, channels, n) : "";
    if (*(lacks ? lacks : ""))
        notes_add(&ds->notes, "there is no " IMAGE_NORM ": %s", lacks);
    r = fields_add_plan(ds, image, tools);
    if (r == 0 && !lacks && image)
        r = fields_insert_norm(ds, image, tools);
    return r < 0 ? r : fields_fill_folders(ds);
}

int augment_check(const struct dataset *ds, struct picture_plan *plan, struct diag *d)
{
    const struct plan_fields *fields = ds->plan_fields;
    const struct augment_impl *impl = fields ? fields->impl : NULL;

    if (!fields)
        return diag_set(d, -EINVAL,
                        "picture= and augment=: expected a dataset of pictures, files or a uint8 "
                        "array called image, got none");
    if (fields->refused)
        return diag_set(d, -EINVAL, "picture= and augment=: %s", fields->refused);
    if (!plan->height && impl->files)
        return diag_set(d, -EINVAL,
                        "augment=: expected a size of the pictures, got none; add picture=HxW");
    if (!plan->height) {
        plan->height = (uint32_t)impl->array->dim[impl->is_planar];
        plan->width = (uint32_t)impl->array->dim[impl->is_planar + 1];
    }
    if (plan->height > PICTURE_SIDE_MAX || plan->width > PICTURE_SIDE_MAX)
        return diag_set(d, -EINVAL, "picture=: expected sides of at most %u, got %u x %u",
                        PICTURE_SIDE_MAX, plan->height, plan->width);
    if (recipe_has_policy(&plan->recipe) && fields_follow(ds))
        return diag_set(d, -EINVAL,
                        "augment=: auto, rand and trivial turn pixels that the boxes, keypoints "
                        "or masks of the dataset do not follow; use a recipe without them");
    return 0;
}

void augment_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct augment_options *options;

    if (!ds->plan_fields || ds->plan_fields->refused)
        return;
    options = ((const struct augment_impl *)ds->plan_fields->impl)->options;
    for (size_t i = 0; i < options->n; i++) {
        AUTO_TEXT struct text words = {0};

        recipe_print(&options->recipe[i].recipe, &words);
        if (!i)
            json_open(t, indent, "augment", "{");
        json_add_text(t, NULL, options->recipe[i].name, words.data ? words.data : "");
    }
    if (options->n)
        json_close(t, indent, "}");
    if (options->normalize.channels) {
        json_open(t, indent, "normalize", "{");
        normalize_print(&options->normalize, t);
        json_close(t, indent, "}");
    }
}
