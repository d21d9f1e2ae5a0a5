/* What the files of the claim share. Only they include this.
 *
 * A listing becomes counts of each folder (counts.c); rules say which folders are datasets, which
 * are pairs of pictures and what is learned, splits, classes (claim.c, pairs.c, folders.c); each
 * dataset becomes a set of samples (collect.c); tables and annotations say more of them (tables.c);
 * and what is left is counted (collect.c).
 *
 * Running out of memory is remembered in `failed` of the search, or of a text, and reported once,
 * when the sets become collections. So rules return nothing, and adding to a set needs no check. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_PARTS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_PARTS_H

#include "base/text.h"
#include "format/files/claim/claim.h"
#include "format/files/claim/names.h"
#include "format/rows/row.h"

/* What is counted of the files of a folder. */
enum folder_count {
    COUNT_PICTURES,
    COUNT_USED,   /* pictures, and files that have one next to them */
    COUNT_OTHERS, /* no pictures, lists, annotations or notices */
    COUNT_LISTS,  /* lists and annotations */
    COUNT_DOUBT,  /* others that are not neutral */
    COUNT_TABLES, /* of metadata */
    COUNT_MANIFESTS,
    N_COUNTS_NAMES,
    /* Once class folders of sounds or texts are searched: */
    COUNT_SAMPLES = N_COUNTS_NAMES, /* samples of that medium */
    COUNT_STRAY,                    /* files that are neither in samples nor readmes */
    N_COUNTS,
};

struct json_t;
struct recipe;
struct recipe_print;

#define NO_FOLDER UINT32_MAX

/* Names of classes, which LabelImg writes next to the files of boxes. */
#define CLASSES_FILE "classes.txt"

/* Files of `target` belong to pictures of `input`: those whose paths below it are the same, without
 * their extensions, except the end. */
struct pair {
    uint32_t target;
    char *end;         /* of stems of the target, behind those of the input: "", "_mask" */
    bool whole;        /* the stems are whole names: x.jpg.json of x.jpg */
    char *words;       /* its pictures are the field <words>.<extension> */
    char *name;        /* of the target's folder, in lower case: of its other files if two targets
                        * have the same extension */
    char ext[16];      /* of the first of these */
    struct pair *next; /* of the same input */
};

/* What names say of a folder. Folders come before those below them, which follow at once. */
struct folder_info {
    uint32_t end;       /* the folder after the last one below */
    uint32_t above;     /* the folder that it is in; NO_FOLDER: none */
    struct pair *pairs; /* of which it is the input */
    uint32_t bare;      /* a folder whose files belong to the pictures, but names say no field: its
                         * own `bare` is the next one; 0: none */
    bool long_names;    /* two targets of an input in it, or in its splits, have one extension */
    bool is_target;     /* it is the target of a pair: nothing else is looked for in it */
    bool is_role;       /* it is called by its role alone: datasets in it are not called by it */
    size_t first, last;
    uint64_t here[N_COUNTS], all[N_COUNTS]; /* its files; and with those of the folders below */
    bool foreign, kaldi, project;
    bool is_searched; /* its files were looked into, for manifests */
    bool is_left;     /* a recipe leaves it */
    bool is_skipped;  /* it is in a folder that is no class, and so nothing in it counts */
};

/* What is known of a file. */
enum {
    FILE_IN_SAMPLE = 1,
    FILE_MANIFEST = 2,
    FILE_WITH_ANOTHER = 4, /* of a dataset of a recipe: it belongs to a picture */
    FILE_REASON_GIVEN = 8,
    FILE_LEFT = 16, /* a recipe leaves it: it is what it is without one */
};

