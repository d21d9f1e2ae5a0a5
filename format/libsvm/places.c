/* All columns rise. Text is not stored: it is what precedes the start of a row, without the gaps.
 * So where no comments are between rows, only the starts and the features take space. */
#include "format/libsvm/places.h"

/* Of a row: its first byte; gaps, features and left-out lines before it. */
enum { COLUMN_START, COLUMN_GAP, COLUMN_FEATURES, COLUMN_LEFT_OUT, N_COLUMNS };

const struct index_shape places_shape = {
    .columns = N_COLUMNS,
    .rising = (1 << N_COLUMNS) - 1,
};

int places_add(struct places *places, struct index_builder *b, const struct row_place *place,
               uint64_t lines)
{
    uint64_t number[N_COLUMNS];
    int r;

    places->gap += place->start - places->end;
    places->left_out = lines - places->rows;
    number[COLUMN_START] = place->start;
    number[COLUMN_GAP] = places->gap;
    number[COLUMN_FEATURES] = places->features;
    number[COLUMN_LEFT_OUT] = places->left_out;
    r = index_add(b, NULL, 0, number);
    places->end = place->start + place->len + 1;
    places->features += place->features;
    places->rows++;
    return r;
}

void places_end(const struct places *places, uint64_t ret[static INDEX_COLUMNS])
{
    ret[COLUMN_START] = places->end;
    ret[COLUMN_GAP] = places->gap;
    ret[COLUMN_FEATURES] = places->features;
    ret[COLUMN_LEFT_OUT] = places->left_out;
}

static struct row_sums sums_of(const uint64_t number[static N_COLUMNS])
{
    return (struct row_sums){
        .text = number[COLUMN_START] - number[COLUMN_GAP],
        .features = number[COLUMN_FEATURES],
    };
}

bool places_fit(const struct index *index, uint64_t size)
{
    uint64_t number[N_COLUMNS];
    struct row_sums last = {0}, sums;

    if (index->shape.columns != N_COLUMNS || index->shape.rising != places_shape.rising)
        return false;
    for (uint64_t row = 0; row <= index->rows; row++) {
        index_row(index, row, number);
        if (number[COLUMN_GAP] > number[COLUMN_START])
            return false;
        sums = sums_of(number);
        if (row ? sums.text <= last.text : sums.text || sums.features)
            return false;
        last = sums;
    }
    return number[COLUMN_START] <= size + 1 && last.features <= last.text;
}

struct row_place places_row(const struct index *index, uint64_t row)
{
    uint64_t number[N_COLUMNS], next[N_COLUMNS];
    struct row_sums before, after;

    index_row(index, row, number);
    index_row(index, row + 1, next);
    before = sums_of(number);
    after = sums_of(next);
    return (struct row_place){
        .start = number[COLUMN_START],
        .len = after.text - before.text - 1,
        .features = after.features - before.features,
    };
}

uint64_t places_lines(const struct index *index, uint64_t row)
{
    return row + index_number(index, row, COLUMN_LEFT_OUT);
}

struct row_sums places_sums(const struct index *index, uint64_t row)
{
    uint64_t number[N_COLUMNS];

    index_row(index, row, number);
    return sums_of(number);
}

uint64_t places_before(const struct index *index, uint64_t offset)
{
    return offset ? index_first_above(index, COLUMN_START, offset - 1) : 0;
}
