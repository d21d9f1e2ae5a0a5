/* The fields determine what is drawn: the first field with axes is the picture, and fields without
 * axes are the caption. A picture in colours comes before all others, and is drawn grey. An array
 * of two axes or more is a panel of pixels, several side by side. An array of one axis is a line of
 * bars; so are audio and the rows of a sparse matrix.
 *
 * Only the first samples are read, and at most READ_MOST of each. */
#include "fs/cli/drawing.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "format/core/sound_head.h"
#include "fs/cli/lengths.h"
#include "fs/cli/sample_array.h"
#include "fs/tree/pages.h"

#define INDENT        4
#define GAP           2  /* columns between two panels */
#define PANELS        8  /* at most */
#define PANEL_HEIGHT  20 /* pixels, two in a line */
#define PANEL_WIDTH   64
#define TIME_WIDTH    36 /* pixels, of a matrix whose first axis is time */
#define CAPTION_WIDTH 20 /* columns at least, more if the panel is wider */
#define BARS          64 /* at most */
#define BAR_LINES     5
#define WORDS_MOST    40         /* columns of the text before bars */
#define READ_MOST     (8u << 20) /* bytes of one array */
#define SOUND_MOST    (1u << 20) /* bytes of one file of audio, of which the beginning is drawn */
#define TEXT_MOST     400        /* bytes of one text */

/* ---- captions ---- */

static void caption_add(const struct dataset *ds, const struct field *f, uint64_t sample,
                        struct text *t)
{
    AUTO_SAMPLE_ARRAY struct sample_array a = {0};
    struct diag d = DIAG_INIT;

    if (sample_array_read(ds, f, sample, TEXT_MOST, &a, &d) < 0) {
        text_add(t, "  %s ?", f->name);
        return;
    }
    if ((a.form.ndim && !lengths_is_text_file(f)) || !a.n)
        return;
    if (!a.form.ndim && a.form.dtype != DTYPE_TEXT) {
        text_add(t, "  %s %.6g", f->name, sample_array_element(&a, 0));
        return;
    }
    while (a.n && (a.bytes[a.n - 1] == '\0' || a.bytes[a.n - 1] == '\n'))
        a.n--;
    text_add(t, "  ");
    text_add_bytes(t, (const char *)a.bytes, a.n);
}

/* A file of text, but JSON only where there is nothing else to show. */
static bool is_caption(const struct dataset *ds, const struct field *f)
{
    unsigned others = 0;

    for (unsigned i = 0; i < ds->n_fields; i++)
        others += &ds->field[i] != f && page_shows(&ds->field[i]) && !ds->field[i].derived &&
                  ds->field[i].ndim;
    return lengths_is_text_file(f) && (!others || !strstr(f->name, "json"));
}

/* Add the key of a sample, and its numbers and text. */
static void caption(const struct dataset *ds, uint64_t sample, struct text *t)
{
    char key[KEY_NAME_SIZE];

    dataset_name(ds, sample, false, key);
    text_add(t, "%s", key);
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];

        if (page_shows(f) && !f->derived && (!f->ndim || is_caption(ds, f)) &&
            dataset_has(ds, sample, f))
            caption_add(ds, f, sample, t);
    }
}

/* ---- panels ---- */

#define COLOURS 3

/* A rectangle of an array: the first element of (x, y) is origin + x * step_x + y * step_y. */
struct plane {
    uint64_t width, height;
    uint64_t origin;
    int64_t step_x, step_y;
    unsigned more; /* elements of (x, y) behind the first */
};

struct panel {
    unsigned width, height; /* pixels */
    unsigned columns;       /* with the caption below */
    struct text caption;
    float pixel[PANEL_HEIGHT * PANEL_WIDTH];
};

/* A picture with an axis of colours, which may be one grey; in some records its first axis may be
 * 0. */
static bool is_colour(const struct field *f)
{
    return f->dtype == DTYPE_U1 && f->ndim == 3 && (f->dim[2] == COLOURS || f->dim[2] == 1);
}

