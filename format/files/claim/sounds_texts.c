/* What texts say of sounds becomes columns, and datasets. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/text.h"
#include "format/files/claim/sounds.h"
#include "format/files/claim/sounds_lines.h"
#include "format/files/claim/words.h"

#define IGNORED_MOST 8
#define TEXTS_MOST   100000 /* files that are read */
#define PARTS        3      /* of a list with numbers: 1 is train, 2 dev, 3 test */

/* What joined texts say, by a name: of each sound where its text is. */
struct sound_column {
    char *name;
    struct text bytes;
    uint64_t *end; /* [pictures] behind it, + 1; 0: it has none */
    uint64_t *len;
};

struct sound_columns {
    struct sound_column *column; /* [n] */
    size_t n;
};

/* ---- joined texts ---- */

/* The field of a text with one text a sound: txt if its name says that. */
static const char *texts_field(const struct sound_text *t, char ret[static 64])
{
    static const char *const words[] = {"trans", "transcript", "transcripts",    "transcription",
                                        "text",  "txt",        "transcriptions", NULL};
    char stem[64];
    const char *at = stem, *end;
    struct name_piece piece;

    if (t->separator == '|')
        return "text";
    snprintf(stem, sizeof(stem), "%.*s", (int)name_stem_alone(t->name), t->name);
    end = stem + strlen(stem);
    while (next_piece(&at, end, &piece))
        for (const char *const *word = words; *word; word++)
            if (piece.len == strlen(*word) && !strncasecmp(piece.at, *word, piece.len))
                return "txt";
    snprintf(ret, 64, "%s", stem);
    return ret;
}

static int texts_column(const struct annotating *a, struct sound_columns *t, const char *name,
                        struct sound_column **ret)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->column[i].name, name)) {
            *ret = &t->column[i];
            return 0;
        }
    if (array_capacity(&t->column, t->n, sizeof(*t->column)) < 0)
        return -ENOMEM;
    *ret = &t->column[t->n++];
    **ret = (struct sound_column){.name = strdup(name),
                                  .end = calloc(a->pictures.n + 1, sizeof(uint64_t)),
                                  .len = calloc(a->pictures.n + 1, sizeof(uint64_t))};
    return (*ret)->name && (*ret)->end && (*ret)->len ? 0 : -ENOMEM;
}

static int texts_join_one(struct sound_text *t, struct sound_columns *columns, const char *name,
                          uint32_t picture, const char *text, size_t len)
{
    struct sound_column *c;
    int r = texts_column(t->a, columns, name, &c);

    if (r < 0)
        return r;
    if (c->end[picture]) {
        t->repeated++;
        return 0;
    }
    text_add_bytes(&c->bytes, text, len);
    c->len[picture] = len;
    c->end[picture] = c->bytes.len + 1;
    return c->bytes.failed ? -ENOMEM : 0;
}

/* A row without a header: two cells more are a text and the same as it is spoken. */
static int texts_join_row(struct sound_text *t, struct sound_columns *columns,
                          const struct row_bytes *row, const struct cells *cells, uint32_t picture)
{
    static const char *const names[] = {"text", "normalized"};
    char field[64];
    int r = 0;

    if (t->separator == ' ' || t->cells == 2) {
        const char *text = cells->text[0] + cells->len[0], *end = row->bytes + row->len;

        while (text < end && (*text == ' ' || *text == '\t' || *text == t->separator))
            text++;
        while (end > text && (end[-1] == '\r' || end[-1] == ' '))
            end--;
        return end == text ? 0
                           : texts_join_one(t, columns, texts_field(t, field), picture, text,
                                            (size_t)(end - text));
    }
    for (unsigned i = 1; i < cells->n && i < 3 && r == 0; i++)
        if (cells->len[i])
            r = texts_join_one(t, columns, names[i - 1], picture, cells->text[i], cells->len[i]);
    return r;
}

/* ---- rows that are a dataset ---- */

