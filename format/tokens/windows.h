/* A dataset of windows: sample k of a stream is T + 1 of its tokens from token k * step on. A
 * window never spans two streams. Where all windows are follows from the number of tokens: there is
 * no index. Packed ones have one: packing.h. */
#ifndef EPOCHFS_FORMAT_TOKENS_WINDOWS_H
#define EPOCHFS_FORMAT_TOKENS_WINDOWS_H

#include "format/core/dataset.h"
#include "format/tokens/stream.h"

/* The windows inside the documents of a stream: how many there are before every 64th document. */
struct split {
    uint64_t *before;
    uint64_t checked; /* documents seen so far */
    uint64_t n;       /* windows so far */
    uint64_t start;   /* of the next document */
};

struct windows {
    unsigned n;
    struct token_stream **stream; /* [n] this is one of the users of each */
    uint64_t tokens, step;        /* of a window without the last; from one to the next */
    _Atomic unsigned ready;       /* streams that are prepared */
    unsigned fetched;             /* and requested */
    struct split *split;          /* [n] NULL: windows go across documents */
    bool packed;                  /* by the packing of each stream */
    uint64_t pad;                 /* the token that fills packed ones */

    /* Once all are ready: */
    uint64_t *first;                  /* [n + 1] windows before each stream */
    struct field_run *run, *loss_run; /* [n] */
    uint64_t left_over;               /* tokens that are in no window */
};

/* A dataset of n streams, each of which has one user more then. 0 or -ENOMEM. */
int windows_new(struct record_file *const *file, unsigned n, const struct format_setup *setup,
                struct dataset **ret);

/* Windows of T + 1 tokens, step apart, in n tokens. */
static inline uint64_t windows_in(uint64_t n, uint64_t tokens, uint64_t step)
{
    return n > tokens ? (n - 1 - tokens) / step + 1 : 0;
}

static inline const struct windows *windows_of(const struct dataset *ds)
{
    return ds->impl;
}

/* Tokens of a stream that follow each other in it. */
struct piece {
    uint64_t start, tokens;
};

/* A sample: its pieces, and then padding up to T + 1 tokens. Each piece of a packed one is of
 * another document. */
struct window {
    const struct windows *w;
    const struct token_stream *s;
    size_t n;
    struct piece *piece; /* [n]; points to `one`, or is owned */
    struct piece one;
};

/* Find a window. 0, or -errno with the reason in d; the caller releases *ret in either case. */
int window_find(struct read_context *rc, const struct dataset *ds, uint64_t sample,
                struct window *ret, struct diag *d);
void window_release(struct window *x);
#define AUTO_WINDOW AUTO(window_release)

/* Are there windows inside documents alone, so that no arithmetic tells where one is? */
static inline bool windows_by_document(const struct windows *w)
{
    return w->split || w->packed;
}

#define WINDOWS_FIELDS 7 /* at most, next to index and key */

/* Add the fields of windows, for which ds->field has room. 0 or -ENOMEM. */
int windows_add_fields(struct dataset *ds);

/* Documents are looked at in groups; how many there are. */
uint64_t split_groups(const struct token_stream *s);

/* Prepare the windows inside documents a step further. each() gets each document, when its windows
 * are counted; 0 or -errno. NULL: ignored. 1: ready, 0: not yet, or -errno with the reason in d. */
int split_prepare(struct split *split, const struct token_stream *s, uint64_t tokens, uint64_t step,
                  int (*each)(void *ctx, uint64_t document, uint64_t tokens), void *ctx,
                  struct diag *d);

/* The token that a window inside a document begins with. */
int split_place(struct read_context *rc, const struct split *split, const struct token_stream *s,
                uint64_t tokens, uint64_t step, uint64_t window, uint64_t *ret_start,
                struct diag *d);

#endif
