// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/slow_ranks_and_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/text.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::efficiency {
namespace {

constexpr double visible = 0.01;           ///< share of the step; less waiting is not reported
constexpr double one_to_blame = 0.5;       ///< a rank causing a larger share of waiting is named
constexpr double noticeably_more = 0.005;  ///< share of the step; a smaller excess does not explain
                                           ///< waiting

/// Returns a rank with its host and device: "rank 3 (node1, NVIDIA H200 00000000:1B:00.0)".
std::string place_of(const results::RunData& run, const results::PointData& point, int rank) {
  const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
  std::string name = fmt::format("rank {}", world_rank(point, rank));
  if (facts == nullptr) return name;
  std::string device = text_of(*facts, "gpu_name");
  const std::string pci = text_of(*facts, "gpu_pci");
  device += (device.empty() || pci.empty() ? "" : " ") + pci;
  const bool both = !facts->host.empty() && !device.empty();
  const std::string where = facts->host + (both ? ", " : "") + device;
  return where.empty() ? name : fmt::format("{} ({})", name, where);
}

std::string places_of(const results::RunData& run, const results::PointData& point,
                      std::vector<int> ranks) {
  constexpr std::size_t most = 4;
  std::ranges::sort(ranks, {}, [&point](int rank) { return world_rank(point, rank); });
  std::vector<std::string> places;
  for (const int rank : ranks) places.push_back(place_of(run, point, rank));
  return base::listed(places, most);
}

NamedCause describe(const results::RunData& run, const results::PointData& point,
                    const SlowRank& slow) {
  std::string text = fmt::format("{} is slow in its own GEMMs: they take {:.2f} times as long",
                                 place_of(run, point, slow.rank), slow.factor);
  text += slow.by_rate ? " a FLOP as those of all ranks" : " as those of like ranks";
  if (slow.lower && slow.upper) text += fmt::format(" ({:.2f}-{:.2f})", *slow.lower, *slow.upper);
  text += slow.since ? fmt::format(", since step {}", *slow.since) : ", all along";
  return {.kind = "slow rank", .ranks = {slow.rank}, .size = slow.factor, .text = text};
}

void add_links(const results::RunData& run, const results::PointData& point,
               const breakdown::TracedSteps& traced, std::vector<NamedCause>& result) {
  const std::vector<SlowLink> links = slow_links(point, traced);
  for (const SlowLink& link : links) {
    result.push_back({.kind = "slow link",
                      .ranks = link.members,
                      .size = link.factor,
                      .text = fmt::format(
                          "slow link: {} on {} takes {:.2f} times as long a byte as elsewhere "
                          "among {}",
                          link.op, link.axes, link.factor, places_of(run, point, link.members))});
  }
  if (const std::vector<int> shared = shared_by(links); !shared.empty()) {
    result.push_back({.kind = "slow link",
                      .ranks = shared,
                      .size = links.front().factor,
                      .text = "slow links share " + places_of(run, point, shared)});
  }
}

/// Returns the category of the breakdown whose time on this rank exceeds that on other ranks with
/// the same program by the most: "gaps before its ops". Returns "" if no category is noticeably
/// longer, or if no other rank has the same program.
std::string reason_of(const results::PointData& point, const breakdown::BreakdownResult& breakdown,
                      int rank) {
  struct Part {
    double breakdown::Breakdown::*seconds;
    const char* text;
  };
  constexpr Part parts[]{{&breakdown::Breakdown::compute, "more computation"},
                         {&breakdown::Breakdown::copies, "more copies"},
                         {&breakdown::Breakdown::gap, "gaps before its ops"},
                         {&breakdown::Breakdown::other, "time that nothing explains"}};
  const auto program_of = [&point](int at) {
    return point.outline.outline_of_rank[static_cast<std::size_t>(at)];
  };
  const char* reason = "";
  double most = noticeably_more * breakdown.mean->step;
  for (const Part& part : parts) {
    std::vector<double> others;
    double mine = 0;
    for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
      const double seconds = breakdown.of_rank[i].*part.seconds;
      if (breakdown.ranks[i] == rank) {
        mine = seconds;
      } else if (program_of(breakdown.ranks[i]) == program_of(rank)) {
        others.push_back(seconds);
      }
    }
    const auto usual = statistics::median(others);
    if (!usual || mine - *usual <= most) continue;
    most = mine - *usual;
    reason = part.text;
  }
  return reason;
}

/// Returns the rank that causes more than half of the waiting; absent if there is none.
std::optional<int> most_awaited(const breakdown::BreakdownResult& breakdown) {
  const auto& caused = breakdown.caused.of_rank;
  if (caused.size() < 2) return std::nullopt;
  const auto most = std::ranges::max_element(caused);
  const double all = std::reduce(caused.begin(), caused.end());
  if (!(*most > one_to_blame * all)) return std::nullopt;
  return static_cast<int>(most - caused.begin());
}

/// Adds the waiting for other ranks: divided into imbalance and noise, or as one cause if the
/// traces do not tell these apart.
void add_waits(const results::RunData& run, const results::PointData& point,
               const breakdown::BreakdownResult& breakdown, std::vector<NamedCause>& result) {
  if (!breakdown.mean || !breakdown.wait_known) return;
  const auto add = [&](const char* kind, double seconds, std::vector<int> ranks,
                       const std::string& what) {
    const double share = seconds / breakdown.mean->step;
    if (!(share > visible)) return;
    result.push_back({.kind = kind,
                      .ranks = std::move(ranks),
                      .size = share,
                      .text = fmt::format("{}: {} of the step is {}", kind,
                                          units::format_percent(share), what)});
  };
  std::vector<int> late;
  std::string whom, reason;
  if (const std::optional<int> rank = most_awaited(breakdown)) {
    late = {*rank};
    whom = fmt::format(
        ", mostly for {}, last in {} of {} traced steps", place_of(run, point, *rank),
        breakdown.caused.steps_as_last[static_cast<std::size_t>(*rank)], breakdown.steps);
    reason = reason_of(point, breakdown, *rank);
    if (!reason.empty()) reason = ": " + reason;
  }
  if (!breakdown.waits) return add("waiting", breakdown.mean->wait, late, "for late ranks" + whom);
  add("imbalance", breakdown.waits->imbalance, late,
      "waiting for ranks that are consistently late" + whom + reason);
  add("noise", breakdown.waits->noise, {}, "waiting for ranks that are occasionally late");
}

}  // namespace

std::vector<NamedCause> named_causes(const results::RunData& run, const results::PointData& point,
                                     const breakdown::TracedSteps& traced,
                                     const breakdown::BreakdownResult& breakdown) {
  std::vector<NamedCause> result;
  // If ranks share cores, this already explains why ranks and links are slow.
  if (std::ranges::find(point.labels, "oversubscribed") == point.labels.end()) {
    for (const SlowRank& slow : slow_ranks(point)) result.push_back(describe(run, point, slow));
    add_links(run, point, traced, result);
  }
  add_waits(run, point, breakdown, result);
  return result;
}

}  // namespace isoscale::analysis::efficiency
