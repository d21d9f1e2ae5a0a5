/* An archive is hopped over from header to header. An scp file is read line by line, and the header
 * of each object where it stands; lines with commands are read ahead, so that some can run at once.
 */
#include "format/kaldi_pass.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/clock.h"
#include "format/kaldi_scp.h"
#include "format/kaldi_wave.h"

#define STEP_NS   10000000 /* a step of the pass */
#define LOOK      64       /* rows between two looks at the clock */
#define LINE_MOST (1u << 20)
#define WAIT_MS   10 /* for a command, in a step */
#define AHEAD     32 /* lines that are read ahead */
#define NOTES     10 /* of a kind, in the table's notes */
#define KEY_USUAL 64 /* bytes that are looked at first */

/* A line of an scp file that waits for its turn. */
struct line {
    char *text; /* owned; NULL: none */
    size_t len;
    uint64_t number;
    struct scp_line parsed;
    const char *wrong;
    struct opener_run *run;
};

/* Where the paths of files are found by their hash. */
struct path_table {
    uint32_t *number; /* [room] of the file + 1; 0: free */
    size_t room, used;
};

struct kaldi_pass {
    struct kaldi_table *table;
    struct kaldi_in in; /* of the table's own file */
    uint64_t at;
    unsigned nuls; /* that may stand before the next key */
    uint64_t lines;
    bool ended;

    struct kaldi_in object; /* of the file that the last line has named */
    size_t object_file;     /* its number; 0: none */
    struct path_table paths;
    struct line ahead[AHEAD]; /* a ring: n_ahead from first_ahead on */
    unsigned first_ahead, n_ahead;

    uint8_t last[KEY_MAX]; /* key */
    size_t last_len;
    uint64_t rows, good;
    unsigned told_order, told_bad;
    struct kaldi_fault *fault; /* [n_faults] owned */
    size_t n_faults;
};

int kaldi_pass_new(struct kaldi_table *table, struct kaldi_pass **ret)
{
    struct kaldi_pass *pass = calloc(1, sizeof(*pass));

    if (!pass)
        return -ENOMEM;
    pass->table = table;
    kaldi_in_init(&pass->in, table->blob);
    *ret = pass;
    return 0;
}

static void line_release(struct kaldi_pass *pass, struct line *line)
{
    opener_stop(pass->table->opener, line->run);
    free(line->text);
    *line = (struct line){0};
}

void kaldi_pass_free(struct kaldi_pass *pass)
{
    if (!pass)
        return;
    kaldi_in_release(&pass->in);
    kaldi_in_release(&pass->object);
    for (unsigned i = 0; i < AHEAD; i++)
        line_release(pass, &pass->ahead[i]);
    for (size_t i = 0; i < pass->n_faults; i++)
        free(pass->fault[i].text);
    free(pass->fault);
    free(pass->paths.number);
    free(pass);
}

/* ---- rows ---- */

uint64_t kaldi_len_estimate(enum kaldi_store store, const uint64_t dim[static KALDI_DIMS])
{
    static const uint8_t bytes[N_KALDI_STORES] = {
        [KALDI_FM] = 4,   [KALDI_DM] = 8,     [KALDI_CM] = 1,   [KALDI_CM2] = 2,  [KALDI_CM3] = 1,
        [KALDI_FV] = 4,   [KALDI_DV] = 8,     [KALDI_FP] = 4,   [KALDI_DP] = 8,   [KALDI_NPY] = 4,
        [KALDI_NPY8] = 8, [KALDI_BINARY] = 5, [KALDI_RIFF] = 2, [KALDI_RIFX] = 2,
    };

    switch (store) {
    case KALDI_FV:
    case KALDI_DV:
    case KALDI_FP:
    case KALDI_DP:
    case KALDI_BINARY:
        return dim[0] * bytes[store];
    default: /* may wrap around: it only has to be the same each time */
        return dim[0] * (dim[1] ? dim[1] : 1) * bytes[store];
    }
}

static void note(struct kaldi_table *table, unsigned *told, const char *text)
{
    if ((*told)++ < NOTES)
        text_add(&table->notes, "%s\n", text);
    else if (*told == NOTES + 1)
        text_add(&table->notes, "and more of that kind\n");
}

