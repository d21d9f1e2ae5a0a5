#include "format/recordio/sides.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/number.h"
#include "base/search.h"
#include "base/text.h"

#define TEXT_MOST (UINT64_C(1) << 30) /* bytes */

bool recordio_is_beside(const char *name)
{
    return text_ends_with(name, ".idx") || text_ends_with(name, ".lst");
}

struct blob *recordio_take_idx(struct source_file *source, size_t n, size_t i)
{
    const char *name = source[i].name, *dot = strrchr(name, '.');
    size_t stem = dot ? (size_t)(dot - name) : strlen(name);

    for (size_t k = 0; k < n; k++)
        if (k != i && source[k].blob && !strncmp(source[k].name, name, stem) &&
            !strcasecmp(source[k].name + stem, ".idx"))
            return TAKE_PTR(source[k].blob);
    return NULL;
}

static bool recordio_sides_is_number(const char *text, const char *end, uint64_t *ret)
{
    size_t len = (size_t)(end - text);

    return len && number_parse(text, len, UINT64_MAX, ret) == len;
}

/* "<key> TAB <byte>", and nothing else: a space or a CR is a sign of another tool. */
static bool is_idx_line(const char *text, const char *end, uint64_t *ret_byte)
{
    const char *tab = memchr(text, '\t', (size_t)(end - text));
    uint64_t key;

    return tab && recordio_sides_is_number(text, tab, &key) &&
           recordio_sides_is_number(tab + 1, end, ret_byte);
}

/* "<id> TAB <label> ... TAB <path>", where spaces may be around. */
static bool is_lst_line(const char *text, const char *end)
{
    unsigned columns = 1;
    size_t digits;

    while (text < end && *text == ' ')
        text++;
    digits = 0;
    while (text + digits < end && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    for (const char *at = text + digits; at < end; at++) {
        columns += *at == '\t';
        if (columns == 1 && *at != ' ')
            return false;
        if (columns == 2 && !strchr("\t +-.0123456789eE", *at))
            return false;
    }
    return digits && columns > 2;
}

bool recordio_is_side(const struct probed_file *file)
{
    const char *text = (const char *)file->head;
    const char *end = file->len ? memchr(text, '\n', file->len) : NULL;
    uint64_t byte;

    if (!end && file->whole)
        end = text + file->len;
    if (!end)
        return false;
    return text_ends_with(file->name, ".idx")
               ? is_idx_line(text, end, &byte)
               : text_ends_with(file->name, ".lst") && is_lst_line(text, end);
}

int recordio_read_idx(const struct blob *idx, uint64_t size, uint64_t **ret, size_t *ret_n,
                      struct diag *d)
{
    AUTO_FREE char *text = NULL;
    AUTO_FREE uint64_t *byte = NULL;
    const char *end;
    size_t n = 0;
    int r;

    if (idx->size > TEXT_MOST)
        return diag_set(d, -EBADMSG, "%s: expected at most %llu bytes, got %llu", blob_name(idx),
                        (unsigned long long)TEXT_MOST, (unsigned long long)idx->size);
    text = malloc(idx->size + 1);
    if (!text)
        return -ENOMEM;
    r = blob_read(READ_WAITS, idx, text, idx->size, 0, d);
    if (r == 0)
        r = blob_verify(idx, d);
    if (r < 0)
        return r;
    text[idx->size] = '\n';
    for (const char *at = text; at < text + idx->size; at = end + 1, n++) {
        end = memchr(at, '\n', idx->size + 1 - (size_t)(at - text));
        if (array_capacity(&byte, n, sizeof(*byte)) < 0)
            return -ENOMEM;
        if (!is_idx_line(at, end, &byte[n]))
            return diag_set(d, -EBADMSG,
                            "%s: line %zu: expected a number, a TAB, and a byte of the file",
                            blob_name(idx), n + 1);
        if (byte[n] >= size)
            return diag_set(d, -EBADMSG,
                            "%s: line %zu: expected a record at byte %llu, got a file of %llu "
                            "bytes, which may be cut short",
                            blob_name(idx), n + 1, (unsigned long long)byte[n],
                            (unsigned long long)size);
    }
    if (n)
        qsort(byte, n, sizeof(*byte), search_compare);
    *ret = TAKE_PTR(byte);
    *ret_n = n;
    return 0;
}
