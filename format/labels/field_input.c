#include "format/labels/field_input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/read_context.h"
#include "format/core/format.h"
#include "format/core/selection.h"

#define CLASS_TEXT_MAX 256  /* bytes of a class that is a text */
#define SCATTERED      4096 /* samples that are read at a time, if each has its own place */
#define ROUNDS_MOST    64   /* of reads that lacked bytes; then a read waits for each piece */

bool field_is_number(const struct field *f)
{
    char letter = dtype_info(f->dtype)->letter;

    return f->form == FORM_ITEM && !f->ndim && !f->numbering && strchr("uifb", letter) &&
           !f->stored_as && field_is_in(f, IN_PAGES);
}

/* Does the field show the text of one sample as it is? A file of it may have the end of a line. */
static bool shows_text(const struct field *f, bool as_file)
{
    bool is_bytes = f->form == FORM_RAGGED && f->dtype == DTYPE_U1 && f->ndim == 1;
    bool is_fixed = f->form == FORM_ITEM && !f->ndim && f->dtype == DTYPE_TEXT;
    bool is_file = f->form == FORM_BYTES && field_is_in(f, IN_FILE_SAMPLES) && !f->names_file;

    if (f->numbering || f->derived)
        return false;
    return as_file
               ? is_file
               : field_is_in(f, IN_NPZ_SAMPLES) && (is_bytes || is_fixed || f->form == FORM_TEXT);
}

const struct field *field_of_texts(const struct dataset *ds, const char *name)
{
    for (unsigned as_file = 0; as_file < 2; as_file++)
        for (unsigned i = 0; i < ds->n_fields; i++)
            if (!strcmp(ds->field[i].name, name) && shows_text(&ds->field[i], as_file))
                return &ds->field[i];
    return NULL;
}

void field_input_release(struct field_input *in)
{
    numbered_release(&in->texts);
}

static bool is_float(const struct field *f)
{
    return dtype_info(f->dtype)->letter == 'f';
}

static unsigned digits_of(const struct field *f)
{
    return f->width == 8 ? 53 : f->width == 4 ? 24 : 11;
}

/* ---- numbers ---- */

/* Turn count items, at the end of ret, into numbers from its start on. */
static int convert(const struct field_input *in, uint64_t first, size_t count, const uint8_t *items,
                   void *ret, struct diag *d)
{
    const struct field *f = in->field;
    uint8_t *to = ret;
    char where[1024];

    for (size_t i = 0; i < count; i++, to += 8, items += f->width) {
        double real = is_float(f) ? dtype_real(f->dtype, items) : 0;
        int64_t whole = is_float(f) ? 0 : dtype_integer(f->dtype, false, items);

        if (f->dtype == DTYPE_U8 && whole < 0) {
            in->input.where(&in->input, first + i, where, sizeof(where));
            return diag_set(d, -EBADMSG, "%s: %s: expected a number below 2^63, got %llu", in->name,
                            where, (unsigned long long)whole);
        }
        memcpy(to, is_float(f) ? (const void *)&real : (const void *)&whole, 8);
    }
    return 0;
}

/* ---- reading ---- */

void field_input_where(const struct label_input *input, uint64_t sample, char *ret, size_t size)
{
    const struct field_input *in = (const struct field_input *)input;
    AUTO_TEXT struct text place = {0};

    dataset_locate(in->ds, sample, in->field, &place);
    snprintf(ret, size, "sample %llu%s%s%s", (unsigned long long)sample,
             place.data && !place.failed ? " (" : "", place.data && !place.failed ? place.data : "",
             place.data && !place.failed ? ")" : "");
}

static int check_all_have(const struct field_input *in, uint64_t first, size_t count,
                          struct diag *d)
{
    for (uint64_t i = first; in->ds->ops && in->ds->ops->has && i < first + count; i++)
        if (!dataset_has(in->ds, i, in->field))
            return diag_set(d, -EBADMSG, "%s: sample %llu lacks it", in->name,
                            (unsigned long long)i);
    return 0;
}

/* The items of some samples, once. */
static int read_once(const struct field_input *in, struct read_context *rc, uint64_t first,
                     size_t count, uint8_t *ret, struct diag *d)
{
    const struct field *f = in->field;
    const struct selection sel = {
        .count = count, .in_order = true, .first = first, .id = {first, count, UINT64_MAX}};
    size_t len = count * (size_t)f->width;
    struct form form;
    uint64_t bytes = 0;
    int r = field_form(in->ds, f, &sel, &form, &bytes);

    if (r == 0 && (bytes != len || form.ndim != 1))
        r = diag_set(d, -EBADMSG, "%s: expected a number in each sample", in->name);
    return r < 0 ? r : f->ops->read(rc, in->ds, f, &sel, 0, len, ret, d);
}

/* A text, which may be longer than is allowed. */
struct text_item {
    uint64_t len;
    uint8_t bytes[CLASS_TEXT_MAX];
};

