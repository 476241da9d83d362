// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Words that streams wait for (plays are held back) and write (a stuck GPU is located).

#include "executor/cuda/gate_and_progress_words.hpp"
#include "runner/microbench/measure_case.hpp"
#include "tests/cuda/devices.hpp"

namespace isoscale::standin {
namespace {

using namespace executor;  // NOLINT: what is played
using namespace program;   // NOLINT: what is played

constexpr std::int64_t launch = 5'000, kernel = 3'000;  // ns

/// One kernel.
Sketch fill() {
  Sketch sketch;
  sketch.emit(program::Fill{.dst = sketch.buffer<float>(64), .shard = {}});
  return sketch;
}

/// The same, and a collective.
Sketch reduction() {
  Sketch sketch = fill();
  sketch.all_reduce(sketch.buffer<float>(64));
  return sketch;
}

class Gate : public testing::TestWithParam<settings::Graph> {
 protected:
  /// A session whose step has been played, with the launches that it is to have afterwards.
  executor::SessionPtr warm(const Sketch& sketch, Launches launches) {
    auto session = gpu_->prepare(sketch.on({.dp = gpus_.world.size()}), gpus_.world);
    EXPECT_FALSE(session->play(Play{.launches = launches}).is_late);
    EXPECT_EQ(session->facts().graph, GetParam() == settings::Graph::on);
    return session;
  }

  /// A play of so many passes. A machine that stands still for 100 ms makes a play late.
  static std::int64_t time(executor::Session& session, std::uint32_t times, Launches launches) {
    constexpr int most = 20;
    for (int attempt = 0; attempt < most; ++attempt) {
      const PlayTime time = session.play(Play{.times = times, .launches = launches});
      if (!time.is_late) return time.end.value() - time.begin.value();
    }
    ADD_FAILURE() << "every play was late";
    return 0;
  }

  /// The clock of the GPU becomes a model's.
  static void model() {
    machine().settings.launch_time = launch;
    machine().settings.kernel_time = kernel;
  }

