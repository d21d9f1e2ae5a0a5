/* epochfs audit: reads an epoch of a mount, and proves that it is what its plan says.
 *
 * The samples of the plan's list are read twice, as any program reads them: in stored order, which
 * needs no order of an epoch, and as the plan shows them. fs/audit compares. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/values.h"
#include "cache/disk/local_blob.h"
#include "fs/audit/tally.h"
#include "fs/cli/audit_dataset.h"
#include "fs/cli/commands.h"
#include "fs/cli/progress.h"
#include "fs/cli/status_values.h"
#include "fs/life/mounts.h"
#include "fs/plan/plan.h"
#include "fs/plan/schedule.h"

#define RANKS_MOST   65536u
#define BATCH_OF_ALL 128 /* samples read at a time where the plan says batch=all */

struct audit_call {
    bool all_ranks, progress;
    const char *epoch_typed;            /* NULL: --epoch was not */
    const char *mountpoint, *plan_text; /* as the user gave them */
    struct plan plan;
    uint64_t epoch;
    struct audit_dataset dataset;
    struct progress shown;
    uint64_t done, total; /* bytes */
};

/* ---- the batches of a plan ---- */

/* "<dataset>/batches/<plan>[/epoch=E]/npz". A plan in stored order has no epochs. */
static int batches_folder(const struct audit_call *call, const struct plan *plan,
                          char ret[static PATH_MAX])
{
    char name[PLAN_NAME_SIZE], epoch[32] = "";
    int n;

    plan_name(plan, name);
    if (plan_has_epochs(plan))
        snprintf(epoch, sizeof(epoch), "/epoch=%llu", (unsigned long long)call->epoch);
    n = snprintf(ret, PATH_MAX, "%s/batches/%s%s/npz", call->dataset.folder, name, epoch);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* What to do with each batch of a folder. */
struct walk {
    struct audit_call *call;
    struct audit_tally *tally;
    struct audit_request request;
    int (*note)(struct audit_tally *tally, const struct audit_batch *batch, const char *name);
    struct audit_batch batch;
    unsigned digits;        /* of the names of batches */
    uint64_t classes, each; /* of a batch, with classes=PxK; 0 */
    uint64_t rank;          /* whose batches are read, */
    uint64_t whole;         /* and how many batches of classes all ranks have before positions that
                               limit= cuts, or that tail=wrap repeats */
    unsigned source;        /* of a mix, whose list is read */
    bool has_shares;        /* positions come one after another: compare the shares of a mix */
};

/* Make the numbers of a batch those of the mix. */
static int number_mix(struct walk *walk, bool is_list)
{
    const struct audit_mix *mix = walk->call->dataset.mix;
    struct audit_batch *batch = &walk->batch;

    for (size_t i = 0; i < batch->n && mix->n; i++) {
        uint64_t source = is_list ? walk->source : batch->source[i];

        if (source >= mix->n || batch->number[i] >= mix->source[source].count)
            return -EBADMSG;
        batch->number[i] += mix->source[source].first;
    }
    return 0;
}

/* A batch of several samples holds its budget, where its lengths are known. */
static void check_budget(struct walk *walk, const char *name)
{
    const struct plan *plan = &walk->call->plan;
    double longest = (double)walk->batch.longest, n = (double)walk->batch.n;
    double cost = longest + (plan->quad ? floor(longest * longest * 1e6 / (double)plan->quad) : 0);
    char line[256];

    if (!plan->budget || !walk->batch.longest || walk->batch.n < 2 ||
        n * cost <= (double)plan->budget / 1e6)
        return;
    snprintf(line, sizeof(line), "%.100s: expected at most %.17g of %.60s, got %g times %g\n", name,
             (double)plan->budget / 1e6, plan->length, n, cost);
    audit_tally_fault(walk->tally, line);
}

static int note_batch(struct walk *walk, uint64_t number, const char *name, struct diag *d)
{
    bool is_whole = number * walk->call->plan.ranks + walk->rank < walk->whole;
    int r = number_mix(walk, walk->note == audit_tally_list);

    if (r < 0)
        return diag_set(d, r, "%s: expected samples of the mix's sources, got others", name);
    r = walk->note(walk->tally, &walk->batch, name);
    if (r == 0 && walk->note == audit_tally_epoch)
        check_budget(walk, name);
    if (r == 0 && walk->classes && is_whole)
        r = audit_tally_runs(walk->tally, &walk->batch, name, walk->classes, walk->each);
    if (r == 0 && walk->has_shares)
        audit_shares_note(&walk->call->dataset.mix->shares, &walk->batch, name, walk->tally);
    return r;
}

/* The path from the dataset on. */
static const char *shown_path(const struct audit_call *call, const char *path)
{
    size_t len = strlen(call->dataset.folder);

    return !strncmp(path, call->dataset.folder, len) && path[len] == '/' ? path + len + 1 : path;
}

static int read_batch(struct walk *walk, const char *folder, uint64_t number, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX + 40];
    struct stat st;
    int fd, r;

    snprintf(path, sizeof(path), "%s/%0*llu.npz", folder, (int)walk->digits,
             (unsigned long long)number);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return diag_set(d, r, "%s: %s", path, strerror(-r));
    }
    r = local_blob_new(fd, path, (uint64_t)st.st_size, true, &blob);
    if (r == 0)
        r = audit_batch_read(blob, &walk->request, &walk->batch, d);
    if (r == 0)
        r = note_batch(walk, number, shown_path(walk->call, path), d);
    walk->call->done += (uint64_t)st.st_size;
    progress_show(&walk->call->shown, min_u64(walk->call->done, walk->call->total),
                  walk->call->total);
    return r;
}

