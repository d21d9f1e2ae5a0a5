/* What a pass learns of the features of a file, and the columns that follow from it. */
#ifndef EPOCHFS_FORMAT_TFRECORD_EXAMPLE_LEARNED_H
#define EPOCHFS_FORMAT_TFRECORD_EXAMPLE_LEARNED_H

#include "format/records/column_table.h"
#include "format/records/record_set.h"
#include "format/tfrecord/example/example.h"

/* The numbers of a feature in the column table, whose names begin with one of these: context and
 * lists may have features of the same name. */
#define FEATURE_OF_CONTEXT 'c'
#define FEATURE_OF_LISTS   'l'
enum {
    FEATURE_COUNT, /* columns of the index: the values and their kind, see feature_number(); */
    FEATURE_BYTES, /* of byte strings: their bytes; 0: none has any */
    FEATURE_STEPS, /* of lists; 0: none has any */
    FEATURE_RECORDS,
    FEATURE_KINDS, /* records with each kind: [FEATURE_LEAST - FEATURE_KINDS] */
    FEATURE_LEAST = FEATURE_KINDS + EXAMPLE_MIXED + 1, /* values of a record, */
    FEATURE_MOST,
    FEATURE_LEAST_STEPS, /* and steps */
    FEATURE_MOST_STEPS,
    FEATURE_LOOKS, /* enum looks, of single byte strings */
    FEATURE_OUT,   /* 1: the index has no column for it */
};

/* A number of the index: 0 is a record without the feature. */
static inline uint64_t feature_number(uint64_t count, enum feature_kind type)
{
    return 1 + (count << 3 | type);
}

static inline enum feature_kind feature_kind(uint64_t number)
{
    return (enum feature_kind)((number - 1) & 7);
}

static inline uint64_t feature_count(uint64_t number)
{
    return (number - 1) >> 3;
}

/* What byte strings look like. */
enum looks {
    LOOKS_UNKNOWN, /* all are empty */
    LOOKS_LINE,    /* text without a line feed */
    LOOKS_TEXT,
    LOOKS_JPEG,
    LOOKS_PNG,
    LOOKS_GIF,
    LOOKS_WEBP,
    LOOKS_WAVE,
    LOOKS_BYTES,
    N_LOOKS,
};

/* What strings look like that look so until now, and this one. */
enum looks looks_of(enum looks before, const uint8_t *bytes, uint64_t len);

/* Count a feature of a record, whose number it becomes. */
void feature_learn(struct learned_column *column, const struct example_feature *f,
                   const uint8_t *message);

/* The kind that most records have; EXAMPLE_NONE: none has values. */
enum feature_kind feature_kind_of(const struct learned_column *column);

/* What a column shows is enum example_part, or the record itself. */
enum { EXAMPLE_RECORD = EXAMPLE_STEPS + 1 };

/* Add the columns of a file whose index is ready. records: those that a feature without holes is
 * in; only_record: records are no examples. *ret_hidden: features that have values, but no column.
 * 0 or -ENOMEM. */
int features_show(struct record_file *file, const struct column_table *features, uint64_t records,
                  bool only_record, unsigned *ret_hidden);

#endif
