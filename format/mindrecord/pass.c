/* The pass that makes the index: of each row, where its fields are, and its numbers. It reads the
 * lengths in blob pages, the first bytes of bytes, and raw pages; never what is between pages. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/real.h"
#include "format/index/pass_window.h"
#include "format/mindrecord/file.h"
#include "format/mindrecord/layout/msgpack.h"
#include "format/records/bytes_format.h"

#define STEP         2000  /* rows of a step of preparing */
#define WINDOW_LEAST 256   /* bytes that are read at once after a hop, */
#define WINDOW_MOST  65536 /* and where rows are small */

/* Rows of a page with their lengths in front: blobs, or raw rows. */
struct rows {
    uint64_t at, end;            /* bytes of the file: the next length, and the end of the page */
    enum mindrecord_state state; /* of the other rows of the page */
    struct pass_window window;
};

struct mindrecord_pass {
    size_t page; /* of the next row */
    uint64_t row;
    struct rows blob, raw;
    uint64_t number[MINDRECORD_ROW + MINDRECORD_FIELDS * MINDRECORD_NUMBERS];
};

static void mindrecord_free_pass(struct mindrecord *file)
{
    if (!file->pass)
        return;
    pass_window_release(&file->pass->blob.window);
    pass_window_release(&file->pass->raw.window);
    free(TAKE_PTR(file->pass));
}

/* The len bytes at byte at of the file, which are in the page. */
static int mindrecord_bytes(const struct mindrecord *file, struct rows *rows, uint64_t at,
                            uint64_t len, const uint8_t **ret, struct diag *d)
{
    return pass_window_at(&rows->window, file->base.blob, at, len, rows->end, ret, d);
}

/* The next row: its len bytes are at rows->at; or, by rows->state, it is lost, as are those after
 * it. */
static int mindrecord_next(const struct mindrecord *file, struct rows *rows, uint64_t *ret,
                           struct diag *d)
{
    const uint8_t *bytes;
    int r;

    if (rows->state == STATE_GOOD && rows->end - rows->at < MINDRECORD_LENGTH)
        rows->state = FAULT_PAGE;
    if (rows->state != STATE_GOOD)
        return 0;
    r = mindrecord_bytes(file, rows, rows->at, MINDRECORD_LENGTH, &bytes, d);
    if (r < 0)
        return r;
    *ret = load_le64(bytes);
    if (*ret > rows->end - rows->at - MINDRECORD_LENGTH)
        rows->state = FAULT_PAGE;
    else
        rows->at += MINDRECORD_LENGTH;
    return 0;
}

/* Fields from the first to before `end` cannot be read. */
static void mindrecord_fault(struct mindrecord *file, unsigned first, unsigned end,
                             enum mindrecord_state state)
{
    for (unsigned i = first; i < end; i++)
        file->pass->number[mindrecord_column(i, FIELD_STATE)] = state;
}

/* ---- blobs ---- */

bool mindrecord_fits(const struct mindrecord_field *f, uint64_t elements, uint64_t *ret_axis)
{
    uint64_t product = 1;
    bool varies = false;

    for (unsigned i = 0; i < f->ndim; i++) {
        varies |= f->dim[i] == DIM_VARIES;
        if (f->dim[i] != DIM_VARIES && !checked_mul(product, f->dim[i], &product))
            return false;
    }
    *ret_axis = varies && product ? elements / product : 0;
    return elements == (varies ? *ret_axis * product : product);
}

/* How many elements an array of that many bytes has. */
static enum mindrecord_state mindrecord_count_elements(const struct mindrecord_field *f,
                                                       const uint8_t *p, uint64_t len,
                                                       uint64_t *ret)
{
    unsigned width = dtype_info(f->dtype)->bytes;

    if (!f->packed) {
        *ret = len / width;
        return len % width ? FAULT_ELEMENTS : STATE_GOOD;
    }
    *ret = len >= 4 ? load_be32(p) : 0;
    return len >= 4 && ceil_div(*ret, 4) + *ret <= len - 4 ? STATE_GOOD : FAULT_PACKED;
}

