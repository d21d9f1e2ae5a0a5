/* Reads the whole file, record by record, through a window that grows to a record that is larger.
 * Each checksum is checked before its bytes mean anything. What a record teaches of its features is
 * learned once all of it was read, so a record that breaks off adds no names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/index/pass_window.h"
#include "format/tfrecord/file.h"
#include "format/tfrecord/frame.h"

#define WINDOW       (UINT64_C(1) << 20) /* bytes that are read at once, */
#define WINDOW_FAR   (UINT64_C(8) << 20) /* and from a remote, whose answers take time */
#define STEP_BYTES   (UINT64_C(4) << 20)
#define STEP_RECORDS 10000
#define FEW          16 /* features */

struct pass {
    struct tfrecord_file *file;
    uint64_t at; /* of the next record */

    struct pass_window window;

    unsigned columns; /* of the index */
    uint64_t number[INDEX_LEARNED];

    /* For one record: */
    unsigned n; /* entries */
    struct example_feature entry[EXAMPLE_FEATURES];
    unsigned last[COLUMNS_LEARNED]; /* of each feature: 1 + its last entry; 0 between records */
    /* The feature of entry i of the records before: mostly it is that of this one as well. */
    unsigned expected[EXAMPLE_FEATURES];
    uint8_t name[1 + EXAMPLE_NAME_MAX];
};

static void tfrecord_pass_free(struct pass *pass)
{
    if (pass)
        pass_window_release(&pass->window);
    free(pass);
}

/* ---- bytes ---- */

static int tfrecord_pass_bytes(struct pass *pass, uint64_t at, uint64_t len, const uint8_t **ret,
                               struct diag *d)
{
    const struct blob *blob = pass->file->base.blob;

    return pass_window_at(&pass->window, blob, at, len, blob->size, ret, d);
}

/* For data that no message can have: 1: they match their checksum, 0: they do not. */
static int check_long(struct pass *pass, uint64_t len, struct diag *d)
{
    uint64_t at = pass->at + FRAME_HEAD, end = at + len, n;
    const uint8_t *p;
    uint32_t crc = 0;
    int r;

    for (; at < end; at += n) {
        n = min_u64(WINDOW, end - at);
        r = tfrecord_pass_bytes(pass, at, n, &p, d);
        if (r < 0)
            return r;
        crc = crc32c(crc, p, (size_t)n);
    }
    r = tfrecord_pass_bytes(pass, end, 4, &p, d);
    return r < 0 ? r : load_le32(p) == crc32c_masked(crc);
}

/* ---- features ---- */

static int keep_entry(void *ctx, const struct example_feature *f)
{
    struct pass *pass = ctx;

    pass->entry[pass->n++] = *f;
    return 0;
}

/* The feature of entry i. 0, -E2BIG: there are too many, or -ENOMEM. */
static int find_feature(struct pass *pass, unsigned i, unsigned *ret)
{
    struct column_table *t = &pass->file->features;
    const struct example_feature *f = &pass->entry[i];
    const struct learned_column *c = t->column ? &t->column[pass->expected[i]] : NULL;
    char first = f->is_list ? FEATURE_OF_LISTS : FEATURE_OF_CONTEXT;
    int r;

    if (c && c->len == f->name_len + 1 && c->name[0] == first &&
        !memcmp(c->name + 1, f->name, f->name_len)) {
        *ret = pass->expected[i];
        return 0;
    }
    pass->name[0] = (uint8_t)first;
    memcpy(pass->name + 1, f->name, f->name_len);
    r = column_table_add(t, pass->name, 1 + f->name_len, ret);
    if (r == 0)
        pass->expected[i] = *ret;
    return r;
}

/* The index has one column more, if it can. 0 or -ENOMEM. */
static int tfrecord_pass_add_column(struct pass *pass, struct learned_column *c, unsigned number)
{
    int r;

    if (c->number[number] || c->number[FEATURE_OUT])
        return 0;
    if (pass->columns == INDEX_LEARNED) {
        c->number[FEATURE_OUT] = 1;
        return 0;
    }
    r = index_builder_columns(pass->file->base.prepared.builder, pass->columns + 1);
    if (r == 0)
        c->number[number] = pass->columns++;
    return r;
}

