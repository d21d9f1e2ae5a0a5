/* TFRecord as a format: see README.md here. */
#include <string.h>

#include "format/tfrecord/file.h"
#include "format/tfrecord/frame.h"

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
    .title = "TFRecord",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  for field in batch.files: print(field, batch[field].shape)\n",
};
