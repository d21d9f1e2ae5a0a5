/* tar: WebDataset's form. Each sample has one member per field, adjacent to each other:
 * `<key>.<field>.npy`; `<key>.<field>.cls` (decimal text) for a stored integer per sample; a field
 * that offers bytes under its own extension: `.wav`, `.txt`.
 *
 * POSIX ustar, and pax for names that do not fit; owner, times and modes are constants, so that the
 * same samples give the same bytes everywhere. WebDataset takes the key from the name up to the
 * first dot, so dots of keys are escaped. It takes neighbours with one key for one sample, so a
 * sample that follows itself (tail=wrap can repeat it) has its place after the key:
 * `<key>~<place>`. If all samples take the same space, a multiplication finds any of them;
 * otherwise sums over the selection do. */
#include "format/core/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/prefix_sums.h"
#include "format/encode/cls.h"
#include "format/encode/npy.h"

#define TAR_BLOCK       512u
#define TAR_END         1024u
#define TAR_NAME        100u /* bytes of the longest name in ustar */
#define KEY_SIZE_PLACED (KEY_NAME_SIZE + 24)
#define NAME_SIZE       (KEY_SIZE_PLACED + SUFFIX_SIZE)

/* Write octal if it fits, otherwise GNU's base-256 (sizes of 8 GiB and more). */
static void encode_tar_put_number(uint8_t *at, size_t capacity, uint64_t v)
{
    if (v >> (3 * (capacity - 1)) == 0) {
        for (size_t i = capacity - 1; i > 0; i--, v >>= 3)
            at[i - 1] = (uint8_t)('0' + (v & 7));
        return;
    }
    at[0] = 0x80;
    for (size_t i = capacity - 1; i > 0; i--, v >>= 8)
        at[i] = (uint8_t)v;
}

static void put_header(uint8_t *h, const char *name, uint64_t size, char type)
{
    unsigned sum = 0;

    memcpy(h, name, min_u64(strlen(name), TAR_NAME));
    encode_tar_put_number(h + 100, 8, 0444);
    encode_tar_put_number(h + 108, 8, 0);
    encode_tar_put_number(h + 116, 8, 0);
    encode_tar_put_number(h + 124, 12, size);
    encode_tar_put_number(h + 136, 12, 0);
    memset(h + 148, ' ', 8);
    h[156] = (uint8_t)type;
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += h[i];
    encode_tar_put_number(h + 148, 7, sum);
    h[154] = 0;
}

static bool name_is_long(const char *name)
{
    return strlen(name) > TAR_NAME;
}

static size_t header_bytes(const char *name)
{
    return name_is_long(name) ? 3 * TAR_BLOCK : TAR_BLOCK;
}

/* A pax record begins with its length, which counts its own digits. */
static void put_pax(uint8_t *h, const char *name)
{
    size_t payload = strlen(" path=\n") + strlen(name), len = payload + decimal_digits(payload);
    char record[TAR_BLOCK];

    len = payload + decimal_digits(len);
    snprintf(record, sizeof(record), "%zu path=%s\n", len, name);
    put_header(h, "././@PaxHeader", len, 'x');
    memcpy(h + TAR_BLOCK, record, len);
}

static uint8_t *tar_header(const char *name, uint64_t size)
{
    uint8_t *h = calloc(1, header_bytes(name));

    if (h && name_is_long(name))
        put_pax(h, name);
    if (h)
        put_header(h + header_bytes(name) - TAR_BLOCK, name, size, '0');
    return h;
}

static void member_name(const struct field *f, const char *key, char ret[static NAME_SIZE])
{
    bool named = f->form != FORM_BYTES || !f->unnamed;
    const char *ext = f->form == FORM_BYTES ? f->ext : field_is_in(f, IN_CLS) ? "cls" : "npy";

    ret = stpcpy(ret, key);
    if (named)
        ret = stpcpy(stpcpy(ret, "."), f->name);
    stpcpy(stpcpy(ret, "."), ext);
}

static int add_content(struct layout *l, const struct field *f)
{
    if (f->form == FORM_BYTES)
        return layout_add_field(l, f);
    return field_is_in(f, IN_CLS) ? cls_add(l, f) : npy_add(l, f);
}

/* Add a member's content after a placeholder for its header, which needs the size. measures: only
 * the size of the layout is wanted. */
static int encode_tar_add_member(struct layout *l, const struct field *f, const char *key,
                                 bool measures)
{
    unsigned header = l->n_parts;
    char name[NAME_SIZE];
    uint64_t content;
    uint8_t *bytes;
    int r;

    member_name(f, key, name);
    r = layout_add_zeros(l, header_bytes(name));
    if (r < 0)
        return r;
    content = l->size;
    r = add_content(l, f);
    if (r < 0)
        return r;
    content = l->size - content;
    bytes = measures ? NULL : tar_header(name, content);
    if (!bytes && !measures)
        return -ENOMEM;
    if (bytes)
        layout_replace_bytes(l, header, bytes);
    return layout_add_zeros(l, ceil_div(content, TAR_BLOCK) * TAR_BLOCK - content);
}

/* The sample at a place of a selection. */
struct placed {
    uint64_t sample;
    uint64_t place;
    bool follows_itself;
};

/* A walk over a selection, mostly forward. */
struct tar_walk {
    struct sample_window window;
    uint64_t next; /* the place after the last request; 0: no request yet */
    uint64_t last; /* the sample there */
};

/* Describe the sample at a place. */
static struct placed place_sample(struct tar_walk *walk, uint64_t place, uint64_t sample)
{
    const struct selection *sel = walk->window.sel;
    uint64_t before = walk->last;

