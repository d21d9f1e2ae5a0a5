/* Which dataset of a mount is audited. */
#ifndef EPOCHFS_FS_CLI_AUDIT_DATASET_H
#define EPOCHFS_FS_CLI_AUDIT_DATASET_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "format/core/dataset.h"
#include "fs/cli/audit_mix.h"

struct audit_dataset {
    char folder[PATH_MAX];
    char label[FIELD_NAME_SIZE]; /* the field that has classes */
    uint64_t samples;
    struct audit_mix *mix; /* allocated by the caller; mix->n is 0 for other datasets */
};

/* Find the only dataset of a mount, or of a folder in it, and read its description. batch: as of
 * audit_mix_read(). -1; or an exit code, of what was printed. */
int audit_dataset_find(const char *mountpoint, uint64_t batch, struct audit_dataset *ret);

/* Read the first capacity - 1 bytes of a live text. 0 or -errno. */
int audit_read_text(const char *path, char *ret, size_t capacity);

#endif
