// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <regex>

#include "analysis/predict/forecast.hpp"
#include "analysis/predict/system_file.hpp"
#include "machine/gpu_choice.hpp"
#include "parsed_commands.hpp"
#include "planned_runs.hpp"
#include "predict_samples.hpp"
#include "runner/dry_run.hpp"
#include "runner/plan/time_estimates_and_schedule.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using samples::config_of;
using samples::gpu_site_of;
using samples::site_of;
using settings::run_of;
using settings::RunConfig;

std::string table(const RunConfig& config, const plan::Site& site) {
  return describe(plan::make_plan(config, site), config, "host");
}

TEST(PlanTable, MarksWhatDoesNotFitAndSaysWhereNothingWouldRun) {
  RunConfig config = config_of("dp");
  plan::Site site = gpu_site_of(2, std::nullopt);
  site.memory_free.assign(2, *plan::make_plan(config, site).points[1].memory_per_rank);
  EXPECT_THAT(table(config, site),
              AllOf(testing::ContainsRegex("dp=1|1 +1 .*does not fit: [0-9.]+ KiB"),
                    HasSubstr("Point 1 is skipped: "), HasSubstr("dp 96.0 KiB"),
                    Not(HasSubstr("Point 2 is skipped"))));
  site = site_of(2, 1);
  site.memory_of = plan::MemoryOf::this_machine;
  site.memory_free.assign(2, units::Bytes{98'304});
  config.budget = units::Seconds{20};
  EXPECT_THAT(table(config, site), AllOf(HasSubstr("Nothing would run"), HasSubstr(" of 96.0 KiB"),
                                         Not(HasSubstr(" in all")), Not(HasSubstr("--budget"))));
  site.memory_free = {std::nullopt, units::Bytes{98'304}};  // two ranks do not fit, one does
  EXPECT_THAT(table(config, site), AllOf(Not(HasSubstr("Nothing would run")), HasSubstr(" in all"),
                                         HasSubstr("1 of 1 point")));
  config.rank_counts = settings::RankCounts::every;
  EXPECT_THAT(table(config, site_of(4)), AllOf(HasSubstr("skipped: batch=16"), HasSubstr("nothing"),
                                               Not(HasSubstr("partition=proportional"))));
}

TEST(PlanTable, SaysWhatShardingAndOffloadingKeep) {
  // 4 layers of 12 h^2 = 3072 parameters: 16 bytes each in f32 with Adam make 192 KiB. Of these
  // zero=2 shards gradients and moments over 4 ranks: 48 + 144 / 4 KiB, and the powers of Adam.
  RunConfig config = config_of("dp");
  config.experiments[0].base.options.insert(
      {{"zero", "2"}, {"optimizer", "adam"}, {"offload", "optimizer"}});
  config.ranks = {4};
  EXPECT_THAT(table(config, site_of(4)),
              AllOf(HasSubstr("zero=2 keeps 84"), HasSubstr("of 192 KiB of states"),
                    HasSubstr("offload=optimizer keeps 24")));
  config.experiments[0].base.options = samples::planned_request().options;
  EXPECT_THAT(table(config, site_of(4)), Not(HasSubstr("of states")));
}

TEST(PlanTable, SaysWhatFitsIntoABudget) {
  const plan::Site site = site_of(4);
  RunConfig config = config_of("dp");
  config.budget = units::Seconds{20};
  const auto loops = plan::expected_loops(plan::make_plan(config, site), config, "host");
  EXPECT_LT(loops.at(0), config.max_time);
  EXPECT_THAT(table(config, site),
              AllOf(HasSubstr("3 of 3 points fit"), HasSubstr(units::format(loops.at(0))),
                    Not(HasSubstr("left out"))));
  // Set-up and verification of one point are more than half of it.
  config.budget = units::Seconds{0.25};
  EXPECT_THAT(table(config, site), AllOf(HasSubstr("left out"), HasSubstr("1 of 3 points fit")));
}

/// Plans hybrid and a micro-benchmark, with what a prediction takes for granted, on the sample
/// sheet, priced as predict does.
class PricedPlan : public testing::Test {
 protected:
  PricedPlan() {
    for (const char* workload : {"hybrid", "gemm"}) {
      settings::Experiment& experiment = config_.experiments.emplace_back();
      experiment.workload = workload;
      experiment.base.model = workloads::load_model("tiny");
    }
    hybrid().options = {
        {"batch", "256"}, {"elementwise", "on"}, {"vocabulary", "on"}, {"optimizer", "adam"}};
    config_.ranks = {8};
    config_.suite = "of a test";  // counts that do not fit are skipped
    const simulate::Machine sheet = samples::plain_sheet();
    machine_ = {.name = sheet.name,
                .node_ranks = sheet.network->node_ranks,
                .memory = units::Bytes{static_cast<std::uint64_t>(sheet.memory->capacity)},
                .step = [sheet](const auto& workload, const auto& request, int node_ranks) {
                  return units::Seconds{
                      analysis::predict::sheet_step_time(workload, request, sheet, node_ranks)};
                }};
  }
  workloads::Request& hybrid() { return config_.experiments.front().base; }
  [[nodiscard]] plan::Plan planned() const {
    return plan::make_plan(config_, site_of(machine_, config_, 1));
  }
  [[nodiscard]] plan::Plan priced() const {
    plan::Plan plan = planned();
    price(machine_, config_, plan);
    return plan;
  }

  RunConfig config_;
  PricedMachine machine_;
};

TEST_F(PricedPlan, HasTheStepTimesOfThePrediction) {
  config_.ranks = {8, 16, 64};
  const plan::Plan plan = priced();
  const analysis::predict::Prediction prediction =
      predict(analysis::predict::question_of(samples::plain_command(), samples::plain_sheet()));
  ASSERT_EQ(prediction.base.points.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const analysis::predict::Forecast& forecast = prediction.base.points[i];
    const plan::PlannedPoint& point = plan.points[i];
    EXPECT_EQ(point.request.mesh.tp * point.request.mesh.pp, 4);  // one along the curve
    ASSERT_EQ(point.request.mesh, forecast.request.mesh);
    ASSERT_TRUE(point.load.step);
    EXPECT_DOUBLE_EQ(point.load.step->value(), forecast.step_time.value);
    EXPECT_EQ(plan::estimate(point, config_, site_of(machine_, config_, 1).device).likely,
              plan::loop_time(*point.load.step, config_));
    EXPECT_EQ(point.nodes, point.ranks / 8);
  }
  EXPECT_FALSE(plan.points.back().load.step);  // a micro-benchmark has no step
}

TEST_F(PricedPlan, TakesRanksOfANodeFromTheCommandBeforeTheSheet) {
  config_.ranks = {16};
  EXPECT_EQ(site_of(machine_, config_, 1).node_of_rank.back(), 1);
  const plan::Plan of_sheet = priced();
  config_.ranks_per_node = 2;
  const plan::Plan narrow = priced();
  EXPECT_EQ(narrow.points.front().nodes, 8);
  EXPECT_GT(*narrow.points.front().load.step, *of_sheet.points.front().load.step);
}

/// A run of the best layout keeps more than the training software whose memory is predicted.
TEST_F(PricedPlan, NeedsTheMemoryThatASearchTellsOfItsBest) {
  simulate::Machine sheet = analysis::predict::load_system("h100-ndr");
  settings::PredictCommand command = samples::plain_command();
  command.precision = Precision::bf16;
  command.mesh = {{mesh::Axis::tp, 1}, {mesh::Axis::pp, 1}};
  command.settings.insert(command.settings.end(), {{"vocabulary", "off"}, {"recompute", "none"}});
  command.ranks = {8};
  command.best = true;
  const auto searched = [&] { return predict(analysis::predict::question_of(command, sheet)); };
  const analysis::predict::Prediction roomy = searched();
  const workloads::Request& best = roomy.best.front().request;
  hybrid().options = best.options;
  hybrid().options.erase("microbatches");  // they follow from the batch
  hybrid().precision = Precision::bf16;
  config_.experiments.front().mesh = {{mesh::Axis::dp, 8}};
  ASSERT_EQ(best.mesh, mesh::Shape{.dp = 8});
  ASSERT_EQ(planned().points.front().skip_reason, "");
  const auto planned_bytes = static_cast<double>(planned().points.front().memory_per_rank->value());
  EXPECT_EQ(roomy.command_memory, planned_bytes);
  EXPECT_GT(planned_bytes, roomy.best.front().memory.device);
  sheet.memory->capacity = planned_bytes;
  const std::size_t warnings = searched().warnings.size();
  sheet.memory->capacity = planned_bytes - 1;  // still enough for the training software
  const analysis::predict::Prediction tight = searched();
  EXPECT_EQ(tight.best.front().request, best);
  EXPECT_EQ(tight.warnings.size(), warnings + 1);
}

TEST_F(PricedPlan, HasTheMemoryAndTheRatesOfTheSheet) {
  config_.suite = "";
  EXPECT_NO_THROW(static_cast<void>(planned()));
  machine_.memory = units::Bytes{1000};
  EXPECT_THROW(static_cast<void>(planned()), base::UsageError);
  machine_.memory = units::Bytes{std::uint64_t{1} << 40U};
  hybrid().precision = Precision::bf16;
  EXPECT_THAT([&] { static_cast<void>(priced()); },
              testing::ThrowsMessage<base::UsageError>(HasSubstr("--on plain: point 1")));
}

TEST(BeyondHost, IsAPlanOfMoreBytesThanTheHostHas) {
  const plan::Site site = site_of(4, 2);
  RunConfig config = config_of("dp");
  config.ranks = {4};
  const plan::Plan plan = plan::make_plan(config, site);
  const std::uint64_t two_ranks = 2 * plan.points.front().memory_per_rank->value();
  EXPECT_EQ(beyond_host(plan, site, units::Bytes{two_ranks}), std::nullopt);
  EXPECT_THAT(beyond_host(plan, site, units::Bytes{two_ranks - 1}), Optional(HasSubstr("2 ranks")));
}

/// GPUs of so much memory (0: unknown) and such a capability; eight ranks a node.
plan::Site gpus(int ranks, std::uint64_t mebibytes = 0, int capability = 90) {
  const std::optional free{units::Bytes{mebibytes << 20U}};
  plan::Site site = gpu_site_of(ranks, mebibytes > 0 ? free : std::nullopt, 8);
  site.precisions = machine::precisions_of(capability / 10, capability % 10);
  site.half_precision_rate = plan::half_precision_rate(capability);
  return site;
}

TEST(GpuWork, IsTheLargestModelThatFitsAndIsQuick) {
  for (const auto& [site, model, batch] : {std::tuple{gpus(8, 81'559), "gpt-1.3b", "8"},
                                           {gpus(1, 81'559), "gpt-6.7b", "1"},
                                           {gpus(8, 81'920, 80), "gpt-125m", "16"},
                                           {gpus(8, 180'000, 100), "gpt-1.3b", "8"},
                                           {gpus(1, 8'000, 86), "gpt-125m", "8"},
                                           {gpus(1), "gpt-125m", "64"},
                                           {gpus(64, 81'559), "gpt-125m", "64"}}) {
    const auto [config, line] = plan::with_gpu_work(run_of(""), site);
    EXPECT_FALSE(config.on_gpus);
    EXPECT_THAT(line, AllOf(HasSubstr(model), HasSubstr("bf16"), HasSubstr(batch)));
    for (const settings::Experiment& experiment : config.experiments) {
      EXPECT_EQ(experiment.base.model.name, model);
      EXPECT_EQ(experiment.base.precision, Precision::bf16);
      if (experiment.workload == "calibrate") continue;
      EXPECT_EQ(experiment.base.options.at("batch"), batch);
      EXPECT_EQ(experiment.base.options.at("microbatch"), "1");
      EXPECT_EQ(experiment.base.options.at("bucket"), "25MiB");
    }
    // The choice is recorded as if the user had named it.
    EXPECT_EQ(settings::from_toml(settings::to_toml(config), "echo"), config);
  }
  EXPECT_THAT(plan::with_gpu_work(run_of(""), gpus(1, 16'000, 70)).second, HasSubstr(" in f16"));
}

TEST(GpuWork, IsNotChosenOnTheHostNorAgainstTheUser) {
  plan::Site host = gpus(1, 81'559, 0);
  host.device = "host";
  EXPECT_EQ(plan::with_gpu_work(run_of(""), host).second, "");
  EXPECT_EQ(plan::with_gpu_work(run_of(""), host).first.experiments[0].base.model.name, "tiny");
  const plan::Site site = gpus(1, 81'559);
  for (const char* const options :
       {"--model tiny", "--dtype f16", "--set bucket=1MiB", "--suite standard", "--workload dp"}) {
    EXPECT_EQ(plan::with_gpu_work(run_of(options), site).second, "") << options;
  }
  EXPECT_NE(plan::with_gpu_work(run_of("--suite quick --max-time 1s"), site).second, "");
  EXPECT_NE(plan::with_gpu_work(run_of("--set largest=512"), site).second, "");  // of no step
}

/// On GPUs of 80 GB (79.6 GiB) whose memory nobody has looked at, no point needs more than one has,
/// less what libraries reserve, no tp spans more than two nodes, and hybrid has no meshes but dp's.
TEST(Suites, PlanWhatMakesSense) {
  for (const std::string name : {"quick", "standard", "acceptance"}) {
    const RunConfig config = run_of("--device cuda --suite " + name);
    for (const int ranks : {1, 8, 64, 512}) {
      if (ranks > 64 && !every_case()) continue;
      int measured = 0;
      for (const plan::PlannedPoint& point : plan::make_plan(config, gpus(ranks)).points) {
        if (!point.skip_reason.empty()) continue;
        SCOPED_TRACE(fmt::format("{} point {}: {} on {}", name, point.index + 1,
                                 point.workload->name, point.ranks));
        const mesh::Shape& mesh = point.request.mesh;
        ++measured;
        EXPECT_LT(*point.memory_per_rank, units::Bytes{80'000'000'000});
        EXPECT_TRUE(name == "quick" || (mesh.tp <= 16 && mesh.pp <= 8));
        if (point.workload->name != "hybrid" || (name == "quick" && ranks < 8)) continue;
        EXPECT_EQ(mesh, (mesh::Shape{.tp = 2, .dp = point.ranks / 4, .pp = 2}));
      }
      EXPECT_GT(measured, 0) << name;
    }
  }
}

TEST(SuggestedPlan, IsAcceptedForAllNamedRankCounts) {
  for (const auto& [counts, options] : {std::pair{std::vector{1, 2, 3}, workloads::Options{}},
                                        {{2, 3, 4}, {{"batch", "25"}, {"microbatch", "1"}}},
                                        {{1, 5}, {{"microbatch", "2"}, {"microbatches", "8"}}}}) {
    RunConfig config = config_of("dp");
    config.ranks = counts;
    workloads::Options& asked = config.experiments[0].base.options;
    asked = options;
    const std::string refused = samples::refusal(config, site_of(6));
    std::smatch numbers;
    ASSERT_TRUE(std::regex_search(refused, numbers,
                                  std::regex{R"(nearest that work are (\w+)=(\d+) and (\d+))"}));
    for (const std::size_t group : {2U, 3U}) {
      asked[numbers[1]] = numbers[group];
      EXPECT_EQ(samples::refusal(config, site_of(6)), "");
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
