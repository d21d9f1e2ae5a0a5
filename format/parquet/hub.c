/* What `datasets` of Hugging Face writes into the metadata: its features.features. It helps to
 * show columns, so what is wrong with it is a note, never an error. */
#include <errno.h>
#include <string.h>

#include "base/diag.h"
#include "format/parquet/file.h"

int parquet_hub_read(struct parquet_file *file)
{
    const struct parquet_footer *footer = &file->footer;
    AUTO_JSON json_t *root = NULL;
    struct diag why = DIAG_INIT;
    json_t *features;
    size_t len;
    int r;

    if (!footer->huggingface)
        return 0;
    len = strlen(footer->huggingface);
    r = len > PARQUET_HUGGINGFACE_MAX
            ? diag_set(&why, -EBADMSG, "expected at most 1 MiB, got more")
            : json_read(footer->huggingface, len, "metadata 'huggingface'", json_budget(len), &root,
                        &why);
    if (r == -ENOMEM)
        return r;
    features = json_object_get(json_object_get(root, "info"), "features");
    if (json_is_object(features))
        file->features = json_incref(features);
    else
        text_add(&file->notes, "%s: metadata 'huggingface' is ignored: %s\n",
                 blob_name(file->base.blob),
                 r < 0 ? diag_text(&why, r) : "expected info.features, got none");
    return 0;
}

static bool hub_is_type(const json_t *feature, const char *type)
{
    const char *is = json_string_value(json_object_get(feature, "_type"));

    return is && !strcmp(is, type);
}

const json_t *parquet_hub_classes(const json_t *feature)
{
    const json_t *names = json_object_get(feature, "names");

    if (!hub_is_type(feature, "ClassLabel") || !json_array_size(names))
        return NULL;
    for (size_t i = 0; i < json_array_size(names); i++)
        if (!json_is_string(json_array_get(names, i)))
            return NULL;
    return names;
}

bool parquet_hub_shape(const json_t *feature, unsigned ndim, uint64_t ret[static RECORD_AXES])
{
    const json_t *shape = json_object_get(feature, "shape"), *length;
    const char *type = json_string_value(json_object_get(feature, "_type"));

    if (!type)
        return false;
    if (ndim == 1 && (!strcmp(type, "Sequence") || !strcmp(type, "List"))) {
        length = json_object_get(feature, "length");
        ret[0] = (uint64_t)json_integer_value(length);
        return json_is_integer(length) && json_integer_value(length) > 0 &&
               json_integer_value(length) <= INT32_MAX;
    }
    if (strncmp(type, "Array", 5) != 0 || json_array_size(shape) != ndim)
        return false;
    for (unsigned i = 0; i < ndim; i++) {
        const json_t *axis = json_array_get(shape, i);
        json_int_t n = json_integer_value(axis);

        if (json_is_integer(axis) ? n <= 0 || n > INT32_MAX : i || !json_is_null(axis))
            return false;
        ret[i] = json_is_null(axis) ? DIM_VARIES : (uint64_t)n;
    }
    return true;
}
