/* Audio of records as arrays: the field `audio` of a dataset some of whose contents are the bytes
 * of files of audio, for -o audio=; and how long they are. */
#ifndef EPOCHFS_FORMAT_RECORDS_RECORD_AUDIO_H
#define EPOCHFS_FORMAT_RECORDS_RECORD_AUDIO_H

#include "format/audio/audio.h"
#include "format/records/record_made.h"

#define RECORD_AUDIO_FIELDS 15 /* that are added, at most */

struct record_audio;

/* Records that are parts of files: Kaldi's segments of recordings. */
struct record_audio_parts {
    /* Is a record a part of what the source shows? Then *ret_file is the number of that file. */
    bool (*is_part)(const struct dataset *ds, const struct record_content *source, uint64_t record,
                    uint64_t *ret_file);
    /* Which part of a file of so many frames. 0, or -EBADMSG with the reason in d. */
    int (*find)(const struct dataset *ds, const struct record_content *source, uint64_t record,
                const struct audio_info *whole, struct audio_part *ret, struct diag *d);
};

/* Audio of a dataset, in the first of n contents that a record has; ds->durations is set. parts:
 * NULL: each record has all of its file. The caller frees *ret with the dataset. 0 or -ENOMEM. */
int record_audio_new(struct dataset *ds, const struct format_setup *setup,
                     const struct record_content *const *source, unsigned n,
                     const struct record_audio_parts *parts,
                     int (*identity)(const struct dataset *ds, struct text *t),
                     struct record_audio **ret);
void record_audio_free(struct record_audio *audio); /* takes NULL */

/* With audio=, before the dataset is ready: add the fields, under that name; has_holes: there are
 * records that have no audio. Then find the lengths, when the records are known: see step() of
 * struct durations; they are noted. */
void record_audio_add(struct dataset *ds, struct record_audio *audio,
                      const struct format_setup *setup, const char *name, bool has_holes);
int record_audio_prepare(struct dataset *ds, struct record_audio *audio, struct diag *d);

/* Members of dataset.json: see describe() of struct dataset_ops. */
void record_audio_describe(const struct record_audio *audio, const char *indent, struct text *t);

#endif
