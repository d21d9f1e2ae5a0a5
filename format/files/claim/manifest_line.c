/* What a line of a manifest says. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "format/files/claim/manifests.h"

void manifest_line_release(struct manifest_line *line)
{
    if (line->json)
        json_free(&line->json);
    line->json = NULL;
}

/* A member that is a text and not empty; NULL: it is not there, or something else. */
static const char *manifest_line_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text && *text ? text : NULL;
}

static int manifest_line_bad(const char *what, const char *wrong, struct diag *d)
{
    return diag_set(d, -EBADMSG, "%s: %s", what, wrong);
}

static int manifest_line_labels(struct manifest_line *line, const json_t *annotation,
                                const char *what, struct diag *d)
{
    size_t n = json_array_size(annotation);

    if (annotation && !json_is_array(annotation))
        return manifest_line_bad(what, "expected an array 'annotation', got something else", d);
    if (n > MANIFEST_LABELS_MAX)
        return manifest_line_bad(what, "expected at most 256 annotations, got more", d);
    for (size_t i = 0; i < n; i++) {
        line->label[i] = manifest_line_text(json_array_get(annotation, i), "name");
        if (!line->label[i])
            return manifest_line_bad(what, "expected a text 'name' in each annotation, got none",
                                     d);
    }
    line->n = n;
    return 0;
}

int manifest_line_parse(struct manifest_line *ret, const char *bytes, size_t len, const char *what,
                        struct diag *d)
{
    int r;

    *ret = (struct manifest_line){0};
    r = json_read(bytes, len, what, json_budget(len), &ret->json, d);
    if (r == -EFBIG)
        r = -EBADMSG;
    if (r < 0)
        return r;
    if (!json_is_object(ret->json))
        return manifest_line_bad(what, "expected a JSON object, got something else", d);
    ret->source = manifest_line_text(ret->json, "source");
    if (!ret->source)
        return manifest_line_bad(what, "expected a text 'source', got none", d);
    ret->usage = manifest_line_text(ret->json, "usage");
    if (!ret->usage)
        return manifest_line_bad(what, "expected a text 'usage', got none", d);
    return manifest_line_labels(ret, json_object_get(ret->json, "annotation"), what, d);
}
