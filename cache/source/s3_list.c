/* Parsers of S3 servers' answers.
 *
 *   ListBucketResult: EncodingType, IsTruncated, NextContinuationToken, and for each object
 *     Contents: Key, Size, ETag, LastModified, and what does not matter here; for each folder
 *     CommonPrefixes: Prefix
 *   Error: Code, Message, and of some Region or Endpoint
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html. The request for keys has
 * encoding-type=url, because XML cannot write all of them; a space may then come as '+'. */
#include "cache/source/s3_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/number.h"
#include "cache/http/iso_time.h"
#include "cache/http/url.h"
#include "cache/http/xml.h"

/* The state of reading a page. */
struct reading {
    struct s3_page page;
    bool encoded, truncated, begun;
    struct s3_object object; /* the one being read */
    bool has_size;
    const char *wrong; /* what an element should contain */
};

static void reading_release(struct reading *reading)
{
    s3_page_release(&reading->page);
    free(reading->object.key);
}

void s3_page_release(struct s3_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        free(page->object[i].key);
    free(page->object);
    for (size_t i = 0; i < page->n_prefixes; i++)
        free(page->prefix[i]);
    free(page->prefix);
    free(page->token);
    *page = (struct s3_page){0};
}

/* Set the version's ETag, with quotes, as HTTP has it. One that is too long or strange becomes
 * empty. */
static void set_etag(const char *text, char *ret, size_t capacity)
{
    bool quoted = *text == '"' || !strncmp(text, "W/", 2);
    int n;

    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return;
    n = snprintf(ret, capacity, quoted ? "%s" : "\"%s\"", text);
    if (!*text || n >= (int)capacity)
        *ret = '\0';
}

/* Move a text to *ret. */
static void take(char **text, char **ret)
{
    free(*ret);
    *ret = TAKE_PTR(*text);
}

/* Read an element of an object. Returns what is wrong with it; NULL: nothing. */
static const char *read_field(struct reading *reading, const struct xml_element *element,
                              char **text)
{
    struct remote_version *version = &reading->object.version;

    if (xml_is(element, "Key")) {
        take(text, &reading->object.key);
    } else if (xml_is(element, "Size")) {
        reading->has_size = **text && number_parse(*text, strlen(*text), INT64_MAX,
                                                   &version->size) == strlen(*text);
        return reading->has_size ? NULL : "a number of bytes in Size";
    } else if (xml_is(element, "ETag")) {
        set_etag(*text, version->etag, sizeof(version->etag));
    } else if (xml_is(element, "LastModified")) {
        return iso_time_parse(*text, &version->mtime.tv_sec) ? NULL : "a time in LastModified";
    }
    return NULL;
}

static const char *read_top(struct reading *reading, const struct xml_element *element, char **text)
{
    if (xml_is(element, "EncodingType")) {
        reading->encoded = !strcmp(*text, "url");
    } else if (xml_is(element, "NextContinuationToken")) {
        take(text, &reading->page.token);
    } else if (xml_is(element, "IsTruncated")) {
        reading->truncated = !strcmp(*text, "true");
        return reading->truncated || !strcmp(*text, "false") ? NULL
                                                             : "true or false in IsTruncated";
    }
    return NULL;
}

/* Keep the object that was read. */
static int end_object(struct reading *reading)
{
    struct s3_page *page = &reading->page;

    if (!reading->object.key || !reading->has_size) {
        reading->wrong = "a Key and a Size in Contents";
        return -EBADMSG;
    }
    if (array_capacity(&page->object, page->n, sizeof(*page->object)) < 0)
        return -ENOMEM;
    page->object[page->n++] = reading->object;
    reading->object = (struct s3_object){0};
    reading->has_size = false;
    return 0;
}

static int add_prefix(struct s3_page *page, char **text)
{
    if (array_capacity(&page->prefix, page->n_prefixes, sizeof(*page->prefix)) < 0)
        return -ENOMEM;
    page->prefix[page->n_prefixes++] = TAKE_PTR(*text);
    return 0;
}

/* Read an element that ends below the root element. depth 1: in the root; 2: in Contents. */
static int read_element(struct reading *reading, const struct xml *xml,
                        const struct xml_element *element)
{
    AUTO_FREE char *text = NULL;
    bool in_prefixes;
    int r;

    if (xml->depth == 1 && xml_is(element, "Contents"))
        return end_object(reading);
    in_prefixes = xml->depth == 2 && xml_is(&xml->open[1], "CommonPrefixes");
    if (element->has_children || !xml->depth || xml->depth > 2 ||
        (xml->depth == 2 && !in_prefixes && !xml_is(&xml->open[1], "Contents")))
        return 0;
    r = xml_text(element, &text);
    if (r == -EBADMSG)
        reading->wrong = "text without unknown entities";
    if (r < 0)
        return r;
    if (in_prefixes)
        return xml_is(element, "Prefix") ? add_prefix(&reading->page, &text) : 0;
    reading->wrong =
        xml->depth == 1 ? read_top(reading, element, &text) : read_field(reading, element, &text);
    return reading->wrong ? -EBADMSG : 0;
}

