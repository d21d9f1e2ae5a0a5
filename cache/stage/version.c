/* Versions as texts, and files of which the remote tells no version. What is staged of such a file
 * may be of any version by the time of the next mount, so only this stage uses it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cache/stage/parts.h"

uint64_t version_own_number(const struct stage *stage)
{
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        number = (uint64_t)stage_now(stage) ^ (uint64_t)getpid() << 40;
    return number;
}

uint64_t stage_own_number(const struct stage *stage)
{
    return stage->nonce;
}

int version_describe(const struct stage *stage, const struct stage_file *what, char **ret)
{
    const struct remote_version *version = what->version;
    bool has_time = !*version->etag || version->time_counts;
    char tail[DIGEST_TEXT_SIZE + 16] = "", sum[DIGEST_TEXT_SIZE] = "", *text;

    if (what->sha256)
        digest_text(what->sha256, sum);
    if (!remote_version_is_known(version) && what->sha256)
        snprintf(tail, sizeof(tail), " sha256 %s", sum);
    else if (!remote_version_is_known(version))
        snprintf(tail, sizeof(tail), " mount %016llx", (unsigned long long)stage->nonce);
    if (asprintf(&text, "%llu %s %lld.%09ld%s", (unsigned long long)version->size, version->etag,
                 has_time ? (long long)version->mtime.tv_sec : 0LL,
                 has_time ? version->mtime.tv_nsec : 0L, tail) < 0)
        return -ENOMEM;
    *ret = text;
    return 0;
}

void version_remove(const struct file *file)
{
    char path[PATH_MAX];

    if (!remote_version_is_known(&file->version) && !file->has_sha256 && *file->staged.id &&
        snprintf(path, sizeof(path), "%s/staged/%s", file->stage->cache->path, file->staged.id) <
            (int)sizeof(path))
        staged_remove(&file->stage->cache->group, path);
}
