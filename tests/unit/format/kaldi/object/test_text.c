/* Kaldi objects as text: the cases K-20 to K-39, every type, windows that end anywhere, objects
 * that are truncated or change. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/kaldi/object/object.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#define GUARD 16 /* bytes after an array that must not change */

/* The arrays of a type: i int32, u uint8, r real. */
static const char *const arrays[N_KALDI_TYPES] = {
    [KALDI_MATRIX] = "r",        [KALDI_VECTOR] = "r",      [KALDI_PACKED] = "r",
    [KALDI_INT] = "i",           [KALDI_FLOAT] = "r",       [KALDI_DOUBLE] = "r",
    [KALDI_BOOL] = "u",          [KALDI_INTS] = "i",        [KALDI_INT_LISTS] = "ii",
    [KALDI_INT_PAIRS] = "i",     [KALDI_FLOAT_PAIRS] = "r", [KALDI_POSTERIOR] = "iir",
    [KALDI_GAUSS_POST] = "iiir", [KALDI_TOKEN] = "",        [KALDI_TOKENS] = "",
};

/* The number of elements of array number i. */
static uint64_t elements(const struct kaldi_object *object, unsigned i)
{
    static const uint8_t dim[4] = {0, 1, 1, 2}; /* of lists of lists */
    const uint64_t *n = object->dim;

    switch (object->type) {
    case KALDI_MATRIX:
        return n[0] * n[1];
    case KALDI_INT_PAIRS:
    case KALDI_FLOAT_PAIRS:
        return n[0] * 2;
    case KALDI_INT:
    case KALDI_FLOAT:
    case KALDI_DOUBLE:
    case KALDI_BOOL:
        return 1;
    default:
        return n[dim[i]];
    }
}

static void show_element(struct text *t, char kind, enum dtype dtype, const uint8_t *at)
{
    int32_t v;
    float narrow;
    double wide;

    if (kind == 'u') {
        text_add(t, " %u", *at);
    } else if (kind == 'i') {
        memcpy(&v, at, 4);
        text_add(t, " %d", v);
    } else if (dtype == DTYPE_F4) {
        memcpy(&narrow, at, 4);
        text_add(t, " %g", (double)narrow);
    } else {
        memcpy(&wide, at, 8);
        text_add(t, " %g", wide);
    }
}

/* Decode array i from memory of exactly the object's size, and append its values. */
static int show_array(struct text *t, const struct kaldi_object *object, const char *bytes,
                      unsigned i, enum dtype dtype, struct diag *d)
{
    char kind = arrays[object->type][i];
    size_t each = kind == 'u' ? 1 : kind == 'i' || dtype == DTYPE_F4 ? 4 : 8;
    uint64_t n = elements(object, i);
    AUTO_FREE uint8_t *dst = malloc(n * each + GUARD), *copy = malloc(object->len);
    int r;

    assert_non_null(dst);
    memset(dst, 0xa5, n * each + GUARD);
    memcpy(copy, bytes, object->len);
    r = kaldi_decode(object, copy, i, dtype, dst, "x.ark", d);
    for (size_t k = 0; k < GUARD; k++)
        assert_int_equal(dst[n * each + k], 0xa5);
    for (uint64_t k = 0; r == 0 && k < n; k++)
        show_element(t, kind, dtype, dst + k * each);
    return r;
}

/* The dims, and after ":" each array; or the tokens. The caller frees it. */
static char *show(const struct kaldi_object *object, const char *bytes, enum dtype dtype)
{
    AUTO_TEXT struct text t = {0};
    static const uint8_t dims[N_KALDI_TYPES] = {
        [KALDI_MATRIX] = 2,      [KALDI_VECTOR] = 1,    [KALDI_PACKED] = 1,
        [KALDI_INTS] = 1,        [KALDI_INT_LISTS] = 2, [KALDI_INT_PAIRS] = 1,
        [KALDI_FLOAT_PAIRS] = 1, [KALDI_POSTERIOR] = 2, [KALDI_GAUSS_POST] = 3,
    };
    bool is_words = object->type == KALDI_TOKEN || object->type == KALDI_TOKENS;
    char *ret;
    size_t len;

    if (is_words)
        text_add_bytes(&t, bytes + object->dim[1], object->dim[0]);
    for (unsigned i = 0; i < KALDI_DIMS && !is_words; i++)
        if (i < dims[object->type])
            text_add(&t, "%s%llu", i ? " " : "", (unsigned long long)object->dim[i]);
        else
            assert_int_equal(object->dim[i], 0);
    for (unsigned i = 0; arrays[object->type][i]; i++) {
        struct diag d = DIAG_INIT;

        text_add(&t, ":");
        if (show_array(&t, object, bytes, i, dtype, &d) < 0)
            fail_msg("decode %u: %s", i, d.text);
    }
    assert_int_equal(text_finish(&t, &ret, &len), 0);
    return ret;
}

/* Measure the object after some bytes of another, in a window that starts with step bytes. */
static int measure(const char *text, size_t len, size_t before, size_t step, enum kaldi_type type,
                   struct kaldi_object *ret, struct diag *d)
{
    AUTO_FREE char *file = malloc(before + len + 1);
    AUTO_KALDI_IN struct kaldi_in in = {0};
    AUTO_BLOB struct blob *blob = NULL;

    assert_non_null(file);
    memset(file, 'k', before);
    memcpy(file + before, text, len);
    blob = memory_blob_new("x.ark", file, before + len, before + len, NULL);
    assert_non_null(blob);
    kaldi_in_init(&in, blob);
    if (step)
        in.window.least = step;
    return kaldi_measure(&in, before, type, ret, d);
}

struct sample {
    enum kaldi_type type;
    const char *text;
    const char *shown; /* by show(); NULL: an error */
    const char *rest;  /* the text after the object; or a piece of the message */
};

