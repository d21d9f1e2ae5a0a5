/* Names are all that decides which files are a dataset, and which of them are one sample: a look
 * into a million files would take minutes. */
#include "format/files/claim/names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "format/core/split_name.h"

/* May they be the same letter? Most names are told apart by one. */
static bool may_be_same(char a, char b)
{
    return (a | 0x20) == (b | 0x20);
}

bool name_ends_in(const char *name, const char *const *ends)
{
    size_t len = strlen(name);

    for (; *ends; ends++) {
        size_t n = strlen(*ends);

        if (len > n && may_be_same(name[len - 1], n ? (*ends)[n - 1] : name[len - 1]) &&
            !strcasecmp(name + len - n, *ends))
            return true;
    }
    return false;
}

/* ---- what files hold. To add one: a row of files_media ---- */

/* torchvision's IMG_EXTENSIONS, and gif. */
static const char *const pictures[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp", ".pgm",
                                       ".tif", ".tiff", ".webp", ".gif", NULL};
static const char *const sounds[] = {".wav", ".flac", ".mp3", ".ogg",  ".opus",
                                     ".m4a", ".aac",  ".aif", ".aiff", NULL};
static const char *const texts[] = {".txt", NULL};

/* Not what other formats read, such as .npy: next to sounds it is a dataset of its own. */
static const char *const transcripts[] = {".txt", ".json", ".lab", ".cls", NULL};
static const char *const anything[] = {"", NULL};

const struct files_media_about files_media[N_FILES_MEDIA] = {
    [FILES_PICTURES] = {.word = "pictures", .one = "picture", .ends = pictures, .beside = anything},
    [FILES_SOUNDS] = {.word = "sounds",
                      .one = "sound",
                      .ends = sounds,
                      .beside = transcripts,
                      .skipped = "_background_noise_"}, /* of Speech Commands: noise to mix in */
    [FILES_TEXTS] =
        {.word = "texts", .one = "text", .ends = texts, .bare = "txt", .is_looked_into = true},
};

bool name_is_of(enum files_media media, const char *name)
{
    const struct files_media_about *about = &files_media[media];

    if (media == FILES_PICTURES)
        return name_ends_in(name, about->ends);
    return *name != '.' &&
           (name_ends_in(name, about->ends) || (about->bare && !strchr(name, '.'))) &&
           !name_is(NAME_NOTICE, name);
}

bool name_may_be_beside(enum files_media media, const char *name)
{
    return files_media[media].beside && name_ends_in(name, files_media[media].beside);
}

bool name_is_picture(const char *name)
{
    return name_is_of(FILES_PICTURES, name);
}

size_t name_stem(const char *name)
{
    const char *dot = strchr(name, '.');

    return dot ? (size_t)(dot - name) : 0;
}

size_t name_stem_alone(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? (size_t)(dot - name) : strlen(name);
}

size_t name_mic(const char *name)
{
    static const char *const words[] = {"_mic", "_ch", NULL};
    size_t stem = name_stem_alone(name);

    for (const char *const *word = words; *word; word++) {
        size_t n = strlen(*word) + 1;

        if (stem > n && name[stem - 1] >= '0' && name[stem - 1] <= '9' &&
            !strncasecmp(name + stem - n, *word, n - 1))
            return n;
    }
    return 0;
}

size_t name_ext(const char *name, size_t stem, char ret[static EXT_MOST + 1])
{
    size_t len = strlen(name), n = len > stem + 1 ? len - stem - 1 : 0;

    if (n > EXT_MOST)
        return 0;
    for (size_t i = 0; i < n; i++)
        ret[i] = (char)tolower((unsigned char)name[stem + 1 + i]);
    ret[n] = '\0';
    return n;
}

size_t path_stem(const char *path, size_t len)
{
    for (size_t i = len; i > 1 && path[i - 1] != '/'; i--)
        if (path[i - 1] == '.' && path[i - 2] != '/')
            return i - 1;
    return len;
}

