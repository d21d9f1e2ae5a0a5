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

    /* libwebp 1.5 says of some damaged pictures that memory is short. */
    FUZZ_CHECK(r == 0 || r == -ENOMEM ||
               (d.set && (r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP)));
    return r;
}

#define PIXELS_MOST 65536 /* PICTURE_PIXELS_MAX of this program */

/* The whole picture, as it is. */
static int choose_all(void *ctx, uint32_t height, uint32_t width, struct picture_cut *ret_cut,
                      struct pixel_rows *ret_rows)
{
    FUZZ_CHECK((uint64_t)height * width <= PIXELS_MOST);
    *ret_cut = (struct picture_cut){0, 0, height, width, height, width, 0, 0, height, width};
    *ret_rows = (struct pixel_rows){ctx, (ptrdiff_t)width * 3, false};
    return 0;
}

/* Numbers are read of what has colours, unless they have 16 bits. */
static void check_numbers(const struct picture_file *file, int colours)
{
    static uint8_t pixels[PIXELS_MOST * 3];
    struct diag d = DIAG_INIT;
    int r = picture_decode_numbers(file, &(struct picture_chooser){choose_all, pixels}, &d);

    FUZZ_CHECK(r == 0 || r == -ENOMEM || d.set);
    FUZZ_CHECK(r == colours || (r < 0 && colours == 0 && strstr(d.text, "8 bits")) || r == -EFBIG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct picture_file file = {"fuzz", data, len};
    uint8_t a[SIDE * SIDE * 3], b[SIDE * SIDE * 3];
    int r = decode(&file, 7, SIDE, a);

    FUZZ_CHECK(decode(&file, 7, SIDE, b) == r);
    FUZZ_CHECK(r < 0 || !memcmp(a, b, 7 * SIDE * 3));
    FUZZ_CHECK(decode(&file, SIDE, 1, b) == r);
    check_numbers(&file, r);
    FUZZ_CHECK(r < 0 || picture_is(data, len < PICTURE_HEAD ? len : PICTURE_HEAD));
    return 0;
}
