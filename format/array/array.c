#include "format/array/array.h"

#include <errno.h>
#include <search.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"

#define EMPTY_ROWS_MAX UINT32_MAX /* samples without bytes; IDX has no more either */

struct held_blob *held_blob_new(struct blob *blob, struct held_blob *under)
{
    struct held_blob *held = malloc(sizeof(*held));

    if (!held) {
        blob_free(blob);
        return NULL;
    }
    *held = (struct held_blob){blob, under ? held_blob_take(under) : NULL, 1, NULL};
    return held;
}

struct held_blob *held_blob_take(struct held_blob *held)
{
    held->users++;
    return held;
}

void held_blob_drop(struct held_blob *held)
{
    while (held && !--held->users) {
        struct held_blob *under = held->under;

        blob_free(held->blob);
        free(held);
        held = under;
    }
}

/* The bytes as a name: text that is safe in names of files and on terminals. */
static char *safe_name(const char *name, size_t len)
{
    char *safe = malloc(len ? len + 1 : sizeof("data"));
    size_t n;

    if (!safe)
        return NULL;
    if (!len)
        return memcpy(safe, "data", sizeof("data"));
    memcpy(safe, name, len);
    safe[len] = '\0';
    for (size_t i = 0; i < len; i += n) {
        n = text_character(safe + i, len - i);
        if (safe[i] == '/')
            safe[i] = '.';
        else if (!n || (unsigned char)safe[i] < ' ' || safe[i] == 0x7f)
            safe[i] = '_';
        n = n ? n : 1;
    }
    if (*safe == '.')
        *safe = '_';
    return safe;
}

size_t array_name_without(const char *name, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);

    return len > n && !strncasecmp(name + len - n, suffix, n) ? len - n : len;
}

static int array_by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

struct array *arrays_add(struct arrays *arrays, const char *name, size_t len)
{
    char *safe = safe_name(name, len), **found;

    if (!safe || array_capacity(&arrays->array, arrays->n, sizeof(*arrays->array)) < 0) {
        free(safe);
        return NULL;
    }
    found = tsearch(safe, &arrays->names, array_by_name);
    if (!found) {
        free(safe);
        return NULL;
    }
    arrays->array[arrays->n] = (struct array){.name = safe, .repeats = *found != safe};
    return &arrays->array[arrays->n++];
}

void arrays_drop_last(struct arrays *arrays)
{
    struct array *a = &arrays->array[arrays->n - 1];

    if (!a->repeats)
        tdelete(a->name, &arrays->names, array_by_name);
    arrays->n--;
    free(a->name);
    free(a->left_out);
    free(a->remark);
    for (size_t i = 0; i < a->n_parts; i++)
        held_blob_drop(a->part[i].held);
    free(a->part);
    held_blob_drop(a->here.held);
}

static void array_keep_name(void *name)
{
    (void)name;
}

void arrays_release(struct arrays *arrays)
{
    tdestroy(arrays->names, array_keep_name);
    arrays->names = NULL;
    while (arrays->n)
        arrays_drop_last(arrays);
    free(arrays->array);
    *arrays = (struct arrays){0};
}

int array_leave_out(struct array *a, const char *reason)
{
    if (!a->left_out)
        a->left_out = strdup(reason);
    return a->left_out ? 0 : -ENOMEM;
}

int array_leave_out_by(struct array *a, const struct diag *reason, const char *what)
{
    size_t n = strlen(what);

    return array_leave_out(a, strncmp(reason->text, what, n) != 0 || strlen(reason->text) < n + 2
                                  ? reason->text
                                  : reason->text + n + 2);
}

int array_set_shape(struct array *a, const char *what, struct diag *d)
{
    const struct npy_head *h = &a->head;
    uint64_t bytes = dtype_info(h->dtype)->bytes;

    if (!h->ndim)
        return diag_set(d, -ENODATA,
                        "%s: expected an axis of samples, got a scalar, which has no rows", what);
    for (unsigned i = 1; i < h->ndim; i++)
        if (!checked_mul(bytes, h->dim[i], &bytes))
            return diag_set(d, -EBADMSG, "%s: shape: expected rows below 2^64 bytes, got more",
                            what);
    if (!bytes && h->dim[0] > EMPTY_ROWS_MAX)
        return diag_set(d, -EBADMSG, "%s: shape: expected at most %lu rows without bytes, got %llu",
                        what, (unsigned long)EMPTY_ROWS_MAX, (unsigned long long)h->dim[0]);
    a->samples = h->dim[0];
    a->row_bytes = bytes;
    return 0;
}
