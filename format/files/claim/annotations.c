/* Annotations of known contents: JSON of COCO, and files with the boxes of one picture each. The
 * pictures alone are the samples: what an annotation names and is not there is counted. */
#include "format/files/claim/annotations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    size_t matched;
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
    const uint32_t folder = s->m->member[use->file].folder, above = s->info[folder].above;
    const char *from[2] = {claim_path(s, folder), above == NO_FOLDER ? "" : claim_path(s, above)};
    size_t file = lookup_end(s->m, from, 2, path);

    return file < s->m->n && file != picture;
}

/* Find the pictures of all images: how many. */
static size_t coco_match(const struct annotating *a, struct coco_use *use)
{
    size_t n = coco_images(use->coco);
    AUTO_FREE uint32_t *picture = calloc(n + 1, sizeof(*picture));

    a->s->failed = a->s->failed || !picture;
    for (size_t i = 0; i < n && picture; i++) {
        const char *path = coco_file_name(use->coco, i);

        picture[i] = pictures_find_end(&a->pictures, path);
        if (picture[i] < a->pictures.n &&
            coco_is_elsewhere(a->s, use, path, a->pictures.file[picture[i]]))
            picture[i] = PICTURE_NONE;
    }
    free(use->image);
    use->image = annotating_rows(a, picture, picture ? n : 0, &use->matched);
    return use->matched;
}

/* Is the file for a split of the set, which names only some of its samples? Folders between those
 * that the file is of and the samples say which split these are of. */
static bool coco_is_part(const struct annotating *a, const struct coco_use *use, size_t at)
{
    const struct set *set = &a->s->set[at];
    const uint32_t scope = annotating_scope(a, use->file);
    bool is_of_split = words_name_split(folder_name(a->s, set->top));
    size_t i = 0;

    while (i < set->claim->n_samples && use->image[set->base + i] != VALUE_NO_ROW)
        i++;
    for (uint32_t f = set->top; f != scope && f != NO_FOLDER; f = a->s->info[f].above)
        is_of_split = is_of_split || words_name_split(folder_name(a->s, f));
    return i < set->claim->n_samples && words_name_split(members_name(a->s->m, use->file)) &&
           !is_of_split && set->claim->layout != LAYOUT_CLASSES;
}

/* Columns that are read while the set lives. */
static int coco_read_columns(const struct coco_use *use, const uint32_t *image, size_t n,
                             const char *prefix, struct blob *blob, struct value_columns *values,
                             struct diag *d)
{
    const unsigned before = values->n;
    int r = coco_columns(use->coco, image, n, prefix, values, d);

    for (unsigned i = before; i < values->n && r == 0; i++)
        if (values->column[i].form == VALUE_PARTS)
            values->column[i].source = blob;
    return r;
}

/* The classes of boxes, which those for all splits of a set have in common. */
static int coco_say_classes(struct annotating *a, const struct coco_use *use, size_t at,
                            const char *prefix, struct diag *d)
{
    struct text *about = &a->s->set[at].about;
    AUTO_TEXT struct text t = {0}, name = {0};

    text_add(&name, "%sclasses", prefix);
    json_add_texts(&t, "", name.data, coco_class_names(use->coco), sizeof(char *),
                   coco_classes(use->coco));
    if (t.failed || name.failed)
        return -ENOMEM;
    if (!coco_has_boxes(use->coco) || (about->data && strstr(about->data, t.data)))
        return 0;
    if (!*prefix && about->data && strstr(about->data, "\"classes\": "))
        return diag_set(d, -EBADMSG,
                        "%s: expected the categories that the file of another split has, got "
                        "others. Write the same into both",
                        members_name(a->s->m, use->file));
    text_add(about, "%s", t.data);
    if (!*prefix)
        json_add_text(about, "", "box_format", "xywh");
    return 0;
}

