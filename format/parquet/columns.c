/* What the columns of a file show: LogicalTypes.md of parquet-format for lists and maps, with its
 * rules for files of old writers. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "format/parquet/file.h"

#define GROUP_ROWS_MAX (UINT64_C(1) << 22) /* of columns that are made a group at a time */

#define NAME_MAX_BYTES 1024                         /* of a path of names */
#define ROW_MAX        ((uint64_t)VALUES_BYTES_MAX) /* bytes of an array of one shape */

/* ---- kinds of bytes ---- */

static const char *const sound_exts[] = {"wav", "flac", "mp3", "ogg"};

static unsigned columns_sound(const uint8_t *head)
{
    return !memcmp(head, "RIFF", 4) && !memcmp(head + 8, "WAVE", 4)                   ? 1
           : !memcmp(head, "fLaC", 4)                                                 ? 2
           : !memcmp(head, "ID3", 3) || (head[0] == 0xff && (head[1] & 0xe6) == 0xe2) ? 3
           : !memcmp(head, "OggS", 4)                                                 ? 4
                                                                                      : 0;
}

unsigned parquet_bytes_format(const uint8_t *head, size_t len)
{
    enum bytes_format found = bytes_format_of(head, len);
    unsigned sound = found == BYTES_ANY && len >= 12 ? columns_sound(head) : 0;

    return sound ? N_BYTES_FORMATS + sound : found + 1;
}

static const char *columns_format_ext(uint64_t number)
{
    return number > N_BYTES_FORMATS
               ? sound_exts[number - N_BYTES_FORMATS - 1]
               : bytes_format_ext(number ? (enum bytes_format)(number - 1) : BYTES_ANY);
}

/* ---- shapes of groups ---- */

const struct parquet_node *parquet_list_element(const struct parquet_node *node,
                                                const struct parquet_node **ret_repeated)
{
    const struct parquet_node *repeated = node + 1;
    size_t len = strlen(node->name);

    if (node->logical != LOGICAL_LIST || node->n_children != 1 ||
        repeated->repetition != NODE_REPEATED)
        return NULL;
    *ret_repeated = repeated;
    if (repeated->type >= 0 || repeated->n_children != 1 ||
        repeated[1].repetition == NODE_REPEATED || !strcmp(repeated->name, "array") ||
        (!strncmp(repeated->name, node->name, len) && !strcmp(repeated->name + len, "_tuple")))
        return repeated;
    return repeated + 1;
}

static bool columns_is_plain_bytes(const struct parquet_node *node)
{
    return node->type == TYPE_BYTE_ARRAY && node->repetition != NODE_REPEATED;
}

/* Is it a picture or a sound of the Hub: a struct of bytes and path? Then the leaf of bytes. */
static const struct parquet_node *columns_media(const struct parquet_node *node)
{
    const struct parquet_node *a = node + 1, *b = node + 2;

    if (node->type >= 0 || node->n_children != 2 || node->size != 3 || node->logical ||
        !columns_is_plain_bytes(a) || !columns_is_plain_bytes(b))
        return NULL;
    return !strcmp(a->name, "bytes") && !strcmp(b->name, "path")   ? a
           : !strcmp(b->name, "bytes") && !strcmp(a->name, "path") ? b
                                                                   : NULL;
}

/* ---- adding columns ---- */

struct columns_making {
    struct parquet_file *file;
    char path[NAME_MAX_BYTES]; /* of the node */
    const json_t *feature;     /* of the column of the file */
};

static void columns_note(struct columns_making *m, const char *what, const char *why)
{
    char name[RECORD_NAME_MAX + 1];

    record_name(m->path, strlen(m->path), RECORD_NAME_MAX, name);
    text_add(&m->file->notes, "%s: column '%s'%s%s\n", blob_name(m->file->base.blob), name, what,
             why);
}

