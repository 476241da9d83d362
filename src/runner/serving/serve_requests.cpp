// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <span>
#include <thread>
#include <type_traits>

#include "base/error.hpp"
#include "runner/serving/serving_point.hpp"
#include "statistics/estimate.hpp"
#include "units/quantity.hpp"
#include "units/quantity_text.hpp"
#include "workloads/serve/serve.hpp"

namespace isoscale::runner::serving {
namespace {

/// The message queue of a rank has numbered boxes, one for each role: dispatcher, leader and
/// follower. The sender of a message chooses the box by its number, like a tag in MPI.
constexpr int dispatcher_box = 0, leader_box = 1, follower_box = 2;

enum class Kind : std::int64_t {
  request,  ///< to a leader: answer a request with Message::tokens tokens
  end,      ///< to a leader or a follower: there are no more requests
  answer,   ///< to the dispatcher: a request is answered; the sender is the replica's leader
  failed,   ///< to the dispatcher: the sender has failed; a vote after the trial tells the reason
  batch     ///< to a follower: play a batch for Message::tokens tokens; its size: see Message::size
};

/// A message between the dispatcher, the leaders of replicas and their followers. Its bytes are
/// sent unchanged, since all ranks run the same build and so have the same layout.
struct Message {
  Kind kind = Kind::end;
  std::uint64_t request = 0;
  std::uint64_t tokens = 0;
  std::uint64_t size = 0;    ///< for Kind::batch: index in ReplicaPart::sizes
  std::uint64_t batch = 0;   ///< number of the batch in its replica, from 0
  std::uint64_t filled = 0;  ///< number of requests in the batch
  Played times{};            ///< on the leader's clock
};
static_assert(std::is_trivially_copyable_v<Message>);

void send(const comm::MessageQueue& mail, int to, int box, const Message& message,
          units::Seconds patience) {
  mail.send(to, box, std::as_bytes(std::span{&message, 1}), patience);
}

/// Returns the message in a received envelope. Throws base::Error if it has the wrong length.
Message read(const comm::Message& envelope) {
  Message message;
  if (envelope.bytes.size() != sizeof message) throw base::Error("a message of the wrong length");
  std::memcpy(&message, envelope.bytes.data(), sizeof message);
  return message;
}

/// first_nap: the longest sleep of the dispatcher between two checks for messages. head_start: the
/// time from the start of the dispatcher to the time 0 from which the arrivals of requests count.
constexpr units::Seconds first_nap{50e-6}, head_start{1e-3};

class Dispatcher {
 public:
  Dispatcher(const comm::MessageQueue& mail, const Trial& trial, const std::stop_token& stop,
             watch::Activity* activity)
      : mail_(mail),
        trial_(trial),
        stop_(stop),
        activity_(activity),
        policy_(trial.policy, trial.leader_of_replica.size()),
        is_due_(trial.arrivals.size()) {
    served_.outcomes.resize(trial.arrivals.size());
    served_.played.resize(trial.arrivals.size());
  }

  Served run() {
    try {
      serve();
    } catch (const std::exception& error) {
      served_.problem = comm::problem_of(error);
    }
    for (const int leader : trial_.leader_of_replica) {
      try {
        send(mail_, leader, leader_box, {.kind = Kind::end}, trial_.patience);
      } catch (const std::exception& error) {
        if (served_.problem.empty()) served_.problem = comm::problem_of(error);
      }
    }
    return std::move(served_);
  }

 private:
  void serve() {
    served_.begin = comm::now() + units::to_nanoseconds(head_start);
    last_progress_ = served_.begin;
    while (next_ < trial_.arrivals.size() || due_ > 0) {
      const bool has_sent = send_arrived();
      if (take_answers() || has_sent) continue;
      if (stop_.stop_requested()) throw base::Error("the rank that dispatches has failed");
      require_progress();
      if (due_ == 0 && !idle_) idle_.emplace(activity_);
      pause();
    }
  }

  [[nodiscard]] double elapsed() const {
    return units::to_seconds(comm::now() - served_.begin).value();
  }

