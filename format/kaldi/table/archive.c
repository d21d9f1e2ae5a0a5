/* The pass over an archive, which hops from header to header. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

#define KEY_USUAL 64 /* bytes searched first */

/* The length of the key at the start of text; have: the key does not end within these bytes. */
static size_t key_end(const uint8_t *text, size_t have)
{
    size_t len = 0;

    while (len < have && len <= KEY_MAX && !kaldi_is_blank(text[len]))
        len++;
    return len;
}

int kaldi_next_key(struct kaldi_in *in, uint64_t *at, unsigned nuls,
                   uint8_t ret_key[static KEY_MAX], size_t *ret_len, bool *ret_plain,
                   struct diag *d)
{
    const uint8_t *text = NULL;
    size_t have = 0, len = 0;
    uint64_t from = *at;

    for (;; from++) {
        text = kaldi_in_at(in, from, KEY_USUAL, &have);
        if (!text)
            return kaldi_bad(in, from, d, "cannot be read");
        if (nuls && have >= nuls && !memcmp(text, "\0\0\0\0", nuls)) {
            from += nuls - 1;
            nuls = 0;
            continue;
        }
        nuls = 0;
        if (!have)
            return 0;
        if (!from && utf8_mark(text, have)) {
            from += 2;
            continue;
        }
        if (!kaldi_is_blank(text[0]))
            break;
    }
    len = key_end(text, have);
    if (len == have) { /* a long key, or the last */
        text = kaldi_in_at(in, from, KEY_MAX + 1, &have);
        if (!text)
            return kaldi_bad(in, from, d, "cannot be read");
        len = key_end(text, have);
    }
    if (len > KEY_MAX)
        return kaldi_bad(in, from, d, "expected a key of at most %u bytes, got more", KEY_MAX);
    if (len == have)
        return 0; /* a key with nothing after it ends the archive for Kaldi too */
    if (text[len] != ' ' && text[len] != '\t' && text[len] != '\n')
        return kaldi_bad(in, from + len, d, "expected a space after key '%.*s', got byte %02x",
                         (int)min_u64(len, 60), (const char *)text, text[len]);
    memcpy(ret_key, text, len);
    *ret_len = len;
    *ret_plain = text[len] == ' ';
    *at = from + len + (text[len] != '\n');
    return 1;
}

/* End the archive where it cannot be read: nothing after that place can be found. */
static int end_archive(struct kaldi_pass *pass, const uint8_t *key, size_t len,
                       const struct diag *reason)
{
    pass->ended = true;
    if (!len) {
        pass->table->totals.ends_early = true;
        kaldi_note(pass->table, &pass->reported_bad, reason->text);
        return 0;
    }
    return kaldi_add_bad_row(pass, key, len, 0, reason->text);
}

int kaldi_archive_row(struct kaldi_pass *pass, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    struct kaldi_object object;
    uint8_t key[KEY_MAX];
    size_t len = 0;
    uint64_t at = pass->at;
    bool is_plain = false;
    int r = kaldi_next_key(&pass->in, &at, pass->nuls, key, &len, &is_plain, &reason);

    if (r == 0)
        pass->ended = true;
    if (r == -EBADMSG)
        return end_archive(pass, NULL, 0, &reason);
    if (r < 0)
        return diag_set(d, r, "%s", reason.text);
    if (r == 0)
        return 0;
    r = kaldi_measure(&pass->in, at, pass->table->type, &object, &reason);
    if (r == -EBADMSG)
        return end_archive(pass, key, len, &reason);
    if (r < 0)
        return diag_set(d, r, "%s", reason.text);
    pass->nuls = object.store == KALDI_CM && !object.dim[0] ? 4 : 0;
    pass->at = object.start + object.len;
    return kaldi_add_good_row(pass, key, len, pass->part, &object, is_plain ? WHAT_PLAIN : 0, NULL);
}

int kaldi_single_row(struct kaldi_pass *pass, struct diag *d)
{
    const char *name = blob_name(pass->in.blob), *slash = strrchr(name, '/'), *dot;
    struct kaldi_object object;
    size_t len;
    int r = kaldi_measure(&pass->in, 0, pass->table->type, &object, d);

    if (r < 0)
        return r;
    name = slash ? slash + 1 : name;
    dot = strrchr(name, '.');
    len = min_u64(dot && dot > name ? (size_t)(dot - name) : strlen(name), KEY_MAX);
    pass->ended = true;
    return kaldi_add_good_row(pass, (const uint8_t *)name, len, 0, &object, WHAT_WHOLE, NULL);
}
