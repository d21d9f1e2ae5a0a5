/* The versions of files in a table of members: 24 bytes for those of most servers.
 *
 * clang-format off
 *   kind   version[2]            the rest, in `more`
 *   TIME   digest of the time    the time
 *   MD5    the ETag's 16 bytes   how many parts the object was sent in, and the time: S3's ETags
 *   SIZED  digest of the ETag    the time: nginx makes its ETags of that and of the size
 *   text   digest of the ETag,   all, as a text
 *          or of the time
 *   local  time, inode, device   the time of the last change of the inode
 * clang-format on */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "cache/disk/sha256.h"
#include "cache/source/joined.h"
#include "cache/stage/transport.h"

enum form { KIND_TEXT, KIND_TIME, KIND_MD5, KIND_SIZED };

/* For `more`: 40 bits of seconds, 17 of parts, a flag, the kind; then MEMBER_TEXT. */
#define SECONDS_BITS 40
#define PARTS_BITS   17
#define WHOLE_ONLY   (UINT64_C(1) << 60)
#define KIND_SHIFT   61
#define LOCAL_MOST                                                                                 \
    WHOLE_ONLY /* a local file has less, the time of its last change of the inode                  \
                */

#define MD5_LEN   16
#define PARTS_MIX UINT64_C(0x9e3779b97f4a7c15)

void joined_version_of_stat(const struct stat *st, struct member *ret)
{
    ret->version[0] = (uint64_t)timespec_ns(&st->st_mtim);
    ret->version[1] = st->st_ino ^ st->st_dev * PARTS_MIX;
    ret->more = (uint64_t)timespec_ns(&st->st_ctim) & (LOCAL_MOST - 1);
}

bool joined_version_is(const struct members *m, size_t i, const struct stat *st)
{
    const struct member *member = &m->member[i];
    struct member now;

    joined_version_of_stat(st, &now);
    return S_ISREG(st->st_mode) && (uint64_t)st->st_size == members_size(m, i) &&
           !memcmp(now.version, member->version, sizeof(now.version)) && now.more == member->more;
}

static int hash_text(char *text, size_t n, uint64_t ret[static 2])
{
    uint8_t digest[DIGEST_BYTES];
    int r = digest_fields(&(struct iovec){text, n}, 1, digest);

    if (r == 0)
        memcpy(ret, digest, 2 * sizeof(*ret));
    return r;
}

/* An ETag as S3 makes it: "<32 digits>", or with "-<parts>" behind them. */
static bool parse_md5(const char *etag, uint8_t ret[static MD5_LEN], uint64_t *ret_parts)
{
    uint64_t parts = 0;
    size_t n = 1 + 2 * MD5_LEN;

    if (*etag != '"' || strspn(etag + 1, "0123456789abcdef") != n - 1 ||
        !hex_parse(etag + 1, MD5_LEN, ret))
        return false;
    if (etag[n] == '-') {
        size_t digits = etag[n + 1] >= '1' && etag[n + 1] <= '9'
                            ? number_parse(etag + n + 1, strspn(etag + n + 1, "0123456789"),
                                           (1u << PARTS_BITS) - 1, &parts)
                            : 0;

        if (!digits)
            return false;
        n += 1 + digits;
    }
    *ret_parts = parts;
    return !strcmp(etag + n, "\"");
}

static void print_md5(const uint64_t version[static 2], uint64_t parts, char *ret, size_t capacity)
{
    const uint64_t words[2] = {version[0], version[1] ^ parts * PARTS_MIX};
    char digits[2 * MD5_LEN + 1], tail[32] = "";

    hex_print((const uint8_t *)words, MD5_LEN, digits);
    if (parts)
        snprintf(tail, sizeof(tail), "-%" PRIu64, parts);
    snprintf(ret, capacity, "\"%s%s\"", digits, tail);
}

static void print_sized(uint64_t seconds, uint64_t size, char *ret, size_t capacity)
{
    snprintf(ret, capacity, "\"%" PRIx64 "-%" PRIx64 "\"", seconds, size);
}

/* The version's kind, and what is to be packed. */
static enum form joined_version_kind_of(const struct remote_version *version,
                                        uint8_t md5[static MD5_LEN], uint64_t *ret_parts)
{
    char sized[64];

    *ret_parts = 0;
    if (version->mtime.tv_nsec || version->mtime.tv_sec < 0 ||
        (uint64_t)version->mtime.tv_sec >> SECONDS_BITS)
        return KIND_TEXT;
    if (!*version->etag)
        return KIND_TIME;
    if (parse_md5(version->etag, md5, ret_parts))
        return KIND_MD5;
    print_sized((uint64_t)version->mtime.tv_sec, version->size, sized, sizeof(sized));
    return strcmp(version->etag, sized) == 0 ? KIND_SIZED : KIND_TEXT;
}

bool joined_version_needs_time(const struct remote_version *version)
{
    uint8_t md5[MD5_LEN];
    uint64_t parts;

    return *version->etag && version->mtime.tv_sec &&
           joined_version_kind_of(version, md5, &parts) == KIND_TEXT;
}

