/* The pass over an scp file: it reads line by line, and the header of each object in its own file.
 * It reads lines ahead, so that several commands can run at once. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"

#define LINE_MOST  (1u << 20)
#define LINE_SHOWN 200 /* bytes of a line in a message */
#define LINE_ABOUT 1400
#define WAIT_MS    10 /* that a step waits for a command */

void kaldi_line_release(struct kaldi_pass *pass, struct kaldi_line *line)
{
    opener_stop(pass->table->opener, line->run);
    free(line->text);
    *line = (struct kaldi_line){0};
}

static struct kaldi_line *line_ahead(struct kaldi_pass *pass, unsigned i)
{
    return &pass->ahead[(pass->first_ahead + i) % LINES_AHEAD];
}

/* ---- files that lines name ---- */

/* Add a file to the table; takes ownership of blob. */
static int kaldi_script_add_file(struct kaldi_pass *pass, const char *path, size_t len,
                                 struct blob *blob, size_t *ret)
{
    struct kaldi_table *table = pass->table;
    struct kaldi_file file = {
        .path = strndup(path, len), .blob = blob, .is_output = kaldi_is_command(path, len)};
    int r = file.path ? array_capacity(&table->file, table->n_files, sizeof(file)) : -ENOMEM;
    uint32_t number;

    if (r == 0)
        r = numbered_add(&pass->paths, path, len, &number);
    if (r < 0) {
        free(file.path);
        blob_free(blob);
        return r;
    }
    *ret = table->n_files;
    table->file[table->n_files++] = file;
    return 0;
}

/* The length of the name that identifies a line's file; for a command it includes the '|'. */
static size_t name_len(const struct kaldi_line *line)
{
    return line->parsed.path_len + (line->parsed.place == SCP_COMMAND);
}

/* The file of a line, if an earlier line named it; otherwise 0, the table's own. */
static size_t kaldi_script_known_file(const struct kaldi_pass *pass, const struct kaldi_line *line)
{
    size_t n = numbered_find(&pass->paths, line->parsed.path, name_len(line));

    return n < pass->paths.n ? kaldi_own_files(pass->table) + n : 0;
}

static int kaldi_script_open_file(struct kaldi_pass *pass, const struct kaldi_line *line,
                                  size_t *ret, struct diag *d)
{
    AUTO_FREE char *path = strndup(line->parsed.path, line->parsed.path_len);
    struct blob *blob = NULL;
    int r = path ? opener_file(pass->table->opener, pass->table->folder, path, &blob, d) : -ENOMEM;

    return r < 0 ? r : kaldi_script_add_file(pass, line->parsed.path, name_len(line), blob, ret);
}

/* ---- commands that lines name ---- */

/* Start the command of a line. 0, -EAGAIN: not now, or another -errno with the reason in d. */
static int start_command(struct kaldi_pass *pass, struct kaldi_line *line, struct diag *d)
{
    AUTO_FREE char *command = strndup(line->parsed.path, line->parsed.path_len);

    return command ? opener_start(pass->table->opener, command, &line->run, d) : -ENOMEM;
}

/* Open the output of a line's command. 0, -EAGAIN: not yet, or another -errno with the reason in
 * d. */
static int open_output(struct kaldi_pass *pass, struct kaldi_line *line, size_t *ret,
                       struct diag *d)
{
    struct blob *blob = NULL;
    int r = 0;

    if (!line->run)
        r = start_command(pass, line, d);
    if (r == 0)
        r = opener_poll(pass->table->opener, line->run, WAIT_MS, &blob, d);
    if (r == 0 || blob_says_nothing(r))
        return r ? r : -EAGAIN;
    if (kaldi_script_add_file(pass, line->parsed.path, name_len(line), blob, ret) < 0)
        return -ENOMEM;
    if (r == 1)
        return 0;
    /* It does not run again for another line. */
    pass->table->file[*ret].reason = strdup(diag_text(d, r));
    return pass->table->file[*ret].reason ? r : -ENOMEM;
}

/* ---- scp files ---- */

/* "<file>:<number>: <what>: <the line>". */
static const char *about_line(const struct kaldi_pass *pass, const struct kaldi_line *line,
                              const char *what, char ret[static LINE_ABOUT])
{
    size_t len = line->parsed.text_len;

    snprintf(ret, LINE_ABOUT, "%s:%llu: %s%s%.*s%s", blob_name(pass->in.blob),
             (unsigned long long)line->number, what, len ? ": " : "", (int)min_u64(len, LINE_SHOWN),
             len ? line->parsed.text : "", len > LINE_SHOWN ? "..." : "");
    return ret;
}

