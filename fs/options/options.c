#include "fs/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/values.h"
#include "cache/disk/staged_file.h"
#include "format/kaldi/object/object.h"
#include "fs/log/log.h"
#include "fs/options/help.h"

#define AHEAD_MOST (UINT64_C(256) << 20)

/* Credentials: the value must not be shown, either. */
static int refuse_secret(const char *name, struct diag *d)
{
    return diag_set(
        d, -EINVAL,
        "option %s: credentials are not taken from options, because everybody can read those; they "
        "come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, the shared files "
        "(~/.aws/credentials, see profile=), or the endpoints of containers and instances",
        name);
}

/* One option of ours. value is NULL where no '=' was given. */
struct option {
    const char *name;
    const char *form; /* of the value, NULL: takes none */
    const char *help;
    int (*set)(struct options *o, const char *value, struct diag *d);
    /* or, of one that takes a number from least to most: */
    void (*set_number)(struct options *o, uint64_t v);
    uint64_t least, most;
};

static int set_plan(struct options *o, const char *value, struct diag *d)
{
    struct plan *grown = realloc(o->plan, (o->n_plans + 1) * sizeof(*grown));
    struct diag reason = DIAG_INIT;
    int r;

    if (!grown)
        return -ENOMEM;
    o->plan = grown;
    r = plan_parse(value, strlen(value), '+', &o->plan[o->n_plans], &reason);
    if (r < 0)
        return diag_set(d, r, "option plan=%s: %s (parameters are joined by +)", value,
                        reason.text);
    o->n_plans++;
    return 0;
}

static void set_epochs(struct options *o, uint64_t v)
{
    o->epochs = v;
}

static void set_classes(struct options *o, uint64_t v)
{
    o->format.classes = v;
}

static int set_index_base(struct options *o, const char *value, struct diag *d)
{
    static const char *const words[] = {
        [INDEX_AS_IS] = "asis", [INDEX_FROM_ONE] = "1", [INDEX_AUTO] = "auto"};
    unsigned base = o->format.index_base;
    int r = value_word("index_base", value, words, ARRAY_LEN(words), &base, d);

    o->format.index_base = (enum index_base)base;
    return r;
}

static int set_bad_rows(struct options *o, const char *value, struct diag *d)
{
    static const char *const words[] = {"error", "skip"};
    unsigned skip = 0;
    int r = value_word("bad_rows", value, words, ARRAY_LEN(words), &skip, d);

    o->format.skip_bad_rows = skip;
    return r;
}

/* A type that -o kaldi_type= names. */
static int set_kaldi_type(struct options *o, const char *value, struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = KALDI_UNKNOWN + 1; i < N_KALDI_TYPES; i++) {
        if (!strcmp(value, kaldi_types[i].name)) {
            o->format.kaldi_type = i;
            return 0;
        }
        text_add(&t, "%s%s",
                 i + 1 == N_KALDI_TYPES ? " or "
                 : i > 1                ? ", "
                                        : "",
                 kaldi_types[i].name);
    }
    return diag_set(d, -EINVAL, "option kaldi_type=%s: want %s", value, t.data ? t.data : "");
}

/* Options of Kaldi's rspecifiers that mean something to a mount; the others change nothing. */
static const char *const kaldi_flags[] = {"o",  "no",  "p",  "np", "s", "ns",
                                          "cs", "ncs", "bg", "b",  "t"};

static bool is_kaldi_flag(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(kaldi_flags); i++)
        if (!strcmp(word, kaldi_flags[i]))
            return true;
    return false;
}

static void set_kaldi_flag(struct options *o, const char *flag)
{
    bool on = flag[0] != 'n';
    const char *name = on ? flag : flag + 1;

    if (!strcmp(name, "o"))
        o->reads_once = on;
    else if (!strcmp(name, "p"))
        o->format.kaldi_permissive = on;
    else if (!strcmp(name, "s"))
        o->format.kaldi_sorted = on;
    else if (!strcmp(name, "cs"))
        o->reads_sorted = on;
}