/* Set the numbers of a field whose bytes are len from byte at on. */
static int mindrecord_scan_field(struct mindrecord *file, unsigned field, uint64_t at, uint64_t len,
                                 struct diag *d)
{
    const struct mindrecord_field *f = &file->header.field[field];
    uint64_t *number = &file->pass->number[mindrecord_column(field, 0)], axis;
    const uint8_t *head = NULL;
    int r = 0;

    if (len && (f->type == TYPE_BYTES || f->packed))
        r = mindrecord_bytes(file, &file->pass->blob, at, min_u64(len, BYTES_MAGIC_SIZE), &head, d);
    if (r < 0)
        return r;
    number[FIELD_LEN] = len;
    if (f->type == TYPE_BYTES) {
        number[FIELD_STATE] = STATE_BYTES + bytes_format_of(head, len);
        return 0;
    }
    number[FIELD_STATE] = mindrecord_count_elements(f, head, len, &number[FIELD_COUNT]);
    if (number[FIELD_STATE] == STATE_GOOD && !mindrecord_fits(f, number[FIELD_COUNT], &axis))
        number[FIELD_STATE] = FAULT_SHAPE;
    return 0;
}

/* The fields of a blob of len bytes at byte at: those before the first whose length is wrong. */
static int mindrecord_split_blob(struct mindrecord *file, uint64_t at, uint64_t len, struct diag *d)
{
    unsigned n = file->header.n_blobs, i;
    uint64_t off = 0, bytes = len;

    for (i = 0; i < n; i++) {
        const uint8_t *head;
        int r = 0;

        if (n > 1) {
            if (len - off < MINDRECORD_LENGTH)
                break;
            r = mindrecord_bytes(file, &file->pass->blob, at + off, MINDRECORD_LENGTH, &head, d);
            if (r < 0)
                return r;
            bytes = load_be64(head);
            off += MINDRECORD_LENGTH;
        }
        if (bytes > len - off || (i + 1 == n && bytes != len - off))
            break;
        file->pass->number[mindrecord_column(i, FIELD_AT)] = off;
        r = mindrecord_scan_field(file, i, at + off, bytes, d);
        if (r < 0)
            return r;
        off += bytes;
    }
    mindrecord_fault(file, i, n, FAULT_LENGTH);
    return 0;
}

static int mindrecord_add_blob(struct mindrecord *file, struct diag *d)
{
    struct rows *rows = &file->pass->blob;
    uint64_t len = 0;
    int r = mindrecord_next(file, rows, &len, d);

    if (r < 0)
        return r;
    file->pass->number[MINDRECORD_BLOB_AT] = rows->at;
    if (rows->state != STATE_GOOD) {
        mindrecord_fault(file, 0, file->header.n_blobs, rows->state);
        return 0;
    }
    file->pass->number[MINDRECORD_BLOB_LEN] = len;
    r = mindrecord_split_blob(file, rows->at, len, d);
    rows->at += len;
    return r;
}

/* ---- raw rows ---- */

/* An integer, as such or as decimal text. */
static enum mindrecord_state mindrecord_parse_integer(const struct msgpack_value *v,
                                                      enum dtype dtype, uint64_t *ret)
{
    uint64_t limit = dtype == DTYPE_I4 ? INT32_MAX : INT64_MAX, magnitude = v->u;
    bool negative = false;

    if (v->type == MSGPACK_SIGNED) {
        negative = v->i < 0;
        magnitude = negative ? 0 - (uint64_t)v->i : (uint64_t)v->i;
    } else if (v->type == MSGPACK_TEXT) {
        const char *text = (const char *)v->text;
        size_t digits;

        negative = v->len && *text == '-';
        digits = v->len - negative;
        for (size_t i = 0; i < digits; i++)
            if (text[negative + i] < '0' || text[negative + i] > '9')
                return FAULT_TYPE;
        if (!digits)
            return FAULT_TYPE;
        for (text += negative; digits > 1 && *text == '0'; digits--)
            text++;
        if (number_parse(text, digits, UINT64_MAX, &magnitude) != digits)
            return FAULT_RANGE;
    } else if (v->type != MSGPACK_UNSIGNED) {
        return FAULT_TYPE;
    }
    if (magnitude > limit + negative)
        return FAULT_RANGE;
    *ret = negative ? 0 - magnitude : magnitude;
    return STATE_GOOD;
}

