/* Tables and lists that name pictures: what each is read as. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/blob.h"
#include "base/json.h"
#include "format/annotations/table.h"
#include "support/failing_alloc.h"
#include "support/memory_blob.h"
#include "support/picture_list.h"
#include "support/unit.h"

/* The columns as text: "name:type=1,2,-;" with * before the label and - for a hole. */
static void add_cell(struct text *out, const struct value_column *c, uint64_t row)
{
    const uint8_t *items;
    uint64_t n = value_items(c, row, &items);

    if (value_is_hole(c, row)) {
        text_add(out, "-");
    } else if (c->form == VALUE_TEXT) {
        text_add(out, "%.*s", (int)n, (const char *)items);
    } else if (c->dtype == DTYPE_F8) {
        double v;

        memcpy(&v, items, 8);
        text_add(out, "%g", v);
    } else {
        for (unsigned i = 0; i < (c->width ? c->width : 1); i++) {
            int64_t v;

            memcpy(&v, items + 8 * i, 8);
            text_add(out, i ? " %" PRId64 : "%" PRId64, v);
        }
    }
}

static void describe(const struct picture_table *t, struct text *out)
{
    const struct value_columns *columns = &t->columns;

    for (size_t i = 0; i < t->rows; i++) {
        uint32_t picture = t->picture[i];

        text_add(out, picture == PICTURE_NONE ? "- " : "%u ", picture);
    }
    for (unsigned i = 0; i < columns->n; i++) {
        const struct value_column *c = &columns->column[i];
        const char *type = c->form == VALUE_TEXT ? "text" : c->dtype == DTYPE_F8 ? "real" : "int";

        assert_int_equal(c->rows, t->rows);
        text_add(out, "%s%s:%s=", i == t->label ? "*" : "", c->name, type);
        for (uint64_t row = 0; row < c->rows; row++) {
            text_add(out, row ? "," : "");
            add_cell(out, c, row);
        }
        text_add(out, ";");
    }
    if (t->rival)
        text_add(out, "not %s;", t->rival);
}

static struct diag d;

static int read_bytes(const char *file, const char *paths, const char *bytes, size_t len,
                      const char *said, struct picture_table **t, struct text *reason)
{
    struct picture_list list = PICTURE_LIST(paths);
    AUTO_BLOB struct blob *blob = memory_blob_new(file, bytes, len, len, NULL);
    AUTO_JSON json_t *json = said ? json_loads(said, 0, NULL) : NULL;

    assert_true(blob && !said == !json);
    d = DIAG_INIT;
    return picture_table_read(blob, file, &list.names, json, t, reason, &d);
}

/* said: as a recipe says it. */
static void check_with(const char *file, const char *paths, const char *bytes, const char *said,
                       const char *expected)
{
    AUTO_PICTURE_TABLE struct picture_table *t = NULL;
    AUTO_TEXT struct text out = {0}, reason = {0};
    int r = read_bytes(file, paths, bytes, strlen(bytes), said, &t, &reason);

    if (r == 0)
        describe(t, &out);
    else if (r == -EDOM)
        text_add(&out, "aside: %s", reason.data);
    else
        text_add(&out, "%s", diag_text(&d, r));
    if (strcmp(out.data, expected) != 0)
        fail_msg("%s \"%s\":\n     got %s\nexpected %s", file, bytes, out.data, expected);
}

static void check(const char *file, const char *paths, const char *bytes, const char *expected)
{
    check_with(file, paths, bytes, NULL, expected);
}

