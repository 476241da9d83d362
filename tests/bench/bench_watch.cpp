// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Measures what it costs a step to be watched for hangs: steps of one session in alternating
// blocks, once played plainly, once by way of an Activity while another thread looks as a
// supervisor does. (Of two sessions, each with memory of its own, one is faster by up to some
// percent, whichever is watched.) Usage: mpirun -np 2 bench_watch [PAIRS [BATCH]]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench.hpp"
#include "comm/communicator.hpp"
#include "executor/host/host.hpp"
#include "runner/watch/progress.hpp"
#include "runner/watch/stuck_ranks.hpp"
#include "runner/watch/supervisor.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int steps_of_block = 30;

/// Looks as a supervisor does, while it is on.
class Looker {
 public:
  Looker(const runner::watch::Activity& activity, const comm::Communicator& world)
      : thread_([this, &activity, &world](const std::stop_token& stop) {
          runner::watch::RankPoll rank_poll{world};
          runner::watch::Activity::Motion last;
          while (!stop.stop_requested()) {
            constexpr auto pause = runner::watch::Supervisor::look_pause.value();
            std::this_thread::sleep_for(std::chrono::nanoseconds{pause});
            if (!on) continue;
            if (rank_poll.is_requested()) return;
            last = activity.motion();
            processor_seconds = processor_time();
          }
        }) {}
  std::atomic<bool> on{false};
  std::atomic<double> processor_seconds{0};  ///< of the thread that looks, to its last look

 private:
  static double processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  std::jthread thread_;
};

/// Another executor, the last session of which can be reached also past who has wrapped it.
class Remembering final : public executor::Executor {
 public:
  explicit Remembering(executor::Executor& inner) : inner_(inner) {}
  [[nodiscard]] const executor::Description& describe() const override { return inner_.describe(); }
  using Executor::prepare;
  [[nodiscard]] std::unique_ptr<executor::Session> prepare(
      const program::ProgramSet& set, const comm::Communicator& point,
      const executor::SessionOptions& options) override {
    std::unique_ptr<executor::Session> session = inner_.prepare(set, point, options);
    last = session.get();
    return session;
  }
  executor::Session* last = nullptr;

 private:
  executor::Executor& inner_;
};

double block(executor::Session& session, const comm::Communicator& world) {
  world.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < steps_of_block; ++i) {
    session.play(program::Section::step, executor::Trace::off);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return world.all_max(seconds) / steps_of_block;
}

int run(int argc, char** argv) {
  const comm::Environment environment{&argc, &argv};
  const comm::Communicator world = comm::Communicator::world();
  const int pairs = bench::argument(argc, argv, 1, 60);
  const std::string batch = std::to_string(bench::argument(argc, argv, 2, 1));
  const workloads::Workload& workload = workloads::find_workload("dp");
  const workloads::Request request = workload.scale(
      {.model = workloads::load_model("tiny"), .options = {{"batch", batch}, {"microbatch", "1"}}},
      {.dp = world.size()}, workloads::Scaling::weak);
  const program::ProgramSet set = workload.build(request);
  const auto executor = executor::make_host_executor({});
  runner::watch::Activity activity{world.rank()};
  Remembering remembering{*executor};
  runner::watch::WatchedExecutor watching{remembering, activity, world};
  const auto watched = watching.prepare(set, world);
  executor::Session* const plain = remembering.last;
  Looker looker{activity, world};
  watched->play(program::Section::setup, executor::Trace::off);
  block(*watched, world);
  std::vector<double> ratios;
  double step = 0;
  const auto begin = Clock::now();
  for (int pair = 0; pair < pairs; ++pair) {
    const auto watched_block = [&] {
      looker.on = true;
      const double seconds = block(*watched, world);
      looker.on = false;
      return seconds;
    };
    const bool first = pair % 2 == 0;
    const double a = first ? watched_block() : 0, b = block(*plain, world);
    const double c = first ? a : watched_block();
    ratios.push_back(c / b - 1);
    step = b;
  }
  std::ranges::sort(ratios);
  // 95% interval of the median by order statistics.
  const auto n = static_cast<double>(ratios.size());
  const auto at = [&](double rank) {
    return ratios[static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1))];
  };
  const double half = 0.98 * std::sqrt(n);
  if (world.rank() == 0) {
    fmt::print(
        "a step of {:.1f} ms takes {:+.2f}% more when it is watched, {:+.2f}% to {:+.2f}% "
        "({} pairs of blocks of {} steps; goal at most 0.5%)\n",
        step * 1e3, at(n / 2) * 100, at(n / 2 - half) * 100, at(n / 2 + half) * 100, pairs,
        steps_of_block);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    fmt::print("the thread that looks, half of the time, takes {:.3f}% of a core\n",
               looker.processor_seconds / seconds * 100);
  }
  return 0;
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) { return isoscale::run(argc, argv); }
