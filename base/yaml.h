/* YAML of source files, read by libyaml, as values of jansson. Scalars are texts, whatever they
 * look like; an empty one, as in "key:", is null. An alias is false, and so are members of one
 * name: which of them counts is not said. Tags say nothing. */
#ifndef EPOCHFS_BASE_YAML_H
#define EPOCHFS_BASE_YAML_H

#include <jansson.h>
#include <stddef.h>

struct diag;

/* The first document of a text, in *ret (the caller's: json_free()); NULL: there is none. what
 * names the text in messages. 0; -EBADMSG: no YAML, a key that is no text, or more than 64
 * levels, with the line; -ENOMEM. Any thread. */
int yaml_read(const void *text, size_t len, const char *what, json_t **ret, struct diag *d);

#endif
