/* Streams of tokens: Megatron-LM, llm.c, datatrove, and files without a header. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/opener.h"
#include "format/core/siblings.h"
#include "format/records/record_set.h"
#include "format/records/shards.h"
#include "format/tokens/packing.h"

/* ---- which files ---- */

static const char *const beside_ds[] = {".index", ".metadata", ".loss"};

/* Is it a file next to a .ds that is there? */
static bool is_beside_ds(const char *name, const struct folder_names *folder)
{
    for (size_t i = 0; i < ARRAY_LEN(beside_ds); i++) {
        size_t n = strlen(name) - strlen(beside_ds[i]);

        if (text_ends_with(name, beside_ds[i]) && n > 3 && !strncmp(name + n - 3, ".ds", 3) &&
            (!folder || folder_names_has(folder, name, n)))
            return true;
    }
    return false;
}

static bool is_described_ds(const struct probed_file *file)
{
    char name[512];

    if (!text_ends_with(file->name, ".ds"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(beside_ds); i++) {
        int n = snprintf(name, sizeof(name), "%s%s", file->name, beside_ds[i]);

        if ((size_t)n < sizeof(name) && folder_names_has(&file->folder, name, (size_t)n))
            return true;
    }
    return false;
}

/* Tokens do not say that they are tokens: those of a Megatron .bin may begin like any file. */
static bool decided_by(const char *name, char ret[static FORMAT_NAME])
{
    return text_ends_with(name, ".bin") &&
           snprintf(ret, FORMAT_NAME, "%.*s.idx", (int)strlen(name) - 4, name) < FORMAT_NAME;
}

static enum claim tokens_probe(const struct probed_file *file)
{
    const struct format_options *options = file->options;
    bool is_bin = text_ends_with(file->name, ".bin");

    /* What nanoGPT writes next to its tokens. It is never read. */
    if (options && options->tokens_given && !strcmp(file->name, "meta.pkl"))
        return CLAIM_ASIDE;
    if (megatron_starts(file->head, file->len))
        return CLAIM_STRONG;
    if (is_described_ds(file) || is_beside_ds(file->name, &file->folder))
        return CLAIM_NAMED;
    if (options && options->tokens_raw && is_bin)
        return CLAIM_NAMED;
    if (llmc_starts(file->head, file->len))
        return CLAIM_STRONG;
    /* SOURCE is this one file: what lies next to it is looked for when it is opened. */
    if (text_ends_with(file->name, ".ds") && file->folder.n <= 1)
        return CLAIM_WEAK;
    /* The user says so: chance may make them begin as a row of text does. */
    return options && options->tokens_given && is_bin ? CLAIM_STRONG : CLAIM_NONE;
}

/* ---- the files of a folder ---- */

static struct token_stream *stream_at(const struct record_folder *o, unsigned i)
{
    return (struct token_stream *)o->file[i];
}

/* The file of that name, stem_len bytes of stem and a suffix, if it is there and not used yet. */
static struct source_file *tokens_find_file(const struct record_folder *o, const char *stem,
                                            size_t stem_len, const char *suffix)
{
    char name[512];
    const struct folder_name *found;

    if (snprintf(name, sizeof(name), "%.*s%s", (int)stem_len, stem, suffix) >= (int)sizeof(name))
        return NULL;
    found = folder_names_find(&o->names, name, strlen(name));
    return found && o->source[found->number].blob ? &o->source[found->number] : NULL;
}

/* Open the file that has the first stem_len bytes of a file's name and a suffix: of the folder; or,
 * if SOURCE is one file, the one that lies next to it. NULL in *ret: there is none. 0, or -errno of
 * one that cannot be opened with the reason in d. */
static int tokens_open_beside(const struct record_folder *o, const struct source_file *file,
                              size_t stem_len, const char *suffix, struct blob **ret,
                              struct diag *d)
{
    struct source_file *beside = tokens_find_file(o, file->name, stem_len, suffix);
    char name[512];
    int r;

    *ret = beside ? TAKE_PTR(beside->blob) : NULL;
    if (beside || o->n_sources > 1 || !o->setup->opener || file->name != o->source[0].name ||
        snprintf(name, sizeof(name), "%.*s%s", (int)stem_len, file->name, suffix) >=
            (int)sizeof(name))
        return 0;
    r = opener_file(o->setup->opener, file->folder, name, ret, d);
    if (r == -ENOENT && d)
        d->set = false;
    return r == -ENOENT ? 0 : r;
}

static int open_megatron(struct record_folder *o, struct source_file *file,
                         struct token_stream **ret, struct diag *d)
{
    size_t stem = strlen(file->name) - (text_ends_with(file->name, ".idx") ? 4 : 0);
    struct blob *bin;
    int r = tokens_open_beside(o, file, stem, ".bin", &bin, d);

    if (r < 0)
        return r;
    if (!bin)
        return blob_bad(file->blob, d,
                        "expected the tokens in %.*s.bin next to it, got no such file", (int)stem,
                        file->name);
    r = stream_megatron(file, bin, o->setup, ret, d);
    if (r == 0)
        snprintf((*ret)->name, sizeof((*ret)->name), "%.*s", (int)stem, file->name);
    return r;
}

static int open_datatrove(struct record_folder *o, struct source_file *file,
                          struct token_stream **ret, struct diag *d)
{
    struct datatrove_files beside = {0};
    struct blob **const blob[] = {&beside.index, &beside.metadata, &beside.loss};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(blob) && r == 0; i++)
        r = tokens_open_beside(o, file, strlen(file->name), beside_ds[i], blob[i], d);
    if (r == 0)
        r = stream_datatrove(file, &beside, o->setup, ret, d);
    blob_free(beside.index);
    blob_free(beside.metadata);
    blob_free(beside.loss);
    return r;
}