/* The same of texts: struct text_item. */
static int read_texts_once(const struct field_input *in, struct read_context *rc, uint64_t first,
                           size_t count, uint8_t *ret, struct diag *d)
{
    struct text_item *item = (struct text_item *)(void *)ret;
    int all = 0;

    for (size_t i = 0; i < count; i++) {
        struct one_sample one;
        struct form form;
        int r;

        one_sample_init(&one, first + i);
        r = field_form(in->ds, in->field, &one.sel, &form, &item[i].len);
        if (r == 0 && item[i].len <= CLASS_TEXT_MAX && item[i].len)
            r = in->field->ops->read(rc, in->ds, in->field, &one.sel, 0, (size_t)item[i].len,
                                     item[i].bytes, d);
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}

/* All bytes that one round lacks are fetched at the same time. */
static int field_input_read_items(const struct field_input *in, struct read_context *parent,
                                  uint64_t first, size_t count, uint8_t *ret, struct diag *d)
{
    struct read_context rc;
    int r = -EAGAIN;

    read_context_init(&rc, true);
    rc.checks_late = true;
    if (parent) {
        rc.cancelled = parent->cancelled;
        rc.ctx = parent->ctx;
        rc.clock = parent->clock;
    }
    for (unsigned round = 0; r == -EAGAIN; round++) {
        rc.collects = round < ROUNDS_MOST;
        rc.again = round > 0;
        if (read_cancelled(&rc))
            r = -EINTR;
        else
            r = in->input.number ? read_texts_once(in, &rc, first, count, ret, d)
                                 : read_once(in, &rc, first, count, ret, d);
        if (r == -EAGAIN) {
            int waited = missing_wait(&rc, false, d);

            r = waited < 0 ? waited : r;
        }
    }
    if (r == 0)
        r = blob_verify_used(&rc, d);
    for (unsigned i = 0; i < in->ds->n_blobs && r == 0 && !in->ds->shares_blobs; i++)
        r = blob_verify(in->ds->blob[i], d);
    read_context_release(&rc);
    return r;
}

static int read_values(const struct label_input *input, struct read_context *rc, uint64_t first,
                       size_t count, void *ret, struct diag *d)
{
    const struct field_input *in = (const struct field_input *)input;
    const struct field *f = in->field;
    bool is_stored = f->blob && !f->read_stored;
    uint8_t *items = (uint8_t *)ret + count * (8 - (size_t)f->width);
    int r = check_all_have(in, first, count, d);

    for (size_t at = 0, n; at < count && r == 0; at += n) {
        n = is_stored ? count : (size_t)min_u64(SCATTERED, count - at);
        r = field_input_read_items(in, rc, first + at, n, items + at * f->width, d);
    }
    return r < 0 ? r : convert(in, first, count, items, ret, d);
}

/* The numbers of texts, as they first came. */
static int add_texts(struct field_input *in, uint64_t first, size_t count,
                     const struct text_item *item, int64_t *ret, struct diag *d)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t len = item[i].len;
        char where[1024];
        uint32_t number;
        int r = 0;

        if (len > CLASS_TEXT_MAX) {
            in->input.where(&in->input, first + i, where, sizeof(where));
            return diag_set(d, -EBADMSG, "%s: %s: expected a text of at most %d bytes, got %llu",
                            in->name, where, CLASS_TEXT_MAX, (unsigned long long)len);
        }
        while (in->field->form == FORM_ITEM && len && !item[i].bytes[len - 1])
            len--; /* what fills it up */
        r = numbered_add(&in->texts, (const char *)item[i].bytes, (size_t)len, &number);
        if (in->texts.n > LABEL_CLASSES_MAX)
            return diag_set(d, -E2BIG,
                            "%s: expected at most %llu classes, got more different texts up to "
                            "sample %llu",
                            in->name, (unsigned long long)LABEL_CLASSES_MAX,
                            (unsigned long long)(first + i));
        if (r < 0)
            return r;
        ret[i] = number;
    }
    return 0;
}

static int read_texts(const struct label_input *input, struct read_context *rc, uint64_t first,
                      size_t count, void *ret, struct diag *d)
{
    struct field_input *in = (struct field_input *)(uintptr_t)input;
    AUTO_FREE struct text_item *item = calloc(min_u64(SCATTERED, count), sizeof(*item));
    int r = item ? check_all_have(in, first, count, d) : -ENOMEM;

    for (size_t at = 0, n; at < count && r == 0; at += n) {
        n = (size_t)min_u64(SCATTERED, count - at);
        r = field_input_read_items(in, rc, first + at, n, (uint8_t *)item, d);
        if (r == 0)
            r = add_texts(in, first + at, n, item, (int64_t *)ret + at, d);
    }
    return r;
}

static int number_texts(const struct label_input *input, int64_t *value, uint32_t n)
{
    struct field_input *in = (struct field_input *)(uintptr_t)input;
    int r = numbered_sort(&in->texts);

    for (uint32_t i = 0; i < n && r == 0; i++)
        value[i] = in->texts.place[value[i]];
    return r;
}

/* ---- which field ---- */

