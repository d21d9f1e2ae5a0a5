/* Trees of sounds while texts are applied to them. Only sounds.c and sounds_texts.c include this,
 * and claim.c. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_SOUNDS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_SOUNDS_H

#include "format/files/claim/parts.h"

#define SOUND_TREES 4 /* of texts next to one of sounds */

struct sounds {
    struct search *s;
    uint32_t tree[SOUND_TREES]; /* [n_trees] folders with texts of the sounds that are looked for */
    unsigned n_trees;
    unsigned n_ignored; /* texts */
    bool gained;        /* texts say something of sounds */
};

/* Make sets of trees of sounds. false: no text says anything of the sounds, and what was made is to
 * be undone. */
bool sounds_apply(struct search *s);

/* Read the texts of all sets. */
void sounds_read_texts(struct sounds *t);

#endif
