/* A netrc is words separated by whitespace: `machine HOST`, `default`, and what belongs to them,
 * whose values may be any words; `macdef NAME`, then text until an empty line. A '#' before a word
 * makes the rest of the line a comment. Words may be in quotes. This code copies no secret. */
#include "cache/http/netrc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/home.h"

#define FILE_MOST (1u << 20)

/* The text, and how much of it has been read. */
struct words {
    const char *text;
    size_t len, at;
};

struct word {
    const char *start;
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_line(struct words *w)
{
    const char *end = memchr(w->text + w->at, '\n', w->len - w->at);

    w->at = end ? (size_t)(end - w->text) : w->len;
}

/* Skip to behind the next empty line. */
static void skip_macro(struct words *w)
{
    while (w->at < w->len) {
        skip_line(w);
        w->at += w->at < w->len;
        if (w->at < w->len && w->text[w->at] == '\n')
            return;
    }
}

/* Read the next word. false: there is none. */
static bool next_word(struct words *w, bool may_be_comment, struct word *ret)
{
    for (;;) {
        while (w->at < w->len && is_blank(w->text[w->at]))
            w->at++;
        if (w->at == w->len)
            return false;
        if (!may_be_comment || w->text[w->at] != '#')
            break;
        skip_line(w);
    }
    if (w->text[w->at] == '"') {
        ret->start = w->text + ++w->at;
        while (w->at < w->len && w->text[w->at] != '"')
            w->at += w->text[w->at] == '\\' && w->at + 1 < w->len ? 2 : 1;
        ret->len = (size_t)(w->text + w->at - ret->start);
        w->at += w->at < w->len;
        return true;
    }
    ret->start = w->text + w->at;
    while (w->at < w->len && !is_blank(w->text[w->at]))
        w->at++;
    ret->len = (size_t)(w->text + w->at - ret->start);
    return true;
}

static bool is_word(const struct word *word, const char *text)
{
    return word->len == strlen(text) && !strncasecmp(word->start, text, word->len);
}

bool netrc_names(const char *netrc, size_t len, const char *host)
{
    struct words w = {.text = netrc, .len = len};
    struct word word;

    while (next_word(&w, true, &word)) {
        if (is_word(&word, "default"))
            return true;
        if (is_word(&word, "macdef")) {
            skip_macro(&w);
        } else if (is_word(&word, "machine")) {
            if (next_word(&w, false, &word) && is_word(&word, host))
                return true;
        } else { /* login, password, account */
            next_word(&w, false, &word);
        }
    }
    return false;
}

bool netrc_file_names(const char *host)
{
    AUTO_FREE char *text = malloc(FILE_MOST);
    AUTO_CLOSE int fd = -1;
    char path[PATH_MAX];
    size_t len = 0;
    ssize_t n = 1;
    bool found;

    if (!text || !home_path("/.netrc", path, sizeof(path)))
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd >= 0 && n && len < FILE_MOST) {
        n = read(fd, text + len, FILE_MOST - len);
        if (n < 0 && errno != EINTR)
            return false;
        len += n > 0 ? (size_t)n : 0;
    }
    found = netrc_names(text, len, host);
    explicit_bzero(text, len);
    return found;
}

int netrc_check(struct diag *d)
{
    char path[PATH_MAX];
    struct stat st;

    if (!home_path("/.netrc", path, sizeof(path)) || stat(path, &st) < 0 || S_ISREG(st.st_mode))
        return 0;
    return diag_set(d, -EINVAL, "%s: expected a regular file, got another kind of file", path);
}
