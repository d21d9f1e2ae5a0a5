/* The fields determine what is drawn: the first field with axes is the picture, and fields without
 * axes are the caption. A picture in colours comes before all others. An array of two axes or more
 * is a panel of pixels, several side by side. An array of one axis is a line of bars; so are audio
 * and the rows of a sparse matrix. python/epochfs/_drawing.py draws.
 *
 * Only the first samples are read, and at most READ_MOST of each. */
#include "fs/cli/drawing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/audio/audio.h"
#include "fs/cli/commands.h"
#include "fs/cli/python.h"
#include "fs/tree/pages.h"

#define INDENT        4
#define GAP           2  /* columns between two panels */
#define PANELS        8  /* at most */
#define PANEL_HEIGHT  20 /* pixels, two in a line */
#define PANEL_WIDTH   64
#define TIME_WIDTH    36 /* pixels, of a matrix whose first axis is time */
#define CAPTION_WIDTH 20 /* columns at least, more if the panel is wider */
#define LINES         5
#define READ_MOST     (8u << 20) /* bytes of one array */
#define SOUND_MOST    (1u << 20) /* bytes of one file of audio, of which the beginning is drawn */
#define TEXT_MOST     400        /* bytes of one text */
#define MEASURED      10000      /* samples whose lengths are asked for */
#define MEASURED_MOST 2          /* fields */

typedef unsigned long long ull;

/* What the tool gets: a line of JSON, and the bytes that it speaks of. */
struct drawing {
    const struct dataset *ds;
    const struct glyphs *glyphs;
    struct text json, bytes;
};

/* ---- which fields ---- */

/* Is it a file with one of those extensions? A list ends with NULL. */
static bool has_extension(const struct field *f, const char *const *known)
{
    const char *dot = strrchr(f->name, '.'), *ext = *f->ext ? f->ext : dot ? dot + 1 : f->name;

    for (; f->dtype == DTYPE_U1 && f->ndim == 1 && f->dim[0] == DIM_VARIES && *known; known++)
        if (!strcmp(ext, *known))
            return true;
    return false;
}

static bool is_text_file(const struct field *f)
{
    static const char *const known[] = {"txt", "text", "caption", "json", "jsonl", NULL};

    return has_extension(f, known);
}

static bool is_sound_file(const struct field *f)
{
    static const char *const known[] = {"wav", "sph", NULL};

    return has_extension(f, known);
}

/* A picture with an axis of colours, which may be one grey; in some records its first axis may be
 * 0. */
static bool is_colour(const struct field *f)
{
    return f->dtype == DTYPE_U1 && f->ndim == 3 && (f->dim[2] == 3 || f->dim[2] == 1);
}

static bool is_shown(const struct field *f)
{
    return page_shows(f) && !f->derived;
}

/* A number or a text, or a file of text, but JSON only where there is nothing else to show. */
static bool is_caption(const struct dataset *ds, const struct field *f)
{
    unsigned others = 0;

    for (unsigned i = 0; i < ds->n_fields; i++)
        others += &ds->field[i] != f && is_shown(&ds->field[i]) && ds->field[i].ndim;
    return is_shown(f) && (!f->ndim || (is_text_file(f) && (!others || !strstr(f->name, "json"))));
}

/* Thumbnails, or the first picture in colours, or the first field with axes that is not a row
 * of a matrix, nor text. NULL: there is none. */
static const struct field *field_with_axes(const struct dataset *ds)
{
    const struct field *first = NULL;

    for (unsigned i = 0; i < ds->n_fields; i++)
        if (field_is_in(&ds->field[i], IN_PREVIEW))
            return &ds->field[i];
    for (unsigned i = 0; i < ds->n_fields; i++) {
        const struct field *f = &ds->field[i];

        if (!is_shown(f) || f->dtype == DTYPE_TEXT || !f->ndim ||
            dtype_info(f->dtype)->letter == 'c')
            continue;
        if (is_colour(f))
            return f;
        if (!is_text_file(f) && (!first || (is_sound_file(f) && !is_sound_file(first))))
            first = f;
    }
    return first;
}

/* Audio also offers its bytes as .wav. */
static bool is_audio(const struct dataset *ds, const struct field *f)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (!strcmp(ds->field[i].name, f->name) && !strcmp(ds->field[i].ext, "wav"))
            return true;
    return false;
}

