/* A dataset: samples 0 .. n-1, each with the same fields.
 *
 * A field is an array per sample: stored in a source file, or derived from stored bytes. Formats
 * fill struct dataset, encoders read it. An opened dataset has the names, offers and ops of its
 * fields, unless its folders are late: then it has no fields. A ready one has the rest too, the
 * number of samples included. From then on it is constant and any thread may read it. */
#ifndef EPOCHFS_FORMAT_CORE_DATASET_H
#define EPOCHFS_FORMAT_CORE_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/retry.h"
#include "base/text.h"
#include "format/core/dtype.h"
#include "format/core/notes.h"
#include "format/core/selection.h"
#include "format/index/key_name.h"

struct dataset;
struct durations;
struct extent;
struct field;
struct folder;
struct format;
struct index;
struct memo;
struct picture_source;
struct plan_fields;
struct read_context;

/* The files that show a field. */
enum {
    IN_RAW = 1, /* the array as stored: the field has stored_dtype and so on */
    IN_IDX = 2, /* the same under an IDX header */
    IN_NPY_SAMPLES = 4,
    IN_NPY_BATCHES = 8,
    IN_NPZ_SAMPLES = 16,
    IN_NPZ_BATCHES = 32,
    IN_TAR = 64,
    IN_PICTURES = 128, /* png: a picture, uint8 with two axes, and perhaps a third of 1 or 3
                        * colours, none empty; pgm: a grey one */
    IN_CLS = 256,      /* .cls, decimal text: a stored integer; in tar instead of .npy */
    IN_PAGES = 512,    /* dataset.json: a description of each sample's item */
    /* The field's bytes as they are, a file under the extension ext: */
    IN_FILE_SAMPLES = 1024,
    IN_FILE_BATCHES = 2048,
    IN_PREVIEW = 4096,    /* preview.png, and what is drawn, alone: small pictures, [h, w, 3] */
    IN_CSC = 8192,        /* npz of batches whose matrix has columns one after another, */
    IN_CSC_VALUE = 16384, /* and of those whose columns are sorted by value */
};
/* Any of them; every field is somewhere. */
#define IN_ANY     (~0u)
#define IN_FILES   (IN_FILE_SAMPLES | IN_FILE_BATCHES)
#define IN_COLUMNS (IN_CSC | IN_CSC_VALUE)

/* Arrays that are the same kind of thing in every file. */
#define IN_ARRAYS (IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES)

/* How a field's content holds the samples. */
enum field_form {
    FORM_ITEM,    /* an array per sample, all alike: a batch stacks them */
    FORM_RAGGED,  /* arrays that differ in length, one after another */
    FORM_PADDED,  /* the same, each filled with zeros to the length of the longest */
    FORM_LENGTHS, /* the length of each without that filling */
    FORM_OFFSETS, /* where each begins in FORM_RAGGED */
    FORM_SHAPES,  /* the shape of each, where FORM_RAGGED has elements alone */
    FORM_TEXT,    /* text, an element per sample, as wide as the longest */
    FORM_WHOLE,   /* one array of all samples: a member of a matrix */
    FORM_BYTES,   /* the bytes of a file, whose extension is ext */
};

/* An array as a file shows it. */
#define FORM_AXES_MAX 256
struct form {
    enum dtype dtype;
    uint64_t width; /* bytes of an element */
    unsigned ndim;
    uint64_t dim[FORM_AXES_MAX]; /* [ndim] */
};

/* Write bytes [off, off + len) of the field's array for sel. 0 or -errno, -EAGAIN by the rule of
 * missing_go_on() included (base/read_context.h). */
typedef int field_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d);

/* How the bytes of a field are made. */
struct field_ops {
    field_read *read;
    /* The form of that array. NULL: the items of the samples, one after another. 0, or -errno with
     * the reason in sel->reason; -EDOM: the items of the selected samples differ, so one array
     * cannot hold them; -ENODATA: this selection needs no such array, and an archive omits it.
     * form() never reads the sources, except with form_reads: then it reads as read() does, with
     * sel->rc. */
    int (*form)(const struct dataset *ds, const struct field *f, const struct selection *sel,
                struct form *ret);
};

