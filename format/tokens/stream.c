#include "format/tokens/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

struct token_stream *stream_new(enum tokens_kind kind, struct blob *blob, enum dtype dtype)
{
    struct token_stream *s = calloc(1, sizeof(*s));

    if (!s) {
        blob_free(blob);
        return NULL;
    }
    s->users = 1;
    s->kind = kind;
    s->blob = blob;
    s->dtype = dtype;
    s->width = dtype_info(dtype)->bytes;
    return s;
}

void stream_drop(struct token_stream *s)
{
    if (!s || --s->users)
        return;
    blob_free(s->blob);
    blob_free(s->index);
    blob_free(s->loss);
    free(s->before);
    text_release(&s->note);
    free(s);
}

int stream_check_documents(const struct documents *docs, uint64_t *checked, struct diag *d)
{
    for (unsigned i = 0; i < 128 && *checked < docs->n; i++) {
        size_t n = (size_t)min_u64(DOCUMENTS_AT_ONCE - 1, docs->n - *checked);
        int r = documents_check(docs, *checked, n, d);

        if (r < 0)
            return r;
        *checked += n;
    }
    return *checked >= docs->n;
}

int stream_prepare(struct token_stream *s, struct diag *d)
{
    int r = 1;

    if (s->state == STREAM_READY)
        return 1;
    if (s->kind == TOKENS_MEGATRON)
        r = megatron_prepare(s, d);
    else if (s->index)
        r = datatrove_prepare(s, d);
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
    } else if (s->kind == TOKENS_MEGATRON) {
        blob_fetch(s->index, s->documents.pointers - 4, 12, NULL);
        blob_fetch(s->index, s->documents.numbers - 8, 16, NULL);
    } else {
        blob_fetch(s->index, s->index->size - 8, 8, NULL);
    }
}

int stream_check(const struct token_stream *s, struct diag *d)
{
    uint64_t checked = 0;
    int r = s->kind == TOKENS_MEGATRON ? megatron_check(s, d) : 0;

    if (r < 0 || s->documents.kind == DOCUMENTS_NONE)
        return r;
    while (r == 0)
        r = stream_check_documents(&s->documents, &checked, d);
    return r < 0 ? r : 0;
}