/* The tables of known data sets. */
UNIT_TEST(test_table__known)
{
    check("labels.csv", "train/00b.jpg train/00c.jpg train/1cd.jpg train/021.jpg ",
          "id,breed\n00b,bull\n00c,dingo\n1cd,bull\n021,dingo\n",
          "0 1 2 3 *breed:text=bull,dingo,bull,dingo;");
    check("train_masks.csv", "train/a_01.jpg train/a_02.jpg train/b_01.jpg train/b_02.jpg ",
          "img,rle_mask\na_01.jpg,10 4\na_02.jpg,11 4\nb_01.jpg,12 4\nb_02.jpg,13 4\n",
          "0 1 2 3 rle_mask:text=10 4,11 4,12 4,13 4;");
    check("train.csv", "images/Train_0.jpg images/Train_1.jpg images/Train_2.jpg ",
          "image_id,healthy,rust\nTrain_0,0,1\nTrain_1,1,0\nTrain_2,1,0\n",
          "0 1 2 healthy:int=0,1,1;rust:int=1,0,0;");
    check("test.csv", "images/Test_0.jpg images/Test_1.jpg ", "image_id\nTest_0\nTest_1\n", "0 1 ");
    check("Meta.csv", "Meta/0.png Meta/1.png Meta/10.png ",
          "Path,ClassId,ShapeId,SignId\nMeta/0.png,0,1,3.29\nMeta/1.png,1,1,3.29\n"
          "Meta/10.png,10,1,3.27\n",
          "0 1 2 *ClassId:int=0,1,10;ShapeId:int=1,1,1;SignId:real=3.29,3.29,3.27;");
    check("Test.csv", "Test/00000.png Test/00001.png ",
          "Width,Roi.X1,ClassId,Path\n53,6,10,Test/00000.png\n42,5,1,Test/00001.png\n",
          "0 1 Width:int=53,42;Roi.X1:int=6,5;*ClassId:int=10,1;");
    check("val_annotations.txt", "val/images/val_0.JPEG val/images/val_1.JPEG ",
          "val_0.JPEG\tn02124075\t0\t32\t44\t62\nval_1.JPEG\tn01443537\t52\t55\t57\t59\n",
          "0 1 column_1:text=n02124075,n01443537;column_2:int=0,52;column_3:int=32,55;"
          "column_4:int=44,57;column_5:int=62,59;");
    check("val.txt", "val/v_1.JPEG val/v_2.JPEG val/v_3.JPEG ",
          "v_1.JPEG 65\nv_2.JPEG 970\nv_3.JPEG 230\n", "0 1 2 *label:int=65,970,230;");
    check("val.txt",
          "a/1.JPEG a/2.JPEG a/3.JPEG a/4.JPEG a/5.JPEG a/6.JPEG a/7.JPEG a/8.JPEG a/9.JPEG "
          "a/10.JPEG ", /* ImageNet's: the row, and no class */
          "1 1\n2 2\n3 3\n4 4\n5 5\n6 6\n7 7\n8 8\n9 9\n10 10\n",
          "0 1 2 3 4 5 6 7 8 9 row:int=1,2,3,4,5,6,7,8,9,10;");
    check("trainval.txt", "images/A_100.jpg images/A_101.jpg images/b_100.jpg ",
          "A_100 1 1 1\nA_101 1 1 1\nb_100 2 2 1\n", "0 1 2 values:int=1 1 1,1 1 1,2 2 1;");
    check("list.txt", "images/A_100.jpg images/b_100.jpg ",
          "#Image CLASS-ID SPECIES BREED ID\n#ID: 1:37 Class ids\nA_100 1 1 1\nb_100 2 2 1\n",
          "0 1 values:int=1 1 1,2 2 1;");
    check("meta/train.txt", "images/pie/1.jpg images/waffles/1.jpg ", "pie/1\nwaffles/1", "0 1 ");
    check("person_train.txt", "JPEGImages/2007_27.jpg JPEGImages/2008_02.jpg ",
          "2007_27  1\n2008_02 -1\n", "0 1 *label:int=1,-1;");
    check("labels.csv", "0.png 1.png 2.png ", ",id,label\n0,2,a\n1,0,b\n2,1,a\n",
          "2 0 1 column_0:int=0,1,2;*label:text=a,b,a;"); /* the numbers of rows of pandas */
    check("labels.csv", "0.png 1.png 2.png 3.png 4.png ", "label,id\n1,4\n0,1\n1,2\n0,3\n1,0\n",
          "4 1 2 3 0 *label:int=1,0,1,0,1;");
    check("pairs.csv", "a.jpg b.jpg c.jpg d.jpg ", "left,right,same\na,b,1\nc,d,0\n",
          "0 2 right:text=b,d;same:int=1,0;not right;");
    check("images_variant_train.txt",
          "images/1025794.jpg images/1340192.jpg images/7.jpg images/8.jpg ",
          "1025794 Boeing 707-320\n1340192 Boeing 707-320\n7 A380\n8 A380\n",
          "0 1 2 3 *label:text=Boeing 707-320,Boeing 707-320,A380,A380;");
    check("captions.txt", "Images/a.jpg Images/b.jpg ",
          "image,caption\na.jpg,A child .\na.jpg,\"Two, or more\"\nb.jpg,A \"dog\" .\n",
          "0 0 1 caption:text=A child .,Two, or more,A \"dog\" .;");
}

