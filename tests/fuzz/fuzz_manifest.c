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
    AUTO_JSON json_t *line = NULL;
    const char *source, *usage;
    const json_t *annotation;
    AUTO_MEMBERS struct members m = {0};
    struct diag d = DIAG_INIT;
    size_t sum = 0, found;
    int r;

    if (len)
        memcpy(bytes, data, len);
    r = manifest_head_says(bytes, len, true, false);
    FUZZ_CHECK(r == 0 || r == 1 || r == -ENOMEM);
    FUZZ_CHECK(r != 1 || manifest_head_says(bytes, len, true, true) == 1);
    r = manifest_line_read(bytes, len, "line", &line, &d);
    FUZZ_CHECK(r == 0 || r == -ENOMEM || (r == -EBADMSG && d.set));
    fuzz_saw(&r, sizeof(r));
    if (r < 0)
        return 0;
    source = json_string_value(json_object_get(line, "source"));
    usage = json_string_value(json_object_get(line, "usage"));
    annotation = json_object_get(line, "annotation");
    FUZZ_CHECK(*source && *usage && json_array_size(annotation) <= MANIFEST_LABELS_MAX);
    fuzz_saw(source, strlen(source));
    fuzz_saw(usage, strlen(usage));
    for (size_t i = 0; i < json_array_size(annotation); i++) {
        const char *label =
            json_string_value(json_object_get(json_array_get(annotation, i), "name"));

        sum += strlen(label);
        fuzz_saw(label, strlen(label));
    }
    FUZZ_CHECK(sum <= 6 * len);
    fill(&m);
    found = manifest_find(&m, "set", "set/train", source);
    FUZZ_CHECK(found <= m.n);
    if (found < m.n) {
        const char *name = members_name(&m, found), *at = strstr(source, name);

        FUZZ_CHECK(at && strlen(source) >= strlen(name));
    }
    return 0;
}
