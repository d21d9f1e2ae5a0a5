/* A text next to sounds, and how its lines are read. Only sounds_lines.c and sounds_texts.c include
 * this. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_SOUNDS_LINES_H
#define EPOCHFS_FORMAT_FILES_CLAIM_SOUNDS_LINES_H

#include "format/files/claim/annotations.h"
#include "format/rows/row.h"

#define CELLS_MOST 64

/* What cells after the key are without a header: a text, and the same as it is spoken. */
extern const char *const sound_text_names[2];

struct cells {
    const char *text[CELLS_MOST];
    size_t len[CELLS_MOST];
    unsigned n;
};

/* What a text is. */
enum text_use {
    TEXT_NONE,
    TEXT_JOINED, /* a row for each sound, whose cells are fields */
    TEXT_ROWS,   /* its rows are a dataset */
    TEXT_LIST,
};

struct sound_text {
    struct annotating *a;
    size_t file;
    const char *name;
    char separator;
    unsigned key, cells; /* the cell that names sounds; of a line */
    bool has_header, has_number;
    enum text_use use;
    const char *wrong;        /* NULL; or why it is ignored, for people: then it is TEXT_NONE */
    char *header[CELLS_MOST]; /* [cells] or NULL */
    uint64_t missing, repeated;
};

/* Split a line into cells. A separator ' ' is any run of spaces and tabs. */
void texts_split(const char *line, size_t len, char separator, struct cells *ret);

/* The sound that a cell names; PICTURE_NONE, PICTURE_SEVERAL. */
uint32_t texts_find(const struct sound_text *t, const struct cells *cells, unsigned i);

/* Its lines. */
struct row_walk texts_walk(const struct sound_text *t, const struct blob *blob);

/* Find out by its first lines what a text is. 0; -EDOM: it is no text; or -errno. */
int texts_look(struct sound_text *t, const struct blob *blob, struct diag *d);

#endif
