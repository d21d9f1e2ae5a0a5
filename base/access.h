/* Who may do what, where several files and folders have a say, each with an owner and a group of
 * its own. What is shown has one owner, one group and one mode: it must never allow more than all
 * of them do. Where that cannot be told, it allows less.
 *
 * Modes here are of one kind of right: 0400 for the owner, 0040 for the group, 0004 for others. */
#ifndef EPOCHFS_BASE_ACCESS_H
#define EPOCHFS_BASE_ACCESS_H

struct access {
    unsigned uid, gid;
    unsigned mode; /* of 0444; of folders, of 0555 */
};

/* Of an owner, a group and others, as those of (uid, gid): who surely has `bit` (4: reads, 1: goes
 * through) of what belongs to (of_uid, of_gid) and has of_mode. Users of one class there may be of
 * several here: then each of these has to allow it. Root may do all. */
static inline unsigned access_classes(unsigned uid, unsigned gid, unsigned of_uid, unsigned of_gid,
                                      unsigned of_mode, unsigned bit)
{
    int owner = (of_mode >> 6 & bit) != 0, group = (of_mode >> 3 & bit) != 0,
        others = (of_mode & bit) != 0;
    /* Whoever is not uid may be of_uid, if that is another one; and so on. */
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
