#include "format/libsvm/dmatrix.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/index/pass_window.h"

#define MAGIC       UINT32_C(0xffffab01)
#define HEAD_BYTES  4096  /* read at once */
#define STRING_MAX  65536 /* bytes of a name */
#define COLUMNS_MAX (UINT64_C(1) << 32)
#define STRINGS_MAX (UINT64_C(1) << 26) /* of a field; each is read when the file is opened */

enum type { TYPE_F32 = 1, TYPE_F64, TYPE_U32, TYPE_U64, TYPE_STRING };

/* The fields in their order, and where they go. */
enum { SCALARS = 3, NAMES = 9, TYPES, FEATURE_WEIGHTS, CATEGORIES, N_KNOWN };
static const struct {
    const char *name;
    enum type type;
} known[N_KNOWN] = {
    {"num_row", TYPE_U64},
    {"num_col", TYPE_U64},
    {"num_nonzero", TYPE_U64},
    {"labels", TYPE_F32},
    {"group_ptr", TYPE_U32},
    {"weights", TYPE_F32},
    {"base_margin", TYPE_F32},
    {"labels_lower_bound", TYPE_F32},
    {"labels_upper_bound", TYPE_F32},
    {"feature_names", TYPE_STRING},
    {"feature_types", TYPE_STRING},
    {"feature_weights", TYPE_F32},
    {"cats", TYPE_STRING},
};

static unsigned field_of(enum dmatrix_vector_type vector)
{
    return vector == DMATRIX_FEATURE_WEIGHTS ? FEATURE_WEIGHTS : SCALARS + (unsigned)vector;
}

const char *dmatrix_vector_name(enum dmatrix_vector_type vector)
{
    return known[field_of(vector)].name;
}

bool dmatrix_is(const uint8_t *head, size_t len)
{
    return len >= 8 && load_le32(head) == MAGIC;
}

/* ---- reading ---- */

struct head {
    const struct blob *blob;
    struct dmatrix *m;
    uint64_t at; /* byte of the file */
    struct diag *d;
    struct pass_window window;
};

__attribute__((format(printf, 3, 4))) static int fault(const struct head *h, uint64_t byte,
                                                       const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return diag_set(h->d, -EBADMSG, "%s: byte %llu: expected %s", blob_name(h->blob),
                    (unsigned long long)byte, text);
}

/* Is there as much as that many elements of `each` bytes? what: the name of them. */
static int head_has(const struct head *h, uint64_t n, uint64_t each, const char *what)
{
    uint64_t bytes, left = h->blob->size - h->at;

    if (checked_mul(n, each, &bytes) && bytes <= left)
        return 0;
    return fault(h, h->at, "%s of %llu times %llu bytes, got the end of the file after %llu", what,
                 (unsigned long long)n, (unsigned long long)each, (unsigned long long)left);
}

/* The next n bytes, valid until the next step. */
static int head_bytes(struct head *h, size_t n, const char *what, const uint8_t **ret)
{
    int r = head_has(h, 1, n, what);

    if (r == 0)
        r = pass_window_at(&h->window, h->blob, h->at, n, h->blob->size, ret, h->d);
    h->at += r == 0 ? n : 0;
    return r;
}

static int head_u64(struct head *h, const char *what, uint64_t *ret)
{
    const uint8_t *bytes;
    int r = head_bytes(h, 8, what, &bytes);

    *ret = r == 0 ? load_le64(bytes) : 0;
    return r;
}

/* One string, valid as bytes are. */
static int head_string(struct head *h, const char *what, const uint8_t **ret, size_t *ret_len)
{
    uint64_t n;
    int r = head_u64(h, what, &n);

    if (r == 0 && n > STRING_MAX)
        return fault(h, h->at - 8, "%s of at most %d bytes, got %llu", what, STRING_MAX,
                     (unsigned long long)n);
    *ret_len = (size_t)n;
    return r < 0 ? r : head_bytes(h, (size_t)n, what, ret);
}