/* A dataset that a rule has found: samples, which tables and annotations may say more of. */
struct set {
    struct search *s;
    struct files_claim *claim; /* owned, until it is in a collection */
    uint32_t root;             /* it is called like this folder */
    uint32_t top;              /* the folder that its samples are in */
    bool keeps_all;            /* it is a dataset itself, next to its lists */
    bool has_texts;            /* that recipes do not express: of sounds */
    bool has_companions;       /* samples have several files of one stem */
    uint32_t *file;            /* [n] those of the samples, in order */
    size_t n;
    bool is_text[UINT8_MAX];     /* roles of files that are no pictures: "<folder>.<extension>" */
    char *called;                /* of a recipe: its name below root; NULL: as root is called */
    const struct recipe *recipe; /* of a recipe: it, and the member of the dataset */
    struct json_t *dataset;
    const char *pattern;        /* of names of the dataset */
    struct value_columns label; /* one column, if its pictures have {label} */
    uint8_t *named;      /* [samples] 1: an annotation of COCO names it; NULL: there is none */
    struct json_t *said; /* of each view, what annotations say: see set_say() */
    struct text notes;   /* for people: lines */
    struct text about;   /* members of dataset.json, each with ",\n" behind */
    struct text ignored; /* objects of JSON, with commas between them */
    char *refused;       /* why it is an error, for people; NULL: it is none */
    uint64_t base;       /* the number of its first sample: see pictures.h */
};

struct search {
    const struct members *m;
    bool failed;     /* memory ran out: nothing more is looked for */
    struct set *set; /* [n_sets] */
    size_t n_sets;
    struct recipe **recipe; /* [n_recipes] owned, until all sets are collections */
    size_t n_recipes;
    bool by_mic;              /* sounds of one stem, except the microphone, are a sample */
    struct folder_info *info; /* [n_folders] */
    struct claims *claims;
    bool manifests_only;        /* most files of SOURCE are something else */
    uint8_t *flags;             /* [files] FILE_... */
    enum files_media media;     /* of samples that are counted */
    struct recipe_print *print; /* NULL: the recipe is not shown */
    unsigned n_heads;           /* files that were looked into without being called *.manifest, */
    unsigned n_class_heads;     /* and as texts of class folders */
};

/* Has it samples of which tables next to them may say more? */
static inline bool set_has_pictures(const struct set *set)
{
    return set->claim->n_samples > 0 && !set->claim->table;
}

static inline uint32_t next_folder(const struct search *s, uint32_t child)
{
    return s->info[child].end;
}

static inline const char *claim_path(const struct search *s, uint32_t folder)
{
    return members_folder(s->m, folder);
}

static inline const char *folder_name(const struct search *s, uint32_t folder)
{
    return path_base(claim_path(s, folder));
}

/* The file after the last one of a folder, and of those in it. */
static inline size_t folder_end(const struct search *s, uint32_t folder)
{
    return s->info[s->info[folder].end - 1].last;
}

/* The first folder from `at` to before `end`, not below it, that a rule looks at: a sibling. `end`:
 * there is none. */
uint32_t sibling_from(const struct search *s, uint32_t at, uint32_t end);

/* for (EACH_FOLDER(s, i, folder)): those in a folder, but not those in them. */
#define EACH_FOLDER(s, i, folder)                                                                  \
    uint32_t i = (folder) + 1;                                                                     \
    i < (s)->info[folder].end;                                                                     \
    i = next_folder(s, i)
#define EACH_SIBLING(s, i, folder)                                                                 \
    uint32_t i = sibling_from(s, (folder) + 1, (s)->info[folder].end);                             \
    i < (s)->info[folder].end;                                                                     \
    i = sibling_from(s, next_folder(s, i), (s)->info[folder].end)

/* ---- counts.c ---- */

/* What no user means: hidden folders, and what macOS adds to archives. */
bool is_skipped(const char *name);

/* Is such a folder or file on a path? */
bool path_is_hidden(const char *path);

/* Add up counts from first to before `end` over the folders below each. */
void sum_folders(struct search *s, enum folder_count first, enum folder_count end);

/* Count the files of all folders, again if they were; and forget it. */
void counts_make(struct search *s);
void counts_free(struct search *s);

/* Set FILE_IN_SAMPLE of the files of a folder: those of samples of s->media. Returns how many
 * samples there are. by_class: see struct sample_walk. */
uint64_t mark_samples(const struct search *s, uint32_t folder, bool by_class);

/* Keep the first rule by which pictures of a folder are no dataset. */
void claim_note_unmet(struct search *s, uint32_t folder, bool project);

/* Is it a folder of pictures that a rule looks at? */
bool is_sibling(const struct search *s, uint32_t folder);

/* The only sibling, by is_sibling(), in a folder. NO_FOLDER: there is none, or several. */
uint32_t sibling_only(const struct search *s, uint32_t folder);

