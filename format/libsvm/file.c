/* The states of a file in libsvm_file_prepare():
 *
 *     new -> ready an earlier mount kept the index
 *     new -> indexing no index was kept
 *     indexing -> ready the pass has finished; the index is kept, or stays in memory
 *     any     -> failed    for good
 *
 * An index is kept under the identity of the file and of the options it was read with. */
#include "format/libsvm/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "base/text.h"

#define HEAD_SMALL 65536 /* bytes searched for the first row; more if it is not there */

/* Numbers of 8 bytes that are kept with the index. */
enum { ABOUT_LARGEST, ABOUT_FLAGS, ABOUT_LABELS, ABOUT_SKIPPED, ABOUT_LINES, N_ABOUT };
enum { FLAG_FEATURES = 1, FLAG_ZERO = 2 };

/* The columns of the first readable row in the first bytes. false: there is none. */
static bool find_columns(const uint8_t *text, size_t len, bool from_one, unsigned *ret)
{
    for (size_t at = 0, n; at < len; at += n + 1) {
        struct libsvm_row row = {0};
        struct libsvm_fault fault;

        for (n = 0; at + n < len && text[at + n] != '\n' && text[at + n] != '\r';)
            n++;
        if (libsvm_is_row(text + at, n) &&
            libsvm_line_parse(text + at, n, LIBSVM_ANY | (from_one ? LIBSVM_FROM_ONE : 0u), &row,
                              &fault) == 0) {
            *ret = row.columns;
            return true;
        }
    }
    return false;
}

static int read_columns(struct libsvm_file *file, size_t most, bool from_one, bool *ret_found,
                        struct diag *d)
{
    AUTO_FREE uint8_t *text = NULL;
    unsigned mark = 0;
    size_t len;
    int r = libsvm_mark_bytes(file->blob, &mark, d);

    if (r < 0)
        return r;
    len = (size_t)min_u64(most, file->blob->size - mark);
    text = malloc(len + LIBSVM_PAD);
    if (!text)
        return -ENOMEM;
    memset(text + len, 0, LIBSVM_PAD);
    r = blob_read(READ_WAITS, file->blob, text, len, mark, d);
    if (r < 0)
        return r;
    file->mark = mark;
    if (len + mark < file->blob->size) /* the last line continues after them */
        while (len && text[len - 1] != '\n' && text[len - 1] != '\r')
            len--;
    *ret_found = find_columns(text, len, from_one, &file->columns);
    return 0;
}

int libsvm_file_new(struct blob *blob, bool from_one, bool skip_bad, const struct index_store *keep,
                    struct libsvm_file **ret, struct diag *d)
{
    struct libsvm_file *file = calloc(1, sizeof(*file));
    bool found = false;
    int r = 0;

    if (!file) {
        blob_free(blob);
        return -ENOMEM;
    }
    file->blob = blob;
    file->skip_bad = skip_bad;
    file->keep = keep;
    file->users = 1;
    for (uint64_t most = HEAD_SMALL; r == 0 && !found; most *= 64) {
        r = read_columns(file, (size_t)most, from_one, &found, d);
        if (most >= blob->size || most >= LIBSVM_LINE_MAX)
            break;
    }
    if (r < 0) {
        libsvm_file_drop(file);
        return r;
    }
    if (from_one)
        file->columns |= LIBSVM_FROM_ONE;
    *ret = file;
    return 0;
}

void libsvm_file_drop(struct libsvm_file *file)
{
    if (!file || --file->users)
        return;
    libsvm_pass_release(&file->pass);
    index_builder_free(file->builder);
    kept_index_release(&file->kept);
    libsvm_sides_release(file->side);
    blob_free(file->blob);
    free(file);
}

/* ---- preparing ---- */

static int index_identity(const struct libsvm_file *file, char **ret)
{
    AUTO_FREE char *identity = NULL;
    int r = blob_identity(file->blob, &identity);
    char *text;

    if (r < 0)
        return r;
    if (asprintf(&text, "libsvm 2 %s columns=%u skip=%d", identity, file->columns, file->skip_bad) <
        0)
        return -ENOMEM;
    *ret = text;
    return 0;
}

