/* The last token says the place in the grammar, the open objects and lists are bits of `lists`: no
 * call goes deeper for a deeper text. */
#include "format/annotations/json_stream.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "format/core/decimal.h"

#define WINDOW   (256u << 10)
#define NO_BYTE  (-1)
#define REWRITE  "Write the file again with a JSON library"
#define TOO_LONG "expected at most %u bytes, got more. Shorten it in the file"

void json_stream_init(struct json_stream *s, const struct blob *blob, const char *name,
                      struct diag *d)
{
    *s = (struct json_stream){
        .blob = blob, .name = name, .d = d, .window = {.least = WINDOW, .most = WINDOW}};
}

void json_stream_init_bytes(struct json_stream *s, const void *bytes, size_t len)
{
    *s = (struct json_stream){.name = "text", .p = bytes};
    s->last = s->p ? s->p + len : NULL;
    s->last_at = len;
}

void json_stream_release(struct json_stream *s)
{
    pass_window_release(&s->window);
    free(s->kept);
    s->kept = NULL;
    s->capacity = 0;
}

int json_stream_bad(const struct json_stream *s, uint64_t at, const char *format, ...)
{
    char problem[400];
    va_list args;

    if (s->error)
        return s->error;
    va_start(args, format);
    vsnprintf(problem, sizeof(problem), format, args);
    va_end(args);
    text_plain(problem, "");
    return diag_set(s->d, -EBADMSG, "%s: byte %llu: %s", s->name, (unsigned long long)at, problem);
}

const char *json_stream_found(const struct json_stream *s)
{
    static const char *const found[] = {
        [JSON_TOKEN_END] = "the end of the text",
        [JSON_TOKEN_OBJECT] = "an object",
        [JSON_TOKEN_OBJECT_END] = "the end of an object",
        [JSON_TOKEN_LIST] = "a list",
        [JSON_TOKEN_LIST_END] = "the end of the list",
        [JSON_TOKEN_NAME] = "a name",
        [JSON_TOKEN_STRING] = "a string",
        [JSON_TOKEN_NUMBER] = "a number",
        [JSON_TOKEN_TRUE] = "true",
        [JSON_TOKEN_FALSE] = "false",
        [JSON_TOKEN_NULL] = "null",
    };

    return found[s->token];
}

/* ---- bytes ---- */

/* The next byte, which is not in memory yet. */
static int json_stream_refill(struct json_stream *s)
{
    int r;

    if (s->error || !s->blob || s->last_at >= s->blob->size)
        return NO_BYTE;
    r = pass_window_at(&s->window, s->blob, s->last_at, 1, s->blob->size, &s->p, s->d);
    if (r < 0) {
        s->error = r;
        s->p = s->last;
        return NO_BYTE;
    }
    s->last = s->window.bytes + s->window.have;
    s->last_at = pass_window_end(&s->window);
    return *s->p;
}

/* The next byte, which is not used yet; NO_BYTE: there is none, or it cannot be read. */
static inline int json_stream_byte(struct json_stream *s)
{
    return s->p < s->last ? *s->p : json_stream_refill(s);
}

