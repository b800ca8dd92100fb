/* Shifts the wall clock of one process by the seconds in the file that FAIRWITNESS_TEST_CLOCK names. The monotonic clocks
   stay as they are, as when a person sets the clock. libfaketime is not used: without a faked monotonic clock it makes
   every sleep of Python fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int file = -1;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAIRWITNESS_TEST_CLOCK");
    if (path) file = open(path, O_RDONLY | O_CLOEXEC);
}

static time_t shift(void) {
    char text[32] = {0};
    if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) return 0;
    return (time_t) strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(clock, now);
    if (!answer && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return answer;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void) zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}
