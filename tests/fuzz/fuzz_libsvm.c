/* Bytes as libsvm text: the first is what the user says, a byte 0x1f goes on to a second file of
 * the same folder, and then to a side file of the first.
 *
 * What the datasets say must be what the lines say, cut and parsed one by one: which are rows,
 * their text, their arrays, and where those stand that cannot be read. Files of every encoder are
 * made in pieces. Nothing may crash, leak or contradict itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/libsvm/rows.h"
#include "fuzz.h"
#include "saw.h"
#include "support/libsvm_make.h"

#define PIECE     3000
#define SEPARATE  0x1f
#define DENSE_MAX 4096 /* features of rows that are looked at with their zeros */
#define FILES     2

/* The first byte, of which bit 6 is free, so that it can be a letter. */
enum { BASE = 3, SKIP_BAD = 4, SIDE_SHIFT = 3, SIDE = 3, POOL = 32 };

static uint64_t way; /* of this input: its hash */

struct slice {
    const uint8_t *at;
    size_t len;
};

/* A line that is a row. */
struct line {
    const struct slice *file;
    size_t start, len, number; /* number: of the line, from 1 */
    bool good;
    size_t fault;
    struct libsvm_row row;
};

struct model {
    size_t n, capacity;
    struct line *line; /* [room] owned */
    uint64_t counted;  /* features, by headers */
};

/* Parse with its own memory for what follows the line. A label and a feature take a byte at least,
 * and one between them and the next. */
static void parse_line(struct line *line, unsigned columns)
{
    AUTO_FREE uint8_t *text = malloc(line->len + LIBSVM_PAD);
    size_t capacity = line->len / 2 + 1;
    float *label = malloc(capacity * (2 * sizeof(float) + sizeof(uint32_t)));
    struct libsvm_fault fault;

    memcpy(text, line->file->at + line->start, line->len);
    memset(text + line->len, 0, LIBSVM_PAD);
    line->row = (struct libsvm_row){
        .label_capacity = capacity,
        .label = label,
        .capacity = capacity,
        .value = label + capacity,
        .index = (uint32_t *)(void *)(label + 2 * capacity),
    };
    line->good = libsvm_line_parse(text, line->len, columns, &line->row, &fault) == 0;
    line->fault = line->good ? 0 : fault.at;
    FUZZ_CHECK(line->fault <= line->len);
    FUZZ_CHECK(!line->good || (line->row.n <= capacity && line->row.n_labels <= capacity));
    if (line->good)
        FUZZ_CHECK(
            libsvm_row_sort(line->row.index, line->row.field, line->row.value, line->row.n) == 0);
}

static void line_release(struct line *line)
{
    free(line->row.label); /* and all that the row has */
}

static void model_put(struct model *m, const struct line *line)
{
    if (m->n == m->capacity) {
        m->capacity = m->capacity * 2 + 16;
        m->line = realloc(m->line, m->capacity * sizeof(*line));
    }
    m->line[m->n++] = *line;
}

/* of: the file as opened, which says where its rows begin. */
static void model_add(struct model *m, const struct slice *file, const struct libsvm_file *of,
                      bool skip_bad)
{
    size_t at = of->mark, number = of->header.lines + 1;

    FUZZ_CHECK(of->header.counts ||
               at == (file->len >= 3 && !memcmp(file->at, "\xef\xbb\xbf", 3) ? 3 : 0));
    m->counted = max_u64(m->counted, of->header.count[1]);

    for (; at < file->len; number++) {
        struct line line = {.file = file, .start = at, .number = number};

        while (at < file->len && file->at[at] != '\n' && file->at[at] != '\r')
            at++;
        line.len = at - line.start;
        at += at + 1 < file->len && file->at[at] == '\r' && file->at[at + 1] == '\n' ? 2 : 1;
        if (!libsvm_is_row(file->at + line.start, line.len))
            continue;
        parse_line(&line, of->columns);
        if (line.good || !skip_bad)
            model_put(m, &line);
        else
            line_release(&line);
    }
}

static void model_release(struct model *m)
{
    for (size_t i = 0; i < m->n; i++)
        line_release(&m->line[i]);
    free(m->line);
}

/* ---- files ---- */

static void read_piece(struct layout *l, uint64_t off)
{
    size_t len = (size_t)min_u64(PIECE, l->size - off), cut = len / 3;
    AUTO_FREE uint8_t *whole = malloc(len ? len : 1), *pieces = malloc(len ? len : 1);
    struct diag d = DIAG_INIT;
    int r = layout_read(READ_WAITS, l, off, len, whole, &d);

    FUZZ_CHECK(r == 0 || (r == -EBADMSG && d.set));
    if (r < 0)
        return;
    FUZZ_CHECK(layout_read(READ_WAITS, l, off, cut, pieces, NULL) == 0);
    FUZZ_CHECK(layout_read(READ_WAITS, l, off + cut, len - cut, pieces + cut, NULL) == 0);
    FUZZ_CHECK(!memcmp(whole, pieces, len));
}

