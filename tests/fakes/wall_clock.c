/* Preloaded, it puts the clock on the wall off by as many seconds as the file named by TUILAB_WALL says. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    const char *path = getenv("TUILAB_WALL");
    FILE *file = !failed && clock == CLOCK_REALTIME && path ? fopen(path, "re") : NULL;
    long off = 0;
    if (file) {
        if (fscanf(file, "%ld", &off) == 1) now->tv_sec += off;
        fclose(file);
    }
    return failed;
}
