/* Files of a cache folder that no process uses make place for new ones, those that were not used
 * for longest first. */
#ifndef EPOCHFS_CACHE_DISK_EVICT_H
#define EPOCHFS_CACHE_DISK_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "cache/disk/inventory.h"

struct clock;

/* What may be removed of the files that no process uses. */
struct evict {
    bool (*may_go)(void *ctx, const struct inventory_file *file);
    void *ctx;
    struct quota *quota; /* gets what is freed; NULL: none */
};

/* Remove files until so many bytes of disk space are free. Returns how many are. */
uint64_t evict_files(const struct inventory *inventory, const struct evict *evict, uint64_t bytes);

/* Makes space when a quota is used up: removes staged and unpacked files, and parts whose maker has
 * died, that were last used before this process began. Outputs of commands stay, because mounts
 * that show them need not have them open. */
struct evictor {
    /* Set by evictor_init(): */
    const struct cache_folder *folder; /* not owned */
    const struct clock *clock;
    time_t began;
    /* Staged files that stay: gets their URL; any thread, no lock held; NULL: none. Set before the
     * first evictor_free_space(). */
    bool (*keeps)(void *ctx, const char *url);
    void *ctx;
    struct lock lock;
    /* Guarded by lock: */
    bool is_busy; /* a thread removes files */
    int64_t next; /* clock_monotonic() from which there may be some again */
};

void evictor_init(struct evictor *ret, const struct cache_folder *folder,
                  const struct clock *clock);
void evictor_release(struct evictor *evictor);

/* Free so many bytes, and with them what another call soon wants. false: nothing was freed; 30 s
 * pass before the files are looked at again. */
bool evictor_free_space(struct evictor *evictor, struct quota *quota, uint64_t bytes);

/* Bytes that could be freed. */
uint64_t evictor_could_free(struct evictor *evictor);

#endif
