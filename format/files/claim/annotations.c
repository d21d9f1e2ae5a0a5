/* Annotations of known contents: JSON of COCO, and files with the boxes of one picture each. The
 * pictures alone are the samples: what an annotation names and is not there is counted. */
#include "format/files/claim/annotations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "format/annotations/boxes.h"
#include "format/annotations/coco.h"
#include "format/files/claim/lookup.h"
#include "format/files/claim/words.h"

#define HEAD_BYTES 16384

/* ---- COCO ---- */

struct coco_use {
    struct coco *coco;
    size_t file;
    uint32_t *image; /* [pictures] the image of each, or VALUE_NO_ROW */
    uint64_t matched;
};

static void coco_use_release(struct coco_use *use)
{
    coco_free(use->coco);
    free(use->image);
}

/* Is the file of an image another one than that picture? An end of the path may be in other folders
 * as well: the longest one below the folder of the file, or the one above it, is meant. */
static bool coco_is_elsewhere(const struct search *s, const struct coco_use *use, const char *path,
                              size_t picture)
{
    uint32_t folder = s->m->member[use->file].folder, from[2] = {folder, s->info[folder].above};

    for (const char *end = path; *end; end += strcspn(end, "/"), end += *end == '/')
        for (unsigned i = 0; i < 2 && from[i] != NO_FOLDER; i++) {
            size_t file = lookup_path(s->m, claim_path(s, from[i]), end);

            if (file < s->m->n)
                return file != picture;
        }
    return false;
}

/* Find the pictures of all images. */
static void coco_match(const struct pictures *pictures, struct coco_use *use)
{
    size_t n = coco_images(use->coco);

    use->matched = 0;
    for (size_t i = 0; i < pictures->n; i++)
        use->image[i] = VALUE_NO_ROW;
    for (size_t i = 0; i < n; i++) {
        uint32_t found = pictures_find_end(pictures, coco_file_name(use->coco, i));

        if (found >= pictures->n || use->image[found] != VALUE_NO_ROW ||
            coco_is_elsewhere(pictures->s, use, coco_file_name(use->coco, i),
                              pictures->file[found]))
            continue;
        use->image[found] = (uint32_t)i;
        use->matched++;
    }
}

/* The pictures that are called like its split, or all of the folder, or of that above. */
static int coco_match_scopes(struct annotating *a, struct coco_use *use, uint32_t scope)
{
    const char *name = members_name(a->s->m, use->file);
    struct name_piece split;
    AUTO_FREE char *word = NULL;

    a->pictures.scope = scope;
    if (words_have_split(name, name_stem_alone(name), &split)) {
        word = strndup(split.at, split.len);
        if (!word)
            return -ENOMEM;
        a->pictures.split = word;
        coco_match(&a->pictures, use);
        a->pictures.split = "";
    }
    if (!use->matched)
        coco_match(&a->pictures, use);
    return 0;
}

/* A dataset of the images of a file whose annotations are classes alone, with labels. */
static int coco_add_classification(struct annotating *a, const struct coco_use *use, size_t at,
                                   uint32_t folder, const char *called)
{
    struct set *set = &a->s->set[at];
    struct files_claim *claim = set->claim;
    uint32_t *sample = calloc(claim->n_samples + 1, sizeof(*sample));
    AUTO_FREE uint32_t *image = calloc(claim->n_samples + 1, sizeof(*image));
    struct files_view *view;
    size_t n = 0;
    bool single;
    int r;

    if (!sample || !image) {
        free(sample);
        return -ENOMEM;
    }
    for (size_t i = 0; i < claim->n_samples; i++)
        if (use->image[set->base + i] != VALUE_NO_ROW) {
            image[n] = use->image[set->base + i];
            sample[n++] = (uint32_t)i;
        }
    r = annotating_add_view(a, at, folder, called, sample, n);
    if (r < 0)
        return r;
    view = &claim->view[claim->n_views - 1];
    view->label = calloc(n + 1, sizeof(*view->label));
    if (!view->label || class_names_copy(coco_class_names(use->coco), coco_classes(use->coco),
                                         &view->class_name, &view->n_classes) < 0)
        return -ENOMEM;
    coco_labels(use->coco, image, n, view->label, &single);
    for (size_t i = 0; i < n; i++)
        single = single && view->label[i] >= 0;
    if (single)
        return 0;
    free(view->label);
    view->label = NULL;
    return coco_columns(use->coco, image, n, "", &view->values, NULL);
}

