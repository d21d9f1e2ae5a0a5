/* A picture is decoded as a whole, and remembered in the memo: its array is read in pieces, and by
 * several files. What a read needs next in its selection is decoded with it, on all cores.
 *
 * With keep_made= a decoded picture is also kept in the cache folder, and read from there by later
 * reads: whole, because only whole arrays have a checksum. A kept picture of a file of this machine
 * is only given while that file is the one that it was made of.
 *
 * That a picture cannot be decoded is remembered, too. Then its array cannot be read; or, with
 * bad_rows=zero, it is zeros in batches, where `image_ok` says so. Its place stays, because which
 * pictures are bad is only known once all have been decoded. */
#include "format/records/record_pictures_parts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "format/picture/kind.h"
#include "format/picture/picture.h"
#include "format/records/record_items.h"

#define MAKE_BYTES (UINT64_C(4) << 20) /* of arrays that are made at once */

static size_t pixel_bytes(const struct record_pictures *p)
{
    return (size_t)p->height * p->width * CHANNELS;
}

/* The content that has a record's picture, or NULL. */
const struct record_content *record_picture_source(const struct record_pictures *p,
                                                   const struct dataset *ds, uint64_t record)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct record_content *c = p->source[i];

        if (!c->ops->has || c->ops->has(ds, c, record))
            return c;
    }
    return NULL;
}

static void record_pictures_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- kept pictures ---- */

/* Which pictures they are: what of the records, and how it is made an array. */
static int name_kept(const struct record_pictures *p, const struct dataset *ds, struct text *t)
{
    text_add(t, "pictures 1 %ux%u ", p->height, p->width);
    picture_add_versions(t);
    for (unsigned i = 0; i < p->n; i++)
        text_add(t, " %u", p->source[i]->column);
    return p->identity(ds, t);
}

static int open_kept(const struct record_pictures *p, const struct dataset *ds,
                     struct made_file **ret)
{
    AUTO_TEXT struct text identity = {0}, source = {0};
    int r = name_kept(p, ds, &identity);

    text_add(&source, "%s%s, pictures of %ux%u", blob_source(ds->blob[0]),
             ds->n_blobs > 1 ? " and others" : "", p->height, p->width);
    if (r < 0 || identity.failed || source.failed)
        return r < 0 ? r : -ENOMEM;
    return made_open(p->store, identity.data, source.data, ds->samples, pixel_bytes(p), ret, NULL);
}

/* NULL: none are kept. */
static struct made_file *kept_of(struct record_pictures *p, const struct dataset *ds)
{
    struct made_file *kept = atomic_load_explicit(&p->kept, memory_order_acquire);

    if (kept || !atomic_load_explicit(&p->keeps, memory_order_relaxed))
        return kept;
    LOCK_SCOPE(&p->lock);

    kept = atomic_load(&p->kept);
    if (kept || !atomic_load(&p->keeps))
        return kept;
    if (open_kept(p, ds, &kept) < 0)
        atomic_store(&p->keeps, false);
    else
        atomic_store_explicit(&p->kept, kept, memory_order_release);
    return kept;
}

/* Is the file of a record's picture, on this machine, still the one that was found? Of remote files
 * the version is known. */
static bool record_pictures_is_same(struct read_context *rc, const struct dataset *ds,
                                    const struct record_content *c, uint64_t record)
{
    const struct record_content *source = record_picture_source(pictures_of(c), ds, record);
    struct extent e;
    uint8_t byte;

    if (!source || !source->ops->extent || !source->ops->extent(ds, source, record, &e))
        return false;
    return e.blob->ops->fetch ||
           (blob_pread(rc, e.blob, &byte, 1, e.off) == 0 && blob_verify(e.blob, NULL) == 0);
}

/* Read a kept picture. false: it is to be decoded. */
static bool read_kept(struct read_context *rc, const struct dataset *ds,
                      const struct record_content *c, uint64_t record, uint8_t *ret)
{
    struct record_pictures *p = pictures_of(c);
    const struct made_file *kept = kept_of(p, ds);

    if (!kept || !made_has(kept, record) || !record_pictures_is_same(rc, ds, c, record) ||
        !made_read(kept, record, ret))
        return false;
    if (p->counts)
        record_pictures_count(&p->counts->kept);
    return true;
}

