// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/step_checksums_and_soak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"
#include "program/operands.hpp"
#include "program/play_all_ranks.hpp"
#include "runner/watch/rank_state.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner::measure {
namespace {

using program::Collective;
using program::CollectiveKind;

std::vector<Sum> read_sums(executor::Session& session, const program::Sums& sums) {
  std::vector<Sum> result(sums.of.size());
  static_assert(sizeof(Sum) == 2 * sizeof(std::uint64_t));
  if (result.empty()) return result;
  session.read({.buffer = sums.buffer, .count = 2 * result.size()},
               std::as_writable_bytes(std::span{result}));
  return result;
}

/// If the op is a collective that gives the same result to all members of its group, returns the
/// axes of the group; absent for any other op.
std::optional<mesh::AxisSet> shared_axes(const program::Op& op) {
  const auto* collective = std::get_if<Collective>(&op.payload);
  if (collective == nullptr) return std::nullopt;
  switch (collective->kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
      return collective->axes;
    default:
      return std::nullopt;
  }
}

std::vector<mesh::AxisSet> all_shared_axes(const program::ProgramSet& set) {
  std::set<mesh::AxisSet> found;
  for (const program::RankProgram& program : set.programs) {
    for (const program::Op& op : program.step().ops) {
      if (const auto axes = shared_axes(op)) found.insert(*axes);
    }
  }
  return {found.begin(), found.end()};
}

/// Returns a single number that depends on all sums, so that comparing it compares all of them.
std::uint64_t digest_of(std::span<const Sum> sums) {
  std::uint64_t digest = 0;
  for (const Sum& sum : sums) digest = program::checksum_term(sum.bits, digest + sum.not_finite);
  return digest;
}

bool all_equal(const std::vector<std::uint64_t>& values) {
  return std::ranges::all_of(values, [&](std::uint64_t value) { return value == values[0]; });
}

/// Collective: returns the index of the first checksum in which `members` differ; absent if none.
std::optional<std::size_t> first_unlike(const std::vector<Sum>& sums,
                                        const comm::Communicator& members) {
  const auto alike = [&](std::size_t count) {
    return all_equal(members.all_gather(digest_of(std::span{sums}.first(count))));
  };
  if (alike(sums.size())) return std::nullopt;
  // Members agree on the first `low` sums, but not on the first `high`.
  std::size_t low = 0, high = sums.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (alike(middle) ? low : high) = middle;
  }
  return low;
}

/// Returns a clause that names the ranks whose value differs from that of the majority, or all
/// ranks if there is no majority. `values[i]` is the value of rank `ranks[i]` of the launch.
std::string holders_text(const std::vector<std::uint64_t>& values, std::vector<int> ranks) {
  std::map<std::uint64_t, std::vector<int>> holders;
  for (std::size_t i = 0; i < values.size(); ++i) holders[values[i]].push_back(ranks[i]);
  for (auto& [value, held_by] : holders) std::ranges::sort(held_by);
  std::ranges::sort(ranks);
  const auto most =
      std::ranges::max_element(holders, {}, [](const auto& entry) { return entry.second.size(); });
  if (2 * most->second.size() <= ranks.size()) {
    return fmt::format("ranks {} hold different bits", base::ranges_text(ranks));
  }
  std::vector<int> others;
  for (const auto& [value, held_by] : holders) {
    if (value != most->first) others.insert(others.end(), held_by.begin(), held_by.end());
  }
  std::ranges::sort(others);
  return fmt::format("{} {} other bits than ranks {}", others.size() == 1 ? "rank" : "ranks",
                     base::ranges_text(others) + (others.size() == 1 ? " holds" : " hold"),
                     base::ranges_text(most->second));
}

/// Returns the axes along which all ranks should hold the same weights after a step: dp, cp and, if
/// the step has no experts, ep. Axes along which the step gathers weights are left out: either the
/// weights are sharded along them, or the step begins by gathering the updates of the previous
/// step, so that its own updates are not gathered yet when it ends. But axes along which it gathers
/// weights in place after the update are kept, since the weights are then equal again.
mesh::AxisSet replica_axes(const program::RankProgram& program) {
  const bool has_experts = std::ranges::any_of(program.step().ops, [](const program::Op& op) {
    const auto* collective = std::get_if<Collective>(&op.payload);
    return collective != nullptr && collective->kind == CollectiveKind::all_to_all;
  });
  mesh::AxisSet replicas{mesh::Axis::cp, mesh::Axis::dp};
  if (!has_experts) replicas |= mesh::Axis::ep;
  bool has_updated = false;
  for (const program::Op& op : program.step().ops) {
    has_updated = has_updated || std::holds_alternative<program::Update>(op.payload);
    const auto* gather = std::get_if<Collective>(&op.payload);
    if (gather == nullptr || gather->kind != CollectiveKind::all_gather) continue;
    const bool gathers_weights = program.buffers[gather->send.buffer].role == program::Role::weight;
    const bool is_in_place = gather->send.buffer == gather->receive.buffer;
    if (gathers_weights && !(is_in_place && has_updated)) return replicas - gather->axes;
  }
  return replicas;
}

