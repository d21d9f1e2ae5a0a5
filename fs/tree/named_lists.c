#include "fs/tree/named_lists.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/index/index.h"
#include "fs/plan/list_text.h"

#define FILE_MOST (UINT64_C(1) << 36) /* bytes */

struct named_list {
    const struct option_list *option; /* its name and file */
    char *text;                       /* owned */
    size_t len;
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

/* Read what a regular file has. The size may change meanwhile: no more than it was is read. */
static int read_all(int fd, struct named_list *ret)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    if ((uint64_t)st.st_size > FILE_MOST)
        return -EFBIG;
    ret->text = malloc((size_t)st.st_size + 1);
    if (!ret->text)
        return -ENOMEM;
    while (ret->len < (size_t)st.st_size) {
        ssize_t n = read(fd, ret->text + ret->len, (size_t)st.st_size - ret->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (!n)
            break;
        ret->len += (size_t)n;
    }
    return 0;
}

static int read_list(const struct option_list *option, struct named_list *ret, struct diag *d)
{
    /* A pipe must not block. */
    int fd = open(option->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int r = fd < 0 ? -errno : read_all(fd, ret);

    if (fd >= 0)
        close(fd);
    ret->option = option;
    if (r < 0)
        return diag_set(d, r, "option list=%s=%s: want a file of keys, found: %s", option->name,
                        option->file, strerror(-r));
    for (size_t i = 0; i < ret->len; i++)
        if (ret->text[i] != '\n' && ret->text[i] != '\r')
            return 0;
    return diag_set(d, -EINVAL, "option list=%s=%s: want a key or #number a line, found no line",
                    option->name, option->file);
}

int named_lists_init(struct named_lists *ret, const struct options *options, struct diag *d)
{
    int r = 0;

    *ret = (struct named_lists){.list = calloc(options->n_lists + 1, sizeof(*ret->list))};
    lock_init(&ret->lock);
    if (!ret->list)
        return -ENOMEM;
    for (; ret->n < options->n_lists && r == 0; ret->n++)
        r = read_list(&options->list[ret->n], &ret->list[ret->n], d);
    return r;
}

void named_lists_release(struct named_lists *lists)
{
    if (!lists->list)
        return;
    for (size_t i = 0; i < lists->n; i++)
        free(lists->list[i].text);
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
static bool find_key(const void *ctx, const char *key, size_t len, uint64_t *ret)
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

/* Look the lines up, and keep what comes of it. Two threads may do so at once; both stay. */
static int look_up(struct named_lists *lists, const struct dataset *ds,
                   const struct named_list *from, const struct known_list **ret)
{
    AUTO_FREE struct known_list *k = calloc(1, sizeof(*k));
    const struct list_samples samples = {.samples = ds->samples, .find = find_key, .ctx = ds};
    AUTO_TEXT struct text name = {0};

    text_add(&name, "list=%s=%s", from->option->name, from->option->file);
    if (!k || name.failed)
        return -ENOMEM;
    k->ds = ds;
    k->from = from;
    k->error = list_parse(name.data, from->text, from->len, &samples, &k->list, &k->why);
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
    return diag_set(d, -EINVAL,
                    "only: want the name of a list that list=NAME=FILE gives to the mount (%s), "
                    "found '%s'",
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
        r = look_up(lists, ds, &lists->list[i], &known);
    if (r < 0)
        return r;
    if (known->error < 0)
        return diag_set(d, known->error, "%s", known->why.text);
    *ret = &known->list;
    return 0;
}
