/* Which fields all sources have, and what they are together.
 *
 * Fields are the same if they have one name and are of one kind: arrays of one type whose axes
 * agree except the first, texts, or files of one extension. A field that a source lacks is
 * omitted. One that is of another type somewhere is an error, because the samples would not be what
 * their name says. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/encode/encode.h"
#include "format/mix/parts.h"

#define FIELDS_OF_COLUMN 4

enum column_type { COLUMN_NONE, COLUMN_ARRAY, COLUMN_TEXT, COLUMN_FILE };

static enum column_type mix_fields_type_of(const struct field *f)
{
    if (f->numbering || f->names_file || f->ndim > RECORD_AXES)
        return COLUMN_NONE;
    switch (f->form) {
    case FORM_ITEM:
    case FORM_RAGGED:
        return field_is_in(f, IN_ARRAYS | IN_PREVIEW) ? COLUMN_ARRAY : COLUMN_NONE;
    case FORM_TEXT:
        return COLUMN_TEXT;
    case FORM_BYTES: /* keys as lines are made again; archives with keys in them would have the
                        wrong ones */
        return !strcmp(f->name, "key") || !strcmp(f->folder, "ark") ? COLUMN_NONE : COLUMN_FILE;
    default:
        return COLUMN_NONE;
    }
}

/* The field of ds that may be the same as f; NULL: none. */
static const struct field *find_like(const struct dataset *ds, const struct field *f)
{
    bool is_file = mix_fields_type_of(f) == COLUMN_FILE;

    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *g = &ds->field[i];

        if (mix_fields_type_of(g) == COLUMN_NONE ||
            (mix_fields_type_of(g) == COLUMN_FILE) != is_file || strcmp(f->name, g->name) != 0)
            continue;
        if (!is_file || (!strcmp(f->folder, g->folder) && !strcmp(f->ext, g->ext)))
            return g;
    }
    return NULL;
}

/* A number is like an array of one. */
static unsigned mix_fields_axes_of(const struct field *f)
{
    return f->ndim > 1 ? f->ndim : 1;
}

static bool axes_agree(const struct field *f, const struct field *g)
{
    if (mix_fields_axes_of(f) != mix_fields_axes_of(g))
        return false;
    for (unsigned i = 1; i < f->ndim; i++)
        if (f->dim[i] != g->dim[i] && f->dim[i] != DIM_VARIES && g->dim[i] != DIM_VARIES)
            return false;
    return true;
}

/* Do all have the same axes? */
static bool is_item(const struct mix_column *c, unsigned n)
{
    const struct field *f = c->field[0];

    for (unsigned i = 0; i < n; i++) {
        const struct field *g = c->field[i];

        if (g->form != FORM_ITEM || g->ndim != f->ndim ||
            (f->ndim && memcmp(f->dim, g->dim, f->ndim * sizeof(*f->dim)) != 0))
            return false;
    }
    return true;
}

/* ---- what differs ---- */

static void show_type(const struct field *f, struct text *t)
{
    if (mix_fields_type_of(f) == COLUMN_TEXT) {
        text_add(t, "text");
        return;
    }
    text_add(t, "%s (", f->stored_as ? f->stored_as : dtype_info(f->dtype)->name);
    for (unsigned i = 0; i < f->ndim; i++) {
        text_add(t, i ? ", " : "");
        text_add(t, f->dim[i] == DIM_VARIES ? "any" : "%llu", (unsigned long long)f->dim[i]);
    }
    text_add(t, f->ndim == 1 ? ",)" : ")");
}

static int mix_fields_differs(const struct mix_set *set, unsigned i, const struct field *f,
                              const struct field *g, struct diag *d)
{
    AUTO_TEXT struct text a = {0}, b = {0};

    show_type(f, &a);
    show_type(g, &b);
    return diag_set(
        d, -EINVAL,
        "mix %s: expected fields of one type whose axes agree except for the first, got "
        "'%s' as %s in %s, and as %s in %s",
        set->setup.name, f->name, a.data ? a.data : "", set->setup.shown[0], b.data ? b.data : "",
        set->setup.shown[i]);
}

