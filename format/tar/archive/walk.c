#include "format/tar/archive/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP_LEAST 2048u /* bytes that are read after a hop: headers of a small member as well */
#define STEP_MOST  (256u << 10)  /* of small members one after another */
#define REST_LOOK  TAR_EXTRA_MAX /* bytes after the end */
#define MAP_MOST   4096u         /* blocks of a sparse file's map, 21 pieces in each */

/* For a remote, asking for a header takes as long as 1 MiB or more takes to come. So what is
 * between the headers of smaller members is fetched as well, ahead of them; a job reads it soon. */
#define FETCH_GAP   (1u << 20)
#define FETCH_AHEAD (1u << 20)
#define FETCH_AFTER 8 /* headers that were so near to each other */

/* Headers that describe the next member; each may be there once. */
enum { SEEN_PAX = 1, SEEN_NAME = 2, SEEN_TARGET = 4 };

int tar_walk_init(struct tar_walk *ret, const struct blob *blob)
{
    struct tar_walk w = {
        .blob = blob, .end = blob->size, .window = {.least = STEP_LEAST, .most = STEP_MOST}};

    w.local = calloc(1, sizeof(*w.local));
    w.global = calloc(1, sizeof(*w.global));
    w.name = malloc(TAR_NAME_MAX);
    w.long_name = malloc(TAR_NAME_MAX);
    *ret = w;
    if (w.local && w.global && w.name && w.long_name)
        return 0;
    tar_walk_release(ret);
    return -ENOMEM;
}

void tar_walk_release(struct tar_walk *w)
{
    free(w->local);
    free(w->global);
    free(w->name);
    free(w->long_name);
    pass_window_release(&w->window);
    *w = (struct tar_walk){0};
}

static int tar_walk_bad(const struct tar_walk *w, uint64_t at, struct diag *d, const char *wrong)
{
    return diag_set(d, -EBADMSG, "%s: byte %llu: %s", blob_name(w->blob), (unsigned long long)at,
                    wrong);
}

static void tar_walk_fetch_ahead(struct tar_walk *w, uint64_t at)
{
    uint64_t end = pass_window_end(&w->window);

    if (w->hints && w->hints->n) {
        tar_hints_follow(w->hints, w->blob, at);
        return;
    }
    w->near_reads = at <= end + FETCH_GAP ? w->near_reads + 1 : 0;
    if (w->near_reads < FETCH_AFTER || at + FETCH_AHEAD / 2 < w->fetched)
        return;
    w->fetched = max_u64(w->fetched, at);
    blob_fetch(w->blob, w->fetched, FETCH_AHEAD, NULL);
    w->fetched += FETCH_AHEAD;
}

int tar_walk_bytes(struct tar_walk *w, uint64_t at, size_t len, const uint8_t **ret, struct diag *d)
{
    if (!pass_window_has(&w->window, at, len))
        tar_walk_fetch_ahead(w, at);
    return pass_window_at(&w->window, w->blob, at, len, w->blob->size, ret, d);
}

