#include "base/yaml.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "base/diag.h"
#include "base/json.h"

#define YAML_DEPTH 64

struct yaml_reader {
    yaml_parser_t parser;
    const char *what;
    struct diag *d;
};

static int yaml_fault(const struct yaml_reader *reader, const yaml_mark_t *at, const char *why)
{
    return diag_set(reader->d, -EBADMSG, "%s: line %zu: %s", reader->what, at->line + 1, why);
}

static int yaml_next(struct yaml_reader *reader, yaml_event_t *ret)
{
    const yaml_parser_t *parser = &reader->parser;

    if (yaml_parser_parse(&reader->parser, ret))
        return 0;
    *ret = (yaml_event_t){0};
    return parser->error == YAML_MEMORY_ERROR
               ? -ENOMEM
               : yaml_fault(reader, &parser->problem_mark,
                            parser->problem ? parser->problem : "expected YAML");
}

static int yaml_members(struct yaml_reader *reader, unsigned depth, bool is_map, json_t *all);

/* The value that begins with the event. */
static int yaml_value(struct yaml_reader *reader, const yaml_event_t *event, unsigned depth,
                      json_t **ret)
{
    bool is_map = event->type == YAML_MAPPING_START_EVENT;

    if (event->type == YAML_ALIAS_EVENT)
        *ret = json_false();
    else if (event->type == YAML_SCALAR_EVENT && !event->data.scalar.length &&
             event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        *ret = json_null();
    else if (event->type == YAML_SCALAR_EVENT)
        *ret = json_stringn((const char *)event->data.scalar.value, event->data.scalar.length);
    else
        *ret = is_map ? json_object() : json_array();
    if (!*ret)
        return -ENOMEM;
    if (event->type == YAML_SCALAR_EVENT || event->type == YAML_ALIAS_EVENT)
        return 0;
    return depth == YAML_DEPTH
               ? yaml_fault(reader, &event->start_mark, "expected 64 levels, got more")
               : yaml_members(reader, depth + 1, is_map, *ret);
}

static int yaml_member(struct yaml_reader *reader, const yaml_event_t *event, unsigned depth,
                       bool is_map, json_t *all)
{
    AUTO_JSON json_t *value = NULL;
    yaml_event_t next = {0};
    const char *key;
    int r;

    if (!is_map) {
        r = yaml_value(reader, event, depth, &value);
        return r < 0 ? r : json_array_append(all, value) < 0 ? -ENOMEM : 0;
    }
    key = event->type == YAML_SCALAR_EVENT ? (const char *)event->data.scalar.value : NULL;
    if (!key || strlen(key) != event->data.scalar.length)
        return yaml_fault(reader, &event->start_mark, "expected a key that is a text");
    r = yaml_next(reader, &next);
    if (r == 0)
        r = yaml_value(reader, &next, depth, &value);
    if (r == 0 && json_object_set(all, key, json_object_get(all, key) ? json_false() : value) < 0)
        r = -ENOMEM;
    yaml_event_delete(&next);
    return r;
}

static int yaml_members(struct yaml_reader *reader, unsigned depth, bool is_map, json_t *all)
{
    bool ends = false;
    int r = 0;

    while (r == 0 && !ends) {
        yaml_event_t event = {0};

        r = yaml_next(reader, &event);
        ends = event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
        if (r == 0 && !ends)
            r = yaml_member(reader, &event, depth, is_map, all);
        yaml_event_delete(&event);
    }
    return r;
}

static int yaml_document(struct yaml_reader *reader, json_t **ret)
{
    bool is_value = false;
    int r = 0;

    while (r == 0 && !is_value) {
        yaml_event_t event = {0};

        r = yaml_next(reader, &event);
        is_value = event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT;
        if (r == 0 && is_value && event.type != YAML_STREAM_END_EVENT)
            r = yaml_value(reader, &event, 0, ret);
        yaml_event_delete(&event);
    }
    return r;
}

int yaml_read(const void *text, size_t len, const char *what, json_t **ret, struct diag *d)
{
    struct yaml_reader reader = {.what = what, .d = d};
    AUTO_JSON json_t *value = NULL;
    int r;

    if (!yaml_parser_initialize(&reader.parser))
        return -ENOMEM;
    yaml_parser_set_input_string(&reader.parser, text, len);
    r = yaml_document(&reader, &value);
    yaml_parser_delete(&reader.parser);
    if (r < 0)
        return r;
    *ret = value;
    value = NULL;
    return 0;
}
