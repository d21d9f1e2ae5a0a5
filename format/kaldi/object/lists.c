/* Binary objects of Kaldi tables that are lists, or lists of lists. A byte before each number gives
 * its size, so that an integer takes 5 bytes.
 *
 *     list            count, records
 *     list of lists   count, for each: count, records
 *     record          of integers (i), real numbers (r) of 4 or 8 bytes, whole vectors (v) */
#include "format/kaldi/object/walk.h"

#define FRAMES_MOST 10000000 /* of a posterior: hmm/posterior.cc */

struct form {
    const char *record;
    bool nested;
    const char *outer, *inner; /* names of the counts, for messages */
};

static const struct form forms[N_KALDI_TYPES] = {
    [KALDI_INTS] = {"i", false, "elements", NULL},
    [KALDI_INT_LISTS] = {"i", true, "lists", "elements"},
    [KALDI_INT_PAIRS] = {"ii", false, "pairs", NULL},
    [KALDI_FLOAT_PAIRS] = {"rr", false, "pairs", NULL},
    [KALDI_POSTERIOR] = {"ir", true, "frames", "entries"},
    [KALDI_GAUSS_POST] = {"iv", true, "frames", "entries"},
};

/* ---- measuring ---- */

struct measure {
    struct kaldi_walk *w;
    const struct form *form;
    bool wide;
    uint64_t lists, records, values; /* so far; values: of vectors */
};

static int kaldi_lists_measure_vector(struct measure *m)
{
    const uint8_t *token;
    uint64_t n;
    bool wide;
    int r = kaldi_take(m->w, 3, "a vector", &token);

    if (r < 0)
        return r;
    if ((*token != 'F' && *token != 'D') || token[1] != 'V' || token[2] != ' ')
        return kaldi_bad(m->w->in, m->w->at - 3, m->w->diag,
                         "expected a vector (FV or DV), got bytes %02x %02x %02x", token[0],
                         token[1], token[2]);
    wide = *token == 'D';
    r = kaldi_take_count(m->w, "elements", &n);
    if (r == 0)
        r = kaldi_skip(m->w, n, wide ? 8 : 4, "a vector");
    if (r < 0)
        return r;
    m->wide |= wide;
    m->values += n;
    return 0;
}

static int measure_item(struct measure *m, char item)
{
    switch (item) {
    case 'i':
        return kaldi_skip_ints(m->w, 1, "an integer");
    case 'r':
        return kaldi_skip_real(m->w, &m->wide);
    default:
        return kaldi_lists_measure_vector(m);
    }
}

static int measure_records(struct measure *m, uint64_t n)
{
    const char *record = m->form->record;
    uint64_t least = 0;
    int r;

    m->records += n;
    if (!record[strspn(record, "i")])
        return kaldi_skip_ints(m->w, n * strlen(record), "integers");
    for (const char *item = record; *item; item++)
        least += *item == 'v' ? 8 : 5;
    r = kaldi_expect(m->w, n, least, m->form->nested ? m->form->inner : m->form->outer);
    for (uint64_t i = 0; i < n && r == 0; i++)
        for (const char *item = record; *item && r == 0; item++)
            r = measure_item(m, *item);
    return r;
}

static int measure_lists(struct measure *m, bool limited)
{
    uint64_t n;
    int r = kaldi_expect(m->w, m->lists, 5, m->form->outer);

    if (r == 0 && limited && m->lists > FRAMES_MOST)
        r = kaldi_bad(m->w->in, m->w->at - 4, m->w->diag,
                      "expected at most %u frames of a posterior, as Kaldi does, got %llu",
                      FRAMES_MOST, (unsigned long long)m->lists);
    for (uint64_t i = 0; i < m->lists && r == 0; i++) {
        r = kaldi_take_count(m->w, m->form->inner, &n);
        if (r == 0)
            r = measure_records(m, n);
    }
    return r;
}

int kaldi_lists_measure(struct kaldi_walk *w, struct kaldi_object *o)
{
    struct measure m = {.w = w, .form = &forms[o->type]};
    uint64_t n;
    int r = kaldi_take_count(w, m.form->outer, &n);

    if (r < 0)
        return r;
    if (!m.form->nested) {
        r = measure_records(&m, n);
        o->dim[0] = n;
    } else {
        m.lists = n;
        r = measure_lists(&m, o->type == KALDI_POSTERIOR);
        o->dim[0] = n;
        o->dim[1] = m.records;
        o->dim[2] = m.values;
    }
    o->store = m.wide ? KALDI_BINARY8 : KALDI_BINARY;
    return r;
}

/* ---- decoding ---- */

/* The part of an object to write: its counts, or one kind of item. */
enum pick { PICK_COUNTS, PICK_INTEGERS, PICK_REALS, PICK_DIMS };

struct decode {
    const uint8_t *p; /* the bytes from here on */
    uint8_t *dst;     /* and where their values go */
    enum pick pick;
    enum dtype dtype; /* of reals */
};

static uint64_t kaldi_lists_take_integer(struct decode *c, bool picked)
{
    const uint8_t *p = c->p + 1;

    if (picked) {
        memcpy(c->dst, p, 4);
        c->dst += 4;
    }
    c->p += 5;
    return load_le32(p);
}

static void take_reals(struct decode *c, uint64_t n, bool wide)
{
    if (c->pick == PICK_REALS)
        c->dst = kaldi_put_reals(c->dst, c->dtype, c->p, n, wide);
    c->p += n * (wide ? 8 : 4);
}

static void take_item(struct decode *c, char item)
{
    bool wide = *c->p == 8;

    switch (item) {
    case 'i':
        kaldi_lists_take_integer(c, c->pick == PICK_INTEGERS);
        break;
    case 'r':
        c->p++;
        take_reals(c, 1, wide);
        break;
    default:
        wide = *c->p == 'D';
        c->p += 3;
        take_reals(c, kaldi_lists_take_integer(c, c->pick == PICK_DIMS), wide);
    }
}

static void take_records(struct decode *c, const char *record, uint64_t n)
{
    if (record[0] == 'i' && !record[1] && c->pick == PICK_INTEGERS) {
        for (uint64_t i = 0; i < n; i++)
            memcpy(c->dst + 4 * i, c->p + 5 * i + 1, 4);
        c->dst += 4 * n;
        c->p += 5 * n;
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        for (const char *item = record; *item; item++)
            take_item(c, *item);
}

/* The part that array number i of the type holds. */
static enum pick picked(const struct form *form, unsigned i)
{
    if (form->nested && i == 0)
        return PICK_COUNTS;
    i -= form->nested;
    if (form->record[i] == 'i')
        return PICK_INTEGERS;
    return form->record[i] == 'v' ? PICK_DIMS : PICK_REALS;
}

void kaldi_lists_decode(const struct kaldi_object *o, const uint8_t *bytes, unsigned i,
                        enum dtype dtype, uint8_t *dst)
{
    const struct form *form = &forms[o->type];
    struct decode c = {.p = bytes + 2, .dst = dst, .dtype = dtype, .pick = picked(form, i)};
    uint64_t n = kaldi_lists_take_integer(&c, false);

    if (!form->nested) {
        take_records(&c, form->record, n);
        return;
    }
    for (uint64_t k = 0; k < n; k++)
        take_records(&c, form->record, kaldi_lists_take_integer(&c, c.pick == PICK_COUNTS));
}
