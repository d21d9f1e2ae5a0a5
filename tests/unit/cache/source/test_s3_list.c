/* Listings and errors of S3 servers, right and wrong ones. */
#include <errno.h>

#include "base/scope.h"
#include "cache/source/s3_list.h"
#include "support/unit.h"

#define HEAD                                                                                       \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"                                                   \
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define TAIL "</ListBucketResult>"
#define OBJECT(key, size)                                                                          \
    "<Contents><Key>" key "</Key><LastModified>2026-11-21T18:18:09.123Z</LastModified>"            \
    "<ETag>&quot;a6a8&quot;</ETag><Size>" size "</Size><StorageClass>STANDARD</StorageClass>"      \
    "<Owner><ID>test</ID><DisplayName>test</DisplayName></Owner></Contents>"

static int parse(const char *xml, struct s3_page *ret, struct diag *d)
{
    return s3_page_parse(xml, strlen(xml), "s3://b/p", ret, d);
}

UNIT_TEST(test_s3_page__objects__key_and_version)
{
    AUTO_S3_PAGE struct s3_page page = {0};
    static const char xml[] =
        HEAD "<Name>data</Name><Prefix/><MaxKeys>1000</MaxKeys>"
             "<IsTruncated>false</IsTruncated>" OBJECT("a/b", "12")
                 OBJECT("a &amp; &lt;&#x41;&#66;&#xe9;",
                        "0") "<CommonPrefixes><Prefix>x/</Prefix></CommonPrefixes>" TAIL "\n";

    assert_int_equal(parse(xml, &page, NULL), 0);
    assert_int_equal(page.n, 2);
    assert_null(page.token);
    assert_string_equal(page.object[0].key, "a/b");
    assert_int_equal(page.object[0].version.size, 12);
    assert_string_equal(page.object[0].version.etag, "\"a6a8\"");
    assert_int_equal(page.object[0].version.mtime.tv_sec, 1795285089);
    assert_int_equal(page.object[0].version.mtime.tv_nsec, 0);
    assert_string_equal(page.object[1].key, "a & <AB\xc3\xa9");
}

UNIT_TEST(test_s3_page__encoded_keys__decoded)
{
    AUTO_S3_PAGE struct s3_page page = {0};
    static const char xml[] =
        HEAD "<EncodingType>url</EncodingType>" OBJECT("a%2Bb+c%20d%0A", "1") TAIL;

    assert_int_equal(parse(xml, &page, NULL), 0);
    assert_string_equal(page.object[0].key, "a+b c d\n");
}

UNIT_TEST(test_s3_page__plain_keys__as_they_are)
{
    AUTO_S3_PAGE struct s3_page page = {0};

    assert_int_equal(parse(HEAD OBJECT("a%2Bb+c", "1") TAIL, &page, NULL), 0);
    assert_string_equal(page.object[0].key, "a%2Bb+c");
}

UNIT_TEST(test_s3_page__truncated__token)
{
    AUTO_S3_PAGE struct s3_page page = {0};
    struct diag d = DIAG_INIT;

    assert_int_equal(parse(HEAD "<IsTruncated>true</IsTruncated>" OBJECT(
                               "a", "1") "<NextContinuationToken>t/+=</NextContinuationToken>" TAIL,
                           &page, NULL),
                     0);
    assert_string_equal(page.token, "t/+=");
    s3_page_release(&page);
    assert_int_equal(parse(HEAD "<IsTruncated>true</IsTruncated>" TAIL, &page, &d), -EBADMSG);
    assert_diag_has(&d, "NextContinuationToken");
}