/* The type that -o tokens= gives must be the one that a file states. */
static int check_option(const struct format_options *options, const struct token_stream *s,
                        struct diag *d)
{
    if (!options->tokens_given || s->layout == TOKENS_RAW || s->dtype == options->tokens)
        return 0;
    return blob_bad(s->base.blob, d, "expected tokens of %s, as -o token_dtype= says, got %s",
                    dtype_info(options->tokens)->name, dtype_info(s->dtype)->name);
}

/* Documents that samples, or windows, are made of must be known. */
static int check_documents(const struct format_options *options, const struct token_stream *s,
                           struct diag *d)
{
    uint64_t most =
        UINT64_MAX >> (64 - 8 * s->width + (s->dtype == DTYPE_I4 || s->dtype == DTYPE_I8));

    if (options->pad > most)
        return diag_set(d, -EBADMSG,
                        "%s: expected -o pad= of at most %llu, a token of %s, got %llu",
                        blob_name(s->base.blob), (unsigned long long)most,
                        dtype_info(s->dtype)->name, (unsigned long long)options->pad);
    if (s->documents.table != DOCUMENTS_NONE || (options->seq && !options->pack))
        return 0;
    return diag_set(d, -EBADMSG, "%s: nothing says where its documents end%s",
                    blob_name(s->base.blob),
                    options->seq ? ", so -o pack= cannot pack them. Use -o seq_len= alone"
                                 : ". For samples of T + 1 tokens, give -o seq_len=T");
}

static int open_stream(struct record_folder *o, struct source_file *file, struct token_stream **ret,
                       struct diag *d)
{
    const struct format_options *options = &o->setup->options;
    uint8_t head[16] = {0};
    size_t len = (size_t)min_u64(sizeof(head), file->blob->size);
    bool is_bin = text_ends_with(file->name, ".bin");
    int r = blob_read(READ_WAITS, file->blob, head, len, 0, d);

    if (r < 0)
        return r;
    if (megatron_starts(head, len))
        return open_megatron(o, file, ret, d);
    if (text_ends_with(file->name, ".ds"))
        return open_datatrove(o, file, ret, d);
    if (llmc_starts(head, len) && !options->tokens_raw)
        return stream_llmc(file, o->setup, ret, d);
    if (options->tokens_given && is_bin)
        return stream_raw(file, o->setup, ret, d);
    return blob_bad(
        file->blob, d,
        "byte 0: expected the header of a Megatron-LM index in the .idx next to it, or -o "
        "token_dtype=uint16 (or uint8, uint32, int32, int64) for tokens without a header");
}

static int add_stream(struct record_folder *o, struct source_file *file)
{
    const struct format_options *options = &o->setup->options;
    const char *file_name = file->file_name;
    AUTO_STREAM struct token_stream *s = NULL;
    struct diag d = DIAG_INIT;
    int r = open_stream(o, file, &s, &d);

    if (r == 0 && !s->name[0])
        snprintf(s->name, sizeof(s->name), "%s", file->name);
    if (r == 0)
        r = check_option(options, s, &d);
    if (r == 0)
        r = check_documents(options, s, &d);
    if (r == 0 && options->pack)
        r = packing_new(s, o->setup, &s->packing);
    if (r == 0 && !options->seq)
        r = stream_add_columns(s);
    if (r == 0) {
        o->name[o->n] = file->name;
        o->file[o->n++] = &TAKE_PTR(s)->base;
    }
    if (r == -ENOMEM || r == 0)
        return r;
    return o->finds->failed(o->finds, file_name, r, diag_text(&d, r));
}