int joined_version_set(struct members *m, size_t i, const struct remote_version *version)
{
    uint64_t parts, more, *hash = m->member[i].version;
    uint8_t md5[MD5_LEN];
    enum form form = joined_version_kind_of(version, md5, &parts);
    char text[sizeof(version->etag) + 64], time[64] = "";
    int n, r = 0;

    if (!*version->etag || joined_version_needs_time(version))
        snprintf(time, sizeof(time), "time %lld.%09ld", (long long)version->mtime.tv_sec,
                 version->mtime.tv_nsec);
    n = snprintf(text, sizeof(text), "%s%s%s%s", *version->etag ? "etag " : "", version->etag,
                 *version->etag && *time ? " " : "", time);
    if (form == KIND_MD5) {
        memcpy(hash, md5, sizeof(md5));
        hash[1] ^= parts * PARTS_MIX;
    } else {
        r = hash_text(text, (size_t)n, hash);
    }
    if (r < 0)
        return r;
    more = (uint64_t)form << KIND_SHIFT | (version->whole_only ? WHOLE_ONLY : 0);
    if (form != KIND_TEXT)
        return members_set_more(
            m, i, more | parts << SECONDS_BITS | (uint64_t)version->mtime.tv_sec, NULL);
    snprintf(text, sizeof(text), "%lld.%ld %s", (long long)version->mtime.tv_sec,
             version->mtime.tv_nsec, version->etag);
    return members_set_more(m, i, more, text);
}

/* The text may be anything. */
static bool parse_text(const char *text, struct remote_version *ret)
{
    long long seconds;
    long ns;
    int end = 0;

    if (strnlen(text, sizeof(ret->etag) + 64) == sizeof(ret->etag) + 64 ||
        sscanf(text, "%lld.%ld %n", &seconds, &ns, &end) != 2 || !end || ns < 0 ||
        ns >= 1000000000 || strlen(text + end) >= sizeof(ret->etag))
        return false;
    for (const char *c = text + end; *c; c++)
        if (iscntrl((unsigned char)*c))
            return false;
    ret->mtime = (struct timespec){.tv_sec = seconds, .tv_nsec = ns};
    memcpy(ret->etag, text + end, strlen(text + end) + 1);
    return true;
}

bool joined_version_get(const struct members *m, size_t i, struct remote_version *ret)
{
    const struct member *member = &m->member[i];
    uint64_t seconds = member->more & ((UINT64_C(1) << SECONDS_BITS) - 1);
    uint64_t parts = member->more >> SECONDS_BITS & ((1u << PARTS_BITS) - 1);
    const char *text = members_text(m, i);

    *ret = (struct remote_version){.size = members_size(m, i),
                                   .whole_only = member->more & WHOLE_ONLY};
    if (text)
        return parse_text(text, ret);
    ret->mtime.tv_sec = (time_t)seconds;
    switch ((enum form)(member->more >> KIND_SHIFT & 3)) {
    case KIND_TIME:
        return true;
    case KIND_MD5:
        print_md5(member->version, parts, ret->etag, sizeof(ret->etag));
        return true;
    case KIND_SIZED:
        print_sized(seconds, ret->size, ret->etag, sizeof(ret->etag));
        return true;
    case KIND_TEXT:
        break;
    }
    return false;
}

/* ---- of a whole table ---- */

/* What tells a member apart. A remote's time in `more` may differ where its ETag does not. */
struct identified {
    uint64_t place, version[2], ctime, folder;
};

static int digest_members(const struct members *m, struct digest *digest)
{
    struct identified some[64];
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; i < m->n && r == 0; i++) {
        const struct member *member = &m->member[i];

        some[n++] = (struct identified){member->place,
                                        {member->version[0], member->version[1]},
                                        member->more < LOCAL_MOST ? member->more : 0,
                                        member->folder};
        if (n == ARRAY_LEN(some) || i + 1 == m->n) {
            r = digest_add(digest, some, n * sizeof(*some));
            n = 0;
        }
    }
    for (uint32_t i = 0; i < m->n_folders && r == 0; i++)
        r = digest_add(digest, members_folder(m, i), strlen(members_folder(m, i)) + 1);
    for (size_t i = 0; i < m->n && r == 0; i++)
        r = digest_add(digest, members_name(m, i), strlen(members_name(m, i)) + 1);
    return r;
}

int joined_identity(const struct members *members, const char *where, char **ret)
{
    const uint64_t head[] = {members->n, members->n_folders, members_end(members)};
    AUTO_DIGEST struct digest *digest = NULL;
    char hex[DIGEST_TEXT_SIZE];
    uint8_t found[DIGEST_BYTES];
    int r = digest_new(&digest);

    if (r == 0)
        r = digest_add(digest, head, sizeof(head));
    if (r == 0)
        r = digest_members(members, digest);
    if (r == 0)
        r = digest_add(digest, where, strlen(where));
    if (r == 0)
        r = digest_finish(digest, found);
    if (r < 0)
        return r;
    digest_text(found, hex);
    return text_print(ret, "joined %s %zu %llu", hex, members->n,
                      (unsigned long long)members_end(members));
}
