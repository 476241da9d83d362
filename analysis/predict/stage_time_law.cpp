// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/quick_estimate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <variant>

#include "analysis/predict/forecast.hpp"
#include "program/work_and_memory.hpp"
#include "simulate/simulate.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::analysis::predict {
namespace {

using program::Phase;
using workloads::Request;

/// A stage is measured by simulating a small step of three microbatches. The first one takes longer
/// because it includes the beginning of the step, and the last one its end; the middle one is
/// typical.
constexpr int probed_microbatches = 3;
constexpr int middle = 1, last = 2;

enum class Head { without, with };

/// Returns a request with a single stage of `layers` layers, on the ranks of one stage of
/// `request`. All its forward passes come before the backward passes, so all microbatches are in
/// flight at once.
Request probe(const Question& question, const Request& request, int layers, Head head) {
  Request result = request;
  result.model.layers = layers;
  workloads::Options& options = result.options;
  const long long replicas = static_cast<long long>(request.mesh.dp) * request.mesh.ep;
  options["batch"] = std::to_string(workloads::stack::options_of(request).microbatch *
                                    probed_microbatches * replicas);
  options.erase("microbatches");
  options["schedule"] = "gpipe";
  options.erase("v");
  options.erase("stage_layers");
  if (head == Head::without) options["vocabulary"] = "off";
  result.model.tied_embedding = true;  // so that the stage has no separate embedding
  mesh::Shape shape = request.mesh;
  shape.pp = 1;
  return question.workload->scale(result, shape, workloads::Scaling::strong);
}

/// Derives the times of a rank's passes from the spans of its ops. A pass lasts until the next pass
/// begins to compute.
StageNumbers passes_of(const program::Program& program, const timeline::StepTrace& trace) {
  const std::vector<program::Op>& ops = program.ops;
  const auto computes_in = [](const program::Op& op, Phase phase, int microbatch) {
    return op.stream == 0 && op.place.phase == phase && op.place.microbatch == microbatch &&
           program::computes(program::kind_of(op.payload));
  };
  const auto begin = [&](Phase phase, int microbatch) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (computes_in(ops[i], phase, microbatch)) return breakdown::seconds(trace.spans[i].start);
    }
    return breakdown::seconds(trace.end);
  };
  StageNumbers result;
  result.forward = begin(Phase::forward, last) - begin(Phase::forward, middle);
  result.backward = begin(Phase::backward, last) - begin(Phase::backward, middle);
  result.ends = breakdown::seconds(trace.end) - breakdown::seconds(trace.begin) -
                probed_microbatches * (result.forward + result.backward);
  // The weight gradients have the same FLOP as a microbatch's forward GEMMs with weights, so they
  // are assumed to take as long. Batched GEMMs are those of attention, which have no weights.
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* const gemm = std::get_if<program::Gemm>(&ops[i].payload);
    if (gemm == nullptr || gemm->batch > 1) continue;
    if (!computes_in(ops[i], Phase::forward, middle)) continue;
    result.weight_gradient +=
        breakdown::seconds(trace.spans[i].end) - breakdown::seconds(trace.spans[i].start);
  }
  return result;
}

/// Returns the bytes on the device that a rank keeps from step to step, summed by role. They do not
/// follow from the size of the rank's arena (its block of memory), in which this state partly
/// shares memory with activations in small programs.
double state_bytes(const program::RankProgram& program, const program::Facts& facts) {
  constexpr std::array roles{program::Role::weight, program::Role::master, program::Role::gradient,
                             program::Role::optimizer};
  double sum = 0;
  for (const program::Role role : roles) {
    sum += static_cast<double>(facts.peak_of_role[static_cast<std::size_t>(role)].value());
  }
  for (const program::Buffer& buffer : program.buffers) {
    const bool is_on_host =
        buffer.space == program::Space::pinned || buffer.space == program::Space::pageable;
    if (!is_on_host || std::ranges::find(roles, buffer.role) == roles.end()) continue;
    sum -= static_cast<double>(program::buffer_bytes(buffer));
  }
  return std::max(0.0, sum);
}

