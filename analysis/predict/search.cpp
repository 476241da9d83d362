// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/predict/quick_estimate.hpp"
#include "analysis/predict/search_space.hpp"
#include "analysis/predict/side_by_side.hpp"
#include "analysis/predict/whole_step.hpp"
#include "analysis/predict/why_not.hpp"
#include "base/error.hpp"
#include "units/quantity.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

using workloads::Request;
using workloads::Workload;

/// A request on its way through the search.
struct Entry {
  const Request* request = nullptr;
  double seconds = 0;  ///< by what was last asked
  std::optional<WholeStep> whole{};
};

bool faster(const Entry& a, const Entry& b) { return a.seconds < b.seconds; }

/// Of equally fast ones the one that needs less memory.
bool better(const Entry& a, const Entry& b) {
  return std::tie(a.seconds, a.whole->device_bytes) < std::tie(b.seconds, b.whole->device_bytes);
}

class Search {
 public:
  Search(const Workload& workload, const simulate::Machine& machine, int node_ranks, int keep)
      : workload_(workload),
        machine_(machine),
        node_ranks_(node_ranks),
        keep_(static_cast<std::size_t>(std::max(1, keep))) {
    if (machine.memory && machine.memory->capacity > 0) capacity_ = machine.memory->capacity;
  }

  [[nodiscard]] SearchResult among(const SearchSpace& space) {
    std::vector<Entry> entries = ranked(space.requests);
    const std::vector<Entry> best = simulated(std::move(entries));
    if (best.empty()) refuse(space);
    SearchResult result{.best = {},
                        .looked_at = static_cast<int>(space.requests.size()) + space.impossible,
                        .too_large = too_large_,
                        .impossible = space.impossible,
                        .simulated = simulated_,
                        .complete = complete_};
    describe(best, result);
    return result;
  }

