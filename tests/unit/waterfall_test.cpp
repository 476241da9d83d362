// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/losses.hpp"

#include "analysis/render/curve_tables.hpp"
#include "analysis_test.hpp"

/// The tests check where the time of a step goes, and the tables of strategies that move it.
namespace isoscale::analysis {
namespace {

double sum(const efficiency::StepCosts& costs) {
  double result = costs.gemm + costs.other_compute + costs.copies + costs.bubble + costs.waiting +
                  costs.gap + costs.other;
  for (const auto& [axes, seconds] : costs.transfer) result += seconds;
  return result;
}

/// One rank, 10 s a step: 8 s of GEMMs, 2 s of other ops; tracing costs 0.5 s.
efficiency::StepLoss one_rank() {
  efficiency::StepLoss loss{.step = 10, .work = 100};
  loss.costs.gemm_alone = 8;
  loss.costs.gemm_overlap = 0;
  loss.costs.gemm = 8;
  loss.costs.other_compute = 2;
  loss.costs.imbalance = loss.costs.noise = 0;
  loss.costs.other = 0.5;
  loss.traced = sum(loss.costs);
  loss.slowest = loss.traced;
  return loss;
}

/// Four ranks: 2 s of GEMMs would be ideal for the same work.
efficiency::StepLoss four_ranks() {
  efficiency::StepLoss loss{.step = 4.25, .work = 100, .ranks = 4};
  loss.costs.gemm_alone = 2.1;
  loss.costs.gemm_overlap = 0.15;
  loss.costs.gemm = 2.25;
  loss.costs.other_compute = 0.6;
  loss.costs.copies = 0.05;
  loss.costs.transfer = {{Axis::dp, 0.5}, {Axis::tp, 0.25}};
  loss.costs.bubble = 0.2;
  loss.costs.imbalance = 0.3;
  loss.costs.noise = 0.1;
  loss.costs.waiting = 0.4;
  loss.costs.gap = 0.03;
  loss.costs.other = 0.02;
  loss.traced = sum(loss.costs);
  loss.slowest = loss.traced + 0.01;
  return loss;
}

std::optional<double> lost_to(const efficiency::Waterfall& waterfall, const std::string& cause) {
  const auto found = std::ranges::find(waterfall.lost, cause, &efficiency::LostTime::cause);
  return found == waterfall.lost.end() ? std::nullopt : std::optional{found->seconds};
}

/// Expects the causes with their times, in any order, of a waterfall that sums to its step.
void expect_lost(const efficiency::Waterfall& waterfall,
                 const std::vector<std::pair<std::string, double>>& wanted) {
  for (const auto& [cause, seconds] : wanted) {
    EXPECT_NEAR(lost_to(waterfall, cause).value_or(NAN), seconds, 1e-12) << cause;
  }
  double lost = 0;
  for (const efficiency::LostTime& at : waterfall.lost) lost += at.seconds;
  EXPECT_NEAR(waterfall.ideal + lost, waterfall.measured, 1e-12 * waterfall.measured);
}

TEST(Waterfall, LeadsFromIdealToMeasured) {
  const efficiency::Waterfall found = efficiency::waterfall(four_ranks(), one_rank());
  EXPECT_DOUBLE_EQ(found.ideal, 2.5);
  EXPECT_DOUBLE_EQ(found.measured, 4.25);
  EXPECT_TRUE(found.missing.empty());
  const std::vector<std::pair<std::string, double>> wanted{
      {"GEMMs", 2.1 - 8.0 / 4},
      {"GEMM overlap", 0.15},
      {"other compute", 0.6 - 2.0 / 4},
      {"copies", 0.05},
      {"tp transfer", 0.25},
      {"dp transfer", 0.5},
      {"bubble", 0.2},
      {"imbalance", 0.3},
      {"noise", 0.1},
      {"gap", 0.03},
      {"other", 0.02 - 0.5 / 4},
      {"uneven steps", 0.01},
      {"untraced", (4.25 - 4.31) - (10 - 10.5) / 4}};
  expect_lost(found, wanted);
  EXPECT_EQ(mapped(found.lost, &efficiency::LostTime::cause),
            mapped(wanted, [](const auto& cause) { return cause.first; }));
}

TEST(Waterfall, ExplainsNothingWhereTracedStepsDifferByMoreThanATenth) {
  EXPECT_TRUE(efficiency::waterfall(four_ranks(), one_rank()).explains);
  // Traced steps of 4.31 s, of which the baseline's difference of 0.125 s is taken.
  for (const auto& [share, explains] : {std::pair{1.09, true}, {1.11, false}, {0.89, false}}) {
    efficiency::StepLoss point = four_ranks();
    point.step = (4.31 - 0.125) / share;
    EXPECT_EQ(efficiency::waterfall(point, one_rank()).explains, explains) << share;
  }
}

TEST(Waterfall, OfWeakScalingHasTheBaselinesStepForIdeal) {
  efficiency::StepLoss point = four_ranks();
  point.work = 400;
  point.step = 12;
  point.costs.gemm_alone = 8.4;
  point.costs.gemm = 8.55;
  point.costs.other_compute = 2.2;
  point.traced = sum(point.costs);
  const efficiency::Waterfall found = efficiency::waterfall(point, one_rank());
  EXPECT_DOUBLE_EQ(found.ideal, 10);
  expect_lost(found, {{"GEMMs", 0.4}, {"other compute", 0.2}});
}

TEST(Waterfall, TakesABaselineOfSeveralRanks) {
  // From 4 ranks to 8: half of each part is what ideal scaling leaves.
  efficiency::StepLoss eight = four_ranks();
  eight.ranks = 8;
  eight.step = 2.5;
  const efficiency::Waterfall found = efficiency::waterfall(eight, four_ranks());
  EXPECT_DOUBLE_EQ(found.ideal, 4.25 / 2);
  expect_lost(found, {{"dp transfer", 0.25}, {"imbalance", 0.15}});
}

TEST(Waterfall, HasAxesThatOnlyOneEndUses) {
  constexpr mesh::AxisSet both{Axis::tp, Axis::dp};
  efficiency::StepLoss base = four_ranks();
  base.costs.transfer = {{Axis::tp, 0.4}};
  base.traced = sum(base.costs);
  efficiency::StepLoss point = four_ranks();
  point.ranks = 8;
  point.costs.transfer = {{Axis::dp, 0.5}, {both, 0.125}};
  point.traced = sum(point.costs);
  const efficiency::Waterfall found = efficiency::waterfall(point, base);
  expect_lost(
      found,
      {{"tp transfer", -0.2}, {"dp transfer", 0.5}, {mesh::to_string(both) + " transfer", 0.125}});
}

TEST(Waterfall, SeparatesOnlyWhatBothEndsKnow) {
  for (const bool at_baseline : {false, true}) {
    efficiency::StepLoss base = one_rank(), point = four_ranks();
    efficiency::StepCosts& without_solo = at_baseline ? base.costs : point.costs;
    without_solo.gemm_alone.reset();
    without_solo.gemm_overlap.reset();
    const efficiency::Waterfall together = efficiency::waterfall(point, base);
    EXPECT_FALSE(lost_to(together, "GEMM overlap"));
    expect_lost(together, {{"GEMMs", 2.25 - 8.0 / 4}});
    EXPECT_THAT(together.missing, ElementsAre(HasSubstr("solo")));
    base = one_rank();
    point = four_ranks();
    efficiency::StepCosts& of_one_step = at_baseline ? base.costs : point.costs;
    of_one_step.imbalance.reset();
    of_one_step.noise.reset();
    point.costs.uneven = 0.05;
    point.costs.hiccups = 0.02;
    const efficiency::Waterfall undivided = efficiency::waterfall(point, base);
    expect_lost(undivided, {{"imbalance", 0.05}, {"noise", 0.02}, {"waiting", 0.4 - 0.07}});
    EXPECT_THAT(undivided.missing, ElementsAre(HasSubstr("more traced steps")));
    of_one_step.gemm_alone.reset();
    const efficiency::Waterfall neither = efficiency::waterfall(point, base);
    EXPECT_THAT(neither.missing, ElementsAre(HasSubstr("solo"), HasSubstr("imbalance")));
    expect_lost(neither, {});
  }
}

/// The tables of the one curve that these points are.
std::vector<render::TitledTable> tables_of(std::vector<results::PointData> points) {
  for (std::size_t i = 0; i < points.size(); ++i) points[i].index = static_cast<int>(i);
  const results::RunData run = samples::run(std::move(points));
  const RunReport report = make_report(run, "a.h5", {});
  EXPECT_EQ(report.curves.size(), 1U);
  return mapped(render::cause_tables(report.curves.front(), render::Sections::parse("strategies")),
                [](const auto& table) { return as_text(table); });
}

auto rows_of(const render::TitledTable& table) { return mapped(table.rows, &render::Row::cells); }

auto headings_of(const render::TitledTable& table) {
  return mapped(table.columns, [](const auto& column) { return column.heading; });
}

/// A GEMM of so many thousandths of a step, and the rest of it a reduction.
Spans busy(int thousandths) { return {{0, thousandths}, {thousandths, 1000}}; }

results::PointData reducing(const mesh::Shape& shape, const std::vector<Spans>& spans) {
  return traced_point(shape, Script{}.compute().all_reduce(Axis::dp), spans);
}

TEST(StrategyTables, AReplicaIsAsBusyAsItsRanksOnAverage) {
  // Ranks 0 and 1 are the first replica: tp varies fastest.
  std::vector<results::PointData> points{
      reducing({.tp = 2}, {busy(900)}),
      reducing({.tp = 2, .dp = 2}, {busy(800), busy(600), busy(300), busy(100)}),
      reducing({.tp = 2, .dp = 3}, {busy(500), busy(500), {}, {}, busy(250), {}})};
  for (results::PointData& point : points) point.options["partition"] = "skewed:2";
  const auto tables = tables_of(points);
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0].title, HasSubstr("utilisation of replicas"));
  // One replica has nobody to be uneven with; ranks that were not traced are not known.
  EXPECT_THAT(headings_of(tables[0]), ElementsAre("", "4 ranks", "6 ranks"));
  EXPECT_THAT(rows_of(tables[0]),
              ElementsAre(ElementsAre("replica 0", "70.0%", "50.0%"),
                          ElementsAre("replica 1", "20.0%", render::undefined),
                          ElementsAre("replica 2", render::undefined, "25.0%")));
}

