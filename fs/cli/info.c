/* epochfs info: shows what a source has, without mounting it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/extensions.h"
#include "base/text.h"
#include "fs/cli/commands.h"
#include "fs/cli/drawing.h"
#include "fs/log/log.h"
#include "fs/tree/class_page.h"
#include "fs/tree/pages.h"
#include "fs/tree/splits.h"
#include "fs/tree/tree.h"

#define CHECK_BYTES (1 << 20)
#define ORIGIN_SIZE 400
#define CLASS_BARS  40
#define DRAWN       8 /* datasets of one source that are drawn, at most */

/* A source with more files that cannot be used, such as the folder of a program, has its datasets
 * shown, the first of these files, and of the others how many there are of which kind. */
#define UNUSABLE_SHOWN 16
#define UNUSABLE_FIRST 4

#define MISSING_SHOWN 10 /* parts that a dataset lacks; --check shows all that are known */

struct info_call {
    bool json, check, layout;
    const char *source;
};

static bool is_usable(const struct catalog_item *item)
{
    return item->ds && dataset_state(item->ds) == DATASET_READY;
}

static const char *why_unusable(const struct catalog_item *item)
{
    return item->ds ? item->ds->reason.text : item->error;
}

/* Print a few samples. Reading them may take a while, so all else is printed first. */
static void print_drawing(const struct dataset *ds, struct glyphs *glyphs)
{
    AUTO_TEXT struct text t = {0};

    fflush(stdout);
    glyphs->no_drawings = !drawing_add(ds, glyphs, &t);
    fputs(t.data ? t.data : "", stdout);
}

/* Count the classes of a dataset: those that are cheap to count, or all. false: it has none, or,
 * with *ret_why, they are not known. */
static bool cli_info_count_classes(const struct dataset *ds, bool all, struct class_counts *ret,
                                   const char **ret_why, struct diag *d)
{
    const struct field *f = class_counts_field(ds);
    bool counts = f && (all || class_counts_are_cheap(ds, f));
    int r = counts ? class_counts_init(ret, ds, f, d) : 0;

    *ret_why = NULL;
    if (f && !counts)
        diag_set(d, 0, "of %s; --check counts them", ds->label);
    if (f && !counts)
        *ret_why = d->text;
    else if (r < 0 && !(r == -EBADMSG && dtype_info(f->dtype)->letter == 'f'))
        *ret_why = diag_text(d, r);
    return counts && r == 0;
}

#define BARS_INDENT 13
#define BARS_LEAST  20 /* columns that there must be for them */

/* A bar for each class; of many, the mean of neighbours. */
static void draw_classes(const struct class_counts *c, const struct glyphs *glyphs, struct text *t)
{
    unsigned n = (unsigned)min_u64(c->n, CLASS_BARS);
    float height[CLASS_BARS] = {0};

    for (unsigned i = 0; i < n; i++) {
        uint64_t from = c->n * i / n, to = c->n * (i + 1) / n;

        for (uint64_t k = from; k < to; k++)
            height[i] += (float)c->count[k] / (float)(to - from) / (float)c->count[c->most];
    }
    text_add(t, "%*s", BARS_INDENT, "");
    glyphs_add_bars(glyphs, height, n, t);
    text_add(t, "\n");
}

static void cli_info_print_classes(const struct dataset *ds, bool all, const struct glyphs *glyphs)
{
    AUTO_CLASS_COUNTS struct class_counts counts = {0};
    AUTO_TEXT struct text t = {0};
    struct diag d = DIAG_INIT;
    const char *why;

    if (!cli_info_count_classes(ds, all, &counts, &why, &d)) {
        if (why) /* which may say itself of what it speaks */
            printf("    classes  %s\n", strncmp(why, "classes ", 8) ? why : why + 8);
        return;
    }
    class_page_words(ds, &counts, &t);
    if (t.data)
        text_plain(t.data, "");
    text_add(&t, "\n");
    if (glyphs && counts.n > 1 &&
        glyphs->columns >= BARS_INDENT + max_u64(BARS_LEAST, min_u64(counts.n, CLASS_BARS)))
        draw_classes(&counts, glyphs, &t);
    printf("    classes  %s", t.data ? t.data : "");
}

