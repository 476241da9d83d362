// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// These tests set NCCL's options and use managed memory, and check that nothing is left behind.

#include "tests/cuda/devices.hpp"

namespace isoscale::standin {
namespace {

using namespace executor;  // NOLINT: what is played
using namespace program;   // NOLINT: the ops

constexpr std::uint64_t count = 4'096;

class Options : public OnGpus {
 protected:
  static Sketch reduction(Space space = Space::device) { return standin::reduction(count, space); }
  /// The same, and a small one on stream 1.
  static Sketch two_reductions(Space space = Space::device) {
    Sketch sketch = reduction(space);
    sketch.all_reduce(sketch.buffer<float>(8), mesh::Axis::dp, 1);
    return sketch;
  }

  executor::SessionPtr prepare(const Sketch& sketch, const SessionOptions& options = {}) {
    return OnGpus::prepare(*executor_, sketch, options);
  }
  void expect_plays(const Sketch& sketch, const SessionOptions& options = {}) {
    expect_sums(*prepare(sketch, options), count);
  }
  /// The executor cannot, and says why.
  void expect_unsupported(const char* why, const Sketch& sketch,
                          const SessionOptions& options = {}) {
    EXPECT_THAT(executor::message_of<Unsupported>([&] { return prepare(sketch, options); }),
                HasSubstr(why));
  }
  /// NCCL is told to use this for a sum, and the sum is right.
  void expect_choice(const SessionOptions& options, const char* choice) {
    machine().choices.clear();
    expect_plays(reduction(), options);
    EXPECT_THAT(machine().choices, ElementsAre(choice));
  }

