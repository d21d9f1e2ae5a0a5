#include "cache/http/via.h"
#include "support/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/http/parts.h"
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
        fail_msg("expected %s keys of %s and %s", same ? "the same" : "different", a, b);
}

/* What signs is no part of a key, and everything else is. */
UNIT_TEST(test_key__what_signs__no_part)
{
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

UNIT_TEST(test_key__another_origin__another_key)
{
    char x[HTTP_KEY_SIZE], y[HTTP_KEY_SIZE];

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

UNIT_TEST_WITH(test_secret__file__read_and_checked, temp_setup, temp_teardown)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/secret", (const char *)*state);
    check_secret(path, -ENOENT, "No such file");
    write_file(path, "hunter2hunter2hunter2\n", 0600);
    check_secret(path, 0, "X-Epochfs-Secret: hunter2hunter2hunter2");
    write_file(path, "hunter2hunter2hunter2", 0400);
    check_secret(path, 0, "X-Epochfs-Secret: hunter2hunter2hunter2");
    write_file(path, "hunter2hunter2hunter2\n", 0640);
    check_secret(path, -EACCES, "only its owner can read (mode 600), got mode 640");
    write_file(path, "hunter2\n", 0600);
    check_secret(path, -EINVAL, "expected one line of 16 to 256");
    write_file(path, "hunter2hunter2\r\nX-Other: header2\n", 0600);
    check_secret(path, -EINVAL, "expected one line of 16 to 256");
    write_file(path, "", 0600);
    check_secret(path, -EINVAL, "expected one line of 16 to 256");
    check_secret((const char *)*state, -EINVAL, "expected a file");
}

/* Lines of /proc/net/tcp and tcp6 of a machine of little-endian numbers. */
UNIT_TEST(test_listener__line__whose_it_is)
{
#define REST                                                                                       \
    "00000000:00000000 00:00000000 00000000  1000        0 1 1 0000000000000000 100 0 0 10 0"
    static const struct {
        const char *line;
        bool is_v6, listens;
    } lines[] = {
        {"   0: 0101007F:4E20 00000000:0000 0A " REST, false, true},
        {"   0: 00000000:4E20 00000000:0000 0A " REST, false, true},
        {"   0: 0100007F:4E20 00000000:0000 0A " REST, false, false},
        {"   0: 0101007F:4E21 00000000:0000 0A " REST, false, false},
        {"   0: 0101007F:4E20 0101007F:1234 01 " REST, false, false},
        {"   0: 00000000000000000000000000000000:4E20 00000000000000000000000000000000:0000 "
         "0A " REST,
         false, true},
        {"   0: 0000000000000000FFFF00000101007F:4E20 00000000000000000000000000000000:0000 "
         "0A " REST,
         false, true},
        {"   0: 00000000000000000000000001000000:4E20 00000000000000000000000000000000:0000 "
         "0A " REST,
         false, false},
        {"   0: 00000000000000000000000001000000:4E20 00000000000000000000000000000000:0000 "
         "0A " REST,
         true, true},
        {"   0: 0101007F:4E20 00000000:0000 0A " REST, true, false},
        {"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid", false,
         false},
        {"", false, false},
        {"   0: 0101007:4E20 00000000:0000 0A " REST, false, false},
        {"   0: 0101007F:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000", false,
         false},
    };
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(20000)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(20000)};

    assert_int_equal(inet_pton(AF_INET, "127.0.1.1", &v4.sin_addr), 1);
    v6.sin6_addr = in6addr_loopback;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        uid_t uid = 7;

        if (listener_line(lines[i].line, lines[i].is_v6 ? (void *)&v6 : (void *)&v4, &uid) !=
            lines[i].listens)
            fail_msg("line %zu: %s", i, lines[i].line);
        assert_int_equal(uid, lines[i].listens ? 1000 : 7);
    }
}

UNIT_TEST(test_listener__port_of_this_process__of_this_user)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    uid_t users[] = {geteuid()}, others[] = {geteuid() + 1}, found = 7;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    assert_false(listener_is_of((struct sockaddr *)&at, users, 1, &found));
    assert_int_equal(found, 7);
    assert_int_equal(listen(fd, 1), 0);
    assert_true(listener_is_of((struct sockaddr *)&at, users, 1, &found));
    assert_int_equal(found, 7);
    assert_false(listener_is_of((struct sockaddr *)&at, others, 1, &found));
    assert_int_equal(found, geteuid());
    close(fd);
}

/* The ring may have more members than there are places: the latest ones are known. */
UNIT_TEST(test_hear__members__latest_ones_known)
{
    struct http http = {.clock = clock_or_real(NULL)};
    char name[64];

    http_via_hear(&http, "");
    assert_int_equal(http_via_heard(&http, ""), 0);
    for (unsigned i = 0; i < HTTP_MEMBERS + 1; i++) {
        snprintf(name, sizeof(name), "10.0.0.%u:20001", i);
        assert_int_equal(http_via_heard(&http, name), 0);
        http_via_hear(&http, name);
        assert_true(http_via_heard(&http, name) > 0);
        http_via_hear(&http, name);
    }
    assert_int_equal(http_via_heard(&http, "10.0.0.0:20001"), 0);
    assert_true(http_via_heard(&http, "10.0.0.1:20001") > 0);
}
