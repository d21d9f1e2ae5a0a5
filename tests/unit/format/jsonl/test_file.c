/* Which lines of a file are samples, and what a check says of them. */
#include "format/jsonl/file.h"
#include "format/records/record_set.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "support/memory_blob.h"
#include "support/one_store.h"
#include "support/unit.h"

static struct jsonl_file *prepared_file(const char *text)
{
    const struct format_setup setup = {.keep = &no_store};
    struct source_file source = {.name = "x", .file_name = "x", .folder = ""};
    struct jsonl_file *file;

    source.blob = memory_blob_new("x", text, strlen(text), strlen(text), NULL);
    assert_non_null(source.blob);
    assert_int_equal(record_file_open(&jsonl_file_ops,
                                      &(struct record_source){&source, 1, 0, &setup}, &file, NULL),
                     0);
    while (!prepared_step(&file->base.prepared, NULL))
        ;
    return file;
}

UNIT_TEST(test_jsonl__lines__samples)
{
    static const struct {
        const char *text;
        const char *line[4]; /* ended by NULL */
        bool is_lines;
    } files[] = {
        {"", {NULL}, true},
        {"{}\n[1]\n", {"{}", "[1]"}, true},
        {"{}\n[1]", {"{}", "[1]"}, false},
        {"{}\r\n[1]\r\n", {"{}", "[1]"}, false},
        {"\n{}\n \t\r\n[1]\n\n", {"{}", "[1]"}, false},
        {"\xef\xbb\xbf{}\n", {"{}"}, false},
        {"a\rb\n", {"a\rb"}, true},
        {" {}  \n", {" {}  "}, true},
        {"{}\r", {"{}"}, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct jsonl_file *file = prepared_file(files[i].text);
        uint64_t row = 0;

        for (; row < file->base.prepared.index.rows; row++) {
            const struct extent place = record_file_place(&file->base, row);

            assert_non_null(files[i].line[row]);
            assert_int_equal(place.len, strlen(files[i].line[row]));
            assert_memory_equal(files[i].text + place.off, files[i].line[row], place.len);
        }
        assert_null(files[i].line[row]);
        assert_int_equal(format_jsonl.records->lines_are_file(file), files[i].is_lines);
        record_file_drop(&file->base);
    }
}

UNIT_TEST(test_jsonl_check__no_object__its_line)
{
    static const struct {
        const char *text, *reason; /* NULL: it is good */
    } files[] = {
        {"{}\n{\"a\": [1, 2]}\n", NULL},
        {"{}\n\n[1]\n", "x: line 3 at byte 4: expected an object of JSON, got another value"},
        {"{}\n{\"a\": }\n", "x: line 2 at byte 3: expected an object of JSON, got "},
        {"\xef\xbb\xbf{}\n", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct jsonl_file *file = prepared_file(files[i].text);
        struct diag d = DIAG_INIT;

        assert_int_equal(jsonl_check(file, &d), files[i].reason ? -EBADMSG : 0);
        if (files[i].reason)
            assert_memory_equal(d.text, files[i].reason, strlen(files[i].reason));
        record_file_drop(&file->base);
    }
}

UNIT_TEST(test_jsonl_probe__quotes_in_texts__recognised)
{
    static const struct {
        const char *head;
        size_t after; /* bytes of it that are after the file */
        enum claim want;
    } files[] = {
        {"{\"a\": \"5\\\" disk\"}\n", 0, CLAIM_STRONG}, {"{\"\\\"\": \"}\"}", 0, CLAIM_STRONG},
        {"{\"a\": \"\\\\\"}\n", 0, CLAIM_STRONG},       {"{\"a\": \"\\\"}\n", 0, CLAIM_NONE},
        {"{\"a\": \"\\\n\"}\n", 0, CLAIM_NONE},         {"{\"a\": 5}", 1, CLAIM_NONE},
        {"\xef\xbb\xbf{}\n", 0, CLAIM_STRONG},
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const struct probed_file file = {.name = "x.jsonl",
                                         .head = (const uint8_t *)files[i].head,
                                         .len = strlen(files[i].head) - files[i].after,
                                         .whole = true};

        if (format_jsonl.probe(&file) != files[i].want)
            fail_msg("%s: expected %d", files[i].head, (int)files[i].want);
    }
}
