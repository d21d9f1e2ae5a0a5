/* The pages of a chunk, one after another. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/parquet/file.h"

#define HEADER_LEAST 256 /* bytes of a header that are read at first */
#define IMPALA_MORE  100 /* bytes: it counted headers of dictionaries in no size (PARQUET-816) */
#define WINDOW_MOST  (256u << 10) /* bytes that are read ahead of a walk */
#define AT_ONCE_MOST (PAGE_BYTES_MAX + PAGE_HEADER_MAX)

void parquet_walk_init(struct parquet_walk *walk, const struct parquet_file *file, unsigned group,
                       unsigned leaf, uint64_t at, uint64_t end, struct read_context *rc)
{
    const struct parquet_footer *footer = &file->footer;
    const struct parquet_node *node = &footer->node[footer->leaf[leaf]];
    const struct parquet_chunk *chunk = parquet_chunk_at(footer, group, leaf);

    *walk = (struct parquet_walk){
        .file = file,
        .chunk = chunk,
        .column = {.type = (enum parquet_type)node->type,
                   .width =
                       values_width((enum parquet_type)node->type, (uint32_t)node->type_length),
                   .max_def = node->max_def,
                   .max_rep = node->max_rep,
                   .codec = (enum parquet_codec)chunk->codec},
        .window = {.least = HEADER_LEAST, .most = WINDOW_MOST, .rc = rc},
        .at = at,
        .end = end,
        .left = chunk->values,
    };
}

void parquet_walk_release(struct parquet_walk *walk)
{
    memo_let_go(walk->dictionary);
    pass_window_release(&walk->window);
}

static int pages_fail(const struct parquet_walk *walk, const char *why, struct diag *d)
{
    return diag_set(d, -EBADMSG, "page at byte %llu: %s", (unsigned long long)walk->at, why);
}

/* The rest of the chunk is lost. */
static int pages_stop(struct parquet_walk *walk, const char *why, struct diag *d)
{
    walk->is_over = true;
    walk->lost = walk->left;
    return pages_fail(walk, why, d);
}

/* Read the header at byte at. */
static int pages_header(struct parquet_walk *walk, struct diag *d)
{
    uint64_t left = walk->end - walk->at, len = min_u64(left, HEADER_LEAST);
    const char *why = NULL;
    int r = -ENODATA;

    while (r == -ENODATA) {
        const uint8_t *bytes;

        r = pass_window_at(&walk->window, walk->file->base.blob, walk->at, len, walk->end, &bytes,
                           d);
        if (r < 0)
            return r;
        r = page_header_read(bytes, (size_t)len, &walk->header, &why);
        if (r == -ENODATA && (len == left || len >= PAGE_HEADER_MAX))
            break;
        len = min_u64(left, len * 8);
    }
    if (r < 0)
        return pages_stop(walk, why, d);
    if (walk->header.packed <= left - walk->header.len)
        return 0;
    left +=
        walk->end == walk->chunk->end ? min_u64(IMPALA_MORE, walk->file->footer.at - walk->end) : 0;
    if (walk->header.packed > left - walk->header.len)
        return pages_stop(walk, "expected a page inside its chunk, got one that ends after", d);
    walk->end = walk->at + left;
    return 0;
}

int parquet_walk_page(struct parquet_walk *walk, struct diag *d)
{
    while (!walk->is_over && walk->left && walk->at < walk->end) {
        const struct page_header *h = &walk->header;
        int r = pages_header(walk, d);

        if (r < 0)
            return r;
        walk->is_spoilt = h->type == PAGE_DICTIONARY && walk->at != walk->chunk->start;
        if (walk->is_spoilt)
            return pages_stop(walk, "expected one dictionary page, in front, got another", d);
        if (h->type == PAGE_DATA || h->type == PAGE_DATA_V2) {
            if (h->n > walk->left)
                return pages_stop(walk, "expected the values of the chunk, got more", d);
            walk->at += h->len;
            if (h->n)
                return 1;
            parquet_walk_skip(walk);
            continue;
        }
        walk->at += h->len + h->packed;
    }
    return 0;
}

void parquet_walk_skip(struct parquet_walk *walk)
{
    walk->at += walk->header.packed;
    walk->left -= walk->header.n;
}

int parquet_walk_bytes(struct parquet_walk *walk, uint64_t len, const uint8_t **ret, struct diag *d)
{
    return pass_window_at(&walk->window, walk->file->base.blob, walk->at,
                          min_u64(len, walk->header.packed), walk->end, ret, d);
}

/* ---- dictionaries ---- */

struct pages_making {
    struct parquet_walk *walk;
    struct diag *d;
};

