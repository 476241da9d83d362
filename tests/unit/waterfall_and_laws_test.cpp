// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/pop_factors_and_losses.hpp"
#include "analysis/efficiency/scaling_laws.hpp"
#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis_test.hpp"

/// Where the time of a step goes, the tables of strategies that move it, and laws of scaling.
namespace isoscale::analysis::efficiency {
namespace {

StepLoss loss_of(double step, int ranks, double uneven, StepCosts costs) {
  const double traced = sum_of(costs);
  return {step, traced, traced + uneven, 100, ranks, std::move(costs)};
}

/// One rank, 10 s a step: 8 s of GEMMs, 2 s of other ops; tracing costs 0.5 s.
StepLoss one_rank() {
  return loss_of(10, 1, 0,
                 {.gemm = 8,
                  .gemm_alone = 8,
                  .gemm_overlap = 0,
                  .other_compute = 2,
                  .imbalance = 0,
                  .noise = 0,
                  .other = 0.5});
}

/// Four ranks: 2 s of GEMMs would be ideal for the same work.
StepLoss four_ranks() {
  return loss_of(4.25, 4, 0.01,
                 {.gemm = 2.25,
                  .gemm_alone = 2.1,
                  .gemm_overlap = 0.15,
                  .other_compute = 0.6,
                  .copies = 0.05,
                  .transfer = {{Axis::dp, 0.5}, {Axis::tp, 0.25}},
                  .bubble = 0.2,
                  .imbalance = 0.3,
                  .noise = 0.1,
                  .waiting = 0.4,
                  .gap = 0.03,
                  .other = 0.02});
}

std::optional<double> lost_to(const Waterfall& waterfall, const std::string& cause) {
  const auto found = std::ranges::find(waterfall.lost, cause, &LostTime::cause);
  return found == waterfall.lost.end() ? std::nullopt : std::optional{found->seconds};
}

/// Expects the causes with their times, in any order, of a waterfall that sums to its step.
void expect_lost(const Waterfall& waterfall,
                 const std::vector<std::pair<std::string, double>>& wanted) {
  for (const auto& [cause, seconds] : wanted) {
    EXPECT_NEAR(lost_to(waterfall, cause).value_or(NAN), seconds, 1e-12) << cause;
  }
  double lost = 0;
  for (const LostTime& at : waterfall.lost) lost += at.seconds;
  EXPECT_NEAR(waterfall.ideal + lost, waterfall.measured, 1e-12 * waterfall.measured);
}

TEST(Waterfall, LeadsFromIdealToMeasured) {
  const Waterfall found = waterfall(four_ranks(), one_rank());
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
  EXPECT_EQ(mapped(found.lost, &LostTime::cause),
            mapped(wanted, [](const auto& cause) { return cause.first; }));
}

TEST(Waterfall, ExplainsNothingWhereTracedStepsDifferByMoreThanATenth) {
  EXPECT_TRUE(waterfall(four_ranks(), one_rank()).explains);
  // Traced steps of 4.31 s, of which the baseline's difference of 0.125 s is taken.
  for (const auto& [share, explains] : {std::pair{1.09, true}, {1.11, false}, {0.89, false}}) {
    StepLoss point = four_ranks();
    point.step = (4.31 - 0.125) / share;
    EXPECT_EQ(waterfall(point, one_rank()).explains, explains) << share;
  }
}

TEST(Waterfall, OfWeakScalingHasTheBaselinesStepForIdeal) {
  StepLoss point = four_ranks();
  point.work = 400;
  point.step = 12;
  point.costs.gemm_alone = 8.4;
  point.costs.gemm = 8.55;
  point.costs.other_compute = 2.2;
  point.traced = sum_of(point.costs);
  const Waterfall found = waterfall(point, one_rank());
  EXPECT_DOUBLE_EQ(found.ideal, 10);
  expect_lost(found, {{"GEMMs", 0.4}, {"other compute", 0.2}});
}

TEST(Waterfall, HasAxesThatOnlyOneEndUses) {
  constexpr mesh::AxisSet both{Axis::tp, Axis::dp};
  StepLoss base = four_ranks();
  base.costs.transfer = {{Axis::tp, 0.4}};
  base.traced = sum_of(base.costs);
  StepLoss point = four_ranks();
  point.ranks = 8;
  point.costs.transfer = {{Axis::dp, 0.5}, {both, 0.125}};
  point.traced = sum_of(point.costs);
  const Waterfall found = waterfall(point, base);
  expect_lost(
      found,
      {{"tp transfer", -0.2}, {"dp transfer", 0.5}, {mesh::to_string(both) + " transfer", 0.125}});
}

TEST(Waterfall, SeparatesOnlyWhatBothEndsKnow) {
  for (const bool at_baseline : {false, true}) {
    StepLoss base = one_rank(), point = four_ranks();
    StepCosts& without_solo = at_baseline ? base.costs : point.costs;
    without_solo.gemm_alone.reset();
    without_solo.gemm_overlap.reset();
    const Waterfall together = waterfall(point, base);
    EXPECT_FALSE(lost_to(together, "GEMM overlap"));
    expect_lost(together, {{"GEMMs", 2.25 - 8.0 / 4}});
    EXPECT_THAT(together.missing, ElementsAre(HasSubstr("solo")));
    base = one_rank();
    point = four_ranks();
    StepCosts& of_one_step = at_baseline ? base.costs : point.costs;
    of_one_step.imbalance.reset();
    of_one_step.noise.reset();
    point.costs.uneven = 0.05;
    point.costs.hiccups = 0.02;
    const Waterfall undivided = waterfall(point, base);
    expect_lost(undivided, {{"imbalance", 0.05}, {"noise", 0.02}, {"waiting", 0.4 - 0.07}});
    EXPECT_THAT(undivided.missing, ElementsAre(HasSubstr("more traced steps")));
    of_one_step.gemm_alone.reset();
    const Waterfall neither = waterfall(point, base);
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

using Law = std::function<double(double p)>;
using Points = std::vector<ScalingPoint>;

const std::vector<double> up_to_32{1, 2, 4, 8, 16, 32};

Law amdahls(double f) {
  return [f](double p) { return 1 / (f + (1 - f) / p); };
}
Law gustafsons(double f) {
  return [f](double p) { return p - f * (p - 1); };
}
Law gunthers(double a, double b) {
  return [a, b](double p) { return p / (1 + a * (p - 1) + b * p * (p - 1)); };
}

Points points_of(const Law& law, std::span<const double> counts) {
  Points points;
  for (const double p : counts) points.push_back({.p = p, .speedup = law(p)});
  return points;
}

/// Every throughput is 1% off, the baseline's too.
Points noisy(const Law& law, std::span<const double> counts, std::uint64_t seed) {
  Draw draw{seed};
  Points points = points_of(law, counts);
  for (ScalingPoint& point : points) point.speedup *= 1 + 0.01 * draw.normal();
  const double baseline = points.front().speedup;
  for (ScalingPoint& point : points) point.speedup /= baseline;
  return points;
}

/// Returns how many of 1,000 noisy curves gave an interval that holds `truth`.
int times_held(const Law& law, std::span<const double> counts, double truth,
               const std::function<statistics::Located(const Points&)>& fitted) {
  int held = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const statistics::Located at = fitted(noisy(law, counts, seed));
    held += at.lower && at.upper && *at.lower <= truth && truth <= *at.upper ? 1 : 0;
  }
  return held;
}

TEST(KarpFlatt, IsTheSerialFractionOfOnePoint) {
  // 4 ranks, speed-up 2.5: (0.4 - 0.25) / 0.75 = 0.2.
  const auto fraction = karp_flatt({.p = 4, .speedup = 2.5, .lower = 2, .upper = 3.2});
  EXPECT_NEAR(fraction.value().value, 0.2, 1e-15);
  EXPECT_NEAR(fraction->lower.value(), 1.0 / 12, 1e-15);  // (1/3.2 - 1/4) / 0.75
  EXPECT_NEAR(fraction->upper.value(), 1.0 / 3, 1e-15);   // (1/2 - 1/4) / 0.75
  EXPECT_EQ(karp_flatt({.p = 8, .speedup = 8})->value, 0) << "ideal";
  EXPECT_LT(karp_flatt({.p = 8, .speedup = 8.5})->value, 0) << "beyond";
  // Any baseline: from 4 ranks to 6, p = 1.5.
  EXPECT_NEAR(karp_flatt({.p = 1.5, .speedup = 1 / (0.1 + 0.9 / 1.5)})->value, 0.1, 1e-15);
  const auto half_open = karp_flatt({.p = 4, .speedup = 2.5, .upper = 3});
  EXPECT_FALSE(half_open->lower || half_open->upper);
  EXPECT_FALSE(karp_flatt({.p = 1, .speedup = 1})) << "the baseline";
  EXPECT_FALSE(karp_flatt({.p = 0.5, .speedup = 0.6})) << "below it";
  EXPECT_FALSE(karp_flatt({.p = 4, .speedup = 0}));
}

/// A law of one serial fraction and how it is fitted.
struct OneFraction {
  const char* name;
  Law (*law)(double f);
  std::optional<statistics::Located> (*fitted)(const Points& points);
};
const std::vector<OneFraction> fractions{
    {"Amdahl", amdahls, [](const Points& points) { return amdahl(points); }},
    {"Gustafson", gustafsons, [](const Points& points) { return gustafson(points); }}};

TEST(SerialFraction, IsTheOneThatPointsWereMadeFrom) {
  // By hand: 8 ranks do 7.3 times the work in the time of one: f = 0.7 / 7 = 0.1.
  EXPECT_NEAR(gustafsons(0.1)(8), 7.3, 1e-14);
  for (const OneFraction& at : fractions) {
    SCOPED_TRACE(at.name);
    for (const double f : {0.0, 0.001, 0.05, 0.1, 0.5, 1.0}) {
      const auto found = at.fitted(points_of(at.law(f), up_to_32));
      EXPECT_NEAR(found.value().value, f, 1e-12);
      EXPECT_NEAR(*found->lower, f, 1e-6);
      EXPECT_NEAR(*found->upper, f, 1e-6);
    }
    // 4 ranks are the baseline; 1 and 2 ranks follow another law.
    Points points = points_of(at.law(0.1), std::vector{1.0, 1.5, 2.0, 4.0});
    points.insert(points.begin(), {{.p = 0.25, .speedup = 0.4}, {.p = 0.5, .speedup = 0.9}});
    const auto found = at.fitted(points);
    EXPECT_NEAR(found.value().value, 0.1, 1e-12);
  }
}

TEST(SerialFraction, NeedsThreePointsBeyondTheBaseline) {
  for (const OneFraction& at : fractions) {
    SCOPED_TRACE(at.name);
    const Law law = at.law(0.1);
    EXPECT_FALSE(at.fitted({}));
    EXPECT_FALSE(at.fitted(points_of(law, std::vector{1.0, 2.0, 4.0})));
    Points points = points_of(law, std::vector{1.0, 2.0, 4.0, 8.0});
    EXPECT_TRUE(at.fitted(points));
    // Below the baseline is not beyond it, and what has no throughput is no point.
    EXPECT_FALSE(at.fitted(points_of(law, std::vector{0.5, 1.0, 2.0, 4.0})));
    points.back().speedup = 0;
    EXPECT_FALSE(at.fitted(points));
  }
  // Here no line can be drawn.
  EXPECT_FALSE(amdahl(points_of(amdahls(0.1), std::vector{2.0, 2.0, 2.0, 2.0})));
}

TEST(SerialFraction, HasIntervalsThatHoldTheTruth) {
  for (const OneFraction& at : fractions) {
    for (const std::size_t n : {4U, 5U, 6U}) {
      for (const double f : {0.01, 0.1}) {
        const int held =
            times_held(at.law(f), std::span{up_to_32}.first(n), f,
                       [&](const Points& points) { return at.fitted(points).value(); });
        EXPECT_NEAR(held, 950, 30) << at.name << ", f " << f << ", " << n << " points";
      }
    }
  }
}

TEST(UniversalLaw, FindsTheCoefficientsThatPointsWereMadeFrom) {
  // By hand: a = 0.1, b = 0.01, 4 ranks: 4 / (1 + 0.3 + 0.12).
  EXPECT_NEAR(gunthers(0.1, 0.01)(4), 4 / 1.42, 1e-14);
  const auto found = usl(points_of(gunthers(0.1, 0.01), up_to_32));
  EXPECT_NEAR(found.value().contention.value, 0.1, 1e-12);
  EXPECT_NEAR(found->coherency.value, 0.01, 1e-12);
  ASSERT_TRUE(found->peak);
  EXPECT_NEAR(*found->peak, 9.486832980505138, 1e-9);  // sqrt(0.9 / 0.01)
}

TEST(UniversalLaw, PromisesNoPeakWhereCoherencyMayBeZero) {
  const auto amdahl_only = usl(noisy(gunthers(0.05, 0), up_to_32, 1));
  EXPECT_LE(*amdahl_only.value().coherency.lower, 0);
  EXPECT_FALSE(amdahl_only->peak);
  const auto with_peak = usl(noisy(gunthers(0.05, 0.01), up_to_32, 1));
  ASSERT_TRUE(with_peak && with_peak->peak);
  EXPECT_GT(*with_peak->coherency.lower, 0);
  EXPECT_NEAR(*with_peak->peak, 9.75, 2);  // sqrt(0.95 / 0.01)
}

TEST(UniversalLaw, NeedsSixPointsWithTheBaseline) {
  const Law law = gunthers(0.1, 0.01);
  EXPECT_FALSE(usl(points_of(law, std::span{up_to_32}.first(5))));
  EXPECT_FALSE(usl(points_of(law, std::vector{0.5, 1.0, 2.0, 4.0, 8.0, 16.0})));
  EXPECT_FALSE(usl(points_of(law, std::vector{1.0, 2.0, 2.0, 2.0, 2.0, 2.0})))
      << "two rank counts cannot tell two coefficients";
}

TEST(UniversalLaw, IntervalsHoldTheTruth) {
  const std::vector<double> up_to_128{1, 2, 4, 8, 16, 32, 64, 128};
  const Law law = gunthers(0.05, 0.001);
  const auto contention = [](const Points& of) { return usl(of).value().contention; };
  const auto coherency = [](const Points& of) { return usl(of).value().coherency; };
  for (const std::size_t n : {6U, 8U}) {
    const auto counts = std::span{up_to_128}.first(n);
    EXPECT_GE(times_held(law, counts, 0.05, contention), 920);
    EXPECT_GE(times_held(law, counts, 0.001, coherency), 920);
  }
}

}  // namespace
}  // namespace isoscale::analysis::efficiency
