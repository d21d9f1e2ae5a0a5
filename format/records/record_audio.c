/* Lengths are found by headers, of all records before the first array is shown, and kept as an
 * index: so files have their sizes without anything being decoded. They do not depend on what is
 * wanted of audio=. */
#include "format/records/record_audio.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/durations.h"
#include "format/index/prepared.h"
#include "format/index/reasons.h"
#include "format/records/record_items.h"

#define VERSION  "audio lengths 3"
#define UNIT     (1u << 14) /* bytes of a unit that is kept */
#define AT_ONCE  64         /* records whose headers are read together, */
#define AHEAD    512        /* and asked for before, of each so many bytes at its */
#define HEAD     4096       /* beginning, */
#define TAIL     16384      /* and at its end */
#define LIKELY_S 10

enum { FRAMES, RATE, CHANNELS, STATE, FIRST, CHANNEL, COLUMNS }; /* FIRST, CHANNEL: of a part */
enum { GOOD, CUT, NO_FILE, BAD }; /* states; from BAD on it cannot be read */

struct record_audio {
    struct record_made made; /* first */
    struct durations durations;
    struct dataset *ds;
    const struct record_audio_parts *parts; /* NULL: there are none */
    struct audio_spec spec;
    bool is_shown; /* with audio= */
    struct record_made_array rate;
    struct prepared lengths;
    uint64_t row, asked; /* while they are found */
    struct text reasons; /* why files cannot be read */
    uint64_t *unit;      /* [rows + 1] of kept arrays; NULL: none are kept */
};

static const struct record_audio *audio_of(const struct record_made *m)
{
    return (const struct record_audio *)m;
}

/* ---- lengths ---- */

/* The file of a record, */
struct audio_head {
    const struct record_audio *audio;
    const struct record_content *source;
    uint64_t record;
    struct read_context *rc;
    const uint8_t *bytes; /* NULL: they are read */
    char where[RECORD_WHERE];
    /* and what is found of it: */
    struct audio_info info; /* of the file, */
    struct audio_part part;
    int r;
    struct diag reason;
};

static int record_audio_read(void *ctx, uint64_t off, void *dst, size_t len, struct diag *d)
{
    const struct audio_head *h = ctx;

    if (!len)
        return 0;
    if (!h->bytes)
        return h->source->ops->read(h->rc, h->audio->ds, h->source, h->record, off, len, dst, d);
    memcpy(dst, h->bytes + off, len);
    return 0;
}

/* What the file of a record has; ctx: its head. */
static int measure_file(void *ctx, void **ret, size_t *ret_size)
{
    struct audio_head *h = ctx;
    struct audio_file file = {.where = h->where, .read = record_audio_read, .ctx = h};
    uint64_t dim[RECORD_AXES] = {0};
    AUTO_FREE struct audio_info *info = calloc(1, sizeof(*info));
    int r =
        info ? h->source->ops->dims(h->audio->ds, h->source, h->record, dim, &h->reason) : -ENOMEM;

    file.size = dim[0];
    if (r == 0)
        r = file.size > AUDIO_MAX_BYTES ? -EFBIG : audio_measure(&file, info, &h->reason);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(info);
    *ret_size = sizeof(*info);
    return 0;
}

/* A file of which many records are parts is looked at once. */
static void measure_one(void *ctx, unsigned i)
{
    struct audio_head *h = (struct audio_head *)ctx + i;
    const struct record_audio *audio = h->audio;
    struct memo_key key = {{(uintptr_t)audio, h->record, 0, (uintptr_t)measure_file}};
    AUTO_MEMO struct memo_thing *thing = NULL;

    h->r = -ENODATA;
    if (!h->source)
        return;
    record_made_name(audio->ds, h->source, h->record, h->where);
    key.word[2] =
        audio->parts && audio->parts->is_part(audio->ds, h->source, h->record, &key.word[1]);
    h->r = memo_get(audio->made.memo, &key, &(struct memo_maker){measure_file, h, NULL}, &thing);
    if (h->r < 0)
        return;
    h->info = *(const struct audio_info *)memo_bytes(thing);
    h->part.frames = h->info.frames;
    if (key.word[2])
        h->r = audio->parts->find(audio->ds, h->source, h->record, &h->info, &h->part, &h->reason);
    h->info.channels = h->part.channel ? 1 : h->info.channels;
    if (h->r == 0)
        h->r = audio_check(h->where, h->part.frames, h->info.channels, &h->reason);
}