#define FIELD_NAME_SIZE 64
#define EXT_SIZE        32
#define ONE_HOT_MAX     65536      /* classes of one-hot labels */
#define DIM_VARIES      UINT64_MAX /* in dim[]: the size differs from sample to sample */

/* Where samples are stored, from one number up to the next run's. */
struct field_run {
    uint64_t first;
    const struct blob *blob; /* owned by the dataset */
    uint64_t offset;         /* of that sample in blob */
};

struct field {
    char name[FIELD_NAME_SIZE];
    const struct field_ops *ops;

    /* What it offers; known once the dataset is opened. */
    unsigned in; /* IN_...: the files that show it */
    enum field_form form;
    char folder[EXT_SIZE]; /* of FORM_BYTES: the <enc>/ folder that shows it, */
    char ext[EXT_SIZE];    /* and the extension there and in tar */
    bool unnamed;          /* a file of its bytes need not name it */
    bool names_file;       /* its bytes contain the path of the file */
    bool form_reads;       /* the size of its bytes depends on values of the samples */
    bool derived;          /* says nothing that another field does not */
    bool numbering;        /* index or key, which every dataset has */

    bool mixed; /* for some selections its form is -EDOM; valid once the dataset is ready */

    /* An item as files show it: little-endian, C order. Unused by fields with their own
     * form(). */
    enum dtype dtype;
    unsigned ndim;         /* axes of one sample's item */
    uint64_t *dim;         /* [ndim]; owned */
    uint64_t width;        /* bytes of an element */
    uint64_t item_bytes;   /* width x product of dim */
    const char *stored_as; /* what the source calls the type of elements of which numpy has none, so
                            * that dtype shows their bits: "BF16"; static. NULL: dtype is it */

    /* Where the field comes from; blob is NULL where it is not stored. */
    const struct blob *blob; /* owned by the dataset */
    uint64_t offset;         /* of sample 0 in blob */
    /* For samples that are stored in several places, otherwise NULL; the first is blob, offset, and
     * the others rise. Owned by the format. Reads check the blobs that they use. */
    const struct field_run *run;
    unsigned n_runs;
    uint64_t stored_step; /* bytes from a sample to the next; 0: stored_bytes */
    enum dtype stored_dtype;
    uint64_t stored_width; /* bytes of a stored element */
    uint64_t stored_bytes; /* of a sample's item */
    bool stored_big_endian;
    const struct field *base_field; /* the field that a derived one is derived from */
    field_read *read_stored; /* the array as stored; NULL: arithmetic says where each sample is */
    const void *impl;        /* the format's */
};

/* Does that place show the field? place: one of IN_... */
static inline bool field_is_in(const struct field *f, unsigned place)
{
    return f->in & place;
}

/* Offer the bytes of a field as files `<key>.<name>.<ext>` of an <enc>/ folder. in: IN_FILE_... and
 * IN_TAR. */
void field_offer_bytes(struct field *f, const char *folder, const char *ext, unsigned in);

enum dataset_state { DATASET_READY, DATASET_PREPARING, DATASET_FAILED };

#define KEY_SIZE 1040 /* bytes of a key, at most: of one in an index, and what a mix adds */

/* What a format does in its own way. A NULL member means the default, and so does a dataset without
 * ops. */
