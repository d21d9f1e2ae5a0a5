/* Bytes as the text of -o. What is taken has values within their bounds, is the same when the text
 * comes in two parts, and what goes to libfuse is passed on by us again just so. What is refused is
 * refused with a reason, which never shows the password of an endpoint. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/staged_file.h"
#include "format/kaldi/object/object.h"
#include "fs/log/log.h"
#include "fs/options/options.h"
#include "fuzz.h"

#define EPOCHS_MOST  65536
#define CLASSES_MOST 65536
#define SECONDS_MOST 86400
#define JOBS_LEAST   2
#define JOBS_MOST    64

/* A secret between the marks of an endpoint's URL: "://" and "@". */
static const char secret[] = "hunter2";

static void check_stage(const struct stage_options *s)
{
    FUZZ_CHECK(s->keep == STAGE_PIN || s->keep == STAGE_ONCE || s->keep == STAGE_PLAN);
    FUZZ_CHECK(s->limit_percent <= 100 && !s->limit == !!s->limit_percent);
    FUZZ_CHECK(!s->block || (s->block >= STAGED_BLOCK_LEAST && s->block <= STAGED_BLOCK_MOST &&
                             !(s->block & (s->block - 1))));
    FUZZ_CHECK(s->jobs >= JOBS_LEAST && s->jobs <= JOBS_MOST);
    FUZZ_CHECK(s->retry_limit_s >= 1 && s->retry_limit_s <= SECONDS_MOST);
}

static void check_texts(const struct options *o)
{
    const struct source_options *s = &o->source;

    FUZZ_CHECK(!o->cache || *o->cache == '/');
    FUZZ_CHECK(!s->ca || *s->ca == '/');
    FUZZ_CHECK(!s->files || *s->files);
    FUZZ_CHECK(!s->region || *s->region);
    FUZZ_CHECK(!s->profile || *s->profile);
    FUZZ_CHECK(!s->endpoint || !strchr(strstr(s->endpoint, "://"), '@'));
}

static void check_values(const struct options *o)
{
    FUZZ_CHECK(o->epochs <= EPOCHS_MOST);
    FUZZ_CHECK(o->format.classes <= CLASSES_MOST);
    FUZZ_CHECK(o->format.index_base <= INDEX_AUTO);
    FUZZ_CHECK(o->format.kaldi_type < N_KALDI_TYPES);
    FUZZ_CHECK(o->command_limit >= 1 && o->command_limit <= SECONDS_MOST);
    FUZZ_CHECK(o->source.timeout_s >= 1 && o->source.timeout_s <= SECONDS_MOST);
    FUZZ_CHECK(o->log_level <= LOG_LEVEL_DEBUG);
    FUZZ_CHECK(o->allow_other == o->source.for_others);
    FUZZ_CHECK(o->allow_outside == o->source.allow_outside);
    check_stage(&o->source.stage);
    check_texts(o);
    for (size_t i = 0; i < o->n_plans; i++) {
        char name[PLAN_NAME_SIZE];

        plan_name(&o->plan[i], name);
        FUZZ_CHECK(*name);
    }
}

/* Everything that was set, as one text. */
static void describe(const struct options *o, struct text *t)
{
    const struct source_options *s = &o->source;
    const struct stage_options *g = &s->stage;
    const char *const texts[] = {o->cache,   s->files, s->endpoint,     s->region,
                                 s->profile, s->ca,    o->for_fuse.data};

    for (size_t i = 0; i < o->n_plans; i++) {
        char name[PLAN_NAME_SIZE];

        plan_name(&o->plan[i], name);
        text_add(t, "%s\n", name);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text_add(t, "%s\n", texts[i] ? texts[i] : "");
    text_add(t, "%llu %llu %llu %llu %llu\n", (unsigned long long)o->epochs,
             (unsigned long long)o->command_limit, (unsigned long long)o->ahead,
             (unsigned long long)o->format.classes, (unsigned long long)g->limit);
    text_add(t, "%d %u %u %u %llu %u %d %u %d\n", (int)g->keep, g->limit_percent, g->block, g->jobs,
             (unsigned long long)g->rate, g->retry_limit_s, g->background, s->timeout_s,
             s->limits_all);
    text_add(t, "%ux%u\n", o->format.picture_height, o->format.picture_width);
    text_add(t, "%d%d%d%d%d %d%d%d%d%d%d %d%d%d %u\n", o->allow_outside, o->allow_commands,
             o->reads_once, o->reads_sorted, o->allow_other, o->format.transpose,
             (int)o->format.index_base, (int)o->format.bad_rows, (int)o->format.kaldi_type,
             o->format.kaldi_permissive, o->format.kaldi_sorted, s->anonymous, s->virtual_host,
             o->kaldi_may_go_on, o->log_level);
}

/* The text may be given by several -o: cut at a comma that ends an option. */
static void check_parts(const char *text, uint64_t way, int want, const struct text *described)
{
    AUTO_FREE char *first = strdup(text);
    AUTO_OPTIONS struct options o;
    AUTO_TEXT struct text t = {0};
    size_t commas = 0, at = 0;
    int r;

    options_init(&o);
    for (int pass = 0; pass < 2; pass++) {
        size_t n = commas ? way % commas + 1 : 0;

        for (size_t i = commas = 0; text[i] && (!pass || commas < n); i++) {
            if (text[i] == '\\' && (text[i + 1] == ',' || text[i + 1] == '\\'))
                i++;
            else if (text[i] == ',')
                commas++;
            at = i;
        }
        if (!commas)
            return;
    }
    first[at] = '\0';
    r = options_parse(&o, first, NULL);
    if (r == 0)
        r = options_parse(&o, text + at + 1, NULL);
    FUZZ_CHECK(r == want);
    describe(&o, &t);
    FUZZ_CHECK(t.len == described->len && !memcmp(t.data, described->data, t.len));
}

/* Options for libfuse are ours to pass on, so they must mean the same again. */
static void check_passed_on(const struct options *o)
{
    AUTO_OPTIONS struct options again;

    options_init(&again);
    if (!o->for_fuse.len)
        return;
    FUZZ_CHECK(options_parse(&again, o->for_fuse.data, NULL) == 0);
    FUZZ_CHECK(again.for_fuse.len == o->for_fuse.len &&
               !memcmp(again.for_fuse.data, o->for_fuse.data, o->for_fuse.len));
    FUZZ_CHECK(again.allow_other == o->allow_other && !again.n_plans && !again.cache);
}

static void check_secret(const char *value)
{
    AUTO_TEXT struct text t = {0};
    AUTO_OPTIONS struct options o;
    struct diag d = DIAG_INIT;

    options_init(&o);
    if (strchr(value, ',') || strchr(value, '\\') || strstr(value, secret))
        return;
    text_add(&t, "endpoint=https://user:%s%s@host", value, secret);
    FUZZ_CHECK(options_parse(&o, t.data, &d) == -EINVAL && d.set);
    FUZZ_CHECK(!strstr(d.text, secret) && !o.source.endpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = strndup((const char *)data, len);
    AUTO_OPTIONS struct options o;
    AUTO_TEXT struct text described = {0};
    struct diag d = DIAG_INIT;
    int r;

    FUZZ_CHECK(text);
    options_init(&o);
    r = options_parse(&o, text, &d);
    FUZZ_CHECK(r == 0 ? !d.set : r == -EINVAL && d.set && *d.text);
    check_values(&o);
    describe(&o, &described);
    check_parts(text, fuzz_hash(data, len), r, &described);
    check_passed_on(&o);
    check_secret(text);
    return 0;
}
