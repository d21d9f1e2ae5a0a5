/* Files of CIFAR-10 and CIFAR-100 in their binary version: which they are, by name and content, and
 * their records. A record is the label (CIFAR-100: the coarse and the fine one), a byte each, then
 * 1,024 red, 1,024 green and 1,024 blue bytes, each plane row by row. There is no header. */
#ifndef EPOCHFS_FORMAT_CIFAR_RECORD_H
#define EPOCHFS_FORMAT_CIFAR_RECORD_H

#include "format/core/format.h"

#define CIFAR_SIDE        32
#define CIFAR_PIXELS      (3 * CIFAR_SIDE * CIFAR_SIDE)
#define CIFAR_LABELS      2 /* of a record, at most */
#define CIFAR_CLASSES_MAX 100

/* ALONE: a file that is a dataset by itself, because the user says what it is. */
enum cifar_split { CIFAR_TRAIN, CIFAR_TEST, N_CIFAR_SPLITS, CIFAR_ALONE = N_CIFAR_SPLITS };

/* What differs between the two. */
struct cifar_layout {
    const char *name;  /* for people, */
    const char *word;  /* and of format= */
    unsigned n_labels; /* bytes before the pixels */
    struct {
        const char *field;
        const char *list; /* the key of its classes in dataset.json */
        const char *file; /* the file next to it that names them, one a line */
        unsigned classes;
    } label[CIFAR_LABELS]; /* in the order of the bytes */
};
extern const struct cifar_layout cifar_10, cifar_100;
extern const char *const cifar_words[]; /* of both; ended by NULL */

static inline uint64_t cifar_record_bytes(const struct cifar_layout *layout)
{
    return layout->n_labels + CIFAR_PIXELS;
}

/* A file's name, judged. */
struct cifar_name {
    const struct cifar_layout *layout; /* NULL: of neither */
    enum cifar_split split;
    uint64_t number;    /* of data_batch_<number>.bin */
    bool is_pickle;     /* the name is that of the version in Python's pickles */
    int names_of_label; /* it names the classes of that label; -1: it is a file of records */
};

/* option: what format= says; NULL: nothing. */
void cifar_name_judge(const char *name, const char *option, struct cifar_name *ret);

/* As probe of struct format. */
enum claim cifar_probe(const struct probed_file *file);

#endif
