/* What index.json says of the columns of a shard. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/json.h"
#include "format/mds/mds.h"

#define VALUES_MAX 512

static const struct mds_encoding {
    const char *name, *ext;
    enum mds_form form;
    unsigned head; /* of lists */
} encodings[] = {
    {"bytes", NULL, MDS_BYTES, 0},      {"str", NULL, MDS_TEXT, 0},
    {"json", "json", MDS_TEXT, 0},      {"str_int", NULL, MDS_TEXT, 0},
    {"str_float", NULL, MDS_TEXT, 0},   {"str_decimal", NULL, MDS_TEXT, 0},
    {"int", NULL, MDS_NUMBERS, 0},      {"ndarray", NULL, MDS_ARRAY, 0},
    {"pil", NULL, MDS_PICTURE, 0},      {"jpeg", "jpg", MDS_FILE, 0},
    {"png", "png", MDS_FILE, 0},        {"pkl", "pkl", MDS_FILE, 0},
    {"jpeg_array", "jpg", MDS_LIST, 0}, {"jpegarray", "jpg", MDS_LIST, 0},
    {"list[jpeg]", "jpg", MDS_LIST, 4}, {"list[png]", "png", MDS_LIST, 4},
    {"list[pil]", "bin", MDS_LIST, 4},
};

/* The type of that name, of those that MDS has. */
static bool mds_find_dtype(const char *name, size_t len, enum dtype *ret)
{
    for (*ret = 0; *ret < N_DTYPES; ++*ret) {
        const struct dtype_info *info = dtype_info(*ret);

        if (strchr("uif", info->letter) && strlen(info->name) == len &&
            !strncmp(info->name, name, len))
            return true;
    }
    return false;
}

