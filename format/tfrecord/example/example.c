/* Messages are nested six deep at most, and each level has its function here: Example, Features,
 * map entry, FeatureList, Feature, list. All of them read fields with next_field(). */
#include "format/tfrecord/example/example.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

#define GROUPS_MAX 64 /* groups inside of one another */

enum wire { WIRE_VARINT, WIRE_8_BYTES, WIRE_BYTES, WIRE_GROUP, WIRE_GROUP_END, WIRE_4_BYTES };

/* ---- fields of a message ---- */

struct span {
    const uint8_t *p, *end;
};

struct field_read {
    uint64_t number;
    enum wire wire;
    struct span value; /* as it is stored; of WIRE_BYTES without the length */
};

/* What a parse goes through. */
struct parse {
    const uint8_t *message;
    struct example_fault fault;
    bool failed;
};

static bool tfrecord_example_fail(struct parse *parse, const uint8_t *at, const char *wanted)
{
    if (!parse->failed)
        parse->fault = (struct example_fault){wanted, (size_t)(at - parse->message)};
    parse->failed = true;
    return false;
}

static bool next_varint(struct parse *parse, struct span *s, uint64_t *ret)
{
    const uint8_t *start = s->p;

    return load_varint(&s->p, s->end, ret) ||
           tfrecord_example_fail(parse, start, "a varint of at most 64 bits");
}

/* Read a field, but of a group its start or end only. */
static bool next_part(struct parse *parse, struct span *s, struct field_read *ret)
{
    const uint8_t *start = s->p;
    uint64_t tag, len;

    if (!next_varint(parse, s, &tag))
        return false;
    ret->number = tag >> 3;
    ret->wire = (enum wire)(tag & 7);
    if (!ret->number || tag > UINT32_MAX || ret->wire > WIRE_4_BYTES)
        return tfrecord_example_fail(parse, start, "a field number and a wire type of protobuf");
    ret->value.p = s->p;
    len = ret->wire == WIRE_8_BYTES ? 8 : ret->wire == WIRE_4_BYTES ? 4 : 0;
    if (ret->wire == WIRE_VARINT || ret->wire == WIRE_BYTES) {
        if (!next_varint(parse, s, ret->wire == WIRE_BYTES ? &len : &tag))
            return false;
        if (ret->wire == WIRE_BYTES)
            ret->value.p = s->p;
    }
    if (len > (uint64_t)(s->end - s->p))
        return tfrecord_example_fail(parse, start, "a field that ends inside its message");
    s->p += len;
    ret->value.end = s->p;
    return true;
}

/* Skip the rest of a group: no field of these messages is one. */
static bool skip_group(struct parse *parse, struct span *s, uint64_t number)
{
    uint64_t open[GROUPS_MAX];
    unsigned n = 0;

    open[n++] = number;
    while (n) {
        const uint8_t *start = s->p;
        struct field_read part;

        if (s->p == s->end)
            return tfrecord_example_fail(parse, s->p, "the end of a group");
        if (!next_part(parse, s, &part))
            return false;
        if (part.wire == WIRE_GROUP && n == GROUPS_MAX)
            return tfrecord_example_fail(parse, start, "fewer groups inside of one another");
        if (part.wire == WIRE_GROUP)
            open[n++] = part.number;
        if (part.wire == WIRE_GROUP_END && part.number != open[--n])
            return tfrecord_example_fail(parse, start, "the end of the group that began");
    }
    return true;
}

/* false: the message ends, or has a fault. */
static bool next_field(struct parse *parse, struct span *s, struct field_read *ret)
{
    const uint8_t *start = s->p;

    if (parse->failed || s->p == s->end || !next_part(parse, s, ret))
        return false;
    if (ret->wire == WIRE_GROUP_END)
        return tfrecord_example_fail(parse, start, "a field, not the end of a group");
    return ret->wire != WIRE_GROUP || skip_group(parse, s, ret->number);
}

/* ---- lists ---- */

static bool is_list_of(const struct field_read *field, enum feature_kind type)
{
    return field->number == (uint64_t)type && field->wire == WIRE_BYTES;
}

/* The number of varints. */
static uint64_t count_varints(struct parse *parse, struct span s)
{
    const uint64_t more = UINT64_C(0x8080808080808080);
    uint64_t n = 0, v;

    while (s.p < s.end) {
        if (s.end - s.p >= 8 && !(load_le64(s.p) & more)) {
            s.p += 8;
            n += 8;
        } else if (next_varint(parse, &s, &v)) {
            n++;
        } else {
            break;
        }
    }
    return n;
}

/* Count one field of a list. */
static void count_value(struct parse *parse, const struct field_read *field,
                        struct example_feature *f)
{
    uint64_t bytes = (uint64_t)(field->value.end - field->value.p), n = 0;
    bool fits = true; /* else it is an unknown field */

