/* An array is made as a whole, and remembered in the memo: it is read in pieces, and by several
 * files. What a read needs next in its selection is made with it, on all cores.
 *
 * With decoded_cache= a made array is also kept in the cache folder, and read from there by later
 * reads: whole, because only whole units have a checksum. A kept array of a file of this machine
 * is only given while that file is the one that it was made of.
 *
 * That an array cannot be made is also remembered. Then it cannot be read; or, with on_error=zero,
 * it is zeros in batches, where `<name>_ok` says so. It keeps its place, because which files are
 * bad is only known once all have been decoded. */
#include "format/records/record_made.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/records/record_items.h"

#define MAKE_BYTES (UINT64_C(4) << 20)  /* of arrays that are made at once, of the likely size */
#define MAKE_MOST  (UINT64_C(64) << 20) /* the same, of their real size */

const struct record_content *record_made_source(const struct record_made *m,
                                                const struct dataset *ds, uint64_t record)
{
    for (unsigned i = 0; i < m->n; i++) {
        const struct record_content *c = m->source[i];

        if (!c->ops->has || c->ops->has(ds, c, record))
            return c;
    }
    return NULL;
}

void record_made_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Bytes of the array of a record. 0, or -errno: there is none. */
static int record_made_size(const struct record_made *m, const struct dataset *ds, uint64_t record,
                            size_t *ret, struct diag *d)
{
    uint64_t dim[RECORD_AXES] = {0};
    int r = m->maker->dims(m, ds, record, dim, d);

    *ret = r == 0 ? (size_t)record_bytes(&m->like, dim) : 0;
    return r;
}

/* ---- kept arrays ---- */

static uint64_t record_made_unit(const struct record_made *m, uint64_t record)
{
    return m->maker->unit ? m->maker->unit(m, record) : record;
}

/* Which arrays they are: what of the records, and how it is made. */
static int name_kept(const struct record_made *m, const struct dataset *ds, struct text *t)
{
    m->maker->name(m, t);
    for (unsigned i = 0; i < m->n; i++)
        text_add(t, " %u", m->source[i]->column);
    return m->identity(ds, t);
}

static int open_kept(const struct record_made *m, const struct dataset *ds, struct made_file **ret)
{
    AUTO_TEXT struct text identity = {0}, source = {0};
    int r = name_kept(m, ds, &identity);

    text_add(&source, "%s%s, %s", blob_source(ds->blob[0]), ds->n_blobs > 1 ? " and others" : "",
             m->maker->many);
    if (r < 0 || identity.failed || source.failed)
        return r < 0 ? r : -ENOMEM;
    return made_open(m->store, identity.data, source.data, record_made_unit(m, ds->samples),
                     m->unit_bytes, ret, NULL);
}

/* NULL: none are kept. */
static struct made_file *kept_of(struct record_made *m, const struct dataset *ds)
{
    struct made_file *kept = atomic_load_explicit(&m->kept, memory_order_acquire);

    if (kept || !atomic_load_explicit(&m->keeps, memory_order_relaxed))
        return kept;
    LOCK_SCOPE(&m->lock);

    kept = atomic_load(&m->kept);
    if (kept || !atomic_load(&m->keeps))
        return kept;
    if (open_kept(m, ds, &kept) < 0)
        atomic_store(&m->keeps, false);
    else
        atomic_store_explicit(&m->kept, kept, memory_order_release);
    return kept;
}

/* Is the file of a record, on this machine, still the one that was found? The version of a
 * remote file is known. */
static bool record_made_is_same(struct read_context *rc, const struct dataset *ds,
                                const struct record_made *m, uint64_t record)
{
    const struct record_content *source = record_made_source(m, ds, record);
    struct extent e;
    uint8_t byte;

    if (!source || !source->ops->extent || !source->ops->extent(ds, source, record, &e))
        return false;
    return e.blob->ops->fetch ||
           (blob_pread(rc, e.blob, &byte, 1, e.off) == 0 && blob_verify(e.blob, NULL) == 0);
}