/* Why chunks of those leaves are not read; NULL: they are. */
static const char *columns_refused(const struct parquet_footer *footer, unsigned leaf, unsigned n)
{
    const uint64_t known = 0x3fd; /* encodings that are read, and those of levels */

    for (unsigned g = 0; g < footer->n_groups; g++)
        for (unsigned i = leaf; i < leaf + n; i++) {
            const struct parquet_chunk *chunk = parquet_chunk_at(footer, g, i);

            if (!chunk->end)
                return "it is encrypted";
            if (n > 1 && footer->group[g].rows > GROUP_ROWS_MAX)
                return "a row group has more than 4194304 rows, which lists of groups may have";
            if (codec_refused((enum parquet_codec)chunk->codec))
                return codec_refused((enum parquet_codec)chunk->codec);
            if (chunk->encodings & ~known)
                return "it has an encoding that is not read";
        }
    return NULL;
}

static bool columns_has_name(const struct parquet_file *file, const char *name)
{
    for (unsigned i = 0; i < file->n_columns; i++)
        if (!strcmp(file->column[i].name, name))
            return true;
    return false;
}

/* Does the index have the state of its rows? Not of numbers that each row has. */
static bool columns_is_indexed(const struct parquet_file *file, const struct parquet_column *c)
{
    if (c->shown != SHOWN_NUMBER)
        return true;
    if (!c->node->max_def || c->null != NULL_HOLE)
        return false;
    for (unsigned g = 0; g < file->footer.n_groups; g++)
        if (parquet_chunk_at(&file->footer, g, c->leaf)->nulls)
            return true;
    return false;
}

/* May bytes of it lie in the file as they are? If so, is there a slot for their places, with one
 * for the states of each leaf that follows? */
static bool columns_has_places(const struct parquet_file *file, const struct parquet_column *c)
{
    if (c->shown != SHOWN_BYTES || c->convert != CONVERT_COPY ||
        file->n_slots + 1 + file->footer.n_leaves - c->leaf > INDEX_LEARNED)
        return false;
    for (unsigned g = 0; g < file->footer.n_groups; g++)
        if (parquet_chunk_at(&file->footer, g, c->leaf)->codec == CODEC_NONE)
            return true;
    return false;
}

static int columns_add(struct columns_making *m, const struct parquet_column *column,
                       const char *suffix)
{
    struct parquet_file *file = m->file;
    struct parquet_column c = *column;
    char path[NAME_MAX_BYTES + 8];
    const char *why = columns_refused(&file->footer, c.leaf, c.n_leaves);
    bool is_indexed = columns_is_indexed(file, &c), has_places = columns_has_places(file, &c);
    int r;

    snprintf(path, sizeof(path), "%s%s", m->path, suffix);
    record_name(path, strlen(path), RECORD_NAME_MAX, c.name);
    if (!why && columns_has_name(file, c.name))
        why = "another column has its name";
    if (!why && (file->n_columns == RECORD_COLUMNS_MAX ||
                 file->n_slots + is_indexed + has_places > INDEX_LEARNED))
        why = "there are more than 1024 columns";
    if (why) {
        columns_note(m, " is ignored: ", why);
        return 0;
    }
    for (c.value = c.node; c.value->type < 0;)
        c.value++; /* into a group */
    c.state = is_indexed ? file->n_slots++ : NO_SLOT;
    c.place = has_places ? file->n_slots++ : NO_SLOT;
    r = array_capacity(&file->column, file->n_columns, sizeof(*file->column));
    if (r == 0)
        file->column[file->n_columns++] = c;
    return r;
}

/* A column of all leaves of a node. */
static struct parquet_column columns_of(const struct parquet_node *node, enum parquet_shown shown)
{
    return (struct parquet_column){.shown = shown,
                                   .node = node,
                                   .leaf = node->leaf,
                                   .n_leaves = node->n_leaves,
                                   .as.dtype = DTYPE_U1,
                                   .tail = 1};
}