/* Is its first axis time? Then time runs to the right, and the second axis upwards. Any other array
 * is drawn as stored. */
static bool is_timed(const struct field *f)
{
    return f->ndim && f->dim[0] == DIM_VARIES && !is_colour(f);
}

/* The last two axes of the array, those of colours aside, as far as it was read. */
static void plane_of(const struct field *f, const struct sample_array *a, struct plane *ret)
{
    unsigned each = is_colour(f) ? (unsigned)f->dim[2] : 1;
    unsigned last = a->form.ndim - (is_colour(f) ? 2 : 1);
    uint64_t columns = a->form.dim[last], step = columns * each;
    uint64_t rows = columns ? min_u64(a->form.dim[last - 1], a->n / step) : 0;

    if (is_timed(f))
        *ret = (struct plane){rows, columns, columns ? columns - 1 : 0, (int64_t)columns, -1, 0};
    else
        *ret = (struct plane){columns, rows, 0, each, (int64_t)step, each - 1};
}

/* The mean of the numbers between two corners; NaN: there is none. */
static float mean(const struct sample_array *a, const struct plane *p, const uint64_t x[static 2],
                  const uint64_t y[static 2])
{
    double sum = 0;
    uint64_t n = 0;

    for (uint64_t j = y[0]; j < y[1]; j++)
        for (uint64_t i = x[0]; i < x[1]; i++) {
            int64_t at = (int64_t)p->origin + (int64_t)i * p->step_x + (int64_t)j * p->step_y;

            for (unsigned c = 0; c <= p->more; c++) {
                double v = sample_array_element(a, (uint64_t)at + c);

                if (isfinite(v)) {
                    sum += v;
                    n++;
                }
            }
        }
    return n ? (float)(sum / (double)n) : NAN;
}

/* Part i of n of an axis; none is empty, because n is at most length. */
static void drawing_cut(uint64_t length, unsigned i, unsigned n, uint64_t ret[static 2])
{
    ret[0] = length * i / n;
    ret[1] = length * (i + 1) / n;
}

static void shrink(const struct sample_array *a, const struct plane *p, struct panel *ret)
{
    uint64_t x[2], y[2];

    for (unsigned j = 0; j < ret->height; j++) {
        drawing_cut(p->height, j, ret->height, y);
        for (unsigned i = 0; i < ret->width; i++) {
            drawing_cut(p->width, i, ret->width, x);
            ret->pixel[j * ret->width + i] = mean(a, p, x, y);
        }
    }
}

/* Scale to 0 .. 1: bytes from their full range, other numbers from their minimum and maximum. */
static void drawing_stretch(float *v, unsigned n, bool are_bytes)
{
    float least = are_bytes ? 0 : INFINITY, most = are_bytes ? UINT8_MAX : -INFINITY;

    for (unsigned i = 0; i < n && !are_bytes; i++) {
        least = fminf(least, v[i]);
        most = fmaxf(most, v[i]);
    }
    for (unsigned i = 0; i < n; i++)
        v[i] = most > least && isfinite(v[i]) ? (v[i] - least) / (most - least) : 0;
}

/* The size of a panel: never larger than the plane, with its proportions unless one axis is time.
 */
static void panel_size(const struct field *f, const struct plane *p, unsigned capacity,
                       struct panel *ret)
{
    uint64_t widest = min_u64(is_timed(f) ? TIME_WIDTH : PANEL_WIDTH, capacity);
    double down = fmax((double)p->height / PANEL_HEIGHT, (double)p->width / (double)widest);
    double by = is_timed(f) ? 1 : fmax(down, 1);

    ret->width = (unsigned)min_u64((uint64_t)((double)p->width / by), widest);
    ret->height = (unsigned)min_u64((uint64_t)((double)p->height / by), PANEL_HEIGHT);
    ret->width = ret->width ? ret->width : 1;
    ret->height = ret->height ? ret->height : 1;
    ret->columns = (unsigned)max_u64(ret->width, CAPTION_WIDTH);
}

