#include "fs/options/help.h"

#include <string.h>

#define NAME_COLUMN  4
#define WORDS_COLUMN 28
#define LIST_COLUMN  7

void help_add_entry(struct text *help, const char *name, const char *words)
{
    size_t column = WORDS_COLUMN;

    text_add(help, "%*s%-*s", NAME_COLUMN, "", WORDS_COLUMN - NAME_COLUMN - 1, name);
    for (const char *word = words; *word;) {
        size_t len = strcspn(word, " ");

        if (column + len > HELP_WIDTH) {
            text_add(help, "\n%*s", WORDS_COLUMN - 1, "");
            column = WORDS_COLUMN;
        }
        text_add(help, " %.*s", (int)len, word);
        column += len + 1;
        word += len + (word[len] != '\0');
    }
    text_add(help, "\n");
}

void help_add_names(struct text *help, const char *title, const char *const *name, size_t n)
{
    size_t column = NAME_COLUMN + strlen(title);

    text_add(help, "%*s%s", NAME_COLUMN, "", title);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(name[i]) + 2;

        column += len;
        if (column > HELP_WIDTH) {
            text_add(help, "\n%*s", LIST_COLUMN, "");
            column = LIST_COLUMN + len;
        }
        text_add(help, " %s%s", name[i], i + 1 < n ? "," : "\n");
    }
}
