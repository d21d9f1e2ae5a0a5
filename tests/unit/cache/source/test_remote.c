/* How remotes interpret servers' answers: the files of a SOURCE, their places, the files that other
 * files name, and the messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/named/opener.h"
#include "cache/source/remote.h"
#include "cache/source/source.h"
#include "support/failing_alloc.h"
#include "support/fake_http.h"
#include "support/fake_stage.h"
#include "support/unit.h"

#define SUM_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char *const no_sides[] = {NULL};

static void options_init(struct source_options *ret, struct cache_folder *cache)
{
    *cache = (struct cache_folder){.path = (char *)"/nowhere"};
    source_options_init(ret, cache);
    ret->endpoint = "http://s3";
    ret->anonymous = true;
}

/* With -o files=, NULL: without. */
static int open_source(const char *spec, const char *files, struct source **ret, struct diag *d)
{
    struct source_options options;
    struct cache_folder cache;

    options_init(&options, &cache);
    options.files = files;
    return source_open(spec, &options, ret, d);
}

/* The files: paths, followed by '!' if the file has an error, by '*' if its sum is known. */
static void check_files(const struct source *source, const char *const *sides, const char *want)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    char text[4096] = "";
    size_t n = 0;

    assert_int_equal(source_list(source, sides, &list, NULL), 0);
    for (size_t i = 0; i < list.n; i++) {
        const struct source_entry *e = &list.entry[i];

        assert_true(e->error || e->version);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s%s%s%s", i ? "|" : "", e->folder,
                              *e->folder ? "/" : "", e->name, e->error ? "!" : "",
                              e->sha256 ? "*" : "");
    }
    assert_string_equal(text, want);
}

static void check_url(const struct source *source, const char *path, const char *want)
{
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};

    assert_int_equal(known_find(source, path, &entry), 0);
    assert_string_equal(entry.url, want);
}

/* ---- HTTP ---- */

static const struct fake_answer index_site[] = {
    {"http://h/d/",
     NULL,
     0,
     "<title>Index of /d/</title><a href=\"../\">..</a><a href=\"b%20c\">b c</a>"
     "<a href=\"sub/\">i</a><a href=\"x\">x</a><a href=\"sub/\">sub/</a><a href=\"gone\">g</a>"
     "<a href=\"dark/\">d</a><a href=\"x\">x</a>",
     {0}},
    {"http://h/d/sub/", NULL, 0, "<a href=\"../\">..</a><a href=\"/d/sub/y\">y</a>", {0}},
    {"http://h/d/dark/", NULL, -EACCES, "no", {0}},
    {"http://h/d/b%20c", NULL, 0, NULL, {.size = 3, .etag = "\"1\""}},
    {"http://h/d/x", NULL, 0, NULL, {.size = 4}},
    {"http://h/d/sub/y", NULL, 0, NULL, {.size = 5}},
};

UNIT_TEST(test_http__index_pages__all_files)
{
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_FREE char *name = NULL;

    fake_http_set(index_site, ARRAY_LEN(index_site));
    assert_int_equal(open_source("http://h/d/", NULL, &source, NULL), 0);
    check_files(source, no_sides, "b c|dark!|gone!|x|sub/y");
    assert_int_equal(fake_http.requests, 4); /* no page twice */
    assert_int_equal(fake_http.aheads, 3);   /* the first, with SHA256SUMS; both folders */
    name = source_name(source);
    assert_string_equal(name, "http://h/d/");
    assert_int_equal(source_list(source, no_sides, &list, NULL), 0);
    assert_int_equal(source_blob_packed(source, &list.entry[0], &blob, NULL), 0);
    assert_string_equal(blob_name(blob), "b c");
    assert_string_equal(fake_staged_of(blob)->url, "http://h/d/b%20c");
    assert_int_equal(blob->size, 3);
    assert_false(fake_staged_of(blob)->has_sha256);
}

UNIT_TEST(test_http__folder_without_slash__index_pages)
{
    AUTO_SOURCE struct source *source = NULL;

    fake_http_set(index_site, ARRAY_LEN(index_site));
    assert_int_equal(open_source("http://h/d", NULL, &source, NULL), 0);
    check_files(source, no_sides, "b c|dark!|gone!|x|sub/y");
}

