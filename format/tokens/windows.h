/* A dataset of windows: sample k of a stream is T + 1 of its tokens from token k * step on. A
 * window never spans two streams. Where all windows are follows from the number of tokens: there is
 * no index. */
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

    /* Once all are ready: */
    uint64_t *first;                  /* [n + 1] windows before each stream */
    struct field_run *run, *loss_run; /* [n] */
    uint64_t left_over;               /* tokens that are in no window */
    uint64_t largest;                 /* token, once windows_check() has read them all */
    bool has_largest;
};

/* A dataset of n streams, each of which has one user more then. 0 or -ENOMEM. */
int windows_new(struct token_stream *const *stream, unsigned n, const struct format_setup *setup,
                struct dataset **ret);

/* Windows of T + 1 tokens, step apart, in n tokens. */
uint64_t windows_in(uint64_t n, uint64_t tokens, uint64_t step);

static inline const struct windows *windows_of(const struct dataset *ds)
{
    return ds->impl;
}

/* Where a window is: *ret_start tokens into that stream. 0, or -errno with the reason in d. */
int windows_place(struct read_context *rc, const struct dataset *ds, uint64_t window,
                  const struct token_stream **ret, uint64_t *ret_start, struct diag *d);

/* How many fields windows have; and add them: ds->field has room for as many. 0 or -ENOMEM. */
size_t windows_fields(const struct windows *w);
int windows_add_fields(struct dataset *ds);

/* Prepare the windows inside documents a step further: 1: ready, 0: not yet, or -errno with the
 * reason in d. */
int split_prepare(struct split *split, const struct token_stream *s, const struct windows *w,
                  struct diag *d);

/* The token that a window inside a document begins with. */
int split_place(struct read_context *rc, const struct split *split, const struct token_stream *s,
                const struct windows *w, uint64_t window, uint64_t *ret_start, struct diag *d);

#endif