static void mix_fields_leave_out(struct mix_set *set, const struct field *f)
{
    size_t len = strlen(f->name);

    if (f->base_field || f->derived || !field_is_in(f, IN_PAGES | IN_FILES))
        return;
    for (const char *at = set->left_out.data; at && *at; at += strspn(at, ", ")) {
        size_t n = strcspn(at, ",");

        if (n == len && !memcmp(at, f->name, len))
            return;
        at += n;
    }
    text_add(&set->left_out, "%s%s", set->left_out.len ? ", " : "", f->name);
}

/* ---- columns ---- */

static bool is_same_type(const struct field *f, const struct field *g)
{
    return mix_fields_type_of(f) == mix_fields_type_of(g) &&
           (mix_fields_type_of(f) != COLUMN_ARRAY ||
            (f->dtype == g->dtype && f->width == g->width &&
             !strcmp(f->stored_as ? f->stored_as : "", g->stored_as ? g->stored_as : "")));
}

/* Find the fields of the sources for f, one of the first. 1: all have it; 0: it is omitted. */
static int mix_fields_find_fields(struct mix_set *set, const struct field *f, struct mix_column *c,
                                  struct diag *d)
{
    unsigned n = set->setup.n;
    bool says_nothing = f->base_field || f->derived || !field_is_in(f, IN_PAGES | IN_FILES);

    for (unsigned i = 0; i < n; i++) {
        const struct field *g = i ? find_like(set->setup.ds[i], f) : f;

        if (!g) {
            mix_fields_leave_out(set, f);
            return 0;
        }
        if (!is_same_type(f, g) || (mix_fields_type_of(f) == COLUMN_ARRAY && !axes_agree(f, g)))
            return says_nothing ? 0 : mix_fields_differs(set, i, f, g, d);
        c->field[i] = g;
        c->record[i] = records_content_of(g);
    }
    /* What is derived has no offsets and lengths of its own. */
    return mix_fields_type_of(f) != COLUMN_ARRAY || is_item(c, n) || !says_nothing;
}

static void mix_column_release(struct mix_column *c)
{
    free(c->field);
    free(c->record);
    *c = (struct mix_column){.field = NULL};
}

int mix_column_init(struct mix_set *set, struct mix_column *c)
{
    c->field = calloc(set->setup.n, sizeof(*c->field));
    c->record = calloc(set->setup.n, sizeof(*c->record));
    if (!c->field || !c->record) {
        mix_column_release(c);
        return -ENOMEM;
    }
    c->content = (struct record_content){.ops = &mix_contents, .column = set->n_columns++};
    return 0;
}

/* Add a column for f, if all have it. */
static int mix_fields_add_column(struct mix_set *set, const struct field *f, struct diag *d)
{
    struct mix_column *c = &set->column[set->n_columns];
    int r = mix_column_init(set, c);

    if (r < 0)
        return r;
    r = mix_fields_find_fields(set, f, c, d);
    if (r == 1)
        return 0;
    mix_column_release(c);
    set->n_columns--;
    return r;
}

static void name_left_out(struct mix_set *set)
{
    for (unsigned i = 1; i < set->setup.n; i++) {
        const struct dataset *ds = set->setup.ds[i];

        for (unsigned k = 0; k < ds->n_fields; k++)
            if (mix_fields_type_of(&ds->field[k]) != COLUMN_NONE &&
                !find_like(set->setup.ds[0], &ds->field[k]))
                mix_fields_leave_out(set, &ds->field[k]);
    }
}

