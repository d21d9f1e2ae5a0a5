/* The pass that makes the index of a file of records: from the header of a part to the next. For
 * pictures, the bytes before them are also read. The first records decide whether they are
 * pictures.
 *
 * An .idx says where all records are, so their headers are fetched ahead, all at once, where the
 * file is on another machine. It is used as a hint only, and must agree with what is found. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/real.h"
#include "format/index/pass_window.h"
#include "format/recordio/file.h"

#define STEP         2000  /* records of a step of preparing */
#define DECIDE       16    /* records that decide whether all are pictures */
#define WINDOW_LEAST 256   /* bytes that are read at once after a hop, */
#define WINDOW_MOST  65536 /* and where records are small */
#define AHEAD        64    /* records whose headers are fetched ahead */

struct recordio_pass {
    uint64_t *idx; /* [n_idx] places by the .idx; NULL: none, or it is wrong */
    size_t n_idx;
    size_t fetched; /* of them */
    uint64_t at;    /* of the next record */
    uint64_t row;
    bool no_pictures;
    bool has_idx;              /* it was read, if there is one */
    struct pass_window window; /* bytes of the file */
};

static void recordio_pass_pass_free(struct recordio *file)
{
    if (!file->pass)
        return;
    pass_window_release(&file->pass->window);
    free(file->pass->idx);
    free(file->pass);
    file->pass = NULL;
}

/* ---- a record ---- */

struct record {
    const struct blob *blob;
    struct pass_window *window;
    uint64_t at, length, parts, end;
};

/* Find the end of the record at its place. 0; -EBADMSG with the reason in why; or -errno. */
static int find_record(struct record *ret, char why[static 256], struct diag *d)
{
    uint64_t at = ret->at, size = ret->blob->size, len;
    char text[RECORDIO_WHY];
    const char *wrong = NULL;
    unsigned flag = 0;

    do {
        const uint8_t *header;
        int r;

        if (size - at < RECORDIO_PART) {
            snprintf(why, 256, "byte %llu: expected the header of a part, got %llu bytes",
                     (unsigned long long)at, (unsigned long long)(size - at));
            return -EBADMSG;
        }
        r = pass_window_at(ret->window, ret->blob, at, RECORDIO_PART, size, &header, d);
        if (r < 0)
            return r;
        wrong = recordio_part(header, at, size, &flag, &len, &ret->end, text);
        if (!wrong && (ret->parts ? flag < 2 : flag > 1))
            wrong = ret->parts ? "expected a further part of a record, got the start of one"
                               : "expected the start of a record, got a further part";
        ret->length += ret->parts++ ? len + 4 : len;
        if (!wrong && flag % 3 && len % 4) /* only the last part of several may be */
            wrong = "expected a part whose length is a multiple of 4";
        if (!wrong && (ret->length > RECORDIO_MOST || ret->parts > RECORDIO_PARTS))
            wrong = "expected a record of at most 2^29 - 1 bytes and 65536 parts";
        if (wrong) {
            snprintf(why, 256, "byte %llu: %s", (unsigned long long)at, wrong);
            return -EBADMSG;
        }
        at = ret->end;
    } while (flag % 3);
    return 0;
}

/* Some bytes of the payload of a record. */
static int payload_at(const struct record *record, uint64_t off, size_t len, uint8_t *ret,
                      struct diag *d)
{
    const uint8_t *bytes;
    int r;

    if (record->parts > 1)
        return recordio_read(record->window->rc, record->blob, record->at, record->length,
                             record->parts, off, len, ret, d);
    r = pass_window_at(record->window, record->blob, record->at + RECORDIO_PART + off, len,
                       record->blob->size, &bytes, d);
    if (r == 0)
        memcpy(ret, bytes, len);
    return r;
}

