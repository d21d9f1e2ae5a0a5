#include "format/kaldi/object/walk.h"

#include "base/checked.h"

#define READ_MOST 65536 /* bytes of one read, if that many are expected */

/* n: at most w->have. */
static void kaldi_walk_step(struct kaldi_walk *w, size_t n)
{
    w->p += n;
    w->have -= n;
    w->at += n;
    w->expected -= min_u64(w->expected, n);
}

int kaldi_take(struct kaldi_walk *w, size_t n, const char *what, const uint8_t **ret)
{
    if (w->have < n) {
        uint64_t left = w->in->size - w->at;

        if (n <= left)
            w->p = kaldi_in_at(w->in, w->at, (size_t)max_u64(n, min_u64(w->expected, READ_MOST)),
                               &w->have);
        if (n > left || !w->p) {
            w->have = 0;
            return kaldi_bad(w->in, w->at, w->diag, "expected %zu bytes of %s, got %llu", n, what,
                             (unsigned long long)left);
        }
    }
    *ret = w->p;
    kaldi_walk_step(w, n);
    return 0;
}

int kaldi_take_int(struct kaldi_walk *w, const char *what, int32_t *ret)
{
    const uint8_t *p;
    int r = kaldi_take(w, 5, what, &p);

    if (r < 0)
        return r;
    if (*p != 4)
        return kaldi_bad(w->in, w->at - 5, w->diag, "expected %s as int32 (byte 04), got byte %02x",
                         what, *p);
    *ret = (int32_t)load_le32(p + 1);
    return 0;
}

int kaldi_take_count(struct kaldi_walk *w, const char *what, uint64_t *ret)
{
    int32_t v = 0;
    int r = kaldi_take_int(w, what, &v);

    if (r < 0)
        return r;
    if (v < 0)
        return kaldi_bad(w->in, w->at - 4, w->diag, "expected %s of 0 or more, got %d", what, v);
    *ret = (uint64_t)v;
    return 0;
}

int kaldi_skip_ints(struct kaldi_walk *w, uint64_t n, const char *what)
{
    int32_t ignored;
    int r = kaldi_expect(w, n, 5, what);

    while (n && r == 0) {
        size_t here = (size_t)min_u64(n, w->have / 5), good = 0;

        while (good < here && w->p[5 * good] == 4)
            good++;
        kaldi_walk_step(w, 5 * good);
        n -= good;
        if (!n)
            break;
        r = kaldi_take_int(w, what, &ignored); /* either bad, or not in the window */
        n--;
    }
    return r;
}

int kaldi_skip_real(struct kaldi_walk *w, bool *wide)
{
    const uint8_t *p;
    int r = kaldi_take(w, 5, "a real number", &p);

    if (r < 0)
        return r;
    if (*p != 4 && *p != 8)
        return kaldi_bad(w->in, w->at - 5, w->diag,
                         "expected a real number (byte 04 or 08), got byte %02x", *p);
    if (*p == 4)
        return 0;
    *wide = true;
    return kaldi_take(w, 4, "a real number of 8 bytes", &p);
}

int kaldi_expect(struct kaldi_walk *w, uint64_t n, uint64_t each, const char *what)
{
    uint64_t left = w->in->size - w->at, bytes;

    if (!checked_mul(n, each, &bytes))
        return kaldi_bad(
            w->in, w->at, w->diag, "expected %llu times %llu bytes of %s, got %llu bytes",
            (unsigned long long)n, (unsigned long long)each, what, (unsigned long long)left);
    if (bytes > left)
        return kaldi_bad(w->in, w->at, w->diag, "expected %llu bytes of %s, got %llu",
                         (unsigned long long)bytes, what, (unsigned long long)left);
    w->expected = max_u64(w->expected, bytes);
    return 0;
}

int kaldi_skip(struct kaldi_walk *w, uint64_t n, uint64_t each, const char *what)
{
    uint64_t beyond;
    int r = kaldi_expect(w, n, each, what);

    if (r < 0)
        return r;
    beyond = n * each - min_u64(n * each, w->have);
    kaldi_walk_step(w, (size_t)(n * each - beyond));
    w->at += beyond;
    w->expected -= min_u64(w->expected, beyond);
    return 0;
}

uint8_t *kaldi_put_reals(uint8_t *dst, enum dtype dtype, const uint8_t *p, uint64_t n, bool wide)
{
    size_t size = dtype == DTYPE_F8 ? 8 : 4;

    if (!n)
        return dst;
    if (size == (wide ? 8 : 4)) {
        memcpy(dst, p, (size_t)n * size);
    } else if (wide) {
        for (uint64_t k = 0; k < n; k++)
            kaldi_store_f4(dst + 4 * k, (float)kaldi_load_f8(p + 8 * k));
    } else {
        for (uint64_t k = 0; k < n; k++)
            kaldi_store_f8(dst + 8 * k, kaldi_load_f4(p + 4 * k));
    }
    return dst + n * size;
}
