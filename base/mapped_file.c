/* The handler of SIGBUS must not take locks, so it goes through an array of slots.
 *
 *     FREE -> TAKEN    mapped_file_open() takes a slot
 *     TAKEN -> MAPPED  its range is set
 *     MAPPED -> LOST   the handler has found a fault in it, before it maps zeros there
 *     any -> FREE      mapped_file_close(), before the range is unmapped: the kernel may give the
 *                      range to another file at once, and its slot is another one
 *
 * A thread that has read zeros has read them after LOST was set. A slot that is taken again while
 * the handler reads it is known by its turn. A fault is in a file that is being read, so the slot
 * that has the address stays as it is. */
#include "base/mapped_file.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"

enum slot_state { FREE, TAKEN, MAPPED, LOST };

static struct slot {
    _Atomic int state;
    _Atomic unsigned turn; /* how often it was taken */
    _Atomic uintptr_t start;
    _Atomic size_t size;
} slots[MAPPED_FILES_MAX];

/* The handler before ours. The handler reads it without a lock: a new one goes into the other. */
static struct sigaction mapped_file_earlier[2];
static struct sigaction *_Atomic before = mapped_file_earlier;

/* Map zeros over a range while threads read it, who look afterwards whether it was lost. For
 * ThreadSanitizer the function is a write that races with them; the system call is none. */
static bool mapped_file_map_zeros(uintptr_t start, size_t size)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

#ifdef __SANITIZE_THREAD__
    return syscall(SYS_mmap, start, size, PROT_READ, flags, -1, 0) != -1;
#else
    return mmap((void *)start, size, PROT_READ, // NOLINT(performance-no-int-to-ptr)
                flags, -1, 0) != MAP_FAILED;
#endif
}

/* The same over the range that has the address. false: none has it. */
static bool mapped_file_replace(uintptr_t at)
{
    for (unsigned i = 0; i < MAPPED_FILES_MAX; i++) {
        unsigned turn = atomic_load(&slots[i].turn);
        int state = atomic_load(&slots[i].state);
        uintptr_t start = atomic_load(&slots[i].start);
        size_t size = atomic_load(&slots[i].size);

        if ((state != MAPPED && state != LOST) || at - start >= size ||
            atomic_load(&slots[i].turn) != turn)
            continue;
        atomic_store(&slots[i].state, LOST);
        return mapped_file_map_zeros(start, size);
    }
    return false;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const struct sigaction *other = atomic_load(&before);
    int saved = errno;

    if (!mapped_file_replace((uintptr_t)info->si_addr)) {
        /* Not ours. If nothing handled it before, the fault comes again and ends the process. */
        if (other->sa_flags & SA_SIGINFO)
            other->sa_sigaction(number, info, context);
        else
            sigaction(SIGBUS, other, NULL);
    }
    errno = saved;
}

static struct lock lock;           /* of before, and of: */
static unsigned mapped_file_users; /* files that are mapped, or being mapped */

static void make_lock(void)
{
    lock_init(&lock);
}

static bool mapped_file_is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_bus_error;
}

/* One file less: after the last one the handler is the one before ours again, unless other code has
 * set one of its own, which may call ours. */
static void mapped_file_uninstall(void)
{
    struct sigaction now;
    LOCK_SCOPE(&lock);

    if (!--mapped_file_users && sigaction(SIGBUS, NULL, &now) == 0 && mapped_file_is_ours(&now))
        sigaction(SIGBUS, atomic_load(&before), NULL);
}

/* Other code may have set a handler of its own meanwhile. */
static void mapped_file_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction now;

    pthread_once(&once, make_lock);
    lock_take(&lock);
    mapped_file_users++;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, NULL, &now) == 0 && !mapped_file_is_ours(&now)) {
        struct sigaction *other = &mapped_file_earlier[atomic_load(&before) == mapped_file_earlier];

        *other = now;
        atomic_store(&before, other);
        sigaction(SIGBUS, &action, NULL);
    }
    lock_drop(&lock);
}

static int mapped_file_map(int fd, uint64_t size, struct mapped_file *ret)
{
    static _Atomic unsigned next; /* where a free slot is looked for first */
    unsigned slot, looked = 0;
    void *bytes;

    for (;; looked++) {
        int expected = FREE;

        if (looked == MAPPED_FILES_MAX)
            return -EMFILE;
        slot = atomic_fetch_add(&next, 1) % MAPPED_FILES_MAX;
        if (atomic_compare_exchange_strong(&slots[slot].state, &expected, TAKEN))
            break;
    }
    atomic_fetch_add(&slots[slot].turn, 1);
    bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        int r = -errno;

        atomic_store(&slots[slot].state, FREE);
        return r;
    }
    atomic_store(&slots[slot].start, (uintptr_t)bytes);
    atomic_store(&slots[slot].size, (size_t)size);
    atomic_store(&slots[slot].state, MAPPED);
    *ret = (struct mapped_file){bytes, (size_t)size, slot};
    return 0;
}

int mapped_file_open(int fd, uint64_t size, struct mapped_file *ret)
{
    int r;

    if (size > SIZE_MAX)
        return -EFBIG;
    mapped_file_install();
    r = mapped_file_map(fd, size, ret);
    if (r < 0)
        mapped_file_uninstall();
    return r;
}

bool mapped_file_is_lost(const struct mapped_file *file)
{
    return file->bytes && atomic_load(&slots[file->slot].state) == LOST;
}

void mapped_file_close(struct mapped_file *file)
{
    if (!file->bytes)
        return;
    atomic_store(&slots[file->slot].state, FREE);
    munmap((void *)(uintptr_t)file->bytes, file->size);
    mapped_file_uninstall();
    *file = (struct mapped_file){0};
}
