/* Names of options that users of other tools type, and what epochfs calls them. */
#ifndef EPOCHFS_FS_OPTIONS_OTHER_TOOLS_H
#define EPOCHFS_FS_OPTIONS_OTHER_TOOLS_H

/* What to type in place of an option of mount, rclone, s3fs, goofys, gcsfuse, JuiceFS,
 * mountpoint-s3 or the AWS tools: a sentence without its full stop. name: without its value, in
 * lower case, words joined by _. NULL: the name is not known. */
const char *other_tools_option(const char *name);

#endif
