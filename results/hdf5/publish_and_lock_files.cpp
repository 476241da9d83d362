// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/hdf5/publish_and_lock_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <random>
#include <regex>
#include <system_error>

#include "base/error.hpp"
#include "base/folder_entries.hpp"
#include "base/warn.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view temporary_prefix = ".isoscale-";
constexpr std::string_view temporary_suffix = ".tmp";

[[noreturn]] void fail(std::string_view what, const fs::path& path, int code) {
  throw base::Error(
      fmt::format("cannot {} {}: {}", what, path.string(), std::generic_category().message(code)));
}
[[noreturn]] void fail(std::string_view what, const Descriptor& file, int code) {
  fail(what, fs::path{name_of(file)}, code);
}

/// Returns a text that tells processes of this machine from those of other machines and containers
/// on the same file system: the name of the host and the namespace of process ids.
std::string machine_mark() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  std::error_code ignored;
  std::string mark = fmt::format("{}-{}", std::string_view{host.data()}.substr(0, 64),
                                 fs::read_symlink("/proc/self/ns/pid", ignored).string());
  std::replace_if(
      mark.begin(), mark.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; },
      '_');
  return mark;
}

std::string temporary_name() {
  return fmt::format("{}{}-{}-{:08x}{}", temporary_prefix, machine_mark(), getpid(),
                     std::random_device{}(), temporary_suffix);
}

/// Writes a file to disk; returns 0 or errno.
int sync(const Descriptor& descriptor) {
  // Some file systems return EINVAL for directories, which they cannot sync; it is no failure.
  return fsync(descriptor.get()) == 0 || errno == EINVAL ? 0 : errno;
}

/// Writes a directory to disk; returns 0 or errno.
int sync_directory(const fs::path& directory) {
  const Descriptor descriptor{open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (descriptor) return sync(descriptor);
  // A writable directory that is not readable cannot be synced; its names reach the disk later.
  return errno == EACCES ? 0 : errno;
}

/// Renames a file unless another file has the new name. Returns 0 or errno.
int rename_to_new(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno == EEXIST || (errno != EINVAL && errno != ENOSYS)) return errno;
  // The file system has no RENAME_NOREPLACE. Making a hard link, where possible, has the same
  // effect, since it also fails if the name exists.
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return 0;
  }
  if (errno == EEXIST) return errno;
  if (fs::exists(fs::symlink_status(to))) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

/// Returns the id of the process of this machine that made a temporary file, from the file's name;
/// 0 for other names.
pid_t owner_of(std::string_view name, std::string_view machine_prefix) {
  if (!name.starts_with(machine_prefix) || !name.ends_with(temporary_suffix)) return 0;
  name.remove_prefix(machine_prefix.size());
  pid_t owner = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), owner);
  return error == std::errc{} && end != name.data() + name.size() && *end == '-' ? owner : 0;
}

struct stat facts_of(const Descriptor& file) {
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) {
    fail("look at", file, errno);
  }
  return facts;
}

/// Gives `file` the permissions of the file at `path`, as far as the file system allows.
void take_permissions(const Descriptor& file, const fs::path& path) {
  struct stat facts {};
  constexpr mode_t permissions = 0777;
  if (lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  static_cast<void>(fchmod(file.get(), facts.st_mode & permissions));
}

FileIdentity identity(const struct stat& facts) {
  return {.device = facts.st_dev, .inode = facts.st_ino};
}

constexpr std::string_view extension = ".h5";

/// Returns the file's name without its folder and without ".h5": "run" for "/tmp/run.h5".
std::string stem_of(const fs::path& run_file) {
  return (run_file.extension() == extension ? run_file.stem() : run_file.filename()).string();
}

/// A run file that is to be written, and the advice in the error message if it cannot be.
struct Output {
  const fs::path& path;
  std::string_view advice;
};

[[noreturn]] void refuse_output(const Output& output, std::string_view why,
                                std::string_view what = "write") {
  throw base::usage_error("cannot {} {}: {}; {}", what, output.path.string(), why, output.advice);
}

void check_directory(const Output& output, const fs::path& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) {
    throw base::usage_error("cannot write {}: the directory {} does not exist; create it or {}",
                            output.path.string(), directory.string(), output.advice);
  }
  if (!fs::is_directory(status)) {
    refuse_output(output, fmt::format("{} is not a directory", directory.string()));
  }
}

