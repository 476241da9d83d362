// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Bits flipped in replayed steps are all found, and on the right rank; nothing is where none are.
// ISOSCALE_FLIPS: how many are flipped in all.

#include "runner/measure/step_checksums_and_soak.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::runner {
namespace {

using measure::SoakResult;

constexpr units::Seconds hour{3600};

std::uint64_t wanted_flips() {
  const char* const text = std::getenv("ISOSCALE_FLIPS");
  return text == nullptr ? 24 : std::stoull(text);
}

/// A point of small steps, played once, whose replays are compared.
struct Soaked {
  Soaked(const char* workload, const mesh::Shape& mesh, comm::Communicator on,
         const std::vector<int>& flipping = {}, std::uint64_t seed = 1)
      : set(small_request_on(workload, mesh).second), point(std::move(on)) {
    check.emplace(set, flipping);
    soak.emplace(set, *check, seed);
    session = executor->prepare(set, point);
    session->play({.section = program::Section::setup});
    session->play({.section = program::Section::step});
  }
  measure::SoakResult run(const measure::SoakEnd& end) {
    return soak->run(*session, point, end, [](auto&) {});
  }

  program::ProgramSet set;
  comm::Communicator point;
  std::optional<measure::StepCheck> check;
  std::optional<measure::Soak> soak;
  std::unique_ptr<executor::Executor> executor =
      executor::make_host_executor({.streams = executor::HostStreams::folded});
  executor::SessionPtr session;
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
  std::uint64_t flipped = 0;
  for (const auto& [workload, mesh] : points) {
    for (const int flipping : {0, world.size() - 1}) {
      SCOPED_TRACE(testing::Message() << workload << " " << flipping);
      const SoakResult result =
          Soaked{workload, mesh, comm::Communicator::world(), {flipping}, 17 + flipped}.run(
              {.time = hour, .replays = 2 * each});
      ASSERT_EQ(result.replays, 2 * each);
      ASSERT_EQ(result.differing.size(), each);
      for (std::size_t i = 0; i < each; ++i) {
        EXPECT_EQ(result.differing[i].replay, 2 * (i + 1));
        EXPECT_THAT(result.differing[i].ranks, ElementsAre(flipping))
            << result.differing[i].sentence;
      }
      flipped += each;
    }
  }
}

/// Ranks with the same program draw the same bits, so that their results differ at the same op.
TEST(Soak, FindsTheBitsThatAreFlippedOnTwoRanks) {
  const auto world = comm::Communicator::world();
  const int last = world.size() - 1;
  const SoakResult result =
      Soaked{"dp", {.dp = world.size()}, comm::Communicator::world(), {0, last}, 7}.run(
          {.time = hour, .replays = 8});
  ASSERT_EQ(result.differing.size(), 4U);
  for (const measure::Differing& at : result.differing) {
    EXPECT_THAT(at.ranks, ElementsAre(0, last)) << at.sentence;
  }
}

TEST(Soak, EndsInTimeAndLeavesTheStateAsItWas) {
  const auto world = comm::Communicator::world();
  Soaked soaked{"dp", {.dp = world.size()}, comm::Communicator::world()};
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
  const SoakResult result = soaked.run({.time = units::Seconds{0.2}});
  if (world.rank() == 0) {  // its clock decides
    EXPECT_GE(result.time.value(), 0.2);
  }
  EXPECT_GT(result.replays, 0U);
  EXPECT_EQ(weights(), before);
}

TEST(Soak, NamesTheRankInTheWorld) {
  const auto world = comm::Communicator::world();
  const mesh::Shape mesh{.dp = world.size()};
  const SoakResult result =
      Soaked{"dp", mesh, world.split(0, -world.rank()), {0}, 7}.run({.time = hour, .replays = 2});
  ASSERT_EQ(result.differing.size(), 1U);
  EXPECT_THAT(result.differing[0].ranks, ElementsAre(0));
  EXPECT_THAT(result.differing[0].sentence,
              StartsWith("rank " + std::to_string(world.size() - 1) + " "));
}

/// A rank's arithmetic goes wrong once, in the first replay, which all others are held against.
TEST(Soak, AFirstReplayThatIsWrongIsOneThatDiffers) {
  const auto world = comm::Communicator::world();
  Soaked soaked{"dp", {.dp = world.size()}, comm::Communicator::world()};
  if (world.rank() == 1) {
    const program::Slice weight{.buffer = weights_of(soaked.set.of(1)), .offset = 3, .count = 1};
    executor::Session& inner = *soaked.session;
    soaked.session = std::make_unique<HookedSession>(
        std::move(soaked.session), [&, weight, plays = 0](const executor::Play& what) mutable {
          if (what.section != soaked.check->checked().section || ++plays != 1) return;
          std::vector<std::byte> raw(4);
          inner.read(weight, raw);
          raw[2] ^= std::byte{16};
          inner.write(weight, raw);
        });
  }
  const SoakResult result = soaked.run({.time = hour, .replays = 8});
  ASSERT_EQ(result.differing.size(), 1U) << measure::soak_text(result);
  EXPECT_EQ(result.differing[0].replay, 2U);
  EXPECT_THAT(result.differing[0].ranks, ElementsAre(1));
}

}  // namespace
}  // namespace isoscale::runner