/* Print lines about what is unusual, each with that word in front. */
static void print_lines(const char *word, const char *note)
{
    while (note && *note) {
        int len = (int)strcspn(note, "\n");

        printf("    %-8s %.*s\n", word, len, note);
        note += len + (note[len] != '\0');
    }
}

static void print_item(const struct catalog_item *item, struct glyphs *glyphs, bool check)
{
    char path[TREE_NAME_SIZE * 4];
    AUTO_TEXT struct text t = {0}, notes = {0}, missing = {0};

    item_path(item, path, sizeof(path));
    text_plain(path, "");
    if (!is_usable(item)) {
        printf("%s\n    not usable: %s\n", path, why_unusable(item));
        return;
    }
    printf("%s\n    format   %s\n    samples  %llu\n", path, item->ds->format->name,
           (unsigned long long)item->ds->samples);
    if (item->ds->rule)
        text_add(&t, "    rule     %s\n", item->ds->rule);
    for (unsigned i = 0; i < item->ds->n_fields; i++) {
        const struct field *f = &item->ds->field[i];
        size_t line = t.len;

        if (!page_shows(f) && !f->derived)
            continue;
        text_add(&t, "    %-8s ", f->name);
        page_dtype(f, &t);
        text_add(&t, ", ");
        page_shape(f, &t);
        text_add(&t, "%s%s%s", f->base_field ? " (from " : "",
                 f->base_field ? f->base_field->name : "", f->base_field ? ")" : "");
        if (t.data)
            text_plain(t.data + line, "");
        text_add(&t, "\n");
    }
    if (item->ds->ops && item->ds->ops->about) {
        size_t line = t.len;

        item->ds->ops->about(item->ds, &t);
        if (t.data)
            text_plain(t.data + line, "\n");
    }
    fputs(t.data ? t.data : "", stdout);
    cli_info_print_classes(item->ds, check, glyphs);
    notes_show(&item->ds->notes, &notes);
    print_lines("note", notes.data);
    missing_parts_show(&item->ds->missing, check ? SIZE_MAX : MISSING_SHOWN, &missing);
    print_lines("missing", missing.data);
    if (glyphs && !glyphs->no_drawings)
        print_drawing(item->ds, glyphs);
}

/* Print what is known of the source itself. */
static void print_source(const struct source *source, const char *spec)
{
    char origin[ORIGIN_SIZE], shown[PATH_MAX];

    source_credentials(source, origin, sizeof(origin));
    if (!*origin && !*source_note(source))
        return;
    printf("%s\n", shown_source(spec, shown));
    if (*origin)
        printf("    credentials  %s\n", origin);
    print_lines("note", source_note(source));
}

static size_t count_unusable(const struct catalog *catalog)
{
    size_t n = 0;

    for (size_t i = 0; i < catalog->n; i++)
        n += !is_usable(&catalog->item[i]);
    return n;
}

static void print_unusable(struct extensions *extensions, size_t n)
{
    AUTO_TEXT struct text t = {0};

    extensions_show(extensions, false, &t);
    if (t.data)
        text_plain(t.data, "");
    printf("%zu more files are not usable: %s\n    --json and --check give the reason for each\n",
           n, t.data ? t.data : "");
}

/* check: also files that cannot be used, however many there are, and all classes. */
static void print_all(const struct catalog *catalog, const struct source *source, const char *spec,
                      bool check)
{
    struct glyphs glyphs;
    bool draws = glyphs_init(&glyphs, STDOUT_FILENO);
    size_t shown = check || count_unusable(catalog) <= UNUSABLE_SHOWN ? SIZE_MAX : UNUSABLE_FIRST;
    struct extensions extensions = {.n = 0};
    size_t n_left = 0;

    print_source(source, spec);
    for (size_t i = 0; i < catalog->n; i++) {
        const struct catalog_item *item = &catalog->item[i];

        if (item->ds && item->ds->unlisted)
            continue;
        if (is_usable(item) || shown) {
            shown -= !is_usable(item);
            print_item(item, draws && i < DRAWN ? &glyphs : NULL, check);
        } else {
            extensions_add(&extensions, item->name);
            n_left++;
        }
    }
    if (n_left)
        print_unusable(&extensions, n_left);
}