UNIT_TEST(test_http__page_redirected__its_links_and_files_there)
{
    static const struct fake_answer site[] = {
        {"http://h/d/",
         NULL,
         0,
         "<title>Index of /v2/</title><a href=\"/v2/x\">x</a><a href=\"http://h/v2/y\">y</a>"
         "<a href=\"http://other/z\">z</a><a href=\"/d/z\">z</a><a href=\"../\">up</a>"
         "<a href=\"?C=N\">sort</a><a href=\"mailto:a\">a</a>",
         {0}},
        {"http://cdn/v2/x", NULL, 0, NULL, {.size = 4, .etag = "\"1\""}},
        {"http://h/e/",
         NULL,
         0,
         "<title>Index of /e/</title><a href=\"http://other/z\">z</a>",
         {0}},
    };
    static const struct fake_heard heard[] = {{.url = "http://h/d/", .target = "http://cdn/v2/"}};
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    fake_http_set(site, ARRAY_LEN(site));
    fake_http.heard = heard;
    fake_http.n_heard = 1;
    assert_int_equal(open_source("http://h/d/", NULL, &source, NULL), 0);
    check_files(source, no_sides, "x");
    check_url(source, "x", "http://cdn/v2/x");
    assert_int_equal(known_find(source, "x", &entry), 0);
    assert_int_equal(source_blob_packed(source, &entry, &blob, NULL), 0);
    assert_string_equal(fake_staged_of(blob)->key, "http://h/d/x");
    assert_string_equal(source_note(source),
                        "3 links of index pages lead elsewhere, and are ignored\n");
    source_free(TAKE_PTR(source));
    assert_int_equal(open_source("http://h/e/", NULL, &source, &d), -ENODATA);
    assert_diag_has(&d, "index page whose 1 links lead elsewhere");
}

UNIT_TEST(test_http__sums__are_the_list)
{
    static const struct fake_answer site[] = {
        {"http://h/SHA256SUMS",
         NULL,
         0,
         SUM_A "  x\n" SUM_A " *sub/y z\n" SUM_A "  ../up\n" SUM_A "  .hid\n" SUM_A "  x\n" SUM_A
               "  a/../b\nno sum\n",
         {0}},
        {"http://h/x", NULL, 0, NULL, {.size = 1}},
        {"http://h/sub/y%20z", NULL, 0, NULL, {.size = 1}},
    };
    AUTO_SOURCE struct source *source = NULL;

    fake_http_set(site, ARRAY_LEN(site));
    assert_int_equal(open_source("http://h", NULL, &source, NULL), 0);
    check_files(source, no_sides, "x*|sub/y z*");
    assert_string_equal(source_note(source), "SHA256SUMS: 3 of 7 lines ignored: the name '..' (2), "
                                             "no line of sha256sum (1)\n");
}

UNIT_TEST(test_http__files_given__those)
{
    static const struct fake_answer site[] = {
        {"http://h/d/SHA256SUMS", NULL, 0, SUM_A "  b/c\n" SUM_A "  other\n", {0}},
        {"http://h/d/a", NULL, 0, NULL, {.size = 1}},
        {"http://h/d/b/c", NULL, 0, NULL, {.size = 1}},
    };
    AUTO_SOURCE struct source *source = NULL;
    struct source *wrong = NULL;
    struct diag d = DIAG_INIT;

    fake_http_set(site, ARRAY_LEN(site));
    assert_int_equal(open_source("http://h/d", "b/c;a;;missing", &source, NULL), 0);
    check_files(source, no_sides, "a|missing!|b/c*");
    assert_int_equal(open_source("http://h/d", "a;../b", &wrong, &d), -EINVAL);
    assert_diag_has(&d, "files=../b");
}

UNIT_TEST(test_http__one_file__its_sides)
{
    static const struct fake_answer site[] = {
        {"http://h/d/t%20x.gz", NULL, 0, NULL, {.size = 9, .etag = "\"e\""}},
        {"http://h/d/t%20x.weight", NULL, 0, NULL, {.size = 2}},
    };
    AUTO_SOURCE struct source *source = NULL;
    AUTO_FREE char *name = NULL;

    fake_http_set(site, ARRAY_LEN(site));
    assert_int_equal(open_source("http://h/d/t x.gz", NULL, &source, NULL), 0);
    assert_int_equal(fake_http.requests, 1); /* SHA256SUMS; an ETag says that it is a file */
    assert_int_equal(fake_http.aheads, 1);   /* together with the question what the URL is */
    check_files(source, (const char *const[]){".weight", ".group", NULL}, "t x.gz|t x.weight");
    assert_string_equal(source->only_file, "t x.gz");
    name = source_name(source);
    assert_string_equal(name, "http://h/d/t x.gz");
}

