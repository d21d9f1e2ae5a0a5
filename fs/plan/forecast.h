/* What an epoch will take: the arithmetic of `epochfs plan`. Nothing is read here.
 *
 * Bytes come in blocks, in the order in which the plan needs them, at a constant rate, while
 * batches are computed one after another, each when its last byte is here. So a batch may be begun
 * when both it and the batch before allow it, and an epoch ends
 *
 *     max over k of (bytes of batches 1 .. k) / rate + (compute of batches k .. last)
 *
 * after its begin. Samples are taken as equally large, and what is staged as equally spread. */
#ifndef EPOCHFS_FS_PLAN_FORECAST_H
#define EPOCHFS_FS_PLAN_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

enum forecast_keep { FORECAST_PIN, FORECAST_ONCE, FORECAST_PLAN };

struct forecast_task {
    /* The dataset: */
    double bytes; /* of its source files */
    double here;  /* of them, that are staged */
    uint64_t samples;
    /* The plan: */
    uint64_t list;     /* samples of its part */
    uint64_t elements; /* samples that the rank reads in an epoch */
    uint64_t batch, batches;
    bool is_shuffled; /* else the stored order */
    uint64_t window;  /* of a shuffle; 0: full */
    /* The cache: */
    double block;    /* bytes */
    double capacity; /* bytes that it can take, beside what is here */
    enum forecast_keep keep;
    bool ahead; /* bytes are staged before they are read */
    /* The job: */
    double rate;    /* bytes per second of the remote; 0: not known */
    double compute; /* seconds a batch; < 0: not known */
    uint64_t epochs;
};

/* Seconds that cannot be told, for want of a rate or of compute, are NAN. */
struct forecast_epoch {
    double fetched; /* bytes of the remote */
    double seconds;
    double wait; /* of them, that nothing is computed */
};

struct forecast {
    double read;       /* bytes that an epoch's samples have */
    double epoch;      /* bytes of blocks that an epoch needs */
    double all_epochs; /* the same of any number of epochs: of a rank that is shuffled it is more */
    double here, missing; /* of `epoch`, before the job */
    bool fits;            /* all_epochs, in the cache */
    double holds;         /* of all_epochs, that the cache can hold */
    double staging;       /* seconds in which the first epoch's bytes come */
    double first_batch;   /* seconds until the first batch is here */
    double compute;       /* seconds, an epoch */
    double hides_at;      /* seconds a batch from which on only the first batch is waited for */
    bool hides;           /* with this compute, that is so to 1 %; false if it is not known */
    struct forecast_epoch first, later; /* later: the last one of the job */
    double pin, plan; /* share of the blocks that later epochs use and that the cache has then */
    double total;     /* seconds of all epochs */
    double copy;      /* of copying the dataset's files first, then computing */
    double direct;    /* of reading the samples from the remote in each epoch, ahead */
};

/* samples and block are not 0. */
void forecast_make(const struct forecast_task *task, struct forecast *ret);

#endif
