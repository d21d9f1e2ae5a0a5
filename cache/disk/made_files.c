#include "cache/disk/made_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/file_io.h"
#include "cache/disk/entry.h"
#include "cache/disk/inventory.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"

#define KIND         "made"
#define MAGIC        "epochmad"
#define VERSION      2
#define HEADER_BYTES 2048
#define HEADER_ID    32
#define HEADER_TEXT  64   /* where the source begins */
#define HEADER_SUM   2044 /* where the CRC-32 of all before it is */
#define PAGE_BYTES   4096
#define SIZE_MOST    (UINT64_C(1) << 60)
#define RECORDS_READ 8192

struct rows {
    int fd;
    uint64_t n, row_bytes;
    uint64_t content; /* byte where they begin */
    uint64_t seed;    /* of checksums */
};

struct file {
    struct made_file made; /* first */
    struct made_files *all;
    struct rows rows;
};

/* ---- bytes of a file ---- */

/* false: too many bytes. */
static bool place_rows(struct rows *rows, const char id[static ENTRY_ID_SIZE], uint64_t *ret_size)
{
    if (!rows->row_bytes || rows->n > SIZE_MOST / 8 || rows->row_bytes > SIZE_MOST ||
        (rows->n && rows->row_bytes > SIZE_MOST / rows->n))
        return false;
    rows->content = ceil_div(HEADER_BYTES + 8 * rows->n, PAGE_BYTES) * PAGE_BYTES;
    rows->seed = XXH3_64bits(id, ENTRY_ID_SIZE - 1);
    *ret_size = rows->content + rows->n * rows->row_bytes;
    return true;
}

static void make_header(const struct entry *entry, const struct rows *rows,
                        uint8_t ret[static HEADER_BYTES])
{
    size_t len = strlen(entry->source);

    memset(ret, 0, HEADER_BYTES);
    memcpy(ret, MAGIC, 8);
    store_le32(ret + 8, VERSION);
    store_le32(ret + 12, (uint32_t)len);
    store_le64(ret + 16, rows->n);
    store_le64(ret + 24, rows->row_bytes);
    hex_parse(entry->id, DIGEST_BYTES, ret + HEADER_ID);
    memcpy(ret + HEADER_TEXT, entry->source, len);
    store_le32(ret + HEADER_SUM, (uint32_t)crc32(0, ret, HEADER_SUM));
}

static uint64_t record_of(const struct rows *rows, uint64_t row, const uint8_t *bytes)
{
    uint64_t place = (row + 1) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t sum = XXH3_64bits_withSeed(bytes, (size_t)rows->row_bytes, rows->seed ^ place);

    return sum ? sum : 1;
}

/* 0: it is not there. */
static uint64_t read_record(const struct rows *rows, uint64_t row)
{
    uint8_t bytes[8];

    return row < rows->n && file_pread(rows->fd, bytes, 8, HEADER_BYTES + 8 * row) == 0
               ? load_le64(bytes)
               : 0;
}

static int write_record(const struct rows *rows, uint64_t row, uint64_t record)
{
    uint8_t bytes[8];

    store_le64(bytes, record);
    return file_pwrite(rows->fd, bytes, 8, HEADER_BYTES + 8 * row);
}

static bool read_row(const struct rows *rows, uint64_t row, uint64_t record, uint8_t *ret)
{
    return record &&
           file_pread(rows->fd, ret, (size_t)rows->row_bytes,
                      rows->content + row * rows->row_bytes) == 0 &&
           record_of(rows, row, ret) == record;
}

/* ---- room ---- */

static void stop(struct made_files *made, const char *why)
{
    if (!atomic_exchange(&made->is_full, true))
        notices_say(&made->notices, why);
}

static bool take_room(struct made_files *made, uint64_t bytes)
{
    char text[160];
    int r = atomic_load(&made->is_full) ? 0 : quota_share_take(&made->share, bytes);

    if (r == -ENOSPC) {
        snprintf(text, sizeof(text),
                 "no more pictures are kept: the %llu bytes of decoded_cache= are full, and all of "
                 "its files are in use",
                 (unsigned long long)made->share.limit);
        stop(made, text);
    } else if (r < 0) {
        stop(made, "no more pictures are kept: the files that are kept cannot be counted");
    }
    return !atomic_load(&made->is_full);
}

