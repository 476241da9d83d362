// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/pipeline.hpp"

/// Estimates steps quickly. All layers of a stage are alike, so its time is linear in their number,
/// and programs with few layers show the cost of one more. The time of a pipeline of such stages
/// follows from a formula.
namespace isoscale::analysis::predict {

/// The seconds of one rank for one microbatch in the passes of a stage.
struct StagePasses {
  double forward = 0, backward = 0;  ///< in the middle of a step
  double weight_gradient = 0;        ///< the part of `backward` that zb-h1 postpones
};

/// The seconds and bytes of one rank of a stage, without the output projection. head_numbers()
/// returns the projection's additional cost on the last stage, which does not depend on the number
/// of layers.
struct StageNumbers : StagePasses {
  /// The time of a step beyond all passes: what its first and its last pass take longer, the
  /// remaining reductions, and the update.
  double ends = 0;
  // The following are bytes on the device.
  double states = 0;      ///< weights, gradients and the optimizer's state
  double workspace = 0;   ///< short-lived buffers, at their peak
  double activation = 0;  ///< activations of one microbatch in flight, with its input
  double recomputed = 0;  ///< activations of the one layer that is being recomputed
  /// Bytes of the first stage's input for one microbatch; 0 if inputs are on the host.
  double input = 0;
  double output = 0;  ///< output of a stage for one microbatch

  /// Adds the numbers of the output projection, except its activations and workspace, which do not
  /// exist at the same time as all others.
  void add_head(const StageNumbers& head);
};
/// All numbers of a stage as fixed + each * layers. The workspace is linear only up to the largest
/// probed number of layers and constant beyond: gradient buckets grow with the stage until one is
/// full.
struct StageLaw {
  StageNumbers fixed, each;
  int most_layers = 1;  ///< largest number that was probed
  [[nodiscard]] StageNumbers at(double layers) const;
};

/// The settings that a law depends on: requests with equal keys have the same law.
struct StageKey {
  int tp = 1, cp = 1, ep = 1, dp = 1;
  std::string microbatch, zero, recompute, sequence_parallel;
  auto operator<=>(const StageKey&) const = default;
};
[[nodiscard]] StageKey stage_key(const workloads::Request& request);

/// The number of layers of the larger of the two programs that a stage's law is fitted to; less if
/// the model has fewer layers.
inline constexpr int most_probed_layers = 4;

/// Returns the seconds and bytes of a stage as linear functions of its layers, without the output
/// projection. They are fitted to simulations of two small programs (one if the model has a single
/// layer) on the mesh of `request` without pp, with `node_ranks` ranks on each node.
[[nodiscard]] StageLaw stage_law(const workloads::Workload& workload,
                                 const workloads::Request& request,
                                 const simulate::Machine& machine, int node_ranks);
/// Returns the numbers that the output projection adds to the last stage; zeros if there is none.
[[nodiscard]] StageNumbers head_numbers(const workloads::Workload& workload,
                                        const workloads::Request& request,
                                        const simulate::Machine& machine, int node_ranks);

/// Returns the time from one step of a pipeline to the next, without StageNumbers::ends. All stages
/// take the times `stage` for a microbatch, but the last one takes `last`, which should be at least
/// as long; `message` is the time of a message from stage to stage. Of p stages, v chunks and m
/// microbatches this is
///
///   idle time (stack::idle_time) + m x (forward + backward) + n x message
///
/// of the other stages or of the last one, whichever is longer. The messages that no pass hides, n,
/// follow from the order in which a stage posts its messages (stack::steps_of): a stage of 1f1b
/// waits in each round for an exchange with the next stage and for one with the previous stage,
/// while weight gradients hide one of both in zb-h1. The formula is exact for at least two
/// microbatches per stage.
[[nodiscard]] double pipeline_seconds(const workloads::stack::Pipeline& pipeline,
                                      const StagePasses& stage, const StagePasses& last,
                                      double message);

/// The device memory of a rank of one stage.
struct StageBytes {
  int stage = 0;
  double bytes = 0;
};

/// Estimates steps on one machine, cheaply enough for thousands of requests. The workload must be
/// composed from the stack of layers.
class QuickEstimate {
 public:
  /// Keeps references to `workload` and `machine`, which must outlive this object.
  QuickEstimate(const workloads::Workload& workload, const simulate::Machine& machine,
                int node_ranks)
      : workload_(workload), machine_(machine), node_ranks_(node_ranks) {}

  /// True if the workload is composed from the stack, so that it can be estimated.
  [[nodiscard]] static bool knows(const workloads::Workload& workload);

  /// Fits the StageLaw, and the other numbers of a stage, that these requests need. The functions
  /// below accept only requests whose laws have been fitted.
  void learn(std::span<const workloads::Request> requests);

  /// Returns the stage whose ranks need most device memory. It is the sum of what is allocated at
  /// the peak:
  ///
  ///   states + workspace + layers in flight x activation + inputs + outputs + messages + under way
  ///
  /// - states, activation and workspace: linear in the layers of a stage, through two programs of
  ///   few layers (stage_law) with all their microbatches in flight at once
  /// - layers in flight: by the schedule (stack::most_in_flight). In zb-h1 a microbatch is in
  ///   flight until its weight gradients are made (Qi et al., arXiv 2401.10241, section 2.3); after
  ///   its input gradients it takes other bytes than before (late_bytes)
  /// - inputs: of all microbatches, on the first stage (stack/stage_io.cpp); those in flight are
  ///   included in the activations, and a trainer keeps no others
  /// - outputs: on the last stage, for each microbatch between its forward and backward pass, the
  ///   output of the last layer and, except for one microbatch, the logits. With gpipe and zb-h1
  ///   this is the case for all microbatches in flight, else for a single one
  /// - messages: an activation and a gradient, between stages (stack/stage_io.cpp)
  /// - under way: the larger of two parts that do not exist at the same time: the activations of
  ///   one layer that is recomputed, or the backward pass of the output projection with its logits
  [[nodiscard]] StageBytes largest_stage(const workloads::Request& request) const;
  /// Returns the time of a step, by pipeline_seconds() and the extra time at its start and end.
  [[nodiscard]] double seconds(const workloads::Request& request) const;

 private:
  /// A message from stage to stage.
  struct Message {
    double seconds = 0;
    double arrival = 0;  ///< seconds that the receiving stage spends on it before its pass
  };
  /// tp, cp, ep, microbatch and sequence_parallel decide how much a stage hands on
  using Rows = std::tuple<int, int, int, std::string, std::string>;
  /// dp and pp decide how far it goes
  using Distance = std::tuple<int, int, Rows>;
  [[nodiscard]] static Rows rows_of(const workloads::Request& request);
  [[nodiscard]] static Distance distance_of(const workloads::Request& request);
  [[nodiscard]] Message message(const workloads::Request& request) const;
  /// Returns the bytes that a layer keeps for a microbatch in zb-h1 between its input and weight
  /// gradients.
  [[nodiscard]] double late_bytes(const workloads::Request& request) const;

  const workloads::Workload& workload_;
  const simulate::Machine& machine_;
  int node_ranks_;
  std::map<StageKey, StageLaw> laws_;
  std::map<StageKey, StageNumbers> heads_;  ///< in these keys, `recompute` is empty
  std::map<Distance, Message> messages_;    ///< for requests with several stages
  std::map<Rows, double> late_bytes_;       ///< for requests with zb-h1
};

}  // namespace isoscale::analysis::predict