/// Calls visit(bits, index) for each element of a buffer, which is read in blocks to save memory.
template <class Visit>
void visit_elements(executor::Session& session, program::BufferId id, const program::Buffer& buffer,
                    const Visit& visit) {
  constexpr std::uint64_t block = std::uint64_t{1} << 20U;  // elements read at a time
  const std::uint64_t size = program::element_size(buffer.dtype);
  std::vector<std::byte> raw;
  for (std::uint64_t first = 0; first < buffer.count; first += block) {
    const std::uint64_t count = std::min(block, buffer.count - first);
    raw.resize(count * size);
    session.read({.buffer = id, .offset = first, .count = count}, raw);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, raw.data() + i * size, size);
      visit(bits, first + i);
    }
  }
}

/// Computes on the host what a Checksum op would compute, for memory that such an op cannot read.
Sum sum_on_host(executor::Session& session, program::BufferId id, const program::Buffer& buffer) {
  const std::uint64_t mask = program::exponent_mask(buffer.dtype);
  Sum sum;
  visit_elements(session, id, buffer, [&](std::uint64_t bits, std::uint64_t index) {
    sum.bits += program::checksum_term(bits, index);
    sum.not_finite += program::is_finite(bits, mask) ? 0 : 1;
  });
  return sum;
}

/// Returns a clause that names the first op of the step that uses an element of a weight buffer; ""
/// if no op does. The op tells the layer, since one buffer holds the weights of all layers.
std::string user_text(const program::ProgramSet& set, int rank, program::BufferId id,
                      std::uint64_t element) {
  const program::RankProgram& program = set.of(rank);
  const mesh::Coordinates at = mesh::coordinates(set.mesh, rank);
  for (std::size_t i = 0; i < program.step().ops.size(); ++i) {
    bool touches = false;
    program::for_each_slice(
        program.step().ops[i].payload, [&](const program::Slice& slice, program::Mode) {
          const std::uint64_t first = slice.first(at);
          touches |= slice.buffer == id && first <= element && element < first + slice.count;
        });
    if (!touches) continue;
    const program::Outline outline = program::outline(program, program::Section::step, set.mesh);
    return fmt::format(": the first op that uses it is {}",
                       watch::op_text(outline.ops[i], set.mesh));
  }
  return "";
}

constexpr std::uint64_t least_replays = 3;  // if two replays differ, a third shows which is right
constexpr std::int64_t alike = -1;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Simulates the step with ops that each take one unit of time. `ends` has the time at which each
/// op of one rank ends. An op ends later than all ops on which it depends, on any rank.
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

/// Compares the checksums of each replay of a step with a reference: the checksums of the first
/// replay or, if later ones show that the first was wrong, those on which two replays agree.
class ReplayComparison {
 public:
  ReplayComparison(const program::ProgramSet& set, const program::Sums& places,
                   const comm::Communicator& point)
      : set_(set), places_(places), point_(point) {}

  /// Collective: compares the checksums of one more replay with the reference. Returns the ranks on
  /// which an op's result differed before any other did. Absent if nothing differs, or if this
  /// replay agrees with an earlier one that differed, so that the reference was wrong.
  std::optional<Differing> next(std::vector<Sum> sums) {
    if (reference_.empty()) reference_ = sums;
    const std::int64_t first = first_difference(reference_, sums);
    const std::vector<std::int64_t> of_rank = point_.all_gather(first);
    if (all_alike(of_rank)) {
      is_confirmed_ = is_confirmed_ || is_compared_;
      is_compared_ = true;
      return std::nullopt;
    }
    const bool may_agree = !is_confirmed_ && !other_.empty();
    if (may_agree && all_alike(point_.all_gather(first_difference(other_, sums)))) {
      reference_ = std::exchange(other_, {});
      is_confirmed_ = true;
      return std::nullopt;  // the earlier reference was wrong and has been reported
    }
    if (!is_confirmed_) other_ = std::move(sums);
    return origin(first);
  }

