#include "support/worlds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/kaldi/object/object.h"
#include "format/recordio/file.h"
#include "support/kaldi_make.h"
#include "support/learned_format.h"
#include "support/random.h"
#include "support/record_format.h"
#include "support/unit.h"

/* ---- sources ---- */

struct text *source_add(struct world_source *s, const char *name)
{
    assert_true(s->n < FILES_MOST);
    text_add(&s->name[s->n], "%s", name);
    return &s->bytes[s->n++];
}

void source_release(struct world_source *s)
{
    for (size_t i = 0; i < s->n; i++) {
        text_release(&s->name[i]);
        text_release(&s->bytes[i]);
    }
}

static void add_idx(struct world_source *s, const char *name, uint8_t type, unsigned axes,
                    const uint32_t *dim)
{
    AUTO_BLOB struct blob *blob = idx_blob(name, type, axes, dim, NULL);
    AUTO_FREE char *bytes = malloc(blob->size);

    assert_int_equal(blob_pread(READ_WAITS, blob, bytes, blob->size, 0), 0);
    text_add_bytes(source_add(s, name), bytes, blob->size);
}

void source_idx(struct world_source *s, bool transpose)
{
    s->format = &format_idx;
    s->options.transpose = transpose;
    add_idx(s, "p-images", 0x08, 3, (uint32_t[]){400, 28, 27});
    add_idx(s, "p-labels", 0x08, 1, (uint32_t[]){400});
    add_idx(s, "q-images", 0x0b, 2, (uint32_t[]){300, 301});
    add_idx(s, "q-labels", 0x0c, 1, (uint32_t[]){300});
    add_idx(s, "r-images", 0x0e, 1, (uint32_t[]){5000});
}

static void add_rows(struct text *t, unsigned n, unsigned most, const char *columns, uint64_t *rng)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t index = 0;

        text_add(t, "%u%s", i % 7, columns);
        for (uint64_t k = random_below(rng, most); k; k--) {
            index += 1 + random_below(rng, 9);
            text_add(t, " %llu:%llu.5", (unsigned long long)index,
                     (unsigned long long)random_below(rng, 100));
        }
        text_add(t, i % 5 ? "\n" : "\r\n");
    }
}

void source_libsvm(struct world_source *s, bool sides)
{
    uint64_t rng = RANDOM_SEED;

    s->format = &format_libsvm;
    s->pooled = true;
    text_add(&s->bytes[s->n], "\xef\xbb\xbf"); /* a byte order mark */
    add_rows(source_add(s, "a.svm"), 1500, 60, sides ? "" : ":2 qid:3", &rng);
    if (!sides) {
        add_rows(source_add(s, "b.svm"), 600, 60, ":1 qid:4", &rng);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct text *t = source_add(s, i ? "a.svm.weight" : "a.svm.base_margin");

        for (unsigned k = 0; k < 1500; k++)
            text_add(t, "%u.25\n", k);
    }
    text_add(source_add(s, "a.svm.group"), "1000\n500\n");
}

/* Rows padded with spaces, so that a block of them is too long to be decoded as one slab. */
void source_long_rows(struct world_source *s)
{
    struct text *t = source_add(s, "long.svm");

    s->format = &format_libsvm;
    s->pooled = true;
    for (unsigned i = 0; i < 300; i++)
        text_add(t, "%u 1:%u %34000s 7:2 8:%u\n", i % 3, i, "", i);
}

/* An archive of objects of a kind. */
void source_kind(struct world_source *s, const struct kaldi_object *kind)
{
    struct text *t = source_add(s, "x.ark");
    uint64_t rng = RANDOM_SEED;

    s->format = &format_kaldi;
    s->options.kaldi_type = kind->type;
    for (unsigned i = 0; i < 150; i++) {
        AUTO_KALDI_MADE struct kaldi_made made = {0};

        kaldi_make(&made, kind, &rng);
        text_add(t, "utterance-%u ", i);
        text_add_bytes(t, made.bytes.data, made.bytes.len);
    }
}

static void add_matrix(struct text *t, unsigned rows, unsigned columns, bool text, uint64_t *rng)
{
    if (text) {
        text_add(t, " [");
    } else {
        kaldi_put_start(t, "FM ");
        kaldi_put_int(t, rows);
        kaldi_put_int(t, columns);
    }
    for (unsigned i = 0; i < rows; i++) {
        text_add(t, text ? "\n" : "");
        for (unsigned k = 0; k < columns; k++) {
            double v = (double)random_below(rng, 1000);

            if (text)
                text_add(t, " %g", v);
            else
                kaldi_put_value(t, v, false);
        }
    }
    if (text)
        text_add(t, " ]\n");
}

static void add_wave(struct text *t, unsigned frames, uint64_t *rng)
{
    uint8_t header[KALDI_WAVE_HEADER];

    kaldi_wave_header(2, 10000, frames, header);
    text_add_bytes(t, (const char *)header, sizeof(header));
    for (unsigned i = 0; i < 2 * frames; i++)
        kaldi_put_raw(t, random_next(rng), 2);
}

