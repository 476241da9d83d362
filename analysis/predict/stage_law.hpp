// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <string>

#include "simulate/machine.hpp"
#include "workloads/workload.hpp"

/// What a pipeline stage takes, as a law of its number of layers: all layers of a stage are alike,
/// so a program of few of them tells what one more costs.
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

/// What a law depends on: requests with equal keys have stages of one law.
struct StageKey {
  int tp = 1, cp = 1, ep = 1, dp = 1;
  std::string microbatch, zero, recompute;
  auto operator<=>(const StageKey&) const = default;
};
[[nodiscard]] StageKey stage_key(const workloads::Request& request);

/// How many layers the larger of the programs has that a law is learnt from.
inline constexpr int most_probed_layers = 4;

/// Of the stages of `request`, without the output projection. Plays two small programs (one, where
/// stages have few layers) on the mesh without pp, on nodes of `node_ranks`.
[[nodiscard]] StageLaw stage_law(const workloads::Workload& workload,
                                 const workloads::Request& request,
                                 const simulate::Machine& machine, int node_ranks);
/// What the output projection adds to the last stage; zeros where there is none.
[[nodiscard]] StageNumbers head_numbers(const workloads::Workload& workload,
                                        const workloads::Request& request,
                                        const simulate::Machine& machine, int node_ranks);

}  // namespace isoscale::analysis
