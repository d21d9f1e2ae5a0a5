/* xz by liblzma: any number of streams, zero padding between and after them. */
#include <errno.h>
#include <lzma.h>
#include <string.h>

#include "base/checked.h"
#include "cache/pack/unpack.h"

#define CHUNK        (256 * 1024)
#define MEMORY_LIMIT (UINT64_C(256) << 20) /* of the decoder; `xz -9` needs 65 MiB */

struct xz {
    lzma_stream z;
    uint8_t in[CHUNK];
    uint8_t out[CHUNK];
};

static void xz_free(struct xz **x)
{
    if (*x)
        lzma_end(&(*x)->z);
    free(*x);
}

static const char *describe(lzma_ret code)
{
    switch (code) {
    case LZMA_BUF_ERROR:
        return "expected its end, got the end of the file";
    case LZMA_MEMLIMIT_ERROR:
        return "expected a decoder of at most 256 MiB, got more";
    case LZMA_FORMAT_ERROR:
        return "expected an xz stream or zeros, got neither";
    default:
        return "expected a valid stream, got damage";
    }
}

static int xz_run(const struct unpack_input *in, struct entry_sink *sink, struct diag *d)
{
    const struct blob *packed = in->packed;
    AUTO(xz_free) struct xz *x = calloc(1, sizeof(*x));
    lzma_ret code = LZMA_OK;
    uint64_t at = 0;

    if (!x || lzma_stream_decoder(&x->z, MEMORY_LIMIT, LZMA_CONCATENATED) != LZMA_OK)
        return -ENOMEM;
    while (code == LZMA_OK) {
        int r;

        if (!x->z.avail_in && at < packed->size) {
            size_t n = (size_t)min_u64(CHUNK, packed->size - at);

            r = unpack_read(in, x->in, n, at, d);
            if (r < 0)
                return r;
            at += n;
            x->z.next_in = x->in;
            x->z.avail_in = n;
        }
        x->z.next_out = x->out;
        x->z.avail_out = CHUNK;
        code = lzma_code(&x->z, at < packed->size ? LZMA_RUN : LZMA_FINISH);
        r = entry_write(sink, x->out, CHUNK - x->z.avail_out);
        if (r < 0)
            return r;
    }
    if (code == LZMA_MEM_ERROR)
        return -ENOMEM;
    if (code != LZMA_STREAM_END)
        return diag_set(d, -EBADMSG, "%s: xz data near byte %llu: %s", blob_name(packed),
                        (unsigned long long)(at - x->z.avail_in), describe(code));
    return 0;
}

const struct unpacker unpacker_xz = {"xz", ".xz", {0xfd, '7', 'z', 'X', 'Z', 0}, 6, NULL, xz_run};
