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

/// The run file of a launch: its name, its header, its points before they are measured, and the
/// place where it is written.
namespace isoscale::runner {

/// Returns the path of the run file of `config`: the name that the user gave, or one made of the
/// workloads, `host` and the time now.
[[nodiscard]] std::filesystem::path output_path(const config::RunConfig& config,
                                                const std::string& host);

/// The software that a rank computes and communicates with; it may differ from node to node.
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

/// Joins the facts of each rank; all three arguments are by rank. If the machine and the device
/// give a value for the same key, the machine's is kept.
[[nodiscard]] std::vector<results::RankFacts> rank_facts(
    std::span<const machine::MachineFacts> facts, std::span<const RankSoftware> software,
    std::span<const int> node_of_rank);

/// Returns the header of a run, with a new identity: everything but its points and its end. `facts`
/// and `software` are by rank.
[[nodiscard]] results::RunData make_header(const config::RunConfig& config, const Site& site,
                                           const executor::Description& device,
                                           std::span<const machine::MachineFacts> facts,
                                           std::span<const RankSoftware> software);

/// Returns the data of a point as known before it is measured; complete for a skipped point.
[[nodiscard]] results::PointData describe_point(const PlannedPoint& point);

/// The file that a launch writes. It continues in a fallback directory when it cannot be written
/// any more: its file system is full, read-only or gone, or somebody replaced the file. Used by
/// rank 0.
class RunFile {
 public:
  /// `header` is what the file holds about the launch, `fallback` a directory on another file
  /// system.
  RunFile(results::RunWriter writer, std::filesystem::path path, results::RunData header,
          std::filesystem::path fallback);

  /// When these functions return, the data is on disk: in the file, or in one of the same name in
  /// the fallback directory, which then also holds all earlier points that can still be read. They
  /// throw base::Error when neither file can be written.
  void commit(const results::PointData& point);
  void finish(const results::RunData& last);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns a sentence that says why the file is not at the path that was asked for; "" if it is.
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
/// more: the one that the user gave, else TMPDIR, else /tmp.
[[nodiscard]] std::filesystem::path fallback_of(const config::RunConfig& config);

}  // namespace isoscale::runner
