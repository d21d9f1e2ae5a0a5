/* Bytes as a list of samples. A good one has an entry for each line, all of them samples, and can
 * be looked up by sample. */
#include <string.h>

#include "fs/plan/list_text.h"
#include "fuzz.h"

#define SAMPLES 50

/* Keys are letters: one for each sample. */
static bool find(const void *ctx, const char *key, size_t len, uint64_t *ret)
{
    (void)ctx;
    FUZZ_CHECK(len && !memchr(key, '\n', len));
    *ret = (uint64_t)(key[0] - 'A');
    return len == 1 && key[0] >= 'A' && *ret < SAMPLES;
}

static void check_list(const struct plan_list *list)
{
    uint64_t entries = 0;

    FUZZ_CHECK(list->n > 0);
    for (uint64_t i = 0; i < list->n; i++)
        FUZZ_CHECK(list->sample[i] < SAMPLES);
    for (uint64_t sample = 0; sample < SAMPLES; sample++) {
        const struct plan_samples wanted = {sample, sample};
        struct plan_entries found;

        plan_list_find(list, 1, &wanted, &found);
        FUZZ_CHECK(found.begin == entries && found.end >= entries);
        for (; entries < found.end; entries++) {
            FUZZ_CHECK(plan_list_place(list, entries) < list->n);
            FUZZ_CHECK(list->sample[plan_list_place(list, entries)] == sample);
        }
    }
    FUZZ_CHECK(entries == list->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct list_samples samples = {.samples = SAMPLES, .find = find};
    struct diag d = DIAG_INIT;
    struct plan_list list;

    if (list_parse("list", (const char *)data, len, &samples, true, &list, &d) < 0) {
        FUZZ_CHECK(d.set && !strncmp(d.text, "list: ", 6));
        return 0;
    }
    check_list(&list);
    list_release(&list);
    return 0;
}
