/* Which blocks of a file are cached: their states, claims, looks and drops, and their bytes.
 *
 * The state of a block as this process knows it. Another process may have put it on disk already.
 *
 * UNKNOWN   -> HERE, ABSENT  file_looked_at()      its checksum on disk is right, or not
 * ABSENT    -> HERE          file_looked_at()      another process has fetched it
 * UNKNOWN, ABSENT, ELSEWHERE -> COMING  run_make_locked(), take_along_locked()  a run of ours
 *                                                  fetches it
 * COMING    -> HERE          publish_blocks()      wakes waits
 * COMING    -> UNKNOWN       publish_blocks()      blocks were dropped meanwhile; wakes waits
 * COMING    -> ABSENT        publish_blocks()      it could not be written to disk; wakes waits
 * COMING    -> ABSENT        run_leave_blocks_locked()  the run has failed, or had no space
 * COMING    -> ELSEWHERE     file_leave_to_others_locked()  another process fetches it
 * ELSEWHERE -> HERE          file_looked_at()      the other process has fetched it
 * ELSEWHERE -> UNKNOWN       look_elsewhere()      the other process has let go of it
 * HERE, UNKNOWN -> COMING    begin_drop_locked()   it is being dropped: no run may fetch it now
 * COMING    -> ABSENT        end_drop_range()      it is dropped
 * COMING    -> UNKNOWN       end_drop_range()      it is not: another process claims it
 * HERE      -> ABSENT        lose_blocks()         it could not be read
 * HERE      -> UNKNOWN       drop_bad()            its checksum was wrong
 * HERE, ABSENT -> UNKNOWN    forget_blocks_locked()  another process drops blocks, or the file
 *                                                  closes
 */
#ifndef EPOCHFS_CACHE_STAGE_BLOCKS_H
#define EPOCHFS_CACHE_STAGE_BLOCKS_H

#include "cache/disk/staged_file.h"
#include "cache/stage/core.h"

enum block_state { BLOCK_UNKNOWN, BLOCK_ABSENT, BLOCK_ELSEWHERE, BLOCK_COMING, BLOCK_HERE };
#define BLOCK_STATE   0x0f
#define BLOCK_FLAGS   0xf0
#define BLOCK_FETCHED 0x10 /* by this process, at least once */
#define BLOCK_COUNTED 0x20 /* counted in staged_bytes */
#define BLOCK_PASSED  0x40 /* keep=once: dropped after its last need; only a reader brings it */
#define BLOCK_STALE   0x80 /* some of its bytes are stale; never on disk, only a reader brings it */

#define LOOK_AT_ONCE 64 /* records of blocks */

/* ---- blocks.c: states. Only its functions write them, with stage->lock held. ---- */

static inline uint8_t file_flags(const struct file *file, uint64_t block)
{
    return atomic_load_explicit(&file->state[block], memory_order_acquire);
}

static inline enum block_state file_state(const struct file *file, uint64_t block)
{
    return (enum block_state)(file_flags(file, block) & BLOCK_STATE);
}

/* Is it on disk, as far as is known? */
static inline bool file_is_on_disk(const struct file *file, uint64_t block)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);

    return (state & BLOCK_STATE) == BLOCK_HERE ||
           ((state & BLOCK_STATE) == BLOCK_UNKNOWN && state & BLOCK_COUNTED);
}

/* It was dropped after its last need: only a read or a new need of it fetches it again. */
static inline bool file_has_passed(const struct file *file, uint64_t block)
{
    return file_flags(file, block) & BLOCK_PASSED;
}

/* Is it fetched for readers only? It was dropped after its last need, or has stale bytes. */
static inline bool file_is_for_readers(const struct file *file, uint64_t block)
{
    return file_flags(file, block) & (BLOCK_PASSED | BLOCK_STALE);
}

/* Can a run fetch the block now? Those that another process fetches: only if that gives no sign
 * of life. */
bool file_may_fetch(const struct file *file, uint64_t block);

/* Can the background fetch it now? */
static inline bool file_is_free(const struct file *file, uint64_t block)
{
    return file_may_fetch(file, block) && !file_is_for_readers(file, block);
}

/* Set the state of a block, and the counters that follow from it. */
void file_set_locked(struct file *file, uint64_t block, enum block_state state);
void file_flag_locked(struct file *file, uint64_t block, uint8_t flag, bool on);

/* The state of blocks found good after file_drops() was drops: HERE; UNKNOWN if it has changed
 * since, because the drop may have included them. */
enum block_state file_here(const struct file *file, uint64_t drops);

/* ---- blocks.c: the staged file ---- */

int open_files_init(struct stage *stage);
int block_store_init(struct file *file); /* 0 or -ENOMEM */
void block_store_release(struct file *file);

