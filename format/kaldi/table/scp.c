/* How Kaldi interprets a line of an scp file and its range. Kaldi checks ranges only when it reads
 * an object; this parser refuses a line with a bad range at once. */
#include "format/kaldi/table/scp.h"

#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "format/kaldi/object/window.h"

struct piece {
    const char *at;
    size_t len;
};

#define WHITE_SPACE " \t\n\v\f\r"

static bool piece_is(struct piece p, const char *text)
{
    return p.len == strlen(text) && !memcmp(p.at, text, p.len);
}

static bool piece_has(struct piece p, char c)
{
    return p.len && memchr(p.at, c, p.len);
}

static struct piece kaldi_scp_trim(struct piece p)
{
    for (; p.len && kaldi_is_blank((uint8_t)p.at[0]); p.at++)
        p.len--;
    while (p.len && kaldi_is_blank((uint8_t)p.at[p.len - 1]))
        p.len--;
    return p;
}

/* Split p at the first byte that is one of ends. *ret gets the text before that byte, *p the text
 * after it. False: no such byte, and *ret is all. */
static bool kaldi_scp_split(struct piece *p, const char *ends, struct piece *ret)
{
    struct piece all = *p;
    size_t n = 0;

    while (n < all.len && !memchr(ends, all.at[n], strlen(ends)))
        n++;
    *ret = (struct piece){all.at, n};
    *p = n < all.len ? (struct piece){all.at + n + 1, all.len - n - 1}
                     : (struct piece){all.at + n, 0};
    return n < all.len;
}

/* Is it a number up to max? */
static bool piece_number(struct piece p, uint64_t max, uint64_t *ret)
{
    uint64_t v;

    if (!p.len || digits_parse(p.at, p.len, max, &v) != p.len)
        return false;
    *ret = v;
    return true;
}

/* ---- ranges ---- */

/* Parse an int32 as strtoll() does, after white space and a sign; it must not be negative. */
static bool range_number_parse(struct piece p, uint64_t *ret)
{
    bool negative;

    for (; p.len && kaldi_is_blank((uint8_t)p.at[0]); p.at++)
        p.len--;
    negative = p.len && p.at[0] == '-';
    if (p.len && (p.at[0] == '+' || negative))
        p = (struct piece){p.at + 1, p.len - 1};
    return piece_number(p, negative ? 0 : INT32_MAX, ret);
}

/* ":" or "first:last". */
static const char *range_part_parse(struct piece part, uint64_t ret[static 2])
{
    struct piece first;
    uint64_t v[2] = {0, UINT64_MAX};

    if (!piece_is(part, ":")) {
        if (!kaldi_scp_split(&part, ":", &first))
            return "expected two numbers with ':' between in a range, got no ':'";
        if (!range_number_parse(first, &v[0]) || !range_number_parse(part, &v[1]))
            return "expected numbers from 0 to 2147483647 on both sides of ':' in a range, got "
                   "something else";
        if (v[0] > v[1])
            return "expected a range that does not end before it starts, got one that does";
    }
    memcpy(ret, v, sizeof(v));
    return NULL;
}

static const char *kaldi_scp_range_parse(struct piece text, struct scp_range *ret)
{
    struct scp_range range = {.is_given = true, .column = {0, UINT64_MAX}};
    struct piece rows;
    const char *wrong;

    if (!text.len)
        return "expected a range between '[' and ']', got nothing";
    range.has_columns = kaldi_scp_split(&text, ",", &rows);
    if (range.has_columns && piece_has(text, ','))
        return "expected rows, or rows and columns, in a range, got more than one ','";
    wrong = range_part_parse(rows, range.row);
    if (!wrong && range.has_columns)
        wrong = range_part_parse(text, range.column);
    if (!wrong)
        *ret = range;
    return wrong;
}

/* Cut the range off the end of the place. */
static const char *kaldi_scp_take_range(struct piece *place, struct scp_range *ret)
{
    const char *bracket;
    struct piece name, text;

    *ret = (struct scp_range){.row = {0, UINT64_MAX}, .column = {0, UINT64_MAX}};
    if (place->at[place->len - 1] != ']')
        return NULL;
    bracket = memchr(place->at, '[', place->len);
    if (!bracket)
        return "expected '[' before the ']' at the end of the line, got none";
    name = (struct piece){place->at, (size_t)(bracket - place->at)};
    text = (struct piece){bracket + 1, place->len - name.len - 2};
    if (piece_has(text, '['))
        return "expected one '[' in a line that ends with ']', got more";
    *place = name;
    return kaldi_scp_range_parse(text, ret);
}

/* ---- places ---- */

static const char *const reader_options[] = {"b", "t",  "o",  "no",  "p",  "np",
                                             "s", "ns", "cs", "ncs", "bg", NULL};
static const char *const writer_options[] = {"b", "t", "f", "nf", "p", NULL};

static bool kaldi_scp_is_one_of(struct piece p, const char *const *text)
{
    while (*text && !piece_is(p, *text))
        text++;
    return *text;
}

/* Does the place look like "b,ark:..." or "ark,scp:...,...", which Kaldi takes for a table instead
 * of a file? Like Kaldi, tests this only for the most common beginnings. */
