/* The parameters of plans: how each is read and written. What they do is in fs/plan/schedule.c. */
#include "fs/plan/parameters.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"
#include "fs/plan/length_batches.h"

#define PLAN_PICTURE_MOST 4096 /* PICTURE_SIDE_MAX */

/* The value of one piece, and where it is stored. */
#define AT(member)               .at = offsetof(struct plan, member)
#define NUMBER(member, from, to) .type = PIECE_NUMBER, AT(member), .least = (from), .most = (to)
#define COUNT(member, from)      NUMBER(member, from, PLAN_NUMBER_MAX)
#define MICRO(member, from)      .type = PIECE_MICRO, AT(member), .least = (from)
#define PLACE(member)            .type = PIECE_PLACE, AT(member), .most = PLAN_NUMBER_MAX
#define WORD(member)             .type = PIECE_WORD, AT(member)

static const struct plan_piece batch_number[] = {{COUNT(batch, 1)}, {0}};
static const struct plan_piece batch_budget[] = {
    {WORD(length)},
    {":", MICRO(budget, 1)},
    {":", .is_optional = true, COUNT(batch, 1)},
    {0},
};

static bool parameters_is_same(const char *s, size_t len, const char *word)
{
    return len == strlen(word) && !memcmp(s, word, len);
}

static bool parse_batch(struct plan *plan, const char *s, size_t len)
{
    const struct plan_piece *form = memchr(s, ':', len) ? batch_budget : batch_number;

    return parameters_is_same(s, len, "all") || plan_form_parse(form, plan, s, len);
}

static int print_batch(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->budget || plan->batch
               ? plan_form_print(plan->budget ? batch_budget : batch_number, plan, buf, capacity)
               : snprintf(buf, capacity, "all");
}

static int check_bucket(const struct plan *plan, struct diag *d)
{
    if (plan->budget || (plan->batch && plan->bucket % plan->batch == 0))
        return 0;
    if (!plan->batch)
        return diag_set(d, -EINVAL, "bucket: expected batch=HOW:N, or batch=B, got batch=all");
    return diag_set(d, -EINVAL, "bucket: expected a multiple of batch=%llu, got %llu",
                    (unsigned long long)plan->batch, (unsigned long long)plan->bucket);
}

static int print_bucket(const struct plan *plan, char *buf, size_t capacity)
{
    return plan->bucket && (!plan->budget || plan->bucket != LENGTH_BATCHES_BUCKET)
               ? snprintf(buf, capacity, "%llu", (unsigned long long)plan->bucket)
               : 0;
}

/* Without a budget it would change nothing. */
static int check_quad(const struct plan *plan, struct diag *d)
{
    return plan->budget ? 0
                        : diag_set(d, -EINVAL,
                                   "quad= is for batches by length with a budget: expected "
                                   "batch=HOW:N");
}

static int check_grouping(const struct plan *plan, struct diag *d)
{
    return plan->budget || plan->bucket
               ? 0
               : diag_set(d, -EINVAL,
                          "group= is for batches by length: expected batch=HOW:N, or bucket=");
}