/* Set the numbers of a picture. */
static int look_at_picture(const struct record *record, uint64_t *number, struct diag *d)
{
    uint8_t head[RECORDIO_IMAGE], picture[BYTES_MAGIC_SIZE];
    uint64_t at = RECORDIO_IMAGE;
    size_t len;
    int r;

    number[RECORDIO_PAYLOAD] = PAYLOAD_SHORT;
    if (record->length < RECORDIO_IMAGE)
        return 0;
    r = payload_at(record, 0, sizeof(head), head, d);
    if (r < 0)
        return r;
    number[RECORDIO_LABELS_OWN] = load_le32(head);
    number[RECORDIO_LABEL] = load_le32(head + 4);
    number[RECORDIO_ID] = load_le64(head + 8);
    number[RECORDIO_ID_HIGH] = load_le64(head + 16);
    number[RECORDIO_PAYLOAD] = PAYLOAD_LABELS;
    at += 4 * number[RECORDIO_LABELS_OWN];
    if (at > record->length)
        return 0;
    len = (size_t)min_u64(record->length - at, BYTES_MAGIC_SIZE);
    r = len ? payload_at(record, at, len, picture, d) : 0;
    if (r == 0)
        number[RECORDIO_PAYLOAD] = PAYLOAD_OTHER + bytes_format_of(picture, len);
    return r;
}

/* Set the numbers of the record of that place. 0; -EBADMSG with the reason in why; or -errno. */
static int look_at_record(struct record *record, bool has_picture, uint64_t *number,
                          char why[static 256], struct diag *d)
{
    int r = find_record(record, why, d);

    memset(number, 0, RECORDIO_NUMBERS * sizeof(*number));
    number[RECORDIO_AT] = record->at;
    number[RECORDIO_LENGTH] = record->length;
    number[RECORDIO_N_PARTS] = record->parts;
    return r == 0 && has_picture ? look_at_picture(record, number, d) : r;
}

/* Are the numbers of a row those of the file? */
int recordio_verify(struct read_context *rc, const void *p, uint64_t row, struct diag *d)
{
    const struct recordio *file = p;
    uint64_t number[RECORDIO_NUMBERS], found[RECORDIO_NUMBERS];
    struct pass_window window = {.least = WINDOW_LEAST, .most = WINDOW_LEAST, .rc = rc};
    struct record record = {.blob = file->base.blob, .window = &window};
    char why[256] = "";
    int r;

    index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
    record.at = number[RECORDIO_AT];
    r = look_at_record(&record, file->has_pictures, found, why, d);
    pass_window_release(&window);
    if (r < 0 && r != -EBADMSG && r != -EIO)
        return r;
    if (r == 0 && memcmp(number, found,
                         (file->has_pictures ? RECORDIO_NUMBERS : RECORDIO_LABELS_OWN) *
                             sizeof(*number)) != 0)
        snprintf(why, sizeof(why), "byte %llu: expected the record of the index, got another",
                 (unsigned long long)record.at);
    return *why || r < 0 ? diag_set(d, -EBADMSG, "%s", why) : 0;
}

/* ---- the .idx ---- */

/* Ignore it, and say why: once. 0 or -ENOMEM. */
static int ignore_idx(struct recordio *file, const char *text)
{
    int r = text_print(&file->side, "%.200s; it is ignored", text);

    free(TAKE_PTR(file->pass->idx));
    if (r == 0)
        text_plain(file->side, ""); /* the name of the file is in it */
    return r;
}

/* The .idx does not say what the file does. */
static int drop_idx(struct recordio *file)
{
    char text[200];

    snprintf(text, sizeof(text), "%.100s: not all its places, or others, are where records begin",
             blob_name(file->idx));
    return ignore_idx(file, text);
}

/* Fetch the headers of the next records, where that takes time. */
static int follow_idx(struct recordio *file)
{
    struct recordio_pass *pass = file->pass;

    if (!pass->idx)
        return 0;
    if (pass->row >= pass->n_idx || pass->idx[pass->row] != pass->at)
        return drop_idx(file);
    for (; pass->fetched < pass->n_idx && pass->fetched < pass->row + AHEAD; pass->fetched++)
        blob_fetch(file->base.blob, pass->idx[pass->fetched],
                   RECORDIO_PART + RECORDIO_IMAGE + BYTES_MAGIC_SIZE, NULL);
    return 0;
}

