// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/predict/forecast.hpp"
#include "analysis/predict/quick_estimate.hpp"
#include "analysis/value_units.hpp"
#include "base/error.hpp"
#include "base/parallel.hpp"
#include "units/quantity.hpp"
#include "units/quantity_text.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis::predict {

namespace {

using workloads::Request;

/// A request (mesh and options) and what the search knows about it so far.
struct Entry {
  const workloads::Request* request = nullptr;
  double seconds = 0;   ///< seconds of the step: first estimated, then simulated
  double estimate = 0;  ///< seconds by the quick estimate
  workloads::stack::Schedule schedule{};
  StageBytes largest_stage{};  ///< stage with the most memory, estimated
  bool is_needless = false;    ///< not simulated, because by its estimate it is not the fastest
  std::optional<StepEstimate> whole{};
};

/// True if the entry was simulated, which happens only if it fits in memory.
bool is_played(const Entry& entry) { return entry.whole && std::isfinite(entry.whole->seconds()); }

/// Returns the relative error by which the time estimate of `entry` may be too high: the allowance
/// of search(). The largest error of simulated entries is negative if all estimates were too low.
double slack_of(const Entry& entry, std::span<const Entry> known) {
  constexpr int enough = 3;
  int count = 0;
  double most = -1;
  for (const Entry& other : known) {
    if (!is_played(other) || other.schedule != entry.schedule) continue;
    ++count;
    most = std::max(most, other.estimate / other.seconds - 1);
  }
  return count < enough ? search_slack : std::min(search_slack, most + search_margin);
}

double bytes_of(const Entry& entry) { return entry.largest_stage.bytes; }

/// Returns "dp=2,tp=4 zero=3 recompute=full": the mesh and the options that determine how much
/// memory a rank needs.
std::string settings_of(const Request& request) {
  std::string text = mesh::to_string(request.mesh);
  for (const char* const key :
       {"microbatch", "schedule", "zero", "recompute", "sequence_parallel"}) {
    const auto found = request.options.find(key);
    if (found != request.options.end()) text += fmt::format(" {}={}", key, found->second);
  }
  return text;
}

/// True if `a` is faster than `b`, or equally fast with less memory.
bool better(const Entry& a, const Entry& b) {
  return std::tie(a.seconds, a.whole->memory.device) < std::tie(b.seconds, b.whole->memory.device);
}

/// Step times with a smaller relative difference count as equal.
constexpr double alike = 0.001;
/// Causes are named, the largest first, until they explain this share of a slower step's extra time
/// or this number of causes is reached.
constexpr double said_enough = 0.8;
constexpr std::size_t most_causes = 3;

std::string share_text(double part, double whole) {
  return units::format_percent(whole > 0 ? part / whole : 0, 0);
}

/// Returns the text of one cause: "0.31 s more tp transfer". For a pipeline bubble it returns the
/// bubble's share of each step, "bubble 12% against 4%", unless both are the same in whole percent,
/// since schedules are usually compared by this share.
std::string said(const efficiency::LostTime& lost, const efficiency::StepLoss& loser,
                 const efficiency::StepLoss& first) {
  if (lost.cause == "bubble") {
    const std::string here = share_text(loser.costs.bubble, loser.traced);
    const std::string there = share_text(first.costs.bubble, first.traced);
    if (here != there) return fmt::format("bubble {} against {}", here, there);
  }
  return fmt::format("{} more {}", units::format(units::Seconds{lost.seconds}), lost.cause);
}

std::string as_fast(const StepEstimate& loser, const StepEstimate& first) {
  const double more = loser.memory.device - first.memory.device;
  if (more > alike * first.memory.device) {
    return fmt::format("as fast, but needs {} more memory", value_text(more, Unit::bytes));
  }
  return "as fast, within 0.1%";
}

class Search {
 public:
  explicit Search(const Question& question) : question_(question) {
    const auto& memory = question.machine.memory;
    if (memory && memory->capacity > 0) capacity_ = memory->capacity;
  }

  [[nodiscard]] SearchResult among(const SearchSpace& space) {
    std::vector<Entry> best = best_of(space.requests);
    if (best.empty()) refuse(space);
    SearchResult result{.best = {},
                        .looked_at = static_cast<int>(space.requests.size()) + space.impossible,
                        .complete = complete_};
    describe(best, result);
    return result;
  }