/* ---- one picture ---- */

static void record_pictures_where(const struct dataset *ds, const struct record_content *source,
                                  uint64_t record, char ret[static RECORD_WHERE])
{
    uint8_t key[KEY_SIZE];
    size_t n = dataset_key(ds, record, key), used;

    source->ops->where(ds, source, record, ret);
    used = strlen(ret);
    snprintf(ret + used, RECORD_WHERE - used, " (%.*s)", (int)n, (const char *)key);
}

void record_picture_where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                          char ret[static RECORD_WHERE])
{
    const struct record_pictures *p = pictures_of(c);
    const struct record_content *source = record_picture_source(p, ds, record);

    record_pictures_where(ds, source ? source : p->source[0], record, ret);
}

/* The input of making one. Bytes are read before the memo makes a thing of them, because what reads
 * them may need things of that memo. */
struct work {
    struct read_context *rc;
    const struct dataset *ds;
    const struct record_content *c;
    uint64_t record;
    struct diag *d;
    bool is_read;
    uint8_t *bytes; /* [len] the file; owned; NULL: it is bad already, for this reason */
    size_t len;
    struct diag reason;
};

/* Is it the picture that is bad, for good? */
static bool is_bad(int r)
{
    return r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP;
}

/* source: NULL: the record has no picture. */
static int record_pictures_read_bytes(struct read_context *rc, const struct dataset *ds,
                                      const struct record_content *source, uint64_t record,
                                      uint8_t **ret, size_t *ret_len, struct diag *d)
{
    AUTO_FREE uint8_t *bytes = NULL;
    uint64_t dim[RECORD_AXES] = {0};
    char where[RECORD_WHERE];
    int r = source ? source->ops->dims(ds, source, record, dim, d) : 0;

    if (r < 0)
        return r;
    if (dim[0] > PICTURE_MAX_BYTES) {
        record_pictures_where(ds, source, record, where);
        return diag_set(d, -EFBIG, "%s: expected a picture of at most %llu bytes, got %llu", where,
                        (unsigned long long)PICTURE_MAX_BYTES, (unsigned long long)dim[0]);
    }
    bytes = malloc(dim[0] ? dim[0] : 1);
    if (!bytes)
        return -ENOMEM;
    if (dim[0])
        r = source->ops->read(rc, ds, source, record, 0, dim[0], bytes, d);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(bytes);
    *ret_len = dim[0];
    return 0;
}

static int read_picture(struct work *w)
{
    const struct record_content *source =
        record_picture_source(pictures_of(w->c), w->ds, w->record);
    int r =
        record_pictures_read_bytes(w->rc, w->ds, source, w->record, &w->bytes, &w->len, &w->reason);

    w->is_read = r == 0 || is_bad(r);
    if (w->is_read) /* what is made of it is remembered */
        return blob_verify_used(w->rc, w->d);
    return w->reason.set ? diag_set(w->d, r, "%s", w->reason.text) : r;
}

static int make_bad(const struct work *w, void **ret, size_t *ret_size)
{
    const char *why = diag_text(&w->reason, -EBADMSG);
    size_t n = strlen(why) + 1;
    struct made *made = malloc(sizeof(*made) + n);

    if (!made)
        return -ENOMEM;
    made->is_bad = true;
    memcpy(made->bytes, why, n);
    *ret = made;
    *ret_size = sizeof(*made) + n;
    return 0;
}

static int record_pictures_decode(struct work *w, uint8_t *pixels)
{
    struct record_pictures *p = pictures_of(w->c);
    struct made_file *kept = kept_of(p, w->ds);
    char where[RECORD_WHERE];
    int r;

    record_picture_where(w->ds, w->c, w->record, where);
    r = picture_decode(&(struct picture_file){where, w->bytes, w->len}, p->height, p->width, pixels,
                       &w->reason);
    if (p->counts)
        record_pictures_count(&p->counts->decoded);
    if (r == 0 && kept)
        made_write(kept, w->record, pixels);
    return r;
}