/* Fields of the annotations of a set, which has the samples that any file names. */
static int coco_add_columns(struct annotating *a, const struct coco_use *use, size_t at,
                            struct blob *blob, struct diag *d)
{
    struct set *set = &a->s->set[at];
    struct value_columns *values = &set->claim->view->values;
    const char *name = members_name(a->s->m, use->file);
    AUTO_TEXT struct text classes = {0}, member = {0};
    AUTO_FREE char *prefix = NULL;
    struct name_piece split = {name, 0};
    const bool has_boxes = value_columns_find(values, "boxes");
    unsigned before = values->n;
    size_t len = name_stem_alone(name);
    int r;

    if (words_have_split(name, len, &split))
        len = (size_t)(split.at - name);
    while (len && strchr("_-. ", name[len - 1]))
        len--;
    if (asprintf(&prefix, "%.*s_", (int)len, name) < 0) {
        prefix = NULL;
        return -ENOMEM;
    }
    r = coco_columns(use->coco, use->image + set->base, set->claim->n_samples, prefix, values, d);
    for (unsigned i = before; r == 0 && i < values->n; i++)
        if (values->column[i].form == VALUE_PARTS)
            values->column[i].source = blob;
    if (r == 0 && !set->named) {
        set->named = calloc(set->claim->n_samples + 1, 1);
        r = set->named ? 0 : -ENOMEM;
    }
    for (size_t i = 0; r == 0 && i < set->claim->n_samples; i++)
        set->named[i] |= use->image[set->base + i] != VALUE_NO_ROW;
    if (r == 0 && coco_has_boxes(use->coco)) {
        text_add(&member, "%sclasses", has_boxes ? prefix : "");
        text_add_json_list(&classes, coco_class_names(use->coco), sizeof(char *),
                           coco_classes(use->coco));
        r = member.failed || classes.failed ? -ENOMEM : 0;
        if (r == 0)
            r = set_add_about(set, member.data, "%s", classes.data);
        if (r == 0 && !has_boxes)
            r = set_add_about_text(set, "box_format", "xywh");
    }
    return r;
}

/* Parts of an annotation are read while the set lives; so it owns the blob. */
static int set_keep_blob(struct set *set, struct blob **blob)
{
    struct files_claim *claim = set->claim;

    if (array_capacity(&claim->annotation, claim->n_annotations, sizeof(*claim->annotation)) < 0)
        return -ENOMEM;
    claim->annotation[claim->n_annotations++] = TAKE_PTR(*blob);
    return 0;
}

/* Read a file, and begin to use it. 0, or -errno with the reason in d. */
static int coco_open(struct annotating *a, size_t file, struct coco_use *use, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    int r = a->s->claims->open(a->s->claims, file, &blob, d);

    use->file = file;
    use->image = calloc(a->pictures.n + 1, sizeof(*use->image));
    if (!use->image)
        return -ENOMEM;
    return r < 0 ? r : coco_read(blob, 0, blob->size, members_name(a->s->m, file), &use->coco, d);
}

/* The datasets and fields that a set has of a file. Each set has a blob of its own. */
static int coco_use_set(struct annotating *a, const struct coco_use *use, size_t at,
                        uint32_t folder, const char *called, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    int r;

    if (coco_is_classification(use->coco))
        return coco_add_classification(a, use, at, folder, called);
    r = a->s->claims->open(a->s->claims, use->file, &blob, d);
    if (r == 0)
        r = coco_add_columns(a, use, at, blob, d);
    return r < 0 ? r : set_keep_blob(&a->s->set[at], &blob);
}

static int coco_apply_sets(struct annotating *a, struct coco_use *use, struct diag *d)
{
    const char *name = members_name(a->s->m, use->file);
    AUTO_FREE char *stem = strndup(name, name_stem_alone(name));
    int r = stem ? 0 : -ENOMEM;

    for (size_t i = 0; i < a->s->n_sets && r == 0; i++) {
        struct set *set = &a->s->set[i];
        bool any = false;

        for (size_t k = 0;
             set_has_pictures(set) && !set->dataset && !set->refused && k < set->claim->n_samples;
             k++)
            any = any || use->image[set->base + k] != VALUE_NO_ROW;
        if (!any)
            continue;
        r = coco_use_set(a, use, i, annotating_scope(a, use->file), stem, d);
        if (r == 0)
            r = set_add_source(set, SOURCE_COCO, use->file,
                               coco_is_classification(use->coco) ? set->claim->n_views - 1 : 0);
    }
    return r;
}

