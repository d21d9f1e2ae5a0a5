/* Runs every file of the folders given through the fuzz target, where libFuzzer is not at hand.
 * A folder without files is an error: nothing would be tested. */
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    struct stat st;
    int good = f && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode);

    if (good) {
        size_t len = (size_t)st.st_size;

        bytes = malloc(len ? len : 1); /* of that very size, so that ASan sees what is behind */
        good = bytes && fread(bytes, 1, len, f) == len;
        if (good)
            LLVMFuzzerTestOneInput(bytes, len);
    }
    free(bytes);
    if (f)
        fclose(f);
    return good;
}

static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int n = 0;

    while (dir && (entry = readdir(dir))) {
        char path[PATH_MAX];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (!replay_file(path)) {
            fprintf(stderr, "%s: cannot be read\n", path);
            n = 0;
            break;
        }
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int n = replay_folder(argv[i]);

        if (!n) {
            fprintf(stderr, "%s: expected a folder of files\n", argv[i]);
            return 1;
        }
        printf("%s: %d files\n", argv[i], n);
    }
    return argc < 2;
}
