/* Magic numbers, from the formats' own descriptions: PNG and JPEG (RFC 2083, ITU T.81), Arrow
 * (its format page), HDF5 (its file format, III), zip (APPNOTE 4.3), npy (NEP 1), SQLite
 * (its file format, 1.3), LMDB (the magic of its meta page, after the page's head of 16 bytes),
 * PDF, pickle (PEP 307: PROTO is its first opcode), MP4 and HEIC (ISO/IEC 14496-12, ftyp), DICOM
 * (PS3.10, 7.1), Matroska (EBML, RFC 8794), RIFF, NIfTI-1 (its header, at byte 344), MPEG (ISO/IEC
 * 13818-1). Text kinds have no magic; tests judge their text. */
#include "format/foreign.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/text.h"

struct foreign_type {
    struct foreign is;
    const char *magic; /* at byte offset; NULL: none */
    size_t len;
    size_t offset;
    bool (*test)(const struct probed_file *file); /* NULL: the magic is enough */
    bool zeros; /* it begins with zeros, as an IDX file does, whose third byte is 8 or more */
};

/* Does the name of a zip file's first member end with suffix? */
static bool member_ends_with(const struct probed_file *file, const char *suffix)
{
    size_t len = file->len >= 30 ? file->head[26] | (size_t)file->head[27] << 8 : 0;
    size_t n = strlen(suffix);

    return len >= n && 30 + len <= file->len && !memcmp(file->head + 30 + len - n, suffix, n);
}

/* As datasets.save_to_disk() writes it: the magic alone may begin any numbers. */
static bool is_arrow_stream(const struct probed_file *file)
{
    return text_ends_with(file->name, ".arrow");
}

static bool is_torch(const struct probed_file *file)
{
    return member_ends_with(file, "/data.pkl") || member_ends_with(file, "/byteorder");
}

/* Checks the head of the page that has the magic: number 0, no pad, a meta page. */
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
static const uint8_t *foreign_text_of(const struct probed_file *file, size_t *ret_len)
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

static bool foreign_begins(const struct probed_file *file, const char *word)
{
    size_t len, n = strlen(word);
    const uint8_t *text = foreign_text_of(file, &len);

    return len >= n && !strncasecmp((const char *)text, word, n);
}

static bool is_html(const struct probed_file *file)
{
    return foreign_begins(file, "<!doctype html") || foreign_begins(file, "<html") ||
           foreign_begins(file, "<head");
}

static bool is_xml(const struct probed_file *file)
{
    return foreign_begins(file, "<?xml");
}

/* The first line of the text; NULL: it does not end in the head. */
static const uint8_t *foreign_line_end(const uint8_t *text, size_t len)
{
    return memchr(text, '\n', len);
}

static bool is_json(const struct probed_file *file)
{
    size_t len;
    const uint8_t *text = foreign_text_of(file, &len);

    if (len < 2 || (*text != '{' && *text != '['))
        return false;
    for (text++, len--; len && isspace(*text); text++, len--)
        ;
    return text_ends_with(file->name, ".json") || (len && strchr("\"{[}]", *text));
}

static bool is_long_json(const struct probed_file *file)
{
    return !file->whole && is_json(file) && !memchr(file->head, '\n', file->len);
}

