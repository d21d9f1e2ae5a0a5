/* A dataset whose samples are the documents of streams: records of differing length. */
#include "format/tokens/stream.h"

extern const struct format format_tokens;

static uint64_t file_length(const void *p, uint64_t row, unsigned column)
{
    const struct index *index = &((const struct token_stream *)p)->base.prepared.index;

    (void)column;
    return index_number(index, row + 1, 0) - index_number(index, row, 0);
}

static bool file_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct token_stream *s = p;
    uint64_t start = index_number(&s->base.prepared.index, row, 0);
    uint64_t n = file_length(p, row, column);

    if (column == COLUMN_TOKENS)
        *ret = (struct extent){s->base.blob, s->offset + start * s->width, n * s->width};
    else if (s->loss)
        *ret = (struct extent){s->loss, start, n};
    else
        *ret = (struct extent){s->index, s->modes + row, 1};
    return ret->len > 0;
}

static void tokens_document_set_note(const void *p, struct text *t)
{
    const struct token_stream *s = p;

    if (s->note.data)
        text_add(t, "%s", s->note.data);
}

static void tokens_document_set_describe(struct record_file *const *file, unsigned n,
                                         const char *indent, struct text *t)
{
    uint64_t tokens = 0;

    for (unsigned i = 0; i < n; i++)
        tokens += ((const struct token_stream *)file[i])->tokens;
    json_add_number(t, indent, "tokens", tokens);
}

const struct record_format token_documents = {
    .format = &format_tokens,
    .length = file_length,
    .extent = file_extent,
    .note = tokens_document_set_note,
    .check = stream_check,
    .checked = stream_add_largest,
    .describe = tokens_document_set_describe,
};

static void tokens_document_set_add_column(struct token_stream *s, const char *name,
                                           enum dtype dtype, bool varies)
{
    s->column[s->base.n_columns++] = (struct record_column){
        .name = name, .dtype = dtype, .ndim = varies, .dim = {varies ? DIM_VARIES : 0}};
}

int stream_add_columns(struct token_stream *s)
{
    s->base.prepared.size = s->index->size;
    s->base.prepared.second = s->index;
    s->base.column = s->column;
    tokens_document_set_add_column(s, "tokens", s->dtype, true);
    if (s->loss)
        tokens_document_set_add_column(s, "loss", DTYPE_U1, true);
    else if (s->modes && s->documents.by_sequence)
        tokens_document_set_add_column(s, "mode", DTYPE_I1, false);
    return text_print(&s->base.prepared.depends, " %d %s %d", (int)s->layout,
                      dtype_info(s->dtype)->name, s->documents.by_sequence);
}
