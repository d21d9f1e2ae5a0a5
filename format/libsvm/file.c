#include "format/libsvm/file.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "base/text.h"

#define HEAD_SMALL 65536 /* bytes searched for the first row; more if it is not there */

/* ---- preparing ---- */

/* What a pass finds besides the rows. */
static void libsvm_keep(void *impl, struct kept *k)
{
    struct libsvm_file *file = impl;
    struct libsvm_totals *t = &file->totals;
    uint64_t largest = t->largest, largest_field = t->largest_field;

    kept_number(k, &largest, UINT32_MAX);
    kept_number(k, &largest_field, UINT32_MAX);
    kept_flag(k, &t->has_features);
    kept_flag(k, &t->has_zero);
    kept_number(k, &t->labels, file->base.blob->size); /* a label takes a byte */
    kept_number(k, &t->skipped, UINT64_MAX);
    kept_number(k, &t->text_lines, UINT64_MAX);
    kept_text(k, &file->rounded);
    t->largest = (uint32_t)largest;
    t->largest_field = (uint32_t)largest_field;
}

static int libsvm_load(void *impl, const struct index *index)
{
    const struct libsvm_file *file = impl;

    return places_fit(index, file->base.blob->size) ? 0 : -EBADMSG;
}

static int libsvm_begin(void *impl)
{
    struct libsvm_file *file = impl;

    libsvm_pass_init(&file->pass, file->base.blob, file->mark, file->columns, file->skip_bad, 0);
    file->pass.lines = file->header.lines;
    return 0;
}

static int libsvm_add_row(void *ctx, const struct row_place *place, uint64_t lines, int64_t qid)
{
    struct libsvm_file *file = ctx;

    return places_add(&file->places, file->base.prepared.builder, place, lines, qid);
}

/* The end of the pass. */
static int libsvm_end(struct libsvm_file *file)
{
    struct libsvm_rounded rounded = {0};
    AUTO_TEXT struct text t = {0};

    file->totals = (struct libsvm_totals){0};
    libsvm_pass_totals(&file->pass, &file->totals, &rounded);
    libsvm_pass_release(&file->pass);
    places_end(&file->places, file->base.prepared.end);
    libsvm_rounded_note(&rounded, blob_name(file->base.blob), ". The rows in svm/ have all digits",
                        &t);
    return text_finish(&t, &file->rounded, NULL);
}

static int libsvm_step(void *impl, struct diag *d)
{
    struct libsvm_file *file = impl;
    int r = libsvm_pass_step(&file->pass, libsvm_add_row, file, d);

    atomic_store_explicit(&file->base.prepared.seen, file->pass.at, memory_order_relaxed);
    if (r != 1)
        return r;
    r = blob_check(file->base.blob);
    if (r == 0)
        r = libsvm_end(file);
    return r < 0 ? r : 1;
}

/* What the header says, and where the rows differ. */
static void libsvm_note_header(struct libsvm_file *file)
{
    const struct libsvm_header *h = &file->header;
    uint64_t rows = file->base.prepared.index.rows + file->totals.skipped;
    bool fits = h->count[0] == rows && h->count[1] >= file->totals.largest;

    if (!h->counts)
        return;
    notes_add(&file->notes,
              "%s: line %llu is used as the header of a file with %llu rows and %llu features, "
              "not as a row%s",
              blob_name(file->base.blob), (unsigned long long)h->lines,
              (unsigned long long)h->count[0], (unsigned long long)h->count[1],
              fits ? "" : ". The file has others: is it complete?");
}

static void note_side(struct libsvm_file *file, const struct libsvm_side *side)
{
    AUTO_TEXT struct text t = {0};

    if (side->failed) {
        notes_add(&file->notes, "%s", side->reason.text);
        return;
    }
    if (side->blob)
        libsvm_rounded_note(&side->rounded, blob_name(side->blob), "", &t);
    if (t.len && !t.failed)
        notes_add(&file->notes, "%s", t.data);
}

static int libsvm_ready(void *impl, struct diag *d)
{
    struct libsvm_file *file = impl;
    const struct index *index = &file->base.prepared.index;
    int r = libsvm_sides_load(file->side, index->rows, file->totals.skipped,
                              places_run(index, index->rows), d);

    if (r < 0)
        return r;
    notes_add(&file->notes, "%s", file->base.prepared.unkept ? file->base.prepared.unkept : "");
    notes_add(&file->notes, "%s", file->rounded);
    for (unsigned i = 0; i < N_LIBSVM_SIDES; i++)
        note_side(file, &file->side[i]);
    libsvm_note_header(file);
    return 0;
}

/* dmlc's rule for parts counts the mark as part of the first line. */
static uint64_t file_cut(const void *p, uint64_t off)
{
    const struct libsvm_file *file = p;

    if (!off)
        return 0;
    if (off >= file->base.blob->size)
        return file->base.prepared.index.rows;
    return places_before(&file->base.prepared.index, max_u64(off, file->mark) + 1);
}

static void libsvm_file_release(void *p)
{
    struct libsvm_file *file = p;

    libsvm_pass_release(&file->pass);
    libsvm_sides_release(file->side);
    notes_release(&file->notes);
}

static const struct record_file_ops libsvm_file_ops = {
    .size = sizeof(struct libsvm_file),
    .index = {.version = "libsvm 6",
              .keep = libsvm_keep,
              .load = libsvm_load,
              .begin = libsvm_begin,
              .step = libsvm_step,
              .ready = libsvm_ready},
    .shape = PLACES_SHAPE,
    .side_by_side = true,
    .release = libsvm_file_release,
    .cut = file_cut,
};

