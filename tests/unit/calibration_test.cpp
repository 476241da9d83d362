// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/microbench_tables.hpp"
#include "analysis_test.hpp"
#include "calibration/fit_calibration.hpp"

namespace isoscale::analysis {
namespace {

using results::CalibrationCurve;
using results::CalibrationData;
using results::RunData;

constexpr double gib = 1024 * mib;

std::vector<results::CurveSample> published() {
  return mapped(eight_h100, [](const auto& at) {
    return results::CurveSample{.bytes = at.first, .time = at.second * 1e-6};
  });
}

/// 8 B to 1 GiB by `factor`: latency + bytes / bandwidth, with normal relative noise.
std::vector<results::CurveSample> synthetic(double latency, double bandwidth, double noise,
                                            unsigned seed, double factor = 2) {
  std::mt19937 random{seed};
  std::normal_distribution<double> normal{1, noise > 0 ? noise : 1};
  std::vector<results::CurveSample> curve;
  for (double bytes = 8; bytes <= gib; bytes *= factor) {
    const double time = latency + bytes / bandwidth;
    curve.push_back({bytes, noise > 0 ? time * normal(random) : time});
  }
  return curve;
}

TEST(CalibrationCurve, RecoversLatencyAndBandwidthUnderNoise) {
  constexpr int seeds = 200;
  for (const auto& [latency, bandwidth] :
       {std::pair{1e-6, 5e9}, {15e-6, 274e9}, {200e-6, 25e9}, {20e-6, 0.12e9}}) {
    int latency_covered = 0, bandwidth_covered = 0;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(testing::Message() << latency << " s, " << bandwidth << " B/s, seed " << seed);
      const auto curve = calibration::fit_curve(synthetic(latency, bandwidth, 0.01, seed));
      ASSERT_TRUE(curve.latency && curve.latency->lower);
      ASSERT_TRUE(curve.bandwidth && curve.bandwidth->lower);
      EXPECT_NEAR(curve.latency->value / latency, 1, 0.02);
      EXPECT_NEAR(curve.bandwidth->value / bandwidth, 1, 0.02);
      const auto covers = [](const results::Fitted& at, double truth) {
        return *at.lower <= truth && truth <= *at.upper ? 1 : 0;
      };
      latency_covered += covers(*curve.latency, latency);
      bandwidth_covered += covers(*curve.bandwidth, bandwidth);
    }
    EXPECT_GT(latency_covered, seeds * 85 / 100) << latency;
    EXPECT_GT(bandwidth_covered, seeds * 85 / 100) << bandwidth;
  }
}

TEST(CalibrationCurve, RecoversThemBesideOutliers) {
  auto samples = synthetic(15e-6, 100e9, 0.01, 3);
  samples[2].time *= 5;     // a plateau size
  samples[24].time *= 1.4;  // and a large one
  const auto curve = calibration::fit_curve(samples);
  EXPECT_NEAR(curve.latency->value / 15e-6, 1, 0.04);
  EXPECT_NEAR(curve.bandwidth->value / 100e9, 1, 0.04);
}

TEST(CalibrationCurve, NeverFallsAndGoesOnBeyondItsSizes) {
  const auto noisy = calibration::fit_curve(synthetic(15e-6, 274e9, 0.10, 7));
  double last = 0;
  for (double bytes = 1; bytes < 8 * gib; bytes *= 1.1) {
    const auto at = calibration::predict(noisy, bytes);
    ASSERT_TRUE(at) << bytes;
    EXPECT_GE(*at, last) << bytes;
    last = *at;
  }
  const auto curve = calibration::fit_curve(synthetic(10e-6, 100e9, 0, 1));
  EXPECT_NEAR(*calibration::predict(curve, 1), 10e-6, 1e-9);
  EXPECT_NEAR(*calibration::predict(curve, 4 * gib), 10e-6 + 4 * gib / 100e9, 1e-5);
}

/// Fits the curve without each interior size in turn: how often it lies in its stated interval.
int held_out_within(const std::vector<results::CurveSample>& sizes) {
  int within = 0;
  for (std::size_t at = 1; at + 1 < sizes.size(); ++at) {
    std::vector<results::CurveSample> rest = sizes;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
    const auto curve = calibration::fit_curve(rest);
    const double ratio = *calibration::predict(curve, sizes[at].bytes) / sizes[at].time;
    within += std::max(ratio, 1 / ratio) <= 1 + *curve.error ? 1 : 0;
  }
  return within;
}

TEST(CalibrationCurve, HoldsSizesThatItHasNotSeenAsOftenAsItPromises) {
  EXPECT_EQ(held_out_within(published()), 21);
  int within = 0, all = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const auto sizes = synthetic(15e-6, 274e9, 0.01, seed);
    within += held_out_within(sizes);
    all += static_cast<int>(sizes.size()) - 2;
  }
  EXPECT_GE(within, all * 94 / 100);
}

