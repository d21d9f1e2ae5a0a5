/* Units that are being read bit by bit. */
#include "fs/drive/open_units.h"

#include <string.h>

#include "base/checked.h"
#include "fs/drive/reader.h"

/* Is it open, or was some of it returned to the reader? */
static bool open_units_is_known(const struct open_units *open, uint64_t unit)
{
    const struct open_unit *o = &open->at[unit % OPEN_UNITS_MAX];

    return o->unit == unit && (o->is_open || o->was_open);
}

bool open_units_has(const struct open_units *open, uint64_t unit)
{
    const struct open_unit *o = &open->at[unit % OPEN_UNITS_MAX];

    return o->unit == unit && o->is_open;
}

void open_units_reach(struct open_units *open, uint64_t from, uint64_t unit)
{
    for (uint64_t u = max_u64(from, unit - min_u64(unit, READER_SLACK)); u <= unit; u++)
        if (u == unit || !open_units_is_known(open, u))
            open->at[u % OPEN_UNITS_MAX] = (struct open_unit){.is_open = true, .unit = u};
}

void open_units_start(struct open_units *open, uint64_t unit)
{
    memset(open, 0, sizeof(*open));
    open_units_reach(open, unit < READER_SLACK ? 0 : unit, unit);
}

bool open_units_given(struct open_units *open, uint64_t unit, unsigned column, uint64_t columns,
                      uint64_t bytes, uint64_t size)
{
    const uint64_t bit = UINT64_C(1) << column;
    struct open_unit *o = &open->at[unit % OPEN_UNITS_MAX];

    if (!open_units_has(open, unit))
        return false;
    if (size != UINT64_MAX && !(o->columns & bit)) {
        o->columns |= bit;
        o->bytes += size;
    }
    o->returned += bytes;
    o->is_open = (o->columns & columns) != columns || o->returned < o->bytes;
    o->was_open = true;
    return !o->is_open;
}

void open_units_stored(struct open_units *open, uint64_t unit)
{
    if (open_units_has(open, unit))
        open->at[unit % OPEN_UNITS_MAX].is_open = false;
}

void open_units_back(struct open_units *open, uint64_t unit)
{
    open->reported = min_u64(open->reported, unit);
}

uint64_t open_units_oldest(const struct open_units *open, uint64_t front)
{
    uint64_t first = front;

    for (unsigned i = 0; i < OPEN_UNITS_MAX; i++) {
        const struct open_unit *o = &open->at[i];

        if (o->is_open && o->unit + READER_SLACK > front)
            first = min_u64(first, o->unit);
    }
    return first;
}

uint64_t open_units_first(struct open_units *open, uint64_t front)
{
    open->reported = max_u64(open->reported, open_units_oldest(open, front));
    return open->reported;
}
