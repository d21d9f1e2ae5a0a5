/* What records hold, and the format. Sizes come from the index. Bytes come from the record, whose
 * checksum is checked before; the memo keeps where its features are, and its bytes if they are few.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/extents.h"
#include "format/tfrecord/file.h"
#include "format/tfrecord/frame.h"

#define KEPT_MAX (UINT64_C(1) << 20) /* bytes of a record that are kept with its features */

static const struct learned_column *feature_of(const struct tfrecord_file *file,
                                               const struct record_column *what)
{
    return &file->features.column[what->field];
}

/* ---- sizes ---- */

static int tfrecord_read_refuse(const struct tfrecord_file *file, uint64_t row, int error,
                                const char *wanted, struct diag *d)
{
    uint64_t at, bytes;

    tfrecord_place(file, row, &at, &bytes);
    return diag_set(d, error, "%s: record %llu, at byte %llu: expected %s",
                    blob_name(file->base.blob), (unsigned long long)row, (unsigned long long)at,
                    wanted);
}

static enum record_state state_of(const struct tfrecord_file *file, uint64_t row)
{
    return (enum record_state)index_number(&file->base.prepared.index, row, FILE_STATE);
}

static uint64_t tfrecord_read_number_of(const struct tfrecord_file *file, uint64_t row,
                                        uint64_t column)
{
    return column ? index_number(&file->base.prepared.index, row, (unsigned)column) : 0;
}

static bool tfrecord_has(const void *p, uint64_t row, unsigned column)
{
    const struct tfrecord_file *file = p;
    const struct record_column *what = &file->base.column[column];

    return what->part == EXAMPLE_RECORD || state_of(file, row) != RECORD_EXAMPLE ||
           tfrecord_read_number_of(file, row, feature_of(file, what)->number[FEATURE_COUNT]);
}

/* The elements of a content, for its first axis. 0, or -errno with the reason in d. */
static int tfrecord_read_count_elements(const struct tfrecord_file *file, uint64_t row,
                                        const struct record_column *what, uint64_t *ret,
                                        struct diag *d)
{
    const uint64_t *numbers = feature_of(file, what)->number;
    uint64_t number = tfrecord_read_number_of(file, row, numbers[FEATURE_COUNT]);
    enum feature_kind type = number ? feature_kind(number) : EXAMPLE_NONE;
    enum feature_kind expected = feature_kind_of(feature_of(file, what));

    *ret = 0;
    if (type != EXAMPLE_NONE && type != expected)
        return tfrecord_read_refuse(
            file, row, -EBADMSG,
            "a feature of the kind that it has in most records, got another kind", d);
    if (what->part == EXAMPLE_STEPS)
        *ret = tfrecord_read_number_of(file, row, numbers[FEATURE_STEPS]);
    else if (expected == EXAMPLE_BYTES && what->part == EXAMPLE_VALUES)
        *ret = tfrecord_read_number_of(file, row, numbers[FEATURE_BYTES]);
    else if (number)
        *ret = feature_count(number);
    return 0;
}

static int tfrecord_dims(const void *p, uint64_t row, unsigned column,
                         uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct tfrecord_file *file = p;
    const struct record_column *what = &file->base.column[column];
    enum record_state state = state_of(file, row);
    bool is_record = what->part == EXAMPLE_RECORD;
    uint64_t at, bytes, n;
    int r = 0;

    tfrecord_place(file, row, &at, &bytes);
    n = bytes - FRAME_BYTES;
    if (state == RECORD_SPOILT)
        return tfrecord_read_refuse(file, row, -EIO, "data that match their checksum, got others",
                                    d);
    if (!is_record && state != RECORD_EXAMPLE)
        return tfrecord_read_refuse(file, row, -EBADMSG, "a tf.train.Example, got other data", d);
    if (!is_record)
        r = tfrecord_read_count_elements(file, row, what, &n, d);
    if (r == 0 && (n > bytes - FRAME_BYTES ||
                   (what->shown == RECORD_NUMBERS && n != (what->ndim == 0 ? 1 : what->dim[0]) &&
                    (what->ndim == 0 || what->dim[0] != DIM_VARIES))))
        r = tfrecord_read_refuse(file, row, -EBADMSG,
                                 "what its index says of it, got other numbers", d);
    if (r == 0)
        ret[0] = n;
    return r;
}

static bool tfrecord_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct tfrecord_file *file = p;
    uint64_t at, bytes;

    (void)column;
    tfrecord_place(file, row, &at, &bytes);
    *ret = (struct extent){file->base.blob, at, bytes};
    return true;
}

/* Does a record of that length begin there? Its data and what is in them are checked anyway. */
static int tfrecord_verify(struct read_context *rc, const void *p, uint64_t row, struct diag *d)
{
    const struct tfrecord_file *file = p;
    uint8_t head[FRAME_HEAD];
    uint64_t at, bytes, len;
    int r;

    tfrecord_place(file, row, &at, &bytes);
    r = blob_read(rc, file->base.blob, head, sizeof(head), at, d);
    if (r < 0)
        return r;
    return frame_head(head, &len) && len == bytes - FRAME_BYTES
               ? 0
               : diag_set(d, -EBADMSG, "byte %llu: expected a record of %llu bytes, got none",
                          (unsigned long long)at, (unsigned long long)bytes);
}

