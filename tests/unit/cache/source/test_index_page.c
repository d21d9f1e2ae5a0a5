/* Index pages of nginx, Apache, Python and others, and pages that are no index. */
#include <stdio.h>

#include "base/scope.h"
#include "cache/source/index_page.h"
#include "support/unit.h"

/* The page of nginx 1.22 for these names. */
static const char nginx[] =
    "<html>\r\n<head><title>Index of /data/</title></head>\r\n<body>\r\n"
    "<h1>Index of /data/</h1><hr><pre><a href=\"../\">../</a>\r\n"
    "<a href=\"dir%20with%20space/\">dir with space/</a>      21-Nov-2026 18:18      -\r\n"
    "<a href=\"x%3Ay/\">x:y/</a>                              21-Nov-2026 18:18      -\r\n"
    "<a href=\"%23hash\">#hash</a>                            21-Nov-2026 18:18      5\r\n"
    "<a href=\"pct%2520.gz\">pct%20.gz</a>                    21-Nov-2026 18:18      9\r\n"
    "<a href=\"q%3Fmark\">q?mark</a>                          21-Nov-2026 18:18      6\r\n"
    "<a href=\"quo%22te%27s\">quo&quot;te's</a>               21-Nov-2026 18:18      8\r\n"
    "<a href=\"long-name-that-is-cut-off-in-the-text-that-is-shown-of-it.idx\">"
    "long-name-that-is-cut-off-in-the-text-that-is-sh..&gt;</a> 21-Nov-2026 18:18     89\r\n"
    "<a href=\"x%26y%3Cz%3E.bin\">x&amp;y&lt;z&gt;.bin</a>    21-Nov-2026 18:18     10\r\n"
    "<a href=\"%C3%BCn.dat\">\xc3\xbcn.dat</a>                21-Nov-2026 18:18     20\r\n"
    "</pre><hr></body>\r\n</html>\r\n";

/* The page of Python 3.11's http.server. */
static const char python[] =
    "<!DOCTYPE HTML>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<title>Directory listing for /</title>\n</head>\n<body>\n"
    "<h1>Directory listing for /</h1>\n<hr>\n<ul>\n"
    "<li><a href=\"%23hash\">#hash</a></li>\n"
    "<li><a href=\".hidden\">.hidden</a></li>\n"
    "<li><a href=\"col%3Aon\">col:on</a></li>\n"
    "<li><a href=\"dir%20with%20space/\">dir with space/</a></li>\n"
    "<li><a href=\"link\">link@</a></li>\n"
    "</ul>\n<hr>\n</body>\n</html>\n";

/* Apache's FancyIndexing as a table, with links that sort, icons and an absolute parent. */
static const char apache[] =
    "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 3.2 Final//EN\">\n<html>\n <head>\n"
    "  <title>Index of /pub</title>\n </head>\n <body>\n<h1>Index of /pub</h1>\n"
    "  <table>\n   <tr><th valign=\"top\"><img src=\"/icons/blank.gif\" alt=\"[ICO]\"></th>"
    "<th><a href=\"?C=N;O=D\">Name</a></th><th><a href=\"?C=M;O=A\">Last modified</a></th>"
    "<th><a href=\"?C=S&amp;O=A\">Size</a></th></tr>\n"
    "<tr><td valign=\"top\"><img src=\"/icons/back.gif\" alt=\"[PARENTDIR]\"></td>"
    "<td><a href=\"/\">Parent Directory</a></td><td>&nbsp;</td></tr>\n"
    "<tr><td valign=\"top\"><a href=\"R&amp;D/\"><img src=\"/icons/folder.gif\" alt=\"[DIR]\"></a>"
    "</td><td><a href=\"R&amp;D/\">R&amp;D/</a></td></tr>\n"
    "<tr><td><a href=\"./a:b\">a:b</a></td></tr>\n"
    "<tr><td><A HREF='it&#39;s'>it's</A></td></tr>\n"
    "</table>\n<address>Apache/2.4.57 (Debian) Server at host Port 80</address>\n</body></html>\n";

/* The names of a page, separated by '|'; folders end with '/'. */
static void names_of(const char *page, const char *path, char *ret, size_t capacity)
{
    struct index_link link = {.elsewhere = 0};
    size_t at = 0, n = 0;

    *ret = '\0';
    while (index_page_next(page, strlen(page), path, &at, &link))
        n += (size_t)snprintf(ret + n, capacity - n, "%s%s|", link.name, link.is_folder ? "/" : "");
    assert_true(n < capacity);
}

static void check(const char *page, const char *path, const char *want)
{
    char names[2048];

    names_of(page, path, names, sizeof(names));
    assert_string_equal(names, want);
}

UNIT_TEST(test_index_page__nginx__names)
{
    assert_true(index_page_is(nginx, sizeof(nginx) - 1));
    check(
        nginx, "/data/",
        "dir with space/|x:y/|#hash|pct%20.gz|q?mark|quo\"te's|"
        "long-name-that-is-cut-off-in-the-text-that-is-shown-of-it.idx|x&y<z>.bin|\xc3\xbcn.dat|");
}

UNIT_TEST(test_index_page__python__names)
{
    assert_true(index_page_is(python, sizeof(python) - 1));
    check(python, "/", "#hash|col:on|dir with space/|link|");
}