static int learn_feature(struct pass *pass, struct learned_column *c,
                         const struct example_feature *f, const uint8_t *message)
{
    int r = tfrecord_pass_add_column(pass, c, FEATURE_COUNT);

    if (r == 0 && f->bytes)
        r = tfrecord_pass_add_column(pass, c, FEATURE_BYTES);
    if (r == 0 && f->steps)
        r = tfrecord_pass_add_column(pass, c, FEATURE_STEPS);
    if (r < 0)
        return r;
    feature_learn(c, f, message);
    pass->number[c->number[FEATURE_COUNT]] = feature_number(f->count, f->type);
    if (f->bytes)
        pass->number[c->number[FEATURE_BYTES]] = f->bytes;
    if (f->steps)
        pass->number[c->number[FEATURE_STEPS]] = f->steps;
    return 0;
}

/* For entries of one name the last one counts. */
static int learn_entries(struct pass *pass, const uint8_t *message)
{
    unsigned feature[EXAMPLE_FEATURES];
    int r = 0;

    for (unsigned i = 0; i < pass->n && r == 0; i++) {
        r = find_feature(pass, i, &feature[i]);
        if (r == 0) {
            pass->last[feature[i]] = i + 1;
        } else if (r == -E2BIG) {
            feature[i] = UINT32_MAX;
            r = 0;
        }
    }
    for (unsigned i = 0; i < pass->n && r == 0; i++) {
        if (feature[i] == UINT32_MAX || pass->last[feature[i]] != i + 1)
            continue;
        pass->last[feature[i]] = 0;
        r = learn_feature(pass, &pass->file->features.column[feature[i]], &pass->entry[i], message);
    }
    return r;
}

/* ---- records ---- */

static int tfrecord_pass_add_row(struct pass *pass)
{
    int r = index_add(pass->file->base.prepared.builder, NULL, 0, pass->number);

    memset(pass->number, 0, pass->columns * sizeof(pass->number[0]));
    return r;
}

static int tfrecord_pass_add_record(struct pass *pass, const uint8_t *data, uint64_t len,
                                    bool is_good)
{
    struct findings *found = &pass->file->findings;
    struct example_fault fault;
    int r = -EBADMSG;

    pass->n = 0;
    if (!is_good && !found->spoilt++)
        found->first_spoilt = pass->at;
    if (is_good && data)
        r = example_parse(data, len, keep_entry, pass, &fault);
    if (r == 0)
        r = learn_entries(pass, data);
    if (r < 0 && r != -EBADMSG)
        return r;
    found->examples += r == 0 && pass->n;
    found->others += r < 0 && is_good;
    pass->number[FILE_AT] = pass->at;
    pass->number[FILE_STATE] = r == 0 ? RECORD_EXAMPLE : is_good ? RECORD_OTHER : RECORD_SPOILT;
    return tfrecord_pass_add_row(pass);
}

static int end_here(struct pass *pass, enum tail tail)
{
    pass->file->findings.tail = tail;
    pass->file->findings.tail_at = pass->at;
    return 1;
}

/* 1: the records end before the file does, 0, or -errno with the reason in d. */
static int pass_record(struct pass *pass, struct diag *d)
{
    uint64_t left = pass->file->base.blob->size - pass->at, len;
    const uint8_t *p = NULL;
    int r;

    if (left < FRAME_HEAD)
        return end_here(pass, TAIL_HEAD_CUT);
    r = tfrecord_pass_bytes(pass, pass->at, FRAME_HEAD, &p, d);
    if (r < 0)
        return r;
    if (!frame_head(p, &len))
        return end_here(pass, TAIL_HEAD);
    if (left < FRAME_BYTES || len > left - FRAME_BYTES)
        return end_here(pass, TAIL_DATA_CUT);
    if (len > EXAMPLE_MAX) {
        r = check_long(pass, len, d);
        if (r >= 0)
            r = tfrecord_pass_add_record(pass, NULL, len, r == 1);
    } else {
        r = tfrecord_pass_bytes(pass, pass->at, FRAME_BYTES + len, &p, d);
        if (r == 0)
            r = tfrecord_pass_add_record(pass, p + FRAME_HEAD, len,
                                         frame_data(p + FRAME_HEAD, len));
    }
    if (r == 0)
        pass->at += FRAME_BYTES + len;
    return r;
}

/* ---- the index ---- */

