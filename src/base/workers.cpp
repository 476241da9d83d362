// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/workers.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/child.hpp"
#include "base/error.hpp"

namespace isoscale::base {
namespace {

using Work = std::function<std::string(std::size_t)>;

/// A copy of this process, and what it has sent so far: a length and a text for each of its items,
/// in their order.
struct Worker {
  pid_t process = -1;
  PipeEnd from;
  std::string sent{};
  std::vector<std::size_t> items{};
};

[[noreturn]] void fail(const char* what) {
  throw Error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

/// The life of a copy. It leaves without the exit handlers and buffers that it has inherited.
[[noreturn]] void live(int pipe, std::span<const std::size_t> items, const Work& answer) noexcept {
  for (const std::size_t item : items) {
    const std::string text = answer(item);
    const std::uint64_t length = text.size();
    std::array<char, sizeof length> head{};
    std::memcpy(head.data(), &length, sizeof length);
    if (!send_all(pipe, {head.data(), head.size()}) || !send_all(pipe, text)) _exit(1);
  }
  _exit(0);
}

/// False where the system has no process or pipe to give.
bool start(Worker& worker, std::span<const Worker> before, const Work& answer) {
  auto [from, into] = make_pipe();
  if (!from) return false;
  const pid_t process = fork();
  if (process < 0) return false;
  if (process == 0) {
    // Who holds the reading end of another would let that one write to nobody for ever.
    for (const Worker& other : before) (void)close(other.from.get());
    from.reset();
    live(into.get(), worker.items, answer);
  }
  worker.process = process;
  worker.from = std::move(from);
  return true;
}

/// False at the end of what the worker sends.
bool receive(Worker& worker) {
  std::array<char, 65536> block{};
  const ssize_t got = read(worker.from.get(), block.data(), block.size());
  if (got < 0 && errno != EINTR) fail("cannot read from a process of its own");
  if (got > 0) worker.sent.append(block.data(), static_cast<std::size_t>(got));
  return got != 0;
}

void receive_all(std::span<Worker> workers) {
  std::vector<Worker*> open;
  for (Worker& worker : workers) open.push_back(&worker);
  while (!open.empty()) {
    std::vector<pollfd> polled;
    for (const Worker* worker : open) {
      polled.push_back({.fd = worker->from.get(), .events = POLLIN, .revents = 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0) {
      if (errno == EINTR) continue;
      fail("cannot wait for a process of its own");
    }
    std::vector<Worker*> still;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (polled[i].revents == 0 || receive(*open[i])) still.push_back(open[i]);
    }
    open = std::move(still);
  }
}

/// Takes the worker's answers, and gives back the items that it did not come to.
std::vector<std::size_t> collect(const Worker& worker, std::vector<Answer>& answers) {
  const std::string ended = end_of(worker.process);
  std::string_view rest = worker.sent;
  std::size_t done = 0;
  for (; done < worker.items.size(); ++done) {
    std::uint64_t length = 0;
    if (rest.size() < sizeof length) break;
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    if (rest.size() < length) break;
    answers[worker.items[done]].text = std::string{rest.substr(0, length)};
    rest.remove_prefix(length);
  }
  if (done == worker.items.size()) return {};
  answers[worker.items[done]].ended = ended;
  return {worker.items.begin() + static_cast<std::ptrdiff_t>(done) + 1, worker.items.end()};
}

/// Every so many-th item for each: files of one kind often follow each other.
std::vector<Worker> shared_out(std::span<const std::size_t> items, std::size_t processes) {
  std::vector<Worker> workers(std::min(processes, items.size()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    workers[i % workers.size()].items.push_back(items[i]);
  }
  return workers;
}

/// One round: gives back what has no answer yet, and how many processes there were.
std::pair<std::vector<std::size_t>, std::size_t> play_round(std::span<const std::size_t> items,
                                                            std::size_t processes,
                                                            const Work& answer,
                                                            std::vector<Answer>& answers) {
  std::vector<Worker> workers = shared_out(items, processes);
  std::size_t started = 0;
  while (started < workers.size() &&
         start(workers[started], std::span{workers}.first(started), answer)) {
    ++started;
  }
  receive_all(std::span{workers}.first(started));
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto of_worker = i < started ? collect(workers[i], answers) : workers[i].items;
    left.insert(left.end(), of_worker.begin(), of_worker.end());
  }
  std::ranges::sort(left);
  return {std::move(left), started};
}

}  // namespace

std::vector<Answer> answer_apart(std::size_t items, std::size_t processes, const Work& answer) {
  std::vector<Answer> answers(items);
  std::vector<std::size_t> left(items);
  for (std::size_t item = 0; item < items; ++item) left[item] = item;
  while (!left.empty() && processes > 1) {
    const auto [unanswered, started] = play_round(left, processes, answer, answers);
    if (started == 0) break;
    left = unanswered;  // fewer: each process has answered or given up one item at least
  }
  for (const std::size_t item : left) answers[item].text = answer(item);
  return answers;
}

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(CPU_COUNT(&set), 1));
}

}  // namespace isoscale::base