  Gpus gpus_{};
  std::unique_ptr<executor::Executor> gpu_ = gpus_.executor(GetParam());
};

TEST_P(Gate, ThePlayOfAShortKernelTakesAsLongAsTheKernel) {
  const auto session = warm(fill(), Launches::hidden);
  model();
  EXPECT_EQ(time(*session, 1, Launches::counted), launch + kernel);
  EXPECT_EQ(time(*session, 1, Launches::hidden), kernel);
  EXPECT_EQ(time(*session, 20, Launches::counted), 20 * launch + kernel);
  EXPECT_EQ(time(*session, 20, Launches::hidden), 20 * kernel);
}

TEST_P(Gate, OpensWhenItHas64Launches) {
  const auto session = warm(fill(), Launches::hidden);
  model();
  // The GPU catches up with the host, and waits for the last launch.
  constexpr std::uint32_t times = 400;
  EXPECT_EQ(time(*session, times, Launches::hidden), (times - 64) * launch + kernel);
}

TEST_P(Gate, OpensByItselfWhereTheQueueOfLaunchesIsFull) {
  const auto session = warm(fill(), Launches::hidden);
  machine().settings.launch_queue = 10;
  EXPECT_TRUE(session->play(Play{.times = 30, .launches = Launches::hidden}).is_late);
  machine().settings.launch_queue = 1'000;
  EXPECT_GT(time(*session, 30, Launches::hidden), 0);
}

/// Behind a gate, the launch of a long graph would fill the queue.
TEST_P(Gate, IsNotUsedForLongGraphs) {
  Sketch sketch;
  for (int i = 0; i < 300; ++i) {
    sketch.emit(program::Fill{.dst = sketch.buffer<float>(64), .shard = {}});
  }
  const auto session = warm(sketch, Launches::hidden);
  machine().settings.launch_queue = 10;
  EXPECT_EQ(session->play(Play{.launches = Launches::hidden}).is_late,
            GetParam() == settings::Graph::off);
}

TEST_P(Gate, OpensByItselfWhereAKernelIsLoadedLate) {
  machine().settings.loads_lazily = true;
  // The first play loads all: it is not held back, or it would be late.
  const auto session = warm(fill(), Launches::hidden);
  time(*session, 1, Launches::hidden);
  if (GetParam() == settings::Graph::on) return;  // a graph was loaded as a whole
  machine().loaded.clear();
  EXPECT_TRUE(session->play(Play{.launches = Launches::hidden}).is_late);
}

/// The host takes part in such a copy: it would wait for a stream that waits for the host.
TEST_P(Gate, IsNoneForCopiesOfPageableMemory) {
  executor::Sketch sketch;
  const program::Slice host = sketch.buffer(program::DType::f32, 8, program::Space::pageable);
  const program::Slice device = sketch.buffer<float>(8);
  sketch.emit(
      program::Copy{.rows = 1, .columns = 8, .src = {.slice = host}, .dst = {.slice = device}});
  const auto session = gpu_->prepare(sketch.on({.dp = gpus_.world.size()}), gpus_.world);
  EXPECT_FALSE(session->facts().graph);
  session->play(Play{});
  model();
  EXPECT_EQ(time(*session, 1, Launches::hidden), time(*session, 1, Launches::counted));
}

TEST_P(Gate, IsNoneWhereTheDriverCannotMakeStreamsWait) {
  machine().settings.waits_for_values = false;
  testing::internal::CaptureStderr();
  const auto session = warm(fill(), Launches::hidden);
  const std::string said = testing::internal::GetCapturedStderr();
  if (GetParam() == settings::Graph::off) {  // it is said once
    EXPECT_THAT(said, AllOf(StartsWith("isoscale: warning: "), HasSubstr("code 801")));
  }
  model();
  EXPECT_EQ(time(*session, 1, Launches::hidden), launch + kernel);
}

TEST_P(Gate, RanksThatHaveCollectivesMeetBehindIt) {
  const auto calls_of = [&](executor::Session& session, Launches launches) {
    const int before = machine().all_reduces;
    session.play(Play{.launches = launches});
    return machine().all_reduces - before;
  };
  const auto alone = warm(fill(), Launches::hidden);
  EXPECT_EQ(calls_of(*alone, Launches::hidden), 0);
  const auto together = warm(reduction(), Launches::hidden);
  // Calls that a graph holds were made when it was captured.
  static_cast<void>(calls_of(*together, Launches::counted));
  const int own = GetParam() == settings::Graph::on ? 0 : 1;
  EXPECT_EQ(calls_of(*together, Launches::counted), own);
  EXPECT_EQ(calls_of(*together, Launches::hidden), own + 1);
}

TEST_P(Gate, LeavesNothingBehindInASessionThatFails) {
  machine().settings.failing_communicator = "dp on compute";
  machine().settings.failing_after = 3;  // one connects, two are of the first play
  const auto session = warm(reduction(), Launches::hidden);
  EXPECT_THROW(static_cast<void>(session->play(Play{.launches = Launches::hidden})), base::Error);
}

INSTANTIATE_TEST_SUITE_P(Graphs, Gate, both_plays, name_of_play);

/// A session of which some plays are late.
class FakeSession final : public executor::Session {
 public:
  explicit FakeSession(std::set<int> late) : late_(std::move(late)) {}
  PlayTime play(const Play& what) override {
    hidden_ += what.launches == Launches::hidden ? 1 : 0;
    const bool is_late = late_.empty() || late_.contains(++plays_);
    return {.begin = units::Nanoseconds{0},
            .end = units::Nanoseconds{is_late ? 1'000'000 : 1'000},
            .is_late = is_late};
  }
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return {}; }
  void read(const program::Slice& /*slice*/, std::span<std::byte> /*into*/) override {}
  void write(const program::Slice& /*slice*/, std::span<const std::byte> /*from*/) override {}
  [[nodiscard]] const executor::SessionFacts& facts() const override { return facts_; }
  void abandon() noexcept override {}
  [[nodiscard]] int hidden() const { return hidden_; }