/* Has each of several siblings in a folder a single sibling in it, all of one name, and no pictures
 * itself? That name; NULL: no. direct: and the single siblings have pictures themselves. */
const char *siblings_only(const struct search *s, uint32_t folder, bool direct);

/* Is a folder a copy of those next to it: has each folder in it the name of one of them? count: the
 * files that a folder must have to count. */
bool folder_is_copy(const struct search *s, uint32_t folder, enum folder_count count);

/* Have folders of a folder files of the medium, where all names are numbers that run on from each
 * to the next? count: of these files. */
bool numbers_run_on(const struct search *s, uint32_t folder, enum folder_count count);

/* The folder of that path. NO_FOLDER: there is none. */
uint32_t folder_of_path(const struct search *s, const char *path, size_t len);

/* The folder at that path below another, or that itself if the path is empty. NO_FOLDER. */
uint32_t folder_below(const struct search *s, uint32_t above, const char *path, size_t len);

/* ---- manifests.c ---- */

/* Before folders are counted: find manifests by names, and by a look into some. */
void search_named_manifests(struct search *s);

/* Look into other files of a folder, and of those below that have no pictures; counts them. */
void search_manifests(struct search *s, uint32_t folder);

/* The same for the folders of this one, which may be classes, or have manifests of their own. */
void search_classes_for_manifests(struct search *s, uint32_t folder);

/* ---- manifest.c, metadata.c: the sets of a folder with manifests, or with a table of metadata
 * ---- */

void manifests_apply(struct search *s, uint32_t folder);
void metadata_apply(struct search *s, uint32_t folder);

/* ---- claim.c ---- */

/* Find the datasets of a folder. split: it, or one above, is called by a part of a dataset;
 * project: a program is built in a folder above. */
struct claim_above {
    bool split, project;
    const char *rule; /* which rule has led here, for people; NULL: none */
};
void claim_search_folder(struct search *s, uint32_t folder, struct claim_above above);

/* ---- pairs.c ---- */

/* Find pairs among the folders of this one, or of several in it. true: it is refused, and a set
 * says so. */
bool pairs_find(struct search *s, uint32_t folder);

/* Are the folders in it scenes: are all paired alike? */
bool pairs_are_scenes(const struct search *s, uint32_t folder);

/* Do all files of target belong to pictures of input, by their names? */
bool pairs_belong(const struct search *s, uint32_t input, uint32_t target);

/* Add a pair, whose texts are copied. */
void pairs_add(struct search *s, uint32_t input, struct pair pair);

/* Nothing is looked for in a folder, and its files are ignored. */
void pairs_ignore(struct search *s, uint32_t folder);

/* ---- partners.c ---- */

/* Has a folder a picture with that stem? */
bool pairs_have_picture(const struct search *s, uint32_t folder, const char *stem, size_t len);

/* The folder below `to` where `folder` is below `from`. NO_FOLDER: there is none. */
uint32_t pairs_same_below(const struct search *s, uint32_t folder, uint32_t from, uint32_t to);

/* The file of a pair that belongs to the picture of that name, of which len bytes are its stem, in
 * `folder`, which is `input` or below; the next one after `after`, if it is not SIZE_MAX. SIZE_MAX:
 * there is none. */
size_t pair_partner(const struct search *s, const struct pair *pair, uint32_t input,
                    uint32_t folder, const char *name, size_t len, size_t after);

/* Say of a set what belongs to its pictures, where names of its folders do not. */
void pairs_add_notes(const struct search *s, struct set *set);

/* Do two texts of its pictures, or of those of another split, have the same extension? */
bool pairs_have_long_names(const struct set *set);

/* ---- folders.c ---- */

/* Parts, splits, one folder, classes, or a flat folder: the first rule that holds makes sets, or
 * looks at the folders in it. */
void folders_apply(struct search *s, uint32_t folder, struct claim_above above);

/* ---- sets.c ---- */

/* Make space for element number n, as array_capacity() does. false: no memory, and s->failed. */
bool search_capacity(struct search *s, void *array, size_t n, size_t each);

/* Copy a text of len bytes, as element number *n of a list, which grows. */
void search_add_text(struct search *s, char ***list, size_t *n, const char *text, size_t len);

