#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "cache/source/shared_table.h"

void shared_table_release(struct shared_table *table)
{
    free(table->text);
    free(table->file);
    free(table->index);
    *table = (struct shared_table){0};
}

static int compare_name(const void *name, const void *line)
{
    return strcmp(name, ((const struct shared_line *)line)->name);
}

const struct shared_line *shared_line_find(const struct shared_line *line, size_t n,
                                           const char *name)
{
    return n ? bsearch(name, line, n, sizeof(*line), compare_name) : NULL;
}

/* The word at *at, which is NUL-terminated then, and followed by something; NULL: there is none. */
static char *next_word(char **at)
{
    char *word = strsep(at, " ");

    return word && *word && *at ? word : NULL;
}

/* A version is printable, and "-" if it is not known. NULL: it is none. */
static const char *take_version(const char *word)
{
    if (!word || !strcmp(word, "-"))
        return word ? "" : NULL;
    for (const char *c = word; *c; c++)
        if (*c <= ' ' || *c > '~')
            return NULL;
    return word;
}

enum line_kind { LINE_FILE, LINE_INDEX, LINE_LISTING, LINE_JOINED, LINE_NONE };

static enum line_kind shared_table_kind_of(const char *word)
{
    return !strcmp(word, "file")      ? LINE_FILE
           : !strcmp(word, "index")   ? LINE_INDEX
           : !strcmp(word, "listing") ? LINE_LISTING
           : !strcmp(word, "joined")  ? LINE_JOINED
                                      : LINE_NONE;
}

/* Read "<kind> <size> <sum> <name>"; of a file there is its version before the name, if the table
 * has any. */
static enum line_kind read_line(char *at, bool versions, struct shared_line *ret)
{
    const char *word = next_word(&at), *size = word ? next_word(&at) : NULL,
               *sum = size ? next_word(&at) : NULL;
    enum line_kind type = word ? shared_table_kind_of(word) : LINE_NONE;

    ret->version = "";
    ret->at = 0;
    if (!sum || !digest_is_text(sum) ||
        number_parse(size, strlen(size), UINT64_MAX, &ret->size) != strlen(size))
        return LINE_NONE;
    memcpy(ret->sum, sum, sizeof(ret->sum));
    if (type == LINE_FILE && versions)
        ret->version = take_version(next_word(&at));
    ret->name = at;
    if (!at || !*at || !ret->version)
        return LINE_NONE;
    if (type != LINE_FILE && !(digest_is_text(at) && ret->size <= SHARED_INDEX_MOST))
        return LINE_NONE;
    return type;
}

/* Add a line; the lines of a kind are sorted. 1; 0: it is out of order; or -ENOMEM. */
static int add_line(struct shared_line **lines, size_t *n, const struct shared_line *line)
{
    if (*n && strcmp((*lines)[*n - 1].name, line->name) >= 0)
        return 0;
    if (array_capacity(lines, *n, sizeof(**lines)) < 0)
        return -ENOMEM;
    (*lines)[(*n)++] = *line;
    return 1;
}

/* 1; 0: it is out of order, or wrong; or -ENOMEM. */
static int use_line(struct shared_table *table, enum line_kind type, const struct shared_line *line)
{
    struct shared_line *one = type == LINE_JOINED ? &table->joined : &table->listing;

    switch (type) {
    case LINE_FILE:
        return add_line(&table->file, &table->n_files, line);
    case LINE_INDEX:
        return add_line(&table->index, &table->n_indexes, line);
    case LINE_LISTING:
    case LINE_JOINED:
        if (one->name || !line->size || (type == LINE_JOINED && line->size > SHARED_JOINED_MOST))
            return 0;
        *one = *line;
        return 1;
    case LINE_NONE:
        break;
    }
    return 0;
}

/* Find the indexes in the joined file. 0 or -EBADMSG with the reason in d. */
static int shared_table_find(struct shared_table *table, struct diag *d)
{
    uint64_t at = 0;

    for (size_t i = 0; i < table->n_indexes; i++) {
        table->index[i].at = at;
        at += table->index[i].size;
    }
    if (!table->joined.name || at == table->joined.size)
        return 0;
    return diag_set(d, -EBADMSG,
                    "expected %llu bytes of joined indexes, as their lines say, got %llu",
                    (unsigned long long)at, (unsigned long long)table->joined.size);
}

int shared_table_read(char *text, size_t len, struct shared_table *ret, struct diag *d)
{
    AUTO(shared_table_release) struct shared_table table = {.text = text};
    size_t head = strlen(SHARED_INDEX_HEAD), number = 2;
    char version;
    int r;

    if (len < head || (memcmp(text, SHARED_INDEX_HEAD, head) != 0 &&
                       memcmp(text, SHARED_INDEX_HEAD_2, head) != 0 &&
                       memcmp(text, SHARED_INDEX_HEAD_1, head) != 0))
        return diag_set(d, -EBADMSG, "line 1: expected '%.*s'", (int)head - 1, SHARED_INDEX_HEAD);
    version = text[head - 2];
    if (memchr(text, '\0', len) || text[len - 1] != '\n')
        return diag_set(d, -EBADMSG,
                        "expected lines of text, got a NUL or no end of the last line");
    for (char *at = text + head, *end; at < text + len; at = end + 1, number++) {
        struct shared_line line;
        enum line_kind type;

        end = memchr(at, '\n', (size_t)(text + len - at));
        *end = '\0';
        type = read_line(at, version > '1', &line);
        if (type == LINE_JOINED && version < '3')
            return diag_set(d, -EBADMSG,
                            "line %zu: expected no joined file before epochfs-index 3, got one",
                            number);
        r = use_line(&table, type, &line);
        if (r < 0)
            return r;
        if (!r)
            return diag_set(
                d, -EBADMSG,
                "line %zu: expected 'file SIZE SHA256 %sNAME' or 'index SIZE SHA256 NAME', "
                "sorted",
                number, version > '1' ? "VERSION " : "");
    }
    r = shared_table_find(&table, d);
    if (r < 0)
        return r;
    *ret = table;
    table = (struct shared_table){0};
    return 0;
}