/// False if the sticky bit of the directory (as /tmp has it) keeps this user from replacing the
/// file. In such a directory, only root and the owners of the file and of the directory may do so.
bool may_replace(const fs::path& path, const fs::path& directory) {
  struct stat file {};
  struct stat parent {};
  if (stat(path.c_str(), &file) != 0 || stat(directory.c_str(), &parent) != 0) return true;
  const uid_t self = geteuid();
  return (parent.st_mode & S_ISVTX) == 0 || self == 0 || self == file.st_uid ||
         self == parent.st_uid;
}

void check_existing(const Output& output, const fs::path& target, Publish how) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    refuse_output(output, fs::is_directory(status) ? "it is a directory"
                          : fs::is_symlink(status) ? "it is a link that leads nowhere"
                                                   : "it is not a regular file");
  }
  if (how == Publish::replace) {
    if (fs::exists(status) && !may_replace(target, target.parent_path())) {
      refuse_output(output, "it belongs to somebody else", "replace");
    }
    return;
  }
  if (fs::exists(status)) {
    throw base::usage_error(
        "{} exists already; name another file with --output, or add --force to replace it",
        output.path.string());
  }
  if (const auto parts = existing_parts(target); !parts.empty()) {
    throw base::usage_error(
        "{} has the name of a part of {}; name another file with --output, or add --force to "
        "leave it there and continue",
        parts.front().string(), output.path.string());
  }
}

/// Removes temporary files that killed processes of this machine left in `directory`.
void sweep_temporary_files(const fs::path& directory) {
  const std::string machine_prefix = fmt::format("{}{}-", temporary_prefix, machine_mark());
  for (const fs::path& entry : base::entries_of(directory, machine_prefix)) {
    const pid_t owner = owner_of(entry.filename().string(), machine_prefix);
    if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) unlink(entry.c_str());
  }
}

}  // namespace

TemporaryFile::TemporaryFile(const fs::path& directory) : path_(directory / temporary_name()) {
  constexpr mode_t readable_by_umask = 0666;
  descriptor_.reset(
      open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, readable_by_umask));
  if (!descriptor_) fail("create a file in", directory, errno);
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

void TemporaryFile::copy_from(const Descriptor& source, std::uint64_t shift) {
  std::vector<char> block(std::size_t{1} << 20);
  std::uint64_t at = 0;
  for (auto part = read_at(source, at, block); !part.empty(); part = read_at(source, at, block)) {
    write_at(descriptor_, at + shift, part);
    at += part.size();
  }
}

void TemporaryFile::append(std::string_view bytes) {
  write_at(descriptor_, size_of(descriptor_), bytes);
}

void TemporaryFile::reserve(std::uint64_t more) {
  const std::uint64_t bytes = size_of(descriptor_) + more;
  const int code = posix_fallocate(descriptor_.get(), 0, static_cast<off_t>(bytes));
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
    fail(fmt::format("reserve {} bytes for", bytes), path_, code);
  }
}

Descriptor TemporaryFile::publish(const fs::path& final_path, Publish how) {
  // The file is locked before it gets its final name, so it is never visible without the lock.
  // The result of lock() is ignored: no other process can hold this lock, since none knows the
  // temporary name.
  static_cast<void>(lock(descriptor_));
  if (how == Publish::replace) take_permissions(descriptor_, final_path);
  if (const int code = sync(descriptor_); code != 0) fail("write out", path_, code);
  const int code = how == Publish::only_new ? rename_to_new(path_, final_path)
                   : std::rename(path_.c_str(), final_path.c_str()) == 0 ? 0
                                                                         : errno;
  if (code == EEXIST) {
    throw base::Error(fmt::format(
        "{} came into being while this run was under way and is not overwritten; name another file "
        "with --output",
        final_path.string()));
  }
  if (code != 0) fail("rename a file to", final_path, code);
  path_.clear();  // the destructor has nothing to remove
  // The file is complete and has its final name, so it is no error if the name is not on disk yet.
  if (const int left = sync_directory(final_path.parent_path()); left != 0) {
    base::warn(
        fmt::format("isoscale: warning: {} is written, but its name may not be on disk yet "
                    "({}): if the machine stops now, check that the file is there",
                    final_path.string(), std::generic_category().message(left)));
  }
  return std::move(descriptor_);
}

