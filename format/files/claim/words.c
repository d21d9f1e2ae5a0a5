#include "format/files/claim/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool words_is_letter(char c)
{
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

bool next_piece(const char **at, const char *end, struct name_piece *ret)
{
    const char *p = *at;

    while (p < end && !words_is_letter(*p) && !isdigit((unsigned char)*p))
        p++;
    ret->at = p;
    if (p < end && isdigit((unsigned char)*p))
        while (p < end && isdigit((unsigned char)*p))
            p++;
    else
        for (; p < end && words_is_letter(*p); p++) {
            bool begins =
                p > ret->at && isupper((unsigned char)*p) &&
                (!isupper((unsigned char)p[-1]) || (p + 1 < end && islower((unsigned char)p[1])));

            if (begins)
                break;
        }
    ret->len = (size_t)(p - ret->at);
    *at = p;
    return ret->len > 0;
}

bool word_is_one_of(const char *word, size_t len, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == len && !strncasecmp(word, *words, len))
            return true;
    return false;
}

/* ---- splits ---- */

/* Words of one row are one part. */
static const char *const split_words[][4] = {
    {"train", "training", NULL},
    {"val", "valid", "validation", NULL},
    {"test", "testing", NULL},
    {"dev", NULL},
    {"eval", NULL},
    {"trainval", NULL},
};

static int words_split_row(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof(split_words) / sizeof(split_words[0]); i++)
        if (word_is_one_of(word, len, split_words[i]))
            return (int)i;
    return -1;
}

static const char *const picture_words[] = {"image",  "images",  "img",      "imgs", "photo",
                                            "photos", "picture", "pictures", "data", NULL};
static const char *const split_ends[] = {"set",    "data",  "image",    "images",
                                         "photos", "photo", "pictures", NULL};
static const char *const fold_words[] = {"fold", "split", NULL};
static const char *const input_words[] = {"input", "inputs", "source", "original", "originals",
                                          "raw",   "lq",     "lr",     "low",      "noisy",
                                          "blur",  "blurry", "hazy",   NULL};
static const char *const target_words[] = {
    "mask", "masks", "label",        "labels",        "annotation", "annotations", "ann",
    "anns", "annot", "segmentation", "segmentations", "gt",         "target",      "targets",
    "hq",   "hr",    "high",         "clean",         "sharp",      "groundtruth", NULL};

/* The split that a word begins with, where the rest is one of the words: trainannot, testset. */
static bool words_begin_with_split(struct name_piece word, const char *const *ends,
                                   struct name_piece *ret)
{
    for (size_t i = 0; i < sizeof(split_words) / sizeof(split_words[0]); i++)
        for (const char *const *split = split_words[i]; *split; split++) {
            size_t n = strlen(*split);

            if (word.len > n && !strncasecmp(word.at, *split, n) &&
                word_is_one_of(word.at + n, word.len - n, ends)) {
                *ret = (struct name_piece){word.at, n};
                return true;
            }
        }
    return false;
}

bool words_have_split(const char *name, size_t len, struct name_piece *ret)
{
    const char *at = name, *end = name + len;
    struct name_piece piece, fold = {0};

    while (next_piece(&at, end, &piece)) {
        if (fold.at && isdigit((unsigned char)*piece.at)) {
            piece = (struct name_piece){fold.at, (size_t)(piece.at + piece.len - fold.at)};
        } else if (words_split_row(piece.at, piece.len) < 0 &&
                   !words_begin_with_split(piece, target_words, &piece) &&
                   !words_begin_with_split(piece, split_ends, &piece)) {
            fold = word_is_one_of(piece.at, piece.len, fold_words) ? piece : (struct name_piece){0};
            continue;
        }
        if (ret)
            *ret = piece;
        return true;
    }
    return false;
}

bool words_name_split(const char *name)
{
    return words_have_split(name, strlen(name), NULL);
}

bool words_name_one_split(const char *name)
{
    struct name_piece first, second;
    const char *after;

    if (!words_have_split(name, strlen(name), &first))
        return false;
    after = first.at + first.len;
    return !words_have_split(after, strlen(after), &second) || words_same_split(first, second);
}

bool words_are_split(const char *name)
{
    struct name_piece piece;

    return words_have_split(name, strlen(name), &piece) && piece.at == name &&
           !name[piece.len + strspn(name + piece.len, "0123456789")];
}

bool words_are_of_two_splits(const char *a, const char *b)
{
    struct name_piece x, y;

    return words_have_split(a, strlen(a), &x) && words_have_split(b, strlen(b), &y) &&
           !words_same_split(x, y);
}

