/* The JSON of a header: which pages there are, how many rows, the shards, and the fields: those of
 * blobs, in the order of their bytes, then those of raw rows. */
#include "format/mindrecord/layout/header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/json.h"

#define JSON_MOST     (UINT64_C(1) << 27) /* bytes */
#define MEMORY_MOST   (UINT64_C(1) << 30) /* that its values may take */
#define HEADER_LEAST  (UINT64_C(1) << 14)
#define HEADER_MOST   (UINT64_C(1) << 27)
#define PAGE_LEAST    (UINT64_C(1) << 15)
#define PAGE_MOST     (UINT64_C(1) << 28)
#define ROWS_UNPROVEN (UINT64_C(1) << 20) /* rows that a file may promise whatever its size */

struct header_reader {
    const char *name; /* of the file, */
    uint64_t size;    /* and its bytes */
    struct diag *d;
    uint64_t header_size, page_size; /* bytes */
    const json_t *page;              /* an array */
    bool *seen;                      /* [pages] by page_id */
    struct mindrecord_header *header;
};

/* A member that is a whole number, 0 or more. */
static bool header_number(const json_t *object, const char *key, uint64_t *ret)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static int header_number_in(const struct header_reader *h, const json_t *object, const char *key,
                            uint64_t least, uint64_t most, uint64_t *ret)
{
    if (!header_number(object, key, ret) || *ret < least || *ret > most)
        return diag_set(h->d, -EBADMSG,
                        "%s: header: expected %s from %" PRIu64 " to %" PRIu64 ", got %s", h->name,
                        key, least, most, json_object_get(object, key) ? "another value" : "none");
    return 0;
}

/* ---- fields ---- */

static const struct type {
    const char *name;
    enum mindrecord_type type;
    enum dtype dtype;
} header_types[] = {
    {"bytes", TYPE_BYTES, DTYPE_U1},   {"string", TYPE_TEXT, DTYPE_U1},
    {"int32", TYPE_INTEGER, DTYPE_I4}, {"int64", TYPE_INTEGER, DTYPE_I8},
    {"float32", TYPE_FLOAT, DTYPE_F4}, {"float64", TYPE_FLOAT, DTYPE_F8},
};

static int header_refuse_field(const struct header_reader *h, const char *key, const char *why)
{
    return diag_set(h->d, -EBADMSG, "%s: schema: field '%.100s': expected %s", h->name, key, why);
}

static int header_read_type(const struct header_reader *h, const char *key, const json_t *spec,
                            struct mindrecord_field *f)
{
    const char *name = json_string_value(json_object_get(spec, "type"));

    for (size_t i = 0; name && i < ARRAY_LEN(header_types); i++) {
        if (strcmp(name, header_types[i].name) != 0)
            continue;
        f->type = header_types[i].type;
        f->dtype = header_types[i].dtype;
        return 0;
    }
    if (name && (!strcmp(name, "array") || !strcmp(name, "number")))
        return diag_set(h->d, -EBADMSG,
                        "%s: field '%.100s': pre-release MindRecord schema type '%s'", h->name, key,
                        name);
    return header_refuse_field(h, key, "type bytes, string, int32, int64, float32, or float64");
}

static int header_read_shape(const struct header_reader *h, const char *key, const json_t *shape,
                             struct mindrecord_field *f)
{
    bool varies = false;

    f->ndim = (unsigned)json_array_size(shape);
    if (!f->ndim || json_array_size(shape) > RECORD_AXES)
        return header_refuse_field(h, key, "a shape of 1 to 8 axes");
    for (unsigned i = 0; i < f->ndim; i++) {
        const json_t *axis = json_array_get(shape, i);
        json_int_t v = json_integer_value(axis);

        if (!json_is_integer(axis) || v < -1 || (v == -1 && varies) || v > UINT32_MAX)
            return header_refuse_field(h, key, "axes of 0 to 4294967295, of which one may be -1");
        varies |= v == -1;
        f->dim[i] = v == -1 ? DIM_VARIES : (uint64_t)v;
    }
    return 0;
}

static int header_read_field(const struct header_reader *h, const char *key, const json_t *spec,
                             bool packs, struct mindrecord_field *f)
{
    const json_t *shape = json_object_get(spec, "shape");
    int r = header_read_type(h, key, spec, f);

    if (r < 0)
        return r;
    record_name(key, strlen(key), RECORD_NAME_MAX, f->name);
    if (shape && f->type == TYPE_TEXT)
        return header_refuse_field(h, key, "no shape of a string");
    if (shape && f->type != TYPE_BYTES) {
        f->packed = packs && f->type == TYPE_INTEGER;
        f->type = TYPE_ARRAY;
        r = header_read_shape(h, key, shape, f);
    }
    return r;
}

