#include "cache/http/via.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_folder.h"

static void key_of(const char *origin, const char *url, char ret[static HTTP_KEY_SIZE])
{
    assert_int_equal(http_via_key(origin, url, ret), 0);
    assert_int_equal(strlen(ret), HTTP_KEY_SIZE - 1);
}

static void check_keys(const char *a, const char *b, bool same)
{
    char x[HTTP_KEY_SIZE], y[HTTP_KEY_SIZE];

    key_of("https://h:443", a, x);
    key_of("https://h:443", b, y);
    if ((strcmp(x, y) == 0) != same)
        fail_msg("want %s keys of %s and %s", same ? "the same" : "different", a, b);
}

/* What signs is no part of a key, and everything else is. */
static void test_key__what_signs__no_part(void **state)
{
    (void)state;
    check_keys("https://h/a/b", "https://h/a/b", true);
    check_keys("https://h/a/b", "https://h/a/c", false);
    check_keys("https://h/a%2Fb", "https://h/a/b", false);
    check_keys("https://h/a//b", "https://h/a/b", false);
    check_keys("https://h/a?X-Amz-Signature=1&X-Amz-Date=2", "https://h/a", true);
    check_keys("https://h/a?x-amz-signature=1", "https://h/a?X-Amz-Signature=2", true);
    check_keys("https://h/a?X-Goog-Signature=1&v=1", "https://h/a?v=1&X-Goog-Date=3", true);
    check_keys("https://h/a?Signature=1&Expires=2&Key-Pair-Id=3", "https://h/a", true);
    check_keys("https://h/a?sig=1", "https://h/a", true);
    check_keys("https://h/a?signature_of=1", "https://h/a", false);
    check_keys("https://h/a?list-type=2&prefix=x", "https://h/a?list-type=2&prefix=y", false);
    check_keys("https://h/a?v=1", "https://h/a", false);
    check_keys("https://h/a?b&c", "https://h/a?b%26c", false);
    check_keys("https://h", "https://h?", true);
}

static void test_key__another_origin__another_key(void **state)
{
    char x[HTTP_KEY_SIZE], y[HTTP_KEY_SIZE];

    (void)state;
    key_of("https://h:443", "https://h/a", x);
    key_of("http://h:443", "http://h:443/a", y);
    assert_string_not_equal(x, y);
    /* docs/cluster.md: SHA-256 of the origin, the path and the parameters, a line each. */
    key_of("http://127.0.0.1:80", "http://127.0.0.1/x?b=1&X-Amz-Date=2&c=3", x);
    assert_string_equal(x, "2300b389668d1141792bcd5fad9cd44d2961cd48314bbe791b8a9d52f83ebbcc");
}

static void write_file(const char *path, const char *text, unsigned mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void check_secret(const char *path, int error, const char *found)
{
    struct http_via via;
    struct diag d = DIAG_INIT;

    assert_int_equal(http_via_init(&via, "http://127.0.0.1:1/", path, &d), error);
    assert_string_equal(via.url, "http://127.0.0.1:1");
    if (error == 0)
        assert_string_equal(via.secret, found);
    else
        assert_diag_has(&d, found);
    if (strstr(d.text, "hunter"))
        fail_msg("the message has the secret: %s", d.text);
    http_via_release(&via);
}

static void test_secret__file__read_and_checked(void **state)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/secret", (const char *)*state);
    check_secret(path, -ENOENT, "No such file");
    write_file(path, "hunter2hunter2hunter2\n", 0600);
    check_secret(path, 0, "X-Epochfs-Secret: hunter2hunter2hunter2");
    write_file(path, "hunter2hunter2hunter2", 0400);
    check_secret(path, 0, "X-Epochfs-Secret: hunter2hunter2hunter2");
    write_file(path, "hunter2hunter2hunter2\n", 0640);
    check_secret(path, -EACCES, "only its owner can read (mode 600), found mode 640");
    write_file(path, "hunter2\n", 0600);
    check_secret(path, -EINVAL, "want one line of 16 to 256");
    write_file(path, "hunter2hunter2\r\nX-Other: header2\n", 0600);
    check_secret(path, -EINVAL, "want one line of 16 to 256");
    write_file(path, "", 0600);
    check_secret(path, -EINVAL, "want one line of 16 to 256");
    check_secret((const char *)*state, -EINVAL, "want a file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key__what_signs__no_part),
        cmocka_unit_test(test_key__another_origin__another_key),
        cmocka_unit_test_setup_teardown(test_secret__file__read_and_checked, temp_setup,
                                        temp_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
