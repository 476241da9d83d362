// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// These tests cover what prevents playing on GPUs, and what happens when it fails on the way.

#include "executor/cuda/errors_and_handles.hpp"
#include "tests/cuda/devices.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::standin {
namespace {

using executor::message_of;
using executor::Sketch;
using program::Section;
using program::Slice;

class Failures : public OnGpus {
 protected:
  /// Collective: what is said where preparing or playing fails.
  std::string problem(executor::Executor& executor, const Sketch& sketch) const {
    return message_of([&] { return prepare(executor, sketch); });
  }
  static std::string problem(executor::Session& session) {
    return message_of([&] { return session.play({.section = Section::step}); });
  }

  /// Collective: the machine is well again.
  void expect_plays(executor::Executor& executor) {
    expect_sums(*prepare(executor, reduction(64)), 64);
  }
};

TEST_F(Failures, OutOfMemoryNamesNeedAndFreeAndTheNextSessionPlays) {
  machine().settings.gpu_memory = std::size_t{8} << 20U;
  const auto executor = gpus_.executor();
  const Alive before = machine().alive;
  const std::size_t pieces = machine().memory.count();
  EXPECT_THAT(problem(*executor, reduction(4U << 20U)),
              AllOf(HasSubstr("needs 16.0 MiB"), HasSubstr("8.00 MiB of 8.00 MiB are free")));
  EXPECT_EQ(machine().alive, before);
  EXPECT_EQ(machine().memory.count(), pieces);
  expect_plays(*executor);
}

/// NCCL takes memory when it connects what a large call uses: that fails the point, not the run.
TEST_F(Failures, OutOfMemoryForAConnectionFailsThePointOnAllRanks) {
  executor::CudaOptions options = Gpus::options();
  options.communicator_timeout = units::Seconds{0.2};  // of ranks whose peer has given up
  const auto executor = gpus_.executor(options);
  for (const int failing : {-1, 0}) {  // all ranks, or one
    if (failing < 0 || failing == gpus_.world.rank()) machine().settings.most_connected = 1024;
    EXPECT_NO_THROW(std::ignore = prepare(*executor, reduction(64)));
    EXPECT_THROW(std::ignore = prepare(*executor, reduction(1024)), base::AgreedError);
    EXPECT_EQ(machine().alive.communicators, 0);
    machine().settings.most_connected = healthy(gpus_.world, 1).most_connected;
    expect_plays(*executor);
  }
}

/// The largest of collectives and the largest of messages connect, and no other.
TEST_F(Failures, ConnectionsAreMadeAtTheLargestSize) {
  Sketch sketch;
  const Slice all = sketch.buffer<float>(1024);
  for (const std::uint64_t count : {64U, 1024U, 256U}) {
    Slice part = all;
    part.count = count;
    sketch.all_reduce(part);
  }
  const auto executor = gpus_.executor();
  const auto expect_connects_at = [&](std::uint64_t bytes) {
    machine().settings.most_connected = bytes;
    EXPECT_NO_THROW(std::ignore = prepare(*executor, sketch));
    machine().settings.most_connected = bytes - 1;
    EXPECT_THROW(std::ignore = prepare(*executor, sketch), base::Error);
  };
  machine().all_reduces = 0;
  expect_connects_at(1024 * sizeof(float));
  EXPECT_EQ(machine().all_reduces, 2);  // one each, of which the second is refused

  const Slice from = sketch.buffer<float>(4096), to = sketch.buffer<float>(4096);
  for (const std::uint64_t count : {64U, 4096U, 256U}) {
    Slice sent = from, received = to;
    sent.count = received.count = count;
    using program::Direction;
    sketch.emit(program::Exchange{{{Direction::send, mesh::Axis::dp, 1, sent},
                                   {Direction::receive, mesh::Axis::dp, -1, received}}});
  }
  expect_connects_at(4096 * sizeof(float));
}

TEST_F(Failures, LaunchOrderOfNcclIsLeftToTheUser) {
  ::unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  static_cast<void>(gpus_.executor());
  EXPECT_EQ(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), nullptr);
}

TEST_F(Failures, OutOfPinnedMemoryOnOneRankFailsAll) {
  if (gpus_.world.rank() == gpus_.world.size() - 1) machine().settings.pinned_memory = 100;
  const auto executor = gpus_.executor();
  Sketch sketch = reduction(64);
  static_cast<void>(sketch.buffer(program::DType::f32, 100, program::Space::pinned));
  EXPECT_THAT(problem(*executor, sketch),
              AllOf(HasSubstr(fmt::format("rank {}", gpus_.world.size() - 1)),
                    HasSubstr("pinned host memory")));
  expect_plays(*executor);
}

/// After a fault the GPU runs nothing more, so that no later point could be measured.
TEST_F(Failures, AFaultDuringPreparationIsNotAFailedPoint) {
  const auto executor = gpus_.executor();
  const comm::Communicator alone = gpus_.world.split(gpus_.world.rank(), 0);
  machine().settings.faulty_matmul = machine().matmuls;
  const auto set = runner::small_request_on("dp", {}).second;
  try {
    static_cast<void>(executor->prepare(set, alone));
    FAIL();
  } catch (const base::AgreedError& error) {
    FAIL() << error.what();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("illegal"));
  }
}