/* Parse "2,3" after "ndarray:float32:". */
static bool mds_parse_shape(const char *text, struct record_column *ret)
{
    while (ret->ndim < RECORD_AXES) {
        char *end;
        unsigned long long dim = strtoull(text, &end, 10);

        if (end == text || *text == '-' || *text == '+' || dim > UINT32_MAX)
            return false;
        ret->dim[ret->ndim++] = dim;
        if (!*end)
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

/* "<type>", "ndarray:<type>" and "ndarray:<type>:<shape>", of which the second has heads. false:
 * the encoding is not known. */
static bool mds_parse_encoding(const char *name, struct mds_value *ret)
{
    struct record_column *c = &ret->column;
    const char *type = strncmp(name, "ndarray:", 8) ? name : name + 8;
    size_t len = type == name ? strlen(name) : strcspn(type, ":");

    for (size_t i = 0; i < ARRAY_LEN(encodings); i++)
        if (!strcmp(name, encodings[i].name)) {
            ret->form = encodings[i].form;
            ret->head = encodings[i].head;
            c->ext = encodings[i].ext;
            c->dtype = ret->form == MDS_NUMBERS ? DTYPE_I8 : DTYPE_U1;
            return true;
        }
    ret->typed = type != name && !type[len];
    ret->form = ret->typed ? MDS_ARRAY : MDS_NUMBERS;
    return mds_find_dtype(type, len, &c->dtype) &&
           (!type[len] || mds_parse_shape(type + len + 1, c));
}

/* Are the bytes of the column of numbers those of its encoding? */
static int mds_check_size(const struct mds_value *value, const char *encoding, struct diag *d)
{
    uint64_t bytes = dtype_info(value->column.dtype)->bytes;

    for (unsigned i = 0; i < value->column.ndim; i++)
        if (!checked_mul(bytes, value->column.dim[i], &bytes))
            bytes = 0;
    return bytes && bytes == value->size
               ? 0
               : diag_set(d, -EBADMSG,
                          "index.json: column %s: expected %llu bytes, which %s has, got %llu in "
                          "column_sizes",
                          value->name, (unsigned long long)bytes, encoding,
                          (unsigned long long)value->size);
}

static int mds_parse_value(struct mds_spec *spec, const char *name, const char *encoding,
                           const json_t *size, struct text *note, struct diag *d)
{
    struct mds_value *value = &spec->value[spec->n];
    json_int_t bytes = json_integer_value(size);
    bool is_known;

    if (!name || !encoding || bytes < 0 || bytes > UINT32_MAX ||
        (!json_is_null(size) && !json_is_integer(size)))
        return diag_set(d, -EBADMSG,
                        "index.json: column %u: expected a name, an encoding and a size or null, "
                        "got others",
                        spec->n);
    is_known = mds_parse_encoding(encoding, value);
    if (!is_known)
        *value = (struct mds_value){.form = MDS_BYTES};
    record_name(name, strlen(name), RECORD_NAME_MAX, value->name);
    value->column.name = value->name;
    value->column.field = spec->n;
    value->column.shown = value->form == MDS_TEXT      ? RECORD_TEXT
                          : value->form == MDS_NUMBERS ? RECORD_NUMBERS
                                                       : RECORD_BYTES;
    value->size = (uint64_t)bytes;
    if (!is_known)
        text_add(note, "%s is shown as bytes: its encoding %.40s is not known\n", value->name,
                 encoding);
    for (unsigned i = 0; i < spec->n; i++)
        if (!strcmp(spec->value[i].name, value->name))
            return diag_set(d, -EBADMSG,
                            "index.json: expected columns of different names, got two %s",
                            value->name);
    spec->n_varying += !value->size;
    value->number = spec->numbers;
    if (value->form == MDS_LIST || !value->size)
        spec->numbers += value->form == MDS_LIST ? MDS_SKIP + 1 : MDS_SIZE + 1;
    spec->n++;
    return value->form == MDS_NUMBERS ? mds_check_size(value, encoding, d) : 0;
}

void mds_spec_drop(struct mds_spec *spec)
{
    if (!spec || --spec->users)
        return;
    free(spec->value);
    free(spec->text);
    free(spec->note);
    free(spec);
}

static void mds_spec_scope_end(struct mds_spec **spec)
{
    mds_spec_drop(*spec);
}

int mds_spec_text(const json_t *shard, char **ret)
{
    AUTO_JSON json_t *all = json_pack("[O?O?O?]", json_object_get(shard, "column_names"),
                                      json_object_get(shard, "column_encodings"),
                                      json_object_get(shard, "column_sizes"));

    *ret = json_dumps(all, JSON_COMPACT);
    return *ret ? 0 : -ENOMEM;
}

int mds_spec_new(const json_t *shard, struct mds_spec **ret, struct diag *d)
{
    AUTO(mds_spec_scope_end) struct mds_spec *spec = calloc(1, sizeof(*spec));
    const json_t *names = json_object_get(shard, "column_names");
    const json_t *codes = json_object_get(shard, "column_encodings");
    const json_t *sizes = json_object_get(shard, "column_sizes");
    size_t n = json_array_size(names);
    AUTO_TEXT struct text note = {0};
    int r;

    if (!spec)
        return -ENOMEM;
    spec->users = 1;
    spec->numbers = MDS_FIXED;
    if (!n || n > VALUES_MAX || json_array_size(codes) != n || json_array_size(sizes) != n)
        return diag_set(d, -EBADMSG,
                        "index.json: expected 1 to %d column_names, and as many column_encodings "
                        "and column_sizes, got %zu, %zu and %zu",
                        VALUES_MAX, n, json_array_size(codes), json_array_size(sizes));
    spec->value = calloc(n, sizeof(*spec->value));
    r = spec->value ? mds_spec_text(shard, &spec->text) : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++)
        r = mds_parse_value(spec, json_string_value(json_array_get(names, i)),
                            json_string_value(json_array_get(codes, i)), json_array_get(sizes, i),
                            &note, d);
    if (r == 0 && spec->numbers > INDEX_LEARNED)
        r = diag_set(d, -EBADMSG, "index.json: expected fewer columns whose size varies, got %u",
                     spec->n_varying);
    if (r == 0)
        r = text_finish(&note, &spec->note, NULL);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(spec);
    return 0;
}
