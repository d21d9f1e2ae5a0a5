/* What is counted of the files of each folder, by their names. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/files/claim/parts.h"

bool is_skipped(const char *name)
{
    return *name == '.' || !strcasecmp(name, "__MACOSX") || !strcmp(name, "lost+found");
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

bool is_class_folder(enum files_media media, const char *path, const char *root)
{
    const char *skipped = files_media[media].skipped;
    size_t len = strlen(root);
    const char *name = path + len + (len > 0);

    return *path && members_is_below(path, root) && strlen(path) > len && !strchr(name, '/') &&
           !is_skipped(name) && !(skipped && !strcmp(name, skipped));
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

    mark_samples(s, folder, false);
    for (size_t i = f->first; i < f->last; i++) {
        const char *name = members_name(s->m, i);
        bool is_used = s->flags[i] & FILE_IN_SAMPLE;

        f->here[COUNT_PICTURES] += name_is_of(s->media, name);
        f->here[COUNT_USED] += is_used;
        f->here[COUNT_OTHERS] += !is_used && !name_is_list(name);
        f->here[COUNT_LISTS] += !is_used && name_is_list(name);
        f->here[COUNT_DOUBT] +=
            !is_used && !name_is_neutral(name) && !name_is_manifest(name) && !name_is_list(name);
        f->here[COUNT_TABLES] += name_is_table(name);
        f->here[COUNT_MANIFESTS] += (s->flags[i] & FILE_MANIFEST) > 0;
        f->foreign = f->foreign || (!is_used && name_is_foreign(name) && !name_is_table(name));
        f->kaldi = f->kaldi || name_is_kaldi(name);
        f->project = f->project || name_is_project(name);
    }
}

void sum_folders(struct search *s, enum folder_count first, enum folder_count end)
{
    for (uint32_t i = s->m->n_folders; i-- > 0;) {
        struct folder_info *f = &s->info[i];

        memcpy(f->all + first, f->here + first, (end - first) * sizeof(f->here[0]));
        for (uint32_t k = i + 1; k < f->end; k = next_folder(s, k))
            for (unsigned count = first; count < end; count++)
                f->all[count] += s->info[k].all[count];
    }
}

void counts_free(struct search *s)
{
    for (uint32_t i = 0; s->info && i < s->m->n_folders; i++)
        while (s->info[i].pairs) {
            struct pair *pair = s->info[i].pairs;

            s->info[i].pairs = pair->next;
            free(pair->end);
            free(pair->words);
            free(pair->name);
            free(pair);
        }
    free(s->info);
    s->info = NULL;
}

int counts_make(struct search *s)
{
    const struct members *m = s->m;
    size_t at = 0;

    counts_free(s);
    s->info = calloc(m->n_folders + 1, sizeof(*s->info));
    if (!s->info)
        return -ENOMEM;
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
        for (uint32_t k = i + 1; k < *end; k = next_folder(s, k))
            s->info[k].above = i;
    }
    sum_folders(s, 0, N_COUNTS_NAMES);
    return 0;
}

/* The first file of the folder whose name is of that kind. */
static const char *counts_find_name(const struct search *s, uint32_t folder,
                                    bool (*is)(const char *name))
{
    const struct folder_info *f = &s->info[folder];
    size_t i = f->first;

    while (i + 1 < f->last && !is(members_name(s->m, i)))
        i++;
    return i < f->last ? members_name(s->m, i) : "";
}

int claim_note_unmet(struct search *s, uint32_t folder, bool project)
{
    const struct folder_info *f = &s->info[folder];
    const char *path = claim_path(s, folder), *slash = *path ? "/" : "";
    char **ret = &s->claims->unmet;
    int r = 0;

    if (*ret)
        return 0;
    if (f->kaldi)
        r = asprintf(ret, "%s%s%s is a table of Kaldi, which may name them", path, slash,
                     counts_find_name(s, folder, name_is_kaldi));
    else if (f->foreign)
        r = asprintf(ret, "%s%s%s next to them is of another format", path, slash,
                     counts_find_name(s, folder, name_is_foreign));
    else if (f->project)
        r = asprintf(ret, "%s%s%s says that a program is built there", path, slash,
                     counts_find_name(s, folder, name_is_project));
    else if (s->manifests_only)
        r = asprintf(
            ret, "only %llu of the %llu files are pictures or belong to them",
            (unsigned long long)s->info[0].all[COUNT_USED],
            (unsigned long long)(s->info[0].all[COUNT_USED] + s->info[0].all[COUNT_OTHERS]));
    else if (f->here[COUNT_PICTURES] && !project)
        r = asprintf(ret, "in %s, %llu of %llu files are neither pictures nor belong to one",
                     *path ? path : "SOURCE", (unsigned long long)f->here[COUNT_OTHERS],
                     (unsigned long long)(f->here[COUNT_USED] + f->here[COUNT_OTHERS]));
    if (r < 0)
        *ret = NULL;
    return r < 0 ? -ENOMEM : 0;
}

bool is_sibling(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];

    return f->all[COUNT_PICTURES] && !f->is_target && !is_skipped(path_base(claim_path(s, folder)));
}

uint32_t folder_of_path(const struct search *s, const char *path, size_t len)
{
    uint32_t low = 0, high = s->m->n_folders;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = members_compare_to(claim_path(s, middle), path, len);

        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NO_FOLDER;
}
