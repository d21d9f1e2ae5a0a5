/* What is counted of the files of each folder, by their names. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

bool is_skipped(const char *name)
{
    static const char *const systems[] = {"__MACOSX", "lost+found",   "@eaDir",
                                          "#recycle", "$RECYCLE.BIN", NULL};

    return *name == '.' || word_is_one_of(name, strlen(name), systems);
}

bool path_is_hidden(const char *path)
{
    while (*path) {
        size_t len = strcspn(path, "/");
        char name[NAME_MAX + 1];

        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        if (len && is_skipped(name))
            return true;
        path += len + (path[len] == '/');
    }
    return false;
}

bool is_skipped_folder(enum files_media media, const char *name)
{
    const char *skipped = files_media[media].skipped;

    return is_skipped(name) || (skipped && !strcmp(name, skipped));
}

uint64_t mark_samples(const struct search *s, uint32_t folder, bool by_class)
{
    const struct folder_info *f = &s->info[folder];
    struct sample_walk walk = {
        .m = s->m, .at = f->first, .end = f->last, .by_class = by_class, .media = s->media};
    struct sample_files sample;
    uint64_t n = 0;

    for (size_t i = f->first; i < f->last; i++)
        s->flags[i] &= (uint8_t)~FILE_IN_SAMPLE;
    for (; next_sample(&walk, &sample); n++)
        for (size_t i = 0; i < sample.n; i++)
            s->flags[sample.first + i] |= FILE_IN_SAMPLE;
    return n;
}

static void counts_folder(const struct search *s, uint32_t folder)
{
    struct folder_info *f = &s->info[folder];
    const char *path = claim_path(s, folder);
    const bool has_annotations = words_have_target(path, strlen(path));

    mark_samples(s, folder, false);
    for (size_t i = f->first; i < f->last; i++) {
        const char *name = members_name(s->m, i);
        bool is_used = s->flags[i] & FILE_IN_SAMPLE;
        bool is_list = has_annotations || name_is(NAME_LIST, name);

        f->here[COUNT_PICTURES] += name_is_of(s->media, name);
        f->here[COUNT_USED] += is_used;
        f->here[COUNT_OTHERS] += !is_used && !is_list && !name_is(NAME_NOTICE, name);
        f->here[COUNT_LISTS] += !is_used && is_list;
        f->here[COUNT_DOUBT] += !is_used && !name_is(NAME_NEUTRAL, name) &&
                                !name_is(NAME_MANIFEST, name) && !name_is(NAME_LIST, name);
        f->here[COUNT_TABLES] += name_is_table(name);
        f->here[COUNT_MANIFESTS] += (s->flags[i] & FILE_MANIFEST) > 0;
        f->foreign =
            f->foreign || (!is_used && name_is(NAME_FOREIGN, name) && !name_is_table(name));
        f->kaldi = f->kaldi || name_is(NAME_KALDI, name);
        f->project = f->project || name_is(NAME_PROJECT, name);
    }
}

void sum_folders(struct search *s, enum folder_count first, enum folder_count end)
{
    for (uint32_t i = s->m->n_folders; i-- > 0;) {
        struct folder_info *f = &s->info[i];

        memcpy(f->all + first, f->here + first, (end - first) * sizeof(f->here[0]));
        for (EACH_FOLDER(s, k, i))
            for (unsigned count = first; count < end; count++)
                f->all[count] += s->info[k].all[count];
    }
}

void counts_free(struct search *s)
{
    for (uint32_t i = 0; s->info && i < s->m->n_folders; i++)
        for (struct pair *pair; (pair = s->info[i].pairs);) {
            s->info[i].pairs = pair->next;
            free(pair->end);
            free(pair->words);
            free(pair->name);
            free(pair);
        }
    free(s->info);
    s->info = NULL;
}

void counts_make(struct search *s)
{
    const struct members *m = s->m;
    size_t at = 0;

    counts_free(s);
    s->info = calloc(m->n_folders + 1, sizeof(*s->info));
    s->failed = s->failed || !s->info;
    if (s->failed)
        return;
    for (uint32_t i = 0; i < m->n_folders; i++) {
        s->info[i].first = at;
        while (at < m->n && m->member[at].folder == i)
            at++;
        s->info[i].last = at;
        counts_folder(s, i);
    }
    for (uint32_t i = m->n_folders; i-- > 0;) {
        uint32_t *end = &s->info[i].end;

        s->info[i].above = NO_FOLDER;
        for (*end = i + 1;
             *end < m->n_folders && members_is_below(claim_path(s, *end), claim_path(s, i));)
            *end = next_folder(s, *end);
        for (EACH_FOLDER(s, k, i))
            s->info[k].above = i;
    }
    sum_folders(s, 0, N_COUNTS_NAMES);
}

/* The first file of the folder whose name is of that kind. */
static const char *counts_find_name(const struct search *s, uint32_t folder,
                                    enum name_meaning meaning)
{
    const struct folder_info *f = &s->info[folder];
    size_t i = f->first;

    while (i + 1 < f->last && !name_is(meaning, members_name(s->m, i)))
        i++;
    return i < f->last ? members_name(s->m, i) : "";
}