struct dataset_ops {
    /* Prepare the dataset a step further; calls never overlap. 1: ready, 0: not yet, or -errno with
     * the reason in d: the dataset has failed for good, but after -EREMOTEIO and -EINTR the next
     * call goes on. NULL: an opened dataset is ready. */
    int (*prepare)(struct dataset *ds, struct diag *d);
    /* How far prepare() has come, in bytes of the sources. Any thread. */
    void (*progress)(const struct dataset *ds, uint64_t *ret_done, uint64_t *ret_total);
    /* Share number part, of parts shares of the stored order. NULL: equal counts. */
    void (*share)(const struct dataset *ds, uint64_t part, uint64_t parts, uint64_t *ret_start,
                  uint64_t *ret_length);
    /* Parse everything and report what cannot be parsed. NULL: nothing but reading can fail. */
    int (*check)(const struct dataset *ds, void (*report)(void *ctx, const char *text), void *ctx,
                 struct diag *d);
    /* Lines for people about what check() has found besides what it reported. NULL: nothing. */
    void (*checked)(const struct dataset *ds, struct text *t);
    /* Members of dataset.json that only this format has; each line begins with indent and ends with
     * a comma. */
    void (*describe)(const struct dataset *ds, const char *indent, struct text *t);
    /* Add the name of the class that has that number in the field `label`. false: it has none.
     * NULL: none has. */
    bool (*class_name)(const struct dataset *ds, int64_t number, struct text *t);
    /* How many samples have that number in the field `label`, as classes are numbered. false: there
     * is no such class, or that takes a look at all labels. NULL: it always does. */
    bool (*class_size)(const struct dataset *ds, uint64_t number, uint64_t *ret);
    /* Does the source call by that name what the field `label` shows? NULL: not. */
    bool (*calls_label)(const struct dataset *ds, const char *name);
    /* Add the names of the columns of the field `x`, as JSON strings with ", " between them.
     * Nothing, or NULL: they have none. */
    void (*columns)(const struct dataset *ds, struct text *t);
    /* Lines for people, which `info` shows below the fields: what the dataset is made of, and why.
     * NULL: nothing. */
    void (*about)(const struct dataset *ds, struct text *t);
    /* Where a sample, or one of its fields (NULL: all), is stored: "file:offset+length". NULL: the
     * places of its stored fields. */
    void (*locate)(const struct dataset *ds, uint64_t sample, const struct field *only,
                   struct text *t);
    /* See dataset_extents() in format/core/extents.h. ret has room for EXTENTS_MOST; two extents
     * may cover the same bytes. NULL: the extents of its stored fields. */
    unsigned (*extents)(const struct dataset *ds, uint64_t sample, const struct field *only,
                        struct extent *ret);
    /* See dataset_copy(). NULL: with extents(), no file is; otherwise those of stored fields. */
    bool (*copy)(const struct dataset *ds, uint64_t sample, const struct field *field,
                 struct extent *ret);
    /* The same of the file of all samples in their stored order: see dataset_copy_of_all(). NULL:
     * none is. */
    bool (*copy_of_all)(const struct dataset *ds, const struct field *field, struct extent *ret);
    /* Free impl and what blob[] holds. impl may be half built. NULL: impl is one piece of memory.
     */
    void (*free)(struct dataset *ds);
    /* Does the sample have that field? NULL: each has all fields. */
    bool (*has)(const struct dataset *ds, uint64_t sample, const struct field *field);
    /* For a dataset that is made of others: the number of a sample that `index` shows, its key, its
     * name, and the sample of a name, as dataset_number() and the others below say. NULL: the
     * number itself, and what ds->keys has. */
    uint64_t (*number)(const struct dataset *ds, uint64_t sample);
    size_t (*key)(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE]);
    size_t (*name)(const struct dataset *ds, uint64_t sample, bool dots,
                   char ret[static KEY_NAME_SIZE]);
    bool (*find)(const struct dataset *ds, const char *name, size_t len, uint64_t *ret);
    /* Add a text that differs wherever samples may differ although the source files are the same:
     * which parts of the files the dataset shows, and how they are read. Called once it is ready. 0
     * or -errno. NULL: the files and the options of the mount say it all. */
    int (*identity)(const struct dataset *ds, struct text *t);
    bool checks_reads; /* each read checks the blobs that it uses */
    bool walks;        /* sizes of files of many samples take a walk, even in stored order */
};

struct dataset {
    const struct format *format;
    const struct dataset_ops *ops; /* NULL: all defaults */
    void *impl;                    /* the format's */
    _Atomic int state;             /* enum dataset_state */
    int failed;                    /* -errno of a failed dataset; constant from then on, as is: */
    struct diag reason;
    struct notes notes;           /* what people have to know of it once it is ready */
    struct missing_parts missing; /* parts of it that are not in it; constant */
    /* The preparing thread's: */
    struct retry retry;  /* whether, and when, to call dataset_prepare() again */
    struct diag trouble; /* why that pauses */
    uint64_t samples;
    const struct index *keys; /* row i has the key of sample i; not owned; set when it is ready */
    unsigned key_digits;      /* NULL: a key is the sample number with that many digits */

    unsigned n_fields;
    struct field *field; /* [n_fields]; owned */

