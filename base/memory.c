#include "base/memory.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"

#define HUGE_PAGE ((size_t)1 << 21)

/* Where the two versions of cgroups have their numbers. If both are mounted, one of them has no
 * such files. */
static const struct version {
    const char *line;     /* in /proc/self/cgroup, the text before the path */
    const char *folder;   /* where the groups are */
    const char *limit[2]; /* files with one number; NULL: none */
    const char *used;
    const char *idle; /* in memory.stat */
} versions[] = {
    {":memory:",
     "/sys/fs/cgroup/memory",
     {"memory.limit_in_bytes", NULL},
     "memory.usage_in_bytes",
     "total_inactive_file "},
    {"0::", "/sys/fs/cgroup", {"memory.max", "memory.high"}, "memory.current", "inactive_file "},
};

/* The number after a word at the start of a line of a file; "": in its first line. UINT64_MAX:
 * there is none ("max"). */
static uint64_t memory_number_in(const char *path, const char *word)
{
    FILE *f = fopen(path, "re");
    uint64_t found = UINT64_MAX;
    size_t n = strlen(word);
    char line[256];
    bool is_there = false;

    while (!is_there && f && fgets(line, sizeof(line), f)) {
        is_there = !strncmp(line, word, n);
        if (is_there) {
            const char *digits = line + n + strspn(line + n, " \t");

            number_parse(digits, strspn(digits, "0123456789"), UINT64_MAX - 1, &found);
        }
    }
    if (f)
        fclose(f);
    return found;
}

static uint64_t machine(const char *word)
{
    uint64_t kib = memory_number_in("/proc/meminfo", word);

    return kib == UINT64_MAX ? UINT64_MAX : kib * 1024;
}

/* The path of this process's cgroup; "": it has none. */
static void own_cgroup(const struct version *v, char *ret, size_t capacity)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];

    ret[0] = '\0';
    while (f && fgets(line, sizeof(line), f)) {
        const char *found = strstr(line, v->line);

        line[strcspn(line, "\n")] = '\0';
        if (found && (*v->line == ':' || found == line))
            snprintf(ret, capacity, "%s", found + strlen(v->line));
    }
    if (f)
        fclose(f);
}

static uint64_t memory_group_number(const struct version *v, const char *group, const char *file,
                                    const char *word)
{
    char path[1200];

    if (!file)
        return UINT64_MAX;
    snprintf(path, sizeof(path), "%s%s/%s", v->folder, group, file);
    return memory_number_in(path, word);
}

/* The limit of a cgroup, and what is left of it; file pages not used lately count as left, because
 * the kernel drops them first. UINT64_MAX: no limit. */
static uint64_t memory_limit_of(const struct version *v, const char *group)
{
    return min_u64(memory_group_number(v, group, v->limit[0], ""),
                   memory_group_number(v, group, v->limit[1], ""));
}

static uint64_t left_in(const struct version *v, const char *group)
{
    uint64_t limit = memory_limit_of(v, group), used = memory_group_number(v, group, v->used, "");
    uint64_t idle = memory_group_number(v, group, "memory.stat", v->idle);

    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    used -= idle == UINT64_MAX ? 0 : min_u64(idle, used);
    return limit > used ? limit - used : 0;
}

/* The least value of the cgroups around this process, from its own up to the root, in a container
 * the container's root. */
static uint64_t least(uint64_t (*value)(const struct version *v, const char *group), uint64_t start)
{
    uint64_t least = start;

    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        char group[1024], *slash;

        own_cgroup(&versions[i], group, sizeof(group));
        while ((slash = strrchr(group, '/'))) {
            least = min_u64(least, value(&versions[i], group));
            *slash = '\0';
        }
        least = min_u64(least, value(&versions[i], ""));
    }
    return least;
}

uint64_t memory_total(void)
{
    return least(memory_limit_of, machine("MemTotal:"));
}

uint64_t memory_free(void)
{
    return least(left_in, machine("MemAvailable:"));
}

struct memory_used memory_used(void)
{
    const struct mallinfo2 heap = mallinfo2();
    unsigned long long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (struct memory_used){.resident = resident * (uint64_t)sysconf(_SC_PAGESIZE),
                                .allocated = heap.uordblks + heap.hblkhd,
                                .unused = heap.fordblks};
}

void *memory_array(uint64_t n, size_t size)
{
    size_t bytes = (size_t)n * size;
    void *ret;

    if (n > (SIZE_MAX - HUGE_PAGE) / size)
        return NULL;
    if (bytes < 4 * HUGE_PAGE)
        return malloc(bytes);
    ret = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (ret)
        madvise(ret, bytes, MADV_HUGEPAGE); /* where there are none, small ones do */
    return ret;
}
