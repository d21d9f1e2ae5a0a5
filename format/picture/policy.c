#include "format/picture/policy.h"

#include "format/picture/affine.h"
#include "format/picture/colour.h"
#include "format/picture/tables.h"

struct subpolicy_step {
    uint8_t op, tenths, level; /* tenths: its chance */
};

/* The tables of AutoAugment (Cubuk and others, CVPR 2019), as torchvision has them. */
static const struct subpolicy_step subpolicies[][POLICY_SUBPOLICIES][2] =
    {
        [POLICY_IMAGENET] =
            {
                {{OP_POSTERIZE, 4, 8}, {OP_ROTATE, 6, 9}},
                {{OP_SOLARIZE, 6, 5}, {OP_AUTO_CONTRAST, 6, 0}},
                {{OP_EQUALIZE, 8, 0}, {OP_EQUALIZE, 6, 0}},
                {{OP_POSTERIZE, 6, 7}, {OP_POSTERIZE, 6, 6}},
                {{OP_EQUALIZE, 4, 0}, {OP_SOLARIZE, 2, 4}},
                {{OP_EQUALIZE, 4, 0}, {OP_ROTATE, 8, 8}},
                {{OP_SOLARIZE, 6, 3}, {OP_EQUALIZE, 6, 0}},
                {{OP_POSTERIZE, 8, 5}, {OP_EQUALIZE, 10, 0}},
                {{OP_ROTATE, 2, 3}, {OP_SOLARIZE, 6, 8}},
                {{OP_EQUALIZE, 6, 0}, {OP_POSTERIZE, 4, 6}},
                {{OP_ROTATE, 8, 8}, {OP_COLOUR, 4, 0}},
                {{OP_ROTATE, 4, 9}, {OP_EQUALIZE, 6, 0}},
                {{OP_EQUALIZE, 0, 0}, {OP_EQUALIZE, 8, 0}},
                {{OP_INVERT, 6, 0}, {OP_EQUALIZE, 10, 0}},
                {{OP_COLOUR, 6, 4}, {OP_CONTRAST, 10, 8}},
                {{OP_ROTATE, 8, 8}, {OP_COLOUR, 10, 2}},
                {{OP_COLOUR, 8, 8}, {OP_SOLARIZE, 8, 7}},
                {{OP_SHARPNESS, 4, 7}, {OP_INVERT, 6, 0}},
                {{OP_SHEAR_X, 6, 5}, {OP_EQUALIZE, 10, 0}},
                {{OP_COLOUR, 4, 0}, {OP_EQUALIZE, 6, 0}},
                {{OP_EQUALIZE, 4, 0}, {OP_SOLARIZE, 2, 4}},
                {{OP_SOLARIZE, 6, 5}, {OP_AUTO_CONTRAST, 6, 0}},
                {{OP_INVERT, 6, 0}, {OP_EQUALIZE, 10, 0}},
                {{OP_COLOUR, 6, 4}, {OP_CONTRAST, 10, 8}},
                {{OP_EQUALIZE, 8, 0}, {OP_EQUALIZE, 6, 0}},
            },
        [POLICY_CIFAR10] =
            {
                {{OP_INVERT, 1, 0}, {OP_CONTRAST, 2, 6}},
                {{OP_ROTATE, 7, 2}, {OP_TRANSLATE_X, 3, 9}},
                {{OP_SHARPNESS, 8, 1}, {OP_SHARPNESS, 9, 3}},
                {{OP_SHEAR_Y, 5, 8}, {OP_TRANSLATE_Y, 7, 9}},
                {{OP_AUTO_CONTRAST, 5, 0}, {OP_EQUALIZE, 9, 0}},
                {{OP_SHEAR_Y, 2, 7}, {OP_POSTERIZE, 3, 7}},
                {{OP_COLOUR, 4, 3}, {OP_BRIGHTNESS, 6, 7}},
                {{OP_SHARPNESS, 3, 9}, {OP_BRIGHTNESS, 7, 9}},
                {{OP_EQUALIZE, 6, 0}, {OP_EQUALIZE, 5, 0}},
                {{OP_CONTRAST, 6, 7}, {OP_SHARPNESS, 6, 5}},
                {{OP_COLOUR, 7, 7}, {OP_TRANSLATE_X, 5, 8}},
                {{OP_EQUALIZE, 3, 0}, {OP_AUTO_CONTRAST, 4, 0}},
                {{OP_TRANSLATE_Y, 4, 3}, {OP_SHARPNESS, 2, 6}},
                {{OP_BRIGHTNESS, 9, 6}, {OP_COLOUR, 2, 8}},
                {{OP_SOLARIZE, 5, 2}, {OP_INVERT, 0, 0}},
                {{OP_EQUALIZE, 2, 0}, {OP_AUTO_CONTRAST, 6, 0}},
                {{OP_EQUALIZE, 2, 0}, {OP_EQUALIZE, 6, 0}},
                {{OP_COLOUR, 9, 9}, {OP_EQUALIZE, 6, 0}},
                {{OP_AUTO_CONTRAST, 8, 0}, {OP_SOLARIZE, 2, 8}},
                {{OP_BRIGHTNESS, 1, 3}, {OP_COLOUR, 7, 0}},
                {{OP_SOLARIZE, 4, 5}, {OP_AUTO_CONTRAST, 9, 0}},
                {{OP_TRANSLATE_Y, 9, 9}, {OP_TRANSLATE_Y, 7, 9}},
                {{OP_AUTO_CONTRAST, 9, 0}, {OP_SOLARIZE, 8, 3}},
                {{OP_EQUALIZE, 8, 0}, {OP_INVERT, 1, 0}},
                {{OP_TRANSLATE_Y, 7, 9}, {OP_AUTO_CONTRAST, 9, 0}},
            },
        [POLICY_SVHN] =
            {
                {{OP_SHEAR_X, 9, 4}, {OP_INVERT, 2, 0}},
                {{OP_SHEAR_Y, 9, 8}, {OP_INVERT, 7, 0}},
                {{OP_EQUALIZE, 6, 0}, {OP_SOLARIZE, 6, 6}},
                {{OP_INVERT, 9, 0}, {OP_EQUALIZE, 6, 0}},
                {{OP_EQUALIZE, 6, 0}, {OP_ROTATE, 9, 3}},
                {{OP_SHEAR_X, 9, 4}, {OP_AUTO_CONTRAST, 8, 0}},
                {{OP_SHEAR_Y, 9, 8}, {OP_INVERT, 4, 0}},
                {{OP_SHEAR_Y, 9, 5}, {OP_SOLARIZE, 2, 6}},
                {{OP_INVERT, 9, 0}, {OP_AUTO_CONTRAST, 8, 0}},
                {{OP_EQUALIZE, 6, 0}, {OP_ROTATE, 9, 3}},
                {{OP_SHEAR_X, 9, 4}, {OP_SOLARIZE, 3, 3}},
                {{OP_SHEAR_Y, 8, 8}, {OP_INVERT, 7, 0}},
                {{OP_EQUALIZE, 9, 0}, {OP_TRANSLATE_Y, 6, 6}},
                {{OP_INVERT, 9, 0}, {OP_EQUALIZE, 6, 0}},
                {{OP_CONTRAST, 3, 3}, {OP_ROTATE, 8, 4}},
                {{OP_INVERT, 8, 0}, {OP_TRANSLATE_Y, 0, 2}},
                {{OP_SHEAR_Y, 7, 6}, {OP_SOLARIZE, 4, 8}},
                {{OP_INVERT, 6, 0}, {OP_ROTATE, 8, 4}},
                {{OP_SHEAR_Y, 3, 7}, {OP_TRANSLATE_X, 9, 3}},
                {{OP_SHEAR_X, 1, 6}, {OP_INVERT, 6, 0}},
                {{OP_SOLARIZE, 7, 2}, {OP_TRANSLATE_Y, 6, 7}},
                {{OP_SHEAR_Y, 8, 4}, {OP_INVERT, 8, 0}},
                {{OP_SHEAR_X, 7, 9}, {OP_TRANSLATE_Y, 8, 3}},
                {{OP_SHEAR_Y, 8, 5}, {OP_AUTO_CONTRAST, 7, 0}},
                {{OP_SHEAR_X, 7, 2}, {OP_INVERT, 1, 0}},
            },
};