#define M    KALDI_MATRIX
#define V    KALDI_VECTOR
#define P    KALDI_PACKED
#define I    KALDI_INTS
#define L    KALDI_INT_LISTS
#define IP   KALDI_INT_PAIRS
#define FP   KALDI_FLOAT_PAIRS
#define POST KALDI_POSTERIOR
#define GP   KALDI_GAUSS_POST
#define T    KALDI_TOKEN
#define TS   KALDI_TOKENS

#define NUMBER  "expected a number in the range of float, got"
#define NO_WORD "expected a number or \"]\", got"
#define NO_INT  "expected an integer of 32 bits, got"
#define NO_OPEN "expected \"[\" and white space, got"
#define NO_LINE "expected a newline after the value, got"

static const struct sample samples[] = {
    /* as Kaldi writes them */
    {M, " [\n  1 2 \n  3 4 ]\n", "2 2: 1 2 3 4", ""},
    {M, " [ ]\nb", "0 0:", "b"},
    {M, " [\n  1e-30 123456.8 -0 \n  1.39 -3.002 -3.301 ]\nutt-b  [\n",
     "2 3: 1e-30 123457 -0 1.39 -3.002 -3.301", "utt-b  [\n"},
    {M, "rows=3 dim=7 [ 1 2.5 6 -1 ] dim=7 [ ] dim=7 [ 0 0.001 ] \ng",
     "3 7: 0 2.5 0 0 0 0 -1 0 0 0 0 0 0 0 0.001 0 0 0 0 0 0", " \ng"},
    {V, " [ 5.763 -5.77 7.665 -4.073 ]\nv", "4: 5.763 -5.77 7.665 -4.073", "v"},
    {V, " [ ]\n", "0:", ""},
    {V, "dim=7 [ 1 2.5 6 -1 ] \n", "7: 0 2.5 0 0 0 0 -1", " \n"},
    {P, " [\n1 \n2 3 \n4 5 6 ]\n", "6: 1 2 3 4 5 6", ""},
    {P, " [ ]\n", "0:", ""},
    {KALDI_INT, "5 \nu2 -7 \n", ": 5", "u2 -7 \n"},
    {KALDI_INT, "-7 \n", ": -7", ""},
    {KALDI_FLOAT, "1.5 \n", ": 1.5", ""},
    {KALDI_DOUBLE, "3.141593 \n", ": 3.14159", ""},
    {KALDI_BOOL, "T \nu2 F \n", ": 1", "u2 F \n"},
    {KALDI_BOOL, "F \n", ": 0", ""},
    {I, "1 2 3 2000000000 -5 \nu2 \n", "5: 1 2 3 2000000000 -5", "u2 \n"},
    {I, "\nu3", "0:", "u3"},
    {L, "1 2 ; 3 ; ; \nu", "3 3: 2 1 0: 1 2 3", "u"},
    {L, "\n", "0 0::", ""},
    {L, "; \n", "1 0: 0:", ""},
    {IP, "1 2 ; 3 4 \nu", "2: 1 2 3 4", "u"},
    {IP, "\n", "0:", ""},
    {FP, "1.5 2 ; 3.25 -4 \n", "2: 1.5 2 3.25 -4", ""},
    {FP, " \n", "0:", ""},
    {POST, "[ 1 0.5 2 0.5 ] [ ] [ 7 1 ] \nu2 \n", "3 3: 2 0 1: 1 2 7: 0.5 0.5 1", "u2 \n"},
    {POST, "\n", "0 0:::", ""},
    {GP, "2 1 3  [ 0.25 0.75 ]\n0 \n", "2 1 2: 1 0: 3: 2: 0.25 0.75", " \n"},
    {GP, "1 2 3  [ 0.25 0.75 ]\n4  [ ]\n\n", "1 2 2: 2: 3 4: 2 0: 0.25 0.75", "\n"},
    {GP, "0 \n", "0 0 0::::", " \n"},
    {T, "spk1\nu2 spk2\n", "spk1", "u2 spk2\n"},
    {TS, "u1 u2 \nspk2 \n", "u1 u2", "spk2 \n"},
    {TS, "\nx", "", "x"},
    /* K-20: an empty object in one word; its newline is not consumed, and packed matrices have no
     * such form */
    {M, "[]\nb", "0 0:", "\nb"},
    {V, " []", "0:", ""},
    {V, "[ ]", "0:", ""},
    {M, "[]b", NULL, NO_OPEN " \"[]b\""},
    {P, "[]\n", NULL, NO_OPEN " \"[]?\""},
    {GP, "1 1 3 [] 4", "1 1 0: 1: 3: 0:", " 4"},
    {POST, "[]\n", NULL, NO_OPEN},
    /* K-21, K-22 */
    {M, "[1 2 ]\n", NULL, "x.ark: byte 0: " NO_OPEN " \"[1 2 ]?\""},
    {V, "[1 2 ]\n", NULL, NO_OPEN},
    {P, "[1 2 ]\n", NULL, NO_OPEN},
    {POST, "[1 2 ]\n", NULL, NO_OPEN},
    {M, "[ 1 2]\n", "1 2: 1 2", ""},
    {V, "[ 1 2]\n", "2: 1 2", ""},
    {P, "[ 1]\n", "1: 1", ""},
    {POST, "[ 1 2]\n", "1 1: 1: 1: 2", ""},
    /* K-23 */
    {M, "[ 1 2 ]\n", "1 2: 1 2", ""},
    {M, "[ 1e5 2E-3 ]\n", "1 2: 100000 0.002", ""},
    /* K-24, K-25 */
    {M, "[ 1 2\n 3 ]\n", NULL, "x.ark: byte 9: expected rows of one length, got \"]?\""},
    {M, "[ 1\n 2 3\n ]\n", NULL, "expected rows of one length, got a newline"},
    {M, "[ 1; 2 3; ]\n", NULL, "expected rows of one length, got \"; ]?\""},
    {M, "[\n\n 1 2\n\n;;\n 3 4\n\n]\n", "2 2: 1 2 3 4", ""},
    {M, "[\n\n;\n]\n", "0 0:", ""},
    {M, "[ 1 2 ; 3 4 ]\n", "2 2: 1 2 3 4", ""},
    /* K-26 */
    {M, "[ +1 ]\n", NULL, NO_WORD " \"+1 ]?\""},
    {M, "[ .5 ]\n", NULL, NO_WORD " \".5 ]?\""},
    {V, "[ +1 ]\n", NULL, NO_WORD},
    {V, "[ .5 ]\n", NULL, NO_WORD},
    {P, "[ +1 ]\n", NULL, NO_WORD},
    {P, "[ .5 ]\n", NULL, NO_WORD},
    {M, "[ -.5 2. -3.e1 ]\n", "1 3: -0.5 2 -30", ""},
    {V, "[ -.5 2. -3.e1 ]\n", "3: -0.5 2 -30", ""},
    {KALDI_FLOAT, "+.5\n", ": 0.5", ""},
    {KALDI_DOUBLE, "+.5\n", ": 0.5", ""},
    {FP, "+.5 .5\n", "1: 0.5 0.5", ""},
    {POST, "[ +1 +.5 ]", "1 1: 1: 1: 0.5", ""},
    {M, "rows=1 dim=3 [ +1 +.5 ]", "1 3: 0 0.5 0", ""},
    {M, "[ - ]\n", NULL, NUMBER " \"- ]?\""},
    {M, "[ -. ]\n", NULL, NUMBER},
    {M, "[ --1 ]\n", NULL, NUMBER},
    {M, "[ 1e ]\n", NULL, NUMBER " \"1e ]?\""},
    {M, "[ 1e+ ]\n", NULL, NUMBER},
    {M, "[ -.e5 ]\n", NULL, NUMBER},
    {KALDI_FLOAT, ".e5\n", NULL, NUMBER},
    {KALDI_FLOAT, "+\n", NULL, NUMBER},
    /* K-27, K-28 */
    {M, "[ nan NaN inf\n INF Infinity nan ]\n", "2 3: nan nan inf inf inf nan", ""},
    {V, "[ nan inf iNfInItY ]\n", "3: nan inf inf", ""},
    {P, "[ nan inf\n 1 ]\n", "3: nan inf 1", ""},
    {M, "[ inf] ]\n", NULL, NO_WORD " \"inf] ]?\""},
    {M, "[ infx ]\n", NULL, NO_WORD},
    {M, "[ nan; ]\n", NULL, NO_WORD},
    {M, "[ infinit ]\n", NULL, NO_WORD},
    {V, "[ inf]\n", NULL, NO_WORD},
    {M, "[ -inf ]\n", NULL, NUMBER " \"-inf ]?\""},
    {M, "[ -nan ]\n", NULL, NUMBER},
    {V, "[ -inf ]\n", NULL, NUMBER},
    {KALDI_FLOAT, "inf\n", NULL, NUMBER},
    {KALDI_FLOAT, "nan\n", NULL, NUMBER},
    {KALDI_DOUBLE, "-inf\n", NULL, "expected a number in the range of double, got"},
    {FP, "nan 1\n", NULL, NUMBER},
    {POST, "[ 1 inf ]\n", NULL, NUMBER},
    {M, "rows=1 dim=3 [ 1 nan ]", NULL, NUMBER},
    /* K-29 */
    {M, "[ 1e40 ]\n", NULL, NUMBER " \"1e40 ]?\""},
    {M, "[ -1e40 ]\n", NULL, NUMBER},
    {V, "[ 3.5e38 ]\n", NULL, NUMBER},
    {M, "[ 1e-401 3.4e38 -1e-400 ]\n", "1 3: 0 3.4e+38 -0", ""},
    {KALDI_FLOAT, "1e40\n", NULL, NUMBER},
    {KALDI_DOUBLE, "1e309\n", NULL, "expected a number in the range of double, got \"1e309?\""},
    {POST, "[ 1 1e40 ]\n", NULL, NUMBER},
    /* K-30 */
    {M, "[ 0x10 ]\n", NULL, NO_WORD " \"x10 ]?\""},
    {M, "[ 1,2 ]\n", NULL, NO_WORD " \",2 ]?\""},
    {M, "[ 1x ]\n", NULL, NO_WORD},
    {V, "[ 0x10 ]\n", NULL, "expected white space or \"]\" after the number, got \"x10 ]?\""},
    {V, "[ 1,2 ]\n", NULL, "expected white space or \"]\" after the number"},
    {M, "[ 1.5.2 ]\n", NULL, NO_WORD " \".2 ]?\""},
    {KALDI_DOUBLE, "0x10\n", NULL, NO_LINE " \"x10?\""},
    {M, "[ 1;2\n ]\n", "2 1: 1 2", ""},
    /* K-31 */
    {M, "[ 1-2 ]\n", "1 2: 1 -2", ""},
    {M, "[ 1e5-2.5-3 ]\n", "1 3: 100000 -2.5 -3", ""},
    {V, "[ 1-2 ]\n", NULL, "expected white space or \"]\" after the number, got \"-2 ]?\""},
    {I, "1-2+3\n", "3: 1 -2 3", ""},
    {POST, "[ 1.5-2-3 ]\n", "1 2: 2: 1 -2: 0.5 -3", ""},
    /* K-32 */
    {M, " [\r\n 1 2 \r\n 3 4 ]\r\nb", "2 2: 1 2 3 4", "b"},
    {V, "[ 1 2 ]\r\nb", "2: 1 2", "b"},
    {P, "[ 1 ]\r\nb", "1: 1", "b"},
    {I, "1 2\r\nb", "2: 1 2", "b"},
    {KALDI_INT, "1\r\nb", ": 1", "b"},
    {KALDI_FLOAT, "1\r\nb", ": 1", "b"},
    {KALDI_BOOL, "T\r\nb", ": 1", "b"},
    {T, "t\r\nb", "t", "b"},
    {TS, "t u\r\nb", "t u", "b"},
    {L, "1 ;\r\nb", "1 1: 1: 1", "b"},
    {IP, "1 2\r\nb", "1: 1 2", "b"},
    {POST, "[ 1 2 ]\r\nb", "1 1: 1: 1: 2", "b"},
    {GP, "1 1 3 [ 1 ]\r\nb", "1 1 1: 1: 3: 1: 1", "b"},
    {M, "[ 1 ]\rkey [", "1 1: 1", "ey ["},
    {M, "[ 1 ]\r", "1 1: 1", ""},
    {V, "[ 1 \r\n]", NULL, "expected \"]\" in the line of the vector"},
    /* K-33, K-34 */
    {M, "[ 1 ]b [ 2 ]", "1 1: 1", "b [ 2 ]"},
    {V, "[ 1 ]b [ 2 ]", "1: 1", "b [ 2 ]"},
    {M, "[ 1 ] \nb", "1 1: 1", " \nb"},
    {M, "[ 1 2 \n", NULL, "x.ark: byte 7: " NO_WORD " the end"},
    {M, "[ 1 2", NULL, NO_WORD " the end"},
    {M, "[", NULL, NO_WORD " the end"},
    {M, "  ", NULL, NO_OPEN " the end"},
    {V, "[ 1 2 ", NULL, NO_WORD " the end"},
    {V, "[ 1 2", NULL, "expected white space or \"]\" after the number, got the end"},
    {V, "[ nan", NULL, NO_WORD " the end"},
    {P, "[ 1 ", NULL, NO_WORD " the end"},
    {POST, "[ 1 2\n]", NULL, NO_INT " a newline"},
    {POST, "[ 1\n2 ]", NULL, NUMBER " a newline"},
    {POST, "[ 1 2 ", NULL, NO_INT " the end"},
    /* K-35 */
    {M, "\n [ 1 ]\n", "1 1: 1", ""},
    {V, "\n [ 1 ]\n", "1: 1", ""},
    {P, "\n [ 1 ]\n", "1: 1", ""},
    {M, "\nrows=0\n", "0 0:", "\n"},
    {I, "\n1 2\n", "0:", "1 2\n"},
    {TS, "\n1 2\n", "", "1 2\n"},
    {POST, "\n[ 1 2 ]\n", "0 0:::", "[ 1 2 ]\n"},
    {L, "\n1 ;\n", "0 0::", "1 ;\n"},
    {KALDI_INT, "\n5\n", NULL, NO_INT " a newline"},
    {KALDI_FLOAT, "\n5\n", NULL, NUMBER " a newline"},
    {KALDI_BOOL, "\nT\n", NULL, "expected T or F, got a newline"},
    {T, "\nb c\n", NULL, "x.ark: byte 3: " NO_LINE " \"c?\""},
    {T, "\n t\nu", "t", "u"},
    {GP, "\n0\n", "0 0 0::::", "\n"},
    /* K-36 */
    {I, "1 2.5\n", NULL, NO_INT " \".5?\""},
    {I, "1 2147483648\n", NULL, NO_INT " \"2147483648?\""},
    {I, "-2147483649\n", NULL, NO_INT},
    {I, "99999999999999999999999\n", NULL, NO_INT},
    {I, "2147483647 -2147483648 +3 -0 007 0000000000000012\n", "6: 2147483647 -2147483648 3 0 7 12",
     ""},
    {I, "[ 1 2 ]\n", NULL, NO_INT " \"[ 1 2 ]?\""},
    {I, "0x2\n", NULL, NO_INT " \"x2?\""},
    {I, "- 1\n", NULL, NO_INT},
    {I, "+-1\n", NULL, NO_INT},
    {I, " \t\v\f 1 \t2", "2: 1 2", ""},
    /* K-37, K-38 */
    {KALDI_INT, "5 6\n", NULL, NO_LINE " \"6?\""},
    {KALDI_INT, "5.5\n", NULL, NO_LINE " \".5?\""},
    {KALDI_FLOAT, "5 6\n", NULL, NO_LINE},
    {T, "s x\n", NULL, NO_LINE " \"x?\""},
    {KALDI_BOOL, "1\n", NULL, "expected T or F, got \"1?\""},
    {KALDI_BOOL, "true\n", NULL, "expected T or F, got"},
    {KALDI_BOOL, "True\n", NULL, NO_LINE " \"rue?\""},
    /* K-39 */
    {M, "[ 1 ]", "1 1: 1", ""},
    {V, "[ 1 ]", "1: 1", ""},
    {I, "1 2", "2: 1 2", ""},
    {TS, "a b", "a b", ""},
    {POST, "[ 1 2 ]", "1 1: 1: 1: 2", ""},
    {GP, "0", "0 0 0::::", ""},
    {KALDI_INT, "5", NULL, NO_LINE " the end"},
    {KALDI_FLOAT, "5 ", NULL, NO_LINE " the end"},
    {KALDI_BOOL, "T", NULL, NO_LINE " the end"},
    {T, "t", NULL, NO_LINE " the end"},
    {T, " ", NULL, "expected a token, got the end"},
    {L, "1 ;", NULL, "expected an integer of 32 bits or \";\", got the end"},
    {IP, "1 2", NULL, NO_INT " the end"},
    {FP, "1 2", NULL, NUMBER " the end"},
    {I, "", NULL, "expected an object, got the end"},
    {TS, "", NULL, "expected an object, got the end"},
    {POST, "", NULL, "expected an object, got the end"},
    {M, "", NULL, "expected an object, got the end"},
    {GP, "", NULL, "expected an object, got the end"},
    {GP, "2 0", NULL, NO_INT " the end"},
    /* sparse: sizes, order, matrices that cannot become dense */
    {M, "rows=0 x", "0 0:", " x"},
    {M, "rows=+1trash dim=2trash [ ]x", "1 2: 0 0", "x"},
    {M, "rows= 3 dim=1 [ ]", NULL, "expected rows= and a size up to 2147483647, got \" 3"},
    {M, "rows=-1", NULL, "expected rows="},
    {M, "rows=2147483648", NULL, "expected rows="},
    {M, "row", NULL, "expected rows="},
    {M, "rows=2147483647 dim=2 [ ]", NULL,
     "expected dim= and a size up to 2147483647, got the end"},
    {M, "rows=1 dim=2147483648 [ ]", NULL, "expected dim="},
    {V, "dim=-1 [ ]", NULL, "expected dim="},
    {V, "dim=0 [ ]x", "0:", "x"},
    {V, "dim=3 []", NULL, NO_OPEN},
    {V, "dim=3[ 1 2 ]", NULL, NO_OPEN " \"1 2 ]\""},
    {V, "dim=3\n[\n1\n2\n]", "3: 0 2 0", ""},
    {V, "dim=3 [ 0 1.5 2-1 ]", "3: 1.5 0 -1", ""},
    {V, "dim=3 [ 3 1 ]", NULL, "expected indices that grow, below dim, before this"},
    {V, "dim=3 [ -1 1 ]", NULL, "expected indices that grow"},
    {V, "dim=3 [ 1 1 1 2 ]", NULL, "expected indices that grow"},
    {V, "dim=3 [ 1 1 0 2 ]", NULL, "expected indices that grow"},
    {V, "dim=3 [ 1 ]", NULL, NUMBER " \"]\""},
    {M, "rows=2 dim=2 [ ] dim=3 [ ]", NULL, "expected rows of one dim, not 0"},
    {M, "rows=1 dim=0 [ ]", NULL, "expected rows of one dim, not 0"},
    /* vectors: one line; other white space only before a word */
    {V, "[ 1\n2 ]", NULL, "x.ark: byte 3: expected \"]\" in the line of the vector, got a newline"},
    {V, "[ 1\t2\t]", "2: 1 2", ""},
    {V, "[ \f\n nan 1 ]", "2: nan 1", ""},
    {V, "[ 1\f2 ]", NULL, NO_WORD " \"2 ]\""},
    {V, "[ 1;2 ]", NULL, "expected white space or \"]\" after the number"},
    {V, "rows=1 dim=2 [ ]", NULL, NO_OPEN},
    /* packed: n (n + 1) / 2 numbers in any lines; the old form */
    {P, "[ 1 2 3 4\n5 6 ]", "6: 1 2 3 4 5 6", ""},
    {P, "[ 1 2 ]", NULL, "expected the n (n + 1) / 2 numbers of a triangle before this, got \"]\""},
    {P, "[ 1 ; 2 3 ]", NULL, NO_WORD " \"; 2 3 ]\""},
    {P, "FP 2 1 +2 .5 x", "3: 1 2 0.5", " x"},
    {P, " DP 1\n-3", "1: -3", ""},
    {P, "FP 1 1e40", NULL, NUMBER " \"1e40\""},
    {P, "DP 1 1e309", NULL, "expected a number in the range of double"},
    {P, "FP 0\n", "0:", "\n"},
    {P, "FP -1 ", NULL, "expected a size of at least 0 before this"},
    {P, "FP 46341 1", NULL, "expected at most 46340 rows before this"},
    {P, "FP 46340 1", NULL, NUMBER " the end"},
    {P, "FP 1 nan", NULL, NUMBER},
    {P, "FPX 1 1", NULL, NO_OPEN},
    {P, "FP", NULL, NO_OPEN},
    /* lists and pairs */
    {L, "1;2;;\n", "3 2: 1 1 0: 1 2", ""},
    {L, "1 2 ; 3\n", NULL, "expected an integer of 32 bits or \";\", got a newline"},
    {L, "1.5 ;\n", NULL, "expected an integer of 32 bits or \";\", got \".5 ;?\""},
    {IP, "1 2 ;\n", NULL, "expected two numbers before this, got a newline"},
    {IP, "1 2 ; 3\n", NULL, "expected two numbers before this"},
    {IP, "1 2 3 ; 4 5\n", NULL, "expected two numbers before this, got \"; 4 5?\""},
    {IP, ";\n", NULL, "expected two numbers before this"},
    {IP, "1\n", NULL, "expected two numbers before this"},
    {IP, "1 2;3 4\n", "2: 1 2 3 4", ""},
    {IP, "1.5 2\n", NULL, NO_INT},
    {POST, "1 2 3\n", NULL, NO_OPEN " \"1 2 3?\""},
    {POST, "[ ][ 1 2 ] ]\n", NULL, NO_OPEN " \"]?\""},
    {POST, "[ ][ 1 2 ]\n", "2 1: 0 1: 1: 2", ""},
    {POST, "[ 1 ]\n", NULL, NUMBER " \"]?\""},
    {GP, "-1", NULL, "expected a size of at least 0 before this"},
    {GP, "1 -1", NULL, "expected a size of at least 0 before this"},
    {GP, "2147483647 2147483647", NULL, NO_INT " the end"},
    {GP, "1\n1\n3[ 1 ]\n", "1 1 1: 1: 3: 1: 1", ""},
    {T, "\v t \t\nx", "t", "x"},
    /* types without a text form, and bytes that are no text */
    {M, "\x80\xff", NULL, NO_OPEN " \"??\""},
    {I, "1\xff\n", NULL, NO_INT " \"??\""},
    {TS, "\xff\x80\x01\n", "\xff\x80\x01", ""},
};

