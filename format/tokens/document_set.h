/* A dataset whose samples are the documents of streams: records of differing length. */
#ifndef EPOCHFS_FORMAT_TOKENS_DOCUMENT_SET_H
#define EPOCHFS_FORMAT_TOKENS_DOCUMENT_SET_H

#include "format/tokens/stream.h"

/* The index of a stream, which several datasets share. */
struct document_file;

/* Takes one of the stream's users over, also on error. 0 or -ENOMEM. */
int document_file_new(struct token_stream *s, const struct format_setup *setup,
                      struct document_file **ret);
void document_file_drop(struct document_file *file); /* one user; takes NULL */
const struct token_stream *document_file_stream(const struct document_file *file);

/* A dataset of n files, each of which has one user more then. 0 or -ENOMEM. */
int document_set_new(struct document_file *const *file, unsigned n,
                     const struct format_setup *setup, struct dataset **ret);

#endif
