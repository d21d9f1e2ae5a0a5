/* The numbers need the size of a picture, which its decoder says: so the part is chosen while the
 * picture is decoded. With `base`, the whole picture is scaled into memory first, and the rest is
 * done with that array. */
#include "format/picture/augment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/picture/colour.h"
#include "format/picture/parts.h"

/* One picture that is being made. */
struct augmenting {
    const struct picture_plan *plan;
    const struct augment_numbers *numbers;
    const struct pixels *pixels;
    struct augment_done *done;
    struct picture_cut cut; /* what is decoded: what of the made array is not black */
    struct pixel_rows rows; /* where that is in it */
    bool is_black;          /* nothing is decoded that is shown */
    bool has_base;
    uint8_t *base; /* [done->base_height][done->base_width][3] */
    const char *name;
    struct diag *d;
};

/* ---- which part ---- */

static void augment_choose_rrc(struct augmenting *a)
{
    const struct recipe *recipe = &a->plan->recipe;
    struct augment_done *done = a->done;
    struct box_range range = recipe_box_range(&recipe->crop_scale, &recipe->crop_ratio);

    done->part = box_of_crop(a->numbers, &range, done->base_height, done->base_width);
    done->scaled_height = a->plan->height;
    done->scaled_width = a->plan->width;
    done->start_y = done->start_x = 0;
}

static void augment_choose_cut(struct augmenting *a)
{
    const struct picture_plan *plan = a->plan;
    struct augment_done *done = a->done;
    uint64_t padding = plan->recipe.padding;
    struct picture_cut cut;

    picture_centre_cut(done->base_height, done->base_width, plan->height, plan->width,
                       plan->short_side, &cut);
    done->part = (struct picture_box){0, 0, done->base_height, done->base_width};
    done->scaled_height = cut.scaled_height;
    done->scaled_width = cut.scaled_width;
    done->start_y = (int64_t)cut.start_y;
    done->start_x = (int64_t)cut.start_x;
    if (plan->recipe.part != RECIPE_CROP)
        return;
    done->start_y =
        (int64_t)augment_below(a->numbers, cut.scaled_height + 2 * padding - plan->height + 1,
                               AUGMENT_CROP, 0) -
        (int64_t)padding;
    done->start_x =
        (int64_t)augment_below(a->numbers, cut.scaled_width + 2 * padding - plan->width + 1,
                               AUGMENT_CROP, 1) -
        (int64_t)padding;
}

/* The part of `length` pixels from start on that lies in 0 to scaled - 1. */
static uint32_t augment_inside(int64_t start, uint32_t length, uint64_t scaled, uint64_t *ret_first)
{
    int64_t first = start > 0 ? start : 0, end = start + (int64_t)length;

    end = end < (int64_t)scaled ? end : (int64_t)scaled;
    *ret_first = (uint64_t)first;
    return end > first ? (uint32_t)(end - first) : 0;
}

/* What is decoded is at (y, x) of the made array, before that is flipped: the rest is black. */
static void augment_choose_rows(struct augmenting *a, uint32_t y, uint32_t x)
{
    const struct pixels *p = a->pixels;
    size_t row = (size_t)p->width * 3;

    if (a->cut.made_height < p->height || a->cut.made_width < p->width)
        memset(p->rgb, 0, pixels_count(p) * 3);
    if (a->done->flipped)
        x = p->width - a->cut.made_width - x;
    if (a->done->vflipped)
        y = p->height - 1 - y;
    a->rows =
        (struct pixel_rows){p->rgb + y * row + (size_t)x * 3,
                            a->done->vflipped ? -(ptrdiff_t)row : (ptrdiff_t)row, a->done->flipped};
}

/* Choose the part of a picture, or of what `base` makes of it, and what of it is decoded. */
static void augment_choose_part(struct augmenting *a)
{
    const struct recipe *recipe = &a->plan->recipe;
    struct augment_done *done = a->done;

    done->flipped = recipe->flips &&
                    augment_chance(a->numbers, augment_fixed(recipe->flip, 32), AUGMENT_FLIP, 0);
    done->vflipped = recipe->vflips &&
                     augment_chance(a->numbers, augment_fixed(recipe->vflip, 32), AUGMENT_VFLIP, 0);

    if (recipe->part == RECIPE_RRC)
        augment_choose_rrc(a);
    else
        augment_choose_cut(a);
    a->cut = (struct picture_cut){.top = done->part.top,
                                  .left = done->part.left,
                                  .height = done->part.height,
                                  .width = done->part.width,
                                  .scaled_height = done->scaled_height,
                                  .scaled_width = done->scaled_width};
    a->cut.made_height =
        augment_inside(done->start_y, a->plan->height, done->scaled_height, &a->cut.start_y);
    a->cut.made_width =
        augment_inside(done->start_x, a->plan->width, done->scaled_width, &a->cut.start_x);
    a->is_black = !a->cut.made_height || !a->cut.made_width;
    if (a->is_black) { /* the file is decoded all the same: it may be bad */
        a->cut.start_y = a->cut.start_x = 0;
        a->cut.made_height = a->cut.made_width = 1;
        augment_choose_rows(a, 0, 0);
        return;
    }
    augment_choose_rows(a, (uint32_t)((int64_t)a->cut.start_y - done->start_y),
                        (uint32_t)((int64_t)a->cut.start_x - done->start_x));
}

