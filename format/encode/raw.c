/* raw: the bytes of a field as the source stores them, without a header. */
#include "format/core/encoder.h"

static int raw_layout(struct layout *l, const struct file_kind *file)
{
    return layout_add_stored(l, file->field);
}

const struct encoder encoder_raw = {
    .name = "raw", .shows = SHOWS_STORED, .in = {IN_RAW, IN_RAW}, .layout = raw_layout};
