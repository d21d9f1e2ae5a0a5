/* The stages of an index that is made, each in steps:
 *
 *     READING   classes: numbers of classes, as they first came, where where[] will be
 *               weights: doubles, where sum[] will be; lengths: length[]
 *     PLACING   classes: where[] and member[] from these numbers: a stable counting sort
 *     ADDING    weights: sum[] from the doubles
 *     SUMMING   the checksum, and the head
 */
#include "format/labels/label_make.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/file_io.h"
#include "format/labels/class_table.h"

#define FEW_CLASSES 65536
#define PLACED      (1u << 20) /* samples of a step; with more classes: */
#define PLACED_MANY (1u << 22)
#define SUMMED      (1u << 21) /* bytes of a step */
#define WHERE_SIZE  1024

enum stage { READING, PLACING, ADDING, SUMMING, DONE };

struct label_making {
    const struct label_input *input;
    struct kept_file *file;
    enum label_purpose type;
    enum stage stage;
    uint64_t at; /* samples, or bytes, that are done in this stage */

    union {
        int64_t *whole;
        double *real;
        uint64_t *sum;
        void *any;
    } value;          /* [LABEL_READ] */
    uint32_t *number; /* [LABEL_READ] of classes */
    struct class_table table;

    double most; /* the largest weight */
    uint64_t total;

    /* While samples are placed: */
    uint32_t *sorted, *rank; /* [classes] see class_table_sort() */
    uint64_t *next;          /* [classes, by rank] where the next sample of a class goes */
    uint32_t *first;         /* [classes, by rank] of a step: where those of a class begin, */
    uint32_t *found;         /* and how many there are */
    uint32_t *touched;       /* [step] the classes of a step */
    uint32_t *in, *out;      /* [step] */
    uint32_t step;

    struct label_head head;
};

/* ---- the file ---- */

/* The file is ours: if it ends early, no source has changed. */
static int label_make_read(const struct label_making *m, void *bytes, size_t len, uint64_t off)
{
    int r = file_pread(m->file->fd, bytes, len, off);

    return r == -ESTALE ? -EIO : r;
}

/* ---- reading ---- */

static int label_make_refuse(const struct label_input *input, uint64_t sample, const char *expected,
                             double found, struct diag *d)
{
    char where[WHERE_SIZE] = "";

    input->where(input, sample, where, sizeof(where));
    return diag_set(d, -EBADMSG, "%s: %s: expected %s, got %.17g", input->name, where, expected,
                    found);
}

int label_read_whole(const struct label_input *input, struct read_context *rc, uint64_t first,
                     size_t count, int64_t *ret, struct diag *d)
{
    int r = input->read(input, rc, first, count, ret, d);
    char expected[120];

    for (size_t i = 0; i < count && r == 0 && input->are_floats; i++) {
        double v;

        memcpy(&v, &ret[i], sizeof(v));
        if (v != trunc(v) || isinf(v))
            return label_make_refuse(input, first + i,
                                     input->are_lengths ? "a whole number, a length"
                                                        : "a whole number, the number of a class",
                                     v, d);
        if (fabs(v) >= ldexp(1, (int)input->digits)) {
            snprintf(
                expected, sizeof(expected),
                "a class below 2^%u, as larger ones are not exact in a field of floating-point "
                "numbers of this size",
                input->digits);
            return label_make_refuse(input, first + i, expected, v, d);
        }
        ret[i] = (int64_t)v;
    }
    return r;
}

static int read_classes(struct label_making *m, size_t n, struct diag *d)
{
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = class_table_add(&m->table, m->value.whole[i], &m->number[i]);
    if (r == -E2BIG)
        return diag_set(d, r,
                        "%s: expected at most %llu classes, got more different values up to sample "
                        "%llu",
                        m->input->name, (unsigned long long)LABEL_CLASSES_MAX,
                        (unsigned long long)(m->at + n - 1));
    return r < 0 ? r : file_pwrite(m->file->fd, m->number, 4 * n, LABEL_FILE_BODY + 4 * m->at);
}

static int read_weights(struct label_making *m, size_t n, struct diag *d)
{
    for (size_t i = 0; i < n && !m->input->are_sums; i++) {
        double v = m->input->are_floats ? m->value.real[i] : (double)m->value.whole[i];

        if (!isfinite(v) || v < 0)
            return label_make_refuse(m->input, m->at + i, "a weight of 0 or more", v, d);
        m->value.real[i] = v;
        m->most = fmax(m->most, v);
    }
    for (size_t i = 0; i < n && m->input->are_sums; i++)
        m->most = fmax(m->most, m->value.sum[i] ? 1 : 0);
    return file_pwrite(m->file->fd, m->value.any, 8 * n, LABEL_FILE_BODY + 8 * m->at);
}

/* What is below 1 counts as 1, so 0 will do. */
static int read_lengths(struct label_making *m, size_t n, struct diag *d)
{
    for (size_t i = 0; i < n; i++) {
        if (m->value.whole[i] > UINT32_MAX)
            return label_make_refuse(m->input, m->at + i, "a length below 2^32",
                                     (double)m->value.whole[i], d);
        m->number[i] = m->value.whole[i] < 0 ? 0 : (uint32_t)m->value.whole[i];
    }
    return file_pwrite(m->file->fd, m->number, 4 * n, LABEL_FILE_BODY + 4 * m->at);
}

