/* A mix as the user writes it in -o mix=TEXT:
 *
 *     NAME=SOURCE*WEIGHT+SOURCE*WEIGHT...[@POSITION:SOURCE*WEIGHT+...]...[/first|/all|/N]
 *
 * SOURCE is the name of a dataset, with its folders, or NAME:PARAMETERS with parameters of a plan
 * joined by '+', such as train:take=0:80%. In a name, a backslash takes its meaning from the next
 * character. WEIGHT is a decimal number above 0. */
#ifndef EPOCHFS_FS_PLAN_MIX_TEXT_H
#define EPOCHFS_FS_PLAN_MIX_TEXT_H

#include "base/diag.h"
#include "fs/plan/mix.h"
#include "fs/plan/plan.h"

#define MIX_NAME_MAX 200 /* characters of the name of a mix */

struct mix_source {
    char *name;       /* of the dataset; owned */
    struct plan plan; /* the words, with batch=1 */
    char *shown;      /* name, and words in canonical order; owned */
};

struct mix_spec {
    char *name;
    char *text; /* behind NAME=, as it was given */
    unsigned n_sources, n_stretches;
    struct mix_source *source;   /* [n_sources] in the order in which the text names them */
    struct mix_weights *weights; /* [n_stretches] */
    enum mix_end end;
    uint64_t length; /* with MIX_LENGTH */
};

/* 0; -EINVAL with the reason in d; -ENOMEM. *ret is written on success only. */
int mix_spec_parse(const char *text, struct mix_spec *ret, struct diag *d);
void mix_spec_release(struct mix_spec *spec); /* of one that starts as {0} */
#define AUTO_MIX_SPEC AUTO(mix_spec_release)

#endif
