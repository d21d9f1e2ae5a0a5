/* A model of the files that a dataset of Kaldi tables has: all of a file at once, from cells that
 * are known, by what docs/kaldi.md says. */
#ifndef EPOCHFS_TESTS_SUPPORT_KALDI_MODEL_H
#define EPOCHFS_TESTS_SUPPORT_KALDI_MODEL_H

#include "support/kaldi_make.h"
#include "support/render.h"

#define KALDI_MODEL_COLUMNS 4
#define KALDI_MODEL_FILES   48

/* What a table has for a sample. */
struct kaldi_model_cell {
    struct text stored; /* the object in its file */
    struct text entry;  /* what follows the key in an archive */
    struct text line;   /* tokens, without a line's end */
    struct text wav;    /* a .wav file */
    uint32_t rate;
    uint64_t shape[KALDI_ARRAYS_MAX][2];
    struct text value[KALDI_ARRAYS_MAX]; /* as they are shown */
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
    char **key; /* [samples] owned, as all they point to */
    unsigned n_columns;
    struct kaldi_model_column column[KALDI_MODEL_COLUMNS];
};

void kaldi_model_init(struct kaldi_model *m, uint64_t samples);
void kaldi_model_release(struct kaldi_model *m);

/* The next column, with empty cells. */
struct kaldi_model_column *kaldi_model_add(struct kaldi_model *m, const char *name, bool unnamed,
                                           enum kaldi_type type);

/* A cell of what was made. */
void kaldi_model_take(struct kaldi_model_cell *cell, const struct kaldi_made *made,
                      enum dtype real);

/* A cell of audio: interleaved samples; stored has to be filled in. */
void kaldi_model_wave(struct kaldi_model_cell *cell, unsigned channels, uint32_t rate,
                      const int16_t *samples, size_t frames);

/* A file of a selection. Of npz and tar: its members, see kaldi_model_unpack(). */
struct kaldi_model_file {
    const char *encoder;
    char suffix[96];
    bool fails; /* the arrays of a batch cannot be one */
    struct text bytes;
};

struct kaldi_model_files {
    size_t n;
    struct kaldi_model_file file[KALDI_MODEL_FILES];
};

void kaldi_model_render(const struct kaldi_model *m, const struct selection *sel,
                        struct kaldi_model_files *ret);
void kaldi_model_files_release(struct kaldi_model_files *files);

/* The members of a container, one after another: name, newline, 8 bytes of length, content. Of
 * other files their bytes. false: it is not one. */
bool kaldi_model_unpack(const char *encoder, const struct bytes *file, struct text *ret);

#endif
