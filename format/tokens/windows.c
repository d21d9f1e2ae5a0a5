#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"
#include "format/tokens/packing.h"

#define ABOUT_TOKENS 8192 /* that `info` looks at */

#define FETCH_AHEAD 128 /* streams whose indexes are requested ahead */

extern const struct format format_tokens;

int window_find(struct read_context *rc, const struct dataset *ds, uint64_t sample,
                struct window *ret, struct diag *d)
{
    const struct windows *w = windows_of(ds);
    size_t i = search_last_up_to(w->first, sizeof(*w->first), w->n, sample);
    uint64_t number = sample - w->first[i];

    *ret = (struct window){.w = w, .s = w->stream[i], .n = 1};
    ret->piece = &ret->one;
    if (w->packed)
        return packing_find(rc, ret->s->packing, number, ret, d);
    ret->one = (struct piece){number * w->step, w->tokens + 1};
    return w->split ? split_place(rc, &w->split[i], ret->s, w->tokens, w->step, number,
                                  &ret->one.start, d)
                    : 0;
}

void window_release(struct window *x)
{
    if (x->piece != &x->one)
        free(x->piece);
}

/* ---- preparing ---- */

static int place_streams(struct dataset *ds, struct diag *d)
{
    struct windows *w = ds->impl;
    uint64_t used = 0, tokens = 0;

    for (unsigned i = 0; i < w->n; i++) {
        const struct token_stream *s = w->stream[i];
        uint64_t n = w->packed  ? s->packing->samples
                     : w->split ? w->split[i].n
                                : windows_in(s->tokens, w->tokens, w->step);

        if (!checked_add(w->first[i], n, &w->first[i + 1]) || w->first[i + 1] > INT64_MAX)
            return diag_set(d, -EFBIG, "expected at most %lld windows", (long long)INT64_MAX);
        w->run[i] = (struct field_run){w->first[i], s->base.blob, s->offset};
        w->loss_run[i] = (struct field_run){w->first[i], s->loss, 0};
        tokens += s->tokens;
        used += n && !windows_by_document(w) ? (n - 1) * w->step + w->tokens + 1 : 0;
    }
    w->left_over = windows_by_document(w) ? 0 : tokens - used;
    return 0;
}

static void set_fields(struct dataset *ds)
{
    struct windows *w = ds->impl;

    for (unsigned i = 0; i < ds->n_fields; i++) {
        struct field *f = &ds->field[i];

        if (!f->run)
            continue;
        f->blob = f->run[0].blob;
        f->offset = f->run[0].offset;
    }
    dataset_set_samples(ds, w->first[w->n]);
}

static void tokens_windows_add_notes(struct dataset *ds)
{
    const struct windows *w = windows_of(ds);
    AUTO_TEXT struct text t = {0};
    uint64_t most = 0;

    for (unsigned i = 0; i < w->n; i++) {
        most = max_u64(most, w->stream[i]->tokens);
        if (w->stream[i]->note.data)
            text_add(&t, "%s", w->stream[i]->note.data);
    }
    if (!ds->samples)
        text_add(&t, "no window of seq_len=%llu fits%s: %s %llu tokens\n",
                 (unsigned long long)w->tokens, windows_by_document(w) ? " a document" : "",
                 w->n > 1 ? "no file has more than" : "the file has", (unsigned long long)most);
    if (t.len)
        notes_add(&ds->notes, "%s", t.data);
}

/* Ask for the indexes of the next streams at once: each takes a round trip if it is far. */
static void tokens_windows_fetch_ahead(struct windows *w)
{
    w->fetched = w->fetched > w->ready ? w->fetched : w->ready;
    while (w->fetched < w->n && w->fetched < w->ready + FETCH_AHEAD)
        stream_fetch(w->stream[w->fetched++]);
}

static int windows_prepare(struct dataset *ds, struct diag *d)
{
    struct windows *w = ds->impl;

    while (w->ready < w->n) {
        struct token_stream *s = w->stream[w->ready];
        int r;

        tokens_windows_fetch_ahead(w);
        r = stream_prepare(s, d);
        if (r == 1 && w->packed)
            r = prepared_step(&s->packing->prepared, d);
        else if (r == 1 && w->split)
            r = split_prepare(&w->split[w->ready], s, w->tokens, w->step, NULL, NULL, d);
        if (r < 1)
            return r;
        w->ready++;
    }
    int r = place_streams(ds, d);

    if (r < 0)
        return r;
    set_fields(ds);
    tokens_windows_add_notes(ds);
    return 1;
}

