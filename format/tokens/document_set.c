#include "format/tokens/document_set.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"

#define STEP 128 /* reads of a step of preparing */

extern const struct format format_tokens;

/* A row of the index has one number: the tokens before the document. */
enum { START, N_NUMBERS };
/* Next to the tokens a file has losses, or modes, or neither. */
enum { TOKENS, LOSS_OR_MODE, N_COLUMNS };

struct document_file {
    struct record_file base;
    struct token_stream *s;
    uint64_t next; /* document, while the index is made */
    struct record_column column[N_COLUMNS];
};

static int tokens_document_set_identity(void *impl, struct text *ret)
{
    const struct document_file *file = impl;
    const struct token_stream *s = file->s;

    text_add(ret, " %d %s %d", (int)s->layout, dtype_info(s->dtype)->name,
             s->documents.by_sequence);
    return prepared_add_identity(&file->base.prepared, ret, s->index);
}

/* The tokens of a kept index are hostile: they lie inside the stream. A stream whose sequences are
 * not in their order must go through its index again. */
static int tokens_document_set_take(void *impl, const struct index *index)
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

static int tokens_document_set_step(void *impl, struct diag *d)
{
    struct document_file *file = impl;
    const struct documents *docs = &file->s->documents;
    uint64_t start[DOCUMENTS_AT_ONCE];
    int r = stream_prepare(file->s, d);

    for (unsigned i = 0; i < STEP && r == 1 && file->next < docs->n; i++) {
        size_t n = (size_t)min_u64(DOCUMENTS_AT_ONCE, docs->n - file->next);

        r = documents_starts(READ_WAITS, docs, file->next, n, start, d);
        for (size_t k = 0; k < n && r == 0; k++)
            r = index_add(file->base.prepared.builder, NULL, 0, &start[k]);
        if (r < 0)
            return r;
        file->next += n;
        r = 1;
    }
    if (r < 1 || file->next < docs->n)
        return r < 0 ? r : 0;
    file->base.prepared.end[START] = file->s->tokens;
    r = blob_check(file->s->blob);
    if (r == 0)
        r = blob_check(file->s->index);
    return r < 0 ? r : 1;
}

static void tokens_document_set_release(void *p)
{
    struct document_file *file = p;

    file->base.blob = NULL; /* the stream's */
    stream_drop(file->s);
}

static const struct record_file_ops tokens_document_set_ops = {
    .size = sizeof(struct document_file),
    .index = {.version = "tokens 1",
              .identity = tokens_document_set_identity,
              .load = tokens_document_set_take,
              .step = tokens_document_set_step},
    .shape = {.columns = N_NUMBERS, .rising = 1u << START},
    .release = tokens_document_set_release,
};

/* ---- the columns ---- */

static uint64_t file_length(const void *p, uint64_t row, unsigned column)
{
    const struct index *index = &((const struct document_file *)p)->base.prepared.index;

    (void)column;
    return index_number(index, row + 1, START) - index_number(index, row, START);
}

static bool file_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct document_file *file = p;
    const struct token_stream *s = file->s;
    uint64_t start = index_number(&file->base.prepared.index, row, START);
    uint64_t n = file_length(p, row, column);

    if (column == TOKENS)
        *ret = (struct extent){s->blob, s->offset + start * s->width, n * s->width};
    else if (s->loss)
        *ret = (struct extent){s->loss, start, n};
    else
        *ret = (struct extent){s->index, s->modes + row, 1};
    return ret->len > 0;
}

static void tokens_document_set_note(const void *p, struct text *t)
{
    const struct token_stream *s = ((const struct document_file *)p)->s;

    if (s->note.data)
        text_add(t, "%s", s->note.data);
}

/* One thread checks. */
static int tokens_document_set_check(void *p, struct diag *d)
{
    return stream_check(((struct document_file *)p)->s, d);
}

static void file_checked(const void *p, struct text *t)
{
    stream_add_largest(((const struct document_file *)p)->s, t);
}

static void tokens_document_set_describe(struct record_file *const *file, unsigned n,
                                         const char *indent, struct text *t)
{
    uint64_t tokens = 0;

    for (unsigned i = 0; i < n; i++)
        tokens += ((const struct document_file *)file[i])->s->tokens;
    text_add(t, "%s\"tokens\": %llu,\n", indent, (unsigned long long)tokens);
}

const struct record_format token_documents = {
    .format = &format_tokens,
    .file = &tokens_document_set_ops,
    .length = file_length,
    .extent = file_extent,
    .note = tokens_document_set_note,
    .check = tokens_document_set_check,
    .checked = file_checked,
    .describe = tokens_document_set_describe,
};

static void tokens_document_set_add_column(struct document_file *file, const char *name,
                                           enum dtype dtype, bool varies)
{
    file->column[file->base.n_columns++] = (struct record_column){
        .name = name, .dtype = dtype, .ndim = varies, .dim = {varies ? DIM_VARIES : 0}};
}

int document_file_new(struct token_stream *s, const struct format_setup *setup,
                      struct record_file **ret)
{
    struct document_file *file;
    int r = record_file_new(&tokens_document_set_ops, s->blob, setup, &file);

    if (r < 0)
        return r;
    s->users++;
    file->s = s;
    file->base.prepared.size = s->index->size;
    file->base.column = file->column;
    tokens_document_set_add_column(file, "tokens", s->dtype, true);
    if (s->loss)
        tokens_document_set_add_column(file, "loss", DTYPE_U1, true);
    else if (s->modes && s->documents.by_sequence)
        tokens_document_set_add_column(file, "mode", DTYPE_I1, false);
    *ret = &file->base;
    return 0;
}
