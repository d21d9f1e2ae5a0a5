/* Kept lists: one index of the index store for each source. */
#include "cache/source/kept_list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/checked.h"
#include "cache/disk/index_files.h"
#include "cache/http/url.h"
#include "cache/source/listing.h"
#include "cache/source/source.h"

#define KEPT_LIST "listing" /* the type of these indexes */

/* ---- pages ---- */

int kept_list_add(struct kept_list *pages, const char *text, uint64_t hash)
{
    if (array_capacity(&pages->page, pages->n, sizeof(*pages->page)) < 0)
        return -ENOMEM;
    pages->page[pages->n++] = (struct kept_page){hash, pages->texts.len};
    text_add_bytes(&pages->texts, text, strlen(text) + 1);
    return pages->texts.failed ? -ENOMEM : 0;
}

size_t kept_list_find(const struct kept_list *pages, const char *text)
{
    size_t low = 0, high = pages->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(kept_page_text(pages, middle), text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < pages->n && !strcmp(kept_page_text(pages, low), text) ? low : pages->n;
}

static int compare_pages(const void *a, const void *b, void *texts)
{
    return strcmp((char *)texts + ((const struct kept_page *)a)->text,
                  (char *)texts + ((const struct kept_page *)b)->text);
}

void kept_list_sort(struct kept_list *pages)
{
    size_t kept = 0;

    if (pages->n)
        qsort_r(pages->page, pages->n, sizeof(*pages->page), compare_pages, pages->texts.data);
    for (size_t i = 0; i < pages->n; i++)
        if (!kept || strcmp(kept_page_text(pages, kept - 1), kept_page_text(pages, i)) != 0)
            pages->page[kept++] = pages->page[i];
    pages->n = kept;
}

void kept_list_release(struct kept_list *pages)
{
    if (!pages->bytes.bytes) {
        free(pages->page);
        text_release(&pages->texts);
    }
    members_release(&pages->files);
    kept_index_release(&pages->bytes);
    *pages = (struct kept_list){0};
}

/* ---- bytes ---- */

/* Can these be the files of a remote? Names come from servers: see cache/source/known.h. */
static bool is_sound(const struct members *files)
{
    for (uint32_t i = 0; i < files->n_folders; i++) {
        const char *path = members_folder(files, i), *slash = strrchr(path, '/');
        AUTO_FREE char *above = strndup(path, slash ? (size_t)(slash - path) : 0);

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

int kept_list_parse(struct kept_list *ret, bool far)
{
    struct kept_index left = ret->bytes;
    struct kept_list list = {.bytes = left};
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
    list.page = (struct kept_page *)(void *)pages;
    list.n = head.n;
    list.texts = (struct text){.data = (char *)texts, .len = head.texts_len};
    list.folder = far ? NULL : (struct listing_folder *)(void *)folders;
    for (size_t i = 0; i < list.n; i++)
        if (list.page[i].text >= list.texts.len ||
            (i && strcmp(kept_page_text(&list, i - 1), kept_page_text(&list, i)) >= 0))
            return -EBADMSG;
    if (members_from_bytes(left.bytes, left.size, &list.files) < 0 ||
        head.n_folders != (far ? 0 : list.files.n_folders) || (far && !is_sound(&list.files)))
        return -EBADMSG;
    *ret = list;
    return 0;
}

/* ---- in the cache folder ---- */

static int identity_of(const struct source *source, char **ret)
{
    return text_print(ret, "list 3 %u:%u %d %s %s", (unsigned)geteuid(), (unsigned)getegid(),
                      source->within.allow_outside, source->root,
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

int kept_list_get(const struct source *source, const char *identity, struct kept_index *ret)
{
    struct index_files store;

    if (!may_have_kept(source))
        return -ENOENT;
    index_files_init(&store, &source->cache);
    return index_store_load(&store.keep, KEPT_LIST, identity, ret) < 0 ? -ENOENT : 0;
}

void kept_list_put(const struct source *source, const char *identity, const struct iovec *piece,
                   unsigned n)
{
    AUTO(kept_index_release) struct kept_index again = {0};
    struct index_files store;
    struct diag d = DIAG_INIT;

    index_files_init(&store, &source->cache);
    index_store_remove(&store.keep, KEPT_LIST, identity); /* what exists is not replaced */
    if (n)
        index_store_save(&store.keep, KEPT_LIST, identity, source->root, piece, n, &again, &d);
}

int kept_list_load(const struct source *source, const char *named, struct kept_list *ret)
{
    AUTO_KEPT_LIST struct kept_list list = {0};
    AUTO_FREE char *of_source = NULL;
    const char *identity;

    if (!may_keep(source) || (!named && identity_of(source, &of_source) < 0))
        return -ENOENT;
    identity = named ? named : of_source;
    if (kept_list_get(source, identity, &list.bytes) < 0)
        return -ENOENT;
    if (kept_list_parse(&list, source->remote->far) < 0) {
        kept_list_put(source, identity, NULL, 0);
        return -ENOENT;
    }
    *ret = list;
    list = (struct kept_list){0};
    return 0;
}

int kept_list_bytes(struct kept_list *list, const struct members *files,
                    struct kept_list_pieces *ret)
{
    static const char zeros[8] = "";
    size_t padding = -list->texts.len & 7;
    struct iovec *piece = ret->piece;
    XXH3_state_t *state = XXH3_createState();

    if (!state)
        return -ENOMEM;
    kept_list_sort(list);
    ret->head = (struct kept_list_head){.magic = KEPT_LIST_MAGIC,
                                        .n = list->n,
                                        .texts_len = list->texts.len + padding,
                                        .n_folders = list->folder ? files->n_folders : 0};
    piece[0] = (struct iovec){&ret->head, sizeof(ret->head)};
    piece[1] = (struct iovec){list->page, list->n * sizeof(*list->page)};
    piece[2] = (struct iovec){list->texts.data, list->texts.len};
    piece[3] = (struct iovec){(void *)(uintptr_t)zeros, padding};
    piece[4] = (struct iovec){list->folder, ret->head.n_folders * sizeof(*list->folder)};
    members_bytes(files, &ret->members, piece + 5);
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &ret->head.n, sizeof(ret->head) - 16);
    for (unsigned i = 1; i < ARRAY_LEN(ret->piece); i++)
        XXH3_64bits_update(state, piece[i].iov_base, piece[i].iov_len);
    ret->head.hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return 0;
}

void kept_list_save(const struct source *source, struct kept_list *list,
                    const struct members *files)
{
    AUTO_FREE char *identity = NULL;
    struct kept_list_pieces pieces;

    if (may_keep(source) && identity_of(source, &identity) == 0 &&
        kept_list_bytes(list, files, &pieces) == 0)
        kept_list_put(source, identity, pieces.piece, ARRAY_LEN(pieces.piece));
}

void kept_list_forget(const struct source *source)
{
    AUTO_FREE char *identity = NULL;

    if (may_have_kept(source) && identity_of(source, &identity) == 0)
        kept_list_put(source, identity, NULL, 0);
}
