/* POSIX.1-2017, pax: "ustar Interchange Format" and "pax Extended Header"; GNU tar's manual, "Basic
 * Tar Format". */
#include "format/tar/archive/header.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/number.h"

/* Where the fields of a block are. */
enum {
    NAME = 0,
    NAME_LEN = 100,
    SIZE = 124,
    SIZE_LEN = 12,
    SUM = 148,
    SUM_LEN = 8,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_LEN = 155,
    STAR_PREFIX_LEN = 131, /* star has times after it, and "tar\0" at the end */
    STAR = 508,
    STAR_HAS_MAP = 355, /* of a sparse file: not 0 if blocks with more of its map follow */
    HAS_MAP = 482,
    MAP_GOES_ON = 504, /* the same in such a block */
};

/* ---- numbers ---- */

/* Digits with spaces around them, at most 12; a NUL ends them. No digits: 0. */
static bool parse_octal(const uint8_t *at, size_t len, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    while (i < len && at[i] == ' ')
        i++;
    for (; i < len && at[i] >= '0' && at[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(at[i] - '0');
    while (i < len && at[i] == ' ')
        i++;
    if (i < len && at[i])
        return false;
    *ret = v;
    return true;
}

/* GNU's base-256: bit 7 of the first byte says that it is that, bit 6 is the sign. */
static bool tar_header_parse_number(const uint8_t *at, size_t len, uint64_t *ret)
{
    uint64_t v = at[0] & 0x3f;

    if (!(at[0] & 0x80))
        return parse_octal(at, len, ret);
    if (at[0] & 0x40)
        return false;
    for (size_t i = 1; i < len; i++) {
        if (v >> 56)
            return false;
        v = v << 8 | at[i];
    }
    *ret = v;
    return true;
}

/* ---- the checksum ---- */

/* The sum of the bytes of a block. Lanes of 16 bits do not overflow: 64 words x 2 x 255. */
static unsigned tar_header_sum_of(const uint8_t *block)
{
    const uint64_t bytes = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i += 8) {
        uint64_t word = load_le64(block + i);

        sum += (word & bytes) + (word >> 8 & bytes);
    }
    return (unsigned)((sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32 & 0xffff) + (sum >> 48));
}

/* The sum has spaces in the place of the checksum. Old writers added signed bytes. */
static bool checksum_is_right(const uint8_t *block, unsigned sum)
{
    uint64_t expected;
    unsigned high = 0;

    if (!parse_octal(block + SUM, SUM_LEN, &expected))
        return false;
    for (size_t i = 0; i < SUM_LEN; i++)
        sum += ' ' - block[SUM + i];
    if (expected == sum)
        return true;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        high += (i < SUM || i >= SUM + SUM_LEN) && block[i] >= 0x80;
    return expected + UINT64_C(256) * high == sum;
}

/* ---- the block ---- */

static size_t text_len(const uint8_t *at, size_t capacity)
{
    const uint8_t *end = memchr(at, '\0', capacity);

    return end ? (size_t)(end - at) : capacity;
}

static bool is_star(const uint8_t *block)
{
    return !memcmp(block + STAR, "tar", 4);
}

/* GNU tar has other things where POSIX has the prefix. */
static void tar_header_take_name(const uint8_t *block, struct tar_header *h)
{
    size_t len = text_len(block + PREFIX, is_star(block) ? STAR_PREFIX_LEN : PREFIX_LEN);

    h->name_len = 0;
    if (len && !memcmp(block + MAGIC, "ustar", 6)) {
        memcpy(h->name, block + PREFIX, len);
        h->name[len] = '/';
        h->name_len = len + 1;
    }
    len = text_len(block + NAME, NAME_LEN);
    memcpy(h->name + h->name_len, block + NAME, len);
    h->name_len += len;
}

/* A type that nothing knows is a file, as POSIX has it. */
static void tar_header_take_type(uint8_t type, struct tar_header *h)
{
    h->has_data = true;
    switch (type) {
    case '1': /* hard link */
    case '2': /* symbolic link */
    case '3': /* devices */
    case '4':
    case '5': /* folder */
    case '6': /* FIFO */
        h->type = type == '5' ? TAR_FOLDER : TAR_OTHER;
        h->has_data = false; /* whatever the size says */
        return;
    case 'D': /* GNU: the content of a folder */
    case 'M': /* GNU: the rest of a file of another volume */
    case 'N': /* GNU: old long names */
    case 'V': /* GNU: the name of the volume */
        h->type = TAR_OTHER;
        return;
    case 'S':
        h->type = TAR_SPARSE;
        return;
    case 'L':
        h->type = TAR_LONG_NAME;
        return;
    case 'K':
        h->type = TAR_LONG_TARGET;
        return;
    case 'x':
    case 'X': /* Solaris */
        h->type = TAR_PAX;
        return;
    case 'g':
        h->type = TAR_PAX_GLOBAL;
        return;
    default:
        h->type = TAR_FILE;
    }
}

const char *tar_header_parse(const uint8_t block[static TAR_BLOCK], struct tar_header *ret)
{
    unsigned sum = tar_header_sum_of(block);

    if (!sum) {
        ret->type = TAR_END;
        return NULL;
    }
    if (!checksum_is_right(block, sum))
        return "expected a tar header, got a checksum that does not fit it";
    if (!tar_header_parse_number(block + SIZE, SIZE_LEN, &ret->stored))
        return "expected a tar header with a size, got none that is a number of bytes";
    tar_header_take_name(block, ret);
    tar_header_take_type(block[TYPE], ret);
    ret->has_map = ret->type == TAR_SPARSE && block[is_star(block) ? STAR_HAS_MAP : HAS_MAP];
    return NULL;
}

bool tar_map_goes_on(const uint8_t block[static TAR_BLOCK])
{
    return block[MAP_GOES_ON];
}

/* ---- pax ---- */

static bool tar_header_is_key(const uint8_t *key, size_t len, const char *expected)
{
    return len == strlen(expected) && !memcmp(key, expected, len);
}

static const char *copy_path(const uint8_t *value, size_t len, uint8_t ret[static TAR_NAME_MAX],
                             size_t *ret_len)
{
    if (memchr(value, '\0', len))
        return "expected a path in the pax header, got one with a NUL in it";
    if (len > TAR_NAME_MAX)
        return "expected a path of at most 4096 bytes in the pax header, got a longer one";
    memcpy(ret, value, len);
    *ret_len = len;
    return NULL;
}

static const char *take_path(struct tar_pax *pax, const uint8_t *value, size_t len)
{
    const char *wrong = copy_path(value, len, pax->path_value, &pax->path_len);

    if (!wrong)
        pax->path = len ? TAR_PAX_SET : TAR_PAX_DELETED;
    return wrong;
}

static const char *take_size(struct tar_pax *pax, const uint8_t *value, size_t len)
{
    /* Zeros before a number are POSIX's as well. */
    while (len > 1 && *value == '0') {
        value++;
        len--;
    }
    if (len && number_parse((const char *)value, len, INT64_MAX, &pax->size_value) != len)
        return "expected a size in the pax header, got none that is a number of bytes";
    pax->size = len ? TAR_PAX_SET : TAR_PAX_DELETED;
    return NULL;
}

/* A record after its length and space, without its line end: key=value. */
static const char *take_record(struct tar_pax *pax, const uint8_t *key, size_t len)
{
    static const char sparse[] = "GNU.sparse.";
    const uint8_t *equals = memchr(key, '=', len), *value;
    size_t key_len, value_len;

    if (!equals || equals == key)
        return "expected key=value in the pax header, got a record without";
    key_len = (size_t)(equals - key);
    value = equals + 1;
    value_len = len - key_len - 1;
    if (tar_header_is_key(key, key_len, "path"))
        return take_path(pax, value, value_len);
    if (tar_header_is_key(key, key_len, "size"))
        return take_size(pax, value, value_len);
    if (key_len >= sizeof(sparse) - 1 && !memcmp(key, sparse, sizeof(sparse) - 1) && value_len)
        pax->is_sparse = true;
    if (tar_header_is_key(key, key_len, "GNU.sparse.name"))
        return copy_path(value, value_len, pax->sparse_name, &pax->sparse_len);
    return NULL;
}

const char *tar_pax_parse(const uint8_t *bytes, size_t len, struct tar_pax *pax)
{
    while (len) {
        uint64_t record;
        size_t digits = number_parse((const char *)bytes, len, len, &record);
        const char *wrong;

        /* The length counts itself. Writers may fill the rest with NULs. */
        if (!digits && !*bytes)
            break;
        if (!digits || digits + 2 > record || bytes[digits] != ' ' || bytes[record - 1] != '\n')
            return "expected records with their length in the pax header, got another length";
        wrong = take_record(pax, bytes + digits + 1, (size_t)record - digits - 2);
        if (wrong)
            return wrong;
        bytes += record;
        len -= (size_t)record;
    }
    return NULL;
}
