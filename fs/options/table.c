/* The table of our mount options: name, form of the value, help, and the function that sets it. */
#include "fs/options/table.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/values.h"
#include "cache/disk/staged_file.h"
#include "format/kaldi/object/object.h"
#include "format/picture/picture.h"

#define JOBS_LEAST 2
#define JOBS_MOST  64

int option_refuse_secret(const char *name, struct diag *d)
{
    return diag_set(
        d, -EINVAL,
        "option %s: credentials are not taken from options, because everybody can read those; they "
        "come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, the shared files "
        "(~/.aws/credentials, see profile=), or the endpoints of containers and instances",
        name);
}

static int set_plan(struct options *o, const char *value, struct diag *d)
{
    struct plan *grown = realloc(o->plan, (o->n_plans + 1) * sizeof(*grown));
    struct diag reason = DIAG_INIT;
    int r;

    if (!grown)
        return -ENOMEM;
    o->plan = grown;
    r = plan_parse(value, strlen(value), '+', &o->plan[o->n_plans], &reason);
    if (r < 0)
        return diag_set(d, r, "option plan=%s: %s (parameters are joined by +)", value,
                        reason.text);
    o->n_plans++;
    return 0;
}

static int set_list(struct options *o, const char *value, struct diag *d)
{
    size_t len = strcspn(value, "=");
    struct option_list *grown, *list;
    int r;

    if (!value[len] || !value[len + 1] || !plan_is_word(value, len))
        return diag_set(
            d, -EINVAL,
            "option list=%s: expected NAME=FILE, a file of keys and a name of at most %d ASCII "
            "characters without spaces and , + / : ; & = and no . at its start",
            value, PLAN_WORD_SIZE - 1);
    for (size_t i = 0; i < o->n_lists; i++)
        if (!strncmp(o->list[i].name, value, len) && !o->list[i].name[len])
            return diag_set(d, -EINVAL, "option list=%s: the name is given twice", value);
    grown = realloc(o->list, (o->n_lists + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    o->list = grown;
    list = &o->list[o->n_lists];
    *list = (struct option_list){0};
    memcpy(list->name, value, len);
    r = value_path("list", value + len + 1, "a file of keys", &list->file, d);
    o->n_lists += r == 0;
    return r;
}

static int set_mix(struct options *o, const char *value, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    int r = array_capacity(&o->mix, o->n_mixes, sizeof(*o->mix));

    if (r == 0)
        r = mix_spec_parse(value, &o->mix[o->n_mixes], &reason);
    if (r == 0)
        o->n_mixes++;
    return r == -EINVAL ? diag_set(d, r, "option mix=%.60s%s: %s", value,
                                   strlen(value) > 60 ? "..." : "", reason.text)
                        : r;
}

static int refuse_kaldi_type(const char *value, struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = KALDI_UNKNOWN + 1; i < N_KALDI_TYPES; i++)
        text_add(&t, "%s%s",
                 i + 1 == N_KALDI_TYPES ? " or "
                 : i > 1                ? ", "
                                        : "",
                 kaldi_types[i].name);
    return diag_set(d, -EINVAL, "option kaldi_type=%s: expected %s; or FILE:TYPE;FILE:TYPE", value,
                    t.data ? t.data : "");
}

/* TYPE for all tables, or FILE:TYPE for one; several with ; between them. */
static int set_kaldi_type(struct options *o, const char *value, struct diag *d)
{
    AUTO_TEXT struct text tables = {0};
    AUTO_FREE char *list = NULL;
    unsigned all = KALDI_UNKNOWN;
    int r;

    for (const char *item = value;; item += strcspn(item, ";") + 1) {
        size_t len = strcspn(item, ";");
        const char *colon = memrchr(item, ':', len), *name = colon ? colon + 1 : item;
        enum kaldi_type type = kaldi_type_called(name, (size_t)(item + len - name));

        if (!type || colon == item || (!colon && all))
            return refuse_kaldi_type(value, d);
        all = colon ? all : type;
        if (colon)
            text_add(&tables, "%s%.*s", tables.len ? ";" : "", (int)len, item);
        if (!item[len])
            break;
    }
    r = text_finish(&tables, &list, NULL);
    if (r < 0)
        return r;
    free((char *)o->format.kaldi_tables);
    o->format.kaldi_tables = *list ? TAKE_PTR(list) : NULL;
    o->format.kaldi_type = all;
    return 0;
}

/* Flags of Kaldi's rspecifiers that a mount takes; option_set_kaldi_flag() knows those with an
 * effect. */
static const char *const kaldi_flags[] = {"o",  "no",  "p",  "np", "s", "ns",
                                          "cs", "ncs", "bg", "b",  "t"};

bool option_is_kaldi_flag(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(kaldi_flags); i++)
        if (!strcmp(word, kaldi_flags[i]))
            return true;
    return false;
}

