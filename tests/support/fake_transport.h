/* A transport of bytes in memory, scripted by a test. */
#ifndef EPOCHFS_TESTS_FAKE_TRANSPORT_H
#define EPOCHFS_TESTS_FAKE_TRANSPORT_H

#include <stdatomic.h>

#include "base/clock.h"
#include "cache/stage/transport.h"

/* The scripted course of a transfer. */
struct fake_answer {
    enum transfer_end end;
    uint64_t bytes;    /* delivered before the result, at most */
    bool stalls;       /* after them it waits for a stop or fake_release() */
    unsigned stall_ms; /* or for that long; 0: for ever */
    bool goes_on;      /* then it delivers the rest first */
    bool whole;        /* the remote ignores ranges, like HTTP that answers 200 */
    uint64_t retry_ms;
};

struct fake;

/* content: size bytes, not copied: of the file of every URL; that of a URL with "@N" at its end
 * begins at byte N. threads: transfers at a time. clock: of the scripts; NULL: the
 * real one. */
int fake_new(const uint8_t *content, uint64_t size, unsigned threads, const struct clock *clock,
             struct fake **ret);
struct transport *fake_transport(struct fake *fake); /* transport_free() frees all */

/* Called for each transfer, by its thread, to decide its course; NULL: every transfer succeeds. */
typedef struct fake_answer fake_script(void *ctx, const struct transfer *transfer, unsigned number);
void fake_set_script(struct fake *fake, fake_script *script, void *ctx);

/* These bytes of the content are stale: see struct transfer. */
void fake_set_stale(struct fake *fake, uint64_t off, uint64_t len);

/* Let stalled transfers end as scripted; no further one stalls until fake_hold(). */
void fake_release(struct fake *fake);
void fake_hold(struct fake *fake);

/* Wait until n transfers have been started in all. */
void fake_wait_started(struct fake *fake, unsigned n);

/* Wait until at least n transfers stall, and all started ones have ended or stall. */
void fake_wait_stalled(struct fake *fake, unsigned n);

/* Wait until all transfers that were started have ended, and the stage knows. Returns how many were
 * started, ever. */
unsigned fake_wait_idle(struct fake *fake);

/* Wait until n bytes have been delivered, in all. */
void fake_wait_given(struct fake *fake, uint64_t n);

/* Bytes delivered, in all; and how often the byte at off was. */
uint64_t fake_given(struct fake *fake);
unsigned fake_given_at(struct fake *fake, uint64_t off);
unsigned fake_started(struct fake *fake);
unsigned fake_at_once(struct fake *fake);      /* now */
unsigned fake_most_at_once(struct fake *fake); /* since fake_new() or fake_hold() */

#endif
