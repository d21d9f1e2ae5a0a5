#include "support/memory_opener.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

struct opener_run {
    struct memory_opener *opener;
    const struct memory_command *command; /* NULL: an unknown command */
    unsigned polls;
    bool ended;
};

static struct memory_opener *own(const struct opener *opener)
{
    return (struct memory_opener *)(uintptr_t)opener;
}

struct blob *memory_file_blob(const struct memory_file *file)
{
    return memory_blob_new(file->path, file->bytes, file->len, file->len, file->faults);
}

/* Does path name the file, as it is or relative to folder? */
static bool is_called(const struct memory_file *file, const char *folder, const char *path)
{
    size_t len = strlen(folder);

    return !strcmp(file->path, path) ||
           (len && !strncmp(file->path, folder, len) && file->path[len] == '/' &&
            !strcmp(file->path + len + 1, path));
}

static int open_file(const struct opener *opener, const char *folder, const char *path,
                     struct blob **ret, struct diag *d)
{
    struct memory_opener *m = own(opener);

    for (size_t i = 0; i < m->n_files; i++) {
        if (!is_called(&m->file[i], folder, path))
            continue;
        *ret = memory_file_blob(&m->file[i]);
        m->opened += *ret != NULL;
        return *ret ? 0 : -ENOMEM;
    }
    return diag_set(d, -ENOENT, "%s: there is no such file", path);
}

/* Ignores spaces before the '|'. */
static bool is_command(const struct memory_command *known, const char *command)
{
    size_t len = strlen(known->text);

    return !strncmp(known->text, command, len) && !command[len + strspn(command + len, " ")];
}

static int kept(const struct opener *opener, const char *command, struct blob **ret)
{
    const struct memory_opener *m = own(opener);

    for (size_t i = 0; i < m->n_commands; i++) {
        const struct memory_command *known = &m->command[i];

        if (!is_command(known, command) || !known->bytes || known->polls)
            continue;
        *ret = memory_blob_new(known->text, known->bytes, known->len, known->len, NULL);
        return *ret ? 0 : -ENOMEM;
    }
    return -ENOENT;
}

static int start(const struct opener *opener, const char *command, struct opener_run **ret,
                 struct diag *d)
{
    struct memory_opener *m = own(opener);
    struct opener_run *run;

    if (!opener->runs_commands)
        return diag_set(d, -EACCES, "command '%s': expected -o allow_commands", command);
    if (m->most && m->running == m->most)
        return diag_set(d, -EAGAIN, "command '%s': %u are running", command, m->running);
    run = calloc(1, sizeof(*run));
    if (!run)
        return -ENOMEM;
    run->opener = m;
    for (size_t i = 0; i < m->n_commands; i++)
        if (is_command(&m->command[i], command))
            run->command = &m->command[i];
    run->polls = run->command ? run->command->polls : 0;
    m->running++;
    m->started++;
    *ret = run;
    return 0;
}

static void end(struct opener_run *run)
{
    run->opener->running -= !run->ended;
    run->ended = true;
}

static int poll_run(struct opener_run *run, int wait_ms, struct blob **ret, struct diag *d)
{
    (void)wait_ms;
    if (run->ended)
        return diag_set(d, -EINVAL, "the command has ended");
    if (run->polls) {
        run->polls--;
        return 0;
    }
    end(run);
    if (!run->command || !run->command->bytes)
        return diag_set(d, -EIO, "command '%s': exit status 1",
                        run->command ? run->command->text : "");
    *ret = memory_blob_new(run->command->text, run->command->bytes, run->command->len,
                           run->command->len, NULL);
    return *ret ? 1 : -ENOMEM;
}

static void stop(struct opener_run *run)
{
    end(run);
    free(run);
}

/* Without a CRC: the product's own is tested in cache/pack. */
static int unpack(const struct opener *opener, const struct blob *blob,
                  const struct packed_part *part, struct blob **ret, struct diag *d)
{
    uint8_t *in = malloc(part->len + 1), *out = malloc(part->size + 1);
    z_stream z = {.next_in = in, .avail_in = (uInt)part->len};
    int r = blob_read(READ_WAITS, blob, in, part->len, part->off, d);

    (void)opener;
    z.next_out = out;
    z.avail_out = (uInt)part->size + 1;
    assert(inflateInit2(&z, -15) == Z_OK);
    if (r == 0 && (inflate(&z, Z_FINISH) != Z_STREAM_END || z.total_out != part->size))
        r = diag_set(d, -EBADMSG, "%s: member %s: expected %llu bytes unpacked, got others",
                     blob_name(blob), part->name, (unsigned long long)part->size);
    inflateEnd(&z);
    if (r == 0)
        *ret = memory_blob_new(part->name, out, part->size, part->size, NULL);
    free(in);
    free(out);
    return r == 0 && !*ret ? -ENOMEM : r;
}

/* None is packed. */
static int unpack_file(const struct opener *opener, struct blob **blob, struct diag *d)
{
    (void)opener;
    (void)blob;
    (void)d;
    return 0;
}

void memory_opener_init(struct memory_opener *ret)
{
    static const struct opener_ops ops = {open_file, kept,   start,      poll_run,
                                          stop,      unpack, unpack_file};

    ret->opener.ops = &ops;
}

/* ---- folders ---- */

int kaldi_open(const struct memory_file *file, size_t n, const struct format_options *options,
               const struct index_store *keep, struct memory_opener *opener,
               struct kaldi_folder *ret)
{
    struct format_setup setup = {.options = *options, .keep = keep};
    struct blob *blob[FOUND_MAX];
    int r;

    assert(n <= FOUND_MAX);
    *ret = (struct kaldi_folder){0};
    memory_keep_init(&ret->refuses, true);
    memory_opener_init(&ret->opens_nothing);
    if (!keep)
        setup.keep = &ret->refuses.keep;
    setup.opener = opener ? &opener->opener : &ret->opens_nothing.opener;
    r = memo_new(16 << 20, &ret->memo);
    setup.memo = ret->memo;
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        blob[i] = memory_file_blob(&file[i]);
    r = format_open(&format_kaldi, blob, n, &setup, &ret->found);
    for (size_t i = 0; i < ret->found.n && r == 0; i++)
        while (ret->found.item[i].ds && !dataset_prepare(ret->found.item[i].ds))
            continue;
    return r;
}

void kaldi_release(struct kaldi_folder *folder)
{
    found_release(&folder->found);
    memo_free(folder->memo);
    folder->memo = NULL;
}

struct dataset *kaldi_dataset(const struct kaldi_folder *folder, const char *name)
{
    int i = found_find(&folder->found, name);

    return i < 0 ? NULL : folder->found.item[i].ds;
}
