/* A growing text: for READMEs, JSON and messages, never for data of a size that a file decides.
 *
 * Running out of memory is remembered and reported once, by text_finish(), so that the many appends
 * of a page need no check each. */
#ifndef EPOCHFS_BASE_TEXT_H
#define EPOCHFS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

struct text {
    char *data; /* NUL-terminated once anything was added, otherwise NULL */
    size_t len;
    size_t capacity;
    bool failed;
};

void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_bytes(struct text *t, const char *bytes, size_t len);

/* The bytes as a JSON string with its quotes; NULL: null. Bytes that are not UTF-8 become U+FFFD.
 */
void text_add_json(struct text *t, const char *bytes);
/* The same of len bytes, which may have NULs. */
void text_add_json_bytes(struct text *t, const uint8_t *s, size_t len);

/* A page of JSON, part by part. indent: the part is a line, and a comma ends it, as others follow;
 * NULL: it goes on with the line, after a comma if a value is before it. name: of a member; NULL:
 * the part is an element of a list. */
void json_add(struct text *t, const char *indent, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5))); /* what is JSON already */
void json_add_number(struct text *t, const char *indent, const char *name, uint64_t number);
void json_add_text(struct text *t, const char *indent, const char *name, const char *bytes);
void json_add_bytes(struct text *t, const void *bytes, size_t len); /* an element */
/* n texts as a list, each `stride` bytes after the one before: they may be members of structs. */
void json_add_texts(struct text *t, const char *indent, const char *name, char *const *texts,
                    size_t stride, size_t n);
/* A list or object of parts that go on with its line. */
void json_open(struct text *t, const char *indent, const char *name, const char *bracket);
void json_close(struct text *t, const char *indent, const char *bracket);

/* The bytes of the character in UTF-8 that the len bytes begin with, len > 0; 0: they are none. */
size_t text_character(const void *bytes, size_t len);

bool text_is_utf8(const void *bytes, size_t len);

/* Does a name end with suffix, in small letters or capitals? */
bool text_ends_with(const char *name, const char *suffix);

/* The length of the character at bytes, in UTF-8, if a terminal would obey it rather than show it:
 * control characters, and those of Unicode that turn the direction of what follows or end a line.
 * 0: it is another one. */
size_t text_command(const void *bytes, size_t len);

/* Make a text safe for a terminal: what it would obey, except characters in kept, becomes '?',
 * each byte of it. Names and reasons from a source or a server may have any. */
void text_plain(char *s, const char *kept);

/* 0 and the text (the caller frees it; "" if nothing was added), or -ENOMEM. Empties t. */
int text_finish(struct text *t, char **ret_data, size_t *ret_len);

/* asprintf(), but *ret is NULL where it fails. 0 or -ENOMEM. */
int text_print(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A copy of a text, or NULL of NULL; the caller frees it. 0 or -ENOMEM. */
int text_copy(const char *text, char **ret);

/* Cut white space from both ends of a text, in place. */
void text_trim(char *text);

/* Compares pointers to texts, for qsort(). */
int texts_compare(const void *a, const void *b);

/* A list of texts; starts as {0}. */
struct texts {
    char **text; /* [n] each owned */
    size_t n;
};

int texts_add(struct texts *list, const char *text); /* a copy of it; 0 or -ENOMEM */

/* Sort those from number `first` on; of equal ones one remains. */
void texts_sort(struct texts *list, size_t first);

void texts_release(struct texts *list);
#define AUTO_TEXTS AUTO(texts_release)

/* Give back the memory beyond what the text needs, before it is kept for long. */
void text_fit(struct text *t);

void text_release(struct text *t);
#define AUTO_TEXT AUTO(text_release)

/* For secrets: overwrite the bytes, free and forget them. */
void secret_free(char **text);
void secret_release(struct text *t);
#define AUTO_SECRET AUTO(secret_release)

#endif
