// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/microbench/measure_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/warn.hpp"
#include "statistics/estimate.hpp"
#include "workloads/bench/exact_data.hpp"

namespace isoscale::runner::microbench {
namespace {

using workloads::pattern_period;

// The time of one play is chosen so that this many plays fit into the budget.
constexpr double plays_wanted = 20;
constexpr std::size_t least_plays = 6, most_plays = 200;
// Number of traced calls of a case, enough for a 99th percentile.
constexpr std::size_t calls_traced = 256;
constexpr double most_traced = 0.3;  // share of the budget for traced passes, see trace()
constexpr double longest_wait = 4;   // the first six plays may take this many times the budget
constexpr double cheap = 0.1;        // seconds that the first six plays may take with any budget
constexpr std::uint64_t most_repeats = 20;  // limit on repeats of late plays, see timed_play()

class CasePlayer {
 public:
  explicit CasePlayer(const CasePlay& what)
      : what_(what),
        session_(what.session),
        case_(what.one),
        budget_(what.limits.budget.value()),
        begin_(comm::now()) {}

  CaseRecord run() {
    try {
      if (case_.when != workloads::Restore::never) restore();
      warm_up();
      machine::DeviceSampler sampler{what_.gpu, {}};
      begin_ = comm::now();  // the budget counts from here, after the warm-up
      do {
        play();
      } while (!finished());
      record_.gpu = sampler.stop();
      if (case_.calls_are_spans == workloads::CallsAreSpans::yes) trace();
      // The results that are compared next must come from a play that began with restored memory.
      if (case_.when == workloads::Restore::once) {
        restore();
        play();
      }
    } catch (const GivenUp&) {
      return {.end = has_timed_out_ ? CaseEnd::timed_out : CaseEnd::peer_timed_out};
    }
    return std::move(record_);
  }

 private:
  /// Thrown on all ranks together, once they have agreed to give up the case.
  struct GivenUp {};
  /// The seconds of one play: on this rank, and on the slowest rank.
  struct Times {
    double mine = 0, slowest = 0;
  };

  void restore() { session_.play({.section = case_.restore}); }
  [[nodiscard]] bool has_timeout() const { return what_.limits.timeout > units::Seconds{}; }

  /// Returns the seconds of a play on this rank. If the case has a timeout and another rank does
  /// not answer, returns 0 and sets has_timed_out_, of which agree() then tells all ranks.
  double play_once(executor::Trace trace, std::uint64_t times) {
    if (case_.when == workloads::Restore::every_play) restore();
    is_late_ = false;
    const bool hides =
        trace == executor::Trace::off && case_.launch_cost == workloads::LaunchCost::excluded;
    what_.active.barrier();
    try {
      const executor::PlayTime time = session_.play(
          {.section = case_.section,
           .trace = trace,
           .times = static_cast<std::uint32_t>(times),
           .timeout = what_.limits.timeout,
           .launches = hides ? executor::Launches::hidden : executor::Launches::counted});
      is_late_ = time.is_late;
      return units::to_seconds(time.end - time.begin).value();
    } catch (const executor::NoAnswer& error) {
      if (!has_timeout()) throw;
      base::warn(fmt::format("isoscale: no answer: {}", error.what()));
      has_timed_out_ = true;
      return 0;
    }
  }

  /// Collective: returns the seconds of the slowest rank of the point. Also sets elapsed_, the
  /// seconds since begin_, and is_late_ to the same values on all ranks. Throws GivenUp on all
  /// ranks if one of them has timed out.
  double agree(double mine) {
    std::array<double, 4> values{what_.share == measure::Share::replica ? 0 : mine,
                                 units::to_seconds(comm::now() - begin_).value(),
                                 has_timed_out_ ? 1.0 : 0.0, is_late_ ? 1.0 : 0.0};
    what_.active.all_max(values);
    if (values[2] > 0) throw GivenUp{};
    elapsed_ = values[1];
    is_late_ = values[3] > 0;
    return values[0];
  }

  /// Makes an untraced play. If it was late on some rank (its time includes launches, see
  /// PlayTime), it is repeated, but at most `most_repeats` times per case.
  Times timed_play(std::uint64_t times) {
    while (true) {
      const double mine = play_once(executor::Trace::off, times);
      const double slowest = agree(mine);
      if (!is_late_) return {mine, slowest};
      if (record_.repeated_plays == most_repeats) {
        ++record_.late_plays;
        return {mine, slowest};
      }
      ++record_.repeated_plays;
    }
  }

