/* Which files belong to the format (files.c), and the datasets of those of a folder (folder.c). */
#ifndef EPOCHFS_FORMAT_KALDI_SET_FOLDER_H
#define EPOCHFS_FORMAT_KALDI_SET_FOLDER_H

#include "format/core/format.h"
#include "format/kaldi/object/object.h"

/* The files of a data directory. */
struct kaldi_known_file {
    const char *name;
    enum kaldi_type type; /* of its text; KALDI_UNKNOWN: an scp file */
    enum known_use { A_FIELD, SEGMENTS, NO_FIELD } use;
};

/* NULL: it is none of a data directory. */
const struct kaldi_known_file *kaldi_known_file(const char *name);

bool kaldi_ends_in(const char *name, const char *end);

/* Do the first lines name objects, by offset or as the output of commands? whole: head is all of
 * the file. */
bool kaldi_is_script(const uint8_t *head, size_t len, bool whole);

/* Is the file one object, without a key? In binary only types say so that have a token. */
bool kaldi_is_single(const uint8_t *head, size_t len);

/* probe() of the format. */
enum claim kaldi_probe(const struct probed_file *file);

/* open_folder() of the format. */
int kaldi_folder_open(const struct format *format, struct source_file *sources, size_t n,
                      const struct format_setup *setup, struct finds *finds);

#endif
