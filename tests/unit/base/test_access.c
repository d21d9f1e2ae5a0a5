/* Permission bits of data that comes from files of several owners: they never admit a user whom the
 * kernel would refuse. */
#include "base/access.h"

#include "base/scope.h"
#include "support/unit.h"

struct user {
    unsigned uid;
    unsigned groups; /* bit g: it is in group g */
};

/* As the kernel decides: the first class that fits. */
static bool kernel_lets(const struct user *user, unsigned uid, unsigned gid, unsigned mode)
{
    if (user->uid == 0)
        return true;
    if (user->uid == uid)
        return mode & 0400;
    return user->groups >> gid & 1 ? mode & 0040 : mode & 0004;
}

/* The mode of owner, group and others with the read bits that n selects. */
static unsigned mode_of(unsigned n)
{
    return (n & 4 ? 0400 : 0) | (n & 2 ? 0040 : 0) | (n & 1 ? 0004 : 0);
}

static unsigned shown(unsigned uid, unsigned gid, unsigned mode, unsigned of_uid, unsigned of_gid,
                      unsigned of_mode)
{
    return mode & access_classes(uid, gid, of_uid, of_gid, of_mode, 4);
}

/* All combinations of users, groups, owners and modes, with two of each and one user that is
 * neither. */
UNIT_TEST(test_access__never_more_than_the_kernel)
{
    unsigned given = 0;

    for (unsigned i = 0; i < 3 * 2 * 8 * 8 * 4 * 4; i++) {
        unsigned uid = i % 3, gid = i / 3 % 2, mode = mode_of(i / 6 % 8), at = i / 48;
        unsigned of_mode = mode_of(at % 8), of_uid = at / 8 % 4, of_gid = at / 32 % 4;
        unsigned now = shown(uid, gid, mode, of_uid, of_gid, of_mode);

        for (unsigned u = 0; u < 4 * 16; u++) {
            struct user user = {u % 4, u / 4};

            if (!kernel_lets(&user, uid, gid, now))
                continue;
            given++;
            if (!kernel_lets(&user, uid, gid, mode) || !kernel_lets(&user, of_uid, of_gid, of_mode))
                fail_msg("user %u in %x: of %u:%u %o and %u:%u %o: shown %o", user.uid, user.groups,
                         uid, gid, mode, of_uid, of_gid, of_mode, now);
        }
    }
    assert_true(given > 1000);
}

UNIT_TEST(test_access__one_owner__all_that_both_allow)
{
    for (unsigned mode = 0; mode < 8; mode++)
        for (unsigned of_mode = 0; of_mode < 8; of_mode++)
            assert_int_equal(shown(5, 6, mode_of(mode), 5, 6, mode_of(of_mode)),
                             mode_of(mode & of_mode));
    /* Bits that everybody has do not depend on owners. */
    assert_int_equal(shown(5, 6, 0444, 7, 8, 0444), 0444);
    assert_int_equal(shown(5, 6, 0444, 0, 0, 0444), 0444);
    /* Others may not: the owner of one file may be among the others of the second. */
    assert_int_equal(shown(5, 6, 0444, 7, 6, 0440), 0040);
    assert_int_equal(shown(5, 6, 0444, 5, 8, 0440), 0400);
    assert_int_equal(access_classes(5, 6, 5, 6, 0711, 1), 0444);
    assert_int_equal(access_classes(5, 6, 5, 6, 0750, 1), 0440);
}
