#include "format/array/archives.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "format/array/shards.h"

#define JOINED_MAX    1024 /* arrays of a file of a set */
#define SAMPLES_LEAST 3    /* files that can be one sample each */

/* A file, or several of a set, whose arrays are those of the first. */
struct archive {
    struct arrays arrays;
    const char *file;
    struct held_blob *held; /* of the file; one user */
    char *stem;             /* owned */
    bool is_part;           /* the first one of its set has its arrays */
};

struct archives {
    const struct archive_format *format;
    struct archive *archive; /* [n]; owned */
    size_t n;
    struct array_sets sets;
};

static void archives_release(struct archives *a)
{
    for (size_t i = 0; i < a->n; i++) {
        arrays_release(&a->archive[i].arrays);
        held_blob_drop(a->archive[i].held);
        free(a->archive[i].stem);
    }
    free(a->archive);
    array_sets_release(&a->sets);
}

static size_t count_used(const struct arrays *arrays)
{
    size_t n = 0;

    for (size_t i = 0; i < arrays->n; i++)
        n += !arrays->array[i].left_out;
    return n;
}

/* Read the arrays of a file, of which one can be used at least. */
static int archives_read(const struct archives *a, struct archive *archive, uint64_t *left,
                         struct diag *d)
{
    struct held_blob *held = archive->held;
    struct arrays *arrays = &archive->arrays;
    int r = held ? a->format->read(held, a->sets.setup, left, arrays, d) : -ENOMEM;

    if (r < 0 || count_used(arrays))
        return r;
    return arrays->n ? blob_bad(held->blob, d, "expected %s of samples, got %s: %s", a->format->one,
                                arrays->array[0].name, arrays->array[0].left_out)
                     : blob_bad(held->blob, d, "expected %s, got none", a->format->many);
}

/* Read one file. 0, even if it was reported; or -ENOMEM. */
static int archives_add_file(struct archives *a, struct source_file *file, uint64_t *left,
                             struct finds *finds)
{
    struct archive *archive = &a->archive[a->n];
    struct diag d = DIAG_INIT;
    int r;

    archive->held = held_blob_new(TAKE_PTR(file->blob), NULL);
    r = archives_read(a, archive, left, &d);
    if (r < 0) {
        arrays_release(&archive->arrays);
        held_blob_drop(TAKE_PTR(archive->held));
        return r == -ENOMEM ? r : finds->failed(finds, file->file_name, r, diag_text(&d, r));
    }
    archive->file = file->name;
    archive->stem =
        strndup(file->name, array_name_without(file->name, strlen(file->name), a->format->suffix));
    a->n++;
    for (size_t i = 0; i < archive->arrays.n; i++)
        archive->arrays.array[i].file = file->name;
    return archive->stem ? 0 : -ENOMEM;
}

/* ---- sets ---- */

/* The array of that name, probably number i. NULL: there is none. */
static struct array *find_array(struct arrays *arrays, const char *name, size_t i)
{
    if (i >= arrays->n || strcmp(arrays->array[i].name, name) != 0)
        for (i = 0; i < arrays->n && strcmp(arrays->array[i].name, name) != 0;)
            i++;
    return i < arrays->n ? &arrays->array[i] : NULL;
}

/* The archives of a set. */
struct parts {
    struct archive **archive; /* [n] */
    uint64_t *number;         /* [n] */
    struct array **array;     /* [n] those of one name */
    size_t n;
};

/* Find the arrays that go on from number i of the first file. false: one lacks it, and *ret_lacks
 * is its number; or they are not alike. */
static bool find_arrays(struct parts *p, size_t i, size_t *ret_lacks)
{
    const char *name = p->archive[0]->arrays.array[i].name;

    *ret_lacks = 0;
    for (size_t k = 0; k < p->n; k++) {
        p->array[k] = find_array(&p->archive[k]->arrays, name, i);
        if (!p->array[k] || p->array[k]->left_out) {
            *ret_lacks = k;
            return false;
        }
    }
    return arrays_are_alike(p->array, p->n);
}

/* Are the files no set? Then why is in d. */
static bool array_archives_differ(struct parts *p, struct diag *d)
{
    const struct arrays *first = &p->archive[0]->arrays;
    size_t n = count_used(first), lacks;

    if (n > JOINED_MAX)
        diag_set(d, 0, "%s and %s are not one set: expected at most %d arrays, got %zu",
                 p->archive[0]->file, p->archive[1]->file, JOINED_MAX, n);
    for (size_t k = 1; k < p->n && !d->set; k++)
        if (count_used(&p->archive[k]->arrays) != n)
            diag_set(d, 0, "%s and %s are not one set: they have %zu arrays and %zu",
                     p->archive[0]->file, p->archive[k]->file, n,
                     count_used(&p->archive[k]->arrays));
    for (size_t i = 0; i < first->n && !d->set; i++)
        if (!first->array[i].left_out && !find_arrays(p, i, &lacks))
            diag_set(d, 0, "%s and %s are not one set: %s %s", p->archive[0]->file,
                     p->archive[lacks ? lacks : p->n - 1]->file, first->array[i].name,
                     lacks ? "is in the first only" : "has another type or other rows in a file");
    return d->set;
}

