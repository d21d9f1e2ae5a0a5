/* A file of records, as all formats have it: its bytes, its index, its columns, and who uses it.
 *
 * A format's own struct begins with a `struct record_file base`, and the functions of its tables
 * get a pointer to that struct. The file of a format with nothing of its own is a struct
 * record_file. One thread opens and prepares it; once it is prepared it is constant, and any thread
 * may read it. Users are counted by the thread that opens and closes datasets. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_FILE_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_FILE_H

#include "format/core/extents.h"
#include "format/core/format.h"
#include "format/index/prepared.h"

struct record_column;

/* What a file is opened from: file i of the n of its folder. */
struct record_source {
    struct source_file *file; /* [n] */
    size_t n, i;
    const struct format_setup *setup;
};

struct record_file_ops {
    size_t size; /* of the format's struct; 0: that of struct record_file */
    /* Its index. identity() adds what the index depends on besides the version and the source;
     * load() checks what the core does not: see bytes. */
    struct prepared_ops index;
    const char *index_type; /* in the store; NULL: "rows" */
    struct index_shape shape;
    /* A row of the index is one run of bytes of the file, in the order of the file: column 0 rises,
     * and says where it begins, and this column how many bytes it has; 0: up to the next row. The
     * core then checks the rows of a kept index against the file, and cuts by bytes. */
    bool has_places;
    unsigned bytes;
    uint64_t least;    /* bytes that a row has at least */
    bool checks_rows;  /* see struct prepared */
    bool side_by_side; /* different files may be prepared by several threads at once */
    bool cuts;         /* shares are by bytes: by cut() or has_places; false: of equal counts */
    /* Complete a file whose base is set. It may read the head of the file, and takes other files
     * of its folder that it uses: it sets their blobs to NULL. 0; or -errno with the reason in d:
     * the file becomes ERROR.txt. release() follows in both cases. NULL: it is complete. */
    int (*open)(void *file, const struct record_source *source, struct diag *d);
    /* Free what the format has, but not the struct. It may set base.blob to NULL, if another owns
     * it. NULL: nothing. */
    void (*release)(void *file);
    /* The records of a file before a cut at byte off, by the rule of dmlc's InputSplit: a record
     * that contains the cut, or starts at it, belongs before it. NULL with has_places. */
    uint64_t (*cut)(const void *file, uint64_t off);
};

struct record_file {
    const struct record_file_ops *ops;
    struct blob *blob; /* owned, but see release() */
    unsigned users;
    struct prepared prepared; /* the index, whose rows are the records */
    /* Columns that the file has of its own: see struct record_format. Set by open(), or by ready()
     * of its index; owned by the format, or added one by one, and owned here. */
    const struct record_column *column; /* [n_columns] */
    unsigned n_columns;
    struct record_column *added; /* private */
};

/* A file with one user, over a blob that it takes over. 0, and *ret is a pointer to the format's
 * struct, zeroed behind its base; or -ENOMEM, and the blob is the caller's still. */
int record_file_new(const struct record_file_ops *ops, struct blob *blob,
                    const struct format_setup *setup, void *ret);

/* Open a file, and take over its blob, which is set to NULL, also on error. 0, or -errno with the
 * reason in d. */
int record_file_open(const struct record_file_ops *ops, const struct record_source *source,
                     void *ret, struct diag *d);

/* Add a column; its name is copied. 0 or -ENOMEM. */
int record_file_add(struct record_file *file, const struct record_column *column);

/* One user more, or less: the last one frees the file. Drop takes NULL. */
void record_file_share(struct record_file *file);
void record_file_drop(struct record_file *file);

/* Records before byte off: see cut(). */
uint64_t record_file_cut(const struct record_file *file, uint64_t off);

/* With has_places: the bytes of a row. */
struct extent record_file_place(const struct record_file *file, uint64_t row);

#endif