/* Ask for the ends of files before they are read, of a remote. */
static void record_audio_ask(struct record_audio *audio)
{
    const struct dataset *ds = audio->ds;

    for (audio->asked = max_u64(audio->asked, audio->row);
         audio->asked < min_u64(audio->row + AHEAD, ds->samples); audio->asked++) {
        const struct record_content *source = record_made_source(&audio->made, ds, audio->asked);
        struct extent e;

        if (!source || !source->ops->extent || !source->ops->extent(ds, source, audio->asked, &e) ||
            !e.blob->ops->fetch)
            continue;
        if (e.len <= HEAD + TAIL) {
            blob_fetch(e.blob, e.off, e.len, NULL);
        } else {
            blob_fetch(e.blob, e.off, HEAD, NULL);
            blob_fetch(e.blob, e.off + e.len - TAIL, TAIL, NULL);
        }
    }
}

/* Add the row of a record. */
static int add_length(struct record_audio *audio, const struct audio_head *h, struct diag *d)
{
    uint64_t number[COLUMNS] = {[STATE] = NO_FILE};

    if (h->r < 0 && h->source) {
        if (blob_says_nothing(h->r) || h->r == -ENOMEM)
            return diag_set(d, h->r, "%s", diag_text(&h->reason, h->r));
        number[STATE] = BAD;
        reasons_add(&audio->reasons, h->record, diag_text(&h->reason, h->r));
        audio->lengths.may_differ = audio->lengths.may_differ ||
                                    (h->r != -EBADMSG && h->r != -EFBIG && h->r != -EOPNOTSUPP);
    } else if (h->r == 0) {
        number[FRAMES] = h->part.frames;
        number[RATE] = h->info.rate;
        number[CHANNELS] = h->info.channels;
        number[FIRST] = h->part.first;
        number[CHANNEL] = h->part.channel;
        number[STATE] = h->info.is_cut ? CUT : GOOD;
    }
    return index_add(audio->lengths.builder, NULL, 0, number);
}

static int lengths_identity(void *impl, struct text *t)
{
    const struct record_audio *audio = impl;

    for (unsigned i = 0; i < audio->made.n; i++)
        text_add(t, " %u", audio->made.source[i]->column);
    text_add(t, " 2 ");    /* 1: WAV data of size 0 was empty */
    audio_add_versions(t); /* decoders may count other frames; a build without them none */
    return audio->made.identity(audio->ds, t);
}

static int lengths_load(void *impl, const struct index *index)
{
    const struct record_audio *audio = impl;

    if (index->rows != audio->ds->samples)
        return -EBADMSG;
    for (uint64_t row = 0; row < index->rows; row++) {
        uint64_t number[COLUMNS];

        index_row(index, row, number);
        if (number[STATE] > BAD || number[CHANNELS] > AUDIO_CHANNELS_MAX ||
            number[RATE] > AUDIO_RATE_MAX || number[FRAMES] > AUDIO_NUMBERS_MAX ||
            number[FIRST] > INT64_MAX || number[CHANNEL] > AUDIO_CHANNELS_MAX ||
            (number[STATE] < NO_FILE && (!number[CHANNELS] || !number[RATE])))
            return -EBADMSG;
    }
    return 0;
}

static int lengths_step(void *impl, struct diag *d)
{
    struct record_audio *audio = impl;
    unsigned n = (unsigned)min_u64(AT_ONCE, audio->ds->samples - audio->row);
    AUTO_FREE struct audio_head *head = calloc(AT_ONCE, sizeof(*head));
    int r = 0;

    if (!head)
        return -ENOMEM;
    record_audio_ask(audio);
    for (unsigned i = 0; i < n; i++)
        head[i] = (struct audio_head){
            .audio = audio,
            .source = record_made_source(&audio->made, audio->ds, audio->row + i),
            .record = audio->row + i};
    pool_run(audio->made.pool, n, measure_one, head);
    for (unsigned i = 0; i < n && r == 0; i++) {
        r = add_length(audio, &head[i], d);
        audio->row += r == 0;
    }
    return r < 0 ? r : audio->row == audio->ds->samples;
}

