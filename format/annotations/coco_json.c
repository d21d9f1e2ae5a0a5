/* The pass over the text: each list, each record of a list, each member of a record. Nothing here
 * compares two records: that is coco_check.c. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/text.h"
#include "format/annotations/coco.h"
#include "format/annotations/coco_data.h"
#include "format/annotations/json_stream.h"
#include "format/core/decimal.h"

struct coco_reader {
    struct json_stream s;
    struct coco *c;
    struct text json; /* a caption */
    union {
        int64_t integer;
        double real;
        struct value_part part;
        uint8_t numbers[sizeof(float) * (COCO_NUMBERS_MAX + 1)]; /* float32, little-endian */
    } item;
    const void *items; /* [n] of the value that was read: the item, unless a reader sets it */
    size_t n;
};

/* ---- values: readers, once the first token is read and not null. 0 or an error ---- */

static int coco_json_wrong(struct coco_reader *g, const char *name, const char *expected)
{
    const struct json_stream *s = &g->s;

    return json_stream_bad(
        s, s->at, "%s has a wrong value: expected %s, got %s%.40s. Correct it in the file", name,
        expected, s->token == JSON_TOKEN_NUMBER ? "" : json_stream_found(s),
        s->token == JSON_TOKEN_NUMBER ? s->text : "");
}

/* A whole number, which may be written as 1.0 or 1e3. */
static bool coco_json_whole(const char *text, size_t len, int64_t *ret)
{
    char *end;
    double v;

    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (!*end && !errno)
        return true;
    if (!text[strcspn(text, ".eE")])
        return false;
    if (!decimal_parse_double((const uint8_t *)text, (const uint8_t *)text + len, &v) ||
        !(fabs(v) <= (double)(INT64_C(1) << 53)) || v != trunc(v))
        return false;
    *ret = (int64_t)v;
    return true;
}

static int coco_json_integer(struct coco_reader *g, const char *name)
{
    return g->s.token == JSON_TOKEN_NUMBER && coco_json_whole(g->s.text, g->s.len, &g->item.integer)
               ? 0
               : coco_json_wrong(g, name, "a whole number of 64 bits");
}

/* The same, or true or false. */
static int coco_json_flag(struct coco_reader *g, const char *name)
{
    g->item.integer = g->s.token == JSON_TOKEN_TRUE;
    return g->s.token == JSON_TOKEN_TRUE || g->s.token == JSON_TOKEN_FALSE ||
                   (g->s.token == JSON_TOKEN_NUMBER &&
                    coco_json_whole(g->s.text, g->s.len, &g->item.integer))
               ? 0
               : coco_json_wrong(g, name, "0 or 1");
}

static int coco_json_real(struct coco_reader *g, const char *name)
{
    const uint8_t *text = (const uint8_t *)g->s.text;

    return g->s.token == JSON_TOKEN_NUMBER &&
                   decimal_parse_double(text, text + g->s.len, &g->item.real) &&
                   isfinite(g->item.real)
               ? 0
               : coco_json_wrong(g, name, "a finite number");
}

/* A text that is not empty, with its NUL. */
static int coco_json_name(struct coco_reader *g, const char *name)
{
    if (g->s.token != JSON_TOKEN_STRING)
        return coco_json_wrong(g, name, "a string");
    g->items = g->s.text;
    g->n = g->s.len + 1;
    return g->s.len ? 0 : coco_json_wrong(g, name, "a text that is not empty");
}

/* A text with its NUL. A number, true or false is an empty one. */
static int coco_json_url(struct coco_reader *g, const char *name)
{
    const bool is_text = g->s.token == JSON_TOKEN_STRING;

    if (g->s.token == JSON_TOKEN_LIST || g->s.token == JSON_TOKEN_OBJECT)
        return coco_json_wrong(g, name, "a string");
    g->items = is_text ? g->s.text : "";
    g->n = is_text ? g->s.len + 1 : 1;
    return 0;
}

static int coco_json_caption(struct coco_reader *g, const char *name)
{
    if (g->s.token != JSON_TOKEN_STRING)
        return coco_json_wrong(g, name, "a string");
    g->json.len = 0;
    text_add_json(&g->json, g->s.text);
    g->items = g->json.data;
    g->n = g->json.len;
    return g->json.failed ? -ENOMEM : 0;
}

