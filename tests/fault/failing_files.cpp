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
using isoscale::fault::real;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return file<open>(__func__, __builtin_return_address(0), -1, path, flags, mode);
}

int openat(int in, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return file<openat>(__func__, __builtin_return_address(0), -1, in, path, flags, mode);
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return file<fcntl>(__func__, __builtin_return_address(0), -1, fd, command, argument);
}

/// Says its error with what it returns.
int posix_fallocate(int fd, off_t from, off_t bytes) {
  const auto error = file_error<posix_fallocate>(__func__, __builtin_return_address(0));
  return error ? *error : real<posix_fallocate>(__func__, fd, from, bytes);
}

/// The descriptor is gone, also where it fails.
int close(int fd) {
  const auto error = file_error<close>(__func__, __builtin_return_address(0));
  const int result = real<close>(__func__, fd);
  if (!error) return result;
  errno = *error;
  return -1;
}

/// The process is, as well.
pid_t waitpid(pid_t process, int* status, int options) {
  const auto error = file_error<waitpid>(__func__, __builtin_return_address(0));
  const pid_t result = real<waitpid>(__func__, process, status, options);
  if (!error) return result;
  errno = *error;
  return -1;
}

ssize_t read(int fd, void* buffer, size_t bytes) {
  return file<read>(__func__, __builtin_return_address(0), ssize_t{-1}, fd, buffer, bytes);
}
ssize_t write(int fd, const void* buffer, size_t bytes) {
  return file<write>(__func__, __builtin_return_address(0), ssize_t{-1}, fd, buffer, bytes);
}
ssize_t pread(int fd, void* buffer, size_t bytes, off_t at) {
  return file<pread>(__func__, __builtin_return_address(0), ssize_t{-1}, fd, buffer, bytes, at);
}
ssize_t pwrite(int fd, const void* buffer, size_t bytes, off_t at) {
  return file<pwrite>(__func__, __builtin_return_address(0), ssize_t{-1}, fd, buffer, bytes, at);
}
off_t lseek(int fd, off_t at, int from) {
  return file<lseek>(__func__, __builtin_return_address(0), off_t{-1}, fd, at, from);
}
int fsync(int fd) { return file<fsync>(__func__, __builtin_return_address(0), -1, fd); }
int ftruncate(int fd, off_t bytes) {
  return file<ftruncate>(__func__, __builtin_return_address(0), -1, fd, bytes);
}
int flock(int fd, int operation) {
  return file<flock>(__func__, __builtin_return_address(0), -1, fd, operation);
}
int rename(const char* from, const char* to) {
  return file<rename>(__func__, __builtin_return_address(0), -1, from, to);
}
int renameat2(int from_in, const char* from, int to_in, const char* to, unsigned flags) {
  return file<renameat2>(__func__, __builtin_return_address(0), -1, from_in, from, to_in, to,
                         flags);
}
int link(const char* from, const char* to) {
  return file<link>(__func__, __builtin_return_address(0), -1, from, to);
}
int unlink(const char* path) {
  return file<unlink>(__func__, __builtin_return_address(0), -1, path);
}
int unlinkat(int in, const char* path, int flags) {
  return file<unlinkat>(__func__, __builtin_return_address(0), -1, in, path, flags);
}
int fchmod(int fd, mode_t mode) {
  return file<fchmod>(__func__, __builtin_return_address(0), -1, fd, mode);
}
int stat(const char* path, struct stat* facts) {
  return file<stat>(__func__, __builtin_return_address(0), -1, path, facts);
}
int lstat(const char* path, struct stat* facts) {
  return file<lstat>(__func__, __builtin_return_address(0), -1, path, facts);
}
int fstat(int fd, struct stat* facts) {
  return file<fstat>(__func__, __builtin_return_address(0), -1, fd, facts);
}
char* realpath(const char* path, char* resolved) {
  return file<realpath>(__func__, __builtin_return_address(0), static_cast<char*>(nullptr), path,
                        resolved);
}
ssize_t readlink(const char* path, char* buffer, size_t bytes) {
  return file<readlink>(__func__, __builtin_return_address(0), ssize_t{-1}, path, buffer, bytes);
}
FILE* fopen64(const char* path, const char* mode) {
  return file<fopen64>(__func__, __builtin_return_address(0), static_cast<FILE*>(nullptr), path,
                       mode);
}
DIR* opendir(const char* path) {
  return file<opendir>(__func__, __builtin_return_address(0), static_cast<DIR*>(nullptr), path);
}
DIR* fdopendir(int fd) {
  return file<fdopendir>(__func__, __builtin_return_address(0), static_cast<DIR*>(nullptr), fd);
}
dirent* readdir(DIR* directory) {
  return file<readdir>(__func__, __builtin_return_address(0), static_cast<dirent*>(nullptr),
                       directory);
}
int pipe(int* ends) { return file<pipe>(__func__, __builtin_return_address(0), -1, ends); }
int poll(pollfd* polled, nfds_t count, int milliseconds) {
  return file<poll>(__func__, __builtin_return_address(0), -1, polled, count, milliseconds);
}
pid_t fork() { return file<fork>(__func__, __builtin_return_address(0), -1); }

}  // extern "C"
