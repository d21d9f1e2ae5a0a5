/* CSV: tables of numbers. */
#include <string.h>

#include "base/checked.h"
#include "format/csv/file.h"
#include "format/csv/row.h"
#include "format/encode/encode.h"
#include "format/records/group.h"

extern const struct format format_csv;

/* The counts that XGBoost keeps of a table. The names of columns are those of the first file. */
static void describe(const struct shard *shard, unsigned n, const char *indent, struct text *t)
{
    const struct csv_file *first = shard[0].file;
    const struct csv_shape *s = &first->shape;
    uint64_t features = s->columns - (s->label != CSV_NONE) - (s->weight != CSV_NONE);
    uint64_t rows = 0, missing = 0;
    size_t at = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct csv_file *file = shard[i].file;

        rows += file->prepared.index.rows;
        missing += min_u64(file->missing, file->prepared.index.rows * features);
    }
    text_add(t, "%s\"num_row\": %llu,\n%s\"num_col\": %llu,\n%s\"num_nonzero\": %llu,\n", indent,
             (unsigned long long)rows, indent, (unsigned long long)features, indent,
             (unsigned long long)(rows * features - missing));
    if (!s->has_header)
        return;
    text_add(t, "%s\"columns\": [", indent);
    for (size_t i = 0, shown = 0; i < s->columns && at < s->names.len; i++) {
        if (i != s->label && i != s->weight) {
            text_add(t, "%s", shown++ ? ", " : "");
            text_add_json(t, s->names.data + at);
        }
        at += strlen(s->names.data + at) + 1;
    }
    text_add(t, "],\n");
}

static const struct record_format csv = {
    .format = &format_csv,
    .file = {.cut = csv_cut, .drop = csv_drop, .side_by_side = true},
    .open = csv_open,
    .group = group_name,
    .share = csv_share,
    .add_folders = dataset_add_folders,
    .text_folder = "csv",
    .columns = csv_columns,
    .dims = csv_dims,
    .extent = csv_extent,
    .joins = csv_joins,
    .read_rows = csv_read_rows,
    .read = csv_read,
    .verify = csv_verify,
    .check = csv_check,
    .describe = describe,
};

/* Two lines of the head that have cells, of one number, of numbers but for the first. A name that
 * says what the file is makes one number enough, or a line longer than the head: then the fault is
 * named, where there is one. Lines of a single number, with spaces in cells, may be libsvm text,
 * too: the name decides, but not between tabs, which libsvm text has. */
static enum claim probe(const struct probed_file *file)
{
    const char delimiters[] = {',', '\t', ';'};
    bool named = text_ends_with(file->name, ".csv") || text_ends_with(file->name, ".tsv");
    uint8_t text[FORMAT_HEAD + DECIMAL_PAD] = {0};
    char given = file->options ? file->options->delimiter : 0;
    char comment = file->options ? file->options->comment : 0;

    if (memchr(file->head, '\0', file->len) && !named)
        return CLAIM_NONE;
    memcpy(text, file->head, file->len);
    for (size_t k = 0; k < (given ? 1 : sizeof(delimiters)); k++) {
        char delimiter = given ? given : delimiters[k];
        size_t cells = 0, numbers = 0, lines = 0;
        bool alike = true, cut = false;

        for (size_t at = 0; at < file->len && lines < 8;) {
            size_t len = strcspn((char *)text + at, "\r\n"), bad, n;
            float value[64];

            if (at + len >= file->len && !file->whole) {
                /* Of the first two lines, one longer than the head: its whole cells. */
                while (lines < 2 && named && len && text[at + len] != (uint8_t)delimiter)
                    len--;
                if (lines >= 2 || !named || !len)
                    break;
                cut = true;
            }
            if (!csv_is_empty(text + at, len, comment)) {
                uint8_t behind = text[at + len];

                text[at + len] = 0;
                n = csv_parse(text + at, len, delimiter, value, 64, &bad);
                text[at + len] = behind;
                alike = alike && (!lines || n == cells);
                cells = lines ? cells : n;
                numbers += lines || bad >= 64 ? (bad >= 64 || (named && bad > 0)) : 0;
                lines++;
            }
            at += cut ? file->len : len + 1;
        }
        if (cells >= 2 && ((lines >= 2 && alike && numbers >= lines - 1) ||
                           (named && (numbers || (cut && lines == 1)))))
            return named && (delimiter != '\t' || given) && !memchr(file->head, ':', file->len)
                       ? CLAIM_STRONG
                       : CLAIM_WEAK;
    }
    return CLAIM_NONE;
}

static int open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                       struct finds *finds)
{
    return record_set_open_folder(&csv, files, n, setup, finds);
}

static const char *option(const struct format_options *options)
{
    return options->label_column    ? "label_column"
           : options->weight_column ? "weight_column"
           : options->delimiter     ? "delimiter"
           : options->comment       ? "comment"
           : options->doubles       ? "dtype"
                                    : NULL;
}

static void example(const struct dataset *ds, struct text *t)
{
    (void)ds;
    text_add(t, "  batch = np.load(root + '/batches/batch=1024,seed=7/epoch=0/npz/000000.npz')\n"
                "  x = batch['x']\n");
}

const struct format format_csv = {
    .name = "csv",
    .probe = probe,
    .open_folder = open_folder,
    .option = option,
    .title = "CSV of numbers",
    .example = example,
};
