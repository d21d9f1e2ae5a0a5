#include "format/core/split_name.h"

#include <string.h>
#include <strings.h>

bool is_split_name(const char *name, size_t len)
{
    static const char *const names[] = {"train", "training", "val", "valid", "validation",
                                        "test",  "testing",  "dev", "eval",  NULL};

    for (const char *const *known = names; *known; known++)
        if (strlen(*known) == len && !strncasecmp(name, *known, len))
            return true;
    return false;
}