static uint64_t round_up(uint64_t size) /* below 2^63 */
{
    return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* ---- headers that describe the next member ---- */

static const char *take_long_name(struct tar_walk *w, const uint8_t *bytes, size_t len)
{
    const uint8_t *nul = memchr(bytes, '\0', len);

    len = nul ? (size_t)(nul - bytes) : len;
    if (len > TAR_NAME_MAX)
        return "expected a long name of at most 4096 bytes, got a longer one";
    memcpy(w->long_name, bytes, len);
    w->long_len = len;
    return NULL;
}

static const char *take_extra(struct tar_walk *w, enum tar_entry_type type, const uint8_t *bytes,
                              size_t len)
{
    switch (type) {
    case TAR_PAX:
        *w->local = (struct tar_pax){0};
        return tar_pax_parse(bytes, len, w->local);
    case TAR_PAX_GLOBAL:
        return tar_pax_parse(bytes, len, w->global);
    case TAR_LONG_NAME:
        return take_long_name(w, bytes, len);
    default:
        return NULL;
    }
}

static unsigned seen_bit(enum tar_entry_type type)
{
    return type == TAR_PAX           ? SEEN_PAX
           : type == TAR_LONG_NAME   ? SEEN_NAME
           : type == TAR_LONG_TARGET ? SEEN_TARGET
                                     : 0;
}

static int read_extra(struct tar_walk *w, uint64_t size, struct diag *d)
{
    const struct tar_header *h = &w->header;
    unsigned bit = seen_bit(h->type);
    const uint8_t *bytes;
    const char *wrong;
    int r;

    if (size > TAR_EXTRA_MAX)
        return tar_walk_bad(w, w->at, d, "expected a header of at most 1 MiB, got a larger one");
    if (bit & w->seen)
        return tar_walk_bad(w, w->at, d,
                            "expected a member after its headers, got one of them again");
    if (round_up(size) > w->blob->size - w->at - TAR_BLOCK)
        return tar_walk_bad(w, w->at, d,
                            "expected a header with its data, got the end of the file");
    r = tar_walk_bytes(w, w->at + TAR_BLOCK, (size_t)size, &bytes, d);
    if (r < 0)
        return r;
    wrong = take_extra(w, h->type, bytes, (size_t)size);
    if (wrong)
        return tar_walk_bad(w, w->at, d, wrong);
    w->seen |= bit;
    w->at += TAR_BLOCK + round_up(size);
    return 1;
}

/* ---- members ---- */

/* The name, by the strongest that says one. None has a NUL. */
static void name_member(struct tar_walk *w, struct tar_member *m)
{
    const uint8_t *name = w->header.name;

    m->name_len = w->header.name_len;
    if (w->local->sparse_len) {
        name = w->local->sparse_name;
        m->name_len = w->local->sparse_len;
    } else if (w->local->path == TAR_PAX_SET) {
        name = w->local->path_value;
        m->name_len = w->local->path_len;
    } else if (w->seen & SEEN_NAME) {
        name = w->long_name;
        m->name_len = w->long_len;
    } else if (w->local->path == TAR_PAX_NONE && w->global->path == TAR_PAX_SET) {
        name = w->global->path_value;
        m->name_len = w->global->path_len;
    }
    memcpy(w->name, name, m->name_len);
    m->name = w->name;
}

static uint64_t size_of_member(const struct tar_walk *w)
{
    if (!w->header.has_data)
        return 0;
    if (w->local->size == TAR_PAX_SET)
        return w->local->size_value;
    if (w->local->size == TAR_PAX_NONE && w->global->size == TAR_PAX_SET)
        return w->global->size_value;
    return w->header.stored;
}

/* Where the content begins: after the header, and after the map of a sparse file of many pieces. */
static int tar_walk_find_content(struct tar_walk *w, uint64_t *ret, struct diag *d)
{
    bool goes_on = w->header.has_map;
    uint64_t at = w->at + TAR_BLOCK;

    for (unsigned n = 0; goes_on; n++) {
        const uint8_t *block;
        int r;

        if (n == MAP_MOST)
            return tar_walk_bad(w, w->at, d,
                                "expected a sparse member of fewer pieces, got a larger map");
        if (w->blob->size - at < TAR_BLOCK)
            return tar_walk_bad(w, at, d,
                                "expected the map of a sparse member, got the end of the file");
        r = tar_walk_bytes(w, at, TAR_BLOCK, &block, d);
        if (r < 0)
            return r;
        goes_on = tar_map_goes_on(block);
        at += TAR_BLOCK;
    }
    *ret = at;
    return 0;
}

static int tar_walk_read_member(struct tar_walk *w, struct tar_member *m, struct diag *d)
{
    uint64_t left;
    int r = tar_walk_find_content(w, &m->at, d);

    if (r < 0)
        return r;
    left = w->blob->size - m->at;
    name_member(w, m);
    m->type = w->header.type;
    m->size = size_of_member(w);
    m->start = w->start;
    if (w->local->is_sparse && m->type == TAR_FILE)
        m->type = TAR_SPARSE;
    if (m->type == TAR_FILE && m->name_len && m->name[m->name_len - 1] == '/')
        m->type = TAR_FOLDER;
    m->is_cut = m->size > left;
    if (m->is_cut)
        return diag_set(
            d, -EBADMSG,
            "%s: byte %llu: expected %llu bytes of '%.*s', got %llu: the file is cut short",
            blob_name(w->blob), (unsigned long long)m->at, (unsigned long long)m->size,
            (int)min_u64(m->name_len, 200), (const char *)m->name, (unsigned long long)left);
    if (w->seen & SEEN_PAX)
        *w->local = (struct tar_pax){0};
    w->seen = 0;
    w->at = m->at + min_u64(round_up(m->size), left);
    return 1;
}

int tar_walk_next(struct tar_walk *w, struct tar_member *ret, struct diag *d)
{
    uint64_t left = w->blob->size - w->at;
    const uint8_t *block;
    const char *wrong;
    int r;

    *ret = (struct tar_member){0};
    if (!w->seen)
        w->start = w->at;
    if (left < TAR_BLOCK && (left || w->seen))
        return tar_walk_bad(w, w->at, d,
                            "expected a tar header of 512 bytes, got the end of the file");
    if (!left)
        return 0;
    r = tar_walk_bytes(w, w->at, TAR_BLOCK, &block, d);
    if (r < 0)
        return r;
    wrong = tar_header_parse(block, &w->header);
    if (!wrong && w->header.type == TAR_END && w->seen)
        wrong = "expected a member after its headers, got the end of the archive";
    if (wrong)
        return tar_walk_bad(w, w->at, d, wrong);
    ret->type = w->header.type;
    if (w->header.type == TAR_END) {
        w->end = w->at;
        return 0;
    }
    if (w->header.type >= TAR_PAX)
        return read_extra(w, w->header.stored, d);
    return tar_walk_read_member(w, ret, d);
}

int tar_walk_rest(struct tar_walk *w, uint64_t *ret_at, struct diag *d)
{
    size_t len = (size_t)min_u64(REST_LOOK, w->blob->size - w->end);
    const uint8_t *bytes = NULL;
    int r = len ? tar_walk_bytes(w, w->end, len, &bytes, d) : 0;

    for (size_t i = 0; i < len && r == 0; i++)
        if (bytes[i]) {
            *ret_at = w->end + i;
            r = 1;
        }
    if (r == 0 && len < w->blob->size - w->end) {
        *ret_at = w->end + len;
        r = 1;
    }
    return r;
}
