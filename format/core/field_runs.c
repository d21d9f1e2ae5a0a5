/* Where the samples of stored fields are: by arithmetic, in one or more runs. */
#include "base/checked.h"
#include "base/search.h"
#include "format/core/dataset.h"

/* The number of the run that has the sample. */
static unsigned field_runs_run_of(const struct field *f, uint64_t sample)
{
    return (unsigned)search_last_up_to(&f->run->first, sizeof(*f->run), f->n_runs, sample);
}

static uint64_t step_of(const struct field *f)
{
    return f->stored_step ? f->stored_step : f->stored_bytes;
}

const struct blob *field_place(const struct field *f, uint64_t sample, uint64_t *ret_off)
{
    const struct field_run *run = f->n_runs ? &f->run[field_runs_run_of(f, sample)] : NULL;

    *ret_off =
        run ? run->offset + (sample - run->first) * step_of(f) : f->offset + sample * step_of(f);
    return run ? run->blob : f->blob;
}

/* Widen [*first, *last] by the samples of the run, which ends before sample `end`. */
static bool run_samples(const struct field *f, const struct field_run *run, uint64_t end,
                        uint64_t off, uint64_t len, uint64_t *first, uint64_t *last)
{
    uint64_t step = step_of(f), from, to;

    if (off + len <= run->offset)
        return false;
    from =
        off < run->offset + f->stored_bytes ? 0 : (off - run->offset - f->stored_bytes) / step + 1;
    to = (off + len - 1 - run->offset) / step;
    if (from > to || from >= end - run->first)
        return false;
    *first = min_u64(*first, run->first + from);
    *last = max_u64(*last, run->first + min_u64(to, end - run->first - 1));
    return true;
}

bool field_samples_at(const struct field *f, const struct blob *blob, uint64_t off, uint64_t len,
                      uint64_t *ret_first, uint64_t *ret_last)
{
    const struct field_run only = {0, f->blob, f->offset};
    const struct field_run *run = f->n_runs ? f->run : &only;
    unsigned n = f->n_runs ? f->n_runs : 1;
    bool found = false;

    *ret_first = UINT64_MAX;
    *ret_last = 0;
    if (!f->blob || !f->stored_bytes)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (run[i].blob == blob)
            found |= run_samples(f, &run[i], i + 1 < n ? run[i + 1].first : UINT64_MAX, off, len,
                                 ret_first, ret_last);
    return found;
}

uint64_t field_neighbours_end(const struct field *f, uint64_t sample)
{
    unsigned run;

    if (step_of(f) != f->stored_bytes)
        return sample + 1;
    if (!f->n_runs)
        return UINT64_MAX;
    run = field_runs_run_of(f, sample) + 1;
    return run < f->n_runs ? f->run[run].first : UINT64_MAX;
}
