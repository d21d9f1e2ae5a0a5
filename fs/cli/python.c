#include "fs/cli/python.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/scope.h"
#include "fs/cli/commands.h"

/* The folder of the tools: installed, or of a build. false: there is none. */
static bool python_folder(char ret[static PATH_MAX])
{
    static const char *const places[] = {EPOCHFS_TOOLS, "python"};
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program));

    if (n <= 0 || n == sizeof(program))
        return false;
    while (n && program[n - 1] != '/')
        n--;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int len = snprintf(ret, PATH_MAX, "%.*s%s/__main__.py", (int)n, program, places[i]);

        if (len >= PATH_MAX || access(ret, R_OK) < 0)
            continue;
        *strrchr(ret, '/') = '\0';
        return true;
    }
    return false;
}

/* Make a text what stdin reads. */
static int python_give(const struct text *input)
{
    AUTO_CLOSE int fd = memfd_create("epochfs", MFD_CLOEXEC);

    if (fd < 0 || write(fd, input->data, input->len) != (ssize_t)input->len ||
        lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0)
        return -errno;
    return 0;
}

int python_become(const char *tool, const char *word, const struct text *input)
{
    const char *chosen = secure_getenv("EPOCHFS_PYTHON");
    const char *program = chosen && *chosen ? chosen : "/usr/bin/python3";
    char folder[PATH_MAX];
    int r;

    if (*program != '/' || access(program, X_OK) < 0)
        return fail(
            EXIT_SYSTEM,
            "%s: it needs Python 3 with NumPy, and %s is no program: install python3-numpy, "
            "or set EPOCHFS_PYTHON to the path of a Python",
            tool, program);
    if (!python_folder(folder))
        return fail(EXIT_SYSTEM, "%s: its Python files are missing: install epochfs again", tool);
    fflush(stdout);
    r = input->failed ? -ENOMEM : python_give(input);
    if (r == 0) {
        execl(program, "python3", "-I", "-B", "-X", "utf8", folder, tool, word, (char *)NULL);
        r = -errno;
    }
    return fail(EXIT_SYSTEM, "%s: %s: %s", tool, program, strerror(-r));
}