static int header_add_field(const struct header_reader *h, const char *key, const json_t *spec,
                            bool packs, bool in_blob)
{
    struct mindrecord_header *header = h->header;
    struct mindrecord_field *f = &header->field[header->n_fields];
    int r = header_read_field(h, key, spec, packs, f);

    if (r < 0)
        return r;
    if (in_blob != (f->type < TYPE_TEXT))
        return header_refuse_field(h, key,
                                   in_blob ? "bytes or an array, as blob_fields say"
                                           : "blob_fields to have it, as it is bytes or an array");
    f->key = strdup(key);
    if (!f->key)
        return -ENOMEM;
    header->n_fields++;
    header->n_blobs += in_blob;
    return 0;
}

static bool header_has_field(const struct mindrecord_header *header, unsigned n, const char *key)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(header->field[i].key, key))
            return true;
    return false;
}

/* packs: version 3.0. */
static int header_read_schema(const struct header_reader *h, const json_t *schemas, bool packs)
{
    const json_t *entry = json_array_get(schemas, 0),
                 *blobs = json_object_get(entry, "blob_fields");
    json_t *fields = json_object_get(entry, "schema"), *spec;
    size_t n = json_object_size(fields);
    struct mindrecord_header *header = h->header;
    const char *key;
    int r = 0;

    if (json_array_size(schemas) != 1 || !n || n > MINDRECORD_FIELDS)
        return diag_set(h->d, -EBADMSG,
                        "%s: schema: expected one, with 1 to %u fields, got %zu with %zu", h->name,
                        MINDRECORD_FIELDS, json_array_size(schemas), n);
    header->field = calloc(n, sizeof(*header->field));
    if (!header->field)
        return -ENOMEM;
    for (size_t i = 0; i < json_array_size(blobs) && r == 0; i++) {
        key = json_string_value(json_array_get(blobs, i));
        spec = key ? json_object_get(fields, key) : NULL;
        if (!spec || header_has_field(header, header->n_fields, key))
            r = header_refuse_field(h, key ? key : "", "blob_fields that are fields, each once");
        else
            r = header_add_field(h, key, spec, packs, true);
    }
    json_object_foreach(fields, key, spec)
    {
        if (r == 0 && !header_has_field(header, header->n_blobs, key))
            r = header_add_field(h, key, spec, packs, false);
    }
    return r;
}

/* ---- pages ---- */

static int header_refuse_page(const struct header_reader *h, size_t i, const char *why)
{
    return diag_set(h->d, -EBADMSG, "%s: header: page %zu of the list: expected %s", h->name, i,
                    why);
}

