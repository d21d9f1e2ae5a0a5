#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

static bool text_reserve(struct text *t, size_t more)
{
    size_t need, capacity;
    char *data;

    if (t->failed || __builtin_add_overflow(t->len, more, &need) || need > SIZE_MAX / 4)
        return !(t->failed = true);
    if (need < t->capacity)
        return true;
    capacity = need * 2 + 64;
    data = realloc(t->data, capacity);
    if (!data)
        return !(t->failed = true);
    t->data = data;
    t->capacity = capacity;
    return true;
}

bool text_ends_with(const char *name, const char *suffix)
{
    size_t len = strlen(name), n = strlen(suffix);

    return len >= n && !strcasecmp(name + len - n, suffix);
}

void text_add_bytes(struct text *t, const char *bytes, size_t len)
{
    if (!text_reserve(t, len))
        return;
    if (len) /* else bytes may be NULL */
        memcpy(t->data + t->len, bytes, len);
    t->len += len;
    t->data[t->len] = '\0';
}

__attribute__((format(printf, 2, 0))) static void text_vadd(struct text *t, const char *format,
                                                            va_list args)
{
    va_list again;
    int n;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0 || !text_reserve(t, (size_t)n)) {
        t->failed = true;
        return;
    }
    vsnprintf(t->data + t->len, (size_t)n + 1, format, args);
    t->len += (size_t)n;
}

void text_add(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text_vadd(t, format, args);
    va_end(args);
}

size_t text_command(const void *bytes, size_t len)
{
    const unsigned char *s = bytes;
    unsigned code;

    if (!len || s[0] < ' ' || s[0] == 0x7f)
        return len ? 1 : 0;
    if (len >= 2 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0)
        return 2;
    if (len >= 2 && s[0] == 0xd8 && s[1] == 0x9c) /* the Arabic letter mark */
        return 2;
    if (len < 3 || s[0] != 0xe2 || (s[1] != 0x80 && s[1] != 0x81))
        return 0;
    code = 0x2000 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    return code == 0x200e || code == 0x200f ||           /* marks */
                   (code >= 0x2028 && code <= 0x202e) || /* separators, embeddings, overrides */
                   (code >= 0x2066 && code <= 0x2069)    /* isolates */
               ? 3
               : 0;
}

void text_plain(char *s, const char *kept)
{
    while (*s) {
        size_t n = text_command(s, strnlen(s, 3));

        if (n == 1 && strchr(kept, *s))
            n = 0;
        memset(s, '?', n);
        s += n ? n : 1;
    }
}

size_t text_character(const void *bytes, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = bytes;
    size_t n = *s < 0x80 ? 1 : (*s & 0xe0) == 0xc0 ? 2 : (*s & 0xf0) == 0xe0 ? 3 : 4;
    uint32_t code;

    if (n == 1)
        return 1;
    if (n > len || (n == 4 && (*s & 0xf8) != 0xf0))
        return 0;
    code = *s & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return n;
}

bool text_is_utf8(const void *bytes, size_t len)
{
    const char *at = bytes;

    for (size_t n; len; at += n, len -= n)
        if (!(n = text_character(at, len)))
            return false;
    return true;
}

