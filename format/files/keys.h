/* Keys of samples: those that a table says; or the stem where no other sample of the dataset has
 * it; otherwise the path below the top without the extension, where that is unique; failing that,
 * the path with it. */
#ifndef EPOCHFS_FORMAT_FILES_KEYS_H
#define EPOCHFS_FORMAT_FILES_KEYS_H

#include "format/files/claim/claim.h"
#include "format/index/index.h"

/* Hashes of stems, and of paths, that several samples have. Two that share a hash by chance have
 * longer keys than they need. */
struct sample_keys {
    const struct members *m;
    const struct files_claim *claim;
    const struct files_view *view;
    struct repeated {
        uint64_t *hash; /* [n] sorted */
        size_t n;
    } stems, paths;
};

/* Find what repeats among the samples of a view. 0 or -ENOMEM. */
int sample_keys_init(struct sample_keys *ret, const struct members *m,
                     const struct files_claim *claim, const struct files_view *view);
void sample_keys_release(struct sample_keys *keys); /* of one that starts as {0} */

/* The key of the sample of a row of the view; returns its length, at most KEY_MAX. */
size_t sample_key(const struct sample_keys *keys, uint64_t row, const struct sample_files *sample,
                  char ret[static KEY_MAX]);

#endif
