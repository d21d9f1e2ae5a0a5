/* npz: all fields in one ZIP archive of .npy members, stored, not deflated.
 *
 * Readers trust the central directory at the end and check the CRC-32 of every member, so making
 * either header of a member takes one read of the member's bytes; the host remembers the CRCs. */
#include "format/core/encoder.h"
#include "format/core/plan_fields.h"
#include "format/encode/npy.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/read_context.h"
#include "format/zip/archive/zip.h"

#define NAME_SIZE (FIELD_NAME_SIZE + 4)

/* number[] of a part that is a member's local header. NEXT_CRC: the CRC of the content + 1; 0: it
 * is not known yet. */
enum { HEADER_OFFSET, CONTENT_BYTES, SLOT, NEXT_CRC };

/* Its name is in that buffer, and its CRC may not be known yet. */
static struct zip_member npz_member(const struct part *header, char name[static NAME_SIZE])
{
    int len = snprintf(name, NAME_SIZE, "%s.npy", header->field->name);

    return (struct zip_member){.name = name,
                               .name_len = (size_t)len,
                               .size = header->number[CONTENT_BYTES],
                               .header = header->number[HEADER_OFFSET],
                               .crc = (uint32_t)(header->number[NEXT_CRC] - 1)};
}

static struct layout_range content_of(const struct part *header)
{
    return (struct layout_range){header->number[HEADER_OFFSET] + header->size,
                                 header->number[CONTENT_BYTES], (unsigned)header->number[SLOT]};
}

static int local_read(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d);

/* Compute the CRC of a member, unless it is known. A reader that needs one soon needs all, for the
 * directory. So all are computed together, if the host can remember them. */
static int know_crc(struct read_context *rc, struct layout *l, const struct part *header,
                    struct diag *d)
{
    bool together = l->host && l->host->remember;
    AUTO_FREE struct layout_range *range = calloc(l->n_parts, sizeof(*range));
    AUTO_FREE struct part **part = malloc(l->n_parts * sizeof(struct part *));
    AUTO_FREE uint32_t *crc = calloc(l->n_parts, sizeof(*crc));
    unsigned n = 0;
    int r;

    if (header->number[NEXT_CRC])
        return 0;
    if (!range || !part || !crc)
        return -ENOMEM;
    for (unsigned i = 0; i < l->n_parts; i++) {
        if (l->part[i].read != local_read || !(together || &l->part[i] == header))
            continue;
        part[n] = &l->part[i];
        range[n++] = content_of(&l->part[i]);
    }
    r = layout_checksums(rc, l, range, n, 0, layout_update_crc32, crc, d);
    for (unsigned i = 0; i < n && r == 0; i++)
        part[i]->number[NEXT_CRC] = (uint64_t)crc[i] + 1;
    return r;
}

static int local_read(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_FREE uint8_t *header = malloc(p->size);
    char name[NAME_SIZE];
    struct zip_member m;
    int r = header ? know_crc(rc, l, p, d) : -ENOMEM;

    if (r < 0)
        return r;
    m = npz_member(p, name);
    zip_put_local(header, &m);
    memcpy(dst, header + off, len);
    return 0;
}

/* The central directory and the end record: the last part, number[0] its offset. */
static int directory_read(struct read_context *rc, struct layout *l, const struct part *p,
                          uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint64_t offset = p->number[0];
    AUTO_FREE uint8_t *bytes = malloc(p->size);
    uint8_t *at = bytes;
    unsigned members = 0;
    int all = 0;

    if (!bytes)
        return -ENOMEM;
    for (unsigned i = 0; i < l->n_parts; i++) {
        char name[NAME_SIZE];
        struct zip_member m;

        if (l->part[i].read != local_read)
            continue;
        if (!missing_go_on(rc, know_crc(rc, l, &l->part[i], d), &all))
            return all;
        m = npz_member(&l->part[i], name);
        at = zip_put_entry(at, &m);
        members++;
    }
    at = zip_put_end(at, members, offset, (uint64_t)(at - bytes));
    assert((uint64_t)(at - bytes) == p->size);
    memcpy(dst, bytes + off, len);
    return all;
}

/* Add a member: its local header, which has the length of the content, and the content. */
static int encode_npz_add_member(struct layout *l, const struct field *f, unsigned slot,
                                 uint64_t *directory_size)
{
    AUTO_FREE uint8_t *header = NULL;
    struct part part = {.read = local_read, .field = f};
    char name[NAME_SIZE];
    struct zip_member m;
    uint64_t bytes;
    size_t len;
    int r = npy_header(l, f, &header, &len, &bytes);

    if (r < 0)
        return r;
    part.number[HEADER_OFFSET] = l->size;
    part.number[CONTENT_BYTES] = bytes;
    part.number[SLOT] = slot;
    m = npz_member(&part, name);
    part.size = zip_local_size(&m);
    *directory_size += zip_entry_size(&m);
    r = layout_add(l, &part);
    return r < 0 ? r : layout_add_headed(l, TAKE_PTR(header), len, f, bytes - len);
}

/* Add a member for each field that is in files of that place. */
static int add_members(struct layout *l, unsigned place)
{
    bool single = l->selection->single, makes = l->selection->pictures;
    const struct field *units = l->selection->unit_field;
    uint64_t directory = 0, sample = 0;

    if (single)
        selection_samples(l->selection, 0, 1, &sample);
    for (unsigned i = 0; i < plan_fields_count(l->dataset, makes, units); i++) {
        const struct field *f = plan_fields_at(l->dataset, makes, units, i);
        bool is_in = f && field_is_in(f, place) && (!single || dataset_has(l->dataset, sample, f));
        int r = is_in ? encode_npz_add_member(l, f, i, &directory) : 0;

        if (r < 0 && r != -ENODATA)
            return r;
    }
    directory += zip_end_size(l->size);
    return layout_add(
        l, &(struct part){.size = directory, .read = directory_read, .number = {l->size}});
}

/* The members of a matrix by columns are those of its encoder. */
static int npz_layout(struct layout *l, const struct file_kind *file)
{
    unsigned in = file->encoder->in[SCOPE_BATCHES];

    return add_members(l, in != IN_ANY           ? in
                          : l->selection->single ? IN_NPZ_SAMPLES
                                                 : IN_NPZ_BATCHES);
}

const struct encoder encoder_npz = {
    .name = "npz",
    .shows = SHOWS_CONTAINER,
    .in = {IN_ANY, IN_ANY, IN_ANY},
    .has_all = true,
    .layout = npz_layout,
    .all_arrays = true,
};

const struct encoder encoder_csc = {
    .name = "csc",
    .shows = SHOWS_CONTAINER,
    .in = {0, IN_CSC},
    .ext = "npz",
    .has_all = true,
    .layout = npz_layout,
};

const struct encoder encoder_csc_value = {
    .name = "csc_value",
    .shows = SHOWS_CONTAINER,
    .in = {0, IN_CSC_VALUE},
    .ext = "npz",
    .has_all = true,
    .layout = npz_layout,
};