static bool record_made_has_kept(struct record_made *m, const struct dataset *ds, uint64_t record)
{
    const struct made_file *kept = kept_of(m, ds);

    /* They are written one after another, so the last stands for all. */
    return kept && record_made_unit(m, record + 1) > record_made_unit(m, record) &&
           made_has(kept, record_made_unit(m, record + 1) - 1);
}

/* Read or write the units of an array of that size. The last one may be longer. */
static bool read_units(const struct record_made *m, const struct made_file *kept, uint64_t record,
                       uint8_t *ret, size_t size)
{
    AUTO_FREE uint8_t *last = size % m->unit_bytes ? malloc(m->unit_bytes) : NULL;
    uint64_t unit = record_made_unit(m, record);

    for (; size >= m->unit_bytes; size -= m->unit_bytes, ret += m->unit_bytes)
        if (!made_read(kept, unit++, ret))
            return false;
    if (size && (!last || !made_read(kept, unit, last)))
        return false;
    if (size)
        memcpy(ret, last, size);
    return true;
}

static void write_units(const struct record_made *m, struct made_file *kept, uint64_t record,
                        const uint8_t *bytes, size_t size)
{
    AUTO_FREE uint8_t *last = size % m->unit_bytes ? calloc(1, m->unit_bytes) : NULL;
    uint64_t unit = record_made_unit(m, record);

    for (; size >= m->unit_bytes; size -= m->unit_bytes, bytes += m->unit_bytes)
        made_write(kept, unit++, bytes);
    if (last) {
        memcpy(last, bytes, size);
        made_write(kept, unit, last);
    }
}

/* Read a kept array. false: it is to be made. */
static bool read_kept(struct read_context *rc, const struct dataset *ds,
                      const struct record_content *c, uint64_t record, uint8_t *ret, size_t size)
{
    struct record_made *m = record_made_of(c);

    if (!record_made_has_kept(m, ds, record) || !record_made_is_same(rc, ds, m, record) ||
        !read_units(m, kept_of(m, ds), record, ret, size))
        return false;
    if (m->counts)
        record_made_count(&m->counts->kept);
    return true;
}

void record_made_keep(struct record_made *m, const struct dataset *ds, uint64_t record,
                      const uint8_t *bytes, size_t size)
{
    struct made_file *kept = kept_of(m, ds);

    if (kept)
        write_units(m, kept, record, bytes, size);
}

bool record_made_read_unit(struct read_context *rc, const struct dataset *ds, struct record_made *m,
                           uint64_t record, uint64_t k, uint8_t *ret)
{
    const struct made_file *kept = kept_of(m, ds);
    uint64_t unit = record_made_unit(m, record) + k;

    if (!kept || !made_has(kept, unit) || (!k && !record_made_is_same(rc, ds, m, record)) ||
        !made_read(kept, unit, ret))
        return false;
    if (!k && m->counts)
        record_made_count(&m->counts->kept);
    return true;
}

/* ---- one array ---- */

void record_made_name(const struct dataset *ds, const struct record_content *source,
                      uint64_t record, char ret[static RECORD_WHERE])
{
    uint8_t key[KEY_SIZE];
    size_t n = dataset_key(ds, record, key), used;

    source->ops->where(ds, source, record, ret);
    used = strlen(ret);
    snprintf(ret + used, RECORD_WHERE - used, " (%.*s)", (int)n, (const char *)key);
}

void record_made_where(const struct dataset *ds, const struct record_content *c, uint64_t record,
                       char ret[static RECORD_WHERE])
{
    const struct record_made *m = record_made_of(c);
    const struct record_content *source = record_made_source(m, ds, record);

    record_made_name(ds, source ? source : m->source[0], record, ret);
}

/* The input of making one. Bytes are read before the memo makes a thing of them, because what reads
 * them may need things of that memo. */
struct work {
    struct read_context *rc;
    const struct dataset *ds;
    const struct record_content *c;
    uint64_t record;
    struct diag *d;
    bool is_read, is_bad; /* the bytes; it is bad already, for this reason: */
    struct diag reason;
    uint8_t *bytes; /* [len] the file; owned; NULL: the maker reads it */
    size_t len;
};

