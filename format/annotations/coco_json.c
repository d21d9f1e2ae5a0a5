/* The pass over the text: each list, each record of a list, each member of a record. Nothing here
 * compares two records: that is coco_check.c. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/text.h"
#include "format/annotations/coco.h"
#include "format/annotations/coco_data.h"
#include "format/annotations/json_stream.h"
#include "format/core/decimal.h"

struct coco_reader {
    struct json_stream s;
    struct coco *c;
    struct text json; /* a caption */
};

/* ---- values: 1; 0: it is null; or an error ---- */

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
    bool is_negative = *text == '-';
    uint64_t magnitude = 0;
    double v;

    if (number_parse(text + is_negative, len - is_negative, INT64_MAX, &magnitude) ==
        len - is_negative) {
        *ret = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
        return true;
    }
    if (!strcmp(text, "-9223372036854775808")) {
        *ret = INT64_MIN;
        return true;
    }
    if (!text[strcspn(text, ".eE")])
        return false;
    if (!decimal_parse_double((const uint8_t *)text, (const uint8_t *)text + len, &v) ||
        !(fabs(v) <= (double)(INT64_C(1) << 53)) || v != trunc(v))
        return false;
    *ret = (int64_t)v;
    return true;
}

static int coco_json_integer(struct coco_reader *g, const char *name, int64_t *ret)
{
    int r = json_stream_next(&g->s);

    if (r < 0 || g->s.token == JSON_TOKEN_NULL)
        return r;
    if (g->s.token != JSON_TOKEN_NUMBER || !coco_json_whole(g->s.text, g->s.len, ret))
        return coco_json_wrong(g, name, "a whole number of 64 bits");
    return 1;
}

/* The same, or true or false. */
static int coco_json_flag(struct coco_reader *g, const char *name, int64_t *ret)
{
    int r = json_stream_next(&g->s);

    if (r < 0 || g->s.token == JSON_TOKEN_NULL)
        return r;
    if (g->s.token == JSON_TOKEN_TRUE || g->s.token == JSON_TOKEN_FALSE)
        *ret = g->s.token == JSON_TOKEN_TRUE;
    else if (g->s.token != JSON_TOKEN_NUMBER || !coco_json_whole(g->s.text, g->s.len, ret))
        return coco_json_wrong(g, name, "0 or 1");
    return 1;
}

static int coco_json_real(struct coco_reader *g, const char *name, double *ret)
{
    int r = json_stream_next(&g->s);
    const uint8_t *text = (const uint8_t *)g->s.text;

    if (r < 0 || g->s.token == JSON_TOKEN_NULL)
        return r;
    if (g->s.token != JSON_TOKEN_NUMBER || !decimal_parse_double(text, text + g->s.len, ret) ||
        !isfinite(*ret))
        return coco_json_wrong(g, name, "a finite number");
    return 1;
}

static int coco_json_text(struct coco_reader *g, const char *name)
{
    int r = json_stream_next(&g->s);

    if (r < 0 || g->s.token == JSON_TOKEN_NULL)
        return r;
    return g->s.token == JSON_TOKEN_STRING ? 1 : coco_json_wrong(g, name, "a string");
}

/* The item of a list that was read, as float32, little-endian. */
static int coco_json_float(struct coco_reader *g, const char *name, uint8_t ret[static 4])
{
    const uint8_t *text = (const uint8_t *)g->s.text;
    uint32_t bits;
    float v;

    if (g->s.token != JSON_TOKEN_NUMBER || !decimal_parse(text, text + g->s.len, &v) ||
        !isfinite(v))
        return coco_json_wrong(g, name, "finite numbers of float32");
    memcpy(&bits, &v, sizeof(bits));
    store_le32(ret, bits);
    return 0;
}

/* The [ of a list. */
static int coco_json_list(struct coco_reader *g, const char *name, const char *expected)
{
    int r = json_stream_next(&g->s);

    if (r < 0 || g->s.token == JSON_TOKEN_NULL)
        return r;
    return g->s.token == JSON_TOKEN_LIST ? 1 : coco_json_wrong(g, name, expected);
}

