/* Class folders of sounds, and of texts. As with pictures, most folders that have some have them
 * directly, and none is called like a part of a dataset. What is a dataset without this stays one:
 *
 *   nothing else  class folders have nothing but such files, what belongs to them, and readmes. One
 *                 other file, and the folder above is no dataset of classes.
 *   two classes   one folder of sounds says nothing of classes. So Hugging Face's audiofolder has
 *                 it, and so no folder of a few notes becomes a dataset.
 *   Kaldi         where SOURCE has an scp file, sounds are left to it, because it may name them.
 *   a look        names say little of texts. A few files are looked into, the largest among them:
 *                 if another format takes one of these, or one is no text, none is taken.
 *
 * Files next to class folders stay what they are: see collect_may_stay(). */
#include <stdlib.h>
#include <string.h>

#include "format/files/claim/parts.h"
#include "format/files/claim/words.h"

/* Files that are looked into, at most: of SOURCE, and of a dataset. For one with more files, some
 * from the first to the last, and the largest. */
#define LOOKS_SOURCE  128u
#define LOOKS_FOLDER  16u
#define LOOKS_SPREAD  8u
#define LOOKS_LARGEST 8u

/* ---- counting ---- */

/* Does a folder, or one above, hold no samples? Folders come after those above them. */
static void classes_mark_skipped(struct search *s, uint32_t folder)
{
    const char *name = folder_name(s, folder);

    /* Annotations of pictures are no texts to learn from. */
    bool annotates = s->claims->n && words_have_target(name, strlen(name));

    if (annotates || s->info[folder].is_target || is_skipped_folder(s->media, name))
        for (uint32_t i = folder; i < s->info[folder].end; i++)
            s->info[i].is_skipped = true;
}

static void classes_count_folder(struct search *s, uint32_t folder)
{
    struct folder_info *f = &s->info[folder];

    f->here[COUNT_SAMPLES] = mark_samples(s, folder, true);
    for (size_t i = f->first; i < f->last; i++) {
        const char *name = members_name(s->m, i);
        bool is_used = (s->flags[i] & FILE_IN_SAMPLE) &&
                       (name_is_of(s->media, name) || name_may_be_beside(s->media, name));

        f->here[COUNT_STRAY] +=
            s->claims->taken[i] || (!is_used && *name != '.' && !name_is(NAME_NOTICE, name));
    }
}

static void classes_count_all(struct search *s)
{
    uint32_t n = s->m->n_folders;

    for (uint32_t i = 0; i < n; i++) {
        s->info[i].is_skipped = false;
        s->info[i].here[COUNT_SAMPLES] = s->info[i].here[COUNT_STRAY] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        classes_mark_skipped(s, i);
        if (!s->info[i].is_skipped)
            classes_count_folder(s, i);
    }
    sum_folders(s, COUNT_SAMPLES, N_COUNTS);
}

/* ---- looking ---- */

struct looks {
    size_t file[LOOKS_FOLDER];
    unsigned n;
};

static void classes_add_look(struct looks *looks, size_t file)
{
    for (unsigned i = 0; i < looks->n; i++)
        if (looks->file[i] == file)
            return;
    if (looks->n < LOOKS_FOLDER)
        looks->file[looks->n++] = file;
}

static void classes_keep_largest(const struct members *m, struct looks *largest, size_t file)
{
    unsigned at = largest->n;

    while (at && members_size(m, largest->file[at - 1]) < members_size(m, file))
        at--;
    if (at == LOOKS_LARGEST)
        return;
    largest->n += largest->n < LOOKS_LARGEST;
    for (unsigned i = largest->n - 1; i > at; i--)
        largest->file[i] = largest->file[i - 1];
    largest->file[at] = file;
}

/* Choose files of the class folders: a file of rows among texts is probably one of the largest. */
static void classes_choose(struct search *s, uint32_t folder, struct looks *ret)
{
    const struct folder_info *info = s->info;
    uint64_t n = info[folder].all[COUNT_SAMPLES] - info[folder].here[COUNT_SAMPLES], seen = 0;
    uint64_t stride = n <= LOOKS_FOLDER ? 1 : (n + LOOKS_SPREAD - 1) / LOOKS_SPREAD;
    struct looks largest = {.n = 0};

    for (uint32_t i = folder + 1; i < info[folder].end; i++)
        for (size_t k = info[i].first; k < info[i].last && !info[i].is_skipped; k++) {
            if (!name_is_of(s->media, members_name(s->m, k)))
                continue;
            if (seen++ % stride == 0)
                classes_add_look(ret, k);
            classes_keep_largest(s->m, &largest, k);
        }
    for (unsigned i = 0; i < largest.n; i++)
        classes_add_look(ret, largest.file[i]);
}

