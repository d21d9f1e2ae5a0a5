/* Magic numbers, from the formats' own descriptions: PNG and JPEG (RFC 2083, ITU T.81), Parquet and
 * Arrow (their format pages), HDF5 (its file format, III), zip (APPNOTE 4.3), npy (NEP 1), SQLite
 * (its file format, 1.3), LMDB (the magic of its meta page, after the page's head of 16 bytes),
 * PDF, pickle (PEP 307: PROTO is its first opcode). Text kinds have no magic; tests judge their
 * text. */
#include "format/foreign.h"
#include "format/registry.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/text.h"

struct kind {
    const char *name;
    const char *magic; /* at byte offset; NULL: none */
    size_t len;
    size_t offset;
    bool (*test)(const struct probed_file *file); /* NULL: the magic is enough */
};

/* Does the name of a zip file's first member end with suffix? */
static bool member_ends_with(const struct probed_file *file, const char *suffix)
{
    size_t len = file->len >= 30 ? file->head[26] | (size_t)file->head[27] << 8 : 0;
    size_t n = strlen(suffix);

    return len >= n && 30 + len <= file->len && !memcmp(file->head + 30 + len - n, suffix, n);
}

static bool is_torch(const struct probed_file *file)
{
    return member_ends_with(file, "/data.pkl") || member_ends_with(file, "/byteorder");
}

/* Checks the head of the page that has the magic: number 0, no pad, a meta page. As an IDX file it
 * would have a type code that does not exist. */
static bool is_lmdb(const struct probed_file *file)
{
    static const uint8_t head[12] = {[10] = 8};

    return !memcmp(file->head, head, sizeof(head));
}

static bool is_pickle(const struct probed_file *file)
{
    return file->len > 2 && file->head[1] >= 2 && file->head[1] <= 5;
}

/* Protocol 0 is text: MARK and LIST or DICT with PUT 0, or GLOBAL with a module and a name; and
 * STOP at its end. */
static bool is_text_pickle(const struct probed_file *file)
{
    static const char *const starts[] = {"(lp0\n", "(dp0\n", "(lp1\n", "(dp1\n", "(lp\n", "(dp\n"};
    const char *head = (const char *)file->head;

    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (file->len > strlen(starts[i]) && !memcmp(head, starts[i], strlen(starts[i])))
            return true;
    return (file->len > 12 && !memcmp(head, "ccopy_reg\n_", 12)) ||
           (file->len > 10 && (!memcmp(head, "cnumpy", 6) || !memcmp(head, "c__main__", 9)) &&
            memchr(head, '\n', file->len));
}

/* The text after the byte-order mark of UTF-8, white space and comments of HTML and XML. */
static const uint8_t *text_of(const struct probed_file *file, size_t *ret_len)
{
    size_t at = file->len >= 3 && !memcmp(file->head, "\xef\xbb\xbf", 3) ? 3 : 0;

    for (;;) {
        const uint8_t *end;

        while (at < file->len && isspace(file->head[at]))
            at++;
        end = file->len - at >= 7 && !memcmp(file->head + at, "<!--", 4)
                  ? memmem(file->head + at + 4, file->len - at - 4, "-->", 3)
                  : NULL;
        if (!end)
            break;
        at = (size_t)(end - file->head) + 3;
    }
    *ret_len = file->len - at;
    return file->head + at;
}

static bool begins(const struct probed_file *file, const char *word)
{
    size_t len, n = strlen(word);
    const uint8_t *text = text_of(file, &len);

    return len >= n && !strncasecmp((const char *)text, word, n);
}

static bool is_html(const struct probed_file *file)
{
    return begins(file, "<!doctype html") || begins(file, "<html") || begins(file, "<head");
}

static bool is_xml(const struct probed_file *file)
{
    return begins(file, "<?xml");
}

/* The first line of the text; NULL: it does not end in the head. */
static const uint8_t *line_end(const uint8_t *text, size_t len)
{
    return memchr(text, '\n', len);
}

static bool is_json(const struct probed_file *file)
{
    size_t len;
    const uint8_t *text = text_of(file, &len);

    if (len < 2 || (*text != '{' && *text != '['))
        return false;
    for (text++, len--; len && isspace(*text); text++, len--)
        ;
    return text_ends_with(file->name, ".json") || (len && strchr("\"{[}]", *text));
}

