/* What the places of credentials read: the environment, the shared files of AWS's tools and files
 * of tokens. Texts are wiped when they are released. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/disk/home.h"
#include "cache/disk/local_file.h"
#include "cache/http/credentials_parse.h"
#include "cache/http/credentials_parts.h"

#define FILE_MOST (1u << 20)

void credentials_loaded_release(struct loaded *loaded)
{
    http_secret_release(&loaded->secret);
    *loaded = (struct loaded){0};
}

const char *credentials_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

int credentials_copy(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

struct shared_file credentials_file(bool is_config)
{
    const char *path =
        credentials_variable(is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE");
    const char *name = is_config ? "/.aws/config" : "/.aws/credentials";
    struct shared_file ret = {.is_config = is_config};

    if (path) {
        snprintf(ret.path, sizeof(ret.path), "%s", path);
        snprintf(ret.shown, sizeof(ret.shown), "%s", path);
    } else {
        if (!home_path(name, ret.path, sizeof(ret.path)))
            snprintf(ret.path, sizeof(ret.path), "%s", name);
        snprintf(ret.shown, sizeof(ret.shown), "~%s", name);
    }
    return ret;
}

/* Read all of a small file. 1; 0: it is missing; or -errno with the reason in d. */
static int read_small(const char *path, const char *shown, struct text *ret, struct diag *d)
{
    AUTO_CLOSE int fd = -1;
    struct stat st;
    AUTO_SECRET struct text text = {0};
    int r = file_open(path, &fd, &st);

    if (r == -ENOENT || r == -ENOTDIR)
        return 0;
    if (r < 0 || st.st_size > FILE_MOST)
        return diag_set(d, r < 0 ? r : -EFBIG, "%s: %s", shown, strerror(r < 0 ? -r : EFBIG));
    text.data = malloc((size_t)st.st_size + 1);
    if (!text.data)
        return -ENOMEM;
    text.len = (size_t)st.st_size;
    text.capacity = text.len + 1;
    text.data[text.len] = '\0';
    r = file_pread(fd, text.data, text.len, 0);
    if (r < 0)
        return diag_set(d, r, "%s: %s", shown, strerror(-r));
    *ret = text;
    text = (struct text){0};
    return 1;
}

int credentials_read_token(const char *path, const char *what, struct text *ret, struct diag *d)
{
    int r = read_small(path, what, ret, d);

    if (r <= 0)
        return r < 0 ? r : diag_set(d, -ENOENT, "%s: expected a file, got none", what);
    while (ret->len && strchr("\r\n \t", ret->data[ret->len - 1]))
        ret->data[--ret->len] = '\0';
    return 0;
}

/* Get a value of the profile in one of the files; key NULL: is the profile there? */
int credentials_of_profile(const struct credentials *c, bool in_config, const char *key, char **ret,
                           struct diag *d)
{
    const struct shared_file file = credentials_file(in_config);
    AUTO_SECRET struct text text = {0};
    int r = read_small(file.path, file.shown, &text, d);

    return r > 0 ? profile_get(text.data, text.len, c->profile, in_config, key, ret) : r;
}