/* A dataset of the images of a file: with labels, if its annotations are classes alone. */
static int coco_add_dataset(struct annotating *a, const struct coco_use *use, size_t at,
                            uint32_t folder, const char *called, struct blob *blob, struct diag *d)
{
    const struct set *set = &a->s->set[at];
    uint32_t *sample = calloc(set->claim->n_samples + 1, sizeof(*sample));
    AUTO_FREE uint32_t *image = calloc(set->claim->n_samples + 1, sizeof(*image));
    struct files_view *view;
    size_t n = 0;
    bool single;
    int r;

    for (size_t i = 0; i < set->claim->n_samples && sample && image; i++)
        if (use->image[set->base + i] != VALUE_NO_ROW) {
            image[n] = use->image[set->base + i];
            sample[n++] = (uint32_t)i;
        }
    a->s->failed = a->s->failed || !image;
    view = annotating_add_view(a, at, folder, called, sample, n);
    if (!view)
        return -ENOMEM;
    if (coco_is_classification(use->coco)) {
        if (!(view->label = calloc(n + 1, sizeof(*view->label))))
            return -ENOMEM;
        view_add_classes(a->s, view, coco_class_names(use->coco), coco_classes(use->coco));
        coco_labels(use->coco, image, n, view->label, &single);
        for (size_t i = 0; i < n; i++)
            single = single && view->label[i] >= 0;
        if (single)
            return 0;
        free(view->label);
        view->label = NULL;
    }
    r = coco_read_columns(use, image, n, "", blob, &view->values, d);
    return r == 0 ? coco_say_classes(a, use, at, "", d) : r;
}

/* Fields of the annotations of a set, which has the samples that any file names. */
static int coco_add_columns(struct annotating *a, const struct coco_use *use, size_t at,
                            struct blob *blob, struct diag *d)
{
    struct set *set = &a->s->set[at];
    struct value_columns *values = &set->claim->view->values;
    const uint32_t *image = use->image + set->base;
    const char *name = members_name(a->s->m, use->file);
    AUTO_TEXT struct text prefix = {0};
    struct name_piece split = {name, 0};
    const bool has_boxes = value_columns_find(values, "boxes");
    size_t len = name_stem_alone(name);
    int r;

    if (words_have_split(name, len, &split))
        len = (size_t)(split.at - name);
    while (len && strchr("_-. ", name[len - 1]))
        len--;
    text_add(&prefix, "%.*s_", (int)len, name);
    if (!set->named)
        set->named = calloc(set->claim->n_samples + 1, 1);
    if (prefix.failed || !set->named)
        return -ENOMEM;
    r = coco_read_columns(use, image, set->claim->n_samples, prefix.data, blob, values, d);
    if (r < 0)
        return r;
    for (size_t i = 0; i < set->claim->n_samples; i++)
        set->named[i] |= image[i] != VALUE_NO_ROW;
    return coco_say_classes(a, use, at, has_boxes ? prefix.data : "", d);
}

/* Read a file, and begin to use it. 0, or -errno with the reason in d. */
static int coco_open(struct annotating *a, size_t file, struct coco_use *use, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    int r = a->s->claims->open(a->s->claims, file, &blob, d);

    use->file = file;
    return r < 0 ? r : coco_read(blob, members_name(a->s->m, file), &use->coco, d);
}

/* The datasets and fields that a set has of a file. Each set has a blob of its own, because parts
 * of annotations are read while the set lives. */
static int coco_use_set(struct annotating *a, const struct coco_use *use, size_t at,
                        uint32_t folder, const char *called, bool is_dataset, struct diag *d)
{
    struct files_claim *claim = a->s->set[at].claim;
    AUTO_BLOB struct blob *blob = NULL;
    int r = a->s->claims->open(a->s->claims, use->file, &blob, d);

    if (r == 0)
        r = is_dataset ? coco_add_dataset(a, use, at, folder, called, blob, d)
                       : coco_add_columns(a, use, at, blob, d);
    if (r == 0 &&
        search_capacity(a->s, &claim->annotation, claim->n_annotations, sizeof(*claim->annotation)))
        claim->annotation[claim->n_annotations++] = TAKE_PTR(blob);
    return r;
}

static int coco_apply_sets(struct annotating *a, struct coco_use *use, struct diag *d)
{
    const char *name = members_name(a->s->m, use->file);
    AUTO_FREE char *stem = strndup(name, name_stem_alone(name));
    int r = stem ? 0 : -ENOMEM;

    for (size_t i = 0; i < a->s->n_sets && r == 0; i++) {
        struct set *set = &a->s->set[i];
        bool any = false, is_dataset;

        for (size_t k = 0;
             set_has_pictures(set) && !set->dataset && !set->refused && k < set->claim->n_samples;
             k++)
            any = any || use->image[set->base + k] != VALUE_NO_ROW;
        if (!any)
            continue;
        is_dataset = coco_is_classification(use->coco) || coco_is_part(a, use, i);
        r = coco_use_set(a, use, i, annotating_scope(a, use->file), stem, is_dataset, d);
        if (r == 0)
            set_say_file(set, is_dataset ? set->claim->n_views - 1 : 0, "coco", use->file);
    }
    return r;
}