UNIT_TEST(test_http__query__sent_and_not_shown)
{
    static const struct fake_answer site[] = {
        {"http://h/d/x?Signature=HUSH", NULL, 0, NULL, {.size = 9}}};
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_FREE char *name = NULL;
    struct source *wrong = NULL;
    struct diag d = DIAG_INIT, e = DIAG_INIT;

    fake_http_set(site, ARRAY_LEN(site));
    assert_int_equal(open_source("http://h/d/x?Signature=HUSH", NULL, &source, NULL), 0);
    assert_int_equal(source_list(source, (const char *const[]){".w", NULL}, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.entry[0].name, "x");
    assert_int_equal(source_blob_packed(source, &list.entry[0], &blob, NULL), 0);
    assert_string_equal(fake_staged_of(blob)->url, "http://h/d/x?Signature=HUSH");
    assert_string_equal(fake_staged_of(blob)->key, "http://h/d/x");
    name = source_name(source);
    assert_null(strstr(name, "HUSH"));
    assert_int_equal(fake_http.requests, 0);
    assert_int_equal(open_source("http://h/d/y?Signature=HUSH", NULL, &wrong, &d), -ENOENT);
    assert_diag_has(&d, "http://h/d/y");
    assert_null(strstr(d.text, "HUSH"));
    assert_int_equal(open_source("http://h/d/?Signature=HUSH", "a", &wrong, &e), -EINVAL);
    assert_null(strstr(e.text, "HUSH"));
}

UNIT_TEST(test_http__credentials_in_url__refused_and_not_shown)
{
    static const char *const urls[] = {"http://user:HUSH@host/d/", "https://HUSH@host",
                                       "http://user:HU/SH@host/d/", "http://user:HUSH?@host/",
                                       "http://user:HU#SH@host/"};

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct source *source = NULL;
        struct diag d = DIAG_INIT;

        assert_int_equal(open_source(urls[i], NULL, &source, &d), -EINVAL);
        assert_true(d.set);
        assert_null(strstr(d.text, "HU"));
    }
    assert_int_equal(open_source("http://", NULL, &(struct source *){NULL}, NULL), -EINVAL);
    assert_int_equal(open_source("http:///x", NULL, &(struct source *){NULL}, NULL), -EINVAL);
    assert_int_equal(open_source("http://h/a#b", NULL, &(struct source *){NULL}, NULL), -EINVAL);
    assert_int_equal(open_source("http://h/a\nb", NULL, &(struct source *){NULL}, NULL), -EINVAL);
}

UNIT_TEST(test_http__no_listing__says_what_to_do)
{
    static const struct fake_answer site[] = {{"http://h/", NULL, 0, "Welcome!", {0}},
                                              {"http://h/shut/", NULL, -EACCES, NULL, {0}},
                                              {"http://h/shut", NULL, -EACCES, NULL, {0}},
                                              {"http://h/user/", NULL, -EPERM, NULL, {0}},
                                              {"http://h/user/SHA256SUMS", NULL, -EPERM, NULL, {0}},
                                              {"http://h/user", NULL, -EPERM, NULL, {0}},
                                              {"http://h/dead/", NULL, -EREMOTEIO, NULL, {0}}};
    static const struct {
        const char *url;
        int want;
    } cases[] = {{"http://h/", -ENODATA},
                 {"http://h/shut/", -EACCES},
                 {"http://h/shut", -EACCES},
                 {"http://h/none/", -ENOENT}};
    struct source *source = NULL;
    struct diag d = DIAG_INIT;

    fake_http_set(site, ARRAY_LEN(site));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct diag why = DIAG_INIT;

        assert_int_equal(open_source(cases[i].url, NULL, &source, &why), cases[i].want);
        assert_diag_has(&why, "-o 'files=NAME;NAME'");
        assert_diag_has(&why, "SHA256SUMS");
        assert_diag_has(&why, "index page");
        assert_int_equal(strstr(why.text, "~/.netrc") != NULL, cases[i].want == -EACCES);
    }
    for (size_t i = 0; i < 2; i++) {
        struct diag why = DIAG_INIT;

        assert_int_equal(open_source(i ? "http://h/user" : "http://h/user/", NULL, &source, &why),
                         -EPERM);
        assert_diag_has(&why, "it expects a user: put one into ~/.netrc");
        assert_null(strstr(why.text, "files="));
    }
    assert_int_equal(open_source("http://h/dead/", NULL, &source, &d), -EREMOTEIO);
    assert_null(strstr(d.text, "files="));
}

UNIT_TEST(test_http__folders_in_circles__ends)
{
    struct fake_answer site[40];
    char url[40][128];
    AUTO_SOURCE struct source *source = NULL;

    for (size_t i = 0; i < ARRAY_LEN(site); i++) {
        snprintf(url[i], sizeof(url[i]), i ? "%.*sl/" : "http://h/",
                 i ? (int)strlen(url[i - 1]) : 0, i ? url[i - 1] : "");
        site[i] = (struct fake_answer){
            url[i], NULL, 0, "<a href=\"../\">up</a><a href=\"l/\">l/</a>", {0}};
    }
    fake_http_set(site, ARRAY_LEN(site));
    assert_int_equal(open_source("http://h/", NULL, &source, NULL), 0);
    assert_true(fake_http.requests < 20);
    assert_non_null(strstr(source_note(source), "deep"));
}

/* ---- S3 ---- */

#define PAGE(rest) "<ListBucketResult><EncodingType>url</EncodingType>" rest "</ListBucketResult>"
#define OBJECT(key, size)                                                                          \
    "<Contents><Key>" key "</Key><Size>" size "</Size><ETag>\"e\"</ETag></Contents>"

