/* Members become files: each name is decoded and judged, then all are sorted as a table of files
 * is, so that folders come once and what has one name lies side by side. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "format/zip/archive.h"

#define FLAG_UTF8     0x800u
#define FIELD_UNICODE 0x7075u
#define MAKER_DOS     0
#define NAME_LONGEST  255u /* bytes of a name of a folder or a file */

struct zip_file {
    size_t path; /* in paths: "" or a folder, NUL, the name, NUL; a name "" is the folder's entry */
    size_t name;
    uint32_t member;
};

struct zip_listing {
    const struct zip *zip;
    struct text paths;
    struct zip_file *file; /* [n] */
    size_t n;
    bool turns_slashes; /* names have backslashes for slashes */
    uint64_t n_aside;   /* members that are no files, for which there is a reason */
    struct diag aside;  /* the first reason */
};

static void zip_listing_release(struct zip_listing *l)
{
    text_release(&l->paths);
    free(l->file);
}

/* ---- names ---- */

/* What bytes 128 to 255 are in code page 437. */
static const uint16_t code_page_437[128] = {
    0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea, 0x00eb, 0x00e8, 0x00ef,
    0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6, 0x00c6, 0x00f4, 0x00f6, 0x00f2, 0x00fb, 0x00f9,
    0x00ff, 0x00d6, 0x00dc, 0x00a2, 0x00a3, 0x00a5, 0x20a7, 0x0192, 0x00e1, 0x00ed, 0x00f3, 0x00fa,
    0x00f1, 0x00d1, 0x00aa, 0x00ba, 0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc, 0x00a1, 0x00ab, 0x00bb,
    0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561, 0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557,
    0x255d, 0x255c, 0x255b, 0x2510, 0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c, 0x255e, 0x255f,
    0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567, 0x2568, 0x2564, 0x2565, 0x2559,
    0x2558, 0x2552, 0x2553, 0x256b, 0x256a, 0x2518, 0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580,
    0x03b1, 0x00df, 0x0393, 0x03c0, 0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4,
    0x221e, 0x03c6, 0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320, 0x2321, 0x00f7, 0x2248,
    0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2, 0x25a0, 0x00a0};

static bool zip_is_utf8(const char *bytes, size_t len)
{
    for (size_t n; len; bytes += n, len -= n)
        if (!(n = text_character(bytes, len)))
            return false;
    return true;
}

static void zip_add_437(struct text *t, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        unsigned c = byte < 128 ? byte : code_page_437[byte - 128];
        char utf8[3] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
                        (char)(0x80 | (c & 63))};

        if (c < 0x80)
            utf8[2] = (char)c;
        else if (c < 0x800)
            utf8[1] = (char)(0xc0 | c >> 6);
        text_add_bytes(t, utf8 + (c < 0x80 ? 2 : c < 0x800), c < 0x80 ? 1 : c < 0x800 ? 2 : 3);
    }
}

/* The name in the extra field for Unicode, if it is that of this name. NULL: there is none. */
static const char *zip_unicode_name(const struct zip_member *m, size_t *ret_len)
{
    const uint8_t *field = m->extra;
    size_t left = m->extra_len, len;

    for (; left >= 4; field += 4 + len, left -= 4 + len) {
        len = load_le16(field + 2);
        if (len > left - 4)
            return NULL;
        if (load_le16(field) != FIELD_UNICODE || len <= 5 || field[4] != 1 ||
            load_le32(field + 5) != crc32_z(0, (const Bytef *)m->name, m->name_len))
            continue;
        *ret_len = len - 5;
        return (const char *)field + 9;
    }
    return NULL;
}

static void zip_decode_name(const struct zip_member *m, struct text *t)
{
    size_t len = m->name_len;
    const char *unicode = m->flags & FLAG_UTF8 ? NULL : zip_unicode_name(m, &len);

    if (unicode)
        text_add_bytes(t, unicode, len);
    else if (m->flags & FLAG_UTF8 || zip_is_utf8(m->name, len))
        text_add_bytes(t, m->name, len);
    else
        zip_add_437(t, m->name, len);
}

/* Clean `./` and `//` in place: path has len bytes and a NUL. Returns why it is no path of a file
 * below a folder, or NULL. */
