/* Which columns have files of their own. A folder has KINDS_MAX files of a sample at most, so
 * columns that most records have come first: a rare one never hides one that all have. For a large
 * dataset some records are looked at. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "format/core/encoder.h"
#include "format/records/record_set_parts.h"

#define LOOKED 512 /* records */

struct claimant {
    unsigned column, records; /* that have it, of those that were looked at */
};

static int by_records(const void *a, const void *b)
{
    const struct claimant *x = a, *y = b;

    if (x->records != y->records)
        return x->records > y->records ? -1 : 1;
    return x->column < y->column ? -1 : 1;
}

/* Files are ready where columns are learned. Others have few columns. */
static void record_places_count_records(const struct dataset *ds, struct claimant *claimant,
                                        unsigned n)
{
    const struct record_set *set = record_set_of(ds);
    uint64_t all = !set->rf->column ? set->files.first[set->files.n] : 0;
    uint64_t looked = min_u64(all, LOOKED);

    for (unsigned i = 0; i < n; i++) {
        const struct record_content c = {.ops = &record_set_contents, .column = i};

        for (uint64_t k = 0; k < looked; k++)
            claimant[i].records += c.ops->has(ds, &c, k * (all / looked));
    }
}

/* The next column's places, where a folder has as many files as it may. */
static unsigned places_left(struct record_places *places, const struct record_column *column)
{
    unsigned in = ~0u;

    if (column->shown == RECORD_BYTES && !(column->without & RECORD_NOT_RAW))
        in &= places->raw++ < KINDS_MAX ? ~0u : ~(unsigned)IN_FILE_SAMPLES;
    if (column->shown == RECORD_TEXT)
        in &= places->text++ < KINDS_MAX ? ~0u : ~(unsigned)IN_FILES;
    if (column->shown == RECORD_NUMBERS && !(column->without & RECORD_NOT_ARRAYS)) {
        in &= places->npy_samples++ < KINDS_MAX ? ~0u : ~(unsigned)IN_NPY_SAMPLES;
        places->npy_batches += record_column_varies(column) ? 2 : 1;
        in &= places->npy_batches <= KINDS_MAX ? ~0u : ~(unsigned)IN_NPY_BATCHES;
    }
    return in;
}

int record_places_make(const struct dataset *ds, const struct record_column *column, unsigned n,
                       struct record_places *places)
{
    AUTO_FREE struct claimant *claimant = calloc(n + 1u, sizeof(*claimant));

    places->in = calloc(n + 1u, sizeof(*places->in));
    if (!claimant || !places->in)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        claimant[i].column = i;
    if (2 * n + places->npy_batches > KINDS_MAX)
        record_places_count_records(ds, claimant, n);
    qsort(claimant, n, sizeof(*claimant), by_records);
    for (unsigned i = 0; i < n; i++)
        places->in[claimant[i].column] = places_left(places, &column[claimant[i].column]);
    for (unsigned i = n; i-- > 0;) {
        places->left_out += places->in[i] != ~0u;
        places->first = places->in[i] != ~0u ? column[i].name : places->first;
    }
    return 0;
}

void record_places_release(struct record_places *places)
{
    free(places->in);
}