    switch (f->type) {
    case EXAMPLE_BYTES:
        fits = field->wire == WIRE_BYTES;
        n = 1;
        break;
    case EXAMPLE_FLOATS:
        fits = field->wire == WIRE_BYTES || field->wire == WIRE_4_BYTES;
        n = bytes / 4;
        if (fits && bytes % 4)
            tfrecord_example_fail(parse, field->value.p, "packed floats of 4 bytes each");
        break;
    case EXAMPLE_INTEGERS:
        fits = field->wire == WIRE_BYTES || field->wire == WIRE_VARINT;
        if (fits)
            n = count_varints(parse, field->value);
        break;
    default:
        return;
    }
    if (field->number != 1 || !fits || !n)
        return;
    f->plain = f->count || f->type == EXAMPLE_INTEGERS
                   ? EXAMPLE_NOT_PLAIN
                   : (uint32_t)(field->value.p - parse->message);
    f->count += n;
    f->bytes += f->type == EXAMPLE_BYTES ? bytes : 0;
}

/* Count what a Feature has. Called again for the same one, it goes on. */
static void count_feature(struct parse *parse, struct span s, struct example_feature *f)
{
    struct field_read list, value;

    while (next_field(parse, &s, &list)) {
        enum feature_kind type = (enum feature_kind)list.number;

        if (list.number < EXAMPLE_BYTES || list.number > EXAMPLE_INTEGERS ||
            !is_list_of(&list, type))
            continue;
        if (type != f->type) {
            f->type = type;
            f->start = (uint32_t)(list.value.p - parse->message);
            f->count = f->bytes = 0;
            f->plain = EXAMPLE_NOT_PLAIN;
        }
        while (next_field(parse, &list.value, &value))
            count_value(parse, &value, f);
    }
}

/* ---- map entries ---- */

static const struct example_feature no_feature = {.plain = EXAMPLE_NOT_PLAIN};

static void count_steps(struct parse *parse, struct span s, struct example_feature *f)
{
    struct field_read step;

    while (next_field(parse, &s, &step)) {
        struct example_feature one = no_feature;

        if (!is_list_of(&step, 1))
            continue;
        count_feature(parse, step.value, &one);
        if (f->type == EXAMPLE_NONE)
            f->type = one.type;
        else if (one.type != EXAMPLE_NONE && one.type != f->type)
            f->type = EXAMPLE_MIXED;
        f->plain = f->count ? EXAMPLE_NOT_PLAIN : one.plain;
        f->count += one.count;
        f->bytes += one.bytes;
        f->steps++;
    }
}

/* Messages of other programs, such as ExampleListWithContext, read as map entries whose names are
 * messages again, and which have no value. */
static bool tfrecord_example_is_name(const struct span *name, bool has_value)
{
    for (const uint8_t *p = name->p; p < name->end && !has_value; p++)
        if (*p < ' ')
            return false;
    return true;
}

static bool tfrecord_example_read_entry(struct parse *parse, struct span s, bool is_list,
                                        struct example_feature *ret)
{
    const uint8_t *start = s.p;
    struct span name = {s.p, s.p};
    struct field_read field;
    bool has_value = false;

    *ret = no_feature;
    ret->is_list = is_list;
    ret->at = (uint32_t)(s.p - parse->message);
    ret->len = (uint32_t)(s.end - s.p);
    while (next_field(parse, &s, &field)) {
        if (is_list_of(&field, 1))
            name = field.value;
        if (!is_list_of(&field, 2))
            continue;
        has_value = true;
        (is_list ? count_steps : count_feature)(parse, field.value, ret);
    }
    ret->name = name.p;
    ret->name_len = (uint32_t)(name.end - name.p);
    if (!parse->failed && ret->name_len > EXAMPLE_NAME_MAX)
        return tfrecord_example_fail(parse, start, "a feature's name of at most 4096 bytes");
    if (!parse->failed && !tfrecord_example_is_name(&name, has_value))
        return tfrecord_example_fail(parse, start, "a feature with a name and a value");
    return !parse->failed;
}

/* ---- Example, SequenceExample ---- */

struct features {
    int (*feature)(void *ctx, const struct example_feature *f);
    void *ctx;
    unsigned n;
};

/* The entries of field number `which` of the message. features NULL: only look for faults. */
static int read_maps(struct parse *parse, struct span s, unsigned which, struct features *features)
{
    struct field_read map, entry;
    struct example_feature f;
    int r = 0;

    while (r == 0 && next_field(parse, &s, &map)) {
        if (!is_list_of(&map, (enum feature_kind)which))
            continue;
        while (r == 0 && next_field(parse, &map.value, &entry)) {
            if (!is_list_of(&entry, 1))
                continue;
            if (!tfrecord_example_read_entry(parse, entry.value, which == 2, &f))
                break;
            if (features && features->n++ == EXAMPLE_FEATURES)
                tfrecord_example_fail(parse, entry.value.p, "at most 4096 features");
            else if (features)
                r = features->feature(features->ctx, &f);
        }
    }
    return parse->failed ? -EBADMSG : r;
}

