// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "published_rows.hpp"

#include <algorithm>
#include <limits>

#include "program/facts.hpp"
#include "simulate/classes.hpp"

namespace isoscale::published {
namespace {

using workloads::Request;

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

Estimate estimate_at(const Row& row, const simulate::Machine& machine, int microbatch, int chunks,
                     const Settings& settings) {
  const program::ProgramSet set =
      workloads::find_workload("hybrid").build(request_of(row, microbatch, chunks, settings));
  return {.seconds = step_seconds(set, machine),
          .memory = memory_of(set),
          .microbatch = microbatch,
          .chunks = chunks};
}

}  // namespace

std::vector<Row> recomputation_rows() {
  return {
      {"22B", 64, 6144, 48, 8, 1, 1, 4, 4, 1, 1.42},
      {"175B", 96, 12288, 96, 8, 8, 1, 64, 1, 3, 18.13},
      {"530B", 128, 20480, 105, 8, 35, 1, 280, 1, 3, 49.05},
      {"1T", 160, 25600, 128, 8, 64, 1, 512, 1, 1, 94.42},
  };
}

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

Request request_of(const Row& row, int microbatch, int chunks, const Settings& settings) {
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

Estimate estimate(const Row& row, const simulate::Machine& machine, const Settings& settings) {
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

}  // namespace isoscale::published
