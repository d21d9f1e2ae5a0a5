#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/parquet/file.h"

#define HEADER_LEAST 256 /* bytes of a header that are read at first */
#define IMPALA_MORE  100 /* bytes: it counted headers of dictionaries in no size (PARQUET-816) */
#define WINDOW_MOST  (256u << 10) /* bytes that are read ahead of a walk */
#define KEPT_MOST    (2u << 20)   /* bytes of memory that the next walk gets */

/* ---- memory ---- */

/* That of walks that have ended: fresh memory of a page costs more than to unpack it. */
static _Atomic(struct parquet_memory *) pages_kept[4];

static struct parquet_memory *pages_take_memory(void)
{
    struct parquet_memory *m = NULL;

    for (size_t i = 0; i < ARRAY_LEN(pages_kept) && !m; i++)
        m = atomic_exchange(&pages_kept[i], NULL);
    return m ? m : calloc(1, sizeof(*m));
}

static void pages_keep_memory(struct parquet_memory *m)
{
    bool is_small = m && m->window.capacity <= KEPT_MOST && m->room.capacity <= KEPT_MOST;

    for (size_t i = 0; i < ARRAY_LEN(pages_kept) && m && is_small; i++)
        m = atomic_exchange(&pages_kept[i], m);
    if (!m)
        return;
    pass_window_release(&m->window);
    values_memory_release(&m->room);
    free(m);
}

/* ---- pages ---- */

int parquet_walk_init(struct parquet_walk *walk, const struct parquet_file *file, unsigned group,
                      unsigned leaf, uint64_t at, uint64_t end, struct read_context *rc)
{
    const struct parquet_footer *footer = &file->footer;
    const struct parquet_node *node = &footer->node[footer->leaf[leaf]];
    const struct parquet_chunk *chunk = parquet_chunk_at(footer, group, leaf);
    enum parquet_type type = (enum parquet_type)node->type;

    *walk = (struct parquet_walk){
        .file = file,
        .chunk = chunk,
        .group = group,
        .leaf = leaf,
        .memory = pages_take_memory(),
        .column = {.type = type,
                   .width = values_width(type, (uint32_t)node->type_length),
                   .max_def = node->max_def,
                   .max_rep = node->max_rep,
                   .codec = (enum parquet_codec)chunk->codec},
        .at = at,
        .end = end,
        .left = chunk->values,
    };
    if (!walk->memory)
        return -ENOMEM;
    pass_window_again(&walk->memory->window);
    walk->memory->window.least = HEADER_LEAST;
    walk->memory->window.most = WINDOW_MOST;
    walk->memory->window.rc = rc;
    return 0;
}

void parquet_walk_release(struct parquet_walk *walk)
{
    memo_let_go(walk->dictionary);
    pages_keep_memory(walk->memory);
    *walk = (struct parquet_walk){0};
}

int parquet_walk_bytes(struct parquet_walk *walk, uint64_t at, uint64_t len, const uint8_t **ret,
                       struct diag *d)
{
    return pass_window_at(&walk->memory->window, walk->file->base.blob, walk->at + at, len,
                          walk->end, ret, d);
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

        r = parquet_walk_bytes(walk, 0, len, &bytes, d);
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
    while (!walk->has_page && !walk->is_over && walk->left && walk->at < walk->end) {
        const struct page_header *h = &walk->header;
        int r = pages_header(walk, d);

        if (r < 0)
            return r;
        walk->is_spoilt = h->type == PAGE_DICTIONARY && walk->at != walk->chunk->start;
        if (walk->is_spoilt)
            return pages_stop(walk, "expected one dictionary page, in front, got another", d);
        walk->has_page = h->type == PAGE_DATA || h->type == PAGE_DATA_V2;
        walk->has_unknown |= h->type > PAGE_DATA_V2;
        if (walk->has_page && h->n > walk->left)
            return pages_stop(walk, "expected the values of the chunk, got more", d);
        walk->page_at = walk->at;
        walk->at += h->len;
        if (!walk->has_page)
            walk->at += h->packed;
        else if (!h->n)
            parquet_walk_skip(walk);
    }
    return walk->has_page && !walk->is_over;
}

