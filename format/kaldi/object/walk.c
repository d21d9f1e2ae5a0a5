#include "format/kaldi/object/walk.h"

#include "base/checked.h"

#define READ_MOST 65536 /* bytes of one read, if that many are expected */

int kaldi_walk_fill(struct kaldi_walk *w, size_t n, const char *what)
{
    uint64_t left = w->in->size - w->at;

    w->have = 0;
    if (n <= left) {
        w->p = kaldi_in_at(w->in, w->at, (size_t)max_u64(n, min_u64(w->expected, READ_MOST)),
                           &w->have);
        if (w->p)
            return 0;
    }
    return kaldi_bad(w->in, w->at, w->diag, "expected %zu bytes of %s, got %llu", n, what,
                     (unsigned long long)left);
}

int kaldi_walk_int(struct kaldi_walk *w, const char *what, int32_t *ret)
{
    const uint8_t *p;
    int r = kaldi_walk_bytes(w, 5, what, &p);

    if (r < 0)
        return r;
    if (*p != 4)
        return kaldi_bad(w->in, w->at - 5, w->diag, "expected %s as int32 (byte 04), got byte %02x",
                         what, *p);
    *ret = (int32_t)load_le32(p + 1);
    return 0;
}

int kaldi_walk_count(struct kaldi_walk *w, const char *what, uint64_t *ret)
{
    int32_t v = 0;
    int r = kaldi_walk_int(w, what, &v);

    if (r < 0)
        return r;
    if (v < 0)
        return kaldi_bad(w->in, w->at - 4, w->diag, "expected %s of 0 or more, got %d", what, v);
    *ret = (uint64_t)v;
    return 0;
}

int kaldi_walk_ints(struct kaldi_walk *w, unsigned array, uint64_t n, const char *what)
{
    struct kaldi_values *v = &w->values;
    int r = kaldi_expect(w, n, 5, what);

    while (n && r == 0) {
        uint64_t here = min_u64(n, w->have / 5), good = 0;
        const uint8_t *p = w->p;
        int32_t value = 0;

        while (good < here && p[5 * good] == 4)
            good++;
        if (kaldi_is_kept(v, array, v->n[array]))
            for (uint64_t i = 0; i < min_u64(good, v->capacity - v->n[array]); i++)
                memcpy(v->dst + 4 * (v->n[array] + i), p + 5 * i + 1, 4);
        v->n[array] += good;
        n -= good;
        r = kaldi_walk_skip(w, good, 5, what);
        if (r < 0 || !n)
            break;
        r = kaldi_walk_int(w, what, &value); /* either bad, or not in the window */
        if (r == 0)
            kaldi_put_int32(v, array, value);
        n--;
    }
    return r;
}

int kaldi_walk_real(struct kaldi_walk *w, const uint8_t **ret, unsigned *ret_width)
{
    const uint8_t *p, *more;
    int r = kaldi_walk_bytes(w, 5, "a real number", &p);

    if (r < 0)
        return r;
    if (*p != 4 && *p != 8)
        return kaldi_bad(w->in, w->at - 5, w->diag,
                         "expected a real number (byte 04 or 08), got byte %02x", *p);
    *ret_width = *p;
    if (*p == 8 && w->have >= 4) {
        r = kaldi_walk_bytes(w, 4, "a real number", &more); /* which follow p */
    } else if (*p == 8) {
        kaldi_walk_to(w, w->at - 5);
        r = kaldi_walk_bytes(w, 9, "a real number of 8 bytes", &p);
    }
    *ret = p + 1;
    return r;
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

int kaldi_walk_skip(struct kaldi_walk *w, uint64_t n, uint64_t each, const char *what)
{
    int r = kaldi_expect(w, n, each, what);
    uint64_t bytes = n * each, here;

    if (r < 0)
        return r;
    here = min_u64(bytes, w->have);
    w->p += here;
    w->have -= (size_t)here;
    w->at += bytes;
    w->expected -= min_u64(bytes, w->expected);
    return 0;
}

void kaldi_store_reals(uint8_t *dst, bool wide, const uint8_t *p, uint64_t n, unsigned width)
{
    if (!n)
        return;
    if (width == (wide ? 8 : 4))
        memcpy(dst, p, (size_t)n * width);
    else
        for (uint64_t k = 0; k < n; k++)
            kaldi_store_real(dst, k, wide, kaldi_load_real(p + width * k, width));
}

void kaldi_put_reals(struct kaldi_values *v, unsigned array, const uint8_t *p, uint64_t n,
                     unsigned width)
{
    uint64_t i = v->n[array];

    v->n[array] += n;
    if (kaldi_is_kept(v, array, i))
        kaldi_store_reals(v->dst + i * (v->wide ? 8 : 4), v->wide, p, min_u64(n, v->capacity - i),
                          width);
}