static int check_order(struct kaldi_pass *pass, const uint8_t *key, size_t len)
{
    size_t common = len < pass->last_len ? len : pass->last_len;
    int order = common ? memcmp(pass->last, key, common) : 0;
    char text[512];

    if (!order)
        order = pass->last_len < len ? -1 : pass->last_len > len;
    if (pass->rows && order >= 0 && pass->table->sorted) {
        snprintf(text, sizeof(text),
                 "%s: row %llu: want keys in the order of their bytes (kaldi=s), found '%.*s' %s "
                 "'%.*s'",
                 blob_name(pass->table->blob), (unsigned long long)pass->rows + 1,
                 (int)min_u64(len, 100), (const char *)key, order ? "behind" : "twice, behind",
                 (int)min_u64(pass->last_len, 100), (const char *)pass->last);
        note(pass->table, &pass->told_order, text);
    }
    memcpy(pass->last, key, len);
    pass->last_len = len;
    return 0;
}

static int add_row(struct kaldi_pass *pass, const uint8_t *key, size_t len,
                   const uint64_t number[static KALDI_COLUMNS])
{
    check_order(pass, key, len);
    pass->rows++;
    return key_index_add(pass->table->builder, key, len, number);
}

static int add_bad_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, const char *reason)
{
    uint64_t number[KALDI_COLUMNS] = {[COLUMN_WHAT] = KALDI_BAD};
    struct kaldi_table *table = pass->table;

    note(table, &pass->told_bad, reason);
    if (table->permissive) {
        table->totals.left_out++;
        return 0;
    }
    table->totals.bad++;
    if (pass->n_faults < KALDI_FAULTS) {
        if (array_room(&pass->fault, pass->n_faults, sizeof(*pass->fault)) < 0)
            return -ENOMEM;
        pass->fault[pass->n_faults].row = pass->rows;
        pass->fault[pass->n_faults].text = strdup(reason);
        if (!pass->fault[pass->n_faults++].text)
            return -ENOMEM;
    }
    return add_row(pass, key, len, number);
}

static void add_to_totals(struct kaldi_pass *pass, const struct kaldi_object *object,
                          const uint64_t n[static 2])
{
    struct kaldi_totals *t = &pass->table->totals;
    const uint64_t dim[2] = {n[1], object->dim[2]};

    for (unsigned i = 0; i < 2; i++) {
        /* A matrix without rows has no columns, and still goes with the others. */
        if (!n[0] && !dim[i])
            continue;
        if (!pass->good)
            t->dim[i] = dim[i];
        t->varies[i] = t->varies[i] || t->dim[i] != dim[i];
    }
    pass->good += n[0] || n[1];
    switch (object->store) {
    case KALDI_DM:
    case KALDI_DV:
    case KALDI_DP:
    case KALDI_NPY8:
    case KALDI_BINARY8:
        t->any_double = true;
        break;
    case KALDI_SM:
    case KALDI_SV:
        t->any_double = t->any_double || object->dim[2];
        break;
    default:
        break;
    }
}

/* What is told of text beside its dims: where its tokens are, and whether its line ends. */
static int look_at_text(struct kaldi_in *in, struct kaldi_object *object, unsigned *flags)
{
    bool tokens = object->type == KALDI_TOKEN || object->type == KALDI_TOKENS;
    uint64_t from = tokens || !object->len ? object->start : object->start + object->len - 1;
    size_t len = (size_t)(object->start + object->len - from), have = 0;
    const uint8_t *text;

    if (object->store != KALDI_TEXT)
        return 0;
    text = kaldi_in_at(in, from, len, &have);
    if (!text || have < len)
        return in->error ? in->error : -ESTALE;
    if (tokens)
        kaldi_text_trim(text, len, &object->dim[1], &object->dim[0]);
    if (!len || text[len - 1] != '\n')
        *flags |= WHAT_OPEN;
    return 0;
}

/* Where the samples of a wave begin in it. */
static int look_at_wave(struct kaldi_in *in, const struct kaldi_object *object,
                        uint64_t ret_range[static 4])
{
    struct kaldi_wave wave;
    int r = object->type == KALDI_WAVE ? kaldi_wave_measure(in, object->start, &wave, NULL) : 0;

    if (r == 0 && object->type == KALDI_WAVE)
        ret_range[1] = wave.data - object->start;
    return r;
}

