#include "fs/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

#define CGROUPS "/sys/fs/cgroup"

/* The number behind a word at the start of a line of a file, "" for its first line. UINT64_MAX:
 * there is none ("max"). */
static uint64_t number_in(const char *path, const char *word)
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
    uint64_t kib = number_in("/proc/meminfo", word);

    return kib == UINT64_MAX ? UINT64_MAX : kib * 1024;
}

/* The path of this process's cgroup, "" where it has none. */
static void own_cgroup(char *ret, size_t room)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];

    ret[0] = '\0';
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, "0::", 3))
            snprintf(ret, room, "%s", line + 3);
    }
    if (f)
        fclose(f);
}

static uint64_t cgroup_number(const char *group, const char *file, const char *word)
{
    char path[1200];

    snprintf(path, sizeof(path), CGROUPS "%s/%s", group, file);
    return number_in(path, word);
}

/* What a limited cgroup may take, and has left: pages of files that were not used lately go first
 * when there is no more. UINT64_MAX: it is not limited. */
static uint64_t limit_of(const char *group)
{
    return min_u64(cgroup_number(group, "memory.max", ""), cgroup_number(group, "memory.high", ""));
}

static uint64_t left_in(const char *group)
{
    uint64_t limit = limit_of(group), used = cgroup_number(group, "memory.current", "");
    uint64_t idle = cgroup_number(group, "memory.stat", "inactive_file ");

    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    used -= idle == UINT64_MAX ? 0 : min_u64(idle, used);
    return limit > used ? limit - used : 0;
}

/* The least of the cgroups around this process, from its own up to the root. */
static uint64_t least(uint64_t (*of)(const char *group), uint64_t start)
{
    char group[1024], *slash;
    uint64_t least = start;

    own_cgroup(group, sizeof(group));
    while ((slash = strrchr(group, '/'))) {
        if (slash[1])
            least = min_u64(least, of(group));
        *slash = '\0';
    }
    return least;
}

uint64_t memory_total(void)
{
    return least(limit_of, machine("MemTotal:"));
}

uint64_t memory_free(void)
{
    return least(left_in, machine("MemAvailable:"));
}
