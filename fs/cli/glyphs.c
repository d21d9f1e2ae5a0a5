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

/* Low to high. */
static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
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

/* ---- bars ---- */

/* The place of v, from 0 to 1, among n steps. */
static unsigned glyphs_step_of(float v, unsigned n)
{
    if (!(v > 0)) /* and NaN */
        return 0;
    return v >= 1 ? n - 1 : (unsigned)(v * (float)(n - 1) + 0.5f);
}

void glyphs_add_bars(const struct glyphs *g, const float *height, unsigned n, struct text *t)
{
    for (unsigned i = 0; i < n; i++)
        text_add(t, "%s",
                 g->unicode ? bars[glyphs_step_of(height[i], ARRAY_LEN(bars))]
                            : ascii[glyphs_step_of(height[i], ARRAY_LEN(ascii))]);
}
