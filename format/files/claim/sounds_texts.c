/* What texts say of sounds becomes columns, and datasets. Their lines say what they are: which cell
 * of most of the first ones is the name, stem or path of a sound, and what else there is.
 *
 *   transcript  the first word or cell, and a text.
 *   table       one cell of several, between tabs or '|'. A quote is a character. With a header
 *               that calls them a path, its rows are a dataset.
 *   list        a path alone, or a number and a path: a dataset for each list, or number.
 *   pairs       two sounds in a line: it is said that they are ignored. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "format/files/claim/annotations.h"
#include "format/files/claim/sounds.h"
#include "format/files/claim/words.h"
#include "format/rows/row.h"

#define HEAD_LINES   64
#define CELLS_MOST   64
#define IGNORED_MOST 8
#define TEXTS_MOST   100000 /* files that are read */
#define PARTS        3      /* of a list with numbers: 1 is train, 2 dev, 3 test */

struct cells {
    const char *text[CELLS_MOST];
    size_t len[CELLS_MOST];
    unsigned n;
};

/* What joined texts say, by a name, in the order in which they come. */
struct sound_columns {
    struct value_columns texts;
    uint32_t **row; /* [texts.n][pictures] of each sound; VALUE_NO_ROW: it has none */
};

/* What a text is. */
enum text_use {
    TEXT_NONE,
    TEXT_JOINED, /* a row for each sound, whose cells are fields */
    TEXT_ROWS,   /* its rows are a dataset */
    TEXT_LIST,
};

struct sound_text {
    struct annotating *a;
    size_t file;
    const char *name;
    char separator;
    unsigned key, cells; /* the cell that names sounds; of a line */
    bool has_header, has_number;
    enum text_use use;
    const char *wrong;        /* NULL; or why it is ignored, for people: then it is TEXT_NONE */
    char *header[CELLS_MOST]; /* [cells] or NULL: names of fields */
    uint64_t missing, repeated;
    struct sound_columns *joined;
    /* Rows and lists have these; a list with numbers has a dataset for each, others number 0: */
    uint32_t *picture[PARTS + 1]; /* [n] in the order of the rows */
    size_t n[PARTS + 1];
    struct value_columns columns; /* of all cells */
};

static void sound_text_release(struct sound_text *t)
{
    for (unsigned i = 0; i < CELLS_MOST; i++)
        free(t->header[i]);
    for (size_t i = 0; i <= PARTS; i++)
        free(t->picture[i]);
    value_columns_release(&t->columns);
}

/* Split a line into cells. A separator ' ' is any run of spaces and tabs. */
static void texts_split(const char *line, size_t len, char separator, struct cells *ret)
{
    ret->n = 0;
    while (len && line[len - 1] == '\r')
        len--;
    for (const char *end = line + len;;) {
        const char *next;

        while (separator == ' ' && line < end && (*line == ' ' || *line == '\t'))
            line++;
        next = memchr(line, separator, (size_t)(end - line));
        next = next ? next : end;
        if (ret->n == CELLS_MOST || (separator == ' ' && line == end))
            return;
        ret->text[ret->n] = line;
        ret->len[ret->n++] = (size_t)(next - line);
        if (next == end)
            return;
        line = next + 1;
    }
}

/* The sound that a cell names; PICTURE_NONE, PICTURE_SEVERAL. */
static uint32_t texts_find(const struct sound_text *t, const struct cells *cells, unsigned i)
{
    return i < cells->n ? picture_find(&t->a->pictures.names, cells->text[i], cells->len[i])
                        : PICTURE_NONE;
}

static struct row_walk texts_walk(const struct sound_text *t, const struct blob *blob)
{
    return (struct row_walk){
        .blob = blob, .format = TABLE_LINES, .end = blob->size, .name = t->name};
}

/* ---- the first lines ---- */

/* Their bytes, each line ended by '\n'. 0; -EDOM: it is no text; or -errno. */
static int texts_read_head(const struct sound_text *t, const struct blob *blob, struct text *ret,
                           struct diag *d)
{
    AUTO(row_walk_release) struct row_walk walk = texts_walk(t, blob);
    struct row_bytes row;
    int r = 0;

    text_add(ret, "%s", "");
    for (unsigned n = 0; n < HEAD_LINES && (r = row_walk_next(&walk, &row, d)) == 1; n++) {
        if (memchr(row.bytes, '\0', row.len))
            return -EDOM;
        text_add_bytes(ret, row.bytes, row.len);
        text_add_bytes(ret, "\n", 1);
    }
    return ret->failed ? -ENOMEM : r < 0 ? r : 0;
}

