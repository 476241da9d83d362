// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Which algorithms multiply: alike on all ranks, and those that were given.

#include "base/error.hpp"
#include "tests/cuda/devices.hpp"
#include "tests/cuda/twin_requests.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::standin {
namespace {

using executor::GemmChoice;

class Choices : public OnGpus {
 protected:
  [[nodiscard]] std::unique_ptr<executor::Executor> executor_with(
      std::vector<GemmChoice> known) const {
    executor::CudaOptions options = Gpus::options();
    options.known_algorithms = std::move(known);
    return gpus_.executor(options);
  }

  /// Collective: every rank's algorithms by shape.
  [[nodiscard]] std::map<std::string, std::set<std::string>> all_of(
      const std::vector<GemmChoice>& mine) const {
    std::string lines, all;
    for (const GemmChoice& one : mine) lines += one.shape + "\n" + one.algorithm + "\n";
    for (const std::string& one : gpus_.world.gather(lines)) all += one;
    std::istringstream stream{gpus_.world.broadcast(all)};
    std::map<std::string, std::set<std::string>> algorithms;
    for (std::string shape, algorithm; std::getline(stream, shape);) {
      std::getline(stream, algorithm);
      algorithms[shape].insert(algorithm);
    }
    return algorithms;
  }

  /// Choices of an executor that knows some.
  [[nodiscard]] std::vector<GemmChoice> choices_of(std::vector<GemmChoice> known = {}) const {
    return executor_with(std::move(known))->prepare(set_, gpus_.world)->facts().gemm_choices;
  }

  [[nodiscard]] program::ProgramSet fp8_set(workloads::Options options) const {
    const auto request = gpu_twins::request_of({.dp = gpus_.world.size()}, program::Precision::fp8,
                                               std::move(options));
    return workloads::find_workload("hybrid").build(request.value());
  }

