#include "fs/cli/sample_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

void sample_array_release(struct sample_array *a)
{
    free(a->bytes);
}

int sample_array_read(const struct dataset *ds, const struct field *f, uint64_t sample,
                      uint64_t most, struct sample_array *ret, struct diag *d)
{
    AUTO_SAMPLE_ARRAY struct sample_array a = {0};
    struct one_sample one;
    uint64_t bytes;
    int r;

    one_sample_init(&one, sample);
    one.sel.reason = d;
    r = field_form(ds, f, &one.sel, &a.form, &bytes);
    if (r < 0)
        return r;
    if (a.form.dtype != DTYPE_TEXT)
        most -= most % a.form.width;
    bytes = min_u64(bytes, most);
    a.n = a.form.dtype == DTYPE_TEXT ? bytes : bytes / a.form.width;
    a.bytes = malloc(bytes ? bytes : 1);
    if (!a.bytes)
        return -ENOMEM;
    if (bytes)
        r = f->ops->read(READ_WAITS, ds, f, &one.sel, 0, bytes, a.bytes, d);
    if (r < 0)
        return r;
    *ret = a;
    a.bytes = NULL;
    return 0;
}

double sample_array_element(const struct sample_array *a, uint64_t i)
{
    return dtype_real(a->form.dtype, a->bytes + i * a->form.width);
}