/* ---- a file of the store ---- */

static bool file_read(const struct made_file *made, uint64_t row, uint8_t *ret)
{
    const struct rows *rows = &((const struct file *)made)->rows;

    return read_row(rows, row, read_record(rows, row), ret);
}

static bool file_has(const struct made_file *made, uint64_t row)
{
    return read_record(&((const struct file *)made)->rows, row);
}

static void file_write(struct made_file *made, uint64_t row, const uint8_t *bytes)
{
    struct file *file = (struct file *)made;
    const struct rows *rows = &file->rows;
    struct quota *quota = file->all->share.cache->quota;
    uint64_t size = rows->row_bytes + 8;
    char text[160];
    int r;

    if (row >= rows->n || !take_room(file->all, size))
        return;
    r = quota ? quota_take(quota, size) : 0;
    if (r == 0) {
        r = file_pwrite(rows->fd, bytes, (size_t)rows->row_bytes,
                        rows->content + row * rows->row_bytes);
        if (r == 0)
            r = write_record(rows, row, record_of(rows, row, bytes));
        if (quota)
            quota_settle(quota, size);
    }
    if (r == 0)
        return;
    snprintf(text, sizeof(text), "no more pictures are kept: cache folder %.80s: %s",
             file->all->share.cache->path, strerror(-r));
    stop(file->all, text);
}

static void file_close(struct made_file *made)
{
    close(((struct file *)made)->rows.fd);
    free(made);
}

static const struct made_file_ops file_ops = {file_read, file_has, file_write, file_close};

/* Any number of processes may do this at once: all write the same header. Nothing stays of what was
 * under another. */
static int begin_file(const struct made_files *made, const struct entry *entry, struct rows *rows,
                      uint64_t size, struct diag *d)
{
    uint8_t header[HEADER_BYTES], found[HEADER_BYTES];
    struct quota *quota = made->share.cache->quota;
    char path[PATH_MAX];
    struct stat st;
    int r;

    entry_path(entry, "", path);
    r = file_open_own(&entry->group, path, &rows->fd, d);
    if (r < 0)
        return diag_set(d, r, "%s: %s", entry->folder, strerror(-r));
    file_mark_used(rows->fd);
    make_header(entry, rows, header);
    futimens(rows->fd, NULL);
    if (fstat(rows->fd, &st) == 0 && (uint64_t)st.st_size == size &&
        file_pread(rows->fd, found, sizeof(found), 0) == 0 && !memcmp(found, header, sizeof(found)))
        return 0;
    r = quota ? quota_take(quota, HEADER_BYTES) : 0;
    if (r == 0) {
        r = ftruncate(rows->fd, 0) < 0 ? -errno : 0;
        if (r == 0)
            r = file_pwrite(rows->fd, header, sizeof(header), 0);
        if (r == 0 && ftruncate(rows->fd, (off_t)size) < 0)
            r = -errno;
        if (quota)
            quota_settle(quota, HEADER_BYTES);
    }
    return r < 0 ? diag_set(d, r, "%s: %s", path, strerror(-r)) : 0;
}

static int store_open(struct made_store *store, const char *identity, const char *source,
                      uint64_t rows, uint64_t row_bytes, struct made_file **ret, struct diag *d)
{
    struct made_files *made = (struct made_files *)store;
    struct file *file = calloc(1, sizeof(*file));
    struct diag reason = DIAG_INIT;
    char text[sizeof(reason.text) + 32];
    struct entry entry;
    uint64_t size;
    int r;

    if (!file)
        return -ENOMEM;
    *file = (struct file){{&file_ops}, made, {.fd = -1, .n = rows, .row_bytes = row_bytes}};
    r = entry_init(&entry, made->share.cache, KIND, identity, source, &reason);
    if (r == 0 && !place_rows(&file->rows, entry.id, &size))
        r = diag_set(&reason, -EFBIG, "expected at most 2^60 bytes of arrays");
    if (r == 0)
        r = begin_file(made, &entry, &file->rows, size, &reason);
    if (r < 0) {
        if (file->rows.fd >= 0)
            close(file->rows.fd);
        free(file);
        snprintf(text, sizeof(text), "no pictures are kept: %s", diag_text(&reason, r));
        stop(made, text);
        return diag_set(d, r, "%s", diag_text(&reason, r));
    }
    *ret = &file->made;
    return 0;
}