static void lengths_keep(void *impl, struct kept *k)
{
    kept_growing(k, &((struct record_audio *)impl)->reasons);
}

static const struct prepared_ops audio_lengths_ops = {
    .version = VERSION,
    .identity = lengths_identity,
    .keep = lengths_keep,
    .load = lengths_load,
    .step = lengths_step,
};

static struct record_audio *audio_of_durations(const struct durations *durations)
{
    return (struct record_audio *)((uintptr_t)durations - offsetof(struct record_audio, durations));
}

static int durations_step(struct durations *durations, struct diag *d)
{
    return prepared_step(&audio_of_durations(durations)->lengths, d);
}

static bool durations_get(const struct durations *durations, uint64_t sample, uint64_t *ret_frames,
                          uint32_t *ret_rate)
{
    const struct record_audio *audio = audio_of_durations(durations);
    uint64_t number[COLUMNS];

    index_row(&audio->lengths.index, sample, number);
    *ret_frames = number[FRAMES];
    *ret_rate = (uint32_t)number[RATE];
    return number[STATE] < NO_FILE || (number[STATE] == BAD && audio->made.fills);
}

/* ---- the arrays ---- */

static int audio_dims(const struct record_made *m, const struct dataset *ds, uint64_t record,
                      uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    const struct record_audio *audio = audio_of(m);
    uint64_t number[COLUMNS], made;
    char where[RECORD_WHERE];

    index_row(&audio->lengths.index, record, number);
    if (number[STATE] == BAD && reasons_find(&audio->reasons, record, d))
        return -EBADMSG;
    made = audio_made_frames(&audio->spec, number[FRAMES], (uint32_t)number[RATE]);
    if (number[STATE] >= NO_FILE ||
        made > AUDIO_NUMBERS_MAX / (audio->spec.mono ? 1 : number[CHANNELS])) {
        record_made_where(ds, &m->strict.content, record, where);
        return diag_set(d, -EBADMSG,
                        "%s: expected audio of at most %llu numbers, got another file, or more",
                        where, (unsigned long long)AUDIO_NUMBERS_MAX);
    }
    if (!audio->spec.mono)
        *ret_dim++ = number[CHANNELS];
    *ret_dim = made;
    return 0;
}

/* The file of a part has more bytes than are needed. */
static bool audio_reads(const struct record_made *m, uint64_t record)
{
    const struct record_audio *audio = audio_of(m);
    const struct record_content *source = record_made_source(m, audio->ds, record);

    return audio->parts && source &&
           audio->parts->is_part(audio->ds, source, record, &(uint64_t){0});
}

static int audio_make_array(const struct record_made *m, uint64_t record,
                            const struct record_made_file *file, uint8_t *ret, unsigned *ret_what,
                            struct diag *d)
{
    const struct record_audio *audio = audio_of(m);
    struct audio_head from = {.audio = audio, .record = record, .rc = file->rc};
    struct audio_file source = {file->where, file->len, record_audio_read, &from};
    struct audio_info info;
    struct audio_part part;
    uint64_t number[COLUMNS];

    *ret_what = 0;
    from.source = record_made_source(m, audio->ds, record);
    from.bytes = file->bytes;
    index_row(&audio->lengths.index, record, number);
    info = (struct audio_info){number[FRAMES], (uint32_t)number[RATE], (uint32_t)number[CHANNELS],
                               number[STATE] == CUT};
    part = (struct audio_part){number[FIRST], number[FRAMES], (uint32_t)number[CHANNEL]};
    return audio_make(&source, &audio->spec, &info, &part, (float *)(void *)ret, d);
}

static void audio_name(const struct record_made *m, struct text *t)
{
    const struct record_audio *audio = audio_of(m);
    size_t bytes = (audio->ds->samples + 1) * sizeof(*audio->unit);

    text_add(t, "%u %d %d ", audio->spec.rate, audio->spec.mono, audio->spec.medium);
    audio_add_versions(t);
    /* A file that fails for a while has no units, and those of all others are elsewhere. */
    text_add(t, " units=%llx", (unsigned long long)key_hash(audio->unit, bytes));
}

