/* Bytes as a recipe, or after a NUL as the text of normalize=. A good recipe is printed as one that
 * means the same; its boxes lie inside of pictures of all shapes; and a picture that is made by it
 * has its pixels, the same ones each time. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "format/picture/augment.h"
#include "format/picture/normalize.h"
#include "fuzz.h"

#define SIDE 9

static void check_printed(const struct recipe *recipe)
{
    AUTO_TEXT struct text t = {0}, again = {0};
    struct recipe same;

    recipe_print(recipe, &t);
    FUZZ_CHECK(t.data && recipe_parse(t.data, t.len, &same, NULL) == 0);
    recipe_print(&same, &again);
    FUZZ_CHECK(t.len == again.len && !memcmp(t.data, again.data, t.len));
}

static void check_boxes(const struct recipe *recipe, uint64_t seed)
{
    static const uint32_t sides[] = {1, 2, 7, 375, 16384};

    for (size_t i = 0; i < ARRAY_LEN(sides) * ARRAY_LEN(sides); i++) {
        uint32_t h = sides[i / ARRAY_LEN(sides)], w = sides[i % ARRAY_LEN(sides)];
        struct augment_numbers n = augment_numbers_of(seed, i, 0, 0, recipe->salt);
        struct box_range crop = recipe_box_range(&recipe->crop_scale, &recipe->crop_ratio);
        struct box_range hole = recipe_box_range(&recipe->erase_scale, &recipe->erase_ratio);
        struct picture_box box;

        if (recipe->part == RECIPE_RRC) {
            box = box_of_crop(&n, &crop, h, w);
            FUZZ_CHECK(box.height && box.width && box.height <= h && box.width <= w);
            FUZZ_CHECK(box.top <= h - box.height && box.left <= w - box.width);
        }
        if (recipe->erases && box_of_erase(&n, &hole, h, w, &box))
            FUZZ_CHECK(box.height < h && box.width < w && box.top <= h - box.height &&
                       box.left <= w - box.width);
    }
}

static void check_picture(const struct recipe *recipe, const uint8_t *bytes, size_t len)
{
    uint8_t source[(SIDE + 2) * SIDE * 3], made[2][SIDE * SIDE * 3], scratch[SIDE * SIDE * 3];
    const struct picture_array array = {source, SIDE + 2, SIDE, SIDE * 3ul, 3, 1};
    struct picture_plan plan = {.height = SIDE, .width = SIDE - 2, .recipe = *recipe};

    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(bytes[i % len] + i);
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        struct augment_numbers n = augment_numbers_of(len, bytes[0], 1, 2, recipe->salt);
        struct pixels pixels = {
            .rgb = made[i], .scratch = scratch, .height = SIDE, .width = SIDE - 2};
        struct augment_done done;

        FUZZ_CHECK(augment_array(&array, &plan, &n, &pixels, &done, NULL) == 0);
    }
    FUZZ_CHECK(!memcmp(made[0], made[1], SIDE * (SIDE - 2) * 3));
}

static void check_normalize(const char *text)
{
    struct normalize n;

    if (normalize_parse(text, &n, NULL) < 0)
        return;
    FUZZ_CHECK(n.channels == 1 || n.channels == NORMALIZE_CHANNELS);
    for (unsigned c = 0; c < NORMALIZE_CHANNELS; c++)
        FUZZ_CHECK(n.mean[c] >= 0 && n.mean[c] <= 1 && n.std[c] > 0 && n.std[c] <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    AUTO_FREE char *text = calloc(len + 1, 1);
    struct recipe recipe;
    size_t first;

    FUZZ_CHECK(text);
    memcpy(text, bytes, len);
    first = strlen(text);
    if (first < len)
        check_normalize(text + first + 1);
    if (recipe_parse(text, first, &recipe, NULL) < 0)
        return 0;
    check_printed(&recipe);
    check_boxes(&recipe, len);
    check_picture(&recipe, bytes, len);
    return 0;
}