void claim_note_unmet(struct search *s, uint32_t folder, bool project)
{
    const struct folder_info *f = &s->info[folder];
    const char *path = claim_path(s, folder);
    uint32_t built = folder; /* the folder of the project */
    AUTO_TEXT struct text t = {0};

    while (project && !s->info[built].project && s->info[built].above != NO_FOLDER)
        built = s->info[built].above;
    const struct {
        bool is;
        uint32_t folder;
        enum name_meaning meaning;
        const char *what;
    } files[] = {
        {f->kaldi, folder, NAME_KALDI, "is a table of Kaldi, which may name them"},
        {f->foreign, folder, NAME_FOREIGN, "next to them is of another format"},
        {s->info[built].project, built, NAME_PROJECT, "says that a program is built there"},
    };

    if (s->claims->unmet)
        return;
    for (unsigned i = 0; i < ARRAY_LEN(files) && !t.len; i++)
        if (files[i].is) {
            const char *in = claim_path(s, files[i].folder);

            text_add(&t, "%s%s%s %s", in, *in ? "/" : "",
                     counts_find_name(s, files[i].folder, files[i].meaning), files[i].what);
        }
    if (!t.len && s->manifests_only)
        text_add(&t, "only %llu of the %llu files are pictures or belong to them",
                 (unsigned long long)s->info[0].all[COUNT_USED],
                 (unsigned long long)(s->info[0].all[COUNT_USED] + s->info[0].all[COUNT_OTHERS]));
    else if (!t.len && f->here[COUNT_PICTURES] && !project)
        text_add(&t, "in %s, %llu of %llu files are neither pictures nor belong to one",
                 *path ? path : "SOURCE", (unsigned long long)f->here[COUNT_OTHERS],
                 (unsigned long long)(f->here[COUNT_USED] + f->here[COUNT_OTHERS]));
    if (t.len && text_finish(&t, &s->claims->unmet, NULL) < 0)
        s->failed = true;
}

bool is_sibling(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    return f->all[COUNT_PICTURES] && !f->is_target &&
           !is_skipped_folder(s->media, folder_name(s, folder));
}

uint32_t sibling_from(const struct search *s, uint32_t at, uint32_t end)
{
    while (at < end && !is_sibling(s, at))
        at = next_folder(s, at);
    return at;
}

uint32_t sibling_only(const struct search *s, uint32_t folder)
{
    const uint32_t end = next_folder(s, folder), only = sibling_from(s, folder + 1, end);

    return only < end && sibling_from(s, next_folder(s, only), end) == end ? only : NO_FOLDER;
}

const char *siblings_only(const struct search *s, uint32_t folder, bool direct)
{
    const char *name = NULL;
    unsigned n = 0;

    for (EACH_SIBLING(s, i, folder)) {
        uint32_t only = sibling_only(s, i);

        if (only == NO_FOLDER || s->info[i].here[COUNT_PICTURES] ||
            (direct && !s->info[only].here[COUNT_PICTURES]) ||
            (name && strcmp(name, folder_name(s, only)) != 0))
            return NULL;
        name = folder_name(s, only);
        n++;
    }
    return n > 1 ? name : NULL;
}

bool folder_is_copy(const struct search *s, uint32_t folder, enum folder_count count)
{
    unsigned n = 0;

    for (EACH_FOLDER(s, i, folder)) {
        const char *name = folder_name(s, i);
        uint32_t other = folder_below(s, s->info[folder].above, name, strlen(name));

        if (!s->info[i].all[count] || s->info[i].is_target || is_skipped(name))
            continue;
        if (other == NO_FOLDER || other == folder || !s->info[other].all[count])
            return false;
        n++;
    }
    return n > 1 && !s->info[folder].here[count];
}

uint32_t folder_of_path(const struct search *s, const char *path, size_t len)
{
    uint32_t folder = members_folder_number(s->m, path, len);

    return folder < s->m->n_folders ? folder : NO_FOLDER;
}

bool numbers_run_on(const struct search *s, uint32_t folder, enum folder_count count)
{
    uint64_t most = 0;
    unsigned n = 0;

    for (EACH_FOLDER(s, i, folder)) {
        const struct folder_info *f = &s->info[i];
        uint64_t before = most;

        if (!f->all[count])
            continue;
        if (!f->here[count] || !name_is_number(folder_name(s, i), strlen(folder_name(s, i))))
            return false;
        for (size_t k = f->first; k < f->last; k++) {
            const char *name = members_name(s->m, k);
            uint64_t number;

            if (!name_is_of(s->media, name))
                continue;
            if (!name_is_number(name, name_stem_alone(name)))
                return false;
            number = strtoull(name, NULL, 10);
            if (n && number <= before)
                return false;
            most = number > most ? number : most;
        }
        n++;
    }
    return n > 1;
}

uint32_t folder_below(const struct search *s, uint32_t above, const char *path, size_t len)
{
    const char *top = claim_path(s, above);
    char full[PATH_MAX];
    int n = snprintf(full, sizeof(full), "%s%s%.*s", top, *top && len ? "/" : "", (int)len, path);

    return n < (int)sizeof(full) ? folder_of_path(s, full, (size_t)n) : NO_FOLDER;
}
