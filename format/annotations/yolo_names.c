/* Names of YOLO's classes: a name in each line of a text, or the key `names` of data.yaml. This is
 * no parser of YAML. It finds that key at the first column, and reads the ways in which people and
 * tools write names behind it:
 *
 *     names: [a, 'b c', "d"]      names:          names:         names: {0: a, 1: b}
 *     (or over several lines)     - a               0: a         (likewise)
 *                                 - b               1: b
 *
 * Everything else there is rejected with its line: a name is never guessed. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/number.h"
#include "base/text.h"
#include "format/annotations/box_parts.h"

struct names {
    struct box_file file;
    struct box_classes *ret;
    uint8_t text[BOX_NAME_MAX]; /* the name that is being read */
    size_t len;
    size_t escaped; /* bytes of it that are kept: the last of them was written as an escape */
};

static int names_add(struct names *names, uint64_t number, struct box_cell name)
{
    struct box_classes *ret = names->ret;
    int r = box_name_check(&names->file, name);
    char *copy;

    if (r < 0)
        return r;
    if (ret->n == BOX_CLASSES_MAX)
        return box_bad(&names->file, "expected at most %d names of classes, got more",
                       BOX_CLASSES_MAX);
    if (array_capacity(&ret->item, ret->n, sizeof(*ret->item)) < 0)
        return -ENOMEM;
    copy = strndup((const char *)name.text, name.len);
    if (!copy)
        return -ENOMEM;
    ret->item[ret->n++] = (struct box_class){number, copy};
    return 0;
}

/* ---- a name in each line ---- */

static int names_of_lines(struct names *names)
{
    struct box_file *file = &names->file;
    int r = 0;

    while (r == 0 && file->at < file->end) {
        const uint8_t *end = memchr(file->at, '\n', (size_t)(file->end - file->at));
        struct box_cell name = {file->at, (size_t)((end ? end : file->end) - file->at)};

        file->at = end ? end + 1 : file->end;
        file->line++;
        name = box_trimmed(name);
        if (name.len)
            r = names_add(names, file->line - 1, name);
    }
    return r;
}

/* ---- YAML: characters ---- */

/* The byte at that distance; 0 at the end, and for a byte that is 0, which no rule allows. */
static uint8_t names_at(const struct names *names, size_t i)
{
    return i < (size_t)(names->file.end - names->file.at) ? names->file.at[i] : 0;
}

static bool names_is_end(uint8_t c)
{
    return c == '\n' || c == 0;
}

/* A blank or an end follows, as behind the colon of a key. */
static bool names_gap(const struct names *names, size_t i)
{
    uint8_t c = names_at(names, i);

    return box_is_blank(c) || names_is_end(c);
}

static void names_blanks(struct names *names)
{
    while (box_is_blank(names_at(names, 0)))
        names->file.at++;
}

/* To the next line. */
static void names_next_line(struct names *names)
{
    struct box_file *file = &names->file;
    const uint8_t *end = memchr(file->at, '\n', (size_t)(file->end - file->at));

    file->at = end ? end + 1 : file->end;
    file->line++;
}

/* Blanks and a comment up to the end of the line, then to the next line. */
static int names_line_end(struct names *names)
{
    const uint8_t *first = names->file.at;

    names_blanks(names);
    if (names_at(names, 0) == '#' && names->file.at > first)
        names_next_line(names);
    else if (names_at(names, 0) == '\n' || names->file.at == names->file.end)
        names_next_line(names);
    else
        return box_bad(&names->file, "names: expected the end of the line, got byte %02x",
                       names_at(names, 0));
    return 0;
}

/* Blanks, comments and line ends, within brackets. */
static void names_space(struct names *names)
{
    for (;;) {
        const uint8_t *first = names->file.at;

        names_blanks(names);
        if (names_at(names, 0) == '\n' || (names_at(names, 0) == '#' && names->file.at > first) ||
            (names_at(names, 0) == '#' && first[-1] == '\n'))
            names_next_line(names);
        else
            return;
    }
}

/* ---- YAML: scalars ---- */

