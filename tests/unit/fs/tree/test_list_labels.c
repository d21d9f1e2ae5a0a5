/* Classes and weights of the lists of plans: made step by step from the labels of a dataset in
 * memory, shared by plans with the same list, refused, and asked for again. */
#include "fs/tree/tree.h"
#include "support/idx_make.h"
#include "support/temp_folder.h"
#include "support/test_labels.h"
#include "support/test_lists.h"
#include "support/unit.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/read_context.h"
#include "base/scope.h"
#include "cache/disk/index_files.h"
#include "format/core/extents.h"
#include "format/labels/field_input.h"

#define SAMPLES 5000 /* more than a thread looks up at once */

static uint8_t label[SAMPLES];

struct world {
    struct cache_folder folder;
    struct index_files keep;
    struct format_setup setup;
    struct found found;
    const struct dataset *ds;
    struct plan_list list;
    struct list_labels labels;
};

/* The last thousand labels are 0. */
static void begin(struct world *w, const char *folder)
{
    static uint32_t some[SAMPLES];
    struct blob *blob[2];

    for (uint32_t i = 0; i < SAMPLES; i++) {
        label[i] = (uint8_t)(i < SAMPLES - 1000 ? i * i / 7 % 9 : 0);
        some[i] = (i * 7919u + 13) % (SAMPLES / 2);
    }
    *w = (struct world){.folder.path = (char *)(uintptr_t)folder};
    blob[0] = idx_blob_zeros("x-images", 0x08, 2, (uint32_t[]){SAMPLES, 4}, NULL);
    blob[1] = idx_blob_labels("x-labels", label, SAMPLES, NULL);
    index_files_init(&w->keep, &w->folder);
    w->setup.keep = &w->keep.keep;
    assert_int_equal(pool_new(&w->setup.pool), 0);
    assert_int_equal(idx_open(blob, 2, &w->setup.options, &w->found), 0);
    w->ds = w->found.item[0].ds;
    w->list = test_list(some, SAMPLES);
    list_labels_init(&w->labels, &w->setup);
}

static void end(struct world *w)
{
    list_labels_release(&w->labels);
    list_release(&w->list);
    found_release(&w->found);
    pool_free(w->setup.pool);
}

static int get(struct world *w, const char *name, struct plan *plan, struct plan_data *data,
               struct diag *d)
{
    const struct list_label *l;
    int r;

    assert_int_equal(plan_parse(name, strlen(name), ',', plan, d), 0);
    *data = (struct plan_data){.samples = SAMPLES, .only = plan->only[0] ? &w->list : NULL};
    r = list_labels_get(&w->labels, w->ds, plan, data, &l, d);
    if (r == 0 && l)
        assert_false(list_label_is_lost(l));
    return r;
}

/* Step until nothing is wanted. Returns the last step's result before that. */
static int step_all(struct world *w, struct read_context *rc, struct diag *d)
{
    const struct dataset *ds = NULL;
    int r, last = 0;

    while ((r = list_labels_step(&w->labels, rc, &ds, d)) != -ENOENT && r >= 0) {
        last = r;
        if (r == 1)
            assert_ptr_equal(ds, w->ds);
    }
    return r < 0 && r != -ENOENT ? r : last;
}

/* Do the classes or weights count what the places of the list have? */
static void check(const struct plan *plan, const struct plan_data *data)
{
    static uint64_t sample[SAMPLES], count[256], sum;
    int shift = label_weight_shift(8, SAMPLES); /* the largest label is 8 */
    struct schedule s;

    schedule_init_data(&s, plan, data);
    schedule_list(&s, 0, s.length, sample);
    memset(count, 0, sizeof(count));
    for (uint64_t i = 0; i < s.length; i++)
        count[label[sample[i]]]++;
    for (uint64_t i = sum = 0; i < s.length; sum += label[sample[i++]])
        if (data->weights)
            assert_int_equal(data->weights->ops->before(data->weights, i), sum << shift);
    if (data->weights)
        assert_int_equal(data->weights->total, sum << shift);
    for (uint64_t v = 0, c = 0; data->classes && v < ARRAY_LEN(count); v++) {
        if (!count[v])
            continue;
        assert_true(c < data->classes->n);
        assert_int_equal(data->classes->ops->count(data->classes, c), count[v]);
        for (uint64_t i = 0, before = 0; i < count[v]; i++) {
            uint64_t place = data->classes->ops->place(data->classes, c, i);

            assert_true(place < s.length && (!i || place > before));
            assert_int_equal(label[sample[place]], v);
            before = place;
        }
        c++;
    }
}

