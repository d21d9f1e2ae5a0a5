/* The samples of a batch, read from its .npz as any program would.
 *
 * A member of the archive has its samples along its first axis, or one after another between the
 * numbers of <member>_offsets, or, of sparse rows, of indptr. What a sample holds is one run of
 * bytes of each member. Its digest is a chain:
 *
 *     digest = SHA-256(digest before | name of the member | 0 | number of bytes | bytes)
 *
 * beginning with 32 zero bytes, over the members in their order in the archive; of no bytes nothing
 * is added. So it does not depend on the neighbours, nor on how wide they make a column of text. */
#include "fs/audit/batch.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/real.h"
#include "format/core/npy_head.h"
#include "format/zip/archive/zip.h"

#define BUFFER_BYTES ((size_t)1 << 20)
#define SUFFIX       ".npy"

/* The array of a member. */
struct content {
    const char *name; /* [name_len] without ".npy" */
    size_t name_len;
    uint64_t at, bytes; /* of the elements, in the blob */
    struct npy_head head;
    bool is_text; /* elements of a fixed width, filled up with NUL */
};

/* What audit_batch_read() works on. */
struct reading {
    const struct blob *blob;
    struct zip zip;
    struct audit_batch *batch;
    uint64_t from, len; /* what of the blob is in the buffer */
    struct digest *digest;
    uint64_t *bound; /* [n + 1] where samples begin, in elements; owned. NULL: not read */
};

static void audit_batch_release_reading(struct reading *r)
{
    zip_release(&r->zip);
    digest_free(r->digest);
    free(r->bound);
}
#define AUTO_READING AUTO(audit_batch_release_reading)

void audit_batch_release(struct audit_batch *batch)
{
    free(batch->number);
    free(batch->source);
    free(batch->value);
    free(batch->digest);
    free(batch->buffer);
    *batch = (struct audit_batch){0};
}

static int audit_batch_make_space(struct audit_batch *batch, uint64_t n)
{
    if (!batch->buffer && !(batch->buffer = malloc(BUFFER_BYTES)))
        return -ENOMEM;
    if (n > batch->capacity) {
        uint8_t *buffer = TAKE_PTR(batch->buffer);

        audit_batch_release(batch);
        batch->buffer = buffer;
        batch->number = calloc(n, sizeof(*batch->number));
        batch->source = calloc(n, sizeof(*batch->source));
        batch->value = calloc(n, sizeof(*batch->value));
        batch->digest = calloc(n, sizeof(*batch->digest));
        if (!batch->number || !batch->source || !batch->value || !batch->digest)
            return -ENOMEM;
        batch->capacity = n;
    }
    batch->n = n;
    return 0;
}

static bool audit_batch_is_called(const struct content *c, const char *name)
{
    return strlen(name) == c->name_len && !memcmp(c->name, name, c->name_len);
}

/* The member called name + suffix + ".npy"; NULL: there is none. */
static const struct zip_member *audit_batch_find_member(const struct zip *zip, const char *name,
                                                        size_t len, const char *suffix)
{
    size_t extra = strlen(suffix);

    for (size_t i = 0; i < zip->n; i++) {
        const struct zip_member *m = &zip->member[i];

        if (m->name_len == len + extra + strlen(SUFFIX) && !memcmp(m->name, name, len) &&
            !memcmp(m->name + len, suffix, extra) &&
            !memcmp(m->name + len + extra, SUFFIX, strlen(SUFFIX)))
            return m;
    }
    return NULL;
}

static int open_content(const struct reading *r, const struct zip_member *m, struct content *ret,
                        struct diag *d)
{
    static const char no_npy[] = "expected a .npy";
    uint8_t head[NPY_HEAD_MAX];
    size_t have = (size_t)min_u64(m->size, NPY_HEAD_START), len;
    const char *wrong = no_npy;
    char other = 0;
    int rc;

