// A kernel without CONFIG_PROC_CHILDREN: to whoever preloads this, no /proc/PID/task/TID/children can be opened.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

static int is_denied(const char *path)
{
    const char *name = strrchr(path, '/');
    return strncmp(path, "/proc/", 6) == 0 && name && strcmp(name, "/children") == 0;
}

#define REPLACE(NAME)                                                                  \
    int NAME(const char *path, int flags, ...)                                         \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;        \
        va_end(more);                                                                  \
        if (is_denied(path)) {                                                         \
            errno = ENOENT;                                                            \
            return -1;                                                                 \
        }                                                                              \
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #NAME);                 \
        return real(path, flags, mode);                                                \
    }

REPLACE(open)
REPLACE(open64)