/* -ENODATA: its bytes are to be read first. */
static int make_picture(void *ctx, void **ret, size_t *ret_size)
{
    struct work *w = ctx;
    struct record_pictures *p = pictures_of(w->c);
    AUTO_FREE struct made *made = NULL;
    int r;

    if (!w->is_read && !kept_of(p, w->ds))
        return -ENODATA;
    if (w->is_read && !w->bytes)
        return make_bad(w, ret, ret_size);
    made = malloc(sizeof(*made) + pixel_bytes(p));
    if (!made)
        return -ENOMEM;
    if (!w->is_read)
        r = read_kept(w->rc, w->ds, w->c, w->record, made->bytes) ? 0 : -ENODATA;
    else
        r = record_pictures_decode(w, made->bytes);
    if (r < 0)
        return is_bad(r) ? make_bad(w, ret, ret_size) : r;
    made->is_bad = false;
    made->type = picture_kind_of(w->bytes, w->len);
    *ret = TAKE_PTR(made);
    *ret_size = sizeof(*made) + pixel_bytes(p);
    return 0;
}

static struct memo_key record_pictures_key_of(const struct record_content *c, uint64_t record)
{
    return (struct memo_key){{(uintptr_t)pictures_of(c), record}};
}

int record_picture_get(struct read_context *rc, const struct dataset *ds,
                       const struct record_content *c, uint64_t record, struct memo_thing **ret,
                       struct diag *d)
{
    struct work w = {.rc = rc, .ds = ds, .c = c, .record = record, .d = d};
    const struct memo_key key = record_pictures_key_of(c, record);
    const struct memo_maker maker = {make_picture, &w, rc};
    int r = memo_get(pictures_of(c)->memo, &key, &maker, ret);

    if (r == -ENODATA) {
        r = read_picture(&w);
        if (r == 0)
            r = memo_get(pictures_of(c)->memo, &key, &maker, ret);
        free(w.bytes);
    }
    return r;
}

/* ---- contents ---- */

bool record_picture_has(const struct dataset *ds, const struct record_content *c, uint64_t record)
{
    return record_picture_source(pictures_of(c), ds, record);
}

static int picture_dims(const struct dataset *ds, const struct record_content *c, uint64_t record,
                        uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    const struct record_pictures *p = pictures_of(c);

    (void)d;
    ret_dim[0] = record_picture_has(ds, c, record) ? p->height : 0;
    ret_dim[1] = p->width;
    ret_dim[2] = CHANNELS;
    return 0;
}

bool record_picture_extent(const struct dataset *ds, const struct record_content *c,
                           uint64_t record, struct extent *ret)
{
    const struct record_content *source = record_picture_source(pictures_of(c), ds, record);

    return source && source->ops->extent(ds, source, record, ret);
}

static int picture_read(struct read_context *rc, const struct dataset *ds,
                        const struct record_content *c, uint64_t record, uint64_t off, size_t len,
                        uint8_t *dst, struct diag *d)
{
    const struct record_pictures *p = pictures_of(c);
    AUTO_MEMO struct memo_thing *thing = NULL;
    const struct made *made;
    int r;

    if (len == pixel_bytes(p) && c != &p->ok.content &&
        !memo_has(p->memo, &(const struct memo_key){{(uintptr_t)p, record}}) &&
        read_kept(rc, ds, c, record, dst))
        return 0;
    r = record_picture_get(rc, ds, c, record, &thing, d);
    if (r < 0)
        return r;
    made = memo_bytes(thing);
    if (c == &p->ok.content)
        *dst = !made->is_bad;
    else if (!made->is_bad)
        memcpy(dst, made->bytes + off, len);
    else if (c != &p->filled.content)
        return diag_set(d, -EBADMSG, "%s. epochfs info --check lists all such pictures%s",
                        (const char *)made->bytes,
                        p->fills ? "" : "; with -o on_error=zero they are zeros in batches");
    else
        memset(dst, 0, len);
    if (c == &p->filled.content && made->is_bad && !off && p->counts)
        record_pictures_count(&p->counts->zeroed);
    return 0;
}

bool record_picture_is_made(const struct dataset *ds, const struct record_content *c,
                            uint64_t record)
{
    const struct memo_key key = record_pictures_key_of(c, record);
    const struct made_file *kept = kept_of(pictures_of(c), ds);

    return memo_has(pictures_of(c)->memo, &key) || (kept && made_has(kept, record));
}