    if (m->method != ZIP_STORED || m->name_len <= strlen(SUFFIX))
        return diag_set(d, -EBADMSG, "%s: %.*s: expected a stored member *.npy", blob_name(r->blob),
                        (int)m->name_len, m->name);
    rc = blob_pread(READ_WAITS, r->blob, head, have, m->at);
    len = rc == 0 ? npy_head_bytes(head, have) : 0;
    if (rc == 0 && len && len <= m->size)
        rc = blob_pread(READ_WAITS, r->blob, head, len, m->at);
    if (rc < 0)
        return diag_set(d, rc, "%s: %s", blob_name(r->blob), strerror(-rc));
    *ret = (struct content){.name = m->name, .name_len = m->name_len - strlen(SUFFIX)};
    if (len && len <= m->size)
        wrong = npy_head_parse_array(head, len, m->size, &ret->head, &other);
    if (wrong && !other)
        return diag_set(d, -EBADMSG, "%s: %.*s: %s", blob_name(r->blob), (int)m->name_len, m->name,
                        wrong);
    ret->is_text = wrong != NULL;
    ret->at = m->at + len;
    ret->bytes = m->size - len;
    return 0;
}

/* The bytes [at, at + len), len <= BUFFER_BYTES, in the buffer, which is filled up to `end`. */
static int audit_batch_buffer(struct reading *r, uint64_t at, uint64_t len, uint64_t end,
                              const uint8_t **ret, struct diag *d)
{
    int rc;

    if (at < r->from || at + len > r->from + r->len) {
        r->len = 0;
        rc = blob_pread(READ_WAITS, r->blob, r->batch->buffer,
                        (size_t)min_u64(end - at, BUFFER_BYTES), at);
        if (rc < 0)
            return diag_set(d, rc, "%s: %s", blob_name(r->blob), strerror(-rc));
        r->from = at;
        r->len = min_u64(end - at, BUFFER_BYTES);
    }
    *ret = r->batch->buffer + (at - r->from);
    return 0;
}

/* Element i of an array of numbers, all of whose elements are in the blob. */
static int audit_batch_read_number(struct reading *r, const struct content *c, uint64_t i,
                                   double *ret, uint64_t *ret_whole, struct diag *d)
{
    const struct dtype_info *type = dtype_info(c->head.dtype);
    const uint8_t *at;
    uint64_t whole = 0;
    int rc = audit_batch_buffer(r, c->at + i * type->bytes, type->bytes, c->at + c->bytes, &at, d);

    if (rc < 0)
        return rc;
    for (size_t b = 0; b < type->bytes && b < sizeof(whole); b++)
        whole |= (uint64_t)at[b] << (8 * b);
    if (type->letter == 'i' && type->bytes < sizeof(whole) && at[type->bytes - 1] & 0x80)
        whole |= UINT64_MAX << (8 * type->bytes);
    *ret_whole = whole;
    *ret = type->letter == 'i' ? (double)(int64_t)whole : (double)whole;
    if (c->head.dtype == DTYPE_F8) {
        *ret = f8_of_bits(whole);
    } else if (c->head.dtype == DTYPE_F4) {
        *ret = (double)f4_of_bits((uint32_t)whole);
    } else if (c->head.dtype == DTYPE_F2) {
        *ret = f2_of_bits((uint16_t)whole);
    } else if (type->letter == 'f' || type->letter == 'c') {
        return diag_set(d, -EBADMSG,
                        "%s: %.*s: expected whole numbers, float16, float32 or float64",
                        blob_name(r->blob), (int)c->name_len, c->name);
    }
    return 0;
}

/* Are the elements little-endian numbers in C's order, n of them along one axis? */
static bool is_column(const struct content *c, uint64_t n)
{
    return !c->is_text && !c->head.big_endian && c->head.ndim == 1 && c->head.dim[0] == n;
}