/* ---- which steps ---- */

static unsigned choose_auto(enum policy_table table, const struct augment_numbers *n,
                            struct policy_step *ret)
{
    const struct subpolicy_step *s =
        subpolicies[table][augment_below(n, POLICY_SUBPOLICIES, AUGMENT_POLICY, 0)];
    unsigned steps = 0;

    for (unsigned i = 0; i < 2; i++)
        if (augment_chance(n, augment_fixed(s[i].tenths * UINT64_C(100000), 32), AUGMENT_POLICY,
                           1 + i))
            ret[steps++] = (struct policy_step){
                .op = s[i].op,
                .level = s[i].level,
                .levels = POLICY_AUTO_LEVELS,
                .negative = augment_u64(n, AUGMENT_POLICY, 3 + i) >> 63,
            };
    return steps;
}

unsigned policy_choose(const struct policy *policy, const struct augment_numbers *n,
                       struct policy_step ret_steps[POLICY_STEPS_MAX])
{
    bool trivial = policy->type == POLICY_TRIVIAL;
    unsigned steps = trivial ? 1 : policy->ops, level = policy->magnitude;

    if (policy->type == POLICY_NONE)
        return 0;
    if (policy->type == POLICY_AUTO)
        return choose_auto(policy->table, n, ret_steps);
    if (trivial)
        level = (unsigned)augment_below(n, POLICY_LEVELS, AUGMENT_POLICY, 255);
    for (unsigned i = 0; i < steps; i++)
        ret_steps[i] = (struct policy_step){
            .op = (enum policy_op)augment_below(n, OPS_CHOSEN, AUGMENT_POLICY, 2 * i),
            .level = level,
            .levels = POLICY_LEVELS,
            .negative = augment_u64(n, AUGMENT_POLICY, 2 * i + 1) >> 63,
            .is_wide = trivial,
        };
    return steps;
}

