/* VOC's XML: an <annotation> with an <object> for each box, and in it <name>, <bndbox> with <xmin>,
 * <ymin>, <xmax> and <ymax>, and perhaps <difficult> and <truncated>, in any order. Only children
 * count: a <part> of an object has a <name> and a <bndbox> too.
 *
 * expat reads it. The files are hostile: no entity may be declared, none is fetched, and the depth
 * is limited, because expat keeps all open elements. */
#include <errno.h>
#include <expat.h>
#include <string.h>

#include "format/annotations/box_parts.h"

#define VOC_DEPTH_MAX 64

/* Elements that are read. */
enum voc_element {
    VOC_XMIN, /* the corners, as in box */
    VOC_YMIN,
    VOC_XMAX,
    VOC_YMAX,
    VOC_NAME,
    VOC_DIFFICULT,
    VOC_TRUNCATED, /* so far they have a text */
    VOC_BNDBOX,
    VOC_OBJECT,
    VOC_ANNOTATION,
    VOC_OTHER,
    VOC_FILE, /* no element: what the first one is in */
};

static const struct {
    const char *name;
    enum voc_element in;
} voc_elements[VOC_OTHER] = {
    [VOC_XMIN] = {"xmin", VOC_BNDBOX},           [VOC_YMIN] = {"ymin", VOC_BNDBOX},
    [VOC_XMAX] = {"xmax", VOC_BNDBOX},           [VOC_YMAX] = {"ymax", VOC_BNDBOX},
    [VOC_NAME] = {"name", VOC_OBJECT},           [VOC_DIFFICULT] = {"difficult", VOC_OBJECT},
    [VOC_TRUNCATED] = {"truncated", VOC_OBJECT}, [VOC_BNDBOX] = {"bndbox", VOC_OBJECT},
    [VOC_OBJECT] = {"object", VOC_ANNOTATION},   [VOC_ANNOTATION] = {"annotation", VOC_FILE},
};

struct voc {
    XML_Parser parser;
    struct box_file *file;
    struct box_reader *reader;
    int r; /* of what failed first; then the handlers do nothing */

    unsigned depth;
    uint8_t open[VOC_DEPTH_MAX + 1]; /* [depth + 1] enum voc_element, from VOC_FILE on */
    uint8_t text[BOX_NAME_MAX + DECIMAL_PAD];
    size_t len;

    unsigned has; /* bit e: the object has element e */
    float box[4];
    int64_t flag[2]; /* difficult, truncated */
    bool has_flag[2];
    uint8_t name[BOX_NAME_MAX];
    size_t name_len;
};

static void voc_stop(struct voc *voc, int r)
{
    voc->r = r;
    XML_StopParser(voc->parser, XML_FALSE);
}

/* Set the line for messages; false: parsing was stopped, and expat calls a handler all the same. */
static bool voc_goes_on(struct voc *voc)
{
    if (voc->r == 0)
        voc->file->line = XML_GetCurrentLineNumber(voc->parser);
    return voc->r == 0;
}

static void voc_start(void *data, const XML_Char *name, const XML_Char **attributes)
{
    struct voc *voc = data;
    unsigned e = VOC_XMIN;

    (void)attributes;
    if (!voc_goes_on(voc))
        return;
    if (voc->depth == VOC_DEPTH_MAX) {
        voc_stop(voc, box_bad(voc->file, "expected at most %d nested elements, got more",
                              VOC_DEPTH_MAX));
        return;
    }
    while (e < VOC_OTHER &&
           (voc_elements[e].in != voc->open[voc->depth] || strcmp(voc_elements[e].name, name) != 0))
        e++;
    voc->open[++voc->depth] = (uint8_t)e;
    if (voc->depth == 1 && e != VOC_ANNOTATION) {
        voc_stop(voc, box_bad(voc->file, "expected <annotation>, got <%.40s>", name));
    } else if (e == VOC_OBJECT) {
        voc->has = 0;
        voc->has_flag[0] = voc->has_flag[1] = false;
    } else if (e < VOC_OBJECT && voc->has & 1u << e) {
        voc_stop(voc, box_bad(voc->file, "expected one <%s> in an <object>, got two", name));
    } else if (e < VOC_OBJECT) {
        voc->has |= 1u << e;
        voc->len = 0;
    }
}

