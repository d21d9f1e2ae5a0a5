#include "base/json.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

static atomic_uint wipers;   /* threads that want it: then all that is freed is wiped */
static atomic_uint failures; /* of malloc(): jansson calls a text wrong for which it has none */

static void *json_allocate(size_t size)
{
    void *memory = malloc(size);

    if (!memory)
        atomic_fetch_add(&failures, 1);
    return memory;
}

static void json_free_memory(void *memory)
{
    if (memory && atomic_load(&wipers))
        explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}

/* All memory of jansson is malloc()'s, from before the first thread on. */
__attribute__((constructor)) static void json_begin(void)
{
    json_set_alloc_funcs(json_allocate, json_free_memory);
}

void json_wipe(bool on)
{
    if (on)
        atomic_fetch_add(&wipers, 1);
    else
        atomic_fetch_sub(&wipers, 1);
}

/* At most what jansson allocates for the values of the text, from the places where they begin. */
static uint64_t memory_of(const char *text, size_t len)
{
    uint64_t sum = 2 * (uint64_t)len + 64;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        if (in_string && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            in_string = !in_string;
            sum += 48; /* each of two quotes */
        } else if (!in_string && text[i] == '{') {
            sum += 320; /* an object and its first table */
        } else if (!in_string && text[i] == '[') {
            sum += 160;
        } else if (!in_string && text[i] == ':') {
            sum += 96; /* a member's place in tables */
        } else if (!in_string && text[i] == ',') {
            sum += 60;
        }
    }
    return sum;
}

static int json_read_value(const char *text, size_t len, const char *what, size_t budget,
                           size_t flags, json_t **ret, struct diag *d)
{
    json_error_t error;
    json_t *value;
    unsigned before;

    if (memory_of(text, len) > budget)
        return diag_set(d, -EFBIG, "%s: JSON that takes more than %zu bytes of memory", what,
                        budget);
    before = atomic_load(&failures);
    value = json_loadb(text, len, JSON_DECODE_ANY | flags, &error);
    if (atomic_load(&failures) != before) {
        json_decref(value);
        return -ENOMEM;
    }
    if (value) {
        *ret = value;
        return 0;
    }
    if (strstr(what, ", line ")) /* the text is that line */
        return diag_set(d, -EBADMSG, "%s: no JSON at column %d: %s", what, error.column,
                        error.text);
    return diag_set(d, -EBADMSG, "%s: no JSON at line %d, column %d: %s", what, error.line,
                    error.column, error.text);
}

int json_read(const char *text, size_t len, const char *what, size_t budget, json_t **ret,
              struct diag *d)
{
    return json_read_value(text, len, what, budget, 0, ret, d);
}

int json_read_unique(const char *text, size_t len, const char *what, size_t budget, json_t **ret,
                     struct diag *d)
{
    return json_read_value(text, len, what, budget, JSON_REJECT_DUPLICATES, ret, d);
}

int json_read_nul(const char *text, size_t len, const char *what, size_t budget, json_t **ret,
                  struct diag *d)
{
    return json_read_value(text, len, what, budget, JSON_ALLOW_NUL, ret, d);
}

void json_free(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}
