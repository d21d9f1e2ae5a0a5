#include "format/picture/magic.h"

#include <string.h>
#include <strings.h>

#include "base/scope.h"

enum picture_format picture_format_of(const void *head, uint64_t len)
{
    static const struct {
        const char *start;
        size_t len;
        enum picture_format type;
    } starts[] = {
        {"\xff\xd8\xff", 3, PICTURE_JPEG},
        {"\x89PNG\r\n\x1a\n", 8, PICTURE_PNG},
        {"GIF87a", 6, PICTURE_GIF},
        {"GIF89a", 6, PICTURE_GIF},
        {"II*\0", 4, PICTURE_TIFF},
        {"MM\0*", 4, PICTURE_TIFF},
        {"BM", 2, PICTURE_BMP},
    };

    if (len >= PICTURE_MAGIC_SIZE && !memcmp(head, "RIFF", 4) &&
        !memcmp((const char *)head + 8, "WEBP", 4))
        return PICTURE_WEBP;
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (len >= starts[i].len && !memcmp(head, starts[i].start, starts[i].len))
            return starts[i].type;
    return PICTURE_NONE;
}

enum picture_format picture_format_of_ext(const char *ext)
{
    static const struct {
        const char *ext;
        enum picture_format type;
    } known[] = {
        {"jpg", PICTURE_JPEG}, {"jpeg", PICTURE_JPEG}, {"png", PICTURE_PNG},
        {"gif", PICTURE_GIF},  {"bmp", PICTURE_BMP},   {"webp", PICTURE_WEBP},
        {"tif", PICTURE_TIFF}, {"tiff", PICTURE_TIFF},
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcasecmp(ext, known[i].ext))
            return known[i].type;
    return PICTURE_NONE;
}

const char *picture_format_name(enum picture_format format)
{
    static const char *const names[N_PICTURE_FORMATS] = {
        "unknown", "JPEG", "PNG", "GIF", "BMP", "WebP", "TIFF",
    };

    return names[format];
}
