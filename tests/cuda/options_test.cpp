// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Sessions that differ from the usual: what NCCL is told to use, memory that it is told of, managed
// memory, and what of all that is left behind.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "tests/cuda/devices.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::standin {
namespace {

using executor::Registration;
using executor::SessionOptions;
using executor::Sketch;
using executor::Trace;
using executor::Unsupported;
using program::Advice;
using program::Collective;
using program::CollectiveKind;
using program::Section;
using program::Slice;
using program::Space;
using testing::HasSubstr;

constexpr std::uint64_t count = 4'096;

class Options : public testing::Test {
 protected:
  [[nodiscard]] mesh::Shape mesh() const { return {.dp = gpus_.world.size()}; }

  /// An all_reduce of what lies in `space`, in place.
  static Sketch reduction(Space space = Space::device) {
    Sketch sketch;
    sketch.all_reduce(sketch.buffer(program::DType::f32, count, space));
    return sketch;
  }

  std::unique_ptr<executor::Session> prepare(const Sketch& sketch, const SessionOptions& options) {
    return executor_->prepare(sketch.on(mesh()), gpus_.world, options);
  }

  void expect_plays(const Sketch& sketch, const SessionOptions& options) {
    const auto session = prepare(sketch, options);
    expect_sums(*session);
  }

  void expect_sums(executor::Session& session) {
    const Slice all{.buffer = 0, .offset = 0, .count = count};
    executor::put(session, all, std::vector<float>(count, 1));
    session.play(Section::step, Trace::off);
    EXPECT_EQ(executor::get<float>(session, all),
              std::vector<float>(count, static_cast<float>(gpus_.world.size())));
  }

  /// Why the executor cannot; "" when it can.
  std::string unsupported(const Sketch& sketch, const SessionOptions& options) {
    return executor::message_of<Unsupported>([&] { return prepare(sketch, options); });
  }

  /// Communicators that were made on this rank for a session on some ranks.
  int made_for(const Sketch& sketch, const comm::Communicator& point,
               const SessionOptions& options = {}) {
    const int before = machine().communicators_made;
    machine().settings.nccl_world = point.get();
    const auto session = executor_->prepare(sketch.on({.dp = point.size()}), point, options);
    session->play(Section::step, Trace::off);
    machine().settings.nccl_world = MPI_COMM_WORLD;
    return machine().communicators_made - before;
  }

  void expect_nothing_left() {
    executor_.reset();  // it keeps communicators
    executor_ = gpus_.executor();
    EXPECT_EQ(machine().alive.communicators, 0);
    EXPECT_EQ(machine().alive.registrations, 0);
    EXPECT_EQ(machine().memory.count(), pieces_);
    EXPECT_EQ(machine().memory.damaged(), 0);
  }

