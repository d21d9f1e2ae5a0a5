/* Annotations and tables while they are applied to sets. Only annotating.c, annotations.c,
 * labels.c, tables.c and recipe_tables.c include this. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_ANNOTATIONS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_ANNOTATIONS_H

#include "format/annotations/table.h"
#include "format/files/claim/pictures.h"

/* A column that becomes the label of a view, once all are known. */
struct label_column {
    bool is_numbered;
    size_t set, view;
    char subject[64];            /* of its table: the name without splits and digits, */
    char split[16];              /* and the first split in it */
    struct value_columns values; /* one, with a row for each sample of the view */
};

struct annotating {
    struct search *s;
    struct pictures pictures;
    bool *has_samples;          /* [n_folders] samples are in it, or in a folder in it */
    bool *is_inside;            /* [n_folders] it is in the folder of a set */
    struct label_column *label; /* [n_labels] */
    size_t n_labels, n_finished;
};

/* ---- annotating.c ---- */

/* The nearest folder above a file that has samples. NO_FOLDER: there is none. */
uint32_t annotating_scope(const struct annotating *a, size_t file);

/* A set in a folder, which is told what is ignored there; NULL: there is none. */
struct set *annotating_first_set(const struct annotating *a, uint32_t scope);

/* Ignore a file, and say why; refuse all sets in a folder. */
void annotating_ignore(struct annotating *a, size_t file, uint32_t scope, const char *reason);
void annotating_refuse(struct annotating *a, uint32_t scope, const char *why);

/* Move columns into a view; those whose names it has are left in `from`. */
void view_add_columns(struct search *s, struct files_view *view, struct value_columns *from);

/* Add the columns of a table, which is that file: row[i] is the row of sample i of the view. */
void annotating_add_table(struct annotating *a, size_t set, size_t view, size_t file,
                          const struct picture_table *table, const uint32_t *row);

/* A dataset more of a set, in that folder; takes over sample. NULL: no memory. */
struct files_view *annotating_add_view(struct annotating *a, size_t set, uint32_t folder,
                                       const char *name, uint32_t *sample, size_t n);

/* The row of each picture that is looked for, the first of several, or VALUE_NO_ROW: picture[i] is
 * that of row i. The caller's; NULL: no memory. *ret_named: how many have one. */
uint32_t *annotating_rows(const struct annotating *a, const uint32_t *picture, size_t n,
                          size_t *ret_named);

/* The set of all these pictures; n_sets: they are of several, or none. */
size_t annotating_set_of(const struct annotating *a, const uint32_t *picture, size_t n);

/* The rows of a table are a dataset more of a set, in their order, and with their columns if
 * columns_of is not SIZE_MAX: the file. */
void annotating_add_list(struct annotating *a, size_t set, uint32_t folder, const char *called,
                         const struct picture_table *table, size_t columns_of);

void annotating_release(struct annotating *a);

/* ---- labels.c ---- */

/* A column of a table is the label of a view: row[i] is its row of sample i; NULL: row i. table:
 * the name of its file. */
void annotating_add_label(struct annotating *a, size_t set, size_t view, const char *table,
                          const struct value_column *column, const uint32_t *row);

/* Does a column of a view that has classes say of each sample which one it has, by name or number?
 */
bool annotating_says_class(const struct annotating *a, size_t set, size_t view,
                           const struct value_column *c);

/* Copy names of classes into a view. */
void view_add_classes(struct search *s, struct files_view *view, char *const *name, size_t n);

/* Number the classes of the labels that were added since the last call. */
void annotating_finish_labels(struct annotating *a);

/* For tables without a header: the first column of texts, each of them the name of a class folder;
 * NULL: there is none. */
const struct value_column *annotating_find_classes(const struct annotating *a,
                                                   const struct value_columns *columns);

/* ---- celeba_lists.c ---- */

#define CELEBA_PARTS 3
extern const char *const celeba_parts[CELEBA_PARTS]; /* names, by their numbers in the partition */

/* May a file be one, by its name? Read it for the set in its scope, 0 or -errno with the reason in
 * d; then the parts of sets are datasets. */
bool celeba_may_be(const struct annotating *a, size_t file);
int celeba_apply(struct annotating *a, size_t file, uint32_t scope, struct diag *d);
void celeba_split_sets(struct annotating *a);

/* Read a list for one set, whose pictures a has. 0, or -errno with the reason in d: -EBADMSG: it is
 * malformed, or not called like one, as its recipe says. */
int annotating_read_celeba(struct annotating *a, size_t set, size_t file, struct diag *d);

/* A dataset of the samples of a set that the partition has in a part, if there is one. */
void annotating_add_part(struct annotating *a, size_t set, uint32_t folder, const char *called,
                         int64_t part);

/* ---- annotations.c ---- */

/* May a file be one of COCO, by its name? Read it for the sets in its scope, if it is: 0, or -errno
 * with the reason in d. */
bool coco_may_be(const struct annotating *a, size_t file);
int coco_apply(struct annotating *a, size_t file, uint32_t scope, struct diag *d);

/* Read a file of COCO for one set, whose pictures a has: 0, or -errno with the reason in d. Read
 * names of YOLO's classes: are there some? */
int annotating_read_coco(struct annotating *a, size_t set, size_t file, struct diag *d);
bool annotating_read_names(struct annotating *a, struct set *set, size_t file);

/* Views that are no datasets end, and files of boxes are found. */
void annotating_finish_set(struct annotating *a, struct set *set);

#endif
