/* The format: which files are MindRecord, what a row shows, and which files are one dataset. A row
 * that cannot be read stays a row, so that its loss is seen: the fields that are lost cannot be
 * read, the others can. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/members.h"
#include "base/read_context.h"
#include "format/mindrecord/file.h"

static const char *const faults[] = {
    [FAULT_NO_PAGE] = "expected its page in the file, got the end of the file before",
    [FAULT_PAGE] =
        "expected a row inside the used bytes of its page, got a length that goes past them",
    [FAULT_NO_RAW] = "expected a raw page with its row group, got none",
    [FAULT_MAP] = "expected a MessagePack map of numbers and text, got something else",
    [FAULT_LENGTH] = "expected lengths of fields that are together that of the blob, got others",
    [FAULT_ELEMENTS] = "expected whole elements, got bytes that are left",
    [FAULT_PACKED] = "expected packed integers of the bytes that exist, got others",
    [FAULT_SHAPE] = "expected the elements of its shape, got another number of them",
    [FAULT_LACKS] = "expected a value, got none",
    [FAULT_TYPE] = "expected a value of its type, got another",
    [FAULT_RANGE] = "expected a number that its type has, got a larger one",
    [FAULT_INDEX] = "the kept index is wrong",
};

/* The bytes of a field in the file. */
static uint64_t mindrecord_place(const struct mindrecord *file, uint64_t row, unsigned field)
{
    bool is_text = file->header.field[field].type == TYPE_TEXT;

    return index_number(&file->base.prepared.index, row,
                        is_text ? MINDRECORD_RAW_AT : MINDRECORD_BLOB_AT) +
           mindrecord_number(file, row, field, FIELD_AT);
}

static int mindrecord_refuse(const struct mindrecord *file, uint64_t row, unsigned field,
                             uint64_t state, struct diag *d)
{
    const struct mindrecord_field *f = &file->header.field[field];
    unsigned column = f->type < TYPE_TEXT ? MINDRECORD_BLOB_AT : MINDRECORD_RAW_AT;

    return diag_set(d, -EIO, "%s: row %llu at byte %llu: field '%s': %s",
                    blob_name(file->base.blob), (unsigned long long)row,
                    (unsigned long long)index_number(&file->base.prepared.index, row, column),
                    f->name, faults[state]);
}

/* ---- contents ---- */

/* Bytes that are lost are where the first kind of the field is. */
static bool mindrecord_has(const void *p, uint64_t row, unsigned column)
{
    const struct mindrecord *file = p;
    const struct record_column *shown = &file->base.column[column];
    uint64_t state;

    if (!shown->part)
        return true;
    state = mindrecord_number(file, row, shown->field, FIELD_STATE);
    if (state >= STATE_BYTES)
        return state == shown->part;
    return !column || shown[-1].field != shown->field;
}

static int mindrecord_dims(const void *p, uint64_t row, unsigned column,
                           uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct mindrecord *file = p;
    unsigned field = file->base.column[column].field;
    const struct mindrecord_field *f = &file->header.field[field];
    uint64_t state = mindrecord_number(file, row, field, FIELD_STATE), n, axis = 0;

    if (mindrecord_is_fault(state))
        return mindrecord_refuse(file, row, field, state, d);
    if (f->type > TYPE_TEXT)
        return 0;
    n = mindrecord_number(file, row, field, f->type == TYPE_ARRAY ? FIELD_COUNT : FIELD_LEN);
    if (n > file->base.blob->size || (f->type == TYPE_ARRAY && !mindrecord_fits(f, n, &axis)))
        return mindrecord_refuse(file, row, field, FAULT_INDEX, d);
    ret[0] = n;
    for (unsigned i = 0; i < f->ndim; i++)
        ret[i] = f->dim[i] == DIM_VARIES ? axis : f->dim[i];
    return 0;
}

