/* A set says which files its samples have; a pattern says it of all of them. Folders below the top
 * become {label}, a star, or words, and names become a star and their extension: so the patterns
 * are few, however many samples there are. What such patterns have besides is excepted. */
#include "format/files/claim/shape.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "format/files/claim/pattern.h"

/* ---- texts ---- */

bool texts_have(const struct texts *t, const char *text)
{
    for (size_t i = t->n; i > 0; i--)
        if (!strcmp(t->text[i - 1], text))
            return true;
    return false;
}

int texts_add(struct texts *t, const char *text)
{
    if (texts_have(t, text))
        return 0;
    if (t->n == SHAPE_TEXTS)
        return -E2BIG;
    if (array_capacity(&t->text, t->n, sizeof(*t->text)) < 0)
        return -ENOMEM;
    t->text[t->n] = strdup(text);
    return t->text[t->n++] ? 0 : -ENOMEM;
}

void texts_release(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->text[i]);
    free(t->text);
}

/* Takes over what is in t. */
static int shape_add_text(struct shape *shape, struct texts *texts, struct text *t)
{
    int r = t->failed ? -ENOMEM : texts_add(texts, t->data ? t->data : "");

    if (r != -E2BIG)
        return r;
    shape->note = "it has more patterns than are shown";
    return 0;
}

void shape_add_plain(struct text *t, const char *bytes, size_t len)
{
    while (len) {
        size_t n = text_character(bytes, len);
        bool is_plain = n && !strchr("*{}", *bytes) && !text_command(bytes, len);

        if (is_plain)
            text_add_bytes(t, bytes, n);
        else if (!t->len || t->data[t->len - 1] != '*')
            text_add(t, "*");
        n = n ? n : 1;
        bytes += n;
        len -= n;
    }
}

/* ---- parts of paths ---- */

