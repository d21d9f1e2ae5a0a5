/* How the files of a remote become known: added, sorted, with their SHA-256 and versions. One
 * thread fills source->known (cache/source/known.h) while it opens the source. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/http/url.h"
#include "cache/source/joined.h"
#include "cache/source/remote.h"
#include "cache/source/sha256sums.h"

#define STAT_AT_ONCE 1024
#define NOTE_MOST    4096 /* bytes of notes */

void remote_note(struct source *source, const char *format, ...)
{
    va_list args;
    char line[512];

    if (source->note.len > NOTE_MOST)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    text_plain(line, "");
    text_add(&source->note, "%s\n", line);
    if (source->note.len > NOTE_MOST)
        text_add(&source->note, "...\n");
}

int remote_add_wrong(struct source *source, const char *path, const char *wrong)
{
    char name[128], shown[256], error[512];

    name_show(path, shown, sizeof(shown));
    name_show(path, name, sizeof(name));
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    if (*name == '.')
        *name = '_';
    snprintf(error, sizeof(error), "%s: expected names that files can have, got %s",
             *shown ? shown : "the listing", wrong);
    return known_add_failed(&source->known, *name ? name : "_", error, -EINVAL);
}

int remote_add(struct source *source, const char *path, const struct remote_version *version)
{
    const char *wrong = name_wrong(path);

    if (wrong)
        return remote_add_wrong(source, path, wrong);
    return name_hidden(path) ? 0 : known_add(&source->known, path, version);
}

/* Lines of SHA256SUMS that are omitted, by the reason. */
struct left_out {
    const char *why[8];
    size_t lines[8], n;
};

/* Further reasons count as the eighth. */
static void count_left_out(struct left_out *left_out, const char *why)
{
    size_t i = 0;

    while (i < left_out->n && strcmp(left_out->why[i], why) != 0)
        i++;
    if (i == ARRAY_LEN(left_out->why))
        i--;
    else if (i == left_out->n)
        left_out->why[left_out->n++] = why;
    left_out->lines[i]++;
}

static void note_left_out(struct source *source, const struct left_out *left_out, size_t total)
{
    char reasons[400] = "";
    size_t all = 0, len = 0;

    for (size_t i = 0; i < left_out->n; i++) {
        all += left_out->lines[i];
        if (len < sizeof(reasons))
            len += (size_t)snprintf(reasons + len, sizeof(reasons) - len, "%s%s (%zu)",
                                    i ? ", " : "", left_out->why[i], left_out->lines[i]);
    }
    remote_note(source, "SHA256SUMS: %zu of %zu lines ignored: %s", all, total, reasons);
}

int remote_use_sums(struct source *source, const struct text *sums, bool lists, size_t *ret_files)
{
    struct known *known = &source->known;
    size_t at = 0, n = 0, line = 0;
    struct left_out left_out = {0};
    const char *why = "";
    struct sum sum;
    int r;

    while ((r = sums_next(sums->data, sums->len, &at, &sum, &why)) != 0) {
        line++;
        if (r == -EINVAL)
            count_left_out(&left_out, why);
        if (r < 0)
            continue;
        n++;
        r = lists ? remote_add(source, sum.path, NULL) : 0;
        if (r < 0)
            return r;
    }
    if (n && left_out.n)
        note_left_out(source, &left_out, line);
    r = lists ? known_sort(known) : 0;
    if (r < 0)
        return r;
    for (at = 0; (r = sums_next(sums->data, sums->len, &at, &sum, &why)) != 0;) {
        size_t i = r > 0 ? known_index(known, sum.path) : known->files.n;

        if (i < known->files.n && known_set_sha256(known, i, sum.sha256) < 0)
            return -ENOMEM;
    }
    *ret_files = n;
    return 0;
}

/* ---- versions ---- */

int remote_stat_list(const struct source *source, struct source_list *list)
{
    AUTO_FREE struct http_file *file = calloc(list->n + 1, sizeof(*file));
    size_t n = 0;

    if (!file)
        return -ENOMEM;
    for (size_t i = 0; i < list->n; i++)
        if (!list->entry[i].version && !list->entry[i].error)
            file[n++].url = list->entry[i].url;
    http_stat(source->http, n, file);
    n = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct source_entry *entry = &list->entry[i];

        if (entry->version || entry->error)
            continue;
        entry->failure = file[n].error;
        if (entry->failure < 0)
            entry->error = strdup(diag_text(&file[n].why, entry->failure));
        else
            entry->version = malloc(sizeof(*entry->version));
        if (!entry->error && !entry->version)
            return -ENOMEM;
        if (entry->version)
            *entry->version = file[n].version;
        n++;
    }
    return 0;
}