    unsigned n_blobs;
    struct blob **blob; /* [n_blobs]; owned */
    bool shares_blobs;  /* with other datasets, which count the references */
    unsigned denied;    /* permission bits that a file it reads lacks; valid once it is ready */

    /* Where its pictures come from that are files: format/core/plan_fields.h. The format's. NULL:
     * nowhere. */
    const struct picture_source *pictures;
    struct durations *durations;     /* of its audio: format/core/durations.h. NULL: it has none */
    struct plan_fields *plan_fields; /* of plans that make pictures; owned; NULL: no plan may */

    struct memo *memo; /* results kept for samples that differ in size; not owned; otherwise NULL */

    /* The files that the encoders offer, see encoder.h. Owned. */
    unsigned n_folders;
    struct folder *folder;
    bool late_folders; /* named at opening, filled once the fields are known */

    const char *revision, *commit; /* of the repository that it is of; not owned; NULL: of none */

    bool unlisted; /* one of very many: it opens by its name, but listings omit it */

    const char *rule; /* by which its format has found it, for people; not owned; NULL: by none */

    /* The name of the field whose numbers are classes, for plans and pages. Valid once it is ready,
     * and not owned. */
    const char *label;
    bool label_is_chosen; /* by the user */
    char *wanted_label;   /* the name that the user gives, of this dataset; owned; NULL: none */
    char *class_names; /* of a label of texts: JSON strings with ", " between them; owned; NULL */

    /* What its owner does once prepare() is done, before the dataset is ready: it may add a field
     * (dataset_insert_field()). 0 or -errno. NULL: nothing. */
    int (*finish)(struct dataset *ds, const void *ctx);
    const void *finish_ctx;
};

static inline enum dataset_state dataset_state(const struct dataset *ds)
{
    return (enum dataset_state)atomic_load_explicit(&ds->state, memory_order_acquire);
}

/* Make a dataset that is to be opened, with room for fields and blobs, which the caller adds. impl
 * is malloc'd; the call takes ownership, and ops->free() frees it, also on error. NULL with ops
 * means that malloc() failed. Without ops there is no impl. 0 or -ENOMEM. */
int dataset_new(const struct format *format, const struct dataset_ops *ops, void *impl,
                size_t fields, size_t blobs, struct dataset **ret);

/* Prepare the dataset a step further and publish its new state. Never in two threads at once. 1:
 * ready or failed, 0: not yet. An unreachable remote does not fail the dataset: ds->retry pauses,
 * and each call tries again for as long as a read waits. */
int dataset_prepare(struct dataset *ds);

/* The caller does not try again: let a dataset that pauses fail, because of its trouble. Does it
 * fail? */
bool dataset_give_up(struct dataset *ds);

/* Add "file:offset+length" of a sample's stored fields, or of only one of them. */
void dataset_locate(const struct dataset *ds, uint64_t sample, const struct field *only,
                    struct text *t);

/* Frees its blobs too; takes NULL and half-built ones. */
void dataset_free(struct dataset *ds);

static inline void dataset_scope_end(struct dataset **ds)
{
    dataset_free(*ds);
}
#define AUTO_DATASET AUTO(dataset_scope_end)

/* Has the sample that field? false: the sample has no file of it, nor a member of npz or tar. */
bool dataset_has(const struct dataset *ds, uint64_t sample, const struct field *field);

/* Replace the fields, of which there are none yet, by room for n. 0 or -ENOMEM. */
int dataset_make_fields(struct dataset *ds, size_t n);

/* Add a zeroed field before index and key, after all others: there is always room for two.
 * Index and key move, so folders must be filled again. */
struct field *dataset_insert_field(struct dataset *ds);

/* Free the room that is left: no more fields come, and nothing points to one yet. There may be very
 * many datasets. */
void dataset_fit_fields(struct dataset *ds);

/* The field of that name, or NULL. */
const struct field *dataset_field(const struct dataset *ds, const char *name);

/* The number of a sample that `index` shows. */
static inline uint64_t dataset_number(const struct dataset *ds, uint64_t sample)
{
    return ds->ops && ds->ops->number ? ds->ops->number(ds, sample) : sample;
}

