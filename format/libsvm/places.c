/* All columns rise. Text is not stored: it is what precedes the start of a row, without the gaps.
 * So where no comments are between rows, only the starts and the features take space. */
#include "format/libsvm/places.h"

#include <string.h>

/* For a row: its first byte; gaps, features and left-out lines before it; the number of its run. */
enum { COLUMN_START, COLUMN_GAP, COLUMN_FEATURES, COLUMN_LEFT_OUT, COLUMN_RUN };

int places_add(struct places *places, struct index_builder *b, const struct row_place *place,
               uint64_t lines, int64_t qid)
{
    int r;

    if (qid != PLACES_NO_QID && (!places->runs || qid != places->qid)) {
        places->number[COLUMN_RUN] = places->runs++;
        places->qid = qid;
    }

    places->number[COLUMN_START] = place->start;
    places->number[COLUMN_GAP] += place->start - places->end;
    places->number[COLUMN_LEFT_OUT] = lines - places->rows;
    r = index_add(b, NULL, 0, places->number);
    places->number[COLUMN_FEATURES] += place->features;
    places->end = place->start + place->len + 1;
    places->rows++;
    return r;
}

void places_end(const struct places *places, uint64_t ret[static INDEX_COLUMNS])
{
    memcpy(ret, places->number, sizeof(places->number));
    ret[COLUMN_START] = places->end;
    ret[COLUMN_RUN] = places->runs;
}

static struct row_sums sums_of(const uint64_t number[static PLACES_COLUMNS])
{
    return (struct row_sums){
        .text = number[COLUMN_START] - number[COLUMN_GAP],
        .features = number[COLUMN_FEATURES],
    };
}

bool places_fit(const struct index *index, uint64_t size)
{
    const struct index_shape shape = PLACES_SHAPE;
    uint64_t start[INDEX_GROUP], gap[INDEX_GROUP], text = 0, end = 0;
    unsigned n;

    if (index->shape.columns != shape.columns || index->shape.rising != shape.rising ||
        index_number(index, 0, COLUMN_FEATURES) != 0)
        return false;
    for (uint64_t row = 0; row <= index->rows; row += n) {
        n = index_numbers(index, row, COLUMN_START, start);
        index_numbers(index, row, COLUMN_GAP, gap);
        for (unsigned i = 0; i < n; i++) {
            uint64_t before = text;

            text = start[i] - gap[i];
            if (gap[i] > start[i] || (row + i ? text <= before : text))
                return false;
        }
        end = start[n - 1];
    }
    return end <= size + 1 && index_number(index, index->rows, COLUMN_FEATURES) <= text;
}

struct row_place places_row(const struct index *index, uint64_t row)
{
    uint64_t number[PLACES_COLUMNS], next[PLACES_COLUMNS];
    struct row_sums before, after;

    index_row_pair(index, row, COLUMN_FEATURES + 1, number, next);
    before = sums_of(number);
    after = sums_of(next);
    return (struct row_place){
        .start = number[COLUMN_START],
        .len = after.text - before.text - 1,
        .features = after.features - before.features,
    };
}

uint64_t places_run(const struct index *index, uint64_t row)
{
    return index_number(index, row, COLUMN_RUN);
}

uint64_t places_lines(const struct index *index, uint64_t row)
{
    return row + index_number(index, row, COLUMN_LEFT_OUT);
}

struct row_sums places_sums(const struct index *index, uint64_t row)
{
    uint64_t number[PLACES_COLUMNS];

    index_row_start(index, row, COLUMN_FEATURES + 1, number);
    return sums_of(number);
}

uint64_t places_before(const struct index *index, uint64_t offset)
{
    return offset ? index_first_above(index, COLUMN_START, offset - 1) : 0;
}
