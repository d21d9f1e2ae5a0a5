/* Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift), as the footers and page
 * headers of Parquet have it. The bytes are hostile: no access leaves them, no count is believed
 * before as many bytes follow, and what is skipped is at most THRIFT_DEPTH levels deep.
 *
 * After a fault every function returns 0 or false, and `fault` says what is wrong at which byte.
 * One thread. */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_THRIFT_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THRIFT_DEPTH 64 /* levels of structs and lists, at most */

enum thrift_type {
    THRIFT_STOP,
    THRIFT_TRUE,
    THRIFT_FALSE,
    THRIFT_BYTE,
    THRIFT_I16,
    THRIFT_I32,
    THRIFT_I64,
    THRIFT_DOUBLE,
    THRIFT_BINARY,
    THRIFT_LIST,
    THRIFT_SET,
    THRIFT_MAP,
    THRIFT_STRUCT,
};

/* Starts with bytes and end set. */
struct thrift {
    const uint8_t *bytes, *end;
    const uint8_t *at; /* of the next byte */
    const char *fault; /* static; NULL: none yet */
    const uint8_t *fault_at;
};

/* A field of a struct; starts as {0} for each struct. */
struct thrift_field {
    int id;
    enum thrift_type type;
};

void thrift_init(struct thrift *t, const uint8_t *bytes, size_t len);

/* The head of the next field. false: the struct has ended, or there is a fault. */
bool thrift_next(struct thrift *t, struct thrift_field *f);

/* The value of a field of that type: an integer, or 1 or 0 of a bool. false: it is of another type
 * and was skipped, or there is a fault. */
bool thrift_number(struct thrift *t, const struct thrift_field *f, int64_t *ret);

/* The same of binary, and of text; it is not ended by NUL. */
bool thrift_binary(struct thrift *t, const struct thrift_field *f, const uint8_t **ret,
                   size_t *ret_len);

/* The number of elements of a list field, whose elements are of that type, and follow. */
bool thrift_list(struct thrift *t, const struct thrift_field *f, enum thrift_type element,
                 uint32_t *ret);

/* Is the field a struct, whose fields follow? If not, it is skipped. */
bool thrift_struct(struct thrift *t, const struct thrift_field *f);

/* An element of a list of integers. */
int64_t thrift_element(struct thrift *t);

/* The numbers of a struct whose fields follow, by their ids below n; others do not change. */
void thrift_numbers(struct thrift *t, int n, int64_t *ret);

/* Skip the value of a field. */
void thrift_skip(struct thrift *t, enum thrift_type type);

#endif
