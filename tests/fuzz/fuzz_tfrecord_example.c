/* Bytes as a message of a TFRecord. What is read of a feature in pieces is what is read at once; a
 * plain feature has its values where it says; and a copy of the message gives the same. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "format/tfrecord/example/example.h"
#include "fuzz.h"

#define PART_MAX 65536 /* bytes of a part that are read */

struct found {
    const uint8_t *message;
    size_t len;
    uint64_t hash;
    unsigned n;
};

static uint64_t part_bytes(const struct example_feature *f, enum example_part part)
{
    switch (part) {
    case EXAMPLE_STEPS:
        return 8 * f->steps;
    case EXAMPLE_SIZES:
        return f->type == EXAMPLE_BYTES ? 8 * f->count : 0;
    case EXAMPLE_VALUES:
        break;
    }
    return f->type == EXAMPLE_BYTES      ? f->bytes
           : f->type == EXAMPLE_FLOATS   ? 4 * f->count
           : f->type == EXAMPLE_INTEGERS ? 8 * f->count
                                         : 0;
}

/* Reads into exactly the bytes of the part. */
static void read_part(struct found *found, const struct example_feature *f, enum example_part part)
{
    uint64_t bytes = part_bytes(f, part);
    size_t len = (size_t)(bytes < PART_MAX ? bytes : PART_MAX), cut = len ? found->hash % len : 0;
    AUTO_FREE uint8_t *all = malloc(len ? len : 1), *pieces = malloc(len ? len : 1);

    memset(all, 1, len);
    memset(pieces, 2, len);
    example_read(found->message, f, part, 0, len, all);
    example_read(found->message, f, part, 0, cut, pieces);
    example_read(found->message, f, part, cut, len - cut, pieces + cut);
    FUZZ_CHECK(!memcmp(all, pieces, len));
    found->hash = found->hash * 31 + fuzz_hash(all, len);
    if (part != EXAMPLE_VALUES || f->plain == EXAMPLE_NOT_PLAIN)
        return;
    FUZZ_CHECK(f->plain <= found->len && bytes <= found->len - f->plain);
    FUZZ_CHECK(!memcmp(all, found->message + f->plain, len));
}

static uint64_t sum_of(const struct found *found, const struct example_feature *f,
                       enum example_part part, uint64_t n)
{
    AUTO_FREE uint8_t *numbers = malloc(8 * n + 1);
    uint64_t sum = 0;

    example_read(found->message, f, part, 0, 8 * n, numbers);
    for (uint64_t i = 0; i < n; i++)
        sum += load_le64(numbers + 8 * i);
    return sum;
}

static int look_at(void *ctx, const struct example_feature *f)
{
    struct found *found = ctx;

    FUZZ_CHECK(f->name_len <= EXAMPLE_NAME_MAX && f->name_len <= found->len);
    FUZZ_CHECK(f->count <= found->len && f->steps <= found->len && f->bytes <= found->len);
    FUZZ_CHECK(f->is_list || (!f->steps && f->type != EXAMPLE_MIXED));
    FUZZ_CHECK(f->type != EXAMPLE_NONE || !f->count);
    if (f->type == EXAMPLE_BYTES)
        FUZZ_CHECK(sum_of(found, f, EXAMPLE_SIZES, f->count) == f->bytes);
    if (f->is_list)
        FUZZ_CHECK(sum_of(found, f, EXAMPLE_STEPS, f->steps) == f->count);
    for (unsigned part = EXAMPLE_VALUES; part <= EXAMPLE_STEPS; part++)
        read_part(found, f, (enum example_part)part);
    found->n++;
    return 0;
}

static int parse(const uint8_t *data, size_t len, struct found *ret)
{
    AUTO_FREE uint8_t *copy = malloc(len ? len : 1);
    struct example_fault fault = {NULL, SIZE_MAX};
    int r;

    if (len)
        memcpy(copy, data, len);
    *ret = (struct found){.message = copy, .len = len, .hash = fuzz_hash(data, len)};
    r = example_parse(copy, len, look_at, ret, &fault);
    FUZZ_CHECK(r == 0 || r == -EBADMSG);
    FUZZ_CHECK(r == 0 ? !fault.wanted : fault.wanted && fault.at <= len);
    fuzz_saw(&fault.at, sizeof(fault.at));
    ret->message = NULL;
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct found first, second;
    int r = parse(data, len, &first);

    FUZZ_CHECK(parse(data, len, &second) == r);
    FUZZ_CHECK(first.n == second.n && first.hash == second.hash);
    fuzz_saw(&r, sizeof(r));
    fuzz_saw(&first.n, sizeof(first.n));
    fuzz_saw(&first.hash, sizeof(first.hash));
    return 0;
}