  bool send_arrived() {
    const std::size_t begin = next_;
    for (; next_ < trial_.arrivals.size() && trial_.arrivals[next_] <= elapsed(); ++next_) {
      idle_.reset();
      const std::size_t replica = policy_.assign(trial_.work[next_]);
      workloads::serve::Outcome& outcome = served_.outcomes[next_];
      outcome.arrival = trial_.arrivals[next_];
      outcome.tokens = trial_.tokens[next_];
      outcome.replica = replica;
      // No answer was due until this request, so the time without an answer counts from now.
      if (due_ == 0) last_progress_ = comm::now();
      is_due_[next_] = true;
      ++due_;
      send(mail_, trial_.leader_of_replica[replica], leader_box,
           {.kind = Kind::request, .request = next_, .tokens = trial_.tokens[next_]},
           trial_.patience);
      outcome.dispatched = elapsed();
    }
    return next_ > begin;
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
    const Message message = read(envelope);
    if (message.kind == Kind::failed) {
      throw base::Error(fmt::format("rank {} could not continue", mail_.world_rank(envelope.from)));
    }
    const auto sender = std::ranges::find(trial_.leader_of_replica, envelope.from);
    const auto replica = static_cast<std::size_t>(sender - trial_.leader_of_replica.begin());
    if (message.request >= is_due_.size() || !is_due_[message.request] ||
        served_.outcomes[message.request].replica != replica) {
      throw base::Error(fmt::format("replica {} answers request {}, which is not due from it",
                                    replica, message.request));
    }
    is_due_[message.request] = false;
    --due_;
    policy_.answered(replica, trial_.work[message.request]);
    served_.outcomes[message.request].batch = message.batch;
    served_.outcomes[message.request].filled = message.filled;
    served_.played[message.request] = message.times;
  }

