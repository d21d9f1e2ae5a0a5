/* The format: which files are RecordIO, and what a record shows. A record that is shorter than its
 * headers say stays a record, so that its loss is seen: its fields cannot be read. */
#include <errno.h>
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

static bool recordio_has_keys(const void *p)
{
    const struct recordio *file = p;

    return file->has_pictures && !file->has_other_ids;
}

static void recordio_damage(const void *p, struct text *t)
{
    const struct recordio *file = p;

    if (file->reason && *file->reason)
        text_add(t, "%s: %s; the rest is ignored\n", blob_name(file->base.blob), file->reason);
}

static void recordio_note(const void *p, struct text *t)
{
    const struct recordio *file = p;

    if (file->side && *file->side)
        text_add(t, "%s\n", file->side);
}

/* ---- contents ---- */

/* The kind of the column that has the picture of a record; those that are lost are where the first
 * pictures are. */
static unsigned payload_shown(const struct recordio *file, uint64_t row)
{
    uint64_t type = recordio_columns_number_of(file, row, RECORDIO_PAYLOAD);

    for (unsigned i = 0; i < file->base.n_columns && type < PAYLOAD_OTHER; i++)
        if (file->base.column[i].part >= COLUMN_PICTURE)
            type = file->base.column[i].part - COLUMN_PICTURE;
    return (unsigned)type;
}

static bool recordio_has(const void *p, uint64_t row, unsigned column)
{
    const struct recordio *file = p;

    return file->base.column[column].part < COLUMN_PICTURE ||
           file->base.column[column].part == COLUMN_RECORD ||
           payload_shown(file, row) + COLUMN_PICTURE == file->base.column[column].part;
}

/* Are the headers of the record whole? */
static int recordio_columns_check(const struct recordio *file, uint64_t row, unsigned shows,
                                  struct diag *d)
{
    uint64_t number[RECORDIO_NUMBERS];

    index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
    if (shows == COLUMN_RECORD || number[RECORDIO_PAYLOAD] >= PAYLOAD_OTHER)
        return 0;
    if (number[RECORDIO_PAYLOAD] == PAYLOAD_SHORT)
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

static int recordio_dims(const void *p, uint64_t row, unsigned column,
                         uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct recordio *file = p;
    unsigned shows = file->base.column[column].part;
    uint64_t number[RECORDIO_NUMBERS], off;
    char text[24];
    int r = recordio_columns_check(file, row, shows, d);

    if (r < 0)
        return r;
    if (shows == COLUMN_LABEL && file->base.column[column].ndim) {
        index_row_start(&file->base.prepared.index, row, RECORDIO_NUMBERS, number);
        ret[0] = recordio_labels_of(number);
    } else if (shows == COLUMN_CLASS) {
        ret[0] = class_text(file, row, text);
    } else if (shows >= COLUMN_PICTURE) {
        recordio_columns_range_of(file, row, shows, &off, &ret[0]);
    }
    return 0;
}

/* Are the bytes those of the payload? Otherwise they are in the index. */
static bool is_stored(const struct recordio *file, uint64_t row, unsigned shows)
{
    return shows >= COLUMN_PICTURE ||
           (shows == COLUMN_LABEL && recordio_columns_number_of(file, row, RECORDIO_LABELS_OWN));
}

static bool recordio_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct recordio *file = p;
    unsigned shows = file->base.column[column].part;
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

static int recordio_content(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                            uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct recordio *file = p;
    unsigned shows = file->base.column[column].part;
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

/* ---- the format ---- */

static bool is_beside(const struct source_file *file)
{
    return recordio_is_beside(file->name);
}

static const struct record_format recordio = {
    .format = &format_recordio,
    .file = &recordio_file_ops,
    .is_beside = is_beside,
    .has = recordio_has,
    .dims = recordio_dims,
    .extent = recordio_extent,
    .read = recordio_content,
    .verify = recordio_verify,
    .has_keys = recordio_has_keys,
    .keys_or_numbers = true,
    .damage = recordio_damage,
    .note = recordio_note,
};

static enum claim recordio_probe(const struct probed_file *file)
{
    if (recordio_is_side(file))
        return CLAIM_NAMED;
    if (file->len < 4)
        return CLAIM_NONE;
    return load_le32(file->head) == RECORDIO_MAGIC || load_be32(file->head) == RECORDIO_MAGIC
               ? CLAIM_STRONG
               : CLAIM_NONE;
}

const struct format format_recordio = {
    .name = "recordio",
    .probe = recordio_probe,
    .records = &recordio,
    .has_empty_files = true,
    .title = "RecordIO of MXNet and dmlc: pictures of im2rec, or any records",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  first = batch['image'][:batch['image_offsets'][1]].tobytes()\n",
};
