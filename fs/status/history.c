#include "fs/status/history.h"

#include <math.h>

#include "base/array.h"
#include "base/checked.h"
#include "cache/stage/stage.h"
#include "fs/drive/active_plans.h"
#include "fs/drive/push_window.h"

#define INTERVAL_NS (HISTORY_INTERVAL_S * INT64_C(1000000000))

void history_init(struct history *ret)
{
    *ret = (struct history){0};
    lock_init(&ret->lock);
}

void history_release(struct history *history)
{
    lock_release(&history->lock);
}

static uint64_t status_history_load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

double history_speed(double units_per_s, double since_s, double quiet_s, uint64_t unseen)
{
    double over_s; /* since the next read was due to reach us: until then it went on */

    if (!isfinite(units_per_s) || units_per_s <= 0)
        return 0;
    over_s = fmax(quiet_s - (double)(unseen + 1) / units_per_s, 0);
    return units_per_s * fmax(fmin(since_s, HISTORY_INTERVAL_S) - over_s, 0) / HISTORY_INTERVAL_S;
}

/* Units of the page cache that its reader may take before a read reaches us. */
static uint64_t unseen_of(const struct active_info *info)
{
    return info->pushed > info->unit ? min_u64(info->pushed - info->unit, PUSH_WINDOW_STRIDE) : 0;
}

static double status_history_speed_of(struct active_plans *active_plans)
{
    struct active_info info[ACTIVE_PLANS_MAX];
    size_t n = active_plans ? active_plans_list(active_plans, info) : 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += history_speed(info[i].units_per_s, info[i].since_s, info[i].quiet_s,
                             unseen_of(&info[i]));
    return sum;
}

static struct history_sample status_history_sample_of(const struct history_sources *sources,
                                                      const struct clock *clock)
{
    struct history_sample s = {.at_s = clock_wall(clock) / INT64_C(1000000000),
                               .served_bytes = status_history_load(sources->served_bytes),
                               .batches_per_s = status_history_speed_of(sources->active_plans)};

    if (sources->stage) {
        const struct stage_counters *c = stage_counters(sources->stage);

        s.received_bytes =
            status_history_load(&c->demand_bytes) + status_history_load(&c->background_bytes);
        s.staged_bytes = status_history_load(&c->staged_bytes);
        s.total_bytes = status_history_load(&c->total_bytes);
        s.hits = status_history_load(&c->hits);
        s.misses = status_history_load(&c->misses);
        s.waits = status_history_load(&c->waits);
        s.wait_ns = status_history_load(&c->wait_ns);
    }
    return s;
}

/* Is a sample due? Then the next one is due an interval later. */
static bool status_history_is_due(struct history *history, int64_t now)
{
    LOCK_SCOPE(&history->lock);

    if (now < history->next_ns)
        return false;
    history->next_ns = now + INTERVAL_NS;
    return true;
}

void history_note(struct history *history, const struct history_sources *sources,
                  const struct clock *clock)
{
    struct history_sample s;

    if (!status_history_is_due(history, clock_monotonic(clock)))
        return;
    s = status_history_sample_of(sources, clock);
    LOCK_SCOPE(&history->lock);
    history->sample[(history->first + history->n) % HISTORY_SAMPLES] = s;
    if (history->n < HISTORY_SAMPLES)
        history->n++;
    else
        history->first = (history->first + 1) % HISTORY_SAMPLES;
}

static void status_history_add_sample(const struct history_sample *s, struct text *t)
{
    text_add(t, "    {\"time\": %lld, \"served_bytes\": %llu, \"received_bytes\": %llu, ",
             (long long)s->at_s, (unsigned long long)s->served_bytes,
             (unsigned long long)s->received_bytes);
    text_add(t, "\"staged_bytes\": %llu, \"total_bytes\": %llu, \"hits\": %llu, \"misses\": %llu, ",
             (unsigned long long)s->staged_bytes, (unsigned long long)s->total_bytes,
             (unsigned long long)s->hits, (unsigned long long)s->misses);
    text_add(t, "\"waits\": %llu, \"wait_seconds\": %.6f, \"batches_per_second\": %.6f}",
             (unsigned long long)s->waits, (double)s->wait_ns / 1e9, s->batches_per_s);
}

void history_json(struct history *history, struct text *t)
{
    LOCK_SCOPE(&history->lock);

    text_add(t, "{\n  \"interval_seconds\": %d,\n  \"samples\": [\n", HISTORY_INTERVAL_S);
    for (unsigned i = 0; i < history->n; i++) {
        status_history_add_sample(&history->sample[(history->first + i) % HISTORY_SAMPLES], t);
        text_add(t, i + 1 < history->n ? ",\n" : "\n");
    }
    text_add(t, "  ]\n}\n");
}
