// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/handle.hpp"
#include "config/run_config.hpp"

namespace isoscale::results {

// The few file operations that an always complete file rests on (POSIX), and the names of run files
// and of their parts.

struct DescriptorTraits {
  using type = int;
  static constexpr int null() { return -1; }
  static void free(int descriptor) noexcept;
};
using Descriptor = base::Handle<DescriptorTraits>;

/// The treatment of a file that has the final name already.
enum class Publish : std::uint8_t { only_new, replace };

/// A file under a name that no other process uses, removed when destroyed unless it was published.
class TemporaryFile {
 public:
  /// Creates it, empty, in `directory`, following no link. Throws base::Error with the system's
  /// reason.
  explicit TemporaryFile(const std::filesystem::path& directory);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] const Descriptor& descriptor() const { return descriptor_; }
  [[nodiscard]] std::uint64_t bytes() const;

  /// Takes over the content of an open file, to stand from `shift` bytes on; zeros before.
  void copy_from(const Descriptor& source, std::uint64_t shift = 0);
  /// Makes sure that the file system has room for the file at this size; it may be longer
  /// afterwards. Throws base::Error when it has not; does nothing where that cannot be asked for.
  void reserve(std::uint64_t bytes);
  /// Gives the file its final name, all of it on disk before and the name after: whoever looks, and
  /// whenever the machine stops, finds the old content or the new, and the permissions of a
  /// file that is replaced. The descriptor stays valid whatever becomes of the name, and holds the
  /// file's lock. Throws base::Error, with the old content in place; warns where only the name
  /// could not be brought to disk.
  [[nodiscard]] Descriptor publish(const std::filesystem::path& final_path, Publish how);

 private:
  std::filesystem::path path_;  ///< empty once published
  Descriptor descriptor_;
};

[[nodiscard]] std::uint64_t size_of(const Descriptor& file);

/// The file's present name, for a sentence about it.
[[nodiscard]] std::string name_of(const Descriptor& file);

/// Tells a file from every other one that exists at the same time, whichever names they have.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// The identity of the file that has the name now; none when nothing has it. Follows no link.
[[nodiscard]] std::optional<FileIdentity> identity_of(const std::filesystem::path& path);
[[nodiscard]] FileIdentity identity_of(const Descriptor& file);

/// True if the file's owner has not made it read-only; the superuser may write it all the same.
[[nodiscard]] bool owner_may_write(const Descriptor& file);

/// Takes the advisory lock that a writer holds on what it published last, for as long as the
/// descriptor is open; it ends with the process, however that ends. False when somebody else has
/// it. True also where the file system has no locks. The locks that HDF5 takes are others.
[[nodiscard]] bool lock(const Descriptor& file);

/// Opens and locks the file that has the name, so that no other process replaces it; none when
/// nothing has the name, or this user may not write what has it. Throws base::UsageError when
/// another process is writing it, base::Error when it cannot be opened.
[[nodiscard]] Descriptor open_locked(const std::filesystem::path& path);

/// Removes temporary files that processes of this machine left in `directory` when they were
/// killed.
void sweep_temporary_files(const std::filesystem::path& directory);

/// Finds out before anything runs whether a run file can be written at `path`: the directory exists
/// and takes files (one is created and removed), and nothing is there that may not be replaced.
/// Removes temporary files that killed runs of this machine left there. Throws base::UsageError.
void check_output(const std::filesystem::path& path, config::IfExists if_exists);

/// The path of the part file of a point: beside the run file, "run.part0003.h5" for "run.h5",
/// unless something else has that name (new_part_path).
[[nodiscard]] std::filesystem::path part_path(const std::filesystem::path& run_file, int index);
/// The files that have the name of a part of the run file, whoever wrote them; ascending.
[[nodiscard]] std::vector<std::filesystem::path> existing_parts(
    const std::filesystem::path& run_file);
/// The path to which a run file really goes: absolute, and through a link to what the link points
/// to.
[[nodiscard]] std::filesystem::path resolved_output(const std::filesystem::path& path);

}  // namespace isoscale::results
