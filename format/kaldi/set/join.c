#include "format/kaldi/set/join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "format/kaldi/set/segments.h"
#include "format/kaldi/set/set.h"

#define STEP_NS           10000000
#define LOOK              64   /* rows between two readings of the clock */
#define LISTED            1000 /* keys of a list in dataset.json */
#define LEVEL_ROWS        1000 /* rows that decide what a table is keyed by */
#define SEGMENTS_REPORTED 10   /* left-out segments that the notes list */
#define KEYS_NOTED        3    /* of a table, in a note */
#define TOKENS_MOST       4096 /* bytes of a line of utt2spk */

/* The texts kept with the index, in this order: members of dataset.json, and lines for people. */
enum { ABOUT_MEMBERS = 3, ABOUT_MISSING = ABOUT_MEMBERS, ABOUT_NOTES };

enum level { BY_UTTERANCE, BY_SPEAKER, BY_RECORDING, N_LEVELS };

/* What dataset.json reports about a table. */
struct misses {
    uint64_t missing;
    struct text missing_keys;  /* JSON strings with commas between, */
    struct text missing_shown; /* and the first KEYS_NOTED for people */
    uint8_t *used;             /* [rows / 8 + 1] bits; owned */
};

struct kaldi_join {
    const struct kaldi_set *set;
    struct prepared prepared; /* the index */
    char *source;             /* the names of the joined files; owned */
    struct kaldi_segments segments;
    bool has_segments;
    const struct index *base;          /* whose rows are the utterances */
    const struct kaldi_table *speaker; /* utt2spk, or NULL */
    enum level level[INDEX_COLUMNS];
    int place[INDEX_COLUMNS]; /* of a column among the numbers */

    /* While rows are joined: */
    uint64_t at; /* the next row of the base */
    bool begun_rows;
    struct misses miss[INDEX_COLUMNS];
    struct text notes;
    unsigned reported;
    struct kaldi_in in; /* on the text of speaker */
};

/* ---- making ---- */

static const struct kaldi_table *table_called(const struct kaldi_join *join, const char *name)
{
    for (unsigned i = 0; i < join->set->n_columns; i++)
        if (!strcmp(join->set->column[i].table->name, name))
            return join->set->column[i].table;
    return NULL;
}

static const struct index *base_index(const struct kaldi_join *join)
{
    static const char *const names[] = {"feats", "wav", "text"};

    if (join->speaker)
        return &join->speaker->base.prepared.index;
    if (join->has_segments)
        return &join->segments.index;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct kaldi_table *table = table_called(join, names[i]);

        if (table)
            return &table->base.prepared.index;
    }
    return &join->set->column[0].table->base.prepared.index;
}

/* Is the audio of a column cut by the segments? */
static bool is_cut(const struct kaldi_join *join, unsigned column)
{
    return join->has_segments && join->set->column[column].table->type == KALDI_WAVE;
}

/* ---- what texts say ---- */

/* The tokens of a row, NUL-terminated; "" if they cannot be read. */
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
    if (in->blob != at.blob)
        kaldi_in_move(in, at.blob);
    len = (size_t)min_u64(at.object.dim[0], TOKENS_MOST - 1);
    text = kaldi_in_at(in, at.object.start + at.object.dim[1], len, &have);
    if (!text || have < len)
        return 0;
    memcpy(ret, text, len);
    ret[len] = '\0';
    return len;
}

/* ---- an utterance ---- */

/* An utterance while it is joined. */
struct utterance {
    uint8_t key[KEY_MAX];
    size_t len;
    char speaker[TOKENS_MOST], line[SEGMENT_LINE];
    struct kaldi_segment segment;
    const char *segment_wrong; /* NULL: it has a good segment */
};

static void know_utterance(struct kaldi_join *join, uint64_t row, struct utterance *u)
{
    uint64_t at = row;

    u->len = index_key(join->base, row, u->key);
    u->speaker[0] = '\0';
    if (join->speaker)
        row_tokens(&join->in, join->speaker, row, u->speaker);
    u->segment_wrong = "there is none of that key";
    if (!join->has_segments || (join->base != &join->segments.index &&
                                !index_find(&join->segments.index, u->key, u->len, &at)))
        return;
    u->segment_wrong = kaldi_segments_line(&join->segments, at, u->line, &u->segment);
}

