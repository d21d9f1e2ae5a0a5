#include "support/memory_blob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "support/absent_blob.h"

struct memory_blob {
    struct blob blob;
    struct blob_faults *faults;
    size_t len; /* of bytes; zeros follow */
    uint8_t *bytes;
};

static int memory_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                        uint64_t off, struct diag *d)
{
    const struct memory_blob *m = (const struct memory_blob *)blob;
    size_t known = off < m->len ? (size_t)min_u64(len, m->len - off) : 0;

    (void)rc;
    (void)d;
    if (m->faults && atomic_fetch_add(&m->faults->reads, 1) + 1 == m->faults->fail_read)
        return -EIO;
    if (known)
        memcpy(buf, m->bytes + off, known);
    memset((uint8_t *)buf + known, 0, len - known);
    return 0;
}

static int memory_check(const struct blob *blob)
{
    const struct memory_blob *m = (const struct memory_blob *)blob;

    return m->faults && m->faults->stale ? -ESTALE : 0;
}

static int memory_identity(const struct blob *blob, char **ret)
{
    const struct memory_blob *m = (const struct memory_blob *)blob;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    char text[64];

    for (size_t i = 0; i < m->len; i++)
        hash = (hash ^ m->bytes[i]) * UINT64_C(1099511628211);
    snprintf(text, sizeof(text), "memory %llx %llu", (unsigned long long)hash,
             (unsigned long long)blob->size);
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

static void memory_free(struct blob *blob)
{
    struct memory_blob *m = (struct memory_blob *)blob;

    free(m->bytes);
    free(blob->name);
    free(m);
}

static const struct blob_ops memory_ops = {
    .pread = memory_pread, .check = memory_check, .identity = memory_identity, .free = memory_free};

struct blob *memory_blob_new(const char *name, const void *bytes, size_t len, uint64_t size,
                             struct blob_faults *faults)
{
    struct memory_blob *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->blob = (struct blob){.ops = &memory_ops,
                            .name = strdup(name),
                            .size = size,
                            .mtime = {.tv_sec = 1},
                            .mode = 0444};
    m->faults = faults;
    m->len = len;
    m->bytes = malloc(len ? len : 1);
    if (!m->blob.name || !m->bytes) {
        memory_free(&m->blob);
        return NULL;
    }
    if (len)
        memcpy(m->bytes, bytes, len);
    return faults && faults->absent ? absent_blob_new(&m->blob, faults->absent) : &m->blob;
}
