/* The options whose values are more than a number, a word or a text. */
#include "fs/options/setters.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/values.h"
#include "cache/disk/staged_file.h"
#include "format/audio/audio.h"
#include "format/kaldi/object/object.h"
#include "format/picture/picture.h"
#include "format/registry.h"

int option_refuse_secret(const char *name, struct diag *d)
{
    return diag_set(
        d, -EINVAL,
        "option %s: credentials are not taken from options, because everybody can read those; they "
        "come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, the shared files "
        "(~/.aws/credentials, see profile=), or the endpoints of containers and instances",
        name);
}

int option_set_plan(struct options *o, const char *name, const char *value, struct diag *d)
{
    struct plan *grown = realloc(o->plan, (o->n_plans + 1) * sizeof(*grown));
    struct diag reason = DIAG_INIT;
    int r;

    if (!grown)
        return -ENOMEM;
    o->plan = grown;
    r = plan_parse(value, strlen(value), '+', &o->plan[o->n_plans], &reason);
    if (r < 0)
        return diag_set(d, r, "option %s=%s: %s (parameters are joined by +)", name, value,
                        reason.text);
    o->n_plans++;
    return 0;
}

int option_set_list(struct options *o, const char *name, const char *value, struct diag *d)
{
    size_t len = strcspn(value, "=");
    struct option_list *grown, *list;
    int r;

    if (!value[len] || !value[len + 1] || !plan_is_word(value, len))
        return diag_set(
            d, -EINVAL,
            "option %s=%s: expected NAME=FILE, a file of keys and a name of at most %d ASCII "
            "characters without spaces and , + / : ; & = and no . at its start",
            name, value, PLAN_WORD_SIZE - 1);
    for (size_t i = 0; i < o->n_lists; i++)
        if (!strncmp(o->list[i].name, value, len) && !o->list[i].name[len])
            return diag_set(d, -EINVAL, "option %s=%s: the name is given twice", name, value);
    grown = realloc(o->list, (o->n_lists + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    o->list = grown;
    list = &o->list[o->n_lists];
    *list = (struct option_list){0};
    memcpy(list->name, value, len);
    r = value_path(name, value + len + 1, "a file of keys", &list->file, d);
    o->n_lists += r == 0;
    return r;
}

int option_set_mix(struct options *o, const char *name, const char *value, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    int r = array_capacity(&o->mix, o->n_mixes, sizeof(*o->mix));

    if (r == 0)
        r = mix_spec_parse(value, &o->mix[o->n_mixes], &reason);
    if (r == 0)
        o->n_mixes++;
    return r == -EINVAL ? diag_set(d, r, "option %s=%.60s%s: %s", name, value,
                                   strlen(value) > 60 ? "..." : "", reason.text)
                        : r;
}

static int refuse_kaldi_type(const char *name, const char *value, struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = KALDI_UNKNOWN + 1; i < N_KALDI_TYPES; i++)
        text_add(&t, "%s%s",
                 i + 1 == N_KALDI_TYPES ? " or "
                 : i > 1                ? ", "
                                        : "",
                 kaldi_types[i].name);
    return diag_set(d, -EINVAL, "option %s=%s: expected %s; or FILE:TYPE;FILE:TYPE", name, value,
                    t.data ? t.data : "");
}

/* TYPE for all tables, or FILE:TYPE for one; several with ; between them. */
int option_set_kaldi_type(struct options *o, const char *name, const char *value, struct diag *d)
{
    AUTO_TEXT struct text tables = {0};
    AUTO_FREE char *list = NULL;
    unsigned all = KALDI_UNKNOWN;
    int r;

    for (const char *item = value;; item += strcspn(item, ";") + 1) {
        size_t len = strcspn(item, ";");
        const char *colon = memrchr(item, ':', len), *word = colon ? colon + 1 : item;
        enum kaldi_type type = kaldi_type_called(word, (size_t)(item + len - word));

        if (!type || colon == item || (!colon && all))
            return refuse_kaldi_type(name, value, d);
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
int option_set_kaldi(struct options *o, const char *name, const char *value, struct diag *d)
{
    AUTO_FREE char *words = strdup(value);
    char *next = words, *word;

    if (!words)
        return -ENOMEM;
    while ((word = strsep(&next, "+"))) {
        if (!option_is_kaldi_flag(word))
            return diag_set(d, -EINVAL,
                            "option %s=%s: expected o, p, s, cs, or one of them with n in front, "
                            "got '%s'",
                            name, value, word);
        option_set_kaldi_flag(o, word);
    }
    o->kaldi_may_go_on = true;
    return 0;
}

int option_set_picture(struct options *o, const char *name, const char *value, struct diag *d)
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
                    "option %s=%s: expected HEIGHTxWIDTH, such as 224x224, each 1 to %u", name,
                    value, PICTURE_SIDE_MAX);
}

int option_set_audio(struct options *o, const char *name, const char *value, struct diag *d)
{
    struct audio_spec spec;

    if (!audio_spec_parse(value, &spec))
        return diag_set(d, -EINVAL,
                        "option %s=%s: expected RATE[:mono[:medium]] or native[:mono], such as "
                        "16000:mono, and a rate of %u to %u",
                        name, value, AUDIO_RATE_MIN, AUDIO_RATE_MAX);
    if (audio_lacks())
        return diag_set(d, -EINVAL,
                        "option %s=%s: this build decodes no audio: it lacks a library. Install %s "
                        "and build epochfs again",
                        name, value, audio_lacks());
    o->format.audio = true;
    o->format.audio_rate = spec.rate;
    o->format.audio_mono = spec.mono;
    o->format.audio_medium = spec.medium;
    return 0;
}

int option_set_augment(struct options *o, const char *name, const char *value, struct diag *d)
{
    struct augment_options *augment = &o->augment;
    size_t len = strcspn(value, "=");
    struct diag reason = DIAG_INIT;
    struct named_recipe *recipe;
    int r;

    if (!value[len] || !plan_is_name(value, len))
        return diag_set(d, -EINVAL,
                        "option %s=%.60s: expected NAME=WORD[+WORD..], such as t=rrc+flip, a name "
                        "of at most %d letters, digits, _ and -",
                        name, value, PLAN_WORD_SIZE - 1);
    for (size_t i = 0; i < augment->n; i++)
        if (!strncmp(augment->recipe[i].name, value, len) && !augment->recipe[i].name[len])
            return diag_set(d, -EINVAL, "option %s=%.60s: the name is given twice", name, value);
    r = array_capacity(&augment->recipe, augment->n, sizeof(*augment->recipe));
    if (r < 0)
        return r;
    recipe = &augment->recipe[augment->n];
    *recipe = (struct named_recipe){0};
    memcpy(recipe->name, value, len);
    r = recipe_parse(value + len + 1, strlen(value + len + 1), &recipe->recipe, &reason);
    if (r < 0)
        return diag_set(d, r, "option %s=%s: %s", name, recipe->name, reason.text);
    augment->n++;
    return 0;
}

int option_set_normalize(struct options *o, const char *name, const char *value, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    int r = normalize_parse(value, &o->augment.normalize, &reason);

    return r < 0 ? diag_set(d, r, "option %s: %s", name, reason.text) : 0;
}

/* The type of tokens that no header tells: a type, perhaps with raw: in front. */
int option_set_tokens(struct options *o, const char *name, const char *value, struct diag *d)
{
    static const struct {
        const char *names; /* see value_names() */
        enum dtype dtype;
    } types[] = {{"uint8|u1", DTYPE_U1},
                 {"uint16|u2", DTYPE_U2},
                 {"uint32|u4", DTYPE_U4},
                 {"int32|i4", DTYPE_I4},
                 {"int64|i8", DTYPE_I8}};
    bool raw = !strncmp(value, "raw:", 4);
    const char *type = value + (raw ? 4 : 0);

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (value_names(types[i].names, type, strlen(type))) {
            o->format.tokens_given = true;
            o->format.tokens_raw = raw;
            o->format.tokens = types[i].dtype;
            return 0;
        }
    return diag_set(
        d, -EINVAL,
        "option %s=%s: expected uint8, uint16, uint32, int32 or int64, perhaps with raw: in "
        "front",
        name, value);
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

int option_set_delimiter(struct options *o, const char *name, const char *value, struct diag *d)
{
    return set_character(name, value, &o->format.delimiter, d);
}

/* In a line of fstab, comment= is a word for people and other programs; it was also the
 * name of this option. */
int option_set_comment(struct options *o, const char *name, const char *value, struct diag *d)
{
    bool is_ours = strlen(value) == 1 && ispunct((unsigned char)value[0]);

    if (!is_ours && !strcmp(name, "comment"))
        return 0;
    return set_character(name, value, &o->format.comment, d);
}

int option_set_allow_outside(struct options *o, const char *name, const char *value, struct diag *d)
{
    (void)name;
    (void)value;
    (void)d;
    o->allow_outside = o->source.allow_outside = true;
    return 0;
}

int option_set_ahead(struct options *o, const char *name, const char *value, struct diag *d)
{
    if (!strcmp(value, "0")) {
        o->ahead = 0;
        return 0;
    }
    return value_size(name, value, &o->ahead, d);
}

int option_set_cache_size(struct options *o, const char *name, const char *value, struct diag *d)
{
    struct stage_options *stage = &o->source.stage;
    size_t n = strspn(value, "0123456789");
    uint64_t percent = 0;

    o->source.limits_all = true;
    if (strcmp(value + n, "%") != 0) {
        int r = n && !value[n] && strspn(value, "0") == n
                    ? diag_set(d, -EINVAL,
                               "option %s=%s: expected a number of bytes of at least 1, such as "
                               "200G, or a share of the file system, such as 80%%",
                               name, value)
                    : value_size(name, value, &stage->limit, d);

        stage->limit_percent = r == 0 ? 0 : stage->limit_percent;
        return r;
    }
    if (number_parse(value, n, 100, &percent) != n || !percent)
        return diag_set(d, -EINVAL, "option %s=%s: expected 1%% to 100%%", name, value);
    stage->limit = 0;
    stage->limit_percent = (unsigned)percent;
    return 0;
}

int option_set_block(struct options *o, const char *name, const char *value, struct diag *d)
{
    uint64_t v = 0;
    bool is_auto = value && !strcmp(value, "auto");
    int r = is_auto ? 0 : value_size(name, value, &v, d);

    if (r == 0 && !is_auto && (v & (v - 1) || v < STAGED_BLOCK_LEAST || v > STAGED_BLOCK_MOST))
        return diag_set(d, -EINVAL,
                        "option %s=%s: expected a power of two from %uK to %uK, or auto", name,
                        value, STAGED_BLOCK_LEAST >> 10, STAGED_BLOCK_MOST >> 10);
    if (r == 0)
        o->source.stage.block = (uint32_t)v;
    return r;
}

int option_set_endpoint(struct options *o, const char *name, const char *value, struct diag *d)
{
    const char *host = strstr(value, "://");

    if (host && strchr(host, '@')) /* a password may have any characters, even '/' */
        return option_refuse_secret(name, d);
    if (!host ||
        (strncasecmp(value, "http://", 7) != 0 && strncasecmp(value, "https://", 8) != 0) ||
        !host[3] || host[3] == '/')
        return diag_set(d, -EINVAL, "option %s=%s: expected a URL, https://HOST[:PORT]", name,
                        value);
    return value_text(name, value, "a URL", &o->source.endpoint, d);
}

/* Everything that is sent there can be read on the way, secrets included: it must not leave the
 * machine. */
int option_set_via(struct options *o, const char *name, const char *value, struct diag *d)
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
                        "option %s: expected http://127.0.0.1:PORT, the front of peers on this "
                        "machine, as `peers up` prints it",
                        name);
    return value_text(name, value, "a URL", &o->source.via, d);
}

/* transfers= also limits small transfers. */
int option_set_jobs(struct options *o, const char *name, const char *value, struct diag *d)
{
    uint64_t v = 0;
    int r = value_count(name, value, TRANSFERS_LEAST, TRANSFERS_MOST, &v, d);

    if (r == 0) {
        o->source.stage.jobs = (unsigned)v;
        o->source.stage.small_jobs = 0;
    }
    return r;
}

void option_add_formats(struct text *t, const char *last)
{
    static const char *const none[] = {NULL};
    const char *before = NULL;
    size_t n = 0;

    for (unsigned f = 0; f < n_formats; f++) {
        const char *const *alias = formats[f]->kinds ? formats[f]->kinds : none;

        for (const char *word = format_opens_files(formats[f]) ? formats[f]->name : NULL; word;
             word = *alias++) {
            if (before)
                text_add(t, "%s%s", n++ ? ", " : "", before);
            before = word;
        }
    }
    if (before)
        text_add(t, "%s%s", n ? last : "", before);
}
