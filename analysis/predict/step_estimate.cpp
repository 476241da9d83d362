// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/step_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "analysis/report.hpp"
#include "base/error.hpp"
#include "base/parallel.hpp"
#include "program/checksum_replay_and_solo_sections.hpp"
#include "program/work_and_memory.hpp"
#include "simulate/noise.hpp"
#include "simulate/simulate.hpp"
#include "units/quantity.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::analysis::predict {
namespace {

using simulate::Classes;
using units::Nanoseconds;
using workloads::Request;
using workloads::Workload;

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Returns the time of each op if no other op ran at the same time; 0 for communication.
std::vector<results::SoloTimes> solo_times(const program::OutlineSet& outline,
                                           const simulate::Costs& costs) {
  std::vector<results::SoloTimes> result;
  for (int rank = 0; rank < outline.mesh.size(); ++rank) {
    results::SoloTimes solo{.rank = rank,
                            .op = costs.tables[costs.table_of_rank[simulate::at(rank)]]};
    const std::vector<program::OutlineOp>& ops = outline.of(rank).ops;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (program::communicates(ops[op].kind)) solo.op[op] = Nanoseconds{0};
    }
    result.push_back(std::move(solo));
  }
  return result;
}

double flop_of(const program::Outline& outline) {
  double sum = 0;
  for (const program::OutlineOp& op : outline.ops) sum += op.flop;
  return sum;
}

double delay_of(const EstimateSetting& setting, const program::ProgramSet& set,
                const Classes& classes, const simulate::ClassStep& step, double share) {
  const simulate::Noise& noise = setting.machine.noise;
  if (!noise.any()) return 0;
  if (setting.ranks == Ranks::by_class) {
    return simulate::expected_delay(set, classes, step.costs, noise, setting.layout, share);
  }
  const std::vector<double> steps =
      simulate::play_each_rank(set, classes, step.costs, noise, setting.layout);
  return std::reduce(steps.begin(), steps.end()) / static_cast<double>(steps.size()) - step.seconds;
}

/// Throws base::UsageError if the workload has no steps, and std::invalid_argument if the
/// layout places another number of ranks on nodes than the request's mesh has.
void require_steps(const EstimateSetting& setting, const Request& request) {
  if (setting.workload.is_bench()) {
    throw base::usage_error(
        "workload {} has no step to predict, it measures parts of a machine; choose one that "
        "trains, as --workload hybrid",
        setting.workload.name);
  }
  if (std::cmp_equal(setting.layout.node_of_rank.size(), request.mesh.size())) return;
  throw std::invalid_argument(fmt::format("{} ranks are placed on nodes, but the mesh has {}",
                                          setting.layout.node_of_rank.size(), request.mesh.size()));
}

/// Returns the sums of `bytes_of(space)` over all memory spaces, over those of the device, and over
/// those of the host.
template <class BytesOf>
StepMemory memory_sum(const BytesOf& bytes_of) {
  StepMemory sum;
  for (std::size_t i = 0; i < program::space_count; ++i) {
    const auto space = static_cast<program::Space>(i);
    const double bytes = bytes_of(i);
    sum.all += bytes;
    const bool on_host = space == program::Space::pinned || space == program::Space::pageable;
    (on_host ? sum.host : sum.device) += bytes;
  }
  return sum;
}

StepMemory larger(const StepMemory& a, const StepMemory& b) {
  return {.all = std::max(a.all, b.all),
          .device = std::max(a.device, b.device),
          .host = std::max(a.host, b.host)};
}

/// Bytes of a program's memory: `whole` is what it allocates, `live` the most that its buffers use
/// at one time, which is less if gaps between buffers cannot be used.
struct ProgramMemory {
  StepMemory whole, live;
};

ProgramMemory memory_of(const program::RankProgram& program, const mesh::Shape& mesh) {
  const program::Facts facts = program::facts(program, mesh);
  return {.whole = step_memory(program),
          .live = memory_sum([&](std::size_t space) {
            return static_cast<double>(facts.peak_live[space].value());
          })};
}