static int audit_batch_read_column(struct reading *r, const struct content *c, uint64_t n,
                                   double *ret, uint64_t *ret_whole, struct diag *d)
{
    int rc = 0;

    if (!is_column(c, n))
        return diag_set(d, -EBADMSG, "%s: %.*s: expected one little-endian number for each of %llu",
                        blob_name(r->blob), (int)c->name_len, c->name, (unsigned long long)n);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        double value = 0;
        uint64_t whole = 0;

        rc = audit_batch_read_number(r, c, i, &value, &whole, d);
        if (ret)
            ret[i] = value;
        if (ret_whole)
            ret_whole[i] = whole;
    }
    return rc;
}

/* Read a column of the archive by its name. */
static int read_named(struct reading *r, const char *name, double *ret, uint64_t *ret_whole,
                      struct diag *d)
{
    const struct zip_member *m = audit_batch_find_member(&r->zip, name, strlen(name), "");
    struct content c;
    int rc;

    if (!m)
        return diag_set(d, -ENOENT, "%s: expected a member %s.npy, got none", blob_name(r->blob),
                        name);
    rc = open_content(r, m, &c, d);
    return rc < 0 ? rc : audit_batch_read_column(r, &c, r->batch->n, ret, ret_whole, d);
}

/* Where the samples of a member begin, if another member says it: r->bound, in elements, the last
 * one c's length. 0, -ENOENT: none does, or another -errno. */
static int find_bounds(struct reading *r, const struct content *c, uint64_t *ret_each,
                       struct diag *d)
{
    const struct zip_member *m = audit_batch_find_member(&r->zip, c->name, c->name_len, "_offsets");
    uint64_t n = r->batch->n;
    struct content bounds;
    int rc;

    if (!m && (audit_batch_is_called(c, "data") || audit_batch_is_called(c, "indices")))
        m = audit_batch_find_member(&r->zip, "indptr", strlen("indptr"), "");
    if (!m)
        return -ENOENT;
    if (!r->bound && !(r->bound = calloc(n + 1, sizeof(*r->bound))))
        return -ENOMEM;
    rc = open_content(r, m, &bounds, d);
    if (rc == 0)
        rc = audit_batch_read_column(r, &bounds, n + 1, NULL, r->bound, d);
    if (rc < 0)
        return rc;
    *ret_each = r->bound[n] ? c->bytes / r->bound[n] : 0;
    for (uint64_t i = 0; i < n; i++)
        if (r->bound[i] > r->bound[i + 1] || (!i && r->bound[0]))
            return diag_set(d, -EBADMSG, "%s: %.*s: expected offsets that grow from 0",
                            blob_name(r->blob), (int)bounds.name_len, bounds.name);
    if (c->bytes != *ret_each * r->bound[n])
        return diag_set(d, -EBADMSG, "%s: %.*s: expected %llu elements, as its offsets say",
                        blob_name(r->blob), (int)c->name_len, c->name,
                        (unsigned long long)r->bound[n]);
    return 0;
}

/* The longest sample by the member name + suffix: a number of each, or are_bounds: where each
 * begins. 0; 1: there is none, or it does not say lengths; or -errno. */
static int find_longest(struct reading *r, const char *name, const char *suffix, bool are_bounds,
                        struct diag *d)
{
    const struct zip_member *m = audit_batch_find_member(&r->zip, name, strlen(name), suffix);
    uint64_t n = r->batch->n + are_bounds;
    double before = 0;
    struct content c;
    int rc;

    /* Offsets count elements where arrays differ in several axes. */
    if (!m || (are_bounds && audit_batch_find_member(&r->zip, name, strlen(name), "_shape")))
        return 1;
    rc = open_content(r, m, &c, d);
    if (rc == 0 && !is_column(&c, n))
        return 1;
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        double value = 0, length;
        uint64_t whole;

