/* What a dataset of records makes arrays of: pictures and audio. */
#include <string.h>

#include "format/audio/audio.h"
#include "format/records/record_audio.h"
#include "format/records/record_pictures.h"
#include "format/records/record_set_parts.h"

/* Is there a record that has none of these contents? It may be, while files are
 * not ready. */
static bool lacks_all(const struct dataset *ds, const struct record_content *const *content,
                      const struct record_column *column, unsigned n)
{
    const struct record_set *set = record_set_of(ds);

    for (unsigned i = 0; i < n; i++)
        if (!column[content[i]->column].has_holes)
            return false;
    if (set->rf->column)
        return true;
    for (uint64_t record = 0; record < set->files.first[set->files.n]; record++) {
        unsigned i = 0;

        while (i < n && !content[i]->ops->has(ds, content[i], record))
            i++;
        if (i == n)
            return true;
    }
    return false;
}

#define MADE_NAMES 4
static const char *const picture_names[MADE_NAMES] = {"image", "image_array", "picture",
                                                      "picture_array"};
static const char *const audio_names[MADE_NAMES] = {"audio", "audio_array", "sound", "sound_array"};

/* A name that no array has; NULL: all are taken. */
static const char *made_name(const struct record_column *column, unsigned n,
                             const char *const names[static MADE_NAMES])
{
    for (size_t k = 0; k < MADE_NAMES; k++) {
        unsigned i = 0;

        while (i < n &&
               (strcmp(column[i].name, names[k]) != 0 || column[i].without & RECORD_NOT_ARRAYS))
            i++;
        if (i == n)
            return names[k];
    }
    return NULL;
}

/* The arrays of pictures, if any column has pictures. */
int record_set_add_pictures(struct dataset *ds, const struct record_column *column, unsigned n)
{
    struct record_set *set = ds->impl;
    unsigned found[RECORD_PICTURES_MOST], n_found;
    const struct record_content *source[RECORD_PICTURES_MOST];
    const char *name = made_name(column, n, picture_names);
    bool has_holes;
    int mask, r;

    /* Pictures are remembered; where nothing is, there are none. */
    n_found = set->setup.memo ? record_made_find(column, n, record_pictures_is_ext, found) : 0;
    if (!n_found)
        return 0;
    for (unsigned i = 0; i < n_found; i++)
        source[i] = &set->content[found[i]];
    r = record_thumbnails_add(ds, &set->setup, source, column, n_found, &set->thumbnails);
    if (r < 0 || !name)
        return r;
    has_holes = lacks_all(ds, source, column, n_found);
    mask = record_pictures_find_mask(column, n, found, n_found, &ds->notes);
    r = record_pictures_offer(ds, set->thumbnails, &set->setup,
                              &(struct record_pictures_offered){
                                  name, has_holes, record_pictures_have_pairs(column, n, n_found),
                                  mask < 0 ? NULL : &set->content[mask], record_set_set_identity});
    if (r < 0 || !set->setup.options.picture_height)
        return r;
    return record_pictures_add(
        ds, &set->setup, name,
        &(struct record_pictures_source){source, n_found, has_holes, record_set_set_identity},
        &set->pictures);
}

/* The arrays of audio, if any column has audio. */
int record_set_add_audio(struct dataset *ds, const struct record_column *column, unsigned n)
{
    struct record_set *set = ds->impl;
    unsigned found[RECORD_MADE_SOURCES], n_found;
    const struct record_content *source[RECORD_MADE_SOURCES];
    const char *name = made_name(column, n, audio_names);
    int r;

    n_found = set->setup.memo ? record_made_find(column, n, audio_is_ext, found) : 0;
    if (!n_found)
        return 0;
    for (unsigned i = 0; i < n_found; i++)
        source[i] = &set->content[found[i]];
    r = record_audio_new(ds, &set->setup, source, n_found, NULL, record_set_set_identity,
                         &set->audio);
    if (r == 0 && set->setup.options.audio && name)
        record_audio_add(ds, set->audio, &set->setup, name, lacks_all(ds, source, column, n_found));
    return r;
}
