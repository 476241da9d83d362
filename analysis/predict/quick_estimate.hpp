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

/// Quick estimates of steps: the time of a pipeline stage as a law of its number of layers (all
/// layers of a stage are alike, so a program of few of them tells what one more costs), and a
/// pipeline of such stages played with one op a pass.
namespace isoscale::analysis {

/// fixed + each * layers.
struct LayerTime {
  double fixed = 0, each = 0;
  [[nodiscard]] double at(double layers) const { return fixed + each * layers; }
  /// Through (x1, y1) and (x2, y2); through the origin of y = y1 at all x where x1 = x2.
  [[nodiscard]] static LayerTime through(double x1, double y1, double x2, double y2);
};

/// Seconds and bytes of a stage, of one rank of it. All but the last stage, which also has the
/// output projection: `head` is what that adds, whatever the number of layers.
struct StageNumbers {
  double forward = 0, backward = 0;  ///< of one microbatch among others
  double first_forward = 0;          ///< what the first forward pass of a step takes more
  double last_backward = 0;          ///< what the last backward pass takes more
  double weight_gradient = 0;        ///< of `backward`, the part that zb-h1 puts off
  double tail = 0;                   ///< after the last backward pass: reductions left, the update
  // Bytes on the device:
  double states = 0;      ///< weights, gradients and what the optimizer keeps
  double workspace = 0;   ///< short-lived, at the peak
  double activation = 0;  ///< of one microbatch in flight, with its input
  double recomputed = 0;  ///< activations of the one layer that is computed again
  double input = 0;       ///< of the first stage, of one microbatch; 0 where they are on the host
  double output = 0;      ///< of a stage, of one microbatch
};
/// Lines in the number of layers. Workspace is one up to the layers that were looked at, and a
/// constant beyond: buckets of gradients are as large as the stage until it fills one.
struct StageLaw {
  LayerTime forward, backward, first_forward, last_backward, weight_gradient, tail, states,
      workspace, activation, recomputed, input, output;
  int most_layers = 1;  ///< looked at
  [[nodiscard]] StageNumbers at(double layers) const;
};

/// The settings that a law depends on: requests with equal keys have stages of one law.
struct StageKey {
  int tp = 1, cp = 1, ep = 1, dp = 1;
  std::string microbatch, zero, recompute;
  auto operator<=>(const StageKey&) const = default;
};
[[nodiscard]] StageKey stage_key(const workloads::Request& request);

/// Layers of the larger of the programs that a law is learnt from.
inline constexpr int most_probed_layers = 4;

/// The law of the stages of `request`, without the output projection. Plays two small programs
/// (one, where stages have few layers) on the mesh without pp, on nodes of `node_ranks`.
[[nodiscard]] StageLaw stage_law(const workloads::Workload& workload,
                                 const workloads::Request& request,
                                 const simulate::Machine& machine, int node_ranks);
/// The numbers that the output projection adds to the last stage; zeros where there is none.
[[nodiscard]] StageNumbers head_numbers(const workloads::Workload& workload,
                                        const workloads::Request& request,
                                        const simulate::Machine& machine, int node_ranks);

/// A pipeline whose passes are known: one op each, with the messages of the real schedule between
/// them. Seconds.
struct CoarsePipeline {
  /// One pass of one microbatch through a virtual stage.
  struct Chunk {
    double forward = 0, backward = 0;
    double first_forward = 0;    ///< more, of the first microbatch
    double last_backward = 0;    ///< more, of the last microbatch
    double weight_gradient = 0;  ///< part of `backward`
  };
  workloads::stack::Pipeline pipeline{};
  std::vector<Chunk> chunks{};  ///< of each virtual stage
  std::vector<double> tail{};   ///< of each stage, after its last pass
  double message = 0;           ///< from stage to stage
  double arrival = 0;           ///< what a stage does with a message before its pass
};

/// The time from step to step, played for all microbatches.
[[nodiscard]] double play(const CoarsePipeline& coarse);

/// The same for a long step: played for `few` and for `more` microbatches, and the difference
/// repeated until there are as many as the pipeline has. Exact where a steady state has begun by
/// `few` and `more` - `few` is a multiple of its period.
[[nodiscard]] double play_extended(const CoarsePipeline& coarse);

/// Estimates of steps that are cheap enough for thousands of requests: of workloads that are
/// composed from the stack, on one machine.
class QuickEstimate {
 public:
  /// The objects that the arguments refer to must outlive it.
  QuickEstimate(const workloads::Workload& workload, const simulate::Machine& machine,
                int node_ranks)
      : workload_(workload), machine_(machine), node_ranks_(node_ranks) {}

