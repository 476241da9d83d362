// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The part of the seam for files and processes. Optimized or not, each function here is called
// directly by the one that it tells apart.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tests/fault/interposed.hpp"

using isoscale::fault::file;
using isoscale::fault::file_error;
using isoscale::fault::file_release;
using isoscale::fault::real;

#define FILE_CALL(NAME, ...) \
  file<NAME>(__func__, __builtin_return_address(0) __VA_OPT__(, ) __VA_ARGS__)
#define FILE_RELEASE(NAME, ...) \
  file_release<NAME>(__func__, __builtin_return_address(0), __VA_ARGS__)

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return file<open>(__func__, __builtin_return_address(0), path, flags, mode);
}

int openat(int in, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return file<openat>(__func__, __builtin_return_address(0), in, path, flags, mode);
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return file<fcntl>(__func__, __builtin_return_address(0), fd, command, argument);
}

/// Says its error with what it returns.
int posix_fallocate(int fd, off_t from, off_t bytes) {
  const auto error = file_error<posix_fallocate>(__func__, __builtin_return_address(0));
  return error ? *error : real<posix_fallocate>(__func__, fd, from, bytes);
}

// The descriptor and the process are gone, also where these fail.
SEAM_1(FILE_RELEASE, int, close, int)
SEAM_3(FILE_RELEASE, pid_t, waitpid, pid_t, int*, int)

SEAM_3(FILE_CALL, ssize_t, read, int, void*, size_t)
SEAM_3(FILE_CALL, ssize_t, write, int, const void*, size_t)
SEAM_4(FILE_CALL, ssize_t, pread, int, void*, size_t, off_t)
SEAM_4(FILE_CALL, ssize_t, pwrite, int, const void*, size_t, off_t)
SEAM_3(FILE_CALL, off_t, lseek, int, off_t, int)
SEAM_1(FILE_CALL, int, fsync, int)
SEAM_2(FILE_CALL, int, ftruncate, int, off_t)
SEAM_2(FILE_CALL, int, flock, int, int)
SEAM_2(FILE_CALL, int, rename, const char*, const char*)
SEAM_5(FILE_CALL, int, renameat2, int, const char*, int, const char*, unsigned)
SEAM_2(FILE_CALL, int, link, const char*, const char*)
SEAM_1(FILE_CALL, int, unlink, const char*)
SEAM_3(FILE_CALL, int, unlinkat, int, const char*, int)
SEAM_2(FILE_CALL, int, fchmod, int, mode_t)
SEAM_2(FILE_CALL, int, stat, const char*, struct stat*)
SEAM_2(FILE_CALL, int, lstat, const char*, struct stat*)
SEAM_2(FILE_CALL, int, fstat, int, struct stat*)
SEAM_2(FILE_CALL, char*, realpath, const char*, char*)
SEAM_3(FILE_CALL, ssize_t, readlink, const char*, char*, size_t)
SEAM_2(FILE_CALL, FILE*, fopen64, const char*, const char*)
SEAM_1(FILE_CALL, DIR*, opendir, const char*)
SEAM_1(FILE_CALL, DIR*, fdopendir, int)
SEAM_1(FILE_CALL, dirent*, readdir, DIR*)
SEAM_1(FILE_CALL, int, pipe, int*)
SEAM_3(FILE_CALL, int, poll, pollfd*, nfds_t, int)
SEAM_0(FILE_CALL, pid_t, fork)

}  // extern "C"
