/* The pass over a table, step by step: rows of an archive, or of an scp file. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"

#define STEP_NS 10000000 /* duration of a step of the pass */
#define LOOK    64       /* rows between two readings of the clock */

int kaldi_pass_new(struct kaldi_table *table, struct kaldi_pass **ret)
{
    struct kaldi_pass *pass = calloc(1, sizeof(*pass));

    if (!pass)
        return -ENOMEM;
    pass->table = table;
    kaldi_in_init(&pass->in, table->base.blob);
    *ret = pass;
    return 0;
}

void kaldi_pass_free(struct kaldi_pass *pass)
{
    if (!pass)
        return;
    kaldi_in_release(&pass->in);
    kaldi_in_release(&pass->object);
    for (unsigned i = 0; i < LINES_AHEAD; i++)
        kaldi_line_release(pass, &pass->ahead[i]);
    numbered_release(&pass->paths);
    free(pass);
}

/* ---- the pass ---- */

/* The next of the table's own files; false: there is none. */
static bool kaldi_next_part(struct kaldi_pass *pass)
{
    if (pass->part + 1 >= pass->table->n_parts)
        return false;
    pass->before += pass->in.blob->size;
    kaldi_in_move(&pass->in, pass->table->part[++pass->part]->base.blob);
    pass->at = pass->lines = pass->empty_line = pass->nuls = 0;
    pass->ended = false;
    return true;
}

int kaldi_pass_step(struct kaldi_pass *pass, struct diag *d)
{
    static int (*const rows[])(struct kaldi_pass * pass,
                               struct diag * d) = {[KALDI_ARCHIVE] = kaldi_archive_row,
                                                   [KALDI_SCRIPT] = kaldi_script_row,
                                                   [KALDI_SINGLE] = kaldi_single_row};
    struct kaldi_table *table = pass->table;
    int64_t until = monotonic_ns() + STEP_NS;

    pass->in.error = pass->object.error = 0; /* the read may succeed now */
    for (unsigned i = 1;; i++) {
        int r = pass->ended && !pass->n_ahead ? 0 : rows[table->layout](pass, d);

        atomic_store_explicit(&table->base.prepared.seen,
                              min_u64(pass->before + pass->at, table->base.prepared.size),
                              memory_order_relaxed);
        if (r == -EAGAIN)
            return 0;
        if (r < 0)
            return r;
        if (pass->ended && !pass->n_ahead && !kaldi_next_part(pass))
            return 1;
        if (i % LOOK == 0 && monotonic_ns() > until)
            return 0;
    }
}
