#include "format/tokens/document_set.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/encode/encode.h"
#include "format/records/record_set.h"

#define STEP 128 /* reads of a step of preparing */

extern const struct format format_tokens;

/* A row of the index has one number: the tokens before the document. */
enum { START, N_NUMBERS };
/* Beside the tokens a file has losses, or modes, or neither. */
enum { TOKENS, LOSS_OR_MODE, N_COLUMNS };

struct document_file {
    struct token_stream *s;
    unsigned users;
    uint64_t next; /* document, while the index is made */
    struct record_column column[N_COLUMNS];
    unsigned n_columns;
    struct prepared prepared;
    uint64_t largest; /* token; if has_largest, after a check */
    bool has_largest;
};

static int file_identity(void *impl, struct text *ret)
{
    const struct document_file *file = impl;
    const struct token_stream *s = file->s;
    int r;

    text_add(ret, "tokens 1 %d %s %d", (int)s->kind, dtype_info(s->dtype)->name,
             s->documents.by_sequence);
    r = prepared_add_identity(&file->prepared, ret, s->index);
    return r < 0 ? r : prepared_add_identity(&file->prepared, ret, s->blob);
}

/* The tokens of a kept index are hostile: they lie inside the stream. A stream whose sequences are
 * not in their order must go through its index again. */
static int file_take(void *impl, const struct index *index)
{
    struct document_file *file = impl;
    int r = 0;

    while (r == 0)
        r = stream_prepare(file->s, NULL);
    if (r < 0)
        return r;
    return index->rows == file->s->documents.n &&
                   index_number(index, index->rows, START) <= file->s->tokens
               ? 0
               : -EBADMSG;
}

static int file_step(void *impl, struct diag *d)
{
    struct document_file *file = impl;
    const struct documents *docs = &file->s->documents;
    uint64_t start[DOCUMENTS_AT_ONCE];
    int r = stream_prepare(file->s, d);

    for (unsigned i = 0; i < STEP && r == 1 && file->next < docs->n; i++) {
        size_t n = (size_t)min_u64(DOCUMENTS_AT_ONCE, docs->n - file->next);

        r = documents_starts(READ_WAITS, docs, file->next, n, start, d);
        for (size_t k = 0; k < n && r == 0; k++)
            r = index_add(file->prepared.builder, NULL, 0, &start[k]);
        if (r < 0)
            return r;
        file->next += n;
        r = 1;
    }
    if (r < 1 || file->next < docs->n)
        return r < 0 ? r : 0;
    file->prepared.end[START] = file->s->tokens;
    r = blob_check(file->s->blob);
    if (r == 0)
        r = blob_check(file->s->index);
    return r < 0 ? r : 1;
}

static const struct prepared_ops index_ops = {
    .identity = file_identity, .take = file_take, .step = file_step};

static void file_share(void *p)
{
    ((struct document_file *)p)->users++;
}

void document_file_drop(void *p)
{
    struct document_file *file = p;

    if (!file || --file->users)
        return;
    prepared_release(&file->prepared);
    stream_drop(file->s);
    free(file);
}

const struct token_stream *document_file_stream(const struct document_file *file)
{
    return file->s;
}

/* ---- the columns ---- */

static const struct record_column *file_columns(const void *p, unsigned *ret_n)
{
    const struct document_file *file = p;

    *ret_n = file->n_columns;
    return file->column;
}

static uint64_t file_length(const void *p, uint64_t row, unsigned column)
{
    const struct index *index = &((const struct document_file *)p)->prepared.index;

    (void)column;
    return index_number(index, row + 1, START) - index_number(index, row, START);
}

static bool file_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct document_file *file = p;
    const struct token_stream *s = file->s;
    uint64_t start = index_number(&file->prepared.index, row, START);
    uint64_t n = file_length(p, row, column);

    if (column == TOKENS)
        *ret = (struct extent){s->blob, s->offset + start * s->width, n * s->width};
    else if (s->loss)
        *ret = (struct extent){s->loss, start, n};
    else
        *ret = (struct extent){s->index, s->modes + row, 1};
    return ret->len > 0;
}

static int file_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct extent e;
    int r =
        file_extent(p, row, column, &e) ? blob_read(rc, e.blob, dst, len, e.off + off, d) : -EIO;

    return r < 0 ? r : blob_used(rc, e.blob, d);
}

static void file_note(const void *p, struct text *t)
{
    const struct token_stream *s = ((const struct document_file *)p)->s;

    if (s->note.data)
        text_add(t, "%s", s->note.data);
}

/* One thread checks. */
static int file_check(void *p, struct diag *d)
{
    struct document_file *file = p;
    int r = stream_check(file->s, d);

    if (r == 0)
        r = stream_largest(file->s, file->s->tokens, &file->largest, d);
    file->has_largest = r == 0;
    return r;
}

static void file_checked(const void *p, struct text *t)
{
    const struct document_file *file = p;

    if (file->has_largest)
        stream_tell_largest(file->s, file->largest, t);
}

static void describe(const struct shard *file, unsigned n, const char *indent, struct text *t)
{
    uint64_t tokens = 0;

    for (unsigned i = 0; i < n; i++)
        tokens += ((const struct document_file *)file[i].file)->s->tokens;
    text_add(t, "%s\"tokens\": %llu,\n", indent, (unsigned long long)tokens);
}

static const struct record_format documents = {
    .format = &format_tokens,
    .file = {.drop = document_file_drop},
    .share = file_share,
    .add_folders = dataset_add_folders,
    .columns = file_columns,
    .length = file_length,
    .extent = file_extent,
    .read = file_read,
    .note = file_note,
    .check = file_check,
    .checked = file_checked,
    .describe = describe,
};

int document_file_new(struct token_stream *s, const struct format_setup *setup,
                      struct document_file **ret)
{
    struct document_file *file = calloc(1, sizeof(*file));

    if (!file) {
        stream_drop(s);
        return -ENOMEM;
    }
    file->s = s;
    file->users = 1;
    file->column[file->n_columns++] = (struct record_column){.name = "tokens",
                                                             .shown = RECORD_NUMBERS,
                                                             .dtype = s->dtype,
                                                             .ndim = 1,
                                                             .dim = {DIM_VARIES}};
    if (s->loss)
        file->column[file->n_columns++] = (struct record_column){.name = "loss",
                                                                 .shown = RECORD_NUMBERS,
                                                                 .dtype = DTYPE_U1,
                                                                 .ndim = 1,
                                                                 .dim = {DIM_VARIES}};
    else if (s->modes && s->documents.by_sequence)
        file->column[file->n_columns++] =
            (struct record_column){.name = "mode", .shown = RECORD_NUMBERS, .dtype = DTYPE_I1};
    file->prepared = (struct prepared){
        .ops = &index_ops,
        .impl = file,
        .keep = setup->keep,
        .kind = "rows",
        .name = blob_name(s->blob),
        .source = blob_source(s->blob),
        .size = s->index->size,
        .shape = {.columns = N_NUMBERS, .rising = 1u << START},
    };
    *ret = file;
    return 0;
}

int document_set_new(struct document_file *const *file, unsigned n,
                     const struct format_setup *setup, struct dataset **ret)
{
    AUTO_FREE struct shard *shard = calloc(n, sizeof(*shard));

    if (!shard)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        shard[i] = (struct shard){file[i], file[i]->s->blob, &file[i]->prepared};
    return record_set_new(&documents, shard, n, setup, ret);
}
