/* For tests/mutants alone, whose copy of the tree has MUTANT(n) in its files: MUTANT says which one
 * is on, and the file MUTANT_SEEN, of MUTANTS_MOST bytes, gets a 1 for each that a program reaches.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MUTANTS_MOST 65536

static unsigned char none[MUTANTS_MOST];
extern unsigned char *mutant_seen;
extern int mutant_now;
unsigned char *mutant_seen = none;
int mutant_now = -1;

__attribute__((constructor)) static void mutants_start(void)
{
    const char *now = getenv("MUTANT"), *seen = getenv("MUTANT_SEEN");
    int fd = seen ? open(seen, O_RDWR | O_CLOEXEC) : -1;
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, MUTANTS_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED)
        mutant_seen = map;
    if (now)
        mutant_now = (int)strtol(now, NULL, 10);
}
