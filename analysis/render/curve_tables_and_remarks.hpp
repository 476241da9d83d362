// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/merge/join_launches.hpp"
#include "analysis/render/detail_selection.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/table_cells.hpp"
#include "analysis/report.hpp"
#include "base/text.hpp"

/// Describes the metrics of points, once for all reports. Builds the tables of a curve of one
/// launch, or of a curve joined over several launches, and the remarks below the tables: lines with
/// a key and a sentence, already escaped. Callers leave out tables without rows.
namespace isoscale::analysis::render {

/// Returns the metrics of a point. Those of its JSON object are in the order of the object's keys.
/// Between them stand those that only reports for people show.
[[nodiscard]] Metrics<PointReport> point_metrics();

/// Returns the metrics of the POP efficiencies; their headings are indented to form a tree.
[[nodiscard]] Metrics<efficiency::Pop> pop_metrics();

using Points = std::vector<const PointReport*>;

/// Returns the points of the curve that have a breakdown.
[[nodiscard]] Points traced_points(const Curve& curve);

/// Returns the end of a table's title, which names the launches from which the points' breakdowns
/// come: ", launch 2" or ", launch 2 on 4 ranks, launch 5 on 8 and 16 ranks". Returns "" if no
/// point joins several launches.
[[nodiscard]] std::string of_launches(const Points& points);

/// Returns the tables of lost time by cause, of the tree of POP efficiencies and of the parallel
/// strategies in use (utilisation of replicas with different shares of the batch, copies of
/// offloaded data, the bubble of a pipeline compared with its formula), with one column per rank
/// count. For the largest traced point it adds tables of the step by phase, mesh axes, GEMM shape
/// and layer. Only tables that belong to `sections` are included.
[[nodiscard]] std::vector<DocumentTable> cause_tables(const Curve& curve,
                                                      const Sections& sections = {});

/// Adds a cell for each part of a step, then one for hidden communication and one for the transfers
/// in it. share(member of Breakdown) returns the text of a cell.
void add_part_cells(std::vector<Cell>& cells, const auto& share) {
  for (const Category& category : categories()) {
    cells.push_back({fmt::format("{} {}", category.glyph, category.name), share(category.seconds)});
  }
  cells.push_back({"hidden", share(&breakdown::Breakdown::hidden_communication)});
  cells.push_back({"moves", share(&breakdown::Breakdown::hidden_transfer)});
}

/// A column of lost_time_table(): its heading, and the times that causes add to a step (not owned).
using LostColumn = std::pair<std::string, const efficiency::Waterfall*>;
/// Returns the table of the time that each cause adds to the ideal step, as shares of the whole
/// step, which `whole` calls "measured" or "predicted". Without columns it has no rows.
[[nodiscard]] DocumentTable lost_time_table(std::span<const LostColumn> columns,
                                            std::string_view whole);

/// Returns the step time, throughput and efficiency of every point. They are taken over all
/// launches if the curve is joined over several; `joined` is null for a curve of one launch.
[[nodiscard]] DocumentTable scaling_table(const Curve& curve, const merge::JoinedCurve* joined);

/// Returns the step times of each launch, for the points that several launches measured. The table
/// has no rows if there are no such points, or if there are too many launches for one column each.
[[nodiscard]] DocumentTable times_table(const merge::JoinedCurve& joined,
                                        std::span<const RunReport> reports);

/// Returns the lines below the tables of a joined curve: its machine, the reasons why similar
/// curves were not joined with it, the points that were left out, a warning about points that a
/// single launch measured, its baseline, points with few steps, mesh axes on several nodes, and
/// causes. For a curve without points, returns only the points that were left out.
[[nodiscard]] Facts joined_remarks(const merge::JoinedCurve& joined,
                                   std::span<const RunReport> reports);

/// Collects remarks (key and sentence) about points; equal ones share a line: "2, 4 ranks: ...".
class Sentences {
 public:
  /// append_to() appends the sentences in the order of these keys.
  explicit Sentences(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  void add(const std::string& key, const PointReport& point, const std::string& sentence) {
    if (sentence.empty()) return;
    auto& said = said_[key];
    auto known = std::ranges::find(said, sentence, [](const auto& at) { return at.first; });
    if (known == said.end()) known = said.insert(known, {sentence, {}});
    known->second.push_back(point.data->ranks);
  }
  void append_to(Facts& facts) {
    for (const std::string& key : keys_) {
      for (const auto& [sentence, ranks] : said_[key]) {
        facts.emplace_back(key, fmt::format("{}: {}", base::counted(ranks, "rank"), sentence));
      }
    }
  }

 private:
  std::vector<std::string> keys_;
  /// By key: each sentence, with the rank counts of its points.
  std::map<std::string, std::vector<std::pair<std::string, std::vector<int>>>> said_;
};

/// Returns the lines below a curve of one launch: its baseline, mesh axes on several nodes, samples
/// per second, changed sizes and host memory of the model, verified points, remarks that explain
/// labels and doubtful values, and the lines of cause_remarks().
[[nodiscard]] Facts remarks(const Curve& curve);
/// If all points of the curve were skipped, returns the reasons why; otherwise returns no lines.
[[nodiscard]] Facts all_skipped(const Curve& curve);
/// Returns the lines about causes of lost time: the causes named for points, unexplained time, the
/// causes that could not be told apart, doubts about traces and clocks, and fitted scaling laws.
[[nodiscard]] Facts cause_remarks(const Curve& curve);

/// Returns the lines below the tables of a micro-benchmark: labels, folded streams, times of setup,
/// verified and wrong results, GPU clocks, tf32 rows that were computed in other arithmetic, failed
/// pairs and slow pairs.
[[nodiscard]] Facts bench_remarks(const PointReport& point);

/// Returns sentences that explain the tables of joined curves.
[[nodiscard]] std::vector<std::string> joined_key();

}  // namespace isoscale::analysis::render
