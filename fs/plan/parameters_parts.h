/* What parameters.c and parameters_length.c share: functions of rows of the table. No other file
 * includes this. */
#ifndef EPOCHFS_FS_PLAN_PARAMETERS_PARTS_H
#define EPOCHFS_FS_PLAN_PARAMETERS_PARTS_H

#include "fs/plan/parameters.h"

/* A whole number of at most max; a word that a plan may have. false: it is none. */
bool plan_parse_number(const char *s, size_t len, uint64_t max, uint64_t *ret);
bool plan_parse_word(const char *s, size_t len, char ret[static PLAN_WORD_SIZE]);

/* For batch=, length=, bucket=, quad= and group=: see struct plan_parameter. */
bool plan_parse_batch(struct plan *plan, const char *s, size_t len);
bool plan_parse_range(struct plan *plan, const char *s, size_t len);
bool plan_parse_bucket(struct plan *plan, const char *s, size_t len);
bool plan_parse_quad(struct plan *plan, const char *s, size_t len);
bool plan_parse_group(struct plan *plan, const char *s, size_t len);
int plan_print_batch(const struct plan *plan, char *buf, size_t capacity);
int plan_print_range(const struct plan *plan, char *buf, size_t capacity);
int plan_print_bucket(const struct plan *plan, char *buf, size_t capacity);
int plan_print_quad(const struct plan *plan, char *buf, size_t capacity);
int plan_print_group(const struct plan *plan, char *buf, size_t capacity);
int plan_check_bucket(const struct plan *plan, struct diag *d);
int plan_check_quad(const struct plan *plan, struct diag *d);
int plan_check_grouping(const struct plan *plan, struct diag *d);

#endif
