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
SEAMS(0, FILE_CALL, fork)
SEAMS(1, FILE_CALL, fsync, unlink, opendir, fdopendir, readdir, pipe)
SEAMS(2, FILE_CALL, ftruncate, flock, rename, link, fchmod, stat, lstat, fstat, realpath, fopen64)
SEAMS(3, FILE_CALL, read, write, lseek, unlinkat, readlink, poll)
SEAMS(4, FILE_CALL, pread, pwrite)
SEAMS(5, FILE_CALL, renameat2)
SEAMS(1, FILE_RELEASE, close)
SEAMS(3, FILE_RELEASE, waitpid)

}  // extern "C"
