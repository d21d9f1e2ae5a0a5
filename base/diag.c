#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int diag_set(struct diag *d, int err, const char *format, ...)
{
    va_list args;

    if (!d || d->set)
        return err;
    va_start(args, format);
    vsnprintf(d->text, sizeof(d->text), format, args);
    va_end(args);
    text_plain(d->text, "\n");
    d->set = true;
    return err;
}

const char *diag_text(const struct diag *d, int err)
{
    return d && d->set ? d->text : strerror(-err);
}