void option_set_kaldi_flag(struct options *o, const char *flag)
{
    bool on = flag[0] != 'n';
    const char *name = on ? flag : flag + 1;

    if (!strcmp(name, "o"))
        o->reads_once = on;
    else if (!strcmp(name, "p"))
        o->format.kaldi_permissive = on;
    else if (!strcmp(name, "s"))
        o->format.kaldi_sorted = on;
    else if (!strcmp(name, "cs"))
        o->reads_sorted = on;
}

/* Flags joined by + are split here; flags joined by commas arrive one by one, see parse_one(). */
static int set_kaldi(struct options *o, const char *value, struct diag *d)
{
    AUTO_FREE char *words = strdup(value);
    char *rest = words, *word;

    if (!words)
        return -ENOMEM;
    while ((word = strsep(&rest, "+"))) {
        if (!option_is_kaldi_flag(word))
            return diag_set(
                d, -EINVAL,
                "option kaldi=%s: expected o, p, s, cs, or one of them with n in front, "
                "got '%s'",
                value, word);
        option_set_kaldi_flag(o, word);
    }
    o->kaldi_may_go_on = true;
    return 0;
}

static int set_picture(struct options *o, const char *value, struct diag *d)
{
    size_t len = strlen(value), n;
    uint64_t height = 0, width = 0;

    n = number_parse(value, len, PICTURE_SIDE_MAX, &height);
    if (n && value[n] == 'x' &&
        number_parse(value + n + 1, len - n - 1, PICTURE_SIDE_MAX, &width) == len - n - 1 &&
        height && width) {
        o->format.picture_height = (unsigned)height;
        o->format.picture_width = (unsigned)width;
        return 0;
    }
    return diag_set(d, -EINVAL,
                    "option picture=%s: expected HEIGHTxWIDTH, as 224x224, each 1 to %u", value,
                    PICTURE_SIDE_MAX);
}

/* The type of tokens that no header tells: a type, perhaps with raw: in front. */
static int set_tokens(struct options *o, const char *value, struct diag *d)
{
    static const struct {
        const char *name;
        enum dtype dtype;
    } types[] = {
        {"u1", DTYPE_U1}, {"u2", DTYPE_U2}, {"u4", DTYPE_U4}, {"i4", DTYPE_I4}, {"i8", DTYPE_I8}};
    bool raw = !strncmp(value, "raw:", 4);
    const char *type = value + (raw ? 4 : 0);

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (!strcmp(type, types[i].name)) {
            o->format.tokens_given = true;
            o->format.tokens_raw = raw;
            o->format.tokens = types[i].dtype;
            return 0;
        }
    return diag_set(d, -EINVAL,
                    "option tokens=%s: expected u1, u2, u4, i4 or i8, perhaps with raw: in front",
                    value);
}

/* A character, or its name: commas part options. */
static int set_character(const char *name, const char *value, char *ret, struct diag *d)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"comma", ','}, {"tab", '\t'}, {"semicolon", ';'}, {"space", ' '}};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(value, names[i].name)) {
            *ret = names[i].c;
            return 0;
        }
    if (strlen(value) != 1 || strchr("0123456789+-.eE\"\r\n", value[0]))
        return diag_set(d, -EINVAL,
                        "option %s=%s: expected a character that is in no number, or comma, tab, "
                        "semicolon, space",
                        name, value);
    *ret = value[0];
    return 0;
}

static int set_delimiter(struct options *o, const char *value, struct diag *d)
{
    return set_character("delimiter", value, &o->format.delimiter, d);
}

/* In a line of fstab, comment= is a word for people and other programs. */
static int set_comment(struct options *o, const char *value, struct diag *d)
{
    if (strlen(value) != 1 || !ispunct((unsigned char)value[0]))
        return 0;
    return set_character("comment", value, &o->format.comment, d);
}

static int set_allow_outside(struct options *o, const char *value, struct diag *d)
{
    (void)value;
    (void)d;
    o->allow_outside = o->source.allow_outside = true;
    return 0;
}

static int set_ahead(struct options *o, const char *value, struct diag *d)
{
    if (!strcmp(value, "0")) {
        o->ahead = 0;
        return 0;
    }
    return value_size("ahead", value, &o->ahead, d);
}