/* A number that float32 has not becomes infinite, as a cast makes it. */
static enum mindrecord_state mindrecord_parse_float(const struct msgpack_value *v, enum dtype dtype,
                                                    uint64_t *ret)
{
    double wide;

    if (v->type != MSGPACK_FLOAT && v->type != MSGPACK_SIGNED && v->type != MSGPACK_UNSIGNED)
        return FAULT_TYPE;
    wide = v->type == MSGPACK_FLOAT    ? v->f
           : v->type == MSGPACK_SIGNED ? (double)v->i
                                       : (double)v->u;
    *ret = dtype == DTYPE_F8 ? bits_of_f8(wide) : bits_of_f4((float)wide);
    return STATE_GOOD;
}

struct raw_row {
    struct mindrecord *file;
    const uint8_t *start; /* of the map */
};

static void mindrecord_add_member(void *ctx, const uint8_t *key, size_t key_len,
                                  const struct msgpack_value *value)
{
    const struct raw_row *raw = ctx;
    const struct mindrecord_header *header = &raw->file->header;

    for (unsigned i = header->n_blobs; i < header->n_fields; i++) {
        const struct mindrecord_field *f = &header->field[i];
        uint64_t *number = &raw->file->pass->number[mindrecord_column(i, 0)];

        if (strlen(f->key) != key_len || memcmp(f->key, key, key_len) != 0)
            continue;
        memset(number, 0, MINDRECORD_NUMBERS * sizeof(*number));
        if (f->type == TYPE_INTEGER) {
            number[FIELD_STATE] = mindrecord_parse_integer(value, f->dtype, &number[FIELD_AT]);
        } else if (f->type == TYPE_FLOAT) {
            number[FIELD_STATE] = mindrecord_parse_float(value, f->dtype, &number[FIELD_AT]);
        } else if (value->type == MSGPACK_TEXT) {
            number[FIELD_AT] = (uint64_t)(value->text - raw->start);
            number[FIELD_LEN] = value->len;
        } else {
            number[FIELD_STATE] = FAULT_TYPE;
        }
    }
}

static int mindrecord_add_raw(struct mindrecord *file, struct diag *d)
{
    const struct mindrecord_header *header = &file->header;
    struct rows *rows = &file->pass->raw;
    struct raw_row raw = {.file = file};
    uint64_t len = 0;
    int r = mindrecord_next(file, rows, &len, d);

    if (r < 0)
        return r;
    file->pass->number[MINDRECORD_RAW_AT] = rows->at;
    mindrecord_fault(file, header->n_blobs, header->n_fields,
                     rows->state == STATE_GOOD ? FAULT_LACKS : rows->state);
    if (rows->state != STATE_GOOD)
        return 0;
    if (len)
        r = mindrecord_bytes(file, rows, rows->at, len, &raw.start, d);
    if (r == 0 && (!len || !msgpack_map(raw.start, (size_t)len, mindrecord_add_member, &raw)))
        mindrecord_fault(file, header->n_blobs, header->n_fields, FAULT_MAP);
    rows->at += len;
    return r;
}

/* ---- rows ---- */

static void mindrecord_begin_page(struct mindrecord *file)
{
    const struct mindrecord_page *page = &file->header.page[file->pass->page];
    struct rows *blob = &file->pass->blob, *raw = &file->pass->raw;
    uint64_t size = file->base.blob->size;

    blob->at = page->at;
    blob->end = page->at + page->used;
    blob->state = blob->end <= size ? STATE_GOOD : FAULT_NO_PAGE;
    raw->at = page->raw_at;
    raw->end = page->raw_end;
    raw->state = !raw->at ? FAULT_NO_RAW : raw->end <= size ? STATE_GOOD : FAULT_NO_PAGE;
}

/* After the last row of a page: is anything left? */
static void mindrecord_end_page(struct mindrecord *file)
{
    const struct mindrecord_header *header = &file->header;
    const struct rows *rows = &file->pass->blob;

    if (!header->n_blobs || rows->state != STATE_GOOD || rows->at == rows->end)
        rows = header->n_blobs < header->n_fields ? &file->pass->raw : NULL;
    if (rows && rows->state == STATE_GOOD && rows->at < rows->end && !*file->reason)
        snprintf(file->reason, sizeof(file->reason),
                 "byte %" PRIu64 ": expected the end of a page after its last row, got %" PRIu64
                 " bytes, which are ignored",
                 rows->at, rows->end - rows->at);
}