/* Split the line at *at, and move to the next one. false: there is none. */
static bool texts_next(const char **at, char separator, struct cells *ret)
{
    const size_t len = strcspn(*at, "\n");

    if (!**at)
        return false;
    texts_split(*at, len, separator, ret);
    *at += len + 1;
    return true;
}

/* How many lines have a sound in each cell, and the most cells of a line. Returns how many lines
 * there are. */
static unsigned texts_count(struct sound_text *t, const char *head, unsigned ret[static CELLS_MOST])
{
    struct cells cells;
    unsigned n = 0;

    memset(ret, 0, CELLS_MOST * sizeof(*ret));
    for (t->cells = 0; texts_next(&head, t->separator, &cells); n++) {
        t->cells = cells.n > t->cells ? cells.n : t->cells;
        for (unsigned k = 0; k < cells.n; k++)
            ret[k] += texts_find(t, &cells, k) < PICTURE_SEVERAL;
    }
    return n;
}

/* Keep the first line if it is a header: its cell names no sound, and looks like a word. */
static int texts_keep_header(struct sound_text *t, const struct cells *cells)
{
    const unsigned key = t->key;

    if (t->separator == ' ' || key >= cells->n || !cells->len[key] ||
        texts_find(t, cells, key) != PICTURE_NONE)
        return 0;
    for (size_t i = 0; i < cells->len[key]; i++)
        if (!isalpha((unsigned char)cells->text[key][i]) && cells->text[key][i] != '_')
            return 0;
    t->has_header = true;
    for (unsigned i = 0; i < cells->n; i++)
        if (!(t->header[i] = strndup(cells->text[i], cells->len[i])))
            return -ENOMEM;
    return 0;
}

/* Without a header: one text, or that and what is spoken. The rows of a file that is called by a
 * part of a dataset are one. */
static int texts_judge_columns(struct sound_text *t, const char *head)
{
    static const char *const names[] = {"text", "normalized"};
    struct cells cells;

    t->use = TEXT_JOINED;
    if (t->separator == ' ')
        return 0;
    while (t->cells > 2 && texts_next(&head, t->separator, &cells)) {
        struct row_cell cell = {.type = CELL_TEXT};

        cell.text = cells.n > 1 ? cells.text[1] : "";
        cell.len = cells.n > 1 ? cells.len[1] : 0;
        row_cell_judge_number(&cell);
        if (t->cells > 3 || cell.type == CELL_INTEGER)
            t->wrong = "its columns have no names";
    }
    for (unsigned i = 1; i < t->cells && !t->wrong; i++) {
        t->header[i] = strdup(names[i - 1]);
        if (!t->header[i])
            return -ENOMEM;
    }
    t->use = t->wrong                                                    ? TEXT_NONE
             : words_have_split(t->name, name_stem_alone(t->name), NULL) ? TEXT_ROWS
                                                                         : TEXT_JOINED;
    return 0;
}

/* Find out by its first lines what a text is. 0; -EDOM: it is no text; or -errno. */
static int texts_judge(struct sound_text *t, const struct blob *blob, struct diag *d)
{
    static const char *const paths[] = {"path", "file",  "file_name",  "filename",
                                        "wav",  "audio", "audio_path", NULL};
    unsigned matched[CELLS_MOST], most;
    AUTO_TEXT struct text lines = {0};
    const char *head, *line;
    struct cells first;
    int r = texts_read_head(t, blob, &lines, d);

    if (r < 0)
        return r;
    head = line = lines.data;
    t->separator = strchr(head, '\t') ? '\t' : strchr(head, '|') ? '|' : ' ';
    most = texts_count(t, head, matched);
    while (t->key < t->cells && (!matched[t->key] || 2 * matched[t->key] < most - (most > 1)))
        t->key++;
    if (t->key >= t->cells)
        return 0;
    texts_next(&line, t->separator, &first);
    if (most > 1 && texts_keep_header(t, &first) < 0)
        return -ENOMEM;
    if (t->key + 1 < t->cells && 2 * matched[t->key + 1] >= most && t->separator == ' ') {
        t->wrong = "its lines are pairs";
    } else if (t->separator == ' ' && t->cells == t->key + 1 && t->key < 2) {
        t->use = TEXT_LIST;
        t->has_number = t->key == 1;
    } else if (t->has_header) {
        if (word_is_one_of(t->header[t->key], strlen(t->header[t->key]), paths))
            t->use = TEXT_ROWS;
        else
            t->wrong = "it has no column path";
    } else if (t->key == 0 && t->cells > 1) {
        r = texts_judge_columns(t, head);
    }
    return r;
}

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

