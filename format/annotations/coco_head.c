/* Is a file COCO JSON? By its first bytes, which may end within anything. */
#include <string.h>

#include "format/annotations/coco.h"
#include "format/annotations/coco_data.h"
#include "format/annotations/json_stream.h"

static bool coco_head_is_list_name(const char *name)
{
    for (unsigned i = 0; i < N_COCO_LISTS; i++)
        if (!strcmp(name, coco_list_name[i]))
            return true;
    return false;
}

/* Does the next value begin as a list of objects, or does the head end before that can be seen? */
static bool coco_head_has_objects(struct json_stream *s)
{
    if (json_stream_next(s) < 0)
        return json_stream_is_cut(s);
    if (s->token != JSON_TOKEN_LIST)
        return false;
    if (json_stream_next(s) < 0)
        return json_stream_is_cut(s);
    return s->token == JSON_TOKEN_OBJECT || s->token == JSON_TOKEN_LIST_END;
}

bool coco_head_says(const void *head, size_t len)
{
    AUTO_JSON_STREAM struct json_stream s;

    json_stream_init_bytes(&s, head, len);
    if (json_stream_next(&s) < 0 || s.token != JSON_TOKEN_OBJECT)
        return false;
    while (json_stream_member(&s) > 0) {
        bool is_categories = !strcmp(s.text, "categories"); /* others have these as well */

        if (coco_head_is_list_name(s.text) && !is_categories)
            return coco_head_has_objects(&s);
        if (json_stream_skip(&s, NULL) < 0)
            return is_categories && json_stream_is_cut(&s);
    }
    return false;
}