/// Extrapolates the memory of a program to more microbatches. `few` is its memory with m1 of
/// them, `more` with m2 > m1; the result is for m2 + repeats * (m2 - m1). The growth for each
/// microbatch is that of the live bytes.
StepMemory extended(const ProgramMemory& few, const ProgramMemory& more, double repeats) {
  // Each further input on the host also takes the bytes of a copy on the device. The live bytes of
  // the device do not grow by them, since only the copies of microbatches in flight are live.
  const double on_host = more.live.host - few.live.host;
  const double on_device = more.live.device - few.live.device + on_host;
  return {.all = more.whole.all + repeats * (on_host + on_device),
          .device = more.whole.device + repeats * on_device,
          .host = more.whole.host + repeats * on_host};
}

/// An estimate, with the memory of each program of the request in the order of the ProgramSet.
struct Simulated {
  StepEstimate estimate;
  std::vector<ProgramMemory> memory;
};

void set_memory(Simulated& step) {
  StepMemory largest;
  for (const ProgramMemory& one : step.memory) largest = larger(largest, one.whole);
  step.estimate.memory = largest;
}

/// Builds and simulates all programs of a step. If it needs more than the setting's most_bytes on
/// the device, only its memory is computed. If the step is a short one that is to be extended,
/// `share` is its number of microbatches over that of the extended step. The estimate does not have
/// breakdown and loss yet.
Simulated simulated_step(const EstimateSetting& setting, const Request& request, double share) {
  const program::ProgramSet set = setting.workload.build(request);
  Simulated result{.estimate = {.work = setting.workload.work_per_step(request)}, .memory = {}};
  for (const program::RankProgram& one : set.programs) {
    result.memory.push_back(memory_of(one, set.mesh));
  }
  set_memory(result);
  StepEstimate& estimate = result.estimate;
  if (estimate.memory.device > setting.most_bytes) {
    estimate.simulated = infinite;
    return result;
  }
  const simulate::Machine& machine = setting.machine;
  Classes classes = simulate::classes_of(set);
  const simulate::Costs costs = simulate::class_costs(classes, set, machine, setting.layout);
  program::OutlineSet unfolded;  // set if the machine runs all streams of a rank on one thread
  if (machine.folded) {
    unfolded = std::exchange(classes.outline, simulate::folded(classes.outline));
  }
  const bool is_traced = setting.detail == Detail::trace;
  simulate::ClassStep step =
      simulate::play_classes(classes, costs, machine.overlap,
                             is_traced ? simulate::Record::spans : simulate::Record::steps);
  estimate.simulated = step.seconds;
  estimate.delay = delay_of(setting, set, classes, step, share);
  if (!is_traced) return result;
  results::PointData& point = estimate.point.emplace();
  point.options = workloads::all_options(setting.workload.options, request.options);
  point.mesh = request.mesh;
  point.outline = std::move(machine.folded ? unfolded : classes.outline);
  point.ranks = point.outline.mesh.size();
  point.folded = machine.folded;
  for (const std::uint32_t program : point.outline.outline_of_rank) {
    point.flop_of_rank.push_back(flop_of(point.outline.outlines[program]));
  }
  point.solo_times = solo_times(point.outline, costs);
  point.clock_offset.assign(point.flop_of_rank.size(), 0);
  point.clock_error = point.clock_offset;
  point.traces.push_back(std::move(step.timeline));
  return result;
}

void add_costs(const results::PointData& point, int ranks, StepEstimate& result) {
  if (const std::optional<double> flop = model_flop_per_step(point)) {
    result.model_flop = *flop * ranks / point.ranks;
  }
  breakdown::BreakdownResult split = breakdown::breakdown(point);
  result.breakdown = split.mean;
  // The simulated step stands for all steps, so ranks that are late are late in each step: all
  // waiting is imbalance.
  if (split.mean && split.wait_known)
    split.waits = breakdown::WaitSplit{.imbalance = split.mean->wait};
  const std::optional<efficiency::StepCosts> costs = efficiency::step_costs(point, split);
  if (!costs || !split.mean) return;
  result.loss = efficiency::StepLoss{.step = result.seconds(),
                                     .traced = split.mean->step,
                                     .slowest = split.slowest_step,
                                     .work = result.work,
                                     .ranks = ranks,
                                     .costs = *costs};
}