  /// Makes up to three plays that do not count; late ones among them are repeated. The first sets
  /// up connections and loads code, the second shows how long a pass takes, and the third is as
  /// long as the plays that count.
  void warm_up() {
    pass_ = agree(play_once(executor::Trace::off, 1));
    record_.first_call = pass_ / static_cast<double>(case_.calls);
    // The first pass may be slow only because connections are set up, so a second one is timed. It
    // is not worth the time if the first took more than four times the budget, unless the case has
    // a timeout: its pairs connect in the first pass.
    if (has_timeout() || pass_ < longest_wait * budget_) pass_ = timed_play(1).slowest;
    pass_ = std::max(pass_, 1e-9);
    record_.times = passes_of_play(case_, units::Seconds{pass_}, what_.limits);
    if (record_.times > 1) timed_play(record_.times);
    record_.late_plays = 0;  // late plays of the warm-up do not count
  }

  void play() {
    const Times times = timed_play(record_.times);
    record_.plays.push_back(times.mine);
    slowest_.push_back(times.slowest);
  }

  [[nodiscard]] bool finished() const {
    if (slowest_.size() >= most_plays) return true;
    const bool is_late = elapsed_ >= budget_;
    // A confidence interval of the median needs six plays. They may take several times the budget;
    // otherwise one disturbed play could use up the budget and be the only result.
    if (slowest_.size() < least_plays) {
      const double quickest = *std::ranges::min_element(slowest_);
      return elapsed_ + quickest >= std::max(longest_wait * budget_, cheap);
    }
    const std::optional<double> width =
        what_.effort.half_width(slowest_, statistics::plain_confidence);
    return is_late || (width && *width <= what_.effort.precision);
  }

  /// Returns the seconds from the first start to the last end of the given spans.
  static double duration(std::span<const timeline::Span> spans) {
    const auto first = std::ranges::min_element(spans, {}, &timeline::Span::start);
    const auto last = std::ranges::max_element(spans, {}, &timeline::Span::end);
    return units::to_seconds(last->end - first->start).value();
  }

  void note_streams() {
    std::map<std::uint32_t, std::vector<timeline::Span>> of_stream;
    for (const timeline::Span& span : session_.spans()) {
      of_stream[what_.section.ops[span.op].stream].push_back(span);
    }
    for (const auto& [stream, spans] : of_stream) {
      record_.stream_times.push_back({.stream = stream, .seconds = duration(spans)});
    }
  }

  /// True if enough passes have been traced: as many as plays were timed if single streams have
  /// result rows of their own, otherwise as many as give enough calls for a high percentile.
  [[nodiscard]] bool traced_enough(std::size_t passes, std::size_t calls) const {
    return is_apart() ? passes >= record_.plays.size() : calls >= calls_traced;
  }
  [[nodiscard]] bool is_apart() const { return what_.streams == Streams::apart; }

  /// Traces passes, and stores the time of each call on the slowest rank. A call lasts from the
  /// first start to the last end of its ops. The passes may take the share most_traced of the
  /// budget or, if single streams have result rows, as long as the budget; at least one pass is
  /// then traced.
  void trace() {
    const double limit = elapsed_ + (is_apart() ? 1 : most_traced) * budget_;
    std::size_t calls = 0, passes = 0;
    while (!traced_enough(passes, calls) &&
           (elapsed_ + pass_ < limit || (is_apart() && passes == 0))) {
      play_once(executor::Trace::on, 1);
      ++passes;
      if (is_apart() && !has_timed_out_) note_streams();
      std::vector<double> times(case_.calls, 0.0);
      const auto spans = has_timed_out_ ? std::span<const timeline::Span>{} : session_.spans();
      const std::size_t ops = spans.size() / case_.calls;
      const bool counts = ops > 0 && what_.share == measure::Share::in_point;
      for (std::size_t i = 0; i < case_.calls && counts; ++i) {
        times[i] = duration(spans.subspan(i * ops, ops));
      }
      what_.active.all_max(times);
      record_.call_times.insert(record_.call_times.end(), times.begin(), times.end());
      calls += times.size();
      static_cast<void>(agree(0));
    }
  }

