// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/records/run_data.hpp"
#include "results/writer/writer.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/site.hpp"
#include "settings/run_config.hpp"

/// The run file of a launch: its name, its header, the data of points that are not measured yet,
/// and the place where it is written.
namespace isoscale::runner {

/// Returns the path of the run file: the one that the user gave, or one made of the workloads,
/// `host` and the present time.
[[nodiscard]] std::filesystem::path output_path(const settings::RunConfig& config,
                                                const std::string& host);

/// Returns the facts of a rank: those of its machine, its MPI library and its device. If the
/// machine and the device have a value for the same key, the machine's is used. Numbers of the
/// device that are not finite are left out.
[[nodiscard]] results::RankFacts rank_facts(int rank, int node,
                                            const machine::MachineFacts& machine,
                                            const executor::Description& device);

/// Collective: returns the facts of every rank, by rank, on rank 0; empty on other ranks. Ranks may
/// differ in their software. `facts` and `node_of_rank` are by rank.
[[nodiscard]] std::vector<results::RankFacts> gather_rank_facts(
    const comm::Communicator& world, const executor::Description& device,
    std::span<const machine::MachineFacts> facts, std::span<const int> node_of_rank);

/// Returns the header of a run, which is everything but its points and its end, with a new id.
/// `facts` are by rank.
[[nodiscard]] results::RunData make_header(const settings::RunConfig& config,
                                           const plan::Site& site,
                                           const executor::Description& device,
                                           std::vector<results::RankFacts> facts);

/// Returns the part of a point's data that is known before it is measured. For a skipped point this
/// is all of its data.
[[nodiscard]] results::PointData describe_point(const plan::PlannedPoint& point);

/// The file that a launch writes, on rank 0 only. If the file cannot be written any more (its file
/// system is full, read-only or missing, or the file was replaced), it is continued in a fallback
/// directory.
class RunFile {
 public:
  /// `header` is written to the file. `fallback` is a directory, which should be on another file
  /// system.
  RunFile(results::RunWriter writer, std::filesystem::path path, results::RunData header,
          std::filesystem::path fallback);

  /// When these functions return, the data is on disk: in the file, or in a new file in the
  /// fallback directory, which then also has all earlier points that can still be read. The new
  /// file has the same name, with a number added if this name is taken there. Both functions throw
  /// base::Error if neither file can be written.
  void commit(const results::PointData& point);
  void finish(const results::RunData& last);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns a sentence that says why the file is not at the requested path; "" if it is.
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

/// Returns the directory in which a run is continued if its file cannot be written any more: the
/// one that the user gave, else TMPDIR, else /tmp.
[[nodiscard]] std::filesystem::path fallback_of(const settings::RunConfig& config);

}  // namespace isoscale::runner