static int names_put(struct names *names, const void *bytes, size_t n)
{
    if (n > BOX_NAME_MAX - names->len)
        return box_bad(&names->file, "name of a class: expected 1 to %d bytes, got more",
                       BOX_NAME_MAX);
    memcpy(names->text + names->len, bytes, n);
    names->len += n;
    return 0;
}

/* Go to where a scalar goes on in this line. */
static int names_continued(struct names *names)
{
    names_blanks(names);
    if (names_at(names, 0) == '\n')
        return box_bad(&names->file, "names: expected a name without an empty line in it");
    return 0;
}

/* A line end within a scalar: with the blanks around it, it is a space. */
static int names_fold(struct names *names)
{
    while (names->len > names->escaped && box_is_blank(names->text[names->len - 1]))
        names->len--;
    names_next_line(names);
    return names_put(names, " ", 1) < 0 ? -EBADMSG : names_continued(names);
}

static int names_put_character(struct names *names, uint32_t c)
{
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    uint8_t utf8[4];

    for (size_t i = n; i-- > 1; c >>= 6)
        utf8[i] = (uint8_t)(0x80 | (c & 63));
    utf8[0] = (uint8_t)(first[n] | c);
    return names_put(names, utf8, n);
}

/* \xNN, \uNNNN or \UNNNNNNNN; what is no character, box_name_check() finds: its bytes are no UTF-8.
 */
static int names_hex(struct names *names, unsigned digits)
{
    uint32_t c = 0;

    for (unsigned i = 0; i < digits; i++) {
        uint8_t digit = names_at(names, 2 + i);

        if (digit >= '0' && digit <= '9')
            c = c << 4 | (uint32_t)(digit - '0');
        else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
            c = c << 4 | (uint32_t)((digit | 0x20) - 'a' + 10);
        else
            return box_bad(&names->file, "names: expected %u hexadecimal digits after \\%c", digits,
                           names_at(names, 1));
    }
    if (c > 0x10ffff)
        return box_bad(&names->file, "names: expected a character, got %08x", c);
    names->file.at += 2 + digits;
    return names_put_character(names, c);
}

