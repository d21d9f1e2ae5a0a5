/* Which folders are datasets of files, and which files are one sample: by names alone. */
#include "format/files/claim/claim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "format/annotations/boxes.h"
#include "format/files/keys.h"
#include "format/index/kept.h"
#include "support/memory_blob.h"
#include "support/unit.h"

/* ---- a listing from paths, with spaces between them; "x/" is an empty folder ---- */

static void add_folder(struct members *m, const char *path, uint32_t *ret)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *above = strndup(path, slash ? (size_t)(slash - path) : 0);

    for (uint32_t i = 0; i < m->n_folders; i++)
        if (!strcmp(members_folder(m, i), path)) {
            *ret = i;
            return;
        }
    if (*path)
        add_folder(m, above, ret);
    assert_int_equal(members_add_folder(m, path, ret), 0);
}

static void make_listing(struct members *m, const char *paths)
{
    AUTO_FREE char *all = strdup(paths);
    char *at = all, *path;
    uint32_t folder;

    add_folder(m, "", &folder);
    while ((path = strsep(&at, " "))) {
        char *slash = strrchr(path, '/');

        if (slash)
            *slash = '\0';
        add_folder(m, slash ? path : "", &folder);
        if (!slash || slash[1])
            assert_int_equal(
                members_add(m, folder, slash ? slash + 1 : path, 10, (const uint64_t[2]){1, 2}), 0);
    }
    assert_int_equal(members_sort(m), 0);
}

static void release(struct claims *claims)
{
    claims_release(claims, &(struct format){.free_claim = files_free_claim});
    free(claims->taken);
}

/* ---- what is in files: of one whose name ends so, that text; of others 10 bytes "xxxxxxxxxx" ----
 */

struct contents {
    const char *name, *text;
    unsigned *heads; /* counts files that are looked into */
    int failure;     /* 0; or what all reads give */
};

struct claiming {
    struct claims claims;
    const struct members *listing;
    const struct contents *contents;
};

static const char *more[4][2]; /* names of more files, and their texts */

static const char *text_of(const struct contents *c, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(more) && more[i][0]; i++)
        if (!strcmp(name, more[i][0]))
            return more[i][1];
    return !strcmp(name, c->name) ? c->text : "xxxxxxxxxx";
}

static int read_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                      uint8_t *bytes, int *len)
{
    const struct claiming *claiming = (const struct claiming *)claims;
    const struct contents *c = claiming->contents;

    for (unsigned i = 0; i < n; i++) {
        const char *name = members_name(claiming->listing, file[i]);
        const char *text = text_of(c, name);

        (*c->heads)++;
        len[i] = (int)min_u64(strlen(text), size);
        memcpy(bytes + i * size, text, (size_t)len[i]);
        if (c->failure)
            len[i] = c->failure;
    }
    return 0;
}

static int open_file(const struct claims *claims, size_t file, struct blob **ret, struct diag *d)
{
    const struct claiming *claiming = (const struct claiming *)claims;
    const struct contents *c = claiming->contents;
    const char *name = members_name(claiming->listing, file);
    const char *text = text_of(c, name);

    if (c->failure)
        return diag_set(d, c->failure, "%s: %s", name, strerror(-c->failure));
    *ret = memory_blob_new(name, text, strlen(text), strlen(text), NULL);
    return *ret ? 0 : -ENOMEM;
}

/* Another format takes files that begin like this. */
static bool is_taken(const struct claims *claims, size_t file, const uint8_t *head, size_t len)
{
    (void)claims;
    (void)file;
    return len >= 4 && !memcmp(head, "rows", 4);
}

static void add_sample(const struct members *m, const struct sample_files *sample, const char *key,
                       size_t len, struct text *t)
{
    text_add(t, " %.*s(", (int)len, key);
    for (size_t k = 0; k < sample->n; k++) {
        const char *name = members_name(m, sample->first + k);
        const char *ext = !strncmp(name, members_name(m, sample->first), sample->stem)
                              ? name + sample->stem
                              : strrchr(name, '.');

        text_add(t, "%s%s", k ? "," : "", *ext ? ext + 1 : "");
    }
    text_add(t, ")");
}

static void add_samples(const struct members *m, const struct files_claim *claim, struct text *t)
{
    struct sample_keys keys = {0};
    char key[KEY_MAX];

    assert_int_equal(sample_keys_init(&keys, m, claim, claim->view), 0);
    for (size_t i = 0; i < claim->view->n; i++) {
        struct sample_files sample;

        claim_sample(m, claim, claim->view, i, &sample);
        add_sample(m, &sample, key, sample_key(&keys, i, &sample, key), t);
    }
    sample_keys_release(&keys);
}

static int read_kept(const struct text *bytes, const struct members *m, struct text *ret)
{
    struct kept k = {.at = (const uint8_t *)bytes->data, .left = bytes->len};
    struct files_claim *claim = NULL;

    claim_keep(&k, &claim, m);
    if (!k.error)
        add_samples(m, claim, ret);
    files_free_claim(claim);
    return k.error;
}

/* A claim of names that is kept is the same again; a damaged one is refused, or has samples. */
static void check_kept(const struct members *m, struct files_claim *claim)
{
    AUTO_TEXT struct text bytes = {0}, before = {0}, after = {0};
    struct kept k = {.out = &bytes};

    claim_keep(&k, &claim, m);
    add_samples(m, claim, &before);
    assert_int_equal(read_kept(&bytes, m, &after), 0);
    assert_string_equal(after.data, before.data);
    for (size_t i = 0; i < bytes.len; i++) {
        AUTO_TEXT struct text damaged = {0};
        int r;

        bytes.data[i] ^= (char)(1 << i % 8);
        r = read_kept(&bytes, m, &damaged);
        assert_true(r == 0 || r == -EBADMSG);
        bytes.data[i] ^= (char)(1 << i % 8);
    }
}

/* A line for each group, "<path>: <files>", and for each folder that moves, "<folder> > <path>";
 * and the note. */
static void add_groups(const struct members *m, const struct claims *claims, struct text *t)
{
    char path[256];

    for (size_t i = 0; i < claims->n_groups; i++) {
        const struct named_group *group = &claims->group[i];

        text_add(t, "%s:", group->path);
        for (size_t k = 0; k < group->n; k++) {
            assert_int_equal(claims->taken[group->file[k]], CLAIMS_GROUPED);
            assert_int_equal(members_path(m, group->file[k], path, sizeof(path)), 0);
            text_add(t, " %s", path);
        }
        text_add(t, "%s%s%s%s\n", group->error ? " " : "", group->error ? group->error : "",
                 group->note ? " | " : "", group->note ? group->note : "");
    }
    for (size_t i = 0; i < claims->n_moved; i++)
        text_add(t, "%s > %s\n", claims->moved[i].folder, claims->moved[i].shown);
    if (claims->note)
        text_add(t, "%s\n", claims->note);
}

static bool shows_notes; /* below each dataset: the fields that pairs add to the first sample, files
                          * of boxes, labels of tables, and notes or why it is refused */

static bool shows_recipe; /* at the end */

static void add_notes(const struct collection *c, const struct files_claim *claim, struct text *t)
{
    for (uint32_t i = 0; claim->role && i < claim->first[1]; i++)
        if (claim->role[i])
            text_add(t, "%s\n", claim->role_name[claim->role[i] - 1]);
    if (claim->boxes)
        text_add(t, "boxes of %s\n", claim->boxes->name);
    for (size_t i = 0; i < claim->n_views; i++)
        if (claim->view[i].label)
            text_add(t, "%zu labels\n", claim->view[i].n_classes);
    text_add(t, "%s%s", claim->notes ? claim->notes : "", c->missing ? c->missing : "");
}

/* What a format makes of paths: a line for each dataset, "<folder>:<name> <layout>", then its
 * samples as keys, and in parentheses the extensions of each. unread_path: NULL; or another path,
 * which cannot be read. */
static char *claim_without(const char *paths, const struct contents *contents, char *unread_path)
{
    AUTO_MEMBERS struct members m = {0};
    struct claiming claiming = {.listing = &m, .contents = contents};
    const struct unread_file unread = {.name = unread_path, .reason = "no permission"};
    AUTO(release) struct claims claims = {0};
    AUTO_TEXT struct text t = {0};
    char *ret;

    make_listing(&m, paths);
    claiming.claims.taken = calloc(m.n + 1, 1);
    claiming.claims.heads = contents ? read_heads : NULL;
    claiming.claims.open = contents ? open_file : NULL;
    claiming.claims.is_taken = contents ? is_taken : NULL;
    claiming.claims.shows_recipe = shows_recipe;
    claiming.claims.takes_groups = contents != NULL;
    claiming.claims.unread = &unread;
    claiming.claims.n_unread = unread.name != NULL;
    assert_int_equal(files_claim_names(&m, &claiming.claims), 0);
    claims = claiming.claims;
    for (size_t i = 0; i < claims.n; i++) {
        struct collection *c = &claims.collection[i];
        struct files_claim *claim = c->impl;
        AUTO_MEMBERS struct members own = {0};

        assert_int_equal(members_pick(&m, c->root, c->file, c->n, &own), 0);
        if (!c->missing && claim_is_of_names(claim))
            check_kept(&own, claim);
        text_add(&t, "%s:%s %s", c->folder, c->name,
                 claim->table                      ? claim->table_word
                 : claim->media != FILES_PICTURES  ? files_media[claim->media].word
                 : claim->layout == LAYOUT_CLASSES ? "classes"
                                                   : "flat");
        if (c->missing)
            text_add(&t, " refused");
        else
            add_samples(&own, claim, &t);
        text_add(&t, "%s%s\n", *claim->aside ? " aside " : "", claim->aside);
        if (shows_notes)
            add_notes(c, claim, &t);
    }
    add_groups(&m, &claims, &t);
    text_add(&t, "%s", claims.recipe ? claims.recipe : "");
    assert_int_equal(text_finish(&t, &ret, NULL), 0);
    return ret;
}

static char *claim(const char *paths, const struct contents *contents)
{
    return claim_without(paths, contents, NULL);
}

static void check(const char *paths, const char *want)
{
    AUTO_FREE char *found = claim(paths, NULL);

    assert_string_equal(found, want);
}

/* The same, where files called `name` have that text. */
static void check_table(const char *paths, const char *name, const char *text, const char *want)
{
    unsigned heads = 0;
    AUTO_FREE char *found = claim(paths, &(struct contents){name, text, &heads, 0});

    assert_string_equal(found, want);
}

static void check_notes(const char *paths, const char *name, const char *text, const char *want)
{
    AUTO_FREE char *found = NULL;
    unsigned heads = 0;

    shows_notes = true;
    found = claim(paths, &(struct contents){name, text, &heads, 0});
    shows_notes = false;
    assert_string_equal(found, want);
}

