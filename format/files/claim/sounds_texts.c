/* What texts say of sounds becomes columns, and datasets. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "format/files/claim/sounds.h"
#include "format/files/claim/sounds_lines.h"
#include "format/files/claim/words.h"

#define IGNORED_MOST 8
#define TEXTS_MOST   100000 /* files that are read */
#define PARTS        3      /* of a list with numbers: 1 is train, 2 dev, 3 test */

/* What joined texts say, by a name, in the order in which they come. */
struct sound_columns {
    struct value_columns texts;
    uint32_t **row; /* [texts.n][pictures] of each sound; VALUE_NO_ROW: it has none */
};

/* ---- joined texts ---- */

/* The field of a text with one text a sound: txt if its name says that. */
static const char *texts_field(const struct sound_text *t, char ret[static 64])
{
    static const char *const words[] = {"trans", "transcript", "transcripts",    "transcription",
                                        "text",  "txt",        "transcriptions", NULL};

    if (t->separator == '|')
        return "text";
    snprintf(ret, 64, "%.*s", (int)name_stem_alone(t->name), t->name);
    return words_have(ret, strlen(ret), words) ? "txt" : ret;
}

/* The number of a column, which may be new. */
static int texts_column(const struct annotating *a, struct sound_columns *t, const char *name,
                        unsigned *ret)
{
    struct value_column *c = value_columns_find(&t->texts, name);
    uint32_t *row;

    *ret = (unsigned)(c ? c - t->texts.column : t->texts.n);
    if (c)
        return 0;
    row = malloc((a->pictures.n + 1) * sizeof(*row));
    if (!row || !search_capacity(a->s, &t->row, *ret, sizeof(row)) ||
        value_columns_add(&t->texts, name, VALUE_TEXT, DTYPE_U1, true, 0, &c) < 0) {
        free(row);
        return -ENOMEM;
    }
    for (size_t i = 0; i < a->pictures.n; i++)
        row[i] = VALUE_NO_ROW;
    t->row[*ret] = row;
    return 0;
}

static int texts_join_one(struct sound_text *t, struct sound_columns *columns, const char *name,
                          uint32_t picture, const char *text, size_t len)
{
    struct value_column *c;
    unsigned i;
    int r = texts_column(t->a, columns, name, &i);

    if (r < 0)
        return r;
    c = &columns->texts.column[i];
    if (columns->row[i][picture] != VALUE_NO_ROW) {
        t->repeated++;
        return 0;
    }
    columns->row[i][picture] = (uint32_t)c->rows;
    return value_column_set(c, c->rows, text, len);
}

/* A row without a header: two cells more are a text and the same as it is spoken. */
static int texts_join_row(struct sound_text *t, struct sound_columns *columns,
                          const struct row_bytes *row, const struct cells *cells, uint32_t picture)
{
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
            r = texts_join_one(t, columns, sound_text_names[i - 1], picture, cells->text[i],
                               cells->len[i]);
    return r;
}

/* Add the joined columns to a set. */
static void texts_end_columns(struct set *set, const struct sound_columns *columns)
{
    const size_t n = set->claim->n_samples;

    for (unsigned i = 0; i < columns->texts.n; i++) {
        const struct value_columns one = {.column = &columns->texts.column[i], .n = 1};
        const uint32_t *row = columns->row[i] + set->base;
        AUTO_VALUE_COLUMNS struct value_columns picked = {0};
        size_t missing = 0;

        for (size_t k = 0; k < n; k++)
            missing += row[k] == VALUE_NO_ROW;
        if (missing == n)
            continue;
        if (value_columns_pick(&one, row, n, &picked) < 0)
            set->s->failed = true;
        else
            view_add_columns(set->s, set->claim->view, &picked);
        if (missing)
            text_add(&set->notes, "%zu of %zu samples have no %s\n", missing, n, one.column->name);
    }
}

/* ---- rows that are datasets ---- */

/* A list with numbers has a dataset for each; others have number 0. */
struct text_rows {
    uint32_t *picture[PARTS + 1]; /* [n] in the order of the rows */
    size_t n[PARTS + 1];
    struct value_columns columns; /* of the cells but the key */
};

static void text_rows_release(struct text_rows *rows)
{
    for (size_t i = 0; i <= PARTS; i++)
        free(rows->picture[i]);
    value_columns_release(&rows->columns);
}

/* Is a cell a column of the dataset? */
static bool texts_is_column(const struct sound_text *t, unsigned cell)
{
    return t->use == TEXT_ROWS && cell != t->key && t->header[cell] && *t->header[cell];
}

static int texts_begin_rows(const struct sound_text *t, struct text_rows *rows)
{
    int r = 0;

    for (unsigned i = 0; i < t->cells && r == 0; i++) {
        struct value_column *c;

        if (texts_is_column(t, i))
            r = value_columns_add(&rows->columns, t->header[i], VALUE_TEXT, DTYPE_U1, true, 0, &c);
    }
    return r;
}

