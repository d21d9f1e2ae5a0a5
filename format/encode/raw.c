/* raw: the bytes of a field as the source stores them, without a header. */
#include "format/core/encoder.h"

static int raw_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    int r = 0;

    for (unsigned i = 0; i < ds->n_fields && r == 0; i++) {
        const struct field *f = &ds->field[i];

        /* Objects of differing size in sequence could not be told apart. */
        if (f->role == FIELD_STORED || (f->role == FIELD_OBJECT && scope == SCOPE_SAMPLES))
            r = offer(offers, f, "raw");
    }
    return r;
}

static int raw_layout(struct layout *l, const struct file_kind *kind)
{
    return kind->field->role == FIELD_OBJECT ? layout_add_field(l, kind->field)
                                             : layout_add_stored(l, kind->field);
}

const struct encoder encoder_raw = {
    .name = "raw", .shows = SHOWS_STORED, .offer = raw_offer, .layout = raw_layout};