/* ---- the index ---- */

/* Add the record at pass->at. 1: added, 0: what follows is no record, or -errno. */
static int recordio_pass_add_record(struct recordio *file, struct diag *d)
{
    struct recordio_pass *pass = file->pass;
    uint64_t number[RECORDIO_NUMBERS];
    struct record record = {.blob = file->base.blob, .window = &pass->window, .at = pass->at};
    char key[24], why[256];
    int len, r;

    r = follow_idx(file);
    if (r == 0)
        r = look_at_record(&record, !pass->no_pictures, number, why, d);
    if (r == -EBADMSG) {
        file->reason = strdup(why);
        return file->reason ? 0 : -ENOMEM;
    }
    if (r < 0)
        return r;
    if (pass->row < DECIDE && number[RECORDIO_PAYLOAD] <= PAYLOAD_OTHER) {
        pass->no_pictures = true;
        memset(number + RECORDIO_LABELS_OWN, 0,
               (RECORDIO_NUMBERS - RECORDIO_LABELS_OWN) * sizeof(*number));
    }
    file->has_other_ids |= number[RECORDIO_ID_HIGH] > 0;
    len = snprintf(key, sizeof(key), "%llu",
                   (unsigned long long)(pass->no_pictures ? pass->row : number[RECORDIO_ID]));
    r = index_add(file->base.prepared.builder, key, (size_t)len, number);
    if (r < 0)
        return r;
    pass->at = record.end;
    pass->row++;
    return 1;
}

static int read_idx(struct recordio *file)
{
    struct recordio_pass *pass = file->pass;
    struct diag d = DIAG_INIT;
    int r = file->idx
                ? recordio_read_idx(file->idx, file->base.blob->size, &pass->idx, &pass->n_idx, &d)
                : 0;

    if (blob_says_nothing(r))
        return r;
    pass->has_idx = true;
    return r < 0 ? ignore_idx(file, diag_text(&d, r)) : 0;
}

static int recordio_pass_begin(void *impl)
{
    struct recordio *file = impl;

    file->pass = calloc(1, sizeof(*file->pass));
    if (!file->pass)
        return -ENOMEM;
    file->pass->window = (struct pass_window){.least = WINDOW_LEAST, .most = WINDOW_MOST};
    return 0;
}

/* The pass is at the end, or where no record is. */
static int end_pass(struct recordio *file, struct diag *d)
{
    struct recordio_pass *pass = file->pass;
    int r = 0;

    if (!pass->row)
        return blob_bad(file->base.blob, d, "%s", file->reason);
    if (pass->idx && pass->n_idx != pass->row)
        r = drop_idx(file);
    file->has_pictures = !pass->no_pictures;
    file->base.prepared.end[RECORDIO_AT] = pass->at;
    return r < 0 ? r : 1;
}

static int recordio_pass_step(void *impl, struct diag *d)
{
    struct recordio *file = impl;
    struct recordio_pass *pass = file->pass;
    int r = 1;

    if (!pass->has_idx)
        return read_idx(file);
    for (unsigned i = 0; i < STEP && r == 1 && pass->at < file->base.blob->size; i++)
        r = recordio_pass_add_record(file, d);
    atomic_store(&file->base.prepared.seen, pass->at);
    if (r < 0)
        return r;
    return r == 1 && pass->at < file->base.blob->size ? 0 : end_pass(file, d);
}

/* ---- what is kept next to the rows ---- */

static int recordio_pass_about(void *impl, const struct index *index, struct text *ret,
                               struct diag *d)
{
    struct recordio *file = impl;

