/* Each edge of the state machine of work that lacks bytes of a remote. The test turns the clock. */
#include <errno.h>

#include "base/retry.h"
#include "base/scope.h"
#include "support/unit.h"

enum event { STEP, TIME, ASK, GIVE_UP };

/* In the state `from`, paused until RETRY_PAUSE_NS: what the event makes of it. r: of a step; 1: an
 * early look, or what retry_give_up() returns. */
static const struct {
    enum retry_state from;
    enum event event;
    int r;
    enum retry_state to;
} edges[] = {
    {RETRY_GOES_ON, STEP, 0, RETRY_GOES_ON},
    {RETRY_GOES_ON, STEP, 1, RETRY_DONE},
    {RETRY_GOES_ON, STEP, -EREMOTEIO, RETRY_PAUSES},
    {RETRY_GOES_ON, STEP, -EINTR, RETRY_PAUSES},
    {RETRY_GOES_ON, STEP, -ESTALE, RETRY_FAILED},
    {RETRY_GOES_ON, STEP, -ENOMEM, RETRY_FAILED},
    {RETRY_GOES_ON, TIME, 0, RETRY_GOES_ON},
    {RETRY_GOES_ON, ASK, 0, RETRY_GOES_ON},
    {RETRY_GOES_ON, GIVE_UP, 0, RETRY_GOES_ON}, /* it is not yet time to */
    {RETRY_PAUSES, TIME, 1, RETRY_PAUSES},
    {RETRY_PAUSES, TIME, 0, RETRY_GOES_ON},
    {RETRY_PAUSES, ASK, 0, RETRY_GOES_ON},
    {RETRY_PAUSES, GIVE_UP, 1, RETRY_FAILED},
    {RETRY_DONE, TIME, 0, RETRY_DONE},
    {RETRY_DONE, ASK, 0, RETRY_DONE},
    {RETRY_DONE, GIVE_UP, 0, RETRY_DONE},
    {RETRY_FAILED, TIME, 0, RETRY_FAILED},
    {RETRY_FAILED, ASK, 0, RETRY_FAILED},
    {RETRY_FAILED, GIVE_UP, 0, RETRY_FAILED},
};

UNIT_TEST(test_retry__each_edge__one_state)
{
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        struct retry retry = {edges[i].from, RETRY_PAUSE_NS};
        int64_t now = edges[i].event == TIME && !edges[i].r ? RETRY_PAUSE_NS : RETRY_PAUSE_NS - 1;

        switch (edges[i].event) {
        case STEP:
            retry_step(&retry, edges[i].r, now);
            break;
        case TIME:
            assert_int_equal(retry_may(&retry, now), edges[i].to == RETRY_GOES_ON);
            break;
        case ASK:
            retry_ask(&retry);
            break;
        default:
            assert_int_equal(retry_give_up(&retry), edges[i].r);
        }
        if (retry.state != edges[i].to)
            fail_msg("edge %zu: expected state %u, got %u", i, edges[i].to, retry.state);
    }
}

/* A mount, whose remote is away for three tries. */
UNIT_TEST(test_retry__mount__a_step_a_second_until_it_is_back)
{
    const int result[] = {0, -EREMOTEIO, -EREMOTEIO, -EREMOTEIO, 0, 1};
    struct retry retry = {0};
    size_t steps = 0;
    int64_t now = 0;

    while (retry.state != RETRY_DONE) {
        if (retry_may(&retry, now))
            retry_step(&retry, result[steps++], now);
        else
            now += RETRY_PAUSE_NS / 10;
    }
    assert_int_equal(steps, ARRAY_LEN(result));
    assert_int_equal(now, 3 * RETRY_PAUSE_NS);
}