/* The error of reading a line, if there was one: then nothing about the utterance counts as
 * missing. */
static int read_error(const struct kaldi_join *join)
{
    return join->in.error ? join->in.error : join->segments.in.error;
}

/* Find the row of a table that belongs to the utterance. */
static bool kaldi_join_find_row(const struct kaldi_table *table, enum level level,
                                const struct utterance *u, uint64_t *ret)
{
    const char *name = u->speaker;

    if (level == BY_UTTERANCE)
        return index_find(&table->base.prepared.index, u->key, u->len, ret);
    if (level == BY_RECORDING) {
        if (u->segment_wrong)
            return false;
        name = u->segment.recording;
    }
    return *name && index_find(&table->base.prepared.index, name, strlen(name), ret);
}

/* The level by which Kaldi's tables of that name are keyed. */
static enum level usual_level(const char *name)
{
    if (!strncmp(name, "reco2", 5))
        return BY_RECORDING;
    return !strcmp(name, "cmvn") || !strcmp(name, "spk2gender") ? BY_SPEAKER : BY_UTTERANCE;
}

/* The level by which a table is keyed: the one under which most of the first utterances find a row.
 * An utterance may have the name of its speaker; in a tie the usual level wins. */
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
            found[level] += kaldi_join_find_row(table, (enum level)level, u, &row_found);
    }
    for (unsigned level = 0; level < N_LEVELS; level++)
        if (found[level] > found[best])
            best = (enum level)level;
    return best;
}

/* Key number n of a list for people. */
static void show_key(struct text *t, uint64_t n, const uint8_t *key, size_t len)
{
    if (n < KEYS_NOTED)
        text_add(t, "%s'%.*s'", n ? ", " : "", (int)min_u64(len, 100), (const char *)key);
    else if (n == KEYS_NOTED)
        text_add(t, ", ...");
}

static void note_missing(struct misses *miss, const struct utterance *u)
{
    char key[KEY_MAX + 1];

    show_key(&miss->missing_shown, miss->missing, u->key, u->len);
    if (miss->missing++ >= LISTED)
        return;
    memcpy(key, u->key, u->len);
    key[u->len] = '\0';
    text_add(&miss->missing_keys, miss->missing > 1 ? ", " : "");
    text_add_json(&miss->missing_keys, key);
}

static void note_segment(struct kaldi_join *join, const struct utterance *u, const char *wrong)
{
    if (join->reported++ >= SEGMENTS_REPORTED)
        return;
    text_add(&join->notes, "%s%s: '%.*s': %s; it is ignored", join->reported > 1 ? "\n" : "",
             blob_name(join->segments.blob), (int)min_u64(u->len, 100), (const char *)u->key,
             wrong);
}

static bool join_cut(struct kaldi_join *join, const struct utterance *u,
                     const struct kaldi_table *table, uint64_t row, uint64_t ret[static 3])
{
    struct kaldi_row wave;
    const char *wrong;

    kaldi_table_row(table, row, &wave);
    if (wave.object.store == KALDI_BAD) { /* reading its files gives the reason */
        ret[0] = ret[1] = ret[2] = 0;
        return true;
    }
    wrong = kaldi_segment_cut(&u->segment, &wave, ret);
    if (wrong)
        note_segment(join, u, wrong);
    return !wrong;
}

