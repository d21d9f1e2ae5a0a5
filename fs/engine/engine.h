/* What answers readers of a source: its tree, the files that are being read, the plans that are
 * active and what they need, the status. The daemon answers the kernel from it, the library its
 * caller.
 *
 * Calls go down from here to fs/tree, fs/drive and fs/status, and what is reported comes back by
 * struct engine_events. Any thread, where nothing else is said. */
#ifndef EPOCHFS_FS_ENGINE_ENGINE_H
#define EPOCHFS_FS_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "cache/stage/stage.h"
#include "fs/drive/active_plans.h"
#include "fs/drive/needs.h"
#include "fs/engine/preparer.h"
#include "fs/options/options.h"
#include "fs/status/status.h"
#include "fs/tree/view.h"

struct clock;

/* What is served. All of it must outlive the engine. */
struct engine_setup {
    const struct catalog *catalog;
    const struct options *options;
    const char *source;     /* as texts show it */
    const char *mountpoint; /* absolute, for texts and the paths in files; "": there is none */
    struct stage *stage;    /* of the source; NULL: it is read in place */
    const struct clock *clock;
};

/* What the engine reports, in any thread. */
struct engine_events {
    /* Lines for people. */
    void (*note)(void *ctx, enum log_level level, const char *text);
    /* The listing of the folder with this inode number has grown. */
    void (*grown)(void *ctx, uint64_t ino);
    /* As in struct preparer_events. */
    void (*answer)(void *ctx, const struct catalog_item *item, int error,
                   const struct diag *reason);
    void *ctx;
};

struct engine {
    /* Set by engine_init(), then constant: */
    struct engine_setup setup;
    const struct engine_events *events;
    struct preparer_events preparer_events;
    struct tree *tree;
    struct open_files *open_files;
    struct active_plans *active_plans;
    struct needs *needs; /* for the stage, or for reading ahead on local disks; NULL: none */

    struct preparer preparer; /* the caller starts and stops it */
    struct status status;
    _Atomic int64_t changed; /* when a listing last grew, ns since 1970 */
};

/* Starts no thread. 0, or -errno with the reason in d; release it in either case. e is {0} and must
 * not move; events must outlive it. */
int engine_init(struct engine *e, const struct engine_setup *setup,
                const struct engine_events *events, struct diag *d);

/* The stage asks the engine no more; it may still be fetching until then. No thread may use e. */
void engine_release(struct engine *e); /* takes one that is {0} */

/* A lookup has made the listing of that folder grow; 0: of none. */
void engine_grown(struct engine *e, uint64_t ino);

/* Say what may be a mistake in a plan that was opened. */
void engine_note_plan(struct engine *e, const struct plan_entry *plan);

/* A read of a file, up to byte end, begins: where is the reader of its plan? The stage learns what
 * comes next. False: nothing new. Call before the read waits for anything. */
bool engine_read_begins(struct engine *e, const struct node *node, uint64_t end);

/* It has given n of the bytes asked for. Once all of the file was read, its bytes may be dropped;
 * after the last file the epoch is over. */
void engine_read_ends(struct engine *e, const struct node *node, uint64_t off, size_t n,
                      size_t asked);

/* ---- fs/engine/reads.c ---- */

/* A read that may wait for bytes of a remote. */
struct engine_read {
    /* As in struct read_context: must it give up? NULL: never. */
    bool (*cancelled)(void *ctx);
    void *ctx;
    bool ahead; /* no reader waits for it yet */
    /* Read, or note in rc what is missing; called again until it is not -EAGAIN. */
    int (*pass)(struct read_context *rc, void *what, struct diag *d);
    void *what;
};

/* 0, or the -errno of the last pass, or of the bytes that cannot be fetched; with the reason in d.
 */
int engine_read_waiting(struct engine *e, const struct engine_read *read, struct diag *d);

/* The node of a path below the root, such as "train/dataset.json"; links to plans are followed.
 * 0; -EAGAIN: *ret is the folder whose item must be ready first; or an error of tree_lookup(), with
 * the reason in d. */
int engine_find(struct engine *e, const char *path, struct node *ret, struct diag *d);

/* ---- fs/engine/attributes.c ---- */

/* S_IFDIR, S_IFREG or S_IFLNK. */
mode_t engine_type(const struct node *node);

/* What stat() shows of a node. 0, or an error of view_size() with the reason in d. */
int engine_stat(struct read_context *rc, struct engine *e, const struct node *node,
                struct stat *ret, struct diag *d);

/* ---- fs/engine/refused.c ---- */

/* Note in the status that a file of a batch cannot be made, and why. */
void engine_refused_file(struct engine *e, const struct node *node, const struct diag *reason);

/* Is an entry omitted from its listing? 1: yes, and status names it; 0: no; or -EINTR. may_end: the
 * listing may be shown as it is, so the deadline also counts between entries. */
int engine_refused_in_list(struct read_context *rc, struct engine *e, const struct node *node,
                           bool may_end);

#endif
