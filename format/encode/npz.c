/* npz: all fields in one ZIP archive of .npy members, stored, not deflated.
 *
 * Readers trust the central directory at the end and check the CRC-32 of every member, so making
 * either header of a member takes one read of the member's bytes; the host remembers the CRCs.
 * Times are 1980-01-01, so that the same samples give the same bytes everywhere. ZIP64 is used only
 * where needed: PKWARE APPNOTE 6.3.9, 4.3 to 4.5. */
#include "format/core/encoder.h"
#include "format/core/plan_fields.h"
#include "format/encode/npy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/read_context.h"
#include "base/text.h"

#define ZIP_LOCAL     30u
#define ZIP_CENTRAL   46u
#define ZIP_END       22u
#define ZIP64_END     56u
#define ZIP64_LOCATOR 20u
#define ZIP_DATE      0x21 /* 1980-01-01 */
#define ZIP_MAX32     UINT32_C(0xffffffff)

/* number[] of a part that is a member's local header. NEXT_CRC: the CRC of the content + 1; 0: it
 * is not known yet. */
enum { HEADER_OFFSET, CONTENT_BYTES, SLOT, NEXT_CRC };

static bool member_is_large(uint64_t bytes)
{
    return bytes >= ZIP_MAX32;
}

static size_t local_size(const struct field *f, uint64_t bytes)
{
    return ZIP_LOCAL + strlen(f->name) + 4 + (member_is_large(bytes) ? 20 : 0);
}

static size_t central_size(const struct field *f, uint64_t bytes, uint64_t offset)
{
    size_t extra = (member_is_large(bytes) ? 16u : 0) + (offset >= ZIP_MAX32 ? 8u : 0);

    return ZIP_CENTRAL + strlen(f->name) + 4 + (extra ? 4 + extra : 0);
}

/* Bit 11 says that the name is UTF-8; otherwise readers take it for code page 437. */
static uint16_t flags_of(const char *name)
{
    bool is_ascii = true;

    for (size_t n, left = strlen(name); left; left -= n, name += n) {
        n = text_character(name, left);
        if (!n)
            return 0;
        is_ascii = is_ascii && n == 1;
    }
    return is_ascii ? 0 : 1u << 11;
}

/* Write the fields that both headers share, from the version on. Returns their end. */
static uint8_t *put_common(uint8_t *at, bool zip64, uint32_t crc, uint64_t bytes, const char *name,
                           size_t extra_len)
{
    uint32_t bytes32 = member_is_large(bytes) ? ZIP_MAX32 : (uint32_t)bytes;

    store_le16(at, zip64 ? 45 : 20);
    store_le16(at + 2, flags_of(name));
    store_le16(at + 4, 0); /* stored */
    store_le16(at + 6, 0); /* time */
    store_le16(at + 8, ZIP_DATE);
    store_le32(at + 10, crc);
    store_le32(at + 14, bytes32);
    store_le32(at + 18, bytes32);
    store_le16(at + 22, (uint16_t)(strlen(name) + 4)); /* .npy */
    store_le16(at + 24, (uint16_t)extra_len);
    return at + 26;
}

static uint8_t *encode_npz_put_name(uint8_t *at, const struct field *f)
{
    size_t len = strlen(f->name);

    memcpy(at, f->name, len);
    memcpy(at + len, ".npy", 4);
    return at + len + 4;
}

static struct layout_range content_of(const struct part *header)
{
    return (struct layout_range){header->number[HEADER_OFFSET] + header->size,
                                 header->number[CONTENT_BYTES], (unsigned)header->number[SLOT]};
}

static int local_read(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d);

/* Compute the CRC of a member. A reader that needs one soon needs all, for the directory. So all
 * are computed together, if the host can remember them. */