/* A table of text with arrays large enough for the memo, one of ranges in another archive, one of
 * audio, and a data directory of all these with segments. */
void source_directory(struct world_source *s)
{
    struct text *ark = source_add(s, "m.ark"), *scp = source_add(s, "feats.scp");
    struct text *wav = source_add(s, "audio.ark"), *wav_scp = source_add(s, "wav.scp");
    struct text *segments = source_add(s, "segments"), *speakers = source_add(s, "utt2spk");
    struct text *words = source_add(s, "text"), *large = source_add(s, "large.ark");
    uint64_t rng = RANDOM_SEED;

    s->format = &format_kaldi;
    for (unsigned i = 0; i < 140; i++) {
        text_add(ark, "u%03u ", i);
        text_add(scp, "u%03u m.ark:%zu%s\n", i, ark->len, i % 3 ? "" : "[1:4,2:6]");
        add_matrix(ark, 5 + i % 20, i % 3 ? 5 : 9, false, &rng);
        text_add(segments, "u%03u w%u %u.%u %u.%u 1\n", i, i % 9, i % 2, i % 10, i % 2, 5 + i % 10);
        text_add(speakers, "u%03u s%u\n", i, i % 7);
        text_add(words, "u%03u the words of %u\n", i, i);
        if (i < 9) {
            text_add(wav, "w%u ", i);
            text_add(wav_scp, "w%u audio.ark:%zu\n", i, wav->len);
            add_wave(wav, 30000 + i, &rng);
        }
        if (i < 12) {
            text_add(large, "l%02u ", i);
            add_matrix(large, 90 + i, 50, true, &rng);
        }
    }
}

void source_n_records(struct world_source *s, unsigned n)
{
    uint64_t rng = RANDOM_SEED;

    s->format = &format_records;
    for (unsigned i = 0; i < 2; i++) {
        struct text *t = source_add(s, i ? "two.rec" : "one.rec");

        text_add(t, "TESTREC1");
        for (unsigned k = 0; k < n; k++) {
            char key[16], bytes[3000];
            uint8_t head[14];
            uint32_t len[3] = {(uint32_t)random_below(&rng, 9), (uint32_t)random_below(&rng, 2000),
                               1 + (uint32_t)random_below(&rng, 40)};
            size_t rest = 4 + 24 + len[0] * 4 + len[1] + len[2];

            store_le16(head, (uint16_t)snprintf(key, sizeof(key), "%c%u", "ab"[i], k));
            for (unsigned f = 0; f < 3; f++)
                store_le32(head + 2 + 4 * f, len[f]);
            for (size_t at = 0; at < rest; at++)
                bytes[at] = (char)('a' + random_below(&rng, 26));
            text_add_bytes(t, (const char *)head, sizeof(head));
            text_add(t, "%s", key);
            text_add_bytes(t, bytes, rest);
        }
    }
}

void source_records(struct world_source *s)
{
    source_n_records(s, 150);
}

static void add_le(struct text *t, uint64_t v, size_t bytes)
{
    uint8_t le[8];

    store_le64(le, v);
    text_add_bytes(t, (const char *)le, bytes);
}

static void add_learned(struct text *t, char kind, const char *name, const void *bytes, size_t len)
{
    add_le(t, strlen(name), 1);
    add_le(t, (uint8_t)kind, 1);
    add_le(t, len, 4);
    text_add(t, "%s", name);
    text_add_bytes(t, bytes, len);
}

void source_learned(struct world_source *s)
{
    uint64_t rng = RANDOM_SEED;
    char bytes[3000];

    s->format = &format_learned;
    for (unsigned i = 0; i < 2; i++) {
        struct text *t = source_add(s, i ? "two.lrn" : "one.lrn");

        text_add(t, "TESTLRN1");
        for (unsigned k = 0; k < 40; k++) {
            bool sparse = k % 3 == 0, other = i && k > 20;
            char key[16];
            int len = snprintf(key, sizeof(key), "%c%u", "ab"[i], k);

            for (size_t at = 0; at < sizeof(bytes); at++)
                bytes[at] = (char)('a' + random_below(&rng, 26));
            add_le(t, (uint64_t)len, 2);
            add_le(t, 4u + sparse + other, 2);
            text_add(t, "%s", key);
            add_learned(t, 'i', "id", bytes, 8);
            add_learned(t, 'm', "points", bytes + 8, 4 * random_below(&rng, 9));
            add_learned(t, "bx"[i], "image.jpg", bytes, random_below(&rng, sizeof(bytes)));
            add_learned(t, 'd', "label", "-12", 3);
            if (sparse)
                add_learned(t, 't', "words", bytes, k);
            if (other)
                add_learned(t, 'h', "other", bytes, 6);
        }
    }
}

/* Add the parts of a record whose payload has the magic number in front of each part but the
 * first. */
static void add_parts(struct text *t, const char *payload, size_t len, unsigned parts)
{
    for (unsigned i = 0; i < parts; i++) {
        size_t each = i + 1 < parts ? len / parts / 4 * 4 : len;
        unsigned flag = parts == 1 ? 0 : !i ? 1 : i + 1 < parts ? 2 : 3;

        add_le(t, RECORDIO_MAGIC, 4);
        add_le(t, flag << 29 | each, 4);
        text_add_bytes(t, payload, each);
        add_le(t, 0, (4 - each % 4) % 4);
        payload += each;
        len -= each;
    }
}

