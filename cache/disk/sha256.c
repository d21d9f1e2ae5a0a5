#include "cache/disk/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* The context is libcrypto's own. */

int digest_new(struct digest **ret)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return -ENOMEM;
    }
    *ret = (struct digest *)context;
    return 0;
}

void digest_free(struct digest *digest)
{
    EVP_MD_CTX_free((EVP_MD_CTX *)digest);
}

int digest_add(struct digest *digest, const void *bytes, size_t len)
{
    return EVP_DigestUpdate((EVP_MD_CTX *)digest, bytes, len) == 1 ? 0 : -ENOMEM;
}

int digest_finish(struct digest *digest, uint8_t ret[static DIGEST_BYTES])
{
    return EVP_DigestFinal_ex((EVP_MD_CTX *)digest, ret, NULL) == 1 ? 0 : -ENOMEM;
}

void hex_print(const uint8_t *bytes, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool hex_parse(const char *text, size_t n, uint8_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

        if (low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void digest_text(const uint8_t digest[static DIGEST_BYTES], char ret[static DIGEST_TEXT_SIZE])
{
    hex_print(digest, DIGEST_BYTES, ret);
}

bool digest_is_text(const char *text)
{
    return strlen(text) == DIGEST_TEXT_SIZE - 1 && strspn(text, "0123456789abcdef") == strlen(text);
}

int digest_text_of(const void *bytes, size_t len, char ret[static DIGEST_TEXT_SIZE])
{
    AUTO_DIGEST struct digest *digest = NULL;
    uint8_t sum[DIGEST_BYTES];
    int r = digest_new(&digest);

    if (r == 0)
        r = digest_add(digest, bytes, len);
    if (r == 0)
        r = digest_finish(digest, sum);
    if (r == 0)
        digest_text(sum, ret);
    return r;
}

int digest_fields(const struct iovec *field, size_t n, uint8_t ret[static DIGEST_BYTES])
{
    AUTO_DIGEST struct digest *digest = NULL;
    int r = digest_new(&digest);

    for (size_t i = 0; i < n && r == 0; i++) {
        uint8_t len[8];

        store_le64(len, field[i].iov_len);
        r = digest_add(digest, len, sizeof(len));
        if (r == 0)
            r = digest_add(digest, field[i].iov_base, field[i].iov_len);
    }
    return r < 0 ? r : digest_finish(digest, ret);
}
