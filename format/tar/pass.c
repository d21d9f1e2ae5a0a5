/* The pass over a shard: members that follow one another and have one key become a sample. Members
 * that no sample has are counted, and end none. A number of a field, and the header of an array, is
 * read here, so that sizes are known from the index. */
#include "format/tar/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "format/tar/archive/walk.h"
#include "format/tar/name.h"

#define STEP_NS          10000000 /* duration of a step of the pass */
#define LOOK             64       /* headers between two readings of the clock */
#define JUDGED           64       /* samples from which the fields say whether they are samples */
#define FIRST_LEN        200      /* bytes of a name in notes */
#define COLUMNS_OF_FIELD 3        /* of the index, except arrays */

/* The sample whose members are being read. */
struct sample {
    bool is_open;
    enum tar_fault fault;
    size_t key_len;
    uint8_t key[TAR_NAME_MAX];
    uint64_t number[INDEX_LEARNED]; /* of its row */
    unsigned n_fields;
    uint16_t field[TAR_FIELDS_MAX]; /* [n_fields] that it has */
};

/* Members of a kind that no sample has. */
struct left {
    uint64_t n;
    char first[FIRST_LEN + 1];
};

/* The member whose value is to be read: a step may end before it is. */
struct value {
    bool is_open;
    unsigned field;
    struct tar_member member; /* its name is gone */
};

struct tar_pass {
    struct member_reader reader;
    struct tar_shard *shard;
    struct tar_walk walk;
    struct tar_hints hints;
    uint64_t good; /* samples without a fault */
    uint64_t faults[N_TAR_FAULTS];
    struct left no_ext, links;
    struct key_folders {
        unsigned n; /* that differ, up to 2 */
        char path[2][FIRST_LEN + 1];
    } folders; /* of keys */
    bool ended;
    struct diag cut;  /* why it has ended early */
    uint64_t skipped; /* where bytes are that are not read; 0: nowhere */
    bool is_open;     /* the mark of the end is missing */
    struct text notes;
    struct value value;
    struct sample sample;
};

/* As of struct member_reader. */
static int tar_pass_bytes(struct member_reader *reader, size_t len, const uint8_t **ret,
                          struct diag *d)
{
    struct tar_pass *pass = (struct tar_pass *)reader;

    return tar_walk_bytes(&pass->walk, pass->value.member.at, len, ret, d);
}

int tar_pass_new(struct tar_shard *shard, struct tar_pass **ret)
{
    struct tar_pass *pass = calloc(1, sizeof(*pass));
    int r = pass ? tar_walk_init(&pass->walk, shard->base.blob) : -ENOMEM;

    if (r < 0) {
        free(pass);
        return r;
    }
    pass->shard = shard;
    pass->reader = (struct member_reader){
        .builder = shard->base.prepared.builder, .columns = TAR_FIXED, .bytes = tar_pass_bytes};
    if (shard->hints)
        r = tar_hints_read(shard->hints, shard->base.blob->size, &pass->hints);
    blob_free(TAKE_PTR(shard->hints));
    if (r < 0) {
        tar_pass_free(pass);
        return r;
    }
    pass->walk.hints = &pass->hints;
    *ret = pass;
    return 0;
}

void tar_pass_free(struct tar_pass *pass)
{
    if (!pass)
        return;
    tar_walk_release(&pass->walk);
    tar_hints_release(&pass->hints);
    text_release(&pass->notes);
    free(pass);
}

/* ---- fields ---- */

static uint64_t *tar_pass_numbers_of(struct tar_pass *pass, unsigned field)
{
    return pass->shard->table.column[field].number;
}

/* Read the value of the member that was found last. */
static int tar_pass_read_value(struct tar_pass *pass, struct diag *d)
{
    unsigned field = pass->value.field;
    const struct tar_member *m = &pass->value.member;
    const char *wrong;
    int r = member_read_value(&pass->reader, tar_pass_numbers_of(pass, field), m->size,
                              pass->sample.number, &wrong, d);

    if (r < 0)
        return r;
    if (wrong)
        text_add(&pass->notes, "%s: byte %llu: %s; files .%s are shown as they are only\n",
                 blob_name(pass->shard->base.blob), (unsigned long long)m->at, wrong,
                 pass->shard->table.column[field].name);
    pass->value.is_open = false;
    return 0;
}