/* Draw one sample into a panel of up to capacity columns; an array without elements gives no
 * pixels. 0 or -errno. */
static int panel_draw(const struct dataset *ds, const struct field *f, uint64_t sample,
                      unsigned capacity, struct panel *ret, struct diag *d)
{
    AUTO_SAMPLE_ARRAY struct sample_array a = {0};
    struct plane p;
    int r = sample_array_read(ds, f, sample, READ_MOST, &a, d);

    if (r < 0)
        return r;
    *ret = (struct panel){.columns = CAPTION_WIDTH};
    plane_of(f, &a, &p);
    if (p.width && p.height) {
        panel_size(f, &p, capacity, ret);
        shrink(&a, &p, ret);
        drawing_stretch(ret->pixel, ret->width * ret->height, a.form.dtype == DTYPE_U1);
    }
    caption(ds, sample, &ret->caption);
    return 0;
}

/* Add line number `line` of a panel. */
static void panel_line(const struct glyphs *g, const struct panel *p, unsigned line, struct text *t)
{
    static const float nothing[PANEL_WIDTH];
    unsigned y = 2 * line;
    unsigned width = y < p->height ? p->width : 0;

    if (width)
        glyphs_add_pixels(g, p->pixel + y * width,
                          y + 1 < p->height ? p->pixel + (y + 1) * width : nothing, width, t);
    text_add(t, "%*s", (int)(p->columns - width), "");
}

static void add_panels(const struct glyphs *g, const struct panel *panel, unsigned n,
                       struct text *t)
{
    unsigned lines = 0;

    for (unsigned i = 0; i < n; i++)
        lines = (unsigned)max_u64(lines, (panel[i].height + 1) / 2);
    for (unsigned line = 0; line < lines; line++) {
        for (unsigned i = 0; i < n; i++) {
            text_add(t, "%*s", i ? GAP : INDENT, "");
            panel_line(g, &panel[i], line, t);
        }
        text_add(t, "\n");
    }
    for (unsigned i = 0; i < n; i++) {
        text_add(t, "%*s", i ? GAP : INDENT, "");
        glyphs_add_words(g, panel[i].caption.data, panel[i].caption.len, panel[i].columns, t);
    }
    text_add(t, "\n");
}

/* Draw as many of the first samples, side by side, as fit. */
static int draw_panels(const struct dataset *ds, const struct field *f, const struct glyphs *g,
                       struct text *t, struct diag *d)
{
    unsigned n = 0, left = g->columns - INDENT;
    struct panel panel[PANELS];
    int r = 0;

    while (n < min_u64(PANELS, ds->samples) && left) {
        r = panel_draw(ds, f, n, g->columns - INDENT, &panel[n], d);
        if (r < 0)
            break;
        if (panel[n].columns > left) {
            text_release(&panel[n].caption);
            break;
        }
        left -= (unsigned)min_u64(panel[n++].columns + GAP, left);
    }
    if (n)
        add_panels(g, panel, n, t);
    for (unsigned i = 0; i < n; i++)
        text_release(&panel[i].caption);
    return r;
}

/* ---- lines of bars ---- */

struct line {
    struct text caption;
    unsigned n; /* bars */
    float height[BARS];
};

/* Divide by the maximum, unless that is 0. */
static void level(float *v, unsigned n)
{
    float most = 0;

    for (unsigned i = 0; i < n; i++)
        most = fmaxf(most, v[i]);
    for (unsigned i = 0; i < n && most > 0; i++)
        v[i] = isfinite(v[i]) ? v[i] / most : 0;
}

/* The loudest of each part. */
static int draw_audio(const struct dataset *ds, const struct field *f, uint64_t sample,
                      struct line *ret, struct diag *d)
{
    AUTO_SAMPLE_ARRAY struct sample_array a = {0};
    int r = sample_array_read(ds, f, sample, READ_MOST, &a, d);

