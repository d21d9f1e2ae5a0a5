/* Files of the mount as the encoders make them, and an independent model of their content. */
#ifndef EPOCHFS_TESTS_SUPPORT_RENDER_H
#define EPOCHFS_TESTS_SUPPORT_RENDER_H

#include "format/core/encoder.h"

/* The samples of a list, in its order. */
struct list_selection {
    struct selection sel;
    const uint64_t *sample; /* [sel.count] */
};

void list_selection_init(struct list_selection *ret, const uint64_t *sample, uint64_t count);

/* The encoder's kind of file with that suffix (".image.npy"), or NULL. */
const struct file_kind *find_file_kind(const struct dataset *ds, enum scope scope,
                                       const char *encoder, const char *suffix);

struct bytes {
    uint8_t *at;
    uint64_t len;
};

/* The whole file. 0 or the encoder's error. The caller frees ret->at. */
int render(struct read_context *rc, const struct dataset *ds, const struct file_kind *kind,
           const struct selection *sel, const struct layout_host *host, struct bytes *ret);

/* Read many byte ranges of a file, or, of a small file, all; in sanitizer builds a fifth of them.
 * Each must equal the slice of the known whole, and no byte outside dst may be written. False if
 * one is wrong. */
bool ranges_agree(const struct dataset *ds, const struct file_kind *kind,
                  const struct selection *sel, const struct bytes *whole, unsigned random_ranges);

/* The items of a field for a selection as files must show them, from the pattern that idx_blob()
 * wrote. The caller frees ret->at. */
void model_items(const struct dataset *ds, const struct field *f, const struct selection *sel,
                 struct bytes *ret);

/* The same as the source stores them. */
void model_stored(const struct field *f, const struct selection *sel, struct bytes *ret);

/* The same with the header of a .npy file. */
void model_npy(const struct dataset *ds, const struct field *f, const struct selection *sel,
               struct bytes *ret);

/* The same as decimal text. */
void model_cls(const struct field *f, const struct selection *sel, struct bytes *ret);

#endif
