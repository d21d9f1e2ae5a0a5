#include "format/files/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int files_source_take(struct files_source *ret, struct collection *c, struct blob *blob,
                      const struct members *members)
{
    struct files_claim *claim = c->impl;

    *ret = (struct files_source){.blob = blob,
                                 .members = members,
                                 .root = strdup(c->root),
                                 .aside = TAKE_PTR(claim->aside),
                                 .n_unread = c->n_unread,
                                 .unread = TAKE_PTR(c->unread)};
    if (ret->root)
        return 0;
    files_source_release(ret);
    return -ENOMEM;
}

void files_source_release(struct files_source *source)
{
    free(source->root);
    free(source->aside);
    free(source->unread);
    blob_free(source->blob);
    *source = (struct files_source){0};
}

bool files_source_extent(const struct files_source *source, size_t member, struct extent *ret)
{
    *ret = (struct extent){source->blob, source->members->member[member].place,
                           members_size(source->members, member)};
    return ret->len > 0;
}

bool files_source_path(const struct files_source *source, size_t member, char *ret, size_t size)
{
    return members_path(source->members, member, ret, size) == 0;
}

char *files_source_name(const struct files_source *source, size_t member)
{
    const char *folder = members_folder_of(source->members, member);
    char *ret;

    return asprintf(&ret, "%s%s%s", folder, *folder ? "/" : "",
                    members_name(source->members, member)) < 0
               ? NULL
               : ret;
}

void files_source_locate(const struct files_source *source, const struct extent *e, struct text *t)
{
    members_locate(source->members, e->off, e->len, t);
}

void files_source_note(const struct files_source *source, struct text *t)
{
    if (*source->aside)
        text_add(t, "ignored: %s\n", source->aside);
    if (source->n_unread)
        text_add(t, "%zu ignored, because %s be read: %s\n", source->n_unread,
                 source->n_unread > 1 ? "they cannot" : "it cannot", source->unread);
}

void files_source_describe(const struct files_source *source, const char *indent, struct text *t)
{
    if (!*source->aside)
        return;
    text_add(t, "%s\"left_aside\": ", indent);
    text_add_json(t, source->aside);
    text_add(t, ",\n");
}