UNIT_TEST(test_table__aside)
{
    static const char cub[] = "images/001.Alb/Alb_0001_79.jpg images/001.Alb/Alb_0002_55.jpg ";

    check("images.txt", cub, "1 001.Alb/Alb_0001_79.jpg\n2 001.Alb/Alb_0002_55.jpg\n",
          "aside: no row names a picture");
    check("bounding_boxes.txt", cub, "1 60.0 27.0\n2 139.0 30.0\n",
          "aside: no row names a picture");
    check("labels.csv", "cat/cat1.jpg ", "name,age\nrex,3\n", "aside: no row names a picture");
    check("a.csv", "a.jpg ", "image,x\na.jpg,1\nb.jpg,2\nc.jpg,3\n",
          "aside: only 1 of 3 rows name a picture");
    check("a.csv", "a.jpg ", "", "aside: it has no rows");
    check("a.txt", "a.jpg ", "\n \n# x\n", "aside: it has no rows");
    check("a.csv", "a.jpg ", "image,label\n", "aside: no row names a picture");
    check("a.csv", "x/1.jpg y/1.jpg z/2.jpg ", "id,c\n2,0\n1,0\n",
          "aside: line 3 names several pictures");
    /* What is malformed and names no pictures is no table. */
    check("README.txt", "a.jpg ", "Title\n\n\"It is, a\ttext\nof, many\n",
          "aside: no row names a picture");
    check("a.csv", "a.jpg ", "\"no end", "aside: it has no rows");
}

/* Header or not, and what columns are called. */
UNIT_TEST(test_table__header)
{
    check("a.csv", "a.jpg b.jpg ", "a.jpg,1\nb.jpg,2\n", "0 1 column_1:int=1,2;");
    /* The first row's picture is missing. */
    check("a.csv", "a.jpg b.jpg ", "0.jpg,cat\na.jpg,cat\nb.jpg,dog\nb.jpg,dog\n",
          "- 0 1 1 *column_1:text=cat,cat,dog,dog;");
    check("a.csv", "001.jpg 002.jpg ", "000,x\n001,y\n002,z\n", "- 0 1 column_1:text=x,y,z;");
    check("a.csv", "i1.jpg i2.jpg ", "i0,cat\ni1,dog\ni2,cow\n",
          "- 0 1 column_1:text=cat,dog,cow;");
    check("a.csv", "a.jpg b.jpg ", "z,5\na,6\nb,7\n", "- 0 1 column_1:int=5,6,7;");
    check("a.txt", "a.jpg b.jpg ", "z\na\nb\n", "- 0 1 ");
    check("a.txt", "a.jpg b.jpg ", "image class\na.jpg 3\nb.jpg 4\n", "0 1 *class:int=3,4;");
    check("a.csv", "a.jpg b.jpg ", "image,0,1\na.jpg,.5,1\nb.jpg,.25,1e1\n",
          "0 1 0:text=.5,.25;1:real=1,10;");
    /* An index of pandas has the stems of numbered pictures. */
    check("a.csv", "0.jpg 1.jpg 2.jpg ", ",Filename,Label\n0,2.jpg,x\n1,1.jpg,x\n2,0.jpg,y\n",
          "2 1 0 column_0:int=0,1,2;*Label:text=x,x,y;");
    check("a.csv", "a.jpg b.jpg ", "f,x,x,,m/s\na.jpg,1,2,3,4\nb.jpg,1,2,3,4\n",
          "0 1 x:int=1,1;column_2:int=2,2;column_3:int=3,3;m_s:int=4,4;");
    check("a.csv", "a.jpg b.jpg ", "f,column_2,\na.jpg,1,2\nb.jpg,3,4\n",
          "0 1 column_2:int=1,3;column_2_0:int=2,4;");
}