static void totals_to_about(const struct libsvm_totals *t, uint8_t ret[static 8 * N_ABOUT])
{
    const uint64_t number[N_ABOUT] = {
        [ABOUT_LARGEST] = t->largest,
        [ABOUT_FLAGS] = (t->has_features ? FLAG_FEATURES : 0u) | (t->has_zero ? FLAG_ZERO : 0u),
        [ABOUT_LABELS] = t->labels,
        [ABOUT_SKIPPED] = t->skipped,
        [ABOUT_LINES] = t->text_lines,
    };

    for (unsigned i = 0; i < N_ABOUT; i++)
        store_le64(ret + 8 * i, number[i]);
}

/* false: the index is none of this file. */
static bool totals_from_about(const struct index *index, struct libsvm_totals *ret)
{
    uint64_t number[N_ABOUT];

    if (index->about_len != sizeof(number))
        return false;
    for (unsigned i = 0; i < N_ABOUT; i++)
        number[i] = load_le64(index->about + 8 * i);
    *ret = (struct libsvm_totals){
        .largest = (uint32_t)number[ABOUT_LARGEST],
        .has_features = number[ABOUT_FLAGS] & FLAG_FEATURES,
        .has_zero = number[ABOUT_FLAGS] & FLAG_ZERO,
        .labels = number[ABOUT_LABELS],
        .skipped = number[ABOUT_SKIPPED],
        .text_lines = number[ABOUT_LINES],
    };
    return true;
}

/* Load the index that an earlier mount kept. false: there is none, or it is damaged. */
static bool take_kept(struct libsvm_file *file, const char *identity)
{
    if (index_store_load(file->keep, "rows", identity, &file->kept) < 0)
        return false;
    if (index_open(file->kept.bytes, file->kept.size, &file->index) == 0 &&
        places_fit(&file->index, file->blob->size) &&
        totals_from_about(&file->index, &file->totals) &&
        file->totals.labels <= file->blob->size) /* a label takes a byte */
        return true;
    kept_index_release(&file->kept);
    index_store_remove(file->keep, "rows", identity);
    return false;
}

static int begin(struct libsvm_file *file)
{
    AUTO_FREE char *identity = NULL;
    int r = index_identity(file, &identity);

    if (r < 0)
        return r;
    file->begun = true;
    if (take_kept(file, identity))
        return 1;
    libsvm_pass_init(&file->pass, file->blob, file->mark, file->columns, file->skip_bad, 0);
    return index_builder_new(&places_shape, &file->builder);
}

static int add_row(void *ctx, const struct row_place *place, uint64_t lines)
{
    struct libsvm_file *file = ctx;

    return places_add(&file->places, file->builder, place, lines);
}

/* The pass has finished. If the index cannot be kept, that is no error: the next mount makes it
 * again. */
static int finish_index(struct libsvm_file *file)
{
    struct libsvm_totals totals = libsvm_pass_totals(&file->pass);
    struct iovec pieces[INDEX_PIECES];
    uint8_t about[8 * N_ABOUT];
    AUTO_FREE char *identity = NULL;
    struct diag reason = DIAG_INIT;
    struct index kept;
    int r = blob_check(file->blob);

    if (r == 0)
        r = index_identity(file, &identity);
    libsvm_pass_release(&file->pass);
    if (r < 0)
        return r;
    file->totals = totals;
    totals_to_about(&totals, about);
    r = places_finish(&file->places, file->builder, &file->index);
    if (r == 0)
        r = index_bytes(file->builder, about, sizeof(about), &file->index, pieces);
    if (r < 0)
        return r;
    r = index_store_save(file->keep, "rows", identity, blob_source(file->blob), pieces,
                         INDEX_PIECES, &file->kept, &reason);
    if (r < 0) {
        diag_set(&file->note, r,
                 "%s: the index cannot be kept, so the next mount makes it again: %s",
                 blob_name(file->blob), diag_text(&reason, r));
        return 0;
    }
    if (index_open(file->kept.bytes, file->kept.size, &kept) == 0) {
        file->index = kept;
        index_builder_free(file->builder);
        file->builder = NULL;
    }
    return 0;
}

