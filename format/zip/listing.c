/* Members become files: each name is decoded and judged, then all are sorted as a table of files
 * is, so that folders come once and what has one name lies side by side. Where a file is in the
 * archive is in its version. */
#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "format/zip/archive.h"

#define FLAG_UTF8     0x800u
#define FIELD_UNICODE 0x7075u
#define MAKER_DOS     0
#define NAME_LONGEST  255u /* bytes of a name of a folder or a file */

struct zip_names {
    struct zip_listing *list;
    bool turns_slashes; /* names have backslashes for slashes */
    const char *above;  /* path of the folder that paths in the archive are below, and '/' */
    bool has_top_files; /* a file is in that folder itself */
    struct text path;   /* above, and the path of the member that is looked at */
};

/* ---- where files are ---- */

/* A version has the offset, 46 bits, and the length of the name of the local header; the CRC-32 of
 * that name, and that of the content. `more` has the packed bytes, 46 bits; the room, 16; and
 * whether they are deflated, 1. */
static int zip_add_file(struct members *files, uint32_t folder, const char *name,
                        const struct zip_member *m)
{
    const uint64_t version[2] = {m->header << 16 | m->local_len,
                                 (uint64_t)m->local_crc << 32 | m->crc};
    uint64_t more = m->packed_size << 17 | (uint64_t)m->room << 1 | (m->method == ZIP_DEFLATED);
    int r = members_add(files, folder, name, m->size, version);

    return r == 0 ? members_set_more(files, files->n - 1, more, NULL) : r;
}

/* ---- names ---- */

/* What bytes 128 to 255 are in code page 437. */
static const char code_page_437[128][4] = {
    "Ç", "ü", "é", "â", "ä", "à", "å", "ç", "ê", "ë", "è", "ï", "î", "ì", "Ä", "Å",
    "É", "æ", "Æ", "ô", "ö", "ò", "û", "ù", "ÿ", "Ö", "Ü", "¢", "£", "¥", "₧", "ƒ",
    "á", "í", "ó", "ú", "ñ", "Ñ", "ª", "º", "¿", "⌐", "¬", "½", "¼", "¡", "«", "»",
    "░", "▒", "▓", "│", "┤", "╡", "╢", "╖", "╕", "╣", "║", "╗", "╝", "╜", "╛", "┐",
    "└", "┴", "┬", "├", "─", "┼", "╞", "╟", "╚", "╔", "╩", "╦", "╠", "═", "╬", "╧",
    "╨", "╤", "╥", "╙", "╘", "╒", "╓", "╫", "╪", "┘", "┌", "█", "▄", "▌", "▐", "▀",
    "α", "ß", "Γ", "π", "Σ", "σ", "µ", "τ", "Φ", "Θ", "Ω", "δ", "∞", "φ", "ε", "∩",
    "≡", "±", "≥", "≤", "⌠", "⌡", "÷", "≈", "°", "∙", "·", "√", "ⁿ", "²", "■", "\u00a0"};

static void zip_add_437(struct text *t, const char *bytes, size_t len)
{
    for (; len; len--, bytes++) {
        bool is_ascii = !(*bytes & 0x80);
        const char *c = is_ascii ? bytes : code_page_437[*bytes & 0x7f];

        text_add_bytes(t, c, is_ascii ? 1 : strlen(c));
    }
}

static void zip_decode_name(const struct zip_member *m, struct text *t)
{
    size_t len = 0;
    const uint8_t *unicode = m->flags & FLAG_UTF8 ? NULL : zip_extra(m, FIELD_UNICODE, &len);

    /* The field has a version and the CRC-32 of the name that it replaces. */
    if (unicode && len > 5 && unicode[0] == 1 &&
        load_le32(unicode + 1) == libdeflate_crc32(0, m->name, m->name_len))
        text_add_bytes(t, (const char *)unicode + 5, len - 5);
    else if (m->flags & FLAG_UTF8 || text_is_utf8(m->name, m->name_len))
        text_add_bytes(t, m->name, m->name_len);
    else
        zip_add_437(t, m->name, m->name_len);
}

/* Clean `./` and `//` in place: path has len bytes and a NUL. Returns why it is no path of a file
 * below a folder, or NULL. */