static uint64_t audio_unit(const struct record_made *m, uint64_t record)
{
    return audio_of(m)->unit[record];
}

static const struct record_maker record_audio_maker = {
    .one = "audio",
    .many = "files of audio",
    .most_bytes = AUDIO_MAX_BYTES,
    .dims = audio_dims,
    .reads = audio_reads,
    .make = audio_make_array,
    .name = audio_name,
    .unit = audio_unit,
};

/* ---- the rate ---- */

static bool audio_has_rate(const struct dataset *ds, const struct record_content *c,
                           uint64_t record)
{
    uint64_t frames;
    uint32_t rate;

    return (ds->durations->get(ds->durations, record, &frames, &rate) && rate) || !c->ndim;
}

static int audio_rate_dims(const struct dataset *ds, const struct record_content *c,
                           uint64_t record, uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    (void)d;
    ret_dim[0] = audio_has_rate(ds, c, record);
    return 0;
}

static int audio_rate_read(struct read_context *rc, const struct dataset *ds,
                           const struct record_content *c, uint64_t record, uint64_t off,
                           size_t len, uint8_t *dst, struct diag *d)
{
    uint8_t bytes[4];
    uint64_t frames;
    uint32_t rate;

    (void)rc;
    (void)c;
    (void)d;
    ds->durations->get(ds->durations, record, &frames, &rate);
    store_le32(bytes, rate);
    memcpy(dst, bytes + off, len);
    return 0;
}

static const struct record_ops rate_ops = {
    .dims = audio_rate_dims,
    .read = audio_rate_read,
    .where = record_made_where,
    .has = audio_has_rate,
};

/* ---- a dataset ---- */

int record_audio_new(struct dataset *ds, const struct format_setup *setup,
                     const struct record_content *const *source, unsigned n,
                     const struct record_audio_parts *parts,
                     int (*identity)(const struct dataset *ds, struct text *t),
                     struct record_audio **ret)
{
    struct record_audio *audio = calloc(1, sizeof(*audio));

    if (!audio)
        return -ENOMEM;
    record_made_init(&audio->made, setup);
    audio->made.maker = &record_audio_maker;
    audio->made.unit_bytes = UNIT;
    audio->made.identity = identity;
    audio->made.n = n;
    memcpy(audio->made.source, source, n * sizeof(*source));
    audio->ds = ds;
    audio->parts = parts;
    audio->durations = (struct durations){durations_step, durations_get};
    audio->lengths = (struct prepared){
        .ops = &audio_lengths_ops,
        .impl = audio,
        .keep = setup->keep,
        .type = "tables",
        .name = blob_name(ds->blob[0]),
        .source = blob_source(ds->blob[0]),
        .shape = {.columns = COLUMNS},
    };
    ds->durations = &audio->durations;
    *ret = audio;
    return 0;
}

void record_audio_free(struct record_audio *audio)
{
    if (!audio)
        return;
    prepared_forget(&audio->lengths);
    prepared_release(&audio->lengths);
    record_made_release(&audio->made);
    free(audio->unit);
    free(audio);
}

void record_audio_add(struct dataset *ds, struct record_audio *audio,
                      const struct format_setup *setup, const char *name, bool has_holes)
{
    const struct format_options *o = &setup->options;
    bool mono = o->audio_mono;
    const struct record_content like = {.dtype = DTYPE_F4,
                                        .ndim = mono ? 1 : 2,
                                        .pads_axes = !mono,
                                        .dim = {DIM_VARIES, mono ? 0 : DIM_VARIES}};
    char rate[FIELD_NAME_SIZE];

    audio->is_shown = true;
    audio->spec = (struct audio_spec){o->audio_rate, mono, o->audio_medium};
    audio->made.counts = setup->counts;
    audio->made.store = setup->made;
    audio->made.keeps = setup->made;
    audio->made.fills = o->bad_rows != BAD_ROWS_ERROR;
    record_made_add(ds, &audio->made, &like,
                    (uint64_t)LIKELY_S * 4 * max_u64(audio->spec.rate, 16000), name);
    if (audio->spec.rate)
        return;
    snprintf(rate, sizeof(rate), "%s_rate", name);
    record_made_content(&audio->made, &audio->rate,
                        &(const struct record_content){.ops = &rate_ops,
                                                       .dtype = DTYPE_I4,
                                                       .is_number = true,
                                                       .ndim = has_holes,
                                                       .dim = {DIM_VARIES}},
                        4);
    audio->rate.content.make_at_once = 0;
    if (has_holes)
        records_add_arrays(ds, &audio->rate.content, rate, 0);
    else
        records_add_item(ds, &audio->rate.content, rate, IN_ARRAYS);
}

