/* zstd by libzstd: any number of frames, skippable frames anywhere, zero padding after each.
 * RFC 8878.
 *
 * The head of each frame is read here, before libzstd takes memory for its window. A window is a
 * claim: what a frame can fill of it is also bounded by its content, and by the packed bytes that
 * are left, for a block has at least 4 bytes and gives at most 128 KiB. Only what can be filled
 * counts against the limit, as the rest of the window's memory is never touched. */
#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "cache/pack/streams.h"

#define MEMORY_LIMIT  (UINT64_C(256) << 20) /* of a window, as for xz */
#define BLOCK_PACKED  4                     /* bytes of a block that gives anything, at least */
#define BLOCK_CONTENT (UINT64_C(128) << 10)
#define SKIPPABLE     0x184d2a50
#define SKIPPABLE_LEN 8

/* The largest window that libzstd can have: 2 GiB where pointers have 64 bits. */
static int zstd_window_log(void)
{
    return ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound;
}

static bool zstd_is_skippable(uint32_t magic)
{
    return (magic & ~15u) == SKIPPABLE;
}

/* zstd 0.1 to 0.7. */
static bool zstd_is_legacy(uint32_t magic)
{
    return magic == 0xfd2fb51e || (magic >= 0xfd2fb522 && magic <= 0xfd2fb527);
}

static bool zstd_is_it(const uint8_t *head, size_t len, bool whole)
{
    uint32_t magic = len < 4 ? 0 : load_le32(head);

    (void)whole;
    return magic == ZSTD_MAGICNUMBER || zstd_is_skippable(magic) || zstd_is_legacy(magic);
}

static int zstd_begin_frame(const struct stream_head *head, struct diag *d)
{
    uint64_t blocks = min_u64(head->left / BLOCK_PACKED + 1, MEMORY_LIMIT); /* no overflow */
    uint64_t content = ZSTD_getFrameContentSize(head->bytes, head->len);
    bool is_known = content != ZSTD_CONTENTSIZE_ERROR;
    uint64_t window = is_known ? content : 0, filled;
    unsigned dictionary = ZSTD_getDictID_fromFrame(head->bytes, head->len);

    if (head->len > 5 && !(head->bytes[4] & 0x20)) { /* otherwise, it is as large as the content */
        window = UINT64_C(1) << (10 + (head->bytes[5] >> 3));
        window += window / 8 * (head->bytes[5] & 7);
    }
    if (!is_known && window <= UINT64_C(1) << zstd_window_log())
        return 0; /* the decoder says what is wrong with it */
    filled = min_u64(min_u64(window, content), blocks * BLOCK_CONTENT);
    if (dictionary)
        return diag_set(d, -EBADMSG,
                        "%s: zstd frame at byte %llu: expected one without a dictionary, got one "
                        "with dictionary %u. Unpack it with zstd -d -D DICTIONARY",
                        head->file, (unsigned long long)head->at, dictionary);
    if (filled > MEMORY_LIMIT || window > UINT64_C(1) << zstd_window_log())
        return diag_set(d, -EBADMSG,
                        "%s: zstd frame at byte %llu: expected a window of at most %d MiB, got "
                        "one of %llu MiB. Unpack it with zstd -d --long=31",
                        head->file, (unsigned long long)head->at, (int)(MEMORY_LIMIT >> 20),
                        (unsigned long long)(window >> 20));
    return content == ZSTD_CONTENTSIZE_UNKNOWN ? 0 : entry_expect(head->sink, content);
}

static int zstd_begin(void *ctx, struct stream_head *head, struct diag *d)
{
    uint32_t magic = head->len < 4 ? 0 : load_le32(head->bytes);
    int r;

    (void)ctx;
    if (zstd_is_skippable(magic)) {
        if (head->left < SKIPPABLE_LEN || load_le32(head->bytes + 4) > head->left - SKIPPABLE_LEN)
            return streams_cut("zstd", head->file, head->at + head->left, d);
        head->skip = SKIPPABLE_LEN + (uint64_t)load_le32(head->bytes + 4);
        return 1;
    }
    if (zstd_is_legacy(magic))
        return diag_set(d, -EBADMSG,
                        "%s: zstd frame at byte %llu: expected one of zstd 0.8 or later, got a "
                        "format of before 0.8. Unpack it, and pack it again",
                        head->file, (unsigned long long)head->at);
    if (magic != ZSTD_MAGICNUMBER)
        return 0;
    r = zstd_begin_frame(head, d);
    return r < 0 ? r : 1;
}

static int zstd_step(void *ctx, struct stream_step *step)
{
    ZSTD_outBuffer out = {step->out, step->out_len, 0};
    ZSTD_inBuffer in = {step->in, step->in_len, 0};
    size_t left = ZSTD_decompressStream(ctx, &out, &in);

    step->used = in.pos;
    step->made = out.pos;
    step->end = !left;
    if (!ZSTD_isError(left))
        return 0;
    step->why = ZSTD_getErrorName(left);
    return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
}

static void *zstd_open(void)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();

    if (decoder &&
        ZSTD_isError(ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, zstd_window_log()))) {
        ZSTD_freeDCtx(decoder);
        return NULL;
    }
    return decoder;
}

static void zstd_close(void *ctx)
{
    ZSTD_freeDCtx(ctx);
}

const struct unpacker unpacker_zstd = {
    .name = "zstd",
    .suffix = ".zst",
    .is_it = zstd_is_it,
    .another = "another frame (28 b5 2f fd) or zeros",
    .nothing =
        "zstd data: expected a frame with content, got skippable frames only: nothing is inside",
    .open = zstd_open,
    .close = zstd_close,
    .begin = zstd_begin,
    .step = zstd_step};
