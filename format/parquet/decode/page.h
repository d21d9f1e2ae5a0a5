/* Pages: their headers and what they hold (README.md, Encodings.md and parquet.thrift of
 * parquet-format). The bytes are hostile. One thread. */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_PAGE_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_PAGE_H

#include "format/parquet/decode/codec.h"
#include "format/parquet/decode/values.h"

#define PAGE_BYTES_MAX  VALUES_BYTES_MAX    /* unpacked */
#define PAGE_VALUES_MAX (UINT64_C(1) << 26) /* with nulls */
#define PAGE_HEADER_MAX (UINT32_C(1) << 20)

enum page_type { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA_V2 };

struct page_header {
    unsigned len;              /* bytes of the header */
    int64_t type;              /* enum page_type, or one that is not known */
    uint64_t unpacked, packed; /* bytes of the body */
    bool has_crc;
    uint32_t crc;
    uint64_t n;                 /* values, with nulls */
    uint64_t encoding;          /* enum parquet_encoding */
    uint64_t level_encoding[2]; /* of v1: of definition and repetition levels */
    /* in v2: */
    uint64_t nulls, rows, def_bytes, rep_bytes;
    bool is_packed;
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

/* Levels and values of pages that follow each other. Starts as {.v.width}. */
struct page_data {
    size_t n;
    uint8_t *def, *rep; /* [n]; NULL: their maximum is 0 */
    struct values v;    /* one for each n whose definition level is the maximum */
};

void page_data_release(struct page_data *data);
#define AUTO_PAGE_DATA AUTO(page_data_release)

/* Append other to data; both are of one column. Other may be empty then. 0, -ENOMEM; or -EBADMSG:
 * too many. */
int page_data_append(struct page_data *data, struct page_data *other);

/* Decode the body of a data page. dictionary: of the chunk; NULL: none was before. *ret starts
 * empty. 0, -ENOMEM; or -EBADMSG, and *ret_why says why, static. */
int page_decode(const struct page_column *column, const struct page_header *header,
                const uint8_t *body, const struct values *dictionary, struct page_data *ret,
                const char **ret_why);

/* The same of a dictionary page. */
int page_decode_dictionary(const struct page_column *column, const struct page_header *header,
                           const uint8_t *body, struct values *ret, const char **ret_why);

/* The place of the first value in the body of a data page that is not packed; levels: the bytes of
 * the body from its start, as many as *ret_more asked for at last (0: it has not asked). Decodes
 * the levels to ret. 0; 1: it wants *ret_more bytes; or as page_decode(). */
int page_decode_levels(const struct page_column *column, const struct page_header *header,
                       const uint8_t *levels, size_t len, struct page_data *ret, size_t *ret_at,
                       size_t *ret_more, const char **ret_why);

/* How many of the levels are of values. */
size_t page_count_values(const struct page_column *column, const struct page_data *data);

#endif