static int set_cache_size(struct options *o, const char *value, struct diag *d)
{
    struct stage_options *stage = &o->source.stage;
    size_t n = strspn(value, "0123456789");
    uint64_t percent = 0;

    o->source.limits_all = true;
    if (strcmp(value + n, "%") != 0) {
        int r =
            n && !value[n] && strspn(value, "0") == n
                ? diag_set(
                      d, -EINVAL,
                      "option cache_size=%s: expected a number of bytes of at least 1, as 200G, or "
                      "a share of the file system, as 80%%",
                      value)
                : value_size("cache_size", value, &stage->limit, d);

        stage->limit_percent = r == 0 ? 0 : stage->limit_percent;
        return r;
    }
    if (number_parse(value, n, 100, &percent) != n || !percent)
        return diag_set(d, -EINVAL, "option cache_size=%s: expected 1%% to 100%%", value);
    stage->limit = 0;
    stage->limit_percent = (unsigned)percent;
    return 0;
}

static int set_block(struct options *o, const char *value, struct diag *d)
{
    uint64_t v = 0;
    bool is_auto = value && !strcmp(value, "auto");
    int r = is_auto ? 0 : value_size("block", value, &v, d);

    if (r == 0 && !is_auto && (v & (v - 1) || v < STAGED_BLOCK_LEAST || v > STAGED_BLOCK_MOST))
        return diag_set(d, -EINVAL,
                        "option block=%s: expected a power of two from %uK to %uK, or auto", value,
                        STAGED_BLOCK_LEAST >> 10, STAGED_BLOCK_MOST >> 10);
    if (r == 0)
        o->source.stage.block = (uint32_t)v;
    return r;
}

static int set_endpoint(struct options *o, const char *value, struct diag *d)
{
    const char *host = strstr(value, "://");

    if (host && strchr(host, '@')) /* a password may have any characters, even '/' */
        return option_refuse_secret("endpoint", d);
    if (!host ||
        (strncasecmp(value, "http://", 7) != 0 && strncasecmp(value, "https://", 8) != 0) ||
        !host[3] || host[3] == '/')
        return diag_set(d, -EINVAL, "option endpoint=%s: expected a URL, https://HOST[:PORT]",
                        value);
    return value_text("endpoint", value, "a URL", &o->source.endpoint, d);
}

/* Everything that is sent there can be read on the way, secrets, too: so it must not leave the
 * machine. */
static int set_via(struct options *o, const char *value, struct diag *d)
{
    const char *host = strncasecmp(value, "http://", 7) == 0 ? value + 7 : "", *port;
    size_t len = strcspn(host, ":/"), digits;

    if (!strncmp(host, "[::1]", 5))
        len = 5;
    port = host[len] == ':' ? host + len + 1 : "";
    digits = strspn(port, "0123456789");
    if (!digits || digits > 5 || strcmp(port + digits + (port[digits] == '/'), "") != 0 ||
        !((len == 9 && !strncasecmp(host, "localhost", 9)) || len == 5 ||
          (strspn(host, "0123456789.") == len && !strncmp(host, "127.", 4))))
        return diag_set(d, -EINVAL,
                        "option via: expected http://127.0.0.1:PORT, the front of peers on this "
                        "machine, as `peers up` prints it");
    return value_text("via", value, "a URL", &o->source.via, d);
}

static const char *const keep_words[] = {
    [STAGE_PIN] = "pin", [STAGE_ONCE] = "once", [STAGE_PLAN] = "plan"};

static int set_keep(struct options *o, const char *value, struct diag *d)
{
    unsigned word = 0;
    int r = value_word("keep", value, keep_words, ARRAY_LEN(keep_words), &word, d);

    if (r == 0) {
        o->source.stage.keep = word;
        o->keep_given = true;
    }
    return r;
}

/* jobs= limits small transfers, too. */
static int set_jobs(struct options *o, const char *value, struct diag *d)
{
    uint64_t v = 0;
    int r = value_count("jobs", value, JOBS_LEAST, JOBS_MOST, &v, d);

    if (r == 0) {
        o->source.stage.jobs = (unsigned)v;
        o->source.stage.small_jobs = 0;
    }
    return r;
}

/* The words of options, at the value that each stands for. */
static const char *const base_words[] = {
    [INDEX_AS_IS] = "asis", [INDEX_FROM_ONE] = "1", [INDEX_AUTO] = "auto"};
static const char *const header_words[] = {
    [CSV_HEADER_AUTO] = "auto", [CSV_HEADER_YES] = "yes", [CSV_HEADER_NO] = "no"};
