/* Datasets of Kaldi tables in memory: the files that they are made from; every file of every type
 * against a model, in one piece and in many; and input that is missing, bad, damaged or changed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/index/index_bytes.h"
#include "format/kaldi/set/folder.h"
#include "format/registry.h"
#include "support/kaldi_model.h"
#include "support/memory_opener.h"
#include "support/random.h"
#include "support/unit.h"

#define NO_OPTIONS (&(struct format_options){0})

static struct memory_file file_of(const char *path, const struct text *t)
{
    return (struct memory_file){path, t->data, t->len, NULL};
}

static struct memory_file file_of_text(const char *path, const char *text)
{
    return (struct memory_file){path, text, strlen(text), NULL};
}

/* Open a folder; the opener finds its files too. */
static void open_folder(const struct memory_file *file, size_t n,
                        const struct format_options *options, const struct index_store *keep,
                        struct memory_opener *opener, struct kaldi_folder *ret)
{
    memory_opener_init(opener);
    if (!opener->file) {
        opener->file = file;
        opener->n_files = n;
    }
    assert_int_equal(kaldi_open(file, n, options, keep, opener, ret), 0);
}

static const struct dataset *ready_dataset(const struct kaldi_folder *folder, const char *name)
{
    const struct dataset *ds = kaldi_dataset(folder, name);

    if (!ds)
        fail_msg("no dataset %s; there is %s: %s", name,
                 folder->found.n ? folder->found.item[0].name : "none",
                 folder->found.n && folder->found.item[0].reason ? folder->found.item[0].reason
                                                                 : "");
    if (dataset_state(ds) != DATASET_READY)
        fail_msg("%s: %s", name, ds->reason.text);
    return ds;
}

/* ---- files against the model ---- */

/* A batch with differing arrays: requests for its size or its bytes fail with the reason. */
static void check_differing(const struct dataset *ds, const struct file_kind *kind,
                            const struct selection *sel)
{
    struct list_selection list = *(const struct list_selection *)sel;
    AUTO_LAYOUT struct layout l = {0};
    struct diag d = DIAG_INIT;
    uint8_t byte;
    int r;

    list.sel.reason = &d;
    layout_init(&l, ds, &list.sel, NULL);
    r = kind->encoder->layout(&l, kind);
    if (r == 0)
        r = layout_read(READ_WAITS, &l, l.size - 1, 1, &byte, &d);
    if (r != -EDOM)
        fail_msg("%s: %d", kind->suffix, r);
    assert_diag_has(&d, "columns, as others of the batch have, got");
}

static void check_file(const struct dataset *ds, const struct selection *sel,
                       const struct kaldi_model_file *want, unsigned ranges)
{
    const struct file_kind *kind = find_file_kind(ds, sel->single ? SCOPE_SAMPLES : SCOPE_BATCHES,
                                                  want->encoder, want->suffix);
    AUTO_TEXT struct text found = {0};
    struct bytes whole;
    int r;

    if (!kind)
        fail_msg("no %s of %s", want->suffix, want->encoder);
    if (want->fails) {
        check_differing(ds, kind, sel);
        return;
    }
    r = render(READ_WAITS, ds, kind, sel, NULL, &whole);
    if (r < 0)
        fail_msg("%s of %s: %d, %s", want->suffix, want->encoder, r, ds->notes.text.data);
    if (!kaldi_model_unpack(want->encoder, &whole, &found) || found.len != want->bytes.len ||
        (found.len && memcmp(found.data, want->bytes.data, found.len) != 0))
        fail_msg("%s of %s, %llu samples: not as the model: %zu bytes, expected %zu", want->suffix,
                 want->encoder, (unsigned long long)sel->count, found.len, want->bytes.len);
    if (!ranges_agree(ds, kind, sel, &whole, ranges))
        fail_msg("%s of %s: ranges", want->suffix, want->encoder);
    free(whole.at);
}

static void check_selection(const struct dataset *ds, const struct kaldi_model *m,
                            const struct selection *sel, unsigned ranges)
{
    const enum scope scope = sel->single ? SCOPE_SAMPLES : SCOPE_BATCHES;
    AUTO(kaldi_model_files_release) struct kaldi_model_files files;
    size_t n = 0;

    kaldi_model_render(m, sel, &files);
    for (unsigned i = 0; i < ds->n_folders; i++)
        n += strcmp(ds->folder[i].name, "tfrecord") ? ds->folder[i].n_kinds[scope] : 0;
    assert_int_equal(n, files.n);
    for (size_t i = 0; i < files.n; i++)
        check_file(ds, sel, &files.file[i], ranges);
}

static void check_samples(const struct dataset *ds, const struct kaldi_model *m, unsigned ranges)
{
    for (uint64_t i = 0; i < m->samples; i++) {
        char name[KEY_NAME_SIZE];
        uint8_t key[KEY_SIZE];
        uint64_t found = UINT64_MAX;
        struct one_sample one;

        assert_int_equal(dataset_key(ds, i, key), strlen(m->key[i]));
        assert_memory_equal(key, m->key[i], strlen(m->key[i]));
        assert_true(dataset_find(ds, name, dataset_name(ds, i, false, name), &found));
        assert_int_equal(found, i);
        sample_init(&one, i);
        one.sel.file = "/mnt/a/samples/ark/x";
        check_selection(ds, m, &one.sel, ranges);
    }
}

/* Batches of every kind. */
static void check_dataset(const struct dataset *ds, const struct kaldi_model *m, unsigned ranges)
{
    const uint64_t n = m->samples;
    uint64_t *mixed = calloc(n + 5, sizeof(*mixed)), rng = RANDOM_SEED;
    struct list_selection list;

    assert_int_equal(ds->samples, n);
    check_samples(ds, m, ranges / 4);
    for (uint64_t i = 0; i < n; i++)
        mixed[i] = i;
    mixed_init(&list, mixed, n); /* in order */
    list.sel.file = "/mnt/a/batches/seed=1/epoch=0/ark/000000";
    check_selection(ds, m, &list.sel, ranges);
    mixed_init(&list, mixed + n / 3, n - n / 3);
    check_selection(ds, m, &list.sel, ranges);
    for (uint64_t i = 0; i < n + 5 && n; i++)
        mixed[i] = i == 4 ? mixed[3] : random_below(&rng, n);
    mixed_init(&list, mixed, n ? n + 5 : 0);
    list.sel.file = "x";
    check_selection(ds, m, &list.sel, ranges);
    mixed_init(&list, mixed, n ? 2 : 0);
    check_selection(ds, m, &list.sel, ranges);
    mixed_init(&list, mixed, 0);
    check_selection(ds, m, &list.sel, ranges);
    free(mixed);
}

/* Open files: the dataset of that name has what the model has. The model is released. */
static void check_files(const struct memory_file *file, size_t n,
                        const struct format_options *options, const char *name,
                        struct kaldi_model *m)
{
    struct memory_opener opener = {0};
    AUTO(kaldi_release) struct kaldi_folder folder;

    open_folder(file, n, options, NULL, &opener, &folder);
    assert_int_equal(folder.found.n, 1);
    check_dataset(ready_dataset(&folder, name), m, 24);
    kaldi_model_release(m);
}

/* ---- random tables ---- */

static void make_keys(struct kaldi_model *m, uint64_t *rng)
{
    for (uint64_t i = 0; i < m->samples; i++) {
        char key[400];
        size_t len =
            (size_t)snprintf(key, sizeof(key), "%s%llu-%llu",
                             i % 7 == 1   ? ".u/"
                             : i % 7 == 2 ? "a%b.c"
                                          : "utt",
                             (unsigned long long)random_below(rng, 1000), (unsigned long long)i);

        if (i % 9 == 8) { /* a name that is cut */
            memset(key + len, 'k', 300);
            key[len + 300] = '\0';
        }
        m->key[i] = strdup(key);
    }
}

static bool has_doubles(const struct kaldi_made *made)
{
    switch (made->object.store) {
    case KALDI_DM:
    case KALDI_DV:
    case KALDI_DP:
    case KALDI_NPY8:
    case KALDI_BINARY8:
        return true;
    case KALDI_SM:
    case KALDI_SV:
        return made->object.dim[2];
    default:
        return false;
    }
}

/* An object of any store of the type; if not wide, of one with numbers of 4 bytes. Matrices have
 * that many columns, if not 0. */
static void make_object(struct kaldi_made *made, enum kaldi_type type, bool wide, uint64_t columns,
                        uint64_t *rng)
{
    for (;;) {
        const struct kaldi_object *kind = &kaldi_kinds[random_below(rng, N_KALDI_KINDS)];

        if (kind->type != type)
            continue;
        kaldi_make(made, kind, rng);
        if ((wide || !has_doubles(made)) &&
            (type != KALDI_MATRIX || !columns || !made->object.dim[0] ||
             made->object.dim[1] == columns))
            return;
        kaldi_made_release(made);
    }
}

