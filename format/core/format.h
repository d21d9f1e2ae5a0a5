/* Source formats. A format recognises files and makes datasets from the files of a folder. It is a
 * table of functions; format/registry.h lists them all. */
#ifndef EPOCHFS_FORMAT_CORE_FORMAT_H
#define EPOCHFS_FORMAT_CORE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/blob.h"
#include "base/index_store.h"
#include "base/made_store.h"
#include "base/memo.h"
#include "base/opener.h"
#include "format/core/dataset.h"

struct diag;
struct members;
struct record_format;
struct siblings;

enum { KALDI_LAYOUT_AUTO, KALDI_LAYOUT_ARK, KALDI_LAYOUT_SCP }; /* of a specifier's file */
enum csv_header { CSV_HEADER_AUTO, CSV_HEADER_YES, CSV_HEADER_NO };
enum index_base { INDEX_AS_IS, INDEX_FROM_ONE, INDEX_AUTO };

/* What becomes of what cannot be read: it fails; rows of text are omitted; pictures are zeros in
 * batches, because their places are known before they are decoded. */
enum bad_rows { BAD_ROWS_ERROR, BAD_ROWS_SKIP, BAD_ROWS_ZERO };

/* What the user says about the data, with -o. */
struct format_options {
    const char *format;         /* the name of the format of all files; NULL: found out */
    bool transpose;             /* exchange the axes of pictures (EMNIST stores columns first) */
    uint64_t classes;           /* width of one-hot labels; 0: the largest label + 1 */
    enum index_base index_base; /* of features in text */
    enum bad_rows bad_rows;
    const char *label;                        /* see format_label_of(); NULL: the field `label` */
    const char *label_column, *weight_column; /* of CSV: a number from 0, or a name; NULL */
    char delimiter, comment;                  /* of CSV; 0: found out, none */
    enum csv_header header;                   /* is its first line names of columns? */
    bool doubles;                             /* numbers of CSV are shown as float64 */
    uint64_t seq;      /* tokens of a window, except the last; 0: a sample is a document */
    uint64_t stride;   /* from a window to the next; 0: seq */
    bool split_docs;   /* windows lie inside documents */
    uint64_t pack;     /* documents that are packed together; 0: none are */
    uint64_t pad;      /* the token that fills packed windows */
    bool sequences;    /* each sequence of a Megatron file is a document */
    bool tokens_given; /* type of tokens that no header tells, */
    bool tokens_raw;   /* and of all files *.bin, whatever they begin with */
    enum dtype tokens;
    unsigned picture_height, picture_width; /* of the arrays of pictures; 0: none */
    bool audio;                             /* audio is shown as arrays, */
    uint32_t audio_rate;                    /* of that rate; 0: each file's own */
    bool audio_mono, audio_medium;          /* see struct audio_spec */
    unsigned kaldi_type;      /* enum kaldi_type of tables that do not state it; 0: find it out */
    const char *kaldi_tables; /* of single tables: FILE:TYPE, with ; between them; NULL */
    unsigned kaldi_layout;    /* KALDI_LAYOUT_...: of all files, which are one table */
    const char *kaldi_join;   /* tables that are fields of `all`, with + between them; NULL */
    bool kaldi_permissive;    /* p: omit objects that cannot be read */
    bool kaldi_sorted;        /* s: the user says that the keys are sorted */
    bool pair_off;            /* each array is a dataset of its own */
    bool shows_layout;        /* the recipe of what is found is made, to be shown */
    const char *layout;       /* path of a recipe of SOURCE; NULL: it is found in the folders */
};

/* What a format gets to work with. All of it outlives the datasets. */
struct format_setup {
    struct format_options options;
    const struct index_store *keep;
    const struct opener *opener; /* opens what files refer to */
    struct memo *memo;           /* keeps decoded data */
    struct pool *pool;           /* threads that decode */
    struct made_store *made;     /* keeps decoded pictures between mounts; NULL: none does */
    struct made_counts *counts;  /* NULL: nothing asks */
    bool is_list;                /* the user has named the files */
};