/* Why the mount refuses the plan, as its status says it; without that, where to look. */
static int cli_audit_refused(const struct audit_call *call, const char *folder, struct diag *d)
{
    static char text[1 << 20];
    AUTO_JSON json_t *json = NULL;
    const char *plan = folder + strlen(call->dataset.folder) + strlen("/batches/");
    char path[PATH_MAX + 32], name[PLAN_NAME_SIZE], why[1024];
    size_t len = strlen(call->dataset.folder);

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(plan, "/"), plan);
    do { /* the mount is above its datasets */
        snprintf(path, sizeof(path), "%.*s/.epochfs/status.json", (int)len, call->dataset.folder);
        while (len && call->dataset.folder[len - 1] != '/')
            len--;
        len -= len > 0;
    } while (access(path, F_OK) < 0 && len);
    if (audit_read_text(path, text, sizeof(text)) == 0)
        json = status_parse(text);
    if (status_string(json, "last_refused_name", why, sizeof(why)) && strstr(why, name))
        return diag_set(d, -ENOENT, "%s", why);
    return diag_set(d, -ENOENT, "%s: %s; the mount's log says why", folder, strerror(ENOENT));
}

/* Count the batches of a folder, which its names number from 0 on. */
static int count_batches(const struct audit_call *call, const char *folder, uint64_t *ret,
                         unsigned *ret_digits, struct diag *d)
{
    DIR *dir = opendir(folder);
    uint64_t n = 0, most = 0, number = 0;

    if (!dir && errno == ENOENT)
        return cli_audit_refused(call, folder, d);
    if (!dir)
        return diag_set(d, -errno, "%s: %s", folder, strerror(errno));
    for (struct dirent *e; (errno = 0, e = readdir(dir));) {
        size_t len = strcspn(e->d_name, ".");

        if (len > 20 ||
            !padded_number_parse(e->d_name, len, len < 6 ? 6 : (unsigned)len, &number) ||
            strcmp(e->d_name + len, ".npz") != 0)
            continue;
        n++;
        *ret_digits = (unsigned)len;
        most = max_u64(most, number + 1);
    }
    closedir(dir);
    if (errno)
        return diag_set(d, -errno, "%s: %s", folder, strerror(errno));
    if (n != most)
        return diag_set(d, -EBADMSG, "%s: expected batches 0 to %llu, got %llu of them", folder,
                        (unsigned long long)most - 1, (unsigned long long)n);
    *ret = n;
    return 0;
}

static int read_folder(struct walk *walk, const char *folder, uint64_t *ret_n, struct diag *d)
{
    uint64_t n = 0;
    int r = count_batches(walk->call, folder, &n, &walk->digits, d);

    for (uint64_t i = 0; i < n && r == 0; i++)
        r = read_batch(walk, folder, i, d);
    *ret_n += n;
    return r;
}

static int read_batches(struct walk *walk, const struct plan *plan, uint64_t *ret_n, struct diag *d)
{
    char folder[PATH_MAX];
    int r = batches_folder(walk->call, plan, folder);

    return r < 0 ? r : read_folder(walk, folder, ret_n, d);
}

