#include "format/tfrecord/example/learned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/picture/magic.h"

/* ---- what byte strings look like ---- */

/* Kinds that have no looks of their own start with bytes that text may start with. */
static enum looks look_of_magic(const uint8_t *bytes, uint64_t len)
{
    static const enum looks looks[N_PICTURE_FORMATS] = {
        [PICTURE_NONE] = LOOKS_BYTES, [PICTURE_JPEG] = LOOKS_JPEG, [PICTURE_PNG] = LOOKS_PNG,
        [PICTURE_GIF] = LOOKS_GIF,    [PICTURE_BMP] = LOOKS_BYTES, [PICTURE_WEBP] = LOOKS_WEBP,
        [PICTURE_TIFF] = LOOKS_BYTES,
    };

    if (len >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WAVE", 4))
        return LOOKS_WAVE;
    return looks[picture_format_of(bytes, len)];
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

enum feature_kind feature_kind_of(const struct learned_column *column)
{
    const uint64_t *records = column->number + FEATURE_KINDS;
    enum feature_kind most = EXAMPLE_NONE;

    for (enum feature_kind type = EXAMPLE_BYTES; type <= EXAMPLE_MIXED; type++)
        if (records[type] && (most == EXAMPLE_NONE || records[type] > records[most]))
            most = type;
    return most;
}

/* ---- columns ---- */

static bool features_is_taken(const struct record_file *file, const char *name)
{
    for (unsigned i = 0; i < file->n_columns; i++)
        if (!strcmp(name, file->column[i].name))
            return true;
    return !strcmp(name, "record");
}

/* The name of a feature, and '_' as often as it takes to be no other's. */
static void features_make_name(const struct record_file *file, const struct learned_column *feature,
                               const char *suffix, char ret[static RECORD_NAME_MAX + 1])
{
    char name[RECORD_NAME_MAX + 1];

    for (unsigned more = 0; more < 16; more++) {
        record_name(feature->name + 1, feature->len - 1, RECORD_NAME_MAX - strlen(suffix) - more,
                    name);
        snprintf(ret, RECORD_NAME_MAX + 1, "%s%s%.*s", name, suffix, (int)more, "________________");
        if (!features_is_taken(file, ret))
            return;
    }
}

/* Numbers of a feature, from least to most in a record. */
static int features_add_numbers(struct record_file *file, const struct learned_column *feature,
                                struct record_column *column, const char *suffix, unsigned least)
{
    uint64_t few = feature->number[least], most = feature->number[least + 1];
    char name[RECORD_NAME_MAX + 1];

    features_make_name(file, feature, suffix, name);
    column->name = name;
    column->ndim = 1;
    column->dim[0] = few == most && few ? few : DIM_VARIES;
    if (column->part == EXAMPLE_VALUES && feature->name[0] != FEATURE_OF_LISTS && few == 1 &&
        most == 1)
        column->ndim = 0;
    return record_file_add(file, column);
}

/* Byte strings, one after another where a record has several. */
static int features_add_strings(struct record_file *file, const struct learned_column *feature,
                                struct record_column column, bool has_several)
{
    static const char *const ext[N_LOOKS] = {"bin", "txt",  "txt", "jpg", "png",
                                             "gif", "webp", "wav", "bin"};
    enum looks looks = has_several ? LOOKS_BYTES : (enum looks)feature->number[FEATURE_LOOKS];
    char name[RECORD_NAME_MAX + 1];
    int r;

    features_make_name(file, feature, "", name);
    column.name = name;
    column.shown = RECORD_BYTES;
    column.ext = ext[looks];
    r = record_file_add(file, &column);
    if (r < 0 || looks != LOOKS_LINE)
        return r;
    column.shown = RECORD_TEXT;
    column.ext = NULL;
    column.without = RECORD_NOT_TAR | RECORD_NOT_ARRAYS;
    return record_file_add(file, &column);
}

static int features_add(struct record_file *file, const struct learned_column *feature, unsigned i,
                        bool has_holes)
{
    bool is_list = feature->name[0] == FEATURE_OF_LISTS;
    bool has_several = is_list || feature->number[FEATURE_MOST] > 1;
    enum feature_kind type = feature_kind_of(feature);
    struct record_column column = {.field = i, .part = EXAMPLE_VALUES, .has_holes = has_holes};
    int r;

    column.dtype = type == EXAMPLE_FLOATS ? DTYPE_F4 : DTYPE_I8;
    r = type == EXAMPLE_BYTES ? features_add_strings(file, feature, column, has_several)
                              : features_add_numbers(file, feature, &column, "", FEATURE_LEAST);
    column.dtype = DTYPE_I8;
    column.part = EXAMPLE_SIZES;
    if (r == 0 && type == EXAMPLE_BYTES && has_several)
        r = features_add_numbers(file, feature, &column, "_sizes", FEATURE_LEAST);
    column.part = EXAMPLE_STEPS;
    if (r == 0 && is_list)
        r = features_add_numbers(file, feature, &column, "_steps", FEATURE_LEAST_STEPS);
    return r;
}

static int features_by_name(const void *a, const void *b)
{
    const struct learned_column *x = *(const struct learned_column *const *)a,
                                *y = *(const struct learned_column *const *)b;
    int r = memcmp(x->name + 1, y->name + 1, min_u64(x->len, y->len) - 1);

    return r                  ? r
           : x->len != y->len ? (x->len > y->len) - (x->len < y->len)
                              : x->name[0] - y->name[0];
}

/* The bytes of records have files of their own; next to features, arrays would say all twice. */
static int features_add_record(struct record_file *file, bool has_arrays)
{
    struct record_column column = {.name = "record",
                                   .shown = RECORD_BYTES,
                                   .ext = "record",
                                   .unnamed = true,
                                   .without = RECORD_NOT_TAR | RECORD_NOT_ARRAYS,
                                   .part = EXAMPLE_RECORD};
    int r = record_file_add(file, &column);

    column.without = RECORD_NOT_RAW;
    return r == 0 && has_arrays ? record_file_add(file, &column) : r;
}

int features_show(struct record_file *file, const struct column_table *features, uint64_t records,
                  bool only_record, unsigned *ret_hidden)
{
    AUTO_FREE const struct learned_column **sorted =
        calloc(features->n + 1u, sizeof(struct learned_column *));
    int r = sorted ? 0 : -ENOMEM;

    *ret_hidden = 0;
    for (unsigned i = 0; i < features->n && sorted; i++)
        sorted[i] = &features->column[i];
    if (sorted)
        qsort(sorted, features->n, sizeof(struct learned_column *), features_by_name);
    for (unsigned i = 0; i < features->n && !only_record && r == 0; i++) {
        const struct learned_column *feature = sorted[i];
        enum feature_kind type = feature_kind_of(feature);

        if (type == EXAMPLE_MIXED || feature->number[FEATURE_OUT])
            ++*ret_hidden;
        else if (type != EXAMPLE_NONE)
            r = features_add(file, feature, (unsigned)(feature - features->column),
                             feature->number[FEATURE_RECORDS] < records);
    }
    return r < 0 ? r : features_add_record(file, file->prepared.index.rows && !file->n_columns);
}
