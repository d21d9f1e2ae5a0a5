/* hf://: what the Hub says, and what its library keeps on this machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/http/credentials.h"
#include "cache/source/hf_local.h"
#include "cache/source/hf_reply.h"
#include "cache/source/source.h"
#include "support/fake_http.h"
#include "support/temp_folder.h"
#include "support/unit.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OID    "89abcdef0123456789abcdef0123456789abcdef"
#define SHA256 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define API    "http://127.0.0.1:1/api/datasets/o/n/"
#define TREE   API "tree/" COMMIT
#define ALL    "?recursive=true&expand=false"
#define FILE_ENTRY(path, size)                                                                     \
    "{\"type\":\"file\",\"oid\":\"" OID "\",\"size\":" size ",\"path\":\"" path "\"}"
#define LARGE(path, size)                                                                          \
    "{\"type\":\"file\",\"oid\":\"" OID "\",\"size\":9,\"path\":\"" path                           \
    "\",\"lfs\":{\"oid\":\"" SHA256 "\",\"size\":" size ",\"pointerSize\":134}}"
#define FOLDER(path) "{\"type\":\"directory\",\"oid\":\"" OID "\",\"size\":0,\"path\":\"" path "\"}"
#define MAIN                                                                                       \
    {                                                                                              \
        {API "revision/main", NULL, 0, "{\"id\":\"o/n\",\"sha\":\"" COMMIT "\"}", {0}}, NULL, NULL \
    }

struct hub_answer {
    struct fake_answer answer;
    const char *next, *code;
};

static void set_site(const struct hub_answer *site, size_t n)
{
    static struct fake_answer answers[8];
    static struct fake_heard heard[8];

    for (size_t i = 0; i < n; i++) {
        answers[i] = site[i].answer;
        heard[i] = (struct fake_heard){
            .url = site[i].answer.url, .next = site[i].next, .code = site[i].code};
    }
    fake_http_set(answers, n);
    fake_http.heard = heard;
    fake_http.n_heard = n;
}

static void set_environment(const char *folder)
{
    static const char *const names[] = {
        "HF_TOKEN",       "HUGGING_FACE_HUB_TOKEN",       "HF_TOKEN_PATH",
        "HF_HUB_CACHE",   "HUGGINGFACE_HUB_CACHE",        "HF_HUB_OFFLINE",
        "XDG_CACHE_HOME", "HF_HUB_DISABLE_IMPLICIT_TOKEN"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    setenv("HF_ENDPOINT", "http://127.0.0.1:1/", 1);
    setenv("HF_HOME", folder, 1);
}

static int open_hub(const char *spec, struct source **ret, struct diag *d)
{
    struct source_options options;
    struct cache_folder cache = {.path = (char *)"/nowhere"};

    *d = DIAG_INIT;
    source_options_init(&options, &cache);
    return source_open(spec, &options, ret, d);
}

static void check_entry(const struct source *source, const char *path, uint64_t size,
                        const char *url, bool has_sum)
{
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};

    assert_int_equal(known_find(source, path, &entry), 0);
    assert_int_equal(entry.version->size, size);
    assert_string_equal(entry.url, url);
    assert_int_equal(entry.sha256 != NULL, has_sum);
}

UNIT_TEST_WITH(test_hf__tree_of_pages__files_of_the_commit, temp_setup, temp_teardown)
{
    static const struct hub_answer site[] = {
        MAIN,
        {{TREE ALL,
          NULL,
          0,
          "[" FOLDER("data") "," FILE_ENTRY("README.md", "1") "," LARGE(
              "data/x 1.csv",
              "5000") "," FILE_ENTRY(".hid",
                                     "1") "," FILE_ENTRY("../up",
                                                         "1") ",{\"type\":\"x\",\"path\":\"y\"},"
                                                              "{\"type\":\"file\",\"path\":"
                                                              "\"n\\u0000\"},"
                                                              "{\"type\":\"file\",\"path\":\"\"}]",
          {0}},
         "https://huggingface.co/api/datasets/o/n/tree/" COMMIT "?cursor=1",
         NULL},
        {{TREE "?cursor=1",
          NULL,
          0,
          "[" FILE_ENTRY("a.csv", "7") "," FILE_ENTRY("run.py", "7") "]",
          {0}},
         "/api/datasets/o/n/tree/" COMMIT "?cursor=2",
         NULL},
        {{TREE "?cursor=2", NULL, 0, "[" FILE_ENTRY("config.json", "7") "]", {0}}, NULL, NULL},
    };
    AUTO_SOURCE struct source *source = NULL;
    AUTO_SOURCE_LIST struct source_list list = {0};
    AUTO_FREE char *name = NULL;
    struct diag d;

    set_environment(*state);
    set_site(site, ARRAY_LEN(site));
    assert_int_equal(open_hub("hf://datasets/o/n", &source, &d), 0);
    assert_int_equal(source_list(source, NULL, &list, NULL), 0);
    assert_int_equal(list.n, 3); /* README.md says which files are data */
    check_entry(source, "a.csv", 7, "http://127.0.0.1:1/datasets/o/n/resolve/" COMMIT "/a.csv",
                false);
    check_entry(source, "data/x 1.csv", 5000,
                "http://127.0.0.1:1/datasets/o/n/resolve/" COMMIT "/data/x%201.csv", true);
    assert_int_equal(fake_http.requests, 4);
    assert_int_equal(fake_http.stats, 0);
    name = source_name(source);
    assert_string_equal(name, "hf://datasets/o/n/");
    assert_non_null(strstr(source_note(source), "revision main is commit " COMMIT));
    assert_non_null(strstr(source_note(source),
                           "4 entries of its list are ignored: they are no files, or have names "
                           "that files cannot have"));
}