struct text_rows {
    uint32_t *sample; /* [n] pictures, in the order of the rows */
    size_t n;
    struct value_columns columns; /* of the cells but the key */
};

static int texts_begin_rows(const struct sound_text *t, struct text_rows *rows)
{
    int r = 0;

    for (unsigned i = 0; i < t->cells && r == 0; i++) {
        struct value_column *c;

        if (i != t->key && t->header[i] && *t->header[i])
            r = value_columns_add(&rows->columns, t->header[i], VALUE_TEXT, DTYPE_U1, true, 0, &c);
    }
    return r;
}

static int texts_add_row(const struct sound_text *t, struct text_rows *rows,
                         const struct cells *cells, uint32_t picture)
{
    unsigned column = 0;
    int r = 0;

    if (array_capacity(&rows->sample, rows->n, sizeof(*rows->sample)) < 0)
        return -ENOMEM;
    rows->sample[rows->n++] = picture;
    for (unsigned i = 0; i < t->cells && r == 0; i++) {
        struct value_column *c;

        if (i == t->key || !t->header[i] || !*t->header[i])
            continue;
        c = &rows->columns.column[column++];
        if (i >= cells->n || !cells->len[i]) {
            r = value_column_end_hole(c);
            continue;
        }
        r = value_column_append(c, cells->text[i], cells->len[i]);
        r = r < 0 ? r : value_column_end_row(c);
    }
    return r;
}