/* A model of one table with random objects. */
static void make_model(struct kaldi_model *m, enum kaldi_type type, uint64_t samples, bool wide,
                       uint64_t columns, uint64_t seed)
{
    struct kaldi_made *made = calloc(samples + 1, sizeof(*made));
    uint64_t rng = RANDOM_SEED + seed;
    struct kaldi_model_column *c;

    kaldi_model_init(m, samples);
    make_keys(m, &rng);
    c = kaldi_model_add(m, "data", true, type);
    for (uint64_t i = 0; i < samples; i++) {
        make_object(&made[i], type, wide, columns, &rng);
        if (type == KALDI_DOUBLE || has_doubles(&made[i]))
            c->real = DTYPE_F8;
    }
    for (uint64_t i = 0; i < samples; i++) {
        kaldi_model_take(&c->cell[i], &made[i], c->real);
        kaldi_made_release(&made[i]);
    }
    free(made);
}

/* The archive of a column; ret_at (may be NULL): where its objects begin. */
static void make_archive(const struct kaldi_model *m, const struct kaldi_model_column *c,
                         struct text *ret, uint64_t *ret_at)
{
    for (uint64_t i = 0; i < m->samples; i++) {
        text_add(ret, "%s ", m->key[i]);
        if (ret_at)
            ret_at[i] = ret->len;
        kaldi_put(ret, c->cell[i].stored.data, c->cell[i].stored.len);
    }
}

static const enum kaldi_type types[] = {
    KALDI_MATRIX,      KALDI_VECTOR,    KALDI_PACKED,    KALDI_INT,       KALDI_FLOAT,
    KALDI_DOUBLE,      KALDI_BOOL,      KALDI_INTS,      KALDI_INT_LISTS, KALDI_INT_PAIRS,
    KALDI_FLOAT_PAIRS, KALDI_POSTERIOR, KALDI_GAUSS_POST};

/* The options for types that objects do not state. */
static struct format_options options_of(enum kaldi_type type)
{
    return (struct format_options){.kaldi_type = type > KALDI_PACKED ? type : KALDI_UNKNOWN};
}

static void check_archive(enum kaldi_type type, bool wide, uint64_t samples)
{
    const struct format_options options = options_of(type);
    AUTO_TEXT struct text archive = {0};
    struct memory_file file;
    struct kaldi_model m;

    make_model(&m, type, samples, wide, 13, type);
    make_archive(&m, &m.column[0], &archive, NULL);
    file = file_of("a.ark", &archive);
    check_files(&file, 1, &options, "a.ark", &m);
}

UNIT_TEST(test_kaldi__archive_of_each_type__files_as_the_model)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        check_archive(types[i], true, 21);
        if (types[i] != KALDI_DOUBLE)
            check_archive(types[i], false, 12);
        check_archive(types[i], true, 1);
    }
}

/* The lines are in another order than the objects; the archive is no dataset of its own. */
UNIT_TEST(test_kaldi__scp_of_each_type__files_as_the_model)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        const struct format_options options = options_of(types[i]);
        AUTO_TEXT struct text archive = {0}, scp = {0};
        uint64_t at[16], n = ARRAY_LEN(at), rng = RANDOM_SEED;
        struct memory_file file[2];
        struct kaldi_model m;

        make_model(&m, types[i], n, true, 5, 100 + i);
        make_archive(&m, &m.column[0], &archive, at);
        for (uint64_t k = 0; k < n; k++) {
            uint64_t other = k + random_below(&rng, n - k), was = at[k];
            struct kaldi_model_cell cell = m.column[0].cell[k];

            at[k] = at[other];
            at[other] = was;
            m.column[0].cell[k] = m.column[0].cell[other];
            m.column[0].cell[other] = cell;
            text_add(&scp, "%s b.ark:%llu\n", m.key[k], (unsigned long long)at[k]);
        }
        file[0] = file_of("sub/b.ark", &archive);
        file[1] = file_of("sub/a.scp", &scp);
        check_files(file, 2, &options, "a.scp", &m);
    }
}

/* ---- batches that cannot be one array ---- */

UNIT_TEST(test_kaldi__columns_differ__batch_fails_archive_not)
{
    AUTO_TEXT struct text archive = {0};
    struct memory_file file;
    struct kaldi_model m;

    make_model(&m, KALDI_MATRIX, 25, true, 0, 3); /* the model says which */
    make_archive(&m, &m.column[0], &archive, NULL);
    file = file_of("a.ark", &archive);
    check_files(&file, 1, NO_OPTIONS, "a.ark", &m);
}

/* ---- text ---- */

static void set_words(struct kaldi_model *m, uint64_t i, const char *key, const char *stored,
                      const char *line, const char *entry)
{
    struct kaldi_model_cell *cell = &m->column[0].cell[i];

    m->key[i] = strdup(key);
    kaldi_put_text(&cell->stored, stored);
    kaldi_put_text(&cell->line, line);
    kaldi_put_text(&cell->entry, entry);
}

UNIT_TEST(test_kaldi__words__files_as_the_model)
{
    static const char text[] = "utt1 hello world\nutt2  two  blanks \nb\nutt4\ta\xc3\xa9 \t\n"
                               "utt.5 the end";
    struct memory_file file = file_of_text("words.ark", text);
    struct kaldi_model m;

    kaldi_model_init(&m, 5);
    kaldi_model_add(&m, "data", true, KALDI_TOKENS);
    set_words(&m, 0, "utt1", "hello world\n", "hello world", "hello world\n");
    set_words(&m, 1, "utt2", " two  blanks \n", "two  blanks", " two  blanks \n");
    set_words(&m, 2, "b", "\n", "", "\n");
    set_words(&m, 3, "utt4", "a\xc3\xa9 \t\n", "a\xc3\xa9", "a\xc3\xa9 \t\n");
    set_words(&m, 4, "utt.5", "the end", "the end", "the end\n");
    check_files(&file, 1, NO_OPTIONS, "words.ark", &m);
}

static void set_floats(struct kaldi_model *m, uint64_t i, const char *key, const char *stored,
                       uint64_t rows, uint64_t columns, const float *v)
{
    struct kaldi_model_cell *cell = &m->column[0].cell[i];

    m->key[i] = strdup(key);
    kaldi_put_text(&cell->stored, stored);
    kaldi_put_text(&cell->entry, stored);
    cell->shape[0][0] = rows;
    cell->shape[0][1] = columns;
    for (uint64_t k = 0; k < rows * columns; k++)
        kaldi_put_value(&cell->value[0], (double)v[k], false);
}

UNIT_TEST(test_kaldi__text_matrix__files_as_the_model)
{
    struct memory_file file =
        file_of_text("a", "k1  [\n  1 2\n  3 4.5 ]\nk2  [ ]\nk3  [\n 5 -6 ]\n");
    struct kaldi_model m;

    kaldi_model_init(&m, 3);
    kaldi_model_add(&m, "data", true, KALDI_MATRIX);
    set_floats(&m, 0, "k1", " [\n  1 2\n  3 4.5 ]\n", 2, 2, (float[]){1, 2, 3, 4.5f});
    set_floats(&m, 1, "k2", " [ ]\n", 0, 0, NULL);
    set_floats(&m, 2, "k3", " [\n 5 -6 ]\n", 1, 2, (float[]){5, -6});
    check_files(&file, 1, NO_OPTIONS, "a", &m);
}

/* ---- audio ---- */

/* A wave as some programs write it: with a chunk before the data, or big-endian. */
static void put_wave(struct text *t, bool odd, bool big, unsigned channels, uint32_t rate,
                     const int16_t *v, size_t frames)
{
    uint32_t data = (uint32_t)(frames * channels * 2);
    const uint32_t number[] = {36 + data + (odd ? 12 : 0), 16,           1,  channels, rate,
                               rate * channels * 2,        channels * 2, 16, 4,        data};
    static const unsigned bytes[] = {4, 4, 2, 2, 4, 4, 2, 2, 4, 4};
    static const char *const before[] = {NULL, "WAVEfmt ", "", "", "", "", "", "", "LIST", "data"};

    kaldi_put_text(t, big ? "RIFX" : "RIFF");
    for (size_t i = 0; i < ARRAY_LEN(number); i++) {
        if (i == 8 && !odd)
            continue;
        if (before[i])
            kaldi_put_text(t, before[i]);
        for (unsigned k = 0; k < bytes[i]; k++)
            kaldi_put_raw(t, number[i] >> 8 * (big ? bytes[i] - 1 - k : k), 1);
        if (i == 8)
            kaldi_put_text(t, "junk");
    }
    for (size_t i = 0; i < frames * channels; i++) {
        kaldi_put_raw(t, (uint16_t)v[i] >> (big ? 8 : 0), 1);
        kaldi_put_raw(t, (uint16_t)v[i] >> (big ? 0 : 8), 1);
    }
}

static void random_audio(int16_t *v, size_t n, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (int16_t)random_next(rng);
}

