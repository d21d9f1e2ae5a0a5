/* Kaldi tables as a format.
 *
 * A table is a dataset with the name of its file; the known tables of a data directory are one
 * dataset, `all`. An archive that an scp file of the same folder names is not a dataset of its
 * own. */
#include "format/core/format.h"

#include "base/text.h"
#include "format/kaldi/set/folder.h"

/* The field for the example: features, or audio, or the first. */
static const struct field *main_field(const struct dataset *ds)
{
    static const char *const names[] = {"feats", "wav"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct field *f = dataset_field(ds, names[i]);

        if (f)
            return f;
    }
    return &ds->field[0];
}

static void kaldi_example(const struct dataset *ds, struct text *t)
{
    const struct field *f = main_field(ds);
    char name[KEY_NAME_SIZE] = "<key>";

    if (dataset_state(ds) == DATASET_READY && ds->samples)
        dataset_name(ds, 0, false, name);
    if (f->form == FORM_RAGGED)
        text_add(t,
                 "  batch = root + '/batches/batch=32,seed=7/epoch=0/npy/000000'\n"
                 "  x, lengths = np.load(batch + '.%s.npy'), np.load(batch + '.%s_len.npy')\n"
                 "  one = np.load(root + '/samples/npy/%s.%s.npy')\n",
                 f->name, f->name, name, f->name);
    else
        text_add(t,
                 "  batch = np.load(root + '/batches/batch=32,seed=7/epoch=0/npz/000000.npz')\n"
                 "  one = np.load(root + '/samples/npz/%s.npz')\n",
                 name);
    text_add(t,
             "\n"
             "  # the same batch for Kaldi, here: "
             "scp:batches/batch=32,seed=7/epoch=0/ark/000000%s%s.scp\n",
             f->unnamed ? "" : ".", f->unnamed ? "" : f->name);
}

static const char *kaldi_option(const struct format_options *options)
{
    return options->kaldi_join ? "join" : NULL;
}

extern const struct format format_kaldi;

static int kaldi_open_folder(struct source_file *sources, size_t n,
                             const struct format_setup *setup, struct finds *finds)
{
    return kaldi_folder_open(&format_kaldi, sources, n, setup, finds);
}

const struct format format_kaldi = {
    .option = kaldi_option,
    .name = "kaldi",
    .probe = kaldi_probe,
    .open_folder = kaldi_open_folder,
    .title = "Kaldi tables",
    .add_example = kaldi_example,
};
