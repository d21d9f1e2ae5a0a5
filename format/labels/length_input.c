/* The lengths of samples: from the index, or the values of a field. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/durations.h"
#include "format/core/extents.h"
#include "format/labels/field_input.h"

/* How a field has lengths. */
enum lengths_source { OF_NOTHING, OF_ROWS, OF_BYTES, OF_VALUE };

static enum lengths_source field_lengths(const struct field *f)
{
    if (field_is_number(f))
        return OF_VALUE;
    if (f->numbering)
        return OF_NOTHING;
    if (f->form == FORM_WHOLE) /* of a matrix: the entries of a row */
        return !strcmp(f->name, "indices") ? OF_ROWS : OF_NOTHING;
    if (f->form == FORM_BYTES || f->form == FORM_TEXT || (f->dtype == DTYPE_TEXT && !f->ndim))
        return OF_BYTES;
    return (f->form == FORM_RAGGED || f->form == FORM_ITEM) && f->ndim ? OF_ROWS : OF_NOTHING;
}

/* For rows and bytes: the form of a sample is known without reading it. */
static int length_of_sample(const struct field_input *in, uint64_t sample, int64_t *ret)
{
    struct one_sample one;
    struct form form;
    uint64_t bytes;
    int r;

    one_sample_init(&one, sample);
    r = field_form(in->ds, in->field, &one.sel, &form, &bytes);
    if (r < 0)
        return r;
    *ret = (int64_t)(field_lengths(in->field) == OF_BYTES ? bytes : form.ndim ? form.dim[0] : 0);
    return 0;
}

static int length_input_read(const struct label_input *input, struct read_context *rc,
                             uint64_t first, size_t count, void *ret, struct diag *d)
{
    const struct field_input *in = (const struct field_input *)input;
    int64_t *to = ret;

    (void)rc;
    for (size_t i = 0; i < count; i++) {
        int r;

        if (!dataset_has(in->ds, first + i, in->field))
            return diag_set(d, -EBADMSG, "%s: sample %llu lacks it", in->name,
                            (unsigned long long)(first + i));
        r = length_of_sample(in, first + i, &to[i]);
        if (r < 0)
            return diag_set(d, r, "%s: sample %llu has no known length", in->name,
                            (unsigned long long)(first + i));
    }
    return 0;
}

/* Bytes that the fields show of a sample. 0; -ENODATA: that takes reading it; or -errno. */
static int shown_bytes(const struct dataset *ds, uint64_t sample, int64_t *ret)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];
        struct one_sample one;
        struct form form;
        uint64_t bytes;
        int r;

        if (f->base_field || f->derived || f->numbering || !dataset_has(ds, sample, f) ||
            (f->form != FORM_ITEM && f->form != FORM_RAGGED && f->form != FORM_TEXT &&
             f->form != FORM_BYTES))
            continue;
        one_sample_init(&one, sample);
        r = f->form_reads ? -ENODATA : field_form(ds, f, &one.sel, &form, &bytes);
        if (r < 0)
            return r;
        if (!checked_add(sum, bytes, &sum) || sum > INT64_MAX)
            return -EFBIG;
    }
    *ret = (int64_t)sum;
    return 0;
}

/* Bytes of all fields as stored, where it is known which these are. */
static int read_bytes(const struct label_input *input, struct read_context *rc, uint64_t first,
                      size_t count, void *ret, struct diag *d)
{
    const struct field_input *in = (const struct field_input *)input;
    int64_t *to = ret;

    (void)rc;
    for (size_t i = 0; i < count; i++) {
        struct extent extent[EXTENTS_MOST];
        unsigned n = dataset_extents(in->ds, first + i, NULL, extent);
        int r = n && n < EXTENTS_MOST ? 0 : shown_bytes(in->ds, first + i, &to[i]);

        if (r < 0)
            return diag_set(d, -EBADMSG,
                            "%s: sample %llu has no size that is known without reading it; "
                            "expected batch=HOW:N with a field that has lengths",
                            in->name, (unsigned long long)(first + i));
        if (!n || n == EXTENTS_MOST)
            continue;
        to[i] = 0;
        for (unsigned k = 0; k < n; k++)
            to[i] += (int64_t)extent[k].len;
    }
    return 0;
}

