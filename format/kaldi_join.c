#include "format/kaldi_join.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "format/kaldi_set.h"

#define VERSION       1
#define STEP_NS       10000000
#define LOOK          64   /* rows between two looks at the clock */
#define LISTED        1000 /* keys of a list in dataset.json */
#define LEVEL_ROWS    1000 /* that tell by what a table is keyed */
#define TOKENS_MOST   4096 /* bytes of a line of utt2spk or segments */
#define SEGMENT_LEAST 0.1f /* seconds: feat/extract-segments.cc */
#define SEGMENT_OVER  0.5f /* that a segment may end behind its recording */

enum level { BY_UTTERANCE, BY_SPEAKER, BY_RECORDING, N_LEVELS };

/* What is told of a table. */
struct misses {
    uint64_t missing;
    struct text missing_keys; /* JSON strings with commas between */
    uint8_t *used;            /* [rows / 8 + 1] bits; owned */
};

struct kaldi_join {
    const struct kaldi_set *set;
    const struct keep *keep;
    struct blob *segments;             /* owned; NULL: there are none */
    const struct key_index *base;      /* whose rows are the utterances */
    const struct kaldi_table *speaker; /* utt2spk, or NULL */
    enum level level[KEY_INDEX_COLUMNS];
    int place[KEY_INDEX_COLUMNS]; /* of a column among the numbers */
    unsigned columns;             /* numbers of a row */

    /* While rows are joined: */
    bool begun;
    uint64_t segments_at; /* byte */
    struct key_index_builder *segments_builder;
    struct key_index segment; /* utterances, and where the rest of their lines is: start, length */
    uint64_t at;              /* row of the base */
    struct misses miss[KEY_INDEX_COLUMNS];
    struct text notes;
    unsigned told;
    struct kaldi_in in[2]; /* on the texts of speaker and segments */

    struct key_index_builder *builder;
    struct kept kept;
    struct key_index index;
};

/* ---- making ---- */

static const struct kaldi_table *table_called(const struct kaldi_join *join, const char *name)
{
    for (unsigned i = 0; i < join->set->n_columns; i++)
        if (!strcmp(join->set->column[i].table->name, name))
            return join->set->column[i].table;
    return NULL;
}

static const struct key_index *base_index(const struct kaldi_join *join)
{
    static const char *const names[] = {"feats", "wav", "text"};

    if (join->speaker)
        return &join->speaker->index;
    if (join->segments)
        return &join->segment;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct kaldi_table *table = table_called(join, names[i]);

        if (table)
            return &table->index;
    }
    return &join->set->column[0].table->index;
}

/* Is the audio of a column cut by the segments? */
static bool is_cut(const struct kaldi_join *join, unsigned column)
{
    return join->segments && join->set->column[column].table->type == KALDI_WAVE;
}

int kaldi_join_new(const struct kaldi_set *set, const struct keep *keep, struct blob *segments,
                   struct kaldi_join **ret)
{
    struct kaldi_join *join = calloc(1, sizeof(*join));

    if (!join) {
        blob_free(segments);
        return -ENOMEM;
    }
    *ret = join;
    join->set = set;
    join->keep = keep;
    join->segments = segments;
    join->speaker = table_called(join, "utt2spk");
    join->base = base_index(join);
    if (segments)
        kaldi_in_init(&join->in[1], segments);
    for (unsigned i = 0; i < set->n_columns; i++) {
        unsigned numbers = is_cut(join, i) ? 4 : 1;

        if (join->columns + numbers > KEY_INDEX_COLUMNS)
            return -E2BIG;
        join->place[i] = (int)join->columns;
        join->columns += numbers;
        set->column[i].join = join->place[i];
        set->column[i].is_cut = numbers > 1;
    }
    return 0;
}

void kaldi_join_free(struct kaldi_join *join)
{
    if (!join)
        return;
    for (unsigned i = 0; i < KEY_INDEX_COLUMNS; i++) {
        text_release(&join->miss[i].missing_keys);
        free(join->miss[i].used);
    }
    kaldi_in_release(&join->in[0]);
    kaldi_in_release(&join->in[1]);
    text_release(&join->notes);
    key_index_builder_free(join->segments_builder);
    blob_free(join->segments);
    key_index_builder_free(join->builder);
    kept_release(&join->kept);
    free(join);
}

const struct key_index *kaldi_join_index(const struct kaldi_join *join)
{
    return &join->index;
}

/* ---- what texts say ---- */

