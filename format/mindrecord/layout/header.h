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
 * The file of SQLite next to it is never opened: the pages say all that it says. */
#ifndef EPOCHFS_FORMAT_MINDRECORD_LAYOUT_HEADER_H
#define EPOCHFS_FORMAT_MINDRECORD_LAYOUT_HEADER_H

#include "base/blob.h"
#include "format/records/record_set.h"

#define MINDRECORD_FIELDS 100 /* of a schema, at most */
#define MINDRECORD_SHARDS 65536u
#define MINDRECORD_LENGTH 8 /* bytes of a length in front of a blob, a raw row, or a field */

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

#endif
