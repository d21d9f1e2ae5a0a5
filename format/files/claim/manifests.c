#include "format/files/claim/manifests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/core/json.h"
#include "format/files/claim/parts.h"

#define AT_ONCE 16 /* files whose heads are read together */

/* ---- what a head says ---- */

static bool has_word(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

static bool files_manifests_is_text(const json_t *object, const char *name)
{
    return json_is_string(json_object_get(object, name));
}

/* 1, 0 or -ENOMEM. */
static int line_says(const char *line, size_t len)
{
    AUTO_JSON json_t *json = NULL;
    int r = json_read(line, len, "", json_budget(len), &json, NULL);

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    return files_manifests_is_text(json, "source") && files_manifests_is_text(json, "usage");
}

int manifest_head_says(const void *head, size_t len, bool whole, bool named)
{
    const char *text = head, *end = text + len;
    unsigned lines = 0;

    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        text += 3; /* byte order mark */
    if (text == end || *text != '{')
        return 0;
    if (named && (has_word(text, (size_t)(end - text), "\"source\"") ||
                  has_word(text, (size_t)(end - text), "\"usage\"")))
        return 1;
    for (const char *stop; text < end; text = stop + 1, lines++) {
        int r;

        stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop && !whole)
            break;
        stop = stop ? stop : end;
        r = line_says(text, (size_t)(stop - text));
        if (r <= 0)
            return r;
    }
    /* Of a line that is longer than the head its words must do. */
    return lines || (has_word(text, (size_t)(end - text), "\"source\"") &&
                     has_word(text, (size_t)(end - text), "\"usage\""));
}

static int look_at_some(const struct members *listing, const struct claims *claims,
                        const size_t *file, unsigned n, uint8_t *bytes, bool *ret_is)
{
    int len[AT_ONCE];
    int r = claims->heads(claims, file, n, MANIFEST_HEAD, bytes, len);

    for (unsigned i = 0; i < n && r >= 0; i++) {
        bool named = name_is_manifest(members_name(listing, file[i]));

        r = len[i] < 0
                ? named
                : manifest_head_says(bytes + (size_t)i * MANIFEST_HEAD, (size_t)len[i],
                                     (uint64_t)len[i] == members_size(listing, file[i]), named);
        ret_is[i] = r > 0;
    }
    return r < 0 ? r : 0;
}

static int manifests_look(const struct members *listing, const struct claims *claims,
                          const size_t *file, unsigned n, bool *ret_is)
{
    AUTO_FREE uint8_t *bytes = NULL;
    int r = 0;

    for (unsigned i = 0; i < n; i++)
        ret_is[i] = name_is_manifest(members_name(listing, file[i]));
    if (!claims->heads || !n)
        return 0;
    bytes = malloc((size_t)AT_ONCE * MANIFEST_HEAD);
    if (!bytes)
        return -ENOMEM;
    for (unsigned i = 0; i < n && r == 0; i += AT_ONCE)
        r = look_at_some(listing, claims, file + i, n - i < AT_ONCE ? n - i : AT_ONCE, bytes,
                         ret_is + i);
    return r;
}

/* ---- which files are looked into ---- */

#define LOOKS_NAMED  256u /* files of SOURCE called *.manifest that are looked into, at most, */
#define LOOKS_OTHER  64u  /* other files, */
#define LOOKS_FOLDER 16u  /* and of one folder */

/* Which files called *.manifest are such? Their names say it where SOURCE has no picture, or very
 * many of them. */
int look_at_named_manifests(struct search *s)
{
    const struct members *m = s->m;
    size_t file[LOOKS_NAMED];
    bool is[LOOKS_NAMED], pictures = false;
    unsigned n = 0;
    int r = 0;

    s->manifest = calloc(m->n + 1, 1);
    if (!s->manifest)
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++) {
        pictures = pictures || name_is_picture(members_name(m, i));
        s->manifest[i] = name_is_manifest(members_name(m, i));
        if (s->manifest[i] && n < LOOKS_NAMED)
            file[n++] = i;
    }
    if (pictures)
        r = manifests_look(m, s->claims, file, n, is);
    for (unsigned i = 0; i < n && pictures && r == 0; i++)
        s->manifest[file[i]] = is[i];
    return r;
}

/* May a file that is in no sample be one? What lies beside most datasets is not looked into. */
static bool may_be_manifest(const char *name)
{
    size_t len = strlen(name);

    return *name != '.' && !name_is_manifest(name) && !name_is_picture(name) &&
           !name_is_table(name) &&
           (!name_is_neutral(name) || (len > 5 && !strcasecmp(name + len - 5, ".json")));
}

/* Look into files of a folder that are in no sample, whatever they are called. */
static int look_at_others(struct search *s, uint32_t folder)
{
    struct folder_info *f = &s->info[folder];
    AUTO_FREE uint8_t *used = NULL;
    size_t file[LOOKS_FOLDER];
    bool is[LOOKS_FOLDER];
    unsigned n = 0;
    int r;

    if (!f->others || f->looked || !s->claims->heads)
        return 0;
    f->looked = true;
    used = calloc(f->last - f->first + 1, 1);
    if (!used)
        return -ENOMEM;
    mark_used(s, folder, used);
    for (size_t i = f->first; i < f->last && n < LOOKS_FOLDER && s->looked < LOOKS_OTHER; i++)
        if (!used[i - f->first] && may_be_manifest(members_name(s->m, i))) {
            file[n++] = i;
            s->looked++;
        }
    r = manifests_look(s->m, s->claims, file, n, is);
    for (unsigned i = 0; i < n && r == 0; i++) {
        s->manifest[file[i]] = is[i];
        f->manifests += is[i];
        f->all_manifests += is[i];
    }
    return r;
}

/* Manifests lie in a folder, or in one below that has no pictures. */
int look_for_manifests(struct search *s, uint32_t folder)
{
    int r = look_at_others(s, folder);

    for (uint32_t i = folder + 1; i < s->info[folder].end && r == 0; i = next_folder(s, i))
        if (!s->info[i].all_pictures && !is_skipped(path_base(files_path_of(s, i)))) {
            uint64_t before = s->info[i].manifests;

            r = look_at_others(s, i);
            s->info[folder].all_manifests += s->info[i].manifests - before;
        }
    return r;
}

int look_into_classes(struct search *s, uint32_t folder)
{
    int r = 0;

    for (uint32_t i = folder + 1; i < s->info[folder].end && r == 0; i = next_folder(s, i))
        if (s->info[i].pictures && !is_skipped(path_base(files_path_of(s, i))))
            r = look_for_manifests(s, i);
    return r;
}