  program::ProgramSet set_ =
      runner::small_request_on("hybrid", {.tp = 2, .pp = gpus_.world.size() / 2}).second;
};

TEST_F(Choices, AreAlikeOnRanksThatWouldChooseOtherwise) {
  machine().settings.fastest_algorithm = gpus_.world.rank() % 3;
  const auto executor = executor_with({});
  const auto session = executor->prepare(set_, gpus_.world);
  const auto& mine = session->facts().gemm_choices;
  EXPECT_FALSE(mine.empty());
  for (const GemmChoice& choice : mine) EXPECT_EQ(choice.candidates, 3) << choice.shape;
  for (const auto& [shape, algorithms] : all_of(mine)) {
    EXPECT_EQ(algorithms.size(), 1U) << shape;
  }
  // A shape is decided once.
  const int timed = machine().matmuls;
  const auto again = executor->prepare(set_, gpus_.world);
  EXPECT_EQ(machine().matmuls, timed);
}

TEST_F(Choices, ThatRanksMadeAloneGiveWayToThoseOfTheLowestRank) {
  machine().settings.fastest_algorithm = gpus_.world.rank() % 3;
  const auto executor = executor_with({});
  const auto set_of = [](const mesh::Shape& mesh) {
    return runner::small_request_on("dp", mesh).second;
  };
  const comm::Communicator alone = gpus_.world.split(gpus_.world.rank(), 0);
  std::set<std::string> first;
  {
    const auto session = executor->prepare(set_of({}), alone);
    for (const auto& [shape, algorithms] : all_of(session->facts().gemm_choices)) {
      EXPECT_EQ(algorithms.size(), static_cast<std::size_t>(std::min(3, gpus_.world.size())));
      first.insert(shape);
    }
  }
  const auto session = executor->prepare(set_of({.dp = gpus_.world.size()}), gpus_.world);
  int again = 0;
  for (const auto& [shape, algorithms] : all_of(session->facts().gemm_choices)) {
    EXPECT_EQ(algorithms.size(), 1U) << shape;
    again += first.contains(shape) ? 1 : 0;
  }
  EXPECT_GT(again, 0);
}

TEST_F(Choices, OfSlowShapesAreMadeAmongFewer) {
  constexpr std::int64_t seconds = 1'000'000'000;
  machine().settings.matmul_cost = [](int, std::int64_t) { return 4 * seconds; };
  for (const GemmChoice& choice : choices_of()) EXPECT_EQ(choice.candidates, 1) << choice.shape;
  machine().settings.matmul_cost = nullptr;
}

/// Only the 100 shapes with the most work are timed.
TEST_F(Choices, OfManyShapesAreMadeForThoseWithTheMostWork) {
  constexpr std::uint32_t shapes = 104, timed = 100;
  executor::Sketch sketch;
  for (std::uint32_t rows = 1; rows <= shapes; ++rows) {
    sketch.emit(program::Gemm{.m = rows,
                              .n = 4,
                              .k = 4,
                              .a = sketch.matrix<float>(rows, 4),
                              .b = sketch.matrix<float>(4, 4),
                              .d = sketch.matrix<float>(rows, 4)});
  }
  const auto executor = executor_with({});
  const auto session = prepare(*executor, sketch);
  const auto& choices = session->facts().gemm_choices;
  EXPECT_EQ(choices.size(), shapes);
  for (const GemmChoice& choice : choices) {
    const auto rows = std::stoul(choice.shape.substr(std::string_view{"m="}.size()));
    EXPECT_EQ(choice.candidates, rows > shapes - timed ? 3 : 1) << choice.shape;
  }
}

/// An algorithm of the three that cuBLASLt offers.
int number_of(const GemmChoice& choice) {
  constexpr std::size_t digits = 16, at = 2 * digits;
  return std::stoi(choice.algorithm.substr(at, digits), nullptr, 16);
}

/// Times in us by algorithm, and what stretches them after so many us of work.
struct Clock {
  const char* name;
  std::array<std::int64_t, 3> costs;
  std::int64_t (*factor)(std::int64_t worked);  ///< percent
  int fastest;
};

TEST_F(Choices, AreTheFastestOnAnyClock) {
  for (const Clock& clock :
       {Clock{"rising",
              {1000, 1100, 1050},
              [](std::int64_t worked) -> std::int64_t { return worked < 60'000 ? 500 : 100; },
              0},
        // The limit of power is reached after a while: whoever was timed before looks faster.
        Clock{"falling",
              {1100, 1000, 1050},
              [](std::int64_t worked) -> std::int64_t { return worked < 7'000 ? 100 : 130; },
              1},
        Clock{"falling late",
              {1100, 1000, 1050},
              [](std::int64_t worked) -> std::int64_t { return worked < 115'000 ? 100 : 130; },
              1}}) {
    SCOPED_TRACE(clock.name);
    constexpr std::int64_t to_ns = 1000, percent = 100;
    const Gpus gpus;  // the time of its work begins at 0
    machine().settings.matmul_cost = [&](int algorithm, std::int64_t worked) {
      const std::int64_t cost = clock.costs.at(static_cast<std::size_t>(algorithm)) * to_ns;
      return cost * clock.factor(worked / to_ns) / percent;
    };
    for (const GemmChoice& choice : choices_of()) {
      EXPECT_EQ(number_of(choice), clock.fastest) << choice.shape;
      EXPECT_EQ(choice.candidates, 3) << choice.shape;
    }
    // 100 ms for all and 50 ms for each of three, by those that time anything.
    EXPECT_TRUE(machine().worked == 0 || machine().worked > 300'000'000) << machine().worked;
    machine().settings.matmul_cost = nullptr;
  }
}

TEST_F(Choices, OfFp8AreTimedOnProductsThatAreNotZero) {
  const auto executor = executor_with({});
  const auto session = executor->prepare(fp8_set({}), gpus_.world);
  EXPECT_THAT(session->facts().gemm_choices,
              Contains(testing::Field(&GemmChoice::shape, HasSubstr("e4m3"))));
  EXPECT_EQ(machine().scaled_by_zero, 0);
}

/// Only the first stage copies inputs from pageable memory, which a graph cannot do.
TEST_F(Choices, OfGraphsAreAlikeOnRanksWithAndWithoutPageableCopies) {
  auto executor = gpus_.executor(settings::Graph::on);
  for (const char* const input : {"pageable", "pinned"}) {
    const auto request = gpu_twins::request_of({.pp = gpus_.world.size()}, program::Precision::f32,
                                               {{"input", input}});
    const auto session =
        executor->prepare(workloads::find_workload("hybrid").build(request.value()), gpus_.world);
    machine().graph_launches = 0;
    session->play({.section = program::Section::setup});
    for (int i = 0; i < 2; ++i) session->play({.section = program::Section::step});
    const bool replays = input == std::string_view{"pinned"};
    EXPECT_EQ(session->facts().graph, replays);
    EXPECT_EQ(machine().graph_launches, replays ? 1 : 0);
  }
}

TEST_F(Choices, OfFp8TellApartHowProductsAreAdded) {
  const auto are_fast = [](const std::vector<GemmChoice>& choices, const char* operands) {
    std::set<bool> fast;
    for (const GemmChoice& choice : choices) {
      if (choice.shape.find(operands) == std::string::npos) continue;
      fast.insert(choice.shape.find(" added fast ") != std::string::npos);
    }
    return fast;
  };
  const std::map<std::string, std::pair<bool, bool>> expected{
      {"by-pass", {true, false}}, {"fast", {true, true}}, {"split", {false, false}}};
  const auto executor = executor_with({});
  for (const auto& [option, fast] : expected) {
    machine().added_fast = 0;
    const auto session = executor->prepare(fp8_set({{"fp8_accumulate", option}}), gpus_.world);
    const auto& choices = session->facts().gemm_choices;
    EXPECT_THAT(are_fast(choices, " e4m3*e4m3->"), ElementsAre(fast.first)) << option;
    EXPECT_THAT(are_fast(choices, "e5m2"), ElementsAre(fast.second)) << option;
    EXPECT_THAT(are_fast(choices, " bf16*bf16->"), ElementsAre(false)) << option;
    session->play({.section = program::Section::setup});
    session->play({.section = program::Section::step});
    EXPECT_EQ(machine().added_fast > 0, fast.first) << option;
  }
}

TEST_F(Choices, PassOverAnAlgorithmThatRefusesToRun) {
  machine().settings.broken_algorithm = machine().settings.fastest_algorithm;
  for (const GemmChoice& choice : choices_of()) {
    EXPECT_EQ(choice.candidates, 2) << choice.shape;
    EXPECT_EQ(choice.arithmetic, "FMA, f32 inputs, f32 sums") << choice.shape;
  }
}

TEST_F(Choices, ThatAreGivenAreUsed) {
  machine().settings.fastest_algorithm = 2;
  const auto first = choices_of();
  machine().settings.fastest_algorithm = 0;
  const int timed = machine().matmuls;
  const auto now = choices_of(first);
  EXPECT_EQ(machine().matmuls, timed);
  EXPECT_EQ(now.size(), first.size());
  for (std::size_t i = 0; i < std::min(now.size(), first.size()); ++i) {
    EXPECT_EQ(now[i].algorithm, first[i].algorithm);
    EXPECT_EQ(now[i].workspace, first[i].workspace);
    EXPECT_EQ(now[i].candidates, 0);
  }
}

TEST_F(Choices, WithoutRoomForTheirWorkspaceOnOneRankFailAll) {
  machine().settings.fastest_algorithm = 2;
  const auto known = choices_of();
  const auto executor = executor_with(known);
  const Alive before = machine().alive;
  const int last = gpus_.world.size() - 1;
  if (gpus_.world.rank() == last) {
    // Room for the arena and what communicators take, and for no workspace.
    machine().settings.gpu_memory =
        set_.of(last).arena_bytes[static_cast<std::size_t>(program::Space::device)] + 256;
  }
  EXPECT_THAT(
      executor::message_of<base::AgreedError>([&] { return executor->prepare(set_, gpus_.world); }),
      StartsWith(fmt::format("rank {}: not enough GPU memory", last)));
  EXPECT_EQ(machine().alive, before);
}

TEST_F(Choices, OfAnotherMachineAreRefusedByNameBeforeAnythingIsPlayed) {
  auto known = choices_of();
  for (GemmChoice& choice : known) choice.algorithm.assign(choice.algorithm.size(), '7');
  EXPECT_THAT(executor::message_of([&] { return choices_of(known); }),
              AllOf(HasSubstr("GEMM m="), HasSubstr("--gemm-algorithms")));
}

}  // namespace
}  // namespace isoscale::standin