static bool is_specifier(struct piece place)
{
    unsigned arks = 0, scps = 0;
    bool reader = true, writer = true, more;
    struct piece options, option;

    if (place.at[0] != 'a' && place.at[0] != 's')
        return false;
    if (!kaldi_scp_split(&place, ":", &options))
        return false;
    do {
        more = kaldi_scp_split(&options, ", ", &option);
        if (piece_is(option, "ark")) {
            writer = writer && !scps;
            arks++;
            continue;
        }
        if (piece_is(option, "scp")) {
            scps++;
            continue;
        }
        reader = reader && kaldi_scp_is_one_of(option, reader_options);
        writer = writer && kaldi_scp_is_one_of(option, writer_options);
    } while (more);
    if (arks > 1 || scps > 1 || arks + scps == 0)
        return false;
    return arks + scps == 1 ? reader || writer : writer && piece_has(place, ',');
}

/* The length of path in "path:digits"; SIZE_MAX: place has another form. */
static size_t path_of_offset(struct piece place)
{
    size_t at = place.len;

    while (at && kaldi_is_digit((uint8_t)place.at[at - 1]))
        at--;
    return at && at < place.len && place.at[at - 1] == ':' ? at - 1 : SIZE_MAX;
}

/* Parse a place that is neither standard input nor a command. */
static const char *file_parse(struct piece place, struct scp_line *ret)
{
    size_t path_len = path_of_offset(place);

    if (kaldi_is_blank((uint8_t)place.at[place.len - 1]))
        return "expected the range right after the path, got white space";
    if (is_specifier(place))
        return "expected a file, got a specifier of a table such as \"ark:\" or \"scp:\"";
    if (path_len == 0)
        return "expected a path before the ':' of an offset, got none";
    if (path_len == SIZE_MAX) {
        if (piece_has(place, '|'))
            return "expected '|' at the end of a command and nowhere in a path, got it inside";
        ret->place = SCP_FILE;
        ret->path_len = place.len;
        return NULL;
    }
    if (!piece_number((struct piece){place.at + path_len + 1, place.len - path_len - 1}, INT64_MAX,
                      &ret->offset))
        return "expected an offset of up to 9223372036854775807, got a larger one";
    ret->place = SCP_OFFSET;
    ret->path_len = path_len;
    return NULL;
}

static const char *place_parse(struct piece place, struct scp_line *ret)
{
    ret->path = place.at;
    if (!place.len)
        return "expected a path before the range, got none";
    if (piece_has(place, '\0'))
        return "expected a path or a command, got a NUL byte in it";
    if (piece_is(place, "-"))
        return "expected a file or a command, got '-', which is standard input";
    if (place.at[0] == '|')
        return "expected a file, or a command with '|' after it, got '|' before it";
    if (place.at[place.len - 1] != '|')
        return file_parse(place, ret);
    ret->place = SCP_COMMAND;
    ret->path_len = place.len - 1;
    return NULL;
}

const char scp_long_key[] = "expected a key of at most 1024 bytes";

const char *scp_line_parse(const char *line, size_t len, struct scp_line *ret)
{
    size_t mark = utf8_mark(line, len);
    struct piece place = kaldi_scp_trim((struct piece){line + mark, len - mark}), key;
    struct scp_line parsed = {.text = place.at, .text_len = place.len};
    const char *wrong;

    *ret = parsed;
    if (!place.len)
        return "expected a key and where its object is, got a blank line";
    kaldi_scp_split(&place, WHITE_SPACE, &key);
    place = kaldi_scp_trim(place);
    parsed.key = ret->key = key.at;
    parsed.key_len = ret->key_len = key.len;
    if (!place.len)
        return "expected a path or a command after the key, got nothing";
    parsed.has_value = ret->has_value = true;
    wrong = kaldi_scp_take_range(&place, &parsed.range);
    if (!wrong)
        wrong = place_parse(place, &parsed);
    if (!wrong)
        *ret = parsed;
    return wrong;
}

/* ---- what a range selects ---- */

/* The last one may be up to `behind` past the end; the range is then cut. */
static const char *range_select(bool is_all, const uint64_t range[static 2], uint64_t n,
                                uint64_t behind, uint64_t *ret_first, uint64_t *ret_n)
{
    uint64_t first = is_all ? 0 : range[0], last = is_all ? UINT64_MAX : range[1];

    if (!n && !is_all)
        return "expected a range of an object with rows and columns, got an empty one";
    if (last != UINT64_MAX && last >= n && last - n >= behind)
        return "expected a range within the object, got one that ends after it";
    if (first >= n && !is_all)
        return "expected a range within the object, got one that starts after it";
    *ret_first = first;
    *ret_n = last < n ? last - first + 1 : n - first;
    return NULL;
}

const char *scp_range_rows(const struct scp_range *range, uint64_t rows, uint64_t *ret_first,
                           uint64_t *ret_n)
{
    return range_select(!range->is_given, range->row, rows, 3, ret_first, ret_n);
}

const char *scp_range_columns(const struct scp_range *range, uint64_t columns, uint64_t *ret_first,
                              uint64_t *ret_n)
{
    return range_select(!range->has_columns, range->column, columns, 0, ret_first, ret_n);
}