/* A number of samples may be more, or less, than a percentage. */
static bool take_holds(const struct plan *plan)
{
    return plan->take_from.is_percent != plan->take_to.is_percent ||
           plan->take_from.n <= plan->take_to.n;
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

static const char *const tail_words[] = {
    [TAIL_KEEP] = "keep",
    [TAIL_DROP] = "drop",
    [TAIL_WRAP] = "wrap",
};

static bool parse_tail(struct plan *plan, const char *s, size_t len)
{
    for (unsigned i = 0; i < ARRAY_LEN(tail_words); i++) {
        if (parameters_is_same(s, len, tail_words[i])) {
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

static bool picture_holds(const struct plan *plan)
{
    return !plan->picture_side || (plan->picture_side >= plan->picture_height &&
                                   plan->picture_side >= plan->picture_width);
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
        .parse = parse_batch,
        .print = print_batch,
    },
    {
        .word = "bucket",
        .foreign = "num_buckets|group_by_length|length_grouped|bucketing|sort_within_batch",
        .syntax = "W",
        .expected = "a number of samples from 1 to 2^20",
        .help = "batches of similar length: sorted in windows of W samples of the order",
        .piece = {{NUMBER(bucket, 1, LENGTH_BATCHES_BUCKET_MOST)}},
        .print = print_bucket,
        .check = check_bucket,
    },
    {
        .word = "quad",
        .foreign = "quadratic_duration",
        .syntax = "Q",
        .expected = "a number above 0, up to 10^12, with up to 6 digits after the point",
        .help = "with HOW:N, a length L counts as L + L^2/Q, as attention costs",
        .piece = {{MICRO(quad, 1)}},
        .check = check_quad,
    },
    {
        .word = "group",
        .foreign = "sync_buckets|grouped_shuffling",
        .syntax = "G",
        .expected = "a number of batches from 1 to 2^20",
        .help = "G batches of similar length follow one another, as for G ranks",
        .piece = {{NUMBER(group, 1, LENGTH_BATCHES_BUCKET_MOST)}},
        .usual = 1,
        .check = check_grouping,
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
        .piece = {{WORD(only)}},
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
        .flag = offsetof(struct plan, takes),
        .piece = {{PLACE(take_from)}, {":", PLACE(take_to)}},
        .holds = take_holds,
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
        .flag = offsetof(struct plan, ranges),
        .piece = {{MICRO(length_from, 0)},
                  {":", MICRO(length_to, 1)},
                  {":", .is_optional = true, WORD(range_length)}},
        .rises = true,
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
        .piece = {{COUNT(part, 0)}, {"of", COUNT(parts, 1)}},
        .rises = true,
        .usual = 1,
    },
    {
        .word = "rank",
        .foreign = "world_size|num_replicas|num_shards|shards|shard|local_rank|global_rank|worker",
        .syntax = "KofN",
        .expected = "KofN with K from 0 to N-1, and N up to 2^48",
        .help = "every Nth sample from K on, after the shuffle",
        .piece = {{COUNT(rank, 0)}, {"of", COUNT(ranks, 1)}},
        .rises = true,
        .usual = 1,
    },
    {
        .word = "seed",
        .foreign = "random_state|random_seed|shuffle_seed",
        .syntax = "S",
        .expected = "a number from 0 to 2^64-1",
        .help = "shuffled, differently in every epoch=<E>",
        .flag = offsetof(struct plan, seeded),
        .piece = {{NUMBER(seed, 0, UINT64_MAX)}},
    },
    {
        .word = "shuffle",
        .foreign = "shuffle_buffer|shuffle_buffer_size|buffer_size|shuffle_block_size|shuffle_algo",
        .syntax = "full|window:M",
        .expected = "full, or window:M with M from 1 to 2^48",
        .help = "shuffled as a whole (the default), or in blocks of M neighbours",
        .needs = "seed",
        .plain = "full",
        .piece = {{"window:", COUNT(window, 1)}},
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
        .piece = {{COUNT(batch_classes, 1)},
                  {"x", COUNT(of_class, 1)},
                  {":", .is_optional = true, WORD(class_field)}},
        .check = check_classes,
    },
    {
        .word = "limit",
        .foreign = "max_samples|samples_per_class",
        .syntax = "N",
        .expected = "a number of samples up to 2^48",
        .help = "the first N samples of each epoch's order",
        .in_sources = true,
        .flag = offsetof(struct plan, limits),
        .piece = {{COUNT(limit, 0)}},
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
        .piece = {{WORD(unit)}},
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
        .piece = {{NUMBER(picture_height, 1, PLAN_PICTURE_MOST)},
                  {"x", NUMBER(picture_width, 1, PLAN_PICTURE_MOST)},
                  {"of", .is_optional = true, NUMBER(picture_side, 1, PLAN_PICTURE_MOST)}},
        .holds = picture_holds,
    },
    {
        .word = "augment",
        .foreign = "transform|transforms|augmentation",
        .syntax = "NAME",
        .expected = "the name of a recipe that augment=NAME=WORDS gives to the mount",
        .help = "images changed by that recipe, in each epoch otherwise (see -o augment=)",
        .needs = "seed",
        .piece = {{.type = PIECE_NAME, AT(augment)}},
    },
};
const unsigned n_plan_parameters = ARRAY_LEN(plan_parameters);
static_assert(ARRAY_LEN(plan_parameters) <= 32, "plan_parse() has a bit for each");
