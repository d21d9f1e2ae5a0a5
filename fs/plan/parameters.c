/* The parameters of plans: how each is read and written. What they do is in fs/plan/schedule.c. */
#include "fs/plan/parameters.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"
#include "fs/plan/parameters_parts.h"

#define PLAN_PICTURE_MOST 4096 /* PICTURE_SIDE_MAX */

/* A number, or one from 0 to 100 and %. Returns the characters used; 0: it is none. */
static size_t parse_place(const char *s, size_t len, struct plan_place *ret)
{
    size_t used = number_parse(s, len, PLAN_NUMBER_MAX, &ret->n);

    ret->is_percent = used && used < len && s[used] == '%';
    return ret->is_percent && ret->n > 100 ? 0 : used + ret->is_percent;
}

static bool parse_take(struct plan *plan, const char *s, size_t len)
{
    struct plan_place *from = &plan->take_from, *to = &plan->take_to;
    size_t used = parse_place(s, len, from);

    plan->takes = true;
    return used && used + 1 < len && s[used] == ':' &&
           parse_place(s + used + 1, len - used - 1, to) == len - used - 1 &&
           (from->is_percent != to->is_percent || from->n <= to->n);
}

static int print_take(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->takes
               ? snprintf(buf, capacity, "%llu%s:%llu%s", (unsigned long long)plan->take_from.n,
                          plan->take_from.is_percent ? "%" : "",
                          (unsigned long long)plan->take_to.n, plan->take_to.is_percent ? "%" : "")
               : 0;
}

/* K@W0:W1:... with K less than the number of weights, which are not all 0. */
static bool parse_split(struct plan *plan, const char *s, size_t len)
{
    uint64_t number = 0, sum = 0;
    size_t used = number_parse(s, len, PLAN_SPLITS_MOST - 1, &number);

    plan->split = (unsigned)number;
    if (!used || used >= len || s[used] != '@')
        return false;
    for (plan->splits = 0; used < len && plan->splits < PLAN_SPLITS_MOST; plan->splits++) {
        size_t digits = number_parse(s + used + 1, len - used - 1, UINT32_MAX, &number);

        if (!digits)
            return false;
        plan->weight[plan->splits] = (uint32_t)number;
        sum += number;
        used += 1 + digits;
        if (used < len && s[used] != ':')
            return false;
    }
    return used == len && plan->split < plan->splits && sum;
}

static int print_split(const struct plan *plan, char *buf, size_t capacity)
{
    int len;

    if (!plan->splits)
        return 0;
    len = snprintf(buf, capacity, "%u", plan->split);
    for (unsigned i = 0; i < plan->splits; i++)
        len += snprintf(buf + len, capacity - (size_t)len, "%c%u", i ? ':' : '@', plan->weight[i]);
    return len;
}

static bool parse_only(struct plan *plan, const char *s, size_t len)
{
    return plan_parse_word(s, len, plan->only);
}

static int print_only(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->only[0] ? snprintf(buf, capacity, "%s", plan->only) : 0;
}

static bool parameters_is_same(const char *s, size_t len, const char *word)
{
    return len == strlen(word) && !memcmp(s, word, len);
}

/* N:uniform, N:balanced, N:balanced: and a field, or N: and a field. */
static bool parse_draw(struct plan *plan, const char *s, size_t len)
{
    static const char balanced[] = "balanced:";
    size_t used = number_parse(s, len, PLAN_NUMBER_MAX, &plan->draws);

    if (!used || used >= len || s[used] != ':')
        return false;
    s += used + 1;
    len -= used + 1;
    plan->draw = parameters_is_same(s, len, "uniform")    ? DRAW_UNIFORM
                 : parameters_is_same(s, len, "balanced") ? DRAW_BALANCED
                                                          : DRAW_WEIGHTS;
    if (len > sizeof(balanced) - 1 && !memcmp(s, balanced, sizeof(balanced) - 1)) {
        plan->draw = DRAW_BALANCED;
        return plan_parse_word(s + sizeof(balanced) - 1, len - (sizeof(balanced) - 1),
                               plan->class_field);
    }
    return plan->draw != DRAW_WEIGHTS || plan_parse_word(s, len, plan->draw_field);
}

