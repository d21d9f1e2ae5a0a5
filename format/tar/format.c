/* WebDataset: shards that are tar archives, the columns of their fields, and their contents. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/tar/archive/header.h"
#include "format/tar/archive/hints.h"
#include "format/tar/archive/walk.h"
#include "format/tar/name.h"
#include "format/tar/shard.h"

/* ---- contents ---- */

static uint64_t tar_number_at(const struct tar_shard *shard, uint64_t row, uint64_t column)
{
    return index_number(&shard->base.prepared.index, row, (unsigned)column);
}

/* A faulty sample has all fields, so that its loss is seen. */
static bool tar_has(const void *file, uint64_t row, unsigned column)
{
    const struct tar_shard *shard = file;
    uint64_t place = tar_field_number(shard, shard->shows[column].field, TAR_FIELD_PLACE);

    return tar_number_at(shard, row, place) || tar_number_at(shard, row, TAR_FAULT);
}

static int tar_fields_check_fault(const struct tar_shard *shard, uint64_t row, struct diag *d)
{
    static const char *const faults[N_TAR_FAULTS] = {
        [TAR_TWICE] = "two members of one extension",
        [TAR_IS_SPARSE] = "a sparse member, which is never expanded",
        [TAR_CUT] = "the end of the file",
    };
    uint64_t fault = tar_number_at(shard, row, TAR_FAULT);

    if (!fault)
        return 0;
    return diag_set(d, -EBADMSG, "%s: byte %llu: expected a sample, got %s",
                    blob_name(shard->base.blob),
                    (unsigned long long)tar_number_at(shard, row, TAR_AT),
                    fault < N_TAR_FAULTS ? faults[fault] : "a fault");
}

static int tar_dims(const void *file, uint64_t row, unsigned column,
                    uint64_t ret[static RECORD_AXES], struct diag *d)
{
    const struct tar_shard *shard = file;
    const struct member_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    int r = tar_fields_check_fault(shard, row, d);

    if (r < 0)
        return r;
    if (shows->shown != MEMBER_AS_ARRAY && shows->shown != MEMBER_AS_INTEGER)
        ret[0] = tar_number_at(shard, row, number[TAR_FIELD_PLACE] + 1);
    if (shows->shown == MEMBER_AS_ARRAY)
        member_array_dims(&shard->base.prepared.index, row, number, ret);
    return 0;
}

/* The place of a member's bytes in the archive, without a header of .npy. */
static struct extent find_bytes(const struct tar_shard *shard, uint64_t row, unsigned column)
{
    const struct member_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    uint64_t head = 0;

    if (shows->shown == MEMBER_AS_ARRAY)
        head = member_array_head(&shard->base.prepared.index, row, number);
    return (struct extent){
        shard->base.blob,
        tar_number_at(shard, row, TAR_AT) +
            TAR_BLOCK * tar_number_at(shard, row, number[TAR_FIELD_PLACE]) + head,
        tar_number_at(shard, row, number[TAR_FIELD_PLACE] + 1) - head,
    };
}

static bool tar_extent(const void *file, uint64_t row, unsigned column, struct extent *ret)
{
    const struct tar_shard *shard = file;

    if (shard->shows[column].shown == MEMBER_AS_INTEGER || tar_number_at(shard, row, TAR_FAULT))
        return false;
    *ret = find_bytes(shard, row, column);
    return ret->len > 0;
}

static int tar_read(struct read_context *rc, const void *file, uint64_t row, unsigned column,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct tar_shard *shard = file;
    const struct member_column *shows = &shard->shows[column];
    const uint64_t *number = shard->table.column[shows->field].number;
    struct extent e;
    int r = tar_fields_check_fault(shard, row, d);

    if (r < 0)
        return r;
    switch (shows->shown) {
    case MEMBER_AS_INTEGER:
        member_integer_read(&shard->base.prepared.index, row, number, off, len, dst);
        return 0;
    case MEMBER_AS_ARRAY:
        e = find_bytes(shard, row, column);
        return member_array_read(rc, &e, &shard->base.prepared.index, row, number, off, len, dst,
                                 d);
    default:
        e = find_bytes(shard, row, column);
        return blob_read(rc, e.blob, dst, len, e.off + off, d);
    }
}