/* ---- records in memory ---- */

struct record {
    uint64_t len;                     /* of the data */
    bool has_data;                    /* else only where the features are */
    uint8_t *data;                    /* behind the features */
    struct example_feature feature[]; /* [features.n] with name NULL */
};

struct making {
    const struct tfrecord_file *file;
    struct read_context *rc;
    uint64_t row;
    bool keeps_all; /* also data that are many */
    struct record *record;
    struct diag *d;
};

static int take_feature(void *ctx, const struct example_feature *f)
{
    struct making *making = ctx;
    uint8_t name[1 + EXAMPLE_NAME_MAX];
    unsigned i;

    name[0] = f->is_list ? FEATURE_OF_LISTS : FEATURE_OF_CONTEXT;
    memcpy(name + 1, f->name, f->name_len);
    if (column_table_find(&making->file->features, name, 1 + f->name_len, &i)) {
        making->record->feature[i] = *f;
        making->record->feature[i].name = NULL;
    }
    return 0;
}

/* Read the record with its frame, and check it. */
static int read_frame(const struct making *making, uint64_t at, uint64_t bytes, uint8_t *frame)
{
    const struct tfrecord_file *file = making->file;
    uint64_t len;
    int r = blob_read(making->rc, file->base.blob, frame, (size_t)bytes, at, making->d);

    if (r == 0)
        r = blob_used(making->rc, file->base.blob, making->d);
    if (r < 0 || (frame_head(frame, &len) && len == bytes - FRAME_BYTES &&
                  frame_data(frame + FRAME_HEAD, len)))
        return r;
    return tfrecord_read_refuse(file, making->row, -EIO,
                                "bytes that match their checksums, got others", making->d);
}

static int make_record(void *ctx, void **ret, size_t *ret_size)
{
    struct making *making = ctx;
    const struct tfrecord_file *file = making->file;
    size_t head = sizeof(struct record) + file->features.n * sizeof(struct example_feature);
    AUTO_FREE struct record *record = NULL;
    struct example_fault fault;
    uint64_t at, bytes;
    int r;

    tfrecord_place(file, making->row, &at, &bytes);
    if (bytes - FRAME_BYTES > EXAMPLE_MAX)
        return tfrecord_read_refuse(file, making->row, -EBADMSG, "at most 2147483647 bytes of data",
                                    making->d);
    record = malloc(head + (size_t)bytes);
    if (!record)
        return -ENOMEM;
    memset(record, 0, head);
    r = read_frame(making, at, bytes, (uint8_t *)record + head);
    if (r < 0)
        return r;
    record->len = bytes - FRAME_BYTES;
    record->data = (uint8_t *)record + head + FRAME_HEAD;
    record->has_data = true;
    making->record = record;
    if (example_parse(record->data, record->len, take_feature, making, &fault) < 0 &&
        state_of(file, making->row) == RECORD_EXAMPLE)
        return tfrecord_read_refuse(file, making->row, -EBADMSG,
                                    "what its index says of it, got other data", making->d);
    *ret_size = head + (size_t)bytes;
    if (bytes > KEPT_MAX && !making->keeps_all) {
        struct record *smaller = realloc(record, head);

        record = smaller ? smaller : record;
        record->has_data = false;
        *ret_size = head;
    }
    *ret = TAKE_PTR(record);
    return 0;
}

/* ---- bytes ---- */

/* Does the feature as it is read have that many elements? Otherwise, the index is not of this
 * record. */
static bool agrees(const struct tfrecord_file *file, const struct record_column *what,
                   const struct example_feature *f, uint64_t end)
{
    uint64_t width = f->type == EXAMPLE_FLOATS ? 4 : 8;

    if (f->type != feature_kind_of(feature_of(file, what)))
        return false;
    if (what->part == EXAMPLE_STEPS)
        return end <= f->steps * 8;
    if (what->part == EXAMPLE_SIZES)
        return end <= f->count * 8;
    return f->type == EXAMPLE_BYTES ? end <= f->bytes : end <= f->count * width;
}

/* Bytes of a record that is too large to be kept: from the file, or from the whole record. */
static int read_large(struct making *making, const struct record_column *what,
                      const struct example_feature *f, uint64_t off, size_t len, uint8_t *dst)
{
    uint64_t at, bytes;
    void *all;
    size_t size;
    int r;

    tfrecord_place(making->file, making->row, &at, &bytes);
    if (what->part == EXAMPLE_VALUES && f->plain != EXAMPLE_NOT_PLAIN)
        return blob_read(making->rc, making->file->base.blob, dst, len,
                         at + FRAME_HEAD + f->plain + off, making->d);
    making->keeps_all = true;
    r = make_record(making, &all, &size);
    if (r < 0)
        return r;
    example_read(((const struct record *)all)->data, f, what->part, off, len, dst);
    free(all);
    return 0;
}