static int print_draw(const struct plan *plan, char *buf, size_t capacity)
{
    const char *how[] = {"", "uniform", "balanced", plan->draw_field};

    const char *field = plan->draw == DRAW_BALANCED ? plan->class_field : "";

    return plan->draw ? snprintf(buf, capacity, "%llu:%s%s%s", (unsigned long long)plan->draws,
                                 how[plan->draw], *field ? ":" : "", field)
                      : 0;
}

/* PxK, both from 1, and perhaps a field. */
static bool parse_classes(struct plan *plan, const char *s, size_t len)
{
    size_t used = number_parse(s, len, PLAN_NUMBER_MAX, &plan->batch_classes);
    const char *colon = memchr(s, ':', len);

    if (colon && !plan_parse_word(colon + 1, len - (size_t)(colon + 1 - s), plan->class_field))
        return false;
    len = colon ? (size_t)(colon - s) : len;
    return used && used + 1 < len && s[used] == 'x' &&
           plan_parse_number(s + used + 1, len - used - 1, PLAN_NUMBER_MAX, &plan->of_class) &&
           plan->batch_classes && plan->of_class;
}

static int parameters_print_classes(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->of_class
               ? snprintf(buf, capacity, "%llux%llu%s%s", (unsigned long long)plan->batch_classes,
                          (unsigned long long)plan->of_class, plan->class_field[0] ? ":" : "",
                          plan->class_field)
               : 0;
}

static int check_classes(const struct plan *plan, struct diag *d)
{
    uint64_t size;

    if (plan->draw)
        return diag_set(d, -EINVAL, "expected classes= or draw=, got both");
    if (plan->budget || plan->bucket)
        return diag_set(d, -EINVAL, "expected classes= or batches by length, got both");
    if (plan->window)
        return diag_set(d, -EINVAL, "classes: expected shuffle=full, got window:%llu",
                        (unsigned long long)plan->window);
    if (!checked_mul(plan->batch_classes, plan->of_class, &size) || size > PLAN_NUMBER_MAX)
        return diag_set(
            d, -EINVAL, "classes: expected a batch of at most 2^48 samples, got %llux%llu",
            (unsigned long long)plan->batch_classes, (unsigned long long)plan->of_class);
    if (plan->batch != size)
        return diag_set(d, -EINVAL,
                        "classes: expected batch=%llu for batches of %llu times %llu, got "
                        "batch=%s%.0llu",
                        (unsigned long long)size, (unsigned long long)plan->batch_classes,
                        (unsigned long long)plan->of_class, plan->batch ? "" : "all",
                        (unsigned long long)plan->batch);
    return 0;
}

static bool parse_limit(struct plan *plan, const char *s, size_t len)
{
    plan->limits = true;
    return plan_parse_number(s, len, PLAN_NUMBER_MAX, &plan->limit);
}

static int print_limit(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->limits ? snprintf(buf, capacity, "%llu", (unsigned long long)plan->limit) : 0;
}

/* KofN with K < N. */
static bool parse_share(const char *s, size_t len, uint64_t *ret_k, uint64_t *ret_n)
{
    size_t used = number_parse(s, len, PLAN_NUMBER_MAX, ret_k);

    if (!used || len - used < 3 || memcmp(s + used, "of", 2) != 0)
        return false;
    used += 2;
    return plan_parse_number(s + used, len - used, PLAN_NUMBER_MAX, ret_n) && *ret_k < *ret_n;
}

/* The whole is the default. */
static int print_share(uint64_t k, uint64_t n, char *buf, size_t capacity)
{
    return n == 1 ? 0
                  : snprintf(buf, capacity, "%lluof%llu", (unsigned long long)k,
                             (unsigned long long)n);
}

static bool parse_part(struct plan *plan, const char *s, size_t len)
{
    return parse_share(s, len, &plan->part, &plan->parts);
}

static int print_part(const struct plan *plan, char *buf, size_t capacity)
{
    return print_share(plan->part, plan->parts, buf, capacity);
}

