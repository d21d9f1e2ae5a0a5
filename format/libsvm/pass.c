#include "format/libsvm/pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/thread.h"

#define PIECE (8u << 20)   /* bytes read at once */
#define SLICE (256u << 10) /* bytes scanned at once: with their masks they fit into a CPU cache */

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

void libsvm_pass_totals(const struct libsvm_pass *pass, struct libsvm_totals *totals,
                        struct libsvm_rounded *rounded)
{
    for (unsigned i = 0; i < pass->threads; i++) {
        libsvm_totals_add(totals, &pass->scan[i].totals);
        libsvm_rounded_merge(rounded, &pass->scan[i].rounded);
    }
}

/* A thread's part of a piece: bytes to read; then whole lines, except at the end of the file. */
struct part {
    const struct libsvm_pass *pass;
    struct libsvm_scan *scan;
    uint8_t *text; /* of the piece */
    size_t from, to;
    bool last;
    uint64_t lines; /* that the scan has seen before */
    int result;
    struct diag why;
};

/* Work on each of n parts, the first in this thread, the others in threads of their own. If a
 * thread cannot start, this thread does its work at the end. 0, or the first error. */
static int run_together(struct part *part, unsigned n, void *(*work)(void *part), struct diag *d)
{
    pthread_t id[LIBSVM_PASS_THREADS];
    bool runs[LIBSVM_PASS_THREADS] = {false};
    int r = 0;

    for (unsigned i = 1; i < n; i++)
        runs[i] = thread_start(&id[i], work, &part[i]) == 0;
    for (unsigned i = 0; i < n; i++) {
        if (runs[i])
            pthread_join(id[i], NULL);
        else
            work(&part[i]);
        if (r == 0 && part[i].result < 0)
            r = part[i].why.set ? diag_set(d, part[i].result, "%s", part[i].why.text)
                                : part[i].result;
    }
    return r;
}

/* ---- scanning a piece ---- */

static void *scan_part(void *arg)
{
    struct part *part = arg;
    size_t at = part->from, slice = SLICE;

    part->result = 0;
    while (at < part->to && part->result == 0) {
        size_t end = (size_t)min_u64(part->to, at + slice), used = at;

        part->result =
            libsvm_scan_text(part->scan, part->text, at, end, part->last && end == part->to, &used);
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

/* Cut text[0, len), which is whole lines, into a part for each thread. Returns the number of parts.
 */
static unsigned cut_lines(struct libsvm_pass *pass, uint8_t *text, size_t len, bool last,
                          struct part part[static LIBSVM_PASS_THREADS])
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
        part[n++] = (struct part){
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

static int scan_piece(struct libsvm_pass *pass, uint8_t *text, size_t len, bool last,
                      libsvm_row_fn *row, void *ctx)
{
    struct part part[LIBSVM_PASS_THREADS];
    unsigned n = cut_lines(pass, text, len, last, part);
    int r = run_together(part, n, scan_part, NULL);

    for (unsigned i = 0; i < n && r == 0; i++) {
        const struct libsvm_scan *scan = part[i].scan;

        for (size_t k = 0; k < scan->n && r == 0; k++) {
            const struct libsvm_span *span = &scan->row[k];
            const struct row_place place = {pass->at + span->start, span->len, span->features};

            r = row(ctx, &place, pass->lines + span->line - part[i].lines, span->qid);
        }
        pass->lines += scan->totals.text_lines - part[i].lines;
    }
    return r;
}

/* ---- reading ---- */

static void *fetch_part(void *arg)
{
    struct part *part = arg;

    part->result = blob_read(READ_WAITS, part->pass->blob, part->text + part->from,
                             part->to - part->from, part->pass->at + part->from, &part->why);
    return NULL;
}

static int libsvm_pass_read_together(const struct libsvm_pass *pass, uint8_t *text, size_t len,
                                     struct diag *d)
{
    struct part part[LIBSVM_PASS_THREADS];
    unsigned n = len < SLICE ? 1 : pass->threads;

    for (unsigned i = 0; i < n; i++)
        part[i] = (struct part){.pass = pass,
                                .text = text,
                                .from = len / n * i,
                                .to = i + 1 == n ? len : len / n * (i + 1),
                                .why = DIAG_INIT};
    return run_together(part, n, fetch_part, d);
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
        r = libsvm_pass_read_together(pass, text, len, d);
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

/* Go on in such a line, or begin one, with text[0, len) at pass->at. */
static int pass_long_line(struct libsvm_pass *pass, const uint8_t *text, size_t len,
                          libsvm_row_fn *row, void *ctx)
{
    size_t end = first_line_end(text, len);

    if (!pass->in_long_line) {
        pass->in_long_line = true;
        pass->long_line = (struct row_place){.start = pass->at};
        pass->long_is_row = libsvm_is_row(text, len);
    }
    pass->long_line.len += end;
    pass->at += end + (end < len);
    return end < len || pass->at == pass->blob->size ? end_long_line(pass, row, ctx) : 0;
}

int libsvm_pass_step(struct libsvm_pass *pass, libsvm_row_fn *row, void *ctx, struct diag *d)
{
    uint64_t left = pass->blob->size - pass->at;
    size_t len = (size_t)min_u64(pass->in_long_line ? PIECE : pass->piece, left), used;
    bool last = len == left;
    uint8_t *text = NULL;
    int r;

    if (!left)
        return 1;
    r = read_piece(pass, len, &text, d);
    if (r < 0)
        return r;
    used = last ? len : last_line_end(text, 0, len);
    if (pass->in_long_line || (!used && len > LIBSVM_LINE_MAX)) {
        r = pass_long_line(pass, text, len, row, ctx);
        return r < 0 ? r : pass->at == pass->blob->size;
    }
    r = scan_piece(pass, text, used, last, row, ctx);
    if (r < 0)
        return r;
    pass->piece = used ? PIECE : (size_t)min_u64(pass->piece * 2, LIBSVM_LINE_MAX + 1);
    pass->at += used;
    return pass->at == pass->blob->size;
}