UNIT_TEST(test_s3_page__wrong__ebadmsg)
{
    static const char *const pages[] = {
        "",
        " ",
        "<",
        "<html></html>",
        HEAD,
        HEAD "<Contents>" TAIL,
        HEAD TAIL "x",
        HEAD TAIL "<a/>",
        HEAD "<!DOCTYPE x>" TAIL,
        HEAD "<!-- " TAIL,
        HEAD OBJECT("a", "-1") TAIL,
        HEAD OBJECT("a", "") TAIL,
        HEAD OBJECT("a", "1x") TAIL,
        HEAD OBJECT("a", " 1") TAIL,
        HEAD OBJECT("a", "9223372036854775808") TAIL,
        HEAD OBJECT("a", "99999999999999999999999") TAIL,
        HEAD OBJECT("&unknown;", "1") TAIL,
        HEAD OBJECT("&#0;", "1") TAIL,
        HEAD OBJECT("&#xD800;", "1") TAIL,
        HEAD OBJECT("&#x110000;", "1") TAIL,
        HEAD OBJECT("&#99999999999;", "1") TAIL,
        HEAD OBJECT("&amp", "1") TAIL,
        HEAD "<EncodingType>url</EncodingType>" OBJECT("a%", "1") TAIL,
        HEAD "<EncodingType>url</EncodingType>" OBJECT("a%00", "1") TAIL,
        HEAD "<Contents><Key>a</Key></Contents>" TAIL,
        HEAD "<Contents><Size>1</Size></Contents>" TAIL,
        HEAD "<IsTruncated>maybe</IsTruncated>" TAIL,
        HEAD "<Contents><Key>a</Key><Size>1</Size><LastModified>x</LastModified></Contents>" TAIL,
        HEAD "<a><b><c><d><e><f><g><h></h></g></f></e></d></c></b></a>" TAIL,
    };

    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct s3_page page = {0};
        struct diag d = DIAG_INIT;

        assert_int_equal(parse(pages[i], &page, &d), -EBADMSG);
        assert_diag_has(&d, "s3://b/p: byte ");
    }
}

UNIT_TEST(test_s3_page__sizes_of_another_object__not_taken)
{
    AUTO_S3_PAGE struct s3_page page = {0};

    assert_int_equal(
        parse(HEAD "<Contents><Key>a</Key><Size>1</Size><Owner><Key>b</Key><Size>2</Size></Owner>"
                   "</Contents><Other><Key>c</Key></Other>" TAIL,
              &page, NULL),
        0);
    assert_int_equal(page.n, 1);
    assert_string_equal(page.object[0].key, "a");
    assert_int_equal(page.object[0].version.size, 1);
}

UNIT_TEST(test_s3_page__etags__as_http_has_them)
{
    AUTO_S3_PAGE struct s3_page page = {0};

    assert_int_equal(
        parse(HEAD "<Contents><Key>a</Key><Size>1</Size><ETag>abc-2</ETag></Contents>"
                   "<Contents><Key>b</Key><Size>1</Size><ETag/></Contents>"
                   "<Contents><Key>c</Key><Size>1</Size><ETag>a&#10;b</ETag></Contents>" TAIL,
              &page, NULL),
        0);
    assert_string_equal(page.object[0].version.etag, "\"abc-2\"");
    assert_string_equal(page.object[1].version.etag, "");
    assert_string_equal(page.object[2].version.etag, "");
}

UNIT_TEST(test_s3_error__fields)
{
    static const char xml[] = "<?xml version=\"1.0\"?>\n<Error><Code>PermanentRedirect</Code>"
                              "<Message>use\n it</Message><Region>eu-west-1</Region>"
                              "<Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint></Error>";
    struct s3_error e;

    assert_true(s3_error_parse(xml, strlen(xml), &e));
    assert_string_equal(e.code, "PermanentRedirect");
    assert_string_equal(e.message, "use? it");
    assert_string_equal(e.region, "eu-west-1");
    assert_string_equal(e.endpoint, "b.s3.eu-west-1.amazonaws.com");
    assert_false(s3_error_parse("<html></html>", 13, &e));
    assert_false(s3_error_parse("", 0, &e));
    /* A truncated body. */
    assert_true(s3_error_parse("<Error><Code>NoSuchKey</Code><Mess", 34, &e));
    assert_string_equal(e.code, "NoSuchKey");
}