static const struct fake_answer bucket[] = {
    {"http://s3/b?encoding-type=url&list-type=2&prefix=p%2F",
     NULL,
     0,
     PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>t/+=</"
          "NextContinuationToken>" OBJECT("p/", "0") OBJECT("p/a%2Bb", "7") OBJECT("p/.hid", "1")
              OBJECT("p/d/", "0")),
     {0}},
    {"http://s3/b?continuation-token=t%2F%2B%3D&encoding-type=url&list-type=2&prefix=p%2F",
     NULL,
     0,
     PAGE("<IsTruncated>false</IsTruncated>" OBJECT("p/d/c", "8") OBJECT("p/../e", "1")
              OBJECT("p//f", "1") OBJECT("p/SHA256SUMS", "70")),
     {0}},
    {"http://s3/b/p/SHA256SUMS", NULL, 0, SUM_A "  d/c\n", {0}},
    {"http://s3/b?encoding-type=url&list-type=2&prefix=p%2Fd%2Fc%2F", NULL, 0, PAGE(""), {0}},
    {"http://s3/b?encoding-type=url&list-type=2&max-keys=1&prefix=p%2Fd%2Fc",
     NULL,
     0,
     PAGE(OBJECT("p/d/c", "8")),
     {0}},
    {"http://s3/b?encoding-type=url&list-type=2&prefix=p%2Fd%2F",
     NULL,
     0,
     PAGE(OBJECT("p/d/c", "8")),
     {0}},
    {"http://s3/no?encoding-type=url&list-type=2&prefix=",
     NULL,
     -ENOENT,
     "<Error><Code>NoSuchBucket</Code></Error>",
     {0}},
    {"http://s3/far?encoding-type=url&list-type=2&prefix=",
     NULL,
     -EREMOTEIO,
     "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region></Error>",
     {0}},
    {"http://s3/shut?encoding-type=url&list-type=2&prefix=k%2F",
     NULL,
     -EACCES,
     "<Error><Code>AccessDenied</Code></Error>",
     {0}},
    {"http://s3/open?encoding-type=url&list-type=2&prefix=k%2F", NULL, -EACCES, NULL, {0}},
    {"http://s3/open/k", NULL, 0, NULL, {.size = 5}},
    {"http://s3/liar?encoding-type=url&list-type=2&prefix=p%2F",
     NULL,
     0,
     PAGE(OBJECT("q/x", "1")),
     {0}},
};

UNIT_TEST(test_s3__prefix__its_objects)
{
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_FREE char *name = NULL;
    char origin[64];

    fake_http_set(bucket, ARRAY_LEN(bucket));
    assert_int_equal(open_source("s3://b/p", NULL, &source, NULL), 0);
    check_files(source, no_sides, "SHA256SUMS|_._e!|_f!|a+b|d/c*");
    assert_int_equal(fake_http.stats, 0);
    name = source_name(source);
    assert_string_equal(name, "s3://b/p/");
    assert_int_equal(source_list(source, no_sides, &list, NULL), 0);
    assert_int_equal(source_blob_packed(source, &list.entry[4], &blob, NULL), 0);
    assert_string_equal(fake_staged_of(blob)->url, "http://s3/b/p/d/c");
    assert_int_equal(fake_staged_of(blob)->version.size, 8);
    assert_true(fake_staged_of(blob)->has_sha256);
    source_credentials(source, origin, sizeof(origin));
    assert_string_equal(origin, "anonymous");
}

UNIT_TEST(test_s3__one_object__that_file)
{
    AUTO_SOURCE struct source *source = NULL, *open = NULL;
    AUTO_FREE char *name = NULL;

    fake_http_set(bucket, ARRAY_LEN(bucket));
    assert_int_equal(open_source("s3://b/p/d/c", NULL, &source, NULL), 0);
    check_files(source, no_sides, "c");
    assert_string_equal(source->base, "http://s3/b/p/d/");
    name = source_name(source);
    assert_string_equal(name, "s3://b/p/d/c");
    /* Reading needs no permission to list. */
    assert_int_equal(open_source("s3://open/k", NULL, &open, NULL), 0);
    check_files(open, no_sides, "k");
}

static void check_s3_error(const char *spec, int want, const char *piece)
{
    struct source *source = NULL;
    struct diag d = DIAG_INIT;

    assert_int_equal(open_source(spec, NULL, &source, &d), want);
    assert_diag_has(&d, piece);
    assert_diag_has(&d, "s3://");
}

UNIT_TEST(test_s3__errors__messages)
{
    fake_http_set(bucket, ARRAY_LEN(bucket));
    check_s3_error("s3://no", -ENOENT, "expected a bucket of that name");
    check_s3_error("s3://shut/k", -EACCES, "s3:ListBucket");
    check_s3_error("s3://shut/k", -EACCES, "anonymous");
    check_s3_error("s3://liar/p/", -EBADMSG, "keys that begin with this");
    check_s3_error("s3://", -EINVAL, "name of a bucket");
    check_s3_error("s3://a:b/c", -EINVAL, "name of a bucket");
    check_s3_error("s3://far", -EREMOTEIO, "AuthorizationHeaderMalformed");
}