static const struct made_store_ops store_ops = {store_open};

void made_files_init(struct made_files *ret, const struct cache_folder *folder, uint64_t limit,
                     const struct notices *notices)
{
    *ret = (struct made_files){.store = {&store_ops},
                               .share = {.cache = folder, .folder = KIND, .limit = limit},
                               .notices = *notices};
    lock_init(&ret->share.lock);
}

void made_files_release(struct made_files *made)
{
    lock_release(&made->share.lock);
}

/* ---- tools ---- */

/* Open a file by what it says itself: its name must agree. */
static int made_open_named(const struct cache_group *group, const char *path, int flags,
                           struct rows *ret, uint8_t header[HEADER_BYTES])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint8_t id[DIGEST_BYTES];
    struct rows rows = {.fd = group_open_to_look(group, path, flags)};
    uint64_t size = 0;
    struct stat st;
    int r = 0;

    if (rows.fd < 0)
        return rows.fd;
    if (fstat(rows.fd, &st) < 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode) || file_pread(rows.fd, header, HEADER_BYTES, 0) < 0 ||
             memcmp(header, MAGIC, 8) != 0 || load_le32(header + 8) != VERSION ||
             load_le32(header + HEADER_SUM) != (uint32_t)crc32(0, header, HEADER_SUM) ||
             load_le32(header + 12) > ENTRY_SOURCE_MAX || strlen(name) != ENTRY_ID_SIZE - 1 ||
             !hex_parse(name, sizeof(id), id) || memcmp(header + HEADER_ID, id, sizeof(id)) != 0)
        r = -EBADMSG;
    rows.n = load_le64(header + 16);
    rows.row_bytes = load_le64(header + 24);
    if (r == 0 && (!place_rows(&rows, name, &size) || (uint64_t)st.st_size != size))
        r = -EBADMSG;
    if (r < 0)
        close(rows.fd);
    else
        *ret = rows;
    return r;
}

static int count_records(const struct rows *rows, uint64_t *ret)
{
    uint8_t bytes[RECORDS_READ * 8];

    *ret = 0;
    for (uint64_t row = 0; row < rows->n; row += RECORDS_READ) {
        size_t n = (size_t)min_u64(RECORDS_READ, rows->n - row);
        int r = file_pread(rows->fd, bytes, 8 * n, HEADER_BYTES + 8 * row);

        if (r < 0)
            return r;
        for (size_t i = 0; i < n; i++)
            *ret += load_le64(bytes + 8 * i) != 0;
    }
    return 0;
}

int made_inspect(const struct cache_group *group, const char *path, struct inventory_file *ret)
{
    uint8_t header[HEADER_BYTES] = {0};
    struct rows rows;
    uint64_t n = 0;
    int r = made_open_named(group, path, O_RDONLY, &rows, header);

    if (r < 0)
        return r;
    r = count_records(&rows, &n);
    close(rows.fd);
    if (r < 0)
        return r;
    ret->source = strndup((const char *)header + HEADER_TEXT, load_le32(header + 12));
    if (!ret->source)
        return -ENOMEM;
    ret->size = rows.n * rows.row_bytes;
    ret->present = n * rows.row_bytes;
    return 0;
}

static int verify_rows(const struct rows *rows, uint64_t *good, uint64_t *bad)
{
    AUTO_FREE uint8_t *bytes = malloc((size_t)rows->row_bytes);
    int r = bytes ? 0 : -ENOMEM;

    for (uint64_t row = 0; row < rows->n && r == 0; row++) {
        uint64_t record = read_record(rows, row);
        bool is_good = read_row(rows, row, record, bytes);

        *good += is_good;
        *bad += record && !is_good;
        if (record && !is_good)
            r = write_record(rows, row, 0);
    }
    return r;
}

int made_verify(const struct cache_group *group, const char *path, uint64_t *good, uint64_t *bad)
{
    uint8_t header[HEADER_BYTES] = {0};
    struct rows rows;
    int r = made_open_named(group, path, O_RDWR, &rows, header);

    *good = *bad = 0;
    if (r < 0)
        return r;
    r = verify_rows(&rows, good, bad);
    close(rows.fd);
    return r;
}