static const char *zip_clean_path(char *path, size_t *len)
{
    size_t to = 0;

    if (strlen(path) != *len)
        return "its name has a NUL";
    if (*len >= PATH_MAX / 2)
        return "its path is too long";
    if (!*len || *path == '/' || (path[1] == ':' && (path[2] == '/' || path[2] == '\\')))
        return !*len ? "it has no name" : "its name is an absolute path";
    if (strchr(path, '\\'))
        return "its name has a backslash";
    for (size_t at = 0; at < *len;) {
        size_t n = strcspn(path + at, "/");
        bool is_folder = path[at + n] == '/';

        if (n == 2 && path[at] == '.' && path[at + 1] == '.')
            return "its name leads out of the archive by '..'";
        if (n > NAME_LONGEST)
            return "its name is longer than 255 bytes";
        if (n && !(n == 1 && path[at] == '.')) {
            memmove(path + to, path + at, n);
            to += n;
            if (is_folder)
                path[to++] = '/';
        }
        at += n + is_folder;
    }
    path[to] = '\0';
    *len = to;
    return NULL;
}

/* ---- members ---- */

/* Are all slashes backslashes, as old .NET wrote them? */
static bool zip_turns_slashes(const struct zip *zip)
{
    bool found = false;

    for (size_t i = 0; i < zip->n; i++) {
        const struct zip_member *m = &zip->member[i];

        if (m->maker != MAKER_DOS || memchr(m->name, '/', m->name_len))
            return false;
        found = found || memchr(m->name, '\\', m->name_len);
    }
    return found;
}

/* Is the file one that programs leave, or hidden? */
static bool zip_is_housekeeping(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return !strncmp(path, "__MACOSX/", 9) || *name == '.' || !strcmp(name, "Thumbs.db") ||
           !strcmp(name, "desktop.ini");
}

/* Why a member is no file of the listing, or NULL. */
static const char *zip_why_aside(const struct zip_member *m)
{
    const char *method = zip_foreign_method(m);

    if (m->mode && !S_ISREG(m->mode) && !S_ISDIR(m->mode) && m->mode & S_IFMT)
        return "it is a link or a device";
    return method ? method : NULL;
}

/* Add a member, or note why it is ignored. 0 or -ENOMEM. */
static int zip_list_member(struct zip_listing *l, uint32_t number)
{
    const struct zip_member *m = &l->zip->member[number];
    const char *why = zip_why_aside(m);
    struct text *t = &l->paths;
    size_t start = t->len, len;
    char *path, *slash;
    const char *bad;

    zip_decode_name(m, t);
    text_add_bytes(t, "", 1);
    if (t->failed || array_capacity(&l->file, l->n, sizeof(*l->file)) < 0)
        return -ENOMEM;
    path = t->data + start;
    len = t->len - start - 1;
    for (char *c = path; l->turns_slashes && (c = strchr(c, '\\'));)
        *c = '/';
    bad = zip_clean_path(path, &len);
    t->len = start;
    if (bad || !len || zip_is_housekeeping(path) || why) {
        if (bad || (why && len && !zip_is_housekeeping(path)))
            diag_set(&l->aside, -EINVAL, why && !bad ? "%.100s: %s%s" : "%.100s: %s", path,
                     bad                     ? bad
                     : zip_foreign_method(m) ? "is packed by "
                                             : why,
                     zip_foreign_method(m) ? why : "");
        l->n_aside += bad || (why && len && !zip_is_housekeeping(path));
        return 0;
    }
    slash = strrchr(path, '/');
    l->file[l->n] = (struct zip_file){.path = start, .name = start + len + 1, .member = number};
    if (slash) {
        *slash = '\0';
        l->file[l->n].name = start + (size_t)(slash - path) + 1;
    } else { /* the name, after a folder "" */
        memmove(path + 1, path, len + 1);
        *path = '\0';
        l->file[l->n].name = start + 1;
    }
    t->len = start + len + 2;
    l->n++;
    return 0;
}

static int zip_compare_files(const void *a, const void *b, void *paths)
{
    const struct zip_file *x = a, *y = b;
    const char *base = paths;
    int order = members_compare_paths(base + x->path, base + y->path);

    return order ? order : strcmp(base + x->name, base + y->name);
}