void text_add_json_bytes(struct text *t, const uint8_t *s, size_t len)
{
    text_add(t, "\"");
    while (len) {
        size_t n = text_character(s, len);

        if (n == 0) {
            text_add(t, "\\ufffd");
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            text_add(t, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7f) {
            text_add(t, "\\u%04x", *s);
        } else {
            text_add_bytes(t, (const char *)s, n);
        }
        s += n;
        len -= n;
    }
    text_add(t, "\"");
}

void text_add_json(struct text *t, const char *bytes)
{
    if (bytes)
        text_add_json_bytes(t, (const uint8_t *)bytes, strlen(bytes));
    else
        text_add(t, "null");
}

void json_open(struct text *t, const char *indent, const char *name, const char *bracket)
{
    unsigned char last = t->len ? (unsigned char)t->data[t->len - 1] : '\0';
    bool goes_on = !indent && (isalnum(last) || last == '"' || last == '}' || last == ']');

    text_add(t, "%s", indent ? indent : goes_on ? ", " : "");
    if (name)
        text_add_json(t, name);
    text_add(t, "%s%s", name ? ": " : "", bracket);
}

void json_close(struct text *t, const char *indent, const char *bracket)
{
    text_add(t, "%s%s", bracket, indent ? ",\n" : "");
}

void json_add(struct text *t, const char *indent, const char *name, const char *format, ...)
{
    va_list args;

    json_open(t, indent, name, "");
    va_start(args, format);
    text_vadd(t, format, args);
    va_end(args);
    json_close(t, indent, "");
}

void json_add_number(struct text *t, const char *indent, const char *name, uint64_t number)
{
    json_add(t, indent, name, "%" PRIu64, number);
}

void json_add_text(struct text *t, const char *indent, const char *name, const char *bytes)
{
    json_open(t, indent, name, "");
    text_add_json(t, bytes);
    json_close(t, indent, "");
}

void json_add_bytes(struct text *t, const void *bytes, size_t len)
{
    json_open(t, NULL, NULL, "");
    text_add_json_bytes(t, bytes, len);
}

void json_add_texts(struct text *t, const char *indent, const char *name, char *const *texts,
                    size_t stride, size_t n)
{
    json_open(t, indent, name, "[");
    for (size_t i = 0; i < n; i++)
        json_add_text(t, NULL, NULL,
                      *(char *const *)(const void *)((const char *)texts + i * stride));
    json_close(t, indent, "]");
}

int text_finish(struct text *t, char **ret_data, size_t *ret_len)
{
    text_add_bytes(t, "", 0);
    if (t->failed) {
        text_release(t);
        return -ENOMEM;
    }
    if (ret_len)
        *ret_len = t->len;
    *ret_data = TAKE_PTR(t->data);
    text_release(t);
    return 0;
}

void text_fit(struct text *t)
{
    char *data = t->len ? realloc(t->data, t->len + 1) : NULL;

    if (!data)
        return;
    t->data = data;
    t->capacity = t->len + 1;
}

void text_release(struct text *t)
{
    free(t->data);
    *t = (struct text){0};
}

int text_print(char **ret, const char *format, ...)
{
    AUTO_TEXT struct text t = {0};
    va_list args;

    *ret = NULL;
    va_start(args, format);
    text_vadd(&t, format, args);
    va_end(args);
    return text_finish(&t, ret, NULL);
}

int text_copy(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

void text_trim(char *text)
{
    static const char white_space[] = " \t\r\n";
    const char *from = text + strspn(text, white_space);
    size_t len = strlen(from);

    while (len && strchr(white_space, from[len - 1]))
        len--;
    memmove(text, from, len);
    text[len] = '\0';
}

int texts_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int texts_add(struct texts *list, const char *text)
{
    if (array_capacity(&list->text, list->n, sizeof(*list->text)) < 0)
        return -ENOMEM;
    list->text[list->n] = strdup(text);
    if (!list->text[list->n])
        return -ENOMEM;
    list->n++;
    return 0;
}

void texts_sort(struct texts *list, size_t first)
{
    size_t kept = first;

    if (list->n > first)
        qsort(&list->text[first], list->n - first, sizeof(*list->text), texts_compare);
    for (size_t i = first; i < list->n; i++) {
        if (kept > first && !strcmp(list->text[kept - 1], list->text[i]))
            free(list->text[i]);
        else
            list->text[kept++] = list->text[i];
    }
    list->n = kept;
}

void texts_release(struct texts *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->text[i]);
    free(list->text);
    *list = (struct texts){0};
}

void secret_free(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

void secret_release(struct text *t)
{
    if (t->data)
        explicit_bzero(t->data, t->len);
    text_release(t);
}
