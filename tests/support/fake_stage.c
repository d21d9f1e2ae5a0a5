/* A stage that keeps nothing. */
#include "support/fake_stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "cache/source/joined_transport.h"
#include "cache/source/path_transport.h"

struct stage {
    struct transport *transport;
    struct stage_counters counters;
};

struct fake_blob {
    struct blob blob;
    struct stage *stage;
    struct fake_staged staged;
};

struct reading {
    struct transfer transfer;
    struct lock lock;
    pthread_cond_t ended;
    char *to;
    size_t n;
    int result; /* 1: under way */
};

const unsigned stage_wait_ms[STAGE_WAIT_CLASSES] = {1};

static bool reading_data(struct transfer *transfer, const void *bytes, size_t n)
{
    struct reading *reading = (struct reading *)transfer;

    memcpy(reading->to + reading->n, bytes, n);
    reading->n += n;
    return true;
}

static void reading_end(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                        const struct diag *d)
{
    struct reading *reading = (struct reading *)transfer;

    (void)retry_ms;
    (void)d;
    lock_take(&reading->lock);
    reading->result = how == TRANSFER_DONE ? 0 : how == TRANSFER_CHANGED ? -ESTALE : -EREMOTEIO;
    pthread_cond_broadcast(&reading->ended);
    lock_drop(&reading->lock);
}

static int fake_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                      uint64_t off, struct diag *d)
{
    const struct fake_blob *fake = (const struct fake_blob *)blob;
    struct reading reading = {.transfer = {fake->staged.url, &fake->staged.version, off, len,
                                           reading_data, reading_end, NULL, NULL},
                              .to = buf,
                              .result = 1};
    int r;

    (void)rc;
    (void)d;
    if (!len || !fake->stage->transport)
        return len ? -EREMOTEIO : 0;
    lock_init(&reading.lock);
    condition_init(&reading.ended);
    r = transport_start(fake->stage->transport, &reading.transfer);
    if (r == 0) {
        lock_take(&reading.lock);
        while (reading.result > 0)
            lock_wait(&reading.lock, &reading.ended);
        r = reading.result;
        lock_drop(&reading.lock);
    }
    pthread_cond_destroy(&reading.ended);
    lock_release(&reading.lock);
    return r;
}

static int fake_check(const struct blob *blob)
{
    (void)blob;
    return 0;
}

static int fake_identity(const struct blob *blob, char **ret)
{
    const struct fake_blob *fake = (const struct fake_blob *)blob;
    int n = asprintf(ret, "%s %s %llu", fake->staged.key, fake->staged.version.etag,
                     (unsigned long long)fake->staged.version.size);

    return n < 0 ? -ENOMEM : 0;
}

static void fake_free(struct blob *blob)
{
    struct fake_blob *fake = (struct fake_blob *)blob;

    free(blob->name);
    free(fake->staged.url);
    free(fake->staged.key);
    free(fake);
}

static const struct blob_ops fake_ops = {
    .pread = fake_pread, .check = fake_check, .identity = fake_identity, .free = fake_free};

const struct fake_staged *fake_staged_of(const struct blob *blob)
{
    return blob->ops == &fake_ops ? &((const struct fake_blob *)blob)->staged : NULL;
}

int stage_new(const struct stage_options *options, const struct cache_folder *cache,
              struct transport *transport, struct stage **ret, struct diag *d)
{
    (void)options;
    (void)cache;
    (void)d;
    *ret = calloc(1, sizeof(**ret));
    if (!*ret) {
        transport_free(transport);
        return -ENOMEM;
    }
    (*ret)->transport = transport;
    return 0;
}

void stage_free(struct stage *stage)
{
    if (stage)
        transport_free(stage->transport);
    free(stage);
}

int stage_add(struct stage *stage, const struct stage_file *file, struct blob **ret, struct diag *d)
{
    struct fake_blob *fake = calloc(1, sizeof(*fake));

    (void)d;
    if (!fake)
        return -ENOMEM;
    fake->stage = stage;
    fake->blob = (struct blob){.ops = &fake_ops,
                               .name = strdup(file->name),
                               .size = file->version->size,
                               .mtime = file->version->mtime,
                               .mode = file->mode,
                               .uid = file->uid,
                               .gid = file->gid};
    fake->staged.url = strdup(file->url);
    fake->staged.key = strdup(file->key);
    fake->staged.version = *file->version;
    fake->staged.has_sha256 = file->sha256 != NULL;
    if (file->sha256)
        memcpy(fake->staged.sha256, file->sha256, 32);
    *ret = &fake->blob;
    return 0;
}

void stage_rest(struct stage *stage)
{
    if (stage->transport)
        transport_rest(stage->transport);
}

void stage_begin(struct stage *stage)
{
    (void)stage;
}

void stage_end(struct stage *stage)
{
    (void)stage;
}

struct stage_counters *stage_counters(struct stage *stage)
{
    return &stage->counters;
}

bool stage_is_shared(const struct stage *stage)
{
    (void)stage;
    return false;
}

struct quota *stage_quota(struct stage *stage)
{
    (void)stage;
    return NULL;
}

const void *stage_parts(const struct blob *blob)
{
    (void)blob;
    return NULL;
}

int joined_transport_new(struct transport *next, unsigned jobs, struct transport **ret)
{
    (void)jobs;
    *ret = next;
    return 0;
}

int joined_transport_add(struct transport *transport, struct joined_parts *parts,
                         char ret_url[static JOINED_URL_SIZE])
{
    (void)transport;
    (void)ret_url;
    parts->free(parts);
    return -EOPNOTSUPP;
}

int path_transport_new(unsigned jobs, struct transport **ret)
{
    (void)jobs;
    *ret = NULL;
    return 0;
}

unsigned stage_silent(struct stage *stage, struct diag *d)
{
    (void)stage;
    (void)d;
    return 0;
}

uint64_t stage_own_number(const struct stage *stage)
{
    (void)stage;
    return 1;
}