TEST(CalibrationCurve, FollowsWhereOnePairOfLatencyAndBandwidthDoesNot) {
  // The pair that fits the ends of the published curve: 16.9 us and 274.3 GB/s.
  const auto curve = calibration::fit_curve(published());
  double worst_of_pair = 0, worst_of_curve = 0;
  for (const results::CurveSample& at : published()) {
    worst_of_pair = std::max(worst_of_pair, 1 - (16.9e-6 + at.bytes / 274.3e9) / at.time);
    const double off = std::abs(*calibration::predict(curve, at.bytes) / at.time - 1);
    worst_of_curve = std::max(worst_of_curve, off);
  }
  for (const auto& at : curve.samples) EXPECT_LT(std::abs(at.held_out.value_or(0)), 0.15);
  EXPECT_NEAR(worst_of_pair, 0.43, 0.01);
  EXPECT_LT(worst_of_curve, 1e-9);  // it rises all along: the curve goes through all of it
  EXPECT_NEAR(*curve.error, 0.145, 0.001);
  EXPECT_NEAR(curve.latency->value / 16.9e-6, 1, 0.05);
  EXPECT_NEAR(curve.bandwidth->value / 274.3e9, 1, 0.01);
}

TEST(CalibrationCurve, IsStraightInTimeOverSizeWhereThatIsClearlyBetter) {
  EXPECT_EQ(calibration::fit_curve(published()).form, "log");
  // Latency and bandwidth and nothing else, at sizes far apart: exact.
  const auto coarse = calibration::fit_curve(synthetic(10e-6, 5e9, 0, 1, 8));
  EXPECT_EQ(coarse.form, "linear");
  EXPECT_LT(coarse.error.value(), 1e-9);
  EXPECT_NEAR(*calibration::predict(coarse, 100e3), 10e-6 + 100e3 / 5e9, 1e-12);
  // A power law is straight in logarithms.
  std::vector<results::CurveSample> power;
  for (double bytes = 8; bytes <= gib; bytes *= 8) power.push_back({bytes, std::sqrt(bytes)});
  EXPECT_EQ(calibration::fit_curve(power).form, "log");
  EXPECT_NEAR(*calibration::predict(calibration::fit_curve(power), 1e6), 1e3, 1e-6);
}

