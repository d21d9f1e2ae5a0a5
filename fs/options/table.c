/* The table of our mount options: name, form of the value, help, and the function that sets it. */
#include "fs/options/table.h"

#include <stddef.h>
#include <string.h>

#include "base/values.h"
#include "cache/disk/staged_file.h"
#include "format/audio/audio.h"
#include "format/picture/picture.h"
#include "fs/options/help.h"
#include "fs/options/setters.h"

static const char *const keep_words[] = {
    [STAGE_PIN] = "never|pin", [STAGE_ONCE] = "after_use|once", [STAGE_PLAN] = "plan"};

static int set_keep(struct options *o, const char *name, const char *value, struct diag *d)
{
    unsigned word = 0;
    int r = value_word(name, value, keep_words, ARRAY_LEN(keep_words), &word, d);

    if (r == 0) {
        o->source.stage.keep = word;
        o->keep_given = true;
    }
    return r;
}

/* The words of options, at the value that each stands for. */
static const char *const base_words[] = {
    [INDEX_AS_IS] = "asis", [INDEX_FROM_ONE] = "1", [INDEX_AUTO] = "auto"};
static const char *const header_words[] = {
    [CSV_HEADER_AUTO] = "auto", [CSV_HEADER_YES] = "yes", [CSV_HEADER_NO] = "no"};
static const char *const dtype_words[] = {"float32|f4", "float64|f8"};
static const char *const across_words[] = {"yes|keep", "no|split"};
static const char *const unit_words[] = {"document|doc", "sequence|seq"};
static const char *const pair_words[] = {"auto", "off"};
static const char *const error_words[] = {
    [BAD_ROWS_ERROR] = "fail|error", [BAD_ROWS_SKIP] = "skip", [BAD_ROWS_ZERO] = "zero"};
static const char *const passthrough_words[] = {
    [OPEN_AUTO] = "auto", [OPEN_CACHED] = "off|cached", [OPEN_PASS] = "on|pass"};
static const char *const prefetch_words[] = {"off", "on|auto"};
static const char *const version_words[] = {
    [VERSION_BOTH] = "both", [VERSION_ETAG] = "etag", [VERSION_TIME] = "time"};
static const char *const levels[] = {"error", "warning", "info", "debug"};

#define AT(member)                                                                                 \
    .at = offsetof(struct options, member), .size = sizeof((struct options){0}.member)
#define FLAG(member)             .type = OPTION_FLAG, AT(member)
#define NUMBER(member, from, to) .type = OPTION_NUMBER, AT(member), .least = (from), .most = (to)
#define SIZE(member)             .type = OPTION_SIZE, AT(member)
#define TEXT(member, what_it_is) .type = OPTION_TEXT, AT(member), .what = (what_it_is)
#define PATH(member, what_it_is) .type = OPTION_PATH, AT(member), .what = (what_it_is)
#define WORD(member, list)                                                                         \
    .type = OPTION_WORD, AT(member), .word = (list), .n_words = ARRAY_LEN(list)

/* ---- defaults that are more than a number or a word ---- */

static void show_readahead(const struct options *o, struct text *t)
{
    (void)o;
    help_add_size(t, OPTIONS_READAHEAD_MOST);
    text_add(t, ", or 1/%d of the memory if that is less", OPTIONS_READAHEAD_SHARE);
}

static void show_cache_size(const struct options *o, struct text *t)
{
    text_add(t, "%u%%", o->source.stage.limit_percent);
}

static void show_block_size(const struct options *o, struct text *t)
{
    (void)o;
    text_add(t, "auto");
}

static void show_transfers(const struct options *o, struct text *t)
{
    text_add(t, "%u, and up to %u if they are small", o->source.stage.jobs,
             o->source.stage.small_jobs);
}

static void show_formats(const struct options *o, struct text *t)
{
    (void)o;
    text_add(t, "recognised by content; one of: ");
    option_add_formats(t, ", ");
}

/* ---- the table ---- */

