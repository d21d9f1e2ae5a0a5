/* A plan: which samples are in which batch, as the user writes it in a path or an option.
 *
 *     batch=<n|all|HOW:N[:MOST]>[,bucket=W][,quad=Q][,group=G][,only=NAME][,take=A:B]
 *         [,length=A:B[:HOW]][,split=K@W0:W1:...][,part=KofN][,rank=KofN][,seed=S]
 *         [,shuffle=full|window:M][,draw=N:uniform|balanced[:FIELD]|FIELD][,classes=PxK[:FIELD]]
 *         [,limit=N]
 *         [,tail=keep|drop|wrap][,unit=FIELD][,picture=HxW[ofS]][,augment=NAME]
 *
 * The canonical name has the parameters in that order, and omits defaults. */
#ifndef EPOCHFS_FS_PLAN_PLAN_H
#define EPOCHFS_FS_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"
#include "fs/plan/order.h"

enum plan_tail { TAIL_KEEP, TAIL_DROP, TAIL_WRAP };

#define PLAN_SPLITS_MOST 16
#define PLAN_WORD_SIZE   64 /* of a name in a plan, and its NUL */

/* How samples are drawn with replacement. */
enum plan_draw {
    DRAW_NONE,
    DRAW_UNIFORM,
    DRAW_BALANCED, /* each class of `label` equally likely */
    DRAW_WEIGHTS,  /* in proportion to a field */
};

/* A place of the list, as it is written: a number, or a percentage of the list's length. */
struct plan_place {
    uint64_t n;
    bool is_percent;
};

struct plan {
    uint64_t batch;              /* samples of a batch; 0: all. With a budget, at most so many */
    char length[PLAN_WORD_SIZE]; /* HOW lengths are counted; empty: as the dataset does */
    uint64_t budget, quad;       /* in millionths; 0: none */
    uint64_t bucket;             /* places of a window, whose batches are by length; 0: none */
    uint64_t group;              /* batches of neighbouring length; 0: one */
    char only[PLAN_WORD_SIZE];   /* name of a list; empty: all samples */
    bool takes;
    struct plan_place take_from, take_to;
    bool ranges; /* length=: those of a length from, and below, these millionths; */
    uint64_t length_from, length_to;
    char range_length[PLAN_WORD_SIZE]; /* HOW they are counted; empty: as in batches */
    unsigned split, splits;            /* split < splits, the share; splits 0: there are none */
    uint32_t weight[PLAN_SPLITS_MOST];
    uint64_t part, parts; /* part < parts */
    uint64_t rank, ranks; /* rank < ranks */
    bool seeded;
    uint64_t seed;
    uint64_t window; /* 0: shuffle=full */
    enum plan_draw draw;
    uint64_t draws;                   /* an epoch */
    char draw_field[PLAN_WORD_SIZE];  /* DRAW_WEIGHTS */
    char class_field[PLAN_WORD_SIZE]; /* DRAW_BALANCED, classes=; empty: the label */
    uint64_t batch_classes, of_class; /* classes=PxK; 0: batches are not of classes */
    bool limits;
    uint64_t limit; /* positions of an epoch */
    enum plan_tail tail;
    char unit[PLAN_WORD_SIZE]; /* field whose runs the words count; empty: they count samples */
    uint64_t picture_height, picture_width; /* of arrays of pictures; 0: as the mount has them */
    uint64_t picture_side; /* what their short side is scaled to first; 0: as little as covers */
    char augment[PLAN_WORD_SIZE]; /* name of a recipe; empty: none */
};

#define PLAN_NAME_SIZE  256 /* of every canonical name and its NUL: no file has a longer one */
#define PLAN_NUMBER_MAX ORDER_MAX

/* Parse a name with its parameters in any order. separator: the character between them, ',' in a
 * path, '+' in a mount option. 0, or -EINVAL with the reason in d and *ret undefined. */
int plan_parse(const char *name, size_t len, char separator, struct plan *ret, struct diag *d);

/* Are its batches by length, see fs/plan/length_batches.h? */
static inline bool plan_is_by_length(const struct plan *plan)
{
    return plan->bucket > 0;
}

/* Does the plan show another order in each epoch? Its batches are then in folders epoch=E. */
static inline bool plan_has_epochs(const struct plan *plan)
{
    return plan->seeded;
}

/* Write the canonical name, NUL-terminated. */
void plan_name(const struct plan *plan, char ret[static PLAN_NAME_SIZE]);

/* The canonical name of the plan that a name which does not parse probably means: it may have
 * misspelt parameters, or other separators. false: no such plan. */
bool plan_guess(const char *name, char ret[static PLAN_NAME_SIZE]);

/* Add "batch=<n|all>[,part=KofN]...", the form of every plan. Each line begins with indent and has
 * at most width bytes, if its parameter fits. */
void plan_syntax(struct text *t, const char *indent, size_t width);

/* Add a line for each parameter: how it is written, and what it does. */
void plan_help(struct text *t);

/* The field that the plan's order is made from, and whether by its classes or its weights. label:
 * the field that has classes. NULL: no field. */
const char *plan_field(const struct plan *plan, const char *label, bool *ret_classes);

/* How length= counts; "": as the dataset does. */
const char *plan_range_length(const struct plan *plan);

/* Can that be a name in a plan, such as that of a list? From 1 to PLAN_WORD_SIZE - 1 characters. */
bool plan_is_word(const char *s, size_t len);

/* Can that be the name of a recipe: letters, digits, _ and -? */
bool plan_is_name(const char *s, size_t len);

/* Are its pictures made for it? Then its batches have other fields. */
static inline bool plan_makes_pictures(const struct plan *plan)
{
    return plan->picture_height || plan->augment[0];
}

/* Is word the name of a parameter? */
bool plan_has_parameter(const char *word);

/* Is it one that a source of a mix may have? */
bool plan_is_source_word(const char *word, size_t len);

/* Add all of those, "only=, take=, ..." with `and` before the last. */
void plan_source_words(struct text *t, const char *and);

/* A parameter of the plan that a plan of a mix may not have; NULL: it has none. */
const char *plan_word_not_in_mix(const struct plan *plan);

/* The plan of the same list in its stored order, in batches of the same size. */
void plan_of_list(const struct plan *plan, struct plan *ret);

#endif