static bool json_stream_is_space(int byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* The first byte that is no space. */
static int json_stream_visible(struct json_stream *s)
{
    int byte = json_stream_byte(s);

    while (json_stream_is_space(byte)) {
        s->p++;
        byte = json_stream_byte(s);
    }
    return byte;
}

/* Another byte than those that are expected. */
static int json_stream_unexpected(struct json_stream *s, const char *expected)
{
    uint64_t at = json_stream_place(s);
    int byte = json_stream_byte(s);
    char found[16];

    if (byte == NO_BYTE)
        return json_stream_bad(s, at,
                               "JSON ends too early: expected %s, got the end of the file. Copy the"
                               " file again",
                               expected);
    if (s->last - s->p >= 3 && (!memcmp(s->p, "NaN", 3) || !memcmp(s->p, "Inf", 3)))
        snprintf(found, sizeof(found), "%s", byte == 'N' ? "NaN" : "Infinity");
    else
        snprintf(found, sizeof(found), byte > 0x20 && byte < 0x7f ? "%c" : "0x%02x", byte);
    return json_stream_bad(s, at, "JSON is malformed: expected %s, got %s. " REWRITE, expected,
                           found);
}

/* ---- texts ---- */

/* Room for so many bytes more of the kept text, and for those after it. */
static int json_stream_keep(struct json_stream *s, const void *bytes, size_t n)
{
    size_t needed = s->len + n + 1 + DECIMAL_PAD;

    if (s->skips)
        return 0;
    if (n > JSON_STREAM_TEXT - s->len)
        return json_stream_bad(s, s->at, "text is too long: " TOO_LONG, JSON_STREAM_TEXT);
    if (needed > s->capacity) {
        char *grown = realloc(s->kept, 2 * needed);

        if (!grown)
            return -ENOMEM;
        s->kept = grown;
        s->capacity = 2 * needed;
    }
    memcpy(s->kept + s->len, bytes, n);
    s->len += n;
    return 0;
}

/* The text is complete. */
static int json_stream_end_text(struct json_stream *s)
{
    int r;

    s->text = "";
    if (s->skips)
        return 0;
    r = json_stream_keep(s, "", 0);
    if (r < 0)
        return r;
    memset(s->kept + s->len, 0, 1 + DECIMAL_PAD);
    s->text = s->kept;
    return 0;
}

/* The four digits of \u; *ret: their value. */
static int json_stream_hex(struct json_stream *s, uint32_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < 4; i++) {
        int byte = json_stream_byte(s), letter = byte | 0x20;

        if (byte >= '0' && byte <= '9')
            *ret = *ret << 4 | (uint32_t)(byte - '0');
        else if (byte > 0 && letter >= 'a' && letter <= 'f')
            *ret = *ret << 4 | (uint32_t)(letter - 'a' + 10);
        else
            return json_stream_unexpected(s, "four hexadecimal digits after \\u");
        s->p++;
    }
    return 0;
}

static size_t json_stream_encode(uint32_t code, uint8_t ret[static 4])
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--) {
        ret[i] = (uint8_t)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    ret[0] = (uint8_t)(lead[n] | code);
    return n;
}

/* After \u: one character, which may be two of them. */
static int json_stream_code(struct json_stream *s)
{
    uint64_t at = json_stream_place(s) - 2;
    uint32_t code, low = 0;
    uint8_t bytes[4];
    int r = json_stream_hex(s, &code);

    if (r < 0)
        return r;
    if (code >= 0xd800 && code < 0xdc00) {
        for (const char *c = "\\u"; *c; c++) {
            if (json_stream_byte(s) != *c)
                return json_stream_unexpected(s, "\\u with the second half of a character");
            s->p++;
        }
        r = json_stream_hex(s, &low);
        if (r < 0)
            return r;
        if (low >= 0xdc00 && low < 0xe000)
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code < 0xe000)
        return json_stream_bad(s, at,
                               "character is malformed: expected two halves of a surrogate pair,"
                               " got \\u%04x alone. " REWRITE,
                               (unsigned)code);
    if (!code && !s->skips)
        return json_stream_bad(s, at,
                               "string has a NUL: expected characters of a text, got \\u0000."
                               " Remove it");
    return json_stream_keep(s, bytes, json_stream_encode(code, bytes));
}

static int json_stream_escape(struct json_stream *s)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int byte;
    const char *letter;

    s->p++;
    byte = json_stream_byte(s);
    letter = byte > 0 ? memchr(letters, byte, sizeof(letters) - 1) : NULL;
    if (!letter && byte != 'u')
        return json_stream_unexpected(s, "one of \"\\/bfnrtu after a backslash");
    s->p++;
    return letter ? json_stream_keep(s, &values[letter - letters], 1) : json_stream_code(s);
}

/* A character of several bytes, which may be in two windows. */
static int json_stream_character(struct json_stream *s)
{
    uint64_t at = json_stream_place(s);
    int byte = json_stream_byte(s);
    size_t n = (byte & 0xe0) == 0xc0 ? 2 : (byte & 0xf0) == 0xe0 ? 3 : 4, have = 0;
    uint8_t bytes[4];

    for (; have < n && byte != NO_BYTE; byte = json_stream_byte(s)) {
        bytes[have++] = (uint8_t)byte;
        s->p++;
    }
    if (text_character(bytes, have) != n)
        return json_stream_bad(s, at,
                               "string has a character that is malformed: expected UTF-8, got byte"
                               " 0x%02x. Convert the file to UTF-8",
                               bytes[0]);
    return json_stream_keep(s, bytes, n);
}

