#include "format/libsvm/pass.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

#define PIECE (8u << 20)   /* bytes read at once */
#define SLICE (256u << 10) /* bytes scanned at once: with their masks they fit into a CPU cache */

int libsvm_mark_bytes(const struct blob *blob, unsigned *ret, struct diag *d)
{
    static const uint8_t mark[3] = {0xef, 0xbb, 0xbf};
    uint8_t head[3] = {0};
    int r = blob->size >= sizeof(head) ? blob_read(READ_WAITS, blob, head, sizeof(head), 0, d) : 0;

    if (r == 0)
        *ret = memcmp(head, mark, sizeof(mark)) ? 0 : sizeof(mark);
    return r;
}

void libsvm_pass_init(struct libsvm_pass *pass, const struct blob *blob, unsigned mark,
                      unsigned columns, bool skip_bad, unsigned threads)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    *pass = (struct libsvm_pass){.blob = blob, .threads = threads, .piece = PIECE, .mark = mark};
    if (!threads)
        pass->threads =
            (unsigned)min_u64((uint64_t)(processors < 1 ? 1 : processors), LIBSVM_PASS_THREADS);
    pass->at = mark;
    for (unsigned i = 0; i < pass->threads; i++) {
        pass->scan[i].columns = columns;
        pass->scan[i].skip_bad = skip_bad;
    }
}

void libsvm_pass_release(struct libsvm_pass *pass)
{
    for (unsigned i = 0; i < LIBSVM_PASS_THREADS; i++)
        libsvm_scan_release(&pass->scan[i]);
    free(pass->buffer);
    pass->buffer = NULL;
}

struct libsvm_totals libsvm_pass_totals(const struct libsvm_pass *pass)
{
    struct libsvm_totals sum = {0};

    for (unsigned i = 0; i < pass->threads; i++) {
        const struct libsvm_totals *t = &pass->scan[i].totals;

        sum.largest = t->largest > sum.largest ? t->largest : sum.largest;
        sum.largest_field =
            t->largest_field > sum.largest_field ? t->largest_field : sum.largest_field;
        sum.has_features = sum.has_features || t->has_features;
        sum.has_zero = sum.has_zero || t->has_zero;
        sum.labels = max_u64(sum.labels, t->labels);
        sum.skipped += t->skipped;
        sum.text_lines += t->text_lines;
    }
    return sum;
}

struct libsvm_rounded libsvm_pass_rounded(const struct libsvm_pass *pass)
{
    struct libsvm_rounded sum = {0};

    for (unsigned i = 0; i < pass->threads; i++)
        libsvm_rounded_merge(&sum, &pass->scan[i].rounded);
    return sum;
}

/* Call work(arg) for each of n arguments of that size, the first in this thread, the others in
 * threads of their own. If a thread cannot start, this thread does its work at the end. */
static void run_together(unsigned n, void *(*work)(void *arg), void *args, size_t size)
{
    pthread_t id[LIBSVM_PASS_THREADS];
    bool runs[LIBSVM_PASS_THREADS] = {false};

    for (unsigned i = 1; i < n; i++)
        runs[i] = pthread_create(&id[i], NULL, work, (uint8_t *)args + i * size) == 0;
    for (unsigned i = 0; i < n; i++) {
        if (runs[i])
            pthread_join(id[i], NULL);
        else
            work((uint8_t *)args + i * size);
    }
}

/* ---- scanning a piece ---- */

/* A thread's share of a piece: whole lines, except at the end of the file. */
struct share {
    struct libsvm_scan *scan;
    const uint8_t *text;
    size_t from, to;
    bool last;
    uint64_t lines; /* that the scan has seen before */
    int result;
};

static void *scan_share(void *arg)
{
    struct share *share = arg;
    size_t at = share->from, slice = SLICE;

    share->result = 0;
    while (at < share->to && share->result == 0) {
        size_t end = (size_t)min_u64(share->to, at + slice), used = at;

        share->result = libsvm_scan_text(share->scan, share->text, at, end,
                                         share->last && end == share->to, &used);
        slice = used == at ? slice * 2 : SLICE;
        at = used;
    }
    return NULL;
}