/* A bucket of AWS is looked up again in the region that the server names. */
UNIT_TEST(test_s3__other_region__followed)
{
    static const struct fake_answer aws[] = {
        {"https://b.s3.us-east-1.amazonaws.com/?encoding-type=url&list-type=2&prefix=",
         NULL,
         -EREMOTEIO,
         "<Error><Code>PermanentRedirect</Code><Endpoint>b.s3-eu-west-3.amazonaws.com</Endpoint>"
         "</Error>",
         {0}},
        {"https://b.s3.eu-west-3.amazonaws.com/?encoding-type=url&list-type=2&prefix=",
         NULL,
         0,
         PAGE(OBJECT("x", "1")),
         {0}},
    };
    AUTO_SOURCE struct source *source = NULL;
    struct source_options options;
    struct cache_folder cache;

    unsetenv("AWS_ENDPOINT_URL");
    unsetenv("AWS_ENDPOINT_URL_S3");
    fake_http_set(aws, ARRAY_LEN(aws));
    options_init(&options, &cache);
    options.endpoint = NULL;
    options.region = "us-east-1";
    assert_int_equal(source_open("s3://b", &options, &source, NULL), 0);
    check_files(source, no_sides, "x");
    check_url(source, "x", "https://b.s3.eu-west-3.amazonaws.com/x");
    assert_non_null(strstr(source_note(source), "eu-west-3"));
}

UNIT_TEST(test_s3__virtual_host__in_the_name)
{
    static const struct fake_answer site[] = {
        {"http://b.s3:80/x/?encoding-type=url&list-type=2&prefix=",
         NULL,
         0,
         PAGE(OBJECT("k", "1")),
         {0}}};
    AUTO_SOURCE struct source *source = NULL;
    struct source_options options;
    struct cache_folder cache;

    fake_http_set(site, ARRAY_LEN(site));
    options_init(&options, &cache);
    options.endpoint = "http://s3:80/x/";
    options.virtual_host = true;
    assert_int_equal(source_open("s3://b", &options, &source, NULL), 0);
    check_url(source, "k", "http://b.s3:80/x/k");
}

/* Google speaks the protocol of S3, at an endpoint of its own; a requester who pays signs. */
UNIT_TEST(test_gs__dialect_of_s3)
{
    static const struct fake_answer google[] = {
        {"https://storage.googleapis.com/b?encoding-type=url&list-type=2&prefix=p%2F",
         NULL,
         0,
         PAGE(OBJECT("p/x", "1")),
         {0}},
        {"https://storage.googleapis.com/shut?encoding-type=url&list-type=2&prefix=",
         NULL,
         -EACCES,
         "<Error><Code>AccessDenied</Code></Error>",
         {0}},
    };
    AUTO_SOURCE struct source *source = NULL;
    AUTO_FREE char *name = NULL;
    struct source *wrong = NULL;
    struct source_options options;
    struct cache_folder cache;
    struct diag d = DIAG_INIT;

    setenv("AWS_ENDPOINT_URL", "http://other", 1);
    fake_http_set(google, ARRAY_LEN(google));
    options_init(&options, &cache);
    options.endpoint = NULL;
    assert_int_equal(source_open("gs://b/p", &options, &source, NULL), 0);
    check_url(source, "x", "https://storage.googleapis.com/b/p/x");
    name = source_name(source);
    assert_string_equal(name, "gs://b/p/");
    assert_int_equal(source_open("gs://shut", &options, &wrong, &d), -EACCES);
    assert_diag_has(&d, "gs://shut: may not be listed (storage.objects.list is needed");
    assert_diag_has(&d, "-o requester_pays");
    d = DIAG_INIT;
    options.requester_pays = true;
    assert_int_equal(source_open("gs://b/p", &options, &wrong, &d), -EINVAL);
    assert_diag_has(&d, "no_sign_request");
    options.anonymous = false;
    unsetenv("GOOGLE_CLOUD_PROJECT");
    d = DIAG_INIT;
    assert_int_equal(source_open("gs://b/p", &options, &wrong, &d), -EINVAL);
    assert_diag_has(&d, "$GOOGLE_CLOUD_PROJECT");
    unsetenv("AWS_ENDPOINT_URL");
}

UNIT_TEST(test_s3__requester_pays__signed_header)
{
    AUTO_SOURCE struct source *source = NULL;
    struct source_options options;
    struct cache_folder cache;

    fake_http_set(bucket, ARRAY_LEN(bucket));
    options_init(&options, &cache);
    options.anonymous = false;
    options.requester_pays = true;
    assert_int_equal(source_open("s3://b/p", &options, &source, NULL), 0);
    assert_string_equal(fake_http.signer->header, "x-amz-request-payer: requester");
}

/* ---- files that files name ---- */

static const struct fake_answer tree[] = {
    {"http://h/c/SHA256SUMS",
     NULL,
     0,
     SUM_A "  data/train/feats.scp\n" SUM_A "  data/train/x.ark\n" SUM_A "  x.ark\n" SUM_A
           "  exp/raw.ark\n" SUM_A "  exp/a b.ark\n",
     {0}},
    {"http://h/c/data/train/feats.scp", NULL, 0, NULL, {.size = 1}},
    {"http://h/c/data/train/x.ark", NULL, 0, NULL, {.size = 2}},
    {"http://h/c/x.ark", NULL, 0, NULL, {.size = 3}},
    {"http://h/c/exp/raw.ark", NULL, 0, NULL, {.size = 4}},
    {"http://h/c/exp/a%20b.ark", NULL, 0, NULL, {.size = 5}},
};

/* An opener over the tree. */
struct opening {
    struct source *source;
    struct cache_folder cache;
    struct cache_opener opener;
};

