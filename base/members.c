#include "base/members.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/search.h"
#include "base/text.h"

#define BYTES_MOST (UINT64_MAX >> 1)
#define RECENT     4096 /* folders that are remembered while they are added */

size_t members_find(const struct members *m, uint64_t off)
{
    return m->n ? search_last_up_to(&m->member->place, sizeof(*m->member), m->n, off) : 0;
}

int members_path(const struct members *m, size_t i, char *ret, size_t capacity)
{
    const char *folder = members_folder_of(m, i);
    int n = snprintf(ret, capacity, "%s%s%s", folder, *folder ? "/" : "", members_name(m, i));

    return n >= 0 && (size_t)n < capacity ? 0 : -ENAMETOOLONG;
}

void members_locate(const struct members *m, uint64_t off, uint64_t len, struct text *t)
{
    size_t i = members_find(m, off);
    const char *folder = members_folder_of(m, i);

    text_add(t, "%s%s%s:%llu+%llu", folder, *folder ? "/" : "", members_name(m, i),
             (unsigned long long)(off - m->member[i].place), (unsigned long long)len);
}

/* Add a text to names[]. */
static int add_name(struct members *m, const char *name, uint32_t *ret)
{
    size_t len = strlen(name) + 1;

    if (m->names_len + len > UINT32_MAX)
        return -E2BIG;
    if (m->names_len + len > m->names_capacity) {
        size_t capacity = 2 * m->names_capacity + len + 256;
        char *grown = realloc(m->names, capacity);

        if (!grown)
            return -ENOMEM;
        m->names = grown;
        m->names_capacity = capacity;
    }
    memcpy(m->names + m->names_len, name, len);
    *ret = (uint32_t)m->names_len;
    m->names_len += len;
    return 0;
}

int members_add_folder(struct members *m, const char *path, uint32_t *ret)
{
    uint32_t at;
    int r;

    if (array_capacity(&m->folder, m->n_folders, sizeof(*m->folder)) < 0)
        return -ENOMEM;
    r = add_name(m, path, &at);
    if (r < 0)
        return r;
    m->folder[m->n_folders] = at;
    *ret = m->n_folders++;
    return 0;
}

/* Where a folder with that path is remembered, if it is one of those that were added lately. NULL:
 * no memory. */
static uint32_t *recent_slot(struct members *m, const char *path, size_t len)
{
    uint32_t hash = 0;

    if (!m->recent)
        m->recent = calloc(RECENT, sizeof(*m->recent));
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)path[i]) * 0x9e3779b1u;
    return m->recent ? &m->recent[(hash ^ hash >> 16) % RECENT] : NULL;
}

/* Is it a folder with that path? */
static bool recent_is(const struct members *m, uint32_t slot, const char *path, size_t len)
{
    const char *folder = slot ? members_folder(m, slot - 1) : NULL;

    return folder && !strncmp(folder, path, len) && !folder[len];
}

int members_add_way(struct members *m, const char *path, size_t len, uint32_t *ret)
{
    uint32_t *slot = recent_slot(m, path, len);
    size_t end = slot && recent_is(m, *slot, path, len) ? len : 0;

    if (!slot)
        return -ENOMEM;
    for (;;) { /* "", each folder on the way, the folder itself */
        slot = recent_slot(m, path, end);
        if (!recent_is(m, *slot, path, end)) {
            AUTO_FREE char *way = strndup(path, end);
            int r = way ? members_add_folder(m, way, ret) : -ENOMEM;

            if (r < 0)
                return r;
            *slot = *ret + 1;
        }
        *ret = *slot - 1;
        if (end == len)
            return 0;
        end += end > 0;
        end += strcspn(path + end, "/");
    }
}

int members_add(struct members *m, uint32_t folder, const char *name, uint64_t size,
                const uint64_t version[static 2])
{
    uint64_t end;
    uint32_t at;
    int r;

    if ((!m->n && array_capacity(&m->member, 0, sizeof(*m->member)) < 0) ||
        array_capacity(&m->member, m->n + 1, sizeof(*m->member)) < 0)
        return -ENOMEM;
    if (!m->n)
        m->member[0].place = 0;
    if (m->n >= UINT32_MAX - 1 || !checked_add(m->member[m->n].place, size, &end) ||
        end > BYTES_MOST)
        return -E2BIG;
    r = add_name(m, name, &at);
    if (r < 0)
        return r;
    m->member[m->n].version[0] = version[0];
    m->member[m->n].version[1] = version[1];
    m->member[m->n].more = 0;
    m->member[m->n].folder = folder;
    m->member[m->n].name = at;
    m->n++;
    m->member[m->n] = (struct member){.place = end};
    return 0;
}

