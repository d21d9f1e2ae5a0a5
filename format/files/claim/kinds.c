/* To add a kind: a row here. What is read of files is known by their extensions, as in tar shards;
 * so a kind needs no code of its own. */
#include "format/files/claim/kinds.h"

#include <string.h>

#include "format/files/claim/names.h"

/* torchvision's IMG_EXTENSIONS, and gif. */
static const char *const pictures[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp", ".pgm",
                                       ".tif", ".tiff", ".webp", ".gif", NULL};
static const char *const sounds[] = {".wav", ".flac", ".mp3", ".ogg",  ".opus",
                                     ".m4a", ".aac",  ".aif", ".aiff", NULL};
static const char *const texts[] = {".txt", NULL};

/* Not what other formats read, such as .npy: beside sounds it is a dataset of its own. */
static const char *const transcripts[] = {".txt", ".json", ".lab", ".cls", NULL};
static const char *const anything[] = {"", NULL};

const struct files_kind_about files_kinds[N_FILES_KINDS] = {
    [FILES_PICTURES] = {.word = "pictures", .one = "picture", .ends = pictures, .beside = anything},
    [FILES_SOUNDS] = {.word = "sounds",
                      .one = "sound",
                      .ends = sounds,
                      .beside = transcripts,
                      .skipped = "_background_noise_"}, /* of Speech Commands: noise to mix in */
    [FILES_TEXTS] =
        {.word = "texts", .one = "text", .ends = texts, .bare = "txt", .is_looked_into = true},
};

bool name_is_of(enum files_kind kind, const char *name)
{
    const struct files_kind_about *about = &files_kinds[kind];

    if (kind == FILES_PICTURES)
        return name_ends_in(name, about->ends);
    return *name != '.' &&
           (name_ends_in(name, about->ends) || (about->bare && !strchr(name, '.'))) &&
           !name_is_notice(name);
}

bool name_may_be_beside(enum files_kind kind, const char *name)
{
    return files_kinds[kind].beside && name_ends_in(name, files_kinds[kind].beside);
}
