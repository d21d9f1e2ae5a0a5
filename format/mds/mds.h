/* Shards of MosaicML Streaming (MDS). index.json in their folder says what they are; a shard is,
 * all little-endian,
 *
 *     u32 n, u32 offset[n + 1] from the start of the file, a configuration that is not needed,
 * samples sample: u32 size of each column whose size varies, then the columns' bytes
 *
 * Each value is shown in place. What the numbers in front of it say is in the index: a pass reads
 * them once, so that sizes and shapes are known without the source. */
#ifndef EPOCHFS_FORMAT_MDS_MDS_H
#define EPOCHFS_FORMAT_MDS_MDS_H

#include <jansson.h>

#include "format/index/pass_window.h"
#include "format/records/member_values.h"

enum mds_form {
    MDS_TEXT,
    MDS_FILE,    /* under the extension of the encoding */
    MDS_NUMBERS, /* a number, or an array whose shape the encoding says */
    /* The pass reads of these: */
    MDS_BYTES,   /* the first bytes of the first one, which say the extension */
    MDS_ARRAY,   /* a head, which says the shape, and the type if the encoding does not */
    MDS_PICTURE, /* a head, which says mode and size of raw pixels */
    MDS_LIST,    /* u32 n, u32 size[n], before the files; perhaps after 4 bytes */
};

/* A column of the shards. */
struct mds_value {
    char name[RECORD_NAME_MAX + 1];
    enum mds_form form;
    struct record_column column; /* how it is shown, unless the pass learns it */
    bool typed;                  /* of MDS_ARRAY: the encoding says the type */
    unsigned head;               /* of MDS_LIST: bytes before n */
    uint64_t size;               /* bytes; 0: it varies */
    unsigned number;             /* the first of its numbers in the index: MDS_SIZE ... */
};

/* What index.json says; the shards of a dataset share it. */
struct mds_spec {
    unsigned users;
    struct mds_value *value; /* [n] */
    unsigned n, n_varying;
    unsigned numbers; /* of a row of the index */
    char *text;       /* names, encodings and sizes, as JSON: what an index depends on */
    char *note;       /* lines for people */
};

/* Names, encodings and sizes of columns of a shard, as JSON. The caller frees *ret. */
int mds_spec_text(const json_t *shard, char **ret);
int mds_spec_new(const json_t *shard, struct mds_spec **ret, struct diag *d);
void mds_spec_drop(struct mds_spec *spec); /* takes NULL */

/* Numbers of a row of the index, then those of each value that has some: its size if that varies;
 * for a list, where its files begin. What heads of arrays say follows. */
enum { MDS_AT, MDS_FAULT, MDS_FIXED };
enum { MDS_SIZE, MDS_SKIP };

/* What is wrong with a sample. */
enum mds_fault { MDS_GOOD, MDS_OFFSETS, MDS_SIZES, MDS_SHAPE, MDS_TYPE, MDS_LENGTHS, N_MDS_FAULTS };

/* For a value of bytes, in the table of the shard: 1 + enum bytes_format of the first; 0: none yet.
 */
#define MDS_BYTES_FORMAT MEMBER_OWN

/* The fields of its columns are values; part 1: the lengths of a list, not its files. */
struct mds_file {
    struct record_file base;
    struct mds_spec *spec;
    uint64_t samples, bytes;           /* as index.json has them */
    struct blob *packed;               /* the file that was unpacked; NULL: none was */
    json_t *hashes, *hashes_of_packed; /* owned; those in index.json; NULL: none */
    struct column_table table;         /* what the pass learns of values, in their order */
    uint64_t lost;                     /* samples with a fault */

    /* While the index is made: */
    struct member_reader reader;
    bool has_begun;
    uint64_t row;
    struct pass_window window;
};

extern const struct record_file_ops mds_file_ops; /* pass.c */
int mds_check(void *file, struct diag *d);        /* compare the hashes of the shard */
extern const struct format format_mds;

static inline bool mds_has_arrays(const struct mds_value *value)
{
    return value->form == MDS_ARRAY || value->form == MDS_PICTURE;
}

/* Where the value of a row is, by the numbers of the row. */
uint64_t mds_place(const struct mds_spec *spec, const uint64_t *number, unsigned value,
                   uint64_t *ret_size);

#endif