static int know_crc(struct read_context *rc, struct layout *l, const struct part *header,
                    struct diag *d)
{
    bool together = l->host && l->host->remember;
    AUTO_FREE struct layout_range *range = calloc(l->n_parts, sizeof(*range));
    AUTO_FREE struct part **part = malloc(l->n_parts * sizeof(struct part *));
    AUTO_FREE uint32_t *crc = calloc(l->n_parts, sizeof(*crc));
    unsigned n = 0;
    int r;

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

static int member_crc(struct read_context *rc, struct layout *l, const struct part *header,
                      uint32_t *ret, struct diag *d)
{
    int r = header->number[NEXT_CRC] ? 0 : know_crc(rc, l, header, d);

    if (r == 0)
        *ret = (uint32_t)(header->number[NEXT_CRC] - 1);
    return r;
}

static int local_read(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    uint64_t bytes = p->number[CONTENT_BYTES];
    bool zip64 = member_is_large(bytes);
    uint8_t header[ZIP_LOCAL + FIELD_NAME_SIZE + 4 + 20], *at = header;
    uint32_t crc = 0;
    int r;

    assert(p->size <= sizeof(header));
    r = member_crc(rc, l, p, &crc, d);
    if (r < 0)
        return r;
    store_le32(at, UINT32_C(0x04034b50));
    at = put_common(at + 4, zip64, crc, bytes, p->field->name, zip64 ? 20 : 0);
    at = encode_npz_put_name(at, p->field);
    if (zip64) {
        store_le16(at, 1);
        store_le16(at + 2, 16);
        store_le64(at + 4, bytes);
        store_le64(at + 12, bytes);
    }
    memcpy(dst, header + off, len);
    return 0;
}

static uint8_t *put_central(uint8_t *at, const struct part *p, uint32_t crc)
{
    uint64_t bytes = p->number[CONTENT_BYTES], offset = p->number[HEADER_OFFSET];
    size_t size = central_size(p->field, bytes, offset);
    size_t name_len = strlen(p->field->name) + 4, extra = size - ZIP_CENTRAL - name_len;

    store_le32(at, UINT32_C(0x02014b50));
    store_le16(at + 4, 3 << 8 | 20); /* made by: Unix */
    at = put_common(at + 6, extra > 0, crc, bytes, p->field->name, extra);
    store_le16(at, 0);                           /* comment */
    store_le16(at + 2, 0);                       /* disk */
    store_le16(at + 4, 0);                       /* internal attributes */
    store_le32(at + 6, UINT32_C(0100444) << 16); /* a regular file, read-only */
    store_le32(at + 10, offset >= ZIP_MAX32 ? ZIP_MAX32 : (uint32_t)offset);
    at = encode_npz_put_name(at + 14, p->field);
    if (!extra)
        return at;
    store_le16(at, 1);
    store_le16(at + 2, (uint16_t)(extra - 4));
    at += 4;
    if (member_is_large(bytes)) {
        store_le64(at, bytes);
        store_le64(at + 8, bytes);
        at += 16;
    }
    if (offset >= ZIP_MAX32) {
        store_le64(at, offset);
        at += 8;
    }
    return at;
}

static uint8_t *put_end(uint8_t *at, unsigned members, uint64_t offset, uint64_t size, bool zip64)
{
    if (zip64) {
        memset(at, 0, ZIP64_END + ZIP64_LOCATOR);
        store_le32(at, UINT32_C(0x06064b50));
        store_le64(at + 4, ZIP64_END - 12);
        store_le16(at + 12, 3 << 8 | 45);
        store_le16(at + 14, 45);
        store_le64(at + 24, members);
        store_le64(at + 32, members);
        store_le64(at + 40, size);
        store_le64(at + 48, offset);
        at += ZIP64_END;
        store_le32(at, UINT32_C(0x07064b50));
        store_le64(at + 8, offset + size);
        store_le32(at + 16, 1);
        at += ZIP64_LOCATOR;
    }
    memset(at, 0, ZIP_END);
    store_le32(at, UINT32_C(0x06054b50));
    store_le16(at + 8, (uint16_t)members);
    store_le16(at + 10, (uint16_t)members);
    store_le32(at + 12, zip64 ? ZIP_MAX32 : (uint32_t)size);
    store_le32(at + 16, zip64 ? ZIP_MAX32 : (uint32_t)offset);
    return at + ZIP_END;
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
        uint32_t crc = 0;

        if (l->part[i].read != local_read)
            continue;
        if (!missing_go_on(rc, member_crc(rc, l, &l->part[i], &crc, d), &all))
            return all;
        at = put_central(at, &l->part[i], crc);
        members++;
    }
    at = put_end(at, members, offset, (uint64_t)(at - bytes), offset >= ZIP_MAX32);
    assert((uint64_t)(at - bytes) == p->size);
    memcpy(dst, bytes + off, len);
    return all;
}

/* Add a member: its local header, which has the length of the content, and the content. */
static int encode_npz_add_member(struct layout *l, const struct field *f, unsigned slot,
                                 uint64_t *directory_size)
{
    AUTO_FREE uint8_t *header = NULL;
    uint64_t bytes;
    size_t len;
    int r = npy_header(l, f, &header, &len, &bytes);

    if (r < 0)
        return r;
    *directory_size += central_size(f, bytes, l->size);
    r = layout_add(
        l, &(struct part){
               .size = local_size(f, bytes),
               .read = local_read,
               .field = f,
               .number = {[HEADER_OFFSET] = l->size, [CONTENT_BYTES] = bytes, [SLOT] = slot}});
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
    directory += ZIP_END + (l->size >= ZIP_MAX32 ? ZIP64_END + ZIP64_LOCATOR : 0);
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
