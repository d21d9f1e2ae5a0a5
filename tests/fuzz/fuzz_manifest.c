/* Bytes as a line of a manifest, and what it names looked up among a few files: whatever they are,
 * labels are texts, and a file that is found is one of them. */
#include <errno.h>
#include <string.h>

#include "base/diag.h"
#include "format/files/claim/lookup.h"
#include "format/files/claim/manifests.h"
#include "fuzz.h"

static void fill(struct members *m)
{
    static const struct {
        const char *folder, *name;
    } files[] = {{"set", "a.jpg"}, {"set/train", "1.JPEG"}, {"set/train", "a.jpg"}};
    const uint64_t version[2] = {0};

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        uint32_t folder = m->n_folders - 1;

        if (!i || strcmp(members_folder(m, folder), files[i].folder) != 0)
            FUZZ_CHECK(members_add_folder(m, files[i].folder, &folder) == 0);
        FUZZ_CHECK(members_add(m, folder, files[i].name, 7, version) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    AUTO_MANIFEST_LINE struct manifest_line line = {0};
    AUTO_MEMBERS struct members m = {0};
    struct diag d = DIAG_INIT;
    size_t sum = 0, found;
    int r;

    if (len)
        memcpy(bytes, data, len);
    r = manifest_head_says(bytes, len, true, false);
    FUZZ_CHECK(r == 0 || r == 1 || r == -ENOMEM);
    FUZZ_CHECK(r != 1 || manifest_head_says(bytes, len, true, true) == 1);
    r = manifest_line_parse(&line, bytes, len, "line", &d);
    FUZZ_CHECK(r == 0 || r == -ENOMEM || (r == -EBADMSG && d.set));
    fuzz_saw(&r, sizeof(r));
    if (r < 0)
        return 0;
    FUZZ_CHECK(*line.source && *line.usage && line.n <= MANIFEST_LABELS_MAX);
    fuzz_saw(line.source, strlen(line.source));
    fuzz_saw(line.usage, strlen(line.usage));
    for (size_t i = 0; i < line.n; i++) {
        sum += strlen(line.label[i]);
        fuzz_saw(line.label[i], strlen(line.label[i]));
    }
    FUZZ_CHECK(sum <= 6 * len);
    fill(&m);
    found = manifest_find(&m, "set", "set/train", line.source);
    FUZZ_CHECK(found <= m.n);
    if (found < m.n) {
        const char *name = members_name(&m, found), *at = strstr(line.source, name);

        FUZZ_CHECK(at && strlen(line.source) >= strlen(name));
    }
    return 0;
}
