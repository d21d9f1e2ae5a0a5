#include "support/one_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/lock.h"

#define KEPT_MOST 64
#define CRC_AT    12 /* where an index has its checksum, of all after it */

static struct {
    char *identity;
    uint8_t *bytes;
    size_t len;
} kept[KEPT_MOST];
static size_t n_kept;
static struct lock lock = {.mutex = PTHREAD_MUTEX_INITIALIZER}; /* files are indexed side by side */
static bool is_changed;

static int load_none(const struct index_store *keep, const char *kind, const char *identity,
                     struct kept_index *ret)
{
    (void)keep;
    (void)kind;
    (void)identity;
    (void)ret;
    return -ENOENT;
}

static int save_none(const struct index_store *keep, const char *kind, const char *identity,
                     const char *source, const struct iovec *pieces, unsigned n,
                     struct kept_index *ret, struct diag *d)
{
    (void)keep;
    (void)kind;
    (void)identity;
    (void)source;
    (void)pieces;
    (void)n;
    (void)ret;
    return diag_set(d, -EROFS, "not kept here");
}

static int load_kept(const struct index_store *keep, const char *kind, const char *identity,
                     struct kept_index *ret)
{
    LOCK_SCOPE(&lock);

    (void)keep;
    (void)kind;
    for (size_t i = 0; i < n_kept; i++)
        if (!strcmp(kept[i].identity, identity)) {
            *ret = (struct kept_index){.bytes = malloc(kept[i].len + 1), .size = kept[i].len};
            if (!ret->bytes)
                abort();
            memcpy(ret->bytes, kept[i].bytes, kept[i].len);
            return 0;
        }
    return -ENOENT;
}

static int save_one(const struct index_store *keep, const char *kind, const char *identity,
                    const char *source, const struct iovec *pieces, unsigned n,
                    struct kept_index *ret, struct diag *d)
{
    size_t len = 0;
    LOCK_SCOPE(&lock);

    if (n_kept == KEPT_MOST)
        one_store_drop();
    kept[n_kept].identity = strdup(identity);
    kept[n_kept].bytes = NULL;
    for (unsigned i = 0; i < n; i++) {
        kept[n_kept].bytes = realloc(kept[n_kept].bytes, len + pieces[i].iov_len + 1);
        if (!kept[n_kept].bytes || !kept[n_kept].identity)
            abort();
        if (pieces[i].iov_len)
            memcpy(kept[n_kept].bytes + len, pieces[i].iov_base, pieces[i].iov_len);
        len += pieces[i].iov_len;
    }
    kept[n_kept++].len = len;
    return save_none(keep, kind, identity, source, pieces, n, ret, d);
}

static void remove_damaged(const struct index_store *keep, const char *kind, const char *identity)
{
    (void)keep;
    (void)kind;
    (void)identity;
    if (!is_changed)
        abort();
}

void one_store_change(uint64_t hash)
{
    is_changed = true;
    for (size_t i = 0; i < n_kept; i++) {
        uint8_t *bytes = kept[i].bytes;

        bytes[CRC_AT + 4 + hash % (kept[i].len - CRC_AT - 4)] ^= (uint8_t)(1u << hash % 7);
        store_le32(bytes + CRC_AT,
                   (uint32_t)crc32(0, bytes + CRC_AT + 4, (uInt)(kept[i].len - CRC_AT - 4)));
    }
}

void one_store_drop(void)
{
    is_changed = false;
    while (n_kept) {
        free(kept[--n_kept].identity);
        free(kept[n_kept].bytes);
    }
}

static const struct index_store_ops none = {
    .load = load_none, .save = save_none, .remove = remove_damaged};
static const struct index_store_ops one = {
    .load = load_kept, .save = save_one, .remove = remove_damaged};

const struct index_store no_store = {.ops = &none};
const struct index_store one_store = {.ops = &one};

struct memory_file {
    struct made_file file; /* first */
    uint64_t rows, row_bytes;
    uint8_t *bytes;
    bool is_made[];
};

static bool memory_has(const struct made_file *file, uint64_t row)
{
    const struct memory_file *memory = (const struct memory_file *)file;

    if (row >= memory->rows)
        abort();
    return memory->is_made[row];
}

static bool memory_read(const struct made_file *file, uint64_t row, uint8_t *ret)
{
    const struct memory_file *memory = (const struct memory_file *)file;

    if (memory_has(file, row))
        memcpy(ret, memory->bytes + row * memory->row_bytes, memory->row_bytes);
    return memory->is_made[row];
}

static void memory_write(struct made_file *file, uint64_t row, const uint8_t *bytes)
{
    struct memory_file *memory = (struct memory_file *)file;

    if (row >= memory->rows)
        abort();
    memcpy(memory->bytes + row * memory->row_bytes, bytes, memory->row_bytes);
    memory->is_made[row] = true;
}

static void memory_close(struct made_file *file)
{
    free(((struct memory_file *)file)->bytes);
    free(file);
}

static const struct made_file_ops memory_file_ops = {
    .read = memory_read, .has = memory_has, .write = memory_write, .close = memory_close};

static int memory_open(struct made_store *store, const char *identity, const char *source,
                       uint64_t rows, uint64_t row_bytes, struct made_file **ret, struct diag *d)
{
    struct memory_file *memory = calloc(1, sizeof(*memory) + rows * sizeof(*memory->is_made));

    (void)store;
    (void)d;
    if (!memory || !*identity || !*source)
        abort();
    *memory =
        (struct memory_file){.file.ops = &memory_file_ops, .rows = rows, .row_bytes = row_bytes};
    memory->bytes = malloc(rows * row_bytes + 1);
    if (!memory->bytes)
        abort();
    *ret = &memory->file;
    return 0;
}

static const struct made_store_ops memory_ops = {.open = memory_open};

struct made_store memory_made = {.ops = &memory_ops};
