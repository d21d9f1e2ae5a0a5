/* Bytes as the head of a file of audio: either none, or its samples are where they can be read as
 * numbers. */
#include <stdlib.h>
#include <string.h>

#include "format/core/sound_head.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sound_head h;
    uint8_t *exact = malloc(len ? len : 1); /* of that size, so that each byte behind it is seen */

    if (!exact)
        return 0;
    memcpy(exact, data, len);
    if (sound_head_read(exact, len, &h)) {
        FUZZ_CHECK(h.data <= len && h.size <= len - h.data);
        FUZZ_CHECK(h.channels && h.width && h.width <= 8);
        fuzz_saw(&h.channels, sizeof(h.channels));
        fuzz_saw(&h.rate, sizeof(h.rate));
        fuzz_saw(&h.data, sizeof(h.data));
        for (size_t at = 0; h.size - at >= h.width; at += h.width) {
            double v = sound_sample(&h, exact + h.data + at);

            FUZZ_CHECK(h.is_float || (v >= -1 && v <= 1));
            fuzz_saw(&v, sizeof(v));
        }
    }
    free(exact);
    return 0;
}
