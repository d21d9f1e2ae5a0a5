/* What a record shows. A record that is shorter than its headers say stays a record, so that its
 * loss is seen: its fields cannot be read. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/real.h"
#include "format/recordio/file.h"

static uint64_t recordio_columns_number_of(const struct recordio *file, uint64_t row,
                                           enum recordio_number number)
{
    return index_number(&file->base.prepared.index, row, number);
}

/* ---- the columns ---- */

/* What all records together say of their labels and pictures. */
struct found {
    uint64_t least, most; /* labels of a record */
    bool has_lists;       /* a record has a list of labels */
    bool whole;           /* each label is a whole number that text can give */
    bool has_high, has_kind[N_KINDS];
};

static uint64_t labels_of(const uint64_t *number)
{
    return number[RECORDIO_LABELS_OWN] ? number[RECORDIO_LABELS_OWN] : 1;
}

static void recordio_columns_look_at_row(const struct recordio *file, uint64_t row,
                                         struct found *found)
{
    uint64_t number[RECORDIO_NUMBERS], n;
    float label;

    index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
    found->has_high |= number[RECORDIO_ID_HIGH] > 0;
    found->has_kind[number[RECORDIO_KIND]] = true;
    if (number[RECORDIO_KIND] < KIND_OTHER)
        return;
    n = labels_of(number);
    found->has_lists |= number[RECORDIO_LABELS_OWN] > 0;
    found->least = min_u64(found->least, n);
    found->most = max_u64(found->most, n);
    if (!found->whole || found->has_lists)
        return;
    label = f4_of_bits((uint32_t)number[RECORDIO_LABEL]);
    found->whole = label >= 0 && label <= 16777216 && truncf(label) == label && !signbit(label);
}

static void recordio_columns_add(struct recordio *file, unsigned shows,
                                 const struct record_column *column)
{
    file->column[file->base.n_columns] = *column;
    file->shows[file->base.n_columns++] = (uint8_t)shows;
}

static void add_label(struct recordio *file, const struct found *found)
{
    struct record_column label = {.name = "label", .dtype = DTYPE_F4};

    if (found->has_lists) {
        label.ndim = 1;
        label.dim[0] = found->least == found->most ? found->most : DIM_VARIES;
    } else if (found->whole) {
        label.without = RECORD_NOT_TAR;
        recordio_columns_add(
            file, COLUMN_CLASS,
            &(struct record_column){.name = "label",
                                    .shown = RECORD_BYTES,
                                    .ext = "cls",
                                    .without = RECORD_NOT_ARRAYS | RECORD_NOT_RAW});
    }
    recordio_columns_add(file, COLUMN_LABEL, &label);
}

void recordio_set_columns(struct recordio *file)
{
    struct found found = {.least = UINT64_MAX, .whole = true};
    unsigned kinds = 0;

    file->base.column = file->column;
    if (!file->about.has_pictures) {
        recordio_columns_add(
            file, COLUMN_RECORD,
            &(struct record_column){
                .name = "record", .shown = RECORD_BYTES, .ext = "record", .unnamed = true});
        return;
    }
    for (uint64_t row = 0; row < file->base.prepared.index.rows; row++)
        recordio_columns_look_at_row(file, row, &found);
    add_label(file, &found);
    recordio_columns_add(file, COLUMN_ID, &(struct record_column){.name = "id", .dtype = DTYPE_U8});
    if (found.has_high)
        recordio_columns_add(file, COLUMN_ID_HIGH,
                             &(struct record_column){.name = "id2", .dtype = DTYPE_U8});
    for (unsigned type = KIND_OTHER; type < N_KINDS; type++)
        kinds += found.has_kind[type];
    for (unsigned type = KIND_OTHER; type < N_KINDS; type++)
        if (found.has_kind[type])
            recordio_columns_add(file, COLUMN_PICTURE + type,
                                 &(struct record_column){.name = "image",
                                                         .shown = RECORD_BYTES,
                                                         .ext = bytes_kind_ext(type - KIND_OTHER),
                                                         .unnamed = true,
                                                         .has_holes = kinds > 1});
}

