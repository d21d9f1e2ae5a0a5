#include "format/files/claim/pictures.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "format/index/index.h"

/* folder_len 0: of the stem alone. */
static size_t pictures_hash(const struct pictures *pictures, const char *folder, size_t folder_len,
                            const char *stem, size_t len)
{
    return (key_hash(folder, folder_len) * 31 + key_hash(stem, len)) % (2 * pictures->n + 1);
}

static void pictures_link(struct pictures *pictures, size_t slot, uint32_t entry)
{
    pictures->next[entry] = pictures->slot[slot];
    pictures->slot[slot] = entry + 1;
}

static void pictures_add(struct pictures *pictures, uint32_t picture, uint32_t file)
{
    const struct members *m = pictures->s->m;
    const char *name = members_name(m, file), *folder = path_base(members_folder_of(m, file));
    size_t stem = name_stem_alone(name);

    pictures->file[picture] = file;
    pictures_link(pictures, pictures_hash(pictures, "", 0, name, stem), 2 * picture);
    pictures_link(pictures, pictures_hash(pictures, folder, strlen(folder), name, stem),
                  2 * picture + 1);
}

/* ---- finding ---- */

/* Does a path end with a text, at the beginning of a name? */
static bool pictures_ends_with(const char *path, size_t path_len, const char *text, size_t len)
{
    return path_len >= len && !memcmp(path + path_len - len, text, len) &&
           (path_len == len || path[path_len - len - 1] == '/');
}

/* What may name a picture. */
struct picture_text {
    const char *at;
    size_t len;
    bool with_ext;    /* it is a name, not a stem */
    bool is_absolute; /* and so perhaps of another machine */
};

/* Does a text end with the path of a picture below SOURCE, or, if it is absolute, below the scope?
 * With a folder at least, and the folders above these two are not of different splits. */
static bool pictures_is_end(const struct pictures *pictures, const struct picture_text *text,
                            const char *path, size_t len)
{
    const char *scope = text->is_absolute ? claim_path(pictures->s, pictures->scope) : "", *folder;
    size_t above = strlen(scope) + (*scope != 0), before;
    struct name_piece a, b;

    if (!memchr(path + above, '/', len - above) ||
        !pictures_ends_with(text->at, text->len, path + above, len - above))
        return false;
    before = text->len - (len - above);
    before -= before > 0;
    folder = memrchr(text->at, '/', before);
    folder = folder ? folder + 1 : text->at;
    scope = path_base(scope);
    return !words_have_split(folder, (size_t)(text->at + before - folder), &a) ||
           !words_have_split(scope, strlen(scope), &b) || words_same_split(a, b);
}

static bool pictures_is_meant(const struct pictures *pictures, uint32_t picture,
                              const struct picture_text *text)
{
    const struct search *s = pictures->s;
    uint32_t file = pictures->file[picture], folder = s->m->member[file].folder;
    const char *name = members_name(s->m, file);
    char path[PATH_MAX];
    size_t path_len;

    if (folder < pictures->scope || folder >= next_folder(s, pictures->scope) ||
        members_path(s->m, file, path, sizeof(path)) < 0)
        return false;
    path_len = strlen(path) - (text->with_ext ? 0 : strlen(name) - name_stem_alone(name));
    if (!pictures_ends_with(path, path_len, text->at, text->len) &&
        !pictures_is_end(pictures, text, path, path_len))
        return false;
    if (!pictures->split.len)
        return true;
    /* WIDER_train/images is of train. */
    for (uint32_t f = pictures_set(pictures, picture)->root; f != NO_FOLDER; f = s->info[f].above) {
        const char *root = folder_name(s, f);
        struct name_piece piece;

        if (words_have_split(root, strlen(root), &piece))
            return words_same_split(piece, pictures->split);
    }
    return false;
}

