/* A layout: the parts that one file of the mount consists of, in order.
 *
 * An encoder describes a file as parts of known size: literal bytes (headers), ranges of fields,
 * and parts computed from other parts (checksums). Any byte range of the file can then be made
 * without the rest. A layout outlives the request that it was made for: it must not point into one.
 * One thread at a time. */
#ifndef EPOCHFS_FORMAT_CORE_LAYOUT_H
#define EPOCHFS_FORMAT_CORE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/core/dataset.h"

struct layout;

#define LAYOUT_USED 64 /* USED_MAX of base/read_context.h */

struct part {
    uint64_t size; /* bytes */

    /* Write bytes [off, off + len) of the part. 0 or -errno. */
    int (*read)(struct read_context *rc, struct layout *l, const struct part *p, uint64_t off,
                size_t len, uint8_t *dst, struct diag *d);

    /* What read() needs; the code that adds the part says which members it uses. */
    const struct field *field;
    uint8_t *bytes;
    uint64_t number[4];

    bool is_made; /* set by layout.c: its bytes are in made of the layout */
};

/* A checksum over a range of a file, as far as it has been computed. */
struct layout_sum {
    uint64_t done; /* bytes, from the start of the range */
    uint32_t sum;  /* of these */
};

/* The bytes of a file that a checksum covers, and the slot under which the host knows it. */
struct layout_range {
    uint64_t off, len;
    unsigned slot;
};

/* What the caller that reads bytes provides: a memory for checksums that outlasts the layout, and
 * memory for bytes. recall() and remember() get all n ranges of a pass at once, and may be NULL. */
struct layout_host {
    /* Set ret[i] to what is known of range[i]; where nothing is known it is kept. */
    void (*recall)(const struct layout_host *host, const struct layout_range *range, unsigned n,
                   struct layout_sum *ret);
    /* Remember sum[i] for range[i], where it is further than what is known. */
    void (*remember)(const struct layout_host *host, const struct layout_range *range, unsigned n,
                     const struct layout_sum *sum);
    /* Memory of at least size bytes, *ret_size, for the bytes of the file; NULL: none. It goes back
     * to give_back(). Memory that was used before is already mapped, which new memory is not. Both
     * may be NULL: malloc() and free(). */
    uint8_t *(*buffer)(const struct layout_host *host, size_t size, size_t *ret_size);
    void (*give_back)(const struct layout_host *host, uint8_t *buffer, size_t size);
};

struct layout {
    const struct dataset *dataset;
    const struct selection *selection;
    const struct layout_host *host; /* NULL: none */
    uint64_t size;                  /* sum of the parts */
    size_t held;                    /* bytes of memory that it owns: literal bytes, part, made */
    uint8_t *made;                  /* [size] the file as far as checksums needed it; NULL: none */
    size_t made_size;               /* bytes of memory there; 0: it is the buffer of a caller */
    bool is_making;                 /* layout_make() writes to made, which stays until it ends */
    bool is_whole;                  /* all of the file is made: the layout is constant */
    const struct blob *used[LAYOUT_USED]; /* [n_used] what made was read from: each read of it */
    unsigned n_used;                      /* checks that these are the versions they were */
    unsigned n_parts;
    unsigned capacity;
    struct part *part; /* [n_parts]; points to inside_part until that is full */
    struct part inside_part[4];
};

void layout_init(struct layout *l, const struct dataset *ds, const struct selection *sel,
                 const struct layout_host *host);
void layout_release(struct layout *l);
#define AUTO_LAYOUT AUTO(layout_release) /* of a layout that starts as {0} */

/* Add a part; its size counts from now on. 0, -ENOMEM, or -EFBIG: the file would exceed 2^63 - 1
 * bytes. */
int layout_add(struct layout *l, const struct part *part);

/* Add literal bytes; takes ownership of bytes (malloc'd), also on error. */
int layout_add_bytes(struct layout *l, uint8_t *bytes, size_t len);

/* Replace part number i by literal bytes (malloc'd; takes ownership) of the same size. */
void layout_replace_bytes(struct layout *l, unsigned i, uint8_t *bytes);

/* Add len zero bytes. */
int layout_add_zeros(struct layout *l, uint64_t len);

/* Add literal bytes, as above, and behind them all items of a field as the mount shows them: bytes
 * as of field_form(). */
int layout_add_headed(struct layout *l, uint8_t *header, size_t len, const struct field *f,
                      uint64_t bytes);

/* Add all items of a field: as the mount shows them; as stored. */
int layout_add_field(struct layout *l, const struct field *f);
int layout_add_stored(struct layout *l, const struct field *f);

/* Write bytes [off, off + len) of the file, inside its size. 0, or -errno with the reason in d: an
 * error of the blobs, -ENOMEM, or -EINTR: cancelled. */
int layout_read(struct read_context *rc, struct layout *l, uint64_t off, size_t len, uint8_t *dst,
                struct diag *d);

/* Make all bytes of the file, for reads that follow, with a context that checks late. 0, or an
 * error as of layout_read(); -EFBIG: the file has more than LAYOUT_MADE_BYTES, or is from too many
 * blobs. */
#define LAYOUT_MADE_BYTES (8u << 20)
int layout_make(struct read_context *rc, struct layout *l, struct diag *d);

/* Lend the bytes of a file that is_whole: *ret is valid as long as the layout. 0, or -errno: what
 * they were read from has changed. Any thread. */
int layout_lend(struct read_context *rc, const struct layout *l, const uint8_t **ret,
                struct diag *d);

/* The checksum of bytes [off, off + len) of the file, which the host remembers under slot. It
 * begins with start; update() gets LAYOUT_STREAM_BYTES at a time, at: their place in the range.
 * Before each call it asks the host whether to stop. If bytes are missing, the host remembers the
 * sum so far, so that repeated reads complete even a range that is never resident all at once.
 * The bytes themselves are kept for the reads that follow, so that samples are read and decoded
 * once: if the caller reads all of the file at once; or if the file has at most LAYOUT_MADE_BYTES,
 * from fewer than LAYOUT_USED blobs, and the context checks late. */
#define LAYOUT_STREAM_BYTES (64 * 1024)
typedef uint32_t layout_update_fn(uint32_t sum, uint64_t at, const uint8_t *bytes, size_t n);
int layout_checksum(struct read_context *rc, struct layout *l, uint64_t off, uint64_t len,
                    unsigned slot, uint32_t start, layout_update_fn *update, uint32_t *ret,
                    struct diag *d);

/* The same for several ranges side by side, an even share of each at a time. Arrays of the same
 * samples then need the same rows of a source at about the same time, and each row is read and
 * decoded once for all of them, however many there are. ret: [n] */
int layout_checksums(struct read_context *rc, struct layout *l, const struct layout_range *range,
                     unsigned n, uint32_t start, layout_update_fn *update, uint32_t *ret,
                     struct diag *d);

/* CRC-32 (zlib's), which starts with 0. */
layout_update_fn layout_update_crc32;

#endif