/* How often the separator is in the line, outside quotes. */
static size_t count_in(const uint8_t *line, size_t len, char separator)
{
    bool quoted = false;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        quoted ^= line[i] == '"';
        n += !quoted && line[i] == separator;
    }
    return n;
}

/* Have the first lines the same number of columns? Takes three lines, or a name that says so. */
static bool has_columns(const struct probed_file *file, char separator, const char *suffix)
{
    size_t len, columns = 0, lines = 0;
    const uint8_t *text = text_of(file, &len), *end;

    if (memchr(text, '\0', len))
        return false;
    for (; lines < 8 && (end = line_end(text, len)); lines++) {
        size_t n = count_in(text, (size_t)(end - text), separator);

        if (!n || (lines && n != columns))
            return false;
        columns = n;
        len -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return lines >= 3 || (lines && text_ends_with(file->name, suffix));
}

static bool is_csv(const struct probed_file *file)
{
    return has_columns(file, ',', ".csv") || has_columns(file, ';', ".csv");
}

static bool is_tsv(const struct probed_file *file)
{
    return has_columns(file, '\t', ".tsv");
}

#define MAGIC(bytes) (bytes), sizeof(bytes) - 1

/* The first kind that fits counts. */
static const struct kind kinds[] = {
    {"a JPEG picture", MAGIC("\xff\xd8\xff"), 0, NULL},
    {"a PNG picture", MAGIC("\x89PNG\r\n\x1a\n"), 0, NULL},
    {"a GIF picture", MAGIC("GIF8"), 0, NULL},
    {"a TIFF picture", MAGIC("II*\0"), 0, NULL},
    {"a TIFF picture", MAGIC("MM\0*"), 0, NULL},
    {"a WebP picture", MAGIC("WEBP"), 8, NULL},
    {"Parquet", MAGIC("PAR1"), 0, NULL},
    {"Arrow", MAGIC("ARROW1"), 0, NULL},
    {"Feather", MAGIC("FEA1"), 0, NULL},
    {"ORC", MAGIC("ORC"), 0, NULL},
    {"Avro", MAGIC("Obj\x01"), 0, NULL},
    {"HDF5", MAGIC("\x89HDF\r\n\x1a\n"), 0, NULL},
    {"MATLAB data", MAGIC("MATLAB 5.0 MAT-file"), 0, NULL},
    {"a PyTorch file", MAGIC("PK\x03\x04"), 0, is_torch},
    {"zip", MAGIC("PK\x03\x04"), 0, NULL},
    {"zip", MAGIC("PK\x05\x06"), 0, NULL},
    {"zstd", MAGIC("\x28\xb5\x2f\xfd"), 0, NULL},
    {"bzip2", MAGIC("BZh"), 0, NULL},
    {"7z", MAGIC("7z\xbc\xaf\x27\x1c"), 0, NULL},
    {"SQLite", MAGIC("SQLite format 3\0"), 0, NULL},
    {"LMDB", MAGIC("\xde\xc0\xef\xbe"), 16, is_lmdb},
    {"MXNet RecordIO", MAGIC("\x0a\x23\xd7\xce"), 0, NULL},
    {"PDF", MAGIC("%PDF-"), 0, NULL},
    {"a pickle of Python", MAGIC("\x80"), 0, is_pickle},
    {"a pickle of Python", NULL, 0, 0, is_text_pickle},
    {"a web page (HTML), as servers send it where one has to log in, or for an error", NULL, 0, 0,
     is_html},
    {"XML, as servers send it for an error, too", NULL, 0, 0, is_xml},
    {"JSON", NULL, 0, 0, is_json},
    {"CSV that is not of numbers", NULL, 0, 0, is_csv},
    {"TSV that is not of numbers", NULL, 0, 0, is_tsv},
};

bool foreign_is_mistaken(const struct probed_file *file)
{
    return file->len >= 20 && load_le32(file->head + 16) == UINT32_C(0xbeefc0de) && is_lmdb(file);
}

const char *foreign_kind(const struct probed_file *file)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct kind *k = &kinds[i];

        if (k->magic && (file->len < k->offset + k->len ||
                         memcmp(file->head + k->offset, k->magic, k->len) != 0))
            continue;
        if (!k->test || k->test(file))
            return k->name;
    }
    return NULL;
}

void foreign_add_readable(struct text *t)
{
    for (unsigned i = 0; i < n_formats; i++)
        text_add(t, "%s%s", !i ? "" : i + 1 == n_formats ? " and " : ", ", formats[i]->title);
}
