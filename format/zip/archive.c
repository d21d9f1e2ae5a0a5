/* The directory is read and checked as a whole; local headers are read when their members are. */
#include "format/zip/archive.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"

void zip_archive_drop(struct zip_archive *archive)
{
    if (--archive->users)
        return;
    blob_free(archive->blob);
    members_release(&archive->listing);
    free(archive->place);
    free(archive->names);
    free(archive->aside);
    free(archive);
}

/* May all of the archive be read? Members of methods that are not known are ignored later. */
static int zip_check_members(const struct blob *blob, const struct zip *zip, struct diag *d)
{
    int r = 0;

    for (size_t i = 0; i < zip->n && r == 0; i++)
        if (zip_is_encrypted(&zip->member[i]) || !zip_foreign_method(&zip->member[i]))
            r = zip_check(blob, &zip->member[i], d);
    return r;
}

/* Copy what reads of members need. */
static int zip_place_members(struct zip_archive *archive, const struct zip *zip, struct diag *d)
{
    AUTO_FREE uint64_t *end = malloc((zip->n + 1) * sizeof(*end));
    size_t names = 0;
    int r = end ? zip_ends(archive->blob, zip, end, d) : -ENOMEM;

    for (size_t i = 0; i < zip->n; i++)
        names += zip->member[i].name_len;
    if (r < 0)
        return r;
    archive->place = calloc(zip->n + 1, sizeof(*archive->place));
    archive->names = malloc(names + 1);
    if (!archive->place || !archive->names)
        return -ENOMEM;
    archive->n = zip->n;
    names = 0;
    for (size_t i = 0; i < zip->n; i++) {
        const struct zip_member *m = &zip->member[i];
        struct zip_place *place = &archive->place[i];

        place->header = m->header;
        place->end = end[i];
        place->packed_size = m->packed_size;
        place->crc = m->crc;
        place->name = (uint32_t)names;
        place->name_len = (uint16_t)m->name_len;
        place->method = (uint16_t)m->method;
        memcpy(archive->names + names, m->name, m->name_len);
        names += m->name_len;
    }
    return 0;
}

int zip_archive_open(struct blob *blob, const char *top, const char *stem,
                     const struct format_setup *setup, struct zip_archive **ret, struct diag *d)
{
    static _Atomic(uint64_t) archives;
    AUTO_ZIP_ARCHIVE struct zip_archive *archive = calloc(1, sizeof(*archive));
    AUTO_ZIP struct zip zip = {0};
    int r;

    if (!archive) {
        blob_free(blob);
        return -ENOMEM;
    }
    archive->users = 1;
    archive->blob = blob;
    archive->setup = setup;
    archive->number = atomic_fetch_add(&archives, 1) + 1;
    r = zip_read(blob, &zip, d);
    if (r == 0)
        r = zip_check_members(blob, &zip, d);
    if (r == 0)
        r = zip_place_members(archive, &zip, d);
    if (r == 0)
        r = zip_list(archive, &zip, top, stem, d);
    if (r == 0)
        r = blob_verify(blob, d);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(archive);
    return 0;
}