std::string_view read_at(const Descriptor& file, std::uint64_t at, std::span<char> room) {
  std::size_t done = 0;
  while (done < room.size()) {
    const ssize_t got =
        pread(file.get(), room.data() + done, room.size() - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", file, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return {room.data(), done};
}

void write_at(const Descriptor& file, std::uint64_t at, std::string_view bytes,
              std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(what, file, errno);
    bytes.remove_prefix(static_cast<std::size_t>(put));
    at += static_cast<std::uint64_t>(put);
  }
}

std::string name_of(const Descriptor& file) {
  std::error_code error;
  const fs::path name = fs::read_symlink(fmt::format("/proc/self/fd/{}", file.get()), error);
  return error ? "a run file" : name.string();
}

std::uint64_t size_of(const Descriptor& file) {
  return static_cast<std::uint64_t>(facts_of(file).st_size);
}

std::optional<FileIdentity> identity_of(const fs::path& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) == 0) return identity(facts);
  if (errno == ENOENT) return std::nullopt;
  fail("look at", path, errno);
}

FileIdentity identity_of(const Descriptor& file) { return identity(facts_of(file)); }

bool owner_may_write(const Descriptor& file) { return (facts_of(file).st_mode & S_IWUSR) != 0; }

bool lock(const Descriptor& file) {
  // The lock belongs to the open file, not to the process: HDF5 opens and closes the same file
  // meanwhile, which would release a lock of the process.
  struct flock whole_file {};
  whole_file.l_type = F_WRLCK;
  whole_file.l_whence = SEEK_SET;
  if (fcntl(file.get(), F_OFD_SETLK, &whole_file) == 0) return true;
  return errno != EAGAIN && errno != EACCES;
}

Descriptor open_locked(const fs::path& path) {
  Descriptor file{open(path.c_str(), O_RDWR | O_CLOEXEC)};
  if (!file && (errno == ENOENT || errno == EACCES || errno == EPERM)) return {};
  if (!file) fail("open", path, errno);
  // Between the opening and the lock, another writer may have replaced the file and ended.
  if (!lock(file) || identity_of(path) != identity_of(file)) {
    throw base::usage_error(
        "{} is being written by another launch; wait until that has ended, or name "
        "another file with --output",
        path.string());
  }
  return file;
}

fs::path part_path(const fs::path& run_file, int index) {
  return run_file.parent_path() /
         fmt::format("{}.part{:04}{}", stem_of(run_file), index, extension);
}

std::vector<fs::path> existing_parts(const fs::path& run_file) {
  const std::string prefix = stem_of(run_file) + ".part";
  std::vector<fs::path> parts = base::entries_of(run_file.parent_path(), prefix);
  // The names end in the index of the point and, if such a name was taken, in -2, -3, ...
  const std::regex index{R"(\d{4,}(-\d+)?\.h5)"};
  std::erase_if(parts, [&](const fs::path& entry) {
    return !std::regex_match(entry.filename().string().substr(prefix.size()), index);
  });
  return parts;
}

fs::path resolved_output(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (!error) return real;
  fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

void check_output(const fs::path& path, Publish how, std::string_view advice) {
  if (path.filename().empty()) {
    throw base::usage_error("cannot write '{}': it names no file; name one with --output",
                            path.string());
  }
  const fs::path target = resolved_output(path);
  const Output output{path, advice};
  check_directory(output, target.parent_path());
  check_existing(output, target, how);
  sweep_temporary_files(target.parent_path());
  try {
    const TemporaryFile trial{target.parent_path()};
  } catch (const base::Error& error) {
    refuse_output(output, error.what());
  }
  constexpr std::size_t longest_name = 255 - std::string_view{".part0000-00"}.size();
  if (target.filename().string().size() > longest_name) {
    refuse_output(output, fmt::format("a file name has at most {} characters", longest_name));
  }
}

}  // namespace isoscale::results
