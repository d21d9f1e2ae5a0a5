/* epochfs-bench-train: a training loop without the training: it reads a batch, waits as for a GPU,
 * then reads the next one.
 *
 *   epochfs-bench-train files [OPTIONS] DIR PATTERN COUNT
 *
 * Reads the files of an epoch, in order. In PATTERN a run of # becomes the number of the file,
 * zero-padded to the length of the run, and @ the epoch.
 *
 *   epochfs-bench-train http [OPTIONS] PORT PATH SKIP SAMPLE ORDER
 *
 * The same by a loader without a cache: an HTTP request for each sample, over persistent
 * connections to 127.0.0.1. Sample i is the SAMPLE bytes of PATH from SKIP + i * SAMPLE on; ORDER
 * is a file of uint64, the sample numbers of all epochs in sequence.
 *
 *   -g US        a batch takes so long after it was read (0)
 *   -e EPOCHS    (1)
 *   -s BATCHES   that are not counted at the start of an epoch, in wait and bytes (0)
 *   -l           list the folder of each epoch, as ls -l does, before its first file is read
 *   -m           files: map them, and copy from there
 *   -f FIRST     files: from this one on (0)
 *   -t STEP      files: only every STEP-th (1)
 *   -n FILES     files: so many are a batch (1)
 *   -b BATCH     http: samples in a batch (32)
 *   -a BATCHES   http: that are fetched ahead while one computes (0)
 *   -j N         http: connections (8)
 *
 * Prints a line for each epoch:
 *
 *   microseconds microseconds-waited bytes checksum microseconds-waited-for-the-first-batch
 *
 * The checksum covers the bytes of the files after their npy headers. It is made during the compute
 * time of -g, so it costs nothing if that is longer. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { BUFFER_SIZE = 16 << 20, HEADER_SIZE = 4096, MAX_CONNECTIONS = 64 };

/* Set by the command line, then constant. */
struct setup {
    uint64_t compute_ns;
    uint64_t epochs;
    uint64_t skip_batches;
    bool lists;
    bool maps;
    uint64_t first;
    uint64_t step;
    uint64_t together; /* files of a batch */
    uint64_t batch;
    uint64_t ahead;
    uint64_t connections;
};

/* The measurements of an epoch so far. */
struct epoch {
    uint64_t start; /* nanoseconds */
    uint64_t batches;
    uint64_t waited, first_wait; /* nanoseconds */
    uint64_t bytes;
    uint64_t sum;
};

static uint8_t *buffer; /* [BUFFER_SIZE], of files */