/* A file of a folder of the source. */
struct source_file {
    const char *name;      /* within its folder, without .gz or .xz */
    const char *file_name; /* the same with the suffix: the name in errors */
    const char *folder;    /* relative to SOURCE, "" for SOURCE itself */
    struct blob *blob;     /* unpacked; a format that uses it takes ownership and sets it to NULL */
    unsigned decided;      /* what its format has decided about it; starts as 0 */
};

/* A file of the folder that cannot be read now but perhaps later. Its content is unknown, so a set
 * that may contain it is an error: without the file, the set's names would show other bytes. */
struct unread_file {
    char *name;   /* as in source_file */
    char *reason; /* for people */
    int error;    /* -errno of the read */
};

/* A file of the folder that is in no dataset. */
struct left_out_file {
    char *name; /* as in source_file; of a packing that is not read, the name that it would have */
    char *packed; /* then the name of the file; otherwise NULL */
    char *reason; /* for people; NULL: it is empty, and nothing is missing without it */
};

/* Where a format puts what it finds in a folder. The sink makes the names unique. */
struct finds {
    /* The name of the one dataset that all files are; NULL: each is one, and sets of them. */
    const char *joint;

    /* Unread files of the folder, of any format. failed() may add some and move the array. */
    struct unread_file *unread;
    size_t n_unread;

    /* All files of the folder that were reported so far and cannot be used, and empty siblings of
     * others; failed() adds some, and moves the array. */
    struct left_out_file *left_out;
    size_t n_left_out;

    const struct folder_names *names; /* of all files of the folder; NULL: not known */

    /* Take ds over. A name that begins with '/' is a path, relative to SOURCE. 0 or -ENOMEM. */
    int (*dataset)(struct finds *finds, const char *name, struct dataset *ds);
    /* name cannot be used: the mount shows reason in name/ERROR.txt. 0 or -ENOMEM. */
    int (*error)(struct finds *finds, const char *name, const char *reason);
    /* The same for a file whose read failed with error, a -errno. If the failure may pass, the file
     * joins unread[]. */
    int (*failed)(struct finds *finds, const char *file_name, int error, const char *reason);
};

/* Why name cannot be used: a file of it cannot be read now, with that -errno and reason, and what
 * to do. The caller's; NULL: no memory. */
char *incomplete_reason(const char *name, int error, const char *why);

/* Report that name cannot be used because the file `missing` cannot be read now. 0 or -ENOMEM. */
int finds_incomplete(struct finds *finds, const char *name, const struct unread_file *missing);

/* Find the sets of the n files called name and of those that cannot be used, which are numbered
 * from n on. 0 or -ENOMEM. */
int finds_siblings(const struct finds *finds, const char *const *name, size_t n,
                   struct siblings *ret);

#define FINDS_ALL SIZE_MAX

/* What the dataset of a set of finds_siblings(), or of all n files, lacks: siblings that cannot be
 * used; of all files also those that were reported since there were `from`; and, unless the user
 * has named the files, siblings that were not found. 0 or -ENOMEM. */
int finds_missing(const struct finds *finds, size_t from, const struct siblings *siblings, size_t n,
                  size_t set, const struct format_setup *setup, struct missing_parts *ret);

/* How sure a format is that a file is its own. The first of formats[] with the strongest claim gets
 * the file. */
enum claim {
    CLAIM_NONE,
    CLAIM_GUESS,  /* it could be, but proves nothing: a row alone, or a broken sibling */
    CLAIM_WEAK,   /* it may be */
    CLAIM_STRONG, /* its content says so */
    CLAIM_NAMED,  /* its name says so, and its content does not contradict */
    CLAIM_ASIDE,  /* no dataset by itself: other files refer to it */
};

#define FORMAT_NAME 512   /* bytes of the name of a file, at most */
#define FORMAT_HEAD 16384 /* bytes that probe sees, fewer if the file is shorter */

/* The files of a folder, whose names are without .gz or .xz, in the order of bytes. */
struct folder_names {
    struct folder_name {
        const char *name; /* not ended by NUL */
        size_t len;
        size_t number; /* of the file; whose it is says the owner */
    } * file;
    size_t n;
};

