#include "support/tar_make.h"

#include <stdio.h>
#include <string.h>

#include "base/scope.h"

void tar_make_sum(uint8_t header[static TAR_MADE_BLOCK])
{
    unsigned sum = 0;
    char text[8];

    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < TAR_MADE_BLOCK; i++)
        sum += header[i];
    snprintf(text, sizeof(text), "%06o", sum);
    memcpy(header + 148, text, 7);
}

void tar_make_header(uint8_t ret[static TAR_MADE_BLOCK], const char *name, uint64_t size, char type)
{
    char text[16];

    memset(ret, 0, TAR_MADE_BLOCK);
    memcpy(ret, name, strlen(name));
    memcpy(ret + 100, "0000644", 7);
    snprintf(text, sizeof(text), "%011llo", (unsigned long long)size);
    memcpy(ret + 124, text, 11);
    ret[156] = (uint8_t)type;
    memcpy(ret + 257, "ustar\00000", 8);
    tar_make_sum(ret);
}

static void put_zeros(struct text *t, size_t n)
{
    static const char zeros[2 * TAR_MADE_BLOCK];

    text_add_bytes(t, zeros, n);
}

void tar_put(struct text *t, const char *name, const void *content, size_t len, char type)
{
    uint8_t header[TAR_MADE_BLOCK];

    tar_make_header(header, name, len, type);
    text_add_bytes(t, (const char *)header, sizeof(header));
    if (len)
        text_add_bytes(t, content, len);
    put_zeros(t, (TAR_MADE_BLOCK - len % TAR_MADE_BLOCK) % TAR_MADE_BLOCK);
}

void tar_put_file(struct text *t, const char *name, const char *content)
{
    tar_put(t, name, content, strlen(content), '0');
}

void tar_put_pax(struct text *t, char type, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest;
    AUTO_TEXT struct text record = {0};

    /* The length counts its own digits. */
    for (unsigned i = 0; i < 3; i++)
        len = rest + (size_t)snprintf(NULL, 0, "%zu", len);
    text_add(&record, "%zu %s=%s\n", len, key, value);
    tar_put(t, "pax", record.data, record.len, type);
}

void tar_put_end(struct text *t)
{
    put_zeros(t, sizeof(uint8_t[2 * TAR_MADE_BLOCK]));
}

void tar_put_members(struct text *t, const char *members)
{
    AUTO_FREE char *copy = strdup(members);
    char *rest = copy, *name;

    while ((name = strsep(&rest, "|"))) {
        char *content = strchr(name, '=');

        *content++ = '\0';
        tar_put_file(t, name, content);
    }
    tar_put_end(t);
}
