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
#include "runner/plan/launch_site.hpp"
#include "runner/plan/plan.hpp"
#include "settings/run_config.hpp"

/// The run file of a launch: its path, its header, the data of a point that is known before the
/// point is measured, and the class that writes the file.
namespace isoscale::runner {

/// Returns the path of the run file: the one that the user gave, else a name made from the
/// workloads, `host` and the present time.
[[nodiscard]] std::filesystem::path output_path(const settings::RunConfig& config,
                                                const std::string& host);

/// Returns the facts of a rank about its machine, its MPI library and its device. If machine and
/// device both have a value for a key, the machine's value is used. Numbers of the device that are
/// not finite are left out.
[[nodiscard]] results::RankFacts rank_facts(int rank, int node,
                                            const machine::MachineFacts& machine,
                                            const executor::Description& device);

/// Collective: returns on rank 0 the facts of every rank, in the order of ranks; empty on other
/// ranks. Each rank contributes its own software versions, which may differ between ranks. `facts`
/// and `node_of_rank` are indexed by rank.
[[nodiscard]] std::vector<results::RankFacts> gather_rank_facts(
    const comm::Communicator& world, const executor::Description& device,
    std::span<const machine::MachineFacts> facts, std::span<const int> node_of_rank);

/// Returns the header of a new run, with a new id. A header is everything in a run file except the
/// points. The returned header lacks the results of preflight, which the caller adds, and the facts
/// that are known only at the end of the run. `facts` are in the order of ranks.
[[nodiscard]] results::RunData make_header(const settings::RunConfig& config,
                                           const plan::Site& site,
                                           const executor::Description& device,
                                           std::vector<results::RankFacts> facts);

/// Returns the data of a point as far as it is known before the point is measured. For a skipped
/// point this is all of its data.
[[nodiscard]] results::PointData describe_point(const plan::PlannedPoint& point);

/// The file that a launch writes; it exists on rank 0 only. If it cannot be written any more (its
/// file system is full, read-only or missing, or another file has replaced it), the run goes on in
/// a new file in a fallback directory.
class RunFile {
 public:
  /// `writer` writes the file at `path`, and `header` is its header. `fallback` is a directory,
  /// which should be on another file system.
  RunFile(results::RunWriter writer, std::filesystem::path path, results::RunData header,
          std::filesystem::path fallback);

  /// commit() adds a point, and finish() completes the file. When they return, the data is on disk:
  /// in the file or, if that cannot be written, in a new file in the fallback directory. The new
  /// file gets all earlier points that can still be read. Its name is that of the old file, with a
  /// number if it is taken. Both functions throw base::Error if neither file can be written.
  void commit(const results::PointData& point);
  void finish(const results::RunData& last);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns a sentence that says why the file is not at the path asked for; "" if it is there.
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

/// Returns the directory in which a run goes on if its file cannot be written any more: the one
/// that the user gave, else TMPDIR, else /tmp.
[[nodiscard]] std::filesystem::path fallback_of(const settings::RunConfig& config);

}  // namespace isoscale::runner