struct probed_file {
    const char *name; /* within its folder, without .gz or .xz */
    const uint8_t *head;
    size_t len;
    bool whole;      /* head is all of it */
    uint64_t size;   /* bytes of all of it, unpacked */
    bool is_sibling; /* a file whose name differs by a number only is of the format that is asked:
                      * the head need not prove it; CLAIM_GUESS: it is broken, if it is of it */
    struct folder_names folder;
    const char *folder_name;              /* of its folder, the last part; NULL: not known */
    const struct format_options *options; /* NULL: all are at their defaults */
};

/* Sort the files by name, as folder_names_has() needs them. */
void folder_names_sort(struct folder_names *names);

/* The names of n files, sorted; number: in file. The caller frees ret->file. 0 or -ENOMEM. */
int folder_names_of(const struct source_file *file, size_t n, struct folder_names *ret);

/* The file of that name in the folder, or NULL. */
const struct folder_name *folder_names_find(const struct folder_names *names, const char *name,
                                            size_t len);

static inline bool folder_names_has(const struct folder_names *names, const char *name, size_t len)
{
    return folder_names_find(names, name, len) != NULL;
}

/* Files of SOURCE that are one dataset, however many they are: they are read as one blob, whose
 * bytes are the files one after another. */
struct collection {
    char *folder, *name; /* where the mount shows the dataset */
    char *root;          /* the folder that it is made of, relative to SOURCE */
    uint32_t *file;      /* [n] numbers of its files in the listing, in the order of their bytes */
    size_t n;
    void *impl;      /* the format's */
    bool has_beside; /* files of root itself may be other datasets */
    /* Set by the caller: */
    size_t n_unread; /* files and folders below root that cannot be read, */
    char *unread;    /* and why the first cannot */
    char *missing;   /* why it is an error: see struct unread_file. NULL: it is none */
};

/* Files of SOURCE that are one dataset, of whatever format they are. */
struct named_group {
    char *path;     /* where the mount shows it, relative to SOURCE */
    uint32_t *file; /* [n] numbers of its files in the listing, in their order */
    size_t n;
    char *note, *error; /* for people: what to know of it, and why it cannot be used; NULL */
};

/* A folder of SOURCE whose datasets are shown elsewhere; shown "": in SOURCE itself. */
struct moved_folder {
    char *folder, *shown;
};

/* What a format has taken of a listing. All of it is the caller's, which gives it zeroed except
 * taken and what follows it. */
enum { CLAIMS_ASIDE = 1, CLAIMS_SAMPLE, CLAIMS_USED, CLAIMS_GROUPED };
struct claims {
    struct collection *collection;
    size_t n;
    uint8_t *taken; /* [files] 0: to be looked at; CLAIMS_ASIDE: it is not, but is in no sample;
                     * CLAIMS_USED: nor is it: it says something of samples; CLAIMS_GROUPED: it is
                     * in a group */
    /* Read the first `size` bytes of n files of the listing, as they are stored: those of file[i]
     * to bytes + i * size. len[i]: how many there are, or -errno. It waits, so a format asks for
     * few. 0 or -ENOMEM. NULL: names are all that there is. */
    int (*heads)(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                 uint8_t *bytes, int *len);
    /* Open a file of the listing, as it is stored, to read all of it; the caller frees *ret. 0 or
     * -errno with the reason in d. NULL with heads. */
    int (*open)(const struct claims *claims, size_t file, struct blob **ret, struct diag *d);
    /* Would a format take a file of the listing for itself, by its name and its first len bytes,
     * at most FORMAT_HEAD? NULL: none would, or NULL with heads. */
    bool (*is_taken)(const struct claims *claims, size_t file, const uint8_t *head, size_t len);
    const struct unread_file *unread; /* [n_unread] by their paths: files that cannot be read, */
    size_t n_unread;                  /* which are not in the listing */
    bool format_given;                /* the user says of which format all files are, */
    const char *layout, *layout_name; /* or gives a recipe: its text, and what it is called; NULL */
    bool shows_recipe;                /* what is found is asked for, as a recipe: */
    char *recipe;                     /* what was found, as a recipe: JSON; NULL: nothing was */
    char *unmet;       /* the first rule by which pictures are in no collection, for people; NULL */
    bool takes_groups; /* files can be groups, */
    struct named_group *group; /* [n_groups] which they are, */
    size_t n_groups;
    struct moved_folder *moved; /* [n_moved] and folders can be shown elsewhere */
    size_t n_moved;
    char *note; /* of SOURCE, for people; NULL */
};

