/* The header: which pages there are, and how many rows. schema.c has the fields. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/mindrecord/layout/schema.h"

#define JSON_MOST     (UINT64_C(1) << 27) /* bytes */
#define MEMORY_MOST   (UINT64_C(1) << 30) /* that its values may take */
#define HEADER_LEAST  (UINT64_C(1) << 14)
#define HEADER_MOST   (UINT64_C(1) << 27)
#define PAGE_LEAST    (UINT64_C(1) << 15)
#define PAGE_MOST     (UINT64_C(1) << 28)
#define ROWS_UNPROVEN (UINT64_C(1) << 20) /* rows that a file may promise whatever its size */

bool header_number(const json_t *object, const char *key, uint64_t *ret)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static int number_in(const struct header_text *text, const json_t *object, const char *key,
                     uint64_t least, uint64_t most, uint64_t *ret)
{
    if (!header_number(object, key, ret) || *ret < least || *ret > most)
        return diag_set(text->d, -EBADMSG, "%s: header: expected %s from %llu to %llu, got %s",
                        text->name, key, (unsigned long long)least, (unsigned long long)most,
                        json_object_get(object, key) ? "another value" : "none");
    return 0;
}

/* ---- pages ---- */

struct pages {
    const struct header_text *text;
    uint64_t header_size, page_size, size; /* bytes; of the file */
    const json_t *page;                    /* an array */
    bool *seen;                            /* [pages] by page_id */
    struct mindrecord_header *header;
};

static int refuse_page(const struct pages *pages, size_t i, const char *why)
{
    return diag_set(pages->text->d, -EBADMSG, "%s: header: page %zu of the list: expected %s",
                    pages->text->name, i, why);
}

