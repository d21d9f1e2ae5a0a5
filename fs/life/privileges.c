/* Direct capset(2) and prctl(2): for three calls, a library would be one more thing to trust. */
#include "fs/life/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OOM_SCORE "-500" /* of -1000 (never) to 1000; shells and readers have 0 */

static const unsigned kept[] = {
    CAP_SYS_ADMIN,    /* to unmount */
    CAP_DAC_OVERRIDE, /* sources and cache folders of other users, and side files yet to come */
    CAP_LEASE,        /* to ask whether other processes have a file of the cache open */
    CAP_FOWNER,       /* to restore the time of a file of the cache after a check */
};

static uint64_t kept_mask(void)
{
    uint64_t mask = 0;

    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        mask |= UINT64_C(1) << kept[i];
    return mask;
}

/* Keep those of our capabilities that are in mask; none is inherited by programs that we run. */
static int keep_only(uint64_t mask)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    for (unsigned i = 0; i < 2; i++) {
        data[i].permitted &= (uint32_t)(mask >> 32 * i);
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* Limit what a program that we run can get to mask. */
static void bound(uint64_t mask)
{
    for (unsigned cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (!(mask >> cap & 1))
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int privileges_reduce(void)
{
    if (geteuid() == 0) { /* other users need fusermount3, which is set-uid, to unmount */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
            return -errno;
        bound(kept_mask());
    }
    return keep_only(kept_mask());
}

void privileges_give_up(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    keep_only(0);
}

void privileges_spare_from_oom(void)
{
    FILE *f = fopen("/proc/self/oom_score_adj", "r+e");
    int score;

    if (!f)
        return;
    setvbuf(f, NULL, _IONBF, 0);
    if (fscanf(f, "%d", &score) == 1 && score == 0) {
        rewind(f);
        fputs(OOM_SCORE, f);
    }
    fclose(f);
}

void privileges_hide_memory(void)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