UNIT_TEST(test_claim__class_folders__one_dataset)
{
    check("train/cat/1.jpg train/cat/2.jpg train/dog/3.jpg",
          ":train classes 1(jpg) 2(jpg) 3(jpg)\n");
    check("cat/1.jpg dog/2.JPG", ":all classes 1(jpg) 2(JPG)\n"); /* F-2 */
    check("a/b/cat/1.jpg a/b/dog/2.jpg", "a:b classes 1(jpg) 2(jpg)\n");
    check("cat/1.jpg", ":all flat 1(jpg)\n"); /* one class is no label */
    /* Pictures two folders deeper are those of a dataset each. */
    check("cat/x/y/1.jpg dog/x/y/2.jpg", "cat:x flat 1(jpg)\ndog:x flat 2(jpg)\n");
    check("coco/images/train2017/1.jpg lvis/images/train2017/2.jpg",
          "coco/images:train2017 flat 1(jpg)\nlvis/images:train2017 flat 2(jpg)\n");
    check("kitti/training/image_2/1.png sim/training/image_2/2.png",
          "kitti:training flat 1(png)\nsim:training flat 2(png)\n");
    check("Set5/LR_bicubic/X2/1.png Set14/LR_bicubic/X2/2.png B100/LR_bicubic/X2/3.png",
          "B100:LR_bicubic flat 3(png)\nSet14:LR_bicubic flat 2(png)\n"
          "Set5:LR_bicubic flat 1(png)\n");
    check("bottle/train/good/1.png cable/train/good/2.png",
          "bottle:train flat 1(png)\ncable:train flat 2(png)\n");
    check("MH_01/mav0/cam0/data/1.png MH_02/mav0/cam0/data/2.png",
          "MH_01/mav0:cam0 flat 1(png)\nMH_02/mav0:cam0 flat 2(png)\n");
}

/* F-1 */
UNIT_TEST(test_names__pictures__by_extension)
{
    static const char *const yes[] = {"a.jpg", "a.JPEG", "a.png",  "a.ppm", "a.bmp",  "a.pgm",
                                      "a.tif", "a.tiff", "a.webp", "a.Gif", "a.b.jpg"};
    static const char *const no[] = {"xwebp", "jpg", "a.jpgx", "a.jpg.txt", "a.svg", "a.", "a", ""};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        if (!name_is_picture(yes[i]))
            fail_msg("%s", yes[i]);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (name_is_picture(no[i]))
            fail_msg("%s", no[i]);
}

UNIT_TEST(test_claim__splits__a_dataset_each)
{
    check("train/cat/1.jpg train/dog/2.jpg val/cat/1.jpg Test/x.png",
          ":Test flat x(png)\n:train classes 1(jpg) 2(jpg)\n:val flat 1(jpg)\n");
    check("trainset/1.jpg testset/2.jpg", ":testset flat 2(jpg)\n:trainset flat 1(jpg)\n");
    check("images/1.jpg test_images/2.jpg", ":images flat 1(jpg)\n:test_images flat 2(jpg)\n");
    check("train_test/train/1.jpg train_test/test/2.jpg train_test/other/3.jpg",
          "train_test:other flat 3(jpg)\ntrain_test:test flat 2(jpg)\n"
          "train_test:train flat 1(jpg)\n");
    check("split1/1.jpg split2/2.jpg", ":split1 flat 1(jpg)\n:split2 flat 2(jpg)\n");
    check("LR_64/1.png HR_256/1.png", ":all flat 1(png,png)\n");
    check("image_2/1.png label_3/1.png", ":all flat 1(png,png)\n");
    check("our485/low/1.png our485/high/1.png eval15/low/2.png eval15/high/2.png",
          ":eval15 flat 2(png,png)\n:our485 flat 1(png,png)\n");
    check("net/train/cat/1.jpg net/train/dog/2.jpg net/val/cat/1.jpg net/val/dog/2.jpg",
          "net:train classes 1(jpg) 2(jpg)\nnet:val classes 1(jpg) 2(jpg)\n");
    /* Datasets with splits, next to each other or to pictures, are no classes. */
    check("net/train/cat/1.jpg net/train/dog/2.jpg net/val/3.jpg zebras/trainA/4.jpg "
          "zebras/testA/5.jpg",
          "net:train classes 1(jpg) 2(jpg)\nnet:val flat 3(jpg)\n"
          "zebras:testA flat 5(jpg)\nzebras:trainA flat 4(jpg)\n");
    check("net/train/1.jpg net/val/2.jpg pets/3.jpg", ":all flat refused\n");
    check("faces/img_align/1.jpg birds/wren/2.jpg", ":all flat refused\n");
    check("D/V7/JPEGImages/1.jpg D/V7/Masks/1.png D/V7/ImageSets/a.txt D/V12/JPEGImages/2.jpg "
          "D/V12/Masks/2.png D/V12/ImageSets/a.txt",
          "D:V12 flat 2(jpg,png)\nD:V7 flat 1(jpg,png)\n");
    check("train/1.jpg train/2.jpg train/see.m test/3.jpg",
          ":test flat 3(jpg)\n:train flat 1(jpg) 2(jpg) aside 1 .m (see.m)\n");
    check("train/1.jpg train/2.jpg train/3.jpg train/a.npy train/b.npy train/c.npy test/4.jpg",
          ":test flat 4(jpg)\n"); /* arrays may be a dataset */
    check("cat/cat_images/1.jpg cow/cow/2.jpg dog/dog_photos/3.jpg",
          ":all classes 1(jpg) 2(jpg) 3(jpg)\n");
    /* Unpacked archives: a folder in one of the same name. */
    check("a/b/train/c/1.jpg a/b/train/d/2.jpg a/b/test/3.jpg x/x/c/4.jpg x/x/e/5.jpg",
          "a/b:test flat 3(jpg)\na/b:train classes 1(jpg) 2(jpg)\nx:x classes 4(jpg) 5(jpg)\n");
    check("aa/aa/c/1.jpg aa/aa/d/2.jpg bb/bb/c/3.jpg bb/bb/d/4.jpg",
          "aa:aa classes 1(jpg) 2(jpg)\nbb:bb classes 3(jpg) 4(jpg)\n");
    check("aa/aa/c/1.jpg aa/aa/d/2.jpg bb/bb/e/3.jpg bb/bb/f/4.jpg",
          ":all classes 1(jpg) 2(jpg) 3(jpg) 4(jpg)\n");
}

/* F-3: files next to class folders are ignored, and counted. */
UNIT_TEST(test_claim__files_beside_classes__aside)
{
    check("train/cat/1.jpg train/cat/2.jpg train/x.jpg train/README.md",
          ":train flat 1(jpg) 2(jpg) aside 1 .md (README.md), 1 .jpg (x.jpg)\n");
    check("cat/1.jpg cat/2.jpg cat/3.jpg cat/Thumbs.db cat/noext",
          ":all flat 1(jpg) 2(jpg) 3(jpg) aside 1 .db (Thumbs.db), 1 without an extension "
          "(noext)\n");
}

/* F-4 */
UNIT_TEST(test_claim__class_with_a_readme_alone__empty)
{
    check("cat/1.jpg dog/2.jpg empty/", ":all classes 1(jpg) 2(jpg)\n");
    check("cat/1.jpg dog/2.jpg train/", ":all classes 1(jpg) 2(jpg)\n"); /* that is a part */
    assert_false(is_skipped_folder(FILES_PICTURES, "empty"));
    assert_true(is_skipped_folder(FILES_PICTURES, "lost+found")); /* of file systems, not of data */
    check("cat/1.jpg dog/2.jpg empty/README.txt empty/Thumbs.db",
          ":all classes 1(jpg) 2(jpg) aside 1 .txt (README.txt), 1 .db (Thumbs.db)\n");
    check("docs/README.md images/1.jpg", ":all flat 1(jpg)\n");
    check("docs/a.idx images/1.jpg", ":images flat 1(jpg)\n"); /* docs may be a dataset */
    check("notes/a.json x/1.jpg y/2.jpg", ":all classes 1(jpg) 2(jpg) aside 1 .json (a.json)\n");
}

/* F-5 */
UNIT_TEST(test_claim__apple_double_and_hidden__skipped)
{
    check("cat/1.jpg cat/._1.jpg dog/2.jpg __MACOSX/cat/1.jpg .git/3.jpg",
          ":all classes 1(jpg) 2(jpg) aside 3 .jpg (3.jpg and 2 more)\n");
}

/* torchvision: folders below a class sorted as texts, each with its files. */
UNIT_TEST(test_claim__folders_below_classes__torchvision_order)
{
    check("c/a.jpg c/z.jpg c/sub/b.jpg c/a/x/x.jpg c/a-b/y.jpg d/q.jpg",
          ":all classes a(jpg) z(jpg) y(jpg) x(jpg) b(jpg) q(jpg)\n");
    check("cat/x/1.jpg dog/2.jpg", ":all classes 1(jpg) 2(jpg)\n"); /* F-9 */
    check("a-b/1.jpg a/2.jpg a/s/3.jpg", ":all classes 2(jpg) 3(jpg) 1(jpg)\n");
}

UNIT_TEST(test_claim__one_stem__one_sample)
{
    check("set/1.jpg set/1.json set/1.seg.png set/2.jpg", ":all flat 1(jpg,json,seg.png) 2(jpg)\n");
    check("1.jpg 1.json 2.jpg 2.txt", ":all flat 1(jpg,json) 2(jpg,txt)\n");
    /* Sorted by the key, though '-' comes before '.'. */
    check("a.jpg a.txt a-b.jpg", ":all flat a(jpg,txt) a-b(jpg)\n");
}

/* What is learned lies in the folder of the pictures; and right pictures next to left ones. */
UNIT_TEST(test_claim__pairs__one_folder_or_three)
{
    check("1.jpg 2.jpg masks/1.png masks/2.png", ":all flat 1(jpg,png) 2(jpg,png)\n");
    check("train/1.jpg train/labels/1.txt test/2.jpg",
          ":test flat 2(jpg)\n:train flat 1(jpg,txt)\n");
    check("t/image_2/1.png t/image_3/1.png t/label_2/1.txt",
          "t:image_3 flat 1(png)\n:t flat 1(png,txt)\n");
    check("images_1/1.jpg images_2/1.jpg masks_1/1.png masks_2/1.png",
          ":all flat images_1/1(jpg,png) images_2/1(jpg,png)\n");
    check("train/1.jpg val/1.jpg masks/train_masks/1.png masks/val_masks/1.png",
          ":train flat 1(jpg,png)\n:val flat 1(jpg,png)\n");
    check("images/a.jpg images/b.jpg masks/a1.png masks/b1.png",
          ":all flat a(jpg,.png) b(jpg,.png)\n");
    check_notes("left_right_images/1.jpg masks/left/1.png masks/right/1.png", "", "",
                ":all flat 1(jpg,png,png)\nright.png\nleft.png\n");
    check_notes("images/1.jpg masks/train/1.png masks/val/1.png", "", "",
                ":all flat 1(jpg,png,png)\nval.png\ntrain.png\n");
}

/* The first file of a pair follows files of none. */
UNIT_TEST(test_claim__first_partner_late__roles_have_space)
{
    check("images/0.jpg images/1.jpg images/2.jpg images/3.jpg images/4.jpg masks/2.png",
          ":all flat 0(jpg) 1(jpg) 2(jpg,png) 3(jpg) 4(jpg)\n");
}