/* Names with an extension or a folder go before more names without; one of three will not do. */
UNIT_TEST(test_table__key)
{
    check("a.csv", "a.jpg b.jpg c.jpg ", "x,y\na.jpg,b.jpg\nb,c.jpg\nc,no.jpg\n",
          "1 2 - x:text=a.jpg,b,c;");
    check("a.csv", "p/1.jpg p/2.jpg p/3.jpg ", "x,y\n1,p/1\n2,p/2\n3,p/no\n", "0 1 - x:int=1,2,3;");
}

UNIT_TEST(test_table__separators)
{
    check("a.csv", "a.jpg b.jpg ", "\xef\xbb\xbfimage;label\r\na.jpg;1,5\r\n\r\nb.jpg;2\r\n",
          "0 1 *label:text=1,5,2;");
    check("a.tsv", "a.jpg b.jpg ", "image\tcaption\na.jpg\tx, y\nb.jpg\tz\n",
          "0 1 caption:text=x, y,z;");
    check("a.tsv", "a.jpg b.jpg ", "image\tt,u\na.jpg\tx, y\nb.jpg\tz, w\n",
          "0 1 t,u:text=x, y,z, w;");
    check("a.lst", "a.jpg b.jpg ", "a.jpg;1\nb.jpg;2\n", "0 1 column_1:int=1,2;");
    check("a.csv", "a.jpg b.jpg ", "f, l\n\"a.jpg\", \"x\"\"\"\nb.jpg,\n",
          "0 1 l:text=\"x\"\"\",-;");
}

UNIT_TEST(test_table__types)
{
    check("a.csv", "a.jpg b.jpg ",
          "f,int,real,text,none,mixed\na.jpg, -1 ,1.5,007,,\nb.jpg,,2,8,,9223372036854775808\n",
          "0 1 int:int=-1,-;real:real=1.5,2;text:text=007,8;none:int=-,-;"
          "mixed:text=-,9223372036854775808;");
    check("a.csv", "a.jpg b.jpg ", "f,t\na.jpg,\"line 1\nline, 2\"\nb.jpg,\"\"\"q\"\"\"\n",
          "0 1 t:text=line 1\nline, 2,\"q\";");
    check("a.csv", "a.jpg b.jpg ", "f,t\na.jpg,1:\nb.jpg,2\n", "0 1 t:text=1:,2;");
    check("a.txt", "a.jpg b.jpg ", "a.jpg 1 2\nb.jpg 1\n", "0 1 text:text=1 2,1;");
    check("a.txt", "a.jpg b.jpg ", "a 707-320\nb A380\n", "0 1 *label:text=707-320,A380;");
    check("a.txt", "a.jpg b.jpg ", "a.jpg caption1 dog\nb.jpg caption2\n",
          "0 1 text:text=caption1 dog,caption2;");
    check("a.txt", "a.jpg b.jpg ", "a.jpg m/a.png\nb.jpg n/b.png\n",
          "0 1 text:text=m/a.png,n/b.png;");
    check("a.txt", "a.jpg b.jpg ", "a.jpg\nb.jpg 3\n", "0 1 *label:int=-,3;");
    check("my list.txt", "my+a.jpg #b.jpg ", "#b.jpg\n# c\n  my+a.jpg  \n", "1 0 ");
}

