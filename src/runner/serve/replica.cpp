// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/serve/replica.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "runner/problem.hpp"
#include "runner/serve/letters.hpp"
#include "units/text.hpp"
#include "workloads/serve/serve.hpp"

namespace isoscale::runner::serve {
namespace {

constexpr std::chrono::microseconds nap{20};

units::Seconds play(const ReplicaPart& part, std::size_t size, std::uint64_t token) {
  const executor::PlayTime time =
      part.session.play({.section = workloads::serve::section_of(size, token, part.output)});
  return units::to_seconds(time.end - time.begin);
}

/// The next letter; throws base::Error when none comes for `patience`.
Letter wait_for(const comm::MessageQueue& mail, int box, units::Seconds patience, Board* board) {
  if (const auto envelope = mail.take(box)) return read(*envelope);
  const Board::Rest rest{board};
  const units::Nanoseconds end = comm::now() + units::to_nanoseconds(patience);
  while (true) {
    if (const auto envelope = mail.take(box)) return read(*envelope);
    if (comm::now() > end) {
      throw base::Error(fmt::format("no word of what to play for {}", units::format(patience)));
    }
    std::this_thread::sleep_for(nap);
  }
}

class Leader {
 public:
  Leader(const ReplicaPart& part, units::Seconds patience) : part_(part), patience_(patience) {}

  std::string run() {
    std::string problem;
    try {
      while (!ended_) serve_once();
    } catch (const std::exception& error) {
      // Others of the replica may be stuck in the play that failed: there is no way on from here.
      if (is_playing_ && part_.ranks > 1) throw;
      problem = problem_of(error);
    }
    if (!problem.empty()) problem += give_up();
    for (int rank = 1; rank < part_.ranks; ++rank) {
      send(part_.replica, rank, follower_box, {.kind = Kind::end}, patience_);
    }
    return problem;
  }

 private:
  void serve_once() {
    while (const auto envelope = part_.point.take(leader_box)) note(read(*envelope));
    if (queue_.empty() && !ended_) note(wait_for(part_.point, leader_box, patience_, part_.board));
    if (!queue_.empty() && !ended_) answer_batch();
  }

  void note(const Letter& letter) {
    if (letter.kind == Kind::end) {
      ended_ = true;
    } else {
      queue_.push_back(letter);
    }
  }

  std::vector<Letter> take_batch() {
    const auto most = static_cast<std::size_t>(part_.sizes.back());
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), most));
    std::vector<Letter> batch(queue_.begin(), end);
    queue_.erase(queue_.begin(), end);
    return batch;
  }

  void answer_batch() {
    std::vector<Letter> batch = take_batch();
    const auto fits = std::ranges::lower_bound(part_.sizes, batch.size());
    const auto size = static_cast<std::size_t>(fits - part_.sizes.begin());
    const std::uint64_t longest = std::ranges::max_element(batch, {}, &Letter::tokens)->tokens;
    for (Letter& one : batch) {
      one.kind = Kind::answer;
      one.batch = batches_;
      one.filled = batch.size();
      one.started = comm::now();
    }
    for (int rank = 1; rank < part_.ranks; ++rank) {
      send(part_.replica, rank, follower_box,
           {.kind = Kind::batch, .tokens = longest, .size = size}, patience_);
    }
    for (std::uint64_t token = 0; token < longest; ++token) {
      is_playing_ = true;
      play(part_, size, token);
      is_playing_ = false;
      answer(batch, token + 1);
    }
    ++batches_;
  }

  /// Those whose last token is there.
  void answer(std::vector<Letter>& batch, std::uint64_t tokens) const {
    const units::Nanoseconds now = comm::now();
    for (Letter& one : batch) {
      if (tokens == 1) one.first = now;
      if (one.tokens != tokens) continue;
      one.finished = now;
      send(part_.point, 0, dispatcher_box, one, patience_);
    }
  }

  /// Tells the dispatcher, which tells all, and waits for the end. Returns what else went wrong.
  std::string give_up() {
    try {
      send(part_.point, 0, dispatcher_box, {.kind = Kind::failed}, patience_);
      while (!ended_) note(wait_for(part_.point, leader_box, patience_, part_.board));
    } catch (const std::exception& error) {
      return fmt::format("; then: {}", problem_of(error));
    }
    return "";
  }

  const ReplicaPart& part_;
  units::Seconds patience_;
  std::deque<Letter> queue_;
  std::uint64_t batches_ = 0;
  bool ended_ = false, is_playing_ = false;
};

/// The median of a few plays; the first ones have been made.
Pace pace_of(const ReplicaPart& part, std::size_t size) {
  constexpr std::size_t plays = 5;
  const auto median = [&](std::uint64_t token) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < plays; ++i) seconds.push_back(play(part, size, token).value());
    std::ranges::nth_element(seconds, seconds.begin() + plays / 2);
    return seconds[plays / 2];
  };
  return {.prefill = median(0), .token = part.output > 1 ? median(part.output / 2) : 0};
}

}  // namespace

std::string lead(const ReplicaPart& part, units::Seconds patience) {
  return Leader{part, patience}.run();
}

std::string follow(const ReplicaPart& part, units::Seconds patience) {
  while (true) {
    Letter letter;
    try {
      letter = wait_for(part.replica, follower_box, patience, part.board);
    } catch (const base::Error& error) {
      return error.what();
    }
    if (letter.kind == Kind::end) return "";
    for (std::uint64_t token = 0; token < letter.tokens; ++token) {
      play(part, static_cast<std::size_t>(letter.size), token);
    }
  }
}

Paces warm_up(const ReplicaPart& part) {
  for (std::size_t size = 0; size < part.sizes.size(); ++size) {
    for (std::uint64_t token = 0; token < part.output; ++token) play(part, size, token);
  }
  return {.one = pace_of(part, 0), .full = pace_of(part, part.sizes.size() - 1)};
}

}  // namespace isoscale::runner::serve
