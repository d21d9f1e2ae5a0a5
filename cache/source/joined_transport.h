/* The transport of joined files: a folder of many objects on a remote is one file of the stage,
 * whose bytes are the objects one after another (cache/source/joined.h). This transport stands
 * before that of the remote. It splits a transfer of a joined file into transfers of members, many
 * at once, and gives their bytes in file order. All other transfers pass through. */
#ifndef EPOCHFS_CACHE_SOURCE_JOINED_TRANSPORT_H
#define EPOCHFS_CACHE_SOURCE_JOINED_TRANSPORT_H

#include "base/members.h"
#include "cache/stage/transport.h"

/* The members of a joined file, and where they are. Its maker fills it in; then it is constant. */
struct joined_parts {
    const struct members *members;
    const uint8_t *sha256; /* [members->n] of 32 bytes each, zeros: unknown; NULL: all are */
    /* The URL of member i, for the transport of the remote; the caller frees it. And its version.
     * The transport's thread calls it, no lock held; it must not block. 0; -ESTALE: nothing is
     * known of it any more; or -ENOMEM. */
    int (*where)(const struct joined_parts *parts, size_t i, char **ret_url,
                 struct remote_version *ret_version);
    void (*free)(struct joined_parts *parts);
};

#define JOINED_URL_SIZE 32

/* A member whose SHA-256 is known and that comes in one piece is compared before any of its bytes
 * are given; if it is another one, it is stale with -EBADMSG.
 *
 * next: the transport of the remote, which it takes over, also on error. jobs: transfers of next at
 * once, if next has no limiter.
 *
 * A member that has changed since it was listed (TRANSFER_CHANGED of next) is stale: the bytes of
 * the others come all the same. What came of other members when a transfer breaks is remembered for
 * its next try, so only the members that failed are asked for again. 0 or -ENOMEM. */
int joined_transport_new(struct transport *next, unsigned jobs, struct transport **ret);

/* Add a joined file; takes parts over, also on error, and frees it with the transport. *ret_url: by
 * which its transfers ask for it. 0 or -ENOMEM. */
int joined_transport_add(struct transport *transport, struct joined_parts *parts,
                         char ret_url[static JOINED_URL_SIZE]);

#endif
