#include "format/registry.h"

extern const struct format format_cifar;
extern const struct format format_idx;
extern const struct format format_csv;
extern const struct format format_dmatrix;
extern const struct format format_jsonl;
extern const struct format format_libfm;
extern const struct format format_libsvm;
extern const struct format format_kaldi;
extern const struct format format_mindrecord;
extern const struct format format_npy;
extern const struct format format_npz;
extern const struct format format_parquet;
extern const struct format format_recordio;
extern const struct format format_safetensors;
extern const struct format format_tar;
extern const struct format format_tfrecord;
extern const struct format format_tokens;
extern const struct format format_files;
extern const struct format format_zip;
extern const struct format format_mds;

/* For two equal claims the first format has the file: what begins with a magic comes before text.
 */
const struct format *const formats[] = {
    &format_idx,    &format_npy,        &format_npz,      &format_safetensors, &format_parquet,
    &format_zip,    &format_mds,        &format_dmatrix,  &format_libfm,       &format_libsvm,
    &format_kaldi,  &format_mindrecord, &format_recordio, &format_tar,         &format_tfrecord,
    &format_tokens, &format_jsonl,      &format_csv,      &format_files,       &format_cifar,
};
const unsigned n_formats = ARRAY_LEN(formats);
