/* Reads and writes of an open file, repeated after a signal or after a part. Any thread. */
#ifndef EPOCHFS_BASE_FILE_IO_H
#define EPOCHFS_BASE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read exactly len bytes at byte offset off. 0; -ESTALE: the file ends earlier; or -errno. */
int file_pread(int fd, void *buf, size_t len, uint64_t off);

/* Read up to len bytes, fewer at the end of the file. Their number, or -errno. */
ssize_t file_read_some(int fd, void *buf, size_t len, uint64_t off);

/* Write all bytes at byte offset off. 0 or -errno. */
int file_pwrite(int fd, const void *bytes, size_t len, uint64_t off);

#endif
