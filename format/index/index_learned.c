/* Columns that an index learns while it is made. Each entry of the directory of groups has slots
 * for more columns than there are, so that it is seldom written again: their number doubles. In the
 * end the columns that are constant in all rows lose their slots, so that a file may have very many
 * columns of which each group has few. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/index/index_builder.h"

/* Copy an entry of a group whose columns [0, columns) are at their slots. */
static void copy_entry(const struct index_builder *b, const uint8_t *from, unsigned columns,
                       unsigned slots, uint8_t *to)
{
    memcpy(to, from, AT_WIDTHS + columns);
    memcpy(to + at_least(slots, 0), from + at_least(b->slots, 0), 8u * columns);
    memcpy(to + at_keys(slots), from + at_keys(b->slots),
           group_bytes(slots, b->shape.has_keys) - at_keys(slots));
}

/* Make entries with that many slots. */
static int widen(struct index_builder *b, unsigned slots)
{
    size_t entry = group_bytes(b->slots, b->shape.has_keys);
    size_t wider = group_bytes(slots, b->shape.has_keys), n = b->part[GROUPS].len / entry;
    struct memory groups = {.len = n * wider, .capacity = (n + n / 2 + 8) * wider};
    uint64_t(*number)[GROUP_ROWS] = realloc(b->number, slots * sizeof(*number));

    if (!number)
        return -ENOMEM;
    b->number = number;
    groups.bytes = calloc(1, groups.capacity);
    if (!groups.bytes)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        copy_entry(b, b->part[GROUPS].bytes + i * entry, b->shape.columns, slots,
                   groups.bytes + i * wider);
    free(b->part[GROUPS].bytes);
    b->part[GROUPS] = groups;
    b->slots = slots;
    return 0;
}

int index_builder_columns(struct index_builder *b, unsigned columns)
{
    unsigned before = b->shape.columns;
    int r = 0;

    assert(b->shape.learns && columns >= before && columns <= INDEX_LEARNED);
    if (columns > b->slots)
        r = widen(b, columns > 2 * b->slots ? columns : 2 * b->slots);
    if (r < 0)
        return r;
    memset(b->number[before], 0, (columns - before) * sizeof(b->number[0]));
    b->shape.columns = columns;
    return 0;
}

/* Is the learned column constant in all rows? */
static bool is_constant(const struct index_builder *b, unsigned column)
{
    const uint8_t *group = b->part[GROUPS].bytes, *least = group + at_least(b->slots, column);
    size_t entry = group_bytes(b->slots, b->shape.has_keys);
    uint64_t first = load_le64(least);

    for (uint64_t i = n_groups(b->rows); i > 0; i--, group += entry)
        if (group[AT_WIDTHS + column] || load_le64(group + at_least(b->slots, column)) != first)
            return false;
    return true;
}

/* Write the learned columns. Returns the slots that there are now. */
static unsigned assign_slots(struct index_builder *b)
{
    unsigned slots = b->fixed;

    for (unsigned column = b->fixed; column < b->shape.columns; column++) {
        uint8_t *learned = b->learned + (size_t)(column - b->fixed) * LEARNED_BYTES;
        const uint8_t *group = b->part[GROUPS].bytes;

        store_le16(learned + AT_SLOT, is_constant(b, column) ? NO_SLOT : (uint16_t)slots++);
        store_le64(learned + AT_CONSTANT, load_le64(group + at_least(b->slots, column)));
    }
    return slots;
}

/* Move the columns of an entry that have slots to them. */
static void close_up(const struct index_builder *b, uint8_t *entry)
{
    unsigned slot = b->fixed;

    for (unsigned column = b->fixed; column < b->shape.columns; column++) {
        if (load_le16(b->learned + (size_t)(column - b->fixed) * LEARNED_BYTES) == NO_SLOT)
            continue;
        entry[AT_WIDTHS + slot] = entry[AT_WIDTHS + column];
        memmove(entry + at_least(b->slots, slot++), entry + at_least(b->slots, column), 8);
    }
}

int index_learned_pack(struct index_builder *b)
{
    size_t entry = group_bytes(b->slots, b->shape.has_keys), n = b->part[GROUPS].len / entry;
    uint8_t *bytes = b->part[GROUPS].bytes;
    AUTO_FREE uint8_t *copy = malloc(entry);
    unsigned slots;

    b->learned = malloc((b->shape.columns - b->fixed) * LEARNED_BYTES + 1u);
    if (!copy || !b->learned)
        return -ENOMEM;
    slots = assign_slots(b);
    for (size_t i = 0; i < n; i++) {
        memcpy(copy, bytes + i * entry, entry);
        close_up(b, copy);
        copy_entry(b, copy, slots, slots, bytes + i * group_bytes(slots, b->shape.has_keys));
    }
    b->part[GROUPS].len = n * group_bytes(slots, b->shape.has_keys);
    b->slots = slots;
    return 0;
}