        rc = audit_batch_read_number(r, &c, i, &value, &whole, d);
        length = fmin(value - before, UINT32_MAX); /* as in an index of lengths, */
        if (i >= are_bounds)                       /* where a length below 1 is 1 */
            r->batch->longest = max_u64(r->batch->longest, length > 1 ? (uint64_t)length : 1);
        before = are_bounds ? value : 0;
    }
    return rc;
}

static int read_longest(struct reading *r, const char *how, struct diag *d)
{
    static const char *const frames[] = {"feats", "data"};
    int rc = 1;

    r->batch->longest = 0;
    for (unsigned i = 0; i < 2 && rc == 1 && !strcmp(how, "frames"); i++)
        rc = find_longest(r, frames[i], "_offsets", true, d);
    if (!strcmp(how, "rows"))
        rc = find_longest(r, "indptr", "", true, d);
    if (rc == 1)
        rc = find_longest(r, strcmp(how, "rows") != 0 ? how : "indices", "_offsets", true, d);
    if (rc == 1)
        rc = find_longest(r, how, "", false, d);
    return rc < 0 ? rc : 0;
}

/* Continue the digest of a sample with bytes [at, at + len) of member c. */
static int audit_batch_add_bytes(struct reading *r, const struct content *c, uint64_t at,
                                 uint64_t len, uint8_t digest[static DIGEST_BYTES], struct diag *d)
{
    uint8_t size[9] = {0};
    const uint8_t *bytes = NULL;
    int rc;

    if (c->is_text && len <= BUFFER_BYTES) {
        rc = audit_batch_buffer(r, at, len, c->at + c->bytes, &bytes, d);
        while (rc == 0 && len && !bytes[len - 1])
            len--;
        if (rc < 0)
            return rc;
    }
    if (!len)
        return 0;
    store_le64(size + 1, len);
    rc = digest_again(r->digest);
    if (rc == 0)
        rc = digest_add(r->digest, digest, DIGEST_BYTES);
    if (rc == 0)
        rc = digest_add(r->digest, c->name, c->name_len);
    if (rc == 0)
        rc = digest_add(r->digest, size, sizeof(size));
    for (uint64_t now; len && rc == 0; at += now, len -= now) {
        now = min_u64(len, BUFFER_BYTES);
        rc = audit_batch_buffer(r, at, now, c->at + c->bytes, &bytes, d);
        if (rc == 0)
            rc = digest_add(r->digest, bytes, (size_t)now);
    }
    return rc < 0 ? rc : digest_finish(r->digest, digest);
}

