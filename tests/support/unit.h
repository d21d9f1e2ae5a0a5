/* What every unit test includes: cmocka, and the headers that cmocka.h needs but does not
 * include. */
#ifndef EPOCHFS_TESTS_SUPPORT_UNIT_H
#define EPOCHFS_TESTS_SUPPORT_UNIT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/diag.h"

/* The message contains that piece. */
#define assert_diag_has(d, piece)                                                                  \
    do {                                                                                           \
        if (!(d)->set || !strstr((d)->text, (piece)))                                              \
            fail_msg("message \"%s\": expected \"%s\" in it", (d)->text, (piece));                 \
    } while (0)

/* Notes of a dataset, or texts like them, contain that piece. */
#define assert_notes_have(notes, piece)                                                            \
    do {                                                                                           \
        const char *lines_ = (notes)->text.data ? (notes)->text.data : "";                         \
                                                                                                   \
        if (!strstr(lines_, (piece)))                                                              \
            fail_msg("notes \"%s\": expected \"%s\" in them", lines_, (piece));                    \
    } while (0)

#endif