static void make_files(const struct dataset *ds, enum scope scope, const struct selection *sel)
{
    for (unsigned i = 0; i < ds->n_folders; i++) {
        if (!fuzz_takes(way >> 16, i, ds->n_folders))
            continue;
        for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++) {
            const struct file_kind *kind = &ds->folder[i].files[scope][k];
            AUTO_LAYOUT struct layout l = {0};
            int r;

            layout_init(&l, ds, sel, NULL);
            r = kind->encoder->layout(&l, kind);
            /* The size of a record depends on its values. */
            FUZZ_CHECK(r == 0 || r == -EFBIG ||
                       (r == -EBADMSG && !strcmp(kind->folder, "tfrecord")));
            /* A CRC of very many dense bytes takes long. */
            if (r < 0 || (l.size > 1 << 20 && !kind->field))
                continue;
            if (fuzz_takes(way, k % 3, 3))
                read_piece(&l, 0);
            if (fuzz_takes(way, (k + 1) % 3, 3))
                read_piece(&l, l.size / 2);
            if (fuzz_takes(way, (k + 2) % 3, 3))
                read_piece(&l, l.size - min_u64(l.size, PIECE));
        }
    }
}

/* ---- arrays ---- */

/* The lines of a selection, and the arrays that they should give. */
struct expected {
    const struct dataset *ds;
    const struct selection *sel;
    const struct line **line; /* [sel->count] */
    bool good;                /* all of them */
};

static void check_fault(const struct expected *e, const struct diag *d)
{
    bool found = false;

    for (uint64_t i = 0; i < e->sel->count && !found; i++) {
        const struct line *line = e->line[i];
        char place[64];

        snprintf(place, sizeof(place), "%zu:%zu: expected ", line->number, line->fault + 1);
        found = !line->good && !strncmp(d->text + strlen("a.txt:"), place, strlen(place));
    }
    FUZZ_CHECK(d->set && found);
}

/* Takes the bytes that a field should have. */
static void check_field(const struct expected *e, const char *name, struct text *want, bool parsed)
{
    struct diag d = DIAG_INIT;
    struct bytes found = {0};
    int r = field_bytes(e->ds, name, e->sel, &found, &d);

    if (r < 0) {
        FUZZ_CHECK(r == -EBADMSG && parsed && !e->good);
        check_fault(e, &d);
    } else {
        /* Without features a bad row has no part in data and indices. */
        FUZZ_CHECK(!parsed || e->good || !found.len || !strcmp(name, "data") ||
                   !strcmp(name, "indices"));
        FUZZ_CHECK(found.len == want->len);
        if (e->good || !parsed)
            FUZZ_CHECK(!found.len || !memcmp(found.at, want->data, found.len));
    }
    free(found.at);
    text_release(want);
}

static void add(struct text *t, const void *bytes, size_t len)
{
    text_add_bytes(t, bytes, len);
}

static void check_labels(const struct expected *e)
{
    const struct libsvm_rows *rows = libsvm_rows_of(e->ds);
    struct text label = {0};

    for (uint64_t i = 0; i < e->sel->count; i++)
        for (uint64_t k = 0; k < rows->labels; k++)
            add(&label,
                k < e->line[i]->row.n_labels && e->line[i]->good ? &e->line[i]->row.label[k]
                                                                 : &(float){__builtin_nanf("")},
                4);
    check_field(e, "label", &label, true);
}

static void check_columns(const struct expected *e)
{
    const struct libsvm_file *file = libsvm_rows_file(libsvm_rows_of(e->ds), 0);
    struct text weight = {0}, qid = {0};

    for (uint64_t i = 0; i < e->sel->count; i++) {
        add(&weight, &e->line[i]->row.weight, 4);
        add(&qid, &e->line[i]->row.qid, 8);
    }
    FUZZ_CHECK(!dataset_field(e->ds, "weight") ==
               !(file->columns & LIBSVM_WEIGHT || file->side[LIBSVM_SIDE_WEIGHT].blob));
    FUZZ_CHECK(!dataset_field(e->ds, "qid") ==
               !(file->columns & LIBSVM_QID || file->side[LIBSVM_SIDE_GROUP].blob));
    if (dataset_field(e->ds, "weight") && !file->side[LIBSVM_SIDE_WEIGHT].blob)
        check_field(e, "weight", &weight, true);
    if (dataset_field(e->ds, "qid") && !file->side[LIBSVM_SIDE_GROUP].blob)
        check_field(e, "qid", &qid, true);
    text_release(&weight);
    text_release(&qid);
}

