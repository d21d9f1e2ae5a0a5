/* datatrove's <name>.ds, tokens without a header, and what lies next to it:
 *
 *     <name>.ds.index    u64 the end of each document, in tokens
 *     <name>.ds.metadata three lines: "<tokenizer>|<bytes of a token>", tokens, their number for
 *                        people
 *     <name>.ds.loss     a byte for each token: does it count in the loss?
 *
 * Files without a header that nothing describes are read here as well: TOKENS_RAW. */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/number.h"
#include "format/tokens/stream.h"

#define METADATA_MOST 4096

struct metadata {
    bool known; /* it says how wide a token is */
    unsigned width;
    bool counts; /* and how many there are */
    uint64_t tokens;
};

static int read_metadata(const struct blob *blob, struct metadata *ret, struct diag *d)
{
    char text[METADATA_MOST + 1];
    size_t len = (size_t)min_u64(blob->size, METADATA_MOST), line, n;
    const char *bar = NULL, *second;
    uint64_t width = 0;
    int r = blob_read(READ_WAITS, blob, text, len, 0, d);

    if (r < 0)
        return r;
    text[len] = '\0';
    line = strcspn(text, "\n");
    for (const char *p = text; p < text + line; p++)
        bar = *p == '|' ? p : bar;
    if (!bar)
        return 0;
    n = (size_t)(text + line - bar) - 1;
    if (number_parse(bar + 1, n, 8, &width) != n || (width != 2 && width != 4))
        return blob_bad(blob, d,
                        "line 1: expected 2 or 4 bytes of a token after the last |, got '%.*s'",
                        (int)min_u64(n, 32), bar + 1);
    ret->known = true;
    ret->width = (unsigned)width;
    second = text[line] ? text + line + 1 : text + line;
    n = strcspn(second, "\n");
    ret->counts = n && number_parse(second, n, UINT64_MAX / 8, &ret->tokens) == n;
    return 0;
}

/* The last number of the index: the end of the last document. */
static int last_end(const struct blob *index, uint64_t *ret, struct diag *d)
{
    uint8_t bytes[8] = {0};
    int r = index->size >= 8 ? blob_read(READ_WAITS, index, bytes, 8, index->size - 8, d) : 0;

    *ret = load_le64(bytes);
    return r;
}

static int find_width(const struct blob *tokens, const struct datatrove_files *beside,
                      const struct format_options *options, enum dtype *ret, struct diag *d)
{
    struct metadata about = {0};
    uint64_t end = 0;
    int r = beside->metadata ? read_metadata(beside->metadata, &about, d) : 0;

    *ret = about.width == 4 ? DTYPE_U4 : DTYPE_U2;
    if (r == 0 && about.counts && about.known &&
        (tokens->size % about.width || about.tokens != tokens->size / about.width))
        return blob_bad(
            beside->metadata, d,
            "line 2: expected the number of tokens of %u bytes in %s, %llu%s, got %llu",
            about.width, blob_name(tokens), (unsigned long long)(tokens->size / about.width),
            tokens->size % about.width ? " and a part" : "", (unsigned long long)about.tokens);
    if (r < 0 || about.known)
        return r;
    if (options->tokens_given) {
        *ret = options->tokens;
        return 0;
    }
    if (beside->index)
        r = last_end(beside->index, &end, d);
    if (r < 0)
        return r;
    if (!end || (tokens->size / 2 != end && tokens->size / 4 != end))
        return blob_bad(tokens, d,
                        "how wide is a token? expected %s.metadata that says it, or -o "
                        "token_dtype=uint16 or uint32",
                        blob_name(tokens));
    *ret = tokens->size / 2 == end ? DTYPE_U2 : DTYPE_U4;
    return 0;
}

/* Files that are no tokens, whatever the user says of *.bin files. */
static int tokens_datatrove_check_start(const struct blob *blob, struct diag *d)
{
    static const struct {
        const char *start, *what;
    } starts[] = {{"\x7f"
                   "ELF",
                   "a program (ELF)"},
                  {"PK\x03\x04", "zip"},
                  {"\x28\xb5\x2f\xfd", "zstd"},
                  {"\x93NUMPY", "npy (NumPy)"}};
    size_t len = (size_t)min_u64(8, blob->size);
    uint8_t head[8] = {0};
    int r = blob_read(READ_WAITS, blob, head, len, 0, d);

    for (size_t i = 0; i < ARRAY_LEN(starts) && r == 0; i++)
        if (!memcmp(head, starts[i].start, strlen(starts[i].start)))
            return blob_bad(blob, d,
                            "byte 0: expected tokens, got %s; with raw: in front, as in -o "
                            "token_dtype=raw:uint16, it is read as tokens",
                            starts[i].what);
    return r;
}

int stream_raw(struct source_file *file, const struct format_setup *setup,
               struct token_stream **ret, struct diag *d)
{
    const struct format_options *options = &setup->options;
    int r = options->tokens_raw ? 0 : tokens_datatrove_check_start(file->blob, d);

    return r < 0
               ? r
               : stream_fixed(TOKENS_RAW, TAKE_PTR(file->blob), options->tokens, 0, setup, ret, d);
}

int stream_datatrove(struct source_file *file, struct datatrove_files *beside,
                     const struct format_setup *setup, struct token_stream **ret, struct diag *d)
{
    AUTO_STREAM struct token_stream *s = NULL;
    enum dtype dtype = DTYPE_U2;
    int r = find_width(file->blob, beside, &setup->options, &dtype, d);

    if (r == 0)
        r = stream_fixed(TOKENS_DATATROVE, TAKE_PTR(file->blob), dtype, 0, setup, &s, d);
    if (r < 0)
        return r;
    s->index = TAKE_PTR(beside->index);
    s->loss = TAKE_PTR(beside->loss);
    if (s->loss && s->loss->size != s->tokens)
        return blob_bad(s->loss, d, "expected a byte for each of %llu tokens, got %llu",
                        (unsigned long long)s->tokens, (unsigned long long)s->loss->size);
    if (s->index && s->index->size % 8)
        return blob_bad(s->index, d,
                        "expected a multiple of 8 bytes, the end of a document, got %llu",
                        (unsigned long long)s->index->size);
    if (s->index)
        s->documents = (struct documents){.table = DOCUMENTS_ENDS, .n = s->index->size / 8};
    *ret = TAKE_PTR(s);
    return 0;
}

int datatrove_prepare(struct token_stream *s, struct diag *d)
{
    uint64_t end;
    int r;

    if (!s->index)
        return 1;
    if (s->state == STREAM_DOCUMENTS)
        return stream_check_documents(s, &s->checked, d);
    r = last_end(s->index, &end, d);
    if (r < 0)
        return r;
    if (end > s->tokens)
        return blob_bad(s->index, d, "byte %llu: expected an end of at most %llu tokens, got %llu",
                        (unsigned long long)(s->index->size - 8), (unsigned long long)s->tokens,
                        (unsigned long long)end);
    s->documents.n = s->index->size / 8 + (end < s->tokens);
    if (end < s->tokens)
        text_add(&s->note, "%s: %llu tokens after the last end are one more document\n",
                 blob_name(s->index), (unsigned long long)(s->tokens - end));
    s->checked = s->index->size <= STREAM_INDEX_CHECKED ? 0 : s->documents.n;
    s->state = STREAM_DOCUMENTS;
    return 0;
}