/* least to most: channels of a wave. */
static void check_waves(unsigned least, unsigned most)
{
    AUTO_TEXT struct text archive = {0};
    struct kaldi_model_column *c;
    uint64_t rng = RANDOM_SEED;
    struct memory_file file;
    struct kaldi_model m;

    kaldi_model_init(&m, 9);
    make_keys(&m, &rng);
    c = kaldi_model_add(&m, "data", true, KALDI_WAVE);
    c->mono = most == 1;
    for (uint64_t i = 0; i < m.samples; i++) {
        unsigned channels = least + (unsigned)random_below(&rng, most - least + 1);
        size_t frames = 1 + (size_t)random_below(&rng, 40);
        int16_t v[3 * 41];

        random_audio(v, frames * channels, &rng);
        kaldi_model_wave(&c->cell[i], channels, 8000 + (uint32_t)i, v, frames);
        put_wave(&c->cell[i].stored, i % 3 == 1, i % 2, channels, 8000 + (uint32_t)i, v, frames);
    }
    make_archive(&m, c, &archive, NULL);
    file = file_of("a.ark", &archive);
    check_files(&file, 1, NO_OPTIONS, "a.ark", &m);
}

UNIT_TEST(test_kaldi__waves__files_as_the_model)
{
    check_waves(1, 1);
    check_waves(2, 2);
    check_waves(1, 3);
}

/* ---- data directories ---- */

/* Features in an archive, words, speakers, and parts of two recordings; utterances that a table
 * lacks are omitted. */
UNIT_TEST(test_kaldi__directory_with_segments__files_as_the_model)
{
    static const char *const keys[] = {"u3", "u1", "u2"};
    static const char *const words[] = {"three", "one  1", ""};
    static const char *const speakers[] = {"b", "a", "a"};
    static const struct {
        unsigned wave, channel, from, to;
    } parts[] = {{1, 1, 0, 400}, {0, 0, 80, 960}, {0, 0, 500, 1000}};
    AUTO_TEXT struct text ark = {0}, scp = {0};
    struct text wav[2] = {{0}};
    struct memory_opener opener = {0};
    struct kaldi_model_column *c[4];
    AUTO(kaldi_release) struct kaldi_folder folder;
    uint64_t rng = RANDOM_SEED;
    AUTO(kaldi_model_release) struct kaldi_model m;
    int16_t v[2][2000];

    kaldi_model_init(&m, 3);
    c[0] = kaldi_model_add(&m, "feats", false, KALDI_MATRIX);
    c[1] = kaldi_model_add(&m, "text", false, KALDI_TOKENS);
    c[2] = kaldi_model_add(&m, "utt2spk", false, KALDI_TOKEN);
    c[3] = kaldi_model_add(&m, "wav", false, KALDI_WAVE);
    c[0]->real = DTYPE_F8;
    c[3]->mono = true;
    for (unsigned i = 0; i < 2; i++) {
        random_audio(v[i], 2000, &rng);
        put_wave(&wav[i], true, i, 1 + i, 1000, v[i], 1000);
    }
    for (unsigned i = 0; i < 3; i++) {
        size_t n = parts[i].to - parts[i].from;
        struct kaldi_made made;
        int16_t part[1000];

        m.key[i] = strdup(keys[i]);
        make_object(&made, KALDI_MATRIX, true, 3, &rng);
        text_add(&ark, "%s ", keys[i]);
        text_add(&scp, "%s feats.ark:%zu\n", keys[i], ark.len);
        kaldi_put(&ark, made.bytes.data, made.bytes.len);
        kaldi_model_take(&c[0]->cell[i], &made, DTYPE_F8);
        kaldi_made_release(&made);
        for (unsigned k = 1; k < 3; k++) {
            struct kaldi_model_cell *cell = &c[k]->cell[i];
            const char *word = k == 1 ? words[i] : speakers[i];

            kaldi_put_text(&cell->line, word);
            text_add(&cell->stored, "%s\n", word);
            text_add(&cell->entry, "%s\n", word);
        }
        for (size_t k = 0; k < n; k++)
            part[k] =
                v[parts[i].wave][(parts[i].from + k) * (1 + parts[i].wave) + parts[i].channel];
        kaldi_model_wave(&c[3]->cell[i], 1, 1000, part, n);
        kaldi_put(&c[3]->cell[i].stored, c[3]->cell[i].wav.data, c[3]->cell[i].wav.len);
    }
    text_add(&ark, "u9 ");
    text_add(&scp, "u9 feats.ark:%zu\n", ark.len);
    kaldi_put_start(&ark, "DM "); /* a left-out sample makes all doubles too */
    kaldi_put_int(&ark, 1);
    kaldi_put_int(&ark, 3);
    kaldi_put(&ark, wav[0].data, 24);
    {
        const struct memory_file file[] = {
            file_of("d/feats.scp", &scp),
            file_of("d/feats.ark", &ark),
            file_of_text("d/text", "u1 one  1\nu2\nu3 three\nu4 none\n"),
            file_of_text("d/utt2spk", "u3 b\nu9 b\nu1 a\nu2 a\n"),
            file_of_text("d/spk2utt", "a u1 u2\nb u3 u9\n"),
            file_of_text("d/wav.scp", "r1 r1.wav\nr2 r2.wav\n"),
            file_of_text("d/segments", "u1 r1 0.08 0.96\nu2 r1 0.5 -1\nu3 r2 0 0.4 1\n"
                                       "u9 r1 3 4\n"),
            file_of("d/r1.wav", &wav[0]),
            file_of("d/r2.wav", &wav[1]),
        };
        AUTO_TEXT struct text t = {0};
        const struct dataset *ds;

        open_folder(file, ARRAY_LEN(file), NO_OPTIONS, NULL, &opener, &folder);
        assert_int_equal(folder.found.n, 1);
        ds = ready_dataset(&folder, "all");
        check_dataset(ds, &m, 24);
        ds->ops->describe(ds, "", &t);
        assert_non_null(strstr(t.data,
                               "\"missing_keys\": {\"text\": {\"count\": 1, \"keys\": [\"u9\"]}, "
                               "\"wav\": {\"count\": 1, \"keys\": [\"u9\"]}}"));
        assert_non_null(
            strstr(t.data, "\"extra\": {\"text\": {\"count\": 1, \"keys\": [\"u4\"]}}"));
        assert_notes_have(&ds->notes, "it starts after the end of the recording");
    }
    text_release(&wav[0]);
    text_release(&wav[1]);
}

/* ---- lines of scp files ---- */

static void put_floats(struct text *t, uint64_t rows, uint64_t columns, uint64_t from_row,
                       uint64_t from_column)
{
    kaldi_put_start(t, "FM ");
    kaldi_put_int(t, (int64_t)rows);
    kaldi_put_int(t, (int64_t)columns);
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t k = 0; k < columns; k++)
            kaldi_put_value(t, (double)((from_row + i) * 10 + from_column + k), false);
}

/* Ranges of a matrix of 9 rows with 6 columns, with values that give their place; also of its text,
 * and of a command's output. */
UNIT_TEST(test_kaldi__ranges__files_as_the_model)
{
    static const struct {
        const char *range;
        uint64_t row, rows, column, columns;
    } cases[] = {{"", 0, 9, 0, 6},          {"[0:8]", 0, 9, 0, 6},     {"[2:4]", 2, 3, 0, 6},
                 {"[8:8,5:5]", 8, 1, 5, 1}, {"[1:7,0:5]", 1, 7, 0, 6}, {"[0:8,2:4]", 0, 9, 2, 3},
                 {"[3:10]", 3, 6, 0, 6},    {"[:,1:2]", 0, 9, 1, 2}};
    static const char *const paths[] = {"m.ark:3", "m.txt:3", "make m |"};
    AUTO_TEXT struct text ark = {0}, text = {0}, output = {0}, scp = {0};
    struct memory_command command = {"make m", NULL, 0, 2};
    struct memory_opener opener = {
        .opener.runs_commands = true, .command = &command, .n_commands = 1};
    struct kaldi_model_column *c;
    AUTO(kaldi_release) struct kaldi_folder folder;
    AUTO(kaldi_model_release) struct kaldi_model m;

    kaldi_put_text(&ark, "k1 ");
    put_floats(&ark, 9, 6, 0, 0);
    put_floats(&output, 9, 6, 0, 0);
    text_add(&text, "k1  [");
    for (unsigned i = 0; i < 54; i++)
        text_add(&text, "%s %u", i % 6 || !i ? "" : "\n", i / 6 * 10 + i % 6);
    text_add(&text, " ]\n");
    command.bytes = output.data;
    command.len = output.len;
    kaldi_model_init(&m, 3 * ARRAY_LEN(cases));
    c = kaldi_model_add(&m, "data", true, KALDI_MATRIX);
    for (size_t i = 0; i < m.samples; i++) {
        size_t k = i / 3;
        struct kaldi_model_cell *cell = &c->cell[i];
        char key[16];

        snprintf(key, sizeof(key), "u%zu", i);
        m.key[i] = strdup(key);
        text_add(&scp, "%s %s%s\n", key, paths[i % 3], cases[k].range);
        if (!k && i % 3 == 1)
            kaldi_put(&cell->stored, text.data + 3, text.len - 3);
        else
            put_floats(&cell->stored, cases[k].rows, cases[k].columns, cases[k].row,
                       cases[k].column);
        kaldi_put(&cell->entry, cell->stored.data, cell->stored.len);
        cell->shape[0][0] = cases[k].rows;
        cell->shape[0][1] = cases[k].columns;
        for (uint64_t row = 0; row < cases[k].rows; row++)
            for (uint64_t column = 0; column < cases[k].columns; column++)
                kaldi_put_value(&cell->value[0],
                                (double)((cases[k].row + row) * 10 + cases[k].column + column),
                                false);
    }
    {
        const struct memory_file file[] = {file_of("a.scp", &scp), file_of("m.ark", &ark),
                                           file_of("m.txt", &text)};

        open_folder(file, 3, NO_OPTIONS, NULL, &opener, &folder);
        check_dataset(ready_dataset(&folder, "a.scp"), &m, 24);
        assert_int_equal(opener.running, 0);
    }
}