/* ---- samples ---- */

/* Add the array of a field, or as many of its elements as fit in `most` bytes. 0 or -errno. */
static int drawing_read(const struct drawing *drawn, const struct field *f, uint64_t sample,
                        uint64_t most, struct form *ret, struct text *t, struct diag *d)
{
    AUTO_FREE uint8_t *bytes = NULL;
    struct one_sample one;
    uint64_t n;
    int r;

    one_sample_init(&one, sample);
    one.sel.reason = d;
    r = field_form(drawn->ds, f, &one.sel, ret, &n);
    if (r < 0)
        return r;
    if (ret->dtype != DTYPE_TEXT)
        most -= most % ret->width;
    n = min_u64(n, most);
    bytes = malloc(n + 1);
    if (!bytes)
        return -ENOMEM;
    if (n)
        r = f->ops->read(READ_WAITS, drawn->ds, f, &one.sel, 0, n, bytes, d);
    if (r == 0)
        text_add_bytes(t, (const char *)bytes, n);
    return r == 0 && t->failed ? -ENOMEM : r;
}

/* Add an array to the bytes, and a member that describes it. */
static int drawing_add_array(struct drawing *drawn, const char *name, const struct field *f,
                             uint64_t sample, struct form *ret, struct diag *d)
{
    size_t before = drawn->bytes.len;
    char descr[DTYPE_DESCR_SIZE];
    int r = drawing_read(drawn, f, sample, READ_MOST, ret, &drawn->bytes, d);

    if (r < 0)
        return r;
    dtype_descr(ret->dtype, ret->width, false, descr);
    text_add(&drawn->json, ", \"%s\": [\"%s\", %zu]", name, descr, drawn->bytes.len - before);
    return 0;
}

/* Add the key of a sample, and its numbers and text. */
static void drawing_add_caption(struct drawing *drawn, uint64_t sample)
{
    size_t before = drawn->bytes.len;
    struct text *t = &drawn->bytes;
    char key[KEY_NAME_SIZE];

    dataset_name(drawn->ds, sample, false, key);
    text_add(t, "%s", key);
    for (unsigned i = 0; i < drawn->ds->n_fields; i++) {
        const struct field *f = &drawn->ds->field[i];
        AUTO_TEXT struct text a = {0};
        struct diag d = DIAG_INIT;
        struct form form;

        if (!is_caption(drawn->ds, f) || !dataset_has(drawn->ds, sample, f))
            continue;
        if (drawing_read(drawn, f, sample, TEXT_MOST, &form, &a, &d) < 0) {
            text_add(t, "  %s ?", f->name);
        } else if (a.len && !form.ndim && form.dtype != DTYPE_TEXT) {
            text_add(t, "  %s %.6g", f->name, dtype_real(form.dtype, (const uint8_t *)a.data));
        } else if (a.len) {
            while (a.len && (a.data[a.len - 1] == '\0' || a.data[a.len - 1] == '\n'))
                a.len--;
            text_add(t, "  ");
            text_add_bytes(t, a.data, a.len);
        }
    }
    text_add(&drawn->json, ", \"caption\": %zu}", drawn->bytes.len - before);
}

/* Is its first axis time? Then time runs to the right, and the second axis upwards. Any other array
 * is drawn as stored: its last two axes, those of colours aside. The size of a panel is never
 * larger than these, with their proportions unless one axis is time. Returns its columns. */
static unsigned drawing_add_size(struct drawing *drawn, const struct field *f,
                                 const struct form *form, uint64_t n)
{
    bool colour = is_colour(f), timed = f->ndim && f->dim[0] == DIM_VARIES && !colour;
    uint64_t each = colour ? f->dim[2] : 1, columns = form->dim[form->ndim - (colour ? 2 : 1)];
    uint64_t rows = columns ? min_u64(form->dim[form->ndim - (colour ? 3 : 2)],
                                      n / form->width / columns / each)
                            : 0;
    uint64_t width = timed ? rows : columns, height = timed ? columns : rows;
    uint64_t most = min_u64(timed ? TIME_WIDTH : PANEL_WIDTH, drawn->glyphs->columns - INDENT);
    double down = fmax((double)height / PANEL_HEIGHT, (double)width / (double)most);
    double by = timed ? 1 : fmax(down, 1);
    uint64_t panel_width = 0, panel_height = 0;

    if (width && height) {
        panel_width = max_u64(min_u64((uint64_t)((double)width / by), most), 1);
        panel_height = max_u64(min_u64((uint64_t)((double)height / by), PANEL_HEIGHT), 1);
    }
    text_add(&drawn->json,
             ", \"rows\": %llu, \"columns\": %llu, \"each\": %llu, \"timed\": %d, \"width\": %llu, "
             "\"height\": %llu",
             (ull)rows, (ull)columns, (ull)each, timed, (ull)panel_width, (ull)panel_height);
    return (unsigned)max_u64(panel_width, CAPTION_WIDTH);
}