/// Sets the bytes in `into` from the program of a simulated small step, whose microbatches are all
/// in flight at once.
void add_bytes(const program::RankProgram& program, const program::Facts& facts,
               StageNumbers& into) {
  const auto one_of = [&](program::Role role) {
    const auto all = facts.peak_of_role[static_cast<std::size_t>(role)];
    return static_cast<double>(all.value()) / probed_microbatches;
  };
  const bool is_on_device = std::ranges::any_of(program.buffers, [](const auto& buffer) {
    return buffer.role == program::Role::input && buffer.space == program::Space::device;
  });
  into.states = state_bytes(program, facts);
  into.output = one_of(program::Role::input);  // a stage's output has the size of its input
  into.input = is_on_device ? into.output : 0;
  into.activation = one_of(program::Role::activation);
  into.workspace = std::max(0.0, step_memory(program).device - into.states -
                                     (into.activation + into.input) * probed_microbatches);
}

/// Simulates the small step of probe(), and returns its times and bytes. If the programs of ranks
/// differ (uneven shares of the work), the times are those of the rank with the longest passes,
/// since the others wait for it in every step, and the bytes are those of the rank with the most
/// memory.
StageNumbers play(const Question& question, const Request& whole, int layers,
                  Head head = Head::without) {
  const Request request = probe(question, whole, layers, head);
  const program::ProgramSet set = question.workload->build(request);
  const simulate::Layout layout = layout_of(request, question.node_ranks);
  const simulate::Classes classes = simulate::classes_of(set);
  const simulate::Costs costs = simulate::class_costs(classes, set, question.machine, layout);
  const simulate::ClassStep played =
      simulate::play_classes(classes, costs, question.machine.overlap, simulate::Record::spans);
  StageNumbers result;
  for (const timeline::StepTrace& trace : played.timeline.ranks) {
    const auto number = classes.outline.outline_of_rank[static_cast<std::size_t>(trace.rank)];
    const StageNumbers one = passes_of(set.programs[number].step(), trace);
    if (one.forward + one.backward > result.forward + result.backward) result = one;
  }
  double most = 0;
  for (const program::RankProgram& program : set.programs) {
    const double all = step_memory(program).device;
    if (all <= most) continue;
    most = all;
    add_bytes(program, program::facts(program, set.mesh), result);
  }
  return result;
}

using Number = double StageNumbers::*;
constexpr std::array<Number, 10> all_numbers{
    &StageNumbers::forward,    &StageNumbers::backward,   &StageNumbers::weight_gradient,
    &StageNumbers::ends,       &StageNumbers::states,     &StageNumbers::workspace,
    &StageNumbers::activation, &StageNumbers::recomputed, &StageNumbers::input,
    &StageNumbers::output};
/// The number of entries at the front of `all_numbers` to which the output projection adds.
constexpr std::size_t of_head = 5;

}  // namespace

void StageNumbers::add_head(const StageNumbers& head) {
  for (const Number number : std::span{all_numbers}.first(of_head)) this->*number += head.*number;
}

StageNumbers StageLaw::at(double layers) const {
  StageNumbers result;
  for (const Number number : all_numbers) result.*number = fixed.*number + each.*number * layers;
  result.workspace = fixed.workspace + each.workspace * std::min<double>(layers, most_layers);
  return result;
}

StageLaw stage_law(const Question& question, const Request& request) {
  const int most = std::min(most_probed_layers, request.model.layers);
  const int few = std::max(1, most / 2);
  const StageNumbers one = play(question, request, few);
  const StageNumbers two = few == most ? one : play(question, request, most);
  StageLaw law{.fixed = {}, .each = {}, .most_layers = most};
  for (const Number number : all_numbers) {
    // With a single simulated step the line goes through the origin.
    law.each.*number = few == most ? one.*number / few : (two.*number - one.*number) / (most - few);
    law.fixed.*number = few == most ? 0 : one.*number - law.each.*number * few;
  }
  // In the small steps, the activations of one microbatch are those of all layers, the input of
  // each layer included, plus the output of the last layer. The input of the first layer is
  // missing if it is on the device, since it then has a role of its own (Role::input). The layer
  // that is being recomputed exists once in a step, so a microbatch has 1 / probed_microbatches
  // of it. The constant part is thus output - input + recomputed / probed_microbatches.
  const double beyond = law.fixed.activation + two.input - two.output;
  law.fixed.activation = law.each.recomputed = law.each.input = law.each.output = 0;
  law.fixed.recomputed = std::max(0.0, beyond * probed_microbatches);
  law.fixed.input = two.input;
  law.fixed.output = two.output;
  return law;
}

StageNumbers head_numbers(const Question& question, const Request& request) {
  if (!workloads::stack::options_of(request).vocabulary) return {};
  StageNumbers head = play(question, request, 1, Head::with);
  const StageNumbers without = play(question, request, 1);
  for (const Number number : all_numbers) head.*number -= without.*number;
  return head;
}

}  // namespace isoscale::analysis::predict