/* Measure and decode the sample after some bytes, and compare. */
static void check_sample(const struct sample *s, size_t before, size_t step, enum dtype dtype)
{
    size_t len = strlen(s->text);
    struct kaldi_object object = {.start = 77};
    struct diag d = DIAG_INIT;
    int r = measure(s->text, len, before, step, s->type, &object, &d);
    AUTO_FREE char *shown = NULL;

    if (!s->shown) {
        if (r != -EBADMSG || (!before && !strstr(d.text, s->rest)))
            fail_msg("\"%s\": %d, \"%s\", expected \"%s\"", s->text, r, d.text, s->rest);
        assert_int_equal(object.start, 77);
        return;
    }
    if (r < 0)
        fail_msg("\"%s\": %s", s->text, d.text);
    assert_int_equal(object.type, s->type);
    assert_int_equal(object.store, KALDI_TEXT);
    assert_int_equal(object.start, before);
    if (object.len > len || strcmp(s->text + object.len, s->rest) != 0)
        fail_msg("\"%s\": %llu bytes", s->text, (unsigned long long)object.len);
    shown = show(&object, s->text, dtype);
    if (strcmp(shown, s->shown) != 0)
        fail_msg("\"%s\": \"%s\", expected \"%s\"", s->text, shown, s->shown);
}

