#include "fs/cli/progress.h"
#include "support/unit.h"

static void check_bytes(uint64_t bytes, const char *want)
{
    char text[HUMAN_SIZE];

    assert_string_equal(human_bytes(bytes, text), want);
}

UNIT_TEST(test_human_bytes__all_sizes__short)
{
    check_bytes(0, "0 B");
    check_bytes(1023, "1023 B");
    check_bytes(1024, "1.0 KiB");
    check_bytes(1536, "1.5 KiB");
    check_bytes(100 << 10, "100 KiB");
    check_bytes((1 << 20) - 1, "1.0 MiB");
    check_bytes(UINT64_C(5) << 30, "5.0 GiB");
    check_bytes(UINT64_C(200) << 40, "200 TiB");
    check_bytes(UINT64_MAX, "16.0 EiB");
}

UNIT_TEST(test_human_rate__all_rates__by_1000)
{
    char found[HUMAN_SIZE];

    assert_string_equal(human_rate(0, found), "0 B/s");
    assert_string_equal(human_rate(999, found), "999 B/s");
    assert_string_equal(human_rate(1000, found), "1.0 kB/s");
    assert_string_equal(human_rate(1024 * 1024, found), "1.0 MB/s");
    assert_string_equal(human_rate(117 * 1000 * 1000, found), "117 MB/s");
    assert_string_equal(human_rate(UINT64_MAX, found), "18.4 EB/s");
}

static void check_seconds(uint64_t seconds, const char *want)
{
    char text[HUMAN_SIZE];

    assert_string_equal(human_seconds(seconds, text), want);
}

UNIT_TEST(test_human_seconds__all_times__two_units)
{
    check_seconds(0, "0 s");
    check_seconds(59, "59 s");
    check_seconds(60, "1 min 0 s");
    check_seconds(3599, "59 min 59 s");
    check_seconds(3600, "1 h 0 min");
    check_seconds(90000, "1 d 1 h");
}

UNIT_TEST(test_percent_of__all_but_one__not_100)
{
    assert_int_equal(percent_of(0, 0), 100);
    assert_int_equal(percent_of(0, 7), 0);
    assert_int_equal(percent_of(1, 3), 33);
    assert_int_equal(percent_of(UINT64_MAX - 1, UINT64_MAX), 99);
    assert_int_equal(percent_of(UINT64_MAX, UINT64_MAX), 100);
}

static void check_line(uint64_t done, uint64_t total, uint64_t rate, bool bar, const char *want)
{
    char line[160];

    progress_line("staged", done, total, rate, bar, line, sizeof(line));
    assert_string_equal(line, want);
}

UNIT_TEST(test_progress_line__states__what_is_known)
{
    check_line(0, 1 << 20, 0, false, "  0 %  staged 0 B of 1.0 MiB");
    check_line(1 << 19, 1 << 20, 1 << 18, false,
               " 50 %  staged 512 KiB of 1.0 MiB, 262 kB/s, 2 s left");
    check_line(1 << 19, 1 << 20, 0, true,
               "[############            ]  50 %  staged 512 KiB of 1.0 MiB");
    check_line(1 << 20, 1 << 20, 1 << 18, true,
               "[########################] 100 %  staged 1.0 MiB of 1.0 MiB, 262 kB/s");
    check_line(0, 0, 0, false, "100 %  staged 0 B of 0 B");
}

UNIT_TEST(test_progress_line__little_room__cut)
{
    char line[160];

    for (size_t capacity = 1; capacity < sizeof(line); capacity++) {
        memset(line, 'x', sizeof(line));
        progress_line("staged", 5, UINT64_MAX, 1, true, line, capacity);
        assert_true(strlen(line) < capacity);
        assert_true(capacity == sizeof(line) || line[capacity] == 'x');
    }
}
