/* A dataset whose samples are the documents of streams: records of differing length. */
#ifndef EPOCHFS_FORMAT_TOKENS_DOCUMENT_SET_H
#define EPOCHFS_FORMAT_TOKENS_DOCUMENT_SET_H

#include "format/records/record_set.h"
#include "format/tokens/stream.h"

/* The index of a stream, which has one user more then. 0 or -ENOMEM. */
int document_file_new(struct token_stream *s, const struct format_setup *setup,
                      struct record_file **ret);

/* For record_set_new() of such files. */
extern const struct record_format token_documents;

#endif