UNIT_TEST_WITH(test_list_labels__every_list__as_its_labels, temp_setup, temp_teardown)
{
    static const char *const plans[] = {
        "batch=4,draw=9:balanced",
        "batch=6,seed=1,classes=3x2",
        "batch=4,take=10:900,draw=9:balanced",
        "batch=4,split=1@80:20,draw=9:balanced",
        "batch=4,only=some,draw=9:balanced",
        "batch=4,only=some,take=3:99%,split=0@3:1,part=1of2,draw=9:balanced",
        "batch=4,draw=9:label",
        "batch=4,split=0@80:20,part=0of3,draw=9:label",
        "batch=4,only=some,draw=9:label",
    };
    struct diag d = DIAG_INIT;
    struct plan_data data;
    struct plan plan;
    struct world w;

    begin(&w, *state);
    for (unsigned kept = 0; kept < 2; kept++) { /* the second time from the store */
        for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
            int r = get(&w, plans[i], &plan, &data, &d);

            assert_int_equal(r, i == 1 ? 0 : -EAGAIN); /* its list is that of the one before */
            assert_int_equal(list_labels_wanted(&w.labels, w.ds), r != 0);
            assert_int_equal(list_labels_any_wanted(&w.labels), r != 0);
            assert_int_equal(step_all(&w, NULL, &d), r ? 1 : 0);
            assert_int_equal(get(&w, plans[i], &plan, &data, &d), 0);
            check(&plan, &data);
        }
        assert_true(list_labels_held(&w.labels).bytes > 0);
        list_labels_release(&w.labels);
        list_labels_init(&w.labels, &w.setup);
    }
    end(&w);
}

/* What is wrong for good is said each time, and nothing is wanted. */
UNIT_TEST_WITH(test_list_labels__no_classes_or_weights__refused, temp_setup, temp_teardown)
{
    static const char *const plans[][2] = {
        {"batch=4,draw=9:data", "field data"},
        {"batch=4,draw=9:none", "no field 'none'"},
        {"batch=4,draw=9:index", "the numbers that epochfs gives to samples"},
        {"batch=4,take=5:5,draw=9:balanced", "expected a list that has samples"},
    };
    const char *zeros = "batch=4,take=4500:100%,draw=9:label";
    struct diag d = DIAG_INIT;
    struct plan_data data;
    struct plan plan;
    struct world w;

    begin(&w, *state);
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        if (!strcmp(plans[i][1], "field data") && !dataset_field(w.ds, "data"))
            continue;
        d = DIAG_INIT;
        assert_int_equal(get(&w, plans[i][0], &plan, &data, &d), -EINVAL);
        assert_diag_has(&d, plans[i][1]);
        assert_false(list_labels_any_wanted(&w.labels));
    }
    d = DIAG_INIT;
    assert_int_equal(get(&w, zeros, &plan, &data, &d), -EAGAIN);
    assert_int_equal(step_all(&w, NULL, &d), 1);
    for (unsigned i = 0; i < 2; i++) {
        d = DIAG_INIT;
        assert_int_equal(get(&w, zeros, &plan, &data, &d), -EINVAL);
        assert_diag_has(&d, "expected a weight above 0 in the list, got 0 in all 500");
    }
    end(&w);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

/* A read that had to end: the next one that needs it begins again. */
UNIT_TEST_WITH(test_list_labels__cancelled__asked_for_again, temp_setup, temp_teardown)
{
    const char *name = "batch=4,split=0@1:1,draw=9:balanced";
    struct diag d = DIAG_INIT;
    struct plan_data data;
    struct plan plan;
    struct read_context rc;
    struct world w;

    begin(&w, *state);
    read_context_init(&rc, false);
    rc.cancelled = always;
    assert_int_equal(get(&w, name, &plan, &data, &d), -EAGAIN);
    assert_int_equal(step_all(&w, &rc, &d), -EINTR);
    assert_true(d.set);
    assert_false(list_labels_any_wanted(&w.labels));
    read_context_release(&rc);
    d = DIAG_INIT;
    assert_int_equal(get(&w, name, &plan, &data, &d), -EAGAIN);
    assert_int_equal(step_all(&w, NULL, &d), 1);
    assert_int_equal(get(&w, name, &plan, &data, &d), 0);
    check(&plan, &data);
    end(&w);
}

