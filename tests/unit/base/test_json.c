/* json_read(): what is JSON, where it is none, and what it may take. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "support/unit.h"

#define SECRET "a long secret"

static unsigned secrets; /* freed */

void __real_free(void *memory);
void __wrap_free(void *memory);

void __wrap_free(void *memory)
{
    if (memory)
        secrets += memmem(memory, malloc_usable_size(memory), SECRET, strlen(SECRET)) != NULL;
    __real_free(memory);
}

static int read_text(const char *text, json_t **ret, struct diag *d)
{
    *d = DIAG_INIT;
    return json_read(text, strlen(text), "a.json", json_budget(strlen(text)), ret, d);
}

UNIT_TEST(test_values)
{
    AUTO_JSON json_t *v = NULL;
    struct diag d;

    assert_int_equal(read_text("{\"a\": [1, 2.5, \"x\"], \"a\": 7}", &v, &d), 0);
    assert_int_equal(json_integer_value(json_object_get(v, "a")), 7);
}

UNIT_TEST(test_no_json__line_and_column)
{
    static const char *const bad[] = {
        "", "{", "[1,]", "{\"a\" 1}", "[1] 2", "\"\\u0000\"", "\"\xff\"", "99999999999999999999",
    };
    json_t *v = NULL;
    struct diag d;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(read_text(bad[i], &v, &d), -EBADMSG);
        assert_null(v);
        assert_non_null(strstr(d.text, "a.json: no JSON at line 1, column "));
    }
    assert_int_equal(read_text("{\n \"a\": x}", &v, &d), -EBADMSG);
    assert_non_null(strstr(d.text, "line 2, column 7"));
}

UNIT_TEST(test_deep__no_crash)
{
    enum { DEPTH = 1000000 };
    AUTO_FREE char *text = malloc(DEPTH);
    json_t *v = NULL;
    struct diag d = DIAG_INIT;

    assert_non_null(text);
    memset(text, '[', DEPTH);
    assert_int_equal(json_read(text, DEPTH, "a.json", SIZE_MAX, &v, &d), -EBADMSG);
}

UNIT_TEST(test_memory__has_a_limit)
{
    enum { VALUES = 100000 };
    AUTO_FREE char *text = malloc(3 * VALUES);
    struct diag d = DIAG_INIT;
    json_t *v = NULL;

    assert_non_null(text);
    for (size_t i = 0; i < VALUES; i++)
        memcpy(text + 3 * i, ",{}", 3);
    memcpy(text + 3 * (VALUES - 1), "  ]", 3);
    memcpy(text, "[ 0", 3);
    assert_int_equal(json_read(text, 3 * VALUES, "a.json", json_budget(3 * VALUES), &v, &d),
                     -EFBIG);
    assert_non_null(strstr(d.text, "a.json: JSON that takes more than"));
    d = DIAG_INIT;
    assert_int_equal(json_read(text, 3 * VALUES, "a.json", SIZE_MAX, &v, &d), 0);
    json_free(&v);
}

/* Values are, and what was read of a text that turned out to be no JSON. */
UNIT_TEST(test_secrets__wiped)
{
    static const char *const texts[] = {"{\"" SECRET "\": [\"" SECRET "\"]}", "[\"" SECRET "\", x"};

    for (unsigned wipe = 0; wipe < 2; wipe++)
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
            json_t *v = NULL;

            secrets = 0;
            if (wipe)
                json_wipe(true);
            assert_int_equal(
                json_read(texts[i], strlen(texts[i]), "", json_budget(strlen(texts[i])), &v, NULL),
                i ? -EBADMSG : 0);
            json_free(&v);
            if (wipe)
                json_wipe(false);
            assert_int_equal(secrets > 0, !wipe);
        }
}
