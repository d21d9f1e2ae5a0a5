/* Finding out the type of a table from the first objects that it leads to. */
#include "format/kaldi/table/table_parts.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/audio/audio.h"
#include "format/kaldi/table/scp.h"

#define LINE_MOST   65536 /* bytes; also those of an scp file that are checked at each opening */
#define FIRST_LINES 100   /* of an scp file; one of them must lead to an object */

/* Guess the type of a command's output before it runs, by its text and the name of the table's
 * file. */
static enum kaldi_type guess_output(const struct kaldi_table *table, const struct scp_line *line)
{
    static const char *const audio[] = {"wav", "sph", "flac", "sox", "ffmpeg", "mp3", "ogg"};
    const char *slash = strrchr(blob_name(table->base.blob), '/');
    const char *name = slash ? slash + 1 : blob_name(table->base.blob);

    for (size_t i = 0; i < ARRAY_LEN(audio); i++)
        if (strstr(name, audio[i]) ||
            memmem(line->path, line->path_len, audio[i], strlen(audio[i])))
            return KALDI_WAVE;
    return KALDI_MATRIX;
}

/* Find out the type from the object at byte at. One that is given for all tables may be meant for
 * another: then see what this one looks like. */
static int sniff_type(struct kaldi_table *table, const struct blob *blob, uint64_t at,
                      enum kaldi_type *ret, struct diag *d)
{
    enum kaldi_type looks = KALDI_UNKNOWN;
    int r = kaldi_sniff(blob, at, table->asked, ret, d);

    if (r == 0 && table->asked_of_all && *ret == table->asked &&
        kaldi_sniff(blob, at, KALDI_UNKNOWN, &looks, NULL) == 0)
        table->looks = looks == *ret ? KALDI_UNKNOWN : looks;
    return r;
}

/* Does a line name a file of audio, of any kind? -o audio= may read it where Kaldi does not. */
static bool names_sound(const struct blob *blob, const struct scp_line *line)
{
    uint8_t head[4] = {0};

    return line->place != SCP_OFFSET && !line->range.is_given && blob->size >= sizeof(head) &&
           blob_read(READ_WAITS, blob, head, sizeof(head), 0, NULL) == 0 && audio_begins(head);
}

/* Find out the type, if it is unknown, from the object that a line names. 0; 1: that would take
 * running a command. */
static int type_of_line(struct kaldi_table *table, const struct scp_line *line, struct diag *d)
{
    AUTO_FREE char *path = strndup(line->path, line->path_len);
    AUTO_BLOB struct blob *blob = NULL;
    AUTO_KALDI_IN struct kaldi_in in = {0};
    uint64_t at = line->place == SCP_OFFSET ? line->offset : 0;
    enum kaldi_type type = table->type;
    struct opener_run *run = NULL;
    struct kaldi_object object;
    int r;

    if (!path)
        return -ENOMEM;
    if (line->place == SCP_COMMAND && !table->opener->runs_commands)
        return opener_start(table->opener, path, &run,
                            d); /* its message says how to allow commands */
    if (line->place == SCP_COMMAND)
        return 1;
    r = opener_file(table->opener, table->folder, path, &blob, d);
    if (r == 0 && (!type || type == KALDI_WAVE) && !table->asked && names_sound(blob, line)) {
        table->type = KALDI_WAVE;
        return 0;
    }
    if (r == 0 && type == KALDI_UNKNOWN)
        r = sniff_type(table, blob, at, &type, d);
    if (r < 0)
        return r;
    kaldi_in_init(&in, blob);
    r = kaldi_measure(&in, at, type, &object, d);
    if (r == 0)
        table->type = type;
    return r;
}

int kaldi_check_line(const struct kaldi_table *table, const struct blob *blob, uint64_t number,
                     const struct scp_line *line, const char *wrong, uint64_t *empty_line,
                     struct diag *d)
{
    const char *ends = line->key_len > KEY_MAX ? scp_long_key : line->has_value ? NULL : wrong;

