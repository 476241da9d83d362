// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Twins on stand-in GPUs, also with transport symmetric; where it cannot run, that is said.

#include "tests/cuda/devices.hpp"
#include "tests/cuda/twin_requests.hpp"

namespace isoscale::standin {
namespace {

using executor::Sketch;
using executor::Unsupported;
using gpu_twins::Precision;
using namespace program;  // NOLINT: the ops
using workloads::Options;

class Transports : public OnGpus {
 protected:
  Transports() { choose_at_once(); }

  [[nodiscard]] int ranks() const { return gpus_.world.size(); }

  /// Why the executor cannot; "" when it can.
  std::string unsupported(const Sketch& sketch, const mesh::Shape& mesh) {
    return executor::message_of<Unsupported>(
        [&] { return executor_->prepare(sketch.on(mesh), gpus_.world); });
  }

  void expect_twin(const mesh::Shape& mesh, Precision precision, Options options) {
    options["transport"] = "symmetric";
    const auto request = gpu_twins::request_of(mesh, precision, std::move(options));
    ASSERT_TRUE(request) << mesh::to_string(mesh);
    machine().puts = machine().symmetric_calls = 0;
    gpu_twins::expect_equal_to_one_rank(gpus_.world, *executor_, *request);
    EXPECT_EQ(machine().memory.damaged(), 0);
  }

