/* Files of a folder, of a format. The input is "FORMAT OPTION=VALUE ...\n", then for each file
 * "=== PATH\n" and its bytes, up to a newline before the next one. Files of the folder of the first
 * one are the source, except those with a mark of format_open() before their name; the others can
 * be opened. All that is read has a sum: also from kept indexes, from bytes that are absent until
 * they are fetched, and where each of the first reads fails. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_context.h"
#include "format/registry.h"
#include "saw.h"
#include "support/absent_blob.h"
#include "support/memory_opener.h"
#include "support/one_store.h"

#define FILES_MOST  12
#define FAIL_MOST   3 /* reads of a single file that fail, one after another */
#define CHANGES     2 /* of kept indexes */
#define ABSENT      3 /* samples that are read from absent bytes, and a batch */
#define TRIPS_MOST  99
#define PIXELS_MOST 20
#define BEGINS      "=== "

static const struct {
    const char *name;
    enum { FLAG, CHOICE, NUMBER, PIXELS, LETTER, WORD } kind;
    size_t at;
} options[] = {
    {"transpose", FLAG, offsetof(struct format_options, transpose)},
    {"doubles", FLAG, offsetof(struct format_options, doubles)},
    {"pair_off", FLAG, offsetof(struct format_options, pair_off)},
    {"audio", FLAG, offsetof(struct format_options, audio)},
    {"header", CHOICE, offsetof(struct format_options, header)},
    {"bad_rows", CHOICE, offsetof(struct format_options, bad_rows)},
    {"index_base", CHOICE, offsetof(struct format_options, index_base)},
    {"classes", NUMBER, offsetof(struct format_options, classes)},
    {"height", PIXELS, offsetof(struct format_options, picture_height)},
    {"width", PIXELS, offsetof(struct format_options, picture_width)},
    {"seq", NUMBER, offsetof(struct format_options, seq)},
    {"stride", NUMBER, offsetof(struct format_options, stride)},
    {"pack", NUMBER, offsetof(struct format_options, pack)},
    {"pad", NUMBER, offsetof(struct format_options, pad)},
    {"split_docs", FLAG, offsetof(struct format_options, split_docs)},
    {"sequences", FLAG, offsetof(struct format_options, sequences)},
    {"tokens_given", FLAG, offsetof(struct format_options, tokens_given)},
    {"tokens_raw", FLAG, offsetof(struct format_options, tokens_raw)},
    {"tokens", CHOICE, offsetof(struct format_options, tokens)},
    {"delimiter", LETTER, offsetof(struct format_options, delimiter)},
    {"comment", LETTER, offsetof(struct format_options, comment)},
    {"label", WORD, offsetof(struct format_options, label)},
    {"label_column", WORD, offsetof(struct format_options, label_column)},
    {"weight_column", WORD, offsetof(struct format_options, weight_column)},
};

struct input {
    const struct format *format;
    struct format_options options;
    struct blob_faults faults;
    struct memory_opener opener;
    struct memory_file file[FILES_MOST];
    size_t n;
};

static void set_option(struct format_options *ret, const char *word)
{
    const char *value = strchr(word, '=');

    for (size_t i = 0; i < ARRAY_LEN(options) && value; i++) {
        uint8_t *at = (uint8_t *)ret + options[i].at;

        if (strlen(options[i].name) != (size_t)(value - word) ||
            strncmp(options[i].name, word, (size_t)(value - word)) != 0)
            continue;
        if (options[i].kind == FLAG)
            *(bool *)at = value[1] == '1';
        else if (options[i].kind == CHOICE)
            *(unsigned *)at = (unsigned)value[1] % 3;
        else if (options[i].kind == NUMBER)
            *(uint64_t *)at = strtoull(value + 1, NULL, 10);
        else if (options[i].kind == PIXELS)
            *(unsigned *)at = (unsigned)strtoul(value + 1, NULL, 10) % PIXELS_MOST;
        else if (options[i].kind == LETTER)
            *(char *)at = value[1];
        else
            *(const char **)at = value + 1;
    }
}