/* Do the headers of a picture say what the index does? */
static int verify_picture(struct read_context *rc, const struct recordio *file,
                          const uint64_t *number, struct diag *d)
{
    uint8_t head[RECORDIO_IMAGE], picture[BYTES_KIND_HEAD];
    uint64_t at = RECORDIO_IMAGE + 4 * number[RECORDIO_LABELS_OWN],
             length = number[RECORDIO_LENGTH];
    size_t n = (size_t)min_u64(length - min_u64(at, length), sizeof(picture));
    int r = recordio_read(rc, file->base.blob, number[RECORDIO_AT], length,
                          number[RECORDIO_N_PARTS], 0, sizeof(head), head, d);

    if (r == 0 && n)
        r = recordio_read(rc, file->base.blob, number[RECORDIO_AT], length,
                          number[RECORDIO_N_PARTS], at, n, picture, d);
    if (r < 0)
        return r == -EIO ? -EBADMSG : r;
    if (load_le32(head) != number[RECORDIO_LABELS_OWN] ||
        load_le32(head + 4) != number[RECORDIO_LABEL] ||
        load_le64(head + 8) != number[RECORDIO_ID] ||
        load_le64(head + 16) != number[RECORDIO_ID_HIGH] ||
        (at <= length &&
         (uint64_t)(KIND_OTHER + bytes_kind_of(picture, n)) != number[RECORDIO_KIND]))
        return diag_set(d, -EBADMSG,
                        "byte %llu: expected a picture of that id and label, got another",
                        (unsigned long long)number[RECORDIO_AT]);
    return 0;
}

/* Each further part is checked when it is read. */
int recordio_verify(struct read_context *rc, const void *p, uint64_t row, struct diag *d)
{
    const struct recordio *file = p;
    uint64_t number[RECORDIO_NUMBERS], len, end;
    uint8_t header[RECORDIO_PART];
    char why[RECORDIO_WHY];
    const char *wrong;
    unsigned flag;
    int r;

    index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
    r = blob_read(rc, file->base.blob, header, sizeof(header), number[RECORDIO_AT], d);
    if (r < 0)
        return r;
    wrong =
        recordio_part(header, number[RECORDIO_AT], file->base.blob->size, &flag, &len, &end, why);
    if (!wrong && (flag != (number[RECORDIO_N_PARTS] > 1) || len > number[RECORDIO_LENGTH] ||
                   (!flag && len != number[RECORDIO_LENGTH])))
        wrong = "expected a record of another length";
    if (wrong)
        return diag_set(d, -EBADMSG, "byte %llu: %s", (unsigned long long)number[RECORDIO_AT],
                        wrong);
    return file->about.has_pictures && number[RECORDIO_LENGTH] >= RECORDIO_IMAGE
               ? verify_picture(rc, file, number, d)
               : 0;
}

bool recordio_has_keys(const void *p)
{
    const struct recordio *file = p;

    return file->about.has_pictures && !file->about.has_other_ids;
}

void recordio_damage(const void *p, struct text *t)
{
    const struct recordio *file = p;

    if (*file->about.reason)
        text_add(t, "%s: %s; the rest is ignored\n", blob_name(file->base.blob),
                 file->about.reason);
}

void recordio_note(const void *p, struct text *t)
{
    const struct recordio *file = p;

    if (*file->about.side)
        text_add(t, "%s\n", file->about.side);
}

/* ---- contents ---- */

/* The kind of the column that has the picture of a record; those that are lost are where the first
 * pictures are. */
static unsigned kind_shown(const struct recordio *file, uint64_t row)
{
    uint64_t type = recordio_columns_number_of(file, row, RECORDIO_KIND);

    for (unsigned i = 0; i < file->base.n_columns && type < KIND_OTHER; i++)
        if (file->shows[i] >= COLUMN_PICTURE)
            type = file->shows[i] - COLUMN_PICTURE;
    return (unsigned)type;
}

bool recordio_has(const void *p, uint64_t row, unsigned column)
{
    const struct recordio *file = p;

    return file->shows[column] < COLUMN_PICTURE || file->shows[column] == COLUMN_RECORD ||
           kind_shown(file, row) + COLUMN_PICTURE == file->shows[column];
}

/* Are the headers of the record whole? */
static int recordio_columns_check(const struct recordio *file, uint64_t row, unsigned shows,
                                  struct diag *d)
{
    uint64_t number[RECORDIO_NUMBERS];

    index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
    if (shows == COLUMN_RECORD || number[RECORDIO_KIND] >= KIND_OTHER)
        return 0;
    if (number[RECORDIO_KIND] == KIND_SHORT)
        return diag_set(d, -EIO,
                        "%s: byte %llu: expected a picture behind 24 bytes, got a record of "
                        "%llu bytes",
                        blob_name(file->base.blob), (unsigned long long)number[RECORDIO_AT],
                        (unsigned long long)number[RECORDIO_LENGTH]);
    if (shows == COLUMN_ID || shows == COLUMN_ID_HIGH)
        return 0;
    return diag_set(d, -EIO, "%s: byte %llu: expected %llu labels, got a record of %llu bytes",
                    blob_name(file->base.blob), (unsigned long long)number[RECORDIO_AT],
                    (unsigned long long)number[RECORDIO_LABELS_OWN],
                    (unsigned long long)number[RECORDIO_LENGTH]);
}

