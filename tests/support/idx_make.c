#include "support/idx_make.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/pack/unpack.h"
#include "format/idx/header.h"
#include "format/records/record_set.h"

static uint64_t type_bytes(uint8_t type)
{
    return type == 0x0e ? 8 : type == 0x0c || type == 0x0d ? 4 : type == 0x0b ? 2 : 1;
}

static uint64_t put_header(uint8_t *header, uint8_t type, unsigned axes, const uint32_t *dim)
{
    uint64_t payload = type_bytes(type);

    memset(header, 0, 4);
    header[2] = type;
    header[3] = (uint8_t)axes;
    for (unsigned i = 0; i < axes; i++) {
        store_be32(header + 4 + 4 * i, dim[i]);
        payload *= dim[i];
    }
    return payload;
}

struct blob *idx_blob(const char *name, uint8_t type, unsigned axes, const uint32_t *dim,
                      struct blob_faults *faults)
{
    uint8_t header[4 + 4 * IDX_AXES_MAX];
    size_t head = 4 + 4 * (size_t)axes, payload = put_header(header, type, axes, dim);
    AUTO_FREE uint8_t *bytes = malloc(head + payload);

    if (!bytes)
        return NULL;
    memcpy(bytes, header, head);
    for (size_t i = 0; i < payload; i++)
        bytes[head + i] = idx_pattern(i);
    return memory_blob_new(name, bytes, head + payload, head + payload, faults);
}

struct blob *idx_blob_zeros(const char *name, uint8_t type, unsigned axes, const uint32_t *dim,
                            struct blob_faults *faults)
{
    uint8_t header[4 + 4 * IDX_AXES_MAX];
    uint64_t payload = put_header(header, type, axes, dim);
    size_t head = 4 + 4 * (size_t)axes;

    return memory_blob_new(name, header, head, head + payload, faults);
}

struct blob *idx_blob_labels(const char *name, const uint8_t *label, uint32_t n,
                             struct blob_faults *faults)
{
    AUTO_FREE uint8_t *bytes = malloc(8 + (size_t)n);

    if (!bytes)
        return NULL;
    put_header(bytes, 0x08, 1, &n);
    if (n)
        memcpy(bytes + 8, label, n);
    return memory_blob_new(name, bytes, 8 + (size_t)n, 8 + (uint64_t)n, faults);
}

static int found_dataset(struct finds *finds, const char *name, struct dataset *ds)
{
    struct found *found = (struct found *)finds;
    char *copy = strdup(name);

    assert(found->n < FOUND_MAX);
    if (!copy) {
        dataset_free(ds);
        return -ENOMEM;
    }
    found->item[found->n].name = copy;
    found->item[found->n++].ds = ds;
    return 0;
}

static int found_error(struct finds *finds, const char *name, const char *reason)
{
    struct found *found = (struct found *)finds;

    assert(found->n < FOUND_MAX);
    found->item[found->n].name = strdup(name);
    found->item[found->n].reason = strdup(reason);
    found->n++;
    return found->item[found->n - 1].name && found->item[found->n - 1].reason ? 0 : -ENOMEM;
}

/* Note a file that is in no dataset. */
static int found_leave_out(struct finds *finds, const char *file_name, int error,
                           const char *reason)
{
    size_t len = unpacked_name_len(file_name);
    struct left_out_file file = {.name = strndup(file_name, len),
                                 .reason = reason ? strdup(reason) : NULL};
    struct unread_file unread = {.error = error};

    assert(finds->n_left_out < FOUND_MAX && finds->n_unread < FOUND_MAX);
    finds->left_out[finds->n_left_out++] = file;
    if (!file.name || (reason && !file.reason))
        return -ENOMEM;
    if (!blob_may_pass(error))
        return 0;
    unread.name = strdup(file.name);
    unread.reason = strdup(reason);
    finds->unread[finds->n_unread++] = unread;
    return unread.name && unread.reason ? 0 : -ENOMEM;
}