/* The next file that begins after a newline, the first of which is at; end: none does. */
static char *find_file(char *at, char *end)
{
    for (; at && (size_t)(end - at) > strlen(BEGINS);
         at = memchr(at + 1, '\n', (size_t)(end - at - 1)))
        if (!memcmp(at + 1, BEGINS, strlen(BEGINS)))
            return at;
    return end;
}

/* Split the input, which is changed. */
static void parse(struct input *f, char *text, char *end)
{
    char *next = memchr(text, '\n', (size_t)(end - text)), *name, *bytes;

    if (!next)
        return;
    *next = '\0';
    name = strsep(&text, " ");
    for (unsigned i = 0; i < n_formats; i++)
        if (!strcmp(formats[i]->name, name) && format_opens_files(formats[i]))
            f->format = formats[i];
    while ((name = strsep(&text, " ")))
        set_option(&f->options, name);
    if (!f->options.picture_height || !f->options.picture_width) /* each comes with the other */
        f->options.picture_height = f->options.picture_width = 0;
    next = find_file(next, end);
    while (next < end && f->n < FILES_MOST) {
        name = next + 1 + strlen(BEGINS);
        bytes = memchr(name, '\n', (size_t)(end - name));
        if (!bytes)
            return;
        *bytes++ = '\0';
        next = find_file(bytes - 1, end);
        f->file[f->n++] = (struct memory_file){
            name, bytes, next < bytes ? 0 : (size_t)(next - bytes), &f->faults};
    }
}

static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

