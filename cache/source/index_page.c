/* Index pages of nginx, Apache, Python's http.server and others like them.
 *
 * All are HTML in which each file of the folder is the href of an <a>: relative, percent-encoded,
 * and for a folder with '/' at its end. Servers may cut the text that is shown, but not the href.
 * Other links lead to the folder above, sort the page ("?C=N;O=D"), or leave the folder: a link
 * that is not a plain name in this very folder is skipped.
 *
 * This is not a parser of HTML: it finds tags and their attributes. A page can only give names, and
 * each name is checked. */
#include "cache/source/index_page.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "cache/http/url.h"

#define HREF_MOST                                                                                  \
    (4 * PATH_MAX) /* bytes; 255 bytes of name encode to 765, and the page's path comes before */

/* Characters that have names in HTML. */
static const struct entity {
    const char *name;
    char is;
} entities[] = {{"amp;", '&'},  {"lt;", '<'},    {"gt;", '>'},   {"quot;", '"'}, {"apos;", '\''},
                {"#39;", '\''}, {"#34;", '"'},   {"#38;", '&'},  {"#60;", '<'},  {"#62;", '>'},
                {"#32;", ' '},  {"#x27;", '\''}, {"#x22;", '"'}, {"#x26;", '&'}, {"#x3c;", '<'},
                {"#x3e;", '>'}, {"#x20;", ' '},  {"#43;", '+'},  {"#x2b;", '+'}, {"#61;", '='}};

/* Decode entities into ret, which has HREF_MOST bytes. Returns the bytes written; 0: too long. */
static size_t decode_entities(const char *text, size_t len, char *ret)
{
    size_t n = 0;

    if (len >= HREF_MOST)
        return 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        for (size_t k = 0; c == '&' && k < sizeof(entities) / sizeof(entities[0]); k++) {
            size_t name_len = strlen(entities[k].name);

            if (name_len < len - i && !strncasecmp(text + i + 1, entities[k].name, name_len)) {
                c = entities[k].is;
                i += name_len;
                break;
            }
        }
        ret[n++] = c;
    }
    ret[n] = '\0';
    return n;
}

/* Does it begin with the scheme of an absolute URL, or of "mailto:x"? */
static bool has_scheme(const char *href)
{
    size_t n = 0;

    while (isalnum((unsigned char)href[n]) || (href[n] && strchr("+-.", href[n])))
        n++;
    return n && href[n] == ':';
}

/* The path in an absolute link to the server of the page; a link without a server is returned as it
 * is. A page that came by https may name http, as behind a proxy. NULL: it leads to another server.
 */
static const char *index_page_path(const char *href, const char *url)
{
    const char *host = strstr(url, "://");
    size_t scheme = host ? (size_t)(host - url) : 0, len;

    if (has_scheme(href)) {
        bool same = !strncasecmp(href, url, scheme + 3) ||
                    (!strncasecmp(url, "https://", 8) && !strncasecmp(href, "http://", 7));

        href = strchr(href, ':') + 1;
        if (!host || !same)
            return NULL;
    }
    if (strncmp(href, "//", 2) != 0)
        return href;
    len = host ? strcspn(host + 3, "/") : 0;
    return len && !strncasecmp(href + 2, host + 3, len) && href[2 + len] == '/' ? href + 2 + len
                                                                                : NULL;
}

/* Get the name that a path within the folder of the page is. */
static bool link_name(const char *href, struct index_link *ret)
{
    char name[HREF_MOST];
    size_t len;

    while (href[0] == '.' && href[1] == '/')
        href += 2;
    if (!url_decode(href, strlen(href), name))
        return false;
    len = strlen(name);
    ret->is_folder = len && name[len - 1] == '/';
    if (ret->is_folder)
        name[len - 1] = '\0';
    if (name_wrong(name) || name_hidden(name) || strchr(name, '/'))
        return false;
    memcpy(ret->name, name, strlen(name) + 1);
    return true;
}

/* Get the name in href, from the page of that URL, or count a link to a folder that is not above
 * it. */
static bool link_read(const char *href, const char *url, struct index_link *ret)
{
    const char *host = strstr(url, "://"), *folder = host ? strchr(host + 3, '/') : url;
    const char *path, *slash;

    if (strpbrk(href, "?#") || !folder)
        return false;
    path = index_page_path(href, url);
    if (!path) {
        ret->elsewhere += *href == '/' || strstr(href, "://");
        return false;
    }
    if (*path != '/') {
        slash = strchr(path, '/');
        if (link_name(path, ret))
            return true;
        ret->elsewhere += strncmp(path, "../", 3) != 0 && slash && slash[1];
        return false;
    }
    if (!strncmp(path, folder, strlen(folder)) && link_name(path + strlen(folder), ret))
        return true;
    ret->elsewhere += strncmp(folder, path, strlen(path)) != 0;
    return false;
}