struct format {
    const char *name;

    /* Take files of a folder tree by their names, before they are opened. Folders and files
     * come as members_sort() has them, with each folder on the way to a file. 0 or -ENOMEM. NULL:
     * the format takes none. */
    int (*claim_names)(const struct members *listing, struct claims *ret);
    /* Make datasets of a collection, whose bytes are in blob, and whose files are members, which
     * live as long as blob. Takes over blob, also on error. It may read the blob, and wait. What
     * cannot be used is reported to finds. 0 or -ENOMEM. */
    int (*open_collection)(struct collection *c, struct blob *blob, const struct members *members,
                           const struct format_setup *setup, struct finds *finds);
    void (*free_claim)(void *impl); /* of a collection; takes NULL. NULL: free() */

    /* Is this a file of that format, good or bad? With format=NAME it is not called: opening a file
     * must refuse what probe() would not take. */
    enum claim (*probe)(const struct probed_file *file);

    /* Files that nothing in them describes, but another file of their folder does: the name of that
     * file. If it is the format's by its content, so is this one, which is not looked into. false:
     * it is none. NULL: none is. */
    bool (*decided_by)(const char *name, char ret[static FORMAT_NAME]);

    /* Make datasets from the n files of one folder that probe accepted, in the order of the source.
     * A file that cannot be used is reported to finds; the call does not fail for it. 0 or
     * -ENOMEM. NULL: see records. */
    int (*open_folder)(struct source_file *files, size_t n, const struct format_setup *setup,
                       struct finds *finds);
    /* With open_folder NULL: files of records, each of which is a dataset (format_open_folder() of
     * format/records/record_set.h). Both NULL: the format reads no single files. */
    const struct record_format *records;

    /* Suffixes of side files, such as ".weight", ended by NULL. A side file describes the samples
     * of another file, whose name it extends by the suffix. open_folder gets side files with the
     * others, whatever they contain. NULL: the format has none. */
    const char *const *sides;

    /* What a user may say, so that the format takes a file that none takes, for people. NULL, or
     * returns NULL: nothing. */
    const char *(*hint)(const struct probed_file *file);

    /* An option that the user has given and only this format knows, or NULL. NULL: it has none. */
    const char *(*option)(const struct format_options *options);

    /* What format= takes besides its name: which of its kinds the files are. Ended by NULL. NULL:
     * nothing. */
    const char *const *kinds;

    /* A file of no bytes is one without records, and no file that was cut. */
    bool has_empty_files;

    const char *title; /* what it reads, for people */

    /* Python lines that read a dataset at root, for README.txt. */
    const char *example;
    /* They differ, and are added to t: ds may not be ready yet. NULL: example has them. */
    void (*add_example)(const struct dataset *ds, struct text *t);
};

void moved_release(struct moved_folder *moved, size_t n);

/* Forget the groups and the moved folders from these numbers on. */
void claims_drop_groups(struct claims *claims, size_t group, size_t moved);

/* Free what the format has put into claims. */
void claims_release(struct claims *claims, const struct format *format);

/* Does the format make datasets of single files? */
static inline bool format_opens_files(const struct format *format)
{
    return format->open_folder || format->records;
}

/* item: one of kaldi_tables, which ends at ; or NUL. Does it name that file, by all of its name or
 * without ends such as .gz, .ark and the number of a part? */
bool format_item_names(const char *item, const char *file);

/* The field that label= names for that dataset: FIELD, or that of an item DATASET:FIELD, of which
 * it has some with ; between them. false: it names none. */
bool format_label_of(const char *label, const char *dataset, char ret[static FORMAT_NAME]);

/* Is it what format= calls by that name? */
static inline bool format_is_called(const struct format *format, const char *name)
{
    if (!strcmp(format->name, name))
        return true;
    for (const char *const *word = format->kinds; word && *word; word++)
        if (!strcmp(*word, name))
            return true;
    return false;
}

#endif