/* Words joined by + here; by commas they come one by one, see parse_one(). */
static int set_kaldi(struct options *o, const char *value, struct diag *d)
{
    AUTO_FREE char *words = strdup(value);
    char *rest = words, *word;

    if (!words)
        return -ENOMEM;
    while ((word = strsep(&rest, "+"))) {
        if (!is_kaldi_flag(word))
            return diag_set(d, -EINVAL,
                            "option kaldi=%s: want o, p, s, cs, or one of them with n in front, "
                            "found '%s'",
                            value, word);
        set_kaldi_flag(o, word);
    }
    o->kaldi_may_go_on = true;
    return 0;
}

static int set_allow_outside(struct options *o, const char *value, struct diag *d)
{
    (void)value;
    (void)d;
    o->allow_outside = o->source.allow_outside = true;
    return 0;
}

static int set_allow_commands(struct options *o, const char *value, struct diag *d)
{
    (void)value;
    (void)d;
    o->allow_commands = true;
    return 0;
}

static void set_command_timeout(struct options *o, uint64_t v)
{
    o->command_limit = v;
}

static int set_ahead(struct options *o, const char *value, struct diag *d)
{
    if (!strcmp(value, "0")) {
        o->ahead = 0;
        return 0;
    }
    return value_size("ahead", value, &o->ahead, d);
}

static int set_cache(struct options *o, const char *value, struct diag *d)
{
    return value_path("cache", value, "a folder", &o->cache, d);
}

static int set_cache_size(struct options *o, const char *value, struct diag *d)
{
    struct stage_options *stage = &o->source.stage;
    size_t n = strspn(value, "0123456789");
    uint64_t percent = 0;

    o->source.limits_all = true;
    if (strcmp(value + n, "%") != 0) {
        int r = value_size("cache_size", value, &stage->limit, d);

        stage->limit_percent = r == 0 ? 0 : stage->limit_percent;
        return r;
    }
    if (number_parse(value, n, 100, &percent) != n || !percent)
        return diag_set(d, -EINVAL, "option cache_size=%s: want 1%% to 100%%", value);
    stage->limit = 0;
    stage->limit_percent = (unsigned)percent;
    return 0;
}

static int set_keep(struct options *o, const char *value, struct diag *d)
{
    static const char *const words[] = {
        [STAGE_PIN] = "pin", [STAGE_ONCE] = "once", [STAGE_PLAN] = "plan"};
    unsigned keep = o->source.stage.keep;
    int r = value_word("keep", value, words, ARRAY_LEN(words), &keep, d);

    o->source.stage.keep = (enum stage_keep)keep;
    return r;
}

static int set_block(struct options *o, const char *value, struct diag *d)
{
    uint64_t v = 0;
    bool is_auto = value && !strcmp(value, "auto");
    int r = is_auto ? 0 : value_size("block", value, &v, d);

    if (r == 0 && !is_auto && (v & (v - 1) || v < STAGED_BLOCK_LEAST || v > STAGED_BLOCK_MOST))
        return diag_set(d, -EINVAL, "option block=%s: want a power of two from %uK to %uK, or auto",
                        value, STAGED_BLOCK_LEAST >> 10, STAGED_BLOCK_MOST >> 10);
    if (r == 0)
        o->source.stage.block = (uint32_t)v;
    return r;
}

static void set_jobs(struct options *o, uint64_t v)
{
    o->source.stage.jobs = (unsigned)v;
    o->source.stage.small_jobs = 0; /* it is the limit of all */
}

static int set_rate(struct options *o, const char *value, struct diag *d)
{
    return value_size("rate", value, &o->source.stage.rate, d);
}

static void set_patience(struct options *o, uint64_t v)
{
    o->source.stage.retry_limit_s = (unsigned)v;
}

static void set_timeout(struct options *o, uint64_t v)
{
    o->source.timeout_s = (unsigned)v;
}

static int set_stage(struct options *o, const char *value, struct diag *d)
{
    static const char *const words[] = {"off", "auto"};
    unsigned background = o->source.stage.background;
    int r = value_word("stage", value, words, ARRAY_LEN(words), &background, d);

    o->source.stage.background = background;
    return r;
}

