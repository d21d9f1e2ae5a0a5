/* A dataset of arrays: each is a field, whose items are its rows. */
#include "format/array/set.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "format/array/shards.h"
#include "format/encode/encode.h"

#define PICTURE_LEAST 8 /* of the sides of a picture: smaller ones are tables */
#define PICTURE_MOST  1024
#define CHECK_PIECE   (UINT64_C(1) << 20)

#define LEFT_OUT_SHOWN 100 /* arrays */

/* An array that is a field. */
struct used_array {
    char *name;              /* in its file, or its files without their numbers; owned */
    struct array_part *part; /* [n] without a CRC, [off, off + len) are its rows in blob; owned */
    size_t n;
    struct field_run *run; /* of an array in several files; owned */
};

struct array_set {
    enum pair_rule rule;
    const char *split;
    struct used_array *used; /* [n] as fields; owned */
    size_t n;
    char *left_out; /* lines "name: reason"; owned. "": none */
};

static void array_set_set_free(struct dataset *ds)
{
    struct array_set *set = ds->impl;

    for (size_t i = 0; i < set->n; i++) {
        for (size_t k = 0; k < set->used[i].n; k++)
            held_blob_drop(set->used[i].part[k].held);
        free(set->used[i].part);
        free(set->used[i].run);
        free(set->used[i].name);
    }
    free(set->used);
    free(set->left_out);
    free(set);
    ds->n_blobs = 0; /* they belong to held_blobs */
}

/* ---- what is said of it ---- */

static const char *rule_text(const struct array_set *set, char *ret, size_t capacity)
{
    if (set->rule == PAIR_SPLIT)
        snprintf(ret, capacity, "their names say %s", set->split);
    else
        snprintf(ret, capacity, "they have the same number of samples");
    return ret;
}

static void array_set_set_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct array_set *set = ds->impl;
    char why[64];

    text_add(t, "%s\"arrays\": [\n", indent);
    for (size_t i = 0; i < set->n; i++) {
        text_add(t, "%s  {", indent);
        json_add_text(t, NULL, "field", ds->field[i].name);
        json_add_text(t, NULL, "array", set->used[i].name);
        if (set->used[i].n > 1)
            json_add_number(t, NULL, "files", set->used[i].n);
        if (ds->field[i].stored_as)
            json_add_text(t, NULL, "stored_as", ds->field[i].stored_as);
        text_add(t, "}%s\n", i + 1 < set->n ? "," : "");
    }
    text_add(t, "%s],\n", indent);
    if (set->rule != PAIR_ALONE)
        json_add_text(t, indent, "paired", rule_text(set, why, sizeof(why)));
    if (!*set->left_out)
        return;
    json_open(t, indent, "left_out", "[");
    for (const char *line = set->left_out; *line; line += strcspn(line, "\n") + 1)
        json_add_bytes(t, line, strcspn(line, "\n"));
    json_close(t, indent, "]");
}

/* Datasets of one file show different arrays of it under the same names. */
static int array_set_set_identity(const struct dataset *ds, struct text *t)
{
    const struct array_set *set = ds->impl;

    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < set->used[i].n; k++)
            text_add(t, " %s=%s:%llu+%llu", ds->field[i].name, set->used[i].name,
                     (unsigned long long)set->used[i].part[k].off,
                     (unsigned long long)set->used[i].part[k].len);
    return 0;
}

static void set_about(const struct dataset *ds, struct text *t)
{
    const struct array_set *set = ds->impl;
    char why[64];

    if (set->rule != PAIR_ALONE) {
        text_add(t, "    paired  ");
        for (size_t i = 0; i < set->n; i++)
            text_add(t, "%s %s", i ? "," : "", set->used[i].name);
        text_add(t, ": %s\n", rule_text(set, why, sizeof(why)));
    }
    for (const char *line = set->left_out; *line; line += strcspn(line, "\n") + 1)
        text_add(t, "    ignored  %.*s\n", (int)strcspn(line, "\n"), line);
}

void array_set_example(const struct dataset *ds, struct text *t)
{
    char key[KEY_NAME_SIZE];

    text_add(t, "  batch = np.load(root + '/batches/batch=128,seed=7/epoch=0/npz/000000.npz')\n  ");
    for (unsigned i = 0; i < ds->n_fields && i < 3; i++)
        if (!ds->field[i].numbering)
            text_add(t, "%c = batch['%s']; ", "xyz"[i], ds -> field[i].name);
    text_add(t, "index = batch['index']\n");
    if (!ds->samples)
        return;
    dataset_name(ds, 0, false, key);
    text_add(t, "  one = np.load(root + '/samples/npy/%s.%s.npy')\n", key, ds->field[0].name);
}

