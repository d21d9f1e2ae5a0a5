/* libsvm text in memory, what format_libsvm makes of it, and a keep in memory. */
#ifndef EPOCHFS_TESTS_SUPPORT_LIBSVM_MAKE_H
#define EPOCHFS_TESTS_SUPPORT_LIBSVM_MAKE_H

#include "support/idx_make.h"
#include "support/render.h"

extern const struct format format_libsvm;

/* Keeps the thing that was saved last; refuse: none, as on a full disk. */
struct memory_keep {
    struct index_store keep;
    bool refuse;
    char *identity; /* of it; owned. NULL: any */
    uint8_t *bytes; /* owned */
    size_t size;
    unsigned loads, saves, removes; /* that something came of */
};

void memory_keep_init(struct memory_keep *ret, bool refuse);
void memory_keep_release(struct memory_keep *keep);

/* Give the blobs to format_libsvm, as format_open() does, and prepare every dataset to its end, in
 * whatever state that is. 0 or -ENOMEM. keep may be NULL: one that refuses. */
struct libsvm_made {
    struct memo *memo;
    struct memory_keep refuses;
    struct found found;
};

int libsvm_open(struct blob **blob, size_t n, const struct format_options *options,
                const struct index_store *keep, struct pool *pool, struct libsvm_made *ret);
void libsvm_release(struct libsvm_made *made);

/* The dataset of that name, NULL: there is none. */
struct dataset *libsvm_dataset(const struct libsvm_made *made, const char *name);

/* Selections with an id of their own: of a list, and of n samples in their order. */
void mixed_init(struct list_selection *ret, const uint64_t *sample, uint64_t n);
void in_order_init(struct selection *ret, uint64_t first, uint64_t n);
void sample_init(struct one_sample *ret, uint64_t sample);

/* The bytes of a field alone. 0 or -errno; the caller frees ret->at. */
int field_bytes(const struct dataset *ds, const char *field, const struct selection *sel,
                struct bytes *ret, struct diag *d);

#endif
