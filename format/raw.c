/* raw: the bytes of a field as the source stores them, without a header. */
#include "format/encoder.h"

static int raw_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    (void)scope;
    for (unsigned i = 0; i < ds->n_fields; i++) {
        int r = ds->field[i].role == FIELD_STORED ? offer(offers, &ds->field[i], "raw") : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

static int raw_layout(struct layout *l, const struct file_kind *kind)
{
    return layout_add_stored(l, kind->field);
}

const struct encoder encoder_raw = {"raw", SHOWS_STORED, raw_offer, raw_layout};
