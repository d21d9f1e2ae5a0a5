/* Bytes as a zip archive of files: it is refused with a reason, or each file of its listing is read
 * with as many bytes as it has, the same ones when it is read in pieces, or is an error with a
 * reason. Reads that fail now and then change nothing but that. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "format/zip/archive.h"
#include "fuzz.h"
#include "saw.h"
#include "support/memory_blob.h"

#define READ_MOST 4096

static void check_listing(const struct members *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *name = members_name(m, i);

        FUZZ_CHECK(*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
        FUZZ_CHECK(!strchr(name, '/') && !strchr(name, '\\'));
        FUZZ_CHECK(members_is_below(members_folder_of(m, i), "top"));
    }
}

static void check_contents(const struct blob *blob, const struct members *m)
{
    for (size_t i = 0; i < m->n && i < 50; i++) {
        size_t len = (size_t)min_u64(members_size(m, i), READ_MOST);
        uint64_t at = m->member[i].place;
        uint8_t whole[READ_MOST], half[READ_MOST];
        struct diag d = DIAG_INIT;
        int r = len ? blob_read(READ_WAITS, blob, whole, len, at, &d) : 0;

        FUZZ_CHECK(r == 0 || (d.set && (r == -EBADMSG || r == -EIO)));
        fuzz_saw(members_name(m, i), strlen(members_name(m, i)));
        fuzz_saw(&r, sizeof(r));
        saw_numbers(d.text);
        fuzz_saw(whole, r == 0 ? len : 0);
        if (r == 0 && len > 1) {
            FUZZ_CHECK(blob_read(READ_WAITS, blob, half, len / 2, at + len - len / 2, NULL) == 0);
            FUZZ_CHECK(!memcmp(half, whole + len - len / 2, len / 2));
        }
    }
}

static void open_archive(const uint8_t *data, size_t len, struct memo *memo, uint64_t fail_read)
{
    struct blob_faults faults = {.fail_read = fail_read};
    struct blob *blob = memory_blob_new("x.zip", data, len, len, &faults);
    const struct format_setup setup = {.memo = memo};
    AUTO_ZIP_ARCHIVE struct zip_archive *archive = NULL;
    AUTO(zip_listing_release) struct zip_listing list = {.n_aside = 0};
    AUTO_BLOB struct blob *view = NULL;
    const struct members *files = NULL;
    struct diag d = DIAG_INIT;
    bool small = true;
    int r;

    FUZZ_CHECK(zip_archive_new(blob, &setup, &archive) == 0);
    r = zip_list(blob, "top/x", "x", &list, &d);
    saw_number((uint64_t)r);
    saw_numbers(d.text);
    if (r < 0) {
        FUZZ_CHECK(d.set);
        return;
    }
    faults.fail_read = 0;
    saw_number(list.n_aside);
    check_listing(&list.files);
    for (size_t i = 0; i < list.files.n; i++)
        small = small && zip_listed(&list.files, i).method <= ZIP_DEFLATED &&
                members_size(&list.files, i) < 1 << 20;
    if (small && zip_view_new(archive, &list.files, &view, &files, &d) == 0)
        check_contents(view, files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint64_t way = fuzz_hash(data, len);
    struct memo *memo;

    FUZZ_CHECK(memo_new(1 << 20, &memo) == 0);
    open_archive(data, len, memo, 0);
    if (fuzz_takes(way, 0, 2))
        open_archive(data, len, memo, 1 + way % 7);
    memo_free(memo);
    return 0;
}
