/* A store thread: a thread for jobs that may wait in the kernel for this mount itself, for a page
 * that a read has locked or for an answer of our own. Such a wait cannot be killed: it ends only
 * with the request. If the daemon is killed, requests end when their descriptor of /dev/fuse is
 * closed; but a waiting thread keeps the descriptors of its process open. Therefore a store thread
 * has a descriptor table of its own: in the place of the session's descriptor a clone of it
 * (FUSE_DEV_IOC_CLONE), 0 to 2 /dev/null, and nothing else. */
#ifndef EPOCHFS_FS_PUSH_STORE_THREAD_H
#define EPOCHFS_FS_PUSH_STORE_THREAD_H

struct fuse_session;
struct store_thread;

/* 0; -EACCES, -ENOSYS ... : the system does not allow it; -ENOMEM, -EAGAIN. */
int store_thread_new(struct fuse_session *session, struct store_thread **ret);
void store_thread_free(struct store_thread *store_thread); /* ends the thread; takes NULL */

/* Queue a job; jobs run in order. ctx must live until the job is done. job may use the session, and
 * otherwise only descriptors that it opens itself by system calls. Waits only while STORE_QUEUE
 * jobs are queued. Called by one thread at a time. */
#define STORE_QUEUE 32
void store_thread_put(struct store_thread *store_thread, void (*job)(void *ctx), void *ctx);

/* Wait until all jobs are done. */
void store_thread_wait(struct store_thread *store_thread);

#endif
