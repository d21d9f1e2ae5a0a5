#include "format/index/prepared.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool comes_again(int r)
{
    return r == -EREMOTEIO || r == -EINTR;
}

void prepared_release(struct prepared *p)
{
    index_builder_free(p->builder);
    kept_index_release(&p->kept);
    free(TAKE_PTR(p->identity));
    free(TAKE_PTR(p->depends));
    free(TAKE_PTR(p->unkept));
    free((void *)(uintptr_t)TAKE_PTR(p->proven));
    p->builder = NULL;
}

static bool has_shape(const struct index *index, const struct index_shape *shape)
{
    return index->shape.learns == shape->learns && index->fixed == shape->columns &&
           index->shape.rising == shape->rising && index->shape.has_keys == shape->has_keys;
}

/* Rows of an index by content are doubted. */
static int doubt(struct prepared *p)
{
    if (!p->kept.by_content)
        return 0;
    if (!p->checks_rows)
        return -ENOTSUP;
    p->proven = calloc(p->index.rows / 8 + 1, sizeof(*p->proven));
    return p->proven ? 0 : -ENOMEM;
}

/* Is each row of a kept index inside its source? A rising column never falls. */
static bool prepared_places_fit(const struct prepared *p)
{
    const struct index *index = &p->index;
    uint64_t size = p->blob->size, at[INDEX_GROUP], bytes[INDEX_GROUP];

    if (index_number(index, index->rows, 0) > size)
        return false;
    for (uint64_t row = 0; row < index->rows;) {
        unsigned n = index_numbers(index, row, 0, at);

        if (p->bytes)
            index_numbers(index, row, p->bytes, bytes);
        for (unsigned i = 0; i < n; i++, row++) {
            if (!p->bytes)
                bytes[i] = (i + 1 < n ? at[i + 1] : index_number(index, row + 1, 0)) - at[i];
            if (at[i] > size || bytes[i] > size - at[i] || bytes[i] < p->least)
                return false;
        }
    }
    return true;
}

void prepared_forget(struct prepared *p)
{
    struct kept k = {0};

    if (p->ops && p->ops->keep)
        p->ops->keep(p->impl, &k);
}

/* Read what is kept besides the rows: all of it. */
static int prepared_read_about(struct prepared *p)
{
    struct kept k = {.at = p->index.about, .left = p->index.about_len};

    p->ops->keep(p->impl, &k);
    return k.error || !k.left ? k.error : -EBADMSG;
}

/* Load the index that an earlier mount kept. 1: loaded, 0: none is left, or -errno: not known. */
static int prepared_load(struct prepared *p)
{
    int r;

    if (index_store_load(p->keep, p->type, p->identity, &p->kept) < 0)
        return 0;
    r = index_open(p->kept.bytes, p->kept.size, &p->index);
    if (r == 0 && !has_shape(&p->index, &p->shape))
        r = -EBADMSG;
    if (r == 0 && p->has_places && !prepared_places_fit(p))
        r = -EBADMSG;
    if (r == 0)
        r = doubt(p);
    if (r == 0 && p->ops->keep)
        r = prepared_read_about(p);
    if (r == 0 && p->ops->load)
        r = p->ops->load(p->impl, &p->index);
    if (r == 0)
        return 1;
    prepared_forget(p);
    free((void *)(uintptr_t)TAKE_PTR(p->proven));
    kept_index_release(&p->kept);
    if (blob_says_nothing(r))
        return r;
    index_store_remove(p->keep, p->type, p->identity);
    return 0;
}

static int identify(struct prepared *p)
{
    AUTO_TEXT struct text t = {0};
    int r = 0;

    text_add(&t, "%s%s", p->ops->version, p->depends ? p->depends : "");
    if (p->ops->identity)
        r = p->ops->identity(p->impl, &t);
    if (r == 0 && p->second)
        r = prepared_add_identity(p, &t, p->second);
    if (r == 0 && p->blob)
        r = prepared_add_identity(p, &t, p->blob);
    if (r == 0)
        r = text_finish(&t, &p->identity, NULL);
    if (r == 0)
        free(TAKE_PTR(p->depends));
    return r;
}

/* Load the index, or begin to make it. 1: loaded, 0: begun, or -errno. */
static int prepared_begin(struct prepared *p)
{
    int r = p->identity ? 0 : identify(p);

    if (r == 0 && !p->is_cheap)
        r = prepared_load(p);
    if (r)
        return r;
    p->state = PREPARED_MAKING;
    r = index_builder_new(&p->shape, &p->builder);
    if (r == 0 && p->ops->begin)
        r = p->ops->begin(p->impl);
    assert(!comes_again(r)); /* it would not be called again */
    return r;
}

/* Use the index of bytes that are kept, because it takes less memory than the builder. */
static void prepared_use_kept(struct prepared *p)
{
    struct index kept;

    if (index_open(p->kept.bytes, p->kept.size, &kept) < 0)
        return;
    p->index = kept;
    index_builder_free(p->builder);
    p->builder = NULL;
}

