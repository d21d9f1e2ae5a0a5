/* epochfs audit: reads an epoch of a mount, and proves that it is what its plan says.
 *
 * This parses the plan; python/epochfs/_audit.py does the work. */
#include <stdio.h>
#include <string.h>

#include "fs/cli/commands.h"
#include "fs/cli/python.h"
#include "fs/life/mounts.h"
#include "fs/plan/plan.h"

#define RANKS_MOST   65536u
#define BATCH_OF_ALL 128 /* samples read at a time where the plan says batch=all */

typedef unsigned long long ull;

struct audit_call {
    bool all_ranks, progress;
    const char *epoch_typed;            /* NULL: --epoch was not */
    const char *mountpoint, *plan_text; /* as the user gave them */
    struct plan plan;
    uint64_t epoch;
};

static int cli_audit_parse_words(struct audit_call *call)
{
    struct diag d = DIAG_INIT;

    if (plan_parse(call->plan_text, strlen(call->plan_text), ',', &call->plan, &d) < 0)
        return fail(EXIT_USAGE, "%s: %s", call->plan_text, diag_text(&d, -EINVAL));
    if (call->all_ranks && call->plan.ranks > RANKS_MOST)
        return fail(EXIT_USAGE, "--all-ranks: expected at most %u ranks, got %llu", RANKS_MOST,
                    (ull)call->plan.ranks);
    if (call->epoch_typed && !plan_has_epochs(&call->plan))
        return fail(EXIT_USAGE,
                    "--epoch: expected a plan with epochs, such as one with seed=, got %s",
                    call->plan_text);
    return -1;
}

/* The words of the plan, and of the command, as JSON. */
static void audit_add_words(const struct audit_call *call, struct text *t)
{
    static const char *const tails[] = {"keep", "drop", "wrap"};
    static const char *const draws[] = {"", "uniform", "balanced", "weights"};
    const struct plan *plan = &call->plan;
    char name[PLAN_NAME_SIZE];
    const char *field;
    struct plan list;
    bool by_classes;

    plan_of_list(plan, &list); /* in its stored order */
    list.batch = list.batch ? list.batch : BATCH_OF_ALL;
    memcpy(list.unit, plan->unit, sizeof(list.unit));
    field = plan_field(plan, "", &by_classes);
    plan_name(plan, name);
    text_add(t, "{\"epoch\": %llu, \"has_epochs\": %d, \"all_ranks\": %d, \"progress\": %s",
             (ull)call->epoch, plan_has_epochs(plan), call->all_ranks,
             call->progress ? "true" : "false");
    json_add_text(t, NULL, "name", name);
    plan_name(&list, name);
    json_add_text(t, NULL, "list", name);
    json_add_text(t, NULL, "field", field ? field : "");
    json_add_text(t, NULL, "tail", tails[plan->tail]);
    json_add_text(t, NULL, "draw", draws[plan->draw]);
    json_add_text(t, NULL, "length", plan->length);
    json_add_text(t, NULL, "unit", plan->unit);
    text_add(t,
             ", \"batch\": %llu, \"rank\": %llu, \"ranks\": %llu, \"draws\": %llu, "
             "\"classes\": %llu, \"of_class\": %llu, \"budget\": %llu, \"quad\": %llu, "
             "\"by_length\": %d, \"limit\": ",
             (ull)plan->batch, (ull)plan->rank, (ull)plan->ranks, (ull)plan->draws,
             (ull)plan->batch_classes, (ull)plan->of_class, (ull)plan->budget, (ull)plan->quad,
             plan_is_by_length(plan));
    text_add(t, plan->limits ? "%llu}\n" : "null}\n", (ull)plan->limit);
}

static int cli_audit_run(int argc, char **argv)
{
    struct audit_call call = {0};
    const struct command_line line = {
        .name = "audit",
        .word = "MOUNTPOINT PLAN",
        .usage = command_audit.usage,
        .about =
            "Reads an epoch of a mount and proves it: every sample comes as often as the plan "
            "says, and is equal, by SHA-256, to what the stored order shows. PLAN is the name of a "
            "directory in batches/. MOUNTPOINT may also be the directory of a dataset. Prints one "
            "line, with a SHA-256 of the epoch that is the same on every machine. The exit code is "
            "5 if the epoch is wrong (stderr names the first faults), and 3 if it cannot be read. "
            "It needs Python 3 and NumPy.",
        .example = "audit ~/mnt/train batch=128,seed=7",
        .flag = {
            {"epoch", "=E", .number = &call.epoch, .typed = &call.epoch_typed, .most = UINT64_MAX,
             .help = "read this epoch"},
            {"all-ranks", .set = &call.all_ranks,
             .help = "read all ranks of a plan with rank=, which together show the whole epoch"},
            {"progress", .set = &call.progress, .help = COMMAND_PROGRESS}}};
    AUTO_TEXT struct text words = {0};
    struct diag d = DIAG_INIT;
    const char *word[2];
    bool is_mountpoint;
    int code = parse_command(argc, argv, &line, word);

    if (code < 0) {
        call.mountpoint = word[0];
        call.plan_text = word[1];
        code = cli_audit_parse_words(&call);
    }
    if (code >= 0)
        return code;
    if (mounts_check(call.mountpoint, &is_mountpoint, &d) < 0)
        return fail(EXIT_MOUNT, "%s", diag_text(&d, -ETIMEDOUT));
    audit_add_words(&call, &words);
    return python_become("audit", call.mountpoint, &words);
}

const struct command command_audit = {
    "audit", cli_audit_run, "audit [--epoch=E] [--all-ranks] [--progress] MOUNTPOINT PLAN"};
