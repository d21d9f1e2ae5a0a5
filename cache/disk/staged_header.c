/* The header of a staged file, and the counter of drops behind its content. Invariants 1, 5, 6 and
 * 9 of cache/disk/staged_file.c are kept here: a file whose header is damaged or of another key, or
 * whose counter cannot be told, is begun again; but never one of another key that others use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "cache/disk/local_file.h"
#include "cache/disk/staged_file_parts.h"

#define SEALED_NS INT64_C(20000000) /* longer than the steps of the kernel's time of a change */

/* ---- the header ---- */

void staged_layout(struct staged *ret, const uint8_t header[static HEADER_BYTES])
{
    ret->size = load_le64(header + HEADER_AT_SIZE);
    ret->block = load_le32(header + HEADER_AT_BLOCK);
    ret->blocks = ceil_div(ret->size, ret->block);
    ret->end = ceil_div(ret->size, DROPS_BYTES) * DROPS_BYTES; /* in one page */
    ret->seed = XXH3_64bits(header, HEADER_AT_CRC);
}

int staged_make_digest(const struct staged_key *key, uint8_t ret[static DIGEST_BYTES])
{
    uint8_t numbers[8 * 3];
    const struct iovec field[] = {{(char *)(uintptr_t)key->url, strlen(key->url)},
                                  {(char *)(uintptr_t)key->version, strlen(key->version)},
                                  {numbers, sizeof(numbers)}};

    store_le64(numbers, key->size);
    store_le64(numbers + 8, key->block);
    store_le64(numbers + 16, HEADER_VERSION); /* so that files of other versions have other names */
    return digest_fields(field, ARRAY_LEN(field), ret);
}

static void put_text(uint8_t *header, size_t at, size_t capacity, size_t at_len, const char *text)
{
    size_t len = strlen(text);

    store_le32(header + at_len, (uint32_t)min_u64(len, UINT32_MAX));
    memcpy(header + at, text, len < capacity ? len : capacity);
}

void staged_make_header(const uint8_t digest[static DIGEST_BYTES], const struct staged_key *key,
                        uint8_t ret[static HEADER_BYTES])
{
    memset(ret, 0, HEADER_BYTES);
    memcpy(ret, HEADER_MAGIC, 8);
    store_le32(ret + HEADER_AT_VERSION, HEADER_VERSION);
    store_le32(ret + HEADER_AT_BLOCK, key->block);
    store_le64(ret + HEADER_AT_SIZE, key->size);
    memcpy(ret + HEADER_AT_ID, digest, DIGEST_BYTES);
    put_text(ret, HEADER_AT_URL, HEADER_URL_SIZE, HEADER_AT_URL_LEN, key->url);
    put_text(ret, HEADER_AT_NAMED, HEADER_NAMED_SIZE, HEADER_AT_NAMED_LEN, key->version);
    store_le32(ret + HEADER_AT_CRC, (uint32_t)crc32_z(0, ret, HEADER_AT_CRC));
}

int staged_header_read(int fd, uint8_t header[static HEADER_BYTES], uint32_t *version)
{
    ssize_t n = file_read_some(fd, header, HEADER_BYTES, 0);

    if (n < 0 && n != -EIO)
        return (int)n;
    if (n != HEADER_BYTES || memcmp(header, HEADER_MAGIC, 8) != 0 ||
        load_le32(header + HEADER_AT_CRC) != (uint32_t)crc32_z(0, header, HEADER_AT_CRC))
        return -EBADMSG;
    *version = load_le32(header + HEADER_AT_VERSION);
    if (*version > HEADER_VERSION)
        return -EPROTO;
    return *version < HEADER_VERSION ? -EBADMSG : 0; /* no longer used; it has another id */
}

/* ---- the counter of drops ---- */

uint64_t staged_new_drops(void)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        random = (uint64_t)now_ns() ^ (uint64_t)monotonic_ns() << 20 ^ (uint64_t)getpid() << 40;
    return random >> 1 | 1;
}

int staged_set_drops(const struct staged *staged, uint64_t drops)
{
    uint8_t bytes[DROPS_BYTES];

    store_le64(bytes, drops);
    return file_pwrite(staged->fd, bytes, sizeof(bytes), staged->end);
}

/* ---- the number of a sealed content ---- */

uint64_t staged_sealed_number(const struct staged *staged)
{
    uint8_t bytes[DROPS_BYTES];

    return file_read_some(staged->records, bytes, sizeof(bytes), HEADER_AT_SEALED) == sizeof(bytes)
               ? load_le64(bytes)
               : 0;
}

int staged_set_sealed_number(const struct staged *staged, uint64_t number)
{
    uint8_t bytes[DROPS_BYTES];

    store_le64(bytes, number);
    return file_pwrite(staged->records, bytes, sizeof(bytes), HEADER_AT_SEALED);
}

bool staged_has_size(const struct staged *staged)
{
    struct stat st;

    return fstat(staged->fd, &st) == 0 && (uint64_t)st.st_size == staged->size;
}

int staged_touch(const struct staged *staged)
{
    const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};

    /* Another user's file can have both times set, or none. */
    return futimens(staged->fd, now) < 0 && futimens(staged->fd, NULL) < 0 ? -errno : 0;
}

