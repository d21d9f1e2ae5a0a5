#include "format/tokens/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/tokens/packing.h"

#define PIECE (UINT64_C(1) << 20) /* bytes of tokens read at once */
#define STEP  128                 /* reads of a step of preparing */

const struct token_program token_programs[] = {
    [TOKENS_MEGATRON] = {"Megatron-LM", megatron_prepare, megatron_check},
    [TOKENS_LLMC] = {"llm.c", NULL, NULL},
    [TOKENS_DATATROVE] = {"datatrove", datatrove_prepare, NULL},
    [TOKENS_RAW] = {"no header", NULL, NULL},
};

/* ---- the index of documents ---- */

/* The tokens of a kept index are hostile: they lie inside the stream. A stream whose sequences are
 * not in their order must go through its index again. */
static int stream_load(void *impl, const struct index *index)
{
    struct token_stream *s = impl;
    int r = 0;

    while (r == 0)
        r = stream_prepare(s, NULL);
    if (r < 0)
        return r;
    return index->rows == s->documents.n && index_number(index, index->rows, 0) <= s->tokens
               ? 0
               : -EBADMSG;
}

static int stream_step(void *impl, struct diag *d)
{
    struct token_stream *s = impl;
    const struct documents *docs = &s->documents;
    uint64_t start[DOCUMENTS_AT_ONCE];
    int r = stream_prepare(s, d);

    for (unsigned i = 0; i < STEP && r == 1 && s->next < docs->n; i++) {
        size_t n = (size_t)min_u64(DOCUMENTS_AT_ONCE, docs->n - s->next);

        r = documents_starts(READ_WAITS, s, s->next, n, start, d);
        for (size_t k = 0; k < n && r == 0; k++)
            r = index_add(s->base.prepared.builder, NULL, 0, &start[k]);
        if (r < 0)
            return r;
        s->next += n;
        r = 1;
    }
    if (r < 1 || s->next < docs->n)
        return r < 0 ? r : 0;
    s->base.prepared.end[0] = s->tokens;
    r = blob_check(s->base.blob);
    if (r == 0)
        r = blob_check(s->index);
    return r < 0 ? r : 1;
}

static void stream_release(void *p)
{
    struct token_stream *s = p;

    packing_free(s->packing);
    blob_free(s->index);
    blob_free(s->loss);
    free(s->before);
    text_release(&s->note);
}

static const struct record_file_ops stream_ops = {
    .size = sizeof(struct token_stream),
    .index = {.version = "tokens 1", .load = stream_load, .step = stream_step},
    .shape = {.columns = 1, .rising = 1},
    .release = stream_release,
};

/* ---- opening ---- */

struct token_stream *stream_new(enum token_layout layout, struct blob *blob, enum dtype dtype,
                                const struct format_setup *setup)
{
    struct token_stream *s;

    if (record_file_new(&stream_ops, blob, setup, &s) < 0) {
        blob_free(blob);
        return NULL;
    }
    s->layout = layout;
    s->dtype = dtype;
    s->width = dtype_info(dtype)->bytes;
    return s;
}

int stream_fixed(enum token_layout layout, struct blob *blob, enum dtype dtype, uint64_t header,
                 const struct format_setup *setup, struct token_stream **ret, struct diag *d)
{
    AUTO_STREAM struct token_stream *s = stream_new(layout, blob, dtype, setup);

    if (!s)
        return -ENOMEM;
    if ((blob->size - header) % s->width)
        return blob_bad(blob, d, "expected a multiple of %u bytes, a token of %s, got %llu",
                        s->width, dtype_info(dtype)->name, (unsigned long long)blob->size);
    s->offset = header;
    s->tokens = (blob->size - header) / s->width;
    *ret = TAKE_PTR(s);
    return 0;
}

int stream_check_documents(const struct token_stream *s, uint64_t *checked, struct diag *d)
{
    uint64_t start[DOCUMENTS_AT_ONCE];

    for (unsigned i = 0; i < 128 && *checked < s->documents.n; i++) {
        size_t n = (size_t)min_u64(DOCUMENTS_AT_ONCE - 1, s->documents.n - *checked);
        int r = documents_starts(READ_WAITS, s, *checked, n + 1, start, d);

        if (r < 0)
            return r;
        *checked += n;
    }
    return *checked >= s->documents.n;
}

int stream_prepare(struct token_stream *s, struct diag *d)
{
    const struct token_program *program = &token_programs[s->layout];
    int r = s->state != STREAM_READY && program->prepare ? program->prepare(s, d) : 1;

    if (r == 1)
        s->state = STREAM_READY;
    return r;
}

void stream_fetch(const struct token_stream *s)
{
    if (s->state == STREAM_READY || !s->index)
        return;
    if (s->index->size <= STREAM_INDEX_CHECKED) {
        blob_fetch(s->index, 0, s->index->size, NULL);
    } else if (s->layout == TOKENS_MEGATRON) {
        blob_fetch(s->index, s->documents.pointers - 4, 12, NULL);
        blob_fetch(s->index, s->documents.numbers - 8, 16, NULL);
    } else {
        blob_fetch(s->index, s->index->size - 8, 8, NULL);
    }
}

int stream_largest(const struct token_stream *s, uint64_t n, uint64_t *ret, struct diag *d)
{
    const size_t at_once = PIECE / s->width;
    AUTO_FREE uint8_t *piece = malloc(PIECE);

    if (!piece)
        return -ENOMEM;
    *ret = 0;
    for (uint64_t at = 0; at < n; at += at_once) {
        size_t some = (size_t)min_u64(at_once, n - at);
        int r = blob_read(READ_WAITS, s->base.blob, piece, some * s->width,
                          s->offset + at * s->width, d);

        if (r < 0)
            return r;
        for (size_t i = 0; i < some; i++)
            *ret = max_u64(*ret, stream_token(s, piece + i * s->width));
    }
    return blob_verify(s->base.blob, d);
}

int stream_check(void *stream, struct diag *d)
{
    struct token_stream *s = stream;
    uint64_t checked = 0;
    int r = token_programs[s->layout].check ? token_programs[s->layout].check(s, d) : 0;

    while (r == 0 && s->documents.table != DOCUMENTS_NONE)
        r = stream_check_documents(s, &checked, d);
    if (r >= 0)
        r = stream_largest(s, s->tokens, &s->largest, d);
    s->has_largest = r == 0;
    return r;
}

void stream_add_largest(const void *stream, struct text *t)
{
    const struct token_stream *s = stream;

    if (s->has_largest)
        text_add(t, "the largest of all %llu tokens is %lld\n", (unsigned long long)s->tokens,
                 (long long)s->largest);
}
