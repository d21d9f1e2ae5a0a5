/* Words of the names of folders and tables: splits of a dataset, and roles of pictures in it. A
 * word is a run of letters; a capital after a small letter begins another. In any case. */
#ifndef EPOCHFS_FORMAT_FILES_CLAIM_WORDS_H
#define EPOCHFS_FORMAT_FILES_CLAIM_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of a name: a word, or a run of digits. */
struct name_piece {
    const char *at;
    size_t len;
};

/* The piece at *at or after it, and *at behind it; false: there is none. */
bool next_piece(const char **at, const char *end, struct name_piece *ret);

/* Is it one of these words? They end with NULL. */
bool word_is_one_of(const char *word, size_t len, const char *const *words);

/* Has it a word for a part of a dataset: train, valid, test, dev, eval ..., or fold and a number,
 * or a word that begins with one: testset, trainimages? *ret: the first; may be NULL. */
bool words_have_split(const char *name, size_t len, struct name_piece *ret);

bool words_name_split(const char *name); /* the same of a name, whichever it is */

bool words_name_one_split(const char *name); /* but not words of two parts: train_test */

/* Is all of it one such word, or that and a number? */
bool words_are_split(const char *name);

/* Have two names such words, for two parts? */
bool words_are_of_two_splits(const char *a, const char *b);

/* Have two names numbers that differ, one after the other? */
bool words_have_two_numbers(const char *a, const char *b);

/* Two words for one part: training and train. */
bool words_same_split(struct name_piece a, struct name_piece b);

/* Has it one of these words? They end with NULL. */
bool words_have(const char *name, size_t len, const char *const *words);

/* Has it a word that only pictures to learn from are called by: images, photos, lr, ...? */
bool words_have_input(const char *name);

/* One that only pictures are called by, which come with others: images, photos, data. */
bool words_have_pictures(const char *name);

/* Has it a word of what is learned: masks, labels, gt, hr, ...? */
bool words_have_target(const char *name, size_t len);

/* One of these words, without the letters A and B. */
bool words_have_role(const char *name);

/* Has it a word of a role that says how good a picture is, as classes do: low, sharp? */
bool words_may_be_classes(const char *name);

/* The bytes of `name` without pieces that `other` has, and without splits, in lower
 * case, and without '_', '-', '.' and spaces at its ends. Ended by NUL, and cut to fit. */
void words_differing(const char *name, const char *other, char *ret, size_t capacity);

/* Is `numbered` the text of `name` and a number, such as images_2 for images? */
bool words_are_numbered(const char *name, const char *numbered);

/* Do two names differ in one number alone? */
bool words_differ_in_number(const char *a, const char *b);

#endif