static bool mindrecord_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct mindrecord *file = p;
    unsigned field = file->base.column[column].field;
    enum mindrecord_type type = file->header.field[field].type;

    if (type > TYPE_TEXT || mindrecord_is_fault(mindrecord_number(file, row, field, FIELD_STATE)))
        return false;
    *ret = (struct extent){file->base.blob, mindrecord_place(file, row, field),
                           mindrecord_number(file, row, field, FIELD_LEN)};
    return ret->len && ret->off <= ret->blob->size && ret->len <= ret->blob->size - ret->off;
}

bool mindrecord_unpack(const uint8_t *packed, uint64_t len, uint64_t n, unsigned width,
                       uint8_t *dst)
{
    uint64_t at = 4 + ceil_div(n, 4);

    if (len < at || load_be32(packed) != n)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        unsigned bytes = 1u << (packed[4 + i / 4] >> (6 - 2 * (i % 4)) & 3);
        uint64_t v = 0, sign = UINT64_C(1) << (8 * bytes - 1);

        if (len - at < bytes)
            return false;
        for (unsigned k = 0; k < bytes; k++)
            v |= (uint64_t)packed[at + k] << 8 * k;
        v = (v ^ sign) - sign;
        if (width == 4 && v + (UINT64_C(1) << 31) > UINT32_MAX)
            return false;
        if (width == 4)
            store_le32(dst + 4 * i, (uint32_t)v);
        else
            store_le64(dst + 8 * i, v);
        at += bytes;
    }
    return at == len;
}

struct unpacking {
    const struct mindrecord *file;
    struct read_context *rc;
    uint64_t row;
    unsigned field;
    struct diag *d;
};

static int make_unpacked(void *ctx, void **ret, size_t *ret_size)
{
    const struct unpacking *u = ctx;
    const struct mindrecord *file = u->file;
    uint64_t len = mindrecord_number(file, u->row, u->field, FIELD_LEN);
    uint64_t n = mindrecord_number(file, u->row, u->field, FIELD_COUNT);
    const struct mindrecord_field *f = &file->header.field[u->field];
    unsigned width = dtype_info(f->dtype)->bytes;
    AUTO_FREE uint8_t *packed = NULL, *all = NULL;
    uint64_t axis;
    int r;

    if (len > file->base.blob->size || n > len || !mindrecord_fits(f, n, &axis))
        return mindrecord_refuse(file, u->row, u->field, FAULT_INDEX, u->d);
    packed = malloc((size_t)len + 1);
    all = malloc((size_t)(n * width) + 1);
    if (!packed || !all)
        return -ENOMEM;
    r = blob_read(u->rc, file->base.blob, packed, (size_t)len,
                  mindrecord_place(file, u->row, u->field), u->d);
    if (r == 0)
        r = blob_verify(file->base.blob, u->d);
    if (r < 0)
        return r;
    if (!mindrecord_unpack(packed, len, n, width, all))
        return mindrecord_refuse(file, u->row, u->field, FAULT_PACKED, u->d);
    *ret = TAKE_PTR(all);
    *ret_size = (size_t)(n * width) + 1;
    return 0;
}

static int read_packed(struct read_context *rc, const struct mindrecord *file, uint64_t row,
                       unsigned field, uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct unpacking unpacking = {file, rc, row, field, d};
    const struct memo_maker maker = {make_unpacked, &unpacking, rc};
    const struct memo_key key = {{(uintptr_t)file, row, field, (uintptr_t)make_unpacked}};
    AUTO_MEMO struct memo_thing *thing = NULL;
    int r = memo_get(file->memo, &key, &maker, &thing);

    if (r == 0)
        memcpy(dst, (const uint8_t *)memo_bytes(thing) + off, len);
    return r;
}