 private:
  /// Returns the fastest requests that fit in memory, fastest first; none if no request fits.
  [[nodiscard]] std::vector<Entry> best_of(const std::vector<Request>& requests) {
    std::vector<Entry> entries;
    for (const Request& request : requests) entries.push_back({.request = &request});
    if (!question_.workload->is_training()) return simulated(std::move(entries));
    QuickEstimate quick{question_};
    quick.learn(requests);
    base::parallel_for(entries.size(), [&](std::size_t i) {
      Entry& entry = entries[i];
      entry.schedule = workloads::stack::pipeline_of(*entry.request).schedule;
      entry.largest_stage = quick.largest_stage(*entry.request);
      entry.seconds = entry.estimate = quick.seconds(*entry.request);
    });
    std::vector<Entry> best = simulated(fitting(entries));
    if (best.empty() && std::isfinite(capacity_)) best = simulated(smallest(std::move(entries)));
    return best;
  }

  /// True if the entry may fit in memory, judged by its estimate.
  [[nodiscard]] bool may_fit(const Entry& entry) const {
    return entry.largest_stage.bytes <= capacity_ * (1 + search_memory_slack);
  }

  /// Returns the entries that may fit, ordered by estimated time, then by estimated memory.
  [[nodiscard]] std::vector<Entry> fitting(std::vector<Entry> entries) const {
    std::erase_if(entries, [&](const Entry& entry) { return !may_fit(entry); });
    std::ranges::stable_sort(entries, {}, [](const Entry& entry) {
      return std::pair{entry.seconds, bytes_of(entry)};
    });
    return entries;
  }

  /// Returns the entries with the least estimated memory, even if they are slow. At least
  /// built_at_least entries (if there are so many) are returned, even if they cannot fit, so that
  /// an error message can state how much memory the smallest one needs. More are returned as long
  /// as they may fit and there is time to simulate them.
  [[nodiscard]] std::vector<Entry> smallest(std::vector<Entry> entries) const {
    std::ranges::stable_sort(entries, {}, bytes_of);
    double passes = 0;
    std::size_t built = 0;
    for (; built < entries.size(); ++built) {
      passes += layer_passes(*entries[built].request);
      if (built < built_at_least) continue;
      if (!may_fit(entries[built]) || built >= built_at_most || passes > most_passes) break;
    }
    entries.resize(built);
    return entries;
  }

  /// Simulates whole steps of the entries until the search ends (see begins), except needless ones.
  /// Returns the fastest that fit, at most `search_keeps`, fastest first.
  [[nodiscard]] std::vector<Entry> simulated(std::vector<Entry> entries) {
    const std::size_t count = base::parallel_in_order(
        entries.size(), simulated_at_once,
        [&](std::size_t i, std::size_t ended) { return begins(entries, i, ended); },
        [&](std::size_t i) {
          if (!entries[i].is_needless) simulate_whole(entries[i]);
        });
    entries.resize(count);
    std::erase_if(entries, [](const Entry& entry) { return entry.is_needless; });
    for (const Entry& entry : entries) {
      if (smallest_ == nullptr || entry.whole->memory.device < smallest_bytes_) {
        smallest_ = entry.request;
        smallest_bytes_ = entry.whole->memory.device;
      }
    }
    std::erase_if(entries,
                  [&](const Entry& entry) { return entry.whole->memory.device > capacity_; });
    std::ranges::stable_sort(entries, better);
    if (entries.size() > search_keeps) entries.resize(search_keeps);
    return entries;
  }

  /// Returns false if the search ends before entry `i`, judged by the results of the first `ended`
  /// entries. Marks an entry as needless if the search continues but it cannot be the fastest.
  [[nodiscard]] bool begins(std::vector<Entry>& entries, std::size_t i, std::size_t ended) {
    if (!question_.workload->is_training()) return true;
    const std::span<const Entry> known{entries.data(), ended};
    const std::optional<double> best = best_of_enough(known);
    if (!best) return true;
    Entry& entry = entries[i];
    if (entry.estimate > *best * (1 + search_slack)) return false;
    entry.is_needless = entry.estimate > *best * (1 + slack_of(entry, known));
    double passes = 0;
    for (const Entry& other : known) passes += is_played(other) ? layer_passes(*other.request) : 0;
    complete_ = entry.is_needless || passes <= most_passes;
    return complete_;
  }

