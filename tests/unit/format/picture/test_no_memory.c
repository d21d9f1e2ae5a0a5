/* The n-th allocation of decoding a picture fails, for n = 1, 2, 3 ... until the run is clean. */
#include "format/picture/picture.h"
#include "support/failing_alloc.h"
#include "support/picture_make.h"
#include "support/unit.h"

#include <errno.h>
#include <stdlib.h>

#define WIDTH  24
#define HEIGHT 16
#define HEAD   "Exif\0"

UNIT_TEST(test_picture__allocation_n_fails__enomem)
{
    struct made_picture made;
    struct picture_file file;
    uint8_t ret[8 * 8 * 3], exif[6 + MADE_EXIF_BYTES] = HEAD, rgb[WIDTH * HEIGHT * 3] = {0};
    bool has_failed = true;

    make_exif(false, 6, exif + 6);
    made = make_jpeg(&(struct made_jpeg){.width = WIDTH,
                                         .height = HEIGHT,
                                         .channels = 3,
                                         .is_progressive = false,
                                         .exif = exif,
                                         .exif_len = sizeof(exif)},
                     rgb);
    file = (struct picture_file){"x.jpg", made.bytes, made.len};
    for (unsigned long n = 1; has_failed; n++) {
        long live;
        int r;

        failing_alloc_begin(n);
        r = picture_decode(&file, 8, 8, ret, NULL);
        live = failing_alloc_live();
        has_failed = failing_alloc_end();
        assert_int_equal(live, 0);
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
    }
    free(made.bytes);
}