static int step_reading(struct label_making *m, struct read_context *rc, struct diag *d)
{
    size_t n = (size_t)min_u64(LABEL_READ, m->input->n - m->at);
    bool classes = m->type == LABEL_CLASSES, lengths = m->type == LABEL_LENGTHS;
    uint64_t all = lengths ? label_file_size(m->type, m->input->n, 0)
                           : LABEL_FILE_BODY + 8 * (m->input->n + 1);
    int r = kept_file_raise(m->file, all, d);

    if (r == 0)
        r = classes || lengths ? label_read_whole(m->input, rc, m->at, n, m->value.whole, d)
                               : m->input->read(m->input, rc, m->at, n, m->value.any, d);
    if (r == 0)
        r = classes   ? read_classes(m, n, d)
            : lengths ? read_lengths(m, n, d)
                      : read_weights(m, n, d);
    if (r < 0)
        return r;
    m->at += n;
    kept_file_written(m->file, LABEL_FILE_BODY + (classes || lengths ? 4 : 8) * m->at);
    if (m->at < m->input->n)
        return 0;
    if (m->type == LABEL_WEIGHTS && m->most == 0)
        return diag_set(d, -EBADMSG, "%s: expected a weight above 0, got 0 in all %llu samples",
                        m->input->name, (unsigned long long)m->input->n);
    m->stage = classes ? PLACING : lengths ? SUMMING : ADDING;
    m->at = 0;
    return classes && m->input->number ? m->input->number(m->input, m->table.value, m->table.n) : 0;
}

/* ---- classes ---- */

/* All values are known. */
static int begin_placing(struct label_making *m)
{
    uint32_t classes = m->table.n, *memory;
    uint64_t at = 0;
    int r;

    m->step = (uint32_t)min_u64(classes <= FEW_CLASSES ? PLACED : PLACED_MANY, m->input->n);
    memory = calloc((size_t)classes * 4 + (size_t)m->step * 3, sizeof(*memory));
    m->sorted = memory;
    m->next = calloc(classes, sizeof(*m->next));
    if (!memory || !m->next)
        return -ENOMEM;
    m->rank = m->sorted + classes;
    m->first = m->rank + classes;
    m->found = m->first + classes;
    m->touched = m->found + classes;
    m->in = m->touched + m->step;
    m->out = m->in + m->step;
    r = class_table_sort(&m->table, m->sorted, m->rank);
    for (uint32_t c = 0; c < classes; c++) {
        m->next[c] = at;
        at += m->table.count[m->sorted[c]];
    }
    return r;
}

/* Write the samples of each class of this step; they follow those of earlier steps. */
static int write_members(struct label_making *m, uint32_t touched)
{
    uint64_t member = label_file_member(m->input->n);
    int r = 0;

    for (uint32_t i = 0; i < touched; i++) {
        uint32_t c = m->touched[i];

        if (r == 0)
            r = file_pwrite(m->file->fd, m->out + m->first[c], 4 * (size_t)m->found[c],
                            member + 4 * m->next[c]);
        m->next[c] += m->found[c];
        m->found[c] = 0;
    }
    return r;
}

static int place(struct label_making *m, uint32_t n)
{
    uint32_t touched = 0, at = 0;

    for (uint32_t i = 0; i < n; i++) {
        m->in[i] = m->rank[m->in[i]];
        if (!m->found[m->in[i]]++)
            m->touched[touched++] = m->in[i];
    }
    for (uint32_t i = 0; i < touched; i++) {
        m->first[m->touched[i]] = at;
        at += m->found[m->touched[i]];
        m->found[m->touched[i]] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = m->in[i], k = m->found[c]++;

        m->out[m->first[c] + k] = (uint32_t)m->at + i;
        m->in[i] = (uint32_t)(m->next[c] + k);
    }
    return write_members(m, touched);
}

/* Behind where[] and member[] follow label[] and begin[]. */
static int write_tables(struct label_making *m)
{
    uint32_t classes = m->table.n;
    AUTO_FREE int64_t *label = malloc(8 * (size_t)classes);
    AUTO_FREE uint64_t *begin = malloc(8 * ((size_t)classes + 1));
    uint64_t at = 0;
    int r;

    if (!label || !begin)
        return -ENOMEM;
    for (uint32_t c = 0; c < classes; c++) {
        label[c] = m->table.value[m->sorted[c]];
        begin[c] = at;
        at += m->table.count[m->sorted[c]];
    }
    begin[classes] = at;
    r = file_pwrite(m->file->fd, label, 8 * (size_t)classes, label_file_label(m->input->n));
    return r < 0 ? r
                 : file_pwrite(m->file->fd, begin, 8 * ((size_t)classes + 1),
                               label_file_begin(m->input->n, classes));
}

