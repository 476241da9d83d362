// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/identity.hpp"
#include "analysis/report.hpp"

/// Many runs over machines, dates and versions: what each is, and the little that fits on a line.
/// It owns what it says, so that a run can be let go as soon as it was looked at.
namespace isoscale::analysis {

/// The part of a run that is of one experiment. Throughput and efficiency are those at `ranks`, the
/// largest count whose throughput is known.
struct IndexExperiment {
  Experiment experiment;
  std::string fingerprint;              ///< of the experiment and the kind of device
  bool is_bench = false;                ///< a micro-benchmark: it has rows, and no throughput
  int ok = 0, failed = 0, skipped = 0;  ///< points
  std::optional<int> ranks, nodes;      ///< of a micro-benchmark the largest point that is ok
  std::optional<double> throughput, efficiency;
  std::string unit;             ///< of the throughput
  std::optional<int> baseline;  ///< rank count that efficiency is against
  /// True if all points that were played are verified; absent where some were not checked.
  std::optional<bool> verified;
  std::vector<std::string> labels;  ///< of any point that is ok, each once
  /// False where a label says that the throughput is not the machine's.
  bool counts = true;
};

/// One run.
struct IndexRun {
  std::string id, file, created, ended, isoscale_version, git_hash, device;
  bool complete = false;
  int ranks = 0, nodes = 0;
  int fewest_per_node = 0, most_per_node = 0;  ///< ranks of one node; 0 = not known
  std::vector<std::string> hosts{};            ///< each once, ascending
  std::string cpu{}, gpu{};                    ///< kinds, "A + B" where ranks differ; "" = unknown
  std::optional<int> cores{};                  ///< of a node; absent where nodes differ
  std::size_t ok_points = 0, points = 0;
  std::vector<IndexExperiment> experiments{};
};

/// The throughput of one experiment at one rank count over the runs of a machine. It
/// says what was measured and claims nothing.
struct IndexTrend {
  Experiment experiment;
  std::string title, fingerprint, unit;
  int ranks = 0;
  std::vector<std::size_t> runs{};  ///< of Index::runs, by date
  double first = 0, last = 0, median = 0, minimum = 0, maximum = 0;
  std::optional<double> spread{};  ///< (maximum - minimum) / median; absent below 2 runs
};

/// Runs on like machines: kinds of device, CPU and GPU, cores, nodes, and names of hosts up to
/// their numbers, however many ranks were started.
struct IndexMachine {
  std::string name;                ///< "cuda, NVIDIA H200, AMD EPYC 9654, 2 nodes"
  std::vector<std::string> hosts;  ///< each once, ascending
  std::vector<std::size_t> runs;   ///< of Index::runs, by date
  std::vector<IndexTrend> trends;  ///< by title, then ranks
};

/// A file that gave no run.
struct Unreadable {
  std::string file, reason;
};

struct Index {
  std::vector<IndexRun> runs;  ///< in the order given
  std::vector<IndexMachine> machines{};
  std::vector<Unreadable> unreadable{};
};

/// Makes the entry of a report, or of what summarise() made of a summary: both give the same.
[[nodiscard]] IndexRun index_run(const RunReport& report);

/// The distinct runs (see distinct); adds a sentence for each that was left out.
[[nodiscard]] std::vector<IndexRun> without_copies(std::vector<IndexRun> runs,
                                                   std::vector<std::string>& warnings);

/// Groups runs by machine, these by name.
[[nodiscard]] Index make_index(std::vector<IndexRun> runs);

/// "node[0001-0003,0007], login": names without their domains, those with numbers at their ends
/// together; of many ranges the first and how many hosts more.
[[nodiscard]] std::string shorten_hosts(const std::vector<std::string>& hosts);

/// The answer of a process that read a file to the one that asked it to: the run, or why there is
/// none.
using IndexAnswer = std::variant<IndexRun, Unreadable>;

/// As bytes (CBOR, RFC 8949) for a process of the same program; no format of files.
[[nodiscard]] std::string to_wire(const IndexAnswer& answer);
/// Throws base::Error where the bytes are not what to_wire() gave.
[[nodiscard]] IndexAnswer from_wire(std::string_view bytes);

}  // namespace isoscale::analysis