static unsigned shape_count_parts(const char *path)
{
    unsigned n = *path != '\0';

    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* The n-th part of a path. */
static const char *shape_part(const char *path, unsigned n, size_t *ret_len)
{
    for (; n && *path; n--) {
        path += strcspn(path, "/");
        path += *path == '/';
    }
    *ret_len = strcspn(path, "/");
    return path;
}

static const char *shape_folder(const struct shape *shape, size_t file)
{
    return members_folder_of(shape->s->m, file);
}

static unsigned shape_top_parts(const struct shape *shape)
{
    return shape_count_parts(claim_path(shape->s, shape->set->top));
}

/* Add folder number `part` of the path of a picture's folder, and '/'. */
static void shape_add_folder(const struct shape *shape, const char *path, unsigned part,
                             struct text *t)
{
    unsigned top = shape_top_parts(shape), below = part - top;
    size_t len;
    const char *name = shape_part(path, part, &len);

    if (part < top || (below && below < SHAPE_FOLDERS && shape->same[below]))
        shape_add_plain(t, name, len);
    else if (shape->by_class && !below)
        text_add(t, "{label}");
    else if (shape->has_words)
        text_add(t, "{_%u}", below + 1);
    else
        text_add(t, "*");
    text_add(t, "/");
}

/* ---- which pictures ---- */

static size_t shape_file(const struct shape *shape, size_t place)
{
    return shape->set->file[place];
}

/* The file of a sample that its pattern has: the first picture. */
static size_t shape_picture(const struct shape *shape, size_t sample)
{
    const struct files_claim *claim = shape->set->claim;
    size_t first = claim->first[sample];

    for (size_t i = first; i < claim->first[sample + 1]; i++)
        if ((!claim->role || !claim->role[i]) &&
            name_is_of(claim->media, members_name(shape->s->m, shape_file(shape, i))))
            return shape_file(shape, i);
    return shape_file(shape, first);
}

static void shape_see_folder(struct shape *shape, const char *path, bool is_first)
{
    unsigned top = shape_top_parts(shape), n = shape_count_parts(path) - top;

    shape->least = is_first || n < shape->least ? n : shape->least;
    shape->most = is_first || n > shape->most ? n : shape->most;
    for (unsigned i = 0; i < SHAPE_FOLDERS; i++) {
        size_t len;
        const char *name = shape_part(path, top + i, &len);

        if (is_first && i < n) {
            shape->same[i] = name;
            shape->same_len[i] = len;
        } else if (i >= n || (shape->same[i] && (len != shape->same_len[i] ||
                                                 memcmp(name, shape->same[i], len) != 0))) {
            shape->same[i] = NULL;
        }
    }
}

/* Folders that are the same everywhere are named, except the first one, where keys begin. */
static void shape_see_folders(struct shape *shape)
{
    const char *before = NULL;

    for (size_t i = 0; i < shape->set->claim->n_samples; i++) {
        const char *path = shape_folder(shape, shape_picture(shape, i));

        if (path != before)
            shape_see_folder(shape, path, !i);
        before = path;
    }
    shape->same[0] = NULL;
}

static int shape_add_picture(struct shape *shape, size_t file)
{
    const char *path = shape_folder(shape, file), *name = members_name(shape->s->m, file);
    unsigned n = shape_count_parts(path), top = shape_top_parts(shape);
    AUTO_TEXT struct text t = {0};
    size_t stem = name_stem_alone(name);

    for (unsigned i = 0; i < n; i++) {
        if (i >= top && !shape->has_words && shape->least != shape->most &&
            !(shape->by_class && i == top)) {
            break;
        }
        shape_add_folder(shape, path, i, &t);
    }
    if (!shape->has_words && shape->least != shape->most)
        text_add(&t, "**/");
    text_add(&t, "*");
    shape_add_plain(&t, name + stem, strlen(name + stem));
    if (n - top > SHAPE_FOLDERS && shape->has_words)
        shape->note = "its folders are too deep for patterns";
    return shape_add_text(shape, &shape->pictures, &t);
}

/* ---- what belongs to them ---- */

static int shape_add_field(struct shape *shape, const char *name, struct text *pattern)
{
    for (size_t i = 0; i < shape->n_fields; i++)
        if (!strcmp(shape->field[i].name, name))
            return shape_add_text(shape, &shape->field[i].patterns, pattern);
    if (array_capacity(&shape->field, shape->n_fields, sizeof(*shape->field)) < 0)
        return -ENOMEM;
    shape->field[shape->n_fields] = (struct shape_field){.name = strdup(name)};
    if (!shape->field[shape->n_fields].name)
        return -ENOMEM;
    return shape_add_text(shape, &shape->field[shape->n_fields++].patterns, pattern);
}

/* A file next to a picture, with its stem. */
static int shape_add_companion(struct shape *shape, size_t picture, size_t file)
{
    const char *main_name = members_name(shape->s->m, picture);
    const char *name = members_name(shape->s->m, file);
    size_t stem = name_stem_alone(main_name);
    AUTO_TEXT struct text t = {0};
    char ext[EXT_MOST + 1];

    if (strncmp(name, main_name, stem) != 0 || name[stem] != '.') {
        shape->note = "files next to a picture whose name has two dots are not in it";
        return 0;
    }
    if (!name_ext(name, stem, ext))
        return 0; /* it is not shown */
    text_add(&t, "{path}");
    shape_add_plain(&t, name + stem, strlen(name + stem));
    return shape_add_field(shape, ext, &t);
}

/* The pair that a file belongs to a picture by, and the folder that is its input. */
static const struct pair *shape_pair(const struct shape *shape, size_t picture, size_t file,
                                     uint32_t *ret_input)
{
    const struct search *s = shape->s;
    uint32_t folder = s->m->member[file].folder;

    for (*ret_input = s->m->member[picture].folder; *ret_input != NO_FOLDER;
         *ret_input = s->info[*ret_input].above)
        for (const struct pair *pair = s->info[*ret_input].pairs; pair; pair = pair->next)
            if (folder >= pair->target && folder < s->info[pair->target].end)
                return pair;
    return NULL;
}

static const char *shape_field_name(const struct shape *shape, unsigned role)
{
    const char *name = shape->set->claim->role_name[role - 1], *dot = strrchr(name, '.');

    return shape->set->is_text[role - 1] && !shape->s->long_names && dot ? dot + 1 : name;
}

static int shape_add_partner(struct shape *shape, size_t picture, size_t file, unsigned role)
{
    const char *path = shape_folder(shape, picture), *name = members_name(shape->s->m, file);
    size_t stem = name_stem_alone(members_name(shape->s->m, picture));
    AUTO_TEXT struct text t = {0};
    const char *from, *to;
    unsigned same = 0, n;
    uint32_t input;
    const struct pair *pair = shape_pair(shape, picture, file, &input);

    if (!pair) {
        shape->note = "files that belong to pictures are not in it";
        return 0;
    }
    from = claim_path(shape->s, input);
    to = claim_path(shape->s, pair->target);
    n = shape_count_parts(from);
    for (; same < n && same < shape_count_parts(to); same++) {
        size_t len, other;
        const char *a = shape_part(from, same, &len), *b = shape_part(to, same, &other);

        if (len != other || memcmp(a, b, len) != 0)
            break;
        shape_add_folder(shape, path, same, &t);
    }
    for (unsigned i = same; i < shape_count_parts(to); i++) {
        size_t len;
        const char *part = shape_part(to, i, &len);

        shape_add_plain(&t, part, len);
        text_add(&t, "/");
    }
    for (unsigned i = n; i < shape_count_parts(path); i++)
        shape_add_folder(shape, path, i, &t);
    text_add(&t, "{stem}");
    stem += strlen(pair->end);
    shape_add_plain(&t, pair->end, strlen(pair->end));
    if (strlen(name) >= stem)
        shape_add_plain(&t, name + stem, strlen(name + stem));
    return shape_add_field(shape, shape_field_name(shape, role), &t);
}

static int shape_add_sample(struct shape *shape, size_t sample)
{
    const struct files_claim *claim = shape->set->claim;
    size_t picture = shape_picture(shape, sample);
    int r = shape_add_picture(shape, picture);

    for (size_t i = claim->first[sample]; i < claim->first[sample + 1] && r == 0; i++) {
        size_t file = shape_file(shape, i);
        unsigned role = claim->role ? claim->role[i] : 0;

        if (file == picture)
            continue;
        r = role ? shape_add_partner(shape, picture, file, role)
                 : shape_add_companion(shape, picture, file);
    }
    return r;
}

/* The patterns of the field with boxes, which is no other field if its name is that of them. */
static int shape_find_boxes(struct shape *shape)
{
    const struct files_claim *claim = shape->set->claim;
    const char *name = claim->boxes_ext;

    if (!claim->boxes)
        return 0;
    if (claim->boxes_role)
        name = shape_field_name(shape, claim->boxes_role);
    for (size_t i = 0; i < shape->n_fields; i++) {
        struct shape_field *field = &shape->field[i];
        int r = 0;

        if (strcmp(field->name, name) != 0)
            continue;
        for (size_t k = 0; k < field->patterns.n && r == 0; k++)
            r = texts_add(&shape->boxes, field->patterns.text[k]);
        return r;
    }
    return 0;
}

/* ---- what the patterns have besides ---- */

/* Mark the files of the set, and the folders that they are in. */
static void shape_mark(const struct shape *shape, uint8_t *is_in, uint8_t *has)
{
    for (size_t i = 0; i < shape->set->n; i++) {
        is_in[shape->set->file[i]] = 1;
        for (uint32_t f = shape->s->m->member[shape->set->file[i]].folder;
             f != NO_FOLDER && !has[f]; f = shape->s->info[f].above)
            has[f] = 1;
    }
}

static bool shape_matches(const struct shape *shape, const char *path)
{
    for (size_t i = 0; i < shape->pictures.n; i++) {
        struct pattern_words words = {.n = 0};

        if (pattern_match(shape->pictures.text[i], path, &words) > 0)
            return true;
    }
    return false;
}

/* Except the largest folder that has nothing of the set, or the file. */
static int shape_except(struct shape *shape, size_t file, const char *path, const uint8_t *has)
{
    uint32_t folder = shape->s->m->member[file].folder;
    AUTO_TEXT struct text t = {0};

    if (has[folder]) {
        shape_add_plain(&t, path, strlen(path));
    } else {
        while (shape->s->info[folder].above != NO_FOLDER && !has[shape->s->info[folder].above])
            folder = shape->s->info[folder].above;
        shape_add_plain(&t, claim_path(shape->s, folder), strlen(claim_path(shape->s, folder)));
        text_add(&t, "/**");
    }
    return shape_add_text(shape, &shape->except, &t);
}

static int shape_find_others(struct shape *shape)
{
    const struct folder_info *top = &shape->s->info[shape->set->top];
    AUTO_FREE uint8_t *is_in = calloc(shape->s->m->n + 1, 1);
    AUTO_FREE uint8_t *has = calloc(shape->s->m->n_folders + 1, 1);
    int r = is_in && has ? 0 : -ENOMEM;

    if (r == 0)
        shape_mark(shape, is_in, has);
    for (size_t i = top->first; i < shape->s->info[top->end - 1].last && r == 0; i++) {
        char path[PATH_MAX];

        if (is_in[i] || !name_is_of(shape->set->claim->media, members_name(shape->s->m, i)) ||
            is_skipped(members_name(shape->s->m, i)) ||
            members_path(shape->s->m, i, path, sizeof(path)) < 0 || strstr(path, "/.") ||
            !shape_matches(shape, path))
            continue;
        r = shape_except(shape, i, path, has);
    }
    return r;
}

/* ---- all of it ---- */

int shape_make(const struct search *s, const struct set *set, bool by_class, struct shape *ret)
{
    int r = 0;

    *ret = (struct shape){.s = s, .set = set, .by_class = by_class};
    for (uint32_t i = 0; i < set->n && set->claim->role; i++)
        ret->has_words = ret->has_words || set->claim->role[i];
    shape_see_folders(ret);
    if (by_class && !ret->least)
        ret->by_class = false;
    for (size_t i = 0; i < set->claim->n_samples && r == 0; i++)
        r = shape_add_sample(ret, i);
    if (r == 0)
        r = shape_find_boxes(ret);
    return r < 0 ? r : shape_find_others(ret);
}

void shape_release(struct shape *shape)
{
    texts_release(&shape->pictures);
    texts_release(&shape->except);
    texts_release(&shape->boxes);
    for (size_t i = 0; i < shape->n_fields; i++) {
        texts_release(&shape->field[i].patterns);
        free(shape->field[i].name);
    }
    free(shape->field);
}
