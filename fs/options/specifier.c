/* SOURCE as a specifier of Kaldi, "ark,s,cs:FILE" or "scp:FILE" (util/kaldi-table.cc): a path or a
 * list of paths and options that say how it is read. Commands that only write files out, one after
 * another, need no shell. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/options/options.h"
#include "fs/options/setters.h"

#define BLANKS " \t\n\v\f\r"

/* Is it a file after all? Ask only for what looks as a specifier: a stopped mount does not answer.
 */
static bool specifier_names_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* The words before the colon: 1: one of them says that it is a specifier, and all are good, 0: it
 * is none, or -EINVAL. */
static int take_words(struct options *o, const char *spec, size_t len, struct diag *d)
{
    unsigned arks = 0, scps = 0;
    size_t n;

    for (size_t at = 0; at <= len; at += n + 1) {
        n = strcspn(spec + at, ", :");
        arks += n == 3 && !memcmp(spec + at, "ark", n);
        scps += n == 3 && !memcmp(spec + at, "scp", n);
    }
    if ((!arks && !scps) || specifier_names_file(spec))
        return 0;
    if (arks + scps > 1)
        return diag_set(d, -EINVAL, "%s: expected one of ark and scp, got both: write ark:FILE",
                        spec);
    for (size_t at = 0; at <= len; at += n + 1) {
        char word[4] = "";

        n = strcspn(spec + at, ", :");
        memcpy(word, spec + at, n < sizeof(word) ? n : 0);
        if (!strcmp(word, "ark") || !strcmp(word, "scp"))
            continue;
        if (!option_is_kaldi_flag(word))
            return diag_set(
                d, -EINVAL,
                "%s: expected ark or scp, and o, p, s, cs, bg, b or t, joined by commas, "
                "got '%.*s'",
                spec, (int)n, spec + at);
        option_set_kaldi_flag(o, word);
    }
    o->format.kaldi_layout = scps ? KALDI_LAYOUT_SCP : KALDI_LAYOUT_ARK;
    return 1;
}

/* Add the files that a word names: as the shell, all that match, in the order of bytes. Others a
 * list would take as a folder or an expression. 1, 0: a list cannot say their names, or -errno. */
static int add_word_files(const char *word, struct text *list, struct diag *d)
{
    glob_t found = {0};
    int r = glob(word, GLOB_NOCHECK, NULL, &found) == 0 ? 1 : -ENOMEM;

    for (size_t i = 0; r == 1 && i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        struct stat st;

        if (stat(path, &st) < 0)
            r = diag_set(d, -errno, "%s: %s", path, strerror(errno));
        else if (!S_ISREG(st.st_mode))
            r = diag_set(d, -EINVAL, "%s: expected a file, got a folder or something else", path);
        else if (strchr(path, ';') || strstr(path, "://"))
            r = 0;
        text_add(list, "%s%s", list->len ? ";" : "", path);
    }
    globfree(&found);
    return r;
}

/* Add the files that a command writes out, unpacked, if it is one that does nothing else. 1, 0: it
 * is another one, and *list is of no use, or -errno. */
static int safe_files(const char *command, struct text *list, struct diag *d)
{
    static const char *const programs[] = {"cat", "zcat", "gunzip -c", "gzip -cd", "gzip -dc"};
    AUTO_FREE char *words = strdup(command);
    char *next = words, *word;
    size_t at = 0, len = 0;
    int r = 1;

    if (!words)
        return -ENOMEM;
    if (command[strcspn(command, "'\"`$\\&;|<>(){}[]~#!?=%\n")])
        return 0;
    at = strspn(command, BLANKS);
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs) && !len; i++) {
        size_t n = strlen(programs[i]);

        if (!strncmp(command + at, programs[i], n) && strchr(BLANKS, command[at + n]))
            len = n;
    }
    for (next += at + len; len && r == 1 && (word = strsep(&next, BLANKS));)
        if (*word)
            r = *word == '-' ? 0 : add_word_files(word, list, d);
    return r == 1 ? list->failed ? -ENOMEM : list->len > 0 : r;
}

/* What follows the colon. */
static int take_specified(const struct options *o, const char *spec, const char *place,
                          struct text *ret, struct diag *d)
{
    AUTO_FREE char *command = NULL;
    AUTO_TEXT struct text list = {0};
    size_t len = strlen(place);
    int r;

    if (!len || !strcmp(place, "-"))
        return diag_set(d, -EINVAL,
                        "%s: expected a file, got standard input: save it to a file, or give the "
                        "command, as in 'ark:COMMAND |'",
                        spec);
    if (*place == '|')
        return diag_set(d, -EINVAL,
                        "%s: expected a file, or a command with '|' after it, got '|' before it",
                        spec);
    if (strchr(BLANKS, *place) || strchr(BLANKS, place[len - 1]))
        return diag_set(d, -EINVAL, "%s: expected no white space around the file, got some", spec);
    if (place[len - 1] != '|') {
        text_add(ret, "%s", place);
        return 0;
    }
    command = strndup(place, len - 1);
    r = command ? safe_files(command, &list, d) : -ENOMEM;
    if (r == 0 && !o->allow_commands)
        return diag_set(d, -EACCES,
                        "%s: expected a file, or cat, zcat, gunzip -c or gzip -cd of files, got a "
                        "command; give -o allow_commands to run it",
                        spec);
    if (r >= 0)
        text_add(ret, "%s%s", r ? "" : "command:", r ? list.data : command);
    return r < 0 ? r : 0;
}

int options_take_specifier(struct options *o, const char **source, struct diag *d)
{
    const char *spec = *source, *colon = strchr(spec, ':');
    AUTO_TEXT struct text t = {0};
    int r = 0;

    if (!strcmp(spec, "-") || *spec == '|')
        return specifier_names_file(spec) ? 0 : take_specified(o, spec, spec, &t, d);
    if (colon)
        r = take_words(o, spec, (size_t)(colon - spec), d);
    if (r == 1)
        r = take_specified(o, spec, colon + 1, &t, d);
    if (r < 0 || !t.len)
        return r;
    free(o->source_of_specifier);
    r = text_finish(&t, &o->source_of_specifier, NULL);
    free((char *)o->format.format);
    o->format.format = r == 0 ? strdup("kaldi") : NULL;
    if (r < 0 || !o->format.format)
        return -ENOMEM;
    *source = o->source_of_specifier;
    return 0;
}
