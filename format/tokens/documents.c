#include "format/tokens/stream.h"

#include "base/bytes.h"
#include "base/checked.h"

#define FIRST_CHUNK 16 /* documents that a window mostly has at most */

static int tokens_documents_read_numbers(struct read_context *rc, const struct blob *blob,
                                         uint64_t byte, size_t n, uint64_t *ret, struct diag *d)
{
    uint8_t bytes[8 * DOCUMENTS_AT_ONCE];
    int r = blob_read(rc, blob, bytes, 8 * n, byte, d);

    for (size_t i = 0; i < n && r == 0; i++)
        ret[i] = load_le64(bytes + 8 * i);
    return r < 0 ? r : blob_used(rc, blob, d);
}

/* The tokens before n sequences that follow each other. */
static int sequence_starts(struct read_context *rc, const struct token_stream *s, uint64_t first,
                           size_t n, uint64_t *ret, struct diag *d)
{
    size_t stored = (size_t)min_u64(n, s->documents.sequences - first);
    uint64_t byte = s->documents.pointers + 8 * first;
    int r;

    for (size_t i = stored; i < n; i++)
        ret[i] = s->tokens;
    if (s->before) {
        for (size_t i = 0; i < stored; i++)
            ret[i] = s->before[first + i];
        return 0;
    }
    r = stored ? tokens_documents_read_numbers(rc, s->index, byte, stored, ret, d) : 0;
    for (size_t i = 0; i < stored && r == 0; i++) {
        uint64_t off = ret[i] - s->documents.base;

        if (ret[i] < s->documents.base || off % s->width || off / s->width > s->tokens)
            return blob_bad(s->index, d,
                            "byte %llu: sequence %llu: expected it to begin at bytes %llu to %llu, "
                            "in steps of %u, got %lld",
                            (unsigned long long)(byte + 8 * i), (unsigned long long)(first + i),
                            (unsigned long long)s->documents.base,
                            (unsigned long long)(s->documents.base + s->tokens * s->width),
                            s->width, (long long)ret[i]);
        ret[i] = off / s->width;
    }
    return r;
}

static int from_sequences(struct read_context *rc, const struct token_stream *s, uint64_t first,
                          size_t n, uint64_t *ret, struct diag *d)
{
    uint64_t number[DOCUMENTS_AT_ONCE];
    int r = 0;

    if (s->documents.by_sequence)
        return sequence_starts(rc, s, first, n, ret, d);
    r = tokens_documents_read_numbers(rc, s->index, s->documents.numbers + 8 * first, n, number, d);
    for (size_t i = 0; i < n && r == 0; i++)
        if (number[i] > s->documents.sequences)
            return blob_bad(s->index, d,
                            "byte %llu: document %llu: expected one of %llu sequences, got %lld",
                            (unsigned long long)(s->documents.numbers + 8 * (first + i)),
                            (unsigned long long)(first + i),
                            (unsigned long long)s->documents.sequences, (long long)number[i]);
    for (size_t i = 0, run; i < n && r == 0; i += run) {
        for (run = 1; i + run < n && number[i + run] == number[i] + run;)
            run++;
        r = sequence_starts(rc, s, number[i], run, ret + i, d);
    }
    return r;
}

static int from_ends(struct read_context *rc, const struct token_stream *s, uint64_t first,
                     size_t n, uint64_t *ret, struct diag *d)
{
    /* A document begins where the one before it ends; a last one may have no end of its own. */
    uint64_t stored = s->index->size / 8, from = first ? first - 1 : 0;
    size_t zero = first ? 0 : 1, there = (size_t)min_u64(n - zero, stored - from);
    int r = there ? tokens_documents_read_numbers(rc, s->index, 8 * from, there, ret + zero, d) : 0;

    if (zero)
        ret[0] = 0;
    for (size_t i = zero + there; i < n; i++)
        ret[i] = s->tokens;
    for (size_t i = zero; i < zero + there && r == 0; i++)
        if (ret[i] > s->tokens)
            return blob_bad(
                s->index, d,
                "byte %llu: document %llu: expected an end of at most %llu tokens, got %llu",
                (unsigned long long)(8 * (from + i - zero)), (unsigned long long)(from + i - zero),
                (unsigned long long)s->tokens, (unsigned long long)ret[i]);
    return r;
}

int documents_starts(struct read_context *rc, const struct token_stream *s, uint64_t first,
                     size_t n, uint64_t *ret, struct diag *d)
{
    int r = s->documents.table == DOCUMENTS_ENDS ? from_ends(rc, s, first, n, ret, d)
                                                 : from_sequences(rc, s, first, n, ret, d);

    for (size_t i = 1; i < n && r == 0; i++)
        if (ret[i] < ret[i - 1])
            return blob_bad(
                s->index, d,
                "document %llu: expected an end after its begin at token %llu, got token %llu",
                (unsigned long long)(first + i - 1), (unsigned long long)ret[i - 1],
                (unsigned long long)ret[i]);
    return r;
}

int documents_find(struct read_context *rc, const struct token_stream *s, uint64_t token,
                   uint64_t *ret, struct diag *d)
{
    uint64_t low = 0, high = s->documents.n, start[DOCUMENTS_AT_ONCE];
    size_t n;
    int r = 0;

    while (high - low > DOCUMENTS_AT_ONCE && r == 0) {
        uint64_t middle = low + (high - low) / 2;

        r = documents_starts(rc, s, middle, 1, start, d);
        if (r == 0 && start[0] <= token)
            low = middle;
        else
            high = middle;
    }
    n = (size_t)(high - low);
    if (r == 0 && n > 1)
        r = documents_starts(rc, s, low, n, start, d);
    if (r < 0)
        return r;
    while (n > 1 && start[n - 1] > token)
        n--;
    *ret = low + n - 1;
    return 0;
}

int boundaries_begin(struct read_context *rc, struct boundaries *ret, const struct token_stream *s,
                     uint64_t token, struct diag *d)
{
    uint64_t document = 0;
    int r = documents_find(rc, s, token, &document, d);

    ret->s = s;
    ret->last = token;
    ret->next = document + 1;
    ret->n = ret->i = 0;
    ret->moved = true;
    return r;
}

/* The next starts; those of a long row of empty documents are skipped. */
static int read_more(struct read_context *rc, struct boundaries *b, struct diag *d)
{
    size_t most = b->n ? DOCUMENTS_AT_ONCE : FIRST_CHUNK;
    int r = 0;

    if (!b->moved) {
        r = documents_find(rc, b->s, b->last, &b->next, d);
        b->next++;
    }
    if (r < 0)
        return r;
    b->n = b->next < b->s->documents.n ? (size_t)min_u64(most, b->s->documents.n - b->next) : 0;
    b->i = 0;
    b->moved = false;
    if (b->n)
        r = documents_starts(rc, b->s, b->next, b->n, b->start, d);
    b->next += b->n;
    return r;
}

int boundaries_next(struct read_context *rc, struct boundaries *b, uint64_t *ret, struct diag *d)
{
    for (;;) {
        while (b->i < b->n) {
            uint64_t start = b->start[b->i++];

            if (start <= b->last)
                continue;
            b->last = *ret = start;
            b->moved = true;
            return start < b->s->tokens;
        }
        if (b->last >= b->s->tokens || b->next >= b->s->documents.n)
            return 0;

        int r = read_more(rc, b, d);

        if (r < 0)
            return r;
        if (!b->n)
            return 0;
    }
}