/* Read the dictionary that the chunk begins with. */
static int pages_read_dictionary(struct parquet_walk *walk, struct values *ret, struct diag *d)
{
    const struct parquet_chunk *chunk = walk->chunk;
    struct parquet_walk w = {
        .file = walk->file,
        .chunk = chunk,
        .column = walk->column,
        .window = {.least = HEADER_LEAST, .most = WINDOW_MOST, .rc = walk->window.rc},
        .at = chunk->start,
        .end = chunk->end,
        .left = 1};
    const char *why = "expected a dictionary in front of the chunk, got none";
    const uint8_t *body;
    int r = pages_header(&w, d);

    if (r == 0 && w.header.type != PAGE_DICTIONARY)
        r = pages_fail(&w, why, d);
    w.at += w.header.len;
    if (r == 0)
        r = parquet_walk_bytes(&w, w.header.packed, &body, d);
    if (r == 0) {
        r = page_decode_dictionary(&w.column, &w.header, body, ret, &why);
        if (r == -EBADMSG)
            pages_fail(&w, why, d);
    }
    if (r == 0)
        r = blob_verify(walk->file->base.blob, d);
    parquet_walk_release(&w);
    return r;
}

static int pages_make_dictionary(void *ctx, void **ret, size_t *ret_size)
{
    const struct pages_making *m = ctx;
    AUTO_VALUES struct values v = {.width = m->walk->column.width};
    int r = pages_read_dictionary(m->walk, &v, m->d);

    return r < 0 ? r : values_pack(&v, "", ret, ret_size);
}

static int pages_find_dictionary(struct parquet_walk *walk, struct diag *d)
{
    struct pages_making m = {walk, d};
    const struct memo_maker maker = {pages_make_dictionary, &m, walk->window.rc};
    const struct memo_key key = {
        {(uintptr_t)walk->file, (uintptr_t)walk->chunk, (uintptr_t)pages_make_dictionary}};

    return walk->dictionary ? 0 : memo_get(walk->file->memo, &key, &maker, &walk->dictionary);
}

/* ---- bodies ---- */

int parquet_walk_decode(struct parquet_walk *walk, struct page_data *ret, struct diag *d)
{
    const struct page_header *h = &walk->header;
    bool wants = h->encoding == ENCODING_PLAIN_DICTIONARY || h->encoding == ENCODING_RLE_DICTIONARY;
    const char *why = NULL;
    const uint8_t *body;
    int r = wants ? pages_find_dictionary(walk, d) : 0;

    if (r == 0)
        r = parquet_walk_bytes(walk, h->packed, &body, d);
    if (r == 0) {
        r = page_decode(&walk->column, h, body,
                        walk->dictionary ? memo_bytes(walk->dictionary) : NULL, ret, &why);
        if (r == -EBADMSG)
            pages_fail(walk, why, d);
    }
    if (r == 0 || r == -EBADMSG) {
        walk->lost = h->n;
        parquet_walk_skip(walk);
    } else {
        walk->at -= h->len; /* it comes again */
    }
    return r;
}

int parquet_add_bad_values(const struct page_column *column, struct page_data *data, size_t n)
{
    int r = values_append_marked(&data->v, n, VALUE_BAD);
    uint8_t *grown = r == 0 && column->max_def ? realloc(data->def, data->n + n + 1) : NULL;

    if (r == 0 && column->max_def && !grown)
        r = -ENOMEM;
    if (grown) {
        data->def = grown;
        memset(grown + data->n, (int)column->max_def, n);
    }
    if (r == 0)
        data->n += n;
    return r;
}

int parquet_walk_all(struct parquet_walk *walk, struct page_data *ret, bool *ret_cut,
                     struct diag *d)
{
    const uint8_t *all;
    int r = 0;

    *ret_cut = false;
    ret->v.width = walk->column.width;
    if (walk->end > walk->at && walk->end - walk->at <= AT_ONCE_MOST) /* at once */
        r = pass_window_at(&walk->window, walk->file->base.blob, walk->at, walk->end - walk->at,
                           walk->end, &all, d);
    while (r == 0 && !*ret_cut) {
        AUTO_PAGE_DATA struct page_data page = {0};

        r = parquet_walk_page(walk, d);
        if (r == 0)
            break;
        if (r == 1)
            r = parquet_walk_decode(walk, &page, d);
        if (r == 0) {
            r = page_data_append(ret, &page);
            walk->is_over |= r == -EBADMSG;
        }
        if (r != -EBADMSG)
            continue;
        *ret_cut = walk->column.max_rep > 0 || walk->is_over;
        if (walk->is_spoilt)
            page_data_release(ret);
        r = walk->column.max_rep || walk->is_over
                ? 0
                : parquet_add_bad_values(&walk->column, ret, (size_t)walk->lost);
    }
    return r;
}
