/* epochfs-bench: reads files the way a training job does, and makes the files to compare with.
 *
 *   epochfs-bench read [-cl] [-n OPENS] [-p PASSES] [-r SEED] [-s BYTES] [-t THREADS]
 *                      DIR PATTERN COUNT
 *
 * open + read + close of COUNT files below DIR, each once, in an order shuffled by SEED; with -n,
 * of OPENS random ones instead. In PATTERN a run of # becomes the number of the file, zero-padded
 * to the length of the run, and @ a random number below 1000 (a seed, an epoch). Reads at most
 * BYTES of each file. Prints one line:
 *
 *   microseconds files bytes checksum median-microseconds
 *
 * The checksum, with -c, covers every byte and the place of its file in the order. The median, with
 * -l, is that of single opens. Without the options both are 0, because they cost time inside the
 * measured part.
 *
 *   epochfs-bench split FILE SKIP RECORD DIR PATTERN [BATCH SHAPE]
 *
 * Writes each RECORD bytes of FILE after the first SKIP into a file of its own, or each BATCH of
 * records as an npy file of unsigned bytes, SHAPE ("28, 28") being that of one record.
 *
 *   epochfs-bench npy SHAPE
 *
 * Prints the npy header of an array of unsigned bytes.
 *
 * The order depends on SEED and COUNT alone, so two runs on two folders read the same files in the
 * same order. The program first changes to DIR, so that its depth costs nothing: both sides resolve
 * one name per file. A file that cannot be read ends the run with exit code 1: a figure always
 * counts complete reads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { MAX_THREADS = 64, DEFAULT_BYTES = 4 << 20 };

/* What to read: set by the command line, then constant. */
struct plan {
    const char *pattern;
    uint64_t count; /* files that exist */
    uint64_t opens; /* of one pass */
    uint64_t passes;
    uint64_t seed;
    uint64_t bytes;
    uint64_t threads;
    bool checksum;
    bool latency;
    uint64_t *order;      /* [opens] */
    uint64_t *latency_ns; /* [opens], of the last pass, if latency */
};

/* One thread: reads every threads-th file of the order, from first on. */
struct reader {
    const struct plan *plan;
    pthread_t thread;
    uint64_t first;
    uint64_t bytes;
    uint64_t sum;
    int error;
    char name[NAME_SIZE]; /* of the last file, for the message */
    uint8_t *buffer;      /* [plan->bytes] */
};

static void make_name(char name[NAME_SIZE], const char *pattern, uint64_t file, uint64_t draw)
{
    size_t at = 0;

    for (const char *p = pattern; *p && at < NAME_SIZE - 64;) {
        size_t run = strspn(p, "#");

        if (run) {
            at = put_number(name, at, file, run < 20 ? run : 20);
            p += run;
        } else if (*p == '@') {
            draw = mix(draw);
            at = put_number(name, at, draw % 1000, 1);
            p++;
        } else {
            name[at++] = *p++;
        }
    }
    name[at] = '\0';
}

