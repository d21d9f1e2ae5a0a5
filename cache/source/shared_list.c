/* Lists of files in `.epochfs/`. One that was read is kept in the cache folder by its SHA-256, and
 * one byte under another name says that it was found wrong here. */
#include "cache/source/shared_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/disk/index_files.h"
#include "cache/source/listing.h"
#include "cache/source/remote.h"
#include "cache/source/shared_index.h"

#define KIND "listing"

static int kept_identity(const char *sum, char **ret)
{
    return asprintf(ret, "shared 1 %s", sum) < 0 ? -ENOMEM : 0;
}

static int refused_identity(const struct source *source, const char *sum, char **ret)
{
    return asprintf(ret, "shared 1 %s wrong for %s", sum, source->base) < 0 ? -ENOMEM : 0;
}

static bool was_refused(const struct source *source, const char *sum)
{
    AUTO(kept_index_release) struct kept_index kept = {0};
    AUTO_FREE char *identity = NULL;
    struct index_files keep;

    index_files_init(&keep, &source->cache);
    return refused_identity(source, sum, &identity) < 0 ||
           index_store_load(&keep.keep, KIND, identity, &kept) == 0;
}

void shared_list_forget(const struct source *source)
{
    AUTO(kept_index_release) struct kept_index again = {0};
    AUTO_FREE char *identity = NULL;
    struct index_files keep;
    char mark[] = "-";

    if (!source->shared_list || refused_identity(source, source->shared_list, &identity) < 0)
        return;
    index_files_init(&keep, &source->cache);
    index_store_save(&keep.keep, KIND, identity, source->root, &(struct iovec){mark, 1}, 1, &again,
                     NULL);
}

void shared_list_refuse(struct source *source, const char *why)
{
    remote_note(source,
                SHARED_INDEX_FOLDER "/: its list of files is ignored, and the mount makes its "
                                    "own: %s; `epochfs index` makes it again",
                why);
    free(source->shared_list);
    source->shared_list = NULL;
}

size_t shared_list_sample(size_t n, size_t ret[static SHARED_SAMPLES])
{
    size_t many = (size_t)min_u64(n, SHARED_SAMPLES);

    for (size_t i = 0; i < many; i++)
        ret[i] = many > 1 ? (n - 1) * i / (many - 1) : 0;
    return many;
}

/* Read the table. 0; -ENOENT: there is none. */
static int read_table(struct source *source)
{
    AUTO_TEXT struct text t = {0};
    struct shared_table *table = calloc(1, sizeof(*table));
    struct timespec ignored;
    struct diag d = DIAG_INIT;
    char *text;
    size_t len;
    int r = table ? 0 : -ENOMEM;

    if (r == 0)
        r = shared_read_file(source, SHARED_INDEX_TABLE, REMOTE_TEXT_MOST, &t, &ignored, &d);
    if (r == 0)
        r = text_finish(&t, &text, &len);
    if (r == 0)
        r = shared_table_read(text, len, table, &d);
    if (r < 0 && r != -ENOENT && r != -EACCES)
        remote_note(source, SHARED_INDEX_FOLDER "/" SHARED_INDEX_TABLE ": ignored: %s",
                    diag_text(&d, r));
    if (table)
        source->shared = table; /* without lines, if it is not there: it is not asked for again */
    return r < 0 ? -ENOENT : 0;
}

static int load_kept(const struct source *source, const char *sum, struct kept_index *ret)
{
    AUTO_FREE char *identity = NULL;
    struct index_files keep;
    int r = kept_identity(sum, &identity);

    index_files_init(&keep, &source->cache);
    return r < 0 ? r : index_store_load(&keep.keep, KIND, identity, ret);
}

/* Fetch the list, and keep it. */
static int fetch(struct source *source, const struct shared_line *line, struct kept_index *ret)
{
    AUTO_TEXT struct text t = {0};
    AUTO_FREE char *identity = NULL;
    struct index_files keep;
    struct diag d = DIAG_INIT;
    char *bytes;
    int r = shared_read_line(source, line, &t, &d);

    if (r < 0) {
        shared_list_refuse(source, diag_text(&d, r));
        return -ENOENT;
    }
    r = kept_identity(line->sum, &identity);
    if (r < 0)
        return r;
    index_files_init(&keep, &source->cache);
    index_store_remove(&keep.keep, KIND, identity); /* one that is damaged */
    if (index_store_save(&keep.keep, KIND, identity, source->root, &(struct iovec){t.data, t.len},
                         1, ret, NULL) == 0)
        return 0;
    *ret = (struct kept_index){.size = t.len};
    r = text_finish(&t, &bytes, NULL);
    ret->bytes = r == 0 ? (uint8_t *)bytes : NULL;
    return r;
}

static int parse(struct kept_index *kept, struct kept_pages *ret)
{
    AUTO_KEPT_PAGES struct kept_pages pages = {.bytes = *kept};

    *kept = (struct kept_index){0};
    if (kept_pages_parse(&pages) < 0 || pages.files.n < LISTING_KEPT)
        return -ENOENT;
    *ret = pages;
    pages = (struct kept_pages){0};
    return 0;
}

int shared_list_load(struct source *source, struct kept_pages *ret)
{
    struct kept_index kept = {0};
    const struct shared_line *line;
    int r;

    if (source->indexes || source_asks_all(source) || source->shared || read_table(source) < 0 ||
        !source->shared->listing.name)
        return -ENOENT;
    line = &source->shared->listing;
    if (was_refused(source, line->sum))
        return -ENOENT;
    source->shared_list = strdup(line->sum);
    if (!source->shared_list)
        return -ENOMEM;
    if (load_kept(source, line->sum, &kept) == 0 && parse(&kept, ret) == 0)
        return 0;
    r = fetch(source, line, &kept);
    if (r < 0)
        return r;
    r = parse(&kept, ret);
    if (r < 0)
        shared_list_refuse(source, "expected a list of files, got something else");
    return r;
}

int shared_list_note(struct source *source, struct kept_pages *pages)
{
    const struct members *files = &source->known.files;
    struct kept_pages_pieces pieces;

    if (!source->indexes || files->n < LISTING_KEPT || source->known.failed.n)
        return 0;
    if (kept_pages_bytes(pages, files, &pieces) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < ARRAY_LEN(pieces.piece); i++)
        text_add_bytes(&source->whole, pieces.piece[i].iov_base, pieces.piece[i].iov_len);
    return source->whole.failed ? -ENOMEM : 0;
}