/* The tokens of a row, NUL-terminated, "" where they cannot be read. */
static size_t row_tokens(struct kaldi_in *in, const struct kaldi_table *table, uint64_t row,
                         char ret[static TOKENS_MOST])
{
    struct kaldi_row at;
    const uint8_t *text;
    size_t have = 0, len;

    ret[0] = '\0';
    kaldi_table_row(table, row, &at);
    if (at.object.store == KALDI_BAD)
        return 0;
    if (in->blob != at.blob) {
        kaldi_in_release(in);
        kaldi_in_init(in, at.blob);
    }
    len = (size_t)min_u64(at.object.dim[0], TOKENS_MOST - 1);
    text = kaldi_in_at(in, at.object.start + at.object.dim[1], len, &have);
    if (!text || have < len)
        return 0;
    memcpy(ret, text, len);
    ret[len] = '\0';
    return len;
}

/* The rest of a line of segments, NUL-terminated, "" where it cannot be read. */
static void segment_text(struct kaldi_join *join, uint64_t row, char ret[static TOKENS_MOST])
{
    uint64_t number[KEY_INDEX_COLUMNS];
    const uint8_t *text;
    size_t have = 0, len;

    ret[0] = '\0';
    key_index_row(&join->segment, row, number);
    len = (size_t)min_u64(number[1], TOKENS_MOST - 1);
    text = kaldi_in_at(&join->in[1], number[0], len, &have);
    if (!text || have < len)
        return;
    memcpy(ret, text, len);
    ret[len] = '\0';
}

/* What a segments line says. */
struct segment {
    const char *recording;
    double start, end;
    int channel; /* -1: none is given */
};

static bool parse_time(const char *text, double *ret)
{
    char *end;

    *ret = strtod(text, &end);
    return *text && !*end && isfinite(*ret) && strspn(text, "0123456789+-.eE") == strlen(text);
}

/* The rest of a line of segments, behind the utterance. NULL, or what is wrong. text is changed. */
static const char *parse_segment(char *text, struct segment *ret)
{
    char *word[5] = {NULL}, *rest = text, *end;
    size_t n = 0;

    for (char *w; (w = strsep(&rest, " \t\r"));) {
        if (!*w)
            continue;
        if (n == ARRAY_LEN(word))
            return "want at most a recording, two times and a channel, found more";
        word[n++] = w;
    }
    if (n != 3 && n != 4)
        return "want a recording, two times and perhaps a channel";
    ret->recording = word[0];
    ret->channel = -1;
    if (!parse_time(word[1], &ret->start) || !parse_time(word[2], &ret->end))
        return "want times in seconds";
    if (ret->start < 0 || (ret->end != -1 && ret->end <= 0) ||
        (ret->end > 0 && ret->start >= ret->end))
        return "want a start that is not negative and an end behind it, or -1";
    if (n == 4) {
        long channel = strtol(word[3], &end, 10);

        if (*end || channel < 0 || channel > 65535)
            return "want a channel from 0 on";
        ret->channel = (int)channel;
    }
    return NULL;
}

/* The samples of a segment of a recording, as extract-segments cuts them. NULL, or why there are
 * none. */
static const char *cut_segment(const struct segment *segment, const struct kaldi_row *wave,
                               uint64_t ret[static 3])
{
    uint64_t samples = wave->object.dim[0], channels = wave->object.dim[1], last;
    float rate = (float)wave->object.dim[2], length = (float)samples / rate;
    double end = segment->end;

    if (!(segment->start <= (double)length)) /* a rate of 0 leaves no length */
        return "it starts behind the end of the recording";
    if (end > (double)(length + SEGMENT_OVER))
        return "it ends more than 0.5 s behind the end of the recording";
    if (end < 0 || end > (double)length)
        end = (double)length;
    if (end - segment->start < (double)SEGMENT_LEAST)
        return "it is shorter than 0.1 s";
    if (segment->channel < 0 && channels != 1)
        return "the recording has several channels: want a channel behind the times";
    if (segment->channel >= 0 && (uint64_t)segment->channel >= channels)
        return "the recording has no such channel";
    ret[0] = min_u64((uint64_t)(segment->start * (double)rate + 0.5), samples);
    last = min_u64((uint64_t)(end * (double)rate + 0.5), samples);
    if (last <= ret[0])
        return "it has no sample";
    ret[1] = last - ret[0];
    ret[2] = channels == 1 ? 0 : (uint64_t)segment->channel + 1;
    return NULL;
}

/* ---- an utterance ---- */

