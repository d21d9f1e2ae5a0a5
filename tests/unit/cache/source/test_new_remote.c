/* A remote that is not part of epochfs: one file (tests/support/shelf_remote.c) and a row of the
 * table. */
#include <errno.h>

#include "cache/source/remote.h"
#include "support/fake_http.h"
#include "support/fake_stage.h"
#include "support/unit.h"

static int open_shelf(const char *spec, struct source **ret, struct diag *d)
{
    struct cache_folder cache = {.path = (char *)"/nowhere"};
    struct source_options options;

    source_options_init(&options, &cache);
    return source_open(spec, &options, ret, d);
}

UNIT_TEST(test_new_remote__files_versions_and_help)
{
    static const struct fake_answer site[] = {
        {"http://h/d/shelf.json",
         NULL,
         0,
         "[{\"path\": \"b/x y\", \"size\": 5, \"etag\": \"\\\"1\\\"\"}, {\"path\": \"a\"},"
         " {\"path\": \"../out\", \"size\": 1, \"etag\": \"\"}, {\"path\": \".hidden\"}]",
         {0}},
        {"http://h/d/a", NULL, 0, NULL, {.size = 3, .etag = "\"2\""}},
    };
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};
    AUTO_TEXT struct text kinds = {0};

    fake_http_set(site, ARRAY_LEN(site));
    assert_int_equal(open_shelf("shelf://h/d", &source, NULL), 0);
    assert_string_equal(source->root, "shelf://h/d/");
    assert_int_equal(source_list(source, (const char *const[]){NULL}, &list, NULL), 0);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.entry[0].name, "_._out");
    assert_non_null(list.entry[0].error);
    assert_string_equal(list.entry[1].url, "http://h/d/a");
    assert_int_equal(list.entry[1].version->size, 3);
    assert_int_equal(fake_http.stats, 1); /* the other one is in the list */
    assert_int_equal(known_find(source, "b/x y", &entry), 0);
    assert_string_equal(entry.url, "http://h/d/b/x%20y");
    assert_string_equal(entry.version->etag, "\"1\"");
    source_add_kinds(&kinds, ", ");
    assert_non_null(strstr(kinds.data, "shelf://HOST/FOLDER"));
}

UNIT_TEST(test_new_remote__faults__messages)
{
    static const struct {
        const char *body, *message;
    } cases[] = {{"{}", "shelf://h/d/shelf.json: expected a list of files"},
                 {"[1]", "expected files with path, size and etag"},
                 {"[{\"path\": \"a\", \"size\": -1}]", "expected files with path, size and etag"},
                 {"[", "shelf.json: no JSON at line 1"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct fake_answer site[] = {{"http://h/d/shelf.json", NULL, 0, cases[i].body, {0}}};
        AUTO_SOURCE struct source *source = NULL;
        struct diag d = DIAG_INIT;

        fake_http_set(site, 1);
        assert_int_equal(open_shelf("shelf://h/d/", &source, &d), -EBADMSG);
        assert_diag_has(&d, cases[i].message);
    }
}