  Gpus gpus_;
  std::unique_ptr<executor::Executor> executor_ = gpus_.executor();
  std::size_t pieces_ = machine().memory.count();
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "(unset)" : value;
}

TEST_F(Options, TellNcclWhatToUseAndPutBackWhatTheUserHasSet) {
  ::unsetenv("NCCL_ALGO");
  ::setenv("NCCL_PROTO", "LL,Simple", 1);
  machine().choices.clear();
  expect_plays(reduction(), {.collective_algorithm = "tree", .collective_protocol = "ll128"});
  EXPECT_THAT(machine().choices, testing::ElementsAre("AllReduce:Tree|LL128"));
  EXPECT_EQ(variable("NCCL_ALGO"), "(unset)");
  EXPECT_EQ(variable("NCCL_PROTO"), "LL,Simple");

  machine().choices.clear();
  expect_plays(reduction(), {.collective_algorithm = "ring"});
  EXPECT_THAT(machine().choices,
              testing::ElementsAre("AllReduce:Ring;ReduceScatter:Ring;AllGather:Ring;"
                                   "Broadcast:Ring;Reduce:Ring|LL,Simple"));
  ::unsetenv("NCCL_PROTO");
  machine().choices.clear();
  expect_plays(reduction(), {});
  EXPECT_THAT(machine().choices, testing::ElementsAre("|"));
  expect_nothing_left();
}

TEST_F(Options, CommunicatorsAreKeptForTheNextSessionOnTheSameRanksAndAxes) {
  const comm::Communicator& all = gpus_.world;
  Sketch larger = reduction();
  larger.all_reduce(larger.buffer<float>(8), mesh::Axis::dp, 1);
  // One of all ranks comes first; it goes when those of the axes have been split from it.
  EXPECT_EQ(made_for(reduction(), all), 2);
  EXPECT_EQ(machine().alive.communicators, 1);
  EXPECT_EQ(made_for(reduction(), all), 0);
  expect_plays(reduction(), {});  // and the sums are right
  EXPECT_EQ(made_for(larger, all), 3);
  EXPECT_EQ(machine().alive.communicators, 2);
  EXPECT_EQ(made_for(reduction(), all), 0);
  EXPECT_EQ(machine().alive.communicators, 1) << "what is not needed takes no memory";
  EXPECT_EQ(made_for(reduction(), all, {.collective_algorithm = "ring"}), 2);
  EXPECT_EQ(made_for(reduction(), all), 0);
  const auto session = prepare(reduction(), {});
  for (const executor::CommunicatorFacts& facts : session->facts().communicators) {
    EXPECT_EQ(facts.creation, units::Seconds{}) << facts.name;
  }
}

TEST_F(Options, KeptCommunicatorsOfOtherRanksOrThatFailedAreMadeAnew) {
  const comm::Communicator& all = gpus_.world;
  EXPECT_EQ(made_for(reduction(), all), 2);
  // Others than the first rank still have theirs when all ranks play again.
  if (const comm::Communicator first = all.split(all.rank() == 0 ? 0 : -1, 0)) {
    EXPECT_EQ(made_for(reduction(), first), 2);
  }
  EXPECT_EQ(made_for(reduction(), all), 2);
  EXPECT_EQ(made_for(reduction(), all), 0);
  prepare(reduction(), {})->abandon();
  EXPECT_EQ(machine().alive.communicators, 0);
  EXPECT_EQ(made_for(reduction(), all), 2);
  expect_plays(reduction(), {});
  executor_.reset();
  EXPECT_EQ(machine().alive.communicators, 0);
}

TEST_F(Options, FaultsOfOneRankAreUnsupportedOnAll) {
  const bool is_slow = gpus_.world.rank() == 1;
  const std::string why =
      unsupported(reduction(), {.faults = {.gemm_factor = is_slow ? 2.0 : 1.0}});
  EXPECT_THAT(why, HasSubstr("rank 1: the cuda device cannot be slowed down"));
  expect_nothing_left();
}

TEST_F(Options, WhatNcclRefusesIsUnsupportedWithItsWords) {
  machine().settings.refused_algorithm = "NVLS";
  const std::string why = unsupported(reduction(), {.collective_algorithm = "nvls"});
  EXPECT_THAT(why, HasSubstr("with algorithm nvls, protocol of NCCL's choice"));
  EXPECT_THAT(why, HasSubstr("said by the stand-in"));
  EXPECT_EQ(variable("NCCL_ALGO"), "(unset)");
  expect_nothing_left();
  expect_plays(reduction(), {.collective_algorithm = "ring"});
  expect_nothing_left();
}

TEST_F(Options, ATypeThatTheAlgorithmDoesNotHaveIsFoundBeforeItIsPlayed) {
  machine().settings.refused_algorithm = "NVLS";
  machine().settings.refused_type = program::DType::i8;
  Sketch bytes;
  bytes.all_reduce(bytes.buffer<std::int8_t>(64));
  EXPECT_THAT(unsupported(bytes, {.collective_algorithm = "nvls"}), HasSubstr("nvls"));
  expect_plays(reduction(), {.collective_algorithm = "nvls"});
  expect_nothing_left();
}

/// PAT does no all_reduce: its first call must be one of the program's.
TEST_F(Options, FirstCallsAreThoseThatTheAlgorithmDoes) {
  Sketch sketch;
  const auto ranks = static_cast<std::uint64_t>(gpus_.world.size());
  const Slice mine = sketch.buffer<float>(8), all = sketch.buffer<float>(8 * ranks);
  sketch.emit(Collective{
      .kind = CollectiveKind::all_gather, .axes = mesh::Axis::dp, .send = mine, .receive = all});
  machine().choices.clear();
  machine().all_reduces = 0;
  const auto session = prepare(sketch, {.collective_algorithm = "pat"});
  EXPECT_THAT(machine().choices, testing::ElementsAre("ReduceScatter:PAT;AllGather:PAT|"));
  EXPECT_EQ(machine().all_reduces, 0);
}

TEST_F(Options, WhatNcclWouldSilentlyIgnoreIsUnsupported) {
  const std::vector<std::pair<SessionOptions, const char*>> ignored{
      {{.collective_algorithm = "hypercube"}, "no algorithm 'hypercube'"},
      {{.collective_protocol = "tcp"}, "no protocol 'tcp'"},
      {{.collective_algorithm = "pat"}, "no all_reduce by pat"},
      {{.collective_algorithm = "nvls", .collective_protocol = "ll"}, "no nvls with protocol ll"}};
  for (const auto& [options, why] : ignored) {
    EXPECT_THAT(unsupported(reduction(), options), HasSubstr(why));
  }
  expect_nothing_left();
}

TEST_F(Options, EstimatesAreNcclsAndStartNothing) {
  const auto session = prepare(reduction(), {});
  const std::size_t under_way = machine().queue.size();
  const auto time = session->estimate(Section::step);
  ASSERT_TRUE(time);
  EXPECT_NEAR(time->value(), (10 + count * 4 * 1e-3) * 1e-6, 1e-9);
  EXPECT_EQ(machine().queue.size(), under_way);
  expect_sums(*session);

  Sketch messages;
  const Slice a = messages.buffer<float>(8), b = messages.buffer<float>(8);
  const auto transfer = [](program::Direction direction, int offset, const Slice& slice) {
    return program::Transfer{
        .direction = direction, .axis = mesh::Axis::dp, .offset = offset, .slice = slice};
  };
  messages.emit(program::Exchange{
      {transfer(program::Direction::send, 1, a), transfer(program::Direction::receive, -1, b)}});
  EXPECT_FALSE(prepare(messages, {})->estimate(Section::step));
  Sketch nothing;
  nothing.emit(program::Fill{.dst = nothing.buffer<float>(8), .shard = {}});
  EXPECT_FALSE(prepare(nothing, {})->estimate(Section::step));
}

TEST_F(Options, AnNcclThatIsOlderThanTheHeadersOffersWhatItHas) {
  machine().settings.nccl = 21'805;
  EXPECT_THAT(unsupported(reduction(), {.registration = Registration::local}), HasSubstr("2.19"));
  EXPECT_THAT(unsupported(reduction(Space::symmetric), {}), HasSubstr("2.27"));
  EXPECT_FALSE(prepare(reduction(), {})->estimate(Section::step));
  expect_plays(reduction(), {});
  {
    const auto session = prepare(reduction(), {.collective_algorithm = "ring"});
    EXPECT_THAT(machine().choices, testing::Contains("Ring|"));  // the setting of all before 2.24
  }
  machine().settings.nccl = 22'203;
  EXPECT_TRUE(prepare(reduction(), {})->estimate(Section::step));
  expect_plays(reduction(), {.registration = Registration::local});
  EXPECT_THAT(unsupported(reduction(Space::symmetric), {}), HasSubstr("2.27"));
  machine().settings.nccl = 22'703;
  expect_plays(reduction(Space::symmetric), {});
  expect_nothing_left();
}

TEST_F(Options, SymmetricBuffersLieInWindowsOfTheCommunicatorsThatUseThem) {
  Sketch sketch = reduction(Space::symmetric);
  sketch.all_reduce(sketch.buffer<float>(8), mesh::Axis::dp, 1);
  {
    const auto session = prepare(sketch, {});
    EXPECT_EQ(machine().alive.registrations, 1) << "stream 1 uses no symmetric buffer";
    EXPECT_EQ(machine().symmetric_calls, 1);  // the first call, which connects
    expect_sums(*session);
    EXPECT_EQ(machine().symmetric_calls, 2);
  }
  expect_nothing_left();
  machine().settings.nccl = 22'902;
  expect_plays(sketch, {});
  machine().settings.makes_windows = false;
  for (const int nccl : {22'703, 22'809, 22'902, 23'007}) {
    machine().settings.nccl = nccl;
    EXPECT_THAT(unsupported(sketch, {}), HasSubstr("no symmetric windows on this machine"));
    expect_nothing_left();
  }
}

TEST_F(Options, ARegisteredArenaIsKnownToEveryCommunicator) {
  Sketch sketch = reduction();
  sketch.all_reduce(sketch.buffer<float>(8), mesh::Axis::dp, 1);
  {
    const auto session = prepare(sketch, {.registration = Registration::local});
    EXPECT_EQ(machine().alive.registrations, 2);
    expect_sums(*session);
    EXPECT_EQ(machine().registered_calls, 4);  // two of them connect
  }
  expect_nothing_left();
}

TEST_F(Options, ASessionThatFailedLeavesItsMemoryToItsKernels) {
  machine().settings.failing_communicator = "dp on compute";
  machine().settings.failing_after = 1;
  auto session = prepare(reduction(Space::symmetric), {});
  EXPECT_THROW(session->play(Section::step, Trace::off), base::Error);
  session.reset();
  EXPECT_EQ(machine().alive.communicators, 0);
  EXPECT_GT(machine().memory.in_use(Kind::device), 0U);
}

TEST_F(Options, ManySessionsLeaveNothingBehind) {
  constexpr int sessions = 50;
  for (int i = 0; i < sessions; ++i) {
    expect_plays(reduction(i % 2 == 0 ? Space::device : Space::symmetric),
                 {.collective_algorithm = i % 3 == 0 ? "ring" : "",
                  .registration = i % 5 == 0 ? Registration::local : Registration::none});
    expect_nothing_left();
  }
}

TEST_F(Options, HostMemoryOnANodeThatIsThereOrNot) {
  expect_plays(reduction(), {.numa_node = 0});
  EXPECT_THAT(unsupported(reduction(), {.numa_node = 999}), HasSubstr("no NUMA node 999"));
  expect_nothing_left();
}

/// All advice there is, about the first half of a managed buffer.
Sketch all_advice() {
  Sketch sketch;
  const Slice managed = sketch.buffer(program::DType::f32, 64, Space::managed);
  const Slice half{.buffer = managed.buffer, .offset = 0, .count = 32};
  for (const Advice advice :
       {Advice::prefer_host, Advice::prefer_device, Advice::read_mostly, Advice::unset_read_mostly,
        Advice::unset_preferred, Advice::prefetch_device, Advice::prefetch_host}) {
    sketch.emit(program::Advise{.slice = half, .advice = advice});
  }
  return sketch;
}

TEST_F(Options, AdviceReachesCudaInOrderAlsoWhereStepsAreGraphs) {
  executor_ = gpus_.executor(settings::Graph::on);
  const auto session = prepare(all_advice(), {});
  for (int play = 0; play < 3; ++play) {
    machine().advice.clear();
    session->play(Section::step, Trace::off);
    EXPECT_THAT(
        machine().advice,
        testing::ElementsAre("prefer host", "prefer device 0", "read mostly", "not read mostly",
                             "prefer nothing", "prefetch device 0", "prefetch host"));
  }
  EXPECT_EQ(machine().graph_launches, 0);
}

TEST_F(Options, CopiesOfPageableMemoryAreNotReplayedAsGraphs) {
  executor_ = gpus_.executor(settings::Graph::on);
  for (const Space space : {Space::pageable, Space::pinned}) {
    Sketch sketch;
    const Slice host = sketch.buffer(program::DType::f32, 8, space);
    const Slice device = sketch.buffer<float>(8);
    sketch.emit(
        program::Copy{.rows = 1, .columns = 8, .src = {.slice = host}, .dst = {.slice = device}});
    const auto session = prepare(sketch, {});
    for (int play = 0; play < 3; ++play) session->play(Section::step, Trace::off);
    EXPECT_EQ(machine().graph_launches > 0, space == Space::pinned);
  }
}

TEST_F(Options, OnlyTheSourceOfAChecksumMayLieInPinnedMemory) {
  for (const auto& [source, sum] :
       {std::pair{Space::pinned, Space::device}, std::pair{Space::device, Space::pinned}}) {
    Sketch sketch;
    const Slice summed = sketch.buffer(program::DType::f32, 8, source);
    sketch.emit(program::Checksum{.rows = 1,
                                  .columns = 8,
                                  .src = {.slice = summed, .row_stride = 8},
                                  .sum = sketch.buffer(program::DType::i64, 2, sum)});
    if (sum == Space::device) {
      EXPECT_NO_THROW(static_cast<void>(prepare(sketch, {})));
    } else {
      EXPECT_THROW(static_cast<void>(prepare(sketch, {})), base::AgreedError);
    }
  }
}

TEST_F(Options, AdviceNeedsManagedMemoryThatMoves) {
  machine().settings.moves_pages = false;
  EXPECT_THAT(unsupported(all_advice(), {}), HasSubstr("managed memory does not move"));
  machine().settings.moves_pages = true;
  Sketch pinned;
  pinned.emit(program::Advise{.slice = pinned.buffer(program::DType::f32, 8, Space::pinned)});
  EXPECT_THROW(static_cast<void>(prepare(pinned, {})), base::AgreedError);
}

}  // namespace
}  // namespace isoscale::standin