static int coco_json_box(struct coco_reader *g, uint8_t ret[static 16])
{
    const char *name = coco_member_name[COCO_BBOX];
    int r = coco_json_list(g, name, "a list of 4 numbers");
    uint64_t at = g->s.at;
    unsigned n = 0;

    if (r <= 0)
        return r;
    while ((r = json_stream_item(&g->s)) > 0 && n < 4) {
        r = coco_json_float(g, name, &ret[(size_t)4 * n++]);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    if (n < 4 || r > 0)
        return json_stream_bad(&g->s, at,
                               "bbox has a wrong length: expected 4 numbers (x, y, width, height),"
                               " got %s. Correct it or remove the annotation",
                               r > 0 ? "more" : "fewer");
    return 1;
}

/* ---- texts and keypoints ---- */

static int coco_json_reserve(void *array, size_t *capacity, size_t needed, size_t each)
{
    void **at = array;
    size_t size = needed + needed / 2 + 64;
    void *grown;

    if (needed <= *capacity)
        return 0;
    if (size > SIZE_MAX / 2 / each)
        return -ENOMEM;
    grown = realloc(*at, size * each);
    if (!grown)
        return -ENOMEM;
    *at = grown;
    *capacity = size;
    return 0;
}

static int coco_json_keep(struct coco_texts *t, const char *text, size_t len, size_t *ret_place)
{
    int r = coco_json_reserve(&t->bytes, &t->capacity, t->len + len + 1, 1);

    if (r < 0)
        return r;
    memcpy(t->bytes + t->len, text, len);
    t->bytes[t->len + len] = '\0';
    *ret_place = t->len;
    t->len += len + 1;
    return 0;
}

/* The extra of an annotation, which is made where it has none. NULL: no memory. */
static struct coco_extra *coco_json_extra(struct coco_reader *g, struct coco_annotation *a)
{
    struct coco *c = g->c;

    if (!a->extra) {
        if (array_capacity(&c->extra, c->extras, sizeof(*c->extra)) < 0)
            return NULL;
        c->extra[c->extras] = (struct coco_extra){.num_keypoints = -1};
        a->extra = (uint32_t)++c->extras;
    }
    return &c->extra[a->extra - 1];
}

static int coco_json_caption(struct coco_reader *g, struct coco_annotation *a)
{
    struct coco_extra *extra;
    int r = coco_json_text(g, coco_member_name[COCO_CAPTION]);

    if (r <= 0)
        return r;
    extra = coco_json_extra(g, a);
    if (!extra)
        return -ENOMEM;
    g->json.len = 0;
    text_add_json(&g->json, g->s.text);
    if (g->json.failed)
        return -ENOMEM;
    extra->caption_len = g->json.len;
    r = coco_json_keep(&g->c->texts, g->json.data, g->json.len, &extra->caption_at);
    return r < 0 ? r : 1;
}

/* Room for n more numbers. */
static int coco_json_reserve_keypoints(struct coco *c, size_t n)
{
    return coco_json_reserve(&c->keypoints, &c->keypoints_capacity, c->numbers + n, 4);
}

/* The first n numbers of the file: as many has each annotation, and zeros are put before them. */
static int coco_json_first_keypoints(struct coco *c, size_t n)
{
    int r = coco_json_reserve_keypoints(c, n);

    if (r < 0)
        return r;
    memcpy(c->keypoints + 4 * n, c->keypoints, 4 * n);
    memset(c->keypoints, 0, 4 * n);
    c->numbers = 2 * n;
    c->width = (unsigned)n;
    return 0;
}

/* The numbers of a list that has begun, up to one more than may be. 0 or an error. */
static int coco_json_keypoint_numbers(struct coco_reader *g)
{
    struct coco *c = g->c;
    int r = 0, more;

    for (size_t n = 0; r == 0 && n <= COCO_NUMBERS_MAX; n++) {
        more = json_stream_item(&g->s);
        if (more <= 0)
            return more;
        r = coco_json_reserve_keypoints(c, 1);
        if (r == 0)
            r = coco_json_float(g, coco_member_name[COCO_KEYPOINTS], c->keypoints + 4 * c->numbers);
        c->numbers++;
    }
    return r;
}

static int coco_json_keypoints(struct coco_reader *g, struct coco_annotation *a)
{
    int r = coco_json_list(g, coco_member_name[COCO_KEYPOINTS], "a list of numbers");
    struct coco *c = g->c;
    size_t first = c->numbers, n;
    struct coco_extra *extra;
    uint64_t at = g->s.at;

    if (r <= 0)
        return r;
    r = coco_json_keypoint_numbers(g);
    if (r < 0)
        return r;
    n = c->numbers - first;
    if (!n || n % 3 || n > COCO_NUMBERS_MAX || (c->width && n != c->width))
        return json_stream_bad(&g->s, at,
                               "keypoints have a wrong length: expected 3 numbers for each point,"
                               " 1 to %u points, as many in each annotation, got %zu numbers."
                               " Correct it, or split the file",
                               COCO_NUMBERS_MAX / 3, n);
    if (!c->width) {
        r = coco_json_first_keypoints(c, n);
        first = n;
    }
    extra = r == 0 ? coco_json_extra(g, a) : NULL;
    if (!extra)
        return -ENOMEM;
    extra->keypoints = first;
    return 1;
}

static int coco_json_num_keypoints(struct coco_reader *g, struct coco_annotation *a)
{
    int64_t n;
    int r = coco_json_integer(g, coco_member_name[COCO_NUM_KEYPOINTS], &n);
    struct coco_extra *extra;

    if (r <= 0)
        return r;
    extra = coco_json_extra(g, a);
    if (!extra)
        return -ENOMEM;
    extra->num_keypoints = n;
    return 1;
}

static int coco_json_segmentation(struct coco_reader *g, struct value_part *ret)
{
    enum json_token first;
    int r = json_stream_skip(&g->s, &first);

    if (r < 0 || first == JSON_TOKEN_NULL)
        return r;
    *ret = (struct value_part){.at = g->s.at, .len = json_stream_place(&g->s) - g->s.at};
    return 1;
}

/* ---- records ---- */

/* Go to the next member that is one of n names: 1 + its place; 0: the object ends; or an error.
 * *seen: bits of those that it had. */
static int coco_json_member(struct coco_reader *g, const char *const *names, unsigned n,
                            unsigned *seen)
{
    int r;

    while ((r = json_stream_member(&g->s)) > 0) {
        unsigned i = 0;

        while (i < n && strcmp(names[i], g->s.text))
            i++;
        if (i < n && *seen >> i & 1)
            return json_stream_bad(&g->s, g->s.at,
                                   "member is repeated: expected one %s in an object, got two."
                                   " Remove one",
                                   names[i]);
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

/* An image or a category: an id and a name. Added to the n of *array. */
static int coco_json_entry(struct coco_reader *g, const char *const names[static 2],
                           struct coco_entry **array, size_t *n)
{
    struct coco_entry e = {.at = g->s.at};
    bool has[2] = {false, false};
    unsigned seen = 0;
    int member, r;

    while ((member = coco_json_member(g, names, 2, &seen)) > 0) {
        if (member == 1)
            r = coco_json_integer(g, names[0], &e.id);
        else
            r = coco_json_text(g, names[1]);
        if (r > 0 && member == 2 && !g->s.len)
            return coco_json_wrong(g, names[1], "a text that is not empty");
        has[member - 1] = r > 0;
        if (r > 0 && member == 2)
            r = coco_json_keep(&g->c->texts, g->s.text, g->s.len, &e.name);
        if (r < 0)
            return r;
    }
    if (member < 0)
        return member;
    for (unsigned i = 0; i < 2; i++)
        if (!has[i])
            return json_stream_bad(&g->s, e.at,
                                   "object has no %s: expected id and %s, got one of them. Add it,"
                                   " or remove the object",
                                   names[i], names[1]);
    if (*n >= VALUE_NO_ROW || array_capacity(array, *n, sizeof(e)) < 0)
        return -ENOMEM;
    (*array)[(*n)++] = e;
    return 0;
}

static int coco_json_image(struct coco_reader *g)
{
    static const char *const names[] = {"id", "file_name"};

    return coco_json_entry(g, names, &g->c->image, &g->c->images);
}

static int coco_json_category(struct coco_reader *g)
{
    static const char *const names[] = {"id", "name"};

    return coco_json_entry(g, names, &g->c->category, &g->c->categories);
}

static int coco_json_annotation_member(struct coco_reader *g, enum coco_member m,
                                       struct coco_annotation *a)
{
    switch (m) {
    case COCO_IMAGE_ID:
        return coco_json_integer(g, coco_member_name[m], &a->image_id);
    case COCO_ID:
        return coco_json_integer(g, coco_member_name[m], &a->id);
    case COCO_CATEGORY_ID:
        return coco_json_integer(g, coco_member_name[m], &a->category_id);
    case COCO_BBOX:
        return coco_json_box(g, a->box);
    case COCO_ISCROWD:
        return coco_json_flag(g, coco_member_name[m], &a->iscrowd);
    case COCO_AREA:
        return coco_json_real(g, coco_member_name[m], &a->area);
    case COCO_SEGMENTATION:
        return coco_json_segmentation(g, &a->segmentation);
    case COCO_KEYPOINTS:
        return coco_json_keypoints(g, a);
    case COCO_NUM_KEYPOINTS:
        return coco_json_num_keypoints(g, a);
    default:
        return coco_json_caption(g, a);
    }
}

static int coco_json_annotation(struct coco_reader *g)
{
    struct coco_annotation a = {.at = g->s.at, .area = NAN};
    struct coco *c = g->c;
    unsigned seen = 0;
    int member, r;

    while ((member = coco_json_member(g, coco_member_name, N_COCO_MEMBERS, &seen)) > 0) {
        r = coco_json_annotation_member(g, (enum coco_member)(member - 1), &a);
        if (r < 0)
            return r;
        if (r > 0)
            a.has |= 1u << (member - 1);
    }
    if (member < 0)
        return member;
    if (!(a.has >> COCO_IMAGE_ID & 1))
        return json_stream_bad(&g->s, a.at,
                               "annotation has no image: expected image_id, got none. Add it, or"
                               " remove the annotation");
    if (c->annotations >= UINT32_MAX ||
        array_capacity(&c->annotation, c->annotations, sizeof(a)) < 0)
        return -ENOMEM;
    c->annotation[c->annotations++] = a;
    c->any |= a.has;
    return 0;
}

/* ---- the text ---- */

/* A list of objects. */
static int coco_json_records(struct coco_reader *g, const char *name,
                             int (*record)(struct coco_reader *))
{
    int r = json_stream_next(&g->s);

    if (r < 0)
        return r;
    if (g->s.token != JSON_TOKEN_LIST)
        return coco_json_wrong(g, name, "a list of objects");
    while ((r = json_stream_item(&g->s)) > 0) {
        if (g->s.token != JSON_TOKEN_OBJECT)
            return coco_json_wrong(g, name, "a list of objects");
        r = record(g);
        if (r < 0)
            return r;
    }
    return r;
}

static int coco_json_pass(struct coco_reader *g)
{
    static int (*const records[])(struct coco_reader *) = {
        [COCO_IMAGES] = coco_json_image,
        [COCO_ANNOTATIONS] = coco_json_annotation,
        [COCO_CATEGORIES] = coco_json_category,
    };
    unsigned seen = 0;
    int list, r = json_stream_next(&g->s);

    if (r < 0)
        return r;
    if (g->s.token != JSON_TOKEN_OBJECT)
        return coco_json_wrong(g, "text", "an object with images and annotations");
    while ((list = coco_json_member(g, coco_list_name, N_COCO_LISTS, &seen)) > 0) {
        r = coco_json_records(g, coco_list_name[list - 1], records[list - 1]);
        if (r < 0)
            return r;
    }
    if (list < 0)
        return list;
    if (!(seen >> COCO_IMAGES & 1))
        return json_stream_bad(&g->s, g->s.at,
                               "object has no images: expected a member \"images\", got none. Add"
                               " it, or move the file to another folder");
    g->c->has_categories = seen >> COCO_CATEGORIES & 1;
    return json_stream_next(&g->s); /* there is nothing more */
}

int coco_read(const struct blob *blob, uint64_t at, uint64_t len, const char *name,
              struct coco **ret, struct diag *d)
{
    AUTO_COCO struct coco *c = calloc(1, sizeof(*c));
    struct coco_reader g = {.c = c};
    struct diag reason = DIAG_INIT;
    uint64_t end;
    int r;

    if (!c)
        return -ENOMEM;
    c->name = strdup(name);
    c->size = len;
    if (!c->name)
        return -ENOMEM;
    if (!checked_add(at, len, &end) || end > blob->size)
        return diag_set(d, -EINVAL, "%s: range is outside of the file", name);
    json_stream_init(&g.s, blob, at, len, c->name, &reason);
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
