/* A preload library that records what a program writes to the files that have RECORDED in their paths, into RECORD: for
 * each call its letter (Write, Sync, Truncate, Unlink), the path, the offset or length, and the bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static char paths[1024][512];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_recorded(const char *path) {
    const char *part = getenv("RECORDED");
    return part && strstr(path, part);
}

static const char *path_of(int fd) {
    return fd >= 0 && fd < 1024 && paths[fd][0] ? paths[fd] : NULL;
}

static void record(char letter, const char *path, uint64_t offset, const void *data, uint64_t length) {
    static int file = -1;
    uint32_t path_length = strlen(path);
    pthread_mutex_lock(&lock);
    if (file < 0)
        file = REAL(open64)(getenv("RECORD"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t (*put)(int, const void *, size_t) = REAL(write);
    put(file, &letter, 1);
    put(file, &path_length, sizeof path_length);
    put(file, path, path_length);
    put(file, &offset, sizeof offset);
    put(file, &length, sizeof length);
    put(file, data, length);
    pthread_mutex_unlock(&lock);
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    int fd = REAL(open64)(path, flags, mode);
    if (fd >= 0 && fd < 1024)
        strncpy(paths[fd], is_recorded(path) ? path : "", sizeof paths[fd] - 1);
    return fd;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int fd = open64(path, flags, va_arg(arguments, mode_t));
    va_end(arguments);
    return fd;
}

int close(int fd) {
    if (fd >= 0 && fd < 1024)
        paths[fd][0] = 0;
    return REAL(close)(fd);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    ssize_t written = REAL(pwrite64)(fd, data, length, offset);
    if (written > 0 && path_of(fd))
        record('W', path_of(fd), offset, data, written);
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

int fsync(int fd) {
    if (path_of(fd))
        record('S', path_of(fd), 0, "", 0);
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    if (path_of(fd))
        record('S', path_of(fd), 0, "", 0);
    return REAL(fdatasync)(fd);
}

int ftruncate64(int fd, off64_t length) {
    if (path_of(fd))
        record('T', path_of(fd), length, "", 0);
    return REAL(ftruncate64)(fd, length);
}

int ftruncate(int fd, off_t length) {
    return ftruncate64(fd, length);
}

int unlink(const char *path) {
    if (is_recorded(path))
        record('U', path, 0, "", 0);
    return REAL(unlink)(path);
}
