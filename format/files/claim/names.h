/* What the name of a file says: its stem, its extension, what it holds. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_NAMES_H
#define EPOCHFS_FORMAT_FILES_CLAIM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/members.h"

/* What class folders may hold. One table says how each is known. */
enum files_media { FILES_PICTURES, FILES_SOUNDS, FILES_TEXTS, N_FILES_MEDIA };

struct files_media_about {
    const char *word, *one;    /* for people: "sounds", "sound" */
    const char *const *ends;   /* of names, in any case, ended by NULL */
    const char *const *beside; /* what may lie next to a sample and is of it, where it has the same
                                * stem. NULL: nothing, each file is a sample */
    const char *bare;          /* NULL; or the extension that names without a dot are shown with */
    const char *skipped;       /* NULL; or a folder that is no class */
    bool is_looked_into;       /* other formats may have such files */
};
extern const struct files_media_about files_media[N_FILES_MEDIA];

/* Has a name one of these ends, in any case, and something before it? They end with NULL. */
bool name_ends_in(const char *name, const char *const *ends);

/* Is a file of that kind, by its name? */
bool name_is_of(enum files_media media, const char *name);

/* Is it what may lie next to a sample of that kind, and belongs to it? */
bool name_may_be_beside(enum files_media media, const char *name);

bool name_is_picture(const char *name);

/* The name before its first dot, which belongs to all files of a sample: its length; 0: it has no
 * dot, or begins with one. */
size_t name_stem(const char *name);

/* The name before its last dot, for a file that is a sample alone, or all of a name without one. */
size_t name_stem_alone(const char *name);

/* Bytes of "_mic1" at the end of that stem: several sounds of one sample have one. 0: it has no
 * such end. */
size_t name_mic(const char *name);

/* What follows the stem and a dot, in lower case: its length, at most EXT_MOST; 0: nothing does, or
 * it is longer. */
#define EXT_MOST 200 /* bytes of an extension */
size_t name_ext(const char *name, size_t stem, char ret[static EXT_MOST + 1]);

/* The length of a path without the extension of its last name. */
size_t path_stem(const char *path, size_t len);

/* Is it the stem and one extension, without another dot? */
bool name_is_plain(const char *name);

/* What else a name may say. */
enum name_meaning {
    NAME_KALDI,    /* a table of Kaldi, or a list that names files elsewhere */
    NAME_FOREIGN,  /* surely a dataset file of another format */
    NAME_MANIFEST, /* a manifest of MindSpore or ModelArts: see manifests.h */
    NAME_NOTICE,   /* it says nothing of pictures: a folder with nothing else may be a class without
                    * any */
    NAME_NEUTRAL,  /* such, and what lies next to many datasets and is part of none: licences,
                    * checksums, thumbnails */
    NAME_LIST,    /* it may be a list of pictures, or an annotation, and is no data by itself: .txt,
                   * .xml, .csv */
    NAME_PROJECT, /* of a folder where a program is built */
    N_NAME_MEANINGS,
};
bool name_is(enum name_meaning meaning, const char *name);

/* The names of tables of metadata next to pictures, as Hugging Face has them, ended by NULL. */
extern const char *const table_names[];
bool name_is_table(const char *name);

/* A folder of one part of a dataset: train, val, test and so on, in any case. */
bool name_is_split(const char *name);

/* Is a text a whole number, of at most 18 digits? */
bool name_is_number(const char *text, size_t len);

/* Files of one sample: n members in a row, all of one folder. */
struct sample_files {
    size_t first, n;
    size_t stem; /* bytes of the name that they share: the key; a dot and the extension follow */
};

/* A walk over the samples of members, which are sorted by name within each folder. by_class: of
 * several pictures with one stem each is a sample, as torchvision has it. Otherwise they are one.
 */
struct sample_walk {
    const struct members *m;
    size_t at, end; /* members */
    bool by_class;
    enum files_media media; /* each sample has a file of that */
    size_t single;          /* until there each file of that kind is a sample, */
    bool is_dotted;         /* there all names have a second dot */
    bool joins;             /* with the files next to it whose name is as plain */
};

/* The next sample; false: there is none. */
bool next_sample(struct sample_walk *walk, struct sample_files *ret);

/* The last part of a path. */
const char *path_base(const char *path);

/* The path of a member; the caller's. NULL: no memory. */
char *member_path(const struct members *m, size_t i);

#endif