/* What is known of one while it is joined. */
struct utterance {
    uint8_t key[KEY_MAX];
    size_t len;
    char speaker[TOKENS_MOST], segment_text[TOKENS_MOST];
    struct segment segment;
    const char *segment_wrong; /* NULL: there is one */
};

static void know_utterance(struct kaldi_join *join, uint64_t row, struct utterance *u)
{
    uint64_t at = row;

    u->len = key_index_key(join->base, row, u->key);
    u->speaker[0] = '\0';
    if (join->speaker)
        row_tokens(&join->in[0], join->speaker, row, u->speaker);
    u->segment_wrong = "there is none of that key";
    if (!join->segments ||
        (join->base != &join->segment && !key_index_find(&join->segment, u->key, u->len, &at)))
        return;
    segment_text(join, at, u->segment_text);
    u->segment_wrong = parse_segment(u->segment_text, &u->segment);
}

/* The row that a table has for the utterance. */
static bool find_row(const struct kaldi_table *table, enum level level, const struct utterance *u,
                     uint64_t *ret)
{
    const char *name = u->speaker;

    if (level == BY_UTTERANCE)
        return key_index_find(&table->index, u->key, u->len, ret);
    if (level == BY_RECORDING) {
        if (u->segment_wrong)
            return false;
        name = u->segment.recording;
    }
    return *name && key_index_find(&table->index, name, strlen(name), ret);
}

/* What Kaldi's tables of that name are keyed by. */
static enum level usual_level(const char *name)
{
    if (!strncmp(name, "reco2", 5))
        return BY_RECORDING;
    return !strcmp(name, "cmvn") || !strcmp(name, "spk2gender") ? BY_SPEAKER : BY_UTTERANCE;
}

/* By what is a table keyed? By what the first utterances find most with; an utterance may be called
 * like its speaker, so where that is the same, as is usual. */
static enum level find_level(struct kaldi_join *join, unsigned column, struct utterance *u)
{
    const struct kaldi_table *table = join->set->column[column].table;
    uint64_t rows = min_u64(join->base->rows, LEVEL_ROWS), row_found, found[N_LEVELS] = {0};
    enum level best = usual_level(table->name);

    if (is_cut(join, column))
        return BY_RECORDING;
    for (uint64_t row = 0; row < rows; row++) {
        know_utterance(join, row, u);
        for (unsigned level = 0; level < N_LEVELS; level++)
            found[level] += find_row(table, (enum level)level, u, &row_found);
    }
    for (unsigned level = 0; level < N_LEVELS; level++)
        if (found[level] > found[best])
            best = (enum level)level;
    return best;
}

static void note_missing(struct misses *miss, const struct utterance *u)
{
    char key[KEY_MAX + 1];

    if (miss->missing++ >= LISTED)
        return;
    memcpy(key, u->key, u->len);
    key[u->len] = '\0';
    text_add(&miss->missing_keys, miss->missing > 1 ? ", " : "");
    text_add_json(&miss->missing_keys, key);
}

static void note_segment(struct kaldi_join *join, const struct utterance *u, const char *wrong)
{
    if (join->told++ >= 10)
        return;
    text_add(&join->notes, "%s: '%.*s': %s; it is left out\n", blob_name(join->segments),
             (int)min_u64(u->len, 100), (const char *)u->key, wrong);
}

static bool join_cut(struct kaldi_join *join, const struct utterance *u,
                     const struct kaldi_table *table, uint64_t row, uint64_t ret[static 3])
{
    struct kaldi_row wave;
    const char *wrong;

    kaldi_table_row(table, row, &wave);
    if (wave.object.store == KALDI_BAD) { /* its files say why */
        ret[0] = ret[1] = ret[2] = 0;
        return true;
    }
    wrong = cut_segment(&u->segment, &wave, ret);
    if (wrong)
        note_segment(join, u, wrong);
    return !wrong;
}

static int join_row(struct kaldi_join *join, struct utterance *u)
{
    const struct kaldi_set *set = join->set;
    uint64_t number[KEY_INDEX_COLUMNS], found;
    bool complete = true;

    know_utterance(join, join->at, u);
    if (join->segments && u->segment_wrong && strncmp(u->segment_wrong, "there is none", 13) != 0)
        note_segment(join, u, u->segment_wrong);
    for (unsigned i = 0; i < set->n_columns; i++) {
        const struct kaldi_table *table = set->column[i].table;
        uint64_t *at = &number[join->place[i]];
        bool has = find_row(table, join->level[i], u, at);

        found = *at;
        if (has && join->miss[i].used)
            join->miss[i].used[found / 8] |= (uint8_t)(1u << found % 8);
        if (has && is_cut(join, i))
            has = join_cut(join, u, table, found, at + 1);
        if (!has)
            note_missing(&join->miss[i], u);
        complete = complete && has;
    }
    return complete ? key_index_add(join->builder, u->key, u->len, number) : 0;
}

