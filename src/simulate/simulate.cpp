// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/simulate.hpp"

#include <utility>

#include "program/match.hpp"
#include "simulate/layout.hpp"

namespace isoscale::simulate {
namespace {

class Recorder {
 public:
  Recorder(const program::OutlineSet& set, const Costs& costs, const Options& options)
      : set_(set), costs_(costs), plays_(at(options.plays)) {
    current_.resize(at(set.mesh.size()));
    for (auto& timeline : plays_) timeline.ranks.resize(current_.size());
    for (int rank = 0; rank < set.mesh.size(); ++rank) reset(rank);
  }

  [[nodiscard]] std::int64_t cost(int rank, std::uint32_t op) const {
    return costs_.tables[costs_.table_of_rank[at(rank)]][op].value();
  }

  void span(int rank, std::uint32_t op, std::int64_t start, std::int64_t end) {
    current_[at(rank)][op] = {
        .op = op, .start = units::Nanoseconds{start}, .end = units::Nanoseconds{end}};
  }

  void step(int rank, int play, std::int64_t begin, std::int64_t end) {
    timeline::StepTrace& trace = plays_[at(play)].ranks[at(rank)];
    trace = {.rank = rank,
             .step = static_cast<std::uint32_t>(play),
             .begin = units::Nanoseconds{begin},
             .end = units::Nanoseconds{end},
             .spans = std::move(current_[at(rank)])};
    if (play + 1 < static_cast<int>(plays_.size())) reset(rank);
  }

  [[nodiscard]] std::vector<timeline::Timeline> take() { return std::move(plays_); }

 private:
  void reset(int rank) { current_[at(rank)].assign(set_.of(rank).ops.size(), {}); }

  const program::OutlineSet& set_;
  const Costs& costs_;
  /// [rank][op]: spans of the step that the rank is in.
  std::vector<std::vector<timeline::Span>> current_;
  std::vector<timeline::Timeline> plays_;
};

}  // namespace

std::vector<timeline::Timeline> simulate(const program::OutlineSet& set, const Costs& costs,
                                         Options options) {
  Recorder recorder{set, costs, options};
  program::Matcher<Recorder>{set, program::Folding::as_streamed, options.plays, recorder}.run(
      options.begin);
  return recorder.take();
}

program::OutlineSet folded(program::OutlineSet set) {
  for (program::Outline& outline : set.outlines) {
    for (program::OutlineOp& op : outline.ops) {
      op.stream = 0;
      op.wait_begin = op.wait_count = 0;
    }
    outline.waits.clear();
  }
  return set;
}

}  // namespace isoscale::simulate
