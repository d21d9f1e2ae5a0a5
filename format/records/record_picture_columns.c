/* Which columns of records have pictures, and which have what is learned of them. */
#include <string.h>
#include <strings.h>

#include "format/core/notes.h"
#include "format/records/record_pictures.h"

bool record_pictures_is_ext(const char *ext)
{
    static const char *const known[] = {"jpg", "jpeg", "png", "webp"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcasecmp(ext, known[i]))
            return true;
    return false;
}

bool record_pictures_have_pairs(const struct record_column *column, unsigned n, unsigned n_found)
{
    unsigned all = 0;

    for (unsigned i = 0; i < n; i++) {
        const char *dot = column[i].shown == RECORD_BYTES ? strrchr(column[i].ext, '.') : NULL;

        all += column[i].shown == RECORD_BYTES &&
               record_pictures_is_ext(dot ? dot + 1 : column[i].ext);
    }
    return all > n_found;
}

int record_pictures_find_mask(const struct record_column *column, unsigned n, const unsigned *found,
                              unsigned n_found, struct notes *notes)
{
    int mask = -1;

    for (unsigned i = 0; i < n; i++) {
        const char *dot = strrchr(column[i].ext ? column[i].ext : "", '.');
        unsigned k = 0;

        while (k < n_found && found[k] != i)
            k++;
        if (!column[i].is_target || k < n_found || !dot || !record_pictures_is_ext(dot + 1))
            continue;
        if (mask >= 0)
            notes_add(notes, "mask shows .%s, and not .%s", column[mask].ext, column[i].ext);
        else if (column[i].has_holes)
            notes_add(notes, "there is no mask: some samples have no .%s", column[i].ext);
        else
            mask = (int)i;
    }
    return mask;
}
