// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/soak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "program/match.hpp"
#include "program/op.hpp"
#include "runner/watch/calls_made.hpp"
#include "runner/watch/rank_runs.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

constexpr std::uint64_t least_replays = 3;  // two that differ need a third
constexpr std::int64_t alike = -1;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// When each op of a rank ends if every op takes one unit of time: what an op depends on, on any
/// rank, ends before it.
class UnitTimes {
 public:
  UnitTimes(const program::OutlineSet& set, int rank) : rank_(rank), ends(set.of(rank).ops.size()) {
    program::Matcher<UnitTimes>{set, program::Folding::as_streamed, 1, *this}.run();
  }
  static std::int64_t cost(int /*rank*/, std::uint32_t /*op*/) { return 1; }
  void span(int rank, std::uint32_t op, std::int64_t /*start*/, std::int64_t end) {
    if (rank == rank_) ends[op] = end;
  }
  static void step(int /*rank*/, int /*play*/, std::int64_t /*begin*/, std::int64_t /*end*/) {}

 private:
  int rank_;

 public:
  std::vector<std::int64_t> ends;
};

/// The sums that a rank's replays leave, and what they should be.
class Comparison {
 public:
  Comparison(const program::ProgramSet& set, const program::Sums& places,
             const comm::Communicator& point)
      : set_(set), places_(places), point_(point) {}

  /// Who differed first; nothing when all is as it was. Collective.
  std::optional<Differing> next(std::vector<Sum> sums) {
    if (reference_.empty()) reference_ = sums;
    const std::int64_t first = first_difference(reference_, sums);
    const std::vector<std::int64_t> of_rank = point_.all_gather(first);
    if (std::ranges::all_of(of_rank, [](std::int64_t op) { return op == alike; })) {
      is_confirmed_ = is_confirmed_ || is_compared_;
      is_compared_ = true;
      return std::nullopt;
    }
    if (!is_confirmed_ && !other_.empty() && agrees_with_other(sums)) {
      reference_ = std::exchange(other_, {});
      is_confirmed_ = true;
      return std::nullopt;  // what it was that differed has been told
    }
    if (!is_confirmed_) other_ = std::move(sums);
    return origin(first);
  }

 private:
  /// The first op, in program order, one of whose outputs differs.
  [[nodiscard]] std::int64_t first_difference(const std::vector<Sum>& a,
                                              const std::vector<Sum>& b) const {
    const auto at = std::ranges::mismatch(a, b).in1 - a.begin();
    return at == std::ssize(a) ? alike : places_.of[static_cast<std::size_t>(at)];
  }

  [[nodiscard]] bool agrees_with_other(const std::vector<Sum>& sums) const {
    const std::vector<std::int64_t> of_rank = point_.all_gather(first_difference(other_, sums));
    return std::ranges::all_of(of_rank, [](std::int64_t op) { return op == alike; });
  }

  /// What differs elsewhere depends on what differed first.
  [[nodiscard]] Differing origin(std::int64_t first) {
    if (ends_.empty()) {
      ends_ = UnitTimes{program::outline(set_, program::Section::step), point_.rank()}.ends;
    }
    const std::int64_t mine = first == alike ? never : ends_[static_cast<std::size_t>(first)];
    const std::vector<std::int64_t> ends = point_.all_gather(mine);
    const std::int64_t earliest = std::ranges::min(ends);
    Differing differing;
    for (int rank = 0; rank < point_.size(); ++rank) {
      if (ends[static_cast<std::size_t>(rank)] == earliest) differing.ranks.push_back(rank);
    }
    const int teller = differing.ranks.front();
    const std::string own = teller == point_.rank()
                                ? sentence(static_cast<std::uint32_t>(first), differing.ranks)
                                : std::string{};
    differing.sentence = point_.broadcast(own, teller);
    return differing;
  }

  /// "rank 2", "ranks 0-3": MPI's, of ranks of the point.
  [[nodiscard]] std::string named(const std::vector<int>& ranks) const {
    std::vector<int> world = point_.world_ranks(ranks);
    std::ranges::sort(world);
    return fmt::format("{} {}", world.size() == 1 ? "rank" : "ranks", ranks_text(world));
  }

