#include "format/mindrecord/layout/msgpack.h"

#include <string.h>

#include "base/bytes.h"
#include "base/real.h"

struct cursor {
    const uint8_t *at, *end;
};

/* A big-endian number of so many bytes. */
static bool msgpack_read_number(struct cursor *c, unsigned bytes, uint64_t *ret)
{
    if ((size_t)(c->end - c->at) < bytes)
        return false;
    *ret = 0;
    while (bytes--)
        *ret = *ret << 8 | *c->at++;
    return true;
}

static bool msgpack_read_text(struct cursor *c, uint64_t len, struct msgpack_value *ret)
{
    if (len > (size_t)(c->end - c->at))
        return false;
    ret->type = MSGPACK_TEXT;
    ret->text = c->at;
    ret->len = (size_t)len;
    c->at += len;
    return true;
}

static bool msgpack_read_float(struct cursor *c, unsigned bytes, struct msgpack_value *ret)
{
    uint64_t bits;

    if (!msgpack_read_number(c, bytes, &bits))
        return false;
    ret->type = MSGPACK_FLOAT;
    ret->f = bytes == 8 ? f8_of_bits(bits) : (double)f4_of_bits((uint32_t)bits);
    return true;
}

/* Extend the sign of a number of so many bytes. */
static int64_t msgpack_signed(uint64_t v, unsigned bytes)
{
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);

    return (int64_t)((v ^ sign) - sign);
}

static bool msgpack_read_value(struct cursor *c, struct msgpack_value *ret)
{
    uint64_t tag, v;

    *ret = (struct msgpack_value){0};
    if (!msgpack_read_number(c, 1, &tag))
        return false;
    if (tag < 0x80 || tag >= 0xe0) {
        ret->type = MSGPACK_SIGNED;
        ret->i = msgpack_signed(tag, 1);
        return true;
    }
    if (tag >= 0xa0 && tag <= 0xbf)
        return msgpack_read_text(c, tag - 0xa0, ret);
    switch (tag) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
        return true;
    case 0xca:
        return msgpack_read_float(c, 4, ret);
    case 0xcb:
        return msgpack_read_float(c, 8, ret);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        ret->type = MSGPACK_UNSIGNED;
        return msgpack_read_number(c, 1u << (tag - 0xcc), &ret->u);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        ret->type = MSGPACK_SIGNED;
        if (!msgpack_read_number(c, 1u << (tag - 0xd0), &v))
            return false;
        ret->i = msgpack_signed(v, 1u << (tag - 0xd0));
        return true;
    case 0xd9:
    case 0xda:
    case 0xdb:
        return msgpack_read_number(c, 1u << (tag - 0xd9), &v) && msgpack_read_text(c, v, ret);
    default:
        return false;
    }
}

bool msgpack_map(const uint8_t *bytes, size_t len,
                 void (*add)(void *ctx, const uint8_t *key, size_t key_len,
                             const struct msgpack_value *value),
                 void *ctx)
{
    struct cursor c = {bytes, bytes + len};
    uint64_t tag, n;

    if (!msgpack_read_number(&c, 1, &tag))
        return false;
    if (tag >= 0x80 && tag <= 0x8f)
        n = tag - 0x80;
    else if ((tag != 0xde && tag != 0xdf) || !msgpack_read_number(&c, tag == 0xde ? 2 : 4, &n))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        struct msgpack_value key, value;

        if (!msgpack_read_value(&c, &key) || key.type != MSGPACK_TEXT ||
            !msgpack_read_value(&c, &value))
            return false;
        add(ctx, key.text, key.len, &value);
    }
    return c.at == c.end;
}
