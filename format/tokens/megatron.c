/* Megatron-LM's .idx next to its .bin: little-endian, nothing aligned.
 *
 *     0        "MMIDIDX" 00 00
 *     9        u64 version, 1
 *     17       u8 code of the type
 *     18       u64 S, sequences
 *     26       u64 D, documents + 1
 *     34       i32 [S] lengths in tokens
 *     34 + 4S  i64 [S] byte of each sequence in .bin
 *     34 + 12S i64 [D] the sequence that each document begins with, and at last S
 *     then     i8 [S] modes, in files of multimodal data only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/tokens/stream.h"

#define HEAD    34
#define VERSION 1
#define CHUNK   8192 /* sequences of a piece of the pass, and */
#define PIECES  16   /* pieces of a step */

static const uint8_t magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};

bool megatron_starts(const uint8_t *head, size_t len)
{
    return len >= sizeof(magic) && !memcmp(head, magic, sizeof(magic));
}

static int find_dtype(const struct blob *index, unsigned code, enum dtype *ret, struct diag *d)
{
    static const struct {
        unsigned code;
        enum dtype dtype;
    } codes[] = {{1, DTYPE_U1}, {2, DTYPE_I1}, {3, DTYPE_I2},
                 {4, DTYPE_I4}, {5, DTYPE_I8}, {8, DTYPE_U2}};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == code) {
            *ret = codes[i].dtype;
            return 0;
        }
    return blob_bad(index, d, "byte 17: expected a type of tokens (1, 2, 3, 4, 5 or 8), got %u%s",
                    code,
                    code == 6 || code == 7 ? ": floating point numbers, whose width differs from "
                                             "program to program"
                                           : "");
}

/* Numbers that say where everything is: all of it inside the file. */
static int check_sizes(const struct blob *index, uint64_t sequences, uint64_t numbers,
                       struct diag *d)
{
    uint64_t left = index->size - HEAD, bytes = 0, modes = 0;

    if (sequences <= left / 12 && numbers <= left / 8) {
        bytes = HEAD + 12 * sequences + 8 * numbers;
        modes = bytes + sequences;
    }
    if (!bytes)
        return blob_bad(index, d,
                        "byte 18: expected as many sequences and document numbers as %llu bytes "
                        "hold, got %llu and %llu",
                        (unsigned long long)index->size, (unsigned long long)sequences,
                        (unsigned long long)numbers);
    if (index->size != bytes && index->size != modes)
        return blob_bad(index, d,
                        "byte 18: %llu sequences and %llu document numbers: expected a file of "
                        "%llu bytes, or %llu with modes, got %llu",
                        (unsigned long long)sequences, (unsigned long long)numbers,
                        (unsigned long long)bytes, (unsigned long long)modes,
                        (unsigned long long)index->size);
    if (!numbers)
        return blob_bad(index, d, "byte 26: expected at least 1 document number, got 0");
    return 0;
}

int stream_megatron(struct source_file *file, struct blob *bin, const struct format_setup *setup,
                    struct token_stream **ret, struct diag *d)
{
    AUTO_BLOB struct blob *index = TAKE_PTR(file->blob), *tokens = bin;
    bool by_sequence = setup->options.sequences;
    enum dtype dtype = DTYPE_U1;
    uint64_t sequences, numbers;
    struct token_stream *s;
    uint8_t head[HEAD];
    int r;

    if (index->size < HEAD)
        return blob_bad(index, d, "expected a header of %d bytes, got %llu bytes", HEAD,
                        (unsigned long long)index->size);
    r = blob_read(READ_WAITS, index, head, HEAD, 0, d);
    if (r < 0)
        return r;
    if (load_le64(head + 9) != VERSION)
        return blob_bad(index, d, "byte 9: expected version %d, got %llu", VERSION,
                        (unsigned long long)load_le64(head + 9));
    r = find_dtype(index, head[17], &dtype, d);
    sequences = load_le64(head + 18);
    numbers = load_le64(head + 26);
    if (r == 0)
        r = check_sizes(index, sequences, numbers, d);
    if (r < 0)
        return r;
    s = stream_new(TOKENS_MEGATRON, TAKE_PTR(tokens), dtype, setup);
    if (!s)
        return -ENOMEM;
    s->index = TAKE_PTR(index);
    if (s->index->size > HEAD + 12 * sequences + 8 * numbers)
        s->modes = HEAD + 12 * sequences + 8 * numbers;
    s->documents = (struct documents){.table = DOCUMENTS_SEQUENCES,
                                      .n = by_sequence ? sequences : numbers - 1,
                                      .sequences = sequences,
                                      .pointers = HEAD + 4 * sequences,
                                      .numbers = HEAD + 12 * sequences,
                                      .n_numbers = numbers,
                                      .by_sequence = by_sequence};
    *ret = s;
    return 0;
}