/* The column of that name may be new. */
static int texts_join_one(struct sound_text *t, const char *name, uint32_t picture,
                          const char *text, size_t len)
{
    struct sound_columns *joined = t->joined;
    struct value_column *c = value_columns_find(&joined->texts, name);
    const size_t n = t->a->pictures.n;
    uint32_t *row;

    if (!c) {
        AUTO_FREE uint32_t *made = malloc((n + 1) * sizeof(*made));

        if (!made || !search_capacity(t->a->s, &joined->row, joined->texts.n, sizeof(made)) ||
            value_columns_add(&joined->texts, name, VALUE_TEXT, DTYPE_U1, true, 0, &c) < 0)
            return -ENOMEM;
        for (size_t i = 0; i < n; i++)
            made[i] = VALUE_NO_ROW;
        joined->row[joined->texts.n - 1] = TAKE_PTR(made);
    }
    row = &joined->row[c - joined->texts.column][picture];
    if (*row != VALUE_NO_ROW) {
        t->repeated++;
        return 0;
    }
    *row = (uint32_t)c->rows;
    return value_column_set(c, c->rows, text, len);
}

/* All after the key is one text; or each cell is one, if there are more than two. */
static int texts_join_row(struct sound_text *t, const struct row_bytes *row,
                          const struct cells *cells, uint32_t picture)
{
    const char *text = cells->text[0] + cells->len[0], *end = row->bytes + row->len;
    char field[64];
    int r = 0;

    if (t->cells > 2 && t->separator != ' ') {
        for (unsigned i = 1; i < cells->n && i < t->cells && r == 0; i++)
            if (cells->len[i])
                r = texts_join_one(t, t->header[i], picture, cells->text[i], cells->len[i]);
        return r;
    }
    while (text < end && (*text == ' ' || *text == '\t' || *text == t->separator))
        text++;
    while (end > text && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    return end == text
               ? 0
               : texts_join_one(t, texts_field(t, field), picture, text, (size_t)(end - text));
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

static int texts_add_row(struct sound_text *t, const struct cells *cells, uint32_t picture)
{
    size_t part = 0;
    int r = 0;

    if (t->has_number)
        part = cells->len[0] == 1 ? (size_t)(cells->text[0][0] - '0') : PARTS + 1;
    if (part > PARTS || part < t->has_number)
        return -EDOM;
    if (!search_capacity(t->a->s, &t->picture[part], t->n[part], sizeof(picture)))
        return -ENOMEM;
    t->picture[part][t->n[part]++] = picture;
    for (unsigned i = 0; i < t->columns.n && i < cells->n && r == 0; i++)
        if (i != t->key && *t->columns.column[i].name && cells->len[i])
            r = value_column_set(&t->columns.column[i], t->n[0] - 1, cells->text[i], cells->len[i]);
    return r;
}

static bool texts_is_integer(const char *text, size_t len)
{
    struct row_cell cell = {.type = CELL_TEXT, .text = text, .len = len};

    row_cell_judge_number(&cell);
    return cell.type == CELL_INTEGER;
}

/* Columns without a value are none; texts that are whole numbers are such. */
static int texts_end_rows(struct sound_text *t)
{
    int r = value_columns_end(&t->columns, t->n[0]);

    for (unsigned i = t->columns.n; i-- > 0;)
        if (!t->columns.column[i].len)
            value_columns_remove(&t->columns, i);
    return r < 0 ? r : value_columns_find_integers(&t->columns, texts_is_integer);
}

/* Use the rows of a text, each dataset of which is of one set. 0; -EDOM: it says nothing; or
 * -ENOMEM. */
static int texts_add_views(struct sound_text *t)
{
    static const char *const parts[PARTS] = {"train", "dev", "test"};
    const size_t stem = name_stem_alone(t->name);
    const bool is_list = stem > 5 && !strncasecmp(t->name + stem - 5, "_list", 5);
    struct annotating *a = t->a;
    size_t set[PARTS + 1];
    char name[64]; /* "testing" of testing_list.txt */
    int r = texts_end_rows(t);

    snprintf(name, sizeof(name), "%.*s", (int)(stem - (is_list ? 5 : 0)), t->name);
    if (t->use == TEXT_LIST && !t->has_number && !words_name_split(name))
        return -EDOM;
    for (size_t i = 0; i <= PARTS; i++) {
        set[i] = annotating_set_of(a, t->picture[i], t->n[i]);
        if (t->n[i] && set[i] == a->s->n_sets)
            return -EDOM; /* before the first is added */
    }
    for (size_t i = 0; i <= PARTS && r == 0; i++) {
        struct files_view *view;

        if (!t->n[i])
            continue;
        for (size_t k = 0; k < t->n[i]; k++)
            t->picture[i][k] -= (uint32_t)a->s->set[set[i]].base;
        view = annotating_add_view(a, set[i], a->s->m->member[t->file].folder,
                                   i ? parts[i - 1] : name, TAKE_PTR(t->picture[i]), t->n[i]);
        if (view)
            view_add_columns(a->s, view, &t->columns);
    }
    return a->s->failed ? -ENOMEM : r;
}

/* ---- all lines ---- */

static int texts_read_lines(struct sound_text *t, const struct blob *blob, struct diag *d)
{
    AUTO(row_walk_release) struct row_walk walk = texts_walk(t, blob);
    struct value_column *c;
    struct row_bytes row;
    bool skip = t->has_header;
    int r = 0, more = 0;

    for (unsigned i = 0; i < t->cells && t->use == TEXT_ROWS && r == 0; i++)
        r = value_columns_add(&t->columns, t->header[i] ? t->header[i] : "", VALUE_TEXT, DTYPE_U1,
                              true, 0, &c);
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
            r = t->use == TEXT_JOINED ? texts_join_row(t, &row, &cells, picture)
                                      : texts_add_row(t, &cells, picture);
    }
    return r < 0 ? r : more < 0 ? more : 0;
}

static int texts_read(struct sound_text *t, struct diag *d)
{
    struct claims *claims = t->a->s->claims;
    AUTO_BLOB struct blob *blob = NULL;
    int r = claims->open(claims, t->file, &blob, d);

    if (r == 0)
        r = texts_judge(t, blob, d);
    if (r == 0 && t->use != TEXT_NONE)
        r = texts_read_lines(t, blob, d);
    if (r == 0 && t->use != TEXT_NONE && t->use != TEXT_JOINED)
        r = texts_add_views(t);
    if (r == -EDOM && t->use != TEXT_NONE)
        t->wrong = "its sounds are of several datasets, or no part of one";
    return r;
}

/* ---- all texts ---- */

static bool texts_may_be(const struct search *s, size_t file)
{
    static const char *const ends[] = {".txt", ".tsv", ".lst", ".csv", ".trn", NULL};
    const char *name = members_name(s->m, file);

    return name_ends_in(name, ends) && !s->claims->taken[file] && *name != '.' &&
           !name_is(NAME_NOTICE, name) && !path_is_hidden(members_folder_of(s->m, file));
}

static void texts_read_file(struct sounds *sounds, struct annotating *a, size_t file,
                            struct sound_columns *joined)
{
    AUTO(sound_text_release)
    struct sound_text t = {
        .a = a, .file = file, .name = members_name(a->s->m, file), .joined = joined};
    uint32_t *scope = &a->pictures.scope; /* the folder that a text may name sounds of */
    struct diag d = DIAG_INIT;
    struct set *set;
    int r;

    *scope = a->s->m->member[file].folder;
    while (a->s->info[*scope].above != NO_FOLDER && !a->s->info[*scope].all[COUNT_PICTURES])
        *scope = a->s->info[*scope].above;
    r = texts_read(&t, &d);
    a->s->failed = a->s->failed || r == -ENOMEM;
    if (t.wrong && sounds->n_ignored++ < IGNORED_MOST) { /* the first files are named */
        annotating_ignore(a, file, *scope, t.wrong);
    } else if (t.wrong) {
        a->s->claims->taken[file] = CLAIMS_ASIDE;
    } else if (r == 0 && t.use != TEXT_NONE) {
        sounds->gained = true;
        a->s->claims->taken[file] = CLAIMS_USED;
        set = annotating_first_set(a, *scope);
        if (set && t.missing)
            text_add(&set->notes, "%s: %" PRIu64 " of its rows name no file\n", t.name, t.missing);
        if (set && t.repeated)
            text_add(&set->notes,
                     "%s: %" PRIu64 " rows are ignored, because their sounds have one\n", t.name,
                     t.repeated);
    } else if (r < 0 && r != -EDOM && (r != -EBADMSG || t.use != TEXT_NONE)) {
        sounds->gained = true; /* one that is damaged further on is refused */
        annotating_refuse(a, *scope, diag_text(&d, r));
    }
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