/* F-11 */
UNIT_TEST(test_claim__pictures_of_one_stem__by_layout)
{
    check("c/apple.bmp c/apple.jpg d/x.png",
          ":all classes c/apple.bmp(bmp) c/apple.jpg(jpg) x(png)\n");
    check("apple.bmp apple.jpg", ":all flat apple(bmp,jpg)\n");
    check("c/a.cls c/a.jpg c/a.json c/a.seg.png c/a.seg.txt d/x.png",
          ":all classes a(cls,jpg,json) a.seg(png) x(png) aside 1 .txt (a.seg.txt)\n");
    check("c/a.bmp c/a.jpg c/a.json d/x.png",
          ":all classes c/a.bmp(bmp) c/a.jpg(jpg) x(png) aside 1 .json (a.json)\n");
}

UNIT_TEST(test_claim__stems_repeat__paths)
{
    check("train/cat/1.jpg train/dog/1.jpg train/dog/2.jpg",
          ":train classes cat/1(jpg) dog/1(jpg) 2(jpg)\n");
}

#define LINE(source, usage) "{\"source\": \"" source "\", \"usage\": \"" usage "\"}\n"

/* F-18: the folder that has both. */
UNIT_TEST(test_claim__manifests__pictures_of_the_folder)
{
    check_table("set/x.manifest set/train/1.jpg set/train/2.jpg set/notes.txt", "x.manifest",
                LINE("s3://x/train/2.jpg", "A") LINE("1.png", "b") LINE("train/1.jpg", "a"),
                "set:x.a manifest train/2(jpg) train/1(jpg) aside 1 .txt (notes.txt)\n"
                "set:x.b manifest refused aside 1 .txt (notes.txt)\n");
    check_table("lists/x.manifest images/a/1.jpg images/b/2.jpg", "x.manifest",
                LINE("../images/b/2.jpg", "a"), ":x.a manifest images/b/2(jpg)\n");
    check_table("one/lists/x.manifest one/images/1.jpg two/cat/2.jpg two/dog/3.jpg", "x.manifest",
                LINE("images/1.jpg", "a") LINE("cat/2.jpg", "a"),
                "one:x.a manifest images/1(jpg) cat/2()\n:two classes 2(jpg) 3(jpg)\n");
    /* Most files are something else: only what manifests name. */
    check_table("x.manifest 1.jpg a.txt b.txt c.txt d.txt", "x.manifest",
                LINE("1.jpg", "a") LINE("a.txt", "a"), ":x.a manifest 1(jpg) a()\n");
    check_table("setup.py app.manifest icons/1.png", "app.manifest", LINE("icons/1.png", "a"), "");
    check("app.manifest data.idx", "");
    check_table(".git/x.manifest cat/1.jpg dog/2.jpg", "x.manifest", LINE("cat/1.jpg", "a"),
                ":all classes 1(jpg) 2(jpg) aside 1 .manifest (x.manifest)\n");
}

UNIT_TEST(test_claim__dots_in_names__each_is_a_sample)
{
    check("c/2020.01.05.jpg c/2020.01.06.jpg d/x.jpg",
          ":all classes 2020.01.05(jpg) 2020.01.06(jpg) x(jpg)\n");
}

/* F-14 */
UNIT_TEST(test_claim__case_alone_differs__both)
{
    check("c/a.JPG c/a.jpg d/A.jpg", ":all classes c/a.JPG(JPG) c/a.jpg(jpg) A(jpg)\n");
}

UNIT_TEST(test_claim__other_things__left_alone)
{
    /* A Kaldi data directory with its audio, and one with pictures in it. */
    check("wav.scp text wav/1.wav wav/2.wav", "");
    check("feats.scp feats.ark plots/a.png plots/b.png", "");
    /* IDX, libsvm. */
    check("train-images-idx3-ubyte train-labels-idx1-ubyte preview.png", "");
    check("a9a a9a.t plot.png", "");
    check("a9a a1.png a2.png a3.png", "");
    /* Projects. */
    check("README.md src/a.c src/b.c src/c.c docs/x.png docs/y.png docs/spec/index-format.md "
          "Makefile",
          "");
    check("setup.py icons/a/1.png icons/b/2.png icons/b/3.png", "");
    check("package.json test2/1.jpg test2/2.jpg", "");
    check("shard-0.tar shard-1.tar cover.jpg", "");
    check("data.tfrecord x.png y.png z.png", "");
}

/* Few folders that are called like pictures, or what is learned of them, are no classes. */
UNIT_TEST(test_claim__roles__no_classes)
{
    check("HR/a.png HR/b.png LR_bicubic/X2/ax2.png", ":all flat refused\n");
    check("CUB/images/1.A/1.jpg segmentations/1.A/1.png segmentations/1.A/2.png",
          ":all flat refused\n");
    check("hazy/1_hazy.jpg hazy/2_hazy.jpg GT/1_GT.jpg GT/2_GT.jpg", ":all flat refused\n");
    check("LR/1x4.png LR/2x4.png HR/1.png HR/2.png", ":all flat refused\n");
    check("blurry/1.jpg sharp/2.jpg", ":all classes 1(jpg) 2(jpg)\n");
    /* One name has a word for targets, and its files have the names of another folder. */
    check("scans/1.png scans/2.png masks/1_mask.png masks/2_mask.png", ":all flat refused\n");
    check("scans/1.png masks/12.png", ":all classes 12(png) 1(png)\n");
    check("audi/1.jpg bmw/1.jpg ford_gt/1.jpg kia/1.jpg seat/1.jpg",
          ":all classes audi/1(jpg) bmw/1(jpg) ford_gt/1(jpg) kia/1(jpg) seat/1(jpg)\n");
    check("mask/1.jpg nomask/1.jpg", ":all classes mask/1(jpg) nomask/1(jpg)\n");
    check("256_Categories/a/1.jpg 256_Categories/b/2.jpg docs/3.png", ":all flat refused\n");
    check("images/e/ images/1.png masks/e/ masks/2.png", ":all flat refused\n");
    check("x_part_1/1.png x_part_2/2.png cover.jpg",
          ":all flat 1(png) 2(png) aside 1 .jpg (cover.jpg)\n");
    check("image_2/1.png image_2/2.png disp_0/1.png disp_0/2.png", ":all flat refused\n");
    check("image_2/1.png image_2/2.png disp_0/1.png disp_0/2.png disp_0/calib.txt",
          ":all flat refused aside 1 .txt (calib.txt)\n");
    check("rgb_image/1.jpg rgb_image/2.jpg depth/1.jpg depth/2.jpg depth/a/9.jpg",
          ":all flat refused\n");
    check("low/1.png high/1.png medium/1.png medium/notes.txt",
          ":all flat refused aside 1 .txt (notes.txt)\n");
    check("T/T_train_HR/1.png T/T_train_HR/2.png T/T_val_LR/X2/3.png",
          "T:T_train_HR flat 1(png) 2(png)\nT:T_val_LR flat 3(png)\n");
    check("a/v1/1.jpg HighJump/v2/2.jpg LongJump/v3/3.jpg Run/v4/4.jpg Swim/v5/5.jpg",
          ":all classes 2(jpg) 3(jpg) 4(jpg) 5(jpg) 1(jpg)\n");
    check("Ham_part_1/1.jpg Ham_part_2/2.jpg ham_part_1/1.jpg",
          ":all flat Ham_part_1/1(jpg) 2(jpg) ham_part_1/1(jpg)\n");
}

/* Annotations without an extension, and notices, are not other things that there are many of. */
UNIT_TEST(test_claim__annotations_and_notices__beside)
{
    check("Images/c/1.jpg Images/d/2.jpg Annotation/c/1 Annotation/d/2 LICENSE README.md",
          ":Images classes 1(jpg) 2(jpg)\n");
    check(
        "x/1.jpg x/2.jpg Thumbs.db LICENSE README.md",
        ":all flat 1(jpg) 2(jpg) aside 1 without an extension (LICENSE), 1 .md (README.md), 1 .db "
        "(Thumbs.db)\n");
}

/* A project with a dataset in it: what is called train is meant. */
UNIT_TEST(test_claim__split_in_a_project__taken)
{
    check("Makefile a.py data/train/cat/1.jpg data/train/dog/2.jpg data/train/dog/3.jpg",
          "data:train classes 1(jpg) 2(jpg) 3(jpg)\n");
}

UNIT_TEST(test_claim__other_datasets_beside__the_folder_alone)
{
    check("x.tar y.tar img/1.jpg img/2.jpg img/3.jpg", ":img flat 1(jpg) 2(jpg) 3(jpg)\n");
    check("set/x.tar set/cat/1.jpg set/cat/2.jpg", "set:cat flat 1(jpg) 2(jpg)\n");
}

UNIT_TEST(test_claim__text_labels_of_source__still_looked_at)
{
    AUTO_MEMBERS struct members m = {0};
    AUTO(release) struct claims claims = {0};

    make_listing(&m, "cat/1.jpg cat/2.jpg cat/3.jpg cat/4.jpg cat/5.jpg cat/6.jpg cat/7.jpg "
                     "cat/8.jpg cat/9.jpg cat/10.jpg labels.txt");
    claims.taken = calloc(m.n + 1, 1);
    assert_int_equal(files_claim_names(&m, &claims), 0);
    assert_int_equal(claims.n, 1);
    assert_string_equal(members_name(&m, 0), "labels.txt");
    assert_int_equal(claims.taken[0], 0);
    assert_int_equal(claims.taken[1], CLAIMS_SAMPLE);
}

#define TRAIN LINE("a/1.jpg", "TRAIN")

/* A listing whose files called `name` have that text; looks: how many files were looked into, as a
 * manifest, and again as COCO. */
static void check_content(const char *paths, const char *name, const char *text, unsigned looks,
                          const char *want)
{
    unsigned heads = 0;
    AUTO_FREE char *found = claim(paths, &(struct contents){name, text, &heads, 0});

    assert_string_equal(found, want);
    assert_int_equal(heads, looks);
}

UNIT_TEST(test_claim__manifest_by_content__any_name)
{
    check_content("a/1.jpg b/2.jpg cpp.json", "cpp.json", TRAIN TRAIN, 1,
                  ":cpp.train manifest a/1(jpg) a/1(jpg)\n");
    check_content("set/1.jpg set/2.jpg set/list", "list", LINE("1.jpg", "a"), 1,
                  "set:list.a manifest 1(jpg)\n");
    check_content("lists/all.txt images/1.jpg images/2.jpg", "all.txt", TRAIN "{\"source\": 1", 1,
                  ":all.txt flat refused\n"); /* whose faults are reported */
    /* Each line that is there is one; whatever else lies next to it is not looked into. */
    check_content("a/1.jpg a/2.jpg b/3.jpg a/.x x.json README.md", "x.json", TRAIN "[]\n", 3,
                  ":all classes 1(jpg) 2(jpg) 3(jpg) aside 1 .md (README.md), 1 .json (x.json), 1 "
                  "without an extension (.x)\n");
    check_content("a/1.jpg b/2.jpg x.json", "x.json", "{\"source\": \"1.jpg\"}\n", 2,
                  ":all classes 1(jpg) 2(jpg) aside 1 .json (x.json)\n");
    check_content("1.jpg 1.json", "1.json", TRAIN, 0, ":all flat 1(jpg,json)\n");
    /* Nor is a folder that has no pictures, or is of something else. */
    check_content("x.json a/1.txt", "x.json", TRAIN, 0, "");
    check_content("x.json x.tar a/1.jpg a/2.jpg", "x.json", TRAIN, 1, ":a flat 1(jpg) 2(jpg)\n");
}

