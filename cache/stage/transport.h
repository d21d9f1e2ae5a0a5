/* A transport: brings the bytes of a remote here. Only transports wait for a remote; each has
 * threads of its own, which it starts when it needs them.
 *
 *   transfer:  made -> under way   transport_start()
 *              under way -> ended  end(), called once, in a thread of the transport
 *
 * While it is under way a transfer belongs to the transport, otherwise to the caller. */
#ifndef EPOCHFS_CACHE_STAGE_TRANSPORT_H
#define EPOCHFS_CACHE_STAGE_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/diag.h"
#include "cache/stage/limiter.h"

/* Bytes per second that all transfers under way together must bring, each of them its share. Less
 * counts as nothing, so that a server that sends a byte now and then does not hold a reader. */
#define LEAST_SPEED UINT64_C(1024)

/* Bytes that each of n transfers must bring in `seconds` to count as alive. */
static inline uint64_t transfer_share(uint64_t seconds, uint64_t n)
{
    uint64_t share = LEAST_SPEED * seconds / (n ? n : 1);

    return share ? share : 1;
}

/* A file of a remote as it was when it was first seen. */
struct remote_version {
    uint64_t size;
    struct timespec mtime; /* {0}: not reported */
    char etag[160];        /* as the server spells it, with quotes; "": none. For a path:
                              file_version_print() */
    bool time_counts; /* with the ETag, which alone does not tell that the bytes are the same */
    bool whole_only;  /* the server sends no parts: a transfer begins at the first byte */
};

/* Does the remote say anything of a file's version but its size? */
static inline bool remote_version_is_known(const struct remote_version *version)
{
    return *version->etag || version->mtime.tv_sec;
}

enum transfer_end {
    TRANSFER_DONE,    /* data() got all bytes */
    TRANSFER_AGAIN,   /* it may work later: the server is gone or busy, the connection broke */
    TRANSFER_CHANGED, /* the file is another version now */
    TRANSFER_REFUSED, /* a retry would not help: forbidden, not there, not trusted */
    TRANSFER_WHOLE,   /* the server sends this file as a whole only, which version does not say */
    TRANSFER_STOPPED, /* by transport_stop() or by data() */
};

struct transfer {
    /* Set by the caller, constant while it is under way: */
    const char *url; /* as the transport understands it */
    const struct remote_version *version;
    uint64_t off, len; /* bytes, within version->size */
    /* Gets the bytes in file order, len bytes in all if the transfer ends with TRANSFER_DONE. A
     * thread of the transport calls it, no lock held. false: stop. */
    bool (*data)(struct transfer *transfer, const void *bytes, size_t n);
    /* retry_ms: what the server asks for (Retry-After); 0: nothing. d: the reason, as text. */
    void (*end)(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                const struct diag *d);
    /* With whole_only, n bytes before off have come and are not wanted. NULL: not reported. Called
     * before data(), under the same rules. */
    void (*passed)(struct transfer *transfer, size_t n);
    /* In the place of data() for the next n bytes of the file: they are stale, because their part
     * of the file has changed or is gone on the remote (error -ESTALE), or is refused (-EACCES).
     * They are never there again. d: why. false: stop. Only transports of files made of several
     * objects call it; NULL: such a transfer ends with TRANSFER_CHANGED there. */
    bool (*stale)(struct transfer *transfer, uint64_t n, int error, const struct diag *d);
    /* The transport's: */
    void *impl;
    struct transfer *next;
};

struct transport;

/* Caches between here and the remote that transfers go through (-o via=URL). */
#define TRANSPORT_WHY_SIZE 300
struct transport_peers {
    const char *url; /* where they are asked; valid as long as the transport */
    bool answer;     /* false: the remote is asked in their place, because: */
    char why[TRANSPORT_WHY_SIZE];
    uint64_t bytes; /* that came from there */
};

struct transport_ops {
    int (*start)(struct transport *transport, struct transfer *transfer);
    void (*stop)(struct transport *transport, struct transfer *transfer);
    void (*pause)(struct transport *transport, struct transfer *transfer, bool paused);
    void (*stop_threads)(struct transport *transport);
    bool (*peers)(struct transport *transport,
                  struct transport_peers *ret); /* NULL: there are none */
    void (*free)(struct transport *transport);
};

struct transport {
    const struct transport_ops *ops;
    struct limiter *limiter; /* of this and other requests to the remote; NULL: the stage's own */
    /* When requests for texts of the same remote were last given up, clock_monotonic(); NULL: not
     * known. */
    const _Atomic int64_t *gave_up;
    /* How long its thread has had nothing to do, ns, more than 0; while it waits, that less now.
     * NULL: it has no such thread. */
    const _Atomic int64_t *waited;
    /* It counts its requests itself, because a transfer may be any number of them. Where, set
     * before the first transfer; NULL: nowhere. */
    bool counts_requests;
    _Atomic uint64_t *requests;
    _Atomic uint64_t *spare_bytes; /* the same for bytes that it received and gave to no transfer */
    /* Called before a transfer ends with TRANSFER_CHANGED, in its thread, no lock held; quick. Set
     * before the first transfer; NULL: nothing is to be done. */
    void (*changed)(void *user);
    void *changed_user;
};

/* 0, or -errno and the transfer is not under way; -EINVAL: the range is empty or outside the
 * version. Any thread, also from data() and end() of other transfers; does not block. The caller
 * goes by the limiter. */
static inline int transport_start(struct transport *transport, struct transfer *transfer)
{
    return transport->ops->start(transport, transfer);
}

/* End it soon, with TRANSFER_STOPPED, unless it ends otherwise before. The caller must know that
 * end() has not been called yet. */
static inline void transport_stop(struct transport *transport, struct transfer *transfer)
{
    transport->ops->stop(transport, transfer);
}

/* Stop receiving for now (paused), or go on: others need the bandwidth. A hint; rules as for
 * transport_stop(). A paused transfer has no time limit. */
static inline void transport_pause(struct transport *transport, struct transfer *transfer,
                                   bool paused)
{
    if (transport->ops->pause)
        transport->ops->pause(transport, transfer, paused);
}

/* A clock for how long a transfer waits for the remote: it stands still while the transport has
 * bytes of others to handle, which is our own queue. */
static inline int64_t transport_waited(const struct transport *transport, int64_t now)
{
    int64_t waited = transport->waited ? atomic_load(transport->waited) : 0;

    return waited > 0 ? waited : now + waited;
}

/* End the threads; nothing may be under way. They start again when they are needed, perhaps in a
 * child of this process, which then is the only user of the transport. */
static inline void transport_rest(struct transport *transport)
{
    transport->ops->stop_threads(transport);
}

/* false: there are none, and ret is not set. Any thread. */
static inline bool transport_peers(struct transport *transport, struct transport_peers *ret)
{
    return transport->ops->peers && transport->ops->peers(transport, ret);
}

static inline void transport_free(struct transport *transport) /* takes NULL; nothing under way */
{
    if (transport)
        transport->ops->free(transport);
}

#endif