TEST(StrategyTables, ReplicasAreListedUpToTwelve) {
  std::vector<Spans> all;
  for (int rank = 0; rank < 13; ++rank) all.push_back(busy(10 * (1 + rank)));
  results::PointData point = reducing({.dp = 13}, all);
  point.options["partition"] = "proportional";
  const auto tables = tables_of({point});
  ASSERT_THAT(tables, SizeIs(1));
  ASSERT_THAT(tables[0].rows, SizeIs(12));
  EXPECT_THAT(tables[0].rows.back().cells, ElementsAre("replica 11", "12.0%"));
}

TEST(StrategyTables, EqualSharesAndUntracedPointsHaveNoTable) {
  results::PointData point = reducing({.dp = 2}, {busy(800), busy(300)});
  EXPECT_THAT(tables_of({point}), IsEmpty()) << "as of a workload without the option";
  point.options["partition"] = "equal";
  EXPECT_THAT(tables_of({point}), IsEmpty());
  results::PointData untraced = samples::measured(0, {.dp = 2}, 1e-6);
  untraced.options = {{"partition", "skewed:2"}, {"offload", "optimizer"}};
  EXPECT_THAT(tables_of({untraced}), IsEmpty());
}

TEST(StrategyTables, CopiesOfOffloadedStatesAreHiddenOrExposed) {
  // The copy runs from 300 to 700; up to 500 the one rank computes, the other one up to 400.
  const Script script = Script{}.compute().copy(1).all_reduce(Axis::dp);
  const Spans first{{0, 500}, {300, 700}, {700, 1000}}, second{{0, 400}, {300, 700}, {700, 1000}};
  results::PointData point = traced_point({.dp = 2}, script, {first, second});
  point.options["offload"] = "none";
  EXPECT_THAT(tables_of({point}), IsEmpty());
  point.options["offload"] = "weights";
  const auto tables = tables_of({point});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0].title, HasSubstr("copies of offloaded states"));
  EXPECT_THAT(headings_of(tables[0]), ElementsAre("", "2 ranks"));
  // Hidden: 200 and 100 of 1000; exposed: 200 and 300.
  EXPECT_THAT(rows_of(tables[0]), ElementsAre(ElementsAre("hidden under computation", "15.0%"),
                                              ElementsAre("exposed", "25.0%")));
}

}  // namespace
}  // namespace isoscale::analysis