static int no_such_field(const struct dataset *ds, const char *name, enum label_purpose type,
                         struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_is_number(&ds->field[i]) && !ds->field[i].base_field)
            text_add(&t, "%s%s", t.len ? ", " : "", ds->field[i].name);
    return diag_set(
        d, -EINVAL, "the dataset has no field '%s'; its fields with a number in each sample: %s%s",
        name, t.data ? t.data : "none",
        t.data && type == LABEL_CLASSES ? ". -o label=FIELD makes one of them its label" : "");
}

/* Say why a field is none of numbers. */
static int no_number(const struct field *f, const char *name, struct diag *d)
{
    const char *type = f->stored_as ? f->stored_as : dtype_info(f->dtype)->name;

    if (f->numbering)
        return diag_set(d, -EINVAL,
                        "field %s: expected a field that the source has, got the numbers "
                        "that epochfs gives to samples",
                        name);
    return diag_set(d, -EINVAL, "field %s: expected a number in each sample, got %s%s", name, type,
                    f->ndim                ? " with axes"
                    : f->form != FORM_ITEM ? " that differs in length"
                    : f->stored_as         ? ", of which only the bits are shown; convert it to F32"
                    : !strchr("uifb", dtype_info(f->dtype)->letter) ? ", which is no number"
                                                                    : ", which is not stored");
}

int field_input_init(struct field_input *ret, const struct dataset *ds, const char *name,
                     enum label_purpose type, struct diag *d)
{
    const struct field *f = dataset_field(ds, name), *texts;

    if (!f)
        return no_such_field(ds, name, type, d);
    texts = field_is_number(f) || type != LABEL_CLASSES ? NULL : field_of_texts(ds, name);
    if (!field_is_number(f) && !texts)
        return no_number(f, name, d);
    f = texts ? texts : f;
    if (ds->samples >= LABEL_SAMPLES_MAX)
        return diag_set(d, -EINVAL, "field %s: expected fewer than %llu samples, got %llu", name,
                        (unsigned long long)LABEL_SAMPLES_MAX, (unsigned long long)ds->samples);
    *ret = (struct field_input){.input = {.n = ds->samples,
                                          .are_floats = is_float(f),
                                          .digits = digits_of(f),
                                          .read = read_values,
                                          .where = field_input_where},
                                .ds = ds,
                                .field = f,
                                .word = f->name};
    if (texts) {
        ret->input.are_floats = false;
        ret->input.read = read_texts;
        ret->input.number = number_texts;
    }
    snprintf(ret->name, sizeof(ret->name), "%s %s",
             type == LABEL_CLASSES   ? "classes of field"
             : type == LABEL_LENGTHS ? "lengths of field"
                                     : "weights of field",
             name);
    ret->input.name = ret->name;
    return 0;
}

/* ---- identity ---- */

static void add_options(const struct format_options *o, struct text *t)
{
    text_add(t, " %s %d %d %d %s %s %d %d %d %d %llu %llu %d %d %d %d %d %u %u %d %s %d %d",
             o->format ? o->format : "", o->transpose, (int)o->index_base, (int)o->bad_rows,
             o->label_column ? o->label_column : "", o->weight_column ? o->weight_column : "",
             o->delimiter, o->comment, (int)o->header, o->doubles, (unsigned long long)o->seq,
             (unsigned long long)o->stride, o->split_docs, o->sequences, o->tokens_given,
             o->tokens_raw, (int)o->tokens, o->picture_height, o->picture_width, (int)o->kaldi_type,
             o->kaldi_tables ? o->kaldi_tables : "", o->kaldi_permissive, o->pair_off);
    if (o->audio)
        text_add(t, " audio %u %d %d", o->audio_rate, o->audio_mono, o->audio_medium);
    if (o->pack)
        text_add(t, " pack %llu %llu", (unsigned long long)o->pack, (unsigned long long)o->pad);
    if (o->kaldi_join)
        text_add(t, " join %s", o->kaldi_join);
    if (o->label) /* of CSV it decides which columns are fields */
        text_add(t, " label %s", o->label);
}

int field_input_identity(const struct field_input *in, enum label_purpose type,
                         const struct format_options *options, struct text *ret)
{
    const struct dataset *ds = in->ds;

    text_add(ret, "labels of a dataset %d %d %s %s %s %llu", LABEL_FILE_VERSION, (int)type,
             ds->format->name, in->field ? in->field->name : in->word,
             in->field ? dtype_info(in->field->dtype)->name : "", (unsigned long long)ds->samples);
    if (type == LABEL_LENGTHS && !in->field)
        text_add(ret, " counted 2"); /* 1: none for bytes whose place was not known */
    add_options(options, ret);
    for (unsigned i = 0; i < ds->n_blobs; i++) {
        AUTO_FREE char *identity = NULL;
        int r = blob_identity(ds->blob[i], &identity);

        if (r < 0)
            return r;
        text_add(ret, " %s", identity);
    }
    if (ds->ops && ds->ops->identity) {
        int r = ds->ops->identity(ds, ret);

        if (r < 0)
            return r;
    }
    return ret->failed ? -ENOMEM : 0;
}
