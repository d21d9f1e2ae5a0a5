/* Joined blobs that come through a stage: files of web servers and S3, and local ones with cache=.
 * The stage has one file for all members; cache/source/joined_transport.c fetches them.
 *
 * The version of that file is the identity of the table of members. So a folder with another
 * listing is another staged file, and none ever has members of two listings. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/sha256.h"
#include "cache/source/joined.h"
#include "cache/source/joined_transport.h"
#include "cache/source/remote.h"
#include "cache/source/sha256sums.h"
#include "cache/source/source.h"

struct staged_parts {
    struct joined_parts parts; /* first */
    struct members members;    /* owned */
    uint8_t *sha256;           /* owned, of the members; NULL: unknown */
    const struct source *source;
};

/* For a remote: what was listed. */
static int where_remote(const struct joined_parts *parts, size_t i, char **ret_url,
                        struct remote_version *ret_version)
{
    const struct staged_parts *staged = (const struct staged_parts *)parts;

    if (!joined_version_get(&staged->members, i, ret_version))
        return -ESTALE;
    ret_version->time_counts =
        !staged->source->etag_suffices && joined_version_needs_time(ret_version);
    return known_url(staged->source, &staged->members, i, ret_url);
}

/* For this machine: a member may be a link, or become one. As a file of its own it would be staged
 * under its real path, so that is what is opened here as well. */
static int where_local(const struct joined_parts *parts, size_t i, char **ret_url,
                       struct remote_version *ret_version)
{
    const struct staged_parts *staged = (const struct staged_parts *)parts;
    const struct source *source = staged->source;
    char path[PATH_MAX], whole[PATH_MAX];
    AUTO_FREE char *real = NULL;
    struct file_version version;
    struct stat st;

    if (members_path(&staged->members, i, path, sizeof(path)) < 0 ||
        snprintf(whole, sizeof(whole), "%s/%s", source->root, path) >= (int)sizeof(whole))
        return -ESTALE;
    real = realpath(whole, NULL);
    if (!real && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        return -errno;
    if (!real || within_check_real(&source->within, real, path, NULL) < 0)
        return -ESTALE;
    if (stat(real, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
    if (!joined_version_is(&staged->members, i, &st))
        return -ESTALE;
    version = file_version_of(&st);
    *ret_version = (struct remote_version){.size = version.size, .mtime = version.mtime};
    file_version_print(&version, ret_version->etag);
    *ret_url = TAKE_PTR(real);
    return 0;
}

static void parts_free(struct joined_parts *parts)
{
    struct staged_parts *staged = (struct staged_parts *)parts;

    members_release(&staged->members);
    free(staged->sha256);
    free(staged);
}

/* Find the SHA-256 of the members of a remote. 0 or -ENOMEM. */
static int find_sums(const struct source *source, struct staged_parts *staged)
{
    const struct known *known = &source->known;
    const struct members *m = &staged->members;

    if (!source->remote->far || !known->sha256)
        return 0;
    staged->sha256 = calloc(m->n + 1, SHA256_LEN);
    if (!staged->sha256)
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++) {
        const char *folder = members_folder_of(m, i);
        size_t k = members_lookup(&known->files, folder, strlen(folder), members_name(m, i));

        if (k < known->files.n)
            memcpy(staged->sha256 + i * SHA256_LEN, known->sha256 + k * SHA256_LEN, SHA256_LEN);
    }
    staged->parts.sha256 = staged->sha256;
    return 0;
}

/* Where the joined file is, for the key of the staged file and for people. */
static int key_of(const struct source *source, const char *folder, char **ret)
{
    const char *base = source->base ? source->base : source->root;
    const char *joint = base[strlen(base) - 1] == '/' ? "" : "/";

    return text_print(ret, "%s%s%s%s", base, joint, folder, *folder ? "/" : "");
}

/* Where a group shares the cache folder, others may have staged members that this user may not
 * read: then he has a staged file of his own, with those who may read the same. The version of its
 * file becomes another one. 0 or -ENOMEM. */
static int without_unreadable(const struct staged_parts *staged, struct remote_version *version)
{
    AUTO_DIGEST struct digest *unreadable = NULL;
    uint8_t digest[DIGEST_BYTES];
    char hex[DIGEST_TEXT_SIZE];
    size_t len = strlen(version->etag), n = 0;
    int error = digest_new(&unreadable);

    for (size_t i = 0; i < staged->members.n && error == 0; i++) {
        struct remote_version unused;
        AUTO_FREE char *path = NULL;
        AUTO_CLOSE int fd = -1;
        struct stat st;
        int r = where_local(&staged->parts, i, &path, &unused);

        if (r == 0)
            r = file_open(path, &fd, &st);
        if (r == -ENOMEM)
            return r;
        if (r != -EACCES && r != -EPERM)
            continue;
        n++;
        error = digest_add(unreadable, &i, sizeof(i));
    }
    if (error == 0)
        error = digest_finish(unreadable, digest);
    if (error == 0 && n) { /* half of the digits: all of them do not fit */
        digest_text(digest, hex);
        snprintf(version->etag + len, sizeof(version->etag) - len, " without %.32s", hex);
    }
    return error;
}

int joined_staged(const struct source *source, const struct joined_head *head,
                  struct members *members, struct blob **ret, struct diag *d)
{
    struct staged_parts *staged = calloc(1, sizeof(*staged));
    struct remote_version version = {.size = members_end(members), .mtime = head->mtime};
    AUTO_FREE char *key = NULL, *identity = NULL;
    char url[JOINED_URL_SIZE];
    int r;

    if (!staged || joined_identity(members, "", &identity) < 0 ||
        key_of(source, head->name, &key) < 0) {
        free(staged);
        return -ENOMEM;
    }
    *staged =
        (struct staged_parts){.parts = {.members = &staged->members,
                                        .where = source->remote->far ? where_remote : where_local,
                                        .free = parts_free},
                              .members = *members,
                              .source = source};
    *members = (struct members){0};
    snprintf(version.etag, sizeof(version.etag), "%s", identity);
    r = find_sums(source, staged);
    if (r == 0 && !source->remote->far && source_asks_all(source))
        r = without_unreadable(staged, &version);
    if (r < 0) {
        parts_free(&staged->parts);
        return r;
    }
    r = joined_transport_add(source->joins, &staged->parts, url);
    if (r == 0 && source->remote->far)
        r = known_taken(known_of(source), &staged->members, staged->sha256);
    if (r < 0)
        return r;
    return stage_add(source->stage,
                     &(struct stage_file){.url = url,
                                          .key = key,
                                          .name = *head->name ? head->name : ".",
                                          .version = &version,
                                          .mode = head->mode,
                                          .uid = head->uid,
                                          .gid = head->gid,
                                          .parts = &staged->members},
                     ret, d);
}
