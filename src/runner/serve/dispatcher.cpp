// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/serve/dispatcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "runner/problem.hpp"
#include "runner/serve/letters.hpp"
#include "units/text.hpp"
#include "workloads/serve/requests.hpp"

namespace isoscale::runner::serve {
namespace {

constexpr units::Seconds first_nap{50e-6}, head_start{1e-3};

class Dispatcher {
 public:
  Dispatcher(const comm::MessageQueue& mail, const Trial& trial, const std::stop_token& stop,
             Board* board)
      : mail_(mail),
        trial_(trial),
        stop_(stop),
        board_(board),
        ledger_(trial.arrivals.size()),
        policy_(trial.policy, trial.leader_of_replica.size()) {
    served_.outcomes.resize(trial.arrivals.size());
    served_.played.resize(trial.arrivals.size());
  }

  Served run() {
    try {
      serve();
      ledger_.close();
    } catch (const std::exception& error) {
      served_.problem = problem_of(error);
    }
    for (const int leader : trial_.leader_of_replica) {
      try {
        send(mail_, leader, leader_box, {.kind = Kind::end}, trial_.patience);
      } catch (const std::exception& error) {
        if (served_.problem.empty()) served_.problem = problem_of(error);
      }
    }
    return std::move(served_);
  }

 private:
  void serve() {
    served_.begin = comm::now() + units::to_nanoseconds(head_start);
    last_progress_ = served_.begin;
    while (!ledger_.all_answered()) {
      const bool has_sent = send_arrived();
      if (take_answers() || has_sent) continue;
      if (stop_.stop_requested()) throw base::Error("the rank that dispatches has failed");
      require_progress();
      if (due() == 0 && !rest_) rest_.emplace(board_);
      pause();
    }
  }

  [[nodiscard]] double elapsed() const {
    return units::to_seconds(comm::now() - served_.begin).value();
  }

  bool send_arrived() {
    const std::size_t begin = next_;
    while (next_ < trial_.arrivals.size() && trial_.arrivals[next_] <= elapsed()) {
      send_next();
      ++next_;
    }
    return next_ > begin;
  }

  void send_next() {
    rest_.reset();
    const std::size_t replica = policy_.assign(trial_.work[next_]);
    ledger_.dispatched(next_, replica);
    workloads::serve::Outcome& outcome = served_.outcomes[next_];
    outcome.arrival = trial_.arrivals[next_];
    outcome.tokens = trial_.tokens[next_];
    outcome.replica = replica;
    // What was due is that of now: before, none may have been expected for long.
    if (due() == 0) last_progress_ = comm::now();
    send(mail_, trial_.leader_of_replica[replica], leader_box,
         {.kind = Kind::request, .request = next_, .tokens = trial_.tokens[next_]},
         trial_.patience);
    outcome.dispatched = elapsed();
  }

  bool take_answers() {
    bool any = false;
    while (const auto envelope = mail_.take(dispatcher_box)) {
      any = true;
      last_progress_ = comm::now();
      note(*envelope);
    }
    return any;
  }

  void note(const comm::Message& envelope) {
    const Letter letter = read(envelope);
    if (letter.kind == Kind::failed) {
      throw base::Error(fmt::format("rank {} could not continue", mail_.world_rank(envelope.from)));
    }
    const auto sender = std::ranges::find(trial_.leader_of_replica, envelope.from);
    const auto replica = static_cast<std::size_t>(sender - trial_.leader_of_replica.begin());
    ledger_.answered(letter.request, replica);
    policy_.answered(replica, trial_.work[letter.request]);
    served_.outcomes[letter.request].batch = letter.batch;
    served_.outcomes[letter.request].filled = letter.filled;
    served_.played[letter.request] = {letter.started, letter.first, letter.finished};
  }

  /// Requests that have been sent and not answered.
  [[nodiscard]] std::size_t due() const {
    return ledger_.open() - (trial_.arrivals.size() - next_);
  }

  /// While nothing has been asked that is not answered, there is nothing to wait for.
  void require_progress() const {
    const units::Nanoseconds waited = comm::now() - last_progress_;
    if (due() == 0 || units::to_seconds(waited) < trial_.patience) return;
    throw base::Error(fmt::format("{} requests are due, and no answer came for {}", due(),
                                  units::format(units::to_seconds(waited))));
  }

  void pause() const {
    double seconds = first_nap.value();
    if (next_ < trial_.arrivals.size()) {
      seconds = std::clamp(trial_.arrivals[next_] - elapsed(), 0.0, seconds);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>{seconds});
  }

  const comm::MessageQueue& mail_;
  const Trial& trial_;
  const std::stop_token& stop_;
  Board* board_;
  std::optional<Board::Rest> rest_;  ///< while nothing is due
  workloads::serve::Ledger ledger_;
  workloads::serve::Dispatch policy_;
  std::size_t next_ = 0;  ///< the request that arrives next
  units::Nanoseconds last_progress_{};
  Served served_;
};

}  // namespace

Served dispatch(const comm::MessageQueue& mail, const Trial& trial, const std::stop_token& stop,
                Board* board) {
  return Dispatcher{mail, trial, stop, board}.run();
}

}  // namespace isoscale::runner::serve
