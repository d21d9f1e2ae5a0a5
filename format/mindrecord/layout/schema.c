/* The schema: fields of blobs, in the order of their bytes, then those of raw rows. */
#include "format/mindrecord/layout/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const struct type {
    const char *name;
    enum mindrecord_type type;
    enum dtype dtype;
} mindrecord_schema_types[] = {
    {"bytes", TYPE_BYTES, DTYPE_U1},   {"string", TYPE_TEXT, DTYPE_U1},
    {"int32", TYPE_INTEGER, DTYPE_I4}, {"int64", TYPE_INTEGER, DTYPE_I8},
    {"float32", TYPE_FLOAT, DTYPE_F4}, {"float64", TYPE_FLOAT, DTYPE_F8},
};

static int mindrecord_schema_refuse(const struct header_text *text, const char *key,
                                    const char *why)
{
    return diag_set(text->d, -EBADMSG, "%s: schema: field '%.100s': expected %s", text->name, key,
                    why);
}

static int mindrecord_schema_read_type(const struct header_text *text, const char *key,
                                       const json_t *spec, struct mindrecord_field *f)
{
    const char *name = json_string_value(json_object_get(spec, "type"));

    for (size_t i = 0; name && i < ARRAY_LEN(mindrecord_schema_types); i++) {
        if (strcmp(name, mindrecord_schema_types[i].name) != 0)
            continue;
        f->type = mindrecord_schema_types[i].type;
        f->dtype = mindrecord_schema_types[i].dtype;
        return 0;
    }
    if (name && (!strcmp(name, "array") || !strcmp(name, "number")))
        return diag_set(text->d, -EBADMSG,
                        "%s: field '%.100s': pre-release MindRecord schema type '%s'", text->name,
                        key, name);
    return mindrecord_schema_refuse(text, key,
                                    "type bytes, string, int32, int64, float32, or float64");
}

static int mindrecord_schema_read_shape(const struct header_text *text, const char *key,
                                        const json_t *shape, struct mindrecord_field *f)
{
    bool varies = false;

    f->ndim = (unsigned)json_array_size(shape);
    if (!f->ndim || json_array_size(shape) > RECORD_AXES)
        return mindrecord_schema_refuse(text, key, "a shape of 1 to 8 axes");
    for (unsigned i = 0; i < f->ndim; i++) {
        const json_t *axis = json_array_get(shape, i);
        json_int_t v = json_integer_value(axis);

        if (!json_is_integer(axis) || v < -1 || (v == -1 && varies) || v > UINT32_MAX)
            return mindrecord_schema_refuse(text, key,
                                            "axes of 0 to 4294967295, of which one may be -1");
        varies |= v == -1;
        f->dim[i] = v == -1 ? DIM_VARIES : (uint64_t)v;
    }
    return 0;
}

static int mindrecord_schema_read_field(const struct header_text *text, const char *key,
                                        const json_t *spec, bool packs, struct mindrecord_field *f)
{
    const json_t *shape = json_object_get(spec, "shape");
    int r = mindrecord_schema_read_type(text, key, spec, f);

    if (r < 0)
        return r;
    record_name(key, strlen(key), RECORD_NAME_MAX, f->name);
    if (shape && f->type == TYPE_TEXT)
        return mindrecord_schema_refuse(text, key, "no shape of a string");
    if (shape && f->type != TYPE_BYTES) {
        f->packed = packs && f->type == TYPE_INTEGER;
        f->type = TYPE_ARRAY;
        r = mindrecord_schema_read_shape(text, key, shape, f);
    }
    return r;
}

static int mindrecord_schema_add_field(const struct header_text *text, const char *key,
                                       const json_t *spec, bool packs, bool in_blob,
                                       struct mindrecord_header *ret)
{
    struct mindrecord_field *f = &ret->field[ret->n_fields];
    int r = mindrecord_schema_read_field(text, key, spec, packs, f);

    if (r < 0)
        return r;
    if (in_blob != (f->type < TYPE_TEXT))
        return mindrecord_schema_refuse(text, key,
                                        in_blob
                                            ? "bytes or an array, as blob_fields say"
                                            : "blob_fields to have it, as it is bytes or an array");
    f->key = strdup(key);
    if (!f->key)
        return -ENOMEM;
    ret->n_fields++;
    ret->n_blobs += in_blob;
    return 0;
}

static bool mindrecord_schema_has_field(const struct mindrecord_header *header, unsigned n,
                                        const char *key)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(header->field[i].key, key))
            return true;
    return false;
}

int mindrecord_schema(const struct header_text *text, const json_t *schemas, bool packs,
                      struct mindrecord_header *ret)
{
    const json_t *entry = json_array_get(schemas, 0),
                 *blobs = json_object_get(entry, "blob_fields");
    json_t *fields = json_object_get(entry, "schema"), *spec;
    size_t n = json_object_size(fields);
    const char *key;
    int r = 0;

    if (json_array_size(schemas) != 1 || !n || n > MINDRECORD_FIELDS)
        return diag_set(text->d, -EBADMSG,
                        "%s: schema: expected one, with 1 to %u fields, got %zu with %zu",
                        text->name, MINDRECORD_FIELDS, json_array_size(schemas), n);
    ret->field = calloc(n, sizeof(*ret->field));
    if (!ret->field)
        return -ENOMEM;
    for (size_t i = 0; i < json_array_size(blobs) && r == 0; i++) {
        key = json_string_value(json_array_get(blobs, i));
        spec = key ? json_object_get(fields, key) : NULL;
        if (!spec || mindrecord_schema_has_field(ret, ret->n_fields, key))
            r = mindrecord_schema_refuse(text, key ? key : "",
                                         "blob_fields that are fields, each once");
        else
            r = mindrecord_schema_add_field(text, key, spec, packs, true, ret);
    }
    json_object_foreach(fields, key, spec)
    {
        if (r == 0 && !mindrecord_schema_has_field(ret, ret->n_blobs, key))
            r = mindrecord_schema_add_field(text, key, spec, packs, false, ret);
    }
    return r;
}
