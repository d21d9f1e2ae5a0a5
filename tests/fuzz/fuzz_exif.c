/* Bytes as the segments or chunks of a picture: any orientation, or none, comes out. */
#include "format/picture/exif.h"
#include "fuzz.h"

static void check(unsigned orientation)
{
    FUZZ_CHECK(orientation >= 1 && orientation <= 8);
    fuzz_saw(&orientation, sizeof(orientation));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    check(exif_of_jpeg(data, len));
    check(exif_of_png(data, len));
    check(exif_of_webp(data, len));
    return 0;
}
