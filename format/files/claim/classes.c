/* Class folders of sounds, and of texts. As with pictures, most folders that have some have them
 * directly, and none is called like a part of a dataset. What is a dataset without this stays one:
 *
 *   nothing else  class folders have nothing but such files, what belongs to them, and readmes. One
 *                 other file, and the folder above is no dataset of classes.
 *   two classes   one folder of sounds says nothing of classes. So Hugging Face's audiofolder has
 *                 it, and so no folder of a few notes becomes a dataset.
 *   Kaldi         where SOURCE has an scp file, sounds are left to it, for it may name them.
 *   a look        names say little of texts. A few files are looked into, the largest among them:
 *                 if another format takes one of these, or one is no text, none is taken.
 *
 * Files beside class folders stay what they are: see stays_beside(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/files/claim/parts.h"

/* Files that are looked into, at most: of SOURCE, and of a dataset. Of one with more files, some
 * from the first to the last, and the largest. */
#define LOOKS_SOURCE  128u
#define LOOKS_FOLDER  16u
#define LOOKS_SPREAD  8u
#define LOOKS_LARGEST 8u

/* What names say of a folder. */
struct class_info {
    uint64_t own, all;   /* samples of its own, and with the folders below */
    uint64_t all_others; /* files that are neither in samples nor readmes */
    bool skipped;        /* it is in one that is no class, and so nothing of it counts */
};

struct class_search {
    struct search *s;
    enum files_media media;
    struct class_info *info; /* [n_folders] */
};

/* ---- counting ---- */

/* Does a folder, or one above, hold no samples? Folders come after those above them. */
static void mark_skipped(const struct class_search *c, uint32_t folder)
{
    const char *skipped = files_media[c->media].skipped;
    const char *name = path_base(files_path_of(c->s, folder));

    if (is_skipped(name) || (skipped && !strcmp(name, skipped)))
        for (uint32_t i = folder; i < c->s->info[folder].end; i++)
            c->info[i].skipped = true;
}

static int files_classes_count_folder(const struct class_search *c, uint32_t folder)
{
    const struct folder_info *f = &c->s->info[folder];
    struct class_info *info = &c->info[folder];
    struct sample_walk walk = {
        .m = c->s->m, .at = f->first, .end = f->last, .by_class = true, .media = c->media};
    AUTO_FREE uint8_t *used = calloc(f->last - f->first + 1, 1);
    struct sample_files sample;

    if (!used)
        return -ENOMEM;
    for (; next_sample(&walk, &sample); info->own++)
        for (size_t i = sample.first; i < sample.first + sample.n; i++) {
            const char *name = members_name(c->s->m, i);

            used[i - f->first] = name_is_of(c->media, name) || name_may_be_beside(c->media, name);
        }
    for (size_t i = f->first; i < f->last; i++) {
        const char *name = members_name(c->s->m, i);

        info->all_others += c->s->claims->taken[i] ||
                            (!used[i - f->first] && *name != '.' && !name_is_notice(name));
    }
    return 0;
}

static int files_classes_count_all(const struct class_search *c)
{
    uint32_t n = c->s->m->n_folders;
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++) {
        mark_skipped(c, i);
        if (!c->info[i].skipped)
            r = files_classes_count_folder(c, i);
    }
    for (uint32_t i = n; i-- > 0 && r == 0;) {
        c->info[i].all = c->info[i].own;
        for (uint32_t k = i + 1; k < c->s->info[i].end; k = next_folder(c->s, k)) {
            c->info[i].all += c->info[k].all;
            c->info[i].all_others += c->info[k].all_others;
        }
    }
    return r;
}

/* ---- looking ---- */

struct looks {
    size_t file[LOOKS_FOLDER];
    unsigned n;
};

static void add_look(struct looks *looks, size_t file)
{
    for (unsigned i = 0; i < looks->n; i++)
        if (looks->file[i] == file)
            return;
    if (looks->n < LOOKS_FOLDER)
        looks->file[looks->n++] = file;
}