static const char *const dtype_words[] = {"f4", "f8"};
static const char *const docs_words[] = {"keep", "split"};
static const char *const unit_words[] = {"doc", "seq"};
static const char *const pair_words[] = {"auto", "off"};
static const char *const bad_row_words[] = {
    [BAD_ROWS_ERROR] = "error", [BAD_ROWS_SKIP] = "skip", [BAD_ROWS_ZERO] = "zero"};
static const char *const open_words[] = {
    [OPEN_AUTO] = "auto", [OPEN_CACHED] = "cached", [OPEN_PASS] = "pass"};
static const char *const stage_words[] = {"off", "auto"};
static const char *const version_words[] = {"etag", "time"};
static const char *const levels[] = {"error", "warning", "info", "debug"};

#define AT(member)                                                                                 \
    .at = offsetof(struct options, member), .size = sizeof((struct options){0}.member)
#define FLAG(member)             .kind = OPTION_FLAG, AT(member)
#define NUMBER(member, from, to) .kind = OPTION_NUMBER, AT(member), .least = (from), .most = (to)
#define SIZE(member)             .kind = OPTION_SIZE, AT(member)
#define TEXT(member, what_it_is) .kind = OPTION_TEXT, AT(member), .what = (what_it_is)
#define PATH(member, what_it_is) .kind = OPTION_PATH, AT(member), .what = (what_it_is)
#define WORD(member, list)                                                                         \
    .kind = OPTION_WORD, AT(member), .word = (list), .n_words = ARRAY_LEN(list)