/* The first array that is used says it. 0 or -ENOMEM. */
static int array_archives_remark(struct arrays *arrays, const char *text)
{
    for (size_t i = 0; i < arrays->n; i++) {
        struct array *a = &arrays->array[i];

        if (a->left_out)
            continue;
        a->remark = strdup(text);
        return a->remark ? 0 : -ENOMEM;
    }
    return 0;
}

static int remark_each(struct parts *p, const char *text)
{
    int r = 0;

    for (size_t k = 0; k < p->n && r == 0; k++)
        r = array_archives_remark(&p->archive[k]->arrays, text);
    return r;
}

/* The samples that array number i of the first file, which is in no dataset, has in all files. 0: a
 * file lacks it. */
static uint64_t archives_count_left_out(const struct parts *p, size_t i)
{
    uint64_t samples = 0;

    for (size_t k = 0; k < p->n; k++) {
        const struct array *a =
            find_array(&p->archive[k]->arrays, p->archive[0]->arrays.array[i].name, i);

        if (!a || !checked_add(samples, a->samples, &samples))
            return 0;
    }
    return samples;
}

/* Make the first file the set. doubt: an array that may be one sample in each file, or NULL. */
static int join_parts(struct archives *a, struct parts *p, size_t set, const struct array *doubt)
{
    struct arrays *first = &p->archive[0]->arrays;
    AUTO_TEXT struct text t = {0};
    char name[NAME_MAX + 1];
    int r = 0;

    for (size_t i = 0; i < first->n && r == 0; i++) {
        size_t lacks;

        if (first->array[i].left_out) {
            first->array[i].samples = archives_count_left_out(p, i);
            continue;
        }
        first->array[i].set = set + 1;
        find_arrays(p, i, &lacks);
        r = array_join(p->array, p->number, p->n);
    }
    for (size_t k = 1; k < p->n; k++)
        p->archive[k]->is_part = true;
    if (r == 0 && array_set_name(&a->sets.siblings, set, a->format->suffix, name)) {
        free(p->archive[0]->stem);
        p->archive[0]->stem = strdup(name);
    }
    if (r == 0 && !p->archive[0]->stem)
        return -ENOMEM;
    text_add(&t,
             "%s to %s are one set of %zu files, because their names differ by a number only; with "
             "-o pair=off each array of each is a dataset",
             p->archive[0]->file, p->archive[p->n - 1]->file, p->n);
    if (doubt)
        arrays_add_doubt(doubt, &t);
    return r < 0 ? r : t.failed ? -ENOMEM : array_archives_remark(first, t.data);
}

/* Array i of the first file, and those of that name: can each be one sample? *ret_other: another
 * file's, one of another shape if there is any. */
static bool may_be_samples(const struct parts *p, size_t i, struct array **ret_other)
{
    struct array *a = &p->archive[0]->arrays.array[i];

    *ret_other = NULL;
    for (size_t k = 1; k < p->n; k++) {
        struct array *other = find_array(&p->archive[k]->arrays, a->name, i);

        if (!other || other->left_out || !arrays_may_be_samples(a, other))
            return false;
        if (!*ret_other || arrays_are_alike((struct array *[]){a, *ret_other}, 2))
            *ret_other = other;
    }
    return p->n >= SAMPLES_LEAST;
}

/* Is each file probably one sample: arrays of one name differ in the shape of their rows, or there
 * is a number next to the arrays, and no list of labels? If it only may be, *ret_one is an array
 * that may, otherwise NULL. */
static bool are_samples(const struct parts *p, struct array **ret_one, struct array **ret_other)
{
    struct arrays *first = &p->archive[0]->arrays;
    bool numbers = false, lists = false, alike = true;

    *ret_one = NULL;
    for (size_t i = 0; i < first->n && alike; i++) {
        struct array *a = &first->array[i], *other;

        numbers = numbers || (a->left_out && a->is_beside && !a->head.ndim);
        lists = lists || (!a->left_out && a->head.ndim == 1);
        if (a->left_out || !may_be_samples(p, i, &other))
            continue;
        *ret_one = a;
        *ret_other = other;
        alike = arrays_are_alike((struct array *[]){a, other}, 2);
    }
    if (*ret_one && (!alike || (numbers && !lists)))
        return true;
    if (*ret_one && (lists || (*ret_one)->head.dim[0] != (*ret_other)->head.dim[0]))
        *ret_one = NULL;
    return false;
}

