/* Pages: their headers and what they hold (README.md, Encodings.md and parquet.thrift of
 * parquet-format). The bytes are hostile. One thread. */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_PAGE_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_PAGE_H

#include "format/parquet/decode/codec.h"
#include "format/parquet/decode/values.h"

#define PAGE_BYTES_MAX  VALUES_BYTES_MAX /* unpacked */
#define PAGE_HEADER_MAX (UINT32_C(1) << 20)

enum page_type { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA_V2 };

#define PAGE_NO_CRC INT64_MIN

/* Thrift's numbers, which are negative where a header lacks them. */
struct page_header {
    unsigned len;                  /* bytes of the header */
    int64_t type;                  /* enum page_type, or one that is not known */
    int64_t has[PAGE_DATA_V2 + 1]; /* more than 0: it has what pages of that type have */
    uint64_t unpacked, packed;     /* bytes of the body */
    int64_t crc;
    uint64_t n;                 /* values, with nulls */
    uint64_t encoding;          /* enum parquet_encoding */
    uint64_t level_encoding[2]; /* of v1: of definition and repetition levels */
    uint64_t nulls, rows, def_bytes, rep_bytes, is_packed; /* of v2 */
};

/* Read a header. 0; -ENODATA: it is none, or has more bytes than len; or -EBADMSG. *ret_why says
 * why, static. */
int page_header_read(const uint8_t *bytes, size_t len, struct page_header *ret,
                     const char **ret_why);

/* A column as its pages have it. */
struct page_column {
    enum parquet_type type;
    uint32_t width; /* bytes of a value; 0: they differ */
    unsigned max_def, max_rep;
    enum parquet_codec codec;
};

/* Levels and values of pages that follow each other. Starts as {0}. */
struct page_data {
    size_t n, n_values;
    uint8_t *def, *rep; /* [n]; NULL: their maximum is 0 */
    struct values v;    /* [n_values] one for each n whose definition level is the maximum */
};

void page_data_release(struct page_data *data);
#define AUTO_PAGE_DATA AUTO(page_data_release)

/* Make space for n more levels. 0 or -ENOMEM. */
int page_data_grow(const struct page_column *column, struct page_data *data, size_t n);

/* Drop the first n levels, and their values. */
void page_data_drop(const struct page_column *column, struct page_data *data, size_t n);

/* Decode the body of a data page, and append it. dictionary: of the chunk; NULL: none was before.
 * memory: pages are unpacked there, one after another; starts as {0}.
 * 0, -ENOMEM; or -EBADMSG, and *ret_why says why, static. */
int page_decode(const struct page_column *column, const struct page_header *header,
                const uint8_t *body, const struct values *dictionary, struct values_memory *memory,
                struct page_data *ret, const char **ret_why);

/* The same of a dictionary page. */
int page_decode_dictionary(const struct page_column *column, const struct page_header *header,
                           const uint8_t *body, struct values_memory *memory, struct values *ret,
                           const char **ret_why);

/* The place of the first value in the body of a data page that is not packed: append the levels,
 * which are in the first len bytes of it. As page_decode(), or -ENODATA: they are not. */
int page_decode_levels(const struct page_column *column, const struct page_header *header,
                       const uint8_t *bytes, size_t len, struct page_data *ret, size_t *ret_at,
                       const char **ret_why);

#endif