/* ---- comparing an index by content ---- */

/* What the index says of a sample: its key, its fields, their places and sizes, and the values that
 * the index has. */
struct verifying {
    struct member_reader reader;
    const struct tar_shard *shard;
    uint64_t row, at; /* at: of the first header */
    struct tar_walk walk;
    uint64_t member; /* place of the one whose value is read */
    size_t key_len;
    uint8_t key[KEY_MAX];
};

/* As of struct member_reader. */
static int tar_verify_bytes(struct member_reader *reader, size_t len, const uint8_t **ret,
                            struct diag *d)
{
    struct verifying *v = (struct verifying *)reader;

    return tar_walk_bytes(&v->walk, v->member, len, ret, d);
}

/* Ask for all headers that the sample needs at once. */
static int read_ahead(struct verifying *v, struct diag *d)
{
    uint8_t block[TAR_BLOCK];
    int all = 0;

    for (unsigned i = 0; i < v->shard->table.n; i++) {
        uint64_t place =
            tar_number_at(v->shard, v->row, tar_field_number(v->shard, i, TAR_FIELD_PLACE));

        if (place && !missing_go_on(v->walk.window.rc,
                                    blob_read(v->walk.window.rc, v->shard->base.blob, block,
                                              sizeof(block), v->at + (place - 1) * TAR_BLOCK, d),
                                    &all))
            break;
    }
    return all;
}

/* Does the member have the sample's key? Keys that repeat end in "~" and a number, those too long
 * for an index are numbers. */
static bool tar_verify_is_key(const struct verifying *v, const uint8_t *name, size_t len)
{
    const struct index *index = &v->shard->base.prepared.index;

    while (len > 2 && !memcmp(name, "./", 2)) {
        name += 2;
        len -= 2;
    }
    if (len > KEY_MAX)
        return true;
    if (v->key_len < len || memcmp(v->key, name, len) != 0)
        return false;
    return v->key_len == len || (index->renamed && v->key[len] == '~');
}

static int tar_verify_differs(const struct verifying *v, const char *what, struct diag *d)
{
    return diag_set(d, -EBADMSG, "byte %llu: expected %s of the sample, got another",
                    (unsigned long long)v->at, what);
}

/* Read the value again: it is that of the index, and like those of its column. */
static int verify_value(struct verifying *v, const struct tar_member *m, const uint64_t *number,
                        struct diag *d)
{
    uint64_t learned[COLUMN_NUMBERS], row[INDEX_LEARNED], at = number[MEMBER_VALUE];
    uint64_t n = number[MEMBER_FORM] == MEMBER_AS_ARRAY     ? 1 + number[MEMBER_AXES]
                 : number[MEMBER_FORM] == MEMBER_AS_INTEGER ? 1
                                                            : 0;
    const char *wrong, *what = number[MEMBER_FORM] == MEMBER_AS_ARRAY
                                   ? "the order of bytes and axes of an array"
                                   : "the values";
    int r;

    if (n && at < TAR_FIXED) /* no row has a value, says the index */
        return tar_verify_differs(v, what, d);
    memcpy(learned, number, sizeof(learned));
    v->member = m->at;
    r = member_read_value(&v->reader, learned, m->size, row, &wrong, d);
    for (uint64_t i = 0; i < n && r == 0; i++)
        if (wrong || row[at + i] != tar_number_at(v->shard, v->row, at + i))
            r = tar_verify_differs(v, what, d);
    return r;
}

