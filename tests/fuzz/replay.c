/* Runs every file of the folders given through the fuzz target, where libFuzzer is not at hand.
 * FOLDER/PREFIX is those files of it whose names begin with PREFIX. A folder without files is an
 * error: nothing would be tested. What the target saw has a sum. It is that of a line of sums.txt,
 * or is printed to replace it; with SUMS_SHOW each file's is. */
#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define CHANGED 9 /* inputs that are made of each */

static uint64_t seen, sum; /* of the file; of the folder, in any order of its files */
static int is_seen;

void fuzz_saw(const void *bytes, size_t len)
{
    seen = (seen ^ fuzz_hash(bytes, len)) * UINT64_C(0x9e3779b97f4a7c15);
    seen ^= seen >> 29;
    is_seen = 1;
}

/* The sum of the folder corpus/NAME, or of a part of it, is that of its line in sums.txt. */
static int check_sum(const char *folder, const char *prefix)
{
    const char *name = strrchr(folder, '/') + 1;
    char path[PATH_MAX], line[100], found[100];
    FILE *f;

    snprintf(path, sizeof(path), "%.*s../sums.txt", (int)(name - folder), folder);
    snprintf(found, sizeof(found), "%s%s%s %016llx\n", name, *prefix ? "/" : "", prefix,
             (unsigned long long)sum);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (strcmp(line, found))
            continue;
        fclose(f);
        return 1;
    }
    if (f)
        fclose(f);
    fprintf(stderr, "%s: other bytes are shown: not in sums.txt: %s", folder, found);
    return 0;
}

/* The input again, each time cut or with a byte changed, the same way in each run. */
static void replay_changed(const uint8_t *bytes, size_t len)
{
    static const uint8_t change[] = {1, 2, 0x10, 0x20, 0x7f, 0x80, 0xff};
    uint64_t way = fuzz_hash(bytes, len);

    for (unsigned i = 0; i < CHANGED && len; i++) {
        size_t n = i ? len : (size_t)(way % len);
        uint8_t *copy = malloc(n ? n : 1);

        if (!copy)
            abort();
        memcpy(copy, bytes, n);
        if (i)
            copy[way % len] ^= change[(way >> 32) % sizeof(change)];
        LLVMFuzzerTestOneInput(copy, n);
        free(copy);
        way = (way ^ way >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    struct stat st;
    int good = f && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode);

    if (good) {
        size_t len = (size_t)st.st_size;

        bytes = malloc(len ? len : 1); /* of that very size, so that ASan sees reads past its end */
        good = bytes && fread(bytes, 1, len, f) == len;
        if (good) {
            LLVMFuzzerTestOneInput(bytes, len);
            replay_changed(bytes, len);
        }
    }
    free(bytes);
    if (f)
        fclose(f);
    return good;
}

static int replay_folder(const char *folder, const char *prefix)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int n = 0;

    sum = 0;
    while (dir && (entry = readdir(dir))) {
        char path[PATH_MAX];

        if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        seen = fuzz_hash((const uint8_t *)entry->d_name, strlen(entry->d_name));
        if (!replay_file(path)) {
            fprintf(stderr, "%s: cannot be read\n", path);
            n = 0;
            break;
        }
        sum += seen;
        if (getenv("SUMS_SHOW"))
            printf("%s %016llx\n", entry->d_name, (unsigned long long)seen);
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *prefix = strrchr(argv[i], '/');
        struct stat st;
        int n;

        if (prefix && stat(argv[i], &st) < 0)
            *prefix++ = '\0';
        else
            prefix = "";
        n = replay_folder(argv[i], prefix);
        if (!n) {
            fprintf(stderr, "%s: expected a folder of files %s...\n", argv[i], prefix);
            return 1;
        }
        printf("%s: %d files\n", argv[i], n);
        if (is_seen && !check_sum(argv[i], prefix))
            return 1;
    }
    return argc < 2;
}
