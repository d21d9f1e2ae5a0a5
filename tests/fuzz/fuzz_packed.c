/* Bytes as a file of each packing that is streams. The sink is ours, so that nothing is written to
 * a disk: this program has a streams.c of its own, with buffers of STREAM_CHUNK bytes, so that
 * small inputs also fill them; and it links no file of the library that defines entry_room().
 */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "cache/pack/streams.h"
#include "fuzz.h"
#include "support/memory_blob.h"

#define CONTENT_MAX (256 << 10) /* more is refused, like a full disk */

extern const struct unpacker unpacker_bzip2, unpacker_gzip, unpacker_zlib, unpacker_zstd;

struct entry_sink {
    uint64_t size;
    uLong sum;
    uint8_t room[STREAM_CHUNK];
};

int entry_room(struct entry_sink *sink, uint8_t **ret, size_t *ret_len)
{
    *ret = sink->room;
    *ret_len = STREAM_CHUNK;
    return sink->size > CONTENT_MAX ? -ENOSPC : 0;
}

void entry_made(struct entry_sink *sink, size_t len)
{
    sink->sum = crc32(sink->sum, sink->room, (uInt)len);
    sink->size += len;
}

int entry_expect(struct entry_sink *sink, uint64_t len)
{
    return len > CONTENT_MAX - sink->size ? -ENOSPC : 0;
}

static int unpack(const struct unpacker *u, const uint8_t *data, size_t len)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("x.gz", data, len, len, NULL);
    struct entry_sink first = {0}, second = {0};
    struct diag d = DIAG_INIT;
    int r = streams_unpack(u, blob, NULL, &first, &d);

    FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ENOSPC);
    FUZZ_CHECK((r == -EBADMSG) == d.set);
    fuzz_saw(&r, sizeof(r));
    if (r == 0) {
        fuzz_saw(&first.size, sizeof(first.size));
        fuzz_saw(&first.sum, sizeof(first.sum));
    }
    FUZZ_CHECK(!d.set || !strncmp(d.text, "x.gz: ", 6));
    FUZZ_CHECK(streams_unpack(u, blob, NULL, &second, NULL) == r);
    FUZZ_CHECK(first.size == second.size && first.sum == second.sum);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    int r;

    unpack(&unpacker_gzip, data, len);
    unpack(&unpacker_bzip2, data, len);
    r = unpack(&unpacker_zstd, data, len);
    if (r == 0 && len)
        FUZZ_CHECK(unpacker_zstd.is_it(data, len, true));
    r = unpack(&unpacker_zlib, data, len);
    /* Any head of a whole stream is recognised. */
    if (r == 0 && len && data[0] == 0x78)
        FUZZ_CHECK(unpacker_zlib.is_it(data, len, true));
    return 0;
}
