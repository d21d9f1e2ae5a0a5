/* The first byte chooses one of the sources of tests/support/worlds.h, and each three bytes after
 * it change a byte of the source. Whatever it is then, all that is read has a sum. */
#include "base/bytes.h"
#include "saw.h"
#include "support/worlds.h"

static void make(struct world_source *s, unsigned which)
{
    switch (which) {
    case 0:
    case 1:
        source_idx(s, which == 1);
        break;
    case 2:
    case 3:
        source_libsvm(s, which == 3);
        break;
    case 4:
        source_directory(s);
        break;
    case 5:
        source_n_records(s, 40);
        break;
    case 6:
        source_learned(s);
        break;
    case 7:
    case 8:
        source_recordio(s, which == 8);
        break;
    default:
        source_text(s, which == 9);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct world_source s = {0};
    AUTO_WORLD struct world w = {0};

    if (!len)
        return 0;
    make(&s, data[0] % 11);
    s.pooled = false;
    for (size_t i = 1; i + 3 <= len; i += 3) {
        struct text *t = &s.bytes[i % s.n];

        if (t->len)
            t->data[load_le16(data + i) % t->len] ^= (char)data[i + 2];
    }
    world_open(&w, &s, false);
    saw_number((uint64_t)w.result);
    saw_found(&w.found);
    world_release(&w);
    w = (struct world){0};
    source_release(&s);
    return 0;
}
