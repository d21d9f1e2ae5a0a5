/* A field of texts of a fixed size, as the input of classes: what is too long, and what tells kept
 * labels apart. */
#include "format/labels/field_input.h"
#include "support/unit.h"

#include <errno.h>
#include <string.h>

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
