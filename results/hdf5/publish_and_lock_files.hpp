// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"

namespace isoscale::results {

// The functions below use POSIX file operations so that a published file is complete at all times.
// They also determine the names of run files and of their parts.

using base::Descriptor;

/// Tells if a file that already has the final name may be replaced.
enum class Publish : std::uint8_t { only_new, replace };

/// A file with a unique temporary name; it is removed by the destructor unless it was published.
class TemporaryFile {
 public:
  /// Creates the file, empty, in `directory`, without following links. Throws base::Error with the
  /// system's reason.
  explicit TemporaryFile(const std::filesystem::path& directory);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] const Descriptor& descriptor() const { return descriptor_; }

  /// Copies the content of an open file to this file at the offset `shift`, with zeros before it.
  void copy_from(const Descriptor& source, std::uint64_t shift = 0);
  /// Appends bytes to the file's content. Throws base::Error with the system's reason.
  void append(std::string_view bytes);
  /// Reserves space in the file system for `more` bytes after the file's content, and makes the
  /// file longer by them. Throws base::Error when there is not enough space; does nothing where the
  /// file system cannot reserve.
  void reserve(std::uint64_t more);
  /// Gives the file its final name. The content is on disk before the name is, so that at any time,
  /// even if the machine stops, the name refers to the complete old or new content. A file that
  /// replaces another gets the other's permissions. The returned descriptor holds the file's lock,
  /// and stays valid if the name is removed or reused. Throws base::Error, with the old content in
  /// place, if any step fails or if a file has the name and `how` is only_new. It only warns if the
  /// new content is on disk but the name may not be.
  [[nodiscard]] Descriptor publish(const std::filesystem::path& final_path, Publish how);

 private:
  std::filesystem::path path_;  ///< empty once published
  Descriptor descriptor_;
};

[[nodiscard]] std::uint64_t size_of(const Descriptor& file);

/// Reads from the offset `at` as many bytes as `room` holds, or fewer if the file ends before.
/// Throws base::Error with the system's reason.
[[nodiscard]] std::string_view read_at(const Descriptor& file, std::uint64_t at,
                                       std::span<char> room);
/// Writes all bytes to the file from the offset `at` on. Throws base::Error "cannot WHAT FILE:
/// REASON".
void write_at(const Descriptor& file, std::uint64_t at, std::string_view bytes,
              std::string_view what = "write");

/// Returns the file's current name for messages; "a run file" if it is not known.
[[nodiscard]] std::string name_of(const Descriptor& file);

/// Identifies a file independently of its name: no two files that exist at the same time have the
/// same identity.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Returns the identity of the file with this name; none when there is no such file. Does not
/// follow links. Throws base::Error if the file's status cannot be read.
[[nodiscard]] std::optional<FileIdentity> identity_of(const std::filesystem::path& path);
[[nodiscard]] FileIdentity identity_of(const Descriptor& file);

/// True if the file's owner has not made it read-only; the superuser could write it nevertheless.
[[nodiscard]] bool owner_may_write(const Descriptor& file);

/// Takes the advisory lock of an open file, which a writer holds on the file that it published
/// last. It is held until the descriptor is closed, or the process ends for any reason. Returns
/// false if another process, or another descriptor of this one, holds the lock, and true if the
/// lock was taken or if the file system has none. HDF5's own locks are independent of this one.
[[nodiscard]] bool lock(const Descriptor& file);

/// Opens and locks the file with this name, so that no other process replaces it. Returns an empty
/// descriptor if there is no file, or if this user may not write it. Throws base::UsageError when
/// another process is writing it, base::Error when it cannot be opened.
[[nodiscard]] Descriptor open_locked(const std::filesystem::path& path);

/// Checks before a run that a run file can be written at `path`: the directory exists, and files
/// can be created there (one is created and removed); without Publish::replace, there is no file
/// at `path` and none with the name of one of its parts; with it, a file at `path` is a regular one
/// that this user may replace; the name is short enough for the longer names of parts. Removes
/// temporary files that killed runs of this machine left there. Throws base::UsageError, which ends
/// with `advice`, if a condition does not hold.
void check_output(const std::filesystem::path& path, Publish how,
                  std::string_view advice = "name another file with --output");

/// Returns the path of the part file of the point number `index`: "run.part0003.h5" beside
/// "run.h5". If that name is taken, the writer uses another (new_part_path() in writer.cpp).
[[nodiscard]] std::filesystem::path part_path(const std::filesystem::path& run_file, int index);
/// Returns the files that are named like parts of the run file, even if another run wrote them, in
/// ascending order.
[[nodiscard]] std::vector<std::filesystem::path> existing_parts(
    const std::filesystem::path& run_file);
/// Returns the absolute path at which a run file is really written; links are followed.
[[nodiscard]] std::filesystem::path resolved_output(const std::filesystem::path& path);

}  // namespace isoscale::results
