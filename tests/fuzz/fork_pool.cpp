// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fuzz/fork_pool.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/forked_work.hpp"

namespace isoscale::fuzz {
namespace {

using base::Answer;

using base::Descriptor;

using Work = std::function<std::string(std::size_t)>;

/// A forked copy of this process and the bytes that it has sent so far: a length and a text for
/// each of its items, in order.
struct Worker {
  pid_t process = -1;
  Descriptor from;
  std::string sent{};
  std::vector<std::size_t> items{};
};

[[noreturn]] void fail(const char* what) {
  throw base::Error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

/// Answers the items in a forked copy of this process. It ends by _exit(), which skips the exit
/// handlers and buffers that the copy has inherited.
[[noreturn]] void answer_items(int pipe, std::span<const std::size_t> items,
                               const Work& answer) noexcept {
  for (const std::size_t item : items) {
    const std::string text = answer(item);
    const std::uint64_t length = text.size();
    std::array<char, sizeof length> head{};
    std::memcpy(head.data(), &length, sizeof length);
    if (!base::send_all(pipe, {head.data(), head.size()}) || !base::send_all(pipe, text)) _exit(1);
  }
  _exit(0);
}

/// Forks a copy of this process that answers the worker's items; returns false if the system cannot
/// give a process or a pipe.
bool start(Worker& worker, std::span<const Worker> before, const Work& answer) {
  auto [from, into] = base::make_pipe();
  if (!from) return false;
  const pid_t process = fork();
  if (process < 0) return false;
  if (process == 0) {
    // Closes the reading ends of the earlier workers' pipes: while this copy held one open, its
    // worker would not notice if the reader were gone, and could block for ever.
    for (const Worker& other : before) (void)close(other.from.get());
    from.reset();
    answer_items(into.get(), worker.items, answer);
  }
  worker.process = process;
  worker.from = std::move(from);
  return true;
}

/// Appends the next bytes that the worker has sent; returns false once the worker has closed its
/// pipe.
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

/// Stores the worker's answers and returns the items that it did not start.
std::vector<std::size_t> collect(const Worker& worker, std::vector<Answer>& answers) {
  const std::string ended = base::end_of(worker.process);
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

/// Distributes the items round-robin over the workers, which balances them: files of one kind often
/// follow each other.
std::vector<Worker> shared_out(std::span<const std::size_t> items, std::size_t processes) {
  std::vector<Worker> workers(std::min(processes, items.size()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    workers[i % workers.size()].items.push_back(items[i]);
  }
  return workers;
}

/// Runs one round of workers; returns the items that have no answer yet, and the number of
/// processes that were started.
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
    left = unanswered;  // fewer each round: each process has answered or given up one item at least
  }
  for (const std::size_t item : left) answers[item].text = answer(item);
  return answers;
}

}  // namespace isoscale::fuzz
