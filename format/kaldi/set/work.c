#include "format/kaldi/set/work.h"

#include <errno.h>

#include "base/checked.h"
#include "base/read_context.h"

unsigned kaldi_axes(const struct kaldi_column *c, unsigned array)
{
    if (c->table->type == KALDI_WAVE)
        return c->is_mono ? 1 : 2;
    return kaldi_types[c->table->type].array[array].ndim;
}

void kaldi_work_init(struct kaldi_work *w, const struct dataset *ds, const struct field *f,
                     const struct selection *sel)
{
    *w = (struct kaldi_work){.set = kaldi_set_of(ds), .base_field = f->impl, .ds = ds, .sel = sel};
    w->reason = sel->reason;
    w->window.sel = sel;
}

uint64_t kaldi_work_sample(struct kaldi_work *w, uint64_t place)
{
    return sample_window_at(&w->window, place);
}

int kaldi_work_cell(const struct kaldi_work *w, uint64_t sample, struct kaldi_cell *ret,
                    struct diag *d)
{
    return kaldi_cell(w->set, w->base_field->column, sample, ret, d);
}

/* The memo's key contains the address of number(), which distinguishes it from other sums over the
 * same cells. */
int kaldi_work_sums(struct kaldi_work *w, sums_fn *number, struct sums *ret)
{
    const uint64_t *id = w->sel->id;
    const struct memo_key key = {
        {(uintptr_t)(w->base_field ? (const void *)w->base_field : (const void *)w->ds), id[0],
         id[1], id[2], (uintptr_t)number, w->file_len}};

    return sums_open(ret, w->set->memo, &key, w->sel, number, w);
}

int kaldi_read_summed(struct read_context *rc, struct kaldi_work *w, sums_fn *number, uint64_t unit,
                      kaldi_item_fn *item, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before, after;
    uint64_t place = 0;
    int r, all = 0;

    w->reason = d;
    r = kaldi_work_sums(w, number, &sums);
    if (r == 0 && len)
        r = sums_find(&sums, off / unit, &place, &before);
    for (; r == 0 && len; place++, before = after) {
        uint64_t end;
        size_t n;

        r = sums_after(&sums, place, &before, &after);
        end = after.size * unit;
        if (r < 0 || end <= off)
            continue;
        n = (size_t)min_u64(len, end - off);
        if (!missing_go_on(rc,
                           item(rc, w, kaldi_work_sample(w, place), &before,
                                off - before.size * unit, n, dst, d),
                           &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return r < 0 ? r : all;
}

int kaldi_read_even(struct read_context *rc, struct kaldi_work *w, uint64_t each,
                    kaldi_item_fn *item, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    int all = 0;

    while (len) {
        size_t n = (size_t)min_u64(len, each - off % each);
        uint64_t sample = kaldi_work_sample(w, off / each);

        if (!missing_go_on(rc, item(rc, w, sample, NULL, off % each, n, dst, d), &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}
