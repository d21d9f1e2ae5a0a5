/* Where the documents of a stream of tokens begin, as its file says: never read as a whole, and no
 * table is built of it. There may be 10^9 documents; one is found in O(log n) reads.
 *
 * The numbers of the file are hostile. Each is checked when it is used, so what is found lies
 * inside the stream, and rises; but that documents elsewhere in the file do is only known where
 * stream_check_documents() has looked. */
#ifndef EPOCHFS_FORMAT_TOKENS_DOCUMENTS_H
#define EPOCHFS_FORMAT_TOKENS_DOCUMENTS_H

#include "base/blob.h"

enum documents_table {
    DOCUMENTS_NONE,      /* the file does not know */
    DOCUMENTS_ENDS,      /* u64 where each ends, in tokens (datatrove) */
    DOCUMENTS_SEQUENCES, /* i64 the sequence that each begins with (Megatron-LM) */
};

struct token_stream;

struct documents {
    enum documents_table table;
    uint64_t n; /* documents */

    /* For DOCUMENTS_SEQUENCES: */
    uint64_t sequences;
    uint64_t pointers; /* byte of i64 [sequences]: the byte of the stream that each begins with, */
    uint64_t numbers;  /* byte of i64 [n + 1]: the sequence that each document begins with; */
    uint64_t n_numbers;
    bool by_sequence; /* a document is a sequence: numbers is not used */
    uint64_t base;    /* the byte of the first sequence */
};

#define DOCUMENTS_AT_ONCE 512

/* The tokens before documents first .. first + n - 1; the number of documents is the end of the
 * stream. n is at most DOCUMENTS_AT_ONCE. 0, or -errno with the reason in d. */
int documents_starts(struct read_context *rc, const struct token_stream *s, uint64_t first,
                     size_t n, uint64_t *ret, struct diag *d);

/* The document that has a token of the stream. 0, or -errno with the reason in d. */
int documents_find(struct read_context *rc, const struct token_stream *s, uint64_t token,
                   uint64_t *ret, struct diag *d);

/* A walk over the boundaries after a token: each place where another document begins. */
struct boundaries {
    const struct token_stream *s;
    uint64_t last; /* boundary, or the token */
    uint64_t next; /* document to read; start[] has those before it */
    size_t n, i;
    bool moved; /* start[] had a boundary */
    uint64_t start[DOCUMENTS_AT_ONCE];
};

int boundaries_begin(struct read_context *rc, struct boundaries *ret, const struct token_stream *s,
                     uint64_t token, struct diag *d);

/* 1 and the next boundary, 0: none before the end of the stream; or -errno with the reason in d. */
int boundaries_next(struct read_context *rc, struct boundaries *b, uint64_t *ret, struct diag *d);

#endif
