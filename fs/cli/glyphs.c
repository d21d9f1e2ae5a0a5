#include "fs/cli/glyphs.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/scope.h"

#define COLUMNS_USUAL 80
#define COLUMNS_MOST  132
#define GREY_FIRST    232 /* of the 256 colours, dark to light */
#define GREYS         24
#define NO_COLOUR     (-1)

/* Dark to light, and low to high. */
static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* ---- what the terminal can do ---- */

static bool locale_is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool is = locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");

    if (locale)
        freelocale(locale);
    return is;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

/* NO_COLOR: https://no-color.org; the other variables are common practice. */
static bool has_greys(void)
{
    const char *term = getenv("TERM");

    if (is_set("NO_COLOR") || !term || !strcmp(term, "dumb"))
        return false;
    return is_set("COLORTERM") || strstr(term, "256color") || strstr(term, "direct");
}

bool glyphs_init(struct glyphs *ret, int fd)
{
    struct winsize size = {0};

    if (!isatty(fd))
        return false;
    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_col)
        size.ws_col = COLUMNS_USUAL;
    *ret = (struct glyphs){
        .columns = (unsigned)min_u64(size.ws_col, COLUMNS_MOST),
        .unicode = locale_is_utf8(),
        .greys = has_greys(),
    };
    return true;
}

/* ---- pixels and bars ---- */

/* The place of v, from 0 to 1, among n steps. */
static unsigned glyphs_step_of(float v, unsigned n)
{
    if (!(v > 0)) /* and NaN */
        return 0;
    return v >= 1 ? n - 1 : (unsigned)(v * (float)(n - 1) + 0.5f);
}

static void set_colour(int which, int grey, int *has, struct text *t)
{
    if (*has != grey)
        text_add(t, "\033[%d;5;%dm", which, grey);
    *has = grey;
}

/* The upper half block has the foreground colour, the lower half the background colour. */
static void add_greys(const float *upper, const float *lower, unsigned n, struct text *t)
{
    int front = NO_COLOUR, back = NO_COLOUR;

    for (unsigned i = 0; i < n; i++) {
        set_colour(38, GREY_FIRST + (int)glyphs_step_of(upper[i], GREYS), &front, t);
        set_colour(48, GREY_FIRST + (int)glyphs_step_of(lower[i], GREYS), &back, t);
        text_add(t, "%s", "▀");
    }
    text_add(t, "\033[0m");
}

void glyphs_add_pixels(const struct glyphs *g, const float *upper, const float *lower, unsigned n,
                       struct text *t)
{
    if (g->greys && g->unicode) {
        add_greys(upper, lower, n, t);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        float v = (upper[i] + lower[i]) / 2;

        text_add(t, "%s",
                 g->unicode ? shades[glyphs_step_of(v, ARRAY_LEN(shades))]
                            : ascii[glyphs_step_of(v, ARRAY_LEN(ascii))]);
    }
}

void glyphs_add_bars(const struct glyphs *g, const float *height, unsigned n, struct text *t)
{
    for (unsigned i = 0; i < n; i++)
        text_add(t, "%s",
                 g->unicode ? bars[glyphs_step_of(height[i], ARRAY_LEN(bars))]
                            : ascii[glyphs_step_of(height[i], ARRAY_LEN(ascii))]);
}

/* ---- words ---- */

/* Length of the character at bytes, in UTF-8 if the terminal has Unicode; 0: it cannot be shown. */
static size_t character(const struct glyphs *g, const char *bytes, size_t len)
{
    size_t n = text_character(bytes, len);

    return (n > 1 && !g->unicode) || text_command(bytes, len) ? 0 : n;
}

/* Two columns: the main ranges that are wide in Unicode's EastAsianWidth.txt. Sorted. */
static bool is_wide(const char *bytes, size_t n)
{
    static const uint32_t wide[][2] = {
        {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97c},
        {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
        {0xffe0, 0xffe6},   {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f300, 0x1f64f},
        {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
    };
    uint32_t code = (uint8_t)bytes[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((uint8_t)bytes[i] & 0x3fu);
    for (size_t i = 0; n > 2 && i < ARRAY_LEN(wide); i++)
        if (code >= wide[i][0] && code <= wide[i][1])
            return true;
    return false;
}

unsigned glyphs_columns(const struct glyphs *g, const char *bytes, size_t len)
{
    unsigned columns = 0;

    for (size_t at = 0; at < len;) {
        size_t n = character(g, bytes + at, len - at);

        columns += is_wide(bytes + at, n) ? 2 : 1;
        at += n ? n : 1;
    }
    return columns;
}

void glyphs_add_words(const struct glyphs *g, const char *bytes, size_t len, unsigned columns,
                      struct text *t)
{
    for (size_t at = 0; at < len;) {
        size_t n = character(g, bytes + at, len - at);
        unsigned width = is_wide(bytes + at, n) ? 2 : 1;

        if (width > columns)
            break;
        columns -= width;
        if (n)
            text_add_bytes(t, bytes + at, n);
        else
            text_add(t, "?");
        at += n ? n : 1;
    }
    text_add(t, "%*s", (int)columns, "");
}