/* Where the units of kept arrays begin. */
static int place_units(struct record_audio *audio)
{
    const struct dataset *ds = audio->ds;

    audio->unit = malloc((ds->samples + 1) * sizeof(*audio->unit));
    if (!audio->unit)
        return -ENOMEM;
    audio->unit[0] = 0;
    for (uint64_t i = 0; i < ds->samples; i++) {
        uint64_t dim[RECORD_AXES] = {0};
        int r = audio_dims(&audio->made, ds, i, dim, NULL);

        audio->unit[i + 1] =
            audio->unit[i] +
            (r == 0 ? ceil_div(record_bytes(&audio->made.strict.content, dim), UNIT) : 0);
    }
    return 0;
}

/* How many records are in a state, and the first. */
static void audio_note(const struct record_audio *audio, uint64_t n, uint64_t first,
                       const char *what)
{
    char where[RECORD_WHERE];

    if (!n)
        return;
    record_made_where(audio->ds, &audio->made.strict.content, first, where);
    notes_add(&audio->ds->notes, "%llu %s: %s%s", (unsigned long long)n, what, where,
              n > 1 ? " is the first" : "");
}

static void audio_notes(const struct record_audio *audio)
{
    const struct index *index = &audio->lengths.index;
    uint64_t n[BAD + 1] = {0}, first[BAD + 1] = {0}, channels = 0, number[COLUMNS];
    bool differ = false;

    for (uint64_t row = 0; row < index->rows; row++) {
        index_row(index, row, number);
        if (!n[number[STATE]]++)
            first[number[STATE]] = row;
        if (number[STATE] >= NO_FILE)
            continue;
        differ = differ || (channels && channels != number[CHANNELS]);
        channels = number[CHANNELS];
    }
    audio_note(audio, n[CUT], first[CUT],
               "of the files of audio are cut short, and have the frames that can be decoded");
    audio_note(audio, n[BAD], first[BAD], "of the files of audio cannot be read");
    if (differ && !audio->spec.mono)
        notes_add(&audio->ds->notes,
                  "files of audio differ in their channels; audio=%s:mono makes "
                  "one of all",
                  audio->spec.rate ? "RATE" : "native");
}

int record_audio_prepare(struct dataset *ds, struct record_audio *audio, struct diag *d)
{
    int r = audio->is_shown ? prepared_step(&audio->lengths, d) : 1;

    (void)ds;
    if (r != 1 || !audio->is_shown)
        return r;
    if (audio->made.store)
        r = place_units(audio);
    audio_notes(audio);
    return r < 0 ? r : 1;
}

void record_audio_describe(const struct record_audio *audio, const char *indent, struct text *t)
{
    AUTO_TEXT struct text versions = {0};

    if (!audio->is_shown)
        return;
    audio_add_versions(&versions);
    json_open(t, indent, "audio", "{");
    if (audio->spec.rate)
        json_add_number(t, NULL, "rate", audio->spec.rate);
    else
        json_add_text(t, NULL, "rate", "native");
    json_add(t, NULL, "mono", "%s", audio->spec.mono ? "true" : "false");
    json_add_text(t, NULL, "resampler", audio->spec.medium ? "medium" : "best");
    json_add_text(t, NULL, "decoders", versions.data ? versions.data : "");
    json_close(t, indent, "}");
    t->failed = t->failed || versions.failed;
}