/* range: the rows and columns that count, if flags have WHAT_CUT. */
static int add_good_row(struct kaldi_pass *pass, const uint8_t *key, size_t len, size_t file,
                        const struct kaldi_object *object, unsigned flags, const uint64_t *range)
{
    uint64_t n[2] = {object->dim[0], object->dim[1]};
    uint64_t number[KALDI_COLUMNS] = {
        [COLUMN_FILE] = file,
        [COLUMN_START] = object->start,
        [COLUMN_WHAT] = object->store | flags,
        [COLUMN_LEN] = object->len - kaldi_len_estimate(object->store, object->dim),
    };

    for (unsigned i = 0; i < KALDI_DIMS; i++)
        number[COLUMN_DIM + i] = object->dim[i];
    memcpy(&number[COLUMN_FIRST], range, 4 * sizeof(*range));
    if (flags & WHAT_CUT) {
        n[0] = range[2];
        n[1] = range[3];
    }
    add_to_totals(pass, object, n);
    return add_row(pass, key, len, number);
}

/* ---- archives ---- */

/* The bytes of the key at the start of text; have: there is no end among these. */
static size_t key_end(const uint8_t *text, size_t have)
{
    size_t len = 0;

    while (len < have && len <= KEY_MAX && !memchr(" \t\n\v\f\r", text[len], 6))
        len++;
    return len;
}

int kaldi_next_key(struct kaldi_in *in, uint64_t *at, unsigned nuls,
                   uint8_t ret_key[static KEY_MAX], size_t *ret_len, bool *ret_plain,
                   struct diag *d)
{
    const uint8_t *text = NULL;
    size_t have = 0, len = 0;
    uint64_t from = *at;

    for (;; from++) {
        text = kaldi_in_at(in, from, KEY_USUAL, &have);
        if (!text)
            return kaldi_bad(in, from, d, "cannot be read");
        if (nuls && have >= nuls && !memcmp(text, "\0\0\0\0", nuls)) {
            from += nuls - 1;
            nuls = 0;
            continue;
        }
        nuls = 0;
        if (!have)
            return 0;
        if (!memchr(" \t\n\v\f\r", text[0], 6))
            break;
    }
    len = key_end(text, have);
    if (len == have) { /* a long one, or the last */
        text = kaldi_in_at(in, from, KEY_MAX + 1, &have);
        if (!text)
            return kaldi_bad(in, from, d, "cannot be read");
        len = key_end(text, have);
    }
    if (len > KEY_MAX)
        return kaldi_bad(in, from, d, "want a key of at most %u bytes, found more", KEY_MAX);
    if (len == have)
        return 0; /* a key without anything behind it is an end to Kaldi, too */
    if (text[len] != ' ' && text[len] != '\t' && text[len] != '\n')
        return kaldi_bad(in, from + len, d, "want a space behind key '%.*s', found byte %02x",
                         (int)min_u64(len, 60), (const char *)text, text[len]);
    memcpy(ret_key, text, len);
    *ret_len = len;
    *ret_plain = text[len] == ' ';
    *at = from + len + (text[len] != '\n');
    return 1;
}

/* An archive ends where it cannot be read: what comes behind cannot be found. */
static int end_archive(struct kaldi_pass *pass, const uint8_t *key, size_t len,
                       const struct diag *reason)
{
    pass->ended = true;
    if (!len) {
        note(pass->table, &pass->told_bad, reason->text);
        return 0;
    }
    return add_bad_row(pass, key, len, reason->text);
}