/* Open the first batch of a plan; *ret_path: its name. A descriptor or -errno. */
static int open_first(const struct audit_call *call, const struct plan *plan,
                      char ret_path[static PATH_MAX + 32])
{
    char folder[PATH_MAX];
    int r = batches_folder(call, plan, folder), fd;

    if (r < 0)
        return r;
    snprintf(ret_path, PATH_MAX + 32, "%s/000000.npz", folder);
    fd = open(ret_path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Which members a mix has of its sources: those of a batch; the plan itself may have none. */
static int cli_audit_read_members(const struct audit_call *call, struct text *ret, struct diag *d)
{
    const struct plan other = {.batch = 1, .parts = 1, .ranks = 1};
    AUTO_BLOB struct blob *blob = NULL;
    char path[PATH_MAX + 32];
    int fd = open_first(call, &call->plan, path), r;
    struct stat st;

    if (fd == -ENOENT)
        fd = open_first(call, &other, path);
    if (fd < 0)
        return diag_set(d, fd, "%s: %s", path, strerror(-fd));
    r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0)
        r = local_blob_new(fd, path, (uint64_t)st.st_size, true, &blob);
    else
        close(fd);
    return r < 0 ? r : audit_batch_members(blob, ret, d);
}

/* ---- the proof ---- */

/* The plan's list in its stored order. */
static struct plan list_plan(const struct plan *plan)
{
    struct plan list;

    plan_of_list(plan, &list);
    list.batch = list.batch ? list.batch : BATCH_OF_ALL;
    return list;
}

static enum audit_promise promise_of(const struct plan *plan)
{
    if (plan->batch_classes)
        return AUDIT_MEMBERS;
    return plan->draw == DRAW_BALANCED  ? AUDIT_BALANCED
           : plan->draw == DRAW_WEIGHTS ? AUDIT_WEIGHTS
                                        : AUDIT_ONCE;
}

/* What the plan promises of its list, for one of its ranks or all of them. 0 or -ENOMEM. */
static int find_rule(const struct audit_call *call, const struct audit_tally *tally,
                     struct audit_rule *ret)
{
    struct plan_classes classes = {.places = audit_tally_places(tally)};
    struct plan_weights weights = {.places = classes.places, .total = 1};
    struct plan_data data = {.samples = classes.places};
    struct schedule s;
    struct plan plan;

    plan_without_list(&call->plan, &plan);
    if ((plan.batch_classes || plan.draw == DRAW_BALANCED) &&
        audit_tally_classes(tally, &classes.n, &classes.most) < 0)
        return -ENOMEM;
    if (plan.batch_classes || plan.draw == DRAW_BALANCED)
        data.classes = &classes;
    if (plan.draw == DRAW_WEIGHTS)
        data.weights = &weights;
    if (call->dataset.mix->n)
        data.samples = call->dataset.mix->epoch_samples;
    schedule_init_data(&s, &plan, &data); /* for the lengths alone */
    *ret = (struct audit_rule){.promise = call->dataset.mix->n ? AUDIT_MIXED : promise_of(&plan),
                               .places = classes.places,
                               .source = call->dataset.mix->source,
                               .n_sources = call->dataset.mix->n,
                               .promised = s.order.length,
                               .positions = s.positions};
    /* But with tail=keep, each rank has as many. */
    ret->elements = plan.tail == TAIL_KEEP ? s.positions : s.elements * plan.ranks;
    ret->read = call->all_ranks ? ret->elements : s.elements;
    if (plan_is_by_length(&plan)) /* see rule_of_cuts() */
        ret->read = call->all_ranks || plan.ranks == 1 ? s.positions : 0;
    return 0;
}

/* Add the bytes of a folder's batches. */
static int cli_audit_measure(struct audit_call *call, const char *folder, struct diag *d)
{
    char path[PATH_MAX + 40];
    struct stat st;
    uint64_t n = 0;
    unsigned digits = 0;
    int r = count_batches(call, folder, &n, &digits, d);

    for (uint64_t i = 0; i < n && r == 0; i++) {
        snprintf(path, sizeof(path), "%s/%0*llu.npz", folder, (int)digits, (unsigned long long)i);
        if (stat(path, &st) < 0)
            r = diag_set(d, -errno, "%s: %s", path, strerror(errno));
        else
            call->total += (uint64_t)st.st_size;
    }
    return r;
}

/* Read the list: in the stored order of the dataset, or of each source of a mix. */
static int cli_audit_read_list(struct walk *walk, struct diag *d)
{
    struct audit_call *call = walk->call;
    struct plan list = list_plan(&call->plan);
    char folder[PATH_MAX];
    uint64_t unused = 0;
    int r = 0;

    for (unsigned i = 0; i < call->dataset.mix->n && r == 0; i++)
        r = cli_audit_measure(call, call->dataset.mix->folder[i], d);
    for (walk->source = 0; walk->source < call->dataset.mix->n && r == 0; walk->source++)
        r = read_folder(walk, call->dataset.mix->folder[walk->source], &unused, d);
    if (call->dataset.mix->n || r < 0)
        return r;
    r = batches_folder(call, &list, folder);
    if (r == 0)
        r = cli_audit_measure(call, folder, d);
    return r < 0 ? r : read_folder(walk, folder, &unused, d);
}

/* The list is read: what comes now is the epoch. */
static void begin_epoch(struct walk *walk, const struct audit_rule *rule)
{
    struct audit_call *call = walk->call;
    const struct plan *plan = &call->plan;
    uint64_t share = rule->places ? call->total / rule->places : 0, all, position = 0;
    struct audit_mix *mix = call->dataset.mix;

    if (checked_mul(share, rule->read, &all))
        call->total += all;
    walk->note = audit_tally_epoch;
    walk->classes = plan->batch_classes;
    walk->each = plan->of_class;
    walk->whole = plan->of_class ? rule->positions / plan->batch : 0;
    walk->has_shares = mix->n && plan->ranks == 1 && !plan_is_by_length(plan);
    if (!checked_mul(call->epoch, mix->epoch_samples, &position))
        position = AUDIT_POSITION_MAX;
    position = min_u64(position, AUDIT_POSITION_MAX);
    for (unsigned i = 0; i < mix->n; i++)
        audit_shares_bounds(&mix->shares, i, position, rule->positions, &mix->source[i].least,
                            &mix->source[i].most);
    if (walk->has_shares)
        audit_shares_begin(&mix->shares, position, rule->positions);
}

/* How many samples a rank reads, or tail= leaves, follows from their lengths: as many as there are.
 */
static void rule_of_cuts(const struct plan *plan, uint64_t seen, struct audit_rule *rule)
{
    rule->read = seen;
    rule->elements = plan->tail == TAIL_WRAP  ? max_u64(rule->positions, seen)
                     : seen < rule->positions ? rule->positions
                                              : seen;
}

static int audit(struct audit_call *call, struct audit_tally *tally, uint64_t *ret_batches,
                 struct audit_rule *ret_rule, struct diag *d)
{
    struct walk walk = {.call = call, .tally = tally, .note = audit_tally_list};
    AUTO_TEXT struct text members = {0};
    struct plan plan = call->plan;
    bool by_classes;
    int r = call->dataset.mix->n ? cli_audit_read_members(call, &members, d) : 0;

    walk.request =
        (struct audit_request){.field = plan_field(&plan, call->dataset.label, &by_classes),
                               .length = plan.budget ? plan.length : NULL,
                               .members = members.data};
    if (r == 0)
        r = cli_audit_read_list(&walk, d);
    if (r == 0)
        r = find_rule(call, tally, ret_rule);
    if (r == 0)
        begin_epoch(&walk, ret_rule);
    for (uint64_t rank = 0; rank < plan.ranks && r == 0; rank++) {
        if (!call->all_ranks && rank != call->plan.rank)
            continue;
        plan.rank = walk.rank = rank;
        r = read_batches(&walk, &plan, ret_batches, d);
    }
    if (plan_is_by_length(&plan) && (plan.tail != TAIL_KEEP || ret_rule->read < ret_rule->elements))
        rule_of_cuts(&plan, audit_tally_elements(tally), ret_rule);
    audit_batch_release(&walk.batch);
    return r < 0 ? r : audit_tally_compare(tally, ret_rule);
}

/* "each once", "each 2 or 3 times". Returns ret. */
static const char *how_often(uint64_t least, uint64_t most, char ret[static 80])
{
    const char *times = most == 1 ? "once" : "times";

    if (most == 1)
        snprintf(ret, 80, least ? "each %s" : "each at most %s", times);
    else if (least == most)
        snprintf(ret, 80, "each %llu times", (unsigned long long)most);
    else
        snprintf(ret, 80, "each %llu %s %llu times", (unsigned long long)least,
                 most - least == 1 ? "or" : "to", (unsigned long long)most);
    return ret;
}

static int say_result(const struct audit_call *call, struct audit_tally *tally,
                      const struct audit_rule *rule, uint64_t batches)
{
    char name[PLAN_NAME_SIZE], epoch[40] = "", often[80];
    struct audit_result result;

    if (audit_tally_result(tally, &result) < 0)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    plan_name(&call->plan, name);
    if (plan_has_epochs(&call->plan))
        snprintf(epoch, sizeof(epoch), ", epoch %llu", (unsigned long long)call->epoch);
    if (result.faults) {
        fputs(result.first, stderr);
        return fail(EXIT_AUDIT, "%s: %s%s: %llu fault%s", call->dataset.folder, name, epoch,
                    (unsigned long long)result.faults, result.faults == 1 ? "" : "s");
    }
    printf("%s%s%s: %llu samples in %llu batch%s, of the %llu of the list %s; all equal to the "
           "stored order; SHA-256 of the epoch %s\n",
           name, epoch, call->all_ranks && call->plan.ranks > 1 ? ", all ranks" : "",
           (unsigned long long)rule->read, (unsigned long long)batches, batches == 1 ? "" : "es",
           (unsigned long long)rule->places, how_often(result.least, result.most, often),
           result.sha256);
    return EXIT_DONE;
}

static int cli_audit_parse_words(struct audit_call *call)
{
    struct diag d = DIAG_INIT;

    if (plan_parse(call->plan_text, strlen(call->plan_text), ',', &call->plan, &d) < 0)
        return fail(EXIT_USAGE, "%s: %s", call->plan_text, diag_text(&d, -EINVAL));
    if (call->plan.unit[0])
        return fail(EXIT_USAGE,
                    "%s: expected a plan of samples, got unit=%s, which audit cannot prove",
                    call->plan_text, call->plan.unit);
    if (call->all_ranks && call->plan.ranks > RANKS_MOST)
        return fail(EXIT_USAGE, "--all-ranks: expected at most %u ranks, got %llu", RANKS_MOST,
                    (unsigned long long)call->plan.ranks);
    if (call->epoch_typed && !plan_has_epochs(&call->plan))
        return fail(EXIT_USAGE,
                    "--epoch: expected a plan with epochs, such as one with seed=, got %s",
                    call->plan_text);
    return -1;
}

static int run_audit(struct audit_call *call)
{
    AUTO_AUDIT_TALLY struct audit_tally *tally = NULL;
    struct audit_rule rule = {0};
    struct diag d = DIAG_INIT;
    uint64_t batches = 0;
    int r;

    progress_init(&call->shown, "audited", call->progress);
    r = audit_tally_new(call->dataset.samples, &tally);
    if (r == 0)
        r = audit(call, tally, &batches, &rule, &d);
    progress_end(&call->shown, r == 0 ? call->total : min_u64(call->done, call->total),
                 call->total);
    if (r < 0)
        return fail(r == -EBADMSG ? EXIT_AUDIT : code_for(r, EXIT_MOUNT), "%s", diag_text(&d, r));
    return say_result(call, tally, &rule, batches);
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
            "5 if the epoch is wrong (stderr names the first faults), and 3 if it cannot be read.",
        .example = "audit ~/mnt/train batch=128,seed=7",
        .flag = {
            {"epoch", "=E", .number = &call.epoch, .typed = &call.epoch_typed, .most = UINT64_MAX,
             .help = "read this epoch"},
            {"all-ranks", .set = &call.all_ranks,
             .help = "read all ranks of a plan with rank=, which together show the whole epoch"},
            {"progress", .set = &call.progress, .help = COMMAND_PROGRESS}}};
    const char *word[2];
    struct diag d = DIAG_INIT;
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
    call.dataset.mix = calloc(1, sizeof(*call.dataset.mix));
    if (!call.dataset.mix)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    code = audit_dataset_find(call.mountpoint, call.plan.batch ? call.plan.batch : BATCH_OF_ALL,
                              &call.dataset);
    if (code < 0)
        code = run_audit(&call);
    audit_mix_release(call.dataset.mix);
    free(call.dataset.mix);
    return code;
}

const struct command command_audit = {
    "audit", cli_audit_run, "audit [--epoch=E] [--all-ranks] [--progress] MOUNTPOINT PLAN"};
