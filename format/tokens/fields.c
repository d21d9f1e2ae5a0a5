/* The fields of windows. `tokens` and `loss` are stored, and read as any stored field is; the
 * others follow from the tokens and from where documents begin. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/encode/encode.h"
#include "format/records/record_items.h"
#include "format/tokens/windows.h"

#define CHUNK 2048 /* tokens converted at once */

/* Bytes [off, off + len) of an item, which is written an element at a time. */
struct item_part {
    uint64_t off;
    size_t len;
    uint8_t *dst;
};

/* Write an element of so many bytes, or what the part has of it. */
static inline void item_put(const struct item_part *part, unsigned width, uint64_t element,
                            uint64_t value)
{
    uint64_t at = width * element;
    uint8_t bytes[8];

    store_le64(bytes, value);
    if (at >= part->off && at - part->off + width <= part->len) {
        memcpy(part->dst + (at - part->off), bytes, width);
        return;
    }
    for (unsigned i = 0; i < width; i++)
        if (at + i >= part->off && at + i - part->off < part->len)
            part->dst[at + i - part->off] = bytes[i];
}

/* The element that follows those of `width` bytes that the part touches. */
static uint64_t item_end(const struct item_part *part, unsigned width)
{
    return ceil_div(part->off + part->len, width);
}

enum derived { IS_TOKENS, IS_LOSS, IS_X, IS_Y, IS_DOC, IS_POS, IS_CU };

/* As stored: windows inside documents have no place that arithmetic tells. */
static int make_stored(struct read_context *rc, const struct window *x, enum derived what,
                       const struct item_part *part, struct diag *d)
{
    const struct token_stream *s = x->s;
    const struct blob *blob = what == IS_LOSS ? s->loss : s->base.blob;
    uint64_t width = what == IS_LOSS ? 1 : s->width, offset = what == IS_LOSS ? 0 : s->offset;
    uint64_t at = 0, off = part->off, end = part->off + part->len; /* bytes of the sample */
    int all = 0;

    for (size_t i = 0; i < x->n && off < end; i++) {
        uint64_t from = at, n;
        int r;

        at += x->piece[i].tokens * width;
        if (at <= off)
            continue;
        n = min_u64(at, end) - off;
        r = blob_read(rc, blob, part->dst + (off - part->off), n,
                      offset + x->piece[i].start * width + (off - from), d);
        if (r == 0)
            r = blob_used(rc, blob, d);
        off += n;
        if (!missing_go_on(rc, r, &all))
            return all;
    }
    for (uint64_t i = off / width; i < item_end(part, (unsigned)width) && off < end; i++)
        item_put(part, (unsigned)width, i, what == IS_LOSS ? 0 : x->w->pad);
    return all;
}

/* In packed windows: 0 where a piece begins, since nothing before it tells it. */
static int make_loss(struct read_context *rc, const struct window *x, enum derived what,
                     const struct item_part *part, struct diag *d)
{
    uint64_t at = 0;
    int r = 0;

    if (x->s->loss)
        r = make_stored(rc, x, what, part, d);
    for (size_t i = 0; i < x->n && r == 0; i++) {
        for (uint64_t k = max_u64(at, part->off);
             k < min_u64(at + x->piece[i].tokens, part->off + part->len) && !x->s->loss; k++)
            part->dst[k - part->off] = 1;
        item_put(part, 1, at, 0);
        at += x->piece[i].tokens;
    }
    for (; at <= x->w->tokens && r == 0; at++)
        item_put(part, 1, at, 0);
    return r;
}

/* Each token but the last, or but the first, as int64. */
static int make_wide(struct read_context *rc, const struct window *x, enum derived what,
                     const struct item_part *part, struct diag *d)
{
    const struct token_stream *s = x->s;
    uint64_t to = item_end(part, 8), first = what == IS_Y;
    uint8_t bytes[8 * CHUNK];
    int all = 0;

    for (uint64_t at = part->off / 8; at < to; at += CHUNK) {
        size_t n = (size_t)min_u64(CHUNK, to - at);
        const struct item_part chunk = {(first + at) * s->width, n * s->width, bytes};
        int r = make_stored(rc, x, IS_TOKENS, &chunk, d);

        if (!missing_go_on(rc, r, &all))
            break;
        for (size_t i = 0; i < n && r == 0; i++)
            item_put(part, 8, at + i, stream_token(s, bytes + i * s->width));
    }
    return all;
}

/* A walk over the places in a window where another document, or padding, begins. */
struct cuts {
    const struct window *x;
    uint64_t at; /* the last one of a packed window; next: its next piece */
    size_t next;
    struct boundaries boundaries; /* in the stream, of another window */
};

static int cuts_begin(struct read_context *rc, struct cuts *ret, const struct window *x,
                      struct diag *d)
{
    ret->x = x;
    ret->at = ret->next = 0;
    if (x->w->packed)
        return 0;
    return boundaries_begin(rc, &ret->boundaries, x->s, x->one.start, d);
}

/* 0 and the next cut, or `end` if none is before; or -errno with the reason in d. */
static int cuts_next(struct read_context *rc, struct cuts *cuts, uint64_t end, uint64_t *ret,
                     struct diag *d)
{
    const struct window *x = cuts->x;
    int r;

    *ret = end;
    if (x->w->packed) {
        if (cuts->next == x->n)
            return 0;
        cuts->at += x->piece[cuts->next++].tokens;
        *ret = min_u64(cuts->at, end);
        return 0;
    }
    r = boundaries_next(rc, &cuts->boundaries, ret, d);
    *ret = r == 1 ? min_u64(*ret - x->one.start, end) : end;
    return r < 0 ? r : 0;
}