static int texts_add_row(const struct sound_text *t, struct text_rows *rows,
                         const struct cells *cells, uint32_t picture)
{
    size_t part = 0;
    unsigned column = 0;
    int r = 0;

    if (t->has_number)
        part = cells->len[0] == 1 ? (size_t)(cells->text[0][0] - '0') : PARTS + 1;
    if (part > PARTS || part < t->has_number)
        return -EDOM;
    if (!search_capacity(t->a->s, &rows->picture[part], rows->n[part], sizeof(picture)))
        return -ENOMEM;
    rows->picture[part][rows->n[part]++] = picture;
    for (unsigned i = 0; i < t->cells && r == 0; i++) {
        if (!texts_is_column(t, i))
            continue;
        if (i < cells->n && cells->len[i])
            r = value_column_set(&rows->columns.column[column], rows->n[0] - 1, cells->text[i],
                                 cells->len[i]);
        column++;
    }
    return r;
}

static bool texts_is_integer(const char *text, size_t len)
{
    struct row_cell cell = {.type = CELL_TEXT, .text = text, .len = len};

    row_cell_judge_number(&cell);
    return cell.type == CELL_INTEGER;
}

/* Columns without a value are none; texts that are whole numbers are such. */
static int texts_end_rows(struct text_rows *rows)
{
    int r = value_columns_end(&rows->columns, rows->n[0]);

    for (unsigned i = rows->columns.n; i-- > 0;)
        if (!rows->columns.column[i].len)
            value_columns_remove(&rows->columns, i);
    return r < 0 ? r : value_columns_find_integers(&rows->columns, texts_is_integer);
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

/* Use the rows of a text, each dataset of which is of one set. 0; -EDOM: it says nothing; or
 * -ENOMEM. */
static int texts_add_views(struct sound_text *t, struct text_rows *rows)
{
    static const char *const parts[PARTS] = {"train", "dev", "test"};
    struct annotating *a = t->a;
    size_t set[PARTS + 1];
    char name[64];
    int r = texts_end_rows(rows);

    texts_list_name(t, name);
    if (t->use == TEXT_LIST && !t->has_number && !words_name_split(name))
        return -EDOM;
    for (size_t i = 0; i <= PARTS; i++) {
        set[i] = annotating_set_of(a, rows->picture[i], rows->n[i]);
        if (rows->n[i] && set[i] == a->s->n_sets)
            return -EDOM; /* before the first is added */
    }
    for (size_t i = 0; i <= PARTS && r == 0; i++) {
        struct files_view *view;

        if (!rows->n[i])
            continue;
        for (size_t k = 0; k < rows->n[i]; k++)
            rows->picture[i][k] -= (uint32_t)a->s->set[set[i]].base;
        view = annotating_add_view(a, set[i], a->s->m->member[t->file].folder,
                                   i ? parts[i - 1] : name, TAKE_PTR(rows->picture[i]), rows->n[i]);
        if (view)
            view_add_columns(a->s, view, &rows->columns);
    }
    return a->s->failed ? -ENOMEM : r;
}

/* ---- all lines ---- */

static int texts_read_lines(struct sound_text *t, const struct blob *blob,
                            struct sound_columns *columns, struct text_rows *rows, struct diag *d)
{
    AUTO(row_walk_release) struct row_walk walk = texts_walk(t, blob);
    struct row_bytes row;
    bool skip = t->has_header;
    int r = texts_begin_rows(t, rows), more = 0;

    while (r == 0 && (more = row_walk_next(&walk, &row, d)) == 1) {
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
        if (picture >= PICTURE_SEVERAL)
            t->missing++;
        else
            r = t->use == TEXT_JOINED ? texts_join_row(t, columns, &row, &cells, picture)
                                      : texts_add_row(t, rows, &cells, picture);
    }
    return r < 0 ? r : more < 0 ? more : 0;
}

/* The first files are named. */
static void texts_ignore(struct sounds *sounds, const struct sound_text *t, const char *reason)
{
    if (sounds->n_ignored++ < IGNORED_MOST)
        annotating_ignore(t->a, t->file, t->a->pictures.scope, reason);
    else
        t->a->s->claims->taken[t->file] = CLAIMS_ASIDE;
}

static int texts_read(struct sounds *sounds, struct sound_text *t, const struct blob *blob,
                      struct sound_columns *columns, struct diag *d)
{
    AUTO(text_rows_release) struct text_rows rows = {.n = {0}};
    struct set *set;
    int r = texts_look(t, blob, d);

    if (r == 0 && t->use != TEXT_NONE)
        r = texts_read_lines(t, blob, columns, &rows, d);
    if (r == 0 && t->use != TEXT_NONE && t->use != TEXT_JOINED)
        r = texts_add_views(t, &rows);
    if (r == -EDOM && t->use != TEXT_NONE)
        t->wrong = "its sounds are of several datasets, or no part of one";
    if (t->wrong)
        texts_ignore(sounds, t, t->wrong);
    if (r < 0 || t->use == TEXT_NONE || t->wrong)
        return t->wrong ? 0 : r;
    sounds->gained = true;
    t->a->s->claims->taken[t->file] = CLAIMS_USED;
    set = annotating_first_set(t->a, t->a->pictures.scope);
    if (set && t->missing)
        text_add(&set->notes, "%s: %" PRIu64 " of its rows name no file\n", t->name, t->missing);
    if (set && t->repeated)
        text_add(&set->notes, "%s: %" PRIu64 " rows are ignored, because their sounds have one\n",
                 t->name, t->repeated);
    return 0;
}

/* ---- all texts ---- */

static bool texts_may_be(const struct search *s, size_t file)
{
    static const char *const ends[] = {".txt", ".tsv", ".lst", ".csv", ".trn", NULL};
    const char *name = members_name(s->m, file);

    return name_ends_in(name, ends) && !s->claims->taken[file] && *name != '.' &&
           !name_is(NAME_NOTICE, name) && !path_is_hidden(members_folder_of(s->m, file));
}

/* The folder that a text may name sounds of. */
static uint32_t texts_scope(const struct search *s, size_t file)
{
    uint32_t folder = s->m->member[file].folder;

    while (s->info[folder].above != NO_FOLDER && !s->info[folder].all[COUNT_PICTURES])
        folder = s->info[folder].above;
    return folder;
}

static void texts_read_file(struct sounds *sounds, struct annotating *a, size_t file,
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
    a->s->failed = a->s->failed || r == -ENOMEM;
    if (r == 0 || r == -EDOM || (r == -EBADMSG && t.use == TEXT_NONE))
        return; /* no text; but one that is damaged further on is refused */
    sounds->gained = true;
    annotating_refuse(a, a->pictures.scope, diag_text(&d, r));
}

/* Lists of two parts leave a third one. */
static void texts_add_rest(struct annotating *a, size_t number)
{
    struct set *set = &a->s->set[number];
    const struct files_claim *claim = set->claim;
    AUTO_FREE uint8_t *listed = calloc(claim->n_samples + 1, 1);
    AUTO_FREE uint32_t *sample = calloc(claim->n_samples + 1, sizeof(*sample));
    bool ends_in_ing = false, test = false, train = false;
    size_t n = 0;

    a->s->failed = a->s->failed || !listed || !sample;
    if (a->s->failed)
        return;
    for (size_t i = 1; i < claim->n_views; i++) {
        const char *name = path_base(claim->view[i].name);

        if (claim->view[i].values.n)
            break;
        ends_in_ing = ends_in_ing || !strcasecmp(name, "testing");
        test = test || strcasestr(name, "test");
        train = train || strcasestr(name, "train");
        for (size_t k = 0; k < claim->view[i].n; k++)
            listed[claim->view[i].sample[k]] = 1;
    }
    for (size_t i = 0; i < claim->n_samples; i++)
        if (!listed[i])
            sample[n++] = (uint32_t)i;
    if (test && !train && n)
        annotating_add_view(a, number, set->root, ends_in_ing ? "training" : "train",
                            TAKE_PTR(sample), n);
}

static void texts_end_set(struct annotating *a, size_t number, const struct sound_columns *columns)
{
    struct set *set = &a->s->set[number];
    bool lists = false;

    texts_end_columns(set, columns);
    for (size_t i = 1; i < set->claim->n_views; i++)
        lists = lists || !set->claim->view[i].values.n;
    set->keeps_all = lists;
    set->has_texts = set->claim->n_views > 1 || set->claim->view->values.n;
    if (lists)
        texts_add_rest(a, number);
}

/* Other texts and notices say nothing, and are no data of their own. */
static void texts_ignore_others(struct search *s)
{
    for (size_t i = 0; i < s->m->n; i++)
        if (!s->claims->taken[i] &&
            (name_is(NAME_NOTICE, members_name(s->m, i)) ||
             (texts_may_be(s, i) && !text_ends_with(members_name(s->m, i), "sv"))))
            s->claims->taken[i] = CLAIMS_ASIDE;
}

void sounds_read_texts(struct sounds *t)
{
    struct annotating a = {.s = t->s};
    struct sound_columns columns = {.row = NULL};
    unsigned files = 0;
    struct set *set;

    pictures_init(&a.pictures, t->s, NULL);
    for (size_t i = 0; i < t->s->m->n && !t->s->failed && files <= TEXTS_MOST; i++)
        if (texts_may_be(t->s, i) && files++ < TEXTS_MOST)
            texts_read_file(t, &a, i, &columns);
    set = annotating_first_set(&a, 0);
    if (files > TEXTS_MOST && set)
        text_add(&set->notes, "texts after the first %d are not read\n", TEXTS_MOST);
    for (size_t i = 0; i < t->s->n_sets && !t->s->failed && t->gained; i++)
        texts_end_set(&a, i, &columns);
    if (t->gained && !t->s->failed)
        texts_ignore_others(t->s);
    for (unsigned i = 0; i < columns.texts.n; i++)
        free(columns.row[i]);
    free(columns.row);
    value_columns_release(&columns.texts);
    annotating_release(&a);
}