/* file: 0, or all of it is what cannot be read. */
static int bad_line(struct kaldi_pass *pass, const struct kaldi_line *line, size_t file,
                    const char *what)
{
    char text[LINE_ABOUT];

    snprintf(text, sizeof(text), "%s:%llu: %s%s", blob_name(pass->in.blob),
             (unsigned long long)line->number, what,
             file ? "; raw has the file, and -o audio=16000:mono shows its samples as an array"
                  : "");
    return kaldi_add_bad_row(pass, (const uint8_t *)line->parsed.key, line->parsed.key_len, file,
                             text);
}

/* The rows and columns of the object that count. NULL, or what is wrong. */
static const char *cut_of_line(const struct kaldi_pass *pass, const struct scp_range *range,
                               const struct kaldi_object *object, uint64_t ret[static 4])
{
    enum kaldi_type type = pass->table->type;
    const char *wrong;

    if (type != KALDI_MATRIX && type != KALDI_VECTOR)
        return "expected a range of a matrix or a vector, got one of another object";
    if (type == KALDI_VECTOR && range->has_columns)
        return "expected a range of one part for a vector, got two";
    wrong = scp_range_rows(range, object->dim[0], &ret[0], &ret[2]);
    if (!wrong && type == KALDI_MATRIX)
        wrong = scp_range_columns(range, object->dim[1], &ret[1], &ret[3]);
    return wrong;
}

static void show_range(struct text *t, const uint64_t range[static 2])
{
    if (range[1] == UINT64_MAX)
        text_add(t, ":");
    else
        text_add(t, "%llu:%llu", (unsigned long long)range[0], (unsigned long long)range[1]);
}

/* The range does not fit: report it, and the object's size. */
static int bad_range(struct kaldi_pass *pass, const struct kaldi_line *line,
                     const struct kaldi_object *object, const char *wrong)
{
    const struct scp_range *range = &line->parsed.range;
    AUTO_TEXT struct text t = {0};

    text_add(&t, "%s: [", wrong);
    show_range(&t, range->row);
    if (range->has_columns) {
        text_add(&t, ",");
        show_range(&t, range->column);
    }
    text_add(&t, "] of a %s", kaldi_types[object->type].name);
    if (object->type == KALDI_MATRIX)
        text_add(&t, " of %llu rows, %llu columns", (unsigned long long)object->dim[0],
                 (unsigned long long)object->dim[1]);
    else if (object->type == KALDI_VECTOR)
        text_add(&t, " of %llu numbers", (unsigned long long)object->dim[0]);
    return t.failed ? -ENOMEM : bad_line(pass, line, 0, t.data);
}

/* Add the row of a line whose file exists. 0 or -errno; if a read failed in a way that says nothing
 * about the object, the reason is in d. */
static int object_row(struct kaldi_pass *pass, const struct kaldi_line *line, size_t file,
                      struct diag *d)
{
    const struct scp_line *parsed = &line->parsed;
    bool is_whole = parsed->place != SCP_OFFSET;
    bool is_sound = is_whole && pass->table->type == KALDI_WAVE && !parsed->range.is_given;
    struct diag reason = DIAG_INIT;
    struct kaldi_object object;
    unsigned flags = is_whole ? WHAT_WHOLE : 0;
    uint64_t range[4] = {0};
    const char *wrong = NULL;
    int r;

    kaldi_in_move(&pass->object, pass->table->file[file].blob);
    r = kaldi_measure(&pass->object, is_whole ? 0 : parsed->offset, pass->table->type, &object,
                      &reason);
    if (r < 0) {
        pass->object.error = 0;
        return blob_says_nothing(r)
                   ? diag_set(d, r, "%s", diag_text(&reason, r))
                   : bad_line(pass, line, is_sound ? file : 0, diag_text(&reason, r));
    }
    if (parsed->range.is_given) {
        wrong = cut_of_line(pass, &parsed->range, &object, range);
        flags |= WHAT_CUT;
    }
    if (wrong)
        return bad_range(pass, line, &object, wrong);
    return kaldi_add_good_row(pass, (const uint8_t *)parsed->key, parsed->key_len, file, &object,
                              flags, range);
}