/* The end of the last line that ends in text[from, to); from: none does. A CR at the very end may
 * be half of a CRLF; it counts as a line end. */
static size_t last_line_end(const uint8_t *text, size_t from, size_t to)
{
    const uint8_t *lf = memrchr(text + from, '\n', to - from);
    const uint8_t *behind = lf ? lf + 1 : text + from;
    const uint8_t *cr = memrchr(behind, '\r', (size_t)(text + to - behind));

    return (size_t)((cr ? cr + 1 : behind) - text);
}

/* Cut text[0, len), which is whole lines, into a share for each thread. Returns the number of
 * shares. */
static unsigned make_shares(struct libsvm_pass *pass, const uint8_t *text, size_t len, bool last,
                            struct share shares[static LIBSVM_PASS_THREADS])
{
    size_t from = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < pass->threads && from < len; i++) {
        size_t to = i + 1 == pass->threads || len < SLICE
                        ? len
                        : last_line_end(text, from, len / pass->threads * (i + 1));

        if (to <= from)
            continue;
        pass->scan[i].n = 0;
        pass->scan[i].at = pass->at;
        shares[n++] = (struct share){
            .scan = &pass->scan[i],
            .text = text,
            .from = from,
            .to = to,
            .last = last && to == len,
            .lines = pass->scan[i].totals.text_lines,
        };
        from = to;
    }
    return n;
}

static int scan_piece(struct libsvm_pass *pass, const uint8_t *text, size_t len, bool last,
                      libsvm_row_fn *row, void *ctx)
{
    struct share shares[LIBSVM_PASS_THREADS];
    unsigned n = make_shares(pass, text, len, last, shares);
    int r = 0;

    run_together(n, scan_share, shares, sizeof(shares[0]));
    for (unsigned i = 0; i < n; i++)
        r = r < 0 ? r : shares[i].result;

    for (unsigned i = 0; i < n && r == 0; i++) {
        const struct share *share = &shares[i];

        for (size_t k = 0; k < share->scan->n && r == 0; k++) {
            const struct libsvm_span *span = &share->scan->row[k];
            const struct row_place place = {pass->at + span->start, span->len, span->features};

            r = row(ctx, &place, pass->lines + span->line - share->lines, span->qid);
        }
        pass->lines += share->scan->totals.text_lines - share->lines;
    }
    return r;
}

/* ---- reading ---- */

/* A thread's part of a read. */
struct fetch {
    const struct blob *blob;
    uint8_t *dst;
    size_t len;
    uint64_t off;
    int result;
    struct diag why;
};

static void *run_fetch(void *arg)
{
    struct fetch *fetch = arg;

    fetch->result =
        blob_read(READ_WAITS, fetch->blob, fetch->dst, fetch->len, fetch->off, &fetch->why);
    return NULL;
}

static int libsvm_pass_read_together(const struct libsvm_pass *pass, uint8_t *dst, size_t len,
                                     uint64_t off, struct diag *d)
{
    struct fetch fetch[LIBSVM_PASS_THREADS];
    unsigned n = len < SLICE ? 1 : pass->threads;
    size_t done = 0;
    int r = 0;

    for (unsigned i = 0; i < n; i++) {
        size_t part = i + 1 == n ? len - done : len / n;

        fetch[i] = (struct fetch){pass->blob, dst + done, part, off + done, 0, DIAG_INIT};
        done += part;
    }
    run_together(n, run_fetch, fetch, sizeof(fetch[0]));
    for (unsigned i = 0; i < n; i++)
        if (r == 0 && fetch[i].result < 0)
            r = diag_set(d, fetch[i].result, "%s", fetch[i].why.text);
    return r;
}