static int archive_row(struct kaldi_pass *pass, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    struct kaldi_object object;
    uint8_t key[KEY_MAX];
    size_t len = 0;
    uint64_t range[4] = {0};
    bool is_plain = false;
    unsigned flags = 0;
    int r = kaldi_next_key(&pass->in, &pass->at, pass->nuls, key, &len, &is_plain, &reason);

    if (r == 0)
        pass->ended = true;
    if (r == -EBADMSG)
        return end_archive(pass, NULL, 0, &reason);
    if (r < 0)
        return diag_set(d, r, "%s", reason.text);
    if (r == 0)
        return 0;
    r = kaldi_measure(&pass->in, pass->at, pass->table->type, &object, &reason);
    if (r == -EBADMSG)
        return end_archive(pass, key, len, &reason);
    if (r < 0)
        return diag_set(d, r, "%s", reason.text);
    r = look_at_text(&pass->in, &object, &flags);
    if (r == 0)
        r = look_at_wave(&pass->in, &object, range);
    if (r < 0)
        return r;
    pass->nuls = object.store == KALDI_CM && !object.dim[0] ? 4 : 0;
    pass->at = object.start + object.len;
    flags |= is_plain ? WHAT_PLAIN : 0;
    return add_good_row(pass, key, len, 0, &object, flags, range);
}

/* ---- files that lines name ---- */

static size_t path_place(const struct kaldi_pass *pass, const char *path, size_t len)
{
    const struct path_table *t = &pass->paths;
    size_t i = (size_t)key_hash(path, len) & (t->room - 1);

    for (; t->number[i]; i = (i + 1) & (t->room - 1)) {
        const char *known = pass->table->file[t->number[i] - 1].path;

        if (strlen(known) == len && !memcmp(known, path, len))
            break;
    }
    return i;
}

static int grow_paths(struct kaldi_pass *pass)
{
    struct path_table old = pass->paths, *t = &pass->paths;

    if (t->room && t->used < t->room / 2)
        return 0;
    t->room = old.room ? old.room * 2 : 64;
    t->number = calloc(t->room, sizeof(*t->number));
    if (!t->number) {
        *t = old;
        return -ENOMEM;
    }
    for (size_t i = 0; i < old.room; i++) {
        const char *path;

        if (!old.number[i])
            continue;
        path = pass->table->file[old.number[i] - 1].path;
        t->number[path_place(pass, path, strlen(path))] = old.number[i];
    }
    free(old.number);
    return 0;
}

/* Remember a file; takes blob over. */
static int add_file(struct kaldi_pass *pass, const char *path, size_t len, struct blob *blob,
                    size_t *ret)
{
    struct kaldi_table *table = pass->table;
    struct kaldi_file file = {.path = strndup(path, len), .blob = blob};
    int r = file.path ? array_room(&table->file, table->n_files, sizeof(file)) : -ENOMEM;

    if (r < 0) {
        free(file.path);
        blob_free(blob);
        return r;
    }
    table->file[table->n_files] = file;
    *ret = table->n_files++;
    r = grow_paths(pass);
    if (r == 0) {
        pass->paths.number[path_place(pass, path, len)] = (uint32_t)*ret + 1;
        pass->paths.used++;
    }
    return r;
}

/* The file of a line, known or opened now. */
static int file_of_line(struct kaldi_pass *pass, const struct line *line, size_t *ret,
                        struct diag *d)
{
    const struct scp_line *parsed = &line->parsed;
    AUTO_FREE char *path = strndup(parsed->path, parsed->path_len);
    struct blob *blob = NULL;
    int r;

    if (!path)
        return -ENOMEM;
    if (pass->paths.room) {
        uint32_t known = pass->paths.number[path_place(pass, path, parsed->path_len)];

        if (known) {
            *ret = known - 1;
            return 0;
        }
    }
    r = opener_file(pass->table->opener, pass->table->folder, path, &blob, d);
    return r < 0 ? r : add_file(pass, path, parsed->path_len, blob, ret);
}

/* ---- scp files ---- */

/* The parser's window on a file; the last one stays. */
static void turn_to(struct kaldi_pass *pass, size_t file)
{
    if (pass->object_file == file && file)
        return;
    kaldi_in_release(&pass->object);
    kaldi_in_init(&pass->object, pass->table->file[file].blob);
    pass->object_file = file;
}

static int bad_line(struct kaldi_pass *pass, const struct line *line, const char *what)
{
    char text[1400];

    snprintf(text, sizeof(text), "%s:%llu: %s", blob_name(pass->table->blob),
             (unsigned long long)line->number, what);
    return add_bad_row(pass, (const uint8_t *)line->parsed.key, line->parsed.key_len, text);
}