/* From the byte after the first quote to the byte after the last. */
static int json_stream_string(struct json_stream *s)
{
    int r = 0;

    s->p++;
    s->len = 0;
    while (r == 0) {
        int byte = json_stream_byte(s);
        const uint8_t *from = s->p;

        while (s->p < s->last && *s->p >= 0x20 && *s->p < 0x80 && *s->p != '"' && *s->p != '\\')
            s->p++;
        if (s->p > from)
            r = json_stream_keep(s, from, (size_t)(s->p - from));
        else if (byte == '"')
            break;
        else if (byte == '\\')
            r = json_stream_escape(s);
        else if (byte >= 0x80)
            r = json_stream_character(s);
        else
            return json_stream_unexpected(s, "a character of a string or its closing quote");
    }
    if (r < 0)
        return r;
    s->p++;
    return json_stream_end_text(s);
}

/* ---- numbers and words ---- */

/* What a number has so far. */
enum {
    NUMBER_ENDS, /* the byte is not part of it */
    NUMBER_BEGINS,
    NUMBER_MINUS,
    NUMBER_POINT,
    NUMBER_E,
    NUMBER_E_SIGN,
    NUMBER_ZERO, /* from here on it may end */
    NUMBER_WHOLE,
    NUMBER_FRACTION,
    NUMBER_EXPONENT,
};

/* What it has after a byte of one of these kinds. */
static const uint8_t number_class[256] = {
    ['-'] = 1, ['0'] = 2, ['1'] = 3, ['2'] = 3, ['3'] = 3, ['4'] = 3, ['5'] = 3, ['6'] = 3,
    ['7'] = 3, ['8'] = 3, ['9'] = 3, ['.'] = 4, ['e'] = 5, ['E'] = 5, ['+'] = 6};
static const uint8_t number_next[][7] = {
    [NUMBER_BEGINS] = {0, NUMBER_MINUS, NUMBER_ZERO, NUMBER_WHOLE},
    [NUMBER_MINUS] = {0, 0, NUMBER_ZERO, NUMBER_WHOLE},
    [NUMBER_POINT] = {0, 0, NUMBER_FRACTION, NUMBER_FRACTION},
    [NUMBER_E] = {0, NUMBER_E_SIGN, NUMBER_EXPONENT, NUMBER_EXPONENT, 0, 0, NUMBER_E_SIGN},
    [NUMBER_E_SIGN] = {0, 0, NUMBER_EXPONENT, NUMBER_EXPONENT},
    [NUMBER_ZERO] = {0, 0, 0, 0, NUMBER_POINT, NUMBER_E},
    [NUMBER_WHOLE] = {0, 0, NUMBER_WHOLE, NUMBER_WHOLE, NUMBER_POINT, NUMBER_E},
    [NUMBER_FRACTION] = {0, 0, NUMBER_FRACTION, NUMBER_FRACTION, 0, NUMBER_E},
    [NUMBER_EXPONENT] = {0, 0, NUMBER_EXPONENT, NUMBER_EXPONENT},
};

static int json_stream_number(struct json_stream *s)
{
    unsigned has = NUMBER_BEGINS, next = has;
    int r = 0;

    s->len = 0;
    while (r == 0 && next != NUMBER_ENDS && json_stream_byte(s) != NO_BYTE) {
        const uint8_t *from = s->p;

        while (s->p < s->last && (next = number_next[has][number_class[*s->p]]) != NUMBER_ENDS) {
            has = next;
            s->p++;
        }
        if (!s->skips && s->len + (size_t)(s->p - from) > JSON_STREAM_NUMBER)
            return json_stream_bad(s, s->at, "number is too long: " TOO_LONG, JSON_STREAM_NUMBER);
        r = json_stream_keep(s, from, (size_t)(s->p - from));
    }
    if (r == 0 && has < NUMBER_ZERO)
        return json_stream_unexpected(s, "a digit");
    return r < 0 ? r : json_stream_end_text(s);
}

static int json_stream_word(struct json_stream *s, const char *word)
{
    for (; *word; word++) {
        if (json_stream_byte(s) != *word)
            return json_stream_unexpected(s, "true, false or null");
        s->p++;
    }
    return 0;
}

/* ---- structure ---- */

static bool json_stream_in_list(const struct json_stream *s)
{
    unsigned level = s->depth - 1;

    return s->lists[level / 8] >> level % 8 & 1;
}

