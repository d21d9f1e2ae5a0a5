/* What the options augment= and normalize= say. */
#ifndef EPOCHFS_FORMAT_AUGMENT_OPTIONS_H
#define EPOCHFS_FORMAT_AUGMENT_OPTIONS_H

#include "format/picture/normalize.h"
#include "format/picture/recipe.h"

#define RECIPE_NAME_SIZE 64

struct named_recipe {
    char name[RECIPE_NAME_SIZE];
    struct recipe recipe;
};

struct augment_options {
    struct named_recipe *recipe; /* [n] each name once; owned */
    size_t n;
    struct normalize normalize;
};

#endif
