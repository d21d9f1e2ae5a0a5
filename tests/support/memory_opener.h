/* An opener over files in memory and over commands with known output; and the datasets that
 * format_kaldi makes from folders with it. */
#ifndef EPOCHFS_TESTS_SUPPORT_MEMORY_OPENER_H
#define EPOCHFS_TESTS_SUPPORT_MEMORY_OPENER_H

#include "base/opener.h"
#include "support/libsvm_make.h"

extern const struct format format_kaldi;

/* A file, by its path within SOURCE, which is also the name of its blobs. */
struct memory_file {
    const char *path;
    const void *bytes;
    size_t len;
    struct blob_faults *faults; /* NULL: none */
};

/* A command and its behaviour. */
struct memory_command {
    const char *text;
    const void *bytes; /* its output; NULL: it fails with -EIO */
    size_t len;
    unsigned polls; /* polls at which it still runs */
};

/* The caller owns all but opener. */
struct memory_opener {
    struct opener opener;
    const struct memory_file *file; /* [n_files] */
    size_t n_files;
    const struct memory_command *command; /* [n_commands] */
    size_t n_commands;
    unsigned most;             /* commands that may run at once; 0: any number */
    unsigned running, started; /* commands */
    unsigned opened;           /* files */
};

/* Sets ops; the rest may be set before or after. */
void memory_opener_init(struct memory_opener *ret);

/* A blob of a file; NULL: no memory. */
struct blob *memory_file_blob(const struct memory_file *file);

/* The datasets and errors of a folder. */
struct kaldi_folder {
    struct memo *memo;
    struct memory_keep refuses;
    struct memory_opener opens_nothing;
    struct found found;
};

/* Give the n files of one folder to format_kaldi and prepare every dataset until it is ready or
 * failed. 0 or -ENOMEM. A NULL store refuses; a NULL opener finds nothing. */
int kaldi_open(const struct memory_file *file, size_t n, const struct format_options *options,
               const struct index_store *keep, struct memory_opener *opener,
               struct kaldi_folder *ret);
void kaldi_release(struct kaldi_folder *folder);

/* The dataset of that name, NULL: there is none. */
struct dataset *kaldi_dataset(const struct kaldi_folder *folder, const char *name);

#endif
