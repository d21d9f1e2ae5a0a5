/* The format: which files are RecordIO, and how they are opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/recordio/file.h"

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

/* ---- the format: its files ---- */

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
    .title = "RecordIO of MXNet and dmlc: pictures of im2rec, or any records",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  first = batch['image'][:batch['image_offsets'][1]].tobytes()\n",
};