static int join_row(struct kaldi_join *join, struct utterance *u)
{
    const struct kaldi_set *set = join->set;
    uint64_t number[INDEX_COLUMNS], found;
    bool complete = true;

    know_utterance(join, join->at, u);
    if (read_error(join))
        return read_error(join);
    if (join->has_segments && u->segment_wrong &&
        strncmp(u->segment_wrong, "there is none", 13) != 0)
        note_segment(join, u, u->segment_wrong);
    for (unsigned i = 0; i < set->n_columns; i++) {
        const struct kaldi_table *table = set->column[i].table;
        uint64_t *at = &number[join->place[i]];
        bool has = kaldi_join_find_row(table, join->level[i], u, at);

        found = *at;
        if (has && join->miss[i].used)
            join->miss[i].used[found / 8] |= (uint8_t)(1u << found % 8);
        if (has && is_cut(join, i))
            has = join_cut(join, u, table, found, at + 1);
        if (!has)
            note_missing(&join->miss[i], u);
        complete = complete && has;
    }
    return complete ? index_add(join->prepared.builder, u->key, u->len, number) : 0;
}

/* ---- joining ---- */

static int join_identity(void *impl, struct text *ret)
{
    const struct kaldi_join *join = impl;

    for (unsigned i = 0; i < join->set->n_columns; i++) {
        const struct kaldi_table *table = join->set->column[i].table;

        text_add(ret, ";%s=", table->name);
        kaldi_table_identity(table, ret);
    }
    text_add(ret, ";segments=%s", join->has_segments ? "" : "none");
    return join->has_segments ? prepared_add_identity(&join->prepared, ret, join->segments.blob)
                              : 0;
}

static int begin_rows(struct kaldi_join *join, struct utterance *u)
{
    for (unsigned i = 0; i < join->set->n_columns; i++) {
        join->level[i] = find_level(join, i, u);
        if (read_error(join))
            return read_error(join);
    }
    join->begun_rows = true;
    for (unsigned i = 0; i < join->set->n_columns; i++) {
        join->miss[i].used =
            calloc(1, join->set->column[i].table->base.prepared.index.rows / 8 + 1);
        if (!join->miss[i].used)
            return -ENOMEM;
    }
    return 0;
}

/* Add the keys of a table that no utterance uses. */
static uint64_t add_extra(const struct kaldi_table *table, const struct misses *miss,
                          struct text *t)
{
    uint64_t n = 0;

    for (uint64_t row = 0; row < table->base.prepared.index.rows; row++) {
        char key[KEY_MAX + 1];

        if (miss->used[row / 8] & 1u << row % 8 || n++ >= LISTED)
            continue;
        key[index_key(&table->base.prepared.index, row, (uint8_t *)key)] = '\0';
        text_add(t, n > 1 ? ", " : "");
        text_add_json(t, key);
    }
    return n;
}

/* {"feats": {"count": 2, "keys": ["a", "b"]}} for each table that has any: of the keys that the
 * table lacks, or of its extra ones. */
static void describe_keys(const struct kaldi_join *join, bool extra, struct text *t)
{
    const char *comma = "";

    for (unsigned i = 0; i < join->set->n_columns; i++) {
        AUTO_TEXT struct text extras = {0};
        const struct kaldi_table *table = join->set->column[i].table;
        const struct misses *miss = &join->miss[i];
        uint64_t n = extra ? add_extra(table, miss, &extras) : miss->missing;
        const char *keys = extra ? extras.data : miss->missing_keys.data;

        t->failed = t->failed || extras.failed;
        if (!n)
            continue;
        text_add(t, "%s\"%s\": {\"count\": %llu, \"keys\": [%s]}", comma, table->name,
                 (unsigned long long)n, keys ? keys : "");
        comma = ", ";
    }
}

/* A line for each table that lacks utterances. */
static void kaldi_join_add_missing(const struct kaldi_join *join, struct text *t)
{
    for (unsigned i = 0; i < join->set->n_columns; i++) {
        const struct misses *miss = &join->miss[i];

        if (miss->missing)
            text_add(t, "%s: lacks %llu of %llu utterances, which are omitted: %s\n",
                     blob_name(join->set->column[i].table->base.blob),
                     (unsigned long long)miss->missing, (unsigned long long)join->base->rows,
                     miss->missing_shown.data ? miss->missing_shown.data : "");
    }
}