 private:
  std::set<int> late_;  ///< numbers, from 1; empty: all
  int plays_ = 0, hidden_ = 0;
  executor::SessionFacts facts_{};
};

runner::microbench::CaseRecord record_of(FakeSession& session, workloads::LaunchCost cost,
                                         std::vector<machine::Source> gpu = {}) {
  const comm::Communicator world = comm::Communicator::world();
  const workloads::Case one{.calls_are_spans = workloads::CallsAreSpans::no, .launch_cost = cost};
  runner::plan::Effort effort;
  effort.half_width = [](std::span<const double> /*times*/, double /*confidence*/) {
    return std::optional<double>{0};
  };
  return runner::microbench::play_case({.session = session,
                                        .one = one,
                                        .section = {},
                                        .gpu = std::move(gpu),
                                        .active = world,
                                        .effort = effort,
                                        .limits = {.budget = units::Seconds{0.001}}});
}

TEST(LatePlays, AreMadeAgain) {
  FakeSession session{{2, 5, 6}};
  const runner::microbench::CaseRecord record = record_of(session, workloads::LaunchCost::excluded);
  EXPECT_EQ(record.repeated_plays, 3);
  EXPECT_EQ(record.late_plays, 0);
  EXPECT_THAT(record.plays, Each(DoubleEq(1e-6)));
  EXPECT_GT(session.hidden(), 0);
}

TEST(LatePlays, AreCountedWhereAllAreLate) {
  FakeSession session{{}};
  const runner::microbench::CaseRecord record = record_of(session, workloads::LaunchCost::excluded);
  EXPECT_EQ(record.repeated_plays, 20);
  EXPECT_THAT(record.plays, SizeIs(record.late_plays));
}

TEST(Cases, AreSampledWhileTheyAreTimed) {
  FakeSession session{{1'000'000}};
  int reads = 0;
  const machine::Source clock{
      .channels = {{.device = "gpu 0", .quantity = "sm_clock", .unit = "Hz"}},
      .read = [&](std::span<double> values) { values.front() = 1e9 + 1e6 * ++reads; }};
  const auto record = record_of(session, workloads::LaunchCost::excluded, {clock});
  ASSERT_FALSE(record.gpu.empty());
  EXPECT_EQ(record.gpu.front().quantity, "sm_clock");
  EXPECT_GE(record.gpu.front().value.size(), 2U);
}

TEST(LatePlays, AreNoneWhereLaunchesBelongToTheTime) {
  FakeSession session{{1'000'000}};
  EXPECT_EQ(record_of(session, workloads::LaunchCost::included).repeated_plays, 0);
  EXPECT_EQ(session.hidden(), 0);
}

/// GEMMs on stream 0 that take at least so many milliseconds each, on any GPU.
program::Outline gemms(const std::vector<double>& milliseconds) {
  program::Outline outline;
  outline.streams = {"compute"};
  for (const double time : milliseconds) outline.ops.emplace_back().flop = time * 3.6e12;
  return outline;
}

OutlineOp small_all_reduce() {
  OutlineOp op;
  op.kind = program::OpKind::all_reduce;
  op.stream = 1;
  op.bytes = 1'000;
  return op;
}

constexpr units::Seconds usual_cost{1e-6};  // 200 us of work for each mark

TEST(Marks, TakeHalfAPercentOfTheTime) {
  const auto marked = [](const std::vector<double>& milliseconds, units::Seconds cost) {
    return executor::cuda::choose_marks(gemms(milliseconds), cost);
  };
  EXPECT_THAT(marked({0.3, 0.1, 0.09, 0.02, 0.3, 0.01, 0.4}, usual_cost),
              ElementsAre(true, true, false, false, true, true, false));
  EXPECT_THAT(marked({0.2, 0.2, 0.1}, usual_cost), IsEmpty());  // it is over soon
  EXPECT_THAT(marked({0.2, 0.2, 0.3}, usual_cost), ElementsAre(true, true, true));
  EXPECT_THAT(marked({0, 0, 0.1}, units::Seconds{0}), ElementsAre(true, true, true));
}

TEST(Marks, AreCountedByStream) {
  program::Outline outline = gemms({0.5, 0.5, 0.5});
  outline.streams.emplace_back("comm");
  outline.ops.insert(outline.ops.begin() + 1, small_all_reduce());
  outline.ops.push_back(small_all_reduce());
  EXPECT_THAT(executor::cuda::choose_marks(outline, usual_cost),
              ElementsAre(true, true, true, true, false));
}

/// fill, all_reduce on stream 1, fill that waits for it, all_reduce on stream 1.
Sketch alternating() {
  Sketch sketch;
  const Slice all = sketch.buffer<float>(64), other = sketch.buffer<float>(64);
  const std::uint32_t first = sketch.emit(program::Fill{.dst = all, .shard = {}});
  const std::uint32_t reduced =
      sketch.all_reduce(all, mesh::Axis::dp, 1, {{.stream = 0, .count = first}});
  sketch.emit(program::Fill{.dst = other, .shard = {}}, 0, {{.stream = 1, .count = reduced}});
  sketch.all_reduce(all, mesh::Axis::dp, 1);
  return sketch;
}

struct Stuck {
  Gpus gpus{};
  std::optional<Whereabouts> seen;

