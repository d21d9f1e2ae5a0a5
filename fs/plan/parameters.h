/* The parameters of plans: one entry each, with all that is said of a parameter outside of the
 * arithmetic (fs/plan/schedule.c). fs/plan/plan.c parses, writes and checks plans by this table. */
#ifndef EPOCHFS_FS_PLAN_PARAMETERS_H
#define EPOCHFS_FS_PLAN_PARAMETERS_H

#include "fs/plan/plan.h"

/* What a piece of a value is, and so what the member of struct plan is that it sets. */
enum plan_piece_type {
    PIECE_NONE,
    PIECE_NUMBER, /* uint64_t, from least to most */
    PIECE_MICRO,  /* uint64_t: a decimal number in millionths, from least */
    PIECE_PLACE,  /* struct plan_place */
    PIECE_WORD,   /* char[PLAN_WORD_SIZE], see plan_is_word() */
    PIECE_NAME,   /* the same, see plan_is_name() */
};

struct plan_piece {
    const char *before; /* the characters before it; NULL: none */
    enum plan_piece_type type;
    bool is_optional; /* it, and all pieces after it, may be missing: 0, or "" */
    size_t at;        /* of the member in struct plan */
    uint64_t least, most;
};

struct plan_parameter {
    const char *word;
    const char *syntax;   /* of the value, as the help shows it */
    const char *expected; /* what the value must be, for messages */
    const char *help;     /* what it does: a line of README.txt of the mount */
    const char *alias;    /* another word for it; canonical names have `word`. NULL: none */
    const char *foreign;  /* what other programs call it, see value_names(); NULL: nothing */
    const char *needs;    /* the word of a parameter that must be given as well; NULL: none */
    bool is_required;
    bool makes_list;            /* it says which samples there are, before they are ordered */
    bool in_sources;            /* a source of a mix may have it, */
    bool not_in_mix;            /* but a plan of a mix may not */
    struct plan_piece piece[4]; /* of the value, until one is PIECE_NONE */
    const char *plain;          /* a value that sets nothing: the default; NULL: none */
    size_t flag;                /* of a bool of struct plan: it was given; 0: see usual */
    uint64_t usual;             /* most of the last piece it needs that names omit */
    bool rises;                 /* its first piece must be below the second */
    bool (*holds)(const struct plan *plan); /* do its pieces go together? NULL: they do */
    /* Instead of the pieces, NULL: by them. Set the parameter in plan; false: value does not have
     * the form. */
    bool (*parse)(struct plan *plan, const char *value, size_t len);
    /* Write the value as snprintf() does. 0: it has its default, so canonical names omit it. */
    int (*print)(const struct plan *plan, char *buf, size_t capacity);
    /* Does it contradict other parameters of the plan, in which it is? 0, or -EINVAL with the
     * reason in d. NULL: it goes with all. */
    int (*check)(const struct plan *plan, struct diag *d);
};

/* In canonical order, the required one first. */
extern const struct plan_parameter plan_parameters[];
extern const unsigned n_plan_parameters; /* at most 32 */

/* As parse and print of struct plan_parameter say, for every parameter. */
bool plan_parameter_parse(const struct plan_parameter *p, struct plan *plan, const char *s,
                          size_t len);
int plan_parameter_print(const struct plan_parameter *p, const struct plan *plan, char *buf,
                         size_t capacity);

/* The same for any pieces, and a word alone. */
bool plan_form_parse(const struct plan_piece *piece, struct plan *plan, const char *s, size_t len);
int plan_form_print(const struct plan_piece *piece, const struct plan *plan, char *buf,
                    size_t capacity);
bool plan_parse_word(const char *s, size_t len, char ret[static PLAN_WORD_SIZE]);

#endif
