/* Which files are CIFAR-10's and CIFAR-100's: by their names, the first labels, what lies next to
 * them, and what the user says. */
#include "format/cifar/record.h"

#include <string.h>

#include "support/unit.h"

/* What a name is without and with an option. */
UNIT_TEST(test_name__judged)
{
    static const struct {
        const char *name, *option;
        const struct cifar_layout *layout;
        enum cifar_split split;
        uint64_t number;
        bool is_pickle;
        int names_of_label;
    } names[] = {
        {"data_batch_1.bin", NULL, &cifar_10, CIFAR_TRAIN, 1, false, -1},
        {"data_batch_10.bin", NULL, &cifar_10, CIFAR_TRAIN, 10, false, -1},
        {"test_batch.bin", NULL, &cifar_10, CIFAR_TEST, 0, false, -1},
        {"train.bin", NULL, &cifar_100, CIFAR_TRAIN, 0, false, -1},
        {"test.bin", NULL, &cifar_100, CIFAR_TEST, 0, false, -1},
        {"data_batch_1", NULL, &cifar_10, CIFAR_TRAIN, 1, true, -1},
        {"test_batch", NULL, &cifar_10, CIFAR_TEST, 0, true, -1},
        {"batches.meta.txt", NULL, &cifar_10, CIFAR_TRAIN, 0, false, 0},
        {"coarse_label_names.txt", NULL, &cifar_100, CIFAR_TRAIN, 0, false, 0},
        {"fine_label_names.txt", NULL, &cifar_100, CIFAR_TRAIN, 0, false, 1},
        {"data_batch_.bin", NULL, NULL, CIFAR_TRAIN, 0, false, -1},
        {"data_batch_1.binary", NULL, NULL, CIFAR_TRAIN, 0, false, -1},
        {"training.bin", NULL, NULL, CIFAR_TRAIN, 0, false, -1},
        {"odd.dat", "cifar", NULL, CIFAR_TRAIN, 0, false, -1},
        {"odd.dat", "cifar10", &cifar_10, CIFAR_ALONE, 0, false, -1},
        {"odd.dat", "cifar100", &cifar_100, CIFAR_ALONE, 0, false, -1},
        {"train.bin", "cifar10", &cifar_10, CIFAR_TRAIN, 0, false, -1},
        {"data_batch_3.bin", "cifar100", &cifar_100, CIFAR_TRAIN, 3, false, -1},
        {"data_batch_3", "cifar100", &cifar_10, CIFAR_TRAIN, 3, true, -1},
        {"batches.meta.txt", "cifar100", &cifar_10, CIFAR_TRAIN, 0, false, 0},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct cifar_name found;

        cifar_name_judge(names[i].name, names[i].option, &found);
        if (found.layout != names[i].layout || (found.layout && found.split != names[i].split) ||
            found.is_pickle != names[i].is_pickle ||
            found.names_of_label != names[i].names_of_label ||
            (found.layout && found.names_of_label < 0 && found.number != names[i].number &&
             found.split != CIFAR_ALONE))
            fail_msg("%s, format=%s: found kind %s, split %d, number %d, pickle %d, names of %d",
                     names[i].name, names[i].option ? names[i].option : "",
                     found.layout ? found.layout->name : "none", found.split, (int)found.number,
                     found.is_pickle, found.names_of_label);
    }
}

static uint8_t head[FORMAT_HEAD];

static struct probed_file file_of(const char *name, const char *folder)
{
    return (struct probed_file){.name = name,
                                .head = head,
                                .len = sizeof(head),
                                .size = 3073 * 3074,
                                .folder_name = folder};
}

UNIT_TEST(test_probe__labels_decide)
{
    struct probed_file file = file_of("data_batch_1.bin", NULL);

    memset(head, 200, sizeof(head));
    for (size_t at = 0; at < sizeof(head); at += 3073)
        head[at] = 9;
    assert_int_equal(cifar_probe(&file), CLAIM_NAMED);
    head[3073 * 5] = 10;
    assert_int_equal(cifar_probe(&file), CLAIM_NONE);
    file.len = 3073 * 5; /* the label is not seen */
    assert_int_equal(cifar_probe(&file), CLAIM_NAMED);
    file.len = 0;
    assert_int_equal(cifar_probe(&file), CLAIM_NAMED);
}

UNIT_TEST(test_probe__train_bin__needs_more_than_its_name)
{
    static struct folder_name beside[] = {{"fine_label_names.txt", 20, 0}, {"train.bin", 9, 1}};
    const struct format_options tokens = {.tokens_given = true};
    struct probed_file file = file_of("train.bin", "data");

    memset(head, 200, sizeof(head));
    for (size_t at = 0; at < sizeof(head); at += 3074) {
        head[at] = 19;
        if (at + 1 < sizeof(head))
            head[at + 1] = 99;
    }
    assert_int_equal(cifar_probe(&file), CLAIM_NONE);
    file.folder_name = "cifar-100-binary";
    assert_int_equal(cifar_probe(&file), CLAIM_NAMED);
    file.folder_name = NULL;
    file.folder.file = beside;
    file.folder.n = 2;
    assert_int_equal(cifar_probe(&file), CLAIM_NAMED);
    file.options = &tokens;
    assert_int_equal(cifar_probe(&file), CLAIM_NONE);
    file.options = NULL;
    head[3074] = 20; /* coarse */
    assert_int_equal(cifar_probe(&file), CLAIM_NONE);
    head[3074] = 0;
    head[3075] = 100; /* fine */
    assert_int_equal(cifar_probe(&file), CLAIM_NONE);
}

UNIT_TEST(test_probe__names_of_classes__need_records)
{
    static struct folder_name beside[] = {{"fine_label_names.txt", 20, 0}, {"train.bin", 9, 1}};
    struct probed_file file = file_of("fine_label_names.txt", NULL);

    file.folder.file = beside;
    file.folder.n = 1;
    assert_int_equal(cifar_probe(&file), CLAIM_NONE);
    file.folder.n = 2;
    assert_int_equal(cifar_probe(&file), CLAIM_NAMED);
}
