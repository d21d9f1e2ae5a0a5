#include "format/parquet/decode/thrift.h"

#include "base/bytes.h"

void thrift_init(struct thrift *t, const uint8_t *bytes, size_t len)
{
    *t = (struct thrift){.bytes = bytes, .end = bytes + len, .at = bytes};
}

static void thrift_fail(struct thrift *t, const char *fault)
{
    if (t->fault)
        return;
    t->fault = fault;
    t->fault_at = t->at;
    t->at = t->end;
}

static uint8_t thrift_byte(struct thrift *t)
{
    if (t->at < t->end)
        return *t->at++;
    thrift_fail(t, "expected more bytes, got the end");
    return 0;
}

static uint64_t thrift_varint(struct thrift *t)
{
    uint64_t v = 0;

    if (load_varint(&t->at, t->end, &v))
        return v;
    thrift_fail(t, t->at == t->end ? "expected more bytes, got the end"
                                   : "expected an integer of at most 10 bytes, got a longer one");
    return 0;
}

int64_t thrift_element(struct thrift *t)
{
    return zigzag(thrift_varint(t));
}

bool thrift_next(struct thrift *t, struct thrift_field *f)
{
    uint8_t head = thrift_byte(t);

    f->type = head & 15;
    if (t->fault || f->type == THRIFT_STOP)
        return false;
    if (f->type > THRIFT_STRUCT) {
        t->at--;
        thrift_fail(t, "expected a type of Thrift from 1 to 12, got another");
        return false;
    }
    f->id = head >> 4 ? f->id + (head >> 4) : (int16_t)thrift_element(t);
    return !t->fault;
}

bool thrift_number(struct thrift *t, const struct thrift_field *f, int64_t *ret)
{
    int64_t v;

    switch (f->type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        v = f->type == THRIFT_TRUE;
        break;
    case THRIFT_BYTE:
        v = (int8_t)thrift_byte(t);
        break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        v = thrift_element(t);
        break;
    default:
        thrift_skip(t, f->type);
        return false;
    }
    if (t->fault)
        return false;
    *ret = v;
    return true;
}

/* The length of bytes that follow. */
static size_t thrift_length(struct thrift *t)
{
    uint64_t len = thrift_varint(t);

    if (!t->fault && len > (uint64_t)(t->end - t->at))
        thrift_fail(t, "expected a length inside the bytes, got a larger one");
    return t->fault ? 0 : (size_t)len;
}

bool thrift_binary(struct thrift *t, const struct thrift_field *f, const uint8_t **ret,
                   size_t *ret_len)
{
    size_t len;

    if (f->type != THRIFT_BINARY) {
        thrift_skip(t, f->type);
        return false;
    }
    len = thrift_length(t);
    if (t->fault)
        return false;
    *ret = t->at;
    *ret_len = len;
    t->at += len;
    return true;
}

/* The head of a list: an element of it has at least a byte. */
static uint32_t thrift_list_head(struct thrift *t, enum thrift_type *ret_element)
{
    uint8_t head = thrift_byte(t);
    uint64_t n = head >> 4;

    *ret_element = head & 15;
    if (n == 15)
        n = thrift_varint(t);
    if (!t->fault && (*ret_element == THRIFT_STOP || *ret_element > THRIFT_STRUCT))
        thrift_fail(t, "expected a type of Thrift from 1 to 12, got another");
    if (!t->fault && (n > (uint64_t)(t->end - t->at) || n > UINT32_MAX))
        thrift_fail(t, "expected as many elements as bytes follow at most, got more");
    return t->fault ? 0 : (uint32_t)n;
}

bool thrift_list(struct thrift *t, const struct thrift_field *f, enum thrift_type element,
                 uint32_t *ret)
{
    const uint8_t *start = t->at;
    enum thrift_type type;
    uint32_t n;

    if (f->type != THRIFT_LIST) {
        thrift_skip(t, f->type);
        return false;
    }
    n = thrift_list_head(t, &type);
    if (t->fault)
        return false;
    if (n && type != element) {
        t->at = start;
        thrift_skip(t, THRIFT_LIST);
        return false;
    }
    *ret = n;
    return true;
}

bool thrift_struct(struct thrift *t, const struct thrift_field *f)
{
    if (f->type == THRIFT_STRUCT)
        return true;
    thrift_skip(t, f->type);
    return false;
}

void thrift_numbers(struct thrift *t, int n, int64_t *ret)
{
    struct thrift_field f = {0};

    while (thrift_next(t, &f))
        if (f.id < 0 || f.id >= n)
            thrift_skip(t, f.type);
        else
            thrift_number(t, &f, &ret[f.id]);
}

/* ---- skipping ---- */

static void thrift_skip_bytes(struct thrift *t, uint64_t n)
{
    if (n > (uint64_t)(t->end - t->at))
        thrift_fail(t, "expected more bytes, got the end");
    else
        t->at += n;
}

/* The keys and values of a map that follow, and their types. */
static uint64_t thrift_map_head(struct thrift *t, enum thrift_type ret[static 2])
{
    uint64_t n = thrift_varint(t);
    uint8_t types = n ? thrift_byte(t) : 0;

    ret[0] = types >> 4;
    ret[1] = types & 15;
    if (n <= (uint64_t)(t->end - t->at) && ret[0] <= THRIFT_STRUCT && ret[1] <= THRIFT_STRUCT)
        return 2 * n;
    thrift_fail(t, "expected a map of known types inside the bytes, got another");
    return 0;
}

/* Skip what is inside others; a bool has a byte as an element only. */
static void thrift_skip_inside(struct thrift *t, enum thrift_type type, unsigned depth,
                               bool is_element)
{
    enum thrift_type element[2] = {THRIFT_STOP, THRIFT_STOP};
    struct thrift_field f = {0};
    uint64_t n;

    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        thrift_skip_bytes(t, is_element);
        return;
    case THRIFT_BYTE:
        thrift_skip_bytes(t, 1);
        return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        thrift_varint(t);
        return;
    case THRIFT_DOUBLE:
        thrift_skip_bytes(t, 8);
        return;
    case THRIFT_BINARY:
        thrift_skip_bytes(t, thrift_length(t));
        return;
    default:
        break;
    }
    if (depth == THRIFT_DEPTH) {
        thrift_fail(t, "expected at most 64 levels of structs and lists, got more");
        return;
    }
    while (type == THRIFT_STRUCT && thrift_next(t, &f))
        thrift_skip_inside(t, f.type, depth + 1, false);
    n = type == THRIFT_STRUCT ? 0
        : type == THRIFT_MAP  ? thrift_map_head(t, element)
                              : thrift_list_head(t, &element[0]);
    for (uint64_t i = 0; i < n && !t->fault; i++)
        thrift_skip_inside(t, element[type == THRIFT_MAP && i % 2], depth + 1, true);
}

void thrift_skip(struct thrift *t, enum thrift_type type)
{
    thrift_skip_inside(t, type, 0, false);
}