void parquet_walk_skip(struct parquet_walk *walk)
{
    walk->has_page = false;
    walk->at += walk->header.packed;
    walk->left -= walk->header.n;
}

/* ---- dictionaries ---- */

struct pages_making {
    const struct parquet_walk *walk;
    struct diag *d;
};

/* Make the dictionary that the chunk begins with. */
static int pages_make_dictionary(void *ctx, void **ret, size_t *ret_size)
{
    const struct pages_making *m = ctx;
    const struct parquet_chunk *chunk = m->walk->chunk;
    const char *why = "expected a dictionary in front of the chunk, got none";
    AUTO_VALUES struct values v = {0};
    AUTO_WALK struct parquet_walk w;
    const uint8_t *body;
    int r = parquet_walk_init(&w, m->walk->file, m->walk->group, m->walk->leaf, chunk->start,
                              chunk->end, m->walk->memory->window.rc);

    if (r == 0)
        r = pages_header(&w, m->d);
    if (r == 0 && w.header.type != PAGE_DICTIONARY)
        r = pages_fail(&w, why, m->d);
    w.at += w.header.len;
    if (r == 0)
        r = parquet_walk_bytes(&w, 0, w.header.packed, &body, m->d);
    if (r == 0) {
        r = page_decode_dictionary(&w.column, &w.header, body, &w.memory->room, &v, &why);
        if (r == -EBADMSG)
            pages_fail(&w, why, m->d);
    }
    if (r == 0)
        r = blob_verify(w.file->base.blob, m->d);
    return r < 0 ? r : values_pack(&v, "", ret, ret_size);
}

static int pages_find_dictionary(struct parquet_walk *walk, struct diag *d)
{
    struct pages_making m = {walk, d};
    const struct memo_maker maker = {pages_make_dictionary, &m, walk->memory->window.rc};
    const struct memo_key key = {
        {(uintptr_t)walk->file, (uintptr_t)walk->chunk, (uintptr_t)pages_make_dictionary}};

    return walk->dictionary ? 0 : memo_get(walk->file->memo, &key, &maker, &walk->dictionary);
}

/* ---- bodies ---- */

bool parquet_walk_in_place(const struct parquet_walk *walk)
{
    const struct page_header *h = &walk->header;

    return walk->has_page && walk->has_places && h->encoding == ENCODING_PLAIN &&
           h->crc == PAGE_NO_CRC && h->packed == h->unpacked &&
           (walk->column.codec == CODEC_NONE || (h->type == PAGE_DATA_V2 && !h->is_packed));
}

static int pages_read_packed(void *ctx, uint64_t at, size_t len, const uint8_t **ret)
{
    return parquet_walk_bytes(ctx, at, len, ret, NULL);
}

int parquet_walk_value(struct parquet_walk *walk, uint64_t at, uint64_t len, const uint8_t **ret)
{
    const struct page_header *h = &walk->header;
    struct values_memory *room = &walk->memory->room;
    bool is_v1 = h->type == PAGE_DATA;
    const struct codec_packed packed = {is_v1 ? 0 : h->rep_bytes + h->def_bytes, h->packed,
                                        pages_read_packed, walk};
    uint8_t size[4] = {0};
    uint64_t from;
    int r = h->encoding == ENCODING_PLAIN && h->crc == PAGE_NO_CRC && (is_v1 || h->is_packed)
                ? 0
                : -ENODATA;

    if (r == 0 && is_v1 && walk->column.max_def) { /* the length of the levels is in front */
        r = codec_unpack_part(&packed, 0, sizeof(size), size);
        at += sizeof(size) + load_le32(size);
    }
    from = at / CODEC_BLOCK * CODEC_BLOCK;
    if (r == 0 && (at > h->unpacked || len > h->unpacked || at + 4 + len > h->unpacked))
        r = -ENODATA;
    if (r == 0)
        r = values_memory_have(room, (size_t)(at + 4 + len - from));
    if (r == 0)
        r = codec_unpack_part(&packed, (size_t)from, (size_t)(at + 4 + len), room->bytes);
    if (r == 0 && load_le32(room->bytes + (at - from)) != len)
        r = -ENODATA;
    if (r == 0)
        *ret = room->bytes + (at - from) + 4;
    return r == -EBADMSG ? -ENODATA : r; /* reading all of the page says what is wrong */
}

