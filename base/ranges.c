#include "base/ranges.h"

#include <stdbool.h>

#include "base/checked.h"

/* An empty range overlaps nothing, so it reaches nowhere. */
static uint64_t own_reach(const struct range *range)
{
    return range->first < range->end ? range->end : 0;
}

static void update(struct range *range)
{
    range->reach = own_reach(range);
    if (range->left)
        range->reach = max_u64(range->reach, range->left->reach);
    if (range->right)
        range->reach = max_u64(range->reach, range->right->reach);
}

/* The pointer that refers to a range from above. */
static struct range **ranges_place_of(struct ranges *ranges, const struct range *range)
{
    struct range *parent = range->parent;

    if (!parent)
        return &ranges->root;
    return parent->left == range ? &parent->left : &parent->right;
}

/* The child takes the place of its parent; the parent becomes a child of it. */
static void rotate_up(struct ranges *ranges, struct range *child)
{
    struct range *parent = child->parent, *between;

    *ranges_place_of(ranges, parent) = child;
    child->parent = parent->parent;
    if (parent->left == child) {
        between = child->right;
        child->right = parent;
        parent->left = between;
    } else {
        between = child->left;
        child->left = parent;
        parent->right = between;
    }
    if (between)
        between->parent = parent;
    parent->parent = child;
    update(parent);
    update(child);
    ranges->steps++;
}

static uint32_t next_weight(struct ranges *ranges)
{
    uint64_t x = ranges->weights += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)((x ^ x >> 27) >> 32);
}

void ranges_add(struct ranges *ranges, struct range *range)
{
    struct range **at = &ranges->root, *parent = NULL;

    while (*at) {
        parent = *at;
        parent->reach = max_u64(parent->reach, own_reach(range));
        at = range->first < parent->first ? &parent->left : &parent->right;
        ranges->steps++;
    }
    *at = range;
    range->parent = parent;
    range->left = range->right = NULL;
    range->reach = own_reach(range);
    range->weight = next_weight(ranges);
    ranges->n++;
    while (range->parent && range->parent->weight < range->weight)
        rotate_up(ranges, range);
}

void ranges_remove(struct ranges *ranges, struct range *range)
{
    struct range *above;

    while (range->left && range->right)
        rotate_up(ranges, range->left->weight > range->right->weight ? range->left : range->right);
    above = range->parent;
    *ranges_place_of(ranges, range) = range->left ? range->left : range->right;
    if (range->left)
        range->left->parent = above;
    if (range->right)
        range->right->parent = above;
    for (; above; above = above->parent, ranges->steps++)
        update(above);
    range->left = range->right = range->parent = NULL;
    ranges->n--;
}

void ranges_move(struct ranges *ranges, struct range *range, uint64_t first, uint64_t end)
{
    ranges_remove(ranges, range);
    range->first = first;
    range->end = end;
    ranges_add(ranges, range);
}

static bool overlaps(const struct range *range, uint64_t first, uint64_t end)
{
    return range->first < end && first < range->end && range->first < range->end;
}

/* The first of a subtree that overlaps. If some range on the left reaches beyond `first`, then one
 * there overlaps, or all on the right begin at or after `end`: so only one side must be searched.
 */
static struct range *first_below(struct ranges *ranges, struct range *at, uint64_t first,
                                 uint64_t end)
{
    while (at && at->reach > first) {
        ranges->steps++;
        if (at->left && at->left->reach > first)
            at = at->left;
        else if (overlaps(at, first, end))
            return at;
        else
            at = at->first < end ? at->right : NULL;
    }
    return NULL;
}

struct range *ranges_first(struct ranges *ranges, uint64_t first, uint64_t end)
{
    return first < end ? first_below(ranges, ranges->root, first, end) : NULL;
}

struct range *ranges_next(struct ranges *ranges, const struct range *range, uint64_t first,
                          uint64_t end)
{
    struct range *found = first_below(ranges, range->right, first, end);

    for (struct range *above = range->parent; above && !found; above = above->parent) {
        ranges->steps++;
        if (above->left == range) { /* it comes after the searched part */
            if (above->first >= end)
                return NULL;
            found =
                overlaps(above, first, end) ? above : first_below(ranges, above->right, first, end);
        }
        range = above;
    }
    return found;
}

struct range *ranges_least(struct ranges *ranges)
{
    struct range *at = ranges->root;

    while (at && at->left) {
        at = at->left;
        ranges->steps++;
    }
    return at;
}
