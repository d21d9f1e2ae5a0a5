/* libsvm text in memory, the datasets that format_libsvm makes from it, and an index store in
 * memory. */
#ifndef EPOCHFS_TESTS_SUPPORT_LIBSVM_MAKE_H
#define EPOCHFS_TESTS_SUPPORT_LIBSVM_MAKE_H

#include "support/idx_make.h"
#include "support/render.h"

extern const struct format format_libsvm;

/* An index store that keeps the index saved last; refuse: keeps none, like a full disk. */
struct memory_keep {
    struct index_store keep;
    bool refuse;
    bool by_content; /* what it loads is (base/index_store.h) */
    char *identity;  /* of that index; owned. NULL: any */
    uint8_t *bytes;  /* owned */
    size_t size;
    unsigned loads, saves, removes; /* successful ones */
};

void memory_keep_init(struct memory_keep *ret, bool refuse);
void memory_keep_release(struct memory_keep *keep);

/* Give the blobs to format_libsvm, as format_open() does, and prepare every dataset until it is
 * ready or failed. 0 or -ENOMEM. keep NULL: a store that refuses. */
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

/* Selections with a unique id: of a list, and of n samples in stored order. */
void mixed_init(struct list_selection *ret, const uint64_t *sample, uint64_t n);
void in_order_init(struct selection *ret, uint64_t first, uint64_t n);
void sample_init(struct one_sample *ret, uint64_t sample);

/* The bytes of one field. 0 or -errno; the caller frees ret->at. */
int field_bytes(const struct dataset *ds, const char *field, const struct selection *sel,
                struct bytes *ret, struct diag *d);

#endif
