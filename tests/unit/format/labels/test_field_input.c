/* A field of texts of a fixed size, as the input of classes: what is too long, and what tells kept
 * labels apart. */
#include "format/labels/class_counts.h"
#include "format/labels/field_input.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#include <errno.h>
#include <string.h>

#include "format/core/durations.h"
#include "format/core/format.h"

static const struct format format = {.name = "made"};
static const struct field_ops ops = {0};
static struct field texts = {.ops = &ops,
                             .name = "s",
                             .form = FORM_ITEM,
                             .dtype = DTYPE_TEXT,
                             .width = 300,
                             .item_bytes = 300,
                             .in = IN_NPZ_SAMPLES};
static const struct dataset ds = {.format = &format, .samples = 2, .n_fields = 1, .field = &texts};

static void begin(struct field_input *ret)
{
    struct diag d = DIAG_INIT;

    assert_int_equal(field_input_init(ret, &ds, "s", LABEL_CLASSES, &d), 0);
}

UNIT_TEST(test_texts__too_long__refused_with_their_size)
{
    struct diag d = DIAG_INIT;
    struct field_input in;
    int64_t number[2];

    begin(&in);
    assert_int_equal(in.input.read(&in.input, NULL, 0, 2, number, &d), -EBADMSG);
    assert_non_null(strstr(d.text, "at most 256 bytes, got 300"));
    field_input_release(&in);
}

/* "ox" in a field of 4 bytes has two bytes that fill it up. */
static int read_text(struct read_context *rc, const struct dataset *of, const struct field *f,
                     const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    uint64_t sample;

    (void)rc;
    (void)of;
    (void)f;
    (void)d;
    selection_samples(sel, 0, 1, &sample);
    memcpy(dst, &"dog\0ox\0\0dog\0"[4 * sample + off], len);
    return 0;
}

UNIT_TEST(test_texts__of_one_size__numbered_without_what_fills_them)
{
    static const struct field_ops reads = {.read = read_text};
    static struct field short_texts = {.ops = &reads,
                                       .name = "s",
                                       .dtype = DTYPE_TEXT,
                                       .width = 4,
                                       .item_bytes = 4,
                                       .in = IN_NPZ_SAMPLES};
    struct blob_faults faults = {0};
    AUTO_BLOB struct blob *blob = memory_blob_new("a", "x", 1, 1, &faults);
    const struct dataset three = {.format = &format,
                                  .samples = 3,
                                  .n_fields = 1,
                                  .field = &short_texts,
                                  .n_blobs = 1,
                                  .blob = &blob};
    struct diag d = DIAG_INIT;
    struct field_input in;
    int64_t number[3];
    size_t len;

    assert_int_equal(field_input_init(&in, &three, "s", LABEL_CLASSES, &d), 0);
    assert_int_equal(in.input.read(&in.input, NULL, 0, 3, number, &d), 0);
    assert_memory_equal(number, ((int64_t[]){0, 1, 0}), sizeof(number));
    assert_string_equal(numbered_text(&in.texts, 1, &len), "ox");
    assert_int_equal(len, 2);
    faults.stale = true; /* the file is another one by now */
    assert_int_equal(in.input.read(&in.input, NULL, 0, 3, number, &d), -ESTALE);
    field_input_release(&in);
    /* Where they are stored is not known: what is shown counts. */
    assert_int_equal(length_input_init(&in, &three, "bytes", &d), 0);
    assert_int_equal(in.input.read(&in.input, NULL, 0, 3, number, &d), 0);
    assert_memory_equal(number, ((int64_t[]){4, 4, 4}), sizeof(number));
}

/* Classes 0 and 2 of a label whose dataset knows them. */
static bool class_size(const struct dataset *of, uint64_t number, uint64_t *ret)
{
    (void)of;
    *ret = number == 1 ? 0 : 4 + number;
    return number < 3;
}