/* ---- the fields ---- */

/* What precedes the numbers of a field. */
struct field_head {
    char name[512]; /* as much as a message has */
    uint8_t type;
    bool is_scalar;
    uint64_t rows, columns; /* of a vector */
};

static int get_field_head(struct head *h, struct field_head *ret)
{
    const uint8_t *bytes;
    size_t len;
    int r = head_string(h, "the name of a field", &bytes, &len);

    if (r == 0 && len == STRING_MAX)
        r = fault(h, h->at, "the name of a field below %d bytes", STRING_MAX);
    if (r < 0)
        return r;
    snprintf(ret->name, sizeof(ret->name), "%.*s", (int)len, (const char *)bytes);
    r = head_bytes(h, 2, "the type of a field", &bytes);
    if (r == 0 && (bytes[0] < TYPE_F32 || bytes[0] > TYPE_STRING || bytes[1] > 1))
        return fault(h, h->at - 2, "a type from 1 to 5, and 0 or 1, got %u and %u", bytes[0],
                     bytes[1]);
    if (r < 0)
        return r;
    ret->type = bytes[0];
    ret->is_scalar = bytes[1];
    if (!ret->is_scalar)
        r = head_u64(h, "the rows of a field", &ret->rows);
    if (r == 0 && !ret->is_scalar)
        r = head_u64(h, "the columns of a field", &ret->columns);
    return r;
}

/* Count a vector, and compare the count with the shape before it. */
static int get_count(struct head *h, const struct field_head *f, uint64_t *ret)
{
    uint64_t n;
    int r = head_u64(h, f->name, ret);

    if (r == 0 && (!checked_mul(f->rows, f->columns, &n) || n != *ret))
        r = fault(h, h->at - 8, "%s of %llu times %llu elements, got %llu", f->name,
                  (unsigned long long)f->rows, (unsigned long long)f->columns,
                  (unsigned long long)*ret);
    return r;
}

/* Strings, which text gets; NULL: they are skipped. */
static int get_strings(struct head *h, const struct field_head *f, struct text *text,
                       uint64_t *ret_n)
{
    int r = get_count(h, f, ret_n);

    if (r == 0)
        r = head_has(h, *ret_n, 8, f->name);
    if (r == 0 && *ret_n > STRINGS_MAX)
        return fault(h, h->at - 8, "%s of at most 2^26 strings, got %llu", f->name,
                     (unsigned long long)*ret_n);
    for (uint64_t i = 0; i < *ret_n && r == 0; i++) {
        const uint8_t *string;
        size_t len;

        r = head_string(h, f->name, &string, &len);
        if (r < 0 || !text || text->len > DMATRIX_NAMES_MAX)
            continue;
        json_add_bytes(text, string, len);
    }
    return r;
}

/* The numbers of a field: where they are. */
static int get_numbers(struct head *h, const struct field_head *f, struct dmatrix_vector *ret)
{
    static const uint8_t element_bytes[] = {
        [TYPE_F32] = 4, [TYPE_F64] = 8, [TYPE_U32] = 4, [TYPE_U64] = 8, [TYPE_STRING] = 1,
    }; /* the last: of the categories, which are no strings but bytes */
    uint64_t n = 1;
    int r = f->is_scalar ? 0 : get_count(h, f, &n);

    if (r == 0)
        r = head_has(h, n, element_bytes[f->type], f->name);
    *ret = (struct dmatrix_vector){.at = h->at, .n = n};
    h->at += r == 0 ? n * element_bytes[f->type] : 0;
    return r;
}

