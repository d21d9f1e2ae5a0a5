/* Texts of sounds, by their lines: which cell of most of the first lines is the name, stem or path
 * of a sound, and what else there is.
 *
 *   transcript  the first word or cell, and a text.
 *   table       one cell of several, between tabs or '|'. A quote is a character. With a header
 * that calls them a path, its rows are a dataset. list        a path alone, or a number and a path:
 * a dataset for each list, or number. pairs       two sounds in a line: it is said that they are
 * ignored. */
#include "format/files/claim/sounds_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/files/claim/words.h"

#define HEAD_LINES 64

void texts_split(const char *line, size_t len, char separator, struct cells *ret)
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

uint32_t texts_find(const struct sound_text *t, const struct cells *cells, unsigned i)
{
    return i < cells->n ? picture_find(&t->a->pictures.names, cells->text[i], cells->len[i])
                        : PICTURE_NONE;
}

struct row_walk texts_walk(const struct sound_text *t, const struct blob *blob)
{
    return (struct row_walk){
        .blob = blob, .format = TABLE_LINES, .end = blob->size, .name = t->name};
}

/* ---- the first lines ---- */

struct text_head {
    char *line[HEAD_LINES]; /* [n] */
    size_t n;
};

static void text_head_release(struct text_head *head)
{
    for (size_t i = 0; i < head->n; i++)
        free(head->line[i]);
}

static int texts_read_head(const struct sound_text *t, const struct blob *blob,
                           struct text_head *ret, struct diag *d)
{
    AUTO(row_walk_release) struct row_walk walk = texts_walk(t, blob);
    struct row_bytes row;
    int r = 0;

    while (ret->n < HEAD_LINES && (r = row_walk_next(&walk, &row, d)) == 1) {
        if (memchr(row.bytes, '\0', row.len))
            return -EDOM;
        ret->line[ret->n] = strndup(row.bytes, row.len);
        if (!ret->line[ret->n++])
            return -ENOMEM;
    }
    return r < 0 ? r : 0;
}

static bool texts_have(const struct text_head *head, char c)
{
    for (size_t i = 0; i < head->n; i++)
        if (strchr(head->line[i], c))
            return true;
    return false;
}

/* How many lines have a sound in each cell, and the most cells of a line. */
static void texts_count(struct sound_text *t, const struct text_head *head,
                        unsigned ret[static CELLS_MOST])
{
    memset(ret, 0, CELLS_MOST * sizeof(*ret));
    t->cells = 0;
    for (size_t i = 0; i < head->n; i++) {
        struct cells cells;

        texts_split(head->line[i], strlen(head->line[i]), t->separator, &cells);
        t->cells = cells.n > t->cells ? cells.n : t->cells;
        for (unsigned k = 0; k < cells.n; k++)
            ret[k] += texts_find(t, &cells, k) < PICTURE_SEVERAL;
    }
}

/* Is the first line a header: does its cell name no sound, and look like a word? */
static bool texts_is_header(const struct sound_text *t, const char *line)
{
    struct cells cells;

    texts_split(line, strlen(line), t->separator, &cells);
    if (t->separator == ' ' || t->key >= cells.n || !cells.len[t->key] ||
        texts_find(t, &cells, t->key) != PICTURE_NONE)
        return false;
    for (size_t i = 0; i < cells.len[t->key]; i++)
        if (!isalpha((unsigned char)cells.text[t->key][i]) && cells.text[t->key][i] != '_')
            return false;
    return true;
}

static int texts_keep_header(struct sound_text *t, const char *line)
{
    struct cells cells;

    texts_split(line, strlen(line), t->separator, &cells);
    for (unsigned i = 0; i < cells.n; i++) {
        t->header[i] = strndup(cells.text[i], cells.len[i]);
        if (!t->header[i])
            return -ENOMEM;
    }
    return 0;
}

static bool texts_calls_path(const char *name)
{
    static const char *const words[] = {"path", "file",  "file_name",  "filename",
                                        "wav",  "audio", "audio_path", NULL};
    const char *const *word = words;

    while (name && *word && strcasecmp(name, *word) != 0)
        word++;
    return name && *word;
}

const char *const sound_text_names[] = {"text", "normalized"};

/* Without a header: one text, or that and what is spoken. The rows of a file that is called by a
 * part of a dataset are one. */
static int texts_judge_columns(struct sound_text *t, const struct text_head *head)
{
    t->use = TEXT_JOINED;
    if (t->separator == ' ')
        return 0;
    for (size_t i = 0; i < head->n && t->cells > 2; i++) {
        struct cells cells;
        struct row_cell cell = {.type = CELL_TEXT};

        texts_split(head->line[i], strlen(head->line[i]), t->separator, &cells);
        cell.text = cells.n > 1 ? cells.text[1] : "";
        cell.len = cells.n > 1 ? cells.len[1] : 0;
        row_cell_judge_number(&cell);
        if (t->cells > 3 || cell.type == CELL_INTEGER)
            t->wrong = "its columns have no names";
    }
    t->use = t->wrong ? TEXT_NONE : TEXT_JOINED;
    if (t->wrong || !words_have_split(t->name, name_stem_alone(t->name), NULL))
        return 0;
    t->use = TEXT_ROWS;
    for (unsigned i = 1; i < t->cells; i++) {
        t->header[i] = strdup(sound_text_names[i > 1]);
        if (!t->header[i])
            return -ENOMEM;
    }
    return 0;
}

static int texts_judge(struct sound_text *t, const struct text_head *head)
{
    unsigned matched[CELLS_MOST];
    const unsigned most = (unsigned)head->n;
    int r = 0;

    t->separator = texts_have(head, '\t') ? '\t' : texts_have(head, '|') ? '|' : ' ';
    texts_count(t, head, matched);
    while (t->key < t->cells && (!matched[t->key] || 2 * matched[t->key] < most - (most > 1)))
        t->key++;
    if (t->key >= t->cells)
        return 0;
    t->has_header = most > 1 && texts_is_header(t, head->line[0]);
    if (t->has_header)
        r = texts_keep_header(t, head->line[0]);
    if (t->key + 1 < t->cells && 2 * matched[t->key + 1] >= most && t->separator == ' ') {
        t->wrong = "its lines are pairs";
    } else if (t->separator == ' ' && t->cells == t->key + 1 && t->key < 2) {
        t->use = TEXT_LIST;
        t->has_number = t->key == 1;
    } else if (t->has_header) {
        t->use = texts_calls_path(t->header[t->key]) ? TEXT_ROWS : TEXT_NONE;
        t->wrong = t->use == TEXT_NONE ? "it has no column path" : NULL;
    } else if (t->key == 0 && t->cells > 1) {
        r = texts_judge_columns(t, head);
    }
    return r;
}

int texts_look(struct sound_text *t, const struct blob *blob, struct diag *d)
{
    AUTO(text_head_release) struct text_head head = {.n = 0};
    int r = texts_read_head(t, blob, &head, d);

    return r < 0 ? r : texts_judge(t, &head);
}