static int columns_add_leaf(struct columns_making *m, const struct parquet_node *node)
{
    struct parquet_column c = columns_of(node, SHOWN_BYTES);
    const json_t *classes = parquet_hub_classes(m->feature);

    if (node->logical == LOGICAL_NULL) {
        columns_note(m, " is ignored: ", "it has nulls only");
        return 0;
    }
    if (node->logical == LOGICAL_OTHER)
        columns_note(m, " has a logical type that is not read, and shows what is stored", "");
    c.convert = node->convert;
    c.as.dtype = node->dtype;
    c.width = node->width;
    c.shown = c.width ? SHOWN_NUMBER : SHOWN_BYTES;
    c.as.ext = node->logical == LOGICAL_JSON ? "json" : NULL;
    if (!c.width)
        c.as.shown = node->logical == LOGICAL_STRING || c.as.ext || c.convert != CONVERT_COPY
                         ? RECORD_TEXT
                         : RECORD_BYTES;
    else if (c.width != dtype_info(c.as.dtype)->bytes || parquet_is_raw(node))
        c.as.dim[c.as.ndim++] = c.width / dtype_info(c.as.dtype)->bytes;
    c.null = dtype_info(c.as.dtype)->letter == 'f' ? NULL_NAN : NULL_HOLE;
    if (classes && c.as.dtype == DTYPE_I8) {
        c.classes = classes;
        c.null = NULL_MINUS_ONE;
    } else if (classes) {
        columns_note(m, ": its names of classes are ignored: ", "expected int64");
    }
    return columns_add(m, &c, "");
}

static int columns_add_media(struct columns_making *m, const struct parquet_node *node,
                             const struct parquet_node *bytes)
{
    struct parquet_column path = columns_of(bytes == node + 1 ? node + 2 : node + 1, SHOWN_BYTES);
    struct parquet_column c = columns_of(bytes, SHOWN_BYTES);
    unsigned had = m->file->n_columns;
    int r;

    c.as.shown = RECORD_BYTES;
    path.as.shown = RECORD_TEXT;
    r = columns_add(m, &c, "");
    path.path_of = m->file->n_columns > had ? m->file->n_columns : 0;
    return r < 0 ? r : columns_add(m, &path, ".path");
}

/* The element that lists in lists have at last, and how many they are. */
static const struct parquet_node *columns_innermost(const struct parquet_node *node,
                                                    unsigned *ret_ndim)
{
    const struct parquet_node *repeated, *element;

    *ret_ndim = 0;
    if (node->repetition == NODE_REPEATED)
        ++*ret_ndim;
    for (element = parquet_list_element(node, &repeated); element;
         element = parquet_list_element(node, &repeated)) {
        ++*ret_ndim;
        node = element;
    }
    return node;
}

/* Lists of numbers as an array. false: it is none. */
static bool columns_make_array(struct columns_making *m, const struct parquet_node *inner,
                               struct parquet_column *c)
{
    if (inner->type < 0 || inner->logical == LOGICAL_NULL || c->as.ndim > RECORD_AXES ||
        inner->max_rep != c->as.ndim)
        return false;
    c->convert = inner->convert;
    c->as.dtype = inner->dtype;
    c->width = inner->width;
    if (!c->width || c->width != dtype_info(c->as.dtype)->bytes || parquet_is_raw(inner))
        return false;
    if (!parquet_hub_shape(m->feature, c->as.ndim, c->as.dim)) {
        if (json_object_get(m->feature, "shape"))
            columns_note(m, ": its shape is ignored: ", "expected the axes of its lists");
        if (c->as.ndim > 1)
            return false;
        c->as.dim[0] = DIM_VARIES;
    }
    for (unsigned i = 0; i < c->as.ndim; i++)
        if (c->as.dim[i] != DIM_VARIES &&
            !checked_mul(i ? c->tail : 1, i ? c->as.dim[i] : 1, &c->tail))
            return false;
    c->null = dtype_info(c->as.dtype)->letter == 'f' ? NULL_NAN : NULL_HOLE;
    return c->tail <= ROW_MAX && (c->as.dim[0] == DIM_VARIES || c->as.dim[0] * c->tail <= ROW_MAX);
}

