/* Values of headers that have a grammar of their own. They come from strangers, and are fuzzed. */
#ifndef EPOCHFS_CACHE_HTTP_REPLY_FIELDS_H
#define EPOCHFS_CACHE_HTTP_REPLY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Link (RFC 8288): copy the target with rel="next" to ret. false: there is none, or it is too long
 * or has other than printable ASCII; ret is then "". */
bool http_link_next(const char *value, char *ret, size_t capacity);

/* RateLimit, as in "api";r=0;t=55: the milliseconds until requests are allowed again, a second
 * added, at most HTTP_RETRY_MOST_MS. 0: some are left, or it cannot be read. */
uint64_t http_limit_parse(const char *value);

/* Content-Encoding: copy what has to be undone, "" for nothing. `aws-chunked` is how a file was
 * uploaded; some servers keep the word. */
void http_encoding_parse(const char *value, char *ret, size_t capacity);

#endif