static bool parse_rank(struct plan *plan, const char *s, size_t len)
{
    return parse_share(s, len, &plan->rank, &plan->ranks);
}

static int print_rank(const struct plan *plan, char *buf, size_t capacity)
{
    return print_share(plan->rank, plan->ranks, buf, capacity);
}

static bool parse_seed(struct plan *plan, const char *s, size_t len)
{
    plan->seeded = true;
    return plan_parse_number(s, len, UINT64_MAX, &plan->seed);
}

static int print_seed(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->seeded ? snprintf(buf, capacity, "%llu", (unsigned long long)plan->seed) : 0;
}

static bool parse_shuffle(struct plan *plan, const char *s, size_t len)
{
    static const char window[] = "window:";
    const size_t prefix = sizeof(window) - 1;

    if (len == 4 && !memcmp(s, "full", 4)) {
        plan->window = 0;
        return true;
    }
    return len > prefix && !memcmp(s, window, prefix) &&
           plan_parse_number(s + prefix, len - prefix, PLAN_NUMBER_MAX, &plan->window) &&
           plan->window > 0;
}

static int print_shuffle(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->window ? snprintf(buf, capacity, "window:%llu", (unsigned long long)plan->window)
                        : 0;
}

static const char *const tail_words[] = {
    [TAIL_KEEP] = "keep",
    [TAIL_DROP] = "drop",
    [TAIL_WRAP] = "wrap",
};

static bool parse_tail(struct plan *plan, const char *s, size_t len)
{
    for (unsigned i = 0; i < ARRAY_LEN(tail_words); i++) {
        if (len == strlen(tail_words[i]) && !memcmp(s, tail_words[i], len)) {
            plan->tail = (enum plan_tail)i;
            return true;
        }
    }
    return false;
}

static int print_tail(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->tail == TAIL_KEEP ? 0 : snprintf(buf, capacity, "%s", tail_words[plan->tail]);
}

static bool parse_unit(struct plan *plan, const char *s, size_t len)
{
    return plan_parse_word(s, len, plan->unit);
}

static int print_unit(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->unit[0] ? snprintf(buf, capacity, "%s", plan->unit) : 0;
}

/* Weights and classes are those of samples, lists and lengths name samples. */
static int check_unit(const struct plan *plan, struct diag *d)
{
    const char *other = plan->only[0]               ? "only="
                        : plan->ranges              ? "length="
                        : plan->of_class            ? "classes="
                        : plan->draw > DRAW_UNIFORM ? "draw= by classes or weights"
                        : plan->augment[0]          ? "augment="
                        : plan->budget && strcmp(plan->length, "rows") != 0 ? "batch=HOW:N"
                                                                            : NULL;

    return other ? diag_set(d, -EINVAL,
                            "unit: expected a plan without %s, as that is about samples; of "
                            "batch=HOW:N take rows:N",
                            other)
                 : 0;
}

/* HxW, or HxW and ofS. */
static bool parse_picture(struct plan *plan, const char *s, size_t len)
{
    uint64_t height = 0, width = 0, side = 0;
    size_t used = number_parse(s, len, PLAN_PICTURE_MOST, &height), n;

    if (!used || used >= len || s[used] != 'x')
        return false;
    s += used + 1;
    len -= used + 1;
    n = number_parse(s, len, PLAN_PICTURE_MOST, &width);
    if (!n || (n < len && (len - n < 3 || memcmp(s + n, "of", 2) != 0)))
        return false;
    if (n < len && !plan_parse_number(s + n + 2, len - n - 2, PLAN_PICTURE_MOST, &side))
        return false;
    plan->picture_height = (uint32_t)height;
    plan->picture_width = (uint32_t)width;
    plan->picture_side = (uint32_t)side;
    return height && width && (n == len || (side >= height && side >= width));
}

static int print_picture(const struct plan *plan, char *buf, size_t capacity)
{
    char side[16] = "";

    if (plan->picture_side)
        snprintf(side, sizeof(side), "of%u", plan->picture_side);
    return plan->picture_height
               ? snprintf(buf, capacity, "%ux%u%s", plan->picture_height, plan->picture_width, side)
               : 0;
}

