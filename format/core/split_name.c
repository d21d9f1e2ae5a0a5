#include "format/core/split_name.h"

#include <string.h>
#include <strings.h>

const char *const split_names[SPLIT_NAMES] = {"train", "training", "val", "valid", "validation",
                                              "test",  "testing",  "dev", "eval"};

bool is_split_name(const char *name, size_t len)
{
    for (size_t i = 0; i < SPLIT_NAMES; i++)
        if (strlen(split_names[i]) == len && !strncasecmp(name, split_names[i], len))
            return true;
    return false;
}
