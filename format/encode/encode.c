#include "format/encode/encode.h"

extern const struct encoder encoder_raw, encoder_npy, encoder_npz, encoder_tar, encoder_png,
    encoder_pgm, encoder_idx, encoder_csc, encoder_csc_value, encoder_tfrecord;

const struct encoder *const encoders[] = {
    &encoder_raw, &encoder_npy, &encoder_npz, &encoder_tar,       &encoder_png,
    &encoder_pgm, &encoder_idx, &encoder_csc, &encoder_csc_value, &encoder_tfrecord,
};
const unsigned n_encoders = ARRAY_LEN(encoders);

int dataset_add_folders(struct dataset *ds)
{
    return dataset_fill_folders(ds, encoders, n_encoders);
}