/* Microseconds of audio, by the headers of its files. */
static int read_seconds(const struct label_input *input, struct read_context *rc, uint64_t first,
                        size_t count, void *ret, struct diag *d)
{
    const struct field_input *in = (const struct field_input *)input;
    struct durations *durations = in->ds->durations;
    int64_t *to = ret;
    int r = 0;

    while (r == 0)
        r = read_cancelled(rc) ? -EINTR : durations->step(durations, d);
    for (size_t i = 0; i < count && r == 1; i++) {
        uint64_t frames, micro;
        uint32_t rate;

        if (!durations->get(durations, first + i, &frames, &rate))
            r = diag_set(d, -EBADMSG, "%s: sample %llu has no audio that can be read", in->name,
                         (unsigned long long)(first + i));
        else if (!rate)
            to[i] = 0;
        else if (!checked_mul(frames, 1000000, &micro) || ceil_div(micro, rate) > INT64_MAX)
            to[i] = INT64_MAX;
        else
            to[i] = (int64_t)ceil_div(micro, rate);
    }
    return r < 0 ? r : 0;
}

/* A matrix of numbers. */
static bool is_frames(const struct field *f)
{
    return field_lengths(f) == OF_ROWS && f->ndim == 2 && !f->base_field;
}

static const struct field *frames_field(const struct dataset *ds)
{
    static const char *const names[] = {"feats", "data"};

    for (unsigned i = 0; i < 2; i++) {
        const struct field *f = dataset_field(ds, names[i]);

        if (f && is_frames(f))
            return f;
    }
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (is_frames(&ds->field[i]))
            return &ds->field[i];
    return NULL;
}

static const struct field *rows_field(const struct dataset *ds, const char *name)
{
    const struct field *f = dataset_field(ds, name);

    return f && field_lengths(f) == OF_ROWS ? f : NULL;
}

/* The field that a word means. NULL: bytes, or none. */
static const struct field *length_field_of(const struct dataset *ds, const char *word)
{
    if (!strcmp(word, "tokens"))
        return rows_field(ds, "tokens");
    if (!strcmp(word, "frames"))
        return frames_field(ds);
    if (!strcmp(word, "rows"))
        return rows_field(ds, "indices");
    return strcmp(word, "bytes") != 0 && strcmp(word, "seconds") != 0 ? dataset_field(ds, word)
                                                                      : NULL;
}

static const char *default_word(const struct dataset *ds)
{
    return length_field_of(ds, "tokens")   ? "tokens"
           : ds->durations                 ? "seconds"
           : length_field_of(ds, "frames") ? "frames"
                                           : "bytes";
}

static int no_length(const struct dataset *ds, const char *word, const struct field *f,
                     struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_lengths(&ds->field[i]) != OF_NOTHING && !ds->field[i].base_field &&
            dataset_field(ds, ds->field[i].name) == &ds->field[i])
            text_add(&t, "%s%s", t.len ? ", " : "", ds->field[i].name);
    return diag_set(d, -EINVAL, "length %s: %s. Use bytes, or a field that has lengths: %s", word,
                    f ? "the field has one shape, and is no number" : "the dataset has none",
                    t.data ? t.data : "none");
}

static int value_input_init(struct field_input *ret, const struct dataset *ds, const char *word,
                            struct diag *d)
{
    int r = field_input_init(ret, ds, word, LABEL_LENGTHS, d);

    if (r == 0)
        ret->input.are_lengths = true;
    return r;
}

/* How a word without a field is read; NULL: there is no such. */
static int (*reader_of(const struct dataset *ds, const char *word))(const struct label_input *,
                                                                    struct read_context *, uint64_t,
                                                                    size_t, void *, struct diag *)
{
    return !strcmp(word, "bytes")                      ? read_bytes
           : !strcmp(word, "seconds") && ds->durations ? read_seconds
                                                       : NULL;
}

int length_input_init(struct field_input *ret, const struct dataset *ds, const char *word,
                      struct diag *d)
{
    const struct field *f;

    word = *word ? word : default_word(ds);
    f = length_field_of(ds, word);
    if (f && field_lengths(f) == OF_VALUE)
        return value_input_init(ret, ds, word, d);
    if (f ? field_lengths(f) == OF_NOTHING : !reader_of(ds, word))
        return no_length(ds, word, f, d);
    if (ds->samples >= LABEL_SAMPLES_MAX)
        return diag_set(d, -EINVAL, "length %s: expected fewer than %llu samples, got %llu", word,
                        (unsigned long long)LABEL_SAMPLES_MAX, (unsigned long long)ds->samples);
    *ret = (struct field_input){.input = {.n = ds->samples,
                                          .read = f ? length_input_read : reader_of(ds, word),
                                          .where = field_input_where},
                                .ds = ds,
                                .field = f,
                                .word = f                          ? f->name
                                        : !strcmp(word, "seconds") ? "seconds"
                                                                   : "bytes",
                                .is_micro = !f && !strcmp(word, "seconds")};
    snprintf(ret->name, sizeof(ret->name), "lengths of %s%s", f ? "field " : "", ret->word);
    ret->input.name = ret->name;
    return 0;
}