/* Undo encoding-type=url. */
static bool decode_key(char *key)
{
    for (char *c = key; *c; c++)
        *c = *c == '+' ? ' ' : *c;
    return url_decode(key, strlen(key), key); /* it never writes ahead of what it reads */
}

static int decode_keys(struct reading *reading)
{
    const struct s3_page *page = &reading->page;
    bool right = true;

    for (size_t i = 0; reading->encoded && right && i < page->n; i++)
        right = decode_key(page->object[i].key);
    for (size_t i = 0; reading->encoded && right && i < page->n_prefixes; i++)
        right = decode_key(page->prefix[i]);
    if (right)
        return 0;
    reading->wrong = "percent-encoded bytes in Key";
    return -EBADMSG;
}

static int read_page(struct reading *reading, struct xml *xml)
{
    struct xml_element element;
    enum xml_event event;
    int r = 0;

    while (r == 0 && (event = xml_next(xml, &element)) != XML_END) {
        if (event == XML_BAD ||
            (xml->depth == 1 && event == XML_OPENED && !xml_is(&element, "ListBucketResult"))) {
            reading->wrong = event == XML_BAD ? "XML" : "ListBucketResult";
            return -EBADMSG;
        }
        reading->begun = true;
        if (event == XML_CLOSED)
            r = read_element(reading, xml, &element);
    }
    if (r == 0 && !reading->begun)
        return -EBADMSG;
    if (r == 0 && reading->truncated && !reading->page.token) {
        reading->wrong = "NextContinuationToken, for IsTruncated is true";
        return -EBADMSG;
    }
    return r < 0 ? r : decode_keys(reading);
}

int s3_page_parse(const char *xml, size_t len, const char *what, struct s3_page *ret,
                  struct diag *d)
{
    AUTO(reading_release) struct reading reading = {.wrong = NULL};
    struct xml at = {.at = xml, .end = xml + len};
    int r = read_page(&reading, &at);

    if (r == -EBADMSG)
        return diag_set(d, r, "%s: byte %zu of the listing: expected %s, got something else", what,
                        (size_t)(at.at - xml), reading.wrong ? reading.wrong : "XML");
    if (r < 0)
        return r;
    if (!reading.truncated) {
        free(reading.page.token);
        reading.page.token = NULL;
    }
    *ret = reading.page;
    reading.page = (struct s3_page){0};
    return 0;
}

uint64_t s3_page_hash(const char *xml, size_t len)
{
    static const char begin[] = "<Contents>", more[] = "<NextContinuationToken>";
    const char *first = memmem(xml, len, begin, strlen(begin)), *last = first;
    const char *end = xml + len, *next;
    bool has_more;

    while (last && (next = memmem(last + 1, (size_t)(end - last - 1), begin, strlen(begin))))
        last = next;
    if (last) { /* up to the end of the last object */
        next = memmem(last, (size_t)(end - last), "</Contents>", strlen("</Contents>"));
        last = next ? next : end;
    }
    has_more = memmem(xml, (size_t)((first ? first : end) - xml), more, strlen(more)) ||
               (last && memmem(last, (size_t)(end - last), more, strlen(more)));
    return XXH3_64bits_withSeed(first ? first : "", (size_t)(last - first), has_more);
}

bool s3_error_parse(const char *xml, size_t len, struct s3_error *ret)
{
    struct xml at = {.at = xml, .end = xml + len};
    struct xml_element element;
    struct s3_error found = {.code = ""};
    const struct {
        const char *name;
        char *to;
        size_t capacity;
    } fields[] = {{"Code", found.code, sizeof(found.code)},
                  {"Message", found.message, sizeof(found.message)},
                  {"Region", found.region, sizeof(found.region)},
                  {"Endpoint", found.endpoint, sizeof(found.endpoint)}};
    enum xml_event event;

    while (len && ((event = xml_next(&at, &element)) == XML_OPENED || event == XML_CLOSED)) {
        AUTO_FREE char *text = NULL;

        if (event == XML_OPENED && at.depth == 1 && !xml_is(&element, "Error"))
            return false;
        if (event == XML_OPENED || at.depth != 1 || element.has_children ||
            xml_text(&element, &text) < 0)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
            if (xml_is(&element, fields[i].name))
                name_show(text, fields[i].to, fields[i].capacity);
    }
    *ret = found;
    return *found.code != '\0';
}