static void voc_text(void *data, const XML_Char *text, int len)
{
    struct voc *voc = data;
    unsigned e = voc->open[voc->depth];

    if (e > VOC_TRUNCATED || !voc_goes_on(voc))
        return;
    if ((size_t)len > BOX_NAME_MAX - voc->len) {
        voc_stop(voc, box_bad(voc->file, "<%s>: expected at most %d bytes, got more",
                              voc_elements[e].name, BOX_NAME_MAX));
        return;
    }
    memcpy(voc->text + voc->len, text, (size_t)len);
    voc->len += (size_t)len;
}

/* An element is complete that has a text. <difficult> and <truncated> are whole numbers: some tools
 * write Unspecified, or nothing, where they do not know. */
static int voc_value(struct voc *voc, unsigned e)
{
    struct box_cell cell;

    memset(voc->text + voc->len, 0, DECIMAL_PAD);
    cell = box_trimmed((struct box_cell){voc->text, voc->len});
    if (e < VOC_NAME) /* white space or a zero byte follows the number */
        return box_number(voc->file, cell, voc_elements[e].name, &voc->box[e]);
    if (e == VOC_NAME) {
        memcpy(voc->name, cell.text, cell.len);
        voc->name_len = cell.len;
        return 0;
    }
    if (!cell.len || (cell.len == 11 && !memcmp(cell.text, "Unspecified", 11)))
        return 0;
    voc->has_flag[e - VOC_DIFFICULT] = true;
    return box_whole_number(voc->file, cell, voc_elements[e].name, INT32_MIN,
                            &voc->flag[e - VOC_DIFFICULT]);
}

/* The object is complete. */
static int voc_object(struct voc *voc)
{
    struct box_object object = {.name = {voc->name, voc->name_len}};
    uint8_t flag[2][sizeof(int64_t)];

    for (enum voc_element e = 0; e <= VOC_NAME; e++)
        if (!(voc->has & 1u << e))
            return box_bad(voc->file, "expected <%s> in %s, got none", voc_elements[e].name,
                           e < VOC_NAME ? "the <bndbox> of an <object>" : "an <object>");
    memcpy(object.box, voc->box, sizeof(voc->box));
    for (size_t i = 0; i < 2; i++) {
        store_le64(flag[i], (uint64_t)voc->flag[i]);
        object.value[i] = voc->has_flag[i] ? flag[i] : NULL;
    }
    return box_reader_object(voc->reader, voc->file, &object);
}

static void voc_end(void *data, const XML_Char *name)
{
    struct voc *voc = data;
    unsigned e;
    int r;

    (void)name;
    if (!voc_goes_on(voc))
        return;
    e = voc->open[voc->depth--];
    r = e <= VOC_TRUNCATED ? voc_value(voc, e) : e == VOC_OBJECT ? voc_object(voc) : 0;
    if (r < 0)
        voc_stop(voc, r);
}

static void voc_entity(void *data, const XML_Char *name, int is_parameter, const XML_Char *value,
                       int value_len, const XML_Char *base, const XML_Char *system,
                       const XML_Char *public, const XML_Char *notation)
{
    struct voc *voc = data;

    (void)is_parameter;
    (void)value;
    (void)value_len;
    (void)base;
    (void)system;
    (void)public;
    (void)notation;
    if (voc_goes_on(voc))
        voc_stop(voc, box_bad(voc->file,
                              "entity %.40s: expected no declarations of entities, got "
                              "one",
                              name));
}

/* A reference to something that is declared elsewhere. */
static void voc_skipped(void *data, const XML_Char *name, int is_parameter)
{
    struct voc *voc = data;

    (void)is_parameter;
    if (voc_goes_on(voc))
        voc_stop(voc, box_bad(voc->file, "entity %.40s is not declared", name));
}

