// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "comm/communicator.hpp"
#include "executor/cuda/device.hpp"
#include "tests/cuda/standin.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/unit/matchers.hpp"

/// CUDA executors on stand-ins.
namespace isoscale::standin {

/// A healthy machine whose GPUs are one per rank of the launch.
inline Settings healthy(const comm::Communicator& world, std::uint64_t seed) {
  Settings settings;
  settings.seed = seed + static_cast<std::uint64_t>(world.rank()) * 1'000'003U;
  settings.first_gpu = world.rank();
  return settings;
}

/// Lets algorithms be chosen after few multiplications: the GPU's clock shows these alone from now
/// on, and each takes long.
inline void choose_at_once() {
  machine().settings.matmul_cost = [](int, std::int64_t) -> std::int64_t { return 10'000'000; };
}

/// Tells the stand-in of NCCL which ranks make a communicator: its unique id does not.
class OnPoints final : public executor::Executor {
 public:
  explicit OnPoints(std::unique_ptr<executor::Executor> cuda) : cuda_(std::move(cuda)) {}

  [[nodiscard]] const executor::Description& describe() const override { return cuda_->describe(); }
  [[nodiscard]] executor::SessionPtr prepare(const program::ProgramSet& set,
                                             const comm::Communicator& point,
                                             const executor::SessionOptions& options) override {
    machine().settings.nccl_world = point.get();
    return cuda_->prepare(set, point, options);
  }

 private:
  std::unique_ptr<executor::Executor> cuda_;
};

/// Both kinds of play, for tests of either.
inline const auto both_plays = testing::Values(settings::Graph::off, settings::Graph::on);
inline std::string name_of_play(const testing::TestParamInfo<settings::Graph>& graph) {
  return graph.param == settings::Graph::on ? "graph" : "plain";
}

/// All ranks of this run, each with a GPU of its own.
struct Gpus {
  explicit Gpus(std::uint64_t seed = 1) { machine().reset(healthy(world, seed)); }

  [[nodiscard]] static executor::CudaOptions options(settings::Graph graph = settings::Graph::off) {
    executor::CudaOptions options;
    options.graph = graph;
    return options;
  }
  /// Collective.
  [[nodiscard]] std::unique_ptr<executor::Executor> executor(
      const executor::CudaOptions& chosen) const {
    return executor::make_cuda_executor(chosen, world);
  }
  [[nodiscard]] std::unique_ptr<executor::Executor> executor(
      settings::Graph graph = settings::Graph::off) const {
    return executor(options(graph));
  }

  comm::Communicator world = comm::Communicator::world();
};

/// An all_reduce along dp of the only buffer, in place.
inline executor::Sketch reduction(std::uint64_t count,
                                  program::Space space = program::Space::device) {
  executor::Sketch sketch;
  sketch.all_reduce(sketch.buffer(program::DType::f32, count, space));
  return sketch;
}

/// Tests in which all ranks of this run play on axis dp, as many as there are.
class OnGpus : public testing::Test {
 protected:
  /// Collective.
  [[nodiscard]] executor::SessionPtr prepare(executor::Executor& executor,
                                             const executor::Sketch& sketch,
                                             const executor::SessionOptions& options = {}) const {
    return executor.prepare(sketch.on({.dp = gpus_.world.size()}), gpus_.world, options);
  }
  /// Collective: a step adds up the first `count` elements of the first buffer.
  void expect_sums(executor::Session& session, std::uint64_t count) const {
    const program::Slice all{.buffer = 0, .offset = 0, .count = count};
    executor::put(session, all, std::vector<float>(count, 1));
    session.play({.section = program::Section::step});
    EXPECT_EQ(executor::get<float>(session, all),
              std::vector<float>(count, static_cast<float>(gpus_.world.size())));
  }

  Gpus gpus_;
};

}  // namespace isoscale::standin
