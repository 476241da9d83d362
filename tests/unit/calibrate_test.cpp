// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/bench_tables.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"
#include "analysis_test.hpp"
#include "calibration/calibration.hpp"

namespace isoscale::analysis {
namespace {

using results::CalibrationCurve;
using results::CalibrationData;
using results::RunData;

const CalibrationCurve* curve_of(const CalibrationData& calibration, const std::string& op,
                                 int members) {
  for (const CalibrationCurve& at : calibration.curves) {
    if (at.op == op && at.members == members) return &at;
  }
  return nullptr;
}

TEST(Growth, NamesTheLawThatLatencyFollows) {
  const auto growth = [](const std::vector<int>& counts,
                         const std::function<double(double)>& latency) {
    const results::Fitted known{.value = 2e-6};
    std::vector<CalibrationCurve> curves{{.op = "reduce", .members = 4, .latency = known}};
    for (const int members : counts) {
      curves.push_back({.op = "all_reduce",
                        .members = members,
                        .latency = results::Fitted{.value = latency(members)},
                        .bandwidth = results::Fitted{.value = 10e9 - 0.5e9 * members}});
    }
    const auto all = calibration::growth_of(curves);
    EXPECT_EQ(all.size(), 1U) << "one count tells nothing";
    return all.at(0);
  };
  const auto tree = growth({16, 2, 8, 4}, [](double n) { return 3e-6 + 2e-6 * std::log2(n); });
  EXPECT_EQ(tree.law, "log2 n");
  EXPECT_NEAR(tree.base, 3e-6, 1e-12);
  EXPECT_NEAR(tree.slope, 2e-6, 1e-12);
  EXPECT_THAT(tree.members, ElementsAre(2, 4, 8, 16));
  EXPECT_NEAR(tree.bandwidth_factor.value(), 2.0 / 9, 1e-12);
  const auto ring = growth({16, 2, 8, 4}, [](double n) { return 1e-6 + 0.7e-6 * n; });
  EXPECT_EQ(ring.law, "n");
  EXPECT_NEAR(ring.base, 1e-6, 1e-12);
  EXPECT_NEAR(ring.slope, 0.7e-6, 1e-12);
  const auto two = growth({2, 4}, [](double n) { return 0.5e-6 * n; });
  EXPECT_EQ(two.law, "") << "two counts are no law";
  EXPECT_NEAR(two.slope, 1e-6, 1e-12);
}

TEST(GemmRate, IsSetAgainstThatOfTheNextSize) {
  std::vector<results::GemmRate> gemms{
      {.dtype = "f32", .cache = "cold", .m = 64, .n = 64, .k = 64, .rate = 1e9},
      {.dtype = "f32", .cache = "cold", .m = 512, .n = 512, .k = 512, .rate = 4e9},
      {.dtype = "f32", .cache = "warm", .m = 512, .n = 512, .k = 512, .rate = 9e9}};
  calibration::add_held_out(gemms);
  EXPECT_NEAR(gemms[0].held_out.value(), 3, 1e-12);  // 512 cubed is the only other cold one
  EXPECT_FALSE(gemms[2].held_out);
}

void slow_down(results::RowData& row, double factor) {
  for (std::vector<double>& play : row.times) {
    for (double& seconds : play) seconds *= factor;
  }
}

/// The ceiling was the median over rank counts and transposes, so that rows were above it.
TEST(Calibrate, CeilingIsTheBestRowAndNoRowIsAboveIt) {
  RunData run = samples::run({gemms(0), gemms(1)});
  std::vector<results::RowData>& rows = run.points[0].rows;
  for (results::RowData& row : rows) slow_down(row, 1 / 1.5);  // one rank is faster than two
  rows.push_back(rows.front());  // another transpose of the same shape, which is slower
  slow_down(rows.back(), 3);
  const RunReport report = make_report(run, "", {});
  double most = 0;
  for (const PointReport& point : report.benches) {
    for (const microbench::RowReport& row : point.bench->rows) {
      most = std::max(most, row.of_ceiling.value_or(0));
    }
  }
  EXPECT_DOUBLE_EQ(most, 1);
  const results::GemmCeiling& best = *calibration::ceiling_of(report.calibration, "f32");
  const double fast = best.rate;
  EXPECT_NEAR(fast, 90e9, 1);
  EXPECT_EQ(best.cache, "warm");
  EXPECT_EQ(best.m, 2048);
  EXPECT_EQ(calibration::ceiling_of(report.calibration, "f64")->cache, "warm");
  EXPECT_EQ(calibration::ceiling_of(report.calibration, "bf16"), nullptr);
  // The rate of an oversubscribed point counts only where there is no other.
  run.points[0].labels = {"oversubscribed"};
  EXPECT_NEAR(calibration::ceiling_of(calibration::calibrate(run), "f32")->rate, 60e9, 1);
  run.points[1].labels = {"oversubscribed"};
  EXPECT_EQ(calibration::ceiling_of(calibration::calibrate(run), "f32")->rate, fast);
  EXPECT_EQ(calibration::ceiling_of(calibration::calibrate(run), "f32")->labels, "oversubscribed");
}

TEST(Calibrate, FitsEveryKindOfRow) {
  const CalibrationData data =
      calibration::calibrate(run({collectives(0, 2), collectives(1, 4), gemms(2), pairs(3)}));
  EXPECT_EQ(data.device, "host");
  const CalibrationCurve* const reduce = curve_of(data, "all_reduce", 4);
  ASSERT_NE(reduce, nullptr);
  EXPECT_EQ(reduce->link_class, "same node");
  EXPECT_EQ(reduce->implementation, "library");
  EXPECT_EQ(reduce->nodes, 1);
  EXPECT_EQ(reduce->samples.size(), 7U);  // in place, one of which came out wrong
  EXPECT_NEAR(reduce->latency->value, 2e-6, 2e-8);
  EXPECT_NEAR(reduce->bandwidth->value, 4e9, 4e7);
  EXPECT_TRUE(reduce->error);
  ASSERT_NE(curve_of(data, "barrier", 4), nullptr);
  EXPECT_NEAR(curve_of(data, "barrier", 4)->latency->value, 3e-6, 1e-9);
  const CalibrationCurve* const pair = curve_of(data, "p2p", 2);
  ASSERT_NE(pair, nullptr);
  EXPECT_NEAR(pair->latency->value, 1.15e-6, 1e-8);  // median over pairs
  EXPECT_NEAR(pair->bandwidth->value, 5.03e9, 0.02e9);
  EXPECT_EQ(curve_of(data, "sendrecv", 4), nullptr);  // it failed
  ASSERT_EQ(data.growth.size(), 3U);                  // all_gather, all_reduce, barrier
  EXPECT_THAT(data.growth[1].members, ElementsAre(2, 4));
  EXPECT_TRUE(calibration::calibrate(two_curves()).empty());
}

TEST(Calibrate, LeavesOutWhatProgramsDoNotMeet) {
  const auto changed = [](const std::function<void(results::RowData&)>& change) {
    RunData run = samples::run({collectives(0)});
    for (results::RowData& row : run.points[0].rows) change(row);
    return calibration::calibrate(run).curves.size();
  };
  EXPECT_EQ(changed([](auto&) {}), 3U);
  EXPECT_EQ(changed([](auto& row) { row.wrong = 1; }), 0U);
  EXPECT_EQ(changed([](auto& row) { row.status = results::PointStatus::skipped; }), 0U);
  EXPECT_EQ(changed([](auto& row) { row.text["algorithm"] = "RING"; }), 0U);
  EXPECT_EQ(changed([](auto& row) { row.text["algorithm"] = "library"; }), 3U);
  EXPECT_EQ(changed([](auto& row) { row.text["registration"] = "local"; }), 0U);
  EXPECT_EQ(changed([](auto& row) { row.text["registration"] = "none"; }), 3U);
  EXPECT_EQ(changed([](auto& row) { row.text["reduction"] = "max"; }), 0U);
}

TEST(Calibrate, PrefersGroupsAtOnceAndRanksThatShareNothing) {
  RunData run = samples::run({collectives(0), collectives(1)});
  for (results::RowData& row : run.points[0].rows) {
    slow_down(row, 10);
    row.text["groups"] = "one";
  }
  const auto expect = [&](double latency, const char* labels) {
    const CalibrationData data = calibration::calibrate(run);
    EXPECT_NEAR(curve_of(data, "all_reduce", 4)->latency->value, latency, 0.01 * latency);
    EXPECT_EQ(curve_of(data, "all_reduce", 4)->labels, labels);
  };
  expect(2e-6, "");
  for (results::RowData& row : run.points[0].rows) row.text["groups"] = "all";
  for (const char* const label : {"injected", "oversubscribed"}) {
    run.points[0].labels = {label};
    expect(2e-6, "");
  }
  run.points.pop_back();
  expect(20e-6, "oversubscribed");
}

TEST(Calibrate, KeepsGroupsOnOneNodeApartFromThoseOnTwo) {
  RunData run = samples::run({collectives(0), collectives(1)});
  for (std::size_t rank = 4; rank < 8; ++rank) run.rank_facts[rank].node = 1;
  run.points[0].world_rank = {0, 1, 2, 3};
  run.points[1].world_rank = {2, 3, 4, 5};
  std::map<std::optional<int>, int> curves;  // by nodes
  for (const CalibrationCurve& at : calibration::calibrate(run).curves) ++curves[at.nodes];
  EXPECT_EQ(curves, (std::map<std::optional<int>, int>{{1, 3}, {2, 3}}));
}

TEST(Calibrate, KeepsLinksInsideNodesApartFromThoseBetweenThem) {
  // Ranks 0, 1 and 2, 3 share a node; calls between the nodes take ten times as long.
  RunData run = samples::run({pairs(0)});
  run.rank_facts[2].node = run.rank_facts[3].node = 1;
  for (results::RowData& row : run.points[0].rows) {
    if (!row.number.contains("src") || (row.number["src"] < 2) == (row.number["dst"] < 2)) continue;
    row.text["class"] = "other node";
    slow_down(row, 10);
  }
  const RunReport report = make_report(run, "", {});
  std::map<std::string, const CalibrationCurve*> of_class;
  for (const CalibrationCurve& at : report.calibration.curves) of_class[at.link_class] = &at;
  ASSERT_EQ(of_class.size(), 2U);
  EXPECT_EQ(of_class.at("same node")->nodes, 1);
  EXPECT_EQ(of_class.at("other node")->nodes, 2);
  EXPECT_NEAR(of_class.at("same node")->latency->value, 1.1e-6, 2e-8);
  EXPECT_NEAR(of_class.at("other node")->latency->value, 12e-6, 2e-7);
  EXPECT_NEAR(of_class.at("same node")->bandwidth->value, 5.03e9, 0.05e9);
  EXPECT_NEAR(of_class.at("other node")->bandwidth->value, 0.503e9, 0.01e9);
  // The table shows on how many nodes links are where that is not one.
  const render::TitledTable two = as_text(render::calibration_tables(report).at(0));
  ASSERT_EQ(two.columns.at(4).heading, "nodes");
  std::map<std::string, std::string> nodes_of_class;
  for (const render::Row& row : two.rows) nodes_of_class[row.cells.at(1)] = row.cells.at(4);
  EXPECT_EQ(nodes_of_class,
            (std::map<std::string, std::string>{{"other node", "2"}, {"same node", "1"}}));
  const RunData one = samples::run({pairs(0)});
  EXPECT_EQ(render::calibration_tables(make_report(one, "", {})).at(0).columns.at(4).heading,
            "sizes");
}

TEST(Calibrate, TablesShowTheRanksOfGrowthAndNoUnknownNodes) {
  RunReport report;
  report.calibration.curves = {{.op = "barrier", .members = 4, .nodes = 2}, {.op = "barrier"}};
  report.calibration.growth = {
      {.op = "all_reduce", .members = {2, 4, 8}, .latency = {1, 2, 3}, .bandwidth = {1, 1, 1}}};
  const std::vector<render::DocumentTable> tables = render::calibration_tables(report);
  const render::TitledTable curves = as_text(tables.at(0)), growth = as_text(tables.at(1));
  const auto cell = [](const render::TitledTable& table, std::size_t row,
                       std::string_view heading) {
    const auto found = std::ranges::find(table.columns, heading, &render::Column::heading);
    return table.rows.at(row).cells.at(static_cast<std::size_t>(found - table.columns.begin()));
  };
  EXPECT_EQ(cell(growth, 0, "ranks"), "2, 4, 8");
  EXPECT_EQ(cell(curves, 0, "nodes"), "2");
  EXPECT_EQ(cell(curves, 1, "nodes"), "—");
}

/// Programs read what the file has: 0 nodes are not known.
TEST(Calibrate, JsonHasTheFieldsOfTheRunFile) {
  const CalibrationData calibration{
      .device = "host",
      .curves = {{.op = "barrier",
                  .latency = results::Fitted{.value = 2, .lower = 1},
                  .samples = {{.bytes = 8, .time = 3, .fitted = 2}}}},
      .growth = {{.op = "barrier", .members = {2}, .latency = {1}, .bandwidth = {std::nan("")}}},
      .gemms = {{.dtype = "f32", .m = 2, .rate = 5}},
      .ceilings = {{.dtype = "f32", .cache = "warm", .error = 0.5}}};
  EXPECT_EQ(nlohmann::json::parse(render::calibration_json(calibration).dump()),
            nlohmann::json::parse(R"({"device": "host",
      "curves": [{"op": "barrier", "dtype": null, "class": null, "implementation": null,
                  "labels": null, "form": "log", "members": 0, "nodes": 0,
                  "latency": {"value": 2, "lower": 1, "upper": null}, "bandwidth": null,
                  "error": null, "samples": [{"bytes": 8, "time": 3, "fitted": 2,
                                              "residual": 0.5, "held_out": null}]}],
      "growth": [{"op": "barrier", "dtype": null, "class": null, "implementation": null,
                  "law": null, "base": 0, "slope": 0, "bandwidth_factor": null,
                  "counts": [{"members": 2, "latency": 1, "bandwidth": null}]}],
      "gemms": [{"dtype": "f32", "cache": null, "labels": null, "m": 2, "n": 0, "k": 0,
                 "batch": 1, "flops": 5, "held_out": null}],
      "ceilings": [{"dtype": "f32", "cache": "warm", "labels": null, "m": 0, "n": 0, "k": 0,
                    "batch": 1, "flops": 0, "error": 0.5}]})"));
}

std::optional<double> mfu_of_two(const RunData& run) {
  return make_report(run, "", {}).curves.at(0).points.at(1).mfu;
}

TEST(Report, GivesMfuOfTheMeasuredCeiling) {
  RunData run = curve_with_parts();
  const RunReport report = make_report(run, "", {});
  ASSERT_EQ(report.curves.size(), 1U);
  const double rate = report.curves[0].points[1].flops_per_rank.value();
  EXPECT_NEAR(mfu_of_two(run).value(), rate / 100e9, 1e-12);
  // A stored calibration goes before what rows tell.
  run.calibration = CalibrationData{.device = "host"};
  run.calibration->ceilings = {{.dtype = "f32", .cache = "cold", .rate = 400e9}};
  std::erase_if(run.points.back().rows,
                [](const auto& row) { return text_of(row, "op") == "gemm"; });
  EXPECT_NEAR(mfu_of_two(run).value(), rate / 400e9, 1e-12);
  EXPECT_FALSE(mfu_of_two(two_curves()));
  RunData other = curve_with_parts();
  for (results::PointData& point : other.points) point.dtype = "f64";
  EXPECT_FALSE(mfu_of_two(other)) << "the ceiling is of f32";
}

std::vector<breakdown::LinkShare> link_shares(const RunData& run, std::size_t point = 1) {
  return make_report(run, "", {}).curves.at(0).points.at(point).link_shares;
}

TEST(Report, SetsCollectivesOfAStepAgainstTheSameAlone) {
  // The all-reduce of the 2-rank point spans 500 to 950 ns on both ranks: nothing of it is waiting.
  EXPECT_THAT(link_shares(curve_with_parts()),
              ElementsAre(FieldsAre("all_reduce", "dp", "same node", DoubleNear(160e-9, 1e-12),
                                    DoubleNear(450e-9, 1e-15), DoubleNear(160.0 / 450, 1e-6))));
  // The axis is the one along which the mesh has several ranks, as of other times of a report.
  RunData run = curve_with_parts();
  for (program::Outline& outline : run.points[1].outline.outlines) {
    for (program::OutlineOp& op : outline.ops) {
      if (op.kind == program::OpKind::all_reduce) op.axes = {mesh::Axis::cp, mesh::Axis::dp};
    }
  }
  EXPECT_EQ(link_shares(run).at(0).axes, "dp");
  // The run measured nothing among 4, and one rank has no link.
  EXPECT_TRUE(link_shares(curve_with_parts(), 2).empty());
  EXPECT_TRUE(link_shares(curve_with_parts(), 0).empty());
}

TEST(Report, DoesNotGuessAmongLinkClassesNodesAndMembers) {
  RunData run = curve_with_parts();
  for (timeline::Timeline& step : run.points[1].traces) step.ranks.pop_back();
  EXPECT_TRUE(link_shares(run).empty()) << "one is missing";
  run = curve_with_parts();
  run.points.push_back(run.points.back());
  run.points.back().index = 10;
  for (results::RowData& row : run.points.back().rows) row.text["class"] = "rail";
  EXPECT_TRUE(link_shares(run).empty());
  run = curve_with_parts();
  run.rank_facts[1].node = 1;  // the parts' ranks 0 and 1 are on two nodes, as the point's are
  EXPECT_EQ(link_shares(run).size(), 1U);
  run.points[1].world_rank = {2, 3};  // now the point's are on one
  EXPECT_TRUE(link_shares(run).empty());
}

}  // namespace
}  // namespace isoscale::analysis