/* Do the files look like texts that no other format takes? What cannot be read says nothing. */
static bool classes_are_texts(struct search *s, const struct looks *looks)
{
    const struct claims *claims = s->claims;
    AUTO_FREE uint8_t *bytes = malloc((size_t)LOOKS_FOLDER * FORMAT_HEAD);
    int len[LOOKS_FOLDER];

    if (!bytes || claims->heads(claims, looks->file, looks->n, FORMAT_HEAD, bytes, len) < 0)
        s->failed = true;
    for (unsigned i = 0; i < looks->n && !s->failed; i++) {
        const uint8_t *head = bytes + (size_t)i * FORMAT_HEAD;

        if (len[i] >= 0 &&
            (memchr(head, 0, (size_t)len[i]) ||
             (claims->is_taken && claims->is_taken(claims, looks->file[i], head, (size_t)len[i]))))
            return false;
    }
    return !s->failed;
}

static bool classes_look(struct search *s, uint32_t folder)
{
    struct looks looks = {.n = 0};

    if (!files_media[s->media].is_looked_into)
        return true;
    classes_choose(s, folder, &looks);
    if (!s->claims->heads || s->n_class_heads + looks.n > LOOKS_SOURCE)
        return false;
    s->n_class_heads += looks.n;
    return classes_are_texts(s, &looks);
}

/* ---- judging ---- */

static bool classes_are_there(const struct search *s, uint32_t folder)
{
    const struct folder_info *f = &s->info[folder];
    const char *split = "";
    uint64_t with = 0, direct = 0;

    for (EACH_FOLDER(s, i, folder)) {
        const struct folder_info *below = &s->info[i];
        const char *name = folder_name(s, i);

        if (below->all[COUNT_STRAY] ||
            (below->all[COUNT_SAMPLES] &&
             (name_is_split(name) || words_are_of_two_splits(split, name))) ||
            folder_is_copy(s, i, COUNT_SAMPLES))
            return false;
        split = below->all[COUNT_SAMPLES] && words_name_split(name) ? name : split;
        with += below->all[COUNT_SAMPLES] > 0;
        direct += below->here[COUNT_SAMPLES] > 0;
    }
    return with > 1 && 2 * direct >= with &&
           f->all[COUNT_SAMPLES] - f->here[COUNT_SAMPLES] >= f->here[COUNT_SAMPLES];
}

/* split, project: as in claim.c. */
static void classes_search_folder(struct search *s, uint32_t folder, bool split, bool project)
{
    const struct folder_info *f = &s->info[folder];

    if (f->kaldi || !f->all[COUNT_SAMPLES] || f->is_skipped)
        return;
    split = split || name_is_split(folder_name(s, folder));
    project = project || f->project;
    if ((split || !project) && s->media == FILES_SOUNDS &&
        f->all[COUNT_STRAY] == f->here[COUNT_STRAY] && numbers_run_on(s, folder, COUNT_SAMPLES)) {
        collect_set(s, folder, LAYOUT_FLAT, folder, true, "parts of one dataset");
        return;
    }
    if ((split || !project) && classes_are_there(s, folder) && classes_look(s, folder)) {
        collect_set(s, folder, LAYOUT_CLASSES, folder, true, "classes by folder");
        return;
    }
    for (EACH_FOLDER(s, i, folder))
        classes_search_folder(s, i, split, project);
}

/* Has SOURCE files of that medium that may be collected? */
bool classes_have_any(const struct search *s)
{
    for (uint32_t i = 0; i < s->m->n_folders && s->media == FILES_SOUNDS; i++)
        if (s->info[i].kaldi)
            return false;
    for (size_t i = 0; i < s->m->n; i++)
        if (!s->claims->taken[i] && name_is_of(s->media, members_name(s->m, i)))
            return true;
    return false;
}

void claim_classes(struct search *s)
{
    if (!classes_have_any(s))
        return;
    classes_count_all(s);
    classes_search_folder(s, 0, false, false);
}
