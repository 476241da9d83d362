// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// From a run whose machine is known to the step on eight times its ranks, and published training
// runs against their prediction from the A100's system file, of which two numbers are fitted to
// them: the share of the peak that GEMMs reach, and that of the memory's bandwidth.

#include "analysis/predict/forecast.hpp"
#include "analysis/predict/system_file.hpp"
#include "analysis_test.hpp"
#include "known_machine.hpp"
#include "program/work_and_memory.hpp"
#include "simulate/op_time.hpp"
#include "tests/support/options.hpp"

namespace isoscale::analysis::predict {
namespace {

constexpr int more_ranks = 64;

struct Known {
  samples::KnownMachine truth{};
  results::RunData run = samples::known_run(truth);
  simulate::Machine machine = run_machine(run);
  std::vector<const results::PointData*> points = stepped_points(run);
  ModelFit fit = fit_model(run, points, machine);
};

/// Made once: it takes a second.
const Known& known() {
  static const Known made;
  return made;
}

Forecast forecast_of(int ranks) {
  Forecast forecast{.ranks = ranks, .nodes = ranks, .request = samples::known_request(ranks)};
  forecast.efficiency.value = 0.8;
  return forecast;
}

TEST(ModelFit, NeedsNoCorrectionOfItself) {
  ASSERT_EQ(known().fit.points.size(), 4U);
  for (const MeasuredPoint& at : known().fit.points) {
    EXPECT_NEAR(at.simulated, at.step_time, 0.02 * at.step_time) << at.ranks;
  }
  EXPECT_NEAR(known().fit.correction, 1, 0.02);
  EXPECT_LT(std::abs(known().fit.drift), 0.01);
  EXPECT_EQ(known().fit.predicted, 3);  // the points after the first
  EXPECT_EQ(known().fit.most_ranks, 8);
  EXPECT_EQ(known().fit.points.back().nodes, 8);
  EXPECT_EQ(known().fit.workload, "dp");
  EXPECT_EQ(known().fit.known.launch, 0.02);
  EXPECT_LT(known().fit.known.fit, 0.05);
}

TEST(ModelFit, IsToldAgainstThePointThatTheReportTakes) {
  results::RunData run = known().run;
  run.config_toml =
      "[[experiment]]\nworkload = 'dp'\nmodel = 'tiny'\nscaling = 'weak'\n"
      "set = { microbatch = 4, microbatches = 2 }\n";
  settings::PredictCommand command;
  command.ranks = {more_ranks};
  EXPECT_EQ(question_of(command, {&run, 1}).baseline, run.points[0].ranks);
  results::RunData of_few = run;
  of_few.points[0].step_times.resize(3);
  EXPECT_EQ(question_of(command, {&of_few, 1}).baseline, run.points[0].ranks);
  run.points[0].labels = {"oversubscribed"};
  const Question question = question_of(command, {&run, 1});
  EXPECT_EQ(question.baseline, run.points[1].ranks);
  EXPECT_EQ(question.measured.at(0).efficiency, 1) << "the labelled point is left out";
  command.baseline = more_ranks;
  EXPECT_EQ(question_of(command, {&run, 1}).baseline, more_ranks);
}

TEST(ModelFit, PredictsEightTimesTheRanks) {
  const auto& workload = workloads::find_workload("dp");
  const StepEstimate estimate =
      estimate_step({workload, known().machine, simulate::packed(more_ranks, 1)},
                    samples::known_request(more_ranks));
  const double truth = samples::known_step(known().truth, more_ranks, 60);
  const double predicted = estimate.seconds() * known().fit.correction;
  EXPECT_NEAR(predicted, truth, 0.02 * truth);
}

/// The largest point took 1.5 times as long in the middle of steps from 0.5 to 2.5 times: the
/// others, which are known well, say more.
TEST(ModelFit, CorrectsWhatItMissesByThePointsThatAreKnownWell) {
  const auto fitted = [](const results::RunData& run) {
    return fit_model(run, stepped_points(run), known().machine);
  };
  results::RunData run = known().run;
  for (results::PointData& point : run.points) samples::slow_down(point, 1.2);
  EXPECT_NEAR(fitted(run).correction, 1.2 * known().fit.correction, 1e-6);
  run = known().run;
  int number = 0;
  for (auto& step : run.points[3].step_times) {
    const double factor = 0.5 + 0.5 * (number++ % 5);
    for (double& time : step) time *= factor;
  }
  const ModelFit fit = fitted(run);
  EXPECT_NEAR(fit.points[3].step_time, 1.5 * known().fit.points[3].step_time,
              0.05 * fit.points[3].step_time);
  EXPECT_LT(fit.correction, 1.15);
}

TEST(ModelFit, KnowsLessFurtherAway) {
  const Uncertainty uncertainty{.noise = 0.03, .launch = 0, .fit = 0.04};
  // 0.05 is the root of the sum of squares of the three; the interval is one of the logarithm.
  const double half = 1.6448536269514722 * 0.05;
  EXPECT_NEAR(interval_width(0.5, uncertainty), 0.5 * (std::exp(half) - std::exp(-half)), 1e-12);
  double before = known().fit.known.fit;
  for (const int ranks : {8, 16, 64, 256}) {
    const Uncertainty at =
        uncertainty_with(known().fit, fit_parts(known().fit, known().machine, forecast_of(ranks)));
    EXPECT_GE(at.fit, before - 1e-12) << ranks;
    if (ranks == 8) {
      EXPECT_NEAR(at.fit, before, 1e-12);
    }
    EXPECT_EQ(at.launch, known().fit.known.launch);
    before = at.fit;
  }
}

/// The known machine without the groups of 4: of two sizes of groups both laws are possible.
simulate::Machine with_open_law(double slower = 1) {
  simulate::Machine machine = known().machine;
  std::erase_if(machine.measured.communication,
                [](const simulate::TimedCommunication& at) { return at.members == 4; });
  for (simulate::TimedCommunication& at : machine.measured.communication) {
    at.law = simulate::GrowthLaw::fitted;
    for (simulate::SizeSeconds& size : at.samples) size.seconds *= slower;
  }
  return machine;
}

TEST(ModelFit, IsLessSureWhereTwoLawsFit) {
  const auto law_part = [](const simulate::Machine& machine, int ranks) {
    return fit_parts(known().fit, machine, forecast_of(ranks)).law;
  };
  EXPECT_EQ(law_part(known().machine, more_ranks), 0);
  // On 64 ranks, from 8 us among 2 and 56 us among 8, a sum takes 128 us by the one law and 504 us
  // by the other; little of it is not hidden. The laws part further with every rank.
  const double open = law_part(with_open_law(), more_ranks);
  EXPECT_GT(open, 0.001);
  EXPECT_GT(law_part(with_open_law(), 4 * more_ranks), 3 * open);
}

std::vector<NextMeasurement> next_of(const Known& of) {
  return next_measurements(of.run, of.points, of.fit, of.machine, forecast_of(more_ranks));
}

TEST(NextMeasurement, NarrowsTheIntervalMostFirst) {
  const auto found = next_of(known());
  ASSERT_EQ(found.size(), 3U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE(found[i].width_then, found[i].width_now * (1 + 1e-12)) << found[i].what;
    if (i > 0) {
      EXPECT_GE(found[i].width_then, found[i - 1].width_then);
    }
  }
  const auto larger = std::ranges::find(found, "the run on 16 ranks", &NextMeasurement::what);
  ASSERT_NE(larger, found.end());
  EXPECT_LT(larger->width_then, larger->width_now);
  for (const char* part :
       {"mpirun -np 16 isoscale run --workload dp,calibrate ", "--ranks 1,2,4,8,16", "--model tiny",
        "--scaling weak", "--device host", "--dtype f32"}) {
    EXPECT_THAT(larger->command, HasSubstr(part));
  }
}

TEST(NextMeasurement, NamesTheModelsFileAsTheRunDid) {
  Known made = known();
  for (results::PointData& point : made.run.points) point.model = "even";
  made.points = stepped_points(made.run);
  for (const auto& [arguments, model] :
       {std::pair{"--model even.toml", "--model even.toml "},
        {"'--model=m d/own.toml' --force", "--model 'm d/own.toml' "},
        {"--model tiny,a/even.toml,b/odd.toml", "--model a/even.toml "},
        {"plan.toml", "--model even.toml "},
        {"a/even.toml", "--model even-model.toml "}}) {
    made.run.command_line = std::string{"isoscale run "} + arguments;
    EXPECT_THAT(next_of(made),
                Contains(AllOf(Field(&NextMeasurement::what, "another launch of the same"),
                               Field(&NextMeasurement::command, HasSubstr(model)))));
  }
}

/// The model of an experiment file has no file of its own: its keys are what to write.
TEST(NextMeasurement, SaysWhichModelFileToWrite) {
  results::RunData run = known().run;
  Question question;
  question.workload = &workloads::find_workload("dp");
  question.run = &run;
  question.base.model = workloads::load_model("tiny");
  EXPECT_EQ(model_to_write(question), "");
  question.base.model.name = "mine";
  run.command_line = "isoscale run plan.toml";
  EXPECT_THAT(model_to_write(question), AllOf(HasSubstr("mine.toml"), HasSubstr("layers = ")));
  run.command_line = "isoscale run mine.toml";
  EXPECT_THAT(model_to_write(question), Not(HasSubstr("mine.toml")));
  run.command_line = "isoscale run --model own.toml";
  EXPECT_EQ(model_to_write(question), "");
}

TEST(NextMeasurement, DoesNotAskAgainForPointsThatWereLeftOut) {
  Known made = known();
  results::PointData point = *made.points.back();
  point.ranks = 16;
  point.labels = {"oversubscribed"};
  made.run.points.push_back(point);
  point.workload = "calibrate";
  made.run.points.push_back(point);
  EXPECT_THAT(next_of(made), Each(Field(&NextMeasurement::what, Not(HasSubstr("16 ranks")))));
}

/// Collectives alone would narrow the interval too, but no prediction could use their file.
TEST(NextMeasurement, HasTheStepsAndTheCollectivesOfAPrediction) {
  Known made = known();
  made.machine = with_open_law(20);  // slow enough for the law to be what is least known
  made.fit.known.fit = 0.01;
  const auto found = next_of(made);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().what, "the run on 16 ranks");
  EXPECT_LE(found.front().width_then, 0.98 * found.front().width_now);
  EXPECT_THAT(found,
              Each(Field(&NextMeasurement::command, AllOf(HasSubstr(" --workload dp,calibrate "),
                                                          HasSubstr(" --ranks 1,2,4,8")))));
}

using workloads::Model;
using workloads::Request;

struct Row {
  std::string name;
  int heads = 0, hidden = 0, layers = 0;
  int tp = 1, pp = 1, dp = 1;
  int batch = 0;
  int microbatch = 0;  ///< 0 = not published
  int chunks = 0;      ///< virtual stages of a rank; 0 = not published
  double seconds = 0;  ///< published, of an iteration
  /// Megatron-LM of 2022 hides backward's sums over tp, that of 2021 did not yet.
  const char* async_reduce = "off";
};

/// A prediction of one iteration.
struct Estimate {
  double seconds = std::numeric_limits<double>::infinity();
  double memory = 0;  ///< bytes that live at once on the fullest rank
};

/// arXiv 2205.05198, tables 3 and 5, the column with full recomputation.
const std::vector<Row> recomputation_rows{
    {"22B", 64, 6144, 48, 8, 1, 1, 4, 4, 1, 1.42, "on"},
    {"175B", 96, 12288, 96, 8, 8, 1, 64, 1, 3, 18.13, "on"},
    {"530B", 128, 20480, 105, 8, 35, 1, 280, 1, 3, 49.05, "on"},
    {"1T", 160, 25600, 128, 8, 64, 1, 512, 1, 1, 94.42, "on"},
};

/// arXiv 2104.04473, table 1.
const std::vector<Row> weak_scaling_rows{
    {"1.7B", 24, 2304, 24, 1, 1, 32, 512, 0, 0, 3.53},
    {"3.6B", 32, 3072, 30, 2, 1, 32, 512, 0, 0, 3.70},
    {"7.5B", 32, 4096, 36, 4, 1, 32, 512, 0, 0, 3.70},
    {"18.4B", 48, 6144, 40, 8, 1, 32, 1024, 0, 0, 9.40},
    {"39.1B", 64, 8192, 48, 8, 2, 32, 1536, 0, 0, 14.45},
    {"76.1B", 80, 10240, 60, 8, 4, 32, 1792, 0, 0, 16.06},
    {"145.6B", 96, 12288, 80, 8, 8, 24, 2304, 0, 0, 24.82},
    {"310.1B", 128, 16384, 96, 8, 16, 15, 2160, 0, 0, 37.61},
    {"529.6B", 128, 20480, 105, 8, 35, 9, 2520, 0, 0, 54.08},
    {"1008B", 160, 25600, 128, 8, 64, 6, 3072, 0, 0, 102.63},
};

Model model_of(int hidden, int layers, int heads, int kv_heads, int sequence, int vocabulary) {
  Model model = workloads::test_model(fmt::format(
      "hidden={} ffn={} heads={} kv_heads={} head_size={} layers={} sequence={} vocabulary={}",
      hidden, 4 * hidden, heads, kv_heads, hidden / heads, layers, sequence, vocabulary));
  model.tied_embedding = vocabulary < 100000;
  model.learned_positions = true;
  return model;
}

Request request_of(const Row& row, int microbatch, int chunks,
                   const std::string& recompute = "full") {
  Request base{.model = model_of(row.hidden, row.layers, row.heads, row.heads, 2048, 51200),
               .precision = program::Precision::f16};
  // Megatron-LM of those years reduced all gradients at once, in f16, after backward.
  base.options = workloads::options_of(
      "vocabulary=on elementwise=on sequence_parallel=off handover=scattered optimizer=adam "
      "overlap=off bucket=64GiB grad_dtype=f16 input=pinned");
  base.options["recompute"] = recompute;
  base.options["async_reduce"] = row.async_reduce;
  base.options["batch"] = std::to_string(row.batch);
  base.options["microbatch"] = std::to_string(microbatch);
  base.options["schedule"] = chunks > 1 ? "interleaved" : "1f1b";
  if (chunks > 1) base.options["v"] = std::to_string(chunks);
  return workloads::find_workload("hybrid").scale(base, {.tp = row.tp, .dp = row.dp, .pp = row.pp},
                                                  workloads::Scaling::strong);
}

Estimate estimate_at(const Row& row, const simulate::Machine& machine, int microbatch, int chunks) {
  const program::ProgramSet set =
      workloads::find_workload("hybrid").build(request_of(row, microbatch, chunks));
  const simulate::Layout layout = simulate::packed(set.mesh.size(), machine.network->node_ranks);
  const simulate::Classes classes = simulate::classes_of(set);
  const simulate::Costs costs = simulate::class_costs(classes, set, machine, layout);
  Estimate found{
      .seconds =
          simulate::play_classes(classes, costs, machine.overlap, simulate::Record::steps).seconds};
  for (const auto& program : set.programs) {
    const auto live = program::facts(program, set.mesh).peak_live;
    const auto device = live[static_cast<std::size_t>(program::Space::device)];
    found.memory = std::max(found.memory, static_cast<double>(device.value()));
  }
  return found;
}

/// The published setting; what was not published is the fastest of microbatches 1, 2, 4 and 8 that
/// fits in memory, interleaved in 2 parts where layers and microbatches divide.
Estimate estimate(const Row& row, const simulate::Machine& machine) {
  if (row.microbatch > 0) return estimate_at(row, machine, row.microbatch, row.chunks);
  Estimate best;
  for (const int microbatch : {1, 2, 4, 8}) {
    const int samples = row.batch / row.dp;
    if (samples % microbatch != 0) continue;
    const bool interleaves =
        row.pp > 1 && row.layers % (2 * row.pp) == 0 && samples / microbatch % row.pp == 0;
    const Estimate one = estimate_at(row, machine, microbatch, interleaves ? 2 : 1);
    if (one.memory > machine.memory->capacity || one.seconds >= best.seconds) continue;
    best = one;
  }
  return best;
}

/// Expects errors of the predicted seconds up to these.
void expect_errors(std::span<const Row> rows, double most_mean, double most) {
  const simulate::Machine machine = load_system("a100-hdr");
  double sum = 0;
  for (const Row& row : rows) {
    const Estimate found = estimate(row, machine);
    const double error = std::abs(found.seconds / row.seconds - 1);
    EXPECT_LE(error, most) << row.name << ": " << found.seconds << " s of " << row.seconds << " s";
    sum += error;
  }
  EXPECT_LE(sum / static_cast<double>(rows.size()), most_mean);
}

/// Returns the rows of at most so many stages: longer pipelines take longer to predict.
std::vector<Row> of_few_stages(std::vector<Row> rows, int most) {
  std::erase_if(rows, [&](const auto& row) { return row.pp > most && !every_case(); });
  return rows;
}

TEST(PublishedTruth, FullRecomputation) {
  expect_errors(of_few_stages(recomputation_rows, 8), 0.025, 0.04);
}

TEST(PublishedTruth, WeakScaling) {
  expect_errors(of_few_stages(weak_scaling_rows, 4), 0.07, 0.15);
}

/// A published step of other software, from tests/bench/published/trainings.csv.
struct StepRow {
  std::string_view sheet, software;
  Model model;
  std::string_view mesh;
  program::Precision precision;
  std::string_view settings;
  double seconds;
  double most;  ///< the largest error that is expected
};

/// The errors allowed are those of docs/predicting.md and a few percent: a profile's numbers cannot
/// change unnoticed.
TEST(PublishedTruth, OtherSoftware) {
  using enum program::Precision;
  const Model nemotron = model_of(6144, 32, 48, 8, 4096, 256000);
  const Model mpt = model_of(4096, 32, 32, 32, 2048, 50368);
  const Model small = model_of(1024, 20, 16, 16, 1024, 51200);
  const Model gpt = model_of(4096, 24, 32, 32, 2048, 50304);
  const Model gpt_39b = model_of(8192, 48, 64, 64, 2048, 51200);
  const char* const two = "batch=64 microbatch=2";
  const std::vector<StepRow> rows{
      {"h100-ndr", "nemo-2025", nemotron, "tp=2,dp=8", bf16, two, 2.66, 0.04},
      {"h100-ndr", "nemo-2025", nemotron, "tp=2,dp=8", fp8, two, 1.98, 0.05},
      {"h100-ndr", "jax", gpt, "dp=2,ep=8", bf16, "batch=64 microbatch=4", 0.634, 0.09},
      {"h100-ndr", "fsdp-eager", mpt, "dp=8", bf16, "batch=48 microbatch=6", 1.155, 0.11},
      {"a100-hdr", "fsdp-eager", mpt, "dp=8", bf16, "batch=96 microbatch=6", 5.295, 0.10},
      {"a100-hdr", "megatron-2021", gpt_39b, "tp=8,dp=32,pp=2", f16,
       "batch=1536 microbatch=4 recompute=full schedule=interleaved v=2", 14.45, 0.03},
      {"a100-hdr", "megatron-deepspeed", small, "dp=2", f16, "batch=32 microbatch=1 recompute=full",
       1.079, 0.08},
      {"a100-hdr", "megatron-deepspeed", small, "tp=2,dp=4", f16,
       "batch=64 microbatch=1 recompute=full", 1.129, 0.08}};
  for (const StepRow& row : rows) {
    settings::PredictCommand command;
    command.source = row.sheet;
    command.model = row.model;
    command.precision = row.precision;
    command.mesh = mesh::parse_request(row.mesh);
    const workloads::Options settings = workloads::options_of(row.settings);
    command.settings.assign(settings.begin(), settings.end());
    int ranks = 1;
    for (const auto& [axis, extent] : command.mesh) ranks *= extent;
    command.ranks = {ranks};
    simulate::Machine machine = load_system(row.sheet);
    machine.software = load_software(row.software);
    const Prediction prediction = predict(question_of(command, machine));
    const double error = prediction.base.points.at(0).step_time.value / row.seconds - 1;
    EXPECT_LE(std::abs(error), row.most) << row.sheet << ", " << row.software << ": " << error;
  }
}

/// Milliseconds of an inner layer of the 22B model, forward and backward.
std::pair<double, double> layer_of_22b(const char* recompute) {
  const Row& row = recomputation_rows.front();
  const auto set = workloads::find_workload("hybrid").build(
      request_of(row, row.microbatch, row.chunks, recompute));
  const simulate::Machine machine = load_system("a100-hdr");
  const simulate::Classes classes = simulate::classes_of(set);
  const simulate::Costs costs =
      simulate::class_costs(classes, set, machine, simulate::packed(set.mesh.size(), 8));
  const auto played =
      simulate::play_classes(classes, costs, machine.overlap, simulate::Record::spans);
  const auto& ops = set.of(0).step().ops;
  /// Returns when the compute stream begins a layer's pass.
  const auto begin = [&](program::Phase phase, int layer) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].stream == 0 && ops[i].place.phase == phase && ops[i].place.layer == layer) {
        return static_cast<double>(played.timeline.ranks[0].spans[i].start.value()) * 1e-6;
      }
    }
    throw std::logic_error("no such layer");
  };
  return {begin(program::Phase::forward, 2) - begin(program::Phase::forward, 1),
          begin(program::Phase::backward, 0) - begin(program::Phase::backward, 1)};
}

/// arXiv 2205.05198, table 4: nothing is fitted to it.
TEST(PublishedTruth, OneLayer) {
  const auto [forward, backward] = layer_of_22b("none");
  const auto [forward_again, backward_again] = layer_of_22b("full");
  EXPECT_NEAR(forward / 7.7, 1, 0.06);
  EXPECT_NEAR(backward / 11.9, 1, 0.06);
  EXPECT_NEAR(forward_again / 7.7, 1, 0.06);
  EXPECT_NEAR(backward_again / 19.5, 1, 0.03);
}

}  // namespace
}  // namespace isoscale::analysis::predict