static int columns_add_list(struct columns_making *m, const struct parquet_node *node)
{
    struct parquet_column c = columns_of(node, SHOWN_ARRAY);
    const struct parquet_node *inner = columns_innermost(node, &c.as.ndim), *bytes;
    bool is_list = c.as.ndim == 1;
    int r;

    if (c.as.ndim && columns_make_array(m, inner, &c))
        return columns_add(m, &c, "");
    bytes = inner->type == TYPE_BYTE_ARRAY && inner->logical == LOGICAL_NONE ? inner
                                                                             : columns_media(inner);
    if (!is_list || !bytes || bytes->max_rep != 1) {
        c = columns_of(node, SHOWN_JSON);
        c.as.shown = RECORD_TEXT;
        c.as.ext = "json";
        return columns_add(m, &c, "");
    }
    c = columns_of(node, SHOWN_JOINED);
    c.leaf = bytes->leaf;
    c.n_leaves = c.width = c.as.ndim = 1;
    c.as.dim[0] = DIM_VARIES;
    r = columns_add(m, &c, "");
    c.shown = SHOWN_SIZES;
    c.as.dtype = DTYPE_I8;
    c.width = 8;
    return r < 0 ? r : columns_add(m, &c, "_sizes");
}

static int columns_add_node(struct columns_making *m, const struct parquet_node *node)
{
    const struct parquet_node *media = columns_media(node), *child = node + 1;
    size_t len = strlen(m->path);
    unsigned ndim;
    int r = 0;

    if (columns_innermost(node, &ndim)->logical == LOGICAL_VARIANT) {
        columns_note(m, " is ignored: ", "VARIANT is not read");
        return 0;
    }
    if (node->repetition == NODE_REPEATED || node->logical == LOGICAL_LIST ||
        node->logical == LOGICAL_MAP)
        return columns_add_list(m, node);
    if (node->type >= 0)
        return columns_add_leaf(m, node);
    if (media)
        return columns_add_media(m, node, media);
    m->feature = NULL;
    for (unsigned i = 0; i < node->n_children && r == 0; i++, child += child->size) {
        snprintf(m->path + len, sizeof(m->path) - len, ".%s", child->name);
        r = columns_add_node(m, child);
        m->path[len] = '\0';
    }
    return r;
}

int parquet_columns_make(struct parquet_file *file, struct diag *d)
{
    const struct parquet_node *root = file->footer.node, *node = root + 1;
    struct columns_making m = {.file = file};
    size_t features = json_object_size(file->features);
    int r = 0;

    for (unsigned i = 0; i < root->n_children && r == 0; i++, node += node->size) {
        snprintf(m.path, sizeof(m.path), "%s", node->name);
        m.feature = json_object_get(file->features, node->name);
        features -= m.feature && features;
        r = columns_add_node(&m, node);
    }
    if (features)
        text_add(&file->notes, "%s: columns of metadata 'huggingface' that are missing: %zu\n",
                 blob_name(file->base.blob), features);
    if (r == 0 && !file->n_columns)
        r = diag_set(d, -EBADMSG, "%s", file->notes.data ? file->notes.data : "no columns");
    return r;
}

/* ---- what records show ---- */

static bool columns_is_null(const struct parquet_file *file, const struct parquet_column *c)
{
    uint64_t row = 0;

    while (c->has_null && row < file->footer.rows && parquet_state(file, c, row) == STATE_NULL)
        row++;
    return c->has_null && row == file->footer.rows;
}

int parquet_columns_ready(struct parquet_file *file)
{
    unsigned n_bytes = 0;
    int r = 0;

    for (unsigned i = 0; i < file->n_columns; i++)
        n_bytes += file->column[i].as.shown == RECORD_BYTES;
    for (unsigned i = 0; i < file->n_columns && r == 0; i++) {
        const struct parquet_column *c = &file->column[i];
        struct record_column shown = c->as;

        shown.name = c->name;
        shown.has_holes = c->has_null;
        shown.is_empty = c->path_of && columns_is_null(file, c);
        if (shown.shown == RECORD_BYTES) {
            shown.ext = columns_format_ext(c->bytes_format);
            shown.unnamed = n_bytes == 1;
            shown.ext_is_first = true;
        }
        r = record_file_add(&file->base, &shown);
    }
    return r;
}