/* Find the field of an extension. 0, -E2BIG: it is omitted, or -ENOMEM. */
static int find_field(struct tar_pass *pass, const uint8_t *ext, size_t len, unsigned *ret)
{
    struct column_table *table = &pass->shard->table;
    unsigned n = table->n;
    uint64_t *number;
    int r = column_table_add(table, ext, len, ret);

    if (r < 0 || table->n == n)
        return r;
    number = tar_pass_numbers_of(pass, *ret);
    number[MEMBER_FORM] = member_shown_of((const char *)ext, len);
    pass->reader.spare = (TAR_FIELDS_MAX - table->n) * COLUMNS_OF_FIELD;
    return member_add_columns(&pass->reader, 2, &number[TAR_FIELD_PLACE]);
}

/* ---- samples ---- */

/* The key as the mount shows it: without "./" in front; of one that is too long, the number. */
static int tar_pass_add_row(struct tar_pass *pass)
{
    struct sample *s = &pass->sample;
    struct index_builder *builder = pass->shard->base.prepared.builder;
    const uint8_t *key = s->key;
    size_t len = s->key_len;
    char number[24];

    while (len > 2 && !memcmp(key, "./", 2)) {
        key += 2;
        len -= 2;
    }
    if (len <= KEY_MAX)
        return index_add(builder, key, len, s->number);
    len = (size_t)snprintf(number, sizeof(number), "%llu",
                           (unsigned long long)(pass->good + pass->shard->faults));
    return index_add(builder, number, len, s->number);
}

/* The sample has all its members. */
static int end_sample(struct tar_pass *pass)
{
    struct sample *s = &pass->sample;
    int r;

    if (!s->is_open)
        return 0;
    s->number[TAR_FAULT] = s->fault;
    r = tar_pass_add_row(pass);
    if (r < 0)
        return r;
    s->is_open = false;
    pass->faults[s->fault]++;
    pass->good += !s->fault;
    pass->shard->faults += s->fault != TAR_NO_FAULT;
    for (unsigned i = 0; i < s->n_fields && !s->fault; i++)
        tar_pass_numbers_of(pass, s->field[i])[MEMBER_ROWS]++;
    return 0;
}

/* Keep the first two folders of keys that differ. */
static void tar_pass_see_folder(struct key_folders *folders, const void *bytes, size_t key_len)
{
    const char *key = bytes;
    size_t skipped = key_len > 2 && !memcmp(key, "./", 2) ? 2 : 0;
    const char *slash = memrchr(key + skipped, '/', key_len - skipped);
    size_t len = slash ? (size_t)(slash - key) - skipped : 0;

    key += skipped;
    if (folders->n == 2 || !len || len > FIRST_LEN ||
        (folders->n && strlen(folders->path[0]) == len && !memcmp(folders->path[0], key, len)))
        return;
    memcpy(folders->path[folders->n], key, len);
    folders->path[folders->n++][len] = '\0';
}

static void begin_sample(struct tar_pass *pass, const struct tar_member *m, size_t key_len)
{
    struct sample *s = &pass->sample;

    tar_pass_see_folder(&pass->folders, m->name, key_len);

    memset(s->number, 0, pass->reader.columns * sizeof(s->number[0]));
    s->number[TAR_AT] = m->start;
    s->key_len = key_len;
    memcpy(s->key, m->name, key_len);
    s->fault = TAR_NO_FAULT;
    s->n_fields = 0;
    s->is_open = true;
}

/* The first fault of a sample counts. */
static void set_fault(struct sample *s, enum tar_fault fault)
{
    if (!s->fault)
        s->fault = fault;
}

static int tar_pass_add_member(struct tar_pass *pass, const struct tar_member *m, size_t ext)
{
    struct sample *s = &pass->sample;
    unsigned field;
    uint64_t *place;
    int r = find_field(pass, m->name + ext, m->name_len - ext, &field);

    if (r == -E2BIG)
        return 0;
    if (r < 0)
        return r;
    place = &s->number[tar_pass_numbers_of(pass, field)[TAR_FIELD_PLACE]];
    if (*place || m->type == TAR_SPARSE || m->is_cut) {
        set_fault(s, m->is_cut ? TAR_CUT : *place ? TAR_TWICE : TAR_IS_SPARSE);
        return 0;
    }
    place[0] = (m->at - s->number[TAR_AT]) / TAR_BLOCK;
    place[1] = m->size;
    s->field[s->n_fields++] = (uint16_t)field;
    pass->value = (struct value){true, field, *m};
    return 0;
}

/* ---- members ---- */

static void tar_pass_leave(struct left *left, const struct tar_member *m)
{
    if (!left->n++)
        snprintf(left->first, sizeof(left->first), "%.*s", (int)min_u64(m->name_len, FIRST_LEN),
                 (const char *)m->name);
}

