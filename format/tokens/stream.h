/* A stream: the tokens of one file, one after another, and what its file, or files next to it, say
 * of them. The programs that write such files, and where they agree: docs/spec/text.md. */
#ifndef EPOCHFS_FORMAT_TOKENS_STREAM_H
#define EPOCHFS_FORMAT_TOKENS_STREAM_H

#include "base/text.h"
#include "format/records/record_set.h"
#include "format/tokens/documents.h"

struct packing;
struct token_stream;

/* Who writes such files. The numbers are in kept indexes. */
enum token_layout { TOKENS_MEGATRON, TOKENS_LLMC, TOKENS_DATATROVE, TOKENS_RAW };

/* What differs between them besides the way to open one. */
struct token_program {
    const char *name;
    /* See stream_prepare(): called until it is 1. NULL: nothing to do. */
    int (*prepare)(struct token_stream *s, struct diag *d);
    /* Check what stream_check_documents() does not. 0, or -errno with the reason in d. NULL:
     * nothing. */
    int (*check)(const struct token_stream *s, struct diag *d);
};
extern const struct token_program token_programs[]; /* by layout */

/* Next to the tokens a document has losses, or a mode, or neither. */
enum { COLUMN_TOKENS, COLUMN_LOSS_OR_MODE, STREAM_COLUMNS };

struct token_stream {
    struct record_file base; /* the blob of its tokens, and the index of samples that are documents:
                                a row has the tokens before one */
    enum token_layout layout;
    char name[256];     /* of its dataset */
    struct blob *index; /* where documents are; NULL: nothing says it */
    struct blob *loss;  /* a byte for each token; NULL */
    uint64_t modes;     /* offset in index of a byte for each sequence; 0: none */
    enum dtype dtype;
    unsigned width; /* bytes of a token */

    /* Once it is prepared: */
    uint64_t offset; /* of token 0 in base.blob */
    uint64_t tokens;
    struct documents documents;
    struct text note; /* what a user has to know, lines */

    /* Once it is checked, by one thread: */
    bool has_largest;
    uint64_t largest; /* token */

    struct packing *packing; /* of its windows; owned; NULL: they are not packed */

    /* Private: */
    enum { STREAM_NEW, STREAM_SEQUENCES, STREAM_DOCUMENTS, STREAM_READY } state;
    uint64_t checked; /* sequences, or documents, that the pass has seen */
    /* [sequences + 1] tokens before each, where they do not follow each other in their file;
     * otherwise NULL: the pointers of documents say it. */
    uint64_t *before;
    uint64_t next; /* document, while the index is made */
    struct record_column column[STREAM_COLUMNS];
};

/* Make the stream of a file of each layout. They take over the blobs that they use, also on error,
 * and read their heads only. 0, or -errno with the reason in d. */
int stream_megatron(struct source_file *index, struct blob *bin, const struct format_setup *setup,
                    struct token_stream **ret, struct diag *d);
int stream_llmc(struct source_file *file, const struct format_setup *setup,
                struct token_stream **ret, struct diag *d);
struct datatrove_files {
    struct blob *index, *metadata, *loss; /* NULL: there is none */
};
int stream_datatrove(struct source_file *file, struct datatrove_files *beside,
                     const struct format_setup *setup, struct token_stream **ret, struct diag *d);
int stream_raw(struct source_file *file, const struct format_setup *setup,
               struct token_stream **ret, struct diag *d);

/* Prepare it a step further: 1: ready, 0: not yet, or -errno with the reason in d. By one thread;
 * -EREMOTEIO and -EINTR: the next call goes on. */
int stream_prepare(struct token_stream *s, struct diag *d);

/* Request what stream_prepare() will read, without waiting for it. */
void stream_fetch(const struct token_stream *s);

/* Check all that the files next to it say, and all pointers, and read all tokens. One thread
 * checks. 0, or -errno with the reason in d. */
int stream_check(void *stream, struct diag *d);

/* The token at p, as stored; int64 in two's complement. */
static inline uint64_t stream_token(const struct token_stream *s, const uint8_t *p)
{
    return (uint64_t)dtype_integer(s->dtype, false, p);
}

/* The largest of the first n tokens; a negative one counts as very large. 0 or -errno. */
int stream_largest(const struct token_stream *s, uint64_t n, uint64_t *ret, struct diag *d);

/* Add to t, for people, what the largest of all is, if that is known. */
void stream_add_largest(const void *stream, struct text *t);

static inline void stream_scope_end(struct token_stream **s)
{
    record_file_drop(*s ? &(*s)->base : NULL);
}
#define AUTO_STREAM AUTO(stream_scope_end)

/* ---- samples that are documents (format/tokens/document_set.c) ---- */

/* Give the stream its columns, and its index what that depends on. 0 or -ENOMEM. */
int stream_add_columns(struct token_stream *s);

/* For record_set_new() of streams. */
extern const struct record_format token_documents;

/* ---- for the layouts ---- */

/* The stream takes over blob, even if there is no memory: then NULL. */
struct token_stream *stream_new(enum token_layout layout, struct blob *blob, enum dtype dtype,
                                const struct format_setup *setup);

/* A stream of all tokens that follow a header of so many bytes; the same of blob. 0; -EBADMSG with
 * the reason in d: they end in the middle of a token; or -ENOMEM. */
int stream_fixed(enum token_layout layout, struct blob *blob, enum dtype dtype, uint64_t header,
                 const struct format_setup *setup, struct token_stream **ret, struct diag *d);

/* An index of more bytes is checked at both ends only, until another process asks for all. */
#define STREAM_INDEX_CHECKED (UINT64_C(16) << 20)

int megatron_prepare(struct token_stream *s, struct diag *d);
int datatrove_prepare(struct token_stream *s, struct diag *d);

/* Check pointers and lengths of all sequences. */
int megatron_check(const struct token_stream *s, struct diag *d);

/* Check that documents follow each other, from *checked on, a step further. 1: all do, 0: not yet,
 * or -errno with the reason in d. */
int stream_check_documents(const struct token_stream *s, uint64_t *checked, struct diag *d);

bool megatron_starts(const uint8_t *head, size_t len);
bool llmc_starts(const uint8_t *head, size_t len);

/* A blob of the sequences of a Megatron file in their order, where the file has another. Takes over
 * the file's, also on error; the stream, which has `before`, outlives it. 0 or -ENOMEM. */
int scattered_blob(struct blob *bin, const struct token_stream *s, struct blob **ret);

#endif