bool words_have_two_numbers(const char *a, const char *b)
{
    char *a_end, *b_end;

    for (;; a = a_end, b = b_end) {
        a += strcspn(a, "0123456789");
        b += strcspn(b, "0123456789");
        if (!*a || !*b)
            return false;
        if (strtoull(a, &a_end, 10) != strtoull(b, &b_end, 10))
            return true;
    }
}

bool words_same_split(struct name_piece a, struct name_piece b)
{
    int row = words_split_row(a.at, a.len);

    if (row >= 0)
        return row == words_split_row(b.at, b.len);
    return a.len == b.len && !strncasecmp(a.at, b.at, a.len);
}

/* ---- roles ---- */

bool words_have(const char *name, size_t len, const char *const *words)
{
    const char *at = name, *end = name + len;
    struct name_piece piece;

    while (next_piece(&at, end, &piece))
        if (word_is_one_of(piece.at, piece.len, words))
            return true;
    return false;
}

/* The domains of pix2pix and its kin: capitals, for folders a and b may well be classes. */
static bool words_have_letter(const char *name, size_t len, char letter)
{
    const char *at = name, *end = name + len;
    struct name_piece piece;

    while (next_piece(&at, end, &piece))
        if (piece.len == 1 && *piece.at == letter)
            return true;
    return false;
}

bool words_have_pictures(const char *name)
{
    return words_have(name, strlen(name), picture_words);
}

bool words_have_input(const char *name)
{
    size_t len = strlen(name);

    return words_have_pictures(name) || words_have(name, len, input_words) ||
           words_have_letter(name, len, 'A');
}

bool words_have_target(const char *name, size_t len)
{
    const char *at = name, *end = name + len;
    struct name_piece piece, split;
    bool ground = false;

    while (next_piece(&at, end, &piece)) {
        if (word_is_one_of(piece.at, piece.len, target_words) ||
            words_begin_with_split(piece, target_words, &split) ||
            (ground && piece.len == 5 && !strncasecmp(piece.at, "truth", 5)))
            return true;
        ground = piece.len == 6 && !strncasecmp(piece.at, "ground", 6);
    }
    return words_have_letter(name, len, 'B');
}

bool words_have_role(const char *name)
{
    size_t len = strlen(name);

    return words_have_pictures(name) || words_have(name, len, input_words) ||
           words_have(name, len, target_words);
}

bool words_may_be_classes(const char *name)
{
    static const char *const words[] = {"low",  "noisy",    "blur",      "blurry", "hazy",  "raw",
                                        "high", "original", "originals", "clean",  "sharp", NULL};

    return words_have(name, strlen(name), words);
}

/* ---- what differs ---- */

static bool words_have_piece(const char *name, struct name_piece piece)
{
    const char *at = name, *end = name + strlen(name);
    struct name_piece other;

    while (next_piece(&at, end, &other))
        if (other.len == piece.len && !strncasecmp(other.at, piece.at, piece.len))
            return true;
    return false;
}

void words_differing(const char *name, const char *other, char *ret, size_t capacity)
{
    const char *at = name, *end = name + strlen(name), *copied = name;
    struct name_piece piece;
    size_t n = 0;

    if (!strncasecmp(name, other, strlen(other)) && name[strlen(other)]) {
        copied = at = name + strlen(other); /* train, trainannot */
        other = "";
    }
    while (next_piece(&at, end, &piece)) {
        bool drops = words_have_piece(other, piece) || words_split_row(piece.at, piece.len) >= 0;

        for (const char *p = copied; p < (drops ? piece.at : at) && n + 1 < capacity; p++)
            ret[n++] = (char)tolower((unsigned char)*p);
        copied = at;
    }
    while (n && strchr("_-. ", ret[n - 1]))
        n--;
    ret[n] = '\0';
    n = strspn(ret, "_-. ");
    memmove(ret, ret + n, strlen(ret + n) + 1);
}

bool words_are_numbered(const char *name, const char *numbered)
{
    const size_t n = strlen(name);
    const char *number;

    if (!n || strncasecmp(name, numbered, n) != 0)
        return false;
    number = numbered + n + strspn(numbered + n, "_- ");
    if (number == numbered + n && isdigit((unsigned char)name[n - 1])) /* 1 and 10 */
        return false;
    return *number && !number[strspn(number, "0123456789")];
}

bool words_differ_in_number(const char *a, const char *b)
{
    const char *x = a, *y = b;

    while (*x && tolower((unsigned char)*x) == tolower((unsigned char)*y))
        x++, y++;
    while (x > a && isdigit((unsigned char)x[-1]))
        x--, y--;
    if (!isdigit((unsigned char)*x) || !isdigit((unsigned char)*y))
        return false;
    x += strspn(x, "0123456789");
    y += strspn(y, "0123456789");
    return !strcasecmp(x, y);
}
