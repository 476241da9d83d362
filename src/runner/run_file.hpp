// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/run_data.hpp"
#include "results/writer.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/site.hpp"

/// The run file of a launch: its name, its header, its points before they are measured, and where
/// it is written.
namespace isoscale::runner {

/// Returns the path that the run of `config` is written to: the name that was given, or one made of
/// workloads, `host` and the time now.
[[nodiscard]] std::filesystem::path output_path(const config::RunConfig& config,
                                                const std::string& host);

/// The software that a rank computes and communicates with; may differ from node to node.
struct RankSoftware {
  std::string device;                            ///< executor::Description::detail
  std::string mpi_library;                       ///< first line of its version
  std::map<std::string, std::string> text = {};  ///< executor::Description::facts_text
  std::map<std::string, double> number = {};     ///< executor::Description::facts_number
};
/// Writes the software of a rank as text that software_from_text() reads. Numbers that are not
/// finite are left out.
[[nodiscard]] std::string to_text(const RankSoftware& software);
[[nodiscard]] RankSoftware software_from_text(const std::string& text);

/// Collective: returns every rank's software, by rank, on rank 0; empty elsewhere.
[[nodiscard]] std::vector<RankSoftware> gather_software(const comm::Communicator& world,
                                                        const executor::Description& device);

/// Joins the facts of each rank; all three arguments are by rank. What the machine says of itself
/// goes before what a device says under the same key.
[[nodiscard]] std::vector<results::RankFacts> rank_facts(
    std::span<const machine::MachineFacts> facts, std::span<const RankSoftware> software,
    std::span<const int> node_of_rank);

/// Returns everything of a run but its points and its end, with a new identity. `facts` and
/// `software` by rank.
[[nodiscard]] results::RunData make_header(const config::RunConfig& config, const Site& site,
                                           const executor::Description& device,
                                           std::span<const machine::MachineFacts> facts,
                                           std::span<const RankSoftware> software);

/// Returns the data of a point before it is measured, or of one that is skipped.
[[nodiscard]] results::PointData describe_point(const PlannedPoint& point);

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
  /// A sentence that says why the file is not where it was asked for; "" when it is.
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

/// Returns the directory in which the run of `config` continues when its file cannot be written any
/// more: the one that was given, else TMPDIR, else /tmp.
[[nodiscard]] std::filesystem::path fallback_of(const config::RunConfig& config);

}  // namespace isoscale::runner
