/* The table of our mount options: name, form of the value, help, and the function that sets it. */
#include "fs/options/table.h"

#include <stddef.h>
#include <string.h>

#include "base/values.h"
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
static const char *const version_words[] = {"etag", "time"};
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

const struct option options_ours[] = {
    {"plan", "PLAN", "list this plan; its parameters are joined by +, as in batch=128+seed=7",
     .set = option_set_plan},
    {"subset", "NAME=FILE", "samples for plans with only=NAME: FILE has a key or #number a line",
     .set = option_set_list, .old = "list"},
    {"epochs", "N", "list epochs 0 to N-1 of those plans (default 1)", NUMBER(epochs, 0, 65536)},
    {"mix", "NAME=SOURCES",
     "show a dataset NAME of several datasets, mixed in proportion to weights, as in "
     "m=web*7+books*3",
     .set = option_set_mix},
    {"readahead", "SIZE",
     "bytes of the next reads to prepare in the page cache; 0: none (default: 256M, or a 16th of "
     "the memory where that is less)",
     .set = option_set_ahead, .old = "ahead"},
    {"passthrough", "HOW",
     "auto (default); off: the kernel asks epochfs for all bytes, once; on: it reads large "
     "files of this machine itself (Linux 6.9, CAP_SYS_ADMIN)",
     WORD(open, passthrough_words), .old = "open"},
    {"cache_dir", "DIR",
     "folder for staged blocks, unpacked files and indexes (default: $EPOCHFS_CACHE, else "
     "$SLURM_TMPDIR or $TMPDIR, else ~/.cache/epochfs)",
     PATH(cache, "a folder"), .old = "cache"},
    {"cache_size", "SIZE",
     "bytes that the cache folder may take, or N% of its file system (default 80%). When it is "
     "full, unused data goes, the oldest first",
     .set = option_set_cache_size},
    {"evict", "WHEN",
     "never (default): blocks stay in the cache; after_use: until an epoch has used them; plan: a "
     "full cache drops the block that the plan needs latest; with peers= the default is plan",
     .set = set_keep, .word = keep_words, .n_words = ARRAY_LEN(keep_words), .old = "keep"},
    {"prefetch", "WHETHER",
     "on (default): fetch everything, in the background; off: only what is read",
     WORD(source.stage.background, prefetch_words), .old = "stage"},
    {"block_size", "SIZE",
     "smallest piece to stage, a power of two from 4K to 256K (default: auto, by the size of the "
     "file)",
     .set = option_set_block, .old = "block"},
    {"transfers", "N", "transfers at once (default 8, small ones up to 128)",
     .set = option_set_jobs, .least = TRANSFERS_LEAST, .most = TRANSFERS_MOST, .old = "jobs"},
    {"bwlimit", "SIZE", "bytes per second in the background (default: no limit)",
     SIZE(source.stage.rate), .old = "rate"},
    {"retry_timeout", "N",
     "seconds that a read or a command waits for a remote that fails (default 60)",
     NUMBER(source.stage.retry_limit_s, 1, 86400), .old = "patience"},
    {"timeout", "N",
     "seconds after which a connection that transfers nothing is closed (default 20)",
     NUMBER(source.timeout_s, 1, 3600)},
    {"version", "WHAT",
     "etag (default): a remote file is known by its ETag, else by size and time; time: never by "
     "its "
     "ETag",
     WORD(source.version_by_time, version_words)},
    {"files", "NAMES",
     "files of an http source, separated by ;, if it has neither SHA256SUMS nor an index page",
     TEXT(source.files, "names of files, separated by ;")},
    {"ca_cert", "FILE", "certificates to trust in addition to the system's",
     PATH(source.ca, "a file of certificates"), .old = "ca|ca_bundle"},
    {"endpoint_url", "URL", "endpoint of S3 (default: $AWS_ENDPOINT_URL_S3, else AWS)",
     .set = option_set_endpoint, .old = "endpoint"},
    {"region", "NAME", "region of S3 (default: $AWS_REGION, else the profile's, else us-east-1)",
     TEXT(source.region, "the name of a region")},
    {"profile", "NAME", "profile of the shared S3 files (default: $AWS_PROFILE)",
     TEXT(source.profile, "the name of a profile")},
    {"no_sign_request", NULL, "do not sign S3 requests", FLAG(source.anonymous),
     .old = "anonymous"},
    {"virtual_host", NULL, "the bucket is part of the host's name, not of the path",
     FLAG(source.virtual_host)},
    {"peers", "URL",
     "front of a ring of caches on this machine, through which the origin is asked (see peers)",
     .set = option_set_via, .old = "via"},
    {"peers_secret", "FILE", "the file of its secret", PATH(source.via_secret, "a file"),
     .old = "via_secret"},
    {"one_hot", "N", "width of one-hot labels (default: the largest label + 1)",
     NUMBER(format.classes, 1, 65536), .old = "classes"},
    {"transpose", NULL, "exchange rows and columns of images (EMNIST stores them so)",
     FLAG(format.transpose)},
    {"index_base", "BASE", "how feature indexes in libsvm text count: asis (default), 1 or auto",
     WORD(format.index_base, base_words)},
    {"format", "NAME",
     "format of all files of SOURCE, if it cannot be told from what they begin with",
     TEXT(format.format, "the name of a format, such as csv")},
    {"label_column", "COL", "column of CSV that is the label: a number from 0, or a name",
     TEXT(format.label_column, "a number from 0, or a name of the first line")},
    {"weight_column", "COL", "column of CSV that is the weight",
     TEXT(format.weight_column, "a number from 0, or a name of the first line")},
    {"csv_delimiter", "CHAR",
     "between the cells of CSV, if not the first of comma, tab or semicolon in line 1, or blanks",
     .set = option_set_delimiter, .old = "delimiter"},
    {"csv_header", "WHETHER",
     "auto (default); yes: line 1 of CSV has the names of its columns; no: it is a row",
     WORD(format.header, header_words), .old = "header"},
    {"csv_dtype", "TYPE", "type of the numbers of CSV: float32 (default), or float64",
     WORD(format.doubles, dtype_words), .old = "dtype"},
    {"csv_comment", "CHAR", "lines of CSV that begin with it are left out",
     .set = option_set_comment, .old = "comment"},
    {"seq_len", "N",
     "show token streams as windows of N + 1 tokens; without it a sample is a document",
     NUMBER(format.seq, 1, UINT64_C(1) << 31), .old = "seq"},
    {"stride", "N", "tokens from a window to the next, if not as many as seq_len= says",
     NUMBER(format.stride, 1, UINT64_C(1) << 31)},
    {"across_docs", "WHETHER",
     "yes (default): windows go across documents; no: they lie inside one",
     WORD(format.split_docs, across_words), .old = "docs"},
    {"megatron_unit", "WHAT",
     "document (default), or sequence: each sequence of a Megatron-LM file is a document of its "
     "own",
     WORD(format.sequences, unit_words), .old = "unit"},
    {"token_dtype", "TYPE",
     "type of tokens of *.bin files without a header: uint8, uint16, uint32, int32 or int64; with "
     "raw: in front, of all *.bin files",
     .set = option_set_tokens, .old = "tokens"},
    {"image_size", "PIXELS",
     "show pictures (JPEG, PNG, WebP) as arrays of that height and width, too, as 224x224: scaled, "
     "the middle cut out",
     .set = option_set_picture, .old = "picture"},
    {"decoded_cache", "SIZE",
     "keep decoded pictures in the cache folder, up to so many bytes in all: later epochs and "
     "mounts decode nothing",
     SIZE(keep_made), .old = "keep_made"},
    {"on_error", "HOW",
     "fail (default); skip: leave out rows of text that cannot be read; zero: pictures that "
     "cannot "
     "be decoded are zeros in batches, and image_ok says so",
     WORD(format.bad_rows, error_words), .old = "bad_rows"},
    {"pair", "WHAT",
     "auto (default): arrays of one file or folder are paired by their names and lengths; off: "
     "each "
     "is a dataset",
     WORD(format.pair_off, pair_words)},
    {"kaldi", "FLAGS",
     "flags of Kaldi tables, as in rspecifiers: p skips what cannot be read, s reports keys that "
     "are not sorted, o and cs count reads that break their promise",
     .set = option_set_kaldi},
    {"kaldi_type", "TYPE",
     "type of objects that do not state theirs: int, float, posterior, ...; of single tables: "
     "FILE:TYPE;FILE:TYPE",
     .set = option_set_kaldi_type},
    {"allow_outside", NULL, "read files outside of SOURCE that scp files name or links lead to",
     .set = option_set_allow_outside},
    {"allow_commands", NULL, "run commands (`cmd |`) that an scp file names", FLAG(allow_commands)},
    {"command_timeout", "N", "seconds that such a command may take (default 60)",
     NUMBER(command_limit, 1, 86400)},
    {"log_level", "LEVEL", "error, warning, info (default) or debug", WORD(log_level, levels),
     .old = "log"},
};
const unsigned n_options_ours = ARRAY_LEN(options_ours);

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
