/* Thumbnails: pictures of records in small, of each dataset that has pictures. They are drawn, and
 * a check looks at them. One that cannot be decoded is a crossed box, so that what is drawn shows
 * it. */
#include <errno.h>
#include <string.h>

#include "base/read_context.h"
#include "format/picture/magic.h"
#include "format/records/record_pictures_parts.h"

#define THUMBNAIL_BYTES ((size_t)RECORD_THUMBNAIL * RECORD_THUMBNAIL * CHANNELS)
#define FRAME           2 /* pixels */

/* What stands for a picture: a plain box where there is none, a crossed one where it is bad. */
static void draw_box(bool crossed, uint8_t ret[static THUMBNAIL_BYTES])
{
    static const uint8_t colours[2][CHANNELS] = {{48, 48, 48}, {224, 64, 64}};

    for (unsigned i = 0; i < RECORD_THUMBNAIL * RECORD_THUMBNAIL; i++) {
        unsigned x = i % RECORD_THUMBNAIL, y = i / RECORD_THUMBNAIL;
        unsigned x_back = RECORD_THUMBNAIL - 1 - x, y_back = RECORD_THUMBNAIL - 1 - y;
        bool marked = x < FRAME || y < FRAME || x_back < FRAME || y_back < FRAME || x + 1 - y < 3 ||
                      x + 1 - y_back < 3;

        memcpy(ret + i * CHANNELS, colours[crossed && marked], CHANNELS);
    }
}

static int thumbnail_dims(const struct dataset *ds, const struct record_content *c, uint64_t record,
                          uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    (void)ds;
    (void)record;
    (void)d;
    memcpy(ret_dim, c->dim, c->ndim * sizeof(c->dim[0]));
    return 0;
}

static int thumbnail_read(struct read_context *rc, const struct dataset *ds,
                          const struct record_content *c, uint64_t record, uint64_t off, size_t len,
                          uint8_t *dst, struct diag *d)
{
    bool has = record_made_has(ds, c, record);
    AUTO_MEMO struct memo_thing *thing = NULL;
    const struct made *made = NULL;
    uint8_t box[THUMBNAIL_BYTES];
    int r = has ? record_made_get(rc, ds, c, record, &thing, d) : 0;

    if (r < 0)
        return r;
    if (has)
        made = memo_bytes(thing);
    if (!made || made->is_bad)
        draw_box(has, box);
    memcpy(dst, (made && !made->is_bad ? made->bytes : box) + off, len);
    return 0;
}

/* Is the picture what its extension says, and can it be decoded? */
static int thumbnail_check(struct read_context *rc, const struct dataset *ds,
                           const struct record_content *c, uint64_t record, struct diag *d)
{
    const struct record_pictures *p = pictures_of(c);
    const struct record_content *source = record_made_source(&p->made, ds, record);
    AUTO_MEMO struct memo_thing *thing = NULL;
    const struct made *made;
    char where[RECORD_WHERE];
    const char *ext = NULL;
    int r = source ? record_made_get(rc, ds, c, record, &thing, d) : 0;

    if (r < 0 || !source)
        return r;
    made = memo_bytes(thing);
    if (made->is_bad)
        return diag_set(d, -EBADMSG, "%s", (const char *)made->bytes);
    for (unsigned i = 0; i < p->made.n; i++)
        ext = p->made.source[i] == source ? p->ext[i] : ext;
    if (picture_format_of_ext(ext) == made->what)
        return 0;
    record_made_where(ds, c, record, where);
    return diag_set(d, -EBADMSG, "%s: expected %s, as the extension .%s says, got a %s picture",
                    where, picture_format_name(picture_format_of_ext(ext)), ext,
                    picture_format_name(made->what));
}

static const struct record_ops thumbnail_ops = {
    .dims = thumbnail_dims,
    .read = thumbnail_read,
    .extent = record_made_extent,
    .where = record_made_where,
    .check = thumbnail_check,
    .is_made = record_made_is_made,
    .make = record_made_make,
};

int record_thumbnails_add(struct dataset *ds, const struct format_setup *setup,
                          const struct record_content *const *source,
                          const struct record_column *column, unsigned n,
                          struct record_pictures **ret)
{
    struct record_content like;
    struct record_pictures *p;
    int r = record_pictures_new(setup, RECORD_THUMBNAIL, RECORD_THUMBNAIL, source, n, &p);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < n; i++) {
        const char *ext = column[source[i]->column].ext, *dot = strrchr(ext, '.');

        p->ext[i] = dot ? dot + 1 : ext;
    }
    like = record_pictures_like(p, false);
    like.ops = &thumbnail_ops;
    like.is_parsed = true;
    p->made.like = like;
    record_made_content(&p->made, &p->boxed, &like, p->made.unit_bytes);
    records_add_item(ds, &p->boxed.content, "thumbnail", IN_PREVIEW);
    *ret = p;
    return 0;
}