bool name_is_plain(const char *name)
{
    return name_stem(name) && name_stem(name) == name_stem_alone(name);
}

const char *const table_names[] = {"metadata.jsonl", "metadata.csv", "metadata.parquet", NULL};

bool name_is_table(const char *name)
{
    for (const char *const *table = table_names; *table; table++)
        if (!strcmp(name, *table))
            return true;
    return false;
}

/* Names in any case. To add one: a word. */
static const struct name_words {
    const char *ends[24], *starts[12], *names[20]; /* ended by NULL */
    const enum name_meaning *also;                 /* NULL, or names of that kind too */
} name_words[N_NAME_MEANINGS] = {
    [NAME_KALDI] = {.ends = {".scp", ".ark", ".scp.gz", ".ark.gz"}},
    [NAME_FOREIGN] = {.ends = {"-ubyte", "-ubyte.gz", "-ubyte.xz", ".tar", ".tgz", ".tar.gz",
                               ".tfrecord", ".rec", ".tfrecords", ".mindrecord", ".npz",
                               ".safetensors", ".parquet", ".svm", ".arrow", ".libsvm", ".h5",
                               ".hdf5", ".lmdb"},
                      .also = &(const enum name_meaning){NAME_KALDI}},
    [NAME_MANIFEST] = {.ends = {".manifest"}},
    [NAME_NOTICE] = {.ends = {".md", ".db", ".ini", ".url", ".cache"},
                     .starts = {"readme", "licen", "copying", "sha256", "md5", "sha1", "checksum",
                                "citation", "notice", "._"}},
    [NAME_NEUTRAL] = {.ends = {".json", ".html", ".pdf"},
                      .also = &(const enum name_meaning){NAME_NOTICE}},
    [NAME_LIST] = {.ends = {".txt", ".xml", ".json", ".csv", ".tsv", ".mat", ".lst", ".yaml",
                            ".yml", ".names", ".data"}},
    [NAME_PROJECT] = {.names = {"Makefile", "CMakeLists.txt", "package.json", "pyproject.toml",
                                "setup.py", "setup.cfg", "Cargo.toml", "go.mod", "pom.xml",
                                "build.gradle", "meson.build", "configure.ac", "configure",
                                "Dockerfile", "index.html", "Gemfile", "composer.json", "tox.ini"}},
};

bool name_is(enum name_meaning meaning, const char *name)
{
    const struct name_words *words = &name_words[meaning];

    for (const char *const *s = words->starts; *s; s++)
        if (may_be_same(*name, **s) && !strncasecmp(name, *s, strlen(*s)))
            return true;
    for (const char *const *s = words->names; *s; s++)
        if (may_be_same(*name, **s) && !strcasecmp(name, *s))
            return true;
    return name_ends_in(name, words->ends) || (words->also && name_is(*words->also, name));
}

bool name_is_split(const char *name)
{
    return is_split_name(name, strlen(name));
}

