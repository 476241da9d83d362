// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "results/run_data.hpp"
#include "results/writer.hpp"

namespace isoscale::runner {

/// The file that a launch writes, and where it goes on when that cannot be written any more: a full
/// or read-only file system, one that is gone, a file that somebody replaced. Used by rank 0.
class RunFile {
 public:
  /// `header`: what the file has of the launch. `fallback`: a directory on another file system.
  RunFile(results::RunWriter writer, std::filesystem::path path, results::RunData header,
          std::filesystem::path fallback);

  /// When these return, it is on disk, in the file or in one of the same name in the fallback,
  /// which then has all earlier points too as far as they can still be read. Throws base::Error
  /// when neither can be written.
  void commit(const results::PointData& point);
  void finish(const results::RunData& last);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Why it is not where it was asked for, a sentence; "" when it is.
  [[nodiscard]] const std::string& moved() const { return moved_; }

 private:
  void change(const std::function<void()>& work);
  [[nodiscard]] std::vector<results::PointData> points_left() const;
  void move_to_fallback(const std::string& why);

  results::RunWriter writer_;
  std::filesystem::path path_;
  results::RunData header_;
  std::filesystem::path fallback_;
  std::string moved_;
};

/// Where a run goes on by default: TMPDIR, else /tmp.
[[nodiscard]] std::filesystem::path default_fallback();

}  // namespace isoscale::runner
