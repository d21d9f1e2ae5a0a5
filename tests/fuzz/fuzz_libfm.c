/* Bytes as LibFM text. A line is refused with a place in it, or its entries fit into its bytes; an
 * entry keeps its field when entries are sorted. As a dataset each file of its samples can be read,
 * or a row of it cannot; the matrix by columns has the entries of the one by rows. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/libsvm/rows.h"
#include "fuzz.h"
#include "saw.h"
#include "support/idx_make.h"
#include "support/memory_blob.h"
#include "support/one_store.h"
#include "support/render.h"

extern const struct format format_libfm;

#define COLUMNS_MOST 100000 /* more take long to compare */

static uint64_t hash_entry(uint32_t field, uint32_t index, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return ((uint64_t)field * UINT64_C(0x9e3779b97f4a7c15)) ^
           ((uint64_t)index * UINT64_C(0xc2b2ae3d27d4eb4f)) ^
           ((uint64_t)bits * UINT64_C(0x165667b19e3779f9));
}

static uint64_t sum_entries(const struct libsvm_row *row)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < row->n; i++)
        sum += hash_entry(row->field[i], row->index[i], row->value[i]);
    return sum;
}

static void check_line(const uint8_t *line, size_t len)
{
    size_t capacity = len / 2 + 1;
    AUTO_FREE uint8_t *text = malloc(len + LIBSVM_PAD);
    AUTO_FREE uint32_t *numbers = malloc(capacity * 3 * sizeof(*numbers));
    struct libsvm_fault fault;
    struct libsvm_row row = {.capacity = capacity,
                             .index = numbers,
                             .field = numbers + capacity,
                             .value = (float *)(void *)(numbers + 2 * capacity)};
    uint64_t sum;

    memcpy(text, line, len);
    memset(text + len, 0, LIBSVM_PAD);
    if (libsvm_line_parse(text, len, LIBSVM_ANY | LIBSVM_FIELD, &row, &fault) < 0) {
        FUZZ_CHECK(fault.at <= len && fault.expected);
        return;
    }
    FUZZ_CHECK(row.n <= capacity && !(row.columns & LIBSVM_QID));
    sum = sum_entries(&row);
    FUZZ_CHECK(libsvm_row_sort(row.index, row.field, row.value, row.n) == 0);
    FUZZ_CHECK(sum_entries(&row) == sum);
    for (uint64_t i = 1; i < row.n; i++)
        FUZZ_CHECK(row.index[i - 1] <= row.index[i]);
}

/* The bytes of a member of batch 0 of all samples, as the field has them. */
static int read_member(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct bytes *ret)
{
    struct form form = {0};
    int r = f->ops->form(ds, f, sel, &form);
    uint64_t len = form.width;

    for (unsigned i = 0; i < form.ndim; i++)
        len *= form.dim[i];
    if (r < 0)
        return r;
    *ret = (struct bytes){malloc(len + 1), len};
    return len ? f->ops->read(READ_WAITS, ds, f, sel, 0, (size_t)len, ret->at, NULL) : 0;
}

/* The sums of the entries of both matrices, without their rows. */
static void check_matrices(const struct dataset *ds, const struct selection *sel)
{
    struct bytes member[2][3] = {0}, ends = {0};
    static const char *const names[] = {"data", "indices", "field"};
    unsigned found[2] = {0};
    uint64_t sum[2] = {0}, n;
    int r = 0;

    for (unsigned i = 0; i < ds->n_fields && r == 0; i++) {
        const struct field *f = &ds->field[i];
        bool csc = field_is_in(f, IN_CSC), csr = field_is_in(f, IN_NPZ_BATCHES);

        for (unsigned k = 0; k < ARRAY_LEN(names) && csc != csr && r == 0; k++)
            if (!strcmp(f->name, names[k])) {
                r = read_member(ds, f, sel, &member[csc][k]);
                found[csc]++;
            }
        if (!strcmp(f->name, "indptr") && csc && r == 0)
            r = read_member(ds, f, sel, &ends);
    }
    n = member[0][0].len / 4;
    if (r == 0) {
        FUZZ_CHECK(found[0] == 3 && found[1] == 3);
        FUZZ_CHECK(member[1][0].len == n * 4 && ends.len >= 4);
        FUZZ_CHECK(load_le32(ends.at + ends.len - 4) == n);
        for (uint64_t i = 0, column = 0; i < n; i++) {
            float value[2];

            while (load_le32(ends.at + 4 * (column + 1)) <= i)
                column++;
            for (unsigned m = 0; m < 2; m++) {
                uint32_t bits = load_le32(member[m][0].at + 4 * i);

                memcpy(&value[m], &bits, sizeof(bits));
            }
            sum[0] += hash_entry(load_le32(member[0][2].at + 4 * i),
                                 load_le32(member[0][1].at + 4 * i), value[0]);
            sum[1] += hash_entry(load_le32(member[1][2].at + 4 * i), (uint32_t)column, value[1]);
        }
        FUZZ_CHECK(sum[0] == sum[1]);
    } else {
        FUZZ_CHECK(r == -EBADMSG || r == -EFBIG);
    }
    for (unsigned k = 0; k < 6; k++)
        free(member[k / 3][k % 3].at);
    free(ends.at);
}

static void open_file(const uint8_t *data, size_t len, enum index_base base, bool skip)
{
    struct blob *blob = memory_blob_new("x.ffm", data, len, len, NULL);
    struct format_setup setup = {
        .keep = &no_store,
        .options = {.index_base = base, .bad_rows = skip ? BAD_ROWS_SKIP : BAD_ROWS_ERROR}};
    AUTO_FREE uint64_t *all = NULL;
    struct memo *memo;
    struct found found;

    FUZZ_CHECK(memo_new(1 << 20, &memo) == 0);
    setup.memo = memo;
    FUZZ_CHECK(format_open(&format_libfm, &blob, 1, &setup, &found) == 0);
    if (found.n && found.item[0].ds) {
        struct dataset *ds = found.item[0].ds;
        struct list_selection list;

        while (!dataset_prepare(ds))
            ;
        FUZZ_CHECK(dataset_state(ds) == DATASET_READY);
        all = calloc(ds->samples + 1, sizeof(*all));
        for (uint64_t i = 0; i < ds->samples; i++)
            all[i] = ds->samples - 1 - i;
        list_selection_init(&list, all, ds->samples);
        if (ds->samples && dataset_field(ds, "x")->item_bytes <= 4 * COLUMNS_MOST)
            check_matrices(ds, &list.sel);
    }
    saw_found(&found);
    found_release(&found);
    memo_free(memo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint64_t way = fuzz_hash(data, len);

    for (size_t at = 0, n; at < len; at += n + 1) {
        for (n = 0; at + n < len && data[at + n] != '\n' && data[at + n] != '\r';)
            n++;
        check_line(data + at, n);
    }
    if (fuzz_takes(way, 0, 3))
        open_file(data, len, INDEX_AS_IS, false);
    if (fuzz_takes(way, 1, 3))
        open_file(data, len, INDEX_AUTO, true);
    if (fuzz_takes(way, 2, 3))
        open_file(data, len, INDEX_FROM_ONE, true);
    return 0;
}
