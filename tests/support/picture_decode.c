/* Pictures as arrays, for tests in Python:  epochfs-picture HEIGHT WIDTH FILE
 *
 * Writes the array to stdout, or the reason to stderr and exits with 1. */
#include <stdio.h>
#include <stdlib.h>

#include "format/picture/picture.h"

#define FILE_MAX (64 << 20)

int main(int argc, char **argv)
{
    AUTO_FREE uint8_t *bytes = malloc(FILE_MAX), *ret = NULL;
    struct diag d = DIAG_INIT;
    struct picture_file file;
    uint32_t height, width;
    FILE *f;
    int r;

    if (argc != 4 || !bytes)
        return 2;
    height = (uint32_t)strtoul(argv[1], NULL, 10);
    width = (uint32_t)strtoul(argv[2], NULL, 10);
    f = fopen(argv[3], "rb");
    ret = malloc((size_t)height * width * 3);
    if (!f || !ret)
        return 2;
    file = (struct picture_file){argv[3], bytes, fread(bytes, 1, FILE_MAX, f)};
    fclose(f);
    r = picture_decode(&file, height, width, ret, &d);
    if (r < 0) {
        fprintf(stderr, "%s\n", diag_text(&d, r));
        return 1;
    }
    return fwrite(ret, 3, (size_t)height * width, stdout) != (size_t)height * width;
}