  /// Simulates the whole step of an entry and divides its time into parts. If the entry does not
  /// fit, only its memory is computed, in most cases from the program of its largest stage alone.
  void simulate_whole(Entry& entry) const {
    const Request& request = *entry.request;
    entry.whole = StepEstimate{.simulated = std::numeric_limits<double>::infinity()};
    // The largest stage may not fit if its estimate leaves less than this share of the memory free.
    constexpr double room = 0.1;
    if (entry.largest_stage.bytes > capacity_ * (1 - room)) {
      entry.whole->memory.device = stage_device_bytes(request, entry.largest_stage.stage);
    }
    if (entry.whole->memory.device <= capacity_) {
      entry.whole = estimate_step(
          {*question_.workload, question_.machine, layout_of(request, question_.node_ranks),
           Detail::trace, Ranks::by_class, capacity_},
          request);
    }
    entry.seconds = entry.whole->seconds();
  }

  /// Returns the shortest simulated time; absent if fewer than `search_keeps` are simulated.
  [[nodiscard]] std::optional<double> best_of_enough(std::span<const Entry> simulated) const {
    double best = std::numeric_limits<double>::infinity();
    std::size_t played = 0;
    for (const Entry& entry : simulated) {
      if (!is_played(entry)) continue;
      ++played;
      best = std::min(best, entry.seconds);
    }
    return played < search_keeps ? std::nullopt : std::optional{best};
  }

  /// Stores the best entries in `result`, and why each except the first is slower than the first.
  void describe(const std::vector<Entry>& best, SearchResult& result) const {
    const double correction = question_.fit ? question_.fit->correction : 1;
    for (std::size_t i = 0; i < best.size(); ++i) {
      const StepEstimate& step = *best[i].whole;
      const double rate = step.seconds() > 0 ? step.work / step.seconds() : 0;
      result.best.push_back({.request = *best[i].request,
                             .step_time = step.seconds() * correction,
                             .throughput = rate / correction,
                             .memory = step.memory,
                             .breakdown = breakdown_of(step, correction),
                             .why_not = i == 0 ? "" : why_not(step, *best.front().whole)});
    }
  }

  [[noreturn]] void refuse(const SearchSpace& space) const {
    if (space.requests.empty()) {
      throw base::usage_error(
          "none of the {} combinations of mesh and options is possible on these ranks with "
          "this global batch; use another batch or number of ranks, or fix fewer options",
          space.impossible);
    }
    throw base::usage_error(
        "none of {} combinations of mesh and options fits: the smallest ({}) needs {} "
        "a rank, the machine has {}; use more ranks, or fix fewer options",
        space.requests.size(), settings_of(*smallest_), value_text(smallest_bytes_, Unit::bytes),
        value_text(capacity_, Unit::bytes));
  }

  static constexpr std::size_t built_at_least = 8, built_at_most = 512;
  static constexpr std::size_t simulated_at_once = 6;
  /// Once search_keeps entries are simulated, a search ends when the sum of layer_passes() over its
  /// simulated entries exceeds this number, because its time is roughly proportional to this sum.
  static constexpr double most_passes = 200'000;

  const Question& question_;
  double capacity_ = std::numeric_limits<double>::infinity();
  /// Among the requests whose programs were built, the one with the least memory.
  const Request* smallest_ = nullptr;
  double smallest_bytes_ = std::numeric_limits<double>::infinity();
  bool complete_ = true;
};

}  // namespace

SearchResult search(const Question& question, int ranks) {
  return Search{question}.among(search_space(question, ranks));
}

std::string why_not(const StepEstimate& loser, const StepEstimate& first) {
  const double slower = loser.seconds() - first.seconds();
  if (slower < alike * first.seconds()) return as_fast(loser, first);
  std::string more = fmt::format("{} more", units::format(units::Seconds{slower}));
  if (!loser.loss || !first.loss) return more;
  std::vector<efficiency::LostTime> lost = efficiency::waterfall(*loser.loss, *first.loss).lost;
  std::ranges::stable_sort(lost, std::greater{}, &efficiency::LostTime::seconds);
  double all = 0, named = 0;
  for (const efficiency::LostTime& one : lost) all += std::max(0.0, one.seconds);
  std::vector<std::string> parts;
  for (const efficiency::LostTime& one : lost) {
    if (one.seconds <= 0 || named >= said_enough * all || parts.size() == most_causes) break;
    parts.push_back(said(one, *loser.loss, *first.loss));
    named += one.seconds;
  }
  return parts.empty() ? more : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace isoscale::analysis::predict
