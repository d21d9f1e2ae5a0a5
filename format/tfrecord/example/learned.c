#include "format/tfrecord/example/learned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/picture/kind.h"

/* ---- what byte strings look like ---- */

/* Kinds that have no looks of their own start with bytes that text may start with. */
static enum looks look_of_magic(const uint8_t *bytes, uint64_t len)
{
    static const enum looks looks[N_PICTURE_KINDS] = {
        [PICTURE_NONE] = LOOKS_BYTES, [PICTURE_JPEG] = LOOKS_JPEG, [PICTURE_PNG] = LOOKS_PNG,
        [PICTURE_GIF] = LOOKS_GIF,    [PICTURE_BMP] = LOOKS_BYTES, [PICTURE_WEBP] = LOOKS_WEBP,
        [PICTURE_TIFF] = LOOKS_BYTES,
    };

    if (len >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WAVE", 4))
        return LOOKS_WAVE;
    return looks[picture_kind_of(bytes, len)];
}

static enum looks look_of_text(const uint8_t *bytes, uint64_t len)
{
    enum looks looks = LOOKS_LINE;

    for (const uint8_t *p = bytes, *end = bytes + len; p < end;) {
        size_t n = *p >= ' ' && *p != 0x7f ? text_character(p, (size_t)(end - p))
                                           : *p == '\t' || *p == '\n' || *p == '\r';

        if (!n)
            return LOOKS_BYTES;
        if (*p == '\n')
            looks = LOOKS_TEXT;
        p += n;
    }
    return looks;
}

enum looks looks_of(enum looks before, const uint8_t *bytes, uint64_t len)
{
    enum looks looks;

    if (!len || before == LOOKS_BYTES)
        return before;
    if (before == LOOKS_LINE || before == LOOKS_TEXT) {
        looks = look_of_text(bytes, len);
        return looks > before ? looks : before;
    }
    looks = look_of_magic(bytes, len);
    if (before != LOOKS_UNKNOWN)
        return looks == before ? looks : LOOKS_BYTES;
    return looks == LOOKS_BYTES ? look_of_text(bytes, len) : looks;
}

/* ---- features ---- */

static void stretch(uint64_t *least, uint64_t *most, uint64_t v, bool is_first)
{
    *least = is_first ? v : min_u64(*least, v);
    *most = is_first ? v : max_u64(*most, v);
}

void feature_learn(struct learned_column *column, const struct example_feature *f,
                   const uint8_t *message)
{
    uint64_t *number = column->number;
    bool is_first = !number[FEATURE_RECORDS]++;

    number[FEATURE_KINDS + f->type]++;
    stretch(&number[FEATURE_LEAST], &number[FEATURE_MOST], f->count, is_first);
    stretch(&number[FEATURE_LEAST_STEPS], &number[FEATURE_MOST_STEPS], f->steps, is_first);
    if (f->type == EXAMPLE_BYTES && !f->is_list && f->plain != EXAMPLE_NOT_PLAIN)
        number[FEATURE_LOOKS] =
            looks_of((enum looks)number[FEATURE_LOOKS], message + f->plain, f->bytes);
}

enum example_kind feature_kind_of(const struct learned_column *column)
{
    const uint64_t *records = column->number + FEATURE_KINDS;
    enum example_kind most = EXAMPLE_NONE;

    for (enum example_kind type = EXAMPLE_BYTES; type <= EXAMPLE_MIXED; type++)
        if (records[type] && (most == EXAMPLE_NONE || records[type] > records[most]))
            most = type;
    return most;
}

/* ---- columns ---- */

#define COLUMNS_OF_FEATURE 3 /* at most: values, sizes or lines, steps */

static bool tfrecord_learned_is_taken(const struct shown *shown, const char *name)
{
    for (unsigned i = 0; i < shown->n; i++)
        if (!strcmp(name, shown->name[i]))
            return true;
    return !strcmp(name, "record");
}

/* The name of a feature, and '_' as often as it takes to be no other's. */
static void tfrecord_learned_make_name(const struct shown *shown,
                                       const struct learned_column *feature, const char *suffix,
                                       char ret[static SHOWN_NAME_SIZE])
{
    char name[SHOWN_NAME_SIZE];

    for (unsigned more = 0; more < 16; more++) {
        record_name(feature->name + 1, feature->len - 1, RECORD_NAME_MAX - strlen(suffix) - more,
                    name);
        snprintf(ret, SHOWN_NAME_SIZE, "%s%s%.*s", name, suffix, (int)more, "________________");
        if (!tfrecord_learned_is_taken(shown, ret))
            return;
    }
}

static struct record_column *tfrecord_learned_add_column(struct shown *shown, const char *name,
                                                         struct shown_column what)
{
    struct record_column *column = &shown->column[shown->n];

    snprintf(shown->name[shown->n], SHOWN_NAME_SIZE, "%s", name);
    *column = (struct record_column){.name = shown->name[shown->n], .ndim = 1};
    shown->what[shown->n++] = what;
    return column;
}

static void tfrecord_learned_add_numbers(struct shown *shown, const char *name,
                                         struct shown_column what, enum dtype dtype, uint64_t least,
                                         uint64_t most)
{
    struct record_column *column = tfrecord_learned_add_column(shown, name, what);

    column->shown = RECORD_NUMBERS;
    column->dtype = dtype;
    column->dim[0] = least == most && least ? least : DIM_VARIES;
}

/* Byte strings, one after another where a record has several. */
static void add_strings(struct shown *shown, const char *name, struct shown_column what,
                        enum looks looks)
{
    static const char *const ext[N_LOOKS] = {"bin", "txt",  "txt", "jpg", "png",
                                             "gif", "webp", "wav", "bin"};
    struct record_column *column = tfrecord_learned_add_column(shown, name, what);