UNIT_TEST(test_claim__manifest_by_name__content_says_no)
{
    check_content("a/1.jpg b/2.jpg site.manifest", "site.manifest", "CACHE MANIFEST\n", 1,
                  ":all classes 1(jpg) 2(jpg) aside 1 .manifest (site.manifest)\n");
    check_content("a/1.jpg b/2.jpg x.manifest", "x.manifest", "", 1,
                  ":all classes 1(jpg) 2(jpg) aside 1 .manifest (x.manifest)\n");
    check_content("a/1.jpg b/2.jpg x.manifest", "x.manifest", "{\"source\": \"1.jpg\"}\n{\n", 1,
                  ":x.manifest flat refused\n");
    check_content("site.manifest data.idx", "site.manifest", "CACHE", 0, "");
}

UNIT_TEST(test_claim__manifest_unreadable__its_name_says_it)
{
    unsigned heads = 0;
    const struct contents contents = {"x.manifest", TRAIN, &heads, -EACCES};
    AUTO_FREE char *found = claim("a/1.jpg b/2.jpg x.manifest y.json", &contents);

    assert_string_equal(found, ":x.manifest flat refused aside 1 .json (y.json)\n");
    assert_int_equal(heads, 2);
}

/* However many files may be manifests, few are looked into. */
UNIT_TEST(test_claim__very_many_candidates__few_looks)
{
    AUTO_TEXT struct text paths = {0};
    AUTO_FREE char *found = NULL;
    unsigned heads = 0;

    text_add(&paths, "d/0.jpg");
    for (unsigned i = 0; i < 100; i++) {
        text_add(&paths, " d/p%u/1.jpg d/p%u/2.jpg d/p%u/3.jpg", i, i, i);
        for (unsigned k = 0; k < 30; k++)
            text_add(&paths, " d/p%u/n%u.json", i, k);
    }
    found = claim(paths.data, &(struct contents){"n1.json", "{}", &heads, 0});
    assert_int_equal(heads, 0); /* most are something else: none */
    paths.len = 0;
    text_add(&paths, "d/0.jpg");
    for (unsigned i = 0; i < 100; i++) {
        text_add(&paths, " d/n%u.json d/%u.jpg d/e/f%u/1.jpg d/e/f%u/2.jpg d/e/f%u/n.json", i, i, i,
                 i, i);
    }
    free(found);
    found = claim(paths.data, &(struct contents){"n1.json", "{}", &heads, 0});
    assert_in_range(heads, 16, 128); /* as manifests, and as COCO */
}

/* 10^5 files with one stem, and with as many extensions: no quadratic work. */
UNIT_TEST(test_claim__very_many_of_one_stem__quick)
{
    AUTO_MEMBERS struct members m = {0};
    AUTO(release) struct claims claims = {0};
    uint32_t top;

    assert_int_equal(members_add_folder(&m, "", &top), 0);
    for (unsigned i = 0; i < 100000; i++) {
        char name[32];

        snprintf(name, sizeof(name), "a.%05u%s", i, i % 2 ? ".jpg" : "");
        assert_int_equal(members_add(&m, top, name, 1, (const uint64_t[2]){0, 0}), 0);
    }
    assert_int_equal(members_add(&m, top, "a.jpg", 1, (const uint64_t[2]){0, 0}), 0);
    claims.taken = calloc(m.n + 1, 1);
    assert_int_equal(files_claim_names(&m, &claims), 0);
    assert_int_equal(claims.n, 0); /* half of them are no pictures */
}

UNIT_TEST(test_claim__table_of_metadata__says_the_samples)
{
    check_table("train/1.jpg train/2.jpg train/metadata.jsonl", "metadata.jsonl",
                "{\"file_name\": \"./2.jpg\"}\n{\"file_name\": \"0.jpg\"}\n{\"a\": 1}\n",
                ":train metadata ./2(jpg) 0() 48()\n");
    check_table("train/a/1.jpg train/b/2.jpg train/metadata.csv", "metadata.csv",
                "file_name,b_file_name\na/1.jpg,b/2.jpg\nb/2.jpg,../1.jpg\n",
                ":train metadata a/1(jpg,jpg) b/2(jpg)\n"); /* no classes */
    check_table("set/.x/1.jpg set/1.jpg set/metadata.csv", "metadata.csv",
                "file_name\n.x/1.jpg\n1.jpg\n", ":set metadata .x/1(jpg) 1(jpg)\n");
    check_table("set/1.jpg set/2.jpg set/metadata.csv", "metadata.csv", "file_name\n3.jpg\n",
                ":set flat refused\n");
    check_table("metadata.csv fold1/1.jpg fold2/2.jpg", "metadata.csv",
                "file_name\nfold1/1.jpg\nfold2/2.jpg\n",
                ":all metadata fold1/1(jpg) fold2/2(jpg)\n");
    /* Not of parts, nor of what has tables of its own. */
    check_table("metadata.csv train/cat/1.jpg val/cat/2.jpg", "metadata.csv", "file_name\n",
                ":train flat 1(jpg)\n:val flat 2(jpg)\n");
    check_table("a/1.jpg a/2.jpg a/metadata.csv metadata.csv", "metadata.csv", "file_name\n1.jpg\n",
                ":a metadata 1(jpg)\n");
}

#define COCO(picture, annotation)                                                                  \
    "{\"images\": [{\"id\": 1, \"file_name\": \"" picture "\"}], \"annotations\": [{\"id\": 1, "   \
    "\"image_id\": 1, " annotation "}], \"categories\": [{\"id\": 1, \"name\": \"c\"}]}"
#define BOXES "0 0.5 0.5 0.1 0.1\n"
#define BOX   "\"category_id\": 1, \"bbox\": [1, 2, 3, 4]"

/* Files of YOLO are read where COCO has no boxes. */
UNIT_TEST(test_claim__boxes_of_coco__no_others)
{
    more[0][0] = "1.txt";
    more[0][1] = BOXES;
    check_notes("images/1.jpg labels/1.txt counts.csv", "counts.csv", "image,boxes\n1.jpg,5\n",
                ":all flat 1(jpg,txt)\ntxt\nboxes of yolo\n");
    check_notes("images/1.jpg labels/1.txt annotations/a.json", "a.json", COCO("1.jpg", BOX),
                ":all flat 1(jpg,txt)\ntxt\nboxes are those of COCO; labels.txt files (yolo) are "
                "fields only\n");
    more[1][0] = "captions_train.json";
    more[1][1] = COCO("2.jpg", "\"caption\": \"x\"");
    check_notes("images/1.jpg images/2.jpg labels/1.txt annotations/captions_train.json "
                "annotations/instances_val.json",
                "instances_val.json", COCO("1.jpg", BOX),
                ":all flat 2(jpg)\ntxt\nboxes of yolo\n"
                "boxes are those of COCO, and of labels.txt files (yolo) where COCO has none\n");
    more[1][0] = "1.xml";
    more[1][1] =
        "<annotation><object><name>c</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax>"
        "<ymax>2</ymax></bndbox></object></annotation>";
    check_notes("images/1.jpg labels/1.txt annotations/1.xml", "-", "",
                ":all flat 1(jpg,txt,xml)\ntxt\nxml\nboxes of yolo\n"
                "boxes are those of labels.txt files (yolo); annotations.xml files (voc) are "
                "fields only; an epochfs.json can say which are meant\n");
    more[2][0] = "a.json";
    more[2][1] = COCO("1.jpg", BOX);
    check_notes("images/1.jpg labels/1.txt annotations/1.xml a.json", "-", "",
                ":all flat 1(jpg,txt,xml)\ntxt\nxml\nboxes are those of COCO; labels.txt files "
                "(yolo), annotations.xml files (voc) are fields only\n");
    memset(more[1], 0, sizeof(more[1]));
    memset(more[2], 0, sizeof(more[2]));
    check_notes("images/1.jpg labels/1.txt predictions/1.txt", "-", "",
                ":all flat 1(jpg,txt,txt)\npredictions.txt\nlabels.txt\nboxes of yolo\n"
                "boxes are those of labels.txt files (yolo); predictions.txt files (yolo) are "
                "fields only; an epochfs.json can say which are meant\n");
    memset(more, 0, sizeof(more));
}

/* The label of a part is known if its values are classes of other parts, whichever. */
UNIT_TEST(test_claim__table_of_classes__of_several_sets)
{
    check_notes(
        "train/cat/1.jpg train/dog/2.jpg val/cat/3.jpg val/bird/4.jpg test/t1.jpg test/t2.jpg "
        "test/t3.jpg test.csv",
        "test.csv", "image,species\nt1.jpg,cat\nt2.jpg,dog\nt3.jpg,bird\n",
        ":test flat t1(jpg) t2(jpg) t3(jpg)\n3 labels\n:train classes 1(jpg) 2(jpg)\n"
        ":val classes 4(jpg) 3(jpg)\n");
}

/* A text of a list is no picture of another folder. */
UNIT_TEST(test_claim__paths_of_lists__no_other_folders)
{
    check_table("s/images/1.jpg s/images/2.jpg s/train.txt", "train.txt", "/x/images/2.jpg\n",
                ":s flat 2(jpg)\n");
    check_table("s/images/1.jpg s/images/2.jpg s/train.txt", "train.txt", "t/images/2.jpg\n",
                ":s flat 1(jpg) 2(jpg) aside 1 .txt (train.txt)\n");
    /* Its hash is that of train/1. */
    check_table("train/1.jpg train/2.jpg train/train.txt", "train.txt", "n171/1.jpg\n",
                ":train flat 1(jpg) 2(jpg) aside 1 .txt (train.txt)\n");
    check_table("train/1.jpg train/2.jpg train/train.txt", "train.txt", "/n171/1.jpg\n",
                ":train flat 1(jpg) 2(jpg) aside 1 .txt (train.txt)\n");
    check_table("train/a/1.jpg train/a/2.jpg val/a/1.jpg train/train.txt", "train.txt",
                "/x/val/a/1.jpg\n",
                ":train flat 1(jpg) 2(jpg) aside 1 .txt (train.txt)\n:val flat 1(jpg)\n");
}

#define PARTS                                                                                      \
    "the folders are no label: their names are those of parts, numbers that run on, or the first " \
    "letters of their pictures; an epochfs.json can make them classes\n"

#define NAMED_LIKE(which)                                                                          \
    "named like other pictures or their targets: " which                                           \
    " first. All are samples; an epochfs.json can make them fields\n"

#define UNNAMED(folder)                                                                            \
    folder " is ignored: its files belong to pictures, but epochfs knows no field for them; an "   \
           "epochfs.json can name one\n"