/* Append the values of the page. 0, -EBADMSG with the reason in d, or another -errno. */
static int pages_decode(struct parquet_walk *walk, struct page_data *ret, struct diag *d)
{
    const struct page_header *h = &walk->header;
    bool wants = h->encoding == ENCODING_PLAIN_DICTIONARY || h->encoding == ENCODING_RLE_DICTIONARY;
    const char *why = NULL;
    const uint8_t *body;
    int r = wants ? pages_find_dictionary(walk, d) : 0;

    if (r == 0)
        r = parquet_walk_bytes(walk, 0, h->packed, &body, d);
    if (r == 0) {
        r = page_decode(&walk->column, h, body,
                        walk->dictionary ? memo_bytes(walk->dictionary) : NULL, &walk->memory->room,
                        ret, &why);
        if (r == -EBADMSG)
            pages_fail(walk, why, d);
    }
    if (r == 0 || r == -EBADMSG) {
        walk->lost = h->n;
        parquet_walk_skip(walk);
    }
    return r;
}

/* Values that cannot be read: those of flat columns are bad; of others, what follows is lost. */
static int pages_lose(struct parquet_walk *walk, struct page_data *data)
{
    size_t n = (size_t)walk->lost;
    int r = walk->column.max_rep || walk->is_over ? 0 : page_data_grow(&walk->column, data, n);

    walk->is_cut = walk->is_over |= walk->column.max_rep > 0;
    if (r < 0 || walk->is_cut)
        return r;
    r = values_append_marked(&data->v, n, VALUE_BAD);
    if (r == 0 && data->def)
        memset(data->def + data->n, (int)walk->column.max_def, n);
    data->n += r == 0 ? n : 0;
    data->n_values += r == 0 ? n : 0;
    return r;
}

int parquet_walk_unit(struct parquet_walk *walk, bool splits, struct page_data *ret, size_t *ret_n,
                      struct diag *d)
{
    const uint8_t *all;
    int r = 0;

    ret->v.width = walk->column.width;
    if (!splits && walk->end > walk->at && walk->end - walk->at <= PARQUET_AT_ONCE) /* at once */
        r = parquet_walk_bytes(walk, 0, walk->end - walk->at, &all, d);
    while (r == 0 && !walk->is_cut) {
        bool is_full =
            splits && (ret->v.len >= PARQUET_UNIT_BYTES || ret->n >= PARQUET_UNIT_VALUES);

        *ret_n = ret->n;
        r = parquet_walk_page(walk, d);
        if (!ret->n)
            walk->unit_at = walk->has_page ? walk->page_at : min_u64(walk->at, walk->end);
        if (r == 0)
            break;
        if (r == 1 && splits && (parquet_walk_in_place(walk) || (is_full && !walk->column.max_rep)))
            return 1;
        if (r == 1)
            r = pages_decode(walk, ret, d);
        if (r == 0 && is_full && ret->rep && !ret->rep[*ret_n])
            return 1;
        if (r == -EBADMSG && walk->is_spoilt && !splits)
            page_data_release(ret);
        if (r == -EBADMSG)
            r = pages_lose(walk, ret);
    }
    *ret_n = ret->n;
    return r;
}
