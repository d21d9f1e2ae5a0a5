/* Source formats: who recognises a file and makes datasets of the files of a folder.
 * A format is a table of functions; format/registry.h has them all. */
#ifndef EPOCHFS_FORMAT_CORE_FORMAT_H
#define EPOCHFS_FORMAT_CORE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/index_store.h"
#include "base/memo.h"
#include "base/opener.h"
#include "format/core/dataset.h"

enum index_base { INDEX_AS_IS, INDEX_FROM_ONE, INDEX_AUTO };

/* What the user says of the data, with -o. */
struct format_options {
    bool transpose;             /* exchange the axes of pictures (EMNIST stores columns first) */
    uint64_t classes;           /* width of one-hot labels; 0: the largest label + 1 */
    enum index_base index_base; /* of features in text */
    bool skip_bad_rows;
    unsigned kaldi_type;   /* enum kaldi_type of tables that do not say it; 0: find it out */
    bool kaldi_permissive; /* p: leave out what cannot be read */
    bool kaldi_sorted;     /* s: the keys are said to be in order */
};

/* What formats work with. All of it outlives the datasets. */
struct format_setup {
    struct format_options options;
    const struct index_store *keep;
    const struct opener *opener; /* of what files name */
    struct memo *memo;           /* of what was decoded */
    struct pool *pool;           /* that decodes */
};

/* A file of a folder of the source. */
struct source_file {
    const char *name;      /* within its folder, without .gz or .xz */
    const char *file_name; /* the same with it: what errors are shown under */
    const char *folder;    /* relative to SOURCE, "" for SOURCE itself */
    struct blob *blob;     /* unpacked; a format that uses it takes it and leaves NULL */
};

/* Where a format puts what it finds in a folder. Names are unique after the sink is through. */
struct finds {
    /* Take ds over. 0 or -ENOMEM. */
    int (*dataset)(struct finds *finds, const char *name, struct dataset *ds);
    /* name cannot be used; it appears as name/ERROR.txt. 0 or -ENOMEM. */
    int (*error)(struct finds *finds, const char *name, const char *reason);
};

/* What a format says of a file. The first of formats[] with the strongest claim gets it. */
enum claim {
    CLAIM_NONE,
    CLAIM_WEAK,   /* it may be */
    CLAIM_STRONG, /* its content says so */
    CLAIM_NAMED,  /* its name says so, and its content may be */
    CLAIM_ASIDE,  /* it is nothing by itself, other files name it */
};

#define FORMAT_HEAD 16384 /* bytes that probe sees, fewer if the file is shorter */

struct probed_file {
    const char *name; /* within its folder, without .gz or .xz */
    const uint8_t *head;
    size_t len;
    bool whole; /* head is all of it */
};

struct format {
    const char *name;

    /* Is this a file of that format, good or bad? */
    enum claim (*probe)(const struct probed_file *file);

    /* Make datasets of the n files of one folder that probe accepted, in the order of the source.
     * file that is no good is told to finds and is no error of the call. 0 or -ENOMEM. */
    int (*open_folder)(struct source_file *files, size_t n, const struct format_setup *setup,
                       struct finds *finds);

    /* What the names of files that say something of the samples of another one have behind that
     * one's: ".weight"; ended by NULL. They come to open_folder with the others, whatever is in
     * them. NULL: there are no such files. */
    const char *const *sides;

    const char *title; /* what it reads, for people */
    const char *start; /* what files start with, for people */

    /* Python lines that read a dataset at root, for README.txt; ds may not be ready yet. */
    void (*example)(const struct dataset *ds, struct text *t);
};

#endif