  std::unique_ptr<executor::Executor> executor_ = gpus_.executor();
};

/// Each rank sends `count` messages of its own to the next, from and to symmetric memory.
Sketch ring_of_puts(std::uint64_t messages, Space space = Space::symmetric) {
  constexpr std::uint64_t each = 1'003;
  Sketch sketch;
  const Slice out = sketch.buffer(program::DType::f32, messages * each, space);
  const Slice in = sketch.buffer(program::DType::f32, messages * each, space);
  Exchange exchange{.transfers = {}, .transport = Transport::symmetric};
  for (std::uint64_t i = 0; i < messages; ++i) {
    const auto part = [&](const Slice& of) {
      return Slice{.buffer = of.buffer, .offset = i * each, .count = each};
    };
    exchange.transfers.push_back({Direction::send, mesh::Axis::pp, 1, part(out)});
    exchange.transfers.push_back({Direction::receive, mesh::Axis::pp, -1, part(in)});
  }
  sketch.emit(exchange);
  sketch.emit(std::move(exchange));  // again: counts go on within a play and from play to play
  return sketch;
}

TEST_F(Transports, PutsBringWhatWasSentPlayAfterPlay) {
  for (const settings::Graph graph : {settings::Graph::off, settings::Graph::on}) {
    const auto executor = gpus_.executor(graph);
    for (const std::uint64_t messages : {1U, 3U, 64U}) {
      const Sketch sketch = ring_of_puts(messages);
      const auto session = executor->prepare(sketch.on({.pp = ranks()}), gpus_.world);
      const Slice out{.buffer = 0, .count = sketch.program().buffers[0].count};
      const Slice in{.buffer = 1, .count = out.count};
      const auto content = [&](int rank, int play) {
        return executor::whole_values<float>(out.count,
                                             static_cast<std::uint64_t>(rank * 10 + play));
      };
      const int before = (gpus_.world.rank() + ranks() - 1) % ranks();
      for (int play = 0; play < 4; ++play) {
        machine().puts = 0;
        executor::put(*session, out, content(gpus_.world.rank(), play));
        session->play({.section = Section::step});
        EXPECT_EQ(executor::get<float>(*session, in), content(before, play));
        EXPECT_EQ(machine().puts, 2 * static_cast<int>(messages));
      }
    }
  }
}

TEST_F(Transports, TwinsOfPipelinesHandOverByPuts) {
  const mesh::Shape mesh{.pp = ranks()};
  const std::vector<Options> sets{{},
                                  {{"schedule", "gpipe"}, {"optimizer", "adam"}},
                                  {{"schedule", "zb-h1"}, {"vocabulary", "on"}}};
  for (const Options& options : sets) {
    expect_twin(mesh, Precision::f64, options);  // puts have no types
    EXPECT_GT(machine().puts, 0);
    EXPECT_EQ(machine().symmetric_calls, 0) << "NCCL carries no hand-over";
  }
}

TEST_F(Transports, TwinsOfTensorParallelismUseSymmetricMemory) {
  const mesh::Shape mesh{.tp = ranks()};
  const Options rows{{"sequence_parallel", "on"}};
  Options chunked = rows, ring = rows;
  chunked["chunks"] = "2";
  ring["ring"] = "on";
  for (const Options& options : {Options{}, Options{{"tp_output", "gather"}}, rows, chunked}) {
    expect_twin(mesh, Precision::f32, options);
    EXPECT_GT(machine().symmetric_calls, 0);
    EXPECT_EQ(machine().puts, 0);
  }
  expect_twin(mesh, Precision::bf16, ring);
  EXPECT_GT(machine().puts, 0);
}

TEST_F(Transports, TwinsOfBothAxes) {
  if (ranks() < 4) GTEST_SKIP() << "needs 4 ranks";
  const mesh::Shape mesh{.tp = 2, .dp = ranks() / 4, .pp = 2};
  for (const Options& options :
       {Options{{"handover", "scattered"}}, Options{{"sequence_parallel", "on"}, {"ring", "on"}},
        Options{{"schedule", "interleaved"}}}) {
    expect_twin(mesh, Precision::f32, options);
    EXPECT_GT(machine().puts, 0);
  }
}

/// Places are the receiver's word: two stages need not have their buffers at the same ones.
TEST_F(Transports, PlacesOfPeersMayDiffer) {
  constexpr std::uint64_t count = 100;
  const bool is_odd = gpus_.world.rank() % 2 == 1;
  program::ProgramSet set{.mesh = {.pp = ranks()}, .programs = {}, .program_of_rank = {}};
  for (const std::uint64_t padding : {8U, 4'096U}) {
    Sketch sketch;
    static_cast<void>(sketch.buffer(program::DType::f32, padding, Space::symmetric));
    const Slice out = sketch.buffer(program::DType::f32, count, Space::symmetric);
    const Slice in = sketch.buffer(program::DType::f32, count, Space::symmetric);
    sketch.emit(Exchange{.transfers = {{Direction::send, mesh::Axis::pp, 1, out},
                                       {Direction::receive, mesh::Axis::pp, -1, in}},
                         .transport = Transport::symmetric});
    set.programs.push_back(sketch.program());
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    set.program_of_rank.push_back(static_cast<std::uint32_t>(rank % 2));
  }
  const auto session = executor_->prepare(set, gpus_.world);
  const Slice out{.buffer = 1, .count = count}, in{.buffer = 2, .count = count};
  executor::put(*session, out, std::vector<float>(count, is_odd ? 1.0F : 2.0F));
  session->play({.section = Section::step});
  EXPECT_EQ(executor::get<float>(*session, in), std::vector<float>(count, is_odd ? 2.0F : 1.0F));
}

TEST_F(Transports, ThatCannotRunAreUnsupportedWithTheirReason) {
  const mesh::Shape line{.pp = ranks()};
  machine().settings.mapped_ranks = 1;
  machine().settings.nccl = 22'809;
  EXPECT_THAT(unsupported(ring_of_puts(1), line), HasSubstr("only within a node"));
  machine().settings.nccl = 22'902;
  EXPECT_THAT(unsupported(ring_of_puts(1), line), HasSubstr("memory at place"));
  machine().settings.mapped_ranks = 0;
  EXPECT_THAT(unsupported(ring_of_puts(65), line), HasSubstr("64 at a time"));
  EXPECT_EQ(unsupported(ring_of_puts(1), line), "");
  EXPECT_THROW(
      static_cast<void>(executor_->prepare(ring_of_puts(1, Space::device).on(line), gpus_.world)),
      base::AgreedError);
}

Sketch symmetric_sum(program::DType type, program::Reduction reduction) {
  Sketch sketch;
  const Slice all = sketch.buffer(type, 64, Space::symmetric);
  sketch.emit(Collective{.kind = CollectiveKind::all_reduce,
                         .reduction = reduction,
                         .axes = mesh::Axis::tp,
                         .transport = Transport::symmetric,
                         .send = all,
                         .receive = all});
  return sketch;
}

TEST_F(Transports, WhatNcclWouldSilentlyDoAnotherWayIsUnsupported) {
  using program::DType;
  using program::Reduction;
  const mesh::Shape mesh{.tp = ranks()};
  EXPECT_EQ(unsupported(symmetric_sum(DType::f32, Reduction::sum), mesh), "");
  EXPECT_THAT(unsupported(symmetric_sum(DType::f64, Reduction::sum), mesh),
              HasSubstr("all_reduce of f64"));
  EXPECT_THAT(unsupported(symmetric_sum(DType::f32, Reduction::max), mesh),
              HasSubstr("no symmetric kernel"));
  machine().settings.mapped_ranks = 1;
  machine().settings.nccl = 22'902;
  EXPECT_THAT(unsupported(symmetric_sum(DType::f32, Reduction::sum), mesh),
              HasSubstr("not all GPUs along tp"));
}

TEST_F(Transports, AnOldNcclOrASharedGpuIsKnownBeforehand) {
  machine().settings.nccl = 22'703;
  EXPECT_THAT(gpus_.executor()->describe().symmetric_problem, HasSubstr("this is 2.27"));
  machine().settings.nccl = NCCL_VERSION_CODE;
  EXPECT_EQ(gpus_.executor()->describe().symmetric_problem, "");
  machine().settings.first_gpu = 0;
  executor::CudaOptions options = Gpus::options();
  options.share = settings::ShareGpu::yes;
  const auto shared = gpus_.executor(options);
  EXPECT_THAT(shared->describe().symmetric_problem, HasSubstr("ranks share one"));
}

/// A put that waits for a peer for ever is told to stop, so that the session can be left.
TEST_F(Transports, ASessionThatFailedEndsItsPuts) {
  const auto executor = gpus_.executor();
  machine().settings.failing_communicator = "pp, all links";
  machine().settings.failing_after = 0;
  auto session = executor->prepare(ring_of_puts(1).on({.pp = ranks()}), gpus_.world);
  EXPECT_THROW(session->play({.section = Section::step, .timeout = units::Seconds{0.2}}),
               executor::TimedOut);
  session.reset();
  EXPECT_EQ(machine().alive.communicators, 0);
}

/// On GPUs as on one rank of the host, in whatever order streams and events leave open.
class Twins : public testing::TestWithParam<settings::Graph> {};

TEST_P(Twins, OfEveryMeshAndPrecision) {
  const Gpus gpus;
  const auto executor = gpus.executor(GetParam());
  std::size_t turn = 0, played = 0;
  for (const mesh::Shape& mesh : gpu_twins::meshes(gpus.world.size())) {
    for (const Precision precision : gpu_twins::precisions) {
      machine().settings = healthy(gpus.world, turn);
      choose_at_once();
      const auto options = gpu_twins::option_sets();
      const auto request = gpu_twins::request_of(mesh, precision, options[turn % options.size()]);
      // A half as graphs, the other half plainly.
      const bool is_even = (turn + turn / gpu_twins::precisions.size()) % 2 == 0;
      ++turn;
      if (is_even == (GetParam() == settings::Graph::on) || !request) continue;
      gpu_twins::expect_equal_to_one_rank(gpus.world, *executor, *request);
      ++played;
    }
  }
  EXPECT_GE(played, turn / 2 - 1);  // tp=8 leaves too little for fp8
  EXPECT_EQ(machine().graph_launches > 0, GetParam() == settings::Graph::on);
  EXPECT_EQ(machine().memory.damaged(), 0);
}

TEST_P(Twins, OfFp8RowsThatTravelInParts) {
  const Gpus gpus;
  const auto executor = gpus.executor(GetParam());
  std::size_t turn = 0;
  for (const workloads::Request& request : gpu_twins::fp8_rows(gpus.world.size())) {
    machine().settings = healthy(gpus.world, turn);
    // A half as graphs, the other half plainly.
    const bool is_even = (turn + turn / 2) % 2 == 0;
    ++turn;
    if (is_even == (GetParam() == settings::Graph::on)) continue;
    gpu_twins::expect_equal_to_one_rank(gpus.world, *executor, request);
  }
  EXPECT_EQ(turn, 6U);
  EXPECT_EQ(machine().memory.damaged(), 0);
}

TEST(Twin, GivesBackAllItTook) {
  const Gpus gpus;
  choose_at_once();
  const Alive before = machine().alive;
  const std::size_t pieces = machine().memory.count();
  const mesh::Shape mesh{.dp = gpus.world.size()};
  {
    const auto executor = gpus.executor(settings::Graph::on);
    gpu_twins::expect_equal_to_one_rank(gpus.world, *executor,
                                        gpu_twins::request_of(mesh, Precision::bf16, {}).value());
  }
  EXPECT_EQ(machine().alive, before);
  EXPECT_EQ(machine().memory.count(), pieces);
  EXPECT_EQ(machine().queue.size(), 0U);
}

/// Without waits between streams, work overtakes what it needs.
TEST(Twin, FindsAWaitThatIsMissing) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const Gpus gpus;
  const auto executor = gpus.executor();
  const int ranks = gpus.world.size();
  const std::vector<mesh::Shape> tried{{.dp = ranks}, {.pp = ranks}};
  for (const mesh::Shape& mesh : tried) {
    const workloads::Options options{{"input", "pinned"}};
    const workloads::Request twin =
        hybrid.twin(gpu_twins::request_of(mesh, Precision::f64, options).value());
    const program::ProgramSet good = hybrid.build(twin);
    program::ProgramSet bad = good;
    for (program::RankProgram& program : bad.programs) {
      for (program::Op& op : program.step().ops) op.wait_count = 0;
    }
    int found = 0;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      machine().settings = healthy(gpus.world, seed);
      choose_at_once();
      const auto verify = [&](const program::ProgramSet& set) {
        return runner::measure::verify_programs(set, hybrid, twin, *executor, gpus.world);
      };
      found += verify(bad).ok ? 0 : 1;
      const runner::measure::Verdict still = verify(good);
      EXPECT_TRUE(still.ok) << still.detail;
    }
    EXPECT_GT(found, 0) << mesh::to_string(mesh);
  }
}

INSTANTIATE_TEST_SUITE_P(Plays, Twins, both_plays, name_of_play);

}  // namespace
}  // namespace isoscale::standin
