#include "fs/options/help.h"

#include <string.h>

#define NAME_COLUMN  4
#define WORDS_COLUMN 28
#define LIST_COLUMN  7

/* Add words from column on, which is where the text is, with later lines indented as far. */
static void help_add_words(struct text *help, const char *words, size_t indent)
{
    size_t column = indent;

    for (const char *word = words; *word;) {
        size_t len = strcspn(word, " ");

        if (column > indent && column + len > HELP_WIDTH) {
            text_add(help, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            text_add(help, " ");
        }
        text_add(help, "%.*s", (int)len, word);
        column += len + 1;
        word += len + (word[len] != '\0');
    }
    text_add(help, "\n");
}

void help_add_entry(struct text *help, const char *name, const char *words)
{
    text_add(help, "%*s%-*s", NAME_COLUMN, "", WORDS_COLUMN - NAME_COLUMN, name);
    help_add_words(help, words, WORDS_COLUMN);
}

void help_add_paragraph(struct text *help, const char *words)
{
    text_add(help, "\n");
    help_add_words(help, words, 0);
}

/* A word of a usage, which may be [-o OPTIONS]. */
static size_t usage_word(const char *usage)
{
    const char *end = *usage == '[' ? strchr(usage, ']') : NULL;

    return end ? (size_t)(end + 1 - usage) : strcspn(usage, " ");
}

void help_add_usage(struct text *help, const char *begin, const char *usage)
{
    size_t name = usage_word(usage), indent = strlen(begin) + strlen("epochfs ") + name;
    size_t column = indent;

    text_add(help, "%sepochfs %.*s", begin, (int)name, usage);
    for (const char *word = usage + name; *word;) {
        size_t len = usage_word(++word);

        if (column + 1 + len > HELP_WIDTH) {
            text_add(help, "\n%*s", (int)indent, "");
            column = indent;
        }
        text_add(help, " %.*s", (int)len, word);
        column += 1 + len;
        word += len;
    }
    text_add(help, "\n");
}

void help_add_size(struct text *help, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    unsigned unit = 0;

    while (unit + 1 < sizeof(units) / sizeof(*units) && bytes && !(bytes & 1023)) {
        bytes >>= 10;
        unit++;
    }
    text_add(help, "%llu %s", (unsigned long long)bytes, units[unit]);
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