static size_t class_text(const struct recordio *file, uint64_t row, char ret[static 24])
{
    return (size_t)snprintf(
        ret, 24, "%.0f",
        (double)f4_of_bits((uint32_t)recordio_columns_number_of(file, row, RECORDIO_LABEL)));
}

/* Where the payload has a content. */
static void recordio_columns_range_of(const struct recordio *file, uint64_t row, unsigned shows,
                                      uint64_t *ret_off, uint64_t *ret_len)
{
    uint64_t length = recordio_columns_number_of(file, row, RECORDIO_LENGTH);
    uint64_t labels = 4 * recordio_columns_number_of(file, row, RECORDIO_LABELS_OWN);

    *ret_off = shows == COLUMN_RECORD ? 0 : RECORDIO_IMAGE;
    *ret_len = shows == COLUMN_RECORD ? length : labels;
    if (shows >= COLUMN_PICTURE && shows != COLUMN_RECORD) {
        *ret_off += labels;
        *ret_len = length - *ret_off;
    }
}

int recordio_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                  struct diag *d)
{
    const struct recordio *file = p;
    unsigned shows = file->shows[column];
    uint64_t number[RECORDIO_NUMBERS], off;
    char text[24];
    int r = recordio_columns_check(file, row, shows, d);

    if (r < 0)
        return r;
    if (shows == COLUMN_LABEL && file->column[column].ndim) {
        index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
        ret[0] = labels_of(number);
    } else if (shows == COLUMN_CLASS) {
        ret[0] = class_text(file, row, text);
    } else if (shows >= COLUMN_PICTURE) {
        recordio_columns_range_of(file, row, shows, &off, &ret[0]);
    }
    return 0;
}

/* Are the bytes those of the payload? Else they are in the index. */
static bool is_stored(const struct recordio *file, uint64_t row, unsigned shows)
{
    return shows >= COLUMN_PICTURE ||
           (shows == COLUMN_LABEL && recordio_columns_number_of(file, row, RECORDIO_LABELS_OWN));
}

bool recordio_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct recordio *file = p;
    unsigned shows = file->shows[column];
    uint64_t at = recordio_columns_number_of(file, row, RECORDIO_AT), off, len, parts;

    if (!is_stored(file, row, shows) || recordio_columns_check(file, row, shows, NULL) < 0)
        return false;
    recordio_columns_range_of(file, row, shows, &off, &len);
    if (!len)
        return false;
    parts = recordio_columns_number_of(file, row, RECORDIO_N_PARTS);
    if (parts == 1)
        *ret = (struct extent){file->base.blob, at + RECORDIO_PART + off, len};
    else /* from the first header on: each says where the next is */
        *ret = (struct extent){file->base.blob, at,
                               min_u64(recordio_columns_number_of(file, row + 1, RECORDIO_AT) - at,
                                       off + len + RECORDIO_PART * parts)};
    return ret->len > 0;
}

/* Bytes [off, off + len) of a number of the index. */
static void recordio_columns_read_number(const struct recordio *file, uint64_t row, unsigned shows,
                                         uint64_t off, size_t len, uint8_t *dst)
{
    uint8_t bytes[8];

    store_le64(bytes, recordio_columns_number_of(file, row,
                                                 shows == COLUMN_ID        ? RECORDIO_ID
                                                 : shows == COLUMN_ID_HIGH ? RECORDIO_ID_HIGH
                                                                           : RECORDIO_LABEL));
    memcpy(dst, bytes + off, len);
}

int recordio_content(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct recordio *file = p;
    unsigned shows = file->shows[column];
    char text[24];
    uint64_t start, bytes;
    int r = recordio_columns_check(file, row, shows, d);

    if (r < 0)
        return r;
    if (shows == COLUMN_CLASS) {
        class_text(file, row, text);
        memcpy(dst, text + off, len);
    } else if (!is_stored(file, row, shows)) {
        recordio_columns_read_number(file, row, shows, off, len, dst);
    } else {
        recordio_columns_range_of(file, row, shows, &start, &bytes);
        r = recordio_read(rc, file->base.blob, recordio_columns_number_of(file, row, RECORDIO_AT),
                          recordio_columns_number_of(file, row, RECORDIO_LENGTH),
                          recordio_columns_number_of(file, row, RECORDIO_N_PARTS), start + off, len,
                          dst, d);
    }
    return r;
}