static int tfrecord_begin(void *impl)
{
    struct tfrecord_file *file = impl;
    struct pass *pass = file->pass = calloc(1, sizeof(*pass));

    if (!pass)
        return -ENOMEM;
    pass->file = file;
    pass->window.least = pass->window.most = file->base.blob->ops->fetch ? WINDOW_FAR : WINDOW;
    pass->columns = FILE_FIXED;
    return 0;
}

static int tfrecord_step(void *impl, struct diag *d)
{
    struct tfrecord_file *file = impl;
    struct pass *pass = file->pass;
    uint64_t until = pass->at + STEP_BYTES;
    int r = 0;

    for (unsigned i = 0;
         i < STEP_RECORDS && r == 0 && pass->at < until && pass->at < file->base.blob->size; i++)
        r = pass_record(pass, d);
    atomic_store(&file->base.prepared.seen, pass->at);
    if (r < 0 || (r == 0 && pass->at < file->base.blob->size))
        return r;
    file->base.prepared.end[FILE_AT] = pass->at;
    tfrecord_pass_free(TAKE_PTR(file->pass));
    return 1;
}

static void tfrecord_keep(void *impl, struct kept *k)
{
    struct tfrecord_file *file = impl;
    struct findings *f = &file->findings;
    uint64_t rows = k->at ? file->base.prepared.index.rows : UINT64_MAX;

    kept_number(k, &f->examples, rows);
    kept_number(k, &f->others, rows);
    kept_number(k, &f->spoilt, rows - f->others);
    kept_number(k, &f->first_spoilt, file->base.blob->size);
    kept_number(k, &f->tail, N_TAILS - 1);
    kept_number(k, &f->tail_at, file->base.blob->size);
    column_table_keep(k, &file->features);
}

static bool feature_fits(const struct learned_column *c, unsigned columns)
{
    const uint64_t *n = c->number;

    for (unsigned i = FEATURE_COUNT; i <= FEATURE_STEPS; i++)
        if (n[i] && (n[i] < FILE_FIXED || n[i] >= columns))
            return false;
    return c->len && (c->name[0] == FEATURE_OF_CONTEXT || c->name[0] == FEATURE_OF_LISTS) &&
           (n[FEATURE_COUNT] || n[FEATURE_OUT]) && n[FEATURE_LEAST] <= n[FEATURE_MOST] &&
           n[FEATURE_MOST] <= EXAMPLE_MAX && n[FEATURE_LEAST_STEPS] <= n[FEATURE_MOST_STEPS] &&
           n[FEATURE_MOST_STEPS] <= EXAMPLE_MAX && n[FEATURE_LOOKS] < N_LOOKS;
}

/* A name begins with the kind of the feature. */
static bool left_out_fits(const struct column_table *t)
{
    return !t->left_out || *t->first_out;
}

static int tfrecord_load(void *impl, const struct index *index)
{
    const struct tfrecord_file *file = impl;

    for (unsigned i = 0; i < file->features.n; i++)
        if (!feature_fits(&file->features.column[i], index->shape.columns))
            return -EBADMSG;
    return left_out_fits(&file->features) ? 0 : -EBADMSG;
}

/* What was learned becomes the columns. */
static int tfrecord_ready(void *impl, struct diag *d)
{
    struct tfrecord_file *file = impl;
    const struct findings *f = &file->findings;
    uint64_t rows = file->base.prepared.index.rows;

    (void)d;
    if (file->features.n <= FEW) /* quick enough without a table */
        column_table_settle(&file->features);
    return features_show(&file->base, &file->features, rows - f->others - f->spoilt,
                         f->others > f->examples, &file->hidden);
}

static int file_open(void *p, const struct record_source *source, struct diag *d)
{
    (void)d;
    ((struct tfrecord_file *)p)->memo = source->setup->memo;
    return 0;
}

static void tfrecord_release(void *p)
{
    tfrecord_pass_free(((struct tfrecord_file *)p)->pass);
}

const struct record_file_ops tfrecord_file_ops = {
    .size = sizeof(struct tfrecord_file),
    .index = {.version = "tfrecord 2",
              .keep = tfrecord_keep,
              .load = tfrecord_load,
              .begin = tfrecord_begin,
              .step = tfrecord_step,
              .ready = tfrecord_ready},
    .shape = {.columns = FILE_FIXED, .rising = 1u << FILE_AT, .learns = true},
    .has_places = true,
    .least = FRAME_BYTES,
    .checks_rows = true,
    .side_by_side = true,
    .open = file_open,
    .release = tfrecord_release,
};