/* ---- --check ---- */

/* What has the file that the bytes come from. */
static struct held_blob *root(struct held_blob *held)
{
    while (held->under)
        held = held->under;
    return held;
}

static int check_bytes(const struct array_part *used, const char *name,
                       void (*report)(void *ctx, const char *text), void *ctx, struct diag *d)
{
    const struct blob *blob = (used->has_crc ? root(used->held) : used->held)->blob;
    AUTO_FREE uint8_t *buf = malloc(CHECK_PIECE);
    uint32_t crc = 0;

    if (!buf)
        return -ENOMEM;
    for (uint64_t at = 0; at < used->len; at += CHECK_PIECE) {
        size_t n = (size_t)min_u64(CHECK_PIECE, used->len - at);
        int r = blob_read(READ_WAITS, blob, buf, n, used->off + at, d);

        if (r < 0)
            return r;
        crc = libdeflate_crc32(crc, buf, n);
    }
    if (used->has_crc && crc != used->crc) {
        struct diag bad = DIAG_INIT;

        diag_set(&bad, 0, "%s: member %s: CRC-32 of its %llu bytes: expected %08x, got %08x",
                 blob_name(blob), name, (unsigned long long)used->len, used->crc, crc);
        report(ctx, bad.text);
    }
    return blob_verify(blob, d);
}

static int array_set_set_check(const struct dataset *ds,
                               void (*report)(void *ctx, const char *text), void *ctx,
                               struct diag *d)
{
    const struct array_set *set = ds->impl;
    int r = 0;

    for (size_t i = 0; i < set->n && r == 0; i++)
        for (size_t k = 0; k < set->used[i].n && r == 0; k++)
            r = check_bytes(&set->used[i].part[k], set->used[i].name, report, ctx, d);
    return r;
}

static const struct dataset_ops array_set_set_ops = {.check = array_set_set_check,
                                                     .describe = array_set_set_describe,
                                                     .about = set_about,
                                                     .identity = array_set_set_identity,
                                                     .free = array_set_set_free};

/* ---- fields ---- */

/* Rows of bytes that are pictures: (H, W), (H, W, 1) or (H, W, 3). */
static bool array_set_is_picture(const struct field *f)
{
    bool has_sides = f->ndim == 2 || (f->ndim == 3 && (f->dim[2] == 1 || f->dim[2] == 3));

    for (unsigned i = 0; i < 2 && has_sides; i++)
        has_sides = f->dim[i] >= PICTURE_LEAST && f->dim[i] <= PICTURE_MOST;
    return has_sides && f->dtype == DTYPE_U1 && !f->stored_as;
}

static void array_set_add_blob(struct dataset *ds, struct held_blob *held)
{
    struct held_blob *from = root(held);

    if (from->last_set == ds)
        return;
    ds->shares_blobs = ds->shares_blobs || from->last_set;
    from->last_set = ds;
    ds->blob[ds->n_blobs++] = from->blob;
}

/* Where the rows of an array in several files are. */
static int add_runs(struct field *f, struct used_array *used, const struct array *a)
{
    uint64_t first = 0;

    used->run = calloc(a->n_parts, sizeof(*used->run));
    if (!used->run)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_parts; i++) {
        const struct array_part *part = &a->part[i];

        if (part->samples)
            used->run[f->n_runs++] = (struct field_run){first, part->held->blob, part->offset};
        first += part->samples;
    }
    f->run = f->n_runs ? used->run : NULL;
    if (f->n_runs) {
        f->blob = f->run->blob;
        f->offset = f->run->offset;
    }
    return 0;
}

/* The bytes of the array, and of the dataset. */
static int array_set_add_bytes(struct dataset *ds, struct used_array *used, const struct array *a)
{
    const struct array_part *part = a->n_parts ? a->part : &a->here;
    size_t n = a->n_parts ? a->n_parts : 1;

    used->part = calloc(n, sizeof(*used->part));
    if (!used->part)
        return -ENOMEM;
    for (; used->n < n; used->n++) {
        struct array_part *p = &used->part[used->n];

        *p = part[used->n];
        if (!p->has_crc) {
            p->off = p->offset;
            p->len = (a->n_parts ? p->samples : a->samples) * a->row_bytes;
        }
        array_set_add_blob(ds, held_blob_take(p->held));
    }
    return 0;
}