/* Count the rows with faults, and say what is wrong with the first. */
static void mindrecord_count_faults(struct mindrecord *file)
{
    const struct mindrecord_header *header = &file->header;

    for (unsigned i = 0; i < header->n_fields; i++) {
        uint64_t state = file->pass->number[mindrecord_column(i, FIELD_STATE)];

        if (state == STATE_GOOD || state >= STATE_BYTES)
            continue;
        if (!file->lost++)
            snprintf(file->reason, sizeof(file->reason),
                     "row %" PRIu64 ": field '%s' cannot be read", file->pass->row,
                     header->field[i].name);
        return;
    }
}

static int mindrecord_add_row(struct mindrecord *file, struct diag *d)
{
    const struct mindrecord_header *header = &file->header;
    struct mindrecord_pass *pass = file->pass;
    const struct mindrecord_page *page = &header->page[pass->page];
    uint64_t blob_at, raw_at;
    int r = 0;

    if (pass->row == page->start)
        mindrecord_begin_page(file);
    blob_at = pass->blob.at;
    raw_at = pass->raw.at;
    memset(pass->number, 0, sizeof(pass->number));
    if (header->n_blobs)
        r = mindrecord_add_blob(file, d);
    if (r == 0 && header->n_blobs < header->n_fields)
        r = mindrecord_add_raw(file, d);
    if (r < 0) { /* it may be called again */
        pass->blob.at = blob_at;
        pass->raw.at = raw_at;
        return r;
    }
    mindrecord_count_faults(file);
    r = index_add(file->base.prepared.builder, NULL, 0, pass->number);
    if (r < 0)
        return r;
    atomic_store(&file->base.prepared.seen, min_u64(pass->blob.at, file->base.blob->size));
    pass->row++;
    if (pass->row == page->end)
        mindrecord_end_page(file);
    return 0;
}

static int mindrecord_step(void *impl, struct diag *d)
{
    struct mindrecord *file = impl;
    const struct mindrecord_header *header = &file->header;
    struct mindrecord_pass *pass = file->pass;
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0 && pass->row < header->rows; i++) {
        while (header->page[pass->page].end <= pass->row)
            pass->page++;
        r = mindrecord_add_row(file, d);
    }
    return r < 0 ? r : pass->row == header->rows;
}

static int mindrecord_begin(void *impl)
{
    struct mindrecord *file = impl;

    file->pass = calloc(1, sizeof(*file->pass));
    if (!file->pass)
        return -ENOMEM;
    file->pass->blob.window = file->pass->raw.window =
        (struct pass_window){.least = WINDOW_LEAST, .most = WINDOW_MOST};
    return index_builder_columns(file->base.prepared.builder,
                                 mindrecord_column(file->header.n_fields, 0));
}

/* ---- what is kept next to the rows ---- */

static int mindrecord_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    (void)index;
    (void)ret;
    (void)d;
    mindrecord_free_pass(impl);
    return 0;
}

static void mindrecord_keep(void *impl, struct kept *k)
{
    struct mindrecord *file = impl;

    kept_number(k, &file->lost, UINT64_MAX);
    kept_bytes(k, file->reason, sizeof(file->reason));
    file->reason[sizeof(file->reason) - 1] = '\0';
}

/* A kept index is hostile: numbers of its rows are checked where they are used. */
static int mindrecord_load(void *impl, const struct index *index)
{
    const struct mindrecord_header *header = &((const struct mindrecord *)impl)->header;

    return index->rows == header->rows &&
                   index->shape.columns == mindrecord_column(header->n_fields, 0)
               ? 0
               : -EBADMSG;
}

/* ---- the columns ---- */

