/* A store thread: a thread that does what may have to wait in the kernel for this mount itself, a
 * page that a read has locked or an answer of our own. Such a wait cannot be killed: it ends with
 * the request only, and if we are killed, requests end when their descriptor of /dev/fuse is
 * closed. A thread that waits keeps the descriptors of its process open; therefore a store thread
 * has a table of its own, with a second descriptor of the session (FUSE_DEV_IOC_CLONE) in the place
 * of the session's, and nothing else; 0 to 2 are /dev/null. */
#ifndef EPOCHFS_FS_PUSH_STORE_THREAD_H
#define EPOCHFS_FS_PUSH_STORE_THREAD_H

struct fuse_session;
struct store_thread;

/* 0; -EACCES, -ENOSYS ... : the system does not let us; -ENOMEM, -EAGAIN. */
int store_thread_new(struct fuse_session *session, struct store_thread **ret);
void store_thread_free(struct store_thread *store_thread); /* ends the thread; takes NULL */

/* Have the thread do it when all before is done; ctx lives until then. job may use no descriptors
 * but those that it opens itself by system calls; the session it may use. Waits only while
 * STORE_QUEUE are to be done. By one thread at a time. */
#define STORE_QUEUE 32
void store_thread_put(struct store_thread *store_thread, void (*job)(void *ctx), void *ctx);

/* Wait until all is done. */
void store_thread_wait(struct store_thread *store_thread);

#endif