/* Commands end in another order than their lines, and few may run at once. */
UNIT_TEST(test_kaldi__commands__rows_in_order)
{
    static const char *const texts[] = {"a", "b", "c", "fails", "d"};
    struct memory_command command[ARRAY_LEN(texts)];
    struct text wave[ARRAY_LEN(texts)] = {{0}};

    for (unsigned most = 0; most < 4; most++) {
        struct memory_opener opener = {.opener.runs_commands = true,
                                       .command = command,
                                       .n_commands = ARRAY_LEN(texts),
                                       .most = most};
        const struct memory_file file = file_of_text(
            "wav.scp", "k0 a |\nk1 b |\nk2 c |\nk3 fails |\nk4 d |\nk5 nobody knows |\nk6 a|\n");
        static const size_t made_by[] = {0, 1, 2, 3, 4, 9, 0};
        const struct dataset *ds;
        AUTO(kaldi_release) struct kaldi_folder folder;

        for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
            int16_t v[] = {(int16_t)i, 1, 2};

            text_release(&wave[i]);
            put_wave(&wave[i], false, false, 1, 8000, v, 3);
            command[i] =
                (struct memory_command){texts[i], i == 3 ? NULL : wave[i].data, wave[i].len, 5 - i};
        }
        open_folder(&file, 1, NO_OPTIONS, NULL, &opener, &folder);
        ds = ready_dataset(&folder, "wav.scp");
        assert_int_equal(ds->samples, 7);
        assert_int_equal(opener.running, 0);
        for (uint64_t i = 0; i < 7; i++) {
            struct diag d = DIAG_INIT;
            struct bytes found = {0};
            struct one_sample one;
            int r;

            sample_init(&one, i);
            one.sel.reason = &d;
            r = field_bytes(ds, "data", &one.sel, &found, &d);
            if (r != (i == 3 || i == 5 ? -EBADMSG : 0))
                fail_msg("row %llu: %d, %s", (unsigned long long)i, r, d.text);
            if (r == 0)
                assert_int_equal(load_le16(found.at), made_by[i]);
            else
                assert_diag_has(&d, "exit status 1");
            free(found.at);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text_release(&wave[i]);
}

UNIT_TEST(test_kaldi__commands_not_allowed__says_how)
{
    const struct memory_file file = file_of_text("wav.scp", "k0 a |\n");
    struct memory_opener opener = {0};
    AUTO(kaldi_release) struct kaldi_folder folder;

    open_folder(&file, 1, NO_OPTIONS, NULL, &opener, &folder);
    assert_int_equal(folder.found.n, 1);
    assert_non_null(strstr(folder.found.item[0].reason, "allow_commands"));
}

/* ---- bad rows ---- */

/* A sample that cannot be read: all its files, and those of a batch with it, fail with the reason,
 * except lists of keys and of places; an archive fails at its end, where the sample is. */
static void check_bad(const struct dataset *ds, uint64_t bad, const char *reason)
{
    const uint64_t sample[] = {0, bad};

    for (enum scope scope = SCOPE_SAMPLES; scope < N_SCOPES; scope++) {
        for (unsigned i = 0; i < ds->n_folders; i++) {
            for (unsigned k = 0; k < ds->folder[i].n_kinds[scope]; k++) {
                const struct file_kind *kind = &ds->folder[i].files[scope][k];
                AUTO_LAYOUT struct layout l = {0};
                struct diag d = DIAG_INIT;
                struct list_selection list;
                struct one_sample one;
                uint8_t byte;
                int r;

                if (kind->field && !kind->field->impl)
                    continue; /* keys and numbers */
                if (scope == SCOPE_BATCHES && kind->field && kind->field->names_file)
                    continue;
                mixed_init(&list, sample, 2);
                sample_init(&one, bad);
                list.sel.reason = one.sel.reason = &d;
                layout_init(&l, ds, scope == SCOPE_SAMPLES ? &one.sel : &list.sel, NULL);
                r = kind->encoder->layout(&l, kind);
                if (r == 0)
                    r = layout_read(READ_WAITS, &l, l.size - 1, 1, &byte, &d);
                if (r != -EBADMSG)
                    fail_msg("%s: %d", kind->suffix, r);
                assert_diag_has(&d, reason);
            }
        }
    }
}

static unsigned reports;
static char reported[1024];

static void take_report(void *ctx, const char *text)
{
    (void)ctx;
    reports++;
    snprintf(reported, sizeof(reported), "%s", text);
}

static const struct {
    const char *name, *text; /* of the table; the opener has m.ark with k0 and k1, and v.ark */
    uint64_t bad;            /* row */
    uint64_t rows;           /* 0: there is no dataset */
    const char *reason;
} bad_tables[] = {
    {"a.scp", "k0 m.ark:3\nk1 none.ark:3\nk2 m.ark:3\n", 1, 3, "a.scp:2: none.ark: there is no"},
    {"a.scp", "k0 m.ark:3\nk1 m.ark:4\n", 1, 2, "a.scp:2: m.ark: byte 4: "},
    {"a.scp", "k0 m.ark:3\nk1 m.ark:9999\n", 1, 2, "m.ark"},
    {"a.scp", "k0 m.ark:3\nk1 m.ark:3[9:9]\nk2 m.ark:3\n", 1, 3, "a.scp:2: expected"},
    {"a.scp", "k0 m.ark:3\nk1 m.ark:3[0:0,0:9]\n", 1, 2, "a.scp:2: expected"},
    {"a.scp", "k0 m.ark:3\nk1 make m |\nk2 m.ark:3\n", 1, 3, "expected -o allow_commands"},
    {"a.scp", "k0 none.ark:3\nk1 m.ark:3\n", 0, 2, "a.scp:1: none.ark: there is no"},
    {"a.scp", "k0 none.ark:3\nk1 none.ark:5\n", 0, 0, "a.scp:1: none.ark: there is no such file"},
    {"a.ark", "k0  [ 1 2 ]\nk1  [ 3 x ]\nk2  [ 1 2 ]\n", 1, 2, "a.ark: byte "},
    {"a.ark", "k0  [ 1 x ]\n", 0, 0, "a.ark: byte "},
};

static void open_bad(size_t i, bool permissive, struct text ark, struct memory_opener *opener,
                     struct kaldi_folder *ret)
{
    const struct format_options options = {.kaldi_permissive = permissive};
    const struct memory_file file[] = {file_of_text(bad_tables[i].name, bad_tables[i].text),
                                       file_of("m.ark", &ark)};

    /* The folder has only the table. */
    *opener = (struct memory_opener){.file = file, .n_files = 2};
    open_folder(file, 1, &options, NULL, opener, ret);
    opener->file = NULL;
    assert_int_equal(ret->found.n, 1);
}

UNIT_TEST(test_kaldi__bad_rows__error_of_their_files)
{
    AUTO_TEXT struct text ark = {0};

    kaldi_put_text(&ark, "k0 ");
    put_floats(&ark, 2, 3, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad_tables); i++) {
        struct memory_opener opener;
        AUTO_TEXT struct text t = {0};
        const struct dataset *ds;
        AUTO(kaldi_release) struct kaldi_folder folder;

        open_bad(i, false, ark, &opener, &folder);
        if (!bad_tables[i].rows) {
            assert_non_null(strstr(folder.found.item[0].reason, bad_tables[i].reason));
            continue;
        }
        ds = ready_dataset(&folder, bad_tables[i].name);
        assert_int_equal(ds->samples, bad_tables[i].rows);
        check_bad(ds, bad_tables[i].bad, bad_tables[i].reason);
        assert_notes_have(&ds->notes, bad_tables[i].reason);
        ds->ops->describe(ds, "", &t);
        assert_non_null(strstr(t.data, "\"unreadable\": 1,\n\"left_out\": 0,"));
        reports = 0;
        assert_int_equal(ds->ops->check(ds, take_report, NULL, NULL), 0);
        assert_int_equal(reports, 1);
        assert_non_null(strstr(reported, bad_tables[i].reason));
    }
}

