/* A clock that goes wrong by OFFSET_MS milliseconds for every program of a host but its daemons, whose credentials expire by the clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static int ours(void) {
    const char *name = program_invocation_short_name;
    return strncmp(name, "slurm", 5) && strncmp(name, "sshd", 4) && strncmp(name, "srun", 4) && strncmp(name, "munge", 5);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int said = real(clock, at);
    if (said == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && ours()) {
        long long whole = at->tv_sec * 1000000000LL + at->tv_nsec + OFFSET_MS * 1000000LL;
        at->tv_sec = whole / 1000000000LL;
        at->tv_nsec = whole % 1000000000LL;
    }
    return said;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