/* The numbers of a list that has begun: how many, most + 1: it has more; or an error. */
static int coco_json_numbers(struct coco_reader *g, const char *name, int most)
{
    int n = 0, r;

    while ((r = json_stream_item(&g->s)) > 0 && n < most) {
        const uint8_t *text = (const uint8_t *)g->s.text;
        uint32_t bits;
        float v;

        if (g->s.token != JSON_TOKEN_NUMBER || !decimal_parse(text, text + g->s.len, &v) ||
            !isfinite(v))
            return coco_json_wrong(g, name, "finite numbers of float32");
        memcpy(&bits, &v, sizeof(bits));
        store_le32(g->item.numbers + sizeof(v) * (size_t)n++, bits);
    }
    return r < 0 ? r : n + r;
}

static int coco_json_box(struct coco_reader *g, const char *name)
{
    const uint64_t at = g->s.at;
    int n;

    if (g->s.token != JSON_TOKEN_LIST)
        return coco_json_wrong(g, name, "a list of 4 numbers");
    n = coco_json_numbers(g, name, 4);
    if (n < 0 || n == 4)
        return n < 0 ? n : 0;
    return json_stream_bad(&g->s, at,
                           "bbox has a wrong length: expected 4 numbers (x, y, width, height),"
                           " got %s. Correct it or remove the annotation",
                           n > 4 ? "more" : "fewer");
}

static int coco_json_keypoints(struct coco_reader *g, const char *name)
{
    const uint64_t at = g->s.at;
    unsigned *width = &g->c->width;
    int n;

    if (g->s.token != JSON_TOKEN_LIST)
        return coco_json_wrong(g, name, "a list of numbers");
    n = coco_json_numbers(g, name, COCO_NUMBERS_MAX);
    if (n < 0)
        return n;
    if (!n || n % 3 || n > COCO_NUMBERS_MAX || (*width && (unsigned)n != *width))
        return json_stream_bad(&g->s, at,
                               "keypoints have a wrong length: expected 3 numbers for each point,"
                               " 1 to %u points, as many in each annotation, got %d numbers."
                               " Correct it, or split the file",
                               COCO_NUMBERS_MAX / 3, n);
    g->n = *width = (unsigned)n;
    return 0;
}

/* ---- members. To add one of annotations: a row, and its number in enum coco_member ---- */

struct coco_member_reader {
    const char *name;
    /* NULL: a part of the text, whatever it is */
    int (*read)(struct coco_reader *g, const char *name);
    enum value_form form;
    enum dtype dtype;
    bool is_list;
    unsigned width;
};

static const struct coco_member_reader coco_image_members[] = {
    [COCO_ENTRY_ID] = {"id", coco_json_integer, VALUE_NUMBERS, DTYPE_I8, false, 0},
    [COCO_ENTRY_NAME] = {"file_name", coco_json_name, VALUE_TEXT, DTYPE_U1, false, 0},
    [COCO_ENTRY_URL] = {"coco_url", coco_json_url, VALUE_TEXT, DTYPE_U1, false, 0},
};
static const struct coco_member_reader coco_category_members[] = {
    [COCO_ENTRY_ID] = {"id", coco_json_integer, VALUE_NUMBERS, DTYPE_I8, false, 0},
    [COCO_ENTRY_NAME] = {"name", coco_json_name, VALUE_TEXT, DTYPE_U1, false, 0},
};
static const struct coco_member_reader coco_annotation_members[] = {
    [COCO_IMAGE_ID] = {"image_id", coco_json_integer, VALUE_NUMBERS, DTYPE_I8, false, 0},
    [COCO_ID] = {"id", coco_json_integer, VALUE_NUMBERS, DTYPE_I8, false, 0},
    [COCO_CATEGORY_ID] = {"category_id", coco_json_integer, VALUE_NUMBERS, DTYPE_I8, false, 0},
    [COCO_BBOX] = {"bbox", coco_json_box, VALUE_NUMBERS, DTYPE_F4, false, 4},
    [COCO_ISCROWD] = {"iscrowd", coco_json_flag, VALUE_NUMBERS, DTYPE_I8, false, 0},
    [COCO_AREA] = {"area", coco_json_real, VALUE_NUMBERS, DTYPE_F8, false, 0},
    [COCO_SEGMENTATION] = {"segmentation", NULL, VALUE_PARTS, DTYPE_U1, false, 0},
    [COCO_KEYPOINTS] = {"keypoints", coco_json_keypoints, VALUE_NUMBERS, DTYPE_F4, true, 0},
    [COCO_NUM_KEYPOINTS] = {"num_keypoints", coco_json_integer, VALUE_NUMBERS, DTYPE_I8, false, 0},
    [COCO_CAPTION] = {"caption", coco_json_caption, VALUE_TEXT, DTYPE_U1, false, 0},
};