UNIT_TEST_WITH(test_hf__paths_and_revisions, temp_setup, temp_teardown)
{
    static const struct hub_answer site[] = {
        {{"http://127.0.0.1:1/api/datasets/squad/revision/refs%2Fpr%2F7",
          NULL,
          0,
          "{\"id\":\"rajpurkar/squad\",\"sha\":\"" COMMIT "\"}",
          {0}},
         NULL,
         NULL},
        {{"http://127.0.0.1:1/api/datasets/rajpurkar/squad/tree/" COMMIT "/d" ALL,
          NULL,
          0,
          "[" FILE_ENTRY("d/x", "1") "]",
          {0}},
         NULL,
         NULL},
        MAIN,
        {{TREE "/d/x.csv" ALL, NULL, -ENOENT, "", {0}}, NULL, "EntryNotFound"},
        {{TREE "/d?recursive=false&expand=false",
          NULL,
          0,
          "[" FILE_ENTRY("d/x", "1") "," FILE_ENTRY("d/x.csv", "2") "]",
          {0}},
         NULL,
         NULL},
    };
    AUTO_SOURCE struct source *old = NULL, *file = NULL;
    AUTO_FREE char *name = NULL, *file_name = NULL;
    struct diag d;

    set_environment(*state);
    set_site(site, ARRAY_LEN(site));
    assert_int_equal(open_hub("hf://datasets/squad@refs/pr/7/d/", &old, &d), 0);
    check_entry(old, "x", 1, "http://127.0.0.1:1/datasets/rajpurkar/squad/resolve/" COMMIT "/d/x",
                false);
    assert_non_null(strstr(source_note(old), "is rajpurkar/squad by now"));
    name = source_name(old);
    assert_string_equal(name, "hf://datasets/rajpurkar/squad@refs/pr/7/d/");
    assert_int_equal(open_hub("hf://datasets/o/n/d/x.csv", &file, &d), 0);
    file_name = source_name(file);
    assert_string_equal(file_name, "hf://datasets/o/n/d/x.csv");
    check_entry(file, "x.csv", 2, "http://127.0.0.1:1/datasets/o/n/resolve/" COMMIT "/d/x.csv",
                false);
}

UNIT_TEST_WITH(test_hf__owner_like_datasets__model, temp_setup, temp_teardown)
{
    static const struct hub_answer site[] = {
        {{"http://127.0.0.1:1/api/models/datasets-o/n/revision/main",
          NULL,
          0,
          "{\"id\":\"datasets-o/n\",\"sha\":\"" COMMIT "\"}",
          {0}},
         NULL,
         NULL},
        {{"http://127.0.0.1:1/api/models/datasets-o/n/tree/" COMMIT ALL,
          NULL,
          0,
          "[" FILE_ENTRY("x", "1") "]",
          {0}},
         NULL,
         NULL},
    };
    AUTO_SOURCE struct source *source = NULL;
    struct diag d;

    set_environment(*state);
    set_site(site, ARRAY_LEN(site));
    assert_int_equal(open_hub("hf://datasets-o/n", &source, &d), 0);
    check_entry(source, "x", 1, "http://127.0.0.1:1/datasets-o/n/resolve/" COMMIT "/x", false);
}