  /// Throws base::Error if an answer is due and none has come for Trial::patience.
  void require_progress() const {
    const units::Nanoseconds waited = comm::now() - last_progress_;
    if (due_ == 0 || units::to_seconds(waited) < trial_.patience) return;
    throw base::Error(fmt::format("{} requests are due, and no answer came for {}", due_,
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
  watch::Activity* activity_;
  std::optional<watch::Activity::Idle> idle_;  ///< exists while no request is due
  workloads::serve::Dispatch policy_;
  std::size_t next_ = 0;      ///< index of the next request to send
  std::vector<bool> is_due_;  ///< by request: sent to a replica and not answered yet
  std::size_t due_ = 0;       ///< number of requests that are due
  units::Nanoseconds last_progress_{};
  Served served_;
};

constexpr std::chrono::microseconds nap{20};  // sleep between two checks for a message

units::Seconds play(const ReplicaPart& part, std::size_t size, std::uint64_t token) {
  const executor::PlayTime time =
      part.session.play({.section = workloads::serve::section_of(size, token, part.output)});
  return units::to_seconds(time.end - time.begin);
}

/// Returns the next message in a box of this rank. Throws base::Error if none comes within
/// `patience`. While it waits, `activity` notes that this rank is idle.
Message wait_for(const comm::MessageQueue& mail, int box, units::Seconds patience,
                 watch::Activity* activity) {
  if (const auto envelope = mail.take(box)) return read(*envelope);
  const watch::Activity::Idle idle{activity};
  const units::Nanoseconds end = comm::now() + units::to_nanoseconds(patience);
  while (true) {
    if (const auto envelope = mail.take(box)) return read(*envelope);
    if (comm::now() > end) {
      throw base::Error(fmt::format("no work arrived for {}", units::format(patience)));
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
      while (!ended_) {
        while (const auto envelope = part_.point.take(leader_box)) note(read(*envelope));
        if (queue_.empty() && !ended_) {
          note(wait_for(part_.point, leader_box, patience_, part_.activity));
        }
        if (!queue_.empty() && !ended_) answer_batch();
      }
    } catch (const std::exception& error) {
      // If a play failed, other ranks of the replica may be stuck in it.
      if (is_playing_ && part_.ranks > 1) throw;
      problem = comm::problem_of(error);
    }
    if (!problem.empty()) problem += give_up();
    for (int rank = 1; rank < part_.ranks; ++rank) {
      send(part_.replica, rank, follower_box, {.kind = Kind::end}, patience_);
    }
    return problem;
  }

 private:
  void note(const Message& message) {
    if (message.kind == Kind::end) {
      ended_ = true;
    } else {
      queue_.push_back(message);
    }
  }

  void answer_batch() {
    const auto most = static_cast<std::size_t>(part_.sizes.back());
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), most));
    std::vector<Message> batch(queue_.begin(), end);
    queue_.erase(queue_.begin(), end);
    const auto fits = std::ranges::lower_bound(part_.sizes, batch.size());
    const auto size = static_cast<std::size_t>(fits - part_.sizes.begin());
    const std::uint64_t longest = std::ranges::max_element(batch, {}, &Message::tokens)->tokens;
    for (Message& one : batch) {
      one.kind = Kind::answer;
      one.batch = batches_;
      one.filled = batch.size();
      one.times.started = comm::now();
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

  /// Sends the answers to those requests of the batch whose last token is number `tokens`.
  void answer(std::vector<Message>& batch, std::uint64_t tokens) const {
    const units::Nanoseconds now = comm::now();
    for (Message& one : batch) {
      if (tokens == 1) one.times.first = now;
      if (one.tokens != tokens) continue;
      one.times.finished = now;
      send(part_.point, 0, dispatcher_box, one, patience_);
    }
  }

  /// Tells the dispatcher that this leader has failed. Then waits for the message that ends the
  /// trial, which the dispatcher sends to all leaders. If one of these steps fails, returns a
  /// clause about it, to be appended to the leader's problem; otherwise "".
  std::string give_up() {
    try {
      send(part_.point, 0, dispatcher_box, {.kind = Kind::failed}, patience_);
      while (!ended_) note(wait_for(part_.point, leader_box, patience_, part_.activity));
    } catch (const std::exception& error) {
      return fmt::format("; then: {}", comm::problem_of(error));
    }
    return "";
  }

  const ReplicaPart& part_;
  units::Seconds patience_;
  std::deque<Message> queue_;
  std::uint64_t batches_ = 0;
  bool ended_ = false, is_playing_ = false;
};

/// Returns the median times of a few plays for batches of the size part.sizes[size]. The programs
/// must have been played once before.
Pace pace_of(const ReplicaPart& part, std::size_t size) {
  constexpr std::size_t plays = 5;
  const auto median = [&](std::uint64_t token) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < plays; ++i) seconds.push_back(play(part, size, token).value());
    return *statistics::median(seconds);
  };
  return {.prefill = median(0), .token = part.output > 1 ? median(part.output / 2) : 0};
}

}  // namespace

Served dispatch(const comm::MessageQueue& mail, const Trial& trial, const std::stop_token& stop,
                watch::Activity* activity) {
  return Dispatcher{mail, trial, stop, activity}.run();
}

std::string lead(const ReplicaPart& part, units::Seconds patience) {
  return Leader{part, patience}.run();
}

std::string follow(const ReplicaPart& part, units::Seconds patience) {
  while (true) {
    Message message;
    try {
      message = wait_for(part.replica, follower_box, patience, part.activity);
    } catch (const base::Error& error) {
      return error.what();
    }
    if (message.kind == Kind::end) return "";
    for (std::uint64_t token = 0; token < message.tokens; ++token) {
      play(part, static_cast<std::size_t>(message.size), token);
    }
  }
}

Paces warm_up(const ReplicaPart& part) {
  for (std::size_t size = 0; size < part.sizes.size(); ++size) {
    for (std::uint64_t token = 0; token < part.output; ++token) play(part, size, token);
  }
  return {.one = pace_of(part, 0), .full = pace_of(part, part.sizes.size() - 1)};
}

}  // namespace isoscale::runner::serving