UNIT_TEST(test_claim__notes__what_is_not_read)
{
    check_notes("x/1.wav x/2.wav y/3.wav y/4.wav train.csv", "train.csv", "path,a\n1.wav,5\n",
                ":all sounds 1(wav)\n3 sounds are in no dataset: they are ignored; an epochfs.json "
                "can use them\n");
    check_notes("images_1/1.jpg images_2/2.jpg", "", "", ":all flat 1(jpg) 2(jpg)\n" PARTS);
    check("images/1.jpg images_2/2.jpg images_3/3.jpg", ":all flat 1(jpg) 2(jpg) 3(jpg)\n");
    check("VG_1/1.jpg VG_1_2/2.jpg", ":all flat refused\n");
    check("1/a.jpg 10/b.jpg", ":all classes a(jpg) b(jpg)\n");
    check("covid/1.jpg covid19/2.jpg", ":all classes 1(jpg) 2(jpg)\n");
    check("cat/1.jpg cat2/2.jpg dog/3.jpg", ":all classes 1(jpg) 2(jpg) 3(jpg)\n");
    check_notes("patch0/1.jpg patch1/2.jpg", "", "", ":all flat 1(jpg) 2(jpg)\n" PARTS);
    check_notes("0/0/001.jpg 0/1/01a.jpg 1/0/10.jpg", "", "",
                ":all flat 001(jpg) 01a(jpg) 10(jpg)\n" PARTS);
    check("0/0/001.jpg 0/1/02a.jpg 1/0/10.jpg 1/1/5.jpg",
          ":0 classes 001(jpg) 02a(jpg)\n:1 classes 10(jpg) 5(jpg)\n");
    check("0/0a.jpg 1/1a.jpg", ":all classes 0a(jpg) 1a(jpg)\n"); /* and there is one letter */
    check_notes("ill/images/1.png ill/masks/1.png well/images/2.png well/masks/2.png", "", "",
                ":all flat 1(png,png) 2(png,png)\nmasks.png\n"
                "the folders are no label: each has the same pair; an epochfs.json can make them "
                "classes\n");
    check_notes("a/1.jpg a/1.png b/2.jpg b/2.png", "", "",
                ":all classes a/1.jpg(jpg) a/1.png(png) b/2.jpg(jpg) b/2.png(png)\n" NAMED_LIKE(
                    "2 of 4 pictures, 1.png"));
    check_notes("a1.jpg a1_red.jpg a2.jpg a2_blue.jpg", "", "",
                ":all flat a1(jpg) a1_red(jpg) a2(jpg) a2_blue(jpg)\n");
    check_notes("1.jpg 1_mask.jpg 2.jpg 3.jpg 4.jpg", "", "",
                ":all flat 1(jpg) 1_mask(jpg) 2(jpg) 3(jpg) 4(jpg)\n" NAMED_LIKE(
                    "1 of 5 pictures, 1_mask.jpg"));
    check_notes("a1.jpg a1_1st.png a2.jpg a2_1.jpg a3.jpg a3_1st.png", "", "",
                ":all flat a1(jpg) a1_1st(png) a2(jpg) a2_1(jpg) a3(jpg) a3_1st(png)\n" NAMED_LIKE(
                    "2 of 6 pictures, a1_1st.png"));
    check_notes("images_1/1.jpg images_2/2.jpg masks_1/1 masks_2/2", "", "", /* the first only */
                ":all flat 1(jpg) 2(jpg) aside 2 without an extension (1 and 1 more)\n" UNNAMED(
                    "masks_1") PARTS);
    /* Files of scans belong to pictures, unless another format reads them. */
    check_notes("t/image_2/1.png t/velodyne/1.bin t/calib/1.txt", "-", "",
                ":t flat 1(png,txt) aside 1 .bin (1.bin)\ntxt\n" UNNAMED("t/velodyne"));
    check_notes("t/image_2/1.png t/velodyne/1.bin", "1.bin", "rows", "t:image_2 flat 1(png)\n");
    check_notes("t/image_2/1.png t/image_2/2.png t/tok/1.bin t/tok/1.idx", "", "",
                "t:image_2 flat 1(png) 2(png)\n");
    check_notes("t/image_2/1.png t/rows/1.jsonl.gz", "", "", "t:image_2 flat 1(png)\n");
    check_notes("t/image_2/1.png t/rows/1.jsonl", "1.jsonl", "", "t:image_2 flat 1(png)\n");
    check_notes("t/image_2/1.png t/image_2/2.png t/tok/1.bin t/tok/2.bin", "2.bin", "rows",
                "t:image_2 flat 1(png) 2(png)\n");
    check_notes("image_2/1.png image_2/2.png radar/1.pcd velodyne/1.bin", "", "",
                ":all flat 1(png) 2(png) aside 1 .pcd (1.pcd), 1 .bin (1.bin)\n" UNNAMED("radar")
                    UNNAMED("velodyne"));
    check_notes("images/train/1.jpg images/val/2.jpg scans/train/1.bin scans/val/2.bin", "", "",
                "images:train flat 1(jpg)\n" UNNAMED("scans") "images:val flat 2(jpg)\n");
    check_notes(
        "cats/1.jpg dogs/2.jpg both/cats/1.jpg both/dogs/2.jpg", "", "",
        ":both classes 1(jpg) 2(jpg)\nboth may be a copy of the folders next to it, because "
        "it has their names in it; an epochfs.json can ignore it\n"
        ":all classes 1(jpg) 2(jpg)\n");
    /* Texts below the folder of a dataset are none of their own; names of classes are used once. */
    check_notes("x/1.png x/2.png list_eval_partition.txt", "list_eval_partition.txt",
                "1.jpg 0\n2.jpg 1\n", ":all flat 1(png)\n"); /* PNG of CelebA */
    check_notes("part1/1.png part1/2.png part2/1.png part2/2.png list_eval_partition.txt",
                "list_eval_partition.txt", "1.jpg 0\n2.jpg 1\n",
                ":all flat part1/1(png) part1/2(png) part2/1(png) part2/2(png)\n" PARTS
                "list_eval_partition.txt names 2 pictures that are not there\n");
    check_table("epochfs.json q/1.png p/setup.py p/docs/1.png", "epochfs.json",
                "{\"datasets\": {\"x\": {\"pictures\": \"q/*.png\"}}, \"leave\": \"p/docs/**\"}",
                ":x flat 1(png) aside 1 .py (setup.py)\n");
    check_notes("x/data/1.jpg x/meta/c.csv", "c.csv", "a,b\nc,d\n",
                ":x flat 1(jpg)\nc.csv is ignored: no row names a picture; an epochfs.json can say "
                "more\n");
    check_notes("x/1.jpg x/2.jpg x/3.jpg train.csv", "train.csv", "id\n1.jpg\n2.jpg\n4.jpg\n",
                ":all flat 1(jpg) 2(jpg) 3(jpg)\ntrain.csv is ignored: it names 2 of 3 pictures, "
                "and 1 of its rows name none; an epochfs.json can say more\n");
    check_notes("x/1.jpg x/2.jpg x/3.jpg t.csv", "t.csv", ",age,sex\n3,40,1\n1,50,0\n2,60,0\n",
                ":all flat 1(jpg) 2(jpg) 3(jpg)\nt.csv: its column without a name says which "
                "pictures its rows are; an epochfs.json can say more\n");
    check_notes("x/1.jpg x/2.jpg x/3.jpg t.csv", "t.csv", ",age\n3.jpg,40\n1.jpg,50\n2.jpg,60\n",
                ":all flat 1(jpg) 2(jpg) 3(jpg)\n");
    check_notes("x/images/1.jpg x/labels/1.txt classes.txt", "1.txt", BOXES,
                ":x flat 1(jpg,txt)\ntxt\nboxes of yolo\n");
    check_notes(
        "x/a/1.jpg x/b/2.jpg classes.txt", "", "",
        ":x classes 1(jpg) 2(jpg)\nclasses.txt is ignored: no files of boxes use its names; "
        "an epochfs.json can say more\n");
    check_notes("train/1.jpg train/2.jpg val/3.jpg val/4.jpg classes.txt", "classes.txt",
                "1.jpg 0\n2.jpg 1\n3.jpg 0\n4.jpg 1\n",
                ":train flat 1(jpg) 2(jpg)\n0 labels\n:val flat 3(jpg) 4(jpg)\n0 labels\n");
    check_notes("x/1.wav x/2.wav y/3.wav y/4.wav train.csv classes.txt", "train.csv",
                "path,a\n1.wav,5\n2.wav,5\n3.wav,6\n4.wav,7\n",
                ":sounds sounds 1(wav) 2(wav) 3(wav) 4(wav)\n");
    check_notes("epochfs.json a/1.jpg b.txt", "epochfs.json",
                "{\"datasets\": {\"x\": {\"pictures\": \"a/{n}.jpg\", \"celeba\": \"b.txt\"}}}",
                ":x flat refused aside 1 .txt (b.txt)\n"
                "epochfs.json, line 1: 'celeba': b.txt is not called like a list of CelebA");
}

/* ---- sounds and texts ---- */

UNIT_TEST(test_claim__class_folders_of_sounds__one_dataset)
{
    static const char *const yes[] = {"a.wav", "a.FLAC", "a.mp3", "a.ogg",  "a.opus",
                                      "a.m4a", "a.aac",  "a.aif", "a.aiff", "a.b.wav"};
    static const char *const no[] = {"wav", "a.wav.gz", "a.mp", ".a.wav", "a.txt"};

    check("yes/1.wav yes/2.wav no/3.FLAC", ":all sounds 3(FLAC) 1(wav) 2(wav)\n");
    check("a/train/x/1.wav a/train/y/1.wav a/test/x/1.wav a/test/y/2.wav",
          "a:test sounds 1(wav) 2(wav)\na:train sounds x/1(wav) y/1(wav)\n");
    check("a/1.wav a/s/2.wav b/3.wav e/", ":all sounds 1(wav) 2(wav) 3(wav)\n");
    /* No chapter follows the speaker: the name is not read after its end. */
    check("a.wav/s/a.wav a.wav/xa.wav b/b.wav", ":all sounds xa(wav) a(wav) b(wav)\n");
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        if (!name_is_of(FILES_SOUNDS, yes[i]))
            fail_msg("%s", yes[i]);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (name_is_of(FILES_SOUNDS, no[i]))
            fail_msg("%s", no[i]);
}

UNIT_TEST(test_claim__files_beside_a_sound__of_its_sample)
{
    check("a/1.wav a/1.txt a/1.json b/2.wav", ":all sounds 1(json,txt,wav) 2(wav)\n");
    /* Sounds that share a stem are a sample each. */
    check("a/x.1.wav a/x.wav b/2.wav", ":all sounds x.1(wav) x(wav) 2(wav)\n");
    check("a/1.wav a/1.npy b/2.wav", ""); /* an array is a dataset */
    check("a/1.wav a/t.txt b/2.wav", ""); /* and this may be one */
    check("a/1.wav a/.x b/2.wav b/README",
          ":all sounds 1(wav) 2(wav) aside 2 without an extension (.x and 1 more)\n");
}