static int coco_apply_file(struct annotating *a, size_t file)
{
    AUTO(coco_use_release) struct coco_use use = {0};
    uint32_t scope = annotating_scope(a, file);
    struct diag d = DIAG_INIT;
    int r = coco_open(a, file, &use, &d);

    if (r == 0)
        r = coco_match_scopes(a, &use, scope);
    if (r == 0 && !use.matched) {
        r = annotating_ignore(a, file, scope, "it names no picture that exists");
    } else if (r == 0) {
        size_t lost = coco_images(use.coco) - use.matched;

        a->s->claims->taken[file] = CLAIMS_USED;
        r = coco_apply_sets(a, &use, &d);
        if (r == 0 && lost && annotating_first_set(a, scope))
            r = set_add_note(annotating_first_set(a, scope),
                             "%s names %zu pictures that are not there",
                             members_name(a->s->m, file), lost);
    }
    return r < 0 && r != -ENOMEM ? annotating_refuse(a, scope, diag_text(&d, r)) : r;
}

int annotating_read_coco(struct annotating *a, size_t at, size_t file, struct diag *d)
{
    AUTO(coco_use_release) struct coco_use use = {0};
    const struct set *set = &a->s->set[at];
    int r = coco_open(a, file, &use, d);

    if (r < 0)
        return r;
    coco_match(&a->pictures, &use);
    a->s->claims->taken[file] = CLAIMS_USED;
    if (coco_is_classification(use.coco) && set->claim->view->label)
        return diag_set(d, -EBADMSG, "%s: expected one label, got {label} and its classes",
                        members_name(a->s->m, file));
    return coco_use_set(a, &use, at, set->root, set->called, d);
}

/* A file that may be an annotation cannot be read now: without it the fields would be others. */
static int annotations_refuse_unread(struct annotating *a, uint32_t scope, size_t file, int error)
{
    AUTO_TEXT struct text t = {0};

    text_add(&t, "%s cannot be read, and may say more of the samples: %s. Mount again once it can",
             members_name(a->s->m, file), strerror(-error));
    return t.failed ? -ENOMEM : annotating_refuse(a, scope, t.data);
}

/* Heads of JSON that are looked into, at most: of SOURCE, and of a folder. */
#define COCO_MOST   64
#define COCO_FOLDER 16

static int coco_apply(struct annotating *a)
{
    const struct search *s = a->s;
    uint32_t folder = NO_FOLDER;
    unsigned n = 0, here = 0;
    int r = 0;

    for (size_t i = 0; i < s->m->n && r == 0 && n < COCO_MOST; i++) {
        uint8_t head[HEAD_BYTES];
        int len;

        if (s->claims->taken[i] || !text_ends_with(members_name(s->m, i), ".json") ||
            *members_name(s->m, i) == '.' || annotating_scope(a, i) == NO_FOLDER)
            continue;
        here = s->m->member[i].folder == folder ? here + 1 : 0;
        folder = s->m->member[i].folder;
        if (here >= COCO_FOLDER)
            continue;
        n++;
        r = s->claims->heads(s->claims, &i, 1, sizeof(head), head, &len);
        if (r == 0 && len < 0)
            r = annotations_refuse_unread(a, annotating_scope(a, i), i, len);
        else if (r == 0 && coco_head_says(head, (size_t)len))
            r = coco_apply_file(a, i);
    }
    return r;
}

int annotations_apply(struct annotating *a)
{
    int r = celeba_lists_apply(a);

    return r < 0 ? r : coco_apply(a);
}

/* ---- files of boxes ---- */

#define BOX_LOOKS 8

/* Which format have the first files with that role (or extension, if it is 0)? NULL: none. */
static const struct box_format *boxes_find(const struct search *s, struct set *set, unsigned role,
                                           const char *ext)
{
    const struct files_claim *claim = set->claim;
    unsigned looks = 0;

    for (uint32_t i = 0; i < claim->first[claim->n_samples] && looks < BOX_LOOKS; i++) {
        const char *name = members_name(s->m, set->file[i]);
        size_t file = set->file[i];
        uint8_t head[4096];
        int len;

        if ((claim->role ? claim->role[i] : 0) != role || !text_ends_with(name, ext))
            continue;
        looks++;
        if (!members_size(s->m, file) ||
            s->claims->heads(s->claims, &file, 1, sizeof(head), head, &len) < 0)
            continue;
        if (len < 0)
            set_refuse(set, "%s cannot be read: %s", name, strerror(-len));
        if (len <= 0)
            continue;
        for (const struct box_format *const *f = box_formats; *f; f++)
            if (!strcmp((*f)->extension, ext + 1) &&
                (*f)->head_says(head, (size_t)len, (uint64_t)len == members_size(s->m, file)))
                return *f;
        return NULL;
    }
    return NULL;
}