/* And for each table of utterances that has others. */
static void add_others(const struct kaldi_join *join, struct text *t)
{
    for (unsigned i = 0; i < join->set->n_columns; i++) {
        const struct kaldi_table *table = join->set->column[i].table;
        AUTO_TEXT struct text shown = {0};
        uint64_t n = 0;

        for (uint64_t row = 0; row < table->base.prepared.index.rows; row++) {
            uint8_t key[KEY_MAX];

            if (join->miss[i].used[row / 8] & 1u << row % 8)
                continue;
            show_key(&shown, n, key,
                     n > KEYS_NOTED ? 0 : index_key(&table->base.prepared.index, row, key));
            n++;
        }
        if (n && join->level[i] == BY_UTTERANCE)
            text_add(t, "%s: %llu of its rows belong to no utterance, and are omitted: %s\n",
                     blob_name(table->base.blob), (unsigned long long)n,
                     shown.data ? shown.data : "");
    }
}

/* Did memory for the reports run out? */
static bool texts_failed(const struct kaldi_join *join)
{
    bool failed = join->notes.failed;

    for (unsigned i = 0; i < join->set->n_columns; i++)
        failed = failed || join->miss[i].missing_keys.failed || join->miss[i].missing_shown.failed;
    return failed;
}

/* Check that utt2spk and segments did not change while they were read. */
static int sources_check(const struct kaldi_join *join)
{
    int r = join->speaker ? blob_check(join->speaker->base.blob) : 0;

    return r == 0 && join->has_segments ? blob_check(join->segments.blob) : r;
}

/* Report that there are no samples. Tables without a row for any utterance are the likely
 * reason. */
static int no_samples(const struct kaldi_join *join, struct diag *d)
{
    AUTO_TEXT struct text lacking = {0};

    for (unsigned i = 0; i < join->set->n_columns; i++)
        if (join->miss[i].missing == join->base->rows)
            text_add(&lacking, "%s%s", lacking.len ? ", " : "", join->set->column[i].table->name);
    return diag_set(
        d, -EBADMSG,
        "%s: expected utterances that all tables have, got none; nothing for any of %llu "
        "utterances is in: %s. A table by speaker needs utt2spk, one by recording "
        "segments; a table of something else should be in another folder",
        blob_name(join->set->column[0].table->base.blob), (unsigned long long)join->base->rows,
        lacking.data ? lacking.data : "no single table");
}

static int join_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    const struct kaldi_join *join = impl;

    text_add(ret, "\"missing_keys\": {");
    describe_keys(join, false, ret);
    text_add(ret, "}%c\"extra\": {", '\0');
    describe_keys(join, true, ret);
    text_add(ret, "}%c\"segments_left_out\": %u%c", '\0', join->reported, '\0');
    kaldi_join_add_missing(join, ret);
    add_others(join, ret);
    text_add_bytes(ret, "", 1);
    text_add(ret, "%s", join->notes.data ? join->notes.data : "");
    if (join->reported > SEGMENTS_REPORTED)
        text_add(ret, "\nand %u more segments", join->reported - SEGMENTS_REPORTED);
    text_add_bytes(ret, "", 1); /* with its NUL */
    if (texts_failed(join))
        return -ENOMEM;
    return index->rows ? 0 : no_samples(join, d);
}

static int join_step(void *impl, struct diag *d)
{
    struct kaldi_join *join = impl;
    int64_t until = monotonic_ns() + STEP_NS;
    AUTO_FREE struct utterance *u = malloc(sizeof(*u));
    int r = u ? 1 : -ENOMEM;

    (void)d;
    join->in.error = join->segments.in.error = 0; /* the read may succeed now */
    if (r == 1 && join->has_segments)
        r = kaldi_segments_step(&join->segments, until);
    if (r <= 0)
        return r;
    r = join->begun_rows ? 0 : begin_rows(join, u);
    for (unsigned i = 1; r == 0 && join->at < join->base->rows; i++) {
        r = join_row(join, u);
        join->at += r == 0;
        if (i % LOOK == 0 && monotonic_ns() > until)
            return r;
    }
    if (r == 0)
        r = sources_check(join);
    return r < 0 ? r : 1;
}

static int join_take(void *impl, const struct index *index)
{
    (void)impl;
    return index->rows ? 0 : -EBADMSG; /* a join without samples is not kept */
}