 private:
  /// Those that may fit, by their quick estimates, as far as one of them may be among the best.
  [[nodiscard]] std::vector<Entry> ranked(const std::vector<Request>& requests) {
    std::vector<Entry> entries;
    for (const Request& request : requests) entries.push_back({.request = &request});
    if (!QuickEstimate::knows(workload_)) return entries;
    QuickEstimate quick{workload_, machine_, node_ranks_};
    quick.learn(requests);
    std::vector<double> bytes(entries.size());
    side_by_side(entries.size(), [&](std::size_t i) {
      bytes[i] = quick.bytes(*entries[i].request);
      entries[i].seconds = quick.bound(*entries[i].request);
    });
    std::vector<Entry> fitting;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      smallest_ = std::min(smallest_, bytes[i]);
      if (bytes[i] > capacity_ * (1 + search_memory_slack)) {
        ++too_large_;
      } else {
        fitting.push_back(entries[i]);
      }
    }
    std::ranges::stable_sort(fitting, faster);
    return played(std::move(fitting), quick);
  }

  /// Bounds replaced by coarse plays, sorted again; without those that need not be played.
  [[nodiscard]] std::vector<Entry> played(std::vector<Entry> entries,
                                          const QuickEstimate& quick) const {
    std::size_t done = 0;
    while (done < entries.size()) {
      // Whatever comes next has no smaller bound.
      const bool enough = done >= keep_;
      if (enough && entries[done].seconds > nth(entries, done, keep_) * (1 + bound_slack)) break;
      const std::size_t count = std::min(played_at_once, entries.size() - done);
      side_by_side(count, [&](std::size_t i) {
        Entry& entry = entries[done + i];
        entry.seconds = quick.seconds(*entry.request);
      });
      done += count;
    }
    entries.resize(done);
    std::ranges::stable_sort(entries, faster);
    return entries;
  }

  /// The time of the n-th best of the first `count`.
  static double nth(const std::vector<Entry>& entries, std::size_t count, std::size_t n) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < count; ++i) seconds.push_back(entries[i].seconds);
    const auto at = seconds.begin() + static_cast<std::ptrdiff_t>(std::min(n, count) - 1);
    std::ranges::nth_element(seconds, at);
    return *at;
  }

  /// The best of them by whole programs, best first.
  [[nodiscard]] std::vector<Entry> simulated(std::vector<Entry> entries) {
    const bool is_ranked = QuickEstimate::knows(workload_);
    std::vector<Entry> best;
    double passes = 0;
    for (std::size_t done = 0; done < entries.size();) {
      const bool enough = best.size() >= keep_;
      if (enough && is_ranked) {
        const double to_beat = best[keep_ - 1].seconds * (1 + search_slack);
        if (entries[done].seconds > to_beat) break;
        if (passes > most_passes) {
          complete_ = false;
          break;
        }
      }
      const std::size_t count = std::min(simulated_at_once, entries.size() - done);
      side_by_side(count, [&](std::size_t i) {
        Entry& entry = entries[done + i];
        entry.whole =
            whole_step(workload_, *entry.request, machine_, node_ranks_, Detail::time, capacity_);
        entry.seconds = entry.whole->seconds;
      });
      for (std::size_t i = done; i < done + count; ++i) {
        passes += layer_passes(*entries[i].request);
        smallest_ = std::min(smallest_, entries[i].whole->device_bytes);
        if (entries[i].whole->device_bytes > capacity_) {
          ++too_large_;
        } else {
          best.push_back(std::move(entries[i]));
        }
      }
      std::ranges::stable_sort(best, better);
      done += count;
      simulated_ += static_cast<int>(count);
    }
    if (best.size() > keep_) best.resize(keep_);
    return best;
  }

  /// Traces the best and says why each but the first loses.
  void describe(const std::vector<Entry>& best, SearchResult& result) const {
    std::vector<WholeStep> traced(best.size());
    side_by_side(best.size(), [&](std::size_t i) {
      traced[i] = whole_step(workload_, *best[i].request, machine_, node_ranks_, Detail::trace);
    });
    for (std::size_t i = 0; i < best.size(); ++i) {
      const WholeStep& step = traced[i];
      result.best.push_back({.request = *best[i].request,
                             .step_time = step.seconds,
                             .throughput = step.seconds > 0 ? step.work / step.seconds : 0,
                             .memory_per_rank = step.bytes,
                             .breakdown = step.breakdown,
                             .why_not = i == 0 ? "" : why_not(step, traced.front())});
    }
  }

  [[noreturn]] void refuse(const SearchSpace& space) const {
    if (space.requests.empty()) {
      throw base::UsageError(fmt::format(
          "--best: none of the {} combinations of mesh and options is possible on these ranks with "
          "this global batch; use another batch or number of ranks, or fix fewer options",
          space.impossible));
    }
    const auto bytes = [](double value) {
      return units::format(units::Bytes{static_cast<std::uint64_t>(value)});
    };
    throw base::UsageError(
        fmt::format("--best: none of {} combinations of mesh and options fits: the smallest needs "
                    "{} a rank, the machine has {}; use more ranks, or fix fewer options",
                    space.requests.size(), bytes(smallest_), bytes(capacity_)));
  }

  /// How far below its bound a whole play may come.
  static constexpr double bound_slack = search_slack + 0.02;
  static constexpr std::size_t played_at_once = 64, simulated_at_once = 8;
  /// Of whole plays, what fits in the time that a search may take.
  static constexpr double most_passes = 200'000;

  const Workload& workload_;
  const simulate::Machine& machine_;
  int node_ranks_;
  std::size_t keep_;
  double capacity_ = std::numeric_limits<double>::infinity();
  double smallest_ = std::numeric_limits<double>::infinity();
  int too_large_ = 0, simulated_ = 0;
  bool complete_ = true;
};

}  // namespace

SearchResult search(const Workload& workload, const Request& base, const mesh::Request& mesh,
                    int ranks, const simulate::Machine& machine, int node_ranks,
                    const std::vector<std::string>& fixed, int keep) {
  const SearchSpace space = search_space(workload, base, mesh, ranks, node_ranks, fixed);
  return Search{workload, machine, node_ranks, keep}.among(space);
}

}  // namespace isoscale::analysis
