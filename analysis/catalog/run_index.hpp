// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/report.hpp"

/// Lists many runs by machine, date and version, with the few results of each run that fit on a
/// line. An index has copies of all texts and numbers, so that each run can be freed before the
/// next one is read.
namespace isoscale::analysis::catalog {

/// The part of a run that belongs to one experiment. Throughput and efficiency are those of the
/// point with `ranks` ranks, the largest rank count whose throughput is known.
struct IndexExperiment {
  Experiment experiment;
  std::string fingerprint;              ///< text that identifies the experiment and the device
  bool is_bench = false;                ///< a micro-benchmark, which has no throughput
  int ok = 0, failed = 0, skipped = 0;  ///< numbers of points
  std::optional<int> ranks, nodes;      ///< for a micro-benchmark: of the largest ok point
  std::optional<double> throughput, efficiency;
  std::string unit;             ///< unit of the throughput
  double work_growth = 1;       ///< PointReport::work_growth of the point with `ranks` ranks
  std::optional<int> baseline;  ///< rank count that efficiency is relative to
  /// True if all points that were run are verified, false if the result of one is wrong; absent if
  /// some were not checked or none was run.
  std::optional<bool> verified;
  /// The labels of all ok points, each once, without "not-closed", which depends on traces.
  std::vector<std::string> labels;
  /// False if a label such as "oversubscribed" says that the throughput does not show the machine's
  /// own speed; such a throughput is in no trend.
  bool counts = true;
};

/// The index entry of one run.
struct IndexRun {
  std::string id, file, created, ended, isoscale_version, git_hash, device;
  bool complete = false;
  int ranks = 0, nodes = 0;
  int fewest_per_node = 0, most_per_node = 0;  ///< ranks of one node; 0 = not known
  std::vector<std::string> hosts{};            ///< each once, ascending
  std::string cpu{}, gpu{};                    ///< models, "A + B" if ranks differ; "" = unknown
  std::optional<int> cores{};                  ///< cores of a node; absent: unknown or nodes differ
  int planned = 0;  ///< points that the run was to measure; 0 = not known
  std::size_t ok_points = 0, points = 0;
  std::vector<IndexExperiment> experiments{};
};

/// The throughput of one experiment at one rank count and one number of nodes, over the runs of a
/// machine. It does not judge whether the throughput became better or worse.
struct IndexTrend {
  Experiment experiment;
  std::string title, fingerprint, unit;
  int ranks = 0;
  std::vector<std::size_t> runs{};  ///< indices in Index::runs, by date
  double first = 0, last = 0, median = 0, minimum = 0, maximum = 0;
  std::optional<double> spread{};  ///< (maximum - minimum) / median; absent for 1 run or median 0
};

/// The runs on one machine. Two runs count as on the same machine if device, CPU, GPU, cores,
/// number of nodes and the beginnings of the host names, up to the first digit or dot, are equal.
/// Host names of containers, which are random, are not compared. The number of ranks that were
/// started does not matter.
struct IndexMachine {
  std::string name;                ///< "cuda, NVIDIA H200, EPYC 9654, 192 cores, 2 nodes"
  std::vector<std::string> hosts;  ///< each once, ascending
  std::vector<std::size_t> runs;   ///< indices in Index::runs, by date
  std::vector<IndexTrend> trends;  ///< by title, then ranks
};

/// A file from which no run could be read.
struct Unreadable {
  std::string file, reason;
};

struct Index {
  std::vector<IndexRun> runs;  ///< in the order in which make_index() was given them
  std::vector<IndexMachine> machines{};
  std::vector<Unreadable> unreadable{};
};

/// Makes a run's index entry. The reports by make_report() and by summarise() give the same entry.
[[nodiscard]] IndexRun index_run(const RunReport& report);

/// Keeps one of several copies of a run: the most complete one, or the first of equally complete
/// ones. Adds a warning for each copy that it leaves out.
[[nodiscard]] std::vector<IndexRun> without_copies(std::vector<IndexRun> runs,
                                                   std::vector<std::string>& warnings);

/// Groups the runs by machine and finds the trends of each machine. Machines are ordered by
/// device, GPU, CPU, number of cores and number of nodes; the runs of a machine by date.
[[nodiscard]] Index make_index(std::vector<IndexRun> runs);

/// Returns "node[0001-0003,0007], login": host names without their domains. Names that differ only
/// in the number at their end, with equally many digits, are joined. If there are many ranges, the
/// text has only the first ones and the number of other hosts.
[[nodiscard]] std::string shorten_hosts(const std::vector<std::string>& hosts);

}  // namespace isoscale::analysis::catalog