static int mindrecord_content(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                              uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct mindrecord *file = p;
    unsigned field = file->base.column[column].field;
    const struct mindrecord_field *f = &file->header.field[field];
    uint64_t state = mindrecord_number(file, row, field, FIELD_STATE);
    uint8_t bytes[8];

    if (mindrecord_is_fault(state))
        return mindrecord_refuse(file, row, field, state, d);
    if (f->packed)
        return read_packed(rc, file, row, field, off, len, dst, d);
    if (f->type <= TYPE_TEXT)
        return blob_read(rc, file->base.blob, dst, len, mindrecord_place(file, row, field) + off,
                         d);
    store_le64(bytes, mindrecord_number(file, row, field, FIELD_AT));
    memcpy(dst, bytes + off, len);
    return 0;
}

/* ---- a file ---- */

static const char *mindrecord_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void mindrecord_damage(const void *p, struct text *t)
{
    const struct mindrecord *file = p;

    if (file->lost > 1)
        text_add(t, "%s: %s, nor can %llu other rows\n", blob_name(file->base.blob), file->reason,
                 (unsigned long long)file->lost - 1);
    else if (*file->reason)
        text_add(t, "%s: %s\n", blob_name(file->base.blob), file->reason);
}

static void mindrecord_note(const void *p, struct text *t)
{
    const struct mindrecord *file = p;
    const char *address = file->header.address[file->header.shard];

    if (file->header.n_shards > 1 && strcmp(mindrecord_base_name(address),
                                            mindrecord_base_name(blob_name(file->base.blob))) != 0)
        text_add(t, "%s was written as '%s'; the order of shards is that of their numbers\n",
                 blob_name(file->base.blob), address);
}

static int mindrecord_check(void *p, struct diag *d)
{
    return mindrecord_check_hash(((const struct mindrecord *)p)->base.blob, d);
}

/* ---- the files of a folder ---- */

static const struct mindrecord *mindrecord_of(const struct record_file *file)
{
    return (const struct mindrecord *)file;
}

static int mindrecord_by_set(const void *a, const void *b)
{
    const struct mindrecord *x = mindrecord_of(*(struct record_file *const *)a);
    const struct mindrecord *y = mindrecord_of(*(struct record_file *const *)b);
    unsigned i = x->header.shard, k = y->header.shard;
    int r = strcmp(x->header.set, y->header.set);

    return r ? r : i != k ? (i > k) - (i < k) : strcmp(x->name, y->name);
}

/* What the names of the shards begin with. */
static char *mindrecord_set_name(const struct mindrecord_header *header)
{
    const char *name = mindrecord_base_name(header->address[0]);
    size_t len = strlen(name);

    while (len > 1 && isdigit((unsigned char)name[len - 1]))
        len--;
    return strndup(name, len);
}

/* Why n files, sorted, are not all shards of their set; false: they are. */
static bool mindrecord_is_incomplete(struct record_file *const *file, unsigned n, const char *name,
                                     struct diag *why)
{
    const struct mindrecord_header *header = &mindrecord_of(file[0])->header;

    for (unsigned i = 0, shard = 0; i < n || shard < header->n_shards; i++, shard++) {
        unsigned found = i < n ? mindrecord_of(file[i])->header.shard : header->n_shards;

        if (found == shard)
            continue;
        if (i && found == shard - 1)
            diag_set(why, -EBADMSG, "%s: expected each shard once, got shard %u as %s and as %s",
                     name, found, mindrecord_of(file[i - 1])->name, mindrecord_of(file[i])->name);
        else
            diag_set(why, -EBADMSG, "%s: expected %u shards, got none that is shard %u, '%s'", name,
                     header->n_shards, shard, header->address[shard]);
        return true;
    }
    return false;
}

static int mindrecord_add_sets(struct record_file **file, unsigned n,
                               const struct format_setup *setup, struct finds *finds);

static const struct record_format mindrecord_records = {
    .format = &format_mindrecord,
    .file = &mindrecord_file_ops,
    .has = mindrecord_has,
    .dims = mindrecord_dims,
    .extent = mindrecord_extent,
    .extents_are_copies = true,
    .read = mindrecord_content,
    .damage = mindrecord_damage,
    .note = mindrecord_note,
    .check = mindrecord_check,
    .add_sets = mindrecord_add_sets,
};

