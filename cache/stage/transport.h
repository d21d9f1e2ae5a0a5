/* A transport: how the bytes of a remote get here. Transports are the only code that waits for a
 * remote; each has threads of its own, started when there is something to do.
 *
 *   transfer:  made -> under way   transport_start()
 *              under way -> ended  end() is called, once, in a thread of the transport; from then
 * on the transfer is the caller's again
 */
#ifndef EPOCHFS_CACHE_STAGE_TRANSPORT_H
#define EPOCHFS_CACHE_STAGE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/diag.h"

/* Bytes per second. What all transfers under way bring must be as much, and each of them its share:
 * less counts as nothing, so that a server that gives a byte now and then holds nobody. */
#define LEAST_SPEED UINT64_C(1024)

/* What one of n transfers has to bring in that time to count as alive. */
static inline uint64_t transfer_share(uint64_t seconds, uint64_t n)
{
    uint64_t share = LEAST_SPEED * seconds / (n ? n : 1);

    return share ? share : 1;
}

/* A file of a remote as it was when it was first seen. */
struct remote_version {
    uint64_t size;
    struct timespec mtime; /* {0}: not told */
    char etag[160];        /* as the server spells it, with quotes; "": none */
    bool whole_only;       /* the server gives no parts of files */
};

enum transfer_end {
    TRANSFER_DONE,    /* all bytes have been given to data() */
    TRANSFER_AGAIN,   /* it may work later: the server is gone or busy, the connection broke */
    TRANSFER_CHANGED, /* the file is another version now */
    TRANSFER_REFUSED, /* trying again is no use: forbidden, not there, not trusted */
    TRANSFER_WHOLE,   /* the server gives this file as a whole only */
    TRANSFER_STOPPED, /* by transport_stop() or by data() */
};

struct transfer {
    /* Set by the caller, constant while it is under way: */
    const char *url; /* as the transport understands it */
    const struct remote_version *version;
    uint64_t off, len; /* bytes, within version->size; with whole_only from 0 on */
    /* In the order of the file, len bytes in all if it ends with TRANSFER_DONE; in a thread of the
     * transport, no lock held. false: stop. */
    bool (*data)(struct transfer *transfer, const void *bytes, size_t n);
    /* retry_ms: what the server asks for (Retry-After); 0: nothing. d: why, for people. */
    void (*end)(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                const struct diag *d);
    /* The remote sends the whole file though a part was asked for, from its first byte on. true:
     * all of it is wanted, and len is its size now. NULL: never. Before data(), as that. */
    bool (*grow)(struct transfer *transfer);
    /* The transport's: */
    void *impl;
    struct transfer *next;
};

struct transport;

struct transport_ops {
    int (*start)(struct transport *transport, struct transfer *transfer);
    void (*stop)(struct transport *transport, struct transfer *transfer);
    void (*pause)(struct transport *transport, struct transfer *transfer, bool paused);
    void (*rest)(struct transport *transport);
    void (*free)(struct transport *transport);
};

struct transport {
    const struct transport_ops *ops;
};

/* 0, or -errno and nothing of it is under way; -EINVAL: it is no range of the version, or an empty
 * one. Any thread, data() and end() of other transfers, too; does not block. It may begin later: no
 * more are under way at once than the transport was made for. */
static inline int transport_start(struct transport *transport, struct transfer *transfer)
{
    return transport->ops->start(transport, transfer);
}

/* End it soon, with TRANSFER_STOPPED, unless it ends otherwise before. Call it only where it is
 * sure that end() has not been called. */
static inline void transport_stop(struct transport *transport, struct transfer *transfer)
{
    transport->ops->stop(transport, transfer);
}

/* Receive nothing more for now, or again: others need the bandwidth. A hint; as transport_stop().
 * What is paused has no place among those that are under way, and no limit of time. */
static inline void transport_pause(struct transport *transport, struct transfer *transfer,
                                   bool paused)
{
    if (transport->ops->pause)
        transport->ops->pause(transport, transfer, paused);
}

/* Nothing is under way: end the threads. They start again when they are needed, perhaps in a child
 * of this process, which then is the only one that uses the transport. */
static inline void transport_rest(struct transport *transport)
{
    transport->ops->rest(transport);
}

static inline void transport_free(struct transport *transport) /* takes NULL; nothing under way */
{
    if (transport)
        transport->ops->free(transport);
}

#endif