/* A tag: its bytes after '<', without '>'. */
struct tag {
    const char *at;
    size_t len;
};

/* Find the next tag from *at on. A '>' in quotes does not end it. */
static bool next_tag(const char *page, size_t len, size_t *at, struct tag *ret)
{
    const char *start = *at < len ? memchr(page + *at, '<', len - *at) : NULL;
    char quote = '\0';
    size_t i;

    if (!start)
        return false;
    i = (size_t)(start - page) + 1;
    if (len - i >= 3 && !memcmp(page + i, "!--", 3)) {
        const char *end = memmem(page + i, len - i, "-->", 3);

        *at = end ? (size_t)(end - page) + 3 : len;
        *ret = (struct tag){page + i, 0};
        return true;
    }
    ret->at = page + i;
    for (; i < len && (quote || page[i] != '>'); i++) {
        if (quote && page[i] == quote)
            quote = '\0';
        else if (!quote && (page[i] == '"' || page[i] == '\'') && page[i - 1] == '=')
            quote = page[i];
    }
    ret->len = (size_t)(page + i - ret->at);
    *at = i;
    return true;
}

/* Read the value of an attribute at *i; *i is after it afterwards. */
static struct tag attribute_value(const struct tag *tag, size_t *i)
{
    char quote = *i < tag->len ? tag->at[*i] : '\0';
    struct tag value;

    if (quote == '"' || quote == '\'') {
        const char *end = memchr(tag->at + *i + 1, quote, tag->len - *i - 1);

        value.at = tag->at + *i + 1;
        value.len = end ? (size_t)(end - value.at) : 0;
        *i = end ? (size_t)(end - tag->at) + 1 : tag->len;
        return value;
    }
    value.at = tag->at + *i;
    while (*i < tag->len && !isspace((unsigned char)tag->at[*i]))
        ++*i;
    value.len = (size_t)(tag->at + *i - value.at);
    return value;
}

/* Write the href of an <a>, its entities decoded, to ret, which has HREF_MOST bytes. */
static bool tag_href(const struct tag *tag, char *ret)
{
    size_t i = 1;

    if (tag->len < 2 || (tag->at[0] | 0x20) != 'a' || !isspace((unsigned char)tag->at[1]))
        return false;
    while (i < tag->len) {
        size_t name;
        bool is_href;

        while (i < tag->len && isspace((unsigned char)tag->at[i]))
            i++;
        name = i;
        while (i < tag->len && tag->at[i] != '=' && !isspace((unsigned char)tag->at[i]))
            i++;
        is_href = i - name == 4 && !strncasecmp(tag->at + name, "href", 4);
        if (i < tag->len && tag->at[i] == '=') {
            struct tag value = (i++, attribute_value(tag, &i));

            if (is_href)
                return decode_entities(value.at, value.len, ret) > 0;
        }
    }
    return false;
}

/* Is there a time behind the link whose tag ends at `at`? */
static bool has_time(const char *page, size_t len, size_t at)
{
    const char *next = memmem(page + at, len - at, "<a ", 3), *end = next ? next : page + len;
    const char *c = memmem(page + at, (size_t)(end - page) - at, "</a>", 4);

    for (; c && end - c >= 5; c++)
        if (c[2] == ':' && isdigit((unsigned char)c[0]) && isdigit((unsigned char)c[1]) &&
            isdigit((unsigned char)c[3]) && isdigit((unsigned char)c[4]))
            return true;
    return false;
}

bool index_page_next(const char *page, size_t len, const char *url, size_t *at,
                     struct index_link *ret)
{
    char href[HREF_MOST];
    struct tag tag;

    while (next_tag(page, len, at, &tag)) {
        if (!tag_href(&tag, href))
            continue;
        if (link_read(href, url, ret)) {
            ret->has_time = has_time(page, len, *at);
            return true;
        }
    }
    return false;
}

bool index_page_is(const char *page, size_t len)
{
    static const char *const titles[] = {"index of ", "directory listing for "};
    char href[HREF_MOST];
    struct tag tag;
    size_t at = 0;

    while (next_tag(page, len, &at, &tag)) {
        if (tag_href(&tag, href) && (!strcmp(href, "../") || !strcmp(href, "..")))
            return true;
        if (tag.len != 5 || strncasecmp(tag.at, "title", 5) != 0)
            continue;
        for (size_t i = 0; i < 2; i++) {
            size_t title_len = strlen(titles[i]);

            if (len - at > title_len && !strncasecmp(page + at + 1, titles[i], title_len))
                return true;
        }
    }
    return false;
}