static int found_failed(struct finds *finds, const char *file_name, int error, const char *reason)
{
    struct found *found = (struct found *)finds;
    int r = error == -ENOMEM ? error : found_leave_out(finds, file_name, error, reason);

    if (r == 0)
        r = found_error(finds, file_name, reason);
    if (r == 0)
        found->item[found->n - 1].error = error;
    return r;
}

#define MARKS "!-+"

/* The files that the format gets: given[*ret_n], which takes over their blobs. */
static int found_give(struct finds *finds, struct source_file *file, size_t n,
                      struct source_file *given, size_t *ret_n)
{
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const char *slash = strrchr(blob_name(file[i].blob), '/');
        char mark = slash ? slash[1] : *blob_name(file[i].blob);

        if (mark && strchr(MARKS, mark)) {
            r = found_leave_out(finds, file[i].file_name, mark == '!' ? -EREMOTEIO : 0,
                                mark == '+' ? NULL : "it is marked");
            continue;
        }
        given[*ret_n] = file[i];
        given[(*ret_n)++].blob = TAKE_PTR(file[i].blob);
    }
    return r;
}

int format_open(const struct format *format, struct blob **blob, size_t n,
                const struct format_setup *setup, struct found *ret)
{
    AUTO_FREE struct source_file *files = calloc(n + 1, sizeof(*files));
    AUTO_FREE struct source_file *given = calloc(n + 1, sizeof(*given));
    struct folder_names names = {0};
    size_t n_given = 0;
    int r = 0;

    *ret = (struct found){
        .finds = {.dataset = found_dataset, .error = found_error, .failed = found_failed}};
    ret->finds.unread = ret->unread;
    ret->finds.left_out = ret->left_out;
    ret->finds.names = &names;
    for (size_t i = 0; i < n && (!files || !given); i++)
        blob_free(blob[i]);
    if (!files || !given)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const char *name = blob[i] ? blob_name(blob[i]) : "", *slash = strrchr(name, '/');

        files[i].folder = strndup(name, slash ? (size_t)(slash - name) : 0);
        name = slash ? slash + 1 : name;
        name += *name && strchr(MARKS, *name);
        files[i].file_name = strdup(name);
        files[i].name = strndup(name, unpacked_name_len(name));
        files[i].blob = blob[i];
        if (!blob[i] || !files[i].folder || !files[i].name || !files[i].file_name)
            r = -ENOMEM;
    }
    if (r == 0)
        r = folder_names_of(files, n, &names);
    if (r == 0)
        r = found_give(&ret->finds, files, n, given, &n_given);
    if (r == 0)
        r = format_open_folder(format, given, n_given, setup, &ret->finds);
    for (size_t i = 0; i < n_given; i++)
        blob_free(given[i].blob);
    for (size_t i = 0; i < n; i++) {
        blob_free(files[i].blob);
        free((char *)files[i].folder);
        free((char *)files[i].name);
        free((char *)files[i].file_name);
    }
    free(names.file);
    ret->finds.names = NULL;
    return r;
}

int idx_open(struct blob **blob, size_t n, const struct format_options *options, struct found *ret)
{
    return format_open(&format_idx, blob, n, &(struct format_setup){.options = *options}, ret);
}

void found_release(struct found *found)
{
    for (size_t i = 0; i < found->n; i++) {
        free(found->item[i].name);
        free(found->item[i].reason);
        dataset_free(found->item[i].ds);
    }
    for (size_t i = 0; i < found->finds.n_left_out; i++) {
        free(found->left_out[i].name);
        free(found->left_out[i].reason);
    }
    for (size_t i = 0; i < found->finds.n_unread; i++) {
        free(found->unread[i].name);
        free(found->unread[i].reason);
    }
    found->n = found->finds.n_left_out = found->finds.n_unread = 0;
}

int found_find(const struct found *found, const char *name)
{
    for (size_t i = 0; i < found->n; i++)
        if (!strcmp(found->item[i].name, name))
            return (int)i;
    return -1;
}