const struct option options_ours[] = {
    /* The plan that a mount announces. */
    {"plan", "PLAN",
     "list this plan in the mount, stage in its order, and prepare its files before they are read. "
     "Its parameters are joined by +: plan=batch=128+seed=7. It may be repeated",
     .group = GROUP_PLAN, .common = true, .set = option_set_plan},
    {"subset", "NAME=FILE",
     "give the name NAME to the samples that FILE lists, one key or #number per line; plans use "
     "them with only=NAME",
     .group = GROUP_PLAN, .set = option_set_list, .old = "list"},
    {"epochs", "N",
     "list epochs 0 to N-1 of the plans. With evict=after_use, these epochs keep their blocks",
     NUMBER(epochs, 0, 65536), .group = GROUP_PLAN, .common = true},
    {"mix", "NAME=SOURCES",
     "show a dataset NAME that mixes several datasets in proportion to weights: "
     "mix=m=web*7+books*3",
     .group = GROUP_PLAN, .set = option_set_mix},
    {"readahead", "SIZE",
     "prepare the next reads in the page cache, up to this size; 0 prepares nothing",
     .group = GROUP_PLAN, .set = option_set_ahead, .show = show_readahead, .old = "ahead"},
    /* The cache directory. */
    {"cache_dir", "DIR",
     "keep staged blocks, unpacked files and indexes in this directory, and stage local sources "
     "also",
     PATH(cache, "a folder"), .group = GROUP_CACHE, .common = true,
     .preset = "the first of: $EPOCHFS_CACHE, an existing epochfs-UID in $SLURM_TMPDIR or $TMPDIR, "
               "$XDG_CACHE_HOME/epochfs, ~/.cache/epochfs",
     .old = "cache"},
    {"cache_size", "SIZE",
     "limit the cache directory to this size, or to N% of its file system. A full cache evicts "
     "unused data first, starting with the oldest",
     .group = GROUP_CACHE, .common = true, .set = option_set_cache_size, .show = show_cache_size},
    {"evict", "WHEN",
     "never: blocks stay in the cache. after_use: a block leaves after the plan needs it for the "
     "last time. plan: a full cache evicts the block that the plan needs latest. With peers=, the "
     "default is plan",
     .group = GROUP_CACHE, .common = true, .set = set_keep, AT(source.stage.keep),
     .word = keep_words, .n_words = ARRAY_LEN(keep_words), .old = "keep"},
    {"prefetch", "WHETHER",
     "on: fetch the whole source in the background. off: fetch only what is read",
     WORD(source.stage.background, prefetch_words), .group = GROUP_CACHE, .old = "stage"},
    {"block_size", "SIZE",
     "stage in pieces of this size, a power of two. auto: it depends on the size of the file",
     .group = GROUP_CACHE, .set = option_set_block, .show = show_block_size,
     .least = STAGED_BLOCK_LEAST, .most = STAGED_BLOCK_MOST, .is_size = true, .old = "block"},
    {"decoded_cache", "SIZE",
     "keep decoded images in the cache directory, up to this size. Later epochs and mounts then "
     "decode nothing",
     SIZE(keep_made), .group = GROUP_CACHE, .preset = "none are kept", .old = "keep_made"},
    {"passthrough", "HOW",
     "on: the kernel reads large local files directly (Linux 6.9, CAP_SYS_ADMIN). off: epochfs "
     "reads them. auto: on if most bytes are in large files",
     WORD(open, passthrough_words), .group = GROUP_CACHE, .old = "open"},
    /* Remote sources. */
    {"transfers", "N", "run up to N transfers at the same time", .group = GROUP_REMOTE,
     .common = true, .set = option_set_jobs, .show = show_transfers, .least = TRANSFERS_LEAST,
     .most = TRANSFERS_MOST, .old = "jobs"},
    {"bwlimit", "SIZE", "limit background transfers to this many bytes per second",
     SIZE(source.stage.rate), .group = GROUP_REMOTE, .common = true, .preset = "no limit",
     .old = "rate"},
    {"retry_timeout", "SECONDS",
     "let a read or a command wait this long while the remote fails, then report an error",
     NUMBER(source.stage.retry_limit_s, 1, 86400), .group = GROUP_REMOTE, .old = "patience"},
    {"timeout", "SECONDS",
     "close a connection that transfers nothing, or too little, for this long",
     NUMBER(source.timeout_s, 1, 3600), .group = GROUP_REMOTE},
    {"version", "WHAT",
     "both: identify a version of a remote file by its ETag and its time. etag: ignore the time if "
     "it has an ETag. time: ignore the ETag if it has a time",
     WORD(source.version, version_words), .group = GROUP_REMOTE},
    {"files", "NAMES",
     "name the files, with ; between them, of a web server that has neither SHA256SUMS nor an "
     "index page",
     TEXT(source.files, "names of files, separated by ;"), .group = GROUP_REMOTE},
    {"ca_cert", "FILE", "trust these certificates in addition to those of the system",
     PATH(source.ca, "a file of certificates"), .group = GROUP_REMOTE, .old = "ca|ca_bundle"},
    {"peers", "URL",
     "fetch through a ring of caches: the URL of its front on this machine, which `peers up` "
     "prints",
     .group = GROUP_REMOTE, .set = option_set_via, .old = "via"},
    {"peers_secret", "FILE", "read the secret of the ring from this file",
     PATH(source.via_secret, "a file"), .group = GROUP_REMOTE, .old = "via_secret"},
    /* S3. */
    {"endpoint_url", "URL", "send S3 requests to this endpoint", .group = GROUP_S3, .common = true,
     .set = option_set_endpoint,
     .preset =
         "the first of: $AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL, endpoint_url of the profile, AWS",
     .old = "endpoint"},
    {"region", "NAME", "use this S3 region", TEXT(source.region, "the name of a region"),
     .group = GROUP_S3,
     .preset = "the first of: $AWS_REGION, $AWS_DEFAULT_REGION, that of the profile, us-east-1"},
    {"profile", "NAME", "use this profile of ~/.aws/credentials and ~/.aws/config",
     TEXT(source.profile, "the name of a profile"), .group = GROUP_S3,
     .preset = "the first of: $AWS_PROFILE, $AWS_DEFAULT_PROFILE, default"},
    {"no_sign_request", NULL, "do not sign S3 requests", FLAG(source.anonymous), .group = GROUP_S3,
     .common = true, .old = "anonymous"},
    {"requester_pays", NULL,
     "pay for requests to a bucket where its requesters pay: they are charged to your account",
     FLAG(source.requester_pays), .group = GROUP_S3},
    {"virtual_host", NULL, "put the bucket into the host name instead of the path",
     FLAG(source.virtual_host), .group = GROUP_S3},
    /* How files are read. */
    {"format", "NAME", "read all files of SOURCE as this format", .group = GROUP_FORMATS,
     TEXT(format.format, "the name of a format, such as csv"), .show = show_formats},
    {"on_error", "HOW",
     "fail: an invalid row or image fails the read. skip: omit invalid rows of text. zero: show "
     "zeros for an invalid image, and false in image_ok",
     WORD(format.bad_rows, error_words), .group = GROUP_FORMATS, .old = "bad_rows"},
    {"image_size", "HxW",
     "also show images (JPEG, PNG, WebP) as arrays of height H and width W, scaled and then "
     "cropped at the center: image_size=224x224",
     .group = GROUP_FORMATS, .common = true, .set = option_set_picture, .least = 1,
     .most = PICTURE_SIDE_MAX, .old = "picture"},
    {"audio", "RATE",
     "also show audio (WAV, FLAC, mp3, Ogg, Opus, AIFF, AU, SPHERE) as float32 arrays of this many "
     "frames per second, or native; :mono makes one channel: audio=16000:mono",
     .group = GROUP_FORMATS, .set = option_set_audio, .least = AUDIO_RATE_MIN,
     .most = AUDIO_RATE_MAX},
    {"augment", "NAME=WORDS",
     "let plans make training images: augment=NAME in a plan applies these words, which are joined "
     "by +: augment=t=rrc+flip. It may be repeated",
     .group = GROUP_FORMATS, .set = option_set_augment},
    {"normalize", "HOW",
     "also show images as image_norm, (x / 255 - mean) / std as float32: imagenet, half, clip, "
     "MEAN/STD or M/M/M/S/S/S; with :f2 as float16",
     .group = GROUP_FORMATS, .set = option_set_normalize},
    {"transpose", NULL, "exchange the rows and columns of images, which EMNIST stores that way",
     FLAG(format.transpose), .group = GROUP_FORMATS},
    {"label", "FIELD",
     "use this field as the label: balanced, classes=, label1h and the counts of epochfs info use "
     "it. CSV: a column. DATASET:FIELD;...: of that dataset. Example: label=cls",
     TEXT(format.label, "the name of a field that epochfs info lists"), .group = GROUP_FORMATS,
     .preset = "label"},
    {"layout", "FILE",
     "take the samples from this recipe, as from an epochfs.json in SOURCE. epochfs info --layout "
     "prints one to begin with",
     PATH(format.layout, "a file"), .group = GROUP_FORMATS},
    {"one_hot", "N", "set the width of one-hot labels", NUMBER(format.classes, 1, 65536),
     .group = GROUP_FORMATS, .preset = "the largest label + 1", .old = "classes"},
    {"pair", "WHETHER",
     "auto: pair the arrays of one file or directory by their names and lengths. off: make each "
     "array a dataset",
     WORD(format.pair_off, pair_words), .group = GROUP_FORMATS},
    {"index_base", "BASE",
     "say where feature indexes in libsvm text begin. asis: they are not changed. 1: they begin at "
     "1. auto: at 1 if no index is 0",
     WORD(format.index_base, base_words), .group = GROUP_FORMATS},
    {"label_column", "COLUMN", "use this CSV column as the label: a number from 0, or a name",
     TEXT(format.label_column, "a number from 0, or a name of the first line"),
     .group = GROUP_FORMATS},
    {"weight_column", "COLUMN", "use this CSV column as the weight: a number from 0, or a name",
     TEXT(format.weight_column, "a number from 0, or a name of the first line"),
     .group = GROUP_FORMATS},
    {"csv_delimiter", "CHAR",
     "separate CSV cells by this character, or by comma, tab, semicolon or space",
     .group = GROUP_FORMATS, .set = option_set_delimiter,
     .preset = "the first comma, tab or semicolon of line 1, or blanks", .old = "delimiter"},
    {"csv_header", "WHETHER",
     "yes: line 1 of CSV names the columns. no: it is a row. auto: its content decides",
     WORD(format.header, header_words), .group = GROUP_FORMATS, .old = "header"},
    {"csv_dtype", "TYPE", "show CSV numbers as float32 or float64",
     WORD(format.doubles, dtype_words), .group = GROUP_FORMATS, .old = "dtype"},
    {"csv_comment", "CHAR", "ignore CSV lines that begin with this character",
     .group = GROUP_FORMATS, .set = option_set_comment, .old = "comment"},
    {"seq_len", "N",
     "show token streams as windows of N + 1 tokens. Without it, a sample is a document",
     NUMBER(format.seq, 1, UINT64_C(1) << 31), .group = GROUP_FORMATS, .common = true,
     .old = "seq"},
    {"stride", "N", "begin a window N tokens after the previous one",
     NUMBER(format.stride, 1, UINT64_C(1) << 31), .group = GROUP_FORMATS,
     .preset = "that of seq_len="},
    {"across_docs", "WHETHER", "yes: windows cross document ends. no: each is inside one document",
     WORD(format.split_docs, across_words), .group = GROUP_FORMATS, .old = "docs"},
    {"pack", "N",
     "with seq_len=: pack the ends of documents into windows by best fit, N documents at a time",
     NUMBER(format.pack, 1, 65536), .group = GROUP_FORMATS, .preset = "windows are not packed"},
    {"pad", "TOKEN", "fill packed windows with this token", NUMBER(format.pad, 0, UINT32_MAX),
     .group = GROUP_FORMATS, .preset = "0"},
    {"megatron_unit", "WHAT",
     "document: read the documents of Megatron-LM files. sequence: read each sequence as a "
     "document",
     WORD(format.sequences, unit_words), .group = GROUP_FORMATS, .old = "unit"},
    {"token_dtype", "TYPE",
     "read *.bin files without a header as tokens of type uint8, uint16, uint32, int32 or int64. "
     "With raw: before the type, read all *.bin files this way",
     .group = GROUP_FORMATS, .set = option_set_tokens, .old = "tokens"},
    {"kaldi", "FLAGS",
     "set rspecifier flags for Kaldi tables. p skips what cannot be read. s reports unsorted keys. "
     "o and cs count reads that break their promise",
     .group = GROUP_FORMATS, .set = option_set_kaldi},
    {"kaldi_type", "TYPE",
     "give the type of Kaldi objects that do not state it, such as int, float or posterior; for "
     "single tables: FILE:TYPE;FILE:TYPE",
     .group = GROUP_FORMATS, .set = option_set_kaldi_type},
    {"join", "TABLES",
     "make these Kaldi tables fields of the dataset `all`, by utterance, speaker or "
     "recording. + joins the names of files or sets: join=trans+ali+ivector",
     TEXT(format.kaldi_join, "names of tables, joined by +"), .group = GROUP_FORMATS},
    /* What may be read and run. */
    {"allow_outside", NULL, "follow links and scp entries that lead out of SOURCE",
     .group = GROUP_SECURITY, .set = option_set_allow_outside},
    {"allow_commands", NULL, "run the commands (`cmd |`) that scp files name", FLAG(allow_commands),
     .group = GROUP_SECURITY},
    {"command_timeout", "SECONDS", "end such a command after this time",
     NUMBER(command_limit, 1, 86400), .group = GROUP_SECURITY},
    {"log_level", "LEVEL", "log errors, also warnings, also information, or also debug messages",
     WORD(log_level, levels), .group = GROUP_OTHER, .old = "log"},
};
const unsigned n_options_ours = ARRAY_LEN(options_ours);