static int array_set_add_field(struct dataset *ds, const struct array *a, const char *name)
{
    struct array_set *set = ds->impl;
    struct used_array *used = &set->used[set->n];
    struct field *f = dataset_add_stored(ds, name,
                                         &(struct field){.dtype = a->head.dtype,
                                                         .ndim = a->head.ndim - 1,
                                                         .stored_as = a->type_name,
                                                         .stored_big_endian = a->head.big_endian,
                                                         .blob = a->here.held->blob,
                                                         .offset = a->here.offset},
                                         a->head.dim + 1);

    if (!f)
        return -ENOMEM;
    f->in &= ~(unsigned)IN_PICTURES;
    if (array_set_is_picture(f))
        f->in |= IN_PICTURES;
    *used = (struct used_array){.name = strdup(a->name)};
    set->n++;
    if (!used->name || array_set_add_bytes(ds, used, a) < 0 ||
        (a->n_parts && add_runs(f, used, a) < 0))
        return -ENOMEM;
    if (a->extra)
        notes_add(&ds->notes, "%s: %llu bytes follow the array, and are not read",
                  blob_name(root(a->here.held)->blob), (unsigned long long)a->extra);
    notes_add(&ds->notes, "%s", a->remark ? a->remark : "");
    return 0;
}

/* Lines about the arrays that are in no dataset, which each dataset has: about the first ones. */
static int list_left_out(const struct arrays *arrays, char **ret)
{
    AUTO_MISSING_PARTS struct missing_parts parts = {0};
    AUTO_TEXT struct text t = {0};
    int r = 0;

    for (size_t i = 0; i < arrays->n && r == 0; i++)
        if (arrays->array[i].left_out && !arrays->array[i].is_part)
            r = missing_parts_add(&parts, arrays->array[i].name, arrays->array[i].left_out);
    missing_parts_show(&parts, LEFT_OUT_SHOWN, &t);
    return r < 0 ? r : text_finish(&t, ret, NULL);
}

/* Files of these arrays, at most. */
static size_t array_set_count_files(const struct arrays *arrays, const struct array_group *group)
{
    size_t n = 0;

    for (size_t i = 0; i < group->n; i++)
        n += arrays->array[group->member[i]].n_parts + 1;
    return n;
}

static int array_set_make_set(const struct arrays *arrays, const struct array_group *group,
                              const struct format *format, const char *left_out,
                              struct dataset **ret)
{
    struct array_set *set = calloc(1, sizeof(*set));
    AUTO_DATASET struct dataset *ds = NULL;
    int r = dataset_new(format, &array_set_set_ops, set, group->n + 2,
                        array_set_count_files(arrays, group), &ds);

    if (r < 0)
        return r;
    set->rule = group->rule;
    set->split = group->split;
    set->used = calloc(group->n, sizeof(*set->used));
    if (!set->used)
        return -ENOMEM;
    set->left_out = strdup(left_out);
    if (!set->left_out)
        return -ENOMEM;
    dataset_set_samples(ds, arrays->array[*group->member].samples);
    for (size_t i = 0; i < group->n && r == 0; i++) {
        const struct array *a = &arrays->array[group->member[i]];
        char name[ARRAY_NAME_MAX + 8];

        array_field_name(arrays, group, i, name);
        r = array_set_add_field(ds, a, name);
    }
    if (r == 0) {
        dataset_add_numbering(ds);
        r = dataset_add_folders(ds);
    }
    if (r == 0)
        *ret = TAKE_PTR(ds);
    return r;
}

static void name_set(const struct arrays *arrays, const struct array_group *group,
                     const struct arrays_source *source, char *ret, size_t capacity)
{
    const char *before = source->stem && !source->alone ? source->stem : "";
    const char *joint = *before ? "-" : "";
    const char *name = arrays->array[*group->member].name;

    if (group->rule == PAIR_SPLIT)
        snprintf(ret, capacity, "%s%s%s", before, joint, group->split);
    else if (group->is_main && source->stem)
        snprintf(ret, capacity, "%s", source->stem);
    else if (group->is_main && group->rule == PAIR_SAMPLES)
        snprintf(ret, capacity, "all");
    else
        snprintf(ret, capacity, "%s%s%s", before, joint, name);
}

/* Is it the name of what a sample has, such as x, y or labels? */
static bool is_usual_name(const char *name)
{
    static const char *const names[] = {"x",     "y",      "image",  "label",   "data",
                                        "input", "output", "target", "feature", "mask",
                                        "id",    "key",    "weight", "index"};
    size_t len = strlen(name);

    len -= len > 1 && (name[len - 1] == 's' || name[len - 1] == 'S');
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == len && !strncasecmp(names[i], name, len))
            return true;
    return false;
}