static void sleep_until(uint64_t when)
{
    struct timespec t = {.tv_sec = (time_t)(when / 1000000000u),
                         .tv_nsec = (long)(when % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* The length of the npy header at the start of data; 0: none. */
static size_t npy_header(const uint8_t *data, size_t len)
{
    size_t end;

    if (len < 10 || memcmp(data, "\x93NUMPY\x01", 7))
        return 0;
    end = 10u + data[8] + 256u * data[9];
    return end <= len ? end : 0;
}

/* Compute for the batch that was read since begin. */
static void compute(const struct setup *setup, struct epoch *epoch, uint64_t begin,
                    const uint8_t *data, size_t len)
{
    uint64_t now = nanoseconds();
    size_t skip = npy_header(data, len);

    if (!epoch->batches)
        epoch->first_wait = now - begin;
    if (epoch->batches >= setup->skip_batches) {
        epoch->waited += now - begin;
        epoch->bytes += len;
    }
    epoch->sum = mix(epoch->sum ^ checksum(data + skip, len - skip, epoch->batches));
    epoch->batches++;
    if (setup->compute_ns && epoch->batches % setup->together == 0)
        sleep_until(now + setup->compute_ns);
}

static void put_epoch(const struct epoch *epoch)
{
    printf("%" PRIu64 " %.1f %" PRIu64 " %016" PRIx64 " %.1f\n",
           (nanoseconds() - epoch->start) / 1000, (double)epoch->waited / 1000.0, epoch->bytes,
           epoch->sum, (double)epoch->first_wait / 1000.0);
    fflush(stdout);
}

/* ---- files ---- */

static void make_name(char name[NAME_SIZE], const char *pattern, uint64_t file, uint64_t epoch)
{
    size_t at = 0;

    for (const char *p = pattern; *p && at < NAME_SIZE - 64;) {
        size_t run = strspn(p, "#");

        if (run) {
            at = put_number(name, at, file, run < 20 ? run : 20);
            p += run;
        } else if (*p == '@') {
            at = put_number(name, at, epoch, 1);
            p++;
        } else {
            name[at++] = *p++;
        }
    }
    name[at] = '\0';
}

static void list_folder(const char *name)
{
    char folder[NAME_SIZE];
    char *slash;
    DIR *dir;

    snprintf(folder, sizeof(folder), "%s", name);
    slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    dir = opendir(slash ? folder : ".");
    if (!dir)
        die(folder, errno);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;

        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            die(entry->d_name, errno);
    }
    closedir(dir);
}

static size_t map_file(int fd, const char *name)
{
    struct stat st;
    size_t len;
    void *map;

    if (fstat(fd, &st) < 0)
        die(name, errno);
    len = st.st_size < BUFFER_SIZE ? (size_t)st.st_size : BUFFER_SIZE;
    if (!len)
        return 0;
    map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        die(name, errno);
    memcpy(buffer, map, len);
    munmap(map, len);
    return len;
}

static size_t read_file(const struct setup *setup, const char *name)
{
    size_t got = 0;
    ssize_t n = 1;
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        die(name, errno);
    if (setup->maps) {
        got = map_file(fd, name);
    } else {
        while (got < BUFFER_SIZE && (n = read(fd, buffer + got, BUFFER_SIZE - got)) > 0)
            got += (size_t)n;
        if (n < 0)
            die(name, errno);
    }
    if (got == BUFFER_SIZE)
        die(name, EFBIG);
    close(fd);
    return got;
}

static int command_files(const struct setup *setup, char **argv)
{
    uint64_t count = number(argv[2]);

    buffer = allocate(BUFFER_SIZE, 1);
    memset(buffer, 1, BUFFER_SIZE); /* no page faults while the clock runs */
    if (chdir(argv[0]) < 0)
        die(argv[0], errno);
    for (uint64_t e = 0; e < setup->epochs; e++) {
        struct epoch epoch = {.start = nanoseconds()};
        char name[NAME_SIZE];

        for (uint64_t i = setup->first; i < count; i += setup->step) {
            uint64_t begin = nanoseconds();
            size_t len;

            make_name(name, argv[1], i, e);
            if (i == setup->first && setup->lists)
                list_folder(name);
            len = read_file(setup, name);
            compute(setup, &epoch, begin, buffer, len);
        }
        put_epoch(&epoch);
    }
    free(buffer);
    return 0;
}

/* ---- http ---- */

struct loader {
    /* Constant: */
    const struct setup *setup;
    in_port_t port;
    const char *path;
    uint64_t skip, sample;
    const uint64_t *order;
    uint64_t samples, epochs_samples; /* all; of an epoch */
    uint64_t slots;                   /* batches that fit into memory */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Guarded by mutex: */
    uint64_t next;    /* sample to be fetched */
    uint64_t allowed; /* samples before this one may be */
    uint64_t *left;   /* [slots] samples of the batch that are not here yet */
    uint8_t *data;    /* [slots * batch * sample] */
};

/* A batch never spans two epochs. */
static uint64_t batches_of(const struct loader *l)
{
    return (l->epochs_samples + l->setup->batch - 1) / l->setup->batch;
}

static uint64_t first_of(const struct loader *l, uint64_t batch)
{
    uint64_t epoch = batch / batches_of(l), i = batch % batches_of(l);

    return epoch * l->epochs_samples + i * l->setup->batch;
}

static uint64_t batch_of(const struct loader *l, uint64_t sample)
{
    return sample / l->epochs_samples * batches_of(l) +
           sample % l->epochs_samples / l->setup->batch;
}

static int open_connection(const struct loader *l)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(l->port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        die("connect", errno);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* Fetch exactly the bytes [off, off + len) of the path. Returns the connection, which may be a new
 * one: servers close a connection after some number of requests. */
static int fetch(const struct loader *l, int fd, uint64_t off, uint8_t *ret, size_t len)
{
    char head[HEADER_SIZE + 1], *body = NULL;
    size_t got = 0, had;
    ssize_t n = snprintf(head, sizeof(head),
                         "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=%" PRIu64 "-%" PRIu64
                         "\r\n\r\n",
                         l->path, off, off + len - 1);

    if (send(fd, head, (size_t)n, MSG_NOSIGNAL) != n)
        goto again;
    while (!body) {
        n = recv(fd, head + got, HEADER_SIZE - got, 0);
        if (n <= 0 && !got)
            goto again;
        if (n <= 0)
            die("response", n < 0 ? errno : EBADMSG);
        got += (size_t)n;
        head[got] = '\0';
        body = strstr(head, "\r\n\r\n");
    }
    if (strncmp(head, "HTTP/1.1 206", 12))
        die(head, EBADMSG);
    body += 4;
    had = got - (size_t)(body - head);
    if (had > len)
        die("longer response", EBADMSG);
    memcpy(ret, body, had);
    for (; had < len; had += (size_t)n) {
        n = recv(fd, ret + had, len - had, 0);
        if (n <= 0)
            die("body", n < 0 ? errno : EBADMSG);
    }
    if (strcasestr(head, "\r\nconnection: close")) {
        close(fd);
        fd = open_connection(l);
    }
    return fd;
again:
    close(fd);
    return fetch(l, open_connection(l), off, ret, len);
}

static void *loader_main(void *arg)
{
    struct loader *l = arg;
    int fd = open_connection(l);

    pthread_mutex_lock(&l->mutex);
    while (l->next < l->samples) {
        uint64_t i = l->next, batch, place;

        if (i >= l->allowed) {
            pthread_cond_wait(&l->changed, &l->mutex);
            continue;
        }
        l->next++;
        pthread_mutex_unlock(&l->mutex);
        batch = batch_of(l, i);
        place = batch % l->slots * l->setup->batch + (i - first_of(l, batch));
        fd =
            fetch(l, fd, l->skip + l->order[i] * l->sample, l->data + place * l->sample, l->sample);
        pthread_mutex_lock(&l->mutex);
        if (!--l->left[batch % l->slots])
            pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->mutex);
    close(fd);
    return NULL;
}

/* Allow fetching the batches before until. */
static void allow(struct loader *l, uint64_t until)
{
    uint64_t all = batches_of(l) * l->setup->epochs;

    if (until > all)
        until = all;
    for (uint64_t b = batch_of(l, l->allowed); l->allowed < l->samples && b < until; b++) {
        uint64_t end = b + 1 < all ? first_of(l, b + 1) : l->samples;

        l->left[b % l->slots] = end - l->allowed;
        l->allowed = end;
    }
    pthread_cond_broadcast(&l->changed);
}

static void train(struct loader *l)
{
    uint64_t batch = 0;

    for (uint64_t e = 0; e < l->setup->epochs; e++) {
        struct epoch epoch = {.start = nanoseconds()};

        for (uint64_t i = 0; i < batches_of(l); i++, batch++) {
            uint64_t begin = nanoseconds(), n;
            uint64_t end =
                i + 1 < batches_of(l) ? first_of(l, batch + 1) : (e + 1) * l->epochs_samples;

            pthread_mutex_lock(&l->mutex);
            allow(l, batch + 1 + l->setup->ahead);
            while (l->left[batch % l->slots])
                pthread_cond_wait(&l->changed, &l->mutex);
            pthread_mutex_unlock(&l->mutex);
            n = end - first_of(l, batch);
            compute(l->setup, &epoch, begin,
                    l->data + batch % l->slots * l->setup->batch * l->sample, n * l->sample);
        }
        put_epoch(&epoch);
    }
}

static uint64_t *read_order(const char *name, uint64_t *ret_n)
{
    FILE *in = fopen(name, "re");
    struct stat st;
    uint64_t *order;

    if (!in || fstat(fileno(in), &st) < 0)
        die(name, errno);
    *ret_n = (uint64_t)st.st_size / sizeof(*order);
    order = allocate(*ret_n, sizeof(*order));
    if (fread(order, sizeof(*order), *ret_n, in) != *ret_n)
        die(name, errno);
    fclose(in);
    return order;
}

static int command_http(const struct setup *setup, char **argv)
{
    pthread_t threads[MAX_CONNECTIONS];
    struct loader l = {.setup = setup,
                       .port = (in_port_t)number(argv[0]),
                       .path = argv[1],
                       .skip = number(argv[2]),
                       .sample = number(argv[3]),
                       .slots = setup->ahead + 1,
                       .mutex = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    uint64_t size, *order = read_order(argv[4], &l.samples);

    l.order = order;
    l.epochs_samples = l.samples / setup->epochs;
    if (!l.epochs_samples || l.samples % setup->epochs || !l.sample)
        return 2;
    size = l.slots * setup->batch * l.sample;
    l.left = allocate(l.slots, sizeof(*l.left));
    l.data = allocate(size, 1);
    memset(l.data, 1, size);
    for (uint64_t i = 0; i < setup->connections; i++) {
        int error = pthread_create(&threads[i], NULL, loader_main, &l);

        if (error)
            die("thread", error);
    }
    train(&l);
    for (uint64_t i = 0; i < setup->connections; i++)
        pthread_join(threads[i], NULL);
    free(order);
    free(l.left);
    free(l.data);
    return 0;
}

int main(int argc, char **argv)
{
    struct setup setup = {.epochs = 1, .step = 1, .together = 1, .batch = 32, .connections = 8};
    const char *command = argc > 1 ? argv[1] : "";
    int r = 2;

    for (int c; argc > 1 && (c = getopt(argc - 1, argv + 1, "a:b:e:f:g:j:lmn:s:t:")) != -1;) {
        uint64_t value = optarg ? number(optarg) : 0;

        switch (c) {
        case 'a':
            setup.ahead = value;
            break;
        case 'b':
            setup.batch = value;
            break;
        case 'e':
            setup.epochs = value;
            break;
        case 'f':
            setup.first = value;
            break;
        case 'g':
            setup.compute_ns = value * 1000;
            break;
        case 'j':
            setup.connections = value;
            break;
        case 'l':
            setup.lists = true;
            break;
        case 'm':
            setup.maps = true;
            break;
        case 'n':
            setup.together = value;
            break;
        case 's':
            setup.skip_batches = value;
            break;
        case 't':
            setup.step = value;
            break;
        default:
            setup.step = 0;
        }
    }
    if (setup.batch && setup.epochs && setup.step && setup.together && setup.connections &&
        setup.connections <= MAX_CONNECTIONS) {
        if (!strcmp(command, "files") && argc - 1 - optind == 3)
            r = command_files(&setup, argv + 1 + optind);
        else if (!strcmp(command, "http") && argc - 1 - optind == 5)
            r = command_http(&setup, argv + 1 + optind);
    }
    if (r == 2)
        fputs("usage: epochfs-bench-train files|http ..., see the top of bench/train.c\n", stderr);
    return r;
}