/* For each token the number of its document in the window, or its place in that document. */
static int make_by_token(struct read_context *rc, const struct window *x, enum derived what,
                         const struct item_part *part, struct diag *d)
{
    uint64_t at = part->off / 4, to = item_end(part, 4), begin = 0, end;
    struct cuts cuts;
    uint32_t document = 0;
    int r = cuts_begin(rc, &cuts, x, d);

    if (r < 0)
        return r;
    while (at < to) {
        r = cuts_next(rc, &cuts, to, &end, d);
        if (r < 0)
            return r;
        for (; at < end; at++)
            item_put(part, 4, at, what == IS_DOC ? document : (uint32_t)(at - begin));
        begin = end;
        document++;
    }
    return 0;
}

/* Where the pieces of x begin, and then where it ends, for all the rest of [T + 1]. */
static int make_cu(struct read_context *rc, const struct window *x, enum derived what,
                   const struct item_part *part, struct diag *d)
{
    uint64_t to = item_end(part, 4), cut = 0;
    struct cuts cuts;
    int r = cuts_begin(rc, &cuts, x, d);

    (void)what;
    for (uint64_t at = 0; at < to && r == 0; at++) {
        if (at && cut < x->w->tokens)
            r = cuts_next(rc, &cuts, x->w->tokens, &cut, d);
        item_put(part, 4, at, (uint32_t)cut);
    }
    return r;
}

static const struct derived_field {
    enum derived what;
    const char *name;
    enum dtype dtype;
    bool without_last; /* it has T elements, not T + 1 */
    bool of_documents;
    int (*make)(struct read_context *rc, const struct window *x, enum derived what,
                const struct item_part *part, struct diag *d);
} derived[WINDOWS_FIELDS] = {
    {IS_TOKENS, "tokens", DTYPE_U1, false, false, make_stored},
    {IS_LOSS, "loss", DTYPE_U1, false, false, make_stored},
    {IS_X, "x", DTYPE_I8, true, false, make_wide},
    {IS_Y, "y", DTYPE_I8, true, false, make_wide},
    {IS_DOC, "doc", DTYPE_U4, false, true, make_by_token},
    {IS_POS, "pos", DTYPE_I4, false, true, make_by_token},
    {IS_CU, "cu", DTYPE_I4, false, true, make_cu},
};

static const struct derived_field packed_loss = {IS_LOSS, "loss", DTYPE_U1, false, true, make_loss};

static int made_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct derived_field *field = items->field->impl;
    const struct item_part part = {off, len, dst};
    AUTO_WINDOW struct window x = {0};
    int r = window_find(items->rc, items->ds, sample, &x, d);

    (void)before;
    return r < 0 ? r : field->make(items->rc, &x, field->what, &part, d);
}

static int tokens_fields_read_made(struct read_context *rc, const struct dataset *ds,
                                   const struct field *f, const struct selection *sel, uint64_t off,
                                   size_t len, uint8_t *dst, struct diag *d)
{
    struct record_items items;

    record_items_init(&items, rc, ds, f, sel);
    items.content = NULL;
    return record_items_read_even(&items, f->item_bytes, made_item, off, len, dst, d);
}

static const struct field_ops made_ops = {.read = tokens_fields_read_made};

static int tokens_fields_add_field(struct dataset *ds, const struct derived_field *what)
{
    const struct windows *w = windows_of(ds);
    bool is_stored = what->what == IS_TOKENS || what->what == IS_LOSS;
    bool has_runs = is_stored && !windows_by_document(w);
    enum dtype dtype = what->what == IS_TOKENS ? w->stream[0]->dtype : what->dtype;
    const struct field stored = {
        .dtype = dtype,
        .ndim = 1,
        .impl = what,
        .ops = has_runs ? NULL : &made_ops,
        .blob = is_stored ? ds->blob[0] : NULL, /* until it is prepared */
        .read_stored = is_stored && !has_runs ? tokens_fields_read_made : NULL,
        .run = !has_runs               ? NULL
               : what->what == IS_LOSS ? w->loss_run
                                       : w->run,
        .n_runs = has_runs ? w->n : 0,
        /* Windows overlap: the next is less than one window away. */
        .stored_step = has_runs ? w->step * dtype_info(dtype)->bytes : 0,
    };
    const uint64_t dim = w->tokens + !what->without_last;
    struct field *f = dataset_add_stored(ds, what->name, &stored, &dim);

    if (!f)
        return -ENOMEM;
    f->in = is_stored ? IN_ARRAYS | IN_RAW | IN_TAR : IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_PAGES;
    f->derived = !is_stored;
    f->base_field = is_stored ? NULL : &ds->field[0];
    return 0;
}

/* A field that only some of the files could have is none. */
static bool tokens_fields_has_field(const struct windows *w, const struct derived_field *field)
{
    bool has = true;

    for (unsigned i = 0; i < w->n && has; i++)
        has = (!field->of_documents || w->stream[i]->documents.table != DOCUMENTS_NONE) &&
              (field->make != make_stored || field->what != IS_LOSS || w->stream[i]->loss);
    return has;
}

int windows_add_fields(struct dataset *ds)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(derived) && r == 0; i++) {
        const struct derived_field *field =
            windows_of(ds)->packed && derived[i].what == IS_LOSS ? &packed_loss : &derived[i];

        if (tokens_fields_has_field(windows_of(ds), field))
            r = tokens_fields_add_field(ds, field);
    }
    if (r < 0)
        return r;
    dataset_add_numbering(ds);
    return dataset_add_folders(ds);
}
