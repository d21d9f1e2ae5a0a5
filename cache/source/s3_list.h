/* Answers of S3 servers: a page of a listing (ListObjectsV2), and errors. */
#ifndef EPOCHFS_CACHE_SOURCE_S3_LIST_H
#define EPOCHFS_CACHE_SOURCE_S3_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"
#include "cache/stage/transport.h"

struct s3_object {
    char *key; /* decoded; any bytes but NUL */
    struct remote_version version;
};

struct s3_page {
    struct s3_object *object; /* [n] */
    size_t n;
    struct texts prefix; /* of a listing by folders: decoded, '/' at their ends */
    char *token;         /* of the next page; NULL: this is the last one */
};

/* A hash of the objects that a page lists, and of whether there are more. Pages with the same one
 * list the same objects in the same versions: tokens and times of the request do not count. */
uint64_t s3_page_hash(const void *page, size_t len);

/* 0 and a page that the caller releases; -EBADMSG with the reason in d, or -ENOMEM. what: for
 * messages. */
int s3_page_parse(const char *xml, size_t len, const char *what, struct s3_page *ret,
                  struct diag *d);
void s3_page_release(struct s3_page *page);
#define AUTO_S3_PAGE AUTO(s3_page_release)

/* The content of an error answer; "": absent. Control bytes are omitted. */
struct s3_error {
    char code[64], message[256], region[64], endpoint[256];
};

/* false: not an error answer. */
bool s3_error_parse(const char *xml, size_t len, struct s3_error *ret);

#endif