static void opening_init_of(struct opening *o, const struct fake_answer *answer, size_t n,
                            const char *spec, bool allow_outside)
{
    const struct cache_opener_options how = {.allow_outside = allow_outside, .command_timeout = 1};

    fake_http_set(answer, n);
    *o = (struct opening){.cache = {.path = (char *)"/nowhere"}};
    assert_int_equal(open_source(spec, NULL, &o->source, NULL), 0);
    assert_int_equal(cache_opener_init(&o->opener, o->source, &o->cache, &how), 0);
}

static void opening_init(struct opening *o, bool allow_outside)
{
    opening_init_of(o, tree, ARRAY_LEN(tree), "http://h/c/", allow_outside);
}

static void opening_release(struct opening *o)
{
    cache_opener_release(&o->opener);
    source_free(o->source);
}

static void check_named(struct opening *o, const char *folder, const char *path, uint64_t size)
{
    AUTO_BLOB struct blob *blob = NULL;

    assert_int_equal(opener_file(&o->opener.opener, folder, path, &blob, NULL), 0);
    assert_int_equal(blob->size, size);
    assert_non_null(fake_staged_of(blob));
}

static void check_not_named(struct opening *o, const char *path, int want, const char *piece)
{
    struct blob *blob = NULL;
    struct diag d = DIAG_INIT;

    assert_int_equal(opener_file(&o->opener.opener, "data/train", path, &blob, &d), want);
    assert_diag_has(&d, piece);
}

UNIT_TEST(test_remote_opener__relative_paths_and_urls__found)
{
    AUTO(opening_release) struct opening o;

    opening_init(&o, false);
    check_named(&o, "data/train", "x.ark", 2);
    check_named(&o, "data", "x.ark", 3);
    check_named(&o, "", "x.ark", 3);
    check_named(&o, "data/train", "../../x.ark", 3);
    check_named(&o, "data/train", "./exp//raw.ark", 4);
    /* A list with paths from above SOURCE. */
    check_named(&o, "data/train", "c/exp/raw.ark", 4);
    check_named(&o, "data/train", "../../../c/x.ark", 3);
    check_named(&o, "data/train", "exp/a b.ark", 5);
    check_named(&o, "data/train", "http://h/c/exp/raw.ark", 4);
    check_named(&o, "data/train", "http://h/c/exp/a%20b.ark", 5);
}

UNIT_TEST(test_remote_opener__elsewhere__refused)
{
    AUTO(opening_release) struct opening o;

    opening_init(&o, false);
    check_not_named(&o, "/etc/passwd", -EACCES, "lies outside of SOURCE");
    check_not_named(&o, "/etc/passwd", -EACCES, "allow_outside");
    check_not_named(&o, "http://other/c/x.ark", -EACCES, "lies outside of SOURCE");
    check_not_named(&o, "s3://b/x.ark?sig=HUSH", -EACCES, "s3://b/x.ark:");
    check_not_named(&o, "http://h/c/../../etc", -ENOENT, "expected a file");
    check_not_named(&o, "../../../x.ark/../y", -ENOENT, "expected a file");
    check_not_named(&o, "http://h/c/c/x.ark", -ENOENT, "expected a file");
    check_not_named(&o, "../../../cx.ark", -ENOENT, "expected a file");
    check_not_named(&o, "exp", -ENOENT, "expected a file");
    check_not_named(&o, "", -EINVAL, "expected a path");
}

UNIT_TEST(test_remote_opener__allow_outside__files_of_this_machine)
{
    AUTO(opening_release) struct opening o;
    AUTO_BLOB struct blob *blob = NULL;

    opening_init(&o, true);
    assert_int_equal(opener_file(&o.opener.opener, "", "/etc/passwd", &blob, NULL), 0);
    assert_null(fake_staged_of(blob));
    check_named(&o, "data/train", "x.ark", 2);
}

/* ---- files that a single file names ---- */

static const struct fake_answer beside_page[] = {
    {"http://h/c/feats.scp", NULL, 0, NULL, {.size = 1, .etag = "e"}},
    {"http://h/c/",
     NULL,
     0,
     "<title>Index of /c/</title><a href=\"feats.scp\">f</a><a href=\"a.ark\">a</a>"
     "<a href=\"b.ark\">b</a><a href=\"c.ark\">c</a><a href=\"d.ark\">d</a><a href=\"s/\">s</a>"
     "<a href=\"gone.ark\">g</a>",
     {0}},
    {"http://h/c/s/", NULL, 0, "<a href=\"x%20y.ark\">x</a>", {0}},
    {"http://h/c/a.ark", NULL, 0, NULL, {.size = 2}},
    {"http://h/c/b.ark", NULL, 0, NULL, {.size = 3}},
    {"http://h/c/c.ark", NULL, 0, NULL, {.size = 4}},
    {"http://h/c/d.ark", NULL, 0, NULL, {.size = 5}},
    {"http://h/c/s/x%20y.ark", NULL, 0, NULL, {.size = 6}},
    {"http://h/c/hid/den.ark", NULL, 0, NULL, {.size = 7}}, /* the page does not list it */
    {"http://h/up.ark", NULL, 0, NULL, {.size = 8}},
};