UNIT_TEST(test_claim__one_folder_of_sounds__no_classes)
{
    check("a/1.wav a/2.wav", "");
    check("a/1.wav b/", "");
    check("audio_test/3.wav audio_train/1.wav audio_train/2.wav", "");               /* two parts */
    check("a/1.wav b/2.wav all/a/1.wav all/b/2.wav", ":all sounds 1(wav) 2(wav)\n"); /* a copy */
    check("000/1.mp3 000/x.npy 001/2.mp3", ""); /* x.npy may be a dataset */
    check("000/000002.mp3 000/5.mp3 001/1001.mp3", ":all sounds 000002(mp3) 5(mp3) 1001(mp3)\n");
    check("1.wav 2.wav 3.wav a/1.wav b/2.wav", "");
}

UNIT_TEST(test_claim__folder_of_noises__no_class)
{
    check("yes/1.wav no/2.wav _background_noise_/n.wav _background_noise_/README.md",
          ":all sounds 2(wav) 1(wav) aside 1 .md (README.md), 1 .wav (n.wav)\n");
    assert_true(is_skipped_folder(FILES_SOUNDS, "_background_noise_"));
    assert_false(is_skipped_folder(FILES_PICTURES, "_background_noise_"));
}

UNIT_TEST(test_claim__sounds_and_other_kinds__left_alone)
{
    check("a/1.wav b/2.txt", "");
    check("a/1.wav b/2.jpg", ":b flat 2(jpg)\n");
    check("a/1.wav b/2.wav wav.scp", "");
    check("corpus/a/1.wav corpus/b/2.wav data/x/wav.scp", "");
    check("Makefile t/a/1.wav t/b/2.wav", "");
    check("kick1/1.wav snare/2.wav test1/3.wav", ":all sounds 1(wav) 2(wav) 3(wav)\n");
    check("d1/84/1.flac d1/84/84.trans.txt d1/85/1.flac d1/85/85.trans.txt", "");
}

/* What lies next to them is kept; then the dataset is in the folder, because it may have others. */
UNIT_TEST(test_claim__files_beside_class_folders__stay)
{
    AUTO_MEMBERS struct members m = {0};
    AUTO(release) struct claims claims = {0};

    check("set/a/1.wav set/b/2.wav set/x.feat", "set:sounds sounds 1(wav) 2(wav)\n");
    check("a/1.wav b/2.wav x.json", ":sounds sounds 1(wav) 2(wav)\n");
    check("a/1.wav b/2.wav x.wav README",
          ":all sounds 1(wav) 2(wav) aside 1 without an extension (README), 1 .wav (x.wav)\n");
    make_listing(&m, "s/a/1.wav s/b/2.wav s/x.feat");
    claims.taken = calloc(m.n + 1, 1);
    assert_int_equal(files_claim_names(&m, &claims), 0);
    assert_int_equal(claims.n, 1);
    assert_true(claims.collection[0].has_beside);
    assert_string_equal(members_name(&m, 0), "x.feat");
    assert_int_equal(claims.taken[0], 0);
    assert_int_equal(claims.taken[1], CLAIMS_SAMPLE);
}

UNIT_TEST(test_claim__format_is_given__no_sounds)
{
    AUTO_MEMBERS struct members m = {0};
    AUTO(release) struct claims claims = {.format_given = true};

    make_listing(&m, "a/1.wav b/2.wav");
    claims.taken = calloc(m.n + 1, 1);
    assert_int_equal(files_claim_names(&m, &claims), 0);
    assert_int_equal(claims.n, 0);
}

UNIT_TEST(test_claim__class_folders_of_texts__looked_into)
{
    check_content("pos/1.txt pos/a.b.TXT neg/3.txt", "-", "", 3,
                  ":all texts 3(txt) 1(txt) a.b(TXT)\n");
    check_content(
        "alt.x/101 alt.x/102 sci/101 sci/.x sci/LICENSE", "-", "", 3,
        ":all texts alt.x/101() 102() sci/101() aside 2 without an extension (.x and 1 more)\n");
    check_content("train/pos/1.txt train/neg/2.txt train/bow.feat", "-", "", 2,
                  "train:texts texts 2(txt) 1(txt)\n");
    check_content("dev2/1.txt ops/2.txt qa/3.txt", "-", "", 3, ":all texts 1(txt) 2(txt) 3(txt)\n");
    check_content("a/1.txt b/2.txt c.txt", "-", "", 2, ":texts texts 1(txt) 2(txt)\n");
    /* Another format has one; it may lie anywhere. */
    check_content("a/1.txt a/2.txt b/3.txt", "3.txt", "rows", 3, "");
    check_content("s/a/1.txt s/b/2.txt t/a/1.txt t/b/3.txt", "3.txt", "rows", 4,
                  ":s texts 1(txt) 2(txt)\n");
    /* All of a few files are looked into. */
    check_content("a/1 a/2 a/3 a/4 a/5 a/6 b/1 b/2 b/3 b/4 b/5 b/6", "6", "rows", 12, "");
    /* Not looked into: by their names they are none. */
    check_content("a/1.txt b/2.txt b/3.csv", "-", "", 0, "");
    check_content("a/1.txt", "-", "", 0, "");
    check_content("README.txt a/README.txt b/LICENSE.txt", "-", "", 0, "");
    check("a/1.txt b/2.txt", ""); /* nothing can be looked into */
}

static int binary_heads(const struct claims *claims, const size_t *file, unsigned n, size_t size,
                        uint8_t *bytes, int *len)
{
    (void)claims;
    (void)file;
    for (unsigned i = 0; i < n; i++) {
        memcpy(bytes + i * size, "ab\0c", 4);
        len[i] = i ? 4 : -EACCES;
    }
    return 0;
}

UNIT_TEST(test_claim__bytes_that_are_no_text__left_alone)
{
    AUTO_MEMBERS struct members m = {0};
    AUTO(release) struct claims claims = {.heads = binary_heads, .is_taken = is_taken};

    make_listing(&m, "a/1.txt b/2.txt");
    claims.taken = calloc(m.n + 1, 1);
    assert_int_equal(files_claim_names(&m, &claims), 0);
    assert_int_equal(claims.n, 0);
}

UNIT_TEST(test_claim__texts_unreadable__their_names_say_it)
{
    unsigned heads = 0;
    const struct contents contents = {"-", "", &heads, -EACCES};
    AUTO_FREE char *found = claim("a/1.txt b/2.txt", &contents);

    assert_string_equal(found, ":all texts 1(txt) 2(txt)\n");
}

/* However many texts and classes there are, few files are looked into, the largest among them. */
UNIT_TEST(test_claim__very_many_texts__few_looks)
{
    unsigned heads = 0;

    for (int rows = 0; rows < 2; rows++) {
        AUTO_MEMBERS struct members m = {0};
        AUTO(release) struct claims claims = {0};
        struct claiming claiming = {
            .listing = &m,
            .contents = &(struct contents){"large.txt", rows ? "rows" : "x", &heads, 0}};
        uint32_t folder;
        char name[16];

        heads = 0;
        assert_int_equal(members_add_folder(&m, "", &folder), 0);
        for (unsigned i = 0; i < 10000; i++) {
            snprintf(name, sizeof(name), "c%u", i);
            assert_int_equal(members_add_folder(&m, name, &folder), 0);
            for (unsigned k = 0; k < 3; k++) {
                snprintf(name, sizeof(name), "%u.txt", k);
                assert_int_equal(members_add(&m, folder, i == 7654 && k == 1 ? "large.txt" : name,
                                             i == 7654 && k == 1 ? 999 : 10 + i % 7,
                                             (const uint64_t[2]){1, 2}),
                                 0);
            }
        }
        assert_int_equal(members_sort(&m), 0);
        claiming.claims =
            (struct claims){.taken = calloc(m.n + 1, 1), .heads = read_heads, .is_taken = is_taken};
        assert_int_equal(files_claim_names(&m, &claiming.claims), 0);
        claims = claiming.claims;
        assert_int_equal(claims.n, rows ? 0 : 1);
        assert_int_equal(heads, 16);
    }
}

/* 100 datasets of texts: those that cannot be looked into stay what they are. */
UNIT_TEST(test_claim__very_many_datasets_of_texts__a_limit)
{
    AUTO_TEXT struct text paths = {0};
    AUTO_FREE char *found = NULL;
    unsigned heads = 0, n = 0;

    text_add(&paths, "x/");
    for (unsigned i = 0; i < 100; i++)
        text_add(&paths, " d/p%u/a/1.txt d/p%u/b/2.txt", i, i);
    found = claim(paths.data, &(struct contents){"-", "", &heads, 0});
    assert_int_equal(heads, 128);
    for (const char *at = found; (at = strstr(at, " texts ")); at++)
        n++;
    assert_int_equal(n, 64);
}

#define CONFIG "configs:\n- config_name: default\n"
#define SPLITS(a, b)                                                                               \
    "  data_files:\n  - {split: train, path: '" a "'}\n  - {split: test, path: '" b "'}\n---\n"
#define CONFIGS(a, b)                                                                              \
    "configs:\n- {config_name: x, data_dir: " a "}\n- {config_name: y, data_dir: " b "}\n---\n"