/* Read len bytes at pass->at; the byte before them is the file's previous byte, or LF. */
static int read_piece(struct libsvm_pass *pass, size_t len, uint8_t **ret_text, struct diag *d)
{
    size_t need = len + 2 * LIBSVM_SCAN_PAD;
    uint8_t *text;
    int r = 0;

    if (need > pass->capacity) {
        free(pass->buffer);
        pass->capacity = 0;
        pass->buffer = malloc(need);
        if (!pass->buffer)
            return -ENOMEM;
        pass->capacity = need;
    }
    text = pass->buffer + LIBSVM_SCAN_PAD;
    memset(pass->buffer, '\n', LIBSVM_SCAN_PAD);
    memset(text + len, 0, LIBSVM_SCAN_PAD);
    if (pass->at > pass->mark)
        r = blob_read(READ_WAITS, pass->blob, text - 1, 1, pass->at - 1, d);
    if (r == 0)
        r = libsvm_pass_read_together(pass, text, len, pass->at, d);
    if (r < 0)
        return r;
    *ret_text = text;
    return 0;
}

/* Finish a line that is longer than a row may be; its end has been found. */
static int end_long_line(struct libsvm_pass *pass, libsvm_row_fn *row, void *ctx)
{
    static const struct libsvm_fault fault = {0, libsvm_too_long};
    struct libsvm_scan *scan = &pass->scan[0];
    bool is_row = pass->long_is_row;

    if (is_row && scan->bad)
        scan->bad(scan, (const uint8_t *)"", 0, &fault);
    scan->totals.skipped += is_row && scan->skip_bad;
    scan->totals.text_lines++;
    pass->lines++;
    pass->in_long_line = false;
    pass->piece = PIECE;
    return is_row && !scan->skip_bad ? row(ctx, &pass->long_line, pass->lines - 1, PLACES_NO_QID)
                                     : 0;
}

/* The first byte of text[0, len) that ends a line; len: none does. */
static size_t first_line_end(const uint8_t *text, size_t len)
{
    const uint8_t *lf = memchr(text, '\n', len);
    size_t n = lf ? (size_t)(lf - text) : len;
    const uint8_t *cr = memchr(text, '\r', n);

    return cr ? (size_t)(cr - text) : n;
}

/* Continue in such a line. */
static int pass_long_line(struct libsvm_pass *pass, libsvm_row_fn *row, void *ctx, struct diag *d)
{
    size_t len = (size_t)min_u64(PIECE, pass->blob->size - pass->at), i;
    uint8_t *text = NULL;
    int r = read_piece(pass, len, &text, d);
    bool found;

    if (r < 0)
        return r;
    if (!pass->in_long_line) {
        pass->in_long_line = true;
        pass->long_line = (struct row_place){.start = pass->at};
        pass->long_is_row = libsvm_is_row(text, len);
    }
    i = first_line_end(text, len);
    found = i < len;
    pass->long_line.len += i;
    pass->at += i + found;
    if (found || pass->at == pass->blob->size)
        r = end_long_line(pass, row, ctx);
    return r < 0 ? r : pass->at == pass->blob->size;
}

int libsvm_pass_step(struct libsvm_pass *pass, libsvm_row_fn *row, void *ctx, struct diag *d)
{
    uint64_t left = pass->blob->size - pass->at;
    size_t len = (size_t)min_u64(pass->piece, left), used;
    bool last = len == left;
    uint8_t *text = NULL;
    int r;

    if (!left)
        return 1;
    if (pass->in_long_line)
        return pass_long_line(pass, row, ctx, d);
    r = read_piece(pass, len, &text, d);
    if (r < 0)
        return r;
    used = last ? len : last_line_end(text, 0, len);
    if (!used && len > LIBSVM_LINE_MAX)
        return pass_long_line(pass, row, ctx, d);
    r = scan_piece(pass, text, used, last, row, ctx);
    if (r < 0)
        return r;
    pass->piece = used ? PIECE : (size_t)min_u64(pass->piece * 2, LIBSVM_LINE_MAX + 1);
    pass->at += used;
    return pass->at == pass->blob->size;
}