/* ---- the pass over all sequences ---- */

struct pass {
    const struct token_stream *s;
    uint64_t next;   /* byte after the sequence before, */
    uint64_t tokens; /* and tokens up to there */
    bool in_order;   /* so far each begins where the one before ends */
    uint64_t *before;
};

static int check_sequence(const struct token_stream *s, uint64_t i, int64_t pointer, int32_t len,
                          struct diag *d)
{
    uint64_t bytes;

    if (len < 0)
        return blob_bad(s->index, d,
                        "byte %llu: sequence %llu: expected a length of at least 0, got %d",
                        (unsigned long long)(HEAD + 4 * i), (unsigned long long)i, len);
    bytes = (uint64_t)len * s->width;
    if (pointer < 0 || (uint64_t)pointer > s->base.blob->size ||
        bytes > s->base.blob->size - (uint64_t)pointer)
        return blob_bad(s->index, d,
                        "byte %llu: sequence %llu of %llu bytes: expected it inside the %llu bytes "
                        "of %s, got it at byte %lld",
                        (unsigned long long)(s->documents.pointers + 8 * i), (unsigned long long)i,
                        (unsigned long long)bytes, (unsigned long long)s->base.blob->size,
                        blob_name(s->base.blob), (long long)pointer);
    return 0;
}

/* Sequences from first on, CHUNK at most. */
static int pass_piece(struct pass *pass, uint64_t first, size_t n, struct diag *d)
{
    const struct documents *docs = &pass->s->documents;
    AUTO_FREE uint8_t *bytes = malloc(12 * n);
    const uint8_t *pointers = bytes + 4 * n;
    int r;

    if (!bytes)
        return -ENOMEM;
    r = blob_read(READ_WAITS, pass->s->index, bytes, 4 * n, HEAD + 4 * first, d);
    if (r == 0)
        r = blob_read(READ_WAITS, pass->s->index, bytes + 4 * n, 8 * n, docs->pointers + 8 * first,
                      d);
    for (size_t i = 0; i < n && r == 0; i++) {
        int64_t pointer = (int64_t)load_le64(pointers + 8 * i);
        int32_t len = (int32_t)load_le32(bytes + 4 * i);

        r = check_sequence(pass->s, first + i, pointer, len, d);
        if (r < 0)
            break;
        if (first + i && (uint64_t)pointer != pass->next)
            pass->in_order = false;
        if (pass->before)
            pass->before[first + i] = pass->tokens;
        pass->tokens += (uint64_t)len;
        pass->next = (uint64_t)pointer + (uint64_t)len * pass->s->width;
    }
    return r;
}

/* What stands where the arrays meet: enough if the sequences are in order. Two reads, for the file
 * may be far. */
struct ends {
    uint64_t first_number;
    int64_t first, last; /* bytes of sequences */
    int32_t last_len;
};

static int read_ends(const struct token_stream *s, struct ends *ret, struct diag *d)
{
    const struct documents *docs = &s->documents;
    uint8_t bytes[28] = {0};
    int r;

    if (docs->sequences) {
        r = blob_read(READ_WAITS, s->index, bytes, 12, docs->pointers - 4, d);
        if (r == 0)
            r = blob_read(READ_WAITS, s->index, bytes + 12, 16, docs->numbers - 8, d);
    } else {
        r = blob_read(READ_WAITS, s->index, bytes + 20, 8, docs->numbers, d);
    }
    *ret = (struct ends){load_le64(bytes + 20), (int64_t)load_le64(bytes + 4),
                         (int64_t)load_le64(bytes + 12), (int32_t)load_le32(bytes)};
    return r;
}

/* The last document number is the number of sequences. */
static int check_last_number(const struct token_stream *s, struct diag *d)
{
    const struct documents *docs = &s->documents;
    uint64_t at = docs->numbers + 8 * (docs->n_numbers - 1);
    uint8_t bytes[8];
    int r = blob_read(READ_WAITS, s->index, bytes, 8, at, d);

    if (r == 0 && load_le64(bytes) != docs->sequences)
        return blob_bad(
            s->index, d,
            "byte %llu: expected %llu as the last document number, as many as sequences, got %lld",
            (unsigned long long)at, (unsigned long long)docs->sequences,
            (long long)load_le64(bytes));
    return r;
}

