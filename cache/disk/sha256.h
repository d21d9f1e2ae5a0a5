/* SHA-256, by libcrypto. */
#ifndef EPOCHFS_CACHE_DISK_SHA256_H
#define EPOCHFS_CACHE_DISK_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define DIGEST_BYTES 32

struct digest;

/* 0 or -ENOMEM. */
int digest_new(struct digest **ret);
void digest_free(struct digest *digest);                              /* takes NULL */
int digest_add(struct digest *digest, const void *bytes, size_t len); /* 0 or -ENOMEM */
int digest_finish(struct digest *digest, uint8_t ret[static DIGEST_BYTES]);

/* n bytes as 2n digits in small letters, NUL-terminated. And back: capitals are accepted. false:
 * there is something else among the 2n bytes at text. */
void hex_print(const uint8_t *bytes, size_t n, char *ret);
bool hex_parse(const char *text, size_t n, uint8_t *ret);

#define DIGEST_TEXT_SIZE (2 * DIGEST_BYTES + 1)
void digest_text(const uint8_t digest[static DIGEST_BYTES], char ret[static DIGEST_TEXT_SIZE]);

/* Is a text one that digest_text() gives? */
bool digest_is_text(const char *text);

/* The digest of some bytes as text. 0 or -ENOMEM. */
int digest_text_of(const void *bytes, size_t len, char ret[static DIGEST_TEXT_SIZE]);

/* The digest of n fields, each with its length before it: so other fields give other bytes, however
 * they are cut. 0 or -ENOMEM. */
int digest_fields(const struct iovec *field, size_t n, uint8_t ret[static DIGEST_BYTES]);

static inline void digest_scope_end(struct digest **digest)
{
    digest_free(*digest);
}
#define AUTO_DIGEST __attribute__((cleanup(digest_scope_end)))

#endif
