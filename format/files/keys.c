#include "format/files/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/search.h"

enum level { STEM, PATH, WHOLE };

static void append(char ret[static KEY_MAX], size_t *len, const char *bytes, size_t n)
{
    if (n > KEY_MAX - *len)
        n = KEY_MAX - *len;
    memcpy(ret + *len, bytes, n);
    *len += n;
}

static size_t files_keys_make_key(const struct sample_keys *keys, const struct sample_files *sample,
                                  enum level level, char ret[static KEY_MAX])
{
    const struct members *m = keys->m;
    const char *name = members_name(m, sample->first);
    const char *folder = members_folder_of(m, sample->first) + strlen(keys->claim->top);
    size_t len = 0;

    folder += *folder == '/';
    if (level != STEM && *folder) {
        append(ret, &len, folder, strlen(folder));
        append(ret, &len, "/", 1);
    }
    append(ret, &len, name, level == WHOLE ? strlen(name) : sample->stem);
    return len;
}

static bool files_keys_is_repeated(const struct repeated *repeated, uint64_t hash)
{
    return repeated->n && bsearch(&hash, repeated->hash, repeated->n, sizeof(hash), search_compare);
}

size_t sample_key(const struct sample_keys *keys, uint64_t row, const struct sample_files *sample,
                  char ret[static KEY_MAX])
{
    size_t len = 0;

    if (keys->claim->keys.n) {
        const uint8_t *key;
        size_t n = (size_t)value_items(keys->claim->keys.column, row, &key);

        append(ret, &len, (const char *)key, n);
        return len;
    }
    len = files_keys_make_key(keys, sample, STEM, ret);
    if (!files_keys_is_repeated(&keys->stems, key_hash(ret, len)))
        return len;
    len = files_keys_make_key(keys, sample, PATH, ret);
    return files_keys_is_repeated(&keys->paths, key_hash(ret, len))
               ? files_keys_make_key(keys, sample, WHOLE, ret)
               : len;
}

/* Find the hashes that several samples have; of paths, only those of samples whose stem repeats. */
static int files_keys_find_repeated(const struct sample_keys *keys, enum level level,
                                    struct repeated *ret)
{
    AUTO_FREE uint64_t *all = NULL;
    char key[KEY_MAX];
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < keys->view->n; i++) {
        struct sample_files sample;
        uint64_t hash;

        claim_sample(keys->m, keys->claim, keys->view, i, &sample);
        hash = key_hash(key, files_keys_make_key(keys, &sample, STEM, key));
        if (level == PATH && !files_keys_is_repeated(&keys->stems, hash))
            continue;
        if (level == PATH)
            hash = key_hash(key, files_keys_make_key(keys, &sample, PATH, key));
        if (array_capacity(&all, n, sizeof(*all)) < 0)
            return -ENOMEM;
        all[n++] = hash;
    }
    if (n)
        qsort(all, n, sizeof(*all), search_compare);
    for (size_t i = 1; i < n; i++)
        if (all[i] == all[i - 1] && (!kept || all[kept - 1] != all[i]))
            all[kept++] = all[i];
    if (kept) { /* few, of very many */
        ret->hash = malloc(kept * sizeof(*all));
        if (!ret->hash)
            return -ENOMEM;
        memcpy(ret->hash, all, kept * sizeof(*all));
    }
    ret->n = kept;
    return 0;
}

int sample_keys_init(struct sample_keys *ret, const struct members *m,
                     const struct files_claim *claim, const struct files_view *view)
{
    struct sample_keys keys = {.m = m, .claim = claim, .view = view};
    int r = claim->keys.n ? 0 : files_keys_find_repeated(&keys, STEM, &keys.stems);

    if (r == 0 && keys.stems.n)
        r = files_keys_find_repeated(&keys, PATH, &keys.paths);
    if (r < 0) {
        sample_keys_release(&keys);
        return r;
    }
    *ret = keys;
    return 0;
}

void sample_keys_release(struct sample_keys *keys)
{
    free(keys->stems.hash);
    free(keys->paths.hash);
    *keys = (struct sample_keys){0};
}