/* ---- one step ---- */

/* hundredths / 100 * level / (levels - 1): what a level is of the largest value. Fixed point with
 * that many bits, half up. */
static int64_t level_share(const struct policy_step *s, unsigned hundredths, unsigned bits)
{
    uint64_t d = UINT64_C(100) * (s->levels - 1);

    return (int64_t)(((UINT64_C(2) * hundredths * s->level << bits) + d) / (2 * d));
}

static int64_t signed_by(const struct policy_step *s, int64_t v)
{
    return s->negative ? -v : v;
}

static int64_t level_shift(const struct policy_step *s, uint32_t side)
{
    uint64_t steps = s->levels - 1;
    uint64_t n = s->is_wide ? UINT64_C(32) * s->level / steps
                            : UINT64_C(150) * side * s->level / (331 * steps);

    return signed_by(s, (int64_t)n);
}

static uint32_t level_factor(const struct policy_step *s)
{
    return (uint32_t)(65536 + signed_by(s, level_share(s, s->is_wide ? 99 : 90, 16)));
}

static void apply_move(const struct policy_step *s, const struct pixels *p)
{
    int64_t shear = signed_by(s, level_share(s, s->is_wide ? 99 : 30, 32));
    unsigned sixths = (s->is_wide ? 810 : 180) * s->level / (s->levels - 1);

    if (s->op == OP_SHEAR_X)
        pixels_shear_x(p, shear);
    else if (s->op == OP_SHEAR_Y)
        pixels_shear_y(p, shear);
    else if (s->op == OP_TRANSLATE_X)
        pixels_translate_x(p, level_shift(s, p->width));
    else if (s->op == OP_TRANSLATE_Y)
        pixels_translate_y(p, level_shift(s, p->height));
    else
        pixels_rotate(p, (int)signed_by(s, sixths));
}

static void apply_factor(enum policy_op op, uint32_t factor, const struct pixels *p)
{
    if (op == OP_BRIGHTNESS)
        pixels_brightness(p, factor);
    else if (op == OP_COLOUR)
        pixels_colour(p, factor);
    else if (op == OP_CONTRAST)
        pixels_contrast(p, factor);
    else
        pixels_sharpness(p, factor);
}

void policy_apply(const struct policy_step *step, const struct pixels *p)
{
    unsigned top = step->levels - 1;

    switch (step->op) {
    case OP_IDENTITY:
        break;
    case OP_POSTERIZE:
        pixels_posterize(p, 8 - (unsigned)level_share(step, step->is_wide ? 600 : 400, 0));
        break;
    case OP_SOLARIZE:
        pixels_solarize(p, top, 255 * (top - step->level));
        break;
    case OP_AUTO_CONTRAST:
        pixels_auto_contrast(p);
        break;
    case OP_EQUALIZE:
        pixels_equalize(p);
        break;
    case OP_INVERT:
        pixels_invert(p);
        break;
    case OP_BRIGHTNESS:
    case OP_COLOUR:
    case OP_CONTRAST:
    case OP_SHARPNESS:
        apply_factor(step->op, level_factor(step), p);
        break;
    default:
        apply_move(step, p);
    }
}

/* ---- jitter ---- */

unsigned jitter_choose(uint64_t chance, uint32_t by, const struct augment_numbers *n,
                       struct jitter_step ret_steps[JITTER_STEPS])
{
    static const uint8_t orders[6][JITTER_STEPS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const enum policy_op ops[JITTER_STEPS] = {OP_BRIGHTNESS, OP_CONTRAST, OP_COLOUR};
    uint32_t low = by < 65536 ? 65536 - by : 0;
    const uint8_t *order;

    if (!augment_chance(n, chance, AUGMENT_JITTER, 0))
        return 0;
    order = orders[augment_below(n, 6, AUGMENT_JITTER, 1)];
    for (unsigned i = 0; i < JITTER_STEPS; i++)
        ret_steps[i] = (struct jitter_step){
            .op = ops[order[i]],
            .factor = low + (uint32_t)augment_below(n, 65536 + by - low + 1, AUGMENT_JITTER,
                                                    2 + order[i]),
        };
    return JITTER_STEPS;
}

void jitter_apply(const struct jitter_step *step, const struct pixels *p)
{
    apply_factor(step->op, step->factor, p);
}