static int set_endpoint(struct options *o, const char *value, struct diag *d)
{
    const char *host = strstr(value, "://");

    if (host && strchr(host, '@')) /* a password may have any letters, '/', too */
        return refuse_secret("endpoint", d);
    if (!host ||
        (strncasecmp(value, "http://", 7) != 0 && strncasecmp(value, "https://", 8) != 0) ||
        !host[3] || host[3] == '/')
        return diag_set(d, -EINVAL, "option endpoint=%s: want a URL, https://HOST[:PORT]", value);
    return value_text("endpoint", value, "a URL", &o->source.endpoint, d);
}

static int set_region(struct options *o, const char *value, struct diag *d)
{
    return value_text("region", value, "the name of a region", &o->source.region, d);
}

static int set_profile(struct options *o, const char *value, struct diag *d)
{
    return value_text("profile", value, "the name of a profile", &o->source.profile, d);
}

static int set_anonymous(struct options *o, const char *value, struct diag *d)
{
    (void)value;
    (void)d;
    o->source.anonymous = true;
    return 0;
}

static int set_virtual_host(struct options *o, const char *value, struct diag *d)
{
    (void)value;
    (void)d;
    o->source.virtual_host = true;
    return 0;
}

static int set_ca(struct options *o, const char *value, struct diag *d)
{
    return value_path("ca", value, "a file of certificates", &o->source.ca, d);
}

static int set_files(struct options *o, const char *value, struct diag *d)
{
    return value_text("files", value, "names of files, separated by ;", &o->source.files, d);
}

static int set_transpose(struct options *o, const char *value, struct diag *d)
{
    (void)value;
    (void)d;
    o->format.transpose = true;
    return 0;
}

static int set_log(struct options *o, const char *value, struct diag *d)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};

    return value_word("log", value, levels, ARRAY_LEN(levels), &o->log_level, d);
}

static const struct option ours[] = {
    {"plan", "PLAN", "list this plan; its parameters are joined by +, as in batch=128+seed=7",
     set_plan, NULL, 0, 0},
    {"epochs", "N", "list epochs 0 to N-1 of those plans (default 1)", NULL, set_epochs, 0, 65536},
    {"ahead", "SIZE",
     "bytes of the next reads to prepare in the page cache; 0: none (default: 256M, or a 16th of "
     "the memory where that is less)",
     set_ahead, NULL, 0, 0},
    {"cache", "DIR",
     "folder for staged blocks, unpacked files and indexes (default: $EPOCHFS_CACHE, else "
     "$SLURM_TMPDIR or $TMPDIR, else ~/.cache/epochfs)",
     set_cache, NULL, 0, 0},
    {"cache_size", "SIZE", "bytes that folder may take, or N% of its file system (default 80%)",
     set_cache_size, NULL, 0, 0},
    {"keep", "WHAT",
     "pin (default): blocks in the cache stay; once: until an epoch has used them; plan: a full "
     "cache drops the block that the plan needs latest",
     set_keep, NULL, 0, 0},
    {"stage", "WHEN", "auto (default): everything, in the background; off: only what is read",
     set_stage, NULL, 0, 0},
    {"block", "SIZE",
     "smallest piece to stage, a power of two from 4K to 256K (default: auto, by the size of the "
     "file)",
     set_block, NULL, 0, 0},
    {"jobs", "N", "transfers at once (default 8, small ones up to 128)", NULL, set_jobs, 2, 64},
    {"rate", "SIZE", "bytes per second in the background (default: no limit)", set_rate, NULL, 0,
     0},
    {"patience", "N", "seconds that a read waits for a remote that fails (default 60)", NULL,
     set_patience, 1, 86400},
    {"timeout", "N",
     "seconds after which a connection that transfers nothing is closed (default 20)", NULL,
     set_timeout, 1, 3600},
    {"files", "NAMES",
     "files of an http source, separated by ;, if it has neither SHA256SUMS nor an index page",
     set_files, NULL, 0, 0},
    {"ca", "FILE", "certificates to trust in addition to the system's", set_ca, NULL, 0, 0},
    {"endpoint", "URL", "endpoint of S3 (default: $AWS_ENDPOINT_URL_S3, else AWS)", set_endpoint,
     NULL, 0, 0},
    {"region", "NAME", "region of S3 (default: $AWS_REGION, else the profile's, else us-east-1)",
     set_region, NULL, 0, 0},
    {"profile", "NAME", "profile of the shared S3 files (default: $AWS_PROFILE)", set_profile, NULL,
     0, 0},
    {"anonymous", NULL, "do not sign S3 requests", set_anonymous, NULL, 0, 0},
    {"virtual_host", NULL, "the bucket is part of the host's name, not of the path",
     set_virtual_host, NULL, 0, 0},
    {"classes", "N", "width of one-hot labels (default: the largest label + 1)", NULL, set_classes,
     1, 65536},
    {"transpose", NULL, "exchange rows and columns of images (EMNIST stores them so)",
     set_transpose, NULL, 0, 0},
    {"index_base", "BASE", "how feature indexes in libsvm text count: asis (default), 1 or auto",
     set_index_base, NULL, 0, 0},
    {"bad_rows", "WHAT", "error (default), or skip: leave out rows that cannot be read",
     set_bad_rows, NULL, 0, 0},
    {"kaldi", "FLAGS",
     "flags of Kaldi tables, as in rspecifiers: p skips what cannot be read, s reports keys that "
     "are not sorted, o and cs count reads that break their promise",
     set_kaldi, NULL, 0, 0},
    {"kaldi_type", "TYPE", "type of objects that do not state theirs: int, float, posterior, ...",
     set_kaldi_type, NULL, 0, 0},
    {"allow_outside", NULL, "read files outside of SOURCE that scp files name or links lead to",
     set_allow_outside, NULL, 0, 0},
    {"allow_commands", NULL, "run commands (`cmd |`) that an scp file names", set_allow_commands,
     NULL, 0, 0},
    {"command_timeout", "N", "seconds that such a command may take (default 60)", NULL,
     set_command_timeout, 1, 86400},
    {"log", "LEVEL", "error, warning, info (default) or debug", set_log, NULL, 0, 0},
};

