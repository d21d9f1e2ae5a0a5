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
#include "format/index/pass_window.h"
#include "format/mindrecord/file.h"
#include "format/mindrecord/layout/msgpack.h"
#include "format/records/bytes_kind.h"

#define STEP         2000  /* rows of a step of preparing */
#define WINDOW_LEAST 256   /* bytes that are read at once after a hop, */
#define WINDOW_MOST  65536 /* and where rows are small */

struct mindrecord_pass {
    size_t page; /* of the next row */
    uint64_t row;
    uint64_t blob_at, raw_at;                    /* of its lengths */
    enum mindrecord_state blob_state, raw_state; /* of the rest of the page */
    struct pass_window blob, raw;                /* bytes of the file */
    uint64_t number[MINDRECORD_ROW + MINDRECORD_FIELDS * MINDRECORD_NUMBERS];
};

static void mindrecord_pass_pass_free(struct mindrecord *file)
{
    if (!file->pass)
        return;
    pass_window_release(&file->pass->blob);
    pass_window_release(&file->pass->raw);
    free(file->pass);
    file->pass = NULL;
}

/* ---- blobs ---- */

/* How many elements an array of that many bytes has. */
static enum mindrecord_state mindrecord_pass_count_elements(const struct mindrecord_field *f,
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

static bool fits_shape(const struct mindrecord_field *f, uint64_t elements)
{
    uint64_t product = 1;
    bool varies = false;

    for (unsigned i = 0; i < f->ndim; i++) {
        varies |= f->dim[i] == DIM_VARIES;
        if (f->dim[i] != DIM_VARIES && !checked_mul(product, f->dim[i], &product))
            return false;
    }
    return varies && product ? elements % product == 0 : elements == (varies ? 0 : product);
}

/* Set the numbers of a field whose bytes are len from byte at on, in a page that ends at end. */
static int look_at_blob(struct mindrecord *file, unsigned field, uint64_t at, uint64_t len,
                        uint64_t end, struct diag *d)
{
    const struct mindrecord_field *f = &file->header.field[field];
    uint64_t *number = &file->pass->number[mindrecord_column(field, 0)];
    const uint8_t *head = NULL;
    int r = 0;

    if (len && (f->type == TYPE_BYTES || f->packed))
        r = pass_window_at(&file->pass->blob, file->base.blob, at, min_u64(len, BYTES_KIND_HEAD),
                           end, &head, d);
    if (r < 0)
        return r;
    number[FIELD_LEN] = len;
    if (f->type == TYPE_BYTES) {
        number[FIELD_STATE] = KIND_BIN + bytes_kind_of(head, len);
        return 0;
    }
    number[FIELD_STATE] = mindrecord_pass_count_elements(f, head, len, &number[FIELD_COUNT]);
    if (number[FIELD_STATE] == STATE_GOOD && !fits_shape(f, number[FIELD_COUNT]))
        number[FIELD_STATE] = FAULT_SHAPE;
    return 0;
}

static void fault_blobs(struct mindrecord *file, unsigned from, enum mindrecord_state state)
{
    for (unsigned i = from; i < file->header.n_blobs; i++)
        file->pass->number[mindrecord_column(i, FIELD_STATE)] = state;
}

/* The fields of a blob of len bytes at byte at. */
static int split_blob(struct mindrecord *file, uint64_t at, uint64_t len, uint64_t end,
                      struct diag *d)
{
    unsigned n = file->header.n_blobs;
    uint64_t off = 0, bytes = len;

    for (unsigned i = 0; i < n; i++) {
        const uint8_t *head;
        int r = 0;

        if (n > 1) {
            if (len - off < MINDRECORD_LENGTH) {
                fault_blobs(file, i, FAULT_LENGTH);
                return 0;
            }
            r = pass_window_at(&file->pass->blob, file->base.blob, at + off, MINDRECORD_LENGTH, end,
                               &head, d);
            if (r < 0)
                return r;
            bytes = load_be64(head);
            off += MINDRECORD_LENGTH;
        }
        if (bytes > len - off || (i + 1 == n && bytes != len - off)) {
            fault_blobs(file, i, FAULT_LENGTH);
            return 0;
        }
        file->pass->number[mindrecord_column(i, FIELD_AT)] = off;
        r = look_at_blob(file, i, at + off, bytes, end, d);
        if (r < 0)
            return r;
        off += bytes;
    }
    return 0;
}

/* The length at *at, and what follows it; *state: the rest of the page is lost. */
static int mindrecord_pass_take_length(struct mindrecord *file, struct pass_window *w, uint64_t *at,
                                       uint64_t end, enum mindrecord_state *state, uint64_t *ret,
                                       struct diag *d)
{
    const uint8_t *bytes;
    int r;

    if (end - *at < MINDRECORD_LENGTH) {
        *state = FAULT_PAGE;
        return 0;
    }
    r = pass_window_at(w, file->base.blob, *at, MINDRECORD_LENGTH, end, &bytes, d);
    if (r < 0)
        return r;
    *ret = load_le64(bytes);
    if (*ret > end - *at - MINDRECORD_LENGTH)
        *state = FAULT_PAGE;
    else
        *at += MINDRECORD_LENGTH;
    return 0;
}

static int mindrecord_pass_add_blob(struct mindrecord *file, const struct mindrecord_page *page,
                                    struct diag *d)
{
    struct mindrecord_pass *pass = file->pass;
    uint64_t end = page->at + page->used, len = 0;
    int r = 0;

    if (pass->blob_state == STATE_GOOD)
        r = mindrecord_pass_take_length(file, &pass->blob, &pass->blob_at, end, &pass->blob_state,
                                        &len, d);
    if (r < 0)
        return r;
    pass->number[MINDRECORD_BLOB_AT] = pass->blob_at;
    if (pass->blob_state != STATE_GOOD) {
        fault_blobs(file, 0, pass->blob_state);
        return 0;
    }
    pass->number[MINDRECORD_BLOB_LEN] = len;
    r = split_blob(file, pass->blob_at, len, end, d);
    pass->blob_at += len;
    return r;
}

/* ---- raw rows ---- */

static void fault_raw(struct mindrecord *file, enum mindrecord_state state)
{
    for (unsigned i = file->header.n_blobs; i < file->header.n_fields; i++)
        file->pass->number[mindrecord_column(i, FIELD_STATE)] = state;
}

/* An integer, as such or as decimal text. */
static enum mindrecord_state mindrecord_pass_take_integer(const struct msgpack_value *v,
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
static enum mindrecord_state mindrecord_pass_take_float(const struct msgpack_value *v,
                                                        enum dtype dtype, uint64_t *ret)
{
    double wide;
    float narrow;
    uint32_t word;

    if (v->type != MSGPACK_FLOAT && v->type != MSGPACK_SIGNED && v->type != MSGPACK_UNSIGNED)
        return FAULT_TYPE;
    wide = v->type == MSGPACK_FLOAT    ? v->f
           : v->type == MSGPACK_SIGNED ? (double)v->i
                                       : (double)v->u;
    if (dtype == DTYPE_F8) {
        memcpy(ret, &wide, sizeof(wide));
        return STATE_GOOD;
    }
    narrow = (float)wide;
    memcpy(&word, &narrow, sizeof(word));
    *ret = word;
    return STATE_GOOD;
}

struct taking {
    struct mindrecord *file;
    const uint8_t *start; /* of the map */
};

static void mindrecord_pass_take_member(void *ctx, const uint8_t *key, size_t key_len,
                                        const struct msgpack_value *value)
{
    const struct taking *taking = ctx;
    const struct mindrecord_header *header = &taking->file->header;

    for (unsigned i = header->n_blobs; i < header->n_fields; i++) {
        const struct mindrecord_field *f = &header->field[i];
        uint64_t *number = &taking->file->pass->number[mindrecord_column(i, 0)];

        if (strlen(f->key) != key_len || memcmp(f->key, key, key_len) != 0)
            continue;
        memset(number, 0, MINDRECORD_NUMBERS * sizeof(*number));
        if (f->type == TYPE_INTEGER) {
            number[FIELD_STATE] = mindrecord_pass_take_integer(value, f->dtype, &number[FIELD_AT]);
        } else if (f->type == TYPE_FLOAT) {
            number[FIELD_STATE] = mindrecord_pass_take_float(value, f->dtype, &number[FIELD_AT]);
        } else if (value->type == MSGPACK_TEXT) {
            number[FIELD_AT] = (uint64_t)(value->text - taking->start);
            number[FIELD_LEN] = value->len;
        } else {
            number[FIELD_STATE] = FAULT_TYPE;
        }
    }
}

static int add_raw(struct mindrecord *file, const struct mindrecord_page *page, struct diag *d)
{
    struct mindrecord_pass *pass = file->pass;
    struct taking taking = {.file = file};
    uint64_t len = 0;
    int r = 0;

    if (pass->raw_state == STATE_GOOD)
        r = mindrecord_pass_take_length(file, &pass->raw, &pass->raw_at, page->raw_end,
                                        &pass->raw_state, &len, d);
    if (r < 0)
        return r;
    pass->number[MINDRECORD_RAW_AT] = pass->raw_at;
    fault_raw(file, pass->raw_state == STATE_GOOD ? FAULT_LACKS : pass->raw_state);
    if (pass->raw_state != STATE_GOOD)
        return 0;
    if (len)
        r = pass_window_at(&pass->raw, file->base.blob, pass->raw_at, len, page->raw_end,
                           &taking.start, d);
    if (r == 0 &&
        (!len || !msgpack_map(taking.start, (size_t)len, mindrecord_pass_take_member, &taking)))
        fault_raw(file, FAULT_MAP);
    pass->raw_at += len;
    return r;
}

/* ---- rows ---- */

static void begin_page(struct mindrecord *file)
{
    const struct mindrecord_page *page = &file->header.page[file->pass->page];
    struct mindrecord_pass *pass = file->pass;
    uint64_t size = file->base.blob->size;

    pass->blob_at = page->at;
    pass->raw_at = page->raw_at;
    pass->blob_state = page->at + page->used <= size ? STATE_GOOD : FAULT_NO_PAGE;
    pass->raw_state = !page->raw_at           ? FAULT_NO_RAW
                      : page->raw_end <= size ? STATE_GOOD
                                              : FAULT_NO_PAGE;
}

/* After the last row of a page: is anything left? */
static void end_page(struct mindrecord *file)
{
    const struct mindrecord_header *header = &file->header;
    const struct mindrecord_page *page = &header->page[file->pass->page];
    const struct mindrecord_pass *pass = file->pass;
    bool has_blobs = header->n_blobs && pass->blob_state == STATE_GOOD;
    uint64_t left = has_blobs ? page->at + page->used - pass->blob_at : 0, at = pass->blob_at;

    if (!left && header->n_blobs < header->n_fields && pass->raw_state == STATE_GOOD) {
        left = page->raw_end - pass->raw_at;
        at = pass->raw_at;
    }
    if (left && !*file->about.reason)
        snprintf(file->about.reason, sizeof(file->about.reason),
                 "byte %" PRIu64 ": expected the end of a page after its last row, got %" PRIu64
                 " bytes, which are ignored",
                 at, left);
}

/* Count the rows with faults, and say what is wrong with the first. */
static void note_faults(struct mindrecord *file)
{
    const struct mindrecord_header *header = &file->header;

    for (unsigned i = 0; i < header->n_fields; i++) {
        uint64_t state = file->pass->number[mindrecord_column(i, FIELD_STATE)];

        if (state == STATE_GOOD || state >= KIND_BIN)
            continue;
        if (!file->about.lost++)
            snprintf(file->about.reason, sizeof(file->about.reason),
                     "row %" PRIu64 ": field '%s' cannot be read", file->pass->row,
                     header->field[i].name);
        return;
    }
}

static int mindrecord_pass_add_row(struct mindrecord *file, struct diag *d)
{
    const struct mindrecord_header *header = &file->header;
    struct mindrecord_pass *pass = file->pass;
    const struct mindrecord_page *page = &header->page[pass->page];
    uint64_t blob_at, raw_at;
    int r = 0;

    if (pass->row == page->start)
        begin_page(file);
    blob_at = pass->blob_at;
    raw_at = pass->raw_at;
    memset(pass->number, 0, sizeof(pass->number));
    if (header->n_blobs)
        r = mindrecord_pass_add_blob(file, page, d);
    if (r == 0 && header->n_blobs < header->n_fields)
        r = add_raw(file, page, d);
    if (r < 0) { /* it may be called again */
        pass->blob_at = blob_at;
        pass->raw_at = raw_at;
        return r;
    }
    note_faults(file);
    r = index_add(file->base.prepared.builder, NULL, 0, pass->number);
    if (r < 0)
        return r;
    atomic_store(&file->base.prepared.seen, min_u64(pass->blob_at, file->base.blob->size));
    pass->row++;
    if (pass->row == page->end)
        end_page(file);
    return 0;
}

static int mindrecord_pass_step(void *impl, struct diag *d)
{
    struct mindrecord *file = impl;
    const struct mindrecord_header *header = &file->header;
    struct mindrecord_pass *pass = file->pass;
    int r = 0;

    for (unsigned i = 0; i < STEP && r == 0 && pass->row < header->rows; i++) {
        while (header->page[pass->page].end <= pass->row)
            pass->page++;
        r = mindrecord_pass_add_row(file, d);
    }
    if (r < 0 || pass->row < header->rows)
        return r;
    r = blob_verify(file->base.blob, d);
    return r < 0 ? r : 1;
}

static int mindrecord_pass_begin(void *impl)
{
    struct mindrecord *file = impl;

    file->pass = calloc(1, sizeof(*file->pass));
    if (!file->pass)
        return -ENOMEM;
    file->pass->blob = file->pass->raw =
        (struct pass_window){.least = WINDOW_LEAST, .most = WINDOW_MOST};
    file->about = (struct mindrecord_about){0};
    return index_builder_columns(file->base.prepared.builder,
                                 mindrecord_column(file->header.n_fields, 0));
}

/* ---- what is kept beside the rows ---- */

static int mindrecord_pass_about(void *impl, const struct index *index, struct text *ret,
                                 struct diag *d)
{
    struct mindrecord *file = impl;

    (void)index;
    (void)d;
    text_add(ret, "%" PRIu64 "\n%s", file->about.lost, file->about.reason);
    mindrecord_pass_pass_free(file);
    return 0;
}

static bool is_inside(uint64_t at, uint64_t len, uint64_t size)
{
    return at <= size && len <= size - at;
}

/* No content may end after the file; elements are those of the bytes. */
static bool mindrecord_pass_field_is_good(const struct mindrecord *file, unsigned i,
                                          const uint64_t *row)
{
    const struct mindrecord_field *f = &file->header.field[i];
    const uint64_t *number = row + mindrecord_column(i, 0);
    uint64_t size = file->base.blob->size, state = number[FIELD_STATE], count = number[FIELD_COUNT];

    if (state >= N_STATES || (state >= KIND_BIN && f->type != TYPE_BYTES))
        return false;
    if (state != STATE_GOOD && state < KIND_BIN)
        return true;
    if (f->type == TYPE_TEXT)
        return is_inside(row[MINDRECORD_RAW_AT], 0, size) &&
               is_inside(number[FIELD_AT], number[FIELD_LEN], size - row[MINDRECORD_RAW_AT]);
    if (f->type > TYPE_TEXT)
        return true;
    if (!is_inside(row[MINDRECORD_BLOB_AT], 0, size) ||
        !is_inside(number[FIELD_AT], number[FIELD_LEN], size - row[MINDRECORD_BLOB_AT]))
        return false;
    if (f->type == TYPE_BYTES)
        return state >= KIND_BIN;
    return count <= number[FIELD_LEN] && fits_shape(f, count) &&
           (f->packed || count * dtype_info(f->dtype)->bytes == number[FIELD_LEN]);
}

static bool mindrecord_pass_rows_are_good(const struct mindrecord *file, const struct index *index)
{
    uint64_t row[MINDRECORD_ROW + MINDRECORD_FIELDS * MINDRECORD_NUMBERS];

    if (index->rows != file->header.rows ||
        index->shape.columns != mindrecord_column(file->header.n_fields, 0))
        return false;
    for (uint64_t i = 0; i < index->rows; i++) {
        index_row(index, i, row);
        for (unsigned k = 0; k < file->header.n_fields; k++)
            if (!mindrecord_pass_field_is_good(file, k, row))
                return false;
    }
    return true;
}

static int mindrecord_pass_take(void *impl, const struct index *index)
{
    struct mindrecord *file = impl;
    const char *text = (const char *)index->about;
    size_t digits, len = index->about_len;

    digits = len ? number_parse(text, len, UINT64_MAX, &file->about.lost) : 0;
    if (!digits || digits == len || text[digits] != '\n' ||
        len - digits - 1 >= sizeof(file->about.reason) ||
        !mindrecord_pass_rows_are_good(file, index))
        return -EBADMSG;
    memcpy(file->about.reason, text + digits + 1, len - digits - 1);
    file->about.reason[len - digits - 1] = '\0';
    return 0;
}

static int mindrecord_pass_ready(void *impl, struct diag *d)
{
    (void)d;
    return mindrecord_set_columns(impl);
}

static void mindrecord_pass_release(void *p)
{
    struct mindrecord *file = p;

    mindrecord_pass_pass_free(file);
    mindrecord_header_release(&file->header);
    free(file->column);
    free(file->shows);
}

const struct record_file_ops mindrecord_file_ops = {
    .size = sizeof(struct mindrecord),
    .index = {.version = "mindrecord 1",
              .take = mindrecord_pass_take,
              .begin = mindrecord_pass_begin,
              .step = mindrecord_pass_step,
              .about = mindrecord_pass_about,
              .ready = mindrecord_pass_ready},
    .shape = {.columns = MINDRECORD_ROW, .learns = true},
    .open = mindrecord_open,
    .release = mindrecord_pass_release,
};
