#include "format/tokens/packing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/read_context.h"

/* A row of the index is a piece: the sample that it is in, the full windows before that sample, and
 * its document. */
enum { SAMPLE, FULL, DOCUMENT, N_NUMBERS };

static uint64_t pack_groups(const struct packing *p)
{
    return split_groups(p->stream) + 1;
}

static void pack_keep(void *impl, struct kept *k)
{
    struct packing *p = impl;

    kept_number(k, &p->left_over, UINT64_MAX);
    kept_number(k, &p->predicted, UINT64_MAX);
    kept_array(k, &p->split.before, pack_groups(p) * sizeof(*p->split.before));
}

/* The numbers of a kept index are hostile. Those of a row are checked when they are used. */
static int pack_load(void *impl, const struct index *index)
{
    struct packing *p = impl;
    uint64_t groups = pack_groups(p), number[N_NUMBERS];
    const uint64_t *before = p->split.before;

    index_row(index, index->rows, number);
    if (number[SAMPLE] < number[FULL] || number[SAMPLE] - number[FULL] > index->rows ||
        number[SAMPLE] > INT64_MAX || before[0] || before[groups - 1] != number[FULL])
        return -EBADMSG;
    for (uint64_t i = 1; i < groups; i++)
        if (before[i] < before[i - 1])
            return -EBADMSG;
    p->split.n = number[FULL];
    return 0;
}

static int pack_begin(void *impl)
{
    struct packing *p = impl;
    size_t n = (size_t)min_u64(p->together, p->stream->documents.n) + 1;

    p->piece = calloc(n, sizeof(*p->piece));
    p->scratch = calloc(n, sizeof(*p->scratch));
    p->keys = calloc(n, sizeof(*p->keys));
    return p->piece && p->scratch && p->keys ? 0 : -ENOMEM;
}

static int pack_window(struct packing *p)
{
    size_t bins = pack_pieces(p->piece, p->n, p->tokens + 1, p->scratch, p->keys);
    uint64_t full = p->split.n, first = p->split.checked / p->together * p->together;
    int r = 0;

    for (size_t i = 0; i < p->n && r == 0; i++)
        r = index_add(p->prepared.builder, NULL, 0,
                      (const uint64_t[N_NUMBERS]){[SAMPLE] = full + p->bins + p->piece[i].bin,
                                                  [FULL] = full,
                                                  [DOCUMENT] = first + p->piece[i].document});
    p->bins += bins;
    p->n = 0;
    return r;
}

/* The next document, whose full windows are counted. */
static int pack_add(void *impl, uint64_t document, uint64_t tokens)
{
    struct packing *p = impl;
    uint64_t left = tokens ? (tokens - 1) % p->tokens : 0;

    p->left_over += tokens < 2;
    p->predicted += tokens ? tokens - 1 : 0;
    if (left)
        p->piece[p->n++] = (struct packed_piece){.tokens = (uint32_t)left + 1,
                                                 .document = (uint32_t)(document % p->together)};
    return (document + 1) % p->together && document + 1 < p->stream->documents.n ? 0
                                                                                 : pack_window(p);
}

static void pack_forget(struct packing *p)
{
    free(p->piece);
    free(p->scratch);
    free(p->keys);
    p->piece = p->scratch = NULL;
    p->keys = NULL;
}

static int pack_step(void *impl, struct diag *d)
{
    struct packing *p = impl;
    int r = split_prepare(&p->split, p->stream, p->tokens, p->tokens, pack_add, p, d);

    if (r < 1)
        return r;
    pack_forget(p);
    p->prepared.end[SAMPLE] = p->split.n + p->bins;
    p->prepared.end[FULL] = p->split.n;
    r = blob_check(p->stream->base.blob);
    if (r == 0)
        r = blob_check(p->stream->index);
    return r < 0 ? r : 1;
}

static int pack_ready(void *impl, struct diag *d)
{
    struct packing *p = impl;

    (void)d;
    p->samples = index_number(&p->prepared.index, p->prepared.index.rows, SAMPLE);
    return 0;
}

static const struct prepared_ops pack_ops = {
    .version = "packed tokens 1",
    .keep = pack_keep,
    .load = pack_load,
    .begin = pack_begin,
    .step = pack_step,
    .ready = pack_ready,
};