/* Each split has an index of its own; a run of the stored order has that of the dataset. */
UNIT_TEST_WITH(test_list_labels__many_lists__all_but_too_many, temp_setup, temp_teardown)
{
    struct diag d = DIAG_INIT;
    struct plan_data data;
    struct plan plan;
    struct world w;
    char name[80];

    begin(&w, *state);
    for (unsigned i = 1; i <= LIST_LABELS_MAX; i++) {
        bool splits = i <= 300;

        snprintf(name, sizeof(name),
                 splits ? "batch=4,split=0@%u:%u,draw=9:balanced"
                        : "batch=4,take=%u:%u,draw=9:balanced",
                 i, splits ? 1000 : 2 * i);
        assert_int_equal(get(&w, name, &plan, &data, &d), -EAGAIN);
        assert_int_equal(step_all(&w, NULL, &d), 1);
        assert_int_equal(get(&w, name, &plan, &data, &d), 0);
    }
    assert_int_equal(get(&w, "batch=4,draw=9:label", &plan, &data, &d), -ENFILE);
    assert_diag_has(&d, "classes or weights of 1024 lists of samples");
    end(&w);
}

static unsigned no_extents(const struct dataset *ds, uint64_t sample, const struct field *only,
                           struct extent *ret)
{
    (void)ds;
    (void)sample;
    (void)only;
    (void)ret;
    return 0;
}

/* Bytes whose place is not known count as the fields show them; or they are not known. */
UNIT_TEST_WITH(test_list_labels__bytes_without_extents__of_fields, temp_setup, temp_teardown)
{
    struct dataset_ops hides = {.extents = no_extents};
    struct field_input in;
    struct diag d = DIAG_INIT;
    int64_t length[2] = {0};
    struct dataset *ds;
    struct world w;

    begin(&w, *state);
    ds = w.found.item[0].ds;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(length_input_init(&in, ds, "bytes", &d), 0);
        assert_int_equal(in.input.read(&in.input, NULL, 7, 2, length, &d), 0);
        assert_int_equal(length[0], 5);
        assert_int_equal(length[1], 5);
        if (ds->ops && !i) {
            hides = *ds->ops;
            hides.extents = no_extents;
        }
        ds->ops = &hides;
    }
    ds->field[0].form_reads = true;
    assert_int_equal(in.input.read(&in.input, NULL, 7, 2, length, &d), -EBADMSG);
    assert_diag_has(&d, "lengths of bytes: sample 7 has no size");
    end(&w);
}

static int schedule(struct catalog_tools *tools, const struct world *w, const char *name,
                    struct plan *plan, struct plan_labels *ret, struct diag *d)
{
    const struct catalog catalog = {.tools = tools};
    struct schedule s;
    int r;

    assert_int_equal(plan_parse(name, strlen(name), ',', plan, d), 0);
    while ((r = tree_schedule(&catalog, w->ds, plan, &s, ret, d)) == -EAGAIN)
        assert_int_equal(list_labels_go_on(&tools->labels, d), 0);
    return r;
}

/* A plan knows each index that it uses, and does not count once one of them is cut short. */
UNIT_TEST_WITH(test_list_labels__one_of_two_cut_short__refused, temp_setup, temp_teardown)
{
    const char *name = "batch=4,length=1:9:label,draw=9:balanced";
    struct catalog_tools tools = {0};
    struct plan_labels labels;
    struct diag d = DIAG_INIT;
    struct plan plan;
    struct world w;
    char path[PATH_MAX];
    glob_t found;

    begin(&w, *state);
    list_labels_init(&tools.labels, &w.setup);
    length_plans_init(&tools.lengths, &w.setup);
    assert_int_equal(schedule(&tools, &w, "batch=4", &plan, &labels, &d), 0);
    assert_int_equal(labels.n, 0);
    assert_int_equal(schedule(&tools, &w, "batch=4,length=1:9:label", &plan, &labels, &d), 0);
    assert_int_equal(labels.n, 1);
    snprintf(path, sizeof(path), "%s/labels/*", (const char *)*state);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(schedule(&tools, &w, name, &plan, &labels, &d), 0);
    assert_int_equal(labels.n, 2);
    assert_int_equal(plan_labels_check(&labels, &plan, &d), 0);

    assert_int_equal(truncate(found.gl_pathv[0], 0), 0);
    globfree(&found);
    assert_int_equal(schedule(&tools, &w, "batch=4,length=2:9:label", &plan, &labels, &d), -EIO);
    assert_diag_has(&d, "plan batch=4,length=2:9:label: the index of its labels");
    assert_int_equal(schedule(&tools, &w, name, &plan, &labels, &d), -EIO);
    length_plans_release(&tools.lengths);
    list_labels_release(&tools.labels);
    end(&w);
}