/* Is it the file that is bad, for good? */
static bool is_bad(int r)
{
    return r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP;
}

int record_made_read_file(struct read_context *rc, const struct dataset *ds,
                          const struct record_maker *maker, const struct record_content *source,
                          uint64_t record, uint8_t **ret, size_t *ret_len, struct diag *d)
{
    AUTO_FREE uint8_t *bytes = NULL;
    uint64_t dim[RECORD_AXES] = {0};
    char where[RECORD_WHERE];
    int r = source ? source->ops->dims(ds, source, record, dim, d) : 0;

    if (r < 0)
        return r;
    if (dim[0] > maker->most_bytes) {
        record_made_name(ds, source, record, where);
        return diag_set(d, -EFBIG, "%s: expected %s of at most %llu bytes, got %llu", where,
                        maker->one, (unsigned long long)maker->most_bytes,
                        (unsigned long long)dim[0]);
    }
    bytes = ret ? malloc(dim[0] ? dim[0] : 1) : NULL;
    if (ret && !bytes)
        return -ENOMEM;
    if (ret && dim[0])
        r = source->ops->read(rc, ds, source, record, 0, dim[0], bytes, d);
    if (r < 0)
        return r;
    if (ret)
        *ret = TAKE_PTR(bytes);
    *ret_len = dim[0];
    return 0;
}