int members_set_more(struct members *m, size_t i, uint64_t more, const char *text)
{
    uint32_t at = 0;
    int r = text ? add_name(m, text, &at) : 0;

    if (r == 0)
        m->member[i].more =
            text ? (more & ~(uint64_t)UINT32_MAX) | MEMBER_TEXT | at : more & ~MEMBER_TEXT;
    return r;
}

int members_compact(struct members *m, const uint8_t *keep, const uint64_t *sizes)
{
    uint64_t end = 0, at = 0;
    size_t kept = 0;

    for (size_t i = 0; i < m->n; i++)
        if (keep[i] &&
            (!checked_add(end, sizes ? sizes[i] : members_size(m, i), &end) || end > BYTES_MOST))
            return -E2BIG;
    for (size_t i = 0; i < m->n; i++) {
        uint64_t size = sizes ? sizes[i] : members_size(m, i);

        if (!keep[i])
            continue;
        m->member[kept] = m->member[i]; /* the place of i + 1 is still the old one */
        m->member[kept++].place = at;
        at += size;
    }
    if (m->n)
        m->member[kept] = (struct member){.place = at};
    m->n = kept;
    return 0;
}

/* ---- sorting ---- */

static int path_byte(char c)
{
    return c == '/' ? 1 : c ? (unsigned char)c + 1 : 0;
}

int members_compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return path_byte(*a) - path_byte(*b);
}

static int members_compare_folders(const void *a, const void *b, void *names)
{
    return members_compare_paths((char *)names + *(const uint32_t *)a,
                                 (char *)names + *(const uint32_t *)b);
}

static int members_compare_members(const void *a, const void *b, void *names)
{
    const struct member *x = a, *y = b;

    if (x->folder != y->folder)
        return x->folder < y->folder ? -1 : 1;
    return strcmp((char *)names + x->name, (char *)names + y->name);
}

static bool members_is_sorted(const struct members *m)
{
    for (size_t i = 1; i < m->n; i++)
        if (members_compare_members(&m->member[i - 1], &m->member[i], m->names) > 0)
            return false;
    return true;
}

/* Number the folders in the order of their paths; those of one path become one. */
static int sort_folders(struct members *m)
{
    struct renumber {
        uint32_t name, old;
    };
    AUTO_FREE struct renumber *all = calloc(m->n_folders + 1, sizeof(*all));
    AUTO_FREE uint32_t *by_place = calloc(m->n_folders + 1, sizeof(*by_place));
    uint32_t n = 0;

    if (!all || !by_place)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_folders; i++)
        all[i] = (struct renumber){m->folder[i], i};
    qsort_r(all, m->n_folders, sizeof(*all), members_compare_folders, m->names);
    for (uint32_t i = 0; i < m->n_folders; i++) {
        if (!n || strcmp(m->names + all[i].name, members_folder(m, n - 1)) != 0)
            m->folder[n++] = all[i].name;
        by_place[all[i].old] = n - 1;
    }
    m->n_folders = n;
    free(m->recent); /* their numbers are others now */
    m->recent = NULL;
    for (size_t i = 0; i < m->n; i++)
        m->member[i].folder = by_place[m->member[i].folder];
    return 0;
}

int members_sort(struct members *m)
{
    uint64_t at = 0;
    int r = sort_folders(m);

    if (r < 0 || !m->n || members_is_sorted(m))
        return r;
    for (size_t i = 0; i < m->n; i++) /* sizes, while they are out of order */
        m->member[i].place = members_size(m, i);
    qsort_r(m->member, m->n, sizeof(*m->member), members_compare_members, m->names);
    for (size_t i = 0; i < m->n; i++) {
        uint64_t size = m->member[i].place;

        m->member[i].place = at;
        at += size;
    }
    return 0;
}

/* ---- parts of a table ---- */

bool members_is_below(const char *path, const char *root)
{
    size_t len = strlen(root);

    return !len || (!strncmp(path, root, len) && (!path[len] || path[len] == '/'));
}

int members_compare_to(const char *a, const char *b, size_t len)
{
    while (len && *a && *a == *b) {
        a++;
        b++;
        len--;
    }
    return path_byte(*a) - (len ? path_byte(*b) : 0);
}

/* The first folder whose path is not before root, of sorted ones. */
static uint32_t members_find_folder(const struct members *m, const char *root, size_t len)
{
    return (uint32_t)SEARCH(m->n_folders, i,
                            members_compare_to(members_folder(m, (uint32_t)i), root, len) < 0);
}