int example_parse(const uint8_t *message, size_t len,
                  int (*feature)(void *ctx, const struct example_feature *f), void *ctx,
                  struct example_fault *ret_fault)
{
    struct parse parse = {.message = message}, lists = {.message = message};
    struct features features = {feature, ctx, 0};
    struct span s = {message, message + len};
    int r;

    if (len > EXAMPLE_MAX) {
        *ret_fault = (struct example_fault){"at most 2147483647 bytes", 0};
        return -EBADMSG;
    }
    r = read_maps(&parse, s, 1, &features);
    /* What does not read as lists is a field of another program, and is skipped. */
    if (r == 0 && read_maps(&lists, s, 2, NULL) == 0)
        r = read_maps(&parse, s, 2, &features);
    if (parse.failed)
        *ret_fault = parse.fault;
    return r;
}

/* ---- reading ---- */

/* Takes bytes one after another, and keeps those of the range that is wanted. */
struct sink {
    uint64_t skip;
    size_t len;
    uint8_t *dst;
};

static void sink_add(struct sink *sink, const uint8_t *bytes, uint64_t len)
{
    uint64_t skipped = min_u64(sink->skip, len);
    size_t n = (size_t)min_u64(len - skipped, sink->len);

    sink->skip -= skipped;
    if (n)
        memcpy(sink->dst, bytes + skipped, n);
    sink->dst += n;
    sink->len -= n;
}

static void sink_add_integer(struct sink *sink, uint64_t v)
{
    uint8_t bytes[8];

    store_le64(bytes, v);
    sink_add(sink, bytes, 8);
}

static void add_varints(struct sink *sink, struct span s)
{
    uint64_t v;

    while (sink->len && s.p < s.end && load_varint(&s.p, s.end, &v)) {
        if (sink->skip >= 8)
            sink->skip -= 8;
        else
            sink_add_integer(sink, v);
    }
}

static void tfrecord_example_add_value(const struct field_read *field, enum feature_kind type,
                                       enum example_part part, struct sink *sink)
{
    uint64_t bytes = (uint64_t)(field->value.end - field->value.p);
    enum wire single = type == EXAMPLE_FLOATS     ? WIRE_4_BYTES
                       : type == EXAMPLE_INTEGERS ? WIRE_VARINT
                                                  : WIRE_BYTES;

    if (field->number != 1 || (field->wire != WIRE_BYTES && field->wire != single))
        return;
    if (part == EXAMPLE_SIZES)
        sink_add_integer(sink, bytes);
    else if (type == EXAMPLE_INTEGERS)
        add_varints(sink, field->value);
    else
        sink_add(sink, field->value.p, bytes);
}

/* The lists of a kind in a Feature that begin at a place or later. */
static void tfrecord_example_add_feature(struct parse *parse, struct span s, enum feature_kind type,
                                         uint32_t start, enum example_part part, struct sink *sink)
{
    struct field_read list, value;

    while (sink->len && next_field(parse, &s, &list)) {
        if (!is_list_of(&list, type) || list.value.p < parse->message + start)
            continue;
        while (sink->len && next_field(parse, &list.value, &value))
            tfrecord_example_add_value(&value, type, part, sink);
    }
}

static void add_steps(struct parse *parse, struct span s, enum example_part part, struct sink *sink)
{
    struct field_read step;

    while (sink->len && next_field(parse, &s, &step)) {
        struct example_feature one = no_feature;

        if (!is_list_of(&step, 1))
            continue;
        count_feature(parse, step.value, &one);
        if (part == EXAMPLE_STEPS)
            sink_add_integer(sink, one.count);
        else
            tfrecord_example_add_feature(parse, step.value, one.type, one.start, part, sink);
    }
}

void example_read(const uint8_t *message, const struct example_feature *f, enum example_part part,
                  uint64_t off, size_t len, uint8_t *dst)
{
    struct parse parse = {.message = message};
    struct sink sink = {off, len, dst};
    struct span s = {message + f->at, message + f->at + f->len};
    struct field_read field;

    while (sink.len && next_field(&parse, &s, &field)) {
        if (!is_list_of(&field, 2))
            continue;
        if (f->is_list)
            add_steps(&parse, field.value, part, &sink);
        else
            tfrecord_example_add_feature(&parse, field.value, f->type, f->start, part, &sink);
    }
}
