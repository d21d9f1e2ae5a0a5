#include "format/files/claim/pattern.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

const struct pattern_word *pattern_find(const struct pattern_words *words, const char *name,
                                        size_t len)
{
    for (unsigned i = 0; i < words->n; i++)
        if (words->word[i].name_len == len && !memcmp(words->word[i].name, name, len))
            return &words->word[i];
    return NULL;
}

bool pattern_set(struct pattern_words *words, const char *name, size_t name_len, const char *text,
                 size_t len)
{
    if (words->n == PATTERN_WORDS)
        return false;
    words->word[words->n++] = (struct pattern_word){name, text, name_len, len};
    return true;
}

static bool pattern_is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

const char *pattern_fault(const char *pattern)
{
    unsigned pieces = 0;

    if (!*pattern)
        return "it is empty";
    if (*pattern == '/' || strstr(pattern, "://"))
        return "it is no path below the folder of the recipe";
    for (const char *p = pattern; *p; p++) {
        if (p[0] == '.' && p[1] == '.' && (p == pattern || p[-1] == '/') && (!p[2] || p[2] == '/'))
            return "it leaves the folder of the recipe";
        if (*p == '*' || *p == '{')
            pieces += 2;
        if (*p == '}')
            return "it has } without {";
        if (*p != '{')
            continue;
        if (*++p == '}')
            return "it has a word without a name";
        while (pattern_is_word_byte(*p))
            p++;
        if (*p != '}')
            return "a word is a name of letters, digits and _ between { and }";
    }
    return pieces < PATTERN_PIECES ? NULL : "it has too many words and stars";
}

/* ---- matching, by backtracking with a limit ---- */

struct matching {
    struct pattern_words *words;
    unsigned steps;
    bool has_sets; /* of characters: ? and [a-z] */
};

static int matching_rest(struct matching *t, const char *pattern, const char *path);

/* {word} at pattern, which ends at close. The longest text first. */
static int matching_word(struct matching *t, const char *pattern, const char *close,
                         const char *path)
{
    const char *name = pattern + 1;
    size_t len = (size_t)(close - name), most = strcspn(path, "/");
    bool is_kept = !(len == 1 && *name == '_');
    const struct pattern_word *known = is_kept ? pattern_find(t->words, name, len) : NULL;

    if (known)
        return known->len && !strncmp(path, known->text, known->len)
                   ? matching_rest(t, close + 1, path + known->len)
                   : 0;
    for (size_t n = most; n; n--) {
        unsigned before = t->words->n;
        int r;

        if (is_kept && !pattern_set(t->words, name, len, path, n))
            return -ELOOP;
        r = matching_rest(t, close + 1, path + n);
        if (r)
            return r;
        t->words->n = before;
    }
    return 0;
}

/* Any bytes that end before a '/', or any folders. */
static int matching_star(struct matching *t, const char *pattern, const char *path)
{
    bool folders = pattern[1] == '*';
    int r;

    pattern += folders ? 2 : 1;
    if (folders && *pattern == '/') {
        r = matching_rest(t, pattern + 1, path); /* none of them */
        if (r)
            return r;
    }
    for (;; path++) {
        r = matching_rest(t, pattern, path);
        if (r || !*path || (!folders && *path == '/'))
            return r;
    }
}

/* Is the character at path, which is not '/', in the set at pattern? Then its length, and that of
 * the set; 0: it is not. A set without an end is its bytes. */
static size_t matching_set(const char *pattern, const char *path, size_t *ret_len)
{
    bool is_not = pattern[1] == '!' || pattern[1] == '^', found = *pattern == '?';
    const char *p = pattern + 1 + is_not, *end = *pattern == '[' && *p ? strchr(p + 1, ']') : NULL;
    size_t n = 1;

    *ret_len = end ? (size_t)(end + 1 - pattern) : 1;
    if (!*path || *path == '/')
        return 0;
    while (((unsigned char)path[n] & 0xc0) == 0x80)
        n++;
    if (!end)
        return found ? n : *path == '[';
    for (; p < end; p++) {
        bool is_range = p[1] == '-' && p + 2 < end;
        unsigned char low = (unsigned char)*p, high = (unsigned char)(is_range ? p[2] : *p);

        found = found || ((unsigned char)*path >= low && (unsigned char)*path <= high);
        p += is_range ? 2 : 0;
    }
    return found != is_not ? n : 0;
}

static int matching_rest(struct matching *t, const char *pattern, const char *path)
{
    size_t n, len;

    if (++t->steps > PATTERN_STEPS)
        return -ELOOP;
    for (; *pattern; pattern++, path++) {
        if (t->has_sets && (*pattern == '?' || *pattern == '[')) {
            n = matching_set(pattern, path, &len);
            if (!n)
                return 0;
            pattern += len - 1;
            path += n - 1;
            continue;
        }
        if (*pattern == '{')
            return matching_word(t, pattern, strchr(pattern, '}'), path);
        if (*pattern == '*')
            return matching_star(t, pattern, path);
        if (*pattern != *path)
            return 0;
    }
    return !*path;
}

/* Does the path end as the pattern does, behind its last word or star? Most that do not match do
 * not, and their words need not be tried. */
static bool pattern_ends_alike(const char *pattern, const char *path, const char *ends)
{
    size_t n = 0, len = strlen(pattern), path_len = strlen(path);

    while (n < len && !strchr(ends, pattern[len - 1 - n]))
        n++;
    return n <= path_len && !memcmp(pattern + len - n, path + path_len - n, n);
}

int pattern_match(const char *pattern, const char *path, struct pattern_words *words)
{
    struct matching t = {.words = words};
    unsigned before = words->n;
    int r;

    if (!pattern_ends_alike(pattern, path, "}*"))
        return 0;
    r = matching_rest(&t, pattern, path);
    if (r <= 0)
        words->n = before;
    return r;
}

int pattern_match_sets(const char *pattern, const char *path)
{
    struct pattern_words words = {.n = 0};
    struct matching t = {.words = &words, .has_sets = true};

    return pattern_ends_alike(pattern, path, "}*?]") ? matching_rest(&t, pattern, path) : 0;
}

/* ---- filling ---- */

int pattern_fill(const char *pattern, const struct pattern_words *words, struct text *ret)
{
    const size_t before = ret->len;
    int n = 0;

    for (const char *close; *pattern; pattern = close + 1, n++) {
        size_t len = strcspn(pattern, "{*");
        const struct pattern_word *word = NULL;

        text_add_bytes(ret, pattern, len);
        pattern += len;
        if (!*pattern)
            break;
        close = strchr(pattern, '}');
        if (*pattern == '{')
            word = pattern_find(words, pattern + 1, (size_t)(close - pattern - 1));
        if (!word || !word->text) {
            ret->len = before;
            return -1;
        }
        text_add_bytes(ret, word->text, word->len);
    }
    return n;
}