static void check_matrix(const struct expected *e)
{
    const struct libsvm_rows *rows = libsvm_rows_of(e->ds);
    struct text data = {0}, indices = {0}, indptr = {0}, x = {0};
    bool wide = rows->features > UINT64_C(1) << 31;
    uint64_t width = e->sel->count < 64 && rows->features < DENSE_MAX ? rows->features : 0;
    uint32_t sum = 0;

    add(&indptr, &sum, 4);
    for (uint64_t i = 0; i < e->sel->count; i++) {
        const struct libsvm_row *row = &e->line[i]->row;
        uint64_t n = e->line[i]->good ? row->n : 0;
        float dense[DENSE_MAX];

        memset(dense, 0, width * 4);
        for (uint64_t k = 0; k < n; k++) {
            uint64_t index = row->index[k] - rows->shift;

            FUZZ_CHECK(index < rows->features);
            add(&data, &row->value[k], 4);
            add(&indices, &index, wide ? 8 : 4);
            if (width) /* index is below it */
                dense[index] += row->value[k];
        }
        sum += (uint32_t)n;
        add(&indptr, &sum, 4);
        add(&x, dense, width * 4);
    }
    check_field(e, "data", &data, true);
    check_field(e, "indices", &indices, true);
    check_field(e, "indptr", &indptr, false);
    if (width)
        check_field(e, "x", &x, true);
    text_release(&x);
}

static void check_text(const struct expected *e)
{
    struct text row = {0};

    for (uint64_t i = 0; i < e->sel->count; i++) {
        add(&row, e->line[i]->file->at + e->line[i]->start, e->line[i]->len);
        add(&row, "\n", 1);
    }
    check_field(e, "row", &row, false);
}

static void check_selection(const struct dataset *ds, const struct model *m,
                            const struct selection *sel)
{
    static void (*const checks[])(const struct expected *e) = {check_labels, check_columns,
                                                               check_matrix, check_text};
    AUTO_FREE const struct line **lines = calloc(sel->count + 1, sizeof(const struct line *));
    struct expected e = {.ds = ds, .sel = sel, .line = lines, .good = true};

    for (uint64_t i = 0; i < sel->count; i++) {
        uint64_t sample;

        selection_samples(sel, i, 1, &sample);
        lines[i] = &m->line[sample];
        e.good = e.good && lines[i]->good;
    }
    for (unsigned k = 0; k < ARRAY_LEN(checks); k++)
        if (fuzz_takes(way >> 20, k, ARRAY_LEN(checks)))
            checks[k](&e);
    make_files(ds, sel->single ? SCOPE_SAMPLES : SCOPE_BATCHES, sel);
}

/* Every part of some, one behind another, has all rows. */
static void check_parts(const struct dataset *ds)
{
    unsigned i = 0;

    for (uint64_t parts = 1; parts < 100; parts += 1 + parts / 2) {
        uint64_t next = 0;

        if (!fuzz_takes(way >> 12, i++, 10))
            continue;
        for (uint64_t part = 0; part < parts; part++) {
            uint64_t start, length;

            ds->ops->share(ds, part, parts, &start, &length);
            FUZZ_CHECK(start == next || !length);
            next = start + length;
        }
        FUZZ_CHECK(next == ds->samples);
    }
}

static void check_totals(const struct dataset *ds, const struct model *m)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    uint64_t features = m->counted, labels = 1, total = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct libsvm_row *row = &m->line[i].row;

        if (!m->line[i].good)
            continue;
        labels = max_u64(labels, row->n_labels);
        total += row->n;
        if (row->n)
            features = max_u64(features, row->largest + UINT64_C(1) - rows->shift);
    }
    FUZZ_CHECK(ds->samples == m->n);
    FUZZ_CHECK(rows->labels == labels);
    FUZZ_CHECK(rows->features == features);
    FUZZ_CHECK(rows->before[rows->shards.n].features == total);
}

/* The selections of a dataset of n samples that are looked at. */
#define SELECTIONS 7

