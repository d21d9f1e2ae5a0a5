/* One reader's place: it goes on, it jumps, it turns out to be two. */
#include "fs/drive/reader.h"

#include "base/checked.h"

#define SURE_GAP 8 /* units that a reader of samples may omit before it is known */

/* The reader is at that unit, and what it read before tells nothing any more. */
static void reader_place(struct reader *reader, uint64_t unit)
{
    reader->from = unit < READER_SLACK ? 0 : unit;
    reader->at = unit;
    reader->in_sequence = 1;
    reader->is_stray = false;
    reader->came = reader->ended = 0;
}

void reader_start(struct reader *reader, bool reads_samples, uint64_t unit)
{
    *reader = (struct reader){.reads_samples = reads_samples, .ghost = UINT64_MAX};
    reader_place(reader, unit);
}

bool reader_is_close(uint64_t at, uint64_t until, uint64_t unit)
{
    return unit + READER_SLACK >= at && unit <= max_u64(at, until) + READER_SLACK;
}

bool reader_is_sure(const struct reader *reader)
{
    return !reader->reads_samples || reader->in_sequence >= READER_SURE;
}

bool reader_is_jump(const struct reader *reader, uint64_t until, uint64_t unit)
{
    if (!reader_is_sure(reader))
        return unit < reader->at || unit > reader->at + SURE_GAP;
    return !reader_is_close(reader->at, until, unit);
}

bool reader_is_live(const struct reader *reader)
{
    return !reader->is_stray && reader_is_sure(reader);
}

bool reader_splits(struct reader *reader, uint64_t unit)
{
    if (reader_is_sure(reader)) {
        if (reader->ghost != UINT64_MAX && reader_is_close(reader->ghost, reader->ghost, unit)) {
            reader->ghost = UINT64_MAX;
            reader->is_stray = reader->in_sequence == 1;
            return true;
        }
        reader->ghost = reader->at;
    }
    reader->jumps++;
    reader_place(reader, unit);
    return false;
}

void reader_moves(struct reader *reader, uint64_t unit)
{
    reader->at = unit;
    reader->is_stray = false;
    reader->in_sequence += reader->in_sequence < READER_SURE;
}

void reader_comes(struct reader *reader, unsigned column)
{
    reader->came |= UINT64_C(1) << column;
}

void reader_ends(struct reader *reader, unsigned column)
{
    reader->ended |= UINT64_C(1) << column;
}

bool reader_is_over(const struct reader *reader)
{
    return reader->came && (reader->ended & reader->came) == reader->came;
}