/* Files whose .bin, or .idx, cannot be read now. */
static int miss_halves(struct record_folder *o)
{
    int r = 0;

    for (size_t i = 0; i < o->finds->n_unread && r == 0; i++) {
        const struct unread_file *unread = &o->finds->unread[i];
        bool is_idx = text_ends_with(unread->name, ".idx");
        size_t stem = strlen(unread->name) - 4;
        struct source_file *half = NULL;
        char name[512];

        if (is_idx || text_ends_with(unread->name, ".bin"))
            half = tokens_find_file(o, unread->name, stem, is_idx ? ".bin" : ".idx");
        if (!half)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)stem, unread->name);
        blob_free(TAKE_PTR(half->blob));
        r = finds_incomplete(o->finds, name, unread);
    }
    return r;
}

/* Indexes first: they use other files. */
static int add_streams(struct record_folder *o)
{
    int r = miss_halves(o);

    for (size_t i = 0; i < o->n_sources && r == 0; i++) {
        struct source_file *file = &o->source[i];

        /* A .bin whose .idx comes later is left to it. */
        if (!file->blob || is_beside_ds(file->name, NULL) ||
            (text_ends_with(file->name, ".bin") &&
             tokens_find_file(o, file->name, strlen(file->name) - 4, ".idx")))
            continue;
        r = add_stream(o, file);
    }
    return r;
}

/* ---- the datasets ---- */

static bool tokens_are_alike(const struct token_stream *a, const struct token_stream *b)
{
    return a->layout == b->layout && a->dtype == b->dtype;
}

/* Two of n files do not fit: one has losses, or a type, that the other has not. Report it. */
static int tokens_refuse_set(const struct record_folder *o, const char *name,
                             const struct token_stream *a, const struct token_stream *b)
{
    const struct token_stream *with = a->loss ? a : b, *without = a->loss ? b : a;
    struct diag d = DIAG_INIT;

    if (tokens_are_alike(a, b))
        diag_set(&d, -EBADMSG,
                 "%s: has no .loss, but %s has one: expected %s.loss, got no such file. Add it, or "
                 "remove the .loss files",
                 without->name, with->name, without->name);
    else
        diag_set(&d, -EBADMSG,
                 "%s: its shards differ: expected %s (%s) as in %s, got %s (%s) in %s. Put them in "
                 "a directory each",
                 name, dtype_info(a->dtype)->name, token_programs[a->layout].name, a->name,
                 dtype_info(b->dtype)->name, token_programs[b->layout].name, b->name);
    return o->finds->error(o->finds, name, d.text);
}

/* The first of n streams that does not fit the first one: its type, or whether it has losses. n:
 * none. */
static unsigned find_other(const struct record_folder *o, unsigned first, unsigned n)
{
    const struct token_stream *a = stream_at(o, first);
    unsigned i = 1;

    while (i < n && tokens_are_alike(a, stream_at(o, first + i)) &&
           !a->loss == !stream_at(o, first + i)->loss)
        i++;
    return i;
}

/* Say which files have no index of documents, where others have one. */
static void note_documents(const struct record_folder *o, unsigned first, unsigned n,
                           struct dataset *ds)
{
    const struct token_stream *with = NULL, *without = NULL;

    for (unsigned i = first; i < first + n; i++) {
        const struct token_stream *s = stream_at(o, i);

        with = s->documents.table ? s : with;
        without = s->documents.table || without ? without : s;
    }
    if (with && without)
        notes_add(&ds->notes,
                  "%s has no index of documents, %s has one: fields that count documents are "
                  "omitted",
                  without->name, with->name);
}

static int tokens_add_dataset(struct record_folder *o, unsigned first, unsigned n, const char *name,
                              bool unlisted)
{
    AUTO_DATASET struct dataset *ds = NULL;
    unsigned other = find_other(o, first, n);
    int r;

    if (other < n)
        return tokens_refuse_set(o, name, stream_at(o, first), stream_at(o, first + other));
    r = o->setup->options.seq ? windows_new(o->file + first, n, o->setup, &ds)
                              : record_set_new(&token_documents, o->file + first, n, o->setup, &ds);
    if (r < 0)
        return r;
    ds->unlisted = unlisted;
    note_documents(o, first, n, ds);
    r = n > 1 ? record_folder_missing(o, first, n, n == o->n, &ds->missing) : 0;
    return r < 0 ? r : o->finds->dataset(o->finds, name, TAKE_PTR(ds));
}