/* The sizes of the file's picture and of its base are known. 0, -EFBIG, -ENOMEM. */
static int augment_choose_base(struct augmenting *a, uint32_t height, uint32_t width,
                               struct picture_cut *ret)
{
    struct augment_done *done = a->done;
    uint32_t base = a->plan->recipe.base;
    uint64_t bytes;

    done->file_height = done->base_height = height;
    done->file_width = done->base_width = width;
    a->has_base = base && min_u64(height, width) > base;
    if (!a->has_base)
        return 0;
    picture_centre_cut(height, width, base, base, base, ret);
    done->base_height = ret->made_height = (uint32_t)ret->scaled_height;
    done->base_width = ret->made_width = (uint32_t)ret->scaled_width;
    ret->start_y = ret->start_x = 0;
    bytes = (uint64_t)done->base_height * done->base_width * 3;
    if (bytes > PICTURE_MEMORY_MAX)
        return diag_set(a->d, -EFBIG,
                        "%s: expected a picture that base:%u scales to at most %llu bytes, got "
                        "%llu",
                        a->name, base, (unsigned long long)PICTURE_MEMORY_MAX,
                        (unsigned long long)bytes);
    a->base = malloc(bytes);
    return a->base ? 0 : -ENOMEM;
}

static int augment_choose(void *ctx, uint32_t height, uint32_t width, struct picture_cut *ret_cut,
                          struct pixel_rows *ret_rows)
{
    struct augmenting *a = ctx;
    int r = augment_choose_base(a, height, width, ret_cut);

    if (r < 0)
        return r;
    *ret_rows = (struct pixel_rows){a->base, (ptrdiff_t)a->done->base_width * 3, false};
    if (a->has_base)
        return 0;
    augment_choose_part(a);
    *ret_cut = a->cut;
    *ret_rows = a->rows;
    return 0;
}

/* ---- pixels ---- */

static void augment_erase(const struct augmenting *a)
{
    const struct picture_plan *plan = a->plan;
    const struct recipe *recipe = &plan->recipe;
    struct box_range range = recipe_box_range(&recipe->erase_scale, &recipe->erase_ratio);
    struct augment_done *done = a->done;

    if (!augment_chance(a->numbers, augment_fixed(recipe->erase, 32), AUGMENT_ERASE, 0))
        return;
    done->is_erased = box_of_erase(a->numbers, &range, plan->height, plan->width, &done->erased);
    if (done->is_erased)
        pixels_fill(a->pixels, done->erased.top, done->erased.left, done->erased.height,
                    done->erased.width, plan->erased);
}

static void augment_policies(const struct augmenting *a)
{
    const struct recipe *recipe = &a->plan->recipe;
    struct policy_step step[POLICY_STEPS_MAX];
    struct jitter_step jitter[JITTER_STEPS];
    unsigned n = recipe_has_policy(recipe) ? policy_choose(&recipe->policy, a->numbers, step) : 0;

    for (unsigned i = 0; i < n; i++)
        policy_apply(&step[i], a->pixels);
    n = recipe->jitters
            ? jitter_choose(augment_fixed(recipe->jitter, 32),
                            (uint32_t)augment_fixed(recipe->jitter_by, 16), a->numbers, jitter)
            : 0;
    for (unsigned i = 0; i < n; i++)
        jitter_apply(&jitter[i], a->pixels);
}

/* The part is in its place, flipped. */
static void augment_change(const struct augmenting *a)
{
    const struct recipe *recipe = &a->plan->recipe;

    if (a->is_black)
        memset(a->pixels->rgb, 0, pixels_count(a->pixels) * 3);
    augment_policies(a);
    if (recipe->grays &&
        augment_chance(a->numbers, augment_fixed(recipe->gray, 32), AUGMENT_GRAY, 0))
        pixels_gray(a->pixels);
    if (recipe->erases)
        augment_erase(a);
}

