// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Published training runs against their prediction from the A100's system file, of which two
// numbers are fitted to them: the share of the peak that GEMMs reach, and that of the memory's
// bandwidth.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "analysis/predict/system_file.hpp"
#include "program/facts.hpp"
#include "simulate/classes.hpp"
#include "simulate/op_time.hpp"
#include "workloads/registry.hpp"

namespace isoscale {
namespace {

using workloads::Request;

struct Row {
  std::string name;
  int heads = 0, hidden = 0, layers = 0;
  int tp = 1, pp = 1, dp = 1;
  int batch = 0;
  int microbatch = 0;  ///< 0 = not published
  int chunks = 0;      ///< virtual stages of a rank; 0 = not published
  double seconds = 0;  ///< published, of an iteration
};

/// These settings may differ from those that the rows have in common.
struct Settings {
  std::string recompute = "full";
  std::string sequence_parallel = "off";
};

struct Estimate {
  double seconds = 0;
  double memory = 0;  ///< bytes that live at once on the fullest rank
  int microbatch = 0, chunks = 1;
};

double step_seconds(const program::ProgramSet& set, const simulate::Machine& machine) {
  constexpr auto section = program::Section::step;
  const simulate::Layout layout = simulate::packed(set.mesh.size(), machine.network->node_ranks);
  const simulate::Classes classes = simulate::classes_of(set, section);
  const simulate::Costs costs = simulate::class_costs(classes, set, section, machine, layout);
  return simulate::play_classes(classes, costs, machine.overlap, simulate::Record::steps).seconds;
}

double memory_of(const program::ProgramSet& set) {
  double most = 0;
  for (const auto& program : set.programs) {
    const auto memory = program::facts(program, set.mesh).peak_live;
    most = std::max(most, static_cast<double>(
                              memory[static_cast<std::size_t>(program::Space::device)].value()));
  }
  return most;
}

/// arXiv 2205.05198, tables 3 and 5, the column with full recomputation.
std::vector<Row> recomputation_rows() {
  return {
      {"22B", 64, 6144, 48, 8, 1, 1, 4, 4, 1, 1.42},
      {"175B", 96, 12288, 96, 8, 8, 1, 64, 1, 3, 18.13},
      {"530B", 128, 20480, 105, 8, 35, 1, 280, 1, 3, 49.05},
      {"1T", 160, 25600, 128, 8, 64, 1, 512, 1, 1, 94.42},
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

Request request_of(const Row& row, int microbatch, int chunks, const Settings& settings = {}) {
  Request base{.model = {.name = "gpt-" + row.name,
                         .source = "as published",
                         .hidden = row.hidden,
                         .ffn = 4 * row.hidden,
                         .heads = row.heads,
                         .kv_heads = row.heads,
                         .head_size = row.hidden / row.heads,
                         .layers = row.layers,
                         .sequence = 2048,
                         .vocabulary = 51200,
                         .tied_embedding = true,
                         .learned_positions = true},
               .mesh = {},
               .precision = program::Precision::f16,
               .options = {{"vocabulary", "on"},
                           {"elementwise", "on"},
                           {"recompute", settings.recompute},
                           {"sequence_parallel", settings.sequence_parallel},
                           {"handover", "scattered"},
                           {"optimizer", "adam"},
                           // Megatron-LM of those years reduced all gradients at once, in f16,
                           // after backward.
                           {"overlap", "off"},
                           {"bucket", "64GiB"},
                           {"grad_dtype", "f16"},
                           {"input", "pinned"},
                           {"batch", std::to_string(row.batch)},
                           {"microbatch", std::to_string(microbatch)}}};
  base.options["schedule"] = chunks > 1 ? "interleaved" : "1f1b";
  if (chunks > 1) base.options["v"] = std::to_string(chunks);
  return workloads::find_workload("hybrid").scale(base, {.tp = row.tp, .dp = row.dp, .pp = row.pp},
                                                  workloads::Scaling::strong);
}

Estimate estimate_at(const Row& row, const simulate::Machine& machine, int microbatch, int chunks,
                     const Settings& settings) {
  const program::ProgramSet set =
      workloads::find_workload("hybrid").build(request_of(row, microbatch, chunks, settings));
  return {.seconds = step_seconds(set, machine),
          .memory = memory_of(set),
          .microbatch = microbatch,
          .chunks = chunks};
}

/// The published setting; what was not published is the fastest of microbatches 1, 2, 4 and 8 that
/// fits in memory, interleaved in 2 parts where layers and microbatches divide.
Estimate estimate(const Row& row, const simulate::Machine& machine, const Settings& settings = {}) {
  if (row.microbatch > 0) return estimate_at(row, machine, row.microbatch, row.chunks, settings);
  Estimate best{.seconds = std::numeric_limits<double>::infinity()};
  for (const int microbatch : {1, 2, 4, 8}) {
    const int samples = row.batch / row.dp;
    if (samples % microbatch != 0) continue;
    const bool interleaves =
        row.pp > 1 && row.layers % (2 * row.pp) == 0 && samples / microbatch % row.pp == 0;
    const Estimate one = estimate_at(row, machine, microbatch, interleaves ? 2 : 1, settings);
    if (one.memory > machine.memory->capacity || one.seconds >= best.seconds) continue;
    best = one;
  }
  return best;
}

simulate::Machine a100() { return analysis::predict::load_system("a100-hdr"); }

struct Errors {
  double mean = 0, worst = 0;
};

Errors print_table(std::span<const Row> rows, const Settings& settings) {
  const simulate::Machine machine = a100();
  Errors errors;
  fmt::print("{:>8} {:>6} {:>11} {:>3} {:>10} {:>10} {:>7}\n", "model", "GPUs", "microbatch", "v",
             "published", "predicted", "error");
  for (const Row& row : rows) {
    const Estimate found = estimate(row, machine, settings);
    const double error = found.seconds / row.seconds - 1;
    errors.mean += std::abs(error) / static_cast<double>(rows.size());
    errors.worst = std::max(errors.worst, std::abs(error));
    fmt::print("{:>8} {:>6} {:>11} {:>3} {:>8.2f} s {:>8.2f} s {:>6.1f}%\n", row.name,
               row.tp * row.pp * row.dp, found.microbatch, found.chunks, row.seconds, found.seconds,
               100 * error);
  }
  fmt::print("mean {:.2f}%, worst {:.2f}%\n", 100 * errors.mean, 100 * errors.worst);
  return errors;
}

TEST(PublishedTruth, FullRecomputation) {
  const Errors errors = print_table(recomputation_rows(), {});
  EXPECT_LE(errors.mean, 0.04);
  EXPECT_LE(errors.worst, 0.08);
}

/// Compares with runs on at most 1024 GPUs, or ISOSCALE_PUBLISHED_GPUS: predicting larger ones
/// takes longer.
TEST(PublishedTruth, WeakScaling) {
  const char* const given = std::getenv("ISOSCALE_PUBLISHED_GPUS");
  const int most = given != nullptr ? std::stoi(given) : 1024;
  std::vector<Row> rows = weak_scaling_rows();
  std::erase_if(rows, [&](const auto& row) { return row.tp * row.pp * row.dp > most; });
  const Errors errors = print_table(rows, {});
  EXPECT_LE(errors.mean, 0.07);
  EXPECT_LE(errors.worst, 0.15);
}

struct LayerTime {
  double forward = 0, backward = 0;  ///< milliseconds
};

/// Returns the time of an inner layer of the 22B model.
LayerTime layer_of_22b(const Settings& settings) {
  const Row row = recomputation_rows().front();
  const auto set = workloads::find_workload("hybrid").build(
      request_of(row, row.microbatch, row.chunks, settings));
  const auto seconds = simulate::op_times(a100(), set.of(0), program::Section::step, set.mesh,
                                          simulate::packed(set.mesh.size(), 8), 0);
  LayerTime result;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const program::Place& place = set.of(0).step().ops[i].place;
    if (place.layer != 1) continue;
    const double milliseconds = static_cast<double>(seconds[i].value()) * 1e-6;
    (place.phase == program::Phase::forward ? result.forward : result.backward) += milliseconds;
  }
  return result;
}

/// arXiv 2205.05198, table 4: nothing is fitted to it.
TEST(PublishedTruth, OneLayer) {
  const LayerTime kept = layer_of_22b({.recompute = "none"});
  EXPECT_NEAR(kept.forward / 7.7, 1, 0.06);
  // 8% too long: programs reduce over tp between GEMMs, where trainers may hide it under one.
  EXPECT_NEAR(kept.backward / 11.9, 1, 0.09);
  const LayerTime full = layer_of_22b({.recompute = "full"});
  EXPECT_NEAR(full.forward / 7.7, 1, 0.06);
  EXPECT_NEAR(full.backward / 19.5, 1, 0.06);
  fmt::print("forward {:.2f} of 7.7 ms, backward {:.2f} of 11.9 ms, recomputing {:.2f} of 19.5\n",
             kept.forward, kept.backward, full.backward);
}

}  // namespace
}  // namespace isoscale