/* Its head is not that of an archive. */
static bool is_named_zip(const struct probed_file *file)
{
    return text_ends_with(file->name, ".zip") && file->len && *file->head; /* 0: never written */
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
static bool foreign_has_columns(const struct probed_file *file, char separator, const char *suffix)
{
    size_t len, columns = 0, lines = 0;
    const uint8_t *text = foreign_text_of(file, &len), *end;

    if (memchr(text, '\0', len))
        return false;
    for (; lines < 8 && (end = foreign_line_end(text, len)); lines++) {
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
    return foreign_has_columns(file, ',', ".csv") || foreign_has_columns(file, ';', ".csv");
}

static bool is_tsv(const struct probed_file *file)
{
    return foreign_has_columns(file, '\t', ".tsv");
}

/* Has the brand of an ISO media file, "ftyp" at byte 4, one of these starts? */
static bool has_brand(const struct probed_file *file, const char *const *brands)
{
    while (file->len >= 12 && *brands && memcmp(file->head + 8, *brands, strlen(*brands)) != 0)
        brands++;
    return file->len >= 12 && *brands;
}

static bool is_heic(const struct probed_file *file)
{
    static const char *const brands[] = {"heic", "heix", "heim", "heis", "hevc",
                                         "mif1", "msf1", "avif", "avis", NULL};

    return has_brand(file, brands);
}

static bool is_audio_mp4(const struct probed_file *file)
{
    static const char *const brands[] = {"M4A", "M4B", NULL};

    return has_brand(file, brands);
}

static bool is_mpeg(const struct probed_file *file)
{
    return file->len > 3 && (file->head[3] == 0xba || file->head[3] == 0xb3);
}

/* The magic alone is two letters that a text may begin with. */
static bool is_bitmap(const struct probed_file *file)
{
    return file->len >= 18 && !load_le32(file->head + 6) && load_le32(file->head + 14) <= 124;
}

/* Words with numbers, from 0: words.txt, phones.txt. */
static bool is_symbols(const struct probed_file *file)
{
    return foreign_begins(file, "<eps> 0\n") || foreign_begins(file, "<eps>\t0\n");
}

/* As MovieLens writes its ratings.dat. */
static bool is_double_colon(const struct probed_file *file)
{
    size_t len, columns = 0;
    const uint8_t *text = foreign_text_of(file, &len), *end;

    for (unsigned lines = 0; lines < 2; lines++) {
        size_t n = 0;

        end = foreign_line_end(text, len);
        for (const uint8_t *p = text; end && (p = memmem(p, (size_t)(end - p), "::", 2)); p += 2)
            n++;
        if (n < 2 || (lines && n != columns))
            return false;
        columns = n;
        len -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return true;
}

#define MAGIC(bytes) (bytes), sizeof(bytes) - 1
#define IS_PICTURE(name)                                                                           \
    {                                                                                              \
        name, "", true                                                                             \
    }
#define ARRAYS "Save its arrays with numpy.save()"
#define ROWS   "Write its rows as Parquet or JSON lines, or its columns with numpy.save()"
#define TABLE  "Write its columns as numbers, or its rows as JSON lines or Parquet"
#define VIDEO  "Store its frames as pictures in class folders, or the whole files in tar shards"
#define AUDIO                                                                                      \
    "Audio is read in class folders, two or more with nothing else in them, in tar shards, and "   \
    "through an scp file that names it (wav.scp)"
#define UNPACK  "Unpack it"
#define CONVERT "Convert it to JPEG or PNG, or save its pixels with numpy.save()"
#define TEXT    "CSV, JSON lines and libsvm text are read"

/* The first kind that fits counts. */
static const struct foreign_type foreign_types[] = {
    {IS_PICTURE("a JPEG picture"), MAGIC("\xff\xd8\xff"), .offset = 0},
    {IS_PICTURE("a PNG picture"), MAGIC("\x89PNG\r\n\x1a\n"), .offset = 0},
    {IS_PICTURE("a GIF picture"), MAGIC("GIF8"), .offset = 0},
    {IS_PICTURE("a TIFF picture"), MAGIC("II*\0"), .offset = 0},
    {IS_PICTURE("a TIFF picture"), MAGIC("MM\0*"), .offset = 0},
    {IS_PICTURE("a WebP picture"), MAGIC("WEBP"), .offset = 8},
    {IS_PICTURE("a BMP picture"), MAGIC("BM"), .test = is_bitmap},
    {{"a HEIC or AVIF picture", CONVERT, false}, MAGIC("ftyp"), 4, is_heic, true},
    {{"a DICOM picture", CONVERT, false}, MAGIC("DICM"), .offset = 128, .zeros = true},
    {{"a NIfTI volume", ARRAYS, false}, MAGIC("n+1\0"), .offset = 344},
    {{"MP4 audio", AUDIO, false}, MAGIC("ftyp"), 4, is_audio_mp4, true},
    {{"MP4 or QuickTime video", VIDEO, false}, MAGIC("ftyp"), .offset = 4, .zeros = true},
    {{"Matroska or WebM video", VIDEO, false}, MAGIC("\x1a\x45\xdf\xa3"), .offset = 0},
    {{"AVI video", VIDEO, false}, MAGIC("AVI "), .offset = 8},
    {{"MPEG video", VIDEO, false}, MAGIC("\0\0\1"), 0, is_mpeg, true},
    {{"WAVE audio", AUDIO, false}, MAGIC("WAVE"), .offset = 8},
    {{"FLAC audio", AUDIO, false}, MAGIC("fLaC"), .offset = 0},
    {{"Ogg audio or video", AUDIO, false}, MAGIC("OggS"), .offset = 0},
    {{"MP3 audio", AUDIO, false}, MAGIC("ID3"), .offset = 0},
    {{"Arrow", ROWS, false}, MAGIC("ARROW1"), .offset = 0},
    {{"Arrow", "load_from_disk(FOLDER).to_parquet(FILE) of datasets writes Parquet", false},
     MAGIC("\xff\xff\xff\xff"),
     .test = is_arrow_stream},
    {{"Feather", ROWS, false}, MAGIC("FEA1"), .offset = 0},
    {{"ORC", ROWS, false}, MAGIC("ORC"), .offset = 0},
    {{"Avro", ROWS, false}, MAGIC("Obj\x01"), .offset = 0},
    {{"HDF5", ARRAYS, false}, MAGIC("\x89HDF\r\n\x1a\n"), .offset = 0},
    {{"HDF5", ARRAYS, false}, MAGIC("\x89HDF\r\n\x1a\n"), .offset = 512, .zeros = true},
    {{"MATLAB data", ARRAYS, false}, MAGIC("MATLAB 5.0 MAT-file"), .offset = 0},
    {{"NetCDF", ARRAYS, false}, MAGIC("CDF\1"), .offset = 0},
    {{"NetCDF", ARRAYS, false}, MAGIC("CDF\2"), .offset = 0},
    {{"a PyTorch file", ARRAYS, false}, MAGIC("PK\x03\x04"), .test = is_torch},
    {{"LZ4", UNPACK, false}, MAGIC("\x04\x22\x4d\x18"), .offset = 0},
    {{"lzip", UNPACK, false}, MAGIC("LZIP"), .offset = 0},
    {{"compress (.Z)", UNPACK, false}, MAGIC("\x1f\x9d"), .offset = 0},
    {{"7z", UNPACK, false}, MAGIC("7z\xbc\xaf\x27\x1c"), .offset = 0},
    {{"RAR", UNPACK, false}, MAGIC("Rar!\x1a\7"), .offset = 0},
    {{"GGUF", ARRAYS, false}, MAGIC("GGUF"), .offset = 0},
    {{"SQLite", ROWS, false}, MAGIC("SQLite format 3\0"), .offset = 0},
    {{"LMDB", ROWS, false}, MAGIC("\xde\xc0\xef\xbe"), 16, is_lmdb, true},
    {{"MXNet RecordIO", "Write its records as tar shards", false},
     MAGIC("\x0a\x23\xd7\xce"),
     .offset = 0},
    {{"an OpenFst file", "Kaldi's programs read it", false},
     MAGIC("\xd6\xfd\xb2\x7e"),
     .offset = 0},
    {{"a Kaldi tree", "Kaldi's programs read it", false}, MAGIC("ContextDependency "), .offset = 0},
    {{"a Kaldi tree", "Kaldi's programs read it", false},
     MAGIC("\0BContextDependency "),
     .offset = 0},
    {{"a symbol table of Kaldi (words with numbers)", "Kaldi's programs read it", false},
     NULL,
     .test = is_symbols},
    {{"PDF", "Extract its text or pictures", false}, MAGIC("%PDF-"), .offset = 0},
    {{"a pickle of Python", ARRAYS, false}, MAGIC("\x80"), .test = is_pickle},
    {{"a pickle of Python", ARRAYS, false}, NULL, .test = is_text_pickle},
    {{"a web page (HTML), as servers send it where one has to log in, or for an error",
      "Open its URL in a browser", false},
     NULL,
     .test = is_html},
    {{"XML, as servers also send it for an error", TEXT, false}, NULL, .test = is_xml},
    {{"JSON whose first line is longer than what is looked at",
      "If each line is an object: -o format=jsonl", false},
     NULL,
     .test = is_long_json},
    {{"JSON", "Write an object per line (JSON lines)", false}, NULL, .test = is_json},
    {{"a table with `::` between its cells", "Make CSV of it: sed 's/::/,/g' FILE >FILE.csv",
      false},
     NULL,
     .test = is_double_colon},
    {{"CSV that is not of numbers", TABLE, false}, NULL, .test = is_csv},
    {{"TSV that is not of numbers", TABLE, false}, NULL, .test = is_tsv},
    {{"no zip archive, or one with bytes before it (a program that unpacks itself)", UNPACK, false},
     NULL,
     .test = is_named_zip},
};

static const struct foreign_type *foreign_find_type(const struct probed_file *file)
{
    for (size_t i = 0; i < ARRAY_LEN(foreign_types); i++) {
        const struct foreign_type *k = &foreign_types[i];

        if (k->magic && (file->len < k->offset + k->len ||
                         memcmp(file->head + k->offset, k->magic, k->len) != 0))
            continue;
        if (!k->test || k->test(file))
            return k;
    }
    return NULL;
}

bool foreign_is_mistaken(const struct probed_file *file)
{
    const struct foreign_type *k = foreign_find_type(file);

    return k && k->zeros && !load_le16(file->head) && file->head[2] < 8;
}

const struct foreign *foreign_find(const struct probed_file *file)
{
    const struct foreign_type *k = foreign_find_type(file);

    return k ? &k->is : NULL;
}