/* ---- opening ---- */

static int read_columns(struct libsvm_file *file, size_t most, unsigned known, bool *ret_found,
                        struct diag *d)
{
    const struct blob *blob = file->base.blob;
    size_t len = (size_t)min_u64(most, blob->size), mark;
    AUTO_FREE uint8_t *text = calloc(len + LIBSVM_PAD, 1);
    struct libsvm_first first;
    int r = text ? blob_read(READ_WAITS, blob, text, len, 0, d) : -ENOMEM;

    if (r < 0)
        return r;
    mark = utf8_mark(text, len);
    if (len < blob->size) /* the last line continues after them */
        while (len > mark && text[len - 1] != '\n' && text[len - 1] != '\r')
            len--;
    first = libsvm_first_rows(text + mark, len - mark, true, known);
    *ret_found = first.is_found;
    file->columns = first.columns;
    file->header = first.header;
    file->mark = (unsigned)(mark + file->header.bytes);
    if (file->header.no_labels)
        return diag_set(d, -EBADMSG,
                        "%s: line %llu has the counts of a matrix, and its rows have no labels. "
                        "Give each row one: sed '1d; s/^/0 /' %s >train.svm",
                        blob_name(blob), (unsigned long long)file->header.lines, blob_name(blob));
    return 0;
}

int libsvm_file_new(struct blob *blob, unsigned columns, bool skip_bad,
                    const struct format_setup *setup, struct libsvm_file **ret, struct diag *d)
{
    struct libsvm_file *file;
    bool found = false;
    bool is_text = !(columns & LIBSVM_BINARY);
    int r =
        record_file_new(is_text ? &libsvm_file_ops : &libsvm_matrix_file_ops, blob, setup, &file);

    if (r < 0) {
        blob_free(blob);
        return r;
    }
    file->skip_bad = skip_bad;
    if (!is_text)
        r = libsvm_matrix_open(file, d);
    for (uint64_t most = HEAD_SMALL; is_text && r == 0 && !found; most *= 64) {
        r = read_columns(file, (size_t)most, columns, &found, d);
        if (most >= blob->size || most >= LIBSVM_LINE_MAX)
            break;
    }
    file->columns |= columns;
    if (r == 0 && is_text)
        r = text_print(&file->base.prepared.depends, " columns=%u skip=%d mark=%u", file->columns,
                       file->skip_bad, file->mark);
    if (r < 0)
        record_file_drop(&file->base);
    else
        *ret = file;
    return r;
}

/* ---- faults ---- */

/* Describe the text at the fault, up to the next white space, for the message. */
static void describe_found(const uint8_t *line, size_t len, size_t at, struct text *t)
{
    size_t n = 0;

    while (at + n < len && n < 40 && !text_is_blank(line[at + n]))
        n++;
    if (!n) {
        text_add(t, at >= len ? "the end of the line" : "white space");
        return;
    }
    text_add(t, "'");
    for (size_t i = at; i < at + n; i++)
        text_add(t, line[i] >= ' ' && line[i] < 127 ? "%c" : "\\x%02x", line[i]);
    text_add(t, "'");
}

static int describe_fault(const struct libsvm_file *file, uint64_t line_number, const uint8_t *line,
                          size_t len, const struct libsvm_fault *fault, struct diag *d)
{
    AUTO_TEXT struct text found = {0};

    if (fault->expected == libsvm_too_long)
        text_add(&found, "a longer one");
    else
        describe_found(line, len, fault->at, &found);
    return diag_set(d, -EBADMSG, "%s:%llu:%zu: expected %s, got %s", blob_name(file->base.blob),
                    (unsigned long long)line_number, fault->at + 1, fault->expected,
                    found.data ? found.data : "something else");
}

int libsvm_file_fault(const struct libsvm_file *file, uint64_t row, const uint8_t *line, size_t len,
                      const struct libsvm_fault *fault, struct diag *d)
{
    return describe_fault(file, places_lines(&file->base.prepared.index, row) + 1, line, len, fault,
                          d);
}

/* ---- checking ---- */

struct check {
    const struct libsvm_file *file;
    void (*report)(void *ctx, const char *text);
    void *ctx;
};

static void report_bad(struct libsvm_scan *scan, const uint8_t *line, size_t len,
                       const struct libsvm_fault *fault)
{
    const struct check *check = scan->ctx;
    struct diag d = DIAG_INIT;

    describe_fault(check->file, check->file->header.lines + scan->totals.text_lines + 1, line, len,
                   fault, &d);
    check->report(check->ctx, d.text);
}

static int ignore_row(void *ctx, const struct row_place *place, uint64_t lines, int64_t qid)
{
    (void)ctx;
    (void)qid;
    (void)place;
    (void)lines;
    return 0;
}

int libsvm_file_check(const struct libsvm_file *file, void (*report)(void *ctx, const char *text),
                      void *ctx, struct diag *d)
{
    struct check check = {file, report, ctx};
    AUTO(libsvm_pass_release) struct libsvm_pass pass = {0};
    int r;

    if (file->matrix)
        return libsvm_matrix_check(file, report, ctx, d);
    libsvm_pass_init(&pass, file->base.blob, file->mark, file->columns, true, 1);
    pass.scan[0].bad = report_bad;
    pass.scan[0].ctx = &check;
    do
        r = libsvm_pass_step(&pass, ignore_row, NULL, d);
    while (r == 0);
    for (unsigned i = 0; i < N_LIBSVM_SIDES; i++)
        if (file->side[i].failed)
            report(ctx, file->side[i].reason.text);
    return r < 0 ? r : blob_verify(file->base.blob, d);
}