/* Make the index a step further. 1: complete, 0: not yet, or -errno. */
static int step_index(struct libsvm_file *file, struct diag *d)
{
    int r = file->begun ? 0 : begin(file);

    if (r == 0) {
        r = libsvm_pass_step(&file->pass, add_row, file, d);
        atomic_store_explicit(&file->seen, file->pass.at, memory_order_relaxed);
        if (r == 1) {
            r = finish_index(file);
            r = r < 0 ? r : 1;
        }
    }
    file->indexed = r == 1;
    return r;
}

static int step(struct libsvm_file *file, struct diag *d)
{
    int r = file->indexed ? 1 : step_index(file, d);

    if (r == 1) {
        atomic_store_explicit(&file->seen, file->blob->size, memory_order_relaxed);
        r = libsvm_sides_load(file->side, file->index.rows, file->totals.skipped, d);
        for (unsigned i = 0; i < N_LIBSVM_SIDES; i++)
            if (file->side[i].failed)
                diag_set(&file->note, 0, "%s", file->side[i].reason.text);
        file->ready = r == 0;
        r = r < 0 ? r : 1;
    }
    return r;
}

int libsvm_file_prepare(struct libsvm_file *file, struct diag *d)
{
    int r;

    if (file->ready)
        return 1;
    r = file->failed ? file->failed : step(file, &file->reason);
    if (r == -EREMOTEIO || r == -EINTR) {
        diag_set(d, r, "%s", diag_text(&file->reason, r));
        file->reason.set = false;
        return r;
    }
    if (r < 0) {
        file->failed = r;
        if (r == -ESTALE)
            file->reason.set = false; /* faults found in a file that changes say little */
        diag_set(&file->reason, r, "%s: cannot be indexed: %s", blob_name(file->blob),
                 r == -ESTALE ? "the file was changed meanwhile; mount again" : strerror(-r));
        return diag_set(d, r, "%s", file->reason.text);
    }
    return r;
}

/* ---- parts ---- */

uint64_t libsvm_file_cut(const struct libsvm_file *file, uint64_t offset)
{
    if (!offset)
        return 0;
    if (offset >= file->blob->size)
        return file->index.rows;
    /* dmlc counts the mark as part of the first line. */
    offset = max_u64(offset, file->mark);
    return places_before(&file->index, offset + 1);
}

/* ---- faults ---- */

/* Describe the text at the fault, up to the next white space, for the message. */
static void describe_found(const uint8_t *line, size_t len, size_t at, struct text *t)
{
    size_t n = 0;

    while (at + n < len && n < 40 && !libsvm_is_blank(line[at + n]))
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

    if (fault->want == libsvm_too_long)
        text_add(&found, "a longer one");
    else
        describe_found(line, len, fault->at, &found);
    return diag_set(d, -EBADMSG, "%s:%llu:%zu: want %s, found %s", blob_name(file->blob),
                    (unsigned long long)line_number, fault->at + 1, fault->want,
                    found.data ? found.data : "something else");
}

int libsvm_file_fault(const struct libsvm_file *file, uint64_t row, const uint8_t *line, size_t len,
                      const struct libsvm_fault *fault, struct diag *d)
{
    return describe_fault(file, places_lines(&file->index, row) + 1, line, len, fault, d);
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

    describe_fault(check->file, scan->totals.text_lines + 1, line, len, fault, &d);
    check->report(check->ctx, d.text);
}

static int ignore_row(void *ctx, const struct row_place *place, uint64_t lines)
{
    (void)ctx;
    (void)place;
    (void)lines;
    return 0;
}

int libsvm_file_check(const struct libsvm_file *file, void (*report)(void *ctx, const char *text),
                      void *ctx, struct diag *d)
{
    struct check check = {file, report, ctx};
    AUTO(libsvm_pass_release) struct libsvm_pass pass;
    int r;

    libsvm_pass_init(&pass, file->blob, file->mark, file->columns, true, 1);
    pass.scan[0].bad = report_bad;
    pass.scan[0].ctx = &check;
    do
        r = libsvm_pass_step(&pass, ignore_row, NULL, d);
    while (r == 0);
    for (unsigned i = 0; i < N_LIBSVM_SIDES; i++)
        if (file->side[i].failed)
            report(ctx, file->side[i].reason.text);
    return r < 0 ? r : blob_verify(file->blob, d);
}