/* Files that are one dataset only because they have as many rows: they may be of several. */
static void note_rule(const struct arrays *arrays, const struct array_group *group,
                      const struct arrays_source *source, struct dataset *ds)
{
    const struct array *one = &arrays->array[*group->member];

    for (size_t i = 0; i < group->n; i++)
        if (is_usual_name(arrays->array[group->member[i]].name))
            return;
    if (group->rule == PAIR_SAMPLES && !source->stem)
        notes_add(&ds->notes,
                  "%s and %s are fields of one dataset, because files of one directory that have "
                  "the same number of rows are; with -o pair=off each is a dataset",
                  one->file, arrays->array[group->member[1]].file);
}

/* Can the group be a dataset? 0; or -EBADMSG, with the reason in d. */
static int array_set_check_group(const struct arrays *arrays, const struct array_group *group,
                                 const char *where, const char *name, struct diag *d)
{
    const struct array *one = NULL, *other = NULL, *lacks = array_group_lacks(arrays, group);

    if (array_group_differs(arrays, group, &one, &other))
        return diag_set(
            d, -EBADMSG,
            "%s: arrays of %s: expected the same number of samples, in files of as many, got "
            "%llu in %s and %llu in %s; with -o pair=off each array is a dataset",
            where, group->split ? group->split : name, (unsigned long long)one->samples, one->name,
            (unsigned long long)other->samples, other->name);
    if (group->n <= PAIRED_MAX && array_group_repeats(arrays, group, &one, &other))
        return diag_set(
            d, -EBADMSG,
            "%s: the names of %s and %s differ by numbers only: they may be parts of one array, "
            "not two fields. With -o pair=off each array is a dataset; files x_0.npy, x_1.npy "
            "are one array",
            where, one->file, other->file);
    if (lacks)
        return diag_set(
            d, -EBADMSG,
            "%s: array %s cannot be read: %s. With -o pair=off each other array is a dataset",
            where, lacks->name, lacks->left_out);
    if (group->n > PAIRED_MAX)
        return diag_set(
            d, -EBADMSG,
            "%s: arrays of %s: expected at most %u, got %zu; with -o pair=off each array is a "
            "dataset",
            where, group->split, PAIRED_MAX, group->n);
    return 0;
}

static int array_set_add_group(struct arrays *arrays, const struct array_group *group,
                               const struct arrays_source *source, const char *left_out,
                               struct finds *finds)
{
    AUTO_DATASET struct dataset *ds = NULL;
    struct diag d = DIAG_INIT;
    char name[512];
    int r;

    name_set(arrays, group, source, name, sizeof(name));
    if (array_set_check_group(arrays, group, source->where, name, &d) < 0)
        return finds->error(finds, name, d.text);
    r = array_set_make_set(arrays, group, source->format, left_out, &ds);
    if (r < 0)
        return r;
    note_rule(arrays, group, source, ds);
    r = array_sets_missing(source, arrays, group, &ds->missing);
    return r < 0 ? r : finds->dataset(finds, name, TAKE_PTR(ds));
}

/* Many arrays with as many axes that belong to no other are probably a sample each: they get no
 * datasets, and are reported at once. 0 or -ENOMEM. */
static int refuse_samples(const struct arrays *arrays, struct array_groups *groups,
                          const struct arrays_source *source, struct finds *finds)
{
    const struct array *first = NULL, *other = NULL;
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < groups->n; i++) {
        const struct array *a = &arrays->array[*groups->group[i].member];

        if (groups->group[i].rule != PAIR_ALONE)
            continue;
        first = first ? first : a;
        if (!arrays_may_be_samples(first, a))
            continue;
        other = n++ && (!other || a->row_bytes != first->row_bytes) ? a : other;
    }
    if (n <= PAIRED_MAX)
        return 0;
    for (size_t i = 0; i < groups->n; i++) {
        struct array_group *g = &groups->group[i];

        if (g->rule == PAIR_ALONE && arrays_may_be_samples(first, &arrays->array[*g->member]))
            free(g->member);
        else
            groups->group[kept++] = *g;
    }
    groups->n = kept;
    return arrays_refuse_samples(first, other, n, source->stem ? source->stem : "all", finds);
}

int arrays_make_sets(struct arrays *arrays, const struct arrays_source *source,
                     const struct format_setup *setup, struct finds *finds)
{
    AUTO_ARRAY_GROUPS struct array_groups groups = {0};
    AUTO_FREE char *left_out = NULL;
    int r = arrays_pair(arrays, !setup->options.pair_off, &groups);

    if (r == 0)
        r = list_left_out(arrays, &left_out);
    if (r == 0 && !setup->options.pair_off)
        r = refuse_samples(arrays, &groups, source, finds);
    for (size_t i = 0; i < groups.n && r == 0; i++)
        r = array_set_add_group(arrays, &groups.group[i], source, left_out, finds);
    return r;
}
