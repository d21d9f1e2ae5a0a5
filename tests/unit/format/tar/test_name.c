/* Keys and extensions: the rows of WebDataset's rule. */
#include "base/scope.h"
#include "format/tar/name.h"
#include "support/unit.h"

static const struct {
    const char *name;
    const char *key; /* NULL: no sample has it */
    const char *ext;
    enum tar_name_type kind;
} rows[] = {
    {"a.jpg", "a", "jpg", TAR_NAME_SAMPLE},
    {"a/b.c/d.e.f", "a/b.c/d", "e.f", TAR_NAME_SAMPLE},
    {"./x.jpg", "./x", "jpg", TAR_NAME_SAMPLE},
    {"../../etc/x.txt", "../../etc/x", "txt", TAR_NAME_SAMPLE},
    {"/abs/y.txt", "/abs/y", "txt", TAR_NAME_SAMPLE},
    {"a.Seg.PNG", "a", "seg.png", TAR_NAME_SAMPLE},
    {"A.JPG", "A", "jpg", TAR_NAME_SAMPLE},
    {"a.txt.AZ@[", "a", "txt.az@[", TAR_NAME_SAMPLE},
    {"a.\xc3\x84", "a", "\xc3\x84", TAR_NAME_SAMPLE}, /* only ASCII has its case changed */
    {"a..b", "a", ".b", TAR_NAME_SAMPLE},
    {"dir.d/a.b", "dir.d/a", "b", TAR_NAME_SAMPLE},
    {"__k__.json", "__k__", "json", TAR_NAME_SAMPLE},
    {"sub/__m__/y.txt", "sub/__m__/y", "txt", TAR_NAME_SAMPLE},
    {"___.txt", "___", "txt", TAR_NAME_SAMPLE},
    {"__a.txt", "__a", "txt", TAR_NAME_SAMPLE},
    {"abc__/x.txt", "abc__/x", "txt", TAR_NAME_SAMPLE},
    {"noext", NULL, NULL, TAR_NAME_NO_EXT},
    {"d.d/noext", NULL, NULL, TAR_NAME_NO_EXT},
    {".hidden.txt", NULL, NULL, TAR_NAME_NO_EXT},
    {"dir/.hidden", NULL, NULL, TAR_NAME_NO_EXT},
    {"a.", NULL, NULL, TAR_NAME_NO_EXT},
    {"", NULL, NULL, TAR_NAME_NO_EXT},
    {".", NULL, NULL, TAR_NAME_NO_EXT},
    {"a/", NULL, NULL, TAR_NAME_NO_EXT},
    {"a/..", NULL, NULL, TAR_NAME_NO_EXT},
    {"__meta__/a.txt", NULL, NULL, TAR_NAME_META},
    {"__index__", NULL, NULL, TAR_NAME_META},
    {"____/x.y", NULL, NULL, TAR_NAME_META},
    {"__a__b__/x.y", NULL, NULL, TAR_NAME_META},
};

UNIT_TEST(test_rows)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = strdup(rows[i].name);
        struct tar_name split = {0};
        size_t len = strlen(name);
        enum tar_name_type kind = tar_name_split((uint8_t *)name, len, &split);

        if (kind != rows[i].kind)
            fail_msg("'%s': kind %d", rows[i].name, (int)kind);
        if (kind != TAR_NAME_SAMPLE)
            continue;
        assert_int_equal(split.key_len, strlen(rows[i].key));
        assert_memory_equal(name, rows[i].key, split.key_len);
        assert_string_equal(name + split.ext, rows[i].ext);
    }
}

UNIT_TEST(test_project__by_a_file_that_builds_it)
{
    static const struct {
        const char *name;
        bool want;
    } names[] = {
        {"Makefile", true},
        {"./Makefile", true},
        {"p/Makefile", true},
        {"./p/go.mod", true},
        {".gitignore", true},
        {"setup.py", true},
        {"./.gitignore", true},
        {"p/q/Makefile", false},
        {"Makefile.x", false},
        {"Makefil", false},
        {"makefile", false},
        {"Makefile/", false},
        {"", false},
        {"./", false},
        {"./a/b/setup.py", false},
        {"/Makefile", true},
        {"../Cargo.toml", true},
        {"p./pom.xml", true},
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (tar_name_is_of_project((const uint8_t *)names[i].name, strlen(names[i].name)) !=
            names[i].want)
            fail_msg("'%s'", names[i].name);
}