static int find_columns(struct mix_set *set, struct diag *d)
{
    const struct dataset *ds = set->setup.ds[0];
    int r = 0;

    set->column = calloc(ds->n_fields + 1u, sizeof(*set->column));
    if (!set->column)
        return -ENOMEM;
    for (unsigned i = 0; i < ds->n_fields && r == 0; i++)
        if (mix_fields_type_of(&ds->field[i]) != COLUMN_NONE)
            r = mix_fields_add_column(set, &ds->field[i], d);
    if (r < 0)
        return r;
    name_left_out(set);
    if (!set->n_columns)
        return diag_set(d, -EINVAL,
                        "mix %s: expected sources that have a field in common, got none in %s and "
                        "%s: %s",
                        set->setup.name, set->setup.shown[0], set->setup.shown[set->setup.n - 1],
                        set->left_out.data ? set->left_out.data : "none has any");
    return 0;
}

void mix_columns_free(struct mix_set *set)
{
    for (unsigned i = 0; i < set->n_columns; i++)
        mix_column_release(&set->column[i]);
    free(set->column);
}

/* ---- what the columns are together ---- */

/* The files that show the field in all sources. */
static unsigned in_all(const struct mix_column *c, unsigned n)
{
    unsigned in = c->field[0]->in & ~(unsigned)IN_CSC;

    for (unsigned i = 1; i < n; i++)
        in &= c->field[i]->in;
    return in;
}

static bool is_exchanged(const struct field *f)
{
    for (unsigned i = 0; i < f->ndim; i++)
        if (field_stored_dim(f, i) != f->dim[i])
            return true;
    return false;
}

static bool is_stored_alike(const struct mix_column *c, unsigned n)
{
    const struct field *f = c->field[0];

    for (unsigned i = 0; i < n; i++) {
        const struct field *g = c->field[i];

        if (g->stored_dtype != f->stored_dtype || g->stored_width != f->stored_width ||
            g->stored_bytes != f->stored_bytes || g->stored_big_endian != f->stored_big_endian ||
            is_exchanged(g))
            return false;
    }
    return true;
}

/* Sources that store it in different ways have no stored bytes together; but an integer is one. */
static void mix_fields_set_stored(struct field *f, const struct mix_column *c, unsigned n)
{
    const struct field *g = c->field[0];
    bool is_alike = is_stored_alike(c, n);

    if (!is_alike)
        f->in &= ~(unsigned)(IN_RAW | IN_IDX);
    f->stored_dtype = is_alike ? g->stored_dtype : g->dtype;
    f->stored_width = is_alike ? g->stored_width : g->width;
    f->stored_bytes = is_alike ? g->stored_bytes : g->item_bytes;
    f->stored_big_endian = is_alike && g->stored_big_endian;
    f->read_stored = is_alike ? mix_read_stored : mix_read_shown;
}

/* The axes, and whether the contents are made at once. */
static void set_content(struct mix_column *c, unsigned n)
{
    struct record_content *content = &c->content;
    const struct field *f = c->field[0];
    bool item = is_item(c, n);

    content->dtype = f->dtype;
    content->ndim = item ? f->ndim : mix_fields_axes_of(f);
    content->is_number = !item;
    content->make_at_once = RECORD_MAKES;
    content->dim[0] = DIM_VARIES;
    for (unsigned i = item ? 0 : 1; i < f->ndim; i++)
        content->dim[i] = f->dim[i];
    for (unsigned i = 0; i < n; i++) {
        const struct field *g = c->field[i];
        const struct record_content *record = c->record[i];

        for (unsigned k = 1; k < g->ndim && !item; k++)
            if (g->dim[k] != content->dim[k])
                content->dim[k] = DIM_VARIES;
        content->is_number = content->is_number && (!g->ndim || (record && record->is_number));
        content->make_at_once = record && record->make_at_once < content->make_at_once
                                    ? record->make_at_once
                                : record ? content->make_at_once
                                         : 0;
    }
}

/* The name that a field has in the mix: `source` is taken. */
static const char *name_of(const struct field *f)
{
    return strcmp(f->name, "source") != 0 ? f->name : "source~2";
}

