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

static int found_failed(struct finds *finds, const char *file_name, int error, const char *reason)
{
    struct found *found = (struct found *)finds;
    int r = error == -ENOMEM ? error : found_error(finds, file_name, reason);

    if (r == 0)
        found->item[found->n - 1].error = error;
    return r;
}

int format_open(const struct format *format, struct blob **blob, size_t n,
                const struct format_setup *setup, struct found *ret)
{
    AUTO_FREE struct source_file *files = calloc(n ? n : 1, sizeof(*files));
    int r = files ? 0 : -ENOMEM;

    *ret = (struct found){
        .finds = {.dataset = found_dataset, .error = found_error, .failed = found_failed}};
    for (size_t i = 0; i < n && files; i++) {
        const char *name = blob[i] ? blob_name(blob[i]) : "", *slash = strrchr(name, '/');

        files[i].folder = strndup(name, slash ? (size_t)(slash - name) : 0);
        name = slash ? slash + 1 : name;
        files[i].file_name = strdup(name);
        files[i].name = strndup(name, unpacked_name_len(name));
        files[i].blob = blob[i];
        if (!blob[i] || !files[i].folder || !files[i].name || !files[i].file_name)
            r = -ENOMEM;
    }
    if (r == 0)
        r = format_open_folder(format, files, n, setup, &ret->finds);
    for (size_t i = 0; i < n; i++) {
        blob_free(files ? files[i].blob : blob[i]);
        if (files) {
            free((char *)files[i].folder);
            free((char *)files[i].name);
            free((char *)files[i].file_name);
        }
    }
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
    found->n = 0;
}

int found_find(const struct found *found, const char *name)
{
    for (size_t i = 0; i < found->n; i++)
        if (!strcmp(found->item[i].name, name))
            return (int)i;
    return -1;
}