static int header_by_rows(const void *a, const void *b)
{
    const struct mindrecord_page *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int header_by_group(const void *a, const void *b)
{
    const struct mindrecord_page *x = a, *y = b;

    return (x->group > y->group) - (x->group < y->group);
}

/* What pages of both kinds have: *ret_at, *ret_used, in bytes of the file. */
static int header_read_place(const struct header_reader *h, size_t i, uint64_t *ret_at,
                             uint64_t *ret_used)
{
    const json_t *page = json_array_get(h->page, i);
    uint64_t id;

    if (!header_number(page, "page_id", &id) || id >= json_array_size(h->page) || h->seen[id])
        return header_refuse_page(h, i, "a page_id of its own below the number of pages");
    h->seen[id] = true;
    if (!header_number(page, "page_size", ret_used) || *ret_used > h->page_size)
        return header_refuse_page(h, i, "used bytes, at most page_size");
    if (!checked_mul(h->page_size, id, ret_at) || !checked_add(*ret_at, h->header_size, ret_at) ||
        *ret_at > (uint64_t)INT64_MAX - *ret_used)
        return header_refuse_page(h, i, "a place in the file");
    return 0;
}

static bool header_is_type(const json_t *page, const char *type)
{
    const char *found = json_string_value(json_object_get(page, "page_type"));

    return found && !strcmp(found, type);
}

static int header_add_blob_page(struct header_reader *h, size_t i)
{
    const json_t *page = json_array_get(h->page, i);
    struct mindrecord_page *p = &h->header->page[h->header->n_pages];
    int r = header_read_place(h, i, &p->at, &p->used);

    if (r < 0)
        return r;
    if (!header_number(page, "page_type_id", &p->group) ||
        !header_number(page, "start_row_id", &p->start) ||
        !header_number(page, "end_row_id", &p->end) || p->end < p->start)
        return header_refuse_page(h, i, "page_type_id, and start_row_id up to end_row_id");
    if (p->end - p->start > p->used / MINDRECORD_LENGTH)
        return header_refuse_page(h, i, "no more rows than its bytes can have");
    h->header->n_pages++;
    return 0;
}

static struct mindrecord_page *header_find_group(const struct header_reader *h, uint64_t group)
{
    const struct mindrecord_page key = {.group = group};

    return h->header->n_pages
               ? bsearch(&key, h->header->page, h->header->n_pages, sizeof(key), header_by_group)
               : NULL;
}

static int header_by_raw_rows(const void *a, const void *b)
{
    const struct mindrecord_page *x = a, *y = b;

    return (x->raw_at > y->raw_at) - (x->raw_at < y->raw_at);
}

/* The raw rows of a group end where those of the next in their page begin. */
static void header_end_groups(struct mindrecord_header *header)
{
    uint64_t at = UINT64_MAX, next = UINT64_MAX;

    qsort(header->page, header->n_pages, sizeof(*header->page), header_by_raw_rows);
    for (size_t i = header->n_pages; i--;) {
        struct mindrecord_page *p = &header->page[i];

        next = p->raw_at < at ? at : next;
        at = p->raw_at;
        p->raw_end = min_u64(p->raw_end, next);
    }
}

static int header_add_raw_page(struct header_reader *h, size_t i)
{
    const json_t *groups = json_object_get(json_array_get(h->page, i), "row_group_ids");
    uint64_t at, used, group, offset;
    int r = header_read_place(h, i, &at, &used);

    if (r < 0)
        return r;
    if (json_array_size(groups) > h->header->n_pages)
        return header_refuse_page(h, i, "no more row groups than there are blob pages");
    for (size_t k = 0; k < json_array_size(groups); k++) {
        const json_t *entry = json_array_get(groups, k);
        struct mindrecord_page *p;

        if (!header_number(entry, "id", &group) || !header_number(entry, "offset", &offset) ||
            offset > used)
            return header_refuse_page(h, i,
                                      "row groups, each with an id and an offset in the page");
        p = header_find_group(h, group);
        if (!p || p->raw_at)
            return header_refuse_page(h, i,
                                      p ? "row groups that no other raw page has"
                                        : "row groups that blob pages have");
        p->raw_at = at + offset;
        p->raw_end = at + used;
    }
    return 0;
}

static int header_check_rows(const struct header_reader *h)
{
    struct mindrecord_header *header = h->header;

    for (size_t i = 0; i < header->n_pages; i++) {
        if (header->page[i].start != header->rows)
            return diag_set(h->d, -EBADMSG,
                            "%s: header: expected row %" PRIu64
                            " in the next blob page, got row %" PRIu64,
                            h->name, header->rows, header->page[i].start);
        header->rows = header->page[i].end;
    }
    if (header->rows > max_u64(ROWS_UNPROVEN, h->size / MINDRECORD_LENGTH))
        return diag_set(h->d, -EBADMSG,
                        "%s: header: expected %" PRIu64 " rows, got %" PRIu64 " bytes", h->name,
                        header->rows, h->size);
    return 0;
}

static int header_read_pages(struct header_reader *h)
{
    struct mindrecord_header *header = h->header;
    size_t n = json_array_size(h->page);
    int r = 0;

    header->page = calloc(n + 1, sizeof(*header->page));
    if (!header->page)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++)
        if (header_is_type(json_array_get(h->page, i), "BLOB_DATA"))
            r = header_add_blob_page(h, i);
        else if (!header_is_type(json_array_get(h->page, i), "RAW_DATA"))
            r = header_refuse_page(h, i, "page_type RAW_DATA or BLOB_DATA");
    qsort(header->page, header->n_pages, sizeof(*header->page), header_by_group);
    for (size_t i = 1; i < header->n_pages && r == 0; i++)
        if (header->page[i - 1].group == header->page[i].group)
            r = diag_set(h->d, -EBADMSG, "%s: header: row group %" PRIu64 " has two blob pages",
                         h->name, header->page[i].group);
    for (size_t i = 0; i < n && r == 0; i++)
        if (header_is_type(json_array_get(h->page, i), "RAW_DATA"))
            r = header_add_raw_page(h, i);
    header_end_groups(header);
    qsort(header->page, header->n_pages, sizeof(*header->page), header_by_rows);
    return r < 0 ? r : header_check_rows(h);
}

/* ---- shards ---- */

