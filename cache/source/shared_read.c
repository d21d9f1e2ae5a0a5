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

#define SHARED_TRIES 2 /* of a request: a mount can do without */

/* Read a file of `.epochfs/`. *ret_time: when it was written, if it is on this machine. */
static int shared_read_file(const struct source *source, const char *name, size_t most,
                            struct text *ret, struct timespec *ret_time, struct diag *d)
{
    AUTO_FREE char *path = NULL;
    struct stat st = {0};
    char *url = NULL;
    int r;

    if (!source->remote->far) {
        r = text_print(&path, "%s/" SHARED_INDEX_FOLDER "/%s", source->root, name);
        if (r == 0)
            r = file_read_whole(path, most, ret, &st);
        *ret_time = st.st_mtim;
        return r;
    }
    if (source->stage && stage_silent(source->stage, d)) /* it would not answer this either */
        return -EREMOTEIO;
    if (text_print(&path, SHARED_INDEX_FOLDER "/%s", name) == 0)
        remote_url(source, path, &url);
    return http_ahead_take(http_ahead_start(source->http, url, most, SHARED_TRIES), ret, NULL, d);
}

int shared_read_check(const struct shared_line *line, const char *bytes, size_t len, struct diag *d)
{
    char sum[DIGEST_TEXT_SIZE];
    int r = digest_text_of(bytes, len, sum);

    if (r == 0 && (len != line->size || strcmp(sum, line->sum) != 0))
        r = diag_set(d, -EBADMSG, "expected %llu bytes of SHA-256 %.8s..., got %zu of %.8s...",
                     (unsigned long long)line->size, line->sum, len, sum);
    return r;
}

int shared_read_line(const struct source *source, const struct shared_line *line, struct text *ret,
                     struct diag *d)
{
    struct timespec ignored;
    int r = shared_read_file(source, line->name, (size_t)line->size, ret, &ignored, d);

    if (r == 0)
        r = ret->failed ? -ENOMEM : shared_read_check(line, ret->data, ret->len, d);
    return r;
}

int shared_read_table(const struct source *source, struct shared_table *ret, struct diag *d)
{
    AUTO_TEXT struct text t = {0};
    struct timespec written = {0};
    char *text;
    size_t len;
    int r = shared_read_file(source, SHARED_INDEX_TABLE, REMOTE_TEXT_MOST, &t, &written, d);

    if (r == 0)
        r = text_finish(&t, &text, &len);
    if (r == 0)
        r = shared_table_read(text, len, ret, d);
    if (r == 0)
        ret->written = written;
    return r;
}
