/* Parses -o: splits the text at its commas. Each option is ours (fs/options/table.c), is passed on
 * to libfuse and the kernel, or is known and without effect. Anything else is an error, with a
 * guess at what was meant. */
#include "fs/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/values.h"
#include "fs/log/log.h"
#include "fs/options/other_tools.h"
#include "fs/options/table.h"
#include "fs/plan/parameters.h"

#define VIA_OWN_LIMIT (UINT64_C(1) << 30)

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
        .ahead = min_u64(OPTIONS_READAHEAD_MOST, memory_total() / OPTIONS_READAHEAD_SHARE),
        .command_limit = 60,
        .log_level = LOG_LEVEL_INFO,
    };
    source_options_init(&ret->source, NULL);
}

void options_stage(const struct options *o, struct stage_options *ret)
{
    *ret = o->source.stage;
    if (!o->source.via || o->stages_local)
        return;
    if (!o->keep_given)
        ret->keep = STAGE_PLAN;
    if (ret->keep != STAGE_PIN && !o->source.limits_all)
        ret->own_limit = VIA_OWN_LIMIT;
}

void options_source(const struct options *o, const struct cache_folder *cache,
                    struct source_options *ret)
{
    *ret = o->source;
    ret->cache = cache;
    options_stage(o, &ret->stage);
    ret->stages_local = o->cache || o->stages_local;
}

void options_release(struct options *o)
{
    free(o->plan);
    for (size_t i = 0; i < o->n_lists; i++)
        free((char *)o->list[i].file);
    free(o->list);
    for (size_t i = 0; i < o->n_mixes; i++)
        mix_spec_release(&o->mix[i]);
    free(o->mix);
    free(o->augment.recipe);
    free((char *)o->cache);
    free((char *)o->source.files);
    free((char *)o->source.endpoint);
    free((char *)o->source.region);
    free((char *)o->source.profile);
    free((char *)o->source.ca);
    free((char *)o->source.via);
    free((char *)o->source.via_secret);
    free((char *)o->format.format);
    free((char *)o->format.label);
    free((char *)o->format.layout);
    free((char *)o->format.label_column);
    free((char *)o->format.weight_column);
    free((char *)o->format.kaldi_tables);
    free((char *)o->format.kaldi_join);
    free(o->source_of_specifier);
    text_release(&o->for_fuse);
}

/* Does the name of an option sound like that of a password? */
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
    const struct option *ours;
    struct guess guess;

    for (char *c = wrong; *c; c++)
        *c = *c == '-' ? '_' : (char)tolower((unsigned char)*c);
    guess_init(&guess, wrong);
    for (unsigned i = 0; i < n_plan_parameters; i++) /* after a comma instead of a + */
        guess_at(&guess, plan_parameters[i].word);
    for (size_t i = 0; i < n_options_ours; i++) {
        guess_at(&guess, options_ours[i].name);
        if (options_ours[i].old)
            guess_at(&guess, options_ours[i].old);
    }
    for (size_t i = 0; i < n_options_passed_on; i++)
        guess_at(&guess, options_passed_on[i]);
    for (size_t i = 0; i < n_options_ignored; i++)
        guess_at(&guess, options_ignored[i]);
    ours = guess.name ? option_find(guess.name, strlen(guess.name)) : NULL;
    return ours ? ours->name : guess.name;
}

static int unknown_option(const char *option, struct diag *d)
{
    AUTO_FREE char *name = strndup(option, strcspn(option, "="));
    const char *guess;

    if (!name)
        return -ENOMEM;
    if (is_secret(name) && !other_tools_option(name))
        return option_refuse_secret(name, d);
    if (plan_has_parameter(name))
        return diag_set(d, -EINVAL,
                        "unknown option '%s'; the parameters of a plan are joined by +, as in "
                        "plan=batch=128+seed=7",
                        option);
    guess = guess_option(name); /* which normalises the name */
    if (other_tools_option(name))
        return diag_set(d, -EINVAL, "unknown option '%s'. %s", option, other_tools_option(name));
    if (guess && plan_has_parameter(guess) && !option_find(guess, strlen(guess)))
        return diag_set(d, -EINVAL,
                        "unknown option '%s'; is it '%s' of a plan? The parameters of a plan are "
                        "joined by +, as in plan=batch=128+seed=7",
                        option, guess);
    return diag_set(d, -EINVAL, "unknown option '%s'%s%s%s; `epochfs mount --help` lists them",
                    option, guess ? "; is it '" : "", guess ? guess : "", guess ? "'?" : "");
}

static int set_ours(struct options *o, const struct option *option, const char *name,
                    const char *value, struct diag *d)
{
    if (option->form && !value)
        return diag_set(d, -EINVAL, "option %s: expected %s=%s", name, name, option->form);
    if (!option->form && value)
        return diag_set(d, -EINVAL, "option %s takes no value, got '%s'", name, value);
    return option_set(o, option, name, value, d);
}

/* Values such as fsname= may have commas, which are escaped again. */
static void pass_on(struct options *o, const char *option)
{
    if (o->for_fuse.len)
        text_add(&o->for_fuse, ",");
    for (const char *c = option; *c; c++)
        text_add(&o->for_fuse, "%s%c", *c == ',' || *c == '\\' ? "\\" : "", *c);
}

static int options_parse_one(struct options *o, char *option, struct diag *d)
{
    size_t name_len = strcspn(option, "=");
    const char *value = option[name_len] ? option + name_len + 1 : NULL;
    const struct option *ours = option_find(option, name_len);
    bool goes_on = o->kaldi_may_go_on && option_is_kaldi_flag(option);

    o->kaldi_may_go_on = goes_on;
    if (goes_on) { /* kaldi=o,p */
        option_set_kaldi_flag(o, option);
        return 0;
    }
    if (ours) {
        option[name_len] = '\0';
        return set_ours(o, ours, option, value, d);
    }
    if (in_list(option, options_ignored, n_options_ignored) || !strncmp(option, "x-", 2) ||
        !strncmp(option, "X-", 2))
        return 0;
    if (!in_list(option, options_passed_on, n_options_passed_on))
        return unknown_option(option, d);
    if (!strcmp(option, "allow_other"))
        o->allow_other = o->source.for_others = true;
    pass_on(o, option);
    return o->for_fuse.failed ? -ENOMEM : 0;
}

/* Options that do not go together. */
static int options_check_together(const struct options *o, struct diag *d)
{
    if (o->format.bad_rows == BAD_ROWS_SKIP && o->format.picture_height)
        return diag_set(
            d, -EINVAL,
            "option on_error=skip: with image_size=, samples cannot be skipped, because "
            "their places are known before they are decoded. Use on_error=zero: such "
            "pictures are zeros, and image_ok says which");
    if ((o->format.pack && !o->format.seq) || (o->format.pad && !o->format.pack))
        return diag_set(d, -EINVAL, "option %s=: packs windows of tokens. Add %s",
                        o->format.pack ? "pack" : "pad",
                        o->format.pack ? "seq_len=2048" : "seq_len=2048,pack=4096");
    if (o->format.pack && o->format.stride)
        return diag_set(
            d, -EINVAL,
            "option stride=: packed windows begin where documents do. Remove stride= or "
            "pack=");
    return 0;
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
            int r = options_parse_one(o, option, d);

            if (r < 0)
                return r;
        }
        if (!*c)
            return options_check_together(o, d);
        len = 0;
    }
}