static const struct prepared_ops join_ops = {
    .version = "kaldi join 4",
    .identity = join_identity,
    .take = join_take,
    .step = join_step,
    .about = join_about,
};

int kaldi_join_step(struct kaldi_join *join, struct diag *d)
{
    return prepared_step(&join->prepared, d);
}

/* ---- opening ---- */

/* The names of the joined files, for messages. */
static int join_source(const struct kaldi_join *join, char **ret)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < join->set->n_columns; i++)
        text_add(&t, "%s%s", i ? " + " : "", blob_source(join->set->column[i].table->base.blob));
    if (join->has_segments)
        text_add(&t, " + %s", blob_source(join->segments.blob));
    return text_finish(&t, ret, NULL);
}

/* Give each column its numbers in a row of the index. 0 or -E2BIG. */
static int place_columns(struct kaldi_join *join)
{
    unsigned *columns = &join->prepared.shape.columns;

    for (unsigned i = 0; i < join->set->n_columns; i++) {
        unsigned numbers = is_cut(join, i) ? 4 : 1;

        if (*columns + numbers > INDEX_COLUMNS)
            return -E2BIG;
        join->place[i] = (int)*columns;
        *columns += numbers;
        join->set->column[i].join = join->place[i];
        join->set->column[i].is_cut = numbers > 1;
    }
    return 0;
}

int kaldi_join_new(const struct kaldi_set *set, const struct index_store *keep,
                   struct blob *segments, struct kaldi_join **ret)
{
    struct kaldi_join *join = calloc(1, sizeof(*join));
    int r = 0;

    if (!join) {
        blob_free(segments);
        return -ENOMEM;
    }
    join->set = set;
    join->has_segments = segments;
    if (segments)
        r = kaldi_segments_init(&join->segments, segments);
    if (r == 0)
        r = join_source(join, &join->source);
    join->speaker = table_called(join, "utt2spk");
    join->base = base_index(join);
    join->prepared = (struct prepared){
        .ops = &join_ops,
        .impl = join,
        .keep = keep,
        .kind = "tables",
        .name = blob_name(set->column[0].table->base.blob),
        .source = join->source,
        .shape = {.has_keys = true},
    };
    if (r == 0)
        r = place_columns(join);
    if (r < 0) {
        kaldi_join_free(join);
        return r;
    }
    *ret = join;
    return 0;
}

void kaldi_join_free(struct kaldi_join *join)
{
    if (!join)
        return;
    for (unsigned i = 0; i < INDEX_COLUMNS; i++) {
        text_release(&join->miss[i].missing_keys);
        text_release(&join->miss[i].missing_shown);
        free(join->miss[i].used);
    }
    kaldi_in_release(&join->in);
    text_release(&join->notes);
    kaldi_segments_release(&join->segments);
    prepared_release(&join->prepared);
    free(join->source);
    free(join);
}

/* ---- the joined rows ---- */

const struct index *kaldi_join_index(const struct kaldi_join *join)
{
    return &join->prepared.index;
}

/* Text number i of those kept with the index; "" if there is none. */
static const char *about_text(const struct kaldi_join *join, unsigned i)
{
    const char *at = (const char *)join->prepared.index.about;
    size_t left = join->prepared.index.about_len;

    for (;; i--) {
        const char *end = left ? memchr(at, '\0', left) : NULL;

        if (!end)
            return "";
        if (!i)
            return at;
        left -= (size_t)(end + 1 - at);
        at = end + 1;
    }
}

void kaldi_join_describe(const struct kaldi_join *join, const char *indent, struct text *t)
{
    for (unsigned i = 0; i < ABOUT_MEMBERS; i++)
        if (*about_text(join, i))
            text_add(t, "%s%s,\n", indent, about_text(join, i));
}

const char *kaldi_join_missing(const struct kaldi_join *join)
{
    return about_text(join, ABOUT_MISSING);
}

const char *kaldi_join_notes(const struct kaldi_join *join)
{
    return about_text(join, ABOUT_NOTES);
}
