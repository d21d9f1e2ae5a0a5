/* WebDataset: shards that are tar archives. */
#include "format/records/record_set.h"
#include "format/tar/archive/header.h"
#include "format/tar/archive/hints.h"
#include "format/tar/shard.h"

#include <errno.h>
#include <string.h>

extern const struct format format_tar;

static bool file_is_beside(const struct source_file *file)
{
    return tar_hints_are_called(file->name);
}

static void tar_damage(const void *file, struct text *t)
{
    text_add(t, "%s", ((const struct tar_shard *)file)->damage);
}

static void tar_note(const void *file, struct text *t)
{
    text_add(t, "%s", ((const struct tar_shard *)file)->note);
}

static const struct record_format shards = {
    .format = &format_tar,
    .file = &tar_shard_ops,
    .is_beside = file_is_beside,
    .has = tar_has,
    .dims = tar_dims,
    .extent = tar_extent,
    .read = tar_read,
    .verify = tar_verify,
    .damage = tar_damage,
    .note = tar_note,
};

/* A damaged archive is one too, if it says so: its message tells what is wrong. */
static enum claim tar_probe(const struct probed_file *file)
{
    struct tar_header header;

    if (tar_hints_are_called(file->name))
        return tar_hints_are_in(file->name, file->head, file->len) ? CLAIM_NAMED : CLAIM_NONE;
    if (file->len < TAR_BLOCK)
        return CLAIM_NONE;
    if (!memcmp(file->head + 257, "ustar", 5))
        return CLAIM_STRONG;
    return !tar_header_parse(file->head, &header) && header.type != TAR_END ? CLAIM_STRONG
                                                                            : CLAIM_NONE;
}

const struct format format_tar = {
    .name = "tar",
    .probe = tar_probe,
    .records = &shards,
    .title = "WebDataset shards (tar)",
    .example = "  batch = np.load(root + '/batches/batch=32,seed=7/epoch=0/npz/000000.npz')\n"
               "  # or tarfile.open(root + '/batches/batch=32,seed=7/epoch=0/tar/000000.tar')\n",
};