    (void)ret;
    (void)d;
    file->has_other_ids |= file->has_pictures && index->renamed;
    recordio_pass_pass_free(file);
    return 0;
}

static void recordio_keep(void *impl, struct kept *k)
{
    struct recordio *file = impl;

    kept_flag(k, &file->has_pictures);
    kept_flag(k, &file->has_other_ids);
    kept_text(k, &file->reason);
    kept_text(k, &file->side);
}

/* No record may end after the file, nor begin after the next one; contents are checked against it
 * when they are read. */
static bool recordio_pass_rows_are_good(const struct recordio *file, const struct index *index)
{
    uint64_t number[RECORDIO_NUMBERS], size = file->base.blob->size;

    for (uint64_t row = 0; row < index->rows; row++) {
        index_row_start(index, row, RECORDIO_NUMBERS, number);
        if (number[RECORDIO_AT] > size || size - number[RECORDIO_AT] < RECORDIO_PART ||
            number[RECORDIO_LENGTH] > size - number[RECORDIO_AT] - RECORDIO_PART ||
            !number[RECORDIO_N_PARTS] || number[RECORDIO_N_PARTS] > RECORDIO_PARTS ||
            number[RECORDIO_LABELS_OWN] > UINT32_MAX || number[RECORDIO_LABEL] > UINT32_MAX ||
            number[RECORDIO_PAYLOAD] >= N_PAYLOADS ||
            (number[RECORDIO_PAYLOAD] >= PAYLOAD_OTHER &&
             RECORDIO_IMAGE + 4 * number[RECORDIO_LABELS_OWN] > number[RECORDIO_LENGTH] &&
             file->has_pictures))
            return false;
    }
    return index->rows > 0 && index_number(index, index->rows, RECORDIO_AT) <= size;
}

static int recordio_pass_load(void *impl, const struct index *index)
{
    return recordio_pass_rows_are_good(impl, index) ? 0 : -EBADMSG;
}

/* ---- the columns ---- */

/* What all records together say of their labels and pictures. */
struct found {
    uint64_t least, most; /* labels of a record */
    bool has_lists;       /* a record has a list of labels */
    bool whole;           /* each label is a whole number that text can give */
    bool has_high, has_payload[N_PAYLOADS];
};

static void recordio_columns_look_at_row(const struct recordio *file, uint64_t row,
                                         struct found *found)
{
    uint64_t number[RECORDIO_NUMBERS], n;
    float label;

    index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
    found->has_high |= number[RECORDIO_ID_HIGH] > 0;
    found->has_payload[number[RECORDIO_PAYLOAD]] = true;
    if (number[RECORDIO_PAYLOAD] < PAYLOAD_OTHER)
        return;
    n = recordio_labels_of(number);
    found->has_lists |= number[RECORDIO_LABELS_OWN] > 0;
    found->least = min_u64(found->least, n);
    found->most = max_u64(found->most, n);
    if (!found->whole || found->has_lists)
        return;
    label = f4_of_bits((uint32_t)number[RECORDIO_LABEL]);
    found->whole = label >= 0 && label <= 16777216 && truncf(label) == label && !signbit(label);
}

static int add_label(struct recordio *file, const struct found *found)
{
    struct record_column label = {.name = "label", .dtype = DTYPE_F4, .part = COLUMN_LABEL};
    int r = 0;

    if (found->has_lists) {
        label.ndim = 1;
        label.dim[0] = found->least == found->most ? found->most : DIM_VARIES;
    } else if (found->whole) {
        label.without = RECORD_NOT_TAR;
        r = record_file_add(&file->base,
                            &(struct record_column){.name = "label",
                                                    .shown = RECORD_BYTES,
                                                    .ext = "cls",
                                                    .without = RECORD_NOT_ARRAYS | RECORD_NOT_RAW,
                                                    .part = COLUMN_CLASS});
    }
    return r < 0 ? r : record_file_add(&file->base, &label);
}