/* The same in memory. */
static void prepared_copy(struct prepared *p, const struct iovec pieces[static INDEX_PIECES])
{
    size_t size = 0;

    for (unsigned i = 0; i < INDEX_PIECES; i++)
        size += pieces[i].iov_len;
    p->kept = (struct kept_index){.bytes = malloc(size), .size = 0};
    for (unsigned i = 0; i < INDEX_PIECES && p->kept.bytes; i++) {
        if (pieces[i].iov_len)
            memcpy(p->kept.bytes + p->kept.size, pieces[i].iov_base, pieces[i].iov_len);
        p->kept.size += pieces[i].iov_len;
    }
    if (p->kept.bytes)
        prepared_use_kept(p);
}

/* Keep the index. If it cannot be kept, that is no error: the next mount makes it again. */
static void keep(struct prepared *p, const struct iovec pieces[static INDEX_PIECES])
{
    struct diag reason = DIAG_INIT;
    int r = index_store_save(p->keep, p->type, p->identity, p->source, pieces, INDEX_PIECES,
                             &p->kept, &reason);

    if (r == 0)
        prepared_use_kept(p);
    else
        text_print(&p->unkept, "%s: the index cannot be kept, so the next mount makes it again: %s",
                   p->name, diag_text(&reason, r));
}

/* The rows are complete. */
static int prepared_finish(struct prepared *p)
{
    struct iovec pieces[INDEX_PIECES];
    AUTO_TEXT struct text about = {0};
    struct kept k = {.out = &about};
    int r = index_finish(p->builder, p->end, p->ops->renamed, p->impl, &p->index);

    if (r == 0 && p->ops->about)
        r = p->ops->about(p->impl, &p->index, &about, &p->reason);
    if (r == 0 && p->ops->keep)
        p->ops->keep(p->impl, &k);
    if (r == 0)
        r = about.failed ? -ENOMEM
                         : index_bytes(p->builder, about.data, about.len, &p->index, pieces);
    if (r == 0 && p->is_cheap)
        prepared_copy(p, pieces);
    else if (r == 0 && !p->may_differ)
        keep(p, pieces);
    return r;
}

/* Load or make the index. 1: done, 0: not yet, or -errno. */
static int prepared_make(struct prepared *p)
{
    int r = p->state == PREPARED_NEW ? prepared_begin(p) : 0;

    if (r)
        return r;
    r = p->ops->step(p->impl, &p->reason);
    if (p->blob && (r == 1 || r == -EBADMSG) && blob_check(p->blob) < 0)
        r = -ESTALE;
    if (r != 1)
        return r;
    r = prepared_finish(p);
    return r < 0 ? r : 1;
}

static int prepared_go_on(struct prepared *p)
{
    int r = p->state == PREPARED_INDEXED ? 1 : prepared_make(p);

    if (r != 1)
        return r;
    p->state = PREPARED_INDEXED;
    r = p->ops->ready ? p->ops->ready(p->impl, &p->reason) : 0;
    if (r < 0)
        return r;
    p->state = PREPARED_READY;
    atomic_store_explicit(&p->seen, p->size, memory_order_relaxed);
    return 1;
}

int prepared_step(struct prepared *p, struct diag *d)
{
    int r;

    if (p->state == PREPARED_READY)
        return 1;
    r = p->failed ? p->failed : prepared_go_on(p);
    if (comes_again(r)) {
        diag_set(d, r, "%s", diag_text(&p->reason, r));
        p->reason.set = false;
        return r;
    }
    if (r < 0) {
        p->failed = r;
        if (r == -ESTALE)
            p->reason.set = false; /* faults found in a file that changes say little */
        diag_set(&p->reason, r, "%s: cannot be indexed: %s", p->name,
                 r == -ESTALE ? "the file was changed meanwhile; mount again" : strerror(-r));
        return diag_set(d, r, "%s", p->reason.text);
    }
    return r;
}

int prepared_add_identity(const struct prepared *p, struct text *t, const struct blob *blob)
{
    AUTO_FREE char *identity = NULL;
    int r = blob_identity(blob, &identity);

    if (r < 0)
        return r;
    text_add(t, " %s", identity);
    return index_store_names(p->keep, blob, identity);
}

void prepared_prove(const struct prepared *p, uint64_t row)
{
    atomic_fetch_or_explicit(&p->proven[row / 8], (uint8_t)(1u << row % 8), memory_order_relaxed);
}

int prepared_disprove(const struct prepared *p, uint64_t row, const char *why, struct diag *d)
{
    index_store_remove(p->keep, p->type, p->identity);
    return diag_set(
        d, -ESTALE,
        "%s: record %llu is not what the index next to the data says, which is of another "
        "version of the file: %s; mount again, and that index is not used",
        p->name, (unsigned long long)row, why);
}
