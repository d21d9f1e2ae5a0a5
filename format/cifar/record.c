#include "format/cifar/record.h"

#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"

const struct cifar_layout cifar_10 = {
    "CIFAR-10", "cifar10", 1, {{"label", "classes", "batches.meta.txt", 10}}};
const struct cifar_layout cifar_100 = {
    "CIFAR-100",
    "cifar100",
    2,
    {{"coarse_label", "coarse_classes", "coarse_label_names.txt", 20},
     {"label", "classes", "fine_label_names.txt", 100}}};

const char *const cifar_words[] = {"cifar10", "cifar100", NULL};

/* "data_batch_7" and what follows: the length of the former, or 0. */
static size_t batch_len(const char *name, uint64_t *ret_number)
{
    static const char start[] = "data_batch_";
    size_t n = strlen(start), digits;

    if (strncmp(name, start, n) != 0)
        return 0;
    digits = number_parse(name + n, strlen(name + n), UINT64_MAX, ret_number);
    return digits ? n + digits : 0;
}

static void cifar_record_judge(const char *name, struct cifar_name *ret)
{
    const struct cifar_layout *const layouts[] = {&cifar_10, &cifar_100};
    static const char test[] = "test_batch";
    size_t len;

    *ret = (struct cifar_name){.names_of_label = -1};
    for (size_t k = 0; k < ARRAY_LEN(layouts); k++)
        for (unsigned i = 0; i < layouts[k]->n_labels; i++)
            if (!strcmp(name, layouts[k]->label[i].file)) {
                ret->layout = layouts[k];
                ret->names_of_label = (int)i;
                return;
            }
    len = batch_len(name, &ret->number);
    if (!len && !strncmp(name, test, strlen(test))) {
        ret->split = CIFAR_TEST;
        len = strlen(test);
    }
    if (len && (!name[len] || !strcmp(name + len, ".bin"))) {
        ret->layout = &cifar_10;
        ret->is_pickle = !name[len];
    } else if (!strcmp(name, "train.bin") || !strcmp(name, "test.bin")) {
        ret->layout = &cifar_100;
        ret->split = name[1] == 'r' ? CIFAR_TRAIN : CIFAR_TEST;
    }
}

void cifar_name_judge(const char *name, const char *option, struct cifar_name *ret)
{
    const struct cifar_layout *layout = option && !strcmp(option, cifar_10.word)    ? &cifar_10
                                        : option && !strcmp(option, cifar_100.word) ? &cifar_100
                                                                                    : NULL;

    cifar_record_judge(name, ret);
    if (!layout || ret->is_pickle || ret->names_of_label >= 0)
        return;
    if (!ret->layout)
        ret->split = CIFAR_ALONE;
    ret->layout = layout;
}

/* Are all labels in the head those of the kind? */
static bool has_labels(const struct probed_file *file, const struct cifar_layout *layout)
{
    for (uint64_t at = 0; at < file->len; at += cifar_record_bytes(layout))
        for (unsigned i = 0; i < layout->n_labels && at + i < file->len; i++)
            if (file->head[at + i] >= layout->label[i].classes)
                return false;
    return true;
}

static bool has_file(const struct probed_file *file, const char *name)
{
    return folder_names_has(&file->folder, name, strlen(name));
}

/* Does something next to it, or the folder's name, say that train.bin and test.bin are CIFAR-100's?
 */
static bool is_in_cifar_100(const struct probed_file *file)
{
    return has_file(file, cifar_100.label[1].file) ||
           (file->folder_name && !strncmp(file->folder_name, "cifar-100", 9));
}

/* Are there records next to a file that names classes? */
static bool has_records(const struct probed_file *file, const struct cifar_layout *layout)
{
    for (size_t i = 0; i < file->folder.n; i++) {
        const struct folder_name *other = &file->folder.file[i];
        AUTO_FREE char *name = strndup(other->name, other->len);
        struct cifar_name judged = {.names_of_label = 0};

        if (name)
            cifar_name_judge(name, NULL, &judged);
        if (judged.layout == layout && judged.names_of_label < 0 && !judged.is_pickle)
            return true;
    }
    return false;
}

enum claim cifar_probe(const struct probed_file *file)
{
    struct cifar_name name;

    cifar_name_judge(file->name, NULL, &name);
    if (!name.layout)
        return CLAIM_NONE;
    if (name.names_of_label >= 0)
        return has_records(file, name.layout) ? CLAIM_NAMED : CLAIM_NONE;
    if (name.is_pickle)
        return file->len > 2 && file->head[0] == 0x80 ? CLAIM_NAMED : CLAIM_NONE;
    if (name.layout == &cifar_100 &&
        (!is_in_cifar_100(file) || (file->options && file->options->tokens_given)))
        return CLAIM_NONE;
    return has_labels(file, name.layout) ? CLAIM_NAMED : CLAIM_NONE;
}