static void check_wrong(const char *spec, const struct hub_answer *site, size_t n, int want,
                        const char *piece)
{
    struct source *source = NULL;
    struct diag d;

    set_site(site, n);
    assert_int_equal(open_hub(spec, &source, &d), want);
    assert_diag_has(&d, piece);
}

UNIT_TEST_WITH(test_hf__wrong__message, temp_setup, temp_teardown)
{
    static const struct {
        struct hub_answer answer;
        int want;
        const char *piece;
    } cases[] = {
        {{{TREE ALL, NULL, 0, "[]", {0}}, "http://evil/x", NULL}, -EBADMSG, "got another server"},
        {{{TREE ALL, NULL, 0, "[]", {0}}, "//evil/x", NULL}, -EBADMSG, "got another server"},
        {{{TREE ALL, NULL, 0, "[]", {0}}, "http://127.0.0.1:12/x", NULL},
         -EBADMSG,
         "another server"},
        {{{TREE ALL, NULL, 0, "[]", {0}}, TREE ALL, NULL}, -ELOOP, "page that was read"},
        {{{TREE ALL, NULL, 0, "{}", {0}}, NULL, NULL}, -EBADMSG, "expected a list of files"},
        {{{TREE ALL, NULL, 0, "[1]", {0}}, NULL, NULL}, -EBADMSG, "type and path"},
        {{{TREE ALL, NULL, 0, "[" FILE_ENTRY("x", "-1") "]", {0}}, NULL, NULL},
         -EBADMSG,
         "a size and a hash"},
        {{{TREE ALL, NULL, 0, "[" FILE_ENTRY("x", "99999999999999999999") "]", {0}}, NULL, NULL},
         -EBADMSG,
         "no JSON"},
        {{{TREE ALL, NULL, 0, "<html>", {0}}, NULL, NULL}, -EBADMSG, "no JSON"},
        {{{TREE ALL, NULL, -EACCES, "", {0}}, NULL, "GatedRepo"},
         -EACCES,
         "is gated: accept its terms at http://127.0.0.1:1/datasets/o/n"},
        {{{TREE ALL, NULL, -ENOENT, "", {0}}, NULL, "RevisionNotFound"},
         -ENOENT,
         "has no revision 'main'"},
        {{{TREE ALL, NULL, -ENOENT, "", {0}}, NULL, NULL}, -ENOENT, "is http://127.0.0.1:1 a Hub?"},
    };
    static const char *const specs[] = {"hf://",
                                        "hf://datasets/",
                                        "hf://datasets/../n",
                                        "hf://datasets/o/n@",
                                        "hf://datasets/o/n/../x",
                                        "hf://datasets/o/n@a%00b",
                                        "hf://datasets/o/n@%2Fx"};

    set_environment(*state);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct hub_answer site[] = {MAIN, cases[i].answer};

        check_wrong("hf://datasets/o/n", site, 2, cases[i].want, cases[i].piece);
    }
    for (size_t i = 0; i < ARRAY_LEN(specs); i++)
        if (strcmp(specs[i], "hf://datasets/o/n@") != 0)
            check_wrong(specs[i], NULL, 0, -EINVAL, "expected hf://datasets/OWNER/NAME");
    check_wrong("hf://spaces/o/n", NULL, 0, -EINVAL, "a dataset or a model");
    setenv("HF_ENDPOINT", "http://127.0.0.1.evil.org", 1);
    check_wrong("hf://datasets/o/n", NULL, 0, -EINVAL, "$HF_ENDPOINT");
    setenv("HF_ENDPOINT", "http://user:secret@127.0.0.1", 1);
    check_wrong("hf://datasets/o/n", NULL, 0, -EINVAL, "$HF_ENDPOINT");
}