static const char *zip_clean_path(char *path, size_t len)
{
    size_t to = 0;

    if (strlen(path) != len)
        return "its name has a NUL";
    if (len >= PATH_MAX / 2)
        return "its path is too long";
    if (!len || *path == '/' || (path[1] == ':' && (path[2] == '/' || path[2] == '\\')))
        return !len ? "it has no name" : "its name is an absolute path";
    if (strchr(path, '\\'))
        return "its name has a backslash";
    for (size_t at = 0; at < len;) {
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
    return NULL;
}

/* ---- members ---- */

/* Are all slashes backslashes, as old .NET wrote them? */
static bool zip_turns_slashes(const struct zip *zip)
{
    for (size_t i = 0; i < zip->n; i++) {
        struct zip_member m = zip_member(zip, i);

        if (m.maker != MAKER_DOS || memchr(m.name, '/', m.name_len))
            return false;
    }
    return true;
}

/* Is the file one that programs leave, or hidden? */
static bool zip_is_housekeeping(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return !strncmp(path, "__MACOSX/", 9) || *name == '.' || !strcmp(name, "Thumbs.db") ||
           !strcmp(name, "desktop.ini");
}

/* Set l->path to that of a member. *ret_why: why it is no file or folder of the listing; "": that
 * is not worth a note; NULL: it is one. 0 or -ENOMEM. */
static int zip_find_path(struct zip_names *l, const struct zip_member *m, const char **ret_why)
{
    struct text *t = &l->path;
    size_t start;
    char *path;

    t->len = 0;
    text_add_bytes(t, l->above, strlen(l->above));
    start = t->len;
    zip_decode_name(m, t);
    text_add_bytes(t, "", 1);
    if (t->failed)
        return -ENOMEM;
    path = t->data + start;
    for (char *c = path; l->turns_slashes && (c = strchr(c, '\\'));)
        *c = '/';
    *ret_why = zip_clean_path(path, t->len - start - 1);
    if (!*ret_why && (!*path || zip_is_housekeeping(path)))
        *ret_why = "";
    else if (!*ret_why && m->mode & S_IFMT && !S_ISREG(m->mode) && !S_ISDIR(m->mode))
        *ret_why = "it is a link or a device";
    else if (!*ret_why)
        *ret_why = zip_foreign_method(m);
    return 0;
}

/* Add a member, or note why it is ignored. */
static int zip_add_member(struct zip_names *l, const struct zip_member *m)
{
    struct zip_listing *list = l->list;
    char *path, *slash, *name;
    uint32_t folder;
    const char *why;
    int r = zip_find_path(l, m, &why);

    if (r < 0)
        return r;
    path = l->path.data;
    if (why) {
        list->n_aside += *why != '\0';
        if (*why)
            diag_set(&list->aside, -EINVAL, "%.100s: %s%s", path + strlen(l->above),
                     why == zip_foreign_method(m) ? "is packed by " : "", why);
        return 0;
    }
    slash = strrchr(path, '/');
    name = slash ? slash + 1 : path;
    r = members_add_way(&list->files, path, slash ? (size_t)(slash - path) : 0, &folder);
    if (r < 0 || !*name)
        return r;
    l->has_top_files |= name == path + strlen(l->above);
    return zip_add_file(&list->files, folder, name, m);
}

/* If all are in the folder stem of top, which is called like it, that is top. */
static void zip_join_stem(struct zip_names *l, const char *top, const char *stem)
{
    struct members *m = &l->list->files;
    size_t len = strlen(top), more = strlen(stem) + 1;
    bool joins = *stem && !l->has_top_files;

    for (uint32_t f = 0; f < m->n_folders && joins; f++) {
        const char *path = members_folder(m, f);

        joins =
            !members_is_below(path, top) || !path[len] || members_is_below(path + len + 1, stem);
    }
    for (uint32_t f = 0; f < m->n_folders && joins; f++) {
        char *path = m->names + m->folder[f];

        if (members_is_below(path, top) && path[len])
            memmove(path + len, path + len + more, strlen(path + len + more) + 1);
    }
}

/* The same name twice, or a file that is also a folder. */
static int zip_check_names(const struct blob *blob, const struct members *m, struct diag *d)
{
    for (size_t i = 1; i < m->n; i++)
        if (m->member[i].folder == m->member[i - 1].folder &&
            !strcmp(members_name(m, i), members_name(m, i - 1)))
            return blob_bad(blob, d, "expected members of different names, got two %s/%s",
                            members_folder_of(m, i), members_name(m, i));
    for (uint32_t f = 0; f < m->n_folders; f++) {
        const char *path = members_folder(m, f), *slash = strrchr(path, '/');

        if (slash && members_lookup(m, path, (size_t)(slash - path), slash + 1) < m->n)
            return blob_bad(blob, d, "expected %s as a file or as a folder, got both", path);
    }
    return 0;
}

int zip_list(const struct blob *blob, const char *top, const char *stem, struct zip_listing *ret,
             struct diag *d)
{
    AUTO_ZIP struct zip zip = {0};
    AUTO_FREE char *above = NULL;
    struct zip_names l = {.list = ret};
    uint32_t folder;
    int r = blob->size > ZIP_BYTES_MAX
                ? blob_bad(blob, d, "expected at most 64 TiB, got %llu bytes",
                           (unsigned long long)blob->size)
                : zip_read(blob, true, &zip, d);

    if (r == 0)
        r = text_print(&above, "%s%s", top, *top ? "/" : "");
    if (r == 0)
        r = members_add_way(&ret->files, top, strlen(top), &folder);
    l.above = above;
    l.turns_slashes = zip_turns_slashes(&zip);
    for (size_t i = 0; i < zip.n && r == 0; i++) {
        const struct zip_member m = zip_member(&zip, i);

        r = zip_add_member(&l, &m);
    }
    text_release(&l.path);
    if (r < 0)
        return r;
    zip_join_stem(&l, top, stem);
    r = members_sort(&ret->files);
    if (r == 0)
        r = zip_check_names(blob, &ret->files, d);
    return r == 0 ? blob_verify(blob, d) : r;
}
