/* The parts of the header. Only header.c and schema.c include this. */
#ifndef EPOCHFS_FORMAT_MINDRECORD_LAYOUT_SCHEMA_H
#define EPOCHFS_FORMAT_MINDRECORD_LAYOUT_SCHEMA_H

#include "format/core/json.h"
#include "format/mindrecord/layout/header.h"

struct header_text {
    const char *name; /* of the file */
    size_t len;       /* of the JSON */
    struct diag *d;
};

/* A member that is a whole number from 0 on. */
bool header_number(const json_t *object, const char *key, uint64_t *ret);

/* Set the fields. packs: version 3.0. 0 or -errno with the reason in text->d. */
int mindrecord_schema(const struct header_text *text, const json_t *schemas, bool packs,
                      struct mindrecord_header *ret);

#endif