static int tokens_megatron_begin(struct token_stream *s, struct diag *d)
{
    struct documents *docs = &s->documents;
    struct ends ends = {0};
    int r = read_ends(s, &ends, d);

    if (r < 0)
        return r;
    if (ends.first_number)
        return blob_bad(s->index, d, "byte %llu: expected 0 as the first document number, got %lld",
                        (unsigned long long)docs->numbers, (long long)ends.first_number);
    if (docs->sequences) {
        r = check_sequence(s, 0, ends.first, 0, d);
        if (r == 0)
            r = check_sequence(s, docs->sequences - 1, ends.last, ends.last_len, d);
    }
    if (r < 0)
        return r;
    docs->base = s->offset = (uint64_t)ends.first;
    s->tokens = 0;
    s->checked = 0;
    if (s->index->size <= STREAM_INDEX_CHECKED)
        r = check_last_number(s, d);
    s->state = r == 0 ? STREAM_SEQUENCES : STREAM_NEW;
    if (r < 0 || s->index->size <= STREAM_INDEX_CHECKED)
        return r;
    if (ends.last < ends.first || (uint64_t)(ends.last - ends.first) % s->width)
        return 0;
    s->tokens = (uint64_t)(ends.last - ends.first) / s->width + (uint64_t)ends.last_len;
    s->checked = docs->n;
    s->state = STREAM_DOCUMENTS;
    return 0;
}

static int tokens_megatron_go_on(struct token_stream *s, struct diag *d)
{
    struct documents *docs = &s->documents;
    struct pass pass = {s, s->offset + s->tokens * s->width, s->tokens, true, s->before};
    int r = 0;

    for (unsigned i = 0; i < PIECES && s->checked < docs->sequences && r == 0; i++) {
        size_t n = (size_t)min_u64(CHUNK, docs->sequences - s->checked);

        r = pass_piece(&pass, s->checked, n, d);
        s->checked += r == 0 ? n : 0;
    }
    s->tokens = pass.tokens;
    if (!pass.in_order && !s->before) { /* again, and note where each is */
        s->before = calloc((size_t)docs->sequences + 1, sizeof(*s->before));
        s->checked = s->tokens = 0;
        return s->before ? r : -ENOMEM;
    }
    if (r < 0 || s->checked < docs->sequences)
        return r;
    if (s->before) { /* put them in order */
        s->before[docs->sequences] = s->tokens;
        s->offset = 0;
        r = scattered_blob(TAKE_PTR(s->base.blob), s, &s->base.blob);
    }
    s->checked = 0;
    s->state = STREAM_DOCUMENTS;
    return r;
}

static void note_rest(struct token_stream *s)
{
    uint64_t end = s->offset + s->tokens * s->width;

    if (!s->before && end < s->base.blob->size)
        text_add(&s->note, "%s: %llu bytes after the last sequence are not used\n",
                 blob_name(s->base.blob), (unsigned long long)(s->base.blob->size - end));
}

int megatron_prepare(struct token_stream *s, struct diag *d)
{
    int r;

    if (s->state == STREAM_NEW)
        return tokens_megatron_begin(s, d);
    if (s->state == STREAM_SEQUENCES)
        return tokens_megatron_go_on(s, d);
    r = s->checked < s->documents.n ? stream_check_documents(s, &s->checked, d) : 1;
    if (r == 1)
        note_rest(s);
    return r;
}

int megatron_check(const struct token_stream *s, struct diag *d)
{
    struct pass pass = {s, 0, 0, true, NULL};
    uint64_t sequences = s->documents.sequences;
    int r = 0;

    if (s->before) /* the blob is not the file; and they were all checked */
        return 0;
    r = check_last_number(s, d);
    for (uint64_t i = 0; i < sequences && r == 0; i += CHUNK)
        r = pass_piece(&pass, i, (size_t)min_u64(CHUNK, sequences - i), d);
    if (r == 0 && (!pass.in_order || pass.tokens != s->tokens))
        return blob_bad(s->index, d,
                        "expected sequences that follow each other in %s, %llu tokens in all, got "
                        "%llu tokens%s",
                        blob_name(s->base.blob), (unsigned long long)s->tokens,
                        (unsigned long long)pass.tokens, pass.in_order ? "" : " in another order");
    return r;
}