static void windows_progress(const struct dataset *ds, uint64_t *ret_done, uint64_t *ret_total)
{
    const struct windows *w = windows_of(ds);
    unsigned ready = w->ready;

    *ret_done = *ret_total = 0;
    for (unsigned i = 0; i < w->n; i++) {
        uint64_t bytes = w->stream[i]->index ? w->stream[i]->index->size : w->stream[i]->width;

        *ret_total += bytes;
        *ret_done += i < ready ? bytes : 0;
    }
}

/* ---- what is told of a dataset ---- */

/* The tokens of a packed dataset, what is in no sample, and how much of the samples is padding. */
struct packed_counts {
    uint64_t left_over, documents, padding;
};

static struct packed_counts count_packed(const struct windows *w)
{
    struct packed_counts sum = {0};

    for (unsigned i = 0; i < w->n; i++) {
        const struct packing *p = w->stream[i]->packing;

        sum.documents += p->left_over;
        sum.left_over +=
            w->stream[i]->tokens - (p->predicted + w->stream[i]->documents.n - p->left_over);
        /* A full window, or a piece, has a token more than are predicted in it. */
        sum.padding +=
            p->samples * (p->tokens + 1) - (p->predicted + p->split.n + p->prepared.index.rows);
    }
    return sum;
}

static void describe_packing(const struct windows *w, const char *indent, struct text *t)
{
    struct packed_counts sum = count_packed(w);

    json_add_number(t, indent, "pack", w->stream[0]->packing->together);
    json_add_number(t, indent, "pad", w->pad);
    json_add_number(t, indent, "padding", sum.padding);
    json_add_number(t, indent, "left_over", sum.left_over);
    json_add_number(t, indent, "left_over_documents", sum.documents);
}

static void windows_describe(const struct dataset *ds, const char *indent, struct text *t)
{
    const struct windows *w = windows_of(ds);
    uint64_t tokens = 0, documents = 0;
    bool known = true;

    for (unsigned i = 0; i < w->n; i++) {
        tokens += w->stream[i]->tokens;
        documents += w->stream[i]->documents.n;
        known = known && w->stream[i]->documents.table != DOCUMENTS_NONE;
    }
    json_add_number(t, indent, "tokens", tokens);
    json_add_number(t, indent, "seq", w->tokens);
    json_add_number(t, indent, "stride", w->step);
    if (w->packed)
        describe_packing(w, indent, t);
    else if (!w->split)
        json_add_number(t, indent, "left_over", w->left_over);
    if (known)
        json_add_number(t, indent, "documents", documents);
}

static int windows_check(const struct dataset *ds, void (*report)(void *ctx, const char *text),
                         void *ctx, struct diag *d)
{
    const struct windows *w = windows_of(ds);
    int r = w->n == 1 ? stream_check(w->stream[0], d) : 0; /* others are checked alone */

    if (r == -EBADMSG) {
        report(ctx, diag_text(d, r));
        d->set = false;
        r = 0;
    }
    return r;
}

/* What a person sees a wrong type by: letters read as pairs of letters are large. */
static void windows_about(const struct dataset *ds, struct text *t)
{
    const struct windows *w = windows_of(ds);
    const struct token_stream *s = w->stream[0];
    uint64_t n = min_u64(s->tokens, ABOUT_TOKENS), largest;
    uint8_t first[8 * 8];
    size_t some = (size_t)min_u64(n, 8);

    if (!n || blob_read(READ_WAITS, s->base.blob, first, some * s->width, s->offset, NULL) < 0 ||
        stream_largest(s, n, &largest, NULL) < 0)
        return;
    text_add(t, "    first   ");
    for (size_t i = 0; i < some; i++)
        text_add(t, " %lld", (long long)stream_token(s, first + i * s->width));
    text_add(t, "%s; the largest of the first %llu is %lld\n", s->tokens > some ? " ..." : "",
             (unsigned long long)n, (long long)largest);
    if (w->packed && ds->samples) {
        struct packed_counts sum = count_packed(w);

        text_add(
            t,
            "    packed   %.2f %% of the samples are padding; %llu tokens, of %llu documents of "
            "fewer than 2 tokens, are in none\n",
            100.0 * (double)sum.padding / ((double)ds->samples * (double)(w->tokens + 1)),
            (unsigned long long)sum.left_over, (unsigned long long)sum.documents);
    }
}

