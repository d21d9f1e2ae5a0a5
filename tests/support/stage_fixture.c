#include "support/stage_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/random.h"
#include "support/unit.h"

#define SHORT_NS (3 * TEST_S) /* pauses of the background */

struct stage_options stage_fixture_options(void)
{
    return (struct stage_options){
        .limit_percent = 100, .block = STAGE_FIXTURE_BLOCK, .jobs = 4, .retry_limit_s = 30};
}

static struct blob *add(struct stage *stage, const char *url, const char *name,
                        const struct stage_fixture_remote *remote)
{
    struct remote_version version = {.size = remote->size};
    const struct stage_file file = {
        .url = url,
        .key = url,
        .name = name,
        .sha256 = remote->sha256,
        .version = &version,
        .mode = 0444,
    };
    struct diag d = DIAG_INIT;
    struct blob *blob = NULL;

    snprintf(version.etag, sizeof(version.etag), "%s", remote->etag ? remote->etag : "\"1\"");
    if (stage_add(stage, &file, &blob, &d) < 0)
        fail_msg("%s", d.text);
    return blob;
}

void stage_fixture_open(struct stage_fixture *f, const char *folder,
                        const struct stage_options *options,
                        const struct stage_fixture_remote *remote)
{
    struct diag d = DIAG_INIT;

    *f = (struct stage_fixture){.content = remote->content, .size = remote->size};
    assert_int_equal(cache_folder_init(&f->cache, folder), 0);
    assert_int_equal(
        fake_new(remote->content, remote->size, remote->threads, options->clock, &f->fake), 0);
    if (remote->script)
        fake_set_script(f->fake, remote->script, remote->ctx);
    if (stage_new(options, &f->cache, fake_transport(f->fake), &f->stage, &d) < 0)
        fail_msg("%s", d.text);
    f->clock = (struct test_clock *)options->clock;
    f->blob = add(f->stage, "fake://file", "file", remote);
    f->counters = stage_counters(f->stage);
}

void stage_fixture_close(struct stage_fixture *f)
{
    stage_free(f->stage);
    cache_folder_release(&f->cache);
}

struct blob *stage_fixture_add(struct stage_fixture *f, const char *url)
{
    return add(f->stage, url, url, &(struct stage_fixture_remote){.size = f->size});
}

void stage_fixture_read_in(struct read_context *rc, const struct stage_fixture *f, uint64_t off,
                           size_t len)
{
    uint8_t *buf = malloc(len);
    struct diag d = DIAG_INIT;
    int r;

    assert_non_null(buf);
    r = blob_read(rc, f->blob, buf, len, off, &d);
    if (r < 0)
        fail_msg("read of %zu at %llu: %d %s", len, (unsigned long long)off, r, d.text);
    assert_memory_equal(buf, f->content + off, len);
    free(buf);
}

void stage_fixture_read(const struct stage_fixture *f, uint64_t off, size_t len)
{
    stage_fixture_read_in(READ_WAITS, f, off, len);
}

void stage_fixture_stage_all(struct stage_fixture *f)
{
    struct diag d = DIAG_INIT;
    int r;

    stage_begin(f->stage);
    if (f->clock)
        test_clock_run(f->clock, SHORT_NS);
    while ((r = stage_wait(f->stage, 60000, &d)) == 0)
        continue;
    if (f->clock)
        test_clock_stand(f->clock);
    if (r < 0)
        fail_msg("stage_wait: %d %s", r, d.text);
    assert_int_equal(r, 1);
}

/* Its threads count before they wait. */
void stage_fixture_await(struct stage_fixture *f, const _Atomic uint64_t *counter, uint64_t least,
                         uint64_t most)
{
    uint64_t begun = 0, now;

    test_clock_run(f->clock, SHORT_NS);
    while ((now = atomic_load(counter)) < least || now > most)
        test_clock_await_begun(f->clock, &begun);
    test_clock_stand(f->clock);
}

void stage_fixture_content(uint8_t *ret, size_t size)
{
    uint64_t x = RANDOM_SEED;

    for (size_t i = 0; i < size; i++)
        ret[i] = (uint8_t)(random_next(&x) >> 20 | 1);
}
