/* Binary objects of Kaldi tables that are lists, or lists of lists. A byte before each number gives
 * its size, so that an integer takes 5 bytes.
 *
 *     list            count, records
 *     list of lists   count, for each: count, records
 *     record          of integers (i), real numbers (r) of 4 or 8 bytes, whole vectors (v) */
#include "format/kaldi/object/walk.h"

#define FRAMES_MOST 10000000 /* of a posterior: hmm/posterior.cc */

const struct kaldi_list_layout kaldi_lists[N_KALDI_TYPES] = {
    [KALDI_INTS] = {"i", {0}, false, false, "elements", NULL, "", "", ""},
    [KALDI_INT_LISTS] = {"i", {1}, true, false, "lists", "elements", "", "; ", ""},
    [KALDI_INT_PAIRS] = {"ii", {0, 0}, false, false, "pairs", NULL, "", "", "; "},
    [KALDI_FLOAT_PAIRS] = {"rr", {0, 0}, false, false, "pairs", NULL, "", "", "; "},
    [KALDI_POSTERIOR] = {"ir", {1, 2}, true, false, "frames", "entries", "[ ", "] ", ""},
    [KALDI_GAUSS_POST] = {"iv", {1, 2}, true, true, "frames", "entries", "", "", ""},
};

/* A vector; array: of its length, and the next one of its elements. */
static int lists_vector(struct kaldi_walk *w, unsigned array, unsigned *widest)
{
    const uint8_t *p;
    unsigned width;
    uint64_t n;
    int r = kaldi_walk_bytes(w, 3, "a vector", &p);

    if (r < 0)
        return r;
    if ((*p != 'F' && *p != 'D') || p[1] != 'V' || p[2] != ' ')
        return kaldi_bad(w->in, w->at - 3, w->diag,
                         "expected a vector (FV or DV), got bytes %02x %02x %02x", p[0], p[1],
                         p[2]);
    width = *p == 'D' ? 8 : 4;
    r = kaldi_walk_count(w, "elements", &n);
    if (r < 0)
        return r;
    kaldi_put_int32(&w->values, array, (int32_t)n);
    *widest = width > *widest ? width : *widest;
    if (w->values.dst) {
        r = kaldi_walk_bytes(w, (size_t)n * width, "a vector", &p);
        if (r == 0)
            kaldi_put_reals(&w->values, array + 1, p, n, width);
        return r;
    }
    w->values.n[array + 1] += n;
    return kaldi_walk_skip(w, n, width, "a vector");
}

static int lists_item(struct kaldi_walk *w, char item, unsigned array, unsigned *widest)
{
    const uint8_t *p;
    unsigned width;
    int32_t v;
    int r;

    if (item == 'v')
        return lists_vector(w, array, widest);
    if (item == 'i') {
        r = kaldi_walk_int(w, "an integer", &v);
        if (r == 0)
            kaldi_put_int32(&w->values, array, v);
        return r;
    }
    r = kaldi_walk_real(w, &p, &width);
    if (r < 0)
        return r;
    kaldi_put_reals(&w->values, array, p, 1, width);
    *widest = width > *widest ? width : *widest;
    return 0;
}

static int lists_records(struct kaldi_walk *w, const struct kaldi_list_layout *layout, uint64_t n,
                         unsigned *widest)
{
    const char *record = layout->record;
    uint64_t least = 0;
    int r;

    if (!record[strspn(record, "i")])
        return kaldi_walk_ints(w, layout->array[0], n * strlen(record), "integers");
    for (const char *item = record; *item; item++)
        least += *item == 'v' ? 8 : 5;
    r = kaldi_expect(w, n, least, layout->nested ? layout->inner : layout->outer);
    for (uint64_t i = 0; i < n && r == 0; i++)
        for (unsigned k = 0; record[k] && r == 0; k++)
            r = lists_item(w, record[k], layout->array[k], widest);
    return r;
}

int kaldi_lists_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    const struct kaldi_list_layout *layout = &kaldi_lists[o->type];
    unsigned widest = 4;
    uint64_t n = 0, inner;
    int r = kaldi_walk_count(w, layout->outer, &n);

    if (r == 0 && !layout->nested)
        r = lists_records(w, layout, n, &widest);
    if (r == 0 && layout->nested)
        r = kaldi_expect(w, n, 5, layout->outer);
    if (r == 0 && o->type == KALDI_POSTERIOR && n > FRAMES_MOST)
        r = kaldi_bad(w->in, w->at - 4, w->diag,
                      "expected at most %u frames of a posterior, as Kaldi does, got %llu",
                      FRAMES_MOST, (unsigned long long)n);
    for (uint64_t i = 0; layout->nested && i < n && r == 0; i++) {
        r = kaldi_walk_count(w, layout->inner, &inner);
        if (r < 0)
            break;
        kaldi_put_int32(&w->values, 0, (int32_t)inner);
        r = lists_records(w, layout, inner, &widest);
    }
    o->store = widest == 8 ? KALDI_BINARY8 : KALDI_BINARY;
    return r;
}
