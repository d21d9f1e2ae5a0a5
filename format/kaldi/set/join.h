/* The tables of a data directory, joined by utterance.
 *
 * The samples are the utterances that every table has, in the order of the first of utt2spk,
 * segments, feats, wav, text that exists. A table may be keyed by utterance, by speaker (utt2spk
 * maps to it) or by recording (segments maps to it): the first utterances decide. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_JOIN_H
#define EPOCHFS_FORMAT_KALDI_SET_JOIN_H

#include "format/kaldi/table/table.h"

struct kaldi_join;
struct kaldi_set;

/* Join the columns of a set, by its table segments if there is one. 0, -E2BIG: too many tables,
 * -ENOMEM. */
int kaldi_join_new(const struct kaldi_set *set, const struct index_store *keep,
                   struct kaldi_join **ret);
void kaldi_join_free(struct kaldi_join *join); /* takes NULL */

/* Join the tables a step further; all must be ready. As prepared_step(). */
int kaldi_join_step(struct kaldi_join *join, struct diag *d);

/* The samples: their keys, and for each column the number of its row. For audio cut by segments
 * three numbers follow: the first sample of a channel, the count, and the channel from 1 (0:
 * all). */
const struct index *kaldi_join_index(const struct kaldi_join *join);

/* Members of dataset.json: what each table lacks, and what it has beyond the others. */
void kaldi_join_describe(const struct kaldi_join *join, const char *indent, struct text *t);

/* What tables lack: lines; "" if they lack nothing. */
const char *kaldi_join_missing(const struct kaldi_join *join);

/* Notes on problems: lines; "" if there are none. */
const char *kaldi_join_notes(const struct kaldi_join *join);

#endif
