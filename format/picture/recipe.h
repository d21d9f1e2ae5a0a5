/* Recipes: how pictures are augmented, as the option augment=NAME=WORD[+WORD..] says it. A WORD is
 * word[:value][:key=value..]; docs/spec/augment.md has them all. */
#ifndef EPOCHFS_FORMAT_PICTURE_RECIPE_H
#define EPOCHFS_FORMAT_PICTURE_RECIPE_H

#include "base/diag.h"
#include "base/text.h"
#include "format/picture/boxes.h"
#include "format/picture/policy.h"

#define RECIPE_PADDING_MAX 256
#define RECIPE_BASE_LEAST  16
#define RECIPE_BASE_MOST   4096

/* A decimal with at most six digits behind its point, in millionths. */
struct recipe_range {
    uint32_t least, most;
};

/* Chances also are in millionths. A word that the recipe lacks changes nothing. */
struct recipe {
    uint32_t base; /* the short side that pictures are scaled to first; 0: none */
    enum recipe_part { RECIPE_MIDDLE, RECIPE_RRC, RECIPE_CROP } part;
    struct recipe_range crop_scale, crop_ratio; /* of RECIPE_RRC */
    uint32_t padding;                           /* of RECIPE_CROP */
    bool flips, vflips;
    uint32_t flip, vflip;
    struct policy policy;
    bool jitters, grays, erases;
    uint32_t jitter_by, jitter, gray, erase;
    struct recipe_range erase_scale, erase_ratio;
    uint64_t salt;
};

/* Parse the words of a recipe. 0, or -EINVAL with the reason in d and *ret undefined. */
int recipe_parse(const char *words, size_t len, struct recipe *ret, struct diag *d);

/* Add the recipe with all its defaults, in the order in which words apply. It parses to the same
 * recipe. */
void recipe_print(const struct recipe *recipe, struct text *t);

/* Does it turn or move pixels in a way that boxes, keypoints and masks cannot follow? */
static inline bool recipe_has_policy(const struct recipe *recipe)
{
    return recipe->policy.type != POLICY_NONE;
}

/* The range of a word as boxes have it. */
struct box_range recipe_box_range(const struct recipe_range *scale,
                                  const struct recipe_range *ratio);

#endif
