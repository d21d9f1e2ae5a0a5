/* The table of remotes, and of the other kinds of SOURCE: a row each. */
#include "cache/source/source.h"

/* The first row that takes SOURCE opens it; the last one takes all. */
#define REMOTES(ROW)                                                                               \
    ROW(http)                                                                                      \
    ROW(https)                                                                                     \
    ROW(s3)                                                                                        \
    ROW(gs)                                                                                        \
    ROW(hf)                                                                                        \
    ROW(command)                                                                                   \
    ROW(list)                                                                                      \
    ROW(file)                                                                                      \
    ROW(local)

#define REMOTE_DECLARED(name) extern const struct remote remote_##name;
#define REMOTE_ENTRY(name)    &remote_##name,

REMOTES(REMOTE_DECLARED)

const struct remote *const remotes[] = {REMOTES(REMOTE_ENTRY)};
const unsigned n_remotes = ARRAY_LEN(remotes);
