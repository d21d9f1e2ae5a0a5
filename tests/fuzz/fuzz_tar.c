/* Bytes as a tar archive: the first says whether the checksums are made right, and how many zeros
 * follow. Members do not overlap and are inside of it, names are short; and a walk whose reads fail
 * now and then finds the same. As a shard, it is refused with a reason, or each content can be
 * read, and in two pieces it is the same. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/core/npy_head.h"
#include "format/tar/archive/walk.h"
#include "format/tar/name.h"
#include "format/tar/shard.h"
#include "fuzz.h"
#include "saw.h"
#include "support/libsvm_make.h"
#include "support/memory_blob.h"
#include "support/one_store.h"
#include "support/tar_make.h"

#define READ_MOST 4096
#define MEMBERS   10000 /* a walk ends by then: zeros that are no member end it */

struct walked {
    uint64_t members, hash, end;
    int r;
};

static uint64_t mix(uint64_t hash, uint64_t v)
{
    return (hash ^ v) * UINT64_C(0x9e3779b97f4a7c15);
}

static void check_name(struct tar_member *m)
{
    struct tar_name name;

    FUZZ_CHECK(m->name_len <= TAR_NAME_MAX);
    FUZZ_CHECK(!memchr(m->name, '\0', m->name_len));
    if (tar_name_split(m->name, m->name_len, &name) != TAR_NAME_SAMPLE)
        return;
    FUZZ_CHECK(name.key_len > 0 && name.ext == name.key_len + 1 && name.ext < m->name_len);
    FUZZ_CHECK(m->name[name.key_len] == '.');
    FUZZ_CHECK(m->name[name.key_len - 1] != '/');
    FUZZ_CHECK(!memchr(m->name + name.ext, '/', m->name_len - name.ext));
}

static void check_array(const struct blob *blob, const struct tar_member *m)
{
    uint8_t bytes[1024];
    size_t have = (size_t)min_u64(sizeof(bytes), m->size), len;
    struct npy_head head;

    FUZZ_CHECK(blob_pread(READ_WAITS, blob, bytes, have, m->at) == 0);
    len = npy_head_bytes(bytes, have);
    FUZZ_CHECK(len <= NPY_HEAD_MAX);
    if (!len || len > have || npy_head_parse(bytes, len, m->size, &head, NULL))
        return;
    FUZZ_CHECK(head.bytes == len && head.ndim <= NPY_AXES && head.array_bytes <= m->size - len);
}

/* faults: NULL: no read fails; otherwise every second one. */
static struct walked walk(const struct blob *blob, struct blob_faults *faults)
{
    AUTO(tar_walk_release) struct tar_walk w = {0};
    struct walked result = {0};
    uint64_t after = 0;

    FUZZ_CHECK(tar_walk_init(&w, blob) == 0);
    do {
        struct tar_member m;
        struct diag d = DIAG_INIT;

        if (faults)
            faults->fail_read = faults->reads + 1;
        result.r = tar_walk_next(&w, &m, &d);
        if (result.r == -EIO && faults) {
            faults->fail_read = 0;
            result.r = tar_walk_next(&w, &m, &d);
        }
        FUZZ_CHECK(result.r >= 0 || (result.r == -EBADMSG && d.set));
        if (result.r != 1 || m.type >= TAR_PAX)
            continue;
        FUZZ_CHECK(m.start >= after && m.at >= m.start + TAR_BLOCK && m.at <= blob->size);
        FUZZ_CHECK(m.size <= blob->size - m.at);
        after = m.at + m.size;
        result.hash = mix(mix(mix(result.hash, m.at), m.size), fuzz_hash(m.name, m.name_len));
        result.members++;
        check_name(&m);
        if (!faults)
            check_array(blob, &m);
    } while (result.r == 1 && result.members < MEMBERS);
    result.end = w.end;
    FUZZ_CHECK(w.end <= blob->size);
    return result;
}

static void check_content(const struct tar_shard *shard, uint64_t row, unsigned i)
{
    const struct record_column *column = &shard->column[i];
    bool numbers = column->shown == RECORD_NUMBERS;
    uint64_t bytes = numbers ? dtype_info(column->dtype)->bytes : 1, dim[RECORD_AXES];
    uint8_t whole[READ_MOST], pieces[READ_MOST];
    struct diag d = DIAG_INIT;
    struct extent e;

    memcpy(dim, column->dim, sizeof(dim));
    if (format_tar.records->dims(shard, row, i, dim, &d) < 0) {
        FUZZ_CHECK(d.set);
        return;
    }
    for (unsigned k = 0; k < (numbers ? column->ndim : 1); k++)
        FUZZ_CHECK(checked_mul(bytes, dim[k], &bytes));
    FUZZ_CHECK(bytes <= shard->base.blob->size);
    if (format_tar.records->extent(shard, row, i, &e))
        FUZZ_CHECK(e.off <= shard->base.blob->size && e.len <= shard->base.blob->size - e.off);
    bytes = min_u64(bytes, READ_MOST);
    if (bytes < 2)
        return;
    FUZZ_CHECK(format_tar.records->read(READ_WAITS, shard, row, i, 0, (size_t)bytes, whole, NULL) ==
               0);
    FUZZ_CHECK(format_tar.records->read(READ_WAITS, shard, row, i, 0, 1, pieces, NULL) == 0);
    FUZZ_CHECK(format_tar.records->read(READ_WAITS, shard, row, i, 1, (size_t)bytes - 1, pieces + 1,
                                        NULL) == 0);
    FUZZ_CHECK(!memcmp(whole, pieces, (size_t)bytes));
}

/* Takes blob over. */
static void check_shard(struct blob *blob)
{
    struct memory_keep keep;
    const struct format_setup setup = {.keep = &keep.keep};
    struct source_file source = {.name = "x", .file_name = "x", .folder = "", .blob = blob};
    struct tar_shard *shard;
    struct diag d = DIAG_INIT;
    int r;

    memory_keep_init(&keep, true);
    r = record_file_open(&tar_shard_ops, &(struct record_source){&source, 1, 0, &setup}, &shard,
                         &d);
    if (r == 0) {
        do
            r = prepared_step(&shard->base.prepared, &d);
        while (r == 0);
        for (uint64_t row = 0; r == 1 && row < min_u64(shard->base.prepared.index.rows, 100); row++)
            for (unsigned i = 0; i < shard->base.n_columns; i++)
                if (format_tar.records->has(shard, row, i))
                    check_content(shard, row, i);
        record_file_drop(&shard->base);
    }
    FUZZ_CHECK(r == 1 || (r == -EBADMSG && d.set));
    memory_keep_release(&keep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct blob_faults faults = {0};
    AUTO_FREE uint8_t *bytes = NULL;
    AUTO_BLOB struct blob *blob = NULL;
    struct walked first, second;
    uint8_t way;

    if (!len)
        return 0;
    way = *data++;
    len--;
    bytes = malloc(len + 1);
    memcpy(bytes, data, len);
    for (size_t at = 0; way & 1 && at + TAR_BLOCK <= len; at += TAR_BLOCK)
        if (bytes[at])
            tar_make_sum(bytes + at);
    saw_file(&format_tar, "x.tar", bytes, len, &(struct format_setup){.keep = &no_store});
    blob = memory_blob_new("x.tar", bytes, len, len + (uint64_t)(way >> 1) * 100, &faults);
    first = walk(blob, NULL);
    second = walk(blob, &faults);
    FUZZ_CHECK(first.r == second.r && first.hash == second.hash && first.end == second.end &&
               first.members == second.members);
    faults.fail_read = 0;
    check_shard(TAKE_PTR(blob));
    return 0;
}
