/* Lists of files in `.epochfs/`. One that was read is kept in the cache folder by its SHA-256, and
 * one byte under another name says that it was found wrong here. */
#include "cache/source/shared_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/source/listing.h"
#include "cache/source/remote.h"
#include "cache/source/shared_index.h"

static int kept_identity(const char *sum, char **ret)
{
    return text_print(ret, "shared 3 %s", sum);
}

static int refused_identity(const struct source *source, const char *sum, char **ret)
{
    return text_print(ret, "shared 3 %s wrong for %s", sum,
                      source->named ? source->named : source->base);
}

static bool was_refused(const struct source *source, const char *sum)
{
    AUTO(kept_index_release) struct kept_index kept = {0};
    AUTO_FREE char *identity = NULL;

    return refused_identity(source, sum, &identity) < 0 ||
           kept_list_get(source, identity, &kept) == 0;
}

void shared_list_forget(const struct source *source)
{
    AUTO_FREE char *identity = NULL;
    char mark[] = "-";

    if (source->shared_list && refused_identity(source, source->shared_list, &identity) == 0)
        kept_list_put(source, identity, &(struct iovec){mark, 1}, 1);
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
static int shared_list_read_table(struct source *source)
{
    struct shared_table *table = calloc(1, sizeof(*table));
    struct diag d = DIAG_INIT;
    int r = table ? shared_read_table(source, table, &d) : -ENOMEM;

    if (r < 0 && r != -ENOENT && r != -EACCES)
        remote_note(source, SHARED_INDEX_FOLDER "/" SHARED_INDEX_TABLE ": ignored: %s",
                    diag_text(&d, r));
    source->shared = table; /* without lines, if it is not there: it is not asked for again */
    return r < 0 ? -ENOENT : 0;
}

/* Fetch the list, and keep it. 0; -ENOENT: it is of no use; or -ENOMEM. */
static int fetch(struct source *source, const struct shared_line *line, const char *identity,
                 struct kept_list *ret)
{
    AUTO_KEPT_LIST struct kept_list list = {0};
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    char *bytes;
    int r = shared_read_line(source, line, NULL, &t, &d);

    if (r == 0)
        r = text_finish(&t, &bytes, &list.bytes.size);
    if (r == 0) {
        list.bytes.bytes = (uint8_t *)bytes;
        r = kept_list_parse(&list, true);
    }
    if (r == 0 && list.files.n < LISTING_KEPT)
        r = -EBADMSG;
    if (r < 0) {
        shared_list_refuse(source, r == -EBADMSG && !d.set
                                       ? "expected a list of files, got something else"
                                       : diag_text(&d, r));
        return r == -ENOMEM ? r : -ENOENT;
    }
    kept_list_put(source, identity, &(struct iovec){list.bytes.bytes, list.bytes.size}, 1);
    *ret = list;
    list = (struct kept_list){0};
    return 0;
}

int shared_list_load(struct source *source, struct kept_list *ret)
{
    AUTO_FREE char *identity = NULL;
    const struct shared_line *line;

    if (source->indexes || source_asks_all(source) || source->shared ||
        shared_list_read_table(source) < 0 || !source->shared->listing.name)
        return -ENOENT;
    line = &source->shared->listing;
    if (was_refused(source, line->sum))
        return -ENOENT;
    source->shared_list = strdup(line->sum);
    if (!source->shared_list || kept_identity(line->sum, &identity) < 0)
        return -ENOMEM;
    return kept_list_load(source, identity, ret) == 0 ? 0 : fetch(source, line, identity, ret);
}

int shared_list_note(struct source *source, struct kept_list *pages)
{
    const struct members *files = &source->known.files;
    struct kept_list_pieces pieces;

    if (!source->indexes || files->n < LISTING_KEPT || source->known.failed.n)
        return 0;
    if (kept_list_bytes(pages, files, &pieces) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < ARRAY_LEN(pieces.piece); i++)
        text_add_bytes(&source->whole, pieces.piece[i].iov_base, pieces.piece[i].iov_len);
    return source->whole.failed ? -ENOMEM : 0;
}