/* Continue the digests of all samples with what member c has of them. */
static int audit_batch_add_member(struct reading *r, const struct content *c, struct diag *d)
{
    uint64_t n = r->batch->n, each;
    int rc = find_bounds(r, c, &each, d);
    bool is_bound = rc == 0;

    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (!is_bound) {
        bool rows = c->is_text || (c->head.ndim && c->head.dim[0] == n && !c->head.fortran);

        each = c->bytes / n;
        if (!rows || c->bytes % n)
            return diag_set(d, -EBADMSG,
                            "%s: %.*s: expected an array whose first axis has %llu samples",
                            blob_name(r->blob), (int)c->name_len, c->name, (unsigned long long)n);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t from = is_bound ? r->bound[i] : i, to = is_bound ? r->bound[i + 1] : i + 1;

        rc = audit_batch_add_bytes(r, c, c->at + from * each, (to - from) * each,
                                   r->batch->digest[i], d);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Is a member called <name><suffix>, where there are <name> and <name><other>? */
static bool describes(const struct reading *r, const struct content *c, const char *suffix,
                      const char *other)
{
    size_t len = strlen(suffix), n = c->name_len > len ? c->name_len - len : 0;

    return n && !memcmp(c->name + n, suffix, len) &&
           audit_batch_find_member(&r->zip, c->name, n, "") &&
           audit_batch_find_member(&r->zip, c->name, n, other);
}

/* Does a member say something of the whole batch, or where samples begin, and their shapes? */
static bool is_frame(const struct reading *r, const struct content *c)
{
    if (audit_batch_is_called(c, "index") || audit_batch_is_called(c, "source"))
        return true;
    if (audit_batch_find_member(&r->zip, "indptr", strlen("indptr"), "") &&
        (audit_batch_is_called(c, "indptr") || audit_batch_is_called(c, "format") ||
         audit_batch_is_called(c, "shape")))
        return true;
    return describes(r, c, "_offsets", "") || describes(r, c, "_shape", "_offsets");
}

/* The number of samples is that of member index. */
static int audit_batch_start(struct reading *r, struct diag *d)
{
    const struct zip_member *m = audit_batch_find_member(&r->zip, "index", strlen("index"), "");
    struct content c;
    int rc;

    if (!m)
        return diag_set(d, -EBADMSG, "%s: expected a member index.npy, got none",
                        blob_name(r->blob));
    rc = open_content(r, m, &c, d);
    if (rc < 0)
        return rc;
    if (c.is_text || c.head.dtype != DTYPE_I8 || c.head.ndim != 1)
        return diag_set(d, -EBADMSG, "%s: index.npy: expected int64 numbers along one axis",
                        blob_name(r->blob));
    rc = audit_batch_make_space(r->batch, c.head.dim[0]);
    return rc < 0 ? rc : digest_new(&r->digest);
}

int audit_batch_members(const struct blob *blob, struct text *ret, struct diag *d)
{
    AUTO_READING struct reading r = {.blob = blob};
    int rc = zip_read(blob, &r.zip, d);

    text_add(ret, "\n");
    for (size_t i = 0; i < r.zip.n && rc == 0; i++) {
        const struct zip_member *m = &r.zip.member[i];
        struct content c = {.name = m->name, .name_len = m->name_len - strlen(SUFFIX)};

        if (m->name_len > strlen(SUFFIX) && !is_frame(&r, &c) && !audit_batch_is_called(&c, "key"))
            text_add(ret, "%.*s\n", (int)c.name_len, c.name);
    }
    return rc == 0 && ret->failed ? -ENOMEM : rc;
}

/* Is the member among those that are wanted? */
static bool is_wanted(const struct audit_request *request, const struct content *c)
{
    for (const char *s = request->members; s && *s; s += strcspn(s, "\n")) {
        s++;
        if (strcspn(s, "\n") == c->name_len && !memcmp(s, c->name, c->name_len))
            return true;
    }
    return !request->members;
}

int audit_batch_read(const struct blob *blob, const struct audit_request *request,
                     struct audit_batch *ret, struct diag *d)
{
    AUTO_READING struct reading r = {.blob = blob, .batch = ret};
    int rc = zip_read(blob, &r.zip, d);

    if (rc == 0)
        rc = zip_find(blob, &r.zip, d);
    if (rc == 0)
        rc = audit_batch_start(&r, d);
    if (rc < 0 || !ret->n)
        return rc;
    memset(ret->digest, 0, ret->n * sizeof(*ret->digest));
    memset(ret->source, 0, ret->n * sizeof(*ret->source));
    rc = read_named(&r, "index", NULL, ret->number, d);
    if (rc == 0 && audit_batch_find_member(&r.zip, "source", strlen("source"), ""))
        rc = read_named(&r, "source", NULL, ret->source, d);
    if (rc == 0 && request->field)
        rc = read_named(&r, request->field, ret->value, NULL, d);
    if (rc == 0 && request->length)
        rc = read_longest(&r, request->length, d);
    for (size_t i = 0; i < r.zip.n && rc == 0; i++) {
        struct content c;

        rc = open_content(&r, &r.zip.member[i], &c, d);
        if (rc == 0 && !is_frame(&r, &c) && is_wanted(request, &c))
            rc = audit_batch_add_member(&r, &c, d);
    }
    return rc;
}