static int augment_cut_base(struct augmenting *a)
{
    const struct picture_array base = {.bytes = a->base,
                                       .height = a->done->base_height,
                                       .width = a->done->base_width,
                                       .row_step = (size_t)a->done->base_width * 3,
                                       .pixel_step = 3,
                                       .colour_step = 1};

    augment_choose_part(a);
    return picture_cut_array(&base, &a->cut, &a->rows);
}

/* What is decoded is in its place, or is the base, unless r says that it failed. */
static int augment_finish(struct augmenting *a, int r)
{
    if (r == 0 && a->has_base)
        r = augment_cut_base(a);
    if (r == 0)
        augment_change(a);
    return r;
}

int augment_file(const struct picture_file *file, const struct picture_plan *plan,
                 const struct augment_numbers *n, const struct pixels *ret,
                 struct augment_done *ret_done, struct picture_base *ret_base, struct diag *d)
{
    struct augmenting a = {
        .plan = plan, .numbers = n, .pixels = ret, .done = ret_done, .name = file->name, .d = d};
    int r;

    *ret_done = (struct augment_done){0};
    r = augment_finish(&a,
                       picture_decode_part(file, &(struct picture_chooser){augment_choose, &a}, d));
    if (r == 0 && ret_base)
        *ret_base =
            (struct picture_base){ret_done->file_height, ret_done->file_width,
                                  ret_done->base_height, ret_done->base_width, TAKE_PTR(a.base)};
    free(a.base);
    return r;
}

int augment_base(const struct picture_base *base, const struct picture_plan *plan,
                 const struct augment_numbers *n, const struct pixels *ret,
                 struct augment_done *ret_done)
{
    struct augmenting a = {.plan = plan,
                           .numbers = n,
                           .pixels = ret,
                           .done = ret_done,
                           .has_base = true,
                           .base = base->rgb};

    *ret_done = (struct augment_done){.file_height = base->file_height,
                                      .file_width = base->file_width,
                                      .base_height = base->height,
                                      .base_width = base->width};
    return augment_finish(&a, 0);
}

int augment_array(const struct picture_array *array, const struct picture_plan *plan,
                  const struct augment_numbers *n, const struct pixels *ret,
                  struct augment_done *ret_done, struct diag *d)
{
    struct augmenting a = {
        .plan = plan, .numbers = n, .pixels = ret, .done = ret_done, .name = "array", .d = d};
    struct picture_cut cut;
    struct pixel_rows rows;
    int r;

    *ret_done = (struct augment_done){0};
    r = augment_choose(&a, array->height, array->width, &cut, &rows);
    if (r == 0)
        r = picture_cut_array(array, &cut, &rows);
    r = augment_finish(&a, r);
    free(a.base);
    return r;
}

/* ---- back to the file's picture ---- */

void augment_box(const struct picture_plan *plan, const struct augment_done *done, float ret[4])
{
    double x = (double)done->file_width / done->base_width;
    double y = (double)done->file_height / done->base_height;
    double across = (double)done->part.width / (double)done->scaled_width;
    double down = (double)done->part.height / (double)done->scaled_height;
    double left = (done->part.left + (double)done->start_x * across) * x;
    double top = (done->part.top + (double)done->start_y * down) * y;
    double width = plan->width * across * x, height = plan->height * down * y;

    ret[0] = (float)(done->flipped ? left + width : left);
    ret[1] = (float)(done->vflipped ? top + height : top);
    ret[2] = (float)(done->flipped ? -width : width);
    ret[3] = (float)(done->vflipped ? -height : height);
}

/* One axis: a made pixel to the part, to the base, to the file. */
static int64_t augment_source(int64_t scaled_at, uint64_t first, uint64_t size, uint64_t scaled,
                              uint64_t base, uint64_t file)
{
    uint64_t at;

    if (scaled_at < 0 || (uint64_t)scaled_at >= scaled)
        return -1;
    at = first + (2 * (uint64_t)scaled_at + 1) * size / (2 * scaled);
    return (int64_t)((2 * at + 1) * file / (2 * base));
}

int64_t augment_row(const struct picture_plan *plan, const struct augment_done *done, uint32_t row)
{
    row = done->vflipped ? plan->height - 1 - row : row;
    return augment_source(done->start_y + row, done->part.top, done->part.height,
                          done->scaled_height, done->base_height, done->file_height);
}

int64_t augment_column(const struct picture_plan *plan, const struct augment_done *done,
                       uint32_t column)
{
    column = done->flipped ? plan->width - 1 - column : column;
    return augment_source(done->start_x + column, done->part.left, done->part.width,
                          done->scaled_width, done->base_width, done->file_width);
}
