#include "cache/http/xml.h"

#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct xml {
    XML_Parser parser;
    int (*use)(void *user, struct xml_element *element);
    void *user;
    char names[XML_DEPTH][XML_NAME];
    unsigned depth;
    bool has_children; /* the element that ends next */
    struct text text;
    int error;
};

static void xml_stop(struct xml *xml, int error)
{
    xml->error = xml->error ? xml->error : error;
    XML_StopParser(xml->parser, XML_FALSE);
}

static void xml_open(void *data, const XML_Char *name, const XML_Char **attributes)
{
    struct xml *xml = data;

    (void)attributes;
    if (xml->depth == XML_DEPTH) {
        xml_stop(xml, -EBADMSG);
        return;
    }
    snprintf(xml->names[xml->depth++], XML_NAME, "%s", name);
    secret_release(&xml->text); /* it may be one */
    xml->has_children = false;
}

static void xml_add(void *data, const XML_Char *text, int len)
{
    struct xml *xml = data;

    text_add_bytes(&xml->text, text, (size_t)len);
    if (xml->text.failed)
        xml_stop(xml, -ENOMEM);
}

static void xml_close(void *data, const XML_Char *name)
{
    struct xml *xml = data;
    struct xml_element element = {.depth = xml->depth,
                                  .names = (const char(*)[XML_NAME])xml->names,
                                  .name = xml->names[xml->depth - 1]};
    int r = xml->error;

    (void)name;
    if (r == 0 && !xml->has_children)
        r = text_finish(&xml->text, &element.text, NULL);
    if (r == 0)
        r = xml->use(xml->user, &element);
    secret_free(&element.text);
    secret_release(&xml->text); /* it may be one */
    xml->depth--;
    xml->has_children = true;
    if (r != 0)
        xml_stop(xml, r);
}

static void xml_refuse_type(void *data, const XML_Char *name, const XML_Char *system,
                            const XML_Char *public, int has_internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_internal;
    xml_stop(data, -EBADMSG);
}

int xml_read(const char *text, size_t len, int (*use)(void *user, struct xml_element *element),
             void *user, size_t *ret_at)
{
    struct xml xml = {.parser = XML_ParserCreate(NULL), .use = use, .user = user};
    int r = 0;

    *ret_at = 0;
    if (!xml.parser)
        return -ENOMEM;
    XML_SetUserData(xml.parser, &xml);
    XML_SetElementHandler(xml.parser, xml_open, xml_close);
    XML_SetCharacterDataHandler(xml.parser, xml_add);
    XML_SetStartDoctypeDeclHandler(xml.parser, xml_refuse_type);
    if (len > INT_MAX || XML_Parse(xml.parser, text, (int)len, XML_TRUE) != XML_STATUS_OK)
        r = xml.error                                             ? xml.error
            : XML_GetErrorCode(xml.parser) == XML_ERROR_NO_MEMORY ? -ENOMEM
                                                                  : -EBADMSG;
    *ret_at = (size_t)XML_GetCurrentByteIndex(xml.parser);
    secret_release(&xml.text);
    XML_ParserFree(xml.parser);
    return r;
}

/* ---- times ---- */

/* Times as the services of AWS write them. */

bool iso_time_parse(const char *text, time_t *ret)
{
    struct tm tm = {0};
    const char *end =
        *text >= '0' && *text <= '9' ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    if (!end || tm.tm_year < 70)
        return false;
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0)
        return false;
    *ret = timegm(&tm);
    return true;
}
