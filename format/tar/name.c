#include "format/tar/name.h"

#include <string.h>

#include "base/scope.h"

/* Python's __[^/]*__($|/) at the start of the name. */
static bool is_meta(const uint8_t *name, size_t len)
{
    const uint8_t *slash = memchr(name, '/', len);

    len = slash ? (size_t)(slash - name) : len;
    return len >= 4 && !memcmp(name, "__", 2) && !memcmp(name + len - 2, "__", 2);
}

enum tar_name_type tar_name_split(uint8_t *name, size_t len, struct tar_name *ret)
{
    const uint8_t *slash, *dot;
    size_t base;

    if (is_meta(name, len))
        return TAR_NAME_META;
    slash = memrchr(name, '/', len);
    base = slash ? (size_t)(slash - name) + 1 : 0;
    dot = memchr(name + base, '.', len - base);
    if (!dot || dot == name + base || dot + 1 == name + len)
        return TAR_NAME_NO_EXT;
    ret->key_len = (size_t)(dot - name);
    ret->ext = ret->key_len + 1;
    for (size_t i = ret->ext; i < len; i++)
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (uint8_t)(name[i] + ('a' - 'A'));
    return TAR_NAME_SAMPLE;
}

bool tar_name_is_of_project(const uint8_t *name, size_t len)
{
    static const char *const files[] = {
        "CMakeLists.txt", "Cargo.toml",   "Makefile",       "Makefile.am", "Makefile.in",
        "PKG-INFO",       "build.gradle", "configure.ac",   "go.mod",      "meson.build",
        "package.json",   "pom.xml",      "pyproject.toml", "setup.py",    ".gitignore",
    };
    const uint8_t *slash;

    if (len > 2 && !memcmp(name, "./", 2)) {
        name += 2;
        len -= 2;
    }
    slash = memchr(name, '/', len);
    if (slash) {
        len -= (size_t)(slash + 1 - name);
        name = slash + 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (len == strlen(files[i]) && !memcmp(name, files[i], len))
            return true;
    return false;
}
