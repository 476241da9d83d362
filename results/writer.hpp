// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "config/run_config.hpp"
#include "results/run_data.hpp"
#include "results/run_files.hpp"
#include "results/run_groups.hpp"
#include "units/quantity.hpp"

namespace isoscale::results {

/// Past this size of the run file, points go to part files of their own.
inline constexpr units::Bytes default_part_limit{std::uint64_t{256} << 20U};

/// Writes a run file point by point (SCHEMA.md). What has the file's name is always complete and
/// readable: each commit changes a copy, which then takes the name. Nothing has the name before the
/// first commit, and no temporary file outlives an exception. Used by one process, from one thread;
/// what it wrote or is going to replace is locked against other writers, and what another one has
/// put in its place is left alone: the commit throws.
class RunWriter {
 public:
  /// Rehearses the header, so that a file system that cannot hold it is found out before anything
  /// is measured. `path` has passed check_output with the same `if_exists`. The points, the end and
  /// the completeness of `header` are not looked at. Throws base::Error, base::UsageError when
  /// another launch is writing the file.
  RunWriter(const std::filesystem::path& path, RunData header, config::IfExists if_exists,
            units::Bytes part_limit = default_part_limit);

  /// Goes on with a run file that an earlier launch left: `earlier` is what it holds, and its
  /// points `again` are taken out of it, to be measured anew. The file is partial from now on and
  /// has the warnings of `earlier`. Parts of this run that it does not name are removed, those of
  /// the points `again` once there are new ones or the run ends. What it says of the launch stays.
  /// Throws base::Error, with the file as it was: base::UsageError when another launch is writing
  /// it, or has changed it since `earlier` was read.
  [[nodiscard]] static RunWriter resume(const std::filesystem::path& path, RunData earlier,
                                        const std::set<int>& again,
                                        units::Bytes part_limit = default_part_limit);

  /// Appends one point; when this returns, it is on disk. Throws base::Error, with the file as it
  /// was before, when the point contradicts itself, has the index of another, or finds no room.
  void commit(const PointData& point);

  /// Writes the end time, completeness, warnings and calibration of `last`, and the file itself if
  /// it has no points. May be called when a run ends early, with `complete` false.
  void finish(const RunData& last);

  /// A copy in `directory` of what was published last, whatever has become of its name; parts do
  /// not lie beside it. Null before the first commit. Throws base::Error when there is no room for
  /// it.
  [[nodiscard]] std::unique_ptr<TemporaryFile> copy_published(
      const std::filesystem::path& directory) const;

 private:
  struct Existing {};  ///< a run file is there, to be gone on with
  RunWriter(Existing, const std::filesystem::path& path, RunData earlier,
            const std::set<int>& again, units::Bytes part_limit);
  void write_header(const TemporaryFile& file) const;
  /// Copies what is published, changes the copy's root group, publishes it.
  template <class Change>
  void commit_change(std::uint64_t room, Change&& change);
  void publish(TemporaryFile& file);
  /// The way to take the name; throws base::Error when another writer has taken it.
  [[nodiscard]] Publish way_to_publish() const;
  void commit_as_part(const PointData& point, const PointTables& tables);

  std::filesystem::path path_;
  RunData header_;
  config::IfExists if_exists_;
  std::uint64_t part_limit_;                             ///< bytes
  std::set<int> committed_;                              ///< indices of the points
  std::map<int, std::filesystem::path> outdated_parts_;  ///< of points to be measured anew
  std::optional<std::string> replaced_id_;               ///< the run that the first commit replaces
  Descriptor published_;  ///< what was published last; ours even if the name is not any more
  Descriptor replaced_;   ///< the lock of the file that the first commit replaces
  std::optional<FileIdentity> owned_;  ///< what may have the name: either of these
};

}  // namespace isoscale::results