static int coco_apply_file(struct annotating *a, size_t file, uint32_t scope, struct diag *d)
{
    AUTO(coco_use_release) struct coco_use use = {0};
    const char *name = members_name(a->s->m, file);
    int r = coco_open(a, file, &use, d);

    /* The pictures that are called like its split, or all of the folder, or of that above. */
    if (r == 0 && pictures_aim(&a->pictures, scope, name))
        coco_match(a, &use);
    pictures_of_all_splits(&a->pictures);
    if (r == 0 && !use.matched && !coco_match(a, &use)) {
        annotating_ignore(a, file, scope, "it names no picture that exists");
    } else if (r == 0) {
        size_t lost = coco_images(use.coco) - use.matched;

        a->s->claims->taken[file] = CLAIMS_USED;
        r = a->s->failed ? -ENOMEM : coco_apply_sets(a, &use, d);
        if (r == 0 && lost && annotating_first_set(a, scope))
            text_add(&annotating_first_set(a, scope)->notes,
                     "%s names %zu pictures that are not there or are named twice\n", name, lost);
    }
    return r;
}

int annotating_read_coco(struct annotating *a, size_t at, size_t file, struct diag *d)
{
    AUTO(coco_use_release) struct coco_use use = {0};
    const struct set *set = &a->s->set[at];
    int r = coco_open(a, file, &use, d);

    if (r < 0)
        return r;
    coco_match(a, &use);
    a->s->claims->taken[file] = CLAIMS_USED;
    if (a->s->failed)
        return -ENOMEM;
    if (coco_is_classification(use.coco) && set->claim->view->label)
        return diag_set(d, -EBADMSG, "%s: expected one label, got {label} and its classes",
                        members_name(a->s->m, file));
    return coco_use_set(a, &use, at, set->root, set->called, coco_is_classification(use.coco), d);
}

bool coco_may_be(const struct annotating *a, size_t file)
{
    return text_ends_with(members_name(a->s->m, file), ".json");
}

int coco_apply(struct annotating *a, size_t file, uint32_t scope, struct diag *d)
{
    uint8_t head[HEAD_BYTES];
    int len = search_head(a->s, file, head, sizeof(head));

    if (len < 0) /* without it the fields would be others */
        return diag_set(d, len,
                        "%s cannot be read, and may say more of the samples: %s. Mount again once "
                        "it can",
                        members_name(a->s->m, file), strerror(-len));
    return coco_head_says(head, (size_t)len) ? coco_apply_file(a, file, scope, d) : 0;
}

/* ---- files of boxes ---- */

#define BOX_LOOKS 8

/* Which format have the first files with that role (or extension, if it is 0)? NULL: none. Texts
 * next to pictures are anything: all of these must say so. */
static const struct box_format *boxes_find(struct set *set, unsigned role, const char *ext)
{
    struct search *s = set->s;
    const struct files_claim *claim = set->claim;
    const struct box_format *found = NULL;
    unsigned looks = 0;

    for (uint32_t i = 0; i < claim->first[claim->n_samples] && looks < BOX_LOOKS; i++) {
        const char *name = members_name(s->m, set->file[i]);
        size_t file = set->file[i];
        uint8_t head[4096];
        int len;

        if ((claim->role ? claim->role[i] : 0) != role || !text_ends_with(name, ext))
            continue;
        looks++;
        len = members_size(s->m, file) ? search_head(s, file, head, sizeof(head)) : 0;
        if (len < 0)
            set_refuse(set, "%s cannot be read: %s", name, strerror(-len));
        if (len <= 0)
            continue;
        found = NULL;
        for (const struct box_format *const *f = box_formats; *f && !found; f++)
            if (!strcmp((*f)->extension, ext + 1) &&
                box_format_says(*f, head, (size_t)len, (uint64_t)len == members_size(s->m, file)))
                found = *f;
        if (!found || role || strcmp(ext, ".txt") != 0)
            break;
    }
    return found;
}