/* ---- several at once ---- */

struct together {
    struct read_context *rc;   /* of the read: notes what it needs */
    struct read_context *peek; /* notes what comes behind, for nobody */
    const struct dataset *ds;
    const struct record_content *c;
    const uint64_t *record;
    unsigned n_needed;
    _Atomic bool is_missing;
};

static void make_one(void *ctx, unsigned i)
{
    struct together *t = ctx;
    struct read_context *rc = i < t->n_needed ? t->rc : t->peek;
    AUTO_MEMO struct memo_thing *thing = NULL;

    if (i >= t->n_needed && atomic_load(&t->is_missing))
        return;
    if (record_picture_get(rc, t->ds, t->c, t->record[i], &thing, NULL) == -EAGAIN &&
        i < t->n_needed)
        atomic_store(&t->is_missing, true);
}

int record_picture_make(struct read_context *rc, const struct dataset *ds,
                        const struct record_content *c, const uint64_t *record, unsigned n,
                        unsigned n_needed)
{
    struct read_context peek;
    struct together t = {rc, &peek, ds, c, record, n_needed, false};

    read_context_init(&peek, true);
    if (rc) {
        peek.cancelled = rc->cancelled;
        peek.ctx = rc->ctx;
        peek.clock = rc->clock;
    }
    pool_run(pictures_of(c)->pool, n, make_one, &t);
    read_context_release(&peek);
    return t.is_missing ? -EAGAIN : 0;
}

/* A check says what is wrong, not that a check would say it. */
static int picture_check(struct read_context *rc, const struct dataset *ds,
                         const struct record_content *c, uint64_t record, struct diag *d)
{
    const struct record_pictures *p = pictures_of(c);
    AUTO_MEMO struct memo_thing *thing = NULL;
    int r = record_picture_get(rc, ds, c, record, &thing, d);
    const struct made *made = r == 0 ? memo_bytes(thing) : NULL;

    if (r < 0 || !made->is_bad || c == &p->ok.content || c == &p->filled.content)
        return r;
    return diag_set(d, -EBADMSG, "%s", (const char *)made->bytes);
}

static const struct record_ops picture_ops = {
    .dims = picture_dims,
    .read = picture_read,
    .check = picture_check,
    .extent = record_picture_extent,
    .where = record_picture_where,
    .has = record_picture_has,
    .is_made = record_picture_is_made,
    .make = record_picture_make,
};

/* ---- fields ---- */

void record_picture_content(struct record_pictures *p, struct record_picture *picture,
                            bool has_holes, bool is_parsed)
{
    uint64_t at_once = MAKE_BYTES / pixel_bytes(p);

    picture->all = p;
    picture->content = (struct record_content){
        .ops = &picture_ops,
        .make_at_once = (unsigned)max_u64(min_u64(at_once, RECORD_MAKES), 1),
        .is_parsed = is_parsed,
        .dtype = DTYPE_U1,
        .ndim = 3,
        .dim = {has_holes ? DIM_VARIES : p->height, p->width, CHANNELS},
    };
}

/* Add the fields of a content, for these places only. */
static void record_pictures_add_fields(struct dataset *ds, const struct record_content *c,
                                       const char *name, unsigned in)
{
    unsigned first = ds->n_fields;

    if (c->ndim && c->dim[0] == DIM_VARIES)
        records_add_arrays(ds, c, name, 0);
    else
        records_add_item(ds, c, name, IN_ARRAYS);
    for (unsigned i = first; i < ds->n_fields; i++)
        ds->field[i].in &= in;
}

