#include "base/index_store.h"

#include <stdlib.h>

void kept_index_release(struct kept_index *kept)
{
    free(kept->bytes);
    *kept = (struct kept_index){0};
}
