#include "support/libsvm_make.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"

/* kept_index_release() frees it. */
static int copy_of(const uint8_t *bytes, size_t size, struct kept_index *ret)
{
    uint8_t *at = malloc(size);

    if (!at)
        return -ENOMEM;
    memcpy(at, bytes, size);
    *ret = (struct kept_index){.bytes = at, .size = size};
    return 0;
}

static int keep_in_memory_load(const struct index_store *keep, const char *kind,
                               const char *identity, struct kept_index *ret)
{
    struct memory_keep *m = (struct memory_keep *)(uintptr_t)keep;
    int r;

    (void)kind;
    if (!m->bytes || (m->identity && strcmp(m->identity, identity) != 0))
        return -ENOENT;
    m->loads++;
    r = copy_of(m->bytes, m->size, ret);
    ret->by_content = m->by_content;
    return r;
}

static int keep_in_memory_save(const struct index_store *keep, const char *kind,
                               const char *identity, const char *source, const struct iovec *pieces,
                               unsigned n, struct kept_index *ret, struct diag *d)
{
    struct memory_keep *m = (struct memory_keep *)(uintptr_t)keep;

    (void)kind;
    (void)source;
    if (m->refuse)
        return diag_set(d, -ENOSPC, "no keep");
    memory_keep_release(m);
    m->size = 0;
    m->identity = strdup(identity);
    for (unsigned i = 0; i < n; i++)
        m->size += pieces[i].iov_len;
    m->bytes = malloc(m->size);
    if (!m->bytes || !m->identity) {
        memory_keep_release(m);
        return -ENOMEM;
    }
    m->size = 0;
    for (unsigned i = 0; i < n; i++) {
        memcpy(m->bytes + m->size, pieces[i].iov_base, pieces[i].iov_len);
        m->size += pieces[i].iov_len;
    }
    m->saves++;
    return copy_of(m->bytes, m->size, ret);
}

static void keep_in_memory_remove(const struct index_store *keep, const char *kind,
                                  const char *identity)
{
    struct memory_keep *m = (struct memory_keep *)(uintptr_t)keep;

    (void)kind;
    (void)identity;
    m->removes++;
    memory_keep_release(m);
}

void memory_keep_init(struct memory_keep *ret, bool refuse)
{
    static const struct index_store_ops ops = {
        .load = keep_in_memory_load, .save = keep_in_memory_save, .remove = keep_in_memory_remove};

    *ret = (struct memory_keep){.keep = {.ops = &ops}, .refuse = refuse};
}

void memory_keep_release(struct memory_keep *keep)
{
    free(keep->identity);
    free(keep->bytes);
    keep->identity = NULL;
    keep->bytes = NULL;
}

int libsvm_open(struct blob **blob, size_t n, const struct format_options *options,
                const struct index_store *keep, struct pool *pool, struct libsvm_made *ret)
{
    struct format_setup setup = {
        .options = *options, .keep = keep, .pool = pool, .is_list = true}; /* all are joined */
    int r;

    *ret = (struct libsvm_made){0};
    memory_keep_init(&ret->refuses, true);
    if (!keep)
        setup.keep = &ret->refuses.keep;
    r = memo_new(16 << 20, &ret->memo);
    setup.memo = ret->memo;
    if (r < 0)
        for (size_t i = 0; i < n; i++)
            blob_free(blob[i]);
    else
        r = format_open(&format_libsvm, blob, n, &setup, &ret->found);
    for (size_t i = 0; i < ret->found.n && r == 0; i++)
        while (ret->found.item[i].ds && !dataset_prepare(ret->found.item[i].ds))
            continue;
    return r;
}

void libsvm_release(struct libsvm_made *made)
{
    found_release(&made->found);
    memo_free(made->memo);
    made->memo = NULL;
}

struct dataset *libsvm_dataset(const struct libsvm_made *made, const char *name)
{
    int i = found_find(&made->found, name);

    return i < 0 ? NULL : made->found.item[i].ds;
}

static void next_id(struct selection *sel)
{
    static uint64_t id;

    sel->id[0] = ++id;
}

void mixed_init(struct list_selection *ret, const uint64_t *sample, uint64_t n)
{
    list_selection_init(ret, sample, n);
    next_id(&ret->sel);
}

void in_order_init(struct selection *ret, uint64_t first, uint64_t n)
{
    *ret = (struct selection){.count = n, .in_order = true, .first = first};
    next_id(ret);
}

void sample_init(struct one_sample *ret, uint64_t sample)
{
    one_sample_init(ret, sample);
    next_id(&ret->sel);
}

int field_bytes(const struct dataset *ds, const char *field, const struct selection *sel,
                struct bytes *ret, struct diag *d)
{
    AUTO_LAYOUT struct layout l = {0};
    AUTO_FREE uint8_t *at = NULL;
    int r;

    layout_init(&l, ds, sel, NULL);
    r = layout_add_field(&l, dataset_field(ds, field));
    if (r == 0) {
        at = malloc(l.size ? l.size : 1);
        r = at ? layout_read(READ_WAITS, &l, 0, l.size, at, d) : -ENOMEM;
    }
    if (r == 0)
        *ret = (struct bytes){TAKE_PTR(at), l.size};
    return r;
}
