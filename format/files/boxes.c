/* Files with the boxes of one sample each. All of them are read when the dataset is first mounted,
 * and the boxes are kept with its index. Classes are numbered over all files of a claim, so its
 * datasets share what was read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/annotations/boxes.h"
#include "format/files/file.h"

#define AHEAD 512 /* samples whose files are asked for before they are read */

/* What is read of the samples of a claim. */
struct claim_boxes {
    struct box_reader *reader;
    size_t sample, asked;
    struct value_columns values; /* once all are read, */
    struct text about, note;
    bool is_done;
};

void claim_boxes_free(struct claim_boxes *boxes)
{
    if (!boxes)
        return;
    box_reader_free(boxes->reader);
    value_columns_release(&boxes->values);
    text_release(&boxes->about);
    text_release(&boxes->note);
    free(boxes);
}

/* The file of boxes of a sample; SIZE_MAX: it has none. */
static size_t boxes_member(const struct files_file *file, size_t sample)
{
    const struct files_claim *claim = file->claim;

    for (size_t i = claim->first[sample]; i < claim->first[sample + 1]; i++) {
        unsigned role = claim->role ? claim->role[i] : 0;

        if (role == claim->boxes_role &&
            (role || text_ends_with(members_name(file->source->members, i), claim->boxes_ext)))
            return i;
    }
    return SIZE_MAX;
}

static void boxes_ask_ahead(const struct files_file *file, struct claim_boxes *boxes)
{
    const struct files_source *source = file->source;

    for (; source->blob->ops->fetch && boxes->asked < boxes->sample + AHEAD &&
           boxes->asked < file->claim->n_samples;
         boxes->asked++) {
        size_t i = boxes_member(file, boxes->asked);

        if (i != SIZE_MAX && members_size(source->members, i))
            blob_fetch(source->blob, source->members->member[i].place,
                       members_size(source->members, i), NULL);
    }
}

static int boxes_read_sample(const struct files_file *file, struct claim_boxes *boxes,
                             struct diag *d)
{
    const struct files_source *source = file->source;
    size_t i = boxes_member(file, boxes->sample);
    uint64_t size = i == SIZE_MAX ? 0 : members_size(source->members, i);
    AUTO_FREE uint8_t *bytes = NULL;
    AUTO_FREE char *name = NULL;
    int r;

    if (i == SIZE_MAX)
        return box_reader_add(boxes->reader, NULL, 0, "", d);
    name = member_path(source->members, i);
    if (!name)
        return -ENOMEM;
    if (size > BOX_FILE_MAX)
        return diag_set(d, -EBADMSG, "%s: expected at most %u bytes of boxes, got %llu", name,
                        BOX_FILE_MAX, (unsigned long long)size);
    bytes = malloc(size + 1);
    if (!bytes)
        return -ENOMEM;
    r = size ? blob_read(READ_WAITS, source->blob, bytes, size, source->members->member[i].place, d)
             : 0;
    return r < 0 ? r : box_reader_add(boxes->reader, bytes, size, name, d);
}

static int boxes_finish(struct claim_boxes *boxes)
{
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    int r = box_reader_finish(boxes->reader, &boxes->values, &classes, &boxes->note);

    if (r < 0)
        return r;
    if (classes.n)
        json_add_texts(&boxes->about, "", "classes", &classes.item->name, sizeof(*classes.item),
                       classes.n);
    return boxes->about.failed ? -ENOMEM : 0;
}

/* The boxes of the view, from those of the claim. */
static int boxes_take(struct files_file *file, const struct claim_boxes *boxes)
{
    const struct files_view *view = file->view;

    file->boxes_about = strdup(boxes->about.data ? boxes->about.data : "");
    file->boxes_note = strdup(boxes->note.data ? boxes->note.data : "");
    file->has_boxes = true;
    return file->boxes_about && file->boxes_note
               ? value_columns_pick(&boxes->values, view->sample, view->n, &file->boxes)
               : -ENOMEM;
}

int boxes_step(struct files_file *file, int64_t until, struct diag *d)
{
    struct claim_boxes **boxes = &file->source->boxes;
    int r = 0;

    if (!*boxes) {
        *boxes = calloc(1, sizeof(**boxes));
        if (!*boxes)
            return -ENOMEM;
        r = box_reader_new(file->claim->boxes, &(*boxes)->reader);
        json_add_text(&(*boxes)->about, "", "box_format", file->claim->boxes->layout);
        if (!(*boxes)->about.failed && strstr(file->claim->about, (*boxes)->about.data))
            text_release(&(*boxes)->about); /* it is said of all views */
    }
    while (r == 0 && !(*boxes)->is_done && (*boxes)->sample < file->claim->n_samples) {
        boxes_ask_ahead(file, *boxes);
        r = boxes_read_sample(file, *boxes, d);
        (*boxes)->sample += r == 0;
        if (r == 0 && monotonic_ns() > until)
            return 0;
    }
    if (r == 0 && !(*boxes)->is_done) {
        r = boxes_finish(*boxes);
        (*boxes)->is_done = r == 0;
    }
    return r < 0 ? r : boxes_take(file, *boxes);
}

void boxes_keep(struct kept *k, struct files_file *file)
{
    value_columns_keep(k, &file->boxes, k->at ? file->view->n : 0);
    kept_text(k, &file->boxes_about);
    kept_text(k, &file->boxes_note);
    file->has_boxes = k->out || (k->at && !k->error);
}