static int read_file(struct reader *r, uint64_t place)
{
    const struct plan *plan = r->plan;
    size_t got = 0;
    ssize_t n = 1;
    int fd, error;

    make_name(r->name, plan->pattern, plan->order[place], plan->seed * 1000003 + place);
    fd = open(r->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    while (got < plan->bytes && (n = read(fd, r->buffer + got, plan->bytes - got)) > 0)
        got += (size_t)n;
    error = n < 0 ? errno : 0;
    close(fd);
    r->bytes += got;
    if (plan->checksum)
        r->sum += checksum(r->buffer, got, place);
    return error;
}

static void *reader_main(void *arg)
{
    struct reader *r = arg;
    const struct plan *plan = r->plan;

    for (uint64_t pass = 0; pass < plan->passes; pass++) {
        for (uint64_t i = r->first; i < plan->opens && !r->error; i += plan->threads) {
            uint64_t start = plan->latency ? nanoseconds() : 0;

            r->error = read_file(r, i);
            if (plan->latency)
                plan->latency_ns[i] = nanoseconds() - start;
        }
    }
    return NULL;
}

static void make_order(struct plan *plan, bool draws)
{
    plan->order = allocate(plan->opens, sizeof(*plan->order));
    for (uint64_t i = 0; i < plan->opens; i++)
        plan->order[i] = draws ? mix(mix(plan->seed) + i) % plan->count : i;
    for (uint64_t i = plan->opens; !draws && i > 1; i--) {
        uint64_t k = mix(mix(plan->seed) + i) % i, last = plan->order[i - 1];

        plan->order[i - 1] = plan->order[k];
        plan->order[k] = last;
    }
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static double median_us(const struct plan *plan)
{
    if (!plan->latency || !plan->opens)
        return 0;
    qsort(plan->latency_ns, plan->opens, sizeof(*plan->latency_ns), compare_u64);
    return (double)plan->latency_ns[plan->opens / 2] / 1000.0;
}

static void run(const struct plan *plan)
{
    struct reader *readers = allocate(plan->threads, sizeof(*readers));
    uint64_t start, elapsed, bytes = 0, sum = 0;

    for (uint64_t t = 0; t < plan->threads; t++) {
        readers[t] = (struct reader){.plan = plan, .first = t};
        readers[t].buffer = allocate(plan->bytes, 1);
        memset(readers[t].buffer, 1, plan->bytes); /* no page faults while the clock runs */
    }
    start = nanoseconds();
    for (uint64_t t = 1; t < plan->threads; t++) {
        int error = pthread_create(&readers[t].thread, NULL, reader_main, &readers[t]);

        if (error)
            die("thread", error);
    }
    reader_main(&readers[0]);
    for (uint64_t t = 1; t < plan->threads; t++)
        pthread_join(readers[t].thread, NULL);
    elapsed = nanoseconds() - start;
    for (uint64_t t = 0; t < plan->threads; t++) {
        if (readers[t].error)
            die(readers[t].name, readers[t].error);
        bytes += readers[t].bytes;
        sum += readers[t].sum;
        free(readers[t].buffer);
    }
    free(readers);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64 " %.1f\n", elapsed / 1000,
           plan->opens * plan->passes, bytes, sum, median_us(plan));
}

static int command_read(int argc, char **argv)
{
    struct plan plan = {.passes = 1, .seed = 1, .bytes = DEFAULT_BYTES, .threads = 1};
    bool draws = false;

    for (int c; (c = getopt(argc, argv, "cln:p:r:s:t:")) != -1;) {
        uint64_t value = optarg ? number(optarg) : 0;

        switch (c) {
        case 'c':
            plan.checksum = true;
            break;
        case 'l':
            plan.latency = true;
            break;
        case 'n':
            plan.opens = value;
            draws = true;
            break;
        case 'p':
            plan.passes = value;
            break;
        case 'r':
            plan.seed = value;
            break;
        case 's':
            plan.bytes = value;
            break;
        case 't':
            plan.threads = value;
            break;
        default:
            return 2;
        }
    }
    if (argc - optind != 3 || !plan.threads || plan.threads > MAX_THREADS)
        return 2;
    if (chdir(argv[optind]) < 0)
        die(argv[optind], errno);
    plan.pattern = argv[optind + 1];
    plan.count = number(argv[optind + 2]);
    if (!draws)
        plan.opens = plan.count;
    if (!plan.count)
        return 2;
    make_order(&plan, draws);
    if (plan.latency)
        plan.latency_ns = allocate(plan.opens, sizeof(*plan.latency_ns));
    run(&plan);
    free(plan.order);
    free(plan.latency_ns);
    return 0;
}

/* As numpy.save writes it: padded with spaces so that the data begin at a multiple of 64. */
static void put_npy_header(FILE *out, const char *shape)
{
    char text[256];
    int n = snprintf(text, sizeof(text),
                     "{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }", shape);
    int len = (10 + n + 1 + 63) / 64 * 64 - 10;

    if (n < 0 || n >= (int)sizeof(text))
        die("shape too long", EINVAL);
    fwrite("\x93NUMPY\x01", 1, 7, out);
    fputc(0, out);
    fputc(len & 255, out);
    fputc(len >> 8, out);
    fprintf(out, "%-*s\n", len - 1, text);
}

static void write_file(const char *name, const char *shape, const uint8_t *data, size_t len)
{
    FILE *out = fopen(name, "wxe");

    if (!out)
        die(name, errno);
    if (shape)
        put_npy_header(out, shape);
    fwrite(data, 1, len, out);
    if (fclose(out) != 0)
        die(name, errno);
}

static int command_split(int argc, char **argv)
{
    FILE *in;
    uint64_t skip, record, batch = 1;
    uint8_t *data;

    if (argc != 6 && argc != 8)
        return 2;
    skip = number(argv[2]);
    record = number(argv[3]);
    if (argc == 8)
        batch = number(argv[6]);
    in = fopen(argv[1], "re");
    if (!in || fseeko(in, (off_t)skip, SEEK_SET) < 0)
        die(argv[1], errno);
    if (chdir(argv[4]) < 0)
        die(argv[4], errno);
    data = allocate(batch, record);
    for (uint64_t file = 0;; file++) {
        char name[NAME_SIZE], shape[128];
        size_t n = fread(data, record, batch, in);

        if (!n)
            break;
        make_name(name, argv[5], file, 0);
        snprintf(shape, sizeof(shape), "%zu, %s", n, argc == 8 ? argv[7] : "");
        write_file(name, argc == 8 ? shape : NULL, data, n * record);
    }
    free(data);
    fclose(in);
    return 0;
}

static int command_npy(const char *shape)
{
    put_npy_header(stdout, shape);
    return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    int r = 2;

    if (!strcmp(command, "read"))
        r = command_read(argc - 1, argv + 1);
    else if (!strcmp(command, "split"))
        r = command_split(argc - 1, argv + 1);
    else if (!strcmp(command, "npy") && argc == 3)
        r = command_npy(argv[2]);
    if (r == 2)
        fputs("usage: epochfs-bench read|split|npy ..., see the top of bench/readers.c\n", stderr);
    return r;
}