/* Read the first `size` bytes of a file: how many there are, or -errno. */
int search_head(struct search *s, size_t file, void *bytes, size_t size);

/* Give each row of a file to add(), and what it is called in messages. 0, or -errno with the reason
 * in d. */
int search_rows(struct search *s, size_t file, const char *name, enum table_format format,
                int (*add)(void *ctx, const struct row_bytes *row, uint64_t line, const char *what,
                           struct diag *d),
                void *ctx, struct diag *d);

/* Make a set by hand: begin it, then each sample with its files, whose field is an extension if
 * field is NULL, and end it. NULL: no memory. The set moves when another begins. */
struct set *set_begin(struct search *s, uint32_t root, enum files_layout layout, uint32_t top,
                      const char *rule);
void set_begin_sample(struct set *set);
void set_add_file(struct set *set, size_t file, const char *field);
void set_end(struct set *set);

/* The picture, or sound, among the files of a sample, once the set ends; otherwise its first file.
 */
uint32_t set_picture(const struct set *set, size_t sample);

/* Count files that are ignored for a reason, in dataset.json: the path of the first. */
void set_add_ignored(struct set *set, const char *reason, size_t n, const char *first);

/* A text as JSON, what is no UTF-8 as U+FFFD; NULL: no memory. Set a member, whose value is taken
 * over, and NULL if memory ran out. */
struct json_t *search_json_text(struct search *s, const char *text);
void search_json_set(struct search *s, struct json_t *object, const char *name,
                     struct json_t *value);

/* Add what an annotation says of a view to the recipe that is shown: a value of a member of a
 * dataset, or of its boxes, which is taken over. View 0 is all samples. */
void set_say(struct set *set, size_t view, const char *member, struct json_t *value);
void set_say_file(struct set *set, size_t view, const char *member, size_t file);

/* Sets whose samples are the rows of a table, of that path below SOURCE: it is called `word` for
 * people, and dataset.json has its name as `about`. set_begin_row() begins a sample that has a key
 * of its own; set_add_lost() says that a name of a file means none, and why: see struct files_lost.
 */
void set_add_table(struct set *set, const char *path, const char *word, const char *about);
void set_begin_row(struct set *set, const char *key, size_t len);
void set_add_lost(struct set *set, const char *field, const char *why);

/* May a table of a folder name that file? Not one that is hidden. */
bool table_may_name(const struct search *s, uint32_t root, size_t file);

/* Refuse a set, unless it is, and say why. */
void set_refuse(struct set *set, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End the sets from number `from` on: their files are in none. */
void sets_drop(struct search *s, size_t from);

void sets_release(struct search *s);

/* ---- collect.c ---- */

/* A set of that layout, called like root, whose samples are in the folder `top`, and in those in it
 * if `whole`. The folders of top are the classes of LAYOUT_CLASSES. NULL: no memory. */
struct set *collect_set(struct search *s, uint32_t root, enum files_layout layout, uint32_t top,
                        bool whole, const char *rule);

/* The path that a folder is shown by: without folders on it that are called by a role alone, such
 * as images; and behind it `called`, or NULL. NULL: no memory. */
char *collect_display_path(struct search *s, uint32_t folder, const char *called);

/* The path that a set is shown by as a dataset; "": that of SOURCE. NULL: no memory. */
char *collect_set_path(struct search *s, const struct set *set);

/* A dataset that is refused, and why: the pictures below root are in no other. Returns true. */
bool collect_refused(struct search *s, uint32_t root, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Make collections of all sets, and count what is ignored. */
void collect_all_sets(struct search *s);

/* If a set from number `from` on is refused, all of them are, as one dataset of folder: half a
 * dataset is none. */
void sets_refuse_all(struct search *s, size_t from, uint32_t folder);

/* ---- tables.c ---- */

/* Read tables and annotations next to the sets. */
void tables_apply(struct search *s);

/* ---- classes.c ---- */

/* Has SOURCE files of s->media, sounds or texts, that are in no collection yet? Not sounds next to
 * tables of Kaldi, which may name them. */
bool classes_have_any(const struct search *s);

/* Collect the class folders of s->media, sounds or texts, that are in no collection yet, nor have
 * files that may be something else. */
void claim_classes(struct search *s);

#endif