/// Returns simulated_step(). If its spans were recorded (Detail::trace), the breakdown and the lost
/// time by cause (StepLoss) are added.
Simulated explained_step(const EstimateSetting& setting, const Request& request, double share = 1) {
  Simulated step = simulated_step(setting, request, share);
  // The costs are computed only here, after simulated_step() has freed the programs, since these
  // take much memory.
  if (step.estimate.point) add_costs(*step.estimate.point, request.mesh.size(), step.estimate);
  return step;
}

/// Returns the request with fewer microbatches of the same size.
Request shortened(const Request& request, int microbatches) {
  const workloads::stack::TrainingOptions options = workloads::stack::options_of(request);
  Request result = request;
  result.options["batch"] = std::to_string(options.batch / options.microbatches * microbatches);
  result.options["microbatches"] = std::to_string(microbatches);
  return result;
}

/// Adds `factor` times the values of `step` to those of `into`, except work and memory.
void add_step(const StepEstimate& step, double factor, StepEstimate& into) {
  into.simulated += factor * step.simulated;
  into.delay += factor * step.delay;
  if (into.model_flop && step.model_flop) *into.model_flop += factor * *step.model_flop;
  if (into.breakdown && step.breakdown) {
    breakdown::Breakdown more = *step.breakdown;
    *into.breakdown += (more *= factor);
  }
  if (!into.loss || !step.loss) return;
  into.loss->step += factor * step.loss->step;
  into.loss->traced += factor * step.loss->traced;
  into.loss->slowest += factor * step.loss->slowest;
  add(step.loss->costs, factor, into.loss->costs);
}

/// A rank's waiting time is divided into bubble and wait. In long steps the bubble is limited by
/// the waiting time, but an extension from short steps does not know this limit and may give a
/// negative wait. This function then reduces the bubble so that the wait is 0.
void keep_wait_positive(StepEstimate& step) {
  if (!step.breakdown || step.breakdown->wait >= 0) return;
  if (step.loss) step.loss->costs.uneven += step.breakdown->wait;
  step.breakdown->bubble += std::exchange(step.breakdown->wait, 0);
}

}  // namespace

std::optional<breakdown::Breakdown> breakdown_of(const StepEstimate& estimate, double correction) {
  std::optional<breakdown::Breakdown> parts = estimate.breakdown;
  if (!parts) return parts;
  parts->wait += estimate.delay;
  parts->step += estimate.delay;
  *parts *= correction;
  return parts;
}

StepEstimate whole_step(const EstimateSetting& setting, const Request& request) {
  require_steps(setting, request);
  return explained_step(setting, request).estimate;
}

StepEstimate estimate_step(const EstimateSetting& setting, const Request& request) {
  require_steps(setting, request);
  // If every rank is simulated with noise of single ops, each short step draws other random times,
  // so their difference cannot be extended.
  const bool is_drawn = setting.ranks == Ranks::each && setting.machine.noise.op > 0;
  const std::optional<ShortSteps> shorter = is_drawn ? std::nullopt : short_steps(request);
  if (!shorter) {
    StepEstimate estimate = explained_step(setting, request).estimate;
    estimate.point.reset();  // large, and no longer needed
    return estimate;
  }
  const double repeats = shorter->repeats;
  const double microbatches = shorter->more + repeats * (shorter->more - shorter->few);
  // A short step may need more memory than the long one, so it has no limit.
  EstimateSetting unlimited = setting;
  unlimited.most_bytes = infinite;
  Simulated few, step;
  const auto simulate_either = [&](std::size_t i) {
    const int number = i == 0 ? shorter->few : shorter->more;
    Simulated& into = i == 0 ? few : step;
    into = explained_step(unlimited, shortened(request, number), number / microbatches);
    into.estimate.point.reset();
  };
  // A search, which limits the bytes of its candidates, simulates both steps at once. A single
  // prediction simulates one after the other, since both at once need half as much memory again for
  // a long schedule: 690 instead of 440 MB for gpt-175b with tp=8, pp=12, interleaved stages and
  // ring=on.
  if (std::isfinite(setting.most_bytes)) {
    base::parallel_for(2, simulate_either);
  } else {
    for (const std::size_t i : {0U, 1U}) simulate_either(i);
  }
  for (std::size_t i = 0; i < step.memory.size(); ++i) {
    step.memory[i].whole = extended(few.memory[i], step.memory[i], repeats);
  }
  set_memory(step);
  StepEstimate& estimate = step.estimate;
  estimate.work = setting.workload.work_per_step(request);
  if (estimate.memory.device > setting.most_bytes) {
    return {.simulated = infinite, .memory = estimate.memory, .work = estimate.work};
  }
  const StepEstimate more = estimate;
  add_step(more, repeats, estimate);
  add_step(few.estimate, -repeats, estimate);
  if (estimate.loss) estimate.loss->work = estimate.work;
  keep_wait_positive(estimate);
  return estimate;
}