static int verify_member(struct verifying *v, const struct tar_member *m, size_t ext,
                         unsigned *n_found, struct diag *d)
{
    const uint64_t *number;
    uint64_t place;
    unsigned field;

    if (!column_table_find(&v->shard->table, m->name + ext, m->name_len - ext, &field))
        return v->shard->table.n < TAR_FIELDS_MAX ? tar_verify_differs(v, "the fields", d) : 0;
    number = v->shard->table.column[field].number;
    place = number[TAR_FIELD_PLACE];
    if (m->type != TAR_FILE ||
        tar_number_at(v->shard, v->row, place) != (m->at - v->at) / TAR_BLOCK ||
        tar_number_at(v->shard, v->row, place + 1) != m->size)
        return tar_verify_differs(v, "the places of files", d);
    ++*n_found;
    return verify_value(v, m, number, d);
}

static int verify_members(struct verifying *v, unsigned n, struct diag *d)
{
    struct tar_member m;
    unsigned n_found = 0;
    int r;

    v->walk.at = v->at;
    while (n_found < n && (r = tar_walk_next(&v->walk, &m, d)) != 0) {
        struct tar_name name;

        if (r < 0)
            return r;
        if ((m.type != TAR_FILE && m.type != TAR_SPARSE) ||
            tar_name_split(m.name, m.name_len, &name) != TAR_NAME_SAMPLE)
            continue;
        if (!tar_verify_is_key(v, m.name, name.key_len))
            return tar_verify_differs(v, "the key", d);
        r = verify_member(v, &m, name.ext, &n_found, d);
        if (r < 0)
            return r;
    }
    return n_found == n ? 0 : tar_verify_differs(v, "all fields", d);
}

static int tar_verify(struct read_context *rc, const void *file, uint64_t row, struct diag *d)
{
    const struct tar_shard *shard = file;
    struct verifying v = {.reader.bytes = tar_verify_bytes, .shard = shard, .row = row};
    unsigned n = 0;
    int r;

    v.at = tar_number_at(shard, row, TAR_AT);
    if (tar_number_at(shard, row, TAR_FAULT))
        return 0; /* it is not read */
    for (unsigned i = 0; i < shard->table.n; i++)
        n += tar_number_at(shard, row, tar_field_number(shard, i, TAR_FIELD_PLACE)) > 0;
    v.key_len = index_key(&shard->base.prepared.index, row, v.key);
    r = tar_walk_init(&v.walk, shard->base.blob);
    v.walk.window.rc = rc;
    if (r == 0)
        r = read_ahead(&v, d);
    if (r == 0)
        r = verify_members(&v, n, d);
    tar_walk_release(&v.walk);
    return r;
}

/* ---- the format ---- */

static bool file_is_beside(const struct source_file *file)
{
    return tar_hints_are_called(file->name);
}

static void tar_damage(const void *file, struct text *t)
{
    text_add(t, "%s", ((const struct tar_shard *)file)->damage);
}

static void tar_note(const void *file, struct text *t)
{
    text_add(t, "%s", ((const struct tar_shard *)file)->note);
}

static const struct record_format shards = {
    .format = &format_tar,
    .file = &tar_shard_ops,
    .is_beside = file_is_beside,
    .has = tar_has,
    .dims = tar_dims,
    .extent = tar_extent,
    .read = tar_read,
    .verify = tar_verify,
    .damage = tar_damage,
    .note = tar_note,
};

/* A damaged archive is one too, if it says so: its message tells what is wrong. */
static enum claim tar_probe(const struct probed_file *file)
{
    struct tar_header header;

    if (tar_hints_are_called(file->name))
        return tar_hints_are_in(file->name, file->head, file->len) ? CLAIM_NAMED : CLAIM_NONE;
    if (file->len < TAR_BLOCK)
        return CLAIM_NONE;
    if (!memcmp(file->head + 257, "ustar", 5))
        return CLAIM_STRONG;
    return !tar_header_parse(file->head, &header) && header.type != TAR_END ? CLAIM_STRONG
                                                                            : CLAIM_NONE;
}

const struct format format_tar = {
    .name = "tar",
    .probe = tar_probe,
    .records = &shards,
    .title = "WebDataset shards (tar)",
    .example = "  batch = np.load(root + '/batches/batch=32,seed=7/epoch=0/npz/000000.npz')\n"
               "  # or tarfile.open(root + '/batches/batch=32,seed=7/epoch=0/tar/000000.tar')\n",
};
