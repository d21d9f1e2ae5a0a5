/* Bytes as the file of a picture: it is decoded or refused with a reason, whatever size is wanted,
 * and the same bytes come out each time. Pictures are bounded tighter than in the product, so that
 * no input takes long. */
#include <errno.h>
#include <string.h>

#include "base/scope.h"
#include "format/picture/picture.h"
#include "fuzz.h"

#define SIDE 24

static int decode(const struct picture_file *file, uint32_t height, uint32_t width, uint8_t *ret)
{
    struct diag d = DIAG_INIT;
    int r = picture_decode(file, height, width, ret, &d);

    FUZZ_CHECK(r == 0 || (d.set && (r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP)));
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct picture_file file = {"fuzz", data, len};
    uint8_t a[SIDE * SIDE * 3], b[SIDE * SIDE * 3];
    int r = decode(&file, 7, SIDE, a);

    FUZZ_CHECK(decode(&file, 7, SIDE, b) == r);
    FUZZ_CHECK(r < 0 || !memcmp(a, b, 7 * SIDE * 3));
    FUZZ_CHECK(decode(&file, SIDE, 1, b) == r);
    FUZZ_CHECK(r < 0 || picture_is(data, len < PICTURE_HEAD ? len : PICTURE_HEAD));
    return 0;
}