/* As many of the first samples, side by side, as fit. */
static int drawing_add_panels(struct drawing *drawn, const struct field *f, struct diag *d)
{
    unsigned left = drawn->glyphs->columns - INDENT;
    int r = 0;

    for (unsigned i = 0; i < min_u64(PANELS, drawn->ds->samples) && left; i++) {
        size_t json = drawn->json.len, bytes = drawn->bytes.len;
        struct form form;
        unsigned columns;

        text_add(&drawn->json, "%s{\"sample\": %u", i ? ", " : "", i);
        r = drawing_add_array(drawn, "array", f, i, &form, d);
        columns = r < 0 ? UINT32_MAX : drawing_add_size(drawn, f, &form, drawn->bytes.len - bytes);
        if (columns > left) { /* it is not shown */
            drawn->json.len = json;
            drawn->bytes.len = bytes;
            break;
        }
        drawing_add_caption(drawn, i);
        left -= (unsigned)min_u64(columns + GAP, left);
    }
    return r;
}

/* read() of struct audio_file; ctx: the bytes. */
static int sound_bytes(void *ctx, uint64_t off, void *dst, size_t len, struct diag *d)
{
    (void)d;
    memcpy(dst, ((const struct text *)ctx)->data + off, len);
    return 0;
}

/* The samples of a file of audio as float32; what is no such file has none. */
static int drawing_add_sound(struct drawing *drawn, const struct field *f, uint64_t sample,
                             struct diag *d)
{
    static const struct audio_spec mono = {.mono = true};
    AUTO_TEXT struct text a = {0};
    AUTO_FREE float *samples = NULL;
    struct audio_info info = {0};
    struct form form;
    int r = drawing_read(drawn, f, sample, SOUND_MOST, &form, &a, d);
    const struct audio_file file = {f->name, a.len, sound_bytes, &a};
    size_t n = 0;

    if (r == 0 && audio_measure(&file, &info, NULL) == 0)
        n = (size_t)min_u64(info.frames, SOUND_MOST);
    samples = n ? malloc(n * sizeof(*samples)) : NULL;
    if (!samples ||
        audio_make(&file, &mono, &info, &(struct audio_part){.frames = n}, samples, NULL))
        n = 0;
    if (n)
        text_add_bytes(&drawn->bytes, (const char *)samples, n * sizeof(*samples));
    text_add(&drawn->json, ", \"array\": [\"<f4\", %zu]", n * sizeof(float));
    return r;
}

/* A line for each of the first samples. f NULL: they have no axes, only text. */
static int drawing_add_lines(struct drawing *drawn, const char *drawn_as, const struct field *f,
                             struct diag *d)
{
    int r = 0;

    for (unsigned i = 0; i < min_u64(LINES, drawn->ds->samples); i++) {
        size_t json = drawn->json.len, bytes = drawn->bytes.len;
        struct form form;

        text_add(&drawn->json, "%s{\"sample\": %u", i ? ", " : "", i);
        if (f)
            r = !strcmp(drawn_as, "sound") ? drawing_add_sound(drawn, f, i, d)
                                           : drawing_add_array(drawn, "array", f, i, &form, d);
        if (r == 0 && !strcmp(drawn_as, "row"))
            r = drawing_add_array(drawn, "index", dataset_field(drawn->ds, "indices"), i, &form, d);
        if (r < 0) {
            drawn->json.len = json;
            drawn->bytes.len = bytes;
            break;
        }
        drawing_add_caption(drawn, i);
    }
    return r;
}

/* ---- lengths ---- */

/* Text: bytes. An array: its longest axis, which is that of time in audio. 0: the sample has none.
 */