UNIT_TEST(test_counts__of_a_dataset_that_knows_them__of_its_label_alone)
{
    static const struct field_ops reads = {.read = read_text};
    static const struct dataset_ops knows = {.class_size = class_size};
    static struct field field[] = {{.ops = &reads,
                                    .name = "label",
                                    .dtype = DTYPE_U1,
                                    .width = 1,
                                    .item_bytes = 1,
                                    .in = IN_PAGES},
                                   {.ops = &reads,
                                    .name = "x",
                                    .dtype = DTYPE_U1,
                                    .width = 1,
                                    .item_bytes = 1,
                                    .in = IN_PAGES}};
    static const struct dataset known = {
        .format = &format, .ops = &knows, .samples = 1, .n_fields = 2, .field = field};
    AUTO_CLASS_COUNTS struct class_counts label = {0}, x = {0};
    struct diag d = DIAG_INIT;

    assert_int_equal(class_counts_init(&label, &known, &field[0], &d), 0);
    assert_int_equal(label.n, 2);
    assert_memory_equal(label.value, ((int64_t[]){0, 2}), 2 * sizeof(int64_t));
    assert_memory_equal(label.count, ((uint64_t[]){4, 6}), 2 * sizeof(uint64_t));
    assert_int_equal(class_counts_init(&x, &known, &field[1], &d), 0);
    assert_int_equal(x.n, 1);
    assert_int_equal(x.value[0], 'd');
}

static int all_known(struct durations *durations, struct diag *d)
{
    (void)durations;
    (void)d;
    return 1;
}

/* Three frames, two a second. */
static bool get_frames(const struct durations *durations, uint64_t sample, uint64_t *ret_frames,
                       uint32_t *ret_rate)
{
    (void)durations;
    *ret_frames = 3;
    *ret_rate = 2;
    return sample < 2;
}

UNIT_TEST(test_seconds__of_audio__microseconds_or_the_sample_without)
{
    struct durations durations = {all_known, get_frames};
    const struct dataset audio = {.format = &format, .samples = 3, .durations = &durations};
    struct diag d = DIAG_INIT;
    struct field_input in;
    int64_t length[2];

    assert_int_equal(length_input_init(&in, &audio, "seconds", &d), 0);
    assert_int_equal(in.input.read(&in.input, NULL, 0, 2, length, &d), 0);
    assert_memory_equal(length, ((int64_t[]){1500000, 1500000}), sizeof(length));
    assert_int_equal(in.input.read(&in.input, NULL, 1, 2, length, &d), -EBADMSG);
    assert_diag_has(&d, "sample 2 has no audio that can be read");
}

UNIT_TEST(test_identity__each_option__another)
{
    const struct format_options options[] = {
        {.seq = 0},
        {.format = "csv"},
        {.transpose = true},
        {.index_base = INDEX_FROM_ONE},
        {.index_base = INDEX_AUTO},
        {.bad_rows = BAD_ROWS_SKIP},
        {.label_column = "a"},
        {.weight_column = "a"},
        {.delimiter = ';'},
        {.comment = ';'},
        {.header = CSV_HEADER_YES},
        {.doubles = true},
        {.seq = 1},
        {.stride = 1},
        {.split_docs = true},
        {.sequences = true},
        {.tokens_given = true},
        {.tokens_raw = true},
        {.tokens = DTYPE_I4},
        {.picture_height = 1},
        {.picture_width = 1},
        {.kaldi_type = 1},
        {.kaldi_tables = "a:matrix"},
        {.kaldi_permissive = true},
        {.pair_off = true},
        {.audio = true},
        {.audio = true, .audio_rate = 1},
        {.audio = true, .audio_mono = true},
        {.audio = true, .audio_medium = true},
        {.seq = 8, .pack = 2},
        {.seq = 8, .pack = 3},
        {.seq = 8, .pack = 3, .pad = 1},
        {.kaldi_join = "a"},
        {.label = "a"},
    };
    struct text identity[ARRAY_LEN(options)] = {0};
    struct field_input in;

    begin(&in);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        assert_int_equal(field_input_identity(&in, LABEL_CLASSES, &options[i], &identity[i]), 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(identity[i].data, identity[k].data);
    }
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        text_release(&identity[i]);
    field_input_release(&in);
}