bool plan_is_name(const char *s, size_t len)
{
    if (!len || len >= PLAN_WORD_SIZE)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '-')
            return false;
    return true;
}

static bool parse_augment(struct plan *plan, const char *s, size_t len)
{
    return plan_is_name(s, len) && plan_parse_word(s, len, plan->augment);
}

static int print_augment(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->augment[0] ? snprintf(buf, capacity, "%s", plan->augment) : 0;
}

const struct plan_parameter plan_parameters[] = {
    {
        .word = "batch",
        .foreign = "batch_size|batchsize|bs|batches",
        .syntax = "<n|all|HOW:N[:MOST]>",
        .expected = "a number of samples from 1 to 2^48, all, or HOW:N or HOW:N:MOST, as "
                    "tokens:4096, with N up to 10^12",
        .help = "samples of a batch; HOW:N: as many as have N tokens, frames, seconds, bytes or "
                "a field's rows once padded, at most MOST",
        .is_required = true,
        .parse = plan_parse_batch,
        .print = plan_print_batch,
    },
    {
        .word = "bucket",
        .foreign = "num_buckets|group_by_length|length_grouped|bucketing|sort_within_batch",
        .syntax = "W",
        .expected = "a number of samples from 1 to 2^20",
        .help = "batches of similar length: sorted in windows of W samples of the order",
        .parse = plan_parse_bucket,
        .print = plan_print_bucket,
        .check = plan_check_bucket,
    },
    {
        .word = "quad",
        .foreign = "quadratic_duration",
        .syntax = "Q",
        .expected = "a number above 0, up to 10^12, with up to 6 digits after the point",
        .help = "with HOW:N, a length L counts as L + L^2/Q, as attention costs",
        .parse = plan_parse_quad,
        .print = plan_print_quad,
        .check = plan_check_quad,
    },
    {
        .word = "group",
        .foreign = "sync_buckets|grouped_shuffling",
        .syntax = "G",
        .expected = "a number of batches from 1 to 2^20",
        .help = "G batches of similar length follow one another, as for G ranks",
        .parse = plan_parse_group,
        .print = plan_print_group,
        .check = plan_check_grouping,
    },
    {
        .word = "only",
        .foreign = "subset|list|filter|indices",
        .syntax = "NAME",
        .expected = "the name of a list that subset=NAME=FILE gives to the mount",
        .help = "the samples of that list, in its order (see -o subset=NAME=FILE)",
        .makes_list = true,
        .in_sources = true,
        .not_in_mix = true,
        .parse = parse_only,
        .print = print_only,
    },
    {
        .word = "take",
        .foreign = "skip|slice|range",
        .syntax = "A:B",
        .expected =
            "A:B with A at most B, both numbers of samples up to 2^48, or whole percentages, as "
            "0:80%",
        .help = "samples A to B-1 of the stored order; also in % of all",
        .makes_list = true,
        .in_sources = true,
        .not_in_mix = true,
        .parse = parse_take,
        .print = print_take,
    },
    {
        .word = "length",
        .foreign = "min_len|max_len|min_length|max_length|min_duration|max_duration",
        .syntax = "A:B[:HOW]",
        .expected = "A:B or A:B:HOW with A below B, both up to 10^12 with up to 6 digits after "
                    "the point",
        .help = "samples of a length from A to below B, counted as in batch=HOW:N",
        .makes_list = true,
        .not_in_mix = true,
        .parse = plan_parse_range,
        .print = plan_print_range,
    },
    {
        .word = "split",
        .foreign = "train_test_split|validation_split|test_size|fold",
        .syntax = "K@W0:W1:...",
        .expected = "K@W0:W1:..., share K (0 or more) of up to 16 weights below 2^32 that are not "
                    "all 0, as "
                    "0@80:10:10",
        .help = "share K of a fixed shuffle, as large as its weight says",
        .makes_list = true,
        .in_sources = true,
        .not_in_mix = true,
        .parse = parse_split,
        .print = print_split,
    },
    {
        .word = "part",
        .syntax = "KofN",
        .expected = "KofN with K from 0 to N-1, and N up to 2^48",
        .help = "share K of N of the stored order, before the shuffle",
        .makes_list = true,
        .in_sources = true,
        .not_in_mix = true,
        .parse = parse_part,
        .print = print_part,
    },
    {
        .word = "rank",
        .foreign = "world_size|num_replicas|num_shards|shards|shard|local_rank|global_rank|worker",
        .syntax = "KofN",
        .expected = "KofN with K from 0 to N-1, and N up to 2^48",
        .help = "every Nth sample from K on, after the shuffle",
        .parse = parse_rank,
        .print = print_rank,
    },
    {
        .word = "seed",
        .foreign = "random_state|random_seed|shuffle_seed",
        .syntax = "S",
        .expected = "a number from 0 to 2^64-1",
        .help = "shuffled, differently in every epoch=<E>",
        .parse = parse_seed,
        .print = print_seed,
    },
    {
        .word = "shuffle",
        .foreign = "shuffle_buffer|shuffle_buffer_size|buffer_size|shuffle_block_size|shuffle_algo",
        .syntax = "full|window:M",
        .expected = "full, or window:M with M from 1 to 2^48",
        .help = "shuffled as a whole (the default), or in blocks of M neighbours",
        .needs = "seed",
        .parse = parse_shuffle,
        .print = print_shuffle,
    },
    {
        .word = "draw",
        .foreign = "replacement|sampler|weights|with_replacement",
        .syntax = "N:uniform|balanced[:FIELD]|FIELD",
        .expected = "N:uniform, N:balanced, N:balanced:FIELD, or N: and the name of a field of "
                    "weights, with N up to 2^48",
        .help = "N samples per epoch, some several times: all equally likely, "
                "each class of label or FIELD, or by a field of weights",
        .not_in_mix = true,
        .parse = parse_draw,
        .print = print_draw,
    },
    {
        .word = "classes",
        .syntax = "PxK[:FIELD]",
        .expected =
            "PxK, a number of classes and of samples of each, both from 1 to 2^48, or PxK:FIELD",
        .help = "P classes of label or FIELD in each batch, K samples of each; a batch is PxK",
        .not_in_mix = true,
        .parse = parse_classes,
        .print = parameters_print_classes,
        .check = check_classes,
    },
    {
        .word = "limit",
        .foreign = "max_samples|samples_per_class",
        .syntax = "N",
        .expected = "a number of samples up to 2^48",
        .help = "the first N samples of each epoch's order",
        .in_sources = true,
        .parse = parse_limit,
        .print = print_limit,
    },
    {
        .word = "tail",
        .foreign = "drop_last|drop_remainder|last_batch|remainder",
        .syntax = "keep|drop|wrap",
        .expected = "keep, drop or wrap",
        .help = "a short last batch, none, or one filled up from the start",
        .parse = parse_tail,
        .print = print_tail,
    },
    {
        .word = "unit",
        .foreign = "groups|group_by|query",
        .syntax = "FIELD",
        .expected = "the name of a field with a number or a text in each sample",
        .help = "all words count runs of one value of FIELD, such as qid, which stay together",
        .not_in_mix = true,
        .parse = parse_unit,
        .print = print_unit,
        .check = check_unit,
    },
    {
        .word = "picture",
        .alias = "image_size",
        .foreign = "img_size|input_size|resolution|crop_size",
        .syntax = "HxW[ofS]",
        .expected = "HxW or HxWofS, sides from 1 to 4096, and S at least as large as H and W",
        .help = "images as arrays of height H and width W; ofS: of the middle, once the short side "
                "is S",
        .parse = parse_picture,
        .print = print_picture,
    },
    {
        .word = "augment",
        .foreign = "transform|transforms|augmentation",
        .syntax = "NAME",
        .expected = "the name of a recipe that augment=NAME=WORDS gives to the mount",
        .help = "images changed by that recipe, in each epoch otherwise (see -o augment=)",
        .needs = "seed",
        .parse = parse_augment,
        .print = print_augment,
    },
};
const unsigned n_plan_parameters = ARRAY_LEN(plan_parameters);
static_assert(ARRAY_LEN(plan_parameters) <= 32, "plan_parse() has a bit for each");