/* README.md of repositories of the Hub, as people write them. */
UNIT_TEST(test_claim__cards__files_by_configs)
{
    static const struct {
        const char *paths, *card, *want;
    } rows[] = {
        {"data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet data/test-0.parquet",
         "license: mit\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n"
         "    path: data/train-*\n  - split: test\n    path: \"data/test-*\"\ndataset_info:\n"
         "  features: &id001\n  - name: x\n  again: *id001\n---\n# hi: {[\n",
         "train: data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet\n"
         "test: data/test-0.parquet\n"},
        {"a.csv b.csv x/c.csv y/d.csv LICENSE z.csv",
         "configs:\n  - config_name: default\n    data_files:\n      - split: train\n        "
         "path:\n"
         "          - \"x/c.csv\"\n          - ./b.csv\n      - {split: 'test', path: "
         "[a.csv]}\n---",
         "train: x/c.csv b.csv\ntest: a.csv\n"
         "README.md names other files than these: 2 .csv (z.csv and 1 more)\n"},
        {"en/a.csv fr/a.csv fr/b1.csv fr/bc.csv",
         "configs:\n- config_name: en\n  data_files: en/*.csv\n- config_name: fr\n  default: true\n"
         "  data_files: [\"fr/a.*\", 'fr/b[0-9].csv', \"fr/?c.csv\"]\n  sep: \"\\t\"\n---\n",
         "en/train: en/a.csv | config en of README.md\n"
         "fr/train: fr/a.csv fr/b1.csv fr/bc.csv | config fr of README.md, the default one\n"},
        {"x/d/data/train-00000-of-00001.parquet x/d/data/v.a-00000-of-00001-0f.parquet",
         "configs:\n- config_name: a b\n  data_dir: x/d/\n- config_name: default\n"
         "  data_files: d/data/tr*\n  data_dir: x\n---\n",
         "a b/train: x/d/data/train-00000-of-00001.parquet | config a b of README.md\n"
         "a b/v.a: x/d/data/v.a-00000-of-00001-0f.parquet | config a b of README.md\n"
         "default/train: x/d/data/train-00000-of-00001.parquet | config default of README.md, the "
         "default one\n"},
        {"data/a/0.parquet data/b/0.parquet data/.c/0.parquet data/0.parquet",
         "configs:\n- config_name: default\n  data_files: data/*/*.parquet\n---\n",
         "train: data/a/0.parquet data/b/0.parquet\n"
         "README.md names other files than these: 1 .parquet (0.parquet)\n"},
        {"data/a/0.parquet data/b.parquet",
         "configs:\n- config_name: default\n  data_files: \"**/*.parquet\"\n---\n",
         "train: data/a/0.parquet data/b.parquet\n"},
        {"data/a-00000-of-00001.parquet data/b.parquet", "dataset_info:\n  x: y\n---\n",
         "a: data/a-00000-of-00001.parquet\n"
         "README.md names other files than these: 1 .parquet (b.parquet)\n"},
        {"data/a.parquet", "license: mit\n---\n", ""},
        {"images/t/a/1.png images/t/b/2.png images/v/a/3.png x.csv",
         "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: "
         "images/t/**\n"
         "  - split: test\n    path: images/v/*/*.png\n---\n",
         "images:t classes 1(png) 2(png)\nimages:v flat 3(png)\nimages/t > train\n"
         "images/v > test\nREADME.md names other files than these: 1 .csv (x.csv)\n"},
        {"pics/a/1.png pics/b/2.png u.csv", "configs:\n- config_name: p\n  data_dir: pics\n---\n",
         ":pics classes 1(png) 2(png)\npics > \n"
         "README.md names other files than these: 1 .csv (u.csv)\n"},
        {"train/1.png test/2.png", /* as without a card: splits of one dataset */
         "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: "
         "train/*.png\n"
         "  - split: test\n    path: \"test/*.png\"\n---\n",
         ":test flat 2(png)\n:train flat 1(png)\n"},
        {"a.csv",
         "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: a.csv\n"
         "  - split: test\n    path: b/*.csv\n  - split: up\n    path: ../a.csv\n  - split: none\n"
         "    path:\n  - split: train\n    path: a.csv\n---\n",
         "train: a.csv\ntest: README.md: 'b/*.csv': expected a file of that name, got none\n"
         "README.md: config 'default': '../a.csv' is ignored: it leaves the folder of the recipe\n"
         "README.md: config 'default': 'path' is ignored: expected a path, or a list of paths\n"
         "README.md: config 'default': 'train' is ignored: expected each split once\n"},
        {"a.csv", "configs:\n- config_name: x\n  data_files: b.csv\n---\n",
         "README.md: it names no file that exists; its configs are ignored\n"},
        {"a.csv", "configs: [\n---\n",
         "README.md: line 3: did not find expected node content; its configs are ignored\n"},
        {"a.csv", "configs: {a: b}\n---\n",
         "README.md: config '': 'configs' is ignored: expected a list\n"},
        {"a.csv", "configs:\n- config_name: a/b\n  data_files: a.csv\n- data_files: a.csv\n---\n",
         "README.md: config 'a/b': 'config_name' is ignored: expected a name without / and *\n"
         "README.md: config '': 'config_name' is ignored: expected a name without / and *\n"},
        /* What is no YAML at the head says nothing, whatever it is. */
        {"a.csv b.csv", CONFIG "  data_files: a.csv\n---\n\001 caf\xe9\n---\n",
         "train: a.csv\nREADME.md names other files than these: 1 .csv (b.csv)\n"},
        {"a.csv", "---\r\nconfigs:\r\n- config_name: x\r\n  data_files: a.csv\r\n---\r\n",
         "train: a.csv\n"},
        {"a.csv", "\n\r\n---\n" CONFIG "  data_files: a.csv\n---\n", "train: a.csv\n"},
        {"a.csv", "\nx\n---\n" CONFIG "  data_files: a.csv\n---\n", ""},
        {"a.csv", "\n\n", ""},
        {"a.csv", "--------\nconfigs: [\n---\n", ""},
        {"a.csv", "--- \nconfigs: [\n---\n", ""},
        {"a.csv", "configs: [\n----\n", ""},
        {"a.csv", "---", ""},
        {"a.csv", /* keys that repeat */
         "license: x\nlicense: y\nconfigs:\n- {config_name: x, data_files: a.csv}\n"
         "- {config_name: y, data_files: a.csv, data_files: a.csv}\n"
         "- {config_name: z, data_dir: b, data_dir: a, data_files: a.csv}\n---\n",
         "x/train: a.csv | config x of README.md\n"
         "README.md: config 'y': 'data_files' is ignored: expected a path, or a list\n"
         "README.md: config 'z': 'data_dir' is ignored: expected a folder\n"},
        /* Folders of one letter, and all that a folder has. */
        {"a/1.png u.csv", CONFIG "  data_dir: a\n---\n",
         ":a flat 1(png)\na > \nREADME.md names other files than these: 1 .csv (u.csv)\n"},
        {"data/a/1.png data/b/1.png data/b/x/2.csv data/c/1.png", CONFIGS("data/a", "data/b"),
         "data:a flat 1(png)\ndata:b flat 1(png)\ndata/a > x\ndata/b > y\n"
         "README.md names other files than these: 1 .png (1.png)\n"},
        {"a.csv x/b.csv x.png",
         "configs:\n- {config_name: p, data_dir: ., data_files: a.csv}\n"
         "- {config_name: q, data_dir: ~, data_files: a.csv}\n"
         "- {config_name: r, data_dir: null, data_files: a.csv}\n"
         "- {config_name: s, data_dir: , data_files: a.csv}\n"
         "- {config_name: t, data_dir: ././x//, data_files: b.csv}\n---\n",
         "p/train: a.csv | config p of README.md\n"
         "q/train: a.csv | config q of README.md\n"
         "r/train: a.csv | config r of README.md\n"
         "s/train: a.csv | config s of README.md\n"
         "t/train: x/b.csv | config t of README.md\n"
         "README.md names other files than these: 1 .png (x.png)\n"},
        /* What there is most of says what a split is. */
        {"p/README.txt p/0.md p/cat/1.jpg p/dog/2.jpg", CONFIG "  data_files: p/**\n---\n",
         ":p classes 1(jpg) 2(jpg)\n"
         "p > train\n"},
        {"p/a.csv p/b/1.jpg p/b/2.jpg", CONFIG "  data_files: p/**\n---\n",
         ":p flat 1(jpg) 2(jpg)\n"
         "p > train\n"},
        {"p/0.jpg p/1.csv p/2.csv", CONFIG "  data_files: p/**\n---\n",
         "train: p/0.jpg p/1.csv p/2.csv\n"},
        {"p/a.csv p/1.jpg p/2.jpg p/3.png q/b.csv q/4.jpg",
         CONFIG "  data_files: [p/*.jpg, q/*]\n---\n",
         ":train flat 1(jpg) 2(jpg) 4(jpg) aside 2 .csv (a.csv and 1 more), 1 .png (3.png)\n"},
        {"p/1.jpg q/2.jpg q/a.csv",
         CONFIG "  data_files:\n  - {split: train, path: ['p/*.jpg', "
                "'no/*.jpg']}\n  - {split: test, path: q/*.csv}\n---\n",
         "train: README.md: 'no/*.jpg': expected a file of that name, got none\n"
         "test: q/a.csv\nREADME.md names other files than these: 2 .jpg (1.jpg and 1 more)\n"},
        /* A folder is one dataset, or all is as without a card. */
        {"p/1.jpg p/2.png", CONFIG SPLITS("p/*.jpg", "p/*.png"),
         ":train flat 1(jpg)\n"
         ":test flat 2(png)\n"},
        {"p/1.jpg p/t/2.jpg", CONFIG SPLITS("p/*.jpg", "p/t/*.jpg"),
         ":train flat 1(jpg)\n"
         "p:t flat 2(jpg)\n"
         "p/t > test\n"},
        {"p/1.jpg p/t/2.jpg", CONFIG SPLITS("p/**", "p/t/*.jpg"),
         ":p flat 1(jpg) aside 1 .jpg (2.jpg)\n"
         "README.md: 'p/t/*.jpg': expected a folder of one dataset, got one of several; its "
         "configs are ignored\n"},
        {"p/1.jpg p/t/2.jpg", CONFIG SPLITS("p/t/*", "p/**"),
         ":p flat 1(jpg) aside 1 .jpg (2.jpg)\n"
         "README.md: 'p/**': expected a folder of one dataset, got one of several; its configs are "
         "ignored\n"},
        {"p/1.jpg p/2.csv", CONFIGS("p", "p/"),
         ":all flat 1(jpg) aside 1 .md (README.md), 1 .csv (2.csv)\n"
         "README.md: 'p': expected a folder of one dataset, got one of several; its configs are "
         "ignored\n"},
        {"p/1.jpg p/2.csv q/3.jpg", CONFIGS("p", "q, data_files: ../p/*"),
         ":p flat 1(jpg)\n"
         "p > x\n"
         "README.md: config 'y': '../p/*' is ignored: it leaves the folder of the recipe\n"
         "README.md names other files than these: 1 .jpg (3.jpg)\n"},
        {"p/1.jpg p/2.csv q/3.jpg", CONFIGS("q", "'', data_files: 'p/*'"),
         ":p flat 1(jpg)\n"
         ":q flat 3(jpg)\n"
         "q > x\n"
         "p > y/train\n"},
        {"p/a.csv p/1.jpg", CONFIGS("p", "'', data_files: 'p/a.csv'"),
         ":all flat 1(jpg) aside 1 .md (README.md), 1 .csv (a.csv)\n"
         "README.md: 'p': expected a folder of one dataset, got one of several; its configs are "
         "ignored\n"},
        /* Paths with ? and [ name files of all folders, in the order of their paths. */
        {"e/p-1.csv e/x/p-2.csv e/x/y/p-3.csv e/x/p-10.csv",
         CONFIG "  data_files: e/**/p-?.csv\n---\n",
         "train: e/p-1.csv e/x/p-2.csv e/x/y/p-3.csv\n"
         "README.md names other files than these: 1 .csv (p-10.csv)\n"},
        {"a-b/1.csv a/1.csv a/\xc3\xa9.csv a/x.csv", CONFIG "  data_files: '**/?.csv'\n---\n",
         "train: a-b/1.csv a/1.csv a/x.csv a/\xc3\xa9.csv\n"},
        {"1.csv a.csv b.csv ].csv [.csv -.csv ab.csv",
         CONFIG "  data_files: ['[!a-z].csv', '[]b].csv', '[a-].csv', '[.csv']\n---\n",
         "train: -.csv 1.csv [.csv ].csv b.csv a.csv\n"
         "README.md names other files than these: 1 .csv (ab.csv)\n"},
        {"a.csv {b}.csv", CONFIG "  data_files: '?*.csv'\n---\n",
         "train: a.csv\n"
         "README.md: config 'default': '{b}.csv' is ignored: it has {, } or *\n"
         "README.md names other files than these: 1 .csv ({b}.csv)\n"},
    };

    AUTO_TEXT struct text many = {0}, longest = {0};
    AUTO_FREE char *found = NULL;
    unsigned heads = 0;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT struct text paths = {0}, card = {0};

        text_add(&paths, "README.md %s", rows[i].paths);
        text_add(&card, "%s%s", strchr("-\n", *rows[i].card) ? "" : "---\n", rows[i].card);
        check_table(paths.data, "README.md", card.data, rows[i].want);
    }
    /* Notes do not grow without end, and there are only so many paths. */
    text_add(&many, "---\nconfigs:\n");
    for (unsigned i = 0; i < 200; i++)
        text_add(&many, "- {config_name: %0999d/}\n", i);
    text_add(&many, "---\n");
    found = claim("README.md a.csv", &(struct contents){"README.md", many.data, &heads, 0});
    assert_in_range(strlen(found), 4096, 4096 + 512);
    many.len = 0;
    text_add(&many, "---\n" CONFIG "  data_files: [");
    for (unsigned i = 0; i < 4096; i++)
        text_add(&many, "'a*', ");
    text_add(&many, "]\n---\n");
    check_table("a.csv README.md", "README.md", many.data,
                "README.md: expected at most 4096 configs and paths, got more; its configs are "
                "ignored\n");
    /* The rest of what is very long is not known, so nothing of it holds. */
    text_add(&longest, "---\nconfigs: [\n%0*d", 1 << 20, 0);
    check_table("a.csv README.md", "README.md", longest.data,
                "README.md: expected YAML of less than 1 MiB; its configs are ignored\n");
}

