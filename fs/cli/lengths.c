#include "fs/cli/lengths.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/tree/pages.h"

#define INDENT       4
#define FIELDS_MOST  2
#define SAMPLES_MOST 10000 /* whose lengths are asked for */
#define BARS_MOST    64
#define NAME_MOST    32     /* bytes of text that is rather a name */
#define LOW_BAR      0.125F /* of a length that there is, however rare */

struct lengths {
    uint64_t *length; /* [n], ascending; owned */
    uint64_t n;
};

static const char *extension_of(const struct field *f)
{
    const char *dot = strrchr(f->name, '.');

    return *f->ext ? f->ext : dot ? dot + 1 : f->name;
}

static bool is_file(const struct field *f)
{
    return f->dtype == DTYPE_U1 && f->ndim == 1 && f->dim[0] == DIM_VARIES;
}

static bool has_extension(const struct field *f, const char *const *known, size_t n)
{
    for (size_t i = 0; is_file(f) && i < n; i++)
        if (!strcmp(extension_of(f), known[i]))
            return true;
    return false;
}

bool lengths_is_text_file(const struct field *f)
{
    static const char *const known[] = {"txt", "text", "caption", "json", "jsonl"};

    return has_extension(f, known, ARRAY_LEN(known));
}

bool lengths_is_sound_file(const struct field *f)
{
    static const char *const known[] = {"wav", "sph"};

    return has_extension(f, known, ARRAY_LEN(known));
}

/* Files of other kinds have sizes that say little. */
static bool is_measured(const struct field *f)
{
    if (!page_shows(f) || f->derived || f->numbering)
        return false;
    if (f->dtype == DTYPE_TEXT)
        return !f->ndim;
    return f->ndim && f->dim[0] == DIM_VARIES && (!is_file(f) || lengths_is_text_file(f));
}

/* Text: bytes. An array: its longest axis, which is that of time in audio. 0: the sample has none.
 */
static uint64_t length_of(const struct dataset *ds, const struct field *f, uint64_t sample)
{
    struct one_sample one;
    struct form form;
    uint64_t bytes, longest = 0;

    one_sample_init(&one, sample);
    if (!dataset_has(ds, sample, f) || field_form(ds, f, &one.sel, &form, &bytes) < 0)
        return 0;
    if (form.dtype == DTYPE_TEXT)
        return bytes;
    for (unsigned i = 0; i < form.ndim; i++)
        longest = max_u64(longest, form.dim[i]);
    return longest;
}

static int lengths_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* false: there is no memory. */
static bool lengths_collect(const struct dataset *ds, const struct field *f, struct lengths *ret)
{
    uint64_t asked = min_u64(ds->samples, SAMPLES_MOST), whole = ds->samples / asked,
             remainder = ds->samples % asked;

    ret->length = malloc(asked * sizeof(*ret->length));
    if (!ret->length)
        return false;
    for (uint64_t i = 0; i < asked; i++) {
        uint64_t length = length_of(ds, f, i * whole + i * remainder / asked);

        if (length)
            ret->length[ret->n++] = length;
    }
    qsort(ret->length, ret->n, sizeof(*ret->length), lengths_compare);
    return true;
}

/* Bars from the least length to that of the 99th of 100, and one for what is longer. */
static void add_bars(const struct lengths *l, const struct glyphs *g, struct text *t)
{
    uint64_t least = l->length[0], most = l->length[(l->n - 1) * 99 / 100], span = most - least + 1;
    unsigned n = (unsigned)min_u64(min_u64(g->columns - INDENT, BARS_MOST), span);
    float height[BARS_MOST] = {0}, highest = 0;

    for (uint64_t i = 0; i < l->n; i++) {
        double place = (double)(l->length[i] - least) / (double)span * n;
        unsigned bar = place < n ? (unsigned)place : n - 1;

        height[bar]++;
        highest = height[bar] > highest ? height[bar] : highest;
    }
    for (unsigned i = 0; i < n; i++)
        if (height[i] > 0)
            height[i] = height[i] / highest > LOW_BAR ? height[i] / highest : LOW_BAR;
    text_add(t, "%*s", INDENT, "");
    glyphs_add_bars(g, height, n, t);
    text_add(t, "\n");
}

/* false: all are as long, or the text is but names. */
static bool says_something(const struct field *f, const struct lengths *l)
{
    return l->n && l->length[0] < l->length[l->n - 1] &&
           (f->dtype != DTYPE_TEXT || l->length[l->n - 1] > NAME_MOST);
}

static void add_words(const struct field *f, const struct lengths *l, const struct glyphs *g,
                      struct text *t)
{
    AUTO_TEXT struct text words = {0};
    unsigned columns = g->columns - INDENT;

    text_add(&words, "lengths of %s: %llu to %llu%s, half of them up to %llu", f->name,
             (unsigned long long)l->length[0], (unsigned long long)l->length[l->n - 1],
             is_file(f) || f->dtype == DTYPE_TEXT ? " bytes" : "",
             (unsigned long long)l->length[(l->n - 1) / 2]);
    columns = (unsigned)min_u64(columns, glyphs_columns(g, words.data, words.len));
    text_add(t, "%*s", INDENT, "");
    glyphs_add_words(g, words.data, words.len, columns, t);
    text_add(t, "\n");
}

void lengths_add(const struct dataset *ds, const struct glyphs *glyphs, struct text *t)
{
    unsigned shown = 0;

    for (unsigned i = 0; ds->samples && i < ds->n_fields && shown < FIELDS_MOST; i++) {
        const struct field *f = &ds->field[i];
        struct lengths l = {0};

        if (is_measured(f) && lengths_collect(ds, f, &l) && says_something(f, &l)) {
            add_words(f, &l, glyphs, t);
            add_bars(&l, glyphs, t);
            shown++;
        }
        free(l.length);
    }
}
