/* A stage in a cache folder, over a fake transport, with one file "fake://file": what tests of
 * cache/stage/ share. Failures end the test. */
#ifndef EPOCHFS_TESTS_SUPPORT_STAGE_FIXTURE_H
#define EPOCHFS_TESTS_SUPPORT_STAGE_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "cache/stage/stage.h"
#include "support/fake_transport.h"
#include "support/test_clock.h"

#define STAGE_FIXTURE_BLOCK 4096

struct stage_fixture {
    struct cache_folder cache;
    struct fake *fake;
    struct test_clock *clock; /* of the options; NULL: the real one */
    struct stage *stage;
    struct blob *blob; /* of the file */
    struct stage_counters *counters;
    const uint8_t *content; /* of the file */
    uint64_t size;
};

/* The remote, and the file on it. */
struct stage_fixture_remote {
    const uint8_t *content; /* [size], not copied */
    uint64_t size;
    unsigned threads;    /* of the fake transport: transfers at a time */
    fake_script *script; /* NULL: every transfer succeeds */
    void *ctx;           /* of the script */
    const char *etag;    /* NULL: "\"1\"" */
    const uint8_t *sha256;
};

/* Everything may be staged, by readers alone: four jobs, a retry limit of 30 s. */
struct stage_options stage_fixture_options(void);

/* Several fixtures may share the folder. The script runs from here on, the background only after
 * stage_begin(). */
void stage_fixture_open(struct stage_fixture *f, const char *folder,
                        const struct stage_options *options,
                        const struct stage_fixture_remote *remote);
void stage_fixture_close(struct stage_fixture *f);

/* One more file, with the same content, the etag "\"1\"" and this URL. */
struct blob *stage_fixture_add(struct stage_fixture *f, const char *url);

/* Read from the file: the bytes are right. */
void stage_fixture_read(const struct stage_fixture *f, uint64_t off, size_t len);
void stage_fixture_read_in(struct read_context *rc, const struct stage_fixture *f, uint64_t off,
                           size_t len);

/* Start the background, if no test has, and wait until every file is staged. The clock runs
 * meanwhile. */
void stage_fixture_stage_all(struct stage_fixture *f);

/* Wait until a counter of the stage is from least to most. The clock runs meanwhile. */
void stage_fixture_await(struct stage_fixture *f, const _Atomic uint64_t *counter, uint64_t least,
                         uint64_t most);

/* Content for a file: it looks random, and no byte is 0, which a hole would have. */
void stage_fixture_content(uint8_t *ret, size_t size);

#endif
