/* A file of MindRecord, as MindSpore writes it. Native means little-endian:
 *
 *     header  u64 length, JSON; then nothing up to header_size
 *     page    page_size bytes, of which the first `used` count; page p begins at
 *             header_size + p * page_size; the file ends with the last used byte
 *
 * A blob page has rows start .. end, each u64 length, bytes: fields that are bytes or arrays, one
 * after another, each with its length in front (u64, big-endian) unless there is only one. A raw
 * page has the other fields of the rows of some blob pages: at an offset for each blob page, u64
 * length, MessagePack map. The JSON has the schema, the shards of the dataset, and the pages.
 *
 * Integers of arrays are packed in version 3.0: u32 count, big-endian; 2 bits for each, which say
 * 1, 2, 4 or 8 bytes, first in the high bits; then those bytes, signed.
 *
 * The file of SQLite beside it is never opened: the pages say all that it says. */
#ifndef EPOCHFS_FORMAT_MINDRECORD_FILE_H
#define EPOCHFS_FORMAT_MINDRECORD_FILE_H

#include "base/memo.h"
#include "format/core/extents.h"
#include "format/core/format.h"
#include "format/index/prepared.h"
#include "format/records/record_set.h"

#define MINDRECORD_FIELDS 100 /* of a schema, at most */
#define MINDRECORD_SHARDS 65536u
#define MINDRECORD_LENGTH 8 /* bytes of a length in front of a blob, a raw row, or a field */

/* ---- the header ---- */

enum mindrecord_type {
    TYPE_BYTES,
    TYPE_ARRAY,
    TYPE_TEXT, /* from here on in raw rows */
    TYPE_INTEGER,
    TYPE_FLOAT,
};

struct mindrecord_field {
    char *key;                      /* in the schema and in raw rows; owned */
    char name[RECORD_NAME_MAX + 1]; /* of the dataset's field */
    enum mindrecord_type type;
    enum dtype dtype; /* of numbers */
    bool packed;
    unsigned ndim;
    uint64_t dim[RECORD_AXES]; /* DIM_VARIES: one at most */
};

/* A page of blobs, and where the raw rows of its rows are. */
struct mindrecord_page {
    uint64_t group, start, end; /* rows [start, end) */
    uint64_t at, used;          /* bytes of the file */
    uint64_t raw_at, raw_end;   /* 0: there are none */
};

struct mindrecord_header {
    struct mindrecord_field *field; /* [n_fields] those of blobs first, as they are in blobs */
    unsigned n_fields, n_blobs;
    struct mindrecord_page *page; /* [n_pages] by rows, without gaps */
    size_t n_pages;
    uint64_t rows;
    unsigned shard, n_shards;
    char **address; /* [n_shards] names of the shards' files; owned */
    char *set;      /* what the files of one dataset have in common; owned */
};

/* Read and check the header. 0; -EBADMSG with the reason in d; or another -errno. */
int mindrecord_header_read(const struct blob *blob, struct mindrecord_header *ret, struct diag *d);
void mindrecord_header_release(struct mindrecord_header *header); /* takes a zeroed one */

/* Check JSON as a header of a file of that name and size: for mindrecord_header_read(). */
int mindrecord_header_parse(const char *json, size_t len, const char *name, uint64_t size,
                            struct mindrecord_header *ret, struct diag *d);

/* The end of a file: "HASH" after a hash of all before, and its length; or "ENCRYPT". */
int mindrecord_refuse_encrypted(const struct blob *blob, struct diag *d);
/* Compare the hash, if there is one. 0; -EBADMSG: it differs, with the reason in d; or -errno. */
int mindrecord_check_hash(const struct blob *blob, struct diag *d);

/* ---- the index ---- */

/* Columns of the index, and then MINDRECORD_NUMBERS of each field. */
enum mindrecord_number {
    MINDRECORD_BLOB_AT, /* bytes of the file: the blob, behind its length */
    MINDRECORD_BLOB_LEN,
    MINDRECORD_RAW_AT,
    MINDRECORD_ROW, /* columns of a row */
};

enum mindrecord_field_number {
    FIELD_AT,    /* of blobs and texts: in the blob, or in the raw row; of numbers: its bits */
    FIELD_LEN,   /* bytes there */
    FIELD_COUNT, /* elements of an array */
    FIELD_STATE, /* FAULT_..., or the kind of bytes */
    MINDRECORD_NUMBERS,
};

/* Why a field of a row cannot be read, and kinds of bytes. */
enum mindrecord_state {
    STATE_GOOD,
    FAULT_NO_PAGE,  /* its page ends after the file */
    FAULT_PAGE,     /* the length of the row, or of one before it, goes past its page */
    FAULT_NO_RAW,   /* no raw page has the rows of its page */
    FAULT_MAP,      /* the raw row is no map of numbers and text */
    FAULT_LENGTH,   /* the lengths of fields are not those of the blob */
    FAULT_ELEMENTS, /* no whole number of elements */
    FAULT_PACKED,   /* count of packed elements */
    FAULT_SHAPE,    /* elements that the shape does not have */
    FAULT_LACKS,    /* the map lacks it */
    FAULT_TYPE,     /* not of its type */
    FAULT_RANGE,    /* a number that its type has not */
    KIND_BIN,       /* bytes, from here on */
    KIND_JPG,
    KIND_PNG,
    KIND_GIF,
    KIND_BMP,
    KIND_WEBP,
    KIND_TIFF,
    KIND_NPY,
    N_STATES,
};
#define N_KINDS (N_STATES - KIND_BIN)

/* What a whole pass found out; kept beside the rows, so hostile when it comes back. */
struct mindrecord_about {
    uint64_t lost;    /* rows with a field that cannot be read */
    char reason[256]; /* of the first; or what is left over in a page; NUL-terminated, may be "" */
};

struct mindrecord_pass;

struct shown_field {
    unsigned field;
    unsigned kind; /* of bytes: KIND_... */
};

struct mindrecord {
    struct blob *blob; /* owned */
    unsigned users;
    struct memo *memo;
    struct mindrecord_header header;
    struct prepared prepared;
    struct mindrecord_pass *pass; /* NULL once it is over */
    /* Once it is ready: */
    struct mindrecord_about about;
    struct record_column *column; /* [n_columns] */
    struct shown_field *shows;    /* [n_columns] */
    unsigned n_columns;
};

extern const struct prepared_ops mindrecord_index_ops; /* pass.c */
void mindrecord_pass_free(struct mindrecord *file);

static inline unsigned mindrecord_column(unsigned field, enum mindrecord_field_number number)
{
    return MINDRECORD_ROW + field * MINDRECORD_NUMBERS + number;
}

/* ---- what rows show (columns.c) ---- */

int mindrecord_set_columns(struct mindrecord *file); /* 0 or -ENOMEM */
const struct record_column *mindrecord_columns(const void *file, unsigned *ret_n);
bool mindrecord_has(const void *file, uint64_t row, unsigned column);
int mindrecord_dims(const void *file, uint64_t row, unsigned column,
                    uint64_t ret[static RECORD_AXES], struct diag *d);
bool mindrecord_extent(const void *file, uint64_t row, unsigned column, struct extent *ret);
int mindrecord_content(struct read_context *rc, const void *file, uint64_t row, unsigned column,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* Write n packed integers of len bytes as elements of that width. false: they are not that many, or
 * one does not fit. */
bool mindrecord_unpack(const uint8_t *packed, uint64_t len, uint64_t n, unsigned width,
                       uint8_t *dst);

extern const struct format format_mindrecord;

#endif
