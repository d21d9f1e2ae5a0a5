#include "format/foreign.h"
#include "support/unit.h"

#define BYTES(text) (text), sizeof(text) - 1

static const char *kind_of(const char *name, const char *bytes, size_t len, bool whole)
{
    const struct probed_file file = {
        .name = name, .head = (const uint8_t *)bytes, .len = len, .whole = whole, .size = len};

    return foreign_find(&file) ? foreign_find(&file)->name : NULL;
}

/* Kinds without a magic number: texts that match, and texts that do not. */
UNIT_TEST(test_foreign_kind__text__by_what_it_looks_like)
{
    static const struct {
        const char *name, *text, *want; /* NULL: none */
    } cases[] = {
        {"a", "<!DOCTYPE html>\n<html>", "a web page"},
        {"a.gz", " \n<HTML><head>", "a web page"},
        {"a", "\xef\xbb\xbf<html lang=\"en\">", "a web page"},
        {"a", "<!-- of a proxy -->\n<!-- 2 -->\n<html>", "a web page"},
        {"a", "<!-- never ends\n<html>", NULL},
        {"a", "(lp0\nI1\naI2\na.", "a pickle"},
        {"a", "(dp0\nVx\np1\nI1\ns.", "a pickle"},
        {"a", "cnumpy.core.multiarray\n_reconstruct\np0\n.", "a pickle"},
        {"a", "cnumpy is a word", NULL},
        {"a", "<?xml version=\"1.0\"?><Error><Code>AccessDenied", "XML"},
        {"a", "{\n  \"a\": 1\n}\n", "JSON"},
        {"a", "[{\"a\": 1}]", "JSON"},
        {"a.json", "[1, 2]", "JSON"},
        {"a", "[ 1 2 3 ]\n", NULL},
        {"a", "x,y\n1,2\n3,4\n", "CSV that is not of numbers"},
        {"a", "x;\"y,y\"\n1;2\n3;4\n", "CSV that is not of numbers"},
        {"a.CSV", "x,y\n", "CSV that is not of numbers"},
        {"a", "x\ty\n1\t2\n3\t4\n", "TSV that is not of numbers"},
        {"a", "hello, world\n", NULL},
        {"a", "one, two\nthree\nfour, five\n", NULL},
        {"a.zip", "MZ of a program", "no zip archive, or one with bytes before it"},
        {"zip", "MZ of a program", NULL},
        {"a.csv", "x", NULL},
        {"a", "", NULL},
        {"a", "\n", NULL},
        {"a", "{", NULL},
        {"a", "P", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = kind_of(cases[i].name, cases[i].text, strlen(cases[i].text), true);

        if (!got != !cases[i].want ||
            (got && strncmp(got, cases[i].want, strlen(cases[i].want)) != 0))
            fail_msg("'%s': expected %s, got %s", cases[i].text,
                     cases[i].want ? cases[i].want : "none", got ? got : "none");
    }
}

/* Heads that end anywhere, and bytes of all values: no read passes the end. */
UNIT_TEST(test_foreign_kind__short_and_odd_heads__no_overrun)
{
    static const char *const starts[] = {"PK\3\4",        "\x80\x04\x95", "{\"a\"",
                                         "<!doctype htm", "\xef\xbb\xbf", "a,b\n",
                                         "RIFF....WEB"};

    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        for (size_t len = 0; len < 64; len++) {
            char *head = calloc(1, len + 1); /* ASan finds reads past it */
            char *exact = malloc(len ? len : 1);

            memset(head, (int)(i * 37 + len), len);
            memcpy(head, starts[i], strlen(starts[i]) < len ? strlen(starts[i]) : len);
            memcpy(exact, head, len);
            kind_of("a", exact, len, false);
            free(head);
            free(exact);
        }
}
