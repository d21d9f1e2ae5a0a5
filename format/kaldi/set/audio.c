/* Recordings as arrays, for -o audio=: of what raw shows of a cell. So a part of a recording that
 * segments cut is a .wav file of that part; a recording that is no RIFF is its file, of which the
 * decoder takes the part. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/kaldi/set/segments.h"
#include "format/kaldi/set/set.h"
#include "format/records/record_audio.h"

/* Is a record a part of a recording that Kaldi does not read? */
static bool audio_is_part(const struct dataset *ds, const struct record_content *c, uint64_t record,
                          uint64_t *ret_file)
{
    struct kaldi_cell cell;
    bool is_file = false;

    if (kaldi_set_of(ds)->column[c->column].is_cut)
        kaldi_cell_or_file(kaldi_set_of(ds), c->column, record, &cell, &is_file, NULL);
    *ret_file = is_file ? cell.number : *ret_file;
    return is_file;
}

static int audio_find_part(const struct dataset *ds, const struct record_content *c,
                           uint64_t record, const struct audio_info *whole, struct audio_part *ret,
                           struct diag *d)
{
    const struct kaldi_row wave = {.object.dim = {whole->frames, whole->channels, whole->rate}};
    struct kaldi_segment segment;
    struct kaldi_cell cell;
    uint64_t part[3];
    const char *wrong;
    bool is_file;
    int r = kaldi_cell_or_file(kaldi_set_of(ds), c->column, record, &cell, &is_file, d);

    if (r < 0)
        return r;
    memcpy(&segment, cell.cut, sizeof(cell.cut));
    wrong = kaldi_segment_cut(&segment, &wave, part);
    if (wrong)
        return diag_set(d, -EBADMSG, "%s: cannot be cut by segments: %s", blob_name(cell.row.blob),
                        wrong);
    *ret = (struct audio_part){part[0], part[1], (uint32_t)part[2]};
    return 0;
}

static int audio_view(const struct dataset *ds, const struct record_content *c, uint64_t record,
                      struct kaldi_cell *cell, struct kaldi_view *ret, struct diag *d)
{
    bool is_file;
    int r = kaldi_cell_or_file(kaldi_set_of(ds), c->column, record, cell, &is_file, d);

    if (r == 0)
        kaldi_view_bytes(cell, KALDI_AS_STORED, ret);
    return r;
}

static int kaldi_audio_dims(const struct dataset *ds, const struct record_content *c,
                            uint64_t record, uint64_t ret_dim[static RECORD_AXES], struct diag *d)
{
    struct kaldi_cell cell;
    struct kaldi_view view;
    int r = audio_view(ds, c, record, &cell, &view, d);

    ret_dim[0] = r == 0 ? kaldi_view_size(&view) : 0;
    return r;
}

static int kaldi_audio_read(struct read_context *rc, const struct dataset *ds,
                            const struct record_content *c, uint64_t record, uint64_t off,
                            size_t len, uint8_t *dst, struct diag *d)
{
    struct kaldi_cell cell;
    struct kaldi_view view;
    int r = audio_view(ds, c, record, &cell, &view, d);

    return r < 0 ? r : kaldi_view_read(rc, kaldi_set_of(ds), &view, off, len, dst, d);
}

static bool kaldi_audio_extent(const struct dataset *ds, const struct record_content *c,
                               uint64_t record, struct extent *ret)
{
    struct kaldi_cell cell;
    struct kaldi_view view;

    if (audio_view(ds, c, record, &cell, &view, NULL) < 0 || cell.row.is_output)
        return false;
    *ret = kaldi_view_span(&view);
    return ret->len > 0;
}

/* Also the files that tables name. */
int kaldi_set_identity(const struct dataset *ds, struct text *t)
{
    const struct kaldi_set *set = kaldi_set_of(ds);

    for (unsigned i = 0; i < set->n_columns; i++) {
        text_add(t, " %s=", set->column[i].table->name);
        kaldi_table_identity(set->column[i].table, t);
    }
    if (set->segments) { /* which is no column */
        text_add(t, " segments=");
        kaldi_table_identity(set->segments, t);
    }
    return 0;
}

int kaldi_audio_init(struct dataset *ds, const struct format_setup *setup)
{
    static const struct record_ops source_ops = {.dims = kaldi_audio_dims,
                                                 .read = kaldi_audio_read,
                                                 .extent = kaldi_audio_extent,
                                                 .where = kaldi_content_where};
    static const struct record_audio_parts parts = {audio_is_part, audio_find_part};
    struct kaldi_set *set = ds->impl;
    const struct record_content *source[RECORD_MADE_SOURCES];
    const char *name = "audio";
    unsigned n = 0;
    int r;

    set->recording = calloc(RECORD_MADE_SOURCES, sizeof(*set->recording));
    if (!set->recording)
        return -ENOMEM;
    for (unsigned i = 0; i < set->n_columns; i++) {
        if (!strcmp(set->column[i].table->name, name))
            name = "audio_array";
        if (set->column[i].table->type != KALDI_WAVE || n)
            continue; /* each sample has the first */
        set->recording[n] = (struct record_content){
            .ops = &source_ops, .column = i, .dtype = DTYPE_U1, .ndim = 1, .dim = {DIM_VARIES}};
        source[n] = &set->recording[n];
        n++;
    }
    if (!n || !setup->memo)
        return 0;
    /* A batch of arrays would fail by a recording that only `audio` shows. */
    for (unsigned i = 0; i < ds->n_fields && setup->options.audio; i++) {
        const struct record_content *content = ds->field[i].impl;

        if (content && (content->what == SAMPLE_RATE || content->what < KALDI_ARRAYS_MAX) &&
            set->column[content->column].table->type == KALDI_WAVE)
            ds->field[i].in &= ~(unsigned)(IN_NPZ_SAMPLES | IN_NPZ_BATCHES);
    }
    r = record_audio_new(ds, setup, source, n, &parts, kaldi_set_identity, &set->audio);
    if (r == 0 && setup->options.audio)
        record_audio_add(ds, set->audio, setup, name, false);
    return r;
}