int record_pictures_add(struct dataset *ds, const struct format_setup *setup, const char *name,
                        const struct record_pictures_source *source, struct record_pictures **ret)
{
    const struct format_options *o = &setup->options;
    const unsigned batches = IN_NPY_BATCHES | IN_NPZ_BATCHES;
    char ok[FIELD_NAME_SIZE];
    struct record_pictures *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->height = o->picture_height;
    p->width = o->picture_width;
    p->memo = setup->memo;
    p->pool = setup->pool;
    p->counts = setup->counts;
    p->store = setup->made;
    p->keeps = setup->made;
    p->identity = source->identity;
    lock_init(&p->lock);
    p->n = source->n;
    memcpy(p->source, source->content, p->n * sizeof(p->source[0]));
    record_picture_content(p, &p->strict, source->has_holes, true);
    record_picture_content(p, &p->filled, source->has_holes, false);
    record_picture_content(p, &p->ok, false, false);
    p->ok.content.ndim = 0;
    p->ok.content.dtype = DTYPE_BOOL;
    p->fills = o->bad_rows == BAD_ROWS_ZERO;
    record_pictures_add_fields(ds, &p->strict.content, name, p->fills ? ~batches : ~0u);
    if (p->fills) {
        snprintf(ok, sizeof(ok), "%s_ok", name);
        record_pictures_add_fields(ds, &p->filled.content, name, batches);
        record_pictures_add_fields(ds, &p->ok.content, ok, batches);
    }
    *ret = p;
    return 0;
}

/* ---- for plans ---- */

static const struct record_content *record_pictures_plan_content(const struct dataset *ds)
{
    return &((const struct record_pictures *)(const void *)ds->pictures)->boxed.content;
}

/* The content of a sample's mask or picture; NULL: it has none. */
static const struct record_content *record_pictures_plan_source(const struct dataset *ds,
                                                                uint64_t sample, bool mask)
{
    const struct record_pictures *p = pictures_of(record_pictures_plan_content(ds));

    return mask ? p->mask : record_picture_source(p, ds, sample);
}

static int record_pictures_plan_read(struct read_context *rc, const struct dataset *ds,
                                     uint64_t sample, bool mask, uint8_t **ret, size_t *ret_len,
                                     struct diag *d)
{
    struct made_counts *counts = pictures_of(record_pictures_plan_content(ds))->plan_counts;
    int r = record_pictures_read_bytes(rc, ds, record_pictures_plan_source(ds, sample, mask),
                                       sample, ret, ret_len, d);

    if (r == 0 && counts && !mask)
        record_pictures_count(&counts->decoded);
    return r;
}

static void record_pictures_plan_where(const struct dataset *ds, uint64_t sample, bool mask,
                                       struct text *t)
{
    const struct record_content *source = record_pictures_plan_source(ds, sample, mask);
    char where[RECORD_WHERE];

    if (!source)
        source = pictures_of(record_pictures_plan_content(ds))->source[0];
    record_pictures_where(ds, source, sample, where);
    text_add(t, "%s", where);
}

static unsigned record_pictures_plan_extents(const struct dataset *ds, uint64_t sample,
                                             struct extent *ret)
{
    unsigned n = 0;

    for (unsigned mask = 0; mask < PICTURE_EXTENTS; mask++) {
        const struct record_content *source = record_pictures_plan_source(ds, sample, mask);

        n += source && source->ops->extent(ds, source, sample, &ret[n]);
    }
    return n;
}

void record_pictures_offer(struct dataset *ds, struct record_pictures *p,
                           const struct format_setup *setup,
                           const struct record_pictures_offered *offered)
{
    p->plan_counts = setup->counts;
    p->mask = offered->mask;
    p->plan_source = (struct picture_source){.has_holes = offered->has_holes,
                                             .has_pairs = offered->has_pairs,
                                             .has_masks = offered->mask,
                                             .zeros_bad = setup->options.bad_rows == BAD_ROWS_ZERO,
                                             .read = record_pictures_plan_read,
                                             .where = record_pictures_plan_where,
                                             .extents = record_pictures_plan_extents};
    snprintf(p->plan_source.name, sizeof(p->plan_source.name), "%s", offered->name);
    ds->pictures = &p->plan_source;
}

void record_pictures_free(struct record_pictures *pictures)
{
    if (!pictures)
        return;
    made_close(atomic_load(&pictures->kept));
    lock_release(&pictures->lock);
    free(pictures);
}

void record_pictures_describe(const struct record_pictures *pictures, const char *indent,
                              struct text *t)
{
    text_add(t, "%s\"picture\": {\"height\": %u, \"width\": %u, \"decoders\": \"", indent,
             pictures->height, pictures->width);
    picture_add_versions(t);
    text_add(t, "\"},\n");
}
