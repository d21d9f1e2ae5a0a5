/* Which column of a table has classes: rule J. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_TABLE_LABEL_H
#define EPOCHFS_FORMAT_ANNOTATIONS_TABLE_LABEL_H

#include "format/annotations/value_columns.h"

/* Has the column at most half as many values as rows that have one? 0 or -ENOMEM. */
int table_has_classes(const struct value_column *c, bool *ret);

/* Are its values 1, 2, 3 and so on, in many rows? ImageNet's lists end so: they are no classes. */
bool table_counts_rows(const struct value_column *c);

/* The column with classes by its name, as struct picture_table says; SIZE_MAX: none. */
size_t table_label_by_name(const struct value_columns *columns);

/* The same if it is the only column, by its values. 0 or -ENOMEM. */
int table_label_alone(const struct value_columns *columns, size_t *ret);

#endif