UNIT_TEST(test_samples__measured_and_decoded_as_kaldi_reads_them)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        check_sample(&samples[i], 0, 0, DTYPE_F8);
        check_sample(&samples[i], 0, 0, DTYPE_F4);
    }
}

/* Texts that Kaldi writes: what they are is written as the same text, after a head. */
UNIT_TEST(test_written__same_text)
{
    static const struct {
        enum kaldi_type type;
        const char *text;
    } rows[] = {
        {M, " [\n  1 2 \n  3 4 ]\n"},
        {M, " [ ]\n"},
        {V, " [ 5.763 -5.77 7.665 -4.073 ]\n"},
        {V, " [ ]\n"},
        {P, "[\n1 \n2 3 \n4 5 6 ]\n"},
        {P, "[ ]\n"},
        {KALDI_INT, "-7 \n"},
        {KALDI_FLOAT, "1.5 \n"},
        {KALDI_DOUBLE, "3.141593 \n"},
        {KALDI_BOOL, "T \n"},
        {KALDI_BOOL, "F \n"},
        {I, "1 2 3 2000000000 -5 \n"},
        {I, "\n"},
        {L, "1 2 ; 3 ; ; \n"},
        {L, "\n"},
        {IP, "1 2 ; 3 4 \n"},
        {IP, "\n"},
        {FP, "1.5 2 ; 3.25 -4 \n"},
        {POST, "[ 1 0.5 2 0.5 ] [ ] [ 7 1 ] \n"},
        {POST, "\n"},
        {GP, "2 1 3  [ 0.25 0.75 ]\n0 \n"},
        {GP, "0 \n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kaldi_written w = {.type = rows[i].type, .as_text = true, .wide = i % 2};
        uint8_t array[KALDI_ARRAYS_MAX][64], *bytes = NULL;
        struct kaldi_object object;
        struct diag d = DIAG_INIT;
        size_t len;

        assert_int_equal(
            measure(rows[i].text, strlen(rows[i].text), 0, 0, rows[i].type, &object, &d), 0);
        memcpy(w.dim, object.dim, sizeof(w.dim));
        for (unsigned k = 0; arrays[rows[i].type][k]; k++) {
            w.array[k] = array[k];
            assert_int_equal(kaldi_decode(&object, (const uint8_t *)rows[i].text, k,
                                          w.wide ? DTYPE_F8 : DTYPE_F4, array[k], "x", &d),
                             0);
        }
        assert_int_equal(kaldi_write(&w, i, &bytes, &len), 0);
        assert_int_equal(len, strlen(rows[i].text));
        assert_memory_equal(bytes + i, rows[i].text, len);
        free(bytes);
    }
}

/* Windows that end anywhere, by their size and by white space before the object. */
UNIT_TEST(test_windows__same_objects)
{
    static const size_t steps[] = {1, 2, 3, 5, 7, 11, 50};

    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        for (size_t k = 0; k < ARRAY_LEN(steps); k++)
            check_sample(&samples[i], k * 17, steps[k], DTYPE_F8);
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        size_t len = strlen(samples[i].text);
        char text[1024];

        for (size_t end = 128; end <= 512; end *= 2)
            for (size_t k = 0; k < len && samples[i].shown && samples[i].text[0] != '\n'; k++) {
                struct sample moved = samples[i];

                snprintf(text, sizeof(text), "%*s%s", (int)(end - k), "", samples[i].text);
                moved.text = text;
                check_sample(&moved, 0, 0, DTYPE_F4);
            }
    }
}

