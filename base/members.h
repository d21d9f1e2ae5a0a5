/* A table of files, packed: 40 bytes a file besides its name. It lists the files of SOURCE, or the
 * members of a joined blob (cache/source/joined.h), whose bytes follow one another in this order.
 *
 * A file has a folder and a name. Folders are in the table whether they have files or not. The
 * table says nothing of how a file is read. One thread makes it; then it is constant. */
#ifndef EPOCHFS_BASE_MEMBERS_H
#define EPOCHFS_BASE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/scope.h"

struct text;

struct member {
    uint64_t place;      /* of its first byte among the bytes of all */
    uint64_t version[2]; /* tells versions of one file apart; only the source knows how */
    uint64_t more;       /* what else the source has to know of the version; 0: nothing */
    uint32_t folder;     /* its number */
    uint32_t name;       /* where its name is in names[] */
};

/* In `more`: its low 32 bits are where a text that belongs to the version is in names[]. */
#define MEMBER_TEXT (UINT64_C(1) << 63)

struct members {
    size_t n;
    struct member *member; /* [n + 1] member n has the end as its place; NULL: n is 0 */
    uint32_t n_folders;
    uint32_t *folder; /* [n_folders] where its path is in names[]: relative to SOURCE, "" for SOURCE
                         itself; no '/' at either end */
    char *names;      /* [names_len] each ended by NUL */
    size_t names_len;
    size_t names_capacity;
    uint32_t *recent; /* of members_add_way(): folders + 1; NULL: none */
    bool borrowed;    /* the arrays belong to someone else */
};

static inline const char *members_name(const struct members *m, size_t i)
{
    return m->names + m->member[i].name;
}

static inline const char *members_folder(const struct members *m, uint32_t folder)
{
    return m->names + m->folder[folder];
}

static inline const char *members_folder_of(const struct members *m, size_t i)
{
    return members_folder(m, m->member[i].folder);
}

static inline uint64_t members_size(const struct members *m, size_t i)
{
    return m->member[i + 1].place - m->member[i].place;
}

/* The text of the version; NULL: it has none. */
static inline const char *members_text(const struct members *m, size_t i)
{
    return m->member[i].more & MEMBER_TEXT ? m->names + (uint32_t)m->member[i].more : NULL;
}

/* The bytes of all. */
static inline uint64_t members_end(const struct members *m)
{
    return m->n ? m->member[m->n].place : 0;
}

/* The member that contains byte off, which is below members_end(). */
size_t members_find(const struct members *m, uint64_t off);

/* Add "<path>:<offset>+<len>" to t: the member that has bytes [off, off + len), and where. */
void members_locate(const struct members *m, uint64_t off, uint64_t len, struct text *t);

/* Write the path of a member relative to SOURCE, NUL-terminated. 0 or -ENAMETOOLONG. */
int members_path(const struct members *m, size_t i, char *ret, size_t capacity);

/* Add a folder; *ret: its number. 0; -ENOMEM; or -E2BIG: more than 4 GiB of names. */
int members_add_folder(struct members *m, const char *path, uint32_t *ret);

/* Add the folder whose path is the first len bytes of path, and those on the way to it that are not
 * on the way to the last one, unless it is the last one. *ret: its number. The same errors. */
int members_add_way(struct members *m, const char *path, size_t len, uint32_t *ret);

/* Add a file at the end. The same errors; also -E2BIG when the bytes of all exceed 2^63. */
int members_add(struct members *m, uint32_t folder, const char *name, uint64_t size,
                const uint64_t version[static 2]);

/* Set `more` of file i, and the text of its version, or NULL: see struct member. 0, -ENOMEM,
 * -E2BIG.
 */
int members_set_more(struct members *m, size_t i, uint64_t more, const char *text);

/* Remove the files whose keep[i] is 0. sizes: new sizes of the others, by their old numbers; NULL:
 * as they are. 0, or -E2BIG: the bytes of all exceed 2^63, and the table is as it was. */
int members_compact(struct members *m, const uint8_t *keep, const uint64_t *sizes);

/* The folder of a sorted table that has that path, of len bytes; m->n_folders: there is none. */
uint32_t members_folder_number(const struct members *m, const char *path, size_t len);

/* Find a file in a sorted table: by the path of its folder, of folder_len bytes, and its name.
 * m->n: there is none. */
size_t members_lookup(const struct members *m, const char *folder, size_t folder_len,
                      const char *name);

/* Compare paths of folders so that a folder comes before those below it, and those below it before
 * all others: as strcmp() if '/' came before all other bytes. */
int members_compare_paths(const char *a, const char *b);

/* The same, where b has len bytes. */
int members_compare_to(const char *a, const char *b, size_t len);

/* Sort by the path of the folder, in that order, then by name; number the folders in that order,
 * those that were added several times once. 0 or -ENOMEM. */
int members_sort(struct members *m);

/* Make a table of the n files of m with these numbers, in this order, and of all folders of m at
 * `root` and below it: its cost does not depend on the other folders. m is sorted. 0; an error of
 * members_add(); or -EINVAL: a file is not below root. */
int members_pick(const struct members *m, const char *root, const uint32_t *file, size_t n,
                 struct members *ret);

/* Is path that of the folder root, or of a folder below? "" is above all. */
bool members_is_below(const char *path, const char *root);

/* The table as bytes for storing: pieces of m, and head, which both must outlive them. */
#define MEMBERS_PIECES 4
struct members_head {
    uint64_t n, n_folders, names_len;
};
void members_bytes(const struct members *m, struct members_head *head,
                   struct iovec ret[static MEMBERS_PIECES]);

/* Find a table in such bytes, which may be anything: they must outlive it, stay as they are, and
 * begin at a multiple of 8. Nothing may be added to it. 0 or -EBADMSG. */
int members_from_bytes(const uint8_t *bytes, size_t size, struct members *ret);

void members_release(struct members *m); /* of one that starts as {0} */
#define AUTO_MEMBERS AUTO(members_release)

#endif
