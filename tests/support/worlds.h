/* Sources of every format, and their datasets, with bytes that are here or absent. Failures end the
 * test. */
#ifndef EPOCHFS_TESTS_SUPPORT_WORLDS_H
#define EPOCHFS_TESTS_SUPPORT_WORLDS_H

#include "base/pool.h"
#include "base/text.h"
#include "support/absent_blob.h"
#include "support/memory_opener.h"

struct kaldi_object;

#define FILES_MOST 16

struct world_source {
    struct text name[FILES_MOST], bytes[FILES_MOST];
    size_t n;
    const struct format *format;
    struct format_options options;
    bool pooled; /* several threads read it */
};

/* ThreadSanitizer has nothing to say about sources that one thread reads. */
#ifdef __SANITIZE_THREAD__
#define is_for_build(source) ((source)->pooled)
#else
#define is_for_build(source) true
#endif

/* Add a file; returns the text for its bytes. */
struct text *source_add(struct world_source *s, const char *name);
void source_release(struct world_source *s);

/* Pictures with labels, matrices, numbers. */
void source_idx(struct world_source *s, bool transpose);

/* sides: with side files; otherwise with columns of weights and groups, and a second file. */
void source_libsvm(struct world_source *s, bool sides);
void source_long_rows(struct world_source *s);

/* An archive of objects of a kind. */
void source_kind(struct world_source *s, const struct kaldi_object *kind);

/* Archives, scp files, and a data directory with segments. */
void source_directory(struct world_source *s);

/* Two files of records, 150 each; or n each. */
void source_records(struct world_source *s);
void source_n_records(struct world_source *s, unsigned n);

/* Two files whose records have contents of several kinds, some seldom; and of RecordIO, with
 * records in several parts. */
void source_learned(struct world_source *s);
void source_recordio(struct world_source *s, bool pictures);

/* A file of JSON lines, or of CSV, behind a byte order mark. */
void source_text(struct world_source *s, bool csv);

struct world {
    struct absent absent;
    struct blob_faults faults;
    struct memory_file file[FILES_MOST];
    struct memory_opener opener;
    struct memory_keep keep;
    struct memo *memo;
    struct pool *pool;
    bool forgets; /* set before opening: the memo keeps only what was decoded last */
    struct found found;
    unsigned troubles; /* calls of dataset_prepare() that made no progress */
    int result;        /* of opening */
};

/* w starts zeroed. absent: the bytes belong to w->absent. */
void world_open(struct world *w, const struct world_source *s, bool absent);
void world_release(struct world *w);

/* Empty the memo. */
void world_forget(struct world *w);
#define AUTO_WORLD AUTO(world_release)

/* Open two worlds of a source; the second one's bytes are absent. */
void worlds_open(const struct world_source *s, struct world *here, struct world *there);

#endif
