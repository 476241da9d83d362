// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/curve_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using samples::Script;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Begin and end of each op, in thousandths of a step.
using Spans = std::vector<std::pair<int, int>>;

/// A point that plays `script` on all ranks; of[rank] are the spans of those that were traced.
results::PointData traced(int index, const mesh::Shape& shape, const Script& script,
                          const std::map<int, Spans>& of) {
  timeline::Timeline step;
  for (const auto& [rank, spans] : of) step.ranks.push_back(samples::trace(rank, {0, 1000}, spans));
  results::PointData made = samples::measured(index, shape, 1e-6);
  const auto ranks = static_cast<std::size_t>(shape.size());
  samples::set_trace(made,
                     samples::point(shape, std::vector<Script>(ranks, script), std::move(step)));
  samples::add_traced_steps(made, 1e-6, 1.0);
  return made;
}

/// The tables of the one curve that these points are.
std::vector<render::TitledTable> tables_of(std::vector<results::PointData> points) {
  results::RunData run = samples::run();
  run.points = std::move(points);
  const RunReport report = make_report(run, "a.h5", {});
  EXPECT_EQ(report.curves.size(), 1U);
  std::vector<render::TitledTable> tables;
  for (const auto& table : render::strategy_tables(report.curves.front())) {
    tables.push_back(as_text(table));
  }
  return tables;
}

std::vector<std::vector<std::string>> rows_of(const render::TitledTable& table) {
  std::vector<std::vector<std::string>> rows;
  for (const render::Row& row : table.rows) rows.push_back(row.cells);
  return rows;
}

std::vector<std::string> headings_of(const render::TitledTable& table) {
  std::vector<std::string> headings;
  for (const auto& column : table.columns) headings.push_back(column.heading);
  return headings;
}

/// A GEMM of so many thousandths of a step, and the rest of it a reduction.
Spans busy(int thousandths) { return {{0, thousandths}, {thousandths, 1000}}; }

const Script& reducing() {
  static const Script script = Script{}.compute().all_reduce(Axis::dp);
  return script;
}

TEST(StrategyTables, AReplicaIsAsBusyAsItsRanksOnAverage) {
  // Ranks 0 and 1 are the first replica: tp varies fastest.
  results::PointData one = traced(0, {.tp = 2}, reducing(), {{0, busy(900)}, {1, busy(900)}});
  results::PointData two = traced(1, {.tp = 2, .dp = 2}, reducing(),
                                  {{0, busy(800)}, {1, busy(600)}, {2, busy(300)}, {3, busy(100)}});
  results::PointData three =
      traced(2, {.tp = 2, .dp = 3}, reducing(), {{0, busy(500)}, {1, busy(500)}, {4, busy(250)}});
  for (results::PointData* const point : {&one, &two, &three}) {
    point->options["partition"] = "skewed:2";
  }
  const auto tables = tables_of({one, two, three});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_EQ(tables[0].title, "utilisation of replicas, compute over step");
  // One replica has nobody to be uneven with; ranks that were not traced are not known.
  EXPECT_THAT(headings_of(tables[0]), ElementsAre("", "4 ranks", "6 ranks"));
  EXPECT_THAT(rows_of(tables[0]),
              ElementsAre(ElementsAre("replica 0", "70.0%", "50.0%"),
                          ElementsAre("replica 1", "20.0%", render::undefined),
                          ElementsAre("replica 2", render::undefined, "25.0%")));
}

TEST(StrategyTables, ReplicasAreListedUpToTwelve) {
  std::map<int, Spans> all;
  for (int rank = 0; rank < 13; ++rank) all[rank] = busy(10 * (1 + rank));
  results::PointData point = traced(0, {.dp = 13}, reducing(), all);
  point.options["partition"] = "proportional";
  const auto tables = tables_of({point});
  ASSERT_THAT(tables, SizeIs(1));
  ASSERT_THAT(tables[0].rows, SizeIs(12));
  EXPECT_THAT(tables[0].rows.back().cells, ElementsAre("replica 11", "12.0%"));
}

TEST(StrategyTables, EqualSharesHaveNoTable) {
  results::PointData point = traced(0, {.dp = 2}, reducing(), {{0, busy(800)}, {1, busy(300)}});
  EXPECT_THAT(tables_of({point}), IsEmpty()) << "as of a workload without the option";
  point.options["partition"] = "equal";
  EXPECT_THAT(tables_of({point}), IsEmpty());
}

TEST(StrategyTables, CopiesOfOffloadedStatesAreHiddenOrExposed) {
  // The copy runs from 300 to 700; up to 500 the one rank computes, the other one up to 400.
  const Script script = Script{}.compute().copy(1).all_reduce(Axis::dp);
  const Spans first{{0, 500}, {300, 700}, {700, 1000}}, second{{0, 400}, {300, 700}, {700, 1000}};
  results::PointData plain = traced(0, {.dp = 2}, script, {{0, first}, {1, second}});
  plain.options["offload"] = "none";
  EXPECT_THAT(tables_of({plain}), IsEmpty());
  results::PointData offloads = plain;
  offloads.options["offload"] = "weights";
  const auto tables = tables_of({offloads});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_EQ(tables[0].title, "copies of offloaded states, share of the traced step");
  EXPECT_THAT(headings_of(tables[0]), ElementsAre("", "2 ranks"));
  // Hidden: 200 and 100 of 1000; exposed: 200 and 300.
  EXPECT_THAT(rows_of(tables[0]), ElementsAre(ElementsAre("hidden under computation", "15.0%"),
                                              ElementsAre("exposed", "25.0%")));
}

TEST(StrategyTables, UntracedPointsHaveNone) {
  results::PointData point = samples::measured(0, {.dp = 2}, 1e-6);
  point.options["partition"] = "skewed:2";
  point.options["offload"] = "optimizer";
  EXPECT_THAT(tables_of({point}), IsEmpty());
}

}  // namespace
}  // namespace isoscale::analysis
