#include "format/annotations/boxes.h"

#include <string.h>

#include "format/annotations/box_parts.h"

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
