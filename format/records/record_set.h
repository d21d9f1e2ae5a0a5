/* A dataset of records: the files of a format, their records in sequence, and a field or more for
 * each content. A format says how a file is opened and prepared, which columns it has, and how
 * large a content of a record is and where; all else is present. See docs/internals/formats.md,
 * "Write a format in a day".
 *
 * Columns are the same in all files, or each file learns its own while it is prepared. A dataset of
 * several files has the union of their columns, sorted by name. A record may lack a column: a hole.
 * Then the sample has no file of that column, and its npz and tar have no member of it; in a batch
 * it has length 0. So a column with holes is never stacked, but ragged or padded.
 *
 * Columns that have one name and show arrays must be of one kind in all files: numbers of one type,
 * or bytes of one extension, or text. Where they are not, all of them are shown, and the name of
 * each says its kind: "label_int64", "label_text", "image_jpg". Their shapes may differ: an axis
 * that does varies, and a number next to an array of one axis is an array of one element. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_SET_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_SET_H

#include "format/index/index.h"
#include "format/records/records.h"
#include "format/records/shards.h"

enum record_shown {
    RECORD_NUMBERS, /* a number, or an array */
    RECORD_BYTES,   /* a file of its own, under an extension */
    RECORD_TEXT,
};

/* What does not show a column that could. */
enum {
    RECORD_NOT_RAW = 1,    /* bytes: samples/raw */
    RECORD_NOT_TAR = 2,    /* another column has these bytes there */
    RECORD_NOT_ARRAYS = 4, /* npz and npy: another column has the array of that name */
};

#define RECORD_NAME_MAX 55 /* bytes of the name of a column, which "_offsets" may follow */

/* Columns of a dataset; those that come after them in the order of names are omitted. */
#define RECORD_COLUMNS_MAX 1024

struct record_column {
    const char *name; /* of the field: see record_name() for those of a file */
    enum record_shown shown;
    const char *ext;   /* of RECORD_BYTES, without a dot in front; of text see text_folder */
    bool ext_is_first; /* ext is that of the first value: columns that differ in it are one */
    enum dtype dtype;
    unsigned ndim;
    uint64_t dim[RECORD_AXES]; /* DIM_VARIES: the first axis, at least, differs */
    bool unnamed;              /* bytes, text: its files are <key>.<ext>, without the name */
    bool has_holes;            /* has() may be false */
    bool is_empty;     /* no record of the file has it: it is shown if another file has it */
    bool is_target;    /* bytes: what is learned of the record's picture, such as a mask */
    unsigned without;  /* RECORD_NOT_... */
    const char *whole; /* the name before it was cut: columns that differ in it are never the same,
                        * and have it as name where they meet; NULL: name */
    unsigned field, part; /* the format's: what it shows */
};

/* A column of a record, in its file. */
struct record_cell {
    const void *file; /* the format's struct */
    uint64_t row;
    unsigned column;
};

/* Rows of a column that follow each other, and where their bytes go. */
struct record_rows {
    const void *file;
    uint64_t row;
    unsigned n, column;
    uint8_t *dst;
};

struct record_format {
    const struct format *format;
    const struct record_file_ops *file; /* NULL: no folder is opened: record_set_new() alone */
    /* Is it a file next to others, which has no dataset of its own? NULL: none is. */
    bool (*is_beside)(const struct source_file *file);
    bool has_groups; /* files <set>-<n>-of-<N> are also a dataset, called like the set */
    /* Can two files be parts of one dataset? 0; or -EDOM, and d says what differs: then none of
     * several files is made. NULL: any two can. */
    int (*joins)(const void *file, const void *other, struct diag *d);
    /* Make the datasets of several files that may be joined, which it may sort; a folder is not
     * asked to be one dataset then. NULL: all are one, and each set of siblings is. 0 or -errno. */
    int (*add_sets)(struct record_file **file, unsigned n, const struct format_setup *setup,
                    struct finds *finds);
    /* What a user has to know of two files that are parts of one dataset, the first file of it and
     * another: added to t, lines. NULL: nothing. */
    void (*joined)(const void *first, const void *other, struct text *t);
    /* The folder, and extension, of columns of text that have an extension. NULL: it is txt. */
    const char *text_folder;

