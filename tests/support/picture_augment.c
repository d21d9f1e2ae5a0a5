/* Augmented pictures as arrays, for tests in Python:
 *
 *     epochfs-augmented HEIGHT WIDTH SHORT RECIPE SEED EPOCH INDEX POSITION FILE
 *
 * SHORT: 0, or the short side; RECIPE: none, or words. Writes the array to stdout and behind it the
 * box, four floats; or the reason to stderr, and exits with 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/picture/augment.h"

#define FILE_MAX (64 << 20)

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
    AUTO_FREE uint8_t *bytes = malloc(FILE_MAX), *rgb = NULL, *scratch = NULL;
    struct picture_plan plan = {.erased = {124, 116, 104}};
    struct augment_numbers numbers;
    struct augment_done done;
    struct diag d = DIAG_INIT;
    struct picture_file file;
    float box[4];
    size_t size;
    FILE *f;
    int r = 0;

    if (argc != 10 || !bytes)
        return 2;
    plan.height = (uint32_t)number(argv[1]);
    plan.width = (uint32_t)number(argv[2]);
    plan.short_side = (uint32_t)number(argv[3]);
    if (strcmp(argv[4], "none") != 0)
        r = recipe_parse(argv[4], strlen(argv[4]), &plan.recipe, &d);
    numbers = augment_numbers_of(number(argv[5]), number(argv[6]), number(argv[7]), number(argv[8]),
                                 plan.recipe.salt);
    size = (size_t)plan.height * plan.width * 3;
    f = fopen(argv[9], "rb");
    rgb = malloc(size);
    scratch = malloc(size);
    if (!f || !rgb || !scratch)
        return 2;
    file = (struct picture_file){argv[9], bytes, fread(bytes, 1, FILE_MAX, f)};
    fclose(f);
    if (r == 0)
        r = augment_file(
            &file, &plan, &numbers,
            &(struct pixels){
                .rgb = rgb, .scratch = scratch, .height = plan.height, .width = plan.width},
            &done, NULL, &d);
    if (r < 0) {
        fprintf(stderr, "%s\n", diag_text(&d, r));
        return 1;
    }
    augment_box(&plan, &done, box);
    return fwrite(rgb, 1, size, stdout) != size ||
           fwrite(box, 1, sizeof(box), stdout) != sizeof(box);
}