    column->shown = RECORD_BYTES;
    column->ext = ext[looks];
    if (looks != LOOKS_LINE)
        return;
    column = tfrecord_learned_add_column(shown, name, what);
    column->shown = RECORD_TEXT;
    column->without = RECORD_NOT_TAR | RECORD_NOT_ARRAYS;
}

static void tfrecord_learned_add_feature(struct shown *shown, const struct learned_column *feature,
                                         unsigned i, uint64_t records)
{
    const uint64_t *number = feature->number;
    bool is_list = feature->name[0] == FEATURE_OF_LISTS;
    enum example_kind type = feature_kind_of(feature);
    struct shown_column what = {.feature = i, .type = type, .part = EXAMPLE_VALUES};
    uint64_t least = number[FEATURE_LEAST], most = number[FEATURE_MOST];
    char name[SHOWN_NAME_SIZE];
    unsigned first = shown->n;

    tfrecord_learned_make_name(shown, feature, "", name);
    if (type == EXAMPLE_BYTES)
        add_strings(shown, name, what,
                    is_list || most > 1 ? LOOKS_BYTES : (enum looks)number[FEATURE_LOOKS]);
    else
        tfrecord_learned_add_numbers(shown, name, what,
                                     type == EXAMPLE_FLOATS ? DTYPE_F4 : DTYPE_I8, least, most);
    if (type != EXAMPLE_BYTES && !is_list && least == 1 && most == 1)
        shown->column[first].ndim = 0;
    if (type == EXAMPLE_BYTES && (is_list || most > 1)) {
        what.part = EXAMPLE_SIZES;
        tfrecord_learned_make_name(shown, feature, "_sizes", name);
        tfrecord_learned_add_numbers(shown, name, what, DTYPE_I8, least, most);
    }
    if (is_list) {
        what.part = EXAMPLE_STEPS;
        tfrecord_learned_make_name(shown, feature, "_steps", name);
        tfrecord_learned_add_numbers(shown, name, what, DTYPE_I8, number[FEATURE_LEAST_STEPS],
                                     number[FEATURE_MOST_STEPS]);
    }
    for (unsigned j = first; j < shown->n; j++)
        shown->column[j].has_holes = number[FEATURE_RECORDS] < records;
}

static int tfrecord_learned_by_name(const void *a, const void *b)
{
    const struct learned_column *x = *(const struct learned_column *const *)a,
                                *y = *(const struct learned_column *const *)b;
    int r = memcmp(x->name + 1, y->name + 1, min_u64(x->len, y->len) - 1);

    return r                  ? r
           : x->len != y->len ? (x->len > y->len) - (x->len < y->len)
                              : x->name[0] - y->name[0];
}

/* The bytes of records have files of their own; beside features, arrays would say all twice. */
static void tfrecord_learned_add_record(struct shown *shown, bool has_arrays)
{
    for (unsigned i = 0; i < (has_arrays ? 2u : 1u); i++) {
        struct record_column *column =
            tfrecord_learned_add_column(shown, "record", (struct shown_column){.is_record = true});

        column->shown = RECORD_BYTES;
        column->ext = "record";
        column->unnamed = true;
        column->without = i ? RECORD_NOT_RAW : RECORD_NOT_TAR | RECORD_NOT_ARRAYS;
    }
}

int shown_make(struct shown *ret, const struct column_table *features, uint64_t rows,
               uint64_t records, bool only_record)
{
    size_t most = 2 + (size_t)features->n * COLUMNS_OF_FEATURE;
    AUTO_FREE const struct learned_column **sorted = calloc(most, sizeof(struct learned_column *));
    bool has_features = false;

    *ret = (struct shown){.column = calloc(most, sizeof(*ret->column)),
                          .what = calloc(most, sizeof(*ret->what)),
                          .name = calloc(most, sizeof(*ret->name))};
    if (!sorted || !ret->column || !ret->what || !ret->name) {
        shown_release(ret);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < features->n; i++)
        sorted[i] = &features->column[i];
    qsort(sorted, features->n, sizeof(struct learned_column *), tfrecord_learned_by_name);
    for (unsigned i = 0; i < features->n && !only_record; i++) {
        enum example_kind type = feature_kind_of(sorted[i]);

        if (type == EXAMPLE_MIXED || sorted[i]->number[FEATURE_OUT]) {
            ret->hidden++;
        } else if (type != EXAMPLE_NONE) {
            tfrecord_learned_add_feature(ret, sorted[i], (unsigned)(sorted[i] - features->column),
                                         records);
            has_features = true;
        }
    }
    tfrecord_learned_add_record(ret, rows && !has_features);
    return 0;
}

void shown_release(struct shown *shown)
{
    free(shown->column);
    free(shown->what);
    free(shown->name);
    *shown = (struct shown){0};
}
