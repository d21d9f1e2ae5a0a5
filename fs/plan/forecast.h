/* What an epoch will take: the arithmetic of `epochfs plan`. Nothing is read here.
 *
 * Bytes come in blocks, in the order in which the plan needs them, at a constant rate. Batches are
 * computed one after another, each once its last byte is here and the batch before is done. So an
 * epoch ends
 *
 *     max over k of (bytes of batches 1 .. k) / rate + (compute of batches k .. last)
 *
 * after it has begun. The arithmetic assumes samples of equal size, and staged bytes that are
 * evenly spread. */
#ifndef EPOCHFS_FS_PLAN_FORECAST_H
#define EPOCHFS_FS_PLAN_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

enum forecast_keep { FORECAST_PIN, FORECAST_ONCE, FORECAST_PLAN };

struct forecast_task {
    /* The dataset: */
    double bytes; /* of its source files */
    double here;  /* of them, those that are staged */
    uint64_t samples;
    /* The plan: */
    uint64_t list;     /* samples of its part; of a split, of all shares */
    double reach;      /* share of them that some epoch reads; 0: all */
    double listed;     /* their bytes; 0: as many a sample as in all of the dataset */
    uint64_t elements; /* samples that the rank reads in an epoch */
    double distinct;   /* of the list, how many these are, where some come several times; 0: all
                          elements differ */
    uint64_t batch, batches;
    bool is_shuffled; /* else the stored order */
    bool is_drawn;    /* what comes again may do so at any time */
    bool is_even;     /* the samples of an epoch lie at equal distances, as draws do */
    uint64_t window;  /* of a shuffle; 0: full */
    /* The cache: */
    double block;    /* bytes */
    double capacity; /* bytes that it can hold, next to what is present */
    enum forecast_keep keep;
    uint64_t announced; /* with keep=once: epochs whose blocks remain, while there is space, until
                           the last of them has begun */
    bool ahead;         /* bytes are staged before they are read */
    /* The job: */
    double rate;    /* of the remote, bytes per second; 0: not known */
    double compute; /* seconds a batch; < 0: not known */
    uint64_t epochs;
};

/* Seconds are NAN if the rate or the compute is not known. */
struct forecast_epoch {
    double fetched; /* bytes fetched from the remote */
    double seconds;
    double wait; /* of the seconds, those without computing */
};

struct forecast {
    double read;          /* bytes of an epoch's samples */
    double epoch;         /* bytes of blocks that an epoch needs */
    double all_epochs;    /* the same for all epochs together: more for a shuffled rank */
    double here, missing; /* of `epoch`, before the job */
    bool fits;            /* all_epochs, in the cache */
    double holds;         /* of all_epochs, bytes that the cache can hold */
    double staging;       /* seconds until the first epoch's bytes are present */
    double first_batch;   /* seconds until the first batch is present */
    double compute;       /* seconds, an epoch */
    double hides_at; /* seconds a batch, from which on the job waits only for the first batch */
    bool hides;      /* with this compute, that holds within 1 %; false: not known */
    struct forecast_epoch first, later; /* later: the last one of the job */
    double pin, plan; /* share of the blocks of later epochs that the cache then has */
    double total;     /* seconds of all epochs */
    double copy;      /* of copying the dataset's files first, then computing */
    double direct;    /* of reading the samples from the remote in each epoch, ahead */
};

/* samples and block are not 0. */
void forecast_make(const struct forecast_task *task, struct forecast *ret);

#endif