static uint64_t drawing_length(const struct dataset *ds, const struct field *f, uint64_t sample)
{
    struct one_sample one;
    struct form form;
    uint64_t bytes, longest = 0;

    one_sample_init(&one, sample);
    if (!dataset_has(ds, sample, f) || field_form(ds, f, &one.sel, &form, &bytes) < 0)
        return 0;
    for (unsigned i = 0; i < form.ndim; i++)
        longest = max_u64(longest, form.dim[i]);
    return form.dtype == DTYPE_TEXT ? bytes : longest;
}

/* The lengths of the first fields whose items differ in it. Files but those of text have sizes that
 * say little. Evenly spaced samples count where there are many. Reads nothing of the source. */
static void drawing_add_lengths(struct drawing *drawn)
{
    const struct dataset *ds = drawn->ds;
    uint64_t asked = min_u64(ds->samples, MEASURED);
    unsigned shown = 0;

    for (unsigned i = 0; i < ds->n_fields && shown < MEASURED_MOST; i++) {
        const struct field *f = &ds->field[i];
        bool is_file = f->dtype == DTYPE_U1 && f->ndim == 1, is_text = f->dtype == DTYPE_TEXT;
        uint64_t least = UINT64_MAX, most = 0;
        size_t before = drawn->json.len;

        if (!is_shown(f) || f->numbering || (is_text && f->ndim) ||
            (!is_text && (!f->ndim || f->dim[0] != DIM_VARIES || (is_file && !is_text_file(f)))))
            continue;
        json_open(&drawn->json, NULL, NULL, "{");
        json_add_text(&drawn->json, NULL, "name", f->name);
        text_add(&drawn->json, ", \"are_bytes\": %d, \"lengths\": [0", is_file || is_text);
        for (uint64_t k = 0; k < asked; k++) {
            uint64_t length = drawing_length(
                ds, f, k * (ds->samples / asked) + k * (ds->samples % asked) / asked);

            text_add(&drawn->json, ", %llu", (ull)length);
            least = min_u64(least, length ? length : least);
            most = max_u64(most, length);
        }
        text_add(&drawn->json, "]}");
        if (least < most && (!is_text || most > 32)) /* others are names, or as long */
            shown++;
        else
            drawn->json.len = before;
    }
}

bool drawing_add(const struct dataset *ds, const struct glyphs *glyphs, struct text *t)
{
    const struct field *values = dataset_field(ds, "data"), *f = field_with_axes(ds);
    bool is_sparse = values && values->form == FORM_WHOLE;
    const char *drawn_as = is_sparse          ? "row"
                           : !f               ? "words"
                           : is_sound_file(f) ? "sound"
                           : is_audio(ds, f)  ? "audio"
                           : f->ndim == 1     ? "vector"
                                              : "panels";
    struct drawing drawn = {.ds = ds, .glyphs = glyphs};
    struct diag d = DIAG_INIT;
    bool good;
    int r;

    if (!ds->samples || glyphs->columns < INDENT + CAPTION_WIDTH + GAP)
        return true;
    text_add(&drawn.json,
             "{\"screen\": %u, \"unicode\": %d, \"greys\": %d, \"kind\": \"%s\", \"features\": "
             "%llu, \"samples\": [",
             glyphs->columns, glyphs->unicode, glyphs->greys, drawn_as,
             is_sparse ? (ull)dataset_field(ds, "x")->dim[0] : 0);
    r = !strcmp(drawn_as, "panels")
            ? drawing_add_panels(&drawn, f, &d)
            : drawing_add_lines(&drawn, drawn_as, is_sparse ? values : f, &d);
    text_add(&drawn.json, "], \"error\": ");
    text_add_json(&drawn.json, r < 0 ? diag_text(&d, r) : NULL);
    text_add(&drawn.json, ", \"lengths\": [");
    drawing_add_lengths(&drawn);
    text_add(&drawn.json, "]}\n");
    text_add_bytes(&drawn.json, drawn.bytes.data ? drawn.bytes.data : "", drawn.bytes.len);
    drawn.json.failed |= drawn.bytes.failed;
    good = python_run("drawing", &drawn.json, t) == EXIT_DONE;
    text_release(&drawn.json);
    text_release(&drawn.bytes);
    return good;
}