/* Files called by an extension next to pictures: VOC's. In a folder of labels: any. */
static int boxes_search(struct annotating *a, struct set *set)
{
    struct files_claim *claim = set->claim;

    if (set->dataset) /* it is known */
        return 0;
    if (set->has_companions)
        claim->boxes = boxes_find(a->s, set, 0, ".xml");
    snprintf(claim->boxes_ext, sizeof(claim->boxes_ext), "xml");
    for (unsigned role = 1; role <= claim->n_roles && !claim->boxes; role++) {
        const char *ext = strrchr(claim->role_name[role - 1], '.');

        if (!set->is_text[role - 1] || !ext)
            continue;
        claim->boxes = boxes_find(a->s, set, role, ext);
        claim->boxes_role = role;
    }
    return 0;
}

static int boxes_apply(struct annotating *a, struct set *set)
{
    int r = boxes_search(a, set);

    return r < 0 || !set->claim->boxes
               ? r
               : set_add_about_text(set, "box_format", set->claim->boxes->layout);
}

/* ---- names of YOLO's classes ---- */

static bool boxes_names_classes(const char *name)
{
    return text_ends_with(name, ".yaml") || text_ends_with(name, ".yml") ||
           text_ends_with(name, ".names") || !strcmp(name, "classes.txt");
}

int annotating_read_names(struct annotating *a, struct set *set, size_t file)
{
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    AUTO_TEXT struct text t = {0};
    AUTO_FREE uint8_t *bytes = malloc(1 << 16);
    struct diag d = DIAG_INIT;
    const char *name = members_name(a->s->m, file);
    int len,
        r = bytes ? a->s->claims->heads(a->s->claims, &file, 1, 1 << 16, bytes, &len) : -ENOMEM;

    if (r == 0 && len < 0)
        return set_add_note(set, "%s cannot be read, so classes of boxes have no names: %s", name,
                            strerror(-len));
    if (r < 0)
        return r;
    r = yolo_names(bytes, (size_t)len, name, &classes, &d);
    if (r == -EBADMSG)
        return set_add_note(set, "%s", d.text);
    if (r < 0 || !classes.n)
        return r;
    a->s->claims->taken[file] = CLAIMS_USED;
    text_add(&t, "{");
    for (size_t i = 0; i < classes.n; i++) {
        text_add(&t, "%s\"%llu\": ", i ? ", " : "", (unsigned long long)classes.item[i].number);
        text_add_json(&t, classes.item[i].name);
    }
    text_add(&t, "}");
    r = t.failed ? -ENOMEM : set_add_about(set, "class_names", "%s", t.data);
    return r < 0 ? r : 1;
}

/* In the folder of the set, or in one above. */
static int boxes_find_names(struct annotating *a, struct set *set)
{
    for (uint32_t f = set->root; f != NO_FOLDER; f = a->s->info[f].above)
        for (size_t i = a->s->info[f].first; i < a->s->info[f].last; i++)
            if (boxes_names_classes(members_name(a->s->m, i))) {
                int r = annotating_read_names(a, set, i);

                if (r)
                    return r < 0 ? r : set_add_source(set, SOURCE_NAMES, i, 0);
            }
    return 0;
}

/* ---- the end ---- */

/* Only pictures that an annotation of COCO names are samples. */
static int set_keep_named(struct set *set)
{
    struct files_claim *claim = set->claim;
    struct files_view *view = claim->view;
    struct value_columns picked = {0};
    uint32_t *sample;
    size_t n = 0;
    int r;

    for (size_t i = 0; i < claim->n_samples; i++)
        n += set->named[i];
    if (n == claim->n_samples)
        return 0;
    sample = calloc(n + 1, sizeof(*sample));
    if (!sample)
        return -ENOMEM;
    n = 0;
    for (size_t i = 0; i < claim->n_samples; i++)
        if (set->named[i])
            sample[n++] = (uint32_t)i;
    r = value_columns_pick(&view->values, sample, n, &picked);
    value_columns_release(&view->values);
    view->values = picked;
    view->sample = sample;
    view->n = n;
    return r < 0 ? r
                 : set_add_note(set, "%zu pictures are in no annotation: they are ignored",
                                claim->n_samples - n);
}

int annotating_finish_set(struct annotating *a, struct set *set)
{
    struct files_claim *claim = set->claim;
    int r = 0;

    if (!set_has_pictures(set) || set->refused)
        return 0;
    if (claim->n_views > 1 && !set->keeps_all) {
        claim_release_view(claim->view);
        memmove(claim->view, claim->view + 1, --claim->n_views * sizeof(*claim->view));
    } else if (set->named) {
        r = set_keep_named(set);
    }
    if (r == 0)
        r = boxes_apply(a, set);
    if (r == 0 && !set->dataset && claim->boxes && !claim->boxes->names_classes)
        r = boxes_find_names(a, set);
    return r;
}