static int by_rows(const void *a, const void *b)
{
    const struct mindrecord_page *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_group(const void *a, const void *b)
{
    const struct mindrecord_page *x = a, *y = b;

    return (x->group > y->group) - (x->group < y->group);
}

/* What pages of both kinds have: *ret_at, *ret_used, in bytes of the file. */
static int read_place(const struct pages *pages, size_t i, uint64_t *ret_at, uint64_t *ret_used)
{
    const json_t *page = json_array_get(pages->page, i);
    uint64_t id;

    if (!header_number(page, "page_id", &id) || id >= json_array_size(pages->page) ||
        pages->seen[id])
        return refuse_page(pages, i, "a page_id of its own below the number of pages");
    pages->seen[id] = true;
    if (!header_number(page, "page_size", ret_used) || *ret_used > pages->page_size)
        return refuse_page(pages, i, "used bytes, at most page_size");
    if (!checked_mul(pages->page_size, id, ret_at) ||
        !checked_add(*ret_at, pages->header_size, ret_at) ||
        *ret_at > (uint64_t)INT64_MAX - *ret_used)
        return refuse_page(pages, i, "a place in the file");
    return 0;
}

static bool is_type(const json_t *page, const char *type)
{
    const char *found = json_string_value(json_object_get(page, "page_type"));

    return found && !strcmp(found, type);
}

static int add_blob_page(struct pages *pages, size_t i)
{
    const json_t *page = json_array_get(pages->page, i);
    struct mindrecord_page *p = &pages->header->page[pages->header->n_pages];
    int r = read_place(pages, i, &p->at, &p->used);

    if (r < 0)
        return r;
    if (!header_number(page, "page_type_id", &p->group) ||
        !header_number(page, "start_row_id", &p->start) ||
        !header_number(page, "end_row_id", &p->end) || p->end < p->start)
        return refuse_page(pages, i, "page_type_id, and start_row_id up to end_row_id");
    if (p->end - p->start > p->used / MINDRECORD_LENGTH)
        return refuse_page(pages, i, "no more rows than its bytes can have");
    pages->header->n_pages++;
    return 0;
}

static struct mindrecord_page *mindrecord_header_find_group(const struct pages *pages,
                                                            uint64_t group)
{
    const struct mindrecord_page key = {.group = group};

    return pages->header->n_pages
               ? bsearch(&key, pages->header->page, pages->header->n_pages, sizeof(key), by_group)
               : NULL;
}

static int by_raw_rows(const void *a, const void *b)
{
    const struct mindrecord_page *x = a, *y = b;

    return (x->raw_at > y->raw_at) - (x->raw_at < y->raw_at);
}

/* The raw rows of a group end where those of the next in their page begin. */
static void end_groups(struct mindrecord_header *header)
{
    uint64_t at = UINT64_MAX, next = UINT64_MAX;

    qsort(header->page, header->n_pages, sizeof(*header->page), by_raw_rows);
    for (size_t i = header->n_pages; i--;) {
        struct mindrecord_page *p = &header->page[i];

        next = p->raw_at < at ? at : next;
        at = p->raw_at;
        p->raw_end = min_u64(p->raw_end, next);
    }
}

static int add_raw_page(struct pages *pages, size_t i)
{
    const json_t *groups = json_object_get(json_array_get(pages->page, i), "row_group_ids");
    uint64_t at, used, group, offset;
    int r = read_place(pages, i, &at, &used);

    if (r < 0)
        return r;
    if (json_array_size(groups) > pages->header->n_pages)
        return refuse_page(pages, i, "no more row groups than there are blob pages");
    for (size_t k = 0; k < json_array_size(groups); k++) {
        const json_t *entry = json_array_get(groups, k);
        struct mindrecord_page *p;

        if (!header_number(entry, "id", &group) || !header_number(entry, "offset", &offset) ||
            offset > used)
            return refuse_page(pages, i, "row groups, each with an id and an offset in the page");
        p = mindrecord_header_find_group(pages, group);
        if (!p || p->raw_at)
            return refuse_page(pages, i,
                               p ? "row groups that no other raw page has"
                                 : "row groups that blob pages have");
        p->raw_at = at + offset;
        p->raw_end = at + used;
    }
    return 0;
}

static int check_rows(const struct pages *pages)
{
    struct mindrecord_header *header = pages->header;
    const struct header_text *text = pages->text;

    for (size_t i = 0; i < header->n_pages; i++) {
        if (header->page[i].start != header->rows)
            return diag_set(text->d, -EBADMSG,
                            "%s: header: expected row %llu in the next blob page, got row %llu",
                            text->name, (unsigned long long)header->rows,
                            (unsigned long long)header->page[i].start);
        header->rows = header->page[i].end;
    }
    if (header->rows > max_u64(ROWS_UNPROVEN, pages->size / MINDRECORD_LENGTH))
        return diag_set(text->d, -EBADMSG, "%s: header: expected %llu rows, got %llu bytes",
                        text->name, (unsigned long long)header->rows,
                        (unsigned long long)pages->size);
    return 0;
}

static int read_pages(struct pages *pages)
{
    struct mindrecord_header *header = pages->header;
    size_t n = json_array_size(pages->page);
    int r = 0;

    header->page = calloc(n + 1, sizeof(*header->page));
    if (!header->page)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++)
        if (is_type(json_array_get(pages->page, i), "BLOB_DATA"))
            r = add_blob_page(pages, i);
        else if (!is_type(json_array_get(pages->page, i), "RAW_DATA"))
            r = refuse_page(pages, i, "page_type RAW_DATA or BLOB_DATA");
    qsort(header->page, header->n_pages, sizeof(*header->page), by_group);
    for (size_t i = 1; i < header->n_pages && r == 0; i++)
        if (header->page[i - 1].group == header->page[i].group)
            r = diag_set(pages->text->d, -EBADMSG, "%s: header: row group %llu has two blob pages",
                         pages->text->name, (unsigned long long)header->page[i].group);
    for (size_t i = 0; i < n && r == 0; i++)
        if (is_type(json_array_get(pages->page, i), "RAW_DATA"))
            r = add_raw_page(pages, i);
    end_groups(header);
    qsort(header->page, header->n_pages, sizeof(*header->page), by_rows);
    return r < 0 ? r : check_rows(pages);
}

/* ---- shards ---- */

static int read_shards(const struct header_text *text, const json_t *json,
                       struct mindrecord_header *header)
{
    const json_t *addresses = json_object_get(json, "shard_addresses");
    size_t n = json_array_size(addresses);
    uint64_t shard;
    int r;

    if (!n || n > MINDRECORD_SHARDS)
        return diag_set(text->d, -EBADMSG,
                        "%s: header: expected from 1 to %u shard_addresses, got %zu", text->name,
                        MINDRECORD_SHARDS, n);
    r = number_in(text, json, "shard_id", 0, n - 1, &shard);
    if (r < 0)
        return r;
    header->shard = (unsigned)shard;
    header->address = calloc(n, sizeof(*header->address));
    if (!header->address)
        return -ENOMEM;
    for (header->n_shards = 0; header->n_shards < n; header->n_shards++) {
        const char *address = json_string_value(json_array_get(addresses, header->n_shards));

        if (!address || !*address)
            return diag_set(text->d, -EBADMSG, "%s: header: expected names in shard_addresses",
                            text->name);
        header->address[header->n_shards] = strdup(address);
        if (!header->address[header->n_shards])
            return -ENOMEM;
    }
    return 0;
}

