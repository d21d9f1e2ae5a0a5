#include "format/libsvm/rounded.h"

#include <string.h>

#include "base/text.h"

bool libsvm_rounded_exponents(const uint8_t *line, size_t len)
{
    const uint8_t *const end = line + len;

    for (const char *letter = "eE"; *letter; letter++)
        for (const uint8_t *p = line; (p = memchr(p, *letter, (size_t)(end - p))); p++)
            if (rounded_exponent_is_large(p + 1, end))
                return true;
    return false;
}

void libsvm_rounded_number(struct libsvm_rounded *rounded, const uint8_t *text, size_t len,
                           uint64_t at)
{
    unsigned found = rounded_see(&rounded->seen, text, len, false);

    if (found)
        rounded_set_first(&rounded->first[__builtin_ctz(found)], text, len, at);
}

void libsvm_rounded_merge(struct libsvm_rounded *rounded, const struct libsvm_rounded *other)
{
    for (unsigned i = 0; i < N_ROUNDED; i++)
        if (*other->first[i].text &&
            (!*rounded->first[i].text || other->first[i].at < rounded->first[i].at))
            rounded->first[i] = other->first[i];
}

void libsvm_rounded_note(const struct libsvm_rounded *rounded, const char *name, const char *end,
                         struct text *t)
{
    static const char *const what[N_ROUNDED] = {
        "has whole numbers that float32 rounds",
        "has numbers of many digits that float32 rounds",
        "has numbers that are too large for float32: they are infinite",
        "has numbers that are too small for float32: they are 0",
    };

    for (unsigned i = 0; i < N_ROUNDED; i++)
        if (*rounded->first[i].text)
            text_add(t, "%s: %s. The first is '%s', byte %llu%s\n", name, what[i],
                     rounded->first[i].text, (unsigned long long)rounded->first[i].at, end);
}
