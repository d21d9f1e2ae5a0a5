/* A member's value is read where the walk comes by. Those of a remote are asked for before: many at
 * once, so that a folder takes the time of its bytes, not of a round trip each. */
#include "format/files/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 512 /* samples whose values are asked for before they are read */
#define HEAD_GUESS                                                                                 \
    256 /* bytes of a member: integers, and nearly all headers of .npy, are shorter */

struct values_pass {
    struct member_reader reader;
    struct files_file *file;
    bool has_read;
    size_t done;    /* members of the sample that is under way */
    uint64_t ahead; /* rows whose values were asked for */
    struct text notes;
    uint64_t faults;
    uint64_t row[INDEX_LEARNED];
    size_t member, have; /* the member that is read, and how much of it head has: */
    uint8_t head[NPY_HEAD_MAX];
};

/* As of struct member_reader. */
static int files_values_bytes(struct member_reader *reader, size_t len, const uint8_t **ret,
                              struct diag *d)
{
    struct values_pass *pass = (struct values_pass *)reader;
    const struct files_source *source = pass->file->source;
    uint64_t size = members_size(source->members, pass->member);
    size_t to = (size_t)max_u64(len, min_u64(size, HEAD_GUESS));
    int r = 0;

    if (len > pass->have) {
        pass->has_read = true;
        r = blob_read(READ_WAITS, source->blob, pass->head + pass->have, to - pass->have,
                      source->members->member[pass->member].place + pass->have, d);
        pass->have = r == 0 ? to : pass->have;
    }
    *ret = pass->head;
    return r;
}

int values_pass_new(struct files_file *file, struct values_pass **ret)
{
    struct values_pass *pass = calloc(1, sizeof(*pass));

    if (!pass)
        return -ENOMEM;
    pass->file = file;
    pass->reader = (struct member_reader){.builder = file->base.prepared.builder,
                                          .columns = samples_fixed(file),
                                          .bytes = files_values_bytes};
    *ret = pass;
    return index_builder_columns(file->base.prepared.builder, pass->reader.columns);
}

void values_pass_free(struct values_pass *pass)
{
    if (!pass)
        return;
    text_release(&pass->notes);
    free(pass);
}

bool values_pass_has_read(struct values_pass *pass)
{
    bool has_read = pass->has_read;

    pass->has_read = false;
    return has_read;
}

void values_pass_notes(const struct values_pass *pass, struct text *t)
{
    if (pass->notes.len)
        text_add_bytes(t, pass->notes.data, pass->notes.len);
    if (pass->faults)
        text_add(t, "values of %llu samples cannot be read\n", (unsigned long long)pass->faults);
}

/* ---- reading ahead ---- */

static void ask_for_sample(const struct files_file *file, const struct sample_files *sample)
{
    char ext[EXT_MOST + 1];

    for (size_t i = sample->first; i < sample->first + sample->n; i++) {
        size_t n = samples_ext(file, sample, i, ext);
        enum member_shown shown = member_shown_of(ext, n);

        if (shown == MEMBER_AS_INTEGER || shown == MEMBER_AS_ARRAY)
            blob_fetch(file->source->blob, file->source->members->member[i].place,
                       min_u64(members_size(file->source->members, i), HEAD_GUESS), NULL);
    }
}

static void files_values_ask_ahead(struct values_pass *pass, uint64_t row)
{
    struct files_file *file = pass->file;

    if (!file->source->blob->ops->fetch || pass->ahead > row + AHEAD / 2)
        return;
    if (pass->ahead < row)
        pass->ahead = row;
    for (; pass->ahead < row + AHEAD && pass->ahead < file->view->n; pass->ahead++) {
        struct sample_files sample;

        claim_sample(file->source->members, file->claim, file->view, pass->ahead, &sample);
        ask_for_sample(file, &sample);
    }
}

/* ---- values ---- */

/* The first fault of a sample counts. */
static void files_values_add_fault(struct values_pass *pass, int r, const struct diag *reason)
{
    if (!pass->faults++)
        text_add(&pass->notes, "%s\n", diag_text(reason, r));
    pass->row[SAMPLES_FAULT] = (uint64_t)-r;
    pass->file->base.prepared.may_differ = true;
}

