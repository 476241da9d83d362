// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// One rank alone: gradients are those of the loss, 1/2 |Y|^2, and weights stay finite.

#include "executor/host/host_executor.hpp"
#include "runner/measure/step_checksums_and_soak.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/support/options.hpp"
#include "tests/unit/matchers.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::runner {
namespace {

using executor::get;
using executor::put;
using program::Slice;

workloads::Request request_of(bool gated, const workloads::Options& options) {
  workloads::Request base{
      .model = workloads::test_model(
          std::string{"hidden=12 ffn=20 heads=4 head_size=3 layers=2 sequence=5 vocabulary=8"} +
          (gated ? " kv_heads=2 gated=1" : "")),
      .precision = program::Precision::f64,
      .options = options,
      .keep = workloads::Keep::observables};
  base.options.merge(workloads::options_of("microbatch=2 microbatches=2"));
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
  explicit Step(const workloads::Request& request)
      : set_(workloads::find_workload("hybrid").build(request)),
        session_(executor_->prepare(set_, self_)) {}

  [[nodiscard]] const program::RankProgram& program() const { return set_.of(0); }
  executor::Session& session() { return *session_; }

  /// The loss of a step from the weights and inputs that setup writes.
  double play(const std::optional<Nudge>& nudge) {
    session_->play({.section = program::Section::setup});
    if (nudge) {
      auto values = get<double>(*session_, nudge->slice);
      values[nudge->element] += nudge->by;
      put(*session_, nudge->slice, values);
    }
    session_->play({.section = program::Section::step});
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
  executor::SessionPtr session_;
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

void expect_true_gradients(const workloads::Request& request) {
  Step step{request};
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
  EXPECT_EQ(pairs.size(), 2U + 8U + (request.options.contains("vocabulary") ? 1 : 0));
  for (const Pair& pair : pairs) expect_derivative(step, pair.values, pair.gradient, pair.name);
}

TEST(Gradients, AreTrueWithAndWithoutElementwiseWork) {
  for (const bool gated : {false, true}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const char* elementwise : {"on", "off"}) {
        const workloads::Options options{{"elementwise", elementwise}, {"recompute", recompute}};
        SCOPED_TRACE(workloads::text_of(options) + (gated ? " gated" : ""));
        expect_true_gradients(request_of(gated, options));
      }
    }
  }
  expect_true_gradients(request_of(false, workloads::options_of("elementwise=on vocabulary=on")));
}

/// Attention without softmax is cubic in its input: too large weights make it grow for ever.
TEST(FiniteWeights, AfterFiftySteps) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const comm::Communicator world = comm::Communicator::world();
  for (const char* sizes : {"layers=12 hidden=96 ffn=384 heads=16 head_size=6 sequence=32",
                            "layers=8 hidden=88 ffn=352 heads=11 head_size=8 sequence=32",
                            "layers=1 hidden=96 ffn=384 heads=16 head_size=6 sequence=32",
                            "layers=2 hidden=60 ffn=240 heads=4 head_size=15 sequence=32",
                            "layers=48 hidden=64 ffn=256 heads=16 head_size=4 sequence=32",
                            "layers=24 hidden=100 ffn=400 heads=4 head_size=25 sequence=32",
                            "layers=2 hidden=16 ffn=64 heads=4 head_size=4 sequence=768"}) {
    const workloads::Request base{
        .model = workloads::test_model(std::string{sizes} + " vocabulary=64"),
        .options = workloads::options_of("microbatch=1 microbatches=1")};
    program::ProgramSet set = hybrid.build(hybrid.scale(base, {}, workloads::Scaling::strong));
    measure::StepCheck check{set};
    const auto executor = executor::make_host_executor({.streams = executor::HostStreams::folded});
    const auto session = executor->prepare(set, world);
    session->play({.section = program::Section::setup});
    for (int step = 0; step < 50; ++step) {
      session->play({.section = program::Section::step});
    }
    check.weights(*session, world);
    EXPECT_TRUE(check.verdict().ok) << sizes << ": " << check.verdict().detail;
  }
}

}  // namespace
}  // namespace isoscale::runner
