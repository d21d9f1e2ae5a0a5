/* The tables of a data directory, joined by utterance.
 *
 * The samples are the utterances that every table has, in the order of the first of utt2spk,
 * segments, feats, wav, text that exists. A table may be keyed by utterance, by speaker (utt2spk
 * maps to it) or by recording (segments maps to it): the first utterances decide. */
#ifndef EPOCHFS_FORMAT_KALDI_SET_JOIN_H
#define EPOCHFS_FORMAT_KALDI_SET_JOIN_H

#include "format/kaldi/table/table.h"

struct kaldi_set;

enum { JOINED_LACKS, JOINED_EXTRA, N_JOINED };

/* Keys, and how they are reported. */
struct key_list {
    uint64_t n;
    struct text json;  /* the first ones, strings with commas between */
    struct text shown; /* fewer of them, for people */
};

struct kaldi_join {
    const struct kaldi_set *set;
    /* The index of the samples: their keys, and for each column the number of its row. For audio
     * cut by segments three numbers follow: the first sample of a channel, the count, and the
     * channel from 1 (0: all). All tables must be ready before its first step. */
    struct prepared prepared;
    /* Kept with it: */
    struct text members; /* of dataset.json: what each table lacks, and has beyond the others */
    struct text missing; /* what tables lack; lines for people, as are: */
    struct text notes;   /* problems */

    /* Private: */
    char *source;                                 /* the names of the joined files; owned */
    const struct index *base;                     /* whose rows are the utterances */
    const struct kaldi_table *speaker, *segments; /* utt2spk, or NULL; or NULL */

    /* Private, while rows are joined: */
    uint64_t at; /* the next row of the base */
    bool begun_rows;
    struct joined_table {
        enum level { BY_UTTERANCE, BY_SPEAKER, BY_RECORDING, N_LEVELS } level;
        /* Utterances that the table lacks, and its rows that no utterance uses. */
        struct key_list list[N_JOINED];
        uint8_t *used; /* [rows / 8 + 1] a bit for each row; owned */
    } joined[INDEX_COLUMNS];
    unsigned reported;
    struct kaldi_in in, segments_in; /* on the texts of speaker and segments */
};

/* Join the columns of a set, by its table segments if there is one. 0, -E2BIG: too many tables,
 * -ENOMEM. */
int kaldi_join_new(const struct kaldi_set *set, const struct index_store *keep,
                   struct kaldi_join **ret);
void kaldi_join_free(struct kaldi_join *join); /* takes NULL */

/* Add the members, each with the indent before it. */
void kaldi_join_describe(const struct kaldi_join *join, const char *indent, struct text *t);

#endif