  std::unique_ptr<executor::Executor> executor(settings::Graph graph,
                                               std::optional<units::Seconds> cost) const {
    executor::CudaOptions options = Gpus::options(graph);
    options.mark_cost = cost;
    return gpus.executor(options);
  }

  /// Plays one pass, then three; looks where the session is once no call more than `calls` is done.
  void play(executor::Executor& executor, std::uint64_t calls) {
    Settings& settings = machine().settings;
    settings.failing_communicator = "dp on stream1";
    settings.failing_result = ncclSuccess;
    settings.failing_after = 1 + calls;  // the first is made when the session is
    const mesh::Shape mesh{.dp = gpus.world.size()};
    const auto session = executor.prepare(alternating().on(mesh), gpus.world);
    EXPECT_EQ(session->whereabouts(), (Whereabouts{.plays = 0}));
    session->play({.section = Section::step});
    EXPECT_EQ(session->whereabouts(), (Whereabouts{.plays = 1}));
    int polls = 0;
    settings.when_asked_why = [&] {
      constexpr int long_enough = 100;  // all is done by then that can be
      if (++polls < long_enough) return;
      seen = session->whereabouts();
      settings.failing_result = ncclRemoteError;
    };
    EXPECT_THROW(session->play({.times = 3}), base::Error);
    settings.when_asked_why = nullptr;
  }
};

TEST(Marks, TellPassAndOpOfEveryStream) {
  for (const auto graph : {settings::Graph::off, settings::Graph::on}) {
    Stuck stuck;
    const auto executor = stuck.executor(graph, units::Seconds{0});
    stuck.play(*executor, 2 + 2 + 1);  // the third pass stands at its last op
    EXPECT_EQ(stuck.seen,
              (Whereabouts{.plays = 3, .playing = true, .begun = {2, 3}, .next = {4, 4}}));
    EXPECT_GT(machine().marks, 0);
    stuck.play(*executor, 2 + 2);  // at its second
    EXPECT_EQ(stuck.seen,
              (Whereabouts{.plays = 3, .playing = true, .begun = {0, 1}, .next = {2, 3}}));
  }
}

TEST(Marks, AreNotWrittenWhereNobodyWatches) {
  Stuck stuck;
  stuck.play(*stuck.executor(settings::Graph::off, std::nullopt), 2 + 1);
  EXPECT_EQ(stuck.seen, (Whereabouts{.plays = 2, .playing = true}));
  EXPECT_EQ(machine().marks, 0);
}

TEST(Marks, AreNotWrittenByADriverThatCannot) {
  Stuck stuck;
  machine().settings.writes_values = false;
  testing::internal::CaptureStderr();
  stuck.play(*stuck.executor(settings::Graph::off, units::Seconds{0}), 2 + 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(StartsWith("isoscale: warning: "), HasSubstr("at which op its GPUs are")));
  EXPECT_EQ(stuck.seen, (Whereabouts{.plays = 2, .playing = true}));
  EXPECT_EQ(machine().marks, 0);
}

}  // namespace
}  // namespace isoscale::standin
