/* Recordings as arrays, for -o audio=: of what raw shows of a cell. So a part of a recording that
 * segments cut is a .wav file of that part; a recording that is no RIFF is its file, of which the
 * decoder takes the part. */
#include <errno.h>
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

void kaldi_set_identify(const struct kaldi_set *set, struct text *t)
{
    for (unsigned i = 0; i < set->n_columns; i++) {
        text_add(t, " %s=", set->column[i].table->name);
        kaldi_table_identity(set->column[i].table, t);
    }
    if (set->segments) { /* which is no column */
        text_add(t, " segments=");
        kaldi_table_identity(set->segments, t);
    }
}

int kaldi_set_identity(const struct dataset *ds, struct text *t)
{
    kaldi_set_identify(kaldi_set_of(ds), t);
    return 0;
}

int kaldi_audio_init(struct dataset *ds, const struct format_setup *setup)
{
    static const struct record_audio_parts parts = {audio_is_part, audio_find_part};
    struct kaldi_set *set = ds->impl;
    const struct record_content *source = NULL;
    const char *name = "audio";
    int r;

    for (unsigned i = 0; i < set->n_columns; i++) {
        if (!strcmp(set->column[i].table->name, name))
            name = "audio_array";
        if (set->column[i].table->type == KALDI_WAVE && !source) /* each sample has the first */
            source = &set->content[i * N_CONTENTS + AS_BYTES + KALDI_AS_STORED];
    }
    if (!source || !setup->memo)
        return 0;
    /* A batch of arrays would fail by a recording that only `audio` shows. */
    for (unsigned i = 0; i < ds->n_fields && setup->options.audio; i++) {
        const struct record_content *content = ds->field[i].impl;

        if (content && content->what <= SAMPLE_RATE &&
            set->column[content->column].table->type == KALDI_WAVE)
            ds->field[i].in &= ~(unsigned)(IN_NPZ_SAMPLES | IN_NPZ_BATCHES);
    }
    r = record_audio_new(ds, setup, &source, 1, &parts, kaldi_set_identity, &set->audio);
    if (r == 0 && setup->options.audio)
        record_audio_add(ds, set->audio, setup, name, false);
    return r;
}