bool name_is_number(const char *text, size_t len)
{
    size_t digits = 0;

    while (digits < len && isdigit((unsigned char)text[digits]))
        digits++;
    return len && digits == len && len < 19;
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *member_path(const struct members *m, size_t i)
{
    const char *folder = members_folder_of(m, i);
    char *ret;

    text_print(&ret, "%s%s%s", folder, *folder ? "/" : "", members_name(m, i));
    return ret;
}

/* ---- samples ---- */

#define GROUP_MOST 1024 /* files of a sample; more are no sample */

/* Do two of the names have one extension, in any case? They need not be neighbours. */
static bool names_has_repeated(const struct members *m, size_t first, size_t n)
{
    if (n > GROUP_MOST)
        return true;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (!strcasecmp(members_name(m, first + i), members_name(m, first + k)))
                return true;
    return false;
}

/* The number of members from first on, before end, that have the stem of the first. Names that
 * begin with the same bytes are neighbours. */
static size_t same_stem(const struct members *m, size_t first, size_t end, size_t stem)
{
    const char *name = members_name(m, first);
    uint32_t folder = m->member[first].folder;
    size_t n = 1;

    while (first + n < end && m->member[first + n].folder == folder &&
           !strncmp(members_name(m, first + n), name, stem + 1))
        n++;
    return n;
}

/* Files with one stem: how many have no other dot in their names, are of the kind, and are both. */
struct stem_files {
    size_t plain, content, both;
};

static struct stem_files names_count(const struct sample_walk *walk, size_t first, size_t n)
{
    struct stem_files ret = {0};

    for (size_t i = first; i < first + n; i++) {
        bool is_plain = name_is_plain(members_name(walk->m, i));
        bool is_content = name_is_of(walk->media, members_name(walk->m, i));

        ret.plain += is_plain;
        ret.content += is_content;
        ret.both += is_plain && is_content;
    }
    return ret;
}

/* How many files from first on, that are samples alone, have plain names. */
static size_t names_plain_run(const struct sample_walk *walk, size_t first)
{
    size_t n = 1;

    while (first + n < walk->single && name_is_plain(members_name(walk->m, first + n)))
        n++;
    return n;
}

/* Where none of the names is the stem and an extension alone, a picture has the files that differ
 * from it in their last extension: x_jpg.rf.01.jpg and x_jpg.rf.01.xml. How many files these are;
 * 1: none. */
static size_t names_dotted_group(const struct sample_walk *walk, size_t first)
{
    const struct members *m = walk->m;
    size_t stem = name_stem_alone(members_name(m, first)), n;

    if (!walk->is_dotted)
        return 1;
    n = same_stem(m, first, walk->single, stem);
    for (size_t i = first; i < first + n; i++)
        if (name_stem_alone(members_name(m, i)) != stem)
            return 1;
    return names_count(walk, first, n).content == 1 ? n : 1;
}

/* The next files among those that are samples alone: how many; *ret: they are one. */
static size_t names_next_single(const struct sample_walk *walk, struct sample_files *ret,
                                bool *ret_is)
{
    const char *name = members_name(walk->m, walk->at);
    const bool in_run = walk->at < walk->single;
    const bool joins = in_run && walk->joins && name_is_plain(name);
    size_t n = 1;

    if (joins)
        n = names_plain_run(walk, walk->at);
    else if (in_run && files_media[walk->media].beside)
        n = names_dotted_group(walk, walk->at);
    *ret = (struct sample_files){walk->at, n, joins ? name_stem(name) : name_stem_alone(name)};
    *ret_is = (n > 1 && !joins) || names_count(walk, walk->at, n).content > 0;
    return n;
}

/* Files with one stem are one sample if one of them is called by the stem and an extension alone:
 * of 2020.01.05.jpg and 2020.01.06.jpg each is its own. In class folders each picture is a sample:
 * a.flip.jpg too, next to a.jpg and a.json. */
bool next_sample(struct sample_walk *walk, struct sample_files *ret)
{
    const struct members *m = walk->m;

    while (walk->at < walk->end) {
        size_t i = walk->at, stem, n;
        struct stem_files files;

        if (i < walk->single || !files_media[walk->media].beside) {
            bool is;

            walk->at += names_next_single(walk, ret, &is);
            if (is)
                return true;
            continue;
        }
        stem = name_stem(members_name(m, i));
        n = stem ? same_stem(m, i, walk->end, stem) : 1;
        files = names_count(walk, i, n);
        if (!stem || !files.content) {
            walk->at += n;
        } else if (files.plain && (!walk->by_class || files.content < 2) &&
                   (n == 1 || !names_has_repeated(m, i, n))) {
            *ret = (struct sample_files){i, n, stem};
            walk->at += n;
            return true;
        } else {
            walk->single = i + n;
            walk->is_dotted = !files.plain;
            walk->joins = walk->by_class && files.both == 1;
        }
    }
    return false;
}
