#include "fs/cli/python.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "fs/cli/commands.h"

/* Is the path of root, of the program's owner, or of this user? Next to a copy of the
 * program in /tmp, other users may make files. */
static bool python_is_ours(const char *path, uid_t owner)
{
    struct stat st;

    return stat(path, &st) == 0 && !(st.st_mode & S_IWOTH) &&
           (st.st_uid == 0 || st.st_uid == owner || st.st_uid == geteuid());
}

/* The folder of the tools: installed, or of a build. false: there is none. */
static bool python_folder(char ret[static PATH_MAX])
{
    static const char *const places[] = {EPOCHFS_TOOLS, "python"};
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program));
    struct stat st;

    if (n <= 0 || n == sizeof(program) || stat("/proc/self/exe", &st) < 0)
        return false;
    while (n && program[n - 1] != '/')
        n--;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int len = snprintf(ret, PATH_MAX, "%.*s%s/__main__.py", (int)n, program, places[i]);

        if (len >= PATH_MAX || access(ret, R_OK) < 0 || !python_is_ours(ret, st.st_uid))
            continue;
        *strrchr(ret, '/') = '\0';
        if (python_is_ours(ret, st.st_uid))
            return true;
    }
    return false;
}

/* Become the tool. Returns only an exit code, of what was printed. */
static int python_exec(const char *tool, const char *word)
{
    const char *chosen = secure_getenv("EPOCHFS_PYTHON");
    const char *program = chosen && *chosen ? chosen : "/usr/bin/python3";
    char folder[PATH_MAX];

    if (*program != '/' || access(program, X_OK) < 0)
        return fail(
            EXIT_SYSTEM,
            "%s: it needs Python 3 with NumPy, and %s is no program: install python3-numpy, "
            "or set EPOCHFS_PYTHON to the path of a Python",
            tool, program);
    if (!python_folder(folder))
        return fail(EXIT_SYSTEM, "%s: its Python files are missing: install epochfs again", tool);
    /* By its own name: of "python3" it would take the first of PATH for its home. */
    execl(program, program, "-I", "-B", "-X", "utf8", folder, tool, word, (char *)NULL);
    return fail(EXIT_SYSTEM, "%s: %s: %s", tool, program, strerror(errno));
}

/* Write all of a text, and that it ends there. 0 or -errno. */
static int python_send(int fd, const struct text *input)
{
    if (input->failed)
        return -ENOMEM;
    for (size_t at = 0; at < input->len;) {
        ssize_t n = send(fd, input->data + at, input->len - at, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return shutdown(fd, SHUT_WR) < 0 ? -errno : 0;
}

static int python_receive(int fd, struct text *ret)
{
    char bytes[4096];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), 0)) != 0)
        if (n > 0)
            text_add_bytes(ret, bytes, (size_t)n);
        else if (errno != EINTR)
            return -errno;
    return ret->failed ? -ENOMEM : 0;
}

int python_become(const char *tool, const char *word, const struct text *input)
{
    int fd[2], r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0 ? -errno : 0;

    if (r == 0)
        r = python_send(fd[0], input); /* it fits in the socket's buffer */
    if (r == 0 && dup2(fd[1], STDIN_FILENO) < 0)
        r = -errno;
    return r < 0 ? fail(EXIT_SYSTEM, "%s: %s", tool, strerror(-r)) : python_exec(tool, word);
}

int python_run(const char *tool, const struct text *input, struct text *ret)
{
    int fd[2], status = 0, sent = 0, r;
    pid_t child;

    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
        return fail(EXIT_SYSTEM, "%s: %s", tool, strerror(errno));
    child = fork();
    if (!child)
        _exit(dup2(fd[1], STDIN_FILENO) < 0 || dup2(fd[1], STDOUT_FILENO) < 0
                  ? EXIT_SYSTEM
                  : python_exec(tool, NULL));
    r = child < 0 ? -errno : 0;
    close(fd[1]);
    if (r == 0) {
        sent = python_send(fd[0], input); /* all of it is read before anything is written */
        r = python_receive(fd[0], ret);
    }
    close(fd[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) != EXIT_DONE)
        return WEXITSTATUS(status);
    r = r == 0 ? sent : r;
    if (r == 0 && !WIFEXITED(status))
        r = -EIO;
    return r < 0 ? fail(EXIT_SYSTEM, "%s: %s", tool, strerror(-r)) : EXIT_DONE;
}