void source_recordio(struct world_source *s, bool pictures)
{
    uint64_t rng = RANDOM_SEED;
    char bytes[3000];

    s->format = &format_recordio;
    for (unsigned i = 0; i < 2; i++) {
        struct text *t = source_add(s, i ? "two.rec" : "one.rec");

        for (unsigned k = 0; k < 40; k++) {
            AUTO_TEXT struct text payload = {0};
            unsigned labels = i ? k % 3 : 0;

            for (size_t at = 0; at < sizeof(bytes); at++)
                bytes[at] = (char)('a' + random_below(&rng, 26));
            if (pictures) {
                add_le(&payload, labels, 4);
                text_add_bytes(&payload, bytes, 4);
                add_le(&payload, 1000 * i + k, 8);
                add_le(&payload, 0, 8);
                text_add_bytes(&payload, bytes, 4u * labels);
                text_add(&payload, "%s", k % 2 ? "\xff\xd8\xff" : "GIF8");
            }
            text_add_bytes(&payload, bytes, random_below(&rng, sizeof(bytes)));
            add_parts(t, payload.data, payload.len, payload.len > 200 ? 1 + k % 4 : 1);
        }
    }
}

extern const struct format format_csv, format_jsonl;

void source_text(struct world_source *s, bool csv)
{
    uint64_t rng = RANDOM_SEED;
    struct text *t = source_add(s, csv ? "x.csv" : "x.jsonl");

    s->format = csv ? &format_csv : &format_jsonl;
    text_add(t, "\xef\xbb\xbf%s", csv ? "a,b\n" : "");
    for (unsigned i = 0; i < 200; i++)
        text_add(t, csv ? "%u,%u.5\n" : "{\"a\": %u, \"b\": %u.5}\n", i,
                 (unsigned)random_below(&rng, 1000));
}

/* ---- datasets ---- */

void world_open(struct world *w, const struct world_source *s, bool absent)
{
    struct format_setup setup = {.options = s->options, .keep = &w->keep.keep};
    struct blob *blob[FILES_MOST];

    w->faults.absent = absent ? &w->absent : NULL;
    for (size_t i = 0; i < s->n; i++) {
        w->file[i] =
            (struct memory_file){s->name[i].data, s->bytes[i].data, s->bytes[i].len, &w->faults};
        blob[i] = memory_file_blob(&w->file[i]);
    }
    memory_keep_init(&w->keep, true);
    memory_opener_init(&w->opener);
    w->opener.file = w->file;
    w->opener.n_files = s->n;
    setup.opener = &w->opener.opener;
    assert_int_equal(memo_new(w->forgets ? 0 : 16 << 20, &w->memo), 0);
    setup.memo = w->memo;
    if (s->pooled)
        assert_int_equal(pool_new(&w->pool), 0);
    setup.pool = w->pool;
    w->result = format_open(s->format, blob, s->n, &setup, &w->found);
    for (size_t i = 0; i < w->found.n; i++) {
        struct dataset *ds = w->found.item[i].ds;

        while (ds && !dataset_prepare(ds)) {
            w->troubles += ds->retry.state == RETRY_PAUSES;
            assert_int_equal(dataset_state(ds), DATASET_PREPARING);
        }
    }
}

static int make_nothing(void *ctx, void **ret, size_t *ret_size)
{
    (void)ctx;
    *ret = malloc(1);
    *ret_size = 1;
    return *ret ? 0 : -ENOMEM;
}

void world_forget(struct world *w)
{
    static uint64_t number;
    const struct memo_key key = {{++number}};
    struct memo_thing *thing = NULL;

    assert_int_equal(memo_get(w->memo, &key, &(struct memo_maker){.make = make_nothing}, &thing),
                     0);
    memo_let_go(thing);
}

void world_release(struct world *w)
{
    found_release(&w->found);
    memo_free(w->memo);
    pool_free(w->pool);
    memory_keep_release(&w->keep);
}

/* Open two worlds of a source; the second one's bytes are absent. */
void worlds_open(const struct world_source *s, struct world *here, struct world *there)
{
    uint64_t rng = 1;

    world_open(here, s, false);
    world_open(there, s, true);
    assert_int_equal(here->result, 0);
    assert_int_equal(there->result, 0);
    assert_true(here->found.n > 0);
    assert_int_equal(here->found.n, there->found.n);
    for (size_t i = 0; i < here->found.n; i++) {
        const struct dataset *ds = here->found.item[i].ds;

        if (!ds || !there->found.item[i].ds)
            fail_msg("%s: %s", here->found.item[i].name,
                     ds ? "there only" : here->found.item[i].reason);
        if (dataset_state(ds) != DATASET_READY)
            fail_msg("%s: %s", here->found.item[i].name, ds->reason.text);
        assert_int_equal(dataset_state(there->found.item[i].ds), DATASET_READY);
    }
    absent_drop(&there->absent, 256, &rng);
}
