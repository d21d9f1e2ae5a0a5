/* A transport of bytes in memory that does what a test tells it to. */
#ifndef EPOCHFS_TESTS_FAKE_TRANSPORT_H
#define EPOCHFS_TESTS_FAKE_TRANSPORT_H

#include <stdatomic.h>

#include "cache/stage/transport.h"

/* What becomes of a transfer. */
struct fake_answer {
    enum transfer_end end;
    uint64_t bytes;    /* that are given before that, at most */
    bool stalls;       /* after them it ends only when it is stopped or fake_release() is called */
    unsigned stall_ms; /* or after so long; 0: never */
    bool goes_on;      /* after that it gives the rest first */
    bool whole;        /* the remote gives no parts: as HTTP that answers 200 */
    uint64_t retry_ms;
};

struct fake;

/* content: size bytes, not copied. threads: transfers at a time. */
int fake_new(const uint8_t *content, uint64_t size, unsigned threads, struct fake **ret);
struct transport *fake_transport(struct fake *fake); /* transport_free() frees all */

/* Called for each transfer, by its thread, to say what becomes of it; NULL: all goes well. */
typedef struct fake_answer fake_script(void *ctx, const struct transfer *transfer, unsigned number);
void fake_set_script(struct fake *fake, fake_script *script, void *ctx);

/* Stalled transfers end as they would have, and no further one stalls until fake_hold(). */
void fake_release(struct fake *fake);
void fake_hold(struct fake *fake);

/* Wait until n transfers have been started in all. */
void fake_wait_started(struct fake *fake, unsigned n);

/* Wait until at least n transfers stall, and none that was started does anything else; for 15 s at
 * most, then there are fewer. */
void fake_wait_stalled(struct fake *fake, unsigned n);

/* Bytes that were given, in all and of the byte at off. */
uint64_t fake_given(struct fake *fake);
unsigned fake_given_at(struct fake *fake, uint64_t off);
unsigned fake_started(struct fake *fake);
unsigned fake_at_once(struct fake *fake);      /* now */
unsigned fake_most_at_once(struct fake *fake); /* since fake_new() or fake_hold() */

#endif
