// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/bench_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace isoscale::runner {
namespace {

constexpr double plays_wanted = 20;  // that the budget should hold
constexpr std::size_t least_plays = 6, most_plays = 200;
constexpr std::size_t calls_traced = 256;  // for a 99th percentile
constexpr double traced_share = 0.3;       // of the budget, at most

class Loop {
 public:
  Loop(executor::Session& session, const workloads::Case& one, const comm::Communicator& active,
       Share share, const Effort& effort, const CaseLimits& limits)
      : session_(session),
        case_(one),
        active_(active),
        share_(share),
        effort_(effort),
        timeout_(limits.timeout),
        budget_(limits.budget.value()),
        begin_(comm::now()) {}

  CaseRecord run() {
    try {
      measure();
    } catch (const GivenUp&) {
      return {.end = has_timed_out_ ? CaseEnd::timed_out : CaseEnd::peer_timed_out};
    }
    return std::move(record_);
  }

 private:
  /// Thrown on all ranks alike, once they have agreed on it.
  struct GivenUp {};

  void measure() {
    if (case_.when != workloads::Restore::never) restore();
    warm_up();
    if (case_.when == workloads::Restore::once) restore();
    do {
      play();
    } while (!finished());
    if (case_.calls_are_spans == workloads::CallsAreSpans::yes) trace();
  }

  void restore() { session_.play({.section = case_.restore}); }

  /// This rank's seconds; 0 when it had no answer, which agree() tells the others.
  double play_once(executor::Trace trace, std::uint64_t times) {
    if (case_.when == workloads::Restore::every_play) restore();
    active_.barrier();
    try {
      const executor::PlayTime time = session_.play({.section = case_.section,
                                                     .trace = trace,
                                                     .times = static_cast<std::uint32_t>(times),
                                                     .timeout = timeout_});
      return units::to_seconds(time.end - time.begin).value();
    } catch (const executor::TimedOut&) {
      has_timed_out_ = true;
      return 0;
    }
  }

  /// The slowest rank's seconds; all ranks learn them, and how long the case has taken. Throws
  /// GivenUp when one of them has timed out.
  double agree(double mine) {
    std::array<double, 3> values{share_ == Share::replica ? 0 : mine,
                                 units::to_seconds(comm::now() - begin_).value(),
                                 has_timed_out_ ? 1.0 : 0.0};
    active_.all_max(values);
    if (values[2] > 0) throw GivenUp{};
    elapsed_ = values[1];
    return values[0];
  }

  /// The first pass makes connections and loads code, the second tells how long a pass takes.
  void warm_up() {
    record_.first_call =
        agree(play_once(executor::Trace::off, 1)) / static_cast<double>(case_.calls);
    const double pass = std::max(agree(play_once(executor::Trace::off, 1)), 1e-9);
    const double fit = std::max(1.0, std::floor(budget_ / plays_wanted / pass));
    record_.times = static_cast<std::uint64_t>(
        std::min(fit, static_cast<double>(std::max<std::uint64_t>(1, case_.most_times))));
    if (record_.times > 1) agree(play_once(executor::Trace::off, record_.times));
  }

  void play() {
    const double mine = play_once(executor::Trace::off, record_.times);
    record_.plays.push_back(mine);
    slowest_.push_back(agree(mine));
  }

  [[nodiscard]] bool finished() const {
    if (slowest_.size() >= most_plays) return true;
    const bool is_late = elapsed_ >= budget_;
    // Six plays give an interval; three budgets are the price of it at most.
    if (slowest_.size() < least_plays) return elapsed_ >= 3 * budget_ && slowest_.size() > 1;
    const std::optional<double> width = effort_.half_width(slowest_);
    return is_late || (width && *width <= effort_.precision);
  }

  /// Times of single calls: between the first start and the last end of a call's ops.
  void trace() {
    const double limit = elapsed_ + traced_share * budget_;
    std::size_t calls = 0;
    while (calls < calls_traced) {
      play_once(executor::Trace::on, 1);
      std::vector<double> times(case_.calls, 0.0);
      const auto spans = has_timed_out_ ? std::span<const timeline::Span>{} : session_.spans();
      const std::size_t ops = spans.size() / case_.calls;
      for (std::size_t i = 0; i < case_.calls && ops > 0 && share_ == Share::in_point; ++i) {
        const auto of_call = spans.subspan(i * ops, ops);
        const auto first = std::ranges::min_element(of_call, {}, &timeline::Span::start);
        const auto last = std::ranges::max_element(of_call, {}, &timeline::Span::end);
        times[i] = units::to_seconds(last->end - first->start).value();
      }
      active_.all_max(times);
      record_.call_times.insert(record_.call_times.end(), times.begin(), times.end());
      calls += times.size();
      static_cast<void>(agree(0));
      if (elapsed_ >= limit) break;
    }
  }

  executor::Session& session_;
  const workloads::Case& case_;
  const comm::Communicator& active_;
  Share share_;
  const Effort& effort_;
  units::Seconds timeout_;
  double budget_;
  units::Nanoseconds begin_;
  double elapsed_ = 0;
  bool has_timed_out_ = false;  ///< this rank
  std::vector<double> slowest_;
  CaseRecord record_;
};

}  // namespace

CaseRecord play_case(executor::Session& session, const workloads::Case& one,
                     const comm::Communicator& active, Share share, const Effort& effort,
                     const CaseLimits& limits) {
  return Loop{session, one, active, share, effort, limits}.run();
}

}  // namespace isoscale::runner
