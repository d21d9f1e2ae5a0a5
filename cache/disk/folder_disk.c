/* A home folder is often on a server, or has a quota. Quotas that the kernel does not know, as
 * those of NFS servers and of parallel file systems, are not seen; their file systems are. */
#include "cache/disk/folder_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/quota.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/scope.h"

#define GiB (UINT64_C(1) << 30)
#define MiB (UINT64_C(1) << 20)

static const struct {
    uint64_t type;
    const char *name;
} far_types[] = {
    {0x6969, "NFS"},        {0xff534d42, "SMB"},  {0xfe534d42, "SMB"},    {0x517b, "SMB"},
    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x00c36400, "CephFS"},
    {0x5346414f, "AFS"},    {0x6b414653, "AFS"},  {0x01021997, "9P"},
};

static int system_type(const char *path, uint64_t *ret_type)
{
    struct statfs fs;

    if (statfs(path, &fs) < 0)
        return -errno;
    *ret_type = (uint64_t)fs.f_type & UINT32_MAX;
    return 0;
}

/* The lower of both limits of the user or the group; 0: none. */
static uint64_t limit_of(int fd, unsigned type, unsigned id)
{
#ifdef SYS_quotactl_fd
    struct if_dqblk found = {0};

    if (syscall(SYS_quotactl_fd, fd, QCMD((unsigned)Q_GETQUOTA, type), id, &found) == 0 &&
        found.dqb_valid & QIF_BLIMITS) {
        uint64_t hard = found.dqb_bhardlimit, soft = found.dqb_bsoftlimit;
        uint64_t blocks = soft && (!hard || soft < hard) ? soft : hard;

        return min_u64(blocks, UINT64_MAX / QIF_DQBLKSIZE) * QIF_DQBLKSIZE;
    }
#endif
    return 0;
}

static int system_quota(const char *path, uint64_t *ret_bytes)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t user, group;

    if (fd < 0)
        return -errno;
    user = limit_of(fd, USRQUOTA, geteuid());
    group = limit_of(fd, GRPQUOTA, getegid());
    *ret_bytes = user && (!group || user < group) ? user : group;
    return 0;
}

const struct disk_probe disk_probe_system = {system_type, system_quota};

static const char *far_name(uint64_t type)
{
    for (size_t i = 0; i < ARRAY_LEN(far_types); i++)
        if (far_types[i].type == type)
            return far_types[i].name;
    return NULL;
}

bool folder_disk_warning(const struct cache_folder *folder, const struct disk_probe *probe,
                         char *ret, size_t capacity)
{
    uint64_t type = 0, quota = 0;
    const char *name;

    if (!folder->is_default)
        return false;
    name = probe->type(folder->path, &type) == 0 ? far_name(type) : NULL;
    if (name) {
        snprintf(ret, capacity,
                 "cache folder %s: is on %s, not on a disk of this machine; choose one with -o "
                 "cache_dir=DIR",
                 folder->path, name);
        return true;
    }
    if (probe->quota(folder->path, &quota) < 0 || !quota)
        return false;
    snprintf(ret, capacity,
             "cache folder %s: its user has a quota of %llu %s there; choose another one with -o "
             "cache_dir=DIR, or limit it with cache_size=",
             folder->path, (unsigned long long)(quota < 10 * GiB ? quota / MiB : quota / GiB),
             quota < 10 * GiB ? "MiB" : "GiB");
    return true;
}