    /* The columns, the same in all files. NULL: each file has its own once it is prepared, in any
     * order: see struct record_file. Until then raw, npy, npz, tar, txt and text_folder are the
     * folders that may be. The functions below get the number of a column in that array,
     * and a file that is the format's struct. They are called for prepared files only, by any
     * thread, and except read() they never read a source. */
    const struct record_column *column; /* [n_columns] */
    unsigned n_columns;

    /* Does the record of that row have the column? NULL: each has each. */
    bool (*has)(const void *file, uint64_t row, unsigned column);
    /* The axes of a content: [ndim]; bytes and text have one. 0, or -errno with the reason in d: it
     * cannot be read. NULL: those of the column, and length(). */
    int (*dims)(const void *file, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                struct diag *d);
    /* The first axis of a column that varies. Unused with dims(); NULL: none varies. */
    uint64_t (*length)(const void *file, uint64_t row, unsigned column);
    /* Where the source has the bytes of a content, as the mount shows them. Unused with extent().
     */
    uint64_t (*place)(const void *file, uint64_t row, unsigned column);
    /* The bytes of a source that read() needs; false: none. NULL: those at place(). */
    bool (*extent)(const void *file, uint64_t row, unsigned column, struct extent *ret);
    bool
        extents_are_copies; /* bytes (RECORD_BYTES) are those at extent(), though there is read() */
    /* With extents_are_copies unset: are those of a row? NULL: none are. */
    bool (*is_copy)(const void *file, uint64_t row, unsigned column);
    /* Add "<file>:<offset>+<length>": the file of SOURCE that an extent is in, of a blob that joins
     * many. NULL: that is the blob. */
    void (*locate)(const void *file, const struct extent *e, struct text *t);
    /* The path of the file of SOURCE that has a content, of a blob that joins many, for messages;
     * false: it has none, or it is too long. NULL: the blob is the file. */
    bool (*path)(const void *file, uint64_t row, unsigned column, char *ret, size_t size);
    /* Write bytes [off, off + len), len > 0, of a content, as the mount shows them. 0, or -errno
     * with the reason in d, -EAGAIN by the rule of missing_go_on() included. NULL: they are those
     * at extent() or place(). */
    int (*read)(struct read_context *rc, const void *file, uint64_t row, unsigned column,
                uint64_t off, size_t len, uint8_t *dst, struct diag *d);
    /* Write the numbers of n rows, in any order, in all columns of numbers of one shape that have
     * no holes. dst has a column after the other, each of n_dst rows, of which these begin with row
     * `first`. Faults as of read(), which says for a row alone whether it has one. For rows that
     * are costly to read one by one; NULL: they are not. */
    int (*read_rows)(struct read_context *rc, const void *file, const uint64_t *row, unsigned n,
                     uint8_t *dst, unsigned first, unsigned n_dst, struct diag *d);
    /* The same of one such column, where columns are cheap to read alone: of any files, either rows
     * that follow each other (n_rows is 1) or single ones. It changes *rows, and calls blob_used().
     * Not with verify(). NULL: all columns, or one by one. */
    int (*read_column)(struct read_context *rc, struct record_rows *rows, unsigned n_rows,
                       struct diag *d);

    /* For contents that are costly to read one by one, such as those of packed pages: is a cell
     * made, so that read() is cheap? Make n of them, as make() of struct record_ops. NULL: they are
     * not. */
    bool (*is_made)(const struct record_cell *cell);
    int (*make)(struct read_context *rc, const struct record_cell *cell, unsigned n,
                unsigned n_needed);

    /* Compare what the index says of a row with the file: see prepared_doubts(). It is called
     * before contents of such a row are read. 0; -EBADMSG: it is another, with the reason in d; or
     * another -errno, -EAGAIN by the rule of missing_go_on() included. NULL: read() finds it. */
    int (*verify)(struct read_context *rc, const void *file, uint64_t row, struct diag *d);

