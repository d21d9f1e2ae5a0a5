/* The tables of a data directory, joined by utterance.
 *
 * The samples are the utterances that every table has, in the order of the first of utt2spk,
 * segments, feats, wav, text that is there. A table may be keyed by utterance, by speaker (utt2spk
 * says whose) or by recording (segments says which): the first utterances tell. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_JOIN_H
#define EPOCHFS_FORMAT_KALDI_SET_JOIN_H

#include "format/kaldi/table/table.h"

struct kaldi_join;
struct kaldi_set;

/* segments: the blob of that file, taken over; NULL: there is none. 0, -E2BIG: too many tables,
 * -ENOMEM. */
int kaldi_join_new(const struct kaldi_set *set, const struct index_store *keep,
                   struct blob *segments, struct kaldi_join **ret);
void kaldi_join_free(struct kaldi_join *join); /* takes NULL */

/* All tables are ready: join them a step further. 1: done, 0: not yet, or -errno with the reason in
 * d. */
int kaldi_join_step(struct kaldi_join *join, struct diag *d);

/* The samples: their keys, and for each column the number of its row; for audio that is cut behind
 * that the first sample of a channel, how many, and the channel from 1 (0: all). */
const struct key_index *kaldi_join_index(const struct kaldi_join *join);

/* Members of dataset.json: what is missing in which table, and what is too much. */
void kaldi_join_describe(const struct kaldi_join *join, const char *indent, struct text *t);

/* What is not as it should be: lines without an end, "" where all is well. */
const char *kaldi_join_notes(const struct kaldi_join *join);

#endif
