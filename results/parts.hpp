// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "results/hdf5.hpp"

/// Part files on the writer's side: which are whose, and which may go.
namespace isoscale::results {

/// The run that a file of this format (layout.hpp) belongs to; none when the file is not there, is
/// of another format or cannot be read. Throws nothing of HDF5's.
[[nodiscard]] std::optional<std::string> run_id_of(const std::filesystem::path& path,
                                                   std::string_view format);

/// Where the parts lie that the group `points` of a run file names, by the index of the point.
[[nodiscard]] std::map<int, std::filesystem::path> named_parts(
    const std::filesystem::path& run_file, const hdf5::Group& points);

/// Of the files that have the name of a part and are not in `named`: removes the parts of this run,
/// and warns of the others, which stay. Without a `run_id` all are others.
void remove_unnamed_parts(const std::filesystem::path& run_file,
                          const std::optional<std::string>& run_id,
                          const std::set<std::filesystem::path>& named);

/// A name for the part of a point that nothing has yet: part_path, or that with -2, -3, ...
[[nodiscard]] std::filesystem::path new_part_path(const std::filesystem::path& run_file, int index);

/// A part file that has its name while the run file does not name it yet; removed when destroyed
/// unless it is to be kept.
class UnnamedPart {
 public:
  explicit UnnamedPart(std::filesystem::path path) : path_(std::move(path)) {}
  ~UnnamedPart();
  UnnamedPart(const UnnamedPart&) = delete;
  UnnamedPart& operator=(const UnnamedPart&) = delete;
  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

}  // namespace isoscale::results