/* If all rows that can be read have one size, arrays are of that shape. */
static int mindrecord_add_array(struct mindrecord *file, struct record_column *column)
{
    const struct mindrecord_field *f = &file->header.field[column->field];
    uint64_t least = UINT64_MAX, most = 0;
    bool varies = false;

    for (uint64_t row = 0; row < file->header.rows; row++) {
        uint64_t axis;

        if (mindrecord_is_fault(mindrecord_number(file, row, column->field, FIELD_STATE)) ||
            !mindrecord_fits(f, mindrecord_number(file, row, column->field, FIELD_COUNT), &axis))
            continue;
        least = min_u64(least, axis);
        most = max_u64(most, axis);
    }
    column->ndim = f->ndim;
    for (unsigned i = 0; i < f->ndim; i++) {
        column->dim[i] = f->dim[i] == DIM_VARIES && least == most ? most : f->dim[i];
        varies |= column->dim[i] == DIM_VARIES;
    }
    if (varies)
        column->dim[0] = DIM_VARIES;
    return record_file_add(&file->base, column);
}

static int mindrecord_add_bytes(struct mindrecord *file, struct record_column *column)
{
    bool has[N_BYTES_FORMATS] = {false};
    unsigned kinds = 0;
    int r = 0;

    for (uint64_t row = 0; row < file->header.rows; row++) {
        uint64_t state = mindrecord_number(file, row, column->field, FIELD_STATE);

        if (state >= STATE_BYTES && state < N_STATES)
            has[state - STATE_BYTES] = true;
    }
    for (unsigned i = 0; i < N_BYTES_FORMATS; i++)
        kinds += has[i];
    has[0] |= !kinds;
    column->has_holes = kinds > 1;
    for (unsigned i = 0; i < N_BYTES_FORMATS && r == 0; i++) {
        column->ext = bytes_format_ext(i);
        column->part = STATE_BYTES + i;
        if (has[i])
            r = record_file_add(&file->base, column);
    }
    return r;
}

static int mindrecord_set_columns(struct mindrecord *file)
{
    static const enum record_shown shown[] = {[TYPE_BYTES] = RECORD_BYTES,
                                              [TYPE_ARRAY] = RECORD_NUMBERS,
                                              [TYPE_TEXT] = RECORD_TEXT,
                                              [TYPE_INTEGER] = RECORD_NUMBERS,
                                              [TYPE_FLOAT] = RECORD_NUMBERS};
    const struct mindrecord_header *header = &file->header;
    unsigned n_bytes = 0;
    int r = 0;

    for (unsigned i = 0; i < header->n_fields; i++)
        n_bytes += header->field[i].type == TYPE_BYTES;
    for (unsigned i = 0; i < header->n_fields && r == 0; i++) {
        const struct mindrecord_field *f = &header->field[i];
        struct record_column column = {.name = f->name,
                                       .shown = shown[f->type],
                                       .dtype = f->dtype,
                                       .field = i,
                                       .unnamed = f->type == TYPE_BYTES && n_bytes == 1};

        r = f->type == TYPE_BYTES   ? mindrecord_add_bytes(file, &column)
            : f->type == TYPE_ARRAY ? mindrecord_add_array(file, &column)
                                    : record_file_add(&file->base, &column);
    }
    return r;
}

static int mindrecord_ready(void *impl, struct diag *d)
{
    (void)d;
    return mindrecord_set_columns(impl);
}

static void mindrecord_release(void *p)
{
    struct mindrecord *file = p;

    mindrecord_free_pass(file);
    mindrecord_header_release(&file->header);
}

static int mindrecord_open(void *p, const struct record_source *source, struct diag *d)
{
    struct mindrecord *file = p;
    int r = mindrecord_refuse_encrypted(file->base.blob, d);

    file->memo = source->setup->memo;
    file->name = source->file[source->i].name;
    return r == 0 ? mindrecord_header_read(file->base.blob, &file->header, d) : r;
}

const struct record_file_ops mindrecord_file_ops = {
    .size = sizeof(struct mindrecord),
    .index = {.version = "mindrecord 2",
              .keep = mindrecord_keep,
              .load = mindrecord_load,
              .begin = mindrecord_begin,
              .step = mindrecord_step,
              .about = mindrecord_about,
              .ready = mindrecord_ready},
    .shape = {.columns = MINDRECORD_ROW, .learns = true},
    .open = mindrecord_open,
    .release = mindrecord_release,
};