static bool is_of_source(const struct input *f, size_t i)
{
    size_t len = folder_len(f->file[0].path);

    return folder_len(f->file[i].path) == len && !strncmp(f->file[i].path, f->file[0].path, len);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void probe_all(const struct input *f)
{
    const char *option = f->format->option ? f->format->option(&f->options) : NULL;
    struct folder_name all[FILES_MOST];
    struct folder_names names = {all, f->n};

    for (size_t i = 0; i < f->n; i++) {
        const char *name = last_part(f->file[i].path);

        all[i] = (struct folder_name){name, strlen(name), i};
    }
    folder_names_sort(&names);
    fuzz_saw(option, option ? strlen(option) : 0);
    for (size_t i = 0; i < f->n; i++) {
        struct probed_file file = {.name = last_part(f->file[i].path),
                                   .folder = names,
                                   .head = f->file[i].bytes,
                                   .len = (size_t)min_u64(f->file[i].len, FORMAT_HEAD),
                                   .whole = f->file[i].len <= FORMAT_HEAD,
                                   .size = f->file[i].len,
                                   .options = &f->options};

        saw_number(f->format->probe(&file));
        file.is_sibling = true;
        saw_number(f->format->probe(&file));
        file.whole = false;
        file.len /= 2;
        saw_number(f->format->probe(&file));
    }
}

/* Which files a text for people names, in its order, and whether it begins with one. */
static void saw_names(const struct input *f, const char *text)
{
    for (const char *at = text; at && *at; at++)
        for (size_t i = 0; i < f->n; i++)
            if (!strncmp(at, f->file[i].path, strlen(f->file[i].path)))
                saw_number(i << 1 | (at == text));
}

static void is_here(struct waiter *waiter)
{
    FUZZ_CHECK(!waiter->error);
}

/* Read a field whose bytes are absent: how often some must be fetched is seen. */
static void read_absent(struct absent *absent, const struct dataset *ds, const struct field *f,
                        struct selection *sel)
{
    uint8_t fetched[SAW_BYTES], here[SAW_BYTES];
    uint64_t size = 0, trips = 0, random = 1;
    struct waiter waiter = {.done = is_here};
    struct read_context rc;
    struct form form;
    int r;

    read_context_init(&rc, true);
    sel->rc = &rc;
    absent_drop(absent, 256, &random);
    for (;; trips++, missing_fetch(&rc, &waiter)) {
        r = field_form(ds, f, sel, &form, &size);
        size = min_u64(size, SAW_BYTES);
        if (r == 0)
            r = f->ops->read(&rc, ds, f, sel, 0, (size_t)size, fetched, NULL);
        if (r != -EAGAIN)
            break;
        FUZZ_CHECK(rc.n && trips < TRIPS_MOST);
    }
    read_context_release(&rc);
    sel->rc = NULL;
    saw_number(trips);
    saw_number((uint64_t)r);
    if (r == 0 && f->ops->read(READ_WAITS, ds, f, sel, 0, (size_t)size, here, NULL) == 0)
        FUZZ_CHECK(!memcmp(fetched, here, (size_t)size));
}

static void read_all_absent(struct absent *absent, struct dataset *ds)
{
    struct selection batch;
    struct one_sample one;

    while (dataset_state(ds) == DATASET_PREPARING && !dataset_prepare(ds))
        ;
    saw_number(absent->fetches);
    if (dataset_state(ds) == DATASET_FAILED)
        return;
    for (unsigned i = 0; i < ds->n_fields; i++) {
        for (uint64_t sample = 0; sample < min_u64(ds->samples, ABSENT); sample++) {
            one_sample_init(&one, sample);
            if (dataset_has(ds, sample, &ds->field[i]))
                read_absent(absent, ds, &ds->field[i], &one.sel);
        }
        in_order_init(&batch, 0, min_u64(ds->samples, SAW_SAMPLES));
        read_absent(absent, ds, &ds->field[i], &batch);
    }
}

/* absent: the remote that has the files; NULL: they are local. */
static void open_all(struct input *f, const struct index_store *keep, uint64_t fail,
                     struct absent *absent)
{
    struct format_setup setup = {.options = f->options, .keep = keep, .opener = &f->opener.opener};
    struct blob *blob[FILES_MOST];
    AUTO_TEXT struct text text = {0};
    struct memo *memo;
    struct found found;
    size_t n = 0;

    FUZZ_CHECK(memo_new(1 << 20, &memo) == 0);
    setup.memo = memo;
    f->faults = (struct blob_faults){.fail_read = fail, .absent = absent};
    for (size_t i = 0; i < f->n; i++)
        if (is_of_source(f, i))
            blob[n++] = memory_file_blob(&f->file[i]);
    FUZZ_CHECK(format_open(f->format, blob, n, &setup, &found) == 0);
    for (size_t i = 0; i < found.n && f->format->add_example; i++)
        if (found.item[i].ds)
            f->format->add_example(found.item[i].ds, &text);
    fuzz_saw(text.data, text.len);
    if (!absent)
        saw_found(&found);
    for (size_t i = 0; i < found.n; i++) {
        if (found.item[i].ds && absent)
            read_all_absent(absent, found.item[i].ds);
        text_release(&text);
        if (found.item[i].ds)
            notes_show(&found.item[i].ds->notes, &text);
        saw_names(f, text.data);
        saw_names(f, found.item[i].reason);
    }
    found_release(&found);
    memo_free(memo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = malloc(len + 1);
    struct absent absent = {0};
    struct input f = {0};

    FUZZ_CHECK(text);
    memcpy(text, data, len);
    parse(&f, text, text + len);
    if (!f.format || !f.n)
        return 0;
    memory_opener_init(&f.opener);
    f.opener.file = f.file;
    f.opener.n_files = f.n;
    probe_all(&f);
    for (unsigned again = 0; again < 2; again++)
        open_all(&f, &one_store, 0, NULL);
    for (uint64_t i = 0; i < CHANGES; i++) {
        one_store_change(fuzz_hash(data, len) + i * UINT64_C(0x9e3779b97f4a7c15));
        open_all(&f, &one_store, 0, NULL);
    }
    one_store_drop();
    open_all(&f, &no_store, 0, &absent);
    for (uint64_t fail = 1; fail <= FAIL_MOST && f.n == 1; fail++)
        if (fuzz_takes(fuzz_hash(data, len), (unsigned)fail, FAIL_MOST + 1))
            open_all(&f, &no_store, fail, NULL);
    return 0;
}
