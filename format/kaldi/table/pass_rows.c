/* The results of a table's pass: each row goes to the index and to the table's totals, and a
 * problem to its notes. */
#include "format/kaldi/table/table_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/index/reasons.h"

#define NOTES 10 /* of one kind, in the table's notes */

void kaldi_note(struct kaldi_table *table, unsigned *reported, const char *text)
{
    if ((*reported)++ < NOTES)
        text_add(&table->notes, "%s\n", text);
    else if (*reported == NOTES + 1)
        text_add(&table->notes, "and more of that kind\n");
}

/* kaldi=s promises an order. */
static void check_order(struct kaldi_pass *pass, const uint8_t *key, size_t len)
{
    int order = text_compare((const char *)pass->last, pass->last_len, (const char *)key, len);
    char text[512];

    if (pass->rows && order >= 0) {
        snprintf(text, sizeof(text),
                 "%s: row %llu: expected keys in the order of their bytes (kaldi=s), got '%.*s' %s "
                 "'%.*s'",
                 blob_name(pass->in.blob), (unsigned long long)pass->rows + 1,
                 (int)min_u64(len, 100), (const char *)key, order ? "after" : "twice, after",
                 (int)min_u64(pass->last_len, 100), (const char *)pass->last);
        kaldi_note(pass->table, &pass->reported_order, text);
    }
    memcpy(pass->last, key, len);
    pass->last_len = len;
}

static int kaldi_pass_rows_add_row(struct kaldi_pass *pass, const uint8_t *key, size_t len,
                                   const uint64_t number[static KALDI_COLUMNS])
{
    if (pass->table->sorted)
        check_order(pass, key, len);
    pass->rows++;
    return index_add(pass->table->base.prepared.builder, key, len, number);
}

int kaldi_add_bad_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, size_t file,
                      const char *reason)
{
    struct kaldi_table *table = pass->table;
    uint64_t number[KALDI_COLUMNS] = {
        [COLUMN_FILE] = file,
        [COLUMN_WHAT] = KALDI_BAD | (file ? WHAT_WHOLE : 0),
        [COLUMN_LEN] = file ? table->file[file].blob->size : 0,
    };

    kaldi_note(table, &pass->reported_bad, reason);
    if (table->permissive) {
        table->totals.left_out++;
        return 0;
    }
    table->totals.bad++;
    reasons_add(&table->reasons, pass->rows, reason);
    return kaldi_pass_rows_add_row(pass, key, len, number);
}

static void add_to_totals(struct kaldi_pass *pass, const struct kaldi_object *object,
                          const uint64_t n[static 2])
{
    struct kaldi_totals *t = &pass->table->totals;
    const uint64_t dim[2] = {n[1], object->dim[2]};

    for (unsigned i = 0; i < 2; i++) {
        /* A matrix without rows has no columns, and still fits the others. */
        if (!n[0] && !dim[i])
            continue;
        if (!pass->good)
            t->dim[i] = dim[i];
        t->varies[i] = t->varies[i] || t->dim[i] != dim[i];
    }
    pass->good += n[0] || n[1];
    t->any_double = t->any_double || kaldi_is_wide(object);
}

/* range: the rows and columns that count, if flags have WHAT_CUT. */
int kaldi_add_good_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, size_t file,
                       const struct kaldi_object *object, unsigned flags, const uint64_t *range)
{
    uint64_t n[2] = {object->dim[0], object->dim[1]};
    uint64_t number[KALDI_COLUMNS] = {
        [COLUMN_FILE] = file,
        [COLUMN_START] = object->start,
        [COLUMN_WHAT] = object->store | flags | (object->is_open ? WHAT_OPEN : 0),
        [COLUMN_LEN] = object->len - kaldi_len_estimate(object),
    };

    for (unsigned i = 0; i < KALDI_DIMS; i++)
        number[COLUMN_DIM + i] = object->dim[i];
    number[COLUMN_FIRST + 1] = object->data;
    if (flags & WHAT_CUT) {
        memcpy(&number[COLUMN_FIRST], range, 4 * sizeof(*range));
        n[0] = range[2];
        n[1] = range[3];
    }
    add_to_totals(pass, object, n);
    return kaldi_pass_rows_add_row(pass, key, len, number);
}