static int step_placing(struct label_making *m, struct diag *d)
{
    uint64_t n_samples = m->input->n, off = LABEL_FILE_BODY + 4 * m->at;
    uint64_t size = label_file_size(LABEL_CLASSES, n_samples, m->table.n);
    int r = m->sorted ? 0 : begin_placing(m);
    uint32_t n = (uint32_t)min_u64(m->step, n_samples - m->at);

    if (r == 0)
        r = kept_file_raise(m->file, size, d);
    if (r == 0)
        r = label_make_read(m, m->in, 4 * (size_t)n, off);
    if (r == 0)
        r = place(m, n);
    if (r == 0)
        r = file_pwrite(m->file->fd, m->in, 4 * (size_t)n, off);
    if (r < 0)
        return r;
    m->at += n;
    kept_file_written(m->file, LABEL_FILE_BODY + 4 * n_samples + 4 * m->at);
    if (m->at < n_samples)
        return 0;
    r = write_tables(m);
    m->stage = SUMMING;
    m->at = 0;
    return r;
}

/* ---- weights ---- */

int label_weight_shift(double most, uint64_t n)
{
    int exponent;

    frexp(most, &exponent);
    return 62 - (int)bit_width(n > 1 ? n - 1 : 0) - exponent;
}

uint64_t label_weight(double w, int shift)
{
    double scaled = nearbyint(ldexp(w, shift));

    return w > 0 ? (scaled < 1 ? 1 : (uint64_t)scaled) : 0;
}

static int step_adding(struct label_making *m, struct diag *d)
{
    size_t n = (size_t)min_u64(LABEL_READ, m->input->n - m->at);
    uint64_t off = LABEL_FILE_BODY + 8 * m->at;
    int shift = label_weight_shift(m->most, m->input->n);
    int r = label_make_read(m, m->value.any, 8 * n, off);

    for (size_t i = 0; i < n && r == 0; i++) {
        uint64_t w = m->input->are_sums ? m->value.sum[i] : label_weight(m->value.real[i], shift);

        m->value.sum[i] = m->total;
        if (!checked_add(m->total, w, &m->total) || m->total >> 63)
            r = diag_set(d, -ERANGE, "%s: expected a sum of weights below 2^63, got more",
                         m->input->name);
    }
    if (r == 0)
        r = file_pwrite(m->file->fd, m->value.any, 8 * n, off);
    if (r < 0)
        return r;
    m->at += n;
    if (m->at < m->input->n)
        return 0;
    m->stage = SUMMING;
    m->at = 0;
    return file_pwrite(m->file->fd, &m->total, 8, LABEL_FILE_BODY + 8 * m->input->n);
}

/* ---- the head ---- */

static int step_summing(struct label_making *m)
{
    uint64_t size = label_file_size(m->type, m->input->n, m->table.n);
    size_t skip = m->at ? 0 : offsetof(struct label_head, order), n;
    int r = 0;

    if (!m->at) {
        m->head = (struct label_head){.version = LABEL_FILE_VERSION,
                                      .order = LABEL_FILE_ORDER,
                                      .type = (uint32_t)m->type,
                                      .n = m->input->n,
                                      .classes = m->table.n};
        memcpy(m->head.magic, LABEL_FILE_MAGIC, sizeof(m->head.magic));
        r = file_pwrite(m->file->fd, &m->head, sizeof(m->head), 0);
    }
    n = (size_t)min_u64(SUMMED, size - m->at);
    if (r == 0)
        r = label_make_read(m, m->value.any, n, m->at);
    if (r < 0)
        return r;
    m->head.crc = crc32c(m->head.crc, (const uint8_t *)m->value.any + skip, n - skip);
    m->at += n;
    if (m->at < size)
        return 0;
    r = file_pwrite(m->file->fd, &m->head, sizeof(m->head), 0);
    m->stage = DONE;
    return r < 0 ? r : 1;
}

/* ---- all of it ---- */

int label_making_new(enum label_purpose type, const struct label_input *input,
                     struct kept_file *file, struct label_making **ret)
{
    struct label_making *m = calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    *m = (struct label_making){.input = input, .file = file, .type = type};
    m->value.any = malloc(SUMMED);
    m->number = type != LABEL_WEIGHTS ? malloc(4 * LABEL_READ) : NULL;
    if (!m->value.any || (type != LABEL_WEIGHTS && !m->number)) {
        label_making_free(m);
        return -ENOMEM;
    }
    *ret = m;
    return 0;
}

void label_making_free(struct label_making *m)
{
    if (!m)
        return;
    class_table_release(&m->table);
    free(m->value.any);
    free(m->number);
    free(m->sorted); /* and what follows it */
    free(m->next);
    free(m);
}

int label_making_step(struct label_making *m, struct read_context *rc, struct diag *d)
{
    switch (m->stage) {
    case READING:
        return step_reading(m, rc, d);
    case PLACING:
        return step_placing(m, d);
    case ADDING:
        return step_adding(m, d);
    case SUMMING:
        return step_summing(m);
    default:
        return 1;
    }
}

uint64_t label_making_done(const struct label_making *m)
{
    return m->stage == READING ? m->at : m->input->n;
}