/* Field number i; those behind the known ones are skipped. */
static int get_field(struct head *h, uint64_t i)
{
    struct dmatrix *m = h->m;
    uint64_t begin = h->at, *scalar[SCALARS] = {&m->rows, &m->columns, &m->entries}, n;
    struct dmatrix_vector ignored;
    struct field_head f = {0};
    int r = get_field_head(h, &f);

    if (r < 0)
        return r;
    if (i < N_KNOWN && (strcmp(f.name, known[i].name) != 0 || f.type != known[i].type ||
                        f.is_scalar != (i < SCALARS)))
        return fault(h, begin, "field %s of type %u, got '%.40s' of type %u%s", known[i].name,
                     known[i].type, f.name, f.type, f.is_scalar ? ", one number" : "");
    if (i < SCALARS)
        return head_u64(h, f.name, scalar[i]);
    if (i == NAMES)
        return get_strings(h, &f, &m->names, &m->n_names);
    if (i == TYPES)
        return get_strings(h, &f, &m->types, &m->n_types);
    if (f.type == TYPE_STRING && f.is_scalar) {
        const uint8_t *string;
        size_t len;

        return head_string(h, "a string", &string, &len);
    }
    if (f.type == TYPE_STRING && i != CATEGORIES)
        return get_strings(h, &f, NULL, &n);
    r = get_numbers(h, &f,
                    i == FEATURE_WEIGHTS ? &m->vector[DMATRIX_FEATURE_WEIGHTS]
                    : i < NAMES          ? &m->vector[i - SCALARS]
                                         : &ignored);
    m->has_categories |= i == CATEGORIES && r == 0 && ignored.n > 2; /* {}: there are none */
    return r;
}

/* The fields that a version has at least. */
static unsigned fields_of(const unsigned version[static 3])
{
    unsigned at = version[0] * 100 + version[1];

    return at < 101 ? 7 : at < 102 ? 9 : at < 106 ? 11 : at < 301 ? 12 : 13;
}

/* ---- the whole ---- */

static int get_version(struct head *h, uint64_t *ret_fields)
{
    static const char word[] = "version:";
    struct dmatrix *m = h->m;
    const uint8_t *bytes;
    int r = head_bytes(h, 8, "the head of a DMatrix", &bytes);

    if (r < 0)
        return r;
    if (load_le32(bytes) != MAGIC)
        return fault(h, 0, "01 AB FF FF of a DMatrix, got others");
    if (memcmp(bytes + 4, word, 4) != 0)
        return diag_set(h->d, -EBADMSG,
                        "%s: byte 4: expected 'version:', got %u: it was written by XGBoost before "
                        "1.0, and XGBoost cannot read it any more. Load it with XGBoost 0.90, and "
                        "write it as text",
                        blob_name(h->blob), load_le32(bytes + 4));
    r = head_bytes(h, 16, "a version", &bytes);
    if (r == 0 && memcmp(bytes, word + 4, 4) != 0)
        return fault(h, 4, "'version:', got other bytes");
    for (unsigned i = 0; i < 3 && r == 0; i++)
        m->version[i] = load_le32(bytes + 4 + 4 * (size_t)i);
    if (r == 0 && (m->version[0] < 1 || m->version[0] > 3 || m->version[1] > 99))
        return fault(h, 12, "version 1.0 to 3.x of XGBoost, got %u.%u", m->version[0],
                     m->version[1]);
    if (r == 0)
        r = head_u64(h, "the number of fields", ret_fields);
    if (r == 0 && *ret_fields < fields_of(m->version))
        return fault(h, h->at - 8, "at least %u fields in version %u.%u, got %llu",
                     fields_of(m->version), m->version[0], m->version[1],
                     (unsigned long long)*ret_fields);
    return r;
}