  /// Communicators that were made on this rank for a session on some ranks.
  int made_for(const Sketch& sketch, const comm::Communicator& point,
               const SessionOptions& options = {}) {
    const int before = machine().communicators_made;
    machine().settings.nccl_world = point.get();
    const auto session = executor_->prepare(sketch.on({.dp = point.size()}), point, options);
    session->play({.section = Section::step});
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
  expect_choice({.collective_algorithm = "tree", .collective_protocol = "ll128"},
                "AllReduce:Tree|LL128");
  EXPECT_EQ(variable("NCCL_ALGO"), "(unset)");
  EXPECT_EQ(variable("NCCL_PROTO"), "LL,Simple");
  expect_choice({.collective_algorithm = "ring"},
                "AllReduce:Ring;ReduceScatter:Ring;AllGather:Ring;Broadcast:Ring;Reduce:Ring|"
                "LL,Simple");
  ::unsetenv("NCCL_PROTO");
  expect_choice({}, "|");
  expect_nothing_left();
}

TEST_F(Options, CommunicatorsAreKeptForTheNextSessionOnTheSameRanksAndAxes) {
  const comm::Communicator& all = gpus_.world;
  // One of all ranks comes first; it goes when those of the axes have been split from it.
  EXPECT_EQ(made_for(reduction(), all), 2);
  EXPECT_EQ(machine().alive.communicators, 1);
  EXPECT_EQ(made_for(reduction(), all), 0);
  expect_plays(reduction());  // and the sums are right
  EXPECT_EQ(made_for(two_reductions(), all), 3);
  EXPECT_EQ(machine().alive.communicators, 2);
  EXPECT_EQ(made_for(reduction(), all), 0);
  EXPECT_EQ(machine().alive.communicators, 1) << "what is not needed takes no memory";
  EXPECT_EQ(made_for(reduction(), all, {.collective_algorithm = "ring"}), 2);
  EXPECT_EQ(made_for(reduction(), all), 0);
  for (const auto& facts : prepare(reduction())->facts().communicators) {
    EXPECT_EQ(facts.creation, 0) << facts.name;
  }
}

/// They may still have registered the memory of a graph.
TEST_F(Options, CommunicatorsOfGraphsAreNotKept) {
  executor_ = gpus_.executor(settings::Graph::on);
  for (int session = 0; session < 2; ++session) {
    EXPECT_EQ(made_for(reduction(), gpus_.world), 2);
    EXPECT_EQ(machine().alive.communicators, 0);
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
  prepare(reduction())->abandon();
  EXPECT_EQ(machine().alive.communicators, 0);
  EXPECT_EQ(made_for(reduction(), all), 2);
  expect_plays(reduction());
  executor_.reset();
  EXPECT_EQ(machine().alive.communicators, 0);
}

TEST_F(Options, FaultsOfOneRankAreUnsupportedOnAll) {
  const bool is_slow = gpus_.world.rank() == 1;
  expect_unsupported("rank 1: the cuda", reduction(),
                     {.faults = {.gemm_factor = is_slow ? 2.0 : 1.0}});
  expect_nothing_left();
}

TEST_F(Options, WhatNcclRefusesIsUnsupportedWithItsWords) {
  machine().settings.refused_algorithm = "NVLS";
  expect_unsupported("algorithm nvls, protocol of", reduction(), {.collective_algorithm = "nvls"});
  expect_unsupported("said by the stand-in", reduction(), {.collective_algorithm = "nvls"});
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
  expect_unsupported("nvls", bytes, {.collective_algorithm = "nvls"});
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
  EXPECT_THAT(machine().choices, ElementsAre("ReduceScatter:PAT;AllGather:PAT|"));
  EXPECT_EQ(machine().all_reduces, 0);
}

TEST_F(Options, WhatNcclWouldSilentlyIgnoreIsUnsupported) {
  expect_unsupported("hypercube", reduction(), {.collective_algorithm = "hypercube"});
  expect_unsupported("tcp", reduction(), {.collective_protocol = "tcp"});
  expect_unsupported("no all_reduce by pat", reduction(), {.collective_algorithm = "pat"});
  expect_unsupported("nvls with protocol ll", reduction(),
                     {.collective_algorithm = "nvls", .collective_protocol = "ll"});
  expect_nothing_left();
}

TEST_F(Options, EstimatesAreNcclsAndStartNothing) {
  const auto session = prepare(reduction());
  const std::size_t under_way = machine().queue.size();
  const auto time = session->estimate(Section::step);
  ASSERT_TRUE(time);
  EXPECT_NEAR(time->value(), (10 + count * 4 * 1e-3) * 1e-6, 1e-9);
  EXPECT_EQ(machine().queue.size(), under_way);
  expect_sums(*session, count);

  using program::Direction;
  Sketch messages, nothing;
  const Slice a = messages.buffer<float>(8), b = messages.buffer<float>(8);
  messages.emit(program::Exchange{
      {{Direction::send, mesh::Axis::dp, 1, a}, {Direction::receive, mesh::Axis::dp, -1, b}}});
  EXPECT_FALSE(prepare(messages)->estimate(Section::step));
  nothing.emit(program::Fill{.dst = nothing.buffer<float>(8), .shard = {}});
  EXPECT_FALSE(prepare(nothing)->estimate(Section::step));
}

TEST_F(Options, AnNcclThatIsOlderThanTheHeadersOffersWhatItHas) {
  const SessionOptions registered{.registration = Registration::local};
  machine().settings.nccl = 21'805;
  expect_unsupported("2.19", reduction(), registered);
  expect_unsupported("2.27", reduction(Space::symmetric));
  EXPECT_FALSE(prepare(reduction())->estimate(Section::step));
  expect_plays(reduction());
  {
    const auto session = prepare(reduction(), {.collective_algorithm = "ring"});
    EXPECT_THAT(machine().choices, Contains("Ring|"));  // the setting of all before 2.24
  }
  machine().settings.nccl = 22'203;
  EXPECT_TRUE(prepare(reduction())->estimate(Section::step));
  expect_plays(reduction(), registered);
  expect_unsupported("2.27", reduction(Space::symmetric));
  machine().settings.nccl = 22'703;
  expect_plays(reduction(Space::symmetric));
  expect_nothing_left();
}

TEST_F(Options, SymmetricBuffersLieInWindowsOfTheCommunicatorsThatUseThem) {
  const Sketch sketch = two_reductions(Space::symmetric);
  {
    const auto session = prepare(sketch);
    EXPECT_EQ(machine().alive.registrations, 1) << "stream 1 uses no symmetric buffer";
    EXPECT_EQ(machine().symmetric_calls, 1);  // the first call, which connects
    expect_sums(*session, count);
    EXPECT_EQ(machine().symmetric_calls, 2);
  }
  expect_nothing_left();
  machine().settings.nccl = 22'902;
  expect_plays(sketch);
  machine().settings.makes_windows = false;
  for (const int nccl : {22'703, 22'809, 22'902, 23'007}) {
    machine().settings.nccl = nccl;
    expect_unsupported("no symmetric windows", sketch);
    expect_nothing_left();
  }
}

TEST_F(Options, ARegisteredArenaIsKnownToEveryCommunicator) {
  {
    const auto session = prepare(two_reductions(), {.registration = Registration::local});
    EXPECT_EQ(machine().alive.registrations, 2);
    expect_sums(*session, count);
    EXPECT_EQ(machine().registered_calls, 4);  // two of them connect
  }
  expect_nothing_left();
}

TEST_F(Options, AnArenaThatNcclDoesNotRegisterIsUnsupported) {
  ::setenv("NCCL_LOCAL_REGISTER", "0", 1);
  expect_unsupported("NCCL_LOCAL_REGISTER", reduction(), {.registration = Registration::local});
  ::unsetenv("NCCL_LOCAL_REGISTER");
  expect_nothing_left();
}

TEST_F(Options, Fp8IsMovedOnEveryGpuAndReducedFromSm90On) {
  const auto ranks = static_cast<std::uint64_t>(gpus_.world.size());
  Sketch moved, reduced;
  const Slice mine = moved.buffer(DType::e5m2, 8), all = moved.buffer(DType::e5m2, 8 * ranks);
  moved.emit(Collective{
      .kind = CollectiveKind::all_gather, .axes = mesh::Axis::dp, .send = mine, .receive = all});
  using program::Direction;
  const Slice out = moved.buffer(DType::e4m3, 8), in = moved.buffer(DType::e4m3, 8);
  moved.emit(program::Exchange{
      {{Direction::send, mesh::Axis::dp, 1, out}, {Direction::receive, mesh::Axis::dp, -1, in}}});
  reduced.all_reduce(reduced.buffer(DType::e4m3, 8));
  EXPECT_NO_THROW(std::ignore = prepare(reduced));
  machine().settings.capability = 8;
  executor_ = gpus_.executor();
  for (const int nccl : {21'805, 22'703, 22'809}) {
    machine().settings.nccl = nccl;
    EXPECT_NO_THROW(std::ignore = prepare(moved)) << nccl;
    expect_unsupported("reduces e4m3 only", reduced);
  }
}

TEST_F(Options, ASessionThatFailedLeavesItsMemoryToItsKernels) {
  machine().settings.failing_communicator = "dp on compute";
  machine().settings.failing_after = 1;
  auto session = prepare(reduction(Space::symmetric));
  EXPECT_THROW(session->play({.section = Section::step}), base::Error);
  session.reset();
  EXPECT_EQ(machine().alive.communicators, 0);
  EXPECT_GT(machine().memory.in_use(Kind::device), 0U);
}

TEST_F(Options, HostMemoryOnANodeThatIsThereOrNot) {
  expect_plays(reduction(), {.numa_node = 0});
  expect_unsupported("NUMA node 999", reduction(), {.numa_node = 999});
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
  const auto session = prepare(all_advice());
  for (int play = 0; play < 3; ++play) {
    machine().advice.clear();
    session->play({.section = Section::step});
    EXPECT_THAT(machine().advice,
                ElementsAre("prefer host", "prefer device 0", "read mostly", "not read mostly",
                            "prefer nothing", "prefetch device 0", "prefetch host"));
  }
  EXPECT_EQ(machine().graph_launches, 0);
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
      EXPECT_NO_THROW(static_cast<void>(prepare(sketch)));
    } else {
      EXPECT_THROW(static_cast<void>(prepare(sketch)), base::AgreedError);
    }
  }
}

TEST_F(Options, AdviceNeedsManagedMemoryThatMoves) {
  machine().settings.moves_pages = false;
  expect_unsupported("managed memory", all_advice());
  machine().settings.moves_pages = true;
  Sketch pinned;
  pinned.emit(program::Advise{.slice = pinned.buffer(program::DType::f32, 8, Space::pinned)});
  EXPECT_THROW(static_cast<void>(prepare(pinned)), base::AgreedError);
}

}  // namespace
}  // namespace isoscale::standin