/* Keep the staged file open until file_put(). 0 or -errno with the reason in d. No lock held. */
int file_take(struct file *file, struct diag *d);
void file_keep(struct file *file); /* again, of a file that is taken */
void file_put(struct file *file);

/* Close an unused file that is in memory because the disk was full, a while ago: the next
 * file_take() tries the disk again. */
void file_try_disk(struct file *file);

const struct staged *file_staged(const struct file *file); /* constant while it is taken */
int file_open_error_locked(const struct file *file);       /* of the last try to open it */

/* Drops of the staged file when the states were right. */
uint64_t file_drops(const struct file *file);

/* The same, for blocks that are written from now on. If the staged file was cut short, begins it
 * again and forgets its blocks' states first. No lock held. */
uint64_t file_drops_to_write(struct file *file);

/* Another process has dropped blocks since the count was drops, or the file was cut short: forget
 * its blocks' states. No lock held. */
void file_forget(struct file *file, uint64_t drops);

/* A drop of this process begins (change 1), or has ended (-1). Unless another process dropped
 * blocks, the other blocks' states are still valid. what: NULL: the drop begins, or has failed. */
void file_drops_locked(struct file *file, int change, const struct staged_dropped *what);

/* Count all blocks that are on disk. False: the file cannot be taken, or is empty. No lock held. */
bool file_count(struct file *file);
uint64_t file_counted(const struct file *file); /* their bytes, as far as is known */

/* Does the block on disk match its record? buf: space for one block. */
bool file_block_is_good(const struct file *file, uint64_t block, uint64_t record, uint8_t *buf);

/* Find out which of the blocks [first, end) are cached. Blocks known to be here or coming are
 * skipped, absent ones are checked again. The file must have been taken; no lock held. */
void look_at_blocks(struct file *file, uint64_t first, uint64_t end);

/* Note whether a block that was looked at is cached. drops: file_drops() before the look. No lock
 * held. */
void file_looked_at(struct file *file, uint64_t block, bool here, uint64_t drops);

/* The first of blocks [from, to) that is not on disk and that no run or process fetches; `to`:
 * there is none; not one that is for readers only. *ret_others: some before it are being fetched.
 * NULL: none is looked for. Counts the blocks that are on disk. The file must have been taken; no
 * lock held. */
uint64_t find_missing(struct file *file, uint64_t from, uint64_t to, bool *ret_others);

/* Other processes fetch the coming blocks [first, end). */
void file_leave_to_others_locked(struct file *file, uint64_t first, uint64_t end);

/* Look at the blocks that other processes fetch. Returns when to look again. */
int64_t look_at_others(struct stage *stage, int64_t now);

/* ---- content.c ---- */

/* How many blocks from first on are HERE, without a gap. */
uint64_t file_count_here(const struct file *file, uint64_t first, uint64_t end);

/* 0; -EAGAIN: bytes are missing; or -errno. *ret_overflow: some bytes came from overflow blocks.
 * The file must have been taken. */
int file_read(struct file *file, void *buf, size_t len, uint64_t off, bool *ret_overflow);

/* Compare a cached file with its SHA-256. 0; -EBADMSG: it differs, and its blocks are
 * dropped; -EAGAIN: a block is missing; or -errno. No lock held. */
int file_verify(struct file *file, struct diag *d);

/* Open the content of a file all of which is cached, compared, and locked against drops until the
 * last copy of the descriptor is closed. 0; -EAGAIN: not now; -EMFILE or -ENFILE. No lock held. May
 * read all of the file. */
int file_open_sealed(struct file *file, int *ret_fd);

/* Add a block to ranges of blocks: it becomes part of the last one if it follows it. Returns how
 * many ranges there are. */
size_t ranges_of_blocks_add(struct staged_range *ranges, size_t n, uint64_t block);

/* Drop n ranges of blocks. The file must have been taken; no lock held. 0, or the last -errno of a
 * range that could not be dropped (-EOPNOTSUPP; -EBUSY: readers read it without the stage). */
int file_drop_ranges(struct file *file, const struct staged_range *ranges, size_t n);
void file_drop_all(struct file *file);

/* Bytes [off, off + n) are stale: note that, and mark their blocks. 1; 0: that was known; or
 * -ENOMEM. No lock held. */
int file_add_stale(struct file *file, uint64_t off, uint64_t n, int error, const struct diag *why);

/* The error of the first of these bytes that is stale, -ESTALE or -EACCES; 0: none is. No lock
 * held. */
int file_stale_error(struct file *file, uint64_t off, uint64_t len);

/* How many bytes of the block are stale; why are the first ones of the file? NULL: none are. */
uint64_t file_stale_bytes_locked(struct file *file, uint64_t block);
const char *file_stale_why_locked(const struct file *file);
void file_free_stale(struct file *file);

#endif