/* What libfuse or the kernel take: passed on. A trailing '=' stands for a value. */
static const char *const passed_on[] = {
    "allow_other", "allow_root",  "auto_unmount", "debug",  "fsname=", "nosuid",
    "suid",        "nodev",       "dev",          "noexec", "exec",    "noatime",
    "atime",       "nodiratime",  "sync",         "async",  "dirsync", "context=",
    "fscontext=",  "defcontext=", "rootcontext=",
};

/* What fstab has for mount(8) and systemd, or what is so anyway. */
static const char *const ignored[] = {
    "ro",          "rw",         "defaults", "auto",
    "noauto",      "user",       "nouser",   "users",
    "owner",       "group",      "_netdev",  "nofail",
    "relatime",    "norelatime", "lazytime", "default_permissions",
    "strictatime", "silent",     "loud",     "comment=",
};

static bool in_list(const char *option, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(list[i]);

        if (list[i][len - 1] == '=' ? !strncmp(option, list[i], len) : !strcmp(option, list[i]))
            return true;
    }
    return false;
}

void options_init(struct options *ret)
{
    *ret = (struct options){
        .epochs = 1,
        .ahead = min_u64(AHEAD_MOST, memory_total() / 16),
        .command_limit = 60,
        .log_level = LOG_LEVEL_INFO,
    };
    source_options_init(&ret->source, NULL);
}

void options_source(const struct options *o, const struct cache_folder *cache,
                    struct source_options *ret)
{
    *ret = o->source;
    ret->cache = cache;
    ret->stages_local = o->cache || o->stages_local;
}

void options_release(struct options *o)
{
    free(o->plan);
    free((char *)o->cache);
    free((char *)o->source.files);
    free((char *)o->source.endpoint);
    free((char *)o->source.region);
    free((char *)o->source.profile);
    free((char *)o->source.ca);
    text_release(&o->for_fuse);
}

