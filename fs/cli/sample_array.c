#include "fs/cli/sample_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/half.h"

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

static float sample_array_load_float(const uint8_t *p)
{
    uint32_t bits = load_le32(p);
    float v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static double load_double(const uint8_t *p)
{
    uint64_t bits = load_le64(p);
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

double sample_array_element(const struct sample_array *a, uint64_t i)
{
    const uint8_t *p = a->bytes + i * a->form.width;

    switch (a->form.dtype) {
    case DTYPE_U1:
    case DTYPE_BOOL:
        return p[0];
    case DTYPE_I1:
        return (int8_t)p[0];
    case DTYPE_I2:
        return (int16_t)load_le16(p);
    case DTYPE_U2:
        return load_le16(p);
    case DTYPE_I4:
        return (int32_t)load_le32(p);
    case DTYPE_U4:
        return load_le32(p);
    case DTYPE_I8:
        return (double)(int64_t)load_le64(p);
    case DTYPE_U8:
        return (double)load_le64(p);
    case DTYPE_F2:
        return half_to_double(load_le16(p));
    case DTYPE_F4:
        return sample_array_load_float(p);
    case DTYPE_F8:
        return load_double(p);
    default:
        return 0;
    }
}