/* The dataset of n files, sorted, that are shards of one set. */
static int mindrecord_add_set(struct record_file *const *file, unsigned n, bool is_all,
                              const struct format_setup *setup, struct finds *finds)
{
    AUTO_FREE char *set = mindrecord_set_name(&mindrecord_of(file[0])->header);
    const char *name = is_all ? SHARDS_ALL : set;
    struct dataset *ds = NULL;
    struct diag why = DIAG_INIT;
    int r;

    if (!set)
        return -ENOMEM;
    if (mindrecord_is_incomplete(file, n, name, &why))
        return finds->error(finds, name, why.text);
    r = record_set_new(&mindrecord_records, file, n, setup, &ds);
    return r < 0 ? r : finds->dataset(finds, name, ds);
}

static int mindrecord_add_sets(struct record_file **file, unsigned n,
                               const struct format_setup *setup, struct finds *finds)
{
    int r = 0;

    qsort(file, n, sizeof(struct record_file *), mindrecord_by_set);
    for (unsigned first = 0, end; first < n && r == 0; first = end) {
        const struct mindrecord_header *header = &mindrecord_of(file[first])->header;

        for (end = first + 1;
             end < n && !strcmp(header->set, mindrecord_of(file[end])->header.set);)
            end++;
        if (end - first > 1 && header->n_shards > 1)
            r = mindrecord_add_set(&file[first], end - first, end - first == n, setup, finds);
    }
    return r;
}

/* ---- the format ---- */

/* MindSpore's index of file x is x.db, a file of SQLite, which is never opened. SQLite itself may
 * leave more next to it. */
static bool mindrecord_is_database(const char *name, size_t *ret_len)
{
    static const char *const ends[] = {".db", ".db-journal", ".db-wal", ".db-shm"};
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        *ret_len = len - strlen(ends[i]);
        if (len > strlen(ends[i]) && !strcmp(name + *ret_len, ends[i]))
            return true;
    }
    return false;
}

static int mindrecord_claim_names(const struct members *listing, struct claims *ret)
{
    size_t len;

    for (size_t i = 0; i < listing->n; i++) {
        AUTO_FREE char *data = NULL;
        const char *folder = members_folder_of(listing, i);

        if (ret->taken[i] || !mindrecord_is_database(members_name(listing, i), &len))
            continue;
        data = strndup(members_name(listing, i), len);
        if (!data)
            return -ENOMEM;
        if (members_lookup(listing, folder, strlen(folder), data) < listing->n)
            ret->taken[i] = CLAIMS_ASIDE;
    }
    return 0;
}

static bool mindrecord_is_text(const struct probed_file *file)
{
    for (size_t i = 0; i < file->len && i < 64; i++)
        if (file->head[i] >= 0x7f || (file->head[i] < ' ' && !isspace(file->head[i])))
            return false;
    return true;
}

/* Bytes of that name without the header are encrypted, or damaged: ERROR.txt says so. Text is not,
 * it may be a pointer to a file, or what a server says. */
static enum claim mindrecord_probe(const struct probed_file *file)
{
    size_t len;

    if (file->len > 8 && file->head[8] == '{' && load_le64(file->head) < UINT64_C(1) << 40 &&
        memmem(file->head, file->len, "\"header_size\"", 13))
        return CLAIM_NAMED;
    return strstr(file->name, ".mindrecord") && !mindrecord_is_database(file->name, &len) &&
                   !mindrecord_is_text(file)
               ? CLAIM_WEAK
               : CLAIM_NONE;
}

const struct format format_mindrecord = {
    .name = "mindrecord",
    .claim_names = mindrecord_claim_names,
    .probe = mindrecord_probe,
    .records = &mindrecord_records,
    .title = "MindRecord",
    .example = "  batch = np.load(root + '/batches/batch=32/npz/000000.npz')\n"
               "  for field in batch.files: print(field, batch[field].shape)\n",
};