static int header_read_shards(const struct header_reader *h, const json_t *json)
{
    struct mindrecord_header *header = h->header;
    const json_t *addresses = json_object_get(json, "shard_addresses");
    size_t n = json_array_size(addresses);
    uint64_t shard;
    int r;

    if (!n || n > MINDRECORD_SHARDS)
        return diag_set(h->d, -EBADMSG,
                        "%s: header: expected from 1 to %u shard_addresses, got %zu", h->name,
                        MINDRECORD_SHARDS, n);
    r = header_number_in(h, json, "shard_id", 0, n - 1, &shard);
    if (r < 0)
        return r;
    header->shard = (unsigned)shard;
    header->address = calloc(n, sizeof(*header->address));
    if (!header->address)
        return -ENOMEM;
    for (header->n_shards = 0; header->n_shards < n; header->n_shards++) {
        const char *address = json_string_value(json_array_get(addresses, header->n_shards));

        if (!address || !*address)
            return diag_set(h->d, -EBADMSG, "%s: header: expected names in shard_addresses",
                            h->name);
        header->address[header->n_shards] = strdup(address);
        if (!header->address[header->n_shards])
            return -ENOMEM;
    }
    return 0;
}

/* What is the same in all shards of a dataset. */
static int header_make_set(const json_t *json, struct mindrecord_header *header)
{
    static const char *const keys[] = {"header_size",  "page_size",       "version", "schema",
                                       "index_fields", "shard_addresses", NULL};
    AUTO_JSON json_t *same = json_object();
    bool whole = same;

    for (size_t i = 0; keys[i] && whole; i++) {
        json_t *value = json_object_get(json, keys[i]);

        whole = !value || json_object_set(same, keys[i], value) == 0;
    }
    header->set = whole ? json_dumps(same, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    return header->set ? 0 : -ENOMEM;
}

/* ---- all of it ---- */

static int header_read(struct header_reader *h, const json_t *json, size_t len)
{
    const char *version = json_string_value(json_object_get(json, "version"));
    int r;

    if (!version || (strcmp(version, "2.0") != 0 && strcmp(version, "3.0") != 0))
        return diag_set(h->d, -EBADMSG, "%s: header: expected version 2.0 or 3.0, got %.20s",
                        h->name, version ? version : "none");
    r = header_number_in(h, json, "header_size", HEADER_LEAST, HEADER_MOST, &h->header_size);
    if (r == 0)
        r = header_number_in(h, json, "page_size", PAGE_LEAST, PAGE_MOST, &h->page_size);
    if (r == 0 && len + MINDRECORD_LENGTH > h->header_size)
        r = diag_set(h->d, -EBADMSG, "%s: expected a header of %" PRIu64 " bytes, got %zu", h->name,
                     h->header_size, len + MINDRECORD_LENGTH);
    if (r == 0)
        r = header_read_shards(h, json);
    if (r == 0)
        r = header_read_schema(h, json_object_get(json, "schema"), version[0] == '3');
    if (r == 0)
        r = header_make_set(json, h->header);
    if (r < 0)
        return r;
    h->page = json_object_get(json, "page");
    h->seen = calloc(json_array_size(h->page) + 1, sizeof(*h->seen));
    r = h->seen ? header_read_pages(h) : -ENOMEM;
    free(h->seen);
    return r;
}

int mindrecord_header_parse(const char *json, size_t len, const char *name, uint64_t size,
                            struct mindrecord_header *ret, struct diag *d)
{
    struct header_reader h = {.name = name, .size = size, .d = d, .header = ret};
    AUTO_JSON json_t *value = NULL;
    char what[512];
    int r;

    snprintf(what, sizeof(what), "%s: header", name);
    r = json_read(json, len, what, (size_t)min_u64(json_budget(len), MEMORY_MOST), &value, d);
    if (r == -EFBIG)
        return -EBADMSG;
    if (r == 0)
        r = header_read(&h, value, len);
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
        return diag_set(d, -EBADMSG, "%s: expected the length of a header, got %" PRIu64 " bytes",
                        blob_name(blob), blob->size);
    r = blob_read(READ_WAITS, blob, bytes, sizeof(bytes), 0, d);
    if (r < 0)
        return r;
    len = load_le64(bytes);
    if (len < 8 || len > JSON_MOST || len > blob->size - sizeof(bytes))
        return diag_set(d, -EBADMSG,
                        "%s: byte 0: expected the length of a header in the file, at most %" PRIu64
                        ", got %" PRIu64,
                        blob_name(blob), JSON_MOST, len);
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
