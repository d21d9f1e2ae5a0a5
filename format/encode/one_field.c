/* Encoders with files that are the bytes of one field; they differ in the fields that they
 * offer. */
#include "format/core/encoder.h"

static int offer_files(const struct dataset *ds, enum field_role role, const char *ext,
                       struct offers *offers)
{
    int r = 0;

    for (unsigned i = 0; i < ds->n_fields && r == 0; i++)
        if (ds->field[i].role == role)
            r = offer_alone(offers, &ds->field[i], ext);
    return r;
}

static int one_field_layout(struct layout *l, const struct file_kind *kind)
{
    return layout_add_field(l, kind->field);
}

/* Rows of text as the source has them, each ended by LF. */
static int svm_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    (void)scope;
    return offer_files(ds, FIELD_TEXT, "svm", offers);
}

static int ark_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    int r = offer_files(ds, FIELD_ARCHIVE, "ark", offers);

    (void)scope;
    return r < 0 ? r : offer_files(ds, FIELD_SCRIPT, "scp", offers);
}

static int wav_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    return scope == SCOPE_SAMPLES ? offer_files(ds, FIELD_AUDIO, "wav", offers) : 0;
}

static int txt_offer(const struct dataset *ds, enum scope scope, struct offers *offers)
{
    (void)scope;
    return offer_files(ds, FIELD_LINE, "txt", offers);
}

const struct encoder encoder_svm = {
    .name = "svm", .shows = SHOWS_CONTAINER, .offer = svm_offer, .layout = one_field_layout};
const struct encoder encoder_ark = {
    .name = "ark", .shows = SHOWS_CONTAINER, .offer = ark_offer, .layout = one_field_layout};
const struct encoder encoder_wav = {
    .name = "wav", .shows = SHOWS_CONTAINER, .offer = wav_offer, .layout = one_field_layout};
const struct encoder encoder_txt = {
    .name = "txt", .shows = SHOWS_CONTAINER, .offer = txt_offer, .layout = one_field_layout};
