/* Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift), as the footers and page
 * headers of Parquet have it: a struct is read by a table of the fields that are wanted. The bytes
 * are hostile: no access leaves them, no count is believed before as many bytes follow, and what is
 * skipped is at most THRIFT_DEPTH levels deep.
 *
 * After a fault nothing more is read, and `fault` says what is wrong at which byte. One thread. */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_THRIFT_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THRIFT_DEPTH 64 /* levels of structs and lists, at most */

/* Starts as {.at, .end}. */
struct thrift {
    const uint8_t *at, *end; /* the next byte */
    const char *fault;       /* static; NULL: none yet */
    const uint8_t *fault_at;
};

struct thrift_bytes {
    const uint8_t *at; /* NULL: there were none */
    size_t len;
};

/* What a field becomes, in the memory that the fields of a struct are read to. */
enum thrift_what {
    THRIFT_NUMBER, /* int64_t: an integer, or 1 or 0 of a bool */
    THRIFT_BYTES,  /* struct thrift_bytes, of binary or text */
    THRIFT_BITS,   /* uint64_t: a bit for each number of a list of integers; bit 63: larger ones */
    THRIFT_SEEN,   /* bool: one exists, of whatever type */
    THRIFT_INSIDE, /* int64_t: 1; of a struct, and its fields by another table, in the same memory
                    */
    THRIFT_UNION,  /* int64_t: the number of the member; and the fields of that, as above */
    THRIFT_LIST,   /* of structs: list() reads all of them */
};

struct thrift_rule {
    int id;
    enum thrift_what becomes;
    size_t at;                       /* in the memory */
    const struct thrift_rule *rules; /* of what is inside; NULL: it is skipped */
    int (*list)(void *memory, uint32_t n);
};

#define THRIFT_RULE(memory, number, what, member, ...)                                             \
    {                                                                                              \
        .id = (number), .becomes = (what), .at = offsetof(memory, member), __VA_ARGS__             \
    }

/* Read the fields of a struct, which follow. Fields without a rule for their id and type are
 * skipped, and of a field that comes twice the last one counts. The rules end with id 0. 0,
 * -EBADMSG with the fault in t, or an error of list(). */
int thrift_read(struct thrift *t, const struct thrift_rule *rules, void *memory);

#endif