/* Are all files below the folder stem? */
static bool zip_has_one_folder(const struct zip_listing *l, const char *stem)
{
    for (size_t i = 0; i < l->n; i++)
        if (!members_is_below(l->paths.data + l->file[i].path, stem))
            return false;
    return l->n > 0;
}

/* Add the folder, and those above it that the one before, which was added, is not below. */
static int zip_add_folders(struct members *m, const char *top, const char *before,
                           const char *folder, uint32_t *ret)
{
    int r = 0;

    for (size_t len = 0; r == 0 && folder[len];) {
        AUTO_FREE char *path = NULL, *below = NULL;

        len += folder[len] == '/';
        len += strcspn(folder + len, "/");
        below = strndup(folder, len);
        if (!below || asprintf(&path, "%s%s%s", top, *top ? "/" : "", below) < 0)
            return -ENOMEM;
        if (!before || !members_is_below(before, below))
            r = members_add_folder(m, path, ret);
    }
    return r;
}

/* Add the folders from SOURCE to top. */
static int zip_add_top(struct members *m, const char *top, uint32_t *ret)
{
    int r = members_add_folder(m, "", ret);

    return r < 0 ? r : zip_add_folders(m, "", NULL, top, ret);
}

/* The same name twice, or a file that is also a folder. */
static int zip_check_names(const struct zip_archive *archive, struct diag *d)
{
    const struct members *m = &archive->listing;

    for (size_t i = 1; i < m->n; i++)
        if (m->member[i].folder == m->member[i - 1].folder &&
            !strcmp(members_name(m, i), members_name(m, i - 1)))
            return blob_bad(archive->blob, d, "expected members of different names, got two %s/%s",
                            members_folder_of(m, i), members_name(m, i));
    for (uint32_t f = 0; f < m->n_folders; f++) {
        const char *path = members_folder(m, f), *slash = strrchr(path, '/');

        if (slash && members_lookup(m, path, (size_t)(slash - path), slash + 1) < m->n)
            return blob_bad(archive->blob, d, "expected %s as a file or as a folder, got both",
                            path);
    }
    return 0;
}

static int zip_fill(struct zip_archive *archive, struct zip_listing *l, const char *top,
                    struct diag *d)
{
    struct members *m = &archive->listing;
    const char *before = NULL;
    uint32_t folder = 0, root = 0;
    int r = zip_add_top(m, top, &root);

    for (size_t i = 0; i < l->n && r == 0; i++) {
        const struct zip_file *file = &l->file[i];
        const char *path = l->paths.data + file->path, *name = l->paths.data + file->name;

        if (!*path)
            folder = root;
        else if (!before || strcmp(before, path) != 0)
            r = zip_add_folders(m, top, before, path, &folder);
        before = *path ? path : before;
        if (r == 0 && *name)
            r = members_add(m, folder, name, l->zip->member[file->member].size,
                            (uint64_t[2]){file->member, 0});
    }
    if (r == 0)
        r = members_sort(m);
    return r == 0 ? zip_check_names(archive, d) : r;
}

int zip_list(struct zip_archive *archive, const struct zip *zip, const char *top, const char *stem,
             struct diag *d)
{
    AUTO(zip_listing_release)
    struct zip_listing l = {.zip = zip, .turns_slashes = zip_turns_slashes(zip)};
    AUTO_FREE char *above = NULL;
    const char *slash = strrchr(top, '/');
    int r = 0;

    for (uint32_t i = 0; i < zip->n && r == 0; i++)
        r = zip_list_member(&l, i);
    if (r < 0)
        return r;
    if (l.n)
        qsort_r(l.file, l.n, sizeof(*l.file), zip_compare_files, l.paths.data);
    above = strndup(top, slash ? (size_t)(slash - top) : 0);
    archive->n_aside = l.n_aside;
    archive->aside = l.aside.set ? strdup(l.aside.text) : NULL;
    if (!above || (l.aside.set && !archive->aside))
        return -ENOMEM;
    return zip_fill(archive, &l, zip_has_one_folder(&l, stem) ? above : top, d);
}
