/* Bytes as the list of a remote that was kept in the cache folder, of somebody who means harm:
 * magic and hash are made right. Whatever comes out, names stay below SOURCE, files are found where
 * they are, and versions are texts that end. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cache/http/url.h"
#include "cache/source/joined.h"
#include "cache/source/kept_pages.h"
#include "cache/stage/transport.h"
#include "fuzz.h"

#define HEAD 16 /* magic and hash */

static void check_file(const struct members *m, size_t i)
{
    const char *folder = members_folder_of(m, i);
    struct remote_version version;
    char path[4 * PATH_MAX];

    if (members_path(m, i, path, sizeof(path)) == 0 && strlen(path) < PATH_MAX)
        FUZZ_CHECK(!name_wrong(path) && !name_hidden(path));
    FUZZ_CHECK(members_lookup(m, folder, strlen(folder), members_name(m, i)) == i);
    if (joined_version_get(m, i, &version))
        FUZZ_CHECK(version.size == members_size(m, i) &&
                   memchr(version.etag, '\0', sizeof(version.etag)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const uint64_t magic = UINT64_C(0x0153454741504645);
    AUTO_KEPT_PAGES struct kept_pages pages = {.bytes = {malloc(HEAD + len), HEAD + len}};
    uint64_t hash = XXH3_64bits(data, len);

    FUZZ_CHECK(pages.bytes.bytes);
    memcpy(pages.bytes.bytes, &magic, 8);
    memcpy(pages.bytes.bytes + 8, &hash, 8);
    memcpy(pages.bytes.bytes + HEAD, data, len);
    if (kept_pages_parse(&pages) < 0)
        return 0;
    for (size_t i = 0; i < pages.n; i++)
        FUZZ_CHECK(kept_pages_find(&pages, kept_page_text(&pages, i)) == i);
    for (size_t i = 0; i < pages.files.n; i++)
        check_file(&pages.files, i);
    return 0;
}
