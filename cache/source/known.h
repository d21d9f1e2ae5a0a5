/* The files of SOURCE, packed in a table (base/members.h), because there may be a million: names,
 * sizes and versions. For a remote it is the snapshot that a mount shows; for a local folder it is
 * a listing (cache/source/listing.h), which lives as long as datasets are opened.
 *
 * One thread adds files while it opens the source, and sorts them. Then formats take collections,
 * and those files leave this list: they are in the tables of their joined blobs, which are added
 * here (known_taken()), so that they are found all the same. After that it is constant. Each name
 * from a server was checked by name_wrong(). So no such name leads out of SOURCE, neither in the
 * tree of a mount nor in a URL. */
#ifndef EPOCHFS_CACHE_SOURCE_KNOWN_H
#define EPOCHFS_CACHE_SOURCE_KNOWN_H

#include <stdbool.h>

#include "base/index_store.h"
#include "base/lock.h"
#include "base/members.h"
#include "base/text.h"
#include "cache/source/entries.h"

struct source;

/* A page of a remote's listing, which shows whether the files that it lists are as they were. It is
 * known by a text: of S3 the key behind which it begins, of a web server its folder. */
struct known_page {
    uint64_t hash; /* of its bytes */
    uint64_t text; /* where its text is in known.texts */
};

/* What holds for the files of a local folder. */
struct listing_folder {
    uint64_t state[3]; /* inode, time of change, time of change of the inode */
    int64_t latest_s;  /* time of the latest file */
    uint32_t latest_ns;
    uint32_t mode; /* permission bits that all files have */
    uint32_t uid, gid;
};

/* The members of a joined blob, which lives as long as the list is asked. */
struct known_part {
    const struct members *members;
    const uint8_t *sha256; /* as below */
    uint32_t *by_path; /* [members->n] their numbers in the order of paths; NULL: not made yet */
};

struct known {
    struct members files; /* a folder, its files, then the folders below, by name, once it is
                             sorted. Each folder on the way to a file is in it */
    struct listing_folder *folder; /* [files.n_folders] of this machine; NULL: of a remote */
    struct known_page *page;       /* [n_pages] that the files were read from */
    size_t n_pages;
    struct text texts;         /* of pages, each ended by NUL */
    uint8_t *sha256;           /* [files.n] of 32 bytes each, zeros: unknown; NULL: all are */
    struct source_list failed; /* what cannot be read, with its reason */
    char *only_url;            /* of the one file, if SOURCE is one; NULL: below source->base */
    struct lock *lock;         /* of the parts; NULL: there are none */
    struct known_part *part;   /* [n_parts] */
    struct kept_index bytes;   /* if it was loaded: files, folder and pages are in these */
    size_t n_parts;
};

/* Add a file. path: relative to SOURCE, a valid name. version NULL: not known yet. 0 or -errno. */
int known_add(struct known *known, const char *path, const struct remote_version *version);

/* Add a folder, which may have no file: as a class of a folder of files it has its number all the
 * same. path: of len bytes, relative to SOURCE, without '/' at the end. 0 or -errno. */
int known_add_folder(struct known *known, const char *path, size_t len);

/* Add a file that cannot be read. failure: its -errno. 0 or -ENOMEM. */
int known_add_failed(struct known *known, const char *path, const char *error, int failure);

/* Add a page. 0 or -ENOMEM. */
int known_add_page(struct known *known, const char *text, uint64_t hash);

static inline const char *known_page_text(const struct known *known, size_t i)
{
    return known->texts.data + known->page[i].text;
}

/* Sort the pages by their texts; of each text one remains. */
void known_sort_pages(struct known *known);

/* Find a page by its text among sorted ones; n_pages: there is none. */
size_t known_find_page(const struct known *known, const char *text);

/* Take what is known from another list, which has nothing then. */
void known_replace(struct known *known, struct known *by);

/* Sort, and remove what is there twice. No file may be added afterwards. 0 or -ENOMEM. */
int known_sort(struct known *known);

/* Keep only the files whose keep[i] is not 0, and sort those that failed: see members_compact(). */
int known_keep(struct known *known, const uint8_t *keep, const uint64_t *sizes);

/* The number of a file in the sorted list; files.n: it is not there. */
size_t known_index(const struct known *known, const char *path);

/* Set the SHA-256 of a file in the sorted list if it has none. 0 or -ENOMEM. */
int known_set_sha256(struct known *known, size_t i, const uint8_t *sha256);

/* The URL of file i of a table of source's files; the caller frees it. 0 or -errno. */
int known_url(const struct source *source, const struct members *m, size_t i, char **ret);

/* Make an entry of file i of a list of source, which the caller releases; its version may be NULL.
 * 0 or -ENOMEM. */
int known_entry(const struct source *source, const struct known *known, size_t i,
                struct source_entry *ret);

/* Find the file at path, also in the parts, and make an entry of it. 0; -ENOENT; -ENOMEM. Any
 * thread once the source is open. */
int known_find(const struct source *source, const char *path, struct source_entry *ret);

/* Entries of all files, and of those that failed, sorted; taken [files.n + failed.n]: only of those
 * whose taken[i] is 0; NULL: of all. ret: {0}. 0 or -ENOMEM. */
int known_list(const struct source *source, const struct known *known, const uint8_t *taken,
               struct source_list *ret);

/* A joined blob has these files, and lives as long as the list is asked for one. 0 or -ENOMEM. */
int known_taken(struct known *known, const struct members *members, const uint8_t *sha256);

/* Remove those files, whose taken[i] is not 0. 0 or -ENOMEM. */
int known_drop(struct known *known, const uint8_t *taken);

void known_release(struct known *known); /* of one that starts as {0} */
#define AUTO_KNOWN AUTO(known_release)

#endif
