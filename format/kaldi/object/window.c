#include "format/kaldi/object/window.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define LEAST      128     /* bytes: the key and the header of a large object */
#define MOST       1048576 /* of a file that is read from front to back */
#define LINE_USUAL 256

void kaldi_in_init(struct kaldi_in *in, const struct blob *blob)
{
    *in = (struct kaldi_in){
        .blob = blob, .size = blob->size, .window = {.least = LEAST, .most = MOST}};
}

void kaldi_in_release(struct kaldi_in *in)
{
    pass_window_release(&in->window);
}

void kaldi_in_move(struct kaldi_in *in, const struct blob *blob)
{
    if (in->blob == blob)
        return;
    kaldi_in_release(in);
    kaldi_in_init(in, blob);
}

const uint8_t *kaldi_in_at(struct kaldi_in *in, uint64_t at, size_t n, size_t *ret_have)
{
    uint64_t left = at < in->size ? in->size - at : 0;
    const uint8_t *bytes = (const uint8_t *)"";

    if (in->error)
        return NULL;
    *ret_have = 0;
    if (!left)
        return bytes;
    if (in->why.set)
        in->why = DIAG_INIT;
    in->error = pass_window_at(&in->window, in->blob, at, min_u64(max_u64(n, 1), left), in->size,
                               &bytes, &in->why);
    if (in->error)
        return NULL;
    *ret_have = (size_t)min_u64(pass_window_end(&in->window) - at, left);
    return bytes;
}

const uint8_t *kaldi_in_line(struct kaldi_in *in, uint64_t *at, size_t most, size_t *ret_len,
                             bool *ret_ended)
{
    const uint8_t *text, *end;
    size_t have = 0;

    for (size_t n = LINE_USUAL;; n *= 4) {
        text = kaldi_in_at(in, *at, n, &have);
        if (!text)
            return NULL;
        end = memchr(text, '\n', have);
        if (end || have < n || n > most)
            break;
    }
    *ret_len = end ? (size_t)(end - text) : have;
    *ret_ended = end;
    *at += *ret_len + (end != NULL);
    return text;
}

int kaldi_bad(const struct kaldi_in *in, uint64_t at, struct diag *d, const char *format, ...)
{
    char text[512];
    va_list args;

    if (in->error)
        return in->error != -EIO && in->why.set
                   ? diag_set(d, in->error, "%s", in->why.text)
                   : diag_set(d, in->error, "%s: byte %llu: %s", blob_name(in->blob),
                              (unsigned long long)at, strerror(-in->error));
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return diag_set(d, -EBADMSG, "%s: byte %llu: %s", blob_name(in->blob), (unsigned long long)at,
                    text);
}