static void add_item(struct dataset *ds, struct mix_column *c, unsigned in)
{
    const struct field *g = c->field[0];
    struct field *f = records_add_item(ds, &c->content, name_of(g), in);

    f->derived = g->derived;
    f->base_field = g->base_field ? dataset_field(ds, g->base_field->name) : NULL;
    if (in & (IN_RAW | IN_IDX | IN_CLS))
        mix_fields_set_stored(f, c, mix_set_of(ds)->setup.n);
}

static void mix_fields_add_file(struct dataset *ds, struct mix_column *c, unsigned in)
{
    const struct field *g = c->field[0];
    struct field *f =
        records_add_bytes(ds, &c->content, name_of(g), g->folder, g->ext, in & (IN_FILES | IN_TAR));

    f->ops = &mix_bytes_ops;
    f->unnamed = g->unnamed;
    for (unsigned i = 0; i < mix_set_of(ds)->setup.n; i++)
        f->unnamed = f->unnamed && c->field[i]->unnamed;
}

static void mix_fields_add_fields(struct dataset *ds, struct mix_column *c)
{
    unsigned n = mix_set_of(ds)->setup.n, in = in_all(c, n), first = ds->n_fields;

    if (mix_fields_type_of(c->field[0]) != COLUMN_ARRAY) {
        c->content.ndim = 1;
        c->content.dim[0] = DIM_VARIES;
        c->content.dtype = DTYPE_U1;
        if (mix_fields_type_of(c->field[0]) == COLUMN_FILE)
            mix_fields_add_file(ds, c, in);
        else
            records_add_strings(ds, &c->content, name_of(c->field[0]));
        return;
    }
    set_content(c, n);
    if (is_item(c, n))
        add_item(ds, c, in);
    else if (in & IN_NPY_SAMPLES)
        records_add_arrays(ds, &c->content, name_of(c->field[0]), in & IN_TAR);
    else
        records_add_byte_arrays(ds, &c->content, name_of(c->field[0]));
    for (unsigned i = first; i < ds->n_fields; i++)
        if (ds->field[i].dtype == c->field[0]->dtype) /* and no lengths */
            ds->field[i].stored_as = c->field[0]->stored_as;
}

static void add_source(struct dataset *ds)
{
    ds->field[ds->n_fields++] = (struct field){
        .name = "source",
        .in = IN_NPY_BATCHES | IN_NPZ_BATCHES | IN_PAGES,
        .numbering = true,
        .ops = &mix_source_ops,
        .dtype = DTYPE_I8,
        .width = 8,
        .item_bytes = 8,
    };
}

/* As wide as the widest of the sources, with the number of the source in front. */
static void set_key_width(struct dataset *ds)
{
    const struct mix_set *set = mix_set_of(ds);
    struct field *key = &ds->field[ds->n_fields - 1];

    key->width = 0;
    for (unsigned i = 0; i < set->setup.n; i++) {
        const struct dataset *source = set->setup.ds[i];

        for (unsigned k = 0; k < source->n_fields; k++)
            if (source->field[k].numbering && source->field[k].form == FORM_TEXT)
                key->width = max_u64(key->width, source->field[k].width + decimal_digits(i) + 1);
    }
    key->item_bytes = key->width;
}

int mix_fields_make(struct dataset *ds, struct diag *d)
{
    struct mix_set *set = mix_set_of(ds);
    int r = find_columns(set, d);

    if (r == 0)
        r = mix_names_check(ds, d);
    if (r == 0)
        r = dataset_make_fields(ds, (size_t)set->n_columns * FIELDS_OF_COLUMN + MIX_MATRIX_FIELDS +
                                        RECORD_KEY_FIELDS + 1);
    for (unsigned i = 0, n = set->n_columns; i < n && r == 0; i++)
        mix_fields_add_fields(ds, &set->column[i]);
    if (r == 0)
        r = mix_matrix_add(ds, d);
    if (r < 0)
        return r;
    add_source(ds);
    records_add_keys(ds);
    r = records_finish(ds, set->first[set->setup.n]);
    if (r < 0)
        return r;
    set_key_width(ds);
    return dataset_add_folders(ds);
}
