/* llm.c's .bin: 256 little-endian i32: a magic, a version, the number of tokens, and zeros; then
 * the tokens. */
#include <errno.h>

#include "base/bytes.h"
#include "format/tokens/stream.h"

#define HEAD 1024

static const struct {
    uint32_t magic, version;
    enum dtype dtype;
} tokens_llmc_versions[] = {{20240520, 1, DTYPE_U2}, {20240801, 7, DTYPE_U4}};

#define EVALUATION 20240522 /* HellaSwag: examples of several parts, no stream */

bool llmc_starts(const uint8_t *head, size_t len)
{
    uint32_t found = len >= 8 ? load_le32(head) : 0;

    /* A stream of tokens may begin with these four bytes: the version must be a small number. */
    if (!found || load_le32(head + 4) > 255)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(tokens_llmc_versions); i++)
        if (tokens_llmc_versions[i].magic == found)
            return true;
    return found == EVALUATION;
}

int stream_llmc(struct source_file *file, const struct format_setup *setup,
                struct token_stream **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = TAKE_PTR(file->blob);
    uint32_t magic, version, tokens;
    uint64_t bytes;
    uint8_t head[12];
    unsigned width;
    size_t i = 0;
    int r;

    if (blob->size < HEAD)
        return blob_bad(blob, d, "expected a header of %d bytes, got %llu bytes", HEAD,
                        (unsigned long long)blob->size);
    r = blob_read(READ_WAITS, blob, head, sizeof(head), 0, d);
    if (r < 0)
        return r;
    magic = load_le32(head);
    version = load_le32(head + 4);
    tokens = load_le32(head + 8);
    if (magic == EVALUATION)
        return blob_bad(blob, d,
                        "byte 0: expected a file of tokens, got an evaluation file of llm.c");
    while (i + 1 < ARRAY_LEN(tokens_llmc_versions) && tokens_llmc_versions[i].magic != magic)
        i++;
    if (version != tokens_llmc_versions[i].version)
        return blob_bad(blob, d, "byte 4: expected version %u of llm.c's file %u, got %u",
                        tokens_llmc_versions[i].version, tokens_llmc_versions[i].magic, version);
    width = dtype_info(tokens_llmc_versions[i].dtype)->bytes;
    bytes = blob->size - HEAD;
    /* The number has 32 bits; that of a larger file has lost the others. */
    if (bytes % width || (uint32_t)(bytes / width) != tokens)
        return blob_bad(blob, d,
                        "byte 8: %u tokens of %u bytes after a header of %d: expected a file of "
                        "%llu bytes, got %llu",
                        tokens, width, HEAD, HEAD + (unsigned long long)tokens * width,
                        (unsigned long long)blob->size);
    return stream_fixed(TOKENS_LLMC, TAKE_PTR(blob), tokens_llmc_versions[i].dtype, HEAD, setup,
                        ret, d);
}