 private:
  /// Returns the index of the first op in the program whose result differs, or `alike`.
  [[nodiscard]] std::int64_t first_difference(const std::vector<Sum>& a,
                                              const std::vector<Sum>& b) const {
    const auto at = std::ranges::mismatch(a, b).in1 - a.begin();
    return at == std::ssize(a) ? alike : places_.of[static_cast<std::size_t>(at)];
  }

  static bool all_alike(const std::vector<std::int64_t>& of_rank) {
    return std::ranges::all_of(of_rank, [](std::int64_t op) { return op == alike; });
  }

  /// Collective: finds the earliest op, over all ranks, whose result differs, and the ranks on
  /// which it differs. Later differences are assumed to be its consequences. `first` is the index
  /// of the first differing op on this rank, or `alike`.
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

  /// Returns ranks of the point as text, with their ranks in MPI_COMM_WORLD: "rank 2", "ranks 0-3".
  [[nodiscard]] std::string named(const std::vector<int>& ranks) const {
    std::vector<int> world = point_.world_ranks(ranks);
    std::ranges::sort(world);
    return fmt::format("{} {}", world.size() == 1 ? "rank" : "ranks", base::ranges_text(world));
  }

  [[nodiscard]] std::string sentence(std::uint32_t op, const std::vector<int>& ranks) const {
    const program::Op& what = set_.of(point_.rank()).step().ops[op];
    const program::Outline outline =
        program::outline(set_.of(point_.rank()), program::Section::step, set_.mesh);
    const std::string text = watch::op_text(outline.ops[op], set_.mesh);
    const std::string who = named(ranks);
    if (!program::communicates(program::kind_of(what.payload))) {
      return fmt::format("{} computed other bits from the same input: {}", who, text);
    }
    std::vector<int> partners = program::partners(what, set_.mesh, point_.rank());
    std::erase_if(partners,
                  [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); });
    if (partners.empty()) {
      return fmt::format(
          "{}, which are all participants, have other bits: {}; a rank or a link is faulty", who,
          text);
    }
    return fmt::format("{} received other bits: {}, with {}, where nothing differs", who, text,
                       named(partners));
  }

  const program::ProgramSet& set_;
  const program::Sums& places_;
  const comm::Communicator& point_;
  /// `reference_` has the checksums of the first replay or, if it was wrong, those on which two
  /// later replays agree. Until two replays agree, the reference itself may be wrong; `other_`
  /// keeps the checksums of the last replay that differed from it.
  std::vector<Sum> reference_, other_;
  bool is_compared_ = false, is_confirmed_ = false;
  std::vector<std::int64_t> ends_;  ///< end of each op of the step, see UnitTimes
};

}  // namespace

StepCheck::StepCheck(program::ProgramSet& set, std::span<const int> flipping) : set_(set) {
  shared_axes_ = all_shared_axes(set);
  checked_ = program::add_checked_step(set, flipping);
  weights_ = program::add_weight_check(set);
}

void StepCheck::found(const comm::Communicator& point, const std::string& problem) {
  const comm::Vote vote = comm::all_ok(point, problem);
  if (problem_.empty()) problem_ = vote.why;
}

std::string StepCheck::unlike_members(const std::vector<Sum>& sums,
                                      const comm::Communicator& point) const {
  const program::RankProgram& program = set_.of(point.rank());
  const program::Sums& places =
      checked_.sums[set_.program_of_rank[static_cast<std::size_t>(point.rank())]];
  std::string problem;
  for (const mesh::AxisSet axes : shared_axes_) {
    const std::vector<int> ranks = mesh::group_members(set_.mesh, point.rank(), axes);
    const comm::Communicator members = point.split(ranks.front(), point.rank());
    if (members.size() < 2) continue;
    // All members must list the checksums in the same order. They call collectives in the same
    // order on each stream, but not necessarily across streams, so the list is sorted by stream.
    std::vector<std::size_t> shared;
    for (std::size_t i = 0; i < places.of.size(); ++i) {
      if (shared_axes(program.step().ops[places.of[i]]) == axes) shared.push_back(i);
    }
    std::ranges::stable_sort(
        shared, {}, [&](std::size_t i) { return program.step().ops[places.of[i]].stream; });
    std::vector<Sum> mine;
    for (const std::size_t i : shared) mine.push_back(sums[i]);
    const std::optional<std::size_t> unlike = first_unlike(mine, members);
    if (!unlike) continue;
    const auto held = members.all_gather(mine[*unlike].bits);
    const program::Outline outline = program::outline(program, program::Section::step, set_.mesh);
    if (!problem.empty()) continue;
    problem =
        fmt::format("of {}, {}", watch::op_text(outline.ops[places.of[shared[*unlike]]], set_.mesh),
                    holders_text(held, point.world_ranks(ranks)));
  }
  return problem;
}