/* What expat says of the file, after its handlers had no fault. */
static int voc_bad(struct voc *voc)
{
    enum XML_Error error = XML_GetErrorCode(voc->parser);

    if (error == XML_ERROR_NO_MEMORY)
        return -ENOMEM;
    voc->file->line = XML_GetCurrentLineNumber(voc->parser);
    return box_bad(voc->file, "the XML is malformed: %s", XML_ErrorString(error));
}

static int voc_parse(struct box_reader *reader, struct box_file *file)
{
    struct voc voc = {
        .parser = XML_ParserCreate(NULL), .file = file, .reader = reader, .open = {VOC_FILE}};

    if (!voc.parser)
        return -ENOMEM;
    XML_SetUserData(voc.parser, &voc);
    XML_SetElementHandler(voc.parser, voc_start, voc_end);
    XML_SetCharacterDataHandler(voc.parser, voc_text);
    XML_SetEntityDeclHandler(voc.parser, voc_entity);
    XML_SetSkippedEntityHandler(voc.parser, voc_skipped);
    if (XML_Parse(voc.parser, (const char *)file->at, (int)(file->end - file->at), XML_TRUE) !=
            XML_STATUS_OK &&
        voc.r == 0)
        voc.r = voc_bad(&voc);
    XML_ParserFree(voc.parser);
    return voc.r;
}

/* ---- the head ---- */

struct voc_head {
    bool has_root, is_annotation, has_object, has_box, has_polygon; /* of these two, the first */
};

static void voc_look(void *data, const XML_Char *name, const XML_Char **attributes)
{
    struct voc_head *head = data;

    (void)attributes;
    head->is_annotation |= !head->has_root && !strcmp(name, "annotation");
    head->has_root = true;
    head->has_object |= !strcmp(name, "object");
    head->has_box |= !strcmp(name, "bndbox") && !head->has_polygon;
    head->has_polygon |= !strcmp(name, "polygon") && !head->has_box;
}

/* LabelMe's XML has the same root: its objects have polygons. */
static bool voc_head_says(const void *bytes, size_t len, bool is_whole)
{
    const size_t mark = utf8_mark(bytes, len);
    const struct box_cell text =
        box_trimmed((struct box_cell){(const uint8_t *)bytes + mark, len - mark});
    XML_Parser parser = XML_ParserCreate(NULL);
    struct voc_head head = {0};
    bool is_good, is_unknown;

    if (!parser)
        return true; /* reading the file has no memory either, and says so */
    XML_SetUserData(parser, &head);
    XML_SetStartElementHandler(parser, voc_look);
    is_good = XML_Parse(parser, (const char *)text.text, (int)text.len, is_whole);
    is_unknown = !is_good && XML_GetErrorCode(parser) == XML_ERROR_UNKNOWN_ENCODING;
    XML_ParserFree(parser);
    if (is_unknown) /* reading the file says it */
        return memmem(text.text, text.len, "<annotation", strlen("<annotation"));
    if (!head.has_root)
        return is_good && !is_whole && len;
    return head.is_annotation &&
           (!head.has_object || head.has_box || (!is_whole && !head.has_polygon));
}

static const struct box_format box_format_voc = {
    .name = "voc",
    .layout = "xyxy",
    .extension = "xml",
    .names_classes = true,
    .column = {{"difficult", DTYPE_I8, 0, false}, {"truncated", DTYPE_I8, 0, true}},
    .head_says = voc_head_says,
    .parse = voc_parse,
};

/* ---- all formats ---- */

const struct box_format *const box_formats[] = {
    &box_format_voc,
    &box_format_yolo,
    &box_format_kitti,
    NULL,
};

const struct box_format *box_format_find(const char *name)
{
    for (size_t i = 0; box_formats[i]; i++)
        if (!strcmp(box_formats[i]->name, name))
            return box_formats[i];
    return NULL;
}