/* The file is not there, or the command failed: that may be otherwise next time. */
static int missing_line(struct kaldi_pass *pass, const struct line *line, const char *what)
{
    pass->table->may_differ = true;
    return bad_line(pass, line, what);
}

/* What of the object counts. NULL, or what is wrong. */
static const char *cut_of_line(const struct kaldi_pass *pass, const struct scp_range *range,
                               const struct kaldi_object *object, uint64_t ret[static 4])
{
    enum kaldi_type type = pass->table->type;
    const char *wrong;

    if (type != KALDI_MATRIX && type != KALDI_VECTOR)
        return "want a range of a matrix or a vector, found one of another object";
    if (type == KALDI_VECTOR && range->has_columns)
        return "want a range of one part for a vector, found two";
    wrong = scp_range_rows(range, object->dim[0], &ret[0], &ret[2]);
    if (!wrong && type == KALDI_MATRIX)
        wrong = scp_range_columns(range, object->dim[1], &ret[1], &ret[3]);
    return wrong;
}

/* The object of a line, in a file that is there. */
static int object_row(struct kaldi_pass *pass, const struct line *line, size_t file)
{
    const struct scp_line *parsed = &line->parsed;
    bool is_whole = parsed->kind != SCP_OFFSET;
    struct diag reason = DIAG_INIT;
    struct kaldi_object object;
    unsigned flags = is_whole ? WHAT_WHOLE : 0;
    uint64_t range[4] = {0};
    const char *wrong = NULL;
    int r;

    turn_to(pass, file);
    r = kaldi_measure(&pass->object, is_whole ? 0 : parsed->offset, pass->table->type, &object,
                      &reason);
    if (r == 0)
        r = look_at_text(&pass->object, &object, &flags);
    if (r == 0)
        r = look_at_wave(&pass->object, &object, range);
    if (r < 0) {
        pass->object.error = 0;
        return r == -ENOMEM ? r : bad_line(pass, line, diag_text(&reason, r));
    }
    if (parsed->range.is_given) {
        wrong = cut_of_line(pass, &parsed->range, &object, range);
        flags |= WHAT_CUT;
    }
    if (wrong)
        return bad_line(pass, line, wrong);
    return add_good_row(pass, (const uint8_t *)parsed->key, parsed->key_len, file, &object, flags,
                        range);
}

/* The output of a line's command. 0: not yet. */
static int finish_command(struct kaldi_pass *pass, struct line *line, size_t *ret_file,
                          struct diag *d)
{
    struct blob *blob = NULL;
    AUTO_FREE char *path = NULL;
    int r = opener_poll(pass->table->opener, line->run, WAIT_MS, &blob, d);

    if (r <= 0)
        return r;
    if (asprintf(&path, "%.*s|", (int)line->parsed.path_len, line->parsed.path) < 0) {
        path = NULL;
        blob_free(blob);
        return -ENOMEM;
    }
    r = add_file(pass, path, strlen(path), blob, ret_file);
    return r < 0 ? r : 1;
}

/* The row of the first line that was read ahead. 1: done, 0: its command runs. */
static int line_row(struct kaldi_pass *pass, struct line *line)
{
    struct diag reason = DIAG_INIT;
    size_t file = 0;
    int r;

    if (line->wrong) {
        r = bad_line(pass, line, line->wrong);
        return r < 0 ? r : 1;
    }
    if (line->parsed.kind == SCP_COMMAND) {
        AUTO_FREE char *command = NULL;

        if (!line->run) {
            command = strndup(line->parsed.path, line->parsed.path_len);
            r = command ? opener_start(pass->table->opener, command, &line->run, &reason) : -ENOMEM;
            if (r == -EAGAIN)
                return 0;
            if (r < 0) {
                r = r == -ENOMEM ? r : missing_line(pass, line, diag_text(&reason, r));
                return r < 0 ? r : 1;
            }
        }
        r = finish_command(pass, line, &file, &reason);
        if (r == 0)
            return 0;
        r = r == 1 ? 0 : r;
    } else {
        r = file_of_line(pass, line, &file, &reason);
    }
    if (r == 0)
        r = object_row(pass, line, file);
    else if (r != -ENOMEM)
        r = missing_line(pass, line, diag_text(&reason, r));
    return r < 0 ? r : 1;
}