static int read_feature(struct making *making, const struct record *record,
                        const struct record_column *what, uint64_t off, size_t len, uint8_t *dst)
{
    const struct example_feature *f = &record->feature[what->field];

    if (!agrees(making->file, what, f, off + len)) {
        uint64_t n;
        int r = tfrecord_read_count_elements(making->file, making->row, what, &n, making->d);

        return r < 0 ? r
                     : tfrecord_read_refuse(making->file, making->row, -EBADMSG,
                                            "what its index says of it, got other numbers",
                                            making->d);
    }
    if (!record->has_data)
        return read_large(making, what, f, off, len, dst);
    if (what->part == EXAMPLE_VALUES && f->plain != EXAMPLE_NOT_PLAIN)
        memcpy(dst, record->data + f->plain + off, len);
    else
        example_read(record->data, f, what->part, off, len, dst);
    return 0;
}

static int tfrecord_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                         uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct tfrecord_file *file = p;
    const struct record_column *what = &file->base.column[column];
    struct making making = {.file = file, .rc = rc, .row = row, .d = d};
    const struct memo_maker maker = {make_record, &making, rc};
    const struct memo_key key = {{(uintptr_t)file, row, (uintptr_t)make_record}};
    AUTO_MEMO struct memo_thing *thing = NULL;
    const struct record *record;
    uint64_t at, bytes;
    int r;

    tfrecord_place(file, row, &at, &bytes);
    if (what->part == EXAMPLE_RECORD && bytes > KEPT_MAX)
        return blob_read(rc, file->base.blob, dst, len, at + FRAME_HEAD + off, d);
    r = memo_get(file->memo, &key, &maker, &thing);
    if (r < 0)
        return r;
    record = memo_bytes(thing);
    if (what->part != EXAMPLE_RECORD)
        return read_feature(&making, record, what, off, len, dst);
    memcpy(dst, record->data + off, len);
    return 0;
}

/* ---- what people are told ---- */

static void tfrecord_damage(const void *p, struct text *t)
{
    static const char *const wanted[N_TAILS] = {
        [TAIL_HEAD] = "a record's length that matches its checksum, got another",
        [TAIL_HEAD_CUT] = "the 12 bytes that begin a record, got the end of the file",
        [TAIL_DATA_CUT] = "the data of a record, got the end of the file",
    };
    const struct tfrecord_file *file = p;
    const struct findings *f = &file->findings;

    if (f->tail != TAIL_NONE)
        text_add(t, "%s: byte %llu: expected %s; only the %llu records before it are served\n",
                 blob_name(file->base.blob), (unsigned long long)f->tail_at, wanted[f->tail],
                 (unsigned long long)file->base.prepared.index.rows);
}

static void tfrecord_note(const void *p, struct text *t)
{
    const struct tfrecord_file *file = p;
    const struct findings *f = &file->findings;
    const char *name = blob_name(file->base.blob);

    if (f->spoilt)
        text_add(t,
                 "%s: records that cannot be read: %llu, the first at byte %llu: expected data "
                 "that match "
                 "their checksum, got others\n",
                 name, (unsigned long long)f->spoilt, (unsigned long long)f->first_spoilt);
    if (f->others && f->examples && f->others <= f->examples)
        text_add(
            t, "%s: records that are no tf.train.Example: %llu; they have the file .record alone\n",
            name, (unsigned long long)f->others);
    if (file->features.left_out)
        text_add(t, "%s: features beyond the first %u are ignored, such as %s\n", name,
                 file->features.n, file->features.first_out + 1);
    if (file->hidden)
        text_add(t,
                 "%s: %u features have no field: kinds differ inside of a list, or the index "
                 "has no columns left\n",
                 name, file->hidden);
}

/* ---- the format ---- */

static const struct record_format tfrecord_records = {
    .format = &format_tfrecord,
    .file = &tfrecord_file_ops,
    .has_groups = true,
    .has = tfrecord_has,
    .dims = tfrecord_dims,
    .extent = tfrecord_extent,
    .read = tfrecord_read,
    .verify = tfrecord_verify,
    .damage = tfrecord_damage,
    .note = tfrecord_note,
};

/* No other file has a checksum there by chance, so the claim is above those of formats that know a
 * file by two bytes, which a length can have. A file without a byte is a shard without a record if
 * its name says so. */
static enum claim tfrecord_probe(const struct probed_file *file)
{
    uint64_t len;

    if (file->len == 0)
        return strstr(file->name, ".tfrec") ? CLAIM_WEAK : CLAIM_NONE;
    return file->len >= FRAME_HEAD && frame_head(file->head, &len) ? CLAIM_NAMED : CLAIM_NONE;
}

const struct format format_tfrecord = {
    .name = "tfrecord",
    .probe = tfrecord_probe,
    .records = &tfrecord_records,
    .has_empty_files = true,
    .title = "TFRecord",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  for field in batch.files: print(field, batch[field].shape)\n",
};