static void windows_checked(const struct dataset *ds, struct text *t)
{
    const struct windows *w = windows_of(ds);

    if (w->n == 1)
        stream_add_largest(w->stream[0], t);
}

static unsigned split_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                              struct extent *ret)
{
    /* Finding a window takes reading where documents begin. */
    (void)ds;
    (void)sample;
    (void)only;
    (void)ret;
    return 0;
}

static void split_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                         struct text *t)
{
    AUTO_WINDOW struct window x = {0};

    if ((only && only->numbering) || window_find(READ_WAITS, ds, sample, &x, NULL) < 0)
        return;
    for (size_t i = 0; i < x.n; i++)
        text_add(t, "%s%s:%llu+%llu", i ? " " : "", blob_name(x.s->base.blob),
                 (unsigned long long)(x.s->offset + x.piece[i].start * x.s->width),
                 (unsigned long long)(x.piece[i].tokens * x.s->width));
}

static void tokens_windows_release(struct windows *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        record_file_drop(&w->stream[i]->base);
        free(w->split ? w->split[i].before : NULL);
    }
    free(w->stream);
    free(w->split);
    free(w->first);
    free(w->run);
    free(w->loss_run);
    free(w);
}

static void windows_free(struct dataset *ds)
{
    ds->n_blobs = 0; /* the streams own them */
    if (ds->impl)
        tokens_windows_release(ds->impl);
}

#define WINDOWS_OPS                                                                                \
    .prepare = windows_prepare, .progress = windows_progress, .check = windows_check,              \
    .describe = windows_describe, .about = windows_about, .checked = windows_checked,              \
    .free = windows_free, .checks_reads = true

static const struct dataset_ops windows_ops = {WINDOWS_OPS};
static const struct dataset_ops split_ops = {WINDOWS_OPS, .locate = split_locate,
                                             .extents = split_extents};

static struct windows *make_windows(struct record_file *const *file, unsigned n,
                                    const struct format_setup *setup)
{
    const struct format_options *options = &setup->options;
    struct windows *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->tokens = options->seq;
    w->step = options->stride ? options->stride : options->seq;
    w->stream = calloc(n, sizeof(struct token_stream *));
    w->first = calloc((size_t)n + 1, sizeof(*w->first));
    w->run = calloc(n, sizeof(*w->run));
    w->loss_run = calloc(n, sizeof(*w->loss_run));
    w->packed = options->pack;
    w->pad = options->pad;
    w->split = w->packed || !options->split_docs ? NULL : calloc(n, sizeof(*w->split));
    if (!w->stream || !w->first || !w->run || !w->loss_run ||
        (options->split_docs && !w->packed && !w->split)) {
        tokens_windows_release(w);
        return NULL;
    }
    for (; w->n < n; w->n++) {
        record_file_share(file[w->n]);
        w->stream[w->n] = (struct token_stream *)file[w->n];
    }
    return w;
}

int windows_new(struct record_file *const *file, unsigned n, const struct format_setup *setup,
                struct dataset **ret)
{
    struct windows *w = make_windows(file, n, setup);
    AUTO_DATASET struct dataset *ds = NULL;
    int r = dataset_new(&format_tokens, w && windows_by_document(w) ? &split_ops : &windows_ops, w,
                        WINDOWS_FIELDS + 2, 3 * (size_t)n, &ds);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < n; i++) {
        struct blob *const blob[] = {file[i]->blob, w->stream[i]->index, w->stream[i]->loss};

        for (unsigned k = 0; k < ARRAY_LEN(blob); k++)
            if (blob[k])
                ds->blob[ds->n_blobs++] = blob[k];
    }
    ds->shares_blobs = true;
    r = windows_add_fields(ds);
    if (r == 0)
        *ret = TAKE_PTR(ds);
    return r;
}
