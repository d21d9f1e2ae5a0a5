/* Random boxes, compared with those of a reference in Python. */
#include "format/picture/boxes.h"
#include "support/unit.h"

#include "base/scope.h"

static const struct box_range crop = {5243, 65536, 201326592, 357913852};
static const struct box_range erased = {1311, 21627, 80530637, 885837005};

/* top, left, height, width */
static void expect_box(const struct picture_box *box, const uint32_t want[4])
{
    assert_int_equal(box->top, want[0]);
    assert_int_equal(box->left, want[1]);
    assert_int_equal(box->height, want[2]);
    assert_int_equal(box->width, want[3]);
}

static const struct {
    uint64_t seed, epoch, index, position, salt;
    uint32_t wide[4], tall[4], erased[4]; /* of 375 x 500, 480 x 100, 224 x 224 */
} vectors[] = {
    {0, 0, 0, 0, 0, {11, 68, 361, 413}, {119, 3, 73, 97}, {23, 124, 188, 85}},
    {7, 0, 0, 0, 0, {148, 275, 183, 161}, {298, 15, 93, 82}, {4, 71, 48, 153}},
    {7, 0, 5, 1, 0, {26, 28, 292, 369}, {291, 5, 75, 82}, {51, 113, 26, 83}},
    {7, 3, 2, 17, 0, {8, 44, 342, 342}, {239, 11, 103, 79}, {33, 128, 56, 85}},
    {7, 1000000000000, 40, 123456789, 0, {0, 19, 284, 377}, {34, 7, 84, 72}, {137, 72, 82, 66}},
    {UINT64_MAX,
     1,
     (UINT64_C(1) << 48) - 1,
     UINT64_C(1) << 40,
     0,
     {7, 9, 364, 446},
     {408, 12, 70, 78},
     {27, 139, 82, 55}},
};

UNIT_TEST(test_boxes__vectors__equal)
{
    struct augment_numbers salted = augment_numbers_of(7, 0, 0, 0, 1);
    struct picture_box box = box_of_crop(&salted, &crop, 375, 500);

    expect_box(&box, (const uint32_t[]){19, 71, 340, 278});
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct augment_numbers n =
            augment_numbers_of(vectors[i].seed, vectors[i].epoch, vectors[i].index,
                               vectors[i].position, vectors[i].salt);

        box = box_of_crop(&n, &crop, 375, 500);
        expect_box(&box, vectors[i].wide);
        box = box_of_crop(&n, &crop, 480, 100);
        expect_box(&box, vectors[i].tall);
        assert_true(box_of_erase(&n, &erased, 224, 224, &box));
        expect_box(&box, vectors[i].erased);
    }
}

UNIT_TEST(test_boxes__smallest_and_largest__inside)
{
    struct augment_numbers n = augment_numbers_of(7, 0, 0, 0, 0);
    struct picture_box box = box_of_crop(&n, &crop, 1, 1);

    expect_box(&box, (const uint32_t[]){0, 0, 1, 1});
    box = box_of_crop(&n, &crop, 16384, 16384);
    expect_box(&box, (const uint32_t[]){7277, 8337, 6925, 6102});
    box = box_of_crop(&n, &crop, 1, 65535);
    expect_box(&box, (const uint32_t[]){0, 32767, 1, 1});
    assert_true(box_of_erase(&n, &erased, 1, 1, &box)); /* nothing is smaller than one pixel */
    assert_int_equal(box.height * box.width, 0);
}

/* Ratios that no box of a strip has: its middle, never an empty one. */
UNIT_TEST(test_boxes__strips_and_extreme_ratios__never_empty)
{
    const struct box_range flat = {1, 65536, UINT64_C(15) << 28, UINT64_C(15) << 28};
    const struct box_range tall = {1, 65536, UINT64_C(1) << 24, UINT64_C(1) << 24};

    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct augment_numbers n = augment_numbers_of(seed, 0, 0, 0, 0);
        uint32_t side = (uint32_t)(seed % 40 + 1);
        struct picture_box boxes[] = {
            box_of_crop(&n, &flat, side, 1),
            box_of_crop(&n, &flat, 1, side),
            box_of_crop(&n, &tall, side, 1),
            box_of_crop(&n, &tall, 1, side),
            box_of_crop(&n, &tall, 1u << 14, 1u << 14),
        };

        for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
            assert_true(boxes[i].height && boxes[i].width);
            if (i < 4)
                assert_true(boxes[i].top + boxes[i].height <= (i % 2 ? 1 : side) &&
                            boxes[i].left + boxes[i].width <= (i % 2 ? side : 1));
        }
    }
}
