// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/predict/coarse_pipeline.hpp"
#include "analysis/predict/stage_law.hpp"
#include "simulate/machine.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// Estimates of steps that are cheap enough for thousands of requests: of workloads that are
/// composed from the stack, on one machine.
class QuickEstimate {
 public:
  /// What the arguments refer to must outlive it.
  QuickEstimate(const workloads::Workload& workload, const simulate::Machine& machine,
                int node_ranks)
      : workload_(workload), machine_(machine), node_ranks_(node_ranks) {}

  /// Whether the workload is one of them.
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
  /// - inputs: of all microbatches, on the first stage (stack/inputs.cpp); those in flight are
  ///   among the activations
  /// - outputs: the last layer's, and the logits of microbatches that wait, on the last stage; of
  ///   all in flight where backward passes wait for those of others (gpipe, zb-h1), else of one
  /// - messages: an activation and a gradient, between stages (stack/hand_overs.cpp)
  /// - under way: activations of one layer that is computed again, or the backward pass of the
  ///   output projection with its logits, whichever is more; the other waits
  [[nodiscard]] double bytes(const workloads::Request& request) const;
  [[nodiscard]] int largest_stage(const workloads::Request& request) const;  ///< which one that is
  /// Passes of the slowest stage and the bubble of the schedule's formula: messages take no time.
  /// What no request goes below but for what overlaps otherwise.
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
