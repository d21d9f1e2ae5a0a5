/* A model of the files of a dataset of Kaldi tables. It makes each file as a whole, from known
 * cells, by the rules of docs/spec/kaldi.md. */
#ifndef EPOCHFS_TESTS_SUPPORT_KALDI_MODEL_H
#define EPOCHFS_TESTS_SUPPORT_KALDI_MODEL_H

#include "support/kaldi_make.h"
#include "support/render.h"

#define KALDI_MODEL_COLUMNS 4
#define KALDI_MODEL_FILES   64

/* A table's cell for a sample. */
struct kaldi_model_cell {
    struct text stored; /* the object in its file */
    struct text entry;  /* what follows the key in an archive */
    struct text line;   /* tokens, without a line's end */
    struct text wav;    /* a .wav file */
    uint32_t rate;
    uint64_t shape[KALDI_ARRAYS_MAX][2];
    struct text value[KALDI_ARRAYS_MAX]; /* as files show them */
};

struct kaldi_model_column {
    const char *name;
    bool unnamed;
    enum kaldi_type type;
    enum dtype real;               /* of real numbers */
    bool mono;                     /* waves have one axis */
    struct kaldi_model_cell *cell; /* [samples] owned */
};

struct kaldi_model {
    uint64_t samples;
    char **key; /* [samples] owned, with the strings */
    unsigned n_columns;
    struct kaldi_model_column column[KALDI_MODEL_COLUMNS];
};

void kaldi_model_init(struct kaldi_model *m, uint64_t samples);
void kaldi_model_release(struct kaldi_model *m);

/* The next column, with empty cells. */
struct kaldi_model_column *kaldi_model_add(struct kaldi_model *m, const char *name, bool unnamed,
                                           enum kaldi_type type);

/* Set a cell from a made object. */
void kaldi_model_take(struct kaldi_model_cell *cell, const struct kaldi_made *made,
                      enum dtype real);

/* Set a cell of audio from interleaved samples; the caller fills in stored. */
void kaldi_model_wave(struct kaldi_model_cell *cell, unsigned channels, uint32_t rate,
                      const int16_t *samples, size_t frames);

/* A file of a selection. For npz and tar: its members, see kaldi_model_unpack(). */
struct kaldi_model_file {
    const char *encoder;
    char suffix[96];
    bool fails; /* the arrays of a batch do not fit into one */
    struct text bytes;
};

struct kaldi_model_files {
    size_t n;
    struct kaldi_model_file file[KALDI_MODEL_FILES];
};

void kaldi_model_render(const struct kaldi_model *m, const struct selection *sel,
                        struct kaldi_model_files *ret);
void kaldi_model_files_release(struct kaldi_model_files *files);

/* The members of a container in sequence: name, newline, 8 bytes of length, content. For other
 * files their bytes. false: a malformed container. */
bool kaldi_model_unpack(const char *encoder, const struct bytes *file, struct text *ret);

#endif