/* Name files of boxes in a list for people. ext: their extension, if the role is 0. */
static void boxes_add_name(struct text *t, const struct set *set, unsigned role, const char *ext,
                           const struct box_format *format)
{
    text_add(t, "%s%s%s files (%s)", t->len ? ", " : "", role ? "" : ".",
             role ? set->claim->role_name[role - 1] : ext, format->name);
}

/* The first files are read. others: those that have boxes also. */
static void boxes_choose(struct set *set, unsigned role, const char *ext, struct text *others)
{
    struct files_claim *claim = set->claim;
    const struct box_format *found = boxes_find(set, role, ext);

    if (found && claim->boxes)
        boxes_add_name(others, set, role, ext + 1, found);
    if (!found || claim->boxes)
        return;
    claim->boxes = found;
    claim->boxes_role = role;
    snprintf(claim->boxes_ext, sizeof(claim->boxes_ext), "%s", role ? "" : ext + 1);
}

/* Files next to pictures, or in a folder of labels. */
static void boxes_search(struct set *set, struct text *others)
{
    static const char *const ends[] = {".xml", ".txt"};
    const struct files_claim *claim = set->claim;

    for (size_t i = 0; i < ARRAY_LEN(ends) && set->has_companions; i++)
        boxes_choose(set, 0, ends[i], others);
    for (size_t i = 0; i < 2 * claim->n_roles; i++) { /* labels come before predictions */
        const unsigned role = (unsigned)(i % claim->n_roles) + 1;
        const char *name = claim->role_name[role - 1], *ext = strrchr(name, '.');

        if (set->is_text[role - 1] && ext &&
            words_have_target(name, (size_t)(ext - name)) == (i < claim->n_roles))
            boxes_choose(set, role, ext, others);
    }
}

/* Say where the boxes of a set come from, if several files have some. n_read: how many of its views
 * read the chosen files; the other views read COCO. */
static void boxes_note(struct set *set, size_t n_read, const char *others)
{
    const struct files_claim *claim = set->claim;
    const bool have_coco = n_read < claim->n_views;
    AUTO_TEXT struct text chosen = {0};

    boxes_add_name(&chosen, set, claim->boxes_role, claim->boxes_ext, claim->boxes);
    if (have_coco && n_read)
        text_add(&set->notes, "boxes are those of COCO, and of %s where COCO has none",
                 chosen.data);
    else
        text_add(&set->notes, "boxes are those of %s", have_coco ? "COCO" : chosen.data);
    if (have_coco && !n_read)
        text_add(&set->notes, "; %s%s%s are fields only", chosen.data, *others ? ", " : "", others);
    else if (*others)
        text_add(&set->notes, "; %s are fields only", others);
    text_add(&set->notes, "%s\n", have_coco ? "" : "; an epochfs.json can say which are meant");
}

/* ---- names of YOLO's classes ---- */

#define NAMES_BYTES (1u << 20) /* of a file of them, at most: a part of it is none */

bool annotating_read_names(struct annotating *a, struct set *set, size_t file)
{
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    AUTO_FREE uint8_t *bytes = malloc(NAMES_BYTES);
    struct diag d = DIAG_INIT;
    const char *name = members_name(a->s->m, file);
    int len = bytes ? search_head(a->s, file, bytes, NAMES_BYTES) : -ENOMEM, r;

    if (len < 0) {
        a->s->failed = a->s->failed || !bytes;
        text_add(&set->notes, "%s cannot be read, so classes of boxes have no names: %s\n", name,
                 strerror(-len));
        return false;
    }
    r = members_size(a->s->m, file) > NAMES_BYTES
            ? diag_set(&d, -EBADMSG, "%s: expected names of classes of at most 1 MiB", name)
            : yolo_names(bytes, (size_t)len, name, &classes, &d);
    if (r == -EBADMSG)
        text_add(&set->notes, "%s\n", d.text);
    a->s->failed = a->s->failed || r == -ENOMEM;
    if (r < 0 || !classes.n)
        return false;
    a->s->claims->taken[file] = CLAIMS_USED;
    json_open(&set->about, "", "class_names", "{");
    for (size_t i = 0; i < classes.n; i++) {
        char number[24];

        snprintf(number, sizeof(number), "%llu", (unsigned long long)classes.item[i].number);
        json_add_text(&set->about, NULL, number, classes.item[i].name);
    }
    json_close(&set->about, "", "}");
    return true;
}

