/* Parsers of what holds credentials: the shared files of AWS's tools, and answers of endpoints. */
#ifndef EPOCHFS_CACHE_HTTP_CREDENTIALS_PARSE_H
#define EPOCHFS_CACHE_HTTP_CREDENTIALS_PARSE_H

#include <stdbool.h>
#include <stddef.h>

/* The value of key in the section of a shared file for that profile; the caller wipes and frees it.
 * key NULL: is there such a section? in_config: sections are called "profile x". If there are
 * several, the last one counts. 1; 0: there is none; or -ENOMEM. */
int profile_get(const char *text, size_t len, const char *profile, bool in_config, const char *key,
                char **ret);

/* The text of a member of a JSON object; the caller wipes and frees it. 1; 0: no such text;
 * -EBADMSG: no object; or -ENOMEM. */
int json_member(const char *json, size_t len, const char *key, char **ret);

/* May credentials be asked for at that URL? https, or a host that is this machine or the container
 * service next to it. */
bool container_url_is_good(const char *url);

#endif