static int refuse_project(const struct blob *blob, const struct tar_member *m, struct diag *d)
{
    return diag_set(d, -EBADMSG,
                    "%s: expected samples, got '%.*s': the files of a project; unpack it to use "
                    "data that may be in it",
                    blob_name(blob), (int)min_u64(m->name_len, FIRST_LEN), (const char *)m->name);
}

static int tar_pass_take_file(struct tar_pass *pass, const struct tar_member *m, struct diag *d)
{
    struct sample *s = &pass->sample;
    struct tar_name name;
    enum tar_name_type type;
    int r = 0;

    if (tar_name_is_of_project(m->name, m->name_len))
        return refuse_project(pass->shard->base.blob, m, d);
    type = tar_name_split(m->name, m->name_len, &name);
    if (type != TAR_NAME_SAMPLE) {
        if (type == TAR_NAME_NO_EXT)
            tar_pass_leave(&pass->no_ext, m);
        return 0;
    }
    if (!s->is_open || s->key_len != name.key_len || memcmp(s->key, m->name, name.key_len) != 0) {
        r = end_sample(pass);
        begin_sample(pass, m, name.key_len);
    }
    return r < 0 ? r : tar_pass_add_member(pass, m, name.ext);
}

static int tar_pass_take_member(struct tar_pass *pass, const struct tar_member *m, struct diag *d)
{
    switch (m->type) {
    case TAR_FILE:
    case TAR_SPARSE:
        return tar_pass_take_file(pass, m, d);
    case TAR_OTHER:
        tar_pass_leave(&pass->links, m);
        return 0;
    default:
        return 0;
    }
}

/* ---- the end ---- */

static uint64_t tar_pass_count_samples(const struct tar_pass *pass)
{
    return pass->good + pass->shard->faults;
}

/* Samples have fields in common; other archives have files of many kinds. */
static bool has_common_field(const struct tar_pass *pass)
{
    const struct column_table *table = &pass->shard->table;

    for (unsigned i = 0; i < table->n; i++)
        if (table->column[i].number[MEMBER_ROWS] >= ceil_div(pass->good, 2))
            return true;
    return false;
}

static int refuse_empty(const struct blob *blob, struct diag *d)
{
    return diag_set(d, -EBADMSG, "%s: expected samples, files <key>.<extension>, got none",
                    blob_name(blob));
}

static int tar_pass_judge(const struct tar_pass *pass, struct diag *d)
{
    const char *name = blob_name(pass->shard->base.blob);

    if (pass->cut.set && !pass->good)
        return diag_set(d, -EBADMSG, "%s", pass->cut.text);
    if (!tar_pass_count_samples(pass))
        return refuse_empty(pass->shard->base.blob, d);
    if (pass->good >= JUDGED && !has_common_field(pass))
        return diag_set(d, -EBADMSG,
                        "%s: expected samples, which have extensions in common, got files of %u "
                        "kinds, none with half of the keys",
                        name, pass->shard->table.n);
    return 0;
}

static int tar_pass_finish(struct tar_pass *pass, struct diag *d)
{
    struct tar_shard *shard = pass->shard;
    int r = end_sample(pass);

    if (r == 0)
        r = tar_pass_judge(pass, d);
    if (r == 0 && !pass->cut.set)
        r = tar_walk_rest(&pass->walk, &pass->skipped, d);
    pass->is_open = !pass->cut.set && tar_walk_is_open(&pass->walk);
    if (r < 0)
        return r;
    shard->base.prepared.end[TAR_AT] = pass->walk.end;
    pass->ended = true;
    return 0;
}

/* One member further. 0 or -errno. */
static int tar_pass_go_on(struct tar_pass *pass, struct diag *d)
{
    struct tar_member m;
    int r;

    if (pass->value.is_open)
        return tar_pass_read_value(pass, d);
    pass->cut.set = false;
    r = tar_walk_next(&pass->walk, &m, &pass->cut);
    if (r == 1)
        return tar_pass_take_member(pass, &m, d);
    if (r < 0 && r != -EBADMSG)
        return diag_set(d, r, "%s", diag_text(&pass->cut, r));
    r = m.is_cut ? tar_pass_take_member(pass, &m, d) : 0;
    return r < 0 ? r : tar_pass_finish(pass, d);
}

