#include "format/parquet/decode/thrift.h"

#define VARINT_MAX 10 /* bytes of 64 bits */

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

    for (unsigned i = 0; i < VARINT_MAX && !t->fault; i++) {
        uint8_t byte = thrift_byte(t);

        v |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (!(byte & 0x80))
            return t->fault ? 0 : v;
    }
    thrift_fail(t, "expected an integer of at most 10 bytes, got a longer one");
    return 0;
}

static int64_t thrift_zigzag(struct thrift *t)
{
    uint64_t v = thrift_varint(t);

    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
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
    f->id = head >> 4 ? f->id + (head >> 4) : (int16_t)thrift_zigzag(t);
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
        v = thrift_zigzag(t);
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

int64_t thrift_element(struct thrift *t)
{
    return thrift_zigzag(t);
}

/* ---- skipping ---- */

/* A struct, list or map that is being skipped; others may be inside. */
struct thrift_level {
    struct thrift_field field;   /* of a struct */
    enum thrift_type element[2]; /* of a list; of a map: keys and values */
    unsigned n_elements;         /* types there: 0: it is a struct */
    uint64_t left;               /* elements that follow */
};

static void thrift_skip_bytes(struct thrift *t, uint64_t n)
{
    if (n > (uint64_t)(t->end - t->at))
        thrift_fail(t, "expected more bytes, got the end");
    else
        t->at += n;
}

/* Skip a value that has no level of its own. false: it has. */
static bool thrift_skip_flat(struct thrift *t, enum thrift_type type, bool is_element)
{
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        thrift_skip_bytes(t, is_element);
        return true;
    case THRIFT_BYTE:
        thrift_skip_bytes(t, 1);
        return true;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        thrift_varint(t);
        return true;
    case THRIFT_DOUBLE:
        thrift_skip_bytes(t, 8);
        return true;
    case THRIFT_BINARY:
        thrift_skip_bytes(t, thrift_length(t));
        return true;
    default:
        return false;
    }
}

static void thrift_begin_map(struct thrift *t, struct thrift_level *level)
{
    uint64_t n = thrift_varint(t);
    uint8_t types = n ? thrift_byte(t) : 0;

    level->n_elements = 2;
    level->element[0] = types >> 4;
    level->element[1] = types & 15;
    if (n > (uint64_t)(t->end - t->at) || level->element[0] > THRIFT_STRUCT ||
        level->element[1] > THRIFT_STRUCT)
        thrift_fail(t, "expected a map of known types inside the bytes, got another");
    level->left = 2 * n;
}

static void thrift_begin_level(struct thrift *t, enum thrift_type type, struct thrift_level *level)
{
    *level = (struct thrift_level){0};
    if (type == THRIFT_LIST || type == THRIFT_SET) {
        level->n_elements = 1;
        level->left = thrift_list_head(t, &level->element[0]);
    } else if (type == THRIFT_MAP) {
        thrift_begin_map(t, level);
    }
}

/* The type of the next value of a level. false: it has ended. */
static bool thrift_next_value(struct thrift *t, struct thrift_level *level, enum thrift_type *ret)
{
    if (!level->n_elements) {
        if (!thrift_next(t, &level->field))
            return false;
        *ret = level->field.type;
        return true;
    }
    if (!level->left)
        return false;
    *ret = level->element[level->n_elements == 2 && level->left % 2];
    level->left--;
    return true;
}

void thrift_skip(struct thrift *t, enum thrift_type type)
{
    struct thrift_level level[THRIFT_DEPTH];
    unsigned depth = 0;

    if (thrift_skip_flat(t, type, false))
        return;
    thrift_begin_level(t, type, &level[depth++]);
    while (depth && !t->fault) {
        struct thrift_level *top = &level[depth - 1];

        if (!thrift_next_value(t, top, &type))
            depth--;
        else if (thrift_skip_flat(t, type, top->n_elements > 0))
            continue;
        else if (depth == THRIFT_DEPTH)
            thrift_fail(t, "expected at most 64 levels of structs and lists, got more");
        else
            thrift_begin_level(t, type, &level[depth++]);
    }
}