static int json_stream_open(struct json_stream *s, bool is_list)
{
    unsigned bit = 1u << s->depth % 8;

    if (s->depth == JSON_STREAM_DEPTH)
        return json_stream_bad(s, s->at,
                               "JSON is too deep: expected at most %u levels, got more. Flatten it",
                               JSON_STREAM_DEPTH);
    s->p++;
    s->lists[s->depth / 8] = (uint8_t)((s->lists[s->depth / 8] & ~bit) | (is_list ? bit : 0));
    s->depth++;
    s->token = is_list ? JSON_TOKEN_LIST : JSON_TOKEN_OBJECT;
    return 0;
}

static int json_stream_close(struct json_stream *s)
{
    s->token = json_stream_in_list(s) ? JSON_TOKEN_LIST_END : JSON_TOKEN_OBJECT_END;
    s->p++;
    s->depth--;
    return 0;
}

static int json_stream_value(struct json_stream *s, int byte)
{
    switch (byte) {
    case '{':
    case '[':
        return json_stream_open(s, byte == '[');
    case '"':
        s->token = JSON_TOKEN_STRING;
        return json_stream_string(s);
    case 't':
        s->token = JSON_TOKEN_TRUE;
        return json_stream_word(s, "true");
    case 'f':
        s->token = JSON_TOKEN_FALSE;
        return json_stream_word(s, "false");
    case 'n':
        s->token = JSON_TOKEN_NULL;
        return json_stream_word(s, "null");
    default:
        if (byte != '-' && (byte < '0' || byte > '9'))
            return json_stream_unexpected(s, "a value");
        s->token = JSON_TOKEN_NUMBER;
        return json_stream_number(s);
    }
}

static int json_stream_name(struct json_stream *s, int byte)
{
    int r;

    if (byte != '"')
        return json_stream_unexpected(s, "the name of a member in quotes");
    s->token = JSON_TOKEN_NAME;
    r = json_stream_string(s);
    if (r < 0)
        return r;
    if (json_stream_visible(s) != ':')
        return json_stream_unexpected(s, "a colon after the name");
    s->p++;
    return 0;
}

/* After a value: 1: a comma; 0: the end of what it is in, or of the text; or an error. */
static int json_stream_comma(struct json_stream *s, int byte)
{
    s->token = JSON_TOKEN_END;
    if (!s->depth)
        return byte == NO_BYTE && !s->error ? 0 : json_stream_unexpected(s, "the end of the file");
    if (byte == (json_stream_in_list(s) ? ']' : '}'))
        return json_stream_close(s);
    if (byte != ',')
        return json_stream_unexpected(s, json_stream_in_list(s) ? "a comma or ]" : "a comma or }");
    s->p++;
    return 1;
}

int json_stream_next(struct json_stream *s)
{
    const enum json_token before = s->token;
    const bool is_opened = before == JSON_TOKEN_OBJECT || before == JSON_TOKEN_LIST;
    int byte, r;

    if (before == JSON_TOKEN_END && json_stream_byte(s) != NO_BYTE) /* a byte order mark */
        s->p += utf8_mark(s->p, (size_t)(s->last - s->p));
    byte = json_stream_visible(s);
    s->at = json_stream_place(s);
    if (!is_opened && before != JSON_TOKEN_END && before != JSON_TOKEN_NAME) {
        r = json_stream_comma(s, byte);
        if (r <= 0)
            return r;
        byte = json_stream_visible(s);
        s->at = json_stream_place(s);
    }
    if (is_opened && byte == (json_stream_in_list(s) ? ']' : '}'))
        return json_stream_close(s);
    if (s->depth && !json_stream_in_list(s) && before != JSON_TOKEN_NAME)
        return json_stream_name(s, byte);
    return json_stream_value(s, byte);
}

int json_stream_skip(struct json_stream *s, enum json_token *ret_first)
{
    unsigned depth = s->depth;
    uint64_t at;
    int r;

    s->skips = true;
    r = json_stream_next(s);
    at = s->at;
    if (r == 0 && ret_first)
        *ret_first = s->token;
    while (r == 0 && s->depth > depth)
        r = json_stream_next(s);
    s->skips = false;
    s->at = at;
    return r;
}

int json_stream_member(struct json_stream *s)
{
    int r = json_stream_next(s);

    return r < 0 ? r : s->token == JSON_TOKEN_NAME;
}

int json_stream_item(struct json_stream *s)
{
    int r = json_stream_next(s);

    return r < 0 ? r : s->token != JSON_TOKEN_LIST_END;
}