static const struct coco_list_reader {
    const char *name;
    const struct coco_member_reader *member; /* [n] */
    unsigned n;
    uint32_t needed; /* bits of members that each record has */
} coco_lists[N_COCO_LISTS] = {
    [COCO_IMAGES] = {"images", coco_image_members, ARRAY_LEN(coco_image_members), 3},
    [COCO_ANNOTATIONS] = {"annotations", coco_annotation_members,
                          ARRAY_LEN(coco_annotation_members), 1u << COCO_IMAGE_ID},
    [COCO_CATEGORIES] = {"categories", coco_category_members, ARRAY_LEN(coco_category_members), 3},
};

/* Go to the next member that is one of a record of the list, or with NULL a list: 1 + its number;
 * 0: the object ends; or an error. *seen: bits of those that it had. */
static int coco_json_member(struct coco_reader *g, const struct coco_list_reader *list,
                            uint32_t *seen)
{
    const unsigned n = list ? list->n : N_COCO_LISTS;
    int r;

    while ((r = json_stream_member(&g->s)) > 0) {
        unsigned i = 0;

        for (; i < n; i++) {
            const char *name = list ? list->member[i].name : coco_lists[i].name;

            if (!strcmp(name, g->s.text))
                break;
        }
        if (i < n && *seen >> i & 1)
            return json_stream_bad(&g->s, g->s.at,
                                   "member is repeated: expected one %s in an object, got two."
                                   " Remove one",
                                   g->s.text);
        if (i < n) {
            *seen |= 1u << i;
            return (int)i + 1;
        }
        r = json_stream_skip(&g->s, NULL);
        if (r < 0)
            return r;
    }
    return r;
}

/* Read the value of a member into its column: 1; 0: it is null; or an error. */
static int coco_json_value(struct coco_reader *g, const struct coco_member_reader *m,
                           struct value_column *c, size_t row)
{
    enum json_token first;
    int r = m->read ? json_stream_next(&g->s) : json_stream_skip(&g->s, &first);

    if (r < 0 || (m->read ? g->s.token : first) == JSON_TOKEN_NULL)
        return r;
    g->items = &g->item;
    g->n = 1;
    if (m->read)
        r = m->read(g, m->name);
    else
        g->item.part = (struct value_part){g->s.at, json_stream_place(&g->s) - g->s.at};
    if (r == 0)
        r = value_column_set(c, row, g->items, g->n);
    return r < 0 ? r : 1;
}

static int coco_json_record(struct coco_reader *g, enum coco_list which)
{
    const struct coco_list_reader *list = &coco_lists[which];
    struct coco_records *records = &g->c->list[which];
    const uint64_t at = g->s.at;
    uint32_t seen = 0, has = 0, missing;
    int member;

    while ((member = coco_json_member(g, list, &seen)) > 0) {
        const unsigned i = (unsigned)member - 1;
        int r = coco_json_value(g, &list->member[i], &records->columns.column[i], records->n);

        if (r < 0)
            return r;
        has |= (uint32_t)r << i;
    }
    if (member < 0)
        return member;
    if (which == COCO_IMAGES && (has & 6) == 4) { /* LVIS has no file_name */
        const uint8_t *url;
        size_t n = value_items(&records->columns.column[COCO_ENTRY_URL], records->n, &url);

        if (value_column_set(&records->columns.column[COCO_ENTRY_NAME], records->n, url, n) < 0)
            return -ENOMEM;
        has |= n > 1 ? 2 : 0;
    }
    missing = list->needed & ~has;
    if (missing && which == COCO_ANNOTATIONS)
        return json_stream_bad(&g->s, at,
                               "annotation has no image: expected image_id, got none. Add it, or"
                               " remove the annotation");
    if (missing)
        return json_stream_bad(&g->s, at,
                               "object has no %s: expected id and %s, got one of them. Add it,"
                               " or remove the object",
                               list->member[__builtin_ctz(missing)].name,
                               list->member[COCO_ENTRY_NAME].name);
    if (records->n >= VALUE_NO_ROW ||
        array_capacity(&records->at, records->n, sizeof(*records->at)) < 0)
        return -ENOMEM;
    records->at[records->n++] = at;
    g->c->any |= which == COCO_ANNOTATIONS ? has : 0;
    return 0;
}