std::optional<ShortSteps> short_steps(const Request& request) {
  if (!request.options.contains("batch") || !request.options.contains("microbatches")) {
    return std::nullopt;
  }
  const workloads::stack::TrainingOptions options = workloads::stack::options_of(request);
  constexpr int least_turn = 4;
  const int pp = request.mesh.pp, turn = (least_turn + pp - 1) / pp * pp;
  const bool are_alike = options.partition.kind == workloads::stack::Partition::Kind::equal &&
                         (options.experts == 0 || options.skew == 0);
  if (!are_alike || options.microbatches <= 3LL * turn) return std::nullopt;
  return ShortSteps{.few = 2 * turn,
                    .more = 3 * turn,
                    .repeats = static_cast<double>(options.microbatches - 3LL * turn) / turn};
}

void add(const efficiency::StepCosts& more, double factor, efficiency::StepCosts& costs) {
  using efficiency::StepCosts;
  for (const auto part : {&StepCosts::gemm, &StepCosts::other_compute, &StepCosts::copies,
                          &StepCosts::bubble, &StepCosts::waiting, &StepCosts::uneven,
                          &StepCosts::hiccups, &StepCosts::gap, &StepCosts::other}) {
    costs.*part += factor * more.*part;
  }
  for (const auto part : {&StepCosts::gemm_alone, &StepCosts::gemm_overlap,
                          &StepCosts::communication, &StepCosts::imbalance, &StepCosts::noise}) {
    if (costs.*part && more.*part) *(costs.*part) += factor * *(more.*part);
  }
  for (const auto& [axes, seconds] : more.transfer) costs.transfer[axes] += factor * seconds;
}

StepMemory step_memory(const program::RankProgram& program) {
  return memory_sum(
      [&](std::size_t space) { return static_cast<double>(program.arena_bytes[space]); });
}

StepMemory run_memory(const Workload& workload, Request request) {
  request.trainer = workloads::Trainer::none;
  const program::ProgramSet set = workload.build(request);
  StepMemory largest;
  for (const program::RankProgram& one : set.programs) {
    const auto arenas = program::arenas_with(program::AddedSections::checks, one, set.mesh);
    largest = larger(
        largest, memory_sum([&](std::size_t space) { return static_cast<double>(arenas[space]); }));
  }
  return largest;
}

double stage_device_bytes(const Request& request, int stage) {
  const mesh::Coordinates at{.dp = workloads::stack::replica_programs(request).front(),
                             .pp = stage};
  const auto memory_with = [&](int microbatches) {
    const Request built = shortened(request, microbatches);
    return memory_of(workloads::stack::build_stage(built, at), request.mesh);
  };
  if (const std::optional<ShortSteps> steps = short_steps(request)) {
    return extended(memory_with(steps->few), memory_with(steps->more), steps->repeats).device;
  }
  return step_memory(workloads::stack::build_stage(request, at)).device;
}

double layer_passes(const Request& request) {
  const auto microbatches = workloads::stack::option_of(
      request, "microbatches", &workloads::stack::TrainingOptions::microbatches);
  const std::optional<ShortSteps> shorter = short_steps(request);
  const auto played = shorter ? shorter->few + shorter->more : std::max(1LL, microbatches);
  return static_cast<double>(request.model.layers * played);
}

}  // namespace isoscale::analysis::predict