static int read_file(struct work *w)
{
    const struct record_made *m = record_made_of(w->c);
    bool reads = m->maker->reads && m->maker->reads(m, w->record);
    int r = record_made_read_file(w->rc, w->ds, m->maker, record_made_source(m, w->ds, w->record),
                                  w->record, reads ? NULL : &w->bytes, &w->len, &w->reason);

    w->is_bad = is_bad(r);
    w->is_read = r == 0 || w->is_bad;
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

static int make_now(struct work *w, struct made *made, size_t size)
{
    struct record_made *m = record_made_of(w->c);
    struct made_file *kept = kept_of(m, w->ds);
    char where[RECORD_WHERE];
    int r;

    record_made_where(w->ds, w->c, w->record, where);
    r = m->maker->make(m, w->record, &(struct record_made_file){where, w->bytes, w->len, w->rc},
                       made->bytes, &made->what, &w->reason);
    if (m->counts)
        record_made_count(&m->counts->decoded);
    if (r == 0 && kept)
        write_units(m, kept, w->record, made->bytes, size);
    return r;
}

/* -ENODATA: its bytes are to be read first. */
static int make_array(void *ctx, void **ret, size_t *ret_size)
{
    struct work *w = ctx;
    struct record_made *m = record_made_of(w->c);
    AUTO_FREE struct made *made = NULL;
    size_t size;
    int r;

    if (!w->is_read && !kept_of(m, w->ds))
        return -ENODATA;
    if (w->is_bad)
        return make_bad(w, ret, ret_size);
    r = record_made_size(m, w->ds, w->record, &size, &w->reason);
    if (r < 0)
        return is_bad(r) ? make_bad(w, ret, ret_size) : r;
    made = malloc(sizeof(*made) + size);
    if (!made)
        return -ENOMEM;
    *made = (struct made){0};
    if (!w->is_read)
        r = read_kept(w->rc, w->ds, w->c, w->record, made->bytes, size) ? 0 : -ENODATA;
    else
        r = make_now(w, made, size);
    if (r < 0)
        return is_bad(r) ? make_bad(w, ret, ret_size) : r;
    *ret = TAKE_PTR(made);
    *ret_size = sizeof(*made) + size;
    return 0;
}

static struct memo_key record_made_key(const struct record_content *c, uint64_t record)
{
    return (struct memo_key){{(uintptr_t)record_made_of(c), record}};
}

int record_made_get(struct read_context *rc, const struct dataset *ds,
                    const struct record_content *c, uint64_t record, struct memo_thing **ret,
                    struct diag *d)
{
    struct work w = {.rc = rc, .ds = ds, .c = c, .record = record, .d = d};
    const struct memo_key key = record_made_key(c, record);
    const struct memo_maker maker = {make_array, &w, rc};
    struct memo *memo = record_made_of(c)->memo;
    int r = memo_get(memo, &key, &maker, ret);

    if (r == -ENODATA) {
        r = read_file(&w);
        if (r == 0)
            r = memo_get(memo, &key, &maker, ret);
        free(w.bytes);
    }
    return r;
}

/* ---- contents ---- */

bool record_made_has(const struct dataset *ds, const struct record_content *c, uint64_t record)
{
    return record_made_source(record_made_of(c), ds, record);
}

/* A record without a file has an array of length 0; so has one whose array cannot be made, where
 * that is known. */
static int record_made_dims(const struct dataset *ds, const struct record_content *c,
                            uint64_t record, uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    const struct record_made *m = record_made_of(c);
    int r;

    if (c == &m->ok.content)
        return 0;
    for (unsigned i = 0; i < c->ndim; i++)
        ret_dim[i] = c->dim[i] == DIM_VARIES ? 0 : c->dim[i];
    if (!record_made_has(ds, c, record)) {
        ret_dim[0] = 0;
        return 0;
    }
    r = m->maker->dims(m, ds, record, ret_dim, d);
    return is_bad(r) && c == &m->filled.content ? 0 : r;
}

bool record_made_extent(const struct dataset *ds, const struct record_content *c, uint64_t record,
                        struct extent *ret)
{
    const struct record_content *source = record_made_source(record_made_of(c), ds, record);

    return source && source->ops->extent(ds, source, record, ret);
}

static int record_made_read(struct read_context *rc, const struct dataset *ds,
                            const struct record_content *c, uint64_t record, uint64_t off,
                            size_t len, uint8_t *dst, struct diag *d)
{
    const struct record_made *m = record_made_of(c);
    const struct memo_key key = record_made_key(c, record);
    AUTO_MEMO struct memo_thing *thing = NULL;
    const struct made *made;
    size_t size;
    int r = record_made_size(m, ds, record, &size, d);

    if (c == &m->ok.content && is_bad(r)) {
        *dst = false;
        return 0;
    }
    if (r < 0)
        return r;
    if (len == size && c != &m->ok.content && !memo_has(m->memo, &key) &&
        read_kept(rc, ds, c, record, dst, size))
        return 0;
    r = record_made_get(rc, ds, c, record, &thing, d);
    if (r < 0)
        return r;
    made = memo_bytes(thing);
    if (c == &m->ok.content)
        *dst = !made->is_bad;
    else if (!made->is_bad)
        memcpy(dst, made->bytes + off, len);
    else if (c != &m->filled.content)
        return diag_set(d, -EBADMSG, "%s. epochfs info --check lists all such %s%s",
                        (const char *)made->bytes, m->maker->many,
                        m->fills ? "" : "; with -o on_error=zero they are zeros in batches");
    else
        memset(dst, 0, len);
    if (c == &m->filled.content && made->is_bad && !off && m->counts)
        record_made_count(&m->counts->zeroed);
    return 0;
}

bool record_made_is_made(const struct dataset *ds, const struct record_content *c, uint64_t record)
{
    const struct memo_key key = record_made_key(c, record);

    return memo_has(record_made_of(c)->memo, &key) ||
           record_made_has_kept(record_made_of(c), ds, record);
}

/* ---- several at once ---- */

struct together {
    struct read_context *rc;   /* of the read: notes what it needs */
    struct read_context *peek; /* notes what comes after, and is dropped */
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
    if (record_made_get(rc, t->ds, t->c, t->record[i], &thing, NULL) == -EAGAIN && i < t->n_needed)
        atomic_store(&t->is_missing, true);
}

int record_made_make(struct read_context *rc, const struct dataset *ds,
                     const struct record_content *c, const uint64_t *record, unsigned n,
                     unsigned n_needed)
{
    struct record_made *m = record_made_of(c);
    struct read_context peek;
    struct together t = {rc, &peek, ds, c, record, n_needed, false};
    uint64_t sum = 0;
    size_t size;

    /* Those that are not made here are made one by one, when they are read. */
    for (unsigned i = 0; i < n; i++) {
        if (m->maker->dims && record_made_size(m, ds, record[i], &size, NULL) == 0)
            sum += size;
        if (i && sum > MAKE_MOST)
            n = i;
    }
    read_context_peek(&peek, rc);
    pool_run(m->pool, n, make_one, &t);
    read_context_release(&peek);
    return t.is_missing ? -EAGAIN : 0;
}

/* A check says what is wrong, not that a check would say it. */
static int record_made_check(struct read_context *rc, const struct dataset *ds,
                             const struct record_content *c, uint64_t record, struct diag *d)
{
    const struct record_made *m = record_made_of(c);
    AUTO_MEMO struct memo_thing *thing = NULL;
    int r = record_made_get(rc, ds, c, record, &thing, d);
    const struct made *made = r == 0 ? memo_bytes(thing) : NULL;

    if (r < 0 || !made->is_bad || c == &m->ok.content || c == &m->filled.content)
        return r;
    return diag_set(d, -EBADMSG, "%s", (const char *)made->bytes);
}

static const struct record_ops record_made_ops = {
    .dims = record_made_dims,
    .read = record_made_read,
    .check = record_made_check,
    .extent = record_made_extent,
    .where = record_made_where,
    .has = record_made_has,
    .is_made = record_made_is_made,
    .make = record_made_make,
};

/* ---- fields ---- */

unsigned record_made_find(const struct record_column *column, unsigned n,
                          bool (*is_ext)(const char *ext), unsigned ret[static RECORD_MADE_SOURCES])
{
    unsigned found = 0;

    for (unsigned i = 0; i < n && found < RECORD_MADE_SOURCES; i++)
        if (column[i].shown == RECORD_BYTES && is_ext(column[i].ext))
            ret[found++] = i;
    for (unsigned i = 0; i < n && !found; i++) {
        const char *dot = column[i].shown == RECORD_BYTES ? strrchr(column[i].ext, '.') : NULL;

        if (dot && is_ext(dot + 1))
            ret[found++] = i;
    }
    return found;
}

void record_made_init(struct record_made *m, const struct format_setup *setup)
{
    m->memo = setup->memo;
    m->pool = setup->pool;
    lock_init(&m->lock);
}

void record_made_release(struct record_made *m)
{
    made_close(atomic_load(&m->kept));
    lock_release(&m->lock);
}

void record_made_content(struct record_made *m, struct record_made_array *array,
                         const struct record_content *like, uint64_t bytes)
{
    array->made = m;
    array->content = *like;
    if (!like->ops)
        array->content.ops = &record_made_ops;
    array->content.make_at_once =
        (unsigned)max_u64(min_u64(MAKE_BYTES / max_u64(bytes, 1), RECORD_MAKES), 1);
}

/* Add the fields of a content, for these places only. */
static void record_made_add_fields(struct dataset *ds, const struct record_content *c,
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

void record_made_add(struct dataset *ds, struct record_made *m, const struct record_content *like,
                     uint64_t bytes, const char *name)
{
    const unsigned batches = IN_NPY_BATCHES | IN_NPZ_BATCHES;
    char ok[FIELD_NAME_SIZE];

    m->like = *like;
    record_made_content(m, &m->strict, like, bytes);
    m->strict.content.is_parsed = true;
    record_made_content(m, &m->filled, like, bytes);
    record_made_content(m, &m->ok, &(const struct record_content){.dtype = DTYPE_BOOL}, bytes);
    record_made_add_fields(ds, &m->strict.content, name, m->fills ? ~batches : ~0u);
    if (!m->fills)
        return;
    snprintf(ok, sizeof(ok), "%s_ok", name);
    record_made_add_fields(ds, &m->filled.content, name, batches);
    record_made_add_fields(ds, &m->ok.content, ok, batches);
}
