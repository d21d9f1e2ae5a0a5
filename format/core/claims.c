#include <stdlib.h>

#include "format/core/format.h"

void moved_release(struct moved_folder *moved, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(moved[i].folder);
        free(moved[i].shown);
    }
    free(moved);
}

void claims_drop_groups(struct claims *claims, size_t group, size_t moved)
{
    while (claims->n_groups > group) {
        struct named_group *last = &claims->group[--claims->n_groups];

        free(last->path);
        free(last->file);
        free(last->note);
        free(last->error);
    }
    while (claims->n_moved > moved) {
        free(claims->moved[--claims->n_moved].folder);
        free(claims->moved[claims->n_moved].shown);
    }
}

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
    claims_drop_groups(claims, 0, 0);
    free(claims->group);
    free(claims->moved);
    free(claims->note);
    free(claims->collection);
    free(claims->unmet);
    free(claims->recipe);
    claims->collection = NULL;
    claims->n = 0;
}
