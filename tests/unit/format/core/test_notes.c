/* Notes of a dataset, and the parts that it lacks: bounded, whole lines, and what is omitted is
 * counted. */
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "format/core/notes.h"
#include "support/unit.h"

static void assert_shows(const struct notes *notes, const char *want)
{
    AUTO_TEXT struct text t = {0};

    notes_show(notes, &t);
    assert_string_equal(t.data ? t.data : "", want);
}

UNIT_TEST(test_lines)
{
    AUTO_NOTES struct notes notes = {0};

    assert_shows(&notes, "");
    notes_add(&notes, "%s", "");
    assert_int_equal(notes.n, 0);
    notes_add(&notes, "a%d\n\nb\n", 1);
    notes_add(&notes, "c\033[2J");
    assert_shows(&notes, "a1\nb\nc?[2J\n");
    assert_int_equal(notes.n, 3);
}

/* A long line ends after a word. */
UNIT_TEST(test_long_line)
{
    static char line[4 * NOTE_SIZE];
    struct notes notes = {0};
    size_t len;

    memset(line, 'x', NOTE_SIZE);
    notes_add(&notes, "%s", line);
    assert_int_equal(notes.text.len, NOTE_SIZE + 1); /* as long as may be */
    notes_release(&notes);

    for (size_t i = 0; i + 8 < sizeof(line); i += 8)
        memcpy(line + i, "wort123 ", 8);
    notes_add(&notes, "%s", line);
    len = notes.text.len;
    assert_in_range(len, NOTE_SIZE - 8, NOTE_SIZE + 1);
    assert_string_equal(notes.text.data + len - 12, "wort123 ...\n");
    notes_release(&notes);

    for (size_t i = 0; i + 2 < sizeof(line); i += 2) /* no blank: not inside of a character */
        memcpy(line + i, "\xc3\xa4", 2);
    line[0] = 'x';
    memmove(line + 1, line + 2, sizeof(line) - 2);
    notes_add(&notes, "%s", line);
    assert_string_equal(notes.text.data + notes.text.len - 7, "\xc3\xa4 ...\n");
    notes_release(&notes);
}

UNIT_TEST(test_many_lines)
{
    AUTO_NOTES struct notes notes = {0};
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < NOTES_MAX + 7; i++)
        notes_add(&notes, "line %u", i);
    notes_show(&notes, &t);
    assert_non_null(strstr(t.data, "line 63\nand 7 more notes\n"));
    assert_null(strstr(t.data, "line 64"));
}

UNIT_TEST(test_missing)
{
    struct missing_parts missing = {0};
    AUTO_TEXT struct text t = {0};
    char name[32];

    for (unsigned i = 0; i < MISSING_PARTS_MAX + 5; i++) {
        snprintf(name, sizeof(name), "part-%u\n", i);
        assert_int_equal(missing_parts_add(&missing, name, "no such file"), 0);
    }
    assert_int_equal(missing.n, MISSING_PARTS_MAX + 5);
    assert_int_equal(missing_parts_kept(&missing), MISSING_PARTS_MAX);
    assert_string_equal(missing.part[2].name, "part-2?");
    missing_parts_show(&missing, 2, &t);
    assert_string_equal(t.data, "part-0?: no such file\npart-1?: no such file\nand 1003 more\n");
    missing_parts_release(&missing);
    assert_int_equal(missing.n, 0);
}