/* No counter has that number: they begin below 2^63. */
static uint64_t number_of(uint64_t number, int64_t changed)
{
    uint8_t bytes[16];
    uint64_t hash;

    store_le64(bytes, number);
    store_le64(bytes + 8, (uint64_t)changed);
    hash = XXH3_64bits(bytes, sizeof(bytes)) | UINT64_C(1) << 63;
    return hash == UINT64_MAX ? hash - 1 : hash;
}

/* What the header says is remembered only if the last change was some time ago: a change that comes
 * now then has another time. */
static uint64_t drops_of_sealed(const struct staged *staged)
{
    struct staged_shared *shared = staged->shared;
    uint64_t number;
    struct stat st;

    atomic_store(&shared->changed, 0);
    if (fstat(staged->fd, &st) < 0 || (uint64_t)st.st_size != staged->size)
        return UINT64_MAX;
    number = staged_sealed_number(staged);
    if (!number)
        return UINT64_MAX;
    if (now_ns() - timespec_ns(&st.st_ctim) > SEALED_NS) {
        atomic_store(&shared->number, number);
        atomic_store(&shared->changed, timespec_ns(&st.st_ctim));
    }
    return number_of(number, timespec_ns(&st.st_ctim));
}

/* The number that is remembered may be older than the time, if another thread is just changing
 * both: then the result is a number that the content never had. */
static bool is_as_remembered(const struct staged *staged, uint64_t *ret)
{
    int64_t changed = atomic_load_explicit(&staged->shared->changed, memory_order_acquire);
    struct stat st;

    if (!changed || fstat(staged->fd, &st) < 0 || (uint64_t)st.st_size != staged->size ||
        timespec_ns(&st.st_ctim) != changed)
        return false;
    *ret = number_of(atomic_load(&staged->shared->number), changed);
    return true;
}

uint64_t staged_drops(const struct staged *staged)
{
    uint8_t bytes[DROPS_BYTES];
    uint64_t drops;

    if (is_as_remembered(staged, &drops))
        return drops;
    if (file_read_some(staged->fd, bytes, sizeof(bytes), staged->end) != sizeof(bytes))
        return drops_of_sealed(staged);
    drops = load_le64(bytes);
    return drops ? drops : UINT64_MAX; /* 0: the file was cut and made long again */
}

/* ---- a file that is begun ---- */

/* Cut both files to nothing, the content first: what was known of it is over. But a content that
 * readers have open remains, sealed, with another number. */
static int cut(const struct staged *staged, const uint8_t header[static HEADER_BYTES])
{
    bool is_read =
        file_lock(staged->fd, F_WRLCK, LOCK_SEALED, 1, 0) == -EAGAIN && staged_has_size(staged);
    int r = is_read ? staged_touch(staged) : ftruncate(staged->fd, 0) < 0 ? -errno : 0;

    if (r == 0)
        r = ftruncate(staged->records, 0) < 0
                ? -errno
                : file_pwrite(staged->records, header, HEADER_BYTES, 0);
    if (r == 0)
        r = is_read ? staged_set_sealed_number(staged, staged_new_drops())
                    : staged_set_drops(staged, staged_new_drops());
    if (!is_read)
        file_lock(staged->fd, F_UNLCK, LOCK_SEALED, 1, 0);
    return r;
}

/* LOCK_DROP keeps out drops, whose count would overwrite the new number. */
static int begin_anew(const struct staged *staged, const uint8_t header[static HEADER_BYTES])
{
    int r = file_lock(staged->fd, F_WRLCK, LOCK_DROP, 1, FILE_LOCK_MS);

    if (r < 0)
        return r;
    r = cut(staged, header);
    file_lock(staged->fd, F_UNLCK, LOCK_DROP, 1, 0);
    return r;
}

/* Another header than that of its key is in a file that should not exist. If another description
 * has it open, the file is that one's: -EBUSY. use: what holds LOCK_USE for this process. */
static int begin_of_other(const struct staged *staged, int use,
                          const uint8_t header[static HEADER_BYTES])
{
    int r = file_lock(use, F_WRLCK, LOCK_USE, 1, 0);

    if (r < 0)
        return r == -EAGAIN ? -EBUSY : r;
    r = file_has_lock(use, LOCK_SEALED, 1) ? -EBUSY : begin_anew(staged, header);
    file_lock(use, F_RDLCK, LOCK_USE, 1, 0);
    return r;
}

int staged_prepare(const struct staged *staged, int use, const uint8_t wanted[static HEADER_BYTES],
                   const char *path, struct diag *d)
{
    uint8_t found[HEADER_BYTES];
    uint32_t version = 0;
    int r = staged_header_read(staged->records, found, &version);

    if (r == -EPROTO)
        return diag_set(d, r,
                        "staged file %s: expected version %d, got %u; remove it, or choose another "
                        "folder with -o cache_dir=DIR",
                        path, HEADER_VERSION, version);
    if (r < 0 && r != -EBADMSG)
        return diag_set(d, r, "staged file %s: %s", path, strerror(-r));
    if (r == 0 && memcmp(found, wanted, HEADER_AT_MARK) != 0)
        r = begin_of_other(staged, use, wanted);
    else if (r < 0 || staged_drops(staged) == UINT64_MAX)
        r = begin_anew(staged, wanted);
    if (r == -EBUSY)
        return diag_set(d, r,
                        "staged file %s: another process uses it for another source. Remove it, or "
                        "choose another folder with -o cache_dir=DIR",
                        path);
    return r < 0 ? diag_set(d, r, "staged file %s: %s", path, file_error(r)) : 0;
}