/* Add the row of the first line that was read ahead. 1: done, 0: its command still runs. */
static int line_row(struct kaldi_pass *pass, struct kaldi_line *line, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    char text[LINE_ABOUT];
    size_t file = 0;
    int r = 0;

    if (line->wrong) {
        r = kaldi_add_bad_row(pass, (const uint8_t *)line->parsed.key, line->parsed.key_len, 0,
                              about_line(pass, line, line->wrong, text));
        return r < 0 ? r : 1;
    }
    file = kaldi_script_known_file(pass, line);
    if (!file && line->parsed.place == SCP_COMMAND)
        r = open_output(pass, line, &file, &reason);
    else if (!file)
        r = kaldi_script_open_file(pass, line, &file, &reason);
    if (r == -EAGAIN)
        return 0;
    if (r == 0 && !pass->table->file[file].blob)
        r = diag_set(&reason, -EIO, "%s", pass->table->file[file].reason);
    if (r == 0)
        r = object_row(pass, line, file, d);
    else if (blob_says_nothing(r))
        return diag_set(d, r, "%s", diag_text(&reason, r));
    else { /* it is missing, or its command failed: the next mount may succeed */
        pass->table->base.prepared.may_differ = true;
        r = bad_line(pass, line, 0, diag_text(&reason, r));
    }
    return r < 0 ? r : 1;
}

/* Note a line that says nothing of a row. */
static void note_skipped(struct kaldi_pass *pass, const struct kaldi_line *line, const char *why)
{
    char text[LINE_ABOUT];

    kaldi_note(pass->table, &pass->reported_bad, about_line(pass, line, why, text));
}

/* Read the next line of the scp file as the last one ahead, unless it has nothing. */
static int kaldi_script_read_line(struct kaldi_pass *pass, struct diag *d)
{
    struct kaldi_line *line = line_ahead(pass, pass->n_ahead);
    bool ended = false;
    const uint8_t *text;
    size_t len = 0;
    int r;

    text = kaldi_in_line(&pass->in, &pass->at, LINE_MOST, &len, &ended);
    if (!text)
        return kaldi_bad(&pass->in, pass->at, d, "cannot be read");
    if (!len && !ended) {
        pass->ended = true;
        if (pass->empty_line && !pass->table->permissive)
            note_skipped(pass, &(struct kaldi_line){.number = pass->empty_line},
                         "blank lines at the end, which are ignored; Kaldi fails there");
        return 0;
    }
    pass->lines++;
    *line = (struct kaldi_line){.text = malloc(len + 1), .number = pass->lines};
    if (!line->text)
        return -ENOMEM;
    memcpy(line->text, text, len);
    line->text[len] = '\0';
    if (len > LINE_MOST)
        line->parsed = (struct scp_line){.text = line->text, .text_len = len};
    line->wrong = len > LINE_MOST ? "expected a shorter line, got one of more than 1 MiB"
                                  : scp_line_parse(line->text, len, &line->parsed);
    r = kaldi_check_line(pass->table, pass->in.blob, line->number, &line->parsed, line->wrong,
                         &pass->empty_line, d);
    if (r == 0) {
        pass->n_ahead++;
        return 0;
    }
    if (r == 1 && pass->table->permissive) {
        note_skipped(pass, line, line->wrong ? line->wrong : scp_long_key);
        pass->table->totals.left_out++;
    }
    kaldi_line_release(pass, line);
    return r < 0 ? r : 0;
}

/* Does a line ahead, before number i, name the same command? */
static bool waits_already(struct kaldi_pass *pass, unsigned i)
{
    const struct kaldi_line *line = line_ahead(pass, i);

    while (i-- > 0) {
        const struct kaldi_line *other = line_ahead(pass, i);

        if (name_len(other) == name_len(line) &&
            !memcmp(other->parsed.path, line->parsed.path, name_len(line)))
            return true;
    }
    return false;
}

/* Start the commands of the lines ahead, as many as may run, each once. */
static int start_ahead(struct kaldi_pass *pass)
{
    int r = 0;

    for (unsigned i = 0; i < pass->n_ahead && r == 0; i++) {
        struct kaldi_line *line = line_ahead(pass, i);
        struct diag d = DIAG_INIT;

        if (!line->wrong && line->parsed.place == SCP_COMMAND && !line->run &&
            !kaldi_script_known_file(pass, line) && !waits_already(pass, i))
            r = start_command(pass, line, &d);
    }
    return r == -ENOMEM ? r : 0; /* a line's turn reports why its command cannot start */
}

int kaldi_script_row(struct kaldi_pass *pass, struct diag *d)
{
    struct kaldi_line *first;
    int r = 0;

    while (pass->n_ahead < LINES_AHEAD && !pass->ended && r == 0)
        r = kaldi_script_read_line(pass, d);
    if (r == 0 && pass->n_ahead)
        r = start_ahead(pass);
    if (r < 0 || !pass->n_ahead)
        return r;
    first = &pass->ahead[pass->first_ahead];
    r = line_row(pass, first, d);
    if (r == 1) {
        kaldi_line_release(pass, first);
        pass->first_ahead = (pass->first_ahead + 1) % LINES_AHEAD;
        pass->n_ahead--;
    }
    return r == 0 ? -EAGAIN : r < 0 ? r : 0;
}