/* In that folder, or in one above. */
static bool boxes_find_names(struct annotating *a, struct set *set, uint32_t folder)
{
    static const char *const ends[] = {".yaml", ".yml", ".names", NULL};

    for (uint32_t f = folder; f != NO_FOLDER; f = a->s->info[f].above)
        for (size_t i = a->s->info[f].first; i < a->s->info[f].last; i++) {
            const char *name = members_name(a->s->m, i);

            if ((name_ends_in(name, ends) || !strcmp(name, CLASSES_FILE)) &&
                annotating_read_names(a, set, i)) {
                set_say_file(set, 0, "names", i);
                return true;
            }
        }
    return false;
}

/* The folder of the files of boxes. */
static uint32_t boxes_folder(const struct set *set)
{
    const struct files_claim *claim = set->claim;
    size_t i = 0;

    while (i + 1 < set->n && (claim->role ? claim->role[i] : 0) != claim->boxes_role)
        i++;
    return set->s->m->member[set->file[i]].folder;
}

/* ---- the end ---- */

/* Only samples of lists, or of files of annotations, are in datasets. */
static void set_note_unlisted(struct set *set)
{
    const struct files_claim *claim = set->claim;
    AUTO_FREE uint8_t *is_listed = calloc(claim->n_samples + 1, 1);
    size_t n = claim->n_samples;

    set->s->failed = set->s->failed || !is_listed;
    for (size_t i = 1; i < claim->n_views && is_listed; i++)
        for (size_t k = 0; k < claim->view[i].n; k++) {
            n -= !is_listed[claim->view[i].sample[k]];
            is_listed[claim->view[i].sample[k]] = 1;
        }
    if (n && is_listed)
        text_add(&set->notes,
                 "%zu %s are in no dataset: they are ignored; an epochfs.json can use them\n", n,
                 files_media[claim->media].word);
}

/* Only pictures that an annotation of COCO names are samples. */
static void set_keep_named(struct set *set)
{
    struct files_claim *claim = set->claim;
    struct files_view *view = claim->view;
    AUTO_FREE uint32_t *sample = calloc(claim->n_samples + 1, sizeof(*sample));
    struct value_columns picked = {0};
    size_t n = 0;

    for (size_t i = 0; i < claim->n_samples && sample; i++)
        if (set->named[i])
            sample[n++] = (uint32_t)i;
    if (sample && n == claim->n_samples)
        return;
    if (!sample || value_columns_pick(&view->values, sample, n, &picked) < 0)
        set->s->failed = true;
    value_columns_release(&view->values);
    view->values = picked;
    view->sample = TAKE_PTR(sample);
    view->n = n;
    text_add(&set->notes,
             "%zu pictures are in no annotation: they are ignored; an epochfs.json can use them\n",
             claim->n_samples - n);
}

void annotating_finish_set(struct annotating *a, struct set *set)
{
    struct files_claim *claim = set->claim;
    AUTO_TEXT struct text others = {0};
    size_t n_read = 0;

    if (!set_has_pictures(set) || set->refused)
        return;
    if (claim->n_views > 1 && !set->keeps_all) {
        set_note_unlisted(set);
        claim_release_view(claim->view);
        memmove(claim->view, claim->view + 1, --claim->n_views * sizeof(*claim->view));
    } else if (set->named) {
        set_keep_named(set);
    }
    if (!set->dataset && claim->media == FILES_PICTURES) /* otherwise they are known */
        boxes_search(set, &others);
    for (size_t i = 0; i < claim->n_views; i++)
        n_read += view_reads_boxes(claim, &claim->view[i]);
    if (claim->boxes && (n_read < claim->n_views || others.len))
        boxes_note(set, n_read, others.data ? others.data : "");
    claim->boxes = n_read ? claim->boxes : NULL;
    if (claim->boxes && n_read == claim->n_views) /* otherwise boxes.c says it */
        json_add_text(&set->about, "", "box_format", claim->boxes->layout);
    if (!set->dataset && claim->boxes && !claim->boxes->names_classes)
        if (!boxes_find_names(a, set, set->root))
            boxes_find_names(a, set, boxes_folder(set));
}
