/* Headers of .npy that numpy reads, and those that it or this project refuses. */
#include <stdio.h>

#include "base/scope.h"
#include "format/core/npy_head.h"
#include "support/unit.h"

#define SIZE 4096 /* of the file, unless a row says otherwise */

static uint8_t bytes[256];

/* A header of that version and text; returns its length. */
static size_t make(unsigned version, const char *text)
{
    size_t len = strlen(text), before = version > 1 ? 12 : 10;

    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)version;
    bytes[8] = (uint8_t)len;
    memcpy(bytes + before, text, len);
    return before + len;
}

/* "float32 <C (2, 3)", or the reason for refusing it. */
static void describe(const char *text, uint64_t size, char *ret, size_t capacity)
{
    size_t len = make(1, text), n;
    struct npy_head h;
    const char *wrong;

    assert_int_equal(npy_head_bytes(bytes, NPY_HEAD_START), len);
    wrong = npy_head_parse(bytes, len, size, &h, NULL);
    if (wrong) {
        snprintf(ret, capacity, "%s", wrong);
        return;
    }
    assert_int_equal(h.bytes, len);
    assert_true(h.array_bytes <= size - len);
    n = (size_t)snprintf(ret, capacity, "%s%s%s", dtype_info(h.dtype)->name,
                         h.big_endian ? " big" : "", h.fortran ? " fortran" : "");
    for (unsigned i = 0; i < h.ndim; i++)
        n += (size_t)snprintf(ret + n, capacity - n, " %llu", (unsigned long long)h.dim[i]);
}

static const struct {
    const char *text, *want;
} rows[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n", "float32 2 3"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "float32 2 3"},
    {"{'shape':(7,),'fortran_order':False,'descr':\"|u1\"}", "uint8 7"},
    {"{'descr': '>i2', 'fortran_order': True, 'shape': (2L, 3L), }", "int16 big fortran 2 3"},
    {"{'descr': '>u1', 'fortran_order': True, 'shape': (1, 9, 1), }", "uint8 1 9 1"},
    {"{'descr': '=f8', 'fortran_order': True, 'shape': (2, 0), }", "float64 2 0"},
    {"{'descr': 'float16', 'fortran_order': False, 'shape': (), }", "float16"},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (1,2,3,4,5,6,1,1,), }",
     "bool 1 2 3 4 5 6 1 1"},
    {"{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}", "uint16 1"},
    {"{'descr': '<u4', 'fortran_order': False, 'shape': (1,)}", "uint32 1"},
    {"{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", "uint64 1"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
     "expected at most 8 axes in the header of .npy, got more"},
#define SHAPE "expected 'shape': a tuple of numbers in the header of .npy, got none"
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (7)}", SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': [7]}", SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 7}", SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-7,)}", SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (7 8,)}", SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (7", SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,", SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", SHAPE},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (7,)}",
     "expected 'fortran_order': True or False in the header of .npy, got neither"},
#define TYPE "expected numbers or bool in .npy, got another type"
    {"{'descr': '|O', 'fortran_order': False, 'shape': (7,)}",
     "expected numbers or bool in .npy, got Python objects: a pickle, which is never read; make "
     "the rows as long as each other, and save numpy.array(rows.tolist())"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (7,)}",
     "expected numbers or bool in .npy, got complex numbers"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (7,)}", TYPE},
    {"{'descr': '|V2', 'fortran_order': False, 'shape': (7,)}",
     "expected numbers or bool in .npy, got raw bytes (V); bfloat16 is saved so: convert with "
     "astype('float32')"},
    {"{'descr': '<U4', 'fortran_order': False, 'shape': (7,)}",
     "expected numbers or bool in .npy, got strings; labels are numbers by "
     "numpy.unique(labels, return_inverse=True)[1]"},
    {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (7,)}",
     "expected numbers or bool in .npy, got dates or times; convert with astype('int64')"},
    {"{'descr': 'bytes', 'fortran_order': False, 'shape': (7,)}", TYPE},
    {"{'descr': '', 'fortran_order': False, 'shape': (7,)}", TYPE},
    {"{'descr': 'f', 'fortran_order': False, 'shape': (7,)}", TYPE},
    {"{'descr': '<f\\x34', 'fortran_order': False, 'shape': (7,)}",
     "expected 'descr': a type in the header of .npy, got none that is a string"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (7,)}",
     "expected 'descr': one type of numbers in .npy, got a list: records of several fields; save "
     "each field as an array of its own"},
    {"{'descr': [('a', '<f4', (3,)), ('b', [('c', '|O')])], 'shape': (7, 2), 'fortran_order': 0}",
     "expected 'fortran_order': True or False in the header of .npy, got neither"},
    {"{'descr': [('a', '<f4', 'fortran_order': False, 'shape': (7,)}",
     "expected the end of a list of types in the header of .npy, got none"},
#define OTHER                                                                                      \
    "expected 'descr', 'fortran_order' and 'shape' in the header of .npy, got something else"
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", OTHER},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,), 'x': 1}", OTHER},
    {"{__import__('os')}", OTHER},
#define DICT "expected a dict of three members in the header of .npy, got none"
    {"", DICT},
    {"{}", DICT},
    {"{'descr': '<f4', 'fortran_order': False}", DICT},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)} x", DICT},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (7,)}", DICT},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)", DICT},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
     "expected a shape that memory can hold in .npy, got a larger one"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1024,)}",
     "expected the array that the header of .npy describes, got fewer bytes"},
};

UNIT_TEST(test_rows)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char found[256];

        describe(rows[i].text, SIZE, found, sizeof(found));
        if (strcmp(found, rows[i].want) != 0)
            fail_msg("%s: \"%s\", expected \"%s\"", rows[i].text, found, rows[i].want);
    }
}

UNIT_TEST(test_array__of_just_the_size__accepted)
{
    const char *text = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,)}";
    char found[256];

    describe(text, 10 + strlen(text) + 24, found, sizeof(found));
    assert_string_equal(found, "int64 3");
    describe(text, 10 + strlen(text) + 23, found, sizeof(found));
    assert_string_equal(found,
                        "expected the array that the header of .npy describes, got fewer bytes");
}

UNIT_TEST(test_start)
{
    assert_int_equal(make(1, "{}"), 12);
    assert_int_equal(npy_head_bytes(bytes, 12), 12);
    assert_int_equal(npy_head_bytes(bytes, 11), 0);
    for (unsigned version = 2; version <= 3; version++) {
        assert_int_equal(make(version, "{}"), 14);
        assert_int_equal(npy_head_bytes(bytes, 12), 14);
        bytes[9] = 0xff; /* 65282: the most is 65524 */
        assert_int_equal(npy_head_bytes(bytes, 12), 12 + 0xff02);
        bytes[10] = 1;
        assert_int_equal(npy_head_bytes(bytes, 12), 0);
    }
    make(4, "{}");
    assert_int_equal(npy_head_bytes(bytes, 12), 0);
    make(1, "{}");
    bytes[7] = 1; /* version 1.1 */
    assert_int_equal(npy_head_bytes(bytes, 12), 0);
    bytes[7] = 0;
    bytes[0] = 'x';
    assert_int_equal(npy_head_bytes(bytes, 12), 0);
}
