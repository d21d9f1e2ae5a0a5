#include "fs/tree/class_page.h"

#include <string.h>

bool class_page_name(const struct dataset *ds, int64_t value, struct text *ret)
{
    return ds->ops && ds->ops->class_name && ds->ops->class_name(ds, value, ret) && ret->data;
}

/* The name of a class of the label: a text is one; of numbers the field `label` alone has names. */
static bool label_name(const struct dataset *ds, const struct class_counts *c, int64_t value,
                       struct text *ret)
{
    size_t len;
    const char *text = c->has_texts ? numbered_text(&c->texts, c->texts.sorted[value], &len) : NULL;

    if (text)
        text_add_bytes(ret, text, len);
    return text || (!strcmp(ds->label, "label") && class_page_name(ds, value, ret));
}

void class_page_words(const struct dataset *ds, const struct class_counts *c, struct text *t)
{
    const uint64_t shown[] = {c->least, c->most};

    bool differ = c->count[c->least] < c->count[c->most];

    text_add(t, "%llu of %s", (unsigned long long)c->n, ds->label);
    if (!differ)
        text_add(t, ", each %llu", (unsigned long long)c->count[c->most]);
    for (unsigned i = 0; i < 2 && differ; i++) {
        AUTO_TEXT struct text name = {0};
        bool has_name = label_name(ds, c, c->value[shown[i]], &name);

        text_add(t, ", the %s %llu (%lld%s%s)", i ? "most" : "least",
                 (unsigned long long)c->count[shown[i]], (long long)c->value[shown[i]],
                 has_name ? " " : "", has_name ? name.data : "");
    }
}

static void json_class(const struct dataset *ds, const struct class_counts *c, uint64_t i,
                       struct text *t)
{
    AUTO_TEXT struct text name = {0};

    json_open(t, NULL, NULL, "{");
    json_add(t, NULL, "value", "%lld", (long long)c->value[i]);
    if (label_name(ds, c, c->value[i], &name))
        json_add_text(t, NULL, "name", name.data);
    json_add_number(t, NULL, "samples", c->count[i]);
    json_close(t, NULL, "}");
}

void class_page_json(const struct dataset *ds, const struct class_counts *c, const char *indent,
                     struct text *t)
{
    bool lists = c->n <= CLASS_PAGE_MOST;

    json_open(t, indent, "class_counts", "{");
    json_add_text(t, NULL, "field", ds->label);
    json_add_number(t, NULL, "classes", c->n);
    text_add(t, ",\n%s  \"least\": ", indent);
    json_class(ds, c, c->least, t);
    text_add(t, ",\n%s  \"most\": ", indent);
    json_class(ds, c, c->most, t);
    if (lists)
        text_add(t, ",\n%s  \"each\": [", indent);
    for (uint64_t i = 0; i < c->n && lists; i++)
        json_class(ds, c, i, t);
    text_add(t, lists ? "]},\n" : "},\n");
}
