/* Reads the lines of /proc/stat for the processors that this process may run on: in a cpuset, or
 * bound by a scheduler, a job has only those. Time idle and time waiting for a disk both count as
 * idle. */
#include "base/processors.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL

/* Clock ticks that the processor of a line "cpuN user nice system idle iowait ..." was idle, if we
 * may run on it. */
static unsigned long long idle_ticks(const char *line, const cpu_set_t *ours, size_t size)
{
    unsigned long long idle, waiting;
    unsigned processor;

    if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &processor, &idle, &waiting) != 3 ||
        processor >= CPU_SETSIZE || !CPU_ISSET_S(processor, size, ours))
        return 0;
    return idle + waiting;
}

unsigned processors_count(void)
{
    cpu_set_t ours;
    int n = sched_getaffinity(0, sizeof(ours), &ours) < 0 ? 1 : CPU_COUNT(&ours);

    return n > 1 ? (unsigned)n : 1;
}

uint64_t processors_idle_ns(void)
{
    long hertz = sysconf(_SC_CLK_TCK);
    unsigned long long ticks = 0;
    char line[512];
    cpu_set_t ours;
    FILE *f;

    if (hertz <= 0 || sched_getaffinity(0, sizeof(ours), &ours) < 0)
        return UINT64_MAX;
    f = fopen("/proc/stat", "re");
    if (!f)
        return UINT64_MAX;
    /* The processors come first; the line after them is long, and costly for the kernel to make. */
    while (fgets(line, sizeof(line), f) && !strncmp(line, "cpu", 3))
        ticks += idle_ticks(line, &ours, sizeof(ours));
    fclose(f);
    return ticks * (NS_PER_S / (unsigned long long)hertz);
}