/* Does the name of an option sound like one for a password? */
static bool is_secret(const char *name)
{
    static const char *const words[] = {"key", "secret", "token", "passw", "credential"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static const char *guess_option(char *wrong)
{
    struct guess guess;

    for (char *c = wrong; *c; c++)
        *c = *c == '-' ? '_' : (char)tolower((unsigned char)*c);
    guess_init(&guess, wrong);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        guess_at(&guess, ours[i].name);
    for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
        guess_at(&guess, passed_on[i]);
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        guess_at(&guess, ignored[i]);
    return guess.name;
}

static int unknown_option(const char *option, struct diag *d)
{
    AUTO_FREE char *name = strndup(option, strcspn(option, "="));
    const char *guess;

    if (!name)
        return -ENOMEM;
    if (is_secret(name))
        return refuse_secret(name, d);
    if (plan_has_parameter(name))
        return diag_set(d, -EINVAL,
                        "unknown option '%s'; the parameters of a plan are joined by +, as in "
                        "plan=batch=128+seed=7",
                        option);
    guess = guess_option(name);
    return diag_set(d, -EINVAL, "unknown option '%s'%s%s%s; `epochfs mount --help` lists them",
                    option, guess ? "; is it '" : "", guess ? guess : "", guess ? "'?" : "");
}

static int set_ours(struct options *o, const struct option *option, const char *value,
                    struct diag *d)
{
    uint64_t v = 0;
    int r;

    if (option->form && !value)
        return diag_set(d, -EINVAL, "option %s: want %s=%s", option->name, option->name,
                        option->form);
    if (!option->form && value)
        return diag_set(d, -EINVAL, "option %s takes no value, found '%s'", option->name, value);
    if (option->set)
        return option->set(o, value, d);
    r = value_count(option->name, value, option->least, option->most, &v, d);
    if (r == 0)
        option->set_number(o, v);
    return r;
}

/* fsname may have commas: they are escaped again. */
static void pass_on(struct options *o, const char *option)
{
    if (o->for_fuse.len)
        text_add(&o->for_fuse, ",");
    for (const char *c = option; *c; c++)
        text_add(&o->for_fuse, "%s%c", *c == ',' || *c == '\\' ? "\\" : "", *c);
}

static int parse_one(struct options *o, const char *option, struct diag *d)
{
    size_t name_len = strcspn(option, "=");
    const char *value = option[name_len] ? option + name_len + 1 : NULL;
    bool goes_on = o->kaldi_may_go_on && is_kaldi_flag(option);

    o->kaldi_may_go_on = goes_on;
    if (goes_on) { /* kaldi=o,p */
        set_kaldi_flag(o, option);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strlen(ours[i].name) == name_len && !memcmp(option, ours[i].name, name_len))
            return set_ours(o, &ours[i], value, d);
    if (in_list(option, ignored, ARRAY_LEN(ignored)) || !strncmp(option, "x-", 2) ||
        !strncmp(option, "X-", 2))
        return 0;
    if (!in_list(option, passed_on, ARRAY_LEN(passed_on)))
        return unknown_option(option, d);
    if (!strcmp(option, "allow_other"))
        o->allow_other = o->source.for_others = true;
    pass_on(o, option);
    return o->for_fuse.failed ? -ENOMEM : 0;
}

int options_parse(struct options *o, const char *text, struct diag *d)
{
    AUTO_FREE char *option = malloc(strlen(text) + 1);
    size_t len = 0;

    if (!option)
        return -ENOMEM;
    for (const char *c = text;; c++) {
        if (*c && *c != ',') {
            c += *c == '\\' && (c[1] == ',' || c[1] == '\\');
            option[len++] = *c;
            continue;
        }
        option[len] = '\0';
        if (len) {
            int r = parse_one(o, option, d);

            if (r < 0)
                return r;
        }
        if (!*c)
            return 0;
        len = 0;
    }
}

const char *options_help(void)
{
    static struct text help; /* as long as we run */

    if (help.len)
        return help.data;
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        AUTO_TEXT struct text words = {0};
        char name[32];

        snprintf(name, sizeof(name), "%s%s%s", ours[i].name, ours[i].form ? "=" : "",
                 ours[i].form ? ours[i].form : "");
        text_add(&words, "%s", ours[i].help);
        if (ours[i].set_number)
            text_add(&words, "; N: %llu to %llu", (unsigned long long)ours[i].least,
                     (unsigned long long)ours[i].most);
        help_add_entry(&help, name, words.data ? words.data : "");
    }
    help_add_entry(&help, "allow_other", "let other users read, too");
    help_add_names(&help, "for FUSE and the kernel:", passed_on, ARRAY_LEN(passed_on));
    help_add_names(&help, "taken, without effect (x-..., X-..., too):", ignored,
                   ARRAY_LEN(ignored));
    return help.failed ? "" : help.data;
}