UNIT_TEST(test_remote_beside__listing__found)
{
    AUTO(opening_release) struct opening o;
    size_t stats;

    opening_init_of(&o, beside_page, ARRAY_LEN(beside_page), "http://h/c/feats.scp", false);
    check_files(o.source, no_sides, "feats.scp");
    assert_int_equal(fake_http.requests, 1); /* SHA256SUMS: nothing was named yet */
    stats = fake_http.stats;
    check_named(&o, "", "feats.scp", 1);
    assert_int_equal(fake_http.requests, 1);
    check_named(&o, "", "a.ark", 2);
    assert_int_equal(fake_http.stats, stats + 1);
    check_named(&o, "", "./b.ark", 3); /* the next one is requested with it */
    assert_int_equal(fake_http.stats, stats + 3);
    check_named(&o, "", "../c/c.ark", 4);
    check_named(&o, "", "b.ark", 3);
    assert_int_equal(fake_http.stats, stats + 3);
    check_named(&o, "", "c/s/x y.ark", 6); /* a list with paths from above */
    check_named(&o, "", "http://h/c/d.ark", 5);
    check_named(&o, "", "http://h/c/s/x%20y.ark", 6);
    assert_int_equal(fake_http.requests, 4); /* SHA256SUMS again, two pages */
    check_not_named(&o, "gone.ark", -ENOENT, "gone.ark");
    check_not_named(&o, "hid/den.ark", -ENOENT, "expected a file of");
    check_not_named(&o, "../up.ark", -ENOENT, "expected a file of");
    check_not_named(&o, "http://h/up.ark", -EACCES, "outside of SOURCE");
    check_not_named(&o, "/etc/passwd", -EACCES, "outside of SOURCE");
}

UNIT_TEST(test_remote_beside__no_listing__asked_for_once)
{
    static const struct fake_answer site[] = {
        {"http://h/c/feats.scp", NULL, 0, NULL, {.size = 1, .etag = "e"}},
        {"http://h/c/", NULL, -EACCES, NULL, {0}},
        {"http://h/c/s/a.ark", NULL, 0, NULL, {.size = 2}},
        {"http://h/c/dark.ark", NULL, -EREMOTEIO, NULL, {0}},
        {"http://h/c/.hid", NULL, 0, NULL, {.size = 2}},
        {"http://h/up.ark", NULL, 0, NULL, {.size = 8}},
    };
    AUTO(opening_release) struct opening o;
    size_t stats;

    opening_init_of(&o, site, ARRAY_LEN(site), "http://h/c/feats.scp", false);
    stats = fake_http.stats;
    check_named(&o, "", "s/a.ark", 2);
    check_named(&o, "", "http://h/c/s/a.ark", 2);
    assert_int_equal(fake_http.stats, stats + 1);
    check_named(&o, "", "c/s/a.ark", 2); /* c/c/s/a.ark is tried first */
    check_named(&o, "", "c/s/a.ark", 2);
    assert_int_equal(fake_http.stats, stats + 2);
    check_not_named(&o, "none.ark", -ENOENT, "none.ark");
    check_not_named(&o, "none.ark", -ENOENT, "none.ark");
    assert_int_equal(fake_http.stats, stats + 5); /* also in data/train/ and in data/ */
    check_not_named(&o, "dark.ark", -EREMOTEIO, "dark.ark");
    check_not_named(&o, "dark.ark", -EREMOTEIO, "dark.ark"); /* requested again */
    stats += 5 + 3 + 1;
    assert_int_equal(fake_http.stats, stats);
    check_not_named(&o, "../../../up.ark", -ENOENT, "expected a file of");
    check_not_named(&o, "../../../../up.ark", -ENOENT, "expected a file of");
    check_not_named(&o, "http://h/c/../up.ark", -ENOENT, "expected a file of");
    check_not_named(&o, ".hid", -ENOENT, "expected a file of");
    assert_int_equal(fake_http.stats, stats);
}

/* A signature in the query is valid for one file only. */
UNIT_TEST(test_remote_beside__query__nothing_is_asked_for)
{
    static const struct fake_answer site[] = {
        {"http://h/c/feats.scp?sig=1", NULL, 0, NULL, {.size = 1}},
        {"http://h/c/a.ark", NULL, 0, NULL, {.size = 2}},
    };
    AUTO(opening_release) struct opening o;

    opening_init_of(&o, site, ARRAY_LEN(site), "http://h/c/feats.scp?sig=1", false);
    check_not_named(&o, "a.ark", -ENOENT, "a.ark");
    assert_int_equal(fake_http.requests, 0);
}