std::vector<Sum> StepCheck::play(executor::Session& session, int rank,
                                 const std::optional<Flip>& flip) const {
  const program::Sums& places = checked_.sums[set_.program_of_rank[static_cast<std::size_t>(rank)]];
  if (places.flips != program::no_buffer && !places.of.empty()) {
    std::vector<std::uint64_t> words(2 * places.of.size());
    if (flip) {
      words[2 * flip->checksum] = flip->element;
      words[2 * flip->checksum + 1] = flip->mask;
    }
    session.write({.buffer = places.flips, .count = words.size()}, std::as_bytes(std::span{words}));
  }
  session.play({.section = checked_.section});
  return read_sums(session, places);
}

void StepCheck::step(executor::Session& session, const comm::Communicator& point) {
  const std::vector<Sum> sums = play(session, point.rank());
  ++steps_;
  found(point, unlike_members(sums, point));
  weights(session, point);
}

void StepCheck::weights(executor::Session& session, const comm::Communicator& point) {
  session.play({.section = weights_.section});
  const std::size_t mine = set_.program_of_rank[static_cast<std::size_t>(point.rank())];
  std::vector<Sum> sums = read_sums(session, weights_.sums[mine]);
  std::vector<program::BufferId> summed = weights_.sums[mine].of;
  const program::RankProgram& program = set_.programs[mine];
  for (program::BufferId id = 0; id < program.buffers.size(); ++id) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.role != program::Role::weight || program::has_checksum(buffer)) continue;
    sums.push_back(sum_on_host(session, id, buffer));
    summed.push_back(id);
  }
  const auto bad = std::ranges::find_if(sums, [](const Sum& sum) { return sum.not_finite > 0; });
  found(point, bad == sums.end()
                   ? ""
                   : not_finite(session, point.rank(),
                                summed[static_cast<std::size_t>(bad - sums.begin())]));
  const std::vector<std::uint64_t> of_rank = point.all_gather(digest_of(sums));
  const mesh::AxisSet axes = replica_axes(set_.of(point.rank()));
  const std::vector<int> replicas = mesh::group_members(set_.mesh, point.rank(), axes);
  std::vector<std::uint64_t> held;
  for (const int replica : replicas) held.push_back(of_rank[static_cast<std::size_t>(replica)]);
  found(point, all_equal(held) ? ""
                               : fmt::format("after a step the weights of replicas differ: {}",
                                             holders_text(held, point.world_ranks(replicas))));
}

std::string StepCheck::not_finite(executor::Session& session, int rank,
                                  program::BufferId id) const {
  const program::Buffer& buffer = set_.of(rank).buffers[id];
  const std::uint64_t mask = program::exponent_mask(buffer.dtype);
  std::optional<std::uint64_t> first;
  visit_elements(session, id, buffer, [&](std::uint64_t bits, std::uint64_t index) {
    if (!first && !program::is_finite(bits, mask)) first = index;
  });
  return "a weight is not finite after a step" + (first ? user_text(set_, rank, id, *first) : "");
}

Verdict StepCheck::verdict() const {
  if (!problem_.empty()) return {false, problem_};
  const mesh::AxisSet axes = replica_axes(set_.programs.front());
  const bool has_replicas_along_ep = set_.mesh.ep > 1 && axes.contains(mesh::Axis::ep);
  std::string detail =
      axes.contains(mesh::Axis::dp)
          ? fmt::format("weights finite and {} replicas bit-identical after the timed steps",
                        has_replicas_along_ep ? "dp and ep" : "dp")
          : "weights finite after the timed steps; each dp rank has its own part";
  if (steps_ > 0 && !shared_axes_.empty()) {
    detail += "; in the first and the last step all members of a collective held the same bits";
  }
  return {true, std::move(detail)};
}

Soak::Soak(program::ProgramSet& set, const StepCheck& check, std::uint64_t seed)
    : set_(set), check_(check), replay_(program::add_replay(set)), draw_(seed) {}

/// Draws the bit that is to be flipped: in a random element of a random result of the step.
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
  session.play({.section = replay_.save});
  ReplayComparison comparison{set_, places, point};
  SoakResult result;
  bool goes_on = true;
  while (goes_on) {
    ++result.replays;
    session.play({.section = replay_.restore});
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
    goes_on = point.broadcast(is_early) && result.replays < end.replays;
  }
  session.play({.section = replay_.restore});
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

}  // namespace isoscale::runner::measure