/* ---- joining ---- */

static int join_identity(const struct kaldi_join *join, char **ret)
{
    AUTO_TEXT struct text t = {0};

    text_add(&t, "kaldi join %d", VERSION);
    for (unsigned i = 0; i <= join->set->n_columns; i++) {
        bool segments = i == join->set->n_columns;
        const struct kaldi_table *table = segments ? NULL : join->set->column[i].table;
        AUTO_FREE char *identity = NULL;
        int r = 0;

        if (table)
            r = kaldi_table_identity(table, &identity);
        else if (join->segments)
            r = blob_identity(join->segments, &identity);
        if (r < 0)
            return r;
        text_add(&t, ";%s=%s", table ? table->name : "segments", identity ? identity : "none");
    }
    return text_finish(&t, ret, NULL);
}

static bool take_kept(struct kaldi_join *join, const char *identity)
{
    if (keep_load(join->keep, "tables", identity, &join->kept) < 0)
        return false;
    if (key_index_open(join->kept.bytes, join->kept.size, &join->index) == 0 &&
        join->index.columns == join->columns)
        return true;
    kept_release(&join->kept);
    keep_remove(join->keep, "tables", identity);
    return false;
}

static int begin_rows(struct kaldi_join *join)
{
    AUTO_FREE struct utterance *u = malloc(sizeof(*u));

    if (!u)
        return -ENOMEM;
    for (unsigned i = 0; i < join->set->n_columns; i++) {
        join->miss[i].used = calloc(1, join->set->column[i].table->index.rows / 8 + 1);
        if (!join->miss[i].used)
            return -ENOMEM;
        join->level[i] = find_level(join, i, u);
    }
    return key_index_builder_new(join->columns, &join->builder);
}

static int begin(struct kaldi_join *join)
{
    AUTO_FREE char *identity = NULL;
    int r = join_identity(join, &identity);

    if (r < 0)
        return r;
    join->begun = true;
    if (take_kept(join, identity))
        return 1;
    return join->segments ? key_index_builder_new(2, &join->segments_builder) : begin_rows(join);
}

/* A line of segments: the utterance and where the rest is. Kaldi skips lines that it cannot use. */
static int index_segment(struct kaldi_join *join)
{
    struct kaldi_in *in = &join->in[1];
    uint64_t from = join->segments_at;
    size_t have = 0, len, key = 0, key_len;
    const uint8_t *text = kaldi_in_at(in, from, TOKENS_MOST, &have), *end;

    if (!text)
        return in->error;
    end = memchr(text, '\n', have);
    len = end ? (size_t)(end - text) : have;
    join->segments_at += len + (end != NULL);
    while (key < len && memchr(" \t\r", text[key], 3))
        key++;
    for (key_len = key; key_len < len && !memchr(" \t\r", text[key_len], 3);)
        key_len++;
    key_len -= key;
    if (!key_len || key_len > KEY_MAX)
        return 0;
    return key_index_add(join->segments_builder, text + key, key_len,
                         (uint64_t[]){from + key + key_len, len - key - key_len});
}

/* All lines of segments. 1: done, 0: not yet, or -errno. */
static int index_segments(struct kaldi_join *join, int64_t until)
{
    int r = 0;

    for (unsigned i = 1; join->segments_at < join->segments->size && r == 0; i++) {
        r = index_segment(join);
        if (i % LOOK == 0 && monotonic_ns() > until)
            return r;
    }
    if (r == 0)
        r = key_index_finish(join->segments_builder, NULL, NULL, &join->segment);
    if (r == 0)
        r = begin_rows(join);
    join->segments_at = UINT64_MAX;
    return r < 0 ? r : 1;
}

/* The keys of a table that no utterance has used. */
static uint64_t add_extra(const struct kaldi_table *table, const struct misses *miss,
                          struct text *t)
{
    uint64_t n = 0;

    for (uint64_t row = 0; row < table->index.rows; row++) {
        char key[KEY_MAX + 1];

        if (miss->used[row / 8] & 1u << row % 8 || n++ >= LISTED)
            continue;
        key[key_index_key(&table->index, row, (uint8_t *)key)] = '\0';
        text_add(t, n > 1 ? ", " : "");
        text_add_json(t, key);
    }
    return n;
}

