/* raw: the bytes of a field as the source stores them, without a header. */
#include "format/core/encoder.h"

static int raw_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    int r = 0;

    (void)scope;
    for (unsigned i = 0; i < ds->n_fields && r == 0; i++)
        if (field_is_in(&ds->field[i], IN_RAW))
            r = offer(offers, &ds->field[i], "raw");
    return r;
}

static int raw_layout(struct layout *l, const struct file_kind *kind)
{
    return layout_add_stored(l, kind->field);
}

const struct encoder encoder_raw = {
    .name = "raw", .shows = SHOWS_STORED, .offer = raw_offer, .layout = raw_layout};