  /// True if the workload is one of them.
  [[nodiscard]] static bool knows(const workloads::Workload& workload);

  /// Learns the laws of the stages of all requests; the others are about requests learnt.
  void learn(std::span<const workloads::Request> requests);

  /// Device memory of a rank of the stage that needs most: the sum of what lives at its peak.
  ///
  ///   states + workspace + layers in flight x activation + inputs + outputs + messages + under way
  ///
  /// - states, activation and workspace are lines in the layers of a stage through two programs of
  ///   few layers (stage_law); all their microbatches are in flight at once
  /// - layers in flight: by the schedule (ScheduleRow::in_flight). zb-h1 keeps a microbatch until
  ///   its weight gradients, with other bytes after the input gradients than before (late_bytes):
  ///   Qi et al., arXiv 2401.10241, section 2.3
  /// - inputs: of all microbatches, on the first stage (stack/stage_io.cpp); those in flight are
  ///   among the activations
  /// - outputs: the last layer's, and the logits of microbatches that wait, on the last stage; of
  ///   all in flight where backward passes wait for those of others (gpipe, zb-h1), else of one
  /// - messages: an activation and a gradient, between stages (stack/stage_io.cpp)
  /// - under way: activations of one layer that is computed again, or the backward pass of the
  ///   output projection with its logits, whichever is more; the other waits
  [[nodiscard]] double bytes(const workloads::Request& request) const;
  [[nodiscard]] int largest_stage(const workloads::Request& request) const;  ///< which one that is
  /// Passes of the slowest stage and the bubble of the schedule's formula: messages take no time.
  /// No request takes less, but for communication that overlaps otherwise.
  [[nodiscard]] double bound(const workloads::Request& request) const;
  /// Passes and messages played by the schedule.
  [[nodiscard]] double seconds(const workloads::Request& request) const;

 private:
  /// Between two stages; of all that have the same rows to hand over.
  struct HandOverNumbers {
    double bytes = 0;    ///< of a message
    double arrival = 0;  ///< seconds of what is done with it where it arrives
  };
  using Rows = std::tuple<int, int, int, std::string>;  ///< tp, cp, ep, microbatch
  [[nodiscard]] static Rows rows_of(const workloads::Request& request);
  [[nodiscard]] HandOverNumbers hand_over(const workloads::Request& request) const;
  /// Bytes that a layer keeps for a microbatch in zb-h1 between its input and weight gradients.
  [[nodiscard]] double late_bytes(const workloads::Request& request) const;
  [[nodiscard]] double activation_bytes(const workloads::Request& request,
                                        const workloads::stack::Pipeline& pipeline,
                                        int stage) const;
  [[nodiscard]] CoarsePipeline coarse(const workloads::Request& request) const;
  [[nodiscard]] std::vector<double> bytes_of_stages(const workloads::Request& request) const;
  [[nodiscard]] StageNumbers stage(const workloads::Request& request, int stage) const;

  const workloads::Workload& workload_;
  const simulate::Machine& machine_;
  int node_ranks_;
  std::map<StageKey, StageLaw> laws_;
  std::map<StageKey, StageNumbers> heads_;  ///< of keys without recomputation
  std::map<Rows, HandOverNumbers> hand_overs_;
  std::map<Rows, double> late_bytes_;  ///< of requests with zb-h1
};

}  // namespace isoscale::analysis
