/* A file of RecordIO, as dmlc-core and MXNet write it. Native means little-endian:
 *
 *     part     u32 0xced7230a, u32 flag << 29 | length, the bytes, zeros up to a multiple of 4
 *     flag     0: the part is a record; 1: the first part of one, 2: a further, 3: the last
 *
 * A payload that has the magic number at a multiple of 4 is cut there; between two parts of a
 * record the magic belongs to the payload. So looking for the magic at multiples of 4 finds parts
 * and nothing else.
 *
 * im2rec puts pictures into records: u32 labels, f32 label, u64 id, u64 the upper half of the id,
 * then that many f32 labels (if there are any, they replace the one), then the picture. */
#ifndef EPOCHFS_FORMAT_RECORDIO_FILE_H
#define EPOCHFS_FORMAT_RECORDIO_FILE_H

#include "format/core/extents.h"
#include "format/recordio/sides.h"
#include "format/records/bytes_format.h"
#include "format/records/record_set.h"

#define RECORDIO_MAGIC 0xced7230au
#define RECORDIO_PART  8u                        /* bytes of the header of a part */
#define RECORDIO_MOST  ((UINT64_C(1) << 29) - 1) /* bytes of a part, and of a record */
#define RECORDIO_PARTS 65536u                    /* of a record, at most */
#define RECORDIO_IMAGE 24u                       /* bytes before labels and picture */

/* Columns of the index. */
enum recordio_number {
    RECORDIO_AT, /* of the first part; rises */
    RECORDIO_LENGTH,
    RECORDIO_N_PARTS,
    /* For pictures, otherwise 0: */
    RECORDIO_LABELS_OWN, /* labels in the record: 0: the one of its header */
    RECORDIO_LABEL,      /* bits of that one */
    RECORDIO_ID,
    RECORDIO_ID_HIGH,
    RECORDIO_PAYLOAD, /* of the picture: enum recordio_payload */
    RECORDIO_NUMBERS,
};

enum recordio_payload {
    PAYLOAD_SHORT,  /* shorter than the header of a picture */
    PAYLOAD_LABELS, /* its labels end after the record */
    PAYLOAD_OTHER,  /* and enum bytes_format */
    N_PAYLOADS = PAYLOAD_OTHER + N_BYTES_FORMATS,
};

/* The parts of the columns of the dataset. */
enum {
    COLUMN_LABEL,
    COLUMN_CLASS, /* the label as decimal text */
    COLUMN_ID,
    COLUMN_ID_HIGH,
    COLUMN_PICTURE, /* and the kind */
    COLUMN_RECORD = COLUMN_PICTURE + N_PAYLOADS,
};

struct recordio_pass; /* what only the pass needs (pass.c) */

struct recordio {
    struct record_file base;
    struct blob *idx;           /* owned; NULL: none */
    struct recordio_pass *pass; /* NULL once it is over */
    /* What the pass found out, kept with the rows: */
    bool has_pictures;
    bool has_other_ids; /* ids repeat, or need more than 64 bits: keys are numbers */
    char *reason;       /* why what follows the records is omitted; "" or NULL: nothing is */
    char *side;         /* why the .idx is not used; "" or NULL: there is none, or it is */
};

extern const struct record_file_ops recordio_file_ops; /* pass.c */

/* How many labels a record has, by its numbers. */
static inline uint64_t recordio_labels_of(const uint64_t *number)
{
    return number[RECORDIO_LABELS_OWN] ? number[RECORDIO_LABELS_OWN] : 1;
}

/* Write bytes [off, off + len) of the payload of a record, which has length bytes in n_parts parts
 * from byte at on (payload.c). */
int recordio_read(struct read_context *rc, const struct blob *blob, uint64_t at, uint64_t length,
                  uint64_t n_parts, uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* Parse the header of the part at byte at. NULL; or what is wrong with it: "expected ..., got ...",
 * in text. *ret_end: the byte after its zeros. size: of the file. */
#define RECORDIO_WHY 128
const char *recordio_part(const uint8_t header[static RECORDIO_PART], uint64_t at, uint64_t size,
                          unsigned *ret_flag, uint64_t *ret_len, uint64_t *ret_end,
                          char text[static RECORDIO_WHY]);

/* verify() of struct record_format (pass.c). */
int recordio_verify(struct read_context *rc, const void *file, uint64_t row, struct diag *d);

extern const struct format format_recordio;

#endif