int packing_new(const struct token_stream *s, const struct format_setup *setup,
                struct packing **ret)
{
    struct packing *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    *p = (struct packing){
        .prepared = {.ops = &pack_ops,
                     .impl = p,
                     .keep = setup->keep,
                     .type = "rows",
                     .blob = s->base.blob,
                     .second = s->index,
                     .name = blob_name(s->base.blob),
                     .source = blob_source(s->base.blob),
                     .size = s->index->size,
                     .shape = {.columns = N_NUMBERS, .rising = 1u << SAMPLE | 1u << FULL}},
        .stream = s,
        .tokens = setup->options.seq,
        .together = setup->options.pack,
    };
    *ret = p;
    return text_print(&p->prepared.depends, " %d %s %d %llu %llu", (int)s->layout,
                      dtype_info(s->dtype)->name, s->documents.by_sequence,
                      (unsigned long long)p->tokens, (unsigned long long)p->together);
}

void packing_free(struct packing *p)
{
    if (!p)
        return;
    pack_forget(p);
    prepared_release(&p->prepared);
    free(p->split.before);
    free(p);
}

/* ---- where a sample is ---- */

/* What is kept is not of these documents: the next mount makes it again. */
static int pack_mistrust(const struct packing *p, uint64_t number, struct diag *d)
{
    index_store_remove(p->prepared.keep, p->prepared.type, p->prepared.identity);
    return diag_set(d, -ESTALE,
                    "%s: sample %llu: expected documents as its kept packing says, got others. "
                    "Mount again: it is packed again",
                    p->prepared.name, (unsigned long long)number);
}

/* The piece of a row. 1: found, 0: it has none, or -errno. */
static int find_packed_piece(struct read_context *rc, const struct packing *p, uint64_t row,
                             struct piece *ret, struct diag *d)
{
    uint64_t document = index_number(&p->prepared.index, row, DOCUMENT), start[2], tokens;
    int r;

    if (document >= p->stream->documents.n)
        return 0;
    r = documents_starts(rc, p->stream, document, 2, start, d);
    if (r < 0)
        return r;
    tokens = start[1] - start[0];
    ret->tokens = tokens ? (tokens - 1) % p->tokens + 1 : 0;
    ret->start = start[1] - ret->tokens;
    return ret->tokens > 1;
}

static int find_bin(struct read_context *rc, const struct packing *p, uint64_t number,
                    uint64_t first, uint64_t n, struct window *ret, struct diag *d)
{
    uint64_t space = p->tokens + 1, used = 0;
    int all = 0;

    if (n > min_u64(p->together, space / 2))
        return pack_mistrust(p, number, d);
    ret->piece = n > 1 ? malloc(n * sizeof(*ret->piece)) : &ret->one;
    if (!ret->piece)
        return -ENOMEM;
    for (ret->n = 0; ret->n < n; ret->n++) {
        struct piece *piece = &ret->piece[ret->n];
        int r = find_packed_piece(rc, p, first + ret->n, piece, d);

        if (!missing_go_on(rc, r < 0 ? r : 0, &all))
            return all;
        if (r < 0)
            continue;
        used += piece->tokens;
        if (r == 0 || used > space)
            return pack_mistrust(p, number, d);
    }
    return all;
}

int packing_find(struct read_context *rc, const struct packing *p, uint64_t number,
                 struct window *ret, struct diag *d)
{
    const struct index *index = &p->prepared.index;
    uint64_t end = index_first_above(index, SAMPLE, number), bins = 0, row[N_NUMBERS];

    if (end) {
        index_row(index, end - 1, row);
        if (row[SAMPLE] == number) {
            uint64_t first = number ? index_first_above(index, SAMPLE, number - 1) : 0;

            return find_bin(rc, p, number, first, end - first, ret, d);
        }
        if (row[FULL] > row[SAMPLE])
            return pack_mistrust(p, number, d);
        bins = row[SAMPLE] + 1 - row[FULL];
    }
    if (bins > number || number - bins >= p->split.n)
        return pack_mistrust(p, number, d);
    ret->n = 1;
    ret->piece = &ret->one;
    ret->one.tokens = p->tokens + 1;
    return split_place(rc, &p->split, ret->s, p->tokens, p->tokens, number - bins, &ret->one.start,
                       d);
}
