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
#include "cache/http/url.h"
#include "cache/http/xml.h"

/* The state of reading a page. */
struct reading {
    struct s3_page page;
    bool encoded, truncated;
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
    texts_release(&page->prefix);
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

/* An element of an object. Returns what is wrong with it; NULL: nothing. */
static const char *read_field(struct reading *reading, struct xml_element *element)
{
    struct remote_version *version = &reading->object.version;
    char *text = element->text;

    if (!strcmp(element->name, "Key")) {
        free(reading->object.key);
        reading->object.key = TAKE_PTR(element->text);
    } else if (!strcmp(element->name, "Size")) {
        reading->has_size =
            *text && number_parse(text, strlen(text), INT64_MAX, &version->size) == strlen(text);
        return reading->has_size ? NULL : "a number of bytes in Size";
    } else if (!strcmp(element->name, "ETag")) {
        set_etag(text, version->etag, sizeof(version->etag));
    } else if (!strcmp(element->name, "LastModified")) {
        return iso_time_parse(text, &version->mtime.tv_sec) ? NULL : "a time in LastModified";
    }
    return NULL;
}

static const char *read_top(struct reading *reading, struct xml_element *element)
{
    char *text = element->text;

    if (!strcmp(element->name, "EncodingType")) {
        reading->encoded = !strcmp(text, "url");
    } else if (!strcmp(element->name, "NextContinuationToken")) {
        free(reading->page.token);
        reading->page.token = TAKE_PTR(element->text);
    } else if (!strcmp(element->name, "IsTruncated")) {
        reading->truncated = !strcmp(text, "true");
        return reading->truncated || !strcmp(text, "false") ? NULL : "true or false in IsTruncated";
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

static int read_element(void *user, struct xml_element *element)
{
    struct reading *reading = user;
    const char *above = element->depth == 3 ? element->names[1] : "";

    if (strcmp(element->names[0], "ListBucketResult") != 0)
        reading->wrong = "ListBucketResult";
    else if (element->depth == 2 && !strcmp(element->name, "Contents"))
        return end_object(reading);
    else if (!element->text)
        return 0;
    else if (!strcmp(above, "CommonPrefixes") && !strcmp(element->name, "Prefix"))
        return texts_add(&reading->page.prefix, element->text);
    else if (element->depth == 2)
        reading->wrong = read_top(reading, element);
    else if (!strcmp(above, "Contents"))
        reading->wrong = read_field(reading, element);
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
    for (size_t i = 0; reading->encoded && right && i < page->prefix.n; i++)
        right = decode_key(page->prefix.text[i]);
    if (right)
        return 0;
    reading->wrong = "percent-encoded bytes in Key";
    return -EBADMSG;
}

int s3_page_parse(const char *xml, size_t len, const char *what, struct s3_page *ret,
                  struct diag *d)
{
    AUTO(reading_release) struct reading reading = {.wrong = NULL};
    size_t at;
    int r = xml_read(xml, len, read_element, &reading, &at);

    if (r == 0 && reading.truncated && !reading.page.token) {
        reading.wrong = "NextContinuationToken, for IsTruncated is true";
        r = -EBADMSG;
    }
    if (r == 0)
        r = decode_keys(&reading);
    if (r == -EBADMSG)
        return diag_set(d, r, "%s: byte %zu of the listing: expected %s, got something else", what,
                        at, reading.wrong ? reading.wrong : "XML");
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

uint64_t s3_page_hash(const void *page, size_t len)
{
    static const char begin[] = "<Contents>", more[] = "<NextContinuationToken>";
    const char *xml = page, *first = memmem(xml, len, begin, strlen(begin)), *last = first;
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

static int s3_list_read_error(void *user, struct xml_element *element)
{
    struct s3_error *found = user;
    const struct {
        const char *name;
        char *to;
        size_t capacity;
    } fields[] = {{"Code", found->code, sizeof(found->code)},
                  {"Message", found->message, sizeof(found->message)},
                  {"Region", found->region, sizeof(found->region)},
                  {"Endpoint", found->endpoint, sizeof(found->endpoint)}};

    if (strcmp(element->names[0], "Error") != 0)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_LEN(fields) && element->depth == 2 && element->text; i++)
        if (!strcmp(element->name, fields[i].name))
            name_show(element->text, fields[i].to, fields[i].capacity);
    return 0;
}

/* A body that is cut off has its first elements. */
bool s3_error_parse(const char *xml, size_t len, struct s3_error *ret)
{
    size_t unused;

    *ret = (struct s3_error){.code = ""};
    return xml_read(xml, len, s3_list_read_error, ret, &unused) != -ENOMEM && *ret->code;
}