/* The label by its name goes before one by its values; reals have no classes. */
UNIT_TEST(test_table__label)
{
    static const char *const names[] = {"Label",    "labels",   "CLASS", "class_id",
                                        "Class ID", "category", "Target"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char bytes[100], expected[100];

        snprintf(bytes, sizeof(bytes), "f,x,%s\na.jpg,1,2\nb.jpg,3,4\n", names[i]);
        snprintf(expected, sizeof(expected), "0 1 x:int=1,3;*%s:int=2,4;", names[i]);
        check("a.csv", "a.jpg b.jpg ", bytes, expected);
    }
    check("a.csv", "a.jpg b.jpg ", "f,target,class\na.jpg,1,2\nb.jpg,3,4\n",
          "0 1 target:int=1,3;*class:int=2,4;");
    check("a.csv", "a.jpg b.jpg ", "f,target\na.jpg,.5\nb.jpg,1\n", "0 1 *target:text=.5,1;");
    check("a.csv", "a.jpg b.jpg ", "f,target\na.jpg,0.5\nb.jpg,0.5\n", "0 1 target:real=0.5,0.5;");
    check("a.csv", "a.jpg b.jpg ", "f,subclass\na.jpg,1\nb.jpg,2\n", "0 1 subclass:int=1,2;");
}

UNIT_TEST(test_table__options)
{
    static const char bytes[] = "f;g;h\na.jpg;1;2\nx;3;4\ny;5;6\n";

    check_with("a.csv", "a.jpg ", bytes, "{\"key\": \"f\", \"label\": \"h\"}",
               "0 - - g:int=1,3,5;*h:int=2,4,6;");
    check_with("a.csv", "a.jpg ", bytes, "{\"key\": \"0\", \"columns\": [\"h\"]}",
               "0 - - h:int=2,4,6;");
    check_with("a.csv", "a.jpg ", bytes, "{\"key\": \"g\"}",
               "aside: only 0 of 3 rows name a picture");
    check_with("a.csv", "a.jpg ", bytes, "{\"key\": \"k\"}",
               "a.csv: it has no column \"k\": expected one of its first row, \"f\" to \"h\", or a "
               "number from 0 to 2");
    check_with("a.csv", "a.jpg ", bytes, "{\"key\": \"3\"}",
               "a.csv: it has no column \"3\": expected one of its first row, \"f\" to \"h\", or a "
               "number from 0 to 2");
    check_with("a.csv", "a.jpg b.jpg ", "a.jpg,1,2\nb.jpg,3,4\n",
               "{\"label\": 2, \"columns\": [1]}", "0 1 column_1:int=1,3;*column_2:int=2,4;");
    check_with("a.csv", "a.jpg b.jpg ", "a.jpg x,1\nb.jpg y,2\n", "{\"separator\": \" \"}",
               "0 1 text:text=x,1,y,2;");
}

UNIT_TEST(test_table__malformed)
{
    AUTO_TEXT struct text reason = {0};
    static const char zero[] = "a.jpg,1\nb.jpg,\0\n";
    struct picture_table *t = NULL;

    check("a.csv", "a.jpg b.jpg ", "f,x\na.jpg,1\nb.jpg,1,2\n",
          "a.csv, line 3: expected 2 cells, as in the first row, got 3");
    check("a.csv", "a.jpg b.jpg ", "f,x\na.jpg,1\n\"b.jpg,1\n",
          "a.csv, line 3: byte 0: a quote that does not end");
    assert_int_equal(read_bytes("a.csv", "a.jpg b.jpg ", zero, sizeof(zero) - 1, NULL, &t, &reason),
                     -EBADMSG);
    assert_diag_has(&d, "a.csv, line 2: expected text, got a byte 0");
}