/* {"feats": {"count": 2, "keys": ["a", "b"]}} for each table that has any. */
static void describe_missing(const struct kaldi_join *join, struct text *t)
{
    bool any = false;

    for (unsigned i = 0; i < join->set->n_columns; i++) {
        const struct misses *miss = &join->miss[i];

        if (!miss->missing)
            continue;
        text_add(t, "%s\"%s\": {\"count\": %llu, \"keys\": [%s]}", any ? ", " : "",
                 join->set->column[i].table->name, (unsigned long long)miss->missing,
                 miss->missing_keys.data);
        any = true;
    }
}

static void describe_extra(const struct kaldi_join *join, struct text *t)
{
    bool any = false;

    for (unsigned i = 0; i < join->set->n_columns; i++) {
        AUTO_TEXT struct text keys = {0};
        const struct kaldi_table *table = join->set->column[i].table;
        uint64_t n = add_extra(table, &join->miss[i], &keys);

        if (!n)
            continue;
        text_add(t, "%s\"%s\": {\"count\": %llu, \"keys\": [%s]}", any ? ", " : "", table->name,
                 (unsigned long long)n, keys.data);
        any = true;
    }
}

static int finish(struct kaldi_join *join)
{
    struct iovec pieces[KEY_INDEX_PIECES];
    AUTO_FREE char *identity = NULL;
    AUTO_TEXT struct text about = {0};
    struct key_index kept;
    int r;

    text_add(&about, "\"missing\": {");
    describe_missing(join, &about);
    text_add(&about, "}%c\"extra\": {", '\0');
    describe_extra(join, &about);
    text_add(&about, "}%c%s", '\0', join->notes.data ? join->notes.data : "");
    if (about.failed)
        return -ENOMEM;
    r = key_index_finish(join->builder, NULL, NULL, &join->index);
    if (r == 0)
        r = key_index_bytes(join->builder, about.data, about.len + 1, &join->index, pieces);
    if (r == 0)
        r = join_identity(join, &identity);
    if (r < 0)
        return r;
    r = keep_save(join->keep, "tables", identity, pieces, KEY_INDEX_PIECES, &join->kept, NULL);
    if (r == 0 && key_index_open(join->kept.bytes, join->kept.size, &kept) == 0) {
        join->index = kept;
        key_index_builder_free(join->builder);
        join->builder = NULL;
    }
    return 0; /* not kept: the tables have said why */
}

static int no_samples(const struct kaldi_join *join, struct diag *d)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < join->set->n_columns; i++)
        text_add(&t, "%s%s (%llu)", i ? ", " : "", join->set->column[i].table->name,
                 (unsigned long long)join->set->column[i].table->index.rows);
    return diag_set(d, -EBADMSG,
                    "%s: want utterances that all tables have, found none; the tables and their "
                    "rows: %s",
                    blob_name(join->set->column[0].table->blob), t.data);
}

int kaldi_join_step(struct kaldi_join *join, struct diag *d)
{
    int64_t until = monotonic_ns() + STEP_NS;
    AUTO_FREE struct utterance *u = NULL;
    int r = join->begun ? 0 : begin(join);

    if (r == 0 && join->segments && join->segments_at != UINT64_MAX) {
        r = index_segments(join, until);
        if (r <= 0)
            return r;
        r = 0;
    }
    if (r == 0)
        u = malloc(sizeof(*u));
    if (r == 0 && !u)
        return -ENOMEM;
    for (unsigned i = 1; r == 0 && join->at < join->base->rows; i++) {
        r = join_row(join, u);
        join->at++;
        if (i % LOOK == 0 && monotonic_ns() > until)
            return r;
    }
    if (r == 0)
        r = finish(join);
    if (r >= 0 && !join->index.rows)
        return no_samples(join, d);
    return r < 0 ? r : 1;
}

void kaldi_join_describe(const struct kaldi_join *join, const char *indent, struct text *t)
{
    const char *at = (const char *)join->index.about;
    size_t left = join->index.about_len;

    for (unsigned i = 0; i < 2; i++) {
        const char *end = memchr(at, '\0', left);

        if (!end)
            return;
        text_add(t, "%s%s,\n", indent, at);
        left -= (size_t)(end + 1 - at);
        at = end + 1;
    }
    if (left && memchr(at, '\0', left) && *at) {
        text_add(t, "%s\"segments_left_out\": ", indent);
        text_add_json(t, at);
        text_add(t, ",\n");
    }
}
