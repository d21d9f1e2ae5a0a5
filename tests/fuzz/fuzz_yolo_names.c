/* Bytes as names of YOLO's classes, the first byte says in which kind of file: each number has one
 * name, and a name is UTF-8 and not empty. */
#include <errno.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "format/annotations/boxes.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *name = len && data[0] & 1 ? "obj.names" : "data.yaml";
    AUTO_FREE uint8_t *bytes = malloc(len ? len : 1); /* of that size, for ASan */
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    struct diag d = DIAG_INIT;
    int r;

    if (!len--)
        return 0;
    memcpy(bytes, data + 1, len);
    r = yolo_names(bytes, len, name, &classes, &d);
    FUZZ_CHECK(r == 0 || r == -ENOMEM || (r == -EBADMSG && d.set));
    FUZZ_CHECK(r == 0 || !classes.n);
    fuzz_saw(&r, sizeof(r));
    for (size_t i = 0; i < classes.n; i++) {
        const char *s = classes.item[i].name;
        size_t n = strlen(s);

        FUZZ_CHECK(!i || classes.item[i - 1].number < classes.item[i].number);
        FUZZ_CHECK(n && n <= BOX_NAME_MAX);
        fuzz_saw(s, n);
        fuzz_saw(&classes.item[i].number, sizeof(classes.item[i].number));
        for (size_t k = 0; k < n; k += text_character(s + k, n - k))
            FUZZ_CHECK(text_character(s + k, n - k) > 0);
    }
    return 0;
}
