/* Arrays in files: a .npy file has one, a .npz file and a safetensors file have several. The first
 * axis of an array counts its samples.
 *
 * format/array/pairs.h says which arrays are one dataset, format/array/set.h makes it. */
#ifndef EPOCHFS_FORMAT_ARRAY_ARRAY_H
#define EPOCHFS_FORMAT_ARRAY_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/scope.h"
#include "format/core/npy_head.h"

#define ARRAY_NAME_MAX 48 /* bytes of a name; it becomes a part of names of files */

/* A blob that several arrays, and datasets of them, are in. One thread counts. */
struct held_blob {
    struct blob *blob;       /* owned */
    struct held_blob *under; /* held as well: the source of what blob has. NULL: none */
    unsigned users;
    const void *last_set; /* the last dataset that has; for comparison only */
};

/* Takes ownership of blob, also on error, and has one user. under (may be NULL) gets one more.
 * NULL: no memory. */
struct held_blob *held_blob_new(struct blob *blob, struct held_blob *under);
struct held_blob *held_blob_take(struct held_blob *held);
void held_blob_drop(struct held_blob *held); /* the last one frees it; takes NULL */

/* The rows of an array that are in one file. */
struct array_part {
    struct held_blob *held; /* one user; NULL if the array is omitted */
    uint64_t offset;        /* of the first element in that blob */
    uint64_t samples;       /* of an array in several files, and */
    uint64_t number;        /* the file's among its siblings */
    bool has_crc;           /* of bytes [off, off + len) of the file: */
    uint32_t crc;           /* CRC-32, which `info --check` compares */
    uint64_t off, len;
};

struct array {
    const char *file;        /* its name in finds_siblings(), not owned; NULL: it has none */
    struct array_part here;  /* its rows in that file */
    struct array_part *part; /* [n_parts] owned; 0: it is in one file */
    size_t n_parts;
    bool is_part;          /* another array has it as a part */
    size_t set;            /* of siblings that its file is in, from 1; 0: none */
    char *remark;          /* what people have to know; owned; NULL: nothing */
    char *name;            /* safe for the name of a file; owned */
    struct npy_head head;  /* type and shape; fortran only until array_in_c_order() */
    uint64_t samples;      /* head.dim[0]; of an array in parts: of all; of one omitted: if known */
    uint64_t row_bytes;    /* of one sample */
    uint64_t extra;        /* bytes that follow it in its file, and are not read */
    const char *type_name; /* what its file calls the type, if numpy has no such; NULL */
    bool repeats;          /* an array before it has its name */
    char *left_out;        /* why it is in no dataset; owned. NULL: it is in one */
    bool is_beside;        /* one omitted, without which others can be used: texts, scalars */
};

/* Arrays of a file, or of the files of a folder. Starts as {0}. */
struct arrays {
    struct array *array; /* [n]; owned */
    size_t n;
    void *names; /* a tree of those that do not repeat another: tsearch() */
};

/* The length of the name without the suffix, in small letters or capitals, if it has it. */
size_t array_name_without(const char *name, size_t len, const char *suffix);

/* Add an array of that name, made safe: '/' becomes '.'; NULL: no memory. The name's bytes need not
 * be text. */
struct array *arrays_add(struct arrays *arrays, const char *name, size_t len);
void arrays_drop_last(struct arrays *arrays);
void arrays_release(struct arrays *arrays);
#define AUTO_ARRAYS AUTO(arrays_release)

/* Omit it of datasets; the first reason remains. 0 or -ENOMEM. */
int array_leave_out(struct array *a, const char *reason);

/* The same for a reason that begins with the name `what`. */
int array_leave_out_by(struct array *a, const struct diag *reason, const char *what);

/* Check shape and type of a->head, and set samples and row_bytes. 0; -ENODATA: a scalar, which has
 * no samples; -EBADMSG, with the reason in d, which begins with what. */
int array_set_shape(struct array *a, const char *what, struct diag *d);

/* Read the header of the .npy at bytes [off, off + len) of its blob, and set the members that
 * follow from it. exact: the array ends where these bytes do; otherwise bytes may follow. what: its
 * name in messages. 0; -ENODATA: it is good, but no array that samples could be made of; -EBADMSG
 * and others, with the reason in d. */
int npy_read(struct array *a, uint64_t off, uint64_t len, bool exact, const char *what,
             struct diag *d);

/* The same from the first `have` bytes of it, the header at least if that is in the len bytes,
 * which are not in a blob yet. */
int npy_parse(struct array *a, const uint8_t *head, size_t have, uint64_t off, uint64_t len,
              bool exact, const char *what, struct diag *d);

#define FORTRAN_MAX                                                                                \
    (UINT64_C(64) << 20) /* bytes of such arrays of one folder, which memory holds */

/* Turn an array whose elements are in Fortran's order into one in C's order, in memory. *left:
 * bytes that may still be used so. 0, -EBADMSG: that is too little; or another -errno. */
int array_in_c_order(struct array *a, uint64_t *left, const char *what, struct diag *d);

#endif