/* A shard that cannot be read is missed. */
UNIT_TEST(test_claim__cards__no_shorter_datasets)
{
    static const char card[] = "---\n" CONFIG SPLITS("d/a-*", "d/b-*");
    static const struct {
        char *unread;
        const char *want;
    } rows[] = {
        {"d/a-1.csv", "train: README.md: 'd/a-*': no permission\ntest: d/b-0.csv\n"
                      "README.md names other files than these: 1 .csv (a-0.csv)\n"},
        {"a-1.csv", "train: d/a-0.csv\ntest: d/b-0.csv\n"},
        {"d/.x/a-1.csv", "train: d/a-0.csv\ntest: d/b-0.csv\n"},
    };
    unsigned heads = 0;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *found =
            claim_without("README.md d/a-0.csv d/b-0.csv",
                          &(struct contents){"README.md", card, &heads, 0}, rows[i].unread);

        assert_string_equal(found, rows[i].want);
    }
}

/* What a shown recipe says of boxes, of rejected splits, and of classes next to a rejected folder.
 */
UNIT_TEST(test_claim__shown_recipe__datasets_as_they_are)
{
    static const struct {
        const char *paths, *name, *text, *want;
    } rows[] = {
        {"images/1.jpg labels/1.txt annotations/captions.json", "captions.json",
         COCO("1.jpg", "\"caption\": \"x\""),
         "\"all\": {\n      \"pictures\": \"images/*.jpg\",\n      \"boxes\": {\"yolo\": "
         "\"labels/{stem}.txt\", \"coco\": \"annotations/captions.json\"}\n"},
        {"images/1.jpg labels/1.txt annotations/instances.json", "instances.json",
         COCO("1.jpg", BOX),
         "\"with\": {\"txt\": \"labels/{stem}.txt\"},\n      \"boxes\": {\"coco\": "
         "\"annotations/instances.json\"}\n"},
        {"a/train/cat/imgs/1.jpg a/train/dog/x/2.jpg a/val/cat/imgs/3.jpg a/val/dog/x/4.jpg", "-",
         "", "\"a/{split}\": {\n"},
        {"x/epochfs.json x/a/1.jpg y/b/1.jpg y/c/2.jpg", "epochfs.json", "{}",
         "\"pictures\": \"y/{label}/*.jpg\",\n      \"classes\": [\"b\", \"c\"]\n"},
    };

    shows_recipe = true;
    more[0][0] = "1.txt";
    more[0][1] = BOXES;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned heads = 0;
        AUTO_FREE char *found =
            claim(rows[i].paths, &(struct contents){rows[i].name, rows[i].text, &heads, 0});

        if (!strstr(found, rows[i].want))
            assert_string_equal(found, rows[i].want);
    }
    shows_recipe = false;
    memset(more, 0, sizeof(more));
}

/* A recipe that is shown has no "**" next to datasets. */
UNIT_TEST(test_claim__recipe_of_speech__leaves_all_or_nothing)
{
    shows_recipe = true;
    more[0][0] = "epochfs.json";
    more[0][1] = "{\"datasets\": {\"mine\": {\"files\": \"a.csv\"}}}";
    check_table("wav/a/a1.wav wav/b/b1.wav text.txt", "text.txt", "a1 one\nb1 two\n",
                ":all sounds a1(wav) b1(wav)\n{\n  \"datasets\": {},\n  \"leave\": \"**\"\n}\n");
    check_table("wav/a/a1.wav wav/b/b1.wav text.txt sub/epochfs.json sub/a.csv", "text.txt",
                "a1 one\nb1 two\n",
                ":all sounds a1(wav) b1(wav)\nsub/mine: sub/a.csv\n{\n  \"datasets\": {\n"
                "    \"sub/mine\": {\n      \"files\": \"sub/a.csv\"\n    },\n    \"all\": {\n"
                "      \"note\": \"texts next to sounds are not in it\",\n"
                "      \"pictures\": \"wav/{label}/*.wav\",\n      \"classes\": [\"a\", \"b\"]\n"
                "    }\n  }\n}\n");
    shows_recipe = false;
    memset(more, 0, sizeof(more));
}

/* A recipe that is shown says where annotations are, and what of each folder it leaves. */
UNIT_TEST(test_claim__recipe_of_annotations__files_and_what_is_left)
{
    static const char coco[] =
        "{\"images\": [{\"id\": 1, \"file_name\": \"1.jpg\"}], \"annotations\": [{\"image_id\": 1, "
        "\"bbox\": [1, 2, 3, 4]}]}";

    shows_recipe = true;
    check_table("a/1.jpg a/2.jpg a/i.json b/c.md d/e.md", "i.json", coco,
                ":all flat 1(jpg)\n{\n  \"datasets\": {\n    \"all\": {\n"
                "      \"pictures\": \"a/*.jpg\",\n      \"boxes\": {\"coco\": \"a/i.json\"}\n"
                "    }\n  },\n  \"leave\": [\"b/**\", \"d/**\"]\n}\n");
    more[0][0] = "1.txt";
    more[0][1] = "0 0.5 0.5 0.5 0.5\n";
    check_table("images/1.jpg images/2.jpg labels/1.txt labels/2.txt labels/classes.txt",
                "classes.txt", "cat\n",
                ":all flat 1(jpg,txt) 2(jpg,txt)\n{\n  \"datasets\": {\n    \"all\": {\n"
                "      \"pictures\": \"images/*.jpg\",\n      \"boxes\": {\"yolo\": "
                "\"labels/{stem}.txt\", \"names\": \"labels/classes.txt\"}\n    }\n  }\n}\n");
    memset(more, 0, sizeof(more));
    shows_recipe = false;
}

/* The same in a recipe. */
UNIT_TEST(test_claim__recipe__files_and_folders)
{
    more[0][0] = "n.yaml";
    more[0][1] = "names: x\n";
    check_notes("epochfs.json a/1.png a/1.txt n.yaml", "epochfs.json",
                "{\"datasets\": {\"d\": {\"pictures\": \"a/{n}.png\", \"boxes\": {\"yolo\": "
                "\"a/{n}.txt\", \"names\": \"n.yaml\"}}}}",
                ":d flat 1(png,txt) aside 1 .yaml (n.yaml)\ntxt\nboxes of yolo\nn.yaml: names: "
                "expected a list or a map of names, got another value\n");
    memset(more, 0, sizeof(more));
    check_notes("1.jpg 2.jpg l.csv", "l.csv", "f,x\n1.jpg,1\n2.jpg,1,2\n",
                ":all flat 1(jpg) 2(jpg)\nl.csv is ignored: l.csv, line 3: expected 2 cells, as in "
                "the first row, got 3; an epochfs.json can say more\n");
    check_table("epochfs.json a/train-0.csv a/train-1.csv a/test-0.csv b/x/1.png b/y/2.png c.csv",
                "epochfs.json",
                "{\"datasets\": {\"n/{split}\": {\"files\": \"a/{split}-{_}.csv\", \"except\": "
                "\"a/*-1.csv\"}, \"p\": {\"folder\": \"b\"}}}",
                ":b classes 1(png) 2(png)\nn/test: a/test-0.csv\nn/train: a/train-0.csv\nb > p\n"
                "epochfs.json names other files than these: 2 .csv (c.csv and 1 more)\n");
    check_notes("epochfs.json x/a/t x/a/c.txt", "epochfs.json",
                "{\"datasets\": {\"d\": {\"pictures\": \"x/{n}/t\", \"with\": {\"txt\": "
                "\"x/{n}/c.txt\"}}}}",
                ":d flat t(,txt)\ntxt\n");
    check_table("epochfs.json a/b/1.png a/bc/1.png", "epochfs.json",
                "{\"datasets\": {\"x\": {\"pictures\": [\"a/b/{n}.png\", \"a/bc/{n}.png\"]}}}",
                ":x flat b/1(png) bc/1(png)\n"); /* keys are below the folder of both */
    check_table("epochfs.json a.csv", "epochfs.json",
                "{\"datasets\": {\"x\": {\"files\": \"b.csv\"}}}", ":all flat refused\n");
    check_table("epochfs.json a/1.csv", "epochfs.json",
                "{\"datasets\": {\"x\": {\"folder\": \"b\"}}}",
                ":all flat refused aside 1 .csv (1.csv)\n");
    check_table("epochfs.json a/1.png b/2.csv c/3.csv", "epochfs.json",
                "{\"datasets\": {\"x\": {\"folder\": \"a\"}}, \"leave\": \"a/**\"}",
                ":a flat 1(png)\na > x\n"
                "epochfs.json names other files than these: 2 .csv (2.csv and 1 more)\n");
    check_table("epochfs.json d/a/1.png d/b/2.csv", "epochfs.json",
                "{\"datasets\": {\"x\": {\"files\": \"d/b/2.csv\"}}, \"leave\": \"d/a/**\"}",
                "d:a flat 1(png)\nx: d/b/2.csv\n");
    check_table("epochfs.json a/b/1.csv", "epochfs.json",
                "{\"datasets\": {\"x\": {\"folder\": \"a/b\"}, \"y\": {\"folder\": \"a/b\"}}}",
                ":all flat refused aside 1 .csv (1.csv)\n");
    check_table("epochfs.json a/b/1.csv", "epochfs.json",
                "{\"datasets\": {\"x\": {\"folder\": \"a/b\"}, \"y\": {\"folder\": \"a\"}}}",
                ":all flat refused aside 1 .csv (1.csv)\n");
    check_table("epochfs.json a.csv", "epochfs.json",
                "{\"datasets\": {\"x\": {\"files\": \"a.csv\", \"folder\": \"a\"}}}",
                ":all flat refused\n");
}
