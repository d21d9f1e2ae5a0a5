#include "format/kaldi/object/window.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define STEP_LEAST 128     /* bytes: the key and the header of a large object */
#define STEP_MOST  1048576 /* of a file that is read from front to back */

void kaldi_in_init(struct kaldi_in *in, const struct blob *blob)
{
    *in = (struct kaldi_in){.blob = blob, .size = blob->size, .step = STEP_LEAST};
}

void kaldi_in_release(struct kaldi_in *in)
{
    free(in->buffer);
    in->buffer = NULL;
    in->capacity = in->have = 0;
}

/* If the bytes follow the last ones, read more at once from now on. After a hop read little, since
 * only headers are needed. */
static void adapt(struct kaldi_in *in, uint64_t at)
{
    bool follows = at >= in->start && at <= in->start + in->have;

    if (follows && in->have)
        in->step = (size_t)min_u64(in->step * 2, STEP_MOST);
    else
        in->step = STEP_LEAST;
}

const uint8_t *kaldi_in_at(struct kaldi_in *in, uint64_t at, size_t want, size_t *ret_have)
{
    size_t left = at < in->size ? (size_t)min_u64(in->size - at, SIZE_MAX / 2) : 0, len, kept = 0;

    if (in->error)
        return NULL;
    if (!left) {
        *ret_have = 0;
        return (const uint8_t *)"";
    }
    want = (size_t)min_u64(max_u64(want, 1), left);
    if (at >= in->start && at - in->start <= in->have && in->have - (at - in->start) >= want) {
        *ret_have = in->have - (size_t)(at - in->start);
        return in->buffer + (at - in->start);
    }
    adapt(in, at);
    len = (size_t)min_u64(max_u64(want, in->step), left);
    if (len > in->capacity) {
        uint8_t *grown = malloc(len);

        if (!grown) {
            in->error = -ENOMEM;
            return NULL;
        }
        if (at >= in->start && at < in->start + in->have) {
            kept = (size_t)(in->start + in->have - at);
            memcpy(grown, in->buffer + (at - in->start), kept);
        }
        free(in->buffer);
        in->buffer = grown;
        in->capacity = len;
    } else if (at >= in->start && at < in->start + in->have) {
        kept = (size_t)(in->start + in->have - at);
        memmove(in->buffer, in->buffer + (at - in->start), kept);
    }
    in->start = at;
    in->have = kept;
    in->why = DIAG_INIT;
    in->error = blob_read(READ_WAITS, in->blob, in->buffer + kept, len - kept, at + kept, &in->why);
    if (in->error)
        return NULL;
    in->have = len;
    *ret_have = len;
    return in->buffer;
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
