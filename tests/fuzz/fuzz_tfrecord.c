/* Bytes as a TFRecord file. A first byte with bit 0: the rest as it is. Otherwise records, each
 * after a byte that says what is wrong with it (1: the data's checksum, 2: the length's) and two
 * for the length of its data; their checksums are made here, since no input would find them.
 *
 * What the file's index says of a record can be read, in any pieces, and is the same from the kept
 * index. A kept index that was forged may say anything, but nothing is read outside of records. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "format/tfrecord/file.h"
#include "format/tfrecord/frame.h"
#include "fuzz.h"
#include "saw.h"
#include "support/libsvm_make.h"
#include "support/memory_blob.h"
#include "support/one_store.h"

#define READ_MAX  65536 /* bytes of a content that are read */
#define INDEX_CRC 12    /* where an index has its checksum, of all after it */

enum { SPOIL_DATA = 1, SPOIL_LENGTH = 2 };

/* ---- the file ---- */

static uint8_t *frames(const uint8_t *data, size_t len, size_t *ret_len)
{
    uint8_t *file = malloc(6 * len + FRAME_BYTES), *at = file;

    while (len >= 3) {
        uint8_t how = data[0];
        size_t n = (size_t)min_u64(data[1] | data[2] << 8, len - 3);

        store_le64(at, n);
        store_le32(at + 8, crc32c_masked(crc32c(0, at, 8)) ^ (how & SPOIL_LENGTH));
        memcpy(at + FRAME_HEAD, data + 3, n);
        store_le32(at + FRAME_HEAD + n,
                   crc32c_masked(crc32c(0, at + FRAME_HEAD, n)) ^ (how & SPOIL_DATA));
        at += FRAME_BYTES + n;
        data += 3 + n;
        len -= 3 + n;
    }
    *ret_len = (size_t)(at - file);
    return file;
}

static struct tfrecord_file *open_file(const uint8_t *bytes, size_t len, struct memo *memo,
                                       const struct index_store *keep)
{
    struct source_file source = {.name = "a", .file_name = "a", .folder = ""};
    struct format_setup setup = {.keep = keep, .memo = memo};
    struct tfrecord_file *file;
    struct diag d = DIAG_INIT;
    int r;

    source.blob = memory_blob_new("a", bytes, len, len, NULL);
    FUZZ_CHECK(record_file_open(&tfrecord_file_ops, &(struct record_source){&source, 1, 0, &setup},
                                &file, &d) == 0);
    do {
        r = prepared_step(&file->base.prepared, &d);
    } while (r == 0);
    FUZZ_CHECK(r == 1);
    return file;
}

/* ---- what it holds ---- */

/* The bytes of a content, in two pieces. NULL: it cannot be read. */
static uint8_t *read_content(const struct tfrecord_file *file, uint64_t row, unsigned column,
                             size_t len)
{
    uint8_t *bytes = malloc(len ? len : 1);
    size_t cut = len / 3;
    struct diag d = DIAG_INIT;
    int r = 0;

    if (cut)
        r = format_tfrecord.records->read(READ_WAITS, file, row, column, 0, cut, bytes, &d);
    if (r == 0 && len > cut)
        r = format_tfrecord.records->read(READ_WAITS, file, row, column, cut, len - cut,
                                          bytes + cut, &d);
    FUZZ_CHECK(r == 0 || ((r == -EBADMSG || r == -EIO) && d.set));
    if (r == 0)
        return bytes;
    free(bytes);
    return NULL;
}

/* A number by which two files that hold the same are the same. is_ours: no index was forged, so
 * what has a size can be read. */
static uint64_t look_at(const struct tfrecord_file *file, bool is_ours)
{
    const struct record_column *column = file->base.column;
    unsigned n = file->base.n_columns;
    uint64_t rows = file->base.prepared.index.rows, hash = rows;

    for (uint64_t row = 0; row < rows; row++)
        for (unsigned i = 0; i < n; i++) {
            uint64_t dim[RECORD_AXES], at, bytes;
            struct diag d = DIAG_INIT;
            int r = format_tfrecord.records->has(file, row, i)
                        ? format_tfrecord.records->dims(file, row, i, dim, &d)
                        : -ENOENT;
            size_t width = column[i].shown != RECORD_NUMBERS ? 1
                           : column[i].dtype == DTYPE_F4     ? 4
                                                             : 8;
            uint8_t *content = NULL;

            FUZZ_CHECK(r == 0 || r == -ENOENT || ((r == -EBADMSG || r == -EIO) && d.set));
            FUZZ_CHECK(r != -ENOENT || column[i].has_holes || !is_ours);
            hash = hash * 31 + (uint64_t)(r < 0 ? r : 1) + strlen(column[i].name);
            tfrecord_place(file, row, &at, &bytes);
            FUZZ_CHECK(at <= file->base.blob->size && bytes <= file->base.blob->size - at);
            if (r < 0)
                continue;
            FUZZ_CHECK(dim[0] <= bytes);
            if (dim[0] * width <= READ_MAX)
                content = read_content(file, row, i, (size_t)dim[0] * width);
            FUZZ_CHECK(content || !is_ours || dim[0] * width > READ_MAX);
            if (content)
                hash = hash * 31 + fuzz_hash(content, (size_t)dim[0] * width);
            free(content);
        }
    return hash;
}

/* ---- kept indexes ---- */

static void forge(struct memory_keep *keep, uint64_t hash)
{
    size_t at = INDEX_CRC + 4 + (size_t)(hash % (keep->size - INDEX_CRC - 4));

    keep->bytes[at] ^= (uint8_t)(1u << hash % 7 | 128 >> hash % 5);
    store_le32(keep->bytes + INDEX_CRC,
               (uint32_t)crc32(0, keep->bytes + INDEX_CRC + 4, (uInt)(keep->size - INDEX_CRC - 4)));
}

static void look_at_all(const uint8_t *bytes, size_t len, uint64_t hash)
{
    struct memory_keep keep;
    struct memo *memo;
    struct tfrecord_file *file;
    uint64_t made;

    memory_keep_init(&keep, false);
    FUZZ_CHECK(memo_new(1 << 20, &memo) == 0);
    saw_file(&format_tfrecord, "x.tfrecord", bytes, len,
             &(struct format_setup){.keep = &no_store, .memo = memo});
    file = open_file(bytes, len, memo, &keep.keep);
    made = look_at(file, true);
    record_file_drop(&file->base);
    memo_free(memo);
    FUZZ_CHECK(keep.saves == 1);
    for (unsigned i = 0; i < 8; i++) {
        FUZZ_CHECK(memo_new(1 << 20, &memo) == 0);
        file = open_file(bytes, len, memo, &keep.keep);
        FUZZ_CHECK(look_at(file, i == 0) == made || i);
        record_file_drop(&file->base);
        memo_free(memo);
        forge(&keep, hash + i * 0x9e3779b97f4a7c15u);
    }
    memory_keep_release(&keep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE uint8_t *file = NULL;
    size_t size = 0;

    if (!len)
        return 0;
    if (data[0] & 1) {
        look_at_all(data + 1, len - 1, fuzz_hash(data, len));
        return 0;
    }
    file = frames(data + 1, len - 1, &size);
    look_at_all(file, size, fuzz_hash(data, len));
    return 0;
}
