/* What the numbers of samples choose, for tests in Python:
 *
 *   epochfs-augment SAMPLES HEIGHT WIDTH
 *
 * prints a line of 32-bit integers in native order for each sample 0, 1, ... of seed 7 and epoch 0:
 * the box of a crop (top, left, height, width), flip, vflip, erased (0 or 1) and the box (4), then
 * three steps of four (operation or -1, level, levels, negative): trivial, the two of rand; then
 * the two of auto for each of its three tables. */
#include <stdio.h>
#include <stdlib.h>

#include "format/picture/boxes.h"
#include "format/picture/policy.h"

#define SEED      7
#define STEP_INTS 4
#define STEPS     9
#define INTS      (4 + 2 + 5 + STEPS * STEP_INTS)
#define HALF      (UINT64_C(1) << 31)
#define MILLION   1000000
#define SHARE(v)  augment_fixed(v, 16)
#define RATIO(v)  augment_fixed(v, 28)

static int32_t *add_steps(const struct policy *policy, const struct augment_numbers *n,
                          unsigned count, int32_t *at)
{
    struct policy_step steps[POLICY_STEPS_MAX];
    unsigned chosen = policy_choose(policy, n, steps);

    for (unsigned i = 0; i < count; i++, at += STEP_INTS) {
        at[0] = i < chosen ? (int32_t)steps[i].op : -1;
        at[1] = i < chosen ? (int32_t)steps[i].level : 0;
        at[2] = i < chosen ? (int32_t)steps[i].levels : 0;
        at[3] = i < chosen && steps[i].negative;
    }
    return at;
}

static int32_t *add_box(const struct picture_box *box, int32_t *at)
{
    at[0] = (int32_t)box->top;
    at[1] = (int32_t)box->left;
    at[2] = (int32_t)box->height;
    at[3] = (int32_t)box->width;
    return at + 4;
}

static void choose(const struct augment_numbers *n, uint32_t height, uint32_t width, int32_t *at)
{
    const struct box_range crop = {SHARE(80000), SHARE(MILLION), RATIO(750000), RATIO(1333333)};
    const struct box_range erase = {SHARE(20000), SHARE(330000), RATIO(300000), RATIO(3300000)};
    struct picture_box box = box_of_crop(n, &crop, height, width);

    at = add_box(&box, at);
    *at++ = augment_chance(n, HALF, AUGMENT_FLIP, 0);
    *at++ = augment_chance(n, HALF, AUGMENT_VFLIP, 0);
    box = (struct picture_box){0};
    *at++ = box_of_erase(n, &erase, height, width, &box);
    at = add_box(&box, at);
    at = add_steps(&(struct policy){.type = POLICY_TRIVIAL}, n, 1, at);
    at = add_steps(&(struct policy){POLICY_RAND, 0, 2, 9}, n, 2, at);
    for (enum policy_table table = POLICY_IMAGENET; table <= POLICY_SVHN; table++)
        at = add_steps(&(struct policy){.type = POLICY_AUTO, .table = table}, n, 2, at);
}

int main(int argc, char **argv)
{
    unsigned long samples, height, width;

    if (argc != 4)
        return 2;
    samples = strtoul(argv[1], NULL, 10);
    height = strtoul(argv[2], NULL, 10);
    width = strtoul(argv[3], NULL, 10);
    if (!height || !width || height > 4096 || width > 4096)
        return 2;
    for (unsigned long i = 0; i < samples; i++) {
        struct augment_numbers n = augment_numbers_of(SEED, 0, i, i, 0);
        int32_t line[INTS];

        choose(&n, (uint32_t)height, (uint32_t)width, line);
        if (fwrite(line, sizeof(line), 1, stdout) != 1)
            return 1;
    }
    return fflush(stdout) ? 1 : 0;
}