/* Report files that are one sample each. 0 or -ENOMEM. */
static int archives_refuse_samples(struct archives *a, struct parts *p, size_t set,
                                   const struct array *one, const struct array *other,
                                   struct finds *finds)
{
    char name[NAME_MAX + 1];

    for (size_t k = 0; k < p->n; k++)
        p->archive[k]->is_part = true;
    array_set_name(&a->sets.siblings, set, a->format->suffix, name);
    return arrays_refuse_samples(one, other, p->n, name, finds);
}

/* A file of the set that cannot be read now. NULL: none. */
static const struct unread_file *array_archives_find_unread(const struct archives *a,
                                                            const struct sibling_set *set,
                                                            const struct finds *finds)
{
    const struct siblings *siblings = &a->sets.siblings;

    for (size_t i = 0; i < set->n && finds->n_unread; i++)
        for (size_t k = 0; k < finds->n_unread; k++)
            if (!strcmp(siblings->name[siblings->member[set->first + i].file],
                        finds->unread[k].name))
                return &finds->unread[k];
    return NULL;
}

static int array_archives_join_set(struct archives *a, size_t set, struct finds *finds)
{
    const struct siblings *siblings = &a->sets.siblings;
    const struct sibling_set *s = &siblings->set[set];
    AUTO_FREE struct archive **archive = calloc(s->n, sizeof(struct archive *));
    AUTO_FREE uint64_t *number = calloc(s->n, sizeof(*number));
    AUTO_FREE struct array **array = calloc(s->n, sizeof(struct array *));
    struct parts p = {archive, number, array, 0};
    struct array *one, *other;
    const struct unread_file *unread;
    struct diag d = DIAG_INIT;
    char name[NAME_MAX + 1];

    if (!archive || !number || !array)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        const struct sibling *member = &siblings->member[s->first + i];

        if (member->file >= a->n)
            continue;
        number[p.n] = member->number;
        archive[p.n++] = &a->archive[member->file];
    }
    if (!p.n)
        return 0;
    unread = array_archives_find_unread(a, s, finds);
    if (unread) {
        array_set_name(siblings, set, a->format->suffix, name);
        return finds_incomplete(finds, name, unread);
    }
    for (size_t i = 0; i < archive[0]->arrays.n && p.n == 1; i++)
        archive[0]->arrays.array[i].set = set + 1;
    if (p.n == 1)
        return 0;
    if (are_samples(&p, &one, &other))
        return archives_refuse_samples(a, &p, set, one, other, finds);
    return array_archives_differ(&p, &d) ? remark_each(&p, d.text) : join_parts(a, &p, set, one);
}

static int join_sets(struct archives *a, struct finds *finds)
{
    AUTO_FREE const char **name = calloc(a->n + 1, sizeof(*name));
    int r = name ? 0 : -ENOMEM;

    for (size_t i = 0; i < a->n && r == 0; i++)
        name[i] = a->archive[i].file;
    a->sets.n = a->n;
    if (r == 0)
        r = finds_siblings(finds, name, a->n, &a->sets.siblings);
    for (size_t i = 0; i < a->sets.siblings.n && r == 0; i++)
        r = array_archives_join_set(a, i, finds);
    return r;
}

int archives_open_folder(const struct archive_format *format, struct source_file *files, size_t n,
                         const struct format_setup *setup, struct finds *finds)
{
    AUTO(archives_release)
    struct archives a = {.format = format,
                         .archive = calloc(n + 1, sizeof(*a.archive)),
                         .sets = {.finds = finds, .setup = setup, .left_out = finds->n_left_out}};
    uint64_t left = FORTRAN_MAX;
    size_t others = 0;
    int r = a.archive ? 0 : -ENOMEM;

    for (size_t i = 0; i < finds->n_unread; i++)
        others += text_ends_with(finds->unread[i].name, format->suffix);
    for (size_t i = 0; i < n && r == 0; i++)
        r = archives_add_file(&a, &files[i], &left, finds);
    if (r == 0 && !setup->options.pair_off)
        r = join_sets(&a, finds);
    for (size_t i = 0; i < a.n; i++)
        others += !a.archive[i].is_part;
    for (size_t i = 0; i < a.n && r == 0; i++)
        if (!a.archive[i].is_part)
            r = arrays_make_sets(
                &a.archive[i].arrays,
                &(struct arrays_source){.format = format->format,
                                        .stem = a.archive[i].stem,
                                        .alone = others == 1,
                                        .where = blob_name(a.archive[i].held->blob),
                                        .sets = &a.sets},
                setup, finds);
    return r;
}
