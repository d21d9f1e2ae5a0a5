#include <stdlib.h>

#include "format/core/format.h"

void claims_release(struct claims *claims, const struct format *format)
{
    for (size_t i = 0; i < claims->n; i++) {
        struct collection *c = &claims->collection[i];

        free(c->folder);
        free(c->name);
        free(c->root);
        free(c->file);
        free(c->unread);
        free(c->missing);
        if (format->free_claim)
            format->free_claim(c->impl);
        else
            free(c->impl);
    }
    free(claims->collection);
    free(claims->unmet);
    free(claims->recipe);
    claims->collection = NULL;
    claims->n = 0;
}
