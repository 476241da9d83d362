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

#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/reader/appended_summary.hpp"
#include "results/records/run_data.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"

namespace isoscale::results {

/// A point that would make the run file larger than this is written to a part file.
inline constexpr units::Bytes default_part_limit{std::uint64_t{256} << 20U};

/// Writes a run file point by point (SCHEMA.md). The file with the final name is always complete
/// and readable: each commit changes a copy, which then replaces the file. Until the first commit,
/// that name belongs to no file, or still to the old one. No temporary file remains after an
/// exception. A writer is used from one thread. The run file that it has published or will replace
/// is locked; a commit throws if another writer has replaced it nevertheless.
class RunWriter {
 public:
  /// Writes the header to a temporary file as a test, so that a file system that cannot hold it is
  /// detected before measuring. `path` must have passed check_output() with the same `if_exists`.
  /// Points, end time, completeness and calibration in `header` are ignored. Throws base::Error, or
  /// base::UsageError when another launch is writing the file.
  RunWriter(const std::filesystem::path& path, RunData header, settings::IfExists if_exists,
            units::Bytes part_limit = default_part_limit);

  /// Continues a run file of an earlier launch, whose content is `earlier`. The points `again` are
  /// removed from the file, to be measured anew. The file becomes partial, and keeps the warnings
  /// of `earlier` and the facts about the earlier launch. Part files of this run that the run file
  /// does not refer to are removed; those of the points `again` are removed once the points have
  /// been measured anew or the run ends. Throws base::Error, with the file unchanged;
  /// base::UsageError when it is damaged, read-only or missing, or when another launch is writing
  /// it or has changed it meanwhile.
  [[nodiscard]] static RunWriter resume(const std::filesystem::path& path, RunData earlier,
                                        const std::set<int>& again,
                                        units::Bytes part_limit = default_part_limit);

  /// Appends one point, which is on disk when this returns. Throws base::Error, with the file's
  /// points as before, if the point is inconsistent, its index not new, or writing fails.
  void commit(const PointData& point);

  /// Writes the end time, completeness, warnings and calibration of `last`, to a new file if no
  /// point was committed. May be called when a run ends early, with `complete` false.
  void finish(const RunData& last);

  /// Returns a copy, in `directory`, of the file that was published last, without its parts, even
  /// if its name is gone; null if none was published yet. Throws base::Error for lack of space.
  [[nodiscard]] std::unique_ptr<TemporaryFile> copy_published(
      const std::filesystem::path& directory) const;

 private:
  RunWriter(const std::filesystem::path& path, RunData earlier, const std::set<int>& again,
            units::Bytes part_limit);
  void write_header(const TemporaryFile& file) const;
  /// Copies the published file, or writes the header if there is none, reserves `room` bytes,
  /// changes the copy's root group, and publishes the copy with `next`, its new summary.
  template <class Change>
  void commit_change(std::uint64_t room, RunSummary next, Change&& change);
  /// Returns the summary with one more point.
  [[nodiscard]] RunSummary with(const PointData& point,
                                std::optional<std::string> part_file = {}) const;
  /// Gives the file its final name. Throws base::Error when another writer has taken the name.
  void publish(TemporaryFile& file);
  /// Writes the point, which takes up to `room` bytes, to a part file.
  void commit_as_part(const PointData& point, std::uint64_t room);

  std::filesystem::path path_;
  RunData header_;
  RunSummary summary_;  ///< summary of the published file
  settings::IfExists if_exists_;
  std::uint64_t part_limit_;  ///< bytes
  std::set<int> committed_;   ///< indices of points in the file
  /// The part files of points that are measured anew, by the index of the point.
  std::map<int, std::filesystem::path> outdated_parts_;
  std::optional<std::string> replaced_id_;  ///< id of the run that the first commit replaces
  /// The file published last, open even if its name now refers to another file.
  Descriptor published_;
  Descriptor replaced_;  ///< holds the lock of the file that the first commit replaces
  /// The file that this writer may replace: the one published last, or the existing file before the
  /// first commit.
  std::optional<FileIdentity> owned_;
};

}  // namespace isoscale::results
