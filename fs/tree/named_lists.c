#include "fs/tree/named_lists.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "base/scope.h"
#include "base/text.h"
#include "cache/disk/sha256.h"
#include "format/index/index.h"
#include "fs/plan/list_text.h"

#define FILE_MOST (UINT64_C(1) << 36) /* bytes */

/* The text of a file. */
struct list_text {
    char *bytes; /* owned */
    size_t len;
};

/* A file of a list. Its text is kept until a dataset has needed it, and is then read again for each
 * other dataset; it must be the same then. */
struct named_list {
    const struct option_list *option; /* its name and file */
    int fd;
    uint8_t sha256[DIGEST_BYTES]; /* of the text */
    struct list_text text;        /* bytes NULL: it was needed; guarded by the lock of the lists */
};

/* A list as samples of a dataset. */
struct known_list {
    const struct dataset *ds;
    const struct named_list *from;
    struct plan_list list;
    int error; /* 0, or why not: */
    struct diag why;
    struct known_list *next;
};

/* ---- files ---- */

static int no_list(const struct option_list *option, int r, const char *found, struct diag *d)
{
    return diag_set(d, r, "option subset=%s=%s: the file of keys cannot be read: %s", option->name,
                    option->file, found);
}

/* Read what the file has, from its start. The size may change meanwhile: no more than it was is
 * read. */
static int named_lists_read_bytes(int fd, uint64_t size, struct list_text *ret)
{
    AUTO_FREE char *bytes = malloc((size_t)size + 1);
    ssize_t len = bytes ? file_read_some(fd, bytes, (size_t)size, 0) : -ENOMEM;

    if (len < 0)
        return (int)len;
    *ret = (struct list_text){TAKE_PTR(bytes), (size_t)len};
    return 0;
}

static int named_lists_read_text(const struct named_list *list, struct list_text *ret,
                                 struct diag *d)
{
    struct stat st;
    int r = fstat(list->fd, &st) < 0 ? -errno : 0;

    if (r == 0 && !S_ISREG(st.st_mode))
        return no_list(list->option, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
                       S_ISDIR(st.st_mode) ? "a folder" : "no regular file", d);
    if (r == 0 && (uint64_t)st.st_size > FILE_MOST)
        r = -EFBIG;
    if (r == 0)
        r = named_lists_read_bytes(list->fd, (uint64_t)st.st_size, ret);
    return r < 0 ? no_list(list->option, r, strerror(-r), d) : 0;
}

static int digest_of(const struct list_text *text, uint8_t ret[static DIGEST_BYTES])
{
    AUTO_DIGEST struct digest *digest = NULL;
    int r = digest_new(&digest);

    if (r == 0)
        r = digest_add(digest, text->bytes, text->len);
    return r < 0 ? r : digest_finish(digest, ret);
}

static int named_lists_read_list(const struct option_list *option, struct named_list *ret,
                                 struct diag *d)
{
    int r;

    ret->option = option;
    /* A pipe must not block. */
    ret->fd = open(option->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (ret->fd < 0) {
        r = -errno;
        return no_list(option, r, strerror(-r), d);
    }
    r = named_lists_read_text(ret, &ret->text, d);
    if (r == 0)
        r = digest_of(&ret->text, ret->sha256);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ret->text.len; i++)
        if (ret->text.bytes[i] != '\n' && ret->text.bytes[i] != '\r')
            return 0;
    return diag_set(d, -EINVAL,
                    "option subset=%s=%s: expected a key or #number a line, got no line",
                    option->name, option->file);
}

/* Take the text, or read it again. */
static int named_lists_move_text(struct named_lists *lists, struct named_list *list,
                                 struct list_text *ret, struct diag *d)
{
    uint8_t sha256[DIGEST_BYTES];
    int r;

    lock_take(&lists->lock);
    *ret = list->text;
    list->text = (struct list_text){0};
    lock_drop(&lists->lock);
    if (ret->bytes)
        return 0;
    r = named_lists_read_text(list, ret, d);
    if (r == 0)
        r = digest_of(ret, sha256);
    if (r == 0 && memcmp(sha256, list->sha256, sizeof(sha256)) != 0)
        r = diag_set(
            d, -EINVAL,
            "option subset=%s=%s: expected the file that was there when the mount began, got "
            "another text in it; mount again",
            list->option->name, list->option->file);
    return r;
}