    if (r < 0)
        return r;
    ret->n = (unsigned)min_u64(ret->n, a.n);
    for (unsigned i = 0; i < ret->n; i++) {
        uint64_t part[2];

        drawing_cut(a.n, i, ret->n, part);
        ret->height[i] = 0;
        for (uint64_t k = part[0]; k < part[1]; k++)
            ret->height[i] = fmaxf(ret->height[i], (float)fabs(sample_array_element(&a, k)));
    }
    level(ret->height, ret->n);
    return 0;
}

/* The same of a file of audio; what is no such file has no bars. */
static int draw_sound(const struct dataset *ds, const struct field *f, uint64_t sample,
                      struct line *ret, struct diag *d)
{
    AUTO_SAMPLE_ARRAY struct sample_array a = {0};
    struct sound_head head;
    unsigned most = ret->n;
    uint64_t n;
    int r = sample_array_read(ds, f, sample, SOUND_MOST, &a, d);

    ret->n = 0;
    if (r < 0 || !sound_head_read(a.bytes, a.n, &head))
        return r;
    n = head.size / head.width;
    ret->n = (unsigned)min_u64(most, n);
    for (unsigned i = 0; i < ret->n; i++) {
        uint64_t part[2];

        drawing_cut(n, i, ret->n, part);
        ret->height[i] = 0;
        for (uint64_t k = part[0]; k < part[1]; k++) {
            double v = fabs(sound_sample(&head, a.bytes + head.data + k * head.width));

            ret->height[i] = fmaxf(ret->height[i], isfinite(v) ? (float)v : 0);
        }
    }
    level(ret->height, ret->n);
    return 0;
}

/* The means of a vector's parts. */
static int draw_vector(const struct dataset *ds, const struct field *f, uint64_t sample,
                       struct line *ret, struct diag *d)
{
    AUTO_SAMPLE_ARRAY struct sample_array a = {0};
    int r = sample_array_read(ds, f, sample, READ_MOST, &a, d);
    const struct plane p = {.width = a.n, .height = 1, .step_x = 1};
    const uint64_t whole[2] = {0, 1};

    if (r < 0)
        return r;
    ret->n = (unsigned)min_u64(ret->n, a.n);
    for (unsigned i = 0; i < ret->n; i++) {
        uint64_t part[2];

        drawing_cut(a.n, i, ret->n, part);
        ret->height[i] = mean(&a, &p, part, whole);
    }
    drawing_stretch(ret->height, ret->n, false);
    return 0;
}

/* The largest feature of each part of a row of `features`. */
static int draw_row(const struct dataset *ds, const struct field *values, uint64_t sample,
                    struct line *ret, struct diag *d)
{
    AUTO_SAMPLE_ARRAY struct sample_array value = {0}, index = {0};
    uint64_t features = dataset_field(ds, "x")->dim[0];
    int r = sample_array_read(ds, values, sample, READ_MOST, &value, d);

    if (r == 0)
        r = sample_array_read(ds, dataset_field(ds, "indices"), sample, READ_MOST, &index, d);
    if (r < 0)
        return r;
    ret->n = (unsigned)min_u64(ret->n, features);
    for (unsigned i = 0; i < ret->n; i++)
        ret->height[i] = 0;
    for (uint64_t k = 0; k < min_u64(value.n, index.n); k++) {
        double place = sample_array_element(&index, k) / (double)features * ret->n;
        unsigned i = (unsigned)min_u64((uint64_t)place, ret->n - 1);

        ret->height[i] = fmaxf(ret->height[i], (float)fabs(sample_array_element(&value, k)));
    }
    level(ret->height, ret->n);
    return 0;
}

/* Make up to ret->n bars of one sample. 0 or -errno. */
typedef int draw_fn(const struct dataset *ds, const struct field *f, uint64_t sample,
                    struct line *ret, struct diag *d);