int tar_pass_step(struct tar_pass *pass, struct diag *d)
{
    int64_t until = monotonic_ns() + STEP_NS;
    int r = 0;

    for (unsigned i = 1; !pass->ended && r == 0; i++) {
        r = tar_pass_go_on(pass, d);
        if (i % LOOK == 0 && monotonic_ns() > until)
            break;
    }
    atomic_store_explicit(&pass->shard->base.prepared.seen, pass->walk.at, memory_order_relaxed);
    return r < 0 ? r : pass->ended;
}

/* Has the member a key and an extension? */
static bool is_of_sample(struct tar_member *m)
{
    struct tar_name name;

    return (m->type == TAR_FILE || m->type == TAR_SPARSE) &&
           tar_name_split(m->name, m->name_len, &name) == TAR_NAME_SAMPLE;
}

int tar_judge_start(const struct blob *blob, struct diag *d)
{
    AUTO(tar_walk_release) struct tar_walk w = {0};
    uint64_t end = min_u64(FORMAT_HEAD, blob->size);
    bool has_members = false, has_samples = false;
    struct tar_member m;
    struct diag cut = DIAG_INIT;
    int r = tar_walk_init(&w, blob);

    if (r == 0)
        r = 1;
    while (r == 1 && w.at + TAR_BLOCK <= end) {
        r = tar_walk_next(&w, &m, &cut);
        if (r != 1 || m.type >= TAR_PAX)
            continue;
        if (tar_name_is_of_project(m.name, m.name_len))
            return refuse_project(blob, &m, d);
        has_members = true;
        has_samples = has_samples || is_of_sample(&m);
    }
    if (r < 0 && (r != -EBADMSG || !has_members))
        return diag_set(d, r, "%s", diag_text(&cut, r));
    if (!has_samples && (r == 0 || w.at == blob->size))
        return refuse_empty(blob, d);
    return 0;
}

/* ---- notes ---- */

static void note_left(const struct tar_pass *pass, const struct left *left, const char *what,
                      struct text *t)
{
    if (left->n)
        text_add(t, "%s: %llu %s ignored, '%s' first\n", blob_name(pass->shard->base.blob),
                 (unsigned long long)left->n, what, left->first);
}

void tar_pass_damage(const struct tar_pass *pass, struct text *t)
{
    static const char *const faults[N_TAR_FAULTS] = {
        [TAR_TWICE] = "have two members of one extension",
        [TAR_IS_SPARSE] = "have a sparse member, which is never expanded",
        [TAR_CUT] = "are cut short",
    };
    const char *name = blob_name(pass->shard->base.blob);

    if (pass->cut.set)
        text_add(t, "%s; the samples before it can be read\n", pass->cut.text);
    for (unsigned i = TAR_NO_FAULT + 1; i < N_TAR_FAULTS; i++)
        if (pass->faults[i])
            text_add(t, "%s: %llu samples cannot be read: they %s\n", name,
                     (unsigned long long)pass->faults[i], faults[i]);
    if (pass->skipped)
        text_add(
            t,
            "%s: byte %llu: the %llu bytes after the end of the archive are not read: expected "
            "one archive in a file. Join archives with tar --concatenate, not with cat\n",
            name, (unsigned long long)pass->skipped,
            (unsigned long long)(pass->shard->base.blob->size - pass->skipped));
    if (pass->is_open)
        text_add(t,
                 "%s: byte %llu: the archive may be cut short: expected two blocks of zeros at its "
                 "end, got %s. Compare its size with that of the original\n",
                 name, (unsigned long long)pass->walk.end,
                 pass->walk.end < pass->shard->base.blob->size ? "one" : "none");
}

void tar_pass_notes(const struct tar_pass *pass, const struct index *index, struct text *t)
{
    const struct column_table *table = &pass->shard->table;
    const char *name = blob_name(pass->shard->base.blob);

    if (pass->notes.len)
        text_add_bytes(t, pass->notes.data, pass->notes.len);
    if (index->renamed)
        text_add(t,
                 "%s: %llu samples repeat the key of another: they are called <key>~2 and so on\n",
                 name, (unsigned long long)index->renamed);
    if (table->left_out)
        text_add(
            t, "%s: %llu members ignored, whose extensions are beyond the first %u, '.%s' first\n",
            name, (unsigned long long)table->left_out, TAR_FIELDS_MAX, table->first_out);
    if (pass->folders.n == 2)
        text_add(
            t,
            "%s: members are in folders, %s and %s first: in an archive these are parts of the "
            "keys, and no classes, splits or pairs. Unpack it to have them read as folders\n",
            name, pass->folders.path[0], pass->folders.path[1]);
    note_left(pass, &pass->no_ext, "files without an extension", t);
    note_left(pass, &pass->links, "links and devices", t);
}