/* What is the same in all shards of a dataset. */
static int mindrecord_header_make_set(const json_t *json, struct mindrecord_header *header)
{
    static const char *const keys[] = {"header_size",  "page_size",       "version", "schema",
                                       "index_fields", "shard_addresses", NULL};
    json_t *same = json_object();

    for (size_t i = 0; keys[i] && same; i++) {
        json_t *value = json_object_get(json, keys[i]);

        if (value && json_object_set(same, keys[i], value) < 0)
            break;
    }
    header->set = same ? json_dumps(same, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(same);
    return header->set ? 0 : -ENOMEM;
}

/* ---- all of it ---- */

static int mindrecord_layout_header_parse(const struct header_text *text, const json_t *json,
                                          uint64_t size, struct mindrecord_header *ret)
{
    struct pages pages = {.text = text, .size = size, .header = ret};
    const char *version = json_string_value(json_object_get(json, "version"));
    int r;

    if (!version || (strcmp(version, "2.0") != 0 && strcmp(version, "3.0") != 0))
        return diag_set(text->d, -EBADMSG, "%s: header: expected version 2.0 or 3.0, got %.20s",
                        text->name, version ? version : "none");
    r = number_in(text, json, "header_size", HEADER_LEAST, HEADER_MOST, &pages.header_size);
    if (r == 0)
        r = number_in(text, json, "page_size", PAGE_LEAST, PAGE_MOST, &pages.page_size);
    if (r == 0 && text->len + MINDRECORD_LENGTH > pages.header_size)
        r = diag_set(text->d, -EBADMSG, "%s: expected a header of %llu bytes, got %zu", text->name,
                     (unsigned long long)pages.header_size, text->len + MINDRECORD_LENGTH);
    if (r == 0)
        r = read_shards(text, json, ret);
    if (r == 0)
        r = mindrecord_schema(text, json_object_get(json, "schema"), version[0] == '3', ret);
    if (r == 0)
        r = mindrecord_header_make_set(json, ret);
    if (r < 0)
        return r;
    pages.page = json_object_get(json, "page");
    pages.seen = calloc(json_array_size(pages.page) + 1, sizeof(*pages.seen));
    r = pages.seen ? read_pages(&pages) : -ENOMEM;
    free(pages.seen);
    return r;
}

int mindrecord_header_parse(const char *json, size_t len, const char *name, uint64_t size,
                            struct mindrecord_header *ret, struct diag *d)
{
    const struct header_text text = {name, len, d};
    AUTO_JSON json_t *value = NULL;
    char what[512];
    int r;

    snprintf(what, sizeof(what), "%s: header", name);
    r = json_read(json, len, what, (size_t)min_u64(json_budget(len), MEMORY_MOST), &value, d);
    if (r == -EFBIG)
        return -EBADMSG;
    if (r == 0)
        r = mindrecord_layout_header_parse(&text, value, size, ret);
    if (r < 0)
        mindrecord_header_release(ret);
    return r;
}

int mindrecord_header_read(const struct blob *blob, struct mindrecord_header *ret, struct diag *d)
{
    AUTO_FREE char *json = NULL;
    uint8_t bytes[MINDRECORD_LENGTH];
    uint64_t len;
    int r;

    if (blob->size < sizeof(bytes))
        return diag_set(d, -EBADMSG, "%s: expected the length of a header, got %llu bytes",
                        blob_name(blob), (unsigned long long)blob->size);
    r = blob_read(READ_WAITS, blob, bytes, sizeof(bytes), 0, d);
    if (r < 0)
        return r;
    len = load_le64(bytes);
    if (len < 8 || len > JSON_MOST || len > blob->size - sizeof(bytes))
        return diag_set(
            d, -EBADMSG,
            "%s: byte 0: expected the length of a header in the file, at most %llu, got "
            "%llu",
            blob_name(blob), (unsigned long long)JSON_MOST, (unsigned long long)len);
    json = malloc((size_t)len);
    if (!json)
        return -ENOMEM;
    r = blob_read(READ_WAITS, blob, json, (size_t)len, sizeof(bytes), d);
    if (r == 0)
        r = blob_verify(blob, d);
    return r < 0 ? r
                 : mindrecord_header_parse(json, (size_t)len, blob_name(blob), blob->size, ret, d);
}

void mindrecord_header_release(struct mindrecord_header *header)
{
    for (unsigned i = 0; i < header->n_fields; i++)
        free(header->field[i].key);
    for (unsigned i = 0; i < header->n_shards; i++)
        free(header->address[i]);
    free(header->field);
    free(header->page);
    free(header->address);
    free(header->set);
    *header = (struct mindrecord_header){0};
}