/* A truncated object is an error, or another object that can be decoded. */
UNIT_TEST(test_cut__error_or_shorter_object)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        for (size_t len = 0; len <= strlen(samples[i].text); len++) {
            struct kaldi_object object;
            struct diag d = DIAG_INIT;
            int r = measure(samples[i].text, len, 0, 3, samples[i].type, &object, &d);

            assert_int_equal(r < 0, d.set);
            if (r == 0) {
                AUTO_FREE char *shown = show(&object, samples[i].text, DTYPE_F4);

                assert_true(object.len <= len);
            }
        }
}

/* Decode bytes that differ from the measured ones. */
static void decode_changed(const struct kaldi_object *object, const char *bytes)
{
    for (unsigned i = 0; arrays[object->type][i]; i++) {
        AUTO_TEXT struct text t = {0};
        struct diag d = DIAG_INIT;
        int r = show_array(&t, object, bytes, i, i % 2 ? DTYPE_F4 : DTYPE_F8, &d);

        assert_int_equal(r, r ? -EBADMSG : 0);
        assert_int_equal(r < 0, d.set);
    }
}

UNIT_TEST(test_changed__never_outside)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        for (size_t k = 0; k < ARRAY_LEN(samples); k++) {
            struct kaldi_object object;
            char other[256] = "";

            if (!samples[i].shown || measure(samples[i].text, strlen(samples[i].text), 0, 0,
                                             samples[i].type, &object, NULL) < 0)
                continue;
            snprintf(other, sizeof(other), "%s", samples[k].text);
            decode_changed(&object, other);
        }
}

