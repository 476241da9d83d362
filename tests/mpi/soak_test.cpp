// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Bits flipped in replayed steps are all found, and on the right rank; nothing is where none are.
// ISOSCALE_FLIPS: how many are flipped in all.
#include <gmock/gmock.h>

#include <cstdlib>

#include "executor/executor.hpp"
#include "executor/host/host.hpp"
#include "runner/measure/step_check.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::uint64_t wanted_flips() {
  const char* const text = std::getenv("ISOSCALE_FLIPS");
  return text == nullptr ? 24 : std::stoull(text);
}

struct Soaked {
  Soaked(const char* workload, const mesh::Shape& mesh, const comm::Communicator& point,
         std::optional<int> flipping, std::uint64_t seed)
      : set(small_request_on(workload, mesh).second) {
    check.emplace(set, flipping);
    soak.emplace(set, *check, seed);
    session = executor->prepare(set, point);
    session->play(program::Section::setup, executor::Trace::off);
    session->play(program::Section::step, executor::Trace::off);
  }

  program::ProgramSet set;
  std::optional<measure::StepCheck> check;
  std::optional<measure::Soak> soak;
  std::unique_ptr<executor::Executor> executor =
      executor::make_host_executor({.streams = executor::HostStreams::folded});
  std::unique_ptr<executor::Session> session;
};

std::vector<std::pair<const char*, mesh::Shape>> kinds(int ranks) {
  std::vector<std::pair<const char*, mesh::Shape>> all{
      {"dp", {.dp = ranks}}, {"tp", {.tp = ranks}}, {"pp", {.pp = ranks}}};
  if (ranks == 4) all.push_back({"hybrid", {.tp = 2, .dp = 2}});
  return all;
}

TEST(Soak, FindsEveryFlippedBitOnItsRankAndNothingElse) {
  const auto world = comm::Communicator::world();
  const auto points = kinds(world.size());
  const std::uint64_t each = (wanted_flips() + 2 * points.size() - 1) / (2 * points.size());
  std::uint64_t flipped = 0, clean = 0;
  for (const auto& [workload, mesh] : points) {
    for (const int flipping : {0, world.size() - 1}) {
      SCOPED_TRACE(testing::Message() << workload << " " << flipping);
      Soaked soaked{workload, mesh, world, flipping, 17 + flipped};
      const measure::SoakResult result =
          soaked.soak->run(*soaked.session, world,
                           {.time = units::Seconds{3600}, .replays = 2 * each}, [](auto&) {});
      ASSERT_EQ(result.replays, 2 * each);
      ASSERT_EQ(result.differing.size(), each);
      for (std::size_t i = 0; i < each; ++i) {
        EXPECT_EQ(result.differing[i].replay, 2 * (i + 1));
        EXPECT_THAT(result.differing[i].ranks, ElementsAre(flipping))
            << result.differing[i].sentence;
      }
      flipped += each;
      clean += each;
    }
  }
  if (world.rank() == 0) {
    testing::Test::RecordProperty("flipped", std::to_string(flipped));
    std::printf("%lu of %lu flipped bits found, none in %lu clean replays\n", flipped, flipped,
                clean);
  }
}

TEST(Soak, FindsNothingWhereNothingIsWrong) {
  const auto world = comm::Communicator::world();
  for (const auto& [workload, mesh] : kinds(world.size())) {
    Soaked soaked{workload, mesh, world, std::nullopt, 1};
    const measure::SoakResult result = soaked.soak->run(
        *soaked.session, world, {.time = units::Seconds{3600}, .replays = 10}, [](auto&) {});
    EXPECT_EQ(result.replays, 10U);
    EXPECT_THAT(result.differing, IsEmpty()) << workload << ": " << measure::soak_text(result);
    EXPECT_THAT(measure::soak_text(result), HasSubstr("left the same bits"));
  }
}

TEST(Soak, EndsInTimeAndLeavesTheStateAsItWas) {
  const auto world = comm::Communicator::world();
  Soaked soaked{"dp", {.dp = world.size()}, world, std::nullopt, 1};
  const program::RankProgram& program = soaked.set.of(world.rank());
  const auto weights = [&] {
    std::vector<std::byte> all;
    for (program::BufferId id = 0; id < program.buffers.size(); ++id) {
      if (program.buffers[id].role != program::Role::weight) continue;
      std::vector<std::byte> raw(program.buffers[id].count *
                                 program::element_size(program.buffers[id].dtype));
      soaked.session->read({.buffer = id, .count = program.buffers[id].count}, raw);
      all.insert(all.end(), raw.begin(), raw.end());
    }
    return all;
  };
  const std::vector<std::byte> before = weights();
  const measure::SoakResult result =
      soaked.soak->run(*soaked.session, world, {.time = units::Seconds{0.2}}, [](auto&) {});
  if (world.rank() == 0) {  // its clock decides
    EXPECT_GE(result.time.value(), 0.2);
  }
  EXPECT_GT(result.replays, 0U);
  EXPECT_EQ(weights(), before);
}

TEST(Soak, NamesTheRankInTheWorld) {
  const auto world = comm::Communicator::world();
  const auto point = world.split(0, -world.rank());
  Soaked soaked{"dp", {.dp = world.size()}, point, 0, 7};
  const measure::SoakResult result = soaked.soak->run(
      *soaked.session, point, {.time = units::Seconds{3600}, .replays = 2}, [](auto&) {});
  ASSERT_EQ(result.differing.size(), 1U);
  EXPECT_THAT(result.differing[0].ranks, ElementsAre(0));
  EXPECT_THAT(result.differing[0].sentence,
              testing::StartsWith("rank " + std::to_string(world.size() - 1) + " "));
}

/// A rank whose arithmetic goes wrong once, in the first replay, which all others are held against.
class OnceWrong final : public executor::ForwardingSession {
 public:
  OnceWrong(std::unique_ptr<Session> inner, program::Section checked, program::Slice weight)
      : ForwardingSession(std::move(inner)), checked_(checked), weight_(weight) {}

  using Session::play;
  executor::PlayTime play(const executor::Play& what) override {
    if (what.section == checked_ && ++plays_ == 1) {
      std::vector<std::byte> raw(4);
      read(weight_, raw);
      raw[2] ^= std::byte{16};
      write(weight_, raw);
    }
    return ForwardingSession::play(what);
  }

 private:
  program::Section checked_;
  program::Slice weight_;
  int plays_ = 0;
};

TEST(Soak, AFirstReplayThatIsWrongIsOneThatDiffers) {
  const auto world = comm::Communicator::world();
  Soaked soaked{"dp", {.dp = world.size()}, world, std::nullopt, 1};
  const auto& buffers = soaked.set.of(world.rank()).buffers;
  program::BufferId weights = 0;
  while (buffers[weights].role != program::Role::weight) ++weights;
  std::unique_ptr<executor::Session> session = std::move(soaked.session);
  if (world.rank() == 1) {
    session =
        std::make_unique<OnceWrong>(std::move(session), soaked.check->checked().section,
                                    program::Slice{.buffer = weights, .offset = 3, .count = 1});
  }
  const measure::SoakResult result =
      soaked.soak->run(*session, world, {.time = units::Seconds{3600}, .replays = 8}, [](auto&) {});
  ASSERT_EQ(result.differing.size(), 1U) << measure::soak_text(result);
  EXPECT_EQ(result.differing[0].replay, 2U);
  EXPECT_THAT(result.differing[0].ranks, ElementsAre(1));
}

}  // namespace
}  // namespace isoscale::runner