UNIT_TEST(test_kaldi__bad_rows_and_p__left_out)
{
    AUTO_TEXT struct text ark = {0};

    kaldi_put_text(&ark, "k0 ");
    put_floats(&ark, 2, 3, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad_tables); i++) {
        struct memory_opener opener;
        AUTO_TEXT struct text t = {0};
        const struct dataset *ds;
        AUTO(kaldi_release) struct kaldi_folder folder = {0};

        if (!bad_tables[i].rows)
            continue;
        open_bad(i, true, ark, &opener, &folder);
        ds = ready_dataset(&folder, bad_tables[i].name);
        assert_int_equal(ds->samples, bad_tables[i].rows - 1);
        assert_notes_have(&ds->notes, bad_tables[i].reason);
        ds->ops->describe(ds, "", &t);
        assert_non_null(strstr(t.data, "\"unreadable\": 0,\n\"left_out\": 1,"));
        reports = 0;
        assert_int_equal(ds->ops->check(ds, take_report, NULL, NULL), 0);
        assert_int_equal(reports, 0);
    }
}

UNIT_TEST(test_kaldi__key_twice__renamed)
{
    const struct memory_file file = file_of_text("a.ark", "k 1\nl 2\nk 3\nk 4\nk~2 5\n");
    struct memory_opener opener = {0};
    AUTO(kaldi_release) struct kaldi_folder folder;
    AUTO(kaldi_model_release) struct kaldi_model m;
    static const char *const keys[] = {"k", "l", "k~3", "k~4", "k~2"};

    kaldi_model_init(&m, 5);
    kaldi_model_add(&m, "data", true, KALDI_INT);
    for (unsigned i = 0; i < 5; i++) {
        struct kaldi_model_cell *cell = &m.column[0].cell[i];

        m.key[i] = strdup(keys[i]);
        text_add(&cell->stored, "%u\n", i + 1);
        text_add(&cell->entry, "%u\n", i + 1);
        kaldi_put_raw(&cell->value[0], i + 1, 4);
    }
    open_folder(&file, 1, NO_OPTIONS, NULL, &opener, &folder);
    check_dataset(ready_dataset(&folder, "a.ark"), &m, 24);
    assert_notes_have(&kaldi_dataset(&folder, "a.ark")->notes, "row 3 has the key of row 1");
}

/* ---- the kept index ---- */

/* An archive, and an scp file with a range of one of its objects. */
struct kept_tables {
    struct text ark, scp;
    struct memory_file file[2]; /* the opener's */
};

static struct kept_tables make_kept_tables(void)
{
    struct kept_tables t = {0};

    kaldi_put_text(&t.ark, "k0 ");
    put_floats(&t.ark, 3, 2, 0, 0);
    kaldi_put_text(&t.ark, "k1 ");
    put_floats(&t.ark, 1, 2, 7, 0);
    text_add(&t.scp, "k0 m.ark:3\nk1 m.ark:3[1:2]\nk2 m.ark:%zu\nk3 m.ark:5\n", t.ark.len - 23);
    t.file[0] = file_of("m.ark", &t.ark);
    t.file[1] = file_of("a.scp", &t.scp);
    return t;
}

static void kept_tables_release(struct kept_tables *t)
{
    text_release(&t->ark);
    text_release(&t->scp);
}

#define AUTO_KEPT AUTO(kept_tables_release)

static void open_kept(const struct kept_tables *t, bool scp, struct memory_keep *keep,
                      struct memory_opener *opener, struct kaldi_folder *ret)
{
    *opener = (struct memory_opener){.file = t->file, .n_files = 2};
    open_folder(&t->file[scp], 1, NO_OPTIONS, &keep->keep, opener, ret);
    assert_int_equal(ret->found.n, 1);
}

/* Read the first bytes of a file of any size. 0 or -errno. */
static int read_some(const struct dataset *ds, const struct file_kind *kind,
                     const struct selection *sel, uint8_t *buf, size_t capacity, size_t *ret_len,
                     bool *ret_whole)
{
    AUTO_LAYOUT struct layout l = {0};
    int r;

    layout_init(&l, ds, sel, NULL);
    r = kind->encoder->layout(&l, kind);
    if (r < 0)
        return r;
    if (!strcmp(kind->folder, "npz") && l.size > 1 << 20)
        return -EFBIG; /* checksums read all of it */
    *ret_len = (size_t)min_u64(capacity, l.size);
    *ret_whole = *ret_len == l.size;
    if (l.size > capacity)
        layout_read(READ_WAITS, &l, l.size - capacity, capacity, buf, NULL);
    return layout_read(READ_WAITS, &l, 0, *ret_len, buf, NULL);
}

/* Are the bytes a matrix or vector as Kaldi writes it, and nothing else? */
static bool is_written(const uint8_t *bytes, size_t len)
{
    uint64_t columns = 1, head = 10;

    if (len < 10 || bytes[0] || bytes[1] != 'B' || !memchr("FD", bytes[2], 2))
        return false;
    if (bytes[3] == 'M' && len >= 15) {
        columns = load_le32(bytes + 11);
        head = 15;
    }
    return len == head + load_le32(bytes + 6) * columns * (bytes[2] == 'D' ? 8 : 4);
}

static bool is_piece(const struct kept_tables *t, const uint8_t *bytes, size_t len)
{
    return !len || memmem(t->ark.data, t->ark.len, bytes, len) ||
           memmem(t->scp.data, t->scp.len, bytes, len);
}

/* Whatever an index contains, bytes of objects are bytes of the files, perhaps with a newline, or
 * the part that counts as Kaldi would write it. */
static void check_hostile(const struct dataset *ds, const struct kept_tables *t)
{
    uint8_t buf[2048];

    for (uint64_t row = 0; row < min_u64(ds->samples, 6); row++) {
        for (unsigned i = 0; i < ds->n_folders; i++) {
            for (unsigned k = 0; k < ds->folder[i].n_kinds[SCOPE_SAMPLES]; k++) {
                const struct file_kind *kind = &ds->folder[i].files[SCOPE_SAMPLES][k];
                struct one_sample one;
                bool whole = false;
                size_t len = 0;
                int r;

                sample_init(&one, row);
                r = read_some(ds, kind, &one.sel, buf, sizeof(buf), &len, &whole);
                if (r != 0 && r != -EBADMSG && r != -EFBIG)
                    fail_msg("%s: %d", kind->suffix, r);
                if (r < 0 || strcmp(kind->folder, "raw") != 0 || is_piece(t, buf, len))
                    continue;
                if (!(whole && is_written(buf, len)) &&
                    !(whole && buf[len - 1] == '\n' && is_piece(t, buf, len - 1)))
                    fail_msg("row %llu: %zu bytes that are not of the file",
                             (unsigned long long)row, len);
            }
        }
    }
}

static void check_hostile_batches(const struct dataset *ds)
{
    const uint64_t all[] = {0, 1, 2, 3};
    uint8_t buf[2048];

    for (unsigned i = 0; i < ds->n_folders; i++) {
        for (unsigned k = 0; k < ds->folder[i].n_kinds[SCOPE_BATCHES]; k++) {
            struct list_selection list;
            bool whole;
            size_t len;

            mixed_init(&list, all, min_u64(ds->samples, 4));
            read_some(ds, &ds->folder[i].files[SCOPE_BATCHES][k], &list.sel, buf, sizeof(buf), &len,
                      &whole);
        }
    }
}

/* A checksum that fits the bytes. */
static void repair(struct memory_keep *keep)
{
    store_le32(keep->bytes + AT_CRC,
               index_checksum(0, keep->bytes + AT_COLUMNS, keep->size - AT_COLUMNS));
}

/* Make the files with an index made again. */
static void render_raw(const struct kaldi_folder *folder, bool scp, struct text *ret)
{
    const struct dataset *ds = ready_dataset(folder, scp ? "a.scp" : "m.ark");
    const struct file_kind *kind = find_file_kind(ds, SCOPE_SAMPLES, "raw", ".data.raw");

    for (uint64_t i = 0; i < ds->samples; i++) {
        struct one_sample one;
        struct bytes bytes = {0};
        int r;

        sample_init(&one, i);
        r = render(READ_WAITS, ds, kind, &one.sel, NULL, &bytes);
        text_add(ret, "%d:", r);
        if (r == 0)
            kaldi_put(ret, bytes.at, bytes.len);
        free(bytes.at);
    }
}

