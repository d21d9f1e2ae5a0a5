#include "fs/cli/status_values.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

/* Whole numbers beyond int64 are read as real ones. */
json_t *status_parse(const char *text)
{
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;

    return json || !text ? json : json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
}

json_t *status_value(const json_t *json, const char *path)
{
    for (;;) {
        size_t len = strcspn(path, ".");
        char name[64];

        if (len >= sizeof(name))
            return NULL;
        memcpy(name, path, len);
        name[len] = '\0';
        json = json_object_get(json, name);
        if (!json || !path[len])
            return (json_t *)(uintptr_t)json;
        path += len + 1;
    }
}

double status_real(const json_t *json, const char *path)
{
    double value = json_number_value(status_value(json, path));

    return value > 0 ? value : 0;
}

uint64_t status_number(const json_t *json, const char *path)
{
    const json_t *value = status_value(json, path);
    double real = status_real(json, path);

    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    return real < 0x1p64 ? (uint64_t)real : UINT64_MAX;
}

/* How many of the len bytes are left without a part of a character at their end. */
static size_t whole_characters(const char *s, size_t len)
{
    size_t last = len; /* begins in front of it */

    while (last && ((unsigned char)s[last - 1] & 0xc0) == 0x80)
        last--;
    if (!last || text_character(s + last - 1, len - last + 1) == len - last + 1)
        return len;
    return last - 1;
}

bool status_string(const json_t *json, const char *path, char *ret, size_t capacity)
{
    const char *value = json_string_value(status_value(json, path));
    size_t len = value ? strlen(value) : 0;

    if (len >= capacity)
        len = whole_characters(value, capacity - 1);
    memcpy(ret, value ? value : "", len);
    ret[len] = '\0';
    return value;
}
