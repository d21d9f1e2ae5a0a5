#include "format/files/claim/manifests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "format/files/claim/parts.h"

#define AT_ONCE 16 /* files whose heads are read together */

/* ---- what a line says ---- */

/* Is a member a text, and not empty? */
static bool manifest_has_text(const json_t *object, const char *name)
{
    return json_string_length(json_object_get(object, name)) > 0;
}

int manifest_line_read(const char *bytes, size_t len, const char *what, json_t **ret,
                       struct diag *d)
{
    int r = json_read(bytes, len, what, json_budget(len), ret, d);
    const json_t *annotation = json_object_get(*ret, "annotation");
    const char *wrong = NULL;

    if (r < 0)
        return r == -EFBIG ? -EBADMSG : r;
    if (!json_is_object(*ret))
        wrong = "expected a JSON object, got something else";
    else if (!manifest_has_text(*ret, "source"))
        wrong = "expected a text 'source', got none";
    else if (!manifest_has_text(*ret, "usage"))
        wrong = "expected a text 'usage', got none";
    else if (annotation && !json_is_array(annotation))
        wrong = "expected an array 'annotation', got something else";
    else if (json_array_size(annotation) > MANIFEST_LABELS_MAX)
        wrong = "expected at most 256 annotations, got more";
    for (size_t i = 0; i < json_array_size(annotation) && !wrong; i++)
        if (!manifest_has_text(json_array_get(annotation, i), "name"))
            wrong = "expected a text 'name' in each annotation, got none";
    return wrong ? diag_set(d, -EBADMSG, "%s: %s", what, wrong) : 0;
}

/* ---- what a head says ---- */

static bool manifests_has_word(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

/* 1, 0 or -ENOMEM. */
static int manifests_line_says(const char *bytes, size_t len)
{
    AUTO_JSON json_t *line = NULL;
    int r = manifest_line_read(bytes, len, "", &line, NULL);

    return r == -ENOMEM ? r : manifest_has_text(line, "source") && manifest_has_text(line, "usage");
}

int manifest_head_says(const void *head, size_t len, bool whole, bool named)
{
    const char *text = head, *end = text + len;
    unsigned lines = 0;

    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        text += 3; /* byte order mark */
    if (text == end || *text != '{')
        return 0;
    if (named && (manifests_has_word(text, (size_t)(end - text), "\"source\"") ||
                  manifests_has_word(text, (size_t)(end - text), "\"usage\"")))
        return 1;
    for (const char *stop; text < end; text = stop + 1, lines++) {
        int r;

        stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop && !whole)
            break;
        stop = stop ? stop : end;
        r = manifests_line_says(text, (size_t)(stop - text));
        if (r <= 0)
            return r;
    }
    /* For a line that is longer than the head its words must do. */
    return lines || (manifests_has_word(text, (size_t)(end - text), "\"source\"") &&
                     manifests_has_word(text, (size_t)(end - text), "\"usage\""));
}

/* Set FILE_MANIFEST of n files by their first bytes, or by their names where these cannot be read.
 */
static void manifests_read_heads(struct search *s, const size_t *file, unsigned n)
{
    AUTO_FREE uint8_t *bytes = n ? malloc((size_t)AT_ONCE * MANIFEST_HEAD) : NULL;
    int len[AT_ONCE], r = n && !bytes ? -ENOMEM : 0;

    for (unsigned i = 0; i < n && r >= 0; i++) {
        const unsigned at = i % AT_ONCE;
        bool named = name_is(NAME_MANIFEST, members_name(s->m, file[i]));

        if (!at)
            r = s->claims->heads(s->claims, file + i, n - i < AT_ONCE ? n - i : AT_ONCE,
                                 MANIFEST_HEAD, bytes, len);
        if (r >= 0)
            r = len[at] < 0
                    ? named
                    : manifest_head_says(bytes + (size_t)at * MANIFEST_HEAD, (size_t)len[at],
                                         (uint64_t)len[at] == members_size(s->m, file[i]), named);
        s->flags[file[i]] &= (uint8_t)~FILE_MANIFEST;
        s->flags[file[i]] |= r > 0 ? FILE_MANIFEST : 0;
    }
    s->failed = s->failed || r < 0;
}

/* ---- which files are looked into ---- */

#define LOOKS_NAMED  256u /* files of SOURCE called *.manifest that are looked into, at most, */
#define LOOKS_OTHER  64u  /* other files, */
#define LOOKS_FOLDER 16u  /* and of one folder */

/* Which files called *.manifest are such? Their names say it where SOURCE has no picture, or very
 * many of them. */
void search_named_manifests(struct search *s)
{
    const struct members *m = s->m;
    size_t file[LOOKS_NAMED];
    bool pictures = false;
    unsigned n = 0;

    s->flags = calloc(m->n + 1, 1);
    s->failed = !s->flags;
    for (size_t i = 0; i < m->n && !s->failed; i++) {
        pictures = pictures || name_is_picture(members_name(m, i));
        if (!name_is(NAME_MANIFEST, members_name(m, i)))
            continue;
        s->flags[i] = FILE_MANIFEST;
        if (n < LOOKS_NAMED)
            file[n++] = i;
    }
    if (pictures && s->claims->heads)
        manifests_read_heads(s, file, n);
}

/* May a file that is in no sample be one? What lies next to most datasets is not looked into. */
static bool manifests_may_be(const char *name)
{
    static const char *const json[] = {".json", NULL};

    return *name != '.' && !name_is(NAME_MANIFEST, name) && !name_is_picture(name) &&
           !name_is_table(name) && (!name_is(NAME_NEUTRAL, name) || name_ends_in(name, json));
}

/* Look into files of a folder that are in no sample, whatever they are called. */
static void manifests_search_others(struct search *s, uint32_t folder)
{
    struct folder_info *f = &s->info[folder];
    size_t file[LOOKS_FOLDER];
    unsigned n = 0;

    if (!(f->here[COUNT_OTHERS] + f->here[COUNT_LISTS]) || f->is_searched || !s->claims->heads)
        return;
    f->is_searched = true;
    for (size_t i = f->first; i < f->last && n < LOOKS_FOLDER && s->n_heads < LOOKS_OTHER; i++)
        if (!(s->flags[i] & FILE_IN_SAMPLE) && manifests_may_be(members_name(s->m, i))) {
            file[n++] = i;
            s->n_heads++;
        }
    manifests_read_heads(s, file, n);
    for (unsigned i = 0; i < n; i++) {
        bool is = s->flags[file[i]] & FILE_MANIFEST;

        f->here[COUNT_MANIFESTS] += is;
        f->all[COUNT_MANIFESTS] += is;
    }
}

/* Manifests lie in a folder, or in one below that has no pictures. */
void search_manifests(struct search *s, uint32_t folder)
{
    manifests_search_others(s, folder);
    for (EACH_FOLDER(s, i, folder))
        if (!s->info[i].all[COUNT_PICTURES] && !is_skipped(folder_name(s, i))) {
            uint64_t before = s->info[i].here[COUNT_MANIFESTS];

            manifests_search_others(s, i);
            s->info[folder].all[COUNT_MANIFESTS] += s->info[i].here[COUNT_MANIFESTS] - before;
        }
}

void search_classes_for_manifests(struct search *s, uint32_t folder)
{
    for (EACH_FOLDER(s, i, folder))
        if (s->info[i].here[COUNT_PICTURES] && !is_skipped(folder_name(s, i)))
            search_manifests(s, i);
}