/// Whatever NCCL finds out in the background ends the play, and names the communicator.
TEST_F(Failures, EveryErrorOfTheBackgroundEndsThePlay) {
  Sketch sketch = reduction(64);
  sketch.all_reduce({.buffer = 0, .offset = 0, .count = 64}, mesh::Axis::dp, 1);
  for (const ncclResult_t result : {ncclUnhandledCudaError, ncclSystemError, ncclInternalError,
                                    ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError}) {
    for (const auto graph : {settings::Graph::off, settings::Graph::on}) {
      const Gpus gpus;
      const auto executor = gpus.executor(graph);
      machine().settings.failing_communicator = "dp on stream1";
      machine().settings.failing_result = result;
      // The first call is made when the session is made, and passes.
      machine().settings.failing_after = 1;
      auto session = prepare(*executor, sketch);
      EXPECT_THAT(problem(*session), AllOf(HasSubstr("dp on stream1 failed in the background"),
                                           HasSubstr(ncclGetErrorString(result))))
          << result;
      EXPECT_THAT(problem(*session), HasSubstr("cannot play again"));
      session.reset();
      EXPECT_EQ(machine().alive.communicators, 0);
      machine().settings.failing_communicator.clear();
      expect_plays(*executor);
    }
  }
}

TEST_F(Failures, ACommunicatorThatIsNeverReadyEndsAtTheTimeout) {
  for (const char* name : {"world", "dp on compute"}) {
    machine().settings.endless_communicator = name;
    executor::CudaOptions options = Gpus::options();
    options.communicator_timeout = units::Seconds{0.05};
    const auto executor = gpus_.executor(options);
    EXPECT_THAT(problem(*executor, reduction(64)),
                HasSubstr(fmt::format("{} was not ready after 50 ms", name)));
    machine().settings.endless_communicator.clear();
    expect_plays(*executor);
  }
}

/// However long they take together, each that is ready is progress.
TEST_F(Failures, EachCommunicatorThatIsReadyCounts) {
  const auto executor = gpus_.executor();
  comm::Communicator point = gpus_.world.duplicate();
  const auto calls = std::make_shared<comm::CallCount>();
  point.count_calls(calls);
  const auto session = executor->prepare(reduction(64).on({.dp = point.size()}), point);
  EXPECT_EQ(calls->others, 3);  // the world, that of dp, and the first call on it
}

TEST_F(Failures, AnErrorThatWasToldIsNotFoundAgain) {
  EXPECT_THROW(executor::cuda::check(cudaSetDevice(machine().settings.gpus)),
               executor::cuda::CudaError);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Failures, WhyThereIsNoDevice) {
  EXPECT_EQ(executor::cuda::device_problem(), "");
  const Settings well = machine().settings;
  const auto expect_problem = [&](const char* why, const auto& harm) {
    machine().settings = well;
    harm(machine().settings);
    EXPECT_THAT(executor::cuda::device_problem(), HasSubstr(why));
  };
  expect_problem("no NVIDIA driver", [](Settings& of) { of.driver = 0; });
  expect_problem("up to 11.4", [](Settings& of) { of.driver = 11040; });
  expect_problem("NCCL 2.17.3 is too old", [](Settings& of) { of.nccl = 21703; });
  expect_problem("does not answer",
                 [](Settings& of) { of.count_status = cudaErrorSystemDriverMismatch; });
  expect_problem("no GPU", [](Settings& of) { of.gpus = 0; });
  EXPECT_EQ(machine().last, cudaSuccess);  // no call after it finds an old error
  ::setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  EXPECT_THAT(executor::cuda::device_problem(), HasSubstr("CUDA_VISIBLE_DEVICES is '-1'"));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(Failures, SharedGpusAreRefusedUnlessAskedFor) {
  ::unsetenv("NCCL_HOSTID");
  machine().settings.first_gpu = 0;
  EXPECT_THAT(message_of([&] { return gpus_.executor(); }), HasSubstr("--share-gpu"));
  EXPECT_EQ(std::getenv("NCCL_HOSTID"), nullptr);

  executor::CudaOptions options = Gpus::options();
  options.share = settings::ShareGpu::yes;
  const auto shared = gpus_.executor(options);
  EXPECT_TRUE(shared->describe().shared_device);
  EXPECT_EQ(shared->describe().memory_pool, shared->describe().facts_text.at("gpu_uuid"));
  const char* const id = std::getenv("NCCL_HOSTID");
  const char* const fabric = std::getenv("NCCL_MNNVL_ENABLE");
  EXPECT_STREQ(fabric, "0");
  EXPECT_THAT(id == nullptr ? "" : id, EndsWith(fmt::format("-{}", gpus_.world.rank())));
  expect_plays(*shared);
  ::unsetenv("NCCL_HOSTID");
}

TEST_F(Failures, EachRankTakesItsOwnOfTheGpusThatAllSee) {
  machine().settings.first_gpu = 0;
  machine().settings.gpus = gpus_.world.size();
  const auto executor = gpus_.executor();
  EXPECT_FALSE(executor->describe().shared_device);
  EXPECT_THAT(executor->describe().facts_text.at("gpu_uuid"),
              EndsWith(fmt::format("{:02x}", gpus_.world.rank())));
  EXPECT_EQ(std::getenv("NCCL_HOSTID"), nullptr);
}

}  // namespace
}  // namespace isoscale::standin
