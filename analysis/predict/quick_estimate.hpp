// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <span>
#include <string>

#include "analysis/predict/question.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {
struct Pipeline;
}

/// Estimates step times and memory quickly. The layers of a stage are equal, so a stage's time is
/// linear in their number, and two simulations with few layers give the line (stage_time_law.cpp).
/// The time of a pipeline of such stages follows from a formula (quick_estimate.cpp).
namespace isoscale::analysis::predict {

/// The seconds that a rank of a pipeline stage takes for the passes of one microbatch.
struct StagePasses {
  /// The times of passes that are neither the first nor the last ones of a step.
  double forward = 0, backward = 0;
  double weight_gradient = 0;  ///< part of `backward` that the schedule zb-h1 postpones
};

/// The seconds and device memory of one rank of a stage. They do not include the output projection,
/// which only the last stage has; head_numbers() returns what it adds.
struct StageNumbers : StagePasses {
  /// The seconds of a step that are not in the passes above: the additional time of its first and
  /// its last pass, reductions that remain after them, and the optimizer's update.
  double ends = 0;
  // The members below are bytes on the device.
  double states = 0;      ///< weights, gradients and the optimizer's state
  double workspace = 0;   ///< short-lived buffers at their peak
  double activation = 0;  ///< activations of one microbatch in all layers, and its input
  double recomputed = 0;  ///< activations of the layer that is being recomputed
  /// Bytes of the first stage's input for one microbatch; 0 if inputs are in host memory.
  double input = 0;
  double output = 0;  ///< output of a stage for one microbatch

  /// Adds the numbers of the output projection. Its activations and workspace are not added, since
  /// they do not exist at the same time as those of the layers.
  void add_head(const StageNumbers& head);
};
/// The numbers of a stage as linear functions of its layers: fixed + each * layers. The workspace
/// is constant beyond `most_layers`, because gradient buckets grow with the stage only until one is
/// full.
struct StageLaw {
  StageNumbers fixed, each;
  int most_layers = 1;  ///< largest number of layers that was simulated
  [[nodiscard]] StageNumbers at(double layers) const;
};

/// The number of layers of the larger of the two programs that are simulated to fit a StageLaw. If
/// the model has fewer layers, the number is that of the model.
inline constexpr int most_probed_layers = 4;

/// Returns the seconds and bytes of a stage, without the output projection, as linear functions of
/// its layers. They are fitted to simulations of two small programs (one if the model has a single
/// layer) on the mesh of `request` without pp.
[[nodiscard]] StageLaw stage_law(const Question& question, const workloads::Request& request);
/// Returns the numbers that the output projection adds to the last stage; zeros if there is none.
[[nodiscard]] StageNumbers head_numbers(const Question& question,
                                        const workloads::Request& request);

/// Returns the seconds from one step of a pipeline to the next, without StageNumbers::ends. `stage`
/// has the times of one microbatch on each stage but the last, `last` those on the last stage,
/// which should be at least as long, and `message` is the time of a message between stages. With m
/// microbatches the result is
///
///   idle time (stack::idle_time) + m x (forward + backward) + n x message
///
/// for the last stage or for another one, whichever takes longer. Here n is the number of messages
/// that no pass hides. It follows from the order in which a stage posts its messages
/// (stack::steps_of): in 1f1b each round waits for an exchange with the next stage and for one with
/// the previous stage; in zb-h1 weight gradients hide one of the two. Two more terms of zb-h1 count
/// weight gradients of the last stage that run beside passes of other stages, and those that fill
/// no bubble. The formula is exact if there are at least two microbatches per stage.
[[nodiscard]] double pipeline_seconds(const workloads::stack::Pipeline& pipeline,
                                      const StagePasses& stage, const StagePasses& last,
                                      double message);

/// The device memory of a rank of one stage.
struct StageBytes {
  int stage = 0;
  double bytes = 0;
};

/// Estimates steps of the question's workload on its machine, fast enough for thousands of
/// requests. The workload must be a training one (Workload::is_training), built from the stack of
/// transformer layers.
class QuickEstimate {
 public:
  /// Keeps a reference to the question, which must outlive this object.
  explicit QuickEstimate(const Question& question) : question_(question) {}

  /// Computes the stage laws and other numbers that these requests need. The functions below accept
  /// only requests for which this was done.
  void learn(std::span<const workloads::Request> requests);

  /// Returns the stage whose ranks need most device memory, and the bytes. These are the sum of
  /// what is allocated at the peak:
  ///
  ///   states + workspace + activations in flight + inputs + outputs + messages + under way
  ///
  /// - states, workspace, and the activations of one microbatch: linear in the layers of a stage,
  ///   by the StageLaw; the states also count the embedding on the first stage and the output
  ///   projection on the last one
  /// - in flight: the number of microbatches by the schedule (stack::most_in_flight). In zb-h1 a
  ///   microbatch is in flight until its weight gradients are computed (Qi et al., arXiv
  ///   2401.10241, section 2.3); after its input gradients it takes other bytes than before
  ///   (late_bytes)
  /// - inputs: on the first stage, of all microbatches that are not in flight, since the
  ///   activations include the others (microbatch_inputs.cpp); a trainer keeps none
  /// - outputs: on the last stage, for each microbatch between its forward and backward pass, the
  ///   output of the last layer and, except for one microbatch, the logits. With gpipe and zb-h1
  ///   these are all microbatches in flight, else a single one
  /// - messages: one activation and one gradient that go between stages (stack/stage_program.cpp)
  /// - under way: the larger of two parts that do not exist at the same time, which are the
  ///   activations of one layer that is recomputed, and the backward pass of the output projection
  ///   with its logits
  [[nodiscard]] StageBytes largest_stage(const workloads::Request& request) const;
  /// Returns the seconds of a step, from pipeline_seconds() and StageNumbers::ends.
  [[nodiscard]] double seconds(const workloads::Request& request) const;

 private:
  /// A message with activations or gradients between neighbouring stages.
  struct Message {
    double seconds = 0;
    double arrival = 0;  ///< seconds of the receiver's all-gather of a scattered message
  };
  [[nodiscard]] Message message(const workloads::Request& request) const;
  /// Returns the bytes that a layer holds for one microbatch between its input and weight gradients
  /// in the schedule zb-h1.
  [[nodiscard]] double late_bytes(const workloads::Request& request) const;

  const Question& question_;
  // The keys are texts with the settings of a request that the value depends on.
  std::map<std::string, StageLaw> laws_;
  std::map<std::string, StageNumbers> heads_;
  std::map<std::string, Message> messages_;   ///< for requests with several stages
  std::map<std::string, double> late_bytes_;  ///< for requests with schedule zb-h1
};

}  // namespace isoscale::analysis::predict
