#include "format/parquet/decode/thrift.h"

#include <errno.h>

#include "base/bytes.h"

enum thrift_type {
    TYPE_STOP,
    TYPE_TRUE,
    TYPE_FALSE,
    TYPE_BYTE,
    TYPE_I16,
    TYPE_I32,
    TYPE_I64,
    TYPE_DOUBLE,
    TYPE_BINARY,
    TYPE_LIST,
    TYPE_SET,
    TYPE_MAP,
    TYPE_STRUCT,
};

/* A field of a struct; starts as {0} for each struct. */
struct thrift_field {
    int id;
    enum thrift_type type;
};

static void thrift_fail(struct thrift *t, const char *fault)
{
    if (t->fault)
        return;
    t->fault = fault;
    t->fault_at = t->at;
    t->at = t->end;
}

/* Bytes that follow. */
static const uint8_t *thrift_take(struct thrift *t, uint64_t n)
{
    const uint8_t *at = t->at;

    if (n > (uint64_t)(t->end - at))
        thrift_fail(t, "expected more bytes, got the end");
    else
        t->at += n;
    return at;
}

static uint8_t thrift_byte(struct thrift *t)
{
    const uint8_t *at = thrift_take(t, 1);

    return t->fault ? 0 : *at;
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

/* The head of the next field. false: the struct has ended, or there is a fault. */
static bool thrift_next(struct thrift *t, struct thrift_field *f)
{
    uint8_t head = thrift_byte(t);

    f->type = head & 15;
    if (t->fault || f->type == TYPE_STOP)
        return false;
    if (f->type > TYPE_STRUCT) {
        t->at--;
        thrift_fail(t, "expected a type of Thrift from 1 to 12, got another");
        return false;
    }
    f->id = head >> 4 ? f->id + (head >> 4) : (int16_t)zigzag(thrift_varint(t));
    return !t->fault;
}

static int64_t thrift_number(struct thrift *t, enum thrift_type type)
{
    return type <= TYPE_FALSE  ? type == TYPE_TRUE
           : type == TYPE_BYTE ? (int8_t)thrift_byte(t)
                               : zigzag(thrift_varint(t));
}

static struct thrift_bytes thrift_binary(struct thrift *t)
{
    uint64_t len = thrift_varint(t);

    if (!t->fault && len > (uint64_t)(t->end - t->at))
        thrift_fail(t, "expected a length inside the bytes, got a larger one");
    return t->fault ? (struct thrift_bytes){0}
                    : (struct thrift_bytes){thrift_take(t, len), (size_t)len};
}

/* The head of a list: an element of it has at least a byte. */
static uint32_t thrift_list_head(struct thrift *t, enum thrift_type *ret_element)
{
    uint8_t head = thrift_byte(t);
    uint64_t n = head >> 4;

    *ret_element = head & 15;
    if (n == 15)
        n = thrift_varint(t);
    if (!t->fault && (*ret_element == TYPE_STOP || *ret_element > TYPE_STRUCT))
        thrift_fail(t, "expected a type of Thrift from 1 to 12, got another");
    if (!t->fault && (n > (uint64_t)(t->end - t->at) || n > UINT32_MAX))
        thrift_fail(t, "expected as many elements as bytes follow at most, got more");
    return t->fault ? 0 : (uint32_t)n;
}

/* ---- skipping ---- */

/* The keys and values of a map that follow, and their types. */
static uint64_t thrift_map_head(struct thrift *t, enum thrift_type ret[static 2])
{
    uint64_t n = thrift_varint(t);
    uint8_t types = n ? thrift_byte(t) : 0;

    ret[0] = types >> 4;
    ret[1] = types & 15;
    if (n <= (uint64_t)(t->end - t->at) && ret[0] <= TYPE_STRUCT && ret[1] <= TYPE_STRUCT)
        return 2 * n;
    thrift_fail(t, "expected a map of known types inside the bytes, got another");
    return 0;
}

/* Skip what is inside others; a bool has a byte as an element only. */
static void thrift_skip(struct thrift *t, enum thrift_type type, unsigned depth, bool is_element)
{
    enum thrift_type element[2] = {TYPE_STOP, TYPE_STOP};
    struct thrift_field f = {0};
    uint64_t n = 0;

    if (type == TYPE_TRUE || type == TYPE_FALSE) {
        thrift_take(t, is_element);
    } else if (type == TYPE_DOUBLE) {
        thrift_take(t, 8);
    } else if (type == TYPE_BINARY) {
        thrift_binary(t);
    } else if (type != TYPE_STOP && type <= TYPE_I64) {
        thrift_number(t, type);
    } else if (depth == THRIFT_DEPTH) {
        thrift_fail(t, "expected at most 64 levels of structs and lists, got more");
    } else {
        while (type == TYPE_STRUCT && thrift_next(t, &f))
            thrift_skip(t, f.type, depth + 1, false);
        if (type != TYPE_STRUCT)
            n = type == TYPE_MAP ? thrift_map_head(t, element) : thrift_list_head(t, &element[0]);
        for (uint64_t i = 0; i < n && !t->fault; i++)
            thrift_skip(t, element[type == TYPE_MAP && i % 2], depth + 1, true);
    }
}

/* ---- reading ---- */

static int thrift_list(struct thrift *t, const struct thrift_rule *rule, void *memory)
{
    enum thrift_type found, element = rule->becomes == THRIFT_LIST ? TYPE_STRUCT : TYPE_I32;
    uint64_t *bits = memory;
    const uint8_t *start = t->at;
    uint32_t n = thrift_list_head(t, &found);

    if (n && found != element) {
        t->at = start;
        thrift_skip(t, TYPE_LIST, 0, false);
        return 0;
    }
    if (rule->becomes == THRIFT_LIST)
        return t->fault ? 0 : rule->list(memory, n);
    for (*bits = 0; n && !t->fault; n--) {
        int64_t v = thrift_number(t, element);

        *bits |= UINT64_C(1) << (v < 0 || v > 63 ? 63 : v);
    }
    return 0;
}

static int thrift_read_field(struct thrift *t, const struct thrift_field *f,
                             const struct thrift_rule *rule, void *memory)
{
    void *at = (uint8_t *)memory + rule->at;
    struct thrift_field member = {0};
    struct thrift_bytes bytes;
    int64_t v;

    switch (rule->becomes) {
    case THRIFT_NUMBER:
        v = thrift_number(t, f->type);
        if (!t->fault)
            *(int64_t *)at = v;
        return 0;
    case THRIFT_BYTES:
        bytes = thrift_binary(t);
        if (!t->fault)
            *(struct thrift_bytes *)at = bytes;
        return 0;
    case THRIFT_SEEN:
        *(bool *)at = true;
        thrift_skip(t, f->type, 0, false);
        return 0;
    case THRIFT_INSIDE:
        *(int64_t *)at = 1;
        return thrift_read(t, rule->rules, memory);
    case THRIFT_UNION:
        while (thrift_next(t, &member)) {
            *(int64_t *)at = member.id;
            if (rule->rules && member.type == TYPE_STRUCT)
                thrift_read(t, rule->rules, memory);
            else
                thrift_skip(t, member.type, 0, false);
        }
        return 0;
    default:
        return thrift_list(t, rule, rule->becomes == THRIFT_LIST ? memory : at);
    }
}

int thrift_read(struct thrift *t, const struct thrift_rule *rules, void *memory)
{
    /* A bit for each type that becomes that. */
    static const uint16_t types[] = {[THRIFT_NUMBER] = 0x7e,
                                     [THRIFT_BYTES] = 1 << TYPE_BINARY,
                                     [THRIFT_BITS] = 1 << TYPE_LIST,
                                     [THRIFT_SEEN] = 0x1ffe,
                                     [THRIFT_INSIDE] = 1 << TYPE_STRUCT,
                                     [THRIFT_UNION] = 1 << TYPE_STRUCT,
                                     [THRIFT_LIST] = 1 << TYPE_LIST};
    struct thrift_field f = {0};
    int r = 0;

    while (r == 0 && thrift_next(t, &f)) {
        const struct thrift_rule *rule = rules;

        while (rule->id && (rule->id != f.id || !(types[rule->becomes] >> f.type & 1)))
            rule++;
        if (rule->id)
            r = thrift_read_field(t, &f, rule, memory);
        else
            thrift_skip(t, f.type, 0, false);
    }
    return r == 0 && t->fault ? -EBADMSG : r;
}