static void pictures_search(const struct pictures *pictures, const struct picture_text *said,
                            uint32_t *ret)
{
    const char *text = said->at, *base = memrchr(text, '/', said->len), *folder;
    size_t stem;

    folder = base && base > text ? memrchr(text, '/', (size_t)(base - text)) : NULL;
    folder = folder ? folder + 1 : text;
    base = base ? base + 1 : text;
    stem = (size_t)(text + said->len - base);
    if (said->with_ext) {
        const char *dot = memrchr(base, '.', stem);

        if (!dot || dot == base)
            return;
        stem = (size_t)(dot - base);
    }
    for (uint32_t i = pictures->slot[pictures_hash(
             pictures, folder, base > text ? (size_t)(base - 1 - folder) : 0, base, stem)];
         i && *ret != PICTURE_SEVERAL; i = pictures->next[i - 1]) {
        const uint32_t number = (i - 1) / 2;

        if (number != *ret && (i - 1) % 2 == (base > text) &&
            pictures_is_meant(pictures, number, said))
            *ret = *ret == PICTURE_NONE ? number : PICTURE_SEVERAL;
    }
}

static uint32_t pictures_find(const struct picture_names *names, const char *text, size_t len)
{
    const struct pictures *pictures = (const struct pictures *)names;
    struct picture_text said = {.with_ext = true, .is_absolute = len && *text == '/'};
    uint32_t found = PICTURE_NONE;

    for (size_t n; len > 2 && (n = text[0] == '/' ? 1 : strncmp(text, "./", 2) ? 0 : 2); len -= n)
        text += n;
    if (!len)
        return PICTURE_NONE;
    said.at = text;
    said.len = len;
    pictures_search(pictures, &said, &found);
    said.with_ext = false;
    if (found == PICTURE_NONE)
        pictures_search(pictures, &said, &found);
    if (found == PICTURE_NONE && memchr(text, '\\', len) && !memchr(text, '/', len) &&
        len < PATH_MAX) { /* a path of Windows */
        char path[PATH_MAX];

        for (size_t i = 0; i < len; i++)
            path[i] = text[i] == '\\' ? '/' : text[i];
        return pictures_find(names, path, len);
    }
    return found;
}

uint32_t pictures_find_end(const struct pictures *pictures, const char *path)
{
    for (const char *end = path; *end; end += strcspn(end, "/"), end += *end == '/') {
        uint32_t found = pictures_find(&pictures->names, end, strlen(end));

        if (found != PICTURE_NONE)
            return found;
    }
    return PICTURE_NONE;
}

struct set *pictures_set(const struct pictures *pictures, uint32_t picture)
{
    struct set *set = pictures->s->set;

    return &set[search_last_up_to(&set->base, sizeof(*set), pictures->s->n_sets, picture)];
}

/* ---- making ---- */

static bool pictures_are_of(const struct set *set, const struct set *only)
{
    return set_has_pictures(set) && !set->refused && (only ? set == only : !set->dataset);
}

void pictures_release(struct pictures *pictures)
{
    free(pictures->file);
    free(pictures->slot);
    free(pictures->next);
}

bool pictures_aim(struct pictures *pictures, uint32_t scope, const char *name)
{
    pictures->scope = scope;
    pictures_of_all_splits(pictures);
    return words_have_split(name, name_stem_alone(name), &pictures->split);
}

void pictures_init(struct pictures *ret, struct search *s, const struct set *only)
{
    uint32_t n = 0;

    *ret = (struct pictures){.names.find = pictures_find, .s = s};
    for (size_t i = 0; i < s->n_sets; i++) {
        struct set *set = &s->set[i];

        if (!only)
            set->base = ret->n;
        ret->n += pictures_are_of(set, only) ? set->claim->n_samples : 0;
    }
    ret->file = calloc(ret->n + 1, sizeof(*ret->file));
    ret->next = calloc(2 * ret->n + 1, sizeof(*ret->next));
    ret->slot = calloc(2 * ret->n + 1, sizeof(*ret->slot));
    s->failed = s->failed || !ret->file || !ret->next || !ret->slot;
    for (size_t i = 0; i < s->n_sets && !s->failed; i++)
        for (size_t k = 0; k < s->set[i].claim->n_samples && pictures_are_of(&s->set[i], only); k++)
            pictures_add(ret, n++, set_picture(&s->set[i], k));
}