static void drawing_add_line(const struct glyphs *g, const struct line *line, unsigned words,
                             struct text *t)
{
    text_add(t, "%*s", INDENT, "");
    glyphs_add_words(g, line->caption.data, line->caption.len, words, t);
    text_add(t, "%*s", GAP, "");
    glyphs_add_bars(g, line->height, line->n, t);
    text_add(t, "\n");
}

/* Draw a line for each of the first samples. draw NULL: they have no axes, only text. */
static int draw_lines(const struct dataset *ds, const struct field *f, draw_fn *draw,
                      const struct glyphs *g, struct text *t, struct diag *d)
{
    unsigned n = 0, words = 0, widest = g->columns - INDENT - GAP;
    struct line line[BAR_LINES];
    int r = 0;

    if (draw)
        widest = (unsigned)min_u64(widest / 2, WORDS_MOST);
    while (n < min_u64(BAR_LINES, ds->samples) && r == 0) {
        line[n] = (struct line){.n = (unsigned)min_u64(g->columns - INDENT - GAP - widest, BARS)};
        if (draw)
            r = draw(ds, f, n, &line[n], d);
        else
            line[n].n = 0;
        if (r < 0)
            break;
        caption(ds, n, &line[n].caption);
        words =
            (unsigned)max_u64(words, glyphs_columns(g, line[n].caption.data, line[n].caption.len));
        n++;
    }
    words = (unsigned)min_u64(words, widest);
    for (unsigned i = 0; i < n; i++) {
        drawing_add_line(g, &line[i], words, t);
        text_release(&line[i].caption);
    }
    return r;
}

/* ---- what is drawn ---- */

static bool drawing_is_sparse(const struct field *f)
{
    return f && f->form == FORM_WHOLE;
}

/* Audio also offers its bytes as .wav. */
static bool is_audio(const struct dataset *ds, const struct field *f)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (!strcmp(ds->field[i].name, f->name) && !strcmp(ds->field[i].ext, "wav"))
            return true;
    return false;
}

/* Thumbnails, otherwise the first picture in colours, or the first field with axes that is not a
 * row of a matrix, nor text. NULL: there is none. */
static const struct field *field_with_axes(const struct dataset *ds)
{
    const struct field *first = NULL;

    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_is_in(&ds->field[i], IN_PREVIEW))
            return &ds->field[i];
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];

        if (!page_shows(f) || f->derived || f->dtype == DTYPE_TEXT || !f->ndim ||
            dtype_info(f->dtype)->letter == 'c')
            continue;
        if (is_colour(f))
            return f;
        if (!lengths_is_text_file(f))
            first =
                !first || (lengths_is_sound_file(f) && !lengths_is_sound_file(first)) ? f : first;
    }
    return first;
}

void drawing_add(const struct dataset *ds, const struct glyphs *glyphs, struct text *t)
{
    const struct field *values = dataset_field(ds, "data"), *f = field_with_axes(ds);
    struct diag d = DIAG_INIT;
    int r;

    if (!ds->samples || glyphs->columns < INDENT + CAPTION_WIDTH + GAP)
        return;
    text_add(t, "\n");
    if (drawing_is_sparse(values))
        r = draw_lines(ds, values, draw_row, glyphs, t, &d);
    else if (!f)
        r = draw_lines(ds, NULL, NULL, glyphs, t, &d);
    else if (lengths_is_sound_file(f))
        r = draw_lines(ds, f, draw_sound, glyphs, t, &d);
    else if (is_audio(ds, f))
        r = draw_lines(ds, f, draw_audio, glyphs, t, &d);
    else if (f->ndim == 1)
        r = draw_lines(ds, f, draw_vector, glyphs, t, &d);
    else
        r = draw_panels(ds, f, glyphs, t, &d);
    if (r < 0)
        text_add(t, "%*s(not drawn: %s)\n", INDENT, "", diag_text(&d, r));
    lengths_add(ds, glyphs, t);
}
