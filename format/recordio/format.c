/* The format: which files are RecordIO, and how they are opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/recordio/file.h"

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

int recordio_open(void *p, const struct record_source *source, struct diag *d)
{
    struct recordio *file = p;
    int r = recordio_check_start(file->base.blob, d);

    if (r == 0)
        file->idx = recordio_take_idx(source->file, source->n, source->i);
    return r;
}

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
