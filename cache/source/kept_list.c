/* Kept lists: one index of the index store for each source. */
#include "cache/source/kept_list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/checked.h"
#include "cache/disk/index_files.h"
#include "cache/http/url.h"
#include "cache/source/listing.h"
#include "cache/source/source.h"

#define KEPT_LIST "listing" /* the type of these indexes */

/* ---- bytes ---- */

/* Can these be the files of a remote? Names come from servers: see cache/source/known.h. */
static bool is_sound(const struct members *files)
{
    for (uint32_t i = 0; i < files->n_folders; i++) {
        const char *path = members_folder(files, i);
        AUTO_FREE char *above = strndup(path, path_folder_len(path));

        if (!above || (!i && *path) ||
            (i && (name_wrong(path) || name_hidden(path) ||
                   members_compare_paths(members_folder(files, i - 1), path) >= 0 ||
                   !members_is_below(members_folder(files, i - 1), above))))
            return false;
    }
    for (size_t i = 0; i < files->n; i++) {
        const char *name = members_name(files, i);
        const struct member *at = &files->member[i];

        if (strchr(name, '/') || name_wrong(name) || name_hidden(name) ||
            (i && (at[-1].folder > at->folder ||
                   (at[-1].folder == at->folder && strcmp(members_name(files, i - 1), name) >= 0))))
            return false;
    }
    return true;
}

/* Take a piece of n elements from the bytes. */
static bool take_piece(struct kept_index *bytes, uint64_t n, size_t each, uint8_t **ret)
{
    uint64_t len;

    if (!checked_mul(n, each, &len) || len > bytes->size)
        return false;
    *ret = bytes->bytes;
    bytes->bytes += len;
    bytes->size -= len;
    return true;
}

int kept_list_parse(struct known *ret, bool far)
{
    struct kept_index left = ret->bytes;
    struct known list = {.bytes = left};
    struct kept_list_head head;
    uint8_t *pages, *texts, *folders;

    if (left.size < sizeof(head))
        return -EBADMSG;
    memcpy(&head, left.bytes, sizeof(head));
    if (head.magic != KEPT_LIST_MAGIC ||
        head.hash != XXH3_64bits(left.bytes + 16, left.size - 16) || head.texts_len % 8)
        return -EBADMSG;
    left.bytes += sizeof(head);
    left.size -= sizeof(head);
    if (!take_piece(&left, head.n, sizeof(*list.page), &pages) ||
        !take_piece(&left, head.texts_len, 1, &texts) ||
        !take_piece(&left, head.n_folders, sizeof(*list.folder), &folders) ||
        (head.texts_len && texts[head.texts_len - 1]))
        return -EBADMSG;
    list.page = (struct known_page *)(void *)pages;
    list.n_pages = head.n;
    list.texts = (struct text){.data = (char *)texts, .len = head.texts_len};
    list.folder = far ? NULL : (struct listing_folder *)(void *)folders;
    for (size_t i = 0; i < list.n_pages; i++)
        if (list.page[i].text >= list.texts.len ||
            (i && strcmp(known_page_text(&list, i - 1), known_page_text(&list, i)) >= 0))
            return -EBADMSG;
    if (members_from_bytes(left.bytes, left.size, &list.files) < 0 ||
        head.n_folders != (far ? 0 : list.files.n_folders) || (far && !is_sound(&list.files)))
        return -EBADMSG;
    *ret = list;
    return 0;
}

/* ---- in the cache folder ---- */

/* Where something is kept: under `named`; NULL: it is the list of the source. */
static int identity_of(const struct source *source, const char *named, char **ret)
{
    return named ? text_copy(named, ret)
                 : text_print(ret, "list 3 %u:%u %d %s %s", (unsigned)geteuid(),
                              (unsigned)getegid(), source->within.allow_outside, source->root,
                              source->named  ? source->named
                              : source->base ? source->base
                                             : "");
}

/* Most sources have too few files, and a mount of these makes no cache folder for a list, and says
 * nothing of one that cannot be used. */
static bool may_have_kept(const struct source *source)
{
    char path[PATH_MAX];

    return source->cache.path &&
           snprintf(path, sizeof(path), "%s/" KEPT_LIST, source->cache.path) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

/* Who may read a file is asked each time. */
static bool may_keep(const struct source *source)
{
    return source->remote->far ? !source_asks_all(source) : !source->within.for_others;
}

int kept_list_get(const struct source *source, const char *named, struct kept_index *ret)
{
    AUTO_FREE char *identity = NULL;
    struct index_files store;

    if (!may_have_kept(source) || identity_of(source, named, &identity) < 0)
        return -ENOENT;
    index_files_init(&store, &source->cache);
    return index_store_load(&store.keep, KEPT_LIST, identity, ret) < 0 ? -ENOENT : 0;
}

void kept_list_put(const struct source *source, const char *named, const struct iovec *piece,
                   unsigned n)
{
    AUTO_FREE char *identity = NULL;
    struct index_files store;

    if ((!n && !may_have_kept(source)) || identity_of(source, named, &identity) < 0)
        return;
    index_files_init(&store, &source->cache);
    index_store_remove(&store.keep, KEPT_LIST, identity); /* what exists is not replaced */
    if (n)
        index_store_save(&store.keep, KEPT_LIST, identity, source->root, piece, n, NULL, NULL);
}

int kept_list_load(const struct source *source, const char *named, struct known *ret)
{
    AUTO_KNOWN struct known list = {0};

    if (!may_keep(source) || kept_list_get(source, named, &list.bytes) < 0)
        return -ENOENT;
    if (kept_list_parse(&list, source->remote->far) < 0) {
        kept_list_put(source, named, NULL, 0);
        return -ENOENT;
    }
    known_replace(ret, &list);
    return 0;
}

int kept_list_bytes(struct known *list, struct kept_list_pieces *ret)
{
    static const char zeros[8] = "";
    size_t padding = -list->texts.len & 7;
    struct iovec *piece = ret->piece;
    XXH3_state_t *state = XXH3_createState();

    if (!state)
        return -ENOMEM;
    known_sort_pages(list);
    ret->head = (struct kept_list_head){.magic = KEPT_LIST_MAGIC,
                                        .n = list->n_pages,
                                        .texts_len = list->texts.len + padding,
                                        .n_folders = list->folder ? list->files.n_folders : 0};
    piece[0] = (struct iovec){&ret->head, sizeof(ret->head)};
    piece[1] = (struct iovec){list->page, list->n_pages * sizeof(*list->page)};
    piece[2] = (struct iovec){list->texts.data, list->texts.len};
    piece[3] = (struct iovec){(void *)(uintptr_t)zeros, padding};
    piece[4] = (struct iovec){list->folder, ret->head.n_folders * sizeof(*list->folder)};
    members_bytes(&list->files, &ret->members, piece + 5);
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &ret->head.n, sizeof(ret->head) - 16);
    for (unsigned i = 1; i < ARRAY_LEN(ret->piece); i++)
        XXH3_64bits_update(state, piece[i].iov_base, piece[i].iov_len);
    ret->head.hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return 0;
}

void kept_list_save(const struct source *source, struct known *known)
{
    struct kept_list_pieces pieces;

    if (may_keep(source) && kept_list_bytes(known, &pieces) == 0)
        kept_list_put(source, NULL, pieces.piece, ARRAY_LEN(pieces.piece));
}

void kept_list_forget(const struct source *source)
{
    kept_list_put(source, NULL, NULL, 0);
}