/* What becomes of the files: those that have no version are removed, the others have a size. */
struct sized {
    uint8_t *keep;
    uint64_t *size;
};

static void sized_release(struct sized *sized)
{
    free(sized->keep);
    free(sized->size);
}

/* The remote tells no version of the file: its sum stands for it, or else what no other mount has.
 */
static void set_unversioned(struct source *source, size_t file)
{
    const uint8_t *sha256 = sum_at(source->known.sha256, file);
    struct member *member = &source->known.files.member[file];

    member->version[0] = stage_own_number(source->stage);
    if (sha256)
        memcpy(member->version, sha256, sizeof(member->version));
}

/* Set the version of a file that was asked for, or move it to those that failed. */
static int use_stat(struct source *source, size_t i, const struct http_file *file,
                    struct sized *sized)
{
    struct known *known = &source->known;
    char path[PATH_MAX];
    int r;

    if (file->error < 0) {
        sized->keep[i] = 0;
        r = members_path(&known->files, i, path, sizeof(path));
        return r < 0
                   ? r
                   : known_add_failed(known, path, diag_text(&file->why, file->error), file->error);
    }
    sized->size[i] = file->version.size;
    r = joined_version_set(&known->files, i, &file->version);
    if (r == 0 && !remote_version_is_known(&file->version))
        set_unversioned(source, i);
    return r;
}

/* Ask for the versions of some files, from *at on. */
static int stat_some(struct source *source, size_t *at, struct sized *sized, bool *asked)
{
    AUTO_FREE struct http_file *file = calloc(STAT_AT_ONCE, sizeof(*file));
    const struct members *files = &source->known.files;
    size_t number[STAT_AT_ONCE], n = 0;
    int r = file ? 0 : -ENOMEM;

    for (; r == 0 && *at < files->n && n < STAT_AT_ONCE; ++*at) {
        sized->keep[*at] = 1;
        sized->size[*at] = members_size(files, *at);
        if (files->member[*at].more && !source_asks_all(source))
            continue;
        number[n] = *at;
        r = known_url(source, files, *at, &file[n++].url);
    }
    if (r == 0)
        http_stat(source->http, n, file);
    *asked = *asked || n;
    for (size_t i = 0; i < n; i++) {
        if (r == 0)
            r = use_stat(source, number[i], &file[i], sized);
        free(file[i].url);
    }
    return r;
}

/* Say how many files have no version. */
static void note_unversioned(struct source *source)
{
    const struct known *known = &source->known;
    size_t n = 0;

    for (size_t i = 0; i < known->files.n; i++) {
        struct remote_version version;

        n += joined_version_get(&known->files, i, &version) && !remote_version_is_known(&version) &&
             !sum_at(known->sha256, i);
    }
    if (n)
        remote_note(source,
                    "%zu of %zu files have no version: the server sends neither ETag nor "
                    "Last-Modified. If such a file changes, a mount does not notice it, and later "
                    "mounts do not use what is staged. List the files in SHA256SUMS",
                    n, known->files.n);
}

int remote_stat(struct source *source, bool *ret_asked, struct diag *d)
{
    struct known *known = &source->known;
    size_t n = known->files.n, at = 0;
    AUTO(sized_release) struct sized sized = {calloc(n + 1, 1), calloc(n + 1, sizeof(uint64_t))};
    int r = sized.keep && sized.size ? 0 : -ENOMEM;
    bool asked = false;

    while (r == 0 && at < n)
        r = stat_some(source, &at, &sized, &asked);
    if (r == 0)
        r = known_keep(known, sized.keep, sized.size);
    if (r == 0)
        note_unversioned(source);
    if (r == 0)
        *ret_asked = asked;
    return r == -E2BIG
               ? diag_set(d, r, "%s: too many files, or too large, for one mount", source->root)
               : r;
}