/* Do the counts of vectors fit the rows, the groups and the columns? */
static int check_counts(const struct head *h)
{
    struct dmatrix *m = h->m;
    uint64_t groups = dmatrix_groups(m);

    for (unsigned i = 0; i < N_DMATRIX_VECTORS; i++) {
        struct dmatrix_vector *v = &m->vector[i];
        bool is_one = i == DMATRIX_WEIGHTS || i == DMATRIX_LOWER || i == DMATRIX_UPPER;
        uint64_t rows = i == DMATRIX_FEATURE_WEIGHTS ? m->columns : m->rows;

        if (i == DMATRIX_GROUPS && groups > m->rows)
            return fault(h, v->at - 8, "at most %llu groups, as many as rows, got %llu",
                         (unsigned long long)m->rows, (unsigned long long)groups);
        if (!v->n || i == DMATRIX_GROUPS || (i == DMATRIX_WEIGHTS && groups && v->n == groups))
            continue;
        if (!rows || v->n % rows || (is_one && v->n != rows))
            return fault(h, v->at - 8, "%s of %s%llu numbers%s, got %llu", known[field_of(i)].name,
                         is_one ? "" : "a multiple of ", (unsigned long long)rows,
                         i == DMATRIX_WEIGHTS && groups ? ", or one of each group" : "",
                         (unsigned long long)v->n);
        v->per_row = v->n / rows;
    }
    if (m->columns > COLUMNS_MAX)
        return fault(h, h->at, "at most 2^32 columns, got %llu", (unsigned long long)m->columns);
    if ((m->n_names && m->n_names != m->columns) || (m->n_types && m->n_types != m->columns))
        return fault(h, h->at, "names and types of %llu features, got %llu and %llu",
                     (unsigned long long)m->columns, (unsigned long long)m->n_names,
                     (unsigned long long)m->n_types);
    return 0;
}

static int find_rows(struct head *h)
{
    struct dmatrix *m = h->m;
    uint64_t n, rows;
    int r = head_u64(h, "the places of rows", &n);

    if (r == 0 && (!checked_add(m->rows, 1, &rows) || n != rows))
        return fault(h, h->at - 8, "places of %llu rows and of their end, got %llu",
                     (unsigned long long)m->rows, (unsigned long long)n);
    if (r == 0)
        r = head_has(h, n, 8, "places of rows");
    if (r < 0)
        return r;
    m->offsets = h->at;
    h->at += n * 8;
    r = head_u64(h, "the number of entries", &n);
    if (r == 0 && n != m->entries)
        return fault(h, h->at - 8, "%llu entries as num_nonzero says, got %llu",
                     (unsigned long long)m->entries, (unsigned long long)n);
    if (r == 0)
        r = head_has(h, n, DMATRIX_ENTRY, "entries");
    if (r == 0 && h->blob->size - h->at != n * DMATRIX_ENTRY)
        return fault(h, h->at + n * DMATRIX_ENTRY, "the end of the file, got %llu bytes more",
                     (unsigned long long)(h->blob->size - h->at - n * DMATRIX_ENTRY));
    m->data = h->at;
    return r;
}

int dmatrix_read(const struct blob *blob, struct dmatrix *ret, struct diag *d)
{
    struct dmatrix m = {0};
    struct head h = {
        .blob = blob, .m = &m, .d = d, .window = {.least = HEAD_BYTES, .most = HEAD_BYTES}};
    uint64_t fields = 0;
    int r = get_version(&h, &fields);

    for (uint64_t i = 0; i < fields && r == 0; i++)
        r = get_field(&h, i);
    if (r == 0)
        r = check_counts(&h);
    if (r == 0)
        r = find_rows(&h);
    if (r == 0 && (m.names.failed || m.types.failed))
        r = -ENOMEM;
    pass_window_release(&h.window);
    if (r < 0) {
        dmatrix_release(&m);
        return diag_set(d, r, "%s: %s", blob_name(blob), strerror(-r));
    }
    *ret = m;
    return 0;
}

void dmatrix_release(struct dmatrix *m)
{
    text_release(&m->names);
    text_release(&m->types);
}

static bool is_same_text(const struct text *a, const struct text *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

bool dmatrix_is_alike(const struct dmatrix *a, const struct dmatrix *b)
{
    for (unsigned i = 0; i < N_DMATRIX_VECTORS; i++)
        if (i != DMATRIX_FEATURE_WEIGHTS &&
            (!a->vector[i].n != !b->vector[i].n || a->vector[i].per_row != b->vector[i].per_row))
            return false;
    return is_same_text(&a->names, &b->names) && is_same_text(&a->types, &b->types);
}
