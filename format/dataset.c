#include "format/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "format/encoder.h"

void dataset_free(struct dataset *ds)
{
    if (!ds)
        return;
    for (unsigned i = 0; i < ds->n_fields; i++)
        free(ds->field[i].dim);
    free(ds->field);
    for (unsigned i = 0; i < ds->n_blobs; i++)
        blob_free(ds->blob[i]);
    free(ds->blob);
    dataset_free_folders(ds);
    free(ds);
}

const struct field *dataset_field(const struct dataset *ds, const char *name)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (!strcmp(ds->field[i].name, name))
            return &ds->field[i];
    return NULL;
}

void dataset_key(const struct dataset *ds, uint64_t sample, char ret[static KEY_ROOM])
{
    snprintf(ret, KEY_ROOM, "%0*llu", (int)ds->key_digits, (unsigned long long)sample);
}

bool dataset_find(const struct dataset *ds, const char *key, size_t len, uint64_t *ret)
{
    return padded_number_parse(key, len, ds->key_digits, ret) && *ret < ds->samples;
}

void dataset_add_numbering(struct dataset *ds)
{
    ds->field[ds->n_fields++] = (struct field){
        .name = "index",
        .role = FIELD_NUMBER,
        .ops = &field_number,
        .dtype = DTYPE_I8,
        .width = 8,
        .item_bytes = 8,
    };
    ds->field[ds->n_fields++] = (struct field){
        .name = "key",
        .role = FIELD_KEY,
        .ops = &field_key,
        .dtype = DTYPE_TEXT,
        .width = ds->key_digits,
        .item_bytes = ds->key_digits,
    };
}