    if (ends && !line->key_len) {
        *empty_line = *empty_line ? *empty_line : number;
        return 1;
    }
    if (table->permissive || (!ends && !*empty_line))
        return ends != NULL;
    return diag_set(d, -EBADMSG,
                    "%s:%llu: %s: Kaldi ends the table there. Remove the line, or mount with -o "
                    "kaldi=p to omit it",
                    blob_name(blob), (unsigned long long)(*empty_line ? *empty_line : number),
                    *empty_line ? "blank line before other lines" : ends);
}

/* The first line that leads to an object decides; if none does, d keeps the first reason. Lines in
 * the first bytes, which the window holds, are checked too; the pass finds what comes after them.
 */
static int find_type_of_script(struct kaldi_table *table, struct diag *d)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    enum kaldi_type guess = KALDI_UNKNOWN;
    uint64_t at = 0, empty_line = 0;
    bool found = false;
    int r = 0;

    kaldi_in_init(&in, table->base.blob);
    in.window.least = LINE_MOST;
    for (unsigned i = 1; at < in.size && (found || i <= FIRST_LINES); i++) {
        bool ended;
        size_t len;
        const uint8_t *text = kaldi_in_line(&in, &at, LINE_MOST, &len, &ended);
        struct diag reason = DIAG_INIT;
        struct scp_line line;
        const char *wrong;

        if (!text)
            return kaldi_bad(&in, at, d, "cannot be read");
        if (found && !ended && in.size < table->base.blob->size)
            break;
        if (i == 1 && len >= 2 && text[0] == 0 && text[1] == 'B')
            return kaldi_bad(&in, 0, d, "expected lines of text, got a binary object");
        wrong = scp_line_parse((const char *)text, len, &line);
        if (wrong && !found)
            diag_set(d, -EBADMSG, "%s:%u: %s", blob_name(table->base.blob), i, wrong);
        r = at > LINE_MOST
                ? 0
                : kaldi_check_line(table, table->base.blob, i, &line, wrong, &empty_line, d);
        if (r < 0)
            return r;
        if (wrong || found)
            continue;
        r = type_of_line(table, &line, &reason);
        if (blob_says_nothing(r))
            return diag_set(d, r, "%s", diag_text(&reason, r));
        found = r == 0;
        in.size = found ? min_u64(in.size, LINE_MOST) : in.size;
        if (r == 1 && !guess) /* the next line may name a file */
            guess = table->asked ? table->asked : guess_output(table, &line);
        if (r < 0)
            diag_set(d, r, "%s:%u: %s", blob_name(table->base.blob), i, diag_text(&reason, r));
    }
    if (!found && guess && !table->type)
        table->type = guess;
    return found || guess ? 0 : -EBADMSG;
}

/* As in Kaldi, a file is no archive if its first object cannot be read. */
int kaldi_find_type(struct kaldi_table *table, struct diag *d)
{
    AUTO_KALDI_IN struct kaldi_in in = {0};
    struct kaldi_object object;
    uint8_t key[KEY_MAX];
    uint64_t at = 0;
    size_t len = 0;
    const uint8_t *start;
    bool is_plain, asks = table->type == KALDI_UNKNOWN;
    int r = 1;

    kaldi_in_init(&in, table->base.blob);
    start = kaldi_in_at(&in, 0, 3, &len);
    if (!start)
        return kaldi_bad(&in, 0, d, "cannot be read");
    table->has_mark = utf8_mark(start, len);
    if (table->layout == KALDI_SCRIPT)
        return find_type_of_script(table, d);
    if (table->layout == KALDI_ARCHIVE)
        r = kaldi_next_key(&in, &at, 0, key, &len, &is_plain, d);
    if (r == 0)
        return kaldi_bad(&in, 0, d, "expected a key and an object, got the end of the file");
    if (r == 1)
        r = asks ? sniff_type(table, table->base.blob, at, &table->type, d) : 0;
    if (r < 0)
        return r;
    if (asks && at && table->type == KALDI_OPAQUE)
        return kaldi_bad(&in, at, d,
                         "expected objects whose ends are known, got opaque ones: give the scp "
                         "that was written with the archive");
    if (!at && table->type > KALDI_PACKED && table->type != KALDI_OPAQUE)
        return kaldi_bad(&in, 0, d, "expected a matrix, a vector or a token such as <Nnet3>");
    return kaldi_measure(&in, at, table->type, &object, d);
}
