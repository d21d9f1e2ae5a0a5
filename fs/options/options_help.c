/* The help of mount options: each with its default and range, which come from the table and from
 * options_init(), in groups. */
#include <stdio.h>
#include <string.h>

#include "fs/options/help.h"
#include "fs/options/options.h"
#include "fs/options/table.h"

static const char *const titles[] = {
    [GROUP_PLAN] = "plan",   [GROUP_CACHE] = "cache",     [GROUP_REMOTE] = "remote",
    [GROUP_S3] = "S3",       [GROUP_FORMATS] = "formats", [GROUP_SECURITY] = "security",
    [GROUP_OTHER] = "other",
};

static const char allow_other[] = "let other users read the mount; users other than root need "
                                  "user_allow_other in /etc/fuse.conf";

/* The number in the member that the option sets. */
static uint64_t options_help_number(const struct options *o, const struct option *option)
{
    const void *member = (const char *)o + option->at;

    if (option->size == sizeof(bool))
        return *(const bool *)member;
    return option->size == sizeof(unsigned) ? *(const unsigned *)member : *(const uint64_t *)member;
}

static void add_number(const struct option *option, uint64_t v, struct text *t)
{
    if (option->is_size)
        help_add_size(t, v);
    else
        text_add(t, "%llu", (unsigned long long)v);
}

static void add_default(const struct options *o, const struct option *option, struct text *t)
{
    const char *word;

    if (option->preset) {
        text_add(t, "default: %s", option->preset);
    } else if (option->show) {
        text_add(t, "default: ");
        option->show(o, t);
    } else if (option->n_words) {
        word = option->word[options_help_number(o, option)];
        text_add(t, "default: %.*s", (int)strcspn(word, "|"), word);
    } else if (option->type == OPTION_NUMBER && options_help_number(o, option)) {
        text_add(t, "default: ");
        add_number(option, options_help_number(o, option), t);
    }
}

static void options_help_range(const struct option *option, struct text *t)
{
    if (!option->most)
        return;
    text_add(t, "%srange: ", t->len ? "; " : "");
    add_number(option, option->least, t);
    text_add(t, " to ");
    add_number(option, option->most, t);
}

static void add_option(const struct options *defaults, const struct option *option,
                       struct text *help)
{
    AUTO_TEXT struct text words = {0}, limits = {0};
    char name[64];

    snprintf(name, sizeof(name), "%s%s%s", option->name, option->form ? "=" : "",
             option->form ? option->form : "");
    add_default(defaults, option, &limits);
    options_help_range(option, &limits);
    text_add(&words, "%s", option->help);
    if (limits.len)
        text_add(&words, " (%s)", limits.data);
    help_add_entry(help, name, words.data ? words.data : "");
}

static void add_group_names(enum option_group group, struct text *help)
{
    const char *name[64];
    char title[16];
    size_t n = 0;

    for (unsigned i = 0; i < n_options_ours && n + 1 < ARRAY_LEN(name); i++)
        if (options_ours[i].group == group)
            name[n++] = options_ours[i].name;
    if (group == GROUP_SECURITY)
        name[n++] = "allow_other";
    snprintf(title, sizeof(title), "%s:", titles[group]);
    help_add_names(help, title, name, n);
}

static void options_help_all(const struct options *defaults, struct text *help)
{
    for (unsigned group = 0; group < N_OPTION_GROUPS; group++) {
        text_add(help, "%s%s:\n", group ? "\n" : "", titles[group]);
        for (unsigned i = 0; i < n_options_ours; i++)
            if (options_ours[i].group == group)
                add_option(defaults, &options_ours[i], help);
        if (group == GROUP_SECURITY)
            help_add_entry(help, "allow_other", allow_other);
    }
    text_add(help, "\n");
    help_add_names(help, "for FUSE and the kernel:", options_passed_on, n_options_passed_on);
    help_add_names(help, "without effect, like x-... and X-...:", options_ignored,
                   n_options_ignored);
}

void options_help(struct text *help, bool all)
{
    AUTO_OPTIONS struct options defaults;

    options_init(&defaults);
    if (all) {
        options_help_all(&defaults, help);
        return;
    }
    for (unsigned i = 0; i < n_options_ours; i++)
        if (options_ours[i].common)
            add_option(&defaults, &options_ours[i], help);
    help_add_entry(help, "allow_other", allow_other);
    text_add(help, "\nAll options, by group; `epochfs mount --help all` explains them:\n");
    for (unsigned group = 0; group < N_OPTION_GROUPS; group++)
        add_group_names(group, help);
}
