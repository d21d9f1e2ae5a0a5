/* Pictures as arrays, for tests in Python:  epochfs-picture
 *
 * Reads lines "HEIGHT WIDTH BYTES", each with the bytes of a picture after it, and writes for each
 * a line, which is empty and the array comes after it, or is the reason why there is none. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/picture/picture.h"

static int show(uint32_t height, uint32_t width, size_t len)
{
    AUTO_FREE uint8_t *bytes = malloc(len); /* of that very size, so that ASan sees reads past it */
    AUTO_FREE uint8_t *ret = malloc((size_t)height * width * 3);
    struct diag d = DIAG_INIT;
    int r;

    if (!bytes || !ret || fread(bytes, 1, len, stdin) != len)
        return 2;
    r = picture_decode(&(struct picture_file){"picture", bytes, len}, height, width, ret, &d);
    printf("%s\n", r < 0 ? diag_text(&d, r) : "");
    if (r == 0)
        fwrite(ret, 3, (size_t)height * width, stdout);
    return fflush(stdout) ? 2 : 0;
}

int main(void)
{
    uint32_t height, width;
    char line[80];
    size_t len;
    int r = 0;

    while (r == 0 && fgets(line, sizeof(line), stdin))
        r = sscanf(line, "%" SCNu32 " %" SCNu32 " %zu", &height, &width, &len) == 3
                ? show(height, width, len)
                : 2;
    return r;
}
