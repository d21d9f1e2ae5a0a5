/* svm: rows of text as the source has them, each ended by LF. */
#include "format/encoder.h"

static const struct field *text_of(const struct dataset *ds)
{
    for (unsigned i = 0; i < ds->n_fields; i++)
        if (ds->field[i].role == FIELD_TEXT)
            return &ds->field[i];
    return NULL;
}

static int svm_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    (void)scope;
    return text_of(ds) ? offer(offers, NULL, "svm") : 0;
}

static int svm_layout(struct layout *l, const struct file_kind *kind)
{
    (void)kind;
    return layout_add_field(l, text_of(l->dataset));
}

const struct encoder encoder_svm = {"svm", SHOWS_CONTAINER, svm_offer, svm_layout};