UNIT_TEST(test_changed__other_dims_or_end__ebadmsg)
{
    static const struct {
        enum kaldi_type type;
        const char *was, *is;
    } changes[] = {
        {M, "[ 1 2\n 3 4 ]\n", "[ 1 2 3\n 4 ]\n"},
        {M, "[ 1 2\n 3 4 ]\n", "[ 1 2 3  4 ]\n"},
        {M, "[ 1 2\n 3 4 ]\n", "[ 1 2 3 45 ]\n"},
        {M, "[ 1 2 ]\n", "[ 12 ] \n"},
        {M, "[ 1 2 ]\n", "[ 1 2 ]x"},
        {M, "[ 1 2 ]\n", "[ 1 2  \n"},
        {M, "[ 1 2 ]\n", "[ 1e99 ]"},
        {V, "[ 1 2 ]\n", "[ 123 ]\n"},
        {V, "dim=2 [ 1 1 ]", "dim=4 [ 3 1 ]"},
        {M, "rows=1 dim=2 [ ]", "rows=2 dim=1 [ ]"},
        {M, "rows=1 dim=2 [ ]", "rows=1 dim=3 [ ]"},
        {I, "1 2 3\n", "1 234\n"},
        {I, "1 2 3\n", "1 2 \n\n"},
        {L, "1 2 ;\n", "1 ; ;\n"},
        {POST, "[ 1 2 ]\n", "[ ] [ ]\n"},
        {GP, "1 1 3 [ 1 ]", "1 1 3 [ ]\n"},
        {KALDI_BOOL, "T\n", "X\n"},
        {KALDI_INT, "123\n", "12\n\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        AUTO_TEXT struct text t = {0};
        struct kaldi_object object;
        struct diag d = DIAG_INIT;
        char bytes[64] = "";

        assert_int_equal(
            measure(changes[i].was, strlen(changes[i].was), 5, 0, changes[i].type, &object, &d), 0);
        snprintf(bytes, sizeof(bytes), "%s", changes[i].is);
        if (show_array(&t, &object, bytes, 0, DTYPE_F4, &d) != -EBADMSG)
            fail_msg("\"%s\" is read as \"%s\"", changes[i].is, changes[i].was);
        assert_diag_has(&d, "x.ark: byte ");
    }
}

/* Both widths are rounded once, from the text; the quick and slow paths agree. */
UNIT_TEST(test_numbers__rounded_once)
{
    static const char *const numbers[] = {
        "0.1",
        "-0.1",
        "16777217",
        "16777219.000001",
        "1.00000017881393432617187499",
        "1e-45",
        "1e-46",
        "7e-46",
        "-0",
        "-0.0",
        "3.4028235677973365e38",
        "0.333333",
        "0.3",
        "-12.7",
        "123.456",
        "0.7",
        "123456.8",
        "1234567.",
        "-9999999.9999999",
        "0.00000005960464477539062",
        "-.0000001",
        "12345678.12345678",
        "9007199254740993",
        "0.30000000000000004",
        "2.5e-7",
    };

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char text[128];
        float narrow, want_narrow = strtof(numbers[i], NULL);
        double wide, want_wide = strtod(numbers[i], NULL);
        struct kaldi_object object;
        struct diag d = DIAG_INIT;

        snprintf(text, sizeof(text), "[ %s]", numbers[i]);
        assert_int_equal(measure(text, strlen(text), 0, 0, V, &object, &d), 0);
        assert_int_equal(
            kaldi_decode(&object, (uint8_t *)text, 0, DTYPE_F4, (uint8_t *)&narrow, "x", &d), 0);
        assert_int_equal(
            kaldi_decode(&object, (uint8_t *)text, 0, DTYPE_F8, (uint8_t *)&wide, "x", &d), 0);
        assert_memory_equal(&narrow, &want_narrow, sizeof(narrow));
        assert_memory_equal(&wide, &want_wide, sizeof(wide));
    }
}