static void check_token(struct credentials *token, const char *want, const char *origin)
{
    struct http_secret secret = {0};
    char text[PATH_MAX + 32];
    int r = credentials_signer(token)->secret(credentials_signer(token), &secret, NULL);

    assert_int_equal(r, want ? 0 : 1);
    assert_null(secret.key_id);
    if (want)
        assert_string_equal(secret.token, want);
    http_secret_release(&secret);
    credentials_origin(token, text, sizeof(text));
    assert_non_null(strstr(text, origin));
    assert_true(!want || !strstr(text, want));
}

UNIT_TEST_WITH(test_hf_token__places_and_renewal, temp_setup, temp_teardown)
{
    struct credentials *token;
    struct http_secret secret = {0};
    struct diag d = DIAG_INIT;

    set_environment(*state);
    assert_int_equal(
        credentials_new(&(struct credentials_options){.find_token = hf_find_token}, &token, NULL),
        0);
    check_token(token, NULL, "no token");
    temp_write(*state, "token", " hf_file\n", 9);
    check_token(token, NULL, "no token"); /* until the Hub refuses */
    credentials_signer(token)->refused(credentials_signer(token));
    check_token(token, "hf_file", "/token");
    setenv("HUGGING_FACE_HUB_TOKEN", "hf_old", 1);
    setenv("HF_TOKEN", "hf_new", 1);
    check_token(token, "hf_file", "/token");
    credentials_signer(token)->refused(credentials_signer(token));
    check_token(token, "hf_new", "$HF_TOKEN");
    unsetenv("HF_TOKEN");
    credentials_signer(token)->refused(credentials_signer(token));
    check_token(token, "hf_old", "$HUGGING_FACE_HUB_TOKEN");
    setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
    credentials_signer(token)->refused(credentials_signer(token));
    check_token(token, NULL, "no token");
    unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
    setenv("HUGGING_FACE_HUB_TOKEN", "hf\nX-Evil: 1", 1);
    credentials_signer(token)->refused(credentials_signer(token));
    assert_int_equal(credentials_signer(token)->secret(credentials_signer(token), &secret, &d),
                     -EINVAL);
    assert_diag_has(&d, "one word of ASCII");
    assert_null(strstr(d.text, "Evil"));
    credentials_free(token);
}

UNIT_TEST_WITH(test_hf_cache__snapshots, temp_setup, temp_teardown)
{
    char folder[PATH_MAX], path[PATH_MAX], commit[HF_HASH_SIZE], list[512];
    struct diag d = DIAG_INIT;
    bool sure;

    set_environment(*state);
    temp_folder(*state, "hub");
    temp_folder(*state, "hub/datasets--o--n");
    temp_folder(*state, "hub/datasets--o--n/refs");
    temp_folder(*state, "hub/datasets--o--n/trees");
    temp_folder(*state, "hub/datasets--o--n/snapshots");
    temp_folder(*state, "hub/datasets--o--n/snapshots/" COMMIT);
    temp_write(*state, "hub/datasets--o--n/snapshots/" COMMIT "/x.csv", "a,b", 3);
    temp_write(*state, "hub/datasets--o--n/refs/main", COMMIT "\n", 41);
    assert_true(hf_cache_folder("datasets", "o/n", folder));
    assert_true(hf_cache_commit(folder, "main", commit));
    assert_string_equal(commit, COMMIT);
    assert_false(hf_cache_commit(folder, "../refs/main", commit));
    assert_false(hf_cache_commit(folder, "other", commit));
    assert_int_equal(hf_cache_snapshot(folder, COMMIT, "", path, &sure, &d), 0);
    assert_false(sure);
    snprintf(list, sizeof(list), "{\"files\":{\"x.csv\":{\"size\":3,\"blob_id\":\"" OID "\"}}}");
    temp_write(*state, "hub/datasets--o--n/trees/" COMMIT ".json", list, strlen(list));
    assert_int_equal(hf_cache_snapshot(folder, COMMIT, "x.csv", path, &sure, &d), 0);
    assert_true(sure);
    snprintf(list, sizeof(list),
             "{\"files\":{\"x.csv\":{\"size\":9,\"lfs_size\":4,\"lfs_sha256\":\"" SHA256 "\"}}}");
    temp_write(*state, "hub/datasets--o--n/trees/" COMMIT ".json", list, strlen(list));
    assert_int_equal(hf_cache_snapshot(folder, COMMIT, "", path, &sure, &d), -ENOENT);
    assert_diag_has(&d, "0 of 1 files are in the cache");
}
