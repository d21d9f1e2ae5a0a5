/* Which files are tables: by their names, and by what they begin with. */
#include <string.h>

#include "base/bytes.h"
#include "format/kaldi/set/folder.h"
#include "format/kaldi/table/scp.h"
#include "format/kaldi/table/table.h"

#define PROBE_LINES 32

/* The files of a data directory. */
static const struct kaldi_known_file known_files[] = {
    {"feats.scp", KALDI_UNKNOWN, A_FIELD},
    {"cmvn.scp", KALDI_UNKNOWN, A_FIELD},
    {"vad.scp", KALDI_UNKNOWN, A_FIELD},
    {"wav.scp", KALDI_WAVE, A_FIELD},
    {"text", KALDI_TOKENS, A_FIELD},
    {"utt2spk", KALDI_TOKEN, A_FIELD},
    {"spk2gender", KALDI_TOKEN, A_FIELD},
    {"utt2lang", KALDI_TOKEN, A_FIELD},
    {"utt2uniq", KALDI_TOKEN, A_FIELD},
    {"utt2dur", KALDI_DOUBLE, A_FIELD},
    {"utt2num_frames", KALDI_INT, A_FIELD},
    {"reco2dur", KALDI_DOUBLE, A_FIELD},
    {"reco2file_and_channel", KALDI_TOKENS, A_FIELD},
    {"segments", KALDI_TOKENS, SEGMENTS},
    {"spk2utt", KALDI_TOKENS, NO_FIELD}, /* has the same content as utt2spk */
    {"frame_shift", KALDI_UNKNOWN, NO_FIELD},
};

const struct kaldi_known_file *kaldi_known_file(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(known_files); i++)
        if (!strcmp(known_files[i].name, name))
            return &known_files[i];
    return NULL;
}

bool kaldi_ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);

    return n > k && !memcmp(name + n - k, end, k);
}

/* Skip the first key; returns the text after it. NULL: no key. */
static const uint8_t *behind_key(const uint8_t *head, size_t len, size_t *ret_left)
{
    size_t at = utf8_mark(head, len), key;

    while (at < len && kaldi_is_blank(head[at]))
        at++;
    key = at;
    while (at < len && !kaldi_is_blank(head[at]))
        at++;
    if (at == key || at - key > KEY_MAX || at == len)
        return NULL;
    at += head[at] != '\n';
    *ret_left = len - at;
    return head + at;
}

bool kaldi_is_script(const uint8_t *head, size_t len, bool whole)
{
    const uint8_t *at = head, *end;
    unsigned n = 0;

    for (; n < PROBE_LINES && at < head + len; at = end + 1, n++) {
        struct scp_line line;

        end = memchr(at, '\n', (size_t)(head + len - at));
        if (!end && n && !whole)
            break;
        if (!end)
            end = head + len;
        if (scp_line_parse((const char *)at, (size_t)(end - at), &line) || line.place == SCP_FILE)
            return false;
    }
    return n;
}

/* Does a matrix, vector or posterior in text start there? */
static bool is_bracket(const uint8_t *at, size_t left)
{
    size_t i = 0, number;

    while (i < left && kaldi_is_blank(at[i]))
        i++;
    if (left - i > 5 && !memcmp(at + i, "rows=", 5))
        return kaldi_is_digit(at[i + 5]);
    if (i + 1 >= left || at[i] != '[' || !kaldi_is_blank(at[i + 1]))
        return false;
    for (i++; i < left && kaldi_is_blank(at[i]);)
        i++;
    for (number = i; i < left && memchr("0123456789+-.eE", at[i], 15);)
        i++;
    return i > number && (i == left || kaldi_is_blank(at[i]) || at[i] == ']');
}

bool kaldi_is_single(const uint8_t *head, size_t len)
{
    if (len > 4 && head[0] == 0 && head[1] == 'B')
        return head[2] == '<' || (memchr("FDCS", head[2], 4) && memchr("MVP", head[3], 3));
    return len && (*head == ' ' || *head == '[') && is_bracket(head, len);
}

enum claim kaldi_probe(const struct probed_file *file)
{
    const uint8_t *head = file->head, *object;
    size_t left = 0;

    if (file->len >= 4 && (!memcmp(head, "RIFF", 4) || !memcmp(head, "RIFX", 4)))
        return CLAIM_ASIDE; /* audio, which scp files name */
    if (file->len && (kaldi_known_file(file->name) || kaldi_ends_in(file->name, ".scp") ||
                      kaldi_ends_in(file->name, ".ark")))
        return CLAIM_NAMED;
    if (kaldi_is_single(head, file->len))
        return CLAIM_STRONG;
    object = behind_key(head, file->len, &left);
    if (!object)
        return CLAIM_NONE;
    if (kaldi_is_fst(object, left))
        return CLAIM_STRONG; /* to be refused by that name */
    if (left >= 2 && object[0] == 0 && object[1] == 'B')
        return CLAIM_STRONG;
    if (left >= 4 && (!memcmp(object, "RIFF", 4) || !memcmp(object, "RIFX", 4)))
        return CLAIM_STRONG;
    if (memchr(head, 0, file->len))
        return CLAIM_NONE;
    return kaldi_is_script(head, file->len, file->whole) || is_bracket(object, left) ? CLAIM_STRONG
                                                                                     : CLAIM_NONE;
}