/* ---- the text ---- */

/* A list of objects. */
static int coco_json_records(struct coco_reader *g, enum coco_list which)
{
    const struct coco_list_reader *list = &coco_lists[which];
    int r = json_stream_next(&g->s);

    if (r < 0)
        return r;
    if (g->s.token != JSON_TOKEN_LIST)
        return coco_json_wrong(g, list->name, "a list of objects");
    while ((r = json_stream_item(&g->s)) > 0) {
        if (g->s.token != JSON_TOKEN_OBJECT)
            return coco_json_wrong(g, list->name, "a list of objects");
        r = coco_json_record(g, which);
        if (r < 0)
            return r;
    }
    return r;
}

static int coco_json_pass(struct coco_reader *g)
{
    uint32_t seen = 0;
    int list, r = json_stream_next(&g->s);

    if (r < 0)
        return r;
    if (g->s.token != JSON_TOKEN_OBJECT)
        return coco_json_wrong(g, "text", "an object with images and annotations");
    while ((list = coco_json_member(g, NULL, &seen)) > 0) {
        r = coco_json_records(g, (enum coco_list)(list - 1));
        if (r < 0)
            return r;
    }
    if (list < 0)
        return list;
    if (!(seen >> COCO_IMAGES & 1))
        return json_stream_bad(&g->s, g->s.at,
                               "object has no images: expected a member \"images\", got none. Add"
                               " it, or move the file to another folder");
    value_columns_remove(&g->c->list[COCO_IMAGES].columns, COCO_ENTRY_URL); /* it is in the names */
    g->c->has_categories = seen >> COCO_CATEGORIES & 1;
    return json_stream_next(&g->s); /* there is nothing more */
}

/* A column for each member of each list. */
static int coco_json_begin(struct coco *c)
{
    struct value_column *added;
    int r = 0;

    for (unsigned list = 0; list < N_COCO_LISTS; list++)
        for (unsigned i = 0; i < coco_lists[list].n && r == 0; i++) {
            const struct coco_member_reader *m = &coco_lists[list].member[i];

            r = value_columns_add(&c->list[list].columns, "", m->form, m->dtype, m->is_list,
                                  m->width, &added);
        }
    return r;
}

int coco_read(const struct blob *blob, const char *name, struct coco **ret, struct diag *d)
{
    AUTO_COCO struct coco *c = calloc(1, sizeof(*c));
    struct coco_reader g = {.c = c};
    struct diag reason = DIAG_INIT;
    int r;

    if (!c)
        return -ENOMEM;
    c->name = strdup(name);
    c->size = blob->size;
    if (!c->name || coco_json_begin(c) < 0)
        return -ENOMEM;
    json_stream_init(&g.s, blob, c->name, &reason);
    r = coco_json_pass(&g);
    json_stream_release(&g.s);
    text_release(&g.json);
    if (r == 0)
        r = coco_check(c, &reason);
    if (r == 0 || r == -EBADMSG) { /* of a file that changes neither is true */
        int changed = blob_verify(blob, d);

        if (changed < 0)
            return changed;
    }
    if (r < 0)
        return diag_set(d, r, "%s", diag_text(&reason, r));
    *ret = TAKE_PTR(c);
    return 0;
}

/* ---- is a file COCO JSON? By its first bytes, which may end within anything ---- */

/* Does the next value begin as a list of objects, or does the head end before that can be seen? */
static bool coco_head_has_objects(struct json_stream *s)
{
    if (json_stream_next(s) < 0)
        return json_stream_is_cut(s);
    if (s->token != JSON_TOKEN_LIST)
        return false;
    if (json_stream_next(s) < 0)
        return json_stream_is_cut(s);
    return s->token == JSON_TOKEN_OBJECT || s->token == JSON_TOKEN_LIST_END;
}

bool coco_head_says(const void *head, size_t len)
{
    AUTO_JSON_STREAM struct json_stream s;

    json_stream_init_bytes(&s, head, len);
    if (json_stream_next(&s) < 0 || s.token != JSON_TOKEN_OBJECT)
        return false;
    while (json_stream_member(&s) > 0) {
        bool is_categories = !strcmp(s.text, "categories"); /* others have these as well */

        if (!strcmp(s.text, "images") || !strcmp(s.text, "annotations"))
            return coco_head_has_objects(&s);
        if (json_stream_skip(&s, NULL) < 0)
            return is_categories && json_stream_is_cut(&s);
    }
    return false;
}