/* Bytes of the name before the number that shards are counted by; 0: it has none. */
static size_t stem_of(const char *name)
{
    size_t len = strlen(name);

    if (text_ends_with(name, ".bin"))
        len -= 4;
    if (!len || !isdigit((unsigned char)name[len - 1]))
        return 0;
    while (len && isdigit((unsigned char)name[len - 1]))
        len--;
    while (len && strchr("-_.", name[len - 1]))
        len--;
    return len;
}

/* How many streams from first on are shards of one set by their names. */
static unsigned set_length(const struct record_folder *o, unsigned first)
{
    const struct token_stream *a = stream_at(o, first);
    size_t stem = stem_of(a->name);
    unsigned n = 1;

    while (stem && first + n < o->n && stem_of(stream_at(o, first + n)->name) == stem &&
           !strncmp(a->name, stream_at(o, first + n)->name, stem))
        n++;
    return n;
}

static int add_sets(struct record_folder *o)
{
    int r = 0;

    for (unsigned i = 0, n; i < o->n && r == 0; i += n) {
        char name[256];

        n = set_length(o, i);
        snprintf(name, sizeof(name), "%.*s", (int)stem_of(stream_at(o, i)->name),
                 stream_at(o, i)->name);
        if (n > 1 && n < o->n)
            r = tokens_add_dataset(o, i, n, name, false);
    }
    return r;
}

/* The streams from the first one on that are like it. */
static unsigned count_alike(const struct record_folder *o)
{
    unsigned n = 0;

    while (n < o->n && tokens_are_alike(stream_at(o, 0), stream_at(o, n)))
        n++;
    return n;
}

static int add_datasets(struct record_folder *o)
{
    int joins = shards_join(o->n, o->finds), r = joins < 0 ? joins : 0;
    bool alike = count_alike(o) == o->n;

    for (unsigned i = 0; i < o->n && r == 0; i++)
        r = tokens_add_dataset(o, i, 1, stream_at(o, i)->name,
                               joins == 1 && alike && o->n > RECORD_LISTED);
    /* It is an error if all are one set that does not fit together. */
    if (r == 0 && joins == 1 && (alike || set_length(o, 0) == o->n))
        r = tokens_add_dataset(o, 0, o->n, SHARDS_ALL, false);
    return r == 0 && joins == 1 ? add_sets(o) : r;
}

static int tokens_open_folder(struct source_file *source, size_t n,
                              const struct format_setup *setup, struct finds *finds)
{
    AUTO_RECORD_FOLDER struct record_folder o;
    int r = record_folder_begin(&o, source, n, setup, finds);

    if (r == 0)
        r = folder_names_of(source, n, &o.names);
    if (r == 0)
        r = add_streams(&o);
    return r < 0 ? r : add_datasets(&o);
}

static void tokens_example(const struct dataset *ds, struct text *t)
{
    (void)ds;
    text_add(t, "  batch = np.load(root + '/batches/batch=32,seed=7/epoch=0/npz/000000.npz')\n"
                "  tokens = batch['tokens']\n");
    if (dataset_field(ds, "x"))
        text_add(t, "  x, y = tokens[:, :-1].astype('i8'), tokens[:, 1:].astype('i8')\n");
}

static const char *tokens_hint(const struct probed_file *file)
{
    return text_ends_with(file->name, ".bin")
               ? "tokens without a header, as nanoGPT writes them, take "
                 "-o token_dtype=uint16 (or uint8, uint32, int32, int64)"
               : NULL;
}

static const char *tokens_option(const struct format_options *options)
{
    return options->seq            ? "seq_len"
           : options->stride       ? "stride"
           : options->split_docs   ? "across_docs"
           : options->pack         ? "pack"
           : options->sequences    ? "megatron_unit"
           : options->tokens_given ? "token_dtype"
                                   : NULL;
}

const struct format format_tokens = {
    .name = "tokens",
    .probe = tokens_probe,
    .decided_by = decided_by,
    .option = tokens_option,
    .hint = tokens_hint,
    .open_folder = tokens_open_folder,
    .title = "tokens of Megatron-LM, llm.c, datatrove and nanoGPT",
    .add_example = tokens_example,
};