UNIT_TEST(test_index_page__apache__names)
{
    assert_true(index_page_is(apache, sizeof(apache) - 1));
    check(apache, "/pub/", "R&D/|R&D/|a:b|it's|");
}

UNIT_TEST(test_index_page__absolute_links__only_those_below_the_page)
{
    static const char page[] = "<a href=\"/d/x\">x</a><a href=\"/d/\">.</a><a href=\"/dx\">no</a>"
                               "<a href=\"/other/y\">no</a><a href=\"/d/e/f\">no</a>"
                               "<a href=\"http://host/d/z\">no</a><a href=\"//host/d/z\">no</a>";

    check(page, "/d/", "x|");
}

UNIT_TEST(test_index_page__hostile__left_out)
{
    static const char page[] =
        "<a href=\"..\">x</a><a href=\"%2e%2e/\">x</a><a href=\"%2E%2E%2Fetc\">x</a>"
        "<a href=\"a%2Fb\">x</a><a href=\"a%00b\">x</a><a href=\"a%0Ab\">x</a><a href=\"%\">x</a>"
        "<a href=\"%4\">x</a><a href=\"%zz\">x</a><a href=\"./\">x</a><a href=\"\">x</a>"
        "<a href>x</a><a>x</a><a name=\"y\">x</a><abbr href=\"no\">x</abbr>"
        "<a href=\"javascript:alert(1)\">x</a><a href=\"mailto:x@y\">x</a><a href=\"a?b\">x</a>"
        "<a href=\"#top\">x</a><!-- <a href=\"comment\"> --><a href=\"%2Fabs\">x</a>"
        "<a href=\"/d/%2e%2e/\">x</a><a title=\"a>b\" href=good>x</a><a href=\"not-closed";

    check(page, "/d/", "good|");
}

UNIT_TEST(test_index_page__long_names__left_out)
{
    static char page[20000];
    int n = snprintf(page, sizeof(page), "<a href=\"%0255d\"></a><a href=\"%0256d\"></a>", 0, 0);

    assert_true(n > 0);
    memcpy(page + n, "<a href=\"", 9);
    memset(page + n + 9, 'x', 19000 - (size_t)n);
    {
        struct index_link link = {.elsewhere = 0};
        size_t at = 0, len = strlen(page);

        assert_true(index_page_next(page, len, "/", &at, &link));
        assert_int_equal(strlen(link.name), 255);
        assert_false(index_page_next(page, len, "/", &at, &link));
    }
}

/* '+': with a time, '-': without. */
static void check_times(const char *page, const char *want)
{
    char found[64] = "";
    struct index_link link = {.elsewhere = 0};
    size_t at = 0, n = 0;

    while (index_page_next(page, strlen(page), "/", &at, &link))
        found[n++] = link.has_time ? '+' : '-';
    assert_string_equal(found, want);
}

UNIT_TEST(test_index_page_next__absolute_links__of_the_server)
{
    static const char page[] =
        "<a href=\"https://H:1/d/a\">a</a><a href=\"//h:1/d/b/\">b</a><a "
        "href=\"http://h:1/d/c\">c</a>"
        "<a href=\"/d/e\">e</a><a href=\"https://h:1/d/\">up</a><a href=\"https://h:12/d/x\">x</a>"
        "<a href=\"https://h/d/x\">x</a><a href=\"//evil/d/x\">x</a><a href=\"https:x\">x</a>"
        "<a href=\"ftp://h:1/d/x\">x</a><a href=\"https://h:1.evil/d/x\">x</a>"
        "<a href=\"https://h:1@evil/d/x\">x</a><a href=\"https://h:1/d/../x\">x</a>"
        "<a href=\"https://h:1/d2/x\">x</a><a href=\"https://h:1/d/f%20g\">f</a>";
    char names[256];

    names_of(page, "https://h:1/d/", names, sizeof(names));
    assert_string_equal(names, "a|b/|c|e|f g|");
    names_of(page, "http://h:1/d/", names,
             sizeof(names)); /* nothing proves that https is the same */
    assert_string_equal(names, "b/|c|e|");
    names_of(page, "/d/", names, sizeof(names));
    assert_string_equal(names, "e|");
}

UNIT_TEST(test_index_page_next__times_of_files__seen)
{
    check_times("<a href=\"../\">../</a>\n<a href=\"a\">a</a>   23-Nov-2026 15:30    1234\n"
                "<a href=\"b\">b</a>  24-Nov-2026 00:00 1",
                "++");
    check_times("<td><a href=\"a\"><img></a></td><td><a href=\"a\">a</a></td><td>2026-11-23 15:30 "
                "</td><td>1K</td>",
                "-+");
    check_times("<li><a href=\"a\">12:30</a></li><li><a href=\"b\">12:30</a></li> 1:30 12:3", "--");
    check_times("<a href=\"a\">a</a> 12:3<a href=\"b\">b 12:30", "--");
}

UNIT_TEST(test_index_page_is__other_pages__false)
{
    static const char *const pages[] = {"",           "<",
                                        "<title>",    "<title>Welcome</title><a href=\"a\">a</a>",
                                        "Index of /", "<a href=\"../x\">up</a>"};

    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        assert_false(index_page_is(pages[i], strlen(pages[i])));
    assert_true(index_page_is("<a href=\"../\">", 14));
    assert_true(index_page_is("<TITLE>index OF /x", 18));
}
