/* Reads the files of `.epochfs/`, on this machine or on a server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cache/disk/local_file.h"
#include "cache/source/remote.h"
#include "cache/source/shared_index.h"

int shared_index_digest(const void *bytes, size_t len, char ret[static DIGEST_TEXT_SIZE])
{
    AUTO_DIGEST struct digest *digest = NULL;
    uint8_t sum[DIGEST_BYTES];
    int r = digest_new(&digest);

    if (r == 0)
        r = digest_add(digest, bytes, len);
    if (r == 0)
        r = digest_finish(digest, sum);
    if (r == 0)
        digest_text(sum, ret);
    return r;
}

static int read_local(const struct source *source, const char *name, size_t most, struct text *ret,
                      struct timespec *ret_time)
{
    AUTO_FREE char *path = NULL, *bytes = NULL;
    AUTO_CLOSE int fd = -1;
    struct stat st;
    int r;

    if (text_print(&path, "%s/" SHARED_INDEX_FOLDER "/%s", source->root, name) < 0)
        return -ENOMEM;
    r = file_open(path, &fd, &st);
    if (r < 0)
        return r;
    if ((uint64_t)st.st_size > most)
        return -EFBIG;
    bytes = malloc((size_t)st.st_size + 1);
    if (!bytes)
        return -ENOMEM;
    r = file_pread(fd, bytes, (size_t)st.st_size, 0);
    if (r == 0)
        text_add_bytes(ret, bytes, (size_t)st.st_size);
    *ret_time = st.st_mtim;
    return r;
}

int shared_read_file(const struct source *source, const char *name, size_t most, struct text *ret,
                     struct timespec *ret_time, struct diag *d)
{
    AUTO_FREE char *path = NULL, *url = NULL;
    int r;

    if (!source->remote->far)
        return read_local(source, name, most, ret, ret_time);
    if (source->stage && stage_silent(source->stage, d)) /* it would answer as little here */
        return -EREMOTEIO;
    if (text_print(&path, SHARED_INDEX_FOLDER "/%s", name) < 0)
        return -ENOMEM;
    r = remote_url(source, path, &url);
    return r < 0 ? r
                 : http_get(source->http, &(struct http_call){.url = url, .most = most, .tries = 2},
                            ret, d);
}

int shared_read_line(const struct source *source, const struct shared_line *line, struct text *ret,
                     struct diag *d)
{
    char sum[DIGEST_TEXT_SIZE];
    struct timespec ignored;
    int r = shared_read_file(source, line->name, (size_t)line->size, ret, &ignored, d);

    if (r == 0)
        r = ret->failed ? -ENOMEM : shared_index_digest(ret->data, ret->len, sum);
    if (r == 0 && (ret->len != line->size || strcmp(sum, line->sum) != 0))
        r = diag_set(d, -EBADMSG, "expected %llu bytes of SHA-256 %.8s..., got %zu of %.8s...",
                     (unsigned long long)line->size, line->sum, ret->len, sum);
    return r;
}
