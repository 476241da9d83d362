// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure.hpp"

#include <algorithm>
#include <cmath>

namespace isoscale::runner {
namespace {

constexpr std::size_t warm_up_steps = 3;  // at least, unless they take too much of the time
constexpr double warm_up_share = 0.1;     // of max_time, at least, up to warm_up_seconds
constexpr double warm_up_seconds = 0.5;   // enough for clocks and caches to settle
constexpr double warm_up_limit = 0.3;     // of max_time, at most
constexpr double block_seconds = 0.1;     // of untraced steps between two looks
constexpr std::size_t least_block = 6, largest_block = 64;  // steps; below 6 there is no interval
constexpr std::size_t traced_block = 2;                     // kept steps of a traced block

/// The loop over blocks on one rank. All ranks hold the same slowest-rank step times and the same
/// elapsed time after each block, and so decide alike.
class Loop {
 public:
  Loop(executor::Session& session, const comm::Communicator& active, Share share,
       const Effort& effort)
      : session_(session), active_(active), share_(share), effort_(effort), begin_(comm::now()) {}

  void warm_up() {
    const double limit = effort_.max_time.value();
    const double least = std::min(warm_up_share * limit, warm_up_seconds);
    do {
      play_block(1, executor::Trace::off);
      record_.dropped.back() = 0;  // warm-up says it all
    } while (elapsed_ < least ||
             (record_.step_times.size() < warm_up_steps && elapsed_ < warm_up_limit * limit));
    record_.warm_up_steps = record_.step_times.size();
  }

  void untraced_block() {
    const std::size_t first = record_.step_times.size();
    play_block(block_size() + 1, executor::Trace::off);
    samples_.insert(samples_.end(), agreed_.begin() + static_cast<std::ptrdiff_t>(first + 1),
                    agreed_.end());
  }

  void traced_block_if_wanted() {
    const auto wanted = static_cast<std::size_t>(effort_.trace_steps);
    if (record_.traces.size() >= wanted) return;
    play_block(std::min(traced_block, wanted - record_.traces.size()) + 1, executor::Trace::on);
  }

  /// Why the loop is done, or "".
  [[nodiscard]] std::string finished() const {
    if (static_cast<int>(record_.traces.size()) < effort_.trace_steps &&
        elapsed_ < effort_.max_time.value()) {
      return "";
    }
    const std::optional<double> width = effort_.half_width(samples_);
    if (width && *width <= effort_.precision) return "precision";
    return elapsed_ >= effort_.max_time.value() ? "max-time" : "";
  }

  [[nodiscard]] units::Seconds elapsed() const { return units::Seconds{elapsed_}; }
  [[nodiscard]] Record& record() { return record_; }

 private:
  /// Untraced steps that count until the next look, as the last step's time suggests; no more than
  /// the time that is left holds.
  [[nodiscard]] std::size_t block_size() const {
    const double step = std::max(agreed_.back(), 1e-9);
    const auto steps = [step](double seconds) {
      return static_cast<std::size_t>(std::ceil(std::max(seconds, 0.0) / step));
    };
    const std::size_t wanted = std::clamp(steps(block_seconds), least_block, largest_block);
    const std::size_t left = steps(effort_.max_time.value() - elapsed_);
    return std::max<std::size_t>(1, std::min(wanted, left));
  }

  void play_block(std::size_t steps, executor::Trace trace) {
    std::vector<double> times;
    for (std::size_t i = 0; i < steps; ++i) {
      const executor::PlayTime time = session_.play(program::Section::step, trace);
      times.push_back(units::to_seconds(time.end - time.begin).value());
      if (record_.traced.empty()) record_.begin = time.begin;
      record_.end = time.end;
      record_.traced.push_back(trace == executor::Trace::on ? 1 : 0);
      record_.dropped.push_back(i == 0 ? 1 : 0);
      if (trace == executor::Trace::on && i > 0) {
        const auto spans = session_.spans();
        record_.traces.push_back({.rank = 0,
                                  .step = static_cast<std::uint32_t>(record_.step_times.size() + i),
                                  .begin = time.begin,
                                  .end = time.end,
                                  .spans = {spans.begin(), spans.end()}});
      }
    }
    record_.step_times.insert(record_.step_times.end(), times.begin(), times.end());

    // What all know: each step's slowest rank, and how long it has been.
    if (share_ == Share::replica) std::fill(times.begin(), times.end(), 0.0);
    times.push_back(units::to_seconds(comm::now() - begin_).value());
    active_.all_max(times);
    elapsed_ = times.back();
    agreed_.insert(agreed_.end(), times.begin(), times.end() - 1);
  }

  executor::Session& session_;
  const comm::Communicator& active_;
  Share share_;
  const Effort& effort_;
  units::Nanoseconds begin_;
  double elapsed_ = 0;
  std::vector<double> agreed_;   ///< slowest rank's time of every step
  std::vector<double> samples_;  ///< of the untraced steps that count
  Record record_;
};

}  // namespace

Record measure(executor::Session& session, const comm::Communicator& active, Share share,
               const Effort& effort, const OnBlock& on_block) {
  Loop loop{session, active, share, effort};
  loop.warm_up();
  std::string done;
  while (done.empty()) {
    loop.untraced_block();
    loop.traced_block_if_wanted();
    on_block(loop.record().step_times.size(), loop.elapsed());
    done = loop.finished();
  }
  loop.record().stopped_because = done;
  return std::move(loop.record());
}

}  // namespace isoscale::runner
