/* The pass that makes the index of a file of records: from the header of a part to the next. Of
 * pictures the bytes before them are read too. The first records decide whether they are pictures.
 *
 * An .idx says where all records are, so their headers are fetched ahead, all at once, where the
 * file is on another machine. It is used as a hint only, and must agree with what is found. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
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
    uint64_t length, parts, end;
};

/* Find the end of the record at pass->at. 0; -EBADMSG with the reason in why; or -errno. */
static int find_record(struct recordio *file, struct record *ret, char why[static 256],
                       struct diag *d)
{
    uint64_t at = file->pass->at, size = file->base.blob->size, len;
    char text[RECORDIO_WHY];
    const char *wrong = NULL;
    unsigned flag = 0;

    *ret = (struct record){0};
    do {
        const uint8_t *header;
        int r;

        if (size - at < RECORDIO_PART) {
            snprintf(why, 256, "byte %llu: expected the header of a part, got %llu bytes",
                     (unsigned long long)at, (unsigned long long)(size - at));
            return -EBADMSG;
        }
        r = pass_window_at(&file->pass->window, file->base.blob, at, RECORDIO_PART, size, &header,
                           d);
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
static int payload_at(struct recordio *file, const struct record *record, uint64_t off, size_t len,
                      uint8_t *ret, struct diag *d)
{
    const uint8_t *bytes;
    int r;

    if (record->parts > 1)
        return recordio_read(READ_WAITS, file->base.blob, file->pass->at, record->length,
                             record->parts, off, len, ret, d);
    r = pass_window_at(&file->pass->window, file->base.blob, file->pass->at + RECORDIO_PART + off,
                       len, file->base.blob->size, &bytes, d);
    if (r == 0)
        memcpy(ret, bytes, len);
    return r;
}

/* Set the numbers of a picture. */
static int look_at_picture(struct recordio *file, const struct record *record, uint64_t *number,
                           struct diag *d)
{
    uint8_t head[RECORDIO_IMAGE], picture[BYTES_KIND_HEAD];
    uint64_t at = RECORDIO_IMAGE;
    size_t len;
    int r;

    number[RECORDIO_KIND] = KIND_SHORT;
    if (record->length < RECORDIO_IMAGE)
        return 0;
    r = payload_at(file, record, 0, sizeof(head), head, d);
    if (r < 0)
        return r;
    number[RECORDIO_LABELS_OWN] = load_le32(head);
    number[RECORDIO_LABEL] = load_le32(head + 4);
    number[RECORDIO_ID] = load_le64(head + 8);
    number[RECORDIO_ID_HIGH] = load_le64(head + 16);
    number[RECORDIO_KIND] = KIND_LABELS;
    at += 4 * number[RECORDIO_LABELS_OWN];
    if (at > record->length)
        return 0;
    len = (size_t)min_u64(record->length - at, BYTES_KIND_HEAD);
    r = len ? payload_at(file, record, at, len, picture, d) : 0;
    if (r == 0)
        number[RECORDIO_KIND] = KIND_OTHER + bytes_kind_of(picture, len);
    return r;
}

/* ---- the .idx ---- */

static void recordio_pass_leave_aside(struct recordio *file, const char *text)
{
    if (!*file->about.side)
        snprintf(file->about.side, sizeof(file->about.side), "%.200s; it is ignored", text);
    for (char *at = strchr(file->about.side, '\n'); at; at = strchr(at, '\n'))
        *at = '?'; /* in the name of the file; it is kept as a line */
}

/* The .idx does not say what the file does. */
static void drop_idx(struct recordio *file)
{
    struct recordio_pass *pass = file->pass;
    char text[200];

    snprintf(text, sizeof(text), "%.100s: not all its places, or others, are where records begin",
             blob_name(file->idx));
    recordio_pass_leave_aside(file, text);
    free(pass->idx);
    pass->idx = NULL;
}

/* Fetch the headers of the next records, where that takes time. */
static void follow_idx(struct recordio *file)
{
    struct recordio_pass *pass = file->pass;

    if (!pass->idx)
        return;
    if (pass->row >= pass->n_idx || pass->idx[pass->row] != pass->at) {
        drop_idx(file);
        return;
    }
    for (; pass->fetched < pass->n_idx && pass->fetched < pass->row + AHEAD; pass->fetched++)
        blob_fetch(file->base.blob, pass->idx[pass->fetched],
                   RECORDIO_PART + RECORDIO_IMAGE + BYTES_KIND_HEAD, NULL);
}

/* ---- the index ---- */

/* Add the record at pass->at. 1: added, 0: what follows is no record, or -errno. */
static int recordio_pass_add_record(struct recordio *file, struct diag *d)
{
    struct recordio_pass *pass = file->pass;
    uint64_t number[RECORDIO_NUMBERS] = {0};
    struct record record;
    char key[24], why[256];
    int len, r;

    follow_idx(file);
    r = find_record(file, &record, why, d);
    if (r == -EBADMSG) {
        snprintf(file->about.reason, sizeof(file->about.reason), "%s", why);
        return 0;
    }
    if (r < 0)
        return r;
    if (!pass->no_pictures)
        r = look_at_picture(file, &record, number, d);
    if (r == 0 && pass->row < DECIDE && number[RECORDIO_KIND] <= KIND_OTHER) {
        pass->no_pictures = true;
        memset(number, 0, sizeof(number));
    }
    if (r < 0)
        return r;
    number[RECORDIO_AT] = pass->at;
    number[RECORDIO_LENGTH] = record.length;
    number[RECORDIO_N_PARTS] = record.parts;
    file->about.has_other_ids |= number[RECORDIO_ID_HIGH] > 0;
    len = snprintf(key, sizeof(key), "%llu",
                   (unsigned long long)(pass->no_pictures ? pass->row : number[RECORDIO_ID]));
    r = index_add(file->base.prepared.builder, key, (size_t)len, number);
    if (r < 0)
        return r;
    pass->at = record.end;
    pass->row++;
    return 1;
}

static int recordio_pass_identity(void *impl, struct text *ret)
{
    const struct recordio *file = impl;

    return file->idx ? prepared_add_identity(&file->base.prepared, ret, file->idx) : 0;
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
    if (r < 0)
        recordio_pass_leave_aside(file, diag_text(&d, r));
    pass->has_idx = true;
    return 0;
}

static int recordio_pass_begin(void *impl)
{
    struct recordio *file = impl;

    file->pass = calloc(1, sizeof(*file->pass));
    if (!file->pass)
        return -ENOMEM;
    file->pass->window = (struct pass_window){.least = WINDOW_LEAST, .most = WINDOW_MOST};
    file->about = (struct recordio_about){0};
    return 0;
}

/* The pass is at the end, or where no record is. */
static int end_pass(struct recordio *file, struct diag *d)
{
    struct recordio_pass *pass = file->pass;
    int r = blob_check(file->base.blob);

    if (r < 0)
        return r;
    if (!pass->row)
        return diag_set(d, -EBADMSG, "%s: %s", blob_name(file->base.blob), file->about.reason);
    if (pass->idx && pass->n_idx != pass->row)
        drop_idx(file);
    file->about.has_pictures = !pass->no_pictures;
    file->about.end = pass->at;
    file->base.prepared.end[RECORDIO_AT] = pass->at;
    return 1;
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
    if (r < 0 || (r == 1 && pass->at < file->base.blob->size))
        return r < 0 ? r : 0;
    return end_pass(file, d);
}

/* ---- what is kept beside the rows ---- */

static int recordio_pass_about(void *impl, const struct index *index, struct text *ret,
                               struct diag *d)
{
    struct recordio *file = impl;
    struct recordio_about *about = &file->about;

    (void)d;
    about->has_other_ids |= about->has_pictures && index->renamed;
    text_add(ret, "%c%c%llu\n%s\n%s", '0' + about->has_pictures, '0' + about->has_other_ids,
             (unsigned long long)about->end, about->reason, about->side);
    recordio_pass_pass_free(file);
    return 0;
}

/* Take a line of a kept text, of which len bytes are left. */
static bool take_line(const char **text, size_t *len, char *ret, size_t capacity)
{
    const char *end = memchr(*text, '\n', *len);
    size_t n = end ? (size_t)(end - *text) : *len;

    if (n >= capacity)
        return false;
    memcpy(ret, *text, n);
    ret[n] = '\0';
    *text += n + (end != NULL);
    *len -= n + (end != NULL);
    return true;
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
            number[RECORDIO_KIND] >= N_KINDS ||
            (number[RECORDIO_KIND] >= KIND_OTHER &&
             RECORDIO_IMAGE + 4 * number[RECORDIO_LABELS_OWN] > number[RECORDIO_LENGTH] &&
             file->about.has_pictures))
            return false;
    }
    return index->rows > 0 && index_number(index, index->rows, RECORDIO_AT) <= size;
}

static int recordio_pass_take(void *impl, const struct index *index)
{
    struct recordio *file = impl;
    const char *text = (const char *)index->about;
    size_t len = index->about_len;
    char head[32], *digits = head + 2;
    unsigned long long end;
    int used = 0;

    if (!take_line(&text, &len, head, sizeof(head)) || strlen(head) < 3 ||
        sscanf(digits, "%llu%n", &end, &used) != 1 || digits[used] ||
        !take_line(&text, &len, file->about.reason, sizeof(file->about.reason)) ||
        !take_line(&text, &len, file->about.side, sizeof(file->about.side)) || len)
        return -EBADMSG;
    file->about.has_pictures = head[0] == '1';
    file->about.has_other_ids = head[1] == '1';
    file->about.end = end;
    return recordio_pass_rows_are_good(file, index) ? 0 : -EBADMSG;
}

static int recordio_pass_ready(void *impl, struct diag *d)
{
    (void)d;
    recordio_set_columns(impl);
    return 0;
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
    return r;
}

const struct record_file_ops recordio_file_ops = {
    .size = sizeof(struct recordio),
    .index = {.version = "recordio 1",
              .identity = recordio_pass_identity,
              .load = recordio_pass_take,
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
