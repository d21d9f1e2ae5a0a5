#include "format/kaldi/set/join.h"

#include <errno.h>
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
    if (join->segments)
        return &join->segments->base.prepared.index;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct kaldi_table *table = table_called(join, names[i]);

        if (table)
            return &table->base.prepared.index;
    }
    return &join->set->column[0].table->base.prepared.index;
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
    char speaker[TOKENS_MOST], line[TOKENS_MOST];
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
    if (!join->segments || (join->base != &join->segments->base.prepared.index &&
                            !index_find(&join->segments->base.prepared.index, u->key, u->len, &at)))
        return;
    row_tokens(&join->segments_in, join->segments, at, u->line);
    u->segment_wrong = kaldi_segment_parse(u->line, &u->segment);
}

/* The error of reading a line, if there was one: then nothing about the utterance counts as
 * missing. */
static int read_error(const struct kaldi_join *join)
{
    return join->in.error ? join->in.error : join->segments_in.error;
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

    if (join->set->column[column].is_cut)
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

static void key_list_add(struct key_list *list, const uint8_t *key, size_t len)
{
    uint64_t n = list->n++;

    if (n < KEYS_NOTED)
        text_add(&list->shown, "%s'%.*s'", n ? ", " : "", (int)min_u64(len, 100),
                 (const char *)key);
    else if (n == KEYS_NOTED)
        text_add(&list->shown, ", ...");
    if (n >= LISTED)
        return;
    json_add_bytes(&list->json, key, len);
}

static void note_segment(struct kaldi_join *join, const struct utterance *u, const char *wrong)
{
    if (join->reported++ >= SEGMENTS_REPORTED)
        return;
    text_add(&join->notes, "%s: '%.*s': %s; it is ignored\n", blob_name(join->segments->base.blob),
             (int)min_u64(u->len, 100), (const char *)u->key, wrong);
}

static bool join_cut(struct kaldi_join *join, const struct utterance *u,
                     const struct kaldi_table *table, uint64_t row, uint64_t ret[static 3])
{
    struct kaldi_row wave;
    const char *wrong;

    kaldi_table_row(table, row, &wave);
    if (wave.object.store == KALDI_BAD) { /* reading its files gives the reason, or an array */
        memcpy(ret, &u->segment, 3 * sizeof(*ret));
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
    uint64_t number[INDEX_COLUMNS];
    bool complete = true;

    know_utterance(join, join->at, u);
    if (read_error(join))
        return read_error(join);
    if (join->segments && u->segment_wrong && strncmp(u->segment_wrong, "there is none", 13) != 0)
        note_segment(join, u, u->segment_wrong);
    for (unsigned i = 0; i < set->n_columns; i++) {
        const struct kaldi_table *table = set->column[i].table;
        struct joined_table *joined = &join->joined[i];
        uint64_t *row = &number[set->column[i].join];
        bool has = kaldi_join_find_row(table, joined->level, u, row);

        if (has)
            joined->used[*row / 8] |= (uint8_t)(1u << *row % 8);
        if (has && set->column[i].is_cut)
            has = join_cut(join, u, table, *row, row + 1);
        if (!has)
            key_list_add(&joined->list[JOINED_LACKS], u->key, u->len);
        complete = complete && has;
    }
    return complete ? index_add(join->prepared.builder, u->key, u->len, number) : 0;
}

/* ---- joining ---- */

static int join_identity(void *impl, struct text *ret)
{
    kaldi_set_identify(((const struct kaldi_join *)impl)->set, ret);
    return 0;
}

static int begin_rows(struct kaldi_join *join, struct utterance *u)
{
    for (unsigned i = 0; i < join->set->n_columns; i++) {
        struct joined_table *joined = &join->joined[i];

        joined->level = find_level(join, i, u);
        if (read_error(join))
            return read_error(join);
        if (!joined->used)
            joined->used = calloc(1, join->set->column[i].table->base.prepared.index.rows / 8 + 1);
        if (!joined->used)
            return -ENOMEM;
    }
    join->begun_rows = true;
    return 0;
}

/* Find the rows that no utterance uses. */
static void find_extra(const struct kaldi_table *table, struct joined_table *joined)
{
    const struct index *index = &table->base.prepared.index;
    struct key_list *extra = &joined->list[JOINED_EXTRA];
    uint8_t key[KEY_MAX];

    for (uint64_t row = 0; row < index->rows; row++) {
        if (joined->used[row / 8] & 1u << row % 8)
            continue;
        if (extra->n < LISTED)
            key_list_add(extra, key, index_key(index, row, key));
        else
            extra->n++;
    }
}

/* Check that utt2spk and segments did not change while they were read. */
static int sources_check(const struct kaldi_join *join)
{
    int r = join->speaker ? blob_check(join->speaker->base.blob) : 0;

    return r == 0 && join->segments ? blob_check(join->segments->base.blob) : r;
}

/* Report that there are no samples. Tables without a row for any utterance are the likely
 * reason. */
static int no_samples(const struct kaldi_join *join, struct diag *d)
{
    AUTO_TEXT struct text lacking = {0};

    for (unsigned i = 0; i < join->set->n_columns; i++)
        if (join->joined[i].list[JOINED_LACKS].n == join->base->rows)
            text_add(&lacking, "%s%s", lacking.len ? ", " : "", join->set->column[i].table->name);
    return diag_set(
        d, -EBADMSG,
        "%s: expected utterances that all tables have, got none; nothing for any of %llu "
        "utterances is in: %s. A table by speaker needs utt2spk, one by recording "
        "segments; a table of something else should be in another folder",
        blob_name(join->set->column[0].table->base.blob), (unsigned long long)join->base->rows,
        lacking.data ? lacking.data : "no single table");
}

/* Add lists of keys to the members, "feats": {"count": 2, "keys": ["a", "b"]}, and lines for
 * people. Rows that no utterance uses are no news in a table by speaker or recording. */
static void describe_lists(struct kaldi_join *join, unsigned which, const char *name)
{
    struct text *t = &join->members;

    json_open(t, "", name, "{");
    for (unsigned i = 0; i < join->set->n_columns; i++) {
        const struct kaldi_table *table = join->set->column[i].table;
        const struct key_list *list = &join->joined[i].list[which];
        const char *shown = list->shown.data ? list->shown.data : "";

        if (!list->n)
            continue;
        json_open(t, NULL, table->name, "{");
        json_add_number(t, NULL, "count", list->n);
        json_add(t, NULL, "keys", "[%s]", list->json.data ? list->json.data : "");
        json_close(t, NULL, "}");
        t->failed = t->failed || list->json.failed || list->shown.failed;
        if (which == JOINED_LACKS)
            text_add(&join->missing, "%s: lacks %llu of %llu utterances, which are omitted: %s\n",
                     blob_name(table->base.blob), (unsigned long long)list->n,
                     (unsigned long long)join->base->rows, shown);
        else if (join->joined[i].level == BY_UTTERANCE)
            text_add(&join->missing,
                     "%s: %llu of its rows belong to no utterance, and are omitted: %s\n",
                     blob_name(table->base.blob), (unsigned long long)list->n, shown);
    }
    json_close(t, "", "}");
}

static int join_about(void *impl, const struct index *index, struct text *ret, struct diag *d)
{
    struct kaldi_join *join = impl;

    (void)ret;
    for (unsigned i = 0; i < join->set->n_columns; i++)
        find_extra(join->set->column[i].table, &join->joined[i]);
    describe_lists(join, JOINED_LACKS, "missing_keys");
    describe_lists(join, JOINED_EXTRA, "extra");
    json_add_number(&join->members, "", "segments_left_out", join->reported);
    if (join->reported > SEGMENTS_REPORTED)
        text_add(&join->notes, "and %u more segments\n", join->reported - SEGMENTS_REPORTED);
    if (join->notes.failed || join->members.failed || join->missing.failed)
        return -ENOMEM;
    return index->rows ? 0 : no_samples(join, d);
}

static void join_keep(void *impl, struct kept *k)
{
    struct kaldi_join *join = impl;

    kept_growing(k, &join->members);
    kept_growing(k, &join->missing);
    kept_growing(k, &join->notes);
}

static int join_step(void *impl, struct diag *d)
{
    struct kaldi_join *join = impl;
    int64_t until = monotonic_ns() + STEP_NS;
    AUTO_FREE struct utterance *u = malloc(sizeof(*u));
    int r = u ? 1 : -ENOMEM;

    (void)d;
    join->in.error = join->segments_in.error = 0; /* the read may succeed now */
    if (r == 1)
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
    .version = "kaldi join 7",
    .identity = join_identity,
    .keep = join_keep,
    .load = join_take,
    .step = join_step,
    .about = join_about,
};

/* ---- opening ---- */

/* The names of the joined files, for messages. */
static int join_source(const struct kaldi_join *join, char **ret)
{
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < join->set->n_columns; i++)
        text_add(&t, "%s%s", i ? " + " : "", blob_source(join->set->column[i].table->base.blob));
    if (join->segments)
        text_add(&t, " + %s", blob_source(join->segments->base.blob));
    return text_finish(&t, ret, NULL);
}

/* Give each column its numbers in a row of the index. 0 or -E2BIG. */
static int place_columns(struct kaldi_join *join)
{
    unsigned *columns = &join->prepared.shape.columns;

    for (unsigned i = 0; i < join->set->n_columns; i++) {
        struct kaldi_column *column = &join->set->column[i];

        column->is_cut = join->segments && column->table->type == KALDI_WAVE;
        column->join = (int)*columns;
        *columns += column->is_cut ? 4 : 1;
        if (*columns > INDEX_COLUMNS)
            return -E2BIG;
    }
    return 0;
}

int kaldi_join_new(const struct kaldi_set *set, const struct index_store *keep,
                   struct kaldi_join **ret)
{
    struct kaldi_join *join = calloc(1, sizeof(*join));
    int r;

    if (!join)
        return -ENOMEM;
    join->set = set;
    join->segments = set->segments;
    r = join_source(join, &join->source);
    join->speaker = table_called(join, "utt2spk");
    join->base = base_index(join);
    join->prepared = (struct prepared){
        .ops = &join_ops,
        .impl = join,
        .keep = keep,
        .type = "tables",
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
        for (unsigned which = 0; which < N_JOINED; which++) {
            text_release(&join->joined[i].list[which].json);
            text_release(&join->joined[i].list[which].shown);
        }
        free(join->joined[i].used);
    }
    kaldi_in_release(&join->in);
    kaldi_in_release(&join->segments_in);
    prepared_forget(&join->prepared);
    prepared_release(&join->prepared);
    free(join->source);
    free(join);
}

void kaldi_join_describe(const struct kaldi_join *join, const char *indent, struct text *t)
{
    const char *line = join->members.data;

    for (size_t len; line && *line; line += len) {
        len = strcspn(line, "\n");
        len += line[len] == '\n';
        text_add(t, "%s%.*s", indent, (int)len, line);
    }
}