int named_lists_init(struct named_lists *ret, const struct options *options, bool back,
                     struct diag *d)
{
    int r = 0;

    *ret = (struct named_lists){.list = calloc(options->n_lists + 1, sizeof(*ret->list)),
                                .back = back};
    lock_init(&ret->lock);
    if (!ret->list)
        return -ENOMEM;
    for (; ret->n < options->n_lists && r == 0; ret->n++)
        r = named_lists_read_list(&options->list[ret->n], &ret->list[ret->n], d);
    return r;
}

void named_lists_release(struct named_lists *lists)
{
    if (!lists->list)
        return;
    for (size_t i = 0; i < lists->n; i++) {
        free(lists->list[i].text.bytes);
        if (lists->list[i].fd >= 0)
            close(lists->list[i].fd);
    }
    free(lists->list);
    for (struct known_list *k = lists->known, *next; k; k = next) {
        next = k->next;
        list_release(&k->list);
        free(k);
    }
    lock_release(&lists->lock);
    *lists = (struct named_lists){0};
}

/* ---- as samples ---- */

/* By the key itself, or by the name that its files have. */
static bool named_lists_find_key(const void *ctx, const char *key, size_t len, uint64_t *ret)
{
    const struct dataset *ds = ctx;

    return (ds->keys && len <= KEY_MAX && index_find(ds->keys, key, len, ret)) ||
           dataset_find(ds, key, len, ret);
}

static const struct known_list *find_known(struct named_lists *lists, const struct dataset *ds,
                                           const struct named_list *from)
{
    LOCK_SCOPE(&lists->lock);
    const struct known_list *k = lists->known;

    while (k && (k->ds != ds || k->from != from))
        k = k->next;
    return k;
}

/* Look the lines up, and keep what comes of it. Two threads may do so at once; both remain. */
static int named_lists_look_up(struct named_lists *lists, const struct dataset *ds,
                               struct named_list *from, const struct known_list **ret,
                               struct diag *d)
{
    AUTO_FREE struct known_list *k = calloc(1, sizeof(*k));
    struct list_text lines = {0};
    const struct list_samples samples = {
        .samples = ds->samples, .find = named_lists_find_key, .ctx = ds};
    AUTO_TEXT struct text name = {0};
    int r;

    text_add(&name, "subset=%s=%s", from->option->name, from->option->file);
    if (!k || name.failed)
        return -ENOMEM;
    k->ds = ds;
    k->from = from;
    r = named_lists_move_text(lists, from, &lines, d);
    if (r == 0)
        k->error =
            list_parse(name.data, lines.bytes, lines.len, &samples, lists->back, &k->list, &k->why);
    free(lines.bytes);
    if (r < 0)
        return r;
    if (k->error == -ENOMEM)
        return k->error;
    *ret = k;
    lock_take(&lists->lock);
    k->next = lists->known;
    lists->known = TAKE_PTR(k);
    lock_drop(&lists->lock);
    return 0;
}

static int no_such_list(const struct named_lists *lists, const char *name, struct diag *d)
{
    AUTO_TEXT struct text names = {0};

    for (size_t i = 0; i < lists->n; i++)
        text_add(&names, "%s%s", i ? ", " : "", lists->list[i].option->name);
    return diag_set(
        d, -EINVAL,
        "only: expected the name of a list that subset=NAME=FILE gives to the mount (%s), "
        "got '%s'",
        names.data ? names.data : "there is none", name);
}

int named_lists_get(struct named_lists *lists, const struct dataset *ds, const char *name,
                    const struct plan_list **ret, struct diag *d)
{
    const struct known_list *known;
    size_t i = 0;
    int r = 0;

    while (i < lists->n && strcmp(lists->list[i].option->name, name) != 0)
        i++;
    if (i == lists->n)
        return no_such_list(lists, name, d);
    known = find_known(lists, ds, &lists->list[i]);
    if (!known)
        r = named_lists_look_up(lists, ds, &lists->list[i], &known, d);
    if (r < 0)
        return r;
    if (known->error < 0)
        return diag_set(d, known->error, "%s", known->why.text);
    *ret = &known->list;
    return 0;
}