    if (place && place != walk->next && !sel->in_order)
        selection_samples(sel, place - 1, 1, &before);
    walk->next = place + 1;
    walk->last = sample;
    return (struct placed){sample, place, place && !sel->in_order && before == sample};
}

static struct placed walk_to(struct tar_walk *walk, uint64_t place)
{
    return place_sample(walk, place, sample_window_at(&walk->window, place));
}

static int encode_tar_add_sample(struct layout *l, const struct placed *placed, bool measures)
{
    const struct dataset *ds = l->dataset;
    char key[KEY_SIZE_PLACED];
    size_t len = dataset_name(ds, placed->sample, true, key);

    if (placed->follows_itself)
        snprintf(key + len, sizeof(key) - len, "~%llu", (unsigned long long)placed->place);
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];
        bool has = field_is_in(f, IN_TAR) && dataset_has(ds, placed->sample, f);
        int r = has ? encode_tar_add_member(l, f, key, measures) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

/* Write bytes [off, off + len) of the members of one sample. */
static int read_sample(struct read_context *rc, struct layout *l, const struct placed *placed,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_LAYOUT struct layout one = {0};
    struct one_sample sel;
    int r;

    one_sample_init(&sel, placed->sample);
    sel.sel.reason = d;
    layout_init(&one, l->dataset, &sel.sel, l->host);
    r = encode_tar_add_sample(&one, placed, false);
    return r < 0 ? r : layout_read(rc, &one, off, len, dst, d);
}

/* The members of all samples, which are of one size;
 * number[0]: bytes of a sample. */
static int samples_read(struct read_context *rc, struct layout *l, const struct part *p,
                        uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    struct tar_walk walk = {.window.sel = l->selection};
    uint64_t each = p->number[0];
    int all = 0;

    while (len) {
        size_t n = (size_t)min_u64(len, each - off % each);
        struct placed placed = walk_to(&walk, off / each);

        if (!missing_go_on(rc, read_sample(rc, l, &placed, off % each, n, dst, d), &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static int add_alike(struct layout *l)
{
    struct part samples = {.read = samples_read};
    AUTO_LAYOUT struct layout one = {0};
    struct one_sample sel;
    int r;

    one_sample_init(&sel, 0);
    layout_init(&one, l->dataset, &sel.sel, NULL);
    r = encode_tar_add_sample(&one, &(struct placed){0}, true);
    if (r < 0)
        return r;
    samples.number[0] = one.size;
    if (!checked_mul(one.size, l->selection->count, &samples.size))
        return -EFBIG;
    return layout_add(l, &samples);
}

struct counting {
    const struct layout *l;
    struct tar_walk walk;
};

/* Counts places in other. */
static int sample_bytes(void *ctx, uint64_t sample, const struct sums_pair *before,
                        struct sums_pair *ret)
{
    struct counting *counting = ctx;
    const struct layout *l = counting->l;
    struct placed placed = place_sample(&counting->walk, before->other, sample);
    AUTO_LAYOUT struct layout one = {0};
    struct one_sample sel;
    int r;

    one_sample_init(&sel, sample);
    sel.sel.reason = l->selection->reason;
    layout_init(&one, l->dataset, &sel.sel, NULL);
    r = encode_tar_add_sample(&one, &placed, true);
    if (r == 0) {
        ret->size = one.size;
        ret->other = 1;
    }
    return r;
}

/* counting must outlive the sums. */
static int open_sums(const struct layout *l, struct counting *counting, struct sums *ret)
{
    const uint64_t *id = l->selection->id;
    const struct memo_key key = {
        {(uintptr_t)l->dataset, id[0], id[1], id[2], (uintptr_t)sample_bytes}};

    *counting = (struct counting){.l = l, .walk.window.sel = l->selection};
    return sums_open(ret, l->dataset->memo, &key, l->selection, sample_bytes, false, counting);
}

/* The members of samples that differ in size. */
static int differing_read(struct read_context *rc, struct layout *l, const struct part *p,
                          uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct tar_walk walk = {.window.sel = l->selection};
    struct sums_pair before, after;
    uint64_t place = 0;
    struct counting counting;
    int r = open_sums(l, &counting, &sums), all = 0;

    (void)p;
    if (r == 0)
        r = sums_find(&sums, off, &place, &before);
    if (r < 0)
        return r;
    for (; len; place++, before = after) {
        struct placed placed;
        size_t n;

        r = sums_after(&sums, place, &before, &after);
        if (r < 0)
            return r;
        placed = walk_to(&walk, place);
        n = (size_t)min_u64(len, after.size - off);
        if (!missing_go_on(rc, read_sample(rc, l, &placed, off - before.size, n, dst, d), &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static int add_differing(struct layout *l)
{
    AUTO_SUMS struct sums sums = {0};
    struct counting counting;
    int r = open_sums(l, &counting, &sums);

    return r < 0 ? r
                 : layout_add(
                       l, &(struct part){.size = sums_total(&sums).size, .read = differing_read});
}

/* Do all samples take the same space? */
static bool samples_are_alike(const struct dataset *ds)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_is_in(&ds->field[i], IN_TAR) && ds->field[i].form != FORM_ITEM)
            return false;
    return !dataset_has_keys(ds); /* keys that are numbers: no name is long */
}

static int tar_layout(struct layout *l, const struct file_kind *file)
{
    int r = samples_are_alike(l->dataset) ? add_alike(l) : add_differing(l);

    (void)file;
    return r < 0 ? r : layout_add_zeros(l, TAR_END);
}

const struct encoder encoder_tar = {.name = "tar",
                                    .shows = SHOWS_CONTAINER,
                                    .in = {IN_TAR, IN_TAR},
                                    .has_all = true,
                                    .layout = tar_layout};
