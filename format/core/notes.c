#include "format/core/notes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"

#define CUT " ..."

/* The bytes of a line of len bytes that are kept: all, or those up to the end of a word. */
static size_t kept_bytes(const char *line, size_t len)
{
    size_t most = NOTE_SIZE - strlen(CUT), n = most;

    if (len <= NOTE_SIZE)
        return len;
    while (n && line[n] != ' ')
        n--;
    for (n = n ? n : most; (line[n] & 0xc0) == 0x80; n--) /* never inside a character */
        ;
    return n;
}

static void notes_add_line(struct notes *notes, const char *line, size_t len)
{
    size_t n = kept_bytes(line, len);

    if (!len || notes->n++ >= NOTES_MAX)
        return;
    text_add_bytes(&notes->text, line, n);
    text_add(&notes->text, "%s\n", n < len ? CUT : "");
}

void notes_add(struct notes *notes, const char *format, ...)
{
    AUTO_FREE char *text = NULL;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = len < 0 ? NULL : malloc((size_t)len + 1);
    if (!text)
        return;
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    text_plain(text, "\n");
    for (const char *line = text; *line; line += *line == '\n') {
        size_t n = strcspn(line, "\n");

        notes_add_line(notes, line, n);
        line += n;
    }
}

void notes_show(const struct notes *notes, struct text *t)
{
    if (notes->text.data)
        text_add_bytes(t, notes->text.data, notes->text.len);
    if (notes->n > NOTES_MAX)
        text_add(t, "and %zu more notes\n", notes->n - NOTES_MAX);
}

void notes_release(struct notes *notes)
{
    text_release(&notes->text);
    notes->n = 0;
}

int missing_parts_add(struct missing_parts *missing, const char *name, const char *reason)
{
    struct missing_part part = {0};
    size_t len = strlen(name);

    if (!strncmp(reason, name, len) && !strncmp(reason + len, ": ", 2)) /* it is shown once */
        reason += len + 2;
    if (missing->n >= MISSING_PARTS_MAX) {
        missing->n++;
        return 0;
    }
    if (array_capacity(&missing->part, missing->n, sizeof(part)) < 0)
        return -ENOMEM;
    part = (struct missing_part){strdup(name), strdup(reason)};
    missing->part[missing->n++] = part;
    if (!part.name || !part.reason)
        return -ENOMEM;
    text_plain(part.name, "");
    text_plain(part.reason, "");
    return 0;
}

void missing_parts_show(const struct missing_parts *missing, size_t most, struct text *t)
{
    size_t n = min_u64(most, missing_parts_kept(missing));

    for (size_t i = 0; i < n; i++)
        text_add(t, "%s: %s\n", missing->part[i].name, missing->part[i].reason);
    if (missing->n > n)
        text_add(t, "and %zu more\n", missing->n - n);
}

void missing_parts_release(struct missing_parts *missing)
{
    for (size_t i = 0; i < missing_parts_kept(missing); i++) {
        free(missing->part[i].name);
        free(missing->part[i].reason);
    }
    free(missing->part);
    *missing = (struct missing_parts){0};
}