static int recordio_set_columns(struct recordio *file)
{
    struct found found = {.least = UINT64_MAX, .whole = true};
    struct record_column bytes = {.name = "record",
                                  .shown = RECORD_BYTES,
                                  .ext = "record",
                                  .unnamed = true,
                                  .part = COLUMN_RECORD};
    struct record_column id = {.name = "id", .dtype = DTYPE_U8, .part = COLUMN_ID};
    unsigned kinds = 0;
    int r;

    if (!file->has_pictures)
        return record_file_add(&file->base, &bytes);
    for (uint64_t row = 0; row < file->base.prepared.index.rows; row++)
        recordio_columns_look_at_row(file, row, &found);
    for (unsigned type = PAYLOAD_OTHER; type < N_PAYLOADS; type++)
        kinds += found.has_payload[type];
    r = add_label(file, &found);
    if (r == 0)
        r = record_file_add(&file->base, &id);
    id.name = "id2";
    id.part = COLUMN_ID_HIGH;
    if (r == 0 && found.has_high)
        r = record_file_add(&file->base, &id);
    bytes.name = "image";
    bytes.has_holes = kinds > 1;
    for (unsigned type = PAYLOAD_OTHER; type < N_PAYLOADS && r == 0; type++) {
        bytes.ext = bytes_format_ext(type - PAYLOAD_OTHER);
        bytes.part = COLUMN_PICTURE + type;
        if (found.has_payload[type])
            r = record_file_add(&file->base, &bytes);
    }
    return r;
}

static int recordio_pass_ready(void *impl, struct diag *d)
{
    (void)d;
    return recordio_set_columns(impl);
}

static void recordio_pass_release(void *p)
{
    struct recordio *file = p;

    recordio_pass_pass_free(file);
    blob_free(file->idx);
}

/* What makes the file unusable whatever follows. */
static int recordio_check_start(const struct blob *blob, struct diag *d)
{
    uint8_t header[RECORDIO_PART];
    char why[RECORDIO_WHY];
    const char *wrong;
    uint64_t len, end;
    unsigned flag;
    int r;

    if (blob->size < sizeof(header))
        return diag_set(d, -EBADMSG, "%s: expected the header of a part (8 bytes), got %llu bytes",
                        blob_name(blob), (unsigned long long)blob->size);
    r = blob_read(READ_WAITS, blob, header, sizeof(header), 0, d);
    if (r < 0)
        return r;
    if (load_be32(header) == RECORDIO_MAGIC)
        return diag_set(d, -EBADMSG,
                        "%s: byte 0: expected 0a 23 d7 ce (RecordIO), got the same in big-endian "
                        "order, which is not supported",
                        blob_name(blob));
    wrong = recordio_part(header, 0, blob->size, &flag, &len, &end, why);
    if (!wrong && flag > 1)
        wrong = "expected the start of a record, got a further part of one";
    return wrong ? diag_set(d, -EBADMSG, "%s: byte 0: %s", blob_name(blob), wrong) : 0;
}

static int recordio_open(void *p, const struct record_source *source, struct diag *d)
{
    struct recordio *file = p;
    int r = recordio_check_start(file->base.blob, d);

    if (r == 0)
        file->idx = recordio_take_idx(source->file, source->n, source->i);
    file->base.prepared.second = file->idx;
    return r;
}

const struct record_file_ops recordio_file_ops = {
    .size = sizeof(struct recordio),
    .index = {.version = "recordio 2",
              .keep = recordio_keep,
              .load = recordio_pass_load,
              .begin = recordio_pass_begin,
              .step = recordio_pass_step,
              .about = recordio_pass_about,
              .ready = recordio_pass_ready},
    .shape = {.columns = RECORDIO_NUMBERS, .rising = 1u << RECORDIO_AT, .has_keys = true},
    .checks_rows = true,
    .side_by_side = true,
    .open = recordio_open,
    .release = recordio_pass_release,
};