/* Options that libfuse or the kernel take: passed on. A trailing '=' stands for a value. */
const char *const options_passed_on[] = {
    "allow_other", "allow_root",  "auto_unmount", "debug",  "fsname=", "nosuid",
    "suid",        "nodev",       "dev",          "noexec", "exec",    "noatime",
    "atime",       "nodiratime",  "sync",         "async",  "dirsync", "context=",
    "fscontext=",  "defcontext=", "rootcontext=",
};

/* Options without effect: fstab has them for mount(8) and systemd, or they hold anyway. */
const char *const options_ignored[] = {
    "ro",          "rw",         "defaults", "auto",
    "noauto",      "user",       "nouser",   "users",
    "owner",       "group",      "_netdev",  "nofail",
    "relatime",    "norelatime", "lazytime", "default_permissions",
    "strictatime", "silent",     "loud",     "comment=",
};

const unsigned n_options_passed_on = ARRAY_LEN(options_passed_on);
const unsigned n_options_ignored = ARRAY_LEN(options_ignored);

const struct option *option_find(const char *name, size_t len)
{
    for (unsigned i = 0; i < n_options_ours; i++)
        if (value_names(options_ours[i].name, name, len) ||
            (options_ours[i].old && value_names(options_ours[i].old, name, len)))
            return &options_ours[i];
    return NULL;
}