/* A double out of the range of float can be measured, and is infinite as float. */
UNIT_TEST(test_double__beyond_float)
{
    struct kaldi_object object;
    struct diag d = DIAG_INIT;
    AUTO_FREE char *wide = NULL, *narrow = NULL;

    assert_int_equal(measure("-1e300\n", 7, 0, 0, KALDI_DOUBLE, &object, &d), 0);
    wide = show(&object, "-1e300\n", DTYPE_F8);
    narrow = show(&object, "-1e300\n", DTYPE_F4);
    assert_string_equal(wide, ": -1e+300");
    assert_string_equal(narrow, ": -inf");
    free(narrow);
    assert_int_equal(measure("DP 1 1e40 ", 10, 0, 0, P, &object, &d), 0);
    narrow = show(&object, "DP 1 1e40 ", DTYPE_F4);
    assert_string_equal(narrow, "1: inf");
}

/* A text is start and then n times piece. As type it must have that many elements, and fill dst to
 * its end. */
static void check_long(enum kaldi_type type, const char *start, const char *piece, size_t n,
                       const char *end, uint64_t first, uint64_t second)
{
    size_t each = strlen(piece), len = strlen(start), i = 0;
    AUTO_FREE char *text = malloc(len + n * each + strlen(end) + 1);
    AUTO_FREE char *shown = NULL;
    struct kaldi_object object;
    struct diag d = DIAG_INIT;

    assert_non_null(text);
    for (memcpy(text, start, len); i < n; i++, len += each)
        memcpy(text + len, piece, each);
    memcpy(text + len, end, strlen(end) + 1);
    len += strlen(end);
    if (measure(text, len, 1, 0, type, &object, &d) < 0)
        fail_msg("%s", d.text);
    assert_int_equal(object.len, len);
    assert_int_equal(object.dim[0], first);
    assert_int_equal(object.dim[1], second);
    shown = show(&object, text, DTYPE_F4);
}

