/* The home folder, with and without $HOME. */
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/folder.h"
#include "support/unit.h"

UNIT_TEST(test_home_path__variable__taken)
{
    char path[PATH_MAX];

    setenv("HOME", "/some/where", 1);
    assert_true(home_path("/.netrc", path, sizeof(path)));
    assert_string_equal(path, "/some/where/.netrc");
    assert_true(home_path("", path, sizeof("/some/where")));
    assert_string_equal(path, "/some/where");
    assert_false(home_path("", path, sizeof("/some/where") - 1));
}

/* As a service has it. */
UNIT_TEST(test_home_path__no_variable__of_the_user)
{
    const struct passwd *user = getpwuid(geteuid());
    char path[PATH_MAX], want[PATH_MAX];

    if (!user)
        skip();
    snprintf(want, sizeof(want), "%s/.netrc", user->pw_dir);
    for (int empty = 0; empty < 2; empty++) {
        if (empty)
            setenv("HOME", "", 1);
        else
            unsetenv("HOME");
        memset(path, 0, sizeof(path));
        assert_true(home_path("/.netrc", path, sizeof(path)));
        assert_string_equal(path, want);
        assert_false(home_path("/.netrc", path, strlen(want)));
    }
}

UNIT_TEST(test_cache_folder__no_variable__in_the_home_of_the_user)
{
    static const char *const names[] = {"EPOCHFS_CACHE", "SLURM_TMPDIR", "TMPDIR", "XDG_CACHE_HOME",
                                        "HOME"};
    const struct passwd *user = getpwuid(geteuid());
    struct cache_folder cache;
    char want[PATH_MAX];

    if (!user || access(user->pw_dir, F_OK) < 0)
        skip();
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    snprintf(want, sizeof(want), "%s/.cache/epochfs", user->pw_dir);
    assert_int_equal(cache_folder_init(&cache, NULL), 0);
    assert_string_equal(cache.path, want);
    cache_folder_release(&cache);
}