static void keep_largest(const struct members *m, struct looks *largest, size_t file)
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
static void choose_looks(const struct class_search *c, uint32_t folder, struct looks *ret)
{
    const struct folder_info *info = c->s->info;
    uint64_t n = c->info[folder].all - c->info[folder].own, seen = 0;
    uint64_t stride = n <= LOOKS_FOLDER ? 1 : (n + LOOKS_SPREAD - 1) / LOOKS_SPREAD;
    struct looks largest = {.n = 0};

    for (uint32_t i = folder + 1; i < info[folder].end; i++)
        for (size_t k = info[i].first; k < info[i].last && !c->info[i].skipped; k++) {
            if (!name_is_of(c->media, members_name(c->s->m, k)))
                continue;
            if (seen++ % stride == 0)
                add_look(ret, k);
            keep_largest(c->s->m, &largest, k);
        }
    for (unsigned i = 0; i < largest.n; i++)
        add_look(ret, largest.file[i]);
}

/* Do the files look like texts that no other format takes? What cannot be read says nothing. 1, 0
 * or -ENOMEM. */
static int are_texts(const struct claims *claims, const struct looks *looks)
{
    AUTO_FREE uint8_t *bytes = malloc((size_t)LOOKS_FOLDER * FORMAT_HEAD);
    int len[LOOKS_FOLDER];
    int r = bytes ? claims->heads(claims, looks->file, looks->n, FORMAT_HEAD, bytes, len) : -ENOMEM;

    for (unsigned i = 0; i < looks->n && r == 0; i++) {
        const uint8_t *head = bytes + (size_t)i * FORMAT_HEAD;

        if (len[i] >= 0 && (memchr(head, 0, (size_t)len[i]) ||
                            claims->is_taken(claims, looks->file[i], head, (size_t)len[i])))
            return 0;
    }
    return r < 0 ? r : 1;
}

/* 1, 0 or -ENOMEM. */
static int files_classes_look(const struct class_search *c, uint32_t folder)
{
    struct claims *claims = c->s->claims;
    struct looks looks = {.n = 0};

    if (!files_media[c->media].is_looked_into)
        return 1;
    choose_looks(c, folder, &looks);
    if (!claims->heads || !claims->is_taken || c->s->class_looks + looks.n > LOOKS_SOURCE)
        return 0;
    c->s->class_looks += looks.n;
    return are_texts(claims, &looks);
}

/* ---- judging ---- */

static bool files_classes_has_classes(const struct class_search *c, uint32_t folder)
{
    const struct class_info *info = &c->info[folder];
    uint64_t with = 0, direct = 0;

    for (uint32_t i = folder + 1; i < c->s->info[folder].end; i = next_folder(c->s, i)) {
        if (c->info[i].all_others ||
            (c->info[i].all && name_is_split(path_base(files_path_of(c->s, i)))))
            return false;
        with += c->info[i].all > 0;
        direct += c->info[i].own > 0;
    }
    return with > 1 && 2 * direct >= with && info->all - info->own >= info->own;
}

/* split, project: as in claim.c. */
static int files_classes_search_folder(const struct class_search *c, uint32_t folder, bool split,
                                       bool project)
{
    const struct folder_info *f = &c->s->info[folder];
    int r = 0;

    if (f->kaldi || !c->info[folder].all || c->info[folder].skipped)
        return 0;
    split = split || name_is_split(path_base(files_path_of(c->s, folder)));
    project = project || f->project;
    if ((split || !project) && files_classes_has_classes(c, folder))
        r = files_classes_look(c, folder);
    if (r < 0)
        return r;
    if (r)
        return take(c->s, folder, LAYOUT_CLASSES, c->media);
    for (uint32_t i = folder + 1; i < f->end && r == 0; i = next_folder(c->s, i))
        r = files_classes_search_folder(c, i, split, project);
    return r;
}

/* Has SOURCE files of that kind that may be taken? */
static bool has_any(const struct search *s, enum files_media media)
{
    for (uint32_t i = 0; i < s->m->n_folders && media == FILES_SOUNDS; i++)
        if (s->info[i].kaldi)
            return false;
    for (size_t i = 0; i < s->m->n; i++)
        if (!s->claims->taken[i] && name_is_of(media, members_name(s->m, i)))
            return true;
    return false;
}

int take_classes(struct search *s, enum files_media media)
{
    struct class_search c = {.s = s, .media = media};
    int r;

    if (!has_any(s, media))
        return 0;
    c.info = calloc(s->m->n_folders + 1, sizeof(*c.info));
    r = c.info ? files_classes_count_all(&c) : -ENOMEM;
    if (r == 0)
        r = files_classes_search_folder(&c, 0, false, false);
    free(c.info);
    return r;
}
