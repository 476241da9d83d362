// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The gradients of a step are those of its loss, 1/2 |Y|^2: differences of played steps show it.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "executor/host/host.hpp"
#include "tests/executor/sketch.hpp"
#include "workloads/registry.hpp"

namespace isoscale::runner {
namespace {

using executor::get;
using executor::put;
using program::Slice;

struct Way {
  bool gated = false;
  workloads::Options options{};
};

workloads::Request request_of(const Way& way) {
  workloads::Request base{.model = {.name = "small",
                                    .source = "test",
                                    .hidden = 12,
                                    .ffn = 20,
                                    .heads = 4,
                                    .kv_heads = way.gated ? 2 : 4,
                                    .head_size = 3,
                                    .gated_mlp = way.gated,
                                    .layers = 2,
                                    .sequence = 5,
                                    .vocabulary = 8},
                          .precision = program::Precision::f64,
                          .options = way.options,
                          .keep = workloads::Keep::observables};
  base.options["microbatch"] = "2";
  base.options["microbatches"] = "2";
  return workloads::find_workload("hybrid").scale(base, {}, workloads::Scaling::strong);
}

/// One element that is moved before a step.
struct Nudge {
  Slice slice;
  std::uint64_t element = 0;
  double by = 0;
};

class Step {
 public:
  explicit Step(const Way& way)
      : set_(workloads::find_workload("hybrid").build(request_of(way))),
        session_(executor_->prepare(set_, self_)) {}

  [[nodiscard]] const program::RankProgram& program() const { return set_.of(0); }
  executor::Session& session() { return *session_; }

  /// The loss of a step from the weights and inputs that setup writes.
  double play(const std::optional<Nudge>& nudge) {
    session_->play(program::Section::setup, executor::Trace::off);
    if (nudge) {
      auto values = get<double>(*session_, nudge->slice);
      values[nudge->element] += nudge->by;
      put(*session_, nudge->slice, values);
    }
    session_->play(program::Section::step, executor::Trace::off);
    double loss = 0;
    for (const program::Observable& observable : program().observables) {
      if (observable.name != "output" && observable.name != "logits") continue;
      for (const double y : get<double>(*session_, observable.slice)) loss += y * y / 2;
    }
    return loss;
  }

 private:
  comm::Communicator self_ = comm::Communicator::world().split(0, 0);
  std::unique_ptr<executor::Executor> executor_ = executor::make_host_executor({});
  program::ProgramSet set_;
  std::unique_ptr<executor::Session> session_;
};

/// (loss(x + e) - loss(x - e)) / 2e of a few elements of `values` against `gradient`.
void expect_derivative(Step& step, const Slice& values, const std::vector<double>& gradient,
                       const std::string& name) {
  constexpr double distance = 1e-5;
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  EXPECT_GT(largest, 0) << name;
  for (const std::uint64_t element : {values.count / 7, values.count / 2, values.count - 1}) {
    const double above = step.play(Nudge{values, element, distance});
    const double below = step.play(Nudge{values, element, -distance});
    EXPECT_NEAR(gradient[element], (above - below) / (2 * distance), 1e-6 * largest)
        << name << ", element " << element;
  }
}

void expect_true_gradients(const Way& way) {
  Step step{way};
  EXPECT_GT(step.play(std::nullopt), 0);
  struct Pair {
    std::string name;
    Slice values;
    std::vector<double> gradient;
  };
  std::vector<Pair> pairs;
  std::size_t microbatch = 0;
  std::vector<Slice> inputs;
  for (program::BufferId id = 0; id < step.program().buffers.size(); ++id) {
    const program::Buffer& buffer = step.program().buffers[id];
    if (buffer.role == program::Role::input)
      inputs.push_back({.buffer = id, .count = buffer.count});
  }
  for (const program::Observable& observable : step.program().observables) {
    constexpr std::string_view suffix = ".gradient";
    if (!observable.name.ends_with(suffix)) continue;
    const auto gradient = get<double>(step.session(), observable.slice);
    if (observable.name == "input.gradient") {
      pairs.push_back({observable.name, inputs.at(microbatch++), gradient});
      continue;
    }
    const std::string tensor = observable.name.substr(0, observable.name.size() - suffix.size());
    for (const program::Observable& other : step.program().observables) {
      if (other.name == tensor + ".weight") pairs.push_back({tensor, other.slice, gradient});
    }
  }
  EXPECT_EQ(microbatch, 2U);
  EXPECT_EQ(pairs.size(), 2U + 8U + (way.options.contains("vocabulary") ? 1 : 0));
  for (const Pair& pair : pairs) expect_derivative(step, pair.values, pair.gradient, pair.name);
}

TEST(Gradients, AreTrueWithElementwiseWork) {
  for (const bool gated : {false, true}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      SCOPED_TRACE(std::string{recompute} + (gated ? " gated" : ""));
      expect_true_gradients(
          {.gated = gated, .options = {{"elementwise", "on"}, {"recompute", recompute}}});
    }
  }
  expect_true_gradients({.options = {{"elementwise", "on"}, {"vocabulary", "on"}}});
}

TEST(Gradients, AreTrueWithoutIt) {
  for (const bool gated : {false, true}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      SCOPED_TRACE(std::string{recompute} + (gated ? " gated" : ""));
      expect_true_gradients({.gated = gated, .options = {{"recompute", recompute}}});
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