static int files_values_read_value(struct values_pass *pass, struct learned_column *ext,
                                   size_t member, struct diag *d)
{
    const struct members *m = pass->file->source->members;
    struct diag reason = DIAG_INIT;
    const char *wrong;
    int r;

    pass->member = member;
    pass->have = 0;
    r = member_read_value(&pass->reader, ext->number, members_size(m, member), pass->row, &wrong,
                          &reason);
    if (blob_says_nothing(r))
        return diag_set(d, r, "%s", diag_text(&reason, r));
    if (r < 0 && !pass->row[SAMPLES_FAULT])
        files_values_add_fault(pass, r, &reason);
    else if (r == 0 && wrong)
        text_add(&pass->notes, "%s%s%s: %s; files .%s are shown as they are only\n",
                 members_folder_of(m, member), *members_folder_of(m, member) ? "/" : "",
                 members_name(m, member), wrong, ext->name);
    return 0;
}

/* ---- samples ---- */

static int files_values_add_member(struct values_pass *pass, const struct sample_files *sample,
                                   size_t member, struct diag *d)
{
    struct files_file *file = pass->file;
    char ext[EXT_MOST + 1];
    size_t n = samples_ext(file, sample, member, ext), other;
    unsigned before = file->exts.n, i;
    struct learned_column *column;
    int r = column_table_add(&file->exts, ext, n, &i);

    if (r < 0)
        return r == -E2BIG ? 0 : r;
    column = &file->exts.column[i];
    if (file->exts.n > before)
        column->number[MEMBER_FORM] = member_shown_of(ext, n);
    /* A member whose extension an earlier one has, in another case, is not shown. */
    if ((column->number[MEMBER_FORM] == MEMBER_AS_INTEGER ||
         column->number[MEMBER_FORM] == MEMBER_AS_ARRAY) &&
        !samples_find(file, sample, member, ext, n, &other))
        r = files_values_read_value(pass, column, member, d);
    if (r == 0)
        column->number[MEMBER_ROWS]++;
    return r;
}

int values_pass_sample(struct values_pass *pass, uint64_t row, const struct sample_files *sample,
                       uint64_t **ret, struct diag *d)
{
    int r = 0;

    if (!pass->done) {
        memset(pass->row, 0, pass->reader.columns * sizeof(pass->row[0]));
        files_values_ask_ahead(pass, row);
    }
    for (; pass->done < sample->n && r == 0; pass->done += r == 0)
        r = files_values_add_member(pass, sample, sample->first + pass->done, d);
    if (r < 0)
        return r;
    pass->done = 0;
    *ret = pass->row;
    return 0;
}

/* ---- a kept index ---- */

static bool files_values_row_is_good(const struct files_file *file, const struct index *index,
                                     uint64_t row)
{
    struct sample_files sample;
    char ext[EXT_MOST + 1];
    unsigned column;

    claim_sample(file->source->members, file->claim, file->view, samples_row(file, row), &sample);
    for (size_t i = sample.first; i < sample.first + sample.n; i++) {
        size_t n = samples_ext(file, &sample, i, ext), other;
        const uint64_t *number;

        if (!column_table_find(&file->exts, ext, n, &column))
            continue;
        number = file->exts.column[column].number;
        if (number[MEMBER_FORM] == MEMBER_AS_ARRAY &&
            !samples_find(file, &sample, i, ext, n, &other) &&
            !member_array_is_good(index, row, number, members_size(file->source->members, i)))
            return false;
    }
    return true;
}

bool values_are_good(const struct files_file *file, const struct index *index)
{
    uint64_t fault[INDEX_GROUP];
    bool has_arrays = false;

    for (unsigned i = 0; i < file->exts.n; i++) {
        const uint64_t *number = file->exts.column[i].number;

        if (!member_numbers_are_good(number, samples_fixed(file), index->shape.columns))
            return false;
        has_arrays = has_arrays || number[MEMBER_FORM] == MEMBER_AS_ARRAY;
    }
    for (uint64_t row = 0; row < index->rows;) {
        unsigned n = index_numbers(index, row, SAMPLES_FAULT, fault);

        for (unsigned i = 0; i < n; i++, row++)
            if (fault[i] || (has_arrays && !files_values_row_is_good(file, index, row)))
                return false;
    }
    return true;
}