uint32_t members_folder_number(const struct members *m, const char *path, size_t len)
{
    uint32_t number = members_find_folder(m, path, len);

    return number < m->n_folders && !members_compare_to(members_folder(m, number), path, len)
               ? number
               : m->n_folders;
}

size_t members_lookup(const struct members *m, const char *folder, size_t folder_len,
                      const char *name)
{
    uint32_t number = members_folder_number(m, folder, folder_len);
    const struct member *member = m->member;
    size_t found;

    if (number == m->n_folders)
        return m->n;
    found = SEARCH(m->n, i,
                   member[i].folder < number ||
                       (member[i].folder == number && strcmp(members_name(m, i), name) < 0));
    return found < m->n && member[found].folder == number && !strcmp(members_name(m, found), name)
               ? found
               : m->n;
}

int members_pick(const struct members *m, const char *root, const uint32_t *file, size_t n,
                 struct members *ret)
{
    AUTO_MEMBERS struct members picked = {0};
    uint32_t first = members_find_folder(m, root, strlen(root)), number;
    int r = 0;

    for (uint32_t f = first;
         r == 0 && f < m->n_folders && members_is_below(members_folder(m, f), root); f++)
        r = members_add_folder(&picked, members_folder(m, f), &number);
    for (size_t i = 0; i < n && r == 0; i++) {
        number = m->member[file[i]].folder;
        if (number < first || number - first >= picked.n_folders)
            return -EINVAL;
        r = members_add(&picked, number - first, members_name(m, file[i]), members_size(m, file[i]),
                        m->member[file[i]].version);
        if (r == 0)
            r = members_set_more(&picked, i, m->member[file[i]].more, members_text(m, file[i]));
    }
    if (r < 0)
        return r;
    *ret = picked;
    picked = (struct members){0};
    return 0;
}

/* ---- stored ---- */

void members_bytes(const struct members *m, struct members_head *head,
                   struct iovec ret[static MEMBERS_PIECES])
{
    *head = (struct members_head){m->n, m->n_folders, m->names_len};
    ret[0] = (struct iovec){head, sizeof(*head)};
    ret[1] = (struct iovec){m->member, m->n ? (m->n + 1) * sizeof(*m->member) : 0};
    ret[2] = (struct iovec){m->folder, m->n_folders * sizeof(*m->folder)};
    ret[3] = (struct iovec){m->names, m->names_len};
}

static bool members_is_sound(const struct members *m)
{
    if (m->names_len && m->names[m->names_len - 1])
        return false;
    for (uint32_t i = 0; i < m->n_folders; i++)
        if (m->folder[i] >= m->names_len)
            return false;
    if (m->n && (m->member[0].place || m->member[m->n].place > BYTES_MOST))
        return false;
    for (size_t i = 0; i < m->n; i++)
        if (m->member[i].name >= m->names_len || m->member[i].folder >= m->n_folders ||
            m->member[i].place > m->member[i + 1].place ||
            (m->member[i].more & MEMBER_TEXT && (uint32_t)m->member[i].more >= m->names_len))
            return false;
    return true;
}

int members_from_bytes(const uint8_t *bytes, size_t size, struct members *ret)
{
    struct members m = {.borrowed = true};
    struct members_head head;
    uint64_t members, folders;

    if (size < sizeof(head))
        return -EBADMSG;
    memcpy(&head, bytes, sizeof(head));
    bytes += sizeof(head);
    size -= sizeof(head);
    if (head.n >= UINT32_MAX || head.n_folders >= UINT32_MAX || head.names_len > UINT32_MAX)
        return -EBADMSG;
    members = head.n ? (head.n + 1) * sizeof(*m.member) : 0;
    folders = head.n_folders * sizeof(*m.folder);
    if (members + folders + head.names_len != size)
        return -EBADMSG;
    m.n = head.n;
    m.n_folders = (uint32_t)head.n_folders;
    m.names_len = m.names_capacity = head.names_len;
    m.member = (struct member *)(uintptr_t)bytes;
    m.folder = (uint32_t *)(uintptr_t)(bytes + members);
    m.names = (char *)(uintptr_t)(bytes + members + folders);
    if (!members_is_sound(&m))
        return -EBADMSG;
    *ret = m;
    return 0;
}

void members_release(struct members *m)
{
    if (!m->borrowed) {
        free(m->member);
        free(m->folder);
        free(m->names);
        free(m->recent);
    }
    *m = (struct members){0};
}