  [[nodiscard]] std::string sentence(std::uint32_t op, const std::vector<int>& ranks) const {
    const program::Op& what = set_.of(point_.rank()).step().ops[op];
    const program::Outline outline =
        program::outline(set_.of(point_.rank()), program::Section::step, set_.mesh);
    const std::string text = op_text(outline.ops[op], set_.mesh);
    const std::string who = named(ranks);
    if (!program::communicates(program::kind_of(what.payload))) {
      return fmt::format("{} computed other bits from the same input: {}", who, text);
    }
    std::vector<int> partners = program::partners(what, set_.mesh, point_.rank());
    std::erase_if(partners,
                  [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); });
    if (partners.empty()) {
      return fmt::format(
          "{}, all that take part, hold other bits: {}; one of them, or what "
          "connects them",
          who, text);
    }
    return fmt::format("{} received other bits: {}, with {}, where nothing differs", who, text,
                       named(partners));
  }

  const program::ProgramSet& set_;
  const program::Sums& places_;
  const comm::Communicator& point_;
  std::vector<Sum> reference_, other_;  ///< the other is what differed before either was confirmed
  bool is_compared_ = false, is_confirmed_ = false;
  std::vector<std::int64_t> ends_;  ///< of the step's ops
};

}  // namespace

Soak::Soak(program::ProgramSet& set, const StepCheck& check, std::uint64_t seed)
    : set_(set), check_(check), replay_(program::add_replay(set)), draw_(seed) {}

/// A bit of an element of any output of the step.
StepCheck::Flip Soak::drawn_flip(const program::RankProgram& program, const program::Sums& places) {
  const auto below = [&](std::uint64_t count) {
    return std::uniform_int_distribution<std::uint64_t>{0, count - 1}(draw_);
  };
  StepCheck::Flip flip{.checksum = below(places.of.size())};
  for (const program::Op& op : program.section(check_.checked().section).ops) {
    const auto* const sum = std::get_if<program::Checksum>(&op.payload);
    if (sum == nullptr || sum->sum.offset != 2 * flip.checksum) continue;
    flip.element = below(std::uint64_t{sum->batch} * sum->rows * sum->columns);
    const program::DType type = program.buffers[sum->src.slice.buffer].dtype;
    flip.mask = std::uint64_t{1} << below(8 * program::element_size(type));
  }
  return flip;
}

SoakResult Soak::run(executor::Session& session, const comm::Communicator& point,
                     const SoakEnd& end, const std::function<void(const SoakResult&)>& on_replay) {
  const units::Nanoseconds begin = comm::now();
  const program::Sums& places =
      check_.checked().sums[set_.program_of_rank[static_cast<std::size_t>(point.rank())]];
  session.play(replay_.save, executor::Trace::off);
  Comparison comparison{set_, places, point};
  SoakResult result;
  bool goes_on = true;
  while (goes_on) {
    ++result.replays;
    session.play(replay_.restore, executor::Trace::off);
    std::optional<StepCheck::Flip> flip;
    if (places.flips != program::no_buffer && result.replays % 2 == 0) {
      flip = drawn_flip(set_.of(point.rank()), places);
    }
    if (auto differing = comparison.next(check_.play(session, point.rank(), flip))) {
      differing->replay = result.replays;
      result.differing.push_back(std::move(*differing));
    }
    result.time = units::to_seconds(comm::now() - begin);
    on_replay(result);
    const bool is_early = result.replays < least_replays || result.time < end.time;
    goes_on = point.broadcast(std::int64_t{is_early ? 1 : 0}) != 0 && result.replays < end.replays;
  }
  session.play(replay_.restore, executor::Trace::off);
  return result;
}

std::string soak_text(const SoakResult& result) {
  const std::string whole =
      fmt::format("{} replays of one step in {}", result.replays, units::format(result.time));
  if (result.differing.empty()) return whole + " left the same bits";
  const Differing& first = result.differing.front();
  std::string text = fmt::format("{} of {} differ; in replay {} {}", result.differing.size(), whole,
                                 first.replay, first.sentence);
  if (result.replays >= 8 && 4 * result.differing.size() > 3 * result.replays) {
    text += "; since almost all differ, the step may not be repeatable here at all";
  }
  return text;
}

}  // namespace isoscale::runner