TEST(CalibrationCurve, SaysWhatItsSamplesDoNotShow) {
  EXPECT_TRUE(calibration::fit_curve({}).samples.empty());
  EXPECT_FALSE(calibration::predict(calibration::fit_curve({}), 8));
  EXPECT_TRUE(calibration::fit_curve({{8, 0}, {8, -1}, {16, std::nan("")}}).samples.empty());

  const auto barrier = calibration::fit_curve({{0, 3e-6}});
  EXPECT_NEAR(barrier.latency->value, 3e-6, 1e-18);
  EXPECT_FALSE(barrier.bandwidth || barrier.error);
  EXPECT_NEAR(*calibration::predict(barrier, 0), 3e-6, 1e-18);
  EXPECT_FALSE(calibration::predict(barrier, 8));

  const auto two = calibration::fit_curve({{8, 1e-6}, {mib, 101e-6}});
  EXPECT_NEAR(two.latency->value, 1e-6, 1e-8);
  EXPECT_NEAR(two.bandwidth->value / (mib / 100e-6), 1, 1e-4);
  EXPECT_FALSE(two.error || two.latency->lower);

  std::vector<results::CurveSample> small_only, large_only;
  for (const results::CurveSample& at : synthetic(10e-6, 100e9, 0, 1)) {
    (at.bytes <= 64 * kib ? small_only : large_only).push_back(at);
  }
  EXPECT_TRUE(calibration::fit_curve(small_only).latency);
  EXPECT_FALSE(calibration::fit_curve(small_only).bandwidth);
  large_only.erase(large_only.begin(), large_only.begin() + 5);  // from 4 MiB on
  EXPECT_FALSE(calibration::fit_curve(large_only).latency);
  EXPECT_NEAR(calibration::fit_curve(large_only).bandwidth->value / 100e9, 1, 0.01);
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

TEST(Calibrate, HasTheGrowthOfEachOpThatSeveralCountsHave) {
  const CalibrationData data = calibration::calibrate(run({collectives(0, 2), collectives(1, 4)}));
  ASSERT_EQ(data.growth.size(), 3U);  // all_gather, all_reduce, barrier; sendrecv failed
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
    const auto found = std::ranges::find(data.curves, "all_reduce", &CalibrationCurve::op);
    EXPECT_NEAR(found->latency->value, latency, 0.01 * latency);
    EXPECT_EQ(found->labels, labels);
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

TEST(Calibrate, JsonHasGrowthByCounts) {
  const CalibrationData calibration{
      .growth = {{.op = "barrier", .members = {2}, .latency = {1}, .bandwidth = {std::nan("")}}},
      .gemms = {{.dtype = "f32"}}};  // without curves and GEMMs there is no calibration
  EXPECT_EQ(nlohmann::json::parse(render::calibration_json(calibration).dump())["growth"],
            nlohmann::json::parse(R"([{"op": "barrier", "dtype": null, "class": null,
      "implementation": null, "law": null, "base": 0, "slope": 0, "bandwidth_factor": null,
      "counts": [{"members": 2, "latency": 1, "bandwidth": null}]}])"));
}

TEST(Report, GivesMfuOfTheMeasuredCeiling) {
  RunData run = curve_with_parts();
  const RunReport report = make_report(run, "", {});
  ASSERT_EQ(report.curves.size(), 1U);
  const double rate = report.curves[0].points[1].flops_per_rank.value();
  EXPECT_NEAR(curve_of(run).points.at(1).mfu.value(), rate / 100e9, 1e-12);
  // A stored calibration goes before what rows tell.
  run.calibration = CalibrationData{.device = "host"};
  run.calibration->ceilings = {{.dtype = "f32", .cache = "cold", .rate = 400e9}};
  std::erase_if(run.points.back().rows,
                [](const auto& row) { return text_of(row, "op") == "gemm"; });
  EXPECT_NEAR(curve_of(run).points.at(1).mfu.value(), rate / 400e9, 1e-12);
  EXPECT_FALSE(curve_of(two_curves()).points.at(1).mfu);
  RunData other = curve_with_parts();
  for (results::PointData& point : other.points) point.dtype = "f64";
  EXPECT_FALSE(curve_of(other).points.at(1).mfu) << "the ceiling is of f32";
  EXPECT_FALSE(curve_of(other).points.at(1).mfu_of_peak) << "of an unknown GPU";
  for (results::PointData& point : other.points) point.dtype = "bf16";
  for (results::RankFacts& facts : other.rank_facts) facts.text["gpu_name"] = "NVIDIA H100 SXM";
  const PointReport on_gpu = curve_of(other).points.at(1);
  EXPECT_NEAR(on_gpu.mfu_of_peak.value_or(0), *on_gpu.flops_per_rank / 989.4e12, 1e-12);
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