static void json_source(const struct source *source, const char *spec, struct text *t)
{
    char origin[ORIGIN_SIZE], shown[PATH_MAX];

    source_credentials(source, origin, sizeof(origin));
    json_add_text(t, "  ", "source", shown_source(spec, shown));
    json_add_text(t, "  ", "credentials", *origin ? origin : NULL);
    text_add(t, "  \"notes\": ");
    page_lines(source_note(source), t);
}

static void json_classes(const struct dataset *ds, bool all, struct text *t)
{
    AUTO_CLASS_COUNTS struct class_counts counts = {0};
    struct diag d = DIAG_INIT;
    const char *why;

    if (cli_info_count_classes(ds, all, &counts, &why, &d))
        class_page_json(ds, &counts, "      ", t);
}

static void print_json(const struct catalog *catalog, const struct source *source, const char *spec,
                       bool check)
{
    AUTO_TEXT struct text t = {0};
    char path[TREE_NAME_SIZE * 4];
    bool any = false;

    text_add(&t, "{\n");
    json_source(source, spec, &t);
    text_add(&t, ",\n  \"datasets\": [");
    for (size_t i = 0; i < catalog->n; i++) {
        if (!is_usable(&catalog->item[i]))
            continue;
        item_path(&catalog->item[i], path, sizeof(path));
        text_add(&t, "%s\n    {\n", any ? "," : "");
        json_add_text(&t, "      ", "dataset", path);
        json_classes(catalog->item[i].ds, check, &t);
        page_dataset_members(catalog->item[i].ds, "      ", &t);
        text_add(&t, "    }");
        any = true;
    }
    text_add(&t, "\n  ],\n  \"unusable\": [");
    any = false;
    for (size_t i = 0; i < catalog->n; i++) {
        if (is_usable(&catalog->item[i]))
            continue;
        item_path(&catalog->item[i], path, sizeof(path));
        text_add(&t, "%s\n    {", any ? "," : "");
        json_add_text(&t, NULL, "name", path);
        json_add_text(&t, NULL, "reason", why_unusable(&catalog->item[i]));
        text_add(&t, "}");
        any = true;
    }
    text_add(&t, "%s]\n}\n", any ? "\n  " : "");
    fputs(t.data ? t.data : "", stdout);
}

/* Read all of a source file. */
static int check_blob(const struct blob *blob, uint8_t *buf, struct diag *d)
{
    for (uint64_t at = 0; at < blob->size; at += CHECK_BYTES) {
        size_t n = (size_t)min_u64(CHECK_BYTES, blob->size - at);
        int r = blob_read(READ_WAITS, blob, buf, n, at, d);

        if (r < 0)
            return r;
    }
    return blob_verify(blob, d);
}

/* Print a defect, such as a row that cannot be read. */
static void cli_info_report_bad(void *ctx, const char *text)
{
    size_t *faults = ctx;

    fail(EXIT_SOURCE, "%s", text);
    (*faults)++;
}

static bool check_dataset(const struct catalog_item *item, uint8_t *buf, bool json)
{
    const struct dataset *ds = item->ds;
    AUTO_TEXT struct text found = {0};
    struct diag d = DIAG_INIT;
    size_t faults = 0;
    int r = 0;

    if (dataset_state(ds) == DATASET_FAILED)
        return false; /* already reported */
    for (unsigned k = 0; k < ds->n_blobs && r == 0 && !(ds->ops && ds->ops->check); k++)
        r = check_blob(ds->blob[k], buf, &d);
    if (ds->ops && ds->ops->check)
        r = ds->ops->check(ds, cli_info_report_bad, &faults, &d);
    if (r < 0)
        fail(EXIT_SOURCE, "%s", diag_text(&d, r));
    if (ds->ops && ds->ops->checked)
        ds->ops->checked(ds, &found);
    if (found.data && !json)
        printf("%s: %s", item->name, found.data);
    for (size_t i = 0; i < missing_parts_kept(&ds->missing); i++)
        fail(EXIT_SOURCE, "%s: missing: %s: %s", item->name, ds->missing.part[i].name,
             ds->missing.part[i].reason);
    if (faults)
        fail(EXIT_SOURCE, "%s: %zu fault%s in %llu samples", item->name, faults,
             faults > 1 ? "s" : "", (unsigned long long)ds->samples);
    return r == 0 && !faults && !ds->missing.n;
}

