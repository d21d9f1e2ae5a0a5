/* XML as S3 servers send it.
 *
 * Strict where it matters: every element is closed by its own name, depth has a bound, and the
 * document ends with its first element. Attributes are skipped. The only entities are the five of
 * XML and numeric characters, so no text is larger than its source. */
#include "cache/http/xml.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

static bool starts(const struct xml *xml, const char *what)
{
    size_t len = strlen(what);

    return (size_t)(xml->end - xml->at) >= len && !memcmp(xml->at, what, len);
}

/* Skip to behind `what`. */
static bool pass(struct xml *xml, const char *what)
{
    char *found = memmem(xml->at, (size_t)(xml->end - xml->at), what, strlen(what));

    if (!found)
        return false;
    xml->at = found + strlen(what);
    return true;
}

/* Go to the next tag, past comments and declarations. false: there is none, or there is unexpected
 * text. */
static bool find_tag(struct xml *xml)
{
    for (;;) {
        const char *start = memchr(xml->at, '<', (size_t)(xml->end - xml->at));
        const char *until = start ? start : xml->end;

        for (; !xml->depth && xml->at < until; xml->at++)
            if (!is_blank(*xml->at))
                return false;
        xml->at = until;
        if (!start)
            return false;
        if (starts(xml, "<?")) {
            if (!pass(xml, "?>"))
                return false;
        } else if (starts(xml, "<!--")) {
            if (!pass(xml, "-->"))
                return false;
        } else {
            return !starts(xml, "<!");
        }
    }
}

static struct xml_element read_name(struct xml *xml)
{
    struct xml_element ret = {.name = xml->at};

    while (xml->at < xml->end && is_name(*xml->at))
        xml->at++;
    ret.name_len = (size_t)(xml->at - ret.name);
    return ret;
}

static enum xml_event close_element(struct xml *xml, const char *text_end, struct xml_element *ret)
{
    *ret = xml->open[--xml->depth];
    ret->text_len = (size_t)(text_end - ret->text);
    return XML_CLOSED;
}

static enum xml_event read_close(struct xml *xml, struct xml_element *ret)
{
    const char *start = xml->at;
    struct xml_element name;

    xml->at += 2;
    name = read_name(xml);
    while (xml->at < xml->end && is_blank(*xml->at))
        xml->at++;
    if (xml->at == xml->end || *xml->at != '>' || !xml->depth ||
        name.name_len != xml->open[xml->depth - 1].name_len ||
        memcmp(name.name, xml->open[xml->depth - 1].name, name.name_len) != 0)
        return XML_BAD;
    xml->at++;
    return close_element(xml, start, ret);
}

static enum xml_event read_open(struct xml *xml, struct xml_element *ret)
{
    struct xml_element element;
    char quote = '\0';

    xml->at++;
    element = read_name(xml);
    if (!element.name_len || xml->depth == XML_DEPTH)
        return XML_BAD;
    for (; xml->at < xml->end && (quote || *xml->at != '>'); xml->at++) {
        if (quote && *xml->at == quote)
            quote = '\0';
        else if (!quote && (*xml->at == '"' || *xml->at == '\''))
            quote = *xml->at;
    }
    if (xml->at == xml->end)
        return XML_BAD;
    xml->at++;
    element.text = xml->at;
    if (xml->depth)
        xml->open[xml->depth - 1].has_children = true;
    xml->open[xml->depth++] = element;
    *ret = element;
    return XML_OPENED;
}

enum xml_event xml_next(struct xml *xml, struct xml_element *ret)
{
    struct xml_element *top = xml->depth ? &xml->open[xml->depth - 1] : NULL;

    /* "<a/>" opens and closes. */
    if (top && xml->at == top->text && xml->at[-2] == '/')
        return close_element(xml, xml->at, ret);
    if (!find_tag(xml))
        return xml->at == xml->end && !xml->depth ? XML_END : XML_BAD;
    return starts(xml, "</") ? read_close(xml, ret) : read_open(xml, ret);
}

bool xml_is(const struct xml_element *element, const char *name)
{
    return element->name_len == strlen(name) && !memcmp(element->name, name, element->name_len);
}

/* Write the character with number c as UTF-8. Returns its bytes; 0: there is no such character. */
static size_t put_character(uint32_t c, char *ret)
{
    unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    for (unsigned i = n; i-- > 1; c >>= 6)
        ret[i] = (char)(0x80 | (c & 0x3f));
    ret[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
    return n;
}

/* The character that the entity name, between '&' and ';', means; 0: unknown. */
static uint32_t entity(const char *name, size_t len)
{
    static const struct {
        const char *name;
        char is;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    unsigned base = len > 1 && name[1] == 'x' ? 16 : 10;
    uint32_t v = 0;

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strlen(known[i].name) == len && !memcmp(known[i].name, name, len))
            return (uint32_t)(unsigned char)known[i].is;
    if (len < 2 || len > 9 || name[0] != '#')
        return 0;
    for (size_t i = base == 16 ? 2 : 1; i < len; i++) {
        char c = (char)(name[i] | 0x20);
        unsigned digit = name[i] >= '0' && name[i] <= '9' ? (unsigned)(name[i] - '0')
                         : c >= 'a' && c <= 'f'           ? (unsigned)(c - 'a' + 10)
                                                          : base;
        if (digit >= base)
            return 0;
        v = v * base + digit;
    }
    return v;
}

int xml_text(const struct xml_element *element, char **ret)
{
    AUTO_FREE char *text = malloc(element->text_len + 1);
    const char *from = element->text, *end = from + element->text_len;
    char *to = text;

    if (!text)
        return -ENOMEM;
    while (from < end) {
        const char *semicolon;
        size_t n;

        if (*from != '&') {
            if (!*from)
                return -EBADMSG;
            *to++ = *from++;
            continue;
        }
        semicolon = memchr(from, ';', (size_t)(end - from));
        n = semicolon ? put_character(entity(from + 1, (size_t)(semicolon - from - 1)), to) : 0;
        if (!n)
            return -EBADMSG;
        to += n;
        from = semicolon + 1;
    }
    *to = '\0';
    *ret = TAKE_PTR(text);
    return 0;
}
