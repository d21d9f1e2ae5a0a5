/* Policies: which operations a picture gets, by its numbers, and the operations by their levels.
 * The words auto, rand, trivial and jitter of a recipe; definitions: docs/spec/augment.md. */
#ifndef EPOCHFS_FORMAT_PICTURE_POLICY_H
#define EPOCHFS_FORMAT_PICTURE_POLICY_H

#include "format/picture/numbers.h"
#include "format/picture/pixels.h"

/* In this order numbers choose among the first OPS_CHOSEN. */
enum policy_op {
    OP_IDENTITY,
    OP_SHEAR_X,
    OP_SHEAR_Y,
    OP_TRANSLATE_X,
    OP_TRANSLATE_Y,
    OP_ROTATE,
    OP_BRIGHTNESS,
    OP_COLOUR,
    OP_CONTRAST,
    OP_SHARPNESS,
    OP_POSTERIZE,
    OP_SOLARIZE,
    OP_AUTO_CONTRAST,
    OP_EQUALIZE,
    OP_INVERT,
};
#define OPS_CHOSEN 14

enum policy_type {
    POLICY_NONE,
    POLICY_AUTO,
    POLICY_RAND,
    POLICY_TRIVIAL,
};

enum policy_table {
    POLICY_IMAGENET,
    POLICY_CIFAR10,
    POLICY_SVHN,
};

#define POLICY_STEPS_MAX     8
#define POLICY_LEVELS        31 /* of rand and trivial */
#define POLICY_AUTO_LEVELS   10
#define POLICY_SUBPOLICIES   25
#define POLICY_MAGNITUDE_MAX (POLICY_LEVELS - 1)

struct policy {
    enum policy_type type;
    enum policy_table table; /* of POLICY_AUTO */
    unsigned ops;            /* of POLICY_RAND: 1 to POLICY_STEPS_MAX */
    unsigned magnitude;      /* of POLICY_RAND: 0 to POLICY_MAGNITUDE_MAX */
};

struct policy_step {
    enum policy_op op;
    unsigned level, levels; /* level < levels */
    bool negative;
    bool is_wide; /* the larger range of trivial */
};

/* What the picture with those numbers gets, in this order. Returns how many steps. */
unsigned policy_choose(const struct policy *policy, const struct augment_numbers *n,
                       struct policy_step ret_steps[POLICY_STEPS_MAX]);

void policy_apply(const struct policy_step *step, const struct pixels *p);

/* Brightness, contrast and colour in an order of the numbers. */
struct jitter_step {
    enum policy_op op;
    uint32_t factor; /* 65536: the picture as it is */
};
#define JITTER_STEPS  3
#define JITTER_BY_MAX (1u << 20)

/* chance: as augment_chance(). by: how much a factor may differ from 65536, at most JITTER_BY_MAX.
 * Returns how many steps: JITTER_STEPS or 0. */
unsigned jitter_choose(uint64_t chance, uint32_t by, const struct augment_numbers *n,
                       struct jitter_step ret_steps[JITTER_STEPS]);

void jitter_apply(const struct jitter_step *step, const struct pixels *p);

#endif
