/* Bytes as the README.md of a repository: whatever it is, what is made of it is a recipe. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "format/files/claim/recipe_parts.h"
#include "fuzz.h"

static const char *const files[][2] = {
    {"", "a.csv"},     {"data", "en-00000-of-00001.csv"}, {"data", "train-0.csv"},
    {"data", "x.png"}, {"data/b", "train-1.csv"},         {"data/b", "{x}.csv"}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *bytes = malloc(len ? len : 1), *text = NULL; /* of that size, for ASan */
    AUTO_MEMBERS struct members m = {0};
    struct claims claims = {0};
    struct search s = {.m = &m, .claims = &claims};
    struct recipe recipe = {0};
    uint32_t folder = 0;
    struct diag d = DIAG_INIT;
    int r;

    memcpy(bytes, data, len);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (!i || strcmp(files[i][0], files[i - 1][0]) != 0)
            FUZZ_CHECK(members_add_folder(&m, files[i][0], &folder) == 0);
        FUZZ_CHECK(members_add(&m, folder, files[i][1], 9, (const uint64_t[2]){1, 2}) == 0);
    }
    FUZZ_CHECK(members_sort(&m) == 0);
    s.flags = calloc(m.n + 1, 1);
    FUZZ_CHECK(s.flags);
    counts_make(&s);
    r = card_recipe(&s, bytes, len, &text);
    FUZZ_CHECK(r == 0 || (r == -ENOMEM && !text));
    if (text) {
        fuzz_saw(text, strlen(text));
        FUZZ_CHECK(recipe_read(&recipe, "README.md", text, strlen(text), &d) == 0);
        recipe_release(&recipe);
    }
    if (claims.note)
        fuzz_saw(claims.note, strlen(claims.note));
    free(claims.note);
    free(s.flags);
    counts_free(&s);
    return 0;
}