/* Columns without a value are none; texts that are whole numbers are such. */
static int texts_type_columns(struct text_rows *rows)
{
    for (unsigned i = rows->columns.n; i-- > 0;) {
        struct value_column *c = &rows->columns.column[i];
        uint64_t values = 0, numbers = 0;

        for (uint64_t row = 0; row < c->rows; row++) {
            const uint8_t *text;
            uint64_t len = value_items(c, row, &text);
            struct row_cell cell = {
                .type = CELL_TEXT, .text = (const char *)text, .len = (size_t)len};

            if (value_is_hole(c, row))
                continue;
            row_cell_judge_number(&cell);
            values++;
            numbers += cell.type == CELL_INTEGER;
        }
        if (!values)
            value_columns_remove(&rows->columns, i);
        else if (values == numbers && value_column_to_numbers(c, DTYPE_I8) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* The set of all those pictures, in the order of the rows. NULL: they are of several. */
static struct set *texts_set(const struct sound_text *t, const uint32_t *picture, size_t n)
{
    struct set *set = pictures_set(&t->a->pictures, picture[0]);

    for (size_t i = 1; i < n; i++)
        if (pictures_set(&t->a->pictures, picture[i]) != set)
            return NULL;
    return set;
}

/* A dataset of the samples of rows, all of one set. NULL columns: none. 0, -EDOM: they are of
 * several sets, or -ENOMEM. */
static int texts_add_view(struct sound_text *t, const char *name, const uint32_t *picture, size_t n,
                          struct value_columns *columns)
{
    struct annotating *a = t->a;
    struct set *set = n ? texts_set(t, picture, n) : NULL;
    uint32_t *sample;
    int r;

    if (!set)
        return n ? -EDOM : 0;
    sample = calloc(n, sizeof(*sample));
    if (!sample)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sample[i] = picture[i] - (uint32_t)set->base;
    r = annotating_add_view(a, (size_t)(set - a->s->set), a->s->m->member[t->file].folder, name,
                            sample, n);
    if (r == 0 && columns)
        r = view_add_columns(&set->claim->view[set->claim->n_views - 1], columns);
    return r;
}

/* ---- all lines ---- */

struct text_list {
    uint32_t *picture[PARTS + 1]; /* [n] of each number; those without one are 0 */
    size_t n[PARTS + 1];
};

static int texts_add_listed(struct sound_text *t, struct text_list *list, const struct cells *cells,
                            uint32_t picture)
{
    size_t part = 0;

    if (t->has_number) {
        part = cells->len[0] == 1 ? (size_t)(cells->text[0][0] - '0') : PARTS + 1;
        if (!part || part > PARTS)
            return -EDOM;
    }
    if (array_capacity(&list->picture[part], list->n[part], sizeof(uint32_t)) < 0)
        return -ENOMEM;
    list->picture[part][list->n[part]++] = picture;
    return 0;
}

static int texts_read_lines(struct sound_text *t, const struct blob *blob,
                            struct sound_columns *columns, struct text_rows *rows,
                            struct text_list *list, struct diag *d)
{
    AUTO(row_walk_release) struct row_walk walk = texts_walk(t, blob);
    struct row_bytes row;
    bool skip = t->has_header;
    int r = t->use == TEXT_ROWS ? texts_begin_rows(t, rows) : 0, more;

    if (r < 0)
        return r;
    while ((more = row_walk_next(&walk, &row, d)) == 1 && r == 0) {
        struct cells cells;
        uint32_t picture;

        if (skip) {
            skip = false;
            continue;
        }
        texts_split(row.bytes, row.len, t->separator, &cells);
        if (!cells.n || (cells.n == 1 && !cells.len[0]))
            continue;
        picture = texts_find(t, &cells, t->key);
        if (picture >= PICTURE_SEVERAL) {
            t->missing++;
            continue;
        }
        r = t->use == TEXT_JOINED ? texts_join_row(t, columns, &row, &cells, picture)
            : t->use == TEXT_ROWS ? texts_add_row(t, rows, &cells, picture)
                                  : texts_add_listed(t, list, &cells, picture);
    }
    return r < 0 ? r : more < 0 ? more : 0;
}

/* "testing" of testing_list.txt. */
static void texts_list_name(const struct sound_text *t, char ret[static 64])
{
    static const char end[] = "_list";
    size_t n;

    snprintf(ret, 64, "%.*s", (int)name_stem_alone(t->name), t->name);
    n = strlen(ret);
    if (n > sizeof(end) - 1 && !strcasecmp(ret + n - (sizeof(end) - 1), end))
        ret[n - (sizeof(end) - 1)] = '\0';
}

static int texts_add_lists(struct sound_text *t, const struct text_list *list)
{
    static const char *const parts[PARTS] = {"train", "dev", "test"};
    char name[64];
    int r = 0;

    texts_list_name(t, name);
    if (!t->has_number) {
        if (!words_have_split(name, strlen(name), NULL))
            return -EDOM;
        return texts_add_view(t, name, list->picture[0], list->n[0], NULL);
    }
    for (size_t i = 1; i <= PARTS; i++)
        if (list->n[i] && !texts_set(t, list->picture[i], list->n[i]))
            return -EDOM; /* before the first is added */
    for (size_t i = 1; i <= PARTS && r == 0; i++)
        r = texts_add_view(t, parts[i - 1], list->picture[i], list->n[i], NULL);
    return r;
}

static int texts_note(const struct sound_text *t, uint32_t scope)
{
    struct set *set = annotating_first_set(t->a, scope);
    int r = 0;

    if (set && t->missing)
        r = set_add_note(set, "%s: %" PRIu64 " of its rows name no file", t->name, t->missing);
    if (r == 0 && set && t->repeated)
        r = set_add_note(set, "%s: %" PRIu64 " rows are ignored, because their sounds have one",
                         t->name, t->repeated);
    return r;
}

/* Use a text whose lines were read. 0; -EDOM: it says nothing; or -ENOMEM. */
static int texts_use(struct sound_text *t, struct text_rows *rows, const struct text_list *list)
{
    char name[64];
    int r;

    if (t->use == TEXT_JOINED)
        return 0;
    if (t->use == TEXT_LIST)
        return texts_add_lists(t, list);
    texts_list_name(t, name);
    r = texts_type_columns(rows);
    return r < 0 ? r : texts_add_view(t, name, rows->sample, rows->n, &rows->columns);
}

/* The first files are named. */
static int texts_ignore(struct sounds *sounds, const struct sound_text *t, const char *reason)
{
    if (sounds->n_ignored++ < IGNORED_MOST)
        return annotating_ignore(t->a, t->file, t->a->pictures.scope, reason);
    t->a->s->claims->taken[t->file] = CLAIMS_ASIDE;
    return 0;
}

static int texts_read(struct sounds *sounds, struct sound_text *t, const struct blob *blob,
                      struct sound_columns *columns, struct diag *d)
{
    struct text_rows rows = {0};
    struct text_list list = {0};
    struct search *s = t->a->s;
    int r = texts_look(t, blob, d);

    if (r < 0)
        return r;
    if (t->use == TEXT_NONE && t->key < t->cells && t->has_header)
        return texts_ignore(sounds, t, "it has no column path");
    if (t->use == TEXT_NONE)
        return 0;
    if (t->use == TEXT_PAIRS)
        return texts_ignore(sounds, t, "its lines are pairs");
    if (t->use == TEXT_NAMELESS)
        return texts_ignore(sounds, t, "its columns have no names");
    r = texts_read_lines(t, blob, columns, &rows, &list, d);
    if (r == 0)
        r = texts_use(t, &rows, &list);
    for (size_t i = 0; i <= PARTS; i++)
        free(list.picture[i]);
    free(rows.sample);
    value_columns_release(&rows.columns);
    if (r == -EDOM)
        return texts_ignore(sounds, t, "its sounds are of several datasets, or no part of one");
    if (r < 0)
        return r;
    sounds->gained = true;
    s->claims->taken[t->file] = CLAIMS_USED;
    return texts_note(t, t->a->pictures.scope);
}

/* ---- all texts ---- */

static bool texts_may_be(const struct search *s, size_t file)
{
    static const char *const ends[] = {".txt", ".tsv", ".lst", ".csv", ".trn", NULL};
    const char *name = members_name(s->m, file), *const *end = ends;

    while (*end && (strlen(name) < strlen(*end) ||
                    strcasecmp(name + strlen(name) - strlen(*end), *end) != 0))
        end++;
    return *end && !s->claims->taken[file] && *name != '.' && !name_is_notice(name) &&
           !path_is_hidden(members_folder_of(s->m, file));
}

/* The folder that a text may name sounds of. */
static uint32_t texts_scope(const struct search *s, size_t file)
{
    uint32_t folder = s->m->member[file].folder;

    while (s->info[folder].above != NO_FOLDER && !s->info[folder].all[COUNT_PICTURES])
        folder = s->info[folder].above;
    return folder;
}

static int texts_read_file(struct sounds *sounds, struct annotating *a, size_t file,
                           struct sound_columns *columns)
{
    struct sound_text t = {.a = a, .file = file, .name = members_name(a->s->m, file)};
    AUTO_BLOB struct blob *blob = NULL;
    struct diag d = DIAG_INIT;
    int r = a->s->claims->open(a->s->claims, file, &blob, &d);

    a->pictures.scope = texts_scope(a->s, file);
    if (r == 0)
        r = texts_read(sounds, &t, blob, columns, &d);
    for (unsigned i = 0; i < CELLS_MOST; i++)
        free(t.header[i]);
    if (r == -ENOMEM || r == 0)
        return r;
    if (r == -EDOM || (r == -EBADMSG && t.use == TEXT_NONE))
        return 0; /* no text; but one that is damaged further on is refused */
    sounds->gained = true;
    return annotating_refuse(a, a->pictures.scope, diag_text(&d, r));
}

/* Add a joined column to a set. */
static int texts_end_column(struct set *set, const struct sound_column *c)
{
    struct value_column *values;
    size_t n = set->claim->n_samples, missing = 0;
    int r;

    for (size_t i = 0; i < n; i++)
        missing += !c->end[set->base + i];
    if (missing == n)
        return 0;
    r = value_columns_add(&set->claim->view->values, c->name, VALUE_TEXT, DTYPE_U1, true, 0,
                          &values);
    for (size_t i = 0; i < n && r == 0; i++) {
        uint64_t end = c->end[set->base + i], len = c->len[set->base + i];

        if (end)
            r = value_column_append(values, c->bytes.data + end - 1 - len, len);
        r = r < 0 ? r : end ? value_column_end_row(values) : value_column_end_hole(values);
    }
    return r == 0 && missing
               ? set_add_note(set, "%zu of %zu samples have no %s", missing, n, c->name)
               : r;
}

/* Lists of two parts leave a third one. */
static int texts_add_rest(struct annotating *a, size_t number)
{
    struct set *set = &a->s->set[number];
    struct files_claim *claim = set->claim;
    AUTO_FREE uint8_t *listed = calloc(claim->n_samples + 1, 1);
    bool ends_in_ing = false, test = false, train = false;
    uint32_t *sample = calloc(claim->n_samples + 1, sizeof(*sample));
    size_t n = 0;

    for (size_t i = 1; i < claim->n_views && listed; i++) {
        const char *name = path_base(claim->view[i].name);

        if (claim->view[i].values.n)
            break;
        ends_in_ing = ends_in_ing || !strcasecmp(name, "testing");
        test = test || strcasestr(name, "test");
        train = train || strcasestr(name, "train");
        for (size_t k = 0; k < claim->view[i].n; k++)
            listed[claim->view[i].sample[k]] = 1;
    }
    for (size_t i = 0; i < claim->n_samples && listed && sample; i++)
        if (!listed[i])
            sample[n++] = (uint32_t)i;
    if (!listed || !sample || !test || train || !n) {
        free(sample);
        return listed && sample ? 0 : -ENOMEM;
    }
    return annotating_add_view(a, number, set->root, ends_in_ing ? "training" : "train", sample, n);
}

static int texts_end_set(struct annotating *a, size_t number, const struct sound_columns *columns)
{
    struct set *set = &a->s->set[number];
    bool lists = false;
    int r = 0;

    for (size_t i = 0; i < columns->n && r == 0; i++)
        r = texts_end_column(set, &columns->column[i]);
    for (size_t i = 1; i < set->claim->n_views; i++)
        lists = lists || !set->claim->view[i].values.n;
    set->keeps_all = lists;
    set->has_texts = set->claim->n_views > 1 || set->claim->view->values.n;
    if (r == 0 && lists)
        r = texts_add_rest(a, number);
    return r;
}

/* Other texts and notices say nothing, and are no data of their own. */
static void texts_ignore_others(struct search *s)
{
    for (size_t i = 0; i < s->m->n; i++)
        if (!s->claims->taken[i] &&
            (name_is_notice(members_name(s->m, i)) ||
             (texts_may_be(s, i) && !text_ends_with(members_name(s->m, i), "sv"))))
            s->claims->taken[i] = CLAIMS_ASIDE;
}

int sounds_read_texts(struct sounds *t)
{
    struct annotating a = {.s = t->s, .classes.has = annotating_has_class};
    struct sound_columns columns = {0};
    struct set *set;
    unsigned files = 0;
    int r = pictures_init(&a.pictures, t->s);

    for (size_t i = 0; i < t->s->m->n && r == 0; i++) {
        if (!texts_may_be(t->s, i))
            continue;
        if (files++ == TEXTS_MOST)
            break;
        r = texts_read_file(t, &a, i, &columns);
    }
    set = annotating_first_set(&a, 0);
    if (r == 0 && files > TEXTS_MOST && set)
        r = set_add_note(set, "texts after the first %d are not read", TEXTS_MOST);
    for (size_t i = 0; i < t->s->n_sets && r == 0 && t->gained; i++)
        r = texts_end_set(&a, i, &columns);
    if (r == 0 && t->gained)
        texts_ignore_others(t->s);
    for (size_t i = 0; i < columns.n; i++) {
        free(columns.column[i].name);
        text_release(&columns.column[i].bytes);
        free(columns.column[i].end);
        free(columns.column[i].len);
    }
    free(columns.column);
    annotating_release(&a);
    return r;
}
