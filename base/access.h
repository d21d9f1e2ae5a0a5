/* Permissions of a dataset made from several files and folders, each with an owner and a group of
 * its own. What is shown has one owner, one group and one mode: it must never allow more than all
 * of them do. If that is not known, it allows less.
 *
 * A mode here has one kind of right: 0400 for the owner, 0040 for the group, 0004 for others. */
#ifndef EPOCHFS_BASE_ACCESS_H
#define EPOCHFS_BASE_ACCESS_H

struct access {
    unsigned uid, gid;
    unsigned mode; /* of 0444; of folders, of 0555 */
};

/* Which of the classes of (uid, gid), owner, group and others, surely have `bit` (4: read, 1: pass
 * through) on what belongs to (of_uid, of_gid) with of_mode. Users of one class of (uid, gid) may
 * be in several classes of (of_uid, of_gid): then each of these must allow it. Root may do all. */
static inline unsigned access_classes(unsigned uid, unsigned gid, unsigned of_uid, unsigned of_gid,
                                      unsigned of_mode, unsigned bit)
{
    int owner = (of_mode >> 6 & bit) != 0, group = (of_mode >> 3 & bit) != 0,
        others = (of_mode & bit) != 0;
    /* A user other than uid may be of_uid, if the two differ; and so on. */
    int owner_if_any = uid == of_uid || owner, group_if_any = gid == of_gid || group;
    unsigned ret = 0;

    if (uid == 0 || (uid == of_uid ? owner : group && others))
        ret |= 0400;
    if (owner_if_any && group && (gid == of_gid || others))
        ret |= 0040;
    if (owner_if_any && group_if_any && others)
        ret |= 0004;
    return ret;
}

#endif
