#include "base/index_store.h"

#include <stdlib.h>

void kept_release(struct kept *kept)
{
    free(kept->bytes);
    *kept = (struct kept){0};
}