static void damage_kept(const struct kept_tables *t, bool scp, size_t at, uint8_t change,
                        bool repaired, const struct memory_keep *good, const struct text *want)
{
    AUTO_TEXT struct text found = {0};
    struct memory_opener opener;
    AUTO(kaldi_release) struct kaldi_folder folder;
    AUTO(memory_keep_release) struct memory_keep keep;

    memory_keep_init(&keep, false);
    keep.size = good->size;
    keep.bytes = malloc(keep.size);
    memcpy(keep.bytes, good->bytes, keep.size);
    keep.bytes[at] ^= change;
    if (repaired)
        repair(&keep);
    open_kept(t, scp, &keep, &opener, &folder);
    assert_int_equal(keep.loads, 1);
    if (!repaired) {
        assert_true(keep.removes == 1 && keep.saves == 1);
        render_raw(&folder, scp, &found);
        assert_int_equal(found.len, want->len);
        assert_memory_equal(found.data, want->data, want->len);
    } else if (dataset_state(folder.found.item[0].ds) == DATASET_READY) {
        check_hostile(folder.found.item[0].ds, t);
        check_hostile_batches(folder.found.item[0].ds);
    }
}

#ifdef SLOW_BUILD
#define DAMAGE_STEP 3
#else
#define DAMAGE_STEP 1 /* each byte */
#endif

UNIT_TEST(test_kaldi__kept_index_damaged__nothing_foreign)
{
    AUTO_KEPT struct kept_tables t = make_kept_tables();

    for (unsigned scp = 0; scp < 2; scp++) {
        AUTO_TEXT struct text want = {0};
        struct memory_opener opener;
        struct kaldi_folder folder;
        AUTO(memory_keep_release) struct memory_keep good;

        memory_keep_init(&good, false);
        open_kept(&t, scp, &good, &opener, &folder);
        assert_int_equal(good.saves, 1);
        render_raw(&folder, scp, &want);
        kaldi_release(&folder);
        for (size_t at = 0; at < good.size; at += DAMAGE_STEP) {
            damage_kept(&t, scp, at, 1, false, &good, &want);
            for (size_t bit = 0; bit < 8; bit += 1 + at % 2)
                damage_kept(&t, scp, at, (uint8_t)(1u << bit), true, &good, &want);
            damage_kept(&t, scp, at, 0xff, true, &good, &want);
        }
    }
}

UNIT_TEST(test_kaldi__kept_index__taken_until_something_changes)
{
    struct memory_opener opener;
    struct kaldi_folder folder;
    AUTO_KEPT struct kept_tables t = make_kept_tables();

    for (unsigned scp = 0; scp < 2; scp++) {
        AUTO_TEXT struct text first = {0}, again = {0};
        AUTO(memory_keep_release) struct memory_keep keep;

        memory_keep_init(&keep, false);
        open_kept(&t, scp, &keep, &opener, &folder);
        render_raw(&folder, scp, &first);
        kaldi_release(&folder);
        open_kept(&t, scp, &keep, &opener, &folder);
        render_raw(&folder, scp, &again);
        assert_int_equal(kaldi_dataset(&folder, scp ? "a.scp" : "m.ark")->notes.n > 0, scp);
        kaldi_release(&folder);
        assert_true(keep.saves == 1 && keep.loads == 1 && keep.removes == 0);
        assert_int_equal(first.len, again.len);
        assert_memory_equal(first.data, again.data, first.len);
        if (scp) { /* the archive that it names */
            t.ark.data[t.ark.len - 1] ^= 1;
            open_kept(&t, scp, &keep, &opener, &folder);
            kaldi_release(&folder);
            assert_true(keep.saves == 2 && keep.loads == 2 && keep.removes == 1);
        }
    }
}

/* A missing file may exist at the next mount. */
UNIT_TEST(test_kaldi__file_missing__not_kept)
{
    struct memory_opener opener = {0};
    struct kaldi_folder folder;
    struct memory_file file[2];
    AUTO(memory_keep_release) struct memory_keep keep;
    AUTO_KEPT struct kept_tables t = make_kept_tables();

    memory_keep_init(&keep, false);
    file[0] = file_of_text("a.scp", "k0 m.ark:3\nk1 n.ark:3\n");
    file[1] = t.file[0];
    open_folder(file, 2, NO_OPTIONS, &keep.keep, &opener, &folder);
    ready_dataset(&folder, "a.scp");
    kaldi_release(&folder);
    assert_int_equal(keep.saves, 0);
}

/* ---- files that change, reads that fail ---- */

UNIT_TEST(test_kaldi__file_changed__estale)
{
    struct blob_faults faults = {0};
    struct memory_opener opener;
    struct kaldi_folder folder;
    AUTO_KEPT struct kept_tables t = make_kept_tables();
    AUTO(memory_keep_release) struct memory_keep keep;

    t.file[0].faults = &faults;
    memory_keep_init(&keep, true);
    for (unsigned scp = 0; scp < 2; scp++) {
        static const char *const changed = "was changed";
        const uint64_t sample[] = {0, 1, 2};
        const struct dataset *ds;
        struct list_selection list;

        faults.stale = false;
        open_kept(&t, scp, &keep, &opener, &folder);
        ds = ready_dataset(&folder, scp ? "a.scp" : "m.ark");
        faults.stale = true;
        for (unsigned i = 0; i < ds->n_folders; i++) {
            for (unsigned k = 0; k < ds->folder[i].n_kinds[SCOPE_BATCHES]; k++) {
                const struct file_kind *kind = &ds->folder[i].files[SCOPE_BATCHES][k];
                bool reads = !strstr(kind->suffix, "_len") && !strstr(kind->suffix, "index") &&
                             !strstr(kind->suffix, "key") && !strstr(kind->suffix, ".scp");
                struct bytes found = {0};

                mixed_init(&list, sample, 2 + scp);
                if (render(READ_WAITS, ds, kind, &list.sel, NULL, &found) != (reads ? -ESTALE : 0))
                    fail_msg("%s", kind->suffix);
                free(found.at);
            }
        }
        kaldi_release(&folder);
        if (scp)
            continue;
        open_kept(&t, scp, &keep, &opener, &folder); /* while it is indexed */
        assert_int_equal(dataset_state(folder.found.item[0].ds), DATASET_FAILED);
        assert_int_equal(folder.found.item[0].ds->failed, -ESTALE);
        assert_diag_has(&folder.found.item[0].ds->reason, changed);
        kaldi_release(&folder);
    }
}

/* The size of a file that is written takes writing it: what its readers get in pieces is that. */
UNIT_TEST(test_kaldi__written_batch__each_object_read_once)
{
    static const uint64_t counts[] = {1, 2, 50};
    uint64_t sample[50];

    for (uint64_t i = 0; i < ARRAY_LEN(sample); i++)
        sample[i] = i;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct blob_faults faults = {0};
        AUTO_TEXT struct text ark = {0};
        struct memory_file file;
        struct memory_opener opener;
        AUTO(kaldi_release) struct kaldi_folder folder;
        struct list_selection list;
        struct bytes found = {0};
        const struct file_kind *kind;
        const struct dataset *ds;

        for (uint64_t k = 0; k < ARRAY_LEN(sample); k++) {
            text_add(&ark, "k%02u ", (unsigned)k);
            put_floats(&ark, 9, 2, k, 0);
        }
        file = file_of("m.ark", &ark);
        file.faults = &faults;
        opener = (struct memory_opener){.file = &file, .n_files = 1};
        open_folder(&file, 1, NO_OPTIONS, NULL, &opener, &folder);
        ds = ready_dataset(&folder, "m.ark");
        kind = find_file_kind(ds, SCOPE_BATCHES, "ark,t", ".ark");
        list_selection_init(&list, sample, counts[i]);
        faults.reads = 0;
        assert_int_equal(render(READ_WAITS, ds, kind, &list.sel, NULL, &found), 0);
        assert_true(ranges_agree(ds, kind, &list.sel, &found, 20));
        assert_int_equal(faults.reads, counts[i]);
        free(found.at);
        found.at = NULL;
        faults.stale = true; /* the objects that are kept are of the old version */
        assert_int_equal(render(READ_WAITS, ds, kind, &list.sel, NULL, &found), -ESTALE);
        free(found.at);
    }
}

/* Read number n fails, for n = 1, 2, 3 ... until none does. */
UNIT_TEST(test_kaldi__read_fails__error_or_nothing)
{
    AUTO_KEPT struct kept_tables t = make_kept_tables();

    for (unsigned scp = 0; scp < 2; scp++) {
        for (uint64_t n = 1;; n++) {
            struct blob_faults faults = {.fail_read = n};
            struct memory_opener opener;
            struct kaldi_folder folder;
            AUTO(memory_keep_release) struct memory_keep keep;
            struct bytes found = {0};
            const struct dataset *ds;
            struct one_sample one;
            int r = -EIO;

            memory_keep_init(&keep, true);
            t.file[0].faults = t.file[1].faults = &faults;
            open_kept(&t, scp, &keep, &opener, &folder);
            ds = folder.found.item[0].ds;
            sample_init(&one, 1);
            if (!ds)
                assert_non_null(folder.found.item[0].reason);
            else if (dataset_state(ds) == DATASET_FAILED)
                assert_true(ds->reason.set);
            else
                r = field_bytes(ds, "data", &one.sel, &found, NULL);
            free(found.at);
            kaldi_release(&folder);
            assert_true(r == 0 || r == -EIO || r == -EBADMSG);
            if (faults.reads >= n)
                continue;
            assert_int_equal(r, 0);
            assert_true(n > 3);
            break;
        }
    }
}