/* Are the keys other than numbers, so that they differ in length? */
static inline bool dataset_has_keys(const struct dataset *ds)
{
    return ds->keys || (ds->ops && ds->ops->key);
}

/* The key of a sample: any bytes. Returns their number. */
size_t dataset_key(const struct dataset *ds, uint64_t sample, uint8_t ret[static KEY_SIZE]);

/* The name of a sample's files, without the suffix; NUL-terminated. See key_name(). */
size_t dataset_name(const struct dataset *ds, uint64_t sample, bool dots,
                    char ret[static KEY_NAME_SIZE]);

/* Set the number of samples, and the width of keys that follows from it. */
void dataset_set_samples(struct dataset *ds, uint64_t samples);

/* The sample of that name; false where there is none. */
bool dataset_find(const struct dataset *ds, const char *name, size_t len, uint64_t *ret);

/* Add a field whose items are stored, of one shape, dim [ndim], whose bytes fit in 64 bits. stored
 * has the type, ndim, where the items are, and what else is not 0; sizes, the conversion (unless
 * stored has ops) and the files that show the field follow from that. ds->field must have room. The
 * field; or NULL: there is no memory. */
struct field *dataset_add_stored(struct dataset *ds, const char *name, const struct field *stored,
                                 const uint64_t *dim);

/* Add the fields that every dataset has: index and key. ds->field must have room for both at its
 * end. */
void dataset_add_numbering(struct dataset *ds);

/* The form of a field's array for a selection, and its bytes. 0, -EFBIG: no file can hold it, or
 * what the field's own form() returns. */
int field_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
               struct form *ret, uint64_t *ret_bytes);

/* The same for the bytes as stored; f has no form() of its own. */
void field_stored_form(const struct field *f, const struct selection *sel, struct form *ret);

/* The size of axis i of an item as the source stores it. */
uint64_t field_stored_dim(const struct field *f, unsigned i);

/* numpy's text of a shape: "(128, 28, 28)", "(3,)", "()". */
void form_shape_text(const struct form *form, struct text *t);

/* Ops of fields whose items are stored one after another, one for each conversion. */
extern const struct field_ops field_as_stored; /* same bytes */
/* Big-endian elements of 2, 4, 8 bytes; or, where the type differs, uint8 to float32: v / 255.0f.
 */
extern const struct field_ops field_converted;
extern const struct field_ops field_transposed; /* the same, the two axes of an item exchanged */
extern const struct field_ops field_one_hot;    /* a number to float32 [dim[0]] */
extern const struct field_ops field_planes;     /* bytes [c, h, w] as [h, w, c] */
extern const struct field_ops field_number;
extern const struct field_ops field_key;

/* The bytes as they are in the source, whatever the field shows. One item takes stored_bytes. */
int field_read_stored(struct read_context *rc, const struct field *f, const struct selection *sel,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d);

/* Where the bytes of a sample of a stored field are: *ret_off in the blob that is returned. */
const struct blob *field_place(const struct field *f, uint64_t sample, uint64_t *ret_off);

/* The samples from this one up to that number lie one after another in the source. */
uint64_t field_neighbours_end(const struct field *f, uint64_t sample);

/* The samples of a stored field from the first to the last that have some of these bytes, len > 0.
 * false: none has, up to the number of samples of the dataset. */
bool field_samples_at(const struct field *f, const struct blob *blob, uint64_t off, uint64_t len,
                      uint64_t *ret_first, uint64_t *ret_last);

/* The integer of one sample of a scalar stored integer field. */
int field_integer(struct read_context *rc, const struct dataset *ds, const struct field *f,
                  uint64_t sample, int64_t *ret, struct diag *d);

/* The stored integer at p, in the source's type and byte order. */
int64_t stored_integer(const struct field *f, const uint8_t *p);

/* One integer per sample, which an int64_t can hold. */
static inline bool field_is_scalar_integer(const struct field *f)
{
    return f->ndim == 0 && (f->dtype == DTYPE_U1 || f->dtype == DTYPE_I1 || f->dtype == DTYPE_I2 ||
                            f->dtype == DTYPE_U2 || f->dtype == DTYPE_I4 || f->dtype == DTYPE_U4 ||
                            f->dtype == DTYPE_I8);
}

#endif
