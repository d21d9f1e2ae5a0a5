#include "format/index/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

void kept_bytes(struct kept *k, void *bytes, size_t n)
{
    if (k->out) {
        text_add_bytes(k->out, bytes, n);
        return;
    }
    if (k->at && n > k->left && !k->error)
        k->error = -EBADMSG;
    if (!k->at || k->error) {
        memset(bytes, 0, n);
        return;
    }
    memcpy(bytes, k->at, n);
    k->at += n;
    k->left -= n;
}

void kept_number(struct kept *k, uint64_t *v, uint64_t most)
{
    uint8_t le[8];

    store_le64(le, *v);
    kept_bytes(k, le, sizeof(le));
    if (k->out)
        return;
    *v = load_le64(le);
    if (*v <= most)
        return;
    *v = 0;
    k->error = k->error ? k->error : -EBADMSG;
}

void kept_array(struct kept *k, void *array, uint64_t n)
{
    void **bytes = array;

    if (!k->out) {
        free(*bytes);
        *bytes = NULL;
        if (k->at && !k->error && n > k->left)
            k->error = -EBADMSG;
        if (k->at && !k->error && !(*bytes = calloc(n + 1, 1)))
            k->error = -ENOMEM;
    }
    if (*bytes && n)
        kept_bytes(k, *bytes, n);
}

void kept_text(struct kept *k, char **text)
{
    uint64_t len = k->out && *text ? strlen(*text) : 0;

    kept_number(k, &len, UINT64_MAX);
    kept_array(k, text, len);
}

void kept_growing(struct kept *k, struct text *text)
{
    kept_text(k, &text->data);
    if (k->out)
        return;
    *text = (struct text){.data = text->data, .len = text->data ? strlen(text->data) : 0};
    text->capacity = text->data ? text->len + 1 : 0;
}
