/* The table of contents of `.epochfs/`: a text that strangers may have written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "cache/source/shared_index.h"

void shared_table_release(struct shared_table *table)
{
    free(table->text);
    free(table->file);
    free(table->index);
    *table = (struct shared_table){0};
}

const struct shared_line *shared_line_find(const struct shared_line *line, size_t n,
                                           const char *name)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(line[middle].name, name);

        if (!order)
            return &line[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool is_sum(const char *text, size_t len)
{
    return len == DIGEST_TEXT_SIZE - 1 && strspn(text, "0123456789abcdef") >= len;
}

/* The word at *at, which is NUL-terminated then; NULL: there is none. */
static char *next_word(char **at)
{
    char *word = *at, *end = strchr(word, ' ');

    if (!end || end == word)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return word;
}

/* Read "<kind> <size> <sum> <name>". false: the line is none. */
static bool read_line(char *at, bool *ret_is_index, struct shared_line *ret)
{
    const char *kind = next_word(&at), *size = kind ? next_word(&at) : NULL,
               *sum = size ? next_word(&at) : NULL;

    if (!sum || !*at || !is_sum(sum, strlen(sum)) ||
        number_parse(size, strlen(size), UINT64_MAX, &ret->size) != strlen(size))
        return false;
    *ret_is_index = !strcmp(kind, "index");
    memcpy(ret->sum, sum, sizeof(ret->sum));
    ret->name = at;
    return *ret_is_index ? is_sum(at, strlen(at)) && ret->size <= SHARED_INDEX_MOST
                         : !strcmp(kind, "file");
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

int shared_table_read(char *text, size_t len, struct shared_table *ret, struct diag *d)
{
    AUTO(shared_table_release) struct shared_table table = {.text = text};
    size_t head = strlen(SHARED_INDEX_HEAD), number = 2;

    if (len < head || memcmp(text, SHARED_INDEX_HEAD, head) != 0)
        return diag_set(d, -EBADMSG, "line 1: want '%.*s'", (int)head - 1, SHARED_INDEX_HEAD);
    if (memchr(text, '\0', len) || text[len - 1] != '\n')
        return diag_set(d, -EBADMSG, "want lines of text, found a NUL or no end of the last line");
    for (char *at = text + head, *end; at < text + len; at = end + 1, number++) {
        struct shared_line line;
        bool is_index;
        int r = 0;

        end = memchr(at, '\n', (size_t)(text + len - at));
        *end = '\0';
        if (read_line(at, &is_index, &line))
            r = is_index ? add_line(&table.index, &table.n_indexes, &line)
                         : add_line(&table.file, &table.n_files, &line);
        if (r < 0)
            return r;
        if (!r)
            return diag_set(d, -EBADMSG,
                            "line %zu: want '<file or index> SIZE SHA256 NAME', sorted", number);
    }
    *ret = table;
    table = (struct shared_table){0};
    return 0;
}