/* The next line of the scp file as the last of those that wait. An scp file ends, as for Kaldi,
 * where a line has no key and value. */
static int read_line(struct kaldi_pass *pass, struct diag *d)
{
    struct line *line = &pass->ahead[(pass->first_ahead + pass->n_ahead) % AHEAD];
    size_t have = 0, len = 0, want = 256;
    const uint8_t *text, *end;
    char reason[1400];

    for (;; want *= 4) {
        text = kaldi_in_at(&pass->in, pass->at, want, &have);
        if (!text)
            return kaldi_bad(&pass->in, pass->at, d, "cannot be read");
        end = memchr(text, '\n', have);
        if (end || have < want || want > LINE_MOST)
            break;
    }
    if (!have) {
        pass->ended = true;
        return 0;
    }
    pass->lines++;
    len = end ? (size_t)(end - text) : have;
    *line = (struct line){.text = malloc(len + 1), .len = len, .number = pass->lines};
    if (!line->text)
        return -ENOMEM;
    memcpy(line->text, text, len);
    line->text[len] = '\0';
    pass->at += len + (end != NULL);
    line->parsed.ends_table = true;
    line->wrong = len > LINE_MOST ? "want a shorter line, found one of more than 1 MiB"
                                  : scp_line_parse(line->text, len, &line->parsed);
    if ((line->wrong && line->parsed.ends_table) || line->parsed.key_len > KEY_MAX) {
        snprintf(reason, sizeof(reason), "%s:%llu: %s; the table ends here",
                 blob_name(pass->table->blob), (unsigned long long)line->number,
                 line->wrong ? line->wrong : "want a key of at most 1024 bytes");
        note(pass->table, &pass->told_bad, reason);
        line_release(pass, line);
        pass->ended = true;
        return 0;
    }
    pass->n_ahead++;
    return 0;
}

/* Start the commands of the lines that wait, as many as may run. */
static int start_ahead(struct kaldi_pass *pass)
{
    for (unsigned i = 0; i < pass->n_ahead; i++) {
        struct line *line = &pass->ahead[(pass->first_ahead + i) % AHEAD];
        AUTO_FREE char *command = NULL;
        struct diag d = DIAG_INIT;

        if (line->wrong || line->parsed.kind != SCP_COMMAND || line->run)
            continue;
        command = strndup(line->parsed.path, line->parsed.path_len);
        if (!command)
            return -ENOMEM;
        /* Why one cannot start is said when its turn comes. */
        if (opener_start(pass->table->opener, command, &line->run, &d) < 0)
            break;
    }
    return 0;
}

static int script_row(struct kaldi_pass *pass, struct diag *d)
{
    struct line *first;
    int r = 0;

    while (pass->n_ahead < AHEAD && !pass->ended && r == 0)
        r = read_line(pass, d);
    if (r == 0 && pass->n_ahead)
        r = start_ahead(pass);
    if (r < 0 || !pass->n_ahead)
        return r;
    first = &pass->ahead[pass->first_ahead];
    r = line_row(pass, first);
    if (r == 1) {
        line_release(pass, first);
        pass->first_ahead = (pass->first_ahead + 1) % AHEAD;
        pass->n_ahead--;
    }
    return r == 0 ? -EAGAIN : r < 0 ? r : 0;
}

/* ---- the pass ---- */

int kaldi_pass_step(struct kaldi_pass *pass, struct diag *d)
{
    struct kaldi_table *table = pass->table;
    int64_t until = monotonic_ns() + STEP_NS;

    for (unsigned i = 1;; i++) {
        int r = table->kind == KALDI_ARCHIVE ? archive_row(pass, d) : script_row(pass, d);

        atomic_store_explicit(&table->seen, min_u64(pass->at, table->blob->size),
                              memory_order_relaxed);
        if (r == -EAGAIN)
            return 0;
        if (r < 0)
            return r;
        if (pass->ended && !pass->n_ahead)
            return 1;
        if (i % LOOK == 0 && monotonic_ns() > until)
            return 0;
    }
}

size_t kaldi_pass_faults(const struct kaldi_pass *pass, const struct kaldi_fault **ret)
{
    *ret = pass->fault;
    return pass->n_faults;
}
