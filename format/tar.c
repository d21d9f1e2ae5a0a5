/* tar: WebDataset's form. For each sample one member per field, next to each other:
 * `<key>.<field>.npy`, and `<key>.<field>.cls` (decimal text) for an integer per sample.
 *
 * POSIX ustar; owner, times and modes are constants, so that the same samples give the same bytes
 * everywhere. All samples take the same space, so any of them is found without the others. */
#include "format/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define TAR_BLOCK 512u
#define TAR_END   1024u

/* Octal where it fits, else GNU's base-256 (sizes of 8 GiB and more). */
static void put_number(uint8_t *at, size_t room, uint64_t v)
{
    if (v >> (3 * (room - 1)) == 0) {
        char text[24];

        snprintf(text, sizeof(text), "%0*llo", (int)room - 1, (unsigned long long)v);
        memcpy(at, text, room - 1);
        return;
    }
    at[0] = 0x80;
    for (size_t i = room - 1; i > 0; i--, v >>= 8)
        at[i] = (uint8_t)v;
}

static uint8_t *tar_header(const char *name, uint64_t size)
{
    uint8_t *h = calloc(1, TAR_BLOCK);
    unsigned sum = 0;
    char text[8];

    if (!h)
        return NULL;
    memcpy(h, name, strlen(name)); /* below 100: KEY_ROOM + the field's name + an extension */
    put_number(h + 100, 8, 0444);
    put_number(h + 108, 8, 0);
    put_number(h + 116, 8, 0);
    put_number(h + 124, 12, size);
    put_number(h + 136, 12, 0);
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += h[i];
    snprintf(text, sizeof(text), "%06o", sum);
    memcpy(h + 148, text, 7);
    return h;
}

/* What one member holds, with a placeholder for its header: the size is not known before. */
static int add_member(struct layout *l, const struct field *f, const char *key)
{
    bool cls = field_is_scalar_integer(f);
    unsigned header = l->n_parts;
    char name[100];
    uint64_t content;
    uint8_t *bytes;
    int r;

    snprintf(name, sizeof(name), "%s.%s.%s", key, f->name, cls ? "cls" : "npy");
    r = layout_add_zeros(l, TAR_BLOCK);
    if (r < 0)
        return r;
    content = l->size;
    r = cls ? cls_add(l, f) : npy_add(l, f);
    if (r < 0)
        return r;
    content = l->size - content;
    bytes = tar_header(name, content);
    if (!bytes)
        return -ENOMEM;
    layout_replace_bytes(l, header, bytes);
    return layout_add_zeros(l, ceil_div(content, TAR_BLOCK) * TAR_BLOCK - content);
}

static int add_sample(struct layout *l, uint64_t sample)
{
    const struct dataset *ds = l->dataset;
    char key[KEY_ROOM];

    dataset_key(ds, sample, key);
    for (unsigned i = 0; i < ds->n_fields; i++) {
        int r = ds->field[i].role == FIELD_STORED ? add_member(l, &ds->field[i], key) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

/* The members of all samples; number[0]: bytes of a sample. */
static int samples_read(struct layout *l, const struct part *p, uint64_t off, size_t len,
                        uint8_t *dst, struct diag *d)
{
    uint64_t each = p->number[0];

    while (len) {
        size_t n = (size_t)min_u64(len, each - off % each);
        AUTO_LAYOUT struct layout one = {0};
        struct one_sample sel;
        uint64_t sample;
        int r;

        l->selection->samples(l->selection, off / each, 1, &sample);
        one_sample_init(&sel, sample);
        layout_init(&one, l->dataset, &sel.sel, l->host);
        r = add_sample(&one, sample);
        if (r == 0)
            r = layout_read(&one, off % each, n, dst, d);
        if (r < 0)
            return r;
        dst += n;
        off += n;
        len -= n;
    }
    return 0;
}

static int tar_layout(struct layout *l, const struct file_kind *kind)
{
    struct part samples = {.read = samples_read};
    AUTO_LAYOUT struct layout one = {0};
    struct one_sample sel;
    int r;

    (void)kind;
    one_sample_init(&sel, 0);
    layout_init(&one, l->dataset, &sel.sel, NULL);
    r = add_sample(&one, 0);
    if (r < 0)
        return r;
    samples.number[0] = one.size;
    if (!checked_mul(one.size, l->selection->count, &samples.size))
        return -EFBIG;
    r = layout_add(l, &samples);
    return r < 0 ? r : layout_add_zeros(l, TAR_END);
}

static int tar_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    (void)scope;
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].role == FIELD_STORED)
            return offer(offers, NULL, "tar");
    return 0;
}

const struct encoder encoder_tar = {"tar", SHOWS_CONTAINER, tar_offer, tar_layout};