UNIT_TEST(test_long__windows_slide)
{
    check_long(M, "[", "\n 1.25 -3.125e-3 0.00001234567", 20000, " ]\n", 20000, 3);
    check_long(M, "[ ", "12 ", 100000, "]\n", 1, 100000);
    check_long(V, "[ ", "-12.0000001 ", 50000, "]\n", 50000, 0);
    check_long(I, "", "12345 ", 50000, "\n", 50000, 0);
    check_long(I, "", "  ", 50000, "7\n", 1, 0);
    check_long(L, "", "1 -2 ; ", 30000, "\n", 30000, 60000);
    check_long(POST, "", "[ 1 0.5 2 0.123456789 ] ", 20000, "\n", 20000, 40000);
    check_long(GP, "3000 ", "1 3  [ 0.25 0.75 ]\n", 3000, "", 3000, 3000);
    check_long(T, " \n", "token", 50000, "\n", 250000, 2);
    check_long(TS, "", "token ", 50000, "\n", 299999, 0);
    check_long(M, "rows=2000 ", "dim=5 [ 1 2.5 4 -1 ] ", 1999, "dim=5 [ ]", 2000, 5);
    check_long(M, "[ 0", "0", 15000, "1 ]\n", 1, 1);
    check_long(M, "[ 0.", "3", 15000, " ]\n", 1, 1);
    check_long(I, "0", "0", 15000, "12\n", 1, 0);
}

UNIT_TEST(test_long__number_without_end__ebadmsg)
{
    enum { LEN = 40000 };
    AUTO_FREE char *text = malloc(LEN);
    struct kaldi_object object;
    struct diag d = DIAG_INIT, again = DIAG_INIT;

    memset(text, '0', LEN);
    memcpy(text, "[ ", 2);
    assert_int_equal(measure(text, LEN, 0, 0, M, &object, &d), -EBADMSG);
    assert_diag_has(&d, "byte 2: " NUMBER " \"00000000000000000000\"");
    assert_int_equal(measure(text + 2, LEN - 2, 0, 0, I, &object, &again), -EBADMSG);
    assert_diag_has(&again, "byte 0: " NO_INT);
}

/* A NUL is an ordinary byte: neither an end nor white space. */
UNIT_TEST(test_nul__in_text)
{
    struct kaldi_object object;
    struct diag d = DIAG_INIT;

    assert_int_equal(measure("a\0 b\n", 5, 0, 0, TS, &object, &d), 0);
    assert_int_equal(object.len, 5);
    assert_int_equal(measure("a\0b\n", 4, 0, 0, T, &object, &d), 0);
    assert_int_equal(object.len, 4);
    assert_int_equal(measure("[ 1 \0 ]", 7, 0, 0, M, &object, &d), -EBADMSG);
    assert_int_equal(measure("[ inf\0 ]", 8, 0, 0, M, &object, &d), -EBADMSG);
    assert_int_equal(measure("[\0 1 ]", 7, 0, 0, M, &object, &d), -EBADMSG);
    assert_int_equal(measure("1 \0\n", 4, 0, 0, I, &object, &d), -EBADMSG);
    assert_int_equal(measure("1 ;\0\n", 5, 0, 0, L, &object, &d), -EBADMSG);
}

UNIT_TEST(test_read_fails__its_error)
{
    struct blob_faults faults = {.fail_read = 2};
    AUTO_KALDI_IN struct kaldi_in in = {0};
    AUTO_BLOB struct blob *blob = NULL;
    struct kaldi_object object;
    struct diag d = DIAG_INIT;
    char line[1000];

    memset(line, ' ', sizeof(line));
    blob = memory_blob_new("x.ark", line, sizeof(line), sizeof(line), &faults);
    kaldi_in_init(&in, blob);
    /* The line looks as if it ended where the read failed. */
    assert_int_equal(kaldi_measure(&in, 0, I, &object, &d), -EIO);
    assert_diag_has(&d, "x.ark: byte ");
}

UNIT_TEST(test_tokens__without_white_space_around)
{
    static const struct {
        enum kaldi_type type;
        const char *text, *tokens;
    } cases[] = {{TS, "a b \n", "a b"},   {TS, " \ta  b\r\n", "a  b"},
                 {TS, " \t\r\n", ""},     {TS, "x", "x"},
                 {TS, "\n", ""},          {T, "a\n", "a"},
                 {T, " \t\n a\r\n", "a"}, {TS, " x y", "x y"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t size = strlen(cases[i].text);
        struct kaldi_object object;
        struct diag d = DIAG_INIT;

        assert_int_equal(measure(cases[i].text, size, 3, 0, cases[i].type, &object, &d), 0);
        assert_int_equal(object.dim[0], strlen(cases[i].tokens));
        assert_true(object.dim[0] + object.dim[1] <= size);
        assert_memory_equal(cases[i].text + object.dim[1], cases[i].tokens, object.dim[0]);
        assert_int_equal(object.is_open, cases[i].text[object.len - 1] != '\n');
    }
}