UNIT_TEST(test_remote_beside__s3__listing_or_asked_for)
{
    static const struct fake_answer shut[] = {
        {"http://s3/open?encoding-type=url&list-type=2&prefix=p%2Fk%2F", NULL, -EACCES, NULL, {0}},
        {"http://s3/open/p/k", NULL, 0, NULL, {.size = 5}},
        {"http://s3/open/p/a.ark", NULL, 0, NULL, {.size = 6}},
    };
    static const struct fake_answer listed[] = {
        {"http://s3/b?encoding-type=url&list-type=2&prefix=p%2Fk%2F", NULL, 0, PAGE(""), {0}},
        {"http://s3/b?encoding-type=url&list-type=2&max-keys=1&prefix=p%2Fk",
         NULL,
         0,
         PAGE(OBJECT("p/k", "5")),
         {0}},
        {"http://s3/b?encoding-type=url&list-type=2&prefix=p%2F",
         NULL,
         0,
         PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>t</"
              "NextContinuationToken>" OBJECT("p/k", "5") OBJECT("p/a.ark", "6")),
         {0}},
        {"http://s3/b?continuation-token=t&encoding-type=url&list-type=2&prefix=p%2F",
         NULL,
         0,
         PAGE(OBJECT("p/s/x.ark", "7")),
         {0}},
    };

    for (unsigned i = 0; i < 2; i++) {
        AUTO(opening_release) struct opening o;

        if (i == 0)
            opening_init_of(&o, listed, ARRAY_LEN(listed), "s3://b/p/k", false);
        else
            opening_init_of(&o, shut, ARRAY_LEN(shut), "s3://open/p/k", false);
        check_named(&o, "", "a.ark", 6);
        check_named(&o, "", "p/a.ark", 6);
        check_named(&o, "", i ? "s3://open/p/a.ark" : "s3://b/p/s/x.ark", i ? 6 : 7);
        if (i == 0)
            assert_int_equal(fake_http.stats, 0);
        check_not_named(&o, "b.ark", -ENOENT, "b.ark");
        check_not_named(&o, "../q/a.ark", -ENOENT, "q/a.ark");
    }
}

/* The n-th allocation fails while a file is looked up, for n = 1, 2, 3 ... */
UNIT_TEST(test_remote_beside__no_memory__enomem_and_then_found)
{
    for (unsigned i = 0; i < 2; i++) {
        bool is_done = false;

        for (unsigned long at = 1; !is_done; at++) {
            AUTO(opening_release) struct opening o;
            AUTO_SOURCE_ENTRY struct source_entry entry = {0}, again = {0};
            int r;

            opening_init_of(&o, beside_page, i ? 1 : ARRAY_LEN(beside_page), "http://h/c/feats.scp",
                            false);
            failing_alloc_begin(at);
            r = remote_find(o.source, "", "a.ark", &entry, NULL);
            is_done = !failing_alloc_end();
            assert_int_equal(r, !is_done ? -ENOMEM : i ? -ENOENT : 0);
            assert_int_equal(remote_find(o.source, "", "a.ark", &again, NULL), i ? -ENOENT : 0);
        }
    }
}

UNIT_TEST(test_local__stages_local__through_the_stage)
{
    AUTO_SOURCE struct source *source = NULL;
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    struct source_options options;
    struct cache_folder cache;

    options_init(&options, &cache);
    options.stages_local = true;
    assert_int_equal(source_open("/etc/passwd", &options, &source, NULL), 0);
    assert_int_equal(source_list(source, no_sides, &list, NULL), 0);
    assert_int_equal(source_blob_packed(source, &list.entry[0], &blob, NULL), 0);
    assert_non_null(fake_staged_of(blob));
    assert_string_equal(fake_staged_of(blob)->url, "/etc/passwd");
    assert_int_equal(fake_staged_of(blob)->version.size, blob->size);
    assert_true(*fake_staged_of(blob)->version.etag);
}

/* The n-th allocation fails, for n = 1, 2, 3 ... until none does. ASan finds leaks. */
static void fail_each(const struct fake_answer *answer, size_t n, const char *spec,
                      const char *files)
{
    int r = -ENOMEM;

    for (unsigned long at = 1; r != 0; at++) {
        AUTO_SOURCE struct source *source = NULL;
        AUTO_SOURCE_LIST struct source_list list = {0};

        fake_http_set(answer, n);
        failing_alloc_begin(at);
        r = open_source(spec, files, &source, NULL);
        if (r == 0)
            r = source_list(source, (const char *const[]){".w", NULL}, &list, NULL);
        if (r != 0 && r != -ENOMEM)
            fail_msg("%s, allocation %lu: %d", spec, at, r);
        if (!failing_alloc_end())
            break;
        r = -ENOMEM;
    }
    assert_int_equal(r, 0);
}

UNIT_TEST(test_remote__no_memory__enomem)
{
    static const struct fake_answer file[] = {
        {"http://h/f", NULL, 0, NULL, {.size = 1, .etag = "e"}}};

    fail_each(index_site, ARRAY_LEN(index_site), "http://h/d/", NULL);
    fail_each(tree, ARRAY_LEN(tree), "http://h/c/", NULL);
    fail_each(tree, ARRAY_LEN(tree), "http://h/c/", "x.ark;data/y");
    fail_each(file, ARRAY_LEN(file), "http://h/f", NULL);
    fail_each(bucket, ARRAY_LEN(bucket), "s3://b/p", NULL);
    fail_each(bucket, ARRAY_LEN(bucket), "s3://b/p/d/c", NULL);
}