    /* Are the keys of a prepared file those of its index? false: the numbers of records. NULL: they
     * are if the index has keys. A dataset of several files has keys if each file has. */
    bool (*has_keys)(const void *file);
    bool keys_or_numbers; /* if keys of several files repeat, the dataset has numbers instead */
    /* Are the lines of the texts of a prepared file, one after another, the file itself, byte for
     * byte? NULL: no. */
    bool (*lines_are_file)(const void *file);
    /* What is wrong with a prepared file that can be used all the same, such as a tail that cannot
     * be read: added to t, lines. The notes have it as well, and a check reports it. NULL: nothing.
     */
    void (*damage)(const void *file, struct text *t);
    /* What else a user has to know of a prepared file: added to t, lines. NULL: nothing. */
    void (*note)(const void *file, struct text *t);
    /* Check a file as a whole, besides its records: 0; -EBADMSG with the fault in d, which is
     * reported; or another -errno. It may read the source. NULL: nothing to check. */
    int (*check)(void *file, struct diag *d);
    /* What a check has found besides faults: added to t, lines. NULL: nothing. */
    void (*checked)(const void *file, struct text *t);
    /* Members of dataset.json of a dataset of n files: see describe() of struct dataset_ops. NULL:
     * none. */
    void (*describe)(struct record_file *const *file, unsigned n, const char *indent,
                     struct text *t);
    /* The names of the columns of x: see columns() of struct dataset_ops. NULL: none has one. */
    void (*column_names)(struct record_file *const *file, unsigned n, struct text *t);
    /* Does a file call by that name what the column `label` shows? NULL: not. */
    bool (*calls_label)(const void *file, const char *name);
    /* The name of a class of a dataset of one file: see class_name() of struct dataset_ops. NULL:
     * none has one. */
    bool (*class_name)(const void *file, int64_t number, struct text *t);
    bool (*class_size)(const void *file, uint64_t number, uint64_t *ret);
};

/* The opened files of a folder. */
struct record_folder {
    struct source_file *source; /* [n_sources] */
    size_t n_sources;
    const struct format_setup *setup;
    struct finds *finds;
    size_t left_out;           /* files that were reported before this folder was opened */
    struct folder_names names; /* of source, where the format asks folder_names_of() */
    struct record_file **file; /* [n] each has one user here; there is room for n_sources */
    const char **name;         /* [n] of their sources */
    unsigned n;
};

/* 0 or -ENOMEM; *ret is to be released in either case. */
int record_folder_begin(struct record_folder *ret, struct source_file *source, size_t n,
                        const struct format_setup *setup, struct finds *finds);
void record_folder_release(struct record_folder *folder);
#define AUTO_RECORD_FOLDER AUTO(record_folder_release)

/* Add what the dataset of files first .. first + n - 1 lacks; is_whole: they are all of the folder,
 * otherwise one file or a set. 0 or -ENOMEM. */
int record_folder_missing(const struct record_folder *folder, unsigned first, unsigned n,
                          bool is_whole, struct missing_parts *ret);

/* open_folder() of struct format: a dataset for each file, one for each group that is not all of
 * them, and one of all. With more than RECORD_LISTED files, those of single files open by their
 * names, but are not listed. */
#define RECORD_LISTED 64
int record_set_open_folder(const struct record_format *rf, struct source_file *source, size_t n,
                           const struct format_setup *setup, struct finds *finds);

/* Make datasets of the files of any format that reads some: its open_folder(), or the above. */
int format_open_folder(const struct format *format, struct source_file *files, size_t n,
                       const struct format_setup *setup, struct finds *finds);

/* One dataset of n opened files, each of which has one user more then. 0 or -ENOMEM. */
int record_set_new(const struct record_format *rf, struct record_file *const *file, unsigned n,
                   const struct format_setup *setup, struct dataset **ret);

/* The name of a column or its extension from bytes of a file: what cannot be in the name of a file
 * is escaped as in key_name(), and a name of more than max bytes (RECORD_NAME_MAX at most) is cut
 * and ends in "~" and 8 digits of its hash. Never empty. */
void record_name(const void *bytes, size_t len, size_t max, char ret[static RECORD_NAME_MAX + 1]);

#endif
