/* Packing (-o pack=W): the ends of documents that fill no window of T + 1 tokens, packed into
 * samples of T + 1 tokens by best fit, longest first, among W documents at a time. The rule, a
 * reference and examples: docs/spec/packing.md.
 *
 * An index of pieces is kept. A piece is the end of a document, so its row needs the document
 * alone, and the samples before it; documents say where it begins. Full windows are found as
 * windows inside documents are. */
#ifndef EPOCHFS_FORMAT_TOKENS_PACKING_H
#define EPOCHFS_FORMAT_TOKENS_PACKING_H

#include "format/index/prepared.h"
#include "format/tokens/windows.h"

#define PACK_MOST 65536 /* documents that are packed together */

/* What full windows leave of a document. */
struct packed_piece {
    uint32_t tokens; /* 2 to space */
    uint32_t document;
    uint32_t bin; /* set by pack_pieces() */
};

/* Put n <= PACK_MOST pieces, in the order of documents, into bins of `space` tokens, and sort them
 * by bins, those of one bin as they came there. scratch, keys: [n]. Returns the number of bins. */
size_t pack_pieces(struct packed_piece *piece, size_t n, uint64_t space,
                   struct packed_piece *scratch, uint64_t *keys);

/* The packing of one stream, which all datasets of the stream share. */
struct packing {
    struct prepared prepared;
    const struct token_stream *stream;
    struct split split; /* where full windows are */
    uint64_t tokens;    /* T */
    uint64_t together;  /* W */

    /* While the index is made: */
    struct packed_piece *piece, *scratch; /* [min(together, documents)]; the first n are filled */
    uint64_t *keys;
    size_t n;
    uint64_t bins;

    /* Once it is ready: */
    uint64_t samples;
    uint64_t left_over; /* documents of less than two tokens: they are in no sample */
    uint64_t predicted; /* tokens that count: all of the others but their first */
};

/* The packing of a stream, which outlives it. 0 or -ENOMEM; the caller frees *ret in either case.
 */
int packing_new(const struct token_stream *s, const struct format_setup *setup,
                struct packing **ret);
void packing_free(struct packing *p); /* takes NULL */

/* Find sample `number` of the stream; ret has w and s. 0, or -errno with the reason in d. */
int packing_find(struct read_context *rc, const struct packing *p, uint64_t number,
                 struct window *ret, struct diag *d);

#endif