/* A backslash within double quotes. */
static int names_escape(struct names *names)
{
    static const char from[] = "\"\\/ tn", to[] = "\"\\/ \t\n";
    uint8_t c = names_at(names, 1);
    const char *found = c ? strchr(from, c) : NULL;

    if (c == '\n') { /* the name goes on in the next line */
        names_next_line(names);
        return names_continued(names);
    }
    if (c == 'x' || c == 'u' || c == 'U')
        return names_hex(names, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    if (!found)
        return box_bad(&names->file,
                       "names: expected an escape that is known, got byte %02x after "
                       "the backslash",
                       c);
    names->file.at += 2;
    return names_put(names, &to[found - from], 1);
}

static int names_quoted(struct names *names)
{
    uint8_t quote = names_at(names, 0);
    int r = 0;

    names->file.at++;
    while (r == 0) {
        uint8_t c = names_at(names, 0);

        if (c == quote && quote == '\'' && names_at(names, 1) == '\'') { /* '' is one ' */
            names->file.at++;
        } else if (c == quote) {
            names->file.at++;
            return 0;
        }
        if (c == '\n') {
            r = names_fold(names);
        } else if (c == 0) {
            r = box_bad(&names->file, "names: expected %c at the end of a name, got none", quote);
        } else if (c == '\\' && quote == '"') {
            r = names_escape(names);
            names->escaped = names->len;
        } else {
            r = names_put(names, names->file.at, 1);
            names->file.at++;
        }
    }
    return r;
}

/* Up to a comment, the end of the line and, in brackets, what separates names there. */
static int names_plain(struct names *names, bool in_brackets)
{
    uint8_t first = names_at(names, 0);
    int r = 0;

    if (names_is_end(first) || strchr(",[]{}#&*!|>%@`", first) ||
        (strchr("-?:", first) && names_gap(names, 1)))
        return box_bad(&names->file,
                       "names: expected a name, got byte %02x. Quote a name that "
                       "begins with it",
                       first);
    while (r == 0) {
        uint8_t c = names_at(names, 0);

        if (c == ':' &&
            (names_gap(names, 1) || (in_brackets && strchr(",[]{}", names_at(names, 1)))))
            return box_bad(&names->file, "names: expected a name, got a key in it. Quote a name "
                                         "that has a colon");
        if ((c == '\n' && !in_brackets) || c == 0 || (in_brackets && strchr(",[]{}", c)) ||
            (box_is_blank(c) && names_at(names, 1) == '#'))
            break;
        if (c == '\n') {
            const uint8_t *at = names->file.at;
            uint64_t line = names->file.line;

            names_space(names); /* then a comma or a bracket: the name ended before the line did */
            if (strchr(",[]{}", names_at(names, 0)))
                break;
            names->file.at = at;
            names->file.line = line;
            r = names_fold(names);
            if (r == 0 && names_at(names, 0) == '#')
                r = box_bad(&names->file, "names: expected a comma before the comment");
        } else {
            r = names_put(names, names->file.at, 1);
            names->file.at++;
        }
    }
    while (names->len && box_is_blank(names->text[names->len - 1]))
        names->len--;
    return r;
}

/* The name at the present place, of that number. */
static int names_scalar(struct names *names, uint64_t number, bool in_brackets)
{
    uint8_t c = names_at(names, 0);
    int r;

    names->len = names->escaped = 0;
    r = c == '"' || c == '\'' ? names_quoted(names) : names_plain(names, in_brackets);
    if (r == 0)
        r = names_add(names, number, (struct box_cell){names->text, names->len});
    return r;
}

/* The number before a name in a map, quoted or not, and its colon. */
static int names_key(struct names *names, uint64_t *ret)
{
    uint8_t quote =
        names_at(names, 0) == '"' || names_at(names, 0) == '\'' ? names_at(names, 0) : 0;
    size_t n;

    names->file.at += quote != 0;
    n = number_parse((const char *)names->file.at, (size_t)(names->file.end - names->file.at),
                     INT32_MAX, ret);
    names->file.at += n;
    if (!n || (quote && names_at(names, 0) != quote))
        return box_bad(&names->file, "names: expected the number of a class, 0 to %d", INT32_MAX);
    names->file.at += quote != 0;
    names_blanks(names);
    if (names_at(names, 0) != ':' || (!quote && !names_gap(names, 1)))
        return box_bad(&names->file, "names: expected a colon and a blank after the number %llu",
                       (unsigned long long)*ret);
    names->file.at++;
    names_blanks(names);
    return 0;
}

/* ---- YAML: lists and maps ---- */

/* [ .. ] or { .. } */
static int names_in_brackets(struct names *names)
{
    bool is_map = names_at(names, 0) == '{';
    uint8_t close = is_map ? '}' : ']';
    uint64_t number = 0;
    int r = 0;

    names->file.at++;
    for (;; number++) {
        names_space(names);
        if (names_at(names, 0) == close)
            break;
        if (is_map)
            r = names_key(names, &number);
        if (r == 0)
            r = names_scalar(names, number, true);
        if (r < 0)
            return r;
        names_space(names);
        if (names_at(names, 0) == close)
            break;
        if (names_at(names, 0) != ',')
            return box_bad(&names->file, "names: expected a comma or %c after a name", close);
        names->file.at++;
    }
    names->file.at++;
    return names_line_end(names);
}

/* Go to the next line that is not empty nor a comment; its indentation. -1: there is none. */
static int names_indentation(struct names *names)
{
    while (names->file.at < names->file.end) {
        int n = 0;

        while (names_at(names, (size_t)n) == ' ' && n < BOX_NAME_MAX)
            n++;
        names->file.at += n;
        if (names_at(names, 0) != '#' && names_at(names, 0) != '\n' &&
            !(names_at(names, 0) == '\r' && names_at(names, 1) == '\n')) {
            names->file.at -= n;
            return n;
        }
        names_next_line(names);
    }
    return -1;
}

/* Does the line that has n spaces first go on with an item of a list? */
static bool names_item(const struct names *names, int n)
{
    return names_at(names, (size_t)n) == '-' && names_gap(names, (size_t)n + 1);
}

/* Lines, each with "- NAME" or "NUMBER: NAME". */
static int names_in_lines(struct names *names)
{
    int all = names_indentation(names), n = all, r = 0;
    bool is_list = all >= 0 && names_item(names, all);

    for (uint64_t number = 0; n >= 0 && n == all; number++) {
        bool is_item = names_item(names, n);

        if (n == 0 && !is_item) /* the next key; a tab indents nothing */
            break;
        names->file.at += n;
        if (is_item != is_list)
            return box_bad(&names->file, "names: expected a list or a map, got both");
        if (is_list)
            names->file.at++;
        names_blanks(names);
        if (!is_list)
            r = names_key(names, &number);
        if (r == 0)
            r = names_scalar(names, number, false);
        if (r == 0)
            r = names_line_end(names);
        if (r < 0)
            return r;
        n = names_indentation(names);
    }
    if (n > 0 || (n == 0 && (names_at(names, 0) == '\t' || (all > 0 && names_item(names, 0)))))
        return box_bad(&names->file, "names: expected an indentation of %d, got %d", all, n);
    return 0;
}

/* Is the line at the present place `names:`? Then the value follows. */
static bool names_at_key(struct names *names)
{
    static const char *const keys[] = {"names", "\"names\"", "'names'"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        size_t n = strlen(keys[i]);

        if ((size_t)(names->file.end - names->file.at) <= n ||
            memcmp(names->file.at, keys[i], n) != 0)
            continue;
        while (box_is_blank(names_at(names, n)))
            n++;
        if (names_at(names, n) == ':' && names_gap(names, n + 1)) {
            names->file.at += n + 1;
            return true;
        }
    }
    return false;
}

/* What follows the key. */
static int names_value(struct names *names)
{
    const uint8_t *first = names->file.at;
    uint8_t c;

    names_blanks(names);
    c = names_at(names, 0);
    if (c == '[' || c == '{')
        return names_in_brackets(names);
    if (names_is_end(c) || (c == '#' && names->file.at > first)) {
        names_next_line(names);
        return names_in_lines(names);
    }
    return box_bad(&names->file, "names: expected a list or a map of names");
}

static int names_of_yaml(struct names *names)
{
    bool found = false;
    int r = 0;

    while (r == 0 && names->file.at < names->file.end) {
        if (!names_at_key(names)) {
            if (names_at(names, 0) == '{' || names_at(names, 0) == '[')
                return box_bad(&names->file, "expected keys of YAML, each in a line of its own");
            names_next_line(names);
            continue;
        }
        if (found)
            return box_bad(&names->file, "names: expected one such key, got two");
        found = true;
        r = names_value(names);
    }
    return r;
}

static int names_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct box_class *)a)->number, y = ((const struct box_class *)b)->number;

    return x < y ? -1 : x > y;
}

int yolo_names(const void *bytes, size_t len, const char *name, struct box_classes *ret,
               struct diag *d)
{
    bool is_yaml = text_ends_with(name, ".yaml") || text_ends_with(name, ".yml");
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    struct names names = {.ret = &classes, .file = {.name = name, .d = d, .line = is_yaml}};
    int r;

    if (len > BOX_FILE_MAX)
        return diag_set(d, -EBADMSG, "%s: expected a file of at most %u bytes, got %zu", name,
                        BOX_FILE_MAX, len);
    if (!len)
        return 0;
    names.file.at = (const uint8_t *)bytes + utf8_mark(bytes, len);
    names.file.end = (const uint8_t *)bytes + len;
    r = is_yaml ? names_of_yaml(&names) : names_of_lines(&names);
    if (r < 0)
        return r;
    if (classes.n)
        qsort(classes.item, classes.n, sizeof(*classes.item), names_compare);
    for (size_t i = 1; i < classes.n; i++)
        if (classes.item[i].number == classes.item[i - 1].number)
            return diag_set(d, -EBADMSG, "%s: names: expected each number once, got %llu twice",
                            name, (unsigned long long)classes.item[i].number);
    *ret = classes;
    classes = (struct box_classes){0};
    return 0;
}