  const CasePlay& what_;
  executor::Session& session_;
  const workloads::Case& case_;
  double budget_;
  units::Nanoseconds begin_;
  double elapsed_ = 0;
  bool has_timed_out_ = false;  ///< true if a play got no answer on this rank
  /// True if the last play was late on this rank or, after agree(), on any rank.
  bool is_late_ = false;
  double pass_ = 0;  ///< seconds of one pass on the slowest rank
  std::vector<double> slowest_;
  CaseRecord record_;
};

// Number of tables of expected values kept in memory; each has 128 KiB to 1 MiB.
constexpr std::size_t most_tables = 256;

/// Reads a slice and compares it with the expected bytes. In the text about a wrong element, the
/// slice's first element has the number `begin`.
void compare_block(executor::Session& session, const program::Slice& slice, std::uint64_t element,
                   std::span<const std::byte> expected, std::uint64_t begin, Comparison& result) {
  std::vector<std::byte> got(slice.count * element);
  session.read(slice, got);
  result.compared += slice.count;
  if (std::memcmp(got.data(), expected.data(), got.size()) == 0) return;
  for (std::uint64_t at = 0; at < got.size(); at += element) {
    if (std::memcmp(got.data() + at, expected.data() + at, element) == 0) continue;
    ++result.wrong;
    if (result.first.empty()) result.first = fmt::format("element {}", begin + at / element);
  }
}

}  // namespace

std::uint64_t passes_of_play(const workloads::Case& one, units::Seconds pass,
                             const CaseLimits& limits) {
  const workloads::PlayBounds& bounds = limits.bounds;
  const auto calls = static_cast<double>(std::max<std::uint64_t>(1, one.calls));
  const double fit = std::max(1.0, std::floor(limits.budget.value() / plays_wanted / pass.value()));
  double passes = std::min(fit, static_cast<double>(std::max<std::uint64_t>(1, one.most_times)));
  if (one.repeat == workloads::Repeat::allowed) {
    const double long_enough = std::min(std::ceil(bounds.least_time.value() / pass.value()),
                                        std::ceil(static_cast<double>(bounds.least_calls) / calls));
    passes = std::max(passes, long_enough);
    if (pass.value() < calls * bounds.short_call.value()) {
      const double launched = std::floor(static_cast<double>(bounds.most_short_calls) / calls);
      passes = std::min(passes, std::max(1.0, launched));
    }
  }
  return static_cast<std::uint64_t>(passes);
}

CaseRecord play_case(const CasePlay& what) { return CasePlayer{what}.run(); }

const std::vector<std::byte>& Expectations::table(const workloads::Expectation& expected) {
  const program::DType type = buffers_.at(expected.slice.buffer).dtype;
  if (tables_.size() >= most_tables) tables_.clear();
  std::vector<std::byte>& table = tables_[{type, expected.sources, expected.reduction}];
  if (table.empty()) {
    table = workloads::pattern_table(type, ranks_, expected.sources, expected.reduction);
    const std::size_t period = table.size();
    table.resize(2 * period);
    std::copy_n(table.begin(), period, table.begin() + static_cast<std::ptrdiff_t>(period));
  }
  return table;
}

Comparison Expectations::compare(executor::Session& session,
                                 std::span<const workloads::Expectation> expected) {
  // The expectations are sorted by the ranks whose data they combine, so that each table of
  // expected values is computed only once.
  std::vector<const workloads::Expectation*> order;
  for (const workloads::Expectation& one : expected) order.push_back(&one);
  std::ranges::stable_sort(order, {}, [](const auto* one) -> const auto& { return one->sources; });
  Comparison result;
  for (const workloads::Expectation* const next : order) {
    const workloads::Expectation& one = *next;
    const std::uint64_t element = program::element_size(buffers_.at(one.slice.buffer).dtype);
    const std::span<const std::byte> truth{table(one)};
    // A block is at most one period of the input pattern long. Its expected values are contiguous
    // in the table, which holds two periods.
    for (std::uint64_t done = 0; done < one.slice.count; done += pattern_period) {
      program::Slice slice = one.slice;
      slice.offset += done;
      slice.count = std::min(pattern_period, one.slice.count - done);
      compare_block(session, slice, element,
                    truth.subspan((one.first + done) % pattern_period * element), done, result);
    }
  }
  return result;
}

Comparison Expectations::compare(executor::Session& session,
                                 std::span<const program::Gemm> products) const {
  Comparison result;
  const auto type = [&](const program::Matrix& matrix) {
    return buffers_.at(matrix.slice.buffer).dtype;
  };
  for (const program::Gemm& gemm : products) {
    const workloads::ProductTypes types{.a = type(gemm.a), .b = type(gemm.b), .d = type(gemm.d)};
    const std::uint64_t element = program::element_size(types.d), row = gemm.n * element;
    for (std::uint32_t batch = 0; batch < gemm.batch; ++batch) {
      const std::vector<std::byte> truth = workloads::product_rows(gemm, types, batch);
      // `truth` holds one period of rows, which repeats in the result.
      const std::uint64_t period = truth.size() / row;
      for (std::uint64_t done = 0; done < gemm.m; done += period) {
        program::Slice slice = gemm.d.slice;
        const std::uint64_t begin = (std::uint64_t{batch} * gemm.m + done) * gemm.n;
        slice.offset += begin;
        slice.count = std::min(period, gemm.m - done) * gemm.n;
        compare_block(session, slice, element, truth, begin, result);
      }
    }
  }
  return result;
}

}  // namespace isoscale::runner::microbench