/* A cell that fits no type of the first 1,000 rows; pictures that are the last ones of a table. */
UNIT_TEST(test_table__long)
{
    AUTO_PICTURE_TABLE struct picture_table *t = NULL, *late = NULL;
    AUTO_TEXT struct text bytes = {0}, reason = {0};
    const struct value_columns *columns;
    const uint8_t *items;

    text_add(&bytes, "f,a,b,c\n");
    for (int i = 0; i < 5000; i++)
        text_add(&bytes, "%s.jpg,%d,%s,%s\n",
                 i < 5   ? "no"
                 : i % 2 ? "a"
                         : "b",
                 i % 2, i == 4000 ? "x" : "1", i == 4001 ? "1.5" : "1");
    assert_int_equal(read_bytes("a.csv", "a.jpg b.jpg ", bytes.data, bytes.len, NULL, &t, &reason),
                     0);
    columns = &t->columns;
    assert_int_equal(t->rows, 5000);
    assert_int_equal(t->unmatched, 5);
    assert_int_equal(t->matched, 2);
    assert_int_equal(t->repeated, 2);
    assert_int_equal(columns->column[0].dtype, DTYPE_I8);
    assert_int_equal(columns->column[1].form, VALUE_TEXT);
    assert_int_equal(columns->column[2].dtype, DTYPE_F8);
    assert_int_equal(value_items(&columns->column[1], 4000, &items), 1);
    assert_int_equal(*items, 'x');

    bytes.len = 0;
    for (int i = 0; i < 5000; i++)
        text_add(&bytes, "%s%d.jpg %d\n", i < 2500 ? "no" : "a/", i % 10, i % 2);
    assert_int_equal(read_bytes("a.txt",
                                "a/0.jpg a/1.jpg a/2.jpg a/3.jpg a/4.jpg a/5.jpg a/6.jpg "
                                "a/7.jpg a/8.jpg a/9.jpg ",
                                bytes.data, bytes.len, NULL, &late, &reason),
                     0);
    assert_int_equal(late->unmatched, 2500);
    assert_int_equal(late->repeated, 10);
}

/* Rows and cells at the limits. */
UNIT_TEST(test_table__large)
{
    struct picture_table *t = NULL;
    AUTO_TEXT struct text bytes = {0}, reason = {0};
    AUTO_FREE char *filled = malloc(1 << 20);

    assert_non_null(filled);
    memset(filled, ',', 1 << 20);
    text_add(&bytes, "a.jpg");
    text_add_bytes(&bytes, filled, 1000000);
    assert_int_equal(read_bytes("a.csv", "a.jpg ", bytes.data, bytes.len, NULL, &t, &reason),
                     -EDOM);
    bytes.len = 0;
    memset(filled, 'x', 1 << 20);
    text_add(&bytes, "f,t\na.jpg,1\na.jpg,");
    text_add_bytes(&bytes, filled, (1 << 20) - 10);
    assert_int_equal(read_bytes("a.csv", "a.jpg ", bytes.data, bytes.len, NULL, &t, &reason), 0);
    assert_int_equal(t->columns.column[0].len, (1 << 20) - 9);
    picture_table_free(t);
    text_add_bytes(&bytes, filled, 100);
    assert_int_equal(read_bytes("a.csv", "a.jpg ", bytes.data, bytes.len, NULL, &t, &reason),
                     -EBADMSG);
    assert_diag_has(&d, "a.csv, line 3: expected at most 1048576 bytes, got more");
}

/* Each allocation fails once: -ENOMEM, and nothing leaks. */
UNIT_TEST(test_table__no_memory)
{
    static const char bytes[] = "id,f,label,x\n0,a.jpg,\"c \"\"\",1\n1,b.jpg,c,\n2,a.jpg,d,1.5\n";
    static const char *const files[] = {"a.csv", "a.txt"};
    struct picture_list list = PICTURE_LIST("a.jpg b.jpg ");
    const size_t len = sizeof(bytes) - 1;
    AUTO_BLOB struct blob *blob = memory_blob_new("a.csv", bytes, len, len, NULL);

    for (int i = 0; i < 2; i++) {
        bool failed = true;

        for (unsigned long n = 1; failed; n++) {
            struct picture_table *t = NULL;
            struct text reason = {0};
            int r;

            d = DIAG_INIT;
            failing_alloc_begin(n);
            r = picture_table_read(blob, files[i], &list.names, NULL, &t, &reason, &d);
            picture_table_free(t);
            text_release(&reason);
            assert_int_equal(failing_alloc_live(), 0);
            failed = failing_alloc_end();
            assert_int_equal(r, failed ? -ENOMEM : 0);
        }
    }
}