const struct option options_ours[] = {
    {"plan", "PLAN", "list this plan; its parameters are joined by +, as in batch=128+seed=7",
     .set = set_plan},
    {"list", "NAME=FILE", "samples for plans with only=NAME: FILE has a key or #number a line",
     .set = set_list},
    {"epochs", "N", "list epochs 0 to N-1 of those plans (default 1)", NUMBER(epochs, 0, 65536)},
    {"mix", "NAME=SOURCES",
     "show a dataset NAME of several datasets, mixed in proportion to weights, as in "
     "m=web*7+books*3",
     .set = set_mix},
    {"ahead", "SIZE",
     "bytes of the next reads to prepare in the page cache; 0: none (default: 256M, or a 16th of "
     "the memory where that is less)",
     .set = set_ahead},
    {"open", "HOW",
     "auto (default); cached: the kernel asks epochfs for all bytes, once; pass: it reads large "
     "files of this machine itself (Linux 6.9, CAP_SYS_ADMIN)",
     WORD(open, open_words)},
    {"cache", "DIR",
     "folder for staged blocks, unpacked files and indexes (default: $EPOCHFS_CACHE, else "
     "$SLURM_TMPDIR or $TMPDIR, else ~/.cache/epochfs)",
     PATH(cache, "a folder")},
    {"cache_size", "SIZE",
     "bytes that the cache folder may take, or N% of its file system (default 80%). When it is "
     "full, unused data goes, the oldest first",
     .set = set_cache_size},
    {"keep", "WHAT",
     "pin (default): blocks in the cache stay; once: until an epoch has used them; plan: a full "
     "cache drops the block that the plan needs latest; with via= the default is plan",
     .set = set_keep},
    {"stage", "WHEN", "auto (default): everything, in the background; off: only what is read",
     WORD(source.stage.background, stage_words)},
    {"block", "SIZE",
     "smallest piece to stage, a power of two from 4K to 256K (default: auto, by the size of the "
     "file)",
     .set = set_block},
    {"jobs", "N", "transfers at once (default 8, small ones up to 128)", .set = set_jobs,
     .least = JOBS_LEAST, .most = JOBS_MOST},
    {"rate", "SIZE", "bytes per second in the background (default: no limit)",
     SIZE(source.stage.rate)},
    {"patience", "N", "seconds that a read or a command waits for a remote that fails (default 60)",
     NUMBER(source.stage.retry_limit_s, 1, 86400)},
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
    {"ca", "FILE", "certificates to trust in addition to the system's",
     PATH(source.ca, "a file of certificates")},
    {"endpoint", "URL", "endpoint of S3 (default: $AWS_ENDPOINT_URL_S3, else AWS)",
     .set = set_endpoint},
    {"region", "NAME", "region of S3 (default: $AWS_REGION, else the profile's, else us-east-1)",
     TEXT(source.region, "the name of a region")},
    {"profile", "NAME", "profile of the shared S3 files (default: $AWS_PROFILE)",
     TEXT(source.profile, "the name of a profile")},
    {"anonymous", NULL, "do not sign S3 requests", FLAG(source.anonymous)},
    {"virtual_host", NULL, "the bucket is part of the host's name, not of the path",
     FLAG(source.virtual_host)},
    {"via", "URL",
     "front of a ring of caches on this machine, through which the origin is asked (see peers)",
     .set = set_via},
    {"via_secret", "FILE", "the file of its secret", PATH(source.via_secret, "a file")},
    {"classes", "N", "width of one-hot labels (default: the largest label + 1)",
     NUMBER(format.classes, 1, 65536)},
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
    {"delimiter", "CHAR",
     "between the cells of CSV, if not the first of comma, tab or semicolon in line 1, or blanks",
     .set = set_delimiter},
    {"header", "WHETHER",
     "auto (default); yes: line 1 of CSV has the names of its columns; no: it is a row",
     WORD(format.header, header_words)},
    {"dtype", "TYPE", "type of the numbers of CSV: f4 (default), or f8",
     WORD(format.doubles, dtype_words)},
    {"comment", "CHAR", "lines of CSV that begin with it are left out", .set = set_comment},
    {"seq", "N", "show token streams as windows of N + 1 tokens; without it a sample is a document",
     NUMBER(format.seq, 1, UINT64_C(1) << 31)},
    {"stride", "N", "tokens from a window to the next, if not as many as seq= says",
     NUMBER(format.stride, 1, UINT64_C(1) << 31)},
    {"docs", "WHAT", "keep (default): windows go across documents; split: they lie inside one",
     WORD(format.split_docs, docs_words)},
    {"unit", "WHAT",
     "doc (default), or seq: each sequence of a Megatron-LM file is a document of its own",
     WORD(format.sequences, unit_words)},
    {"tokens", "TYPE",
     "type of tokens of *.bin files without a header: u1, u2, u4, i4 or i8; with raw: in front, "
     "of all *.bin files",
     .set = set_tokens},
    {"picture", "PIXELS",
     "show pictures (JPEG, PNG, WebP) as arrays of that height and width, too, as 224x224: scaled, "
     "the middle cut out",
     .set = set_picture},
    {"keep_made", "SIZE",
     "keep decoded pictures in the cache folder, up to so many bytes in all: later epochs and "
     "mounts decode nothing",
     SIZE(keep_made)},
    {"bad_rows", "WHAT",
     "error (default); skip: leave out rows of text that cannot be read; zero: pictures that "
     "cannot "
     "be decoded are zeros in batches, and image_ok says so",
     WORD(format.bad_rows, bad_row_words)},
    {"pair", "WHAT",
     "auto (default): arrays of one file or folder are paired by their names and lengths; off: "
     "each "
     "is a dataset",
     WORD(format.pair_off, pair_words)},
    {"kaldi", "FLAGS",
     "flags of Kaldi tables, as in rspecifiers: p skips what cannot be read, s reports keys that "
     "are not sorted, o and cs count reads that break their promise",
     .set = set_kaldi},
    {"kaldi_type", "TYPE",
     "type of objects that do not state theirs: int, float, posterior, ...; of single tables: "
     "FILE:TYPE;FILE:TYPE",
     .set = set_kaldi_type},
    {"allow_outside", NULL, "read files outside of SOURCE that scp files name or links lead to",
     .set = set_allow_outside},
    {"allow_commands", NULL, "run commands (`cmd |`) that an scp file names", FLAG(allow_commands)},
    {"command_timeout", "N", "seconds that such a command may take (default 60)",
     NUMBER(command_limit, 1, 86400)},
    {"log", "LEVEL", "error, warning, info (default) or debug", WORD(log_level, levels)},
};
const unsigned n_options_ours = ARRAY_LEN(options_ours);

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

int option_set(struct options *o, const struct option *option, const char *value, struct diag *d)
{
    const char **text = (const char **)(void *)((char *)o + option->at);
    uint64_t v = 1;
    unsigned word = 0;
    int r = 0;

    switch (option->kind) {
    case OPTION_FLAG:
        break;
    case OPTION_NUMBER:
        r = value_count(option->name, value, option->least, option->most, &v, d);
        break;
    case OPTION_SIZE:
        r = value_size(option->name, value, &v, d);
        break;
    case OPTION_WORD:
        r = value_word(option->name, value, option->word, option->n_words, &word, d);
        v = word;
        break;
    case OPTION_TEXT:
        return value_text(option->name, value, option->what, text, d);
    case OPTION_PATH:
        return value_path(option->name, value, option->what, text, d);
    case OPTION_OTHER:
        return option->set(o, value, d);
    }
    if (r == 0)
        store(o, option, v);
    return r;
}