static int check_catalog(const struct catalog *catalog, bool json)
{
    AUTO_FREE uint8_t *buf = malloc(CHECK_BYTES);
    size_t unusable = catalog->n - catalog->n_datasets, bad = 0;

    if (!buf)
        return fail(EXIT_SOURCE, "%s", strerror(ENOMEM));
    for (size_t i = 0; i < catalog->n; i++) {
        const struct catalog_item *item = &catalog->item[i];

        bad += item->ds && !check_dataset(item, buf, json);
    }
    if (!bad && !unusable)
        return EXIT_DONE;
    return fail(EXIT_SOURCE, "%zu of %zu datasets %s faults; %zu other file%s cannot be used", bad,
                catalog->n_datasets, bad == 1 ? "has" : "have", unusable, unusable == 1 ? "" : "s");
}

/* Can none be read, though their files looked right? The reasons were shown. */
static bool all_failed(const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->n; i++)
        if (catalog->item[i].ds && dataset_state(catalog->item[i].ds) != DATASET_FAILED)
            return false;
    return true;
}

static int cli_info_show(const struct info_call *call, const struct options *options)
{
    AUTO_OPENED struct opened opened = {0};
    struct catalog *catalog = &opened.catalog;
    struct diag d = DIAG_INIT;
    int code = open_catalog(call->source, options, &opened, &d);

    if (call->layout && catalog->recipe)
        fputs(catalog->recipe, stdout);
    if (code != EXIT_DONE)
        return fail(code, "%s", diag_text(&d, -ENOMEM));
    if (call->layout)
        return catalog->recipe
                   ? EXIT_DONE
                   : fail(EXIT_SOURCE, "SOURCE has no folders: expected files of samples");
    catalog_prepare(catalog, true, INT64_MAX);
    splits_note_all(catalog);
    if (!call->check)
        stage_read_no_ahead(opened.source->stage); /* a few samples are drawn */
    if (call->json)
        print_json(catalog, opened.source, call->source, call->check);
    else
        print_all(catalog, opened.source, call->source, call->check);
    fflush(stdout);
    code = check_remote(call->source, &opened, 1);
    if (call->check)
        return check_catalog(catalog, call->json);
    return code == EXIT_DONE && all_failed(catalog) ? EXIT_SOURCE : code;
}

static int cli_info_run(int argc, char **argv)
{
    AUTO_OPTIONS struct options options;
    struct info_call call = {0};
    const struct command_line line = {
        .name = "info",
        .word = "SOURCE",
        .usage = command_info.usage,
        .about = "Lists datasets, fields, types and shapes. On a terminal it also draws a few "
                 "samples and the lengths of texts and arrays, in colors unless NO_COLOR is set.",
        .example = "info ~/images",
        .options = &options,
        .flag = {{"json", .set = &call.json, .help = "print JSON, for programs"},
                 {"check", .set = &call.check,
                  .help = "read and parse everything, count classes, and list what cannot be read; "
                          "the exit code is 2 if anything cannot be read"},
                 {"layout", .set = &call.layout,
                  .help = "print the recipe of what the folders of SOURCE were taken for: edit it, "
                          "and give it back by -o layout=FILE, or as epochfs.json in SOURCE"}}};
    int code;

    options_init(&options);
    code = parse_command(argc, argv, &line, &call.source);
    if (code >= 0)
        return code;
    log_set_level(options.log_level);
    options.format.shows_layout = call.layout;
    return cli_info_show(&call, &options);
}

const struct command command_info = {"info", cli_info_run,
                                     "info [--json] [--check] [--layout] [-o OPTIONS] SOURCE"};