/* ---- which files ---- */

/* The format that gets a file: the first with the strongest claim. */
static const char *claimed_by(const char *name, const char *head, size_t len, bool whole)
{
    const struct probed_file file = {
        .name = name, .head = (const uint8_t *)head, .len = len, .whole = whole, .size = len};
    enum claim best = CLAIM_NONE;
    const char *ret = "none";

    for (unsigned i = 0; i < n_formats; i++) {
        enum claim claim = formats[i]->probe(&file);

        if (claim > best) {
            best = claim;
            ret = formats[i]->name;
        }
    }
    return ret;
}

#define HEAD(text) text, sizeof(text) - 1

UNIT_TEST(test_probe__heads__whose)
{
    static const struct {
        const char *name, *head;
        size_t len;
        const char *want;
    } cases[] = {
        /* archives */
        {"x", HEAD("utt1 \0BFM \4\1\0\0\0"), "kaldi"},
        {"x", HEAD("1 \0B\4\1\0\0\0"), "kaldi"},
        {"x", HEAD("\0BFV \4\1\0\0\0"), "kaldi"},
        {"x", HEAD("\0B\0\0\4\1\0\0\0"), "none"},
        {"x", HEAD("utt1 RIFF\0\0\0\0WAVE"), "kaldi"},
        {"x", HEAD("utt1\tRIFX\0\0\0\0WAVE"), "kaldi"},
        {"x", HEAD("utt1  [\n  1 2\n  3 4 ]\n"), "kaldi"},
        {"x", HEAD("utt1  [ 1.5 2 ]\n"), "kaldi"},
        {"x", HEAD("1 [ -1 2 ]\n"), "kaldi"},
        {"x.ark", HEAD("utt1 hello\n"), "kaldi"},
        {"x.ark", HEAD("1 2\n3 4\n"), "kaldi"},
        {"x.ark", HEAD("broken"), "kaldi"},
        /* scp files */
        {"x", HEAD("utt1 raw.1.ark:17\nutt2 raw.1.ark:99\n"), "kaldi"},
        {"x", HEAD("1089 raw.1.ark:17\n1090 raw.1.ark:99\n"), "kaldi"},
        {"x", HEAD("utt1 raw.1.ark:17[0:4,1:2]\n"), "kaldi"},
        {"x", HEAD("utt1 sph2pipe -f wav a.sph |\nutt2 raw.1.ark:99\n"), "kaldi"},
        {"x.scp", HEAD("utt1 a.wav\n"), "kaldi"},
        {"wav.scp", HEAD("utt1 a.wav"), "kaldi"},
        /* names of data directories */
        {"text", HEAD("utt1 hello world\n"), "kaldi"},
        {"utt2spk", HEAD("utt1 spk1\n"), "kaldi"},
        {"text", HEAD("1 1:2 3:4\n2 2:3\n"), "kaldi"}, /* clock times, rather than libsvm */
        {"utt2dur", HEAD("utt1 1.5\n"), "kaldi"},
        {"segments", HEAD("utt1 rec1 0 1\n"), "kaldi"},
        {"frame_shift", HEAD("0.01\n"), "kaldi"},
        /* audio that an scp file may name */
        {"a.wav", HEAD("RIFF\x24\0\0\0WAVEfmt "), "kaldi"},
        {"a.wav", HEAD("RIFX\0\0\0\x24WAVEfmt "), "kaldi"},
        /* other text */
        {"README", HEAD("This is a corpus.\nSee http://www.openslr.org:80 for more.\n"), "none"},
        {"README", HEAD("Corpus: 1000 hours\n\nutt1 raw.ark:17\n"), "none"},
        {"notes", HEAD("TODO [ ] one\nTODO [x] two\n"), "none"},
        {"x", HEAD("utt1 hello world\n"), "none"},
        {"x", HEAD("utt1 a.wav\nutt2 b.wav\n"), "none"},
        {"x.json", HEAD("{\"a\": [1, 2]}\n"), "none"},
        {"run.sh", HEAD("cat a |\n  sort\n"), "none"},
        {"x", HEAD(""), "none"},
        {"text", HEAD(""), "none"},
        {"x", HEAD("\1\2\0\0"), "none"},
        {"x", HEAD("a.out raw.1.ark:17\nb raw.1.ark:\0\0 99\n"), "none"},
        {"x", HEAD("utt1  [ 1 2 ]\n\0\0\0"), "none"},
        {"x", HEAD("\n\n"), "none"},
        {"x", HEAD("\x89PNG\r\n\x1a\n"), "none"},
        /* libsvm text, with numbers in the place of keys */
        {"x", HEAD("1 2:3\n0 1:4 2:5\n"), "libsvm"},
        {"x", HEAD("1 2:3 4:17\n"), "libsvm"},
        {"x", HEAD("0 10:1\n1 11:1\n"), "libsvm"},
        {"x", HEAD("1 qid:7 2:3\n"), "libsvm"},
        {"x.txt", HEAD("-1 3:1 11:1 14:1\n+1 5:1\n"), "libsvm"},
        {"x", HEAD("5\n6\n"), "libsvm"},
        {"x", HEAD("\0\0\x08\x01\0\0\0\1x"), "idx"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *found = claimed_by(cases[i].name, cases[i].head, cases[i].len, true);

        if (strcmp(found, cases[i].want) != 0)
            fail_msg("%s '%s': %s, expected %s", cases[i].name, cases[i].head, found,
                     cases[i].want);
    }
}

/* A head that ends anywhere after its marks still belongs to the format. */
UNIT_TEST(test_probe__cut_anywhere__kaldi)
{
    static const char scp[] = "utt1 raw.1.ark:17\nutt2 raw.1.ark:99\nutt3 cat a b |\n";
    static const char text[] = "utt1  [\n  1 2\n  3 4 ]\n";

    for (size_t len = 18; len < sizeof(scp); len++)
        assert_string_equal(claimed_by("x", scp, len, false), "kaldi");
    for (size_t len = 11; len < sizeof(text); len++)
        assert_string_equal(claimed_by("x", text, len, false), "kaldi");
}

/* ---- datasets of a folder ---- */

static const struct {
    const char *name[6], *text[6];
    const char *want; /* datasets and their fields that files are named by; errors with '!' */
} folders[] = {
    {{"a.ark", "b.ark"}, {"k 1\n", "k 2\n"}, "a.ark(data) b.ark(data) "},
    {{"a.ark", "b.scp"}, {"k 1\n", "k a.ark:2\n"}, "b.scp(data) "},
    {{"a.ark", "b.scp", "c.ark"}, {"k 1\n", "k a.ark:2\n", "l 1\n"}, "b.scp(data) c.ark(data) "},
    {{"a.ark", "b.scp", "c.scp"},
     {"k 1\n", "k a.ark:2\n", "l a.ark:2\n"},
     "b.scp(data) c.scp(data) "},
    {{"text"}, {"k hello\n"}, "text(data) "},
    {{"text", "utt2spk"}, {"k hello\n", "k s\n"}, "all(text utt2spk) "},
    {{"text", "utt2spk", "spk2utt", "frame_shift"},
     {"k a\n", "k s\n", "s k\n", "0.01\n"},
     "all(text utt2spk) "},
    {{"text", "spk2utt"}, {"k a\n", "s k\n"}, "all(text) "},
    {{"text", "utt2dur", "x.ark"}, {"k a\n", "k 1.5\n", "k 1\n"}, "x.ark(data) all(text utt2dur) "},
    {{"feats.scp", "a.ark", "text"}, {"k a.ark:2\n", "k [ 1 2 ]\n", "k x\n"}, "all(feats text) "},
    {{"text", "utt2dur", "utt2spk"}, {"k a\n", "k long\n", "k s\n"}, "!utt2dur !all "},
    {{"text", "feats.scp"}, {"k a\n", "k none.ark:5\n"}, "!feats.scp !all "},
    {{"a.ark", "b.ark"}, {"k 1\n", "k"}, "!b.ark a.ark(data) "},
    {{"a.scp"}, {"k none.ark:4\n"}, "!a.scp "},
    {{"a.scp"}, {"no-value\n"}, "!a.scp "},
    {{"a.1.ark", "a.10.ark", "a.2.ark"},
     {"k 1\n", "m 3\n", "l 2\n"},
     "a(data) a.1.ark(data) a.10.ark(data) a.2.ark(data) "},
    {{"a.1.ark", "a.2.ark"}, {"k 1\n", "l x\n"}, "a.1.ark(data) a.2.ark(data) "},
    {{"a.1.scp", "a.2.scp", "x.ark"},
     {"k x.ark:2\n", "k x.ark:2\n", "k 1\n"},
     "a(data) a.1.scp(data) a.2.scp(data) "},
    {{"lda.mat", "a.1.mat", "a.2.mat"},
     {" [\n  1 2 ]\n", "[ 1 2 ]\n", "[ 1 ]"},
     "lda.mat(data) a.1.mat(data) a.2.mat(data) "},
    {{"lat.txt"}, {"k\n0 1 2 3,4,\n1 0,0,\n\n"}, "!lat.txt "},
    {{"feats.scp", "utt2spk", "spk2gender"}, {"k a.ark:2\n", "k s\n", "s f\n"}, "!feats.scp !all "},
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sort words. */
static void sort_words(const char *words, struct text *ret)
{
    char *word[16], *rest = strdup(words), *start = rest;
    size_t n = 0;

    for (char *w; (w = strsep(&rest, ")"));)
        word[n++] = w + (*w == ' ');
    qsort(word, n, sizeof(*word), by_name);
    for (size_t i = 0; i < n; i++)
        text_add(ret, "%s|", word[i]);
    free(start);
}

static void list_found(const struct kaldi_folder *folder, struct text *ret)
{
    for (size_t i = 0; i < folder->found.n; i++) {
        const struct dataset *ds = folder->found.item[i].ds;
        bool first = true;

        if (!ds) {
            text_add(ret, "!%s ", folder->found.item[i].name);
            continue;
        }
        if (dataset_state(ds) != DATASET_READY)
            fail_msg("%s: %s", folder->found.item[i].name, ds->reason.text);
        text_add(ret, "%s(", folder->found.item[i].name);
        for (unsigned k = 0; k < ds->n_fields; k++) {
            if (strcmp(ds->field[k].ext, "ark") != 0 || strcmp(ds->field[k].folder, "ark") != 0)
                continue;
            text_add(ret, "%s%s", first ? "" : " ", ds->field[k].name);
            first = false;
        }
        text_add(ret, ") ");
    }
}

UNIT_TEST(test_folder__files__datasets)
{
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        AUTO_TEXT struct text found = {0}, sorted = {0}, want = {0};
        struct memory_opener opener = {0};
        struct memory_file file[6];
        AUTO(kaldi_release) struct kaldi_folder folder;
        size_t n = 0;

        for (; n < 6 && folders[i].name[n]; n++)
            file[n] = file_of_text(folders[i].name[n], folders[i].text[n]);
        open_folder(file, n, NO_OPTIONS, NULL, &opener, &folder);
        list_found(&folder, &found);
        sort_words(found.data ? found.data : "", &sorted);
        sort_words(folders[i].want, &want);
        assert_string_equal(sorted.data, want.data);
    }
}

/* A NUL in the place of a letter is no type of an object. */
UNIT_TEST(test_format__single_objects__by_their_letters)
{
    assert_true(kaldi_is_single((const uint8_t *)"\0BFM ", 5));
    assert_false(kaldi_is_single((const uint8_t *)"\0B\0M ", 5));
    assert_false(kaldi_is_single((const uint8_t *)"\0BF\0 ", 5));
}

/* join= makes tables fields of the data directory, or `all` of their common keys. */
UNIT_TEST(test_folder__join__fields_of_all)
{
    static const struct {
        const char *join, *spk;
        const char *want; /* of `all`, or a piece of its error */
        uint64_t samples;
    } cases[] = {
        {"t+ali", "utt2spk", "utt2spk ali t ", 2},
        {"ali.1.ark", "utt2spk", "utt2spk ali.1 ", 1},
        {"ali+none", "utt2spk", "join=none: no table has that name here. So all would lack", 0},
        {"typo", "x.ark", "join=typo: no table has that name here", 0},
        {"ali+x", "x.ark", "ali x ", 2},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct memory_file file[] = {
            file_of_text(cases[i].spk, "u1 s\nu2 s\nu3 r\n"),
            file_of_text("ali.1.ark", "u1 1 2\n"),
            file_of_text("ali.2.ark", "u2 3 4\n"),
            file_of_text("t.ark", "s [ 1 2 ]\nr [ 3 4 ]\n"),
        };
        const struct format_options options = {.kaldi_join = cases[i].join};
        struct memory_opener opener = {0};
        AUTO_TEXT struct text found = {0};
        AUTO(kaldi_release) struct kaldi_folder folder;
        const struct dataset *ds;

        open_folder(file, ARRAY_LEN(file), &options, NULL, &opener, &folder);
        ds = kaldi_dataset(&folder, "all");
        for (unsigned k = 0; ds && k < ds->n_fields; k++)
            if (!strcmp(ds->field[k].ext, "scp"))
                text_add(&found, "%s ", ds->field[k].name);
        for (size_t k = 0; k < folder.found.n; k++)
            if (!strcmp(folder.found.item[k].name, "all") && folder.found.item[k].reason)
                text_add(&found, "%s", folder.found.item[k].reason);
        assert_non_null(strstr(found.data ? found.data : "", cases[i].want));
        if (ds)
            assert_int_equal(ds->samples, cases[i].samples);
    }
}

/* Tables keyed by speaker or by recording; the join finds out which. */
UNIT_TEST(test_folder__tables_by_speaker_and_recording__joined)
{
    const struct memory_file file[] = {
        file_of_text("utt2spk", "u1 s1\nu2 s2\nu3 s1\n"),
        file_of_text("spk2gender", "s1 f\ns2 m\n"),
        file_of_text("segments", "u1 r2 0 1\nu2 r1 0 1\nu3 r2 1 2\n"),
        file_of_text("reco2dur", "r1 10\nr2 20.5\n"),
        file_of_text("utt2num_frames", "u3 33\nu2 22\nu1 11\n"),
    };
    static const struct {
        const char *genders;
        double durations[3];
        int32_t frames[3];
    } want = {"fmf", {20.5, 10, 20.5}, {11, 22, 33}};
    const uint64_t all[] = {0, 1, 2};
    struct memory_opener opener = {0};
    AUTO(kaldi_release) struct kaldi_folder folder;
    struct list_selection list;
    const struct dataset *ds;
    struct bytes found;

    open_folder(file, ARRAY_LEN(file), NO_OPTIONS, NULL, &opener, &folder);
    ds = ready_dataset(&folder, "all");
    assert_int_equal(ds->samples, 3);
    mixed_init(&list, all, 3);
    assert_int_equal(field_bytes(ds, "spk2gender", &list.sel, &found, NULL), 0);
    assert_int_equal(found.len, 3);
    assert_memory_equal(found.at, want.genders, 3);
    free(found.at);
    assert_int_equal(field_bytes(ds, "reco2dur", &list.sel, &found, NULL), 0);
    assert_int_equal(found.len, 24);
    assert_memory_equal(found.at, want.durations, 24);
    free(found.at);
    assert_int_equal(field_bytes(ds, "utt2num_frames", &list.sel, &found, NULL), 0);
    assert_int_equal(found.len, 12);
    assert_memory_equal(found.at, want.frames, 12);
    free(found.at);
}

/* A line that cannot be read does not count as missing. */
UNIT_TEST(test_folder__read_fails__no_sample_is_lost)
{
    struct memory_file file[] = {
        file_of_text("segments", "u1 r 0 0.5\nu2 r 0.5 1\nu3 r 1 2\n"),
        file_of_text("utt2spk", "u1 s1\nu2 s2\nu3 s1\n"),
        file_of_text("spk2gender", "s1 f\ns2 m\n"),
        file_of_text("reco2dur", "r 10\n"),
    };

    for (unsigned faulty = 0; faulty < 2; faulty++) {
        for (uint64_t n = 1;; n++) {
            struct blob_faults faults = {.fail_read = n};
            struct memory_opener opener = {0};
            struct kaldi_folder folder;
            const struct dataset *ds;
            bool said;

            file[faulty].faults = &faults;
            file[!faulty].faults = NULL;
            open_folder(file, ARRAY_LEN(file), NO_OPTIONS, NULL, &opener, &folder);
            ds = kaldi_dataset(&folder, "all");
            said = folder.found.n > 1 || !ds || dataset_state(ds) == DATASET_FAILED;
            if (!said)
                assert_int_equal(ds->samples, 3);
            if (ds && folder.found.n == 1 && dataset_state(ds) == DATASET_FAILED &&
                ds->failed != -EIO)
                fail_msg("read %llu of %s: %d, %s", (unsigned long long)n, file[faulty].path,
                         ds->failed, ds->reason.text);
            kaldi_release(&folder);
            if (faults.reads >= n)
                continue;
            assert_false(said);
            break;
        }
    }
}

UNIT_TEST(test_folder__nothing_in_common__failed_with_rows)
{
    const struct memory_file file[] = {file_of_text("utt2spk", "u1 s1\nu2 s2\n"),
                                       file_of_text("text", "v1 hello\n")};
    struct memory_opener opener = {0};
    AUTO(kaldi_release) struct kaldi_folder folder;

    open_folder(file, ARRAY_LEN(file), NO_OPTIONS, NULL, &opener, &folder);
    assert_int_equal(dataset_state(kaldi_dataset(&folder, "all")), DATASET_FAILED);
    assert_diag_has(&kaldi_dataset(&folder, "all")->reason, "any of 2 utterances is in: text. ");
}