/* Store a number in the member that the option sets. */
static void store(struct options *o, const struct option *option, uint64_t v)
{
    void *member = (char *)o + option->at;

    if (option->size == sizeof(bool))
        *(bool *)member = v;
    else if (option->size == sizeof(unsigned)) /* or an enum */
        *(unsigned *)member = (unsigned)v;
    else
        *(uint64_t *)member = v;
}

int option_set(struct options *o, const struct option *option, const char *name, const char *value,
               struct diag *d)
{
    const char **text = (const char **)(void *)((char *)o + option->at);
    uint64_t v = 1;
    unsigned word = 0;
    int r = 0;

    switch (option->type) {
    case OPTION_FLAG:
        break;
    case OPTION_NUMBER:
        r = value_count(name, value, option->least, option->most, &v, d);
        break;
    case OPTION_SIZE:
        r = value_size(name, value, &v, d);
        break;
    case OPTION_WORD:
        r = value_word(name, value, option->word, option->n_words, &word, d);
        v = word;
        break;
    case OPTION_TEXT:
        return value_text(name, value, option->what, text, d);
    case OPTION_PATH:
        return value_path(name, value, option->what, text, d);
    case OPTION_OTHER:
        return option->set(o, name, value, d);
    }
    if (r == 0)
        store(o, option, v);
    return r;
}