static void check_number(const struct dataset *ds, const struct model *m, unsigned i)
{
    AUTO_FREE uint64_t *mixed = calloc(m->n + 3, sizeof(*mixed));
    struct list_selection list;
    struct one_sample one;
    struct selection some;

    for (size_t k = 0; k < m->n + 3 && m->n; k++)
        mixed[k] = (m->n - 1) * (k + 1) % m->n;
    switch (i) {
    case 0:
    case 1:
        in_order_init(&some, i * m->n / 2, m->n - i * m->n / 2);
        check_selection(ds, m, &some);
        break;
    case 2:
    case 3:
        mixed_init(&list, mixed, i == 2 ? 0 : m->n + 3);
        check_selection(ds, m, &list.sel);
        break;
    default:
        if (i - 4 >= m->n)
            break;
        sample_init(&one, (i - 4) * 7 % m->n);
        check_selection(ds, m, &one.sel);
    }
}

static void check_dataset(const struct dataset *ds, const struct model *m)
{
    FUZZ_CHECK(dataset_state(ds) == DATASET_READY);
    check_totals(ds, m);
    check_parts(ds);
    for (unsigned i = 0; i < SELECTIONS; i++)
        if ((m->n || i == 0 || i == 2) && fuzz_takes(way >> 4, i, SELECTIONS))
            check_number(ds, m, i);
}

/* The dataset of these files, one behind another. */
static void check_files(const struct dataset *ds, const struct slice *file, size_t n,
                        const struct format_options *options)
{
    struct model model = {0};

    FUZZ_CHECK(ds);
    for (size_t i = 0; i < n; i++)
        model_add(&model, &file[i], libsvm_rows_file(libsvm_rows_of(ds), (unsigned)i),
                  options->bad_rows == BAD_ROWS_SKIP);
    check_dataset(ds, &model);
    model_release(&model);
}

/* Is the file a matrix without labels? */
static bool is_refused(const struct slice *file, const struct format_options *options)
{
    size_t mark = utf8_mark(file->at, file->len), len = file->len - mark;
    const unsigned known = options->index_base == INDEX_FROM_ONE ? LIBSVM_FROM_ONE : 0u;
    AUTO_FREE uint8_t *text = calloc(len + LIBSVM_PAD, 1);

    FUZZ_CHECK(text);
    memcpy(text, file->at + mark, len);
    return libsvm_first_rows(text, len, true, known).header.no_labels;
}

static void open_parts(const struct slice *file, size_t n_files, const struct slice *side,
                       enum libsvm_side_type kind, const struct format_options *options,
                       struct pool *pool)
{
    static const char *const names[FILES] = {"a.txt", "b.txt"};
    static const char *const sides[] = {"a.txt.weight", "a.txt.group", "a.txt.base_margin"};
    struct blob *blob[FILES + 1];
    struct libsvm_made made;
    const struct dataset *all;
    size_t n = 0;

    for (size_t i = 0; i < n_files; i++)
        blob[n++] = memory_blob_new(names[i], file[i].at, file[i].len, file[i].len, NULL);
    if (side)
        blob[n++] = memory_blob_new(sides[kind], side->at, side->len, side->len, NULL);
    FUZZ_CHECK(libsvm_open(blob, n, options, NULL, pool, &made) == 0);
    for (size_t i = 0; i < n_files; i++)
        if (is_refused(&file[i], options))
            FUZZ_CHECK(!libsvm_dataset(&made, names[i]));
        else if (fuzz_takes(way >> 24, (unsigned)i, (unsigned)n_files))
            check_files(libsvm_dataset(&made, names[i]), &file[i], 1, options);
    all = libsvm_dataset(&made, "all");
    if (all)
        check_files(all, file, n_files, options);
    if (fuzz_takes(way >> 26, 0, 4))
        saw_found(&made.found);
    libsvm_release(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct pool *pool;
    struct slice part[3] = {0};
    size_t n = 0;
    unsigned side;

    if (!pool)
        FUZZ_CHECK(pool_new(&pool) == 0);
    if (!len)
        return 0;
    way = fuzz_hash(data, len);
    side = data[0] >> SIDE_SHIFT & SIDE;
    for (size_t at = 1; n < ARRAY_LEN(part) && at <= len; at += part[n++].len + 1) {
        const uint8_t *end = n < 2 ? memchr(data + at, SEPARATE, len - at) : NULL;

        part[n] = (struct slice){data + at, end ? (size_t)(end - (data + at)) : len - at};
    }
    open_parts(
        part, n < FILES ? n : FILES, n > FILES && side ? &part[FILES] : NULL,
        (enum libsvm_side_type)(side ? side - 1 : 0),
        &(struct format_options){.index_base = (enum index_base)((data[0] & BASE) % 3),
                                 .bad_rows = data[0] & SKIP_BAD ? BAD_ROWS_SKIP : BAD_ROWS_ERROR},
        data[0] & POOL && fuzz_takes(way >> 8, 0, 8) ? pool : NULL);
    return 0;
}
