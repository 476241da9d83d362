// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Published training runs against their prediction from the A100's system file, of which two
// numbers are fitted to them: the share of the peak that GEMMs reach, and that of the memory's
// bandwidth.
#include "analysis/predict/forecast.hpp"
#include "analysis/predict/question.hpp"
#include "analysis/predict/system_file.hpp"
#include "analysis_test.hpp"
#include "mesh/request.hpp"
#include "program/facts.hpp"
#include "simulate/op_time.hpp"
#include "simulate/simulate.hpp"
#include "tests/support/options.hpp"
#include "workloads/registry.hpp"

namespace isoscale {
namespace {

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
std::vector<Row> recomputation_rows() {
  return {
      {"22B", 64, 6144, 48, 8, 1, 1, 4, 4, 1, 1.42, "on"},
      {"175B", 96, 12288, 96, 8, 8, 1, 64, 1, 3, 18.13, "on"},
      {"530B", 128, 20480, 105, 8, 35, 1, 280, 1, 3, 49.05, "on"},
      {"1T", 160, 25600, 128, 8, 64, 1, 512, 1, 1, 94.42, "on"},
  };
}

/// arXiv 2104.04473, table 1.
std::vector<Row> weak_scaling_rows() {
  return {
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
}

Model model_of(int hidden, int layers, int heads, int kv_heads, int sequence, int vocabulary) {
  return {.name = "model",
          .source = "as published",
          .hidden = hidden,
          .ffn = 4 * hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_size = hidden / heads,
          .layers = layers,
          .sequence = sequence,
          .vocabulary = vocabulary,
          .tied_embedding = vocabulary < 100000,
          .learned_positions = true};
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

simulate::Machine a100() { return analysis::predict::load_system("a100-hdr"); }

/// Expects errors of the predicted seconds up to these.
void expect_errors(std::span<const Row> rows, double most_mean, double most) {
  const simulate::Machine machine = a100();
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
  expect_errors(of_few_stages(recomputation_rows(), 8), 0.025, 0.04);
}

TEST(PublishedTruth, WeakScaling) {
  expect_errors(of_few_stages(weak_scaling_rows(), 4), 0.07, 0.15);
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
    simulate::Machine machine = analysis::predict::load_system(row.sheet);
    machine.software = analysis::predict::load_software(row.software);
    const analysis::predict::Prediction prediction =
        analysis::predict::predict(analysis::predict::question_of(command, machine));
    const double error = prediction.base.points.at(0).step_time.value / row.seconds - 1;
    EXPECT_LE(std::abs(error), row.most) << row.sheet << ", " << row.software << ": " << error;
  }
}

/// Milliseconds of an inner layer of the 22B model, forward and backward.
std::pair<double, double> layer_of_22b(const char* recompute) {
  const Row row = recomputation_rows().front();
  const auto set = workloads::find_workload("hybrid").build(
      request_of(row, row.microbatch, row.chunks, recompute));
  const simulate::Machine machine = a100();
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
}  // namespace isoscale
