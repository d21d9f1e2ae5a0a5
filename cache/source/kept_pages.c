/* Kept lists of remotes: one index of the index store for each source. */
#include "cache/source/kept_pages.h"

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
#include "cache/source/source.h"

#define KIND  "listing" /* of local files, too: with other identities */
#define MAGIC UINT64_C(0x0153454741504645)

/* ---- pages ---- */

int kept_pages_add(struct kept_pages *pages, const char *text, uint64_t hash)
{
    size_t len = strlen(text) + 1;

    if (array_capacity(&pages->page, pages->n, sizeof(*pages->page)) < 0)
        return -ENOMEM;
    if (pages->texts_len + len > pages->texts_capacity) {
        size_t capacity = 2 * pages->texts_capacity + len + 64;
        char *grown = realloc(pages->texts, capacity);

        if (!grown)
            return -ENOMEM;
        pages->texts = grown;
        pages->texts_capacity = capacity;
    }
    memcpy(pages->texts + pages->texts_len, text, len);
    pages->page[pages->n++] = (struct kept_page){hash, pages->texts_len};
    pages->texts_len += len;
    return 0;
}

size_t kept_pages_find(const struct kept_pages *pages, const char *text)
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

void kept_pages_sort(struct kept_pages *pages)
{
    size_t kept = 0;

    if (pages->n)
        qsort_r(pages->page, pages->n, sizeof(*pages->page), compare_pages, pages->texts);
    for (size_t i = 0; i < pages->n; i++)
        if (!kept ||
            strcmp(pages->texts + pages->page[kept - 1].text, kept_page_text(pages, i)) != 0)
            pages->page[kept++] = pages->page[i];
    pages->n = kept;
}

void kept_pages_release(struct kept_pages *pages)
{
    if (!pages->bytes.bytes) {
        free(pages->page);
        free(pages->texts);
    }
    members_release(&pages->files);
    kept_index_release(&pages->bytes);
    *pages = (struct kept_pages){0};
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

int kept_pages_parse(struct kept_pages *ret)
{
    const uint8_t *bytes = ret->bytes.bytes;
    size_t size = ret->bytes.size;
    struct kept_pages pages = {.n = 0};
    struct kept_pages_head head;
    uint64_t pages_len;
    int r;

    if (size < sizeof(head))
        return -EBADMSG;
    memcpy(&head, bytes, sizeof(head));
    if (head.magic != MAGIC || head.hash != XXH3_64bits(bytes + 16, size - 16))
        return -EBADMSG;
    bytes += sizeof(head);
    size -= sizeof(head);
    if (!checked_mul(head.n, sizeof(*pages.page), &pages_len) || pages_len > size ||
        head.texts_len % 8 || head.texts_len > size - pages_len ||
        (head.texts_len && bytes[pages_len + head.texts_len - 1]))
        return -EBADMSG;
    pages.page = (struct kept_page *)(uintptr_t)bytes;
    pages.n = head.n;
    pages.texts = (char *)(uintptr_t)(bytes + pages_len);
    pages.texts_len = head.texts_len;
    for (size_t i = 0; i < pages.n; i++)
        if (pages.page[i].text >= pages.texts_len ||
            (i && strcmp(kept_page_text(&pages, i - 1), kept_page_text(&pages, i)) >= 0))
            return -EBADMSG;
    bytes += pages_len + head.texts_len;
    size -= pages_len + head.texts_len;
    r = members_from_bytes(bytes, size, &pages.files);
    if (r < 0 || !is_sound(&pages.files))
        return -EBADMSG;
    pages.bytes = ret->bytes;
    *ret = pages;
    return 0;
}

/* ---- in the cache folder ---- */

static int identity_of(const struct source *source, char **ret)
{
    return asprintf(ret, "pages 1 %u:%u %s %s", (unsigned)geteuid(), (unsigned)getegid(),
                    source->root, source->base) < 0
               ? -ENOMEM
               : 0;
}

/* Most sources have too few files, and a mount of these makes no cache folder for a list. */
static bool may_have_kept(const struct source *source)
{
    char path[PATH_MAX];

    return source->cache.path &&
           snprintf(path, sizeof(path), "%s/" KIND, source->cache.path) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

int kept_pages_load(const struct source *source, struct kept_pages *ret)
{
    AUTO_KEPT_PAGES struct kept_pages pages = {0};
    AUTO_FREE char *identity = NULL;
    struct index_files keep;

    if (source_asks_all(source) || !may_have_kept(source) || identity_of(source, &identity) < 0)
        return -ENOENT;
    index_files_init(&keep, &source->cache);
    if (index_store_load(&keep.keep, KIND, identity, &pages.bytes) < 0)
        return -ENOENT;
    if (kept_pages_parse(&pages) < 0) {
        index_store_remove(&keep.keep, KIND, identity);
        return -ENOENT;
    }
    *ret = pages;
    pages = (struct kept_pages){0};
    return 0;
}

int kept_pages_bytes(struct kept_pages *pages, const struct members *files,
                     struct kept_pages_pieces *ret)
{
    static const char zeros[8] = "";
    size_t padding = -pages->texts_len & 7;
    struct iovec *piece = ret->piece;
    XXH3_state_t *state = XXH3_createState();

    if (!state)
        return -ENOMEM;
    kept_pages_sort(pages);
    ret->head = (struct kept_pages_head){
        .magic = MAGIC, .n = pages->n, .texts_len = pages->texts_len + padding};
    piece[0] = (struct iovec){&ret->head, sizeof(ret->head)};
    piece[1] = (struct iovec){pages->page, pages->n * sizeof(*pages->page)};
    piece[2] = (struct iovec){pages->texts, pages->texts_len};
    piece[3] = (struct iovec){(void *)(uintptr_t)zeros, padding};
    members_bytes(files, &ret->members, piece + 4);
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &ret->head.n, sizeof(ret->head) - 16);
    for (unsigned i = 1; i < ARRAY_LEN(ret->piece); i++)
        XXH3_64bits_update(state, piece[i].iov_base, piece[i].iov_len);
    ret->head.hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return 0;
}

void kept_pages_save(const struct source *source, struct kept_pages *pages,
                     const struct members *files)
{
    AUTO(kept_index_release) struct kept_index again = {0};
    AUTO_FREE char *identity = NULL;
    struct kept_pages_pieces pieces;
    struct index_files keep;
    struct diag d = DIAG_INIT;

    if (source_asks_all(source) || identity_of(source, &identity) < 0 ||
        kept_pages_bytes(pages, files, &pieces) < 0)
        return;
    index_files_init(&keep, &source->cache);
    index_store_remove(&keep.keep, KIND, identity); /* what is there is not replaced */
    index_store_save(&keep.keep, KIND, identity, source->root, pieces.piece,
                     ARRAY_LEN(pieces.piece), &again, &d);
}

void kept_pages_forget(const struct source *source)
{
    AUTO_FREE char *identity = NULL;
    struct index_files keep;

    if (!may_have_kept(source) || identity_of(source, &identity) < 0)
        return;
    index_files_init(&keep, &source->cache);
    index_store_remove(&keep.keep, KIND, identity);
}
